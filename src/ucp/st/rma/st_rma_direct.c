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
    uint8_t              reserved[7];
} __attribute__((packed)) ucp_st_rma_direct_blob_t;

_Static_assert(sizeof(ucp_st_rma_direct_blob_t) == 40, "wire format");
_Static_assert(sizeof(ucp_st_rma_direct_blob_t) <= UCP_ST_RKEY_MAX_BLOB,
               "room in a key");

static ucp_st_direct_mem_t *ucp_st_rma_direct_mem(const ucp_st_memh_t *mem)
{
    return mem->priv[UCP_ST_PRIV_LANES + UCP_ST_LANE_DIRECT];
}

static ucp_st_direct_rkey_t *ucp_st_rma_direct_rkey(const ucp_st_rkey_t *rkey)
{
    return rkey->priv[UCP_ST_PRIV_LANES + UCP_ST_LANE_DIRECT];
}

static ucs_status_t ucp_st_rma_direct_reg(ucp_st_memh_t *mem)
{
    ucp_st_rma_direct_mem(mem)->map = ucp_st_direct_map_find(mem->address,
                                                             mem->length);
    return UCS_OK; /* without a map the own process still reaches it */
}

static void ucp_st_rma_direct_dereg(ucp_st_memh_t *mem)
{
    ucp_st_direct_map_put(ucp_st_rma_direct_mem(mem)->map);
}

static size_t ucp_st_rma_direct_pack(const ucp_st_memh_t *mem, void *buffer)
{
    const ucp_st_direct_map_t *map = ucp_st_rma_direct_mem(mem)->map;
    ucp_st_rma_direct_blob_t blob  = {.is_mappable = (map != NULL)};

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
    ucp_st_direct_rkey_t *direct = ucp_st_rma_direct_rkey(rkey);
    ucp_st_rma_direct_blob_t blob;
    ucs_status_t status;

    if (length != sizeof(blob)) {
        return UCS_ERR_INVALID_ADDR;
    }
    memcpy(&blob, buffer, sizeof(blob));
    if (rkey->peer->process.is_near) {
        direct->far = (uint8_t*)(uintptr_t)rkey->remote;
        return UCS_OK;
    }
    if (!blob.is_mappable) {
        return UCS_ERR_UNREACHABLE;
    }
    if (blob.file.pid != rkey->peer->process.pid) {
        return UCS_ERR_INVALID_ADDR;
    }
    status = ucp_st_direct_map_open(&blob.file, &direct->map);
    if (status != UCS_OK) {
        return status;
    }
    if (!ucp_st_rma_is_inside(blob.offset, rkey->length, direct->map->length)) {
        ucp_st_direct_map_put(direct->map);
        return UCS_ERR_INVALID_ADDR;
    }
    direct->far = (uint8_t*)direct->map->address + blob.offset;
    return UCS_OK;
}

static void ucp_st_rma_direct_release(ucp_st_rkey_t *rkey)
{
    ucp_st_direct_map_put(ucp_st_rma_direct_rkey(rkey)->map);
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
        far = ucp_st_rma_direct_rkey(rma->rkey)->far + rma->offset;
        if (rma->type == UCP_ST_RMA_PUT) {
            memcpy(far, rma->buffer, rma->length);
        } else {
            memcpy(rma->buffer, far, rma->length);
        }
    }
    if (rma->signal != NULL) {
        far = ucp_st_rma_direct_rkey(rma->signal)->far + rma->signal_offset;
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
