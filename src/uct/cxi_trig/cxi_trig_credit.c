/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_credit.c - accounting of deferred-work entries.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_credit.h"

#include <ucs_fork.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>

#include <string.h>
#include <unistd.h>

/* Entries that are taken from the ledger, or returned to it, at a time if it is
 * not known how many processes there are; twice as many stay with a process
 * that does not use them */
#define UCT_CXI_TRIG_CREDIT_CHUNK 8

#define UCT_CXI_TRIG_CREDIT_LABEL "ucx-st"

/* One entry that the process has, in a pool's state */
#define UCT_CXI_TRIG_CREDIT_HELD UCS_BIT(32)


/* The pools of the process */
static struct {
    pthread_mutex_t            mutex;
    uct_cxi_trig_credit_pool_t *pools;
} uct_cxi_trig_credit_table = {
    .mutex = PTHREAD_MUTEX_INITIALIZER
};


void uct_cxi_trig_credit_fork_begin(void)
{
    ucs_fork_lock(&uct_cxi_trig_credit_table.mutex);
}

/* A child's contexts get pools of their own: entries of those that are there
 * are the parent's */
void uct_cxi_trig_credit_fork_end(int is_child)
{
    uct_cxi_trig_credit_pool_t *pool;

    if (is_child && !ucs_fork_has(&uct_cxi_trig_credit_table.mutex)) {
        uct_cxi_trig_credit_table.pools = NULL;
    }
    pool = uct_cxi_trig_credit_table.pools;
    for (; is_child && (pool != NULL); pool = pool->next) {
        pthread_mutex_init(&pool->lock, NULL);
        pool->params.key[0] = '\0';
        if (pool->is_open) {
            ucs_ledger_forked(&pool->ledger);
        }
    }
    ucs_fork_unlock(&uct_cxi_trig_credit_table.mutex, is_child);
}

static inline unsigned uct_cxi_trig_credit_used(uint64_t state)
{
    return (uint32_t)state;
}

static inline unsigned uct_cxi_trig_credit_held(uint64_t state)
{
    return state >> 32;
}

static uct_cxi_trig_credit_pool_t *
uct_cxi_trig_credit_pool_new(const uct_cxi_trig_credit_params_t *params)
{
    uct_cxi_trig_credit_pool_t *pool;

    pool = ucs_calloc(1, sizeof(*pool), "cxi_trig_credit_pool");
    if (pool == NULL) {
        return NULL;
    }
    pool->params = *params;
    pool->state  = params->is_shared ? 0 :
                   (params->max * UCT_CXI_TRIG_CREDIT_HELD);
    pthread_mutex_init(&pool->lock, NULL);
    pool->next                      = uct_cxi_trig_credit_table.pools;
    uct_cxi_trig_credit_table.pools = pool;
    return pool;
}

ucs_status_t
uct_cxi_trig_credit_pool_get(const uct_cxi_trig_credit_params_t *params,
                             uct_cxi_trig_credit_pool_t **pool_p)
{
    uct_cxi_trig_credit_pool_t *pool;

    pthread_mutex_lock(&uct_cxi_trig_credit_table.mutex);
    pool = uct_cxi_trig_credit_table.pools;
    while ((pool != NULL) && strcmp(pool->params.key, params->key)) {
        pool = pool->next;
    }
    if (pool == NULL) {
        pool = uct_cxi_trig_credit_pool_new(params);
    }
    if (pool != NULL) {
        ++pool->refs;
        *pool_p = pool;
    }
    pthread_mutex_unlock(&uct_cxi_trig_credit_table.mutex);
    return (pool == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}

void uct_cxi_trig_credit_pool_put(uct_cxi_trig_credit_pool_t *pool)
{
    uct_cxi_trig_credit_pool_t **link = &uct_cxi_trig_credit_table.pools;

    pthread_mutex_lock(&uct_cxi_trig_credit_table.mutex);
    if (--pool->refs == 0) {
        while (*link != pool) {
            link = &(*link)->next;
        }
        *link = pool->next;
        if (pool->is_open) {
            ucs_ledger_close(&pool->ledger);
        }
        pthread_mutex_destroy(&pool->lock);
        ucs_free(pool);
    }
    pthread_mutex_unlock(&uct_cxi_trig_credit_table.mutex);
}

unsigned uct_cxi_trig_credit_pool_procs(uct_cxi_trig_credit_pool_t *pool)
{
    const uct_cxi_trig_credit_params_t *params = &pool->params;
    unsigned num_procs                         = ucs_max(params->num_procs, 1);

    if (!params->is_shared) {
        return 1;
    }
    if (__atomic_load_n(&pool->is_open, __ATOMIC_ACQUIRE)) {
        num_procs = ucs_max(num_procs, ucs_ledger_users(&pool->ledger));
    } else if (__atomic_load_n(&pool->is_alone, __ATOMIC_RELAXED) &&
               (params->num_procs == 0)) {
        /* Nobody tells how many there are: as many as there can be */
        num_procs = ucs_max(sysconf(_SC_NPROCESSORS_ONLN), 1);
    }
    return num_procs;
}

unsigned uct_cxi_trig_credit_pool_share(uct_cxi_trig_credit_pool_t *pool)
{
    return pool->params.max / uct_cxi_trig_credit_pool_procs(pool);
}

/* The lock is held. */
static void uct_cxi_trig_credit_pool_open(uct_cxi_trig_credit_pool_t *pool)
{
    int ret;

    if (pool->is_open || pool->is_alone) {
        return;
    }
    ret = ucs_ledger_open(&pool->ledger, UCT_CXI_TRIG_CREDIT_LABEL,
                          pool->params.key);
    if (ret == 0) {
        __atomic_store_n(&pool->is_open, 1, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(&pool->is_alone, 1, __ATOMIC_RELAXED);
        ucs_warn("/dev/shm%s: %s: this process cannot know what other "
                 "processes use of the NIC's deferred-work entries, and takes "
                 "%u of %u; if there are more or fewer processes, set "
                 "UCX_CXI_TRIG_NODE_PROCESSES", pool->ledger.name,
                 strerror(ret), uct_cxi_trig_credit_pool_share(pool),
                 pool->params.max);
    }
}

static int uct_cxi_trig_credit_pool_take(uct_cxi_trig_credit_pool_t *pool,
                                         unsigned count)
{
    if (pool->is_open &&
        !ucs_ledger_take(&pool->ledger, 0, count, pool->params.max)) {
        return 0;
    }
    __atomic_fetch_add(&pool->state, count * UCT_CXI_TRIG_CREDIT_HELD,
                       __ATOMIC_RELAXED);
    return 1;
}

/* Have one more at least. The lock is held. */
static ucs_status_t
uct_cxi_trig_credit_pool_grow(uct_cxi_trig_credit_pool_t *pool)
{
    uint64_t state = __atomic_load_n(&pool->state, __ATOMIC_RELAXED);
    unsigned held  = uct_cxi_trig_credit_held(state);
    unsigned share = uct_cxi_trig_credit_pool_share(pool);
    unsigned room  = (share > held) ? (share - held) : 0;
    unsigned want  = (pool->params.num_procs > 0) ?
                     room : ucs_min(room, UCT_CXI_TRIG_CREDIT_CHUNK);

    return ((want > 0) && (uct_cxi_trig_credit_pool_take(pool, want) ||
                           uct_cxi_trig_credit_pool_take(pool, 1))) ?
           UCS_OK : UCS_ERR_NO_RESOURCE;
}

/* Have one that is not in use */
static ucs_status_t
uct_cxi_trig_credit_pool_need(uct_cxi_trig_credit_pool_t *pool)
{
    ucs_status_t status = UCS_OK;
    uint64_t state;

    if (!pool->params.is_shared) {
        return UCS_ERR_NO_RESOURCE;
    }
    pthread_mutex_lock(&pool->lock);
    uct_cxi_trig_credit_pool_open(pool);
    state = __atomic_load_n(&pool->state, __ATOMIC_RELAXED);
    if (uct_cxi_trig_credit_used(state) >= uct_cxi_trig_credit_held(state)) {
        status = uct_cxi_trig_credit_pool_grow(pool);
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

/* Return what is not used to the other processes. */
static void uct_cxi_trig_credit_pool_trim(uct_cxi_trig_credit_pool_t *pool)
{
    uint64_t state = __atomic_load_n(&pool->state, __ATOMIC_RELAXED);
    unsigned spare;

    if (pthread_mutex_trylock(&pool->lock) != 0) {
        return; /* Somebody needs more */
    }
    do {
        spare = uct_cxi_trig_credit_held(state) -
                uct_cxi_trig_credit_used(state);
        spare = (spare > UCT_CXI_TRIG_CREDIT_CHUNK) ?
                (spare - UCT_CXI_TRIG_CREDIT_CHUNK) : 0;
    } while (!__atomic_compare_exchange_n(&pool->state, &state,
                                          state - (spare *
                                          UCT_CXI_TRIG_CREDIT_HELD), 1,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    if (pool->is_open) {
        ucs_ledger_give(&pool->ledger, 0, spare);
    }
    pthread_mutex_unlock(&pool->lock);
}

void uct_cxi_trig_credit_init(uct_cxi_trig_credit_t *credit,
                              uct_cxi_trig_credit_pool_t *pool,
                              unsigned total)
{
    credit->pool  = pool;
    credit->total = total;
    credit->free  = total;
}

unsigned uct_cxi_trig_credit_max(const uct_cxi_trig_credit_t *credit)
{
    return ucs_min(credit->total, uct_cxi_trig_credit_pool_share(credit->pool));
}

unsigned uct_cxi_trig_credit_avail(const uct_cxi_trig_credit_t *credit)
{
    unsigned share = uct_cxi_trig_credit_pool_share(credit->pool);
    unsigned used  = uct_cxi_trig_credit_used(
            __atomic_load_n(&credit->pool->state, __ATOMIC_RELAXED));

    return ucs_min(credit->free, (share > used) ? (share - used) : 0);
}

ucs_status_t uct_cxi_trig_credit_take(uct_cxi_trig_credit_t *credit)
{
    uct_cxi_trig_credit_pool_t *pool = credit->pool;
    uint64_t state = __atomic_load_n(&pool->state, __ATOMIC_RELAXED);
    ucs_status_t status;

    if (credit->free == 0) {
        return UCS_ERR_NO_RESOURCE;
    }
    do {
        while (ucs_unlikely(uct_cxi_trig_credit_used(state) >=
                            uct_cxi_trig_credit_held(state))) {
            status = uct_cxi_trig_credit_pool_need(pool);
            if (status != UCS_OK) {
                return status;
            }
            state = __atomic_load_n(&pool->state, __ATOMIC_RELAXED);
        }
    } while (!__atomic_compare_exchange_n(&pool->state, &state, state + 1,
                                          1, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    --credit->free;
    return UCS_OK;
}

void uct_cxi_trig_credit_give(uct_cxi_trig_credit_t *credit, unsigned count)
{
    uct_cxi_trig_credit_pool_t *pool = credit->pool;
    uint64_t state                   = __atomic_sub_fetch(&pool->state, count,
                                                          __ATOMIC_RELAXED);

    credit->free += count;
    if (pool->params.is_shared && (pool->params.num_procs == 0) &&
        ((uct_cxi_trig_credit_held(state) - uct_cxi_trig_credit_used(state)) >
         (2 * UCT_CXI_TRIG_CREDIT_CHUNK))) {
        uct_cxi_trig_credit_pool_trim(pool);
    }
}

void uct_cxi_trig_credit_cleanup(uct_cxi_trig_credit_t *credit)
{
    uct_cxi_trig_credit_give(credit, credit->total - credit->free);
    uct_cxi_trig_credit_pool_put(credit->pool);
}
