/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_amo.c - atomics of 32 and 64 bits.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_amo.h"
#include "cxi_trig_ep.h"
#include "cxi_trig_tx.h"

#include <ucs/debug/log.h>

#include <rdma/fi_atomic.h>

#include <inttypes.h>
#include <string.h>


/* What UCT's functions are given. */
typedef struct uct_cxi_trig_amo_args {
    unsigned            opcode;
    uct_cxi_trig_word_t operand;
    uct_cxi_trig_word_t compare;
    void                *result;
    uint64_t            remote_addr;
    uct_rkey_t          rkey;
    uct_completion_t    *comp;
} uct_cxi_trig_amo_args_t;


static const enum fi_op uct_cxi_trig_amo_ops[] = {
    [UCT_ATOMIC_OP_ADD]   = FI_SUM,
    [UCT_ATOMIC_OP_AND]   = FI_BAND,
    [UCT_ATOMIC_OP_OR]    = FI_BOR,
    [UCT_ATOMIC_OP_XOR]   = FI_BXOR,
    [UCT_ATOMIC_OP_SWAP]  = FI_ATOMIC_WRITE,
    [UCT_ATOMIC_OP_CSWAP] = FI_CSWAP
};


static int uct_cxi_trig_amo_has(struct fid_ep *ep, enum fi_datatype type,
                                unsigned opcode, int is_fetch)
{
    enum fi_op op = uct_cxi_trig_amo_ops[opcode];
    size_t count  = 0;
    int ret;

    if (!is_fetch) {
        ret = fi_atomicvalid(ep, type, op, &count);
    } else if (opcode == UCT_ATOMIC_OP_CSWAP) {
        ret = fi_compare_atomicvalid(ep, type, op, &count);
    } else {
        ret = fi_fetch_atomicvalid(ep, type, op, &count);
    }
    return (ret == 0) && (count > 0);
}

static uct_cxi_trig_amo_caps_t uct_cxi_trig_amo_ask(struct fid_ep *ep,
                                                    enum fi_datatype type)
{
    uct_cxi_trig_amo_caps_t caps = {0, 0};
    unsigned opcode;

    for (opcode = 0; opcode < UCT_ATOMIC_OP_LAST; ++opcode) {
        /* UCT brings back what it swaps */
        if ((opcode < UCT_ATOMIC_OP_SWAP) &&
            uct_cxi_trig_amo_has(ep, type, opcode, 0)) {
            caps.post |= UCS_BIT(opcode);
        }
        if (uct_cxi_trig_amo_has(ep, type, opcode, 1)) {
            caps.fetch |= UCS_BIT(opcode);
        }
    }
    return caps;
}

void uct_cxi_trig_amo_init(uct_cxi_trig_iface_t *iface)
{
    iface->caps.amo32 = uct_cxi_trig_amo_ask(iface->net.ep, FI_UINT32);
    iface->caps.amo64 = uct_cxi_trig_amo_ask(iface->net.ep, FI_UINT64);
}


/* A call of libfabric, with what it points to. */
typedef struct uct_cxi_trig_amo_call {
    struct fi_ioc        operand;
    struct fi_ioc        compare;
    struct fi_ioc        old;
    struct fi_rma_ioc    target;
    struct fi_msg_atomic msg;
} uct_cxi_trig_amo_call_t;

static void uct_cxi_trig_amo_fill(uct_cxi_trig_amo_call_t *call,
                                  uct_cxi_trig_tx_op_t *op)
{
    call->operand = (struct fi_ioc){.addr = &op->amo.operand, .count = 1};
    call->compare = (struct fi_ioc){.addr = &op->amo.compare, .count = 1};
    call->old     = (struct fi_ioc){.addr = &op->amo.old, .count = 1};
    call->target  = (struct fi_rma_ioc){
        .addr  = op->remote.addr,
        .count = 1,
        .key   = op->remote.key
    };
    call->msg     = (struct fi_msg_atomic){
        .msg_iov       = &call->operand,
        .iov_count     = 1,
        .addr          = op->peer->memory,
        .rma_iov       = &call->target,
        .rma_iov_count = 1,
        .datatype      = op->amo.type,
        .op            = op->amo.op,
        .context       = &op->req
    };
}

static ssize_t uct_cxi_trig_amo_post_plain(uct_cxi_trig_tx_op_t *op)
{
    uct_cxi_trig_amo_call_t call;

    uct_cxi_trig_amo_fill(&call, op);
    return fi_atomicmsg(op->peer->iface->net.ep, &call.msg,
                        FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

/* What was there comes back after the target has changed: delivery need not be
 * asked for, which the cxi provider gets wrong for these. */
static ssize_t uct_cxi_trig_amo_post_fetch(uct_cxi_trig_tx_op_t *op)
{
    uct_cxi_trig_amo_call_t call;

    uct_cxi_trig_amo_fill(&call, op);
    return fi_fetch_atomicmsg(op->peer->iface->net.ep, &call.msg, &call.old,
                              NULL, 1, FI_COMPLETION);
}

static ssize_t uct_cxi_trig_amo_post_cswap(uct_cxi_trig_tx_op_t *op)
{
    uct_cxi_trig_amo_call_t call;

    uct_cxi_trig_amo_fill(&call, op);
    return fi_compare_atomicmsg(op->peer->iface->net.ep, &call.msg,
                                &call.compare, NULL, 1, &call.old, NULL, 1,
                                FI_COMPLETION);
}

static void uct_cxi_trig_amo_finish(uct_cxi_trig_tx_op_t *op)
{
    memcpy(op->amo.result, &op->amo.old, op->length);
}

static const uct_cxi_trig_tx_kind_t uct_cxi_trig_amo_plain = {
    .post     = uct_cxi_trig_amo_post_plain,
    .finish   = uct_cxi_trig_tx_finish_none,
    .is_zcopy = 0,
    .is_rma   = 1,
    .stat     = UCT_TRIG_STATS_ATOMIC
};

static const uct_cxi_trig_tx_kind_t uct_cxi_trig_amo_fetch = {
    .post     = uct_cxi_trig_amo_post_fetch,
    .finish   = uct_cxi_trig_amo_finish,
    .is_zcopy = 0,
    .is_rma   = 1,
    .stat     = UCT_TRIG_STATS_ATOMIC
};

static const uct_cxi_trig_tx_kind_t uct_cxi_trig_amo_cswap = {
    .post     = uct_cxi_trig_amo_post_cswap,
    .finish   = uct_cxi_trig_amo_finish,
    .is_zcopy = 0,
    .is_rma   = 1,
    .stat     = UCT_TRIG_STATS_ATOMIC
};

/* Whether the provider has the operation, in the form that is asked for. */
static int uct_cxi_trig_amo_is_valid(const uct_cxi_trig_amo_caps_t *caps,
                                     const uct_cxi_trig_tx_kind_t *kind,
                                     unsigned opcode)
{
    uint64_t ops = (kind == &uct_cxi_trig_amo_plain) ? caps->post : caps->fetch;

    return (opcode < UCT_ATOMIC_OP_LAST) && (ops & UCS_BIT(opcode)) &&
           ((opcode == UCT_ATOMIC_OP_CSWAP) ==
            (kind == &uct_cxi_trig_amo_cswap));
}

static ucs_status_t uct_cxi_trig_amo_start(uct_ep_h uct_ep,
                                           enum fi_datatype type,
                                           const uct_cxi_trig_tx_kind_t *kind,
                                           const uct_cxi_trig_amo_args_t *args)
{
    uct_cxi_trig_ep_t *ep       = ucs_derived_of(uct_ep, uct_cxi_trig_ep_t);
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_ep_iface(ep);
    int is_64                   = (type == FI_UINT64);
    uct_cxi_trig_tx_op_t *op;
    ucs_status_t status;

    if (!uct_cxi_trig_amo_is_valid(is_64 ? &iface->caps.amo64 :
                                           &iface->caps.amo32,
                                   kind, args->opcode)) {
        return UCS_ERR_UNSUPPORTED;
    }

    status = uct_cxi_trig_tx_get(ep, kind, &op);
    if (status != UCS_OK) {
        return status;
    }

    uct_cxi_trig_tx_set_remote(op, args->remote_addr, args->rkey);
    op->amo.type    = type;
    op->amo.op      = uct_cxi_trig_amo_ops[args->opcode];
    op->amo.operand = args->operand;
    op->amo.compare = args->compare;
    op->amo.result  = args->result;
    UCT_TL_EP_STAT_ATOMIC(&ep->super);
    ucs_trace_data("TX: ATOMIC%d op %u to 0x%" PRIx64, is_64 ? 64 : 32,
                   args->opcode, args->remote_addr);
    return uct_cxi_trig_tx_start(op, is_64 ? sizeof(uint64_t) :
                                             sizeof(uint32_t), args->comp);
}

/* Nothing will be told of it: to UCT it is done. */
static ucs_status_t uct_cxi_trig_amo_post(uct_ep_h ep, enum fi_datatype type,
                                          const uct_cxi_trig_amo_args_t *args)
{
    ucs_status_t status = uct_cxi_trig_amo_start(ep, type,
                                                 &uct_cxi_trig_amo_plain, args);

    return (status == UCS_INPROGRESS) ? UCS_OK : status;
}

ucs_status_t uct_cxi_trig_ep_atomic32_post(uct_ep_h ep, unsigned opcode,
                                           uint32_t value, uint64_t remote_addr,
                                           uct_rkey_t rkey)
{
    uct_cxi_trig_amo_args_t args = {
        .opcode       = opcode,
        .operand.u32  = value,
        .remote_addr  = remote_addr,
        .rkey         = rkey
    };

    return uct_cxi_trig_amo_post(ep, FI_UINT32, &args);
}

ucs_status_t uct_cxi_trig_ep_atomic32_fetch(uct_ep_h ep, unsigned opcode,
                                            uint32_t value, uint32_t *result,
                                            uint64_t remote_addr,
                                            uct_rkey_t rkey,
                                            uct_completion_t *comp)
{
    uct_cxi_trig_amo_args_t args = {
        .opcode       = opcode,
        .operand.u32  = value,
        .result       = result,
        .remote_addr  = remote_addr,
        .rkey         = rkey,
        .comp         = comp
    };

    return uct_cxi_trig_amo_start(ep, FI_UINT32, &uct_cxi_trig_amo_fetch,
                                  &args);
}

ucs_status_t uct_cxi_trig_ep_atomic_cswap32(uct_ep_h ep, uint32_t compare,
                                            uint32_t swap, uint64_t remote_addr,
                                            uct_rkey_t rkey, uint32_t *result,
                                            uct_completion_t *comp)
{
    uct_cxi_trig_amo_args_t args = {
        .opcode       = UCT_ATOMIC_OP_CSWAP,
        .operand.u32  = swap,
        .compare.u32  = compare,
        .result       = result,
        .remote_addr  = remote_addr,
        .rkey         = rkey,
        .comp         = comp
    };

    return uct_cxi_trig_amo_start(ep, FI_UINT32, &uct_cxi_trig_amo_cswap,
                                  &args);
}

ucs_status_t uct_cxi_trig_ep_atomic64_post(uct_ep_h ep, unsigned opcode,
                                           uint64_t value, uint64_t remote_addr,
                                           uct_rkey_t rkey)
{
    uct_cxi_trig_amo_args_t args = {
        .opcode       = opcode,
        .operand.u64  = value,
        .remote_addr  = remote_addr,
        .rkey         = rkey
    };

    return uct_cxi_trig_amo_post(ep, FI_UINT64, &args);
}

ucs_status_t uct_cxi_trig_ep_atomic64_fetch(uct_ep_h ep, unsigned opcode,
                                            uint64_t value, uint64_t *result,
                                            uint64_t remote_addr,
                                            uct_rkey_t rkey,
                                            uct_completion_t *comp)
{
    uct_cxi_trig_amo_args_t args = {
        .opcode       = opcode,
        .operand.u64  = value,
        .result       = result,
        .remote_addr  = remote_addr,
        .rkey         = rkey,
        .comp         = comp
    };

    return uct_cxi_trig_amo_start(ep, FI_UINT64, &uct_cxi_trig_amo_fetch,
                                  &args);
}

ucs_status_t uct_cxi_trig_ep_atomic_cswap64(uct_ep_h ep, uint64_t compare,
                                            uint64_t swap, uint64_t remote_addr,
                                            uct_rkey_t rkey, uint64_t *result,
                                            uct_completion_t *comp)
{
    uct_cxi_trig_amo_args_t args = {
        .opcode       = UCT_ATOMIC_OP_CSWAP,
        .operand.u64  = swap,
        .compare.u64  = compare,
        .result       = result,
        .remote_addr  = remote_addr,
        .rkey         = rkey,
        .comp         = comp
    };

    return uct_cxi_trig_amo_start(ep, FI_UINT64, &uct_cxi_trig_amo_cswap,
                                  &args);
}
