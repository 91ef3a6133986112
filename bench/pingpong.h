/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong.h - round trips of two ranks: pack kernel, send, receive, unpack
 * kernel, and back.
 *
 * Used by the main thread or, in kernels, by the stream; the stream's order and
 * its synchronisation with the host protect it.
 */
#ifndef PINGPONG_H_
#define PINGPONG_H_

#include "bench_util.h"

#define PP_NUM_SETS 2
#define PP_TAG      7


/* Data of one rank. The kernels' argument: changed by them in stream order. */
typedef struct pp_data {
    int      rank;
    int      by_mpi;             /* Messages' buffers are MPI's */
    size_t   size;
    uint8_t  *source;            /* Packed into 'send' */
    uint8_t  *sink;              /* Unpacked from 'recv' */
    uint8_t  *send;
    uint8_t  *recv[PP_NUM_SETS];
    unsigned num_sets;           /* Receive buffers used in turn: 1 or 2 */
    unsigned sent;               /* Messages packed so far */
    unsigned received;           /* Messages unpacked so far */
    int      full;               /* New payload and full check for each use */
    uint64_t errors;             /* Messages with wrong data */
} pp_data_t;


typedef struct pp_ops pp_ops_t;

/* What the two ranks work with; requests are those of one trial. */
typedef struct pp_exchange {
    const pp_ops_t *ops;
    pp_data_t      *data;
    int            rank;       /* 0 or 1 */
    MPI_Comm       comm;       /* Of the two */
    void           *stream;
    MPIX_Queue     queue;      /* NULL unless a queue is used */
    MPI_Request    send;
    MPI_Request    recv;
    uint64_t       messages;   /* Sends started on the queue so far */
} pp_exchange_t;


/* A variant. All slots are filled. */
struct pp_ops {
    const char *name;
    unsigned   num_sets; /* Receive buffers used in turn */
    /* Makes and matches requests. Collective of the two ranks. */
    void       (*init)(pp_exchange_t *ex);
    /* Starts rank 1's first receive; not timed. */
    void       (*prepare)(pp_exchange_t *ex);
    /* Runs 'count' round trips and blocks until they are done. Timed. */
    void       (*run)(pp_exchange_t *ex, int count);
    /* Releases what init() made. */
    void       (*cleanup)(pp_exchange_t *ex);
};

extern const pp_ops_t pp_mpi_ops;
extern const pp_ops_t pp_st_ops;
extern const pp_ops_t pp_st_ready_ops;
extern const pp_ops_t pp_st_hpe_ops;


/* Allocates buffers for messages of up to 'max_size': if 'by_mpi', those that
 * are sent and received by MPI_Alloc_mem(). */
void pp_data_init(pp_data_t *data, int rank, size_t max_size, int by_mpi);

/* Frees them. */
void pp_data_cleanup(pp_data_t *data);

/* Prepares for a run: counters to 0, sink and receive buffers spoiled. */
void pp_data_reset(pp_data_t *data, size_t size, unsigned num_sets, int full);

/* Kernels; the argument is a pp_data_t. */
void pp_kernel_pack(void *arg);
void pp_kernel_unpack(void *arg);

/* After a run of 'count' round trips: checks the last message in full. Returns
 * the number of wrong messages. */
uint64_t pp_data_check(pp_data_t *data, unsigned count);

#endif
