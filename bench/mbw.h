/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mbw.h - windows of messages between the ranks of pairs, in both directions at
 * once.
 *
 * An iteration is a window: so many messages from each rank of a pair to the
 * other one, each with a place of its own at both ends, and then the knowledge
 * on both sides that all of them have come. Or it is the registration of memory
 * as long as a message, by all ranks at a time. Used by the main thread, and by
 * streams that this one waits for.
 */
#ifndef MBW_H_
#define MBW_H_

#include "bench_util.h"

#define MBW_NUM_SETS 2


/* Messages of one rank; one of a window lies behind the other. */
typedef struct mbw_data {
    int      rank;
    int      peer;
    int      by_mpi;             /* Messages' buffers are MPI's */
    int      window;             /* Messages of an iteration */
    size_t   size;               /* Of a message */
    size_t   length;             /* Of each of the following */
    unsigned use;                /* What the messages' content is made of */
    uint8_t  *send;
    uint8_t  *recv[MBW_NUM_SETS];
} mbw_data_t;


typedef struct mbw_ops mbw_ops_t;

/* What a rank works with; requests are those of one trial. */
typedef struct mbw_exchange {
    const mbw_ops_t *ops;
    mbw_data_t      *data;
    void            *stream;
    MPIX_Queue      queue;               /* NULL unless a queue is used */
    MPI_Request     *requests;           /* Of the first set, of the second */
    MPI_Request     *recv[MBW_NUM_SETS]; /* A window of them each, there */
    MPI_Request     *send[MBW_NUM_SETS];
    uint64_t        messages;            /* Sends started on the queue so far */
} mbw_exchange_t;


/* A variant. All slots are filled. */
struct mbw_ops {
    unsigned num_sets; /* Receive buffers used in turn */
    int      is_still; /* Nothing is moved */
    /* Makes and matches requests. Collective of a pair. */
    void     (*init)(mbw_exchange_t *ex);
    /* Brings a run to its start; not timed. A barrier of all ranks follows. */
    void     (*prepare)(mbw_exchange_t *ex);
    /* Runs 'count' iterations and blocks until they are done. Timed. */
    void     (*run)(mbw_exchange_t *ex, int count);
    /* Releases what init() made. */
    void     (*cleanup)(mbw_exchange_t *ex);
};

extern const mbw_ops_t mbw_mpi_ops;
extern const mbw_ops_t mbw_st_ops;
extern const mbw_ops_t mbw_st_ready_ops;
extern const mbw_ops_t mbw_put_ops;
extern const mbw_ops_t mbw_put_strict_ops;
extern const mbw_ops_t mbw_get_ops;
extern const mbw_ops_t mbw_get_strict_ops;
extern const mbw_ops_t mbw_reg_ops;


/* Allocates windows of messages of up to 'max_size'. 'rank', 'peer', 'by_mpi'
 * and 'window' are set. */
void mbw_data_init(mbw_data_t *data, size_t max_size);

/* Frees them. */
void mbw_data_cleanup(mbw_data_t *data);

/* Prepares for a run: new content for what is sent, receive buffers spoiled. */
void mbw_data_reset(mbw_data_t *data);

/* After a run: checks the whole last window, which came to this set. Returns
 * the number of wrong messages. */
uint64_t mbw_data_check(const mbw_data_t *data, int set);

/* Connects workers of a pair for one-sided operations. Collective. */
void mbw_rma_open(const mbw_data_t *data);

/* Ends that. Collective. */
void mbw_rma_close(const mbw_data_t *data);

/* The lane over which one-sided operations went last; "" if there were none. */
const char *mbw_rma_lane(void);

#endif
