/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_dev.c - what the trig lane has in common in one worker, and what the
 * service thread does for it.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_trig_dev.h"
#include "st_leave.h"
#include "st_log.h"
#include "st_op.h"
#include "st_rma_trig.h"
#include "st_trig.h"
#include "st_trig_coalesce.h"
#include "st_trig_help.h"
#include "st_trig_use.h"
#include "st_worker.h"

#include <ucs/sys/math.h>
#include <ucs/type/thread_mode.h>

#include <stdio.h>
#include <string.h>

/* Where streams need no help of the thread, completions are reaped together */
#define UCP_ST_TRIG_LAZY_MSEC 1

/* Where streams drive the NICs the thread looks now and then whether they still
 * do: the longer they have, the more seldom */
#define UCP_ST_TRIG_NAP_MIN_MSEC 1
#define UCP_ST_TRIG_NAP_MAX_MSEC 4

_Static_assert(UCP_ST_TRIG_MAX_RAILS <= UCP_ST_SERVICE_MAX_FDS,
               "a descriptor for each rail");

unsigned ucp_st_trig_dev_reap(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = &worker->trig;
    unsigned count         = uct_worker_progress(dev->uct_worker);
    int is_late;

    if (dev->is_starved) {
        dev->is_starved = 0; /* or again */
        ucp_st_trig_post_late(worker);
    }
    ucp_st_rma_trig_progress(worker);
    if (!ucs_list_is_empty(&dev->unsent)) {
        ucp_st_trig_coalesce_send(worker);
    }
    is_late = !ucs_list_is_empty(&dev->late) ||
              ucp_st_rma_trig_is_late(worker) ||
              !ucs_list_is_empty(&dev->unsent);
    __atomic_store_n(&dev->is_late, is_late, __ATOMIC_RELAXED);
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

static void ucp_st_trig_fail_untriggered_of(ucs_list_link_t *ops)
{
    ucp_st_op_t *op;

    ucs_list_for_each(op, ops, list) {
        if (__atomic_load_n(&op->trig.untriggered, __ATOMIC_RELAXED)) {
            ucp_st_op_fail(op, UCS_ERR_IO_ERROR);
        }
    }
}

/* Operations whose start had no effect */
static void ucp_st_trig_fail_untriggered(ucp_st_worker_h worker)
{
    if (__atomic_exchange_n(&worker->trig.untriggered, 0, __ATOMIC_ACQUIRE)) {
        ucp_st_trig_fail_untriggered_of(&worker->ops);
        ucp_st_trig_fail_untriggered_of(&worker->limbo);
        ucp_st_trig_fail_untriggered_of(&worker->zombies);
    }
}

/* Until the thread is to look again, milliseconds; -1: not before it is woken,
 * as it is by the interfaces, which are armed. These are not where streams have
 * driven the NICs since the last look: a NIC that is armed takes it that nobody
 * drives it, and has its own thread woken for all that comes. If they cease to,
 * the next look finds that out. */
static int ucp_st_trig_rest(ucp_st_trig_dev_t *dev)
{
    int is_polled = __atomic_exchange_n(&dev->polled, 0, __ATOMIC_RELAXED);

    dev->service.is_deaf   = is_polled;
    dev->service.lazy_msec = (dev->helped && !dev->is_late &&
                              !dev->is_coalescing) ? UCP_ST_TRIG_LAZY_MSEC : 0;
    if (is_polled) {
        dev->nap_msec = ucs_min(2 * dev->nap_msec, UCP_ST_TRIG_NAP_MAX_MSEC);
        return dev->nap_msec;
    }
    dev->nap_msec = UCP_ST_TRIG_NAP_MIN_MSEC;
    return (ucp_st_trig_arm(dev) == UCS_ERR_BUSY) ? 0 : -1;
}

/* In the service thread: reap completions, wake the streams that sleep on the
 * words which the NICs counted up, post uses that found no entry when they were
 * enqueued, and release streams that wait for lost peers or after failed puts.
 * The interfaces, if they are, are armed under the lock, after a progress that
 * found nothing, so a completion either was reaped or makes its descriptor
 * readable. */
static int ucp_st_trig_serve(void *arg)
{
    ucp_st_worker_h worker = arg;
    ucp_st_trig_dev_t *dev = &worker->trig;
    int timeout;

    ucp_st_worker_lock(worker);
    while (ucp_st_trig_dev_reap(worker) > 0) {
        /* all that is there */
    }
    ucp_st_trig_post_late(worker);
    ucp_st_trig_fail_untriggered(worker);
    timeout = ucp_st_trig_rest(dev);
    timeout = ucp_st_trig_sooner(timeout, ucp_st_leave_settle_late(worker));
    timeout = ucp_st_trig_sooner(timeout, ucp_st_trig_doubts_settle(worker));
    timeout = ucp_st_trig_sooner(timeout, ucp_st_trig_drains_settle(worker));
    ucp_st_worker_unlock(worker);
    return timeout;
}

static ucs_status_t ucp_st_trig_service_start(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = &worker->trig;
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
    ucp_st_service_wake(&worker->trig.service);
}

void ucp_st_trig_dev_late(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = &worker->trig;

    if (!dev->is_late) {
        __atomic_store_n(&dev->is_late, 1, __ATOMIC_RELAXED);
        ucp_st_trig_dev_wake(worker); /* it may be lazy */
    }
}

/* However far the host is ahead of its streams, a match finds room. All rails
 * together: the entries may be a process's, not a NIC's. */
static void ucp_st_trig_share_entries(ucp_st_trig_dev_t *dev)
{
    ucp_st_trig_rail_t *rail;
    unsigned i;

    for (i = 0; i < dev->num_rails; ++i) {
        rail            = &dev->rails[i];
        rail->max_ahead = (rail->attr.max_entries -
                           (rail->attr.max_entries / 4)) / dev->num_rails;
    }
}

static void ucp_st_trig_close_rails(ucp_st_trig_dev_t *dev)
{
    while (dev->num_rails > 0) {
        ucp_st_trig_rail_close(&dev->rails[--dev->num_rails]);
    }
}

ucs_status_t ucp_st_trig_dev_init(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = &worker->trig;
    ucs_status_t status;

    ucs_list_head_init(&dev->late);
    ucs_list_head_init(&dev->doubtful);
    ucs_list_head_init(&dev->draining);
    ucs_list_head_init(&dev->unsent);
    dev->nap_msec = UCP_ST_TRIG_NAP_MIN_MSEC;
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
    ucp_st_trig_share_entries(dev);
    ucp_st_trig_help_start(worker);
    status = ucp_st_trig_coalesce_open(worker);
    if (status == UCS_OK) {
        status = ucp_st_trig_service_start(worker);
    }
    if (status != UCS_OK) {
        goto err_help;
    }
    return UCS_OK;

err_help:
    ucp_st_trig_help_stop(worker);
    ucp_st_trig_close_rails(dev);
err_worker:
    uct_worker_destroy(dev->uct_worker);
err_async:
    ucs_async_context_destroy(dev->async);
err:
    return status;
}

static const ucp_st_trig_rail_t *
ucp_st_trig_find_busy(const ucp_st_trig_dev_t *dev)
{
    unsigned i;

    for (i = 0; i < dev->num_rails; ++i) {
        if (ucp_st_trig_rail_is_busy(&dev->rails[i])) {
            return &dev->rails[i];
        }
    }
    return NULL;
}

void ucp_st_trig_dev_cleanup(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = &worker->trig;
    const ucp_st_trig_rail_t *busy;

    ucp_st_trig_help_stop(worker);
    ucp_st_service_remove(&dev->service);
    ucp_st_rma_trig_progress(worker);
    busy = ucp_st_trig_find_busy(dev);
    if (busy != NULL) {
        /* Closing would free what the NIC still reads and writes */
        ucs_warn("lane 'trig': device %s still holds operations of failed "
                 "peers and is left open", busy->attr.device);
        return;
    }
    ucp_st_trig_close_rails(dev);
    uct_worker_destroy(dev->uct_worker);
    ucs_async_context_destroy(dev->async);
}

static void ucp_st_trig_catch_up_of(ucs_list_link_t *ops)
{
    ucp_st_op_t *op;

    ucs_list_for_each(op, ops, list) {
        ucp_st_trig_catch_up(op);
    }
}

ucs_status_t ucp_st_trig_dev_query(ucp_st_worker_h worker,
                                   ucp_st_worker_attr_t *attr)
{
    const ucp_st_trig_dev_t *dev = &worker->trig;
    uint64_t eager               = worker->stats.eager;
    size_t length                = 0;
    uct_trig_iface_attr_t trig_attr;
    ucs_status_t status;
    unsigned i;

    ucp_st_trig_catch_up_of(&worker->ops);
    ucp_st_trig_catch_up_of(&worker->limbo);
    ucp_st_trig_catch_up_of(&worker->zombies);
    attr->stats.eager += worker->stats.eager - eager;
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
    attr->stats.cts_waits = __atomic_load_n(&dev->cts_waits, __ATOMIC_RELAXED);
    snprintf(attr->provider, sizeof(attr->provider), "%s", trig_attr.provider);
    return UCS_OK;
}
