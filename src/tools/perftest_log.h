/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_log.h - what ucx_st_perftest tells, and how it ends. */
#ifndef PERFTEST_LOG_H_
#define PERFTEST_LOG_H_

/* How a part of the program ended; the exit status of the program. What is not
 * PERFTEST_OK has been printed, once, where it was decided. */
typedef enum {
    PERFTEST_OK      = 0,
    PERFTEST_REFUSED = 1, /* Usage, setup, or what cannot be served */
    PERFTEST_DATA    = 2, /* Everything ran, and some data was wrong */
    PERFTEST_PEER    = 3, /* The other side is gone, and was told to be */
    PERFTEST_BROKEN  = 4  /* Another error while running, or the library broke
                             a guarantee */
} perftest_ret_t;

/* Prints a line to stderr and remembers it; returns 'ret'. */
perftest_ret_t perftest_fail(perftest_ret_t ret, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The line that perftest_fail() printed last, "" if none. */
const char *perftest_last_failure(void);

#endif
