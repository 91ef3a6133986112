/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_queue_free.c - how queues go.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_queue_free.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "coll/mpix_coll.h"
#include "mpix_host.h"
#include "once/mpix_batch.h"

#include <ucs_backoff.h>

/* Looks at queues that were freed, in MPI_Finalize: some seconds at most */
#define MPIX_QUEUE_MAX_SPINS 20000


/* Gives a queue back, if it is idle. Needs the lock. */
static ucs_status_t mpix_queue_end(struct mpix_queue *queue)
{
    ucs_status_t status;

    if (!mpix_batch_has_ended(queue) || !mpix_coll_is_idle(queue)) {
        return UCS_ERR_BUSY;
    }
    status = mpix_queue_close(queue);
    if (status != UCS_OK) {
        return status;
    }

    mpix_coll_leave_queue(queue);
    if (queue->batch != NULL) {
        mpix_batch_settle(queue->batch, queue->batch->waited);
        if (mpix_batch_is_idle(queue->batch)) { /* else it is the stream's */
            mpix_batch_put(queue->batch);
        }
    }
    mpix_queue_destroy(queue);
    return UCS_OK;
}

unsigned mpix_queues_reap(void)
{
    unsigned count = 0;
    struct mpix_queue *queue, *tmp;

    mpix_host_lock(); /* A request's wait may use a queue that was freed */
    mpix_lock();
    ucs_list_for_each_safe(queue, tmp, &mpix_queues_freed, list) {
        count += ((queue->end != NULL) &&
                  !__atomic_load_n(queue->end, __ATOMIC_ACQUIRE)) ||
                 (mpix_queue_end(queue) != UCS_OK);
    }
    mpix_unlock();
    mpix_host_unlock();
    return count;
}

/* Looks for a live queue of a stream; one that goes with the stream does, if it
 * is idle. Needs the lock. */
static ucs_status_t mpix_queues_leave_stream(ucs_gstream_h stream)
{
    struct mpix_queue *found = NULL;
    struct mpix_queue *queue;

    ucs_list_for_each(queue, &mpix_queues, list) {
        if (queue->stream == stream) {
            if (!queue->goes_with_stream) {
                return UCS_ERR_BUSY;
            }
            found = queue;
        }
    }
    return ((found == NULL) || (mpix_queue_end(found) == UCS_OK)) ?
                   UCS_OK :
                   UCS_ERR_NO_PROGRESS;
}

ucs_status_t mpix_queues_take_stream(ucs_gstream_h stream)
{
    struct mpix_queue *queue;
    ucs_status_t status;

    mpix_queues_reap();
    mpix_host_lock(); /* As mpix_queues_reap() */
    mpix_lock();
    status = mpix_queues_leave_stream(stream);
    if (status != UCS_OK) {
        goto out;
    }
    ucs_list_for_each(queue, &mpix_queues_freed, list) {
        if (queue->stream == stream) {
            queue->is_made = 1;
            status         = UCS_INPROGRESS;
            break;
        }
    }

out:
    mpix_unlock();
    mpix_host_unlock();
    return status;
}

/* A code is not raised. */
static int mpix_queue_free(const char *func, MPIX_Queue queue)
{
    ucs_status_t status;

    if (!mpix_queue_is_valid(queue)) {
        return mpix_fail(func, MPI_ERR_ARG, "%p is no live queue",
                         (void*)queue);
    }

    if (queue->batch != NULL) {
        mpix_batch_cancel(queue->batch);
    }
    mpix_host_lock(); /* As mpix_queues_reap() */
    mpix_lock();
    status = mpix_queue_end(queue);
    mpix_unlock();
    mpix_host_unlock();

    if (status != UCS_OK) {
        mpix_queue_retire(queue);
    }
    mpix_queues_reap();
    return MPI_SUCCESS;
}

int MPIX_Queue_free(MPIX_Queue *queue)
{
    int rc = mpix_queue_free("MPIX_Queue_free",
                             (queue == NULL) ? MPIX_QUEUE_NULL : *queue);

    if (rc == MPI_SUCCESS) {
        *queue = MPIX_QUEUE_NULL;
    }
    return mpix_raise(MPI_COMM_NULL, rc);
}

int MPIX_Free_queue(MPIX_Queue queue)
{
    return mpix_raise(MPI_COMM_NULL, mpix_queue_free("MPIX_Free_queue", queue));
}

void mpix_queues_cancel(void)
{
    struct mpix_queue *queue;

    /* No other thread makes or frees a queue now */
    ucs_list_for_each(queue, &mpix_queues, list) {
        if (queue->batch != NULL) {
            mpix_batch_cancel(queue->batch);
        }
    }
}

void mpix_queues_cleanup(void)
{
    unsigned count = 0;
    unsigned spins = 0;
    unsigned num_busy;
    struct mpix_queue *queue, *tmp;

    while (((num_busy = mpix_queues_reap()) > 0) &&
           (spins < MPIX_QUEUE_MAX_SPINS)) {
        ucs_backoff(&spins);
    }
    if (num_busy > 0) {
        mpix_warn("%u queues that were freed have not run all their commands "
                  "at MPI_Finalize", num_busy);
    }

    mpix_lock();
    ucs_list_for_each_safe(queue, tmp, &mpix_queues, list) {
        count += !queue->is_internal && !queue->goes_with_stream;
        mpix_queue_end(queue);
    }
    mpix_unlock();
    if (count > 0) {
        mpix_warn("%u %s not freed before MPI_Finalize", count,
                  (count == 1) ? "queue was" : "queues were");
    }
}
