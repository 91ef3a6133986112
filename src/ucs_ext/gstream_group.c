/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_group.c - threads that run the streams of a group.
 *
 * States of a thread:
 *
 *                  found a task                     found none
 *    +---------+ <-------------- +---------+ ---------------------> +--------+
 *    | RUNNING |                 | POLLING |  for some time         | ASLEEP |
 *    +---------+ --------------> +---------+ <--------------------- +--------+
 *                  end of a turn               called, or time over
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#ifndef _GNU_SOURCE
#  define _GNU_SOURCE /* pthread_setname_np() */
#endif

#include "gstream_group.h"
#include "gstream_fork.h"
#include "gstream_futex.h"
#include "gstream_host.h"
#include "gstream_pace.h"
#include "gstream_poll.h"
#include "gstream_thread.h"

#include <ucs_ext_config.h>

#include <ucs/debug/log_def.h>
#include <ucs/sys/math.h>
#include <ucs/sys/preprocessor.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GSTREAM_GROUP_NAME "st-exec"

#define GSTREAM_GROUP_TURN_TIME_MAX 1.0


/* Settings, constant once read. */
typedef struct gstream_group_config {
    unsigned num_threads;
    double   turn_time;   /* Seconds */
} gstream_group_config_t;


/* A thread of a group. Fields without a remark are its own. */
typedef struct gstream_executor {
    ucs_gstream_group_h   group;  /* constant */
    pthread_t             thread; /* of the group's creator */
    char                  name[GSTREAM_THREAD_NAME_MAX]; /* constant */
    gstream_pace_t        pace;
    gstream_polled_t      polled;
    uint64_t              sleep_nsec; /* How long it sleeps next */
} gstream_executor_t;


/* A group. Fields without a remark are constant after creation. */
struct ucs_gstream_group {
    gstream_sched_t       sched; /* protects itself */
    gstream_pace_config_t pace_config;
    uint64_t              turn_nsec;
    unsigned              num_threads;
    unsigned              forks; /* gstream_forks */
    gstream_executor_t    executors[];
};


static ucs_config_field_t gstream_group_config_table[] = {
    {"GROUP_THREADS", "1",
     "Threads of a group of host streams, where the program does not say how\n"
     "many.",
     ucs_offsetof(gstream_group_config_t, num_threads), UCS_CONFIG_TYPE_UINT},

    {"TURN_TIME", "20us",
     "How long a stream of a group runs on a thread before another one gets\n"
     "its turn. The command that runs then is finished first. 0: one command.\n"
     "At most 1 second.",
     ucs_offsetof(gstream_group_config_t, turn_time), UCS_CONFIG_TYPE_TIME},

    {.name = NULL}
};
UCS_EXT_CONFIG_REGISTER_TABLE(gstream_group_config_table, "Groups of streams",
                              "GSTREAM_", gstream_group_config_t)


gstream_sched_t *gstream_group_sched(ucs_gstream_group_h group)
{
    return &group->sched;
}

ucs_status_t gstream_group_check(ucs_gstream_group_h group)
{
    return (group->forks == gstream_forks) ?
                   UCS_OK :
                   gstream_fork_refuse("group of streams", group);
}

static int gstream_executor_has_waiting(gstream_executor_t *executor)
{
    return atomic_load_explicit(&executor->group->sched.num_waiting,
                                memory_order_relaxed) > 0;
}

/* Begins to look for something to run: as a stream with its own thread, it
 * yields at once if nothing waits for a word. */
static void gstream_executor_begin_poll(gstream_executor_t *executor)
{
    gstream_pace_config_t *config = &executor->group->pace_config;

    executor->sleep_nsec = GSTREAM_SLEEP_NSEC_MIN;
    if (gstream_executor_has_waiting(executor)) {
        gstream_pace_begin_spin(&executor->pace, config);
    } else {
        gstream_pace_begin_yield(&executor->pace, config);
    }
}

/* Passes a little time, or sleeps. */
static void gstream_executor_idle(gstream_executor_t *executor)
{
    if (gstream_pace_step(&executor->pace)) {
        return;
    }

    gstream_poll_end(&executor->polled);
    if (gstream_sched_sleep(&executor->group->sched, executor->sleep_nsec)) {
        gstream_executor_begin_poll(executor);
    } else {
        executor->sleep_nsec = gstream_sleep_next(executor->sleep_nsec);
    }
}

static void gstream_executor_run(gstream_executor_t *executor,
                                 gstream_task_t *task)
{
    gstream_poll_end(&executor->polled);
    gstream_sched_put(task, gstream_host_run_turn(task,
                                                  executor->group->turn_nsec));
    gstream_executor_begin_poll(executor);
}

static void *gstream_executor_main(void *arg)
{
    gstream_executor_t *executor = arg;
    gstream_sched_t *sched       = &executor->group->sched;
    gstream_task_t *task;

    pthread_setname_np(pthread_self(), executor->name);
    gstream_executor_begin_poll(executor);
    while (!atomic_load(&sched->is_stopped)) {
        if (gstream_executor_has_waiting(executor)) {
            (void)gstream_poll(&executor->polled);
        } else {
            gstream_poll_end(&executor->polled);
        }

        task = gstream_sched_take(sched);
        if (task != NULL) {
            gstream_executor_run(executor, task);
        } else {
            gstream_executor_idle(executor);
        }
    }

    gstream_poll_end(&executor->polled);
    return NULL;
}

static ucs_status_t
gstream_executor_start(gstream_executor_t *executor, unsigned index,
                       const ucs_gstream_group_params_t *params)
{
    int is_bound           = !!(params->field_mask &
                                UCS_GSTREAM_GROUP_PARAM_FIELD_CPUS);
    ucs_gstream_cpus_t own = {
        .count = 1
    };

    if (is_bound) {
        own.list = &params->cpus.list[index % params->cpus.count];
    }
    snprintf(executor->name, sizeof(executor->name), "%.10s-%u",
             (params->field_mask & UCS_GSTREAM_GROUP_PARAM_FIELD_NAME) ?
                     params->name :
                     GSTREAM_GROUP_NAME,
             index % 10000);
    return gstream_thread_start(&executor->thread, executor->name,
                                is_bound ? &own : NULL, gstream_executor_main,
                                executor);
}

/* Ends the threads that were started; 0, with no effect, if there are
 * streams. */
static int gstream_group_stop(ucs_gstream_group_h group, unsigned num_started)
{
    unsigned i;

    if (!gstream_sched_stop(&group->sched)) {
        return 0;
    }

    for (i = 0; i < num_started; ++i) {
        pthread_join(group->executors[i].thread, NULL);
    }
    return 1;
}

static ucs_status_t
gstream_group_start(ucs_gstream_group_h group,
                    const ucs_gstream_group_params_t *params)
{
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < group->num_threads; ++i) {
        group->executors[i].group = group;
        status = gstream_executor_start(&group->executors[i], i, params);
        if (status != UCS_OK) {
            gstream_group_stop(group, i);
            return status;
        }
    }

    return UCS_OK;
}

/* What is wrong with the parameters; NULL if nothing. */
static const char *
gstream_group_check_params(const ucs_gstream_group_params_t *params)
{
    if ((params->field_mask & UCS_GSTREAM_GROUP_PARAM_FIELD_CPUS) &&
        ((params->cpus.list == NULL) || (params->cpus.count == 0))) {
        return "the list of processors is empty";
    }
    if ((params->field_mask & UCS_GSTREAM_GROUP_PARAM_FIELD_NAME) &&
        (params->name == NULL)) {
        return "NULL name";
    }
    return NULL;
}

/* What the parameters and the settings say. */
static ucs_status_t
gstream_group_config_read(const ucs_gstream_group_params_t *params,
                          gstream_group_config_t *config)
{
    const char *defect = gstream_group_check_params(params);
    ucs_status_t status;

    if (defect != NULL) {
        ucs_error("cannot create a group of streams: %s", defect);
        return UCS_ERR_INVALID_PARAM;
    }

    status = ucs_ext_config_fill(
            config, UCS_CONFIG_GET_TABLE(gstream_group_config_table), 0);
    if (status != UCS_OK) {
        return status;
    }

    if (params->field_mask & UCS_GSTREAM_GROUP_PARAM_FIELD_NUM_THREADS) {
        config->num_threads = params->num_threads;
    }
    if ((config->num_threads < 1) ||
        (config->num_threads > UCS_GSTREAM_GROUP_MAX_THREADS)) {
        ucs_error("cannot create a group of streams: %u threads, must be 1 to "
                  "%d", config->num_threads, UCS_GSTREAM_GROUP_MAX_THREADS);
        return UCS_ERR_INVALID_PARAM;
    }

    /* Not a number is none, as is a negative time */
    config->turn_time = (config->turn_time > 0) ?
                                ucs_min(config->turn_time,
                                        GSTREAM_GROUP_TURN_TIME_MAX) :
                                0;
    return UCS_OK;
}

/* A group without threads; NULL if there is no memory. */
static ucs_gstream_group_h
gstream_group_alloc(const gstream_group_config_t *config)
{
    ucs_gstream_group_h group;
    void *memory;
    size_t size;

    size = sizeof(*group) + (config->num_threads * sizeof(*group->executors));
    if (posix_memalign(&memory, UCS_ARCH_CACHE_LINE_SIZE, size) != 0) {
        ucs_error("cannot create a group of streams: no memory");
        return NULL;
    }

    group              = memset(memory, 0, size);
    group->num_threads = config->num_threads;
    group->forks       = gstream_forks;
    group->turn_nsec   = (uint64_t)(config->turn_time * GSTREAM_NSEC_PER_SEC);
    gstream_sched_init(&group->sched, group->num_threads);
    return group;
}

static void gstream_group_free(ucs_gstream_group_h group)
{
    gstream_sched_cleanup(&group->sched);
    free(group);
}

ucs_status_t ucs_gstream_group_create(const ucs_gstream_group_params_t *params,
                                      ucs_gstream_group_h *group_p)
{
    gstream_group_config_t config;
    ucs_gstream_group_h group;
    ucs_status_t status;

    if ((params == NULL) || (group_p == NULL)) {
        ucs_error("cannot create a group of streams: NULL argument");
        return UCS_ERR_INVALID_PARAM;
    }

    status = gstream_group_config_read(params, &config);
    if (status != UCS_OK) {
        return status;
    }

    group = gstream_group_alloc(&config);
    if (group == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    status = gstream_pace_config_read(&group->pace_config);
    if (status == UCS_OK) {
        status = gstream_group_start(group, params);
    }
    if (status != UCS_OK) {
        gstream_group_free(group);
        return status;
    }

    ucs_debug("created a group of %u threads %s", group->num_threads,
              group->executors[0].name);
    *group_p = group;
    return UCS_OK;
}

ucs_status_t ucs_gstream_group_destroy(ucs_gstream_group_h group)
{
    ucs_status_t status;

    if (group == NULL) {
        ucs_error("cannot destroy a group of streams: NULL argument");
        return UCS_ERR_INVALID_PARAM;
    }

    status = gstream_group_check(group);
    if (status != UCS_OK) {
        return status;
    }
    if (!gstream_group_stop(group, group->num_threads)) {
        ucs_debug("group %p: not destroyed, it has streams", (void*)group);
        return UCS_ERR_BUSY;
    }

    gstream_group_free(group);
    return UCS_OK;
}

ucs_status_t ucs_gstream_priority_range(int *least_p, int *greatest_p)
{
    if ((least_p == NULL) || (greatest_p == NULL)) {
        ucs_error("cannot tell the range of priorities: NULL argument");
        return UCS_ERR_INVALID_PARAM;
    }

    *least_p    = GSTREAM_PRIORITY_LEAST;
    *greatest_p = GSTREAM_PRIORITY_GREATEST;
    return UCS_OK;
}
