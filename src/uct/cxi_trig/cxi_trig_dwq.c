/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_dwq.c - deferred puts, gets and atomics, whatever the back-end.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_dwq.h"
#include "cxi_trig_addr.h"
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


/* What all descriptors of an interface have. */
static void uct_cxi_trig_dwq_init_op(uct_cxi_trig_iface_t *iface,
                                     uct_cxi_trig_dwq_op_t *op,
                                     enum fi_op_type type)
{
    memset(op, 0, sizeof(*op));
    ucs_list_add_tail(&iface->dwq.all, &op->all_list);
    op->req.complete     = uct_cxi_trig_dwq_complete;
    op->req.work.op_type = type;
}

static void uct_cxi_trig_dwq_init_rma(uct_cxi_trig_iface_t *iface,
                                      uct_cxi_trig_dwq_op_t *op,
                                      enum fi_op_type type, uint64_t flags)
{
    struct fi_op_rma *rma = &op->put.op;

    uct_cxi_trig_dwq_init_op(iface, op, type);
    op->req.work.op.rma    = rma;
    rma->ep                = iface->net.ep;
    rma->flags             = flags;
    rma->msg.msg_iov       = &op->put.source;
    rma->msg.desc          = &op->put.desc;
    rma->msg.iov_count     = 1;
    rma->msg.rma_iov       = &op->put.target;
    rma->msg.rma_iov_count = 1;
    rma->msg.context       = &op->req.work.context;
}

static void uct_cxi_trig_dwq_init_put(ucs_mpool_t *mp, void *obj, void *chunk)
{
    uct_cxi_trig_dwq_init_rma(ucs_container_of(mp, uct_cxi_trig_iface_t,
                                               dwq.puts), obj, FI_OP_WRITE,
                              UCT_CXI_TRIG_DWQ_FLAGS);
}

/* What was read is here when it is complete, whatever the flags */
static void uct_cxi_trig_dwq_init_get(ucs_mpool_t *mp, void *obj, void *chunk)
{
    uct_cxi_trig_dwq_init_rma(ucs_container_of(mp, uct_cxi_trig_iface_t,
                                               dwq.gets), obj, FI_OP_READ,
                              FI_COMPLETION);
}

static void uct_cxi_trig_dwq_init_atomic(ucs_mpool_t *mp, void *obj,
                                         void *chunk)
{
    uct_cxi_trig_iface_t *iface = ucs_container_of(mp, uct_cxi_trig_iface_t,
                                                   dwq.atomics);
    uct_cxi_trig_dwq_op_t *op   = obj;
    struct fi_op_atomic *add    = &op->atomic.op;

    uct_cxi_trig_dwq_init_op(iface, op, FI_OP_ATOMIC);
    op->req.work.op.atomic  = add;
    op->atomic.source.addr  = &op->atomic.value;
    op->atomic.source.count = 1;
    op->atomic.target.count = 1;

    add->ep                 = iface->net.ep;
    add->flags              = UCT_CXI_TRIG_DWQ_FLAGS;
    add->msg.msg_iov        = &op->atomic.source;
    add->msg.iov_count      = 1;
    add->msg.rma_iov        = &op->atomic.target;
    add->msg.rma_iov_count  = 1;
    add->msg.datatype       = FI_UINT64;
    add->msg.op             = FI_SUM;
    add->msg.context        = &op->req.work.context;
}

static ucs_mpool_ops_t uct_cxi_trig_dwq_put_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free,
    .obj_init      = uct_cxi_trig_dwq_init_put
};

static ucs_mpool_ops_t uct_cxi_trig_dwq_get_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free,
    .obj_init      = uct_cxi_trig_dwq_init_get
};

static ucs_mpool_ops_t uct_cxi_trig_dwq_atomic_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free,
    .obj_init      = uct_cxi_trig_dwq_init_atomic
};

static ucs_status_t uct_cxi_trig_dwq_init_pool(ucs_mpool_t *mp,
                                               ucs_mpool_ops_t *ops,
                                               const char *name)
{
    uct_cxi_trig_pool_params_t pool = {
        .elem_size = sizeof(uct_cxi_trig_dwq_op_t),
        .alignment = UCS_SYS_CACHE_LINE_SIZE,
        .chunk     = UCT_CXI_TRIG_DWQ_CHUNK,
        .max_elems = UINT_MAX,
        .ops       = ops,
        .name      = name
    };
    ucs_status_t status;

    status = uct_cxi_trig_pool_init(mp, &pool);
    if (status != UCS_OK) {
        ucs_error("cannot create the pool %s: %s", name,
                  ucs_status_string(status));
    }
    return status;
}

static const uct_cxi_trig_dwq_ops_t *
uct_cxi_trig_dwq_select(uct_cxi_trig_done_t done)
{
    return (done == UCT_CXI_TRIG_DONE_CNTR) ? &uct_cxi_trig_dwq_count_ops :
                                              &uct_cxi_trig_dwq_cq_ops;
}

ucs_status_t
uct_cxi_trig_dwq_init(uct_cxi_trig_iface_t *iface,
                      const uct_cxi_trig_credit_params_t *params,
                      unsigned entries)
{
    uct_cxi_trig_credit_pool_t *pool;
    const uct_cxi_trig_md_t *md = uct_cxi_trig_iface_md(iface);
    uct_cxi_trig_dwq_t *dwq     = &iface->dwq;
    ucs_status_t status;

    status = uct_cxi_trig_dwq_init_pool(&dwq->puts, &uct_cxi_trig_dwq_put_ops,
                                        "cxi_trig_dwq_put");
    if (status != UCS_OK) {
        return status;
    }
    status = uct_cxi_trig_dwq_init_pool(&dwq->gets, &uct_cxi_trig_dwq_get_ops,
                                        "cxi_trig_dwq_get");
    if (status != UCS_OK) {
        goto err_puts;
    }
    status = uct_cxi_trig_dwq_init_pool(&dwq->atomics,
                                        &uct_cxi_trig_dwq_atomic_ops,
                                        "cxi_trig_dwq_atomic");
    if (status != UCS_OK) {
        goto err_gets;
    }

    status = uct_cxi_trig_credit_pool_get(params, &pool);
    if (status != UCS_OK) {
        goto err_atomics;
    }

    uct_cxi_trig_credit_init(&dwq->credit, pool, entries);
    ucs_list_head_init(&dwq->all);
    dwq->lost_peers = 0;
    dwq->has_wake   = 0;
    dwq->ops        = uct_cxi_trig_dwq_select(md->prov->done);
    status          = dwq->ops->init(iface);
    if (status != UCS_OK) {
        goto err_credit;
    }
    return UCS_OK;

err_credit:
    uct_cxi_trig_credit_cleanup(&dwq->credit);
err_atomics:
    ucs_mpool_cleanup(&dwq->atomics, 1);
err_gets:
    ucs_mpool_cleanup(&dwq->gets, 1);
err_puts:
    ucs_mpool_cleanup(&dwq->puts, 1);
    return status;
}

/* The provider has not got it any more. */
static void uct_cxi_trig_dwq_unpost(uct_cxi_trig_iface_t *iface,
                                    uct_cxi_trig_dwq_op_t *op,
                                    ucs_status_t status)
{
    op->is_posted = 0;
    iface->dwq.ops->release(iface, op, status);
    if (op->has_entry) {
        op->has_entry = 0;
        uct_cxi_trig_credit_give(&iface->dwq.credit, 1);
    }
}

void uct_cxi_trig_dwq_free(uct_cxi_trig_iface_t *iface,
                           uct_cxi_trig_dwq_op_t *op)
{
    --op->deferred.trigger->refs;
    if (op->deferred.completion != NULL) {
        --op->deferred.completion->refs;
    }
    if (op->local != NULL) {
        --op->local->refs;
    }
    uct_cxi_trig_peer_put(op->peer);
    if (!op->is_abandoned) {
        ucs_mpool_put(op);
    }
}

/* The interface closes: whatever an operation is, it ends. */
static void uct_cxi_trig_dwq_drop(uct_cxi_trig_iface_t *iface,
                                  uct_cxi_trig_dwq_op_t *op)
{
    int is_ours = op->is_posted || op->is_kept;

    if (op->is_kept) {
        ucs_warn("interface %p is closed with operation %p", iface, op);
    } else if (op->is_posted) {
        ucs_debug("interface %p is closed with deferred operation %p", iface,
                  op);
    }
    if (op->is_posted) {
        uct_cxi_trig_dwq_unpost(iface, op, UCS_ERR_CANCELED);
    }
    if (is_ours) {
        op->is_abandoned = 0;
        uct_cxi_trig_dwq_free(iface, op);
    } else if (op->is_abandoned) {
        ucs_mpool_put(op);
    }
}

void uct_cxi_trig_dwq_cleanup(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_dwq_t *dwq = &iface->dwq;
    uct_cxi_trig_dwq_op_t *op;

    ucs_list_for_each(op, &dwq->all, all_list) {
        uct_cxi_trig_dwq_drop(iface, op);
    }
    dwq->ops->cleanup(iface);
    uct_cxi_trig_credit_cleanup(&dwq->credit);
    ucs_mpool_cleanup(&dwq->atomics, 1);
    ucs_mpool_cleanup(&dwq->gets, 1);
    ucs_mpool_cleanup(&dwq->puts, 1);
}

static void uct_cxi_trig_dwq_note_failure(uct_cxi_trig_dwq_op_t *op,
                                          ucs_status_t status)
{
    ++op->peer->iface->stats.deferred_failed;
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

    if (status == UCS_OK) {
        ++iface->stats.deferred_done;
    } else {
        uct_cxi_trig_dwq_note_failure(op, status);
    }
    uct_cxi_trig_dwq_unpost(iface, op, status);
    if (!op->is_kept) {
        uct_cxi_trig_dwq_free(iface, op);
    }
    if (done != NULL) {
        done(arg, status); /* may destroy it, if it is kept */
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

    op->is_abandoned = 0;
    op->req.complete = uct_cxi_trig_dwq_complete;
    if (!op->is_kept) {
        ucs_mpool_put(op);
    }
}

void uct_cxi_trig_dwq_abandon(uct_cxi_trig_iface_t *iface,
                              uct_cxi_trig_dwq_op_t *op, ucs_status_t status)
{
    uct_trig_done_func_t done = op->deferred.done;
    void *arg                 = op->deferred.arg;

    uct_cxi_trig_dwq_note_failure(op, status);
    uct_cxi_trig_dwq_unpost(iface, op, status);
    op->is_abandoned = 1;
    op->req.complete = uct_cxi_trig_dwq_complete_abandoned;
    if (!op->is_kept) {
        uct_cxi_trig_dwq_free(iface, op);
    }
    if (done != NULL) {
        done(arg, status);
    }
}

/* Completions post operations, and end some: the list only grows, at its end */
void uct_cxi_trig_dwq_fail_all(uct_cxi_trig_iface_t *iface, ucs_status_t status)
{
    uct_cxi_trig_dwq_op_t *op;

    ucs_list_for_each(op, &iface->dwq.all, all_list) {
        if (op->is_posted) {
            uct_cxi_trig_dwq_abandon(iface, op, status);
        }
    }
}

static ucs_status_t
uct_cxi_trig_dwq_check(const uct_cxi_trig_iface_t *iface,
                       const uct_trig_deferred_t *deferred)
{
    if ((deferred->trigger == NULL) ||
        (uct_cxi_trig_cntr_iface(deferred->trigger) != iface) ||
        ((deferred->completion != NULL) &&
         (uct_cxi_trig_cntr_iface(deferred->completion) != iface))) {
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

/* Checks what all kinds share, and takes a descriptor of the pool, which has
 * all but what differs between two of them. */
static ucs_status_t uct_cxi_trig_dwq_get(uct_cxi_trig_ep_t *ep, ucs_mpool_t *mp,
                                         const uct_trig_deferred_t *deferred,
                                         uct_cxi_trig_dwq_op_t **op_p)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_ep_iface(ep);
    uct_cxi_trig_dwq_op_t *op;
    ucs_status_t status;

    status = uct_cxi_trig_dwq_check(iface, deferred);
    if (status == UCS_OK) {
        status = ep->status;
    }
    if (status != UCS_OK) {
        return status;
    }

    op = ucs_mpool_get(mp);
    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    op->deferred                 = *deferred;
    op->peer                     = ep->peer;
    op->local                    = NULL;
    op->req.work.threshold       = deferred->threshold;
    op->req.work.triggering_cntr = deferred->trigger->cntr;
    op->req.work.completion_cntr = iface->net.cntr; /* cxi wants one for all */
    ++deferred->trigger->refs;
    if (deferred->completion != NULL) {
        op->req.work.completion_cntr = deferred->completion->cntr;
        ++deferred->completion->refs;
    }
    uct_cxi_trig_peer_get(op->peer);
    *op_p                        = op;
    return UCS_OK;
}

ucs_status_t uct_cxi_trig_dwq_post(uct_cxi_trig_iface_t *iface,
                                   uct_cxi_trig_dwq_op_t *op)
{
    const uct_cxi_trig_dwq_ops_t *ops = iface->dwq.ops;
    ucs_status_t status;
    int ret;

    if (!op->deferred.is_due) {
        status = uct_cxi_trig_credit_take(&iface->dwq.credit);
        if (status != UCS_OK) {
            ++iface->stats.no_entry;
            return status;
        }
        op->has_entry = 1;
    }

    /* It may complete at once */
    op->is_posted  = 1;
    op->is_dropped = 0;
    ret = op->has_entry ? ops->post(iface, op) : ops->run(iface, op);
    if (ret == 0) {
        ++iface->stats.deferred;
        return UCS_OK;
    }

    status = uct_cxi_trig_prov_status(uct_cxi_trig_iface_md(iface)->prov, ret);
    if (uct_cxi_trig_status_is_peer(status)) {
        uct_cxi_trig_peer_fail(op->peer, status);
    } else if (status != UCS_ERR_NO_RESOURCE) {
        ucs_error("cannot queue a deferred operation: %s", fi_strerror(-ret));
    }
    uct_cxi_trig_dwq_unpost(iface, op, status);
    return status;
}

/* Also a get, which is described in the same way */
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

ucs_status_t uct_cxi_trig_dwq_get_rma(uct_ep_h ep, enum fi_op_type type,
                                      const uct_trig_put_t *put,
                                      const uct_trig_deferred_t *deferred,
                                      uct_cxi_trig_dwq_op_t **op_p)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_iface_from_uct(ep->iface);
    uct_cxi_trig_dwq_op_t *op;
    ucs_status_t status;

    if (iface == NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    status = uct_cxi_trig_dwq_check_put(iface, put);
    if (status == UCS_OK) {
        status = uct_cxi_trig_dwq_get(ucs_derived_of(ep, uct_cxi_trig_ep_t),
                                      (type == FI_OP_WRITE) ? &iface->dwq.puts :
                                                              &iface->dwq.gets,
                                      deferred, &op);
    }
    if (status != UCS_OK) {
        return status;
    }

    if (put->local != NULL) {
        op->local = put->local;
        ++op->local->refs;
    }
    op->put.desc            = ((put->local != NULL) &&
                               uct_cxi_trig_iface_md(iface)->needs_desc) ?
                              fi_mr_desc(put->local->mr) : NULL;
    op->put.source.iov_base = (void*)put->buffer;
    op->put.source.iov_len  = put->length;
    op->put.target.addr     = put->remote_addr - put->rkey.base;
    op->put.target.len      = put->length;
    op->put.target.key      = put->rkey.key;
    op->put.op.msg.addr     = op->peer->addr;
    *op_p                   = op;
    return UCS_OK;
}

ucs_status_t uct_cxi_trig_dwq_get_add64(uct_ep_h uct_ep,
                                        const uct_trig_atomic_t *atomic,
                                        const uct_trig_deferred_t *deferred,
                                        uct_cxi_trig_dwq_op_t **op_p)
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
                                  &iface->dwq.atomics, deferred, &op);
    if (status != UCS_OK) {
        return status;
    }

    op->atomic.value       = atomic->value;
    op->atomic.target.addr = atomic->remote_addr - atomic->rkey.base;
    op->atomic.target.key  = atomic->rkey.key;
    op->atomic.op.msg.addr = op->peer->addr;
    *op_p                  = op;
    return UCS_OK;
}

/* Its descriptor is free again once it is over. */
static ucs_status_t uct_cxi_trig_dwq_post_once(uct_cxi_trig_dwq_op_t *op)
{
    uct_cxi_trig_iface_t *iface = op->peer->iface;
    ucs_status_t status         = uct_cxi_trig_dwq_post(iface, op);

    if (status != UCS_OK) {
        uct_cxi_trig_dwq_free(iface, op);
    }
    return status;
}

ucs_status_t uct_trig_ep_put(uct_ep_h ep, const uct_trig_put_t *put,
                             const uct_trig_deferred_t *deferred)
{
    uct_cxi_trig_dwq_op_t *op;
    ucs_status_t status;

    status = uct_cxi_trig_dwq_get_rma(ep, FI_OP_WRITE, put, deferred, &op);
    return (status == UCS_OK) ? uct_cxi_trig_dwq_post_once(op) : status;
}

ucs_status_t uct_trig_ep_get(uct_ep_h ep, const uct_trig_get_t *get,
                             const uct_trig_deferred_t *deferred)
{
    const uct_trig_put_t rma = {
        .buffer      = get->buffer,
        .length      = get->length,
        .local       = get->local,
        .remote_addr = get->remote_addr,
        .rkey        = get->rkey
    };
    uct_cxi_trig_dwq_op_t *op;
    ucs_status_t status;

    status = uct_cxi_trig_dwq_get_rma(ep, FI_OP_READ, &rma, deferred, &op);
    return (status == UCS_OK) ? uct_cxi_trig_dwq_post_once(op) : status;
}

ucs_status_t uct_trig_ep_atomic_add64(uct_ep_h ep,
                                      const uct_trig_atomic_t *atomic,
                                      const uct_trig_deferred_t *deferred)
{
    uct_cxi_trig_dwq_op_t *op;
    ucs_status_t status;

    status = uct_cxi_trig_dwq_get_add64(ep, atomic, deferred, &op);
    return (status == UCS_OK) ? uct_cxi_trig_dwq_post_once(op) : status;
}
