/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_ext.c - the trigger extension: whether it is there, its limits and
 * counts.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "uct_trig.h"
#include "cxi_trig_addr.h"
#include "cxi_trig_cassini.h"
#include "cxi_trig_events.h"
#include "cxi_trig_guard.h"
#include "cxi_trig_iface.h"
#include "cxi_trig_status.h"

#include <ucs/sys/math.h>
#include <ucs/sys/string.h>


int uct_trig_iface_is_supported(uct_iface_h iface)
{
    return uct_cxi_trig_iface_from_uct(iface) != NULL;
}

void uct_trig_off_reason(char *text, size_t max)
{
    if (uct_cxi_trig_guard_is_registered()) {
        uct_cxi_trig_prov_reason(text, max);
    } else {
        ucs_snprintf_zero(text, max, "transport cxi_trig was built for another "
                          "version of UCX");
    }
}

ucs_status_t uct_trig_iface_query(uct_iface_h uct_iface,
                                  uct_trig_iface_attr_t *attr)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_iface_from_uct(uct_iface);
    const uct_cxi_trig_md_t *md;

    if (iface == NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    md                 = uct_cxi_trig_iface_md(iface);
    attr->flags        = md->needs_desc ? UCT_TRIG_IFACE_FLAG_LOCAL_MEM : 0;
    attr->max_put      = ucs_min(md->info->ep_attr->max_msg_size,
                                 md->prov->max_put);
    attr->max_count    = md->prov->max_count;
    attr->max_entries  = uct_cxi_trig_credit_max(&iface->dwq.credit);
    attr->free_entries = uct_cxi_trig_credit_avail(&iface->dwq.credit);
    attr->used_entries = iface->dwq.credit.total - iface->dwq.credit.free;
    attr->max_cntrs    = (md->prov->max_cntrs > 0) ?
                         md->prov->max_cntrs :
                         md->info->domain_attr->cntr_cnt;
    attr->num_cntrs    = iface->num_cntrs;
    attr->nic_entries  = iface->dwq.credit.pool->params.max;
    attr->share_entries =
            uct_cxi_trig_credit_pool_share(iface->dwq.credit.pool);
    attr->share_cntrs  =
            attr->max_cntrs /
            uct_cxi_trig_credit_pool_procs(iface->dwq.credit.pool);
    ucs_snprintf_zero(attr->provider, sizeof(attr->provider), "%s",
                      md->info->fabric_attr->prov_name);
    ucs_snprintf_zero(attr->device, sizeof(attr->device), "%s",
                      md->info->domain_attr->name);
    return UCS_OK;
}

ucs_status_t uct_trig_iface_query_nic(uct_iface_h uct_iface,
                                      uct_trig_nic_attr_t *attr)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_iface_from_uct(uct_iface);
    const uct_cxi_trig_cassini_nic_t *nic;
    const uct_cxi_trig_md_t *md;
    size_t depth;

    if (iface == NULL) {
        return UCS_ERR_UNSUPPORTED;
    }

    md    = uct_cxi_trig_iface_md(iface);
    nic   = uct_cxi_trig_md_nic(md);
    depth = uct_cxi_trig_md_depth(md);

    attr->service         = (nic == NULL) ? UCT_TRIG_NOT_TOLD :
                                            (int)nic->service;
    attr->vni             = (nic == NULL) ? UCT_TRIG_NOT_TOLD : (int)nic->vni;
    attr->service_entries = (depth == SIZE_MAX) ? UCT_TRIG_NOT_TOLD :
                                                  (int64_t)depth;
    attr->caches_keys     = UCT_TRIG_NOT_TOLD;
    attr->optimizes_keys  = UCT_TRIG_NOT_TOLD;
    attr->monitor[0]      = '\0';
    attr->ucx_notices     = uct_cxi_trig_events_work();
    if (md->prov->is_cassini) {
        attr->caches_keys    = uct_cxi_trig_cassini_caches_keys(md->domain);
        attr->optimizes_keys = uct_cxi_trig_cassini_optimizes_keys(md->domain);
    }
    if (md->prov->has_monitor) {
        ucs_snprintf_zero(attr->monitor, sizeof(attr->monitor), "%s",
                          uct_cxi_trig_cassini_monitor());
    }
    return UCS_OK;
}

ucs_status_t uct_trig_iface_stats(uct_iface_h uct_iface,
                                  uct_trig_iface_stats_t *stats)
{
    const uct_cxi_trig_iface_t *iface = uct_cxi_trig_iface_from_uct(uct_iface);

    if (iface == NULL) {
        return UCS_ERR_UNSUPPORTED;
    }
    *stats = iface->stats;
    return UCS_OK;
}

ucs_status_t uct_trig_md_stats(uct_md_h md, uct_trig_md_stats_t *stats)
{
    if (md->component != &uct_cxi_trig_component) {
        return UCS_ERR_UNSUPPORTED;
    }
    *stats = ucs_derived_of(md, uct_cxi_trig_md_t)->stats;
    return UCS_OK;
}
