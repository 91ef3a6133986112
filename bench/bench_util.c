/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_util.c - options, loops and small helpers of the benchmarks. */
#include "bench_util.h"

#include <st_number.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BENCH_ALIGN 64


const char *const bench_variants[BENCH_NUM_VARIANTS] = {
    "mpi", "st", "st-ready", "put", "put-strict", "get", "get-strict",
    "st-hpe", "metadata", "channel", "st-single", "mpi-device", "nccl",
    "nvshmem", "st-fifo", "st-paper", "st-mpich", "st-win", "staging",
    "reg", "st-libmp"
};

int bench_rank(void)
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

void bench_init(int *argc, char ***argv)
{
    int level = MPI_THREAD_FUNNELED;
    int i, provided;

    for (i = 1; i < *argc; ++i) {
        if (strstr((*argv)[i], "st-hpe") || strstr((*argv)[i], "st-paper") ||
            strstr((*argv)[i], "st-mpich")) {
            level = MPI_THREAD_MULTIPLE;
        }
    }
    MPI_Init_thread(argc, argv, level, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

void bench_fail(int ret, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "?";
    int length;

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

void *bench_message_alloc(size_t size, int by_mpi)
{
    void *message;

    if (!by_mpi) {
        return bench_alloc(size);
    }
    bench_check(MPI_Alloc_mem((MPI_Aint)size, MPI_INFO_NULL, &message),
                "MPI_Alloc_mem");
    return memset(message, 0, size);
}

void bench_message_free(void *message, int by_mpi)
{
    if (by_mpi) {
        bench_check(MPI_Free_mem(message), "MPI_Free_mem");
    } else {
        free(message);
    }
}

int bench_parse_memory(const char *text)
{
    if (strcmp(text, "mpi") == 0) {
        return 1;
    }
    if (strcmp(text, "malloc") == 0) {
        return 0;
    }
    bench_error("--memory: '%s' is neither malloc nor mpi\n", text);
    return -1;
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

static int bench_parse_number(const bench_option_t *option, const char *text)
{
    size_t number;

    if (st_number_parse(text, option->min, option->max, &number) != 0) {
        bench_error("--%s: '%s' is not a number from %zu to %zu\n",
                    option->name, text, option->min, option->max);
        return -1;
    }

    if (option->size != NULL) {
        *option->size = number;
    } else {
        *option->number = (int)number;
    }
    return 0;
}

static int bench_find_variant(const char *word, size_t length, unsigned known)
{
    int i;

    for (i = 0; i < BENCH_NUM_VARIANTS; ++i) {
        if ((known & (1u << i)) && (strlen(bench_variants[i]) == length) &&
            (strncmp(bench_variants[i], word, length) == 0)) {
            return i;
        }
    }
    return -1;
}

/* Reads a list "a,b" into a mask. */
static int bench_parse_variants(const char *word, unsigned known,
                                unsigned *mask_p)
{
    unsigned mask = 0;
    size_t length;
    int found;

    for (;; word += length + 1) {
        length = strcspn(word, ",");
        found  = bench_find_variant(word, length, known);
        if (found < 0) {
            bench_error("--variants: '%.*s' is unknown\n", (int)length, word);
            return -1;
        }
        mask |= 1u << found;
        if (word[length] == '\0') {
            *mask_p = mask;
            return 0;
        }
    }
}

/* The option of a table that "--name" or "--name=value" is, or NULL. */
static const bench_option_t *bench_find_option(const bench_option_t *option,
                                               const char *arg)
{
    size_t length;

    if (strncmp(arg, "--", 2) != 0) {
        return NULL;
    }

    length = strcspn(arg + 2, "=");
    for (; option->name != NULL; ++option) {
        if ((strlen(option->name) == length) &&
            (strncmp(option->name, arg + 2, length) == 0)) {
            return option;
        }
    }
    return NULL;
}

static int bench_parse_option(const bench_option_t *option, const char *arg,
                              const char *text)
{
    if (option == NULL) {
        bench_error("unknown argument '%s' (see --help)\n", arg);
        return -1;
    }
    if (text == NULL) {
        bench_error("%s needs a value\n", arg);
        return -1;
    }
    if (option->text == NULL) {
        return bench_parse_number(option, text);
    }
    *option->text = text;
    return 0;
}

static void bench_help(const char *help, unsigned known)
{
    const char *comma = "";
    int i;

    if (bench_rank() != 0) {
        return;
    }

    printf("%s"
           "  --trials N       repetitions, variants taking turns (3)\n"
           "  --variants LIST  of ", help);
    for (i = 0; i < BENCH_NUM_VARIANTS; ++i) {
        if (known & (1u << i)) {
            printf("%s%s", comma, bench_variants[i]);
            comma = ",";
        }
    }
    comma = " but ";
    printf(" (all");
    for (i = 0; i < BENCH_NUM_VARIANTS; ++i) {
        if (known & BENCH_VARIANTS_ASKED & (1u << i)) {
            printf("%s%s", comma, bench_variants[i]);
            comma = ", ";
        }
    }
    printf(")\n"
           "  --json FILE      write the report to a file\n"
           "  --help           print this and stop\n");
}

int bench_parse(bench_options_t *options, const bench_option_t *table,
                const char *help, int argc, char **argv)
{
    const char *variants          = NULL;
    const bench_option_t common[] = {
        {.name = "trials", .min = 1, .max = BENCH_MAX_TRIALS,
         .number = &options->trials},
        {.name = "variants", .text = &variants},
        {.name = "json", .text = &options->json},
        {.name = NULL}
    };
    const bench_option_t *option;
    const char *arg, *text;
    int i;

    options->trials = 3;
    for (i = 1; i < argc; ++i) {
        arg = argv[i];
        if ((strcmp(arg, "--help") == 0) || (strcmp(arg, "-h") == 0)) {
            bench_help(help, options->known);
            return 1;
        }
        option = bench_find_option(table, arg);
        option = (option != NULL) ? option : bench_find_option(common, arg);
        text   = strchr(arg, '=');
        if (text != NULL) {
            ++text;
        } else if (i + 1 < argc) {
            text = argv[++i];
        }
        if (bench_parse_option(option, arg, text) != 0) {
            return -1;
        }
    }
    if (variants == NULL) {
        options->variants = options->known &
                            ~BENCH_VARIANTS_ASKED;
        return 0;
    }
    return bench_parse_variants(variants, options->known, &options->variants);
}

void bench_run(const bench_options_t *options, int first,
               bench_trial_func_t func, void *arg)
{
    int trial, turn, variant;

    for (trial = first; trial < options->trials; ++trial) {
        for (turn = 0; turn < BENCH_NUM_VARIANTS; ++turn) {
            variant = (trial % 2 == 0) ? turn : (BENCH_NUM_VARIANTS - 1 - turn);
            if (options->variants & (1u << variant)) {
                func(arg, variant, trial);
            }
        }
    }
}

MPI_Comm bench_only_comm(MPI_Comm comm)
{
    MPI_Comm only;
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_queue_only", "true");
    bench_check(MPI_Comm_dup_with_info(comm, info, &only),
                "MPI_Comm_dup_with_info");
    MPI_Info_free(&info);
    return only;
}

void bench_exchange_init(int count, MPI_Request *requests,
                         MPI_Request *exchange)
{
    MPI_Info info;

    bench_check(MPI_Info_create(&info), "MPI_Info_create");
    bench_check(MPI_Info_set(info, "mpix_coupled", "true"), "MPI_Info_set");
    bench_check(MPIX_Exchange_init(count, requests, info, exchange),
                "MPIX_Exchange_init");
    bench_check(MPI_Info_free(&info), "MPI_Info_free");
}

void bench_matchall(int count, MPI_Request *requests)
{
    bench_check(MPIX_Matchall(count, requests, MPI_STATUSES_IGNORE),
                "MPIX_Matchall");
}

void bench_startall(MPIX_Queue queue, int count, MPI_Request *requests)
{
    bench_check(MPIX_Enqueue_startall(queue, count, requests),
                "MPIX_Enqueue_startall");
}

void bench_waitall(MPIX_Queue queue, int count, MPI_Request *requests)
{
    bench_check(MPIX_Enqueue_waitall(queue, count, requests),
                "MPIX_Enqueue_waitall");
}

void bench_freeall(int count, MPI_Request *requests)
{
    int i;

    for (i = 0; i < count; ++i) {
        if (requests[i] != MPI_REQUEST_NULL) {
            bench_check(MPI_Request_free(&requests[i]), "MPI_Request_free");
        }
    }
}

FILE *bench_open_text(char **text_p, size_t *size_p)
{
    FILE *file = open_memstream(text_p, size_p);

    if (file == NULL) {
        bench_check(MPI_ERR_NO_MEM, "open_memstream");
    }
    return file;
}

double bench_now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (ts.tv_sec * 1e6) + (ts.tv_nsec / 1e3);
}

double bench_max(double value)
{
    double result = value;

    bench_check(MPI_Allreduce(&value, &result, 1, MPI_DOUBLE, MPI_MAX,
                              MPI_COMM_WORLD), "MPI_Allreduce");
    return result;
}

uint64_t bench_sum(uint64_t value, MPI_Comm comm)
{
    uint64_t result = value;

    bench_check(MPI_Allreduce(&value, &result, 1, MPI_UINT64_T, MPI_SUM,
                              comm), "MPI_Allreduce");
    return result;
}
