/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_hints.c - hints of fi_getinfo(): whether they can be met, and how. */
#include "cxiemu_info.h"
#include "cxiemu_log.h"

#include <rdma/fi_errno.h>

#include <string.h>


/* Says why hints are refused, and refuses them. */
static int cxiemu_hints_refuse(const char *what)
{
    cxiemu_info(CORE, "hints ask for %s\n", what);
    return -FI_ENODATA;
}

/* Capabilities that hints come to: with the ways that they leave open. */
static uint64_t cxiemu_hints_caps(uint64_t asked)
{
    uint64_t caps;

    if (asked == 0) {
        return CXIEMU_CAPS_ALL;
    }
    caps = (asked & (CXIEMU_CAPS_PRIMARY | CXIEMU_CAPS_COSTLY)) |
           CXIEMU_CAPS_FREE;
    if ((caps & (FI_MSG | FI_TAGGED)) && !(caps & (FI_SEND | FI_RECV))) {
        caps |= FI_SEND | FI_RECV;
    }
    if ((caps & (FI_RMA | FI_ATOMIC)) &&
        !(caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE))) {
        caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    }
    return caps;
}

/* Whether peers may access memory: without, registration has no modes. */
static int cxiemu_hints_has_target(uint64_t caps)
{
    return (caps & (FI_RMA | FI_ATOMIC)) &&
           (caps & (FI_REMOTE_READ | FI_REMOTE_WRITE));
}

static int cxiemu_hints_check_ep(const struct fi_ep_attr *attr)
{
    if ((attr->type != FI_EP_UNSPEC) && (attr->type != FI_EP_RDM)) {
        return cxiemu_hints_refuse("another type of endpoint than FI_EP_RDM");
    }
    if ((attr->protocol != FI_PROTO_UNSPEC) &&
        (attr->protocol != FI_PROTO_CXI)) {
        return cxiemu_hints_refuse("another protocol");
    }
    if (attr->max_msg_size > CXIEMU_MAX_MSG) {
        return cxiemu_hints_refuse("larger messages");
    }
    if ((attr->tx_ctx_cnt > 1) || (attr->rx_ctx_cnt > 1)) {
        return cxiemu_hints_refuse("several or shared contexts");
    }
    if (attr->msg_prefix_size > 0) {
        return cxiemu_hints_refuse("a prefix of messages");
    }
    return 0;
}

static int cxiemu_hints_check_tx(const struct fi_tx_attr *attr)
{
    if (attr->caps & ~CXIEMU_CAPS_ALL) {
        return cxiemu_hints_refuse("unknown capabilities to transmit");
    }
    if (attr->op_flags & ~CXIEMU_TX_OP_FLAGS) {
        return cxiemu_hints_refuse("unknown flags of transmit operations");
    }
    if (attr->msg_order & ~CXIEMU_MSG_ORDER) {
        return cxiemu_hints_refuse("an order that CXI does not keep");
    }
    if (attr->comp_order != 0) {
        return cxiemu_hints_refuse("an order of completions");
    }
    if (attr->inject_size > CXIEMU_INJECT) {
        return cxiemu_hints_refuse("larger injected messages");
    }
    if (attr->size > CXIEMU_MAX_TX) {
        return cxiemu_hints_refuse("a longer transmit queue");
    }
    if ((attr->iov_limit > 1) || (attr->rma_iov_limit > 1)) {
        return cxiemu_hints_refuse("lists of buffers");
    }
    return 0;
}

static int cxiemu_hints_check_rx(const struct fi_rx_attr *attr)
{
    if (attr->caps & ~CXIEMU_CAPS_ALL) {
        return cxiemu_hints_refuse("unknown capabilities to receive");
    }
    if (attr->op_flags & ~CXIEMU_RX_OP_FLAGS) {
        return cxiemu_hints_refuse("unknown flags of receives");
    }
    if (attr->msg_order & ~CXIEMU_MSG_ORDER) {
        return cxiemu_hints_refuse("an order that CXI does not keep");
    }
    if (attr->comp_order != 0) {
        return cxiemu_hints_refuse("an order of completions");
    }
    if (attr->iov_limit > 1) {
        return cxiemu_hints_refuse("lists of buffers");
    }
    return 0;
}

/* Modes of registration; bits have had their meaning since version 1.5. */
static int cxiemu_hints_check_mr(uint32_t version, int mr_mode, uint64_t caps)
{
    if (!cxiemu_hints_has_target(caps)) {
        return 0;
    }
    if (FI_VERSION_LT(version, FI_VERSION(1, 5)) ||
        ((mr_mode & CXIEMU_MR_MODE) != CXIEMU_MR_MODE)) {
        return cxiemu_hints_refuse("remote access, but FI_MR_ENDPOINT and "
                                   "FI_MR_ALLOCATED are not in mr_mode");
    }
    return 0;
}

static int cxiemu_hints_check_domain(const struct fi_domain_attr *attr)
{
    if (!cxiemu_device_exists(attr->name)) {
        return cxiemu_hints_refuse("another domain");
    }
    if ((attr->threading > FI_THREAD_ENDPOINT) ||
        (attr->control_progress > FI_PROGRESS_MANUAL) ||
        (attr->data_progress > FI_PROGRESS_MANUAL) ||
        (attr->av_type > FI_AV_TABLE)) {
        return cxiemu_hints_refuse("unknown threading, progress, vector");
    }
    if ((attr->mr_key_size > sizeof(uint64_t)) ||
        (attr->cq_data_size > sizeof(uint64_t))) {
        return cxiemu_hints_refuse("longer keys, or data of completions");
    }
    if ((attr->ep_cnt > CXIEMU_MAX_EPS) || (attr->max_ep_stx_ctx > 0) ||
        (attr->max_ep_srx_ctx > 0)) {
        return cxiemu_hints_refuse("more endpoints, or shared contexts");
    }
    if (attr->caps & ~FI_LOCAL_COMM) {
        return cxiemu_hints_refuse("peers on other machines");
    }
    return 0;
}

int cxiemu_hints_check(uint32_t version, const struct fi_info *hints)
{
    int ret = 0;

    if (hints == NULL) {
        return 0;
    }
    if (hints->caps & ~CXIEMU_CAPS_ALL) {
        return cxiemu_hints_refuse("capabilities that are not there");
    }
    if ((hints->addr_format != FI_FORMAT_UNSPEC) &&
        (hints->addr_format != FI_ADDR_CXI)) {
        return cxiemu_hints_refuse("another format of addresses");
    }
    if ((hints->fabric_attr != NULL) && (hints->fabric_attr->name != NULL) &&
        strcmp(hints->fabric_attr->name, CXIEMU_FABRIC_NAME)) {
        return cxiemu_hints_refuse("another fabric");
    }
    if (hints->ep_attr != NULL) {
        ret = cxiemu_hints_check_ep(hints->ep_attr);
    }
    if ((ret == 0) && (hints->tx_attr != NULL)) {
        ret = cxiemu_hints_check_tx(hints->tx_attr);
    }
    if ((ret == 0) && (hints->rx_attr != NULL)) {
        ret = cxiemu_hints_check_rx(hints->rx_attr);
    }
    if ((ret == 0) && (hints->domain_attr != NULL)) {
        ret = cxiemu_hints_check_domain(hints->domain_attr);
        if (ret == 0) {
            ret = cxiemu_hints_check_mr(version, hints->domain_attr->mr_mode,
                                        cxiemu_hints_caps(hints->caps));
        }
    }
    return ret;
}


static void cxiemu_hints_apply_tx(const struct fi_tx_attr *hints,
                                  struct fi_tx_attr *attr)
{
    if (hints->caps != 0) {
        attr->caps &= hints->caps | ~CXIEMU_CAPS_PRIMARY;
    }
    attr->op_flags = hints->op_flags;
    /* Order costs: only what is asked for, as CXI does */
    attr->msg_order = hints->msg_order;
    if (hints->size > 0) {
        attr->size = hints->size;
    }
    attr->tclass = hints->tclass;
}

static void cxiemu_hints_apply_rx(const struct fi_rx_attr *hints,
                                  struct fi_rx_attr *attr)
{
    if (hints->caps != 0) {
        attr->caps &= hints->caps | ~CXIEMU_CAPS_PRIMARY;
    }
    attr->op_flags = hints->op_flags;
    if (hints->size > attr->size) {
        attr->size = hints->size;
    }
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
    attr->mr_mode |= hints->mr_mode & FI_MR_PROV_KEY;
    attr->av_type  = hints->av_type;
    attr->domain   = hints->domain;
    attr->tclass   = hints->tclass;
}

void cxiemu_hints_apply(const struct fi_info *hints, struct fi_info *info)
{
    if (hints == NULL) {
        return;
    }
    info->caps           = cxiemu_hints_caps(hints->caps);
    info->tx_attr->caps &= info->caps;
    info->rx_attr->caps &= info->caps;
    info->handle         = hints->handle;
    if (hints->tx_attr != NULL) {
        cxiemu_hints_apply_tx(hints->tx_attr, info->tx_attr);
    }
    if (hints->rx_attr != NULL) {
        cxiemu_hints_apply_rx(hints->rx_attr, info->rx_attr);
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
