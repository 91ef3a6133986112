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
#include "core/st_log.h"
#include "core/st_worker.h"

#include <ucs_fork.h>
#include <ucs_memfd.h>

#include <ucs/datastruct/khash.h>
#include <ucs/sys/math.h>

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* From here on a block has a file of its own */
#define UCP_ST_MEM_LONG (1ul << 20)

/* Shorter ones share so much address space at first, and each time twice as
 * much, up to the other number, if files may be so long: devices that are to
 * reach a block have all of its file registered, which takes its memory and
 * long */
#define UCP_ST_MEM_POOL_MIN (8ul << 20)
#define UCP_ST_MEM_POOL_MAX (256ul << 20)

/* More of it goes to core files in such steps */
#define UCP_ST_MEM_DUMP_STEP (1ul << 20)

/* One of so many descriptors that the process may have is for a long block */
#define UCP_ST_MEM_FILES_PART 4

/** Shared by short blocks; stays as long as the process. */
typedef struct ucp_st_mem_pool {
    ucp_st_direct_seg_t    seg;
    size_t                 dumped; /* bytes that core files have */
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
    unsigned            files;  /* of long blocks */
} ucp_st_mem = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};

/* Of all locks of the library these alone are used before there are workers,
 * and in a child of a process that has none. They are taken in the order that
 * ucp_st_mem_alloc() has, for the time of the fork. */
static void ucp_st_mem_fork_begin(void)
{
    ucs_fork_lock(&ucp_st_mem.lock);
    ucp_st_direct_maps_fork_begin();
}

static void ucp_st_mem_fork_end(int is_child)
{
    int is_whole = ucp_st_direct_maps_fork_end(is_child) &&
                   ucs_fork_has(&ucp_st_mem.lock);

    ucs_fork_unlock(&ucp_st_mem.lock, is_child);
    if (is_child && !is_whole) {
        ucp_st_fork_is_child = 1; /* refused: the table may be half changed */
    }
}

static void ucp_st_mem_fork_parent(void)
{
    ucp_st_mem_fork_end(0);
}

static void ucp_st_mem_fork_child(void)
{
    ucp_st_mem_fork_end(1);
}

static void __attribute__((constructor)) ucp_st_mem_load(void)
{
    if (pthread_atfork(ucp_st_mem_fork_begin, ucp_st_mem_fork_parent,
                       ucp_st_mem_fork_child) != 0) {
        ucs_warn("pthread_atfork() failed: ucp_st_mem_alloc() may hang in "
                 "children of this process");
    }
}

/* Get a short block from a pool; NULL if there is no room. What was never
 * handed out is in no core file. */
static void *ucp_st_mem_pool_get(ucp_st_mem_pool_t *pool, size_t length)
{
    void *address = ucp_st_direct_seg_get(&pool->seg, length);
    size_t dumped = ucs_min(ucs_div_round_up(pool->seg.used,
                                             UCP_ST_MEM_DUMP_STEP) *
                                    UCP_ST_MEM_DUMP_STEP,
                            pool->seg.map->length);

    if (dumped > pool->dumped) {
        ucp_st_direct_map_dump(pool->seg.map, pool->dumped,
                               dumped - pool->dumped);
        pool->dumped = dumped;
    }
    return address;
}

/* ... from one that has room, or from a new one */
static ucs_status_t ucp_st_mem_get_short(ucp_st_mem_block_t *block,
                                         void **address_p)
{
    size_t size = UCP_ST_MEM_POOL_MIN;
    ucp_st_mem_pool_t *pool;
    ucs_status_t status;

    for (pool = ucp_st_mem.pools; pool != NULL; pool = pool->next) {
        *address_p = ucp_st_mem_pool_get(pool, block->length);
        if (*address_p != NULL) {
            block->pool = pool;
            return UCS_OK;
        }
        size = ucs_max(size, 2 * pool->seg.map->length);
    }
    size = ucs_min(ucs_min(size, UCP_ST_MEM_POOL_MAX), ucs_memfd_max());
    pool = calloc(1, sizeof(*pool));
    if (pool == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = ucp_st_direct_seg_init(&pool->seg, size, 0);
    if (status != UCS_OK) {
        goto err_free;
    }
    *address_p = ucp_st_mem_pool_get(pool, block->length);
    if (*address_p == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err_seg;
    }
    pool->next       = ucp_st_mem.pools;
    ucp_st_mem.pools = pool;
    block->pool      = pool;
    return UCS_OK;

err_seg:
    ucp_st_direct_seg_cleanup(&pool->seg);
err_free:
    free(pool);
    return status;
}

/* Each of these has a descriptor, which the program must not lack */
static ucs_status_t ucp_st_mem_get_long(ucp_st_mem_block_t *block,
                                        void **address_p)
{
    size_t page   = (size_t)sysconf(_SC_PAGESIZE);
    size_t length = ucs_div_round_up(block->length, page) * page;
    struct rlimit limit;
    ucs_status_t status;

    if ((getrlimit(RLIMIT_NOFILE, &limit) == 0) &&
        ((ucp_st_mem.files + ucp_st_direct_maps_ending()) >=
         (limit.rlim_cur / UCP_ST_MEM_FILES_PART))) {
        return UCS_ERR_NO_RESOURCE;
    }
    status = ucp_st_direct_map_create(length, &block->map);
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_st_direct_map_commit(block->map, 0, length);
    if (status != UCS_OK) {
        ucp_st_direct_map_put(block->map);
        return status;
    }
    ucp_st_direct_map_dump(block->map, 0, length);
    ++ucp_st_mem.files;
    *address_p = block->map->address;
    return UCS_OK;
}

static void ucp_st_mem_put(const ucp_st_mem_block_t *block, void *address)
{
    if (block->pool != NULL) {
        ucp_st_direct_seg_put(&block->pool->seg, address, block->length);
    } else {
        ucp_st_direct_map_put(block->map);
        --ucp_st_mem.files;
    }
}

/* The lock is held */
static ucs_status_t ucp_st_mem_get(size_t length, void **address_p)
{
    ucp_st_mem_block_t block = {.length = length};
    ucs_status_t status;
    void *address;
    khiter_t iter;
    int ret;

    status = (length < UCP_ST_MEM_LONG) ?
             ucp_st_mem_get_short(&block, &address) :
             ucp_st_mem_get_long(&block, &address);
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
    if (status != UCS_OK) {
        ucs_diag("no %zu bytes that other processes can map: %s (%u blocks "
                 "from %lu bytes on, of a quarter of 'ulimit -n'; files have "
                 "%zu bytes at most, 'ulimit -f')", length,
                 ucs_status_string(status), ucp_st_mem.files, UCP_ST_MEM_LONG,
                 ucs_memfd_max());
    }
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
