/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_test_once.c - messages that are used once, for the programs that have
 * them: mpix_queue.h marks what uses its calls, and the library then asks MPI
 * for MPI_THREAD_MULTIPLE.
 */
#include "mpix_test.h"


void mpix_test_status(const MPI_Status *status, int source, int tag,
                         size_t words)
{
    int count;

    MPIX_OK(MPI_Get_count(status, MPI_UINT64_T, &count));
    MPIX_CHECK((status->MPI_SOURCE == source) && (status->MPI_TAG == tag) &&
               ((size_t)count == words), "source %d tag %d count %d",
               status->MPI_SOURCE, status->MPI_TAG, count);
}

void mpix_test_once_send(mpix_test_msg_t *msg, int tag, MPI_Comm comm)
{
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_fill, msg));
    MPIX_OK(MPIX_Enqueue_send(msg->words, msg->count, MPI_UINT64_T, msg->dest,
                              tag, comm, mpix_test.queue, &msg->request));
}

void mpix_test_once_recv(mpix_test_msg_t *msg, int source, int tag,
                         MPI_Comm comm)
{
    MPIX_OK(MPIX_Enqueue_recv(msg->words, msg->count, MPI_UINT64_T, source, tag,
                              comm, mpix_test.queue, &msg->request));
}

void mpix_test_once_start(void)
{
    MPIX_OK(MPIX_Enqueue_start(mpix_test.queue));
}

void mpix_test_once_wait(void)
{
    MPIX_OK(MPIX_Enqueue_wait(mpix_test.queue));
}

void mpix_test_queue_wait(void)
{
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
}

void mpix_test_msg_drop(mpix_test_msg_t *msg)
{
    MPIX_CHECK(msg->request == MPI_REQUEST_NULL, "the request is still there");
    msg->request = MPI_REQUEST_NULL;
    mpix_test_msg_free(msg);
}
