/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_util.h - what the benchmarks share: options, the loop of trials, the
 * queues' counts and the report.
 */
#ifndef BENCH_UTIL_H_
#define BENCH_UTIL_H_

#include "bench_counts.h"

#include <mpix_queue.h>

#include <st_report.h>

#include <stddef.h>
#include <stdint.h>

#define BENCH_NUM_VARIANTS  21
#define BENCH_MAX_TRIALS    1000
#define BENCH_MAX_SIZES     32 /* Factors of 2 and more, up to 1 GiB */

/* Masks of variants: those that use a queue of MPIX, and one-sided ones. */
#define BENCH_VARIANT_MPI   (1u << 0)
#define BENCH_VARIANT_ST    (1u << 1)
#define BENCH_VARIANT_READY (1u << 2)
#define BENCH_VARIANTS_ST   (3u << 1)
#define BENCH_VARIANTS_RMA  (15u << 3)
#define BENCH_VARIANT_HPE   (1u << 7) /* Only if it is asked for */
#define BENCH_VARIANT_METADATA (1u << 8)
#define BENCH_VARIANT_CHANNEL  (1u << 9)
#define BENCH_VARIANT_SINGLE   (1u << 10) /* The same */
#define BENCH_VARIANT_FIFO     (1u << 14) /* The same: st-hpe for queues only */
#define BENCH_VARIANT_PAPER    (1u << 15) /* The same: sends of st-hpe, and
                                             MPI_Irecv */
#define BENCH_VARIANT_MPICH    (1u << 16) /* The same: MPICH's interface */
#define BENCH_VARIANT_WIN      (1u << 17) /* The same: HPE's windows */
#define BENCH_VARIANT_STAGING  (1u << 18) /* By way of buffers of the host */
#define BENCH_VARIANT_REG      (1u << 19) /* Only if it is asked for:
                                             registration alone */
#define BENCH_VARIANT_LIBMP    (1u << 20) /* The same: LibMP's interface */
#define BENCH_VARIANTS_ONCE    (BENCH_VARIANT_HPE | BENCH_VARIANT_FIFO)
#define BENCH_VARIANTS_ASKED \
    (BENCH_VARIANTS_ONCE | BENCH_VARIANT_PAPER | BENCH_VARIANT_SINGLE | \
     BENCH_VARIANT_MPICH | BENCH_VARIANT_WIN | BENCH_VARIANT_REG | \
     BENCH_VARIANT_LIBMP)
#define BENCH_VARIANT_MPI_DEVICE (1u << 11) /* On memory of a GPU */
#define BENCH_VARIANT_NCCL     (1u << 12)
#define BENCH_VARIANT_NVSHMEM  (1u << 13)
#define BENCH_VARIANTS_GPU     (7u << 11)

/* What benchmarks compare. */
extern const char *const bench_variants[BENCH_NUM_VARIANTS];


/* MPI_Send_init or MPI_Rsend_init. */
typedef int (*bench_send_init_t)(const void *buf, int count, MPI_Datatype type,
                                 int dest, int tag, MPI_Comm comm,
                                 MPI_Request *request);


/* What every benchmark can be told. */
typedef struct bench_options {
    const char *json;    /* File of the report, or NULL */
    unsigned   known;    /* Mask of the variants that there are; set before */
    unsigned   baseline; /* That one of them; the same; 0: the first one */
    unsigned   variants; /* Mask of those to run */
    int        trials;
} bench_options_t;


/* An option of one benchmark; one of the three pointers is set. Tables end with
 * a name of NULL. */
typedef struct bench_option {
    const char *name;
    size_t     min;     /* Of a number */
    size_t     max;
    int        *number;
    size_t     *size;
    const char **text;
} bench_option_t;


/* Runs one trial of a variant; 'trial' is below 0 for one that warms up. */
typedef void (*bench_trial_func_t)(void *arg, int variant, int trial);


/* Where messages are. */
typedef enum {
    BENCH_MEMORY_MALLOC,
    BENCH_MEMORY_MPI,   /* Of MPI_Alloc_mem() */
    BENCH_MEMORY_DEVICE /* Of the stream's GPU */
} bench_memory_t;


/* What was measured of one variant. */
typedef struct bench_result {
    double   time_us[BENCH_MAX_TRIALS];  /* Of one iteration */
    double   setup_us[BENCH_MAX_TRIALS]; /* To make and match requests */
    uint64_t errors;                     /* Wrong results of this rank */
    bench_counts_t counts;               /* Of its uses, if there are any */
    const char *more;                    /* More JSON members of its row, each
                                            behind a comma; or NULL */
} bench_result_t;


/* What a run leaves behind, all 0 at first. Main thread only. */
typedef struct bench_report {
    const char       *bench;
    const char       *stream;     /* Type of the streams; NULL: host */
    const char       *stream_device; /* The same, and what runs them */
    char             params[256]; /* The benchmark's own JSON members, or "" */
    st_report_row_t  rows[BENCH_NUM_VARIANTS * BENCH_MAX_SIZES];
    bench_counts_mean_t means[BENCH_NUM_VARIANTS * BENCH_MAX_SIZES]; /* Of
                                                                        rows */
    int              num_rows;
    uint64_t         num_messages; /* Of all ranks in an iteration; 0: rows tell
                                      no rate */
    char             *more[BENCH_NUM_VARIANTS * BENCH_MAX_SIZES]; /* Of rows;
                                                                     or NULL */
    int              has_more;    /* Collectives send messages besides those
                                     that the benchmark counts */
    uint64_t         messages;    /* Messages x uses that went through queues */
    MPIX_Queue_stats totals;      /* Sums over ranks; names of rank 0 */
    uint64_t         clears;      /* Sum over ranks, of clear-to-sends fired */
    uint64_t         atomics;     /* The same of additions to words */
    uint64_t         half_starts; /* Sum over ranks, of lanes host and direct */
    char             *counts;     /* Of each rank, one behind the other, each
                                     with its final zero; of rank 0 */
} bench_report_t;


/* Prints what failed and ends the job. */
void bench_fail(int ret, const char *what);

/* Does so unless 'ret' is MPI_SUCCESS; in line, as it is part of what is timed.
 */
static inline void bench_check(int ret, const char *what)
{
    if (ret != MPI_SUCCESS) {
        bench_fail(ret, what);
    }
}

/* Allocates zeroed, cache-line aligned memory; ends the job if there is no
 * memory. */
void *bench_alloc(size_t size);

/* Allocates zeroed memory for messages: by MPI_Alloc_mem() or by malloc(). Ends
 * the job if there is none. */
void *bench_message_alloc(size_t size, int by_mpi);

/* Frees it. */
void bench_message_free(void *message, int by_mpi);

/* What 'by_mpi' is for "mpi" or "malloc"; -1 after printing that it is neither.
 */
int bench_parse_memory(const char *text);

/* Starts MPI with errors returned; with threads only if st-hpe, which needs
 * them, is in the command line: they cost MPI's own calls something. */
void bench_init(int *argc, char ***argv);

/* The rank in MPI_COMM_WORLD. */
int bench_rank(void);

/* Reads the command line: the options of 'table' and those of all benchmarks.
 * Numbers are decimal; k, m, g multiply by powers of 1024. Returns 0 to go on,
 * 1 after printing 'help' and the common options, -1 after printing what is
 * wrong (rank 0 only). */
int bench_parse(bench_options_t *options, const bench_option_t *table,
                const char *help, int argc, char **argv);

/* Runs the trials from number 'first' on; variants take turns in each, and go
 * the other way round in the next: each finds what the one before has left in
 * the caches. */
void bench_run(const bench_options_t *options, int first,
               bench_trial_func_t func, void *arg);

/* Prints to stderr, on rank 0 of MPI_COMM_WORLD only. */
void bench_error(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* Of a clock that only goes on; on any thread. */
double bench_now_us(void);

/* Largest value of all ranks, on every rank. Collective. */
double bench_max(double value);

/* A duplicate of a communicator whose messages are sent and received by queues
 * only. Collective. */
MPI_Comm bench_only_comm(MPI_Comm comm);

/* Makes an exchange of requests, all of which each rank starts at once: it is
 * coupled. */
void bench_exchange_init(int count, MPI_Request *requests,
                         MPI_Request *exchange);

/* Matches requests by one call: messages to oneself need both halves there. */
void bench_matchall(int count, MPI_Request *requests);

/* Enqueues the starts of requests, or the wait for them. */
void bench_startall(MPIX_Queue queue, int count, MPI_Request *requests);
void bench_waitall(MPIX_Queue queue, int count, MPI_Request *requests);

/* Frees requests, but those that are MPI_REQUEST_NULL. */
void bench_freeall(int count, MPI_Request *requests);

/* Text of unknown length; free() it when the file is closed. */
FILE *bench_open_text(char **text_p, size_t *size_p);

/* Sum over the ranks of 'comm', on each of them. Collective. */
uint64_t bench_sum(uint64_t value, MPI_Comm comm);

/* Adds a line for each variant that was run; ratios are taken to the
 * baseline.
 * 'results' has one of each variant, and is sorted. Collective over 'comm'.
 * Uses that were counted are another member of their line, and of a table.
 * Returns the number of wrong results of its ranks. */
uint64_t bench_report_add(bench_report_t *report,
                          const bench_options_t *options, size_t size,
                          bench_result_t *results, MPI_Comm comm);

/* Sums the messages and the queues' counts over the ranks, prints the table and
 * the counts, and writes the file that was asked for. Collective. Returns 0 if
 * every message was one deferred write or went over the host lane, no host
 * thread moved any where the trig lane is asked for, and the file was
 * written. */
int bench_report_finish(bench_report_t *report, const bench_options_t *options,
                        uint64_t messages);

#endif
