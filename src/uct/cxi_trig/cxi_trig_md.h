/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_md.h - the component and its memory domains, one a libfabric domain.
 */
#ifndef UCT_CXI_TRIG_MD_H_
#define UCT_CXI_TRIG_MD_H_

#include "compat.h"
#include "cxi_trig_cassini.h"
#include "cxi_trig_credit.h"
#include "cxi_trig_prov.h"
#include "cxi_trig_stats.h"

#include <ucs/datastruct/list.h>
#include <ucs/type/spinlock.h>

#include <rdma/fi_domain.h>

#include <pthread.h>

/** Name of the transport and the component. */
#define UCT_CXI_TRIG_NAME "cxi_trig"

/** Prefix of all settings, after UCX_. */
#define UCT_CXI_TRIG_PREFIX "CXI_TRIG_"


/** Settings of a memory domain. */
typedef struct uct_cxi_trig_md_config {
    uct_md_config_t          super;
    uct_cxi_trig_prov_want_t want;
    int                      stats;
#if UCT_CXI_TRIG_MD_HAS_CACHE
    ucs_ternary_auto_value_t rcache_enable;
    uct_md_rcache_config_t   rcache;
#endif
} uct_cxi_trig_md_config_t;


/**
 * Memory domain. Constant after it was opened, but for next_key, which is
 * atomic, target, cache_used, ifaces, cntrs, and stats.
 */
typedef struct uct_cxi_trig_md {
    uct_md_t                  super;
    const uct_cxi_trig_prov_t *prov;
    struct fi_info            *info;
    struct fid_fabric         *fabric;
    struct fid_domain         *domain;
    struct uct_cxi_trig_net   *target;  /**< See cxi_trig_target.h; NULL until
                                             it is needed */
    uint64_t                  next_key; /**< Where we choose the keys: how many
                                             there were */
    int                       revokes;  /**< As the provider, with the keys of
                                             this domain */
    int                       is_unasked; /**< An emulated card that no setting
                                               names */
    int                       loopback; /**< Reaches this machine only */
    int                       sees_gpus;  /**< Asks whose memory is */
    int                       needs_desc; /**< Of local memory of GPUs */
    uint64_t                  reg_types;    /**< Memory that can be registered,
                                                 ... */
    uint64_t                  detect_types; /**< ... and told from others */
    uint64_t                  cache_types;  /**< ... and whose registrations a
                                                 cache may keep */
#if UCT_CXI_TRIG_MD_HAS_CACHE
    ucs_rcache_t              *rcache;  /**< NULL if registrations are not
                                             kept */
    ucs_list_link_t           cache_used; /**< Regions of it that are in use */
    ucs_spinlock_t            cache_lock; /**< Protects these */
#endif
    struct {
        pthread_mutex_t       mutex; /**< Held, too, while all deferred work of
                                          the domain is dropped */
        unsigned              count;  /**< Open ones */
    } ifaces;
    struct {
        pthread_mutex_t       mutex; /**< Protects these */
        struct {
            struct fid_cntr   *first; /**< By their contexts; the one that was
                                           used last is ... */
            struct fid_cntr   *last;  /**< ... the last */
        } free[2];                    /**< Free ones; [1]: streams of devices
                                           reach their trigger pages */
        int                   is_stalled; /**< The NIC took too long; atomic */
    } cntrs;                          /**< See cxi_trig_cntr_pool.h */
    ucs_linear_func_t         reg_cost;
    int                       tells_stats; /**< When it is closed */
    uct_trig_md_stats_t       stats;    /**< Atomic */
} uct_cxi_trig_md_t;


/** Whose the deferred-work entries of the NIC are, and how many; all but the
 *  number of processes. */
void uct_cxi_trig_md_credit_params(const uct_cxi_trig_md_t *md,
                                   uct_cxi_trig_credit_params_t *params);


/** What a Cassini NIC tells of itself; NULL: it tells nothing, or is none. */
static inline const uct_cxi_trig_cassini_nic_t *
uct_cxi_trig_md_nic(const uct_cxi_trig_md_t *md)
{
    return md->prov->is_cassini ? uct_cxi_trig_cassini_nic(md->info) : NULL;
}

/** Deferred-work entries of the service, of all processes; SIZE_MAX if that is
 *  not told. */
static inline size_t uct_cxi_trig_md_depth(const uct_cxi_trig_md_t *md)
{
    return md->prov->is_cassini ? uct_cxi_trig_cassini_depth(md->domain) :
                                  SIZE_MAX;
}

/** An interface is open, and may post from then on; or it is closed. */
void uct_cxi_trig_md_count_iface(uct_cxi_trig_md_t *md, int change);


/** The component; registered by the library's constructor. */
extern uct_component_t uct_cxi_trig_component;
extern uct_md_ops_t uct_cxi_trig_md_ops;

#endif
