/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_cntr.c - counters and their doorbells.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_cntr.h"
#include "cxi_trig_status.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>

#include <stdbool.h> /* fi_cxi_ext.h needs it */
#include <rdma/fi_cxi_ext.h>
#include <rdma/fi_errno.h>


/* The register at offset 0 of what the provider gives adds to the counter. It
 * is not kept: the caller does that. */
volatile uint64_t *uct_trig_cntr_doorbell(uct_trig_cntr_h cntr)
{
    struct fi_cxi_cntr_ops *ops = NULL;
    void *address               = NULL;
    size_t length               = 0;

    if ((fi_open_ops(&cntr->cntr->fid, FI_CXI_COUNTER_OPS, 0, (void**)&ops,
                     NULL) != 0) ||
        (ops == NULL) ||
        (ops->get_mmio_addr(&cntr->cntr->fid, &address, &length) != 0)) {
        return NULL;
    }
    return address;
}

ucs_status_t uct_trig_cntr_create(uct_iface_h uct_iface,
                                  uct_trig_cntr_h *cntr_p)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_iface_from_uct(uct_iface);
    uct_trig_cntr_h cntr;
    int ret;

    if (iface == NULL) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (iface->num_cntrs >= uct_cxi_trig_iface_md(iface)->prov->max_cntrs) {
        return UCS_ERR_NO_RESOURCE;
    }

    cntr = ucs_calloc(1, sizeof(*cntr), "uct_trig_cntr");
    if (cntr == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    ret = uct_cxi_trig_net_open_cntr(uct_cxi_trig_iface_md(iface), iface,
                                     &cntr->cntr);
    if (ret != 0) {
        ucs_debug("cannot open a counter: %s", fi_strerror(-ret));
        ucs_free(cntr);
        return uct_cxi_trig_status(ret);
    }

    ucs_list_add_tail(&iface->cntrs, &cntr->list);
    ++iface->num_cntrs;
    *cntr_p = cntr;
    return UCS_OK;
}

static void uct_cxi_trig_cntr_free(uct_trig_cntr_h cntr)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_cntr_iface(cntr);
    int ret                     = fi_close(&cntr->cntr->fid);

    if (ret != 0) {
        ucs_warn("cannot close counter %p: %s", cntr, fi_strerror(-ret));
    }
    ucs_list_del(&cntr->list);
    --iface->num_cntrs;
    ucs_free(cntr);
}

ucs_status_t uct_trig_cntr_destroy(uct_trig_cntr_h cntr)
{
    if (cntr->refs > 0) {
        return UCS_ERR_BUSY;
    }

    uct_cxi_trig_cntr_free(cntr);
    return UCS_OK;
}

void uct_cxi_trig_cntr_cleanup(uct_cxi_trig_iface_t *iface)
{
    uct_trig_cntr_h cntr, tmp;

    ucs_list_for_each_safe(cntr, tmp, &iface->cntrs, list) {
        ucs_warn("interface %p is closed with counter %p", iface, cntr);
        uct_cxi_trig_cntr_free(cntr);
    }
}

/* Counted here first: providers report no overflow. */
static ucs_status_t uct_cxi_trig_cntr_account(uct_trig_cntr_h cntr,
                                              uint64_t value)
{
    const uct_cxi_trig_iface_t *iface = uct_cxi_trig_cntr_iface(cntr);
    uint64_t limit                    =
            uct_cxi_trig_iface_md(iface)->prov->max_count;
    uint64_t added                    = __atomic_load_n(&cntr->added,
                                                        __ATOMIC_RELAXED);

    do {
        if (value > limit - added) {
            return UCS_ERR_EXCEEDS_LIMIT;
        }
    } while (!__atomic_compare_exchange_n(&cntr->added, &added, added + value,
                                          1, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return UCS_OK;
}

ucs_status_t uct_trig_cntr_add(uct_trig_cntr_h cntr, uint64_t value)
{
    ucs_status_t status = uct_cxi_trig_cntr_account(cntr, value);
    int ret;

    if (status != UCS_OK) {
        return status;
    }

    ret = fi_cntr_add(cntr->cntr, value);
    if (ret != 0) {
        ucs_error("cannot add to counter %p: %s", cntr, fi_strerror(-ret));
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

ucs_status_t uct_trig_cntr_reset(uct_trig_cntr_h cntr)
{
    int ret;

    __atomic_store_n(&cntr->added, 0, __ATOMIC_RELAXED);
    ret = fi_cntr_set(cntr->cntr, 0);
    if (ret != 0) {
        ucs_error("cannot reset counter %p: %s", cntr, fi_strerror(-ret));
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

ucs_status_t uct_trig_cntr_read(uct_trig_cntr_h cntr, uint64_t *value_p)
{
    if (__atomic_load_n(&cntr->failed, __ATOMIC_RELAXED) ||
        (fi_cntr_readerr(cntr->cntr) > 0)) {
        return UCS_ERR_IO_ERROR;
    }

    *value_p = fi_cntr_read(cntr->cntr);
    return UCS_OK;
}
