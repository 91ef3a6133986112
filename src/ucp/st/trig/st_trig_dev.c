/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_dev.c - what the trig lane has in common in one worker, and what the
 * service thread does for it.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig_dev.h"
#include "ctrl/st_leave.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "trig/st_trig.h"
#include "trig/st_trig_use.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>
#include <ucs/type/thread_mode.h>

#include <stdio.h>
#include <string.h>

/* Rounds until the lock is released, and other clients of the service thread
 * have their turn */
#define UCP_ST_TRIG_MAX_ROUNDS 64

_Static_assert(UCP_ST_TRIG_MAX_RAILS <= UCP_ST_SERVICE_MAX_FDS,
               "a descriptor for each rail");

/* Reap completions; operations that are late go on with their entries. How many
 * there were. The lock is held. */
static unsigned ucp_st_trig_dev_reap(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    unsigned count         = uct_worker_progress(dev->uct_worker);

    if (dev->is_starved) {
        dev->is_starved = 0; /* or again */
        ucp_st_trig_post_late(worker);
    }
    dev->progress_rma(worker);
    return count;
}

unsigned ucp_st_trig_dev_progress(ucp_st_worker_h worker)
{
    unsigned count = ucp_st_trig_dev_reap(worker);

    ucp_st_trig_post_late(worker);
    return count;
}

/* UCS_ERR_BUSY if something is there already */
static ucs_status_t ucp_st_trig_arm(ucp_st_trig_dev_t *dev)
{
    ucs_status_t status = UCS_OK;
    unsigned i;

    for (i = 0; (i < dev->num_rails) && (status != UCS_ERR_BUSY); ++i) {
        status = uct_iface_event_arm(dev->rails[i].iface,
                                     UCT_EVENT_SEND_COMP | UCT_EVENT_RECV);
    }
    return status;
}

/* The sooner of two times, of which -1 is never */
static int ucp_st_trig_sooner(int a, int b)
{
    return ((a < 0) || ((b >= 0) && (b < a))) ? b : a;
}

/* Operations whose start had no effect */
static void ucp_st_trig_fail_untriggered(ucp_st_worker_h worker)
{
    ucs_list_link_t *lists[] = {&worker->ops, &worker->on_stream,
                                &worker->deferred};
    const ucp_st_trig_op_t *trig;
    ucp_st_op_t *op;
    unsigned i;

    for (i = 0; i < ucs_static_array_size(lists); ++i) {
        ucs_list_for_each(op, lists[i], list) {
            trig = ucp_st_trig_op(op);
            if ((trig != NULL) &&
                __atomic_load_n(&trig->untriggered, __ATOMIC_RELAXED)) {
                ucp_st_op_fail(op, UCS_ERR_IO_ERROR);
            }
        }
    }
}

/* In the service thread: reap completions, wake the streams that sleep on the
 * words which the NICs counted up, post uses that found no entry when they were
 * enqueued, and release streams that wait for lost peers or after failed puts.
 * The interfaces are armed under the lock, after a progress that
 * found nothing, so a completion either was reaped or makes its descriptor
 * readable. */
static int ucp_st_trig_serve(void *arg)
{
    ucp_st_worker_h worker = arg;
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    unsigned rounds        = 0;
    int timeout;

    ucp_st_worker_lock(worker);
    while ((ucp_st_trig_dev_reap(worker) > 0) &&
           (++rounds < UCP_ST_TRIG_MAX_ROUNDS)) {
        /* all that is there */
    }
    ucp_st_trig_post_late(worker);
    if (__atomic_exchange_n(&dev->untriggered, 0, __ATOMIC_ACQUIRE)) {
        ucp_st_trig_fail_untriggered(worker);
    }
    timeout = ((rounds == UCP_ST_TRIG_MAX_ROUNDS) ||
               (ucp_st_trig_arm(dev) == UCS_ERR_BUSY)) ? 0 : -1;
    timeout = ucp_st_trig_sooner(timeout, ucp_st_leave_settle_late(worker));
    timeout = ucp_st_trig_sooner(timeout, ucp_st_trig_doubts_settle(worker));
    timeout = ucp_st_trig_sooner(timeout, ucp_st_trig_drains_settle(worker));
    ucp_st_worker_unlock(worker);
    return timeout;
}

static ucs_status_t ucp_st_trig_service_start(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    ucs_status_t status;
    unsigned i;

    dev->service.serve   = ucp_st_trig_serve;
    dev->service.arg     = worker;
    dev->service.num_fds = dev->num_rails;
    for (i = 0; i < dev->num_rails; ++i) {
        status = uct_iface_event_fd_get(dev->rails[i].iface,
                                        &dev->service.fds[i]);
        if (status != UCS_OK) {
            ucs_error("device %s: no event descriptor: %s",
                      dev->rails[i].attr.device, ucs_status_string(status));
            return status;
        }
    }
    return ucp_st_service_add(&dev->service);
}

void ucp_st_trig_dev_wake(ucp_st_worker_h worker)
{
    ucp_st_service_wake(&ucp_st_trig_dev(worker)->service);
}

static void ucp_st_trig_close_rails(ucp_st_trig_dev_t *dev)
{
    while (dev->num_rails > 0) {
        ucp_st_trig_rail_close(&dev->rails[--dev->num_rails]);
    }
}

ucs_status_t ucp_st_trig_dev_init(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    ucp_st_trig_rail_t *rail;
    ucs_status_t status;

    ucs_list_head_init(&dev->late);
    ucs_list_head_init(&dev->doubtful);
    ucs_list_head_init(&dev->draining);
    dev->progress_rma = ucp_st_worker_hook_none;
    status = ucs_async_context_create(UCS_ASYNC_MODE_THREAD_MUTEX, &dev->async);
    if (status != UCS_OK) {
        goto err;
    }
    status = uct_worker_create(dev->async, UCS_THREAD_MODE_SERIALIZED,
                               &dev->uct_worker);
    if (status != UCS_OK) {
        goto err_async;
    }
    status = ucp_st_trig_open_rails(worker);
    if (status != UCS_OK) {
        goto err_worker;
    }
    /* However far the host is ahead of its streams, a match finds room. All
     * rails together: the entries may be a process's, not a NIC's. */
    for (rail = dev->rails; rail < &dev->rails[dev->num_rails]; ++rail) {
        rail->max_ahead = (rail->attr.max_entries -
                           (rail->attr.max_entries / 4)) / dev->num_rails;
    }
    status = ucp_st_trig_service_start(worker);
    if (status != UCS_OK) {
        goto err_rails;
    }
    return UCS_OK;

err_rails:
    ucp_st_trig_close_rails(dev);
err_worker:
    uct_worker_destroy(dev->uct_worker);
err_async:
    ucs_async_context_destroy(dev->async);
err:
    return status;
}

void ucp_st_trig_dev_cleanup(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    unsigned i;

    ucp_st_service_remove(&dev->service);
    dev->progress_rma(worker);
    for (i = 0; i < dev->num_rails; ++i) {
        if (ucp_st_trig_rail_is_busy(&dev->rails[i])) {
            /* Closing would free what the NIC still reads and writes */
            ucs_warn("lane 'trig': device %s still holds operations of failed "
                     "peers and is left open", dev->rails[i].attr.device);
            return;
        }
    }
    ucp_st_trig_close_rails(dev);
    uct_worker_destroy(dev->uct_worker);
    ucs_async_context_destroy(dev->async);
}

ucs_status_t ucp_st_trig_dev_query(ucp_st_worker_h worker,
                                   ucp_st_worker_attr_t *attr)
{
    const ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    size_t length                = 0;
    uct_trig_iface_attr_t trig_attr;
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < dev->num_rails; ++i) {
        status = uct_trig_iface_query(dev->rails[i].iface, &trig_attr);
        if (status != UCS_OK) {
            return status;
        }
        attr->stats.entries += trig_attr.used_entries;
        attr->stats.cntrs   += trig_attr.num_cntrs;
        length += snprintf(attr->device + length, sizeof(attr->device) - length,
                           "%s%s", (i == 0) ? "" : ",", trig_attr.device);
        length  = ucs_min(length, sizeof(attr->device) - 1);
    }
    snprintf(attr->provider, sizeof(attr->provider), "%s", trig_attr.provider);
    return UCS_OK;
}
