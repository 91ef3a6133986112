/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_sched.c - which stream of a group a thread runs next.
 *
 * No stream may be left waiting while threads sleep. A sleeping thread is woken
 *
 * - by a thread that submits a task, if no thread polls:
 *
 *     submitter                            thread
 *     push to submitted                    no longer poll (sleep, take a task)
 *     load num_polling, num_asleep         look at submitted
 *
 * - by a thread that stores to a word, if its waiting tasks are in the table of
 *   sleepers. They come there when a thread falls asleep (gstream_sleep.h);
 *
 * - by a thread that takes a task, if it leaves no thread that polls, and a
 *   sleeping one is needed: for ready tasks, for waiting ones that are not in
 *   the table, or to look from time to time for stores that come without a
 *   wake-up.
 *
 * Where no thread is asleep, each comes back here at the end of a turn. All
 * these loads and stores are seq-cst.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_sched.h"
#include "gstream_futex.h"
#include "api/ucs_backoff.h"

#include <limits.h>


void gstream_sched_init(gstream_sched_t *sched, unsigned num_threads)
{
    unsigned level;

    pthread_mutex_init(&sched->lock, NULL);
    for (level = 0; level < GSTREAM_PRIORITIES; ++level) {
        ucs_list_head_init(&sched->ready[level]);
    }
    ucs_list_head_init(&sched->waiting);
    ucs_list_head_init(&sched->helped);
    ucs_list_head_init(&sched->parked);
    sched->num_tasks    = 0;
    sched->num_unlisted = 0;
    sched->is_watched   = 0;
    atomic_init(&sched->num_waiting, 0);
    atomic_init(&sched->num_polling, num_threads);
    atomic_init(&sched->num_asleep, 0);
    atomic_init(&sched->is_stopped, 0);
    atomic_init(&sched->calls, 0);
    atomic_init(&sched->submitted, NULL);
}

void gstream_sched_cleanup(gstream_sched_t *sched)
{
    pthread_mutex_destroy(&sched->lock);
}

static void gstream_sched_call(gstream_sched_t *sched, int num_threads)
{
    atomic_fetch_add(&sched->calls, 1);
    gstream_futex_wake(&sched->calls, num_threads);
}

int gstream_sched_stop(gstream_sched_t *sched)
{
    int is_empty;

    pthread_mutex_lock(&sched->lock);
    is_empty = (sched->num_tasks == 0);
    pthread_mutex_unlock(&sched->lock);
    if (is_empty) {
        atomic_store(&sched->is_stopped, 1);
        gstream_sched_call(sched, INT_MAX);
    }
    return is_empty;
}

void gstream_sched_add(gstream_sched_t *sched, gstream_task_t *task,
                       gstream_ring_t *ring, int priority)
{
    task->sched         = sched;
    task->ring          = ring;
    task->level         = (unsigned)(priority - GSTREAM_PRIORITY_GREATEST);
    task->state         = GSTREAM_TASK_IDLE;
    task->is_listed     = 0;
    task->sleeper.calls = &sched->calls;
    task->sleeper.notify  = NULL;
    task->helper        = NULL;
    task->is_called     = 0;
    atomic_init(&task->active, 0);
    pthread_mutex_lock(&sched->lock);
    ++sched->num_tasks;
    pthread_mutex_unlock(&sched->lock);
}

/* The functions from here to gstream_sched_needs_call() are called with the
 * lock */

static void gstream_sched_make_ready(gstream_task_t *task)
{
    task->state = GSTREAM_TASK_READY;
    ucs_list_add_tail(&task->sched->ready[task->level], &task->list);
}

/* Takes out what was submitted; of one priority, in that order. */
static void gstream_sched_drain(gstream_sched_t *sched)
{
    gstream_task_t *first = NULL;
    gstream_task_t *task, *next;

    if (atomic_load(&sched->submitted) == NULL) {
        return;
    }

    for (task = atomic_exchange(&sched->submitted, NULL); task != NULL;
         task = next) {
        next       = task->next;
        task->next = first;
        first      = task;
    }
    for (task = first; task != NULL; task = next) {
        next = task->next;
        gstream_sched_make_ready(task);
    }
}

/* Calls a helper without the lock. The task is in no list that another thread
 * would find its helper in. */
static void gstream_sched_help(gstream_task_t *task, ucs_gstream_help_t when)
{
    gstream_sched_t *sched = task->sched;

    pthread_mutex_unlock(&sched->lock);
    (void)task->helper->func(task->helper->arg, when);
    pthread_mutex_lock(&sched->lock);
}

/* The same for a task that goes on waiting, which is in one of the lists of
 * helpers, and in the given one afterwards. */
static void gstream_sched_help_waiting(gstream_task_t *task,
                                       ucs_gstream_help_t when,
                                       ucs_list_link_t *list)
{
    ucs_list_del(&task->help_list);
    task->is_called = 1;
    gstream_sched_help(task, when);
    task->is_called = 0;
    ucs_list_add_tail(list, &task->help_list);
}

/* Helps one task, each in its turn; those that were parked come first. */
static void gstream_sched_help_next(gstream_sched_t *sched)
{
    ucs_list_link_t *list = ucs_list_is_empty(&sched->parked) ?
                                    &sched->helped :
                                    &sched->parked;

    if (!ucs_list_is_empty(list)) {
        gstream_sched_help_waiting(ucs_list_head(list, gstream_task_t,
                                                 help_list),
                                   UCS_GSTREAM_HELP_POLL, &sched->helped);
    }
}

/* Nobody polls, unless another thread has begun to meanwhile: that one will do
 * this. A task whose helper is called by another thread right now is either
 * being parked, or that thread polls. */
static void gstream_sched_park(gstream_sched_t *sched)
{
    while (!ucs_list_is_empty(&sched->helped) &&
           (atomic_load(&sched->num_polling) == 0)) {
        gstream_sched_help_waiting(ucs_list_head(&sched->helped, gstream_task_t,
                                                 help_list),
                                   UCS_GSTREAM_HELP_PARK, &sched->parked);
    }
}

/* A task's wait is over, but for its helper. */
static void gstream_sched_end_wait(gstream_task_t *task)
{
    gstream_sched_t *sched = task->sched;

    ucs_list_del(&task->list);
    atomic_fetch_sub(&sched->num_waiting, 1);
    if (task->is_listed) {
        gstream_sleeper_remove(&task->sleeper);
        task->is_listed = 0;
    } else {
        --sched->num_unlisted;
    }
    if (task->helper != NULL) {
        ucs_list_del(&task->help_list);
    }
}

/* Finds what has become ready. Tasks with helpers become so when these were
 * told; the caller alone has them until then. */
static void gstream_sched_look(gstream_sched_t *sched)
{
    UCS_LIST_HEAD(ended);
    gstream_task_t *task, *next;

    gstream_sched_drain(sched);
    ucs_list_for_each_safe(task, next, &sched->waiting, list) {
        if (task->is_called ||
            !gstream_sleep_is_met(task->sleeper.address, task->value,
                                  task->how)) {
            continue;
        }
        gstream_sched_end_wait(task);
        if (task->helper == NULL) {
            gstream_sched_make_ready(task);
        } else {
            ucs_list_add_tail(&ended, &task->list);
        }
    }
    while (!ucs_list_is_empty(&ended)) {
        task = ucs_list_extract_head(&ended, gstream_task_t, list);
        gstream_sched_help(task, UCS_GSTREAM_HELP_END);
        gstream_sched_make_ready(task);
    }
}

/* The ready task whose turn it is; NULL if there is none. */
static gstream_task_t *gstream_sched_first(gstream_sched_t *sched)
{
    unsigned level;

    for (level = 0; level < GSTREAM_PRIORITIES; ++level) {
        if (!ucs_list_is_empty(&sched->ready[level])) {
            return ucs_list_head(&sched->ready[level], gstream_task_t, list);
        }
    }
    return NULL;
}

/* Whether a thread that goes to run a task has to call another one. */
static int gstream_sched_needs_call(gstream_sched_t *sched)
{
    if ((atomic_load(&sched->num_polling) > 0) ||
        (atomic_load(&sched->num_asleep) == 0)) {
        return 0;
    }

    return (gstream_sched_first(sched) != NULL) ||
           (sched->num_unlisted > 0) ||
           (!ucs_list_is_empty(&sched->waiting) && !sched->is_watched);
}

gstream_task_t *gstream_sched_take(gstream_sched_t *sched)
{
    int needs_call = 0;
    gstream_task_t *task;

    if (pthread_mutex_trylock(&sched->lock) != 0) {
        return NULL;
    }

    gstream_sched_look(sched);
    task = gstream_sched_first(sched);
    if (task == NULL) {
        gstream_sched_help_next(sched);
    } else {
        ucs_list_del(&task->list);
        task->state = GSTREAM_TASK_RUNNING;
        atomic_fetch_sub(&sched->num_polling, 1);
        gstream_sched_park(sched);
        /* Those that helpers let pass, and those that were submitted while this
         * thread polled */
        gstream_sched_look(sched);
        needs_call = gstream_sched_needs_call(sched);
    }
    pthread_mutex_unlock(&sched->lock);

    if (needs_call) {
        gstream_sched_call(sched, 1);
    }
    return task;
}

/*
 * Lets a task go unless it has got commands meanwhile. The caller holds the
 * lock, and is the ring's consumer as long as it does.
 *
 *     gstream_sched_submit()               here
 *     store the ring's tail                store active = 0
 *     load active                          load the ring's tail
 *
 * All four are seq-cst, so that one of the two sees the other's store; the
 * exchange decides where both do.
 */
static void gstream_sched_let_go(gstream_task_t *task)
{
    task->state = GSTREAM_TASK_IDLE;
    atomic_store(&task->active, 0);
    if (!gstream_ring_is_empty(task->ring) &&
        (atomic_exchange(&task->active, 1) == 0)) {
        gstream_sched_make_ready(task);
    }
}

void gstream_sched_put(gstream_task_t *task, gstream_turn_t turn)
{
    gstream_sched_t *sched = task->sched;

    pthread_mutex_lock(&sched->lock);
    atomic_fetch_add(&sched->num_polling, 1);
    switch (turn) {
    case GSTREAM_TURN_IDLE:
        gstream_sched_let_go(task);
        break;
    case GSTREAM_TURN_WAITS:
        task->state = GSTREAM_TASK_WAITING;
        ucs_list_add_tail(&sched->waiting, &task->list);
        if (task->helper != NULL) {
            ucs_list_add_tail(&sched->helped, &task->help_list);
        }
        atomic_fetch_add(&sched->num_waiting, 1);
        ++sched->num_unlisted;
        break;
    case GSTREAM_TURN_OVER:
        gstream_sched_make_ready(task);
        break;
    }
    pthread_mutex_unlock(&sched->lock);
}

/* See gstream_sched_let_go(), and on top of this file. */
void gstream_sched_submit(gstream_task_t *task)
{
    gstream_sched_t *sched = task->sched;

    if ((atomic_load(&task->active) != 0) ||
        (atomic_exchange(&task->active, 1) != 0)) {
        return;
    }

    task->next = atomic_load(&sched->submitted);
    while (!atomic_compare_exchange_weak(&sched->submitted, &task->next,
                                         task)) {
    }
    if ((atomic_load(&sched->num_polling) == 0) &&
        (atomic_load(&sched->num_asleep) > 0)) {
        gstream_sched_call(sched, 1);
    }
}

void gstream_sched_remove(gstream_task_t *task)
{
    gstream_sched_t *sched = task->sched;
    unsigned rounds        = 0;

    pthread_mutex_lock(&sched->lock);
    gstream_sched_drain(sched);
    while (task->state == GSTREAM_TASK_RUNNING) {
        /* It has run its last command and is about to be put back */
        pthread_mutex_unlock(&sched->lock);
        ucs_backoff(&rounds);
        pthread_mutex_lock(&sched->lock);
    }
    if (task->state == GSTREAM_TASK_READY) {
        ucs_list_del(&task->list); /* for commands that had run already */
    }
    --sched->num_tasks;
    pthread_mutex_unlock(&sched->lock);
}

/* Puts the sleepers of all waiting tasks into the table; the caller holds the
 * lock. */
static void gstream_sched_list_all(gstream_sched_t *sched)
{
    gstream_task_t *task;

    if (sched->num_unlisted == 0) {
        return;
    }

    ucs_list_for_each(task, &sched->waiting, list) {
        if (!task->is_listed) {
            gstream_sleeper_add(&task->sleeper);
            task->is_listed = 1;
        }
    }
    sched->num_unlisted = 0;
}

/* Prepares to sleep, and looks whether there is a reason not to; 0 if there is
 * one. The caller holds the lock. */
static int gstream_sched_fall_asleep(gstream_sched_t *sched, uint32_t *calls_p)
{
    gstream_sched_list_all(sched);

    /* Before the looks: a call that comes after them makes the futex refuse to
     * sleep */
    *calls_p = atomic_load(&sched->calls);
    atomic_fetch_add(&sched->num_asleep, 1);
    atomic_fetch_sub(&sched->num_polling, 1);
    gstream_sleep_fence(); /* pairs with that of the store to a word */
    gstream_sched_park(sched);
    gstream_sched_look(sched);
    return (gstream_sched_first(sched) == NULL) &&
           !atomic_load(&sched->is_stopped);
}

int gstream_sched_sleep(gstream_sched_t *sched, uint64_t nsec)
{
    int is_watch = 0;
    int sleeps;
    uint32_t calls;

    pthread_mutex_lock(&sched->lock);
    sleeps = gstream_sched_fall_asleep(sched, &calls);
    if (sleeps && !sched->is_watched && !ucs_list_is_empty(&sched->waiting)) {
        sched->is_watched = is_watch = 1;
    }
    pthread_mutex_unlock(&sched->lock);

    if (sleeps) {
        gstream_futex_wait(&sched->calls, calls,
                           is_watch ? nsec : GSTREAM_TIME_FOREVER);
    }

    pthread_mutex_lock(&sched->lock);
    atomic_fetch_add(&sched->num_polling, 1);
    atomic_fetch_sub(&sched->num_asleep, 1);
    if (is_watch) {
        sched->is_watched = 0;
    }
    pthread_mutex_unlock(&sched->lock);
    return !sleeps || (atomic_load(&sched->calls) != calls);
}
