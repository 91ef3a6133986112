/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_component.c - one-sided operations, as core sees them.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "rma/st_rma.h"
#include "core/st_lane.h"
#include "rma/st_rma_host.h"
#include "rma/st_rma_trig.h"
#include "trig/st_trig_rma.h"

#include <stdlib.h>

static void ucp_st_rma_init(ucp_st_worker_h worker)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(worker);

    kh_init_inplace(ucp_st_mems, &dev->mems);
    ucs_list_head_init(&dev->ready);
    ucs_list_head_init(&dev->free_ops);
    ucs_list_head_init(&dev->free_trig_ops);
    ucs_list_head_init(&dev->trigs);
    ucs_list_head_init(&dev->waits);
    ucs_list_head_init(&dev->free_waits);
    (void)pthread_mutex_init(&dev->wait_lock, NULL);
}

/* Each lane that is open gets what one-sided operations do in it */
static ucs_status_t ucp_st_rma_open(ucp_st_worker_h worker)
{
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        if (worker->lanes[i]->id == UCP_ST_LANE_TRIG) {
            ucp_st_trig_rma_open(worker, ucp_st_rma_trig_progress);
        } else if (worker->lanes[i]->id == UCP_ST_LANE_DIRECT) {
            ucp_st_direct_rma_open(worker, ucp_st_rma_signaled);
        }
    }
    return ucp_st_rma_host_open(worker);
}

static int ucp_st_rma_is_used(ucp_st_worker_h worker)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(worker);

    return (kh_size(&dev->mems) > 0) || (dev->num_rkeys > 0);
}

static ucp_st_drain_t ucp_st_rma_drain(ucp_st_worker_h worker)
{
    return ucs_list_is_empty(&ucp_st_rma_dev(worker)->trigs) ?
           UCP_ST_DRAIN_DONE : UCP_ST_DRAIN_ANSWERS;
}

static ucs_status_t ucp_st_rma_start(ucp_st_worker_h worker)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(worker);

    dev->service.serve = ucp_st_rma_serve;
    dev->service.arg   = worker;
    return ucp_st_service_add(&dev->service);
}

static void ucp_st_rma_stop(ucp_st_worker_h worker)
{
    ucp_st_service_remove(&ucp_st_rma_dev(worker)->service);
}

static void ucp_st_rma_cleanup(ucp_st_worker_h worker)
{
    ucp_st_rma_dev_t *dev = ucp_st_rma_dev(worker);

    ucp_st_rma_objs_free(&dev->free_waits);
    ucp_st_rma_objs_free(&dev->free_ops);
    ucp_st_rma_objs_free(&dev->free_trig_ops);
    kh_destroy_inplace(ucp_st_mems, &dev->mems);
    (void)pthread_mutex_destroy(&dev->wait_lock);
}

static void ucp_st_rma_peer_init(ucp_st_peer_t *peer)
{
    ucs_list_head_init(&ucp_st_rma_peer(peer)->ops);
}

static int ucp_st_rma_peer_is_used(ucp_st_peer_t *peer)
{
    ucp_st_rma_peer_t *rma = ucp_st_rma_peer(peer);

    return (rma->num_trig > 0) || !ucs_list_is_empty(&rma->ops);
}

static int ucp_st_rma_peer_is_awaited(ucp_st_peer_t *peer)
{
    return __atomic_load_n(&ucp_st_rma_peer(peer)->num_waits,
                           __ATOMIC_RELAXED) > 0;
}

static void ucp_st_rma_peer_gone(ucp_st_peer_t *peer)
{
    ucp_st_queue_h queue;
    ucp_st_rma_flow_t *flow;
    volatile uint64_t *word;

    ucp_st_rma_wait_end_dead(peer->worker);
    /* Operations that streams have not come to, and no other thread ends */
    ucs_list_for_each(queue, &peer->worker->queues, list) {
        word = &ucp_st_queue_rma(queue)->words[UCP_ST_LANE_DIRECT];
        ucs_list_for_each(flow, &ucp_st_queue_rma(queue)->flows, list) {
            if ((flow->peer == peer) &&
                (flow->last[UCP_ST_LANE_DIRECT] >
                 __atomic_load_n(word, __ATOMIC_ACQUIRE))) {
                ucp_st_queue_fail(queue, NULL, peer->status);
            }
        }
    }
    ucp_st_rma_host_peer_gone(peer);
    ucp_st_rma_trig_peer_gone(peer);
}

static void ucp_st_rma_queue_init(ucp_st_queue_h queue)
{
    ucs_list_head_init(&ucp_st_queue_rma(queue)->flows);
}

static int ucp_st_rma_queue_has_open(ucp_st_queue_h queue)
{
    ucp_st_queue_rma_t *rma = ucp_st_queue_rma(queue);
    unsigned i;

    for (i = 0; i < UCP_ST_LANE_LAST; ++i) {
        /* Pairs with the addition in ucp_st_rma_ended() */
        if (__atomic_load_n(&rma->words[i], __ATOMIC_ACQUIRE) <
            rma->issued[i]) {
            return 1;
        }
    }
    return 0;
}

static int ucp_st_rma_queue_is_busy(ucp_st_queue_h queue)
{
    if (ucp_st_rma_queue_has_open(queue)) {
        ucp_st_rma_reap(queue->worker); /* it may be over */
    }
    return ucp_st_rma_queue_has_open(queue);
}

static void ucp_st_rma_queue_fail(ucp_st_queue_h queue)
{
    ucp_st_rma_look(queue->worker);
}

static void ucp_st_rma_queue_count(ucp_st_queue_h queue, ucp_st_stats_t *stats)
{
    ucp_st_queue_rma_t *rma                     = ucp_st_queue_rma(queue);
    uint64_t *const sums[UCP_ST_RMA_COUNT_LAST] = {
        [UCP_ST_RMA_COUNT_PUT]    = &stats->puts,
        [UCP_ST_RMA_COUNT_GET]    = &stats->gets,
        [UCP_ST_RMA_COUNT_SIGNAL] = &stats->signals,
        [UCP_ST_RMA_COUNT_WAIT]   = &stats->signal_waits,
        [UCP_ST_RMA_COUNT_QUIET]  = &stats->quiets
    };
    unsigned i;

    for (i = 0; i < UCP_ST_LANE_LAST; ++i) {
        stats->lanes[i].rmas += ucp_st_queue_count(&rma->issued[i], 0);
    }
    for (i = 0; i < UCP_ST_RMA_COUNT_LAST; ++i) {
        *sums[i] += ucp_st_queue_count(&rma->counts[i], 0);
    }
}

static void ucp_st_rma_queue_cleanup(ucp_st_queue_h queue)
{
    ucp_st_queue_rma_t *rma = ucp_st_queue_rma(queue);
    ucp_st_rma_flow_t *flow, *tmp;

    ucs_list_for_each_safe(flow, tmp, &rma->flows, list) {
        free(flow);
    }
    if (rma->trig != NULL) {
        ucp_st_rma_trig_leave(rma->trig);
    }
}

/* The service thread asks about the peers, and what operations have of lanes
 * goes with these */
static const ucp_st_worker_hooks_t ucp_st_rma_worker_hooks = {
    .init    = ucp_st_rma_init,
    .open    = ucp_st_rma_open,
    .start   = ucp_st_rma_start,
    .is_used = ucp_st_rma_is_used,
    .drain   = ucp_st_rma_drain,
    .ask     = ucp_st_worker_hook_none,
    .stop    = ucp_st_rma_stop,
    .close   = ucp_st_worker_hook_none,
    .cleanup = ucp_st_rma_cleanup
};

static const ucp_st_peer_hooks_t ucp_st_rma_peer_hooks = {
    .init       = ucp_st_rma_peer_init,
    .gone       = ucp_st_rma_peer_gone,
    .is_used    = ucp_st_rma_peer_is_used,
    .is_awaited = ucp_st_rma_peer_is_awaited
};

static const ucp_st_queue_hooks_t ucp_st_rma_queue_hooks = {
    .init    = ucp_st_rma_queue_init,
    .is_busy = ucp_st_rma_queue_is_busy,
    .fail    = ucp_st_rma_queue_fail,
    .count   = ucp_st_rma_queue_count,
    .cleanup = ucp_st_rma_queue_cleanup
};

const ucp_st_component_t ucp_st_rma_component = {
    .part   = UCP_ST_PART_RMA,
    .sizes  = {
        [UCP_ST_OBJECT_WORKER] = sizeof(ucp_st_rma_dev_t),
        [UCP_ST_OBJECT_PEER]   = sizeof(ucp_st_rma_peer_t),
        [UCP_ST_OBJECT_QUEUE]  = sizeof(ucp_st_queue_rma_t)
    },
    .worker = &ucp_st_rma_worker_hooks,
    .peer   = &ucp_st_rma_peer_hooks,
    .queue  = &ucp_st_rma_queue_hooks
};
