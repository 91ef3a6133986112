/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_intercept.h - what the project's libraries ask of the system: counted, and
 * refused on demand. The program's own functions stand in front of the C
 * library's; calls from elsewhere (UCX, libfabric, the test) pass through.
 *
 * Not together with a sanitizer, which stands there itself.
 */
#ifndef ST_INTERCEPT_H_
#define ST_INTERCEPT_H_

#include <stdint.h>

/** Which libraries' calls are looked at. */
enum {
    ST_INTERCEPT_ST   = 1u << 0, /**< libucp_st, libucs_ext */
    ST_INTERCEPT_TRIG = 1u << 1, /**< libuct_cxitrig, the emulated NIC in it */
    ST_INTERCEPT_ALL  = ST_INTERCEPT_ST | ST_INTERCEPT_TRIG
};

/** Calls since st_intercept_start(). */
typedef struct st_intercept_counts {
    uint64_t allocations;
    uint64_t frees;
    uint64_t mutex_locks;
    uint64_t system_calls; /**< read, write, poll, ppoll, futex by
                                  syscall() */
} st_intercept_counts_t;


/** The library whose code an address is in; 0: another one. */
unsigned st_intercept_library(const void *address);

/** Zero if this build can intercept nothing. */
int st_intercept_is_possible(void);

/** Count the calls of some libraries from now on, of the calling thread alone
 *  or of all. */
void st_intercept_start(unsigned libraries, int this_thread);

/** Stop, and tell. */
st_intercept_counts_t st_intercept_stop(void);

/** Have allocation number `number` (from 0) from now on by any of the libraries
 *  fail; a negative number ends that. */
void st_intercept_fail(int number);

/** Non-zero once that one was asked for. */
int st_intercept_has_failed(void);

/** Where it was asked for: an address in the library's code. */
const void *st_intercept_failed_caller(void);

/** Allocations of the libraries that were not freed. */
int64_t st_intercept_outstanding(void);

/** Print where those were made that came since the last st_intercept_fail(). */
void st_intercept_print_outstanding(void);

/** Whether the kernel is to have no pidfd_open(), from now on. */
void st_intercept_no_pidfd(int is_missing);

/** Print an address of a library's code, as addr2line takes it. */
void st_intercept_print(const void *caller);

#endif
