/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_domain.h - fabrics and domains, as all objects have them.
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
