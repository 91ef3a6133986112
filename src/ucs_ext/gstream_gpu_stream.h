/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_gpu_stream.h - a stream of a GPU inside: what gstream_gpu.c and
 * gstream_gpu_enqueue.c share.
 */
#ifndef UCS_GSTREAM_GPU_STREAM_H_
#define UCS_GSTREAM_GPU_STREAM_H_

#include "gstream_module.h"

#include <ucs/sys/compiler_def.h>

#include <pthread.h>


typedef struct gstream_gpu_func gstream_gpu_func_t;

/** One thing to enqueue: stores and waits in a row, or a host function, or a
 * copy by the device. */
typedef struct gstream_gpu_step {
    size_t                  num_ops; /* in the stream's scratch memory */
    gstream_gpu_func_t      *func;
    const ucs_gstream_cmd_t *copy; /* or starts of pairs, or a move */
} gstream_gpu_step_t;


/** A stream. Fields without a remark are constant. */
typedef struct gstream_gpu_stream {
    struct ucs_gstream  super;
    const gstream_gpu_t *gpu;
    void                *native;
    int                 is_own;   /* made here */
    gstream_gpu_place_t place;
    unsigned            wait_flags;
    const gstream_kernels_t *kernels; /* or NULL */
    uint64_t            launches; /* of them; atomic */
    gstream_share_t     share;
    uint64_t            mark;     /* The last one that it was given; the lock */
    pthread_mutex_t     lock;
    gstream_gpu_op_t    *ops;     /* scratch for a call, */
    size_t              max_ops;  /* that there is room for, */
    gstream_gpu_step_t  *steps;   /* and what is to be done with them; */
    size_t              max_steps;/* all under the lock */
    int                 failed;   /* a call failed in the midst; the lock */
    int                 has_waits;/* the call that is made has, and its mark, */
    uint64_t            marking;  /* or 0, */
    const gstream_gpu_op_t *mark_op; /* and what stores it; the same */
} gstream_gpu_stream_t;


/** The stream whose function the calling thread runs. */
extern __thread gstream_gpu_stream_t *gstream_gpu_current;

static inline gstream_gpu_stream_t *gstream_gpu_derived(ucs_gstream_h stream)
{
    return ucs_derived_of(stream, gstream_gpu_stream_t);
}

/** Make the stream's place the caller's, until `ops->leave()`. */
ucs_status_t gstream_gpu_enter(gstream_gpu_stream_t *stream,
                               gstream_gpu_place_t *last);

/** The same for a call that a capture forbids, or that it would record. */
ucs_status_t gstream_gpu_enter_checked(gstream_gpu_stream_t *stream,
                                       const char *call,
                                       gstream_gpu_place_t *last);

/** Operations of the streams' table. */
int gstream_gpu_reaches(ucs_gstream_h super, const volatile uint64_t *word);
ucs_status_t gstream_gpu_enqueue(ucs_gstream_h super,
                                 const ucs_gstream_cmd_t *cmds, size_t count);

#endif
