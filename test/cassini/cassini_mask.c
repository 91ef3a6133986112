/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_mask.c - the signal of the NIC's traps is never blocked: a store into
 * a counter's page by a thread that blocks it would end the process. These
 * functions come before libc's where this library is preloaded or linked.
 */
#include "cassini_lib.h"

#include <dlfcn.h>
#include <signal.h>

typedef int (*cassini_mask_func_t)(int how, const sigset_t *set,
                                   sigset_t *before);


static int cassini_mask_call(cassini_mask_func_t *func_p, const char *name,
                             int how, const sigset_t *set, sigset_t *before)
{
    cassini_mask_func_t func = __atomic_load_n(func_p, __ATOMIC_RELAXED);
    sigset_t own;

    if (func == NULL) {
        func = (cassini_mask_func_t)dlsym(RTLD_NEXT, name);
        __atomic_store_n(func_p, func, __ATOMIC_RELAXED);
    }
    if ((set != NULL) && (how != SIG_UNBLOCK)) {
        own = *set;
        (void)sigdelset(&own, SIGSEGV);
        set = &own;
    }
    return func(how, set, before);
}

CASSINI_API int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    static cassini_mask_func_t func;

    return cassini_mask_call(&func, "pthread_sigmask", how, set, before);
}

CASSINI_API int sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
    static cassini_mask_func_t func;

    return cassini_mask_call(&func, "sigprocmask", how, set, before);
}
