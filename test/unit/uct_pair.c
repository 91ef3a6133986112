/* SPDX-License-Identifier: BSD-3-Clause */
/* uct_pair.c - two interfaces of the transport in one process. */
#include "uct_pair.h"

#include <CUnit/CUnit.h>

#include <ucs/async/async_fwd.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How often one entry is asked for */
#define UCT_PAIR_HOLD_TRIES 100



uct_component_h uct_pair_find_component(void)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME
    };
    uct_component_h found     = NULL;
    uct_component_h *components;
    unsigned num_components, i;

    if (uct_query_components(&components, &num_components) != UCS_OK) {
        return NULL;
    }
    for (i = 0; i < num_components; ++i) {
        if ((uct_component_query(components[i], &attr) == UCS_OK) &&
            !strcmp(attr.name, "cxi_trig")) {
            found = components[i];
        }
    }
    uct_release_component_list(components);
    return found;
}

unsigned uct_pair_count_devices(void)
{
    uct_component_attr_t attr = {
        .field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT
    };
    uct_component_h component = uct_pair_find_component();

    CU_ASSERT_FATAL(component != NULL);
    CU_ASSERT_FATAL(uct_component_query(component, &attr) == UCS_OK);
    return attr.md_resource_count;
}

static ucs_status_t uct_pair_on_error(void *arg, uct_ep_h ep,
                                      ucs_status_t status)
{
    uct_pair_side_t *side = arg;

    ++side->errors;
    side->error = status;
    return UCS_OK;
}

const char *uct_pair_device(void)
{
    const char *device = getenv("ST_DEVICE");

    return (device == NULL) ? "cxiemu0" : device;
}

ucs_status_t uct_pair_set(void *config, const char *name, const char *value)
{
    ucs_status_t status = uct_config_modify(config, name, value);
    char full_name[64];

    if (status == UCS_ERR_NO_ELEM) {
        snprintf(full_name, sizeof(full_name), "CXI_TRIG_%s", name);
        status = uct_config_modify(config, full_name, value);
    }
    return status;
}

static ucs_status_t uct_pair_open_md(uct_pair_t *pair, uct_pair_side_t *side)
{
    uct_md_config_t *config;
    ucs_status_t status;

    status = uct_md_config_read(pair->component, NULL, NULL, &config);
    if (status == UCS_OK) {
        /* What is deregistered is to be gone; versions of UCX that cache by
         * themselves have no such setting */
        (void)uct_pair_set(config, "RCACHE", "n");
        status = uct_md_open(pair->component, uct_pair_device(), config,
                             &side->md);
        uct_config_release(config);
    }
    return status;
}

static ucs_status_t uct_pair_open_iface(uct_pair_t *pair, uct_pair_side_t *side,
                                        const char *const *settings)
{
    uct_iface_params_t params = {
        .field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                UCT_IFACE_PARAM_FIELD_DEVICE |
                                UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                                UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = "cxi_trig",
        .mode.device.dev_name = uct_pair_device(),
        .err_handler          = uct_pair_on_error,
        .err_handler_arg      = side
    };
    uct_iface_config_t *config;
    ucs_status_t status;

    status = uct_md_iface_config_read(side->md, "cxi_trig", NULL, NULL,
                                      &config);
    while ((status == UCS_OK) && (settings != NULL) && (settings[0] != NULL)) {
        status    = uct_pair_set(config, settings[0], settings[1]);
        settings += 2;
    }
    if (status == UCS_OK) {
        status = uct_iface_open(side->md, pair->worker, &params, config,
                                &side->iface);
        uct_config_release(config);
    }
    return status;
}

static ucs_status_t uct_pair_open_side(uct_pair_t *pair, uct_pair_side_t *side,
                                       const char *const *settings)
{
    ucs_status_t status;

    status = uct_pair_open_md(pair, side);
    if (status == UCS_OK) {
        status = uct_pair_open_iface(pair, side, settings);
    }
    if (status != UCS_OK) {
        return status;
    }

    status = uct_iface_query(side->iface, &side->attr);
    if (status != UCS_OK) {
        return status;
    }

    side->dev_addr   = malloc(side->attr.device_addr_len);
    side->iface_addr = malloc(side->attr.iface_addr_len);
    status           = uct_iface_get_device_address(side->iface,
                                                    side->dev_addr);
    return (status != UCS_OK) ? status :
           uct_iface_get_address(side->iface, side->iface_addr);
}

ucs_status_t uct_pair_connect(uct_iface_h iface,
                              const uct_device_addr_t *dev_addr,
                              const uct_iface_addr_t *iface_addr,
                              uct_ep_h *ep_p)
{
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = iface,
        .dev_addr   = dev_addr,
        .iface_addr = iface_addr
    };

    return uct_ep_create(&params, ep_p);
}

static ucs_status_t uct_pair_connect_side(uct_pair_side_t *side,
                                          const uct_pair_side_t *other)
{
    ucs_status_t status;

    status = uct_pair_connect(side->iface, side->dev_addr, side->iface_addr,
                              &side->self);
    return (status != UCS_OK) ? status :
           uct_pair_connect(side->iface, other->dev_addr, other->iface_addr,
                            &side->peer);
}

static void uct_pair_enable(uct_pair_side_t *side)
{
    uct_iface_progress_enable(side->iface,
                              UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
}

static ucs_status_t uct_pair_open(uct_pair_t *pair, const char *const *settings)
{
    ucs_status_t status;

    status = ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK,
                                      &pair->async);
    if (status == UCS_OK) {
        status = uct_worker_create(pair->async, UCS_THREAD_MODE_SINGLE,
                                   &pair->worker);
    }
    if (status == UCS_OK) {
        status = uct_pair_open_side(pair, &pair->a, settings);
    }
    if (status == UCS_OK) {
        status = uct_pair_open_side(pair, &pair->b, settings);
    }
    if (status == UCS_OK) {
        status = uct_pair_connect_side(&pair->a, &pair->b);
    }
    if (status == UCS_OK) {
        status = uct_pair_connect_side(&pair->b, &pair->a);
    }
    if (status == UCS_OK) {
        uct_pair_enable(&pair->a);
        uct_pair_enable(&pair->b);
    }
    return status;
}

int uct_pair_create(uct_pair_t *pair, const char *const *settings)
{
    char reason[UCT_TRIG_REASON_MAX];
    ucs_status_t status;

    memset(pair, 0, sizeof(*pair));
    pair->component = uct_pair_find_component();
    if (pair->component == NULL) {
        /* The call has the library linked to programs that use UCT alone */
        uct_trig_off_reason(reason, sizeof(reason));
        printf("transport cxi_trig is not there: %s\n", reason);
        return -1;
    }

    status = uct_pair_open(pair, settings);
    if (status != UCS_OK) {
        printf("cannot open a pair: %s\n", ucs_status_string(status));
        uct_pair_destroy(pair);
        return -1;
    }
    return 0;
}

ucs_status_t uct_pair_reopen_idle(uct_pair_t *pair)
{
    ucs_status_t status;

    uct_pair_close_side(&pair->b);
    status = uct_pair_open_side(pair, &pair->b, NULL);
    if (status != UCS_OK) {
        return status;
    }

    uct_ep_destroy(pair->a.peer);
    pair->a.peer = NULL;
    return uct_pair_connect(pair->a.iface, pair->b.dev_addr,
                            pair->b.iface_addr, &pair->a.peer);
}

static void uct_pair_destroy_ep(uct_ep_h *ep_p)
{
    if (*ep_p != NULL) {
        uct_ep_destroy(*ep_p);
        *ep_p = NULL;
    }
}

void uct_pair_close_side(uct_pair_side_t *side)
{
    uct_pair_destroy_ep(&side->self);
    uct_pair_destroy_ep(&side->peer);
    if (side->iface != NULL) {
        uct_iface_close(side->iface);
    }
    if (side->md != NULL) {
        uct_md_close(side->md);
    }
    free(side->iface_addr);
    free(side->dev_addr);
    memset(side, 0, sizeof(*side));
}

void uct_pair_destroy(uct_pair_t *pair)
{
    uct_pair_close_side(&pair->a);
    uct_pair_close_side(&pair->b);
    if (pair->worker != NULL) {
        uct_worker_destroy(pair->worker);
    }
    if (pair->async != NULL) {
        ucs_async_context_destroy(pair->async);
    }
}

void uct_pair_progress(uct_pair_t *pair)
{
    uct_worker_progress(pair->worker);
}

static ucs_status_t uct_inbox_keep(void *arg, void *data, size_t length,
                                   unsigned flags)
{
    uct_inbox_t *inbox = arg;

    inbox->length = length;
    memcpy(inbox->data, data, length);
    ++inbox->count;
    return UCS_OK;
}

void uct_inbox_open(uct_inbox_t *inbox, uct_iface_h iface, uint8_t id)
{
    inbox->count = 0;
    CU_ASSERT_FATAL(uct_iface_set_am_handler(iface, id, uct_inbox_keep, inbox,
                                             0) == UCS_OK);
}

void uct_pair_wait(uct_pair_t *pair, const volatile uint64_t *value,
                   uint64_t target)
{
    while (__atomic_load_n(value, __ATOMIC_ACQUIRE) < target) {
        uct_pair_progress(pair);
    }
}

ucs_status_t uct_pair_flush(uct_pair_t *pair, uct_ep_h ep)
{
    ucs_status_t status;

    do {
        status = uct_ep_flush(ep, 0, NULL);
        uct_pair_progress(pair);
    } while ((status == UCS_INPROGRESS) || (status == UCS_ERR_NO_RESOURCE));
    return status;
}

static void uct_pair_hold_done(void *arg, ucs_status_t status)
{
    uct_pair_hold_t *hold = arg;

    CU_ASSERT(status == UCS_OK);
    ++hold->done;
}

ucs_status_t uct_pair_hold(uct_pair_t *pair, unsigned count,
                           uct_pair_hold_t *hold)
{
    uct_trig_deferred_t deferred = {
        .threshold = 1,
        .done      = uct_pair_hold_done,
        .arg       = hold
    };
    uct_trig_atomic_t add        = {.value = 1};
    ucs_status_t status          = UCS_OK;
    uint8_t key[UCT_TRIG_RKEY_PACKED_LEN];
    unsigned tries               = 0;

    memset(hold, 0, sizeof(*hold));
    if (count == 0) {
        return UCS_OK;
    }
    CU_ASSERT_FATAL(uct_trig_cntr_create(pair->a.iface, &hold->cntr) == UCS_OK);
    CU_ASSERT_FATAL(uct_trig_mem_reg(pair->a.iface, &hold->word,
                                     sizeof(hold->word), NULL, &hold->mem) ==
                    UCS_OK);
    uct_trig_mem_pack(hold->mem, key);
    CU_ASSERT_FATAL(uct_trig_rkey_unpack(key, sizeof(key), &add.rkey) ==
                    UCS_OK);
    deferred.trigger = hold->cntr;
    add.remote_addr  = add.rkey.address;
    while ((hold->posted < count) && (tries < UCT_PAIR_HOLD_TRIES)) {
        /* The provider may refuse one for a moment */
        status        = uct_trig_ep_atomic_add64(pair->a.self, &add, &deferred);
        hold->posted += (status == UCS_OK);
        tries         = (status == UCS_OK) ? 0 : (tries + 1);
    }
    if (status != UCS_OK) {
        uct_pair_unhold(pair, hold);
    }
    return status;
}

void uct_pair_unhold(uct_pair_t *pair, uct_pair_hold_t *hold)
{
    if (hold->cntr == NULL) {
        return;
    }
    CU_ASSERT(uct_trig_cntr_add(hold->cntr, 1) == UCS_OK);
    uct_pair_wait(pair, &hold->done, hold->posted);
    CU_ASSERT(hold->word == hold->posted);
    CU_ASSERT(uct_trig_cntr_destroy(hold->cntr) == UCS_OK);
    CU_ASSERT(uct_trig_mem_dereg(hold->mem) == UCS_OK);
    hold->cntr = NULL;
}
