/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct.c - the direct lane: what a pair gets when it is matched, and the
 * lane's table of functions.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "direct/st_direct.h"
#include "direct/st_direct_rma.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_stage.h"

#include <ucs_gstream_memory.h>

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* From so many pieces on they are so many times longer: handing a piece over
 * takes cache lines to the other processor and back */
#define UCP_ST_DIRECT_LONG_PIECES 16
#define UCP_ST_DIRECT_LONG_PIECE  4

/* Least piece of a mapped message: shorter ones cost more to claim than the
 * second processor saves */
#define UCP_ST_DIRECT_PIECE_MAPPED (32ul << 10)

/* ... where the kernel copies it, which has to look up the memory first */
#define UCP_ST_DIRECT_PIECE_ATTACHED (128ul << 10)

static size_t ucp_st_direct_align(size_t length)
{
    return ucs_div_round_up(length, UCP_ST_DIRECT_ALIGN) * UCP_ST_DIRECT_ALIGN;
}

/* What goes through a slot of a receive, bytes */
static size_t ucp_st_direct_slot_piece(const ucp_st_direct_op_t *direct,
                                       size_t piece_max)
{
    if (direct->length <= UCP_ST_DIRECT_INLINE) {
        return UCP_ST_DIRECT_INLINE;
    }
    if (direct->length <= piece_max) {
        return ucp_st_direct_align(direct->length);
    }
    return ((direct->length / piece_max) < UCP_ST_DIRECT_LONG_PIECES) ?
           piece_max : (UCP_ST_DIRECT_LONG_PIECE * piece_max);
}

static size_t ucp_st_direct_pair_size(size_t piece)
{
    size_t data = (piece <= UCP_ST_DIRECT_INLINE) ? 0 :
                  ucp_st_direct_align(piece);

    return sizeof(ucp_st_direct_pair_t) +
           (UCP_ST_DIRECT_NUM_SLOTS * (sizeof(ucp_st_direct_slot_t) + data));
}

/* What the peer says of a pair in its segment is possible */
static int ucp_st_direct_is_pair(const ucp_st_direct_blob_t *blob,
                                 const ucp_st_direct_map_t *map)
{
    return (blob->piece >= UCP_ST_DIRECT_INLINE) &&
           (blob->piece <= (UCP_ST_DIRECT_LONG_PIECE *
                            UCP_ST_DIRECT_PIECE_MAX)) &&
           ((blob->pair % UCP_ST_DIRECT_ALIGN) == 0) &&
           (blob->pair <= map->length) &&
           (ucp_st_direct_pair_size(blob->piece) <=
            (map->length - blob->pair));
}

/* The pair is in the segment of the receive's worker */
static ucs_status_t ucp_st_direct_get_pair(ucp_st_direct_op_t *direct,
                                           ucp_st_worker_h worker)
{
    direct->piece     = ucp_st_direct_slot_piece(direct,
                                                 worker->config.direct_piece);
    direct->pair_size = ucp_st_direct_pair_size(direct->piece);
    direct->pair      = ucp_st_direct_seg_get(&ucp_st_direct_dev(worker)->seg,
                                              direct->pair_size);
    if (direct->pair == NULL) {
        ucs_diag("lane 'direct': no room for %zu bytes (UCX_ST_DIRECT_SIZE)",
                 direct->pair_size);
        return UCS_ERR_NO_RESOURCE;
    }
    memset(direct->pair, 0, sizeof(*direct->pair) +
                            (UCP_ST_DIRECT_NUM_SLOTS *
                             sizeof(*direct->pair->slots)));
    return UCS_OK;
}

_Static_assert((sizeof(ucp_st_direct_blob_t) + sizeof(ucp_st_direct_gpu_t)) <=
               UCP_ST_PROTO_MAX_DIRECT, "an offer fits");

/* Say what there is to say of devices, behind the rest: how many bytes. Without
 * memory it is nothing, and the pair is staged. */
static size_t ucp_st_direct_offer_gpu(ucp_st_op_t *op, void *buffer)
{
    ucp_st_direct_gpu_t *gpu;

    if (!ucp_st_direct_gpu_is_asked(op, op->msg_length)) {
        return 0; /* it is staged, whatever the peer says */
    }
    gpu = malloc(sizeof(*gpu));
    if ((gpu == NULL) || !ucp_st_direct_gpu_offer(op, gpu)) {
        free(gpu);
        return 0;
    }
    ucp_st_direct_op(op)->gpu_offer = gpu;
    memcpy(buffer, gpu, sizeof(*gpu));
    return sizeof(*gpu);
}

static ucs_status_t ucp_st_direct_offer(ucp_st_op_t *op, void *buffer,
                                        size_t *length_p)
{
    const ucp_st_config_t *config = &op->worker->config;
    ucp_st_direct_dev_t *dev      = ucp_st_direct_dev(op->worker);
    ucp_st_direct_op_t *direct    = calloc(1, sizeof(*direct));
    ucp_st_direct_blob_t blob     = {
        .address    = (uintptr_t)op->data,
        .map_min    = config->direct_map_min,
        .attach_min = config->direct_attach_min,
        .can_attach = ucp_st_direct_peer(op->peer)->can_attach
    };
    ucs_status_t status;

    if (direct == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    direct->op     = op;
    direct->stream = &dev->parked;
    direct->dir    = op->dir;
    direct->length = op->msg_length;
    direct->buffer = op->data;
    direct->is_nt  = (op->msg_length >= config->direct_nt_min);
    direct->word   = ucs_gstream_word_get();
    if (direct->word == NULL) {
        free(direct);
        return UCS_ERR_NO_MEMORY;
    }
    if (op->dir == UCP_ST_DIR_RECV) {
        status = ucp_st_direct_get_pair(direct, op->worker);
        if (status != UCS_OK) {
            ucs_gstream_word_put(direct->word);
            free(direct);
            return status;
        }
        blob.pair  = UCS_PTR_BYTE_DIFF(dev->seg.map->address, direct->pair);
        blob.piece = direct->piece;
    }
    if (op->msg_length >= config->direct_map_min) {
        direct->map = ucp_st_direct_map_find(op->data, op->msg_length);
    }
    if (direct->map != NULL) {
        blob.is_mappable = 1;
        blob.file        = direct->map->file;
        blob.offset      = UCS_PTR_BYTE_DIFF(direct->map->address, op->data);
    }
    op->priv[UCP_ST_LANE_DIRECT] = direct;
    memcpy(buffer, &blob, sizeof(blob));
    *length_p = sizeof(blob) +
                ucp_st_direct_offer_gpu(op, UCS_PTR_BYTE_OFFSET(buffer,
                                                                sizeof(blob)));
    return UCS_OK;
}

/* Whether a message is long enough to be copied once. Both sides come to the
 * same answer, as they do in the next functions. */
static int ucp_st_direct_is_long(const ucp_st_op_t *op,
                                 const ucp_st_direct_blob_t *blob)
{
    return op->msg_length >= ucs_max(op->worker->config.direct_map_min,
                                     blob->map_min);
}

/* Whether a side has the other's buffer mapped. A peer in the same process has
 * all memory mapped. */
static int ucp_st_direct_is_mapped(const ucp_st_op_t *op,
                                   const ucp_st_direct_blob_t *blob)
{
    return ucp_st_direct_is_long(op, blob) &&
           ((ucp_st_direct_op(op)->map != NULL) || blob->is_mappable ||
            op->peer->process.is_near);
}

static int ucp_st_direct_is_attached(const ucp_st_op_t *op,
                                     const ucp_st_direct_blob_t *blob)
{
    return (op->msg_length >= ucs_max(op->worker->config.direct_attach_min,
                                      blob->attach_min)) &&
           (ucp_st_direct_peer(op->peer)->can_attach || blob->can_attach);
}

ucs_status_t ucp_st_direct_open_other(ucp_st_direct_op_t *direct,
                                      const ucp_st_direct_blob_t *blob)
{
    ucs_status_t status;

    status = ucp_st_direct_map_open(&blob->file, &direct->other_map);
    if (status != UCS_OK) {
        return status;
    }
    if ((blob->offset > direct->other_map->length) ||
        (direct->length > (direct->other_map->length - blob->offset))) {
        return UCS_ERR_INVALID_PARAM;
    }
    direct->other_buffer = UCS_PTR_BYTE_OFFSET(direct->other_map->address,
                                               blob->offset);
    return UCS_OK;
}

static ucs_status_t ucp_st_direct_bind_mapped(ucp_st_op_t *op,
                                              const ucp_st_direct_blob_t *blob)
{
    ucp_st_direct_op_t *direct = ucp_st_direct_op(op);
    size_t least = ucs_div_round_up(direct->length, UCP_ST_DIRECT_MAX_PIECES);

    direct->is_attached = !ucp_st_direct_is_mapped(op, blob);
    direct->piece       = ucs_max(ucp_st_direct_align(least),
                                  direct->is_attached ?
                                          UCP_ST_DIRECT_PIECE_ATTACHED :
                                          UCP_ST_DIRECT_PIECE_MAPPED);
    if (op->peer->process.is_near) {
        direct->other_buffer = (uint8_t*)(uintptr_t)blob->address;
    } else if (blob->is_mappable) {
        return ucp_st_direct_open_other(direct, blob);
    } else if (ucp_st_direct_peer(op->peer)->can_attach &&
               ucp_st_direct_is_attached(op, blob)) {
        direct->other_address = blob->address;
    } /* else the other side copies all */
    return UCS_OK;
}

/* Threads move a pair; why, a constant string */
static void ucp_st_direct_take_service(ucp_st_op_t *op, const char *why)
{
    ++op->worker->stats.tier_service;
    op->worker->tier_reason = why;
    op->reason              = why;
    ucs_diag("operation %p: lane 'direct' does not move it by kernels: %s", op,
             why);
}

/* Whether a pair is moved on tier K; UCS_ERR_UNSUPPORTED if it cannot be and
 * the settings ask for it */
static ucs_status_t ucp_st_direct_check_tier(ucp_st_op_t *op,
                                             const ucp_st_direct_gpu_t *other,
                                             int *is_paired_p)
{
    unsigned tier = op->worker->config.direct_gpu_tier;
    const ucp_st_direct_gpu_t *own;
    const char *why;

    own          = ucp_st_direct_gpu_offered(ucp_st_direct_op(op));
    *is_paired_p = 0;
    if ((own->key.type == UCS_GSTREAM_TYPE_HOST) &&
        (other->key.type == UCS_GSTREAM_TYPE_HOST) &&
        (own->place == UCP_ST_DIRECT_PLACE_NONE) &&
        (other->place == UCP_ST_DIRECT_PLACE_NONE)) {
        if ((tier == UCP_ST_DIRECT_TIER_SERVICE) &&
            ucp_st_stage_is_device(&op->memory)) {
            ucp_st_direct_take_service(op, "UCX_ST_DIRECT_GPU_TIER=service");
        }
        return UCS_OK;
    }
    why          = ucp_st_direct_pair_why_not(op, own, other);
    *is_paired_p = (why == NULL);
    if ((why != NULL) && (tier == UCP_ST_DIRECT_TIER_KERNEL)) {
        ucs_error("operation %p: UCX_ST_DIRECT_GPU_TIER=kernel, but %s", op,
                  why);
        return UCS_ERR_UNSUPPORTED;
    }
    if (why == NULL) {
        ++op->worker->stats.tier_kernel;
    } else {
        ucp_st_direct_take_service(op, why);
    }
    return UCS_OK;
}

/* Choose how the message gets over; the peer may have said nothing of devices
 */
static ucs_status_t ucp_st_direct_bind_proto(ucp_st_op_t *op,
                                             const ucp_st_direct_blob_t *blob,
                                             const void *gpu_offer)
{
    ucp_st_direct_op_t *direct = ucp_st_direct_op(op);
    ucp_st_direct_gpu_t gpu    = {.address = blob->address};
    ucs_status_t status;
    int is_paired;

    if (gpu_offer != NULL) {
        memcpy(&gpu, gpu_offer, sizeof(gpu));
    }
    status = ucp_st_direct_check_tier(op, &gpu, &is_paired);
    if (status != UCS_OK) {
        return status;
    }
    if (is_paired) {
        return ucp_st_direct_pair_bind(op, &gpu);
    }
    direct->proto = UCP_ST_DIRECT_MAPPED;
    if (ucp_st_direct_is_long(op, blob) &&
        ucp_st_direct_gpu_is_used(op, blob, &gpu)) {
        return ucp_st_direct_gpu_bind(op, blob, &gpu);
    }
    if (ucp_st_direct_is_mapped(op, blob) ||
        ucp_st_direct_is_attached(op, blob)) {
        return ucp_st_direct_bind_mapped(op, blob);
    }
    direct->proto = UCP_ST_DIRECT_SLOTS;
    return UCS_OK;
}

static ucs_status_t ucp_st_direct_bind(ucp_st_op_t *op, const void *buffer,
                                       size_t length)
{
    const ucp_st_direct_map_t *map = ucp_st_direct_peer(op->peer)->map;
    ucp_st_direct_op_t *direct     = ucp_st_direct_op(op);
    ucs_status_t status            = UCS_OK;
    ucp_st_direct_slot_t *slots;
    ucp_st_direct_blob_t blob;

    if ((length != sizeof(blob)) &&
        (length != (sizeof(blob) + sizeof(ucp_st_direct_gpu_t)))) {
        return UCS_ERR_INVALID_PARAM;
    }
    memcpy(&blob, buffer, sizeof(blob));
    if (op->dir == UCP_ST_DIR_SEND) {
        /* The sender learns where the slots are */
        if (!ucp_st_direct_is_pair(&blob, map)) {
            ucs_error("operation %p: peer 0x%lx offers pieces of %lu bytes at "
                      "%lu of its %zu bytes of shared memory", op,
                      op->peer->uuid, blob.piece, blob.pair, map->length);
            return UCS_ERR_INVALID_PARAM;
        }
        direct->piece = blob.piece;
        direct->pair  = UCS_PTR_BYTE_OFFSET(map->address, blob.pair);
    }
    direct->segment  = map->address;
    direct->records  = map->length - sizeof(ucp_st_direct_record_t);
    direct->limit    = UCP_ST_DIRECT_NUM_SLOTS;
    direct->is_bound = 1;
    direct->proto    = UCP_ST_DIRECT_SLOTS;
    slots            = direct->pair->slots;
    direct->mine     = &direct->pair->side[direct->dir];
    direct->other    = &direct->pair->side[!direct->dir];
    if (direct->piece > UCP_ST_DIRECT_INLINE) {
        direct->places = (uint8_t*)&slots[UCP_ST_DIRECT_NUM_SLOTS];
        direct->stride = ucp_st_direct_align(direct->piece);
    } else {
        direct->places = slots[0].data;
        direct->stride = sizeof(*slots);
    }
    if (op->msg_length > 0) {
        status = ucp_st_direct_bind_proto(op, &blob, (length > sizeof(blob)) ?
                                          UCS_PTR_BYTE_OFFSET(buffer,
                                                              sizeof(blob)) :
                                          NULL);
    }
    free(direct->gpu_offer);
    direct->gpu_offer  = NULL;
    direct->num_pieces = ucs_max(1, ucs_div_round_up(direct->length,
                                                     direct->piece));
    op->is_exact       = 1;
    /* A message that fits into the slots may be there before its receive is
     * started, and outlive its sender */
    op->early = (op->dir == UCP_ST_DIR_RECV) &&
                (direct->proto == UCP_ST_DIRECT_SLOTS) &&
                (direct->num_pieces <= UCP_ST_DIRECT_NUM_SLOTS);
    return status;
}

/* Only if the stream is another one: the last use is over then. Else the stream
 * may be reading this. */
void ucp_st_direct_use_stream(ucp_st_direct_op_t *direct, ucp_st_queue_h queue)
{
    ucp_st_direct_stream_t *stream = ucp_st_direct_queue(queue);

    if (direct->stream != stream) {
        ucp_st_direct_end_use(direct);
        direct->stream = stream;
    }
}

static size_t ucp_st_direct_start_cmds(ucp_st_op_t *op, ucp_st_queue_h queue,
                                       uint64_t use, ucs_gstream_cmd_t *cmd)
{
    ucp_st_direct_op_t *direct = ucp_st_direct_op(op);
    int count;

    ucp_st_direct_use_stream(direct, queue);
    count = (direct->proto == UCP_ST_DIRECT_PAIRED) ?
            ucp_st_direct_pair_start_cmds(direct, queue, use, cmd) : -1;
    if (count >= 0) {
        return (size_t)count;
    }
    return ucp_st_queue_add_callback(queue, ucp_st_direct_startall,
                                     (void*[]){direct}, 1, cmd);
}

static size_t ucp_st_direct_wait_words(const ucp_st_op_t *op,
                                       ucs_gstream_word_t *words)
{
    words[0].address = ucp_st_direct_op(op)->word;
    words[0].value   = op->started;
    return 1;
}

uint64_t ucp_st_direct_uses_done(const ucp_st_op_t *op)
{
    const ucp_st_direct_op_t *direct = ucp_st_direct_op(op);
    uint64_t word;

    if (direct == NULL) {
        return 0;
    }
    word = __atomic_load_n(direct->word, __ATOMIC_ACQUIRE);
    return (word < UCP_ST_RELEASE) ? word : 0;
}

/* Look after an operation that ends: in the service thread, until it is gone */
static void ucp_st_direct_end(ucp_st_op_t *op)
{
    ucp_st_direct_op_t *direct = ucp_st_direct_op(op);

    if (!direct->is_listed) {
        direct->is_listed = 1;
        ucs_list_add_tail(&ucp_st_direct_dev(op->worker)->ending,
                          &direct->ending);
        ucp_st_direct_dev_wake(op->worker);
    }
}

/* The start of a receive may still take what is in its slots */
static void ucp_st_direct_stop_starts(ucp_st_op_t *op)
{
    ucp_st_direct_op_t *direct = ucp_st_direct_op(op);

    if ((direct != NULL) && direct->is_bound) {
        ucp_st_direct_halt(direct);
    }
}

static void ucp_st_direct_release_waits(ucp_st_op_t *op)
{
    ucp_st_direct_op_t *direct = ucp_st_direct_op(op);

    if (direct != NULL) {
        if (!direct->release) {
            direct->release      = 1;
            direct->release_time = ucp_st_worker_now();
        }
        if (ucp_st_direct_settle(direct)) {
            ucp_st_direct_end(op);
        }
    }
}

static void ucp_st_direct_revoke(ucp_st_op_t *op)
{
    ucp_st_direct_op_t *direct = ucp_st_direct_op(op);

    if ((direct != NULL) && direct->is_bound) {
        ucp_st_direct_halt(direct);
        ucp_st_direct_end(op);
    }
}

/* Only this side uses what the lane holds for the operation */
static int ucp_st_direct_is_alone(const ucp_st_op_t *op)
{
    ucp_st_direct_op_t *direct = ucp_st_direct_op(op);

    return op->peer_closed ||
           ((op->state != UCP_ST_OP_FAILED) && !direct->is_bound) ||
           ucp_st_process_is_dead(&op->peer->process);
}

static uint64_t ucp_st_direct_begun(const ucp_st_op_t *op)
{
    const ucp_st_direct_op_t *direct = ucp_st_direct_op(op);

    return (direct->proto == UCP_ST_DIRECT_PAIRED) ?
           ucp_st_direct_pair_begun(direct, 0) :
           __atomic_load_n(&direct->begun, __ATOMIC_RELAXED);
}

static uint64_t ucp_st_direct_peer_uses(const ucp_st_op_t *op, uint64_t use)
{
    const ucp_st_direct_op_t *direct = ucp_st_direct_op(op);

    return (direct->proto == UCP_ST_DIRECT_PAIRED) ?
           ucp_st_direct_pair_begun(direct, 1) :
           __atomic_load_n(&direct->other->begun, __ATOMIC_RELAXED);
}

/* An own copy ends with the worker's lock held, once nothing is begun any more
 */
static int ucp_st_direct_uses_buffer(const ucp_st_op_t *op)
{
    const ucp_st_direct_op_t *direct = ucp_st_direct_op(op);

    return direct->release &&
           (!direct->released || ucp_st_direct_is_copying(direct));
}

/* A device copies between the two buffers */
static int ucp_st_direct_is_reaching(const ucp_st_op_t *op)
{
    const ucp_st_direct_op_t *direct = ucp_st_direct_op(op);

    return (direct != NULL) && ucp_st_direct_is_copying(direct);
}

/* A peer that was declared gone may still live, as may one that has not
 * answered when the worker goes: what they can reach goes with the segment */
static int ucp_st_direct_is_busy(const ucp_st_op_t *op)
{
    return ucp_st_direct_uses_buffer(op) ||
           (!ucp_st_direct_is_alone(op) && (op->peer->status == UCS_OK) &&
            !op->worker->is_ending);
}

/* What a live peer may still write to is not reused */
static void ucp_st_direct_release(ucp_st_op_t *op)
{
    ucp_st_direct_op_t *direct = ucp_st_direct_op(op);

    ucp_st_direct_pair_release(direct, ucp_st_direct_is_alone(op) ||
                               (direct->is_bound &&
                                (direct->proto != UCP_ST_DIRECT_PAIRED)));
    if (direct->pair_size == 0) {
        /* the peer's */
    } else if (ucp_st_direct_is_alone(op)) {
        ucp_st_direct_seg_put(&ucp_st_direct_dev(op->worker)->seg, direct->pair,
                              direct->pair_size);
    } else {
        ucs_diag("operation %p: %zu bytes are left to a peer that is gone", op,
                 direct->pair_size);
    }
    if (direct->is_listed) {
        ucs_list_del(&direct->ending);
    }
    if (direct->is_opening) {
        ucs_list_del(&direct->opening);
    }
    ucp_st_direct_map_put(direct->map);
    ucp_st_direct_map_put(direct->other_map);
    ucp_st_direct_map_put(direct->pair_map);
    ucs_gstream_ipc_close(direct->other_ipc);
    free(direct->gpu_offer);
    op->priv[UCP_ST_LANE_DIRECT] = NULL;
    if (direct->proto != UCP_ST_DIRECT_PAIRED) {
        ucs_gstream_word_put(direct->word);
    }
    free(direct);
}

static void ucp_st_direct_leave_queue(ucp_st_op_t *op, ucp_st_queue_h queue)
{
    ucp_st_direct_stream_t *stream = ucp_st_direct_queue(queue);
    ucp_st_direct_op_t *direct     = ucp_st_direct_op(op);

    if ((direct != NULL) && (direct->proto == UCP_ST_DIRECT_PAIRED) &&
        (op->queue == queue)) {
        ucp_st_direct_pair_check_lost(direct);
    }
    if ((direct != NULL) && (direct->stream == stream) &&
        (stream->refs == 1) && (stream->handle != NULL)) {
        ucp_st_direct_move_stream(direct,
                                  &ucp_st_direct_dev(op->worker)->parked);
    }
}

static const char *ucp_st_direct_protocol(const ucp_st_op_t *op)
{
    const ucp_st_direct_op_t *direct = ucp_st_direct_op(op);

    if (direct->proto == UCP_ST_DIRECT_PAIRED) {
        return "kernel";
    }
    if (direct->proto == UCP_ST_DIRECT_MAPPED) {
        return direct->is_device   ? "device" :
               direct->is_attached ? "attached" : "mapped";
    }
    if (direct->piece <= UCP_ST_DIRECT_INLINE) {
        return "inline";
    }
    return (direct->num_pieces == 1) ? "slot" : "pipelined";
}

const ucp_st_lane_ops_t ucp_st_direct_lane = {
    .name   = "direct",
    .id     = UCP_ST_LANE_DIRECT,
    .sizes  = {
        [UCP_ST_OBJECT_WORKER] = sizeof(ucp_st_direct_dev_t),
        [UCP_ST_OBJECT_PEER]   = sizeof(ucp_st_direct_peer_t),
        [UCP_ST_OBJECT_QUEUE]  = sizeof(ucp_st_direct_stream_t*)
    },
    .worker = {
        .open           = ucp_st_direct_dev_open,
        .close          = ucp_st_direct_dev_close,
        .address_length = ucp_st_direct_dev_address_length,
        .address_pack   = ucp_st_direct_dev_address_pack,
        .progress       = ucp_st_direct_dev_progress,
        .poll           = ucp_st_direct_dev_poll,
        .cancel         = ucp_st_worker_hook_none,
        .prepare        = ucp_st_lane_no_prepare,
        .serves         = ucp_st_direct_dev_serves,
        .query          = ucp_st_direct_dev_query
    },
    .peer   = {
        .connect    = ucp_st_direct_dev_connect,
        .disconnect = ucp_st_direct_dev_disconnect,
        .check      = ucp_st_peer_hook_none /* see ucp_st_peer_check() */
    },
    .queue  = {
        .init    = ucp_st_direct_queue_init,
        .cleanup = ucp_st_direct_queue_cleanup
    },
    .op     = {
        .reaches       = ucp_st_lane_reaches_host,
        .prepare       = ucp_st_direct_gpu_ask,
        .offer         = ucp_st_direct_offer,
        .bind          = ucp_st_direct_bind,
        .post          = ucp_st_lane_no_post,
        .pages         = ucp_st_lane_no_pages,
        .start         = ucp_st_direct_start_cmds,
        .wait_words    = ucp_st_direct_wait_words,
        .land          = ucp_st_lane_no_land,
        .ahead         = &ucp_st_direct_ahead,
        .leave_queue   = ucp_st_direct_leave_queue,
        .uses_done     = ucp_st_direct_uses_done,
        .begun         = ucp_st_direct_begun,
        .peer_uses     = ucp_st_direct_peer_uses,
        .halt          = ucp_st_direct_stop_starts,
        .release_waits = ucp_st_direct_release_waits,
        .revoke        = ucp_st_direct_revoke,
        .dispose       = ucp_st_lane_no_op, /* streams alone put something */
        .is_busy       = ucp_st_direct_is_busy,
        .uses_buffer   = ucp_st_direct_uses_buffer,
        .is_reaching   = ucp_st_direct_is_reaching,
        .release       = ucp_st_direct_release,
        .protocol      = ucp_st_direct_protocol
    }
};
