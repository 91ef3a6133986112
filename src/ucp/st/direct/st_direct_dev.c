/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_dev.c - what the direct lane has once for a worker and for each of
 * its peers: shared memory and pipes that wake service threads; and what the
 * service thread does: it moves uses that streams do not attend to, and ends
 * operations.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* pipe2() */
#endif

#include "direct/st_direct.h"
#include "direct/st_direct_rma.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_ucp.h"

#include <ucs_memfd.h>

#include <ucs/sys/math.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Times that the service thread looks once more, after it has moved something,
 * before it sleeps: the peer that needs it has its next piece ready soon. */
#define UCP_ST_DIRECT_ROUNDS 50

/* When it looks again for the end of a claimed piece or a device's copy, for
 * memory that is being opened, or for another mover, milliseconds */
#define UCP_ST_DIRECT_AGAIN_MSEC 1

/* Shortest segment, bytes */
#define UCP_ST_DIRECT_SIZE_MIN (64ul << 10)

void ucp_st_direct_dev_wake(ucp_st_worker_h worker)
{
    ucp_st_service_wake(&ucp_st_direct_dev(worker)->service);
}

/* The fence pairs with the exchange in ucp_st_direct_dev_listen(): the thread
 * finds what was stored before, or it is seen not to look any more. A killed or
 * stopped process leaves nothing behind that keeps others from writing. */
void ucp_st_direct_dev_notify(ucp_st_peer_t *peer)
{
    const ucp_st_direct_peer_t *direct     = ucp_st_direct_peer(peer);
    const ucp_st_direct_segment_t *segment = direct->map->address;
    char byte                              = 0;

    __sync_synchronize();
    if (!__atomic_load_n(&segment->is_looking, __ATOMIC_RELAXED)) {
        (void)!write(direct->notify_fd, &byte, sizeof(byte));
    }
}

/* Before the thread looks: whether it will look once more, so that peers need
 * not wake it */
static void ucp_st_direct_dev_listen(ucp_st_direct_dev_t *dev, int is_looking)
{
    ucp_st_direct_segment_t *segment = dev->seg.map->address;

    if (segment->is_looking != (uint32_t)is_looking) {
        (void)__atomic_exchange_n(&segment->is_looking, is_looking,
                                  __ATOMIC_SEQ_CST);
    }
}

void ucp_st_direct_stream_wake(ucp_st_direct_stream_t *stream)
{
    (void)__atomic_fetch_add(&stream->wakeups, 1, __ATOMIC_RELAXED);
    ucp_st_direct_dev_wake(stream->worker);
}

void ucp_st_direct_notify(const ucp_st_direct_op_t *direct)
{
    (void)__atomic_fetch_add(&direct->stream->wakeups, 1, __ATOMIC_RELAXED);
    ucp_st_direct_dev_notify(direct->op->peer);
}

/* An operation that was freed, and has settled, waits for its peer alone: until
 * that leaves there may be many such. One that kernels move is looked at to the
 * end, as its device may be lost. */
static int ucp_st_direct_dev_is_over(const ucp_st_direct_op_t *direct)
{
    const ucp_st_op_t *op = direct->op;

    return op->freed && (direct->proto != UCP_ST_DIRECT_PAIRED) &&
           !ucp_st_op_is_on_stream(op) &&
           ((op->state == UCP_ST_OP_FAILED) || (op->completed == op->started));
}

/* Uses that have completed since the last time, of operations that their peers
 * have left, and waits that are to be released; non-zero if one has to wait.
 * The lock is held. */
static int ucp_st_direct_dev_end(ucp_st_worker_h worker)
{
    int is_moving = 0;
    ucp_st_direct_op_t *direct, *tmp;
    ucp_st_op_t *op;
    uint64_t done;
    int is_busy;

    ucs_list_for_each_safe(direct, tmp, &ucp_st_direct_dev(worker)->ending,
                           ending) {
        op         = direct->op;
        is_busy    = ucp_st_direct_settle(direct);
        is_moving |= is_busy;
        if (!ucp_st_direct_is_copying(direct)) {
            ucp_st_op_settled(op);
        }
        done       = ucp_st_direct_uses_done(op);
        /* One that failed may complete a use while it settles */
        while ((op->state != UCP_ST_OP_FAILED) && (op->completed < done)) {
            ucp_st_op_complete_uses(op, 1);
        }
        if (!is_busy && ucp_st_direct_dev_is_over(direct)) {
            ucs_list_del(&direct->ending);
            direct->is_listed = 0;
        }
    }
    return is_moving;
}

/* Fail what could not be copied. The lock is held. */
static void ucp_st_direct_dev_fail_broken(ucp_st_worker_h worker)
{
    ucp_st_direct_dev_t *dev = ucp_st_direct_dev(worker);
    ucp_st_direct_stream_t *stream;
    ucs_status_t status;
    ucp_st_op_t *op;

    if (!__atomic_exchange_n(&dev->has_broken, 0, __ATOMIC_ACQUIRE)) {
        return;
    }
    ucs_list_for_each(stream, &dev->streams, list) {
        while ((op = ucp_st_direct_stream_broken(stream, &status)) != NULL) {
            ucp_st_op_fail(op, status);
        }
    }
}

/* In the service thread */
static int ucp_st_direct_dev_serve(void *arg)
{
    ucp_st_worker_h worker   = arg;
    ucp_st_direct_dev_t *dev = ucp_st_direct_dev(worker);
    int is_last              = (dev->rounds == 0); /* unless it moves something
                                                    */
    int has_moved            = 0;
    int is_busy;
    ucp_st_direct_stream_t *stream;
    char buffer[4096];
    int moves;

    /* What is left in it wakes the thread again */
    (void)!read(dev->pipe[0], buffer, sizeof(buffer));
    ucp_st_direct_dev_listen(dev, !is_last);
    ucp_st_worker_lock(worker);
    is_busy = ucp_st_direct_gpu_look(worker, &has_moved);
    ucs_list_for_each(stream, &dev->streams, list) {
        moves      = ucp_st_direct_stream_relieve(stream);
        has_moved |= (moves > 0);
        is_busy   |= (moves < 0) || ucp_st_direct_stream_is_copying(stream);
        /* It is about to sleep: for a parked stream it does what others do
         * themselves before they sleep */
        if ((moves == 0) && is_last &&
            __atomic_load_n(&stream->record->is_parked, __ATOMIC_ACQUIRE)) {
            ucp_st_direct_stream_notify(stream);
        }
    }
    if (has_moved) {
        dev->rounds = UCP_ST_DIRECT_ROUNDS;
    } else if (dev->rounds > 0) {
        --dev->rounds;
    }
    ucp_st_direct_dev_fail_broken(worker);
    is_busy |= ucp_st_direct_dev_end(worker);
    dev->look_rma(worker);
    ucp_st_worker_unlock(worker);
    return ((dev->rounds > 0) || !is_last) ? UCP_ST_SERVICE_SOON :
           is_busy                         ? UCP_ST_DIRECT_AGAIN_MSEC : -1;
}

unsigned ucp_st_direct_dev_progress(ucp_st_worker_h worker)
{
    (void)ucp_st_direct_dev_end(worker);
    return 0;
}

/* A host asks again and again, and no stream may wait: what this side can do is
 * done, and peers that have to go on are woken */
void ucp_st_direct_dev_poll(ucp_st_worker_h worker)
{
    ucp_st_direct_dev_t *dev = ucp_st_direct_dev(worker);
    int has_moved            = 0;
    int is_copying           = 0;
    ucp_st_direct_stream_t *stream;

    ucs_list_for_each(stream, &dev->streams, list) {
        has_moved  |= (ucp_st_direct_stream_relieve(stream) > 0);
        is_copying |= ucp_st_direct_stream_is_copying(stream);
    }
    if (has_moved) {
        if (is_copying) {
            ucp_st_direct_dev_wake(worker); /* the host may not ask again */
        }
        return;
    }
    ucs_list_for_each(stream, &dev->streams, list) {
        ucp_st_direct_stream_notify(stream);
    }
}

/* Streams move the messages by functions, and while they wait */
int ucp_st_direct_dev_serves(ucp_st_worker_h worker, ucs_gstream_type_t type)
{
    const unsigned caps = UCS_GSTREAM_CAP_CHEAP | UCS_GSTREAM_CAP_HELP;

    return (ucs_gstream_type_caps(type) & caps) == caps;
}

ucs_status_t ucp_st_direct_dev_query(ucp_st_worker_h worker,
                                     ucp_st_worker_attr_t *attr)
{
    ucp_st_direct_stream_t *stream;

    ucs_list_for_each(stream, &ucp_st_direct_dev(worker)->streams, list) {
        ucp_st_direct_stream_count(stream, &attr->stats);
    }
    return UCS_OK;
}

static ucs_status_t
ucp_st_direct_dev_check_range(ucp_st_worker_h worker, const char *name,
                              size_t value, size_t min, size_t max)
{
    if ((value >= min) && (value <= max)) {
        return UCS_OK;
    }
    ucp_st_lane_refuse(worker, UCP_ST_LANE_NONE,
                       "UCX_ST_%s: %zu bytes are not between %zu and %zu", name,
                       value, min, max);
    return UCS_ERR_INVALID_PARAM;
}

/* How long the segment can be, bytes: files may be shorter. 0, and the lane is
 * refused, if that is not enough. */
static size_t ucp_st_direct_dev_size(ucp_st_worker_h worker)
{
    size_t max = ucs_memfd_max();

    if (max < UCP_ST_DIRECT_SIZE_MIN) {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_DIRECT,
                           "lane 'direct' needs a file of %lu bytes, and "
                           "'ulimit -f' allows %zu", UCP_ST_DIRECT_SIZE_MIN,
                           max);
        return 0;
    }
    if (max < worker->config.direct_size) {
        ucs_diag("lane 'direct': 'ulimit -f' allows %zu of the %zu bytes of "
                 "UCX_ST_DIRECT_SIZE", max, worker->config.direct_size);
    }
    return ucs_min(worker->config.direct_size, max);
}

ucs_status_t ucp_st_direct_dev_open(ucp_st_worker_h worker)
{
    ucp_st_direct_dev_t *dev = ucp_st_direct_dev(worker);
    ucs_status_t status;
    size_t length;

    if (!ucp_st_ucp_has_shm()) {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_DIRECT,
                           "lane 'direct' needs a transport of shared memory "
                           "(sm), which UCX_TLS=%s leaves out",
                           getenv("UCX_TLS"));
        return UCS_ERR_UNSUPPORTED;
    }
    status = ucp_st_direct_dev_check_range(worker, "DIRECT_SIZE",
                                           worker->config.direct_size,
                                           UCP_ST_DIRECT_SIZE_MIN, 1ul << 40);
    if (status == UCS_OK) {
        status = ucp_st_direct_dev_check_range(worker, "DIRECT_PIECE",
                                               worker->config.direct_piece,
                                               1ul << 10,
                                               UCP_ST_DIRECT_PIECE_MAX);
    }
    if (status != UCS_OK) {
        return status;
    }
    if (ucp_st_process_is_lost(&worker->place)) {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_DIRECT,
                           "lane 'direct': failed to find this process in "
                           "/proc");
        return UCS_ERR_UNSUPPORTED;
    }
    length = ucp_st_direct_dev_size(worker);
    if (length == 0) {
        return UCS_ERR_NO_RESOURCE;
    }
    dev->look_rma = ucp_st_worker_hook_none;
    ucs_list_head_init(&dev->ending);
    ucs_list_head_init(&dev->opening);
    ucs_list_head_init(&dev->streams);
    status = ucp_st_direct_seg_init(&dev->seg, length, worker->uuid);
    if (status != UCS_OK) {
        goto err;
    }
    if (pipe2(dev->pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
        status = UCS_ERR_NO_RESOURCE;
        goto err_seg;
    }
    dev->address.segment = dev->seg.map->file;
    dev->address.probe   = (uintptr_t)&worker->uuid;
    status = ucp_st_direct_file_get(dev->pipe[1], &dev->address.notify);
    if (status != UCS_OK) {
        goto err_pipe;
    }
    status = ucp_st_direct_stream_init(&dev->parked, worker, NULL);
    if (status != UCS_OK) {
        goto err_pipe;
    }
    ucs_list_add_tail(&dev->streams, &dev->parked.list);
    dev->service.serve   = ucp_st_direct_dev_serve;
    dev->service.arg     = worker;
    dev->service.fds[0]  = dev->pipe[0];
    dev->service.num_fds = 1;
    status = ucp_st_service_add(&dev->service);
    if (status != UCS_OK) {
        goto err_parked;
    }
    return UCS_OK;

err_parked:
    ucp_st_direct_stream_cleanup(&dev->parked);
err_pipe:
    close(dev->pipe[0]);
    close(dev->pipe[1]);
err_seg:
    ucp_st_direct_seg_cleanup(&dev->seg);
err:
    ucp_st_lane_refuse(worker, UCP_ST_LANE_DIRECT,
                       "lane 'direct': no shared memory: %s (%m)",
                       ucs_status_string(status));
    return status;
}

void ucp_st_direct_dev_close(ucp_st_worker_h worker)
{
    ucp_st_direct_dev_t *dev = ucp_st_direct_dev(worker);

    ucp_st_service_remove(&dev->service);
    ucp_st_direct_stream_cleanup(&dev->parked);
    close(dev->pipe[0]);
    close(dev->pipe[1]);
    ucp_st_direct_seg_cleanup(&dev->seg);
}

size_t ucp_st_direct_dev_address_length(ucp_st_worker_h worker)
{
    (void)worker;
    return sizeof(ucp_st_direct_address_t);
}

ucs_status_t ucp_st_direct_dev_address_pack(ucp_st_worker_h worker,
                                            void *buffer)
{
    ucp_st_direct_dev_t *dev = ucp_st_direct_dev(worker);

    memcpy(buffer, &dev->address, sizeof(dev->address));
    return UCS_OK;
}

ucs_status_t ucp_st_direct_dev_connect(ucp_st_peer_t *peer, const void *buffer,
                                       size_t length)
{
    ucp_st_direct_dev_t *dev     = ucp_st_direct_dev(peer->worker);
    ucp_st_direct_peer_t *direct = ucp_st_direct_peer(peer);
    const ucp_st_direct_segment_t *segment;
    ucp_st_direct_address_t address;
    ucs_status_t status;

    if (length != sizeof(address)) {
        return UCS_ERR_INVALID_ADDR;
    }
    memcpy(&address, buffer, sizeof(address));
    if (!ucp_st_process_is_here(&peer->process)) {
        return UCS_ERR_UNREACHABLE; /* it is on another node */
    }
    if (!peer->process.is_open) {
        ucs_log(dev->is_apart ? UCS_LOG_LEVEL_DIAG : UCS_LOG_LEVEL_WARN,
                "lane 'direct' does not reach process %u of this node, which "
                "is in another user namespace (a container's?): another lane "
                "serves", peer->process.pid);
        dev->is_apart = 1;
        return UCS_ERR_UNREACHABLE;
    }
    direct->can_attach = !peer->process.is_near &&
                         ucp_st_direct_attach_probe(peer->process.pid,
                                                    address.probe, peer->uuid);
    status = ucp_st_direct_map_open(&address.segment, &direct->map);
    if (status != UCS_OK) {
        return status;
    }
    segment = direct->map->address;
    /* Addresses of memory are taken from workers of this process alone */
    if ((direct->map->length < sizeof(*segment)) ||
        (segment->magic != UCP_ST_DIRECT_MAGIC) ||
        (segment->uuid != peer->uuid) ||
        (peer->process.is_near && !ucp_st_direct_map_is_own(direct->map))) {
        goto err_map;
    }
    /* Open for reading, too: else a write is a signal when the peer is gone */
    direct->notify_fd = ucp_st_direct_file_open(&address.notify, "pipe:",
                                                O_RDWR);
    if (direct->notify_fd < 0) {
        goto err_map;
    }
    return UCS_OK;

err_map:
    ucp_st_direct_map_put(direct->map);
    return UCS_ERR_UNREACHABLE;
}

void ucp_st_direct_dev_disconnect(ucp_st_peer_t *peer)
{
    ucp_st_direct_peer_t *direct = ucp_st_direct_peer(peer);

    close(direct->notify_fd);
    ucp_st_direct_map_put(direct->map);
}

void ucp_st_direct_rma_open(ucp_st_worker_h worker,
                            void (*look)(ucp_st_worker_h worker))
{
    ucp_st_worker_lock(worker); /* the service thread serves already */
    ucp_st_direct_dev(worker)->look_rma = look;
    ucp_st_worker_unlock(worker);
}

/* The addition is a fence, which pairs with that of
 * ucp_st_direct_rma_sleep() */
void ucp_st_direct_rma_notify(ucp_st_peer_t *peer)
{
    const ucp_st_direct_map_t *map   = ucp_st_direct_peer(peer)->map;
    ucp_st_direct_segment_t *segment = map->address;
    ucp_st_direct_record_t *record;
    uint32_t sleepers;
    uint64_t offset;

    sleepers = __atomic_fetch_add(&segment->signal_sleepers, 0,
                                  __ATOMIC_SEQ_CST);
    if (sleepers == 0) {
        return;
    }
    offset = __atomic_load_n(&segment->signal_record, __ATOMIC_SEQ_CST);
    record = ucp_st_direct_find_record(segment, map->length - sizeof(*record),
                                       offset);
    if ((sleepers == 1) && (record != NULL)) {
        ucs_gstream_notify(&record->notify);
    } else {
        ucp_st_direct_dev_notify(peer);
    }
}

void ucp_st_direct_rma_sleep(ucp_st_queue_h queue, int is_notified)
{
    ucp_st_direct_stream_t *stream = ucp_st_direct_queue(queue);
    ucp_st_direct_segment_t *segment;

    if (stream == NULL) {
        return;
    }
    segment = stream->segment;
    __atomic_fetch_add(&segment->signal_sleepers, 1, __ATOMIC_SEQ_CST);
    if (is_notified && (stream->handle != NULL)) {
        __atomic_store_n(&segment->signal_record,
                         UCS_PTR_BYTE_DIFF(segment, stream->record),
                         __ATOMIC_SEQ_CST);
    }
    __sync_synchronize();
}

void ucp_st_direct_rma_awake(ucp_st_queue_h queue)
{
    ucp_st_direct_stream_t *stream = ucp_st_direct_queue(queue);
    ucp_st_direct_segment_t *segment;
    uint64_t record;

    if (stream == NULL) {
        return;
    }
    segment = stream->segment;
    record  = UCS_PTR_BYTE_DIFF(segment, stream->record);
    /* First, so that with one sleeper left the record is not this one */
    (void)__atomic_compare_exchange_n(&segment->signal_record, &record, 0, 0,
                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(&segment->signal_sleepers, 1, __ATOMIC_SEQ_CST);
}
