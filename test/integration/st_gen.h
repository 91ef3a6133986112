/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_gen.h - makes random legal programs.
 *
 * A program is drawn as one order of all that happens anywhere, in which every
 * wait comes when its use is over; each host gets its part of it. So it is
 * legal, and every legal program has such an order and may be drawn. Then steps
 * are moved towards a deadlock, waits forward and starts back, as long as the
 * simulator finds the program legal. At last, sends whose receives are started
 * on time in every order may become ready sends.
 */
#ifndef ST_GEN_H_
#define ST_GEN_H_

#include "st_sim.h"


/** What programs are like. Part of what makes a program, like its seed. */
typedef struct st_gen_options {
    int      ranks;    /**< 0: 2 to 6 */
    unsigned max_size; /**< Of a message, in bytes */
    unsigned max_uses; /**< Of a message; at most ST_PROG_MAX_USES */
    unsigned moves;    /**< Steps that are moved */
    int      no_late;  /**< All is matched before the first step */
    unsigned once;     /**< Of 100 messages, so many are of FIFOs */
} st_gen_options_t;

#define ST_GEN_DEFAULTS { .max_size = 100 << 10, .max_uses = 12, .moves = 80 }


/** How programs came about; sums. */
typedef struct st_gen_counts {
    uint64_t drawn;     /**< Programs; more than came of it if some had no room
                             for all their steps */
    uint64_t moves;     /**< Steps that were moved */
    uint64_t deadlocks; /**< Moves that the simulator has refused */
    uint64_t misuses;   /**< The same, for the misuse in them */
} st_gen_counts_t;


/** Make the program of a seed. */
void st_gen_program(st_prog_t *prog, st_sim_t *sim, uint64_t seed,
                    const st_gen_options_t *options, st_gen_counts_t *counts);

/** What is decided before the steps are drawn. */
typedef struct st_gen_plan {
    int     is_ahead; /**< Hosts do not wait, and messages are used often */
    uint8_t token[ST_PROG_MAX_MSGS]; /**< Not 0: 1 more than the message that
                                          asks for this one. It goes the other
                                          way, once the receive was started. */
} st_gen_plan_t;

/** Of st_gen_plan.c: draw ranks, queues, messages and the order of matching. */
void st_gen_plan(st_prog_t *prog, uint64_t *random,
                 const st_gen_options_t *options, st_gen_plan_t *plan);

/** Of st_gen_draw.c: draw the steps. */
void st_gen_steps(st_prog_t *prog, uint64_t *random, const st_gen_plan_t *plan);

/** A number from 0 to `limit` - 1. */
unsigned st_gen_below(uint64_t *random, unsigned limit);

/** Non-zero in so many of 100 cases. */
int st_gen_chance(uint64_t *random, unsigned percent);

#endif
