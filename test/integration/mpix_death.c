/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_death.c - the last rank dies while the others wait for it in a match,
 * for a message of it on a queue, for messages to and from it that are for
 * queues only, and for its window: they get an error from each. One argument,
 * how it dies:
 *
 *   exit    by _exit()
 *   kill    by SIGKILL
 *
 * Each has matched with it before: until then a process knows of the other only
 * what MPI does, which ends the whole job when a rank dies. A survivor prints a
 * line and ends without MPI_Finalize, which would wait for the dead rank.
 */
#include "mpix_test.h"

#include <mpix_win.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TAG_FIRST 1
#define TAG_VAIN  2
#define TAG_QUEUE 3
#define TAG_ONLY  4


/* A message that the last rank has matched, but never starts. */
static mpix_test_msg_t awaited;

/* A barrier that the last rank has matched, but never starts; on a queue of its
 * own. */
static struct {
    void        *stream;
    MPIX_Queue  queue;
    MPI_Request request;
} barrier;

/* Messages for queues only that the last rank never enqueues its halves of,
 * behind one each way that it does; on a queue of their own. */
static struct {
    void        *stream;
    MPIX_Queue  queue;
    MPI_Comm    comm;
    MPI_Request requests[2];
    int         words[4];
} only;

static void pass_only(int other, MPI_Request requests[2], int *words)
{
    MPIX_OK(MPIX_Enqueue_recv(&words[0], 1, MPI_INT, other, TAG_ONLY, only.comm,
                              only.queue, &requests[0]));
    MPIX_OK(MPIX_Enqueue_send(&words[1], 1, MPI_INT, other, TAG_ONLY, only.comm,
                              only.queue, &requests[1]));
    MPIX_OK(MPIX_Enqueue_start(only.queue));
    MPIX_OK(MPIX_Enqueue_wait(only.queue));
}

static void meet_only(int last)
{
    MPI_Request requests[2];
    MPI_Info info;
    int i;

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_queue_only", "true");
    MPIX_OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &only.comm));
    MPI_Info_free(&info);
    MPI_Comm_set_errhandler(only.comm, MPI_ERRORS_RETURN);
    MPIX_OK(MPIX_Host_stream_create(&only.stream));
    MPIX_OK(MPIX_Create_queue(only.stream, &only.queue));
    for (i = 0; i < last; ++i) {
        if ((mpix_test.rank == last) || (mpix_test.rank == i)) {
            pass_only((mpix_test.rank == last) ? i : last, requests,
                      only.words);
            MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        }
    }
    if (mpix_test.rank != last) {
        pass_only(last, only.requests, &only.words[2]);
    }
}

/* Both fail, and their queue; what it waits for passes. */
static void end_only(void)
{
    int i;

    MPIX_IS(MPI_ERR_OTHER, MPIX_Queue_wait(only.queue));
    for (i = 0; i < 2; ++i) {
        MPIX_IS(MPI_ERR_OTHER, MPI_Wait(&only.requests[i], MPI_STATUS_IGNORE));
    }
    MPIX_OK(MPIX_Queue_free(&only.queue));
    MPIX_OK(MPIX_Host_stream_synchronize(only.stream));
    MPIX_OK(MPIX_Host_stream_free(&only.stream));
}

static void meet_barrier(int is_last)
{
    MPIX_OK(MPIX_Host_stream_create(&barrier.stream));
    MPIX_OK(MPIX_Create_queue(barrier.stream, &barrier.queue));
    MPIX_OK(MPIX_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL,
                              &barrier.request));
    MPIX_OK(MPIX_Match(&barrier.request, MPI_STATUS_IGNORE));
    if (!is_last) {
        MPIX_OK(MPIX_Enqueue_start(barrier.queue, &barrier.request));
        MPIX_OK(MPIX_Enqueue_wait(barrier.queue, &barrier.request));
    }
}

/* The queue is let go, and says why; the barrier can only be freed. */
static void end_barrier(void)
{
    int rc;

    MPIX_IS(MPI_ERR_OTHER, MPIX_Queue_wait(barrier.queue));
    rc = MPIX_Enqueue_start(barrier.queue, &barrier.request);
    MPIX_CHECK(rc != MPI_SUCCESS, "started after an error");
    MPIX_OK(MPI_Request_free(&barrier.request));
    MPIX_OK(MPIX_Queue_free(&barrier.queue));
    MPIX_OK(MPIX_Host_stream_synchronize(barrier.stream));
    MPIX_OK(MPIX_Host_stream_free(&barrier.stream));
}

/* A window that the last rank never exposes, and the stream that waits for it.
 */
static struct {
    void    *stream;
    MPI_Win win;
    int     *base;
} window;

static void meet_window(int last)
{
    MPI_Group world, group;

    MPIX_OK(mpix_test_stream(&window.stream));
    MPIX_OK(MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                             &window.base, &window.win));
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    if (mpix_test.rank == last) {
        return;
    }
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &last, &group);
    MPIX_OK(MPI_Win_start(group, MPIX_MODE_STREAM, window.win));
    MPIX_OK(MPI_Put(&mpix_test.rank, 1, MPI_INT, last, 0, 1, MPI_INT,
                    window.win));
    MPIX_OK(MPIX_Win_complete_stream(window.win, window.stream));
    MPI_Group_free(&group);
    MPI_Group_free(&world);
}

/* The stream is let go, and the next call names the rank. */
static void end_window(int last)
{
    char text[MPI_MAX_ERROR_STRING], expected[64];
    MPI_Group world, group;
    int rc;

    MPIX_OK(MPIX_Host_stream_synchronize(window.stream));
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &last, &group);
    rc = MPIX_Win_post_stream(group, window.win, window.stream);
    snprintf(expected, sizeof(expected), "rank %d of the window is gone", last);
    if (mpix_test_text(rc, MPI_ERR_OTHER, text)) {
        MPIX_CHECK(strstr(text, expected) != NULL, "%s", text);
    }
    MPI_Group_free(&group);
    MPI_Group_free(&world);
}

/* One pair each way between the last rank and each other one. */
static void meet(int last)
{
    mpix_test_msg_t msg;
    int i;

    meet_only(last);
    meet_barrier(mpix_test.rank == last);
    meet_window(last);
    if (mpix_test.rank != last) {
        mpix_test_send_init(&msg, 10, last, TAG_FIRST, 0);
        MPIX_OK(MPIX_Match(&msg.request, MPI_STATUS_IGNORE));
        mpix_test_recv_init(&awaited, 10, last, TAG_QUEUE, 0);
        MPIX_OK(MPIX_Match(&awaited.request, MPI_STATUS_IGNORE));
        MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &awaited.request));
        MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &awaited.request));
        return;
    }
    for (i = 0; i < last; ++i) {
        mpix_test_recv_init(&msg, 10, i, TAG_FIRST, 0);
        MPIX_OK(MPIX_Match(&msg.request, MPI_STATUS_IGNORE));
        mpix_test_send_init(&msg, 10, i, TAG_QUEUE, 0);
        MPIX_OK(MPIX_Match(&msg.request, MPI_STATUS_IGNORE));
    }
}

/* Once all others are about to wait. What it still had to tell them by MPI may
 * be lost: they get no message from it. */
static void die(const char *how, int last)
{
    int i;

    for (i = 0; i < last; ++i) {
        MPI_Recv(NULL, 0, MPI_BYTE, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (!strcmp(how, "kill")) {
        kill(getpid(), SIGKILL);
    }
    _exit(0);
}

/* Never matched: the dead rank makes no such request. Nor does it start what
 * this rank's queue waits for. */
static void wait_in_vain(int last)
{
    mpix_test_msg_t msg;

    mpix_test_recv_init(&msg, 10, last, TAG_VAIN, 0);
    MPIX_IS(MPI_ERR_OTHER, MPIX_Match(&msg.request, MPI_STATUS_IGNORE));
    mpix_test_msg_free(&msg);
    MPIX_IS(MPI_ERR_OTHER, MPIX_Queue_wait(mpix_test.queue));
    end_barrier();
    end_window(last);
    end_only();
    printf("mpix_death: rank %d survives, %d checks failed\n", mpix_test.rank,
           mpix_test.failed);
    fflush(NULL);
    _exit((mpix_test.failed == 0) ? 0 : 1);
}

int main(int argc, char **argv)
{
    int last;

    if (argc != 2) {
        fprintf(stderr, "usage: %s exit|kill\n", argv[0]);
        return 2;
    }
    mpix_test_init(&argc, &argv);
    last = mpix_test.size - 1;
    meet(last);
    if (mpix_test.rank == last) {
        die(argv[1], last);
    }
    MPI_Send(NULL, 0, MPI_BYTE, last, 0, MPI_COMM_WORLD);
    wait_in_vain(last);
    return 1;
}
