/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucs_gstream_group.h - threads that run host streams.
 *
 * A host stream has a thread of its own, or shares the threads of a group with
 * other streams. One stream is run by one thread at a time. A stream that waits
 * for a word takes no thread: it is put aside, the threads that have nothing to
 * run look at its word, and so does each one before it turns to another stream.
 * So any number of streams may wait for each other on one thread.
 *
 * Among the streams that could run, the most urgent one goes first; of equal
 * ones the one that could for the longest time. Commands are not interrupted:
 * a stream keeps its thread until it has nothing to run, waits, or the command
 * ends during which its turn gets as long as UCX_GSTREAM_TURN_TIME says (20 us
 * by default). Then the next one is chosen. A stream that is less urgent does
 * not run while more urgent ones take all threads.
 *
 * A function that blocks holds a thread up that other streams of the group may
 * need; it must not wait for what a stream of its own group has to do.
 */
#ifndef UCS_GSTREAM_GROUP_H_
#define UCS_GSTREAM_GROUP_H_

#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Most threads of a group. */
#define UCS_GSTREAM_GROUP_MAX_THREADS 1024


/** Threads that streams share. Created by @ref ucs_gstream_group_create. */
typedef struct ucs_gstream_group *ucs_gstream_group_h;


/** Processors that threads are to run on. */
typedef struct ucs_gstream_cpus {
    const unsigned *list; /**< Numbers of processors, as the kernel counts */
    size_t         count; /**< Entries of @a list; at least 1 */
} ucs_gstream_cpus_t;


/** Fields of @ref ucs_gstream_group_params_t that are set. */
enum ucs_gstream_group_params_field {
    UCS_GSTREAM_GROUP_PARAM_FIELD_NUM_THREADS = 1u << 0,
    UCS_GSTREAM_GROUP_PARAM_FIELD_CPUS        = 1u << 1,
    UCS_GSTREAM_GROUP_PARAM_FIELD_NAME        = 1u << 2
};


/** Parameters of @ref ucs_gstream_group_create. */
typedef struct ucs_gstream_group_params {
    /** Mask of @ref ucs_gstream_group_params_field; other fields are
     *  ignored. */
    uint64_t           field_mask;
    /** 1 to UCS_GSTREAM_GROUP_MAX_THREADS; if not set, what
     *  UCX_GSTREAM_GROUP_THREADS says (1 by default). */
    unsigned           num_threads;
    /** Thread i runs on the i-th of these alone; after the last, the first one
     *  comes again. If not set, threads run where the caller may. */
    ucs_gstream_cpus_t cpus;
    /** The threads are named after it, as far as 10 characters, and numbered;
     *  "st-exec" if not set. */
    const char         *name;
} ucs_gstream_group_params_t;


/**
 * Create a group: threads that run the streams which are created on it.
 *
 * @param [in]  params  What to create; copied.
 * @param [out] group_p Filled with the group on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM for a NULL argument, a number of
 *         threads that is out of range, a list of processors that is empty or
 *         has one that the process cannot use, or a setting that cannot be
 *         read;
 *         UCS_ERR_NO_MEMORY; UCS_ERR_NO_RESOURCE if a thread cannot be started.
 *
 * Ownership: the caller owns the group until @ref ucs_gstream_group_destroy.
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_group_create(const ucs_gstream_group_params_t *params,
                                      ucs_gstream_group_h *group_p);


/**
 * Destroy a group that has no streams, and end its threads.
 *
 * @param [in] group The group.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, while there are streams that
 *         were created on it; UCS_ERR_INVALID_PARAM if @a group is NULL.
 *
 * Ownership: on UCS_OK the handle is gone.
 * Threads: no stream may be created on this group, and this group not be
 *          destroyed, at the same time.
 */
ucs_status_t ucs_gstream_group_destroy(ucs_gstream_group_h group);


/**
 * Tell which priorities a stream can have. As in CUDA and HIP, the lower number
 * is the more urgent one; 0 is in the range, and is what streams have unless it
 * is set.
 *
 * @param [out] least_p    Filled with the number of the least urgent streams.
 * @param [out] greatest_p Filled with the number of the most urgent streams, at
 *                         most @a *least_p.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM for a NULL argument.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucs_gstream_priority_range(int *least_p, int *greatest_p);

#ifdef __cplusplus
}
#endif

#endif
