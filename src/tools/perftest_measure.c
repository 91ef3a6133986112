/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_measure.c - all tests with all sizes, in turns. */
#include "perftest_measure.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Repetitions with new data, beside the timed ones */
#define PERFTEST_CHECKS 5


/* The tests of one size */
typedef struct perftest_round {
    perftest_side_t   *side;
    size_t            size;
    perftest_run_t    *runs[PERFTEST_MAX_TESTS]; /* NULL: not made */
    perftest_result_t *results;
} perftest_round_t;


static const perftest_test_t *perftest_round_test(const perftest_round_t *round,
                                                  size_t i)
{
    return &perftest_tests[round->side->options->tests[i]];
}

/* Microseconds of one message: half a round trip, or of all that were sent */
static double perftest_message_us(const perftest_run_t *run,
                                  uint64_t elapsed_ns)
{
    double count = (double)(run->total - run->warmup);

    count *= (run->test->pattern == PERFTEST_PATTERN_LAT) ?
             2.0 : (double)run->num_channels;
    return (double)elapsed_ns / 1e3 / count;
}

static perftest_ret_t perftest_round_create(perftest_round_t *round)
{
    const perftest_options_t *options = round->side->options;
    perftest_ret_t ret                = PERFTEST_OK;
    perftest_result_t *result;
    uint64_t start;
    size_t i;

    for (i = 0; (i < options->num_tests) && (ret == PERFTEST_OK); ++i) {
        result           = &round->results[i];
        result->test     = perftest_round_test(round, i);
        result->errors   = 0;
        start            = perftest_now();
        ret              = perftest_run_create(round->side, result->test,
                                               round->size, &round->runs[i]);
        result->setup_us = (double)(perftest_now() - start) / 1e3;
        if (ret == PERFTEST_OK) {
            result->lane = result->test->engine->lane(round->runs[i]);
        }
    }
    return ret;
}

/* Returns 'ret', or what went wrong here if nothing did before */
static perftest_ret_t perftest_round_destroy(perftest_round_t *round,
                                             perftest_ret_t ret)
{
    perftest_ret_t next;
    size_t i;

    for (i = 0; i < round->side->options->num_tests; ++i) {
        if (round->runs[i] != NULL) {
            next = perftest_run_destroy(round->runs[i]);
            ret  = ((ret == PERFTEST_OK) || (next == PERFTEST_BROKEN)) ? next :
                                                                         ret;
        }
    }
    return ret;
}

static perftest_ret_t perftest_round_trial(perftest_round_t *round,
                                           size_t trial)
{
    const perftest_options_t *options = round->side->options;
    perftest_ret_t ret                = PERFTEST_OK;
    perftest_result_t *result;
    uint64_t elapsed;
    size_t i;

    for (i = 0; (i < options->num_tests) && (ret == PERFTEST_OK); ++i) {
        result                 = &round->results[i];
        elapsed                = 0;
        ret                    = perftest_run_repeat(round->runs[i],
                                                     options->warmup,
                                                     options->iterations,
                                                     &elapsed, &result->errors);
        result->time_us[trial] = perftest_message_us(round->runs[i], elapsed);
    }
    return ret;
}

static perftest_ret_t perftest_round_check(perftest_round_t *round)
{
    perftest_ret_t ret = PERFTEST_OK;
    perftest_run_t *run;
    uint64_t elapsed;
    size_t i, k;

    for (i = 0; i < round->side->options->num_tests; ++i) {
        run = round->runs[i];
        for (k = 0; (k < PERFTEST_CHECKS) && (ret == PERFTEST_OK); ++k) {
            ret = perftest_run_repeat(run, 0, run->channels[0].slots, &elapsed,
                                      &round->results[i].errors);
        }
    }
    return ret;
}

static perftest_ret_t perftest_round_run(perftest_round_t *round)
{
    const perftest_options_t *options = round->side->options;
    perftest_ret_t ret;
    size_t trial;

    ret = perftest_round_create(round);
    for (trial = 0; (trial < options->trials) && (ret == PERFTEST_OK);
         ++trial) {
        ret = perftest_round_trial(round, trial);
    }
    if ((ret == PERFTEST_OK) && options->check) {
        ret = perftest_round_check(round);
    }
    return ret;
}

/* The buffers of one size are there at once, at both sides */
static perftest_ret_t perftest_check_memory(const perftest_round_t *round)
{
    const perftest_options_t *options = round->side->options;
    double machine                    = (double)sysconf(_SC_PHYS_PAGES) *
                                        (double)sysconf(_SC_PAGESIZE);
    double needed                     = 0;
    size_t i;

    for (i = 0; i < options->num_tests; ++i) {
        needed += (double)perftest_run_memory(round->side,
                                              perftest_round_test(round, i),
                                              round->size);
    }
    if (needed > machine / 4) {
        return perftest_fail(PERFTEST_REFUSED, "messages of %zu bytes need "
                             "%.0f MiB at each side, more than a quarter of "
                             "this machine's %.0f: take a smaller -s, -O or "
                             "-T, or fewer tests", round->size,
                             needed / 1048576, machine / 1048576);
    }
    return PERFTEST_OK;
}

/* One size */
static perftest_ret_t perftest_measure_size(perftest_round_t *round,
                                            perftest_report_t *report,
                                            uint64_t *errors)
{
    perftest_ret_t ret;
    size_t i;

    memset(round->runs, 0, sizeof(round->runs));
    ret = perftest_check_memory(round);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    ret = perftest_round_run(round);
    if ((ret == PERFTEST_OK) && (report != NULL)) {
        perftest_report_add(report, round->size, round->results);
    }
    for (i = 0; i < round->side->options->num_tests; ++i) {
        *errors += round->results[i].errors;
    }
    /* Another error than those expected leaves things in use */
    return (ret == PERFTEST_BROKEN) ? ret : perftest_round_destroy(round, ret);
}

/* This side's counts; free() them */
static char *perftest_counts(const perftest_side_t *side)
{
    char *text  = NULL;
    size_t size = 0;
    FILE *file  = open_memstream(&text, &size);

    if (file != NULL) {
        if (side->st != NULL) {
            ucp_st_worker_print_stats(side->st, file);
        }
        (void)fclose(file);
    }
    return text;
}

static perftest_ret_t perftest_measure_counts(perftest_side_t *side,
                                              perftest_report_t *report)
{
    char *counts = perftest_counts(side);
    perftest_ret_t ret;
    size_t length;
    void *theirs;

    if (counts == NULL) {
        return perftest_fail(PERFTEST_REFUSED, "no memory for counts");
    }
    ret = perftest_oob_send(&side->oob, PERFTEST_MSG_COUNTS, counts,
                            strlen(counts));
    if (ret == PERFTEST_OK) {
        ret = perftest_oob_recv(&side->oob, PERFTEST_MSG_COUNTS, &theirs,
                                &length);
    }
    if (ret == PERFTEST_OK) {
        if (report != NULL) {
            ret = perftest_report_end(report, counts, theirs);
        }
        free(theirs);
    }
    free(counts);
    return ret;
}

perftest_ret_t perftest_measure(perftest_side_t *side,
                                perftest_report_t *report)
{
    const perftest_options_t *options = side->options;
    perftest_ret_t ret                = PERFTEST_OK;
    perftest_round_t round            = {.side = side};
    uint64_t errors                   = 0;
    size_t i;

    round.results = calloc(options->num_tests, sizeof(*round.results));
    if (round.results == NULL) {
        return perftest_fail(PERFTEST_REFUSED, "no memory for results");
    }
    if (report != NULL) {
        perftest_report_begin(report);
    }
    for (i = 0; (i < options->num_sizes) && (ret == PERFTEST_OK); ++i) {
        round.size = options->sizes[i];
        ret        = perftest_measure_size(&round, report, &errors);
    }
    free(round.results);
    if (ret == PERFTEST_OK) {
        ret = perftest_measure_counts(side, report);
    }
    return ((ret == PERFTEST_OK) && (errors > 0)) ? PERFTEST_DATA : ret;
}
