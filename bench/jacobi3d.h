/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jacobi3d.h - Jacobi's method on a grid in three dimensions, in blocks that
 * are message-driven objects: more of them than ranks, each goes on as soon as
 * the faces of its neighbours are there. Main thread only.
 */
#ifndef JACOBI3D_H_
#define JACOBI3D_H_

#include "bench_box.h"
#include "bench_util.h"

#include <ucp_st_msg.h>

#define J3_DIMS  BENCH_BOX_DIMS
#define J3_SIDES BENCH_BOX_SIDES
#define J3_SETS  2  /* Buffers for faces that are to come */

typedef struct j3_app j3_app_t;
typedef struct j3_block j3_block_t;


/* A face that is to come, of the even or odd iterations where both sets are
 * used. */
typedef struct j3_face {
    j3_block_t *block;
    double     *in;
    int        is_waited; /* With metadata: the block waits for it */
    int        is_here;   /* ... or it has come before */
} j3_face_t;


/* Where a block touches another one. */
typedef struct j3_side {
    j3_block_t       *block;
    int              neighbour; /* Block; -1: the edge of the grid */
    size_t           length;    /* Of a face, bytes */
    double           *out;
    double           *stage[2]; /* Staging: a face that comes, and one that goes
                                 */
    j3_face_t        faces[J3_SETS];
    ucp_st_channel_h channel;
} j3_side_t;


struct j3_block {
    j3_app_t    *app;
    int         index;
    int         first[J3_DIMS]; /* Cell, of the grid */
    bench_box_t field;
    j3_side_t   sides[J3_SIDES];
    int         iteration;
    double      began;          /* Its faces are packed from then on, us */
    double      exchange_us;    /* Sum: from then until all were there */
    int         pending;        /* Operations before it can compute */
    j3_block_t  *ready;         /* Next in the list of those that can */
    int         num_messages;   /* On the stream, in one direction */
    MPI_Request requests[J3_SETS][2 * J3_SIDES]; /* Receives, then sends */
    MPI_Request all[J3_SETS];   /* MPIX exchange: of a set's requests; of
                                   st-ready of its receives */
    MPI_Request sends[J3_SETS]; /* The same of its sends */
};


/* What goes with a face's metadata: where it is to go. */
typedef struct j3_header {
    uint32_t block;
    uint16_t side;
    uint16_t parity;
} j3_header_t;


/* A way to exchange faces. Both functions end in j3_block_done(). */
typedef struct j3_way {
    void     (*send)(j3_side_t *side);
    void     (*recv)(j3_side_t *side);
    /* Lets operations go on; returns how many are over. */
    unsigned (*progress)(j3_app_t *app);
} j3_way_t;


struct j3_app {
    int                  rank;
    int                  num_ranks;
    int                  grid[J3_DIMS];  /* Blocks */
    int                  width[J3_DIMS]; /* Cells of all */
    int                  num_blocks;     /* Of this rank */
    int                  first_block;
    int                  iters;
    unsigned             num_sets;       /* Used in turn */
    j3_block_t           *blocks;
    bench_box_t          reference;      /* All, computed serially */
    const j3_way_t       *way;
    j3_block_t           *ready_head;
    j3_block_t           **ready_tail;
    int                  num_done;       /* Blocks with all iterations */
    ucp_context_h        context;
    ucp_worker_h         worker;
    ucp_ep_h             *eps;
    ucp_st_channel_ctx_h ctx;
    void                 *stream;        /* With the next two: jacobi3d_st.c */
    MPIX_Queue           queue;
    uint64_t             messages;       /* Sends started on the queue so far */
    MPI_Request          *staged;        /* Two of each side of each block: as
                                            its stages */
    int                  *finished;      /* Indexes of those that are over */
};


/* A way to have the faces on a stream, with which the host does nothing. All
 * functions are collective. */
typedef struct j3_st {
    unsigned num_sets;
    /* Makes and matches requests. */
    void (*init)(j3_app_t *app);
    /* Brings it to its start; not timed. A barrier follows. */
    void (*prepare)(j3_app_t *app);
    /* Computes all iterations and blocks until they are done. Timed. */
    void (*run)(j3_app_t *app);
} j3_st_t;

extern const j3_way_t j3_channel;
extern const j3_way_t j3_metadata;
extern const j3_way_t j3_staging;


/* jacobi3d_block.c */

/* Makes the blocks of this rank, and the reference. */
void j3_blocks_init(j3_app_t *app, int per_rank);
void j3_blocks_cleanup(j3_app_t *app);

/* Gives blocks their first values. */
void j3_blocks_reset(j3_app_t *app);

/* Time of an iteration from the first face that a block packs until it has all
 * of its neighbours', us: the mean of this rank's blocks. */
double j3_blocks_exchange_us(const j3_app_t *app);

/* Begins the exchange of faces of an iteration. */
void j3_block_begin(j3_block_t *block);

/* An operation of a block is over. */
void j3_block_done(j3_block_t *block);

/* Kernels of a block on a stream: its faces to their buffers; and, as they are
 * there, the next iteration. The argument is a j3_block_t. */
void j3_kernel_pack(void *arg);
void j3_kernel_compute(void *arg);

/* All faces are there: computes, and begins the next iteration. */
void j3_block_run(j3_block_t *block);

/* Rows of this rank's blocks that are not as in the reference, bit by bit. */
uint64_t j3_blocks_check(j3_app_t *app);


/* jacobi3d_ways.c */

/* Ends the job unless the status is UCS_OK or UCS_INPROGRESS. */
void j3_must(ucs_status_t status, const char *what);

/* Opens UCP, and the channels of all blocks. Collective. */
void j3_ways_open(j3_app_t *app);
void j3_ways_close(j3_app_t *app);


/* jacobi3d_st.c */

extern const j3_st_t j3_st;
extern const j3_st_t j3_st_ready;
extern const j3_st_t j3_st_single;

/* Frees what init() made. */
void j3_st_cleanup(j3_app_t *app);

#endif
