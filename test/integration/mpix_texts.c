/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_texts.c - texts of errors name the cause, and their ends are there.
 */
#include "mpix_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG 9

/* Requests of a call: the one that it is about is the last */
#define MANY 10001


/* Whether the code is of this class, and its text has these words. With `end`
 * it ends with them. */
static void check_text(int code, int class, const char *words, int end)
{
    char text[MPI_MAX_ERROR_STRING];
    const char *found;

    if (!mpix_test_text(code, class, text)) {
        return;
    }
    found = strstr(text, words);
    MPIX_CHECK((found != NULL) && (!end || !strcmp(found, words)),
               "no \"%s\" in \"%s\"", words, text);
}

/* The largest tag that MPI has. */
static int tag_max(void)
{
    void *value;
    int flag;

    MPIX_OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    return flag ? *(int*)value : TAG;
}

/* The longest text of a call, about a request of which there is much to say. */
static void test_long(void)
{
    MPI_Request *requests       = malloc(MANY * sizeof(*requests));
    MPI_Request *pair           = &requests[MANY - 2];
    unsigned long long words[2] = {0, 0};
    char name[80];
    int i, code;

    for (i = 0; i < MANY; ++i) {
        requests[i] = MPI_REQUEST_NULL;
    }
    MPI_Send_init(&words[0], 1, MPI_UNSIGNED_LONG_LONG, mpix_test.right,
                  tag_max(), MPI_COMM_WORLD, &pair[0]);
    MPI_Recv_init(&words[1], 1, MPI_UNSIGNED_LONG_LONG, mpix_test.left,
                  tag_max(), MPI_COMM_WORLD, &pair[1]);
    MPIX_OK(MPIX_Matchall(2, pair, MPI_STATUSES_IGNORE));

    MPIX_OK(MPIX_Enqueue_start(mpix_test.queue, &pair[1]));
    code = MPIX_Enqueue_startall(mpix_test.queue, MANY, requests);
    check_text(code, MPI_ERR_REQUEST,
               "is started and not waited for (MPIX_Enqueue_waitall), or in "
               "use on another queue (MPIX_Queue_wait)", 1);
    snprintf(name, sizeof(name), "_LONG) from rank %d, tag %d, is started",
             mpix_test.left, tag_max());
    check_text(code, MPI_ERR_REQUEST, name, 0);

    MPIX_OK(MPIX_Enqueue_start(mpix_test.queue, &pair[0]));
    MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 2, pair));
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPI_Request_free(&pair[0]));
    MPIX_OK(MPI_Request_free(&pair[1]));
    free(requests);
}

/* The peer frees its half without the use that is waited for here: by a queue,
 * and by the host. */
static void test_unstarted(void)
{
    static const char words[] =
            " failed: the peer has freed its half, has ended or had an error "
            "before it started this use";
    mpix_test_msg_t send, recv;
    MPIX_Queue queue;
    void *stream;

    MPIX_OK(MPIX_Host_stream_create(&stream));
    MPIX_OK(MPIX_Queue_init(MPIX_QUEUE_HOST, stream, &queue));
    mpix_test_send_init(&send, 16, mpix_test.right, TAG, 1);
    mpix_test_recv_init(&recv, 16, mpix_test.left, TAG, 1);
    mpix_test_match(&send, 1, &recv, 1);
    MPIX_OK(MPIX_Enqueue_start(queue, &recv.request));
    MPIX_OK(MPIX_Enqueue_wait(queue, &recv.request));
    MPI_Barrier(MPI_COMM_WORLD);
    mpix_test_msg_free(&send);

    check_text(MPIX_Queue_wait(queue), MPI_ERR_OTHER, words, 1);
    check_text(MPI_Wait(&recv.request, MPI_STATUS_IGNORE), MPI_ERR_OTHER,
               &words[1], 1);
    check_text(MPIX_Enqueue_start(mpix_test.queue, &recv.request),
               MPI_ERR_OTHER,
               "cannot be started: the peer has freed its half", 1);
    recv.actual = 0;
    mpix_test_msg_free(&recv);
    MPIX_OK(MPIX_Queue_free(&queue));
    MPIX_OK(MPIX_Host_stream_free(&stream));
}

/* The same of a start by the host, which the news of it may be late for. */
static void test_unstarted_host(void)
{
    mpix_test_msg_t send, recv;
    int code;

    mpix_test_send_init(&send, 16, mpix_test.right, TAG, 1);
    mpix_test_recv_init(&recv, 16, mpix_test.left, TAG, 1);
    mpix_test_match(&send, 1, &recv, 1);
    mpix_test_msg_free(&send);
    MPI_Barrier(MPI_COMM_WORLD);
    code = MPI_Start(&recv.request);
    if (code == MPI_SUCCESS) {
        check_text(MPI_Wait(&recv.request, MPI_STATUS_IGNORE), MPI_ERR_OTHER,
                   "before it started this use", 1);
    } else {
        check_text(code, MPI_ERR_OTHER,
                   "cannot be started: a peer has freed its half", 1);
    }
    recv.actual = 0;
    mpix_test_msg_free(&recv);
}

/* What an error of a queue keeps from beginning is not the peer's fault. */
static void test_not_begun(void)
{
    mpix_test_msg_t send[2], recv[2];
    MPIX_Queue queue;
    void *stream;
    int i;

    MPIX_OK(MPIX_Host_stream_create(&stream));
    MPIX_OK(MPIX_Queue_init(MPIX_QUEUE_HOST, stream, &queue));
    for (i = 0; i < 2; ++i) {
        mpix_test_send_init(&send[i], 16, mpix_test.right, TAG + i, 1);
        mpix_test_recv_init(&recv[i], 16, mpix_test.left, TAG + i, 1);
    }
    mpix_test_match(send, 2, recv, 2);
    for (i = 0; i < 2; ++i) { /* The second is behind the first one's wait */
        MPIX_OK(MPIX_Enqueue_start(queue, &recv[i].request));
        MPIX_OK(MPIX_Enqueue_wait(queue, &recv[i].request));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    mpix_test_msg_free(&send[0]);
    check_text(MPIX_Queue_wait(queue), MPI_ERR_OTHER, "tag 9 failed: ", 0);
    check_text(MPI_Wait(&recv[1].request, MPI_STATUS_IGNORE), MPI_ERR_OTHER,
               "tag 10, has not begun: its queue is in error "
               "(MPIX_Queue_wait says why)", 1);

    MPI_Barrier(MPI_COMM_WORLD);
    mpix_test_msg_free(&send[1]);
    for (i = 0; i < 2; ++i) {
        recv[i].actual = 0;
        mpix_test_msg_free(&recv[i]);
    }
    MPIX_OK(MPIX_Queue_free(&queue));
    MPIX_OK(MPIX_Host_stream_free(&stream));
}

/* A receive that is too short says how long the send is, by itself or not. */
static void test_short(void)
{
    MPI_Request requests[2];
    mpix_test_msg_t send, recv;
    MPI_Status statuses[2];
    int i;

    for (i = 0; i < 2; ++i) {
        mpix_test_send_init(&send, 20, mpix_test.right, TAG, 1);
        mpix_test_recv_init(&recv, 19, mpix_test.left, TAG, 1);
        requests[0] = send.request;
        requests[1] = recv.request;
        if (i == 1) {
            mpix_test_exchange_init(1, &recv.request, NULL, &requests[1]);
        }
        MPIX_IS(MPI_ERR_TRUNCATE, MPIX_Matchall(2, requests, statuses));
        check_text(statuses[0].MPI_ERROR, MPI_ERR_TRUNCATE,
                   "the send is larger than the receive", 1);
        check_text(statuses[1].MPI_ERROR, MPI_ERR_TRUNCATE,
                   "receive of 152 bytes", 0);
        check_text(statuses[1].MPI_ERROR, MPI_ERR_TRUNCATE,
                   "the send is larger: 160 bytes", 1);
        if (i == 1) {
            MPIX_OK(MPI_Request_free(&requests[1]));
        }
        recv.actual = 0; /* Nothing was written */
        mpix_test_msg_free(&send);
        mpix_test_msg_free(&recv);
    }
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"long", test_long},
        {"unstarted", test_unstarted},
        {"unstarted_host", test_unstarted_host},
        {"not_begun", test_not_begun},
        {"short", test_short},
        {NULL, NULL}
    };

    mpix_test_init(&argc, &argv);
    mpix_test_cases(cases, argc, argv);
    return mpix_test_end("mpix_texts");
}
