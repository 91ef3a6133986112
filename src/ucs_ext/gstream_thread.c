/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_thread.c - threads of the library that run commands. */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#ifndef _GNU_SOURCE
#  define _GNU_SOURCE /* cpu_set_t */
#endif

#include "gstream_thread.h"

#include <ucs/debug/log_def.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>


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

/* Creates a thread that inherits the mask of signals: all but those that an
 * instruction of its own causes. The kernel ends a process that blocks these,
 * and libraries handle them (an emulated device's page, a guarded copy). */
static int gstream_thread_create(pthread_t *thread, const pthread_attr_t *attr,
                                 void *(*func)(void *), void *arg)
{
    sigset_t all, old;
    int ret;

    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    ret = pthread_create(thread, attr, func, arg);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ret;
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
        ret = gstream_thread_create(thread, &attr, func, arg);
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
