/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_waits.c - two ranks of which one does not do what the other one waits
 * for, or a ring of them, until a file is there; then it does, so that the
 * program ends. Arguments: the case and the file. mpix_waits.sh, which makes
 * the file, knows what the library says meanwhile.
 */
#include "mpix_test.h"

#include <mpix_win.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TAG   9
#define OTHER 0

static const char *go;
static int word;


/* What rank 1 does in place of what it ought to: MPI goes on. With a request,
 * matching does. */
static void delay(MPI_Request *request)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    int flag;

    while (access(go, F_OK) != 0) {
        if (request != NULL) {
            MPIX_OK(MPIX_Is_matched(request, &flag, MPI_STATUS_IGNORE));
        } else {
            MPI_Iprobe(0, OTHER, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
        }
        nanosleep(&pause, NULL);
    }
}

/* Until the library tells this process that it waits for something. */
static void until_told(const char *what)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    MPIX_Queue_info info        = {.num_waits = 0};
    char *text                  = NULL;
    size_t size                 = 0;
    FILE *file                  = open_memstream(&text, &size);

    while (strstr(info.waits_for, what) == NULL) {
        nanosleep(&pause, NULL);
        MPIX_OK(MPIX_Queue_get_info(&info));
    }
    MPIX_CHECK(info.num_waits == 1, "%d wait", info.num_waits);
    MPIX_OK(MPIX_Queue_print_stats(file));
    fclose(file);
    MPIX_CHECK((strstr(text, "\nwaits_for rank 0: a queue has waited for ") !=
                NULL) && (strstr(text, what) != NULL), "%s", text);
    free(text);
}

/* The send of rank 1 and the receive of rank 0. */
static MPI_Request make(int tag)
{
    MPI_Request request;

    MPIX_OK((mpix_test.rank == 0) ?
            MPI_Recv_init(&word, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, &request) :
            MPI_Send_init(&word, 1, MPI_INT, 0, tag, MPI_COMM_WORLD,
                          &request));
    return request;
}

/* One side forgets to match. */
static void run_forget(void)
{
    MPI_Request request = make(TAG);

    if (mpix_test.rank == 1) {
        delay(NULL);
    }
    MPIX_OK(MPIX_Matchall(1, &request, MPI_STATUSES_IGNORE));
    MPIX_OK(MPI_Request_free(&request));
}

/* The tags differ. */
static void run_tags(void)
{
    MPI_Request request;

    if (mpix_test.rank == 1) {
        request = make(OTHER);
        MPIX_OK(MPIX_Imatch(&request));
        delay(&request);
        MPIX_OK(MPI_Request_free(&request));
    }
    request = make(TAG);
    MPIX_OK(MPIX_Matchall(1, &request, MPI_STATUSES_IGNORE));
    MPIX_OK(MPI_Request_free(&request));
}

/* All match their sends, and then would their receives: two ranks that have
 * announced the same to each other, or more in a ring, where none has announced
 * anything to that for which it waits. */
static void run_order(void)
{
    int is_matched = 0;
    MPI_Request send, recv;

    MPIX_OK(MPI_Send_init(&word, 1, MPI_INT, mpix_test.right, TAG,
                          MPI_COMM_WORLD, &send));
    MPIX_OK(MPI_Recv_init(&word, 1, MPI_INT, mpix_test.left, TAG,
                          MPI_COMM_WORLD, &recv));
    if (mpix_test.rank == 0) {
        MPIX_OK(MPIX_Match(&send, MPI_STATUS_IGNORE));
    } else {
        MPIX_OK(MPIX_Imatch(&send));
        delay(&send);
    }
    MPIX_OK(MPIX_Match(&recv, MPI_STATUS_IGNORE));
    while (!is_matched) {
        MPIX_OK(MPIX_Is_matched(&send, &is_matched, MPI_STATUS_IGNORE));
    }
    MPIX_OK(MPI_Request_free(&send));
    MPIX_OK(MPI_Request_free(&recv));
}

/* The other side uses MPI's plain receive. */
static void run_plain(void)
{
    MPI_Request request;
    int other;

    if (mpix_test.rank == 0) {
        MPIX_OK(MPI_Send_init(&word, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD,
                              &request));
    } else {
        MPIX_OK(MPI_Irecv(&other, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD,
                          &request));
        delay(NULL);
        MPIX_OK(MPI_Cancel(&request));
        MPIX_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        MPIX_OK(MPI_Recv_init(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD,
                              &request));
    }
    MPIX_OK(MPIX_Matchall(1, &request, MPI_STATUSES_IGNORE));
    MPIX_OK(MPI_Request_free(&request));
}

/* One side starts, the other one never does. */
static void run_start(void)
{
    MPI_Request request = make(TAG);

    MPIX_OK(MPIX_Matchall(1, &request, MPI_STATUSES_IGNORE));
    if (mpix_test.rank == 1) {
        delay(NULL);
    }
    MPIX_OK(MPIX_Enqueue_start(mpix_test.queue, &request));
    MPIX_OK(MPIX_Enqueue_wait(mpix_test.queue, &request));
    if (mpix_test.rank == 0) {
        until_told("receive of 4 bytes (MPI_INT) from rank 1, tag 9, use 1, ");
    }
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPI_Request_free(&request));
}

/* The same with a start by the host. */
static void run_host(void)
{
    MPI_Request request = make(TAG);

    MPIX_OK(MPIX_Matchall(1, &request, MPI_STATUSES_IGNORE));
    if (mpix_test.rank == 1) {
        delay(NULL);
    }
    MPIX_OK(MPI_Start(&request));
    MPIX_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPIX_OK(MPI_Request_free(&request));
}

/* Nobody sends the message that is received once. */
static void run_once(void)
{
    MPI_Request request;

    if (mpix_test.rank == 1) {
        delay(NULL);
        MPIX_OK(MPI_Send(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD));
        return;
    }
    MPIX_OK(MPIX_Enqueue_recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, TAG,
                              MPI_COMM_WORLD, mpix_test.queue, &request));
    MPIX_OK(MPIX_Enqueue_start(mpix_test.queue));
    MPIX_OK(MPIX_Enqueue_wait(mpix_test.queue));
    MPIX_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* One side exposes its window late, and the other one its own to it, and comes
 * late, too. */
static void run_window(void)
{
    const int other = 1 - mpix_test.rank;
    MPI_Group world, group;
    MPI_Win win;
    int *base;

    MPIX_OK(MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                             &base, &win));
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &other, &group);
    if (mpix_test.rank == 1) {
        MPIX_OK(MPIX_Win_post_stream(group, win, mpix_test.stream));
        MPIX_OK(MPIX_Win_wait_stream(win, mpix_test.stream));
        delay(NULL);
    }
    if (mpix_test.rank == 0) {
        MPIX_OK(MPI_Win_start(group, MPIX_MODE_STREAM, win));
        MPIX_OK(MPIX_Win_complete_stream(win, mpix_test.stream));
        MPIX_OK(MPIX_Win_post_stream(group, win, mpix_test.stream));
        MPIX_OK(MPIX_Win_wait_stream(win, mpix_test.stream));
        until_told("MPIX_Win_complete_stream of rank 1 of a window");
    } else {
        MPIX_OK(MPI_Win_start(group, MPIX_MODE_STREAM, win));
        MPIX_OK(MPIX_Win_complete_stream(win, mpix_test.stream));
    }
    MPIX_OK(MPI_Win_free(&win));
    MPI_Group_free(&group);
    MPI_Group_free(&world);
}

/* Epochs that do not fit, of four windows, until MPI_Finalize: a start without
 * its post, a post without its start, and one of each that is left open. The
 * stream stays, as it has work left. */
static void run_finalize(void)
{
    const int other = 1 - mpix_test.rank;
    MPI_Group world, group;
    MPI_Win win[4];
    void *stream;
    int *base;
    int i;

    MPIX_OK(MPIX_Host_stream_create(&stream));
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &other, &group);
    for (i = 0; i < 4; ++i) {
        MPIX_OK(MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                                 &base, &win[i]));
    }
    if (mpix_test.rank == 0) {
        MPIX_OK(MPI_Win_start(group, MPIX_MODE_STREAM, win[0]));
        MPIX_OK(MPIX_Win_complete_stream(win[0], stream));
        MPIX_OK(MPI_Win_start(group, MPIX_MODE_STREAM, win[2]));
    } else {
        MPIX_OK(MPIX_Win_post_stream(group, win[1], stream));
        MPIX_OK(MPIX_Win_wait_stream(win[1], stream));
        MPIX_OK(MPIX_Win_post_stream(group, win[3], stream));
    }
    MPI_Group_free(&group);
    MPI_Group_free(&world);
}

/* The same on a communicator that is for queues only, where MPI's send meets
 * nothing: the queue's does, then. */
static void run_only(void)
{
    MPI_Request request, plain = MPI_REQUEST_NULL;
    int other = 0;
    MPI_Comm comm;
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_queue_only", "true");
    MPIX_OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    MPI_Info_free(&info);
    if (mpix_test.rank == 0) {
        MPIX_OK(MPIX_Enqueue_recv(&word, 1, MPI_INT, 1, TAG, comm,
                                  mpix_test.queue, &request));
        MPIX_OK(MPIX_Enqueue_start(mpix_test.queue));
        MPIX_OK(MPIX_Enqueue_wait(mpix_test.queue));
        MPIX_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        MPIX_OK(MPI_Recv(&other, 1, MPI_INT, 1, TAG, comm, MPI_STATUS_IGNORE));
    } else {
        MPIX_OK(MPI_Isend(&other, 1, MPI_INT, 0, TAG, comm, &plain));
        delay(NULL);
        MPIX_OK(MPIX_Enqueue_send(&word, 1, MPI_INT, 0, TAG, comm,
                                  mpix_test.queue, &request));
        MPIX_OK(MPIX_Enqueue_start(mpix_test.queue));
        MPIX_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        MPIX_OK(MPI_Wait(&plain, MPI_STATUS_IGNORE));
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"forget", run_forget}, {"tags", run_tags},   {"order", run_order},
        {"ring", run_order},    {"plain", run_plain}, {"start", run_start},
        {"host", run_host},     {"once", run_once},   {"only", run_only},
        {"window", run_window}, {"finalize", run_finalize},
        {NULL, NULL}
    };

    mpix_test_init_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    if (argc != 3) {
        fprintf(stderr, "usage: mpix_waits CASE FILE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    go = argv[2];
    if (mpix_test.rank == 0) {
        printf("pid %d\n", (int)getpid());
        fflush(stdout);
    }
    mpix_test_cases(cases, 2, argv);
    return mpix_test_end("mpix_waits");
}
