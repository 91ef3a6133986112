/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_cache.c - the memory domain's cache of registrations.
 *
 * Only where UCX leaves caching to the memory domains. UCX's cache notices when
 * memory is unmapped, and drops its registrations. It may register more than
 * was asked for, so that one region serves ranges that overlap.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_cache.h"

#if UCT_CXI_TRIG_MD_HAS_CACHE

#include "cxi_trig_target.h"

#include <ucs/datastruct/list.h>
#include <ucs/debug/log.h>
#include <ucs/memory/rcache.h>
#include <ucs/stats/stats.h>
#include <ucs/sys/sys.h>
#include <ucs/type/spinlock.h>
#include <ucs/vfs/base/vfs_obj.h>

#include <ucm/api/ucm.h>

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>


/** A look-up in the cache: which registration is wanted. */
typedef struct uct_cxi_trig_cache_want {
    unsigned flags;     /**< Of the registration */
    int      is_missed; /**< It was not there */
} uct_cxi_trig_cache_want_t;


/** A region of the cache. */
typedef struct uct_cxi_trig_cache_region {
    ucs_rcache_region_t super;
    uct_cxi_trig_memh_t memh;
    ucs_list_link_t     list;  /**< In md->cache_used if it has users */
    unsigned            users; /**< Registrations of the user */
} uct_cxi_trig_cache_region_t;


static ucs_status_t uct_cxi_trig_cache_reg(void *context, ucs_rcache_t *rcache,
                                           void *arg,
                                           ucs_rcache_region_t *rregion,
                                           uint16_t rcache_flags)
{
    uct_cxi_trig_cache_region_t *region =
            ucs_derived_of(rregion, uct_cxi_trig_cache_region_t);
    uct_cxi_trig_cache_want_t *want = arg;
    unsigned flags                  = want->flags;
    uct_cxi_trig_mr_params_t params = {
        .address = (void*)rregion->super.start,
        .length  = rregion->super.end - rregion->super.start
    };

    if (rcache_flags & UCS_RCACHE_MEM_REG_HIDE_ERRORS) {
        flags |= UCT_MD_MEM_FLAG_HIDE_ERRORS; /* It is tried again */
    }

    want->is_missed        = 1;
    region->users          = 0;
    region->memh.is_cached = 1;
    region->memh.address   = params.address;
    region->memh.length    = params.length;
    params.level           = uct_md_reg_log_lvl(flags);
    return uct_cxi_trig_target_reg(context, &params, &region->memh.mr);
}

static void uct_cxi_trig_cache_dereg(void *context, ucs_rcache_t *rcache,
                                     ucs_rcache_region_t *rregion)
{
    uct_cxi_trig_mr_close(
            context,
            ucs_derived_of(rregion, uct_cxi_trig_cache_region_t)->memh.mr);
}

static void uct_cxi_trig_cache_dump(void *context, ucs_rcache_t *rcache,
                                    ucs_rcache_region_t *rregion, char *text,
                                    size_t max)
{
    snprintf(text, max, "key 0x%" PRIx64,
             ucs_derived_of(rregion,
                            uct_cxi_trig_cache_region_t)->memh.mr->key);
}

static const ucs_rcache_ops_t uct_cxi_trig_cache_ops = {
    .mem_reg     = uct_cxi_trig_cache_reg,
    .mem_dereg   = uct_cxi_trig_cache_dereg,
    .dump_region = uct_cxi_trig_cache_dump
};

ucs_status_t uct_cxi_trig_cache_create(uct_cxi_trig_md_t *md,
                                       const uct_cxi_trig_md_config_t *config)
{
    ucs_rcache_params_t params;
    ucs_status_t status;

    if (config->rcache_enable == UCS_NO) {
        return UCS_OK;
    }

    uct_md_set_rcache_params(&params, &config->rcache);
    params.region_struct_size = sizeof(uct_cxi_trig_cache_region_t);
    params.max_alignment      = ucs_get_page_size();
    params.ucm_events         = UCM_EVENT_VM_UNMAPPED;
    if (md->cache_types != UCS_BIT(UCS_MEMORY_TYPE_HOST)) {
        params.ucm_events    |= UCM_EVENT_MEM_TYPE_FREE;
    }
    params.ops                = &uct_cxi_trig_cache_ops;
    params.context            = md;

    ucs_list_head_init(&md->cache_used);
    ucs_spinlock_init(&md->cache_lock, 0);
    status = ucs_rcache_create(&params, md->info->domain_attr->name,
                               ucs_stats_get_root(), &md->rcache);
    if (status == UCS_OK) {
        md->reg_cost = ucs_linear_func_make(
                uct_md_rcache_overhead(&config->rcache), 0);
        return UCS_OK;
    }

    md->rcache = NULL;
    if (config->rcache_enable == UCS_TRY) {
        ucs_diag("device %s has no cache of registrations: %s",
                 md->info->domain_attr->name, ucs_status_string(status));
        return UCS_OK;
    }
    ucs_error("device %s: the cache of registrations that "
              "UCX_CXI_TRIG_RCACHE=y asks for cannot be created: %s",
              md->info->domain_attr->name, ucs_status_string(status));
    return status;
}

/* UCX's cache ends the program if it is destroyed while a region is in use:
 * what the user has not given back is given back here. No other thread uses the
 * domain any more. */
static void uct_cxi_trig_cache_release(uct_cxi_trig_md_t *md)
{
    unsigned count = 0;
    uct_cxi_trig_cache_region_t *region;
    unsigned users;

    while (!ucs_list_is_empty(&md->cache_used)) {
        region = ucs_list_extract_head(&md->cache_used,
                                       uct_cxi_trig_cache_region_t, list);
        users  = region->users;
        count += users;
        /* The last one may free it */
        for (; users > 0; --users) {
            ucs_rcache_region_put(md->rcache, &region->super);
        }
    }
    if (count > 0) {
        ucs_warn("device %s is closed with %u registrations of memory that "
                 "were not given back", md->info->domain_attr->name, count);
    }
}

void uct_cxi_trig_cache_destroy(uct_cxi_trig_md_t *md)
{
    if (md->rcache != NULL) {
        uct_cxi_trig_cache_release(md);
        ucs_rcache_destroy(md->rcache);
        ucs_spinlock_destroy(&md->cache_lock);
    }
}

static void uct_cxi_trig_cache_use(uct_cxi_trig_md_t *md,
                                   uct_cxi_trig_cache_region_t *region)
{
    ucs_spin_lock(&md->cache_lock);
    if (region->users++ == 0) {
        ucs_list_add_tail(&md->cache_used, &region->list);
    }
    ucs_spin_unlock(&md->cache_lock);
}

static void uct_cxi_trig_cache_unuse(uct_cxi_trig_md_t *md,
                                     uct_cxi_trig_cache_region_t *region)
{
    ucs_spin_lock(&md->cache_lock);
    if (--region->users == 0) {
        ucs_list_del(&region->list);
    }
    ucs_spin_unlock(&md->cache_lock);
}

ucs_status_t uct_cxi_trig_cache_get(uct_cxi_trig_md_t *md, void *address,
                                    size_t length, unsigned flags,
                                    uct_mem_h *memh_p)
{
    uct_cxi_trig_cache_want_t want = {
        .flags = flags
    };
    uct_cxi_trig_cache_region_t *region;
    ucs_rcache_region_t *rregion;
    ucs_status_t status;

    status = ucs_rcache_get(md->rcache, address, length, PROT_READ | PROT_WRITE,
                            &want, &rregion);
    uct_cxi_trig_stats_atomic(want.is_missed ? &md->stats.cache_misses :
                                               &md->stats.cache_hits, 1);
    if (status == UCS_OK) {
        region = ucs_derived_of(rregion, uct_cxi_trig_cache_region_t);
        uct_cxi_trig_cache_use(md, region);
        *memh_p = &region->memh;
    }
    return status;
}

static void uct_cxi_trig_cache_invalidated(void *arg)
{
    uct_invoke_completion(arg, UCS_OK);
}

void uct_cxi_trig_cache_put(uct_cxi_trig_md_t *md, uct_mem_h memh,
                            uct_completion_t *comp)
{
    uct_cxi_trig_cache_region_t *region =
            ucs_container_of(memh, uct_cxi_trig_cache_region_t, memh);

    uct_cxi_trig_cache_unuse(md, region);
    if (comp != NULL) {
        ucs_rcache_region_invalidate(md->rcache, &region->super,
                                     uct_cxi_trig_cache_invalidated, comp);
    }
    ucs_rcache_region_put(md->rcache, &region->super);
}

void uct_cxi_trig_cache_vfs_init(uct_cxi_trig_md_t *md)
{
    if (md->rcache != NULL) {
        ucs_vfs_obj_add_sym_link(md, md->rcache, "rcache");
    }
}

#endif
