/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_thread.c - threads of the library that run commands. */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#ifndef _GNU_SOURCE
#  define _GNU_SOURCE /* cpu_set_t */
#endif

#include "gstream_thread.h"
#include "gstream_fork.h"

#include <ucs_thread.h>

#include <ucs/debug/log_def.h>

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How long an exit waits for threads that nobody joins, seconds */
#define GSTREAM_THREAD_EXIT 1


/* A thread that nobody joins */
typedef struct gstream_thread_alone {
    void (*func)(void *arg);
    void *arg;
} gstream_thread_alone_t;


/* Those threads. All of it under the lock. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t  ended;
    unsigned        count;
    int             has_exit; /* gstream_thread_exit() is called */
} gstream_thread = {
    .lock  = PTHREAD_MUTEX_INITIALIZER,
    .ended = PTHREAD_COND_INITIALIZER
};


/* Has a thread run on these processors. An error of the system's. */
static int gstream_thread_bind(pthread_attr_t *attr,
                               const ucs_gstream_cpus_t *cpus)
{
    cpu_set_t set;
    size_t i;

    if ((cpus->list == NULL) || (cpus->count == 0)) {
        return EINVAL;
    }

    CPU_ZERO(&set);
    for (i = 0; i < cpus->count; ++i) {
        if (cpus->list[i] >= CPU_SETSIZE) {
            return EINVAL;
        }
        CPU_SET(cpus->list[i], &set);
    }

    return pthread_attr_setaffinity_np(attr, sizeof(set), &set);
}

ucs_status_t gstream_thread_start(pthread_t *thread, const char *name,
                                  const ucs_gstream_cpus_t *cpus,
                                  void *(*func)(void *), void *arg)
{
    pthread_attr_t attr;
    int ret;

    pthread_attr_init(&attr);
    ret = (cpus == NULL) ? 0 : gstream_thread_bind(&attr, cpus);
    if (ret == 0) {
        ret = ucs_thread_create(thread, &attr, func, arg);
    }
    pthread_attr_destroy(&attr);

    if (ret == 0) {
        return UCS_OK;
    }
    if ((ret == EINVAL) && (cpus != NULL)) {
        ucs_error("%s: none of the processors that it is to run on can be used",
                  name);
        return UCS_ERR_INVALID_PARAM;
    }
    ucs_error("%s: cannot start a thread: %s", name, strerror(ret));
    return UCS_ERR_NO_RESOURCE;
}

/* The runtimes' own handlers, of libraries that were there before, come later:
 * a thread that is in a runtime then may use what they take away. To join the
 * threads could be to wait for ever, as a runtime may wait for a stream of the
 * application in such a call. So this is for a time only; behind it a thread is
 * where any thread of the application may be at an exit. */
static void gstream_thread_exit(void)
{
    struct timespec end;
    int ret = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += GSTREAM_THREAD_EXIT;
    pthread_mutex_lock(&gstream_thread.lock);
    while ((gstream_thread.count > 0) && (ret == 0)) {
        ret = pthread_cond_timedwait(&gstream_thread.ended,
                                     &gstream_thread.lock, &end);
    }
    pthread_mutex_unlock(&gstream_thread.lock);
}

void gstream_thread_forked(void)
{
    pthread_mutex_init(&gstream_thread.lock, NULL);
    pthread_cond_init(&gstream_thread.ended, NULL);
    gstream_thread.count = 0;
}

static void gstream_thread_end(void)
{
    pthread_mutex_lock(&gstream_thread.lock);
    --gstream_thread.count;
    pthread_cond_signal(&gstream_thread.ended);
    pthread_mutex_unlock(&gstream_thread.lock);
}

static void *gstream_thread_alone(void *arg)
{
    gstream_thread_alone_t alone = *(gstream_thread_alone_t*)arg;

    free(arg);
    alone.func(alone.arg);
    gstream_thread_end();
    return NULL;
}

ucs_status_t gstream_thread_start_alone(const char *name, void (*func)(void*),
                                        void *arg)
{
    gstream_thread_alone_t *alone = malloc(sizeof(*alone));
    ucs_status_t status;
    pthread_t thread;

    if (alone == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    *alone = (gstream_thread_alone_t){func, arg};
    pthread_mutex_lock(&gstream_thread.lock);
    if (!gstream_thread.has_exit) {
        gstream_thread.has_exit = 1;
        (void)atexit(gstream_thread_exit);
    }
    ++gstream_thread.count;
    pthread_mutex_unlock(&gstream_thread.lock);
    status = gstream_thread_start(&thread, name, NULL, gstream_thread_alone,
                                  alone);
    if (status != UCS_OK) {
        free(alone);
        gstream_thread_end();
        return status;
    }
    (void)pthread_detach(thread);
    return UCS_OK;
}
