/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_rma.c - what one-sided operations use of the direct lane.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "direct/st_direct_rma.h"
#include "direct/st_direct_dev.h"

void ucp_st_direct_rma_open(ucp_st_worker_h worker,
                            void (*look)(ucp_st_worker_h worker))
{
    ucp_st_worker_lock(worker); /* the service thread serves already */
    ucp_st_direct_dev(worker)->look_rma = look;
    ucp_st_worker_unlock(worker);
}

/* A signal was carried out in the memory of a peer: wake what sleeps there. The
 * fence pairs with that of ucp_st_direct_rma_sleep(). */
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
    if ((sleepers == 1) && (offset != 0) &&
        (offset <= (map->length - sizeof(*record)))) {
        record = UCS_PTR_BYTE_OFFSET(segment, offset);
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
