/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_queue.c - makes, waits for and frees queues.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "binding/mpix_backoff.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "binding/mpix_handle.h"
#include "coll/mpix_coll.h"
#include "mpix_host.h"
#include "request/mpix_match.h"
#include "request/mpix_queues.h"

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

/* Looks at queues that were freed, in MPI_Finalize: some seconds at most */
#define MPIX_QUEUE_MAX_SPINS 10000

/* Live queues. Protected by the lock. */
static UCS_LIST_HEAD(mpix_queues);

/* Queues that the application has freed and whose commands are under way. They
 * are destroyed by the next call that makes, frees or waits for a queue.
 * Protected by the lock. */
static UCS_LIST_HEAD(mpix_queues_freed);


int mpix_queue_is_valid(MPIX_Queue queue)
{
    int is_valid;

    mpix_lock();
    is_valid = mpix_handle_is_valid(&mpix_queues, queue);
    mpix_unlock();
    return is_valid;
}

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
    mpix_queues_reap();
    mpix_lock();
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

    queue->st_queue = NULL;
    status          = mpix_queue_put_stream(queue);
    if (status == UCS_ERR_BUSY) {
        return status; /* The application's own commands are under way */
    }

    mpix_coll_leave_queue(queue);
    ucs_list_del(&queue->list);
    if (queue->batch != NULL) {
        mpix_batch_settle(queue->batch, queue->batch->waited);
        mpix_batch_put(queue->batch);
    }
    if (queue->comm != NULL) {
        mpix_comm_put(queue->comm);
    }
    for (i = 0; i < MPIX_QUEUE_MAX_SETS; ++i) {
        free(queue->sets[i].requests);
        free(queue->sets[i].ops);
    }
    ucs_gstream_word_put(queue->end);
    free(queue);
    return UCS_OK;
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

unsigned mpix_queues_reap(void)
{
    unsigned count = 0;
    struct mpix_queue *queue, *tmp;

    mpix_host_lock(); /* A request's wait may use a queue that was freed */
    mpix_lock();
    ucs_list_for_each_safe(queue, tmp, &mpix_queues_freed, list) {
        count += ((queue->end != NULL) &&
                  !__atomic_load_n(queue->end, __ATOMIC_ACQUIRE)) ||
                 (mpix_queue_destroy(queue) != UCS_OK);
    }
    mpix_unlock();
    mpix_host_unlock();
    return count;
}

ucs_status_t mpix_queues_take_stream(ucs_gstream_h stream)
{
    ucs_status_t status = UCS_OK;
    struct mpix_queue *queue;

    mpix_queues_reap();
    mpix_lock();
    ucs_list_for_each(queue, &mpix_queues, list) {
        if (queue->stream == stream) {
            status = UCS_ERR_BUSY;
            goto out;
        }
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
    return status;
}

int mpix_queue_open(const char *func, ucs_gstream_h stream, MPIX_Queue *queue_p)
{
    MPIX_Queue queue = MPIX_QUEUE_NULL;
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

    rc = (type != MPIX_QUEUE_ANY) ? mpix_queue_open(func, stream, queue_p) :
                       mpix_queue_create(func, stream, comm, queue_p);
    if (rc == MPI_SUCCESS) {
        (*queue_p)->is_made = is_made;
    } else if (is_made) {
        (void)ucs_gstream_destroy(stream);
    }
    return rc;
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

int mpix_queue_free(const char *func, MPIX_Queue queue)
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
    status = mpix_queue_destroy(queue);
    mpix_unlock();
    mpix_host_unlock();

    if (status != UCS_OK) {
        mpix_queue_put_end(queue);
        mpix_lock();
        ucs_list_del(&queue->list);
        ucs_list_add_tail(&mpix_queues_freed, &queue->list);
        mpix_unlock();
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
        mpix_backoff(&spins);
    }
    if (num_busy > 0) {
        mpix_warn("%u queues that were freed have not run all their commands "
                  "at MPI_Finalize", num_busy);
    }

    mpix_lock();
    ucs_list_for_each_safe(queue, tmp, &mpix_queues, list) {
        count += !queue->is_internal;
        mpix_queue_destroy(queue);
    }
    mpix_unlock();
    if (count > 0) {
        mpix_warn("%u %s not freed before MPI_Finalize", count,
                  (count == 1) ? "queue was" : "queues were");
    }
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

    if (status != UCS_OK) {
        return mpix_queue_failed(func, status, &error, comm_p);
    }
    if (queue->batch != NULL) {
        rc = mpix_batch_check(func, queue->batch, comm_p);
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
