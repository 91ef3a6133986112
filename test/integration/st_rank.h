/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rank.h - one rank of a group (st_world.h): its worker, its streams, and
 * what it does together with the others.
 *
 * A check that fails does not return: it tells the reason with the rank and
 * what it was at, and ends the group. Checks may be made by stream functions.
 */
#ifndef ST_RANK_H_
#define ST_RANK_H_

#include "st_world.h"

#include <ucp_st.h>

#define ST_RANK_MAX_STREAMS 16

#define ST_RANK_STR_(_x) #_x
#define ST_RANK_STR(_x)  ST_RANK_STR_(_x)
#define ST_RANK_HERE     __FILE__ ":" ST_RANK_STR(__LINE__)

/* A condition that must hold */
#define ST_CHECK(_me, _cond) \
    ((_cond) ? (void)0 : \
               st_rank_fail(_me, ST_RANK_HERE ": not true: %s", #_cond))

/* A call that must succeed, and one that must return a status */
#define ST_OK(_me, _call)          ST_IS(_me, UCS_OK, _call)
#define ST_IS(_me, _status, _call) \
    st_rank_status(_me, _call, _status, ST_RANK_HERE ": " #_call)


/** A worker and its peers, one for each rank. */
typedef struct st_node {
    ucp_st_worker_h worker;
    ucp_st_peer_h   peers[ST_WORLD_MAX_RANKS];
    ucp_st_stats_t  base; /**< Before any operation was made */
    int            has_fifos; /* Whose counters the worker keeps */
} st_node_t;


/** A rank. Used by the rank's own thread, but where a function says more. */
typedef struct st_rank {
    int                     index;
    int                     count;
    const st_world_params_t *params;
    st_world_t              *world;
    void                    *shared;  /**< Of all ranks */
    const void              *arg;     /**< Of the parameters */
    void                    *program; /**< Whatever runs; for the report */
    st_node_t               node;
    ucs_gstream_h           streams[ST_RANK_MAX_STREAMS];
} st_rank_t;


/** Open a node with the lanes in UCX_ST_LANES (NULL: as it is set) and connect
 *  it to those of the other ranks, which do the same at the same time. An
 *  error is returned if no rank could open it. */
ucs_status_t st_rank_open(st_rank_t *me, st_node_t *node, const char *lanes);

/** Close a node, together with the other ranks. */
void st_rank_close(st_rank_t *me, st_node_t *node);

/** The rank's stream of this number; made when it is first asked for, and
 *  destroyed at the rank's end. */
ucs_gstream_h st_rank_stream(st_rank_t *me, int number);

/** Make a queue on it. */
ucp_st_queue_h st_rank_queue(st_rank_t *me, st_node_t *node, int number);

/** Wait for all ranks, and progress the worker meanwhile. */
void st_rank_barrier(st_rank_t *me);

/** Wait for all ranks without a call of any library. */
void st_rank_barrier_idle(st_rank_t *me);

/** Progress the worker, then sleep for at most a millisecond. */
void st_rank_pause(st_rank_t *me);

/** Progress until the node holds what it held before any operation was made,
 *  then meet the other ranks. */
void st_rank_settle(st_rank_t *me, st_node_t *node);

/** Tell what the rank is at. */
void st_rank_at(st_rank_t *me, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/** Tell that the group gets on. Any thread. */
void st_rank_alive(st_rank_t *me);

/** End the group: with a reason, or as not to be tested. Any thread. */
void st_rank_fail(st_rank_t *me, const char *format, ...)
        __attribute__((noreturn, format(printf, 2, 3)));
void st_rank_skip(st_rank_t *me, const char *format, ...)
        __attribute__((noreturn, format(printf, 2, 3)));

/** Fail unless a call has returned what it should. Any thread. */
void st_rank_status(st_rank_t *me, ucs_status_t status, ucs_status_t expected,
                    const char *what);

/** Run the program of the parameters as this rank; for st_world.c. */
void st_rank_run(st_rank_t *me);

#endif
