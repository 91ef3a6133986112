/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_mpis.c - the calls of compat/stream-triggering.h.
 *
 * A request there is one of MPI, and whether it was given to match.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "compat/stream-triggering.h"
#include "binding/mpix_error.h"
#include "binding/mpix_handle.h"
#include "mpix_queue.h"
#include "request/mpix_buffer.h"
#include "request/mpix_match.h"
#include "request/mpix_queues.h"

#include <ucs_backoff.h>
#include <ucs_gstream.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


typedef enum {
    MPIX_MPIS_UNMATCHED,
    MPIX_MPIS_MATCHED, /* Was given to match */
    MPIX_MPIS_MATCH    /* Is no message, but the match of one */
} mpix_mpis_state_t;

/* A request. Of the thread that calls. */
struct MPIS_Request_struct {
    MPI_Request       request; /* The message's */
    mpix_mpis_state_t state;
};

/* Behind the handle of a queue. Of the thread that calls. */
typedef struct mpix_mpis_queue {
    MPIX_Queue  queue;
    void        *stream;  /* Own; NULL if it is the application's */
} mpix_mpis_queue_t;

/* What a message is. */
typedef struct mpix_mpis_args {
    void         *buf;
    MPI_Count    count;
    MPI_Datatype datatype;
    int          peer;
    int          tag;
    MPI_Comm     comm;
} mpix_mpis_args_t;

/* MPI_Send_init, or another one of its kind. */
typedef int (*mpix_mpis_init_t)(const mpix_mpis_args_t *args, int count,
                                MPI_Datatype datatype, MPI_Request *request);


/* Live queues: handles of objects. */
static UCS_LIST_HEAD(mpix_mpis_queues);


void MPIS_Hello_world(void)
{
    printf("Hello from stream-triggering.h on libmpix_queue\n");
}

/* Queues */

static const char *mpix_mpis_type_name(MPIS_Queue_type type)
{
    switch (type) {
    case THREAD:
        return "THREAD";
    case GPU_MEM_OPS:
        return "GPU_MEM_OPS";
    case CXI:
        return "CXI";
    }
    return NULL;
}

/* The object of a handle; raises that it is none, and returns the code. */
static int mpix_mpis_queue_get(const char *func, MPIS_Queue handle,
                               mpix_mpis_queue_t **queue_p)
{
    *queue_p = mpix_handle_object(&mpix_mpis_queues, (void*)handle);
    return (*queue_p != NULL) ? MPI_SUCCESS :
                                mpix_handle_refuse(func, (void*)handle,
                                                   "queue of MPIS_Queue_init");
}

/* Finds the stream, or makes one where 'stream_p' is NULL on return. */
static int mpix_mpis_queue_stream(MPIS_Queue_type type, void *place,
                                  void **stream_p)
{
    static const char func[] = "MPIS_Queue_init";
    const char *name         = mpix_mpis_type_name(type);
    void *stream             = (place == NULL) ? NULL : *(void**)place;
    ucs_gstream_type_t kind;

    if (name == NULL) {
        mpix_print_error(func, "unknown type %d of queue", (int)type);
        return MPIS_UNSUPPORTED_BEHAVIOR;
    } else if (((type != THREAD) || (stream != NULL)) &&
               (ucs_gstream_detect(stream, &kind) != UCS_OK)) {
        mpix_print_error(func,
                         "a queue of type %s on %p, which is no stream of "
                         "MPIX_Host_stream_create, HIP or CUDA", name, stream);
        return MPIS_UNSUPPORTED_BEHAVIOR;
    }

    *stream_p = stream;
    return MPIS_SUCCESS;
}

/* Makes the queue behind a handle, and its own stream if 'stream' is NULL and
 * the type is THREAD. Other types find out what the stream is. */
static int mpix_mpis_queue_open(mpix_mpis_queue_t *queue,
                                MPIS_Queue_type type, void *stream)
{
    int rc;

    if ((stream == NULL) && (type == THREAD)) {
        rc = MPIX_Host_stream_create(&queue->stream);
        if (rc != MPI_SUCCESS) {
            return rc;
        }
        stream = queue->stream;
    }

    rc = MPIX_Queue_init(MPIX_QUEUE_GPU_MEM_OPS, stream, &queue->queue);
    if ((rc != MPI_SUCCESS) && (queue->stream != NULL)) {
        MPIX_Host_stream_free(&queue->stream);
    }
    return rc;
}

int MPIS_Queue_init(MPIS_Queue *queue, MPIS_Queue_type type, void *stream)
{
    static const char func[] = "MPIS_Queue_init";
    mpix_mpis_queue_t *object;
    void *host, *handle;
    int rc;

    if (queue == NULL) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, MPI_ERR_ARG, "NULL argument"));
    }

    rc = mpix_mpis_queue_stream(type, stream, &host);
    if (rc != MPIS_SUCCESS) {
        return rc;
    }

    object = calloc(1, sizeof(*object));
    handle = (object == NULL) ? NULL :
                                mpix_handle_create(&mpix_mpis_queues, object);
    if (handle == NULL) {
        free(object);
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, MPI_ERR_NO_MEM, "no memory"));
    }

    rc = mpix_mpis_queue_open(object, type, host);
    if (rc != MPI_SUCCESS) {
        mpix_handle_destroy(handle);
        free(object);
        return rc;
    }

    *queue = (MPIS_Queue)handle;
    return MPIS_SUCCESS;
}

int MPIS_Queue_free(MPIS_Queue *queue)
{
    MPIS_Queue handle = (queue == NULL) ? MPIS_QUEUE_NULL : *queue;
    mpix_mpis_queue_t *object;
    int rc;

    rc = mpix_mpis_queue_get("MPIS_Queue_free", handle, &object);
    if (rc == MPI_SUCCESS) {
        object->queue->is_made |= (object->stream != NULL);
        rc                      = MPIX_Queue_free(&object->queue);
    }
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    mpix_handle_destroy((void*)handle);
    free(object);
    *queue = MPIS_QUEUE_NULL;
    return MPIS_SUCCESS;
}

int MPIS_Queue_wait(MPIS_Queue queue)
{
    mpix_mpis_queue_t *object;
    int rc;

    rc = mpix_mpis_queue_get("MPIS_Queue_wait", queue, &object);
    return (rc == MPI_SUCCESS) ? MPIX_Queue_wait(object->queue) : rc;
}

/* Starts and waits */

/* Checks a request, or prints what is wrong. */
static int mpix_mpis_check(const char *func, const MPIS_Request *request,
                           mpix_mpis_state_t state)
{
    static const char *const wanted[] = {
        [MPIX_MPIS_UNMATCHED] = "a message that was not given to match before",
        [MPIX_MPIS_MATCHED]   = "a message that was given to match",
        [MPIX_MPIS_MATCH]     = "a match, which MPIS_Imatch has begun"
    };

    if ((request == NULL) || (*request == MPIS_REQUEST_NULL) ||
        ((*request)->state != state)) {
        mpix_print_error(func, "the request is not that of %s", wanted[state]);
        return MPIS_INVALID_REQUEST_STATE;
    }
    return MPIS_SUCCESS;
}

/* Copies MPI's requests, each of which must be in a state. */
static int mpix_mpis_collect(const char *func, int count,
                             const MPIS_Request *requests,
                             mpix_mpis_state_t state, MPI_Request *result)
{
    int i, rc;

    for (i = 0; i < count; ++i) {
        rc = mpix_mpis_check(func, &requests[i], state);
        if (rc != MPIS_SUCCESS) {
            return rc;
        }
        result[i] = requests[i]->request;
    }
    return MPIS_SUCCESS;
}

static int mpix_mpis_check_array(const char *func, int count,
                                 const MPIS_Request *requests)
{
    if ((count < 0) || ((count > 0) && (requests == NULL))) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, (count < 0) ? MPI_ERR_COUNT :
                                                        MPI_ERR_REQUEST,
                                    "invalid array of %d requests", count));
    }
    return MPI_SUCCESS;
}

static int mpix_mpis_start(const char *func, MPIS_Queue handle, int count,
                           const MPIS_Request *requests)
{
    mpix_mpis_queue_t *object;
    struct mpix_queue *queue;
    MPI_Request *started;
    int rc;

    rc = mpix_mpis_queue_get(func, handle, &object);
    if (rc == MPI_SUCCESS) {
        rc = mpix_mpis_check_array(func, count, requests);
    }
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    queue = object->queue;
    rc    = mpix_queue_reserve(func, queue, count);
    if (rc != MPI_SUCCESS) {
        return mpix_raise(MPI_COMM_NULL, rc);
    }
    started = queue->started + queue->num_started;
    rc      = mpix_mpis_collect(func, count, requests, MPIX_MPIS_MATCHED,
                                started);
    if (rc == MPI_SUCCESS) {
        rc = MPIX_Enqueue_startall(queue, count, started);
    }
    if (rc == MPI_SUCCESS) {
        queue->num_started += count;
    }
    return rc;
}

int MPIS_Enqueue_start(MPIS_Queue queue, MPIS_Request *request)
{
    return mpix_mpis_start("MPIS_Enqueue_start", queue, 1, request);
}

int MPIS_Enqueue_startall(MPIS_Queue queue, int count, MPIS_Request requests[])
{
    return mpix_mpis_start("MPIS_Enqueue_startall", queue, count, requests);
}

int MPIS_Enqueue_waitall(MPIS_Queue handle)
{
    mpix_mpis_queue_t *queue;
    int rc;

    rc = mpix_mpis_queue_get("MPIS_Enqueue_waitall", handle, &queue);
    return (rc == MPI_SUCCESS) ? mpix_queue_wait_started(queue->queue) : rc;
}

/* Matching */

static int mpix_mpis_match(const char *func, MPIS_Request *request,
                           MPI_Status *status)
{
    int rc;

    rc = mpix_mpis_check(func, request, MPIX_MPIS_UNMATCHED);
    if (rc == MPIS_SUCCESS) {
        rc = MPIX_Match(&(*request)->request, status);
    }
    if (rc == MPI_SUCCESS) {
        (*request)->state = MPIX_MPIS_MATCHED;
    }
    return rc;
}

int MPIS_Match(MPIS_Request *request, MPI_Status *status)
{
    return mpix_mpis_match("MPIS_Match", request, status);
}

int MPIS_Queue_match(MPIS_Queue queue, MPIS_Request *request,
                     MPI_Status *status)
{
    static const char func[] = "MPIS_Queue_match";
    mpix_mpis_queue_t *object;
    int rc;

    rc = mpix_mpis_queue_get(func, queue, &object);
    return (rc == MPI_SUCCESS) ? mpix_mpis_match(func, request, status) : rc;
}

int MPIS_Matchall(int count, MPIS_Request requests[], MPI_Status statuses[])
{
    static const char func[] = "MPIS_Matchall";
    MPI_Request *array;
    int rc, i;

    rc = mpix_mpis_check_array(func, count, requests);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    array = malloc(((size_t)count + 1) * sizeof(*array));
    if (array == NULL) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail(func, MPI_ERR_NO_MEM, "no memory"));
    }

    rc = mpix_mpis_collect(func, count, requests, MPIX_MPIS_UNMATCHED, array);
    if (rc == MPIS_SUCCESS) {
        rc = MPIX_Matchall(count, array, statuses);
    }
    for (i = 0; (i < count) && (rc == MPI_SUCCESS); ++i) {
        requests[i]->state = MPIX_MPIS_MATCHED;
    }
    free(array);
    return rc;
}

/* Makes a request of MPI's one, which is freed on failure unless that has an
 * owner. */
static int mpix_mpis_request_create(const char *func, MPI_Request *handle,
                                    mpix_mpis_state_t state,
                                    MPIS_Request *request_p)
{
    MPIS_Request request = NULL;
    int rc;

    if (request_p == NULL) {
        rc = mpix_fail(func, MPI_ERR_ARG, "NULL argument");
    } else {
        request = malloc(sizeof(*request));
        rc      = (request == NULL) ?
                          mpix_fail(func, MPI_ERR_NO_MEM, "no memory") :
                          MPI_SUCCESS;
    }
    if (rc != MPI_SUCCESS) {
        if (state != MPIX_MPIS_MATCH) {
            MPI_Request_free(handle);
        }
        return mpix_raise(MPI_COMM_NULL, rc);
    }

    request->request = *handle;
    request->state   = state;
    *request_p       = request;
    return MPI_SUCCESS;
}

int MPIS_Imatch(MPIS_Request *request, MPIS_Request *match)
{
    static const char func[] = "MPIS_Imatch";
    int rc;

    rc = mpix_mpis_check(func, request, MPIX_MPIS_UNMATCHED);
    if (rc == MPIS_SUCCESS) {
        rc = mpix_mpis_request_create(func, &(*request)->request,
                                      MPIX_MPIS_MATCH, match);
    }
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = MPIX_Imatch(&(*request)->request);
    if (rc != MPI_SUCCESS) {
        free(*match);
        *match = MPIS_REQUEST_NULL;
        return rc;
    }
    (*request)->state = MPIX_MPIS_MATCHED;
    return MPIS_SUCCESS;
}

int MPIS_Is_matched(MPIS_Request *request, int *matched)
{
    if ((request == NULL) || (*request == MPIS_REQUEST_NULL) ||
        (matched == NULL)) {
        return mpix_raise(MPI_COMM_NULL,
                          mpix_fail("MPIS_Is_matched", MPI_ERR_ARG,
                                    "NULL argument"));
    }
    return MPIX_Is_matched(&(*request)->request, matched, MPI_STATUS_IGNORE);
}

int MPIS_Wait(MPIS_Request *request, MPI_Status *status)
{
    int rc         = MPI_SUCCESS;
    int flag       = 0;
    unsigned spins = 0;

    if ((request != NULL) && (*request == MPIS_REQUEST_NULL)) {
        return MPIS_SUCCESS;
    }
    if (mpix_mpis_check("MPIS_Wait", request, MPIX_MPIS_MATCH) !=
        MPIS_SUCCESS) {
        return MPIS_UNSUPPORTED_BEHAVIOR;
    }

    for (;;) {
        rc = MPIX_Is_matched(&(*request)->request, &flag, status);
        if (flag || (rc != MPI_SUCCESS)) {
            break;
        }
        ucs_backoff(&spins);
    }

    free(*request);
    *request = MPIS_REQUEST_NULL;
    return rc;
}

int MPIS_Waitall(int count, MPIS_Request requests[], MPI_Status statuses[])
{
    int rc = mpix_mpis_check_array("MPIS_Waitall", count, requests);
    int i, ret;

    if (rc != MPI_SUCCESS) {
        return rc;
    }

    for (i = 0; i < count; ++i) {
        ret = MPIS_Wait(&requests[i], (statuses == MPI_STATUSES_IGNORE) ?
                                              MPI_STATUS_IGNORE :
                                              &statuses[i]);
        if (rc == MPIS_SUCCESS) {
            rc = ret;
        }
    }
    return rc;
}

/* Requests */

int MPIS_Request_free(MPIS_Request *request)
{
    int rc = MPI_SUCCESS;

    if ((request == NULL) || (*request == MPIS_REQUEST_NULL)) {
        return MPIS_SUCCESS;
    }

    if ((*request)->state != MPIX_MPIS_MATCH) {
        rc = MPI_Request_free(&(*request)->request);
    }
    if (rc == MPI_SUCCESS) {
        free(*request);
        *request = MPIS_REQUEST_NULL;
    }
    return rc;
}

int MPIS_Request_freeall(int count, MPIS_Request requests[])
{
    int rc = mpix_mpis_check_array("MPIS_Request_freeall", count, requests);
    int i;

    for (i = 0; (i < count) && (rc == MPI_SUCCESS); ++i) {
        rc = MPIS_Request_free(&requests[i]);
    }
    return rc;
}

/* Makes a request of any count. What MPI refuses it has raised. */
static int mpix_mpis_make(const char *func, const mpix_mpis_args_t *args,
                          mpix_mpis_init_t init, MPIS_Request *request)
{
    MPI_Datatype type;
    MPI_Request made;
    int rc;

    if (args->count <= INT_MAX) {
        rc = init(args, (args->count < 0) ? -1 : (int)args->count,
                  args->datatype, &made);
    } else {
        rc = mpix_buffer_large_type(args->count, args->datatype, &type);
        if (rc == MPI_SUCCESS) {
            rc = init(args, 1, type, &made);
            PMPI_Type_free(&type);
        }
    }
    return (rc == MPI_SUCCESS) ?
                   mpix_mpis_request_create(func, &made, MPIX_MPIS_UNMATCHED,
                                            request) :
                   rc;
}

static int mpix_mpis_send(const mpix_mpis_args_t *args, int count,
                          MPI_Datatype datatype, MPI_Request *request)
{
    return MPI_Send_init(args->buf, count, datatype, args->peer, args->tag,
                         args->comm, request);
}

static int mpix_mpis_rsend(const mpix_mpis_args_t *args, int count,
                           MPI_Datatype datatype, MPI_Request *request)
{
    return MPI_Rsend_init(args->buf, count, datatype, args->peer, args->tag,
                          args->comm, request);
}

static int mpix_mpis_recv(const mpix_mpis_args_t *args, int count,
                          MPI_Datatype datatype, MPI_Request *request)
{
    return MPI_Recv_init(args->buf, count, datatype, args->peer, args->tag,
                         args->comm, request);
}

int MPIS_Send_init(const void *buf, MPI_Count count, MPI_Datatype datatype,
                   int dest, int tag, MPI_Comm comm, MPI_Info info,
                   MPIS_Request *request)
{
    const mpix_mpis_args_t args = {(void*)buf, count, datatype, dest, tag,
                                   comm};

    return mpix_mpis_make("MPIS_Send_init", &args, mpix_mpis_send, request);
}

int MPIS_Rsend_init(const void *buf, MPI_Count count, MPI_Datatype datatype,
                    int dest, int tag, MPI_Comm comm, MPI_Info info,
                    MPIS_Request *request)
{
    const mpix_mpis_args_t args = {(void*)buf, count, datatype, dest, tag,
                                   comm};

    return mpix_mpis_make("MPIS_Rsend_init", &args, mpix_mpis_rsend, request);
}

int MPIS_Recv_init(void *buf, MPI_Count count, MPI_Datatype datatype,
                   int source, int tag, MPI_Comm comm, MPI_Info info,
                   MPIS_Request *request)
{
    const mpix_mpis_args_t args = {buf, count, datatype, source, tag, comm};

    return mpix_mpis_make("MPIS_Recv_init", &args, mpix_mpis_recv, request);
}

/* Collectives */

int MPIS_Barrier_init(MPI_Comm comm, MPI_Info info, MPIS_Request *request)
{
    MPI_Request made;
    int rc;

    rc = MPIX_Barrier_init(comm, info, &made);
    return (rc == MPI_SUCCESS) ?
                   mpix_mpis_request_create("MPIS_Barrier_init", &made,
                                            MPIX_MPIS_UNMATCHED, request) :
                   rc;
}

int MPIS_Allreduce_init(const void *sendbuf, void *recvbuf, int count,
                        MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                        MPI_Info info, MPIS_Request *request)
{
    MPI_Request made;
    int rc;

    rc = MPIX_Allreduce_init(sendbuf, recvbuf, count, datatype, op, comm, info,
                             &made);
    return (rc == MPI_SUCCESS) ?
                   mpix_mpis_request_create("MPIS_Allreduce_init", &made,
                                            MPIX_MPIS_UNMATCHED, request) :
                   rc;
}
