/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_wrap.h - system calls of the library that tests let fail, count, or
 * have without time limits.
 *
 * For tests that are built with the library's objects and linked with
 * GSTREAM_WRAP_FLAGS.
 */
#ifndef GSTREAM_WRAP_H_
#define GSTREAM_WRAP_H_


/** Set by the main thread, counted in any; all are atomic. */
typedef struct gstream_wrap {
    int fail_malloc; /**< Which of the next calls fails; negative for none */
    int fail_memalign;
    int fail_thread;
    int num_mallocs;
    int num_wakes;   /**< Of futexes */
    int no_timeouts; /**< Nothing but a wake ends a sleep */
} gstream_wrap_t;

extern gstream_wrap_t gstream_wrap;


/** Lets nothing fail, and sleeps end in time; counts stay. */
void gstream_wrap_reset(void);

/** Value of one of the fields. */
int gstream_wrap_get(int *number);

/** Sets one of the fields. */
void gstream_wrap_set(int *number, int value);

#endif
