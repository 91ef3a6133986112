/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_batch.c - messages on a stream that are used once: the calls that
 * enqueue, start and wait for them.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_assert.h"
#include "mpix_batch.h"
#include "mpix_fifo.h"
#include "binding/mpix_comm.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "request/mpix_queues.h"
#include "request/mpix_request.h"

#include <ucs/sys/compiler_def.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>


static void mpix_batch_free(mpix_batch_t *batch)
{
    mpix_batch_forget(batch);
    if (batch->failed != NULL) {
        mpix_msg_put(batch->failed);
    }
    ucs_gstream_word_put(batch->passed);
    ucs_gstream_word_put(batch->done);
    ucs_gstream_word_put(batch->gates.word);
    free(batch);
}

/* Makes a queue's part. NULL if there is no memory. */
static mpix_batch_t *mpix_batch_create(void)
{
    mpix_batch_t *batch = calloc(1, sizeof(*batch));

    if (batch == NULL) {
        return NULL;
    }

    batch->passed = ucs_gstream_word_get();
    batch->done   = ucs_gstream_word_get();
    batch->refs   = 1;
    ucs_list_head_init(&batch->enqueued);
    ucs_list_head_init(&batch->fifo_enqueued);
    ucs_list_head_init(&batch->over);
    ucs_gstream_gates_init(&batch->gates, ucs_gstream_word_get());
    if ((batch->passed == NULL) || (batch->done == NULL) ||
        (batch->gates.word == NULL)) {
        mpix_batch_free(batch);
        return NULL;
    }
    return batch;
}

void mpix_batch_put(mpix_batch_t *batch)
{
    if (__atomic_sub_fetch(&batch->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        mpix_batch_free(batch);
    }
}

int mpix_batch_is_idle(const mpix_batch_t *batch)
{
    return __atomic_load_n(batch->passed, __ATOMIC_ACQUIRE) ==
           batch->commands;
}

int mpix_batch_has_ended(const struct mpix_queue *queue)
{
    mpix_batch_t *batch = queue->batch;

    if ((batch == NULL) || mpix_batch_is_idle(batch)) {
        return 1;
    }
    /* A runtime may tell of another call's error once */
    if ((ucs_gstream_query(queue->stream) != UCS_ERR_IO_ERROR) ||
        (ucs_gstream_query(queue->stream) != UCS_ERR_IO_ERROR)) {
        return 0;
    }
    __atomic_store_n(&batch->is_lost, 1, __ATOMIC_RELEASE);
    return 1;
}

void mpix_batch_cancel(mpix_batch_t *batch)
{
    MPI_Status status;
    mpix_msg_t *msg;

    batch->count     = batch->started;
    batch->num_given = batch->given;
    mpix_fifo_cancel(batch);
    if (ucs_list_is_empty(&batch->enqueued)) {
        return; /* MPI may be finalised */
    }

    memset(&status, 0, sizeof(status));
    PMPI_Status_set_cancelled(&status, 1);
    while (!ucs_list_is_empty(&batch->enqueued)) {
        msg         = ucs_list_extract_head(&batch->enqueued, mpix_msg_t, list);
        msg->number = 0; /* No stream waits for it */
        mpix_batch_end(msg, MPI_SUCCESS, &status);
    }
}

int mpix_batch_check(const char *func, const mpix_batch_t *batch,
                     MPI_Comm *comm_p)
{
    const mpix_msg_t *msg = __atomic_load_n(&batch->failed, __ATOMIC_ACQUIRE);

    if (msg == NULL) {
        return MPI_SUCCESS;
    }

    *comm_p = mpix_comm_handle(msg->comm);
    return mpix_fail(func, MPI_ERR_OTHER, "a message %s", mpix_msg_why(msg));
}

void mpix_batch_release(mpix_batch_t *batch, int is_started)
{
    if (is_started) {
        /* Pairs with the acquire load of the stream's wait: what MPI has
         * received is in memory */
        __atomic_add_fetch(batch->done, 1, __ATOMIC_RELEASE);
        ucs_gstream_wake(batch->done);
    }
    mpix_batch_put(batch);
}

static int mpix_msg_check_rank(const mpix_msg_args_t *args)
{
    int size;

    if ((args->rank == MPI_PROC_NULL) ||
        (args->is_recv && (args->rank == MPI_ANY_SOURCE))) {
        return MPI_SUCCESS;
    }

    size = mpix_comm_num_peers(args->comm);
    if ((args->rank < 0) || (args->rank >= size)) {
        return mpix_fail(args->func, MPI_ERR_RANK,
                         "%s %d: the communicator has ranks from 0 to %d",
                         args->is_recv ? "source" : "destination", args->rank,
                         size - 1);
    }
    return MPI_SUCCESS;
}

static int mpix_msg_check_tag(const mpix_msg_args_t *args)
{
    if (args->is_recv && (args->tag == MPI_ANY_TAG)) {
        return MPI_SUCCESS;
    }

    if ((args->tag < 0) || (args->tag > mpix_comm_tag_ub())) {
        return mpix_fail(args->func, MPI_ERR_TAG,
                         "tag %d is not between 0 and MPI_TAG_UB", args->tag);
    }
    return MPI_SUCCESS;
}

/* What MPI would refuse too, with this call's name. The rest is left to MPI. */
static int mpix_msg_check(const mpix_msg_args_t *args)
{
    int rc;

    if (args->buffer == MPI_IN_PLACE) {
        return mpix_fail(args->func, MPI_ERR_ARG,
                         "MPI_IN_PLACE is no buffer of a message");
    }
    if (args->count < 0) {
        return mpix_fail(args->func, MPI_ERR_COUNT, "count %d is negative",
                         args->count);
    }
    if (args->datatype == MPI_DATATYPE_NULL) {
        return mpix_fail(args->func, MPI_ERR_TYPE,
                         "the datatype is MPI_DATATYPE_NULL");
    }

    rc = mpix_msg_check_rank(args);
    return (rc == MPI_SUCCESS) ? mpix_msg_check_tag(args) : rc;
}

/* Finds out whether a message is in a device, for which it then gets memory of
 * the host that MPI has in its place. Returns an MPI code that is not
 * raised. */
static int mpix_msg_set_buffer(mpix_msg_t *msg, const mpix_msg_args_t *args)
{
    const char *refusal;
    int rc;

    /* Addresses behind MPI_BOTTOM are of any memory */
    if (msg->is_null || ((args->buffer != MPI_BOTTOM) &&
                         !mpix_buffer_is_device(args->buffer,
                                                args->datatype))) {
        return MPI_SUCCESS;
    }

    rc = mpix_buffer_create(args->buffer, args->count, args->datatype,
                            &msg->buffer);
    if ((rc != MPI_SUCCESS) &&
        !mpix_buffer_is_device(args->buffer, args->datatype)) {
        return MPI_SUCCESS; /* MPI knows the datatype */
    }
    if (rc != MPI_SUCCESS) {
        return mpix_fail(args->func, rc, "the buffer is in memory of a GPU, "
                         "and %s", (rc == MPI_ERR_TYPE) ?
                                           "its datatype is not known" :
                                           "there is no memory");
    }
    refusal = mpix_buffer_check(msg->buffer);
    if (refusal != NULL) {
        return mpix_fail(args->func, MPI_ERR_TYPE,
                         "the buffer is in memory of %s %s",
                         ucs_gstream_type_name(msg->buffer->memory), refusal);
    }
    if (msg->buffer->memory == UCS_GSTREAM_TYPE_HOST) {
        mpix_buffer_put(msg->buffer);
        msg->buffer = NULL;
        return MPI_SUCCESS;
    }

    msg->stage = ucs_gstream_memory_get(msg->buffer->length);
    return (msg->stage != NULL) ?
                   MPI_SUCCESS :
                   mpix_fail(args->func, MPI_ERR_NO_MEM, "no memory");
}

/* Makes MPI's request of a message. Errors are raised. */
static int mpix_msg_make_inner(mpix_msg_t *msg, const mpix_msg_args_t *args)
{
    const mpix_buffer_t *buffer = msg->buffer;
    void *address               = (void*)args->buffer;
    int count                   = args->count;
    MPI_Datatype type           = args->datatype;
    int rc                      = MPI_SUCCESS;

    if ((buffer != NULL) && (buffer->blocks.count > 0)) {
        address = msg->stage; /* packed */
        count   = (buffer->length > INT_MAX) ? 1 : (int)buffer->length;
        type    = MPI_BYTE;
        if (buffer->length > INT_MAX) {
            rc = mpix_buffer_large_type(buffer->length, MPI_BYTE, &type);
        }
    } else if (buffer != NULL) {
        /* The datatype's bytes may begin elsewhere than the buffer */
        address = (void*)((uintptr_t)msg->stage + (uintptr_t)args->buffer -
                          (uintptr_t)buffer->start);
    }
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = args->is_recv ?
         PMPI_Recv_init(address, count, type, args->rank, args->tag, args->comm,
                        &msg->inner) :
         PMPI_Send_init(address, count, type, args->rank, args->tag, args->comm,
                        &msg->inner);
    if ((type != args->datatype) && (type != MPI_BYTE)) {
        PMPI_Type_free(&type);
    }
    return rc;
}

mpix_msg_t *mpix_msg_alloc(const mpix_msg_args_t *args, mpix_batch_t *batch)
{
    mpix_msg_t *msg = calloc(1, sizeof(*msg));

    if (msg != NULL) {
        msg->refs    = 2;
        msg->func    = args->func;
        msg->batch   = batch;
        msg->is_recv = args->is_recv;
        msg->is_null = (args->rank == MPI_PROC_NULL);
        msg->count   = args->count;
        msg->rank    = args->rank;
        msg->tag     = args->tag;
    }
    return msg;
}

void mpix_msg_enlist(mpix_msg_t *msg, struct mpix_queue *queue,
                     ucs_list_link_t *list)
{
    mpix_batch_t *batch = queue->batch;

    __atomic_add_fetch(&batch->refs, 1, __ATOMIC_RELAXED);
    ucs_list_add_tail(list, &msg->list);
    msg->number         = ++batch->count;
    msg->queue          = queue;
    msg->serial         = queue->serial;
    msg->is_counted     = 1;
    batch->num_given   += !msg->is_fifo;
    batch->num_unpacks += (msg->unpack != NULL);
    mpix_request_count(msg->outer, 1);
    mpix_msg_add(msg);
}

/* Makes both requests of a message. MPI raises its own errors. */
static int mpix_msg_create(const mpix_msg_args_t *args, mpix_batch_t *batch,
                           mpix_msg_t **msg_p)
{
    mpix_msg_t *msg = mpix_msg_alloc(args, batch);
    int rc;

    if (msg == NULL) {
        return mpix_raise(args->comm,
                          mpix_fail(args->func, MPI_ERR_NO_MEM, "no memory"));
    }

    rc = mpix_comm_get(args->comm, &msg->comm);
    if (rc != MPI_SUCCESS) {
        rc = mpix_raise(args->comm, mpix_fail(args->func, rc, "no memory for a "
                                              "communicator"));
        goto err_free;
    }

    msg->inner = MPI_REQUEST_NULL;
    if (args->coll == NULL) {
        rc = mpix_msg_set_buffer(msg, args);
        rc = (rc == MPI_SUCCESS) ? mpix_msg_make_inner(msg, args) :
                                   mpix_raise(args->comm, rc);
        if (rc != MPI_SUCCESS) {
            goto err_free;
        }
    }

    rc = mpix_msg_make_outer(msg);
    if (rc != MPI_SUCCESS) {
        goto err_free_inner;
    }

    msg->coll = args->coll;
    *msg_p    = msg;
    return MPI_SUCCESS;

err_free_inner:
    if (msg->inner != MPI_REQUEST_NULL) {
        PMPI_Request_free(&msg->inner);
    }
err_free:
    mpix_msg_destroy(msg);
    return rc;
}

/* The communicator of messages without one; MPI_COMM_NULL if it was freed. */
static MPI_Comm mpix_batch_comm(const struct mpix_queue *queue)
{
    return (queue->comm == NULL) ? MPI_COMM_WORLD :
                                   mpix_comm_handle(queue->comm);
}

/* Refuses what is no queue, or one whose message has failed, of which the
 * communicator is. */
static int mpix_batch_check_queue(const char *func, MPIX_Queue queue,
                                  MPI_Comm *comm_p)
{
    *comm_p = MPI_COMM_NULL;
    if (!mpix_queue_is_valid(queue)) {
        return mpix_fail(func, MPI_ERR_ARG, "%p is no live queue",
                         (void*)queue);
    }

    return (queue->batch == NULL) ?
                   MPI_SUCCESS :
                   mpix_batch_check(func, queue->batch, comm_p);
}

static int mpix_batch_get(const char *func, struct mpix_queue *queue)
{
    if (queue->batch != NULL) {
        return MPI_SUCCESS;
    }

    queue->batch = mpix_batch_create();
    return (queue->batch != NULL) ?
                   MPI_SUCCESS :
                   mpix_fail(func, MPI_ERR_NO_MEM, "no memory");
}

/* A message that the thread gives to MPI. */
static int mpix_batch_enqueue_mpi(const mpix_msg_args_t *args,
                                  struct mpix_queue *queue,
                                  const mpix_comm_t *comm,
                                  MPI_Request *request)
{
    mpix_msg_t *msg = NULL;
    int rc;

    rc = mpix_assert_check(args, comm);
    rc = (rc == MPI_SUCCESS) ? mpix_batch_thread_get(args->func) : rc;
    if (rc != MPI_SUCCESS) {
        return mpix_raise(args->comm, rc);
    }

    rc = mpix_msg_create(args, queue->batch, &msg);
    if (msg == NULL) {
        return rc;
    }

    mpix_msg_enlist(msg, queue, &queue->batch->enqueued);
    *request = msg->outer;
    return MPI_SUCCESS;
}

int mpix_batch_enqueue(const mpix_msg_args_t *args, struct mpix_queue *queue,
                       MPI_Request *request)
{
    mpix_comm_t *comm;
    int rc;

    rc = mpix_msg_check(args);
    rc = (rc == MPI_SUCCESS) ? mpix_batch_get(args->func, queue) : rc;
    rc = (rc == MPI_SUCCESS) ? mpix_comm_get(args->comm, &comm) : rc;
    if (rc != MPI_SUCCESS) {
        return mpix_raise(args->comm, rc);
    }

    rc = (mpix_only_is(comm) && (args->coll == NULL)) ?
                 mpix_fifo_enqueue(args, queue, comm, request) :
                 mpix_batch_enqueue_mpi(args, queue, comm, request);
    mpix_comm_drop(comm);
    return rc;
}

static int mpix_batch_enqueue_comm(const mpix_msg_args_t *args,
                                   MPIX_Queue queue, MPI_Request *request)
{
    MPI_Comm comm;
    int rc;

    if (args->comm == MPI_COMM_NULL) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(args->func, MPI_ERR_COMM,
                                    "the communicator is MPI_COMM_NULL"));
    }
    if (request == NULL) {
        return mpix_raise(args->comm, mpix_fail(args->func, MPI_ERR_ARG,
                                                "the request is NULL"));
    }

    rc = mpix_batch_check_queue(args->func, queue, &comm);
    if (rc != MPI_SUCCESS) {
        return mpix_raise(args->comm, rc);
    }
    return mpix_batch_enqueue(args, queue, request);
}

static int mpix_batch_enqueue_queue(mpix_msg_args_t *args, MPIX_Queue queue,
                                    MPI_Request *request)
{
    int rc = mpix_batch_check_queue(args->func, queue, &args->comm);

    if (rc != MPI_SUCCESS) {
        return mpix_raise(args->comm, rc);
    }

    args->comm = mpix_batch_comm(queue);
    if (args->comm == MPI_COMM_NULL) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(args->func, MPI_ERR_COMM,
                                    "the queue's communicator was freed"));
    }
    return mpix_batch_enqueue_comm(args, queue, request);
}

int MPIX_Enqueue_send_comm(const void *buf, int count, MPI_Datatype datatype,
                           int dest, int tag, MPI_Comm comm, MPIX_Queue queue,
                           MPI_Request *request)
{
    const mpix_msg_args_t args = {
        "MPIX_Enqueue_send", 0, buf, count, datatype, dest, tag, comm, NULL
    };

    return mpix_batch_enqueue_comm(&args, queue, request);
}

int MPIX_Enqueue_send_queue(const void *buf, int count, MPI_Datatype datatype,
                            int dest, int tag, MPIX_Queue queue,
                            MPI_Request *request)
{
    mpix_msg_args_t args = {
        "MPIX_Enqueue_send", 0, buf, count, datatype, dest, tag, MPI_COMM_NULL,
        NULL
    };

    return mpix_batch_enqueue_queue(&args, queue, request);
}

int MPIX_Enqueue_recv_comm(void *buf, int count, MPI_Datatype datatype,
                           int source, int tag, MPI_Comm comm, MPIX_Queue queue,
                           MPI_Request *request)
{
    const mpix_msg_args_t args = {
        "MPIX_Enqueue_recv", 1, buf, count, datatype, source, tag, comm,
        NULL
    };

    return mpix_batch_enqueue_comm(&args, queue, request);
}

int MPIX_Enqueue_recv_queue(void *buf, int count, MPI_Datatype datatype,
                            int source, int tag, MPIX_Queue queue,
                            MPI_Request *request)
{
    mpix_msg_args_t args = {
        "MPIX_Enqueue_recv", 1, buf, count, datatype, source, tag,
        MPI_COMM_NULL, NULL
    };

    return mpix_batch_enqueue_queue(&args, queue, request);
}

int mpix_batch_command(const char *func, struct mpix_queue *queue,
                       const ucs_gstream_cmd_t *cmds, size_t count)
{
    ucs_status_t status = ucs_gstream_enqueue(queue->stream, cmds, count);

    if (status != UCS_OK) {
        return mpix_fail(func, mpix_status_code(status),
                         "the stream does not take the command: %s",
                         ucs_status_string(status));
    }
    ++queue->batch->commands;
    return MPI_SUCCESS;
}

/* Enqueues the start of all that the thread gives to MPI. */
static int mpix_batch_start_mpi(const char *func, struct mpix_queue *queue)
{
    mpix_batch_t *batch   = queue->batch;
    ucs_gstream_cmd_t cmd = {.type = UCS_GSTREAM_CMD_FUNC};
    mpix_msg_t *first;
    int rc;

    if ((batch == NULL) || ucs_list_is_empty(&batch->enqueued)) {
        return MPI_SUCCESS;
    }

    first         = ucs_list_head(&batch->enqueued, mpix_msg_t, list);
    first->waited = batch->waited;

    /* Once the command is enqueued, the thread may have the messages */
    ucs_list_del(&batch->enqueued);
    cmd.u.func.func = mpix_batch_thread_begin;
    cmd.u.func.arg  = first;
    rc              = mpix_batch_command(func, queue, &cmd, 1);
    if (rc != MPI_SUCCESS) {
        ucs_list_add_tail(&first->list, &batch->enqueued);
        return rc;
    }

    ucs_list_head_init(&batch->enqueued);
    batch->given = batch->num_given;
    return MPI_SUCCESS;
}

int mpix_batch_start_all(const char *func, struct mpix_queue *queue)
{
    int rc = mpix_batch_start_mpi(func, queue);

    rc = (rc == MPI_SUCCESS) ? mpix_fifo_start(func, queue) : rc;
    if ((rc == MPI_SUCCESS) && (queue->batch != NULL)) {
        queue->batch->started = queue->batch->count;
    }
    return rc;
}

int MPIX_Enqueue_start_batch(MPIX_Queue queue)
{
    static const char func[] = "MPIX_Enqueue_start";
    MPI_Comm comm;
    int rc;

    rc = mpix_batch_check_queue(func, queue, &comm);
    if (rc != MPI_SUCCESS) {
        return mpix_raise(comm, rc);
    }

    rc = mpix_batch_start_all(func, queue);
    return (rc == MPI_SUCCESS) ? rc : mpix_raise(mpix_batch_comm(queue), rc);
}

static void mpix_batch_waited(mpix_batch_t *batch)
{
    batch->waited = batch->started;
    batch->left   = 0;
}

int mpix_batch_wait_all(const char *func, struct mpix_queue *queue)
{
    mpix_batch_t *batch       = queue->batch;
    ucs_gstream_cmd_t cmds[2] = {
        {.type = UCS_GSTREAM_CMD_WAIT64}, {.type = UCS_GSTREAM_CMD_WRITE64}
    };
    int rc;

    if ((batch == NULL) || (batch->waited == batch->started)) {
        return MPI_SUCCESS;
    }

    rc = mpix_fifo_wait(func, queue);
    if ((rc != MPI_SUCCESS) || (batch->given == 0)) {
        if (rc == MPI_SUCCESS) {
            mpix_batch_waited(batch);
        }
        return rc;
    }
    cmds[0].u.word.address = batch->done;
    cmds[0].u.word.value   = batch->given;
    cmds[1].u.word.address = batch->passed;
    cmds[1].u.word.value   = batch->commands + 1;
    rc                     = mpix_batch_command(func, queue, cmds, 2);
    if (rc == MPI_SUCCESS) {
        mpix_batch_waited(batch);
    }
    return rc;
}

int MPIX_Enqueue_wait_batch(MPIX_Queue queue)
{
    static const char func[] = "MPIX_Enqueue_wait";
    MPI_Comm comm;
    int rc;

    rc = mpix_batch_check_queue(func, queue, &comm);
    if (rc != MPI_SUCCESS) {
        return mpix_raise(comm, rc);
    }

    rc = mpix_batch_wait_all(func, queue);
    return (rc == MPI_SUCCESS) ? rc : mpix_raise(mpix_batch_comm(queue), rc);
}
