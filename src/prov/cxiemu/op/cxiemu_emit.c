/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_emit.c - how operations travel: which way, and in which records.
 */
#include "op/cxiemu_emit.h"
#include "op/cxiemu_ep.h"

#include <string.h>

/* Messages up to this size are sent at once, as CXI's are */
#define CXIEMU_EAGER_MAX (16 * 1024)

/* How many records whose payload the target copies by itself are under way, of
 * one operation, at most */
#define CXIEMU_DIRECT_WINDOW 8

#define CXIEMU_DELIVERY_FLAGS (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)


static int cxiemu_emit_is_message(const cxiemu_txop_t *txop)
{
    return (txop->op.kind == CXIEMU_OP_SEND) ||
           (txop->op.kind == CXIEMU_OP_TSEND);
}

/* The user wants to know that it is in the target's memory; of a message, that
 * a receive has it. CXI has the latter for FI_MATCH_COMPLETE alone. */
static int cxiemu_emit_is_delivery(const cxiemu_txop_t *txop)
{
    uint64_t flags = CXIEMU_DELIVERY_FLAGS;

    if (cxiemu_param()->strict && cxiemu_emit_is_message(txop)) {
        flags = FI_MATCH_COMPLETE;
    }
    return !!(txop->op.flags & flags);
}

void cxiemu_emit_route(cxiemu_txop_t *txop)
{
    const cxiemu_op_t *op = &txop->op;
    cxiemu_link_t *link   = txop->link;
    size_t inline_max     = (op->kind == CXIEMU_OP_READ) ? sizeof(uint64_t) :
                                                           CXIEMU_INLINE_MAX;

    if ((op->kind >= CXIEMU_OP_ATOMIC) || (op->length <= inline_max)) {
        txop->path = CXIEMU_PATH_INLINE;
    } else if (!cxiemu_emit_is_message(txop)) {
        /* Memory of another process is accessed as a whole only if it is large:
         * calls into the kernel cost more than a second copy of little */
        txop->path = (link->same_process ||
                      ((op->length >= cxiemu_param()->cma_min) &&
                       cxiemu_link_target_copies(link))) ?
                             CXIEMU_PATH_DIRECT :
                             CXIEMU_PATH_SLOTS;
    } else if ((op->length > CXIEMU_EAGER_MAX) ||
               cxiemu_emit_is_delivery(txop)) {
        /* Also a message that is acknowledged when it is received: it must not
         * keep a slot until then */
        txop->path = CXIEMU_PATH_RENDEZVOUS;
    } else {
        txop->path = CXIEMU_PATH_SLOTS;
    }
}


/* Whether what an operation's kind must not overtake includes writes. */
static int cxiemu_emit_is_ordered(const cxiemu_txop_t *txop)
{
    uint64_t order = txop->op.ep->tx_order;

    switch (cxiemu_param()->order) {
    case CXIEMU_ORDER_RELAXED:
        return 0;
    case CXIEMU_ORDER_STRICT:
        return 1;
    default:
        break;
    }

    switch (txop->op.kind) {
    case CXIEMU_OP_SEND:
    case CXIEMU_OP_TSEND:
        return !!(order & FI_ORDER_SAW);
    case CXIEMU_OP_WRITE:
        return !!(order & (FI_ORDER_WAW | FI_ORDER_RMA_WAW));
    case CXIEMU_OP_READ:
        return !!(order & (FI_ORDER_RAW | FI_ORDER_RMA_RAW));
    case CXIEMU_OP_ATOMIC:
        return !!(order & FI_ORDER_WAW);
    default:
        return !!(order & (FI_ORDER_WAW | FI_ORDER_RAW));
    }
}

static uint16_t cxiemu_emit_flags(const cxiemu_txop_t *txop)
{
    const cxiemu_op_t *op = &txop->op;
    uint16_t flags        = CXIEMU_REC_ACK;

    if (op->kind == CXIEMU_OP_TSEND) {
        flags |= CXIEMU_REC_TAGGED;
    }
    if (op->flags & FI_REMOTE_CQ_DATA) {
        flags |= CXIEMU_REC_CQ_DATA;
    }
    if (op->flags & FI_FENCE) {
        flags |= CXIEMU_REC_FENCE;
    }
    if (cxiemu_emit_is_delivery(txop)) {
        flags |= CXIEMU_REC_DELIVERY;
    }
    if (cxiemu_emit_is_ordered(txop)) {
        flags |= CXIEMU_REC_ORDERED;
    }
    return flags;
}

/* A record with what all kinds have in common, or NULL. */
static cxiemu_rec_t *cxiemu_emit_reserve(cxiemu_txop_t *txop,
                                         cxiemu_rec_type_t type,
                                         size_t inline_length)
{
    const cxiemu_op_t *op = &txop->op;
    uint16_t flags        = cxiemu_emit_flags(txop);
    cxiemu_rec_t *rec;

    if (inline_length <= cxiemu_rec_small_room(type, flags)) {
        inline_length = 0; /* behind the first cell */
    }
    rec = cxiemu_link_reserve(txop->link, inline_length);
    if (rec == NULL) {
        return NULL;
    }

    rec->type   = type;
    rec->flags  = flags;
    rec->op     = txop->id;
    rec->src_ep = op->ep->number;
    rec->dst_ep = txop->dst_ep;
    rec->tag    = cxiemu_emit_is_message(txop) ? op->tag : op->key;
    rec->length = 0;
    rec->code   = 0;
    rec->addr   = cxiemu_emit_is_message(txop) ? op->length : op->addr;
    rec->source = 0;
    rec->data   = op->data;
    return rec;
}

static void cxiemu_emit_commit(cxiemu_txop_t *txop, cxiemu_rec_t *rec)
{
    ++txop->unacked;
    cxiemu_link_commit(txop->link, rec);
}


/* A message or a write whose payload travels in its record. */
static int cxiemu_emit_inline(cxiemu_txop_t *txop, cxiemu_rec_type_t type)
{
    const cxiemu_op_t *op = &txop->op;
    cxiemu_rec_t *rec     = cxiemu_emit_reserve(txop, type, op->length);

    if (rec == NULL) {
        return 0;
    }

    rec->length  = op->length;
    rec->flags  |= CXIEMU_REC_LAST;
    if (op->length > 0) {
        /* Type and flags, which say where it lies, are there */
        memcpy((rec->cells == 1) ? cxiemu_rec_small(rec) : (void*)(rec + 1),
               op->buffer, op->length);
    }
    txop->offset = op->length;
    cxiemu_emit_commit(txop, rec);
    return 1;
}

static void cxiemu_emit_fill_atomic(const cxiemu_op_t *op, cxiemu_rec_t *rec)
{
    rec->length  = op->length;
    rec->code    = CXIEMU_ATOMIC_CODE(op->kind - CXIEMU_OP_ATOMIC, op->op,
                                      op->datatype);
    rec->source  = op->compare;
    rec->payload = op->operand;
}

/* One record without payload behind it: an atomic, a read of a word, or the
 * announcement of a message. */
static int cxiemu_emit_one(cxiemu_txop_t *txop, cxiemu_rec_type_t type)
{
    const cxiemu_op_t *op = &txop->op;
    cxiemu_rec_t *rec     = cxiemu_emit_reserve(txop, type, 0);

    if (rec == NULL) {
        return 0;
    }

    rec->flags |= CXIEMU_REC_LAST;
    if (type == CXIEMU_REC_ATOMIC) {
        cxiemu_emit_fill_atomic(op, rec);
    } else if (type == CXIEMU_REC_READ) {
        rec->length = op->length;
    } else {
        rec->source = (uintptr_t)op->buffer;
    }
    cxiemu_emit_commit(txop, rec);
    return 1;
}

void cxiemu_emit_local(const cxiemu_op_t *op, uint16_t dst_ep,
                       cxiemu_rec_t *rec)
{
    *rec = (cxiemu_rec_t){
        .type   = CXIEMU_REC_WRITE,
        .flags  = CXIEMU_REC_LAST,
        .src_ep = op->ep->number,
        .dst_ep = dst_ep,
        .tag    = op->key,
        .length = op->length,
        .addr   = op->addr,
        .data   = op->data
    };
    if (op->kind >= CXIEMU_OP_ATOMIC) {
        rec->type = CXIEMU_REC_ATOMIC;
        cxiemu_emit_fill_atomic(op, rec);
    } else if (op->flags & FI_REMOTE_CQ_DATA) {
        rec->flags |= CXIEMU_REC_CQ_DATA;
    }
}

/* What is not yet in records, in shares of @a chunk. */
static size_t cxiemu_emit_share(const cxiemu_txop_t *txop, size_t chunk)
{
    size_t rest = txop->op.length - txop->offset;

    return (rest < chunk) ? rest : chunk;
}

/* One chunk in a slot; for reads the slot is filled by the target. */
static int cxiemu_emit_slot(cxiemu_txop_t *txop, cxiemu_rec_type_t type)
{
    cxiemu_link_t *link = txop->link;
    cxiemu_rec_t *rec;
    size_t share;
    int slot;

    if (link->free_slots == 0) {
        return 0;
    }
    rec = cxiemu_emit_reserve(txop, type, 0);
    if (rec == NULL) {
        return 0;
    }

    slot              = __builtin_ctz(link->free_slots);
    link->free_slots &= ~(1u << slot); /* The ack that names it frees it */
    share        = cxiemu_emit_share(txop, CXIEMU_SLOT_SIZE);
    rec->length  = share;
    rec->source  = slot;
    rec->flags  |= CXIEMU_REC_SLOT;
    if (type == CXIEMU_REC_DATA) {
        rec->tag    = txop->rx;
        rec->offset = txop->offset;
    } else if (type != CXIEMU_REC_SEND) {
        rec->addr += txop->offset;
    }
    if (type == CXIEMU_REC_READ) {
        link->slot_offset[slot] = txop->offset;
    } else {
        memcpy(link->shm->slots[slot],
               (const uint8_t*)txop->op.buffer + txop->offset, share);
        link->nic->copied += share;
    }
    txop->offset += share;
    if (txop->offset == txop->op.length) {
        rec->flags |= CXIEMU_REC_LAST;
    }
    cxiemu_emit_commit(txop, rec);
    return 1;
}

static int cxiemu_emit_slots(cxiemu_txop_t *txop, cxiemu_rec_type_t type)
{
    while (txop->offset < txop->op.length) {
        if (txop->status != 0) {
            /* What was sent has met an error: the rest is of no use */
            return 1;
        }
        if (!cxiemu_emit_slot(txop, type)) {
            return 0;
        }
        /* The target copies this chunk while the next one is copied here */
        cxiemu_link_flush(txop->link);
    }
    return 1;
}

/* The target accesses the initiator's memory, share by share. */
static int cxiemu_emit_direct(cxiemu_txop_t *txop, cxiemu_rec_type_t type)
{
    cxiemu_rec_t *rec;
    size_t share;

    while ((txop->offset < txop->op.length) && (txop->status == 0)) {
        if (txop->unacked >= CXIEMU_DIRECT_WINDOW) {
            return 0; /* The next acknowledgement has this tried again */
        }
        share = cxiemu_emit_share(txop, CXIEMU_COPY_SHARE);
        rec   = cxiemu_emit_reserve(txop, type, 0);
        if (rec == NULL) {
            return 0;
        }

        rec->source   = (uintptr_t)txop->op.buffer + txop->offset;
        rec->length   = share;
        rec->addr    += txop->offset;
        txop->offset += share;
        if (txop->offset == txop->op.length) {
            rec->flags |= CXIEMU_REC_LAST;
        }
        cxiemu_emit_commit(txop, rec);
    }
    return 1;
}

int cxiemu_emit(cxiemu_txop_t *txop)
{
    static const cxiemu_rec_type_t in_record[] = {
        [CXIEMU_OP_SEND]  = CXIEMU_REC_SEND,
        [CXIEMU_OP_TSEND] = CXIEMU_REC_SEND,
        [CXIEMU_OP_READ]  = CXIEMU_REC_READ,
        [CXIEMU_OP_WRITE] = CXIEMU_REC_WRITE
    };
    cxiemu_op_kind_t kind = txop->op.kind;

    if (kind >= CXIEMU_OP_ATOMIC) {
        return cxiemu_emit_one(txop, CXIEMU_REC_ATOMIC);
    }

    switch ((cxiemu_path_t)txop->path) {
    case CXIEMU_PATH_INLINE:
        return (kind == CXIEMU_OP_READ) ?
                       cxiemu_emit_one(txop, CXIEMU_REC_READ) :
                       cxiemu_emit_inline(txop, in_record[kind]);
    case CXIEMU_PATH_SLOTS:
        return cxiemu_emit_slots(txop, in_record[kind]);
    case CXIEMU_PATH_RENDEZVOUS:
        return txop->go ? cxiemu_emit_slots(txop, CXIEMU_REC_DATA) :
                          cxiemu_emit_one(txop, CXIEMU_REC_RTS);
    default:
        return cxiemu_emit_direct(txop, (kind == CXIEMU_OP_READ) ?
                                                CXIEMU_REC_PUSH :
                                                CXIEMU_REC_PULL);
    }
}
