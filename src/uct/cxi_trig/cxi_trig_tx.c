/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_tx.c - posting and completion of immediate operations.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_tx.h"
#include "cxi_trig_memh.h"

#include <ucs/arch/cpu.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <uct/base/uct_iov.inl>

#include <rdma/fi_errno.h>

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
    uct_cxi_trig_pool_params_t pool = {
        .elem_size = sizeof(uct_cxi_trig_tx_op_t) + iface->seg_size,
        .alignment = UCS_SYS_CACHE_LINE_SIZE,
        .chunk     = ucs_min(UCT_CXI_TRIG_TX_CHUNK, queue_len),
        .max_elems = queue_len,
        .ops       = &uct_cxi_trig_tx_mpool_ops,
        .name      = "cxi_trig_tx"
    };
    ucs_status_t status;

    status = uct_cxi_trig_pool_init(&iface->tx.mp, &pool);
    if (status != UCS_OK) {
        ucs_error("cannot create the pool of send descriptors: %s",
                  ucs_status_string(status));
        return status;
    }

    iface->tx.avail   = queue_len;
    iface->tx.backlog = NULL;
    iface->tx.fence   = 0;
    ucs_list_head_init(&iface->tx.held);
    uct_cxi_trig_track_init(&iface->tx.track);
    ucs_arbiter_init(&iface->tx.pending);
    return UCS_OK;
}

/* The user is told of an operation's end once. */
static void uct_cxi_trig_tx_tell(uct_cxi_trig_tx_op_t *op, ucs_status_t status)
{
    uct_completion_t *comp = op->comp;

    if (comp != NULL) {
        op->comp = NULL;
        uct_invoke_completion(comp, status);
    }
}

/* All earlier ones that its fences named are over. */
static int uct_cxi_trig_tx_may_go(uct_cxi_trig_tx_op_t *op)
{
    return !op->peer->invalid &&
           uct_cxi_trig_track_passed(&op->peer->iface->tx.track,
                                     op->fence.by_iface) &&
           uct_cxi_trig_track_passed(&op->peer->track, op->fence.by_peer);
}

static void uct_cxi_trig_tx_hold(uct_cxi_trig_tx_op_t *op)
{
    ucs_list_add_tail(&op->peer->iface->tx.held, &op->fence.list);
    op->fence.is_held = 1;
    ++op->peer->held;
    ++op->peer->iface->stats.held;
}

static void uct_cxi_trig_tx_unhold(uct_cxi_trig_tx_op_t *op)
{
    if (op->fence.is_held) {
        ucs_list_del(&op->fence.list);
        op->fence.is_held = 0;
        --op->peer->held;
    }
}

/* It is over, with or without success. Descriptor and room are free before the
 * user is told: a completion may send, and UCP takes each error of that but a
 * lack of room for final. */
static void uct_cxi_trig_tx_end(uct_cxi_trig_tx_op_t *op, ucs_status_t status)
{
    uct_cxi_trig_peer_t *peer   = op->peer;
    uct_cxi_trig_iface_t *iface = peer->iface;
    uct_completion_t *comp      = op->comp;

    uct_cxi_trig_tx_unhold(op);
    if (ucs_likely(status == UCS_OK)) {
        ++iface->stats.completed;
    } else {
        ++iface->stats.failed;
    }
    uct_cxi_trig_track_end(&op->by_iface);
    uct_cxi_trig_track_end(&op->by_peer);
    ucs_mpool_put(op);
    ++iface->tx.avail;

    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
    uct_cxi_trig_track_wake(&iface->tx.track, UCS_OK);
    uct_cxi_trig_track_wake(&peer->track, status);
    uct_cxi_trig_peer_put(peer);
}

void uct_cxi_trig_tx_cleanup(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_track_purge(&iface->tx.track, UCS_ERR_CANCELED);
    /* The endpoint is closed: the provider will report none of these, and
     * touches no memory any more */
    while (!ucs_list_is_empty(&iface->tx.track.ops)) {
        uct_cxi_trig_tx_end(ucs_list_head(&iface->tx.track.ops,
                                          uct_cxi_trig_tx_op_t, by_iface.list),
                            UCS_ERR_CANCELED);
    }
    ucs_arbiter_cleanup(&iface->tx.pending);
    ucs_mpool_cleanup(&iface->tx.mp, 1);
}

/* The probe word is registered as long as the peer's interface is open */
static ucs_status_t uct_cxi_trig_tx_status(const uct_cxi_trig_tx_op_t *op,
                                           ucs_status_t status)
{
    return (op->kind->is_probe && ((status == UCS_ERR_IO_ERROR) ||
                                      (status == UCS_ERR_INVALID_ADDR))) ?
           UCS_ERR_ENDPOINT_TIMEOUT : status;
}

static void uct_cxi_trig_tx_complete(uct_cxi_trig_iface_t *iface,
                                     uct_cxi_trig_req_t *req, size_t length,
                                     ucs_status_t status)
{
    uct_cxi_trig_tx_op_t *op = ucs_container_of(req, uct_cxi_trig_tx_op_t, req);

    if (ucs_unlikely(status != UCS_OK)) {
        status = uct_cxi_trig_tx_status(op, status);
        uct_cxi_trig_peer_fail(op->peer, status);
    } else if (ucs_unlikely(op->peer->invalid)) {
        uct_cxi_trig_tx_tell(op, UCS_ERR_CANCELED);
    } else if (!op->canceled) {
        op->kind->finish(op);
    }
    uct_cxi_trig_tx_end(op, status);
}

void uct_cxi_trig_tx_fail_all(uct_cxi_trig_iface_t *iface, ucs_status_t status)
{
    uct_cxi_trig_tx_op_t *op;

    ucs_list_for_each(op, &iface->tx.track.ops, by_iface.list) {
        uct_cxi_trig_peer_fail(op->peer, status);
    }
}

int uct_cxi_trig_tx_goes_to(const uct_cxi_trig_req_t *req,
                            const uct_cxi_trig_peer_t *peer)
{
    return (req->complete == uct_cxi_trig_tx_complete) &&
           (ucs_container_of(req, uct_cxi_trig_tx_op_t, req)->peer == peer);
}

int uct_cxi_trig_tx_is_awaited(const uct_cxi_trig_peer_t *peer)
{
    const uct_cxi_trig_tx_op_t *op;

    ucs_list_for_each(op, &peer->track.ops, by_peer.list) {
        if ((op->comp != NULL) || op->kind->is_zcopy) {
            return 1;
        }
    }
    return 0;
}

ucs_status_t uct_cxi_trig_tx_check(uct_cxi_trig_ep_t *ep)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_ep_iface(ep);

    if (ucs_unlikely(ep->status != UCS_OK)) {
        return ep->status;
    }
    if (uct_cxi_trig_tx_is_exhausted(iface) ||
        uct_cxi_trig_ep_is_blocked(ep)) {
        return UCS_ERR_NO_RESOURCE;
    }
    return UCS_OK;
}

ucs_status_t uct_cxi_trig_tx_get(uct_cxi_trig_ep_t *ep,
                                 const uct_cxi_trig_tx_kind_t *kind,
                                 uct_cxi_trig_tx_op_t **op_p)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_ep_iface(ep);
    ucs_status_t status         = uct_cxi_trig_tx_check(ep);
    uct_cxi_trig_tx_op_t *op;

    if (status != UCS_OK) {
        if (status == UCS_ERR_NO_RESOURCE) {
            UCT_TL_IFACE_STAT_TX_NO_DESC(&iface->super);
            ++iface->stats.no_descriptor;
        }
        return status;
    }

    op = ucs_mpool_get(&iface->tx.mp);
    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    op->req.complete   = uct_cxi_trig_tx_complete;
    op->peer           = ep->peer;
    op->kind           = kind;
    op->comp           = NULL;
    op->canceled       = 0;
    op->fence.by_iface = iface->tx.fence;
    op->fence.by_peer  = ep->fence;
    op->fence.is_held  = 0;
    *op_p              = op;
    return UCS_OK;
}

static void *uct_cxi_trig_tx_desc(const uct_cxi_trig_iface_t *iface,
                                  const uct_iov_t *iov)
{
    const uct_cxi_trig_memh_t *memh = iov->memh;

    return (!uct_cxi_trig_iface_md(iface)->needs_desc ||
            (memh == UCT_MEM_HANDLE_NULL)) ? NULL : fi_mr_desc(memh->mr);
}

void uct_cxi_trig_tx_add_iov(const uct_cxi_trig_iface_t *iface,
                             uct_cxi_trig_tx_iov_t *dest, const uct_iov_t *iov,
                             size_t iovcnt)
{
    size_t i, length;

    for (i = 0; i < iovcnt; ++i) {
        length = uct_iov_get_length(&iov[i]);
        if (length > 0) {
            ucs_assert(dest->count < UCT_CXI_TRIG_TX_MAX_IOV);
            dest->desc[dest->count]  = uct_cxi_trig_tx_desc(iface, &iov[i]);
            dest->iov[dest->count++] = (struct iovec){
                .iov_base = iov[i].buffer,
                .iov_len  = length
            };
        }
    }
}

void uct_cxi_trig_tx_finish_none(uct_cxi_trig_tx_op_t *op)
{
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
    int ret        = op->kind->post(op);
    unsigned tries = 1;

    while ((ret != 0) && !uct_cxi_trig_tx_may_wait(ret) &&
           (tries < UCT_CXI_TRIG_TX_TRIES)) {
        ret = op->kind->post(op);
        ++tries;
        ++op->peer->iface->stats.resends;
    }
    return ret;
}

/* UCS_OK if it is the provider's or in the backlog; the caller completes it if
 * not. */
static ucs_status_t uct_cxi_trig_tx_try(uct_cxi_trig_iface_t *iface,
                                        uct_cxi_trig_tx_op_t *op)
{
    int ret = uct_cxi_trig_tx_try_post(op);

    if (uct_cxi_trig_tx_may_wait(ret)) {
        iface->tx.backlog = op;
        ++iface->stats.no_room;
        return UCS_OK;
    }

    iface->tx.backlog = NULL;
    if (ret == 0) {
        return UCS_OK;
    }

    /* Where it cannot connect, sockets returns whatever errno is */
    ucs_diag("cannot send to a peer: %s", fi_strerror(-ret));
    return UCS_ERR_ENDPOINT_TIMEOUT;
}

ucs_status_t uct_cxi_trig_tx_send(uct_cxi_trig_tx_op_t *op, size_t length)
{
    uct_cxi_trig_iface_t *iface = op->peer->iface;
    ucs_status_t status;

    op->length = length;
    --iface->tx.avail;
    uct_cxi_trig_stats_add(&iface->stats.ops[op->kind->stat], length);
    uct_cxi_trig_peer_get(op->peer);
    uct_cxi_trig_track_start(&iface->tx.track, &op->by_iface);
    uct_cxi_trig_track_start(&op->peer->track, &op->by_peer);

    if (ucs_unlikely((op->peer->held > 0) || !uct_cxi_trig_tx_may_go(op))) {
        uct_cxi_trig_tx_hold(op);
        return UCS_OK;
    }

    status = uct_cxi_trig_tx_try(iface, op);
    if (ucs_unlikely(status != UCS_OK)) {
        op->comp = NULL; /* The returned status tells */
        uct_cxi_trig_tx_complete(iface, &op->req, 0, status);
    }
    return status;
}

ucs_status_t uct_cxi_trig_tx_start(uct_cxi_trig_tx_op_t *op, size_t length,
                                   uct_completion_t *comp)
{
    ucs_status_t status;

    op->comp = comp;
    status   = uct_cxi_trig_tx_send(op, length);
    return (status == UCS_OK) ? UCS_INPROGRESS : status;
}

/* Post what was accepted earlier; its failure is told by completion. */
static void uct_cxi_trig_tx_submit(uct_cxi_trig_iface_t *iface,
                                   uct_cxi_trig_tx_op_t *op)
{
    ucs_status_t status = op->peer->invalid ? UCS_ERR_CANCELED :
                          uct_cxi_trig_peer_status(op->peer);

    if (status == UCS_OK) {
        status = uct_cxi_trig_tx_try(iface, op);
    }
    if (status != UCS_OK) {
        uct_cxi_trig_tx_complete(iface, &op->req, 0, status);
    }
}

/* The oldest one that no fence holds any more, or NULL. Operations to one peer
 * keep their order: what an older one waits for, a younger one does too. */
static uct_cxi_trig_tx_op_t *uct_cxi_trig_tx_next(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_tx_op_t *op;

    ucs_list_for_each(op, &iface->tx.held, fence.list) {
        if (uct_cxi_trig_tx_may_go(op)) {
            return op;
        }
    }
    return NULL;
}

int uct_cxi_trig_tx_has_work(uct_cxi_trig_iface_t *iface)
{
    return (iface->tx.backlog != NULL) || (uct_cxi_trig_tx_next(iface) != NULL);
}

unsigned uct_cxi_trig_tx_retry(uct_cxi_trig_iface_t *iface)
{
    unsigned count           = 0;
    uct_cxi_trig_tx_op_t *op = iface->tx.backlog;

    if (op != NULL) {
        iface->tx.backlog = NULL;
        ++iface->stats.resends;
        uct_cxi_trig_tx_submit(iface, op);
        count += (iface->tx.backlog == NULL);
    }

    while ((iface->tx.backlog == NULL) &&
           ((op = uct_cxi_trig_tx_next(iface)) != NULL)) {
        uct_cxi_trig_tx_unhold(op);
        uct_cxi_trig_tx_submit(iface, op);
        ++count;
    }
    return count;
}

/* One that a fence holds and that is numbered below @a end, or NULL. */
static uct_cxi_trig_tx_op_t *uct_cxi_trig_tx_held(uct_cxi_trig_peer_t *peer,
                                                  uint64_t end)
{
    uct_cxi_trig_tx_op_t *op;

    ucs_list_for_each(op, &peer->iface->tx.held, fence.list) {
        if ((op->peer == peer) && (op->by_peer.number < end)) {
            return op;
        }
    }
    return NULL;
}

/* Where the peer is gone, that is why. */
static ucs_status_t
uct_cxi_trig_tx_cancel_status(const uct_cxi_trig_peer_t *peer)
{
    ucs_status_t status = uct_cxi_trig_peer_status(peer);

    return ((status == UCS_OK) || peer->invalid) ? UCS_ERR_CANCELED : status;
}

int uct_cxi_trig_tx_cancel(uct_cxi_trig_peer_t *peer)
{
    ucs_status_t status = uct_cxi_trig_tx_cancel_status(peer);
    uint64_t end        = peer->track.next;
    int left            = 0;
    uct_cxi_trig_tx_op_t *op;

    uct_cxi_trig_track_purge(&peer->track, status);
    while ((op = uct_cxi_trig_tx_held(peer, end)) != NULL) {
        /* Not the provider's yet, whatever memory it names */
        uct_cxi_trig_tx_end(op, status);
    }
    ucs_list_for_each(op, &peer->track.ops, by_peer.list) {
        if (op->by_peer.number >= end) {
            break; /* Started by a completion of this loop */
        }
        left |= op->kind->is_zcopy || op->kind->is_rma;
        if (!op->kind->is_zcopy) {
            op->canceled = 1;
            uct_cxi_trig_tx_tell(op, status);
        }
    }
    return left;
}

void uct_cxi_trig_tx_abandon(uct_cxi_trig_peer_t *peer)
{
    uct_cxi_trig_iface_t *iface = peer->iface;
    uint64_t end                = peer->track.next;
    uct_cxi_trig_tx_op_t *op    = iface->tx.backlog;

    if ((op != NULL) && (op->peer == peer)) {
        iface->tx.backlog = NULL;
        uct_cxi_trig_tx_end(op, UCS_ERR_CANCELED);
    }
    while ((op = uct_cxi_trig_tx_held(peer, end)) != NULL) {
        uct_cxi_trig_tx_end(op, UCS_ERR_CANCELED);
    }
    ucs_list_for_each(op, &peer->track.ops, by_peer.list) {
        op->canceled = 1;
        uct_cxi_trig_tx_tell(op, UCS_ERR_CANCELED);
    }
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
