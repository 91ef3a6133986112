/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_dev.c - what the trig lane has once for a worker: which devices of
 * the transport it opens, and what the service thread does for it; and how it
 * reaches a peer.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_worker.h"

#include <ucs_gstream_memory.h>

#include <ucs/sys/math.h>
#include <ucs/type/thread_mode.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The transport behind the lane */
#define UCP_ST_TRIG_TL_NAME "cxi_trig"

/* Rounds until the lock is released, and other clients of the service thread
 * have their turn */
#define UCP_ST_TRIG_MAX_ROUNDS 64

/* When the thread posts again what a provider refused, milliseconds */
#define UCP_ST_TRIG_RETRY_TIME 1

_Static_assert(UCP_ST_TRIG_MAX_RAILS <= UCP_ST_SERVICE_MAX_FDS,
               "a descriptor for each rail");

unsigned ucp_st_trig_dev_progress(ucp_st_worker_h worker)
{
    unsigned count = uct_worker_progress(ucp_st_trig_dev(worker)->uct_worker);

    ucp_st_trig_post_late(worker); /* with the entries that are free now */
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

/* In the service thread: reap completions, which wakes the streams that sleep
 * on words; post late uses; and release streams that wait after failed puts.
 * The interfaces are armed under the lock, after a progress that found nothing:
 * a completion was reaped, or makes its descriptor readable. */
static int ucp_st_trig_serve(void *arg)
{
    ucp_st_worker_h worker = arg;
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    unsigned rounds        = 0;
    int timeout            = -1;

    ucp_st_worker_lock(worker);
    if (worker->is_ending) {
        /* What could not be cancelled names what is freed now */
        dev->service.num_fds = 0;
        ucp_st_worker_unlock(worker);
        return -1;
    }
    dev->is_refused     = 0;
    dev->is_retry_timed = 1;
    while ((ucp_st_trig_dev_progress(worker) > 0) &&
           (++rounds < UCP_ST_TRIG_MAX_ROUNDS)) {
        /* all that is there */
    }
    if (__atomic_exchange_n(&dev->untriggered, 0, __ATOMIC_ACQUIRE)) {
        ucp_st_trig_fail_untriggered(worker);
    }
    if (dev->settle != NULL) {
        dev->settle(worker);
    }
    if ((rounds == UCP_ST_TRIG_MAX_ROUNDS) ||
        (ucp_st_trig_arm(dev) == UCS_ERR_BUSY)) {
        timeout = 0;
    }
    timeout = ucp_st_trig_sooner(timeout, ucp_st_trig_settle(worker));
    dev->is_retry_timed = dev->is_refused;
    if (dev->is_retry_timed) {
        timeout = ucp_st_trig_sooner(timeout, UCP_ST_TRIG_RETRY_TIME);
    }
    ucp_st_worker_unlock(worker);
    return timeout;
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

/* Open the first device of a memory domain that UCX_NET_DEVICES allows; UCS_OK
 * also if there is none */
static ucs_status_t ucp_st_trig_open_md(ucp_st_worker_h worker,
                                        uct_component_h component,
                                        const char *name)
{
    const char *allowed    = getenv("UCX_NET_DEVICES");
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    uct_tl_resource_desc_t *tls;
    uct_md_config_t *config;
    unsigned num_tls, i;
    ucs_status_t status;
    uct_md_h md;

    status = uct_md_config_read(component, NULL, NULL, &config);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_md_open(component, name, config, &md);
    uct_config_release(config);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_md_query_tl_resources(md, &tls, &num_tls);
    if (status != UCS_OK) {
        goto err_md;
    }
    status = UCS_ERR_NO_DEVICE;
    for (i = 0; (i < num_tls) && (status == UCS_ERR_NO_DEVICE); ++i) {
        if (!strcmp(tls[i].tl_name, UCP_ST_TRIG_TL_NAME) &&
            ucp_st_config_list_allows(allowed, tls[i].dev_name)) {
            status = ucp_st_trig_rail_open(&dev->rails[dev->num_rails], worker,
                                           md, &tls[i]);
        }
    }
    uct_release_tl_resource_list(tls);
    if (status != UCS_OK) {
        goto err_md;
    }
    ++dev->num_rails; /* the domain is the rail's now */
    return UCS_OK;

err_md:
    uct_md_close(md);
    return (status == UCS_ERR_NO_DEVICE) ? UCS_OK : status;
}

/* UCS_OK also if there is nothing to open */
static ucs_status_t ucp_st_trig_open_component(ucp_st_worker_h worker,
                                               uct_component_h component)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                      UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    unsigned max_rails        = ucs_min(worker->config.trig_devices,
                                        UCP_ST_TRIG_MAX_RAILS);
    ucs_status_t status;
    unsigned i, count;

    status = uct_component_query(component, &attr);
    if ((status != UCS_OK) || strcmp(attr.name, UCP_ST_TRIG_TL_NAME) ||
        (attr.md_resource_count == 0)) {
        return UCS_OK;
    }

    {
        uct_md_resource_desc_t mds[attr.md_resource_count];

        /* It looks for them again, and may find fewer */
        count             = attr.md_resource_count;
        attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT |
                            UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        attr.md_resources = mds;
        status            = uct_component_query(component, &attr);
        count             = ucs_min(count, attr.md_resource_count);
        for (i = 0; (i < count) && (status == UCS_OK) &&
                    (ucp_st_trig_dev(worker)->num_rails < max_rails); ++i) {
            status = ucp_st_trig_open_md(worker, component, mds[i].md_name);
        }
    }
    return status;
}

static void ucp_st_trig_open_complain(ucp_st_worker_h worker,
                                      ucs_status_t status)
{
    const uct_trig_iface_attr_t *few = &ucp_st_trig_dev(worker)->few;
    const char *allowed              = getenv("UCX_NET_DEVICES");
    char reason[UCT_TRIG_REASON_MAX];

    uct_trig_off_reason(reason, sizeof(reason));
    if (few->device[0] != '\0') {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_TRIG,
                           "lane 'trig': this process may use %u of the %u "
                           "deferred-work entries that device %s has for the "
                           "job, and needs %u (more entries: srun "
                           "--network=res_tles=N; fewer processes a device: "
                           "UCX_CXI_TRIG_NODE_PROCESSES)",
                           few->share_entries, few->nic_entries, few->device,
                           UCP_ST_TRIG_ENTRIES_MIN);
    } else if (status != UCS_ERR_NO_DEVICE) {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_TRIG,
                           "lane 'trig': failed to open a device: %s",
                           ucs_status_string(status));
    } else if (reason[0] != '\0') {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_TRIG, "lane 'trig': %s", reason);
    } else {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_TRIG,
                           "lane 'trig': transport %s has no device%s%s (is it "
                           "loaded?)", UCP_ST_TRIG_TL_NAME, (allowed == NULL) ?
                           "" : " that UCX_NET_DEVICES allows: ",
                           (allowed == NULL) ? "" : allowed);
    }
}

/* Open the devices that UCX_NET_DEVICES allows, up to UCP_ST_TRIG_MAX_RAILS.
 * UCT's worker has been created. Logs why there is none, or why one could not
 * be opened; then none is open. */
static ucs_status_t ucp_st_trig_open_rails(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    uct_component_h *components;
    unsigned num_components, i;
    ucs_status_t status;

    if (worker->config.trig_devices == 0) {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_NONE,
                           "UCX_ST_TRIG_DEVICES must be 1 to %d",
                           UCP_ST_TRIG_MAX_RAILS);
        return UCS_ERR_INVALID_PARAM;
    }
    status = uct_query_components(&components, &num_components);
    if (status != UCS_OK) {
        return status;
    }
    for (i = 0; (i < num_components) && (status == UCS_OK); ++i) {
        status = ucp_st_trig_open_component(worker, components[i]);
    }
    uct_release_component_list(components);
    if ((status == UCS_OK) && (dev->num_rails == 0)) {
        status = UCS_ERR_NO_DEVICE;
    }
    if (status != UCS_OK) {
        ucp_st_trig_open_complain(worker, status);
        ucp_st_trig_close_rails(dev);
    }
    return status;
}

ucs_status_t ucp_st_trig_dev_init(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    const char *tls        = getenv("UCX_TLS");
    ucp_st_trig_rail_t *rail;
    ucs_status_t status;
    unsigned i;

    if (!ucp_st_config_list_allows(tls, UCP_ST_TRIG_TL_NAME)) {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_TRIG,
                           "lane 'trig' needs the transport %s, which "
                           "UCX_TLS=%s leaves out", UCP_ST_TRIG_TL_NAME, tls);
        return UCS_ERR_UNSUPPORTED;
    }
    ucs_list_head_init(&dev->triggers);
    ucs_list_head_init(&dev->late);
    ucs_list_head_init(&dev->ending);
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
    dev->service.serve   = ucp_st_trig_serve;
    dev->service.arg     = worker;
    dev->service.num_fds = dev->num_rails;
    for (i = 0; i < dev->num_rails; ++i) {
        rail = &dev->rails[i];
        ucp_st_trig_rail_update(rail, dev->num_rails);
        status = uct_iface_event_fd_get(rail->iface, &dev->service.fds[i]);
        if (status != UCS_OK) {
            ucs_error("device %s: no event descriptor: %s", rail->attr.device,
                      ucs_status_string(status));
            goto err_rails;
        }
    }
    status = ucp_st_service_add(&dev->service);
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

/* Of a peer that was declared gone, but may live, armed work cannot be disposed
 * of: it would reach the peer */
void ucp_st_trig_dev_cancel(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < dev->num_rails; ++i) {
        if (!ucp_st_trig_rail_is_busy(&dev->rails[i])) {
            continue;
        }
        status = uct_trig_iface_cancel(dev->rails[i].iface, NULL, 0);
        if (status != UCS_OK) {
            ucs_diag("device %s does not cancel: %s", dev->rails[i].attr.device,
                     ucs_status_string(status));
        }
    }
}

void ucp_st_trig_dev_cleanup(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    unsigned i;

    ucp_st_service_remove(&dev->service);
    for (i = 0; i < dev->num_rails; ++i) {
        if (ucp_st_trig_rail_is_busy(&dev->rails[i])) {
            /* Closing would free what the NIC still reads and writes */
            ucs_warn("lane 'trig': device %s still holds operations of failed "
                     "peers and is left open", dev->rails[i].attr.device);
            return;
        }
    }
    if (dev->probe != NULL) {
        (void)uct_trig_cntr_destroy(dev->probe);
    }
    ucp_st_trig_close_rails(dev);
    uct_worker_destroy(dev->uct_worker);
    ucs_async_context_destroy(dev->async);
}

/* A trigger page of the NIC, of a counter that is made for this; or NULL. It is
 * kept: one that was given back may have to be waited for by whoever takes it
 * next. */
static volatile uint64_t *ucp_st_trig_dev_page(ucp_st_trig_dev_t *dev)
{
    if ((dev->probe == NULL) &&
        (uct_trig_cntr_create(dev->rails[0].iface, &dev->probe) != UCS_OK)) {
        return NULL;
    }
    return uct_trig_cntr_doorbell(dev->probe);
}

void ucp_st_trig_dev_prepare(ucp_st_worker_h worker, ucs_gstream_type_t type)
{
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    volatile uint64_t *page;

    ucp_st_worker_lock(worker);
    page = ucp_st_trig_dev_page(dev);
    ucp_st_worker_unlock(worker);
    if ((page != NULL) && ucs_gstream_type_reaches(type, page)) {
        ucp_st_worker_lock(worker);
        dev->serves |= UCS_BIT(type);
        ucp_st_worker_unlock(worker);
    }
}

int ucp_st_trig_dev_serves(ucp_st_worker_h worker, ucs_gstream_type_t type)
{
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);

    if (ucs_gstream_type_caps(type) & UCS_GSTREAM_CAP_CHEAP) {
        return 1; /* it calls the provider where there are no such pages */
    }
    /* Mostly it has been asked for, see prepare(): this is a look */
    if (!(dev->serves & UCS_BIT(type)) &&
        ucs_gstream_type_reaches(type, ucp_st_trig_dev_page(dev))) {
        dev->serves |= UCS_BIT(type);
    }
    return !!(dev->serves & UCS_BIT(type));
}

ucs_status_t ucp_st_trig_dev_query(ucp_st_worker_h worker,
                                   ucp_st_worker_attr_t *attr)
{
    const ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    size_t length                = 0;
    uct_trig_iface_attr_t trig_attr;
    ucs_status_t status;
    unsigned i;

    attr->stats.proxied += __atomic_load_n(&dev->proxied, __ATOMIC_RELAXED);
    for (i = 0; i < dev->num_rails; ++i) {
        status = uct_trig_iface_query(dev->rails[i].iface, &trig_attr);
        if (status != UCS_OK) {
            return status;
        }
        attr->stats.entries += trig_attr.used_entries;
        /* The one that is kept serves no operation */
        attr->stats.cntrs   += trig_attr.num_cntrs -
                               ((i == 0) && (dev->probe != NULL));
        length += snprintf(attr->device + length, sizeof(attr->device) - length,
                           "%s%s", (i == 0) ? "" : ",", trig_attr.device);
        length  = ucs_min(length, sizeof(attr->device) - 1);
    }
    snprintf(attr->provider, sizeof(attr->provider), "%s", trig_attr.provider);
    return UCS_OK;
}

void ucp_st_trig_rma_open(ucp_st_worker_h worker,
                          void (*settle)(ucp_st_worker_h worker))
{
    ucp_st_trig_dev(worker)->settle = settle;
}

void ucp_st_trig_refused(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);

    dev->is_refused = 1;
    if (!dev->is_retry_timed) {
        ucp_st_trig_dev_wake(worker);
    }
}

unsigned ucp_st_trig_rma_num_rails(ucp_st_worker_h worker)
{
    return ucp_st_trig_dev(worker)->num_rails;
}

ucp_st_trig_rail_t *ucp_st_trig_rma_rail(ucp_st_worker_h worker, unsigned nic)
{
    return &ucp_st_trig_dev(worker)->rails[nic];
}

/* What this side can do */
static void ucp_st_trig_limits_get(ucp_st_worker_h worker,
                                   ucp_st_trig_limits_t *limits)
{
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);
    unsigned i;

    limits->num_rails = dev->num_rails;
    limits->eager_max = ucs_min(worker->config.eager_max,
                                UCP_ST_TRIG_EAGER_MAX);
    limits->share_min = worker->config.chunk_min;
    limits->put_max   = ucs_max(worker->config.chunk_max, 1);
    for (i = 0; i < dev->num_rails; ++i) {
        limits->put_max = ucs_min(limits->put_max,
                                  dev->rails[i].attr.max_put);
    }
}

size_t ucp_st_trig_address_length(ucp_st_worker_h worker)
{
    const ucp_st_trig_dev_t *dev = ucp_st_trig_dev(worker);

    return sizeof(ucp_st_trig_address_t) +
           (dev->num_rails * ucp_st_trig_rail_address_length(&dev->rails[0]));
}

/* The address of one rail. All have the same length: they are of one
 * provider. */
static void *ucp_st_trig_address_rail(const ucp_st_trig_address_t *address,
                                      unsigned index)
{
    return UCS_PTR_BYTE_OFFSET(address, sizeof(*address) +
                               (index * address->rail_length));
}

ucs_status_t ucp_st_trig_address_pack(ucp_st_worker_h worker, void *buffer)
{
    const ucp_st_trig_dev_t *dev   = ucp_st_trig_dev(worker);
    ucp_st_trig_address_t *address = buffer;
    ucs_status_t status            = UCS_OK;
    ucp_st_trig_limits_t limits;
    unsigned i;

    ucp_st_trig_limits_get(worker, &limits);
    memset(address, 0, sizeof(*address));
    address->num_rails   = limits.num_rails;
    address->rail_length = ucp_st_trig_rail_address_length(&dev->rails[0]);
    address->eager_max   = limits.eager_max;
    address->share_min   = limits.share_min;
    address->put_max     = limits.put_max;
    for (i = 0; (i < dev->num_rails) && (status == UCS_OK); ++i) {
        status = ucp_st_trig_rail_address_pack(
                &dev->rails[i], ucp_st_trig_address_rail(address, i));
    }
    return status;
}

ucs_status_t ucp_st_trig_peer_err_handler(void *arg, uct_ep_h ep,
                                          ucs_status_t status)
{
    ucp_st_worker_h worker = arg;
    ucp_st_trig_peer_t *trig;
    ucp_st_peer_t *peer;
    unsigned i;

    ucs_list_for_each(peer, &worker->peers, list) {
        trig = ucp_st_trig_peer(peer);
        for (i = 0; i < trig->limits.num_rails; ++i) {
            if (trig->eps[i] != ep) {
                continue;
            }
            trig->lost |= UCS_BIT(i);
            ucp_st_peer_lost(peer, status);
            if (trig->lost == UCS_MASK(trig->limits.num_rails)) {
                ucp_st_peer_closed(peer); /* nothing arrives there */
            }
            return UCS_OK;
        }
    }
    return UCS_ERR_NO_ELEM; /* the own endpoint: the transport logs it */
}

/* The lock is held */
static void ucp_st_trig_peer_close(ucp_st_peer_t *peer)
{
    ucp_st_trig_rail_t *rails = ucp_st_trig_dev(peer->worker)->rails;
    ucp_st_trig_peer_t *trig  = ucp_st_trig_peer(peer);
    unsigned i;

    while (trig->limits.num_rails > 0) {
        i = --trig->limits.num_rails;
        /* Closing would free what the NIC still reads and writes */
        if (!ucp_st_trig_rail_is_busy(&rails[i])) {
            uct_ep_destroy(trig->eps[i]);
        }
    }
}

ucs_status_t ucp_st_trig_peer_connect(ucp_st_peer_t *peer, const void *buffer,
                                      size_t length)
{
    const ucp_st_trig_address_t *address = buffer;
    ucp_st_worker_h worker               = peer->worker;
    ucp_st_trig_rail_t *rails            = ucp_st_trig_dev(worker)->rails;
    ucp_st_trig_peer_t *trig             = ucp_st_trig_peer(peer);
    ucp_st_trig_limits_t *limits         = &trig->limits;
    ucs_status_t status                  = UCS_OK;
    unsigned i, max_rails;

    if ((length < sizeof(*address)) || (address->num_rails == 0) ||
        (address->rail_length != ucp_st_trig_rail_address_length(rails)) ||
        (length != (sizeof(*address) +
                    (address->num_rails * (size_t)address->rail_length)))) {
        return UCS_ERR_UNREACHABLE; /* of another provider */
    }
    ucp_st_worker_lock(worker);
    ucp_st_trig_limits_get(worker, limits);
    /* The limits of both sides: each sees the same two */
    max_rails         = ucs_min(limits->num_rails, address->num_rails);
    limits->eager_max = ucs_min(limits->eager_max, address->eager_max);
    limits->share_min = ucs_max(limits->share_min, address->share_min);
    limits->put_max   = ucs_min(limits->put_max, ucs_max(address->put_max, 1));
    /* Rail to rail. Which of them reach each other is the same seen from both
     * sides, and those behind one that does not are not used: so both use the
     * same number. */
    limits->num_rails = 0;
    for (i = 0; (i < max_rails) && (status == UCS_OK); ++i) {
        status = ucp_st_trig_rail_ep_create(
                &rails[i], ucp_st_trig_address_rail(address, i),
                &trig->eps[i]);
        limits->num_rails += (status == UCS_OK);
    }
    if ((status == UCS_ERR_UNREACHABLE) && (limits->num_rails > 0)) {
        status = UCS_OK;
    }
    if (status != UCS_OK) {
        ucp_st_trig_peer_close(peer);
    }
    ucp_st_worker_unlock(worker);
    return status;
}

void ucp_st_trig_peer_disconnect(ucp_st_peer_t *peer)
{
    /* The service thread progresses the interfaces until the lane is closed */
    ucp_st_worker_lock(peer->worker);
    ucp_st_trig_peer_close(peer);
    ucp_st_worker_unlock(peer->worker);
}

void ucp_st_trig_peer_check(ucp_st_peer_t *peer)
{
    ucp_st_trig_peer_t *trig = ucp_st_trig_peer(peer);
    unsigned i;

    /* The endpoint's error handler gets an error, in the next progress */
    for (i = 0; i < trig->limits.num_rails; ++i) {
        if (UCS_STATUS_IS_ERR(uct_ep_check(trig->eps[i], 0, NULL))) {
            ucp_st_trig_dev_wake(peer->worker);
        }
    }
}

uct_ep_h ucp_st_trig_rma_ep(ucp_st_peer_t *peer, unsigned nic)
{
    return (nic < ucp_st_trig_peer(peer)->limits.num_rails) ?
           ucp_st_trig_peer(peer)->eps[nic] : NULL;
}

size_t ucp_st_trig_rma_put_max(ucp_st_peer_t *peer)
{
    return ucp_st_trig_peer(peer)->limits.put_max;
}
