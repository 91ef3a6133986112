/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_rma.c - what one-sided operations use of the trig lane.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig_rma.h"
#include "trig/st_trig_dev.h"
#include "trig/st_trig_peer.h"

void ucp_st_trig_rma_open(ucp_st_worker_h worker,
                          void (*progress)(ucp_st_worker_h worker))
{
    ucp_st_worker_lock(worker); /* the service thread reaps already */
    ucp_st_trig_dev(worker)->progress_rma = progress;
    ucp_st_worker_unlock(worker);
}

ucp_st_trig_rail_t *ucp_st_trig_rma_rail(ucp_st_worker_h worker)
{
    return &ucp_st_trig_dev(worker)->rails[0];
}

uct_ep_h ucp_st_trig_rma_ep(ucp_st_peer_t *peer)
{
    return ucp_st_trig_peer(peer)->eps[0];
}

size_t ucp_st_trig_rma_put_max(ucp_st_peer_t *peer)
{
    return ucp_st_trig_peer(peer)->limits.put_max;
}

int ucp_st_trig_rma_is_untold(ucp_st_worker_h worker)
{
    return ucp_st_trig_dev(worker)->num_rails > 0;
}
