/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_pair.c - the direct lane, tier K: the streams of devices move the
 * data by kernels (ucs_gstream_pair.h).
 *
 * A pair is moved so if both buffers are in one device, or in two that reach
 * each other, and each process reaches the other's buffer and record.
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

#include <ucs_gstream_memory.h>

#include <ucs/sys/math.h>

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

void ucp_st_direct_pair_ask(ucp_st_op_t *op)
{
    if ((op->worker->config.direct_gpu_tier != UCP_ST_DIRECT_TIER_SERVICE) &&
        !op->memory.is_managed &&
        (ucs_gstream_pair_prepare(op->memory.type, op->memory.device) ==
         UCS_OK)) {
        op->cell = ucs_gstream_cell_get(op->memory.type, op->memory.device);
    }
}

void ucp_st_direct_pair_offer(const ucp_st_op_t *op, ucp_st_direct_gpu_t *gpu)
{
    ucp_st_direct_op_t *direct = ucp_st_direct_op(op);

    if ((gpu->key.device == 0) || (op->cell == NULL)) {
        return;
    }
    direct->pairing.record = ucp_st_direct_record_get(&gpu->records,
                                                      &gpu->record);
    gpu->has_record = (direct->pairing.record != NULL);
}

const char *ucp_st_direct_pair_why_not(const ucp_st_op_t *op,
                                       const ucp_st_direct_gpu_t *own,
                                       const ucp_st_direct_gpu_t *other)
{
    int is_near = op->peer->process.is_near;

    if ((own->tier == UCP_ST_DIRECT_TIER_SERVICE) ||
        (other->tier == UCP_ST_DIRECT_TIER_SERVICE)) {
        return "UCX_ST_DIRECT_GPU_TIER=service";
    }
    if ((own->key.type != other->key.type) || (own->key.device == 0) ||
        (other->key.device == 0)) {
        return "the two buffers are not in devices of one kind that are known";
    }
    if (!ucp_st_direct_gpu_reaches_device(own, own->key.type,
                                          other->key.device) ||
        !ucp_st_direct_gpu_reaches_device(other, own->key.type,
                                          own->key.device)) {
        return "the two devices do not reach each other";
    }
    if (!own->has_record || !other->has_record) {
        return "the device runs no kernels of the library, or had no room";
    }
    if (other->rows.width > other->rows.pitch) {
        return "the peer says that its rows overlap";
    }
    if (!is_near && (!own->key.is_given || !other->key.is_given)) {
        return "memory has no handle for other processes";
    }
    return NULL;
}

/* What is the same for all starts, once all is open */
static void ucp_st_direct_pair_set(ucp_st_direct_op_t *direct, void *buffer)
{
    ucs_gstream_pair_t *pair = &direct->pairing;

    direct->other_buffer = buffer;
    pair->cell           = ucs_gstream_cell_address(direct->op->cell);
    pair->dst            = pair->is_send ? buffer : direct->buffer;
    pair->src            = pair->is_send ? direct->buffer : buffer;
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
    if (op->peer->process.is_near) {
        if (other->key.device != own->key.device) {
            status = ucs_gstream_pair_reach(
                    op->memory.type, op->memory.device,
                    ucs_gstream_ipc_find(op->memory.type, other->key.device));
        }
        if (status == UCS_OK) {
            ucp_st_direct_pair_set(direct, (void*)(uintptr_t)other->address);
        }
        return status;
    }
    op->is_opening = 1;
    return ucp_st_direct_gpu_open_ipc(direct, &other->key, op->memory.device);
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
        !ucs_gstream_pair_serves(queue->stream, op->memory.type,
                                 op->memory.device)) {
        direct->is_threaded = 1;
        return -1;
    }
    direct->pairing.use = use;
    return (int)ucp_st_queue_add_pair(queue, &direct->pairing, cmd);
}

static ucs_status_t ucp_st_direct_pair_refuse(const ucp_st_op_t *op)
{
    ucs_log(op->worker->refuse_level, "operation %p is moved by protocol '%s' "
            "of lane 'direct', which kernels do not start: both buffers have "
            "to be in devices, for tier K, and UCX's log (UCX_LOG_LEVEL=diag) "
            "says at the match why a pair is not of that", op,
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
        status = ucs_gstream_pair_describe(op->memory.type, op->memory.device,
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
    status    = ucs_gstream_pair_start(op->memory.type, op->memory.device,
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
    status = ucs_gstream_pair_look(op->memory.type, op->memory.device);
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
