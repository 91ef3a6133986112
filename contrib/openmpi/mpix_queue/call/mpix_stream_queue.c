/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_stream_queue.c - the queues of streams that calls name.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "call/mpix_stream_queue.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "call/mpix_stream.h"

#include <stdlib.h>


/* Protected by the lock. */
static UCS_LIST_HEAD(mpix_stream_queues);


void mpix_stream_queue_put(mpix_stream_queue_t *entry)
{
    int is_last;

    mpix_lock();
    is_last = (--entry->refs == 0);
    if (is_last) {
        ucs_list_del(&entry->list);
    }
    mpix_unlock();
    if (is_last) {
        if (mpix_queue_is_serial(entry->queue, entry->serial)) {
            mpix_queue_shut(entry->queue);
        }
        free(entry);
    }
}

/* The entry of a stream whose queue is still there, with a reference; NULL if
 * there is none. */
static mpix_stream_queue_t *mpix_stream_queue_find(void *stream)
{
    mpix_stream_queue_t *found = NULL;
    mpix_stream_queue_t *entry;

    mpix_lock();
    ucs_list_for_each(entry, &mpix_stream_queues, list) {
        if ((entry->stream == stream) && (found == NULL)) {
            found = entry;
            ++found->refs;
        }
    }
    mpix_unlock();
    if ((found != NULL) && !mpix_stream_queue_is(found, stream)) {
        /* Its stream was freed, and this is another one */
        mpix_lock();
        ucs_list_del(&found->list);
        ucs_list_head_init(&found->list);
        mpix_unlock();
        mpix_stream_queue_put(found);
        found = NULL;
    }
    return found;
}

int mpix_stream_queue_get(const char *func, void *stream,
                          mpix_stream_queue_t **entry_p)
{
    mpix_stream_queue_t *entry;
    int rc;

    *entry_p = mpix_stream_queue_find(stream);
    if (*entry_p != NULL) {
        return MPI_SUCCESS;
    }

    entry = calloc(1, sizeof(*entry));
    if (entry == NULL) {
        return mpix_fail(func, MPI_ERR_NO_MEM, "no memory for a queue");
    }
    rc = mpix_stream_get_queue(func, stream, &entry->queue);
    if (rc != MPI_SUCCESS) {
        goto err_free;
    }
    rc = mpix_queue_get_st(func, entry->queue);
    if (rc != MPI_SUCCESS) {
        goto err_shut;
    }

    entry->stream = stream;
    entry->serial = entry->queue->serial;
    entry->refs   = 1;
    mpix_lock();
    entry->queue->goes_with_stream = 1;
    entry->queue->is_internal      = 1;
    ucs_list_add_tail(&mpix_stream_queues, &entry->list);
    mpix_unlock();
    *entry_p = entry;
    return MPI_SUCCESS;

err_shut:
    mpix_queue_shut(entry->queue);
err_free:
    free(entry);
    return rc;
}
