/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_queue.c - makes queues, and waits for them.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "coll/mpix_coll.h"
#include "mpix_init.h"
#include "mpix_queue_free.h"
#include "mpix_stream.h"
#include "once/mpix_fifo.h"
#include "request/mpix_match.h"

#include <ucs_gstream.h>
#include <ucs_trace.h>
#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* How long the host sleeps between two looks at what MPI has to do, in seconds:
 * at first, and at most. The stream wakes it as soon as it has run
 * everything. */
#define MPIX_QUEUE_SLEEP_MIN 1e-3
#define MPIX_QUEUE_SLEEP_MAX 8e-3

/* In place of a type of MPIX_Queue_init(): the handle tells. */
#define MPIX_QUEUE_ANY (-1)

/* The kind of stream that a handle is, for the type that the application gave;
 * MPIX_QUEUE_ANY stands for any. */
static int mpix_queue_find_type(const char *func, int type, void *stream,
                                ucs_gstream_type_t *type_p)
{
    static const ucs_gstream_type_t types[] = {
        [MPIX_QUEUE_HOST] = UCS_GSTREAM_TYPE_HOST,
        [MPIX_QUEUE_HIP]  = UCS_GSTREAM_TYPE_HIP,
        [MPIX_QUEUE_CUDA] = UCS_GSTREAM_TYPE_CUDA
    };
    int is_host = ucs_gstream_is_valid(stream);

    switch (type) {
    case MPIX_QUEUE_HOST:
        if (!is_host || (ucs_gstream_type(stream) != UCS_GSTREAM_TYPE_HOST)) {
            return mpix_fail(func, MPI_ERR_ARG,
                             "%p is no stream of MPIX_Host_stream_create",
                             stream);
        }
        break;
    case MPIX_QUEUE_HIP:
    case MPIX_QUEUE_CUDA:
        if (is_host && (ucs_gstream_type(stream) != types[type])) {
            return mpix_fail(func, MPI_ERR_ARG,
                             "%p is a stream of MPIX_Host_stream_create, and "
                             "of no GPU", stream);
        }
        break;
    case MPIX_QUEUE_ANY:
    case MPIX_QUEUE_GPU_MEM_OPS:
    case MPIX_QUEUE_CXI:
        if (ucs_gstream_detect(stream, type_p) != UCS_OK) {
            return mpix_fail(func, MPI_ERR_ARG,
                             "%p is no stream of MPIX_Host_stream_create, HIP "
                             "or CUDA", stream);
        }
        return MPI_SUCCESS;
    default:
        return mpix_fail(func, MPI_ERR_ARG, "unknown type %d of stream", type);
    }
    *type_p = types[type];
    return MPI_SUCCESS;
}

/* A stream of this library for what the application gave: that one, or one that
 * is made on a stream of a GPU's runtime, and then is the queue's. */
static int mpix_queue_get_stream(const char *func, int type, void *stream,
                                 ucs_gstream_h *stream_p, int *is_made_p)
{
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE |
                      UCS_GSTREAM_PARAM_FIELD_NATIVE,
        .native     = stream
    };
    ucs_gstream_type_attr_t attr;
    ucs_status_t status;
    int rc;

    rc = mpix_queue_find_type(func, type, stream, &params.type);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    *is_made_p = 0;
    *stream_p  = stream;
    if ((stream != NULL) && ucs_gstream_is_valid(stream)) {
        return MPI_SUCCESS;
    }

    status = ucs_gstream_query_type(params.type, &attr);
    if (status != UCS_OK) {
        return mpix_fail(func, MPI_ERR_UNSUPPORTED_OPERATION,
                         "no streams of %s: %s", attr.name, attr.reason);
    }
    status = ucs_gstream_create(&params, stream_p);
    if (status != UCS_OK) {
        return mpix_fail(func, (status == UCS_ERR_INVALID_PARAM) ?
                                       MPI_ERR_ARG :
                                       mpix_status_code(status),
                         "%p cannot be used as a stream of %s: %s", stream,
                         attr.name, ucs_status_string(status));
    }
    *is_made_p = 1;
    return MPI_SUCCESS;
}

/* Makes a queue on what the application gave, with an st queue if it needs one.
 * The communicator is the queue's. */
static int mpix_queue_make(const char *func, int type, void *handle,
                           mpix_comm_t *comm, MPIX_Queue *queue_p)
{
    ucs_gstream_h stream;
    int is_made, rc;

    rc = mpix_queue_get_stream(func, type, handle, &stream, &is_made);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    mpix_queues_reap();
    if (type == MPIX_QUEUE_ANY) {
        rc = mpix_queue_create(func, stream, comm, queue_p);
    } else {
        rc = mpix_global_init(func);
        rc = (rc == MPI_SUCCESS) ? mpix_queue_open(func, stream, queue_p) : rc;
    }
    if (rc == MPI_SUCCESS) {
        (*queue_p)->is_made = is_made;
    } else if (is_made) {
        (void)ucs_gstream_destroy(stream);
    }
    return rc;
}

int mpix_stream_get_queue(const char *func, void *stream, MPIX_Queue *queue_p)
{
    return mpix_queue_make(func, MPIX_QUEUE_ANY, stream, NULL, queue_p);
}

int MPIX_Queue_init(int type, void *stream, MPIX_Queue *queue)
{
    static const char func[] = "MPIX_Queue_init";
    int rc;

    if (queue == NULL) {
        rc = mpix_fail(func, MPI_ERR_ARG, "NULL argument");
    } else if (type == MPIX_QUEUE_ANY) {
        rc = mpix_fail(func, MPI_ERR_ARG, "unknown type %d of stream", type);
    } else {
        rc = mpix_queue_make(func, type, stream, NULL, queue);
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

    if (handle != MPI_COMM_WORLD) {
        rc = mpix_comm_get(handle, &comm);
        if (rc != MPI_SUCCESS) {
            return mpix_fail(func, rc, "no memory for a communicator");
        }
    }

    rc = mpix_queue_make(func, MPIX_QUEUE_ANY, stream, comm, queue);
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

/* Names the operation that put a queue into error. The communicator is that of
 * its request, if there is one. */
static int mpix_queue_failed(const char *func, ucs_status_t status,
                             const ucp_st_queue_error_t *error,
                             MPI_Comm *comm_p)
{
    char str[MPIX_REQ_STR_MAX] = "an operation";
    mpix_req_t *req;

    mpix_lock();
    req = mpix_request_find_op(error->op);
    if (req != NULL) {
        mpix_request_str(req, str, sizeof(str));
        *comm_p = req->comm->handle;
    }
    mpix_unlock();

    return mpix_fail(func, MPI_ERR_OTHER, "%s failed: %s", str,
                     mpix_request_cause(status));
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

    /* The stream's functions of messages touch buffers also in a queue that is
     * in error */
    return ((status == UCS_INPROGRESS) || mpix_batch_has_ended(queue)) ?
                   status :
                   UCS_INPROGRESS;
}

/* Both MPI and the st worker go on while the host waits: the commands that it
 * waits for may need what the peers do after a message of MPI. */
static int mpix_queue_wait(struct mpix_queue *queue, MPI_Comm *comm_p)
{
    static const char func[]   = "MPIX_Queue_wait";
    ucp_st_queue_error_t error = {.status = UCS_OK};
    double sleep_time          = MPIX_QUEUE_SLEEP_MIN;
    ucs_status_t status;
    int rc = MPI_SUCCESS;

    while ((status = mpix_queue_query(queue, &error)) == UCS_INPROGRESS) {
        mpix_match_progress_mpi();

        status = ucs_gstream_synchronize_timeout(queue->stream, sleep_time);
        if (status == UCS_ERR_BUSY) {
            return mpix_fail(func, MPI_ERR_OTHER,
                             "called by a function of the queue's own stream");
        }
        /* A queue of matched requests learns itself that its stream is lost */
        if ((status != UCS_OK) && (status != UCS_INPROGRESS) &&
            ((queue->st_queue == NULL) || (status == UCS_ERR_UNSUPPORTED))) {
            return mpix_fail(func, MPI_ERR_OTHER,
                             "the stream cannot be waited for: %s",
                             ucs_status_string(status));
        }
        sleep_time = ucs_min(2 * sleep_time, MPIX_QUEUE_SLEEP_MAX);
    }

    if (queue->batch != NULL) {
        mpix_fifo_look();
        rc = mpix_batch_check(func, queue->batch, comm_p);
    }
    if ((status == UCS_OK) && (queue->batch != NULL) &&
        !mpix_batch_is_idle(queue->batch)) {
        status = UCS_ERR_IO_ERROR; /* it is lost behind the st queue's part */
    }
    if ((status != UCS_OK) && (rc == MPI_SUCCESS)) {
        return mpix_queue_failed(func, status, &error, comm_p);
    }
    return (rc == MPI_SUCCESS) ? mpix_coll_check_queue(func, queue) : rc;
}

int MPIX_Queue_wait(MPIX_Queue queue)
{
    uint64_t begin = ucs_trace_begin();
    MPI_Comm comm  = MPI_COMM_NULL;
    int rc         = mpix_queue_is_valid(queue) ?
                     mpix_queue_wait(queue, &comm) :
                     mpix_fail("MPIX_Queue_wait", MPI_ERR_ARG,
                               "%p is no live queue", (void*)queue);

    mpix_queues_reap();
    ucs_trace_end("MPIX_Queue_wait", begin);
    return mpix_raise(comm, rc);
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
    stats->queue_messages = mpix_fifo_count();
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
    mpix_batch_print_stats(stream);
    return MPI_SUCCESS;
}
