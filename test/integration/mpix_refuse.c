/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_refuse.c - misuse gives an error, and changes nothing.
 */
#include "mpix_test.h"

#include <stdlib.h>
#include <string.h>

#define TAG 9

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
    MPIX_CHECK((statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE) &&
               (statuses[1].MPI_ERROR == MPI_ERR_TRUNCATE), "%d %d",
               statuses[0].MPI_ERROR, statuses[1].MPI_ERROR);
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
    MPIX_IS(MPI_ERR_ARG, MPIX_Queue_init(MPIX_QUEUE_HOST, mpix_test.stream,
                                         NULL));
    MPIX_IS(MPI_ERR_UNSUPPORTED_OPERATION,
            MPIX_Queue_init(MPIX_QUEUE_HIP, mpix_test.stream, &queue));
    MPIX_IS(MPI_ERR_UNSUPPORTED_OPERATION,
            MPIX_Queue_init(MPIX_QUEUE_CUDA, mpix_test.stream, &queue));
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
    MPIX_OK(MPIX_Queue_init(MPIX_QUEUE_HOST, mpix_test.stream, &queue));
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
    MPIX_Queue queue    = mpix_test.queue;
    int released        = 0;

    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold,
                                    &released));
    start_good_send();
    MPIX_IS(MPI_ERR_PENDING, MPIX_Queue_free(&queue));
    MPIX_IS(MPI_ERR_PENDING, MPIX_Host_stream_free(&stream));
    MPIX_IS(MPI_ERR_PENDING, MPI_Request_free(&request));
    MPIX_CHECK((queue == mpix_test.queue) && (stream == mpix_test.stream) &&
               (request == good_send.request), "a handle has changed");

    MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &good_recv.request));
    MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &good_recv.request));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_verify,
                                    &good_recv));
    MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &good_send.request));
    MPIX_IS(MPI_ERR_PENDING, MPIX_Queue_free(&queue));
    MPIX_IS(MPI_ERR_PENDING, MPI_Request_free(&request));

    __atomic_store_n(&released, 1, __ATOMIC_RELEASE);
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
    use_good_pair();
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
    MPIX_CHECK((handler_calls == 1) && (handler_code == MPI_ERR_TAG),
               "%d calls, code %d", handler_calls, handler_code);
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Enqueue_start_req(mpix_test.queue, &request));
    MPIX_CHECK((handler_calls == 2) && (handler_code == MPI_ERR_REQUEST),
               "%d calls, code %d", handler_calls, handler_code);
    MPIX_OK(MPI_Error_string(handler_code, text, &length));
    MPIX_CHECK(length > 0, "no text");

    MPIX_OK(MPI_Request_free(&request));
    MPI_Errhandler_free(&errhandler);
    MPI_Comm_free(&comm);
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
        {NULL}
    };

    mpix_test_init(&argc, &argv);
    make_good_pair();
    mpix_test_cases(cases, argc, argv);
    mpix_test_msg_free(&good_send);
    mpix_test_msg_free(&good_recv);
    return mpix_test_end("mpix_refuse");
}
