/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_wrap.c - system calls of the library that tests let fail, count, or
 * have without time limits.
 */
#include "gstream_wrap.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>


gstream_wrap_t gstream_wrap = {
    .fail_malloc   = -1,
    .fail_memalign = -1,
    .fail_thread   = -1
};


void *__real_malloc(size_t size);
int __real_posix_memalign(void **ptr, size_t align, size_t size);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*func)(void *), void *arg);
long __real_syscall(long number, ...);

void *__wrap_malloc(size_t size);
int __wrap_posix_memalign(void **ptr, size_t align, size_t size);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*func)(void *), void *arg);
long __wrap_syscall(long number, ...);


int gstream_wrap_get(int *number)
{
    return __atomic_load_n(number, __ATOMIC_SEQ_CST);
}

void gstream_wrap_set(int *number, int value)
{
    __atomic_store_n(number, value, __ATOMIC_SEQ_CST);
}

void gstream_wrap_reset(void)
{
    gstream_wrap_set(&gstream_wrap.fail_malloc, -1);
    gstream_wrap_set(&gstream_wrap.fail_memalign, -1);
    gstream_wrap_set(&gstream_wrap.fail_thread, -1);
    gstream_wrap_set(&gstream_wrap.no_timeouts, 0);
}

/* Counts a call down; whether it is the one that fails. */
static int gstream_wrap_fails(int *number)
{
    return __atomic_fetch_sub(number, 1, __ATOMIC_SEQ_CST) == 0;
}

void *__wrap_malloc(size_t size)
{
    __atomic_fetch_add(&gstream_wrap.num_mallocs, 1, __ATOMIC_SEQ_CST);
    return gstream_wrap_fails(&gstream_wrap.fail_malloc) ? NULL :
                                                           __real_malloc(size);
}

int __wrap_posix_memalign(void **ptr, size_t align, size_t size)
{
    return gstream_wrap_fails(&gstream_wrap.fail_memalign) ?
                   ENOMEM :
                   __real_posix_memalign(ptr, align, size);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*func)(void *), void *arg)
{
    return gstream_wrap_fails(&gstream_wrap.fail_thread) ?
                   EAGAIN :
                   __real_pthread_create(thread, attr, func, arg);
}

/* All calls of the library are futex(word, operation, value, timeout). */
long __wrap_syscall(long number, ...)
{
    struct timespec *timeout;
    int operation, value;
    va_list args;
    void *word;

    va_start(args, number);
    word      = va_arg(args, void*);
    operation = va_arg(args, int);
    value     = va_arg(args, int);
    timeout   = va_arg(args, struct timespec*);
    va_end(args);

    if (number != SYS_futex) {
        return __real_syscall(number, word, operation, value, timeout);
    }
    if (operation == FUTEX_WAKE_PRIVATE) {
        __atomic_fetch_add(&gstream_wrap.num_wakes, 1, __ATOMIC_SEQ_CST);
    }
    return __real_syscall(number, word, operation, value,
                          gstream_wrap_get(&gstream_wrap.no_timeouts) ?
                                  NULL :
                                  timeout,
                          NULL, 0);
}
