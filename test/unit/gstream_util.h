/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_util.h - what the stream tests share. */
#ifndef GSTREAM_UTIL_H_
#define GSTREAM_UTIL_H_

#include "ucs_gstream.h"
#include "ucs_gstream_event.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>


/** A host stream and what identifies its executor thread. */
typedef struct {
    ucs_gstream_h stream;
    pid_t         tid; /**< Kernel's thread id */
} gstream_util_t;


/** A thread of the host that waits for a stream, or for an event if there is
 *  one. */
typedef struct {
    ucs_gstream_h       stream;
    ucs_gstream_event_h event;
    pthread_t           thread;
    pid_t               tid;    /**< Atomic; 0 until it is about to wait */
    ucs_status_t        status; /**< What the wait returned */
} gstream_util_waiter_t;

/** A case on "stream", which has a thread of its own. What uses the case's own
 *  memory has to have run when it returns. */
#define GSTREAM_CASE(_name) \
    static void st_body_##_name(ucs_gstream_h stream); \
    ST_CASE_CALL(_name, gstream_util_run(st_body_##_name)) \
    static void st_body_##_name(ucs_gstream_h stream)


/** Creates a host stream; NULL (and a failed assertion) if it cannot. */
ucs_gstream_h gstream_util_create(void);

/** Creates a group of so many threads; NULL (and a failed assertion) if it
 *  cannot. */
ucs_gstream_group_h gstream_util_group(unsigned num_threads);

/** Creates a stream on a group, or with a thread of its own if it is NULL. */
ucs_gstream_h gstream_util_create_on(ucs_gstream_group_h group, int priority);

/** HIP, or else CUDA. */
ucs_gstream_type_t gstream_util_type(int is_hip);

/** Creates a stream of HIP, or else of CUDA; _native(): on one of the
 *  application's. Asserts. */
ucs_gstream_h gstream_util_create_gpu(int is_hip);
ucs_gstream_h gstream_util_create_native(int is_hip, void *native);

/** Destroys a group; asserts that it can be. */
void gstream_util_group_finish(ucs_gstream_group_h group);

/** Makes what is created from now on sleep at once when it waits, or not. */
void gstream_util_sleepy(int enable);

/** Waits for a stream and destroys it; asserts that both succeed. */
void gstream_util_finish(ucs_gstream_h stream);

/** Runs the body of a case on a stream. */
void gstream_util_run(void (*body)(ucs_gstream_h stream));

/** Asserts that no stream is created with these parameters, and that this is
 *  why. */
void gstream_util_refused(const ucs_gstream_params_t *params,
                          ucs_status_t status);

/** Creates a host stream and asks its thread for its ids. */
void gstream_util_open(gstream_util_t *util);

/** The same on a group, or with a thread of its own if it is NULL. */
void gstream_util_open_on(gstream_util_t *util, ucs_gstream_group_h group);

/** Commands: a function, and a word to wait for or to write. */
ucs_gstream_cmd_t gstream_util_cmd_func(ucs_gstream_func_t func, void *arg);
ucs_gstream_cmd_t gstream_util_cmd_word(ucs_gstream_cmd_type_t type,
                                        volatile uint64_t *address,
                                        uint64_t value);

/** Enqueues one; asserts. */
void gstream_util_func(ucs_gstream_h stream, ucs_gstream_func_t func,
                       void *arg);
void gstream_util_wait(ucs_gstream_h stream, volatile uint64_t *word,
                       uint64_t value);
void gstream_util_write(ucs_gstream_h stream, volatile uint64_t *word,
                        uint64_t value);

void gstream_util_launch(ucs_gstream_h stream, ucs_gstream_func_t func,
                         const void *args, size_t size);

/** A function of a stream: adds 1 to a uint64_t. */
void gstream_util_count(void *arg);

/** Returns when a thread of this process sleeps in the kernel. */
void gstream_util_until_asleep(pid_t tid);

/** Reads a clock, ns. */
uint64_t gstream_util_clock(clockid_t clock);

/** Looks on for a while at a stream's thread, which sleeps; asserts that this
 *  costs next to nothing. While streams wait it looks at their words from time
 *  to time. */
void gstream_util_check_sleep(const gstream_util_t *util, int is_waiting);

/** Starts a thread that waits; returns when it sleeps in there. */
void gstream_util_waiter_start(gstream_util_waiter_t *waiter);

/** Joins it; asserts that it has waited with success. */
void gstream_util_waiter_join(gstream_util_waiter_t *waiter);

/** Kernel's id of the calling thread. */
pid_t gstream_util_tid(void);

/** Lets time pass: for observing what happens meanwhile. */
void gstream_util_pass_time(unsigned msec);

/** Stores to a word without telling anybody, and loads it. */
void gstream_util_store(volatile uint64_t *word, uint64_t value);
uint64_t gstream_util_load(const volatile uint64_t *word);

/** Stores to a word, and wakes the streams that wait for it. */
void gstream_util_let_go(volatile uint64_t *word, uint64_t value);

/** Sets log level to fatal while errors are provoked, and back. */
void gstream_util_quiet(int quiet);

#endif
