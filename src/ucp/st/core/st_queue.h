/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_queue.h - communication commands in the order of one stream.
 */
#ifndef UCP_ST_QUEUE_H_
#define UCP_ST_QUEUE_H_

#include <ucp_st.h>

#include "core/st_callback.h"
#include "core/st_component.h"

#include <ucs_gstream_pair.h>

#include <ucs/datastruct/list.h>

struct ucp_st_op;

/** Ways of one-sided operations: the lanes, and each NIC of lane trig behind
 *  the first one. */
#define UCP_ST_QUEUE_MAX_WAYS (UCP_ST_LANE_LAST + 3)

/** Words of a queue that its stream stores to, waits for or looks at. */
typedef enum {
    UCP_ST_QUEUE_WORD_PASSED,   /**< Submissions that have run; the stream
                                     stores */
    UCP_ST_QUEUE_WORD_CALLBACK, /**< See st_callback.h; the stream stores */
    UCP_ST_QUEUE_WORD_BATCH,    /**< Of messages that are used once */
    UCP_ST_QUEUE_WORD_REQS,     /**< Of waits for some of them */
    UCP_ST_QUEUE_WORD_FAILED,   /**< 1: it is in error; kernels look at it */
    UCP_ST_QUEUE_WORD_RMA,      /**< Of one-sided operations, and a way */
    UCP_ST_QUEUE_WORD_LAST = UCP_ST_QUEUE_WORD_RMA + UCP_ST_QUEUE_MAX_WAYS
} ucp_st_queue_word_t;

/** What a start changes in an operation, to undo it. */
typedef struct ucp_st_queue_saved {
    ucp_st_queue_h queue;
    uint64_t       last_seq;
    uint64_t       start_seq;
} ucp_st_queue_saved_t;

/**
 * Fields without a note are used by the thread that calls for this queue only.
 *
 * Every submission of commands ends with a store of its number, or of that of a
 * callback (st_callback.h). The stream's release store pairs with the acquire
 * load of ucp_st_queue_passed(), or of the thread which runs the callback.
 */
struct ucp_st_queue {
    ucs_list_link_t   list;   /* in the worker's queues; worker's lock */
    void              *priv[UCP_ST_PRIV_LAST]; /* read-only */
    ucp_st_worker_h   worker; /* read-only */
    ucs_gstream_h     stream; /* read-only */
    uint64_t          seq;    /* number of the last submission */
    size_t            num_cmds; /* of the last submission */
    uint8_t           is_cut; /* ... which is enqueued in part at most;
                                 nothing more is enqueued */
    uint8_t           is_lost;/* a device that is lost may store to `marks` */
    unsigned          asked;  /* times that the host has asked in vain */
    uint64_t          seen;   /* submissions that the host was told have run */
    volatile uint64_t *marks[UCP_ST_QUEUE_WORD_LAST]; /* its words; read-only */
    ucp_st_callbacks_t *callbacks; /* of a GPU's stream, or NULL; read-only */
    ucs_status_t      status; /* set once under the lock, read without it */
    uint8_t           is_stopped; /* it is in error, and starts of its
                                 operations have no effect any more; likewise */
    ucp_st_op_h       failed_op; /* first that failed, or else `failed_req`; */
    ucp_st_req_h      failed_req;/* set before `status` */
    const ucs_gstream_helper_t *helper; /* what the stream does while it waits;
                                 or NULL; read-only, a lane's init() sets it */
    ucs_gstream_cmd_t *cmds;  /* scratch for a submission, allocated with */
    ucs_gstream_word_t *words;/* what its waits wait for, */
    void              **items;/* lists for ucp_st_queue_add_callback(), */
    ucp_st_queue_saved_t *saved; /* and what its starts have changed */
    size_t            max_cmds;/* that there is room for; as many of the others
                                 */
    size_t            num_words; /* in use */
    size_t            num_items;
    /* Counts, by ucp_st_queue_count() */
    uint64_t          started[UCP_ST_LANE_LAST]; /* by lane */
    uint64_t          waited[UCP_ST_LANE_LAST];
    uint64_t          start_cmds; /* of all starts */
    uint64_t          wait_words; /* of all waits */
    uint64_t          launches;   /* of all submissions */

    size_t            num_stores; /* of the submission that is being made:
                                     `start_cmds` or `wait_words` */
    struct ucp_st_exchange *exchange; /* whose operations may be in that one;
                                     else NULL */
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

/** Non-zero if the queue's stream is a GPU's, else it is a host stream. The
 *  former announces functions of lanes (st_callback.h), may be lost with its
 *  device, and must reach what it stores to. */
static inline int ucp_st_queue_is_gpu(const struct ucp_st_queue *queue)
{
    return queue->callbacks != NULL;
}

/** Submissions that have run, with their callbacks. What the stream did in them
 *  is visible. */
static inline uint64_t ucp_st_queue_passed(ucp_st_queue_h queue)
{
    uint64_t passed = __atomic_load_n(queue->marks[UCP_ST_QUEUE_WORD_PASSED],
                                      __ATOMIC_ACQUIRE);
    uint64_t called, first;

    if (!ucp_st_queue_is_gpu(queue)) {
        return passed;
    }
    called = __atomic_load_n(&queue->callbacks->passed, __ATOMIC_ACQUIRE);
    passed = (passed < called) ? called : passed;
    /* Behind the word: callbacks of submissions that the caller knows of are
     * there */
    first = __atomic_load_n(&queue->callbacks->first_seq, __ATOMIC_ACQUIRE);
    return (passed < first) ? passed : (first - 1);
}

/** Why the queue is in error; UCS_OK if it is not. */
static inline ucs_status_t ucp_st_queue_status(ucp_st_queue_h queue)
{
    return __atomic_load_n(&queue->status, __ATOMIC_ACQUIRE);
}

/** Non-zero if the queue is in error, and its stream may pass what it waits
 *  for: no start behind that has an effect. */
static inline int ucp_st_queue_is_stopped(ucp_st_queue_h queue)
{
    return __atomic_load_n(&queue->is_stopped, __ATOMIC_ACQUIRE);
}

/** Put a queue in error because of an operation; if that is NULL, because of
 *  `failed_req` or something else. Operations whose starts its stream has not
 *  run yet fail, too. The lock is held. */
void ucp_st_queue_fail(ucp_st_queue_h queue, ucp_st_op_h op,
                       ucs_status_t status);

/** The queue's stream has failed: log that, with `how`, and put the queue in
 *  error. No lock is held. */
void ucp_st_queue_fail_stream(ucp_st_queue_h queue, const char *how);

/** The host has asked in vain whether what is to run on the queue's stream has:
 *  now and then ask whether the stream has failed. No lock is held. */
void ucp_st_queue_ask(ucp_st_queue_h queue);

/** Whether an operation may be started on a queue: by the stream, or by
 *  whatever it may be. Logs why not. The lock is held. */
ucs_status_t ucp_st_queue_check_start(ucp_st_queue_h queue,
                                      const struct ucp_st_op *op);
ucs_status_t ucp_st_queue_check_use(ucp_st_queue_h queue,
                                    const struct ucp_st_op *op);

/** Whether an operation may be waited for on a queue. Logs why not. Needs no
 *  lock. */
ucs_status_t ucp_st_queue_check_wait(ucp_st_queue_h queue,
                                     const struct ucp_st_op *op);

/** Add what the queue has counted. The lock is held. */
void ucp_st_queue_add_counts(ucp_st_queue_h queue, ucp_st_stats_t *stats);

/** Begin a submission: UCS_OK if the handle is one, the queue is not in error,
 *  and there is room in `cmds` for so many commands and what
 *  ucp_st_queue_enqueue() adds, and for as many items. */
ucs_status_t ucp_st_queue_prepare(ucp_st_queue_h queue, size_t num_cmds);

/**
 * Write to `cmd`, which is in `cmds`, a command that has a function of a lane
 * called: by a host stream, or soon after a GPU's stream comes to the command
 * (st_callback.h). If `size` is not 0 `arg` is so many bytes, which are copied
 * when the submission is enqueued at the latest. How many commands were
 * written: 1, or 0 if the one before serves this function, too.
 */
size_t ucp_st_queue_add_func(ucp_st_queue_h queue, ucs_gstream_func_t func,
                             void *arg, size_t size, ucs_gstream_cmd_t *cmd);

/**
 * Write to `cmd`, which is in `cmds`, a command that has the stream call `func`
 * with a list of `count` items, which NULL ends; or, if the command before does
 * that, add the items to its list. How many commands were written: 1 or 0. Each
 * list takes the room of its items and its end.
 */
size_t ucp_st_queue_add_launch(ucp_st_queue_h queue, ucs_gstream_func_t func,
                               void *const *items, size_t count,
                               ucs_gstream_cmd_t *cmd);

/** ucp_st_queue_add_launch() for a function of a lane, which the stream of a
 *  GPU announces as for ucp_st_queue_add_func(). */
size_t ucp_st_queue_add_callback(ucp_st_queue_h queue, ucs_gstream_func_t func,
                                 void *const *items, size_t count,
                                 ucs_gstream_cmd_t *cmd);

/** Write to `cmd` the start of a use of a pair of streams, or add it to the
 *  command before; as ucp_st_queue_add_launch(). Takes the room of
 *  UCP_ST_LANE_MAX_CMDS items at most. */
size_t ucp_st_queue_add_pair(ucp_st_queue_h queue,
                             const ucs_gstream_pair_t *pair,
                             ucs_gstream_cmd_t *cmd);

/** Write to `cmds` waits for the next words of `words`, so many; how many
 *  commands: at most one a word. */
size_t ucp_st_queue_add_waits(ucp_st_queue_h queue, size_t count,
                              ucs_gstream_cmd_t *cmds);

/**
 * Make the commands in `cmds`, and the store of the submission's number behind
 * them, the next submission, which is `seq` now: its callbacks are open. The
 * caller counts what is in it. UCS_ERR_NO_MEMORY, and there is none, if a
 * callback could not be made.
 */
ucs_status_t ucp_st_queue_commit(ucp_st_queue_h queue, size_t num_cmds);

/**
 * Enqueue what ucp_st_queue_commit() made. No lock is held: where the stream
 * has no room its runtime makes the caller wait until the stream goes on, for
 * which other threads may need the lock.
 *
 * On error the submission is taken back and its number is free again, so that
 * the caller has to undo its counts; but if `is_cut` is set then, a part may be
 * in the stream. The queue is in error in that case, and all counts as
 * enqueued: the stream, which takes nothing more, runs that part.
 */
ucs_status_t ucp_st_queue_submit(ucp_st_queue_h queue);

/** ucp_st_queue_commit() and _submit(), for a caller that has nothing to count
 *  in between, and holds no lock. */
ucs_status_t ucp_st_queue_enqueue(ucp_st_queue_h queue, size_t num_cmds);

/** Say why a start or a wait is refused, at the level that the user chose. */
#define ucp_st_refuse(_queue, ...) \
    ucs_log((_queue)->worker->refuse_level, __VA_ARGS__)

/** After ucp_st_queue_submit() or _enqueue(): the stream has the submission, or
 *  a part of it. */
static inline int ucp_st_queue_is_submitted(ucp_st_queue_h queue,
                                         ucs_status_t status)
{
    return (status == UCS_OK) || queue->is_cut;
}

#endif
