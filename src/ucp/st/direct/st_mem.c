/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_mem.c - memory that other processes can map.
 *
 * Long blocks are files of their own; shorter ones share one, so that a process
 * that allocates much does not run out of descriptors. A peer maps the whole
 * file when the first operation needs it.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <ucp_st.h>

#include "direct/st_direct_shm.h"
#include "core/st_worker.h"
#include "core/st_log.h"

#include <ucs/datastruct/khash.h>
#include <ucs/sys/math.h>

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* From here on a block has a file of its own */
#define UCP_ST_MEM_LONG (1ul << 20)

/* Shorter ones share so much address space at a time */
#define UCP_ST_MEM_POOL (256ul << 20)

/** Shared by short blocks; stays as long as the process. */
typedef struct ucp_st_mem_pool {
    ucp_st_direct_seg_t    seg;
    struct ucp_st_mem_pool *next;
} ucp_st_mem_pool_t;

/** A block that the user has. */
typedef struct ucp_st_mem_block {
    size_t              length;
    ucp_st_direct_map_t *map;  /* a long one's */
    ucp_st_mem_pool_t   *pool; /* a short one's */
} ucp_st_mem_block_t;

KHASH_MAP_INIT_INT64(ucp_st_mem, ucp_st_mem_block_t)

/* All of it is protected by its lock */
static struct {
    pthread_mutex_t     lock;
    khash_t(ucp_st_mem) blocks; /* by address */
    ucp_st_mem_pool_t   *pools; /* the newest first */
} ucp_st_mem = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};

/* Of all locks of the library these alone are used before there are workers,
 * and in a child of a process that has none. They are taken in the order that
 * ucp_st_mem_alloc() has, for the time of the fork. */
static void ucp_st_mem_fork_begin(void)
{
    (void)pthread_mutex_lock(&ucp_st_mem.lock);
    ucp_st_direct_maps_lock();
}

static void ucp_st_mem_fork_end(void)
{
    ucp_st_direct_maps_unlock();
    (void)pthread_mutex_unlock(&ucp_st_mem.lock);
}

static void __attribute__((constructor)) ucp_st_mem_load(void)
{
    if (pthread_atfork(ucp_st_mem_fork_begin, ucp_st_mem_fork_end,
                       ucp_st_mem_fork_end) != 0) {
        ucs_warn("pthread_atfork() failed: ucp_st_mem_alloc() may hang in "
                 "children of this process");
    }
}

/* Get a short block from a pool that has room, or from a new one */
static ucs_status_t ucp_st_mem_get_short(ucp_st_mem_block_t *block,
                                         void **address_p)
{
    ucp_st_mem_pool_t *pool;
    ucs_status_t status;

    for (pool = ucp_st_mem.pools; pool != NULL; pool = pool->next) {
        *address_p = ucp_st_direct_seg_get(&pool->seg, block->length);
        if (*address_p != NULL) {
            block->pool = pool;
            return UCS_OK;
        }
    }
    pool = calloc(1, sizeof(*pool));
    if (pool == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = ucp_st_direct_seg_init(&pool->seg, UCP_ST_MEM_POOL, 0);
    if (status != UCS_OK) {
        free(pool);
        return status;
    }
    pool->next       = ucp_st_mem.pools;
    ucp_st_mem.pools = pool;
    block->pool      = pool;
    *address_p       = ucp_st_direct_seg_get(&pool->seg, block->length);
    return UCS_OK;
}

static void ucp_st_mem_put(const ucp_st_mem_block_t *block, void *address)
{
    if (block->pool != NULL) {
        ucp_st_direct_seg_put(&block->pool->seg, address, block->length);
    } else {
        ucp_st_direct_map_put(block->map);
    }
}

/* The lock is held */
static ucs_status_t ucp_st_mem_get(size_t length, void **address_p)
{
    ucp_st_mem_block_t block = {.length = length};
    size_t page              = (size_t)sysconf(_SC_PAGESIZE);
    ucs_status_t status;
    void *address;
    khiter_t iter;
    int ret;

    if (length < UCP_ST_MEM_LONG) {
        status = ucp_st_mem_get_short(&block, &address);
    } else {
        status  = ucp_st_direct_map_create(
                ucs_div_round_up(length, page) * page, &block.map);
        address = (status == UCS_OK) ? block.map->address : NULL;
    }
    if (status != UCS_OK) {
        return status;
    }
    iter = kh_put(ucp_st_mem, &ucp_st_mem.blocks, (uintptr_t)address, &ret);
    if (ret < 0) {
        ucp_st_mem_put(&block, address);
        return UCS_ERR_NO_MEMORY;
    }
    kh_value(&ucp_st_mem.blocks, iter) = block;
    *address_p                         = address;
    return UCS_OK;
}

ucs_status_t ucp_st_mem_alloc(size_t length, void **address_p)
{
    ucs_status_t status;

    status = ucp_st_check_call((length > 0) && (address_p != NULL));
    if (status != UCS_OK) {
        return status;
    }
    if (length > (SIZE_MAX / 2)) {
        return UCS_ERR_NO_MEMORY;
    }
    (void)pthread_mutex_lock(&ucp_st_mem.lock);
    status = ucp_st_mem_get(length, address_p);
    (void)pthread_mutex_unlock(&ucp_st_mem.lock);
    return status;
}

ucs_status_t ucp_st_mem_free(void *address)
{
    ucs_status_t status = UCS_ERR_INVALID_PARAM;
    khiter_t iter;

    if (ucp_st_fork_is_child) {
        return ucp_st_fork_refuse();
    }
    (void)pthread_mutex_lock(&ucp_st_mem.lock);
    iter = kh_get(ucp_st_mem, &ucp_st_mem.blocks, (uintptr_t)address);
    if (iter != kh_end(&ucp_st_mem.blocks)) {
        ucp_st_mem_put(&kh_value(&ucp_st_mem.blocks, iter), address);
        kh_del(ucp_st_mem, &ucp_st_mem.blocks, iter);
        status = UCS_OK;
    }
    (void)pthread_mutex_unlock(&ucp_st_mem.lock);
    return status;
}
