/* SPDX-License-Identifier: BSD-3-Clause */
/* faces_field.c - a rank's elements, their shared nodes, and the kernels. */
#include "faces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>


/* Place of a node in one dimension: neighbouring elements share one. */
static int faces_axis_place(const faces_field_t *field, int element, int point)
{
    return element * (field->points - 1) + point;
}

/* Place of a node, from its number. */
static uint32_t faces_node_place(const faces_field_t *field, size_t node)
{
    size_t points   = field->points;
    size_t block    = field->block;
    size_t element  = node / (points * points * points);
    size_t local    = node % (points * points * points);
    uint32_t place  = 0;
    uint32_t stride = 1;
    int dim;

    for (dim = 0; dim < 3; ++dim) {
        place   += stride * faces_axis_place(field, element % block,
                                             local % points);
        stride  *= field->width;
        element /= block;
        local   /= points;
    }
    return place;
}

/* Counting sort of the nodes by place; keeps their order within a place. */
static void faces_field_sort_nodes(faces_field_t *field)
{
    uint32_t *fill = bench_alloc(field->num_places * sizeof(*fill));
    size_t i;

    field->first = bench_alloc((field->num_places + 1) * sizeof(uint32_t));
    field->node  = bench_alloc(field->num_values * sizeof(uint32_t));

    for (i = 0; i < field->num_values; ++i) {
        ++field->first[faces_node_place(field, i) + 1];
    }
    for (i = 0; i < field->num_places; ++i) {
        field->first[i + 1] += field->first[i];
        fill[i]              = field->first[i];
    }
    for (i = 0; i < field->num_values; ++i) {
        field->node[fill[faces_node_place(field, i)]++] = i;
    }
    free(fill);
}

/* First and last place of a message in one dimension. */
static void faces_dir_range(const faces_field_t *field, int dir, int dim,
                            int *begin_p, int *end_p)
{
    int last = field->width - 1;

    *begin_p = (faces_dir(dir, dim) > 0) ? last : 0;
    *end_p   = (faces_dir(dir, dim) < 0) ? 0 : last;
}

/* Lists the places of a message, x first: as on the other side. */
static void faces_field_list_places(faces_field_t *field, int dir)
{
    size_t count = 0;
    int begin[3], end[3];
    int dim, x, y, z;

    field->length[dir] = 1;
    for (dim = 0; dim < 3; ++dim) {
        faces_dir_range(field, dir, dim, &begin[dim], &end[dim]);
        field->length[dir] *= end[dim] - begin[dim] + 1;
    }

    field->place[dir] = bench_alloc(field->length[dir] * sizeof(uint32_t));
    for (z = begin[2]; z <= end[2]; ++z) {
        for (y = begin[1]; y <= end[1]; ++y) {
            for (x = begin[0]; x <= end[0]; ++x) {
                field->place[dir][count++] =
                    (z * field->width + y) * field->width + x;
            }
        }
    }
}

static void faces_field_init_messages(faces_field_t *field)
{
    size_t size;
    int dir, set;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        faces_field_list_places(field, dir);
        size             = field->length[dir] * sizeof(double);
        field->send[dir] = bench_alloc(size);
        for (set = 0; set < FACES_MAX_SETS; ++set) {
            field->recv[set][dir] = bench_alloc(size);
        }
    }
}

void faces_field_init(faces_field_t *field, int rank, int block, int order)
{
    size_t nodes_axis = (size_t)block * (order + 1);

    field->rank       = rank;
    field->block      = block;
    field->points     = order + 1;
    field->width      = block * order + 1;
    field->num_values = nodes_axis * nodes_axis * nodes_axis;
    field->num_places = (size_t)field->width * field->width * field->width;
    field->value      = bench_alloc(field->num_values * sizeof(double));
    field->sum        = bench_alloc(field->num_places * sizeof(double));
    faces_field_sort_nodes(field);
    faces_field_init_messages(field);
}

void faces_field_cleanup(faces_field_t *field)
{
    int dir, set;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        for (set = 0; set < FACES_MAX_SETS; ++set) {
            free(field->recv[set][dir]);
        }
        free(field->send[dir]);
        free(field->place[dir]);
    }
    free(field->node);
    free(field->first);
    free(field->sum);
    free(field->value);
}

static void faces_spoil(double *values, size_t count)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        values[i] = NAN;
    }
}

void faces_field_reset(faces_field_t *field, unsigned num_sets)
{
    size_t i;
    int dir, set;

    for (i = 0; i < field->num_values; ++i) {
        field->value[i] = faces_start_value(field->num_values, field->rank, i);
    }

    faces_spoil(field->sum, field->num_places);
    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        faces_spoil(field->send[dir], field->length[dir]);
        for (set = 0; set < FACES_MAX_SETS; ++set) {
            faces_spoil(field->recv[set][dir], field->length[dir]);
        }
    }

    field->num_sets = num_sets;
    field->iter     = 0;
}

/* A number in [0, 1), different for nodes, ranks and iterations near by. */
double faces_source(size_t num_values, int rank, size_t node, unsigned iter)
{
    uint32_t id = (uint32_t)(rank * num_values + node);

    return ((id * 40503u + iter * 9973u) & 0xffff) * (1.0 / 65536);
}

double faces_start_value(size_t num_values, int rank, size_t node)
{
    return faces_source(num_values, rank, node, 0xf00d);
}

/* The factor keeps sums of up to 8 nodes bounded over any number of uses. */
double faces_update(double value, double source)
{
    return value * 0.0625 + source;
}

static double faces_place_sum(const faces_field_t *field, uint32_t place)
{
    const uint32_t *node = field->node + field->first[place];
    const uint32_t *end  = field->node + field->first[place + 1];
    double sum           = field->value[*node];

    while (++node < end) {
        sum += field->value[*node];
    }
    return sum;
}

void faces_kernel_pack(void *arg)
{
    faces_field_t *field = arg;
    size_t i;
    int dir;

    for (i = 0; i < field->num_values; ++i) {
        field->value[i] = faces_update(field->value[i],
                                       faces_source(field->num_values,
                                                    field->rank, i,
                                                    field->iter));
    }

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        for (i = 0; i < field->length[dir]; ++i) {
            field->send[dir][i] = faces_place_sum(field, field->place[dir][i]);
        }
    }
}

void faces_kernel_interior(void *arg)
{
    faces_field_t *field = arg;
    size_t i;

    for (i = 0; i < field->num_places; ++i) {
        field->sum[i] = faces_place_sum(field, i);
    }
}

void faces_kernel_unpack(void *arg)
{
    faces_field_t *field = arg;
    double **recv        = field->recv[field->iter % field->num_sets];
    uint32_t n;
    size_t i;
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        for (i = 0; i < field->length[dir]; ++i) {
            field->sum[field->place[dir][i]] += recv[dir][i];
        }
    }

    for (i = 0; i < field->num_places; ++i) {
        for (n = field->first[i]; n < field->first[i + 1]; ++n) {
            field->value[field->node[n]] = field->sum[i];
        }
    }
    ++field->iter;
}
