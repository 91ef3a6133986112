/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_options.h - the command line of ucx_st_perftest.
 *
 * Some options are shared: both sides run with one value of each. The client
 * sends its own as lines "NAME=VALUE"; the server takes them, and refuses those
 * that differ from what its own command line says.
 */
#ifndef PERFTEST_OPTIONS_H_
#define PERFTEST_OPTIONS_H_

#include "perftest_die.h"
#include "perftest_log.h"

#include <ucs_gstream.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PERFTEST_MAX_TESTS   11
#define PERFTEST_MAX_SIZES   64
#define PERFTEST_MAX_TRIALS  1000
#define PERFTEST_MAX_STREAMS 64
#define PERFTEST_MAX_WINDOW  1024


/* What a process runs with. Set by perftest_options_*(), then constant. */
typedef struct perftest_options {
    /* Shared */
    unsigned       tests[PERFTEST_MAX_TESTS]; /* Indices of perftest_tests */
    size_t         num_tests;
    size_t         sizes[PERFTEST_MAX_SIZES];
    size_t         num_sizes;
    size_t         iterations;                /* Of a trial */
    size_t         warmup;
    size_t         trials;
    size_t         window;
    size_t         ahead;                     /* Iterations; of st tests */
    size_t         streams;
    size_t         check;                     /* 0 or 1 */
    int            is_device;                 /* Buffers are in the streams'
                                                 GPUs */

    /* Of this side */
    uint64_t       given;                     /* Shared ones of the command
                                                 line, as bits */
    const char     *host;                     /* NULL: this is the server */
    const char     *port;
    int            ipv6;
    const char     *cpus;
    int            only_final;
    int            csv;
    const char     *json;
    int            spoil;
    ucs_gstream_type_t stream;
    double         timeout;                   /* Seconds; < 0: by setting */
    perftest_die_t die;
} perftest_options_t;


/* Reads the command line. Returns PERFTEST_OK, with '*done' set if all that was
 * asked for has been printed. */
perftest_ret_t perftest_options_parse(perftest_options_t *options, int argc,
                                      char **argv, int *done);

/* Writes the shared options as lines. */
void perftest_options_print(const perftest_options_t *options, FILE *file);

/* At the server: takes over the client's shared options from the lines of
 * 'text', which is changed. On a difference prints all of them. */
perftest_ret_t perftest_options_merge(perftest_options_t *options, char *text);

/* Checks, once both sides agree, what this side has to do on its own. */
perftest_ret_t perftest_options_check(const perftest_options_t *options);

#endif
