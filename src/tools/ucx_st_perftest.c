/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_st_perftest.c - latency and bandwidth of stream-triggered messages, and
 * of UCP's tagged ones in the same run: a client and a server.
 *
 *     host1$ ucx_st_perftest
 *     host2$ ucx_st_perftest host1 -t st_lat,tag_lat -s 8:64k
 */
#include "perftest_measure.h"
#include "st_number.h"

#include <ucs/config/parser.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long a peer that is gone may be taken for slow, beside the time that the
 * library has from then on: UCX's own interval of looking after peers */
#define PERFTEST_DETECT_TIME 20.0


/* The processors of this process and of all threads that it will have */
static perftest_ret_t perftest_set_cpus(const char *list)
{
    char *copy = (list == NULL) ? NULL : strdup(list);
    char *next = copy;
    cpu_set_t set;
    size_t cpu;

    CPU_ZERO(&set);
    while (next != NULL) {
        if (st_number_parse(strsep(&next, ","), 0, CPU_SETSIZE - 1,
                            &cpu) != 0) {
            free(copy);
            return perftest_fail(PERFTEST_REFUSED, "-c %s: it takes processor "
                                 "numbers and commas", list);
        }
        CPU_SET(cpu, &set);
    }
    free(copy);
    if ((list != NULL) && (sched_setaffinity(0, sizeof(set), &set) != 0)) {
        return perftest_fail(PERFTEST_REFUSED, "-c %s: %m", list);
    }
    return PERFTEST_OK;
}

/* Seconds that this side may go on for once the other is gone */
static double perftest_time_limit(const perftest_options_t *options)
{
    const char *setting = getenv("UCX_ST_ERR_TIMEOUT");
    double timeout      = 10;

    if (options->timeout >= 0) {
        return options->timeout;
    }
    if ((setting != NULL) &&
        ((ucs_config_sscanf_time(setting, &timeout, NULL) != 1) ||
         !(timeout >= 0) || (timeout > 1e6))) {
        timeout = 10; /* The library judges its setting */
    }
    return timeout + PERFTEST_DETECT_TIME;
}

/* With everything set up. What is BROKEN is left to the process' end: it may
 * wait for ever. */
static perftest_ret_t perftest_work(perftest_side_t *side,
                                    perftest_report_t *report)
{
    perftest_ret_t ret, next;

    ret = perftest_side_create(side);
    if (ret != PERFTEST_OK) {
        return ret;
    }
    ret = perftest_measure(side, side->is_server ? NULL : report);
    if (ret == PERFTEST_REFUSED) {
        perftest_oob_refuse(&side->oob, perftest_last_failure());
    }
    if (ret == PERFTEST_BROKEN) {
        return ret;
    }
    next = perftest_side_destroy(side);
    return (next == PERFTEST_OK) ? ret : next;
}

/* With a connection, which both sides agree on */
static perftest_ret_t perftest_agreed(perftest_side_t *side,
                                      perftest_report_t *report)
{
    perftest_ret_t ret;

    ret = perftest_options_check(side->options);
    if (ret == PERFTEST_OK) {
        if (perftest_watch_start(&side->watch, side->oob.fd,
                                 perftest_time_limit(side->options)) != 0) {
            ret = perftest_fail(PERFTEST_REFUSED, "no thread can be started");
        } else {
            ret = perftest_work(side, report);
            perftest_watch_stop(&side->watch);
        }
    }
    if (ret == PERFTEST_REFUSED) {
        perftest_oob_refuse(&side->oob, perftest_last_failure());
    }
    return ret;
}

static perftest_ret_t perftest_connected(perftest_options_t *options,
                                         perftest_report_t *report)
{
    perftest_side_t *side = calloc(1, sizeof(*side));
    perftest_ret_t ret;

    if (side == NULL) {
        return perftest_fail(PERFTEST_REFUSED, "no memory");
    }
    side->options   = options;
    side->is_server = (options->host == NULL);
    side->die       = options->die;
    ret             = perftest_oob_create(&side->oob, options);
    if (ret == PERFTEST_OK) {
        ret = perftest_agreed(side, report);
        perftest_oob_destroy(&side->oob);
    }
    free(side);
    return ret;
}

int main(int argc, char **argv)
{
    static perftest_report_t report;
    perftest_options_t options;
    perftest_ret_t ret;
    int done = 0;

    ret = perftest_options_parse(&options, argc, argv, &done);
    if ((ret != PERFTEST_OK) || done) {
        return (int)ret;
    }
    ret = perftest_set_cpus(options.cpus);
    if (ret != PERFTEST_OK) {
        return (int)ret;
    }
    ret = perftest_report_create(&report, &options);
    if (ret != PERFTEST_OK) {
        return (int)ret;
    }
    ret = perftest_connected(&options, &report);
    perftest_report_destroy(&report);
    (void)fflush(stdout);
    if (ret == PERFTEST_BROKEN) {
        /* Destructors of the libraries may wait for what is broken */
        _exit(ret);
    }
    return (int)ret;
}
