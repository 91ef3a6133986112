/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faces_raw.c - the floor: the halo without MPI's messages, streams or queues.
 * Each rank's main thread runs the kernels, copies each message once, straight
 * to where the neighbour unpacks it, and counts up one flag for each neighbour,
 * for all messages to it.
 *
 * Receive buffers are used in turns. What is copied in iteration i to set i % 2
 * of a neighbour was unpacked there in iteration i - 2, if at all: the flag of
 * iteration i - 1, which this rank has seen, follows that.
 */
#include "faces.h"

#include <sched.h>
#include <string.h>

#define FACES_RAW_LINE  64  /* Bytes between what different ranks write */
#define FACES_RAW_SPINS 100 /* Looks until another rank gets the processor */


typedef struct faces_raw_flag {
    volatile uint64_t count; /* Iterations whose messages are there */
    uint8_t           reserved[FACES_RAW_LINE - sizeof(uint64_t)];
} faces_raw_flag_t;

/* Main thread only, but for the windows' memory. A window has a flag for each
 * rank, which that one stores, and behind them the messages of both sets. */
static struct {
    MPI_Win          window;
    int              ranks;
    int              rank;
    uint64_t         iter;
    faces_raw_flag_t *flags;                         /* Of this rank */
    faces_raw_flag_t *flags_at[FACES_NUM_DIRS];      /* Of the neighbours */
    double           *to[FACES_MAX_SETS][FACES_NUM_DIRS];
    double           *before[FACES_MAX_SETS][FACES_NUM_DIRS];
    int              last[FACES_NUM_DIRS]; /* The last message to its
                                              neighbour */
} faces_raw;


/* Doubles from the start of the window to a message. */
static size_t faces_raw_place(const faces_field_t *field, int set, int dir)
{
    size_t line  = FACES_RAW_LINE / sizeof(double);
    size_t place = (size_t)faces_raw.ranks * line;
    int before   = set * FACES_NUM_DIRS + dir;
    int i;

    for (i = 0; i < before; ++i) {
        place += (field->length[i % FACES_NUM_DIRS] + line - 1) / line * line;
    }
    return place;
}

/* What goes in a direction comes from the opposite one. */
static void faces_raw_connect(faces_exchange_t *ex, int dir)
{
    double *base;
    MPI_Aint size;
    int unit, set, i;

    bench_check(MPI_Win_shared_query(faces_raw.window, ex->grid->neighbour[dir],
                                     &size, &unit, &base),
                "MPI_Win_shared_query");
    faces_raw.flags_at[dir] = (faces_raw_flag_t*)base + faces_raw.rank;
    for (set = 0; set < FACES_MAX_SETS; ++set) {
        faces_raw.to[set][dir] = base + faces_raw_place(ex->field, set,
                                                        faces_opposite(dir));
    }
    faces_raw.last[dir] = 1;
    for (i = 0; i < dir; ++i) {
        if (ex->grid->neighbour[i] == ex->grid->neighbour[dir]) {
            faces_raw.last[i] = 0;
        }
    }
}

static void faces_raw_init(faces_exchange_t *ex)
{
    faces_field_t *field = ex->field;
    double *base;
    size_t size;
    int set, dir;

    MPI_Comm_size(MPI_COMM_WORLD, &faces_raw.ranks);
    faces_raw.rank = bench_rank();
    size           = faces_raw_place(field, FACES_MAX_SETS, 0) * sizeof(double);
    bench_check(MPI_Win_allocate_shared((MPI_Aint)size, 1, MPI_INFO_NULL,
                                        MPI_COMM_WORLD, &base,
                                        &faces_raw.window),
                "MPI_Win_allocate_shared");
    faces_raw.flags = (faces_raw_flag_t*)base;
    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        faces_raw_connect(ex, dir);
        for (set = 0; set < FACES_MAX_SETS; ++set) {
            faces_raw.before[set][dir] = field->recv[set][dir];
            field->recv[set][dir]      = base + faces_raw_place(field, set,
                                                                dir);
        }
    }
}

static void faces_raw_prepare(faces_exchange_t *ex)
{
    (void)ex;
    memset(faces_raw.flags, 0, faces_raw.ranks * sizeof(*faces_raw.flags));
    faces_raw.iter = 0;
}

/* The release stores pair with the neighbours' acquire loads. */
static void faces_raw_send(faces_exchange_t *ex, int set)
{
    const faces_field_t *field = ex->field;
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        memcpy(faces_raw.to[set][dir], field->send[dir],
               field->length[dir] * sizeof(double));
        if (faces_raw.last[dir]) {
            __atomic_store_n(&faces_raw.flags_at[dir]->count, faces_raw.iter,
                             __ATOMIC_RELEASE);
        }
    }
}

static void faces_raw_wait(faces_exchange_t *ex)
{
    unsigned spins = 0;
    int dir;

    for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
        while (faces_raw.last[dir] &&
               (__atomic_load_n(&faces_raw.flags[ex->grid->neighbour[dir]]
                                        .count, __ATOMIC_ACQUIRE) <
                faces_raw.iter)) {
            if (++spins >= FACES_RAW_SPINS) {
                sched_yield();
            }
        }
    }
}

static void faces_raw_run(faces_exchange_t *ex, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        ++faces_raw.iter;
        faces_kernel_pack(ex->field);
        faces_raw_send(ex, i % FACES_MAX_SETS);
        faces_kernel_interior(ex->field);
        faces_raw_wait(ex);
        faces_kernel_unpack(ex->field);
    }
}

static void faces_raw_cleanup(faces_exchange_t *ex)
{
    int set, dir;

    for (set = 0; set < FACES_MAX_SETS; ++set) {
        for (dir = 0; dir < FACES_NUM_DIRS; ++dir) {
            ex->field->recv[set][dir] = faces_raw.before[set][dir];
        }
    }
    bench_check(MPI_Win_free(&faces_raw.window), "MPI_Win_free");
}

const faces_ops_t faces_raw_ops = {
    .name     = "raw",
    .num_sets = FACES_MAX_SETS,
    .init     = faces_raw_init,
    .prepare  = faces_raw_prepare,
    .run      = faces_raw_run,
    .cleanup  = faces_raw_cleanup
};
