/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_queue.h - communication commands in the order of one stream.
 */
#ifndef UCP_ST_QUEUE_H_
#define UCP_ST_QUEUE_H_

#include <ucp_st.h>

#include "core/st_component.h"

#include <ucs/datastruct/list.h>

/**
 * Fields without a note are used by the thread that calls for this queue only.
 *
 * Every batch of commands ends with a store of its number to `passed`. The
 * stream's release store pairs with ucp_st_queue_passed()'s acquire load.
 */
struct ucp_st_queue {
    ucs_list_link_t   list;   /* in the worker's queues; worker's lock */
    void              *parts[UCP_ST_PART_LAST]; /* read-only */
    ucp_st_worker_h   worker; /* read-only */
    ucs_gstream_h     stream; /* read-only */
    uint64_t          seq;    /* number of the last batch */
    uint64_t          seen;   /* batches that the host was told have run */
    volatile uint64_t passed; /* batches that have run; written by the stream */
    ucs_status_t      status; /* set once under the lock, read without it */
    ucp_st_op_h       failed_op; /* first that failed, or else `failed_req`; */
    ucp_st_req_h      failed_req;/* set before `status` */
    const ucs_gstream_helper_t *helper; /* what the stream does while it waits;
                                 or NULL; read-only, a lane's init() sets it */
    ucs_gstream_cmd_t *cmds;  /* scratch for a batch, in one allocation with */
    ucs_gstream_word_t *words;/* what its waits wait for, */
    void              **items;/* and lists for ucp_st_queue_add_call() */
    size_t            max_cmds;/* that there is room for; as many of the others
                                 */
    size_t            num_words; /* in use */
    size_t            num_items;
    uint64_t          started[UCP_ST_LANE_LAST]; /* by lane; see */
    uint64_t          waited[UCP_ST_LANE_LAST];  /* ucp_st_queue_count() */
};

/** Add to one of the queue's counts and return it. Only the thread that calls
 *  for the queue does; others may read it by adding 0. */
static inline uint64_t ucp_st_queue_count(uint64_t *count, uint64_t value)
{
    uint64_t result = __atomic_load_n(count, __ATOMIC_RELAXED) + value;

    if (value > 0) {
        __atomic_store_n(count, result, __ATOMIC_RELAXED);
    }
    return result;
}

/** Batches that have run. What the stream did in them is visible. */
static inline uint64_t ucp_st_queue_passed(ucp_st_queue_h queue)
{
    return __atomic_load_n(&queue->passed, __ATOMIC_ACQUIRE);
}

/** Why the queue is in error; UCS_OK if it is not. */
static inline ucs_status_t ucp_st_queue_status(ucp_st_queue_h queue)
{
    return __atomic_load_n(&queue->status, __ATOMIC_ACQUIRE);
}

/** Put a queue in error because of an operation; if that is NULL, because of
 *  `failed_req` or something else. Operations whose starts its stream has not
 *  run yet fail, too. The lock is held. */
void ucp_st_queue_fail(ucp_st_queue_h queue, ucp_st_op_h op,
                       ucs_status_t status);

/** Add what the queue has counted. The lock is held. */
void ucp_st_queue_add_counts(ucp_st_queue_h queue, ucp_st_stats_t *stats);

/** Begin a batch: UCS_OK if the handle is one, the queue is not in error, and
 *  there is room in `cmds` for so many commands and what
 *  ucp_st_queue_enqueue() adds, and for as many items. */
ucs_status_t ucp_st_queue_prepare(ucp_st_queue_h queue, size_t num_cmds);

/**
 * Write to `cmd`, which is in `cmds`, a command that calls `func` with a list
 * of `count` items, which NULL ends; or, if the command before does that, add
 * the items to its list. How many commands were written: 1 or 0. Each list
 * takes the room of its items and its end.
 */
size_t ucp_st_queue_add_call(ucp_st_queue_h queue, ucs_gstream_func_t func,
                             void *const *items, size_t count,
                             ucs_gstream_cmd_t *cmd);

/** Enqueue the commands in `cmds`, and the store of the batch's number behind
 *  them. */
ucs_status_t ucp_st_queue_enqueue(ucp_st_queue_h queue, size_t num_cmds);

#endif
