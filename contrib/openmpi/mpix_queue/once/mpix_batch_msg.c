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

#include <ucs/datastruct/khash.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

KHASH_MAP_INIT_INT64(mpix_msgs, mpix_msg_t*)

/* Requests of messages that were waited for on their queues, oldest first, and
 * how many; and all messages by their requests. The lock protects the lists of
 * messages that are over, and gates, too, and no other one is taken with it. */
static struct {
    pthread_mutex_t    lock;
    ucs_list_link_t    list;
    unsigned           count;
    khash_t(mpix_msgs) table;
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
    mpix_once_coll_destroy(msg->coll);
    free(msg->text);
    free(msg);
}

void mpix_msg_ref(mpix_msg_t *msg)
{
    __atomic_add_fetch(&msg->refs, 1, __ATOMIC_RELAXED);
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

    if (msg->coll != NULL) {
        snprintf(buffer, max, "of %s, %s", msg->func, what);
        return;
    }
    mpix_msg_peer_str(msg, peer, sizeof(peer));
    snprintf(buffer, max, "of %s, a %s %s, %s", msg->func,
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

void mpix_msg_add(mpix_msg_t *msg)
{
    khiter_t iter;
    int ret;

    pthread_mutex_lock(&mpix_dropped.lock);
    iter = kh_put(mpix_msgs, &mpix_dropped.table, (uintptr_t)msg->outer, &ret);
    if (ret >= 0) {
        kh_val(&mpix_dropped.table, iter) = msg;
    }
    pthread_mutex_unlock(&mpix_dropped.lock);
}

mpix_msg_t *mpix_msg_find(MPI_Request request)
{
    mpix_msg_t *msg = NULL;
    khiter_t iter;

    pthread_mutex_lock(&mpix_dropped.lock);
    iter = kh_get(mpix_msgs, &mpix_dropped.table, (uintptr_t)request);
    if (iter != kh_end(&mpix_dropped.table)) {
        msg = kh_val(&mpix_dropped.table, iter);
        mpix_msg_ref(msg);
    }
    pthread_mutex_unlock(&mpix_dropped.lock);
    return msg;
}

/* MPI may give the handle to another request now. With the lock of the
 * lists. */
static void mpix_msg_remove(const mpix_msg_t *msg)
{
    khiter_t iter = kh_get(mpix_msgs, &mpix_dropped.table,
                           (uintptr_t)msg->outer);

    if ((iter != kh_end(&mpix_dropped.table)) &&
        (kh_val(&mpix_dropped.table, iter) == msg)) {
        kh_del(mpix_msgs, &mpix_dropped.table, iter);
    }
}

/* The application has the request of a message that is over no longer, or may
 * have it no longer. With the lock of the lists. */
static void mpix_msg_settle(mpix_msg_t *msg)
{
    ucs_list_del(&msg->list);
    ucs_list_add_tail(&mpix_dropped.list, &msg->list);
    msg->batch = NULL;
    ++mpix_dropped.count;
    if (msg->code == MPI_SUCCESS) {
        mpix_msg_uncount(msg); /* MPI alone knows how it ended */
    }
}

void mpix_batch_settle(mpix_batch_t *batch, uint64_t waited)
{
    mpix_msg_t *msg, *tmp;

    pthread_mutex_lock(&mpix_dropped.lock);
    if (batch->settled < waited) {
        batch->settled = waited;
        ucs_list_for_each_safe(msg, tmp, &batch->over, list) {
            if (msg->number <= waited) {
                mpix_msg_settle(msg);
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
    ucs_gstream_gates_cleanup(&batch->gates);
    pthread_mutex_unlock(&mpix_dropped.lock);
}

/* Always true where MPI asks. The acquire pairs with the release of
 * mpix_batch_end(), whatever MPI does in between. */
int mpix_msg_is_over(const mpix_msg_t *msg)
{
    return __atomic_load_n(&msg->is_over, __ATOMIC_ACQUIRE);
}

void mpix_msg_get_result(const mpix_msg_t *msg, MPI_Status *result)
{
    *result           = msg->status;
    result->MPI_ERROR = msg->code;
}

ucs_gstream_gate_t *mpix_batch_hold(mpix_batch_t *batch,
                                    mpix_msg_t *const msgs[], int count)
{
    ucs_gstream_gate_t *gate = NULL;
    int i;

    pthread_mutex_lock(&mpix_dropped.lock);
    if (ucs_gstream_gate_create(&batch->gates, &gate) != UCS_OK) {
        goto out;
    }
    for (i = 0; i < count; ++i) {
        if (!msgs[i]->is_fifo && !mpix_msg_is_over(msgs[i]) &&
            (msgs[i]->gate == NULL)) {
            ucs_gstream_gate_hold(gate);
            msgs[i]->gate = gate;
        }
    }

out:
    pthread_mutex_unlock(&mpix_dropped.lock);
    return gate;
}

void mpix_batch_hold_end(ucs_gstream_gate_t *gate, mpix_msg_t *const msgs[],
                         int count, int code)
{
    int i;

    pthread_mutex_lock(&mpix_dropped.lock);
    if (code == MPI_SUCCESS) {
        ucs_gstream_gate_drop(gate);
        goto out;
    }
    for (i = 0; i < count; ++i) {
        if (msgs[i]->gate == gate) {
            msgs[i]->gate = NULL;
        }
    }
    ucs_gstream_gate_cancel(gate);

out:
    pthread_mutex_unlock(&mpix_dropped.lock);
}

/* With the lock of the lists. */
static void mpix_msg_drop_gate(mpix_msg_t *msg)
{
    if (msg->gate != NULL) {
        ucs_gstream_gate_drop(msg->gate);
        msg->gate = NULL;
    }
}

void mpix_msg_pass(mpix_msg_t *msg)
{
    pthread_mutex_lock(&mpix_dropped.lock);
    mpix_msg_drop_gate(msg);
    pthread_mutex_unlock(&mpix_dropped.lock);
}

int mpix_msg_set_result(mpix_msg_t *msg, MPI_Status *result)
{
    int is_over;

    pthread_mutex_lock(&mpix_dropped.lock);
    is_over = mpix_msg_is_over(msg);
    if (!is_over) {
        msg->result = result;
    }
    pthread_mutex_unlock(&mpix_dropped.lock);
    return !is_over;
}

void mpix_msg_leave(mpix_msg_t *msg)
{
    pthread_mutex_lock(&mpix_dropped.lock);
    msg->is_awaited = 1;
    if (msg->is_listed && (msg->batch != NULL)) {
        mpix_msg_settle(msg);
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
                   mpix_fail(msg->func, MPI_ERR_OTHER,
                             "the copy %s memory of %s failed: %s",
                             msg->is_recv ? "to" : "from",
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

    mpix_msg_ref(msg);
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
    if (!msg->is_freed) {
        ucs_list_add_tail(&batch->over, &msg->list);
        msg->is_listed = 1;
    }
    if (msg->result != NULL) {
        mpix_msg_get_result(msg, msg->result);
    }
    if (msg->is_awaited && msg->is_listed) {
        mpix_msg_settle(msg);
    }
    mpix_msg_drop_gate(msg);
    /* The application may have the message as soon as MPI knows */
    __atomic_store_n(&msg->is_over, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&mpix_dropped.lock);
    mpix_batch_release(batch, is_started);
    PMPI_Grequest_complete(outer);
    mpix_msg_put(msg);
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
    msg->is_freed = 1;
    mpix_msg_unlist(msg);
    mpix_msg_uncount(msg);
    mpix_msg_remove(msg);
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
