/* SPDX-License-Identifier: BSD-3-Clause */
/* fab_card.c - the emulated card under the name of cxi. One thread. */
#include "fab_card.h"
#include "st_real.h"

#include <cxi_trig_cassini.h>
#include <cxi_trig_emu.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <stdlib.h>
#include <string.h>

static int        is_set;
static fab_card_t card;
static int        refused_code = FI_EACCES;
static const char *refused_device;
static int        counter_code; /* 0: counters can be opened */
static unsigned   service = 1;
static uint64_t   orders; /* 0: all */
static uint32_t   version = FI_VERSION(2, 0);
static uint32_t   classes[2]; /* of the domain, and to transmit */

static struct fi_ops_fabric *real_ops;


void fab_card_set(fab_card_t new_card)
{
    is_set = 1;
    card   = new_card;
}

void fab_card_reset(void)
{
    is_set = 0;
}

void fab_card_refuse(int code, const char *device)
{
    refused_code   = code;
    refused_device = device;
}

void fab_card_refuse_counters(int code)
{
    counter_code = code;
}

void fab_card_set_service(unsigned new_service)
{
    service = new_service;
}

void fab_card_set_orders(uint64_t new_orders)
{
    orders = new_orders;
}

void fab_card_set_version(uint32_t new_version)
{
    version = new_version;
}

uint32_t fab_card_domain_class(void)
{
    return classes[0];
}

uint32_t fab_card_tx_class(void)
{
    return classes[1];
}

static fab_card_t what(void)
{
    const char *provider = getenv("UCX_CXI_TRIG_PROVIDER");

    return is_set ? card :
           ((provider != NULL) && !strcmp(provider, "cxi")) ? FAB_CARD_REAL :
                                                              FAB_CARD_NONE;
}

static int is_card(const struct fi_fabric_attr *attr)
{
    return (attr != NULL) && (attr->prov_name != NULL) &&
           !strcmp(attr->prov_name, "cxi") && (what() != FAB_CARD_REAL);
}

static int refuse_counter(struct fid_domain *domain, struct fi_cntr_attr *attr,
                          struct fid_cntr **cntr, void *context)
{
    return -counter_code;
}

static int refuse_domain(struct fid_fabric *fabric, struct fi_info *info,
                         struct fid_domain **domain, void *context)
{
    static struct fi_ops_domain ops;
    int ret;

    classes[0] = info->domain_attr->tclass;
    classes[1] = info->tx_attr->tclass;
    if ((what() == FAB_CARD_CLOSED) &&
        ((refused_device == NULL) ||
         !strcmp(refused_device, info->domain_attr->name))) {
        return -refused_code;
    }
    ret = real_ops->domain(fabric, info, domain, context);
    if ((ret == 0) && (counter_code != 0)) {
        ops            = *(*domain)->ops;
        ops.cntr_open  = refuse_counter;
        (*domain)->ops = &ops;
    }
    return ret;
}

static int rename_provider(struct fi_info *info)
{
    uct_cxi_trig_cassini_nic_t *nic;

    for (; info != NULL; info = info->next) {
        free(info->fabric_attr->prov_name);
        info->fabric_attr->prov_name = strdup("cxi");
        if (info->fabric_attr->prov_name == NULL) {
            return -FI_ENOMEM;
        }
        if (orders != 0) {
            info->rx_attr->msg_order = orders;
        }
        nic          = info->nic->prov_attr;
        nic->service = service;
    }
    return 0;
}

uint32_t fi_version(void)
{
    return ((what() == FAB_CARD_CLOSED) || (what() == FAB_CARD_OPEN)) ?
           version : ST_REAL(fi_version)();
}

int fi_getinfo(uint32_t api, const char *node, const char *name, uint64_t flags,
               const struct fi_info *hints, struct fi_info **info_p)
{
    struct fi_info *wanted;
    int ret;

    if ((hints == NULL) || !is_card(hints->fabric_attr)) {
        return ST_REAL(fi_getinfo)(api, node, name, flags, hints, info_p);
    }
    if ((what() == FAB_CARD_NONE) ||
        ((orders != 0) && (hints->tx_attr->msg_order & ~orders))) {
        return -FI_ENODATA;
    }

    wanted = fi_dupinfo(hints);
    free(wanted->fabric_attr->prov_name);
    wanted->fabric_attr->prov_name = strdup("cxiemu");
    ret = uct_cxi_trig_emu->ops->getinfo(api, node, name, flags, wanted,
                                         info_p);
    fi_freeinfo(wanted);
    return (ret != 0) ? ret : rename_provider(*info_p);
}

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
              void *context)
{
    static struct fi_ops_fabric ops;
    int ret;

    if (!is_card(attr)) {
        return ST_REAL(fi_fabric)(attr, fabric, context);
    }

    ret = uct_cxi_trig_emu->ops->fabric(attr, fabric, context);
    if (ret == 0) {
        real_ops       = (*fabric)->ops;
        ops            = *real_ops;
        ops.domain     = refuse_domain;
        (*fabric)->ops = &ops;
    }
    return ret;
}
