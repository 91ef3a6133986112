/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_mem.c - memory that peers can map.
 *
 * Each allocation is a memory file. The NIC has them in an array sorted by
 * address: every operation asks for the file of its buffer.
 */
#include "cxiemu_map.h"
#include "cxiemu_mr.h"

#include <rdma/fi_errno.h>

#include <stdlib.h>
#include <string.h>

typedef struct cxiemu_mem {
    uintptr_t    start;
    size_t       length;
    cxiemu_map_t *map;
} cxiemu_mem_t;


/* How many allocations start at or before the address. */
static size_t cxiemu_mem_rank(const cxiemu_nic_t *nic, uintptr_t address)
{
    size_t low  = 0;
    size_t high = nic->num_mems;
    size_t middle;

    while (low < high) {
        middle = low + (high - low) / 2;
        if (nic->mems[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int cxiemu_mem_locate(cxiemu_nic_t *nic, const void *address, size_t length,
                      uint32_t *fd_p, uint64_t *offset_p)
{
    const cxiemu_mem_t *mem;
    size_t rank, offset;

    if (nic->num_mems == 0) {
        return 0;
    }
    rank = cxiemu_mem_rank(nic, (uintptr_t)address);
    if (rank == 0) {
        return 0;
    }

    mem    = &nic->mems[rank - 1];
    offset = (uintptr_t)address - mem->start;
    if ((offset >= mem->length) || (length > mem->length - offset)) {
        return 0;
    }
    *fd_p     = (uint32_t)mem->map->fd;
    *offset_p = offset;
    return 1;
}

static int cxiemu_mem_grow(cxiemu_nic_t *nic)
{
    size_t size = (nic->max_mems == 0) ? 16 : nic->max_mems * 2;
    cxiemu_mem_t *mems;

    mems = realloc(nic->mems, size * sizeof(*mems));
    if (mems == NULL) {
        return -FI_ENOMEM;
    }
    nic->mems     = mems;
    nic->max_mems = size;
    return 0;
}

static int cxiemu_mem_insert(cxiemu_nic_t *nic, cxiemu_map_t *map)
{
    uintptr_t start = (uintptr_t)map->address;
    size_t rank;
    int ret;

    if (nic->num_mems == nic->max_mems) {
        ret = cxiemu_mem_grow(nic);
        if (ret != 0) {
            return ret;
        }
    }

    rank = cxiemu_mem_rank(nic, start);
    memmove(&nic->mems[rank + 1], &nic->mems[rank],
            (nic->num_mems - rank) * sizeof(*nic->mems));
    nic->mems[rank].start  = start;
    nic->mems[rank].length = map->length;
    nic->mems[rank].map    = map;
    ++nic->num_mems;
    return 0;
}

int cxiemu_mem_alloc(struct fid_domain *fid, size_t length, void **address)
{
    cxiemu_domain_t *domain = container_of(fid, cxiemu_domain_t, fid);
    cxiemu_map_t *map;
    int ret;

    if ((length == 0) || (address == NULL)) {
        return -FI_EINVAL;
    }

    ret = cxiemu_map_create("cxiemu-mem", length, &map);
    if (ret != 0) {
        return ret;
    }

    cxiemu_nic_lock(domain->nic);
    ret = cxiemu_mem_insert(domain->nic, map);
    cxiemu_nic_unlock(domain->nic);
    if (ret != 0) {
        cxiemu_map_put(map);
        return ret;
    }

    *address = map->address;
    return 0;
}

int cxiemu_mem_free(struct fid_domain *fid, void *address)
{
    cxiemu_domain_t *domain = container_of(fid, cxiemu_domain_t, fid);
    cxiemu_nic_t *nic       = domain->nic;
    cxiemu_map_t *map       = NULL;
    size_t rank;

    cxiemu_nic_lock(nic);
    rank = cxiemu_mem_rank(nic, (uintptr_t)address);
    if ((rank > 0) && (nic->mems[rank - 1].start == (uintptr_t)address)) {
        map = nic->mems[rank - 1].map;
        memmove(&nic->mems[rank - 1], &nic->mems[rank],
                (nic->num_mems - rank) * sizeof(*nic->mems));
        --nic->num_mems;
        /* The descriptor's number is soon another file's */
        ++nic->mem_epoch;
    }
    cxiemu_nic_unlock(nic);

    if (map == NULL) {
        return -FI_EINVAL;
    }
    cxiemu_map_put(map);
    return 0;
}

void cxiemu_mem_cleanup(cxiemu_nic_t *nic)
{
    size_t i;

    for (i = 0; i < nic->num_mems; ++i) {
        cxiemu_map_put(nic->mems[i].map);
    }
    free(nic->mems);
    nic->mems     = NULL;
    nic->num_mems = 0;
    nic->max_mems = 0;
}
