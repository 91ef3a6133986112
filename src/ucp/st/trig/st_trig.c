/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig.c - the trig lane: its table of functions, and what the stream does
 * for one operation.
 *
 * A stream triggers a NIC by a store to the trigger page of a counter. Where
 * the provider has no such page, the stream calls a function that adds to the
 * counter.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig.h"
#include "core/st_log.h"
#include "core/st_queue.h"
#include "core/st_worker.h"

_Static_assert((UCP_ST_TRIG_MAX_RAILS <= UCP_ST_LANE_MAX_CMDS) &&
               (2 <= UCP_ST_LANE_MAX_CMDS), "commands of all rails");

/* Runs on the stream */
static void ucp_st_trig_add_func(void *arg)
{
    ucp_st_trig_part_t *part = arg;
    ucp_st_op_t *op          = part->op;
    ucs_status_t status;

    /* Pairs with the release store in ucp_st_trig_halt(): a stream that passed
     * a released wait starts nothing any more */
    if (__atomic_load_n(&ucp_st_trig_op(op)->halted, __ATOMIC_ACQUIRE)) {
        return;
    }
    /* As for a stream's store to a trigger page: the loads of a copy out of an
     * inbox come before the clear-to-send, behind which the peer's next put
     * writes to what they read */
    __sync_synchronize();
    status = uct_trig_cntr_add(part->start, ucp_st_trig_weight(op));
    if (status != UCS_OK) {
        /* The use will never complete. A stream takes no lock: the service
         * thread fails the operation. */
        ucs_error("operation %p: failed to trigger the NIC: %s", op,
                  ucs_status_string(status));
        __atomic_store_n(&ucp_st_trig_op(op)->untriggered, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&ucp_st_trig_dev(op->worker)->untriggered, 1,
                         __ATOMIC_RELEASE);
        ucp_st_trig_dev_wake(op->worker);
    }
}

/* Add to T or R. A stream's store to a trigger page comes after all that the
 * stream did before, loads as well. */
static void ucp_st_trig_add_cmd(ucp_st_trig_part_t *part,
                                ucs_gstream_cmd_t *cmd)
{
    if (part->doorbell == NULL) {
        cmd->type        = UCS_GSTREAM_CMD_FUNC;
        cmd->u.func.func = ucp_st_trig_add_func;
        cmd->u.func.arg  = part;
    } else {
        cmd->type           = UCS_GSTREAM_CMD_WRITE64;
        cmd->u.word.address = part->doorbell;
        cmd->u.word.value   = ucp_st_trig_weight(part->op);
    }
}

static size_t ucp_st_trig_start(ucp_st_op_t *op, ucp_st_queue_h queue,
                                uint64_t use, ucs_gstream_cmd_t *cmds)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    unsigned i;

    (void)queue;
    (void)use;
    if (!ucp_st_trig_has_put(op) || ucp_st_trig_has_inbox(op)) {
        return 0; /* the peer waits for nothing that is done here */
    }
    for (i = 0; i < trig->num_parts; ++i) {
        ucp_st_trig_add_cmd(&trig->parts[i], &cmds[i]);
    }
    return trig->num_parts;
}

static size_t ucp_st_trig_wait_words(const ucp_st_op_t *op,
                                     ucs_gstream_word_t *words)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    unsigned i;

    for (i = 0; i < trig->num_parts; ++i) {
        words[i].address = &trig->parts[i].slot->word;
        words[i].value   = op->started;
    }
    return trig->num_parts;
}

static size_t ucp_st_trig_land(ucp_st_op_t *op, ucs_gstream_cmd_t *cmds)
{
    ucp_st_trig_op_t *trig   = ucp_st_trig_op(op);
    ucp_st_trig_part_t *part = trig->parts;

    if (!ucp_st_trig_has_inbox(op)) {
        return 0;
    }
    cmds[0].type          = UCS_GSTREAM_CMD_COPY;
    cmds[0].u.copy.dst    = op->buffer;
    cmds[0].u.copy.src    = UCS_PTR_BYTE_OFFSET(
            part->inbox, ucp_st_trig_inbox_offset(op, op->started));
    cmds[0].u.copy.length = op->msg_length;
    if ((op->started % ucp_st_trig_plan_round(&trig->plan)) != 0) {
        return 1;
    }
    ucp_st_trig_add_cmd(part, &cmds[1]);
    return 2;
}

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

/* A receive's region is closed by then, but puts of a send may read */
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
