/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat_mpis.c - a program for MPI Advance's stream-triggering library, as
 * that is used, on compat/stream-triggering.h. C and C++.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE
#endif
#include <mpi.h>
#include "stream-triggering.h"

/* For host streams, too: that library's own are those of GPUs */
#include "mpix_test.h"
#include <mpix_host_stream.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 10, STEPS = 20 };

static int rank, size, failed;

#define CHECK(_cond) check((_cond) ? 1 : 0, #_cond, __LINE__)

static void check(int ok, const char *what, int line)
{
    if (!ok) {
        printf("FAILED rank %d line %d: %s\n", rank, line, what);
        ++failed;
    }
}

static int *alloc_ints(int count)
{
    void *place = NULL;
    MPI_Info info;
    int i;

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_memory_alloc_kinds", "system");
    CHECK(MPIS_Alloc_mem(sizeof(int) * count, info, &place) == MPIS_SUCCESS);
    MPI_Info_free(&info);
    for (i = 0; i < count; ++i) {
        ((int*)place)[i] = -1;
    }
    return (int*)place;
}

/* A message goes around a ring. The host waits before it reads what came, as it
 * has to with a queue of type THREAD. */
static void run_ring(void)
{
    int *send_buf = alloc_ints(COUNT);
    int *recv_buf = alloc_ints(COUNT);
    MPIS_Request requests[2];
    MPIS_Queue queue;
    int i;

    CHECK(MPIS_Queue_init(&queue, THREAD, NULL) == MPIS_SUCCESS);
    MPIS_Send_init(send_buf, COUNT, MPI_INT, (rank + 1) % size, 0,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPIS_Recv_init(recv_buf, COUNT, MPI_INT, (rank - 1 + size) % size, 0,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
    CHECK(MPIS_Matchall(2, requests, MPI_STATUSES_IGNORE) == MPIS_SUCCESS);

    if (rank == 0) {
        for (i = 0; i < COUNT; ++i) {
            send_buf[i] = i;
        }
        MPIS_Enqueue_startall(queue, 2, requests);
        MPIS_Enqueue_waitall(queue);
    } else {
        MPIS_Enqueue_start(queue, &requests[1]);
        MPIS_Enqueue_waitall(queue);
        MPIS_Queue_wait(queue);
        for (i = 0; i < COUNT; ++i) {
            send_buf[i] = recv_buf[i] + 100;
        }
        MPIS_Enqueue_start(queue, &requests[0]);
        MPIS_Enqueue_waitall(queue);
    }
    CHECK(MPIS_Queue_wait(queue) == MPIS_SUCCESS);
    CHECK(recv_buf[COUNT - 1] ==
          (COUNT - 1 + 100 * ((rank + size - 1) % size)));

    CHECK(MPIS_Request_freeall(2, requests) == MPIS_SUCCESS);
    CHECK(requests[1] == MPIS_REQUEST_NULL);
    MPIS_Free_mem(send_buf);
    MPIS_Free_mem(recv_buf);
    CHECK(MPIS_Queue_free(&queue) == MPIS_SUCCESS);
    CHECK(queue == MPIS_QUEUE_NULL);
}

/* A step of run_steps(), of the stream. */
struct step {
    int *send_buf;
    int *recv_buf;
    int number;
    int wrong;
};

static void pack(void *arg)
{
    struct step *step = (struct step*)arg;

    step->send_buf[0] = 1000 * rank + step->number;
    step->send_buf[1] = -step->send_buf[0];
}

static void verify(void *arg)
{
    struct step *step = (struct step*)arg;
    int from          = (rank + size - 1) % size;

    step->wrong += (step->recv_buf[0] != (1000 * from + step->number)) ||
                   (step->recv_buf[1] != -step->recv_buf[0]);
    ++step->number;
}

/* Many steps on a stream that is given by its place; two messages, which are
 * matched one by one, of types of queues that are for GPUs. */
static void run_steps(MPIS_Queue_type type)
{
    struct step step = {alloc_ints(2), alloc_ints(2), 0, 0};
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPIS_Request requests[4], matches[4];
    MPIS_Queue queue;
    void *stream;
    int i, is_matched = 0;

    CHECK(mpix_test_stream(&stream) == MPI_SUCCESS);
    CHECK(MPIS_Queue_init(&queue, type, &stream) == MPIS_SUCCESS);
    for (i = 0; i < 2; ++i) {
        MPIS_Recv_init(&step.recv_buf[i], 1, MPI_INT, left, i, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &requests[i]);
        MPIS_Send_init(&step.send_buf[i], 1, MPI_INT, right, i, MPI_COMM_WORLD,
                       MPI_INFO_NULL, &requests[2 + i]);
    }
    CHECK(MPIS_Is_matched(&requests[0], &is_matched) == MPIS_SUCCESS);
    CHECK(!is_matched);
    for (i = 0; i < 4; ++i) {
        CHECK(MPIS_Imatch(&requests[i], &matches[i]) == MPIS_SUCCESS);
    }
    CHECK(MPIS_Wait(&matches[0], MPI_STATUS_IGNORE) == MPIS_SUCCESS);
    CHECK(matches[0] == MPIS_REQUEST_NULL);
    CHECK(MPIS_Waitall(4, matches, MPI_STATUSES_IGNORE) == MPIS_SUCCESS);
    for (i = 0; i < 4; ++i) {
        CHECK(MPIS_Is_matched(&requests[i], &is_matched) == MPIS_SUCCESS);
        CHECK(is_matched);
    }

    for (i = 0; i < STEPS; ++i) {
        MPIX_Host_stream_launch(stream, pack, &step);
        MPIS_Enqueue_startall(queue, 2, requests);
        MPIS_Enqueue_start(queue, &requests[2]);
        MPIS_Enqueue_start(queue, &requests[3]);
        MPIS_Enqueue_waitall(queue);
        MPIX_Host_stream_launch(stream, verify, &step);
    }
    CHECK(MPIS_Enqueue_waitall(queue) == MPIS_SUCCESS); /* Of nothing */
    CHECK(MPIS_Queue_wait(queue) == MPIS_SUCCESS);
    MPIX_Host_stream_synchronize(stream);
    CHECK((step.wrong == 0) && (step.number == STEPS));

    MPIS_Request_freeall(4, requests);
    MPIS_Queue_free(&queue);
    MPIX_Host_stream_free(&stream);
    MPIS_Free_mem(step.send_buf);
    MPIS_Free_mem(step.recv_buf);
}

/* A ready send, whose receive is started before a barrier. */
static void run_ready(void)
{
    int in = -1, out = rank;
    MPIS_Request requests[2];
    MPIS_Queue queue;
    MPI_Status status;
    int count;

    MPIS_Queue_init(&queue, THREAD, NULL);
    MPIS_Recv_init(&in, 1, MPI_INT, size - 1 - rank, 5, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &requests[0]);
    MPIS_Rsend_init(&out, 1, MPI_INT, size - 1 - rank, 5, MPI_COMM_WORLD,
                    MPI_INFO_NULL, &requests[1]);
    if (2 * rank + 1 == size) {
        MPIS_Matchall(2, requests, MPI_STATUSES_IGNORE);
    } else if (2 * rank < size) {
        CHECK(MPIS_Match(&requests[0], &status) == MPIS_SUCCESS);
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK((count == 1) && (status.MPI_SOURCE == (size - 1 - rank)));
        CHECK(MPIS_Queue_match(queue, &requests[1], MPI_STATUS_IGNORE) ==
              MPIS_SUCCESS);
    } else {
        MPIS_Match(&requests[1], MPI_STATUS_IGNORE);
        MPIS_Match(&requests[0], MPI_STATUS_IGNORE);
    }
    MPIS_Enqueue_start(queue, &requests[0]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPIS_Enqueue_start(queue, &requests[1]);
    MPIS_Enqueue_waitall(queue);
    MPIS_Queue_wait(queue);
    CHECK(in == (size - 1 - rank));
    MPIS_Request_freeall(2, requests);
    MPIS_Queue_free(&queue);
}

/* Collectives, which are matched together with a message, by one call or one by
 * one; a queue waits for all of them. */
static void run_collectives(int is_together)
{
    int in = -1, out = 0, sum[2] = {-1, -1}, part[2] = {0, 0};
    MPIS_Request requests[4], matches[3];
    MPIS_Queue queue;
    int i, is_matched = 0;

    MPIS_Queue_init(&queue, THREAD, NULL);
    MPIS_Recv_init(&in, 1, MPI_INT, (rank + size - 1) % size, 7,
                   MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    CHECK(MPIS_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]) ==
          MPIS_SUCCESS);
    CHECK(MPIS_Allreduce_init(part, sum, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                              MPI_INFO_NULL, &requests[2]) == MPIS_SUCCESS);
    MPIS_Send_init(&out, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &requests[3]);
    CHECK(MPIS_Enqueue_start(queue, &requests[1]) ==
          MPIS_INVALID_REQUEST_STATE);
    if (is_together) {
        CHECK(MPIS_Matchall(4, requests, MPI_STATUSES_IGNORE) == MPIS_SUCCESS);
    } else {
        CHECK(MPIS_Imatch(&requests[1], &matches[0]) == MPIS_SUCCESS);
        CHECK(MPIS_Match(&requests[2], MPI_STATUS_IGNORE) == MPIS_SUCCESS);
        CHECK(MPIS_Imatch(&requests[0], &matches[1]) == MPIS_SUCCESS);
        CHECK(MPIS_Imatch(&requests[3], &matches[2]) == MPIS_SUCCESS);
        CHECK(MPIS_Waitall(3, matches, MPI_STATUSES_IGNORE) == MPIS_SUCCESS);
        CHECK(MPIS_Is_matched(&requests[1], &is_matched) == MPIS_SUCCESS);
        CHECK(is_matched);
    }

    for (i = 0; i < STEPS; ++i) {
        out     = 100 * i + rank;
        part[0] = rank + i;
        part[1] = -i;
        CHECK(MPIS_Enqueue_start(queue, &requests[2]) == MPIS_SUCCESS);
        CHECK(MPIS_Enqueue_startall(queue, 2, requests) == MPIS_SUCCESS);
        CHECK(MPIS_Enqueue_start(queue, &requests[3]) == MPIS_SUCCESS);
        CHECK(MPIS_Enqueue_waitall(queue) == MPIS_SUCCESS);
        CHECK(MPIS_Queue_wait(queue) == MPIS_SUCCESS);
        CHECK(in == (100 * i + (rank + size - 1) % size));
        CHECK(sum[0] == (size * (size - 1) / 2 + size * i));
        CHECK(sum[1] == (-size * i));
    }

    CHECK(MPIS_Request_freeall(4, requests) == MPIS_SUCCESS);
    CHECK(MPIS_Queue_free(&queue) == MPIS_SUCCESS);
}

/* Whether a code is of this class, and its string names the function, which
 * MPICH has not. */
static int is_error(int kind, int code, const char *func)
{
    char text[MPI_MAX_ERROR_STRING];
    int got, length;

    MPI_Error_class(code, &got);
    MPI_Error_string(code, text, &length);
#ifdef MPICH_VERSION
    return got == kind;
#else
    return (got == kind) && (strstr(text, func) != NULL);
#endif
}

/* A file in place of stderr, and what that was. */
static FILE *printed;
static int stderr_copy;

static void catch_stderr(void)
{
    printed     = tmpfile();
    stderr_copy = dup(2);
    fflush(stderr);
    dup2(fileno(printed), 2);
}

/* Whether this was printed since. */
static int release_stderr(const char *text)
{
    char line[1024] = "";
    int is_found    = 0;

    fflush(stderr);
    dup2(stderr_copy, 2);
    close(stderr_copy);
    rewind(printed);
    while (fgets(line, sizeof(line), printed) != NULL) {
        is_found = is_found || (strstr(line, text) != NULL);
    }
    fclose(printed);
    return is_found;
}

/* Codes that are not MPI's come with a line on stderr. */
static void run_printed(void)
{
    static const char *const kinds[] = {"rocm:device:coarse",
                                        "rocm:device:fine"};
    void *no_stream      = &no_stream;
    void *place          = NULL;
    MPIS_Queue queue     = MPIS_QUEUE_NULL;
    MPIS_Request request = MPIS_REQUEST_NULL;
    MPI_Info info;
    int i;

    if (mpix_test.queue_type == MPIX_QUEUE_HOST) { /* Else it may be one */
        catch_stderr();
        MPIS_Queue_init(&queue, CXI, &no_stream);
        CHECK(release_stderr("MPIS_Queue_init: a queue of type CXI"));
    }
    catch_stderr();
    MPIS_Queue_init(&queue, (MPIS_Queue_type)2, NULL);
    CHECK(release_stderr("MPIS_Queue_init: unknown type 2"));
    catch_stderr();
    MPIS_Match(&request, MPI_STATUS_IGNORE);
    CHECK(release_stderr("MPIS_Match: the request"));

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_memory_alloc_kinds", "rocm:device:none");
    catch_stderr();
    MPIS_Alloc_mem(8, info, &place);
    CHECK(release_stderr("MPIS_Alloc_mem: memory of kind \"rocm:"));
    for (i = 0; i < 2; ++i) {
        MPI_Info_set(info, "mpi_memory_alloc_kinds", kinds[i]);
        catch_stderr();
        if (MPIS_Alloc_mem(8, info, &place) == MPIS_SUCCESS) {
            MPIS_Free_mem(place);
            release_stderr(""); /* There is such a device */
        } else {
            CHECK(release_stderr("no memory of kind \"rocm:device:"));
        }
    }
    MPI_Info_free(&info);
}

/* What is refused, and by which code. */
static void run_refused(void)
{
    void *no_stream    = &no_stream;
    void *place        = NULL;
    MPIS_Queue queue   = MPIS_QUEUE_NULL;
    MPIS_Request match = MPIS_REQUEST_NULL;
    MPIS_Request request;
    MPI_Info info;
    int number = 0;
    int kind   = 0;

    if (mpix_test.queue_type == MPIX_QUEUE_HOST) { /* Else they may be some */
        CHECK(MPIS_Queue_init(&queue, GPU_MEM_OPS, &no_stream) ==
              MPIS_UNSUPPORTED_BEHAVIOR);
        CHECK(MPIS_Queue_init(&queue, CXI, NULL) == MPIS_UNSUPPORTED_BEHAVIOR);
        CHECK(MPIS_Queue_init(&queue, THREAD, &no_stream) ==
              MPIS_UNSUPPORTED_BEHAVIOR);
    }
    CHECK(MPIS_Queue_init(&queue, (MPIS_Queue_type)2, NULL) ==
          MPIS_UNSUPPORTED_BEHAVIOR);
    CHECK(queue == MPIS_QUEUE_NULL);
    CHECK(is_error(MPI_ERR_ARG, MPIS_Queue_wait(queue), "MPIS_Queue_wait"));
    CHECK(is_error(MPI_ERR_ARG, MPIS_Queue_free(&queue), "MPIS_Queue_free"));
    CHECK(is_error(MPI_ERR_ARG, MPIS_Enqueue_waitall(queue),
                   "MPIS_Enqueue_waitall"));
    CHECK(is_error(MPI_ERR_ARG, MPIS_Enqueue_start(queue, &match),
                   "MPIS_Enqueue_start"));
    CHECK(is_error(MPI_ERR_ARG,
                   MPIS_Queue_match(queue, &match, MPI_STATUS_IGNORE),
                   "MPIS_Queue_match"));

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_memory_alloc_kinds", "rocm:device:none");
    CHECK(MPIS_Alloc_mem(8, info, &place) == MPIS_UNSUPPORTED_BEHAVIOR);
    CHECK(place == NULL);
    MPI_Info_free(&info);

    MPIS_Queue_init(&queue, THREAD, NULL);
    MPIS_Recv_init(&number, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &request);
    CHECK(MPIS_Enqueue_start(queue, &request) == MPIS_INVALID_REQUEST_STATE);
    CHECK(MPIS_Wait(&request, MPI_STATUS_IGNORE) == MPIS_UNSUPPORTED_BEHAVIOR);
    MPI_Error_class(MPIS_Match(&request, MPI_STATUS_IGNORE), &kind);
    CHECK(kind == MPI_ERR_RANK);
    MPI_Error_class(MPIS_Imatch(&request, &match), &kind);
    CHECK(kind == MPI_ERR_RANK);
    CHECK(match == MPIS_REQUEST_NULL);
    CHECK(MPIS_Request_free(&request) == MPIS_SUCCESS);
    CHECK(MPIS_Request_free(&request) == MPIS_SUCCESS);
    CHECK(MPIS_Match(&request, MPI_STATUS_IGNORE) ==
          MPIS_INVALID_REQUEST_STATE);
    MPI_Error_class(MPIS_Recv_init(&number, -5, MPI_INT, 0, 0, MPI_COMM_WORLD,
                                   MPI_INFO_NULL, &request), &kind);
    CHECK(kind == MPI_ERR_COUNT);
    MPIS_Queue_free(&queue);
}

int main(int argc, char **argv)
{
    int total, mode;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &mode);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

    if (rank == 0) {
        MPIS_Hello_world();
    }
    run_ring();
    run_steps(THREAD);
    run_steps(GPU_MEM_OPS);
    run_steps(CXI);
    run_ready();
    run_collectives(1);
    run_collectives(0);
    run_refused();
    run_printed();

    MPI_Allreduce(&failed, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("compat_mpis: %d ranks, %d checks failed\n", size, total);
    }
    MPI_Finalize();
    return total != 0;
}
