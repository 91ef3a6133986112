/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_device.c - a device's place and speed; opening something of it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_device.h"
#include "cxi_trig_cassini.h"
#include "cxi_trig_status.h"
#include "uct_trig.h"

#include <ucs/debug/log.h>

#include <rdma/fi_errno.h>


ucs_sys_device_t uct_cxi_trig_device_sys(const struct fi_info *info)
{
    ucs_sys_device_t sys_dev = UCS_SYS_DEVICE_ID_UNKNOWN;
    const struct fi_pci_attr *pci;
    ucs_sys_bus_id_t bus_id;

    if ((info->nic == NULL) || (info->nic->bus_attr == NULL) ||
        (info->nic->bus_attr->bus_type != FI_BUS_PCI)) {
        return UCS_SYS_DEVICE_ID_UNKNOWN;
    }

    pci             = &info->nic->bus_attr->attr.pci;
    bus_id.domain   = pci->domain_id;
    bus_id.bus      = pci->bus_id;
    bus_id.slot     = pci->device_id;
    bus_id.function = pci->function_id;
    if (ucs_topo_find_device_by_bus_id(&bus_id, &sys_dev) != UCS_OK) {
        ucs_diag("device %s at %04x:%02x:%02x.%d has no place in UCX's "
                 "topology", info->domain_attr->name, bus_id.domain,
                 bus_id.bus, bus_id.slot, bus_id.function);
        return UCS_SYS_DEVICE_ID_UNKNOWN;
    }
    return sys_dev;
}

/* A device that only reaches its own machine has no link: the speed that it
 * shows is that of the one it stands for. */
double uct_cxi_trig_device_bandwidth(const uct_cxi_trig_prov_t *prov,
                                     const struct fi_info *info)
{
    if (prov->local || (info->nic == NULL) || (info->nic->link_attr == NULL) ||
        (info->nic->link_attr->speed == 0)) {
        return prov->bandwidth;
    }
    return info->nic->link_attr->speed / 8.0; /* Bits per second */
}

int uct_cxi_trig_device_open_cntr(struct fid_domain *domain, void *context,
                                  struct fid_cntr **cntr_p)
{
    struct fi_cntr_attr attr = {
        .events   = FI_CNTR_EVENTS_COMP,
        .wait_obj = FI_WAIT_NONE
    };

    return fi_cntr_open(domain, &attr, cntr_p, context);
}

ucs_status_t uct_cxi_trig_device_open_failed(const uct_cxi_trig_prov_t *prov,
                                             const struct fi_info *info,
                                             const char *what, int ret)
{
    char advice[UCT_TRIG_REASON_MAX] = "";

    if (prov->is_cassini) {
        uct_cxi_trig_cassini_advise(info, ret, advice, sizeof(advice));
    }
    ucs_error("cannot open %s %s of libfabric provider %s: %s%s%s", what,
              info->domain_attr->name, info->fabric_attr->prov_name,
              fi_strerror(-ret), (advice[0] == '\0') ? "" : ": ", advice);
    return uct_cxi_trig_status(ret);
}
