/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_mr.h - memory regions.
 */
#ifndef CXIEMU_MR_H_
#define CXIEMU_MR_H_

#include "obj/cxiemu_cntr.h"
#include "base/cxiemu_dma.h"
#include "obj/cxiemu_domain.h"

struct cxiemu_ep;

/** What keys of the provider's say; see cxiemu_fi_mr.c. */
#define CXIEMU_MR_PROV_KEY  (1ull << 63)
#define CXIEMU_MR_CACHED    (1ull << 62)
#define CXIEMU_MR_OPTIMIZED (1ull << 61)
#define CXIEMU_MR_ADDRESS   ((1ull << 58) - 1)        /* of a cached key */
#define CXIEMU_MR_ID        ((1ull << 16) - 1)        /* of others */
#define CXIEMU_MR_SEQUENCE  (((1ull << 44) - 1) << 16)


typedef struct cxiemu_mr {
    struct fid_mr     fid;
    struct cxiemu_mr  *next;    /**< In nic->mrs */
    union {
        cxiemu_domain_t  *domain;
        struct cxiemu_ep *ep;   /**< Of the domain; if it is bound */
    };
    uint8_t           *address; /**< Where the card has it */
    size_t            length;
    cxiemu_cntr_t     *cntr;    /**< Bound, counts remote writes; or NULL */
    uint16_t          access;   /**< FI_REMOTE_READ and FI_REMOTE_WRITE */
    uint8_t           is_gpus;  /**< It is a cxiemu_mr_gpu_t */
    uint8_t           has_event; /**< FI_RMA_EVENT */
    uint8_t           bound;    /**< To an endpoint */
    uint8_t           enabled;
    uint8_t           listed;   /**< In nic->mrs */
} cxiemu_mr_t;

/** A region of a GPU's memory. */
typedef struct cxiemu_mr_gpu {
    cxiemu_mr_t  mr;
    cxiemu_dma_t *dma;
} cxiemu_mr_gpu_t;

/* A message takes up to two of them */
_Static_assert(sizeof(cxiemu_mr_t) <= 88, "memory of a region");

/** Enter a region with its key, or take it out. Lock held. */
void cxiemu_mr_list(cxiemu_nic_t *nic, cxiemu_mr_t *mr, uint64_t key);
void cxiemu_mr_unlist(cxiemu_nic_t *nic, cxiemu_mr_t *mr);

/** The region with a key, or NULL. Lock held. */
cxiemu_mr_t *cxiemu_mr_lookup(cxiemu_nic_t *nic, uint64_t key);

/** Find the memory that a peer's record names, if it may access it (@a access:
 *  FI_REMOTE_READ, FI_REMOTE_WRITE or both); 0 with @a *address_p, or the FI_E*
 *  code (positive) that goes back. Lock held. */
int cxiemu_mr_find(cxiemu_nic_t *nic, const cxiemu_rec_t *rec, uint64_t access,
                   cxiemu_mr_t **mr_p, void **address_p);

/** A remote write has landed in the region, or, in strict mode, it has been
 *  read: count it. CXI's counter of a region counts all that is done to it.
 *  Lock held. */
void cxiemu_mr_accessed(cxiemu_mr_t *mr);

#endif
