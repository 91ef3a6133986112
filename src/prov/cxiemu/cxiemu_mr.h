/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_mr.h - memory regions, and memory that peers can map.
 */
#ifndef CXIEMU_MR_H_
#define CXIEMU_MR_H_

#include "cxiemu_cntr.h"
#include "cxiemu_domain.h"

struct cxiemu_ep;


typedef struct cxiemu_mr {
    struct fid_mr     fid;
    struct cxiemu_mr  *next;    /**< In nic->mrs */
    union {
        cxiemu_domain_t  *domain;
        struct cxiemu_ep *ep;   /**< Of the domain; if it is bound */
    };
    uint8_t           *address;
    size_t            length;
    cxiemu_cntr_t     *cntr;    /**< Bound, counts remote writes; or NULL */
    uint32_t          access;   /**< FI_REMOTE_READ and FI_REMOTE_WRITE */
    uint8_t           has_event; /**< FI_RMA_EVENT */
    uint8_t           bound;    /**< To an endpoint */
    uint8_t           enabled;
    uint8_t           listed;   /**< In nic->mrs */
} cxiemu_mr_t;

/* A message takes up to two of them */
_Static_assert(sizeof(cxiemu_mr_t) <= 88, "memory of a region");

/** What a remote operation wants of a region. */
typedef struct cxiemu_mr_want {
    uint64_t key;
    uint64_t addr;   /**< Offset in the region (offset addressing) */
    uint64_t length;
    uint64_t access; /**< FI_REMOTE_READ, FI_REMOTE_WRITE or both */
    uint16_t ep;     /**< Endpoint that the operation was sent to */
} cxiemu_mr_want_t;

/** Find the memory that a peer may access; 0 with @a *address_p, or the FI_E*
 *  code (positive) that goes back. Lock held. */
int cxiemu_mr_find(cxiemu_nic_t *nic, const cxiemu_mr_want_t *want,
                   cxiemu_mr_t **mr_p, void **address_p);

/** A remote write has landed in the region: count it. Lock held. */
void cxiemu_mr_written(cxiemu_mr_t *mr);


/** Where memory lies in a file that peers can map; whether it does: from
 *  @a address, @a length bytes whole. Lock held. */
int cxiemu_mem_locate(cxiemu_nic_t *nic, const void *address, size_t length,
                      uint32_t *fd_p, uint64_t *offset_p);

/** Free what was not freed: the NIC ends. */
void cxiemu_mem_cleanup(cxiemu_nic_t *nic);

/** mem_alloc() and mem_free() of the extension. */
int cxiemu_mem_alloc(struct fid_domain *domain, size_t length, void **address);
int cxiemu_mem_free(struct fid_domain *domain, void *address);

#endif
