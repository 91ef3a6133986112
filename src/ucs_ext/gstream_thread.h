/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_thread.h - threads of the library that run commands. */
#ifndef GSTREAM_THREAD_H_
#define GSTREAM_THREAD_H_

#include "api/ucs_gstream.h"

#include <pthread.h>

/* Longest name of a thread, with the final zero; the kernel's limit. */
#define GSTREAM_THREAD_NAME_MAX 16


/**
 * Start a thread that runs on one of these processors, or where the caller may
 * if cpus is NULL. All signals are blocked in it: handlers are the business of
 * the application's threads. Errors are logged with the name.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM if the list is empty or the process can
 *         use none of the processors; UCS_ERR_NO_RESOURCE.
 */
ucs_status_t gstream_thread_start(pthread_t *thread, const char *name,
                                  const ucs_gstream_cpus_t *cpus,
                                  void *(*func)(void *), void *arg);

/**
 * Start a thread that nobody joins, for calls of runtimes that may block. The
 * process's exit gives such threads a second to end. As gstream_thread_start().
 */
ucs_status_t gstream_thread_start_alone(const char *name, void (*func)(void*),
                                        void *arg);

#endif
