/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_host.c - streams that a thread of this process executes.
 *
 * The executor is a thread of the stream's own, or whichever thread of its
 * group has its task (gstream_sched.h). States of a thread of its own:
 *
 *            push                        word too small
 *   +------+ ---> +---------+ -----------------------------> +---------+
 *   | IDLE |      | RUNNING |                                | WAITING |
 *   +------+ <--- +---------+ <----------------------------- +---------+
 *     |  ^  empty                word reached the value         |   ^
 *     v  |                                                      v   |
 *   asleep until a push                          asleep until the word's store
 *
 * IDLE and WAITING poll for a short time first (gstream_pace.h).
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#ifndef _GNU_SOURCE
#  define _GNU_SOURCE /* pthread_setname_np() */
#endif

#include "gstream_host.h"
#include "gstream_device.h"
#include "gstream_fork.h"
#include "gstream_futex.h"
#include "gstream_group.h"
#include "gstream_pace.h"
#include "gstream_ring.h"
#include "gstream_sleep.h"
#include "gstream_thread.h"
#include "gstream_trace.h"
#include "gstream_wait.h"

#include <ucs/debug/log_def.h>

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* sync_target where nobody sleeps in synchronize. */
#define GSTREAM_HOST_NO_TARGET UINT64_MAX

/* Longest run of stores with one look for sleepers. */
#define GSTREAM_HOST_WRITES_MAX 32

/* Longer timeouts of synchronize are for ever. */
#define GSTREAM_HOST_TIMEOUT_MAX 1e9

#define GSTREAM_HOST_CAPS \
    (UCS_GSTREAM_CAP_WRITE | UCS_GSTREAM_CAP_WAIT | UCS_GSTREAM_CAP_COPY | \
     UCS_GSTREAM_CAP_FUNC | UCS_GSTREAM_CAP_CHEAP | UCS_GSTREAM_CAP_HELP | \
     UCS_GSTREAM_CAP_WAKE)


/* A host stream. Fields without a remark are constant after creation. */
typedef struct gstream_host {
    struct ucs_gstream    super;
    char                  name[GSTREAM_THREAD_NAME_MAX];
    gstream_pace_config_t config;
    pthread_t             thread; /* if task has no sched */
    gstream_task_t        task;   /* protected by its sched; no sched if the
                                     stream has its own thread */
    gstream_ring_t        ring;   /* protects itself */
    size_t                num_met;/* words of the wait that the stream is at, in
                                     a group; executor only */
    trace_spans_t         spans;  /* while no thread has it; executor only */

    /* Written by the executor for each step; commands that have run. */
    _Atomic uint64_t      done UCS_V_ALIGNED(UCS_ARCH_CACHE_LINE_SIZE);

    /* Smallest 'done' that a sleeper in synchronize waits for, and what these
     * sleep on. Lowered by sleepers, reset by the executor; atomic. */
    _Atomic uint64_t      sync_target UCS_V_ALIGNED(UCS_ARCH_CACHE_LINE_SIZE);
    _Atomic uint32_t      sync_calls;

    /* 1 while a thread of the stream's own sleeps for lack of commands, and
     * what it sleeps on; stop is set once by destroy. Atomic. */
    _Atomic uint32_t      asleep;
    _Atomic uint32_t      stop;
} gstream_host_t;


/* The stream of which the calling thread runs a command, or could. */
static __thread gstream_host_t *gstream_host_current;

/* Number of the next stream, for its name. */
static _Atomic unsigned gstream_host_next_id;


static gstream_host_t *gstream_host_derived(ucs_gstream_h stream)
{
    return ucs_derived_of(stream, gstream_host_t);
}

/*
 * Wakes the executor if it sleeps for lack of commands.
 *
 *     caller                               executor [gstream_host_sleep_idle]
 *     store the ring's tail, or stop       store asleep = 1
 *     load asleep [here]                   load the ring's tail, and stop
 *
 * All four are seq-cst, so that one of the two sees the other's store.
 */
static void gstream_host_wake(gstream_host_t *host)
{
    if ((atomic_load(&host->asleep) != 0) &&
        (atomic_exchange(&host->asleep, 0) != 0)) {
        gstream_futex_wake(&host->asleep, 1);
    }
}

/* See gstream_host_wake(). */
static void gstream_host_sleep_idle(gstream_host_t *host)
{
    atomic_store(&host->asleep, 1);
    if (gstream_ring_is_empty(&host->ring) && (atomic_load(&host->stop) == 0)) {
        gstream_futex_wait(&host->asleep, 1, GSTREAM_TIME_FOREVER);
    }
    atomic_store(&host->asleep, 0);
}

/* Waits for a command or the end; 0 at the end. */
static int gstream_host_wait_work(gstream_host_t *host)
{
    gstream_pace_t pace;

    gstream_pace_begin_yield(&pace, &host->config);
    while (gstream_ring_is_empty(&host->ring)) {
        if (atomic_load(&host->stop) != 0) {
            return 0;
        }
        if (!gstream_pace_step(&pace)) {
            gstream_host_sleep_idle(host);
        }
    }

    return 1;
}

/* One store each, in order. The bus fence keeps what the stream wrote before in
 * front of a store to a device, and apart from it the stores to a
 * write-combining doorbell; release order alone is for processors only. */
static void gstream_host_write(const ucs_gstream_cmd_t *cmd)
{
    if (gstream_device_store(cmd->u.word.address, cmd->u.word.value)) {
        return; /* an emulated device has it */
    }

    ucs_memory_bus_store_fence();
    __atomic_store_n(cmd->u.word.address, cmd->u.word.value, __ATOMIC_RELEASE);
}

/* Kept out of the loops over commands, as it is seldom. No emulated device has
 * words of 32 bits. */
static UCS_F_NOINLINE void
gstream_host_run_write32(const ucs_gstream_cmd_t *cmd)
{
    ucs_memory_bus_store_fence();
    __atomic_store_n(cmd->u.word32.address, cmd->u.word32.value,
                     __ATOMIC_RELEASE);
    gstream_sleep_fence();
    gstream_sleep_wake((const volatile uint64_t*)cmd->u.word32.address);
}

/* Runs the stores that the commands begin with; one fence for all of them. */
static size_t gstream_host_run_writes(const ucs_gstream_cmd_t *cmds,
                                      size_t count)
{
    size_t num_writes, i;

    for (num_writes = 0; (num_writes < count) &&
                         (num_writes < GSTREAM_HOST_WRITES_MAX) &&
                         (cmds[num_writes].type == UCS_GSTREAM_CMD_WRITE64);
         ++num_writes) {
        gstream_host_write(&cmds[num_writes]);
    }

    gstream_sleep_fence(); /* pairs with the one in gstream_sleep_until() */
    for (i = 0; i < num_writes; ++i) {
        gstream_sleep_wake(cmds[i].u.word.address);
    }
    return num_writes;
}

static void gstream_host_run_kernel(ucs_gstream_func_t func, void *arg)
{
    uint64_t begin = gstream_trace_func_begin();

    func(arg);
    gstream_trace_func_end(begin, func);
}

static void gstream_host_run_copy(const ucs_gstream_cmd_t *cmd)
{
    uint64_t begin = ucs_trace_begin();

    if (cmd->u.copy.length > 0) {
        memcpy(cmd->u.copy.dst, cmd->u.copy.src, cmd->u.copy.length);
    }
    gstream_trace_copy_end(begin, cmd->u.copy.length);
}

/* Kept out of the loops over commands, as it is seldom */
static UCS_F_NOINLINE void
gstream_host_run_copy2d(const ucs_gstream_cmd_t *cmd)
{
    const ucs_gstream_rect_t *rect = cmd->u.copy2d.rect; /* the ring's copy */
    uint64_t begin                 = ucs_trace_begin();

    gstream_copy_rows(cmd->u.copy2d.dst, cmd->u.copy2d.src, rect);
    gstream_trace_copy_end(begin, rect->width * rect->height);
}

/* Runs the first command, or the stores it begins; returns how many slots. Part
 * of both loops over commands: a call would be a tenth of a short one. */
static UCS_F_ALWAYS_INLINE size_t
gstream_host_run(gstream_host_t *host, const ucs_gstream_cmd_t *cmds,
                 size_t count)
{
    switch (cmds->type) {
    case UCS_GSTREAM_CMD_FUNC:
        gstream_host_run_kernel(cmds->u.func.func, cmds->u.func.arg);
        return 1;
    case UCS_GSTREAM_CMD_WRITE64:
        return gstream_host_run_writes(cmds, count);
    case UCS_GSTREAM_CMD_WAIT64:
    case UCS_GSTREAM_CMD_HELP64:
    case UCS_GSTREAM_CMD_WAITALL:
    case UCS_GSTREAM_CMD_WAIT32:
        return gstream_wait_run(&host->config, cmds, count);
    case UCS_GSTREAM_CMD_COPY:
        gstream_host_run_copy(cmds);
        return 1;
    case UCS_GSTREAM_CMD_LAUNCH:
    case UCS_GSTREAM_CMD_COPY2D:
    case UCS_GSTREAM_CMD_PAIRS:
    case UCS_GSTREAM_CMD_MOVE:
    case UCS_GSTREAM_CMD_WRITE32:
        break; /* here they would make a jump table of the switch */
    }

    /* The front lets no other type through */
    if (ucs_unlikely(cmds->type == UCS_GSTREAM_CMD_COPY2D)) {
        gstream_host_run_copy2d(cmds);
    } else if (ucs_unlikely(cmds->type == UCS_GSTREAM_CMD_WRITE32)) {
        gstream_host_run_write32(cmds);
    } else {
        gstream_host_run_kernel(cmds->u.launch.func,
                                (void*)cmds->u.launch.args); /* the ring's */
    }
    return gstream_ring_slots(cmds);
}

/*
 * Publishes how far the stream is, and wakes those who sleep until then.
 *
 *     executor [here]                      sleeper [gstream_host_sleep_sync]
 *     store done                           lower sync_target
 *     load sync_target                     load done
 *
 * All four are seq-cst. The release half of the store publishes what the
 * commands did to whoever sees it. Part of both loops, as gstream_host_run().
 */
static UCS_F_ALWAYS_INLINE void
gstream_host_set_done(gstream_host_t *host, uint64_t done)
{
    atomic_store(&host->done, done);
    if (ucs_likely(done < atomic_load(&host->sync_target))) {
        return;
    }

    /* Reset first, then wake: a sleeper that comes in between finds either the
     * wake-up or its target in place; one that waits for more comes again */
    atomic_store(&host->sync_target, GSTREAM_HOST_NO_TARGET);
    atomic_fetch_add(&host->sync_calls, 1);
    gstream_futex_wake(&host->sync_calls, INT_MAX);
}

static void *gstream_host_main(void *arg)
{
    gstream_host_t *host = arg;
    const ucs_gstream_cmd_t *cmds;
    size_t count;

    gstream_host_current = host;
    pthread_setname_np(pthread_self(), host->name);

    do {
        while ((count = gstream_ring_peek(&host->ring, &cmds)) > 0) {
            count = gstream_host_run(host, cmds, count);
            gstream_host_set_done(host, gstream_ring_pop(&host->ring, count));
        }
    } while (gstream_host_wait_work(host));

    return NULL;
}

/* As gstream_host_run(), for a thread of a group: 0 where it would wait. */
static size_t gstream_host_try(gstream_host_t *host,
                               const ucs_gstream_cmd_t *cmds, size_t count)
{
    gstream_wait_t wait;
    size_t left;

    if (!gstream_wait_is_one(cmds)) {
        return gstream_host_run(host, cmds, count);
    }

    gstream_wait_begin(&wait, cmds, host->num_met);
    left = wait.count;
    if (gstream_wait_is_met(&wait)) {
        host->num_met = 0;
        return gstream_ring_slots(cmds);
    }

    host->num_met             += left - wait.count;
    host->task.sleeper.address = wait.words->address;
    host->task.value           = wait.words->value;
    host->task.how             = wait.how;
    host->task.helper          = wait.helper;
    return 0;
}

gstream_turn_t gstream_host_run_turn(gstream_task_t *task, uint64_t nsec)
{
    gstream_host_t *host = ucs_container_of(task, gstream_host_t, task);
    uint64_t start       = gstream_time();
    gstream_turn_t turn  = GSTREAM_TURN_IDLE;
    const ucs_gstream_cmd_t *cmds;
    size_t count;

    gstream_host_current = host;
    gstream_trace_switch(&host->spans);
    while ((turn == GSTREAM_TURN_IDLE) &&
           ((count = gstream_ring_peek(&host->ring, &cmds)) > 0)) {
        count = gstream_host_try(host, cmds, count);
        if (count == 0) {
            turn = GSTREAM_TURN_WAITS;
        } else {
            gstream_host_set_done(host, gstream_ring_pop(&host->ring, count));
            if ((gstream_time() - start) >= nsec) {
                turn = GSTREAM_TURN_OVER;
            }
        }
    }
    gstream_trace_switch(&host->spans);
    gstream_host_current = NULL;
    return turn;
}

/* What is wrong with the parameters; NULL if nothing. */
static const char *gstream_host_check(const ucs_gstream_params_t *params)
{
    int has_group = !!(params->field_mask & UCS_GSTREAM_PARAM_FIELD_GROUP);

    if (has_group && (params->group == NULL)) {
        return "NULL group";
    }
    if (has_group && (params->field_mask & UCS_GSTREAM_PARAM_FIELD_CPUS)) {
        return "processors are those of its group";
    }
    if ((params->field_mask & UCS_GSTREAM_PARAM_FIELD_PRIORITY) &&
        ((params->priority > GSTREAM_PRIORITY_LEAST) ||
         (params->priority < GSTREAM_PRIORITY_GREATEST))) {
        return "priority out of range";
    }
    return NULL;
}

/* Gives the stream an executor. */
static ucs_status_t gstream_host_start(gstream_host_t *host,
                                       const ucs_gstream_params_t *params)
{
    uint64_t fields = params->field_mask;

    if (fields & UCS_GSTREAM_PARAM_FIELD_GROUP) {
        gstream_sched_add(gstream_group_sched(params->group), &host->task,
                          &host->ring,
                          (fields & UCS_GSTREAM_PARAM_FIELD_PRIORITY) ?
                                  params->priority :
                                  0);
        return UCS_OK;
    }

    return gstream_thread_start(&host->thread, host->name,
                                (fields & UCS_GSTREAM_PARAM_FIELD_CPUS) ?
                                        &params->cpus :
                                        NULL,
                                gstream_host_main, host);
}

/* Undoes gstream_host_start() once all commands have run. */
static void gstream_host_stop(gstream_host_t *host)
{
    if (host->task.sched != NULL) {
        gstream_sched_remove(&host->task);
        return;
    }

    atomic_store(&host->stop, 1);
    gstream_host_wake(host);
    pthread_join(host->thread, NULL);
}

/* A zeroed stream without ring and thread; NULL if there is no memory. */
static gstream_host_t *gstream_host_alloc(void)
{
    gstream_host_t *host;
    void *memory;

    if (posix_memalign(&memory, UCS_ARCH_CACHE_LINE_SIZE, sizeof(*host)) != 0) {
        return NULL;
    }

    host             = memset(memory, 0, sizeof(*host));
    host->super.ops  = &gstream_host_ops;
    host->super.type = UCS_GSTREAM_TYPE_HOST;
    atomic_init(&host->done, 0);
    atomic_init(&host->sync_target, GSTREAM_HOST_NO_TARGET);
    atomic_init(&host->sync_calls, 0);
    atomic_init(&host->asleep, 0);
    atomic_init(&host->stop, 0);
    snprintf(host->name, sizeof(host->name), "st-host-%u",
             atomic_fetch_add(&gstream_host_next_id, 1) % 10000000);
    return host;
}

static ucs_status_t gstream_host_create(const ucs_gstream_params_t *params,
                                        ucs_gstream_h *stream_p)
{
    const char *defect = gstream_host_check(params);
    gstream_host_t *host;
    ucs_status_t status;

    if (defect != NULL) {
        status = UCS_ERR_INVALID_PARAM;
        ucs_error("cannot create a host stream: %s", defect);
        goto err;
    }
    if (params->field_mask & UCS_GSTREAM_PARAM_FIELD_GROUP) {
        status = gstream_group_check(params->group);
        if (status != UCS_OK) {
            goto err;
        }
    }

    host = gstream_host_alloc();
    if (host == NULL) {
        status = UCS_ERR_NO_MEMORY;
        ucs_error("cannot create a host stream: no memory");
        goto err;
    }

    status = gstream_pace_config_read(&host->config);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = gstream_ring_init(&host->ring);
    if (status != UCS_OK) {
        ucs_error("host stream %s: cannot create its queue: %s", host->name,
                  ucs_status_string(status));
        goto err_free;
    }

    status = gstream_host_start(host, params);
    if (status != UCS_OK) {
        goto err_ring;
    }

    ucs_debug("created host stream %s", host->name);
    *stream_p = &host->super;
    return UCS_OK;

err_ring:
    gstream_ring_cleanup(&host->ring);
err_free:
    free(host);
err:
    return status;
}

static ucs_status_t gstream_host_query(ucs_gstream_h stream)
{
    gstream_host_t *host = gstream_host_derived(stream);
    uint64_t done        = atomic_load(&host->done);

    /* In this order: a command may enqueue another one and then be done, and
     * against an older tail that would pass for idle */
    return (done == gstream_ring_tail(&host->ring)) ? UCS_OK : UCS_INPROGRESS;
}

static ucs_status_t gstream_host_destroy(ucs_gstream_h stream)
{
    gstream_host_t *host = gstream_host_derived(stream);

    if (gstream_host_current == host) {
        ucs_error("host stream %s: cannot be destroyed by its own command",
                  host->name);
        return UCS_ERR_BUSY;
    }
    if ((gstream_host_query(stream) != UCS_OK) ||
        (gstream_ask_wait(stream) != UCS_OK)) {
        ucs_debug("host stream %s: not destroyed, commands are pending",
                  host->name);
        return UCS_ERR_BUSY;
    }

    gstream_host_stop(host);
    ucs_debug("destroyed host stream %s", host->name);
    gstream_ring_cleanup(&host->ring);
    free(host);
    return UCS_OK;
}

static ucs_status_t gstream_host_enqueue(ucs_gstream_h stream,
                                         const ucs_gstream_cmd_t *cmds,
                                         size_t count)
{
    gstream_host_t *host = gstream_host_derived(stream);
    ucs_status_t status;

    status = gstream_ring_push(&host->ring, cmds, count);
    if (ucs_unlikely(status != UCS_OK)) {
        ucs_error("host stream %s: no memory for %zu commands", host->name,
                  count);
        return status;
    }

    if (host->task.sched != NULL) {
        gstream_sched_submit(&host->task);
    } else {
        gstream_host_wake(host);
    }
    return UCS_OK;
}

static void gstream_host_lower_target(gstream_host_t *host, uint64_t target)
{
    uint64_t current = atomic_load(&host->sync_target);

    while ((target < current) &&
           !atomic_compare_exchange_weak(&host->sync_target, &current,
                                         target)) {
    }
}

/* Sleeps until 'target' commands have run, or a shorter time. See
 * gstream_host_set_done(). */
static void gstream_host_sleep_sync(gstream_host_t *host, uint64_t target,
                                    uint64_t nsec)
{
    uint32_t calls = atomic_load(&host->sync_calls);

    gstream_host_lower_target(host, target);
    if (atomic_load(&host->done) < target) {
        gstream_futex_wait(&host->sync_calls, calls, nsec);
    }
}

/* Time from now on until the end of a timeout that began at 'start'; 0 if it is
 * over. */
static uint64_t gstream_host_time_left(uint64_t start, double timeout)
{
    uint64_t nsec, passed;

    if (timeout > GSTREAM_HOST_TIMEOUT_MAX) {
        return GSTREAM_TIME_FOREVER;
    }

    nsec   = (uint64_t)(timeout * GSTREAM_NSEC_PER_SEC);
    passed = gstream_time() - start;
    return (passed < nsec) ? (nsec - passed) : 0;
}

/* Blocks until 'target' commands have run. */
static ucs_status_t gstream_host_wait_done(gstream_host_t *host,
                                           uint64_t target, double timeout)
{
    uint64_t start = gstream_time();
    uint64_t left;
    gstream_pace_t pace;

    gstream_pace_begin_yield(&pace, &host->config);
    while (atomic_load(&host->done) < target) {
        left = gstream_host_time_left(start, timeout);
        if (left == 0) {
            return UCS_INPROGRESS;
        }
        if (!gstream_pace_step(&pace)) {
            gstream_host_sleep_sync(host, target, left);
        }
    }

    return UCS_OK;
}

/* Whether the calling thread is one that the stream may need. */
static int gstream_host_is_needed(const gstream_host_t *host)
{
    const gstream_host_t *current = gstream_host_current;

    return (current == host) ||
           ((current != NULL) && (host->task.sched != NULL) &&
            (current->task.sched == host->task.sched));
}

static ucs_status_t gstream_host_synchronize(ucs_gstream_h stream,
                                             double timeout)
{
    gstream_host_t *host = gstream_host_derived(stream);

    if (gstream_host_is_needed(host)) {
        ucs_error("host stream %s: a command of it or of its group cannot wait "
                  "for it", host->name);
        return UCS_ERR_BUSY;
    }

    return gstream_host_wait_done(host, gstream_ring_tail(&host->ring),
                                  timeout);
}

static void *gstream_host_native(ucs_gstream_h stream)
{
    (void)stream;
    return NULL;
}

static int gstream_host_reaches(ucs_gstream_h stream,
                                const volatile uint64_t *word)
{
    (void)stream;
    (void)word;
    return 1;
}

const gstream_ops_t gstream_host_ops = {
    .name        = "host",
    .caps        = GSTREAM_HOST_CAPS,
    .create      = gstream_host_create,
    .destroy     = gstream_host_destroy,
    .enqueue     = gstream_host_enqueue,
    .synchronize = gstream_host_synchronize,
    .query       = gstream_host_query,
    .reaches     = gstream_host_reaches,
    .native      = gstream_host_native
};


static ucs_status_t gstream_host_refuse(ucs_gstream_h stream)
{
    return gstream_fork_refuse("host stream", stream);
}

static ucs_status_t
gstream_host_refuse_enqueue(ucs_gstream_h stream, const ucs_gstream_cmd_t *cmds,
                            size_t count)
{
    (void)cmds;
    (void)count;
    return gstream_host_refuse(stream);
}

static ucs_status_t gstream_host_refuse_synchronize(ucs_gstream_h stream,
                                                    double timeout)
{
    (void)timeout;
    return gstream_host_refuse(stream);
}

const gstream_ops_t gstream_host_forked_ops = {
    .name        = "host",
    .caps        = GSTREAM_HOST_CAPS,
    .create      = gstream_host_create,
    .destroy     = gstream_host_refuse,
    .enqueue     = gstream_host_refuse_enqueue,
    .synchronize = gstream_host_refuse_synchronize,
    .query       = gstream_host_refuse,
    .reaches     = gstream_host_reaches,
    .native      = gstream_host_native
};
