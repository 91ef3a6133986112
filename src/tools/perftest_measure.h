/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_measure.h - runs all tests with all sizes; the tests take turns in
 * each trial, so that the load of the machine hits all of them.
 */
#ifndef PERFTEST_MEASURE_H_
#define PERFTEST_MEASURE_H_

#include "perftest_report.h"
#include "perftest_side.h"

/* Runs everything. The client reports; 'report' is NULL at the server. Returns
 * PERFTEST_DATA at both if one side has found wrong data. */
perftest_ret_t perftest_measure(perftest_side_t *side,
                                perftest_report_t *report);

#endif
