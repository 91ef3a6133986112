/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_host.c - MPI's calls on matched requests: what a stream has under way is
 * tested and waited for, and the host starts requests itself.
 *
 * Each rank sends to the next one and receives from the one before.
 */
#include "mpix_test.h"

#include <stdlib.h>
#include <string.h>

#define TAG   13
#define WORDS 2000
#define ROUNDS 12

/* A matched pair of this rank. Ordinary requests go beside it. */
static mpix_test_msg_t send, recv;


static void check_status(const MPI_Status *status, size_t words)
{
    int count = -1;

    MPI_Get_count(status, MPI_UINT64_T, &count);
    MPIX_CHECK((status->MPI_SOURCE == mpix_test.left) &&
               (status->MPI_TAG == TAG) && ((size_t)count == words),
               "source %d tag %d count %d", status->MPI_SOURCE,
               status->MPI_TAG, count);
}

static void check_empty(const MPI_Status *status)
{
    int count = -1;

    MPI_Get_count(status, MPI_BYTE, &count);
    MPIX_CHECK((status->MPI_SOURCE == MPI_ANY_SOURCE) &&
               (status->MPI_TAG == MPI_ANY_TAG) && (count == 0),
               "source %d tag %d count %d", status->MPI_SOURCE,
               status->MPI_TAG, count);
}

/* The stream waits for the host before it starts anything: the receive cannot
 * be complete before the peer's host has released its stream. */
static void start_held(int *released)
{
    MPI_Request requests[2] = {recv.request, send.request};

    *released = 0;
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold,
                                    released));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_fill, &send));
    MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, 2, requests));
}

static void release(int *released)
{
    __atomic_store_n(released, 1, __ATOMIC_RELEASE);
}

/* What is enqueued behind MPI's wait: the data is there. */
static void verify(void)
{
    mpix_test_verify(&recv);
    MPIX_CHECK(recv.wrong == 0, "%llu wrong words",
               (unsigned long long)recv.wrong);
}

/* MPI_Wait and MPI_Test, with and without the stream's own wait. */
static void test_wait(void)
{
    MPI_Request requests[2] = {recv.request, send.request};
    int round, flag, released;
    MPI_Status status;

    for (round = 0; round < ROUNDS; ++round) {
        start_held(&released);
        if (round % 2) {
            MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 2, requests));
        }
        flag = 1;
        MPIX_OK(MPI_Test(&recv.request, &flag, &status));
        MPIX_CHECK(!flag, "round %d: the stream has not started", round);
        flag = 1;
        MPIX_OK(MPI_Request_get_status(recv.request, &flag, &status));
        MPIX_CHECK(!flag, "round %d: the stream has not started", round);
        MPI_Barrier(MPI_COMM_WORLD);
        release(&released);

        if ((round % 3) == 0) {
            MPIX_OK(MPI_Wait(&recv.request, &status));
        } else if ((round % 3) == 1) {
            for (flag = 0; !flag;) {
                MPIX_OK(MPI_Test(&recv.request, &flag, &status));
            }
        } else {
            for (flag = 0; !flag;) {
                MPIX_OK(MPI_Request_get_status(recv.request, &flag, &status));
            }
            MPIX_OK(MPI_Wait(&recv.request, &status));
        }
        check_status(&status, WORDS);
        verify();
        MPIX_OK(MPI_Wait(&send.request, &status));
        check_empty(&status);

        /* Inactive now */
        flag = 0;
        MPIX_OK(MPI_Test(&recv.request, &flag, &status));
        MPIX_CHECK(flag, "round %d", round);
        check_empty(&status);
        MPIX_CHECK(recv.request == requests[0], "a handle has changed");
    }
}

/* Another stream may go on as soon as MPI has waited. */
static void test_other_stream(void)
{
    void *first      = mpix_test.stream;
    MPIX_Queue queue = mpix_test.queue;
    int released;

    start_held(&released);
    release(&released);
    MPIX_OK(MPI_Wait(&recv.request, MPI_STATUS_IGNORE));
    MPIX_OK(MPI_Wait(&send.request, MPI_STATUS_IGNORE));
    verify();

    MPIX_OK(mpix_test_stream(&mpix_test.stream));
    MPIX_OK(MPIX_Queue_init(mpix_test.queue_type, mpix_test.stream,
                            &mpix_test.queue));
    mpix_test_run(&send, 1, &recv, 1);
    MPIX_OK(MPIX_Queue_free(&mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_free(&mpix_test.stream));
    mpix_test.stream = first;
    mpix_test.queue  = queue;
    mpix_test_run(&send, 1, &recv, 1);
}

/* An array of matched requests, on a stream, ordinary ones and none. */
typedef struct mixed {
    MPI_Request requests[6];
    int         out;
    int         in;
    int         released;
} mixed_t;

enum {
    MIXED_SEND, MIXED_ISEND, MIXED_NULL, MIXED_RECV, MIXED_IRECV, MIXED_IDLE,
    MIXED_LAST
};

static void mixed_start(mixed_t *mixed, int round, MPI_Request idle)
{
    mixed->out                   = round;
    mixed->in                    = -1;
    mixed->requests[MIXED_SEND]  = send.request;
    mixed->requests[MIXED_NULL]  = MPI_REQUEST_NULL;
    mixed->requests[MIXED_RECV]  = recv.request;
    mixed->requests[MIXED_IDLE]  = idle;
    start_held(&mixed->released);
    MPI_Isend(&mixed->out, 1, MPI_INT, mpix_test.right, TAG + 1, MPI_COMM_WORLD,
              &mixed->requests[MIXED_ISEND]);
    MPI_Irecv(&mixed->in, 1, MPI_INT, mpix_test.left, TAG + 1, MPI_COMM_WORLD,
              &mixed->requests[MIXED_IRECV]);
}

static void mixed_check(const mixed_t *mixed, int round)
{
    verify();
    MPIX_CHECK(mixed->in == round, "%d of %d", mixed->in, round);
    MPIX_CHECK((mixed->requests[MIXED_IRECV] == MPI_REQUEST_NULL) &&
               (mixed->requests[MIXED_ISEND] == MPI_REQUEST_NULL) &&
               (mixed->requests[MIXED_RECV] == recv.request),
               "requests of round %d", round);
}

static void mixed_all(mixed_t *mixed, int round)
{
    MPI_Status statuses[MIXED_LAST];
    int flag = 1;

    MPIX_OK(MPI_Testall(MIXED_LAST, mixed->requests, &flag, statuses));
    MPIX_CHECK(!flag, "the stream has not started");
    MPI_Barrier(MPI_COMM_WORLD);
    release(&mixed->released);
    if (round % 2) {
        MPIX_OK(MPI_Waitall(MIXED_LAST, mixed->requests, statuses));
    } else {
        for (flag = 0; !flag;) {
            MPIX_OK(MPI_Testall(MIXED_LAST, mixed->requests, &flag, statuses));
        }
    }
    check_status(&statuses[MIXED_RECV], WORDS);
    MPIX_CHECK(statuses[MIXED_IRECV].MPI_TAG == (TAG + 1), "%d",
               statuses[MIXED_IRECV].MPI_TAG);
    check_empty(&statuses[MIXED_NULL]);
    check_empty(&statuses[MIXED_IDLE]);
}

/* All come out one by one, each once. */
static void mixed_any(mixed_t *mixed, int round)
{
    int seen[MIXED_LAST] = {0};
    int i, index, flag;
    MPI_Status status;

    MPI_Barrier(MPI_COMM_WORLD);
    release(&mixed->released);
    for (i = 0; i < 4; ++i) {
        index = -1;
        if (round % 2) {
            MPIX_OK(MPI_Waitany(MIXED_LAST, mixed->requests, &index, &status));
        } else {
            for (flag = 0; !flag;) {
                MPIX_OK(MPI_Testany(MIXED_LAST, mixed->requests, &index, &flag,
                                    &status));
            }
        }
        MPIX_CHECK((index >= 0) && (index < MIXED_LAST) && !seen[index], "%d",
                   index);
        if (index == MIXED_RECV) {
            check_status(&status, WORDS);
        }
        if ((index >= 0) && (index < MIXED_LAST)) {
            seen[index] = 1;
        }
    }
    MPIX_OK(MPI_Waitany(MIXED_LAST, mixed->requests, &index, &status));
    MPIX_CHECK(index == MPI_UNDEFINED, "%d", index);
}

static void mixed_some(mixed_t *mixed, int round)
{
    int indices[MIXED_LAST], done = 0, count, i;
    MPI_Status statuses[MIXED_LAST];

    MPI_Barrier(MPI_COMM_WORLD);
    release(&mixed->released);
    while (done < 4) {
        if (round % 2) {
            MPIX_OK(MPI_Waitsome(MIXED_LAST, mixed->requests, &count, indices,
                                 statuses));
            MPIX_CHECK(count > 0, "%d", count);
        } else {
            MPIX_OK(MPI_Testsome(MIXED_LAST, mixed->requests, &count, indices,
                                 statuses));
        }
        for (i = 0; i < count; ++i) {
            if (indices[i] == MIXED_RECV) {
                check_status(&statuses[i], WORDS);
            }
        }
        if ((count < 0) || (count > 4)) {
            MPIX_CHECK(0, "count %d", count);
            break;
        }
        done += count;
    }
    MPIX_CHECK(done == 4, "%d", done);
    MPIX_OK(MPI_Waitsome(MIXED_LAST, mixed->requests, &count, indices,
                         MPI_STATUSES_IGNORE));
    MPIX_CHECK(count == MPI_UNDEFINED, "%d", count);
}

static void test_mixed(void)
{
    static void (*const ways[])(mixed_t*, int) = {
        mixed_all, mixed_any, mixed_some
    };
    MPI_Request idle;
    mixed_t mixed;
    int round, word;

    MPIX_OK(MPI_Recv_init(&word, 1, MPI_INT, mpix_test.left, TAG + 2,
                          MPI_COMM_WORLD, &idle));
    for (round = 0; round < ROUNDS; ++round) {
        mixed_start(&mixed, round, idle);
        ways[round % 3](&mixed, round);
        mixed_check(&mixed, round);
    }
    MPIX_OK(MPI_Request_free(&idle));
}

/* The host starts both sides, or one, while the other side's stream does; a
 * stream may use them again. */
static void test_start(void)
{
    MPI_Request requests[2] = {recv.request, send.request};
    MPI_Status statuses[2];
    int round;

    for (round = 0; round < ROUNDS; ++round) {
        if ((round % 3) == 0) {
            mpix_test_run(&send, 1, &recv, 1);
            continue;
        }

        if (((round % 3) == 1) || (mpix_test.rank % 2)) {
            mpix_test_fill(&send);
            if (round % 2) {
                MPIX_OK(MPI_Startall(2, requests));
            } else {
                MPIX_OK(MPI_Start(&recv.request));
                MPIX_OK(MPI_Start(&send.request));
            }
            MPIX_IS(MPI_ERR_REQUEST, MPI_Start(&recv.request));
        } else {
            MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_fill,
                                            &send));
            MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, 2, requests));
        }
        MPIX_OK(MPI_Waitall(2, requests, statuses));
        check_status(&statuses[0], WORDS);
        verify();
    }
}

/* Matched and ordinary persistent requests in one call. */
static void test_startall_mixed(void)
{
    int out = mpix_test.rank, in = -1;
    MPI_Request requests[4];
    int round;

    requests[0] = recv.request;
    requests[2] = send.request;
    MPIX_OK(MPI_Send_init(&out, 1, MPI_INT, mpix_test.right, TAG + 3,
                          MPI_COMM_WORLD, &requests[1]));
    MPIX_OK(MPI_Recv_init(&in, 1, MPI_INT, mpix_test.left, TAG + 3,
                          MPI_COMM_WORLD, &requests[3]));
    for (round = 0; round < 3; ++round) {
        in = -1;
        mpix_test_fill(&send);
        MPIX_OK(MPI_Startall(4, requests));
        MPIX_OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
        verify();
        MPIX_CHECK(in == mpix_test.left, "%d", in);
    }
    MPIX_OK(MPI_Request_free(&requests[1]));
    MPIX_OK(MPI_Request_free(&requests[3]));
}

/* What is under way on a stream is not started by the host, nor the other way
 * round; nothing is cancelled; nothing is freed. */
static void test_refuse(void)
{
    MPI_Request requests[2] = {recv.request, send.request};
    MPI_Request request     = recv.request;
    int released;

    start_held(&released);
    MPIX_IS(MPI_ERR_REQUEST, MPI_Start(&recv.request));
    MPIX_IS(MPI_ERR_REQUEST, MPI_Startall(2, requests));
    MPIX_IS(MPI_ERR_REQUEST, MPI_Cancel(&recv.request));
    MPIX_IS(MPI_ERR_PENDING, MPI_Request_free(&request));
    MPIX_CHECK(request == recv.request, "a handle has changed");
    release(&released);
    MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    verify();

    mpix_test_fill(&send);
    MPIX_OK(MPI_Startall(2, requests));
    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Enqueue_startall(mpix_test.queue, 2, requests));
    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Enqueue_waitall(mpix_test.queue, 2, requests));
    MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    verify();
    MPIX_IS(MPI_ERR_REQUEST, MPI_Cancel(&send.request));
    mpix_test_run(&send, 1, &recv, 1);
}

/* Datatypes with holes, unpacked before MPI_Wait returns, and a message that is
 * shorter than its receive. */
static void test_vector(void)
{
    uint64_t out[30], in[60];
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Datatype type;
    int i, round, count;

    MPI_Type_vector(10, 1, 3, MPI_UINT64_T, &type);
    MPI_Type_commit(&type);
    MPIX_OK(MPI_Send_init(out, 10, MPI_UINT64_T, mpix_test.right, TAG,
                          MPI_COMM_WORLD, &requests[0]));
    MPIX_OK(MPI_Recv_init(in, 2, type, mpix_test.left, TAG, MPI_COMM_WORLD,
                          &requests[1]));
    MPIX_OK(MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE));
    for (round = 0; round < 4; ++round) {
        memset(in, 0, sizeof(in));
        for (i = 0; i < 10; ++i) {
            out[i] = 1000 * mpix_test.rank + 100 * round + i;
        }
        if (round % 2) {
            MPIX_OK(MPI_Startall(2, requests));
        } else {
            MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, 2, requests));
        }
        MPIX_OK(MPI_Waitall(2, requests, statuses));
        MPI_Get_count(&statuses[1], type, &count);
        MPIX_CHECK(count == 1, "%d", count);
        for (i = 0; i < 60; ++i) {
            MPIX_CHECK(in[i] == (((i < 30) && ((i % 3) == 0)) ?
                                         (uint64_t)(1000 * mpix_test.left +
                                                    100 * round + i / 3) :
                                         0), "word %d", i);
        }
    }
    MPIX_OK(MPI_Request_free(&requests[0]));
    MPIX_OK(MPI_Request_free(&requests[1]));
    MPI_Type_free(&type);
}

/* A queue that is freed before a wait takes the way to the data with it: an
 * error, and then the request may be used again. */
static void test_freed_queue(void)
{
    MPI_Request requests[2] = {recv.request, send.request};
    MPIX_Queue queue;
    MPI_Status statuses[2];
    int flag = 0;

    MPIX_OK(MPIX_Queue_init(mpix_test.queue_type, mpix_test.stream, &queue));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_fill, &send));
    MPIX_OK(MPIX_Enqueue_startall(queue, 2, requests));
    MPIX_OK(MPIX_Queue_wait(queue));
    MPIX_OK(MPIX_Queue_free(&queue));

    MPIX_IS(MPI_ERR_IN_STATUS, MPI_Waitall(2, requests, statuses));
    MPIX_IS(MPI_ERR_OTHER, statuses[0].MPI_ERROR);
    MPIX_IS(MPI_SUCCESS, statuses[1].MPI_ERROR);
    MPIX_OK(MPI_Test(&recv.request, &flag, MPI_STATUS_IGNORE));
    MPIX_CHECK(flag, "told of its end");
    ++recv.use;
    MPI_Barrier(MPI_COMM_WORLD);
    mpix_test_run(&send, 1, &recv, 1);
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"wait", test_wait},
        {"other_stream", test_other_stream},
        {"mixed", test_mixed},
        {"start", test_start},
        {"startall_mixed", test_startall_mixed},
        {"refuse", test_refuse},
        {"vector", test_vector},
        {"freed_queue", test_freed_queue},
        {NULL}
    };

    mpix_test_init(&argc, &argv);
    mpix_test_send_init(&send, WORDS, mpix_test.right, TAG, 1);
    mpix_test_recv_init(&recv, WORDS, mpix_test.left, TAG, 1);
    mpix_test_match(&send, 1, &recv, 1);
    mpix_test_cases(cases, argc, argv);
    mpix_test_msg_free(&send);
    mpix_test_msg_free(&recv);
    return mpix_test_end("mpix_host");
}
