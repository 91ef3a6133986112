/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_pool.c - memory of operations.
 */
#include "cxiemu_pool.h"

#include <rdma/fi_errno.h>

#include <stdlib.h>

/* Operations are allocated so many at a time, and found by their number */
#define CXIEMU_TXOP_CHUNK 256


typedef struct cxiemu_txop_pool {
    cxiemu_txop_t           **chunks;
    uint32_t                num_chunks;
    struct cxiemu_txop_list free;
} cxiemu_txop_pool_t;


static cxiemu_txop_pool_t *cxiemu_pool_of(cxiemu_nic_t *nic)
{
    cxiemu_txop_pool_t *pool = nic->txops;

    if (pool == NULL) {
        pool = calloc(1, sizeof(*pool));
        if (pool == NULL) {
            return NULL;
        }
        TAILQ_INIT(&pool->free);
        nic->txops = pool;
    }
    return pool;
}

static int cxiemu_pool_grow(cxiemu_txop_pool_t *pool)
{
    cxiemu_txop_t **chunks, *chunk;
    uint32_t i;

    chunks = realloc(pool->chunks, (pool->num_chunks + 1) * sizeof(*chunks));
    if (chunks == NULL) {
        return -FI_ENOMEM;
    }
    pool->chunks = chunks;

    chunk = calloc(CXIEMU_TXOP_CHUNK, sizeof(*chunk));
    if (chunk == NULL) {
        return -FI_ENOMEM;
    }
    for (i = 0; i < CXIEMU_TXOP_CHUNK; ++i) {
        chunk[i].id = pool->num_chunks * CXIEMU_TXOP_CHUNK + i;
        TAILQ_INSERT_TAIL(&pool->free, &chunk[i], list);
    }
    chunks[pool->num_chunks++] = chunk;
    return 0;
}

cxiemu_txop_t *cxiemu_pool_get(cxiemu_nic_t *nic)
{
    cxiemu_txop_pool_t *pool = cxiemu_pool_of(nic);
    cxiemu_txop_t *txop;

    if ((pool == NULL) ||
        (TAILQ_EMPTY(&pool->free) && (cxiemu_pool_grow(pool) != 0))) {
        return NULL;
    }

    /* The one used last is the one in the cache */
    txop = TAILQ_FIRST(&pool->free);
    TAILQ_REMOVE(&pool->free, txop, list);
    return txop;
}

void cxiemu_pool_put(cxiemu_nic_t *nic, cxiemu_txop_t *txop)
{
    TAILQ_INSERT_HEAD(&nic->txops->free, txop, list);
}

cxiemu_txop_t *cxiemu_pool_find(cxiemu_link_t *link, uint32_t id)
{
    cxiemu_txop_pool_t *pool = link->nic->txops;
    cxiemu_txop_t *txop;

    if ((pool == NULL) || (id / CXIEMU_TXOP_CHUNK >= pool->num_chunks)) {
        return NULL;
    }

    txop = &pool->chunks[id / CXIEMU_TXOP_CHUNK][id % CXIEMU_TXOP_CHUNK];
    return ((txop->link == link) && (txop->owed > 0)) ? txop : NULL;
}

void cxiemu_txop_cleanup(cxiemu_nic_t *nic)
{
    cxiemu_txop_pool_t *pool = nic->txops;
    uint32_t i;

    if (pool == NULL) {
        return;
    }
    for (i = 0; i < pool->num_chunks; ++i) {
        free(pool->chunks[i]);
    }
    free(pool->chunks);
    free(pool);
    nic->txops = NULL;
}
