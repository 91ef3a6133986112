/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_dwq.c - deferred puts and atomics, whatever the back-end.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_dwq.h"
#include "cxi_trig_cntr.h"
#include "cxi_trig_ep.h"
#include "cxi_trig_iface.h"
#include "cxi_trig_mem.h"
#include "cxi_trig_status.h"

#include <ucs/arch/cpu.h>
#include <ucs/debug/log.h>
#include <ucs/sys/math.h>

#include <rdma/fi_errno.h>

#include <string.h>

/* Descriptors that are allocated together */
#define UCT_CXI_TRIG_DWQ_CHUNK 64

/* Counted means visible: the data must be in the peer's memory first */
#define UCT_CXI_TRIG_DWQ_FLAGS (FI_COMPLETION | FI_DELIVERY_COMPLETE)


static ucs_mpool_ops_t uct_cxi_trig_dwq_mpool_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free
};


static const uct_cxi_trig_dwq_ops_t *
uct_cxi_trig_dwq_select(uct_cxi_trig_done_t done)
{
    return (done == UCT_CXI_TRIG_DONE_CNTR) ? &uct_cxi_trig_dwq_count_ops :
                                              &uct_cxi_trig_dwq_cq_ops;
}

ucs_status_t uct_cxi_trig_dwq_init(uct_cxi_trig_iface_t *iface,
                                   unsigned entries)
{
    const uct_cxi_trig_md_t *md = uct_cxi_trig_iface_md(iface);
    uct_cxi_trig_dwq_t *dwq     = &iface->dwq;
    ucs_status_t status;

    status = ucs_mpool_init(&dwq->mp, 0, sizeof(uct_cxi_trig_dwq_op_t), 0,
                            UCS_SYS_CACHE_LINE_SIZE, UCT_CXI_TRIG_DWQ_CHUNK,
                            UINT_MAX, &uct_cxi_trig_dwq_mpool_ops,
                            "cxi_trig_dwq");
    if (status != UCS_OK) {
        ucs_error("cannot create the pool of deferred operations: %s",
                  ucs_status_string(status));
        return status;
    }

    uct_cxi_trig_credit_init(&dwq->credit, md->prov->pool,
                             uct_cxi_trig_md_max_entries(md), entries);
    ucs_list_head_init(&dwq->pending);
    ucs_list_head_init(&dwq->abandoned);
    dwq->lost_peers = 0;
    dwq->ops        = uct_cxi_trig_dwq_select(md->prov->done);
    status          = dwq->ops->init(iface);
    if (status != UCS_OK) {
        ucs_mpool_cleanup(&dwq->mp, 1);
    }
    return status;
}

/* Undo what posting took, but for the descriptor. */
static void uct_cxi_trig_dwq_release(uct_cxi_trig_iface_t *iface,
                                     uct_cxi_trig_dwq_op_t *op,
                                     ucs_status_t status)
{
    ucs_list_del(&op->list);
    iface->dwq.ops->release(iface, op, status);
    --op->deferred.trigger->refs;
    if (op->deferred.completion != NULL) {
        --op->deferred.completion->refs;
    }
    if (op->local != NULL) {
        --op->local->refs;
    }
    uct_cxi_trig_credit_give(&iface->dwq.credit, op->deferred.resv);
    uct_cxi_trig_peer_put(op->peer);
}

void uct_cxi_trig_dwq_cleanup(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_dwq_t *dwq = &iface->dwq;
    uct_cxi_trig_dwq_op_t *op, *tmp;

    ucs_list_for_each_safe(op, tmp, &dwq->pending, list) {
        ucs_debug("interface %p is closed with deferred operation %p", iface,
                  op);
        uct_cxi_trig_dwq_release(iface, op, UCS_ERR_CANCELED);
        ucs_mpool_put(op);
    }
    ucs_list_for_each_safe(op, tmp, &dwq->abandoned, list) {
        ucs_list_del(&op->list);
        ucs_mpool_put(op);
    }
    dwq->ops->cleanup(iface);
    ucs_mpool_cleanup(&dwq->mp, 1);
}

static void uct_cxi_trig_dwq_note_failure(uct_cxi_trig_dwq_op_t *op,
                                          ucs_status_t status)
{
    if (op->deferred.completion != NULL) {
        __atomic_store_n(&op->deferred.completion->failed, 1, __ATOMIC_RELAXED);
    }
    if (uct_cxi_trig_status_is_peer(status)) {
        uct_cxi_trig_peer_fail(op->peer, status);
    }
}

void uct_cxi_trig_dwq_complete(uct_cxi_trig_iface_t *iface,
                               uct_cxi_trig_req_t *req, size_t length,
                               ucs_status_t status)
{
    uct_cxi_trig_dwq_op_t *op = ucs_container_of(req, uct_cxi_trig_dwq_op_t,
                                                 req);
    uct_trig_done_func_t done = op->deferred.done;
    void *arg                 = op->deferred.arg;

    if (status != UCS_OK) {
        uct_cxi_trig_dwq_note_failure(op, status);
    }
    uct_cxi_trig_dwq_release(iface, op, status);
    ucs_mpool_put(op);
    if (done != NULL) {
        done(arg, status);
    }
}

/* The provider has failed an operation after all. */
static void uct_cxi_trig_dwq_complete_abandoned(uct_cxi_trig_iface_t *iface,
                                                uct_cxi_trig_req_t *req,
                                                size_t length,
                                                ucs_status_t status)
{
    uct_cxi_trig_dwq_op_t *op = ucs_container_of(req, uct_cxi_trig_dwq_op_t,
                                                 req);

    ucs_list_del(&op->list);
    ucs_mpool_put(op);
}

void uct_cxi_trig_dwq_abandon(uct_cxi_trig_iface_t *iface,
                              uct_cxi_trig_dwq_op_t *op, ucs_status_t status)
{
    uct_trig_done_func_t done = op->deferred.done;
    void *arg                 = op->deferred.arg;

    uct_cxi_trig_dwq_note_failure(op, status);
    uct_cxi_trig_dwq_release(iface, op, status);
    op->req.complete = uct_cxi_trig_dwq_complete_abandoned;
    ucs_list_add_tail(&iface->dwq.abandoned, &op->list);
    if (done != NULL) {
        done(arg, status);
    }
}

static ucs_status_t
uct_cxi_trig_dwq_check(const uct_cxi_trig_iface_t *iface,
                       const uct_trig_deferred_t *deferred)
{
    if ((deferred->trigger == NULL) || (deferred->trigger->iface != iface) ||
        ((deferred->completion != NULL) &&
         (deferred->completion->iface != iface))) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (deferred->threshold > uct_cxi_trig_iface_md(iface)->prov->max_count) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }
    return UCS_OK;
}

static int uct_cxi_trig_dwq_in_region(const uct_trig_rkey_t *rkey,
                                      uint64_t address, size_t length)
{
    return (length <= rkey->length) && (address >= rkey->address) &&
           (address - rkey->address <= rkey->length - length);
}

/* Checks what puts and atomics share, and takes an entry and a descriptor. */
static ucs_status_t uct_cxi_trig_dwq_get(uct_cxi_trig_ep_t *ep,
                                         const uct_trig_deferred_t *deferred,
                                         uct_cxi_trig_dwq_op_t **op_p)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_ep_iface(ep);
    uct_cxi_trig_dwq_t *dwq     = &iface->dwq;
    uct_cxi_trig_dwq_op_t *op;
    ucs_status_t status;

    status = uct_cxi_trig_dwq_check(iface, deferred);
    if (status == UCS_OK) {
        status = ep->status;
    }
    if (status == UCS_OK) {
        status = uct_cxi_trig_credit_take(&dwq->credit, deferred->resv);
    }
    if (status != UCS_OK) {
        return status;
    }

    op = ucs_mpool_get(&dwq->mp);
    if (op == NULL) {
        uct_cxi_trig_credit_give(&dwq->credit, deferred->resv);
        return UCS_ERR_NO_MEMORY;
    }

    memset(op, 0, sizeof(*op));
    op->deferred                  = *deferred;
    op->peer                      = ep->peer;
    op->req.complete              = uct_cxi_trig_dwq_complete;
    op->req.work.threshold        = deferred->threshold;
    op->req.work.triggering_cntr  = deferred->trigger->cntr;
    *op_p                         = op;
    return UCS_OK;
}

/* The operation is pending before it is posted: it may complete at once. */
static ucs_status_t uct_cxi_trig_dwq_post(uct_cxi_trig_iface_t *iface,
                                          uct_cxi_trig_dwq_op_t *op)
{
    ucs_status_t status;
    int ret;

    ++op->deferred.trigger->refs;
    if (op->deferred.completion != NULL) {
        ++op->deferred.completion->refs;
    }
    if (op->local != NULL) {
        ++op->local->refs;
    }
    uct_cxi_trig_peer_get(op->peer);
    ucs_list_add_tail(&iface->dwq.pending, &op->list);

    ret = iface->dwq.ops->post(iface, op);
    if (ret == 0) {
        return UCS_OK;
    }

    status = uct_cxi_trig_prov_status(uct_cxi_trig_iface_md(iface)->prov, ret);
    if (uct_cxi_trig_status_is_peer(status)) {
        uct_cxi_trig_peer_fail(op->peer, status);
    } else if (status != UCS_ERR_NO_RESOURCE) {
        ucs_error("cannot queue a deferred operation: %s", fi_strerror(-ret));
    }
    uct_cxi_trig_dwq_release(iface, op, status);
    ucs_mpool_put(op);
    return status;
}

static ucs_status_t
uct_cxi_trig_dwq_check_put(const uct_cxi_trig_iface_t *iface,
                           const uct_trig_put_t *put)
{
    const uct_cxi_trig_md_t *md = uct_cxi_trig_iface_md(iface);

    if ((put->buffer == NULL) || (put->length == 0) ||
        ((put->local != NULL) && (put->local->iface != iface))) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (put->length > ucs_min(md->info->ep_attr->max_msg_size,
                              md->prov->max_put)) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }
    return uct_cxi_trig_dwq_in_region(&put->rkey, put->remote_addr,
                                      put->length) ?
           UCS_OK : UCS_ERR_INVALID_PARAM;
}

static void uct_cxi_trig_dwq_fill_put(uct_cxi_trig_iface_t *iface,
                                      uct_cxi_trig_dwq_op_t *op,
                                      const uct_trig_put_t *put)
{
    struct fi_op_rma *rma = &op->put.op;

    op->local               = put->local;
    op->put.source.iov_base = (void*)put->buffer;
    op->put.source.iov_len  = put->length;
    op->put.target.addr     = put->remote_addr - put->rkey.base;
    op->put.target.len      = put->length;
    op->put.target.key      = put->rkey.key;

    rma->ep                 = iface->net.ep;
    rma->flags              = UCT_CXI_TRIG_DWQ_FLAGS;
    rma->msg.msg_iov        = &op->put.source;
    rma->msg.iov_count      = 1;
    rma->msg.addr           = op->peer->addr;
    rma->msg.rma_iov        = &op->put.target;
    rma->msg.rma_iov_count  = 1;
    rma->msg.context        = &op->req.work.context;

    op->req.work.op_type    = FI_OP_WRITE;
    op->req.work.op.rma     = rma;
}

ucs_status_t uct_trig_ep_put(uct_ep_h uct_ep, const uct_trig_put_t *put,
                             const uct_trig_deferred_t *deferred)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_iface_from_uct(uct_ep->iface);
    uct_cxi_trig_dwq_op_t *op;
    ucs_status_t status;

    if (iface == NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    status = uct_cxi_trig_dwq_check_put(iface, put);
    if (status == UCS_OK) {
        status = uct_cxi_trig_dwq_get(ucs_derived_of(uct_ep, uct_cxi_trig_ep_t),
                                      deferred, &op);
    }
    if (status != UCS_OK) {
        return status;
    }

    uct_cxi_trig_dwq_fill_put(iface, op, put);
    return uct_cxi_trig_dwq_post(iface, op);
}

static void uct_cxi_trig_dwq_fill_atomic(uct_cxi_trig_iface_t *iface,
                                         uct_cxi_trig_dwq_op_t *op,
                                         const uct_trig_atomic_t *atomic)
{
    struct fi_op_atomic *add = &op->atomic.op;

    op->atomic.value         = atomic->value;
    op->atomic.source.addr   = &op->atomic.value;
    op->atomic.source.count  = 1;
    op->atomic.target.addr   = atomic->remote_addr - atomic->rkey.base;
    op->atomic.target.count  = 1;
    op->atomic.target.key    = atomic->rkey.key;

    add->ep                  = iface->net.ep;
    add->flags               = UCT_CXI_TRIG_DWQ_FLAGS;
    add->msg.msg_iov         = &op->atomic.source;
    add->msg.iov_count       = 1;
    add->msg.addr            = op->peer->addr;
    add->msg.rma_iov         = &op->atomic.target;
    add->msg.rma_iov_count   = 1;
    add->msg.datatype        = FI_UINT64;
    add->msg.op              = FI_SUM;
    add->msg.context         = &op->req.work.context;

    op->req.work.op_type     = FI_OP_ATOMIC;
    op->req.work.op.atomic   = add;
}

ucs_status_t uct_trig_ep_atomic_add64(uct_ep_h uct_ep,
                                      const uct_trig_atomic_t *atomic,
                                      const uct_trig_deferred_t *deferred)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_iface_from_uct(uct_ep->iface);
    uct_cxi_trig_dwq_op_t *op;
    ucs_status_t status;

    if (iface == NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    if ((atomic->remote_addr % sizeof(uint64_t)) ||
        !uct_cxi_trig_dwq_in_region(&atomic->rkey, atomic->remote_addr,
                                    sizeof(uint64_t))) {
        return UCS_ERR_INVALID_PARAM;
    }

    status = uct_cxi_trig_dwq_get(ucs_derived_of(uct_ep, uct_cxi_trig_ep_t),
                                  deferred, &op);
    if (status != UCS_OK) {
        return status;
    }

    uct_cxi_trig_dwq_fill_atomic(iface, op, atomic);
    return uct_cxi_trig_dwq_post(iface, op);
}
