/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_multi.c - several threads match and use requests, and send messages that
 * are used once, at the same time, each with its own communicator, stream and
 * queue, while another calls MPI.
 */
#include "mpix_test.h"

#include <pthread.h>
#include <stdio.h>

#define THREADS 3
#define ROUNDS  8
#define USES    10
#define WORDS   50


/* One thread's; 'failed' is read by the main thread after it has ended. */
typedef struct worker {
    pthread_t  thread;
    int        index;
    MPI_Comm   comm;
    void       *stream;
    MPIX_Queue queue;
    int        failed;
} worker_t;


static int call(int code)
{
    return code != MPI_SUCCESS;
}

/* Uses a matched pair: requests[0] sends what 'send' describes. */
static int use_pair(worker_t *worker, MPI_Request *requests,
                    mpix_test_msg_t *send, mpix_test_msg_t *recv)
{
    int failed = 0;
    int k;

    for (k = 0; k < USES; ++k) {
        failed += call(MPIX_Host_stream_launch(worker->stream, mpix_test_fill,
                                               send));
        failed += call(MPIX_Enqueue_startall(worker->queue, 2, requests));
        failed += call(MPIX_Enqueue_waitall(worker->queue, 2, requests));
        failed += call(MPIX_Host_stream_launch(worker->stream, mpix_test_verify,
                                               recv));
    }
    failed += call(MPIX_Queue_wait(worker->queue));
    failed += call(MPIX_Host_stream_synchronize(worker->stream));
    return failed;
}

/* Sends and receives messages that are used once. */
static int use_once(worker_t *worker, mpix_test_msg_t *send,
                    mpix_test_msg_t *recv)
{
    MPI_Request requests[2];
    int failed = 0;
    int k;

    for (k = 0; k < USES; ++k) {
        failed += call(MPIX_Host_stream_launch(worker->stream, mpix_test_fill,
                                               send));
        failed += call(MPIX_Enqueue_recv(recv->words, WORDS, MPI_UINT64_T,
                                         mpix_test.left, 2, worker->comm,
                                         worker->queue, &requests[0]));
        failed += call(MPIX_Enqueue_send(send->words, WORDS, MPI_UINT64_T,
                                         mpix_test.right, 2, worker->comm,
                                         worker->queue, &requests[1]));
        failed += call(MPIX_Enqueue_start(worker->queue));
        failed += call(MPIX_Enqueue_wait(worker->queue));
        failed += call(MPIX_Host_stream_launch(worker->stream, mpix_test_verify,
                                               recv));
        failed += call(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    }
    failed += call(MPIX_Queue_wait(worker->queue));
    failed += call(MPIX_Host_stream_synchronize(worker->stream));
    return failed;
}

/* One round: new requests are made, matched, used and freed. */
static int run_round(worker_t *worker, int round)
{
    int failed = 0;
    mpix_test_msg_t send, recv;
    MPI_Request requests[2];

    mpix_test_msg_init(&send, WORDS, mpix_test.rank, mpix_test.right,
                       worker->index * ROUNDS + round);
    mpix_test_msg_init(&recv, WORDS, mpix_test.left, mpix_test.rank,
                       worker->index * ROUNDS + round);
    failed += call(MPI_Send_init(send.words, WORDS, MPI_UINT64_T,
                                 mpix_test.right, 1, worker->comm,
                                 &requests[0]));
    failed += call(MPI_Recv_init(recv.words, WORDS, MPI_UINT64_T,
                                 mpix_test.left, 1, worker->comm,
                                 &requests[1]));
    failed += call(MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE));
    if (failed == 0) {
        failed += use_pair(worker, requests, &send, &recv);
        failed += use_once(worker, &send, &recv);
    }
    failed += (recv.wrong > 0);
    failed += call(MPI_Request_free(&requests[0]));
    failed += call(MPI_Request_free(&requests[1]));

    recv.wrong = 0; /* Counted; the checks below are for one thread only */
    mpix_test_msg_free(&send);
    mpix_test_msg_free(&recv);
    return failed;
}

static void *run(void *arg)
{
    worker_t *worker = arg;
    int round;

    for (round = 0; round < ROUNDS; ++round) {
        worker->failed += run_round(worker, round);
    }
    return NULL;
}

static void worker_init(worker_t *worker, int index)
{
    *worker = (worker_t){.index = index};
    MPIX_OK(MPI_Comm_dup(MPI_COMM_WORLD, &worker->comm));
    MPIX_OK(MPIX_Host_stream_create(&worker->stream));
    MPIX_OK(MPIX_Queue_init(MPIX_QUEUE_HOST, worker->stream, &worker->queue));
}

static void worker_cleanup(worker_t *worker)
{
    MPIX_CHECK(worker->failed == 0, "thread %d: %d failures", worker->index,
               worker->failed);
    MPIX_OK(MPIX_Queue_free(&worker->queue));
    MPIX_OK(MPIX_Host_stream_free(&worker->stream));
    MPIX_OK(MPI_Comm_free(&worker->comm));
}

/* Ordinary traffic of the main thread meanwhile. */
static void exchange(void)
{
    int i, value;

    for (i = 0; i < 100; ++i) {
        value = -1;
        MPIX_OK(MPI_Sendrecv(&i, 1, MPI_INT, mpix_test.right, 1, &value, 1,
                             MPI_INT, mpix_test.left, 1, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE));
        MPIX_CHECK(value == i, "%d in place of %d", value, i);
    }
}

int main(int argc, char **argv)
{
    worker_t workers[THREADS];
    int i, level;

    mpix_test_init_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) {
        if (mpix_test.rank == 0) {
            printf("skipped: MPI has no MPI_THREAD_MULTIPLE here\n");
        }
        (void)mpix_test_end("mpix_multi");
        return 77;
    }

    for (i = 0; i < THREADS; ++i) {
        worker_init(&workers[i], i);
    }
    for (i = 0; i < THREADS; ++i) {
        pthread_create(&workers[i].thread, NULL, run, &workers[i]);
    }
    exchange();
    for (i = 0; i < THREADS; ++i) {
        pthread_join(workers[i].thread, NULL);
        worker_cleanup(&workers[i]);
    }
    return mpix_test_end("mpix_multi");
}
