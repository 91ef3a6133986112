/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_oob.h - the TCP connection of client and server: it carries
 * addresses and keeps both in step, and its end tells that the other is gone.
 *
 * Main thread only. What fails is printed, with what was waited for.
 */
#ifndef PERFTEST_OOB_H_
#define PERFTEST_OOB_H_

#include "perftest_log.h"
#include "perftest_options.h"
#include "perftest_proto.h"

#include <stddef.h>
#include <stdint.h>

/* Makes progress while the connection is waited for. */
typedef void (*perftest_oob_progress_t)(void *arg);


typedef struct perftest_oob {
    int                     fd;        /* -1: not connected */
    const char              *peer;     /* "client" or "server" */
    perftest_oob_progress_t progress;  /* NULL: none */
    void                    *arg;
    uint64_t                deadline;  /* Nanoseconds, while both have not
                                          agreed yet; then 0: none */
    uint32_t                steps;
    int                     refused;   /* Either side has said why it ends */
} perftest_oob_t;


/* Connects as the options say; the server waits for a client without a limit.
 * Then both agree on versions and options, within a limit. */
perftest_ret_t perftest_oob_create(perftest_oob_t *oob,
                                   perftest_options_t *options);

/* Closes the connection. */
void perftest_oob_destroy(perftest_oob_t *oob);

/* Sends a message. */
perftest_ret_t perftest_oob_send(perftest_oob_t *oob, perftest_msg_type_t type,
                                 const void *data, size_t length);

/* Receives a message of a type, with a zero byte behind it; free() it. */
perftest_ret_t perftest_oob_recv(perftest_oob_t *oob, perftest_msg_type_t type,
                                 void **data_p, size_t *length_p);

/* Waits until both are here; numbers of this side are replaced: the larger of
 * the elapsed times, and the sum of the errors. */
perftest_ret_t perftest_oob_step(perftest_oob_t *oob, uint64_t *elapsed_ns,
                                 uint64_t *errors);

/* Tells the other side, as far as one can, why this one ends; no effect if one
 * of the sides has told. */
void perftest_oob_refuse(perftest_oob_t *oob, const char *text);

#endif
