/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_cntr.c - counters and their doorbells.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_cntr.h"
#include "cxi_trig_addr.h"
#include "cxi_trig_status.h"

#include <ucs_gstream_memory.h>

#include <ucs/arch/cpu.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>
#include <ucs/time/time.h>

#include <stdbool.h> /* fi_cxi_ext.h uses it */
#include <rdma/fi_cxi_ext.h>
#include <rdma/fi_errno.h>

#include <sched.h>
#include <string.h>

/* How long the NIC may take to reset a counter, milliseconds; and if it has
 * taken longer before */
#define UCT_CXI_TRIG_CNTR_RESET_MS   100
#define UCT_CXI_TRIG_CNTR_STALLED_MS 1

/* How often a counter is read at least: the process may not run meanwhile */
#define UCT_CXI_TRIG_CNTR_READS 100

/* What a counter of the pool is set to for a moment: nobody counts so far */
#define UCT_CXI_TRIG_CNTR_MARK UCS_BIT(47)


void uct_cxi_trig_cntr_pool_init(uct_cxi_trig_md_t *md)
{
    pthread_mutex_init(&md->cntrs.mutex, NULL);
    md->cntrs.is_stalled = 0;
    memset(md->cntrs.free, 0, sizeof(md->cntrs.free));
}

/* The one that has been free for longest, or NULL */
static struct fid_cntr *uct_cxi_trig_cntr_pool_pop(uct_cxi_trig_md_t *md,
                                                   int has_page)
{
    struct fid_cntr *cntr;

    pthread_mutex_lock(&md->cntrs.mutex);
    cntr = md->cntrs.free[has_page].first;
    if (cntr != NULL) {
        md->cntrs.free[has_page].first = cntr->fid.context;
    }
    pthread_mutex_unlock(&md->cntrs.mutex);
    return cntr;
}

static void uct_cxi_trig_cntr_pool_push(uct_cxi_trig_md_t *md,
                                        struct fid_cntr *cntr, int has_page)
{
    cntr->fid.context = NULL;
    pthread_mutex_lock(&md->cntrs.mutex);
    if (md->cntrs.free[has_page].first == NULL) {
        md->cntrs.free[has_page].first = cntr;
    } else {
        md->cntrs.free[has_page].last->fid.context = cntr;
    }
    md->cntrs.free[has_page].last = cntr;
    pthread_mutex_unlock(&md->cntrs.mutex);
}

/* What the provider gives: the register at offset 0 adds to the counter */
static void *uct_cxi_trig_cntr_page(struct fid_cntr *cntr)
{
    struct fi_cxi_cntr_ops *ops = NULL;
    void *address               = NULL;
    size_t length               = 0;

    if ((fi_open_ops(&cntr->fid, FI_CXI_COUNTER_OPS, 0, (void**)&ops, NULL) !=
         0) ||
        (ops == NULL) ||
        (ops->get_mmio_addr(&cntr->fid, &address, &length) != 0)) {
        return NULL;
    }
    return address;
}

/* The pages that the register is in, which no other counter's is in */
static void *uct_cxi_trig_cntr_page_start(void *address)
{
    return (void*)((uintptr_t)address & ~(ucs_get_page_size() - 1));
}

/* To ask for a page makes one where none was */
static void uct_cxi_trig_cntr_close_fid(struct fid_cntr *cntr, int has_page)
{
    int ret;

    if (has_page) {
        (void)ucs_gstream_memory_remove(
                uct_cxi_trig_cntr_page_start(uct_cxi_trig_cntr_page(cntr)));
    }
    ret = fi_close(&cntr->fid);
    if (ret != 0) {
        ucs_warn("cannot close counter %p: %s", cntr, fi_strerror(-ret));
    }
}

void uct_cxi_trig_cntr_pool_cleanup(uct_cxi_trig_md_t *md)
{
    struct fid_cntr *cntr;
    int has_page;

    for (has_page = 0; has_page <= 1; ++has_page) {
        while ((cntr = uct_cxi_trig_cntr_pool_pop(md, has_page)) != NULL) {
            uct_cxi_trig_cntr_close_fid(cntr, has_page);
        }
    }
    pthread_mutex_destroy(&md->cntrs.mutex);
}

static int uct_cxi_trig_cntr_set_back(struct fid_cntr *cntr)
{
    int ret = fi_cntr_set(cntr, 0);

    return (ret == 0) ? fi_cntr_seterr(cntr, 0) : ret;
}

/*
 * Reads until the value is from @a min to @a max. The cxi provider gives what
 * the NIC has written back last, and asks it for the next: what is read may be
 * from long ago, but never from before what was read before.
 */
static int uct_cxi_trig_cntr_reads(const uct_cxi_trig_md_t *md,
                                   struct fid_cntr *cntr, uint64_t min,
                                   uint64_t max)
{
    ucs_time_t end = ucs_get_time() +
                     ucs_time_from_msec(
                             __atomic_load_n(&md->cntrs.is_stalled,
                                             __ATOMIC_RELAXED) ?
                             UCT_CXI_TRIG_CNTR_STALLED_MS :
                             UCT_CXI_TRIG_CNTR_RESET_MS);
    unsigned reads = 0;
    uint64_t value;

    while (((value = fi_cntr_read(cntr)) < min) || (value > max)) {
        if ((++reads > UCT_CXI_TRIG_CNTR_READS) && (ucs_get_time() > end)) {
            return 0;
        }
        sched_yield();
    }
    return 1;
}

/* Whether the NIC has set it back. A 0 that is read may be older than what
 * counted since; one that follows the mark is not, and the mark alone says that
 * nothing was left. */
static int uct_cxi_trig_cntr_is_back(const uct_cxi_trig_md_t *md,
                                     struct fid_cntr *cntr)
{
    return (fi_cntr_add(cntr, UCT_CXI_TRIG_CNTR_MARK) == 0) &&
           uct_cxi_trig_cntr_reads(md, cntr, UCT_CXI_TRIG_CNTR_MARK,
                                   UCT_CXI_TRIG_CNTR_MARK) &&
           (uct_cxi_trig_cntr_set_back(cntr) == 0) &&
           uct_cxi_trig_cntr_reads(md, cntr, 0, 0) &&
           (fi_cntr_readerr(cntr) == 0);
}

/* A free one, or NULL */
static struct fid_cntr *uct_cxi_trig_cntr_pool_take(uct_cxi_trig_md_t *md,
                                                    int has_page)
{
    struct fid_cntr *cntr = uct_cxi_trig_cntr_pool_pop(md, has_page);

    if ((cntr != NULL) && !uct_cxi_trig_cntr_is_back(md, cntr)) {
        /* Another time, perhaps */
        ucs_diag("counter %p was not set back", cntr);
        (void)uct_cxi_trig_cntr_set_back(cntr);
        uct_cxi_trig_cntr_pool_push(md, cntr, has_page);
        cntr = NULL;
    }
    return cntr;
}

int uct_cxi_trig_cntr_pool_get(uct_cxi_trig_md_t *md, void *context,
                               struct fid_cntr **cntr_p, uint8_t *has_page_p)
{
    struct fid_cntr *cntr = NULL;
    uint8_t has_page      = 0;

    if (has_page_p != NULL) {
        cntr     = uct_cxi_trig_cntr_pool_take(md, 1);
        has_page = (cntr != NULL);
    }
    if (cntr == NULL) {
        cntr = uct_cxi_trig_cntr_pool_take(md, 0);
    }
    if (has_page_p != NULL) {
        *has_page_p = has_page;
    }
    if (cntr == NULL) {
        return uct_cxi_trig_net_open_cntr(md, context, cntr_p);
    }
    cntr->fid.context = context;
    *cntr_p           = cntr;
    return 0;
}

void uct_cxi_trig_cntr_pool_put(uct_cxi_trig_md_t *md, struct fid_cntr *cntr,
                                int has_page)
{
    /* Where a closed region may still be written to for a while, so may be a
     * counter; no such provider is short of them */
    if ((md->prov->done == UCT_CXI_TRIG_DONE_CNTR) ||
        (uct_cxi_trig_cntr_set_back(cntr) != 0)) {
        uct_cxi_trig_cntr_close_fid(cntr, has_page);
    } else {
        uct_cxi_trig_cntr_pool_push(md, cntr, has_page);
    }
}

/* The address is not kept: the caller does that */
volatile uint64_t *uct_trig_cntr_doorbell(uct_trig_cntr_h cntr)
{
    void *address = uct_cxi_trig_cntr_page(cntr->cntr);

    if ((address != NULL) && !cntr->has_page) {
        cntr->has_page =
                (ucs_gstream_memory_add(uct_cxi_trig_cntr_page_start(address),
                                        ucs_get_page_size(),
                                        UCS_GSTREAM_MEMORY_IO) == UCS_OK);
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
        uct_cxi_trig_cntr_close_fid(fid, has_page);
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
    uct_cxi_trig_md_t *md = uct_cxi_trig_iface_md(
            uct_cxi_trig_cntr_iface(cntr));
    uint64_t before       = __atomic_exchange_n(&cntr->added, 0,
                                                __ATOMIC_RELAXED);
    int is_back, ret;

    /* A reset is a store to the NIC, which nothing orders with a GPU's. A value
     * that is less than one read before it is not older. Where another thread
     * resets at the same time, that one may never be read. */
    if (before > 0) {
        (void)uct_cxi_trig_cntr_reads(md, cntr->cntr, before, UINT64_MAX);
    }
    ret = fi_cntr_set(cntr->cntr, 0);
    if (ret != 0) {
        ucs_error("cannot reset counter %p: %s", cntr, fi_strerror(-ret));
        return UCS_ERR_IO_ERROR;
    }
    if (before == 0) {
        return UCS_OK;
    }
    is_back = uct_cxi_trig_cntr_reads(md, cntr->cntr, 0, before - 1);
    __atomic_store_n(&md->cntrs.is_stalled, !is_back, __ATOMIC_RELAXED);
    if (!is_back) {
        ucs_error("the NIC does not reset counter %p, for up to %d ms", cntr,
                  UCT_CXI_TRIG_CNTR_RESET_MS);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
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
