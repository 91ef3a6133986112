/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_side.h - what a side of ucx_st_perftest works with: the connection,
 * a UCP worker, the st worker on it, streams and queues. Main thread only.
 */
#ifndef PERFTEST_SIDE_H_
#define PERFTEST_SIDE_H_

#include "perftest_die.h"
#include "perftest_oob.h"
#include "perftest_options.h"
#include "perftest_test.h"
#include "perftest_watch.h"

#include <ucp_st.h>

#include <semaphore.h>

/* A stream with its queue. */
typedef struct perftest_stream {
    ucs_gstream_h  stream;
    ucp_st_queue_h queue;
    sem_t          pace;  /* Posted by the stream, waited for by the host */
} perftest_stream_t;


struct perftest_side {
    const perftest_options_t *options;
    int                      is_server;
    int                      is_broken;   /* Requests of UCP were left behind */
    perftest_die_t           die;
    perftest_oob_t           oob;
    perftest_watch_t         watch;
    ucp_context_h            context;
    ucp_worker_h             worker;
    ucp_ep_h                 ep;          /* Of the tag tests; may be NULL */
    ucp_st_worker_h          st;          /* NULL if no test uses it, and so on:
                                             peer and streams */
    ucp_st_peer_h            peer;
    perftest_stream_t        *streams;
    unsigned                 num_streams;
};


/* Opens UCP, ucp_st and streams, as far as the tests need them, and connects
 * them to the other side; side->options and the connection are there. */
perftest_ret_t perftest_side_create(perftest_side_t *side);

/* Closes what perftest_side_create() opened; says what cannot be closed. */
perftest_ret_t perftest_side_destroy(perftest_side_t *side);

/* Progress of UCP and ucp_st, as perftest_oob_progress_t. */
void perftest_side_progress(void *side);

/* Says which operation failed. Returns PERFTEST_PEER if that is because the
 * other side is gone, else 'otherwise'. */
perftest_ret_t perftest_side_fail(const perftest_side_t *side,
                                  ucs_status_t status, perftest_ret_t otherwise,
                                  const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* What a host does that has found nothing to do for 'idle' rounds: it spins for
 * a short time, then others get the processor, then it sleeps. */
void perftest_idle(unsigned idle);

#endif
