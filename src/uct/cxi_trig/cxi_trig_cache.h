/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_cache.h - the memory domain's cache of registrations, where UCX
 * leaves caching to the memory domains (see compat.h).
 */
#ifndef UCT_CXI_TRIG_CACHE_H_
#define UCT_CXI_TRIG_CACHE_H_

#include "cxi_trig_memh.h"

#if UCT_CXI_TRIG_MD_HAS_CACHE

/**
 * Create the cache, as the settings say. UCS_OK without one if that fails and
 * the settings only ask to try it; else failures are logged.
 */
ucs_status_t uct_cxi_trig_cache_create(uct_cxi_trig_md_t *md,
                                       const uct_cxi_trig_md_config_t *config);

/** Destroy it, if there is one, with all registrations that are left. */
void uct_cxi_trig_cache_destroy(uct_cxi_trig_md_t *md);

static inline int uct_cxi_trig_cache_is_on(const uct_cxi_trig_md_t *md)
{
    return md->rcache != NULL;
}

/** Find or make a registration. Failures are logged, with
 *  UCT_MD_MEM_FLAG_HIDE_ERRORS in @a flags for diagnosis only. Any thread. */
ucs_status_t uct_cxi_trig_cache_get(uct_cxi_trig_md_t *md, void *address,
                                    size_t length, unsigned flags,
                                    uct_mem_h *memh_p);

/**
 * Give a registration back. With @a comp nobody gets it any more, and @a comp
 * is told once all that have it have given it back and it is closed.
 */
void uct_cxi_trig_cache_put(uct_cxi_trig_md_t *md, uct_mem_h memh,
                            uct_completion_t *comp);

/** Show the cache beside the domain in UCX's tree of objects. */
void uct_cxi_trig_cache_vfs_init(uct_cxi_trig_md_t *md);

#else

static inline ucs_status_t
uct_cxi_trig_cache_create(uct_cxi_trig_md_t *md,
                          const uct_cxi_trig_md_config_t *config)
{
    return UCS_OK;
}

static inline void uct_cxi_trig_cache_destroy(uct_cxi_trig_md_t *md)
{
}

static inline int uct_cxi_trig_cache_is_on(const uct_cxi_trig_md_t *md)
{
    return 0;
}

static inline ucs_status_t
uct_cxi_trig_cache_get(uct_cxi_trig_md_t *md, void *address, size_t length,
                       unsigned flags, uct_mem_h *memh_p)
{
    return UCS_ERR_UNSUPPORTED;
}

static inline void uct_cxi_trig_cache_put(uct_cxi_trig_md_t *md, uct_mem_h memh,
                                          uct_completion_t *comp)
{
}

static inline void uct_cxi_trig_cache_vfs_init(uct_cxi_trig_md_t *md)
{
}

#endif

#endif
