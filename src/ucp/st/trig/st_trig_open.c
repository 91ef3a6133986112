/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_open.c - which devices of the transport the trig lane opens.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_lane.h"
#include "core/st_log.h"
#include "trig/st_trig_dev.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* The first device of a memory domain that UCX_NET_DEVICES allows; the domain
 * is the rail's then. UCS_ERR_NO_DEVICE if there is none. */
static ucs_status_t ucp_st_trig_open_rail(ucp_st_worker_h worker, uct_md_h md)
{
    const char *allowed    = getenv("UCX_NET_DEVICES");
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    ucs_status_t result    = UCS_ERR_NO_DEVICE;
    uct_tl_resource_desc_t *tls;
    unsigned num_tls, i;
    ucs_status_t status;

    status = uct_md_query_tl_resources(md, &tls, &num_tls);
    if (status != UCS_OK) {
        return status;
    }
    for (i = 0; (i < num_tls) && (result == UCS_ERR_NO_DEVICE); ++i) {
        if (!strcmp(tls[i].tl_name, UCP_ST_TRIG_TL_NAME) &&
            ucp_st_config_list_allows(allowed, tls[i].dev_name)) {
            result = ucp_st_trig_rail_open(&dev->rails[dev->num_rails], worker,
                                           md, &tls[i]);
        }
    }
    uct_release_tl_resource_list(tls);
    dev->num_rails += (result == UCS_OK);
    return result;
}

static ucs_status_t ucp_st_trig_open_md(ucp_st_worker_h worker,
                                        uct_component_h component,
                                        const char *name)
{
    uct_md_config_t *config;
    ucs_status_t status;
    uct_md_h md;

    status = uct_md_config_read(component, NULL, NULL, &config);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_md_open(component, name, config, &md);
    uct_config_release(config);
    if (status != UCS_OK) {
        return status;
    }

    status = ucp_st_trig_open_rail(worker, md);
    if (status != UCS_OK) {
        uct_md_close(md);
    }
    return (status == UCS_ERR_NO_DEVICE) ? UCS_OK : status;
}

/* UCS_OK also if there is nothing to open */
static ucs_status_t ucp_st_trig_open_component(ucp_st_worker_h worker,
                                               uct_component_h component)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                      UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    unsigned max_rails        = ucs_min(worker->config.trig_devices,
                                        UCP_ST_TRIG_MAX_RAILS);
    ucs_status_t status;
    unsigned i, count;

    status = uct_component_query(component, &attr);
    if ((status != UCS_OK) || strcmp(attr.name, UCP_ST_TRIG_TL_NAME) ||
        (attr.md_resource_count == 0)) {
        return UCS_OK;
    }

    {
        uct_md_resource_desc_t mds[attr.md_resource_count];

        /* It looks for them again, and may find fewer */
        count             = attr.md_resource_count;
        attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT |
                            UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        attr.md_resources = mds;
        status            = uct_component_query(component, &attr);
        count             = ucs_min(count, attr.md_resource_count);
        for (i = 0; (i < count) && (status == UCS_OK) &&
                    (ucp_st_trig_dev(worker)->num_rails < max_rails); ++i) {
            status = ucp_st_trig_open_md(worker, component, mds[i].md_name);
        }
    }
    return status;
}

static void ucp_st_trig_open_complain(ucp_st_worker_h worker,
                                      ucs_status_t status)
{
    const char *allowed = getenv("UCX_NET_DEVICES");
    char reason[UCT_TRIG_REASON_MAX];

    uct_trig_off_reason(reason, sizeof(reason));
    if (status != UCS_ERR_NO_DEVICE) {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_TRIG,
                           "lane 'trig': failed to open a device: %s",
                           ucs_status_string(status));
    } else if (reason[0] != '\0') {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_TRIG, "lane 'trig': %s", reason);
    } else {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_TRIG,
                           "lane 'trig': transport %s has no device%s%s (is it "
                           "loaded?)", UCP_ST_TRIG_TL_NAME, (allowed == NULL) ?
                           "" : " that UCX_NET_DEVICES allows: ",
                           (allowed == NULL) ? "" : allowed);
    }
}

ucs_status_t ucp_st_trig_open_rails(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    uct_component_h *components;
    unsigned num_components, i;
    ucs_status_t status;

    dev->num_rails = 0;
    if (worker->config.trig_devices == 0) {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_NONE,
                           "UCX_ST_TRIG_DEVICES must be 1 to %d",
                           UCP_ST_TRIG_MAX_RAILS);
        return UCS_ERR_INVALID_PARAM;
    }
    status = uct_query_components(&components, &num_components);
    if (status != UCS_OK) {
        return status;
    }
    for (i = 0; (i < num_components) && (status == UCS_OK); ++i) {
        status = ucp_st_trig_open_component(worker, components[i]);
    }
    uct_release_component_list(components);
    if ((status == UCS_OK) && (dev->num_rails == 0)) {
        status = UCS_ERR_NO_DEVICE;
    }
    if (status != UCS_OK) {
        ucp_st_trig_open_complain(worker, status);
        while (dev->num_rails > 0) {
            ucp_st_trig_rail_close(&dev->rails[--dev->num_rails]);
        }
    }
    return status;
}
