/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_mem.c - registered memory and its keys.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "rma/st_rma.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_stage.h"
#include "core/st_worker.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/** A key that was parsed. */
typedef struct ucp_st_rkey_parts {
    ucp_st_rkey_hdr_t           hdr;
    const ucp_st_address_lane_t *lanes[UCP_ST_LANE_LAST]; /* in the key, or
                                                             NULL */
} ucp_st_rkey_parts_t;

const ucp_st_rma_lane_ops_t *ucp_st_rma_lane(ucp_st_lane_t id)
{
    static const ucp_st_rma_lane_ops_t *const table[UCP_ST_LANE_LAST] = {
        [UCP_ST_LANE_DIRECT] = &ucp_st_rma_direct_ops,
        [UCP_ST_LANE_HOST]   = &ucp_st_rma_host_ops,
        [UCP_ST_LANE_TRIG]   = &ucp_st_rma_trig_ops
    };

    return table[id];
}

/* Register memory on each lane that can serve it. The lock is held. */
static ucs_status_t ucp_st_mem_reg_lanes(ucp_st_memh_t *mem)
{
    ucp_st_worker_h worker = mem->worker;
    ucs_status_t result    = UCS_ERR_NO_RESOURCE;
    const ucp_st_rma_lane_ops_t *lane;
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        lane   = ucp_st_rma_lane(worker->lanes[i]->id);
        status = (lane->reaches_devices || mem->memory.is_hosts) ?
                 lane->reg(mem) : UCS_ERR_UNSUPPORTED;
        if (status == UCS_OK) {
            mem->lanes |= UCS_BIT(lane->id);
        } else {
            ucs_diag("lane %s does not serve %zu bytes of memory at %p: %s",
                     worker->lanes[i]->name, mem->length, mem->address,
                     ucs_status_string(status));
            result = status;
        }
    }
    return (mem->lanes != 0) ? UCS_OK : result;
}

static void ucp_st_mem_complain(const ucp_st_memh_t *mem, ucs_status_t status)
{
    if (!mem->memory.is_hosts) {
        ucs_error("memory %p is of device %d of %s: one-sided operations need "
                  "memory of the host, or lane 'trig' with NICs that reach the "
                  "device's", mem->address, mem->memory.device,
                  ucs_gstream_type_name(mem->memory.type));
    } else {
        ucs_error("no lane serves %zu bytes of memory at %p: %s", mem->length,
                  mem->address, ucs_status_string(status));
    }
}

ucs_status_t ucp_st_mem_reg(ucp_st_worker_h worker, void *address,
                            size_t length, ucp_st_mem_h *memh_p)
{
    ucp_st_rma_dev_t *dev;
    ucp_st_memh_t *mem;
    ucs_status_t status;
    khiter_t iter;
    int ret;

    status = ucp_st_check_call((worker != NULL) && (address != NULL) &&
                               (length > 0) && (memh_p != NULL));
    if (status != UCS_OK) {
        return status;
    }
    if (length > (UINTPTR_MAX - (uintptr_t)address)) {
        ucs_error("%zu bytes of memory at %p wrap around", length, address);
        return UCS_ERR_INVALID_PARAM;
    }
    mem = ucp_st_object_alloc(UCP_ST_OBJECT_MEM, sizeof(*mem),
                              offsetof(ucp_st_memh_t, priv));
    if (mem == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    mem->worker  = worker;
    mem->address = address;
    mem->length  = length;
    ucp_st_stage_query(address, length, &mem->memory);
    mem->place   = (ucp_st_rma_place_t){
        .map     = ucp_st_direct_map_find(address, length),
        .address = address,
        .length  = length
    };
    dev          = ucp_st_rma_dev(worker);
    ucp_st_worker_lock(worker);
    mem->id = ++dev->next_id;
    iter    = kh_put(ucp_st_mems, &dev->mems, mem->id, &ret);
    if (ret < 0) {
        status = UCS_ERR_NO_MEMORY;
        goto err;
    }
    kh_value(&dev->mems, iter) = mem;
    status                     = ucp_st_mem_reg_lanes(mem);
    if (status != UCS_OK) {
        ucp_st_mem_complain(mem, status);
        goto err_mems;
    }
    ucp_st_worker_unlock(worker);
    *memh_p = mem;
    return UCS_OK;

err_mems:
    kh_del(ucp_st_mems, &dev->mems, iter);
err:
    ucp_st_worker_unlock(worker);
    ucp_st_direct_map_put(mem->place.map);
    free(mem);
    return status;
}

ucs_status_t ucp_st_mem_dereg(ucp_st_mem_h memh)
{
    ucs_status_t status = ucp_st_check_call(memh != NULL);
    ucp_st_worker_h worker;
    ucp_st_rma_dev_t *dev;
    int is_held;
    unsigned i;

    if (status != UCS_OK) {
        return status;
    }
    worker = memh->worker;
    dev    = ucp_st_rma_dev(worker);
    ucp_st_rma_reap(worker); /* complete operations may still hold it */
    ucp_st_worker_lock(worker);
    is_held = ucp_st_rma_is_held(&memh->refs);
    if (!is_held) {
        kh_del(ucp_st_mems, &dev->mems,
               kh_get(ucp_st_mems, &dev->mems, memh->id));
        for (i = 0; i < worker->num_lanes; ++i) {
            if (memh->lanes & UCS_BIT(worker->lanes[i]->id)) {
                ucp_st_rma_lane(worker->lanes[i]->id)->dereg(memh);
            }
        }
    }
    ucp_st_worker_unlock(worker);
    if (is_held) {
        return UCS_ERR_BUSY;
    }
    ucp_st_direct_map_put(memh->place.map);
    free(memh);
    return UCS_OK;
}

ucp_st_memh_t *ucp_st_rma_mem_get(ucp_st_worker_h worker, unsigned lanes,
                                  uint64_t id, uint64_t offset, uint64_t length)
{
    khash_t(ucp_st_mems) *mems = &ucp_st_rma_dev(worker)->mems;
    khiter_t iter              = kh_get(ucp_st_mems, mems, id);
    ucp_st_memh_t *mem;

    if (iter == kh_end(mems)) {
        return NULL;
    }
    mem = kh_value(mems, iter);
    if (!(mem->lanes & lanes) ||
        !ucp_st_rma_is_inside(offset, length, mem->length)) {
        return NULL;
    }
    ucp_st_rma_hold(&mem->refs);
    return mem;
}

ucs_status_t ucp_st_rkey_pack(ucp_st_mem_h memh, void **buffer_p,
                              size_t *length_p)
{
    ucp_st_worker_h worker;
    ucp_st_rkey_hdr_t *hdr;
    ucp_st_address_lane_t *head;
    ucs_status_t status;
    ucp_st_lane_t lane;
    unsigned i;

    status = ucp_st_check_call((memh != NULL) && (buffer_p != NULL) &&
                               (length_p != NULL));
    if (status != UCS_OK) {
        return status;
    }
    hdr = calloc(1, sizeof(*hdr) + UCP_ST_LANE_LAST *
                    (sizeof(*head) + UCP_ST_RKEY_MAX_BLOB));
    if (hdr == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    worker       = memh->worker;
    ucp_st_rma_look_for_kernels(worker);
    hdr->magic   = UCP_ST_RKEY_MAGIC;
    hdr->version = UCP_ST_PROTO_VERSION;
    hdr->uuid    = worker->uuid;
    hdr->mem_id  = memh->id;
    hdr->address = (uintptr_t)memh->address;
    hdr->length  = memh->length;
    head         = (ucp_st_address_lane_t*)(hdr + 1);
    ucp_st_worker_lock(worker);
    for (i = 0; i < worker->num_lanes; ++i) {
        lane = worker->lanes[i]->id;
        if (memh->lanes & UCS_BIT(lane)) {
            ++hdr->num_lanes;
            head->lane   = lane;
            head->length = ucp_st_rma_lane(lane)->pack(memh, head + 1);
            head         = UCS_PTR_BYTE_OFFSET(head + 1, head->length);
        }
    }
    ucp_st_worker_unlock(worker);
    *buffer_p = hdr;
    *length_p = UCS_PTR_BYTE_DIFF(hdr, head);
    return UCS_OK;
}

void ucp_st_rkey_buffer_release(void *buffer)
{
    free(buffer);
}

static ucs_status_t ucp_st_rkey_parse(const void *buffer, size_t length,
                                      ucp_st_rkey_parts_t *parts)
{
    const uint8_t *end = (const uint8_t*)buffer + length;
    const uint8_t *p   = (const uint8_t*)buffer + sizeof(parts->hdr);
    const ucp_st_address_lane_t *head;
    unsigned i;

    memset(parts, 0, sizeof(*parts));
    if (length < sizeof(parts->hdr)) {
        ucs_error("key of %zu bytes is truncated", length);
        return UCS_ERR_INVALID_ADDR;
    }
    memcpy(&parts->hdr, buffer, sizeof(parts->hdr));
    if (parts->hdr.magic != UCP_ST_RKEY_MAGIC) {
        ucs_error("not a key of registered memory");
        return UCS_ERR_INVALID_ADDR;
    }
    if (parts->hdr.version != UCP_ST_PROTO_VERSION) {
        ucs_error("the key is of version %d of the st protocol, this library "
                  "speaks version %d", parts->hdr.version,
                  UCP_ST_PROTO_VERSION);
        return UCS_ERR_UNSUPPORTED;
    }
    for (i = 0; i < parts->hdr.num_lanes; ++i) {
        head = ucp_st_address_next_lane(&p, end);
        if (head == NULL) {
            ucs_error("key is truncated in lane %u of %u", i + 1,
                      parts->hdr.num_lanes);
            return UCS_ERR_INVALID_ADDR;
        }
        if (head->lane < UCP_ST_LANE_LAST) { /* one that is known here */
            parts->lanes[head->lane] = head;
        }
    }
    return UCS_OK;
}

/* Find the first lane that serves the key; the lock is held */
static ucs_status_t ucp_st_rkey_open(ucp_st_rkey_t *rkey,
                                     const ucp_st_rkey_parts_t *parts)
{
    ucp_st_worker_h worker = rkey->peer->worker;
    const ucp_st_address_lane_t *head;
    const ucp_st_rma_lane_ops_t *ops;
    ucs_status_t status;
    const char *reason;
    unsigned i;

    if (rkey->peer->status != UCS_OK) {
        return rkey->peer->status;
    }
    for (i = 0; i < worker->num_lanes; ++i) {
        ops  = ucp_st_rma_lane(worker->lanes[i]->id);
        head = parts->lanes[worker->lanes[i]->id];
        if (head == NULL) {
            reason = "it does not serve that memory there";
        } else if (!(rkey->peer->lanes & UCS_BIT(ops->id))) {
            reason = "it does not reach the peer";
        } else {
            rkey->way = ops->id;
            status    = ops->unpack(rkey, head + 1, head->length);
            if (status == UCS_OK) {
                rkey->lane = ops;
                ++ucp_st_rma_dev(worker)->num_rkeys;
                return UCS_OK;
            }
            reason = ucs_status_string(status);
        }
        ucs_diag("lane %s does not reach memory %lu of peer 0x%lx: %s",
                 worker->lanes[i]->name, rkey->mem_id, rkey->peer->uuid,
                 reason);
    }
    ucs_error("no lane reaches memory %lu of peer 0x%lx", rkey->mem_id,
              rkey->peer->uuid);
    return UCS_ERR_UNREACHABLE;
}

ucs_status_t ucp_st_rkey_unpack(ucp_st_peer_h peer, const void *buffer,
                                size_t length, ucp_st_rkey_h *rkey_p)
{
    ucp_st_rkey_parts_t parts;
    ucp_st_rkey_t *rkey;
    ucs_status_t status;

    status = ucp_st_check_call((peer != UCP_ST_PEER_NULL) &&
                               (peer != UCP_ST_PEER_ANY) &&
                               (buffer != NULL) && (rkey_p != NULL));
    if (status == UCS_OK) {
        status = ucp_st_rkey_parse(buffer, length, &parts);
    }
    if (status != UCS_OK) {
        return status;
    }
    if (parts.hdr.uuid != peer->uuid) {
        ucs_error("the key is of worker 0x%lx, not of peer 0x%lx",
                  parts.hdr.uuid, peer->uuid);
        return UCS_ERR_INVALID_ADDR;
    }
    rkey = ucp_st_object_alloc(UCP_ST_OBJECT_RKEY, sizeof(*rkey),
                               offsetof(ucp_st_rkey_t, priv));
    if (rkey == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    rkey->peer   = peer;
    rkey->mem_id = parts.hdr.mem_id;
    rkey->remote = parts.hdr.address;
    rkey->length = parts.hdr.length;
    ucp_st_worker_lock(peer->worker);
    status = ucp_st_rkey_open(rkey, &parts);
    ucp_st_worker_unlock(peer->worker);
    if (status != UCS_OK) {
        free(rkey);
        return status;
    }
    *rkey_p = rkey;
    return UCS_OK;
}

ucs_status_t ucp_st_rkey_destroy(ucp_st_rkey_h rkey)
{
    ucs_status_t status = ucp_st_check_call(rkey != NULL);
    ucp_st_worker_h worker;
    int is_held;

    if (status != UCS_OK) {
        return status;
    }
    worker = rkey->peer->worker;
    ucp_st_rma_reap(worker); /* as for memory */
    ucp_st_worker_lock(worker);
    is_held = ucp_st_rma_is_held(&rkey->refs);
    if (!is_held) {
        rkey->lane->release(rkey);
        --ucp_st_rma_dev(worker)->num_rkeys;
    }
    ucp_st_worker_unlock(worker);
    if (is_held) {
        return UCS_ERR_BUSY;
    }
    free(rkey);
    return UCS_OK;
}

ucs_status_t ucp_st_rkey_query(ucp_st_rkey_h rkey, ucp_st_rkey_attr_t *attr)
{
    ucs_status_t status = ucp_st_check_call((rkey != NULL) && (attr != NULL));

    if (status == UCS_OK) {
        attr->lane   = rkey->lane->id;
        attr->length = rkey->length;
    }
    return status;
}
