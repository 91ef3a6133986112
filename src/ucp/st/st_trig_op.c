/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_op.c - the trig lane: counters, regions and reservations of one
 * operation, from its pairing to its end.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_trig_use.h"
#include "st_op.h"
#include "st_peer.h"
#include "st_worker.h"

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

_Static_assert((UCP_ST_TRIG_MAX_RAILS * sizeof(ucp_st_trig_region_t)) <=
               UCP_ST_PROTO_MAX_BLOB, "regions of all rails fit");

static size_t ucp_st_trig_inbox_length(const ucp_st_op_t *op)
{
    return op->trig.plan.depth * op->trig.plan.stride;
}

/* The peer puts something here: to a receive its data, to a send
 * clear-to-sends */
static int ucp_st_trig_is_target(const ucp_st_op_t *op)
{
    return (op->dir == UCP_ST_DIR_RECV) || ucp_st_trig_has_cts_put(op);
}

static ucs_status_t ucp_st_trig_pieces_get(ucp_st_trig_part_t *part)
{
    ucp_st_trig_pool_t *pool = &part->rail->pool;
    ucp_st_trig_piece_t slot, inbox;
    ucs_status_t status;

    status = ucp_st_trig_pool_get(pool, part->rail->iface, sizeof(*part->slot),
                                  &slot);
    if (status != UCS_OK) {
        return status;
    }
    part->slot       = slot.address;
    part->slot_slab  = slot.slab;
    part->slot->word = 0;
    part->slot->pad  = 0;
    if (!ucp_st_trig_has_inbox(part->op)) {
        return UCS_OK;
    }
    status = ucp_st_trig_pool_get(pool, part->rail->iface,
                                  ucp_st_trig_inbox_length(part->op),
                                  &inbox);
    if (status != UCS_OK) {
        ucp_st_trig_pool_put(pool, &slot, sizeof(*part->slot));
        return status;
    }
    part->inbox      = inbox.address;
    part->inbox_slab = inbox.slab;
    return UCS_OK;
}

static void ucp_st_trig_pieces_put(ucp_st_trig_part_t *part)
{
    ucp_st_trig_pool_t *pool  = &part->rail->pool;
    ucp_st_trig_piece_t slot  = {part->slot, part->slot_slab};
    ucp_st_trig_piece_t inbox = {part->inbox, part->inbox_slab};

    if (ucp_st_trig_has_inbox(part->op)) {
        ucp_st_trig_pool_put(pool, &inbox, ucp_st_trig_inbox_length(part->op));
    }
    ucp_st_trig_pool_put(pool, &slot, sizeof(*part->slot));
}

/* Where the NIC wakes the streams that wait for what it stores, a word that
 * follows the counter spares the deferred operation that would count it up */
static void ucp_st_trig_mirror(ucp_st_trig_part_t *part)
{
    if (part->op->worker->trig.helped &&
        (uct_trig_cntr_mirror(part->data, &part->slot->word) == UCS_OK)) {
        part->is_mirrored = 1;
    }
}

/* A receive that puts no clear-to-sends starts nothing */
static ucs_status_t ucp_st_trig_cntrs_create(ucp_st_trig_part_t *part)
{
    uct_iface_h iface = part->rail->iface;
    uct_trig_doorbell_t doorbell;
    ucs_status_t status;

    status = uct_trig_cntr_create(iface, &part->data);
    if (status != UCS_OK) {
        return status;
    }
    ucp_st_trig_mirror(part);
    if (!ucp_st_trig_has_put(part->op)) {
        return UCS_OK;
    }
    status = uct_trig_cntr_create(iface, &part->start);
    if (status != UCS_OK) {
        (void)uct_trig_cntr_destroy(part->data);
        return status;
    }
    uct_trig_cntr_doorbell(part->start, &doorbell);
    part->doorbell      = doorbell.address;
    part->doorbell_mode = doorbell.mode;
    return UCS_OK;
}

static void ucp_st_trig_cntrs_destroy(ucp_st_trig_part_t *part)
{
    if (part->start != NULL) {
        (void)uct_trig_cntr_destroy(part->start);
    }
    (void)uct_trig_cntr_destroy(part->data);
}

/* The entries of one use, so that the next use can always be posted whatever
 * the other operations hold (protocol-rules, rule 6) */
static ucs_status_t ucp_st_trig_reserve(ucp_st_trig_part_t *part)
{
    size_t puts       = ucp_st_trig_has_put(part->op) *
                        ucp_st_trig_puts_per_use(part);
    uct_iface_h iface = part->rail->iface;
    ucs_status_t status;

    if (puts > part->rail->attr.max_entries) {
        return UCS_ERR_NO_RESOURCE;
    }
    status = uct_trig_iface_reserve(iface, puts,
                                    &part->resv[UCP_ST_TRIG_ENTRY_PUT]);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_trig_iface_reserve(iface, !part->is_mirrored,
                                    &part->resv[UCP_ST_TRIG_ENTRY_WORD]);
    if (status != UCS_OK) {
        (void)uct_trig_iface_unreserve(iface,
                                       &part->resv[UCP_ST_TRIG_ENTRY_PUT]);
    }
    return status;
}

static void ucp_st_trig_unreserve(ucp_st_trig_part_t *part)
{
    unsigned i;

    for (i = 0; i < UCP_ST_TRIG_ENTRY_LAST; ++i) {
        (void)uct_trig_iface_unreserve(part->rail->iface, &part->resv[i]);
    }
}

static ucs_status_t ucp_st_trig_local_reg(ucp_st_trig_part_t *part)
{
    const ucp_st_op_t *op = part->op;
    void *address         = UCS_PTR_BYTE_OFFSET(op->buffer,
                                                ucp_st_trig_offset(part));
    size_t length         = ucp_st_trig_length(part);

    if ((op->dir != UCP_ST_DIR_SEND) ||
        !(part->rail->attr.flags & UCT_TRIG_IFACE_FLAG_LOCAL_MEM)) {
        return UCS_OK;
    }
    if (length == 0) {
        address = &part->slot->pad;
        length  = sizeof(part->slot->pad);
    }
    return uct_trig_mem_reg(part->rail->iface, address, length, NULL,
                            &part->local);
}

static void ucp_st_trig_local_dereg(ucp_st_trig_part_t *part)
{
    if ((part->op->dir == UCP_ST_DIR_SEND) && (part->local != NULL)) {
        (void)uct_trig_mem_dereg(part->local);
    }
}

/* What the peer writes: a send's clear-to-send word, counted by the counter
 * that starts the send; a receive's data, counted by D. An empty send writes a
 * byte, which is not for the user's buffer. */
static ucs_status_t ucp_st_trig_mem_reg(ucp_st_trig_part_t *part)
{
    const ucp_st_op_t *op = part->op;
    int is_send           = (op->dir == UCP_ST_DIR_SEND);
    void *address         = UCS_PTR_BYTE_OFFSET(op->buffer,
                                                ucp_st_trig_offset(part));
    size_t length         = ucp_st_trig_length(part);

    if (!ucp_st_trig_is_target(op)) {
        return UCS_OK;
    }
    if (is_send || (op->msg_length == 0)) {
        address = &part->slot->pad;
        length  = sizeof(part->slot->pad);
    } else if (ucp_st_trig_has_inbox(op)) {
        address = part->inbox;
        length  = ucp_st_trig_inbox_length(op);
    }
    /* Also where the memory is registered already: this key is for the pair
     * alone, counts for it, and is closed when it fails */
    return uct_trig_mem_reg(part->rail->iface, address, length,
                            is_send ? part->start : part->data, &part->mem);
}

static ucs_status_t ucp_st_trig_part_init(ucp_st_trig_part_t *part)
{
    ucs_status_t status;

    status = ucp_st_trig_pieces_get(part);
    if (status != UCS_OK) {
        goto err;
    }
    status = ucp_st_trig_cntrs_create(part);
    if (status != UCS_OK) {
        goto err_pieces;
    }
    status = ucp_st_trig_reserve(part);
    if (status != UCS_OK) {
        goto err_cntrs;
    }
    status = ucp_st_trig_local_reg(part);
    if (status != UCS_OK) {
        goto err_resv;
    }
    status = ucp_st_trig_mem_reg(part);
    if (status != UCS_OK) {
        goto err_local;
    }
    return UCS_OK;

err_local:
    ucp_st_trig_local_dereg(part);
err_resv:
    ucp_st_trig_unreserve(part);
err_cntrs:
    ucp_st_trig_cntrs_destroy(part);
err_pieces:
    ucp_st_trig_pieces_put(part);
err:
    return status;
}

static void ucp_st_trig_part_revoke(ucp_st_trig_part_t *part)
{
    if (part->mem != NULL) {
        (void)uct_trig_mem_dereg(part->mem);
        part->mem = NULL;
    }
}

static void ucp_st_trig_part_cleanup(ucp_st_trig_part_t *part)
{
    ucp_st_trig_part_revoke(part);
    ucp_st_trig_entries_destroy(part);
    ucp_st_trig_local_dereg(part);
    ucp_st_trig_unreserve(part);
    ucp_st_trig_cntrs_destroy(part);
    ucp_st_trig_pieces_put(part);
}

static void ucp_st_trig_parts_cleanup(ucp_st_trig_op_t *trig)
{
    while (trig->num_parts > 0) {
        ucp_st_trig_part_cleanup(&trig->parts[--trig->num_parts]);
    }
    free(trig->parts);
    trig->parts = NULL;
}

static ucs_status_t ucp_st_trig_parts_init(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = &op->trig;
    ucs_status_t status    = UCS_OK;
    ucp_st_trig_share_t share;
    ucp_st_trig_part_t *part;
    unsigned i;

    trig->parts = calloc(trig->plan.num_shares, sizeof(*trig->parts));
    if (trig->parts == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    for (i = 0; (i < trig->plan.num_shares) && (status == UCS_OK); ++i) {
        ucp_st_trig_plan_share(&trig->plan, i, &share);
        part             = &trig->parts[i];
        part->op         = op;
        part->num_puts   = ucs_min(share.puts, UINT32_MAX);
        part->rail       = &op->worker->trig.rails[share.rail];
        part->chain      = &op->peer->trig.chain[share.rail];
        status           = ucp_st_trig_part_init(part);
        trig->num_parts += (status == UCS_OK);
    }
    if (status != UCS_OK) {
        ucp_st_trig_parts_cleanup(trig);
    }
    return status;
}

static void ucp_st_trig_plan_op(ucp_st_op_t *op)
{
    ucp_st_trig_facts_t facts = {
        .mode   = op->mode,
        .length = op->msg_length,
        .id     = (op->dir == UCP_ST_DIR_SEND) ? op->id : op->remote_id,
        .limits = op->peer->trig.limits
    };

    ucp_st_trig_plan_make(&facts, &op->trig.plan);
}

ucs_status_t ucp_st_trig_offer(ucp_st_op_t *op, void *blob, size_t *length_p)
{
    ucp_st_trig_op_t *trig       = &op->trig;
    ucp_st_trig_region_t *region = blob;
    ucs_status_t status;
    unsigned i;

    memset(trig, 0, sizeof(*trig));
    ucp_st_trig_plan_op(op);
    status = ucp_st_trig_parts_init(op);
    if (status != UCS_OK) {
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

static ucs_status_t ucp_st_trig_remote_get(ucp_st_trig_part_t *part,
                                           const ucp_st_trig_region_t *region)
{
    uct_trig_rkey_t rkey;
    ucs_status_t status;

    status = uct_trig_rkey_unpack(region->rkey, sizeof(region->rkey), &rkey);
    if (status != UCS_OK) {
        return status;
    }
    part->remote.key     = rkey.key;
    part->remote.address = rkey.address;
    part->remote.length  = rkey.length;
    part->is_offset      = (rkey.base != 0);
    return UCS_OK;
}

static ucs_status_t ucp_st_trig_part_bind(ucp_st_trig_part_t *part,
                                          const ucp_st_trig_region_t *region)
{
    ucs_status_t status = UCS_OK;

    if (ucp_st_trig_has_put(part->op)) {
        status = ucp_st_trig_remote_get(part, region);
    }
    return (status == UCS_OK) ? ucp_st_trig_entries_create(part) : status;
}

ucs_status_t ucp_st_trig_bind(ucp_st_op_t *op, const void *blob, size_t length)
{
    const ucp_st_trig_region_t *region = blob;
    ucp_st_trig_op_t *trig             = &op->trig;
    ucs_status_t status;
    unsigned i;

    if (length != (trig->num_parts * sizeof(*region))) {
        return UCS_ERR_INVALID_PARAM;
    }
    op->early       = ucp_st_trig_has_inbox(op);
    trig->is_called = trig->plan.is_cts_sent ||
                      ((trig->num_parts > 0) &&
                       (trig->parts[0].doorbell_mode ==
                        UCT_TRIG_DOORBELL_CALL));
    if ((trig->num_parts == 1) && (ucp_st_trig_unit(&trig->parts[0]) == 1)) {
        trig->word = &trig->parts[0].slot->word;
    }
    /* A send's completions are reaped whatever follows what */
    op->is_exact = (op->dir == UCP_ST_DIR_RECV) && (trig->num_parts > 0);
    for (i = 0; i < trig->num_parts; ++i) {
        op->is_exact &= trig->parts[i].is_mirrored;
        status = ucp_st_trig_part_bind(&trig->parts[i], &region[i]);
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_OK;
}

/* `uses` or less */
static uint64_t ucp_st_trig_uses_of(const ucp_st_op_t *op, uint64_t uses)
{
    const ucp_st_trig_part_t *part;
    uint64_t word;
    unsigned i;

    for (i = 0; i < op->trig.num_parts; ++i) {
        part = &op->trig.parts[i];
        word = __atomic_load_n(&part->slot->word, __ATOMIC_ACQUIRE);
        if (word >= UCP_ST_RELEASE) {
            return 0;
        }
        uses = ucs_min(uses, word / ucp_st_trig_unit(part));
    }
    return uses;
}

/* Data that went ahead may be here for uses that are not started */
uint64_t ucp_st_trig_uses_done(const ucp_st_op_t *op)
{
    return ucp_st_trig_uses_of(op, op->started);
}

/* What a put brought was here before its sender was told, and only the word may
 * be late. What came in a message may not have been looked at. */
uint64_t ucp_st_trig_uses_landed(const ucp_st_op_t *op)
{
    return op->is_exact ? ucp_st_trig_uses_of(op, UINT64_MAX) : UINT64_MAX;
}

void ucp_st_trig_catch_up(ucp_st_op_t *op)
{
    uint64_t uses = 0;

    if (op->is_exact && (op->trig.num_parts > 0)) {
        uses = ucp_st_trig_uses_done(op);
    }
    if (op->trig.uses < uses) {
        ucp_st_trig_uses_add(op, uses - op->trig.uses);
    }
}

uint64_t ucp_st_trig_uses_begun(const ucp_st_op_t *op)
{
    uint64_t uses = op->started;
    const ucp_st_trig_part_t *part;
    unsigned i;

    if (!ucp_st_trig_has_put(op) || ucp_st_trig_has_inbox(op)) {
        return uses; /* its start does nothing */
    }
    for (i = 0; i < op->trig.num_parts; ++i) {
        part = &op->trig.parts[i];
        if (part->doorbell_mode == UCT_TRIG_DOORBELL_CALL) {
            uses = ucs_min(uses, __atomic_load_n(&part->run, __ATOMIC_RELAXED));
        }
    }
    return uses;
}

void ucp_st_trig_revoke(ucp_st_op_t *op)
{
    unsigned i;

    for (i = 0; i < op->trig.num_parts; ++i) {
        ucp_st_trig_part_revoke(&op->trig.parts[i]);
    }
}

int ucp_st_trig_is_busy(const ucp_st_op_t *op)
{
    const ucp_st_trig_part_t *part;
    unsigned i, entry;

    for (i = 0; i < op->trig.num_parts; ++i) {
        part = &op->trig.parts[i];
        if (part->next != NULL) {
            return 1;
        }
        for (entry = 0; entry < UCP_ST_TRIG_ENTRY_LAST; ++entry) {
            if (part->pending[entry] > 0) {
                return 1;
            }
        }
    }
    return 0;
}

void ucp_st_trig_release(ucp_st_op_t *op)
{
    ucp_st_trig_catch_up(op);
    ucp_st_trig_late_del(&op->trig);
    ucp_st_trig_doubt_del(&op->trig);
    ucp_st_trig_drain_del(&op->trig);
    ucp_st_trig_parts_cleanup(&op->trig);
}
