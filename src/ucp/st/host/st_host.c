/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_host.c - the host lane of one operation. The protocol is described in
 * st_host.h, the UCP worker that carries it in st_host_dev.h.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "host/st_host.h"
#include "host/st_host_dev.h"
#include "ctrl/st_ctrl.h"
#include "core/st_lane.h"
#include "ctrl/st_leave.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_peer.h"
#include "core/st_queue.h"
#include "core/st_trace.h"
#include "core/st_ucp.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

static int ucp_st_host_is_send(const ucp_st_op_t *op)
{
    return op->dir == UCP_ST_DIR_SEND;
}

/* Uses that the stream has started. Pairs with the stream's addition: what it
 * did before, it did to the buffer. */
static uint64_t ucp_st_host_begun(const ucp_st_op_t *op)
{
    return __atomic_load_n(&ucp_st_host_op(op)->begun, __ATOMIC_ACQUIRE);
}

/* The release store pairs with the acquire load of the stream's wait */
static void ucp_st_host_store_word(ucp_st_host_op_t *host, uint64_t value)
{
    __atomic_store_n(&host->word, value, __ATOMIC_RELEASE);
    ucs_gstream_wake(&host->word);
}

/* Release the waits as soon as nothing moves: from then on the buffer is the
 * user's. `released` is stored before the word that lets the stream go on. */
static void ucp_st_host_settle(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    if ((host == NULL) || !host->release || host->is_moving ||
        host->released) {
        return;
    }
    __atomic_store_n(&host->released, 1, __ATOMIC_RELEASE);
    ucp_st_host_store_word(host, UCP_ST_RELEASE);
}

static void ucp_st_host_complete(ucp_st_op_t *op, uint64_t use)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    if (host->release || (use <= host->word)) {
        return;
    }
    ucp_st_host_store_word(host, use);
    ucp_st_op_complete_uses(op, 1);
}

static void ucp_st_host_failed(ucp_st_op_t *op, ucs_status_t status)
{
    ucs_debug("operation %p: UCP: %s", op, ucs_status_string(status));
    if (op->peer->is_self || ucp_st_ucp_is_local(status)) {
        ucp_st_op_fail(op, status);
    } else {
        /* The operation fails with the peer */
        ucp_st_leave_lost(op->peer, status);
    }
}

/* UCP is done with a send's buffer */
static void ucp_st_host_sent(ucp_st_op_t *op, ucs_status_t status)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    host->is_moving  = 0;
    host->is_sending = 0;
    if (status == UCS_OK) {
        host->moved = host->sent;
        ucp_st_trace_moved(op, host->moved);
        ++op->worker->stats.proxied;
        ucp_st_host_complete(op, ucs_min(host->moved, host->acked));
    } else {
        ucp_st_host_failed(op, status);
    }
    ucp_st_host_settle(op);
}

/* UCP is done with a receive's buffer */
static void ucp_st_host_received(ucp_st_op_t *op, ucs_status_t status)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    host->is_moving = 0;
    if ((status == UCS_OK) && !host->release) {
        ++host->moved;
        ucp_st_trace_moved(op, host->moved);
        ++op->worker->stats.proxied;
        ucp_st_host_complete(op, host->moved);
    } else if (status != UCS_OK) {
        ucp_st_host_failed(op, status);
    }
    ucp_st_host_settle(op);
}

static void ucp_st_host_acked(ucp_st_op_t *op, ucs_status_t status)
{
    ucp_st_host_op(op)->is_sending = 0;
    if (status != UCS_OK) {
        ucp_st_host_failed(op, status);
    }
}

/* The end of what UCP did not do at once: in its progress, without the lock */
static void ucp_st_host_request_done(void *request, ucp_st_op_t *op,
                                     ucs_status_t status,
                                     void (*done)(ucp_st_op_t *op,
                                                  ucs_status_t status))
{
    ucp_st_worker_h worker = op->worker;

    ucp_st_worker_lock(worker);
    done(op, status);
    ucp_st_host_dev_add(op);
    ucp_st_worker_unlock(worker);
    ucp_request_free(request);
}

static void ucp_st_host_sent_cb(void *request, ucs_status_t status, void *arg)
{
    ucp_st_host_request_done(request, arg, status, ucp_st_host_sent);
}

static void ucp_st_host_received_cb(void *request, ucs_status_t status,
                                    size_t length, void *arg)
{
    (void)length;
    ucp_st_host_request_done(request, arg, status, ucp_st_host_received);
}

static void ucp_st_host_acked_cb(void *request, ucs_status_t status, void *arg)
{
    ucp_st_host_request_done(request, arg, status, ucp_st_host_acked);
}

/* Send a message; without the lock, which is why the caller has set
 * `is_sending`: the header is not touched until UCP is done with it */
static ucs_status_ptr_t ucp_st_host_am_send(ucp_st_op_t *op, unsigned am_id,
                                            uint64_t use,
                                            const ucp_request_param_t *param)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);
    int has_data           = (am_id == UCP_ST_SVC_AM_DATA);
    ucs_status_t status;
    ucp_ep_h ep;

    status = ucp_st_svc_ep_get(op->peer, &ep);
    if (status != UCS_OK) {
        return UCS_STATUS_PTR(status);
    }
    host->header = (ucp_st_host_hdr_t){
        .op_id = op->remote_id,
        .use   = use,
        .src   = op->worker->uuid
    };
    return ucp_am_send_nbx(ep, am_id, &host->header,
                           sizeof(host->header),
                           has_data ? op->buffer : NULL,
                           has_data ? op->msg_length : 0, param);
}

static void ucp_st_host_send_data(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host    = ucp_st_host_op(op);
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = ucp_st_host_sent_cb,
        .user_data    = op
    };
    uint64_t use              = ++host->sent;
    ucs_status_ptr_t request;

    host->is_moving  = 1;
    host->is_sending = 1;
    ucp_st_trace_move(op);
    ucp_st_worker_unlock(op->worker);
    request = ucp_st_host_am_send(op, UCP_ST_SVC_AM_DATA, use, &param);
    ucp_st_worker_lock(op->worker);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_host_sent(op, UCS_PTR_STATUS(request));
    }
}

static void ucp_st_host_send_ack(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host    = ucp_st_host_op(op);
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_AM_SEND_FLAG_EAGER,
        .cb.send      = ucp_st_host_acked_cb,
        .user_data    = op
    };
    uint64_t use              = ++host->sent;
    ucs_status_ptr_t request;

    host->is_sending = 1;
    ucp_st_worker_unlock(op->worker);
    request = ucp_st_host_am_send(op, UCP_ST_SVC_AM_ACK, use, &param);
    ucp_st_worker_lock(op->worker);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_host_acked(op, UCS_PTR_STATUS(request));
    }
}

/* Move a message to the buffer; without the lock */
static ucs_status_ptr_t ucp_st_host_take(ucp_st_op_t *op,
                                         const ucp_st_host_msg_t *msg)
{
    ucp_worker_h ucp_worker   = ucp_st_svc(op->worker)->ucp_worker;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv_am   = ucp_st_host_received_cb,
        .user_data    = op
    };

    if (msg->is_rndv && (op->msg_length > 0)) {
        return ucp_am_recv_data_nbx(ucp_worker, msg->data, op->buffer,
                                    op->msg_length, &param);
    }
    if (op->msg_length > 0) {
        memcpy(op->buffer, msg->data, op->msg_length);
    }
    ucp_am_data_release(ucp_worker, msg->data);
    return NULL;
}

static void ucp_st_host_recv_data(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);
    ucp_st_host_msg_t *msg = host->msg;
    ucs_status_ptr_t request;

    host->msg       = NULL;
    host->is_moving = 1;
    ucp_st_trace_move(op);
    ucp_st_worker_unlock(op->worker);
    request = ucp_st_host_take(op, msg);
    free(msg);
    ucp_st_worker_lock(op->worker);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_host_received(op, UCS_PTR_STATUS(request));
    }
}

static int ucp_st_host_can_recv(const ucp_st_op_t *op)
{
    const ucp_st_host_op_t *host = ucp_st_host_op(op);

    return (host->msg != NULL) && host->is_bound && !host->release &&
           !host->is_moving && (ucp_st_host_begun(op) > host->moved);
}

/* The sender is waiting for word of what was moved, also if the receive has
 * failed or was freed since */
static int ucp_st_host_has_ack(const ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    return !ucp_st_host_is_send(op) && (host->sent < host->moved) &&
           (op->peer->status == UCS_OK);
}

void ucp_st_host_run(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);
    ucs_status_t status;
    ucp_ep_h ep;

    host->is_running = 1;
    if (host->is_bound == 1) {
        /* Both halves exist: be ready to send to the peer, and to hear of its
         * end */
        host->is_bound = 2;
        ucp_st_worker_unlock(op->worker);
        status = ucp_st_svc_ep_get(op->peer, &ep);
        ucp_st_worker_lock(op->worker);
        if (status != UCS_OK) {
            ucp_st_op_fail(op, status);
        }
    }
    if (ucp_st_host_is_send(op) && host->is_bound && !host->release &&
        !host->is_sending && (ucp_st_host_begun(op) > host->sent)) {
        ucp_st_host_send_data(op);
    }
    if (ucp_st_host_can_recv(op)) {
        ucp_st_host_recv_data(op);
    }
    if (ucp_st_host_has_ack(op) && !host->is_sending) {
        ucp_st_host_send_ack(op);
    }
    host->is_running = 0;
    ucp_st_op_reap(op);
}

/* The operation that a message names, if it is one with that peer. It may have
 * been freed and wait for its end. */
static ucp_st_op_t *ucp_st_host_find(ucp_st_worker_h worker,
                                     const ucp_st_host_hdr_t *header)
{
    ucp_st_op_t *op        = ucp_st_op_get(worker, header->op_id);
    ucp_st_host_op_t *host = (op == NULL) ? NULL : ucp_st_host_op(op);

    return ((host == NULL) || host->is_revoked || host->release ||
            (op->peer->uuid != header->src)) ? NULL : op;
}

static void ucp_st_host_bad_message(ucp_st_op_t *op,
                                    const ucp_st_host_hdr_t *header)
{
    ucs_error("operation %p: message of use %lu from peer 0x%lx does not fit",
              op, header->use, header->src);
    ucp_st_op_fail(op, UCS_ERR_IO_ERROR);
}

int ucp_st_host_handle_data(ucp_st_worker_h worker,
                            const ucp_st_host_hdr_t *header,
                            ucp_st_host_msg_t *msg, size_t length)
{
    ucp_st_op_t *op = ucp_st_host_find(worker, header);
    ucp_st_host_op_t *host;

    if (op == NULL) {
        return 0; /* its receive is gone */
    }
    host = ucp_st_host_op(op);
    if (ucp_st_host_is_send(op) || (length != op->msg_length) ||
        (header->use != (host->moved + 1)) || (host->msg != NULL) ||
        host->is_moving) {
        ucp_st_host_bad_message(op, header);
        return 0;
    }
    if (msg == NULL) {
        ucp_st_op_fail(op, UCS_ERR_NO_MEMORY);
        return 0;
    }
    host->msg = msg;
    if (ucp_st_host_can_recv(op)) {
        ucp_st_host_dev_add(op);
    }
    return 1;
}

void ucp_st_host_handle_ack(ucp_st_worker_h worker,
                            const ucp_st_host_hdr_t *header)
{
    ucp_st_op_t *op = ucp_st_host_find(worker, header);
    ucp_st_host_op_t *host;

    if (op == NULL) {
        return;
    }
    host = ucp_st_host_op(op);
    if (!ucp_st_host_is_send(op) || (header->use != (host->acked + 1)) ||
        (header->use > host->sent)) {
        ucp_st_host_bad_message(op, header);
        return;
    }
    host->acked = header->use;
    ucp_st_host_complete(op, ucs_min(host->moved, host->acked));
}

static size_t ucp_st_host_address_length(ucp_st_worker_h worker)
{
    (void)worker;
    return 0; /* the device's address is there anyway */
}

static ucs_status_t ucp_st_host_address_pack(ucp_st_worker_h worker,
                                             void *buffer)
{
    (void)worker;
    (void)buffer;
    return UCS_OK;
}

static ucs_status_t ucp_st_host_connect(ucp_st_peer_t *peer,
                                        const void *address, size_t length)
{
    (void)address;
    (void)length;
    return (peer->svc_ep == NULL) ? UCS_ERR_UNREACHABLE : UCS_OK;
}

static ucs_status_t ucp_st_host_offer(ucp_st_op_t *op, void *blob,
                                      size_t *length_p)
{
    ucp_st_host_op_t *host = calloc(1, sizeof(*host));

    (void)blob;
    if (host == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    host->op                    = op;
    op->parts[UCP_ST_LANE_HOST] = host;
    *length_p                   = 0;
    return UCS_OK;
}

static ucs_status_t ucp_st_host_bind(ucp_st_op_t *op, const void *blob,
                                     size_t length)
{
    (void)blob;
    if (length != 0) {
        return UCS_ERR_INVALID_PARAM;
    }
    ucp_st_host_op(op)->is_bound = 1;
    ucp_st_host_dev_add(op);
    return UCS_OK;
}

/* Runs on the stream */
static void ucp_st_host_start_func(void *arg)
{
    ucp_st_op_t *op        = arg;
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    /* Pairs with the release store in ucp_st_host_settle(): a stream that
     * passed a released wait starts nothing any more */
    if (__atomic_load_n(&host->released, __ATOMIC_ACQUIRE)) {
        return;
    }
    /* Pairs with the acquire load in ucp_st_host_begun() */
    (void)__atomic_fetch_add(&host->begun, 1, __ATOMIC_RELEASE);
    ucp_st_host_dev_push(op);
}

static size_t ucp_st_host_start_cmds(ucp_st_op_t *op, ucp_st_queue_h queue,
                                     uint64_t use, ucs_gstream_cmd_t *cmd)
{
    (void)queue;
    (void)use;
    cmd->type        = UCS_GSTREAM_CMD_FUNC;
    cmd->u.func.func = ucp_st_host_start_func;
    cmd->u.func.arg  = op;
    return 1;
}

static size_t ucp_st_host_wait_words(const ucp_st_op_t *op,
                                     ucs_gstream_word_t *words)
{
    words[0].address = &ucp_st_host_op(op)->word;
    words[0].value   = op->started;
    return 1;
}

static uint64_t ucp_st_host_uses_done(const ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);
    uint64_t word          = (host == NULL) ? 0 : host->word;

    return (word < UCP_ST_RELEASE) ? word : 0;
}

/* Nothing to do for halt(): what a stream has started is sent by the service
 * thread alone, which has the lock when it looks, and release_waits() ends that
 */
static void ucp_st_host_release_waits(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    if (host != NULL) {
        host->release = 1;
        ucp_st_host_settle(op);
    }
}

static void ucp_st_host_drop_msg(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    if (host->msg != NULL) {
        ucp_st_host_dev_drop(op->worker, host->msg);
        host->msg = NULL;
    }
}

/* A message that is being moved to the buffer cannot be stopped: the waits are
 * released, and the buffer given back, when that is over. The peer reaches
 * nothing of a send; its word of what it has may come after it freed its half.
 */
static void ucp_st_host_revoke(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    if ((host != NULL) && !ucp_st_host_is_send(op)) {
        host->is_revoked = 1;
        ucp_st_host_drop_msg(op);
    }
}

/* What still waits to be sent is dropped by the service thread */
static void ucp_st_host_dispose(ucp_st_op_t *op)
{
    ucp_st_host_dev_add(op);
}

static int ucp_st_host_is_busy(const ucp_st_op_t *op)
{
    const ucp_st_host_op_t *host = ucp_st_host_op(op);

    return host->is_listed || host->is_running || host->is_moving ||
           host->is_sending || ucp_st_host_has_ack(op) ||
           __atomic_load_n(&host->queued, __ATOMIC_ACQUIRE);
}

static int ucp_st_host_uses_buffer(const ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    return (host != NULL) && host->is_moving;
}

static void ucp_st_host_release(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    ucp_st_host_drop_msg(op);
    if (host->is_listed) {
        ucs_list_del(&host->list);
        host->is_listed = 0;
    }
    free(host);
    op->parts[UCP_ST_LANE_HOST] = NULL;
}

static const char *ucp_st_host_protocol(const ucp_st_op_t *op)
{
    (void)op;
    return "messages";
}

static unsigned ucp_st_host_progress(ucp_st_worker_h worker)
{
    (void)worker;
    return 0; /* the service thread does it all */
}

static ucs_status_t ucp_st_host_query(ucp_st_worker_h worker,
                                      ucp_st_worker_attr_t *attr)
{
    (void)worker;
    (void)attr;
    return UCS_OK; /* it is all in the statistics */
}

const ucp_st_lane_ops_t ucp_st_host_lane = {
    .name   = "host",
    .id     = UCP_ST_LANE_HOST,
    .sizes  = {[UCP_ST_OBJECT_WORKER] = sizeof(ucp_st_host_dev_t)},
    .worker = {
        .open           = ucp_st_host_dev_open,
        .close          = ucp_st_host_dev_close,
        .address_length = ucp_st_host_address_length,
        .address_pack   = ucp_st_host_address_pack,
        .progress       = ucp_st_host_progress,
        .poll           = ucp_st_worker_hook_none,
        .query          = ucp_st_host_query
    },
    .peer   = {
        .connect    = ucp_st_host_connect,
        .disconnect = ucp_st_peer_hook_none,
        .check      = ucp_st_svc_ep_check
    },
    .queue  = {
        .init    = ucp_st_queue_hook_none,
        .cleanup = ucp_st_queue_hook_none
    },
    .op     = {
        .offer         = ucp_st_host_offer,
        .bind          = ucp_st_host_bind,
        .post          = ucp_st_lane_no_post,
        .start         = ucp_st_host_start_cmds,
        .wait_words    = ucp_st_host_wait_words,
        .land          = ucp_st_lane_no_land,
        .leave_queue   = ucp_st_lane_no_leave_queue,
        .uses_done     = ucp_st_host_uses_done,
        .halt          = ucp_st_lane_no_op,
        .release_waits = ucp_st_host_release_waits,
        .revoke        = ucp_st_host_revoke,
        .dispose       = ucp_st_host_dispose,
        .is_busy       = ucp_st_host_is_busy,
        .uses_buffer   = ucp_st_host_uses_buffer,
        .release       = ucp_st_host_release,
        .protocol      = ucp_st_host_protocol
    }
};
