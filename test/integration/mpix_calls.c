/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_calls.c - every call of the interface, made by two threads at once, each
 * with its own communicator, stream, queue and requests; a group of threads and
 * an event are shared. The first use of the library is theirs, too. For the
 * thread sanitizer; without it this tells lost messages and deadlocks.
 */
#include "mpix_test.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define THREADS 2
#define ROUNDS  10
#define USES    5
#define WORDS   50

/* Of a thread: the checks of mpix_test.h are for one thread alone */
#define CALL(_caller, _call) \
    check(_caller, (_call) == MPI_SUCCESS, #_call, __LINE__)


/* One thread's; 'failed' is read by the main thread after it has ended. */
typedef struct caller {
    pthread_t       thread;
    int             index;
    MPI_Comm        comm;
    MPIX_Host_group group;  /* Shared */
    MPIX_Host_event passed; /* Shared; was recorded */
    void            *stream;
    MPIX_Queue      queue;
    int             failed;
} caller_t;


static void check(caller_t *caller, int ok, const char *what, int line)
{
    if (!ok && (caller->failed++ == 0)) {
        printf("FAILED rank %d, thread %d, line %d: %s\n", mpix_test.rank,
               caller->index, line, what);
    }
}

/* Own and shared groups, and a stream with a thread of its own, in turn. */
static void open_stream(caller_t *caller, int round, MPIX_Host_group *group)
{
    int least, greatest;

    *group = MPIX_HOST_GROUP_NULL;
    CALL(caller, MPIX_Host_priority_range(&least, &greatest));
    if ((round % 3) == 0) {
        CALL(caller, MPIX_Host_stream_create(&caller->stream));
    } else if ((round % 3) == 1) {
        CALL(caller, MPIX_Host_stream_create_on(caller->group, least,
                                                &caller->stream));
    } else {
        CALL(caller, MPIX_Host_group_create(1, 0, NULL, group));
        CALL(caller, MPIX_Host_stream_create_on(*group, greatest,
                                                &caller->stream));
    }
    CALL(caller, MPIX_Queue_init(MPIX_QUEUE_HOST, caller->stream,
                                 &caller->queue));
}

static void close_stream(caller_t *caller, MPIX_Host_group *group)
{
    CALL(caller, MPIX_Queue_free(&caller->queue));
    CALL(caller, MPIX_Host_stream_free(&caller->stream));
    if (*group != MPIX_HOST_GROUP_NULL) {
        CALL(caller, MPIX_Host_group_free(group));
    }
}

static void run_events(caller_t *caller)
{
    MPIX_Host_event event;
    double seconds;
    int flag;

    CALL(caller, MPIX_Host_event_create(&event));
    CALL(caller, MPIX_Host_event_record(caller->stream, event));
    CALL(caller, MPIX_Host_event_wait(caller->stream, caller->passed));
    CALL(caller, MPIX_Host_event_query(event, &flag));
    CALL(caller, MPIX_Host_event_synchronize(event));
    CALL(caller, MPIX_Host_event_elapsed(caller->passed, event, &seconds));
    CALL(caller, MPIX_Host_event_query(caller->passed, &flag));
    check(caller, flag, "the shared event", __LINE__);
    CALL(caller, MPIX_Host_stream_synchronize(caller->stream));
    CALL(caller, MPIX_Host_event_free(&event));
}

static void run_reports(caller_t *caller)
{
    FILE *null = fopen("/dev/null", "w");
    MPIX_Queue_stats stats;

    CALL(caller, MPIX_Queue_get_stats(&stats));
    check(caller, stats.starts > 0, "statistics", __LINE__);
    if (null != NULL) {
        CALL(caller, MPIX_Queue_print_stats(null));
        fclose(null);
    }
}

/* Blocking calls and those that are asked, in turn. */
static void match(caller_t *caller, int round, MPI_Request *requests)
{
    int flags[2] = {0, 0};
    int i;

    if ((round % 2) == 0) {
        CALL(caller, MPIX_Imatch(&requests[0]));
        CALL(caller, MPIX_Match(&requests[1], MPI_STATUS_IGNORE));
    } else {
        CALL(caller, MPIX_Imatchall(2, requests));
    }
    for (i = 0; (i < 2) && (caller->failed == 0);) {
        CALL(caller, MPIX_Is_matched(&requests[i], &flags[i],
                                     MPI_STATUS_IGNORE));
        i += (flags[i] != 0);
    }
}

static void use(caller_t *caller, MPI_Request *requests, mpix_test_msg_t *send,
                mpix_test_msg_t *recv)
{
    int i;

    for (i = 0; (i < USES) && (caller->failed == 0); ++i) {
        CALL(caller, MPIX_Host_stream_launch(caller->stream, mpix_test_fill,
                                             send));
        if (i % 2) {
            CALL(caller, MPIX_Enqueue_start_req(caller->queue, &requests[0]));
            CALL(caller, MPIX_Enqueue_start_req(caller->queue, &requests[1]));
            CALL(caller, MPIX_Enqueue_wait_req(caller->queue, &requests[1]));
            CALL(caller, MPIX_Enqueue_wait_req(caller->queue, &requests[0]));
        } else {
            CALL(caller, MPIX_Enqueue_startall(caller->queue, 2, requests));
            CALL(caller, MPIX_Enqueue_waitall(caller->queue, 2, requests));
        }
        CALL(caller, MPIX_Host_stream_launch(caller->stream, mpix_test_verify,
                                             recv));
    }
    CALL(caller, MPIX_Queue_wait(caller->queue));
    CALL(caller, MPIX_Host_stream_synchronize(caller->stream));

    /* By the hosts, whose queue is one for all threads */
    for (i = 0; (i < USES) && (caller->failed == 0); ++i) {
        mpix_test_fill(send);
        CALL(caller, MPI_Startall(2, requests));
        if (i % 2) {
            CALL(caller, MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        } else {
            CALL(caller, MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
            CALL(caller, MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
        }
        mpix_test_verify(recv);
    }
}

static void run_messages(caller_t *caller, int round)
{
    uint64_t *out, *in;
    mpix_test_msg_t send, recv;
    MPI_Request requests[2];

    mpix_test_msg_init(&send, WORDS, mpix_test.rank, mpix_test.right, round);
    mpix_test_msg_init(&recv, WORDS, mpix_test.left, mpix_test.rank, round);
    CALL(caller, MPI_Send_init(send.words, WORDS, MPI_UINT64_T,
                               mpix_test.right, 1, caller->comm,
                               &requests[0]));
    CALL(caller, MPI_Recv_init(recv.words, WORDS, MPI_UINT64_T, mpix_test.left,
                               1, caller->comm, &requests[1]));
    CALL(caller, MPI_Alloc_mem(sizeof(*out), MPI_INFO_NULL, &out));
    CALL(caller, MPI_Alloc_mem(sizeof(*in), MPI_INFO_NULL, &in));
    match(caller, round, requests);
    use(caller, requests, &send, &recv);
    check(caller, recv.wrong == 0, "data", __LINE__);
    CALL(caller, MPI_Request_free(&requests[0]));
    CALL(caller, MPI_Request_free(&requests[1]));
    CALL(caller, MPI_Free_mem(in));
    CALL(caller, MPI_Free_mem(out));
    recv.wrong = 0; /* Counted */
    mpix_test_msg_free(&send);
    mpix_test_msg_free(&recv);
}

static void *run(void *arg)
{
    caller_t *caller = arg;
    MPIX_Host_group group;
    int round;

    for (round = 0; (round < ROUNDS) && (caller->failed == 0); ++round) {
        open_stream(caller, round, &group);
        if (caller->failed == 0) {
            run_messages(caller, round);
            run_events(caller);
            run_reports(caller);
            close_stream(caller, &group);
        }
    }
    if (caller->failed > 0) {
        MPI_Abort(MPI_COMM_WORLD, 1); /* Others would wait */
    }
    return NULL;
}

int main(int argc, char **argv)
{
    caller_t callers[THREADS];
    MPIX_Host_group group;
    MPIX_Host_event passed;
    void *stream;
    int i, level;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    if (level < MPI_THREAD_MULTIPLE) {
        printf("skipped: MPI has no MPI_THREAD_MULTIPLE here\n");
        MPI_Finalize();
        return 77;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &mpix_test.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &mpix_test.size);
    mpix_test.right = (mpix_test.rank + 1) % mpix_test.size;
    mpix_test.left  = (mpix_test.rank + mpix_test.size - 1) % mpix_test.size;

    MPIX_OK(MPIX_Host_group_create(2, 0, NULL, &group));
    MPIX_OK(MPIX_Host_stream_create_on(group, 0, &stream));
    MPIX_OK(MPIX_Host_event_create(&passed));
    MPIX_OK(MPIX_Host_event_record(stream, passed));
    MPIX_OK(MPIX_Host_stream_synchronize(stream));
    for (i = 0; i < THREADS; ++i) {
        memset(&callers[i], 0, sizeof(callers[i]));
        callers[i].index  = i;
        callers[i].group  = group;
        callers[i].passed = passed;
        MPIX_OK(MPI_Comm_dup(MPI_COMM_WORLD, &callers[i].comm));
    }
    for (i = 0; i < THREADS; ++i) {
        pthread_create(&callers[i].thread, NULL, run, &callers[i]);
    }
    for (i = 0; i < THREADS; ++i) {
        pthread_join(callers[i].thread, NULL);
        MPIX_CHECK(callers[i].failed == 0, "thread %d", i);
        MPIX_OK(MPI_Comm_free(&callers[i].comm));
    }
    MPIX_OK(MPIX_Host_event_free(&passed));
    MPIX_OK(MPIX_Host_stream_free(&stream));
    MPIX_OK(MPIX_Host_group_free(&group));
    MPI_Finalize();
    printf("mpix_calls: rank %d, %d checks failed\n", mpix_test.rank,
           mpix_test.failed);
    return (mpix_test.failed == 0) ? 0 : 1;
}
