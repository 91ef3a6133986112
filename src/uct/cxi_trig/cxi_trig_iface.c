/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_iface.c - the interface's class, settings and properties.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_iface.h"
#include "cxi_trig_addr.h"
#include "cxi_trig_am.h"
#include "cxi_trig_amo.h"
#include "cxi_trig_cancel.h"
#include "cxi_trig_cassini.h"
#include "cxi_trig_cntr.h"
#include "cxi_trig_device.h"
#include "cxi_trig_ep.h"
#include "cxi_trig_mem.h"
#include "cxi_trig_mr.h"
#include "cxi_trig_node.h"
#include "cxi_trig_pending.h"
#include "cxi_trig_progress.h"
#include "cxi_trig_rma.h"
#include "cxi_trig_rx.h"
#include "cxi_trig_target.h"
#include "cxi_trig_tx.h"

#include <ucs/arch/atomic.h>
#include <ucs/debug/log.h>
#include <ucs/sys/string.h>

#include <limits.h>
#include <string.h>

/* UCP needs this much in one message (its UCP_MIN_BCOPY), and some to spare */
#define UCT_CXI_TRIG_SEG_MIN 256

#define UCT_CXI_TRIG_SEG_MAX (16 * UCS_KBYTE)


ucs_config_field_t uct_cxi_trig_iface_config_table[] = {
    {"", "", NULL, ucs_offsetof(uct_cxi_trig_iface_config_t, super),
     UCS_CONFIG_TYPE_TABLE(uct_iface_config_table)},

    {"SEG_SIZE", "8k",
     "Longest active message and buffered put or get, bytes (256 to 16k).",
     ucs_offsetof(uct_cxi_trig_iface_config_t, seg_size),
     UCS_CONFIG_TYPE_MEMUNITS},

    {"TX_QUEUE_LEN", "256", "Messages, puts, gets and atomics in flight.",
     ucs_offsetof(uct_cxi_trig_iface_config_t, tx_queue_len),
     UCS_CONFIG_TYPE_UINT},

    {"RX_QUEUE_LEN", "256",
     "Receives that are posted at once.",
     ucs_offsetof(uct_cxi_trig_iface_config_t, rx_queue_len),
     UCS_CONFIG_TYPE_UINT},

    {"DEFERRED_ENTRIES", "504",
     "Deferred operations of an interface that may wait for their trigger at\n"
     "once. All interfaces of a process share the NIC's entries. On a\n"
     "Slingshot NIC the processes of a service share them, too.",
     ucs_offsetof(uct_cxi_trig_iface_config_t, deferred_entries),
     UCS_CONFIG_TYPE_UINT},

    {"NODE_PROCESSES", "auto",
     "Processes that share the entries of a NIC's service: each has an\n"
     "equal part of them. auto: as many as the launcher says that the job\n"
     "has on the node or, if it does not say, as use entries at the time.\n"
     "If each process uses one of several NICs, the number of processes of\n"
     "one NIC is better.",
     ucs_offsetof(uct_cxi_trig_iface_config_t, node_processes),
     UCS_CONFIG_TYPE_ULUNITS},

    {NULL}
};


static uct_iface_ops_t uct_cxi_trig_iface_ops;


static void uct_cxi_trig_iface_query_am(const uct_cxi_trig_iface_t *iface,
                                        uct_iface_attr_t *attr)
{
    attr->cap.flags             |= UCT_IFACE_FLAG_AM_SHORT |
                                   UCT_IFACE_FLAG_AM_BCOPY;
    attr->cap.am.max_short       = iface->max_am;
    attr->cap.am.max_bcopy       = iface->max_am;
    attr->cap.am.opt_zcopy_align = 1;
    attr->cap.am.align_mtu       = 1;
    attr->cap.am.max_iov         = UCT_CXI_TRIG_MAX_IOV;

    /* The header needs a piece of its own. Where there is but one, as on
     * Cassini, all would have to be copied: that is what bcopy is for */
    if (iface->caps.max_iov > 1) {
        attr->cap.flags       |= UCT_IFACE_FLAG_AM_ZCOPY;
        attr->cap.am.max_zcopy = iface->max_am;
        attr->cap.am.max_hdr   = iface->max_am;
        attr->cap.am.max_iov   = iface->caps.max_iov - 1;
    }
}

static void uct_cxi_trig_iface_query_rma(const uct_cxi_trig_iface_t *iface,
                                         uct_iface_attr_t *attr)
{
    attr->cap.flags              |= UCT_IFACE_FLAG_PUT_SHORT |
                                    UCT_IFACE_FLAG_PUT_BCOPY |
                                    UCT_IFACE_FLAG_PUT_ZCOPY |
                                    UCT_IFACE_FLAG_GET_BCOPY |
                                    UCT_IFACE_FLAG_GET_ZCOPY;
    attr->cap.put.max_short       = iface->seg_size;
    attr->cap.put.max_bcopy       = iface->seg_size;
    attr->cap.put.max_zcopy       = iface->caps.max_zcopy;
    attr->cap.put.opt_zcopy_align = 1;
    attr->cap.put.align_mtu       = 1;
    attr->cap.put.max_iov         = iface->caps.max_iov;
    attr->cap.get.max_bcopy       = iface->seg_size;
    attr->cap.get.max_zcopy       = iface->caps.max_zcopy;
    attr->cap.get.opt_zcopy_align = 1;
    attr->cap.get.align_mtu       = 1;
    attr->cap.get.max_iov         = iface->caps.max_iov;
}

static void uct_cxi_trig_iface_query_amo(const uct_cxi_trig_iface_t *iface,
                                         uct_iface_attr_t *attr)
{
    attr->cap.atomic32.op_flags  = iface->caps.amo32.post;
    attr->cap.atomic32.fop_flags = iface->caps.amo32.fetch;
    attr->cap.atomic64.op_flags  = iface->caps.amo64.post;
    attr->cap.atomic64.fop_flags = iface->caps.amo64.fetch;
    /* A NIC's are not atomic to those of a processor */
    if (iface->caps.amo32.post | iface->caps.amo32.fetch |
        iface->caps.amo64.post | iface->caps.amo64.fetch) {
        attr->cap.flags |= UCT_IFACE_FLAG_ATOMIC_DEVICE;
    }
}

static ucs_status_t uct_cxi_trig_iface_query(uct_iface_h uct_iface,
                                             uct_iface_attr_t *attr)
{
    uct_cxi_trig_iface_t *iface = ucs_derived_of(uct_iface,
                                                 uct_cxi_trig_iface_t);
    const uct_cxi_trig_md_t *md = uct_cxi_trig_iface_md(iface);

    uct_base_iface_query(&iface->super, attr);

    attr->device_addr_len = sizeof(uct_cxi_trig_dev_addr_t);
    attr->iface_addr_len  = sizeof(uct_cxi_trig_iface_addr_t);
    attr->ep_addr_len     = 0;
    attr->cap.flags       = UCT_IFACE_FLAG_CONNECT_TO_IFACE |
                            UCT_IFACE_FLAG_PENDING |
                            UCT_IFACE_FLAG_CB_SYNC |
                            UCT_IFACE_FLAG_EP_CHECK |
                            UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE;
    if (!md->loopback) {
        attr->cap.flags |= UCT_CXI_TRIG_FLAG_INTER_NODE;
    }
    if (iface->net.wait_fd >= 0) {
        attr->cap.event_flags = UCT_IFACE_FLAG_EVENT_SEND_COMP |
                                UCT_IFACE_FLAG_EVENT_RECV |
                                UCT_IFACE_FLAG_EVENT_FD;
    }

    uct_cxi_trig_iface_query_am(iface, attr);
    uct_cxi_trig_iface_query_rma(iface, attr);
    uct_cxi_trig_iface_query_amo(iface, attr);

    attr->latency             = ucs_linear_func_make(md->prov->latency, 0);
    attr->overhead            = md->prov->overhead;
    attr->bandwidth.dedicated = 0;
    attr->bandwidth.shared    =
            uct_cxi_trig_device_bandwidth(md->prov, md->info) /
            (md->loopback ? 2 : 1);
    attr->priority            = md->loopback ? 0 : 10;
    return UCS_OK;
}

#if UCT_CXI_TRIG_UCX_GE(1, 15)
static int
uct_cxi_trig_is_reachable_v2(const uct_iface_h iface,
                             const uct_iface_is_reachable_params_t *params)
{
    const char *fault;

    fault = uct_cxi_trig_addr_unreachable(
            iface,
            UCS_PARAM_VALUE(UCT_IFACE_IS_REACHABLE, params, device_addr,
                            FIELD_DEVICE_ADDR, NULL),
            UCS_PARAM_VALUE(UCT_IFACE_IS_REACHABLE, params, iface_addr,
                            FIELD_IFACE_ADDR, NULL));
    if (fault != NULL) {
        uct_cxi_trig_tell_unreachable(params, fault);
        return 0;
    }
    return uct_cxi_trig_scope_is_reachable(iface, params);
}
#endif

#if !UCT_CXI_TRIG_UCX_GE(1, 16)
static int uct_cxi_trig_is_reachable(const uct_iface_h iface,
                                     const uct_device_addr_t *dev_addr,
                                     const uct_iface_addr_t *iface_addr)
{
    return uct_cxi_trig_addr_unreachable(iface, dev_addr, iface_addr) == NULL;
}
#endif

static void uct_cxi_trig_iface_vfs_refresh(uct_iface_h uct_iface)
{
    uct_cxi_trig_iface_t *iface = ucs_derived_of(uct_iface,
                                                 uct_cxi_trig_iface_t);

    uct_cxi_trig_stats_vfs_iface(iface, &iface->stats);
}

static ucs_status_t uct_cxi_trig_ep_query(uct_ep_h ep, uct_ep_attr_t *attr)
{
    return UCS_ERR_UNSUPPORTED;
}

#if UCT_CXI_TRIG_UCX_GE(1, 14)
static ucs_status_t
uct_cxi_trig_ep_connect_to_ep_v2(uct_ep_h ep,
                                 const uct_device_addr_t *device_addr,
                                 const uct_ep_addr_t *ep_addr,
                                 const uct_ep_connect_to_ep_params_t *params)
{
    return UCS_ERR_UNSUPPORTED;
}
#endif

uct_iface_internal_ops_t uct_cxi_trig_iface_internal_ops = {
    .iface_estimate_perf   = uct_base_iface_estimate_perf,
    .iface_vfs_refresh     = uct_cxi_trig_iface_vfs_refresh,
    .ep_query              = uct_cxi_trig_ep_query,
    .ep_invalidate         = uct_cxi_trig_ep_invalidate,
#if UCT_CXI_TRIG_UCX_GE(1, 14)
    .ep_connect_to_ep_v2   = uct_cxi_trig_ep_connect_to_ep_v2,
#endif
#if UCT_CXI_TRIG_UCX_GE(1, 15)
    .iface_is_reachable_v2 = uct_cxi_trig_is_reachable_v2,
#endif
#if UCT_CXI_TRIG_UCX_GE(1, 16)
    .ep_is_connected       = uct_cxi_trig_ep_is_connected,
#endif
#if UCT_CXI_TRIG_HAS_QUERY_V2
    .iface_query_v2        = uct_iface_base_query_v2
#endif
};

static ucs_status_t uct_cxi_trig_iface_check(const uct_cxi_trig_iface_config_t
                                                     *config)
{
    if ((config->seg_size < UCT_CXI_TRIG_SEG_MIN) ||
        (config->seg_size > UCT_CXI_TRIG_SEG_MAX)) {
        ucs_error("UCX_CXI_TRIG_SEG_SIZE is %zu, must be %d to %zu",
                  config->seg_size, UCT_CXI_TRIG_SEG_MIN,
                  (size_t)UCT_CXI_TRIG_SEG_MAX);
        return UCS_ERR_INVALID_PARAM;
    }
    if ((config->tx_queue_len == 0) || (config->rx_queue_len == 0) ||
        (config->tx_queue_len > UINT16_MAX) ||
        (config->rx_queue_len > UINT16_MAX)) {
        ucs_error("UCX_CXI_TRIG_TX_QUEUE_LEN and UCX_CXI_TRIG_RX_QUEUE_LEN "
                  "must be 1 to %u", UINT16_MAX);
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}

static void
uct_cxi_trig_iface_credit_params(const uct_cxi_trig_iface_config_t *config,
                                 const uct_cxi_trig_md_t *md,
                                 uct_cxi_trig_credit_params_t *params)
{
    uct_cxi_trig_md_credit_params(md, params);
    params->num_procs = (config->node_processes == UCS_ULUNITS_AUTO) ?
                        uct_cxi_trig_node_processes() :
                        ucs_min(config->node_processes, INT_MAX);
}

static unsigned
uct_cxi_trig_iface_entries(const uct_cxi_trig_iface_config_t *config,
                           const uct_cxi_trig_md_t *md, unsigned max)
{
    /* They go through the transmit queue, where one other needs room */
    max = ucs_min(max, uct_cxi_trig_net_max_ops(md->prov->max_tx) - 1);
    if (config->deferred_entries > max) {
        ucs_diag("deferred-work entries limited to %u by libfabric provider %s",
                 max, md->info->fabric_attr->prov_name);
        return max;
    }
    return config->deferred_entries;
}

static unsigned uct_cxi_trig_iface_limit(const char *setting, unsigned length,
                                         size_t max)
{
    if (length <= max) {
        return length;
    }
    ucs_diag("%s is limited to %zu by the libfabric provider", setting, max);
    return max;
}

static unsigned
uct_cxi_trig_iface_tx_len(const uct_cxi_trig_iface_config_t *config,
                          const uct_cxi_trig_md_t *md, unsigned entries)
{
    return uct_cxi_trig_iface_limit("UCX_CXI_TRIG_TX_QUEUE_LEN",
                                    config->tx_queue_len,
                                    uct_cxi_trig_net_max_ops(md->prov->max_tx) -
                                    entries);
}

static unsigned
uct_cxi_trig_iface_rx_len(const uct_cxi_trig_iface_config_t *config,
                          const uct_cxi_trig_md_t *md)
{
    return uct_cxi_trig_iface_limit("UCX_CXI_TRIG_RX_QUEUE_LEN",
                                    config->rx_queue_len,
                                    uct_cxi_trig_net_max_ops(md->prov->max_rx));
}

/* No message is longer than what is sent at once */
static unsigned
uct_cxi_trig_iface_max_am(const uct_cxi_trig_iface_config_t *config,
                          const uct_cxi_trig_md_t *md)
{
    size_t max = UCT_CXI_TRIG_SEG_MAX;

    if (md->prov->fetches) {
        max = uct_cxi_trig_cassini_max_eager();
        max = ucs_max(max, UCT_CXI_TRIG_SEG_MIN + sizeof(uct_cxi_trig_msg_t));
        max = ucs_min(max - sizeof(uct_cxi_trig_msg_t), UCT_CXI_TRIG_SEG_MAX);
    }
    return uct_cxi_trig_iface_limit("UCX_CXI_TRIG_SEG_SIZE", config->seg_size,
                                    max);
}

static void
uct_cxi_trig_iface_configure(uct_cxi_trig_iface_t *iface,
                             const uct_cxi_trig_iface_config_t *config,
                             const uct_cxi_trig_md_t *md)
{
    iface->seg_size       = config->seg_size;
    iface->max_am         = uct_cxi_trig_iface_max_am(config, md);
    iface->caps.max_iov   = ucs_min(md->info->tx_attr->iov_limit,
                                    UCT_CXI_TRIG_TX_MAX_IOV);
    iface->caps.max_zcopy = ucs_min(md->info->ep_attr->max_msg_size,
                                    md->prov->max_put);
    iface->num_cntrs      = 0;
    iface->has_told       = 0;
    iface->is_broken      = 0;
    iface->calls          = 0;
    memset(&iface->stats, 0, sizeof(iface->stats));
    ucs_list_head_init(&iface->failed);
    ucs_list_head_init(&iface->late);
    ucs_list_head_init(&iface->cntrs);
    ucs_list_head_init(&iface->mems);
}

static ucs_status_t uct_cxi_trig_iface_open_probe(uct_cxi_trig_iface_t *iface)
{
    uct_cxi_trig_md_t *md           = uct_cxi_trig_iface_md(iface);
    uct_cxi_trig_mr_params_t params = {
        .address = &iface->probe.word,
        .length  = sizeof(iface->probe.word),
        .level   = UCS_LOG_LEVEL_ERROR
    };
    ucs_status_t status;

    status = uct_cxi_trig_target_reg(md, &params, &iface->probe.mr);
    if ((status == UCS_OK) && !uct_cxi_trig_addr_fits(iface)) {
        ucs_error("an interface's address does not hold names and keys of "
                  "libfabric provider %s", md->info->fabric_attr->prov_name);
        uct_cxi_trig_mr_close(md, iface->probe.mr);
        status = UCS_ERR_UNSUPPORTED;
    }
    return status;
}

static ucs_status_t
uct_cxi_trig_iface_open(uct_cxi_trig_iface_t *iface,
                        const uct_iface_params_t *params,
                        const uct_cxi_trig_iface_config_t *config)
{
    uct_cxi_trig_md_t *md                = uct_cxi_trig_iface_md(iface);
    uct_cxi_trig_net_params_t net_params = {.passive = 0};
    uct_cxi_trig_credit_params_t credit;
    unsigned entries, tx_len, rx_len;
    ucs_status_t status;

    uct_cxi_trig_iface_credit_params(config, md, &credit);
    entries           = uct_cxi_trig_iface_entries(config, md, credit.max);
    tx_len            = uct_cxi_trig_iface_tx_len(config, md, entries);
    rx_len            = uct_cxi_trig_iface_rx_len(config, md);
    net_params.tx_ops = (size_t)tx_len + entries;
    net_params.rx_ops = rx_len;

    /* Its address names it */
    status = uct_cxi_trig_target_open(md);
    if (status != UCS_OK) {
        goto err;
    }

    status = uct_cxi_trig_net_open(&iface->net, md, &net_params);
    if (status != UCS_OK) {
        goto err;
    }

    status = uct_cxi_trig_iface_open_probe(iface);
    if (status != UCS_OK) {
        goto err_net;
    }

    uct_cxi_trig_amo_init(iface);
    status = uct_cxi_trig_tx_init(iface, tx_len);
    if (status != UCS_OK) {
        goto err_probe;
    }

    status = uct_cxi_trig_rx_init(iface, params, rx_len);
    if (status != UCS_OK) {
        goto err_tx;
    }

    status = uct_cxi_trig_dwq_init(iface, &credit, entries);
    if (status != UCS_OK) {
        goto err_rx;
    }
    uct_cxi_trig_md_count_iface(md, 1);
    if (md->is_unasked) {
        uct_cxi_trig_prov_warn(md->prov);
    }
    return UCS_OK;

err_rx:
    uct_cxi_trig_rx_cleanup(iface);
err_tx:
    uct_cxi_trig_tx_cleanup(iface);
err_probe:
    uct_cxi_trig_mr_close(md, iface->probe.mr);
err_net:
    uct_cxi_trig_net_close_ep(&iface->net);
    uct_cxi_trig_net_close(&iface->net);
err:
    return status;
}

static UCS_CLASS_INIT_FUNC(uct_cxi_trig_iface_t, uct_md_h md,
                           uct_worker_h worker,
                           const uct_iface_params_t *params,
                           const uct_iface_config_t *uct_config)
{
    const uct_cxi_trig_iface_config_t *config =
            ucs_derived_of(uct_config, uct_cxi_trig_iface_config_t);
    ucs_status_t status;

    UCT_CHECK_PARAM(params->field_mask & UCT_IFACE_PARAM_FIELD_OPEN_MODE,
                    "UCT_IFACE_PARAM_FIELD_OPEN_MODE is not defined");
    if (!(params->open_mode & UCT_IFACE_OPEN_MODE_DEVICE)) {
        ucs_error("cxi_trig opens devices only");
        return UCS_ERR_UNSUPPORTED;
    }

    status = uct_cxi_trig_iface_check(config);
    if (status != UCS_OK) {
        return status;
    }

    UCS_CLASS_CALL_SUPER_INIT(uct_base_iface_t, &uct_cxi_trig_iface_ops,
                              &uct_cxi_trig_iface_internal_ops, md, worker,
                              params, uct_config
                              UCS_STATS_ARG(params->stats_root)
                              UCS_STATS_ARG(params->mode.device.dev_name));
    uct_cxi_trig_iface_configure(self, config,
                                 ucs_derived_of(md, uct_cxi_trig_md_t));
    return uct_cxi_trig_iface_open(self, params, config);
}

/* cxi refuses to close an endpoint that has regions, and then all that the
 * endpoint has, up to the domain. What waits for a trigger is cancelled first:
 * the NIC would carry it out later. When the endpoint is closed nothing of it
 * completes any more, and memory can be freed. */
static UCS_CLASS_CLEANUP_FUNC(uct_cxi_trig_iface_t)
{
    uct_base_iface_progress_disable(&self->super.super,
                                    UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    uct_cxi_trig_cancel_quietly(self);
    uct_cxi_trig_mem_close_all(self);
    uct_cxi_trig_mr_close(uct_cxi_trig_iface_md(self), self->probe.mr);
    uct_cxi_trig_net_close_ep(&self->net);
    uct_cxi_trig_stats_tell_iface(uct_cxi_trig_iface_md(self), self,
                                  &self->stats);
    uct_cxi_trig_dwq_cleanup(self);
    uct_cxi_trig_mem_cleanup(self);
    uct_cxi_trig_cntr_cleanup(self);
    uct_cxi_trig_rx_cleanup(self);
    uct_cxi_trig_tx_cleanup(self);
    uct_cxi_trig_net_close(&self->net);
    uct_cxi_trig_md_count_iface(uct_cxi_trig_iface_md(self), -1);
}

UCS_CLASS_DEFINE(uct_cxi_trig_iface_t, uct_base_iface_t);
UCS_CLASS_DEFINE_NEW_FUNC(uct_cxi_trig_iface_t, uct_iface_t, uct_md_h,
                          uct_worker_h, const uct_iface_params_t*,
                          const uct_iface_config_t*);
static UCS_CLASS_DEFINE_DELETE_FUNC(uct_cxi_trig_iface_t, uct_iface_t);

static uct_iface_ops_t uct_cxi_trig_iface_ops = {
    .ep_put_short             = uct_cxi_trig_ep_put_short,
    .ep_put_bcopy             = uct_cxi_trig_ep_put_bcopy,
    .ep_put_zcopy             = uct_cxi_trig_ep_put_zcopy,
    .ep_get_bcopy             = uct_cxi_trig_ep_get_bcopy,
    .ep_get_zcopy             = uct_cxi_trig_ep_get_zcopy,
    .ep_am_short              = uct_cxi_trig_ep_am_short,
    .ep_am_short_iov          = uct_cxi_trig_ep_am_short_iov,
    .ep_am_bcopy              = uct_cxi_trig_ep_am_bcopy,
    .ep_am_zcopy              = uct_cxi_trig_ep_am_zcopy,
    .ep_atomic_cswap64        = uct_cxi_trig_ep_atomic_cswap64,
    .ep_atomic_cswap32        = uct_cxi_trig_ep_atomic_cswap32,
    .ep_atomic64_post         = uct_cxi_trig_ep_atomic64_post,
    .ep_atomic32_post         = uct_cxi_trig_ep_atomic32_post,
    .ep_atomic64_fetch        = uct_cxi_trig_ep_atomic64_fetch,
    .ep_atomic32_fetch        = uct_cxi_trig_ep_atomic32_fetch,
    .ep_pending_add           = uct_cxi_trig_pending_add,
    .ep_pending_purge         = uct_cxi_trig_pending_purge,
    .ep_flush                 = uct_cxi_trig_ep_flush,
    .ep_fence                 = uct_cxi_trig_ep_fence,
    .ep_check                 = uct_cxi_trig_ep_check,
    .ep_create                = UCS_CLASS_NEW_FUNC_NAME(uct_cxi_trig_ep_t),
    .ep_destroy               = UCS_CLASS_DELETE_FUNC_NAME(uct_cxi_trig_ep_t),
    .iface_flush              = uct_cxi_trig_tx_iface_flush,
    .iface_fence              = uct_cxi_trig_tx_iface_fence,
    .iface_progress_enable    = uct_cxi_trig_progress_enable,
    .iface_progress_disable   = uct_base_iface_progress_disable,
    .iface_progress           = uct_cxi_trig_progress,
    .iface_event_fd_get       = uct_cxi_trig_event_fd_get,
    .iface_event_arm          = uct_cxi_trig_event_arm,
    .iface_close              =
            UCS_CLASS_DELETE_FUNC_NAME(uct_cxi_trig_iface_t),
    .iface_query              = uct_cxi_trig_iface_query,
    .iface_get_device_address = uct_cxi_trig_addr_get_device,
    .iface_get_address        = uct_cxi_trig_addr_get_iface,
#if UCT_CXI_TRIG_UCX_GE(1, 16)
    .iface_is_reachable       = uct_base_iface_is_reachable
#else
    .iface_is_reachable       = uct_cxi_trig_is_reachable
#endif
};

static ucs_status_t
uct_cxi_trig_query_devices(uct_md_h uct_md,
                           uct_tl_device_resource_t **devices_p,
                           unsigned *num_devices_p)
{
    const uct_cxi_trig_md_t *md = ucs_derived_of(uct_md, uct_cxi_trig_md_t);

    return uct_single_device_resource(uct_md, md->info->domain_attr->name,
                                      UCT_DEVICE_TYPE_NET,
                                      uct_cxi_trig_device_sys(md->info),
                                      devices_p, num_devices_p);
}

UCT_TL_DEFINE_ENTRY(&uct_cxi_trig_component, cxi_trig,
                    uct_cxi_trig_query_devices, uct_cxi_trig_iface_t,
                    UCT_CXI_TRIG_PREFIX, uct_cxi_trig_iface_config_table,
                    uct_cxi_trig_iface_config_t);
