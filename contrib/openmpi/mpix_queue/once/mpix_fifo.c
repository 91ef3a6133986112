/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_fifo.c - messages of communicators that are for queues only.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_fifo.h"
#include "mpix_assert.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "request/mpix_request.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A sweep looks at so many messages that are not over */
#define MPIX_FIFO_MAX_LOOKS 16

/* States of what is to be unpacked: one side alone ends the first one. */
enum {
    MPIX_FIFO_UNPACK_IDLE,
    MPIX_FIFO_UNPACK_RUN,
    MPIX_FIFO_UNPACK_DONE,
    MPIX_FIFO_UNPACK_VOID /* It has failed: nobody unpacks any more */
};

/* A received message that is to be unpacked by the stream, or by the host if no
 * wait was enqueued. */
typedef struct mpix_fifo_unpack {
    unsigned        refs;   /* The message's, and the stream's; atomic */
    ucs_list_link_t list;   /* Of those that a call gives to the stream; that
                               call's, as is the next one */
    mpix_batch_t    *batch; /* Of the queue: it stays until this has passed */
    mpix_msg_t      *msg;   /* A reference, as the next one */
    mpix_buffer_t   *buffer;
    int             is_given; /* To the stream; protected by the lock */
    int             state;  /* Atomic */
} mpix_fifo_unpack_t;


/* Messages that are started and not over. The lock is taken before that of the
 * st worker. No MPI call is made with it but those for statuses, and no command
 * is enqueued, which may block until the stream goes on. */
static struct {
    pthread_mutex_t lock;
    ucs_list_link_t list;  /* Those that a sweep has looked at last come last */
    uint64_t        count; /* Started so far; atomic */
    int             is_stopped; /* MPI is being finalised; the lock */
} mpix_fifo = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .list = UCS_LIST_INITIALIZER(&mpix_fifo.list, &mpix_fifo.list)
};


static void mpix_fifo_unpack_put(mpix_fifo_unpack_t *unpack)
{
    if (__atomic_sub_fetch(&unpack->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        mpix_buffer_put(unpack->buffer);
        mpix_msg_put(unpack->msg);
        free(unpack);
    }
}

/* Changes the state if it is IDLE. Returns the state that was found. */
static int mpix_fifo_unpack_change(mpix_fifo_unpack_t *unpack, int state)
{
    int found = MPIX_FIFO_UNPACK_IDLE;

    (void)__atomic_compare_exchange_n(&unpack->state, &found, state, 0,
                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return found;
}

static void mpix_fifo_unpack_now(mpix_fifo_unpack_t *unpack)
{
    if (mpix_fifo_unpack_change(unpack, MPIX_FIFO_UNPACK_RUN) !=
        MPIX_FIFO_UNPACK_IDLE) {
        return;
    }

    unpack->buffer->actual = __atomic_load_n(&unpack->msg->actual,
                                             __ATOMIC_ACQUIRE);
    mpix_buffer_unpack(unpack->buffer);
    __atomic_store_n(&unpack->state, MPIX_FIFO_UNPACK_DONE, __ATOMIC_RELEASE);
}

/* A message is over with this status: whether its data is where it belongs. The
 * host unpacks with the lock what no stream was given, so that a wait that is
 * enqueued now finds that done; and what was given to one that is lost. The
 * stream passes its wait for a message that has failed, too, and must not touch
 * the buffer then, which may be the application's again. */
static int mpix_fifo_unpack_end(mpix_fifo_unpack_t *unpack, ucs_status_t status)
{
    if (status != UCS_OK) {
        return mpix_fifo_unpack_change(unpack, MPIX_FIFO_UNPACK_VOID) !=
               MPIX_FIFO_UNPACK_RUN;
    }

    if (!unpack->is_given ||
        __atomic_load_n(&unpack->msg->batch->is_lost, __ATOMIC_ACQUIRE)) {
        mpix_fifo_unpack_now(unpack);
    }
    return __atomic_load_n(&unpack->state, __ATOMIC_ACQUIRE) ==
           MPIX_FIFO_UNPACK_DONE;
}

/* For the stream: it tells at the end that it has passed, so that the host's
 * wait for the queue covers it. */
static void mpix_fifo_unpack_func(void *arg)
{
    mpix_fifo_unpack_t *unpack = arg;
    mpix_batch_t *batch        = unpack->batch;

    mpix_fifo_unpack_now(unpack);
    mpix_fifo_unpack_put(unpack);
    __atomic_store_n(batch->passed, *batch->passed + 1, __ATOMIC_RELEASE);
}

static void mpix_fifo_pack_func(void *arg)
{
    mpix_buffer_pack(arg);
    mpix_buffer_put(arg);
}

/* Finds out what the buffer is. Returns an MPI code that is not raised. */
static int mpix_fifo_set_buffer(mpix_msg_t *msg, const mpix_msg_args_t *args)
{
    const char *refusal;
    int rc;

    rc = mpix_buffer_create(args->buffer, args->count, args->datatype,
                            &msg->buffer);
    if (rc != MPI_SUCCESS) {
        return mpix_fail(args->func, rc, (rc == MPI_ERR_TYPE) ?
                                                 "the datatype is not known" :
                                                 "no memory");
    }

    refusal = mpix_buffer_check(msg->buffer);
    if ((refusal == NULL) && (msg->buffer->blocks.count > 0)) {
        refusal = "with gaps, which a communicator that is for queues only "
                  "does not send from there";
    }
    if (refusal != NULL) {
        return mpix_fail(args->func, MPI_ERR_TYPE,
                         "the buffer is in memory of %s %s",
                         ucs_gstream_type_name(msg->buffer->memory), refusal);
    }
    msg->room = msg->buffer->length;
    if (mpix_buffer_stage(msg->buffer) != UCS_OK) {
        return mpix_fail(args->func, MPI_ERR_NO_MEM, "no memory");
    }
    if (!msg->is_recv || (msg->buffer->map == NULL)) {
        return MPI_SUCCESS;
    }

    msg->unpack = calloc(1, sizeof(*msg->unpack));
    if (msg->unpack == NULL) {
        return mpix_fail(args->func, MPI_ERR_NO_MEM, "no memory");
    }
    __atomic_add_fetch(&msg->buffer->refs, 1, __ATOMIC_RELAXED);
    mpix_msg_ref(msg);
    msg->unpack->refs   = 1;
    msg->unpack->msg    = msg;
    msg->unpack->buffer = msg->buffer;
    return MPI_SUCCESS;
}

/* Gives the message to the st worker. Returns an MPI code that is not
 * raised. */
static int mpix_fifo_give(mpix_msg_t *msg, const mpix_msg_args_t *args,
                          struct mpix_queue *queue)
{
    ucp_st_msg_params_t params = {
        .field_mask = UCP_ST_MSG_PARAM_FIELD_BUFFER |
                      UCP_ST_MSG_PARAM_FIELD_LENGTH |
                      UCP_ST_MSG_PARAM_FIELD_PEER |
                      UCP_ST_MSG_PARAM_FIELD_TAG |
                      UCP_ST_MSG_PARAM_FIELD_SCOPE |
                      UCP_ST_MSG_PARAM_FIELD_ACTUAL |
                      UCP_ST_MSG_PARAM_FIELD_NAME,
        .buffer     = msg->buffer->start,
        .length     = msg->buffer->length,
        .tag        = (ucp_tag_t)args->tag,
        .actual     = &msg->actual,
        .rank       = args->rank,
        .words      = "of a communicator that is for queues only"
    };
    ucs_status_t status;
    int rc;

    rc = mpix_only_peer(args->func, msg->comm, args->rank, &params.peer,
                        &params.scope);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    status = msg->is_recv ? ucp_st_enqueue_recv(queue->st_queue, &params,
                                                &msg->st_req) :
                            ucp_st_enqueue_send(queue->st_queue, &params,
                                                &msg->st_req);
    return (status == UCS_OK) ?
                   MPI_SUCCESS :
                   mpix_fail(args->func, mpix_status_code(status),
                             "the message cannot be enqueued: %s",
                             ucs_status_string(status));
}

/* Frees a message that no request is of. */
static void mpix_fifo_destroy(mpix_msg_t *msg)
{
    (void)ucp_st_req_free(msg->st_req);
    if (msg->unpack != NULL) {
        mpix_fifo_unpack_put(msg->unpack);
    }
    mpix_msg_destroy(msg);
}

/* UCS_INPROGRESS where there is no st queue. */
static ucs_status_t mpix_fifo_query(const struct mpix_queue *queue)
{
    return (queue->st_queue == NULL) ?
                   UCS_INPROGRESS :
                   ucp_st_queue_query(queue->st_queue, NULL);
}

/* The queue has this status: the message that has failed is the error. */
static void mpix_fifo_look_status(ucs_status_t status)
{
    if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
        mpix_fifo_look();
    }
}

void mpix_fifo_look_failed(const struct mpix_queue *queue)
{
    mpix_fifo_look_status(mpix_fifo_query(queue));
}

int mpix_fifo_enqueue(const mpix_msg_args_t *args, struct mpix_queue *queue,
                      mpix_comm_t *comm, MPI_Request *request)
{
    mpix_batch_t *batch = queue->batch;
    MPI_Comm failed     = MPI_COMM_NULL;
    ucs_status_t status;
    mpix_msg_t *msg;
    int rc;

    mpix_fifo_sweep();
    status = mpix_fifo_query(queue);
    mpix_fifo_look_status(status);
    if (status == UCS_OK) {
        mpix_batch_settle(batch, batch->waited);
    }
    mpix_batch_trim(MPIX_QUEUE_MAX_DROPPED);

    rc = mpix_batch_check(args->func, batch, &failed);
    if (rc != MPI_SUCCESS) {
        return mpix_raise(failed, rc);
    }
    rc = mpix_assert_check(args, comm);
    rc = (rc == MPI_SUCCESS) ? mpix_queue_get_st(args->func, queue) : rc;
    if (rc != MPI_SUCCESS) {
        return mpix_raise(args->comm, rc);
    }

    msg = mpix_msg_alloc(args, batch);
    if (msg == NULL) {
        return mpix_raise(args->comm, mpix_fail(args->func, MPI_ERR_NO_MEM,
                                                "no memory"));
    }
    mpix_comm_ref(comm);
    msg->comm    = comm;
    msg->inner   = MPI_REQUEST_NULL;
    msg->is_fifo = 1;
    if (!msg->is_null) {
        rc = mpix_fifo_set_buffer(msg, args);
        rc = (rc == MPI_SUCCESS) ? mpix_fifo_give(msg, args, queue) : rc;
    }
    if (rc != MPI_SUCCESS) {
        mpix_fifo_destroy(msg);
        return mpix_raise(args->comm, rc);
    }
    rc = mpix_msg_make_outer(msg);
    if (rc != MPI_SUCCESS) {
        mpix_fifo_destroy(msg);
        return rc;
    }
    mpix_msg_enlist(msg, queue, &batch->fifo_enqueued);
    *request = msg->outer;
    return MPI_SUCCESS;
}

/* Enqueues functions that pack the sends of a list, before their start. */
static int mpix_fifo_add_packs(const char *func, struct mpix_queue *queue,
                               ucs_list_link_t *list)
{
    mpix_msg_t *msg;
    ucs_status_t status;

    ucs_list_for_each(msg, list, list) {
        if (msg->is_null || msg->is_recv || (msg->buffer->map == NULL)) {
            continue;
        }
        __atomic_add_fetch(&msg->buffer->refs, 1, __ATOMIC_RELAXED);
        status = ucs_gstream_enqueue_func(queue->stream, mpix_fifo_pack_func,
                                          msg->buffer);
        if (status != UCS_OK) {
            mpix_buffer_put(msg->buffer);
            return mpix_fail(func, mpix_status_code(status),
                             "the stream does not take the command: %s",
                             ucs_status_string(status));
        }
    }
    return MPI_SUCCESS;
}

static int mpix_fifo_status(const char *func, ucs_status_t status)
{
    return (status == UCS_OK) ?
                   MPI_SUCCESS :
                   mpix_fail(func, mpix_status_code(status), "%s",
                             mpix_enqueue_cause(status, 1));
}

int mpix_fifo_start(const char *func, struct mpix_queue *queue)
{
    mpix_batch_t *batch = queue->batch;
    mpix_msg_t *msg;
    int rc;

    if ((batch == NULL) || ucs_list_is_empty(&batch->fifo_enqueued)) {
        return MPI_SUCCESS;
    }

    rc = mpix_fifo_add_packs(func, queue, &batch->fifo_enqueued);
    rc = (rc == MPI_SUCCESS) ?
                 mpix_fifo_status(func,
                                  ucp_st_enqueue_batch_start(queue->st_queue)) :
                 rc;
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    pthread_mutex_lock(&mpix_fifo.lock);
    while (!ucs_list_is_empty(&batch->fifo_enqueued)) {
        msg           = ucs_list_extract_head(&batch->fifo_enqueued, mpix_msg_t,
                                              list);
        msg->is_going = 1;
        ucs_list_add_tail(&mpix_fifo.list, &msg->list);
        __atomic_add_fetch(&mpix_fifo.count, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&mpix_fifo.lock);
    return MPI_SUCCESS;
}

/* Marks what a message's stream is to unpack, with a reference. With the
 * lock. */
static void mpix_fifo_collect(mpix_msg_t *msg, ucs_list_link_t *given)
{
    if ((msg->unpack != NULL) && !msg->unpack->is_given) {
        msg->unpack->is_given = 1;
        msg->unpack->batch    = msg->batch;
        __atomic_add_fetch(&msg->unpack->refs, 1, __ATOMIC_RELAXED);
        ucs_list_add_tail(given, &msg->unpack->list);
    }
}

/* The same for all of a queue, whose started messages are among all. */
static void mpix_fifo_collect_all(const struct mpix_queue *queue,
                                  ucs_list_link_t *given)
{
    mpix_msg_t *msg;

    pthread_mutex_lock(&mpix_fifo.lock);
    ucs_list_for_each(msg, &mpix_fifo.list, list) {
        if (msg->batch == queue->batch) {
            mpix_fifo_collect(msg, given);
        }
    }
    pthread_mutex_unlock(&mpix_fifo.lock);
}

/* The stream does not take it: the host unpacks it, or another wait. */
static void mpix_fifo_take_back(mpix_fifo_unpack_t *unpack)
{
    pthread_mutex_lock(&mpix_fifo.lock);
    unpack->is_given = 0;
    pthread_mutex_unlock(&mpix_fifo.lock);
    mpix_fifo_unpack_put(unpack);
}

/* Has the stream unpack all of a list, behind a wait that was enqueued with
 * this code. Returns the first code that is no MPI_SUCCESS. */
static int mpix_fifo_add_unpacks(const char *func, struct mpix_queue *queue,
                                 ucs_list_link_t *given, int rc)
{
    ucs_gstream_cmd_t cmd = {.type = UCS_GSTREAM_CMD_FUNC};
    mpix_fifo_unpack_t *unpack;

    cmd.u.func.func = mpix_fifo_unpack_func;
    while (!ucs_list_is_empty(given)) {
        unpack = ucs_list_extract_head(given, mpix_fifo_unpack_t, list);
        if (rc == MPI_SUCCESS) {
            cmd.u.func.arg = unpack;
            rc             = mpix_batch_command(func, queue, &cmd, 1);
        }
        if (rc != MPI_SUCCESS) {
            mpix_fifo_take_back(unpack);
        }
    }
    return rc;
}

int mpix_fifo_wait(const char *func, struct mpix_queue *queue)
{
    ucs_list_link_t given;
    int rc;

    if ((queue->batch == NULL) || (queue->st_queue == NULL)) {
        return MPI_SUCCESS;
    }

    rc = mpix_fifo_status(func, ucp_st_enqueue_batch_wait(queue->st_queue));
    if ((rc != MPI_SUCCESS) || (queue->batch->num_unpacks == 0)) {
        return rc;
    }
    ucs_list_head_init(&given);
    mpix_fifo_collect_all(queue, &given);
    return mpix_fifo_add_unpacks(func, queue, &given, MPI_SUCCESS);
}

/* Keeps calls of other threads from ending the messages of such communicators
 * that are not over, or lets them; of what they hold now, collects what is to
 * be unpacked. Returns how many requests of them are in 'reqs'. */
static size_t mpix_fifo_hold(mpix_msg_t *const msgs[], int count,
                             ucp_st_req_h *reqs, ucs_list_link_t *given)
{
    size_t num_reqs = 0;
    int i;

    pthread_mutex_lock(&mpix_fifo.lock);
    for (i = 0; i < count; ++i) {
        if (!msgs[i]->is_fifo || !msgs[i]->is_going) {
            continue;
        }
        msgs[i]->is_held = 1;
        if (msgs[i]->st_req != NULL) {
            reqs[num_reqs++] = msgs[i]->st_req;
        }
        mpix_fifo_collect(msgs[i], given);
    }
    pthread_mutex_unlock(&mpix_fifo.lock);
    return num_reqs;
}

static void mpix_fifo_unhold(mpix_msg_t *const msgs[], int count)
{
    int i;

    pthread_mutex_lock(&mpix_fifo.lock);
    for (i = 0; i < count; ++i) {
        msgs[i]->is_held = 0;
    }
    pthread_mutex_unlock(&mpix_fifo.lock);
}

/* For the stream: how messages that it has waited for have ended. */
typedef struct mpix_fifo_results {
    mpix_batch_t *batch; /* Of the queue: it stays until this has passed */
    int          count;
    struct {
        mpix_msg_t *msg; /* A reference */
        MPI_Status *status;
    } items[];
} mpix_fifo_results_t;

static void mpix_fifo_get_result(const mpix_msg_t *msg, uint64_t length,
                                 int code, MPI_Status *status)
{
    status->MPI_SOURCE = !msg->is_recv ? MPI_ANY_SOURCE :
                         msg->is_null  ? MPI_PROC_NULL : msg->rank;
    status->MPI_TAG    = (msg->is_recv && !msg->is_null) ? msg->tag :
                                                           MPI_ANY_TAG;
    status->MPI_ERROR  = code;
    PMPI_Status_set_cancelled(status, 0);
    PMPI_Status_set_elements_x(status, MPI_BYTE, (MPI_Count)length);
}

/* The stream has passed a wait for a receive. It has what the peer said that
 * would come, unless the host knows that it has failed. With the lock. */
static void mpix_fifo_set_result(mpix_msg_t *msg, MPI_Status *status)
{
    ucs_status_t result = msg->is_going ? ucp_st_req_query(msg->st_req, NULL) :
                                          msg->info.status;
    uint64_t length     = __atomic_load_n(&msg->actual, __ATOMIC_ACQUIRE);

    if ((result == UCS_OK) || (result == UCS_INPROGRESS)) {
        mpix_fifo_get_result(msg, length,
                             mpix_assert_is_exact(msg, length) ?
                                     MPI_SUCCESS : MPI_ERR_OTHER, status);
    } else {
        mpix_fifo_get_result(msg, 0, mpix_status_code(result), status);
    }
}

static void mpix_fifo_results_free(mpix_fifo_results_t *results)
{
    int i;

    for (i = 0; i < results->count; ++i) {
        mpix_msg_put(results->items[i].msg);
    }
    free(results);
}

static void mpix_fifo_results_func(void *arg)
{
    mpix_fifo_results_t *results = arg;
    mpix_batch_t *batch          = results->batch;
    int i;

    /* MPI's functions for statuses take no part in its progress, and call
     * nothing back: the lock is held only to keep MPI there */
    pthread_mutex_lock(&mpix_fifo.lock);
    for (i = 0; (i < results->count) && !mpix_fifo.is_stopped; ++i) {
        mpix_fifo_set_result(results->items[i].msg, results->items[i].status);
    }
    pthread_mutex_unlock(&mpix_fifo.lock);
    mpix_fifo_results_free(results);
    __atomic_store_n(batch->passed, *batch->passed + 1, __ATOMIC_RELEASE);
}

/* Stores what is known of results, and has the stream store those of receives,
 * which are over when it comes to this. */
static int mpix_fifo_add_results(const char *func, struct mpix_queue *queue,
                                 mpix_msg_t *const msgs[],
                                 MPI_Status *const statuses[], int count)
{
    ucs_gstream_cmd_t cmd = {.type = UCS_GSTREAM_CMD_FUNC};
    int rc                = MPI_SUCCESS;
    mpix_fifo_results_t *results;
    int i;

    results = malloc(sizeof(*results) + (count * sizeof(results->items[0])));
    if (results == NULL) {
        return mpix_fail(func, MPI_ERR_NO_MEM, "no memory");
    }

    results->batch = queue->batch;
    results->count = 0;
    for (i = 0; i < count; ++i) {
        if (!msgs[i]->is_fifo || (statuses[i] == NULL)) {
            continue;
        }
        if (!msgs[i]->is_recv || msgs[i]->is_null) {
            mpix_fifo_get_result(msgs[i], 0, MPI_SUCCESS, statuses[i]);
            continue;
        }
        mpix_msg_ref(msgs[i]);
        results->items[results->count].msg      = msgs[i];
        results->items[results->count++].status = statuses[i];
    }
    cmd.u.func.func = mpix_fifo_results_func;
    cmd.u.func.arg  = results;
    if (results->count > 0) {
        rc = mpix_batch_command(func, queue, &cmd, 1);
    }
    if ((results->count == 0) || (rc != MPI_SUCCESS)) {
        mpix_fifo_results_free(results);
    }
    return rc;
}

int mpix_fifo_wait_some(const char *func, struct mpix_queue *queue,
                        mpix_msg_t *const msgs[], MPI_Status *const results[],
                        int count, int is_all_waited)
{
    int rc = MPI_SUCCESS;
    ucs_list_link_t given;
    ucp_st_req_h *reqs;
    size_t num_reqs;

    if (!is_all_waited && (queue->st_queue != NULL)) {
        reqs = calloc(count, sizeof(*reqs));
        if (reqs == NULL) {
            return mpix_fail(func, MPI_ERR_NO_MEM, "no memory");
        }
        ucs_list_head_init(&given);
        num_reqs = mpix_fifo_hold(msgs, count, reqs, &given);
        rc       = mpix_fifo_status(func, ucp_st_enqueue_req_waitall(
                                                  queue->st_queue, reqs,
                                                  num_reqs));
        mpix_fifo_unhold(msgs, count);
        free(reqs);
        rc = mpix_fifo_add_unpacks(func, queue, &given, rc);
    }
    return (rc == MPI_SUCCESS) ? mpix_fifo_add_results(func, queue, msgs,
                                                       results, count) :
                                 rc;
}

/* Whether a message is over; then it is unpacked, and in the list no more. With
 * the lock. */
static int mpix_fifo_take(mpix_msg_t *msg, int is_asked)
{
    ucs_status_t status = UCS_OK;

    if (msg->is_held) {
        return 0;
    }
    if (!msg->is_null) {
        status = (is_asked ? ucp_st_req_test : ucp_st_req_query)(msg->st_req,
                                                                 &msg->info);
    }
    if ((status == UCS_INPROGRESS) ||
        ((msg->unpack != NULL) &&
         !mpix_fifo_unpack_end(msg->unpack, status))) {
        return 0;
    }

    msg->is_going = 0;
    ucs_list_del(&msg->list);
    return 1;
}

static int mpix_fifo_code(const mpix_msg_t *msg, ucs_status_t status)
{
    switch (status) {
    case UCS_OK:
        return mpix_assert_is_exact(msg, msg->info.length) ?
                       MPI_SUCCESS :
                       mpix_fail(msg->func, MPI_ERR_OTHER, "%zu bytes have "
                                 "come, and mpi_assert_exact_length says %zu",
                                 (size_t)msg->info.length, (size_t)msg->room);
    case UCS_ERR_MESSAGE_TRUNCATED:
        return mpix_fail(msg->func, MPI_ERR_TRUNCATE,
                         "the send is longer than the receive");
    case UCS_ERR_CANCELED:
        return mpix_fail(msg->func, MPI_ERR_OTHER,
                         "its queue has failed, or that of its other half, or "
                         "the peer has left");
    default:
        return mpix_fail(msg->func, mpix_status_code(status), "%s",
                         ucs_status_string(status));
    }
}

/* Completes a message that was taken. */
static void mpix_fifo_end(mpix_msg_t *msg)
{
    MPI_Status status;

    memset(&status, 0, sizeof(status));
    status.MPI_SOURCE = msg->is_null ? MPI_PROC_NULL : msg->rank;
    status.MPI_TAG    = msg->is_null ? MPI_ANY_TAG : msg->tag;
    PMPI_Status_set_elements_x(&status, MPI_BYTE,
                               (msg->info.status == UCS_OK) ?
                                       (MPI_Count)msg->info.length :
                                       0);
    if (msg->unpack != NULL) {
        mpix_fifo_unpack_put(msg->unpack);
    }
    (void)ucp_st_req_free(msg->st_req);
    mpix_batch_end(msg, mpix_fifo_code(msg, msg->info.status), &status);
}

void mpix_fifo_poll(int count, const MPI_Request requests[])
{
    mpix_msg_t *msg;
    int i, is_over;

    for (i = 0; i < count; ++i) {
        msg = mpix_request_may_be_given(&requests[i]) ?
                      mpix_msg_find(requests[i]) :
                      NULL;
        if (msg == NULL) {
            continue;
        }
        pthread_mutex_lock(&mpix_fifo.lock);
        is_over = msg->is_going && mpix_fifo_take(msg, 1);
        pthread_mutex_unlock(&mpix_fifo.lock);
        if (is_over) {
            mpix_fifo_end(msg);
        }
        mpix_msg_put(msg);
    }
}

/* Completes those that are over, up to so many that are not; 0: all. The next
 * call begins with others: these go to the end of the list. */
static void mpix_fifo_end_all(unsigned max_looks)
{
    unsigned looks = 0;
    mpix_msg_t *msg, *tmp;
    ucs_list_link_t over, open;

    ucs_list_head_init(&over);
    ucs_list_head_init(&open);
    pthread_mutex_lock(&mpix_fifo.lock);
    ucs_list_for_each_safe(msg, tmp, &mpix_fifo.list, list) {
        if (mpix_fifo_take(msg, 0)) {
            ucs_list_add_tail(&over, &msg->list);
            continue;
        }
        ucs_list_del(&msg->list);
        ucs_list_add_tail(&open, &msg->list);
        if (++looks == max_looks) {
            break;
        }
    }
    ucs_list_splice_tail(&mpix_fifo.list, &open);
    pthread_mutex_unlock(&mpix_fifo.lock);
    while (!ucs_list_is_empty(&over)) {
        mpix_fifo_end(ucs_list_extract_head(&over, mpix_msg_t, list));
    }
}

void mpix_fifo_sweep(void)
{
    mpix_fifo_end_all(MPIX_FIFO_MAX_LOOKS);
}

void mpix_fifo_look(void)
{
    mpix_fifo_end_all(0);
}

void mpix_fifo_cancel(mpix_batch_t *batch)
{
    MPI_Status status;
    mpix_msg_t *msg;

    memset(&status, 0, sizeof(status));
    if (!ucs_list_is_empty(&batch->fifo_enqueued)) {
        PMPI_Status_set_cancelled(&status, 1);
    }
    while (!ucs_list_is_empty(&batch->fifo_enqueued)) {
        msg = ucs_list_extract_head(&batch->fifo_enqueued, mpix_msg_t, list);
        (void)ucp_st_req_free(msg->st_req);
        if (msg->unpack != NULL) {
            mpix_fifo_unpack_put(msg->unpack);
        }
        msg->number = 0;
        mpix_batch_end(msg, MPI_SUCCESS, &status);
    }
}

/* Ends a message that is not over. The st worker goes on with it, and may write
 * its length, and read or write what it is packed into, until the process ends:
 * that memory is not given back. */
static void mpix_fifo_abandon(mpix_msg_t *msg)
{
    mpix_msg_ref(msg);
    if ((msg->buffer != NULL) && (msg->buffer->packed != NULL)) {
        __atomic_add_fetch(&msg->buffer->refs, 1, __ATOMIC_RELAXED);
        msg->unpack = NULL;
    }
    msg->info.status = UCS_ERR_CANCELED;
    mpix_fifo_end(msg);
}

void mpix_fifo_stop(void)
{
    unsigned count = 0;
    mpix_msg_t *msg;

    mpix_fifo_look();
    pthread_mutex_lock(&mpix_fifo.lock);
    mpix_fifo.is_stopped = 1;
    pthread_mutex_unlock(&mpix_fifo.lock);
    while (!ucs_list_is_empty(&mpix_fifo.list)) { /* Nobody else calls now */
        msg = ucs_list_extract_head(&mpix_fifo.list, mpix_msg_t, list);
        mpix_fifo_abandon(msg);
        ++count;
    }
    if (count > 0) {
        mpix_warn("%u messages of MPIX_Enqueue_send and MPIX_Enqueue_recv are "
                  "not complete at MPI_Finalize", count);
    }
    mpix_batch_trim(0);
}

void mpix_fifo_forked(void)
{
    pthread_mutex_init(&mpix_fifo.lock, NULL);
}

uint64_t mpix_fifo_count(void)
{
    return __atomic_load_n(&mpix_fifo.count, __ATOMIC_RELAXED);
}
