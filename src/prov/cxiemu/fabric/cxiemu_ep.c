/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_ep.c - endpoints: their life, what is bound to them, their options and
 * names.
 */
#include "fabric/cxiemu_fabric.h"
#include "fabric/cxiemu_info.h"
#include "base/cxiemu_dma.h"
#include "base/cxiemu_log.h"
#include "base/cxiemu_process.h"
#include "op/cxiemu_dwq.h"
#include "op/cxiemu_txop.h"
#include "run/cxiemu_wait.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <stdlib.h>
#include <string.h>

/* How long closing waits for peers that may still access buffers */
#define CXIEMU_EP_CLOSE_MS 1000

#define CXIEMU_EP_CQ_FLAGS   (FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)
#define CXIEMU_EP_CNTR_FLAGS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | \
                              FI_REMOTE_READ | FI_REMOTE_WRITE)

/* CXI's least multi-receive buffer */
#define CXIEMU_MIN_MULTI_RECV 64


cxiemu_ep_t *cxiemu_ep_from(struct fid_ep *fid)
{
    cxiemu_ep_t *ep;

    if ((fid == NULL) || (fid->fid.fclass != FI_CLASS_EP)) {
        return NULL;
    }

    ep = cxiemu_ep_handle(&fid->fid)->ep;
    return __atomic_load_n(&ep->enabled, __ATOMIC_RELAXED) ? ep : NULL;
}

uint64_t cxiemu_op_flags(struct fid_ep *fid, cxiemu_op_kind_t kind,
                         cxiemu_call_t call, uint64_t flags)
{
    uint64_t defaults = CXIEMU_OP_FLAGS & ~FI_FENCE;

    if (call == CXIEMU_CALL_INJECT) {
        return flags | FI_INJECT;
    }
    if (call == CXIEMU_CALL_FLAGS) {
        return flags;
    }
    if ((kind != CXIEMU_OP_READ) && (kind < CXIEMU_OP_ATOMIC)) {
        defaults |= FI_INJECT;
    }
    return flags | (cxiemu_ep_handle(&fid->fid)->tx_flags & defaults);
}

ssize_t cxiemu_ep_post(cxiemu_op_t *op, cxiemu_call_t call)
{
    cxiemu_nic_t *nic = op->ep->domain->nic;
    ssize_t ret;

    if (call == CXIEMU_CALL_INJECT) {
        op->flags &= ~FI_COMPLETION;
    }
    cxiemu_nic_lock(nic);
    ret = cxiemu_txop_start(op, NULL);
    if (!STAILQ_EMPTY(&nic->fired)) {
        cxiemu_nic_progress(nic);
    }
    cxiemu_nic_unlock(nic);
    cxiemu_op_unmap(op); /* What goes on has references of its own */
    return ret;
}

int cxiemu_ep_post_recv(cxiemu_rx_t *rx, const cxiemu_recv_req_t *req)
{
    cxiemu_nic_t *nic = rx->ep->domain->nic;
    int ret;

    cxiemu_nic_lock(nic);
    if (req->flags & FI_PEEK) {
        /* What has come by now is to be found: a card needs no progress */
        (void)cxiemu_nic_progress(nic);
    }
    ret = cxiemu_rx_post(rx, req);
    /* A message that was there may go on now, or be what deferred work waits
     * for, and the caller need not poll */
    if (cxiemu_nic_unfinished(nic)) {
        cxiemu_nic_progress(nic);
    }
    cxiemu_nic_unlock(nic);
    cxiemu_dma_put(req->dma);
    return ret;
}

int cxiemu_op_check(const cxiemu_ep_t *ep, uint64_t cap, uint64_t flags,
                    uint64_t allowed)
{
    if ((ep->caps & cap) != cap) {
        return -FI_ENOSYS;
    }
    if (flags & ~allowed) {
        return -FI_EBADFLAGS;
    }
    if ((flags & FI_FENCE) && !(ep->caps & FI_FENCE)) {
        return -FI_EINVAL;
    }
    return 0;
}

static cxiemu_ep_t *cxiemu_ep_of(struct fid *fid)
{
    return cxiemu_ep_handle(fid)->ep;
}


/* When an operation completes: FI_TRANSMIT_COMPLETE if none is named */
#define CXIEMU_COMPLETE_FLAGS \
    (FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE)

static int cxiemu_ep_settled(void *arg)
{
    return !cxiemu_txop_exposed(arg);
}

static void cxiemu_ep_unbind(cxiemu_ep_t *ep)
{
    cxiemu_cntr_t **cntrs[] = {&ep->tx_cntr, &ep->rx_cntr, &ep->write_cntr,
                               &ep->read_cntr, &ep->rem_write_cntr,
                               &ep->rem_read_cntr};
    size_t i;

    for (i = 0; i < sizeof(cntrs) / sizeof(cntrs[0]); ++i) {
        if (*cntrs[i] != NULL) {
            --(*cntrs[i])->refs;
        }
    }
    if (ep->tx_cq != NULL) {
        --ep->tx_cq->refs;
    }
    if (ep->rx_cq != NULL) {
        --ep->rx_cq->refs;
    }
    if (ep->av != NULL) {
        --ep->av->refs;
    }
}

static int cxiemu_ep_close(struct fid *fid)
{
    cxiemu_ep_t *ep   = cxiemu_ep_of(fid);
    cxiemu_nic_t *nic = ep->domain->nic;

    cxiemu_nic_lock(nic);
    if (cxiemu_ep_handle(fid) != &ep->own) {
        --ep->refs;
        cxiemu_nic_unlock(nic);
        free(cxiemu_ep_handle(fid));
        return 0;
    }
    if (ep->refs > 0) {
        cxiemu_nic_unlock(nic);
        return -FI_EBUSY;
    }

    cxiemu_nic_drain(nic);
    /* Nothing new from here on */
    __atomic_store_n(&ep->enabled, 0, __ATOMIC_RELAXED);
    cxiemu_dwq_drop_ep(ep);
    if (cxiemu_txop_exposed(ep)) {
        (void)cxiemu_nic_wait(nic, cxiemu_ep_settled, ep, CXIEMU_EP_CLOSE_MS);
    }

    cxiemu_txop_drop_ep(ep);
    cxiemu_rx_cleanup(&ep->msg);
    cxiemu_rx_cleanup(&ep->tagged);
    cxiemu_ep_return_tx(ep);
    cxiemu_ep_unbind(ep);
    nic->eps[ep->number] = NULL;
    --ep->domain->refs;
    cxiemu_open_del(CXIEMU_OPEN_EP);
    /* Tells peers whose messages were dropped */
    (void)cxiemu_nic_progress(nic);
    cxiemu_nic_unlock(nic);

    free(ep->cached);
    free(ep);
    return 0;
}


static int cxiemu_ep_bind_cq(cxiemu_ep_t *ep, struct fid *fid, uint64_t flags)
{
    cxiemu_cq_t *cq = container_of(fid, cxiemu_cq_t, fid.fid);
    int selective   = !!(flags & FI_SELECTIVE_COMPLETION);

    if ((cq->domain != ep->domain) || (flags & ~CXIEMU_EP_CQ_FLAGS) ||
        !(flags & (FI_TRANSMIT | FI_RECV)) ||
        ((flags & FI_TRANSMIT) && (ep->tx_cq != NULL)) ||
        ((flags & FI_RECV) && (ep->rx_cq != NULL))) {
        return -FI_EINVAL;
    }

    if (flags & FI_TRANSMIT) {
        ep->tx_cq        = cq;
        ep->tx_selective = selective;
        ++cq->refs;
    }
    if (flags & FI_RECV) {
        ep->rx_cq        = cq;
        ep->rx_selective = selective;
        ++cq->refs;
    }
    return 0;
}

static int cxiemu_ep_bind_cntr(cxiemu_ep_t *ep, struct fid *fid, uint64_t flags)
{
    struct {
        uint64_t      flag;
        cxiemu_cntr_t **slot;
    } slots[]           = {{FI_SEND, &ep->tx_cntr},
                           {FI_RECV, &ep->rx_cntr},
                           {FI_WRITE, &ep->write_cntr},
                           {FI_READ, &ep->read_cntr},
                           {FI_REMOTE_WRITE, &ep->rem_write_cntr},
                           {FI_REMOTE_READ, &ep->rem_read_cntr}};
    cxiemu_cntr_t *cntr = container_of(fid, cxiemu_cntr_t, fid.fid);
    size_t i;

    if ((cntr->domain != ep->domain) || (flags & ~CXIEMU_EP_CNTR_FLAGS) ||
        (flags == 0)) {
        return -FI_EINVAL;
    }
    for (i = 0; i < sizeof(slots) / sizeof(slots[0]); ++i) {
        if ((flags & slots[i].flag) && (*slots[i].slot != NULL)) {
            return -FI_EINVAL;
        }
    }

    for (i = 0; i < sizeof(slots) / sizeof(slots[0]); ++i) {
        if (flags & slots[i].flag) {
            *slots[i].slot = cntr;
            ++cntr->refs;
        }
    }
    return 0;
}

static int cxiemu_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
    cxiemu_ep_t *ep   = cxiemu_ep_of(fid);
    cxiemu_nic_t *nic = ep->domain->nic;
    int ret           = 0;
    cxiemu_av_t *av;

    if (bfid == NULL) {
        return -FI_EINVAL;
    }

    cxiemu_nic_lock(nic);
    if (bfid->fclass == FI_CLASS_CNTR) {
        ret = cxiemu_ep_bind_cntr(ep, bfid, flags); /* At any time, as CXI's */
    } else if (ep->enabled) {
        ret = -FI_EOPBADSTATE;
    } else if (bfid->fclass == FI_CLASS_AV) {
        av = container_of(bfid, cxiemu_av_t, fid.fid);
        if ((av->domain != ep->domain) || (ep->av != NULL)) {
            ret = -FI_EINVAL;
        } else {
            ep->av = av;
            ++av->refs;
        }
    } else if (bfid->fclass == FI_CLASS_CQ) {
        ret = cxiemu_ep_bind_cq(ep, bfid, flags);
    } else if (bfid->fclass != FI_CLASS_EQ) {
        ret = -FI_EINVAL; /* Event queues are taken: no event goes there */
    }
    cxiemu_nic_unlock(nic);
    return ret;
}

/* The flags of one direction, which must be named; or NULL. Lock held. */
static uint64_t *cxiemu_ep_op_flags(cxiemu_handle_t *handle,
                                    const uint64_t *flags)
{
    uint64_t dirs = (flags == NULL) ? 0 : (*flags & (FI_TRANSMIT | FI_RECV));

    if (dirs == FI_TRANSMIT) {
        return &handle->tx_flags;
    }
    return (dirs == FI_RECV) ? &handle->rx_flags : NULL;
}

/* As FI_SETOPSFLAG. Lock held. */
static int cxiemu_ep_set_op_flags(cxiemu_handle_t *handle,
                                  const uint64_t *flags)
{
    uint64_t *own = cxiemu_ep_op_flags(handle, flags);

    if (own == NULL) {
        return -FI_EINVAL;
    }

    *own = *flags & ~(FI_TRANSMIT | FI_RECV);
    if ((*flags & FI_TRANSMIT) && !(*flags & CXIEMU_COMPLETE_FLAGS)) {
        *own |= FI_TRANSMIT_COMPLETE; /* As CXI */
    }
    return 0;
}

/* FI_ALIAS: one more handle of the endpoint, with default flags of its own.
 * Lock held. */
static int cxiemu_ep_alias(const cxiemu_handle_t *handle,
                           const struct fi_alias *args)
{
    cxiemu_handle_t *alias;
    int ret;

    if ((args == NULL) || (args->fid == NULL)) {
        return -FI_EINVAL;
    }
    alias = malloc(sizeof(*alias));
    if (alias == NULL) {
        return -FI_ENOMEM;
    }
    *alias = *handle;
    ret    = cxiemu_ep_set_op_flags(alias, &args->flags);
    if (ret != 0) {
        free(alias);
        return ret;
    }

    ++alias->ep->refs;
    *args->fid = &alias->fid.fid;
    return 0;
}

static int cxiemu_ep_control(struct fid *fid, int command, void *arg)
{
    cxiemu_handle_t *handle = cxiemu_ep_handle(fid);
    cxiemu_ep_t *ep         = handle->ep;
    cxiemu_nic_t *nic       = ep->domain->nic;
    int ret                 = 0;
    const uint64_t *own;

    cxiemu_nic_lock(nic);
    switch (command) {
    case FI_ENABLE:
        if (ep->av == NULL) {
            ret = -FI_ENOAV;
        } else if (((ep->tx_cq == NULL) &&
                    (ep->caps & (FI_SEND | FI_READ | FI_WRITE))) ||
                   ((ep->rx_cq == NULL) && (ep->caps & FI_RECV))) {
            ret = -FI_ENOCQ;
        } else {
            __atomic_store_n(&ep->enabled, 1, __ATOMIC_RELAXED);
        }
        break;
    case FI_ALIAS:
        ret = cxiemu_ep_alias(handle, arg);
        break;
    case FI_SETOPSFLAG:
        ret = cxiemu_ep_set_op_flags(handle, arg);
        break;
    case FI_GETOPSFLAG:
        own = cxiemu_ep_op_flags(handle, arg);
        if (own == NULL) {
            ret = -FI_EINVAL;
        } else {
            *(uint64_t*)arg = *own;
        }
        break;
    default:
        ret = -FI_ENOSYS;
        break;
    }
    cxiemu_nic_unlock(nic);
    return ret;
}

static struct fi_ops cxiemu_ep_fid_ops = {
    .size     = sizeof(struct fi_ops),
    .close    = cxiemu_ep_close,
    .bind     = cxiemu_ep_bind,
    .control  = cxiemu_ep_control,
    .ops_open = cxiemu_no_ops_open
};


static ssize_t cxiemu_ep_cancel(struct fid *fid, void *context)
{
    cxiemu_ep_t *ep   = cxiemu_ep_of(fid);
    cxiemu_nic_t *nic = ep->domain->nic;
    int found;

    cxiemu_nic_lock(nic);
    found = cxiemu_rx_cancel(&ep->tagged, context) ||
            cxiemu_rx_cancel(&ep->msg, context);
    cxiemu_nic_unlock(nic);
    return found ? 0 : -FI_ENOENT;
}

static int cxiemu_ep_getopt(struct fid *fid, int level, int name, void *value,
                            size_t *length)
{
    cxiemu_ep_t *ep = cxiemu_ep_of(fid);

    if ((level != FI_OPT_ENDPOINT) || (name != FI_OPT_MIN_MULTI_RECV)) {
        return -FI_ENOPROTOOPT;
    }
    if ((value == NULL) || (length == NULL)) {
        return -FI_EINVAL;
    }
    if (*length < sizeof(size_t)) {
        *length = sizeof(size_t);
        return -FI_ETOOSMALL;
    }

    *(size_t*)value = __atomic_load_n(&ep->min_multi_recv, __ATOMIC_RELAXED);
    *length         = sizeof(size_t);
    return 0;
}

static int cxiemu_ep_setopt(struct fid *fid, int level, int name,
                            const void *value, size_t length)
{
    cxiemu_ep_t *ep = cxiemu_ep_of(fid);

    if ((level != FI_OPT_ENDPOINT) || (name != FI_OPT_MIN_MULTI_RECV)) {
        return -FI_ENOPROTOOPT;
    }
    if ((value == NULL) || (length != sizeof(size_t))) {
        return -FI_EINVAL;
    }

    __atomic_store_n(&ep->min_multi_recv, *(const size_t*)value,
                     __ATOMIC_RELAXED);
    return 0;
}

CXIEMU_NO_CALL(cxiemu_ep_tx_ctx, struct fid_ep *sep, int index,
               struct fi_tx_attr *attr, struct fid_ep **tx_ep, void *context)

CXIEMU_NO_CALL(cxiemu_ep_rx_ctx, struct fid_ep *sep, int index,
               struct fi_rx_attr *attr, struct fid_ep **rx_ep, void *context)

static ssize_t cxiemu_ep_no_size_left(struct fid_ep *fid)
{
    return -FI_ENOSYS;
}

static struct fi_ops_ep cxiemu_ep_ops = {
    .size         = sizeof(struct fi_ops_ep),
    .cancel       = cxiemu_ep_cancel,
    .getopt       = cxiemu_ep_getopt,
    .setopt       = cxiemu_ep_setopt,
    .tx_ctx       = cxiemu_ep_tx_ctx,
    .rx_ctx       = cxiemu_ep_rx_ctx,
    .rx_size_left = cxiemu_ep_no_size_left,
    .tx_size_left = cxiemu_ep_no_size_left
};


static int cxiemu_cm_getname(struct fid *fid, void *addr, size_t *length)
{
    cxiemu_ep_t *ep   = cxiemu_ep_of(fid);
    cxiemu_nic_t *nic = ep->domain->nic;
    cxiemu_addr_t own = {
        .version = CXIEMU_ADDR_VERSION,
        .ep      = ep->number,
        .host    = cxiemu_addr_host(),
        .pid     = cxiemu_process_self(),
        .fd      = nic->map->fd,
        .nonce   = nic->nonce
    };
    size_t room;

    if ((length == NULL) || ((addr == NULL) && (*length > 0))) {
        return -FI_EINVAL;
    }

    room    = *length;
    *length = sizeof(own);
    if (addr != NULL) {
        memcpy(addr, &own, (room < sizeof(own)) ? room : sizeof(own));
    }
    return (room < sizeof(own)) ? -FI_ETOOSMALL : 0;
}

CXIEMU_NO_CALL(cxiemu_cm_setname, struct fid *fid, void *addr, size_t length)

CXIEMU_NO_CALL(cxiemu_cm_getpeer, struct fid_ep *ep, void *addr, size_t *length)

CXIEMU_NO_CALL(cxiemu_cm_connect, struct fid_ep *ep, const void *addr,
               const void *param, size_t length)

CXIEMU_NO_CALL(cxiemu_cm_listen, struct fid_pep *pep)

CXIEMU_NO_CALL(cxiemu_cm_accept, struct fid_ep *ep, const void *param,
               size_t length)

CXIEMU_NO_CALL(cxiemu_cm_reject, struct fid_pep *pep, struct fid *handle,
               const void *param, size_t length)

CXIEMU_NO_CALL(cxiemu_cm_shutdown, struct fid_ep *ep, uint64_t flags)

CXIEMU_NO_CALL(cxiemu_cm_join, struct fid_ep *ep, const void *addr,
               uint64_t flags, struct fid_mc **mc, void *context)

/* There are no connections. */
static struct fi_ops_cm cxiemu_cm_ops = {
    .size     = sizeof(struct fi_ops_cm),
    .setname  = cxiemu_cm_setname,
    .getname  = cxiemu_cm_getname,
    .getpeer  = cxiemu_cm_getpeer,
    .connect  = cxiemu_cm_connect,
    .listen   = cxiemu_cm_listen,
    .accept   = cxiemu_cm_accept,
    .reject   = cxiemu_cm_reject,
    .shutdown = cxiemu_cm_shutdown,
    .join     = cxiemu_cm_join
};


static int cxiemu_ep_check(const struct fi_info *info)
{
    const struct fi_ep_attr *attr = info->ep_attr;

    if ((attr == NULL) || ((attr->type != FI_EP_RDM) &&
                           (attr->type != FI_EP_UNSPEC))) {
        return -FI_EINVAL;
    }
    if ((attr->tx_ctx_cnt == FI_SHARED_CONTEXT) ||
        (attr->rx_ctx_cnt == FI_SHARED_CONTEXT)) {
        return -FI_ENOSYS;
    }
    if ((attr->tx_ctx_cnt > 1) || (attr->rx_ctx_cnt > 1)) {
        return -FI_EINVAL;
    }
    return cxiemu_domain_check(info, (info->tx_attr == NULL) ?
                                     FI_TC_UNSPEC : info->tx_attr->tclass);
}

static void cxiemu_ep_init(cxiemu_ep_t *ep, struct fi_info *info, void *context)
{
    struct fid_ep *fid = &ep->own.fid;

    fid->fid.fclass     = FI_CLASS_EP;
    fid->fid.context    = context;
    fid->fid.ops        = &cxiemu_ep_fid_ops;
    fid->ops            = &cxiemu_ep_ops;
    fid->cm             = &cxiemu_cm_ops;
    fid->msg            = &cxiemu_msg_ops;
    fid->tagged         = &cxiemu_tagged_ops;
    fid->rma            = &cxiemu_rma_ops;
    fid->atomic         = &cxiemu_atomic_ops;
    ep->own.ep          = ep;
    ep->caps            = cxiemu_caps_ways(info->caps);
    ep->tx_size         = cxiemu_param()->tx_size;
    ep->min_multi_recv  = CXIEMU_MIN_MULTI_RECV;
    ep->tclass          = ep->domain->tclass;
    if (info->tx_attr != NULL) {
        ep->own.tx_flags = info->tx_attr->op_flags;
        ep->tx_order     = info->tx_attr->msg_order;
        ep->tclass       = cxiemu_tclass(info->tx_attr->tclass, ep->tclass);
        ep->tx_size      = (info->tx_attr->size > 0) ? info->tx_attr->size :
                                                       ep->tx_size;
    }
    if (info->rx_attr != NULL) {
        ep->own.rx_flags = info->rx_attr->op_flags;
    }
    cxiemu_rx_init(&ep->msg, ep, 0);
    cxiemu_rx_init(&ep->tagged, ep, 1);
}

int cxiemu_ep_open(struct fid_domain *fid, struct fi_info *info,
                   struct fid_ep **ep_p, void *context)
{
    cxiemu_domain_t *domain = container_of(fid, cxiemu_domain_t, fid);
    cxiemu_nic_t *nic       = domain->nic;
    cxiemu_ep_t *ep;
    unsigned i;
    int ret;

    if ((info == NULL) || (ep_p == NULL)) {
        return -FI_EINVAL;
    }
    ret = cxiemu_ep_check(info);
    if (ret != 0) {
        return ret;
    }

    ep = calloc(1, sizeof(*ep));
    if (ep == NULL) {
        return -FI_ENOMEM;
    }
    ep->domain = domain;
    cxiemu_ep_init(ep, info, context);

    /* Numbers are given out in turn, so that what is still under way to an
     * endpoint that was closed does not reach the next one */
    cxiemu_nic_lock(nic);
    for (i = 0; i < CXIEMU_MAX_EPS; ++i) {
        ep->number = (nic->next_ep + i) % CXIEMU_MAX_EPS;
        if (nic->eps[ep->number] == NULL) {
            nic->next_ep         = ep->number + 1;
            nic->eps[ep->number] = ep;
            ++domain->refs;
            cxiemu_open_add(CXIEMU_OPEN_EP);
            break;
        }
    }
    cxiemu_nic_unlock(nic);
    if (i == CXIEMU_MAX_EPS) {
        cxiemu_warn(EP_CTRL, "no more than %d endpoints a domain\n",
                    CXIEMU_MAX_EPS);
        free(ep);
        return -FI_ENOSPC;
    }

    *ep_p = &ep->own.fid;
    return 0;
}
