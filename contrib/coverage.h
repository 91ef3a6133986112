/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coverage.h - what contrib/coverage.sh has every source include first.
 *
 * Counts are written when a program ends by exit(). Children of tests end by
 * _exit(), which runs nothing of what was registered for the end: a function
 * that writes the counts of the program and of each library takes its place.
 */
#ifndef ST_COVERAGE_H_
#define ST_COVERAGE_H_

#include <unistd.h>

#define ST_COVERAGE_MAX 32

/* Of the program and of each library: each has a function of this name */
extern void __gcov_dump(void);

/* One for all of a process: the dynamic linker takes the first definition.
 * Written by constructors, one at a time. */
__attribute__((weak)) void (*st_coverage_dumps[ST_COVERAGE_MAX])(void);
__attribute__((weak)) unsigned st_coverage_count;


__attribute__((constructor)) static void st_coverage_add(void)
{
    unsigned i;

    for (i = 0; i < st_coverage_count; ++i) {
        if (st_coverage_dumps[i] == __gcov_dump) {
            return;
        }
    }
    if (i < ST_COVERAGE_MAX) {
        st_coverage_dumps[i] = __gcov_dump;
        st_coverage_count    = i + 1;
    }
}

__attribute__((noreturn, unused)) static void st_coverage_exit(int status)
{
    unsigned i;

    for (i = 0; i < st_coverage_count; ++i) {
        st_coverage_dumps[i]();
    }
    (_exit)(status);
}

#define _exit(_status) st_coverage_exit(_status)

#endif
