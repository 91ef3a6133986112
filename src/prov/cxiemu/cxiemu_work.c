/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_work.c - fi_control() of a domain: deferred work as it is described.
 *
 * Refused is what CXI refuses; descriptions may be reused when this returns.
 */
#include "cxiemu_dwq.h"
#include "cxiemu_ep.h"
#include "cxiemu_log.h"

#include <rdma/fi_errno.h>

#include <string.h>

/* Flags of CXI's own, from rdma/fi_cxi_ext.h, which distributions leave out */
#define CXIEMU_CXI_HRP        (1ull << 60)
#define CXIEMU_CXI_UNRELIABLE (1ull << 61)
#define CXIEMU_CXI_CNTR_WB    (1ull << 62)
#define CXIEMU_CXI_WEAK_FENCE (1ull << 63)

/* Deferred work cannot have these */
#define CXIEMU_WORK_REFUSED                                        \
    (FI_FENCE | FI_INJECT | FI_REMOTE_CQ_DATA | CXIEMU_CXI_HRP |   \
     CXIEMU_CXI_UNRELIABLE | CXIEMU_CXI_WEAK_FENCE)

/* These make no difference: entries are started one by one */
#define CXIEMU_WORK_IGNORED (FI_MORE | FI_TRIGGER | CXIEMU_CXI_CNTR_WB)


/* The endpoint and the flags of a description, wherever its kind has them. */
static int cxiemu_work_header(const struct fi_deferred_work *work,
                              struct fid_ep **ep, uint64_t *flags)
{
    if (work->op.msg == NULL) {
        return -FI_EINVAL;
    }

    switch (work->op_type) {
    case FI_OP_SEND:
    case FI_OP_RECV:
        *ep    = work->op.msg->ep;
        *flags = work->op.msg->flags;
        return 0;
    case FI_OP_TSEND:
    case FI_OP_TRECV:
        *ep    = work->op.tagged->ep;
        *flags = work->op.tagged->flags;
        return 0;
    case FI_OP_READ:
    case FI_OP_WRITE:
        *ep    = work->op.rma->ep;
        *flags = work->op.rma->flags;
        return 0;
    case FI_OP_ATOMIC:
        *ep    = work->op.atomic->ep;
        *flags = work->op.atomic->flags;
        return 0;
    case FI_OP_FETCH_ATOMIC:
        *ep    = work->op.fetch_atomic->ep;
        *flags = work->op.fetch_atomic->flags;
        return 0;
    case FI_OP_COMPARE_ATOMIC:
        *ep    = work->op.compare_atomic->ep;
        *flags = work->op.compare_atomic->flags;
        return 0;
    default:
        return -FI_EINVAL;
    }
}

/* The data that an atomic's operand is read from. */
static const void *cxiemu_work_ioc(const struct fi_ioc *ioc, size_t count)
{
    return ((ioc != NULL) && (count == 1)) ? ioc->addr : NULL;
}

static int cxiemu_work_fetch_atomic(cxiemu_ep_t *ep,
                                    const struct fi_op_fetch_atomic *from,
                                    uint64_t flags, cxiemu_dwq_entry_t *entry)
{
    int ret;

    entry->op.kind = CXIEMU_OP_FETCH_ATOMIC;
    ret            = cxiemu_op_from_atomic(ep, &from->msg, flags, &entry->op);
    if (ret != 0) {
        return ret;
    }
    entry->operand = cxiemu_work_ioc(from->msg.msg_iov, from->msg.iov_count);
    return cxiemu_op_set_result(&entry->op, from->fetch.msg_iov,
                                from->fetch.iov_count);
}

static int cxiemu_work_compare_atomic(cxiemu_ep_t *ep,
                                      const struct fi_op_compare_atomic *from,
                                      uint64_t flags,
                                      cxiemu_dwq_entry_t *entry)
{
    int ret;

    entry->op.kind = CXIEMU_OP_COMPARE_ATOMIC;
    ret            = cxiemu_op_from_atomic(ep, &from->msg, flags, &entry->op);
    if (ret != 0) {
        return ret;
    }
    ret = cxiemu_op_set_result(&entry->op, from->fetch.msg_iov,
                               from->fetch.iov_count);
    if (ret != 0) {
        return ret;
    }
    entry->operand = cxiemu_work_ioc(from->msg.msg_iov, from->msg.iov_count);
    entry->compare = cxiemu_work_ioc(from->compare.msg_iov,
                                     from->compare.iov_count);
    return cxiemu_op_set_compare(&entry->op, from->compare.msg_iov,
                                 from->compare.iov_count);
}

/* Turn the description of an operation on an endpoint into an entry. */
static int cxiemu_work_op(cxiemu_ep_t *ep, const struct fi_deferred_work *work,
                          uint64_t flags, cxiemu_dwq_entry_t *entry)
{
    const struct fi_msg_atomic *atomic;

    switch (work->op_type) {
    case FI_OP_SEND:
        entry->op.kind = CXIEMU_OP_SEND;
        return cxiemu_op_from_msg(ep, &work->op.msg->msg, flags, &entry->op);
    case FI_OP_TSEND:
        entry->op.kind = CXIEMU_OP_TSEND;
        return cxiemu_op_from_tagged(ep, &work->op.tagged->msg, flags,
                                     &entry->op);
    case FI_OP_READ:
    case FI_OP_WRITE:
        entry->op.kind = (work->op_type == FI_OP_READ) ? CXIEMU_OP_READ :
                                                         CXIEMU_OP_WRITE;
        return cxiemu_op_from_rma(ep, &work->op.rma->msg, flags, &entry->op);
    case FI_OP_ATOMIC:
        atomic         = &work->op.atomic->msg;
        entry->op.kind = CXIEMU_OP_ATOMIC;
        entry->operand = cxiemu_work_ioc(atomic->msg_iov, atomic->iov_count);
        return cxiemu_op_from_atomic(ep, atomic, flags, &entry->op);
    case FI_OP_FETCH_ATOMIC:
        return cxiemu_work_fetch_atomic(ep, work->op.fetch_atomic, flags,
                                        entry);
    case FI_OP_COMPARE_ATOMIC:
        return cxiemu_work_compare_atomic(ep, work->op.compare_atomic, flags,
                                          entry);
    default:
        return -FI_EINVAL;
    }
}

/* With CXI's flag, the trigger counter is written back one further on. */
static int cxiemu_work_add(cxiemu_nic_t *nic, cxiemu_dwq_entry_t *entry,
                           int write_back)
{
    size_t count = write_back ? 2 : 1;
    int ret;

    ret = cxiemu_dwq_prepare(nic, entry->trigger, count);
    if (ret != 0) {
        return ret;
    }
    ret = cxiemu_dwq_reserve(count);
    if (ret != 0) {
        return ret;
    }
    if (entry->op.ep != NULL) {
        ret = cxiemu_ep_take_tx(entry->op.ep);
        if (ret != 0) {
            cxiemu_dwq_release(count);
            return ret;
        }
    }

    cxiemu_dwq_insert(nic, entry);
    if (write_back) {
        cxiemu_dwq_insert(nic, &(cxiemu_dwq_entry_t){
                                       .trigger    = entry->trigger,
                                       .threshold  = entry->threshold + 1,
                                       .write_back = 1});
    }
    /* A threshold that has been met fires now */
    cxiemu_nic_progress(nic);
    return 0;
}

static int cxiemu_work_queue_op(cxiemu_domain_t *domain, cxiemu_ep_t *ep,
                                const struct fi_deferred_work *work,
                                uint64_t flags, cxiemu_dwq_entry_t *entry)
{
    cxiemu_nic_t *nic = domain->nic;
    int ret;

    if (flags & CXIEMU_WORK_REFUSED) {
        return -FI_EINVAL;
    }
    ret = cxiemu_work_op(ep, work, flags & ~CXIEMU_WORK_IGNORED, entry);
    if (ret != 0) {
        return ret;
    }

    cxiemu_nic_lock(nic);
    if (cxiemu_av_entry(ep->av, entry->op.dest) == NULL) {
        ret = -FI_EINVAL;
    } else {
        ret = cxiemu_work_add(nic, entry, !!(flags & CXIEMU_CXI_CNTR_WB));
    }
    cxiemu_nic_unlock(nic);
    return ret;
}

/* Cassini cannot trigger a receive: it is posted now, and only counts where the
 * work says. */
static int cxiemu_work_receive(cxiemu_ep_t *ep,
                               const struct fi_deferred_work *work,
                               uint64_t flags, cxiemu_cntr_t *completion)
{
    int is_tagged         = (work->op_type == FI_OP_TRECV);
    cxiemu_recv_req_t req = {0};
    int ret;

    if (work->threshold != 0) {
        return -FI_EINVAL;
    }

    flags &= ~CXIEMU_WORK_IGNORED;
    ret    = is_tagged ?
                     cxiemu_rx_from_tagged(ep, &work->op.tagged->msg, flags,
                                           &req) :
                     cxiemu_rx_from_msg(ep, &work->op.msg->msg, flags, &req);
    if (ret != 0) {
        return ret;
    }

    req.completion = completion;
    return cxiemu_ep_post_recv(is_tagged ? &ep->tagged : &ep->msg, &req);
}

/* Counters are changed without an endpoint; CXI has no completion for it. */
static int cxiemu_work_cntr(cxiemu_domain_t *domain,
                            const struct fi_deferred_work *work,
                            cxiemu_dwq_entry_t *entry)
{
    int ret;

    if ((work->op.cntr == NULL) || (work->completion_cntr != NULL) ||
        (work->op.cntr->value > CXIEMU_CNTR_SUCCESS_MAX)) {
        return -FI_EINVAL;
    }
    entry->target = cxiemu_cntr_from(domain, work->op.cntr->cntr);
    entry->value  = work->op.cntr->value;
    if (entry->target == NULL) {
        return -FI_EINVAL;
    }

    cxiemu_nic_lock(domain->nic);
    ret = cxiemu_work_add(domain->nic, entry, 0);
    cxiemu_nic_unlock(domain->nic);
    return ret;
}

static int cxiemu_work_ep(cxiemu_domain_t *domain, struct fid_ep *fid,
                          cxiemu_ep_t **ep_p)
{
    if (fid == NULL) {
        return -FI_EINVAL;
    }

    *ep_p = cxiemu_ep_from(fid);
    if (*ep_p == NULL) {
        return -FI_EOPBADSTATE;
    }
    return ((*ep_p)->domain == domain) ? 0 : -FI_EINVAL;
}

static int cxiemu_work_queue(cxiemu_domain_t *domain,
                             const struct fi_deferred_work *work)
{
    cxiemu_dwq_entry_t entry = {.threshold = work->threshold,
                                .type      = work->op_type};
    struct fid_ep *fid       = NULL;
    uint64_t flags           = 0;
    cxiemu_ep_t *ep;
    int ret;

    entry.trigger    = cxiemu_cntr_from(domain, work->triggering_cntr);
    entry.completion = cxiemu_cntr_from(domain, work->completion_cntr);
    if ((entry.trigger == NULL) ||
        ((work->completion_cntr != NULL) && (entry.completion == NULL)) ||
        (work->threshold > CXIEMU_CNTR_SUCCESS_MAX)) {
        return -FI_EINVAL;
    }
    if ((work->op_type == FI_OP_CNTR_SET) ||
        (work->op_type == FI_OP_CNTR_ADD)) {
        return cxiemu_work_cntr(domain, work, &entry);
    }

    ret = cxiemu_work_header(work, &fid, &flags);
    if (ret != 0) {
        return ret;
    }
    ret = cxiemu_work_ep(domain, fid, &ep);
    if (ret != 0) {
        return ret;
    }
    if ((work->op_type == FI_OP_RECV) || (work->op_type == FI_OP_TRECV)) {
        return cxiemu_work_receive(ep, work, flags, entry.completion);
    }
    return cxiemu_work_queue_op(domain, ep, work, flags, &entry);
}

/* Like CXI's: what waits is gone without a word, what runs is left alone. */
static int cxiemu_work_flush(cxiemu_domain_t *domain)
{
    cxiemu_nic_lock(domain->nic);
    cxiemu_nic_progress(domain->nic);
    cxiemu_dwq_cancel_all(domain->nic);
    cxiemu_nic_unlock(domain->nic);
    return 0;
}

int cxiemu_dwq_control(cxiemu_domain_t *domain, int command, void *arg)
{
    if ((command != FI_FLUSH_WORK) && (arg == NULL)) {
        return -FI_EINVAL;
    }

    switch (command) {
    case FI_QUEUE_WORK:
        return cxiemu_work_queue(domain, arg);
    case FI_FLUSH_WORK:
        return cxiemu_work_flush(domain);
    default:
        return -FI_EINVAL; /* FI_CANCEL_WORK too */
    }
}
