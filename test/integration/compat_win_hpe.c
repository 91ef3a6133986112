/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat_win_hpe.c - windows on streams, as programs for HPE's MPI have them:
 * all comes with mpi.h alone. C and C++. For any number of ranks.
 */
#include <mpi.h>

#include "mpix_gpu.h"
#include "mpix_test.h"

#include <stdlib.h>
#include <string.h>

#define COUNT  1000
#define ROUNDS 20

static MPI_Group world, left, right; /* All, and one rank each */


static MPI_Group group_of(int rank)
{
    MPI_Group group;

    MPI_Group_incl(world, 1, &rank, &group);
    return group;
}

static void synchronize(void)
{
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
}

/* Numbers of a round that a rank puts. */
typedef struct {
    int *numbers;
    int first;
    int wrong;
} numbers_t;

static void fill(void *arg)
{
    numbers_t *work = (numbers_t*)arg;
    int i;

    for (i = 0; i < COUNT; ++i) {
        work->numbers[i] = work->first + i;
    }
    work->first += COUNT;
}

static void verify(void *arg)
{
    numbers_t *work = (numbers_t*)arg;
    int i;

    for (i = 0; i < COUNT; ++i) {
        work->wrong += (work->numbers[i] != (work->first + i));
    }
    work->first += COUNT;
}

static void launch(MPIX_Host_func func, numbers_t *work)
{
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, func, work));
}

static int first_of(int rank)
{
    return 1000000 * (rank + 1);
}

/* Around the ring, round behind round, while the host is far ahead */
static void run_ring(int is_allocated)
{
    numbers_t out = {NULL, first_of(mpix_test.rank), 0};
    numbers_t in  = {NULL, first_of(mpix_test.left), 0};
    int *memory   = NULL;
    MPI_Win win;
    int k;

    if (is_allocated) { /* Kernels of a GPU's stream reach all of it */
        MPIX_OK(MPI_Alloc_mem(COUNT * sizeof(int), MPI_INFO_NULL,
                              &out.numbers));
        MPIX_OK(MPI_Win_allocate(COUNT * sizeof(int), sizeof(int),
                                 MPI_INFO_NULL, MPI_COMM_WORLD, &in.numbers,
                                 &win));
    } else {
        out.numbers = (int*)malloc(COUNT * sizeof(int));
        memory      = (int*)calloc(COUNT, sizeof(int));
        in.numbers  = memory;
        MPIX_OK(MPI_Win_create(memory, COUNT * sizeof(int), sizeof(int),
                               MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    }
    for (k = 0; k < ROUNDS; ++k) {
        MPIX_OK(MPIX_Win_post_stream(left, win, mpix_test.stream));
        MPIX_OK(MPI_Win_start(right, MPIX_MODE_STREAM, win));
        MPIX_OK(MPI_Put(out.numbers, COUNT, MPI_INT, mpix_test.right, 0, COUNT,
                        MPI_INT, win));
        launch(fill, &out);
        MPIX_OK(MPIX_Win_complete_stream(win, mpix_test.stream));
        MPIX_OK(MPIX_Win_wait_stream(win, mpix_test.stream));
        launch(verify, &in);
    }
    if (is_allocated) {
        synchronize(); /* The stream still reads memory that goes */
    }
    MPIX_OK(MPI_Win_free(&win)); /* Waits for the epochs */
    MPIX_CHECK(win == MPI_WIN_NULL, "not freed");
    synchronize();
    MPIX_CHECK(in.wrong == 0, "%d numbers", in.wrong);
    if (is_allocated) {
        MPIX_OK(MPI_Free_mem(out.numbers));
    } else {
        free(out.numbers);
    }
    free(memory);
}

static void test_ring(void)
{
    const char *lanes = getenv("UCX_ST_LANES");

    run_ring(1);
    if ((lanes == NULL) || strcmp(lanes, "direct")) {
        run_ring(0); /* Lane direct alone does not reach such memory */
    }
}

/* All ranks put to all, themselves among them, and get from all; a row of the
 * window is each rank's, and goes to a column */
static void test_all(void)
{
    const int size = mpix_test.size;
    int *out       = (int*)malloc(2 * size * sizeof(int));
    int *in        = (int*)malloc(size * sizeof(int));
    int *base, i, k;
    MPI_Datatype column;
    MPI_Win win;

    MPIX_OK(MPI_Win_allocate(3 * size * sizeof(int), 1, MPI_INFO_NULL,
                             MPI_COMM_WORLD, &base, &win));
    MPI_Type_vector(2, 1, size, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (k = 0; k < ROUNDS; ++k) {
        for (i = 0; i < size; ++i) {
            out[2 * i]            = (100 * mpix_test.rank) + (10 * i) + k;
            out[(2 * i) + 1]      = -out[2 * i];
            in[i]                 = -1;
            base[(2 * size) + i]  = (1000 * mpix_test.rank) + i + k;
        }
        MPIX_OK(MPIX_Win_post_stream(world, win, mpix_test.stream));
        MPIX_OK(MPI_Win_start(world, MPIX_MODE_STREAM, win));
        for (i = 0; i < size; ++i) {
            MPIX_OK(MPI_Put(&out[2 * i], 2, MPI_INT, i,
                            mpix_test.rank * sizeof(int), 1, column, win));
            MPIX_OK(MPI_Get(&in[i], 1, MPI_INT, i,
                            ((2 * size) + mpix_test.rank) * sizeof(int), 1,
                            MPI_INT, win));
        }
        MPIX_OK(MPIX_Win_complete_stream(win, mpix_test.stream));
        MPIX_OK(MPIX_Win_wait_stream(win, mpix_test.stream));
        synchronize();
        for (i = 0; i < size; ++i) {
            MPIX_CHECK((base[i] == (100 * i) + (10 * mpix_test.rank) + k) &&
                       (base[size + i] == -base[i]), "%d, %d from %d", base[i],
                       base[size + i], i);
            MPIX_CHECK(in[i] == (1000 * i) + mpix_test.rank + k,
                       "%d got from %d", in[i], i);
        }
        MPI_Barrier(MPI_COMM_WORLD); /* The host wrote what others got */
    }
    MPI_Type_free(&column);
    MPIX_OK(MPI_Win_free(&win));
    free(out);
    free(in);
}

/* All ranks add to rank 0's numbers, twice an epoch, and then store others */
static void test_accumulate(void)
{
    const int is_root = (mpix_test.rank == 0);
    MPI_Group root    = group_of(0);
    double ones[COUNT], more[COUNT];
    double *base;
    MPI_Datatype odd;
    MPI_Win win;
    int i, k, wrong = 0;

    MPIX_OK(MPI_Win_allocate(is_root ? COUNT * sizeof(double) : 0,
                             sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD,
                             &base, &win));
    MPI_Type_vector(COUNT / 2, 1, 2, MPI_DOUBLE, &odd);
    MPI_Type_commit(&odd);
    for (i = 0; i < COUNT; ++i) {
        ones[i] = 1;
        more[i] = -5 - (i % 2);
        if (is_root) {
            base[i] = i;
        }
    }
    for (k = 0; k < 4; ++k) {
        if (is_root) {
            MPIX_OK(MPIX_Win_post_stream(world, win, mpix_test.stream));
        }
        MPIX_OK(MPI_Win_start(root, MPIX_MODE_STREAM, win));
        if (k < 3) {
            MPIX_OK(MPI_Accumulate(ones, COUNT, MPI_DOUBLE, 0, 0, COUNT,
                                   MPI_DOUBLE, MPI_SUM, win));
            MPIX_OK(MPI_Accumulate(ones, 1, odd, 0, 1, 1, odd, MPI_SUM, win));
        } else {
            MPIX_OK(MPI_Accumulate(ones, COUNT, MPI_DOUBLE, 0, 0, COUNT,
                                   MPI_DOUBLE, MPI_REPLACE, win));
            MPIX_OK(MPI_Accumulate(more, COUNT, MPI_DOUBLE, 0, 0, COUNT,
                                   MPI_DOUBLE, MPI_REPLACE, win));
        }
        MPIX_OK(MPIX_Win_complete_stream(win, mpix_test.stream));
        if (is_root) {
            MPIX_OK(MPIX_Win_wait_stream(win, mpix_test.stream));
        }
        synchronize();
        for (i = 0; is_root && (i < COUNT); ++i) {
            wrong += (base[i] != ((k == 3) ? -5 - (i % 2) :
                                  i + ((k + 1) * mpix_test.size *
                                       (1 + (i % 2)))));
        }
        MPIX_CHECK(wrong == 0, "%d wrong in round %d", wrong, k);
    }
    MPI_Type_free(&odd);
    MPI_Group_free(&root);
    MPIX_OK(MPI_Win_free(&win));
}

/* Origins that come before their target, and a target that comes first: nobody
 * waits in a call */
static void test_order(void)
{
    int number = 5 + mpix_test.rank;
    int *base;
    MPI_Win win;
    int k;

    if (mpix_test.size < 2) {
        return;
    }
    MPIX_OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL,
                             MPI_COMM_WORLD, &base, &win));
    *base = 0;
    for (k = 0; k < 2; ++k) {
        if (mpix_test.rank == 1) {
            MPIX_OK(MPI_Win_start(left, MPIX_MODE_STREAM, win));
            MPIX_OK(MPI_Put(&number, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
            MPIX_OK(MPIX_Win_complete_stream(win, mpix_test.stream));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (mpix_test.rank == 0) {
            MPIX_OK(MPIX_Win_post_stream(right, win, mpix_test.stream));
            MPIX_OK(MPIX_Win_wait_stream(win, mpix_test.stream));
        }
        synchronize();
        number += 1;
        MPIX_CHECK((mpix_test.rank != 0) || (*base == 6 + k), "%d", *base);
    }
    MPIX_OK(MPI_Win_free(&win));
}

/* Two windows in turn, an epoch of each open at once, on two streams; and
 * MPI's own epochs on the same windows in between */
static void test_windows(void)
{
    void *streams[2] = {mpix_test.stream, NULL};
    int out[2], *base[2];
    MPI_Win win[2];
    int i, k;

    MPIX_OK(mpix_test_stream(&streams[1]));
    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL,
                                 MPI_COMM_WORLD, &base[i], &win[i]));
        *base[i] = -1;
    }
    for (k = 0; k < ROUNDS; ++k) {
        for (i = 0; i < 2; ++i) {
            out[i] = (10 * mpix_test.rank) + i + k;
            MPIX_OK(MPIX_Win_post_stream(left, win[i], streams[i]));
            MPIX_OK(MPI_Win_start(right, MPIX_MODE_STREAM, win[i]));
            MPIX_OK(MPI_Put(&out[i], 1, MPI_INT, mpix_test.right, 0, 1,
                            MPI_INT, win[i]));
        }
        for (i = 0; i < 2; ++i) {
            MPIX_OK(MPIX_Win_complete_stream(win[i], streams[i]));
            MPIX_OK(MPIX_Win_wait_stream(win[i], streams[i]));
        }
        for (i = 0; i < 2; ++i) {
            MPIX_OK(MPIX_Host_stream_synchronize(streams[i]));
            MPIX_CHECK(*base[i] == (10 * mpix_test.left) + i + k, "%d in %d",
                       *base[i], i);
        }
        MPIX_OK(MPI_Win_fence(0, win[0]));
        MPIX_OK(MPI_Put(&out[1], 1, MPI_INT, mpix_test.right, 0, 1, MPI_INT,
                        win[0]));
        MPIX_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win[0]));
        MPIX_CHECK(*base[0] == (10 * mpix_test.left) + 1 + k, "%d by MPI",
                   *base[0]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    /* A stream may go before its window */
    MPIX_OK(MPIX_Host_stream_free(&streams[1]));
    MPIX_OK(mpix_test_stream(&streams[1]));
    MPIX_OK(MPIX_Win_post_stream(left, win[1], streams[1]));
    MPIX_OK(MPI_Win_start(right, MPIX_MODE_STREAM, win[1]));
    MPIX_OK(MPIX_Win_complete_stream(win[1], streams[1]));
    MPIX_OK(MPIX_Win_wait_stream(win[1], streams[1]));
    MPIX_OK(MPIX_Host_stream_synchronize(streams[1]));
    MPIX_OK(MPIX_Host_stream_free(&streams[1]));
    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPI_Win_free(&win[i]));
    }
}

/* A window is freed while the stream waits in an epoch of another one, which is
 * exposed only afterwards; the stream has work left meanwhile. What is put lies
 * far apart. */
static void test_free(void)
{
    const MPI_Aint step = (MPI_Aint)1 << 20;
    int lengths[2]      = {1, 1};
    int numbers[2]      = {3 + mpix_test.rank, 0};
    int *more           = (int*)malloc(2 * step);
    int *bases[2];
    MPI_Datatype apart;
    MPI_Aint disps[2];
    MPI_Win win[2];
    void *stream;
    int i;

    MPIX_OK(mpix_test_stream(&stream));
    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL,
                                 MPI_COMM_WORLD, &bases[i], &win[i]));
    }
    more[step / sizeof(int)] = 7;
    MPI_Get_address(numbers, &disps[0]);
    MPI_Get_address(&more[step / sizeof(int)], &disps[1]);
    MPI_Type_create_hindexed(2, lengths, disps, MPI_INT, &apart);
    MPI_Type_commit(&apart);

    MPIX_OK(MPI_Win_start(right, MPIX_MODE_STREAM, win[1]));
    MPIX_OK(MPI_Put(MPI_BOTTOM, 1, apart, mpix_test.right, 0, 2, MPI_INT,
                    win[1]));
    MPI_Type_free(&apart);
    MPIX_OK(MPIX_Win_complete_stream(win[1], stream));
    MPIX_OK(MPI_Win_free(&win[0]));
    MPIX_IS(MPI_ERR_PENDING, MPIX_Host_stream_free(&stream));
    MPI_Barrier(MPI_COMM_WORLD);
    MPIX_OK(MPIX_Win_post_stream(left, win[1], mpix_test.stream));
    MPIX_OK(MPIX_Win_wait_stream(win[1], mpix_test.stream));
    synchronize();
    MPIX_CHECK((bases[1][0] == (3 + mpix_test.left)) && (bases[1][1] == 7),
               "%d, %d", bases[1][0], bases[1][1]);
    MPIX_OK(MPI_Win_free(&win[1]));
    MPIX_OK(MPIX_Host_stream_synchronize(stream));
    MPIX_OK(MPIX_Host_stream_free(&stream));
    free(more);
}

/* What is refused leaves the epochs as they were. Here an access epoch of a
 * stream is open. */
static void refuse_accesses(MPI_Win win)
{
    int numbers[4] = {1, 2, 3, 4};
    MPI_Request request;

    MPIX_IS(MPI_ERR_RMA_SYNC, MPI_Win_start(right, MPIX_MODE_STREAM, win));
    MPIX_IS(MPI_ERR_RMA_SYNC, MPI_Win_start(right, 0, win));
    MPIX_IS(MPI_ERR_RMA_SYNC, MPI_Win_complete(win));
    MPIX_IS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    MPIX_IS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
    MPIX_IS(MPI_ERR_RMA_SYNC,
            MPI_Rput(numbers, 1, MPI_INT, mpix_test.right, 0, 1, MPI_INT, win,
                     &request));
    MPIX_IS(MPI_ERR_RMA_SYNC,
            MPI_Fetch_and_op(numbers, numbers, MPI_INT, mpix_test.right, 0,
                             MPI_SUM, win));
    MPIX_IS(MPI_ERR_RMA_RANGE,
            MPI_Put(numbers, 1, MPI_INT, mpix_test.right, 4, 1, MPI_INT, win));
    MPIX_IS(MPI_ERR_RMA_RANGE,
            MPI_Put(numbers, 1, MPI_INT, mpix_test.right, -1, 1, MPI_INT, win));
    MPIX_IS(MPI_ERR_DISP,
            MPI_Get(numbers, 1, MPI_INT, mpix_test.right, (MPI_Aint)1 << 62, 1,
                    MPI_INT, win));
    MPIX_IS(MPI_ERR_TYPE,
            MPI_Put(numbers, 2, MPI_INT, mpix_test.right, 0, 1, MPI_INT, win));
    MPIX_IS(MPI_ERR_COUNT,
            MPI_Put(numbers, -1, MPI_INT, mpix_test.right, 0, 1, MPI_INT, win));
    MPIX_IS(MPI_ERR_RANK,
            MPI_Put(numbers, 1, MPI_INT, mpix_test.size, 0, 1, MPI_INT, win));
    MPIX_IS(MPI_ERR_OP,
            MPI_Accumulate(numbers, 1, MPI_INT, mpix_test.right, 0, 1, MPI_INT,
                           MPI_PROD, win));
    MPIX_IS(MPI_ERR_OP,
            MPI_Accumulate(numbers, 1, MPI_INT, mpix_test.right, 0, 1, MPI_INT,
                           MPI_OP_NULL, win));
    MPIX_IS(MPI_ERR_TYPE,
            MPI_Accumulate(numbers, 1, MPI_BYTE, mpix_test.right, 0, 1,
                           MPI_BYTE, MPI_SUM, win));
    MPIX_IS(MPI_ERR_TYPE,
            MPI_Accumulate(numbers, 1, MPI_INT, mpix_test.right, 0, 1,
                           MPI_FLOAT, MPI_SUM, win));
    MPIX_IS(MPI_ERR_TYPE,
            MPI_Accumulate(numbers, 1, MPI_LONG_INT, mpix_test.right, 0, 1,
                           MPI_LONG_INT, MPI_SUM, win));
    if (mpix_test.size > 2) {
        MPIX_IS(MPI_ERR_RANK, MPI_Put(numbers, 1, MPI_INT,
                                      (mpix_test.rank + 2) % mpix_test.size, 0,
                                      1, MPI_INT, win));
    }
    MPIX_OK(MPI_Put(numbers, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
    MPIX_OK(MPI_Put(NULL, 0, MPI_INT, mpix_test.right, 0, 0, MPI_INT, win));
    MPIX_IS(MPI_ERR_ARG, MPIX_Win_complete_stream(win, &numbers));
}

/* Where an epoch of MPI's own is open, none of a stream begins. */
static void refuse_plain(MPI_Win win, const int *base)
{
    int rank   = mpix_test.rank;
    int number = 9;

    MPIX_OK(MPI_Win_lock(MPI_LOCK_SHARED, mpix_test.rank, 0, win));
    MPIX_IS(MPI_ERR_RMA_SYNC, MPI_Win_start(right, MPIX_MODE_STREAM, win));
    MPIX_OK(MPI_Win_unlock(mpix_test.rank, win));
    MPIX_OK(MPI_Win_post(left, 0, win));
    MPIX_IS(MPI_ERR_RMA_SYNC, MPIX_Win_post_stream(left, win,
                                                   mpix_test.stream));
    MPIX_OK(MPI_Win_start(right, 0, win));
    MPIX_IS(MPI_ERR_RMA_SYNC, MPI_Win_start(right, MPIX_MODE_STREAM, win));
    MPIX_IS(MPI_ERR_RMA_SYNC, MPIX_Win_complete_stream(win, mpix_test.stream));
    MPIX_OK(MPI_Put(&number, 1, MPI_INT, mpix_test.right, 3, 1, MPI_INT, win));
    MPIX_OK(MPI_Win_complete(win));
    MPIX_OK(MPI_Win_wait(win));
    MPIX_CHECK(base[3] == 9, "%d", base[3]);

    MPIX_OK(MPI_Win_fence(0, win));
    MPIX_OK(MPI_Put(&rank, 1, MPI_INT, mpix_test.right, 2, 1, MPI_INT, win));
    MPIX_IS(MPI_ERR_RMA_SYNC, MPI_Win_start(right, MPIX_MODE_STREAM, win));
    MPIX_IS(MPI_ERR_RMA_SYNC, MPIX_Win_post_stream(left, win,
                                                   mpix_test.stream));
    MPIX_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    MPIX_CHECK(base[2] == mpix_test.left, "%d", base[2]);
    MPIX_OK(MPIX_Win_post_stream(left, win, mpix_test.stream));
    MPIX_OK(MPI_Win_start(right, MPIX_MODE_STREAM, win));
    MPIX_OK(MPIX_Win_complete_stream(win, mpix_test.stream));
    MPIX_OK(MPIX_Win_wait_stream(win, mpix_test.stream));
    synchronize();
}

/* A group with ranks that the window does not have, and one of none. */
static void refuse_groups(void)
{
    MPI_Comm alone;
    MPI_Win win;
    int *base;

    MPI_Comm_split(MPI_COMM_WORLD, mpix_test.rank / 2, 0, &alone);
    MPIX_OK(MPI_Win_allocate(4, 1, MPI_INFO_NULL, alone, &base, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    if (mpix_test.size > 2) {
        MPIX_IS(MPI_ERR_GROUP, MPI_Win_start(world, MPIX_MODE_STREAM, win));
        MPIX_IS(MPI_ERR_GROUP, MPIX_Win_post_stream(world, win,
                                                    mpix_test.stream));
    }
    MPIX_OK(MPIX_Win_post_stream(MPI_GROUP_EMPTY, win, mpix_test.stream));
    MPIX_OK(MPI_Win_start(MPI_GROUP_EMPTY, MPIX_MODE_STREAM, win));
    MPIX_OK(MPIX_Win_complete_stream(win, mpix_test.stream));
    MPIX_OK(MPIX_Win_wait_stream(win, mpix_test.stream));
    MPIX_OK(MPI_Win_free(&win));
    MPI_Comm_free(&alone);
}

static void test_refuse(void)
{
    int numbers[4] = {1, 2, 3, 4};
    MPI_Win win;
    int *base;

    MPIX_OK(MPI_Win_allocate(4 * sizeof(int), sizeof(int), MPI_INFO_NULL,
                             MPI_COMM_WORLD, &base, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    memset(base, 0, 4 * sizeof(int));
    MPI_Barrier(MPI_COMM_WORLD);

    /* Nothing is open */
    MPIX_IS(MPI_ERR_RMA_SYNC, MPIX_Win_complete_stream(win, mpix_test.stream));
    MPIX_IS(MPI_ERR_RMA_SYNC, MPIX_Win_wait_stream(win, mpix_test.stream));
    MPIX_IS(MPI_ERR_ARG, MPIX_Win_post_stream(left, win, &numbers));
    MPIX_IS(MPI_ERR_GROUP, MPIX_Win_post_stream(MPI_GROUP_NULL, win,
                                                mpix_test.stream));
    MPIX_IS(MPI_ERR_GROUP, MPI_Win_start(MPI_GROUP_NULL, MPIX_MODE_STREAM,
                                         win));
    MPIX_IS(MPI_ERR_ASSERT, MPI_Win_start(right, MPIX_MODE_STREAM | (1 << 27),
                                          win));

    MPIX_OK(MPIX_Win_post_stream(left, win, mpix_test.stream));
    MPIX_IS(MPI_ERR_RMA_SYNC, MPIX_Win_post_stream(left, win,
                                                   mpix_test.stream));
    MPIX_IS(MPI_ERR_RMA_SYNC, MPI_Win_post(left, 0, win));
    MPIX_IS(MPI_ERR_RMA_SYNC, MPI_Win_wait(win));
    MPIX_IS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
    MPIX_IS(MPI_ERR_RMA_SYNC, MPI_Win_free(&win));

    MPIX_OK(MPI_Win_start(right, MPIX_MODE_STREAM, win));
    refuse_accesses(win);
    MPIX_OK(MPI_Put(numbers, 4, MPI_INT, mpix_test.right, 0, 4, MPI_INT, win));
    MPIX_OK(MPIX_Win_complete_stream(win, mpix_test.stream));
    MPIX_OK(MPIX_Win_wait_stream(win, mpix_test.stream));
    synchronize();
    MPIX_CHECK((base[0] == 1) && (base[3] == 4), "%d, %d", base[0], base[3]);

    refuse_plain(win, base);
    MPIX_OK(MPI_Win_free(&win));
    refuse_groups();
}

/* A window, and what is put, in memory of the stream's device: alone, where
 * there is one, and MPI takes it */
static void test_device(void)
{
    const size_t size = COUNT * sizeof(int);
    int *host         = (int*)malloc(size);
    char *out, *in;
    MPI_Win win;
    int i, wrong = 0;

    mpix_gpu_load(&mpix_gpu, mpix_test.queue_type == MPIX_QUEUE_HIP);
    out = mpix_place_get(1, size);
    in  = mpix_place_get(1, size);
    for (i = 0; i < COUNT; ++i) {
        host[i] = (1000 * mpix_test.rank) + i;
    }
    mpix_gpu_copy(&mpix_gpu, out, host, size);
    MPIX_OK(MPI_Win_create(in, size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPIX_OK(MPIX_Win_post_stream(left, win, mpix_test.stream));
    MPIX_OK(MPI_Win_start(right, MPIX_MODE_STREAM, win));
    MPIX_OK(MPI_Put(out, COUNT, MPI_INT, mpix_test.right, 0, COUNT, MPI_INT,
                    win));
    MPIX_OK(MPIX_Win_complete_stream(win, mpix_test.stream));
    MPIX_OK(MPIX_Win_wait_stream(win, mpix_test.stream));
    MPIX_OK(MPI_Win_free(&win));
    mpix_gpu_copy(&mpix_gpu, host, in, size);
    for (i = 0; i < COUNT; ++i) {
        wrong += (host[i] != ((1000 * mpix_test.left) + i));
    }
    MPIX_CHECK(wrong == 0, "%d numbers", wrong);
    mpix_place_put(1, out);
    mpix_place_put(1, in);
    free(host);
}

static void run_cases(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"ring", test_ring},
        {"all", test_all},
        {"accumulate", test_accumulate},
        {"order", test_order},
        {"windows", test_windows},
        {"free", test_free},
        {"refuse", test_refuse},
        {NULL, NULL}
    };

    if ((argc > 1) && !strcmp(argv[1], "device")) {
        test_device();
    } else {
        mpix_test_cases(cases, argc, argv);
    }
}

int main(int argc, char **argv)
{
    mpix_test_init(&argc, &argv);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    left  = group_of(mpix_test.left);
    right = group_of(mpix_test.right);
    run_cases(argc, argv);
    MPI_Group_free(&left);
    MPI_Group_free(&right);
    MPI_Group_free(&world);
    return mpix_test_end("compat_win_hpe");
}
