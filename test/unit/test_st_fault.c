/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_fault.c - st workers where memory runs out: every allocation that the
 * libraries make on the way from creation to the last wait fails once. The
 * emulated NIC's are among them, so that libfabric's calls fail, too.
 */
#include "st_cunit.h"
#include "st_intercept.h"
#include "st_life.h"
#include "st_pair.h"
#include "st_window.h"

#include "core/st_peer.h"
#include "core/st_worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LEN 1000

static void say(int number, ucs_status_t status, const char *what)
{
    printf("allocation %d fails", number);
    st_intercept_print(st_intercept_failed_caller());
    printf(": %s%s\n", ucs_status_string(status), what);
    fflush(stdout);
}

static int get_number(const char *name, int value)
{
    return (getenv(name) == NULL) ? value : atoi(getenv(name));
}

/* One in five in a run, from another first one each time: a scenario is slow.
 * ST_FAULT_STEP=1 ST_FAULT_FIRST=0 are all of them. */
ST_CASE_IF(every_allocation, st_intercept_is_possible(),
           "a sanitizer stands in front of the allocator")
{
    ucs_status_t status = UCS_OK;
    unsigned errors     = 0;
    int number, first, step;
    int64_t before;

    CU_ASSERT_EQUAL_FATAL(st_life(), UCS_OK);
    before = st_intercept_outstanding();
    CU_ASSERT_EQUAL_FATAL(st_life(), UCS_OK);
    CU_ASSERT_EQUAL(st_intercept_outstanding(), before);
    step  = get_number("ST_FAULT_STEP", 5);
    first = get_number("ST_FAULT_FIRST", (int)(time(NULL) % step));
    printf("ST_FAULT_STEP=%d ST_FAULT_FIRST=%d\n", step, first);
    for (number = first; number < 100000; number += step) {
        st_intercept_fail(number);
        status = st_life();
        if (!st_intercept_has_failed()) {
            break;
        }
        if (getenv("ST_VERBOSE") != NULL) {
            say(number, status, "");
        }
        errors += (status != UCS_OK);
        if ((status != UCS_OK) && !st_life_is_fair(status)) {
            say(number, status, ": unexpected");
            CU_FAIL("what is said");
        }
        if (st_intercept_outstanding() != before) {
            say(number, status, ": something is left over");
            st_intercept_print_outstanding();
            printf("\n");
            CU_FAIL("what is left over");
            before = st_intercept_outstanding();
        }
    }
    st_intercept_fail(-1);
    CU_ASSERT_EQUAL(status, UCS_OK);
    CU_ASSERT(number > ST_LIFE_OPS);
    CU_ASSERT((errors > ST_LIFE_OPS) || (first > 0));
    printf("%d of %d allocations failed, %u calls said so\n",
           (number - first) / step, number, errors);
}

/* Put from A to B, where an allocation may fail; what A's queue says */
static ucs_status_t try_put(st_window_t *window, int number)
{
    ucp_st_rma_params_t params = st_rma_params(window, 0, LEN);
    ucp_st_queue_h queue       = window->side->queue;
    ucs_status_t status;

    st_intercept_fail(number);
    status = ucp_st_enqueue_put(queue, &params);
    if (status == UCS_OK) {
        status = ucp_st_enqueue_quiet(queue);
    }
    if (status == UCS_OK) {
        status = ucp_st_queue_wait(queue, NULL);
    }
    return status;
}

/* Why a side has declared its peer gone, or UCS_OK */
static ucs_status_t peer_status(st_side_t *side)
{
    ucs_status_t status;

    ucp_st_worker_lock(side->worker);
    status = side->peer->status;
    ucp_st_worker_unlock(side->worker);
    return status;
}

/* Non-zero if an allocation failed; `refused` counts puts that the target had
 * no memory for: A's stream goes on, and nothing was written */
static int test_put(int number, unsigned *refused)
{
    static const uint8_t zeros[LEN];
    st_window_t windows[2];
    st_pair_t pair;
    ucs_status_t status;
    int has_failed;

    st_pair_init(&pair);
    st_windows_init(&pair, windows, LEN, 1);
    CU_ASSERT_EQUAL(try_put(&windows[ST_A], -1), UCS_OK); /* of zeros */
    st_fill(windows[ST_A].memory, LEN, number);
    status     = try_put(&windows[ST_A], number);
    has_failed = st_intercept_has_failed();
    st_intercept_fail(-1);
    CU_ASSERT((status == UCS_OK) || st_life_is_fair(status));
    CU_ASSERT((status != UCS_OK) ||
              st_check(windows[ST_B].memory, LEN, number));
    if (status == UCS_ERR_CONNECTION_RESET) {
        ++*refused;
        CU_ASSERT_NOT_EQUAL(peer_status(&pair.side[ST_B]), UCS_OK);
        CU_ASSERT_TRUE(!memcmp(windows[ST_B].memory, zeros, LEN));
    }
    st_windows_cleanup(windows);
    st_pair_cleanup(&pair);
    return has_failed;
}

/* On lane host the target answers, and cannot without memory: it declares the
 * origin gone */
ST_CASE_IF(put, st_lane() == UCP_ST_LANE_HOST,
           "on other lanes the target does nothing")
{
    unsigned refused = 0;
    int number       = 0;

    if (!st_intercept_is_possible()) {
        st_cunit_skip("a sanitizer stands in front of the allocator");
        return;
    }
    while (test_put(number, &refused)) {
        ++number;
    }
    CU_ASSERT_EQUAL(refused, 1);
}

ST_SUITE("st_fault")
