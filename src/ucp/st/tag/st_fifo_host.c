/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_fifo_host.c - messages of FIFOs that hosts move: in the service thread,
 * which looks whether streams have come to them, copies from and to devices,
 * and gives them to the NIC or to UCP.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "tag/st_fifo.h"
#include "tag/st_fifo_nic.h"
#include "core/st_log.h"
#include "core/st_peer.h"
#include "core/st_ucp.h"
#include "ctrl/st_ctrl.h"

#include <ucs_gstream_memory.h>

#include <string.h>

/* When the thread looks again whether streams have come to messages that it is
 * to move, milliseconds */
#define UCP_ST_FIFO_LOOK_TIME 1

/* The thread or UCP reads or writes the buffer from now on, for which the lock
 * is released: the message and its request stay */
static void ucp_st_fifo_move_begin(ucp_st_fifo_msg_t *msg)
{
    msg->is_moving = 1;
    ++msg->nic->reading;
}

/* It does so no longer. Non-zero if the message goes on; else it may be gone.
 * With `is_local` no status is the peer's fault. */
static int ucp_st_fifo_move_end(ucp_st_fifo_msg_t *msg, ucs_status_t status,
                                int is_local)
{
    ucp_st_fifo_nic_t *nic = msg->nic;

    msg->is_moving = 0;
    nic->reading  -= (msg->left == NULL);
    if (msg->is_ended) { /* meanwhile */
        ucp_st_fifo_complete(msg, msg->status);
    } else if (status == UCS_OK) {
        return 1;
    } else if (!is_local && !msg->fifo->peer->is_self &&
               !ucp_st_ucp_is_local(status) &&
               (msg->fifo->peer->status == UCS_OK)) {
        ucp_st_peer_lost(msg->fifo->peer, status); /* it ends with the peer */
    } else {
        ucp_st_fifo_fail(msg, status);
        return 0;
    }
    ucp_st_fifo_nic_settle(nic, msg);
    return 0;
}

/* Copy between the buffer, in a device, and what is moved in its place. The
 * lock is held, and released meanwhile. As ucp_st_fifo_move_end(). */
static int ucp_st_fifo_copy(ucp_st_fifo_msg_t *msg)
{
    ucp_st_req_t *req = msg->req;
    int is_send       = ucp_st_fifo_is_send(msg);
    ucs_status_t status;

    if (!msg->is_staged || msg->is_copied || (msg->length == 0)) {
        return 1;
    }
    msg->is_copied = 1;
    ucp_st_fifo_move_begin(msg);
    ucp_st_worker_unlock(req->worker);
    status = ucs_gstream_memory_copy_by(&req->memory,
                                        is_send ? msg->data : req->buffer,
                                        is_send ? req->buffer : msg->data,
                                        msg->length);
    ucp_st_worker_lock(req->worker);
    return ucp_st_fifo_move_end(msg, status, 1);
}

/* Hosts have moved the message */
static void ucp_st_fifo_moved(ucp_st_fifo_msg_t *msg)
{
    ucp_st_fifo_nic_t *nic = msg->nic;

    ucp_st_fifo_nic_count(msg);
    ucp_st_fifo_complete(msg, UCS_OK);
    ucp_st_fifo_nic_post(nic); /* the message may be gone, if that fails */
    ucp_st_fifo_nic_settle(nic, NULL);
}

/* UCP has sent, or has received, what is moved */
static void ucp_st_fifo_ucp_done(ucp_st_fifo_msg_t *msg, ucs_status_t status)
{
    if (!ucp_st_fifo_move_end(msg, status, 0)) {
        return;
    }
    if (ucp_st_fifo_is_send(msg)) {
        ucp_st_fifo_moved(msg);
    } else {
        ucp_st_fifo_arrived(msg);
    }
}

static void ucp_st_fifo_ucp_called(ucp_st_fifo_msg_t *msg, void *request,
                                   ucs_status_t status)
{
    ucp_st_worker_h worker = msg->nic->worker;

    ucp_st_worker_lock(worker);
    ucp_st_fifo_ucp_done(msg, status);
    ucp_st_worker_unlock(worker);
    ucp_request_free(request);
}

static void ucp_st_fifo_sent_cb(void *request, ucs_status_t status, void *arg)
{
    ucp_st_fifo_ucp_called(arg, request, status);
}

static void ucp_st_fifo_received_cb(void *request, ucs_status_t status,
                                    size_t length, void *arg)
{
    ucp_st_fifo_ucp_called(arg, request, status);
}

/* Give a send to UCP. In the service thread; the lock is held, and released
 * meanwhile. */
static void ucp_st_fifo_send(ucp_st_fifo_msg_t *msg)
{
    ucp_st_peer_t *peer       = msg->fifo->peer;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = ucp_st_fifo_sent_cb,
        .user_data    = msg
    };
    ucs_status_ptr_t request;
    ucs_status_t status;
    ucp_ep_h ep;

    msg->is_given = 1;
    msg->header   = (ucp_st_fifo_hdr_t){
        .src    = peer->worker->uuid,
        .tag    = msg->fifo->id.tag,
        .scope  = msg->fifo->id.scope,
        .number = msg->number
    };
    ucp_st_fifo_move_begin(msg);
    ucp_st_worker_unlock(peer->worker);
    status  = ucp_st_net_ep_get(peer, UCP_ST_NET_USE_DATA, &ep);
    request = (status != UCS_OK) ? UCS_STATUS_PTR(status) :
              ucp_am_send_nbx(ep, UCP_ST_NET_AM_FIFO, &msg->header,
                              sizeof(msg->header), msg->data, msg->length,
                              &param);
    ucp_st_worker_lock(peer->worker);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_fifo_ucp_done(msg, UCS_PTR_STATUS(request));
    }
    ucp_st_net_wake(peer->worker);
}

/* Move what has come to where it goes; or give it back, if the message has
 * ended meanwhile. As ucp_st_fifo_send(). */
static void ucp_st_fifo_receive_data(ucp_st_fifo_msg_t *msg)
{
    ucp_st_worker_h worker    = msg->nic->worker;
    ucp_worker_h ucp_worker   = ucp_st_net(worker)->ucp_worker;
    void *came                = msg->came;
    int is_ended              = msg->is_ended;
    ucs_status_ptr_t request  = NULL;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv_am   = ucp_st_fifo_received_cb,
        .user_data    = msg
    };

    msg->came = NULL;
    ucp_st_fifo_move_begin(msg);
    ucp_st_worker_unlock(worker);
    if (!is_ended && msg->is_rndv && (msg->length > 0)) {
        request = ucp_am_recv_data_nbx(ucp_worker, came, msg->data, msg->length,
                                       &param);
    } else {
        if (!is_ended && (msg->length > 0)) {
            memcpy(msg->data, came, msg->length);
        }
        ucp_am_data_release(ucp_worker, came);
    }
    ucp_st_worker_lock(worker);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_fifo_ucp_done(msg, UCS_PTR_STATUS(request));
    }
    ucp_st_net_wake(worker);
}

/* The data of a receive, which has said that it is ready */
static ucs_status_t
ucp_st_fifo_am_handler(void *arg, const void *header, size_t header_length,
                       void *data, size_t length,
                       const ucp_am_recv_param_t *param)
{
    ucp_st_worker_h worker = arg;
    ucp_st_fifo_msg_t *msg = NULL;
    ucp_st_fifo_hdr_t hdr  = {.src = 0};
    ucp_st_fifo_t *fifo    = NULL;
    ucp_st_peer_t *peer;

    ucp_st_worker_lock(worker);
    if ((header_length == sizeof(hdr)) && ucp_st_net(worker)->is_served) {
        memcpy(&hdr, header, sizeof(hdr));
        peer = ucp_st_peer_find(worker, hdr.src);
        fifo = (peer == NULL) ? NULL :
               ucp_st_fifo_known(peer, UCP_ST_DIR_RECV,
                                 (ucp_st_key_id_t){.tag   = hdr.tag,
                                                   .scope = hdr.scope});
    }
    if (fifo != NULL) {
        msg = ucp_st_fifo_find(fifo, hdr.number);
    }
    if ((msg == NULL) || msg->is_ended || !msg->is_paired ||
        (msg->way != UCP_ST_FIFO_BY_UCP) || (msg->req == NULL) ||
        msg->is_moving || (msg->came != NULL) || !msg->is_reached ||
        (msg->length != length)) {
        msg = NULL; /* it was cancelled, or is not what it seems */
    } else {
        msg->came    = data;
        msg->is_rndv = !!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
        ucp_st_service_wake(&ucp_st_fifos(worker)->service);
    }
    ucp_st_worker_unlock(worker);
    return (msg != NULL) ? UCS_INPROGRESS : UCS_OK;
}

/* Take the next step of a message that hosts move. The lock is held, and
 * released meanwhile. The message may be gone on return. */
static void ucp_st_fifo_move(ucp_st_fifo_msg_t *msg)
{
    ucp_st_fifo_nic_t *nic = msg->nic;
    ucs_status_t status;

    if (msg->came != NULL) {
        ucp_st_fifo_receive_data(msg);
        return;
    }
    if (!ucp_st_fifo_copy(msg)) {
        return;
    }
    if (!ucp_st_fifo_is_send(msg)) {
        ucp_st_fifo_moved(msg);
    } else if (msg->way == UCP_ST_FIFO_BY_UCP) {
        ucp_st_fifo_send(msg);
    } else {
        status = ucp_st_fifo_nic_put(msg);
        if ((status != UCS_OK) && (status != UCS_ERR_NO_RESOURCE)) {
            ucp_st_fifo_fail(msg, status);
        } else {
            ucp_st_fifo_nic_settle(nic, msg);
        }
    }
}

/* Whether there is a step to take: the stream has come to the message, and the
 * other half's has; or the data is here */
static int ucp_st_fifo_can_move(const ucp_st_fifo_msg_t *msg)
{
    if (msg->is_moving) {
        return 0;
    }
    if (msg->came != NULL) {
        return 1;
    }
    if (msg->is_ended || (msg->req == NULL) || !msg->is_reached ||
        !msg->is_ready) {
        return 0;
    }
    return !ucp_st_fifo_is_send(msg) ||
           ((msg->way == UCP_ST_FIFO_BY_UCP) ? !msg->is_given :
            (msg->puts.posted < msg->num_puts));
}

/* One that can be moved now, or NULL. READY is said where it is due.
 * `is_left_p` is set if others have to be looked at again. */
static ucp_st_fifo_msg_t *ucp_st_fifo_next(ucp_st_fifos_t *fifos,
                                           int *is_left_p)
{
    ucp_st_fifo_msg_t *msg;

    *is_left_p = 0;
    ucs_list_for_each(msg, &fifos->handed, handed_list) {
        if (!msg->is_reached && !msg->is_ended && (msg->req != NULL)) {
            msg->is_reached = ucp_st_fifo_nic_is_begun(msg);
            *is_left_p     |= !msg->is_reached && (msg->nic->rail != NULL);
            if (msg->is_reached && !ucp_st_fifo_is_send(msg)) {
                ucp_st_fifo_tell(msg, UCP_ST_FIFO_READY);
            }
        }
        if (ucp_st_fifo_can_move(msg)) {
            return msg;
        }
    }
    return NULL;
}

static int ucp_st_fifo_serve(void *arg)
{
    ucp_st_worker_h worker = arg;
    ucp_st_fifos_t *fifos  = ucp_st_fifos(worker);
    ucp_st_fifo_msg_t *msg;
    int is_left, timeout;

    ucp_st_worker_lock(worker);
    timeout = ucp_st_fifo_nic_look(worker);
    msg     = ucp_st_fifo_next(fifos, &is_left);
    if (msg != NULL) {
        /* Others have their turn before this one is looked at again */
        ucs_list_del(&msg->handed_list);
        ucs_list_add_tail(&fifos->handed, &msg->handed_list);
        ucp_st_fifo_move(msg);
    }
    ucp_st_worker_unlock(worker);
    return (msg != NULL) ? UCP_ST_SERVICE_SOON :
           is_left ? UCP_ST_FIFO_LOOK_TIME : timeout;
}

/* The client's work is done in ucp_st_fifo_serve(), by the same thread */
static unsigned ucp_st_fifo_net_work(ucp_st_worker_h worker)
{
    return 0;
}

static int ucp_st_fifo_net_is_used(ucp_st_peer_t *peer)
{
    ucp_st_fifo_msg_t *msg;
    ucp_st_fifo_t *fifo;

    ucs_list_for_each(fifo, &ucp_st_fifo_peer(peer)->list, list) {
        ucs_list_for_each(msg, &fifo->msgs, list) {
            if (msg->is_moving && (msg->way == UCP_ST_FIFO_BY_UCP)) {
                return 1;
            }
        }
    }
    return 0;
}

ucs_status_t ucp_st_fifo_open(ucp_st_worker_h worker)
{
    static const ucp_st_net_client_t client = {
        .work    = ucp_st_fifo_net_work,
        .is_used = ucp_st_fifo_net_is_used
    };
    ucp_st_fifos_t *fifos                   = ucp_st_fifos(worker);
    ucs_status_t status;

    status = ucp_st_net_set_handler(worker, UCP_ST_NET_AM_FIFO,
                                    UCP_AM_FLAG_PERSISTENT_DATA,
                                    ucp_st_fifo_am_handler);
    if (status != UCS_OK) {
        return status;
    }
    ucp_st_net_add_client(worker, &client);
    fifos->service.serve = ucp_st_fifo_serve;
    fifos->service.arg   = worker;
    return ucp_st_service_add(&fifos->service);
}

void ucp_st_fifo_drop_came(ucp_st_worker_h worker)
{
    ucp_st_fifo_msg_t *msg;

    ucs_list_for_each(msg, &ucp_st_fifos(worker)->handed, handed_list) {
        if (msg->came != NULL) {
            ucp_am_data_release(ucp_st_net(worker)->ucp_worker, msg->came);
            msg->came = NULL;
        }
    }
}
