/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong_line.c - how far the two ranks' cores are from each other: the time
 * of a cache line to the other one and back. Cores of a virtual machine are
 * moved while it runs.
 */
#include "pingpong.h"

#include <sched.h>

#define PP_LINE_COUNT   8    /* Round trips timed together */
#define PP_LINE_BATCHES 4
#define PP_LINE_SPINS   4096 /* Then others may need the core */


/* The line in a window of rank 0, and what it holds now. Main thread only, but
 * for the line: the ranks store to it in turns. */
static struct {
    MPI_Win           window;
    volatile uint64_t *word;
    uint64_t          count;
} pp_line;


void pp_line_init(const pp_exchange_t *ex)
{
    MPI_Aint size;
    void *line;
    int unit;

    bench_check(MPI_Win_allocate_shared((ex->rank == 0) ? 64 : 0, 1,
                                        MPI_INFO_NULL, ex->comm, &line,
                                        &pp_line.window),
                "MPI_Win_allocate_shared");
    bench_check(MPI_Win_shared_query(pp_line.window, 0, &size, &unit, &line),
                "MPI_Win_shared_query");
    pp_line.word  = line;
    pp_line.count = 0;
    if (ex->rank == 0) {
        *pp_line.word = 0;
    }
    bench_check(MPI_Barrier(ex->comm), "MPI_Barrier");
}

void pp_line_cleanup(void)
{
    bench_check(MPI_Win_free(&pp_line.window), "MPI_Win_free");
}

/* Waits for this rank's turn, and gives it to the other one */
static void pp_line_pass(const pp_exchange_t *ex)
{
    unsigned spins = 0;

    while (__atomic_load_n(pp_line.word, __ATOMIC_ACQUIRE) !=
           pp_line.count + ex->rank) {
        if (++spins >= PP_LINE_SPINS) {
            (void)sched_yield();
        }
    }
    __atomic_store_n(pp_line.word, pp_line.count + ex->rank + 1,
                     __ATOMIC_RELEASE);
    pp_line.count += 2;
}

double pp_line_measure(const pp_exchange_t *ex)
{
    double best = 0;
    double start, time;
    int batch, i;

    bench_check(MPI_Barrier(ex->comm), "MPI_Barrier");
    for (batch = 0; batch < PP_LINE_BATCHES; ++batch) {
        start = MPI_Wtime();
        for (i = 0; i < PP_LINE_COUNT; ++i) {
            pp_line_pass(ex);
        }
        time = (MPI_Wtime() - start) * 1e9 / PP_LINE_COUNT;
        best = ((batch == 0) || (time < best)) ? time : best;
    }
    return best;
}
