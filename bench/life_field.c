/* SPDX-License-Identifier: BSD-3-Clause */
/* life_field.c - the cells, the kernels and the reference. */
#include "life.h"

#include <stdlib.h>
#include <string.h>


/* Directions are numbered x first, from (-1,-1) to (1,1), without 0. */
static int life_dir(int dir, int dim)
{
    static const int power[] = {1, 3};
    int index                = (dir < LIFE_NUM_DIRS / 2) ? dir : dir + 1;

    return ((index / power[dim]) % 3) - 1;
}

int life_opposite(int dir)
{
    return LIFE_NUM_DIRS - 1 - dir;
}

static uint8_t *life_cell(const life_field_t *field, uint8_t *cells, int x,
                          int y)
{
    return &cells[(size_t)y * (field->size[0] + 2) + x];
}

/* Cells of a message in one dimension. */
typedef struct life_range {
    int first;
    int count;
} life_range_t;


/* The own cells of a direction's message in a dimension, or the copied ones. */
static life_range_t life_range(const life_field_t *field, int dir, int dim,
                               int is_copy)
{
    const int size = field->size[dim];

    switch (life_dir(dir, dim)) {
    case -1:
        return (life_range_t){is_copy ? 0 : 1, 1};
    case 1:
        return (life_range_t){is_copy ? size + 1 : size, 1};
    default:
        return (life_range_t){1, size};
    }
}

/* Copies the cells of a message from the grid, or to it. */
static void life_move(life_field_t *field, int dir, uint8_t *message, int is_in)
{
    const life_range_t column = life_range(field, dir, 0, is_in);
    const life_range_t row    = life_range(field, dir, 1, is_in);
    uint8_t *cells;
    int x, y;

    for (y = 0; y < row.count; ++y) {
        cells = life_cell(field, field->cells, column.first, row.first + y);
        for (x = 0; x < column.count; ++x) {
            if (is_in) {
                cells[x] = *message++;
            } else {
                *message++ = cells[x];
            }
        }
    }
}

void life_kernel_pack(void *arg)
{
    life_field_t *field = arg;
    int dir;

    for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
        life_move(field, dir, field->send[dir], 0);
    }
}

static uint8_t life_rule(int is_alive, int neighbours)
{
    return (neighbours == 3) || (is_alive && (neighbours == 2));
}

void life_kernel_step(void *arg)
{
    life_field_t *field = arg;
    const int width     = field->size[0] + 2;
    uint8_t *up, *row, *down, *next;
    int dir, x, y;

    for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
        life_move(field, dir, field->recv[field->step % field->num_sets][dir],
                  1);
    }
    ++field->step;
    for (y = 1; y <= field->size[1]; ++y) {
        row  = life_cell(field, field->cells, 0, y);
        up   = row - width;
        down = row + width;
        next = life_cell(field, field->next, 0, y);
        for (x = 1; x <= field->size[0]; ++x) {
            next[x] = life_rule(row[x], up[x - 1] + up[x] + up[x + 1] +
                                row[x - 1] + row[x + 1] + down[x - 1] +
                                down[x] + down[x + 1]);
        }
    }
    next         = field->cells;
    field->cells = field->next;
    field->next  = next;
}

/* About every third cell is alive at first. */
static uint8_t life_start(int x, int y)
{
    uint64_t word = (uint64_t)y * 1000003 + x + 1;

    word *= 0x9e3779b97f4a7c15ull;
    return ((word >> 40) % 3) == 0;
}

void life_field_reset(life_field_t *field)
{
    int x, y;

    for (y = 1; y <= field->size[1]; ++y) {
        for (x = 1; x <= field->size[0]; ++x) {
            *life_cell(field, field->cells, x, y) =
                    life_start(field->start[0] + x - 1,
                               field->start[1] + y - 1);
        }
    }
    if (field->device != NULL) {
        life_device_store(field);
    }
}

/* The part of 'total' cells that the n-th of 'ranks' has. */
static int life_share(int total, int ranks, int n, int *size)
{
    int start = (int)((long)total * n / ranks);

    *size = (int)((long)total * (n + 1) / ranks) - start;
    return start;
}

int life_field_init(life_field_t *field, const int total[2], int rank,
                    int ranks)
{
    int dim, dir, place[2], other[2];

    *field = (life_field_t){.total = {total[0], total[1]}};
    bench_check(MPI_Dims_create(ranks, 2, field->ranks), "MPI_Dims_create");
    for (dim = 0; dim < 2; ++dim) {
        if (total[dim] < field->ranks[dim]) {
            bench_error("a grid of %dx%d cells is too small for %dx%d ranks\n",
                        total[0], total[1], field->ranks[0], field->ranks[1]);
            return -1;
        }
        place[dim]        = (dim == 0) ? rank % field->ranks[0] :
                                         rank / field->ranks[0];
        field->start[dim] = life_share(total[dim], field->ranks[dim],
                                       place[dim], &field->size[dim]);
    }

    for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
        field->length[dir] = 1;
        for (dim = 0; dim < 2; ++dim) {
            other[dim] = (place[dim] + life_dir(dir, dim) + field->ranks[dim]) %
                         field->ranks[dim];
            field->length[dir] *= (life_dir(dir, dim) == 0) ? field->size[dim] :
                                                              1;
        }
        field->neighbour[dir] = other[1] * field->ranks[0] + other[0];
    }
    return 0;
}

void life_field_alloc(life_field_t *field, const bench_stream_t *stream)
{
    size_t cells = (size_t)(field->size[0] + 2) * (field->size[1] + 2);
    int dir, set;

    field->stream = stream;
    if (bench_stream_is_gpu(stream)) {
        life_device_init(field);
        return;
    }
    field->cells = bench_alloc(cells);
    field->next  = bench_alloc(cells);
    for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
        field->send[dir] = bench_alloc(field->length[dir]);
        field->out[dir]  = field->send[dir];
        for (set = 0; set < LIFE_MAX_SETS; ++set) {
            field->recv[set][dir] = bench_alloc(field->length[dir]);
            field->in[set][dir]   = field->recv[set][dir];
        }
    }
}

void life_field_cleanup(life_field_t *field)
{
    int dir, set;

    if (field->device != NULL) {
        life_device_cleanup(field);
        return;
    }
    for (dir = 0; dir < LIFE_NUM_DIRS; ++dir) {
        free(field->send[dir]);
        for (set = 0; set < LIFE_MAX_SETS; ++set) {
            free(field->recv[set][dir]);
        }
    }
    free(field->cells);
    free(field->next);
}

/* One generation of the whole grid. */
static void life_reference_step(const int total[2], const uint8_t *cells,
                                uint8_t *next)
{
    int x, y, dx, dy, sum;

    for (y = 0; y < total[1]; ++y) {
        for (x = 0; x < total[0]; ++x) {
            sum = 0;
            for (dy = -1; dy <= 1; ++dy) {
                for (dx = -1; dx <= 1; ++dx) {
                    sum += cells[(size_t)((y + dy + total[1]) % total[1]) *
                                 total[0] + (x + dx + total[0]) % total[0]];
                }
            }
            sum -= cells[(size_t)y * total[0] + x];
            next[(size_t)y * total[0] + x] =
                    life_rule(cells[(size_t)y * total[0] + x], sum);
        }
    }
}

uint64_t life_compare(const life_field_t *field, int count)
{
    const int *total  = field->total;
    uint64_t wrong    = 0;
    uint8_t *cells    = bench_alloc((size_t)total[0] * total[1]);
    uint8_t *next     = bench_alloc((size_t)total[0] * total[1]);
    uint8_t *last;
    int i, x, y;

    for (y = 0; y < total[1]; ++y) {
        for (x = 0; x < total[0]; ++x) {
            cells[(size_t)y * total[0] + x] = life_start(x, y);
        }
    }
    for (i = 0; i < count; ++i) {
        life_reference_step(total, cells, next);
        last  = cells;
        cells = next;
        next  = last;
    }
    for (y = 1; y <= field->size[1]; ++y) {
        for (x = 1; x <= field->size[0]; ++x) {
            wrong += *life_cell(field, field->cells, x, y) !=
                     cells[(size_t)(field->start[1] + y - 1) * total[0] +
                           field->start[0] + x - 1];
        }
    }
    free(cells);
    free(next);
    return wrong;
}
