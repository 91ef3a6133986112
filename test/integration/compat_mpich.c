/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat_mpich.c - a program for MPICH's streams, whose calls come with mpi.h
 * alone. C and C++. For any number of ranks. With MPIX_QUEUE_ONLY=y all
 * communicators are for queues only.
 */
#include <mpi.h>

#include "mpix_gpu.h"
#include "mpix_test.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define TAG    5
#define COUNT  1000
#define ROUNDS 20

static MPIX_Stream stream;
static MPI_Comm comm; /* Of it */

/* Programs wrap calls in macros of the same names, such as PETSc */
static unsigned num_waits;
#define MPIX_Wait_enqueue(_request, _status) \
    (++num_waits, MPIX_Wait_enqueue(_request, _status))
#define MPIX_Waitall_enqueue(_count, _requests, _statuses) \
    (++num_waits, MPIX_Waitall_enqueue(_count, _requests, _statuses))


static int is_only(void)
{
    const char *value = getenv("MPIX_QUEUE_ONLY");

    return (value != NULL) && (value[0] == 'y');
}

static const char *stream_type(void)
{
    return (mpix_test.queue_type == MPIX_QUEUE_HIP)  ? "hipStream_t" :
           (mpix_test.queue_type == MPIX_QUEUE_CUDA) ? "cudaStream_t" :
                                                       "MPIX_Host_stream";
}

static void make_stream(MPIX_Stream *stream_p)
{
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "type", stream_type());
    MPIX_OK(MPIX_Info_set_hex(info, "value", &mpix_test.stream,
                              (int)sizeof(mpix_test.stream)));
    MPIX_OK(MPIX_Stream_create(info, stream_p));
    MPI_Info_free(&info);
}

static void synchronize(void)
{
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
}

/* Around the ring, by calls that block the stream */
static void test_blocking(void)
{
    static int out[COUNT], in[COUNT + 1];
    MPI_Status status;
    int i, k, count;

    if (mpix_test.size == 1) {
        return; /* A send to oneself may need its receive */
    }
    for (k = 0; k < ROUNDS; ++k) {
        memset(&status, -1, sizeof(status));
        for (i = 0; i < COUNT; ++i) {
            out[i] = (1000 * mpix_test.rank) + i + k;
            in[i]  = -1;
        }
        if (mpix_test.rank == 0) {
            MPIX_OK(MPIX_Send_enqueue(out, COUNT, MPI_INT, mpix_test.right, TAG,
                                      comm));
        }
        MPIX_OK(MPIX_Recv_enqueue(in, COUNT + 1, MPI_INT, mpix_test.left, TAG,
                                  comm, &status));
        if (mpix_test.rank != 0) {
            MPIX_OK(MPIX_Send_enqueue_c(out, COUNT, MPI_INT, mpix_test.right,
                                        TAG, comm));
        }
        synchronize();
        MPIX_CHECK((in[0] == ((1000 * mpix_test.left) + k)) &&
                   (in[COUNT - 1] == (in[0] + COUNT - 1)), "%d, %d", in[0],
                   in[COUNT - 1]);
        MPI_Get_count(&status, MPI_INT, &count);
        MPIX_CHECK((count == COUNT) && (status.MPI_SOURCE == mpix_test.left) &&
                   (status.MPI_TAG == TAG), "%d from %d, tag %d", count,
                   status.MPI_SOURCE, status.MPI_TAG);
    }
}

/* A halo: all at once, with null requests among them */
static void test_waitall(void)
{
    static int out[8], in[8];
    MPI_Request requests[20];
    MPI_Status statuses[20];
    int i, k, count, num;

    for (k = 0; k < ROUNDS; ++k) {
        num           = 0;
        requests[num] = MPI_REQUEST_NULL;
        ++num;
        for (i = 0; i < 8; ++i) {
            out[i] = (100 * mpix_test.rank) + (10 * i) + k;
            in[i]  = -1;
            MPIX_OK(MPIX_Irecv_enqueue(&in[i], 1, MPI_INT, (i % 2) ?
                                       mpix_test.left : mpix_test.right, i,
                                       comm, &requests[num++]));
        }
        for (i = 0; i < 8; ++i) {
            MPIX_OK(MPIX_Isend_enqueue(&out[i], 1, MPI_INT, (i % 2) ?
                                       mpix_test.right : mpix_test.left, i,
                                       comm, &requests[num++]));
        }
        MPIX_OK(MPIX_Waitall_enqueue(num, requests, (k % 2) ? statuses :
                                     MPI_STATUSES_IGNORE));
        for (i = 0; i < num; ++i) {
            MPIX_CHECK(requests[i] == MPI_REQUEST_NULL, "request %d", i);
        }
        synchronize();
        for (i = 0; i < 8; ++i) {
            count = (100 * ((i % 2) ? mpix_test.left : mpix_test.right)) +
                    (10 * i) + k;
            MPIX_CHECK(in[i] == count, "%d for %d", in[i], count);
            if (k % 2) {
                MPI_Get_count(&statuses[i + 1], MPI_INT, &count);
                MPIX_CHECK((count == 1) && (statuses[i + 1].MPI_TAG == i),
                           "%d of tag %d", count, statuses[i + 1].MPI_TAG);
            }
        }
        if (k % 2) {
            MPI_Get_count(&statuses[0], MPI_INT, &count);
            MPIX_CHECK((count == 0) &&
                       (statuses[0].MPI_SOURCE == MPI_ANY_SOURCE), "%d", count);
        }
    }
}

/* A wait for one waits for no other one: what the first receive is for is sent
 * only when the neighbour's stream has passed the second one, and has told
 * so */
static void test_crossed(void)
{
    int out[3] = {10, 11, 12};
    MPI_Request first, second, third, send;
    MPI_Status status;
    int in[3], k;

    for (k = 0; k < ROUNDS; ++k) {
        in[0] = in[1] = in[2] = -1;
        MPIX_OK(MPIX_Irecv_enqueue(&in[0], 1, MPI_INT, mpix_test.left, 0, comm,
                                   &first));
        MPIX_OK(MPIX_Irecv_enqueue(&in[1], 1, MPI_INT, mpix_test.left, 1, comm,
                                   &second));
        MPIX_OK(MPIX_Isend_enqueue(&out[1], 1, MPI_INT, mpix_test.right, 1,
                                   comm, &send));
        MPIX_OK(MPIX_Wait_enqueue(&second, &status));
        MPIX_OK(MPIX_Irecv_enqueue(&in[2], 1, MPI_INT, mpix_test.right, 2,
                                   comm, &third));
        MPIX_OK(MPIX_Send_enqueue(&out[2], 1, MPI_INT, mpix_test.left, 2,
                                  comm));
        MPIX_OK(MPIX_Wait_enqueue(&third, MPI_STATUS_IGNORE));
        MPIX_OK(MPIX_Send_enqueue(&out[0], 1, MPI_INT, mpix_test.right, 0,
                                  comm));
        MPIX_OK(MPIX_Wait_enqueue(&first, MPI_STATUS_IGNORE));
        MPIX_OK(MPIX_Wait_enqueue(&send, MPI_STATUS_IGNORE));
        synchronize();
        MPIX_CHECK((in[0] == 10) && (in[1] == 11) && (in[2] == 12), "%d %d %d",
                   in[0], in[1], in[2]);
        MPIX_CHECK((status.MPI_SOURCE == mpix_test.left) &&
                   (status.MPI_TAG == 1), "from %d, tag %d", status.MPI_SOURCE,
                   status.MPI_TAG);
    }
}

/* Types with gaps, to MPI_PROC_NULL, and to oneself; the application frees what
 * it can at once */
static void test_types(void)
{
    int out[6] = {1, 2, 3, 4, 5, 6};
    int in[6]  = {0, 0, 0, 0, 0, 0};
    MPI_Request requests[3];
    MPI_Status statuses[3];
    MPI_Datatype type;
    int count;

    MPI_Type_vector(3, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPIX_OK(MPIX_Irecv_enqueue(in, 1, type, mpix_test.rank, TAG, comm,
                               &requests[0]));
    MPIX_OK(MPIX_Isend_enqueue(out, 1, type, mpix_test.rank, TAG, comm,
                               &requests[1]));
    MPIX_OK(MPIX_Irecv_enqueue(in, 1, type, MPI_PROC_NULL, TAG, comm,
                               &requests[2]));
    MPI_Type_free(&type);
    MPIX_OK(MPIX_Wait_enqueue(&requests[0], &statuses[0]));
    MPIX_OK(MPIX_Wait_enqueue(&requests[2], &statuses[2]));
    MPIX_OK(MPIX_Wait_enqueue(&requests[1], &statuses[1]));
    synchronize();
    MPIX_CHECK((in[0] == 1) && (in[1] == 0) && (in[2] == 3) && (in[4] == 5),
               "%d %d %d %d", in[0], in[1], in[2], in[4]);
    MPI_Get_elements(&statuses[0], MPI_INT, &count);
    MPIX_CHECK(count == 3, "%d elements", count);
    MPIX_CHECK(statuses[2].MPI_SOURCE == MPI_PROC_NULL, "from %d",
               statuses[2].MPI_SOURCE);
}

/* MPI's calls work on the requests, too, and on the communicator */
static void test_plain(void)
{
    int out = mpix_test.rank, in = -1, sum = 0;
    MPI_Request requests[2];

    MPIX_OK(MPIX_Irecv_enqueue(&in, 1, MPI_INT, mpix_test.left, TAG, comm,
                               &requests[0]));
    MPIX_OK(MPIX_Isend_enqueue(&out, 1, MPI_INT, mpix_test.right, TAG, comm,
                               &requests[1]));
    MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    MPIX_CHECK(in == mpix_test.left, "%d", in);
    MPIX_OK(MPI_Allreduce(&out, &sum, 1, MPI_INT, MPI_SUM, comm));
    MPIX_CHECK(sum == ((mpix_test.size * (mpix_test.size - 1)) / 2), "%d", sum);
}

static void test_allreduce(void)
{
    const int sum = (mpix_test.size * (mpix_test.size - 1)) / 2;
    struct {
        short value;
        int   place;
    } pair;
    int out[2], in[2] = {-1, -1}, k;

    for (k = 0; k < ROUNDS; ++k) {
        out[0] = mpix_test.rank;
        out[1] = 2 * mpix_test.rank;
        MPIX_OK(MPIX_Allreduce_enqueue(out, in, 2, MPI_INT, MPI_SUM, comm));
        MPIX_OK(MPIX_Allreduce_enqueue_c(MPI_IN_PLACE, out, 1, MPI_INT, MPI_MAX,
                                         comm));
        synchronize();
        MPIX_CHECK((in[0] == sum) && (in[1] == (2 * sum)), "%d %d", in[0],
                   in[1]);
        MPIX_CHECK((out[0] == (mpix_test.size - 1)) &&
                   (out[1] == (2 * mpix_test.rank)), "%d %d", out[0], out[1]);
    }
    pair.value = (short)(mpix_test.rank + 1);
    pair.place = mpix_test.rank;
    MPIX_OK(MPIX_Allreduce_enqueue(MPI_IN_PLACE, &pair, 1, MPI_SHORT_INT,
                                   MPI_MINLOC, comm));
    synchronize();
    MPIX_CHECK((pair.value == 1) && (pair.place == 0), "%d %d", pair.value,
               pair.place);
}

/* The memory of a device, which the host does not touch */
static void test_device(void)
{
    const int is_device = (mpix_test.queue_type != MPIX_QUEUE_HOST);
    const size_t size   = COUNT * sizeof(int);
    struct pair {
        short value;
        int   place;
    } pairs[2] = {{(short)(mpix_test.rank + 1), mpix_test.rank},
                  {(short)(mpix_test.size - mpix_test.rank), mpix_test.rank}};
    static int words[COUNT];
    char *out, *in, *place;
    MPI_Request requests[2];
    int i;

    if (!is_device) {
        return;
    }
    mpix_gpu_load(&mpix_gpu, mpix_test.queue_type == MPIX_QUEUE_HIP);
    out   = mpix_place_get(is_device, size);
    in    = mpix_place_get(is_device, size);
    place = mpix_place_get(is_device, sizeof(pairs));
    for (i = 0; i < COUNT; ++i) {
        words[i] = (1000 * mpix_test.rank) + i;
    }
    mpix_gpu_copy(&mpix_gpu, out, words, size);
    MPIX_OK(MPIX_Irecv_enqueue(in, COUNT, MPI_INT, mpix_test.left, TAG, comm,
                               &requests[0]));
    MPIX_OK(MPIX_Isend_enqueue(out, COUNT, MPI_INT, mpix_test.right, TAG, comm,
                               &requests[1]));
    MPIX_OK(MPIX_Waitall_enqueue(2, requests, MPI_STATUSES_IGNORE));
    MPIX_OK(MPIX_Allreduce_enqueue(in, out, COUNT, MPI_INT, MPI_MAX, comm));
    mpix_gpu_copy(&mpix_gpu, place, pairs, sizeof(pairs));
    MPIX_OK(MPIX_Allreduce_enqueue(MPI_IN_PLACE, place, 2, MPI_SHORT_INT,
                                   MPI_MINLOC, comm));
    synchronize();
    mpix_gpu_copy(&mpix_gpu, words, in, size);
    MPIX_CHECK(words[COUNT - 1] == ((1000 * mpix_test.left) + COUNT - 1), "%d",
               words[COUNT - 1]);
    mpix_gpu_copy(&mpix_gpu, words, out, size);
    MPIX_CHECK(words[COUNT - 1] == ((1000 * (mpix_test.size - 1)) + COUNT - 1),
               "%d", words[COUNT - 1]);
    mpix_gpu_copy(&mpix_gpu, pairs, place, sizeof(pairs));
    MPIX_CHECK((pairs[0].value == 1) && (pairs[0].place == 0) &&
               (pairs[1].value == 1) &&
               (pairs[1].place == (mpix_test.size - 1)), "%d %d %d %d",
               pairs[0].value, pairs[0].place, pairs[1].value, pairs[1].place);
    mpix_place_put(is_device, out);
    mpix_place_put(is_device, in);
    mpix_place_put(is_device, place);
}

/* Duplicates have the stream; several streams are only told */
static void test_comms(void)
{
    MPIX_Stream streams[3] = {MPIX_STREAM_NULL, stream, MPIX_STREAM_NULL};
    MPI_Request request    = MPI_REQUEST_NULL;
    MPI_Comm dup, several, plain;
    int out = mpix_test.rank, in = -1, i;
    MPIX_Stream found, none;

    MPIX_OK(MPI_Comm_dup(comm, &dup));
    MPIX_OK(MPIX_Comm_get_stream(dup, 0, &found));
    MPIX_CHECK(found == stream, "%p", (void*)found);
    MPIX_OK(MPIX_Comm_get_stream(dup, 1, &found));
    MPIX_CHECK(found == MPIX_STREAM_NULL, "%p", (void*)found);
    MPIX_OK(MPIX_Comm_get_stream(MPI_COMM_WORLD, 0, &found));
    MPIX_CHECK(found == MPIX_STREAM_NULL, "%p", (void*)found);
    MPIX_OK(MPIX_Isend_enqueue(&out, 1, MPI_INT, mpix_test.right, TAG, dup,
                               &request));
    MPIX_OK(MPIX_Recv_enqueue(&in, 1, MPI_INT, mpix_test.left, TAG, dup,
                              MPI_STATUS_IGNORE));
    MPIX_OK(MPIX_Wait_enqueue(&request, MPI_STATUS_IGNORE));
    MPI_Comm_free(&dup);
    synchronize();
    MPIX_CHECK(in == mpix_test.left, "%d", in);

    MPIX_OK(MPIX_Stream_create(MPI_INFO_NULL, &none));
    streams[2] = none;
    MPIX_OK(MPIX_Stream_comm_create_multiplex(MPI_COMM_WORLD, 3, streams,
                                              &several));
    MPIX_OK(MPI_Comm_idup(several, &dup, &request));
    MPIX_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (i = 0; i < 3; ++i) {
        MPIX_OK(MPIX_Comm_get_stream(dup, i, &found));
        MPIX_CHECK(found == streams[i], "stream %d", i);
    }
    MPIX_IS(MPI_ERR_COMM, MPIX_Isend_enqueue(&out, 1, MPI_INT, 0, TAG, several,
                                             &request));
    MPI_Comm_free(&several);
    MPIX_OK(MPIX_Stream_free(&none));
    MPIX_CHECK(none == MPIX_STREAM_NULL, "%p", (void*)none);
    MPIX_OK(MPIX_Comm_get_stream(dup, 2, &found)); /* was freed */
    MPIX_CHECK(found == MPIX_STREAM_NULL, "%p", (void*)found);
    MPI_Comm_free(&dup);

    MPIX_OK(MPIX_Stream_comm_create_multiplex(MPI_COMM_WORLD, 0, NULL, &plain));
    MPI_Comm_free(&plain);
    MPIX_OK(MPIX_Stream_comm_create(MPI_COMM_WORLD, MPIX_STREAM_NULL, &plain));
    MPIX_IS(MPI_ERR_COMM, MPIX_Send_enqueue(&out, 1, MPI_INT, 0, TAG, plain));
    MPI_Comm_free(&plain);
}

/* A stream is freed before its communicator, and that with a message under
 * way */
static void test_freed(void)
{
    int out = mpix_test.rank, in = -1;
    MPI_Request requests[2];
    MPIX_Stream other;
    MPI_Comm dup;

    make_stream(&other);
    MPIX_OK(MPIX_Stream_comm_create(MPI_COMM_WORLD, other, &dup));
    MPIX_OK(MPIX_Stream_free(&other));
    MPIX_OK(MPIX_Irecv_enqueue(&in, 1, MPI_INT, mpix_test.left, TAG, dup,
                               &requests[0]));
    MPIX_OK(MPIX_Isend_enqueue(&out, 1, MPI_INT, mpix_test.right, TAG, dup,
                               &requests[1]));
    MPIX_OK(MPIX_Wait_enqueue(&requests[0], MPI_STATUS_IGNORE));
    MPI_Comm_free(&dup);
#ifdef OPEN_MPI /* MPICH keeps the communicator until its messages are over */
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Wait_enqueue(&requests[1],
                                               MPI_STATUS_IGNORE));
#endif
    MPIX_OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    synchronize();
    MPIX_CHECK(in == mpix_test.left, "%d", in);
}

/* The handle of a stream that is gone is not that of another one that has its
 * memory */
static void test_reused(void)
{
    MPIX_Stream others[12];
    MPI_Request request, send;
    MPIX_Stream other;
    int in = -1, i;
    MPI_Comm dup;

    make_stream(&other);
    MPIX_OK(MPIX_Stream_comm_create(MPI_COMM_SELF, other, &dup));
    MPIX_OK(MPIX_Irecv_enqueue(&in, 1, MPI_INT, 0, TAG, dup, &request));
    MPIX_OK(MPIX_Isend_enqueue(&mpix_test.rank, 1, MPI_INT, 0, TAG, dup,
                               &send));
    MPIX_OK(MPIX_Stream_free(&other));
    MPI_Comm_free(&dup);
    for (i = 0; i < 12; ++i) {
        make_stream(&others[i]);
    }
#ifdef OPEN_MPI /* MPICH keeps the communicator */
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Wait_enqueue(&request, MPI_STATUS_IGNORE));
#endif
    MPIX_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    MPIX_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (i = 0; i < 12; ++i) {
        MPIX_OK(MPIX_Stream_free(&others[i]));
    }
    synchronize();
}

/* MPI_Finalize while the stream has not come to what is enqueued */
static int run_late(void)
{
    static int is_free, in[2] = {-1, -1};
    MPI_Status statuses[2];
    MPI_Request requests[4];
    int out = 1, i;

    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold,
                                     &is_free));
    MPIX_OK(MPIX_Irecv_enqueue(&in[0], 1, MPI_INT, mpix_test.left, 1, comm,
                               &requests[0]));
    MPIX_OK(MPIX_Irecv_enqueue(&in[1], 1, MPI_INT, mpix_test.left, 2, comm,
                               &requests[1]));
    for (i = 2; i < 4; ++i) {
        MPIX_OK(MPIX_Isend_enqueue(&out, 1, MPI_INT, mpix_test.right, i - 1,
                                   comm, &requests[i]));
    }
    MPIX_OK(MPIX_Wait_enqueue(&requests[1], &statuses[1]));
    MPIX_OK(MPIX_Wait_enqueue(&requests[0], &statuses[0]));
    if (!is_only()) {
        MPIX_OK(MPIX_Allreduce_enqueue(&out, &in[0], 1, MPI_INT, MPI_SUM,
                                       comm));
    }
    MPI_Finalize();
    __atomic_store_n(&is_free, 1, __ATOMIC_RELEASE);
    if (MPIX_Host_stream_synchronize(mpix_test.stream) != MPI_SUCCESS) {
        ++mpix_test.failed;
    }
    printf("compat_mpich late: %d checks failed\n", mpix_test.failed);
    return mpix_test.failed != 0;
}

/* The same while MPI has an allreduce of one process, if there are more */
static int run_finalize(void)
{
    static int in;
    int out = 1;

    if (mpix_test.rank == 0) {
        MPIX_OK(MPIX_Allreduce_enqueue(&out, &in, 1, MPI_INT, MPI_SUM, comm));
        while (MPIX_Stream_progress(stream) == MPI_SUCCESS) {
            MPIX_Queue_stats stats;

            MPIX_OK(MPIX_Queue_get_stats(&stats));
            if (stats.messages > 0) {
                break;
            }
        }
    }
    MPI_Finalize();
    printf("compat_mpich finalize: %d checks failed\n", mpix_test.failed);
    return mpix_test.failed != 0;
}

static void check_info(const char *type, const char *value, const char *more)
{
    char text[MPI_MAX_ERROR_STRING];
    MPIX_Stream other = MPIX_STREAM_NULL;
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "type", type);
    if (value != NULL) {
        MPI_Info_set(info, "value", value);
    }
    if (mpix_test_text(MPIX_Stream_create(info, &other), MPI_ERR_INFO_VALUE,
                       text)) {
        MPIX_CHECK(strstr(text, more) != NULL, "%s", text);
    }
    MPIX_CHECK(other == MPIX_STREAM_NULL, "%p", (void*)other);
    MPI_Info_free(&info);
}

static void test_refuse(void)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPIX_Stream other       = (MPIX_Stream)&requests;
    MPI_Comm dup            = MPI_COMM_NULL;
    int out                 = 1;
    MPI_Info info;

    check_info("nothing", NULL, "cudaStream_t");
    check_info(stream_type(), NULL, "no value");
    check_info(stream_type(), "12", "16 hexadecimal digits");
    check_info(stream_type(), "0123456789abcdeg", "16 hexadecimal digits");
    check_info("MPIX_Host_stream", "0123456789abcdef", "is no MPIX_Host_");
    MPI_Info_create(&info);
    MPIX_IS(MPI_ERR_ARG, MPIX_Info_set_hex(info, "value", &out, -1));
    MPIX_IS(MPI_ERR_ARG, MPIX_Info_set_hex(info, "value", NULL, 8));
    MPIX_IS(MPI_ERR_ARG, MPIX_Info_set_hex(info, "value", &out,
                                           MPI_MAX_INFO_VAL));
    MPI_Info_free(&info);
    MPIX_IS(MPI_ERR_ARG, MPIX_Stream_create(MPI_INFO_NULL, NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Stream_free(&other));
    MPIX_IS(MPI_ERR_ARG, MPIX_Stream_free(NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Stream_comm_create(MPI_COMM_WORLD, other, &dup));
    MPIX_IS(MPI_ERR_ARG, MPIX_Stream_comm_create(MPI_COMM_WORLD, stream, NULL));
    MPIX_IS(MPI_ERR_COUNT, MPIX_Stream_comm_create_multiplex(MPI_COMM_WORLD, -1,
                                                             NULL, &dup));
    MPIX_IS(MPI_ERR_ARG, MPIX_Comm_get_stream(comm, 0, NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Stream_progress(other));
    MPIX_OK(MPIX_Stream_progress(stream));
    MPIX_OK(MPIX_Start_progress_thread(stream));
    MPIX_OK(MPIX_Stop_progress_thread(stream));

    MPIX_IS(MPI_ERR_COMM, MPIX_Send_enqueue(&out, 1, MPI_INT, 0, TAG,
                                            MPI_COMM_WORLD));
    MPIX_IS(MPI_ERR_COUNT, MPIX_Send_enqueue(&out, -1, MPI_INT, 0, TAG, comm));
    MPIX_IS(MPI_ERR_COUNT, MPIX_Send_enqueue_c(&out, INT_MIN - (MPI_Count)1,
                                               MPI_INT, 0, TAG, comm));
    MPIX_IS(MPI_ERR_TYPE, MPIX_Send_enqueue(&out, 1, MPI_DATATYPE_NULL, 0, TAG,
                                            comm));
    MPIX_IS(MPI_ERR_RANK, MPIX_Send_enqueue(&out, 1, MPI_INT, mpix_test.size,
                                            TAG, comm));
    MPIX_IS(MPI_ERR_TAG, MPIX_Send_enqueue(&out, 1, MPI_INT, 0, -1, comm));
    MPIX_IS(MPI_ERR_ARG, MPIX_Isend_enqueue(&out, 1, MPI_INT, 0, TAG, comm,
                                            NULL));
    MPIX_IS(MPI_ERR_OP, MPIX_Allreduce_enqueue(&out, &out, 1, MPI_INT,
                                               MPI_OP_NULL, comm));
    MPIX_OK(MPIX_Wait_enqueue(&requests[0], MPI_STATUS_IGNORE));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Wait_enqueue(NULL, MPI_STATUS_IGNORE));
    MPIX_OK(MPIX_Waitall_enqueue(0, NULL, MPI_STATUSES_IGNORE));
    MPIX_IS(MPI_ERR_COUNT, MPIX_Waitall_enqueue(-1, requests,
                                                MPI_STATUSES_IGNORE));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Waitall_enqueue(1, NULL,
                                                  MPI_STATUSES_IGNORE));
    if (!is_only()) {
        MPI_Irecv(&out, 1, MPI_INT, mpix_test.rank, TAG, MPI_COMM_WORLD,
                  &requests[0]);
        MPIX_IS(MPI_ERR_REQUEST, MPIX_Wait_enqueue(&requests[0],
                                                   MPI_STATUS_IGNORE));
        MPI_Cancel(&requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
}

/* A message that is too long: the stream goes on, the next call tells, and so
 * does the status */
static void test_truncation(void)
{
    int out[2] = {1, 2}, in = -1, count = -1, failed = 0;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Request request;
    MPI_Status status;
    MPIX_Stream other;
    MPI_Comm dup;

    make_stream(&other);
    MPIX_OK(MPIX_Stream_comm_create(MPI_COMM_SELF, other, &dup));
    MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
    MPIX_OK(MPIX_Isend_enqueue(out, 2, MPI_INT, 0, TAG, dup, &request));
    /* For queues only it may fail at once */
    failed = (MPIX_Recv_enqueue(&in, 1, MPI_INT, 0, TAG, dup, &status) !=
              MPI_SUCCESS);
    synchronize();
    if (!failed && is_only()) {
        MPI_Get_count(&status, MPI_INT, &count);
        MPIX_CHECK((status.MPI_ERROR != MPI_SUCCESS) && (count == 0),
                   "code %d, %d received", status.MPI_ERROR, count);
    }
    if (mpix_test_text(MPIX_Isend_enqueue(out, 1, MPI_INT, 0, TAG, dup,
                                          &request), MPI_ERR_OTHER, text)) {
        MPIX_CHECK(strstr(text, "failed") != NULL, "%s", text);
    }
    MPI_Comm_free(&dup);
    MPIX_OK(MPIX_Stream_free(&other));
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"blocking", test_blocking},
        {"waitall", test_waitall},
        {"crossed", test_crossed},
        {"types", test_types},
        {"plain", test_plain},
        {"allreduce", test_allreduce},
        {"device", test_device},
        {"comms", test_comms},
        {"freed", test_freed},
        {"reused", test_reused},
        {"refuse", test_refuse},
        {"truncation", test_truncation},
        {NULL, NULL}
    };

    mpix_test_init(&argc, &argv);
    make_stream(&stream);
    MPIX_OK(MPIX_Stream_comm_create(MPI_COMM_WORLD, stream, &comm));
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if ((argc > 1) && !strcmp(argv[1], "late")) {
        return run_late();
    } else if ((argc > 1) && !strcmp(argv[1], "finalize")) {
        return run_finalize();
    }
    mpix_test_cases(cases, argc, argv);
    MPI_Comm_free(&comm);
    MPIX_OK(MPIX_Stream_free(&stream));
    return mpix_test_end("compat_mpich");
}
