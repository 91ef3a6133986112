/* SPDX-License-Identifier: BSD-3-Clause */
/* st_number.c - numbers of a command line. */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE /* program_invocation_short_name */
#endif

#include "st_number.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* 0 if there is no such suffix */
static size_t st_number_factor(const char *suffix)
{
    static const struct {
        const char *suffix;
        size_t     factor;
    } table[] = {
        {"", 1},           {"k", 1ul << 10}, {"K", 1ul << 10},
        {"m", 1ul << 20},  {"M", 1ul << 20}, {"g", 1ul << 30},
        {"G", 1ul << 30}
    };
    size_t i;

    for (i = 0; i < sizeof(table) / sizeof(table[0]); ++i) {
        if (strcmp(suffix, table[i].suffix) == 0) {
            return table[i].factor;
        }
    }
    return 0;
}

int st_number_parse(const char *text, size_t min, size_t max, size_t *number_p)
{
    unsigned long number;
    size_t factor;
    char *end;

    errno  = 0;
    number = strtoul(text, &end, 10);
    factor = st_number_factor(end);
    if (!isdigit((unsigned char)text[0]) || (errno != 0) || (factor == 0) ||
        (number > max / factor) || (number * factor < min)) {
        return -1;
    }
    *number_p = number * factor;
    return 0;
}

int st_number_option(const char *name, size_t min, size_t max, size_t *number_p)
{
    if (st_number_parse(optarg, min, max, number_p) != 0) {
        fprintf(stderr, "%s: --%s: '%s' is not a number from %zu to %zu\n",
                program_invocation_short_name, name, optarg, min, max);
        return -1;
    }
    return 0;
}
