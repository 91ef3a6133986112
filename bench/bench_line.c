/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_line.c - see bench_line.h. */
#include "bench_line.h"
#include "bench_util.h"

#include <sched.h>

#define BENCH_LINE_SIZE    64
#define BENCH_LINE_COUNT   8    /* Round trips timed together */
#define BENCH_LINE_BATCHES 16
#define BENCH_LINE_SPINS   4096 /* Then others may need the core */


/* The first two ranks, if they are in one node, have a communicator */
static void bench_line_split(bench_line_t *line, MPI_Comm comm)
{
    MPI_Comm two;
    int rank, size;

    line->comm = MPI_COMM_NULL;
    bench_check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    bench_check(MPI_Comm_split(comm, (rank < 2) ? 0 : MPI_UNDEFINED, rank,
                               &two), "MPI_Comm_split");
    if (two == MPI_COMM_NULL) {
        return;
    }
    bench_check(MPI_Comm_split_type(two, MPI_COMM_TYPE_SHARED, rank,
                                    MPI_INFO_NULL, &line->comm),
                "MPI_Comm_split_type");
    MPI_Comm_free(&two);
    MPI_Comm_size(line->comm, &size);
    if (size < 2) {
        MPI_Comm_free(&line->comm);
    }
}

void bench_line_open(bench_line_t *line, MPI_Comm comm)
{
    MPI_Aint size;
    void *word;
    int unit;

    bench_line_split(line, comm);
    if (line->comm == MPI_COMM_NULL) {
        return;
    }
    MPI_Comm_rank(line->comm, &line->rank);
    bench_check(MPI_Win_allocate_shared((line->rank == 0) ? BENCH_LINE_SIZE : 0,
                                        1, MPI_INFO_NULL, line->comm, &word,
                                        &line->window),
                "MPI_Win_allocate_shared");
    bench_check(MPI_Win_shared_query(line->window, 0, &size, &unit, &word),
                "MPI_Win_shared_query");
    line->word  = word;
    line->count = 0;
    if (line->rank == 0) {
        *line->word = 0;
    }
}

void bench_line_close(bench_line_t *line)
{
    if (line->comm != MPI_COMM_NULL) {
        bench_check(MPI_Win_free(&line->window), "MPI_Win_free");
        MPI_Comm_free(&line->comm);
    }
}

/* Waits for this rank's turn, and gives it to the other one */
static void bench_line_pass(bench_line_t *line)
{
    uint64_t turn  = line->count + line->rank;
    unsigned spins = 0;

    while (__atomic_load_n(line->word, __ATOMIC_ACQUIRE) != turn) {
        if (++spins >= BENCH_LINE_SPINS) {
            (void)sched_yield();
        }
    }
    __atomic_store_n(line->word, turn + 1, __ATOMIC_RELEASE);
    line->count += 2;
}

double bench_line_measure(bench_line_t *line)
{
    double best = 0;
    double start, time;
    int batch, i;

    if (line->comm == MPI_COMM_NULL) {
        return 0;
    }
    bench_check(MPI_Barrier(line->comm), "MPI_Barrier");
    for (batch = 0; batch < BENCH_LINE_BATCHES; ++batch) {
        start = MPI_Wtime();
        for (i = 0; i < BENCH_LINE_COUNT; ++i) {
            bench_line_pass(line);
        }
        time = (MPI_Wtime() - start) * 1e9 / BENCH_LINE_COUNT;
        best = ((batch == 0) || (time < best)) ? time : best;
    }
    return best;
}
