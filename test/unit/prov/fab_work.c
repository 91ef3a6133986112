/* SPDX-License-Identifier: BSD-3-Clause */
/* fab_work.c - describes and queues deferred work. */
#include "fab_work.h"

#include <stdlib.h>
#include <string.h>


fab_place_t fab_there(const fab_side_t *me, uint64_t offset)
{
    fab_place_t place = {
        .addr   = me->peer,
        .remote = me->theirs.base + offset,
        .key    = me->theirs.key
    };

    return place;
}

fab_place_t fab_here(const fab_side_t *me, uint64_t offset)
{
    fab_place_t place = {
        .addr   = me->self,
        .remote = me->mine.base + offset,
        .key    = me->mine.key
    };

    return place;
}

fab_work_t *fab_works(fab_side_t *me, size_t count)
{
    fab_work_t *works = calloc(count, sizeof(*works));

    FAB_REQUIRE(works != NULL);
    (void)me;
    return works;
}

/* Nothing but what it is, and its local memory */
static void fab_work_begin(fab_work_t *work, enum fi_op_type type,
                           const void *data, size_t length)
{
    memset(work, 0, sizeof(*work));
    work->work.op_type = type;
    work->iov.iov_base = (void*)data;
    work->iov.iov_len  = length;
}

static void fab_work_rma(fab_side_t *me, fab_work_t *work, fab_place_t place)
{
    work->rma_iov.addr = place.remote;
    work->rma_iov.len  = work->iov.iov_len;
    work->rma_iov.key  = place.key;
    work->op.rma.ep    = me->ep;
    work->op.rma.msg   = (struct fi_msg_rma) {
        .msg_iov       = &work->iov,
        .iov_count     = 1,
        .addr          = place.addr,
        .rma_iov       = &work->rma_iov,
        .rma_iov_count = 1,
        .context       = &work->work.context
    };
    work->work.op.rma  = &work->op.rma;
}

void fab_work_write(fab_side_t *me, fab_work_t *work, const void *data,
                    size_t length, fab_place_t to)
{
    fab_work_begin(work, FI_OP_WRITE, data, length);
    fab_work_rma(me, work, to);
}

void fab_work_read(fab_side_t *me, fab_work_t *work, void *data, size_t length,
                   fab_place_t from)
{
    fab_work_begin(work, FI_OP_READ, data, length);
    fab_work_rma(me, work, from);
}

static void fab_work_atomic(fab_work_t *work, struct fi_msg_atomic *msg,
                            enum fi_op op, fab_place_t to)
{
    work->ioc.addr      = &work->operand;
    work->ioc.count     = 1;
    work->rma_ioc.addr  = to.remote;
    work->rma_ioc.count = 1;
    work->rma_ioc.key   = to.key;
    *msg                = (struct fi_msg_atomic) {
        .msg_iov       = &work->ioc,
        .iov_count     = 1,
        .addr          = to.addr,
        .rma_iov       = &work->rma_ioc,
        .rma_iov_count = 1,
        .datatype      = FI_UINT64,
        .op            = op,
        .context       = &work->work.context
    };
}

void fab_work_add(fab_side_t *me, fab_work_t *work, uint64_t operand,
                  fab_place_t to)
{
    memset(work, 0, sizeof(*work));
    work->operand        = operand;
    work->work.op_type   = FI_OP_ATOMIC;
    work->work.op.atomic = &work->op.atomic;
    work->op.atomic.ep   = me->ep;
    fab_work_atomic(work, &work->op.atomic.msg, FI_SUM, to);
}

void fab_work_fetch_add(fab_side_t *me, fab_work_t *work, uint64_t operand,
                        fab_place_t to)
{
    memset(work, 0, sizeof(*work));
    work->operand               = operand;
    work->work.op_type          = FI_OP_FETCH_ATOMIC;
    work->work.op.fetch_atomic  = &work->op.fetch;
    work->op.fetch.ep           = me->ep;
    work->result_ioc.addr       = &work->result;
    work->result_ioc.count      = 1;
    work->op.fetch.fetch.msg_iov   = &work->result_ioc;
    work->op.fetch.fetch.iov_count = 1;
    fab_work_atomic(work, &work->op.fetch.msg, FI_SUM, to);
}

void fab_work_swap(fab_side_t *me, fab_work_t *work, uint64_t compare,
                   uint64_t operand, fab_place_t to)
{
    memset(work, 0, sizeof(*work));
    work->operand                 = operand;
    work->compare                 = compare;
    work->work.op_type            = FI_OP_COMPARE_ATOMIC;
    work->work.op.compare_atomic  = &work->op.compare;
    work->op.compare.ep           = me->ep;
    work->result_ioc.addr         = &work->result;
    work->result_ioc.count        = 1;
    work->compare_ioc.addr        = &work->compare;
    work->compare_ioc.count       = 1;
    work->op.compare.fetch.msg_iov     = &work->result_ioc;
    work->op.compare.fetch.iov_count   = 1;
    work->op.compare.compare.msg_iov   = &work->compare_ioc;
    work->op.compare.compare.iov_count = 1;
    fab_work_atomic(work, &work->op.compare.msg, FI_CSWAP, to);
}

static void fab_work_msg(fab_side_t *me, fab_work_t *work, fi_addr_t addr)
{
    work->work.op.msg = &work->op.msg;
    work->op.msg.ep   = me->ep;
    work->op.msg.msg  = (struct fi_msg) {
        .msg_iov   = &work->iov,
        .iov_count = 1,
        .addr      = addr,
        .context   = &work->work.context
    };
}

static void fab_work_tagged(fab_side_t *me, fab_work_t *work, fi_addr_t addr,
                            uint64_t tag)
{
    work->work.op.tagged = &work->op.tagged;
    work->op.tagged.ep   = me->ep;
    work->op.tagged.msg  = (struct fi_msg_tagged) {
        .msg_iov   = &work->iov,
        .iov_count = 1,
        .addr      = addr,
        .tag       = tag,
        .context   = &work->work.context
    };
}

void fab_work_send(fab_side_t *me, fab_work_t *work, const void *data,
                   size_t length)
{
    fab_work_begin(work, FI_OP_SEND, data, length);
    fab_work_msg(me, work, me->peer);
}

void fab_work_tsend(fab_side_t *me, fab_work_t *work, const void *data,
                    size_t length, uint64_t tag)
{
    fab_work_begin(work, FI_OP_TSEND, data, length);
    fab_work_tagged(me, work, me->peer, tag);
}

void fab_work_recv(fab_side_t *me, fab_work_t *work, void *data, size_t length)
{
    fab_work_begin(work, FI_OP_RECV, data, length);
    fab_work_msg(me, work, FI_ADDR_UNSPEC);
}

void fab_work_trecv(fab_side_t *me, fab_work_t *work, void *data,
                    size_t length, uint64_t tag)
{
    fab_work_begin(work, FI_OP_TRECV, data, length);
    fab_work_tagged(me, work, FI_ADDR_UNSPEC, tag);
}

void fab_work_count(fab_work_t *work, enum fi_op_type type,
                    struct fid_cntr *cntr, uint64_t value)
{
    memset(work, 0, sizeof(*work));
    work->work.op_type  = type;
    work->work.op.cntr  = &work->op.cntr;
    work->op.cntr.cntr  = cntr;
    work->op.cntr.value = value;
}

fab_when_t fab_at(struct fid_cntr *trigger, uint64_t threshold,
                  struct fid_cntr *completion)
{
    fab_when_t when = {
        .trigger    = trigger,
        .threshold  = threshold,
        .completion = completion
    };

    return when;
}

int fab_queue(fab_side_t *me, fab_work_t *work, fab_when_t when)
{
    unsigned tries = 0;
    int ret;

    work->work.triggering_cntr = when.trigger;
    work->work.threshold       = when.threshold;
    work->work.completion_cntr = when.completion;
    do {
        ret = fi_control(&me->domain->fid, FI_QUEUE_WORK, &work->work);
    } while ((ret == -FI_EAGAIN) && (++tries < FAB_QUEUE_TRIES));
    return ret;
}
