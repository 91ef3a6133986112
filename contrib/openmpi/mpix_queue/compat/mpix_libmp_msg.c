/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_libmp_msg.c - the calls of compat/mp.h: requests and messages.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "compat/mpix_libmp.h"

#include <ucs_gstream.h>
#include <ucs_gstream_memory.h>
#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>


/* What a message is made of. */
typedef struct mpix_libmp_args {
    const char         *func;
    void               *buf;
    int                size;
    const struct iovec *blocks; /* In their place; NULL: the buffer */
    int                num_blocks;
    int                peer;
} mpix_libmp_args_t;


/* Requests */

struct mp_request *mpix_libmp_request_new(const char *func,
                                          mpix_libmp_kind_t kind, int peer)
{
    struct mp_request *req;
    int put = -1;

    if (mpix_libmp_check_init(func) != MP_SUCCESS) {
        return NULL;
    }
    if ((peer < 0) || (peer >= mpix_libmp.size) ||
        (mpix_libmp.peers[peer].peer == NULL)) {
        mpix_libmp_fail(func, "rank %d is no peer that mp_init has named",
                        peer);
        return NULL;
    }
    req = calloc(1, sizeof(*req));
    if (req != NULL) {
        (void)kh_put(mpix_libmp, &mpix_libmp.requests, req, &put);
    }
    if (put < 0) {
        mpix_libmp_fail(func, "no memory");
        free(req);
        return NULL;
    }
    ucs_list_head_init(&req->list);
    req->kind = kind;
    req->peer = peer;
    return req;
}

/* Where it is in the table, which may be the end. */
static khiter_t mpix_libmp_find(mp_request_t req)
{
    return kh_get(mpix_libmp, &mpix_libmp.requests, req);
}

int mpix_libmp_is_valid(mp_request_t req)
{
    return mpix_libmp_find(req) != kh_end(&mpix_libmp.requests);
}

int mpix_libmp_is_busy(const struct mp_request *req)
{
    return ((req->done != NULL) &&
            !__atomic_load_n(req->done, __ATOMIC_ACQUIRE)) ||
           ((req->passed != NULL) &&
            !__atomic_load_n(req->passed, __ATOMIC_ACQUIRE));
}

void mpix_libmp_request_free(struct mp_request *req, int is_busy)
{
    kh_del(mpix_libmp, &mpix_libmp.requests, mpix_libmp_find(req));
    ucs_list_del(&req->list);
    (void)ucp_st_req_free(req->st_req);
    if (!is_busy && !req->is_failed) {
        if (req->stage_memh != NULL) {
            (void)mpix_libmp_dereg(req->stage_memh);
        }
        ucs_gstream_memory_put(req->stage, req->length);
        ucs_gstream_word_put(req->done);
        ucs_gstream_word_put(req->passed);
    }
    free(req->blocks);
    free(req);
}

int mpix_libmp_request_check(const char *func, const mp_request_t *req)
{
    if (req == NULL) {
        return mpix_libmp_fail(func, "NULL argument");
    }
    return mpix_libmp_is_valid(*req) ?
                   MP_SUCCESS :
                   mpix_libmp_fail(func, "%p is no request: it was waited for, "
                                         "or never made", (void*)*req);
}

/* The same of an array. */
int mpix_libmp_request_check_all(const char *func, uint32_t count,
                                        const mp_request_t *reqs)
{
    int rc = mpix_libmp_check_init(func);
    uint32_t i;

    if ((rc == MP_SUCCESS) && (count > 0) && (reqs == NULL)) {
        return mpix_libmp_fail(func, "NULL argument");
    }
    for (i = 0; (i < count) && (rc == MP_SUCCESS); ++i) {
        rc = mpix_libmp_request_check(func, &reqs[i]);
    }
    return rc;
}

const char *mpix_libmp_name(const struct mp_request *req)
{
    static const char *const names[] = {
        [MPIX_LIBMP_SEND] = "send to",
        [MPIX_LIBMP_RECV] = "receive from",
        [MPIX_LIBMP_PUT]  = "put to",
        [MPIX_LIBMP_GET]  = "get from"
    };

    return names[req->kind];
}

int mpix_libmp_is_msg(const struct mp_request *req)
{
    return (req->kind == MPIX_LIBMP_SEND) || (req->kind == MPIX_LIBMP_RECV);
}

/* Keeps a copy of the blocks, and gets room for what they hold. */
static int mpix_libmp_set_blocks(struct mp_request *req,
                                 const mpix_libmp_args_t *args)
{
    int i;

    req->blocks = calloc((size_t)args->num_blocks + 1, sizeof(*req->blocks));
    if (req->blocks == NULL) {
        return mpix_libmp_fail(args->func, "no memory");
    }
    for (i = 0; i < args->num_blocks; ++i) {
        if (((args->blocks[i].iov_base == NULL) &&
             (args->blocks[i].iov_len > 0)) ||
            (args->blocks[i].iov_len > (SIZE_MAX - req->length))) {
            return mpix_libmp_fail(args->func, "block %d of %d: %zu bytes at "
                                   "%p", i, args->num_blocks,
                                   args->blocks[i].iov_len,
                                   args->blocks[i].iov_base);
        }
        req->blocks[i] = args->blocks[i];
        req->length   += args->blocks[i].iov_len;
    }
    req->num_blocks = args->num_blocks;
    if (req->length > 0) {
        req->stage = ucs_gstream_memory_get(req->length);
    }
    return ((req->length == 0) || (req->stage != NULL)) ?
                   MP_SUCCESS :
                   mpix_libmp_fail(args->func, "no memory");
}

/* A message that is not posted; NULL, which was printed, if that makes no
 * sense. */
static struct mp_request *mpix_libmp_msg_new(mpix_libmp_kind_t kind,
                                             const mpix_libmp_args_t *args,
                                             const mp_request_t *req_p)
{
    int is_vector = (args->blocks != NULL);
    struct mp_request *req;
    int rc = MP_SUCCESS;

    if ((args->size < 0) || (args->num_blocks < 0) || (req_p == NULL) ||
        (!is_vector && (args->buf == NULL) && (args->size > 0))) {
        mpix_libmp_fail(args->func, "%d %s at %p, the request at %p",
                        is_vector ? args->num_blocks : args->size,
                        is_vector ? "blocks" : "bytes", args->buf,
                        (const void*)req_p);
        return NULL;
    }
    req = mpix_libmp_request_new(args->func, kind, args->peer);
    if (req == NULL) {
        return NULL;
    }
    if (is_vector) {
        rc = mpix_libmp_set_blocks(req, args);
    } else {
        req->buffer = args->buf;
        req->length = args->size;
    }
    if (rc != MP_SUCCESS) {
        mpix_libmp_request_free(req, 0);
        return NULL;
    }
    return req;
}

/* Posts */

/* Whether a send is the next one to its peer: in LibMP those have their places
 * in the card's queue from when they are prepared. */
static int mpix_libmp_check_order(const char *func,
                                  const struct mp_request *req)
{
    const mpix_libmp_peer_t *peer = &mpix_libmp.peers[req->peer];
    uint64_t next                 = peer->posted + 1;

    if ((req->kind != MPIX_LIBMP_SEND) ||
        ((req->number == 0) ? (peer->prepared < next) :
                              (req->number == next))) {
        return MP_SUCCESS;
    }
    return mpix_libmp_fail(func, "send %lu that was prepared to rank %d is to "
                                 "be posted before this one", next, req->peer);
}

int mpix_libmp_post_check(const char *func, uint32_t count,
                          const mp_request_t *reqs)
{
    int rc = mpix_libmp_request_check_all(func, count, reqs);
    uint32_t i;

    if (rc != MP_SUCCESS) {
        return rc;
    }
    /* Those that are good count as posted meanwhile, for those behind them */
    for (i = 0; (i < count) && (rc == MP_SUCCESS); ++i) {
        if (reqs[i]->state != MPIX_LIBMP_PREPARED) {
            rc = mpix_libmp_fail(func, "the %s rank %d is not prepared, or was "
                                       "posted already",
                                 mpix_libmp_name(reqs[i]), reqs[i]->peer);
        } else {
            rc = mpix_libmp_check_order(func, reqs[i]);
        }
        if (rc == MP_SUCCESS) {
            mpix_libmp.peers[reqs[i]->peer].posted += (reqs[i]->number > 0);
            reqs[i]->state = MPIX_LIBMP_POSTED;
        }
    }
    count = (rc == MP_SUCCESS) ? count : (i - 1);
    for (i = 0; i < count; ++i) {
        mpix_libmp.peers[reqs[i]->peer].posted -= (reqs[i]->number > 0);
        reqs[i]->state = MPIX_LIBMP_PREPARED;
    }
    return rc;
}

ucs_status_t mpix_libmp_copy(const struct mpix_queue *queue,
                             const struct mp_request *req, int is_back)
{
    ucs_status_t status   = UCS_OK;
    ucs_gstream_cmd_t cmd = {.type = UCS_GSTREAM_CMD_COPY};
    char *place           = req->stage;
    int i;

    for (i = 0; (i < req->num_blocks) && (status == UCS_OK); ++i) {
        cmd.u.copy.length = req->blocks[i].iov_len;
        cmd.u.copy.dst    = is_back ? req->blocks[i].iov_base : place;
        cmd.u.copy.src    = is_back ? place : req->blocks[i].iov_base;
        place            += cmd.u.copy.length;
        if (cmd.u.copy.length > 0) {
            status = (queue == mpix_libmp.host) ?
                             ucs_gstream_memory_copy(cmd.u.copy.dst,
                                                     cmd.u.copy.src,
                                                     cmd.u.copy.length) :
                             ucs_gstream_enqueue(queue->stream, &cmd, 1);
        }
    }
    return status;
}

ucs_status_t mpix_libmp_tell_done(const struct mpix_queue *queue,
                                  struct mp_request *req, ucs_status_t status)
{
    ucs_gstream_cmd_t cmd = {.type = UCS_GSTREAM_CMD_WRITE64};

    if (status == UCS_OK) {
        cmd.u.word.address = req->done;
        cmd.u.word.value   = 1;
        status             = ucs_gstream_enqueue(queue->stream, &cmd, 1);
    }
    if (status != UCS_OK) { /* Nothing will tell its end */
        req->is_failed = 1;
        __atomic_store_n(req->done, 1, __ATOMIC_RELEASE);
    }
    return status;
}

/* Requests of one sort are on the stream. */
static void mpix_libmp_posted(struct mpix_queue *queue, uint32_t count,
                              mp_request_t *reqs)
{
    struct mp_request *req;
    uint32_t i;

    for (i = 0; i < count; ++i) {
        req        = reqs[i];
        req->state = MPIX_LIBMP_POSTED;
        req->queue = queue;
        mpix_libmp.peers[req->peer].posted += (req->number > 0);
        if (req->is_nowait) {
            kh_del(mpix_libmp, &mpix_libmp.requests, mpix_libmp_find(req));
            ucs_list_add_tail(&mpix_libmp.dropped, &req->list);
            reqs[i] = NULL;
        }
    }
}

/* Takes a message back that is not started. One whose blocks a stream has yet
 * to come to is posted, and will have failed. */
static void mpix_libmp_msg_drop(struct mpix_queue *queue,
                                struct mp_request *req)
{
    if (req->done != NULL) {
        (void)ucp_st_req_cancel(req->st_req);
        mpix_libmp_posted(queue, 1, &req);
    } else {
        (void)ucp_st_req_free(req->st_req);
        req->st_req = NULL;
    }
}

/* Copies the blocks of a message to the memory that stands for them: also those
 * to receive, for what comes may be shorter. */
static ucs_status_t mpix_libmp_gather(struct mpix_queue *queue,
                                      struct mp_request *req)
{
    ucs_status_t status, end;

    if (queue != mpix_libmp.host) {
        req->done = ucs_gstream_word_get();
        if (req->done == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
    }
    status = mpix_libmp_copy(queue, req, 0);
    if (req->done != NULL) {
        end    = mpix_libmp_tell_done(queue, req, UCS_OK);
        status = (status == UCS_OK) ? end : status;
    }
    return status;
}

/* Gives a message to the st worker, not started. */
static ucs_status_t mpix_libmp_msg_enqueue(struct mpix_queue *queue,
                                           struct mp_request *req)
{
    const ucp_st_msg_params_t params = {
        .field_mask = UCP_ST_MSG_PARAM_FIELD_BUFFER |
                      UCP_ST_MSG_PARAM_FIELD_LENGTH |
                      UCP_ST_MSG_PARAM_FIELD_PEER |
                      UCP_ST_MSG_PARAM_FIELD_TAG |
                      UCP_ST_MSG_PARAM_FIELD_SCOPE,
        .buffer     = (req->blocks != NULL) ? req->stage : req->buffer,
        .length     = req->length,
        .peer       = mpix_libmp.peers[req->peer].peer,
        .scope      = mpix_libmp.scope
    };
    ucs_status_t status;

    status = (req->kind == MPIX_LIBMP_RECV) ?
                     ucp_st_enqueue_recv(queue->st_queue, &params,
                                         &req->st_req) :
                     ucp_st_enqueue_send(queue->st_queue, &params,
                                         &req->st_req);
    if ((status == UCS_OK) && (req->stage != NULL)) {
        status = mpix_libmp_gather(queue, req);
        if (status != UCS_OK) {
            mpix_libmp_msg_drop(queue, req);
        }
    }
    return status;
}

/* Starts messages that are enqueued, or takes them back. */
static ucs_status_t mpix_libmp_start(struct mpix_queue *queue, uint32_t count,
                                     const mp_request_t *reqs)
{
    ucs_status_t status = ucp_st_enqueue_batch_start(queue->st_queue);
    uint32_t i;

    for (i = 0; (i < count) && (status != UCS_OK); ++i) {
        mpix_libmp_msg_drop(queue, reqs[i]);
    }
    return status;
}

int mpix_libmp_post(const char *func, struct mpix_queue *queue, uint32_t count,
                    mp_request_t *reqs)
{
    ucs_status_t status = UCS_OK;
    ucs_status_t end;
    uint32_t done;
    int is_msg;

    if (count == 0) {
        return MP_SUCCESS;
    }
    is_msg = mpix_libmp_is_msg(reqs[0]);
    for (done = 0; done < count; ++done) {
        status = is_msg ? mpix_libmp_msg_enqueue(queue, reqs[done]) :
                          mpix_libmp_rma_enqueue(queue, reqs[done]);
        if (status != UCS_OK) {
            break;
        }
    }
    if (done > 0) {
        end    = is_msg ? mpix_libmp_start(queue, done, reqs) :
                          mpix_libmp_rma_finish(queue, done, reqs);
        status = (status == UCS_OK) ? end : status;
        if (!is_msg || (end == UCS_OK)) {
            mpix_libmp_posted(queue, done, reqs);
        }
    }
    return (status == UCS_OK) ?
                   MP_SUCCESS :
                   mpix_libmp_fail(func, "the stream does not take a message: "
                                         "%s",
                                   ucs_status_string(mpix_libmp_cause(queue,
                                                                      status)));
}

int mpix_libmp_post_new(const char *func, struct mpix_queue *queue,
                        struct mp_request *req, mp_request_t *req_p)
{
    mp_request_t posted = req;
    int rc              = mpix_libmp_check_order(func, req);

    if (rc == MP_SUCCESS) {
        rc = mpix_libmp_post(func, queue, 1, &posted);
    }
    if ((rc != MP_SUCCESS) && (req->state != MPIX_LIBMP_POSTED)) {
        mpix_libmp_request_free(req, 0);
        return rc;
    }
    *req_p = posted;
    /* A part that is missing fails the request, if there is one */
    return (posted == NULL) ? rc : MP_SUCCESS;
}

/* Makes a message and posts it. */
static int mpix_libmp_msg(mpix_libmp_kind_t kind, const mpix_libmp_args_t *args,
                          struct mpix_queue *queue, mp_request_t *req_p)
{
    struct mp_request *req = mpix_libmp_msg_new(kind, args, req_p);

    return (req == NULL) ? MP_FAILURE :
                           mpix_libmp_post_new(args->func, queue, req, req_p);
}

static int mpix_libmp_msg_on(const mpix_libmp_args_t *args, cudaStream_t stream,
                             mp_request_t *req_p)
{
    struct mpix_queue *queue;
    int rc;

    rc = mpix_libmp_get_queue(args->func, stream, &queue);
    return (rc == MP_SUCCESS) ? mpix_libmp_msg(MPIX_LIBMP_SEND, args, queue,
                                               req_p) :
                                rc;
}

static int mpix_libmp_msg_prepare(const mpix_libmp_args_t *args,
                                  mp_request_t *req_p)
{
    struct mp_request *req = mpix_libmp_msg_new(MPIX_LIBMP_SEND, args, req_p);

    if (req == NULL) {
        return MP_FAILURE;
    }
    req->number = ++mpix_libmp.peers[req->peer].prepared;
    *req_p      = req;
    return MP_SUCCESS;
}

/* What stands for no blocks */
static const struct iovec mpix_libmp_no_block;

static const struct iovec *mpix_libmp_blocks(const struct iovec *v, int nblocks)
{
    return ((v == NULL) && (nblocks == 0)) ? &mpix_libmp_no_block : v;
}

/* The arguments of a vector; without one they make no sense */
static mpix_libmp_args_t mpix_libmp_vector(const char *func, struct iovec *v,
                                           int nblocks, int peer)
{
    const struct iovec *blocks = mpix_libmp_blocks(v, nblocks);

    return (mpix_libmp_args_t){func, v, (blocks == NULL) ? -1 : 0, blocks,
                               nblocks, peer};
}

int MPIX_Mp_irecv(void *buf, int size, int peer, mp_reg_t *mp_reg,
                  mp_request_t *req)
{
    const mpix_libmp_args_t args = {"mp_irecv", buf, size, NULL, 0, peer};

    return mpix_libmp_msg(MPIX_LIBMP_RECV, &args, mpix_libmp.host, req);
}

int MPIX_Mp_isend(void *buf, int size, int peer, mp_reg_t *mp_reg,
                  mp_request_t *req)
{
    const mpix_libmp_args_t args = {"mp_isend", buf, size, NULL, 0, peer};

    return mpix_libmp_msg(MPIX_LIBMP_SEND, &args, mpix_libmp.host, req);
}

int MPIX_Mp_irecvv(struct iovec *v, int nblocks, int peer, mp_reg_t *mp_reg,
                   mp_request_t *req)
{
    const mpix_libmp_args_t args = mpix_libmp_vector("mp_irecvv", v, nblocks,
                                                     peer);

    return mpix_libmp_msg(MPIX_LIBMP_RECV, &args, mpix_libmp.host, req);
}

int MPIX_Mp_isendv(struct iovec *v, int nblocks, int peer, mp_reg_t *mp_reg,
                   mp_request_t *req)
{
    const mpix_libmp_args_t args = mpix_libmp_vector("mp_isendv", v, nblocks,
                                                     peer);

    return mpix_libmp_msg(MPIX_LIBMP_SEND, &args, mpix_libmp.host, req);
}

int MPIX_Mp_isend_on_stream(void *buf, int size, int peer, mp_reg_t *mp_reg,
                            mp_request_t *req, cudaStream_t stream)
{
    const mpix_libmp_args_t args = {"mp_isend_on_stream", buf, size, NULL, 0,
                                    peer};

    return mpix_libmp_msg_on(&args, stream, req);
}

int MPIX_Mp_send_on_stream(void *buf, int size, int peer, mp_reg_t *mp_reg,
                           mp_request_t *req, cudaStream_t stream)
{
    const mpix_libmp_args_t args = {"mp_send_on_stream", buf, size, NULL, 0,
                                    peer};
    int rc                       = mpix_libmp_msg_on(&args, stream, req);

    return (rc == MP_SUCCESS) ? MPIX_Mp_wait_on_stream(req, stream) : rc;
}

int MPIX_Mp_isendv_on_stream(struct iovec *v, int nblocks, int peer,
                             mp_reg_t *mp_reg, mp_request_t *req,
                             cudaStream_t stream)
{
    const mpix_libmp_args_t args = mpix_libmp_vector("mp_isendv_on_stream", v,
                                                     nblocks, peer);

    return mpix_libmp_msg_on(&args, stream, req);
}

int MPIX_Mp_send_prepare(void *buf, int size, int peer, mp_reg_t *mp_reg,
                         mp_request_t *req)
{
    const mpix_libmp_args_t args = {"mp_send_prepare", buf, size, NULL, 0,
                                    peer};

    return mpix_libmp_msg_prepare(&args, req);
}

int MPIX_Mp_sendv_prepare(struct iovec *v, int nblocks, int peer,
                          mp_reg_t *mp_reg, mp_request_t *req)
{
    const mpix_libmp_args_t args = mpix_libmp_vector("mp_sendv_prepare", v,
                                                     nblocks, peer);

    return mpix_libmp_msg_prepare(&args, req);
}

/* Posts what was prepared, of one kind. */
static int mpix_libmp_post_kind(const char *func, mpix_libmp_kind_t kind,
                                uint32_t count, mp_request_t *reqs,
                                cudaStream_t stream)
{
    int rc = mpix_libmp_post_check(func, count, reqs);
    struct mpix_queue *queue;
    uint32_t i;

    for (i = 0; (i < count) && (rc == MP_SUCCESS); ++i) {
        if (reqs[i]->kind != kind) {
            rc = mpix_libmp_fail(func, "request %u is that of a %s rank %d", i,
                                 mpix_libmp_name(reqs[i]), reqs[i]->peer);
        }
    }
    if (rc == MP_SUCCESS) {
        rc = mpix_libmp_get_queue(func, stream, &queue);
    }
    return (rc == MP_SUCCESS) ? mpix_libmp_post(func, queue, count, reqs) : rc;
}

int MPIX_Mp_isend_post_on_stream(mp_request_t *req, cudaStream_t stream)
{
    return mpix_libmp_post_kind("mp_isend_post_on_stream", MPIX_LIBMP_SEND, 1,
                                req, stream);
}

int MPIX_Mp_isend_post_all_on_stream(uint32_t count, mp_request_t *req,
                                     cudaStream_t stream)
{
    return mpix_libmp_post_kind("mp_isend_post_all_on_stream", MPIX_LIBMP_SEND,
                                count, req, stream);
}

int MPIX_Mp_send_post_all_on_stream(uint32_t count, mp_request_t *req,
                                    cudaStream_t stream)
{
    int rc = mpix_libmp_post_kind("mp_send_post_all_on_stream", MPIX_LIBMP_SEND,
                                  count, req, stream);

    return (rc == MP_SUCCESS) ? MPIX_Mp_wait_all_on_stream(count, req, stream) :
                                rc;
}

int MPIX_Mp_send_post_on_stream(mp_request_t *req, cudaStream_t stream)
{
    int rc = mpix_libmp_post_kind("mp_send_post_on_stream", MPIX_LIBMP_SEND, 1,
                                  req, stream);

    return (rc == MP_SUCCESS) ? MPIX_Mp_wait_on_stream(req, stream) : rc;
}

int MPIX_Mp_iput_post_on_stream(mp_request_t *req, cudaStream_t stream)
{
    return mpix_libmp_post_kind("mp_iput_post_on_stream", MPIX_LIBMP_PUT, 1,
                                req, stream);
}

int MPIX_Mp_iput_post_all_on_stream(uint32_t count, mp_request_t *req,
                                    cudaStream_t stream)
{
    return mpix_libmp_post_kind("mp_iput_post_all_on_stream", MPIX_LIBMP_PUT,
                                count, req, stream);
}
