/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_cntr_pool.c - counters of a memory domain, and their doorbells.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_cntr_pool.h"
#include "cxi_trig_device.h"

#include <ucs_backoff.h>
#include <ucs_gstream_memory.h>

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>
#include <ucs/time/time.h>

#include <stdbool.h> /* fi_cxi_ext.h uses it */
#include <rdma/fi_cxi_ext.h>
#include <rdma/fi_errno.h>

#include <pthread.h>
#include <string.h>

/* How long the NIC may take to reset a counter, milliseconds; and if it has
 * taken longer before */
#define UCT_CXI_TRIG_CNTR_POOL_RESET_MS   100
#define UCT_CXI_TRIG_CNTR_POOL_STALLED_MS 1

/* How often a counter is read at least: the process may not run meanwhile */
#define UCT_CXI_TRIG_CNTR_POOL_READS 100

/* What a counter of the pool is set to for a moment: nobody counts so far */
#define UCT_CXI_TRIG_CNTR_POOL_MARK UCS_BIT(47)


int uct_cxi_trig_cntr_pool_open(uct_cxi_trig_md_t *md, void *context,
                                struct fid_cntr **cntr_p)
{
    int ret = uct_cxi_trig_device_open_cntr(md->domain, context, cntr_p);

    if ((ret == 0) && md->prov->is_cassini) {
        uct_cxi_trig_cassini_read_cached(*cntr_p);
    }
    return ret;
}

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
static void *uct_cxi_trig_cntr_pool_page(struct fid_cntr *cntr)
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
static void *uct_cxi_trig_cntr_pool_page_start(void *address)
{
    return (void*)((uintptr_t)address & ~(ucs_get_page_size() - 1));
}

/* The address is not kept: the caller does that. Any thread may ask: the page
 * is made known once. */
volatile uint64_t *uct_cxi_trig_cntr_pool_doorbell(struct fid_cntr *cntr,
                                                   uint8_t *has_page)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void *address               = uct_cxi_trig_cntr_pool_page(cntr);

    (void)pthread_mutex_lock(&lock);
    if ((address != NULL) && !*has_page) {
        *has_page = (ucs_gstream_memory_add(
                             uct_cxi_trig_cntr_pool_page_start(address),
                             ucs_get_page_size(),
                             UCS_GSTREAM_MEMORY_IO) == UCS_OK);
    }
    (void)pthread_mutex_unlock(&lock);
    return address;
}

/* To ask for a page makes one where none was */
void uct_cxi_trig_cntr_pool_close(struct fid_cntr *cntr, int has_page)
{
    int ret;

    if (has_page) {
        (void)ucs_gstream_memory_remove(
                uct_cxi_trig_cntr_pool_page_start(
                        uct_cxi_trig_cntr_pool_page(cntr)));
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
            uct_cxi_trig_cntr_pool_close(cntr, has_page);
        }
    }
    pthread_mutex_destroy(&md->cntrs.mutex);
}

static int uct_cxi_trig_cntr_pool_set_back(struct fid_cntr *cntr)
{
    int ret = fi_cntr_set(cntr, 0);

    return (ret == 0) ? fi_cntr_seterr(cntr, 0) : ret;
}

/*
 * Reads until the value is from @a min to @a max. The cxi provider gives what
 * the NIC has written back last, and asks it for the next: what is read may be
 * from long ago, but never from before what was read before.
 */
static int uct_cxi_trig_cntr_pool_reads(const uct_cxi_trig_md_t *md,
                                        struct fid_cntr *cntr, uint64_t min,
                                        uint64_t max)
{
    ucs_time_t end = ucs_get_time() +
                     ucs_time_from_msec(
                             __atomic_load_n(&md->cntrs.is_stalled,
                                             __ATOMIC_RELAXED) ?
                             UCT_CXI_TRIG_CNTR_POOL_STALLED_MS :
                             UCT_CXI_TRIG_CNTR_POOL_RESET_MS);
    unsigned reads = 0;
    uint64_t value;

    while (((value = fi_cntr_read(cntr)) < min) || (value > max)) {
        if ((reads > UCT_CXI_TRIG_CNTR_POOL_READS) &&
            (ucs_get_time() > end)) {
            return 0;
        }
        ucs_backoff(&reads);
    }
    return 1;
}

/* Whether the NIC has set it back. A 0 that is read may be older than what
 * counted since; one that follows the mark is not, and the mark alone says that
 * nothing was left. */
static int uct_cxi_trig_cntr_pool_is_back(const uct_cxi_trig_md_t *md,
                                          struct fid_cntr *cntr)
{
    return (fi_cntr_add(cntr, UCT_CXI_TRIG_CNTR_POOL_MARK) == 0) &&
           uct_cxi_trig_cntr_pool_reads(md, cntr, UCT_CXI_TRIG_CNTR_POOL_MARK,
                                        UCT_CXI_TRIG_CNTR_POOL_MARK) &&
           (uct_cxi_trig_cntr_pool_set_back(cntr) == 0) &&
           uct_cxi_trig_cntr_pool_reads(md, cntr, 0, 0) &&
           (fi_cntr_readerr(cntr) == 0);
}

/* A free one, or NULL */
static struct fid_cntr *uct_cxi_trig_cntr_pool_take(uct_cxi_trig_md_t *md,
                                                    int has_page)
{
    struct fid_cntr *cntr = uct_cxi_trig_cntr_pool_pop(md, has_page);

    if ((cntr != NULL) && !uct_cxi_trig_cntr_pool_is_back(md, cntr)) {
        /* Another time, perhaps */
        ucs_diag("counter %p was not set back", cntr);
        (void)uct_cxi_trig_cntr_pool_set_back(cntr);
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
        return uct_cxi_trig_cntr_pool_open(md, context, cntr_p);
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
        (uct_cxi_trig_cntr_pool_set_back(cntr) != 0)) {
        uct_cxi_trig_cntr_pool_close(cntr, has_page);
    } else {
        uct_cxi_trig_cntr_pool_push(md, cntr, has_page);
    }
}

ucs_status_t uct_cxi_trig_cntr_pool_reset(uct_cxi_trig_md_t *md,
                                          struct fid_cntr *cntr,
                                          uint64_t before)
{
    int is_back, ret;

    /* A reset is a store to the NIC, which nothing orders with a GPU's. A value
     * that is less than one read before it is not older. Where another thread
     * resets at the same time, that one may never be read. */
    if (before > 0) {
        (void)uct_cxi_trig_cntr_pool_reads(md, cntr, before, UINT64_MAX);
    }
    ret = fi_cntr_set(cntr, 0);
    if (ret != 0) {
        ucs_error("cannot reset counter %p: %s", cntr, fi_strerror(-ret));
        return UCS_ERR_IO_ERROR;
    }
    if (before == 0) {
        return UCS_OK;
    }
    is_back = uct_cxi_trig_cntr_pool_reads(md, cntr, 0, before - 1);
    __atomic_store_n(&md->cntrs.is_stalled, !is_back, __ATOMIC_RELAXED);
    if (!is_back) {
        ucs_error("the NIC does not reset counter %p, for up to %d ms", cntr,
                  UCT_CXI_TRIG_CNTR_POOL_RESET_MS);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}
