/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_libmp_desc.c - the calls of compat/mp.h: words of 32 bits, and queues of
 * commands.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "compat/mpix_libmp.h"
#include "binding/mpix_error.h"
#include "binding/mpix_handle.h"

#include <ucs_backoff.h>
#include <ucs_gstream.h>

#include <stdlib.h>
#include <string.h>


/* A command: of a request, or of a word. */
typedef struct mpix_libmp_desc {
    struct mp_request *req; /* NULL: 'cmd' it is */
    int               is_wait;
    ucs_gstream_cmd_t cmd;
} mpix_libmp_desc_t;

/* A queue of commands. */
struct mp_desc_queue {
    ucs_list_link_t   list; /* First: mpix_handle.h */
    mpix_libmp_desc_t *descs;
    uint32_t          count;
    uint32_t          max;  /* There is room for so many */
};


/* Words */

/* Makes a wait of these arguments. */
static int mpix_libmp_make_wait32(const char *func, uint32_t *ptr,
                                  uint32_t value, int flags,
                                  ucs_gstream_cmd_t *cmd)
{
    static const ucs_gstream_cmp_t cmps[] = {
        [MP_WAIT_GEQ] = UCS_GSTREAM_CMP_GE,
        [MP_WAIT_EQ]  = UCS_GSTREAM_CMP_EQ,
        [MP_WAIT_AND] = UCS_GSTREAM_CMP_AND
    };

    if ((ptr == NULL) || (((uintptr_t)ptr % sizeof(*ptr)) != 0) ||
        (flags < MP_WAIT_GEQ) || (flags > MP_WAIT_AND)) {
        return mpix_libmp_fail(func, "a word at %p, flags %d", (void*)ptr,
                               flags);
    }
    cmd->type             = UCS_GSTREAM_CMD_WAIT32;
    cmd->u.word32.address = ptr;
    cmd->u.word32.value   = value;
    cmd->u.word32.cmp     = cmps[flags];
    return MP_SUCCESS;
}

int MPIX_Mp_wait32(uint32_t *ptr, uint32_t value, int flags)
{
    ucs_gstream_cmd_t cmd = {.u.word32 = {NULL}};
    unsigned spins        = 0;
    int rc;

    rc = mpix_libmp_make_wait32("mp_wait32", ptr, value, flags, &cmd);
    while ((rc == MP_SUCCESS) &&
           !ucs_gstream_compare32(ptr, value, cmd.u.word32.cmp)) {
        ucs_backoff(&spins);
    }
    return rc;
}

int MPIX_Mp_wait32_on_stream(uint32_t *ptr, uint32_t value, int flags,
                             cudaStream_t stream)
{
    static const char func[] = "mp_wait32_on_stream";
    struct mpix_queue *queue;
    ucs_gstream_cmd_t cmd;
    int rc;

    rc = mpix_libmp_make_wait32(func, ptr, value, flags, &cmd);
    if (rc == MP_SUCCESS) {
        rc = mpix_libmp_get_queue(func, stream, &queue);
    }
    return (rc == MP_SUCCESS) ? mpix_libmp_command(func, queue, &cmd, 1) : rc;
}

/* Queues of commands */

static int mpix_libmp_dq_check(const char *func, const mp_desc_queue_t *dq)
{
    return ((dq != NULL) && mpix_handle_is_valid(&mpix_libmp.dqs, *dq)) ?
                   MP_SUCCESS :
                   mpix_libmp_fail(func, "%p is no queue of "
                                         "mp_desc_queue_alloc",
                                   (dq == NULL) ? NULL : (void*)*dq);
}

int MPIX_Mp_desc_queue_alloc(mp_desc_queue_t *dq)
{
    static const char func[] = "mp_desc_queue_alloc";
    int rc                   = mpix_libmp_check_init(func);
    struct mp_desc_queue *queue;

    if ((rc != MP_SUCCESS) || (dq == NULL)) {
        return (rc != MP_SUCCESS) ? rc : mpix_libmp_dq_check(func, dq);
    }
    queue = calloc(1, sizeof(*queue));
    if (queue == NULL) {
        return mpix_libmp_fail(func, "no memory");
    }
    ucs_list_add_tail(&mpix_libmp.dqs, &queue->list);
    *dq = queue;
    return MP_SUCCESS;
}

/* The requests are as they were before they were added. Those of MP_PUT_NOWAIT,
 * which the application has no more, go. */
static void mpix_libmp_dq_drop(struct mp_desc_queue *queue)
{
    const mpix_libmp_desc_t *desc;

    for (desc = queue->descs; desc < (queue->descs + queue->count); ++desc) {
        if ((desc->req != NULL) && desc->is_wait) {
            desc->req->is_waited = 0;
        } else if ((desc->req != NULL) && desc->req->is_nowait) {
            mpix_libmp_request_free(desc->req, 0);
        } else if (desc->req != NULL) {
            desc->req->state = MPIX_LIBMP_PREPARED;
        }
    }
    free(queue->descs);
    ucs_list_del(&queue->list);
    free(queue);
}

int MPIX_Mp_desc_queue_free(mp_desc_queue_t *dq)
{
    int rc = mpix_libmp_dq_check("mp_desc_queue_free", dq);

    if (rc != MP_SUCCESS) {
        return rc;
    }
    if ((*dq)->count > 0) {
        mpix_warn("mp_desc_queue_free: %u commands were not posted",
                  (*dq)->count);
    }
    mpix_libmp_dq_drop(*dq);
    *dq = NULL;
    return MP_SUCCESS;
}

void mpix_libmp_dqs_cleanup(void)
{
    while (!ucs_list_is_empty(&mpix_libmp.dqs)) {
        mpix_libmp_dq_drop(ucs_list_head(&mpix_libmp.dqs, struct mp_desc_queue,
                                         list));
    }
}

static int mpix_libmp_dq_add(const char *func, struct mp_desc_queue *queue,
                             const mpix_libmp_desc_t *desc)
{
    uint32_t max = queue->max;
    mpix_libmp_desc_t *descs;

    if (queue->count == max) {
        max   = (2 * max) + 8;
        descs = realloc(queue->descs, max * sizeof(*descs));
        if (descs == NULL) {
            return mpix_libmp_fail(func, "no memory");
        }
        queue->descs = descs;
        queue->max   = max;
    }
    queue->descs[queue->count++] = *desc;
    return MP_SUCCESS;
}

int MPIX_Mp_desc_queue_add_send(mp_desc_queue_t *dq, mp_request_t *req)
{
    static const char func[] = "mp_desc_queue_add_send";
    mpix_libmp_desc_t desc   = {NULL};
    int rc                   = mpix_libmp_dq_check(func, dq);

    rc = (rc == MP_SUCCESS) ? mpix_libmp_request_check(func, req) : rc;
    if (rc != MP_SUCCESS) {
        return rc;
    }
    if ((*req)->state != MPIX_LIBMP_PREPARED) {
        return mpix_libmp_fail(func, "the request is not that of a send or put "
                                     "that is prepared, or was added before");
    }
    desc.req = *req;
    rc       = mpix_libmp_dq_add(func, *dq, &desc);
    if (rc == MP_SUCCESS) {
        desc.req->state = MPIX_LIBMP_ADDED;
        *req            = desc.req->is_nowait ? NULL : desc.req;
    }
    return rc;
}

static int mpix_libmp_dq_add_wait(const char *func, mp_desc_queue_t *dq,
                                  const mp_request_t *req, int is_recv)
{
    mpix_libmp_desc_t desc = {NULL, 1};
    int rc                 = mpix_libmp_dq_check(func, dq);

    rc = (rc == MP_SUCCESS) ? mpix_libmp_request_check(func, req) : rc;
    if (rc != MP_SUCCESS) {
        return rc;
    }
    if (((*req)->state == MPIX_LIBMP_PREPARED) || (*req)->is_waited ||
        (*req)->is_nowait || (((*req)->kind == MPIX_LIBMP_RECV) != is_recv)) {
        return mpix_libmp_fail(func, ((*req)->state == MPIX_LIBMP_PREPARED) ?
                                             "the request was neither posted "
                                             "nor added" :
                                     (*req)->is_waited ?
                                             "a stream waits for the request "
                                             "already" :
                                     (*req)->is_nowait ?
                                             "nobody waits for the request" :
                                     is_recv ?
                                             "the request is no receive" :
                                             "the request is a receive");
    }
    desc.req = *req;
    rc       = mpix_libmp_dq_add(func, *dq, &desc);
    if (rc == MP_SUCCESS) {
        desc.req->is_waited = 1;
    }
    return rc;
}

int MPIX_Mp_desc_queue_add_wait_send(mp_desc_queue_t *dq, mp_request_t *req)
{
    return mpix_libmp_dq_add_wait("mp_desc_queue_add_wait_send", dq, req, 0);
}

int MPIX_Mp_desc_queue_add_wait_recv(mp_desc_queue_t *dq, mp_request_t *req)
{
    return mpix_libmp_dq_add_wait("mp_desc_queue_add_wait_recv", dq, req, 1);
}

int MPIX_Mp_desc_queue_add_wait_value32(mp_desc_queue_t *dq, uint32_t *ptr,
                                        uint32_t value, int flags)
{
    static const char func[] = "mp_desc_queue_add_wait_value32";
    mpix_libmp_desc_t desc   = {NULL};
    int rc                   = mpix_libmp_dq_check(func, dq);

    if (rc == MP_SUCCESS) {
        rc = mpix_libmp_make_wait32(func, ptr, value, flags, &desc.cmd);
    }
    return (rc == MP_SUCCESS) ? mpix_libmp_dq_add(func, *dq, &desc) : rc;
}

int MPIX_Mp_desc_queue_add_write_value32(mp_desc_queue_t *dq, uint32_t *ptr,
                                         uint32_t value)
{
    static const char func[] = "mp_desc_queue_add_write_value32";
    mpix_libmp_desc_t desc   = {NULL};
    int rc                   = mpix_libmp_dq_check(func, dq);

    if (rc == MP_SUCCESS) {
        rc = mpix_libmp_make_wait32(func, ptr, value, MP_WAIT_GEQ, &desc.cmd);
    }
    desc.cmd.type = UCS_GSTREAM_CMD_WRITE32;
    return (rc == MP_SUCCESS) ? mpix_libmp_dq_add(func, *dq, &desc) : rc;
}

/* *is_gone_p: it has failed, but its request is posted. */
static int mpix_libmp_dq_post_one(const char *func, struct mpix_queue *queue,
                                  const mpix_libmp_desc_t *desc, int *is_gone_p)
{
    mp_request_t req = desc->req;
    int rc;

    if (req == NULL) {
        return mpix_libmp_command(func, queue, &desc->cmd, 1);
    }
    if (desc->is_wait) {
        return (req->state == MPIX_LIBMP_POSTED) ?
                       mpix_libmp_stream_wait(func, queue, 1, &req) :
                       mpix_libmp_fail(func, "the request of a wait was not "
                                             "posted");
    }
    req->state = MPIX_LIBMP_PREPARED;
    rc         = mpix_libmp_post_check(func, 1, &req);
    rc         = (rc == MP_SUCCESS) ? mpix_libmp_post(func, queue, 1, &req) :
                                      rc;
    if ((req != NULL) && (req->state == MPIX_LIBMP_PREPARED)) {
        req->state = MPIX_LIBMP_ADDED;
    } else if (rc != MP_SUCCESS) {
        *is_gone_p = 1;
    }
    return rc;
}

int MPIX_Mp_desc_queue_post_on_stream(cudaStream_t stream, mp_desc_queue_t *dq,
                                      int flags)
{
    static const char func[] = "mp_desc_queue_post_on_stream";
    int rc                   = mpix_libmp_dq_check(func, dq);
    struct mp_desc_queue *descs;
    struct mpix_queue *queue;
    uint32_t done = 0;
    int is_gone   = 0;

    if (rc == MP_SUCCESS) {
        rc = mpix_libmp_get_queue(func, stream, &queue);
    }
    if (rc != MP_SUCCESS) {
        return rc;
    }
    descs = *dq;
    while (done < descs->count) {
        rc = mpix_libmp_dq_post_one(func, queue, &descs->descs[done],
                                    &is_gone);
        if (rc != MP_SUCCESS) {
            break;
        }
        ++done;
    }
    done += is_gone;
    memmove(descs->descs, descs->descs + done,
            (descs->count - done) * sizeof(*descs->descs));
    descs->count -= done;
    return rc;
}
