/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_fabric.h - what the objects of libfabric's calls have for each other.
 */
#ifndef CXIEMU_FABRIC_H_
#define CXIEMU_FABRIC_H_

#include "op/cxiemu_ep.h"
#include "op/cxiemu_op.h"


/** A process's first step (cxiemu_fork.c): prepare for forks, once, and read
 *  the settings (cxiemu_param_init()). Any thread, any number of times. 0, or
 *  -FI_EINVAL for a setting that makes no sense. */
int cxiemu_init(void);

/* Constructors that fi_ops_domain names; libfabric's contracts. */
int cxiemu_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
                   struct fid_cq **cq, void *context);
int cxiemu_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
                     struct fid_cntr **cntr, void *context);
int cxiemu_ep_open(struct fid_domain *domain, struct fi_info *info,
                   struct fid_ep **ep, void *context);
int cxiemu_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
                   struct fid_eq **eq, void *context);
int cxiemu_query_atomic(struct fid_domain *domain, enum fi_datatype datatype,
                        enum fi_op op, struct fi_atomic_attr *attr,
                        uint64_t flags);
int cxiemu_domain_open(struct fid_fabric *fabric, struct fi_info *info,
                       struct fid_domain **domain, void *context);

/** fi_open_ops() of a domain: those of CXI's own that make sense here. */
int cxiemu_ext_open(struct fid *fid, const char *name, uint64_t flags,
                    void **ops, void *context);

/** fi_control() of a domain: CXI's options; -FI_EINVAL for another command. */
int cxiemu_ext_control(cxiemu_domain_t *domain, int command, void *arg);

/** fi_trywait() for an event queue. */
int cxiemu_eq_trywait(struct fid *fid);

/** fi_trywait() for a queue: 0 if it is empty and its descriptor will tell of
 *  the next entry, or -FI_EAGAIN. Takes the lock. */
int cxiemu_cq_trywait(struct fid *fid);

/** fi_trywait() for a counter: 0 if it is as it was read last, or -FI_EAGAIN.
 *  Takes the lock. */
int cxiemu_cntr_trywait(struct fid *fid);

/** Registration: fi_ops_mr of every domain. */
extern struct fi_ops_mr cxiemu_mr_domain_ops;

/** fi_control() of a domain: FI_QUEUE_WORK and its like. */
int cxiemu_dwq_control(struct fid *fid, int command, void *arg);

/** A counter from a libfabric handle of the same domain, or NULL. */
cxiemu_cntr_t *cxiemu_cntr_from(cxiemu_domain_t *domain, struct fid_cntr *fid);


/* How operations are described and posted */

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
