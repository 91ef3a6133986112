/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pingpong.h - round trips of two ranks: pack kernel, send, receive, unpack
 * kernel, and back; or without these kernels, with one that takes a given time
 * between a receive and what follows, or with none.
 *
 * With the stream of a GPU the data, the messages and the kernels are the GPU's
 * (pingpong_device.c). Host-driven MPI, which cannot be expected to know its
 * memory, then has pinned memory, to and from which the stream copies.
 *
 * Used by the main thread or, in kernels, by the stream; the stream's order and
 * its synchronisation with the host protect it.
 */
#ifndef PINGPONG_H_
#define PINGPONG_H_

#include "bench_stream.h"

#define PP_NUM_SETS 2
#define PP_TAG      7


typedef struct pp_ops pp_ops_t;


/* With the stream of a GPU; of data and messages the host's parts are those of
 * pp_data_t. The main thread's. */
typedef struct pp_device {
    bench_area_t source;
    bench_area_t sink;
    bench_area_t send;
    bench_area_t recv[PP_NUM_SETS];
    bench_area_t results; /* Words: what kernels say of each message */
    unsigned     packs;   /* Enqueued so far */
    unsigned     unpacks;
} pp_device_t;


/* Data of one rank. The kernels' argument: changed by them in stream order. */
typedef struct pp_data {
    int      rank;
    const bench_stream_t *stream;
    size_t   size;
    uint8_t  *source;            /* Packed into 'send' */
    uint8_t  *sink;              /* Unpacked from 'recv' */
    pp_device_t *device;         /* NULL: a stream of the host */
    uint8_t  *send;              /* Messages */
    uint8_t  *recv[PP_NUM_SETS];
    unsigned num_sets;           /* Receive buffers used in turn: 1 or 2 */
    unsigned sent;               /* Messages packed so far */
    unsigned received;           /* Messages unpacked so far */
    int      is_staged;          /* Messages of a GPU go by way of the host */
    int      full;               /* New payload and full check for each use */
    int      kernel_us;          /* In place of both kernels, in runs that are
                                    timed: one of this time behind each message
                                    that came; 0: none; below 0: both kernels */
    int      is_packed;          /* Of this run: by both kernels */
    uint64_t errors;             /* Messages with wrong data */
} pp_data_t;


/* What the two ranks work with; requests are those of one trial. */
typedef struct pp_exchange {
    const pp_ops_t *ops;
    pp_data_t      *data;
    int            rank;       /* 0 or 1 */
    MPI_Comm       comm;       /* Of the two */
    MPI_Comm       once;       /* The same, of messages that are used once */
    bench_stream_t stream;
    MPIX_Queue     queue;      /* NULL unless a queue is used */
    MPI_Request    send;
    MPI_Request    recv;
    uint64_t       messages;   /* Sends started on the queue so far */
} pp_exchange_t;


/* A variant. All slots are filled. */
struct pp_ops {
    const char *name;
    unsigned   num_sets; /* Receive buffers used in turn */
    int        is_staged; /* Messages of a GPU go by way of the host */
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
extern const pp_ops_t pp_mpi_device_ops;
extern const pp_ops_t pp_nccl_ops;
extern const pp_ops_t pp_nvshmem_ops;
extern const pp_ops_t pp_st_ops;
extern const pp_ops_t pp_st_ready_ops;
extern const pp_ops_t pp_st_hpe_ops;
extern const pp_ops_t pp_st_fifo_ops;
extern const pp_ops_t pp_st_mpich_ops;
extern const pp_ops_t pp_st_win_ops;


/* Allocates buffers for messages of up to 'max_size', where the stream's
 * options say, for runs of up to 'max_count' round trips. */
void pp_data_init(pp_data_t *data, int rank, const bench_stream_t *stream,
                  size_t max_size, unsigned max_count);

/* Frees them. */
void pp_data_cleanup(pp_data_t *data);

/* Prepares for a run of a variant: counters to 0, sink and receive buffers
 * spoiled. */
void pp_data_reset(pp_data_t *data, size_t size, const pp_ops_t *ops, int full);

/* Enqueue what packs a message, and what unpacks one; or what stands for it. */
void pp_data_pack(pp_data_t *data);
void pp_data_unpack(pp_data_t *data);

/* Whether that is nothing: there is no stream to wait for. */
int pp_data_is_bare(const pp_data_t *data);

/* What host-driven MPI sends, and receives at a use. */
uint8_t *pp_data_mpi_send(const pp_data_t *data);
uint8_t *pp_data_mpi_recv(const pp_data_t *data, unsigned use);

/* The same with the stream of a GPU. */
void pp_device_init(pp_data_t *data, size_t max_size, unsigned max_count);
void pp_device_cleanup(pp_data_t *data);
void pp_device_reset(pp_data_t *data);
void pp_device_pack(pp_data_t *data);
void pp_device_unpack(pp_data_t *data);

/* Fetches a message that no kernel has unpacked, to the host's part. */
void pp_device_fetch_message(pp_data_t *data, unsigned set);

/* Fetches what was received last, and counts the messages that kernels found
 * wrong. */
void pp_device_fetch(pp_data_t *data, unsigned count);

/* The first bytes of a message, and the first byte of a payload. */
uint64_t pp_stamp(int rank, unsigned use);
uint8_t pp_byte(int rank, unsigned use, size_t i);

/* From 'source' to a message, and from one to 'sink'; not static, so that
 * traces show their names. */
void pp_kernel_pack(void *arg);
void pp_kernel_unpack(void *arg);

/* After a run of 'count' round trips: checks the last message in full. Returns
 * the number of wrong messages. */
uint64_t pp_data_check(pp_data_t *data, unsigned count);

#endif
