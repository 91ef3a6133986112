/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread.c - the signals of threads of the libraries.
 */
#include "ucs_thread.h"

#include <signal.h>


int ucs_thread_create(pthread_t *thread, const pthread_attr_t *attr,
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
