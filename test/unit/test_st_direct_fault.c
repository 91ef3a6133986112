/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_direct_fault.c - the direct lane where memory runs out, or the kernel
 * refuses what the lane asks for: every allocation, and every call that makes
 * or finds shared memory and pipes, fails once on the way from the creation of
 * two workers to their last wait. They are of one process, or the second one is
 * of a process in which nothing fails, whose files are mapped.
 */
#include "st_cunit.h"
#include "st_far.h"
#include "st_far_life.h"
#include "st_intercept.h"
#include "st_intercept_file.h"
#include "st_life.h"
#include "st_near.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_BLOCK (2ul << 20) /* in a file of its own */

/** What this process holds. */
typedef struct {
    int     fds;
    int     maps;
    int64_t allocations;
} holding_t;

static holding_t holding(void)
{
    return (holding_t) {
        .fds         = near_count_fds(),
        .maps        = near_count_maps(),
        .allocations = st_intercept_outstanding()
    };
}

/* One life in which something has failed. The same is held as before it. */
static void judge(int number, const char *what, ucs_status_t status,
                  holding_t *before)
{
    int is_fair     = (status == UCS_OK) || st_life_is_fair(status);
    holding_t after = holding();

    if (!is_fair || (getenv("ST_VERBOSE") != NULL)) {
        printf("%s, number %d, fails: %s\n", what, number,
               ucs_status_string(status));
    }
    CU_ASSERT_TRUE(is_fair);
    if (memcmp(&after, before, sizeof(after))) {
        printf("%s, number %d, fails: %d files, %d mappings, %ld allocations "
               "more\n", what, number, after.fds - before->fds,
               after.maps - before->maps,
               (long)(after.allocations - before->allocations));
        CU_FAIL("what is left over");
        *before = after;
    }
}

/** Whose lives they are. */
typedef ucs_status_t (*life_func_t)(void);

/** How many lives had something that failed. */
typedef struct {
    int lives;
    int errors; /* of these, those that ended with one */
    int maps;   /* ... in which memory was not mapped */
} faults_t;

/* Lives with the lanes of the environment, until nothing fails any more */
static faults_t run_lives(life_func_t life, int is_calls)
{
    faults_t faults     = {.lives = 0};
    ucs_status_t status = UCS_OK;
    const char *what    = "allocation";
    holding_t before;

    CU_ASSERT_EQUAL_FATAL(life(), UCS_OK); /* UCX keeps what it opens */
    before = holding();
    for (;; ++faults.lives) {
        if (is_calls) {
            st_intercept_file_fail(faults.lives);
            status = life();
            what   = st_intercept_file_failed();
            st_intercept_file_fail(-1);
        } else {
            st_intercept_fail(faults.lives);
            status = life();
            what   = st_intercept_has_failed() ? what : NULL;
            st_intercept_fail(-1);
        }
        judge(faults.lives, (what == NULL) ? "nothing" : what, status, &before);
        if (what == NULL) {
            break;
        }
        faults.errors += (status != UCS_OK);
        faults.maps   += !strcmp(what, "mmap");
    }
    CU_ASSERT_EQUAL(status, UCS_OK);
    return faults;
}

/* With these lanes; where there are several, no call that fails is in anybody's
 * way */
static void run_with(life_func_t life, const char *lanes, int is_calls)
{
    const char *const env[] = {"UCX_TLS", "posix,self", "UCX_ST_LANES", lanes,
                               NULL};
    char *before[NEAR_MAX_ENV];
    faults_t faults;

    if (!st_intercept_is_possible()) {
        st_cunit_skip("a sanitizer stands in front of what is to fail");
        return;
    }
    near_env_set(env, before);
    faults = run_lives(life, is_calls);
    near_env_restore(env, before);
    CU_ASSERT(faults.lives > 20);
    printf("lanes %s: %d failures, %d errors\n", lanes, faults.lives,
           faults.errors);
    if (is_calls) {
        CU_ASSERT_EQUAL(faults.errors > 0, !strcmp(lanes, "direct"));
        CU_ASSERT(faults.maps > 0);
    }
}

ST_CASE_CALL(every_call, run_with(st_life, "direct", 1))
ST_CASE_CALL(every_call_fallback, run_with(st_life, "direct,host", 1))
ST_CASE_CALL(every_allocation, run_with(st_life, "direct", 0))

/* Kernels with other rules for memory. A life then has all that it needs;
 * non-zero if memory was taken before it was written to. */
static int run_on(st_intercept_kernel_t kernel)
{
    const char *const env[] = {"UCX_TLS", "posix,self", "UCX_ST_LANES",
                               "direct", NULL};
    void *block             = NULL;
    char *before[NEAR_MAX_ENV];
    int is_taken;

    st_intercept_file_kernel(kernel);
    near_env_set(env, before);
    CU_ASSERT_EQUAL(st_life(), UCS_OK);
    near_env_restore(env, before);
    CU_ASSERT_EQUAL(ucp_st_mem_alloc(LONG_BLOCK, &block), UCS_OK);
    is_taken = (st_intercept_file_allocated() >= LONG_BLOCK);
    CU_ASSERT_EQUAL(ucp_st_mem_free(block), UCS_OK);
    st_intercept_file_kernel(ST_INTERCEPT_KERNEL_OURS);
    return is_taken;
}

ST_CASE_IF(kernels, st_intercept_is_possible(),
           "a sanitizer stands in front of what is to fail")
{
    CU_ASSERT_FALSE(run_on(ST_INTERCEPT_KERNEL_OURS));
    CU_ASSERT_FALSE(run_on(ST_INTERCEPT_KERNEL_NOEXEC));
    CU_ASSERT_FALSE(run_on(ST_INTERCEPT_KERNEL_OLD));
    CU_ASSERT_TRUE(run_on(ST_INTERCEPT_KERNEL_STRICT));
}

/* Memory that there is not cannot be taken: an error, and no fault later */
ST_CASE_IF(strict_no_memory, st_intercept_is_possible(),
           "a sanitizer stands in front of what is to fail")
{
    void *block = NULL;
    int number  = 0;
    const char *failed;
    ucs_status_t status;

    st_intercept_file_kernel(ST_INTERCEPT_KERNEL_STRICT);
    run_with(st_life, "direct", 1);
    do {
        st_intercept_file_fail(number++);
        status = ucp_st_mem_alloc(LONG_BLOCK, &block);
        failed = st_intercept_file_failed();
        CU_ASSERT_EQUAL(status == UCS_OK, (failed == NULL) ||
                                          !strcmp(failed, "open"));
        if (status == UCS_OK) {
            CU_ASSERT_EQUAL(ucp_st_mem_free(block), UCS_OK);
        }
    } while (failed != NULL);
    CU_ASSERT(number > 5);
    st_intercept_file_fail(-1);
    st_intercept_file_kernel(ST_INTERCEPT_KERNEL_OURS);
}

static ucs_status_t far_send(void)
{
    return st_far_life(1);
}

static ucs_status_t far_recv(void)
{
    return st_far_life(0);
}

static void run_far(life_func_t life, int is_calls)
{
    run_with(life, "direct", is_calls);
    if (st_intercept_is_possible()) {
        st_far_life_end();
    }
}

ST_CASE_CALL(far_call_send, run_far(far_send, 1))
ST_CASE_CALL(far_call_recv, run_far(far_recv, 1))
ST_CASE_CALL(far_allocation, run_far(far_send, 0))

int main(int argc, char **argv)
{
    st_far_t far;

    st_intercept_file_init(argv);
    if (st_far_task(&far) != NULL) {
        return st_cunit_alone("st_direct_other", st_far_life_other, argc, argv);
    }
    return st_cunit_main("st_direct_fault", argc, argv);
}
