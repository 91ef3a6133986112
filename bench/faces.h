/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faces.h - 26-neighbour halo of a block of spectral elements.
 *
 * A rank owns a cubic block of elements, each with 'points' nodes an edge, in a
 * periodic grid of ranks. Nodes at one place are added up: those of one rank's
 * elements by the rank itself, those of several ranks after an exchange of the
 * block's 6 faces, 12 edges and 8 corners. An iteration is
 *
 *     pack      element update, then local sums of the surface -> send buffers
 *     exchange  26 messages; meanwhile:
 *     interior  local sums of all nodes
 *     unpack    add the received sums, spread the result to the elements
 *
 * With the stream of a GPU the data, the messages and the kernels are the GPU's
 * (faces_device.c).
 *
 * Everything here is used by the main thread or, in kernels, by the stream; the
 * stream's order and its synchronisation with the host protect it.
 */
#ifndef FACES_H_
#define FACES_H_

#include "bench_stream.h"

#define FACES_NUM_DIRS 26
#define FACES_MAX_SETS 2


/* Ranks in x, y, z, and where one is. */
typedef struct faces_grid {
    int size[3];
    int coord[3];
    int neighbour[FACES_NUM_DIRS];
} faces_grid_t;


/* A node of an element at the surface of the block. */
typedef struct faces_rim {
    uint32_t node;
    uint32_t surface; /* Its place, counted among those of the surface */
} faces_rim_t;


/* With the stream of a GPU. Lists are as bench_kernel_faces_t has them. Main
 * thread only. */
typedef struct faces_device {
    bench_area_t value;     /* Of nodes; the host's part is the field's */
    bench_area_t source;
    bench_area_t updated;
    bench_area_t sum;       /* Of places */
    bench_area_t first;
    bench_area_t nodes;
    bench_area_t out_place;
    bench_area_t out_at;
    bench_area_t in_first;
    bench_area_t in_at;
    bench_area_t out;       /* Messages */
    bench_area_t in[FACES_MAX_SETS];
    unsigned     num_out;   /* Values that are sent */
    unsigned     packs;     /* Enqueued since the start values were set */
    unsigned     unpacks;
} faces_device_t;


/* Data of one rank. The kernels' arguments: changed by them in stream order. */
typedef struct faces_field {
    int      rank;
    int      block;      /* Elements in each dimension */
    int      points;     /* Nodes of an element in each dimension */
    int      width;      /* Places of the block in each dimension */
    size_t   num_values; /* Nodes of all elements */
    size_t   num_places; /* width^3 */
    double   *value;     /* Of the nodes, element by element */
    double   *source;    /* Of the nodes, added in each iteration */
    double   *sum;       /* Of the places */
    uint32_t *place;     /* Of the nodes */
    size_t   num_rims;
    faces_rim_t *rim;    /* Ascending */
    size_t   num_surface;
    double   *surface;   /* Sums at the places of the surface */
    size_t   length[FACES_NUM_DIRS]; /* Of a message, in doubles */
    uint32_t *from[FACES_NUM_DIRS];  /* In order; of the surface's places */
    uint32_t *to[FACES_NUM_DIRS];    /* The same, of all places */
    double   *send[FACES_NUM_DIRS];  /* Messages in the host's memory */
    double   *recv[FACES_MAX_SETS][FACES_NUM_DIRS];
    double   *out[FACES_NUM_DIRS];   /* The same memory, or in a GPU */
    double   *in[FACES_MAX_SETS][FACES_NUM_DIRS];
    const bench_stream_t *stream;
    faces_device_t *device; /* NULL: a stream of the host */
    unsigned num_sets;   /* Receive buffers used in turn: 1 or 2 */
    unsigned iter;       /* Iterations done since the start values were set */
} faces_field_t;


typedef struct faces_ops faces_ops_t;

/* One exchange: requests and queue, made by ops->init(). */
typedef struct faces_exchange {
    const faces_ops_t *ops;
    faces_grid_t      *grid;
    faces_field_t     *field;
    bench_stream_t    stream;
    MPIX_Queue        queue;
    MPI_Comm          once; /* Of messages that are used once */
    MPI_Request       recv[FACES_MAX_SETS][FACES_NUM_DIRS];
    MPI_Request       send[FACES_MAX_SETS][FACES_NUM_DIRS];
    MPI_Request       all[FACES_MAX_SETS]; /* Exchange: of a set's requests; of
                                              st-ready of its receives */
    MPI_Request       sends[FACES_MAX_SETS]; /* The same of its sends */
    uint64_t          messages; /* Sends started on the queue so far */
} faces_exchange_t;


/* A variant of the exchange. All slots are filled. */
struct faces_ops {
    const char *name;
    unsigned   num_sets; /* Receive buffers used in turn */
    int        is_staged; /* Messages of a GPU go by way of the host */
    /* Makes what one outer iteration needs. Collective. */
    void       (*init)(faces_exchange_t *ex);
    /* Brings the inner loop to its start; not timed. Collective. */
    void       (*prepare)(faces_exchange_t *ex);
    /* Runs 'count' iterations and blocks until they are done. Timed. */
    void       (*run)(faces_exchange_t *ex, int count);
    /* Releases what init() made. Collective. */
    void       (*cleanup)(faces_exchange_t *ex);
};

extern const faces_ops_t faces_mpi_ops;
extern const faces_ops_t faces_mpi_device_ops;
extern const faces_ops_t faces_nccl_ops;
extern const faces_ops_t faces_nvshmem_ops;
extern const faces_ops_t faces_st_ops;
extern const faces_ops_t faces_st_ready_ops;
extern const faces_ops_t faces_st_hpe_ops;
extern const faces_ops_t faces_st_fifo_ops;
extern const faces_ops_t faces_st_paper_ops;
extern const faces_ops_t faces_st_single_ops;
extern const faces_ops_t faces_st_mpich_ops;
extern const faces_ops_t faces_st_libmp_ops;


/* Reads "4x2x1" and checks that it makes 'ranks'; NULL: a choice of MPI's.
 * Returns 0, or -1 after printing why not. */
int faces_grid_init(faces_grid_t *grid, const char *text, int rank, int ranks);

/* The direction's x, y or z (dim 0, 1, 2): -1, 0 or 1. */
int faces_dir(int dir, int dim);

/* The direction that points back. */
int faces_opposite(int dir);

/* Rank at a place of the grid; coordinates wrap around. */
int faces_grid_rank(const faces_grid_t *grid, const int coord[3]);

/* Makes the data of a rank, with messages where the stream's options say. */
void faces_field_init(faces_field_t *field, const bench_stream_t *stream,
                      int rank, int block, int order);

/* Frees what faces_field_init() made. */
void faces_field_cleanup(faces_field_t *field);

/* Sets the start values and spoils all message buffers and sums. */
void faces_field_reset(faces_field_t *field, unsigned num_sets);

/* Start value of a node of a rank, and what each iteration adds to it. */
double faces_start_value(size_t num_values, int rank, size_t node);
double faces_source(size_t num_values, int rank, size_t node);

/* What an iteration adds to all nodes besides. */
double faces_drift(unsigned iter);

/* Value of a node after the element update of an iteration. */
double faces_update(double value, double source, double drift);

/* Kernels; the argument is a faces_field_t. */
void faces_kernel_pack(void *arg);
void faces_kernel_interior(void *arg);
void faces_kernel_unpack(void *arg);

/* Make and free messages whose lengths are set. */
void faces_messages_init(faces_field_t *field);
void faces_messages_cleanup(faces_field_t *field);

/* Enqueue the kernels, with what moves messages to and from a GPU. */
void faces_pack(faces_exchange_t *ex);
void faces_interior(faces_exchange_t *ex);
void faces_unpack(faces_exchange_t *ex);

/* The same with the stream of a GPU. */
void faces_device_init(faces_field_t *field);
void faces_device_cleanup(faces_field_t *field);

/* Has the GPU's memory be as the host's, which was reset; and fetches the
 * values. */
void faces_device_store(faces_field_t *field);
void faces_device_fetch(faces_field_t *field);
void faces_device_pack(faces_exchange_t *ex);
void faces_device_interior(faces_exchange_t *ex);
void faces_device_unpack(faces_exchange_t *ex);

/* Computes the values of all ranks after 'count' iterations in a plain way and
 * copies those of the field's rank to 'expected' (num_values). */
void faces_reference(const faces_field_t *field, const faces_grid_t *grid,
                     int count, double *expected);

/* Compares bit by bit; prints the first difference. Returns 0 or -1. */
int faces_check(const faces_field_t *field, const double *expected,
                const char *variant);

#endif
