/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_paper.c - the calls of compat/mpi_queue_paper.h that mpix_queue.h has
 * not: those that remember what was started on a queue, so that a wait can be
 * for all of it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "compat/mpi_queue_paper.h"
#include "binding/mpix_error.h"
#include "request/mpix_queues.h"

#include <stdlib.h>


int MPIX_Paper_queue_init(MPIX_Queue *queue, int type, void *stream)
{
    if (stream == NULL) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail("MPI_Queue_init", MPI_ERR_ARG,
                                    "the stream's place is NULL"));
    }
    return MPIX_Queue_init(type, *(void**)stream, queue);
}

/* Removes a request, if it is there. */
static void mpix_paper_forget(struct mpix_queue *queue, MPI_Request request)
{
    int i;

    for (i = 0; i < queue->num_started; ++i) {
        if (queue->started[i] == request) {
            queue->started[i] = queue->started[--queue->num_started];
            return;
        }
    }
}

int MPIX_Paper_enqueue_startall(MPIX_Queue queue, int count,
                                MPI_Request requests[])
{
    int rc = MPI_SUCCESS;
    int i;

    if (mpix_queue_is_valid(queue) && (count > 0)) {
        rc = mpix_queue_reserve("MPI_Enqueue_startall", queue, count);
    }
    if (rc != MPI_SUCCESS) {
        return mpix_raise(MPI_COMM_NULL, rc);
    }

    rc = MPIX_Enqueue_startall(queue, count, requests);
    for (i = 0; (i < count) && (rc == MPI_SUCCESS); ++i) {
        if (requests[i] != MPI_REQUEST_NULL) {
            mpix_paper_forget(queue, requests[i]); /* The host has waited */
            queue->started[queue->num_started++] = requests[i];
        }
    }
    return rc;
}

int MPIX_Paper_enqueue_start(MPIX_Queue queue, MPI_Request *request)
{
    return (request == NULL) ? MPIX_Enqueue_start_req(queue, request) :
                               MPIX_Paper_enqueue_startall(queue, 1, request);
}

int MPIX_Paper_enqueue_waitall(MPIX_Queue queue, int count,
                               MPI_Request requests[])
{
    int rc = MPIX_Enqueue_waitall(queue, count, requests);
    int i;

    for (i = 0; (i < count) && (rc == MPI_SUCCESS); ++i) {
        mpix_paper_forget(queue, requests[i]);
    }
    return rc;
}

int MPIX_Paper_enqueue_wait(MPIX_Queue queue, MPI_Request *request)
{
    return (request == NULL) ? MPIX_Enqueue_wait_req(queue, request) :
                               MPIX_Paper_enqueue_waitall(queue, 1, request);
}

int MPIX_Paper_enqueue_waitall_queue(MPIX_Queue queue)
{
    return mpix_queue_is_valid(queue) ?
                   mpix_queue_wait_started(queue) :
                   MPIX_Enqueue_waitall(queue, 0, NULL); /* Refuses it */
}
