/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_domain.h - fabrics and domains.
 */
#ifndef CXIEMU_DOMAIN_H_
#define CXIEMU_DOMAIN_H_

#include "base/cxiemu_open.h"
#include "nic/cxiemu_nic.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <stddef.h>

/* libfabric 2 has it no more */
#ifndef container_of
#  define container_of(_ptr, _type, _field) \
    ((_type*)((char*)(_ptr) - offsetof(_type, _field)))
#endif

/** Limits that fi_info tells. */
#define CXIEMU_MAX_MSG  (4ull << 30)
#define CXIEMU_MAX_TX   16384
#define CXIEMU_MAX_RX   15360
#define CXIEMU_INJECT   192
#define CXIEMU_TAG_MASK ((1ull << 48) - 1)

/** Numbers in keys of the provider's: 65536. */
#define CXIEMU_MR_NUMBER_WORDS 1024


typedef struct cxiemu_fabric {
    struct fid_fabric fid;
    unsigned          refs; /**< Domains and event queues; atomic */
} cxiemu_fabric_t;

typedef struct cxiemu_domain {
    struct fid_domain fid;
    cxiemu_fabric_t   *fabric;
    cxiemu_nic_t      *nic;
    struct fi_info    *info;
    unsigned          refs;     /**< Objects of the domain; NIC's lock */
    uint64_t          next_key; /**< Keys that the provider chooses */
    size_t            tx_done;  /**< Of all endpoints; the lock is held by
                                     writers */
    int               prov_key; /**< FI_MR_PROV_KEY, and of keys that are
                                     CXI's: */
    int               caches_keys;
    int               optimizes_keys;
    uint64_t          numbers[CXIEMU_MR_NUMBER_WORDS]; /**< Bits: in use */
    size_t            kept_cntrs; /**< Closed, but taken until the domain is
                                       closed, as Cassini's are; NIC's lock */
    uint32_t          tclass;   /**< Of deferred work, and of endpoints that are
                                     opened without one */
} cxiemu_domain_t;

/* Constructors that fi_ops_domain names; libfabric's contracts. */
int cxiemu_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
                   struct fid_av **av, void *context);
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

/** Capabilities with all ways of what has none: modifiers narrow. */
static inline uint64_t cxiemu_caps_ways(uint64_t caps)
{
    if ((caps & (FI_MSG | FI_TAGGED)) && !(caps & (FI_SEND | FI_RECV))) {
        caps |= FI_SEND | FI_RECV;
    }
    if ((caps & (FI_RMA | FI_ATOMIC)) &&
        !(caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE))) {
        caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    }
    return caps;
}

/** Whether traffic class and queues' sizes are those of CXI: 0, or
 *  -FI_EINVAL. */
int cxiemu_domain_check(const struct fi_info *info, uint32_t tclass);

static inline uint32_t cxiemu_tclass(uint32_t tclass, uint32_t otherwise)
{
    return (tclass == FI_TC_UNSPEC) ? otherwise : tclass;
}

/** Registration: fi_ops_mr of every domain. */
extern struct fi_ops_mr cxiemu_mr_domain_ops;

/** fi_control() of a domain: FI_QUEUE_WORK and its like. */
int cxiemu_dwq_control(struct fid *fid, int command, void *arg);

/** Of cxiemu_set_hooks(), or NULL. */
const cxiemu_hooks_t *cxiemu_hooks(void);

/** Defines a call that an object does not have: no slot of a table is empty. */
#define CXIEMU_NO_CALL(_name, ...) \
    static inline int _name(__VA_ARGS__) \
    { \
        return -FI_ENOSYS; \
    }

CXIEMU_NO_CALL(cxiemu_no_bind, struct fid *fid, struct fid *bfid,
               uint64_t flags)

CXIEMU_NO_CALL(cxiemu_no_control, struct fid *fid, int command, void *arg)

CXIEMU_NO_CALL(cxiemu_no_ops_open, struct fid *fid, const char *name,
               uint64_t flags, void **ops, void *context)

#endif
