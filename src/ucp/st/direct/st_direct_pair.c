/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_pair.c - the direct lane, tier K: the streams of devices move the
 * data by kernels (ucs_gstream_pair.h).
 *
 * Each side has a starter: the device whose kernels start it, and copy if they
 * do so second. That is the device of its buffer. For a buffer in memory of the
 * host, or in managed memory, it is the device of the worker's first queue, if
 * all its queues are on streams of that runtime. A pair is moved so if both
 * starters reach both buffers, and each process the other's record:
 *
 * - memory of a device, by its handle where it is another process's;
 * - memory of ucp_st_mem_alloc(), whose file each process maps, and registers;
 * - within a process, memory of the host that the runtime knows, and managed
 *   memory.
 *
 * Records of a process lie in a file of their own, which devices reach: to
 * register a whole segment takes long. It stays registered for the life of the
 * process, and mapped, as do the files of other processes: to unregister memory
 * is to wait for all streams.
 *
 * A match is complete when each side has opened what the other one has, which
 * may be freed from then on.
 *
 * The service thread has no part in a use, but where the stream of its start
 * runs no kernels of the device: then a thread has another stream start it, and
 * looks for its end. Once a thread has started a use, threads start all that
 * follow, so that two starts of a side never run at the same time: behind a
 * wait on one stream the kernel of another one may still be about to end.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "direct/st_direct.h"
#include "core/st_ahead.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_stage.h"

#include <ucs_gstream_memory.h>

#include <ucs/sys/math.h>

#include <math.h>
#include <pthread.h>
#include <string.h>

/* Length of a file of records, which have 256 bytes each: to register it takes
 * some milliseconds */
#define UCP_ST_DIRECT_RECORDS (2ul << 20)

/* Files of other processes that are kept mapped, at most: peers */
#define UCP_ST_DIRECT_MAX_FILES 4096

/* This process's records, and the mappings that are kept */
static struct {
    pthread_mutex_t     lock;
    ucp_st_direct_seg_t seg; /* without a map: there are none yet */
    ucp_st_direct_map_t *maps[UCP_ST_DIRECT_MAX_FILES];
    unsigned            num_maps;
} ucp_st_direct_records = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};

static ucs_status_t ucp_st_direct_records_init(ucp_st_direct_seg_t *seg)
{
    ucs_status_t status = ucp_st_direct_seg_init(seg, UCP_ST_DIRECT_RECORDS, 0);

    if (status != UCS_OK) {
        seg->map = NULL;
        return status;
    }
    status = ucs_gstream_memory_add(seg->map->address, seg->map->length,
                                    UCS_GSTREAM_MEMORY_HOST);
    if (status != UCS_OK) {
        ucp_st_direct_seg_cleanup(seg);
        seg->map = NULL;
    }
    return status;
}

/* A record, all 0, and where it is; NULL if there is no room */
static ucs_gstream_pair_record_t *
ucp_st_direct_record_get(ucp_st_direct_file_t *file, uint64_t *offset_p)
{
    ucp_st_direct_seg_t *seg          = &ucp_st_direct_records.seg;
    ucs_gstream_pair_record_t *record = NULL;
    ucs_status_t status               = UCS_OK;

    (void)pthread_mutex_lock(&ucp_st_direct_records.lock);
    if (seg->map == NULL) {
        status = ucp_st_direct_records_init(seg);
    }
    if (status == UCS_OK) {
        record = ucp_st_direct_seg_get(seg, sizeof(*record));
    }
    if (record != NULL) {
        memset(record, 0, sizeof(*record));
        *file     = seg->map->file;
        *offset_p = UCS_PTR_BYTE_DIFF(seg->map->address, record);
    }
    (void)pthread_mutex_unlock(&ucp_st_direct_records.lock);
    return record;
}

static void ucp_st_direct_record_put(ucs_gstream_pair_record_t *record)
{
    (void)pthread_mutex_lock(&ucp_st_direct_records.lock);
    ucp_st_direct_seg_put(&ucp_st_direct_records.seg, record, sizeof(*record));
    (void)pthread_mutex_unlock(&ucp_st_direct_records.lock);
}

/* Keep a mapping, for which the caller has a reference, and have devices reach
 * it. The lock is held. */
static ucs_status_t ucp_st_direct_records_keep(ucp_st_direct_map_t *map)
{
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < ucp_st_direct_records.num_maps; ++i) {
        if (ucp_st_direct_records.maps[i] == map) {
            ucp_st_direct_map_put(map);
            return UCS_OK;
        }
    }
    status = (i == UCP_ST_DIRECT_MAX_FILES) ?
             UCS_ERR_NO_RESOURCE :
             ucs_gstream_memory_add(map->address, map->length,
                                    UCS_GSTREAM_MEMORY_HOST);
    if (status != UCS_OK) {
        ucp_st_direct_map_put(map);
        return status;
    }
    ucp_st_direct_records.maps[i] = map;
    ++ucp_st_direct_records.num_maps;
    return UCS_OK;
}

/* Find a peer's record */
static ucs_status_t
ucp_st_direct_record_open(const ucp_st_direct_gpu_t *other,
                          ucs_gstream_pair_record_t **record_p)
{
    ucs_gstream_pair_record_t *record;
    ucp_st_direct_map_t *map;
    ucs_status_t status;

    status = ucp_st_direct_map_open(&other->records, &map);
    if (status != UCS_OK) {
        return status;
    }
    if (((other->record % sizeof(*record)) != 0) ||
        (map->length < sizeof(*record)) ||
        (other->record > (map->length - sizeof(*record)))) {
        ucp_st_direct_map_put(map);
        return UCS_ERR_INVALID_PARAM;
    }
    record = UCS_PTR_BYTE_OFFSET(map->address, other->record);
    (void)pthread_mutex_lock(&ucp_st_direct_records.lock);
    status = ucp_st_direct_records_keep(map);
    (void)pthread_mutex_unlock(&ucp_st_direct_records.lock);
    if (status == UCS_OK) {
        *record_p = record;
    }
    return status;
}

/* Bytes of an operation's buffer, from its begin to its end */
static size_t ucp_st_direct_pair_span(const ucp_st_op_t *op)
{
    return ucp_st_direct_gpu_span(ucp_st_direct_gpu_rows(op), op->length);
}

/* The device of the worker's first queue, if all are on streams of one runtime,
 * as far as the choice of a lane asks (ucp_st_lanes_stream_types()) */
static int ucp_st_direct_pair_find_starter(ucp_st_op_t *op)
{
    ucp_st_worker_h worker = op->worker;
    int device             = -1;
    ucs_gstream_type_t type;
    ucp_st_queue_h queue;
    uint64_t types;

    ucp_st_worker_lock(worker);
    types = (op->peer->lanes & UCS_BIT(UCP_ST_LANE_DIRECT)) ?
            ucp_st_lanes_stream_types(worker) : 0;
    ucs_list_for_each(queue, &worker->queues, list) {
        type   = ucs_gstream_type(queue->stream);
        device = (types == UCS_BIT(type)) ?
                 ucs_gstream_pair_device(queue->stream) : -1;
        if (device >= 0) {
            op->starter.type   = type;
            op->starter.device = device;
            break;
        }
    }
    ucp_st_worker_unlock(worker);
    return device >= 0;
}

/* Find a device, and where it has a buffer of the host */
static ucs_status_t ucp_st_direct_pair_ask_host(ucp_st_op_t *op)
{
    ucp_st_starter_t *starter = &op->starter;
    size_t span               = ucp_st_direct_pair_span(op);
    ucs_status_t status       = UCS_ERR_UNREACHABLE;
    ucp_st_direct_map_t *map;

    if (!ucp_st_peer_is_real(op->peer)) {
        return UCS_ERR_UNREACHABLE;
    }
    map            = ucp_st_direct_map_find(op->buffer, span);
    starter->place = (map != NULL) ? UCP_ST_DIRECT_PLACE_FILE :
                                     UCP_ST_DIRECT_PLACE_NEAR;
    if (((map != NULL) ||
         (op->peer->process.is_near && op->memory.is_pinned)) &&
        ucp_st_direct_pair_find_starter(op)) {
        status = ucs_gstream_pair_prepare(starter->type, starter->device);
    }
    if (status == UCS_OK) {
        status = (map == NULL) ?
                 UCS_ERR_UNREACHABLE :
                 ucp_st_direct_map_reach(map, starter->type, op->buffer,
                                         INFINITY, &starter->buffer);
        if (status != UCS_OK) { /* perhaps the application registered it */
            if (op->peer->process.is_near) {
                starter->place = UCP_ST_DIRECT_PLACE_NEAR;
            }
            status = ucs_gstream_pair_address(starter->type, starter->device,
                                              op->buffer, span,
                                              &starter->buffer);
        }
    }
    ucp_st_direct_map_put(map);
    return status;
}

void ucp_st_direct_pair_ask(ucp_st_op_t *op)
{
    ucp_st_starter_t *starter = &op->starter;
    ucs_status_t status;

    if (op->worker->config.direct_gpu_tier == UCP_ST_DIRECT_TIER_SERVICE) {
        return;
    }
    if (!ucp_st_stage_is_device(&op->memory) || op->memory.is_managed) {
        status = ucp_st_direct_pair_ask_host(op);
    } else {
        starter->place  = UCP_ST_DIRECT_PLACE_DEVICE;
        starter->buffer = op->buffer;
        status          = ((op->ipc_key == NULL) ||
                           (op->ipc_key->device == 0)) ?
                          UCS_ERR_UNREACHABLE :
                          ucs_gstream_pair_prepare(starter->type,
                                                   starter->device);
    }
    if (status == UCS_OK) {
        if (op->memory.is_managed) {
            op->memory.device = starter->device; /* it copies as well */
        }
        op->cell = ucs_gstream_cell_get(starter->type, starter->device);
    }
}

/* Name the file that a buffer lies in; 0 if it is none any more */
static int ucp_st_direct_pair_offer_file(const ucp_st_op_t *op,
                                         ucs_gstream_ipc_key_t *key)
{
    ucp_st_direct_op_t *direct = ucp_st_direct_op(op);

    direct->pair_map = ucp_st_direct_map_find(op->buffer,
                                              ucp_st_direct_pair_span(op));
    if (direct->pair_map == NULL) {
        return 0;
    }
    memcpy(key->handle, &direct->pair_map->file,
           sizeof(direct->pair_map->file));
    key->offset = UCS_PTR_BYTE_DIFF(direct->pair_map->address, op->buffer);
    return 1;
}

void ucp_st_direct_pair_offer(const ucp_st_op_t *op, ucp_st_direct_gpu_t *gpu)
{
    ucp_st_direct_op_t *direct = ucp_st_direct_op(op);

    if ((op->cell == NULL) ||
        ((op->starter.place == UCP_ST_DIRECT_PLACE_FILE) &&
         !ucp_st_direct_pair_offer_file(op, &gpu->key))) {
        return;
    }
    direct->pairing.record = ucp_st_direct_record_get(&gpu->records,
                                                      &gpu->record);
    if (direct->pairing.record == NULL) {
        return;
    }
    gpu->address      = (uintptr_t)op->buffer;
    gpu->rows         = ucp_st_direct_gpu_rows(op);
    gpu->place        = op->starter.place;
    gpu->starter_type = (uint8_t)op->starter.type;
}

/* Why a side is of no such pair; NULL if it can be */
static const char *ucp_st_direct_pair_why_none(const ucp_st_direct_gpu_t *gpu)
{
    if (gpu->tier == UCP_ST_DIRECT_TIER_SERVICE) {
        return "UCX_ST_DIRECT_GPU_TIER=service";
    }
    if (gpu->place != UCP_ST_DIRECT_PLACE_NONE) {
        return NULL;
    }
    if ((gpu->key.type != UCS_GSTREAM_TYPE_HOST) && (gpu->key.device != 0)) {
        return "the device runs no kernels of the library, or had no room";
    }
    return "kernels do not reach a buffer that is in no device: it has to be "
           "of ucp_st_mem_alloc() or, within a process, registered with the "
           "runtime or managed, and all queues of its worker on streams of "
           "one runtime that run kernels of the library";
}

/* A starter reaches the other side's buffer, if that is in a device */
static int ucp_st_direct_pair_reaches(const ucp_st_direct_gpu_t *own,
                                      const ucp_st_direct_gpu_t *other)
{
    return (other->place != UCP_ST_DIRECT_PLACE_DEVICE) ||
           ucp_st_direct_gpu_reaches_device(own, own->starter_type,
                                            other->key.device);
}

/* Another process reaches a buffer */
static int ucp_st_direct_pair_is_given(const ucp_st_direct_gpu_t *gpu)
{
    return (gpu->place == UCP_ST_DIRECT_PLACE_FILE) ||
           ((gpu->place == UCP_ST_DIRECT_PLACE_DEVICE) && gpu->key.is_given);
}

const char *ucp_st_direct_pair_why_not(const ucp_st_op_t *op,
                                       const ucp_st_direct_gpu_t *own,
                                       const ucp_st_direct_gpu_t *other)
{
    const char *why = ucp_st_direct_pair_why_none(own);

    if (why == NULL) {
        why = ucp_st_direct_pair_why_none(other);
    }
    if (why != NULL) {
        return why;
    }
    if (own->starter_type != other->starter_type) {
        return "the two sides are of two runtimes";
    }
    if (!ucp_st_direct_pair_reaches(own, other) ||
        !ucp_st_direct_pair_reaches(other, own)) {
        return "the two devices do not reach each other";
    }
    if (other->rows.width > other->rows.pitch) {
        return "the peer says that its rows overlap";
    }
    if (!op->peer->process.is_near && (!ucp_st_direct_pair_is_given(own) ||
                                       !ucp_st_direct_pair_is_given(other))) {
        return "memory has no handle for other processes, nor is it of "
               "ucp_st_mem_alloc()";
    }
    return NULL;
}

/* What is the same for all starts, once all is open */
static void ucp_st_direct_pair_set(ucp_st_direct_op_t *direct, void *buffer)
{
    ucs_gstream_pair_t *pair = &direct->pairing;

    direct->other_buffer = buffer;
    pair->cell           = ucs_gstream_cell_address(direct->op->cell);
    pair->dst            = pair->is_send ? buffer : direct->op->starter.buffer;
    pair->src            = pair->is_send ? direct->op->starter.buffer : buffer;
}

/* Say it if the other side's buffer in memory of the host is not reached */
static ucs_status_t ucp_st_direct_pair_check(const ucp_st_direct_op_t *direct,
                                             ucs_status_t status)
{
    if (status != UCS_OK) {
        ucs_error("operation %p: device %d does not reach the buffer of peer "
                  "0x%lx (%s); UCX_ST_DIRECT_GPU_TIER=service has threads move "
                  "it", direct->op, direct->op->starter.device,
                  direct->op->peer->uuid, ucs_status_string(status));
    }
    return status;
}

/* Find the other side's buffer in this process */
static ucs_status_t
ucp_st_direct_pair_find(ucp_st_direct_op_t *direct,
                        const ucp_st_direct_gpu_t *other, void **buffer_p)
{
    const ucp_st_starter_t *starter = &direct->op->starter;
    void *buffer                    = (void*)(uintptr_t)other->address;
    int device;

    if (other->place == UCP_ST_DIRECT_PLACE_NEAR) {
        return ucp_st_direct_pair_check(direct, ucs_gstream_pair_address(
                starter->type, starter->device, buffer,
                ucp_st_direct_gpu_span(other->rows, direct->length),
                buffer_p));
    }
    *buffer_p = buffer;
    device    = ucs_gstream_ipc_find(starter->type, other->key.device);
    return (device == starter->device) ?
           UCS_OK :
           ucs_gstream_pair_reach(starter->type, starter->device, device);
}

/* Have the other side's buffer be registered here */
static ucs_status_t
ucp_st_direct_pair_open_file(ucp_st_direct_op_t *direct,
                             const ucs_gstream_ipc_key_t *key)
{
    ucp_st_direct_file_t file;
    ucs_status_t status;

    memcpy(&file, key->handle, sizeof(file));
    status = ucp_st_direct_map_open(&file, &direct->other_map);
    if (status == UCS_OK) {
        status = ucp_st_direct_map_register(direct->other_map,
                                            direct->op->starter.type,
                                            &direct->other_ipc);
    }
    if (status == UCS_OK) {
        ucp_st_direct_gpu_await(direct, key->offset);
    }
    return ucp_st_direct_pair_check(direct, status);
}

/* Find the other side's buffer, or have it opened; and wait where the other
 * side does not find this one's at once */
static ucs_status_t ucp_st_direct_pair_open(ucp_st_direct_op_t *direct,
                                            const ucp_st_direct_gpu_t *other)
{
    ucp_st_op_t *op                = direct->op;
    const ucp_st_direct_gpu_t *own = ucp_st_direct_gpu_offered(direct);
    ucs_status_t status;
    void *buffer;

    op->is_opening = !op->peer->process.is_near ||
                     (own->place == UCP_ST_DIRECT_PLACE_FILE) ||
                     (other->place == UCP_ST_DIRECT_PLACE_FILE);
    if (other->place == UCP_ST_DIRECT_PLACE_FILE) {
        return ucp_st_direct_pair_open_file(direct, &other->key);
    }
    if (!op->peer->process.is_near) {
        return ucp_st_direct_gpu_open_ipc(direct, &other->key,
                                          op->starter.device);
    }
    status = ucp_st_direct_pair_find(direct, other, &buffer);
    if (status != UCS_OK) {
        return status;
    }
    ucp_st_direct_pair_set(direct, buffer);
    if (op->is_opening) {
        ucp_st_direct_gpu_await(direct, 0);
    }
    return UCS_OK;
}

ucs_status_t ucp_st_direct_pair_bind(ucp_st_op_t *op,
                                     const ucp_st_direct_gpu_t *other)
{
    ucp_st_direct_op_t *direct     = ucp_st_direct_op(op);
    const ucp_st_direct_gpu_t *own = ucp_st_direct_gpu_offered(direct);
    ucs_gstream_pair_t *pair       = &direct->pairing;
    ucs_status_t status;

    direct->proto  = UCP_ST_DIRECT_PAIRED;
    op->data       = op->buffer; /* it is not staged */
    direct->buffer = op->buffer;
    pair->is_send  = (op->dir == UCP_ST_DIR_SEND);
    pair->dst_rows = pair->is_send ? other->rows : own->rows;
    pair->src_rows = pair->is_send ? own->rows : other->rows;
    pair->length   = direct->length;
    ucs_gstream_word_put(direct->word);
    direct->word = &pair->record->word;
    status       = ucp_st_direct_record_open(other, &pair->other);
    if (status != UCS_OK) {
        ucs_error("operation %p: peer 0x%lx's record at %lu is not reached", op,
                  op->peer->uuid, other->record);
        return status;
    }
    return ucp_st_direct_pair_open(direct, other);
}

ucs_status_t ucp_st_direct_pair_opened(ucp_st_direct_op_t *direct,
                                       void *buffer)
{
    ucp_st_direct_pair_set(direct, buffer);
    __atomic_store_n(&direct->pairing.other->opened, 1, __ATOMIC_RELEASE);
    if (!__atomic_load_n(&direct->pairing.record->opened, __ATOMIC_ACQUIRE)) {
        return UCS_INPROGRESS;
    }
    direct->op->is_opening = 0;
    return UCS_OK;
}

/* A kernel of the application that has not done what was posted ahead may look
 * at both once more: then they stay, and its waits end */
void ucp_st_direct_pair_release(ucp_st_direct_op_t *direct, int is_alone)
{
    int is_ahead;

    if (direct->pairing.record == NULL) {
        return;
    }
    is_ahead = ucp_st_ahead_is_open(direct->pairing.record, direct->op->ahead);
    if (is_alone && !direct->is_lost && !is_ahead) {
        __atomic_store_n(&direct->pairing.record->key, 0, __ATOMIC_RELEASE);
        ucp_st_direct_record_put(direct->pairing.record);
    } else {
        direct->op->cell = NULL; /* it stays, as does the record */
        if (is_ahead) {
            __atomic_store_n(&direct->pairing.record->word, UCP_ST_RELEASE,
                             __ATOMIC_RELEASE);
        }
    }
}

int ucp_st_direct_pair_start_cmds(ucp_st_direct_op_t *direct,
                                  ucp_st_queue_h queue, uint64_t use,
                                  ucs_gstream_cmd_t *cmd)
{
    const ucp_st_op_t *op = direct->op;

    if (direct->is_threaded || (direct->other_buffer == NULL) ||
        !ucs_gstream_pair_serves(queue->stream, op->starter.type,
                                 op->starter.device)) {
        direct->is_threaded = 1;
        return -1;
    }
    direct->pairing.use = use;
    return (int)ucp_st_queue_add_pair(queue, &direct->pairing, cmd);
}

static ucs_status_t ucp_st_direct_pair_refuse(const ucp_st_op_t *op)
{
    ucs_log(op->worker->refuse_level, "operation %p is moved by protocol '%s' "
            "of lane 'direct', which kernels do not start: they have to reach "
            "both buffers, for tier K, and UCX's log (UCX_LOG_LEVEL=diag) says "
            "at the match why a pair is not of that", op,
            op->lane->op.protocol(op));
    return UCS_ERR_UNSUPPORTED;
}

static ucs_status_t ucp_st_direct_pair_device(ucp_st_op_t *op,
                                              ucp_st_device_op_t *device)
{
    ucp_st_direct_op_t *direct = ucp_st_direct_op(op);
    ucs_status_t status        = UCS_OK;
    uint64_t key               = direct->device_key;

    if (direct->proto != UCP_ST_DIRECT_PAIRED) {
        return ucp_st_direct_pair_refuse(op);
    }
    if (key == 0) {
        /* It copies to the device, and the cell is the operation's as long as
         * that is the caller's */
        ucp_st_worker_unlock(op->worker);
        status = ucs_gstream_pair_describe(op->starter.type, op->starter.device,
                                           &direct->pairing, &key);
        ucp_st_worker_lock(op->worker);
    }
    if (status == UCS_OK) {
        direct->device_key = key;
        device->place      = direct->pairing.cell;
        device->key        = key;
    }
    return status;
}

static ucs_gstream_pair_record_t *
ucp_st_direct_pair_own_record(const ucp_st_op_t *op)
{
    return ucp_st_direct_op(op)->pairing.record;
}

static ucs_status_t ucp_st_direct_pair_post(ucp_st_op_t *op,
                                            ucp_st_queue_h queue, uint64_t uses)
{
    ucp_st_direct_op_t *direct        = ucp_st_direct_op(op);
    ucs_gstream_pair_record_t *record = direct->pairing.record;

    if (direct->proto != UCP_ST_DIRECT_PAIRED) {
        return ucp_st_direct_pair_refuse(op);
    }
    /* A kernel of another stream may be about to end the last one */
    if (direct->is_threaded &&
        (__atomic_load_n(&record->ended, __ATOMIC_ACQUIRE) < op->started)) {
        ucp_st_refuse(queue, "uses of operation %p ahead: a thread has started "
                      "the last one, which is not over", op);
        return UCS_ERR_BUSY;
    }
    ucp_st_direct_use_stream(direct, queue);
    return UCS_OK;
}

const ucp_st_lane_ahead_ops_t ucp_st_direct_ahead = {
    .device  = ucp_st_direct_pair_device,
    .record  = ucp_st_direct_pair_own_record,
    .post    = ucp_st_direct_pair_post
};

/* All starts before have begun: a use starts behind the wait for the last one
 */
ucs_status_t ucp_st_direct_pair_start(ucp_st_direct_op_t *direct)
{
    const ucp_st_op_t *op    = direct->op;
    ucs_gstream_pair_t start = direct->pairing;
    ucs_status_t status;

    start.use = direct->begun;
    status    = ucs_gstream_pair_start(op->starter.type, op->starter.device,
                                       &start);
    if (status == UCS_OK) {
        __atomic_store_n(&direct->launched, start.use, __ATOMIC_RELAXED);
    }
    return status;
}

void ucp_st_direct_pair_check_lost(ucp_st_direct_op_t *direct)
{
    const ucp_st_op_t *op = direct->op;

    if ((op->queue != NULL) &&
        __atomic_load_n(&op->queue->is_lost, __ATOMIC_ACQUIRE)) {
        direct->is_lost = 1;
    }
    if (direct->is_lost) {
        __atomic_store_n(&direct->pairing.record->ended, UINT64_MAX,
                         __ATOMIC_RELEASE);
    }
}

ucs_status_t ucp_st_direct_pair_look(ucp_st_direct_op_t *direct)
{
    const ucp_st_op_t *op = direct->op;
    ucs_status_t status;

    if (!direct->is_threaded) {
        return UCS_OK;
    }
    status = ucs_gstream_pair_look(op->starter.type, op->starter.device);
    if (status == UCS_ERR_IO_ERROR) {
        direct->is_lost = 1;
    }
    return (status == UCS_INPROGRESS) ? UCS_OK : status;
}

void ucp_st_direct_pair_halt(ucp_st_direct_op_t *direct)
{
    __atomic_store_n(&direct->pairing.record->halted, 1, __ATOMIC_RELAXED);
    if (direct->pairing.other != NULL) {
        __atomic_store_n(&direct->pairing.other->halted, 1, __ATOMIC_RELAXED);
    }
    __sync_synchronize(); /* pairs with the kernels', behind `begun` */
}

/* NULL: the other side's is not open */
static const ucs_gstream_pair_record_t *
ucp_st_direct_pair_record(const ucp_st_direct_op_t *direct, int is_other)
{
    return is_other ? direct->pairing.other : direct->pairing.record;
}

/* Behind the fence of ucp_st_direct_pair_halt(): what begins later does nothing
 */
int ucp_st_direct_pair_is_moving(const ucp_st_direct_op_t *direct,
                                 int is_other)
{
    const ucs_gstream_pair_record_t *record =
            ucp_st_direct_pair_record(direct, is_other);
    uint64_t begun;

    if (record == NULL) {
        return 0;
    }
    begun = __atomic_load_n(&record->begun, __ATOMIC_ACQUIRE);
    if (!is_other) { /* what a thread has launched may begin yet */
        begun = ucs_max(begun, __atomic_load_n(&direct->launched,
                                               __ATOMIC_RELAXED));
    }
    return __atomic_load_n(&record->ended, __ATOMIC_ACQUIRE) < begun;
}

uint64_t ucp_st_direct_pair_begun(const ucp_st_direct_op_t *direct,
                                  int is_other)
{
    const ucs_gstream_pair_record_t *record =
            ucp_st_direct_pair_record(direct, is_other);

    return (record == NULL) ? 0 :
                              __atomic_load_n(&record->begun, __ATOMIC_RELAXED);
}
