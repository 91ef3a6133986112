/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig.c - the trig lane's table of functions.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig.h"
#include "core/st_lane.h"
#include "trig/st_trig_peer.h"

static const char *ucp_st_trig_protocol(const ucp_st_op_t *op)
{
    /* A message in several writes, by the number of NICs */
    static const char *const chunked[UCP_ST_TRIG_MAX_RAILS] = {
        "chunked", "chunked-2", "chunked-3", "chunked-4"
    };
    static const char *const names[]                        = {
        [UCP_ST_TRIG_READY]    = "ready",
        [UCP_ST_TRIG_STANDARD] = "standard",
        [UCP_ST_TRIG_EAGER]    = "eager-ahead"
    };
    ucp_st_trig_op_t *trig                                  =
            ucp_st_trig_op(op);

    if ((trig->plan.num_shares > 1) || (trig->parts[0].num_puts > 1)) {
        return chunked[trig->plan.num_shares - 1];
    }
    return names[trig->plan.proto];
}

/* A closed region is written no more, but puts read */
static int ucp_st_trig_uses_buffer(const ucp_st_op_t *op)
{
    const ucp_st_trig_op_t *trig = ucp_st_trig_op(op);

    return (trig != NULL) && trig->is_draining;
}

const ucp_st_lane_ops_t ucp_st_trig_lane = {
    .name   = "trig",
    .id     = UCP_ST_LANE_TRIG,
    .sizes  = {
        [UCP_ST_OBJECT_WORKER] = sizeof(ucp_st_trig_dev_t),
        [UCP_ST_OBJECT_PEER]   = sizeof(ucp_st_trig_peer_t)
    },
    .worker = {
        .open           = ucp_st_trig_dev_init,
        .close          = ucp_st_trig_dev_cleanup,
        .address_length = ucp_st_trig_address_length,
        .address_pack   = ucp_st_trig_address_pack,
        .progress       = ucp_st_trig_dev_progress,
        .poll           = ucp_st_worker_hook_none,
        .query          = ucp_st_trig_dev_query
    },
    .peer   = {
        .connect    = ucp_st_trig_peer_connect,
        .disconnect = ucp_st_trig_peer_disconnect,
        .check      = ucp_st_trig_peer_check
    },
    .queue  = {
        .init    = ucp_st_queue_hook_none,
        .cleanup = ucp_st_queue_hook_none
    },
    .op     = {
        .offer         = ucp_st_trig_offer,
        .bind          = ucp_st_trig_bind,
        .post          = ucp_st_trig_post,
        .start         = ucp_st_trig_start,
        .wait_words    = ucp_st_trig_wait_words,
        .land          = ucp_st_trig_land,
        .leave_queue   = ucp_st_lane_no_leave_queue,
        .uses_done     = ucp_st_trig_uses_done,
        .halt          = ucp_st_trig_halt,
        .release_waits = ucp_st_trig_release_waits,
        .revoke        = ucp_st_trig_revoke,
        .dispose       = ucp_st_trig_dispose,
        .is_busy       = ucp_st_trig_is_busy,
        .uses_buffer   = ucp_st_trig_uses_buffer,
        .release       = ucp_st_trig_release,
        .protocol      = ucp_st_trig_protocol
    }
};
