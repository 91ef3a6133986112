/* SPDX-License-Identifier: BSD-3-Clause */
/* st_progress.c - runs programs that must not deadlock. */
#include "st_progress.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage_text[] =
    "usage: st_progress [OPTION...] [PROGRAM...]\n"
    "\n"
    "Runs the named programs (p3: all whose names begin with p3_), or all.\n"
    "\n"
    "  --list            print their names\n"
    "  --threads         ranks are threads of one process\n"
    "  --ranks N         1 to 8; each program has a number of its own\n"
    "  --percent N       of the iterations\n"
    "  --needs-all       p4, p5: a pair that finds no lane is a failure\n"
    "  --lanes NAME,NAME p8: the lanes of its operations (host,trig)\n"
    "  --limit SECONDS   in which something must go on (300)\n";


static const struct option long_options[] = {
    {"list",      no_argument,       NULL, 'l'},
    {"threads",   no_argument,       NULL, 't'},
    {"ranks",     required_argument, NULL, 'r'},
    {"percent",   required_argument, NULL, 'p'},
    {"needs-all", no_argument,       NULL, 'a'},
    {"lanes",     required_argument, NULL, 'n'},
    {"limit",     required_argument, NULL, 'm'},
    {"help",      no_argument,       NULL, 'h'},
    {NULL,        0,                 NULL, 0}
};

static int list(void)
{
    const st_progress_case_t *pcase;

    for (pcase = st_progress_cases; pcase->name != NULL; ++pcase) {
        puts(pcase->name);
    }
    return EXIT_SUCCESS;
}

static int usage(int result)
{
    fputs(usage_text, (result == EXIT_SUCCESS) ? stdout : stderr);
    return result;
}

static int set_lanes(st_progress_options_t *options, char *names)
{
    char *comma = strchr(names, ',');

    if (comma == NULL) {
        return -1;
    }
    *comma            = '\0';
    options->lanes[0] = names;
    options->lanes[1] = comma + 1;
    return 0;
}

static int set_option(st_progress_options_t *options, int option)
{
    switch (option) {
    case 't':
        options->as_threads = 1;
        return 0;
    case 'r':
        options->ranks = atoi(optarg);
        return ((options->ranks >= 1) &&
                (options->ranks <= ST_WORLD_MAX_RANKS)) ? 0 : -1;
    case 'p':
        options->percent = (unsigned)atoi(optarg);
        return 0;
    case 'a':
        options->needs_all = 1;
        return 0;
    case 'n':
        return set_lanes(options, optarg);
    case 'm':
        options->limit = (unsigned)atoi(optarg);
        return 0;
    default:
        return -1;
    }
}

/* 77 only if nothing was tested */
static int run_named(const st_progress_options_t *options, char **names,
                     int count)
{
    int result = ST_WORLD_SKIP;
    int i, one;

    for (i = 0; i < count; ++i) {
        one = st_progress_run(names[i], options);
        if (one == EXIT_FAILURE) {
            result = EXIT_FAILURE;
        } else if ((one == EXIT_SUCCESS) && (result == ST_WORLD_SKIP)) {
            result = EXIT_SUCCESS;
        }
    }
    return result;
}

int main(int argc, char **argv)
{
    st_progress_options_t options = ST_PROGRESS_DEFAULTS;
    int option;

    st_world_prepare(argv);
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (option == 'h') {
            return usage(EXIT_SUCCESS);
        }
        if (option == 'l') {
            return list();
        }
        if (set_option(&options, option) != 0) {
            return usage(2);
        }
    }
    return (optind == argc) ? st_progress_run(NULL, &options) :
                              run_named(&options, argv + optind, argc - optind);
}
