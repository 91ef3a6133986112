/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_st_info.c - what UCX-ST has here: devices, lanes, streams, settings; as
 * ucx_info is for UCX.
 */
#include "ucx_st_config.h"

#include "st_info.h"

#include <ucp/api/ucp.h>

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INFO_ADVISE "st-trace-advise"


/* Command line; in the order in which the parts are printed. */
typedef struct info_options {
    int version;
    int devices;
    int lanes;
    int line;
    int streams;
    int settings;
    int full;
    int help;
    int pid;      /* Of a process to ask; 0: none */
    const char *trace; /* For advice; NULL: none */
} info_options_t;


static void info_help(void)
{
    printf("Usage: ucx_st_info [options]\n\n"
           "At least one of:\n"
           "  -v   versions\n"
           "  -d   devices of the transport cxi_trig, and their limits\n"
           "  -l   lanes that a worker has, and why it has not the others\n"
           "  -1   lanes that a worker has, on one line\n"
           "  -s   types of streams, and why one is not there\n"
           "  -c   settings: UCX_CXI_TRIG_*, UCX_GSTREAM_*, UCX_ST_*\n"
           "  -p PID  what waits for a peer in a running process\n"
           "  --advise TRACE  would streams pay in the program of this trace?\n"
           "  -h   this text\n"
           "With -c:\n"
           "  -f   what each of them means, and its default\n\n"
           "Exit status: 0; 1 if there is no device, lane, stream or answer "
           "that was asked\nfor; 2 for wrong options.\n");
}

static void info_version(void)
{
    printf("# UCX-ST %s, built for UCX %u.%u\n# UCX %s\n", PACKAGE_VERSION,
           (unsigned)UCP_API_MAJOR, (unsigned)UCP_API_MINOR,
           ucp_get_version_string());
}

/* The option's argument; 0 after printing that it is none */
static int info_parse_pid(int *pid_p)
{
    char *end;
    long pid = strtol(optarg, &end, 10);

    if ((*optarg == '\0') || (*end != '\0') || (pid <= 0) || (pid > INT_MAX)) {
        fprintf(stderr, "ucx_st_info: \"%s\" is no PID\n", optarg);
        return 0;
    }
    *pid_p = (int)pid;
    return 1;
}

/* Runs the script that lies beside this program, or else in PATH. Returns only
 * if there is none. */
static void info_advise(const char *trace)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path,
                              sizeof(path) - sizeof(INFO_ADVISE));

    fflush(stdout);
    while ((length > 0) && (path[length - 1] != '/')) {
        --length;
    }
    if (length > 0) {
        memcpy(&path[length], INFO_ADVISE, sizeof(INFO_ADVISE));
        execl(path, path, "--", trace, NULL);
    }
    execlp(INFO_ADVISE, INFO_ADVISE, "--", trace, NULL);
    fprintf(stderr, "ucx_st_info: " INFO_ADVISE " is neither beside this "
            "program nor in PATH: %s\n", strerror(errno));
}

/* Returns 0, or -1 after printing why not */
static int info_parse(info_options_t *options, int argc, char **argv)
{
    static const struct option names[] = {
        {"advise", required_argument, NULL, 'a'},
        {NULL, 0, NULL, 0}
    };
    int opt;

    while ((opt = getopt_long(argc, argv, "vdl1scfhp:", names, NULL)) != -1) {
        options->version  |= (opt == 'v');
        options->devices  |= (opt == 'd');
        options->lanes    |= (opt == 'l');
        options->line     |= (opt == '1');
        options->streams  |= (opt == 's');
        options->settings |= (opt == 'c');
        options->full     |= (opt == 'f');
        options->help     |= (opt == 'h');
        if ((opt == 'p') && !info_parse_pid(&options->pid)) {
            return -1;
        }
        options->trace = (opt == 'a') ? optarg : options->trace;
        if (opt == '?') {
            fprintf(stderr, "ucx_st_info: -h tells what there is\n");
            return -1;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "ucx_st_info: what is \"%s\"? -h tells what there is\n",
                argv[optind]);
        return -1;
    }
    if (!options->version && !options->devices && !options->lanes &&
        !options->line && !options->streams && !options->settings &&
        !options->help && (options->pid == 0) &&
        (options->trace == NULL)) {
        fprintf(stderr, "ucx_st_info: nothing is asked for; -h tells what "
                "there is\n");
        return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    info_options_t options = {0};
    int is_missing         = 0;

    if (info_parse(&options, argc, argv) != 0) {
        return 2;
    }
    if (options.help) {
        info_help();
        return 0;
    }
    if (options.version) {
        info_version();
    }
    if (options.devices) {
        is_missing |= (info_devices() == 0);
    }
    if (options.lanes) {
        is_missing |= (info_lanes() == 0);
    }
    if (options.line) {
        is_missing |= (info_lanes_line() == 0);
    }
    if (options.streams) {
        is_missing |= (info_streams() == 0);
    }
    if (options.settings) {
        info_settings(options.full);
    }
    if (options.pid != 0) {
        is_missing |= !info_process(options.pid);
    }
    if (options.trace != NULL) {
        info_advise(options.trace);
        is_missing = 1;
    }
    return is_missing ? 1 : 0;
}
