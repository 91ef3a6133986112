/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_die.c - a side that kills or stops itself. */
#include "perftest_die.h"
#include "st_number.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>


int perftest_die_parse(perftest_die_t *die, const char *text, int signum)
{
    static const char *const names[] = {
        [PERFTEST_DIE_MATCH] = "match",
        [PERFTEST_DIE_START] = "start",
        [PERFTEST_DIE_WAIT]  = "wait"
    };
    perftest_die_point_t point;

    die->signum = signum;
    for (point = PERFTEST_DIE_MATCH; point <= PERFTEST_DIE_WAIT; ++point) {
        if (strcmp(text, names[point]) == 0) {
            die->point = point;
            return 0;
        }
    }
    die->point = PERFTEST_DIE_ITERATION;
    return st_number_parse(text, 0, SIZE_MAX, &die->iteration);
}

int perftest_die_is_at(perftest_die_t *die, perftest_die_point_t point)
{
    if (die->point != point) {
        return 0;
    }
    die->point = PERFTEST_DIE_NEVER;
    return 1;
}

int perftest_die_is_iteration(perftest_die_t *die)
{
    if ((die->point != PERFTEST_DIE_ITERATION) || (die->iteration-- > 0)) {
        return 0;
    }
    die->point = PERFTEST_DIE_NEVER;
    return 1;
}

void perftest_die_now(int signum)
{
    static const char text[] = "ucx_st_perftest: ends or stops itself here, "
                               "as it was told\n";
    ssize_t ret;

    ret = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)ret;
    (void)raise(signum);
}
