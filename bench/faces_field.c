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

static int faces_is_surface(const faces_field_t *field, uint32_t place)
{
    int dim, at;

    for (dim = 0; dim < 3; ++dim) {
        at     = place % field->width;
        place /= field->width;
        if ((at == 0) || (at == field->width - 1)) {
            return 1;
        }
    }
    return 0;
}

/* Numbers the places of the surface; the numbers of others are not used. */
static uint32_t *faces_field_number_surface(faces_field_t *field)
{
    uint32_t *number = bench_alloc(field->num_places * sizeof(*number));
    size_t i;

    field->num_surface = 0;
    for (i = 0; i < field->num_places; ++i) {
        if (faces_is_surface(field, i)) {
            number[i] = field->num_surface++;
        }
    }
    return number;
}

/* Lists where the nodes are, and those at the surface once more. */
static void faces_field_list_nodes(faces_field_t *field, const uint32_t *number)
{
    size_t i;

    field->place    = bench_alloc(field->num_values * sizeof(uint32_t));
    field->rim      = bench_alloc(field->num_values * sizeof(faces_rim_t));
    field->surface  = bench_alloc(field->num_surface * sizeof(double));
    field->num_rims = 0;
    for (i = 0; i < field->num_values; ++i) {
        field->place[i] = faces_node_place(field, i);
        if (faces_is_surface(field, field->place[i])) {
            field->rim[field->num_rims++] = (faces_rim_t) {
                .node    = i,
                .surface = number[field->place[i]]
            };
        }
    }
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
static void faces_field_list_places(faces_field_t *field, int dir,
                                    const uint32_t *number)
{
    size_t count = 0;
    int begin[3], end[3];
    uint32_t place;
    int dim, x, y, z;

    field->length[dir] = 1;
    for (dim = 0; dim < 3; ++dim) {
        faces_dir_range(field, dir, dim, &begin[dim], &end[dim]);
        field->length[dir] *= end[dim] - begin[dim] + 1;
    }

    field->from[dir] = bench_alloc(field->length[dir] * sizeof(uint32_t));
    field->to[dir]   = bench_alloc(field->length[dir] * sizeof(uint32_t));
    for (z = begin[2]; z <= end[2]; ++z) {
        for (y = begin[1]; y <= end[1]; ++y) {
            for (x = begin[0]; x <= end[0]; ++x) {
                place = (z * field->width + y) * field->width + x;
                field->from[dir][count] = number[place];
                field->to[dir][count++] = place;
            }
        }
    }
}

static void faces_field_init_messages(faces_field_t *field,
                                      const uint32_t *number)
{
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        faces_field_list_places(field, dir, number);
    }
    if (!bench_stream_is_gpu(field->stream)) {
        faces_messages_init(field);
    }
}

void faces_field_init(faces_field_t *field, const bench_stream_t *stream,
                      int rank, int block, int order)
{
    size_t nodes_axis = (size_t)block * (order + 1);
    uint32_t *number;

    field->stream     = stream;
    field->rank       = rank;
    field->block      = block;
    field->points     = order + 1;
    field->width      = block * order + 1;
    field->num_values = nodes_axis * nodes_axis * nodes_axis;
    field->num_places = (size_t)field->width * field->width * field->width;
    field->sum        = bench_alloc(field->num_places * sizeof(double));
    number            = faces_field_number_surface(field);
    faces_field_list_nodes(field, number);
    faces_field_init_messages(field, number);
    free(number);
    if (bench_stream_is_gpu(stream)) {
        faces_device_init(field);
    } else {
        field->value  = bench_alloc(field->num_values * sizeof(double));
        field->source = bench_alloc(field->num_values * sizeof(double));
    }
}

void faces_field_cleanup(faces_field_t *field)
{
    int dir;

    if (field->device != NULL) {
        faces_device_cleanup(field);
    } else {
        faces_messages_cleanup(field);
        free(field->source);
        free(field->value);
    }
    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        free(field->to[dir]);
        free(field->from[dir]);
    }
    free(field->surface);
    free(field->rim);
    free(field->place);
    free(field->sum);
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
        field->value[i]  = faces_start_value(field->num_values, field->rank, i);
        field->source[i] = faces_source(field->num_values, field->rank, i);
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
    if (field->device != NULL) {
        faces_device_store(field);
    }
}

/* A number in [0, 1), different for what is near by. */
static double faces_scatter(uint32_t id)
{
    return ((id * 40503u) & 0xffff) * (1.0 / 65536);
}

double faces_source(size_t num_values, int rank, size_t node)
{
    return faces_scatter((uint32_t)(rank * num_values + node));
}

double faces_start_value(size_t num_values, int rank, size_t node)
{
    return 1 - faces_source(num_values, rank, node);
}

double faces_drift(unsigned iter)
{
    return faces_scatter(iter);
}

/* The factor keeps sums of up to 8 nodes bounded over any number of uses. */
double faces_update(double value, double source, double drift)
{
    return value * 0.0625 + (source + drift);
}

/* Sums begin with 0 and nodes are ascending, as the reference has it. */
void faces_kernel_pack(void *arg)
{
    faces_field_t *field   = arg;
    const faces_rim_t *rim = field->rim;
    double drift           = faces_drift(field->iter);
    size_t i;
    int dir;

    for (i = 0; i < field->num_values; ++i) {
        field->value[i] = faces_update(field->value[i], field->source[i],
                                       drift);
    }

    memset(field->surface, 0, field->num_surface * sizeof(double));
    for (i = 0; i < field->num_rims; ++i) {
        field->surface[rim[i].surface] += field->value[rim[i].node];
    }

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        for (i = 0; i < field->length[dir]; ++i) {
            field->send[dir][i] = field->surface[field->from[dir][i]];
        }
    }
}

void faces_kernel_interior(void *arg)
{
    faces_field_t *field = arg;
    size_t i;

    memset(field->sum, 0, field->num_places * sizeof(double));
    for (i = 0; i < field->num_values; ++i) {
        field->sum[field->place[i]] += field->value[i];
    }
}

void faces_kernel_unpack(void *arg)
{
    faces_field_t *field = arg;
    double **recv        = field->recv[field->iter % field->num_sets];
    size_t i;
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        for (i = 0; i < field->length[dir]; ++i) {
            field->sum[field->to[dir][i]] += recv[dir][i];
        }
    }

    for (i = 0; i < field->num_values; ++i) {
        field->value[i] = field->sum[field->place[i]];
    }
    ++field->iter;
}
