/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_direct.c - one-sided operations on lane direct: the stream copies
 * itself, and an operation has ended when its command has run.
 *
 * Memory of another process is reached if ucp_st_mem_alloc() allocated it: its
 * file is mapped here. Memory of this process is always reached.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "rma/st_rma.h"

#include <ucs/sys/math.h>

#include <string.h>

/** The lane's part of a key. */
typedef struct ucp_st_rma_direct_blob {
    ucp_st_direct_file_t file;
    uint64_t             offset;      /**< Of the memory there */
    uint8_t              is_mappable; /**< It lies in `file` */
    uint8_t              is_looked;   /**< Its owner finds signals there without
                                           a notification */
    uint8_t              reserved[6];
} __attribute__((packed)) ucp_st_rma_direct_blob_t;

_Static_assert(sizeof(ucp_st_rma_direct_blob_t) == 40, "wire format");
_Static_assert(sizeof(ucp_st_rma_direct_blob_t) <= UCP_ST_RKEY_MAX_BLOB,
               "room in a key");

/* Where a byte of a peer's memory is here */
static uint8_t *ucp_st_rma_direct_far(const ucp_st_rkey_t *rkey,
                                      uint64_t offset)
{
    return (uint8_t*)rkey->place.address + offset;
}

static ucs_status_t ucp_st_rma_direct_reg(ucp_st_memh_t *mem)
{
    return UCS_OK; /* without a map the own process still reaches it */
}

static void ucp_st_rma_direct_dereg(ucp_st_memh_t *mem)
{
}

static size_t ucp_st_rma_direct_pack(const ucp_st_memh_t *mem, void *buffer)
{
    const ucp_st_rma_dev_t *dev    = ucp_st_rma_dev(mem->worker);
    const ucp_st_direct_map_t *map = mem->place.map;
    ucp_st_rma_direct_blob_t blob  = {
        .is_mappable = (map != NULL),
        .is_looked   = !!__atomic_load_n(&dev->untold, __ATOMIC_RELAXED)
    };

    if (map != NULL) {
        blob.file   = map->file;
        blob.offset = mem->address - (uint8_t*)map->address;
    }
    memcpy(buffer, &blob, sizeof(blob));
    return sizeof(blob);
}

static ucs_status_t ucp_st_rma_direct_unpack(ucp_st_rkey_t *rkey,
                                             const void *buffer, size_t length)
{
    ucp_st_rma_place_t *place = &rkey->place;
    ucp_st_rma_direct_blob_t blob;
    ucs_status_t status;

    if (length != sizeof(blob)) {
        return UCS_ERR_INVALID_ADDR;
    }
    memcpy(&blob, buffer, sizeof(blob));
    rkey->is_looked = !!blob.is_looked;
    place->length   = rkey->length;
    if (rkey->peer->process.is_near) {
        place->address = (const void*)(uintptr_t)rkey->remote;
        place->map     = ucp_st_direct_map_find(place->address, place->length);
        return UCS_OK;
    }
    if (!blob.is_mappable) {
        return UCS_ERR_UNREACHABLE;
    }
    if (blob.file.pid != rkey->peer->process.pid) {
        return UCS_ERR_INVALID_ADDR;
    }
    status = ucp_st_direct_map_open(&blob.file, &place->map);
    if (status != UCS_OK) {
        return status;
    }
    if (!ucp_st_rma_is_inside(blob.offset, rkey->length, place->map->length)) {
        ucp_st_direct_map_put(place->map);
        place->map = NULL;
        return UCS_ERR_INVALID_ADDR;
    }
    place->address = UCS_PTR_BYTE_OFFSET(place->map->address, blob.offset);
    return UCS_OK;
}

static void ucp_st_rma_direct_release(ucp_st_rkey_t *rkey)
{
    ucp_st_direct_map_put(rkey->place.map);
}

/* Runs on the stream, on a copy of the operation */
static void ucp_st_rma_direct_func(void *arg)
{
    const ucp_st_rma_t *rma = arg;
    uint8_t *far;

    if (ucp_st_queue_status(rma->queue) != UCS_OK) {
        goto out;
    }
    if (rma->length > 0) {
        far = ucp_st_rma_direct_far(rma->rkey, rma->offset);
        if (rma->type == UCP_ST_RMA_PUT) {
            memcpy(far, rma->buffer, rma->length);
        } else {
            memcpy(rma->buffer, far, rma->length);
        }
    }
    if (rma->signal != NULL) {
        far = ucp_st_rma_direct_far(rma->signal, rma->signal_offset);
        ucp_st_rma_signal((uint64_t*)far, rma->signal_op, rma->signal_value);
        ucp_st_direct_rma_notify(rma->peer);
    }
out:
    ucp_st_rma_drop(rma);
    ucp_st_rma_ended(rma->queue, UCP_ST_LANE_DIRECT);
}

static ucs_status_t ucp_st_rma_direct_start(const ucp_st_rma_t *rma,
                                            ucp_st_rma_flow_t *flow,
                                            ucs_gstream_cmd_t *cmd)
{
    (void)ucp_st_queue_add_func(rma->queue, ucp_st_rma_direct_func, (void*)rma,
                                sizeof(*rma), cmd);
    return UCS_OK;
}

static void ucp_st_rma_direct_undo(const ucp_st_rma_t *rma,
                                   ucp_st_rma_flow_t *flow)
{
}

const ucp_st_rma_lane_ops_t ucp_st_rma_direct_ops = {
    .id         = UCP_ST_LANE_DIRECT,
    .is_orderly = 1,
    .reg        = ucp_st_rma_direct_reg,
    .dereg      = ucp_st_rma_direct_dereg,
    .pack       = ucp_st_rma_direct_pack,
    .unpack     = ucp_st_rma_direct_unpack,
    .release    = ucp_st_rma_direct_release,
    .prepare    = ucp_st_rma_prepare_none,
    .start      = ucp_st_rma_direct_start,
    .undo       = ucp_st_rma_direct_undo,
    .wait       = ucp_st_rma_wait_word
};
