/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_rail.c - one NIC of the trig lane.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig_rail.h"
#include "core/st_log.h"
#include "trig/st_trig_dev.h"
#include "core/st_worker.h"

#include <ucs_gstream_memory.h>

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/** What a free piece holds. */
typedef struct ucp_st_trig_free {
    struct ucp_st_trig_free *next;
    ucp_st_trig_slab_t      *slab;
} ucp_st_trig_free_t;

static ucs_status_t ucp_st_trig_slab_add(ucp_st_trig_rail_t *rail)
{
    ucp_st_trig_slab_t *slab = calloc(1, sizeof(*slab));
    uint8_t packed[UCT_TRIG_RKEY_PACKED_LEN];
    ucp_st_trig_free_t *piece;
    ucs_status_t status;
    size_t offset;

    if (slab == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    slab->block = ucs_gstream_memory_get(UCP_ST_TRIG_PAGE);
    if (slab->block == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err_slab;
    }
    memset(slab->block, 0, UCP_ST_TRIG_PAGE);
    status = uct_trig_mem_reg(rail->iface, slab->block, UCP_ST_TRIG_PAGE, NULL,
                              &slab->mem);
    if (status != UCS_OK) {
        goto err_block;
    }
    uct_trig_mem_pack(slab->mem, packed);
    status = uct_trig_rkey_unpack(packed, sizeof(packed), &slab->rkey);
    if (status != UCS_OK) {
        goto err_mem;
    }
    for (offset = 0; offset < UCP_ST_TRIG_PAGE; offset += UCP_ST_TRIG_PIECE) {
        piece       = UCS_PTR_BYTE_OFFSET(slab->block, offset);
        piece->next = rail->free;
        piece->slab = slab;
        rail->free  = piece;
    }
    slab->next  = rail->slabs;
    rail->slabs = slab;
    return UCS_OK;

err_mem:
    (void)uct_trig_mem_dereg(slab->mem);
err_block:
    ucs_gstream_memory_put(slab->block, UCP_ST_TRIG_PAGE);
err_slab:
    free(slab);
    return status;
}

ucs_status_t ucp_st_trig_piece_get(ucp_st_trig_rail_t *rail,
                                   ucp_st_trig_piece_t *piece)
{
    ucs_status_t status;

    if (rail->free == NULL) {
        status = ucp_st_trig_slab_add(rail);
        if (status != UCS_OK) {
            return status;
        }
    }
    piece->address = rail->free;
    piece->slab    = rail->free->slab;
    rail->free     = rail->free->next;
    return UCS_OK;
}

void ucp_st_trig_piece_keep(ucp_st_trig_piece_t *piece)
{
    piece->slab->is_kept = 1;
    piece->slab          = NULL;
}

void ucp_st_trig_piece_put(ucp_st_trig_rail_t *rail,
                           const ucp_st_trig_piece_t *piece)
{
    ucp_st_trig_free_t *free_piece = piece->address;

    if (piece->slab != NULL) {
        free_piece->next = rail->free;
        free_piece->slab = piece->slab;
        rail->free       = free_piece;
    }
}

size_t ucp_st_trig_rail_address_length(const ucp_st_trig_rail_t *rail)
{
    return rail->iface_attr.device_addr_len + rail->iface_attr.iface_addr_len;
}

ucs_status_t ucp_st_trig_rail_address_pack(const ucp_st_trig_rail_t *rail,
                                           void *buffer)
{
    ucs_status_t status;

    status = uct_iface_get_device_address(rail->iface, buffer);
    if (status != UCS_OK) {
        return status;
    }
    return uct_iface_get_address(rail->iface,
                                 UCS_PTR_BYTE_OFFSET(
                                         buffer,
                                         rail->iface_attr.device_addr_len));
}

ucs_status_t ucp_st_trig_rail_ep_create(const ucp_st_trig_rail_t *rail,
                                        const void *address, uct_ep_h *ep_p)
{
    const void *iface_addr = UCS_PTR_BYTE_OFFSET(
            address, rail->iface_attr.device_addr_len);
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = rail->iface,
        .dev_addr   = address,
        .iface_addr = iface_addr
    };

    if (!uct_iface_is_reachable(rail->iface, address, iface_addr)) {
        return UCS_ERR_UNREACHABLE;
    }
    return uct_ep_create(&params, ep_p);
}

static ucs_status_t ucp_st_trig_rail_connect_self(ucp_st_trig_rail_t *rail)
{
    uint8_t address[ucp_st_trig_rail_address_length(rail)];
    ucs_status_t status = ucp_st_trig_rail_address_pack(rail, address);

    if (status != UCS_OK) {
        return status;
    }
    return ucp_st_trig_rail_ep_create(rail, address, &rail->self_ep);
}

ucs_status_t ucp_st_trig_rail_open(ucp_st_trig_rail_t *rail,
                                   ucp_st_worker_h worker, uct_md_h md,
                                   const uct_tl_resource_desc_t *tl)
{
    uct_iface_params_t params = {
        .field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                UCT_IFACE_PARAM_FIELD_DEVICE |
                                UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                                UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG,
        .open_mode            = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device.tl_name  = tl->tl_name,
        .mode.device.dev_name = tl->dev_name,
        .err_handler          = ucp_st_trig_peer_err_handler,
        .err_handler_arg      = worker
    };
    uct_iface_config_t *config;
    ucs_status_t status;

    rail->worker = worker;
    rail->md     = md;
    status = uct_md_iface_config_read(md, tl->tl_name, NULL, NULL, &config);
    if (status != UCS_OK) {
        goto err;
    }
    status = uct_iface_open(md, ucp_st_trig_dev(worker)->uct_worker, &params,
                            config, &rail->iface);
    uct_config_release(config);
    if (status != UCS_OK) {
        goto err;
    }
    status = uct_iface_query(rail->iface, &rail->iface_attr);
    if (status == UCS_OK) {
        status = uct_trig_iface_query(rail->iface, &rail->attr);
    }
    if (status != UCS_OK) {
        ucs_error("lane 'trig': failed to query the device: %s",
                  ucs_status_string(status));
        goto err_iface;
    }
    if (rail->attr.share_entries < UCP_ST_TRIG_ENTRIES_MIN) {
        ucp_st_trig_dev(worker)->few = rail->attr;
        status                       = UCS_ERR_NO_RESOURCE;
        goto err_iface;
    }
    uct_iface_progress_enable(rail->iface, UCT_PROGRESS_SEND);
    status = ucp_st_trig_rail_connect_self(rail);
    if (status != UCS_OK) {
        ucs_error("lane 'trig': device %s cannot reach itself: %s",
                  rail->attr.device, ucs_status_string(status));
        goto err_iface;
    }
    return UCS_OK;

err_iface:
    uct_iface_close(rail->iface);
err:
    return status;
}

void ucp_st_trig_rail_update(ucp_st_trig_rail_t *rail, unsigned num_rails)
{
    uct_trig_iface_attr_t attr;

    if (uct_trig_iface_query(rail->iface, &attr) == UCS_OK) {
        rail->max_ahead = (attr.max_entries - (attr.max_entries / 4)) /
                          num_rails;
    }
}

void ucp_st_trig_rail_close(ucp_st_trig_rail_t *rail)
{
    ucp_st_trig_slab_t *slab;

    while ((slab = rail->slabs) != NULL) {
        rail->slabs = slab->next;
        (void)uct_trig_mem_dereg(slab->mem);
        if (!slab->is_kept) {
            ucs_gstream_memory_put(slab->block, UCP_ST_TRIG_PAGE);
        }
        free(slab);
    }
    free(rail->cancel);
    uct_ep_destroy(rail->self_ep);
    uct_iface_close(rail->iface);
    uct_md_close(rail->md);
}

int ucp_st_trig_rail_is_busy(const ucp_st_trig_rail_t *rail)
{
    return rail->used > 0;
}
