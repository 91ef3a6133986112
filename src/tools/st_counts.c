/* SPDX-License-Identifier: BSD-3-Clause */
/* st_counts.c - counts of a process in a report. */
#include "st_counts.h"
#include "st_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>


const char *st_counts_find(const char *counts, const char *name, int *length)
{
    size_t size = strlen(name);

    while (counts[0] != '\0') {
        if ((strncmp(counts, name, size) == 0) && (counts[size] == ' ')) {
            *length = (int)strcspn(counts + size + 1, "\n");
            return counts + size + 1;
        }
        counts += strcspn(counts, "\n");
        counts += (counts[0] == '\n');
    }
    *length = 0;
    return "";
}

uint64_t st_counts_number(const char *counts, const char *name)
{
    int length;

    return strtoull(st_counts_find(counts, name, &length), NULL, 10);
}

static int st_counts_is_number(const char *text)
{
    size_t length = strspn(text, "0123456789");

    return (length > 0) && (text[length] == '\0');
}

/* Calls 'func' for each pair of the counts */
static void st_counts_each(const char *counts,
                           void (*func)(FILE *file, const char *name,
                                        const char *value, int is_first),
                           FILE *file)
{
    char *copy   = strdup(counts);
    char *next   = copy;
    int is_first = 1;
    char *line, *value;

    while ((next != NULL) && ((line = strsep(&next, "\n")) != NULL)) {
        value = line;
        (void)strsep(&value, " ");
        if (value != NULL) {
            func(file, line, value, is_first);
            is_first = 0;
        }
    }
    free(copy);
}

static void st_counts_json_one(FILE *file, const char *name, const char *value,
                               int is_first)
{
    fputs(is_first ? "" : ",", file);
    st_report_json_text(file, name);
    fputc(':', file);
    if (st_counts_is_number(value)) {
        fputs(value, file);
    } else {
        st_report_json_text(file, value);
    }
}

static void st_counts_print_one(FILE *file, const char *name, const char *value,
                                int is_first)
{
    (void)is_first;
    if (st_counts_is_number(value)) {
        fprintf(file, " %s=%s", name, value);
    }
}

void st_counts_print(const char *who, const char *counts)
{
    if (counts[0] == '\0') {
        return;
    }
    printf("%s:", who);
    st_counts_each(counts, st_counts_print_one, stdout);
    printf("\n");
}

void st_counts_json(FILE *file, const char *who, const char *counts)
{
    fprintf(file, "\n  \"%s\":{", who);
    st_counts_each(counts, st_counts_json_one, file);
    fputc('}', file);
}

static int st_counts_trig_is_asked_for(const char *counts)
{
    const char *lanes = getenv("UCX_ST_LANES");
    int length;

    if (lanes != NULL) {
        return (strncmp(lanes, "trig", 4) == 0) &&
               ((lanes[4] == '\0') || (lanes[4] == ','));
    }
    (void)st_counts_find(counts, "direct_starts", &length);
    if (length > 0) {
        return 0; /* it comes first */
    }
    (void)st_counts_find(counts, "trig_starts", &length);
    return length > 0;
}

int st_counts_check_trig(const char *bench, const char *who, const char *counts)
{
    uint64_t starts  = st_counts_number(counts, "host_starts");
    uint64_t proxied = st_counts_number(counts, "proxied");

    if (((starts == 0) && (proxied == 0)) ||
        !st_counts_trig_is_asked_for(counts)) {
        return 0;
    }
    fprintf(stderr, "%s: %s: WARNING: the trig lane is asked for, but %" PRIu64
            " operations were started on the host lane and a thread moved %"
            PRIu64 ": the times are not those of the network card\n", bench,
            who, starts, proxied);
    return -1;
}
