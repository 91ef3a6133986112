/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_fault.c - st workers where memory runs out: every allocation that the
 * libraries make on the way from creation to the last wait fails once. The
 * emulated NIC's are among them, so that libfabric's calls fail, too.
 */
#include "st_cunit.h"
#include "st_intercept.h"
#include "st_life.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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
ST_CASE(every_allocation)
{
    ucs_status_t status = UCS_OK;
    unsigned errors     = 0;
    int number, first, step;
    int64_t before;

    if (!st_intercept_is_possible()) {
        st_cunit_skip("a sanitizer stands in front of the allocator");
        return;
    }
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
    CU_ASSERT_EQUAL(status, UCS_OK);
    CU_ASSERT(number > ST_LIFE_OPS);
    CU_ASSERT((errors > ST_LIFE_OPS) || (first > 0));
    printf("%d of %d allocations failed, %u calls said so\n",
           (number - first) / step, number, errors);
}

ST_SUITE("st_fault")
