/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig.c - the trig lane: its table of functions; what one operation has on
 * the NICs, from its pairing to its end; and what the stream does for it.
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
#include "core/st_peer.h"
#include "core/st_queue.h"
#include "core/st_stage.h"
#include "core/st_worker.h"

#include <ucs_gstream_memory.h>

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

_Static_assert((UCP_ST_TRIG_MAX_RAILS * sizeof(ucp_st_trig_region_t)) <=
               UCP_ST_PROTO_MAX_BLOB, "regions of all rails fit");

_Static_assert((UCP_ST_TRIG_MAX_RAILS <= UCP_ST_LANE_MAX_CMDS) &&
               (2 <= UCP_ST_LANE_MAX_CMDS), "commands of all rails");

static size_t ucp_st_trig_inbox_length(const ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);

    return trig->plan.depth * trig->plan.stride;
}

static ucs_status_t ucp_st_trig_memory_get(ucp_st_trig_part_t *part)
{
    ucs_status_t status;

    status = ucp_st_trig_piece_get(part->rail, &part->pad);
    if (status != UCS_OK) {
        return status;
    }
    memset(part->pad.address, 0, UCP_ST_TRIG_PIECE);
    if (!ucp_st_trig_has_inbox(part->op)) {
        return UCS_OK;
    }
    part->inbox = ucs_gstream_memory_get(ucp_st_trig_inbox_length(part->op));
    return (part->inbox == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
}

/* A NIC that asks for nothing maps what it reads when it is told to: whether a
 * device's memory can be mapped is to be known now, and it stays mapped. */
static int ucp_st_trig_has_local(const ucp_st_trig_part_t *part)
{
    return (part->op->dir == UCP_ST_DIR_SEND) &&
           ((part->rail->attr.flags & UCT_TRIG_IFACE_FLAG_LOCAL_MEM) ||
            (ucp_st_trig_op(part->op)->reaches &&
             ucp_st_stage_is_device(&part->op->memory)));
}

/* What the peer writes: a send's clear-to-send word, counted by the counter
 * that starts the send; a receive's data, counted by D. An empty send writes a
 * byte, which is not for the user's buffer. And what a send's puts read, where
 * the NIC asks for that, or it is a device's. */
static ucs_status_t ucp_st_trig_mem_reg(ucp_st_trig_part_t *part)
{
    const ucp_st_op_t *op = part->op;
    uct_iface_h iface     = part->rail->iface;
    int is_send           = (op->dir == UCP_ST_DIR_SEND);
    void *pad             = part->pad.address;
    ucp_st_trig_share_t share;
    void *address;
    size_t length;
    ucs_status_t status;

    ucp_st_trig_share(part, &share);
    address = (share.length == 0) ? pad :
              UCS_PTR_BYTE_OFFSET(op->data, share.offset);
    length  = (share.length == 0) ? sizeof(uint64_t) : share.length;
    if (ucp_st_trig_has_local(part)) {
        status = uct_trig_mem_reg(iface, address, length, NULL, &part->local);
        if (status != UCS_OK) {
            return status;
        }
    }
    if (is_send && (ucp_st_trig_op(op)->plan.proto == UCP_ST_TRIG_READY)) {
        return UCS_OK; /* the peer puts nothing here */
    }
    if (is_send) {
        address = pad;
        length  = sizeof(uint64_t);
    } else if (ucp_st_trig_has_inbox(op)) {
        address = part->inbox;
        length  = ucp_st_trig_inbox_length(op);
    }
    /* Also where the memory is registered already: this key is for the pair
     * alone, counts for it, and is closed when it fails */
    return uct_trig_mem_reg(iface, address, length,
                            is_send ? part->start->trigger.cntr :
                                      part->done->tally.cntr,
                            &part->mem);
}

/* What was made before an error is undone by ucp_st_trig_part_cleanup() */
static ucs_status_t ucp_st_trig_part_init(ucp_st_trig_part_t *part)
{
    size_t puts = ucp_st_trig_puts_per_use(part);
    ucs_status_t status;

    part->puts = calloc(ucs_max(puts, 1), sizeof(*part->puts));
    if (part->puts == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    status = ucp_st_trig_memory_get(part);
    if (status == UCS_OK) {
        status = ucp_st_trig_shared_get(part);
    }
    return (status == UCS_OK) ? ucp_st_trig_mem_reg(part) : status;
}

static void ucp_st_trig_mem_dereg(uct_trig_mem_h *mem_p)
{
    if (*mem_p != NULL) {
        (void)uct_trig_mem_dereg(*mem_p);
        *mem_p = NULL;
    }
}

static void ucp_st_trig_part_cleanup(ucp_st_trig_part_t *part)
{
    ucp_st_trig_mem_dereg(&part->mem);
    ucp_st_trig_puts_destroy(part);
    ucp_st_trig_mem_dereg(&part->local);
    ucp_st_trig_shared_put(part);
    if (part->inbox != NULL) {
        ucs_gstream_memory_put(part->inbox, ucp_st_trig_inbox_length(part->op));
    }
    ucp_st_trig_piece_put(part->rail, &part->pad);
    free(part->puts);
}

static void ucp_st_trig_parts_cleanup(ucp_st_trig_op_t *trig)
{
    while (trig->num_parts > 0) {
        ucp_st_trig_part_cleanup(&trig->parts[--trig->num_parts]);
    }
    free(trig->parts);
}

static ucs_status_t ucp_st_trig_parts_init(ucp_st_op_t *op)
{
    ucp_st_trig_dev_t *dev = ucp_st_trig_dev(op->worker);
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    ucs_status_t status    = UCS_OK;
    ucp_st_trig_part_t *part;
    ucp_st_trig_share_t share;
    unsigned i;

    trig->parts = calloc(trig->plan.num_shares, sizeof(*trig->parts));
    if (trig->parts == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    for (i = 0; (i < trig->plan.num_shares) && (status == UCS_OK); ++i) {
        ucp_st_trig_plan_share(&trig->plan, i, &share);
        ucp_st_trig_rail_update(&dev->rails[share.rail], dev->num_rails);
        part           = &trig->parts[i];
        part->op       = op;
        part->num_puts = ucs_min(share.puts, UINT32_MAX);
        part->rail     = &dev->rails[share.rail];
        part->ep       = ucp_st_trig_peer(op->peer)->eps[share.rail];
        status         = ucp_st_trig_part_init(part);
        ++trig->num_parts;
    }
    if (status != UCS_OK) {
        ucp_st_trig_parts_cleanup(trig);
    }
    return status;
}

static ucs_status_t ucp_st_trig_offer(ucp_st_op_t *op, void *blob,
                                      size_t *length_p)
{
    ucp_st_trig_op_t *trig       = calloc(1, sizeof(*trig));
    ucp_st_trig_region_t *region = blob;
    ucp_st_trig_facts_t facts    = {
        .mode   = op->mode,
        .length = op->msg_length,
        .id     = (op->dir == UCP_ST_DIR_SEND) ? op->id : op->remote_id,
        .shares = op->shares,
        .limits = ucp_st_trig_peer(op->peer)->limits
    };
    ucs_status_t status;
    unsigned i;

    if (trig == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    trig->op                    = op;
    trig->late.post             = ucp_st_trig_post_more;
    trig->reaches               = (op->data == op->buffer);
    op->priv[UCP_ST_LANE_TRIG] = trig;
    ucp_st_trig_plan_make(&facts, &trig->plan);
    status = ucp_st_trig_parts_init(op);
    if (status != UCS_OK) {
        op->priv[UCP_ST_LANE_TRIG] = NULL;
        free(trig);
        return status;
    }
    for (i = 0; i < trig->num_parts; ++i) {
        memset(&region[i], 0, sizeof(region[i]));
        if (trig->parts[i].mem != NULL) {
            uct_trig_mem_pack(trig->parts[i].mem, region[i].rkey);
        }
    }
    *length_p = trig->num_parts * sizeof(*region);
    return UCS_OK;
}

static ucs_status_t ucp_st_trig_bind(ucp_st_op_t *op, const void *blob,
                                     size_t length)
{
    const ucp_st_trig_region_t *region = blob;
    ucp_st_trig_op_t *trig             = ucp_st_trig_op(op);
    ucs_status_t status                = UCS_OK;
    ucp_st_trig_part_t *part;
    unsigned i;

    if (length != (trig->num_parts * sizeof(*region))) {
        return UCS_ERR_INVALID_PARAM;
    }
    op->early = ucp_st_trig_has_inbox(op);
    for (i = 0; (i < trig->num_parts) && (status == UCS_OK); ++i) {
        part = &trig->parts[i];
        if (ucp_st_trig_has_put(op)) {
            status = uct_trig_rkey_unpack(region[i].rkey,
                                          sizeof(region[i].rkey),
                                          &part->remote);
        }
        if (status == UCS_OK) {
            status = ucp_st_trig_puts_create(part);
        }
        if (status == UCS_OK) {
            status = ucp_st_trig_shared_bind(part);
        }
    }
    return status;
}

/* Data that went ahead may be here for uses that are not started */
static uint64_t ucp_st_trig_uses_done(const ucp_st_op_t *op)
{
    const ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    uint64_t uses                = op->started;
    uint64_t word;
    unsigned i;

    for (i = 0; (trig != NULL) && (i < trig->num_parts); ++i) {
        word = __atomic_load_n(trig->parts[i].done->tally.word,
                               __ATOMIC_ACQUIRE);
        if (word >= UCP_ST_RELEASE) {
            return 0;
        }
        uses = ucs_min(uses, word);
    }
    return uses;
}

/* What starts, and of some sends clear-to-sends, have added */
static ucs_status_t ucp_st_trig_read_start(const ucp_st_op_t *op,
                                           uint64_t *count_p)
{
    const ucp_st_trig_start_t *start = ucp_st_trig_op(op)->parts->start;
    ucs_status_t status              = (start == NULL) ? UCS_ERR_NO_ELEM :
                                       uct_trig_cntr_read(start->trigger.cntr,
                                                          count_p);

    *count_p -= (status == UCS_OK) ? start->trigger.base : 0;
    return status;
}

/* Clear-to-sends are not told apart from starts */
static uint64_t ucp_st_trig_begun(const ucp_st_op_t *op)
{
    uint64_t count = 0;

    if ((op->ahead > 0) && (op->ahead >= op->started)) { /* kernels say it */
        return __atomic_load_n(&ucp_st_trig_op(op)->record->begun,
                               __ATOMIC_ACQUIRE);
    }
    if (((op->dir == UCP_ST_DIR_SEND) &&
         (ucp_st_trig_op(op)->plan.proto != UCP_ST_TRIG_READY)) ||
        (ucp_st_trig_read_start(op, &count) != UCS_OK)) {
        return UCP_ST_USES_UNKNOWN;
    }
    return count / ucp_st_trig_op(op)->parts->start->trigger.weight;
}

/* A send counts the clear-to-sends of its receive's starts. A receive learns
 * of nothing but the data, which the NIC sends when both sides have started.
 * Where more uses are enqueued, or sends share a counter, it is not known which
 * of them has added. */
static uint64_t ucp_st_trig_peer_uses(const ucp_st_op_t *op, uint64_t use)
{
    uint64_t count = 0;

    if ((op->dir != UCP_ST_DIR_SEND) || (use < op->started) ||
        (ucp_st_trig_op(op)->plan.proto != UCP_ST_TRIG_STANDARD) ||
        (ucp_st_trig_op(op)->parts->start->num_clears > 1) ||
        (ucp_st_trig_read_start(op, &count) != UCS_OK)) {
        return UCP_ST_USES_UNKNOWN;
    }
    return (count > use) ? (count - use) : 0;
}

/* From a free on, too, no kernel starts what was posted ahead. Uses in which
 * the peer takes part are started by then. */
static void ucp_st_trig_revoke(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    unsigned i;

    ucp_st_trig_ahead_halt(trig);
    for (i = 0; i < trig->num_parts; ++i) {
        ucp_st_trig_mem_dereg(&trig->parts[i].mem);
    }
}

static int ucp_st_trig_is_busy(const ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    unsigned i;

    for (i = 0; i < trig->num_parts; ++i) {
        if ((trig->parts[i].line.pending > 0) ||
            (trig->parts[i].done->line.pending > 0)) {
            return 1;
        }
    }
    return ucp_st_trig_ahead_is_starting(op);
}

static void ucp_st_trig_release(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);

    ucp_st_trig_ahead_release(op);
    ucp_st_trig_late_del(&trig->late);
    ucp_st_trig_end_del(trig);
    ucp_st_trig_parts_cleanup(trig);
    op->priv[UCP_ST_LANE_TRIG] = NULL;
    free(trig);
}

/* Of those that share a counter the first one adds for all */
static int ucp_st_trig_adds(const ucp_st_trig_part_t *part)
{
    return (part->start != NULL) &&
           (part->start->parts.next == &part->start_list);
}

/* Of those that share a word the first one waits for all */
static int ucp_st_trig_waits(const ucp_st_trig_part_t *part)
{
    return part->done->parts.next == &part->done_list;
}

static size_t ucp_st_trig_pages(ucp_st_op_t *op, ucs_gstream_type_t type,
                                ucs_gstream_word_t *pages)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    size_t count           = 0;
    unsigned i;

    for (i = 0; (i < trig->num_parts) && !(trig->asked & UCS_BIT(type)); ++i) {
        if (ucp_st_trig_adds(&trig->parts[i]) &&
            (trig->parts[i].start->trigger.doorbell != NULL)) {
            pages[count++].address = trig->parts[i].start->trigger.doorbell;
        }
    }
    trig->asked |= UCS_BIT(type);
    return count;
}

static size_t ucp_st_trig_start(ucp_st_op_t *op, ucp_st_queue_h queue,
                                uint64_t use, ucs_gstream_cmd_t *cmds)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    size_t num_cmds        = 0;
    unsigned i;

    (void)use;
    if (!ucp_st_trig_has_put(op) || ucp_st_trig_has_inbox(op)) {
        return 0; /* the peer waits for nothing that is done here */
    }
    for (i = 0; i < trig->num_parts; ++i) {
        if (ucp_st_trig_adds(&trig->parts[i])) {
            num_cmds += ucp_st_trig_trigger_cmd(&trig->parts[i].start->trigger,
                                                queue, &cmds[num_cmds]);
        }
    }
    return num_cmds;
}

static size_t ucp_st_trig_wait_words(const ucp_st_op_t *op,
                                     ucs_gstream_word_t *words)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    size_t count           = 0;
    unsigned i;

    for (i = 0; i < trig->num_parts; ++i) {
        if (ucp_st_trig_waits(&trig->parts[i])) {
            words[count].address = trig->parts[i].done->tally.word;
            words[count++].value = op->started;
        }
    }
    return count;
}

static size_t ucp_st_trig_land(ucp_st_op_t *op, ucs_gstream_cmd_t *cmds)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    size_t num_cmds;

    if (!ucp_st_trig_has_inbox(op)) {
        return 0;
    }
    num_cmds = ucp_st_trig_landing_cmd(op, cmds);
    if ((op->started % ucp_st_trig_plan_round(&trig->plan)) == 0) {
        num_cmds += ucp_st_trig_trigger_cmd(&trig->parts->start->trigger,
                                            op->queue, &cmds[num_cmds]);
    }
    return num_cmds;
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
        [UCP_ST_OBJECT_PEER]   = sizeof(ucp_st_trig_peer_t),
        [UCP_ST_OBJECT_MEM]    = sizeof(ucp_st_trig_rma_mem_t),
        [UCP_ST_OBJECT_RKEY]   = sizeof(uct_trig_rkey_t)
    },
    .worker = {
        .open           = ucp_st_trig_dev_init,
        .close          = ucp_st_trig_dev_cleanup,
        .address_length = ucp_st_trig_address_length,
        .address_pack   = ucp_st_trig_address_pack,
        .progress       = ucp_st_trig_dev_progress,
        .poll           = ucp_st_worker_hook_none,
        .cancel         = ucp_st_trig_dev_cancel,
        .prepare        = ucp_st_trig_dev_prepare,
        .serves         = ucp_st_trig_dev_serves,
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
        .reaches       = ucp_st_trig_reaches,
        .prepare       = ucp_st_lane_no_op,
        .offer         = ucp_st_trig_offer,
        .bind          = ucp_st_trig_bind,
        .post          = ucp_st_trig_post,
        .pages         = ucp_st_trig_pages,
        .start         = ucp_st_trig_start,
        .wait_words    = ucp_st_trig_wait_words,
        .land          = ucp_st_trig_land,
        .ahead         = &ucp_st_trig_ahead,
        .leave_queue   = ucp_st_trig_leave_queue,
        .uses_done     = ucp_st_trig_uses_done,
        .begun         = ucp_st_trig_begun,
        .peer_uses     = ucp_st_trig_peer_uses,
        .halt          = ucp_st_trig_halt,
        .release_waits = ucp_st_trig_release_waits,
        .revoke        = ucp_st_trig_revoke,
        .dispose       = ucp_st_trig_dispose,
        .is_busy       = ucp_st_trig_is_busy,
        .uses_buffer   = ucp_st_trig_uses_buffer,
        .is_reaching   = ucp_st_lane_no_reaching,
        .release       = ucp_st_trig_release,
        .protocol      = ucp_st_trig_protocol
    }
};
