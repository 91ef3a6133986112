/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_coll.c - collectives: what they are made of, and how they are matched.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_coll.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "request/mpix_joint.h"
#include "request/mpix_match.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* How long a collective that has run everything may need to say so at the end
 * of MPI, in seconds: the lock is held */
#define MPIX_COLL_IDLE_TIME 0.1

/* All collectives, and those that are being matched. Protected by the lock. */
static UCS_LIST_HEAD(mpix_colls);
static UCS_LIST_HEAD(mpix_colls_matching);

/* Whose threads run the streams of collectives. NULL before the first start;
 * protected by the lock. */
static ucs_gstream_group_h mpix_coll_group;


void mpix_coll_refuse(mpix_coll_t *coll, const char *refusal)
{
    if (coll->refusal == NULL) {
        coll->refusal = refusal;
    }
}

void mpix_coll_fail(mpix_coll_t *coll, int code, const char *text)
{
    if (coll->code == MPI_SUCCESS) {
        coll->code = mpix_raise(coll->comm,
                                mpix_fail(coll->func, code, "%s", text));
    }
}

static int mpix_coll_is_building(const mpix_coll_t *coll)
{
    return (coll->code == MPI_SUCCESS) && (coll->refusal == NULL);
}

/* Makes an array longer by one, from time to time by more. */
static void *mpix_coll_grow(mpix_coll_t *coll, void *array, int count,
                            size_t size)
{
    void *longer = array;

    if ((count & (count - 1)) == 0) {
        longer = realloc(array, ((count == 0) ? 1 : 2 * (size_t)count) * size);
        if (longer == NULL) {
            mpix_coll_fail(coll, MPI_ERR_NO_MEM, "no memory");
            return array;
        }
    }
    return longer;
}

/* A new step at the end; NULL after an error. */
static mpix_coll_step_t *mpix_coll_step(mpix_coll_t *coll,
                                        mpix_coll_step_kind_t kind)
{
    mpix_coll_step_t *step;

    if (!mpix_coll_is_building(coll)) {
        return NULL;
    }

    coll->steps = mpix_coll_grow(coll, coll->steps, coll->num_steps,
                                 sizeof(*coll->steps));
    if (!mpix_coll_is_building(coll)) {
        return NULL;
    }

    step          = &coll->steps[coll->num_steps++];
    *step         = (mpix_coll_step_t){.kind = kind};
    coll->is_open = 0;
    coll->num_rounds += (kind == MPIX_COLL_STEP_ROUND);
    coll->round      += (coll->num_rounds == 0);
    return step;
}

void mpix_coll_copy(mpix_coll_t *coll, void *dst, const void *src,
                    size_t length)
{
    mpix_coll_step_t *step;

    if ((src == dst) || (length == 0)) {
        return;
    }

    step = mpix_coll_step(coll, MPIX_COLL_STEP_COPY);
    if (step != NULL) {
        step->src    = src;
        step->dst    = dst;
        step->length = length;
        step->failed = &coll->copy_status;
    }
}

void mpix_coll_reduce(mpix_coll_t *coll, const void *in, void *inout,
                      size_t count)
{
    mpix_coll_step_t *step = mpix_coll_step(coll, MPIX_COLL_STEP_REDUCE);

    if (step != NULL) {
        step->src    = in;
        step->dst    = inout;
        step->length = count;
        step->op     = &coll->op;
    }
}

void *mpix_coll_tmp(mpix_coll_t *coll, size_t length)
{
    void *tmp;

    if (!mpix_coll_is_building(coll)) {
        return NULL;
    }

    tmp = malloc((length == 0) ? 1 : length);
    if (tmp == NULL) {
        mpix_coll_fail(coll, MPI_ERR_NO_MEM, "no memory for a buffer");
        return NULL;
    }
    coll->tmps[coll->num_tmps++] = tmp;
    return tmp;
}

/* Adds a request, for which there is room, to those that are matched. */
static void mpix_coll_put(mpix_coll_t *coll, MPI_Request request)
{
    mpix_req_t *record;

    mpix_lock();
    record        = mpix_request_find(request);
    record->scope = MPIX_COMM_SCOPE_COLL;
    mpix_unlock();

    coll->messages[coll->num_messages]  = request;
    coll->records[coll->num_messages++] = record;
}

/* Makes the messages of a round, the last ones, one exchange. It is coupled:
 * what a rank sends goes once all to whom it sends have started. They start all
 * of the round at once. Where each rank sends to all, each waits for all
 * anyway. Among neighbours a rank may so wait for one that is not its own
 * neighbour: MPI's rule is that a correct program allows for a collective to
 * synchronise the processes of its communicator. */
static void mpix_coll_join(mpix_coll_t *coll, mpix_coll_step_t *step)
{
    const MPI_Request *messages = coll->messages + step->first;
    const int num_members       = coll->num_members + step->count;
    MPI_Request *members, exchange;
    int rc;

    members = realloc(coll->members, num_members * sizeof(*members));
    if (members == NULL) {
        mpix_coll_fail(coll, MPI_ERR_NO_MEM, "no memory");
        return;
    }

    coll->members = members;
    memcpy(members + coll->num_members, messages,
           step->count * sizeof(*members));
    rc = mpix_joint_create(coll->func, coll->comm, step->count, messages, 1,
                           &exchange);
    if (rc != MPI_SUCCESS) {
        coll->code = mpix_raise(coll->comm, rc);
        return;
    }
    coll->num_members  = num_members;
    coll->num_messages = step->first;
    step->count        = 1;
    mpix_coll_put(coll, exchange);
}

/* An exchange waits for all sends by one word, but none of them goes ahead of
 * its receive, as a short one may alone: it is for several of both. */
static int mpix_coll_is_joint(const mpix_coll_t *coll,
                              const mpix_coll_step_t *step)
{
    int num_sends = 0;
    int i;

    for (i = 0; i < step->count; ++i) {
        num_sends += (coll->records[step->first + i]->kind == MPIX_REQ_SEND);
    }
    return (num_sends > 1) && ((step->count - num_sends) > 1);
}

void mpix_coll_end_round(mpix_coll_t *coll)
{
    mpix_coll_step_t *step;

    if (coll->is_open && mpix_coll_is_building(coll)) {
        step = &coll->steps[coll->num_steps - 1];
        if (mpix_coll_is_joint(coll, step)) {
            mpix_coll_join(coll, step);
        }
    }
    coll->is_open = 0;
}

/* Puts a message, whose request was made with a code, into the round. */
static void mpix_coll_message(mpix_coll_t *coll, int rc, MPI_Request message)
{
    mpix_coll_step_t *step;

    if (rc != MPI_SUCCESS) {
        coll->code = rc;
        return;
    }

    mpix_coll_put(coll, message);
    if (coll->is_open) {
        ++coll->steps[coll->num_steps - 1].count;
        return;
    }
    step = mpix_coll_step(coll, MPIX_COLL_STEP_ROUND);
    if (step != NULL) {
        step->first   = coll->num_messages - 1;
        step->count   = 1;
        coll->is_open = 1;
    }
}

/* Room for one more message. */
static int mpix_coll_has_room(mpix_coll_t *coll)
{
    if (mpix_coll_is_building(coll)) {
        coll->messages = mpix_coll_grow(coll, coll->messages,
                                        coll->num_messages,
                                        sizeof(*coll->messages));
    }
    if (mpix_coll_is_building(coll)) {
        coll->records = mpix_coll_grow(coll, coll->records, coll->num_messages,
                                       sizeof(*coll->records));
    }
    return mpix_coll_is_building(coll);
}

/* Adds a message to the round: of one large element, if an int does not count
 * the elements. */
static void mpix_coll_add(mpix_coll_t *coll, int is_send, void *buffer,
                          MPI_Count count, MPI_Datatype datatype, int rank)
{
    MPI_Request message = MPI_REQUEST_NULL;
    MPI_Datatype type   = datatype;
    int rc              = MPI_SUCCESS;

    if (!mpix_coll_has_room(coll)) {
        return;
    }

    if (count > INT_MAX) {
        rc    = mpix_buffer_large_type(count, datatype, &type);
        count = 1;
    }
    if (rc == MPI_SUCCESS) {
        rc = is_send ? MPI_Send_init(buffer, count, type, rank, coll->tag,
                                     coll->comm, &message) :
                       MPI_Recv_init(buffer, count, type, rank, coll->tag,
                                     coll->comm, &message);
    }
    if (type != datatype) {
        PMPI_Type_free(&type);
    }
    mpix_coll_message(coll, rc, message);
}

void mpix_coll_send(mpix_coll_t *coll, const void *buffer, MPI_Count count,
                    MPI_Datatype datatype, int rank)
{
    mpix_coll_add(coll, 1, (void*)buffer, count, datatype, rank);
}

void mpix_coll_recv(mpix_coll_t *coll, void *buffer, MPI_Count count,
                    MPI_Datatype datatype, int rank)
{
    mpix_coll_add(coll, 0, buffer, count, datatype, rank);
}

int mpix_coll_check(const mpix_where_t *where)
{
    const char *refusal = where->req->coll->refusal;

    return (refusal == NULL) ? MPI_SUCCESS :
                               mpix_request_fail(where, MPI_ERR_REQUEST,
                                                 "can not be matched: %s",
                                                 refusal);
}

int mpix_coll_for_each(const mpix_where_t *where, const mpix_coll_t *coll,
                       int (*func)(const mpix_where_t *where, mpix_req_t *req))
{
    mpix_where_t message = *where;
    int rc               = MPI_SUCCESS;
    mpix_req_t *req;
    int i;

    for (i = 0; (i < coll->num_messages) && (rc == MPI_SUCCESS); ++i) {
        req         = coll->records[i];
        message.req = req;
        rc          = (req->kind == MPIX_REQ_EXCHANGE) ?
                              mpix_joint_for_each(&message, req->joint, func) :
                              func(&message, req);
    }
    return rc;
}

void mpix_coll_push(mpix_req_t *req)
{
    mpix_coll_t *coll = req->coll;
    int i;

    if (req->kind != MPIX_REQ_COLL) {
        mpix_match_push(req);
        return;
    }

    req->match_status = UCS_OK;
    mpix_request_set_state(req, MPIX_REQ_PENDING);
    ucs_list_add_tail(&mpix_colls_matching, &coll->matching);
    for (i = 0; i < coll->num_messages; ++i) {
        mpix_match_push(coll->records[i]);
    }
}

static void mpix_coll_leave_matching(mpix_coll_t *coll)
{
    ucs_list_del(&coll->matching);
    ucs_list_head_init(&coll->matching);
}

/* One of the messages did not match. */
static void mpix_coll_match_failed(mpix_coll_t *coll, ucs_status_t status)
{
    (void)mpix_coll_cancel(coll->req);
    coll->req->match_status = status;
}

/* Non-zero if matching has ended. */
static int mpix_coll_test(mpix_coll_t *coll)
{
    int is_matched = 1;
    const mpix_req_t *record;
    int i;

    for (i = 0; i < coll->num_messages; ++i) {
        record = coll->records[i];
        if (record->match_status != UCS_OK) {
            mpix_coll_match_failed(coll, record->match_status);
            return 1;
        }
        is_matched &= (record->state == MPIX_REQ_MATCHED);
    }

    if (is_matched) {
        mpix_request_set_state(coll->req, MPIX_REQ_MATCHED);
        mpix_coll_leave_matching(coll);
    }
    return is_matched;
}

unsigned mpix_coll_progress(void)
{
    unsigned count = mpix_match_progress();
    mpix_coll_t *coll, *tmp;

    ucs_list_for_each_safe(coll, tmp, &mpix_colls_matching, matching) {
        count += mpix_coll_test(coll);
    }
    return count;
}

/* UCS_ERR_BUSY if streams have anything left to do for it; UCS_INPROGRESS if
 * the own one has yet to say that it has not. */
static ucs_status_t mpix_coll_is_over(const mpix_coll_t *coll)
{
    if ((mpix_coll_word(coll->go) < coll->stored) ||
        (mpix_coll_is_apart(coll) &&
         (mpix_coll_word(coll->done) < coll->started)) ||
        (mpix_coll_word(coll->passed) < coll->waited) ||
        ((coll->user != NULL) && (coll->started > coll->waited))) {
        return UCS_ERR_BUSY;
    }
    return (coll->stream == NULL) ?
                   UCS_OK :
                   ucs_gstream_synchronize_timeout(coll->stream, 0);
}

/* Enqueues the waits that a use which failed has left out, as far as that can
 * be done. */
static void mpix_coll_wait_left(mpix_coll_t *coll)
{
    ucs_status_t status = UCS_OK;
    mpix_req_t *record;

    while ((coll->num_left > 0) && (status == UCS_OK)) {
        record = coll->records[coll->first_left];
        status = (record->kind == MPIX_REQ_EXCHANGE) ?
                         mpix_joint_wait(coll->queue->st_queue,
                                         record->joint) :
                         ucp_st_enqueue_waitall(coll->queue->st_queue,
                                                &record->op, 1);
        if (status == UCS_OK) {
            ++coll->first_left;
            --coll->num_left;
        }
    }
}

ucs_status_t mpix_coll_cancel(mpix_req_t *req)
{
    mpix_coll_t *coll = req->coll;
    ucs_status_t status;
    int i;

    if (req->kind != MPIX_REQ_COLL) {
        return mpix_match_cancel(req);
    }

    mpix_coll_wait_left(coll);
    status = mpix_coll_is_over(coll);
    for (i = 0; (i < coll->num_messages) && (status == UCS_OK); ++i) {
        status = mpix_match_cancel(coll->records[i]);
    }
    if (status != UCS_OK) {
        /* A message is left of a use that failed: the others are gone */
        coll->is_failed |= (i > 1);
        return status;
    }

    mpix_coll_leave_matching(coll);
    mpix_request_set_state(req, MPIX_REQ_FAILED);
    for (i = 0; i < coll->num_messages; ++i) {
        mpix_request_set_state(coll->records[i], MPIX_REQ_IDLE);
    }
    return UCS_OK;
}

static void mpix_coll_put_words(mpix_coll_t *coll)
{
    ucs_gstream_word_put(coll->go);
    ucs_gstream_word_put(coll->done);
    ucs_gstream_word_put(coll->passed);
}

/* Frees memory, and what is in a table. The queue is gone. */
static void mpix_coll_free(mpix_coll_t *coll)
{
    int i;

    ucs_list_del(&coll->list);
    ucs_list_del(&coll->matching);
    ucs_list_del(&coll->user_link);
    if (coll->stream != NULL) {
        (void)ucs_gstream_destroy(coll->stream);
    }
    for (i = 0; i < coll->num_tmps; ++i) {
        free(coll->tmps[i]);
    }
    free(coll->steps);
    free(coll->records);
    free(coll->messages);
    free(coll->members);
    mpix_coll_put_words(coll);
    free(coll);
}

void mpix_coll_destroy(mpix_coll_t *coll)
{
    int i;

    if (coll == NULL) {
        return;
    }

    if (coll->queue != MPIX_QUEUE_NULL) {
        mpix_queue_shut(coll->queue);
    }
    for (i = 0; i < coll->num_messages; ++i) {
        mpix_request_free(&coll->messages[i]);
    }
    for (i = 0; i < coll->num_members; ++i) {
        mpix_request_free(&coll->members[i]);
    }

    mpix_lock();
    mpix_coll_free(coll);
    mpix_unlock();
}

void mpix_colls_cleanup(void)
{
    mpix_coll_t *coll, *tmp;
    ucs_status_t status;

    ucs_list_for_each_safe(coll, tmp, &mpix_colls, list) {
        status = mpix_coll_cancel(coll->req);
        if (status == UCS_INPROGRESS) {
            (void)ucs_gstream_synchronize_timeout(coll->stream,
                                                  MPIX_COLL_IDLE_TIME);
            status = mpix_coll_cancel(coll->req);
        }
        coll->req->kind = MPIX_REQ_OTHER;
        coll->req->coll = NULL;
        if (status == UCS_OK) {
            mpix_coll_free(coll);
        } /* Else its messages are found to be busy */
    }
    if (mpix_coll_group != NULL) {
        (void)ucs_gstream_group_destroy(mpix_coll_group);
        mpix_coll_group = NULL;
    }
}

/* Makes the own stream. With the lock. */
static ucs_status_t mpix_coll_make_stream(mpix_coll_t *coll)
{
    const ucs_gstream_group_params_t group = {
        .field_mask  = UCS_GSTREAM_GROUP_PARAM_FIELD_NUM_THREADS |
                       UCS_GSTREAM_GROUP_PARAM_FIELD_NAME,
        .num_threads = 1,
        .name        = "st-coll"
    };
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_GROUP
    };
    ucs_status_t status = UCS_OK;

    if (mpix_coll_group == NULL) {
        status = ucs_gstream_group_create(&group, &mpix_coll_group);
    }
    if (status != UCS_OK) {
        return status;
    }

    params.group = mpix_coll_group;
    return ucs_gstream_create(&params, &coll->stream);
}

int mpix_coll_get_queue(const char *func, mpix_coll_t *coll)
{
    ucs_status_t status = UCS_OK;
    int rc;

    if (coll->queue != MPIX_QUEUE_NULL) {
        return MPI_SUCCESS;
    }

    mpix_lock();
    if (coll->stream == NULL) {
        status = mpix_coll_make_stream(coll);
    }
    mpix_unlock();
    if (status != UCS_OK) {
        return mpix_fail(func, mpix_status_code(status),
                         "cannot make a stream for %s: %s", coll->func,
                         ucs_status_string(status));
    }

    rc = mpix_queue_open(func, coll->stream, &coll->queue);
    if (rc == MPI_SUCCESS) {
        coll->queue->is_internal = 1;
    }
    return rc;
}

mpix_coll_t *mpix_coll_create(const char *func)
{
    mpix_coll_t *coll = calloc(1, sizeof(*coll));

    if (coll == NULL) {
        return NULL;
    }

    coll->go     = ucs_gstream_word_get();
    coll->done   = ucs_gstream_word_get();
    coll->passed = ucs_gstream_word_get();
    if ((coll->go == NULL) || (coll->done == NULL) || (coll->passed == NULL)) {
        mpix_coll_put_words(coll);
        free(coll);
        return NULL;
    }
    coll->func = func;
    coll->code = MPI_SUCCESS;
    ucs_list_head_init(&coll->matching);
    ucs_list_head_init(&coll->user_link);
    mpix_lock();
    ucs_list_add_tail(&mpix_colls, &coll->list);
    mpix_unlock();
    return coll;
}
