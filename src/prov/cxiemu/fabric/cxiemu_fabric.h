/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_fabric.h - what the objects of libfabric's calls have for each other.
 */
#ifndef CXIEMU_FABRIC_H_
#define CXIEMU_FABRIC_H_

#include "obj/cxiemu_cntr.h"
#include "obj/cxiemu_domain.h"


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

#endif
