/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_coll_run.c - starts and waits of collectives.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "mpix_coll.h"
#include "request/mpix_joint.h"

#include <stdlib.h>

/* Other requests of a call that need no memory to be allocated */
#define MPIX_COLL_MAX_REST 32


static void mpix_coll_run_reduce(void *arg)
{
    const mpix_coll_step_t *step = arg;

    mpix_coll_op_run(step->op, step->src, step->dst, step->length);
}

/* A copy from or to the memory of a device, which the host does not touch. */
static void mpix_coll_run_copy(void *arg)
{
    const mpix_coll_step_t *step = arg;
    ucs_status_t status;

    status = ucs_gstream_memory_copy(step->dst, step->src, step->length);
    if (status != UCS_OK) {
        __atomic_store_n(step->failed, status, __ATOMIC_RELAXED);
    }
}

static int mpix_coll_stream_code(const char *func, ucs_status_t status)
{
    return (status == UCS_OK) ?
                   MPI_SUCCESS :
                   mpix_fail(func, mpix_status_code(status),
                             "a stream does not take the command: %s",
                             ucs_status_string(status));
}

static ucs_status_t mpix_coll_enqueue_copy(ucs_gstream_h stream,
                                           mpix_coll_step_t *step)
{
    return (mpix_buffer_is_device(step->src, MPI_BYTE) ||
            mpix_buffer_is_device(step->dst, MPI_BYTE)) ?
                   ucs_gstream_enqueue_func(stream, mpix_coll_run_copy, step) :
                   ucs_gstream_enqueue_copy(stream, step->dst, step->src,
                                            step->length);
}

/* Enqueues the start or the wait of a round. */
static int mpix_coll_run_round(const char *func, mpix_coll_t *coll,
                               const mpix_coll_step_t *step, int is_wait)
{
    const mpix_enqueue_call_t call = {func, coll->runner, step->count,
                                      coll->messages + step->first, is_wait};

    return mpix_enqueue_requests(&call);
}

/* Enqueues a step. */
static int mpix_coll_run_step(const char *func, mpix_coll_t *coll,
                              mpix_coll_step_t *step)
{
    ucs_gstream_h stream = coll->runner->stream;
    int rc;

    switch (step->kind) {
    case MPIX_COLL_STEP_COPY:
        return mpix_coll_stream_code(func,
                                     mpix_coll_enqueue_copy(stream, step));
    case MPIX_COLL_STEP_REDUCE:
        return mpix_coll_stream_code(
                func, ucs_gstream_enqueue_func(stream, mpix_coll_run_reduce,
                                               step));
    default:
        break;
    }

    rc = mpix_coll_run_round(func, coll, step, 0);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = mpix_coll_run_round(func, coll, step, 1);
    if (rc != MPI_SUCCESS) {
        coll->first_left = step->first;
        coll->num_left   = step->count;
    }
    return rc;
}

/* Enqueues the steps from one place on and before another one. */
static int mpix_coll_run_steps(const char *func, mpix_coll_t *coll, int begin,
                               int end)
{
    int rc = MPI_SUCCESS;
    int i;

    for (i = begin; (i < end) && (rc == MPI_SUCCESS); ++i) {
        rc = mpix_coll_run_step(func, coll, &coll->steps[i]);
    }
    return rc;
}

static int mpix_coll_has_round(const mpix_coll_t *coll)
{
    return coll->round < coll->num_steps;
}

/* Whether a use runs on the application's stream: one of the host calls the
 * helper that moves its messages, and needs no other thread. */
static int mpix_coll_is_inline(const mpix_coll_t *coll,
                               const struct mpix_queue *queue)
{
    return (coll->num_rounds <= 1) &&
           (ucs_gstream_caps(queue->stream) & UCS_GSTREAM_CAP_HELP);
}

/* Has what a start needs, and refuses if the queue that it runs on is in
 * error. */
static int mpix_coll_ready(const char *func, struct mpix_queue *queue,
                           mpix_coll_t *coll)
{
    struct mpix_queue *runner = queue;
    int rc                    = MPI_SUCCESS;

    if (!mpix_coll_is_inline(coll, queue)) {
        rc     = mpix_coll_get_queue(func, coll);
        runner = coll->queue;
    }
    if (rc == MPI_SUCCESS) {
        rc = mpix_enqueue_requests(&(const mpix_enqueue_call_t){func, runner});
    }
    return rc;
}

/* Enqueues a use on the own stream, where it waits for the start. */
static int mpix_coll_enqueue_use(const char *func, mpix_coll_t *coll,
                                 uint64_t use)
{
    int rc;

    rc = mpix_coll_stream_code(
            func, ucs_gstream_enqueue_wait64(coll->stream, coll->go, use));
    if (rc == MPI_SUCCESS) {
        rc = mpix_coll_run_steps(func, coll, 0, coll->num_steps);
    }
    if (rc == MPI_SUCCESS) {
        rc = mpix_coll_stream_code(
                func,
                ucs_gstream_enqueue_write64(coll->stream, coll->done, use));
    }
    return rc;
}

/* A stream of a GPU cannot wake the own one. */
static void mpix_coll_go(void *arg)
{
    volatile uint64_t *go = arg;

    __atomic_add_fetch(go, 1, __ATOMIC_RELEASE);
    ucs_gstream_wake(go);
}

/* Enqueues the store that starts a use on the own stream. */
static ucs_status_t mpix_coll_enqueue_go(ucs_gstream_h stream,
                                         mpix_coll_t *coll, uint64_t use)
{
    return (ucs_gstream_caps(stream) & UCS_GSTREAM_CAP_WAKE) ?
                   ucs_gstream_enqueue_write64(stream, coll->go, use) :
                   ucs_gstream_enqueue_func(stream, mpix_coll_go,
                                            (void*)coll->go);
}

static void mpix_coll_set_user(mpix_coll_t *coll, struct mpix_queue *queue)
{
    if (coll->user != queue) {
        mpix_lock();
        ucs_list_del(&coll->user_link);
        ucs_list_add_tail(&queue->colls, &coll->user_link);
        coll->user = queue;
        mpix_unlock();
    }
}

/* Enqueues the first part of a use on the application's stream. It may be
 * called again after a failure: the steps before the round are copies. What the
 * own stream has run the host has seen: so it is told, as messages go from one
 * queue to the other. */
static int mpix_coll_start_inline(const char *func, struct mpix_queue *queue,
                                  mpix_coll_t *coll)
{
    const uint64_t use = coll->started + 1;
    int rc;

    if (mpix_coll_is_apart(coll)) {
        (void)ucp_st_queue_query(coll->queue->st_queue, NULL);
    }
    mpix_coll_set_user(coll, queue);
    coll->runner = queue;
    coll->place  = coll->round;
    rc           = mpix_coll_run_steps(func, coll, 0, coll->round);
    if ((rc == MPI_SUCCESS) && mpix_coll_has_round(coll)) {
        rc = mpix_coll_run_round(func, coll, &coll->steps[coll->round], 0);
    }
    if (rc == MPI_SUCCESS) {
        coll->started = use;
        coll->stored  = use;
        __atomic_store_n(coll->go, use, __ATOMIC_RELEASE);
    }
    return rc;
}

/* Enqueues the rest of it, from where a call before found no memory. */
static int mpix_coll_end_inline(const char *func, mpix_coll_t *coll)
{
    int rc = MPI_SUCCESS;

    while ((coll->place < coll->num_steps) && (rc == MPI_SUCCESS)) {
        rc = (coll->place == coll->round) ?
                     mpix_coll_run_round(func, coll, &coll->steps[coll->round],
                                         1) :
                     mpix_coll_run_step(func, coll, &coll->steps[coll->place]);
        coll->place += (rc == MPI_SUCCESS);
    }
    return rc;
}

/* Enqueues a start on the application's stream, and then its use: what is on
 * the own stream always has a start. A use that is there in part, for lack of
 * memory or as a peer is gone, is the last one. */
static int mpix_coll_start(const char *func, struct mpix_queue *queue,
                           mpix_coll_t *coll)
{
    const uint64_t use = coll->started + 1;
    int rc;

    if (mpix_coll_is_inline(coll, queue)) {
        return mpix_coll_start_inline(func, queue, coll);
    }

    rc = mpix_coll_stream_code(func, mpix_coll_enqueue_go(queue->stream, coll,
                                                          use));
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    coll->stored = use;
    coll->runner = coll->queue;
    mpix_coll_set_user(coll, queue);
    rc = mpix_coll_enqueue_use(func, coll, use);
    if (rc == MPI_SUCCESS) {
        coll->started = use;
    } else {
        coll->is_failed = 1;
    }
    return rc;
}

static int mpix_coll_wait(const char *func, struct mpix_queue *queue,
                          mpix_coll_t *coll)
{
    ucs_gstream_cmd_t cmds[2] = {
        {.type = UCS_GSTREAM_CMD_WAIT64}, {.type = UCS_GSTREAM_CMD_WRITE64}
    };
    int rc = MPI_SUCCESS;

    cmds[0].u.word.address = coll->done;
    cmds[0].u.word.value   = coll->started;
    cmds[1].u.word.address = coll->passed;
    cmds[1].u.word.value   = coll->started;

    if (!mpix_coll_is_apart(coll)) {
        cmds[0].type = UCS_GSTREAM_CMD_WRITE64;
        rc           = mpix_coll_end_inline(func, coll);
    }
    if (rc == MPI_SUCCESS) {
        rc = mpix_coll_stream_code(func,
                                   ucs_gstream_enqueue(queue->stream, cmds, 2));
    }
    if (rc == MPI_SUCCESS) {
        coll->waited = coll->started;
    }
    return rc;
}

/* How the messages of a use on the application's stream stand: the first error,
 * else UCS_INPROGRESS while one is under way, else UCS_ERR_NO_MESSAGE if the
 * wait is not enqueued, else UCS_OK. */
static ucs_status_t mpix_coll_test_messages(const mpix_coll_t *coll)
{
    ucs_status_t result = (coll->started > coll->waited) ? UCS_ERR_NO_MESSAGE :
                                                           UCS_OK;
    const mpix_req_t *record;
    ucs_status_t status;
    int i;

    for (i = 0; i < coll->num_messages; ++i) {
        record = coll->records[i];
        status = (record->kind == MPIX_REQ_EXCHANGE) ?
                         ucp_st_exchange_test(record->joint->st) :
                         ucp_st_op_test(record->op);
        if (status == UCS_INPROGRESS) {
            result = UCS_INPROGRESS;
        } else if ((status != UCS_OK) && (status != UCS_ERR_NO_MESSAGE)) {
            return status;
        }
    }
    return result;
}

/* Whether messages that were last used on another queue of the application, or
 * on one that is gone, can go to the own one: no use that is enqueued there in
 * part can be taken back. */
static int mpix_coll_can_leave(const mpix_coll_t *coll,
                               const struct mpix_queue *queue)
{
    if (mpix_coll_is_inline(coll, queue) || mpix_coll_is_apart(coll)) {
        return 1;
    }
    if (coll->runner == NULL) {
        return mpix_coll_test_messages(coll) != UCS_INPROGRESS;
    }
    return (coll->runner->st_queue == NULL) ||
           (ucp_st_queue_query(coll->runner->st_queue, NULL) !=
            UCS_INPROGRESS);
}

/* Whether this is the time to start it on a queue. */
static int mpix_coll_check_start(const mpix_enqueue_call_t *call,
                                 mpix_coll_t *coll)
{
    if (coll->user == NULL) {
        coll->waited = coll->started; /* Its queue went without a wait */
        *coll->passed = coll->started;
    }

    if (coll->is_failed ||
        (__atomic_load_n(&coll->copy_status, __ATOMIC_RELAXED) != UCS_OK)) {
        return mpix_fail(call->func, MPI_ERR_OTHER,
                         "a use of %s failed, it can only be freed",
                         coll->func);
    }
    if ((coll->started > coll->waited) ||
        ((coll->user != call->queue) &&
         ((mpix_coll_word(coll->passed) < coll->waited) ||
          !mpix_coll_can_leave(coll, call->queue)))) {
        return mpix_fail(call->func, MPI_ERR_REQUEST,
                         "a request of %s is started and not waited for "
                         "(MPIX_Enqueue_waitall), or in use on another queue "
                         "(MPIX_Queue_wait)", coll->func);
    }
    return MPI_SUCCESS;
}

static int mpix_coll_check_wait(const mpix_enqueue_call_t *call,
                                const mpix_coll_t *coll)
{
    if (coll->started == coll->waited) {
        return mpix_fail(call->func, MPI_ERR_REQUEST,
                         "a request of %s is not started, or its wait is "
                         "enqueued already", coll->func);
    }
    if (coll->user != call->queue) {
        return mpix_fail(call->func, MPI_ERR_REQUEST,
                         "a request of %s was started on another queue",
                         coll->func);
    }
    return MPI_SUCCESS;
}

/* Checks a request that is a collective. With the lock. */
static int mpix_coll_check_call(const mpix_enqueue_call_t *call,
                                mpix_req_t *req)
{
    if (req->state != MPIX_REQ_MATCHED) {
        return mpix_fail(call->func, MPI_ERR_REQUEST,
                         "a request of %s is not matched (MPIX_Matchall "
                         "first)", req->coll->func);
    }
    if (req->is_marked) {
        return mpix_fail(call->func, MPI_ERR_REQUEST,
                         "a request of %s is given twice", req->coll->func);
    }
    return call->is_wait ? mpix_coll_check_wait(call, req->coll) :
                           mpix_coll_check_start(call, req->coll);
}

/* Tells a call's collectives, as a list, from the rest. */
static int mpix_coll_split(const mpix_enqueue_call_t *call,
                           mpix_coll_t **colls_p, MPI_Request *rest,
                           int *num_rest_p)
{
    mpix_coll_t *colls = NULL;
    mpix_coll_t **tail = &colls;
    int num_rest       = 0;
    int rc             = MPI_SUCCESS;
    mpix_coll_t *coll;
    mpix_req_t *req;
    int i;

    mpix_lock();
    for (i = 0; (i < call->count) && (rc == MPI_SUCCESS); ++i) {
        req = mpix_request_find(call->requests[i]);
        if ((req == NULL) || (req->kind != MPIX_REQ_COLL)) {
            rest[num_rest++] = call->requests[i];
            continue;
        }

        rc = mpix_coll_check_call(call, req);
        if (rc == MPI_SUCCESS) {
            req->is_marked  = 1;
            req->coll->next = NULL;
            *tail           = req->coll;
            tail            = &req->coll->next;
        }
    }
    for (coll = colls; coll != NULL; coll = coll->next) {
        coll->req->is_marked = 0;
    }
    mpix_unlock();

    *colls_p    = colls;
    *num_rest_p = num_rest;
    return rc;
}

/* All that can be refused comes before what cannot be taken back: only where a
 * stream finds no memory, or a peer goes during the call, is a part of the
 * requests started. */
static int mpix_coll_enqueue_rest(const mpix_enqueue_call_t *call,
                                  MPI_Request *rest)
{
    mpix_coll_t *colls, *coll;
    int rc, num_rest;

    rc = mpix_coll_split(call, &colls, rest, &num_rest);
    for (coll = colls; (rc == MPI_SUCCESS) && (coll != NULL) && !call->is_wait;
         coll = coll->next) {
        rc = mpix_coll_ready(call->func, call->queue, coll);
    }
    if (rc == MPI_SUCCESS) {
        rc = mpix_enqueue_requests(&(const mpix_enqueue_call_t){
            call->func, call->queue, num_rest, rest, call->is_wait
        });
    }
    for (coll = colls; (rc == MPI_SUCCESS) && (coll != NULL);
         coll = coll->next) {
        rc = call->is_wait ? mpix_coll_wait(call->func, call->queue, coll) :
                             mpix_coll_start(call->func, call->queue, coll);
    }
    return rc;
}

int mpix_coll_enqueue(const mpix_enqueue_call_t *call)
{
    MPI_Request few[MPIX_COLL_MAX_REST];
    MPI_Request *rest = few;
    int rc;

    if (call->count > MPIX_COLL_MAX_REST) {
        rest = malloc(call->count * sizeof(*rest));
        if (rest == NULL) {
            return mpix_fail(call->func, MPI_ERR_NO_MEM,
                             "no memory for %d requests", call->count);
        }
    }

    rc = mpix_coll_enqueue_rest(call, rest);
    if (rest != few) {
        free(rest);
    }
    return rc;
}

/* How the uses that are over went. */
static ucs_status_t mpix_coll_result(const mpix_coll_t *coll)
{
    ucs_status_t status = (ucs_status_t)__atomic_load_n(&coll->copy_status,
                                                        __ATOMIC_RELAXED);

    return ((status != UCS_OK) || (coll->queue == MPIX_QUEUE_NULL)) ?
                   status :
                   ucp_st_queue_query(coll->queue->st_queue, NULL);
}

ucs_status_t mpix_coll_status(mpix_coll_t *coll)
{
    ucs_status_t status = mpix_coll_is_apart(coll) ?
                                  UCS_OK :
                                  mpix_coll_test_messages(coll);

    /* A wait would pass: the stream has to see the data, and ends the use */
    if ((status == UCS_ERR_NO_MESSAGE) && (coll->user != NULL)) {
        return (mpix_coll_wait(coll->func, coll->user, coll) == MPI_SUCCESS) ?
                       UCS_INPROGRESS :
                       UCS_ERR_NO_MEMORY;
    }
    if (status != UCS_OK) {
        return status;
    }
    if (mpix_coll_word(coll->done) < coll->started) {
        return UCS_INPROGRESS;
    }

    status = mpix_coll_result(coll);
    return (status == UCS_INPROGRESS) ? UCS_OK : status;
}

void mpix_coll_told(mpix_coll_t *coll)
{
    if (coll->waited < coll->started) { /* No stream stores it */
        coll->waited = coll->started;
        __atomic_store_n(coll->passed, coll->started, __ATOMIC_RELEASE);
    }
}

int mpix_coll_is_idle(const struct mpix_queue *queue)
{
    const mpix_coll_t *coll;

    ucs_list_for_each(coll, &queue->colls, user_link) {
        if ((mpix_coll_word(coll->go) < coll->stored) ||
            (mpix_coll_word(coll->passed) < coll->waited)) {
            return 0;
        }
    }
    return 1;
}

void mpix_coll_leave_queue(struct mpix_queue *queue)
{
    mpix_coll_t *coll, *tmp;

    ucs_list_for_each_safe(coll, tmp, &queue->colls, user_link) {
        ucs_list_del(&coll->user_link);
        ucs_list_head_init(&coll->user_link);
        coll->user = NULL;
        if (coll->runner == queue) {
            coll->runner = NULL;
        }
    }
}

int mpix_coll_check_queue(const char *func, struct mpix_queue *queue)
{
    ucs_status_t status = UCS_OK;
    const char *failed  = NULL;
    mpix_coll_t *coll;

    mpix_lock();
    ucs_list_for_each(coll, &queue->colls, user_link) {
        status = mpix_coll_result(coll);
        if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
            failed = coll->func;
            break;
        }
    }
    mpix_unlock();

    return (failed == NULL) ?
                   MPI_SUCCESS :
                   mpix_fail(func, MPI_ERR_OTHER, "%s failed: %s", failed,
                             mpix_request_cause(status));
}
