/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_thread.h
 *
 * How the libraries, and the emulated card, start threads of their own.
 */
#ifndef UCS_EXT_THREAD_H_
#define UCS_EXT_THREAD_H_

#include <pthread.h>
#include <signal.h>

/**
 * As pthread_create(). The application's signals are for its own threads: all
 * are blocked, but those that an instruction of the thread causes. The kernel
 * ends a process that blocks these without calling a handler, and there are
 * such: those of debuggers, and of libraries (an emulated device's page, a
 * guarded copy).
 */
static inline int ucs_thread_create(pthread_t *thread,
                                    const pthread_attr_t *attr,
                                    void *(*func)(void*), void *arg)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t all, old;
    unsigned i;
    int ret;

    sigfillset(&all);
    for (i = 0; i < (sizeof(own) / sizeof(own[0])); ++i) {
        sigdelset(&all, own[i]);
    }
    pthread_sigmask(SIG_SETMASK, &all, &old);
    ret = pthread_create(thread, attr, func, arg); /* it inherits the mask */
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ret;
}

#endif
