/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_emu.c - the emulated card, and what host streams do for it.
 *
 * A card takes a store to a trigger page as an event, and works beside the
 * processors. An emulated one needs streams for both: their stores are given to
 * it, and while they wait they give it their processor's time. Nothing else in
 * this library knows of that.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_emu.h"
#include "cxi_trig_cassini.h"

#include <ucs_gstream.h>

#include <ucs/debug/log.h>

#include <cxiemu.h>

#include <ucs/sys/math.h>

#include <rdma/fi_errno.h>


static int uct_cxi_trig_emu_window_add(void *start, size_t length,
                                       cxiemu_store_func_t func, void *arg)
{
    ucs_status_t status = ucs_gstream_device_add(start, length, func, arg);

    if (status != UCS_OK) {
        ucs_error("no trigger pages for an emulated card: %s",
                  ucs_status_string(status));
        return -FI_ENOMEM;
    }
    return 0;
}

static void uct_cxi_trig_emu_window_remove(void *start)
{
    (void)ucs_gstream_device_remove(start);
}

static ucs_gstream_poller_t
uct_cxi_trig_emu_poller(const cxiemu_poller_t *poller)
{
    return (ucs_gstream_poller_t) {
        .poll  = poller->poll,
        .begin = poller->begin,
        .end   = poller->end,
        .arg   = poller->arg
    };
}

static int uct_cxi_trig_emu_poller_add(const cxiemu_poller_t *poller)
{
    ucs_gstream_poller_t own = uct_cxi_trig_emu_poller(poller);

    return (ucs_gstream_poller_add(&own) == UCS_OK) ? 0 : -FI_ENOSPC;
}

static void uct_cxi_trig_emu_poller_remove(const cxiemu_poller_t *poller)
{
    ucs_gstream_poller_t own = uct_cxi_trig_emu_poller(poller);

    (void)ucs_gstream_poller_remove(&own);
}

static const cxiemu_hooks_t uct_cxi_trig_emu_hooks = {
    .window_add    = uct_cxi_trig_emu_window_add,
    .window_remove = uct_cxi_trig_emu_window_remove,
    .poller_add    = uct_cxi_trig_emu_poller_add,
    .poller_remove = uct_cxi_trig_emu_poller_remove
};

static int uct_cxi_trig_emu_fabric(struct fi_fabric_attr *attr,
                                   struct fid_fabric **fabric, void *context)
{
    cxiemu_set_hooks(&uct_cxi_trig_emu_hooks);
    return cxiemu_fabric(attr, fabric, context);
}

/* The provider has FI_HMEM whether it reaches a GPU's memory or not: there are
 * programs that ask for it and have the host's alone. UCX would hand it all
 * memory. */
static int uct_cxi_trig_emu_getinfo(uint32_t version, const char *node,
                                    const char *service, uint64_t flags,
                                    const struct fi_info *hints,
                                    struct fi_info **info)
{
    return ((hints->caps & FI_HMEM) && !cxiemu_reaches_gpus()) ?
           -FI_ENODATA :
           cxiemu_getinfo(version, node, service, flags, hints, info);
}

static const uct_cxi_trig_prov_ops_t uct_cxi_trig_emu_ops = {
    .getinfo = uct_cxi_trig_emu_getinfo,
    .fabric  = uct_cxi_trig_emu_fabric,
    .service = cxiemu_service_name,
    .space   = cxiemu_space
};

static const uct_cxi_trig_prov_t uct_cxi_trig_emu_prov = {
    /* Entries, counters: as Cassini's. Bandwidth: UCX takes half of it, as both
     * directions share the memory, and gives a part of long messages to each
     * transport that has a quarter of the best one's. Beside UCX's shared
     * memory (11 GB/s), whose cores copy for the card, too, that is none. */
    .name        = UCT_CXI_TRIG_EMU_NAME,
    .ops         = &uct_cxi_trig_emu_ops,
    .id          = UCT_CXI_TRIG_EMU_ID,
    .local       = 1,
    .eio_is_loss = 0,
    .is_cassini  = 1,
    .opens_late  = 0,
    .fetches     = 0,
    .has_monitor = 0,
    .revokes     = 1,
    .done        = UCT_CXI_TRIG_DONE_CQ,
    .max_entries = 504,
    .max_cntrs   = 0,
    .max_tx      = UCT_CXI_TRIG_CASSINI_MAX_TX,
    .max_rx      = UCT_CXI_TRIG_CASSINI_MAX_RX,
    .max_count   = UCS_MASK(48),
    .max_put     = UINT32_MAX,
    .latency     = 0.5e-6,
    .bandwidth   = 4e9,
    .overhead    = 200e-9
};

const uct_cxi_trig_prov_t *const uct_cxi_trig_emu = &uct_cxi_trig_emu_prov;
