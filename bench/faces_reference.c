/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faces_reference.c - the halo sum of all ranks, computed by one thread.
 *
 * Takes no list of the field: it walks elements and places by coordinates, and
 * pulls what a neighbour holds instead of packing it. It adds in the order of
 * the kernels (own nodes ascending, then directions ascending), so results must
 * be the same to the last bit.
 */
#include "faces.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* Values of all ranks. */
typedef struct faces_global {
    const faces_grid_t  *grid;
    const faces_field_t *field; /* For its sizes */
    int                 ranks;
    double              *value; /* [rank][node] */
    double              *local; /* [rank][place], sums within a rank */
} faces_global_t;


typedef void (*faces_node_func_t)(double *value, double *place);


static void faces_node_add(double *value, double *place)
{
    *place += *value;
}

static void faces_node_set(double *value, double *place)
{
    *value = *place;
}

/* Calls a function for every node of an element, with the node's place. */
static void faces_element_each(const faces_field_t *field, const int element[3],
                               double *value, double *place,
                               faces_node_func_t func)
{
    int points = field->points;
    int order  = points - 1;
    size_t width = field->width;
    size_t at;
    int x, y, z;

    for (z = 0; z < points; ++z) {
        for (y = 0; y < points; ++y) {
            for (x = 0; x < points; ++x) {
                at = ((element[2] * order + z) * width +
                      (element[1] * order + y)) * width +
                     element[0] * order + x;
                func(value++, &place[at]);
            }
        }
    }
}

static void faces_block_each(const faces_field_t *field, double *value,
                             double *place, faces_node_func_t func)
{
    size_t nodes = (size_t)field->points * field->points * field->points;
    int element[3];

    for (element[2] = 0; element[2] < field->block; ++element[2]) {
        for (element[1] = 0; element[1] < field->block; ++element[1]) {
            for (element[0] = 0; element[0] < field->block; ++element[0]) {
                faces_element_each(field, element, value, place, func);
                value += nodes;
            }
        }
    }
}

/* Element update and sums within each rank. */
static void faces_global_update(faces_global_t *global, unsigned iter)
{
    size_t num_values = global->field->num_values;
    size_t num_places = global->field->num_places;
    double *value;
    size_t i;
    int rank;

    memset(global->local, 0, global->ranks * num_places * sizeof(double));
    for (rank = 0; rank < global->ranks; ++rank) {
        value = global->value + rank * num_values;
        for (i = 0; i < num_values; ++i) {
            value[i] = faces_update(value[i],
                                    faces_source(num_values, rank, i),
                                    faces_drift(iter));
        }
        faces_block_each(global->field, value,
                         global->local + rank * num_places, faces_node_add);
    }
}

/* What the neighbour in a direction holds at a place of the surface; 0 if the
 * place does not lie on that side. */
static double faces_global_pull(const faces_global_t *global,
                                const int coord[3], const int place[3], int dir)
{
    int width = global->field->width;
    int there[3], other[3];
    int dim, step, rank;

    for (dim = 0; dim < 3; ++dim) {
        step = faces_dir(dir, dim);
        if (((step > 0) && (place[dim] != width - 1)) ||
            ((step < 0) && (place[dim] != 0))) {
            return 0;
        }
        there[dim] = coord[dim] + step;
        other[dim] = place[dim] - step * (width - 1);
    }

    rank = faces_grid_rank(global->grid, there);
    return global->local[rank * global->field->num_places +
                         ((size_t)other[2] * width + other[1]) * width +
                         other[0]];
}

static double faces_global_sum(const faces_global_t *global,
                               const int coord[3], const int place[3],
                               double own)
{
    int last   = global->field->width - 1;
    double sum = own;
    int surface = 0;
    int dim, dir;

    for (dim = 0; dim < 3; ++dim) {
        surface |= (place[dim] == 0) || (place[dim] == last);
    }
    for (dir = 0; surface && (dir < FACES_NUM_DIRS); ++dir) {
        sum += faces_global_pull(global, coord, place, dir);
    }
    return sum;
}

/* Sums over ranks for one rank, spread to its nodes. */
static void faces_global_exchange(faces_global_t *global, int rank,
                                  double *sums)
{
    const faces_field_t *field = global->field;
    const int *size            = global->grid->size;
    const double *own          = global->local + rank * field->num_places;
    const int coord[3]         = {rank % size[0], rank / size[0] % size[1],
                                  rank / (size[0] * size[1])};
    double *sum                = sums;
    int place[3];

    for (place[2] = 0; place[2] < field->width; ++place[2]) {
        for (place[1] = 0; place[1] < field->width; ++place[1]) {
            for (place[0] = 0; place[0] < field->width; ++place[0]) {
                *sum++ = faces_global_sum(global, coord, place, *own++);
            }
        }
    }
    faces_block_each(field, global->value + rank * field->num_values, sums,
                     faces_node_set);
}

static void faces_global_start(faces_global_t *global)
{
    size_t num_values = global->field->num_values;
    size_t i;
    int rank;

    for (rank = 0; rank < global->ranks; ++rank) {
        for (i = 0; i < num_values; ++i) {
            global->value[rank * num_values + i] =
                faces_start_value(num_values, rank, i);
        }
    }
}

void faces_reference(const faces_field_t *field, const faces_grid_t *grid,
                     int count, double *expected)
{
    faces_global_t global = {.grid = grid, .field = field};
    double *sums          = bench_alloc(field->num_places * sizeof(double));
    int iter, rank;

    global.ranks = grid->size[0] * grid->size[1] * grid->size[2];
    global.value = bench_alloc(global.ranks * field->num_values *
                               sizeof(double));
    global.local = bench_alloc(global.ranks * field->num_places *
                               sizeof(double));

    faces_global_start(&global);
    for (iter = 0; iter < count; ++iter) {
        faces_global_update(&global, iter);
        for (rank = 0; rank < global.ranks; ++rank) {
            faces_global_exchange(&global, rank, sums);
        }
    }

    memcpy(expected, global.value + field->rank * field->num_values,
           field->num_values * sizeof(double));
    free(global.local);
    free(global.value);
    free(sums);
}

int faces_check(const faces_field_t *field, const double *expected,
                const char *variant)
{
    size_t nodes = (size_t)field->points * field->points * field->points;
    size_t i;

    for (i = 0; i < field->num_values; ++i) {
        if (memcmp(&field->value[i], &expected[i], sizeof(double)) != 0) {
            fprintf(stderr,
                    "%s: rank %d, element %zu, point %zu: got %.17g, "
                    "expected %.17g\n", variant, field->rank, i / nodes,
                    i % nodes, field->value[i], expected[i]);
            return -1;
        }
    }
    return 0;
}
