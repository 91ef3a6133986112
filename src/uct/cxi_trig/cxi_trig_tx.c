/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_tx.c - posting and completion of messages and puts.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_tx.h"

#include <ucs/arch/cpu.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

/* How often the provider is asked to send */
#define UCT_CXI_TRIG_TX_TRIES 3

/* Descriptors that are allocated together */
#define UCT_CXI_TRIG_TX_CHUNK 32


static ucs_mpool_ops_t uct_cxi_trig_tx_mpool_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free
};


ucs_status_t uct_cxi_trig_tx_init(uct_cxi_trig_iface_t *iface,
                                  unsigned queue_len)
{
    ucs_status_t status;

    status = ucs_mpool_init(&iface->tx.mp, 0,
                            sizeof(uct_cxi_trig_tx_op_t) + iface->seg_size, 0,
                            UCS_SYS_CACHE_LINE_SIZE,
                            ucs_min(UCT_CXI_TRIG_TX_CHUNK, queue_len),
                            queue_len, &uct_cxi_trig_tx_mpool_ops,
                            "cxi_trig_tx");
    if (status != UCS_OK) {
        ucs_error("cannot create the pool of send descriptors: %s",
                  ucs_status_string(status));
        return status;
    }

    iface->tx.avail   = queue_len;
    iface->tx.backlog = NULL;
    iface->tx.fence   = 0;
    uct_cxi_trig_track_init(&iface->tx.track);
    ucs_arbiter_init(&iface->tx.pending);
    return UCS_OK;
}

void uct_cxi_trig_tx_cleanup(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_tx_op_t *op, *tmp;

    /* The endpoint is closed: no completion will come for these */
    ucs_list_for_each_safe(op, tmp, &iface->tx.track.ops, by_iface.list) {
        ucs_list_del(&op->by_iface.list);
        uct_cxi_trig_track_end(&op->peer->track, &op->by_peer,
                               UCS_ERR_CANCELED);
        uct_cxi_trig_peer_put(op->peer);
        ucs_mpool_put(op);
    }
    uct_cxi_trig_track_purge(&iface->tx.track, UCS_ERR_CANCELED);
    ucs_arbiter_cleanup(&iface->tx.pending);
    ucs_mpool_cleanup(&iface->tx.mp, 1);
}

static int uct_cxi_trig_tx_post_put(uct_cxi_trig_tx_op_t *op)
{
    struct iovec source       = {
        .iov_base = op->payload,
        .iov_len  = op->length
    };
    struct fi_rma_iov target  = {
        .addr = op->target,
        .len  = op->length,
        .key  = op->key
    };
    struct fi_msg_rma msg     = {
        .msg_iov       = &source,
        .iov_count     = 1,
        .addr          = op->peer->memory,
        .rma_iov       = &target,
        .rma_iov_count = 1,
        .context       = &op->req
    };

    return fi_writemsg(op->peer->iface->net.ep, &msg,
                       FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

static int uct_cxi_trig_tx_post(uct_cxi_trig_tx_op_t *op)
{
    if (op->is_put) {
        return uct_cxi_trig_tx_post_put(op);
    }
    return fi_send(op->peer->iface->net.ep, &op->msg,
                   sizeof(op->msg) + op->length, NULL, op->peer->addr,
                   &op->req);
}

static void uct_cxi_trig_tx_complete(uct_cxi_trig_iface_t *iface,
                                     uct_cxi_trig_req_t *req, size_t length,
                                     ucs_status_t status)
{
    uct_cxi_trig_tx_op_t *op  = ucs_container_of(req, uct_cxi_trig_tx_op_t,
                                                 req);
    uct_cxi_trig_peer_t *peer = op->peer;

    if (status != UCS_OK) {
        uct_cxi_trig_peer_fail(peer, status);
    }

    ++iface->tx.avail;
    uct_cxi_trig_track_end(&iface->tx.track, &op->by_iface, UCS_OK);
    uct_cxi_trig_track_end(&peer->track, &op->by_peer, status);
    ucs_mpool_put(op);
    uct_cxi_trig_peer_put(peer);
}

ucs_status_t uct_cxi_trig_tx_check(uct_cxi_trig_ep_t *ep)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_ep_iface(ep);

    if (ucs_unlikely(ep->status != UCS_OK)) {
        return ep->status;
    }
    if (uct_cxi_trig_tx_is_exhausted(iface) ||
        uct_cxi_trig_pending_blocks(ep) ||
        !uct_cxi_trig_track_passed(&iface->tx.track, iface->tx.fence) ||
        !uct_cxi_trig_track_passed(&ep->peer->track, ep->fence)) {
        return UCS_ERR_NO_RESOURCE;
    }
    return UCS_OK;
}

ucs_status_t uct_cxi_trig_tx_get(uct_cxi_trig_ep_t *ep,
                                 uct_cxi_trig_tx_op_t **op_p)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_ep_iface(ep);
    ucs_status_t status         = uct_cxi_trig_tx_check(ep);
    uct_cxi_trig_tx_op_t *op;

    if (status != UCS_OK) {
        if (status == UCS_ERR_NO_RESOURCE) {
            UCT_TL_IFACE_STAT_TX_NO_DESC(&iface->super);
        }
        return status;
    }

    op = ucs_mpool_get(&iface->tx.mp);
    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    op->req.complete = uct_cxi_trig_tx_complete;
    op->peer         = ep->peer;
    op->is_put       = 0;
    op->msg          = (uct_cxi_trig_msg_t){.type = UCT_CXI_TRIG_MSG_AM};
    *op_p            = op;
    return UCS_OK;
}

void uct_cxi_trig_tx_drop(uct_cxi_trig_tx_op_t *op)
{
    ucs_mpool_put(op);
}

/* The provider has no room, or no memory, now: it will have. */
static int uct_cxi_trig_tx_may_wait(int ret)
{
    return (ret == -FI_EAGAIN) || (ret == -FI_ENOMEM);
}

/* An error ends the endpoint. While UCP connects two sides it may not be able
 * to tell the other one, which then waits for ever: what is refused once is not
 * to be an error yet. */
static int uct_cxi_trig_tx_try_post(uct_cxi_trig_tx_op_t *op)
{
    unsigned tries = 0;
    int ret;

    do {
        ret = uct_cxi_trig_tx_post(op);
    } while ((ret != 0) && !uct_cxi_trig_tx_may_wait(ret) &&
             (++tries < UCT_CXI_TRIG_TX_TRIES));
    return ret;
}

/* Whatever comes of it, the operation is the interface's from now on. */
static ucs_status_t uct_cxi_trig_tx_try(uct_cxi_trig_iface_t *iface,
                                        uct_cxi_trig_tx_op_t *op)
{
    int ret = uct_cxi_trig_tx_try_post(op);

    if (uct_cxi_trig_tx_may_wait(ret)) {
        iface->tx.backlog = op;
        return UCS_OK;
    }

    iface->tx.backlog = NULL;
    if (ret == 0) {
        return UCS_OK;
    }

    /* Where it cannot connect, sockets returns whatever errno is */
    ucs_debug("cannot send to a peer: %s", fi_strerror(-ret));
    uct_cxi_trig_tx_complete(iface, &op->req, 0, UCS_ERR_CONNECTION_RESET);
    return UCS_ERR_CONNECTION_RESET;
}

ucs_status_t uct_cxi_trig_tx_send(uct_cxi_trig_tx_op_t *op, size_t length)
{
    uct_cxi_trig_iface_t *iface = op->peer->iface;

    op->length = length;
    --iface->tx.avail;
    uct_cxi_trig_peer_get(op->peer);
    uct_cxi_trig_track_start(&iface->tx.track, &op->by_iface);
    uct_cxi_trig_track_start(&op->peer->track, &op->by_peer);
    return uct_cxi_trig_tx_try(iface, op);
}

unsigned uct_cxi_trig_tx_retry(uct_cxi_trig_iface_t *iface)
{
    if (iface->tx.backlog == NULL) {
        return 0;
    }

    (void)uct_cxi_trig_tx_try(iface, iface->tx.backlog);
    return iface->tx.backlog == NULL;
}

ucs_status_t uct_cxi_trig_tx_iface_flush(uct_iface_h uct_iface, unsigned flags,
                                         uct_completion_t *comp)
{
    uct_cxi_trig_iface_t *iface = ucs_derived_of(uct_iface,
                                                 uct_cxi_trig_iface_t);
    ucs_status_t status;

    status = uct_cxi_trig_track_flush(&iface->tx.track, comp);
    if (status == UCS_OK) {
        UCT_TL_IFACE_STAT_FLUSH(&iface->super);
    } else if (status == UCS_INPROGRESS) {
        UCT_TL_IFACE_STAT_FLUSH_WAIT(&iface->super);
    }
    return status;
}

ucs_status_t uct_cxi_trig_tx_iface_fence(uct_iface_h uct_iface, unsigned flags)
{
    uct_cxi_trig_iface_t *iface = ucs_derived_of(uct_iface,
                                                 uct_cxi_trig_iface_t);

    iface->tx.fence = iface->tx.track.next;
    UCT_TL_IFACE_STAT_FENCE(&iface->super);
    return UCS_OK;
}
