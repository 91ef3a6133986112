/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_sched.h - which stream of a group a thread runs next.
 *
 * States of a stream that has no thread of its own (a task):
 *
 *              submit                 take
 *    +------+ --------> +-------+ ------------> +---------+
 *    | IDLE |           | READY |               | RUNNING |
 *    +------+           +-------+ <------------ +---------+
 *       ^                   ^      put: over       |    |
 *       |                   | word reached         |    | put: waits
 *       |                   +--------- +---------+ |    |
 *       |                              | WAITING | <----+
 *       |                              +---------+ |
 *       +------------------------------------------+
 *                          put: idle
 *
 * A thread polls, runs a task, or is asleep. Threads that poll look at the
 * words of all waiting tasks, and so does each that is about to take a task.
 *
 * Threads that poll also call the helpers of waiting tasks, one each time. The
 * last thread that ceases to poll tells all helpers so (UCS_GSTREAM_HELP_PARK):
 * threads cannot sleep until one of so many is notified. A helper runs
 * without the lock; its task is out of the lists of helpers meanwhile, and its
 * wait is not ended by another thread.
 */
#ifndef GSTREAM_SCHED_H_
#define GSTREAM_SCHED_H_

#include "gstream_ring.h"
#include "gstream_sleep.h"

#include <ucs/datastruct/list.h>

#include <pthread.h>

/* Range of priorities; the lower number is more urgent. */
#define GSTREAM_PRIORITY_LEAST    3
#define GSTREAM_PRIORITY_GREATEST (-4)
#define GSTREAM_PRIORITIES        (GSTREAM_PRIORITY_LEAST - \
                                   GSTREAM_PRIORITY_GREATEST + 1)


/** Where a task is. */
typedef enum gstream_task_state {
    GSTREAM_TASK_IDLE,    /**< Nowhere, or submitted */
    GSTREAM_TASK_READY,   /**< In a list of ready tasks */
    GSTREAM_TASK_RUNNING, /**< With a thread */
    GSTREAM_TASK_WAITING  /**< In the list of waiting tasks */
} gstream_task_state_t;


/** How a task's turn on a thread ended. */
typedef enum gstream_turn {
    GSTREAM_TURN_IDLE,  /**< There are no commands left */
    GSTREAM_TURN_WAITS, /**< sleeper.address and value say for what */
    GSTREAM_TURN_OVER   /**< It was long enough */
} gstream_turn_t;


/** Tasks and the threads that run them. */
typedef struct gstream_sched gstream_sched_t;

/**
 * A stream, as its group sees it. sched, ring and level are constant; the rest
 * is protected by the lock, but for what has a remark. A thread that has the
 * task, and it alone, is the consumer of the ring; the lock hands the ring over
 * from thread to thread.
 */
typedef struct gstream_task {
    gstream_sched_t      *sched; /**< NULL: the stream has its own thread */
    gstream_ring_t       *ring;
    unsigned             level;  /**< 0 is the most urgent one */
    gstream_task_state_t state;
    ucs_list_link_t      list;
    int                  is_listed; /**< The sleeper is in the table */
    gstream_sleeper_t    sleeper;   /**< address is written by the thread that
                                         runs the task */
    uint64_t             value;     /**< Smallest one that ends the wait; as
                                         sleeper.address */
    unsigned             how;       /**< Or what it is compared as; the same */
    const ucs_gstream_helper_t *helper; /**< Of the wait, or NULL; as
                                         sleeper.address */
    ucs_list_link_t      help_list; /**< Of helpers, unless is_called */
    int                  is_called; /**< A thread calls the helper */
    struct gstream_task  *next;     /**< Of those submitted; written by the
                                         submitter, read by the thread that
                                         takes them out */

    /** 1 from when the task is submitted until it is idle; atomic. See
     *  gstream_sched_submit(). */
    _Atomic uint32_t     active;
} gstream_task_t;

struct gstream_sched {
    pthread_mutex_t           lock;

    /* Protected by lock */
    ucs_list_link_t           ready[GSTREAM_PRIORITIES];
    ucs_list_link_t           waiting;
    ucs_list_link_t           helped; /**< Waiting tasks with helpers */
    ucs_list_link_t           parked; /**< ... that know that nobody polls */
    unsigned                  num_tasks;
    unsigned                  num_unlisted; /**< Waiting tasks whose sleepers
                                                 are not in the table */
    int                       is_watched;   /**< One of those asleep looks at
                                                 the words from time to time */

    /* Written under the lock, read without */
    _Atomic unsigned          num_waiting;
    _Atomic unsigned          num_polling; /**< Threads */
    _Atomic unsigned          num_asleep;  /**< Threads */

    _Atomic int               is_stopped;
    _Atomic uint32_t          calls;     /**< What threads sleep on; counts
                                              their wake-ups */
    _Atomic(gstream_task_t *) submitted; /**< Stack; taken out all at once */
};


/** Make a scheduler without tasks for so many threads, which poll first. */
void gstream_sched_init(gstream_sched_t *sched, unsigned num_threads);


/** Release a scheduler that has no tasks and no threads. */
void gstream_sched_cleanup(gstream_sched_t *sched);


/** Have the threads end; 0, with no effect, if there are tasks. */
int gstream_sched_stop(gstream_sched_t *sched);


/** Add the task of a ring to the scheduler. priority is in the range. */
void gstream_sched_add(gstream_sched_t *sched, gstream_task_t *task,
                       gstream_ring_t *ring, int priority);


/** Remove a task whose ring is empty; the caller is none of its commands. On
 *  return no thread uses it. */
void gstream_sched_remove(gstream_task_t *task);


/** The task's ring has got commands; any thread. */
void gstream_sched_submit(gstream_task_t *task);


/** The task to run next. NULL if there is none, or if another thread looks for
 *  one right now. A thread of the group that polls. */
gstream_task_t *gstream_sched_take(gstream_sched_t *sched);


/** Give a task back after its turn; the thread polls again. */
void gstream_sched_put(gstream_task_t *task, gstream_turn_t turn);


/** Sleep until there may be something to run; if nobody else looks at the words
 *  of waiting tasks, for at most 'nsec'. Non-zero if the thread was called, or
 *  did not sleep. A thread of the group that polls. */
int gstream_sched_sleep(gstream_sched_t *sched, uint64_t nsec);

#endif
