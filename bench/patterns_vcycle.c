/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patterns_vcycle.c - multigrid as HPGMG-FV has it on its fine levels: V-cycles
 * for (6 + c) u - sum of 6 neighbours = f on a periodic grid of cells, of which
 * each rank has a cube. Each level has cubes of half the side, down to 2 cells.
 *
 * Each smoothing (Jacobi's, damped) and each residual begins with an exchange
 * of 6 faces. The coarsest level, which is not gathered, is smoothed some more.
 * The reference is the same on one box of all cells, driven by the host, and
 * equal bit for bit.
 */
#include "patterns.h"

#include <string.h>

#define VC_MAX_LEVELS 10
#define VC_SMOOTHS    2   /* On each level, on the way down and up */
#define VC_LAST       8   /* On the coarsest one */
#define VC_SHIFT      0.5 /* c of the finest level */


/* The kernels' argument. The cells are u. */
typedef struct vc_level {
    bench_box_t     box;
    double          *f;        /* Of all cells, with the layer */
    double          shift;
    pt_exchange_t   *exchange;
    struct vc_level *coarse;   /* NULL: none */
} vc_level_t;


/* This rank's levels, and all cells' */
typedef struct vc_grid {
    vc_level_t levels[VC_MAX_LEVELS];
    int        num_levels;
    int        first[3]; /* Cell, of all */
    pt_plan_t  *plan;
} vc_grid_t;

static vc_grid_t vc_own;
static vc_grid_t vc_all;
static pt_plan_t vc_plan;     /* Of the reference */
static int       vc_is_known; /* The reference was computed */


static void vc_pack(void *arg)
{
    vc_level_t *level = arg;
    int side;

    for (side = 0; side < BENCH_BOX_SIDES; ++side) {
        bench_box_copy_face(&level->box, side, 1,
                            level->exchange->messages[side].out);
    }
}

static void vc_unpack(vc_level_t *level)
{
    int side;

    for (side = 0; side < BENCH_BOX_SIDES; ++side) {
        bench_box_copy_face(&level->box, side, 0,
                            pt_in(level->exchange, side));
    }
    ++level->exchange->taken;
}

static double vc_residual(const vc_level_t *level, size_t i)
{
    const size_t row  = level->box.size[2] + 2;
    const size_t page = row * (level->box.size[1] + 2);
    const double *u   = level->box.cells;

    return level->f[i] - (6 + level->shift) * u[i] + u[i - page] + u[i + page] +
           u[i - row] + u[i + row] + u[i - 1] + u[i + 1];
}

static void vc_smooth(void *arg)
{
    vc_level_t *level = arg;
    bench_box_t *box  = &level->box;
    const double part = 0.8 / (6 + level->shift);
    size_t i;
    int x, y, z;

    vc_unpack(level);
    for (x = 1; x <= box->size[0]; ++x) {
        for (y = 1; y <= box->size[1]; ++y) {
            i = bench_box_at(box, x, y, 1);
            for (z = 1; z <= box->size[2]; ++z, ++i) {
                box->next[i] = box->cells[i] + part * vc_residual(level, i);
            }
        }
    }
    bench_box_swap(box);
}

/* The next level's f is the residual, and its u is 0. */
static void vc_restrict(void *arg)
{
    vc_level_t *level  = arg;
    vc_level_t *coarse = level->coarse;
    size_t i;
    int x, y, z;

    vc_unpack(level);
    memset(coarse->f, 0, bench_box_bytes(&coarse->box));
    memset(coarse->box.cells, 0, bench_box_bytes(&coarse->box));
    for (x = 1; x <= level->box.size[0]; ++x) {
        for (y = 1; y <= level->box.size[1]; ++y) {
            i = bench_box_at(&level->box, x, y, 1);
            for (z = 1; z <= level->box.size[2]; ++z, ++i) {
                coarse->f[bench_box_at(&coarse->box, (x + 1) / 2, (y + 1) / 2,
                                       (z + 1) / 2)] +=
                        vc_residual(level, i) / 2;
            }
        }
    }
}

/* Adds the next level's u. */
static void vc_interpolate(void *arg)
{
    vc_level_t *level  = arg;
    bench_box_t *small = &level->coarse->box;
    size_t i;
    int x, y, z;

    for (x = 1; x <= level->box.size[0]; ++x) {
        for (y = 1; y <= level->box.size[1]; ++y) {
            i = bench_box_at(&level->box, x, y, 1);
            for (z = 1; z <= level->box.size[2]; ++z, ++i) {
                level->box.cells[i] += small->cells[bench_box_at(
                        small, (x + 1) / 2, (y + 1) / 2, (z + 1) / 2)];
            }
        }
    }
}

static void vc_add_exchange(vc_grid_t *grid, vc_level_t *level,
                            MPIX_Host_func kernel)
{
    pt_add_kernel(grid->plan, vc_pack, level);
    pt_add(grid->plan, PT_EXCHANGE, level->exchange);
    pt_add_kernel(grid->plan, kernel, level);
}

static void vc_add_smooths(vc_grid_t *grid, vc_level_t *level, int count)
{
    while (count-- > 0) {
        vc_add_exchange(grid, level, vc_smooth);
    }
}

static void vc_make_plan(vc_grid_t *grid)
{
    int last = grid->num_levels - 1;
    int i;

    for (i = 0; i < last; ++i) {
        vc_add_smooths(grid, &grid->levels[i], VC_SMOOTHS);
        vc_add_exchange(grid, &grid->levels[i], vc_restrict);
    }
    vc_add_smooths(grid, &grid->levels[last], VC_LAST);
    for (i = last - 1; i >= 0; --i) {
        pt_add_kernel(grid->plan, vc_interpolate, &grid->levels[i]);
        vc_add_smooths(grid, &grid->levels[i], VC_SMOOTHS);
    }
}

/* Of cubes with so many cells a side, so many in each dimension. */
static void vc_make(vc_grid_t *grid, pt_plan_t *plan, const pt_options_t *opts,
                    const int *cubes)
{
    vc_level_t *level = grid->levels;
    int size, dim;

    grid->plan = plan;
    for (size = opts->size; size >= 2; size /= 2, ++level) {
        for (dim = 0; dim < 3; ++dim) {
            level->box.size[dim] = size * cubes[dim];
        }
        bench_box_init(&level->box);
        level->f        = bench_alloc(bench_box_bytes(&level->box));
        level->shift    = VC_SHIFT * ((double)opts->size / size) *
                          ((double)opts->size / size);
        level->coarse   = (size >= 4) ? level + 1 : NULL;
        level->exchange = pt_add_exchange(plan, BENCH_BOX_SIDES);
        for (dim = 0; dim < 3; ++dim) {
            pt_set_sides(level->exchange, 2 * dim, opts, dim,
                         bench_box_face_length(&level->box, 2 * dim));
        }
    }
    grid->num_levels = (int)(level - grid->levels);
    vc_make_plan(grid);
}

static int vc_open(pt_plan_t *plan, const pt_options_t *opts)
{
    static const int one[] = {1, 1, 1};
    pt_options_t alone     = *opts;
    int dim;

    if ((opts->size < 2) || (opts->size > 1 << VC_MAX_LEVELS) ||
        ((opts->size & (opts->size - 1)) != 0)) {
        bench_error("--size: %d is not a power of 2 from 2 to %d\n",
                    opts->size, 1 << VC_MAX_LEVELS);
        return -1;
    }
    bench_box_place(opts->grid, opts->rank, vc_own.first);
    for (dim = 0; dim < 3; ++dim) {
        vc_own.first[dim] *= opts->size;
    }
    vc_make(&vc_own, plan, opts, one);
    alone.rank      = 0;
    memcpy(alone.grid, one, sizeof(one));
    vc_plan.variant = BENCH_VARIANT_MPI;
    vc_plan.comm    = MPI_COMM_SELF;
    vc_plan.stream  = plan->stream;
    vc_make(&vc_all, &vc_plan, &alone, opts->grid);
    return 0;
}

static void vc_reset_grid(vc_grid_t *grid)
{
    vc_level_t *level = grid->levels;
    int x, y, z;

    memset(level->box.cells, 0, bench_box_bytes(&level->box));
    for (x = 0; x < level->box.size[0]; ++x) {
        for (y = 0; y < level->box.size[1]; ++y) {
            for (z = 0; z < level->box.size[2]; ++z) {
                level->f[bench_box_at(&level->box, x + 1, y + 1, z + 1)] =
                        (double)(pt_hash((uint64_t)(grid->first[0] + x) << 32 |
                                         (uint64_t)(grid->first[1] + y) << 16 |
                                         (uint64_t)(grid->first[2] + z), 0) %
                                 1000);
            }
        }
    }
}

static void vc_reset(void)
{
    vc_reset_grid(&vc_own);
}

/* Rows of cells that differ. */
static uint64_t vc_check(int count)
{
    const bench_box_t *own = &vc_own.levels[0].box;
    const bench_box_t *all = &vc_all.levels[0].box;
    const int *first       = vc_own.first;
    uint64_t wrong         = 0;
    int x, y;

    if (!vc_is_known) {
        vc_reset_grid(&vc_all);
        pt_init(&vc_plan);
        pt_prepare(&vc_plan, count);
        pt_run(&vc_plan, count);
        vc_is_known = 1;
    }
    all = &vc_all.levels[0].box;
    for (x = 1; x <= own->size[0]; ++x) {
        for (y = 1; y <= own->size[1]; ++y) {
            wrong += memcmp(&own->cells[bench_box_at(own, x, y, 1)],
                            &all->cells[bench_box_at(all, first[0] + x,
                                                     first[1] + y,
                                                     first[2] + 1)],
                            own->size[2] * sizeof(double)) != 0;
        }
    }
    return wrong;
}

const pt_pattern_t pt_vcycle = {
    .name     = "vcycle",
    .variants = BENCH_VARIANT_MPI | BENCH_VARIANTS_ST,
    .size     = 16,
    .open     = vc_open,
    .reset    = vc_reset,
    .check    = vc_check
};
