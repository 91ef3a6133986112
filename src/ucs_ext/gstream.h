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

    /** Releases an idle stream. UCS_ERR_BUSY, with no effect, if it has
     *  commands pending, the caller is one of its commands, or, which is looked
     *  at last, gstream_is_asked(). */
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
 * Head of every back end's stream. ops and type are constant; list is protected
 * by the lock of the front's registry.
 */
struct ucs_gstream {
    const gstream_ops_t *ops;
    ucs_gstream_type_t  type;
    ucs_list_link_t     list;
    unsigned            asks; /* Threads that ask it on account of a command;
                                 atomic */
};


/** A thread that knows that a command has not run is about to call the back end
 *  with its stream, which is not released meanwhile; and has done so. */
static inline void gstream_ask_begin(ucs_gstream_h stream)
{
    (void)__atomic_fetch_add(&stream->asks, 1, __ATOMIC_RELAXED);
}

static inline void gstream_ask_end(ucs_gstream_h stream)
{
    (void)__atomic_fetch_sub(&stream->asks, 1, __ATOMIC_RELEASE);
}

/** Whether there is such a thread. None comes once all commands have run. */
static inline int gstream_is_asked(ucs_gstream_h stream)
{
    return __atomic_load_n(&stream->asks, __ATOMIC_ACQUIRE) > 0;
}


/** What is wrong with a copy of rows; NULL if nothing. */
const char *gstream_check_rect(const void *dst, const void *src,
                               const ucs_gstream_rect_t *rect);

/** Copy rows by the host. */
void gstream_copy_rows(void *dst, const void *src,
                       const ucs_gstream_rect_t *rect);

#endif
