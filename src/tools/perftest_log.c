/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_log.c - what ucx_st_perftest tells, and how it ends. */
#include "perftest_log.h"

#include <stdarg.h>
#include <stdio.h>


/* Main thread only */
static char perftest_failure[1024];

perftest_ret_t perftest_fail(perftest_ret_t ret, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(perftest_failure, sizeof(perftest_failure), format, ap);
    va_end(ap);
    /* In one piece: two processes may share the terminal */
    (void)fflush(stdout);
    fprintf(stderr, "ucx_st_perftest: %s\n", perftest_failure);
    return ret;
}

const char *perftest_last_failure(void)
{
    return perftest_failure;
}
