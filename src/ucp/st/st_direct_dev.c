/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_dev.c - what the direct lane has once for a worker and for each of
 * its peers: shared memory, and ways to wake service threads and to know that a
 * process has ended.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* pipe2() */
#endif

#include "st_direct_dev.h"
#include "st_direct.h"
#include "st_lane.h"
#include "st_log.h"
#include "st_op.h"
#include "st_peer.h"
#include "st_worker.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Times that the service thread looks once more, after it has moved something,
 * before it sleeps: the peer that wanted it has its next piece ready soon. In
 * between it sleeps for so long, nanoseconds: a yield would give its processor
 * away for a time slice where the stream's kernel needs it as well. */
#define UCP_ST_DIRECT_ROUNDS     50
#define UCP_ST_DIRECT_PAUSE_NSEC 10000

/* When it looks again for the end of a claimed piece, or of somebody's turn,
 * milliseconds */
#define UCP_ST_DIRECT_AGAIN_MSEC 1

void ucp_st_direct_dev_wake(ucp_st_worker_h worker)
{
    ucp_st_service_wake(&worker->direct.service);
}

void ucp_st_direct_dev_kick(ucp_st_peer_t *peer)
{
    char byte = 0;

    (void)!write(peer->direct.kick_fd, &byte, sizeof(byte));
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

    ucs_list_for_each_safe(direct, tmp, &worker->direct.ending, ending) {
        op         = direct->op;
        is_moving |= ucp_st_direct_settle(direct);
        done       = ucp_st_direct_uses_done(op);
        /* One that failed may complete a use while it settles */
        while ((op->state != UCP_ST_OP_FAILED) && (op->completed < done)) {
            ucp_st_op_complete_uses(op, 1);
        }
    }
    return is_moving;
}

static void ucp_st_direct_dev_drain_pipe(ucp_st_direct_dev_t *dev)
{
    char buffer[256];

    while (read(dev->kick[0], buffer, sizeof(buffer)) == sizeof(buffer)) {
        /* until it is empty: it does not block */
    }
}

void ucp_st_direct_dev_break(ucp_st_worker_h worker)
{
    __atomic_store_n(&worker->direct.has_broken, 1, __ATOMIC_RELEASE);
    ucp_st_direct_dev_wake(worker);
}

/* Fail what could not be copied. The lock is held. */
static void ucp_st_direct_dev_fail_broken(ucp_st_worker_h worker)
{
    ucp_st_direct_dev_t *dev = &worker->direct;
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
    const struct timespec pause = {.tv_nsec = UCP_ST_DIRECT_PAUSE_NSEC};
    ucp_st_worker_h worker      = arg;
    ucp_st_direct_dev_t *dev    = &worker->direct;
    unsigned count              = 0;
    int is_busy                 = 0;
    ucp_st_direct_stream_t *stream;

    ucp_st_direct_dev_drain_pipe(dev);
    ucp_st_worker_lock(worker);
    ucs_list_for_each(stream, &dev->streams, list) {
        count += ucp_st_direct_stream_relieve(stream, &is_busy);
    }
    ucp_st_direct_dev_fail_broken(worker);
    is_busy |= ucp_st_direct_dev_end(worker);
    ucp_st_worker_unlock(worker);
    ucp_st_rma_signaled(worker);
    if (count > 0) {
        dev->rounds = UCP_ST_DIRECT_ROUNDS;
    }
    if (dev->rounds > 0) {
        --dev->rounds;
        (void)nanosleep(&pause, NULL);
        return 0;
    }
    return is_busy ? UCP_ST_DIRECT_AGAIN_MSEC : -1;
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
    int has_moved = 0;
    ucp_st_direct_stream_t *stream;

    ucs_list_for_each(stream, &worker->direct.streams, list) {
        has_moved |= ucp_st_direct_stream_poll(stream, UCP_ST_DIRECT_HOST);
    }
    if (has_moved) {
        return;
    }
    ucs_list_for_each(stream, &worker->direct.streams, list) {
        ucp_st_direct_stream_kick(stream);
    }
}

ucp_st_direct_stream_t *ucp_st_direct_dev_get_stream(ucp_st_worker_h worker,
                                                     ucs_gstream_h handle)
{
    ucp_st_direct_dev_t *dev = &worker->direct;
    ucp_st_direct_stream_t *stream;

    ucs_list_for_each(stream, &dev->streams, list) {
        if (stream->handle == handle) {
            ++stream->refs;
            return stream;
        }
    }
    stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        goto err;
    }
    if (ucp_st_direct_stream_init(stream, &dev->seg, handle) != UCS_OK) {
        goto err_free;
    }
    stream->refs = 1;
    ucs_list_add_tail(&dev->streams, &stream->list);
    return stream;

err_free:
    free(stream);
err:
    ucs_diag("stream %p: no room in shared memory (UCX_ST_DIRECT_SIZE): the "
             "service thread attends to it", handle);
    ++dev->orphans.refs;
    ucp_st_direct_stream_park(&dev->orphans);
    return &dev->orphans;
}

void ucp_st_direct_dev_put_stream(ucp_st_worker_h worker,
                                  ucp_st_direct_stream_t *stream)
{
    if ((--stream->refs > 0) || (stream == &worker->direct.orphans)) {
        return;
    }
    ucp_st_direct_stream_count(stream, &worker->stats);
    ucs_list_del(&stream->list);
    ucp_st_direct_stream_cleanup(stream, &worker->direct.seg);
    free(stream);
}

static ucs_status_t ucp_st_direct_dev_pipe_open(ucp_st_direct_dev_t *dev)
{
    if (pipe2(dev->kick, O_CLOEXEC | O_NONBLOCK) != 0) {
        return UCS_ERR_NO_RESOURCE;
    }
    if (ucp_st_direct_file_get(dev->kick[1], &dev->address.kick) != UCS_OK) {
        close(dev->kick[0]);
        close(dev->kick[1]);
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

static void ucp_st_direct_dev_pipe_close(ucp_st_direct_dev_t *dev)
{
    close(dev->kick[0]);
    close(dev->kick[1]);
}

static ucs_status_t ucp_st_direct_dev_init(ucp_st_worker_h worker)
{
    ucp_st_direct_dev_t *dev = &worker->direct;
    ucs_status_t status;

    ucs_list_head_init(&dev->ending);
    ucs_list_head_init(&dev->streams);
    status = ucp_st_direct_seg_init(&dev->seg, worker->config.direct_size,
                                    worker->uuid);
    if (status != UCS_OK) {
        goto err;
    }
    dev->address.segment = dev->seg.map->file;
    dev->address.probe   = (uintptr_t)&worker->uuid;
    status = ucp_st_direct_dev_pipe_open(dev);
    if (status != UCS_OK) {
        goto err_seg;
    }
    dev->service.serve   = ucp_st_direct_dev_serve;
    dev->service.arg     = worker;
    dev->service.fds[0]  = dev->kick[0];
    dev->service.num_fds = 1;
    status = ucp_st_direct_stream_init(&dev->orphans, &dev->seg, NULL);
    if (status != UCS_OK) {
        goto err_pipe;
    }
    ucs_list_add_tail(&dev->streams, &dev->orphans.list);
    dev->is_open = 1;
    status       = ucp_st_service_add(&dev->service);
    if (status != UCS_OK) {
        goto err_orphans;
    }
    return UCS_OK;

err_orphans:
    dev->is_open = 0;
    ucp_st_direct_stream_cleanup(&dev->orphans, &dev->seg);
err_pipe:
    ucp_st_direct_dev_pipe_close(dev);
err_seg:
    ucp_st_direct_seg_cleanup(&dev->seg);
err:
    return status;
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

static ucs_status_t ucp_st_direct_dev_check_config(ucp_st_worker_h worker)
{
    const ucp_st_config_t *config = &worker->config;
    ucs_status_t status;

    status = ucp_st_direct_dev_check_range(worker, "DIRECT_SIZE",
                                           config->direct_size, 64ul << 10,
                                           1ul << 40);
    return (status != UCS_OK) ? status :
           ucp_st_direct_dev_check_range(worker, "DIRECT_PIECE",
                                         config->direct_piece, 1ul << 10,
                                         1ul << 20);
}

ucs_status_t ucp_st_direct_dev_open(ucp_st_worker_h worker)
{
    ucs_status_t status = ucp_st_direct_dev_check_config(worker);

    if (status != UCS_OK) {
        return status;
    }
    if (ucp_st_process_is_lost(&worker->place)) {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_DIRECT,
                           "lane 'direct': /proc does not tell where this "
                           "process is");
        return UCS_ERR_UNSUPPORTED;
    }
    status = ucp_st_direct_dev_init(worker);
    if (status != UCS_OK) {
        ucp_st_lane_refuse(worker, UCP_ST_LANE_DIRECT,
                           "lane 'direct': no shared memory: %s (%m)",
                           ucs_status_string(status));
    }
    return status;
}

void ucp_st_direct_dev_close(ucp_st_worker_h worker)
{
    ucp_st_direct_dev_t *dev = &worker->direct;

    ucp_st_service_remove(&dev->service);
    dev->is_open = 0;
    ucp_st_direct_stream_cleanup(&dev->orphans, &dev->seg);
    ucp_st_direct_dev_pipe_close(dev);
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
    memcpy(buffer, &worker->direct.address, sizeof(worker->direct.address));
    return UCS_OK;
}

static ucs_status_t
ucp_st_direct_dev_open_peer(ucp_st_peer_t *peer,
                            const ucp_st_direct_address_t *address)
{
    ucp_st_direct_peer_t *direct = &peer->direct;
    ucs_status_t status;

    status = ucp_st_direct_map_open(&address->segment, &direct->map);
    if (status != UCS_OK) {
        return status;
    }
    /* Who has it open for reading, too, gets no signal when the peer is gone */
    direct->kick_fd = ucp_st_direct_file_open(&address->kick, "pipe:", O_RDWR);
    if ((direct->kick_fd < 0) ||
        !ucp_st_direct_seg_is_valid(direct->map, peer->uuid)) {
        status = UCS_ERR_UNREACHABLE;
        goto err_map;
    }
    return UCS_OK;

err_map:
    if (direct->kick_fd >= 0) {
        close(direct->kick_fd);
    }
    ucp_st_direct_map_put(direct->map);
    return status;
}

ucs_status_t ucp_st_direct_dev_connect(ucp_st_peer_t *peer, const void *buffer,
                                       size_t length)
{
    ucp_st_direct_address_t address;

    if (length != sizeof(address)) {
        return UCS_ERR_INVALID_ADDR;
    }
    memcpy(&address, buffer, sizeof(address));
    if (!ucp_st_process_is_here(&peer->process)) {
        return UCS_ERR_UNREACHABLE; /* it is on another node */
    }
    peer->direct.can_attach =
            !peer->process.is_near &&
            ucp_st_direct_attach_probe(peer->process.pid, address.probe,
                                       peer->uuid);
    return ucp_st_direct_dev_open_peer(peer, &address);
}

void ucp_st_direct_dev_disconnect(ucp_st_peer_t *peer)
{
    close(peer->direct.kick_fd);
    ucp_st_direct_map_put(peer->direct.map);
}
