/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_util.c - options, statistics and small helpers of the benchmarks. */
#include "bench_util.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BENCH_ALIGN 64


static int bench_rank(void)
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

void bench_check(int ret, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "?";
    int length;

    if (ret == MPI_SUCCESS) {
        return;
    }

    MPI_Error_string(ret, text, &length);
    fprintf(stderr, "rank %d: %s failed: %s\n", bench_rank(), what, text);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

void *bench_alloc(size_t size)
{
    size_t length = ((size / BENCH_ALIGN) + 1) * BENCH_ALIGN;
    void *ptr     = aligned_alloc(BENCH_ALIGN, length);

    if (ptr == NULL) {
        fprintf(stderr, "rank %d: no memory for %zu bytes\n", bench_rank(),
                length);
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    } else {
        memset(ptr, 0, length);
    }
    return ptr;
}

void bench_error(const char *format, ...)
{
    va_list ap;

    if (bench_rank() != 0) {
        return;
    }

    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
}

static size_t bench_multiplier(const char *suffix)
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

int bench_parse_size(const char *option, const char *text, size_t min,
                     size_t max, size_t *value_p)
{
    char *end;
    unsigned long number;
    size_t factor;

    errno  = 0;
    number = strtoul(text, &end, 10);
    factor = bench_multiplier(end);
    if ((end == text) || (text[0] == '-') || (errno != 0) || (factor == 0) ||
        (number > max / factor) || (number * factor < min)) {
        bench_error("--%s: '%s' is not a number from %zu to %zu\n", option,
                    text, min, max);
        return -1;
    }

    *value_p = number * factor;
    return 0;
}

int bench_parse_int(const char *option, const char *text, int min, int max,
                    int *value_p)
{
    char *end;
    long number;

    errno  = 0;
    number = strtol(text, &end, 10);
    if ((end == text) || (*end != '\0') || (errno != 0) || (number < min) ||
        (number > max)) {
        bench_error("--%s: '%s' is not a number from %d to %d\n", option, text,
                    min, max);
        return -1;
    }

    *value_p = (int)number;
    return 0;
}

static int bench_find_name(const char *word, size_t length,
                           const char *const *names)
{
    int i;

    for (i = 0; names[i] != NULL; ++i) {
        if ((strlen(names[i]) == length) &&
            (strncmp(names[i], word, length) == 0)) {
            return i;
        }
    }
    return -1;
}

int bench_parse_names(const char *option, const char *text,
                      const char *const *names, unsigned *mask_p)
{
    const char *word = text;
    unsigned mask    = 0;
    size_t length;
    int found;

    for (;;) {
        length = strcspn(word, ",");
        found  = bench_find_name(word, length, names);
        if (found < 0) {
            bench_error("--%s: '%.*s' is unknown\n", option, (int)length, word);
            return -1;
        }
        mask |= 1u << found;
        if (word[length] == '\0') {
            break;
        }
        word += length + 1;
    }

    *mask_p = mask;
    return 0;
}

static int bench_compare(const void *a, const void *b)
{
    double x = *(const double*)a;
    double y = *(const double*)b;

    return (x > y) - (x < y);
}

void bench_stats_get(double *samples, int count, bench_stats_t *stats)
{
    int mid = count / 2;

    qsort(samples, count, sizeof(*samples), bench_compare);
    stats->min    = samples[0];
    stats->max    = samples[count - 1];
    stats->median = (count % 2) ? samples[mid] :
                                  (samples[mid - 1] + samples[mid]) / 2;
}

double bench_max(double value)
{
    double result = value;

    bench_check(MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, MPI_MAX,
                              MPI_COMM_WORLD), "MPI_Allreduce");
    return result;
}

uint64_t bench_sum(uint64_t value)
{
    uint64_t result = value;

    bench_check(MPI_Allreduce(&value, &result, 1, MPI_UINT64_T, MPI_SUM,
                              MPI_COMM_WORLD), "MPI_Allreduce");
    return result;
}
