/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_queue.c - makes, waits for and frees queues.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_queues.h"
#include "mpix_coll.h"
#include "mpix_error.h"
#include "mpix_global.h"
#include "mpix_handle.h"
#include "mpix_match.h"

#include <ucs_trace.h>
#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* How long the host sleeps between two looks at what MPI has to do, in seconds:
 * at first, and at most. The stream wakes it as soon as it has run
 * everything. */
#define MPIX_QUEUE_SLEEP_MIN 1e-3
#define MPIX_QUEUE_SLEEP_MAX 8e-3

/* Live queues. Protected by the lock. */
static UCS_LIST_HEAD(mpix_queues);


int mpix_queue_is_valid(MPIX_Queue queue)
{
    int is_valid;

    mpix_lock();
    is_valid = mpix_handle_is_valid(&mpix_queues, queue);
    mpix_unlock();
    return is_valid;
}

static int mpix_queue_check_stream(const char *func, int type, void *stream)
{
    switch (type) {
    case MPIX_QUEUE_HOST:
    case MPIX_QUEUE_GPU_MEM_OPS:
    case MPIX_QUEUE_CXI:
        break;
    case MPIX_QUEUE_HIP:
    case MPIX_QUEUE_CUDA:
        return mpix_fail(func, MPI_ERR_UNSUPPORTED_OPERATION,
                         "streams of GPUs are not supported yet");
    default:
        return mpix_fail(func, MPI_ERR_ARG, "unknown type %d of stream", type);
    }

    if (!ucs_gstream_is_valid(stream) ||
        (ucs_gstream_type(stream) != UCS_GSTREAM_TYPE_HOST)) {
        return mpix_fail(func, MPI_ERR_ARG,
                         "%p is no stream of MPIX_Host_stream_create", stream);
    }
    return MPI_SUCCESS;
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

/* Makes a queue without an st queue. */
static int mpix_queue_create(const char *func, ucs_gstream_h stream,
                             mpix_comm_t *comm, MPIX_Queue *queue_p)
{
    struct mpix_queue *queue = calloc(1, sizeof(*queue));

    if (queue == NULL) {
        return mpix_fail(func, MPI_ERR_NO_MEM, "no memory");
    }

    queue->stream = stream;
    queue->comm   = comm;
    ucs_list_head_init(&queue->colls);
    mpix_lock();
    ucs_list_add_tail(&mpix_queues, &queue->list);
    mpix_unlock();

    *queue_p = queue;
    return MPI_SUCCESS;
}

/* Gives a queue back, if it is idle. Needs the lock. */
static ucs_status_t mpix_queue_destroy(struct mpix_queue *queue)
{
    ucs_status_t status = UCS_OK;
    unsigned i;

    if (((queue->batch != NULL) && !mpix_batch_is_idle(queue->batch)) ||
        !mpix_coll_is_idle(queue)) {
        return UCS_ERR_BUSY;
    }
    if (queue->st_queue != NULL) {
        status = ucp_st_queue_destroy(queue->st_queue);
    }
    if (status != UCS_OK) {
        return status;
    }

    mpix_coll_leave_queue(queue);
    ucs_list_del(&queue->list);
    if (queue->batch != NULL) {
        mpix_batch_destroy(queue->batch);
    }
    if (queue->comm != NULL) {
        mpix_comm_put(queue->comm);
    }
    for (i = 0; i < MPIX_QUEUE_MAX_SETS; ++i) {
        free(queue->sets[i].requests);
        free(queue->sets[i].ops);
    }
    free(queue);
    return UCS_OK;
}

int mpix_queue_open(const char *func, void *stream, MPIX_Queue *queue_p)
{
    MPIX_Queue queue;
    int rc;

    rc = mpix_global_init(func);
    if (rc == MPI_SUCCESS) {
        rc = mpix_queue_create(func, stream, NULL, &queue);
    }
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = mpix_queue_get_st(func, queue);
    if (rc == MPI_SUCCESS) {
        *queue_p = queue;
    } else {
        mpix_lock();
        mpix_queue_destroy(queue);
        mpix_unlock();
    }
    return rc;
}

int MPIX_Queue_init(int type, void *stream, MPIX_Queue *queue)
{
    static const char func[] = "MPIX_Queue_init";
    int rc;

    rc = (queue == NULL) ? mpix_fail(func, MPI_ERR_ARG, "NULL argument") :
                           mpix_queue_check_stream(func, type, stream);
    if (rc == MPI_SUCCESS) {
        rc = mpix_queue_open(func, stream, queue);
    }
    return mpix_raise(MPI_COMM_NULL, rc);
}

/* The st worker is not needed, and may not be to be had. */
static int mpix_queue_create_any(const char *func, void *stream,
                                 MPI_Comm handle, MPIX_Queue *queue)
{
    mpix_comm_t *comm = NULL;
    int rc;

    if (queue == NULL) {
        return mpix_fail(func, MPI_ERR_ARG, "NULL argument");
    }

    rc = mpix_queue_check_stream(func, MPIX_QUEUE_HOST, stream);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    if (handle != MPI_COMM_WORLD) {
        rc = mpix_comm_get(handle, &comm);
        if (rc != MPI_SUCCESS) {
            return mpix_fail(func, rc, "no memory for a communicator");
        }
    }

    rc = mpix_queue_create(func, stream, comm, queue);
    if ((rc != MPI_SUCCESS) && (comm != NULL)) {
        mpix_lock();
        mpix_comm_put(comm);
        mpix_unlock();
    }
    return rc;
}

int MPIX_Create_queue_comm(MPI_Comm comm, void *stream, MPIX_Queue *queue)
{
    static const char func[] = "MPIX_Create_queue";
    int rc                   = mpix_check_comm(func, comm);

    return (rc == MPI_SUCCESS) ?
                   mpix_raise(comm, mpix_queue_create_any(func, stream, comm,
                                                          queue)) :
                   rc;
}

int MPIX_Create_queue_stream(void *stream, MPIX_Queue *queue)
{
    return MPIX_Create_queue_comm(MPI_COMM_WORLD, stream, queue);
}

static int mpix_queue_free(const char *func, MPIX_Queue queue)
{
    ucs_status_t status;

    if (!mpix_queue_is_valid(queue)) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, MPI_ERR_ARG, "%p is no live queue",
                                    (void*)queue));
    }

    mpix_lock();
    status = mpix_queue_destroy(queue);
    mpix_unlock();

    if (status != UCS_OK) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, MPI_ERR_PENDING,
                                    "commands are in flight: call "
                                    "MPIX_Queue_wait first"));
    }
    return MPI_SUCCESS;
}

int MPIX_Queue_free(MPIX_Queue *queue)
{
    int rc = mpix_queue_free("MPIX_Queue_free",
                             (queue == NULL) ? MPIX_QUEUE_NULL : *queue);

    if (rc == MPI_SUCCESS) {
        *queue = MPIX_QUEUE_NULL;
    }
    return rc;
}

int MPIX_Free_queue(MPIX_Queue queue)
{
    return mpix_queue_free("MPIX_Free_queue", queue);
}

void mpix_queues_cancel(void)
{
    struct mpix_queue *queue;

    mpix_lock();
    ucs_list_for_each(queue, &mpix_queues, list) {
        if (queue->batch != NULL) {
            mpix_batch_cancel(queue->batch);
        }
    }
    mpix_unlock();
}

void mpix_queues_cleanup(void)
{
    unsigned count = 0;
    struct mpix_queue *queue, *tmp;

    ucs_list_for_each_safe(queue, tmp, &mpix_queues, list) {
        count += !queue->is_internal;
        mpix_queue_destroy(queue);
    }

    if (count > 0) {
        mpix_warn("%u queues were not freed before MPI_Finalize", count);
    }
}

/* Names the operation that put a queue into error. */
static int mpix_queue_failed(const char *func, ucs_status_t status,
                             const ucp_st_queue_error_t *error)
{
    char str[MPIX_REQ_STR_MAX] = "an operation";
    mpix_req_t *req;

    mpix_lock();
    req = mpix_request_find_op(error->op);
    if (req != NULL) {
        mpix_request_str(req, str, sizeof(str));
    }
    mpix_unlock();

    return mpix_fail(func, MPI_ERR_OTHER, "%s failed: %s", str,
                     ucs_status_string(status));
}

/* Whether matched requests and messages of the queue have run, as
 * ucp_st_queue_query(). */
static ucs_status_t mpix_queue_query(struct mpix_queue *queue,
                                     ucp_st_queue_error_t *error)
{
    ucs_status_t status = UCS_OK;

    mpix_lock();
    if (queue->st_queue != NULL) {
        ucp_st_worker_progress(mpix_global.st_worker);
        status = ucp_st_queue_query(queue->st_queue, error);
    }
    if ((status == UCS_OK) && !mpix_coll_is_idle(queue)) {
        status = UCS_INPROGRESS;
    }
    mpix_unlock();

    return ((status == UCS_OK) && (queue->batch != NULL) &&
            !mpix_batch_is_idle(queue->batch)) ?
                   UCS_INPROGRESS :
                   status;
}

/* Both MPI and the st worker go on while the host waits: the commands that it
 * waits for may need what the peers do after a message of MPI. */
static int mpix_queue_wait(struct mpix_queue *queue)
{
    static const char func[]   = "MPIX_Queue_wait";
    ucp_st_queue_error_t error = {.status = UCS_OK};
    double sleep_time          = MPIX_QUEUE_SLEEP_MIN;
    ucs_status_t status;

    while ((status = mpix_queue_query(queue, &error)) == UCS_INPROGRESS) {
        mpix_match_progress_mpi();

        status = ucs_gstream_synchronize_timeout(queue->stream, sleep_time);
        if (status == UCS_ERR_BUSY) {
            return mpix_fail(func, MPI_ERR_OTHER,
                             "called by a function of the queue's own stream");
        }
        sleep_time = ucs_min(2 * sleep_time, MPIX_QUEUE_SLEEP_MAX);
    }

    if (status != UCS_OK) {
        return mpix_queue_failed(func, status, &error);
    }
    if ((queue->batch != NULL) &&
        (mpix_batch_code(queue->batch) != MPI_SUCCESS)) {
        return mpix_fail(func, MPI_ERR_OTHER,
                         "a message of MPIX_Enqueue_send or MPIX_Enqueue_recv "
                         "has failed: its request says why");
    }
    return mpix_coll_check_queue(func, queue);
}

int MPIX_Queue_wait(MPIX_Queue queue)
{
    uint64_t begin = ucs_trace_begin();
    int rc         = mpix_queue_is_valid(queue) ?
                     mpix_queue_wait(queue) :
                     mpix_fail("MPIX_Queue_wait", MPI_ERR_ARG,
                               "%p is no live queue", (void*)queue);

    ucs_trace_end("MPIX_Queue_wait", begin);
    return mpix_raise(MPI_COMM_NULL, rc);
}

int MPIX_Queue_get_stats(MPIX_Queue_stats *stats)
{
    ucp_st_worker_attr_t attr = {.stats = {0}};

    if (stats == NULL) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail("MPIX_Queue_get_stats", MPI_ERR_ARG,
                                    "NULL argument"));
    }

    mpix_lock();
    if (mpix_global.state == MPIX_STATE_READY) {
        ucp_st_worker_query(mpix_global.st_worker, &attr);
    }
    mpix_unlock();

    memset(stats, 0, sizeof(*stats));
    stats->starts       = attr.stats.starts;
    stats->waits        = attr.stats.waits;
    stats->writes_fired = attr.stats.writes_fired;
    stats->chunks       = attr.stats.chunks;
    stats->copies       = attr.stats.copies;
    stats->proxied      = attr.stats.proxied;
    stats->messages     = mpix_batch_begun();
    snprintf(stats->provider, sizeof(stats->provider), "%s", attr.provider);
    snprintf(stats->device, sizeof(stats->device), "%s", attr.device);
    return MPI_SUCCESS;
}

int MPIX_Queue_print_stats(FILE *stream)
{
    if (stream == NULL) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail("MPIX_Queue_print_stats", MPI_ERR_ARG,
                                    "NULL argument"));
    }

    mpix_lock();
    if (mpix_global.state == MPIX_STATE_READY) {
        ucp_st_worker_print_stats(mpix_global.st_worker, stream);
    }
    mpix_unlock();
    return MPI_SUCCESS;
}
