/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_av.h - address vectors.
 */
#ifndef CXIEMU_AV_H_
#define CXIEMU_AV_H_

#include "base/cxiemu_addr.h"
#include "obj/cxiemu_domain.h"

struct cxiemu_link;


/** An entry; fi_addr_t is its index in both types of vectors. */
typedef struct cxiemu_av_entry {
    cxiemu_addr_t      addr;
    struct cxiemu_link *link;  /**< Made by the first use */
    unsigned           used;   /**< How often it was inserted; 0: a free one */
    size_t             next;   /**< Next of its bucket, or of the free ones;
                                    index + 1, 0 is none */
} cxiemu_av_entry_t;

typedef struct cxiemu_av {
    struct fid_av     fid;
    cxiemu_domain_t   *domain;
    enum fi_av_type   type;
    cxiemu_av_entry_t *entries;
    size_t            count;   /**< Allocated */
    size_t            free;    /**< First free entry: index + 1, or 0 */
    size_t            fresh;   /**< Entries from here on were never used */
    size_t            *buckets; /**< By NIC and endpoint: index + 1, or 0 */
    size_t            num_buckets; /**< A power of two */
    unsigned          refs;    /**< Endpoints */
} cxiemu_av_t;

/** Entry of an address, or NULL. Lock held. */
cxiemu_av_entry_t *cxiemu_av_entry(cxiemu_av_t *av, fi_addr_t fi_addr);

/** The fi_addr_t of an endpoint that has sent something, or FI_ADDR_NOTAVAIL:
 *  by its NIC's nonce and its number. Lock held. */
fi_addr_t cxiemu_av_find(const cxiemu_av_t *av, uint64_t nonce, uint16_t ep);

/** As libfabric says of fi_ops_domain. */
int cxiemu_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
                   struct fid_av **av, void *context);

#endif
