/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_ep.h - endpoints.
 */
#ifndef CXIEMU_EP_H_
#define CXIEMU_EP_H_

#include "obj/cxiemu_av.h"
#include "obj/cxiemu_cntr.h"
#include "obj/cxiemu_cq.h"
#include "op/cxiemu_rx.h"
#include "op/cxiemu_txop.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>


/** What a program has of an endpoint: its own handle, or an alias. */
typedef struct cxiemu_handle {
    struct fid_ep    fid;
    struct cxiemu_ep *ep;
    uint64_t         tx_flags; /**< Default op_flags */
    uint64_t         rx_flags;
} cxiemu_handle_t;

typedef struct cxiemu_ep {
    cxiemu_handle_t own;
    cxiemu_domain_t *domain;
    cxiemu_av_t     *av;
    uint16_t        number;
    int             enabled;
    uint64_t        caps;
    uint64_t        tx_order;  /**< msg_order */
    uint32_t        tclass;    /**< Traffic class */
    size_t          tx_size;
    size_t          tx_used;   /**< Operations under way or in tx_done */
    size_t          tx_done;   /**< Over; the user's progress, as CXI's, gives
                                    their places back (strict mode) */
    size_t          min_multi_recv;
    cxiemu_cq_t     *tx_cq;
    cxiemu_cq_t     *rx_cq;
    int             tx_selective; /**< Completions only where FI_COMPLETION */
    int             rx_selective;
    cxiemu_cntr_t   *tx_cntr;    /**< FI_SEND */
    cxiemu_cntr_t   *rx_cntr;    /**< FI_RECV */
    cxiemu_cntr_t   *write_cntr; /**< FI_WRITE */
    cxiemu_cntr_t   *read_cntr;  /**< FI_READ */
    cxiemu_cntr_t   *rem_write_cntr; /**< Accepted; never counts */
    cxiemu_cntr_t   *rem_read_cntr;
    cxiemu_rx_t     msg;
    cxiemu_rx_t     tagged;
    struct cxiemu_mr *cached;  /**< Stands for all memory that cached keys
                                    reach; NULL: none has been given out */
    unsigned        refs;      /**< Regions bound to it, deferred work,
                                    aliases */
} cxiemu_ep_t;

/** Take a place of the transmit queue; 0, or -FI_EAGAIN. Lock held. */
int cxiemu_ep_take_tx(cxiemu_ep_t *ep);
void cxiemu_ep_give_tx(cxiemu_ep_t *ep);

/** An operation is over, and its place is given back by the user's next
 *  progress. Lock held. */
void cxiemu_ep_done_tx(cxiemu_ep_t *ep);

/** The user has made progress by a queue or a counter: endpoints that it is
 *  bound to get their places back. Lock held. */
void cxiemu_ep_progressed(cxiemu_domain_t *domain, const void *object);

static inline cxiemu_handle_t *cxiemu_ep_handle(struct fid *fid)
{
    return container_of(fid, cxiemu_handle_t, fid.fid);
}

/** The endpoint behind a handle if it is enabled, else NULL. */
cxiemu_ep_t *cxiemu_ep_from(struct fid_ep *fid);

/** How an operation is posted. */
typedef enum {
    CXIEMU_CALL_FLAGS, /**< With flags */
    CXIEMU_CALL_PLAIN, /**< Without: the handle's default flags are added */
    CXIEMU_CALL_INJECT /**< FI_INJECT is added, and there is no entry in the
                            completion queue unless it fails */
} cxiemu_call_t;

/** The flags of an operation that is posted so by this handle. */
uint64_t cxiemu_op_flags(struct fid_ep *fid, cxiemu_op_kind_t kind,
                         cxiemu_call_t call, uint64_t flags);

/** Start an operation that cxiemu_op_from_*() made, as cxiemu_txop_start(). No
 *  lock. */
ssize_t cxiemu_ep_post(cxiemu_op_t *op, cxiemu_call_t call);

/** Post a receive that cxiemu_rx_from_*() made, as cxiemu_rx_post(), and see to
 *  what a message that was there before it sets off. No lock. */
int cxiemu_ep_post_recv(cxiemu_rx_t *rx, const cxiemu_recv_req_t *req);

/* Operation tables of endpoints */
extern struct fi_ops_msg    cxiemu_msg_ops;
extern struct fi_ops_tagged cxiemu_tagged_ops;
extern struct fi_ops_rma    cxiemu_rma_ops;
extern struct fi_ops_atomic cxiemu_atomic_ops;

/** Flags that operations take, but FI_INJECT, FI_REMOTE_CQ_DATA. */
#define CXIEMU_OP_FLAGS (FI_COMPLETION | FI_MORE | FI_FENCE | \
                         FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
                         FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)

/** Flags that receives take; CXI has no use for most of them. */
#define CXIEMU_RECV_FLAGS (FI_COMPLETION | FI_MULTI_RECV | FI_MORE | \
                           FI_REMOTE_CQ_DATA | FI_INJECT)

/** What all operations have in common: whether the endpoint has the capability
 *  @a cap, and takes @a flags; 0, or -FI_E*. */
int cxiemu_op_check(const cxiemu_ep_t *ep, uint64_t cap, uint64_t flags,
                    uint64_t allowed);

/** Turn libfabric's descriptions into an operation, refusing what CXI refuses;
 *  0, or -FI_E*. The same code serves posting and deferred work. The caller has
 *  set op->kind (which is all that tells a read from a write, and an atomic
 *  from a fetching one); everything else is set here.
 *  @a flags: the call's, with the handle's defaults where it takes them;
 *  FI_COMPLETION is added unless completions are selective. */
int cxiemu_op_from_tagged(cxiemu_ep_t *ep, const struct fi_msg_tagged *msg,
                          uint64_t flags, cxiemu_op_t *op);
int cxiemu_op_from_rma(cxiemu_ep_t *ep, const struct fi_msg_rma *msg,
                       uint64_t flags, cxiemu_op_t *op);
int cxiemu_op_from_atomic(cxiemu_ep_t *ep, const struct fi_msg_atomic *msg,
                          uint64_t flags, cxiemu_op_t *op);

/** A message without a tag as one with a tag, in @a tagged, which is returned;
 *  NULL for NULL. */
const struct fi_msg_tagged *cxiemu_msg_widen(const struct fi_msg *msg,
                                             struct fi_msg_tagged *tagged);

/** Turn libfabric's description of a receive into a request, refusing what CXI
 *  refuses; 0, or -FI_E*. Flags as the operations'. */
int cxiemu_rx_from_tagged(cxiemu_rx_t *rx, const struct fi_msg_tagged *msg,
                          uint64_t flags, cxiemu_recv_req_t *req);

/** Add to an atomic of cxiemu_op_from_atomic() where a fetching one puts its
 *  result, and what a comparing one (which needs both) compares with; 0, or
 *  -FI_EINVAL. */
int cxiemu_op_set_result(cxiemu_op_t *op, const struct fi_ioc *result,
                         size_t count);
int cxiemu_op_set_compare(cxiemu_op_t *op, const struct fi_ioc *compare,
                          size_t count);

#endif
