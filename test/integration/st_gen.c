/* SPDX-License-Identifier: BSD-3-Clause */
/* st_gen.c - random programs: moves towards a deadlock, ready sends. */
#include "st_gen.h"
#include "st_bytes.h"

#include <string.h>

#define ST_GEN_MAX_MOVE 12 /* Places, of a short move */


unsigned st_gen_below(uint64_t *random, unsigned limit)
{
    return (unsigned)((st_bytes_random(random) >> 16) % limit);
}

int st_gen_chance(uint64_t *random, unsigned percent)
{
    return st_gen_below(random, 100) < percent;
}

/* Move a step to another place, and those between by one */
static void st_gen_rotate(st_prog_rank_t *part, unsigned from, unsigned to)
{
    st_step_t step = part->steps[from];

    if (from > to) {
        memmove(&part->steps[to + 1], &part->steps[to],
                (from - to) * sizeof(step));
    } else {
        memmove(&part->steps[from], &part->steps[from + 1],
                (to - from) * sizeof(step));
    }
    part->steps[to] = step;
}

/* Non-zero if two steps name the same operation, or the same queue where one of
 * them is about all of it */
static int st_gen_is_bound(const st_step_t *a, const st_step_t *b)
{
    unsigned i, j;

    for (i = 0; i < a->count; ++i) {
        for (j = 0; j < b->count; ++j) {
            if (a->ops[i] == b->ops[j]) {
                return 1;
            }
        }
    }
    return ((a->count == 0) || (b->count == 0)) && (a->queue == b->queue);
}

/* Where a step might go: what waits forward, what lets others go on back; often
 * as far as its operations' other steps let it */
static unsigned st_gen_move_to(const st_prog_rank_t *part, uint64_t *random,
                               unsigned from)
{
    const st_step_t *steps = part->steps;
    unsigned by            = st_gen_chance(random, 50) ?
                             ST_PROG_MAX_STEPS :
                             1 + st_gen_below(random, ST_GEN_MAX_MOVE);
    unsigned to            = from;

    if ((steps[from].type == ST_STEP_WAIT) ||
        (steps[from].type == ST_STEP_MATCHED) || (steps[from].count == 0)) {
        while ((to > 0) && (from - to < by) &&
               !st_gen_is_bound(&steps[from], &steps[to - 1])) {
            --to;
        }
    } else {
        while ((to + 1 < part->num_steps) && (to - from < by) &&
               !st_gen_is_bound(&steps[from], &steps[to + 1])) {
            ++to;
        }
    }
    return to;
}

/* Functions can hardly be moved */
static int st_gen_is_dull(const st_step_t *step)
{
    return st_step_is_command(step) && (step->type != ST_STEP_START) &&
           (step->type != ST_STEP_WAIT);
}

static void st_gen_move(st_prog_t *prog, st_sim_t *sim, uint64_t *random,
                        st_gen_counts_t *counts)
{
    st_prog_rank_t *part = &prog->ranks[st_gen_below(random, prog->num_ranks)];
    st_sim_result_t result;
    unsigned from, to;

    if (part->num_steps < 2) {
        return;
    }
    from = st_gen_below(random, part->num_steps);
    if (st_gen_is_dull(&part->steps[from])) {
        from = st_gen_below(random, part->num_steps);
    }
    to   = st_gen_move_to(part, random, from);
    if (to == from) {
        return;
    }
    st_gen_rotate(part, from, to);
    result             = st_sim_run(sim, prog);
    counts->moves     += (result == ST_SIM_LEGAL);
    counts->deadlocks += (result == ST_SIM_DEADLOCK);
    counts->misuses   += (result == ST_SIM_MISUSE);
    if (result != ST_SIM_LEGAL) {
        st_gen_rotate(part, to, from);
    }
}

/* Any send may be a ready one if it is on time */
static void st_gen_ready(st_prog_t *prog, st_sim_t *sim, uint64_t *random)
{
    int i;

    for (i = 0; i < prog->num_msgs; ++i) {
        prog->msgs[i].is_ready = st_sim_is_on_time(sim, i) &&
                                 !prog->msgs[i].is_once &&
                                 st_gen_chance(random, 85);
    }
}

static int st_gen_try(st_prog_t *prog, st_sim_t *sim, uint64_t *random,
                      const st_gen_options_t *options, st_gen_counts_t *counts)
{
    st_gen_plan_t plan = {0};
    unsigned i;

    ++counts->drawn;
    st_gen_plan(prog, random, options, &plan);
    st_gen_steps(prog, random, &plan);
    if (st_sim_run(sim, prog) != ST_SIM_LEGAL) {
        return 0;
    }
    for (i = 0; i < options->moves; ++i) {
        st_gen_move(prog, sim, random, counts);
    }
    (void)st_sim_run(sim, prog);
    st_gen_ready(prog, sim, random);
    return st_sim_run(sim, prog) == ST_SIM_LEGAL;
}

void st_gen_program(st_prog_t *prog, st_sim_t *sim, uint64_t seed,
                    const st_gen_options_t *options, st_gen_counts_t *counts)
{
    uint64_t random = st_bytes_mix(seed, 1);

    do {
        memset(prog, 0, sizeof(*prog));
        prog->seed = seed;
    } while (!st_gen_try(prog, sim, &random, options, counts));
}
