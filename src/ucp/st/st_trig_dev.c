/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_dev.c - the NIC behind the trig lane, and what the service thread
 * does for it.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_trig_dev.h"
#include "st_lane.h"
#include "st_leave.h"
#include "st_log.h"
#include "st_peer.h"
#include "st_trig.h"
#include "st_worker.h"

#include <ucs/type/thread_mode.h>

#include <stdlib.h>
#include <string.h>

/* Where streams need no help of the thread, completions are reaped together */
#define UCP_ST_TRIG_LAZY_MSEC 1

#define UCP_ST_TRIG_SLAB_SIZE  4096
#define UCP_ST_TRIG_SLAB_SLOTS (UCP_ST_TRIG_SLAB_SIZE / \
                                sizeof(ucp_st_trig_slot_t))

_Static_assert(sizeof(ucp_st_trig_slot_t) == 64, "one cache line");

unsigned ucp_st_trig_dev_progress(ucp_st_worker_h worker)
{
    unsigned count = uct_worker_progress(worker->trig.uct_worker);

    ucp_st_trig_post_late(worker);
    return count;
}

/* In the service thread: reap completions, wake the streams that sleep on the
 * words which the NIC counted up, post uses that found no entry when they were
 * enqueued, and release streams that wait for lost peers. The interface is
 * armed under the lock, after a progress that found nothing, so a completion
 * either was reaped or makes the descriptor readable. */
static int ucp_st_trig_serve(void *arg)
{
    ucp_st_worker_h worker = arg;
    ucp_st_trig_dev_t *dev = &worker->trig;
    ucs_status_t status;
    int timeout;

    ucp_st_worker_lock(worker);
    while (ucp_st_trig_dev_progress(worker) > 0) {
        /* reap all that is there */
    }
    status  = uct_iface_event_arm(dev->iface,
                                  UCT_EVENT_SEND_COMP | UCT_EVENT_RECV);
    timeout = ucp_st_leave_settle_late(worker);
    dev->service.lazy_msec = (dev->helped && ucs_list_is_empty(&dev->late)) ?
                             UCP_ST_TRIG_LAZY_MSEC : 0;
    ucp_st_worker_unlock(worker);
    return (status == UCS_ERR_BUSY) ? 0 : timeout;
}

static ucs_status_t ucp_st_trig_service_start(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = &worker->trig;
    ucs_status_t status;

    dev->service.serve   = ucp_st_trig_serve;
    dev->service.arg     = worker;
    dev->service.num_fds = 1;
    status = uct_iface_event_fd_get(dev->iface, &dev->service.fds[0]);
    if (status != UCS_OK) {
        ucs_error("device %s: no event descriptor: %s", dev->attr.device,
                  ucs_status_string(status));
        return status;
    }
    return ucp_st_service_add(&dev->service);
}

void ucp_st_trig_dev_wake(ucp_st_worker_h worker)
{
    ucp_st_service_wake(&worker->trig.service);
}

/* The NIC has lost a peer. Called from progress, with the lock held. */
static ucs_status_t ucp_st_trig_err_handler(void *arg, uct_ep_h ep,
                                            ucs_status_t status)
{
    ucp_st_worker_h worker = arg;
    ucp_st_peer_t *peer;

    ucs_list_for_each(peer, &worker->peers, list) {
        if (peer->trig_ep == ep) {
            ucp_st_leave_lost(peer, status);
            return UCS_OK;
        }
    }
    return UCS_ERR_NO_ELEM; /* the own endpoint: the transport logs it */
}

static ucs_status_t ucp_st_trig_iface_open(ucp_st_worker_h worker,
                                           const uct_tl_resource_desc_t *tl)
{
    ucp_st_trig_dev_t *dev    = &worker->trig;
    uct_iface_params_t params = {
        .field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                UCT_IFACE_PARAM_FIELD_DEVICE |
                                UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                                UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = tl->tl_name,
        .mode.device.dev_name = tl->dev_name,
        .err_handler          = ucp_st_trig_err_handler,
        .err_handler_arg      = worker
    };
    uct_iface_config_t *config;
    ucs_status_t status;

    status = uct_md_iface_config_read(dev->md, tl->tl_name, NULL, NULL,
                                      &config);
    if (status != UCS_OK) {
        return status;
    }
    /* Progress is called with the lock held, and by a thread that waits for
     * events: it must not sleep itself */
    status = uct_config_modify(config, "IDLE_POLLS", "0");
    if (status == UCS_OK) {
        status = uct_iface_open(dev->md, dev->uct_worker, &params, config,
                                &dev->iface);
    }
    uct_config_release(config);
    return status;
}

/* Open the first device of the MD that UCX_NET_DEVICES allows */
static ucs_status_t ucp_st_trig_md_use(ucp_st_worker_h worker)
{
    const char *allowed = getenv("UCX_NET_DEVICES");
    ucs_status_t result = UCS_ERR_NO_DEVICE;
    uct_tl_resource_desc_t *tls;
    unsigned num_tls, i;
    ucs_status_t status;

    status = uct_md_query_tl_resources(worker->trig.md, &tls, &num_tls);
    if (status != UCS_OK) {
        return status;
    }
    for (i = 0; (i < num_tls) && (result == UCS_ERR_NO_DEVICE); ++i) {
        if (!strcmp(tls[i].tl_name, UCP_ST_TRIG_TL_NAME) &&
            ucp_st_config_list_allows(allowed, tls[i].dev_name)) {
            result = ucp_st_trig_iface_open(worker, &tls[i]);
        }
    }
    uct_release_tl_resource_list(tls);
    return result;
}

static ucs_status_t ucp_st_trig_md_open(ucp_st_worker_h worker,
                                        uct_component_h component,
                                        const char *name)
{
    uct_md_config_t *config;
    ucs_status_t status;

    status = uct_md_config_read(component, NULL, NULL, &config);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_md_open(component, name, config, &worker->trig.md);
    uct_config_release(config);
    if (status != UCS_OK) {
        return status;
    }

    status = ucp_st_trig_md_use(worker);
    if (status != UCS_OK) {
        uct_md_close(worker->trig.md);
    }
    return status;
}

static ucs_status_t ucp_st_trig_component_open(ucp_st_worker_h worker,
                                               uct_component_h component)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                      UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    ucs_status_t status;
    unsigned i;

    status = uct_component_query(component, &attr);
    if ((status != UCS_OK) || strcmp(attr.name, UCP_ST_TRIG_TL_NAME) ||
        (attr.md_resource_count == 0)) {
        return UCS_ERR_NO_DEVICE;
    }

    {
        uct_md_resource_desc_t mds[attr.md_resource_count];

        attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        attr.md_resources = mds;
        status            = uct_component_query(component, &attr);
        if (status != UCS_OK) {
            return status;
        }
        status = UCS_ERR_NO_DEVICE;
        for (i = 0; (i < attr.md_resource_count) &&
                    (status == UCS_ERR_NO_DEVICE); ++i) {
            status = ucp_st_trig_md_open(worker, component, mds[i].md_name);
        }
    }
    return status;
}

static ucs_status_t ucp_st_trig_device_open(ucp_st_worker_h worker)
{
    const char *allowed = getenv("UCX_NET_DEVICES");
    uct_component_h *components;
    unsigned num_components, i;
    ucs_status_t status;

    status = uct_query_components(&components, &num_components);
    if (status != UCS_OK) {
        return status;
    }
    status = UCS_ERR_NO_DEVICE;
    for (i = 0; (i < num_components) && (status == UCS_ERR_NO_DEVICE); ++i) {
        status = ucp_st_trig_component_open(worker, components[i]);
    }
    uct_release_component_list(components);
    if (status == UCS_ERR_NO_DEVICE) {
        ucs_log(ucp_st_lane_log_level(worker),
                "lane 'trig': transport %s has no device%s%s (is it loaded, "
                  "and its provider there?)", UCP_ST_TRIG_TL_NAME,
                  (allowed == NULL) ? "" : " that UCX_NET_DEVICES allows: ",
                  (allowed == NULL) ? "" : allowed);
    } else if (status != UCS_OK) {
        ucs_log(ucp_st_lane_log_level(worker),
                "lane 'trig': failed to open a device: %s",
                ucs_status_string(status));
    }
    return status;
}

size_t ucp_st_trig_dev_address_length(ucp_st_worker_h worker)
{
    const uct_iface_attr_t *attr = &worker->trig.iface_attr;

    return attr->device_addr_len + attr->iface_addr_len;
}

ucs_status_t ucp_st_trig_dev_address_pack(ucp_st_worker_h worker, void *buffer)
{
    const ucp_st_trig_dev_t *dev = &worker->trig;
    ucs_status_t status;

    status = uct_iface_get_device_address(dev->iface, buffer);
    if (status != UCS_OK) {
        return status;
    }
    return uct_iface_get_address(dev->iface,
                                 UCS_PTR_BYTE_OFFSET(
                                         buffer,
                                         dev->iface_attr.device_addr_len));
}

/* An endpoint to what an address_pack() described; the lock is held, or no
 * other thread uses the worker */
static ucs_status_t ucp_st_trig_ep_create(ucp_st_worker_h worker,
                                          const void *address, uct_ep_h *ep_p)
{
    const ucp_st_trig_dev_t *dev = &worker->trig;
    const void *iface_addr       = UCS_PTR_BYTE_OFFSET(
            address, dev->iface_attr.device_addr_len);
    uct_ep_params_t params       = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = dev->iface,
        .dev_addr   = address,
        .iface_addr = iface_addr
    };

    if (!uct_iface_is_reachable(dev->iface, address, iface_addr)) {
        return UCS_ERR_UNREACHABLE;
    }
    return uct_ep_create(&params, ep_p);
}

static ucs_status_t ucp_st_trig_self_connect(ucp_st_worker_h worker)
{
    uint8_t address[ucp_st_trig_dev_address_length(worker)];
    ucs_status_t status;

    status = ucp_st_trig_dev_address_pack(worker, address);
    if (status != UCS_OK) {
        return status;
    }
    return ucp_st_trig_ep_create(worker, address, &worker->trig.self_ep);
}

/* The interface is open: check it, and make what all operations share */
static ucs_status_t ucp_st_trig_dev_setup(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = &worker->trig;
    ucs_status_t status;

    status = uct_iface_query(dev->iface, &dev->iface_attr);
    if (status == UCS_OK) {
        status = uct_trig_iface_query(dev->iface, &dev->attr);
    }
    if (status != UCS_OK) {
        ucs_error("lane 'trig': failed to query the device: %s",
                  ucs_status_string(status));
        return status;
    }
    /* However far the host is ahead of its streams, a match finds room */
    dev->max_ahead = dev->attr.max_entries - (dev->attr.max_entries / 4);
    uct_iface_progress_enable(dev->iface, UCT_PROGRESS_SEND);

    status = ucp_st_trig_self_connect(worker);
    if (status != UCS_OK) {
        ucs_error("lane 'trig': device %s cannot reach itself: %s",
                  dev->attr.device, ucs_status_string(status));
        return status;
    }

    status = uct_trig_cntr_create(dev->iface, &dev->sink);
    if (status != UCS_OK) {
        uct_ep_destroy(dev->self_ep);
        return status;
    }
    return UCS_OK;
}

/* A host stream waits for a word that the NIC writes */
static void ucp_st_trig_poll(void *arg, int is_last)
{
    (void)uct_trig_iface_progress_nic(arg, is_last);
}

static void ucp_st_trig_stored(void *arg, const void *address)
{
    (void)arg;
    ucs_gstream_wake(address);
}

/* An emulated NIC is driven by the streams that wait for it, and wakes those
 * that sleep. Without that its own threads and ours do it, later. */
static void ucp_st_trig_help_start(ucp_st_trig_dev_t *dev)
{
    dev->helped = 0;
    if (!(dev->attr.flags & UCT_TRIG_IFACE_FLAG_EMULATED)) {
        return;
    }
    if (ucs_gstream_poller_add(ucp_st_trig_poll, dev->iface) != UCS_OK) {
        ucs_diag("host streams do not drive device %s: there are too many",
                 dev->attr.device);
        return;
    }
    (void)uct_trig_iface_on_store(dev->iface, ucp_st_trig_stored, NULL);
    dev->helped = 1;
}

static void ucp_st_trig_help_stop(ucp_st_trig_dev_t *dev)
{
    if (dev->helped) {
        (void)uct_trig_iface_on_store(dev->iface, NULL, NULL);
        (void)ucs_gstream_poller_remove(ucp_st_trig_poll, dev->iface);
    }
}

ucs_status_t ucp_st_trig_dev_init(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = &worker->trig;
    ucs_status_t status;

    ucs_list_head_init(&dev->late);
    status = ucs_async_context_create(UCS_ASYNC_MODE_THREAD_MUTEX, &dev->async);
    if (status != UCS_OK) {
        goto err;
    }
    status = uct_worker_create(dev->async, UCS_THREAD_MODE_SERIALIZED,
                               &dev->uct_worker);
    if (status != UCS_OK) {
        goto err_async;
    }
    status = ucp_st_trig_device_open(worker);
    if (status != UCS_OK) {
        goto err_worker;
    }
    status = ucp_st_trig_dev_setup(worker);
    if (status != UCS_OK) {
        goto err_iface;
    }
    ucp_st_trig_help_start(dev);
    status = ucp_st_trig_service_start(worker);
    if (status != UCS_OK) {
        goto err_help;
    }
    return UCS_OK;

err_help:
    ucp_st_trig_help_stop(dev);
    (void)uct_trig_cntr_destroy(dev->sink);
    uct_ep_destroy(dev->self_ep);
err_iface:
    uct_iface_close(dev->iface);
    uct_md_close(dev->md);
err_worker:
    uct_worker_destroy(dev->uct_worker);
err_async:
    ucs_async_context_destroy(dev->async);
err:
    return status;
}

static int ucp_st_trig_dev_is_busy(ucp_st_worker_h worker)
{
    uct_trig_iface_attr_t attr;

    return (uct_trig_iface_query(worker->trig.iface, &attr) != UCS_OK) ||
           (attr.used_entries != 0);
}

static void ucp_st_trig_slabs_release(ucp_st_trig_dev_t *dev)
{
    ucp_st_trig_slab_t *slab;

    while ((slab = dev->slabs) != NULL) {
        dev->slabs = slab->next;
        (void)uct_trig_mem_dereg(slab->mem);
        free(slab->slots);
        free(slab);
    }
    dev->free_slots = NULL;
}

void ucp_st_trig_dev_cleanup(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = &worker->trig;

    ucp_st_trig_help_stop(dev);
    ucp_st_service_remove(&dev->service);
    if (ucp_st_trig_dev_is_busy(worker)) {
        /* Closing would free what the NIC still reads and writes */
        ucs_warn("lane 'trig': device %s still holds operations of failed "
                 "peers and is left open", dev->attr.device);
        return;
    }
    ucp_st_trig_slabs_release(dev);
    (void)uct_trig_cntr_destroy(dev->sink);
    uct_ep_destroy(dev->self_ep);
    uct_iface_close(dev->iface);
    uct_md_close(dev->md);
    uct_worker_destroy(dev->uct_worker);
    ucs_async_context_destroy(dev->async);
}

ucs_status_t ucp_st_trig_dev_connect(ucp_st_peer_t *peer, const void *address,
                                     size_t length)
{
    ucp_st_worker_h worker = peer->worker;
    ucs_status_t status;

    if (length != ucp_st_trig_dev_address_length(worker)) {
        return UCS_ERR_UNREACHABLE; /* of another provider */
    }
    ucp_st_worker_lock(worker);
    status = ucp_st_trig_ep_create(worker, address, &peer->trig_ep);
    ucp_st_worker_unlock(worker);
    return status;
}

void ucp_st_trig_dev_disconnect(ucp_st_peer_t *peer)
{
    /* Closing would free what the NIC still reads and writes */
    if ((peer->trig_ep != NULL) && !ucp_st_trig_dev_is_busy(peer->worker)) {
        uct_ep_destroy(peer->trig_ep);
    }
    peer->trig_ep = NULL;
}

void ucp_st_trig_dev_check(ucp_st_peer_t *peer)
{
    /* An error is told by the endpoint's error handler */
    (void)uct_ep_check(peer->trig_ep, 0, NULL);
}

ucs_status_t ucp_st_trig_dev_query(ucp_st_worker_h worker,
                                   ucp_st_worker_attr_t *attr)
{
    uct_trig_iface_attr_t trig_attr;
    ucs_status_t status;

    status = uct_trig_iface_query(worker->trig.iface, &trig_attr);
    if (status != UCS_OK) {
        return status;
    }
    attr->stats.entries = trig_attr.used_entries;
    attr->stats.cntrs   = trig_attr.num_cntrs;
    snprintf(attr->provider, sizeof(attr->provider), "%s", trig_attr.provider);
    snprintf(attr->device, sizeof(attr->device), "%s", trig_attr.device);
    return UCS_OK;
}

static ucs_status_t ucp_st_trig_slab_add(ucp_st_trig_dev_t *dev)
{
    uint8_t packed[UCT_TRIG_RKEY_PACKED_LEN];
    ucp_st_trig_slab_t *slab;
    ucs_status_t status;
    size_t i;

    slab = calloc(1, sizeof(*slab));
    if (slab == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    slab->slots = aligned_alloc(UCP_ST_TRIG_SLAB_SIZE, UCP_ST_TRIG_SLAB_SIZE);
    if (slab->slots == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err_slab;
    }
    memset(slab->slots, 0, UCP_ST_TRIG_SLAB_SIZE);
    status = uct_trig_mem_reg(dev->iface, slab->slots, UCP_ST_TRIG_SLAB_SIZE,
                              NULL, &slab->mem);
    if (status != UCS_OK) {
        goto err_slots;
    }
    uct_trig_mem_pack(slab->mem, packed);
    status = uct_trig_rkey_unpack(packed, sizeof(packed), &slab->rkey);
    if (status != UCS_OK) {
        goto err_mem;
    }

    for (i = 0; i < UCP_ST_TRIG_SLAB_SLOTS; ++i) {
        slab->slots[i].next = dev->free_slots;
        dev->free_slots     = &slab->slots[i];
    }
    slab->next = dev->slabs;
    dev->slabs = slab;
    return UCS_OK;

err_mem:
    (void)uct_trig_mem_dereg(slab->mem);
err_slots:
    free(slab->slots);
err_slab:
    free(slab);
    return status;
}

/* The slab is the one whose aligned block holds the slot */
static ucp_st_trig_slab_t *ucp_st_trig_slab_of(ucp_st_trig_dev_t *dev,
                                               const ucp_st_trig_slot_t *slot)
{
    uintptr_t block          = (uintptr_t)slot &
                               ~(uintptr_t)(UCP_ST_TRIG_SLAB_SIZE - 1);
    ucp_st_trig_slab_t *slab = dev->slabs;

    while ((uintptr_t)slab->slots != block) {
        slab = slab->next;
    }
    return slab;
}

ucs_status_t ucp_st_trig_slot_get(ucp_st_worker_h worker,
                                  ucp_st_trig_slot_t **slot_p,
                                  uct_trig_rkey_t *rkey)
{
    ucp_st_trig_dev_t *dev = &worker->trig;
    ucp_st_trig_slot_t *slot;
    ucs_status_t status;

    if (dev->free_slots == NULL) {
        status = ucp_st_trig_slab_add(dev);
        if (status != UCS_OK) {
            return status;
        }
    }
    slot            = dev->free_slots;
    dev->free_slots = slot->next;
    slot->word      = 0;
    slot->pad       = 0;
    *slot_p         = slot;
    *rkey           = ucp_st_trig_slab_of(dev, slot)->rkey;
    return UCS_OK;
}

void ucp_st_trig_slot_put(ucp_st_worker_h worker, ucp_st_trig_slot_t *slot)
{
    slot->next              = worker->trig.free_slots;
    worker->trig.free_slots = slot;
}
