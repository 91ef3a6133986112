/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_shared.c - the options that both sides share. */
#include "perftest_shared.h"
#include "perftest_test.h"
#include "st_number.h"

#include <stdlib.h>
#include <string.h>

#define PERFTEST_MAX_SIZE (1ul << 30)


typedef struct perftest_shared perftest_shared_t;

struct perftest_shared {
    const char *name;
    const char *initial;
    const char *text;   /* What it takes, for messages */
    size_t     offset;  /* Of a number in the options */
    size_t     min;
    size_t     max;
    /* Returns 0, or -1 for a text that is none */
    int        (*parse)(const perftest_shared_t *shared,
                        perftest_options_t *options, const char *text);
    void       (*print)(const perftest_shared_t *shared,
                        const perftest_options_t *options, FILE *file);
};


static int perftest_number_parse(const perftest_shared_t *shared,
                                 perftest_options_t *options, const char *text)
{
    return st_number_parse(text, shared->min, shared->max,
                           (size_t*)((char*)options + shared->offset));
}

static void perftest_number_print(const perftest_shared_t *shared,
                                  const perftest_options_t *options, FILE *file)
{
    fprintf(file, "%zu",
            *(const size_t*)((const char*)options + shared->offset));
}

static int perftest_flag_parse(const perftest_shared_t *shared,
                               perftest_options_t *options, const char *text)
{
    (void)shared;
    options->check = (strcmp(text, "yes") == 0);
    return (options->check || (strcmp(text, "no") == 0)) ? 0 : -1;
}

static void perftest_flag_print(const perftest_shared_t *shared,
                                const perftest_options_t *options, FILE *file)
{
    (void)shared;
    fputs(options->check ? "yes" : "no", file);
}

/* Of both sides, as ucx_perftest has it */
static int perftest_memory_parse(const perftest_shared_t *shared,
                                 perftest_options_t *options, const char *text)
{
    (void)shared;
    options->is_device = (strcmp(text, "device") == 0) ||
                         (strcmp(text, "device,device") == 0);
    return (options->is_device || (strcmp(text, "host") == 0) ||
            (strcmp(text, "host,host") == 0)) ? 0 : -1;
}

static void perftest_memory_print(const perftest_shared_t *shared,
                                  const perftest_options_t *options, FILE *file)
{
    (void)shared;
    fputs(options->is_device ? "device" : "host", file);
}

static int perftest_tests_have(const perftest_options_t *options, int test)
{
    size_t i;

    for (i = 0; i < options->num_tests; ++i) {
        if (options->tests[i] == (unsigned)test) {
            return 1;
        }
    }
    return 0;
}

static int perftest_tests_parse(const perftest_shared_t *shared,
                                perftest_options_t *options, const char *text)
{
    size_t length;
    int test;

    (void)shared;
    options->num_tests = 0;
    for (;; text += length + 1) {
        length = strcspn(text, ",");
        test   = perftest_test_find(text, length);
        if ((test < 0) || perftest_tests_have(options, test)) {
            return -1;
        }
        options->tests[options->num_tests++] = (unsigned)test;
        if (text[length] == '\0') {
            return 0;
        }
    }
}

static void perftest_tests_print(const perftest_shared_t *shared,
                                 const perftest_options_t *options, FILE *file)
{
    size_t i;

    (void)shared;
    for (i = 0; i < options->num_tests; ++i) {
        fprintf(file, "%s%s", (i > 0) ? "," : "",
                perftest_tests[options->tests[i]].name);
    }
}

static int perftest_sizes_add(perftest_options_t *options, size_t size)
{
    if (options->num_sizes == PERFTEST_MAX_SIZES) {
        return -1;
    }
    options->sizes[options->num_sizes++] = size;
    return 0;
}

/* One element of the list: SIZE or FIRST:LAST[:FACTOR]; it is changed */
static int perftest_sizes_range(perftest_options_t *options, char *text)
{
    char *next = text;
    const char *first, *last_text, *factor_text;
    size_t size, last, factor = 2;

    first       = strsep(&next, ":");
    last_text   = strsep(&next, ":");
    factor_text = strsep(&next, ":");
    if ((next != NULL) ||
        (st_number_parse(first, 0, PERFTEST_MAX_SIZE, &size) != 0)) {
        return -1;
    }
    if (last_text == NULL) {
        return perftest_sizes_add(options, size);
    }
    if ((size == 0) ||
        (st_number_parse(last_text, size, PERFTEST_MAX_SIZE, &last) != 0) ||
        ((factor_text != NULL) &&
         (st_number_parse(factor_text, 2, PERFTEST_MAX_SIZE, &factor) != 0))) {
        return -1;
    }
    for (; size <= last; size *= factor) {
        if (perftest_sizes_add(options, size) != 0) {
            return -1;
        }
    }
    return 0;
}

static int perftest_sizes_parse(const perftest_shared_t *shared,
                                perftest_options_t *options, const char *text)
{
    char *copy = strdup(text);
    char *next = copy;
    int ret    = (copy == NULL) ? -1 : 0;

    (void)shared;
    options->num_sizes = 0;
    while ((ret == 0) && (next != NULL)) {
        ret = perftest_sizes_range(options, strsep(&next, ","));
    }
    free(copy);
    return ret;
}

static void perftest_sizes_print(const perftest_shared_t *shared,
                                 const perftest_options_t *options, FILE *file)
{
    size_t i;

    (void)shared;
    for (i = 0; i < options->num_sizes; ++i) {
        fprintf(file, "%s%zu", (i > 0) ? "," : "", options->sizes[i]);
    }
}

#define PERFTEST_NUMBER(_name, _initial, _field, _min, _max) \
    {_name, _initial, "a number from " #_min " to " #_max, \
     offsetof(perftest_options_t, _field), _min, _max, \
     perftest_number_parse, perftest_number_print}

static const perftest_shared_t perftest_shared[] = {
    {"-t", "st_lat,st_rlat,tag_lat", "a list of different tests", 0, 0, 0,
     perftest_tests_parse, perftest_tests_print},
    {"-s", "8", "at most 64 sizes up to 1g and ranges from 1 on", 0, 0, 0,
     perftest_sizes_parse, perftest_sizes_print},
    PERFTEST_NUMBER("-n", "10000", iterations, 1, 1000000000),
    PERFTEST_NUMBER("-w", "1000", warmup, 0, 1000000000),
    PERFTEST_NUMBER("--trials", "5", trials, 1, 1000),
    PERFTEST_NUMBER("-O", "32", window, 1, 1024),
    PERFTEST_NUMBER("-T", "1", streams, 1, 64),
    PERFTEST_NUMBER("--ahead", "64", ahead, 2, 1000000),
    {"-m", "host", "host or device: there is no other memory", 0, 0, 0,
     perftest_memory_parse, perftest_memory_print},
    {"--check", "no", "yes or no", 0, 0, 0, perftest_flag_parse,
     perftest_flag_print}
};

#define PERFTEST_NUM_SHARED \
    (sizeof(perftest_shared) / sizeof(perftest_shared[0]))


static const perftest_shared_t *perftest_shared_find(const char *name)
{
    size_t i;

    for (i = 0; i < PERFTEST_NUM_SHARED; ++i) {
        if (strcmp(perftest_shared[i].name, name) == 0) {
            return &perftest_shared[i];
        }
    }
    return NULL;
}

static uint64_t perftest_shared_bit(const perftest_shared_t *shared)
{
    return 1ull << (shared - perftest_shared);
}

void perftest_shared_init(perftest_options_t *options)
{
    const perftest_shared_t *shared;

    for (shared = perftest_shared;
         shared < perftest_shared + PERFTEST_NUM_SHARED; ++shared) {
        (void)shared->parse(shared, options, shared->initial);
    }
}

perftest_ret_t perftest_shared_parse(perftest_options_t *options,
                                     const char *name, const char *text)
{
    const perftest_shared_t *shared = perftest_shared_find(name);

    if (shared->parse(shared, options, text) != 0) {
        return perftest_fail(PERFTEST_REFUSED, "%s %s: it takes %s; -h tells "
                             "what there is", name, text, shared->text);
    }
    options->given |= perftest_shared_bit(shared);
    return PERFTEST_OK;
}

void perftest_options_print(const perftest_options_t *options, FILE *file)
{
    const perftest_shared_t *shared;

    for (shared = perftest_shared;
         shared < perftest_shared + PERFTEST_NUM_SHARED; ++shared) {
        fprintf(file, "%s=", shared->name);
        shared->print(shared, options, file);
        fputc('\n', file);
    }
}

/* The value as options are compared and told; free() it. NULL: no memory */
static char *perftest_shared_value(const perftest_shared_t *shared,
                                   const perftest_options_t *options)
{
    char *text  = NULL;
    size_t size = 0;
    FILE *file  = open_memstream(&text, &size);

    if (file != NULL) {
        shared->print(shared, options, file);
        (void)fclose(file);
    }
    return text;
}

/* Adds to 'file' what differs between the client's options and the server's */
static void perftest_shared_compare(const perftest_shared_t *shared,
                                    const perftest_options_t *client,
                                    const perftest_options_t *server,
                                    FILE *file)
{
    char *theirs = perftest_shared_value(shared, client);
    char *ours   = perftest_shared_value(shared, server);

    if ((theirs == NULL) || (ours == NULL)) {
        fprintf(file, "; no memory");
    } else if ((server->given & perftest_shared_bit(shared)) &&
               (strcmp(theirs, ours) != 0)) {
        fprintf(file, "; %s is %s at the client and %s at the server",
                shared->name, theirs, ours);
    }
    free(theirs);
    free(ours);
}

/* The lines of the client, into 'options'; adds to 'file' what is wrong */
static void perftest_shared_read(perftest_options_t *options, char *text,
                                 FILE *file)
{
    const perftest_shared_t *shared;
    char *line, *value;

    while ((line = strsep(&text, "\n")) != NULL) {
        if (line[0] == '\0') {
            continue;
        }
        value  = line;
        (void)strsep(&value, "=");
        shared = perftest_shared_find(line);
        if ((shared == NULL) || (value == NULL) ||
            (shared->parse(shared, options, value) != 0)) {
            fprintf(file, "; the client's option %s is unknown here", line);
        }
    }
}

perftest_ret_t perftest_options_merge(perftest_options_t *options, char *text)
{
    perftest_options_t client = *options;
    char *problems            = NULL;
    size_t size               = 0;
    FILE *file                = open_memstream(&problems, &size);
    perftest_ret_t ret        = PERFTEST_OK;
    const perftest_shared_t *shared;

    if (file == NULL) {
        return perftest_fail(PERFTEST_REFUSED, "no memory for options");
    }
    perftest_shared_read(&client, text, file);
    for (shared = perftest_shared;
         shared < perftest_shared + PERFTEST_NUM_SHARED; ++shared) {
        perftest_shared_compare(shared, &client, options, file);
    }
    (void)fclose(file);
    if (problems[0] != '\0') {
        ret = perftest_fail(PERFTEST_REFUSED, "options differ: %s",
                            problems + 2);
    } else {
        *options = client;
    }
    free(problems);
    return ret;
}
