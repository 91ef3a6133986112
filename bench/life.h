/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * life.h - Conway's Game of Life on a grid of cells that wraps around: a halo
 * of 8 neighbours around a kernel of little work, as in the paper of 2026.
 *
 * The grid is divided among a grid of ranks. A rank has its own cells and,
 * around them, copies of its neighbours' borders. A generation is
 *
 *     pack      own borders -> send buffers
 *     exchange  8 messages
 *     step      receive buffers -> copies of borders; the next generation
 *
 * With the stream of a GPU the cells, the messages and the kernels are the
 * GPU's (life_device.c), and there are no copies of borders.
 *
 * Used by the main thread or, in kernels, by the stream; the stream's order and
 * its synchronisation with the host protect it.
 */
#ifndef LIFE_H_
#define LIFE_H_

#include "bench_stream.h"

#define LIFE_NUM_DIRS 8
#define LIFE_MAX_SETS 2


/* With the stream of a GPU. The main thread's. */
typedef struct life_device {
    bench_area_t cells;
    bench_area_t next;
    bench_area_t out;     /* Messages */
    bench_area_t in[LIFE_MAX_SETS];
    size_t       stride;  /* Bytes from one message to the next */
} life_device_t;


/* Data of one rank. The kernels' argument. */
typedef struct life_field {
    int      total[2];    /* Cells in x and y, of all ranks */
    int      ranks[2];
    int      start[2];    /* Own cells: the first one's place */
    int      size[2];     /* and how many there are */
    int      neighbour[LIFE_NUM_DIRS];
    int      length[LIFE_NUM_DIRS]; /* Of a message, in cells */
    uint8_t  *cells;      /* (size[0] + 2) * (size[1] + 2), row by row */
    uint8_t  *next;
    uint8_t  *send[LIFE_NUM_DIRS]; /* Messages in the host's memory */
    uint8_t  *recv[LIFE_MAX_SETS][LIFE_NUM_DIRS];
    uint8_t  *out[LIFE_NUM_DIRS];  /* The same memory, or in a GPU */
    uint8_t  *in[LIFE_MAX_SETS][LIFE_NUM_DIRS];
    const bench_stream_t *stream;
    life_device_t *device; /* NULL: a stream of the host */
    unsigned num_sets;    /* Of these, used in turn */
    unsigned step;        /* Generations since ops->prepare() */
} life_field_t;


typedef struct life_ops life_ops_t;

/* One exchange: requests and queue, made by ops->init(). Of a set there are
 * first the receives, then the sends. */
typedef struct life_exchange {
    const life_ops_t *ops;
    life_field_t     *field;
    bench_stream_t   stream;
    MPIX_Queue       queue;
    MPI_Request      requests[LIFE_MAX_SETS][2 * LIFE_NUM_DIRS];
    MPI_Request      all[LIFE_MAX_SETS]; /* MPIX exchange: of a set's requests;
                                            of st-ready of its receives */
    MPI_Request      sends[LIFE_MAX_SETS]; /* The same of its sends */
    uint64_t         messages; /* Sends started of matched requests so far */
} life_exchange_t;


/* A variant. All slots are filled. */
struct life_ops {
    const char *name;
    unsigned   num_sets;  /* Receive buffers used in turn */
    int        is_staged; /* Messages of a GPU go by way of the host */
    /* Makes and matches requests. Collective. */
    void       (*init)(life_exchange_t *ex);
    /* Brings the exchange to its start; not timed. A barrier follows. */
    void       (*prepare)(life_exchange_t *ex);
    /* Computes 'count' generations and blocks until they are done. Timed. */
    void       (*run)(life_exchange_t *ex, int count);
    /* Releases what init() made. */
    void       (*cleanup)(life_exchange_t *ex);
};

extern const life_ops_t life_mpi_ops;
extern const life_ops_t life_mpi_device_ops;
extern const life_ops_t life_st_ops;
extern const life_ops_t life_st_ready_ops;
extern const life_ops_t life_st_hpe_ops;
extern const life_ops_t life_st_single_ops;
extern const life_ops_t life_nccl_ops;
extern const life_ops_t life_nvshmem_ops;

/* init() and cleanup() of variants that need nothing, and prepare() of all. */
void life_none(life_exchange_t *ex);
void life_prepare(life_exchange_t *ex);


/* Divides the grid; returns 0, or -1 after printing why that cannot be. */
int life_field_init(life_field_t *field, const int total[2], int rank,
                    int ranks);

/* Allocates the cells and messages, where the stream's options say. */
void life_field_alloc(life_field_t *field, const bench_stream_t *stream);
void life_field_cleanup(life_field_t *field);

/* Sets the first generation. */
void life_field_reset(life_field_t *field);

/* The direction that points back. */
int life_opposite(int dir);

/* Kernels; the argument is a life_field_t. */
void life_kernel_pack(void *arg);
void life_kernel_step(void *arg);

/* Enqueue the kernels, with what moves messages to and from a GPU. */
void life_pack(life_exchange_t *ex);
void life_step(life_exchange_t *ex);

/* The same with the stream of a GPU. */
void life_device_init(life_field_t *field);
void life_device_cleanup(life_field_t *field);
void life_device_pack(life_exchange_t *ex);
void life_device_step(life_exchange_t *ex);

/* Have a GPU's cells be as the host's, and the other way round. */
void life_device_store(life_field_t *field);
void life_device_fetch(life_field_t *field);

/* Computes 'count' generations of the whole grid in a plain way; returns the
 * own cells that differ. */
uint64_t life_compare(const life_field_t *field, int count);

#endif
