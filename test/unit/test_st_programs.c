/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_programs.c - the programs of the integration tests, short and as
 * threads of one process: for the sanitizers.
 */
#include "st_cunit.h"
#include "st_pair.h"
#include "../integration/st_any.h"
#include "../integration/st_progress.h"
#include "../integration/st_random.h"

#include <stdlib.h>

#define PERCENT  4  /* of the iterations */
#define PROGRAMS 25
#define LIMIT    300 /* seconds; slow builds on a busy machine */

static void run_program(const char *name)
{
    st_progress_options_t options = ST_PROGRESS_DEFAULTS;
    int result;

    options.as_threads = 1;
    options.percent    = PERCENT;
    options.limit      = LIMIT;
    result = st_progress_run(name, &options);
    if (result == ST_WORLD_SKIP) {
        st_cunit_skip("needs another lane");
    } else {
        CU_ASSERT_EQUAL(result, EXIT_SUCCESS);
    }
}

/* Each side has entries for a few operations alone */
static void run_few_entries(const char *name)
{
    setenv("UCX_CXI_TRIG_DEFERRED_ENTRIES", "16", 1);
    run_program(name);
    unsetenv("UCX_CXI_TRIG_DEFERRED_ENTRIES");
}

/* Over two lanes, of which one is trig: it has room for some of the messages */
static void run_p8(void)
{
    if (st_lane() == UCP_ST_LANE_TRIG) {
        run_few_entries("p8");
    } else {
        st_cunit_skip("needs lane trig");
    }
}

static void run_random(int as_threads, uint64_t seed)
{
    st_random_options_t options = ST_RANDOM_DEFAULTS;
    st_random_counts_t counts   = {0};

    /* Threads have all streams in one process */
    if (as_threads &&
        !st_any_apart(ST_PROG_MAX_RANKS * ST_PROG_MAX_STREAMS)) {
        st_cunit_skip("there are too few hardware queues: set "
                      "CUDA_DEVICE_MAX_CONNECTIONS or GPU_MAX_HW_QUEUES");
        return;
    }
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

ST_CASE_CALL(p1, run_program("p1"))
ST_CASE_CALL(p2, run_program("p2"))
ST_CASE_CALL(p3, run_program("p3"))
ST_CASE_CALL(p4, run_program("p4"))
ST_CASE_CALL(p4_few_entries, run_few_entries("p4"))
ST_CASE_CALL(p5, run_program("p5"))
ST_CASE_CALL(p7, run_program("p7"))
ST_CASE_CALL(p8, run_p8())
ST_CASE_CALL(p10, run_program("p10"))
ST_CASE_CALL(random_threads, run_random(1, 100))
ST_CASE_CALL(random_processes, run_random(0, 200))

ST_SUITE("st_programs")
