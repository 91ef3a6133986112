/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_cntr.c - counters of the trigger extension.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_cntr.h"
#include "cxi_trig_addr.h"
#include "cxi_trig_cntr_pool.h"
#include "cxi_trig_status.h"

#include <ucs/arch/cpu.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>

#include <rdma/fi_errno.h>


volatile uint64_t *uct_trig_cntr_doorbell(uct_trig_cntr_h cntr)
{
    return uct_cxi_trig_cntr_pool_doorbell(cntr->cntr, &cntr->has_page);
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
    cntr = ucs_calloc(1, sizeof(*cntr), "uct_trig_cntr");
    if (cntr == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    ret = uct_cxi_trig_cntr_pool_get(uct_cxi_trig_iface_md(iface), iface,
                                     &cntr->cntr, &cntr->has_page);
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
    --uct_cxi_trig_cntr_iface(cntr)->num_cntrs;
    ucs_list_del(&cntr->list);
    ucs_free(cntr);
}

ucs_status_t uct_trig_cntr_destroy(uct_trig_cntr_h cntr)
{
    uct_cxi_trig_iface_t *iface = uct_cxi_trig_cntr_iface(cntr);
    struct fid_cntr *fid        = cntr->cntr;
    int has_page                = cntr->has_page;

    if (cntr->refs > 0) {
        return UCS_ERR_BUSY;
    }

    uct_cxi_trig_cntr_free(cntr);
    uct_cxi_trig_cntr_pool_put(uct_cxi_trig_iface_md(iface), fid, has_page);
    return UCS_OK;
}

void uct_cxi_trig_cntr_cleanup(uct_cxi_trig_iface_t *iface)
{
    uct_trig_cntr_h cntr, tmp;
    struct fid_cntr *fid;
    int has_page;

    ucs_list_for_each_safe(cntr, tmp, &iface->cntrs, list) {
        ucs_warn("interface %p is closed with counter %p", iface, cntr);
        fid      = cntr->cntr;
        has_page = cntr->has_page;
        uct_cxi_trig_cntr_free(cntr);
        uct_cxi_trig_cntr_pool_close(fid, has_page);
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

/*
 * Puts what the caller did before in front of a store that triggers, which is a
 * plain one in the provider: its stores, as the NIC reads memory then, and its
 * loads, as the NIC writes. The first fence is for loads: the other one orders
 * stores alone. See docs/protocols.md, "Fences".
 */
static void uct_cxi_trig_cntr_fence(void)
{
    ucs_memory_cpu_fence();
    ucs_memory_bus_store_fence();
}

ucs_status_t uct_trig_cntr_add(uct_trig_cntr_h cntr, uint64_t value)
{
    ucs_status_t status = uct_cxi_trig_cntr_account(cntr, value);
    int ret;

    if (status != UCS_OK) {
        return status;
    }

    uct_cxi_trig_cntr_fence();
    ret = fi_cntr_add(cntr->cntr, value);
    if (ret != 0) {
        ucs_error("cannot add to counter %p: %s", cntr, fi_strerror(-ret));
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

ucs_status_t uct_trig_cntr_reset(uct_trig_cntr_h cntr)
{
    return uct_cxi_trig_cntr_pool_reset(
            uct_cxi_trig_iface_md(uct_cxi_trig_cntr_iface(cntr)), cntr->cntr,
            __atomic_exchange_n(&cntr->added, 0, __ATOMIC_RELAXED));
}

ucs_status_t uct_trig_cntr_read(uct_trig_cntr_h cntr, uint64_t *value_p)
{
    /* Each of the two asks for the newest value, which the next one finds */
    int has_failed = (fi_cntr_readerr(cntr->cntr) > 0) ||
                     __atomic_load_n(&cntr->failed, __ATOMIC_RELAXED);

    *value_p = fi_cntr_read(cntr->cntr);
    ucs_memory_cpu_load_fence(); /* what was counted was written before */
    return has_failed ? UCS_ERR_IO_ERROR : UCS_OK;
}
