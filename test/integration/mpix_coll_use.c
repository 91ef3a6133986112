/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_coll_use.c - how persistent collectives are used on queues: far ahead,
 * in different orders, with messages, by the host, and wrongly.
 */
#include "mpix_test.h"

#include <stdlib.h>
#include <string.h>

#define TAG   40
#define USES  3
#define AHEAD 40


static void start(MPI_Request *request)
{
    MPIX_OK(MPIX_Enqueue_start(mpix_test.queue, request));
}

static void wait(MPI_Request *request)
{
    MPIX_OK(MPIX_Enqueue_wait(mpix_test.queue, request));
}

static void match(MPI_Request *request)
{
    MPIX_OK(MPIX_Match(request, MPI_STATUS_IGNORE));
}

static void queue_wait(void)
{
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
}

static void launch(MPIX_Host_func func, void *arg)
{
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, func, arg));
}

/* A step of a computation on a stream: x = sum over all ranks of (x + rank). */
typedef struct step {
    int64_t part;
    int64_t sum;
    int     count;
    int     wrong;
    int64_t expected;
} step_t;

static void step_before(void *arg)
{
    step_t *step = arg;

    step->part = step->sum + mpix_test.rank + step->count;
}

static void step_after(void *arg)
{
    step_t *step     = arg;
    const int64_t n  = mpix_test.size;

    step->expected = n * (step->expected + step->count) + n * (n - 1) / 2;
    step->wrong   += (step->sum != step->expected);
    step->sum      = step->expected % 1000;
    step->expected = step->sum;
    ++step->count;
}

/* The host enqueues many uses while the stream is held. */
static void test_ahead(void)
{
    step_t step = {.sum = 0};
    int i, go = 0;
    MPI_Request request;

    MPIX_OK(MPIX_Allreduce_init(&step.part, &step.sum, 1, MPI_INT64_T, MPI_SUM,
                                MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    match(&request);
    launch(mpix_test_hold, &go);
    for (i = 0; i < AHEAD; ++i) {
        launch(step_before, &step);
        start(&request);
        wait(&request);
        launch(step_after, &step);
    }
    MPIX_IS(MPI_ERR_PENDING, MPI_Request_free(&request));
    __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
    queue_wait();
    MPIX_CHECK((step.wrong == 0) && (step.count == AHEAD), "%d wrong of %d",
               step.wrong, step.count);
    MPIX_OK(MPI_Request_free(&request));
}

/* A stream waits for a message, with a collective started and not waited for;
 * the message's sender sends when its own one is over. Ranks start two
 * collectives, of two communicators, in different orders, each waits in yet
 * another one. */
static void test_orders(void)
{
    int64_t in[2] = {1, 2}, out[2];
    MPI_Request requests[2];
    mpix_test_msg_t msg;
    MPI_Comm dup;
    int use, i;
    const int is_odd = mpix_test.rank % 2;
    const int peer   = mpix_test.rank ^ 1;

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPIX_Allreduce_init(&in[i], &out[i], 1, MPI_INT64_T, MPI_SUM,
                                    i ? dup : MPI_COMM_WORLD, MPI_INFO_NULL,
                                    &requests[i]));
    }
    MPI_Comm_free(&dup);
    if (peer < mpix_test.size) {
        if (is_odd) {
            mpix_test_send_init(&msg, 100, peer, TAG, 1);
        } else {
            mpix_test_recv_init(&msg, 100, peer, TAG, 1);
        }
        match(&msg.request);
    }
    MPIX_OK(MPIX_Imatch(&requests[is_odd]));
    MPIX_OK(MPIX_Match(&requests[!is_odd], MPI_STATUS_IGNORE));
    for (i = 0; !i;) {
        MPIX_OK(MPIX_Is_matched(&requests[is_odd], &i, MPI_STATUS_IGNORE));
    }

    for (use = 0; use < USES; ++use) {
        start(&requests[is_odd]);
        start(&requests[!is_odd]);
        if (peer >= mpix_test.size) {
            wait(&requests[0]);
            wait(&requests[1]);
            continue;
        }
        if (is_odd) {
            wait(&requests[1]);
            wait(&requests[0]);
            launch(mpix_test_fill, &msg);
        }
        start(&msg.request);
        wait(&msg.request);
        if (!is_odd) {
            launch(mpix_test_verify, &msg);
            MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 2, requests));
        }
    }
    queue_wait();
    MPIX_CHECK((out[0] == mpix_test.size) && (out[1] == 2 * mpix_test.size),
               "%d %d", (int)out[0], (int)out[1]);
    MPIX_OK(MPI_Request_free(&requests[0]));
    MPIX_OK(MPI_Request_free(&requests[1]));
    if (peer < mpix_test.size) {
        mpix_test_msg_free(&msg);
    }
}

/* Collectives and messages in one call each of match, start and wait; on
 * communicators with parts of the ranks. */
static void test_together(void)
{
    int in = mpix_test.rank, out[3] = {-1, -1, -1}, size, use, first;
    mpix_test_msg_t send, recv;
    MPI_Request requests[5];
    MPI_Comm half;

    MPI_Comm_split(MPI_COMM_WORLD, mpix_test.rank % 2, -mpix_test.rank, &half);
    MPI_Comm_size(half, &size);
    mpix_test_send_init(&send, 10, mpix_test.right, TAG, 1);
    mpix_test_recv_init(&recv, 10, mpix_test.left, TAG, 1);
    requests[0] = send.request;
    MPIX_OK(MPIX_Allreduce_init(&in, &out[0], 1, MPI_INT, MPI_MAX,
                                MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    MPIX_OK(MPIX_Allreduce_init(&in, &out[1], 1, MPI_INT, MPI_MIN, half,
                                MPI_INFO_NULL, &requests[2]));
    requests[3] = recv.request;
    out[2]      = in;
    MPIX_OK(MPIX_Bcast_init(&out[2], 1, MPI_INT, size - 1, half, MPI_INFO_NULL,
                            &requests[4]));
    MPI_Comm_free(&half);

    MPIX_OK(MPIX_Matchall(5, requests, MPI_STATUSES_IGNORE));
    for (use = 0; use < USES; ++use) {
        launch(mpix_test_fill, &send);
        MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, 5, requests));
        MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 5, requests));
        launch(mpix_test_verify, &recv);
    }
    queue_wait();
    first = mpix_test.rank % 2;
    MPIX_CHECK((out[0] == (mpix_test.size - 1)) && (out[1] == first) &&
               (out[2] == first), "%d %d %d", out[0], out[1], out[2]);
    for (use = 1; use < 5; ++use) {
        if (use != 3) {
            MPIX_OK(MPI_Request_free(&requests[use]));
        }
    }
    mpix_test_msg_free(&send);
    mpix_test_msg_free(&recv);
}

static int rc_class(int rc)
{
    int class;

    MPI_Error_class(rc, &class);
    return class;
}

/* Another queue takes a collective over; what is not waited for can be freed
 * when its queue is gone. */
static void test_queues(void)
{
    int in = 1, out = 0, rc;
    MPI_Request request;
    MPIX_Queue queue;
    void *stream;

    MPIX_OK(MPIX_Host_stream_create(&stream));
    MPIX_OK(MPIX_Create_queue(stream, &queue));
    MPIX_OK(MPIX_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                                MPI_INFO_NULL, &request));
    match(&request);
    start(&request);
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Enqueue_start(mpix_test.queue, &request));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Enqueue_wait(queue, &request));
    wait(&request);
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Enqueue_wait(mpix_test.queue, &request));
    queue_wait();
    MPIX_CHECK(out == mpix_test.size, "%d", out);

    out = 0;
    MPIX_OK(MPIX_Enqueue_start(queue, &request));
    MPIX_OK(MPIX_Queue_wait(queue));
    MPIX_IS(MPI_ERR_PENDING, MPI_Request_free(&request));
    MPIX_OK(MPIX_Queue_free(&queue));
    do { /* The last use may be under way: it is busy until that is over */
        rc = MPIX_Enqueue_start(mpix_test.queue, &request);
    } while (rc_class(rc) == MPI_ERR_REQUEST);
    MPIX_OK(rc);
    wait(&request);
    queue_wait();
    MPIX_CHECK(out == mpix_test.size, "%d", out);
    MPIX_OK(MPI_Request_free(&request));
    MPIX_OK(MPIX_Host_stream_synchronize(stream));
    MPIX_OK(MPIX_Host_stream_free(&stream));
}

/* MPI's own, by the host, before it is matched; not afterwards. */
static void test_host_start(void)
{
    const char *native = getenv("MPIX_QUEUE_NATIVE_COLLECTIVES");
    int in = 1, out = 0;
    MPI_Request request;

    MPIX_OK(MPIX_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                                MPI_INFO_NULL, &request));
    if (native == NULL) {
        MPIX_OK(MPI_Start(&request));
        MPIX_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        MPIX_CHECK(out == mpix_test.size, "%d", out);
    } else {
        MPIX_IS(MPI_ERR_REQUEST, MPI_Start(&request));
    }
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Enqueue_start(mpix_test.queue, &request));
    out = 0;
    match(&request);
    MPIX_IS(MPI_ERR_REQUEST, MPI_Start(&request));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Match(&request, MPI_STATUS_IGNORE));
    start(&request);
    wait(&request);
    queue_wait();
    MPIX_CHECK(out == mpix_test.size, "%d", out);
    MPIX_OK(MPI_Request_free(&request));

    /* Never matched */
    MPIX_OK(MPIX_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    MPIX_OK(MPI_Request_free(&request));
}

/* MPI_IN_PLACE where MPI has no place for it. Its own functions see to that
 * where they are called. */
static void refuse_places(MPI_Request *request)
{
    int in[4] = {0}, out[4];
    const int other = (mpix_test.rank + 1) % mpix_test.size;

    if (other != mpix_test.rank) {
        MPIX_IS(MPI_ERR_BUFFER,
                MPIX_Reduce_init(MPI_IN_PLACE, out, 1, MPI_INT, MPI_SUM, other,
                                 MPI_COMM_WORLD, MPI_INFO_NULL, request));
    }
    MPIX_IS(MPI_ERR_BUFFER,
            MPIX_Reduce_init(in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM,
                             mpix_test.rank, MPI_COMM_WORLD, MPI_INFO_NULL,
                             request));
    MPIX_IS(MPI_ERR_BUFFER,
            MPIX_Bcast_init(MPI_IN_PLACE, 1, MPI_INT, 0, MPI_COMM_WORLD,
                            MPI_INFO_NULL, request));
    MPIX_IS(MPI_ERR_BUFFER,
            MPIX_Allreduce_init(in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM,
                                MPI_COMM_WORLD, MPI_INFO_NULL, request));
    MPIX_IS(MPI_ERR_BUFFER,
            MPIX_Alltoall_init(in, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT,
                               MPI_COMM_WORLD, MPI_INFO_NULL, request));
    MPIX_IS(MPI_ERR_COUNT,
            MPIX_Alltoall_init(MPI_IN_PLACE, 0, MPI_INT, out, -1, MPI_INT,
                               MPI_COMM_WORLD, MPI_INFO_NULL, request));
}

/* What is refused, by the name of the function. */
static void test_refuse(void)
{
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Request request     = MPI_REQUEST_NULL;
    int in[4] = {0}, out[4];
    MPI_Comm cart_comm;
    const int dims[1] = {mpix_test.size}, periods[1] = {1};

    MPIX_IS(MPI_ERR_COMM, MPIX_Barrier_init(MPI_COMM_NULL, MPI_INFO_NULL,
                                            &request));
    MPIX_IS(MPI_ERR_ROOT, MPIX_Bcast_init(in, 1, MPI_INT, mpix_test.size,
                                          MPI_COMM_WORLD, MPI_INFO_NULL,
                                          &request));
    MPIX_IS(MPI_ERR_COUNT, MPIX_Bcast_init(in, -1, MPI_INT, 0, MPI_COMM_WORLD,
                                           MPI_INFO_NULL, &request));
    MPIX_IS(MPI_ERR_OP, MPIX_Allreduce_init(in, out, 1, MPI_DOUBLE, MPI_BAND,
                                            MPI_COMM_WORLD, MPI_INFO_NULL,
                                            &request));
    if (getenv("MPIX_QUEUE_NATIVE_COLLECTIVES") != NULL) {
        refuse_places(&request);
    }
    MPIX_CHECK(request == MPI_REQUEST_NULL, "a request was made");

    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &cart_comm);
    MPI_Comm_set_errhandler(cart_comm, MPI_ERRORS_RETURN);
    MPIX_CHECK(MPIX_Neighbor_alltoall_init(MPI_IN_PLACE, 1, MPI_INT, out, 1,
                                           MPI_INT, cart_comm, MPI_INFO_NULL,
                                           &request) != MPI_SUCCESS,
               "MPI_IN_PLACE among neighbours");
    MPI_Comm_free(&cart_comm);

    /* One is no collective's, and not matched: nothing is started */
    MPIX_OK(MPIX_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    MPIX_OK(MPI_Send_init(in, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD,
                          &requests[1]));
    match(&requests[0]);
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Enqueue_startall(mpix_test.queue, 2,
                                                   requests));
    MPIX_OK(MPI_Request_free(&requests[1]));
    requests[1] = requests[0];
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Enqueue_startall(mpix_test.queue, 2,
                                                   requests));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Enqueue_wait(mpix_test.queue, &requests[0]));
    start(&requests[0]);
    wait(&requests[0]);
    queue_wait();
    MPIX_OK(MPI_Request_free(&requests[0]));
}

/* Types with gaps; the host waits for the second one. */
static void test_types(void)
{
    int i, flag, values[6], own[2], *all;
    MPI_Datatype vector, spaced;
    MPI_Request request;

    MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, 4 * sizeof(int), &spaced);
    MPI_Type_commit(&vector);
    MPI_Type_commit(&spaced);
    for (i = 0; i < 6; ++i) {
        values[i] = (mpix_test.rank == 0) ? i : -1;
    }
    MPIX_OK(MPIX_Bcast_init(values, 2, vector, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                            &request));
    match(&request);
    start(&request);
    wait(&request);
    queue_wait();
    for (i = 0; i < 6; ++i) { /* Elements at 0, 2, 3 and 5 */
        MPIX_CHECK(values[i] == (((mpix_test.rank == 0) || (i % 3 != 1)) ? i :
                                                                           -1),
                   "%d: %d", i, values[i]);
    }
    MPIX_OK(MPI_Request_free(&request));

    all    = malloc(4 * mpix_test.size * sizeof(*all));
    own[0] = 10 * mpix_test.rank;
    own[1] = own[0] + 1;
    for (i = 0; i < 4 * mpix_test.size; ++i) {
        all[i] = -1;
    }
    MPIX_OK(MPIX_Allgather_init(own, 2, MPI_INT, all, 1, spaced, MPI_COMM_WORLD,
                                MPI_INFO_NULL, &request));
    match(&request);
    start(&request);
    MPIX_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (i = 0; i < 4 * mpix_test.size; ++i) {
        MPIX_CHECK(all[i] == ((i % 2 == 1) ? -1 : 10 * (i / 4) + i % 4 / 2),
                   "%d: %d", i, all[i]);
    }
    start(&request);
    for (flag = 0; !flag;) {
        MPIX_OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    }
    queue_wait();
    MPIX_OK(MPI_Request_free(&request));
    free(all);
    MPI_Type_free(&vector);
    MPI_Type_free(&spaced);
}

static void test_inter(void)
{
    const int is_odd = mpix_test.rank % 2;
    MPI_Comm local, inter;
    MPI_Request request;
    int in = 1, out;

    if (mpix_test.size < 2) {
        return;
    }
    MPI_Comm_split(MPI_COMM_WORLD, is_odd, 0, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - is_odd, 0, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    if (MPIX_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, inter,
                            MPI_INFO_NULL, &request) == MPI_SUCCESS) {
        MPIX_IS(MPI_ERR_REQUEST, MPIX_Match(&request, MPI_STATUS_IGNORE));
        MPIX_OK(MPI_Request_free(&request));
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
}

static void sum_op(void *in, void *inout, int *count, MPI_Datatype *datatype)
{
    int i;

    (void)datatype;
    for (i = 0; i < *count; ++i) {
        ((int*)inout)[i] += ((int*)in)[i];
    }
}

/* Without MPI_THREAD_MULTIPLE, predefined operations work and a user's is
 * refused. */
static void test_level(void)
{
    MPI_Request request;
    int level, in = 1, out;
    MPI_Op op;

    MPI_Query_thread(&level);
    if (level == MPI_THREAD_MULTIPLE) {
        return;
    }
    MPI_Op_create(sum_op, 1, &op);
    MPIX_OK(MPIX_Allreduce_init(&in, &out, 1, MPI_INT, op, MPI_COMM_WORLD,
                                MPI_INFO_NULL, &request));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Match(&request, MPI_STATUS_IGNORE));
    MPIX_OK(MPI_Request_free(&request));
    MPI_Op_free(&op);

    MPIX_OK(MPIX_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                                MPI_INFO_NULL, &request));
    match(&request);
    start(&request);
    wait(&request);
    queue_wait();
    MPIX_CHECK(out == mpix_test.size, "%d", out);
    MPIX_OK(MPI_Request_free(&request));
}

/* Many come and go, some of them unused at the end of MPI. */
static void test_many(void)
{
    static int in = 1, out;
    MPI_Request request;
    int i;

    for (i = 0; i < 200; ++i) {
        MPIX_OK(MPIX_Allreduce_init(&in, &out, 1, MPI_INT, MPI_SUM,
                                    MPI_COMM_WORLD, MPI_INFO_NULL, &request));
        match(&request);
        start(&request);
        wait(&request);
        queue_wait();
        MPIX_CHECK(out == mpix_test.size, "%d", out);
        MPIX_OK(MPI_Request_free(&request));
    }
    MPIX_OK(MPIX_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    match(&request);
    start(&request);
    wait(&request);
    queue_wait();
    MPIX_OK(MPIX_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request));
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"ahead", test_ahead},
        {"orders", test_orders},
        {"together", test_together},
        {"queues", test_queues},
        {"host_start", test_host_start},
        {"refuse", test_refuse},
        {"types", test_types},
        {"inter", test_inter},
        {"level", test_level},
        {"many", test_many},
        {NULL, NULL}
    };
    const int is_single = (argc > 1) && !strcmp(argv[1], "level");

    mpix_test_init_thread(&argc, &argv,
                          is_single ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE);
    mpix_test_cases(cases, argc, argv);
    return mpix_test_end("mpix_coll_use");
}
