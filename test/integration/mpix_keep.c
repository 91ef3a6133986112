/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_keep.c - what the library keeps of queues that are freed, and of
 * messages whose requests are dropped.
 *
 * Each rank sends to the next one and receives from the one before. With
 * MPIX_QUEUE_ONLY=y queues alone do.
 */
#include "mpix_test.h"

#include <dirent.h>
#include <malloc.h>
#include <stdlib.h>

#define TAG   30
#define COUNT 500
#define MANY  200
#define BURST 50        /* Messages of a start, each way */
#define LEAK_MAX 100000 /* Bytes: one allocation for every 2nd queue is more */
#define DROP_MAX 150000 /* Bytes: 1.5 for each request */


static int is_only(void)
{
    return getenv("MPIX_QUEUE_ONLY") != NULL;
}

/* Sends an int to the next rank: by MPI, or on a stream of its own, as another
 * one may wait. */
static void send_int(const int *value)
{
    MPI_Request request;
    MPIX_Queue queue;
    void *stream;

    if (!is_only()) {
        MPI_Send(value, 1, MPI_INT, mpix_test.right, TAG, MPI_COMM_WORLD);
        return;
    }
    MPIX_OK(mpix_test_stream(&stream));
    MPIX_OK(MPIX_Create_queue(stream, &queue));
    MPIX_OK(MPIX_Enqueue_send(value, 1, MPI_INT, mpix_test.right, TAG, queue,
                              &request));
    MPIX_OK(MPIX_Enqueue_start(queue));
    MPIX_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPIX_OK(MPIX_Free_queue(queue));
    MPIX_OK(MPIX_Host_stream_free(&stream));
}

/* A queue goes with messages that are not started, and with some that are. */
static void test_free(void)
{
    MPI_Request requests[2];
    int is_cancelled, value = -1;
    MPI_Status statuses[2];
    MPIX_Queue queue;

    MPIX_OK(MPIX_Create_queue(mpix_test.stream, &queue));
    MPIX_OK(MPIX_Enqueue_recv(&value, 1, MPI_INT, mpix_test.left, TAG, queue,
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_start(queue));
    MPIX_OK(MPIX_Enqueue_send(&value, 1, MPI_INT, mpix_test.right, TAG, queue,
                              &requests[1]));
    MPIX_OK(MPIX_Queue_wait(queue));
    MPIX_OK(MPIX_Free_queue(queue));

    send_int(&mpix_test.rank);
    MPIX_OK(MPI_Waitall(2, requests, statuses));
    MPI_Test_cancelled(&statuses[1], &is_cancelled);
    MPIX_CHECK((value == mpix_test.left) && is_cancelled, "%d %d", value,
               is_cancelled);
}

typedef struct note {
    const int *value;
    int       seen;
} note_t;

static void note_value(void *arg)
{
    note_t *note = arg;

    note->seen = *note->value;
}

/* The messages that were never started are no part of what the stream waits
 * for. */
static void test_free_mixed(void)
{
    int value   = -1;
    int out     = mpix_test.rank;
    note_t note = {&value, -2};
    MPI_Request requests[3];
    MPIX_Queue queue;

    MPIX_OK(MPIX_Create_queue(mpix_test.stream, &queue));
    MPIX_OK(MPIX_Enqueue_recv(&value, 1, MPI_INT, mpix_test.left, TAG, queue,
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_start(queue));
    MPIX_OK(MPIX_Enqueue_wait(queue));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, note_value, &note));
    MPIX_OK(MPIX_Enqueue_send(&out, 1, MPI_INT, mpix_test.right, TAG, queue,
                              &requests[1]));
    MPIX_OK(MPIX_Enqueue_send(&out, 1, MPI_INT, mpix_test.right, TAG, queue,
                              &requests[2]));
    MPIX_OK(MPIX_Free_queue(queue));

    MPI_Barrier(MPI_COMM_WORLD);
    send_int(&out);
    MPIX_OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
    MPIX_CHECK(note.seen == mpix_test.left, "the stream has seen %d",
               note.seen);
}

/* A program of HPE's form: the queue goes as soon as the requests are complete,
 * and then the stream, before the stream has come to the wait, or to the
 * start. */
static void test_free_early(void)
{
    static int gates[2]; /* Streams look at them later */
    int i, value;
    MPI_Request requests[2];
    MPIX_Queue queue, other;
    void *stream;

    for (i = 0; i < 2; ++i) {
        value = -1;
        MPIX_OK(mpix_test_stream(&stream));
        MPIX_OK(MPIX_Create_queue(stream, &queue));
        MPIX_IS(MPI_ERR_PENDING, MPIX_Host_stream_free(&stream));
        if (i == 0) {
            MPIX_OK(MPIX_Host_stream_launch(stream, mpix_test_hold,
                                            &gates[i]));
        }
        MPIX_OK(MPIX_Enqueue_recv(&value, 1, MPI_INT, mpix_test.left, TAG,
                                  queue, &requests[0]));
        MPIX_OK(MPIX_Enqueue_send(&mpix_test.rank, 1, MPI_INT, mpix_test.right,
                                  TAG, queue, &requests[1]));
        MPIX_OK(MPIX_Enqueue_start(queue));
        if (i == 1) {
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            MPIX_OK(MPIX_Host_stream_launch(stream, mpix_test_hold,
                                            &gates[i]));
        }
        MPIX_OK(MPIX_Enqueue_wait(queue));
        MPIX_IS(MPI_ERR_PENDING, MPIX_Host_stream_free(&stream));
        MPIX_OK(MPIX_Create_queue(stream, &other));
        MPIX_OK(MPIX_Free_queue(queue));
        MPIX_IS(MPI_ERR_ARG, MPIX_Enqueue_start(queue));
        MPIX_IS(MPI_ERR_PENDING, MPIX_Host_stream_free(&stream));
        MPIX_OK(MPIX_Free_queue(other));
        MPIX_OK(MPIX_Host_stream_free(&stream));
        __atomic_store_n(&gates[i], 1, __ATOMIC_RELEASE);
        MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        MPIX_CHECK(value == mpix_test.left, "%d", value);
    }
}

/* Uses of matched requests that are under way go on, too, and the requests are
 * used on another queue then. */
static void test_free_matched(void)
{
    mpix_test_msg_t send, recv;
    MPI_Request requests[2];
    MPIX_Queue queue;
    int go = 0;

    mpix_test_send_init(&send, COUNT, mpix_test.right, TAG, 1);
    mpix_test_recv_init(&recv, COUNT, mpix_test.left, TAG, 1);
    mpix_test_match(&send, 1, &recv, 1);
    requests[0] = send.request;
    requests[1] = recv.request;

    MPIX_OK(MPIX_Queue_init(mpix_test.queue_type, mpix_test.stream, &queue));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold, &go));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_fill, &send));
    MPIX_OK(MPIX_Enqueue_startall(queue, 2, requests));
    MPIX_OK(MPIX_Enqueue_waitall(queue, 2, requests));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_verify, &recv));
    MPIX_OK(MPIX_Queue_free(&queue));
    MPIX_CHECK(queue == MPIX_QUEUE_NULL, "the queue is still there");
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));

    mpix_test_run(&send, 1, &recv, 1);
    mpix_test_msg_free(&send);
    mpix_test_msg_free(&recv);
}

/* Entries of a folder of /proc/self. */
static int count_entries(const char *path)
{
    DIR *dir  = opendir(path);
    int count = 0;

    while (readdir(dir) != NULL) {
        ++count;
    }
    closedir(dir);
    return count;
}

/* What a process has that could leak. */
typedef struct resources {
    int    files;
    int    threads;
    size_t bytes;
} resources_t;

static resources_t get_resources(void)
{
    resources_t now = {
        .files   = count_entries("/proc/self/fd"),
        .threads = count_entries("/proc/self/task"),
        .bytes   = mallinfo2().uordblks
    };

    return now;
}

/* 10,000 queues come and go, of either kind. Those of the first round are what
 * the library keeps. */
static void test_many_queues(void)
{
    resources_t first = {0}, last;
    MPIX_Queue queues[MANY];
    MPI_Request requests[2];
    int i, round, value;

    for (round = 0; round < 50; ++round) {
        for (i = 0; i < MANY; ++i) {
            if ((i % 2) == 0) {
                MPIX_OK(MPIX_Create_queue(mpix_test.stream, &queues[i]));
            } else {
                MPIX_OK(MPIX_Queue_init(mpix_test.queue_type, mpix_test.stream,
                                        &queues[i]));
            }
        }
        MPIX_OK(MPIX_Enqueue_recv(&value, 1, MPI_INT, mpix_test.left, TAG,
                                  queues[round], &requests[0]));
        MPIX_OK(MPIX_Enqueue_send(&round, 1, MPI_INT, mpix_test.right, TAG,
                                  queues[round], &requests[1]));
        MPIX_OK(MPIX_Enqueue_start(queues[round]));
        MPIX_OK(MPIX_Enqueue_wait(queues[round]));
        MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        MPIX_CHECK(value == round, "%d instead of %d", value, round);
        for (i = 0; i < MANY; ++i) { /* One may be under way */
            MPIX_OK(MPIX_Free_queue(queues[i]));
        }
        MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
        if (round == 0) {
            first = get_resources();
        }
    }

    last = get_resources();
    MPIX_CHECK((last.files == first.files) && (last.threads == first.threads) &&
               (last.bytes <= first.bytes + LEAK_MAX),
               "%d files, %d threads, %zu bytes became %d, %d, %zu",
               first.files, first.threads, first.bytes, last.files,
               last.threads, last.bytes);
}

/* A program that drops its requests: so many exchanges of BURST messages. */
static void drop_requests(int rounds)
{
    static int out[BURST], in[BURST];
    MPI_Request request;
    int i, round;

    for (round = 0; round < rounds; ++round) {
        for (i = 0; i < BURST; ++i) {
            MPIX_OK(MPIX_Enqueue_recv(&in[i], 1, MPI_INT, mpix_test.left,
                                      TAG + i, MPI_COMM_WORLD, mpix_test.queue,
                                      &request));
            MPIX_OK(MPIX_Enqueue_send(&out[i], 1, MPI_INT, mpix_test.right,
                                      TAG + i, MPI_COMM_WORLD, mpix_test.queue,
                                      &request));
        }
        mpix_test_once_start();
        mpix_test_once_wait();
        if ((round % 8) == 7) {
            mpix_test_queue_wait();
        }
    }
}

/* The first round is what the library keeps. What is over for queues only goes
 * when the next message is enqueued: one is before each look. A request that is
 * waited for late still has its status. */
static void test_dropped(void)
{
    mpix_test_msg_t send, recv;
    resources_t first, last;
    MPI_Status status;

    mpix_test_msg_init(&send, COUNT, mpix_test.rank, mpix_test.right, 1);
    mpix_test_msg_init(&recv, COUNT, mpix_test.left, mpix_test.rank, 1);
    drop_requests(17000 / (2 * BURST) + 1);
    mpix_test_queue_wait();
    mpix_test_once_recv(&recv, is_only() ? mpix_test.left : MPI_ANY_SOURCE, TAG,
                        MPI_COMM_WORLD);
    mpix_test_once_send(&send, TAG, MPI_COMM_WORLD);
    mpix_test_once_start();
    mpix_test_once_wait();
    mpix_test_queue_wait();
    first = get_resources();
    drop_requests(16000 / (2 * BURST));
    MPIX_OK(MPI_Wait(&recv.request, &status));
    mpix_test_status(&status, mpix_test.left, TAG, COUNT);
    MPIX_OK(MPI_Wait(&send.request, MPI_STATUS_IGNORE));
    mpix_test_msg_drop(&send);
    mpix_test_msg_drop(&recv);

    drop_requests(84000 / (2 * BURST));
    mpix_test_queue_wait();
    drop_requests(1);
    mpix_test_queue_wait();
    last = get_resources();
    MPIX_CHECK(last.bytes <= first.bytes + DROP_MAX,
               "%zu bytes became %zu", first.bytes, last.bytes);
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"free", test_free},
        {"free_mixed", test_free_mixed},
        {"free_early", test_free_early},
        {"free_matched", test_free_matched},
        {"many_queues", test_many_queues},
        {"dropped", test_dropped},
        {NULL, NULL}
    };

    mpix_test_init_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    mpix_test_cases(cases, argc, argv);
    return mpix_test_end("mpix_keep");
}
