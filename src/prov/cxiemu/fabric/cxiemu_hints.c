/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_hints.c - what a program may ask for, and how it is met. */
#include "fabric/cxiemu_info.h"
#include "base/cxiemu_log.h"

#include <rdma/fi_errno.h>

#include <stdio.h>
#include <string.h>


int cxiemu_device_is_named(unsigned number, const char *name)
{
    char own[CXIEMU_DEVICE_NAME_MAX];

    snprintf(own, sizeof(own), CXIEMU_DEVICE_NAME "%u", number);
    return (name == NULL) || !strcmp(name, own);
}

int cxiemu_device_exists(const char *name)
{
    unsigned number;

    for (number = 0; number < cxiemu_param()->devices; ++number) {
        if (cxiemu_device_is_named(number, name)) {
            return 1;
        }
    }
    return 0;
}

int cxiemu_domain_check(const struct fi_info *info, uint32_t tclass)
{
    if (((tclass != FI_TC_UNSPEC) &&
         ((tclass < FI_TC_LABEL) || (tclass > FI_TC_SCAVENGER))) ||
        ((info->tx_attr != NULL) && (info->tx_attr->size > CXIEMU_MAX_TX)) ||
        ((info->rx_attr != NULL) && (info->rx_attr->size > CXIEMU_MAX_RX))) {
        cxiemu_warn(DOMAIN, "no such traffic class, or a longer queue\n");
        return -FI_EINVAL;
    }
    return 0;
}


/* A hint, and what it asks for if that is not to be had. */
typedef struct cxiemu_hints_row {
    int        is_refused;
    const char *what;
} cxiemu_hints_row_t;

/* Refuses the first of hints that cannot be met, if there is one. */
static int cxiemu_hints_rows(const cxiemu_hints_row_t *rows, size_t count)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        if (rows[i].is_refused) {
            cxiemu_info(CORE, "hints ask for %s\n", rows[i].what);
            return -FI_ENODATA;
        }
    }
    return 0;
}

#define CXIEMU_HINTS_COUNT(_rows) (sizeof(_rows) / sizeof((_rows)[0]))

/* Capabilities that hints come to: with the ways that they leave open. */
static uint64_t cxiemu_hints_caps(uint64_t asked)
{
    return (asked == 0) ?
                   CXIEMU_CAPS_ALL :
                   cxiemu_caps_ways((asked & (CXIEMU_CAPS_PRIMARY |
                                              CXIEMU_CAPS_COSTLY)) |
                                    CXIEMU_CAPS_FREE);
}

/* Whether peers may access memory: without, registration has no modes. */
static int cxiemu_hints_has_target(uint64_t caps)
{
    return (caps & (FI_RMA | FI_ATOMIC)) &&
           (caps & (FI_REMOTE_READ | FI_REMOTE_WRITE));
}

static int cxiemu_hints_check_ep(const struct fi_ep_attr *attr)
{
    const cxiemu_hints_row_t rows[] = {
        {(attr->type != FI_EP_UNSPEC) && (attr->type != FI_EP_RDM),
         "another type of endpoint than FI_EP_RDM"},
        {(attr->protocol != FI_PROTO_UNSPEC) &&
                 (attr->protocol != FI_PROTO_CXI),
         "another protocol"},
        {attr->max_msg_size > CXIEMU_MAX_MSG, "larger messages"},
        {(attr->tx_ctx_cnt > 1) || (attr->rx_ctx_cnt > 1),
         "several or shared contexts"},
        {attr->msg_prefix_size > 0, "a prefix of messages"}
    };

    return cxiemu_hints_rows(rows, CXIEMU_HINTS_COUNT(rows));
}

static int cxiemu_hints_check_tx(const struct fi_tx_attr *attr)
{
    const cxiemu_hints_row_t rows[] = {
        {!!(attr->caps & ~CXIEMU_CAPS_ALL), "unknown capabilities to transmit"},
        {!!(attr->op_flags & ~CXIEMU_TX_OP_FLAGS),
         "unknown flags of transmit operations"},
        {!!(attr->msg_order & ~CXIEMU_MSG_ORDER),
         "an order that CXI does not keep"},
        {attr->comp_order != 0, "an order of completions"},
        {attr->inject_size > CXIEMU_INJECT, "larger injected messages"},
        {attr->size > CXIEMU_MAX_TX, "a longer transmit queue"},
        {(attr->iov_limit > 1) || (attr->rma_iov_limit > 1), "lists of buffers"}
    };

    return cxiemu_hints_rows(rows, CXIEMU_HINTS_COUNT(rows));
}

static int cxiemu_hints_check_rx(const struct fi_rx_attr *attr)
{
    const cxiemu_hints_row_t rows[] = {
        {!!(attr->caps & ~CXIEMU_CAPS_ALL), "unknown capabilities to receive"},
        {!!(attr->op_flags & ~CXIEMU_RX_OP_FLAGS), "unknown flags of receives"},
        {!!(attr->msg_order & ~CXIEMU_MSG_ORDER),
         "an order that CXI does not keep"},
        {attr->comp_order != 0, "an order of completions"},
        {attr->iov_limit > 1, "lists of buffers"}
    };

    return cxiemu_hints_rows(rows, CXIEMU_HINTS_COUNT(rows));
}

static int cxiemu_hints_check_domain(uint32_t version, uint64_t caps,
                                     const struct fi_domain_attr *attr)
{
    const cxiemu_hints_row_t rows[] = {
        {!cxiemu_device_exists(attr->name), "another domain"},
        {(attr->threading > FI_THREAD_ENDPOINT) ||
                 (attr->control_progress > FI_PROGRESS_MANUAL) ||
                 (attr->data_progress > FI_PROGRESS_MANUAL) ||
                 (attr->av_type > FI_AV_TABLE),
         "unknown threading, progress, vector"},
        {(attr->mr_key_size > sizeof(uint64_t)) ||
                 (attr->cq_data_size > sizeof(uint64_t)),
         "longer keys, or data of completions"},
        {(attr->ep_cnt > CXIEMU_MAX_EPS) || (attr->max_ep_stx_ctx > 0) ||
                 (attr->max_ep_srx_ctx > 0),
         "more endpoints, or shared contexts"},
        {!!(attr->caps & ~FI_LOCAL_COMM), "peers on other machines"},
        /* Bits have had their meaning since version 1.5 */
        {cxiemu_hints_has_target(caps) &&
                 (FI_VERSION_LT(version, FI_VERSION(1, 5)) ||
                  ((attr->mr_mode & CXIEMU_MR_MODE) != CXIEMU_MR_MODE)),
         "remote access, but FI_MR_ENDPOINT and FI_MR_ALLOCATED are not in "
         "mr_mode"}
    };

    return cxiemu_hints_rows(rows, CXIEMU_HINTS_COUNT(rows));
}

int cxiemu_hints_check(uint32_t version, const struct fi_info *hints)
{
    const cxiemu_hints_row_t rows[] = {
        {!!(hints->caps & ~CXIEMU_CAPS_ALL), "capabilities that are not there"},
        {(hints->addr_format != FI_FORMAT_UNSPEC) &&
                 (hints->addr_format != FI_ADDR_CXI),
         "another format of addresses"},
        {(hints->fabric_attr != NULL) && (hints->fabric_attr->name != NULL) &&
                 strcmp(hints->fabric_attr->name, CXIEMU_FABRIC_NAME),
         "another fabric"}
    };
    int ret = cxiemu_hints_rows(rows, CXIEMU_HINTS_COUNT(rows));

    if ((ret == 0) && (hints->ep_attr != NULL)) {
        ret = cxiemu_hints_check_ep(hints->ep_attr);
    }
    if ((ret == 0) && (hints->tx_attr != NULL)) {
        ret = cxiemu_hints_check_tx(hints->tx_attr);
    }
    if ((ret == 0) && (hints->rx_attr != NULL)) {
        ret = cxiemu_hints_check_rx(hints->rx_attr);
    }
    if ((ret == 0) && (hints->domain_attr != NULL)) {
        ret = cxiemu_hints_check_domain(version, cxiemu_hints_caps(hints->caps),
                                        hints->domain_attr);
    }
    return ret;
}


static void cxiemu_hints_apply_domain(const struct fi_domain_attr *hints,
                                      struct fi_domain_attr *attr)
{
    if (hints->threading != FI_THREAD_UNSPEC) {
        attr->threading = hints->threading;
    }
    if (hints->control_progress != FI_PROGRESS_UNSPEC) {
        attr->control_progress = hints->control_progress;
    }
    if (hints->data_progress != FI_PROGRESS_UNSPEC) {
        attr->data_progress = hints->data_progress;
    }
    if (hints->resource_mgmt != FI_RM_UNSPEC) {
        attr->resource_mgmt = hints->resource_mgmt;
    }
    if (hints->mr_mode & FI_MR_PROV_KEY) {
        attr->mr_mode    |= FI_MR_PROV_KEY;
        attr->mr_key_size = sizeof(uint64_t);
    }
    attr->av_type  = hints->av_type;
    attr->domain   = hints->domain;
    /* As CXI, nothing grants the traffic class: the program writes it */
}

void cxiemu_hints_apply(const struct fi_info *hints, struct fi_info *info)
{
    const struct fi_tx_attr *tx;
    const struct fi_rx_attr *rx;

    if (hints == NULL) {
        return;
    }
    tx                   = hints->tx_attr;
    rx                   = hints->rx_attr;
    info->caps           = cxiemu_hints_caps(hints->caps);
    info->tx_attr->caps &= info->caps;
    info->rx_attr->caps &= info->caps;
    info->handle         = hints->handle;
    if (tx != NULL) {
        if (tx->caps != 0) {
            info->tx_attr->caps &= tx->caps | ~CXIEMU_CAPS_PRIMARY;
        }
        if (tx->size > 0) {
            info->tx_attr->size = tx->size;
        }
        info->tx_attr->op_flags = tx->op_flags;
        /* Order costs: only what is asked for, as CXI does */
        info->tx_attr->msg_order = tx->msg_order;
    }
    if (rx != NULL) {
        if (rx->caps != 0) {
            info->rx_attr->caps &= rx->caps | ~CXIEMU_CAPS_PRIMARY;
        }
        if (rx->size > info->rx_attr->size) {
            info->rx_attr->size = rx->size;
        }
        info->rx_attr->op_flags = rx->op_flags;
    }
    if (hints->domain_attr != NULL) {
        cxiemu_hints_apply_domain(hints->domain_attr, info->domain_attr);
    }
    if (hints->fabric_attr != NULL) {
        info->fabric_attr->fabric = hints->fabric_attr->fabric;
    }
    if (!cxiemu_hints_has_target(info->caps)) {
        info->domain_attr->mr_mode = 0; /* Nothing has to be registered */
    }
}
