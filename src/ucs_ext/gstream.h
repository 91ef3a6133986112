/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream.h - what a back end of ucs_gstream.h must give.
 *
 * A back end (host, HIP, CUDA) is one const ops table. Arguments have been
 * checked by the front (gstream.c) before a slot is called.
 */
#ifndef GSTREAM_H_
#define GSTREAM_H_

#include "api/ucs_gstream.h"

#include <ucs/datastruct/list.h>


/** Operations of a back end; every slot is filled. */
typedef struct gstream_ops {
    /** For logs. */
    const char *name;

    /** Mask of ucs_gstream_cap. */
    unsigned caps;

    /** Makes a stream with ops and type set; the front registers it. */
    ucs_status_t (*create)(const ucs_gstream_params_t *params,
                           ucs_gstream_h *stream_p);

    /** Releases an idle stream, after gstream_ask_wait(). UCS_ERR_BUSY, with no
     *  effect, if it has commands pending or the caller is one of them. */
    ucs_status_t (*destroy)(ucs_gstream_h stream);

    /** Enqueues 1 or more valid commands, or none of them on error.
     *  UCS_ERR_UNSUPPORTED while the stream is being captured into a graph,
     *  where a back end's streams can be. */
    ucs_status_t (*enqueue)(ucs_gstream_h stream, const ucs_gstream_cmd_t *cmds,
                            size_t count);

    /** Waits for what was enqueued before the call for at most timeout
     *  seconds: 0 only tests, INFINITY is for ever, never negative or NaN. */
    ucs_status_t (*synchronize)(ucs_gstream_h stream, double timeout);

    /** UCS_OK if idle, UCS_INPROGRESS if not. */
    ucs_status_t (*query)(ucs_gstream_h stream);

    /** Non-zero if the stream reaches a word, which is not NULL. */
    int (*reaches)(ucs_gstream_h stream, const volatile uint64_t *word);

    /** The runtime's stream; NULL for a host stream. */
    void *(*native)(ucs_gstream_h stream);
} gstream_ops_t;


/**
 * Head of every back end's stream. ops and type are constant, but for ops in a
 * child that was forked; list is protected by the lock of the front's registry,
 * which sets id.
 */
struct ucs_gstream {
    const gstream_ops_t *ops;
    ucs_gstream_type_t  type;
    ucs_list_link_t     list;
    uint64_t            id;   /* of no other stream ever */
    unsigned            asks; /* Threads that ask it; atomic */
    unsigned            users; /* What ucs_gstream_get() counts; atomic */
};


/** Whether a stream, which may be gone, is the live one with this number. If
 *  so it is not released until gstream_ask_end(), before which the caller calls
 *  its back end once and waits for nothing. */
int gstream_ask_begin(ucs_gstream_h stream, uint64_t id);

void gstream_ask_end(ucs_gstream_h stream);

/** For a back end that is about to release a stream: waits until those threads
 *  have ended. No other one begins, as the front's lock is held. UCS_ERR_BUSY
 *  if one has not been answered for a second. */
ucs_status_t gstream_ask_wait(ucs_gstream_h stream);


/** What is wrong with a copy of rows; NULL if nothing. */
const char *gstream_check_rect(const void *dst, const void *src,
                               const ucs_gstream_rect_t *rect);

/** Copy rows by the host. */
void gstream_copy_rows(void *dst, const void *src,
                       const ucs_gstream_rect_t *rect);

#endif
