/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_libmp_wait.c - the calls of compat/mp.h: waits for requests.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "compat/mpix_libmp.h"

#include <ucs_gstream.h>
#include <ucs_gstream_memory.h>

#include <stdlib.h>


/* Waits of streams */

/* Whether requests can be waited for, each once in a call. */
static int mpix_libmp_wait_check(const char *func, uint32_t count,
                                 const mp_request_t *reqs, int is_host)
{
    static uint64_t call;
    int rc = mpix_libmp_request_check_all(func, count, reqs);
    uint32_t i;

    ++call;
    for (i = 0; (i < count) && (rc == MP_SUCCESS); ++i) {
        if (reqs[i]->state != MPIX_LIBMP_POSTED) {
            rc = mpix_libmp_fail(func, "the %s rank %d was not posted",
                                 mpix_libmp_name(reqs[i]), reqs[i]->peer);
        } else if (reqs[i]->call == call) {
            rc = mpix_libmp_fail(func, "the %s rank %d is there twice",
                                 mpix_libmp_name(reqs[i]), reqs[i]->peer);
        } else if (reqs[i]->is_waited && is_host &&
                   (reqs[i]->waiter == NULL)) {
            rc = mpix_libmp_fail(func, "a queue of commands has a wait for the "
                                       "%s rank %d, not posted",
                                 mpix_libmp_name(reqs[i]), reqs[i]->peer);
        } else if (reqs[i]->is_waited && !is_host) {
            rc = mpix_libmp_fail(func, "a stream waits already for the %s rank "
                                       "%d", mpix_libmp_name(reqs[i]),
                                 reqs[i]->peer);
        }
        reqs[i]->call = call;
    }
    return rc;
}

/* Has the stream wait for the messages among the requests. */
static int mpix_libmp_wait_msgs(const char *func, struct mpix_queue *queue,
                                uint32_t count, const mp_request_t *reqs)
{
    ucp_st_req_h *st_reqs = calloc((size_t)count + 1, sizeof(*st_reqs));
    size_t num            = 0;
    ucs_status_t status;
    uint32_t i;

    if (st_reqs == NULL) {
        return mpix_libmp_fail(func, "no memory");
    }
    for (i = 0; i < count; ++i) {
        if (reqs[i]->st_req != NULL) {
            st_reqs[num++] = reqs[i]->st_req;
        }
    }
    status = ucp_st_enqueue_req_waitall(queue->st_queue, st_reqs, num);
    free(st_reqs);
    return (status == UCS_OK) ?
                   MP_SUCCESS :
                   mpix_libmp_fail(func, "the stream does not take the wait: "
                                         "%s", ucs_status_string(status));
}

/* Behind that: the wait for a put or get of another stream, and what was
 * received in one piece to its blocks. The stream then tells that it has
 * passed. */
static int mpix_libmp_wait_rest(const char *func, struct mpix_queue *queue,
                                struct mp_request *req)
{
    ucs_gstream_cmd_t cmds[2] = {0};
    size_t num                = 0;
    ucs_status_t status;

    if (!mpix_libmp_is_msg(req) && (req->queue != queue)) {
        cmds[num].type           = UCS_GSTREAM_CMD_WAIT64;
        cmds[num].u.word.address = req->done;
        cmds[num++].u.word.value = 1;
    }
    if ((req->kind == MPIX_LIBMP_RECV) && (req->blocks != NULL)) {
        status = mpix_libmp_copy(queue, req, 1);
        if (status != UCS_OK) {
            return mpix_libmp_fail(func, "the stream does not take a copy: %s",
                                   ucs_status_string(status));
        }
    }
    cmds[num].type           = UCS_GSTREAM_CMD_WRITE64;
    cmds[num].u.word.address = req->passed;
    cmds[num++].u.word.value = 1;
    return mpix_libmp_command(func, queue, cmds, num);
}

int mpix_libmp_stream_wait(const char *func, struct mpix_queue *queue,
                           uint32_t count, const mp_request_t *reqs)
{
    int rc = MP_SUCCESS;
    uint32_t i;

    for (i = 0; (i < count) && (rc == MP_SUCCESS); ++i) {
        reqs[i]->passed = ucs_gstream_word_get();
        rc              = (reqs[i]->passed != NULL) ?
                                  MP_SUCCESS :
                                  mpix_libmp_fail(func, "no memory");
    }
    rc = (rc == MP_SUCCESS) ? mpix_libmp_wait_msgs(func, queue, count, reqs) :
                              rc;
    for (i = 0; i < count; ++i) {
        if (rc != MP_SUCCESS) {
            ucs_gstream_word_put(reqs[i]->passed);
            reqs[i]->passed = NULL;
            continue;
        }
        rc = mpix_libmp_wait_rest(func, queue, reqs[i]);
        if (rc == MP_SUCCESS) {
            reqs[i]->is_waited = 1;
            reqs[i]->waiter    = queue;
        } else { /* The stream may have a part, which names its memory */
            reqs[i]->is_failed = 1;
            reqs[i]->passed    = NULL;
        }
    }
    return rc;
}

static int mpix_libmp_wait_on(const char *func, uint32_t count,
                              mp_request_t *reqs, cudaStream_t stream)
{
    int rc = mpix_libmp_wait_check(func, count, reqs, 0);
    struct mpix_queue *queue;

    if (rc == MP_SUCCESS) {
        rc = mpix_libmp_get_queue(func, stream, &queue);
    }
    return (rc == MP_SUCCESS) ? mpix_libmp_stream_wait(func, queue, count,
                                                       reqs) :
                                rc;
}

int MPIX_Mp_wait_on_stream(mp_request_t *req, cudaStream_t stream)
{
    return mpix_libmp_wait_on("mp_wait_on_stream", 1, req, stream);
}

int MPIX_Mp_wait_all_on_stream(uint32_t count, mp_request_t *req,
                               cudaStream_t stream)
{
    return mpix_libmp_wait_on("mp_wait_all_on_stream", count, req, stream);
}

/* Waits of the host */

/* Fills, once, the blocks of a message that is received and that no stream
 * waits for. */
static ucs_status_t mpix_libmp_scatter(struct mp_request *req)
{
    ucs_status_t status = UCS_OK;

    if ((req->kind == MPIX_LIBMP_RECV) && (req->waiter == NULL) &&
        !req->is_filled) {
        status         = mpix_libmp_copy(mpix_libmp.host, req, 1);
        req->is_filled = (status == UCS_OK);
    }
    return status;
}

/* Waits for a request to end, and for the stream that waits for it. Returns how
 * it has ended. */
static ucs_status_t mpix_libmp_finish(struct mp_request *req)
{
    ucs_status_t status, passed;

    if (mpix_libmp_is_msg(req)) {
        status = ucp_st_req_wait(req->st_req, NULL);
    } else {
        status = mpix_libmp_wait_word(req->queue, req->done);
        status = (status == UCS_OK) ? mpix_libmp_cause(req->queue, UCS_OK) :
                                      status;
        status = (req->is_failed && (status == UCS_OK)) ? UCS_ERR_IO_ERROR :
                                                          status;
    }
    if (mpix_libmp_is_msg(req) && (req->done != NULL)) {
        passed = mpix_libmp_wait_word(req->queue, req->done);
        status = (status == UCS_OK) ? passed : status;
    }
    if (req->waiter != NULL) {
        passed = mpix_libmp_wait_word(req->waiter, req->passed);
        return (status == UCS_OK) ? passed : status;
    }
    return (status == UCS_OK) ? mpix_libmp_scatter(req) : status;
}

/* The same, and frees it. */
static int mpix_libmp_end(const char *func, struct mp_request *req)
{
    ucs_status_t status = mpix_libmp_finish(req);
    int rc              = MP_SUCCESS;

    if (status != UCS_OK) {
        rc = mpix_libmp_fail(func, "the %s rank %d of %zu bytes has failed: %s",
                             mpix_libmp_name(req), req->peer, req->length,
                             (status == UCS_ERR_CANCELED) ?
                                     "another message of its stream or of the "
                                     "peer's has, or the peer has left" :
                                     ucs_status_string(status));
    }
    mpix_libmp_request_free(req, mpix_libmp_is_busy(req));
    return rc;
}

static int mpix_libmp_host_wait(const char *func, uint32_t count,
                                mp_request_t *reqs)
{
    int rc = mpix_libmp_wait_check(func, count, reqs, 1);
    uint32_t i;

    if (rc != MP_SUCCESS) {
        return rc;
    }
    for (i = 0; i < count; ++i) {
        rc      = (mpix_libmp_end(func, reqs[i]) == MP_SUCCESS) ? rc :
                                                                  MP_FAILURE;
        reqs[i] = NULL;
    }
    return rc;
}

int MPIX_Mp_wait(mp_request_t *req)
{
    return mpix_libmp_host_wait("mp_wait", 1, req);
}

int MPIX_Mp_wait_all(uint32_t count, mp_request_t *req)
{
    return mpix_libmp_host_wait("mp_wait_all", count, req);
}

static int mpix_libmp_is_over(struct mp_request *req)
{
    ucs_status_t status = UCS_OK;

    if ((req->state != MPIX_LIBMP_POSTED) || mpix_libmp_is_busy(req)) {
        return 0;
    }
    if (mpix_libmp_is_msg(req)) {
        status = ucp_st_req_test(req->st_req, NULL);
    }
    if (status == UCS_OK) {
        (void)mpix_libmp_scatter(req); /* If it fails mp_wait tells */
    }
    return status != UCS_INPROGRESS;
}

int MPIX_Mp_progress_all(uint32_t count, mp_request_t *req)
{
    static const char func[] = "mp_progress_all";
    int num                  = 0;
    uint32_t i;

    if (mpix_libmp_check_init(func) != MP_SUCCESS) {
        return -1;
    }
    if ((count > 0) && (req == NULL)) {
        (void)mpix_libmp_fail(func, "%u requests at %p", count, (void*)req);
        return -1;
    }
    for (i = 0; i < count; ++i) {
        num += !mpix_libmp_is_valid(req[i]) || mpix_libmp_is_over(req[i]);
    }
    return num;
}
