/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_stream.c - kernels, groups and events of host streams beside messages.
 */
#include "mpix_test.h"

#include <sched.h>
#include <string.h>

#define STREAMS 4
#define USES    20
#define WORDS   300


/* What add() is passed: 'value' comes behind what is in '*list'. */
typedef struct add_args {
    int *list;
    int value;
} add_args_t;

/* A list of numbers that ends with a 0 */
static void add(void *arg)
{
    add_args_t *args = arg;

    while (*args->list != 0) {
        ++args->list; /* The copy is the kernel's */
    }
    *args->list = args->value;
}

static void launch_add(void *stream, int *list, int value)
{
    add_args_t args = {list, value};

    MPIX_OK(MPIX_Host_stream_launch_copy(stream, add, &args, sizeof(args)));
    memset(&args, 0, sizeof(args));
}

static int was_null;

static void look_at_args(void *arg)
{
    was_null = (arg == NULL);
}

/* Arguments are those of the call, whatever becomes of them. */
static void test_copies(void)
{
    int list[USES + 1] = {0};
    int released       = 0;
    int i;

    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold,
                                    &released));
    for (i = 0; i < USES; ++i) {
        launch_add(mpix_test.stream, list, i + 1);
    }
    MPIX_OK(MPIX_Host_stream_launch_copy(mpix_test.stream, look_at_args, NULL,
                                         0));
    __atomic_store_n(&released, 1, __ATOMIC_RELEASE);
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));

    MPIX_CHECK(was_null, "no arguments have an address");
    for (i = 0; i < USES; ++i) {
        MPIX_CHECK(list[i] == i + 1, "%d at place %d", list[i], i);
    }
}

static void find_cpu(void *arg)
{
    *(int*)arg = sched_getcpu();
}

/* The last of the processors that this process may use */
static unsigned last_cpu(void)
{
    unsigned i, last = 0;
    cpu_set_t set;

    CPU_ZERO(&set);
    MPIX_CHECK(sched_getaffinity(0, sizeof(set), &set) == 0, "no processors");
    for (i = 0; i < CPU_SETSIZE; ++i) {
        last = CPU_ISSET(i, &set) ? i : last;
    }
    return last;
}

/* Threads of streams and of groups run where they are told to. */
static void test_processors(void)
{
    const unsigned cpu = last_cpu();
    int found[2]       = {-1, -1};
    MPIX_Host_group group;
    void *streams[2];
    int i;

    MPIX_OK(MPIX_Host_group_create(1, 1, &cpu, &group));
    MPIX_OK(MPIX_Host_stream_create_on(group, 0, &streams[0]));
    MPIX_OK(MPIX_Host_stream_create_bound(1, &cpu, &streams[1]));
    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPIX_Host_stream_launch(streams[i], find_cpu, &found[i]));
        MPIX_OK(MPIX_Host_stream_synchronize(streams[i]));
        MPIX_OK(MPIX_Host_stream_free(&streams[i]));
        MPIX_CHECK(found[i] == (int)cpu, "stream %d ran on %d, not on %u", i,
                   found[i], cpu);
    }
    MPIX_OK(MPIX_Host_group_free(&group));
}

/* Of streams that could run the most urgent one goes first. */
static void test_priority(void)
{
    int list[4]  = {0};
    int released = 0;
    MPIX_Host_group group, other;
    int least, greatest, i;
    void *streams[3];

    MPIX_OK(MPIX_Host_priority_range(&least, &greatest));
    MPIX_OK(MPIX_Host_group_create(1, 0, NULL, &group));
    MPIX_OK(MPIX_Host_stream_create_on(group, greatest, &streams[0]));
    MPIX_OK(MPIX_Host_stream_create_on(group, least, &streams[1]));
    MPIX_OK(MPIX_Host_stream_create_on(group, 0, &streams[2]));
    MPIX_OK(MPIX_Host_stream_launch(streams[0], mpix_test_hold, &released));
    launch_add(streams[1], list, 3);
    launch_add(streams[2], list, 2);
    launch_add(streams[0], list, 1);

    other = group;
    MPIX_IS(MPI_ERR_PENDING, MPIX_Host_group_free(&other));
    MPIX_CHECK(other == group, "the handle has changed");
    __atomic_store_n(&released, 1, __ATOMIC_RELEASE);
    for (i = 0; i < 3; ++i) {
        MPIX_OK(MPIX_Host_stream_synchronize(streams[i]));
    }
    for (i = 0; i < 3; ++i) {
        MPIX_OK(MPIX_Host_stream_free(&streams[i]));
        MPIX_CHECK(list[i] == i + 1, "%d at place %d", list[i], i);
    }
    MPIX_OK(MPIX_Host_group_free(&group));
}

/* A stream with a queue, which sends or receives */
typedef struct lane {
    void            *stream;
    MPIX_Queue      queue;
    mpix_test_msg_t msg;
} lane_t;

static void lane_init(lane_t *lane, MPIX_Host_group group)
{
    MPIX_OK(MPIX_Host_stream_create_on(group, 0, &lane->stream));
    MPIX_OK(MPIX_Queue_init(MPIX_QUEUE_HOST, lane->stream, &lane->queue));
}

static void lane_cleanup(lane_t *lane)
{
    MPIX_OK(MPIX_Queue_wait(lane->queue));
    MPIX_OK(MPIX_Host_stream_synchronize(lane->stream));
    mpix_test_msg_free(&lane->msg);
    MPIX_OK(MPIX_Queue_free(&lane->queue));
    MPIX_OK(MPIX_Host_stream_free(&lane->stream));
}

/* A use of a message that takes its data from, or gives it to, kernels of the
 * stream */
static void lane_use(lane_t *lane, int is_send)
{
    if (is_send) {
        MPIX_OK(MPIX_Host_stream_launch(lane->stream, mpix_test_fill,
                                        &lane->msg));
    }
    MPIX_OK(MPIX_Enqueue_start_req(lane->queue, &lane->msg.request));
    MPIX_OK(MPIX_Enqueue_wait_req(lane->queue, &lane->msg.request));
    if (!is_send) {
        MPIX_OK(MPIX_Host_stream_launch(lane->stream, mpix_test_verify,
                                        &lane->msg));
    }
}

/* One thread runs streams that wait for messages, and those that the messages
 * of all ranks come from. */
static void test_group(void)
{
    lane_t sends[STREAMS], recvs[STREAMS];
    MPIX_Host_group group;
    int i, k;

    MPIX_OK(MPIX_Host_group_create(1, 0, NULL, &group));
    for (i = 0; i < STREAMS; ++i) {
        lane_init(&sends[i], group);
        lane_init(&recvs[i], group);
        mpix_test_send_init(&sends[i].msg, WORDS, mpix_test.right, i, i);
        mpix_test_recv_init(&recvs[i].msg, WORDS, mpix_test.left, i, i);
        mpix_test_match(&sends[i].msg, 1, &recvs[i].msg, 1);
    }
    for (k = 0; k < USES; ++k) {
        for (i = 0; i < STREAMS; ++i) {
            lane_use(&recvs[i], 0);
        }
        for (i = 0; i < STREAMS; ++i) {
            lane_use(&sends[i], 1);
        }
    }
    for (i = 0; i < STREAMS; ++i) {
        lane_cleanup(&sends[i]);
        lane_cleanup(&recvs[i]);
    }
    MPIX_OK(MPIX_Host_group_free(&group));
}

/* The host and another stream wait for a point in a stream. */
static void test_event(void)
{
    int list[3]    = {0};
    int released   = 0;
    int flag       = 1;
    double seconds = -1;
    MPIX_Host_event first, second, other;
    void *stream;

    MPIX_OK(MPIX_Host_stream_create(&stream));
    MPIX_OK(MPIX_Host_event_create(&first));
    MPIX_OK(MPIX_Host_event_create(&second));
    MPIX_OK(MPIX_Host_event_record(mpix_test.stream, first));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold,
                                    &released));
    launch_add(mpix_test.stream, list, 1);
    MPIX_OK(MPIX_Host_event_record(mpix_test.stream, second));
    MPIX_OK(MPIX_Host_event_wait(stream, second));
    launch_add(stream, list, 2);

    MPIX_OK(MPIX_Host_event_synchronize(first));
    MPIX_OK(MPIX_Host_event_query(second, &flag));
    MPIX_CHECK(!flag, "an event was passed that is behind a kernel");
    MPIX_IS(MPI_ERR_PENDING, MPIX_Host_event_elapsed(first, second, &seconds));
    other = second;
    MPIX_IS(MPI_ERR_PENDING, MPIX_Host_event_free(&other));
    MPIX_CHECK((other == second) && (seconds == -1), "filled on an error");

    __atomic_store_n(&released, 1, __ATOMIC_RELEASE);
    MPIX_OK(MPIX_Host_event_synchronize(second));
    MPIX_CHECK(list[0] == 1, "passed before the kernel has run");
    MPIX_OK(MPIX_Host_event_query(second, &flag));
    MPIX_CHECK(flag, "not passed");
    MPIX_OK(MPIX_Host_event_elapsed(first, second, &seconds));
    MPIX_CHECK(seconds >= 0, "%g seconds", seconds);
    MPIX_OK(MPIX_Host_event_elapsed(second, first, &seconds));
    MPIX_CHECK(seconds <= 0, "%g seconds", seconds);

    MPIX_OK(MPIX_Host_stream_synchronize(stream));
    MPIX_CHECK((list[0] == 1) && (list[1] == 2), "%d, %d", list[0], list[1]);
    MPIX_OK(MPIX_Host_event_free(&first));
    MPIX_OK(MPIX_Host_event_free(&second));
    MPIX_OK(MPIX_Host_stream_free(&stream));
}

/* Kernels on one stream and their messages on another, in order by events. */
static void test_two_streams(void)
{
    mpix_test_msg_t send, recv;
    MPIX_Host_event filled, arrived;
    void *kernels;
    int k;

    mpix_test_send_init(&send, WORDS, mpix_test.right, 0, 0);
    mpix_test_recv_init(&recv, WORDS, mpix_test.left, 0, 0);
    mpix_test_match(&send, 1, &recv, 1);
    MPIX_OK(MPIX_Host_stream_create(&kernels));
    MPIX_OK(MPIX_Host_event_create(&filled));
    MPIX_OK(MPIX_Host_event_create(&arrived));

    for (k = 0; k < USES; ++k) {
        MPIX_OK(MPIX_Host_stream_launch(kernels, mpix_test_fill, &send));
        MPIX_OK(MPIX_Host_event_record(kernels, filled));
        MPIX_OK(MPIX_Host_event_wait(mpix_test.stream, filled));
        MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &recv.request));
        MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &send.request));
        MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &recv.request));
        MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &send.request));
        MPIX_OK(MPIX_Host_event_record(mpix_test.stream, arrived));
        MPIX_OK(MPIX_Host_event_wait(kernels, arrived));
        MPIX_OK(MPIX_Host_stream_launch(kernels, mpix_test_verify, &recv));
    }
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_synchronize(kernels));
    MPIX_CHECK(recv.use == USES, "%d uses", (int)recv.use);

    MPIX_OK(MPIX_Host_event_free(&filled));
    MPIX_OK(MPIX_Host_event_free(&arrived));
    MPIX_OK(MPIX_Host_stream_free(&kernels));
    mpix_test_msg_free(&send);
    mpix_test_msg_free(&recv);
}

int main(int argc, char **argv)
{
    mpix_test_init(&argc, &argv);
    test_copies();
    test_processors();
    test_priority();
    test_group();
    test_event();
    test_two_streams();
    return mpix_test_end("mpix_stream");
}
