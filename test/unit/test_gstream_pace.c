/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_pace.c - a thread that waits pauses, then yields, then sleeps.
 */
#include "gstream_pace.h"
#include "gstream_util.h"
#include "st_cunit.h"

#include <stdlib.h>

#define SPIN 7


/* Steps until the thread is to sleep */
static unsigned count_steps(gstream_pace_t *pace)
{
    unsigned steps = 0;

    while (gstream_pace_step(pace)) {
        ++steps;
    }
    return steps;
}

/* With no time to yield a thread sleeps behind its pauses, and at once if it
 * does not pause */
ST_CASE(spin)
{
    static const gstream_pace_config_t config = {.spin       = SPIN,
                                                 .yield_time = 0};
    gstream_pace_t pace;

    gstream_pace_begin_spin(&pace, &config);
    CU_ASSERT_EQUAL(count_steps(&pace), SPIN);
    CU_ASSERT_EQUAL(count_steps(&pace), 0);
    gstream_pace_begin_yield(&pace, &config);
    CU_ASSERT_EQUAL(count_steps(&pace), 0);
}

/* It yields for the whole time, and no longer: how often is the machine's
 * affair */
ST_CASE(yield)
{
    static const gstream_pace_config_t configs[] = {
        {.spin = SPIN, .yield_time = 1e-9}, {.spin = SPIN, .yield_time = 2e-3}
    };
    gstream_pace_t pace;
    uint64_t start;
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(configs); ++i) {
        gstream_pace_begin_spin(&pace, &configs[i]);
        start = gstream_util_clock(CLOCK_MONOTONIC);
        CU_ASSERT(count_steps(&pace) > SPIN);
        CU_ASSERT(gstream_util_clock(CLOCK_MONOTONIC) - start >=
                  (uint64_t)(configs[i].yield_time * 1e9));
        CU_ASSERT_EQUAL(count_steps(&pace), 0);
    }
    gstream_pace_begin_yield(&pace, &configs[0]);
    CU_ASSERT_EQUAL(count_steps(&pace), 1);
}

/* What the environment says */
ST_CASE(settings)
{
    static const struct {
        const char *text;
        double     yield_time;
    } values[] = {{"0", 0}, {"3us", 3e-6}, {"1s", 1}, {"20s", 1}};
    gstream_pace_config_t config;
    size_t i;

    setenv("UCX_GSTREAM_SPIN", "13", 1);
    for (i = 0; i < ST_CUNIT_COUNT(values); ++i) {
        setenv("UCX_GSTREAM_YIELD_TIME", values[i].text, 1);
        CU_ASSERT_EQUAL(gstream_pace_config_read(&config), UCS_OK);
        CU_ASSERT_EQUAL(config.spin, 13);
        CU_ASSERT_EQUAL(config.yield_time, values[i].yield_time);
    }
    unsetenv("UCX_GSTREAM_YIELD_TIME");
    setenv("UCX_GSTREAM_SPIN", "auto", 1);
    gstream_util_quiet(1);
    CU_ASSERT_NOT_EQUAL(gstream_pace_config_read(&config), UCS_OK);
    gstream_util_quiet(0);
    unsetenv("UCX_GSTREAM_SPIN");
}

ST_SUITE("gstream_pace")
