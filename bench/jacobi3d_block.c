/* SPDX-License-Identifier: BSD-3-Clause */
/* jacobi3d_block.c - the blocks of the grid, and the serial reference. */
#include "jacobi3d.h"

#include <stdlib.h>
#include <string.h>


/* The first value of a cell; outside the grid it stays */
static double field_value(int x, int y, int z)
{
    return (double)((x * 31 + y * 17 + z * 7 + 100) % 97);
}

static void field_fill(bench_box_t *field, const int *first)
{
    int x, y, z;

    for (x = 0; x < field->size[0] + 2; ++x) {
        for (y = 0; y < field->size[1] + 2; ++y) {
            for (z = 0; z < field->size[2] + 2; ++z) {
                field->cells[bench_box_at(field, x, y, z)] = field_value(
                        first[0] + x, first[1] + y, first[2] + z);
            }
        }
    }
    memcpy(field->next, field->cells, bench_box_bytes(field));
}

/* One iteration. The order of the additions is that of all blocks and of the
 * reference, so that results are equal. */
static void field_compute(bench_box_t *field)
{
    size_t row  = field->size[2] + 2;
    size_t page = row * (field->size[1] + 2);
    double *c   = field->cells;
    size_t i;
    int x, y, z;

    for (x = 1; x <= field->size[0]; ++x) {
        for (y = 1; y <= field->size[1]; ++y) {
            for (z = 1; z <= field->size[2]; ++z) {
                i              = bench_box_at(field, x, y, z);
                field->next[i] = (c[i] + c[i - page] + c[i + page] +
                                  c[i - row] + c[i + row] + c[i - 1] +
                                  c[i + 1]) / 7.0;
            }
        }
    }
    bench_box_swap(field);
}

static void block_init(j3_app_t *app, j3_block_t *block, int index)
{
    int place[J3_DIMS];
    j3_side_t *side;
    int dim, i, k;

    block->app   = app;
    block->index = index;
    bench_box_place(app->grid, index, place);
    for (dim = 0; dim < J3_DIMS; ++dim) {
        block->first[dim]      = app->width[dim] * place[dim] / app->grid[dim];
        block->field.size[dim] = app->width[dim] * (place[dim] + 1) /
                                 app->grid[dim] - block->first[dim];
    }
    bench_box_init(&block->field);
    for (i = 0; i < J3_SIDES; ++i) {
        side            = &block->sides[i];
        side->block     = block;
        side->neighbour = bench_box_neighbour(app->grid, index, i, 0);
        side->length    = bench_box_face_length(&block->field, i);
        side->out      = bench_alloc(side->length);
        side->stage[0] = bench_alloc(side->length);
        side->stage[1] = bench_alloc(side->length);
        for (k = 0; k < J3_SETS; ++k) {
            side->faces[k].block = block;
            side->faces[k].in    = bench_alloc(side->length);
        }
    }
}

static void block_cleanup(j3_block_t *block)
{
    int i;

    bench_box_cleanup(&block->field);
    for (i = 0; i < J3_SIDES; ++i) {
        free(block->sides[i].out);
        free(block->sides[i].stage[0]);
        free(block->sides[i].stage[1]);
        free(block->sides[i].faces[0].in);
        free(block->sides[i].faces[1].in);
    }
}

void j3_blocks_init(j3_app_t *app, int per_rank)
{
    static const int origin[J3_DIMS];
    int i;

    app->num_blocks  = per_rank;
    app->first_block = app->rank * per_rank;
    app->blocks      = bench_alloc(per_rank * sizeof(*app->blocks));
    for (i = 0; i < per_rank; ++i) {
        block_init(app, &app->blocks[i], app->first_block + i);
    }
    memcpy(app->reference.size, app->width, sizeof(app->width));
    bench_box_init(&app->reference);
    field_fill(&app->reference, origin);
    for (i = 0; i < app->iters; ++i) {
        field_compute(&app->reference);
    }
}

void j3_blocks_cleanup(j3_app_t *app)
{
    int i;

    for (i = 0; i < app->num_blocks; ++i) {
        block_cleanup(&app->blocks[i]);
    }
    free(app->blocks);
    bench_box_cleanup(&app->reference);
}

void j3_blocks_reset(j3_app_t *app)
{
    j3_block_t *block;

    for (block = app->blocks; block < app->blocks + app->num_blocks; ++block) {
        field_fill(&block->field, block->first);
        block->iteration   = 0;
        block->exchange_us = 0;
    }
    app->num_done   = 0;
    app->ready_head = NULL;
    app->ready_tail = &app->ready_head;
}

void j3_block_done(j3_block_t *block)
{
    if (--block->pending > 0) {
        return;
    }
    block->ready            = NULL;
    *block->app->ready_tail = block;
    block->app->ready_tail  = &block->ready;
}

void j3_block_begin(j3_block_t *block)
{
    const j3_way_t *way = block->app->way;
    j3_side_t *side;
    int i;

    block->pending = 1; /* This function */
    block->began   = bench_now_us();
    for (i = 0; i < J3_SIDES; ++i) {
        side = &block->sides[i];
        if (side->neighbour >= 0) {
            block->pending += 2;
            way->recv(side);
            bench_box_copy_face(&block->field, i, 1, side->out);
            way->send(side);
        }
    }
    j3_block_done(block);
}

void j3_kernel_pack(void *arg)
{
    j3_block_t *block = arg;
    int i;

    block->began = bench_now_us();
    for (i = 0; i < J3_SIDES; ++i) {
        if (block->sides[i].neighbour >= 0) {
            bench_box_copy_face(&block->field, i, 1,
                                block->sides[i].out);
        }
    }
}

void j3_kernel_compute(void *arg)
{
    j3_block_t *block  = arg;
    const unsigned set = (unsigned)block->iteration % block->app->num_sets;
    int i;

    block->exchange_us += bench_now_us() - block->began;
    for (i = 0; i < J3_SIDES; ++i) {
        if (block->sides[i].neighbour >= 0) {
            bench_box_copy_face(&block->field, i, 0,
                                block->sides[i].faces[set].in);
        }
    }
    field_compute(&block->field);
    ++block->iteration;
}

void j3_block_run(j3_block_t *block)
{
    j3_kernel_compute(block);
    if (block->iteration < block->app->iters) {
        j3_block_begin(block);
    } else {
        ++block->app->num_done;
    }
}

double j3_blocks_exchange_us(const j3_app_t *app)
{
    double sum = 0;
    int i;

    for (i = 0; i < app->num_blocks; ++i) {
        sum += app->blocks[i].exchange_us;
    }
    return sum / app->num_blocks / app->iters;
}

uint64_t j3_blocks_check(j3_app_t *app)
{
    const bench_box_t *all = &app->reference;
    uint64_t errors       = 0;
    const bench_box_t *field;
    const int *first;
    int i, x, y;

    for (i = 0; i < app->num_blocks; ++i) {
        field = &app->blocks[i].field;
        first = app->blocks[i].first;
        for (x = 1; x <= field->size[0]; ++x) {
            for (y = 1; y <= field->size[1]; ++y) {
                errors += memcmp(&field->cells[bench_box_at(field, x, y, 1)],
                                 &all->cells[bench_box_at(all, first[0] + x,
                                                      first[1] + y,
                                                      first[2] + 1)],
                                 field->size[2] * sizeof(double)) != 0;
            }
        }
    }
    return errors;
}
