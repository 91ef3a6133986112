/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_dev.c - the NIC behind the trig lane and the thread that serves it.
 *
 * The thread reaps completions, wakes the streams that sleep on the words which
 * the NIC counted up, posts uses that found no entry when they were enqueued,
 * and releases streams that wait for lost peers. It sleeps in poll() otherwise:
 * the interface is armed under the lock, after a progress that found nothing,
 * so a completion either was reaped or makes the descriptor readable.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* pthread_setname_np() */
#endif

#include "st_trig_dev.h"
#include "st_leave.h"
#include "st_log.h"
#include "st_peer.h"
#include "st_trig.h"
#include "st_worker.h"

#include <ucs/type/thread_mode.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

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

/* Non-zero: nothing to do until the event fd is readable */
static int ucp_st_trig_thread_arm(ucp_st_worker_h worker)
{
    ucs_status_t status;

    while (ucp_st_trig_dev_progress(worker) > 0) {
        /* reap all that is there */
    }
    status = uct_iface_event_arm(worker->trig.iface,
                                 UCT_EVENT_SEND_COMP | UCT_EVENT_RECV);
    return status != UCS_ERR_BUSY;
}

static void *ucp_st_trig_thread(void *arg)
{
    ucp_st_worker_h worker = arg;
    struct pollfd fds[2]   = {
        {.fd = worker->trig.event_fd, .events = POLLIN},
        {.fd = worker->trig.wake_fd, .events = POLLIN}
    };
    int stop = 0;
    int armed, timeout, is_lazy;
    uint64_t wakes;

    while (!stop) {
        ucp_st_worker_lock(worker);
        armed   = ucp_st_trig_thread_arm(worker);
        timeout = ucp_st_leave_settle_late(worker);
        stop    = worker->trig.stop;
        is_lazy = worker->trig.helped && ucs_list_is_empty(&worker->trig.late);
        ucp_st_worker_unlock(worker);
        if (!armed || stop) {
            continue;
        }
        (void)poll(fds, 2, timeout);
        if (fds[1].revents != 0) {
            (void)!read(worker->trig.wake_fd, &wakes, sizeof(wakes));
        } else if (is_lazy) {
            (void)poll(&fds[1], 1, UCP_ST_TRIG_LAZY_MSEC);
        }
    }
    return NULL;
}

static ucs_status_t ucp_st_trig_thread_start(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = &worker->trig;
    sigset_t all, old;
    ucs_status_t status;
    int ret;

    status = uct_iface_event_fd_get(dev->iface, &dev->event_fd);
    if (status != UCS_OK) {
        ucs_error("device %s: no event descriptor: %s", dev->attr.device,
                  ucs_status_string(status));
        return status;
    }

    dev->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (dev->wake_fd < 0) {
        ucs_error("eventfd() failed: %m");
        return UCS_ERR_NO_RESOURCE;
    }

    /* The application's signal handlers run on its own threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    ret = pthread_create(&dev->thread, NULL, ucp_st_trig_thread, worker);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (ret != 0) {
        ucs_error("failed to start the trig lane's thread: %s", strerror(ret));
        close(dev->wake_fd);
        return UCS_ERR_NO_RESOURCE;
    }
    (void)pthread_setname_np(dev->thread, "ucp-st-trig");
    return UCS_OK;
}

void ucp_st_trig_dev_wake(ucp_st_worker_h worker)
{
    uint64_t one = 1;

    if (write(worker->trig.wake_fd, &one, sizeof(one)) < 0) {
        ucs_error("write() to the trig lane's thread failed: %m");
    }
}

static void ucp_st_trig_thread_stop(ucp_st_worker_h worker)
{
    ucp_st_worker_lock(worker);
    worker->trig.stop = 1;
    ucp_st_worker_unlock(worker);
    ucp_st_trig_dev_wake(worker);
    pthread_join(worker->trig.thread, NULL);
    close(worker->trig.wake_fd);
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
        ucs_error("lane 'trig': transport %s has no device%s%s (is it loaded, "
                  "and its provider there?)", UCP_ST_TRIG_TL_NAME,
                  (allowed == NULL) ? "" : " that UCX_NET_DEVICES allows: ",
                  (allowed == NULL) ? "" : allowed);
    } else if (status != UCS_OK) {
        ucs_error("lane 'trig': failed to open a device: %s",
                  ucs_status_string(status));
    }
    return status;
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

    {
        uint8_t dev_addr[dev->iface_attr.device_addr_len + 1];
        uint8_t iface_addr[dev->iface_attr.iface_addr_len + 1];

        status = ucp_st_trig_dev_address(worker, dev_addr, iface_addr);
        if (status == UCS_OK) {
            status = ucp_st_trig_dev_connect(worker, dev_addr, iface_addr,
                                             &dev->self_ep);
        }
    }
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
    status = ucp_st_trig_thread_start(worker);
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

int ucp_st_trig_dev_is_busy(ucp_st_worker_h worker)
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
    ucp_st_trig_thread_stop(worker);
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

ucs_status_t ucp_st_trig_dev_connect(ucp_st_worker_h worker,
                                     const void *dev_addr,
                                     const void *iface_addr, uct_ep_h *ep_p)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = worker->trig.iface,
        .dev_addr   = dev_addr,
        .iface_addr = iface_addr
    };

    if (!uct_iface_is_reachable(worker->trig.iface, dev_addr, iface_addr)) {
        return UCS_ERR_UNREACHABLE;
    }
    return uct_ep_create(&params, ep_p);
}

ucs_status_t ucp_st_trig_dev_address(ucp_st_worker_h worker, void *dev_addr,
                                     void *iface_addr)
{
    ucs_status_t status;

    status = uct_iface_get_device_address(worker->trig.iface, dev_addr);
    if (status != UCS_OK) {
        return status;
    }
    return uct_iface_get_address(worker->trig.iface, iface_addr);
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
