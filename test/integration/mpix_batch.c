/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_batch.c - messages that are used once, with ordinary messages of MPI and
 * with their like on the other side.
 *
 * Each rank sends to the next one and receives from the one before.
 */
#include "mpix_test.h"
#include "st_any.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define TAG   30
#define COUNT 500
#define MANY  200
#define LARGE 300000 /* Words: beyond MPI's eager limit */


/* How the other side of an enqueued receive sends. */
typedef enum {
    SEND_PLAIN,
    SEND_ISEND,
    SEND_SYNC,
    SEND_BUFFERED,
    SEND_ENQUEUED,
    SEND_LAST
} send_kind_t;

/* How the other side of an enqueued send receives. */
typedef enum {
    RECV_PLAIN,
    RECV_IRECV,
    RECV_ANY_SOURCE,
    RECV_ANY_TAG,
    RECV_MATCHED_PROBE,
    RECV_LAST
} recv_kind_t;



static void enqueue_verify(mpix_test_msg_t *msg)
{
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_verify, msg));
}

/* Sends a message by a call of MPI. */
static void plain_send(mpix_test_msg_t *msg, send_kind_t kind)
{
    const int size = msg->count * sizeof(*msg->words) + MPI_BSEND_OVERHEAD;
    void *buffer   = malloc(size);

    mpix_test_fill(msg);
    switch (kind) {
    case SEND_PLAIN:
        MPIX_OK(MPI_Send(msg->words, msg->count, MPI_UINT64_T, msg->dest, TAG,
                         MPI_COMM_WORLD));
        break;
    case SEND_SYNC:
        MPIX_OK(MPI_Ssend(msg->words, msg->count, MPI_UINT64_T, msg->dest, TAG,
                          MPI_COMM_WORLD));
        break;
    case SEND_BUFFERED:
        MPI_Buffer_attach(buffer, size);
        MPIX_OK(MPI_Bsend(msg->words, msg->count, MPI_UINT64_T, msg->dest, TAG,
                          MPI_COMM_WORLD));
        break;
    default:
        MPIX_OK(MPI_Isend(msg->words, msg->count, MPI_UINT64_T, msg->dest, TAG,
                          MPI_COMM_WORLD, &msg->request));
        MPIX_OK(MPI_Wait(&msg->request, MPI_STATUS_IGNORE));
        break;
    }
    if (kind == SEND_BUFFERED) {
        int attached;
        void *address;

        MPI_Buffer_detach(&address, &attached);
    }
    free(buffer);
}

/* Receives a message by calls of MPI. */
static void plain_recv(mpix_test_msg_t *msg, recv_kind_t kind)
{
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;

    switch (kind) {
    case RECV_PLAIN:
        MPIX_OK(MPI_Recv(msg->words, msg->count, MPI_UINT64_T, msg->source, TAG,
                         MPI_COMM_WORLD, &status));
        break;
    case RECV_ANY_SOURCE:
        MPIX_OK(MPI_Recv(msg->words, msg->count, MPI_UINT64_T, MPI_ANY_SOURCE,
                         TAG, MPI_COMM_WORLD, &status));
        break;
    case RECV_ANY_TAG:
        MPIX_OK(MPI_Recv(msg->words, msg->count, MPI_UINT64_T, msg->source,
                         MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        break;
    case RECV_MATCHED_PROBE:
        MPIX_OK(MPI_Mprobe(msg->source, TAG, MPI_COMM_WORLD, &message,
                           &status));
        MPIX_OK(MPI_Imrecv(msg->words, msg->count, MPI_UINT64_T, &message,
                           &request));
        MPIX_OK(MPI_Wait(&request, &status));
        break;
    default:
        MPIX_OK(MPI_Irecv(msg->words, msg->count, MPI_UINT64_T, msg->source,
                          TAG, MPI_COMM_WORLD, &request));
        MPIX_OK(MPI_Wait(&request, &status));
        break;
    }
    mpix_test_status(&status, msg->source, TAG, msg->actual);
    mpix_test_verify(msg);
}

static void send_to_plain(recv_kind_t kind, size_t count)
{
    mpix_test_msg_t send, recv;

    mpix_test_msg_init(&send, count, mpix_test.rank, mpix_test.right, kind);
    mpix_test_msg_init(&recv, count, mpix_test.left, mpix_test.rank, kind);

    mpix_test_once_send(&send, TAG, MPI_COMM_WORLD);
    mpix_test_once_start();
    mpix_test_once_wait();
    plain_recv(&recv, kind);
    mpix_test_queue_wait();
    MPIX_OK(MPI_Wait(&send.request, MPI_STATUS_IGNORE));

    mpix_test_msg_drop(&send);
    mpix_test_msg_drop(&recv);
}

/* Every kind of receive takes an enqueued send. */
static void test_send_to_plain(void)
{
    recv_kind_t kind;

    for (kind = 0; kind < RECV_LAST; ++kind) {
        send_to_plain(kind, COUNT);
        send_to_plain(kind, LARGE);
        send_to_plain(kind, 0);
    }
}

static void recv_from_plain(send_kind_t kind, int source, int tag, size_t count)
{
    mpix_test_msg_t send, recv;
    MPI_Status status;

    mpix_test_msg_init(&send, count, mpix_test.rank, mpix_test.right, kind);
    mpix_test_msg_init(&recv, count + 7, mpix_test.left, mpix_test.rank, kind);
    recv.actual = count;

    mpix_test_once_recv(&recv, source, tag, MPI_COMM_WORLD);
    if (kind == SEND_ENQUEUED) {
        mpix_test_once_send(&send, TAG, MPI_COMM_WORLD);
    }
    mpix_test_once_start();
    mpix_test_once_wait();
    enqueue_verify(&recv);
    if (kind != SEND_ENQUEUED) {
        plain_send(&send, kind);
    }
    mpix_test_queue_wait();
    MPIX_OK(MPI_Wait(&recv.request, &status));
    mpix_test_status(&status, mpix_test.left, TAG, count);
    if (kind == SEND_ENQUEUED) {
        MPIX_OK(MPI_Wait(&send.request, MPI_STATUS_IGNORE));
    }

    mpix_test_msg_drop(&send);
    mpix_test_msg_drop(&recv);
}

/* An enqueued receive, with and without wildcards, takes every kind of send. */
static void test_recv_from_plain(void)
{
    send_kind_t kind;

    for (kind = 0; kind < SEND_LAST; ++kind) {
        recv_from_plain(kind, mpix_test.left, TAG, COUNT);
        recv_from_plain(kind, MPI_ANY_SOURCE, MPI_ANY_TAG, LARGE);
        recv_from_plain(kind, MPI_ANY_SOURCE, TAG, 0);
    }
}

/* Messages of equal tags, every third of them ordinary, come in the order in
 * which their sends began. */
static void test_order(void)
{
    int i, out[MANY], in[MANY];
    MPI_Request requests[MANY];

    for (i = 0; i < MANY; ++i) {
        out[i] = 1000 * mpix_test.rank + i;
        if ((i % 3) == 2) {
            MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
            MPIX_OK(MPI_Isend(&out[i], 1, MPI_INT, mpix_test.right, TAG,
                              MPI_COMM_WORLD, &requests[i]));
        } else {
            MPIX_OK(MPIX_Enqueue_send(&out[i], 1, MPI_INT, mpix_test.right, TAG,
                                      MPI_COMM_WORLD, mpix_test.queue,
                                      &requests[i]));
            mpix_test_once_start();
            mpix_test_once_wait();
        }
    }
    for (i = 0; i < MANY; ++i) {
        MPIX_OK(MPI_Recv(&in[i], 1, MPI_INT, mpix_test.left, MPI_ANY_TAG,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MPIX_CHECK(in[i] == (1000 * mpix_test.left + i), "%d: %d", i, in[i]);
    }
    MPIX_OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
}

/* The stream is held while many batches are enqueued. Nothing is sent before it
 * is let go. */
static void test_many_ahead(void)
{
    static mpix_test_msg_t sends[MANY], recvs[MANY];
    MPI_Request requests[2 * MANY];
    int count = (int)st_any_ahead(MANY);
    int i, flag, go = 0;

    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold, &go));
    for (i = 0; i < count; ++i) {
        mpix_test_msg_init(&sends[i], 10 + i, mpix_test.rank, mpix_test.right,
                           i);
        mpix_test_msg_init(&recvs[i], 10 + i, mpix_test.left, mpix_test.rank,
                           i);
        mpix_test_once_recv(&recvs[i], mpix_test.left, TAG + i, MPI_COMM_WORLD);
        mpix_test_once_send(&sends[i], TAG + i, MPI_COMM_WORLD);
        mpix_test_once_start();
        mpix_test_once_wait();
        enqueue_verify(&recvs[i]);
        requests[2 * i]     = sends[i].request;
        requests[2 * i + 1] = recvs[i].request;
    }

    MPIX_OK(MPI_Testall(2 * count, requests, &flag, MPI_STATUSES_IGNORE));
    MPIX_CHECK(!flag, "complete before the stream got there");
    MPI_Barrier(MPI_COMM_WORLD);
    MPIX_OK(MPI_Iprobe(mpix_test.left, TAG, MPI_COMM_WORLD, &flag,
                       MPI_STATUS_IGNORE));
    MPIX_CHECK(!flag, "sent before the stream got there");
    MPI_Barrier(MPI_COMM_WORLD);
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);

    MPIX_OK(MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE));
    mpix_test_queue_wait();
    for (i = 0; i < count; ++i) {
        sends[i].request = requests[2 * i];
        recvs[i].request = requests[2 * i + 1];
        mpix_test_msg_drop(&sends[i]);
        mpix_test_msg_drop(&recvs[i]);
    }
}

/* A host tests and frees requests whose stream never waits. */
static void test_requests(void)
{
    mpix_test_msg_t sends[4], recvs[4];
    MPI_Request requests[4];
    int i, index, flag = 0;
    MPI_Status status;

    for (i = 0; i < 4; ++i) {
        mpix_test_msg_init(&sends[i], COUNT, mpix_test.rank, mpix_test.right,
                           i);
        mpix_test_msg_init(&recvs[i], COUNT, mpix_test.left, mpix_test.rank, i);
        mpix_test_once_recv(&recvs[i], mpix_test.left, TAG + i, MPI_COMM_WORLD);
        mpix_test_once_send(&sends[i], TAG + i, MPI_COMM_WORLD);
        requests[i] = recvs[i].request;
        MPIX_OK(MPI_Request_free(&sends[i].request)); /* Before the start */
    }
    MPIX_IS(MPI_ERR_REQUEST, MPI_Cancel(&requests[0]));
    mpix_test_once_start();
    mpix_test_once_start(); /* Of nothing */
    MPIX_OK(MPI_Request_free(&requests[3])); /* Its message may be under way */

    while (!flag) {
        MPIX_OK(MPI_Test(&requests[2], &flag, &status));
    }
    mpix_test_status(&status, mpix_test.left, TAG + 2, COUNT);
    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPI_Waitany(3, requests, &index, &status));
        mpix_test_status(&status, mpix_test.left, TAG + index, COUNT);
    }
    mpix_test_once_wait();
    mpix_test_queue_wait();
    for (i = 0; i < 4; ++i) {
        mpix_test_verify(&recvs[i]);
        recvs[i].request = requests[i];
        mpix_test_msg_drop(&sends[i]);
        mpix_test_msg_drop(&recvs[i]);
    }
}

/* Types with gaps, backwards, and at absolute addresses, freed at once. */
static void test_datatypes(void)
{
    int out[40], in[40], i;
    MPI_Datatype type, absolute;
    MPI_Request requests[2];
    MPI_Aint address;

    for (i = 0; i < 40; ++i) {
        out[i] = 100 * mpix_test.rank + i;
        in[i]  = -1;
    }
    MPI_Type_vector(10, 1, -2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Get_address(&in[20], &address);
    MPI_Type_create_hindexed_block(1, 10, &address, MPI_INT, &absolute);
    MPI_Type_commit(&absolute);

    MPIX_OK(MPIX_Enqueue_recv(MPI_BOTTOM, 1, absolute, mpix_test.left, TAG,
                              mpix_test.queue, &requests[0]));
    MPIX_OK(MPIX_Enqueue_send(&out[30], 1, type, mpix_test.right, TAG,
                              mpix_test.queue, &requests[1]));
    MPI_Type_free(&type);
    MPI_Type_free(&absolute);
    mpix_test_once_start();
    mpix_test_once_wait();
    mpix_test_queue_wait();
    MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (i = 0; i < 40; ++i) {
        MPIX_CHECK(in[i] == (((i >= 20) && (i < 30)) ?
                             100 * mpix_test.left + 30 - 2 * (i - 20) : -1),
                   "%d: %d", i, in[i]);
    }
}

/* Nobody, and the process itself. */
static void test_null_and_self(void)
{
    mpix_test_msg_t send, recv;
    MPI_Request requests[4];
    MPI_Status statuses[4];
    int count, word = 5;

    mpix_test_msg_init(&send, COUNT, mpix_test.rank, mpix_test.rank, 1);
    mpix_test_msg_init(&recv, COUNT, mpix_test.rank, mpix_test.rank, 1);
    MPIX_OK(MPIX_Enqueue_recv(&word, 1, MPI_INT, MPI_PROC_NULL, TAG,
                              MPI_COMM_WORLD, mpix_test.queue, &requests[0]));
    MPIX_OK(MPIX_Enqueue_send(&word, 1, MPI_INT, MPI_PROC_NULL, TAG,
                              MPI_COMM_WORLD, mpix_test.queue, &requests[1]));
    mpix_test_once_send(&send, TAG, MPI_COMM_WORLD);
    mpix_test_once_recv(&recv, mpix_test.rank, TAG, MPI_COMM_WORLD);
    requests[2] = send.request;
    requests[3] = recv.request;
    mpix_test_once_start();
    mpix_test_once_wait();
    enqueue_verify(&recv);
    mpix_test_queue_wait();
    MPIX_OK(MPI_Waitall(4, requests, statuses));
    MPI_Get_count(&statuses[0], MPI_INT, &count);
    MPIX_CHECK((statuses[0].MPI_SOURCE == MPI_PROC_NULL) && (count == 0) &&
               (word == 5), "source %d count %d word %d",
               statuses[0].MPI_SOURCE, count, word);
    mpix_test_status(&statuses[3], mpix_test.rank, TAG, COUNT);
    send.request = requests[2];
    recv.request = requests[3];
    mpix_test_msg_drop(&send);
    mpix_test_msg_drop(&recv);
}

/* Sends to the same place of the other group, and receives from there. */
static void swap_inter(MPI_Comm inter, int rank)
{
    MPI_Request requests[2];
    int value = mpix_test.rank, other = -1;
    MPI_Status statuses[2];

    MPIX_OK(MPIX_Enqueue_recv(&other, 1, MPI_INT, rank, TAG, inter,
                              mpix_test.queue, &requests[0]));
    MPIX_OK(MPIX_Enqueue_send(&value, 1, MPI_INT, rank, TAG, inter,
                              mpix_test.queue, &requests[1]));
    mpix_test_once_start();
    mpix_test_once_wait();
    mpix_test_queue_wait();
    MPIX_OK(MPI_Waitall(2, requests, statuses));
    MPIX_CHECK((other == (mpix_test.rank ^ 1)) &&
               (statuses[0].MPI_SOURCE == rank), "%d from %d", other,
               statuses[0].MPI_SOURCE);
}

/* An intercommunicator; and a queue's own communicator, which is freed. */
static void test_communicators(void)
{
    const int is_odd = mpix_test.rank % 2;
    MPI_Comm local, inter, dup;
    MPI_Request requests[2];
    int value = -1, mine = mpix_test.rank;
    MPIX_Queue queue;

    MPI_Comm_split(MPI_COMM_WORLD, is_odd, 0, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - is_odd, 0, &inter);
    if ((mpix_test.rank ^ 1) < mpix_test.size) {
        swap_inter(inter, mpix_test.rank / 2);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
    MPIX_OK(MPIX_Create_queue(dup, mpix_test.stream, &queue));
    MPIX_OK(MPIX_Enqueue_recv(&value, 1, MPI_INT, mpix_test.left, TAG, queue,
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_send(&mine, 1, MPI_INT, mpix_test.right, TAG, queue,
                              &requests[1]));
    MPI_Comm_free(&dup); /* Messages that are enqueued keep it */
    MPIX_OK(MPIX_Enqueue_start(queue));
    MPIX_OK(MPIX_Enqueue_wait(queue));
    MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    MPIX_OK(MPIX_Queue_wait(queue));
    MPIX_CHECK(value == mpix_test.left, "%d", value);
    MPIX_IS(MPI_ERR_COMM, MPIX_Enqueue_send(&mine, 1, MPI_INT, 0, TAG, queue,
                                            &requests[0]));
    MPIX_OK(MPIX_Free_queue(queue));
}

/* What is refused enqueues nothing. */
static void test_refuse(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPIX_Queue other    = MPIX_QUEUE_NULL;
    int word            = 0;

    if (mpix_test.queue_type == MPIX_QUEUE_HOST) {
        MPIX_IS(MPI_ERR_ARG, MPIX_Create_queue(NULL, &other));
        MPIX_IS(MPI_ERR_ARG, MPIX_Create_queue(&word, &other));
    } else { /* A GPU's driver looks into what it takes for a stream */
        MPIX_IS(MPI_ERR_ARG, MPIX_Create_queue((void*)16, &other));
    }
    MPIX_IS(MPI_ERR_ARG, MPIX_Create_queue(mpix_test.stream, NULL));
    MPIX_IS(MPI_ERR_COMM, MPIX_Create_queue(MPI_COMM_NULL, mpix_test.stream,
                                            &other));
    MPIX_IS(MPI_ERR_ARG, MPIX_Free_queue(other));
    MPIX_IS(MPI_ERR_ARG, MPIX_Enqueue_start(other));
    MPIX_IS(MPI_ERR_ARG, MPIX_Enqueue_wait((MPIX_Queue)&word));
    MPIX_IS(MPI_ERR_ARG, MPIX_Enqueue_send(&word, 1, MPI_INT, 0, TAG, other,
                                           &request));
    MPIX_IS(MPI_ERR_COMM,
            MPIX_Enqueue_send(&word, 1, MPI_INT, 0, TAG, MPI_COMM_NULL,
                              mpix_test.queue, &request));
    MPIX_IS(MPI_ERR_ARG, MPIX_Enqueue_send(&word, 1, MPI_INT, 0, TAG,
                                           mpix_test.queue, NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Enqueue_recv(MPI_IN_PLACE, 1, MPI_INT, 0, TAG,
                                           mpix_test.queue, &request));
    MPIX_IS(MPI_ERR_COUNT, MPIX_Enqueue_recv(&word, -1, MPI_INT, 0, TAG,
                                             mpix_test.queue, &request));
    MPIX_IS(MPI_ERR_TYPE,
            MPIX_Enqueue_recv(&word, 1, MPI_DATATYPE_NULL, 0, TAG,
                              mpix_test.queue, &request));
    MPIX_IS(MPI_ERR_RANK,
            MPIX_Enqueue_send(&word, 1, MPI_INT, mpix_test.size, TAG,
                              mpix_test.queue, &request));
    MPIX_IS(MPI_ERR_RANK, MPIX_Enqueue_send(&word, 1, MPI_INT, MPI_ANY_SOURCE,
                                            TAG, mpix_test.queue, &request));
    MPIX_IS(MPI_ERR_TAG, MPIX_Enqueue_send(&word, 1, MPI_INT, 0, MPI_ANY_TAG,
                                           mpix_test.queue, &request));
    MPIX_IS(MPI_ERR_TAG, MPIX_Enqueue_recv(&word, 1, MPI_INT, 0, -5,
                                           mpix_test.queue, &request));
    MPIX_CHECK(request == MPI_REQUEST_NULL, "a request was made");
    mpix_test_once_start();
    mpix_test_once_wait();
    mpix_test_queue_wait();
}

/* A message that is too long ends its request and its queue, and nothing
 * else. */
static void test_truncation(void)
{
    int values[2] = {1, 2}, word = 0, rc;
    MPI_Request request, other = MPI_REQUEST_NULL;
    MPIX_Queue queue;
    MPI_Status status;

    MPIX_OK(MPIX_Create_queue(mpix_test.stream, &queue));
    MPIX_OK(MPIX_Enqueue_recv(&word, 1, MPI_INT, mpix_test.left, TAG, queue,
                              &request));
    MPIX_OK(MPIX_Enqueue_start(queue));
    MPIX_OK(MPIX_Enqueue_wait(queue));
    MPI_Barrier(MPI_COMM_WORLD); /* The queue is in error soon */
    MPI_Send(values, 2, MPI_INT, mpix_test.right, TAG, MPI_COMM_WORLD);
    rc = MPI_Wait(&request, &status);
    MPI_Error_class(rc, &rc);
    MPIX_CHECK(rc == MPI_ERR_TRUNCATE, "class %d", rc);
    MPIX_IS(MPI_ERR_OTHER, MPIX_Queue_wait(queue));
    MPIX_IS(MPI_ERR_OTHER, MPIX_Enqueue_send(values, 1, MPI_INT, 0, TAG, queue,
                                             &other));
    MPIX_IS(MPI_ERR_OTHER, MPIX_Enqueue_start(queue));
    MPIX_OK(MPIX_Free_queue(queue));
    send_to_plain(RECV_PLAIN, COUNT);
}

/* Has the stand-in for a GPU's runtime fail calls with a stream: after 'skip'
 * of them so many. Returns 0 where there is none. */
static int fail_calls(unsigned skip, unsigned count)
{
    const int is_hip = (mpix_test.queue_type == MPIX_QUEUE_HIP);
    void (*fail)(unsigned skip, unsigned count, int error);
    void *library;

    if (mpix_test.queue_type == MPIX_QUEUE_HOST) {
        return 0;
    }
    library = dlopen(is_hip ? "libamdhip64.so" : "libcuda.so.1",
                     RTLD_NOW | RTLD_NOLOAD);
    *(void**)&fail = (library == NULL) ? NULL :
                                         dlsym(library, "standin_fail_calls");
    if (fail == NULL) {
        return 0;
    }
    fail(skip, count, 999 /* unknown error */);
    return 1;
}

/* Messages whose start the runtime refuses, at any of its calls, are there for
 * the next one. */
static void test_refused_start(void)
{
    mpix_test_msg_t sends[2], recvs[2];
    int rc = MPI_ERR_OTHER;
    unsigned skip;
    int i;

    for (i = 0; i < 2; ++i) {
        mpix_test_msg_init(&sends[i], COUNT, mpix_test.rank, mpix_test.right,
                           i);
        mpix_test_msg_init(&recvs[i], COUNT, mpix_test.left, mpix_test.rank, i);
        mpix_test_once_recv(&recvs[i], mpix_test.left, TAG + i, MPI_COMM_WORLD);
        mpix_test_once_send(&sends[i], TAG + i, MPI_COMM_WORLD);
    }
    for (skip = 0; (rc != MPI_SUCCESS) && (skip < 10) && fail_calls(skip, 1);
         ++skip) {
        rc = MPIX_Enqueue_start(mpix_test.queue);
        fail_calls(0, 0);
    }
    mpix_test_once_start(); /* Of nothing, where there are stand-ins */
    mpix_test_once_wait();
    mpix_test_queue_wait();
    for (i = 0; i < 2; ++i) {
        mpix_test_verify(&recvs[i]);
        MPIX_OK(MPI_Wait(&sends[i].request, MPI_STATUS_IGNORE));
        MPIX_OK(MPI_Wait(&recvs[i].request, MPI_STATUS_IGNORE));
        mpix_test_msg_drop(&sends[i]);
        mpix_test_msg_drop(&recvs[i]);
    }
}

/* Matched requests on the same queue, between messages that are used once. */
static void test_both_families(void)
{
    mpix_test_msg_t send, recv, once_send, once_recv;
    int i;

    mpix_test_send_init(&send, COUNT, mpix_test.right, TAG, 1);
    mpix_test_recv_init(&recv, COUNT, mpix_test.left, TAG, 1);
    mpix_test_match(&send, 1, &recv, 1);
    for (i = 0; i < 10; ++i) {
        mpix_test_msg_init(&once_send, COUNT, mpix_test.rank, mpix_test.right,
                           2);
        mpix_test_msg_init(&once_recv, COUNT, mpix_test.left, mpix_test.rank,
                           2);
        once_send.use = i;
        once_recv.use = i;
        mpix_test_once_recv(&once_recv, mpix_test.left, TAG, MPI_COMM_WORLD);
        mpix_test_once_send(&once_send, TAG, MPI_COMM_WORLD);
        MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_fill,
                                        &send));
        MPIX_OK(MPIX_Enqueue_start(mpix_test.queue, &recv.request));
        MPIX_OK(MPIX_Enqueue_start(mpix_test.queue, &send.request));
        mpix_test_once_start();
        MPIX_OK(MPIX_Enqueue_wait(mpix_test.queue, &send.request));
        mpix_test_once_wait();
        MPIX_OK(MPIX_Enqueue_wait(mpix_test.queue, &recv.request));
        enqueue_verify(&recv);
        enqueue_verify(&once_recv);
        mpix_test_queue_wait();
        MPIX_OK(MPI_Wait(&once_send.request, MPI_STATUS_IGNORE));
        MPIX_OK(MPI_Wait(&once_recv.request, MPI_STATUS_IGNORE));
        mpix_test_msg_drop(&once_send);
        mpix_test_msg_drop(&once_recv);
    }
    mpix_test_msg_free(&send);
    mpix_test_msg_free(&recv);
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"send_to_plain", test_send_to_plain},
        {"recv_from_plain", test_recv_from_plain},
        {"order", test_order},
        {"many_ahead", test_many_ahead},
        {"requests", test_requests},
        {"datatypes", test_datatypes},
        {"null_and_self", test_null_and_self},
        {"communicators", test_communicators},
        {"refuse", test_refuse},
        {"refused_start", test_refused_start},
        {"truncation", test_truncation},
        {"both_families", test_both_families},
        {NULL, NULL}
    };

    mpix_test_init_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    mpix_test_cases(cases, argc, argv);
    return mpix_test_end("mpix_batch");
}
