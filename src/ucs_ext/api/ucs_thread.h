/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file ucs_thread.h
 * How the libraries, and the emulated card, start threads of their own. Not
 * installed; it needs nothing but the C library.
 */
#ifndef UCS_EXT_THREAD_H_
#define UCS_EXT_THREAD_H_

#include <pthread.h>

#pragma GCC visibility push(hidden)

/**
 * As pthread_create(). The application's signals are for its own threads: all
 * are blocked, but those that an instruction of the thread causes. The kernel
 * ends a process that blocks these without calling a handler, and there are
 * such: those of debuggers, and of libraries (an emulated device's page, a
 * guarded copy).
 *
 * Threads: any.
 *
 * @param [out] thread The thread; filled on success only.
 * @param [in]  attr   Its attributes, or NULL.
 * @param [in]  func   What it runs.
 * @param [in]  arg    The argument of that.
 *
 * @return 0, or an errno.
 */
int ucs_thread_create(pthread_t *thread, const pthread_attr_t *attr,
                      void *(*func)(void*), void *arg);

#pragma GCC visibility pop

#endif
