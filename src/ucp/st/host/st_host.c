/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_host.c - lane host. The protocol is described in st_host.h, the UCP worker
 * that carries it in st_net.h.
 *
 * A stream hands over the operations that it starts on a stack (st_stack.h). An
 * operation is there at most once: the stream that pushes it sets `queued`. The
 * service thread clears that before it looks at the operation. Both use a
 * read-modify-write, so a stream that finds it set knows its start is seen.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "host/st_host.h"
#include "host/st_host_gpu.h"
#include "host/st_host_proto.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_peer.h"
#include "core/st_queue.h"
#include "core/st_stack.h"
#include "core/st_trace.h"
#include "core/st_ucp.h"
#include "core/st_worker.h"
#include "ctrl/st_ctrl.h"

#include <ucs_gstream_memory.h>

#include <ucs/datastruct/list.h>
#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/** A message that has arrived, and is not in a buffer yet. */
typedef struct ucp_st_host_msg {
    ucs_list_link_t list;    /* in the worker's dropped ones */
    void            *data;   /* UCP's */
    int             is_rndv; /* `data` only tells where the data is */
} ucp_st_host_msg_t;

/** A worker's private data. Protected by its lock unless a field says
 *  otherwise. */
typedef struct ucp_st_host_worker {
    ucp_st_stack_t  begun;   /* operations that streams have started; atomic */
    ucs_list_link_t work;    /* operations with something to do */
    ucs_list_link_t dropped; /* messages to give back to UCP */
} ucp_st_host_worker_t;

/**
 * An operation's data, from this lane's offer to its release. Protected by the
 * worker's lock unless a field says otherwise. Only the service thread moves
 * data; while it calls UCP for the operation `is_running` is set and the lock
 * is not held.
 */
typedef struct ucp_st_host_op {
    volatile uint64_t   *word;     /* streams read it; stores need the lock */
    uint64_t            begun;     /* uses; streams add to it, atomically */
    ucp_st_op_t         *op;       /* read-only */
    uint8_t             queued;    /* in the worker's stack; atomic */
    uint8_t             released;  /* starts must have no effect any more;
                                      stored with the lock, read by streams */
    ucp_st_stack_item_t begun_item; /* in the worker's begun */
    ucs_list_link_t     list;      /* in the worker's work */
    uint8_t             is_listed;
    uint8_t             is_running;
    uint8_t             is_bound;  /* the peer has the other half */
    uint8_t             is_revoked;/* receive: no further message is taken */
    uint8_t             release;   /* release the waits once not moving */
    uint8_t             is_moving; /* UCP uses the buffer */
    uint8_t             is_sending;/* UCP uses `header` */
    uint64_t            sent;      /* uses: messages or acknowledgements */
    uint64_t            moved;     /* uses: UCP has finished with the buffer */
    uint64_t            acked;     /* send: uses that the receiver has */
    ucp_st_host_hdr_t   header;    /* of the last message sent */
    ucp_st_host_msg_t   *msg;      /* receive: of use `moved` + 1, or NULL */
} ucp_st_host_op_t;

static ucp_st_host_worker_t *ucp_st_host_worker(ucp_st_worker_h worker)
{
    return worker->priv[UCP_ST_PRIV_LANES + UCP_ST_LANE_HOST];
}

/* NULL if the lane holds nothing for the operation */
static ucp_st_host_op_t *ucp_st_host_op(const ucp_st_op_t *op)
{
    return op->priv[UCP_ST_LANE_HOST];
}

static int ucp_st_host_is_send(const ucp_st_op_t *op)
{
    return op->dir == UCP_ST_DIR_SEND;
}

/* Uses that the stream has started. Pairs with the stream's addition: the
 * stream's earlier accesses to the buffer are done. */
static uint64_t ucp_st_host_begun(const ucp_st_op_t *op)
{
    return __atomic_load_n(&ucp_st_host_op(op)->begun, __ATOMIC_ACQUIRE);
}

/* Have the service thread run the operation. The lock is held. */
static void ucp_st_host_add(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    if ((host != NULL) && !host->is_listed) {
        host->is_listed = 1;
        ucs_list_add_tail(&ucp_st_host_worker(op->worker)->work, &host->list);
        ucp_st_net_wake(op->worker);
    }
}

/* The release store pairs with the acquire load of the stream's wait */
static void ucp_st_host_store_word(ucp_st_host_op_t *host, uint64_t value)
{
    __atomic_store_n(host->word, value, __ATOMIC_RELEASE);
    ucs_gstream_wake(host->word);
}

/* Release the waits as soon as nothing moves: from then on the buffer is the
 * user's. `released` is stored before the word that lets the stream go on. */
static void ucp_st_host_settle(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    if ((host != NULL) && host->release && !host->is_moving &&
        !host->released) {
        __atomic_store_n(&host->released, 1, __ATOMIC_RELEASE);
        ucp_st_host_store_word(host, UCP_ST_RELEASE);
    }
}

/* Uses up to `use` are complete, unless the waits are to be released anyway */
static void ucp_st_host_complete(ucp_st_op_t *op, uint64_t use)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    if (!host->release && (use > *host->word)) {
        ucp_st_host_store_word(host, use);
        ucp_st_op_complete_uses(op, 1);
    }
}

/* The data of use `use` is moved, or UCP has failed to. The lock is held. */
static void ucp_st_host_moved(ucp_st_op_t *op, uint64_t use,
                              ucs_status_t status)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    host->is_moving = 0;
    if (status == UCS_OK) {
        host->moved = use;
        ucp_st_trace_moved(op, use);
        ++op->worker->stats.proxied;
        ucp_st_host_complete(op, ucp_st_host_is_send(op) ?
                                 ucs_min(use, host->acked) : use);
    }
}

/* UCP has failed. The operation fails, at once or with its peer. */
static void ucp_st_host_failed(ucp_st_op_t *op, ucs_status_t status)
{
    ucs_debug("operation %p: UCP: %s", op, ucs_status_string(status));
    if (op->peer->is_self || ucp_st_ucp_is_local(status)) {
        ucp_st_op_fail(op, status);
    } else {
        ucp_st_peer_lost(op->peer, status);
    }
}

/* UCP has finished with a message of the operation. The lock is held. */
static void ucp_st_host_sent(ucp_st_op_t *op, ucs_status_t status)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    host->is_sending = 0;
    if (ucp_st_host_is_send(op)) {
        ucp_st_host_moved(op, host->sent, status);
    }
    if (status != UCS_OK) {
        ucp_st_host_failed(op, status);
    }
    ucp_st_host_settle(op);
}

/* UCP has finished with a receive's buffer. The lock is held. */
static void ucp_st_host_received(ucp_st_op_t *op, ucs_status_t status)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    if ((status == UCS_OK) && host->release) {
        host->is_moving = 0; /* nobody waits for this use any more */
    } else {
        ucp_st_host_moved(op, host->moved + 1, status);
    }
    if (status != UCS_OK) {
        ucp_st_host_failed(op, status);
    }
    ucp_st_host_settle(op);
}

static void ucp_st_host_sent_cb(void *request, ucs_status_t status, void *arg)
{
    ucp_st_op_t *op        = arg;
    ucp_st_worker_h worker = op->worker;

    ucp_st_worker_lock(worker);
    ucp_st_host_sent(op, status);
    ucp_st_host_add(op);
    ucp_st_worker_unlock(worker);
    ucp_request_free(request);
}

static void ucp_st_host_received_cb(void *request, ucs_status_t status,
                                    size_t length, void *arg)
{
    ucp_st_op_t *op        = arg;
    ucp_st_worker_h worker = op->worker;

    ucp_st_worker_lock(worker);
    ucp_st_host_received(op, status);
    ucp_st_host_add(op);
    ucp_st_worker_unlock(worker);
    ucp_request_free(request);
}

/* Send a send's data, or a receive's acknowledgement. The lock is held, and
 * released meanwhile: `is_sending` keeps the header as it is. */
static void ucp_st_host_send(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host    = ucp_st_host_op(op);
    int is_send               = ucp_st_host_is_send(op);
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = is_send ? 0 : UCP_AM_SEND_FLAG_EAGER,
        .cb.send      = ucp_st_host_sent_cb,
        .user_data    = op
    };
    ucs_status_ptr_t request;
    ucs_status_t status;
    ucp_ep_h ep;

    host->is_sending = 1;
    host->header     = (ucp_st_host_hdr_t){
        .op_id = op->remote_id,
        .use   = ++host->sent,
        .src   = op->worker->uuid
    };
    if (is_send) {
        host->is_moving = 1;
        ucp_st_trace_move(op);
    }
    ucp_st_worker_unlock(op->worker);
    if (is_send) {
        ucp_st_host_gpu_set(op, &param);
    }
    status  = ucp_st_net_ep_get(op->peer, UCP_ST_NET_USE_DATA, &ep);
    request = (status != UCS_OK) ? UCS_STATUS_PTR(status) :
              ucp_am_send_nbx(ep, is_send ? UCP_ST_NET_AM_DATA :
                                            UCP_ST_NET_AM_ACK,
                              &host->header, sizeof(host->header),
                              is_send ? op->data : NULL,
                              is_send ? op->msg_length : 0, &param);
    ucp_st_worker_lock(op->worker);
    if (!UCS_PTR_IS_PTR(request)) {
        ucp_st_host_sent(op, UCS_PTR_STATUS(request));
    }
}

/* Move the message to the buffer. The lock is held, and released meanwhile. */
static void ucp_st_host_recv(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host    = ucp_st_host_op(op);
    ucp_worker_h ucp_worker   = ucp_st_net(op->worker)->ucp_worker;
    ucp_st_host_msg_t *msg    = host->msg;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv_am   = ucp_st_host_received_cb,
        .user_data    = op
    };
    ucs_status_ptr_t request;

    host->msg       = NULL;
    host->is_moving = 1;
    ucp_st_trace_move(op);
    ucp_st_worker_unlock(op->worker);
    if (msg->is_rndv && (op->msg_length > 0)) {
        ucp_st_host_gpu_set(op, &param);
        request = ucp_am_recv_data_nbx(ucp_worker, msg->data, op->data,
                                       op->msg_length, &param);
    } else {
        request = UCS_STATUS_PTR(ucp_st_host_gpu_copy(op, msg->data));
        ucp_am_data_release(ucp_worker, msg->data);
    }
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

/* The sender still needs an acknowledgement of data that was moved, also if the
 * receive has failed or was freed since */
static int ucp_st_host_has_ack(const ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    return !ucp_st_host_is_send(op) && (host->sent < host->moved) &&
           (op->peer->status == UCS_OK);
}

/* Take all steps of an operation that are possible now. The lock is held, and
 * released meanwhile; `op` may be gone afterwards. */
static void ucp_st_host_run(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    host->is_running = 1;
    if (ucp_st_host_is_send(op) && host->is_bound && !host->release &&
        !host->is_sending && (ucp_st_host_begun(op) > host->sent)) {
        ucp_st_host_send(op);
    }
    if (ucp_st_host_can_recv(op)) {
        ucp_st_host_recv(op);
    }
    if (ucp_st_host_has_ack(op) && !host->is_sending) {
        ucp_st_host_send(op);
    }
    host->is_running = 0;
    ucp_st_op_reap(op);
}

/* The operation that a message is for; NULL if the message is to be dropped.
 * The operation may have been freed and wait for its end. The lock is held. */
static ucp_st_op_t *ucp_st_host_find(ucp_st_worker_h worker, const void *data,
                                     size_t length, ucp_st_host_hdr_t *header)
{
    ucp_st_host_op_t *host;
    ucp_st_op_t *op;

    if (length != sizeof(*header)) {
        ucs_error("dropped a message with a header of %zu bytes", length);
        return NULL;
    }
    memcpy(header, data, sizeof(*header));
    if (!ucp_st_net(worker)->is_served) {
        return NULL; /* operations and peers are going */
    }
    op   = ucp_st_op_get(worker, header->op_id);
    host = (op == NULL) ? NULL : ucp_st_host_op(op);
    return ((host == NULL) || host->is_revoked || host->release ||
            (op->peer->uuid != header->src)) ? NULL : op;
}

static void ucp_st_host_bad_message(ucp_st_op_t *op,
                                    const ucp_st_host_hdr_t *header)
{
    ucs_error("operation %p: unexpected message of use %lu from peer 0x%lx",
              op, header->use, header->src);
    ucp_st_op_fail(op, UCS_ERR_IO_ERROR);
}

static ucs_status_t
ucp_st_host_data_am_handler(void *arg, const void *header, size_t header_length,
                            void *data, size_t length,
                            const ucp_am_recv_param_t *param)
{
    ucp_st_worker_h worker = arg;
    ucp_st_host_msg_t *msg = NULL;
    ucp_st_host_op_t *host;
    ucp_st_host_hdr_t hdr;
    ucp_st_op_t *op;

    ucp_st_worker_lock(worker);
    op = ucp_st_host_find(worker, header, header_length, &hdr);
    if (op == NULL) {
        goto out; /* its receive is gone */
    }
    host = ucp_st_host_op(op);
    if (ucp_st_host_is_send(op) || (length != op->msg_length) ||
        (hdr.use != (host->moved + 1)) || (host->msg != NULL) ||
        host->is_moving) {
        ucp_st_host_bad_message(op, &hdr);
        goto out;
    }
    msg = malloc(sizeof(*msg));
    if (msg == NULL) {
        ucp_st_op_fail(op, UCS_ERR_NO_MEMORY);
        goto out;
    }
    msg->data    = data;
    msg->is_rndv = !!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
    host->msg    = msg;
    if (ucp_st_host_can_recv(op)) {
        ucp_st_host_add(op);
    }
out:
    ucp_st_worker_unlock(worker);
    return (msg != NULL) ? UCS_INPROGRESS : UCS_OK;
}

static ucs_status_t
ucp_st_host_ack_am_handler(void *arg, const void *header, size_t header_length,
                           void *data, size_t length,
                           const ucp_am_recv_param_t *param)
{
    ucp_st_worker_h worker = arg;
    ucp_st_host_op_t *host;
    ucp_st_host_hdr_t hdr;
    ucp_st_op_t *op;

    ucp_st_worker_lock(worker);
    op = ucp_st_host_find(worker, header, header_length, &hdr);
    if (op != NULL) {
        host = ucp_st_host_op(op);
        if (!ucp_st_host_is_send(op) || (hdr.use != (host->acked + 1)) ||
            (hdr.use > host->sent)) {
            ucp_st_host_bad_message(op, &hdr);
        } else {
            host->acked = hdr.use;
            ucp_st_host_complete(op, ucs_min(host->moved, host->acked));
        }
    }
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}

/* Give dropped messages back to UCP; how many. The lock is held, and released
 * meanwhile. */
static unsigned ucp_st_host_return_dropped(ucp_st_worker_h worker)
{
    ucs_list_link_t *dropped = &ucp_st_host_worker(worker)->dropped;
    unsigned count           = 0;
    ucp_st_host_msg_t *msg;

    while (!ucs_list_is_empty(dropped)) {
        msg = ucs_list_extract_head(dropped, ucp_st_host_msg_t, list);
        ucp_st_worker_unlock(worker);
        ucp_am_data_release(ucp_st_net(worker)->ucp_worker, msg->data);
        free(msg);
        ++count;
        ucp_st_worker_lock(worker);
    }
    return count;
}

/* Run the operations that have something to do. Work that comes up meanwhile is
 * for the next call. While the lock is not held others may add to the lists
 * without a wake-up: the result counts that, too. */
static unsigned ucp_st_host_work(ucp_st_worker_h worker)
{
    ucp_st_host_worker_t *self = ucp_st_host_worker(worker);
    ucp_st_stack_item_t *item  = ucp_st_stack_take(&self->begun);
    unsigned count             = 0;
    ucp_st_host_op_t *host;
    ucs_list_link_t work;

    while (item != NULL) {
        host = ucs_container_of(item, ucp_st_host_op_t, begun_item);
        item = item->next;
        /* It is listed before `queued` is cleared, so that it counts as busy
         * all the time */
        ucp_st_host_add(host->op);
        (void)__atomic_exchange_n(&host->queued, 0, __ATOMIC_ACQ_REL);
    }
    ucs_list_head_init(&work);
    ucs_list_splice_tail(&work, &self->work);
    ucs_list_head_init(&self->work);
    while (!ucs_list_is_empty(&work)) {
        host = ucs_list_extract_head(&work, ucp_st_host_op_t, list);
        host->is_listed = 0;
        ucp_st_host_run(host->op);
        ++count;
    }
    count += ucp_st_host_return_dropped(worker);
    return count + (!ucs_list_is_empty(&self->work) ||
                    !ucs_list_is_empty(&self->dropped));
}

static int ucp_st_host_peer_is_used(ucp_st_peer_t *peer)
{
    ucp_st_host_op_t *host;
    ucp_st_op_t *op;

    ucs_list_for_each(op, &peer->ops, peer_list) {
        host = ucp_st_host_op(op);
        if ((host != NULL) && (host->is_moving || host->is_sending)) {
            return 1;
        }
    }
    return 0;
}

static ucs_status_t ucp_st_host_open(ucp_st_worker_h worker)
{
    static const ucp_st_net_client_t client = {
        .work    = ucp_st_host_work,
        .is_used = ucp_st_host_peer_is_used
    };
    ucp_st_host_worker_t *self              = ucp_st_host_worker(worker);
    ucs_status_t status;

    ucs_list_head_init(&self->work);
    ucs_list_head_init(&self->dropped);
    status = ucp_st_net_set_handler(worker, UCP_ST_NET_AM_DATA,
                                    UCP_AM_FLAG_PERSISTENT_DATA,
                                    ucp_st_host_data_am_handler);
    if (status == UCS_OK) {
        status = ucp_st_net_set_handler(worker, UCP_ST_NET_AM_ACK, 0,
                                        ucp_st_host_ack_am_handler);
    }
    if (status != UCS_OK) {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_HOST,
                           "lane 'host': UCP takes no handler of messages: "
                           "%s", ucs_status_string(status));
        return status;
    }
    ucp_st_net_add_client(worker, &client);
    return UCS_OK;
}

static void ucp_st_host_close(ucp_st_worker_h worker)
{
    ucp_st_worker_lock(worker);
    (void)ucp_st_host_return_dropped(worker);
    ucp_st_worker_unlock(worker);
}

static size_t ucp_st_host_address_length(ucp_st_worker_h worker)
{
    return 0; /* a worker's address has the service thread's anyway */
}

static ucs_status_t ucp_st_host_address_pack(ucp_st_worker_h worker,
                                             void *buffer)
{
    return UCS_OK;
}

static unsigned ucp_st_host_progress(ucp_st_worker_h worker)
{
    return 0; /* the service thread does it all */
}

/* The service thread moves all messages */
static int ucp_st_host_serves(ucp_st_worker_h worker, ucs_gstream_type_t type)
{
    return 0;
}

static ucs_status_t ucp_st_host_query(ucp_st_worker_h worker,
                                      ucp_st_worker_attr_t *attr)
{
    return UCS_OK; /* it is all in the statistics */
}

static ucs_status_t ucp_st_host_connect(ucp_st_peer_t *peer,
                                        const void *address, size_t length)
{
    return UCS_OK; /* it has the service thread's endpoint */
}

static ucs_status_t ucp_st_host_offer(ucp_st_op_t *op, void *blob,
                                      size_t *length_p)
{
    ucp_st_host_op_t *host = calloc(1, sizeof(*host));

    if (host == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    host->word = ucs_gstream_word_get();
    if (host->word == NULL) {
        free(host);
        return UCS_ERR_NO_MEMORY;
    }
    host->op                    = op;
    op->priv[UCP_ST_LANE_HOST] = host;
    *length_p                   = 0;
    return UCS_OK;
}

static ucs_status_t ucp_st_host_bind(ucp_st_op_t *op, const void *blob,
                                     size_t length)
{
    if (length != 0) {
        return UCS_ERR_INVALID_PARAM;
    }
    ucp_st_host_op(op)->is_bound = 1;
    ucp_st_host_add(op);
    return UCS_OK;
}

/* Start the operations of a call, up to NULL. Runs on the stream: lock-free, no
 * system call unless the service thread sleeps. */
static void ucp_st_host_startall(void *arg)
{
    ucp_st_op_t **ops = arg;
    ucp_st_host_op_t *host;

    for (; *ops != NULL; ++ops) {
        host = ucp_st_host_op(*ops);
        /* Pairs with the release store in ucp_st_host_settle(): a stream that
         * passed a released wait starts nothing any more */
        if (__atomic_load_n(&host->released, __ATOMIC_ACQUIRE)) {
            continue;
        }
        /* Pairs with the acquire load in ucp_st_host_begun() */
        (void)__atomic_fetch_add(&host->begun, 1, __ATOMIC_RELEASE);
        if (!__atomic_exchange_n(&host->queued, 1, __ATOMIC_ACQ_REL)) {
            ucp_st_stack_push(&ucp_st_host_worker((*ops)->worker)->begun,
                              &host->begun_item);
            ucp_st_service_wake(&ucp_st_net((*ops)->worker)->service);
        }
    }
}

static size_t ucp_st_host_start_cmds(ucp_st_op_t *op, ucp_st_queue_h queue,
                                     uint64_t use, ucs_gstream_cmd_t *cmd)
{
    return ucp_st_queue_add_callback(queue, ucp_st_host_startall,
                                     (void*[]){op}, 1, cmd);
}

static size_t ucp_st_host_wait_words(const ucp_st_op_t *op,
                                     ucs_gstream_word_t *words)
{
    words[0].address = ucp_st_host_op(op)->word;
    words[0].value   = op->started;
    return 1;
}

static uint64_t ucp_st_host_uses_done(const ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);
    uint64_t word          = (host == NULL) ? 0 : *host->word;

    return (word < UCP_ST_RELEASE) ? word : 0;
}

/* There is nothing to do for halt(): the service thread sends what a stream has
 * started, with the lock held, and release_waits() stops it */
static void ucp_st_host_release_waits(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    if (host != NULL) {
        host->release = 1;
        ucp_st_host_settle(op);
    }
}

/* Have the service thread give back a message that was not taken */
static void ucp_st_host_drop_msg(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    if (host->msg != NULL) {
        ucs_list_add_tail(&ucp_st_host_worker(op->worker)->dropped,
                          &host->msg->list);
        host->msg = NULL;
        ucp_st_net_wake(op->worker);
    }
}

/* A message that is being moved to the buffer cannot be stopped: the waits are
 * released, and the buffer given back, when that is over. The peer reaches
 * nothing of a send, and may acknowledge it after it freed its half. */
static void ucp_st_host_revoke(ucp_st_op_t *op)
{
    ucp_st_host_op_t *host = ucp_st_host_op(op);

    if ((host != NULL) && !ucp_st_host_is_send(op)) {
        host->is_revoked = 1;
        ucp_st_host_drop_msg(op);
    }
}

/* By the message of a send, and the acknowledgement of a receive */
static uint64_t ucp_st_host_peer_uses(const ucp_st_op_t *op, uint64_t use)
{
    const ucp_st_host_op_t *host = ucp_st_host_op(op);

    return ucp_st_host_is_send(op) ? host->acked :
                                     host->moved + (host->msg != NULL);
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
    }
    ucs_gstream_word_put(host->word);
    free(host);
    op->priv[UCP_ST_LANE_HOST] = NULL;
}

static const char *ucp_st_host_protocol(const ucp_st_op_t *op)
{
    return "messages";
}

/* dispose(): the service thread drops messages that still wait to be sent */
const ucp_st_lane_ops_t ucp_st_host_lane = {
    .name   = "host",
    .id     = UCP_ST_LANE_HOST,
    .sizes  = {[UCP_ST_OBJECT_WORKER] = sizeof(ucp_st_host_worker_t)},
    .worker = {
        .open           = ucp_st_host_open,
        .close          = ucp_st_host_close,
        .address_length = ucp_st_host_address_length,
        .address_pack   = ucp_st_host_address_pack,
        .progress       = ucp_st_host_progress,
        .poll           = ucp_st_worker_hook_none,
        .cancel         = ucp_st_worker_hook_none,
        .prepare        = ucp_st_lane_no_prepare,
        .serves         = ucp_st_host_serves,
        .query          = ucp_st_host_query
    },
    .peer   = {
        .connect    = ucp_st_host_connect,
        .disconnect = ucp_st_peer_hook_none,
        .check      = ucp_st_peer_hook_none /* messages tell */
    },
    .queue  = {
        .init    = ucp_st_queue_hook_none,
        .cleanup = ucp_st_queue_hook_none
    },
    .op     = {
        .reaches       = ucp_st_host_gpu_reaches,
        .prepare       = ucp_st_lane_no_op,
        .offer         = ucp_st_host_offer,
        .bind          = ucp_st_host_bind,
        .post          = ucp_st_lane_no_post,
        .pages         = ucp_st_lane_no_pages,
        .start         = ucp_st_host_start_cmds,
        .wait_words    = ucp_st_host_wait_words,
        .land          = ucp_st_lane_no_land,
        .leave_queue   = ucp_st_lane_no_leave_queue,
        .uses_done     = ucp_st_host_uses_done,
        .begun         = ucp_st_host_begun,
        .peer_uses     = ucp_st_host_peer_uses,
        .halt          = ucp_st_lane_no_op,
        .release_waits = ucp_st_host_release_waits,
        .revoke        = ucp_st_host_revoke,
        .dispose       = ucp_st_host_add,
        .is_busy       = ucp_st_host_is_busy,
        .uses_buffer   = ucp_st_host_uses_buffer,
        .is_reaching   = ucp_st_lane_no_reaching,
        .release       = ucp_st_host_release,
        .protocol      = ucp_st_host_protocol
    }
};
