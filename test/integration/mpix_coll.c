/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_coll.c - persistent collectives on a queue, against MPI's own results.
 */
#include "mpix_test.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define USES  3
#define GUARD 64 /* Bytes behind a buffer that nobody may touch */
#define LARGE 20000


typedef enum {
    COLL_BCAST,
    COLL_REDUCE,
    COLL_ALLREDUCE,
    COLL_ALLGATHER,
    COLL_ALLTOALL
} coll_kind_t;

/* A collective and its buffers. 'blocks' of 'count' elements may be sent or
 * received. */
typedef struct coll {
    coll_kind_t  kind;
    MPI_Datatype datatype;
    MPI_Op       op;
    int          count;
    int          root;
    int          is_in_place;
    int          is_large; /* Made by the function for large counts */
    MPI_Comm     comm;
    int          rank;
    int          size;
    size_t       elem;    /* Bytes */
    size_t       length;  /* Of each buffer, in bytes, without the guard */
    char         *in;
    char         *out;
    char         *expected;
    MPI_Request  request;
} coll_t;


/* Small numbers, which any type of numbers holds and adds exactly, as MPI's own
 * functions differ in what they do with larger ones; for the logical ones 0 and
 * 1. */
static void coll_fill(coll_t *coll, char *buffer, int use)
{
    const size_t count = coll->length / coll->elem;
    size_t i;
    int value;

    for (i = 0; i < count; ++i) {
        value = (int)((coll->rank * 7 + i * 3 + use * 5) % 11);
        if (coll->datatype == MPI_DOUBLE) {
            ((double*)buffer)[i] = value - 5;
        } else if (coll->datatype == MPI_FLOAT) {
            ((float*)buffer)[i] = value + 0.5f;
        } else if (coll->datatype == MPI_LONG_DOUBLE) {
            ((long double*)buffer)[i] = value;
        } else if (coll->datatype == MPI_C_BOOL) {
            ((bool*)buffer)[i] = (value > 5);
        } else {
            memset(buffer + i * coll->elem,
                   ((coll->op == MPI_SUM) || (coll->op == MPI_MAXLOC)) ?
                           value :
                           value - 3, coll->elem);
        }
    }
}

static char *coll_alloc(const coll_t *coll)
{
    char *buffer = malloc(coll->length + GUARD);

    if (buffer == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(buffer, 0x55, coll->length + GUARD);
    return buffer;
}

/* By the function, or that for large counts. */
#define MAKE(_name, ...) \
    MPIX_OK(coll->is_large ? MPIX_##_name##_init_c(__VA_ARGS__) : \
                             MPIX_##_name##_init(__VA_ARGS__))

static void coll_make(coll_t *coll)
{
    const void *in = coll->is_in_place ? MPI_IN_PLACE : coll->in;

    switch (coll->kind) {
    case COLL_BCAST:
        MAKE(Bcast, coll->out, coll->count, coll->datatype, coll->root,
             coll->comm, MPI_INFO_NULL, &coll->request);
        break;
    case COLL_REDUCE:
        MAKE(Reduce, (coll->rank == coll->root) ? in : coll->in, coll->out,
             coll->count, coll->datatype, coll->op, coll->root, coll->comm,
             MPI_INFO_NULL, &coll->request);
        break;
    case COLL_ALLREDUCE:
        MAKE(Allreduce, in, coll->out, coll->count, coll->datatype, coll->op,
             coll->comm, MPI_INFO_NULL, &coll->request);
        break;
    case COLL_ALLGATHER:
        MAKE(Allgather, in, coll->count, coll->datatype, coll->out,
             coll->count, coll->datatype, coll->comm, MPI_INFO_NULL,
             &coll->request);
        break;
    case COLL_ALLTOALL:
        MAKE(Alltoall, in, coll->count, coll->datatype, coll->out, coll->count,
             coll->datatype, coll->comm, MPI_INFO_NULL, &coll->request);
        break;
    }
}

/* MPI's own result. */
static void coll_expect(coll_t *coll)
{
    const void *in = coll->is_in_place ? MPI_IN_PLACE : coll->in;

    switch (coll->kind) {
    case COLL_BCAST:
        MPI_Bcast(coll->expected, coll->count, coll->datatype, coll->root,
                  coll->comm);
        break;
    case COLL_REDUCE:
        MPI_Reduce((coll->rank == coll->root) ? in : coll->in, coll->expected,
                   coll->count, coll->datatype, coll->op, coll->root,
                   coll->comm);
        break;
    case COLL_ALLREDUCE:
        MPI_Allreduce(in, coll->expected, coll->count, coll->datatype, coll->op,
                      coll->comm);
        break;
    case COLL_ALLGATHER:
        MPI_Allgather(in, coll->count, coll->datatype, coll->expected,
                      coll->count, coll->datatype, coll->comm);
        break;
    case COLL_ALLTOALL:
        MPI_Alltoall(in, coll->count, coll->datatype, coll->expected,
                     coll->count, coll->datatype, coll->comm);
        break;
    }
}

static void coll_init(coll_t *coll)
{
    const int is_wide = (coll->kind == COLL_ALLGATHER) ||
                        (coll->kind == COLL_ALLTOALL);
    MPI_Aint lb, extent;

    MPI_Comm_rank(coll->comm, &coll->rank);
    MPI_Comm_size(coll->comm, &coll->size);
    MPI_Type_get_extent(coll->datatype, &lb, &extent);
    coll->elem     = extent;
    coll->length   = coll->count * coll->elem * (is_wide ? coll->size : 1);
    coll->in       = coll_alloc(coll);
    coll->out      = coll_alloc(coll);
    coll->expected = coll_alloc(coll);
    coll_make(coll);
}

static void coll_cleanup(coll_t *coll)
{
    MPIX_OK(MPI_Request_free(&coll->request));
    free(coll->in);
    free(coll->out);
    free(coll->expected);
}

static void start(MPI_Request *request)
{
    MPIX_OK(MPIX_Enqueue_start(mpix_test.queue, request));
}

static void wait(MPI_Request *request)
{
    MPIX_OK(MPIX_Enqueue_wait(mpix_test.queue, request));
}

static void match(MPI_Request *request)
{
    MPIX_OK(MPIX_Match(request, MPI_STATUS_IGNORE));
}

static void queue_wait(void)
{
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
}

static void launch(MPIX_Host_func func, void *arg)
{
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, func, arg));
}

/* One use, with data of its own. */
static void coll_use(coll_t *coll, int use)
{
    coll_fill(coll, coll->in, use);
    coll_fill(coll, coll->out, use);
    memcpy(coll->expected, coll->out, coll->length);
    coll_expect(coll);

    start(&coll->request);
    wait(&coll->request);
    queue_wait();
    MPIX_CHECK(!memcmp(coll->out, coll->expected, coll->length + GUARD),
               "kind %d count %d root %d in place %d use %d", coll->kind,
               coll->count, coll->root, coll->is_in_place, use);
}

static void run(coll_kind_t kind, MPI_Datatype datatype, MPI_Op op, int count,
                int root, int is_in_place)
{
    static int count_runs;
    coll_t coll = {
        .kind        = kind,
        .datatype    = datatype,
        .op          = op,
        .count       = count,
        .root        = root,
        .is_in_place = is_in_place,
        .is_large    = count_runs++ % 2,
        .comm        = MPI_COMM_WORLD
    };
    int use;

    coll_init(&coll);
    match(&coll.request);
    for (use = 0; use < USES; ++use) {
        coll_use(&coll, use);
    }
    coll_cleanup(&coll);
}

/* Nobody passes before the last one has come. */
static void test_barrier(void)
{
    MPI_Request request;
    int use, go, flag;

    MPIX_OK(MPIX_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    match(&request);
    for (use = 0; use < USES * mpix_test.size; ++use) {
        mpix_test_msg_t msg;

        mpix_test_msg_init(&msg, 1, 0, 0, 0);
        go = (use % mpix_test.size) != mpix_test.rank;
        launch(mpix_test_hold, &go);
        start(&request);
        wait(&request);
        launch(mpix_test_fill, &msg);

        MPI_Barrier(MPI_COMM_WORLD);
        flag = (__atomic_load_n(&msg.use, __ATOMIC_ACQUIRE) == 0);
        MPIX_CHECK(flag, "rank %d passed in use %d", mpix_test.rank, use);
        MPI_Barrier(MPI_COMM_WORLD);
        __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
        queue_wait();
        mpix_test_msg_free(&msg);
    }
    MPIX_OK(MPI_Request_free(&request));
    MPIX_CHECK(request == MPI_REQUEST_NULL, "still there");
}

static void test_bcast(void)
{
    int root;

    for (root = 0; root < mpix_test.size; ++root) {
        run(COLL_BCAST, MPI_INT, MPI_OP_NULL, 100 + root, root, 0);
    }
    run(COLL_BCAST, MPI_DOUBLE, MPI_OP_NULL, LARGE, 0, 0);
    run(COLL_BCAST, MPI_DOUBLE, MPI_OP_NULL, 0, 0, 0);
}

static void test_reduce(void)
{
    int root;

    for (root = 0; root < mpix_test.size; ++root) {
        run(COLL_REDUCE, MPI_INT, MPI_SUM, 100, root, 0);
        run(COLL_REDUCE, MPI_DOUBLE, MPI_MAX, 3, root, 1);
    }
    run(COLL_REDUCE, MPI_FLOAT, MPI_SUM, LARGE, 0, 0);
    run(COLL_REDUCE, MPI_FLOAT, MPI_SUM, 0, 0, 0);
}

/* MPICH 4.0 takes unsigned numbers for signed ones where it compares them. */
static int mpi_compares_unsigned(void)
{
    uint8_t small = 1, large = 255;

    MPI_Reduce_local(&small, &large, 1, MPI_UINT8_T, MPI_MAX);
    return large == 255;
}

static void test_allreduce(void)
{
    const int has_unsigned = mpi_compares_unsigned();
    const MPI_Datatype numbers[] = {
        MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T,
        MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T, MPI_FLOAT, MPI_DOUBLE,
        MPI_LONG_DOUBLE
    };
    const MPI_Op ops[] = {
        MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_BAND, MPI_BOR, MPI_BXOR,
        MPI_LAND, MPI_LOR, MPI_LXOR
    };
    unsigned i, j;

    for (i = 0; i < 11; ++i) {
        for (j = 0; j < ((i < 8) ? 10 : 4); ++j) {
            if ((ops[j] == MPI_PROD) && (i >= 8)) {
                continue; /* Rounded */
            }
            if (!has_unsigned && (i >= 4) && (i < 8) &&
                ((ops[j] == MPI_MAX) || (ops[j] == MPI_MIN))) {
                continue;
            }
            if (((i * 10 + j + mpix_test.size) % 4) == 0) {
                run(COLL_ALLREDUCE, numbers[i], ops[j], 5 + i, 0, i % 2);
            }
        }
    }
    run(COLL_ALLREDUCE, MPI_C_BOOL, MPI_LXOR, 9, 0, 0);
    run(COLL_ALLREDUCE, MPI_2INT, MPI_MINLOC, 9, 0, 0);
    run(COLL_ALLREDUCE, MPI_INT, MPI_SUM, 1, 0, 0);
    run(COLL_ALLREDUCE, MPI_INT, MPI_SUM, 0, 0, 0);
}

/* Sums that are rounded are so alike on all ranks. */
static void test_allreduce_bits(void)
{
    double in[5], out[5], first[5];
    MPI_Request request;
    int i;

    for (i = 0; i < 5; ++i) {
        in[i] = 1.0 / (3 + 7 * mpix_test.rank + i);
    }
    MPIX_OK(MPIX_Allreduce_init(in, out, 5, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                                MPI_INFO_NULL, &request));
    match(&request);
    start(&request);
    wait(&request);
    queue_wait();
    memcpy(first, out, sizeof(first));
    MPI_Bcast(first, 5, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPIX_CHECK(!memcmp(first, out, sizeof(first)), "%g and %g", first[0],
               out[0]);
    MPIX_OK(MPI_Request_free(&request));
}

/* Rings, also with parts of different lengths. */
static void test_allreduce_large(void)
{
    run(COLL_ALLREDUCE, MPI_INT, MPI_SUM, LARGE, 0, 0);
    run(COLL_ALLREDUCE, MPI_DOUBLE, MPI_SUM, LARGE + 5, 0, 1);
    run(COLL_ALLREDUCE, MPI_UINT64_T, MPI_BXOR, 8 * LARGE + 3, 0, 0);
}

/* A pair with a gap, which no result may touch */
static void test_reduce_gaps(void)
{
    int root;

    for (root = 0; root < mpix_test.size; ++root) {
        run(COLL_REDUCE, MPI_DOUBLE_INT, MPI_MAXLOC, 5, root, root % 2);
    }
    run(COLL_ALLREDUCE, MPI_DOUBLE_INT, MPI_MAXLOC, 9, 0, 0);
    run(COLL_ALLREDUCE, MPI_DOUBLE_INT, MPI_MAXLOC, 9, 0, 1);
    run(COLL_ALLREDUCE, MPI_DOUBLE_INT, MPI_MAXLOC, LARGE, 0, 0);
}

static void test_allgather(void)
{
    run(COLL_ALLGATHER, MPI_INT, MPI_OP_NULL, 17, 0, 0);
    run(COLL_ALLGATHER, MPI_CHAR, MPI_OP_NULL, 3, 0, 1);
    run(COLL_ALLGATHER, MPI_DOUBLE, MPI_OP_NULL, LARGE, 0, 0);
    run(COLL_ALLGATHER, MPI_DOUBLE, MPI_OP_NULL, 0, 0, 0);
}

static void test_alltoall(void)
{
    run(COLL_ALLTOALL, MPI_INT, MPI_OP_NULL, 17, 0, 0);
    run(COLL_ALLTOALL, MPI_CHAR, MPI_OP_NULL, 3, 0, 1);
    run(COLL_ALLTOALL, MPI_DOUBLE, MPI_OP_NULL, LARGE / 4, 0, 0);
    run(COLL_ALLTOALL, MPI_DOUBLE, MPI_OP_NULL, 0, 0, 0);
}

/* What a rank has in a matrix, before. */
static int cell(int rank, int row, int column)
{
    return (rank * 10 + row) * 100 + column;
}

/* Blocks are pairs of columns of a matrix, in place: elements lie in between
 * each other, and the last one ends with the buffer. */
static void test_alltoall_columns(void)
{
    enum { ROWS = 3 };
    const int columns = 2 * mpix_test.size;
    int *cells        = malloc(ROWS * columns * sizeof(*cells));
    MPI_Datatype column, spaced;
    MPI_Request request;
    int use, i, from;

    MPI_Type_vector(ROWS, 1, columns, MPI_INT, &spaced);
    MPI_Type_create_resized(spaced, 0, sizeof(int), &column);
    MPI_Type_commit(&column);
    MPIX_OK(MPIX_Alltoall_init(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, cells, 2,
                               column, MPI_COMM_WORLD, MPI_INFO_NULL,
                               &request));
    MPI_Type_free(&column);
    MPI_Type_free(&spaced);
    match(&request);
    for (use = 0; use < USES; ++use) {
        for (i = 0; i < ROWS * columns; ++i) {
            cells[i] = cell(mpix_test.rank, i / columns, i % columns) + use;
        }
        start(&request);
        wait(&request);
        queue_wait();
        for (i = 0; i < ROWS * columns; ++i) {
            from = (i % columns) / 2;
            MPIX_CHECK(cells[i] == (cell(from, i / columns,
                                         2 * mpix_test.rank + i % 2) + use),
                       "use %d, cell %d: %d", use, i, cells[i]);
        }
    }
    MPIX_OK(MPI_Request_free(&request));
    free(cells);
}

/* Products of matrices: not commutative. */
static void matrix_product(void *in, void *inout, int *count,
                           MPI_Datatype *datatype)
{
    const uint32_t *a = in;
    uint32_t *b       = inout;
    uint32_t c[4];
    int i;

    (void)datatype;
    for (i = 0; i < *count; ++i, a += 4, b += 4) {
        c[0] = a[0] * b[0] + a[1] * b[2];
        c[1] = a[0] * b[1] + a[1] * b[3];
        c[2] = a[2] * b[0] + a[3] * b[2];
        c[3] = a[2] * b[1] + a[3] * b[3];
        memcpy(b, c, sizeof(c));
    }
}

/* Ranks have different matrices, as coll_fill() fills bytes. */
static void test_user_op(void)
{
    MPI_Datatype matrix;
    MPI_Op op;
    int root;

    MPI_Type_contiguous(4, MPI_UINT32_T, &matrix);
    MPI_Type_commit(&matrix);
    MPI_Op_create(matrix_product, 0, &op);
    for (root = 0; root < mpix_test.size; ++root) {
        run(COLL_REDUCE, matrix, op, 4, root, root % 2);
    }
    run(COLL_ALLREDUCE, matrix, op, 4, 0, 0);
    run(COLL_ALLREDUCE, matrix, op, 4, 0, 1);
    run(COLL_ALLREDUCE, matrix, op, LARGE / 2, 0, 0);
    MPI_Op_free(&op);
    MPI_Type_free(&matrix);
}

/* What a rank sends to a neighbour in a place of its list. */
static int edge(int rank, int place, int use, int i)
{
    return ((rank * 100 + place) * 100 + use) * 10 + i;
}

static void cart(int num_dims, const int *dims, int is_periodic)
{
    const int periods[2] = {is_periodic, is_periodic};
    int in[12], out[12], use, place, rank, below, above, from, i;
    MPI_Request request;
    MPI_Comm comm;

    MPI_Cart_create(MPI_COMM_WORLD, num_dims, dims, periods, 0, &comm);
    if (comm == MPI_COMM_NULL) {
        return;
    }

    MPI_Comm_rank(comm, &rank);
    MPIX_OK(MPIX_Neighbor_alltoall_init(out, 3, MPI_INT, in, 3, MPI_INT, comm,
                                        MPI_INFO_NULL, &request));
    match(&request);
    for (use = 0; use < USES; ++use) {
        for (place = 0; place < 2 * num_dims; ++place) {
            for (i = 0; i < 3; ++i) {
                out[3 * place + i] = edge(rank, place, use, i);
                in[3 * place + i]  = -1;
            }
        }
        start(&request);
        wait(&request);
        queue_wait();
        for (place = 0; place < 2 * num_dims; ++place) {
            MPI_Cart_shift(comm, place / 2, 1, &below, &above);
            from = (place % 2) ? above : below;
            for (i = 0; i < 3; ++i) {
                MPIX_CHECK(in[3 * place + i] ==
                           ((from == MPI_PROC_NULL) ?
                                    -1 :
                                    edge(from, place ^ 1, use, i)),
                           "place %d: %d from %d", place, in[3 * place + i],
                           from);
            }
        }
    }
    MPIX_OK(MPI_Request_free(&request));
    MPI_Comm_free(&comm);
}

static void test_neighbor_cart(void)
{
    const int line[1]  = {mpix_test.size};
    const int pair[1]  = {(mpix_test.size > 1) ? 2 : 1};
    const int one[2]   = {1, mpix_test.size};
    const int grid[2]  = {mpix_test.size / 2, 2};

    cart(1, line, 0);
    cart(1, line, 1);
    cart(1, pair, 1);
    cart(2, one, 1);
    if (mpix_test.size > 1) {
        cart(2, grid, 1);
        cart(2, grid, 0);
    }
}

/* Two edges to the right, one to the own process, and one to the left; blocks
 * of different lengths. */
static void test_neighbor_graph(void)
{
    const int dests[4]   = {mpix_test.right, mpix_test.rank, mpix_test.right,
                            mpix_test.left};
    const int sources[4] = {mpix_test.left, mpix_test.left, mpix_test.rank,
                            mpix_test.right};
    const int out_counts[4] = {1, 2, 3, 4}, out_displs[4] = {0, 1, 4, 8};
    const int in_counts[4]  = {1, 3, 2, 4}, in_displs[4]  = {12, 8, 5, 0};
    const int weights[4]    = {1, 1, 1, 1};
    int in[13], out[12], expected[13], use, i;
    MPI_Request request;
    MPI_Comm comm;

    if (mpix_test.size < 2) {
        return; /* All edges would be one */
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 4, sources, weights, 4,
                                   dests, weights, MPI_INFO_NULL, 0, &comm);
    MPIX_OK(MPIX_Neighbor_alltoallv_init(out, out_counts, out_displs, MPI_INT,
                                         in, in_counts, in_displs, MPI_INT,
                                         comm, MPI_INFO_NULL, &request));
    match(&request);
    for (use = 0; use < USES; ++use) {
        for (i = 0; i < 12; ++i) {
            out[i] = edge(mpix_test.rank, i, use, 0);
        }
        for (i = 0; i < 13; ++i) {
            in[i] = expected[i] = -1;
        }
        MPI_Neighbor_alltoallv(out, out_counts, out_displs, MPI_INT, expected,
                               in_counts, in_displs, MPI_INT, comm);
        start(&request);
        wait(&request);
        queue_wait();
        for (i = 0; i < 13; ++i) {
            MPIX_CHECK(in[i] == expected[i], "%d: %d instead of %d", i, in[i],
                       expected[i]);
        }
    }
    MPIX_OK(MPI_Request_free(&request));
    MPI_Comm_free(&comm);
}

/* An undirected graph, a ring. */
static void test_neighbor_ring(void)
{
    int *index = malloc(mpix_test.size * sizeof(*index));
    int *edges = malloc(2 * mpix_test.size * sizeof(*edges));
    int i, in[2], out[2], expected[2];
    MPI_Request request;
    MPI_Comm comm;

    for (i = 0; i < mpix_test.size; ++i) {
        index[i]         = 2 * (i + 1);
        edges[2 * i]     = (i + mpix_test.size - 1) % mpix_test.size;
        edges[2 * i + 1] = (i + 1) % mpix_test.size;
    }
    if (mpix_test.size > 2) {
        MPI_Graph_create(MPI_COMM_WORLD, mpix_test.size, index, edges, 0,
                         &comm);
        out[0] = edge(mpix_test.rank, 0, 0, 0);
        out[1] = edge(mpix_test.rank, 1, 0, 0);
        MPIX_OK(MPIX_Neighbor_alltoall_init(out, 1, MPI_INT, in, 1, MPI_INT,
                                            comm, MPI_INFO_NULL, &request));
        match(&request);
        MPI_Neighbor_alltoall(out, 1, MPI_INT, expected, 1, MPI_INT, comm);
        start(&request);
        wait(&request);
        queue_wait();
        MPIX_CHECK((in[0] == expected[0]) && (in[1] == expected[1]), "%d %d",
                   in[0], in[1]);
        MPIX_OK(MPI_Request_free(&request));
        MPI_Comm_free(&comm);
    }
    free(index);
    free(edges);
}

/* More elements than an int counts, of nothing. */
static void test_many_empty(void)
{
    const MPI_Count count = (MPI_Count)INT_MAX + 6;
    MPI_Request requests[3];
    MPI_Datatype empty;
    int out[2] = {-1, -1};

    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    MPIX_OK(MPIX_Bcast_init_c(out, count, empty, 0, MPI_COMM_WORLD,
                              MPI_INFO_NULL, &requests[0]));
    MPIX_OK(MPIX_Allgather_init_c(out, count, empty, out, count, empty,
                                  MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    MPIX_OK(MPIX_Alltoall_init_c(MPI_IN_PLACE, 0, empty, out, count, empty,
                                 MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]));
    MPI_Type_free(&empty);
    MPIX_IS(MPI_ERR_REQUEST, MPI_Start(&requests[0]));
    MPIX_OK(MPIX_Matchall(3, requests, MPI_STATUSES_IGNORE));
    MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, 3, requests));
    MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 3, requests));
    queue_wait();
    MPIX_CHECK((out[0] == -1) && (out[1] == -1), "%d %d", out[0], out[1]);
    MPIX_OK(MPI_Request_free(&requests[0]));
    MPIX_OK(MPI_Request_free(&requests[1]));
    MPIX_OK(MPI_Request_free(&requests[2]));
}

/* 2,300 MiB of bytes: on its own in tests.list, as two ranks need 4.5 GiB. */
static void test_big(void)
{
    const MPI_Count bytes = (MPI_Count)2300 << 20;
    mpix_test_msg_t msg;

    mpix_test_msg_init(&msg, bytes / sizeof(uint64_t), 0, 1, 1);
    MPIX_OK(MPIX_Bcast_init_c(msg.words, bytes, MPI_BYTE, 0, MPI_COMM_WORLD,
                              MPI_INFO_NULL, &msg.request));
    match(&msg.request);
    if (mpix_test.rank == 0) {
        mpix_test_fill(&msg);
    }
    start(&msg.request);
    wait(&msg.request);
    queue_wait();
    if (mpix_test.rank != 0) {
        mpix_test_verify(&msg);
    }
    mpix_test_msg_free(&msg);
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"barrier", test_barrier},
        {"bcast", test_bcast},
        {"reduce", test_reduce},
        {"allreduce", test_allreduce},
        {"allreduce_bits", test_allreduce_bits},
        {"allreduce_large", test_allreduce_large},
        {"reduce_gaps", test_reduce_gaps},
        {"allgather", test_allgather},
        {"alltoall", test_alltoall},
        {"alltoall_columns", test_alltoall_columns},
        {"user_op", test_user_op},
        {"neighbor_cart", test_neighbor_cart},
        {"neighbor_graph", test_neighbor_graph},
        {"neighbor_ring", test_neighbor_ring},
        {"many_empty", test_many_empty},
        {NULL, NULL}
    };
    static const mpix_test_case_t big[] = {{"big", test_big}, {NULL, NULL}};
    const int is_big = (argc > 1) && !strcmp(argv[1], "big");

    mpix_test_init_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    mpix_test_cases(is_big ? big : cases, argc, argv);
    return mpix_test_end("mpix_coll");
}
