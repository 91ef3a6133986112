/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_info.c - what fi_getinfo() says of the emulated devices. */
#include "fabric/cxiemu_info.h"
#include "fabric/cxiemu_fabric.h"
#include "base/cxiemu_addr.h"

#include <rdma/fi_errno.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CXIEMU_RX_SIZE      1024
#define CXIEMU_RX_BUFFERED  (256ul << 20)
#define CXIEMU_CQ_COUNT     65536
#define CXIEMU_MR_COUNT     65536
#define CXIEMU_PROTO_EP_VER 1

/* Domains use this service */
#define CXIEMU_SERVICE 1

#define CXIEMU_DEVICE_SPEED 200000000000ull /* Slingshot's */
#define CXIEMU_DEVICE_MTU   2048

/* What CXI tells of a device in prov_attr. As in its rdma/fi_cxi_ext.h, which
 * distributions leave out. */
typedef struct cxiemu_cxi_nic_attr {
    uint32_t version;
    unsigned addr;
    unsigned default_rgroup_id; /* Service */
    unsigned default_vni;
} cxiemu_cxi_nic_attr_t;

/* A device's description in one piece; other texts are constants. */
typedef struct cxiemu_device {
    struct fid_nic        nic; /* First: handed out */
    unsigned              number;
    char                  name[CXIEMU_DEVICE_NAME_MAX];
    struct fi_device_attr device;
    struct fi_bus_attr    bus;
    struct fi_link_attr   link;
    cxiemu_cxi_nic_attr_t attr;
} cxiemu_device_t;


static int cxiemu_device_close(struct fid *fid)
{
    free(container_of(fid, cxiemu_device_t, nic.fid));
    return 0;
}

static struct fid_nic *cxiemu_device_new(unsigned number);

/* fi_dupinfo() copies the device by this. */
static int cxiemu_device_control(struct fid *fid, int command, void *arg)
{
    const cxiemu_device_t *device = container_of(fid, cxiemu_device_t,
                                                 nic.fid);
    struct fid_nic *nic;

    if (command != FI_DUP) {
        return -FI_ENOSYS;
    }
    /* Also if it is NULL: the copy still has the original there, and libfabric
     * 1.17 would free that with it */
    nic                    = cxiemu_device_new(device->number);
    *(struct fid_nic**)arg = nic;
    if (nic == NULL) {
        return -FI_ENOMEM;
    }

    container_of(nic, cxiemu_device_t, nic)->attr = device->attr;
    return 0;
}

static struct fi_ops cxiemu_device_ops = {
    .size     = sizeof(struct fi_ops),
    .close    = cxiemu_device_close,
    .bind     = cxiemu_no_bind,
    .control  = cxiemu_device_control,
    .ops_open = cxiemu_no_ops_open
};

/* Description of a device; NULL if memory is short. fi_freeinfo() frees it. */
static struct fid_nic *cxiemu_device_new(unsigned number)
{
    cxiemu_device_t *device;

    device = calloc(1, sizeof(*device));
    if (device == NULL) {
        return NULL;
    }
    device->number          = number;
    snprintf(device->name, sizeof(device->name), CXIEMU_DEVICE_NAME "%u",
             number);
    device->nic.fid.fclass  = FI_CLASS_NIC;
    device->nic.fid.ops     = &cxiemu_device_ops;
    device->nic.device_attr = &device->device;
    device->nic.bus_attr    = &device->bus;
    device->nic.link_attr   = &device->link;
    device->nic.prov_attr   = &device->attr;

    device->device.name           = device->name;
    device->device.device_id      = (char*)"0x0";
    device->device.device_version = (char*)"0";
    device->device.vendor_id      = (char*)"0x0";
    device->device.driver         = (char*)"cxiemu";
    device->device.firmware       = (char*)"none";
    device->bus.bus_type          = FI_BUS_UNKNOWN;
    device->attr.version           = 1;
    device->attr.addr              = cxiemu_addr_host();
    device->attr.default_rgroup_id = CXIEMU_SERVICE;
    device->attr.default_vni       = cxiemu_param()->vni;

    device->link.address          = device->name;
    device->link.mtu              = CXIEMU_DEVICE_MTU;
    device->link.speed            = CXIEMU_DEVICE_SPEED;
    device->link.state            = FI_LINK_UP;
    device->link.network_type     = (char*)"shared memory";
    return &device->nic;
}


static void cxiemu_info_fill_ep(struct fi_info *info)
{
    info->ep_attr->type               = FI_EP_RDM;
    info->ep_attr->protocol           = FI_PROTO_CXI;
    info->ep_attr->protocol_version   = CXIEMU_PROTO_EP_VER;
    info->ep_attr->max_msg_size       = CXIEMU_MAX_MSG;
    info->ep_attr->max_order_raw_size = SIZE_MAX;
    info->ep_attr->max_order_war_size = SIZE_MAX;
    info->ep_attr->max_order_waw_size = SIZE_MAX;
    info->ep_attr->mem_tag_format     = CXIEMU_TAG_MASK;
    info->ep_attr->tx_ctx_cnt         = 1;
    info->ep_attr->rx_ctx_cnt         = 1;

    info->tx_attr->caps          = CXIEMU_CAPS_TX;
    info->tx_attr->msg_order     = CXIEMU_MSG_ORDER;
    info->tx_attr->comp_order    = 0; /* None is kept */
    info->tx_attr->inject_size   = CXIEMU_INJECT;
    info->tx_attr->size          = cxiemu_param()->tx_size;
    info->tx_attr->iov_limit     = 1;
    info->tx_attr->rma_iov_limit = 1;

    info->rx_attr->caps                = CXIEMU_CAPS_RX;
    info->rx_attr->msg_order           = CXIEMU_MSG_ORDER;
    info->rx_attr->comp_order          = 0;
    info->rx_attr->total_buffered_recv = CXIEMU_RX_BUFFERED;
    info->rx_attr->size                = CXIEMU_RX_SIZE;
    info->rx_attr->iov_limit           = 1;
}

static void cxiemu_info_fill_domain(struct fi_domain_attr *attr)
{
    attr->threading        = FI_THREAD_SAFE;
    attr->control_progress = FI_PROGRESS_AUTO;
    /* strict is as CXI, where counters are only written back by progress */
    attr->data_progress    = cxiemu_param()->strict ? FI_PROGRESS_MANUAL :
                                                      FI_PROGRESS_AUTO;
    attr->resource_mgmt    = FI_RM_ENABLED;
    attr->av_type          = FI_AV_UNSPEC;
    attr->mr_mode          = CXIEMU_MR_MODE;
    attr->mr_key_size      = sizeof(uint32_t); /* As CXI's, of users */
    attr->cq_data_size     = sizeof(uint64_t);
    attr->cq_cnt           = CXIEMU_CQ_COUNT;
    attr->ep_cnt           = CXIEMU_MAX_EPS;
    attr->tx_ctx_cnt       = CXIEMU_MAX_EPS;
    attr->rx_ctx_cnt       = CXIEMU_MAX_EPS;
    attr->max_ep_tx_ctx    = 1;
    attr->max_ep_rx_ctx    = 1;
    attr->cntr_cnt         = cxiemu_param()->max_cntrs;
    attr->mr_iov_limit     = 1;
    attr->mr_cnt           = CXIEMU_MR_COUNT;
    attr->caps             = FI_LOCAL_COMM;
}

/* The address of the peer that is meant, if one is: 1 with *addr, 0 for none,
 * or -FI_ENODATA, -FI_EINVAL. */
static int cxiemu_info_dest(const char *node, const char *service,
                            uint64_t flags, const struct fi_info *hints,
                            cxiemu_addr_t *addr)
{
    if (flags & FI_SOURCE) {
        /* An endpoint's address is given, not chosen: what is asked for here is
         * only that there be one */
        if ((node == NULL) && (service == NULL)) {
            return -FI_EINVAL;
        }
    } else if (node != NULL) {
        return cxiemu_addr_parse(node, addr) ? -FI_ENODATA : 1;
    }
    if ((hints == NULL) || (hints->dest_addr == NULL)) {
        return 0;
    }
    if (hints->dest_addrlen != sizeof(*addr)) {
        return -FI_ENODATA;
    }
    memcpy(addr, hints->dest_addr, sizeof(*addr));
    return 1;
}

/* The description that one device has for hints that can be met; NULL if memory
 * is short. */
static struct fi_info *cxiemu_info_make(unsigned device, uint32_t version,
                                        const struct fi_info *hints,
                                        const cxiemu_addr_t *dest)
{
    struct fi_info *info = fi_allocinfo();
    cxiemu_addr_t *src;

    if (info == NULL) {
        return NULL;
    }
    info->caps        = CXIEMU_CAPS_ALL;
    info->addr_format = FI_ADDR_CXI;
    cxiemu_info_fill_ep(info);
    cxiemu_info_fill_domain(info->domain_attr);
    info->fabric_attr->api_version  = version;
    info->fabric_attr->prov_version = CXIEMU_PROV_VERSION;
    info->fabric_attr->name         = strdup(CXIEMU_FABRIC_NAME);
    info->nic                       = cxiemu_device_new(device);
    /* As CXI's: an address of the device with an endpoint still to be chosen,
     * which fi_endpoint() does in any case */
    src            = calloc(1, sizeof(*src));
    info->src_addr = src;
    if ((info->fabric_attr->name == NULL) || (info->nic == NULL) ||
        (src == NULL)) {
        goto err;
    }
    src->version            = CXIEMU_ADDR_VERSION;
    src->ep                 = UINT16_MAX;
    src->host               = cxiemu_addr_host();
    info->src_addrlen       = sizeof(*src);
    info->domain_attr->name = strdup(info->nic->device_attr->name);
    if (info->domain_attr->name == NULL) {
        goto err;
    }
    if (dest != NULL) {
        info->dest_addr = malloc(sizeof(*dest));
        if (info->dest_addr == NULL) {
            goto err;
        }
        memcpy(info->dest_addr, dest, sizeof(*dest));
        info->dest_addrlen = sizeof(*dest);
    }
    cxiemu_hints_apply(hints, info);
    return info;

err:
    fi_freeinfo(info);
    return NULL;
}

int cxiemu_info_get(uint32_t version, const char *node, const char *service,
                    uint64_t flags, const struct fi_info *hints,
                    struct fi_info **info_p)
{
    const char *name      = ((hints != NULL) && (hints->domain_attr != NULL)) ?
                            hints->domain_attr->name : NULL;
    struct fi_info *list  = NULL;
    struct fi_info **tail = &list;
    cxiemu_addr_t dest;
    unsigned device;
    int ret, has_dest;

    ret = cxiemu_init();
    if (ret != 0) {
        return ret;
    }
    has_dest = cxiemu_info_dest(node, service, flags, hints, &dest);
    if (has_dest < 0) {
        return has_dest;
    }
    ret = (hints != NULL) ? cxiemu_hints_check(version, hints) : 0;
    if (ret != 0) {
        return ret;
    }
    /* Those of all devices that the hints ask for */
    for (device = 0; device < cxiemu_param()->devices; ++device) {
        if (!cxiemu_device_is_named(device, name)) {
            continue;
        }
        *tail = cxiemu_info_make(device, version, hints,
                                 has_dest ? &dest : NULL);
        if (*tail == NULL) {
            fi_freeinfo(list);
            return -FI_ENOMEM;
        }
        tail = &(*tail)->next;
    }
    *info_p = list;
    return 0;
}
