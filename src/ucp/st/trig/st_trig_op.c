/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_op.c - the trig lane: counters, regions and reservations of one
 * operation, from its pairing to its end.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig.h"
#include "core/st_peer.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

_Static_assert((UCP_ST_TRIG_MAX_RAILS * sizeof(ucp_st_trig_region_t)) <=
               UCP_ST_PROTO_MAX_BLOB, "regions of all rails fit");

static size_t ucp_st_trig_inbox_length(const ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);

    return trig->plan.depth * trig->plan.stride;
}

static ucs_status_t ucp_st_trig_pieces_get(ucp_st_trig_part_t *part)
{
    ucp_st_trig_pool_t *pool = &part->rail->pool;
    uct_iface_h iface        = part->rail->iface;
    ucs_status_t status;

    status = ucp_st_trig_pool_get(pool, iface, sizeof(*part->slot),
                                  &part->slot_piece);
    if (status != UCS_OK) {
        return status;
    }
    part->slot       = part->slot_piece.address;
    part->slot->word = 0;
    part->slot->pad  = 0;
    if (!ucp_st_trig_has_inbox(part->op)) {
        return UCS_OK;
    }
    status = ucp_st_trig_pool_get(pool, iface,
                                  ucp_st_trig_inbox_length(part->op),
                                  &part->inbox_piece);
    if (status != UCS_OK) {
        ucp_st_trig_pool_put(pool, &part->slot_piece, sizeof(*part->slot));
        return status;
    }
    part->inbox = part->inbox_piece.address;
    return UCS_OK;
}

static void ucp_st_trig_pieces_put(ucp_st_trig_part_t *part)
{
    ucp_st_trig_pool_t *pool = &part->rail->pool;

    if (ucp_st_trig_has_inbox(part->op)) {
        ucp_st_trig_pool_put(pool, &part->inbox_piece,
                             ucp_st_trig_inbox_length(part->op));
    }
    ucp_st_trig_pool_put(pool, &part->slot_piece, sizeof(*part->slot));
}

/* A receive that puts no clear-to-sends starts nothing */
static ucs_status_t ucp_st_trig_cntrs_create(ucp_st_trig_part_t *part)
{
    uct_iface_h iface = part->rail->iface;
    ucs_status_t status;

    status = uct_trig_cntr_create(iface, &part->data);
    if (status != UCS_OK) {
        return status;
    }
    if (!ucp_st_trig_has_put(part->op)) {
        return UCS_OK;
    }
    status = uct_trig_cntr_create(iface, &part->start);
    if (status != UCS_OK) {
        goto err_data;
    }
    part->doorbell = uct_trig_cntr_doorbell(part->start);
    if (part->doorbell != NULL) {
        /* See ucp_st_trig_halt(). A quarter: after a reset the base again, and
         * all that streams add, fit into the counter. */
        part->base = part->rail->attr.max_count / 4;
        status     = uct_trig_cntr_add(part->start, part->base);
    }
    if (status != UCS_OK) {
        goto err_start;
    }
    return UCS_OK;

err_start:
    (void)uct_trig_cntr_destroy(part->start);
err_data:
    (void)uct_trig_cntr_destroy(part->data);
    return status;
}

static void ucp_st_trig_cntrs_destroy(ucp_st_trig_part_t *part)
{
    if (part->start != NULL) {
        (void)uct_trig_cntr_destroy(part->start);
    }
    (void)uct_trig_cntr_destroy(part->data);
}

/* What the peer writes: a send's clear-to-send word, counted by the counter
 * that starts the send; a receive's data, counted by D. An empty send writes a
 * byte, which is not for the user's buffer. And what a send's puts read, where
 * the NIC asks for that. */
static ucs_status_t ucp_st_trig_mem_reg(ucp_st_trig_part_t *part)
{
    const ucp_st_op_t *op = part->op;
    uct_iface_h iface     = part->rail->iface;
    int is_send           = (op->dir == UCP_ST_DIR_SEND);
    void *pad             = &part->slot->pad;
    ucp_st_trig_share_t share;
    void *address;
    size_t length;
    ucs_status_t status;

    ucp_st_trig_share(part, &share);
    address = (share.length == 0) ? pad :
              UCS_PTR_BYTE_OFFSET(op->buffer, share.offset);
    length  = (share.length == 0) ? sizeof(part->slot->pad) : share.length;
    if (is_send && (part->rail->attr.flags & UCT_TRIG_IFACE_FLAG_LOCAL_MEM)) {
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
        length  = sizeof(part->slot->pad);
    } else if (ucp_st_trig_has_inbox(op)) {
        address = part->inbox;
        length  = ucp_st_trig_inbox_length(op);
    }
    /* Also where the memory is registered already: this key is for the pair
     * alone, counts for it, and is closed when it fails */
    status = uct_trig_mem_reg(iface, address, length,
                              is_send ? part->start : part->data, &part->mem);
    if ((status != UCS_OK) && (part->local != NULL)) {
        (void)uct_trig_mem_dereg(part->local);
    }
    return status;
}

static ucs_status_t ucp_st_trig_part_init(ucp_st_trig_part_t *part)
{
    uct_iface_h iface = part->rail->iface;
    size_t puts       = ucp_st_trig_puts_per_use(part);
    ucs_status_t status;

    part->puts = calloc(ucs_max(puts, 1), sizeof(*part->puts));
    if (part->puts == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err;
    }
    status = ucp_st_trig_pieces_get(part);
    if (status != UCS_OK) {
        goto err_puts;
    }
    status = ucp_st_trig_cntrs_create(part);
    if (status != UCS_OK) {
        goto err_pieces;
    }
    /* The entries of one use, so that the next use can always be posted
     * whatever the other operations hold */
    status = uct_trig_iface_reserve(iface, puts,
                                    &part->resv[UCP_ST_TRIG_ENTRY_PUT]);
    if (status != UCS_OK) {
        goto err_cntrs;
    }
    status = uct_trig_iface_reserve(iface, 1,
                                    &part->resv[UCP_ST_TRIG_ENTRY_WORD]);
    if (status != UCS_OK) {
        goto err_resv_put;
    }
    status = ucp_st_trig_mem_reg(part);
    if (status != UCS_OK) {
        goto err_resv_word;
    }
    return UCS_OK;

err_resv_word:
    (void)uct_trig_iface_unreserve(iface, &part->resv[UCP_ST_TRIG_ENTRY_WORD]);
err_resv_put:
    (void)uct_trig_iface_unreserve(iface, &part->resv[UCP_ST_TRIG_ENTRY_PUT]);
err_cntrs:
    ucp_st_trig_cntrs_destroy(part);
err_pieces:
    ucp_st_trig_pieces_put(part);
err_puts:
    free(part->puts);
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
    uct_iface_h iface = part->rail->iface;

    ucp_st_trig_part_revoke(part);
    ucp_st_trig_entries_destroy(part);
    if (part->local != NULL) {
        (void)uct_trig_mem_dereg(part->local);
    }
    (void)uct_trig_iface_unreserve(iface, &part->resv[UCP_ST_TRIG_ENTRY_WORD]);
    (void)uct_trig_iface_unreserve(iface, &part->resv[UCP_ST_TRIG_ENTRY_PUT]);
    ucp_st_trig_cntrs_destroy(part);
    ucp_st_trig_pieces_put(part);
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
        part           = &trig->parts[i];
        part->op       = op;
        part->num_puts = ucs_min(share.puts, UINT32_MAX);
        part->rail     = &dev->rails[share.rail];
        part->ep       = ucp_st_trig_peer(op->peer)->eps[share.rail];
        status         = (part->num_puts > part->rail->attr.max_entries) ?
                         UCS_ERR_NO_RESOURCE : ucp_st_trig_part_init(part);
        trig->num_parts += (status == UCS_OK);
    }
    if (status != UCS_OK) {
        ucp_st_trig_parts_cleanup(trig);
    }
    return status;
}

ucs_status_t ucp_st_trig_offer(ucp_st_op_t *op, void *blob, size_t *length_p)
{
    ucp_st_trig_op_t *trig       = calloc(1, sizeof(*trig));
    ucp_st_trig_region_t *region = blob;
    ucp_st_trig_facts_t facts    = {
        .mode   = op->mode,
        .length = op->msg_length,
        .id     = (op->dir == UCP_ST_DIR_SEND) ? op->id : op->remote_id,
        .limits = ucp_st_trig_peer(op->peer)->limits
    };
    ucs_status_t status;
    unsigned i;

    if (trig == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    trig->op                    = op;
    op->parts[UCP_ST_LANE_TRIG] = trig;
    ucp_st_trig_plan_make(&facts, &trig->plan);
    status = ucp_st_trig_parts_init(op);
    if (status != UCS_OK) {
        op->parts[UCP_ST_LANE_TRIG] = NULL;
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

ucs_status_t ucp_st_trig_bind(ucp_st_op_t *op, const void *blob, size_t length)
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
            status = ucp_st_trig_entries_create(part);
        }
    }
    return status;
}

/* Data that went ahead may be here for uses that are not started */
uint64_t ucp_st_trig_uses_done(const ucp_st_op_t *op)
{
    const ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    uint64_t uses                = op->started;
    uint64_t word;
    unsigned i;

    for (i = 0; (trig != NULL) && (i < trig->num_parts); ++i) {
        word = __atomic_load_n(&trig->parts[i].slot->word, __ATOMIC_ACQUIRE);
        if (word >= UCP_ST_RELEASE) {
            return 0;
        }
        uses = ucs_min(uses, word);
    }
    return uses;
}

void ucp_st_trig_revoke(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    unsigned i;

    for (i = 0; i < trig->num_parts; ++i) {
        ucp_st_trig_part_revoke(&trig->parts[i]);
    }
}

int ucp_st_trig_is_busy(const ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);
    unsigned i;

    for (i = 0; i < trig->num_parts; ++i) {
        if ((trig->parts[i].pending[UCP_ST_TRIG_ENTRY_PUT] > 0) ||
            (trig->parts[i].pending[UCP_ST_TRIG_ENTRY_WORD] > 0)) {
            return 1;
        }
    }
    return 0;
}

void ucp_st_trig_release(ucp_st_op_t *op)
{
    ucp_st_trig_op_t *trig = ucp_st_trig_op(op);

    ucp_st_trig_late_del(trig);
    ucp_st_trig_end_del(trig);
    ucp_st_trig_parts_cleanup(trig);
    op->parts[UCP_ST_LANE_TRIG] = NULL;
    free(trig);
}
