/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patterns_particles.c - particles that move from rank to rank, as the atoms of
 * CoMD: after each step those that have left a rank's box go to its neighbours,
 * first in x, then in y, then in z. Their number differs from step to step, up
 * to the room of a message. Forces are not computed: each particle keeps its
 * velocity, so that its place is known at any time.
 */
#include "patterns.h"

#include <string.h>

#define PM_SIDE  (1 << 16)      /* Of a rank's box */
#define PM_SPEED (PM_SIDE / 16) /* In a dimension, of a step, at most */


typedef struct pm_particle {
    uint64_t id;
    int32_t  place[3]; /* Of all ranks' box; it wraps around when it is sent */
    int32_t  speed[3];
} pm_particle_t;


/* A message begins so. */
typedef struct pm_head {
    uint64_t length;
    uint64_t count;
} pm_head_t;


/* What a kernel of one dimension needs. */
typedef struct pm_phase {
    int           dim;
    pt_exchange_t *exchange;
} pm_phase_t;

static struct {
    const pt_options_t *opts;
    int32_t            first[3]; /* Of this rank's box */
    size_t             most;     /* Particles of a message */
    size_t             room;
    size_t             count;
    pm_particle_t      *particles;
    pm_phase_t         phases[3];
} pm;


/* A particle as it was made. */
static pm_particle_t pm_make(uint64_t id)
{
    pm_particle_t particle = {.id = id};
    int place[3];
    int dim;

    bench_box_place(pm.opts->grid, (int)(id / (uint64_t)pm.opts->size), place);
    for (dim = 0; dim < 3; ++dim) {
        particle.place[dim] = place[dim] * PM_SIDE +
                              (int32_t)(pt_hash(id, dim) % PM_SIDE);
        particle.speed[dim] = (int32_t)(pt_hash(id, 3 + dim) %
                                        (2 * PM_SPEED + 1)) - PM_SPEED;
    }
    return particle;
}

static int64_t pm_wrap(int64_t place, int dim)
{
    const int64_t width = (int64_t)pm.opts->grid[dim] * PM_SIDE;

    return (place % width + width) % width;
}

static void pm_move(void *arg)
{
    size_t i;
    int dim;

    (void)arg;
    for (i = 0; i < pm.count; ++i) {
        for (dim = 0; dim < 3; ++dim) {
            pm.particles[i].place[dim] += pm.particles[i].speed[dim];
        }
    }
}

/* Takes those out that have left the box; one that finds no room in a message
 * stays, and the check finds it. */
static void pm_pack(void *arg)
{
    const pm_phase_t *phase = arg;
    const int dim           = phase->dim;
    pm_head_t *heads[2]     = {phase->exchange->messages[0].out,
                               phase->exchange->messages[1].out};
    pm_particle_t *particle;
    int64_t from;
    size_t i;
    int up;

    heads[0]->count = 0;
    heads[1]->count = 0;
    for (i = 0; i < pm.count;) {
        particle = &pm.particles[i];
        from     = (int64_t)particle->place[dim] - pm.first[dim];
        up       = (from >= PM_SIDE);
        if (((from >= 0) && !up) || (heads[up]->count == pm.most)) {
            ++i;
            continue;
        }
        particle->place[dim] = (int32_t)pm_wrap(particle->place[dim], dim);
        ((pm_particle_t*)(heads[up] + 1))[heads[up]->count++] = *particle;
        *particle = pm.particles[--pm.count];
    }
    for (i = 0; i < 2; ++i) {
        heads[i]->length = sizeof(*heads[i]) +
                           heads[i]->count * sizeof(pm_particle_t);
    }
}

static void pm_unpack(void *arg)
{
    const pm_phase_t *phase = arg;
    const pm_head_t *head;
    int i;

    for (i = 0; i < 2; ++i) {
        head = pt_in(phase->exchange, i);
        if (head->count <= pm.room - pm.count) {
            memcpy(&pm.particles[pm.count], head + 1,
                   head->count * sizeof(pm_particle_t));
            pm.count += head->count;
        }
    }
    ++phase->exchange->taken;
}

static int pm_open(pt_plan_t *plan, const pt_options_t *opts)
{
    pm_phase_t *phase;
    int dim;

    pm.opts      = opts;
    pm.most      = (size_t)opts->size / 16 + 64;
    pm.room      = 2 * ((size_t)opts->size + 6 * pm.most);
    pm.particles = bench_alloc(pm.room * sizeof(*pm.particles));
    bench_box_place(opts->grid, opts->rank, pm.first);
    pt_add_kernel(plan, pm_move, NULL);
    for (dim = 0; dim < 3; ++dim) {
        pm.first[dim]          *= PM_SIDE;
        phase                   = &pm.phases[dim];
        phase->dim              = dim;
        phase->exchange         = pt_add_exchange(plan, 2);
        phase->exchange->varies = 1;
        pt_set_sides(phase->exchange, 0, opts, dim, sizeof(pm_head_t) +
                     pm.most * sizeof(pm_particle_t));
        pt_add_kernel(plan, pm_pack, phase);
        pt_add(plan, PT_EXCHANGE, phase->exchange);
        pt_add_kernel(plan, pm_unpack, phase);
    }
    return 0;
}

static void pm_reset(void)
{
    size_t i;

    pm.count = pm.opts->size;
    for (i = 0; i < pm.count; ++i) {
        pm.particles[i] = pm_make((uint64_t)pm.opts->rank * pm.count + i);
    }
}

/* Where a particle is after so many steps, and whether that is here. */
static int pm_is_right(const pm_particle_t *particle, int count)
{
    const pm_particle_t made = pm_make(particle->id);
    int is_right             = 1;
    int64_t place;
    int dim;

    for (dim = 0; dim < 3; ++dim) {
        place     = pm_wrap(made.place[dim] + (int64_t)count * made.speed[dim],
                            dim);
        is_right &= (particle->place[dim] == place) &&
                    (place >= pm.first[dim]) &&
                    (place - pm.first[dim] < PM_SIDE);
    }
    return is_right;
}

/* That none is missing, and none there twice, is told by sums of what differs
 * from particle to particle. */
static uint64_t pm_check(int count)
{
    uint64_t wrong = 0;
    uint64_t sum   = 0;
    uint64_t made  = 0;
    size_t i;

    for (i = 0; i < pm.count; ++i) {
        wrong += !pm_is_right(&pm.particles[i], count);
        sum   += pt_hash(pm.particles[i].id, 6);
    }
    for (i = 0; i < (size_t)pm.opts->size; ++i) {
        made += pt_hash((uint64_t)pm.opts->rank * pm.opts->size + i, 6);
    }
    return wrong + (bench_sum(sum - made, MPI_COMM_WORLD) != 0);
}

const pt_pattern_t pt_particles = {
    .name     = "particles",
    .variants = BENCH_VARIANT_MPI | BENCH_VARIANTS_ST,
    .size     = 4096,
    .open     = pm_open,
    .reset    = pm_reset,
    .check    = pm_check
};
