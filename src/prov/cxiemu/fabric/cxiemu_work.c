/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_work.c - fi_control() of a domain: deferred work as it is described.
 *
 * Refused is what CXI refuses; descriptions may be reused when this returns.
 */
#include "fabric/cxiemu_fabric.h"
#include "op/cxiemu_dwq.h"
#include "run/cxiemu_wait.h"

#include <rdma/fi_errno.h>


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

/* How long FI_FLUSH_WORK waits for what is under way, milliseconds: to a
 * process that is stopped it may be that for ever, as each carries out what is
 * its own. A NIC waits as long as it takes. */
#define CXIEMU_WORK_FLUSH_MS 200


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

static int cxiemu_work_atomic(cxiemu_ep_t *ep,
                              const struct fi_deferred_work *work,
                              uint64_t flags, cxiemu_dwq_entry_t *entry)
{
    const struct fi_msg_atomic *msg    = &work->op.atomic->msg;
    const struct fi_msg_fetch *fetch   = NULL;
    const struct fi_msg_compare *other = NULL;
    int ret;

    if (work->op_type == FI_OP_FETCH_ATOMIC) {
        msg   = &work->op.fetch_atomic->msg;
        fetch = &work->op.fetch_atomic->fetch;
    } else if (work->op_type == FI_OP_COMPARE_ATOMIC) {
        msg   = &work->op.compare_atomic->msg;
        fetch = &work->op.compare_atomic->fetch;
        other = &work->op.compare_atomic->compare;
    }
    ret = cxiemu_op_from_atomic(ep, msg, flags, &entry->op);
    if ((ret == 0) && (fetch != NULL)) {
        ret = cxiemu_op_set_result(&entry->op, fetch->msg_iov,
                                   fetch->iov_count);
    }
    if ((ret == 0) && (other != NULL)) {
        ret = cxiemu_op_set_compare(&entry->op, other->msg_iov,
                                    other->iov_count);
    }
    if (ret != 0) {
        return ret;
    }
    /* What is only read may have no operand */
    if ((msg->msg_iov != NULL) && (msg->iov_count == 1)) {
        entry->operand = entry->op.buffer;
    }
    if (other != NULL) {
        entry->compare = entry->op.other;
    }
    return 0;
}

/* Turn the description of an operation on an endpoint into an entry. */
static int cxiemu_work_op(cxiemu_ep_t *ep, const struct fi_deferred_work *work,
                          uint64_t flags, cxiemu_dwq_entry_t *entry)
{
    static const cxiemu_op_kind_t kinds[] = {
        [FI_OP_SEND]           = CXIEMU_OP_SEND,
        [FI_OP_TSEND]          = CXIEMU_OP_TSEND,
        [FI_OP_READ]           = CXIEMU_OP_READ,
        [FI_OP_WRITE]          = CXIEMU_OP_WRITE,
        [FI_OP_ATOMIC]         = CXIEMU_OP_ATOMIC,
        [FI_OP_FETCH_ATOMIC]   = CXIEMU_OP_FETCH_ATOMIC,
        [FI_OP_COMPARE_ATOMIC] = CXIEMU_OP_COMPARE_ATOMIC
    };
    struct fi_msg_tagged tagged;

    entry->op.kind = kinds[work->op_type];
    switch (work->op_type) {
    case FI_OP_SEND:
        return cxiemu_op_from_tagged(
                ep, cxiemu_msg_widen(&work->op.msg->msg, &tagged), flags,
                &entry->op);
    case FI_OP_TSEND:
        return cxiemu_op_from_tagged(ep, &work->op.tagged->msg, flags,
                                     &entry->op);
    case FI_OP_READ:
    case FI_OP_WRITE:
        return cxiemu_op_from_rma(ep, &work->op.rma->msg, flags, &entry->op);
    default:
        return cxiemu_work_atomic(ep, work, flags, entry);
    }
}

/* What Cassini needs for an operation: a command of two slots and one entry;
 * the flush behind a fetching atomic that is to be delivered is another one. A
 * command for a counter has one slot. */
static void cxiemu_work_size(cxiemu_dwq_entry_t *entry)
{
    int is_flushed = (entry->op.ep != NULL) &&
                     (entry->op.kind >= CXIEMU_OP_FETCH_ATOMIC) &&
                     (entry->op.flags & FI_DELIVERY_COMPLETE);

    entry->entries = is_flushed ? 2 : 1;
    entry->slots   = (entry->op.ep == NULL) ? 1 : (2 * entry->entries);
}

/* With CXI's flag, the trigger counter is written back one further on. */
static int cxiemu_work_add(cxiemu_nic_t *nic, cxiemu_dwq_entry_t *entry,
                           int write_back)
{
    int strict              = cxiemu_param()->strict;
    cxiemu_dwq_entry_t more = {.trigger       = entry->trigger,
                               .due.threshold = entry->due.threshold + 1,
                               .write_back    = 1,
                               .entries       = 1,
                               .slots         = 1};
    size_t count;
    int ret;

    cxiemu_work_size(entry);
    ret = cxiemu_dwq_prepare(nic, entry->trigger, write_back ? 2 : 1);
    if (ret != 0) {
        return ret;
    }
    count = entry->entries + (size_t)(write_back ? more.entries : 0);
    ret   = strict ? cxiemu_dwq_room(nic, entry->slots +
                                     (size_t)(write_back ? more.slots : 0)) :
                     cxiemu_dwq_reserve(count);
    if (ret != 0) {
        return ret;
    }
    if (entry->op.ep != NULL) {
        ret = cxiemu_ep_take_tx(entry->op.ep);
        if (ret != 0) {
            if (!strict) {
                cxiemu_dwq_release(count);
            }
            return ret;
        }
    }

    (strict ? cxiemu_dwq_submit : cxiemu_dwq_insert)(nic, entry);
    if (write_back) {
        (strict ? cxiemu_dwq_submit : cxiemu_dwq_insert)(nic, &more);
    }
    /* A threshold that has been met fires now */
    cxiemu_nic_progress(nic);
    return 0;
}

/* Cassini cannot trigger a receive: it is posted now, and only counts where the
 * work says. */
static int cxiemu_work_receive(cxiemu_ep_t *ep,
                               const struct fi_deferred_work *work,
                               uint64_t flags, cxiemu_cntr_t *completion)
{
    int is_tagged         = (work->op_type == FI_OP_TRECV);
    cxiemu_rx_t *rx       = is_tagged ? &ep->tagged : &ep->msg;
    cxiemu_recv_req_t req = {0};
    struct fi_msg_tagged tagged;
    int ret;

    if (work->threshold != 0) {
        return -FI_EINVAL;
    }

    flags &= ~CXIEMU_WORK_IGNORED;
    ret    = cxiemu_rx_from_tagged(
            rx,
            is_tagged ? &work->op.tagged->msg :
                        cxiemu_msg_widen(&work->op.msg->msg, &tagged),
            flags, &req);
    if (ret != 0) {
        return ret;
    }

    req.flags     &= ~FI_COMPLETION | flags;
    req.completion = completion;
    return cxiemu_ep_post_recv(rx, &req);
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

static int cxiemu_work_queue(cxiemu_domain_t *domain,
                             const struct fi_deferred_work *work)
{
    cxiemu_dwq_entry_t entry = {.due.threshold = work->threshold,
                                .type          = work->op_type};
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
    if (fid == NULL) {
        return -FI_EINVAL;
    }
    ep = cxiemu_ep_from(fid);
    if (ep == NULL) {
        return -FI_EOPBADSTATE;
    }
    if (ep->domain != domain) {
        return -FI_EINVAL;
    }
    if ((work->op_type == FI_OP_RECV) || (work->op_type == FI_OP_TRECV)) {
        return cxiemu_work_receive(ep, work, flags, entry.completion);
    }
    /* The queue of CXI's deferred work has the domain's traffic class */
    if ((flags & CXIEMU_WORK_REFUSED) || (ep->tclass != domain->tclass)) {
        return -FI_EINVAL;
    }
    ret = cxiemu_work_op(ep, work, flags & ~CXIEMU_WORK_IGNORED, &entry);
    if (ret != 0) {
        cxiemu_op_unmap(&entry.op);
        return ret;
    }
    /* CXI takes the flags as they are, whatever the endpoint's queue reports */
    entry.op.flags &= ~FI_COMPLETION | flags;

    cxiemu_nic_lock(domain->nic);
    ret = (cxiemu_av_entry(ep->av, entry.op.dest) == NULL) ?
                  -FI_EINVAL :
                  cxiemu_work_add(domain->nic, &entry,
                                  !!(flags & CXIEMU_CXI_CNTR_WB));
    cxiemu_nic_unlock(domain->nic);
    if (ret != 0) {
        cxiemu_op_unmap(&entry.op); /* Else they are the queue's now */
    }
    return ret;
}

/* Drops all that waits, once what was started is over: FI_FLUSH_WORK. 0; or
 * -FI_EAGAIN, with no effect, if that takes long. */
static int cxiemu_work_flush(cxiemu_nic_t *nic)
{
    int ret = -FI_EAGAIN;

    cxiemu_nic_lock(nic);
    if (!nic->is_flushing) { /* Else another thread, which waits below */
        (void)cxiemu_nic_progress(nic);
        nic->is_flushing = 1;
        ret              = cxiemu_nic_wait(nic, cxiemu_dwq_is_settled, nic,
                                           CXIEMU_WORK_FLUSH_MS);
        nic->is_flushing = 0;
        if (ret != 0) {
            (void)cxiemu_nic_progress(nic);
            ret = -FI_EAGAIN;
        } else {
            cxiemu_dwq_drop_all(nic);
        }
    }
    cxiemu_nic_unlock(nic);
    return ret;
}

int cxiemu_dwq_control(struct fid *fid, int command, void *arg)
{
    cxiemu_domain_t *domain = container_of(fid, cxiemu_domain_t, fid.fid);

    if ((command != FI_FLUSH_WORK) && (arg == NULL)) {
        return -FI_EINVAL;
    }

    switch (command) {
    case FI_QUEUE_WORK:
        return cxiemu_work_queue(domain, arg);
    case FI_FLUSH_WORK:
        /* As CXI: what waits is dropped and not reported, what runs is
         * waited for */
        return cxiemu_work_flush(domain->nic);
    default:
        return cxiemu_ext_control(domain, command, arg); /* no FI_CANCEL_WORK */
    }
}
