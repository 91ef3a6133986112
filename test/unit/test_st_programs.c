/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_programs.c - the programs of the integration tests, short and as
 * threads of one process: for the sanitizers.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_cunit.h"
#include "../integration/st_progress.h"
#include "../integration/st_random.h"

#include <CUnit/TestRun.h>

#include <stdlib.h>

#define PERCENT  4  /* of the iterations */
#define PROGRAMS 25
#define LIMIT    90 /* seconds; slow builds on a busy machine */

/* The case has the name of the program */
static void test_progress(void)
{
    st_progress_options_t options = ST_PROGRESS_DEFAULTS;
    int result;

    options.as_threads = 1;
    options.percent    = PERCENT;
    options.limit      = LIMIT;
    result = st_progress_run(CU_get_current_test()->pName, &options);
    if (result == ST_WORLD_SKIP) {
        st_cunit_skip("needs another lane");
    } else {
        CU_ASSERT_EQUAL(result, EXIT_SUCCESS);
    }
}

static void run_random(int as_threads, uint64_t seed)
{
    st_random_options_t options = ST_RANDOM_DEFAULTS;
    st_random_counts_t counts   = {0};

    options.as_threads   = as_threads;
    options.some         = as_threads; /* they share the card's entries */
    options.gen.no_late  = as_threads;
    options.seed         = seed;
    options.count        = PROGRAMS;
    options.gen.max_size = 10000;
    options.limit        = LIMIT;
    CU_ASSERT_EQUAL(st_random_run(&options, &counts), EXIT_SUCCESS);
    CU_ASSERT_EQUAL(counts.programs, PROGRAMS);
    CU_ASSERT(counts.exec.uses > 100);
}

static void test_random_threads(void)
{
    run_random(1, 100);
}

static void test_random_processes(void)
{
    run_random(0, 200);
}

static const st_cunit_case_t cases[] = {
    {"p1", test_progress},
    {"p2", test_progress},
    {"p3", test_progress},
    {"p4", test_progress},
    {"p5", test_progress},
    {"p7", test_progress},
    {"p8", test_progress},
    {"p10", test_progress},
    {"random_threads", test_random_threads},
    {"random_processes", test_random_processes}
};

int main(int argc, char **argv)
{
    return st_cunit_main("st_programs", cases, ST_CUNIT_COUNT(cases), argc,
                         argv);
}
