/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_options.c - the command line of ucx_st_perftest. */
#include "ucx_st_config.h"

#include "perftest_options.h"
#include "perftest_shared.h"
#include "perftest_test.h"
#include "st_number.h"
#include "st_stream.h"

#include <ucs/config/parser.h>

#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Values of long options without a letter */
enum {
    PERFTEST_OPT_TRIALS = 256,
    PERFTEST_OPT_AHEAD,
    PERFTEST_OPT_CHECK,
    PERFTEST_OPT_JSON,
    PERFTEST_OPT_DIE_AT,
    PERFTEST_OPT_STOP_AT,
    PERFTEST_OPT_SPOIL,
    PERFTEST_OPT_STREAM,
    PERFTEST_OPT_TIMEOUT,
    PERFTEST_OPT_VERSION
};

static const struct option perftest_long_options[] = {
    {"trials", required_argument, NULL, PERFTEST_OPT_TRIALS},
    {"ahead", required_argument, NULL, PERFTEST_OPT_AHEAD},
    {"check", no_argument, NULL, PERFTEST_OPT_CHECK},
    {"json", required_argument, NULL, PERFTEST_OPT_JSON},
    {"die-at", required_argument, NULL, PERFTEST_OPT_DIE_AT},
    {"stop-at", required_argument, NULL, PERFTEST_OPT_STOP_AT},
    {"spoil", no_argument, NULL, PERFTEST_OPT_SPOIL},
    {"stream", required_argument, NULL, PERFTEST_OPT_STREAM},
    {"timeout", required_argument, NULL, PERFTEST_OPT_TIMEOUT},
    {"version", no_argument, NULL, PERFTEST_OPT_VERSION},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}
};


static void perftest_help(void)
{
    int i;

    printf("Usage: ucx_st_perftest [server-host] [options]\n\n"
           "Without a host this is the server. Options marked * are the same "
           "at both sides;\nthe server takes those of the client that it was "
           "not given.\n\n"
           "  -t LIST          * tests, in turns "
           "(st_lat,st_rlat,tag_lat):\n");
    for (i = 0; i < PERFTEST_NUM_TESTS; ++i) {
        printf("        %13s - %s\n", perftest_tests[i].name,
               perftest_tests[i].text);
    }
    printf("  -s LIST          * sizes; FIRST:LAST[:FACTOR] is a range (8)\n"
           "  -n COUNT         * iterations of a trial (10000)\n"
           "  -w COUNT         * warm-up iterations before them (1000)\n"
           "  --trials COUNT   * trials of each test and size (5)\n"
           "  -O COUNT         * messages under way at once in *_bw (32)\n"
           "  -T COUNT         * streams, each with its own messages (1)\n"
           "  --ahead COUNT    * iterations that hosts enqueue ahead of "
           "streams (64)\n"
           "  -m TYPE          * memory: host, or device: of this side's "
           "streams (host)\n"
           "  --check          * check the data, outside the timed part\n"
           "  -p PORT          TCP port; 0 at the server: any (13337)\n"
           "  -6               IPv6 only\n"
           "  -c LIST          run on these processors\n"
           "  -f               print only the numbers\n"
           "  -v               print CSV\n"
           "  --stream TYPE    this side's streams: host, hip or cuda (host)\n"
           "  --json FILE      write a report (client)\n"
           "  --timeout TIME   limit for this side to end once the other is "
           "gone\n"
           "                   (UCX_ST_ERR_TIMEOUT and 20 s)\n"
           "  --die-at POINT   this side kills itself at its first match, "
           "start or wait, or\n"
           "                   at an iteration, counted from 0, warm-up "
           "included\n"
           "  --stop-at POINT  the same with SIGSTOP\n"
           "  --spoil          this side sends wrong data\n"
           "  --version, -h\n\n"
           "Sizes and counts may end in k, m or g. Exit status: 0, 1 refused, "
           "2 wrong data,\n3 the other side is gone, 4 another failure.\n");
}

static perftest_ret_t perftest_usage(const char *what, const char *text)
{
    return perftest_fail(PERFTEST_REFUSED, "%s%s%s; -h tells what there is",
                         what, (text != NULL) ? ": " : "",
                         (text != NULL) ? text : "");
}

static perftest_ret_t perftest_parse_port(perftest_options_t *options,
                                          const char *text)
{
    size_t port;

    if (st_number_parse(text, 0, UINT16_MAX, &port) != 0) {
        return perftest_usage("-p takes a port from 0 to 65535", text);
    }
    options->port = text;
    return PERFTEST_OK;
}

static perftest_ret_t perftest_parse_die(perftest_options_t *options,
                                         const char *text, int signum)
{
    if ((options->die.point != PERFTEST_DIE_NEVER) ||
        (perftest_die_parse(&options->die, text, signum) != 0)) {
        return perftest_usage("--die-at or --stop-at, once, takes match, "
                              "start, wait or a number", text);
    }
    return PERFTEST_OK;
}

static perftest_ret_t perftest_parse_stream(perftest_options_t *options,
                                            const char *text)
{
    if (st_stream_parse(text, &options->stream) != 0) {
        return perftest_usage("--stream takes host, hip or cuda", text);
    }
    return PERFTEST_OK;
}

static perftest_ret_t perftest_parse_timeout(perftest_options_t *options,
                                             const char *text)
{
    /* UCX's way to write times */
    if ((ucs_config_sscanf_time(text, &options->timeout, NULL) != 1) ||
        !(options->timeout >= 0) || (options->timeout > 1e6)) {
        return perftest_usage("--timeout takes a time such as 30s", text);
    }
    return PERFTEST_OK;
}

/* Options of this side alone */
static perftest_ret_t perftest_parse_own(perftest_options_t *options, int opt)
{
    switch (opt) {
    case 'p':
        return perftest_parse_port(options, optarg);
    case '6':
        options->ipv6 = 1;
        return PERFTEST_OK;
    case 'c':
        options->cpus = optarg;
        return PERFTEST_OK;
    case 'f':
        options->only_final = 1;
        return PERFTEST_OK;
    case 'v':
        options->csv = 1;
        return PERFTEST_OK;
    case PERFTEST_OPT_JSON:
        options->json = optarg;
        return PERFTEST_OK;
    case PERFTEST_OPT_DIE_AT:
        return perftest_parse_die(options, optarg, SIGKILL);
    case PERFTEST_OPT_STOP_AT:
        return perftest_parse_die(options, optarg, SIGSTOP);
    case PERFTEST_OPT_SPOIL:
        options->spoil = 1;
        return PERFTEST_OK;
    case PERFTEST_OPT_STREAM:
        return perftest_parse_stream(options, optarg);
    case PERFTEST_OPT_TIMEOUT:
        return perftest_parse_timeout(options, optarg);
    default:
        /* getopt has named it */
        return perftest_usage("the command line is not understood", NULL);
    }
}

/* Name of a shared option, NULL if it is none */
static const char *perftest_shared_name(int opt)
{
    switch (opt) {
    case 't': return "-t";
    case 's': return "-s";
    case 'n': return "-n";
    case 'w': return "-w";
    case 'O': return "-O";
    case 'T': return "-T";
    case 'm': return "-m";
    case PERFTEST_OPT_TRIALS: return "--trials";
    case PERFTEST_OPT_AHEAD: return "--ahead";
    case PERFTEST_OPT_CHECK: return "--check";
    default: return NULL;
    }
}

static perftest_ret_t perftest_parse_option(perftest_options_t *options,
                                            int opt)
{
    const char *name = perftest_shared_name(opt);

    if (name == NULL) {
        return perftest_parse_own(options, opt);
    }
    return perftest_shared_parse(options, name,
                                 (opt == PERFTEST_OPT_CHECK) ? "yes" : optarg);
}

static perftest_ret_t perftest_parse_host(perftest_options_t *options,
                                          int argc, char **argv)
{
    if (argc - optind > 1) {
        return perftest_usage("there is one argument too many",
                              argv[optind + 1]);
    }
    options->host = argv[optind]; /* NULL at the end */
    if ((options->host == NULL) && (options->json != NULL)) {
        return perftest_usage("--json is an option of the client, which "
                              "reports", NULL);
    }
    if ((options->host != NULL) && (strcmp(options->port, "0") == 0)) {
        return perftest_usage("port 0 is for the server", NULL);
    }
    return PERFTEST_OK;
}

perftest_ret_t perftest_options_parse(perftest_options_t *options, int argc,
                                      char **argv, int *done)
{
    perftest_ret_t ret;
    int opt;

    memset(options, 0, sizeof(*options));
    options->port    = "13337";
    options->timeout = -1;
    perftest_shared_init(options);
    while ((opt = getopt_long(argc, argv, "t:s:n:w:O:T:m:p:6c:fvh",
                              perftest_long_options, NULL)) != -1) {
        if (opt == 'h') {
            perftest_help();
            *done = 1;
            return PERFTEST_OK;
        }
        if (opt == PERFTEST_OPT_VERSION) {
            printf("ucx_st_perftest %s\n", PACKAGE_VERSION);
            *done = 1;
            return PERFTEST_OK;
        }
        ret = perftest_parse_option(options, opt);
        if (ret != PERFTEST_OK) {
            return ret;
        }
    }
    return perftest_parse_host(options, argc, argv);
}

static int perftest_has_st(const perftest_options_t *options)
{
    size_t i;

    for (i = 0; i < options->num_tests; ++i) {
        if (perftest_test_is_st(&perftest_tests[options->tests[i]])) {
            return 1;
        }
    }
    return 0;
}

/* What moves messages in a device: sends and receives of streams of GPUs */
static perftest_ret_t perftest_check_device(const perftest_options_t *options)
{
    const perftest_test_t *test;
    size_t i;

    if (!options->is_device) {
        return PERFTEST_OK;
    }
    if (options->stream == UCS_GSTREAM_TYPE_HOST) {
        return perftest_fail(PERFTEST_REFUSED, "-m device needs --stream hip "
                             "or cuda at both sides");
    }
    for (i = 0; i < options->num_tests; ++i) {
        test = &perftest_tests[options->tests[i]];
        if (!perftest_test_is_st(test) || (test->rma != PERFTEST_RMA_NONE)) {
            return perftest_fail(PERFTEST_REFUSED, "-m device: %s has no "
                                 "messages in a device; name others by -t",
                                 test->name);
        }
    }
    return PERFTEST_OK;
}

perftest_ret_t perftest_options_check(const perftest_options_t *options)
{
    size_t total = (options->warmup + options->iterations) * options->trials *
                   options->num_tests * options->num_sizes;

    if ((options->die.point == PERFTEST_DIE_ITERATION) &&
        (options->die.iteration >= total)) {
        return perftest_fail(PERFTEST_REFUSED, "--die-at or --stop-at %zu is "
                             "never reached: there are %zu iterations",
                             options->die.iteration, total);
    }
    if ((options->die.point != PERFTEST_DIE_NEVER) &&
        (options->die.point != PERFTEST_DIE_ITERATION) &&
        !perftest_has_st(options)) {
        return perftest_fail(PERFTEST_REFUSED, "--die-at or --stop-at needs a "
                             "number here: no test of -t has matches");
    }
    return perftest_check_device(options);
}
