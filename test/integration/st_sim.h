/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_sim.h - decides whether a program is legal.
 *
 * The simulator runs hosts and streams as far as they get. A standard send
 * completes only once its receive has been started, so a program that ends here
 * ends with every correct implementation. It does not matter in which order the
 * hosts and streams take their turns: whatever one of them waits for stays true
 * once it is, so either every order ends, or none.
 *
 * Vector clocks (C. Fidge, "Timestamps in message-passing systems that preserve
 * the partial ordering", 1988) tell what runs before what in every order: a
 * ready send needs its receive's start before its own. The end of a send tells
 * nothing there, as an implementation may copy the data away before the receive
 * has been started.
 */
#ifndef ST_SIM_H_
#define ST_SIM_H_

#include "st_prog.h"


/** The verdict. */
typedef enum {
    ST_SIM_LEGAL,
    ST_SIM_DEADLOCK,
    ST_SIM_MISUSE   /**< A step that the library refuses, or an access to a
                         buffer that is not the program's to make */
} st_sim_result_t;


/** Scratch memory of a simulation, and what it has found out. */
typedef struct st_sim st_sim_t;

/** NULL if there is no memory. */
st_sim_t *st_sim_create(void);

void st_sim_destroy(st_sim_t *sim);

/** Run a program. */
st_sim_result_t st_sim_run(st_sim_t *sim, const st_prog_t *prog);

/** After a run: whether in every order each use's receive is started before the
 *  send is. */
int st_sim_is_on_time(const st_sim_t *sim, int msg);

/** After a run that did not end well: the step at which a rank's host stands,
 *  or the number of its steps if it is through. */
unsigned st_sim_host_step(const st_sim_t *sim, int rank);

/** The step whose command a stream stands at; -1 if it has run all. */
int st_sim_stream_step(const st_sim_t *sim, int rank, int stream);

#endif
