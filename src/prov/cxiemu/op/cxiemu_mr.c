/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_mr.c - memory regions, as operations of peers find them.
 */
#include "op/cxiemu_mr.h"
#include "op/cxiemu_ep.h"

#include <rdma/fi_errno.h>

#include <sys/mman.h>
#include <unistd.h>


/* Keys may come in strides: the product's upper bits depend on all bits. */
static cxiemu_mr_t **cxiemu_mr_bucket(cxiemu_nic_t *nic, uint64_t key)
{
    uint64_t hash = key * 0x9e3779b97f4a7c15ull;

    return &nic->mrs[(hash >> 32) % CXIEMU_MR_BUCKETS];
}

/* What is looked at of a key */
static uint64_t cxiemu_mr_matched(uint64_t key)
{
    uint64_t kind = CXIEMU_MR_PROV_KEY | CXIEMU_MR_OPTIMIZED;

    return ((key & kind) == kind) ? (key & ~CXIEMU_MR_SEQUENCE) : key;
}

cxiemu_mr_t *cxiemu_mr_lookup(cxiemu_nic_t *nic, uint64_t key)
{
    uint64_t matched = cxiemu_mr_matched(key);
    cxiemu_mr_t *mr  = *cxiemu_mr_bucket(nic, matched);

    while ((mr != NULL) && (cxiemu_mr_matched(mr->fid.key) != matched)) {
        mr = mr->next;
    }
    return mr;
}

void cxiemu_mr_list(cxiemu_nic_t *nic, cxiemu_mr_t *mr, uint64_t key)
{
    cxiemu_mr_t **bucket = cxiemu_mr_bucket(nic, cxiemu_mr_matched(key));

    mr->fid.key = key;
    mr->next    = *bucket;
    *bucket     = mr;
    mr->listed  = 1;
}

void cxiemu_mr_unlist(cxiemu_nic_t *nic, cxiemu_mr_t *mr)
{
    cxiemu_mr_t **link = cxiemu_mr_bucket(nic, cxiemu_mr_matched(mr->fid.key));

    while (*link != mr) {
        link = &(*link)->next;
    }
    *link = mr->next;
}


static int cxiemu_mr_is_cached(uint64_t key)
{
    uint64_t kind = CXIEMU_MR_PROV_KEY | CXIEMU_MR_CACHED;

    return cxiemu_param()->strict && ((key & kind) == kind);
}

/* Any memory of the process; what is not mapped is refused, as a NIC's memory
 * management does. */
static int cxiemu_mr_find_cached(cxiemu_nic_t *nic, const cxiemu_rec_t *rec,
                                 cxiemu_mr_t **mr_p, void **address_p)
{
    const cxiemu_ep_t *ep = (rec->dst_ep < CXIEMU_MAX_EPS) ?
                            nic->eps[rec->dst_ep] : NULL;
    uint64_t address      = (rec->tag & CXIEMU_MR_ADDRESS) + rec->addr;
    uint64_t page         = address & ~(uint64_t)(sysconf(_SC_PAGESIZE) - 1);

    if ((ep == NULL) || (ep->cached == NULL) ||
        (msync((void*)(uintptr_t)page, address + rec->length - page,
               MS_ASYNC) != 0)) {
        return FI_EIO;
    }
    *mr_p      = ep->cached;
    *address_p = (void*)(uintptr_t)address;
    return 0;
}

int cxiemu_mr_find(cxiemu_nic_t *nic, const cxiemu_rec_t *rec, uint64_t access,
                   cxiemu_mr_t **mr_p, void **address_p)
{
    cxiemu_mr_t *mr;

    if (cxiemu_mr_is_cached(rec->tag)) {
        return cxiemu_mr_find_cached(nic, rec, mr_p, address_p);
    }
    mr = cxiemu_mr_lookup(nic, rec->tag);
    if ((mr == NULL) || !mr->enabled || (mr->ep->number != rec->dst_ep) ||
        ((mr->access & access) != access) || (rec->length > mr->length) ||
        (rec->addr > mr->length - rec->length)) {
        return FI_EIO;
    }

    *mr_p      = mr;
    *address_p = mr->address + rec->addr; /* Offsets in the region */
    return 0;
}

void cxiemu_mr_accessed(cxiemu_mr_t *mr)
{
    if (mr->cntr != NULL) {
        cxiemu_cntr_count(mr->cntr, 1, 0);
    }
}
