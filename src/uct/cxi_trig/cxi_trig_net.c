/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_net.c - opening and closing of an interface's libfabric objects.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_net.h"
#include "cxi_trig_cntr_pool.h"
#include "cxi_trig_device.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <stdlib.h>

/* Room for what is not ours in the queues */
#define UCT_CXI_TRIG_NET_SPARE 64

/* Cassini's queues of events have as many slots of 64 bytes as the completion
 * queue has entries. While a receiver makes no progress each message that comes
 * takes one, and what the provider does when they are full may need as many
 * again: the process ends if there are none. 36 MiB of messages of 4 KiB and
 * more, which the provider has buffers for, fit. */
#define UCT_CXI_TRIG_NET_CASSINI_EVENTS 16384

/* The provider's own setting */
#define UCT_CXI_TRIG_NET_CASSINI_SETTING "FI_CXI_DEFAULT_CQ_SIZE"


/* Entries to ask for; 0: as the provider is set. `size` is what is used. */
static size_t uct_cxi_trig_net_cq_entries(const uct_cxi_trig_md_t *md,
                                          size_t size, int passive)
{
    if (!md->prov->is_cassini || passive) {
        return size;
    }
    return (getenv(UCT_CXI_TRIG_NET_CASSINI_SETTING) != NULL) ?
           0 : ucs_max(size, UCT_CXI_TRIG_NET_CASSINI_EVENTS);
}

/* Prefers a queue that can be slept on. */
static int uct_cxi_trig_net_open_cq(uct_cxi_trig_net_t *net,
                                    uct_cxi_trig_md_t *md,
                                    const uct_cxi_trig_net_params_t *params)
{
    struct fi_cq_attr attr = {
        .size     = params->tx_ops + params->rx_ops +
                    (2 * UCT_CXI_TRIG_NET_SPARE),
        .format   = FI_CQ_FORMAT_MSG,
        .wait_obj = params->passive ? FI_WAIT_NONE : FI_WAIT_FD
    };
    int ret;

    net->wait_fd = -1;
    net->cq_size = attr.size;
    attr.size    = uct_cxi_trig_net_cq_entries(md, attr.size, params->passive);
    ret          = fi_cq_open(md->domain, &attr, &net->cq, NULL);
    if (params->passive) {
        return ret;
    }
    if (ret == 0) {
        ret = fi_control(&net->cq->fid, FI_GETWAIT, &net->wait_fd);
        if (ret == 0) {
            return 0;
        }
        fi_close(&net->cq->fid);
    }

    ucs_diag("device %s cannot be slept on: %s", md->info->domain_attr->name,
             fi_strerror(-ret));
    net->wait_fd  = -1;
    attr.wait_obj = FI_WAIT_NONE;
    return fi_cq_open(md->domain, &attr, &net->cq, NULL);
}

static int uct_cxi_trig_net_bind(uct_cxi_trig_net_t *net)
{
    int ret;

    ret = fi_ep_bind(net->ep, &net->cq->fid, FI_TRANSMIT | FI_RECV);
    if (ret == 0) {
        ret = fi_ep_bind(net->ep, &net->av->fid, 0);
    }
    if ((ret == 0) && (net->cntr != NULL)) {
        ret = fi_ep_bind(net->ep, &net->cntr->fid, FI_WRITE | FI_READ);
    }
    return (ret != 0) ? ret : fi_enable(net->ep);
}

size_t uct_cxi_trig_net_max_ops(unsigned max)
{
    return (max == 0) ? SIZE_MAX : (max - UCT_CXI_TRIG_NET_SPARE);
}

/* One that takes messages has buffers for unexpected ones: 36 MiB of pinned
 * memory with cxi. One that sends nothing needs no queue for it. */
static void uct_cxi_trig_net_be_passive(struct fi_info *info)
{
    uint64_t caps = FI_RMA | FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_WRITE |
                    FI_RMA_EVENT | FI_HMEM;

    info->caps          &= caps;
    info->rx_attr->caps &= caps;
    info->tx_attr->caps &= caps & FI_HMEM;
}

static int uct_cxi_trig_net_open_ep(uct_cxi_trig_net_t *net,
                                    uct_cxi_trig_md_t *md,
                                    const uct_cxi_trig_net_params_t *params)
{
    struct fi_info *info = fi_dupinfo(md->info);
    int ret;

    if (info == NULL) {
        return -FI_ENOMEM;
    }

    if (params->passive) {
        uct_cxi_trig_net_be_passive(info);
    } else {
        info->tx_attr->size = ucs_max(info->tx_attr->size,
                                      params->tx_ops + UCT_CXI_TRIG_NET_SPARE);
        info->rx_attr->size = ucs_max(info->rx_attr->size,
                                      params->rx_ops + UCT_CXI_TRIG_NET_SPARE);
    }
    ret = fi_endpoint(md->domain, info, &net->ep, NULL);
    fi_freeinfo(info);
    if (ret != 0) {
        return ret;
    }

    ret = uct_cxi_trig_net_bind(net);
    if (ret == 0) {
        /* Asked once, and never by a call that must not fail: UCX 1.13 uses an
         * endpoint on whose way an address could not be had */
        net->name_length = sizeof(net->name);
        ret              = fi_getname(&net->ep->fid, net->name,
                                      &net->name_length);
    }
    if (ret != 0) {
        fi_close(&net->ep->fid);
    }
    return ret;
}

/* The counter is there because the cxi provider takes those of the endpoint for
 * granted when a deferred atomic completes. One is enough: they are scarce. */
ucs_status_t uct_cxi_trig_net_open(uct_cxi_trig_net_t *net,
                                   uct_cxi_trig_md_t *md,
                                   const uct_cxi_trig_net_params_t *params)
{
    struct fi_av_attr av_attr = {
        .type = FI_AV_TABLE
    };
    int ret;

    ret = uct_cxi_trig_net_open_cq(net, md, params);
    if (ret != 0) {
        goto err;
    }

    ret = fi_av_open(md->domain, &av_attr, &net->av, NULL);
    if (ret != 0) {
        goto err_close_cq;
    }

    net->cntr = NULL;
    ret       = params->passive ? 0 :
                uct_cxi_trig_cntr_pool_get(md, NULL, &net->cntr, NULL);
    net->md   = md;
    if (ret != 0) {
        goto err_close_av;
    }

    ret = uct_cxi_trig_net_open_ep(net, md, params);
    if (ret != 0) {
        goto err_close_cntr;
    }
    return UCS_OK;

err_close_cntr:
    if (net->cntr != NULL) {
        uct_cxi_trig_cntr_pool_put(md, net->cntr, 0);
    }
err_close_av:
    fi_close(&net->av->fid);
err_close_cq:
    fi_close(&net->cq->fid);
err:
    return uct_cxi_trig_device_open_failed(md->prov, md->info,
                                           "an endpoint on device", ret);
}

static int uct_cxi_trig_net_close_fid(struct fid *fid, const char *name)
{
    int ret = fi_close(fid);

    if (ret != 0) {
        ucs_warn("cannot close %s: %s", name, fi_strerror(-ret));
    }
    return ret;
}

void uct_cxi_trig_net_close_ep(uct_cxi_trig_net_t *net)
{
    if (uct_cxi_trig_net_close_fid(&net->ep->fid, "endpoint") == 0) {
        net->ep = NULL;
    }
}

void uct_cxi_trig_net_close(uct_cxi_trig_net_t *net)
{
    /* An endpoint that could not be closed adds to it */
    if ((net->cntr != NULL) && (net->ep == NULL)) {
        uct_cxi_trig_cntr_pool_put(net->md, net->cntr, 0);
    }
    uct_cxi_trig_net_close_fid(&net->av->fid, "address vector");
    uct_cxi_trig_net_close_fid(&net->cq->fid, "completion queue");
}
