/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_refuse.c - misuse gives an error, and changes nothing.
 */
#include "mpix_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG 9

/* Failures where MPI cannot count them */
static int without_mpi;

/* A pair of this rank with its neighbours that is matched and works. */
static mpix_test_msg_t good_send, good_recv;


static void make_good_pair(void)
{
    mpix_test_send_init(&good_send, 16, mpix_test.right, TAG, 1);
    mpix_test_recv_init(&good_recv, 16, mpix_test.left, TAG, 1);
    mpix_test_match(&good_send, 1, &good_recv, 1);
}

/* Nothing that was refused has had an effect on it. */
static void use_good_pair(void)
{
    mpix_test_run(&good_send, 1, &good_recv, 1);
}

/* The start of the good send is enqueued, its wait is the caller's. */
static void start_good_send(void)
{
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_fill,
                                    &good_send));
    MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &good_send.request));
}

static void refuse_match(int expected, MPI_Request *request)
{
    MPIX_IS(expected, MPIX_Match(request, MPI_STATUS_IGNORE));
    MPIX_IS(expected, MPIX_Imatch(request));
    MPIX_IS(expected, MPIX_Matchall(1, request, MPI_STATUSES_IGNORE));
    MPIX_IS(expected, MPIX_Imatchall(1, request));
}

static void test_wildcards(void)
{
    MPI_Request request;
    int word;

    MPI_Recv_init(&word, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD,
                  &request);
    refuse_match(MPI_ERR_RANK, &request);
    MPIX_OK(MPI_Request_free(&request));

    MPI_Recv_init(&word, 1, MPI_INT, mpix_test.left, MPI_ANY_TAG,
                  MPI_COMM_WORLD, &request);
    refuse_match(MPI_ERR_TAG, &request);
    MPIX_OK(MPI_Request_free(&request));
}

static void test_kinds(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int word = 0, other = 0;

    MPI_Ssend_init(&word, 1, MPI_INT, mpix_test.right, TAG, MPI_COMM_WORLD,
                   &request);
    refuse_match(MPI_ERR_REQUEST, &request);
    MPIX_OK(MPI_Request_free(&request));

    MPI_Bsend_init(&word, 1, MPI_INT, mpix_test.right, TAG, MPI_COMM_WORLD,
                   &request);
    refuse_match(MPI_ERR_REQUEST, &request);
    MPIX_OK(MPI_Request_free(&request));

    /* MPI_REQUEST_NULL: an array passes it over */
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Match(&request, MPI_STATUS_IGNORE));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Imatch(&request));
    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Enqueue_start_req(mpix_test.queue, &request));

    MPI_Irecv(&word, 1, MPI_INT, mpix_test.rank, TAG, MPI_COMM_WORLD, &request);
    refuse_match(MPI_ERR_REQUEST, &request);
    MPI_Send(&other, 1, MPI_INT, mpix_test.rank, TAG, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* A receive that MPI_Start has made active. */
static void test_active(void)
{
    MPI_Request request;
    int word, mine = mpix_test.rank;

    MPI_Recv_init(&word, 1, MPI_INT, mpix_test.rank, TAG, MPI_COMM_WORLD,
                  &request);
    MPIX_OK(MPI_Start(&request));
    refuse_match(MPI_ERR_REQUEST, &request);
    MPI_Send(&mine, 1, MPI_INT, mpix_test.rank, TAG, MPI_COMM_WORLD);
    MPIX_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPIX_CHECK(word == mine, "%d", word);
    MPIX_OK(MPI_Request_free(&request));
}

/* MPI_IN_PLACE is for collectives. */
static void test_in_place(void)
{
    MPI_Request request;

    MPI_Send_init(MPI_IN_PLACE, 2, MPI_INT, mpix_test.right, TAG,
                  MPI_COMM_WORLD, &request);
    refuse_match(MPI_ERR_BUFFER, &request);
    MPIX_OK(MPI_Request_free(&request));
}

/* What the statuses tell if the check finds an error: nothing is matched. */
static void test_statuses(void)
{
    mpix_test_msg_t recv;
    MPI_Request requests[4];
    MPI_Status statuses[4];
    int i, word, flag = 1;

    mpix_test_recv_init(&recv, 4, mpix_test.left, TAG + 3, 1);
    requests[0] = recv.request;
    MPI_Recv_init(&word, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD,
                  &requests[1]);
    requests[2] = MPI_REQUEST_NULL;
    requests[3] = good_send.request;

    memset(statuses, 0x5a, sizeof(statuses));
    MPIX_IS(MPI_ERR_RANK, MPIX_Matchall(4, requests, statuses));
    MPIX_IS(MPI_ERR_PENDING, statuses[0].MPI_ERROR);
    MPIX_IS(MPI_ERR_RANK, statuses[1].MPI_ERROR);
    MPIX_IS(MPI_ERR_PENDING, statuses[2].MPI_ERROR);
    MPIX_IS(MPI_ERR_REQUEST, statuses[3].MPI_ERROR);
    for (i = 0; i < 4; ++i) {
        MPIX_CHECK(statuses[i].MPI_SOURCE == MPI_ANY_SOURCE, "%d",
                   statuses[i].MPI_SOURCE);
    }
    MPIX_OK(MPIX_Is_matched(&recv.request, &flag, MPI_STATUS_IGNORE));
    MPIX_CHECK(!flag, "nothing was given to match");

    MPIX_OK(MPI_Request_free(&requests[1]));
    recv.actual = 0;
    mpix_test_msg_free(&recv);
    use_good_pair();
}

/* A send that does not fit, seen by both sides; the requests are of no use
 * then, and others are. */
static void test_truncation(void)
{
    MPI_Request requests[2];
    mpix_test_msg_t send, recv;
    MPI_Status statuses[2];

    mpix_test_send_init(&send, 20, mpix_test.right, TAG, 1);
    mpix_test_recv_init(&recv, 19, mpix_test.left, TAG, 1);
    requests[0] = send.request;
    requests[1] = recv.request;

    MPIX_IS(MPI_ERR_TRUNCATE, MPIX_Matchall(2, requests, statuses));
    MPIX_IS(MPI_ERR_TRUNCATE, statuses[0].MPI_ERROR);
    MPIX_IS(MPI_ERR_TRUNCATE, statuses[1].MPI_ERROR);
    refuse_match(MPI_ERR_REQUEST, &send.request);
    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Enqueue_start_req(mpix_test.queue, &recv.request));
    MPIX_IS(MPI_ERR_REQUEST, MPI_Start(&send.request));

    recv.actual = 0; /* Nothing was written */
    mpix_test_verify(&recv);
    mpix_test_msg_free(&send);
    mpix_test_msg_free(&recv);
    use_good_pair();
}

static void test_match_twice(void)
{
    MPI_Request twice[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    mpix_test_msg_t recv;
    int flag = 1;

    refuse_match(MPI_ERR_REQUEST, &good_send.request);

    /* One request twice, and a good one with a matched one: all or none */
    mpix_test_recv_init(&recv, 4, mpix_test.left, TAG + 1, 1);
    twice[0] = recv.request;
    twice[1] = recv.request;
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Imatchall(2, twice));
    twice[1] = good_recv.request;
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Imatchall(2, twice));
    MPIX_OK(MPIX_Is_matched(&recv.request, &flag, MPI_STATUS_IGNORE));
    MPIX_CHECK(!flag, "nothing was given to match");

    MPIX_IS(MPI_ERR_COUNT, MPIX_Matchall(-1, twice, MPI_STATUSES_IGNORE));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Match(NULL, MPI_STATUS_IGNORE));
    MPIX_IS(MPI_ERR_ARG, MPIX_Is_matched(NULL, &flag, MPI_STATUS_IGNORE));
    MPIX_OK(MPIX_Matchall(0, NULL, MPI_STATUSES_IGNORE));

    /* Still MPI's own */
    MPIX_OK(MPI_Start(&recv.request));
    MPIX_OK(MPI_Cancel(&recv.request));
    MPIX_OK(MPI_Wait(&recv.request, MPI_STATUS_IGNORE));
    recv.actual = 0;
    mpix_test_msg_free(&recv);
    use_good_pair();
}

static void test_start_twice(void)
{
    MPI_Request requests[2] = {good_recv.request, good_send.request};

    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Enqueue_wait_req(mpix_test.queue, &good_send.request));

    /* The receive is not started by the calls that are refused */
    start_good_send();
    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Enqueue_start_req(mpix_test.queue, &good_send.request));
    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Enqueue_startall(mpix_test.queue, 2, requests));
    requests[1] = requests[0];
    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Enqueue_startall(mpix_test.queue, 2, requests));
    requests[1] = good_send.request;
    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Enqueue_waitall(mpix_test.queue, 2, requests));

    MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &good_recv.request));
    MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 2, requests));
    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Enqueue_wait_req(mpix_test.queue, &good_recv.request));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_verify,
                                    &good_recv));
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
    use_good_pair();
}

static void test_unmatched(void)
{
    MPI_Request requests[2] = {good_send.request, MPI_REQUEST_NULL};
    mpix_test_msg_t send;

    mpix_test_send_init(&send, 4, mpix_test.right, TAG + 2, 1);
    requests[1] = send.request;
    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Enqueue_start_req(mpix_test.queue, &send.request));
    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Enqueue_startall(mpix_test.queue, 2, requests));
    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Enqueue_wait_req(mpix_test.queue, &send.request));
    MPIX_IS(MPI_ERR_COUNT,
            MPIX_Enqueue_startall(mpix_test.queue, -1, requests));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Enqueue_startall(mpix_test.queue, 1, NULL));
    mpix_test_msg_free(&send);
    use_good_pair();
}

static void test_other_queue(void)
{
    MPIX_Queue queue;
    void *stream;

    MPIX_OK(MPIX_Host_stream_create(&stream));
    MPIX_OK(MPIX_Queue_init(MPIX_QUEUE_HOST, stream, &queue));

    start_good_send();
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Enqueue_wait_req(queue, &good_send.request));
    MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &good_recv.request));
    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Enqueue_waitall(queue, 1, &good_recv.request));
    MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &good_recv.request));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_verify,
                                    &good_recv));
    MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &good_send.request));
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));

    MPIX_OK(MPIX_Queue_free(&queue));
    MPIX_CHECK(queue == MPIX_QUEUE_NULL, "%p", (void*)queue);
    MPIX_OK(MPIX_Host_stream_free(&stream));
    use_good_pair();
}

static void test_handles(void)
{
    char garbage[64];
    MPIX_Queue queue = MPIX_QUEUE_NULL;
    void *stream     = garbage;

    memset(garbage, 0x5a, sizeof(garbage));
    MPIX_IS(MPI_ERR_ARG, MPIX_Queue_init(MPIX_QUEUE_HOST, garbage, &queue));
    MPIX_IS(MPI_ERR_ARG, MPIX_Queue_init(MPIX_QUEUE_HOST, NULL, &queue));
    MPIX_IS(MPI_ERR_ARG, MPIX_Queue_init(MPIX_QUEUE_HOST, (void*)8, &queue));
    MPIX_IS(MPI_ERR_ARG, MPIX_Queue_init(17, mpix_test.stream, &queue));
    MPIX_IS(MPI_ERR_ARG, MPIX_Queue_init(mpix_test.queue_type, mpix_test.stream,
                                         NULL));
    if (mpix_test.queue_type == MPIX_QUEUE_HOST) { /* No runtime is there */
        MPIX_IS(MPI_ERR_ARG, MPIX_Queue_init(MPIX_QUEUE_HIP, mpix_test.stream,
                                             &queue));
        MPIX_IS(MPI_ERR_ARG, MPIX_Queue_init(MPIX_QUEUE_CUDA, mpix_test.stream,
                                             &queue));
        MPIX_IS(MPI_ERR_UNSUPPORTED_OPERATION,
                MPIX_Queue_init(MPIX_QUEUE_HIP, NULL, &queue));
        MPIX_IS(MPI_ERR_UNSUPPORTED_OPERATION,
                MPIX_Queue_init(MPIX_QUEUE_CUDA, garbage, &queue));
    }
    MPIX_CHECK(queue == MPIX_QUEUE_NULL, "%p", (void*)queue);

    MPIX_IS(MPI_ERR_ARG, MPIX_Queue_free(NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Queue_free(&queue));
    MPIX_IS(MPI_ERR_ARG, MPIX_Queue_wait(MPIX_QUEUE_NULL));
    queue = (MPIX_Queue)garbage;
    MPIX_IS(MPI_ERR_ARG, MPIX_Queue_wait(queue));
    MPIX_IS(MPI_ERR_ARG, MPIX_Queue_free(&queue));
    MPIX_IS(MPI_ERR_ARG, MPIX_Enqueue_start_req(queue, &good_send.request));
    MPIX_IS(MPI_ERR_ARG, MPIX_Enqueue_waitall(queue, 1, &good_send.request));

    MPIX_IS(MPI_ERR_ARG, MPIX_Host_stream_create(NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_stream_free(NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_stream_free(&stream));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_stream_synchronize(stream));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_stream_launch(stream, free, NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_stream_launch(mpix_test.stream, NULL, NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Queue_get_stats(NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Queue_print_stats(NULL));

    /* A handle whose queue is gone */
    MPIX_OK(MPIX_Queue_init(mpix_test.queue_type, mpix_test.stream, &queue));
    stream = queue;
    MPIX_OK(MPIX_Queue_free(&queue));
    queue = stream;
    MPIX_IS(MPI_ERR_ARG, MPIX_Queue_wait(queue));
    use_good_pair();
}

/* Handles of groups and events, and what they are asked to do */
static void test_host_handles(void)
{
    MPIX_Host_group group = MPIX_HOST_GROUP_NULL;
    MPIX_Host_event event = MPIX_HOST_EVENT_NULL;
    void *stream          = mpix_test.stream;
    unsigned cpu          = ~0u;
    double seconds        = 0;
    int flag              = 0;
    int least, greatest;

    MPIX_OK(MPIX_Host_priority_range(&least, &greatest));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_priority_range(NULL, &greatest));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_stream_create_bound(-1, &cpu, &stream));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_stream_create_bound(0, &cpu, &stream));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_stream_create_bound(1, NULL, &stream));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_stream_create_bound(1, &cpu, &stream));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_group_create(-1, 0, NULL, &group));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_group_create(1, -1, &cpu, &group));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_group_create(1, 1, NULL, &group));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_group_create(1, 1, &cpu, &group));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_group_create(1000000, 0, NULL, &group));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_group_create(1, 0, NULL, NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_stream_create_on(group, 0, &stream));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_group_free(&group));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_group_free(NULL));
    MPIX_CHECK((stream == mpix_test.stream) && (group == NULL),
               "a handle has changed");

    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_create(NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_free(NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_free(&event));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_record(stream, event));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_wait(stream, event));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_query(event, &flag));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_synchronize(event));

    /* Never recorded, nor taken for what it is not */
    MPIX_OK(MPIX_Host_event_create(&event));
    MPIX_OK(MPIX_Host_group_create(0, 0, NULL, &group));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_wait(stream, event));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_query(event, &flag));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_synchronize(event));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_elapsed(event, event, &seconds));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_record(event, event));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_record(stream, stream));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_wait(stream, (void*)group));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_stream_create_on(group, least + 1, &stream));
    MPIX_IS(MPI_ERR_ARG,
            MPIX_Host_stream_create_on(group, greatest - 1, &stream));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_stream_create_on(group, 0, NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_stream_create_on((void*)event, 0, &stream));
    MPIX_CHECK(stream == mpix_test.stream, "%p", stream);
    MPIX_OK(MPIX_Host_group_free(&group));
    MPIX_CHECK(group == MPIX_HOST_GROUP_NULL, "%p", (void*)group);
    MPIX_OK(MPIX_Host_event_record(stream, event));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_query(event, NULL));
    MPIX_OK(MPIX_Host_event_synchronize(event));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_elapsed(event, event, NULL));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_event_elapsed(event, NULL, &seconds));
    MPIX_OK(MPIX_Host_event_free(&event));
    MPIX_CHECK(event == MPIX_HOST_EVENT_NULL, "%p", (void*)event);
    use_good_pair();
}

static void test_kernels(void)
{
    static char args[MPIX_HOST_ARGS_MAX + 1];
    void *stream = mpix_test.stream;

    MPIX_IS(MPI_ERR_ARG,
            MPIX_Host_stream_launch_copy(stream, mpix_test_hold, args,
                                         sizeof(args)));
    MPIX_IS(MPI_ERR_ARG,
            MPIX_Host_stream_launch_copy(stream, mpix_test_hold, NULL, 1));
    MPIX_IS(MPI_ERR_ARG, MPIX_Host_stream_launch_copy(stream, NULL, args, 1));
    MPIX_IS(MPI_ERR_ARG,
            MPIX_Host_stream_launch_copy(args, mpix_test_hold, args, 1));
    use_good_pair();
}

/* What is in use is not freed. */
static void test_busy(void)
{
    MPI_Request request = good_send.request;
    void *stream        = mpix_test.stream;
    int released        = 0;
    MPIX_Queue queue;

    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold,
                                    &released));
    start_good_send();
    MPIX_IS(MPI_ERR_PENDING, MPIX_Host_stream_free(&stream));
    MPIX_IS(MPI_ERR_PENDING, MPI_Request_free(&request));
    MPIX_CHECK((stream == mpix_test.stream) && (request == good_send.request),
               "a handle has changed");

    MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &good_recv.request));
    MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &good_recv.request));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_verify,
                                    &good_recv));
    MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &good_send.request));
    MPIX_IS(MPI_ERR_PENDING, MPI_Request_free(&request));

    __atomic_store_n(&released, 1, __ATOMIC_RELEASE);
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
    MPIX_IS(MPI_ERR_PENDING, MPIX_Host_stream_free(&stream)); /* idle, too */
    use_good_pair();

    /* A queue that has had no matched request yet */
    MPIX_OK(MPIX_Host_stream_create(&stream));
    MPIX_OK(MPIX_Create_queue_stream(stream, &queue));
    MPIX_IS(MPI_ERR_PENDING, MPIX_Host_stream_free(&stream));
    MPIX_OK(MPIX_Queue_free(&queue));
    MPIX_OK(MPIX_Host_stream_free(&stream));
}

/* Of a generalized request */
static int query_nothing(void *extra, MPI_Status *status)
{
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int free_nothing(void *extra)
{
    return MPI_SUCCESS;
}

static int cancel_nothing(void *extra, int complete)
{
    return MPI_SUCCESS;
}

static int handler_calls, handler_code;

static void handler(MPI_Comm *comm, int *code, ...)
{
    ++handler_calls;
    handler_code = *code;
}

/* Errors come to the handler of the request's communicator. */
static void test_errhandler(void)
{
    char text[MPI_MAX_ERROR_STRING];
    MPI_Errhandler errhandler;
    MPI_Request request;
    int word, length;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(handler, &errhandler);
    MPI_Comm_set_errhandler(comm, errhandler);

    MPI_Recv_init(&word, 1, MPI_INT, mpix_test.left, MPI_ANY_TAG, comm,
                  &request);
    MPIX_IS(MPI_ERR_TAG, MPIX_Match(&request, MPI_STATUS_IGNORE));
    MPIX_IS(MPI_ERR_TAG, handler_code);
    MPIX_CHECK(handler_calls == 1, "%d calls", handler_calls);
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Enqueue_start_req(mpix_test.queue, &request));
    MPIX_IS(MPI_ERR_REQUEST, handler_code);
    MPIX_CHECK(handler_calls == 2, "%d calls", handler_calls);
    MPIX_OK(MPI_Error_string(handler_code, text, &length));
#ifndef MPICH_VERSION /* It has strings of its own */
    MPIX_CHECK(strstr(text, "receive of 4 bytes (MPI_INT)") != NULL, "\"%s\"",
               text);
#endif

    MPIX_OK(MPI_Request_free(&request));
    MPI_Errhandler_free(&errhandler);
    MPI_Comm_free(&comm);
}

/* An error of this class, whose text has all these words. */
static void check_text(int code, int class, const char *const words[])
{
    char text[MPI_MAX_ERROR_STRING];
    int i;

    if (!mpix_test_text(code, class, text)) {
        return;
    }
    for (i = 0; words[i] != NULL; ++i) {
        MPIX_CHECK(strstr(text, words[i]) != NULL, "no \"%s\" in \"%s\"",
                   words[i], text);
    }
}

/* Texts name the call, which request it is and what is wrong; an earlier code
 * keeps its own. */
static void test_texts(void)
{
    static const char *const matchall[] = {
        "MPIX_Matchall", "requests[2]", "receive of 12 bytes (vector)", "tag 9",
        "MPI_ANY_SOURCE", NULL
    };
    static const char *const startall[] = {
        "MPIX_Enqueue_startall", "requests[1]", "receive of 12 bytes (vector)",
        "not matched (MPIX_Matchall first)", NULL
    };
    static const char *const twice[] = {
        "MPIX_Enqueue_startall", "requests[2]", "send of 128 bytes", "to rank",
        "twice", NULL
    };
    static const char *const wait[] = {
        "MPIX_Enqueue_wait_req", "the request", "send of 128 bytes",
        "not started", NULL
    };
    static const char *const foreign[] = {
        "MPIX_Matchall", "requests[1]", "not made by", NULL
    };
    static const char *const cancel[] = {
        "MPI_Cancel", "send of 128 bytes", "cancelled", NULL
    };
    static const char *const queue[] = {"MPIX_Queue_wait", "no live queue",
                                        NULL};
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, request;
    int codes[7], words[9];
    MPI_Status statuses[3];
    MPI_Datatype type;

    MPI_Type_vector(3, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Recv_init(words, 1, type, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD,
                  &request);
    MPI_Type_free(&type);

    requests[2] = request;
    codes[0]    = MPIX_Matchall(3, requests, statuses);
    requests[0] = good_send.request;
    requests[1] = request;
    codes[1]    = MPIX_Enqueue_startall(mpix_test.queue, 3, requests);
    requests[1] = MPI_REQUEST_NULL;
    requests[2] = good_send.request;
    codes[2]    = MPIX_Enqueue_startall(mpix_test.queue, 3, requests);
    codes[3]    = MPIX_Enqueue_wait_req(mpix_test.queue, &good_send.request);
    MPI_Grequest_start(query_nothing, free_nothing, cancel_nothing, NULL,
                       &requests[1]);
    requests[0] = MPI_REQUEST_NULL;
    codes[4]    = MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE);
    codes[5]    = MPI_Cancel(&good_send.request);
    codes[6]    = MPIX_Queue_wait(MPIX_QUEUE_NULL);

    check_text(codes[0], MPI_ERR_RANK, matchall);
    check_text(statuses[2].MPI_ERROR, MPI_ERR_RANK, matchall);
    check_text(codes[1], MPI_ERR_REQUEST, startall);
    check_text(codes[2], MPI_ERR_REQUEST, twice);
    check_text(codes[3], MPI_ERR_REQUEST, wait);
    check_text(codes[4], MPI_ERR_REQUEST, foreign);
    check_text(codes[5], MPI_ERR_REQUEST, cancel);
    check_text(codes[6], MPI_ERR_ARG, queue);
    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Enqueue_start_req(mpix_test.queue, &requests[1]));
    MPIX_OK(MPI_Grequest_complete(requests[1]));
    MPIX_OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
    MPIX_OK(MPI_Request_free(&request));
    use_good_pair();
}

/* What MPI itself refuses leaves no request. */
static void test_ranges(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int word            = 0;

    MPIX_IS(MPI_ERR_RANK, MPI_Send_init(&word, 1, MPI_INT, mpix_test.size, TAG,
                                        MPI_COMM_WORLD, &request));
    MPIX_IS(MPI_ERR_TAG, MPI_Recv_init(&word, 1, MPI_INT, mpix_test.left, -5,
                                       MPI_COMM_WORLD, &request));
    MPIX_IS(MPI_ERR_COUNT, MPI_Send_init(&word, -1, MPI_INT, mpix_test.right,
                                         TAG, MPI_COMM_WORLD, &request));
    MPIX_IS(MPI_ERR_TYPE, MPI_Send_init(&word, 1, MPI_DATATYPE_NULL,
                                        mpix_test.right, TAG, MPI_COMM_WORLD,
                                        &request));
    MPIX_CHECK(request == MPI_REQUEST_NULL, "a handle was set");
}

/* A request that was freed, whose handle the program still has. */
static void test_freed(void)
{
    mpix_test_msg_t recv;
    MPI_Request request;

    mpix_test_recv_init(&recv, 4, mpix_test.left, TAG + 4, 1);
    request = recv.request;
    recv.actual = 0;
    mpix_test_msg_free(&recv);
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Imatch(&request));
    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Enqueue_start_req(mpix_test.queue, &request));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Enqueue_wait_req(mpix_test.queue, &request));
    use_good_pair();
}

/* More errors than MPI keeps texts of: the class stays, and no code is lost. */
static void test_many_errors(void)
{
    int i, first = 0, code, most = 0;

    for (i = 0; i < 1000; ++i) {
        code  = MPIX_Imatch(NULL);
        first = (i == 0) ? code : first;
        most  = (code > most) ? code : most;
        if (code == MPI_SUCCESS) {
            MPIX_CHECK(0, "no error");
        }
    }
    MPIX_IS(MPI_ERR_REQUEST, code);
    MPIX_CHECK((most - first) < 500, "codes from %d to %d", first, most);
}

/* Without MPI: a plain class, as there are no other codes. */
static void check_without_mpi(const char *when)
{
    MPI_Request request = MPI_REQUEST_NULL, start = good_send.request;
    MPIX_Queue queue    = MPIX_QUEUE_NULL;
    void *stream        = NULL;
    int ok, flag;

    ok = (MPIX_Host_stream_create(&stream) == MPI_SUCCESS) &&
         (MPIX_Queue_init(MPIX_QUEUE_HOST, stream, &queue) == MPI_ERR_OTHER) &&
         (queue == MPIX_QUEUE_NULL) &&
         (MPIX_Matchall(1, &request, MPI_STATUSES_IGNORE) == MPI_ERR_OTHER) &&
         (MPIX_Imatchall(1, &start) == MPI_ERR_OTHER) &&
         (MPIX_Is_matched(&start, &flag, MPI_STATUS_IGNORE) == MPI_ERR_OTHER) &&
         (MPIX_Enqueue_startall(queue, 1, &start) == MPI_ERR_ARG) &&
         (MPIX_Queue_wait(queue) == MPI_ERR_ARG) &&
         (MPIX_Host_stream_free(&stream) == MPI_SUCCESS);
    if (!ok) {
        printf("FAILED: calls %s\n", when);
        ++without_mpi;
    }
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"wildcards", test_wildcards},
        {"kinds", test_kinds},
        {"active", test_active},
        {"in_place", test_in_place},
        {"statuses", test_statuses},
        {"truncation", test_truncation},
        {"match_twice", test_match_twice},
        {"start_twice", test_start_twice},
        {"unmatched", test_unmatched},
        {"other_queue", test_other_queue},
        {"handles", test_handles},
        {"host_handles", test_host_handles},
        {"kernels", test_kernels},
        {"busy", test_busy},
        {"errhandler", test_errhandler},
        {"texts", test_texts},
        {"ranges", test_ranges},
        {"freed", test_freed},
        {"many_errors", test_many_errors},
        {NULL}
    };
    int result;

    check_without_mpi("before MPI_Init");
    mpix_test_init(&argc, &argv);
    mpix_test.failed += without_mpi;
    make_good_pair();
    mpix_test_cases(cases, argc, argv);
    mpix_test_msg_free(&good_send);
    mpix_test_msg_free(&good_recv);
    result = mpix_test_end("mpix_refuse");
    without_mpi = 0;
    check_without_mpi("after MPI_Finalize");
    return (without_mpi > 0) ? 1 : result;
}
