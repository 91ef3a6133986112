/* SPDX-License-Identifier: BSD-3-Clause */
/* st_random.c - runs random legal programs (P6). */
#include "st_random.h"
#include "st_bytes.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char usage_text[] =
    "usage: st_random [OPTION...]\n"
    "\n"
    "Runs random legal programs and checks all data. A program is made from\n"
    "its seed and from --ranks, --max-size, --max-uses, --no-late and --once;\n"
    "the next one has the next seed.\n"
    "\n"
    "  --seed N         of the first program (else from the clock)\n"
    "  --count N        programs (100)\n"
    "  --time SECONDS   as many as fit, of all kinds, on all lanes\n"
    "  --ranks N        1 to 6 in each program (else at random)\n"
    "  --threads        ranks are threads of one process\n"
    "  --max-size BYTES of a message (102400)\n"
    "  --max-uses N     of a message, at most 40 (12)\n"
    "  --no-late        match everything before the first step\n"
    "  --once PERCENT   so many messages are used once each time (0)\n"
    "  --some           leave out programs that do not find enough lanes\n"
    "  --limit SECONDS  in which a program must end (300)\n"
    "  --verbose        print the programs\n";


static const struct option long_options[] = {
    {"seed",     required_argument, NULL, 's'},
    {"count",    required_argument, NULL, 'c'},
    {"time",     required_argument, NULL, 'T'},
    {"ranks",    required_argument, NULL, 'r'},
    {"threads",  no_argument,       NULL, 't'},
    {"max-size", required_argument, NULL, 'S'},
    {"max-uses", required_argument, NULL, 'U'},
    {"no-late",  no_argument,       NULL, 'l'},
    {"once",     required_argument, NULL, 'O'},
    {"some",     no_argument,       NULL, 'o'},
    {"limit",    required_argument, NULL, 'm'},
    {"verbose",  no_argument,       NULL, 'v'},
    {"help",     no_argument,       NULL, 'h'},
    {NULL,       0,                 NULL, 0}
};

/* A number from 1 on; -1 if the option's argument is none */
static long number(long max)
{
    char *end;
    long value = strtol(optarg, &end, 10);

    return ((end == optarg) || (*end != '\0') || (value < 1) ||
            (value > max)) ? -1 : value;
}

/* Options with a number */
static int set_number(st_random_options_t *options, int option)
{
    long value = number((option == 'r') ? ST_PROG_MAX_RANKS :
                        (option == 'U') ? ST_PROG_MAX_USES :
                        (option == 'O') ? 100 : 1 << 30);

    switch (option) {
    case 'c':
        options->count = (unsigned)value;
        break;
    case 'T':
        options->time = (double)value;
        break;
    case 'r':
        options->gen.ranks = (int)value;
        break;
    case 'S':
        options->gen.max_size = (unsigned)value;
        break;
    case 'U':
        options->gen.max_uses = (unsigned)value;
        break;
    case 'O':
        options->gen.once = (unsigned)value;
        break;
    case 'm':
        options->limit = (unsigned)value;
        break;
    default:
        return -1;
    }
    return (value < 0) ? -1 : 0;
}

static int set_option(st_random_options_t *options, int option)
{
    switch (option) {
    case 's':
        options->seed = strtoull(optarg, NULL, 0);
        return 0;
    case 't':
        options->as_threads = 1;
        return 0;
    case 'l':
        options->gen.no_late = 1;
        return 0;
    case 'o':
        options->some = 1;
        return 0;
    case 'v':
        options->verbose = 1;
        return 0;
    default:
        return (optarg == NULL) ? -1 : set_number(options, option);
    }
}

static int usage(int result)
{
    fputs(usage_text, (result == EXIT_SUCCESS) ? stdout : stderr);
    return result;
}

static int run(const st_random_options_t *options)
{
    st_random_counts_t counts = {0};
    double start              = st_world_now();
    int result;

    printf("st_random: seed %lu\n", options->seed);
    result = st_random_run(options, &counts);
    printf("st_random: %lu programs%s (%lu left out), %lu messages, %lu of "
           "them ready; %lu uses, %lu bytes; %lu operations not on the NIC; "
           "%lu steps moved, %lu moves were illegal; %.1f s\n", counts.programs,
           options->as_threads ? " of threads" : "", counts.left_out,
           counts.messages, counts.ready, counts.exec.uses, counts.exec.bytes,
           counts.exec.host, counts.gen.moves,
           counts.gen.deadlocks + counts.gen.misuses, st_world_now() - start);
    printf("%s st_random\n", (result == 0) ? "PASS" : "FAIL");
    return result;
}

int main(int argc, char **argv)
{
    st_random_options_t options = ST_RANDOM_DEFAULTS;
    int option;

    st_world_prepare(argv);
    options.seed = st_bytes_mix((uint64_t)time(NULL), (uint64_t)getpid()) >> 32;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (option == 'h') {
            return usage(EXIT_SUCCESS);
        }
        if (set_option(&options, option) != 0) {
            return usage(2);
        }
    }
    if (optind < argc) {
        return usage(2);
    }
    return run(&options);
}
