/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_cq.c - one loop over the completion queue serves messages, puts and
 * deferred work alike.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_cq.h"
#include "cxi_trig_req.h"
#include "cxi_trig_tx.h"

#include <ucs/arch/cpu.h>
#include <ucs/debug/log.h>

#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>


static void uct_cxi_trig_cq_keep(uct_cxi_trig_iface_t *iface,
                                 uct_cxi_trig_req_t *req, size_t length,
                                 ucs_status_t status)
{
    uct_cxi_trig_late_t *late = (void*)&req->work.context;

    late->length = length;
    late->status = status;
    ucs_list_add_tail(&iface->late, &late->list);
}

static uct_cxi_trig_req_t *uct_cxi_trig_cq_late_req(uct_cxi_trig_late_t *late)
{
    return ucs_container_of((struct fi_context2*)(void*)late,
                            uct_cxi_trig_req_t, work.context);
}

/* The first one, that goes to a peer if there is one, or NULL */
static uct_cxi_trig_late_t *
uct_cxi_trig_cq_next_late(const uct_cxi_trig_iface_t *iface,
                          const uct_cxi_trig_peer_t *peer)
{
    uct_cxi_trig_late_t *late;

    ucs_list_for_each(late, &iface->late, list) {
        if ((peer == NULL) ||
            uct_cxi_trig_tx_goes_to(uct_cxi_trig_cq_late_req(late), peer)) {
            return late;
        }
    }
    return NULL;
}

static unsigned uct_cxi_trig_cq_late(uct_cxi_trig_iface_t *iface,
                                     const uct_cxi_trig_peer_t *peer)
{
    unsigned count = 0;
    uct_cxi_trig_late_t *late;
    uct_cxi_trig_req_t *req;

    /* Each may change the list */
    while ((late = uct_cxi_trig_cq_next_late(iface, peer)) != NULL) {
        req = uct_cxi_trig_cq_late_req(late);
        ucs_list_del(&late->list);
        req->complete(iface, req, late->length, late->status);
        ++count;
    }
    return count;
}

/* With a peer, only what goes to it is completed now. */
static UCS_F_ALWAYS_INLINE void
uct_cxi_trig_cq_dispatch(uct_cxi_trig_iface_t *iface,
                         const uct_cxi_trig_peer_t *peer, void *context,
                         size_t length, ucs_status_t status)
{
    uct_cxi_trig_req_t *req = context;

    if (req == NULL) {
        return;
    }
    if ((peer != NULL) && !uct_cxi_trig_tx_goes_to(req, peer)) {
        uct_cxi_trig_cq_keep(iface, req, length, status);
        return;
    }
    req->complete(iface, req, length, status);
}

static unsigned uct_cxi_trig_cq_error(uct_cxi_trig_iface_t *iface,
                                      const uct_cxi_trig_peer_t *peer)
{
    struct fi_cq_err_entry entry = {0};
    ssize_t ret;

    ret = fi_cq_readerr(iface->net.cq, &entry, 0);
    if (ret != 1) {
        return 0;
    }

    ucs_diag("operation %p failed: %s (provider's code %d)", entry.op_context,
             fi_strerror(entry.err), entry.prov_errno);
    uct_cxi_trig_cq_dispatch(iface, peer, entry.op_context, 0,
                             uct_cxi_trig_prov_entry_status(
                                     uct_cxi_trig_iface_md(iface)->prov,
                                     &entry));
    return 1;
}

/* The device is gone: nothing of what is in flight will be reported, until the
 * interface is closed. It is said once; later calls fail what was started
 * since. */
static void uct_cxi_trig_cq_broken(uct_cxi_trig_iface_t *iface,
                                   const uct_cxi_trig_peer_t *peer, int err)
{
    if (!iface->is_broken) {
        iface->is_broken = 1;
        ucs_error("device %s cannot be used any more, and its endpoints fail: "
                  "its completion queue says: %s",
                  uct_cxi_trig_iface_md(iface)->info->domain_attr->name,
                  fi_strerror(err));
    }
    uct_cxi_trig_tx_fail_all(iface, UCS_ERR_ENDPOINT_TIMEOUT);
    if (peer == NULL) {
        uct_cxi_trig_dwq_fail_all(iface, UCS_ERR_ENDPOINT_TIMEOUT);
    }
}

static UCS_F_ALWAYS_INLINE unsigned
uct_cxi_trig_cq_read(uct_cxi_trig_iface_t *iface,
                     const uct_cxi_trig_peer_t *peer)
{
    struct fi_cq_msg_entry entries[UCT_CXI_TRIG_CQ_BATCH];
    ssize_t ret, i;

    ret = fi_cq_read(iface->net.cq, entries, UCT_CXI_TRIG_CQ_BATCH);
    if (ret == -FI_EAGAIN) {
        return 0;
    } else if (ret == -FI_EAVAIL) {
        return uct_cxi_trig_cq_error(iface, peer);
    } else if (ret < 0) {
        uct_cxi_trig_cq_broken(iface, peer, -ret);
        return 0;
    }

    ucs_memory_cpu_load_fence(); /* the NIC has written the data before */
    for (i = 0; i < ret; ++i) {
        uct_cxi_trig_cq_dispatch(iface, peer, entries[i].op_context,
                                 entries[i].len, UCS_OK);
    }
    return ret;
}

unsigned uct_cxi_trig_cq_progress(uct_cxi_trig_iface_t *iface)
{
    unsigned count = 0;

    if (ucs_unlikely(!ucs_list_is_empty(&iface->late))) {
        count = uct_cxi_trig_cq_late(iface, NULL);
    }
    return count + uct_cxi_trig_cq_read(iface, NULL);
}

void uct_cxi_trig_cq_drain(uct_cxi_trig_iface_t *iface,
                           uct_cxi_trig_peer_t *peer)
{
    (void)uct_cxi_trig_cq_late(iface, peer);
    (void)uct_cxi_trig_cq_read(iface, peer);
    (void)uct_cxi_trig_tx_retry(iface);
}

/* The queue has no more entries than it was opened with */
void uct_cxi_trig_cq_reap(uct_cxi_trig_iface_t *iface)
{
    unsigned rounds = iface->net.cq_size;

    (void)uct_cxi_trig_cq_late(iface, NULL);
    while ((uct_cxi_trig_cq_read(iface, NULL) > 0) && (rounds-- > 0)) {
        /* More of it */
    }
}
