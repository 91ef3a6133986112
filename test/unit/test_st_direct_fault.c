/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_direct_fault.c - the direct lane where memory runs out, or the kernel
 * refuses what the lane asks for: every allocation, and every call that makes
 * or finds shared memory and pipes, fails once on the way from the creation of
 * two workers to their last wait.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_cunit.h"
#include "st_intercept.h"
#include "st_intercept_file.h"
#include "st_life.h"
#include "st_near.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Lives with the lanes of the environment, until nothing fails any more; how
 * many did, and how many of them in an error */
static int run_lives(int is_calls, int *errors_p)
{
    ucs_status_t status = UCS_OK;
    const char *what    = "allocation";
    holding_t before;
    int number;

    *errors_p = 0;
    CU_ASSERT_EQUAL_FATAL(st_life(), UCS_OK); /* UCX keeps what it opens */
    before = holding();
    for (number = 0; ; ++number) {
        if (is_calls) {
            st_intercept_file_fail(number);
            status = st_life();
            what   = st_intercept_file_failed();
            st_intercept_file_fail(-1);
        } else {
            st_intercept_fail(number);
            status = st_life();
            what   = st_intercept_has_failed() ? what : NULL;
            st_intercept_fail(-1);
        }
        if (what == NULL) {
            break;
        }
        judge(number, what, status, &before);
        *errors_p += (status != UCS_OK);
    }
    CU_ASSERT_EQUAL(status, UCS_OK);
    return number;
}

/* With these lanes; where there are several, no call that fails is in anybody's
 * way */
static void run_with(const char *lanes, int is_calls)
{
    const char *const env[] = {"UCX_TLS", "posix,self", "UCX_ST_LANES", lanes,
                               NULL};
    char *before[NEAR_MAX_ENV];
    int errors, number;

    if (!st_intercept_is_possible()) {
        st_cunit_skip("a sanitizer stands in front of what is to fail");
        return;
    }
    near_env_set(env, before);
    number = run_lives(is_calls, &errors);
    near_env_restore(env, before);
    CU_ASSERT(number > 20);
    printf("lanes %s: %d failures, %d errors\n", lanes, number, errors);
    if (is_calls) {
        CU_ASSERT_EQUAL(errors > 0, !strcmp(lanes, "direct"));
    }
}

static void test_every_call(void)
{
    run_with("direct", 1);
}

static void test_every_call_fallback(void)
{
    run_with("direct,host", 1);
}

static void test_every_allocation(void)
{
    run_with("direct", 0);
}

static const st_cunit_case_t cases[] = {
    {"every_call", test_every_call},
    {"every_call_fallback", test_every_call_fallback},
    {"every_allocation", test_every_allocation}
};

int main(int argc, char **argv)
{
    return st_cunit_main("st_direct_fault", cases, ST_CUNIT_COUNT(cases), argc,
                         argv);
}
