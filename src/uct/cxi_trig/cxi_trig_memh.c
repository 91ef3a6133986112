/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_memh.c - registration of memory with a memory domain.
 *
 * A handle is invalidated by closing its region. The table of providers says
 * whose fi_close() returns only when no peer reaches the region any more: cxi
 * has the card unlink the region's entry, waits until it is, and has accesses
 * that are under way flushed; cxiemu unlists the region under the lock under
 * which it carries each access out. Both do so where the keys are ours. A key
 * of cxi's own for a region that counts nothing is an address, good for all
 * that the process has mapped, and is not revoked (its cache of keys); of
 * others the sequence number is not always looked at (optimized regions). So
 * the domain is opened without FI_MR_PROV_KEY. A key is not given to a second
 * region (see cxi_trig_mr.c), so that what a peer still sends with it is
 * refused.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_memh.h"
#include "cxi_trig_cache.h"
#include "cxi_trig_gpu.h"
#include "cxi_trig_target.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>

#include <sys/mman.h>


/* What comes with a file descriptor; NULL: nothing does. */
static const uct_cxi_trig_dmabuf_t *
uct_cxi_trig_memh_dmabuf(uct_cxi_trig_reg_params_t params,
                         uct_cxi_trig_dmabuf_t *dmabuf)
{
#if UCT_CXI_TRIG_HAS_DMABUF
    dmabuf->fd     = UCT_MD_MEM_REG_FIELD_VALUE(params, dmabuf_fd,
                                                FIELD_DMABUF_FD,
                                                UCT_DMABUF_FD_INVALID);
    dmabuf->offset = UCT_MD_MEM_REG_FIELD_VALUE(params, dmabuf_offset,
                                                FIELD_DMABUF_OFFSET, 0);
    return (dmabuf->fd == UCT_DMABUF_FD_INVALID) ? NULL : dmabuf;
#else
    return NULL;
#endif
}

/* Whether a registration of the memory at an address may be kept for a next
 * use. */
static int uct_cxi_trig_memh_may_cache(const uct_cxi_trig_md_t *md,
                                       const void *address)
{
    uct_cxi_trig_gpu_mem_t gpu;

    return uct_cxi_trig_cache_is_on(md) &&
           ((md->cache_types == md->reg_types) ||
            !uct_cxi_trig_gpu_find(address, &gpu) ||
            !(md->reg_types & ~md->cache_types & UCS_BIT(gpu.type)));
}

/* UCT_MD_MEM_FLAG_NONBLOCK is a hint, and there is nothing to put off: a
 * provider that pages on demand does so for all memory. */
ucs_status_t uct_cxi_trig_memh_reg(uct_md_h uct_md, void *address,
                                   size_t length,
                                   uct_cxi_trig_reg_params_t params,
                                   uct_mem_h *memh_p)
{
    uct_cxi_trig_md_t *md              = ucs_derived_of(uct_md,
                                                        uct_cxi_trig_md_t);
    unsigned flags                     = UCT_CXI_TRIG_REG_FLAGS(params);
    uct_cxi_trig_mr_params_t mr_params = {
        .address = address,
        .length  = length,
        .level   = uct_md_reg_log_lvl(flags)
    };
    uct_cxi_trig_dmabuf_t dmabuf;
    uct_cxi_trig_memh_t *memh;
    ucs_status_t status;

    /* A cache counts on that */
    if (!uct_cxi_trig_mr_is_range(address, length)) {
        ucs_log(mr_params.level,
                "cannot register %zu bytes at %p on device %s: there are no "
                "such addresses", length, address, md->info->domain_attr->name);
        return UCS_ERR_INVALID_ADDR;
    }

    if (uct_cxi_trig_memh_may_cache(md, address)) {
        return uct_cxi_trig_cache_get(md, address, length, flags, memh_p);
    }

    memh = ucs_malloc(sizeof(*memh), "cxi_trig_memh");
    if (memh == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    memh->address    = address;
    memh->length     = length;
    memh->is_cached  = 0;
    mr_params.dmabuf = uct_cxi_trig_memh_dmabuf(params, &dmabuf);
    status           = uct_cxi_trig_target_reg(md, &mr_params, &memh->mr);
    if (status != UCS_OK) {
        ucs_free(memh);
        return status;
    }

    *memh_p = memh;
    return UCS_OK;
}

ucs_status_t uct_cxi_trig_memh_dereg(uct_md_h uct_md,
                                     const uct_md_mem_dereg_params_t *params)
{
    uct_cxi_trig_md_t *md  = ucs_derived_of(uct_md, uct_cxi_trig_md_t);
    uct_completion_t *comp = NULL;
    uct_cxi_trig_memh_t *memh;

    UCT_MD_MEM_DEREG_CHECK_PARAMS(params, md->revokes);

    if (UCT_MD_MEM_DEREG_FIELD_VALUE(params, flags, FIELD_FLAGS, 0) &
        UCT_MD_MEM_DEREG_FLAG_INVALIDATE) {
        comp = params->comp;
    }

    memh = params->memh;
    if (memh->is_cached) {
        uct_cxi_trig_cache_put(md, memh, comp);
        return UCS_OK;
    }

    uct_cxi_trig_mr_close(md, memh->mr);
    ucs_free(memh);
    if (comp != NULL) {
        uct_invoke_completion(comp, UCS_OK);
    }
    return UCS_OK;
}

/* Whole pages only: the rest of a page may be somebody else's, but what is
 * wanted soon may come in with its page. */
ucs_status_t uct_cxi_trig_memh_advise(uct_md_h uct_md, uct_mem_h uct_memh,
                                      void *address, size_t length,
                                      unsigned advice)
{
    const uct_cxi_trig_memh_t *memh = uct_memh;
    uintptr_t offset                = (uintptr_t)address -
                                      (uintptr_t)memh->address;
    uintptr_t start                 = uct_cxi_trig_mr_page(address);

    if ((offset > memh->length) || (length > memh->length - offset)) {
        ucs_error("advice on %zu bytes at %p: they are not in the region of "
                  "%zu bytes at %p", length, address, memh->length,
                  memh->address);
        return UCS_ERR_INVALID_PARAM;
    }

    if (advice == UCT_MADV_NORMAL) {
        return UCS_OK;
    }
    if (advice != UCT_MADV_WILLNEED) {
        ucs_error("advice %u on memory is not known", advice);
        return UCS_ERR_INVALID_PARAM;
    }

    /* Advice guarantees nothing: the memory is as good without */
    if (madvise((void*)start, (uintptr_t)address + length - start,
                MADV_WILLNEED) != 0) {
        ucs_debug("madvise(%p, %zu): %m", address, length);
    }
    return UCS_OK;
}

ucs_status_t uct_cxi_trig_memh_pack(UCT_CXI_TRIG_MKEY_PACK_ARGS)
{
    const uct_cxi_trig_memh_t *region = memh;

    uct_cxi_trig_mr_pack(ucs_derived_of(md, uct_cxi_trig_md_t), region->mr,
                         region->address, region->length, buffer);
    return UCS_OK;
}
