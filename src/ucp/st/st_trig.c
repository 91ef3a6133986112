/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig.c - the trig lane's table of functions.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_trig.h"
#include "st_lane.h"
#include "st_trig_coalesce.h"
#include "st_trig_peer.h"

/* A message in several writes, by the number of NICs */
static const char *ucp_st_trig_chunked_name(const ucp_st_op_t *op)
{
    static const char *const names[UCP_ST_TRIG_MAX_RAILS] = {
        "chunked", "chunked-2", "chunked-3", "chunked-4"
    };

    return names[op->trig.plan.num_shares - 1];
}

static const char *ucp_st_trig_protocol(const ucp_st_op_t *op)
{
    static const char *const names[] = {
        [UCP_ST_TRIG_READY]    = "ready",
        [UCP_ST_TRIG_STANDARD] = "standard",
        [UCP_ST_TRIG_EAGER]    = "eager-ahead"
    };

    if ((op->trig.plan.num_shares > 1) || (op->trig.parts[0].num_puts > 1)) {
        return ucp_st_trig_chunked_name(op);
    }
    return names[op->trig.plan.proto];
}

/* A closed region is written no more, but puts read */
static int ucp_st_trig_uses_buffer(const ucp_st_op_t *op)
{
    return op->trig.is_draining;
}

static void ucp_st_trig_poll(ucp_st_worker_h worker)
{
    (void)worker; /* the NIC does it all */
}

static void ucp_st_trig_leave_queue(ucp_st_op_t *op, ucp_st_queue_h queue)
{
    (void)op;
    (void)queue; /* the NIC has what is under way */
}

const ucp_st_lane_ops_t ucp_st_trig_lane_ops = {
    .name           = "trig",
    .id             = UCP_ST_LANE_TRIG,
    .open           = ucp_st_trig_dev_init,
    .close          = ucp_st_trig_dev_cleanup,
    .address_length = ucp_st_trig_address_length,
    .address_pack   = ucp_st_trig_address_pack,
    .progress       = ucp_st_trig_dev_progress,
    .poll           = ucp_st_trig_poll,
    .flush          = ucp_st_trig_coalesce_flush,
    .query          = ucp_st_trig_dev_query,
    .connect        = ucp_st_trig_peer_connect,
    .disconnect     = ucp_st_trig_peer_disconnect,
    .check          = ucp_st_trig_peer_check,
    .offer          = ucp_st_trig_offer,
    .bind           = ucp_st_trig_bind,
    .post           = ucp_st_trig_post,
    .start_cmds     = ucp_st_trig_start_cmds,
    .start_run      = ucp_st_trig_start_run,
    .wait_words     = ucp_st_trig_wait_words,
    .land_run       = ucp_st_trig_land_run,
    .join           = ucp_st_trig_coalesce_join,
    .leave_queue    = ucp_st_trig_leave_queue,
    .uses_done      = ucp_st_trig_uses_done,
    .uses_landed    = ucp_st_trig_uses_landed,
    .uses_begun     = ucp_st_trig_uses_begun,
    .release_waits  = ucp_st_trig_release_waits,
    .revoke         = ucp_st_trig_revoke,
    .dispose        = ucp_st_trig_dispose,
    .is_busy        = ucp_st_trig_is_busy,
    .uses_buffer    = ucp_st_trig_uses_buffer,
    .release        = ucp_st_trig_release,
    .protocol       = ucp_st_trig_protocol
};
