/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_gpu.c - the direct lane: buffers in memory of devices.
 *
 * A pair of which one buffer at least is in a device, and one side at least
 * reaches both of them, is moved as a mapped one (st_direct_move.c). A side
 * reaches the other's buffer
 *
 * - in its own process;
 * - in another one, if it is in a device that the runtime opens here, by its
 *   handle, or in a file of memory that this process maps.
 *
 * A device of the own buffer makes the copies, and so it must reach the other's
 * device. Where the own buffer is the host's, the other's device does. Each
 * side says in its offer all that this depends on, so that both come to the
 * same answer. Other pairs are staged: what both sides offered is the memory in
 * place of the buffers, and it is moved as any of the host.
 *
 * A copy is made by an internal stream on which nothing ever waits. The thread
 * that moves the piece begins it, and some thread of this side counts it when
 * it is over: none waits for that, as the internal stream may share a hardware
 * queue with one that waits for a word. What the order of memory rests on:
 *
 * - A side has begun a use once its stream has stored that, behind all that the
 *   stream did before, for the whole system (gstream_gpu.c). The thread has
 *   seen both stores before it gives the copy to the internal stream.
 * - A thread counts a piece when the stream has passed the event behind the
 *   copy, or when the copy has returned in a thread of its own: then stores
 *   are done, also those to a device that another process owns. The streams'
 *   words are stored after that, and a stream acquires behind its wait, or its
 *   next kernel does where it begins.
 *
 * That holds for what the runtimes say of streams and events of one device, and
 * of several that reach each other. On a GPU only an older form of it ran, in
 * which the thread waited for its copies.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "direct/st_direct.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_stage.h"

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* A piece at least, and the most pieces of longer messages: a thread looks for
 * its end some microseconds later */
#define UCP_ST_DIRECT_PIECE_GPU  (4ul << 20)
#define UCP_ST_DIRECT_PIECES_GPU 8

/* Where the devices of a runtime are in what is reached */
static unsigned ucp_st_direct_gpu_first(const ucp_st_direct_gpu_t *gpu,
                                        unsigned type)
{
    return (type == UCS_GSTREAM_TYPE_HIP) ?
           0 : gpu->num_reached[UCS_GSTREAM_TYPE_HIP];
}

/* Add devices of a runtime, in the order of types */
static void ucp_st_direct_gpu_add(ucp_st_direct_gpu_t *gpu,
                                  ucs_gstream_type_t type, int device)
{
    unsigned first = ucp_st_direct_gpu_first(gpu, type);

    gpu->num_reached[type] =
            ucs_gstream_ipc_reach(type, device, &gpu->reached[first],
                                  UCP_ST_DIRECT_MAX_DEVICES - first);
}

/* Of the host: all devices copy, but on tier K. There the other side reaches
 * the buffer, too. */
static void ucp_st_direct_gpu_add_all(const ucp_st_op_t *op,
                                      ucp_st_direct_gpu_t *gpu,
                                      ucs_gstream_type_t type)
{
    int is_starter = (op->cell != NULL) && (op->starter.type == type);

    ucp_st_direct_gpu_add(gpu, type, is_starter ? op->starter.device : -1);
}

/* The buffer itself is in a device, and the lane can do without staging it:
 * kernels alone move rows */
static int ucp_st_direct_gpu_is_mine(const ucp_st_op_t *op)
{
    return ucp_st_stage_is_used(op) && ucp_st_stage_is_device(&op->memory) &&
           ((op->blocks.width == 0) || (op->cell != NULL));
}

size_t ucp_st_direct_gpu_span(ucs_gstream_rows_t rows, size_t length)
{
    size_t begin;

    if ((rows.width == 0) || (length == 0)) {
        return length;
    }
    if (__builtin_mul_overflow((length - 1) / rows.width, (size_t)rows.pitch,
                               &begin) ||
        (begin > (SIZE_MAX - rows.width))) {
        return SIZE_MAX;
    }
    return begin + (length - 1) % rows.width + 1;
}

ucs_gstream_rows_t ucp_st_direct_gpu_rows(const ucp_st_op_t *op)
{
    const ucs_gstream_rect_t *blocks = &op->blocks;
    ucs_gstream_rows_t rows          = {.width = (uint32_t)blocks->width};

    if (blocks->width > 0) {
        rows.pitch = (uint32_t)((op->dir == UCP_ST_DIR_SEND) ?
                                        blocks->src_pitch :
                                        blocks->dst_pitch);
    }
    return rows;
}

/* Short messages are staged, but on tier K */
int ucp_st_direct_gpu_is_asked(const ucp_st_op_t *op, size_t length)
{
    const ucp_st_config_t *config = &op->worker->config;

    return (length > 0) &&
           ((length >= config->direct_map_min) || (op->cell != NULL) ||
            (ucp_st_stage_is_device(&op->memory) &&
             (config->direct_gpu_tier != UCP_ST_DIRECT_TIER_SERVICE)));
}

/* Which devices there are, and the key of a buffer in one */
static void ucp_st_direct_gpu_ask_key(ucp_st_op_t *op)
{
    int is_near = ucp_st_peer_is_real(op->peer) && op->peer->process.is_near;
    size_t length;

    (void)ucs_gstream_ipc_reach(UCS_GSTREAM_TYPE_HIP, -1, NULL, 0);
    (void)ucs_gstream_ipc_reach(UCS_GSTREAM_TYPE_CUDA, -1, NULL, 0);
    if ((op->ipc_key == NULL) && ucp_st_stage_is_device(&op->memory) &&
        ((op->blocks.width == 0) || (op->worker->config.direct_gpu_tier !=
                                     UCP_ST_DIRECT_TIER_SERVICE))) {
        op->ipc_key = malloc(sizeof(*op->ipc_key));
        if (op->ipc_key != NULL) {
            length = ucp_st_direct_gpu_span(ucp_st_direct_gpu_rows(op),
                                            op->length);
            ucs_gstream_ipc_get_key(op->buffer, length, &op->memory, !is_near,
                                    op->ipc_key);
        }
    }
}

void ucp_st_direct_gpu_ask(ucp_st_op_t *op)
{
    if (ucp_st_direct_gpu_is_asked(op, op->length)) {
        ucp_st_direct_gpu_ask_key(op);
    }
    if ((op->length > 0) && (op->cell == NULL)) {
        ucp_st_direct_pair_ask(op);
    }
}

int ucp_st_direct_gpu_offer(const ucp_st_op_t *op, ucp_st_direct_gpu_t *gpu)
{
    memset(gpu, 0, sizeof(*gpu));
    gpu->address = (uintptr_t)op->data;
    gpu->tier    = op->worker->config.direct_gpu_tier;
    if (ucp_st_direct_gpu_is_mine(op)) {
        if (op->ipc_key == NULL) {
            return 0; /* there was no memory */
        }
        gpu->address = (uintptr_t)op->buffer;
        gpu->key     = *op->ipc_key;
        gpu->rows    = ucp_st_direct_gpu_rows(op);
        ucp_st_direct_gpu_add(gpu, op->memory.type, op->memory.device);
        ucp_st_direct_pair_offer(op, gpu);
        return 1;
    }
    ucp_st_direct_gpu_add_all(op, gpu, UCS_GSTREAM_TYPE_HIP);
    ucp_st_direct_gpu_add_all(op, gpu, UCS_GSTREAM_TYPE_CUDA);
    ucp_st_direct_pair_offer(op, gpu);
    return (gpu->num_reached[UCS_GSTREAM_TYPE_HIP] +
            gpu->num_reached[UCS_GSTREAM_TYPE_CUDA]) > 0;
}

int ucp_st_direct_gpu_reaches_device(const ucp_st_direct_gpu_t *own,
                                     unsigned type, uint32_t device)
{
    unsigned i   = ucp_st_direct_gpu_first(own, type);
    unsigned end = ucs_min(i + own->num_reached[type],
                           UCP_ST_DIRECT_MAX_DEVICES);

    while ((i < end) && (own->reached[i] != device)) {
        ++i;
    }
    return i < end;
}

/* One side copies between the buffers of both, which have no rows */
static int ucp_st_direct_gpu_reaches(const ucp_st_direct_gpu_t *own,
                                     const ucp_st_direct_gpu_t *other,
                                     int other_is_mappable, int is_near)
{
    unsigned type = other->key.type;

    if (type == UCS_GSTREAM_TYPE_HOST) {
        return is_near || other_is_mappable;
    }
    if ((type >= UCS_GSTREAM_TYPE_LAST) ||
        ((own->key.type != UCS_GSTREAM_TYPE_HOST) && (own->key.type != type)) ||
        (!is_near && !other->key.is_given)) {
        return 0;
    }
    return ucp_st_direct_gpu_reaches_device(own, type, other->key.device);
}

const ucp_st_direct_gpu_t *
ucp_st_direct_gpu_offered(const ucp_st_direct_op_t *direct)
{
    static const ucp_st_direct_gpu_t nothing = {.address = 0};

    return (direct->gpu_offer == NULL) ? &nothing : direct->gpu_offer;
}

int ucp_st_direct_gpu_is_used(const ucp_st_op_t *op,
                              const ucp_st_direct_blob_t *blob,
                              const ucp_st_direct_gpu_t *other)
{
    ucp_st_direct_op_t *direct     = ucp_st_direct_op(op);
    const ucp_st_direct_gpu_t *own = ucp_st_direct_gpu_offered(direct);
    int is_near                    = op->peer->process.is_near;

    return ((own->key.type != UCS_GSTREAM_TYPE_HOST) ||
            (other->key.type != UCS_GSTREAM_TYPE_HOST)) &&
           (own->rows.width == 0) && (other->rows.width == 0) &&
           (ucp_st_direct_gpu_reaches(own, other, blob->is_mappable, is_near) ||
            ucp_st_direct_gpu_reaches(other, own, direct->map != NULL,
                                      is_near));
}

ucs_status_t ucp_st_direct_gpu_open_ipc(ucp_st_direct_op_t *direct,
                                        const ucs_gstream_ipc_key_t *key,
                                        int device)
{
    ucs_status_t status;

    status = ucs_gstream_ipc_open(key, device, &direct->other_ipc);
    if (status == UCS_OK) {
        ucp_st_direct_gpu_await(direct, key->offset);
    }
    return status;
}

void ucp_st_direct_gpu_await(ucp_st_direct_op_t *direct, uint64_t offset)
{
    ucp_st_worker_h worker = direct->op->worker;

    direct->other_offset = offset;
    direct->is_opening   = 1;
    ucs_list_add_tail(&ucp_st_direct_dev(worker)->opening, &direct->opening);
    ucp_st_direct_dev_wake(worker);
}

/* Find the other side's buffer, which the copier reaches, or have it opened */
static ucs_status_t ucp_st_direct_gpu_open(ucp_st_op_t *op,
                                           const ucp_st_direct_blob_t *blob,
                                           const ucp_st_direct_gpu_t *other)
{
    ucp_st_direct_op_t *direct = ucp_st_direct_op(op);

    if (op->peer->process.is_near) {
        direct->other_buffer = (uint8_t*)(uintptr_t)other->address;
        return UCS_OK;
    }
    if (other->key.type == UCS_GSTREAM_TYPE_HOST) {
        return ucp_st_direct_open_other(direct, blob);
    }
    return ucp_st_direct_gpu_open_ipc(direct, &other->key,
                                      direct->copier.device);
}

/* The peer's buffer is open: from now on movers claim pieces. The stream that
 * has started a use may sleep. */
static void ucp_st_direct_gpu_opened(ucp_st_direct_op_t *direct, void *start)
{
    ucp_st_direct_stream_t *stream = direct->stream;

    (void)pthread_mutex_lock(&stream->lock);
    direct->other_buffer = UCS_PTR_BYTE_OFFSET(start, direct->other_offset);
    (void)pthread_mutex_unlock(&stream->lock);
    ucs_gstream_notify(&stream->record->notify);
}

/* Check that the peer's buffer lies in what it has named */
static ucs_status_t ucp_st_direct_gpu_check(const ucp_st_direct_op_t *direct,
                                            uint64_t length)
{
    int is_send   = (direct->dir == UCP_ST_DIR_SEND);
    uint64_t span = ucp_st_direct_gpu_span(is_send ? direct->pairing.dst_rows :
                                                     direct->pairing.src_rows,
                                           direct->length);

    if ((direct->other_offset <= length) &&
        (span <= (length - direct->other_offset))) {
        return UCS_OK;
    }
    ucs_error("operation %p: peer 0x%lx has no %lu bytes at %lu of %lu for a "
              "device", direct->op, direct->op->peer->uuid, span,
              direct->other_offset, length);
    return UCS_ERR_INVALID_PARAM;
}

/* Why a peer's buffer is not open: a process's memory ends with it */
static ucs_status_t ucp_st_direct_gpu_why_closed(const ucp_st_op_t *op,
                                                 ucs_status_t status)
{
    if (ucp_st_process_has_ended(&op->peer->process)) {
        return UCS_ERR_CONNECTION_RESET;
    }
    ucs_error("operation %p: process %u's buffer is not reached by a device; "
              "with UCX_ST_DIRECT_GPU_TIER=service and "
              "UCX_ST_DIRECT_MAP_MIN=inf lane 'direct' stages such buffers", op,
              op->peer->process.pid);
    return status;
}

int ucp_st_direct_gpu_look(ucp_st_worker_h worker, int *is_open_p)
{
    ucs_list_link_t *opening = &ucp_st_direct_dev(worker)->opening;
    ucp_st_direct_op_t *direct, *tmp;
    ucs_status_t status;
    uint64_t length;
    void *start;

    ucs_list_for_each_safe(direct, tmp, opening, opening) {
        if (direct->halted && (direct->proto == UCP_ST_DIRECT_PAIRED)) {
            direct->is_opening = 0;
            ucs_list_del(&direct->opening);
            continue;
        }
        start  = direct->other_buffer;
        length = UINT64_MAX;
        status = (direct->other_ipc == NULL) ?
                 UCS_OK :
                 ucs_gstream_ipc_look(direct->other_ipc, &start, &length);
        if (status == UCS_INPROGRESS) {
            continue;
        }
        if (status == UCS_OK) {
            status = ucp_st_direct_gpu_check(direct, length);
        }
        if ((status == UCS_OK) && (direct->proto == UCP_ST_DIRECT_PAIRED)) {
            status = ucp_st_direct_pair_opened(
                    direct, UCS_PTR_BYTE_OFFSET(start, direct->other_offset));
        }
        if (status == UCS_INPROGRESS) {
            continue;
        }
        direct->is_opening = 0;
        ucs_list_del(&direct->opening);
        if (status != UCS_OK) {
            status = ucp_st_direct_gpu_why_closed(direct->op, status);
        }
        if (direct->proto == UCP_ST_DIRECT_PAIRED) {
            *is_open_p |= (status == UCS_OK);
        } else if (status == UCS_OK) {
            *is_open_p = 1;
            ucp_st_direct_gpu_opened(direct, start);
        }
        if (status != UCS_OK) {
            ucp_st_op_fail(direct->op, status);
        }
    }
    return !ucs_list_is_empty(opening);
}

ucs_status_t ucp_st_direct_gpu_bind(ucp_st_op_t *op,
                                    const ucp_st_direct_blob_t *blob,
                                    const ucp_st_direct_gpu_t *other)
{
    ucp_st_direct_op_t *direct     = ucp_st_direct_op(op);
    const ucp_st_direct_gpu_t *own = ucp_st_direct_gpu_offered(direct);
    size_t least                   = ucs_div_round_up(direct->length,
                                                      UCP_ST_DIRECT_PIECES_GPU);
    ucs_status_t status;

    if (own->key.type != UCS_GSTREAM_TYPE_HOST) {
        op->data       = op->buffer; /* it is not staged */
        direct->buffer = op->buffer;
    }
    direct->is_device = 1;
    direct->piece     = ucs_max(64 * ucs_div_round_up(least, 64),
                                UCP_ST_DIRECT_PIECE_GPU);
    direct->copier    = op->memory;
    if (!ucp_st_direct_gpu_reaches(own, other, blob->is_mappable,
                                   op->peer->process.is_near)) {
        return UCS_OK; /* the other side copies all */
    }
    if (own->key.type == UCS_GSTREAM_TYPE_HOST) {
        direct->copier.type   = other->key.type;
        direct->copier.device = ucs_gstream_ipc_find(direct->copier.type,
                                                     other->key.device);
    }
    status = ucp_st_direct_gpu_open(op, blob, other);
    if (status != UCS_OK) {
        return status;
    }
    direct->is_pageable =
            ucs_gstream_copy_is_pageable(direct->copier.type,
                                         direct->buffer) ||
            ((other->key.type == UCS_GSTREAM_TYPE_HOST) &&
             ucs_gstream_copy_is_pageable(direct->copier.type,
                                          direct->other_buffer));
    return UCS_OK;
}

/* The memory of a process that has ended may stay as long as it is open here:
 * that is no success */
ucs_status_t ucp_st_direct_gpu_begin(ucp_st_direct_op_t *direct, size_t offset,
                                     size_t length)
{
    const ucp_st_process_t *process = &direct->op->peer->process;
    uint8_t *mine                   = direct->buffer + offset;
    uint8_t *other                  = direct->other_buffer + offset;
    int is_send                     = (direct->dir == UCP_ST_DIR_SEND);
    ucs_gstream_copy_params_t params = {
        .type        = direct->copier.type,
        .device      = direct->copier.device,
        .is_pageable = direct->is_pageable,
        .dst         = is_send ? other : mine,
        .src         = is_send ? mine : other,
        .length      = length
    };

    if (!process->is_near && ucp_st_process_has_ended(process)) {
        return UCS_ERR_CONNECTION_RESET;
    }
    return ucs_gstream_copy_begin(&params, &direct->copy);
}
