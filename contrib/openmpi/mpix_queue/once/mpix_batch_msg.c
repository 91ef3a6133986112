/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_batch_msg.c - messages on a stream that are used once: how one ends, and
 * the request that the application has.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "binding/mpix_error.h"
#include "mpix_batch.h"
#include "request/mpix_request.h"
#include "request/mpix_wait_set.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Requests of messages that were waited for on their queues, oldest first, and
 * how many. The lock protects the lists of messages that are over, too, and no
 * other one is taken with it. */
static struct {
    pthread_mutex_t lock;
    ucs_list_link_t list;
    unsigned        count;
} mpix_dropped = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .list = UCS_LIST_INITIALIZER(&mpix_dropped.list, &mpix_dropped.list)
};


static void mpix_msg_put_buffer(mpix_msg_t *msg)
{
    if (msg->buffer != NULL) {
        ucs_gstream_memory_put(msg->stage, msg->buffer->length);
        mpix_buffer_put(msg->buffer);
        msg->buffer = NULL;
    }
}

void mpix_msg_destroy(mpix_msg_t *msg)
{
    mpix_msg_put_buffer(msg);
    if (msg->comm != NULL) {
        mpix_comm_drop(msg->comm);
    }
    free(msg->text);
    free(msg);
}

void mpix_msg_put(mpix_msg_t *msg)
{
    if (__atomic_sub_fetch(&msg->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        mpix_msg_destroy(msg);
    }
}

void mpix_msg_peer_str(const mpix_msg_t *msg, char *buffer, size_t max)
{
    char rank[32] = "any source";
    char tag[32]  = "any tag";

    if (msg->rank != MPI_ANY_SOURCE) {
        snprintf(rank, sizeof(rank), "rank %d", msg->rank);
    }
    if (msg->tag != MPI_ANY_TAG) {
        snprintf(tag, sizeof(tag), "tag %d", msg->tag);
    }
    snprintf(buffer, max, "%s %s, %s", msg->is_recv ? "from" : "to", rank, tag);
}

/* What a text says of a message, behind a noun: "of MPIX_Enqueue_recv, a
 * receive from rank 0, tag 7, failed". */
static void mpix_msg_str(const mpix_msg_t *msg, const char *what, char *buffer,
                         size_t max)
{
    char peer[MPIX_MSG_PEER_MAX];

    mpix_msg_peer_str(msg, peer, sizeof(peer));
    snprintf(buffer, max, "of %s, a %s %s, %s",
             msg->is_recv ? "MPIX_Enqueue_recv" : "MPIX_Enqueue_send",
             msg->is_recv ? "receive" : "send", peer, what);
}

const char *mpix_msg_why(const mpix_msg_t *msg)
{
    return (msg->text != NULL) ? msg->text :
                                 "has failed, and there was no memory for a "
                                 "text";
}

/* Takes a message out of the list that it is in. With the lock of the lists. */
static void mpix_msg_unlist(mpix_msg_t *msg)
{
    if (msg->is_listed) {
        ucs_list_del(&msg->list);
        mpix_dropped.count -= (msg->batch == NULL);
        msg->is_listed      = 0;
    }
}

/* With the lock of the lists. */
static void mpix_msg_uncount(mpix_msg_t *msg)
{
    if (msg->is_counted) {
        mpix_request_count(msg->outer, -1);
        msg->is_counted = 0;
    }
}

void mpix_batch_settle(mpix_batch_t *batch, uint64_t waited)
{
    mpix_msg_t *msg, *tmp;

    pthread_mutex_lock(&mpix_dropped.lock);
    if (batch->settled < waited) {
        batch->settled = waited;
        ucs_list_for_each_safe(msg, tmp, &batch->over, list) {
            if (msg->number > waited) {
                continue;
            }

            ucs_list_del(&msg->list);
            ucs_list_add_tail(&mpix_dropped.list, &msg->list);
            msg->batch = NULL;
            ++mpix_dropped.count;
            if (msg->code == MPI_SUCCESS) {
                mpix_msg_uncount(msg); /* MPI alone knows how it ended */
            }
        }
    }
    pthread_mutex_unlock(&mpix_dropped.lock);
}

void mpix_batch_trim(unsigned max)
{
    MPI_Request request;
    mpix_msg_t *msg;

    pthread_mutex_lock(&mpix_dropped.lock);
    while (mpix_dropped.count > max) {
        msg     = ucs_list_head(&mpix_dropped.list, mpix_msg_t, list);
        request = msg->outer;
        mpix_msg_unlist(msg);
        pthread_mutex_unlock(&mpix_dropped.lock);
        PMPI_Request_free(&request);
        pthread_mutex_lock(&mpix_dropped.lock);
    }
    pthread_mutex_unlock(&mpix_dropped.lock);
}

void mpix_batch_forget(mpix_batch_t *batch)
{
    mpix_msg_t *msg, *tmp;

    pthread_mutex_lock(&mpix_dropped.lock);
    ucs_list_for_each_safe(msg, tmp, &batch->over, list) {
        mpix_msg_unlist(msg);
    }
    pthread_mutex_unlock(&mpix_dropped.lock);
}

int mpix_batch_copy(mpix_msg_t *msg, const MPI_Status *status)
{
    MPI_Count length = 0;
    ucs_status_t result;

    if (msg->buffer == NULL) {
        return MPI_SUCCESS;
    }

    if (msg->is_recv) {
        PMPI_Get_elements_x(status, MPI_BYTE, &length);
    } else {
        length = (MPI_Count)msg->buffer->length;
    }
    result = mpix_buffer_copy(msg->buffer, msg->stage, (size_t)length,
                              !msg->is_recv);
    return (result == UCS_OK) ?
                   MPI_SUCCESS :
                   mpix_fail(msg->is_recv ? "MPIX_Enqueue_recv" :
                                            "MPIX_Enqueue_send",
                             MPI_ERR_OTHER, "the copy %s memory of %s failed: "
                             "%s", msg->is_recv ? "to" : "from",
                             ucs_gstream_type_name(msg->buffer->memory),
                             ucs_status_string(result));
}

/* Keeps why a message has failed, for the calls that will ask. A code below 0
 * is none of MPI's: OpenMPI's PMPI_Start() gives such. */
static void mpix_msg_fail(mpix_msg_t *msg, int code)
{
    char cause[MPI_MAX_ERROR_STRING] = "unknown error";
    char what[MPI_MAX_ERROR_STRING + 16], text[MPI_MAX_ERROR_STRING + 128];
    mpix_msg_t *expected             = NULL;
    int length;

    msg->code = MPI_ERR_OTHER;
    if (code > 0) {
        PMPI_Error_class(code, &msg->code);
        PMPI_Error_string(code, cause, &length);
    }
    snprintf(what, sizeof(what), "failed: %s", cause);
    mpix_msg_str(msg, what, text, sizeof(text));
    msg->text = strdup(text);

    __atomic_add_fetch(&msg->refs, 1, __ATOMIC_RELAXED);
    if (!__atomic_compare_exchange_n(&msg->batch->failed, &expected, msg, 0,
                                     __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
        mpix_msg_put(msg);
    }
}

void mpix_batch_end(mpix_msg_t *msg, int code, const MPI_Status *status)
{
    mpix_batch_t *batch = msg->batch;
    int is_started      = (msg->number > 0) && !msg->is_fifo;
    MPI_Request outer   = msg->outer;

    mpix_waits_end(&msg->waits);
    msg->code   = MPI_SUCCESS;
    msg->status = *status;
    if (msg->inner != MPI_REQUEST_NULL) {
        PMPI_Request_free(&msg->inner);
    }
    if (code != MPI_SUCCESS) {
        mpix_msg_fail(msg, code);
    }
    mpix_msg_put_buffer(msg);
    pthread_mutex_lock(&mpix_dropped.lock);
    ucs_list_add_tail(&batch->over, &msg->list);
    msg->is_listed = 1;
    pthread_mutex_unlock(&mpix_dropped.lock);
    /* The application may have the message as soon as MPI knows */
    __atomic_store_n(&msg->is_over, 1, __ATOMIC_RELEASE);
    mpix_batch_release(batch, is_started);
    PMPI_Grequest_complete(outer);
    mpix_msg_put(msg);
}

/* Always true where MPI asks. The acquire pairs with the release of
 * mpix_batch_end(), whatever MPI does in between. */
static int mpix_msg_is_over(const mpix_msg_t *msg)
{
    return __atomic_load_n(&msg->is_over, __ATOMIC_ACQUIRE);
}

/* The application's request: MPI asks how it ended. A call that comes past this
 * library has MPI raise what has failed. */
static int mpix_msg_query(void *arg, MPI_Status *status)
{
    const mpix_msg_t *msg = arg;
    MPI_Count length      = 0;
    int is_cancelled      = 0;

    (void)mpix_msg_is_over(msg);
    PMPI_Test_cancelled(&msg->status, &is_cancelled);
    if (msg->is_recv && !is_cancelled) {
        PMPI_Get_elements_x(&msg->status, MPI_BYTE, &length);
    }
    PMPI_Status_set_elements_x(status, MPI_BYTE, length);
    PMPI_Status_set_cancelled(status, is_cancelled);
    status->MPI_SOURCE = msg->is_recv ? msg->status.MPI_SOURCE : MPI_ANY_SOURCE;
    status->MPI_TAG    = msg->is_recv ? msg->status.MPI_TAG : MPI_ANY_TAG;
    if ((msg->code == MPI_SUCCESS) ||
        mpix_wait_set_take(msg->outer, msg->comm, msg->code,
                           mpix_msg_why(msg))) {
        return MPI_SUCCESS;
    }
    return mpix_fail("MPI", msg->code, "a request %s", mpix_msg_why(msg));
}

static int mpix_msg_free(void *arg)
{
    mpix_msg_t *msg = arg;

    pthread_mutex_lock(&mpix_dropped.lock);
    mpix_msg_unlist(msg);
    mpix_msg_uncount(msg);
    pthread_mutex_unlock(&mpix_dropped.lock);
    mpix_msg_put(msg);
    return MPI_SUCCESS;
}

static int mpix_msg_cancel(void *arg, int is_complete)
{
    const mpix_msg_t *msg = arg;
    char text[256];

    if (is_complete) {
        return MPI_SUCCESS;
    }

    mpix_msg_str(msg, "cannot be cancelled", text, sizeof(text));
    return mpix_wait_set_take(msg->outer, msg->comm, MPI_ERR_REQUEST, text) ?
                   MPI_SUCCESS :
                   mpix_fail("MPI_Cancel", MPI_ERR_REQUEST, "a request %s",
                             text);
}

int mpix_msg_make_outer(mpix_msg_t *msg)
{
    return PMPI_Grequest_start(mpix_msg_query, mpix_msg_free, mpix_msg_cancel,
                               msg, &msg->outer);
}
