/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_gstream_copy.h
 * Copies by a device's stream that nobody waits for. Not installed.
 *
 * A stream of this library makes them, in which no wait ever is. Yet a copy may
 * take as long as a stream of the application waits for a word: a device has
 * few hardware queues, and streams that share one run behind each other. So
 * these calls return at once, and the caller looks again later.
 */
#ifndef UCS_GSTREAM_COPY_H_
#define UCS_GSTREAM_COPY_H_

#include <ucs_gstream_memory.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

/** What is to be copied. */
typedef struct ucs_gstream_copy_params {
    ucs_gstream_type_t type;    /**< The runtime whose stream copies; not the
                                     host */
    int                device;  /**< The number of its device */
    int                is_pageable; /**< The runtime does not know the memory of
                                     one side, so that its call waits for the
                                     copy: a thread of its own makes it */
    void               *dst;    /**< Where to */
    const void         *src;    /**< Where from; apart from @a dst */
    size_t             length;  /**< In bytes, not 0 */
} ucs_gstream_copy_params_t;

/** A copy. The caller's memory; what is there is this library's. */
typedef struct ucs_gstream_copy {
    ucs_gstream_copy_params_t params; /**< As they were given */
    unsigned                  number; /**< Of its event, from 1; 0: it is not
                                           enqueued */
    ucs_status_t              status; /**< With a thread; atomic */
} ucs_gstream_copy_t;


/**
 * Tell whether a runtime's copies from or to memory wait, as it does not know
 * it. That another runtime does changes nothing.
 *
 * @param [in] type    The runtime, not the host.
 * @param [in] address An address there.
 *
 * @return Non-zero if they wait.
 *
 * Threads: any, but not a host function of a device's stream.
 */
int ucs_gstream_copy_is_pageable(ucs_gstream_type_t type, const void *address);


/**
 * Begin a copy. Where too many are under way it begins when the caller looks
 * later.
 *
 * @param [in]  params What to copy.
 * @param [out] copy   The copy; always set.
 *
 * @return UCS_INPROGRESS; what @ref ucs_gstream_memory_copy_by returns if it
 *         cannot begin.
 *
 * Ownership: while it is in progress the memory of both sides stays, and that
 *            of @a copy. It cannot be cancelled.
 * Threads: any, but not a host function of a device's stream.
 */
ucs_status_t ucs_gstream_copy_begin(const ucs_gstream_copy_params_t *params,
                                    ucs_gstream_copy_t *copy);


/**
 * Look whether a copy is over, which is not looked at again then.
 *
 * @param [in,out] copy In progress.
 *
 * @return UCS_OK once its stores are done, before what the caller stores next;
 *         UCS_INPROGRESS; what @ref ucs_gstream_memory_copy_by returns if it
 *         has failed: it is over, too.
 *
 * Threads: as @ref ucs_gstream_copy_begin; one at a time for a copy.
 */
ucs_status_t ucs_gstream_copy_look(ucs_gstream_copy_t *copy);

#endif
