/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coverage.h - what contrib/coverage.sh has every source include first.
 *
 * Counts are written when a program ends by exit(). Children of tests end by
 * _exit(), which runs nothing of what was registered for the end: a function
 * that writes the counts of the program and of each library takes its place.
 * Libraries that the program opens are among them.
 */
#ifndef ST_COVERAGE_H_
#define ST_COVERAGE_H_

#include <unistd.h>

#define ST_COVERAGE_MAX 32

/* Of the program and of each library: each has a function of this name, which
 * the others must not take for theirs */
extern void __gcov_dump(void) __attribute__((visibility("hidden")));

extern void *dlsym(void *handle, const char *name);

/* One for all of a process: the program's, where it exports it. Written by
 * constructors, one at a time. */
__attribute__((weak)) struct {
    unsigned count;
    void     (*dumps[ST_COVERAGE_MAX])(void);
} st_coverage;


/* The table of a library that hides its symbols is not the one that is read. */
__attribute__((constructor)) static void st_coverage_add(void)
{
    __typeof__(&st_coverage) all = dlsym(NULL, "st_coverage");
    unsigned i;

    all = (all == NULL) ? &st_coverage : all;
    for (i = 0; i < all->count; ++i) {
        if (all->dumps[i] == __gcov_dump) {
            return;
        }
    }
    if (i < ST_COVERAGE_MAX) {
        all->dumps[i] = __gcov_dump;
        all->count    = i + 1;
    }
}

__attribute__((noreturn, unused)) static void st_coverage_exit(int status)
{
    unsigned i;

    for (i = 0; i < st_coverage.count; ++i) {
        st_coverage.dumps[i]();
    }
    (_exit)(status);
}

#define _exit(_status) st_coverage_exit(_status)

#endif
