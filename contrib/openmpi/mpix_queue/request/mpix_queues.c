/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_queues.c - the table of live queues.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_queues.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "binding/mpix_handle.h"

#include <ucs_gstream_memory.h>

#include <stdlib.h>

UCS_LIST_HEAD(mpix_queues);
UCS_LIST_HEAD(mpix_queues_freed);


int mpix_queue_is_valid(MPIX_Queue queue)
{
    int is_valid;

    mpix_lock();
    is_valid = mpix_handle_is_valid(&mpix_queues, queue);
    mpix_unlock();
    return is_valid;
}

int mpix_queue_is_serial(MPIX_Queue queue, uint64_t serial)
{
    int is_valid;

    mpix_lock();
    is_valid = mpix_handle_is_valid(&mpix_queues, queue) &&
               (queue->serial == serial);
    mpix_unlock();
    return is_valid;
}

int mpix_queue_get_st(const char *func, struct mpix_queue *queue)
{
    const ucp_st_queue_params_t params = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM,
        .stream     = queue->stream
    };
    ucs_status_t status = UCS_OK;

    mpix_lock();
    if (queue->st_queue == NULL) {
        status = ucp_st_queue_create(mpix_global.st_worker, &params,
                                     &queue->st_queue);
    }
    mpix_unlock();

    if (status != UCS_OK) {
        return mpix_fail(func, mpix_status_code(status),
                         "cannot create a queue: %s",
                         ucs_status_string(status));
    }
    return MPI_SUCCESS;
}

int mpix_queue_create(const char *func, ucs_gstream_h stream, mpix_comm_t *comm,
                      MPIX_Queue *queue_p)
{
    struct mpix_queue *queue = calloc(1, sizeof(*queue));
    static uint64_t serial; /* The lock */

    if (queue == NULL) {
        return mpix_fail(func, MPI_ERR_NO_MEM, "no memory");
    }

    queue->stream = stream;
    queue->comm   = comm;
    ucs_list_head_init(&queue->colls);
    mpix_lock();
    queue->serial = ++serial;
    ucs_list_add_tail(&mpix_queues, &queue->list);
    mpix_unlock();

    *queue_p = queue;
    return MPI_SUCCESS;
}

/* A stream that queues have been left goes with the last of them. Needs the
 * lock. */
static ucs_status_t mpix_queue_put_stream(struct mpix_queue *queue)
{
    struct mpix_queue *other;

    if (!queue->is_made) {
        return UCS_OK;
    }

    ucs_list_for_each(other, &mpix_queues_freed, list) {
        if ((other != queue) && (other->stream == queue->stream)) {
            other->is_made = 1;
            return UCS_OK;
        }
    }
    return ucs_gstream_destroy(queue->stream);
}

ucs_status_t mpix_queue_close(struct mpix_queue *queue)
{
    ucs_status_t status = UCS_OK;

    if (queue->st_queue != NULL) {
        status = ucp_st_queue_destroy(queue->st_queue);
    }
    if (status != UCS_OK) {
        return status;
    }

    queue->st_queue = NULL;
    status          = mpix_queue_put_stream(queue);
    /* The application's own commands are under way */
    return (status == UCS_ERR_BUSY) ? status : UCS_OK;
}

void mpix_queue_destroy(struct mpix_queue *queue)
{
    unsigned i;

    ucs_list_del(&queue->list);
    if (queue->comm != NULL) {
        mpix_comm_put(queue->comm);
    }
    for (i = 0; i < MPIX_QUEUE_MAX_SETS; ++i) {
        free(queue->sets[i].requests);
        free(queue->sets[i].ops);
    }
    ucs_gstream_word_put(queue->end);
    free(queue->started);
    free(queue);
}

int mpix_queue_reserve(const char *func, struct mpix_queue *queue, int count)
{
    const long needed = (long)queue->num_started + count;
    MPI_Request *started;

    if (needed <= queue->max_started) {
        return MPI_SUCCESS;
    }

    started = realloc(queue->started, 2 * needed * sizeof(*started));
    if (started == NULL) {
        return mpix_fail(func, MPI_ERR_NO_MEM, "no memory for %ld requests",
                         needed);
    }

    queue->started     = started;
    queue->max_started = (int)(2 * needed);
    return MPI_SUCCESS;
}

int mpix_queue_wait_started(struct mpix_queue *queue)
{
    int rc = MPIX_Enqueue_waitall(queue, queue->num_started, queue->started);

    if (rc == MPI_SUCCESS) {
        queue->num_started = 0;
    }
    return rc;
}

/* Has the stream tell that it has run everything. Nothing else asks it then: a
 * stream of a GPU may be gone as soon as its queue is freed. */
static void mpix_queue_put_end(struct mpix_queue *queue)
{
    ucs_gstream_cmd_t cmd = {.type = UCS_GSTREAM_CMD_WRITE64};

    queue->end = ucs_gstream_word_get();
    if (queue->end == NULL) {
        return;
    }

    cmd.u.word.address = queue->end;
    cmd.u.word.value   = 1;
    if (ucs_gstream_enqueue(queue->stream, &cmd, 1) != UCS_OK) {
        ucs_gstream_word_put(queue->end);
        queue->end = NULL;
    }
}

void mpix_queue_retire(struct mpix_queue *queue)
{
    mpix_queue_put_end(queue);
    mpix_lock();
    ucs_list_del(&queue->list);
    ucs_list_add_tail(&mpix_queues_freed, &queue->list);
    mpix_unlock();
}

void mpix_queue_shut(struct mpix_queue *queue)
{
    ucs_status_t status;

    mpix_lock();
    status = mpix_queue_close(queue);
    if (status == UCS_OK) {
        mpix_queue_destroy(queue);
    }
    mpix_unlock();
    if (status != UCS_OK) {
        mpix_queue_retire(queue);
    }
}

int mpix_queue_open(const char *func, ucs_gstream_h stream, MPIX_Queue *queue_p)
{
    MPIX_Queue queue;
    int rc;

    rc = mpix_queue_create(func, stream, NULL, &queue);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = mpix_queue_get_st(func, queue);
    if (rc == MPI_SUCCESS) {
        *queue_p = queue;
    } else {
        mpix_queue_shut(queue);
    }
    return rc;
}
