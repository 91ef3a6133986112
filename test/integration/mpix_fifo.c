/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_fifo.c - messages that are used once on communicators that are for
 * queues only: no thread of the library's calls MPI, and MPI_THREAD_MULTIPLE is
 * not asked for. For any number of ranks. With MPIX_QUEUE_ONLY=y all
 * communicators are such.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif

#include "mpix_fifo.h"
#include "mpix_test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAG    3
#define COUNT  16
#define LARGE  100000 /* Words: more than MPI sends at once */
#define ROUNDS 40

#define UNPACK_BLOCKS 1000000
#define OPEN          40 /* Receives: more than a call looks at */
#define SWEEP_TIME    20 /* Seconds */

static MPI_Comm only;
static MPIX_Queue queue; /* Of it */


MPI_Comm make_only(const char *value)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Info info;

    MPI_Info_create(&info);
    if (value != NULL) {
        MPI_Info_set(info, "mpix_queue_only", value);
    }
    MPIX_OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Info_free(&info);
    return comm;
}

static void enqueue(mpix_test_msg_t *msg, MPI_Request *request)
{
    if (msg->dest == mpix_test.rank) {
        MPIX_OK(MPIX_Enqueue_recv(msg->words, (int)msg->count, MPI_UINT64_T,
                                  msg->source, TAG, queue, request));
    } else {
        MPIX_OK(MPIX_Enqueue_send(msg->words, (int)msg->count, MPI_UINT64_T,
                                  msg->dest, TAG, queue, request));
    }
}

/* One each way around the ring, of a length that grows; the receive has room
 * for one word more. The host looks at the requests of some rounds. */
static void test_ring(void)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    mpix_test_msg_t send, recv;
    MPI_Status statuses[2];
    int k, count, words;

    if (mpix_test.size == 1) {
        return;
    }
    mpix_test_msg_init(&send, LARGE, mpix_test.rank, mpix_test.right, 1);
    mpix_test_msg_init(&recv, LARGE, mpix_test.left, mpix_test.rank, 1);
    for (k = 0; k < ROUNDS; ++k) {
        words       = (k == (ROUNDS - 1)) ? LARGE : (COUNT * k);
        send.count  = words;
        send.actual = words;
        recv.actual = words;
        recv.count  = words;
        MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_fill,
                                        &send));
        MPIX_OK(MPIX_Enqueue_recv(recv.words, words + (words < LARGE),
                                  MPI_UINT64_T, recv.source, TAG, queue,
                                  &requests[0]));
        enqueue(&send, &requests[1]);
        MPIX_OK(MPIX_Enqueue_start(queue));
        MPIX_OK(MPIX_Enqueue_wait(queue));
        MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_verify,
                                        &recv));
        if ((k % 4) == 0) {
            MPIX_OK(MPI_Waitall(2, requests, statuses));
            MPI_Get_count(&statuses[0], MPI_UINT64_T, &count);
            MPIX_CHECK(count == words, "%d words of %d", count, words);
            MPIX_CHECK((statuses[0].MPI_SOURCE == mpix_test.left) &&
                       (statuses[0].MPI_TAG == TAG), "from %d, tag %d",
                       statuses[0].MPI_SOURCE, statuses[0].MPI_TAG);
        }
        /* The functions of the stream read the fields of messages */
        MPIX_OK(MPIX_Queue_wait(queue));
        MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
    }
    send.request = recv.request = MPI_REQUEST_NULL;
    mpix_test_msg_free(&send);
    mpix_test_msg_free(&recv);
}

/* Calls that wait for some of several, none of which the stream waits for */
static void test_requests(void)
{
    int out[4], in[4], indices[4], i, index, flag, count, left = 4;
    MPI_Request requests[8];
    MPI_Status status;

    for (i = 0; i < 4; ++i) {
        out[i] = (10 * mpix_test.rank) + i;
        in[i]  = -1;
        MPIX_OK(MPIX_Enqueue_recv(&in[i], 1, MPI_INT, mpix_test.left, i, queue,
                                  &requests[i]));
        MPIX_OK(MPIX_Enqueue_send(&out[i], 1, MPI_INT, mpix_test.right, i,
                                  queue, &requests[4 + i]));
    }
    MPIX_OK(MPIX_Enqueue_start(queue));
    MPIX_OK(MPI_Wait(&requests[2], &status));
    MPIX_CHECK((in[2] == ((10 * mpix_test.left) + 2)) &&
               (status.MPI_TAG == 2), "%d, tag %d", in[2], status.MPI_TAG);
    do {
        MPIX_OK(MPI_Test(&requests[0], &flag, &status));
    } while (!flag);
    MPIX_CHECK(in[0] == (10 * mpix_test.left), "%d", in[0]);
    MPIX_OK(MPI_Waitany(4, requests, &index, &status));
    MPIX_CHECK((index == 1) || (index == 3), "%d", index);
    MPIX_OK(MPI_Waitany(4, requests, &index, &status));
    MPIX_CHECK((in[1] == ((10 * mpix_test.left) + 1)) &&
               (in[3] == ((10 * mpix_test.left) + 3)), "%d %d", in[1], in[3]);
    while (left > 0) {
        MPIX_OK(MPI_Waitsome(4, &requests[4], &count, indices,
                             MPI_STATUSES_IGNORE));
        left -= count;
    }
    MPIX_OK(MPIX_Enqueue_wait(queue));
    MPIX_OK(MPIX_Queue_wait(queue));
}

/* With gaps at either end, and shorter than the receive */
static void test_datatypes(void)
{
    int out[20], in[20], i;
    MPI_Request requests[2];
    MPI_Datatype type;

    MPI_Type_vector(10, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (i = 0; i < 20; ++i) {
        out[i] = (100 * mpix_test.rank) + i;
        in[i]  = -1;
    }
    MPIX_OK(MPIX_Enqueue_recv(in, 10, MPI_INT, mpix_test.left, TAG, queue,
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_send(out, 1, type, mpix_test.right, TAG, queue,
                              &requests[1]));
    MPIX_OK(MPIX_Enqueue_start(queue));
    MPIX_OK(MPIX_Enqueue_wait(queue));
    MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (i = 0; i < 10; ++i) {
        MPIX_CHECK(in[i] == ((100 * mpix_test.left) + (2 * i)), "in[%d] is %d",
                   i, in[i]);
        in[i] = -1;
    }
    /* Once in the stream's order, once by the host */
    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPIX_Enqueue_recv(in, 1, type, mpix_test.left, TAG, queue,
                                  &requests[0]));
        MPIX_OK(MPIX_Enqueue_send(out, 4, MPI_INT, mpix_test.right, TAG, queue,
                                  &requests[1]));
        MPIX_OK(MPIX_Enqueue_start(queue));
        if (i == 0) {
            MPIX_OK(MPIX_Enqueue_wait(queue));
            MPIX_OK(MPIX_Queue_wait(queue));
            MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
        } else {
            MPIX_OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
            MPIX_OK(MPIX_Enqueue_wait(queue));
        }
        MPIX_CHECK((in[0] == (100 * mpix_test.left)) && (in[1] == -1) &&
                   (in[6] == ((100 * mpix_test.left) + 3)) && (in[8] == -1),
                   "%d %d %d %d", in[0], in[1], in[6], in[8]);
        memset(in, -1, sizeof(in));
        MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    }
    MPIX_OK(MPIX_Queue_wait(queue));
    MPI_Type_free(&type);
}

/* The host's wait for the queue covers the copies of a receive with gaps, of
 * which there are many here. */
static void test_unpack(void)
{
    int *out = calloc(UNPACK_BLOCKS, sizeof(*out));
    int *in  = calloc(2 * UNPACK_BLOCKS, sizeof(*in));
    MPI_Request requests[2];
    MPI_Datatype type;

    MPI_Type_vector(UNPACK_BLOCKS, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    out[UNPACK_BLOCKS - 1] = mpix_test.rank + 1;
    MPIX_OK(MPIX_Enqueue_recv(in, 1, type, mpix_test.left, TAG, queue,
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_send(out, UNPACK_BLOCKS, MPI_INT, mpix_test.right, TAG,
                              queue, &requests[1]));
    MPIX_OK(MPIX_Enqueue_start(queue));
    MPIX_OK(MPIX_Enqueue_wait(queue));
    MPIX_OK(MPIX_Queue_wait(queue));
    MPIX_CHECK(in[2 * (UNPACK_BLOCKS - 1)] == (mpix_test.left + 1), "%d",
               in[2 * (UNPACK_BLOCKS - 1)]);
    MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    MPI_Type_free(&type);
    free(out);
    free(in);
}

static void test_null_and_self(void)
{
    int out = 5, in = 0, none = 7;
    MPI_Request requests[4];
    MPI_Status statuses[4];

    MPIX_OK(MPIX_Enqueue_recv(&in, 1, MPI_INT, mpix_test.rank, 8, queue,
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_recv(&none, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG,
                              queue, &requests[1]));
    MPIX_OK(MPIX_Enqueue_send(&out, 1, MPI_INT, MPI_PROC_NULL, 8, queue,
                              &requests[2]));
    MPIX_OK(MPIX_Enqueue_send(&out, 1, MPI_INT, mpix_test.rank, 8, queue,
                              &requests[3]));
    MPIX_OK(MPIX_Enqueue_start(queue));
    MPIX_OK(MPIX_Enqueue_wait(queue));
    MPIX_OK(MPI_Waitall(4, requests, statuses));
    MPIX_CHECK((in == 5) && (none == 7), "%d %d", in, none);
    MPIX_CHECK(statuses[1].MPI_SOURCE == MPI_PROC_NULL, "source %d",
               statuses[1].MPI_SOURCE);
    MPIX_OK(MPIX_Queue_wait(queue));
}

/* Messages of a queue some of which go by MPI; and the same tag on both
 * communicators */
static void test_both_ways(void)
{
    int out[2] = {1, 2}, in[2] = {0, 0};
    MPIX_Queue_stats before, after;
    MPI_Request requests[4];
    MPI_Comm comms[2];
    MPIX_Queue queues[2];
    int i, level;

    MPI_Query_thread(&level);
    if ((level < MPI_THREAD_MULTIPLE) && (getenv("MPIX_QUEUE_ONLY") == NULL)) {
        return; /* no thread may give anything to MPI */
    }
    comms[0] = make_only("true");
    comms[1] = make_only("false");
    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPIX_Create_queue_comm(comms[i], mpix_test.stream, &queues[i]));
    }
    MPIX_OK(MPIX_Queue_get_stats(&before));
    for (i = 1; i >= 0; --i) {
        MPIX_OK(MPIX_Enqueue_recv(&in[i], 1, MPI_INT, mpix_test.left, TAG,
                                  queues[i], &requests[i]));
        MPIX_OK(MPIX_Enqueue_send(&out[i], 1, MPI_INT, mpix_test.right, TAG,
                                  queues[i], &requests[2 + i]));
    }
    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPIX_Enqueue_start(queues[i]));
    }
    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPIX_Enqueue_wait(queues[i]));
    }
    MPIX_OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    MPIX_CHECK((in[0] == 1) && (in[1] == 2), "%d %d", in[0], in[1]);
    MPIX_OK(MPIX_Queue_get_stats(&after));
    i = (getenv("MPIX_QUEUE_ONLY") != NULL) ? 4 : 2;
    MPIX_CHECK(after.queue_messages - before.queue_messages == (uint64_t)i,
               "%d", (int)(after.queue_messages - before.queue_messages));
    MPIX_CHECK(after.messages - before.messages == (uint64_t)(4 - i), "%d",
               (int)(after.messages - before.messages));
    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPIX_Free_queue(queues[i]));
        MPI_Comm_free(&comms[i]);
    }
}

/* Many that the application drops, while the stream is held: all pass */
static void test_many_ahead(void)
{
    static int out[ROUNDS][8], in[ROUNDS][8];
    static int go;
    MPI_Request request;
    int i, k;

    go = 0;
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold, &go));
    for (k = 0; k < ROUNDS; ++k) {
        for (i = 0; i < 8; ++i) {
            out[k][i] = (1000 * mpix_test.rank) + (8 * k) + i;
            MPIX_OK(MPIX_Enqueue_recv(&in[k][i], 1, MPI_INT, mpix_test.left,
                                      i, queue, &request));
            MPIX_OK(MPIX_Enqueue_send(&out[k][i], 1, MPI_INT, mpix_test.right,
                                      i, queue, &request));
        }
        MPIX_OK(MPIX_Enqueue_start(queue));
        if ((k % 3) != 1) {
            MPIX_OK(MPIX_Enqueue_wait(queue));
        }
    }
    MPIX_OK(MPIX_Enqueue_wait(queue));
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    MPIX_OK(MPIX_Queue_wait(queue));
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
    for (k = 0; k < ROUNDS; ++k) {
        for (i = 0; i < 8; ++i) {
            MPIX_CHECK(in[k][i] == ((1000 * mpix_test.left) + (8 * k) + i),
                       "in[%d][%d] is %d", k, i, in[k][i]);
        }
    }
}

/* Calls that enqueue, also in vain, complete what is over behind receives that
 * stay open: MPI's own call looks whether they have. */
static void test_sweep(void)
{
    int (*look)(MPI_Request, int*, MPI_Status*) =
            mpix_test_past("MPI_Request_get_status");
    const double end = MPI_Wtime() + SWEEP_TIME;
    int out = 1, in = 0, open[OPEN], flag, i;
    MPI_Request requests[2], opens[2 * OPEN], none;
    MPIX_Queue other;

    MPIX_OK(MPIX_Create_queue_comm(only, mpix_test.stream, &other));
    for (i = 0; i < OPEN; ++i) {
        MPIX_OK(MPIX_Enqueue_recv(&open[i], 1, MPI_INT, mpix_test.left, 15,
                                  other, &opens[i]));
    }
    MPIX_OK(MPIX_Enqueue_start(other));
    MPIX_OK(MPIX_Enqueue_recv(&in, 1, MPI_INT, mpix_test.left, TAG, queue,
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_send(&out, 1, MPI_INT, mpix_test.right, TAG, queue,
                              &requests[1]));
    MPIX_OK(MPIX_Enqueue_start(queue));
    MPIX_OK(MPIX_Enqueue_wait(queue));
    do {
        MPIX_IS(MPI_ERR_TAG, MPIX_Enqueue_recv(&in, 1, MPI_INT, mpix_test.left,
                                               MPI_ANY_TAG, queue, &none));
        MPIX_OK(look(requests[0], &flag, MPI_STATUS_IGNORE));
    } while (!flag && (MPI_Wtime() < end));
    MPIX_CHECK(flag, "it is not complete");
    MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    for (i = 0; i < OPEN; ++i) {
        MPIX_OK(MPIX_Enqueue_send(&out, 1, MPI_INT, mpix_test.right, 15, other,
                                  &opens[OPEN + i]));
    }
    MPIX_OK(MPIX_Enqueue_start(other));
    MPIX_OK(MPI_Waitall(2 * OPEN, opens, MPI_STATUSES_IGNORE));
    MPIX_OK(MPIX_Free_queue(other));
}

static void test_refuse(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm comm;
    MPI_Info info;
    int word = 0;

    MPIX_IS(MPI_ERR_RANK, MPIX_Enqueue_recv(&word, 1, MPI_INT, MPI_ANY_SOURCE,
                                            TAG, queue, &request));
    MPIX_IS(MPI_ERR_TAG, MPIX_Enqueue_recv(&word, 1, MPI_INT, mpix_test.left,
                                           MPI_ANY_TAG, queue, &request));
    MPIX_IS(MPI_ERR_RANK, MPIX_Enqueue_send(&word, 1, MPI_INT, mpix_test.size,
                                            TAG, queue, &request));
    MPIX_CHECK(request == MPI_REQUEST_NULL, "a request was made");
    if (mpix_test.size == 1) {
        return;
    }
    /* One says so, and the others do not */
    comm = make_only(NULL);
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_queue_only",
                 (mpix_test.rank == 1) ? "true" : "false");
    MPIX_IS(MPI_ERR_INFO_VALUE, MPI_Comm_set_info(comm, info));
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
}

/* One message around the ring, of a communicator that is for queues only */
static void pass_one(MPI_Comm comm, int tag)
{
    MPI_Request requests[2];
    MPIX_Queue other;
    int in = -1;

    MPIX_OK(MPIX_Create_queue_comm(comm, mpix_test.stream, &other));
    MPIX_OK(MPIX_Enqueue_recv(&in, 1, MPI_INT, mpix_test.left, tag, other,
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_send(&mpix_test.rank, 1, MPI_INT, mpix_test.right, tag,
                              other, &requests[1]));
    MPIX_OK(MPIX_Enqueue_start(other));
    MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    MPIX_CHECK(in == mpix_test.left, "%d", in);
    MPIX_OK(MPIX_Free_queue(other));
}

/* Info that does not name the key leaves the communicator as it is; those that
 * do not name it agree with those that name what it says already */
static void test_info(void)
{
    MPI_Comm comm = make_only("true");
    MPIX_Queue_stats before, after;
    MPI_Info info;

    MPIX_OK(MPIX_Queue_get_stats(&before));
    MPI_Info_create(&info);
    MPIX_OK(MPI_Comm_set_info(comm, info));
    pass_one(comm, TAG);
    if (mpix_test.rank == 0) {
        MPI_Info_set(info, "mpix_queue_only", "true");
    }
    MPIX_OK(MPI_Comm_set_info(comm, info));
    pass_one(comm, TAG);
    MPIX_OK(MPIX_Queue_get_stats(&after));
    MPIX_CHECK((after.queue_messages - before.queue_messages) == 4, "%d",
               (int)(after.queue_messages - before.queue_messages));
    if (mpix_test.rank == 0) {
        MPI_Info_set(info, "mpix_queue_only", "false");
    }
    if (mpix_test.size > 1) {
        MPIX_IS(MPI_ERR_INFO_VALUE, MPI_Comm_set_info(comm, info));
    }
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
}

/* In front of MPI's function, for the library: refused once on demand */
static int is_refused;

int PMPI_Comm_set_attr(MPI_Comm comm, int keyval, void *value)
{
    int (*next)(MPI_Comm comm, int keyval, void *value);

    if (is_refused) {
        is_refused = 0;
        return MPI_ERR_NO_MEM;
    }
    *(void**)&next = dlsym(RTLD_NEXT, "PMPI_Comm_set_attr");
    return next(comm, keyval, value);
}

/* A process cannot agree: the others learn that. The next time all can. */
static void test_no_mem(void)
{
    MPI_Comm comm;
    MPI_Info info;
    int rc;

    if (getenv("MPIX_QUEUE_ONLY") != NULL) {
        return;
    }
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_queue_only", "true");
    MPIX_OK(MPI_Comm_split(MPI_COMM_WORLD, 0, mpix_test.rank, &comm));
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    is_refused = (mpix_test.rank == 0);
    rc = MPI_Comm_set_info(comm, info);
    MPI_Bcast(&is_refused, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!is_refused) { /* else the object was made with the communicator */
        MPIX_IS(MPI_ERR_NO_MEM, rc);
    }
    is_refused = 0;
    MPIX_OK(MPI_Comm_set_info(comm, info));
    pass_one(comm, 18);
    MPI_Comm_free(&comm);
    MPI_Info_free(&info);
}

/* A queue fails with a receive that nobody has sent anything to. A communicator
 * that has the same context afterwards begins anew. */
static void test_context(void)
{
    int out[2] = {1, 2}, in[2], i;
    MPI_Request requests[3];
    MPIX_Queue other;
    MPI_Comm comm;

    if (getenv("MPIX_QUEUE_ONLY") != NULL) {
        return; /* contexts are all that tells such communicators apart */
    }
    comm = make_only("true");
    MPIX_OK(MPIX_Create_queue_comm(comm, mpix_test.stream, &other));
    MPIX_OK(MPIX_Enqueue_recv(&in[0], 1, MPI_INT, mpix_test.left, 16, other,
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_recv(&in[1], 1, MPI_INT, mpix_test.left, 17, other,
                              &requests[1]));
    MPIX_OK(MPIX_Enqueue_send(out, 2, MPI_INT, mpix_test.right, 17, other,
                              &requests[2]));
    MPIX_OK(MPIX_Enqueue_start(other));
    for (i = 0; i < 3; ++i) {
        MPIX_CHECK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE) != MPI_SUCCESS,
                   "message %d has not failed", i);
    }
    MPIX_OK(MPIX_Free_queue(other));
    MPI_Comm_free(&comm);

    comm = make_only("true");
    pass_one(comm, 16);
    MPI_Comm_free(&comm);
}

/* A receive that is too short is an error of both, which names rank and tag;
 * the rest goes on. */
static void test_truncation(void)
{
    int out[2] = {1, 2}, in[2] = {0, 0}, rc[2], class[2], i;
    char text[MPI_MAX_ERROR_STRING] = "", peer[64];
    MPI_Request requests[2];
    MPIX_Queue queues[2];

    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPIX_Create_queue_comm(only, mpix_test.stream, &queues[i]));
    }
    MPIX_OK(MPIX_Enqueue_recv(&in[0], 1, MPI_INT, mpix_test.left, 11, queues[0],
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_send(out, 2, MPI_INT, mpix_test.right, 11, queues[1],
                              &requests[1]));
    MPIX_OK(MPIX_Enqueue_start(queues[0]));
    MPIX_OK(MPIX_Enqueue_start(queues[1]));
    for (i = 0; i < 2; ++i) {
        rc[i] = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        MPI_Error_class(rc[i], &class[i]);
    }
    MPIX_CHECK((class[0] == MPI_ERR_TRUNCATE) &&
               (class[1] == MPI_ERR_TRUNCATE), "classes %d, %d", class[0],
               class[1]);
    MPIX_CHECK(in[1] == 0, "%d", in[1]);
    for (i = 0; i < 2; ++i) {
        snprintf(peer, sizeof(peer), (i == 0) ? "receive from rank %d, tag 11" :
                                                "send to rank %d, tag 11",
                 (i == 0) ? mpix_test.left : mpix_test.right);
        if (mpix_test_text(rc[i], MPI_ERR_TRUNCATE, text)) {
            MPIX_CHECK(strstr(text, peer) != NULL, "%s", text);
        }
    }
    MPIX_IS(MPI_ERR_OTHER, MPIX_Queue_wait(queues[0]));
    MPIX_IS(MPI_ERR_OTHER, MPIX_Enqueue_send(out, 1, MPI_INT, mpix_test.right,
                                             TAG, queues[0], &requests[0]));
    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPIX_Free_queue(queues[i]));
    }
    test_null_and_self();
    test_requests();
}

/* The sender's part: the second message is too long, which ends the first one
 * before the stream gets to it */
static void fail_send(int *go)
{
    MPI_Request requests[2];
    int out[20] = {0};
    MPIX_Queue other;

    MPIX_OK(MPIX_Create_queue_comm(only, mpix_test.stream, &other));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold, go));
    MPIX_OK(MPIX_Enqueue_send(out, 10, MPI_INT, 1, 13, other, &requests[0]));
    MPIX_OK(MPIX_Enqueue_send(out, 20, MPI_INT, 1, 14, other, &requests[1]));
    MPIX_OK(MPIX_Enqueue_start(other));
    MPIX_IS(MPI_ERR_TRUNCATE, MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    __atomic_store_n(go, 1, __ATOMIC_RELEASE);
    MPIX_IS(MPI_ERR_OTHER, MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    MPIX_OK(MPIX_Free_queue(other));
}

/* A receive with gaps fails behind its match, while the stream is held before
 * the wait for it. The application has the buffer back, and keeps it. */
static void test_fail_matched(void)
{
    MPI_Request requests[2];
    MPIX_Queue queues[2];
    MPI_Datatype type;
    int in[20], word, i;
    static int go;

    go = 0;
    if (mpix_test.rank == 0) {
        if (mpix_test.size > 1) {
            fail_send(&go);
        }
        return;
    }
    if (mpix_test.rank > 1) {
        return;
    }
    MPI_Type_vector(10, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPIX_Create_queue_comm(only, mpix_test.stream, &queues[i]));
    }
    MPIX_OK(MPIX_Enqueue_recv(in, 1, type, 0, 13, queues[0], &requests[0]));
    MPIX_OK(MPIX_Enqueue_recv(&word, 1, MPI_INT, 0, 14, queues[1],
                              &requests[1]));
    MPIX_OK(MPIX_Enqueue_start(queues[0]));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold, &go));
    MPIX_OK(MPIX_Enqueue_wait(queues[0]));
    MPIX_OK(MPIX_Enqueue_start(queues[1])); /* the other one fails by that */
    MPIX_IS(MPI_ERR_TRUNCATE, MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    MPIX_IS(MPI_ERR_OTHER, MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    memset(in, -1, sizeof(in));
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
    for (i = 0; i < 20; ++i) {
        MPIX_CHECK(in[i] == -1, "in[%d] is %d", i, in[i]);
    }
    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPIX_Free_queue(queues[i]));
    }
    MPI_Type_free(&type);
}

/* A queue fails whose stream is to unpack a receive, whose data is in place.
 * The host's wait for the queue covers that copy as well: then the application
 * has the buffer back, and keeps it. */
static void test_fail_unpack(void)
{
    int *out = calloc(UNPACK_BLOCKS, sizeof(*out));
    int *in  = calloc(2 * UNPACK_BLOCKS, sizeof(*in));
    int word = 0;
    MPI_Request requests[4];
    MPIX_Queue queues[2];
    MPI_Datatype type;
    int i, count = 0;

    MPI_Type_vector(UNPACK_BLOCKS, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPIX_Create_queue_comm(only, mpix_test.stream, &queues[i]));
    }
    MPIX_OK(MPIX_Enqueue_recv(in, 1, type, mpix_test.left, 15, queues[0],
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_recv(&word, 1, MPI_INT, mpix_test.left, 16, queues[0],
                              &requests[1]));
    MPIX_OK(MPIX_Enqueue_start(queues[0]));
    MPIX_OK(MPIX_Enqueue_send(out, UNPACK_BLOCKS, MPI_INT, mpix_test.right, 15,
                              queues[1], &requests[2]));
    MPIX_OK(MPIX_Enqueue_start(queues[1]));
    MPIX_OK(MPI_Wait(&requests[2], MPI_STATUS_IGNORE));
    MPIX_OK(MPIX_Enqueue_wait(queues[0]));
    MPI_Barrier(MPI_COMM_WORLD);
    MPIX_OK(MPIX_Enqueue_send(out, 2, MPI_INT, mpix_test.right, 16, queues[1],
                              &requests[3]));
    MPIX_OK(MPIX_Enqueue_start(queues[1])); /* the others fail by that */
    MPIX_IS(MPI_ERR_OTHER, MPIX_Queue_wait(queues[0]));
    memset(in, -1, 2 * UNPACK_BLOCKS * sizeof(*in));
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
    for (i = 0; i < (2 * UNPACK_BLOCKS); ++i) {
        count += (in[i] != -1);
    }
    MPIX_CHECK(count == 0, "%d words were written behind the wait", count);
    (void)MPI_Wait(&requests[0], MPI_STATUS_IGNORE); /* it may be over */
    MPIX_IS(MPI_ERR_TRUNCATE, MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    MPIX_IS(MPI_ERR_TRUNCATE, MPI_Wait(&requests[3], MPI_STATUS_IGNORE));
    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPIX_Free_queue(queues[i]));
    }
    MPI_Type_free(&type);
    free(out);
    free(in);
}

/* A queue is freed with messages that are not over: those whose start was
 * enqueued arrive, the others are cancelled */
static void test_free_queue(void)
{
    int out = mpix_test.rank, in[2] = {-1, -1}, flag;
    MPI_Request requests[3];
    MPI_Status status;
    MPIX_Queue other;

    MPIX_OK(MPIX_Create_queue_comm(only, mpix_test.stream, &other));
    MPIX_OK(MPIX_Enqueue_recv(&in[0], 1, MPI_INT, mpix_test.left, 12, other,
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_send(&out, 1, MPI_INT, mpix_test.right, 12, other,
                              &requests[1]));
    MPIX_OK(MPIX_Enqueue_start(other));
    MPIX_OK(MPIX_Enqueue_recv(&in[1], 1, MPI_INT, mpix_test.left, 12, other,
                              &requests[2]));
    MPIX_OK(MPIX_Free_queue(other));
    MPIX_OK(MPI_Wait(&requests[2], &status));
    MPI_Test_cancelled(&status, &flag);
    MPIX_CHECK(flag, "not cancelled");
    MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    MPIX_CHECK((in[0] == mpix_test.left) && (in[1] == -1), "%d %d", in[0],
               in[1]);
}

/* The last: a GPU's stream is lost that was to unpack a receive, which is over.
 * The host does that, once it knows. */
static void test_lost(void)
{
    const char *stream = getenv("ST_TEST_STREAM");
    int out[10] = {0}, in[20] = {0}, i, flag;
    void (*lose)(int device) = NULL;
    MPI_Request requests[2];
    MPI_Datatype type;
    MPIX_Queue other;
    static int go;
    void *library;

    library = ((stream != NULL) && !strcmp(stream, "hip")) ?
                      dlopen("libamdhip64.so", RTLD_NOW | RTLD_NOLOAD) :
                      NULL;
    if (library != NULL) {
        *(void**)&lose = dlsym(library, "standin_lose_device");
    }
    if (lose == NULL) {
        return; /* a host's is never lost, and a real one not for a test */
    }
    MPI_Type_vector(10, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    out[9] = mpix_test.rank + 1;
    MPIX_OK(MPIX_Create_queue_comm(only, mpix_test.stream, &other));
    MPIX_OK(MPIX_Enqueue_recv(in, 1, type, mpix_test.left, 19, other,
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_send(out, 10, MPI_INT, mpix_test.right, 19, other,
                              &requests[1]));
    MPIX_OK(MPIX_Enqueue_start(other));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold, &go));
    MPIX_OK(MPIX_Enqueue_wait(other));
    MPIX_OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    MPI_Barrier(MPI_COMM_WORLD);
    for (i = 0; i < 100; ++i) { /* it learns that the data is there */
        MPIX_OK(MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE));
        MPIX_CHECK(!flag, "unpacked");
        usleep(3000);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    lose(0);
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    MPIX_IS(MPI_ERR_OTHER, MPIX_Queue_wait(other));
    MPIX_OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    MPIX_CHECK(in[18] == (mpix_test.left + 1), "%d", in[18]);
    MPIX_OK(MPIX_Free_queue(other));
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"ring", test_ring},
        {"requests", test_requests},
        {"datatypes", test_datatypes},
        {"unpack", test_unpack},
        {"null_and_self", test_null_and_self},
        {"both_ways", test_both_ways},
        {"many_ahead", test_many_ahead},
        {"sweep", test_sweep},
        {"refuse", test_refuse},
        {"info", test_info},
        {"no_mem", test_no_mem},
        {"context", test_context},
        {"truncation", test_truncation},
        {"fail_matched", test_fail_matched},
        {"fail_unpack", test_fail_unpack},
        {"free_queue", test_free_queue},
        {"calls", test_calls},
        {"queue_threads", test_queue_threads},
        {"some_say_so", test_some_say_so},
        {"random", test_random},
        {"lost", test_lost},
        {NULL, NULL}
    };
    static const mpix_test_case_t long_cases[] = { /* Only by name */
        {"many_tags", test_many_tags}, {NULL, NULL}
    };

    mpix_test_init_thread(&argc, &argv, MPI_THREAD_FUNNELED);
    only = make_only("true");
    MPIX_OK(MPIX_Create_queue_comm(only, mpix_test.stream, &queue));
    mpix_test_cases(cases, argc, argv);
    if (argc > 1) {
        mpix_test_cases(long_cases, argc, argv);
    }
    MPIX_OK(MPIX_Free_queue(queue));
    MPI_Comm_free(&only);
    return mpix_test_end("mpix_fifo");
}
