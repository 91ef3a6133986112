/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat_paper.c - a program with the names of the 2026 paper, for MPI itself:
 * a ring, on compat/mpi_queue_paper.h. C and C++.
 */
#include "mpi_queue_paper.h"

#include "mpix_test.h"

#include <stdio.h>

enum { STEPS = 10 };

static int rank, size, wrong, step, in[2], out[2];

static void pack(void *arg)
{
    out[0] = 100 * rank + step;
    out[1] = -out[0];
}

static void verify(void *arg)
{
    wrong += (in[0] != (100 * ((rank + size - 1) % size) + step)) ||
             (in[1] != -in[0]);
    ++step;
}

static MPI_Request requests[4];

static void init_requests(int left, int right)
{
    int i;

    for (i = 0; i < 2; ++i) {
        MPI_Recv_init(&in[i], 1, MPI_INT, left, i, MPI_COMM_WORLD,
                      &requests[i]);
        MPI_Send_init(&out[i], 1, MPI_INT, right, i, MPI_COMM_WORLD,
                      &requests[2 + i]);
    }
}

static void free_requests(void)
{
    int i;

    for (i = 0; i < 4; ++i) {
        MPI_Request_free(&requests[i]);
    }
}

/* Without requests for matches, as mpix_queue.h has it */
static void match_plain(void)
{
    int i, is_matched = 0;
    MPI_Status status;

    MPI_Imatch(&requests[0]);
    MPI_Imatchall(1, &requests[1]);
    if (size == 1) {
        MPI_Matchall(2, &requests[2], MPI_STATUSES_IGNORE);
    } else {
        MPI_Match(&requests[2], MPI_STATUS_IGNORE);
        MPI_Match(&requests[3], &status);
    }
    for (i = 0; i < 2; i += is_matched) {
        MPI_Is_matched(&requests[i], &is_matched, MPI_STATUS_IGNORE);
    }
}

/* With requests, as the paper has it: MPI's calls wait for them, and test
 * them, among others */
static void match_requests(void)
{
    MPI_Request matches[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                              MPI_REQUEST_NULL};
    int k, flag = 0, index = -1, is_matched = 0;
    MPI_Status status;

    MPI_Imatch(&requests[0], &matches[0]);
    MPI_Imatchall(2, &requests[2], &matches[1]);
    MPI_Imatch(&requests[1], &matches[2]);
    wrong += (matches[0] == MPI_REQUEST_NULL) || (matches[0] == matches[1]);
    while (!flag) {
        MPI_Test(&matches[2], &flag, &status);
    }
    wrong += (matches[2] != MPI_REQUEST_NULL);
    MPI_Waitany(2, matches, &index, &status);
    MPI_Waitall(2, matches, MPI_STATUSES_IGNORE);
    for (k = 0; k < 4; ++k) {
        MPI_Is_matched(&requests[k], &is_matched, MPI_STATUS_IGNORE);
        wrong += !is_matched;
    }
}

/* A request of a match is freed, or its match fails */
static void match_badly(int left, int right)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int index           = 7;
    int is_matched      = 0;
    MPI_Request other, match;

    MPI_Recv_init(&in[0], 1, MPI_INT, left, 8, MPI_COMM_WORLD, &request);
    MPI_Send_init(&out[0], 1, MPI_INT, right, 8, MPI_COMM_WORLD, &other);
    MPI_Imatch(&request, &match);
    MPI_Request_free(&match);
    MPI_Imatch(&other, &match);
    MPI_Wait(&match, MPI_STATUS_IGNORE);
    while (!is_matched) {
        MPI_Is_matched(&request, &is_matched, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    MPI_Request_free(&other);

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    request = MPI_REQUEST_NULL;
    wrong  += (MPI_Imatch(&request, &match) == MPI_SUCCESS);
    wrong  += (MPI_Imatchall(-1, &request, &match) == MPI_SUCCESS);
    wrong  += (MPI_Imatchall(1, &request, (MPI_Request*)0) == MPI_SUCCESS);
    MPI_Recv_init(&in[0], 2, MPI_INT, left, 9, MPI_COMM_WORLD, &request);
    MPI_Send_init(&out[0], 4, MPI_INT, right, 9, MPI_COMM_WORLD, &other);
    MPI_Imatch(&other, &match);
    MPI_Imatch(&request);
    wrong += (MPI_Waitany(1, &match, &index, MPI_STATUS_IGNORE) ==
              MPI_SUCCESS); /* is longer than its receive */
    do {
        is_matched = 0;
    } while (MPI_Is_matched(&request, &is_matched, MPI_STATUS_IGNORE) ==
             MPI_SUCCESS);
    MPI_Request_free(&request);
    MPI_Request_free(&other);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* A request of a communicator that was freed, and one that the host waits for
 * though it was started on the queue */
static void use_freed(MPI_Queue queue, int left, int right)
{
    MPI_Request uses[2], match;
    int code, i;
    MPI_Comm dup;

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Recv_init(&in[0], 1, MPI_INT, left, 0, dup, &uses[0]);
    MPI_Send_init(&out[0], 1, MPI_INT, right, 0, dup, &uses[1]);
    MPI_Imatchall(2, uses, &match);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN);
    MPI_Comm_free(&dup);
    code   = MPI_Cancel(&match);
    wrong += (code != MPI_SUCCESS) && (match == MPI_REQUEST_NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Wait(&match, MPI_STATUS_IGNORE);
    for (i = 0; i < 3; ++i) {
        MPI_Enqueue_startall(queue, 2, uses);
        if (i < 2) {
            MPI_Waitall(2, uses, MPI_STATUSES_IGNORE);
        } else {
            MPI_Enqueue_waitall(queue);
        }
    }
    MPI_Queue_wait(queue);
    MPI_Request_free(&uses[0]);
    MPI_Request_free(&uses[1]);
}

static void run_steps(MPI_Queue queue, void *stream)
{
    int i;

    step = 0;
    for (i = 0; i < STEPS; ++i) {
        MPIX_Host_stream_launch(stream, pack, NULL);
        MPI_Enqueue_startall(queue, 2, requests);
        MPI_Enqueue_start(queue, &requests[2]);
        MPI_Enqueue_start(queue, &requests[3]);
        if ((i % 2) == 0) {
            MPI_Enqueue_waitall(queue, 3, requests);
            MPI_Enqueue_wait(queue, &requests[3]);
        } else {
            MPI_Enqueue_wait(queue, &requests[1]);
            MPI_Enqueue_waitall(queue);
        }
        MPIX_Host_stream_launch(stream, verify, NULL);
    }
    MPI_Enqueue_waitall(queue); /* for nothing */
    MPI_Queue_wait(queue);
    MPIX_Host_stream_synchronize(stream);
    wrong += (step != STEPS);
}

int main(int argc, char **argv)
{
    MPI_Queue queue = MPI_QUEUE_NULL;
    int left, right, total;
    void *stream;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    left  = (rank + size - 1) % size;
    right = (rank + 1) % size;
    wrong += (mpix_test_stream(&stream) != MPI_SUCCESS);

    MPI_Queue_init(mpix_test.queue_type, stream, &queue);
    init_requests(left, right);
    match_plain();
    run_steps(queue, stream);
    free_requests();
    MPI_Queue_free(&queue);
    wrong += (queue != MPI_QUEUE_NULL);

    MPI_Queue_init(&queue, CXI, &stream); /* as in figure 2 */
    init_requests(left, right);
    match_requests();
    run_steps(queue, stream);
    free_requests();
    match_badly(left, right);
    use_freed(queue, left, right);
    MPI_Queue_free(&queue);

    MPIX_Host_stream_free(&stream);
    MPI_Allreduce(&wrong, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("compat_paper: %d ranks, %d wrong\n", size, total);
    }
    MPI_Finalize();
    return total != 0;
}
