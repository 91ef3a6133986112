/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_coalesce_recv.c - the trig lane: what becomes of joined messages, and
 * clear-to-sends, that come.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_trig_coalesce.h"
#include "st_log.h"
#include "st_op.h"
#include "st_trig_use.h"
#include "st_worker.h"

#include <ucs/sys/math.h>

#include <string.h>

/* The use whose data comes next was started, and the stream tells that. What it
 * did before with the buffer is over, and it does nothing more with it until
 * the use is counted. */
static int ucp_st_trig_coalesce_has_begun(const ucp_st_trig_part_t *part,
                                          uint64_t use)
{
    return part->is_told && !part->op->freed &&
           /* Pairs with the store in ucp_st_trig_coalesce_begin_all_func() */
           (__atomic_load_n(&part->begun, __ATOMIC_ACQUIRE) >= use);
}

/* Messages come in order, and two uses of an operation are never in one: the
 * word has counted all uses before */
static void *ucp_st_trig_coalesce_dest_eager(ucp_st_trig_part_t *part)
{
    uint64_t use = 1 + __atomic_load_n(&part->slot->word, __ATOMIC_RELAXED);

    if (ucp_st_trig_coalesce_has_begun(part, use)) {
        /* The stream sees it with the word, which is stored with release */
        __atomic_store_n(&part->direct, use, __ATOMIC_RELAXED);
        return part->op->buffer;
    }
    return ucp_st_trig_inbox_place(part, use);
}

/* Where the data of an item is to go. A freed receive's buffer is the user's
 * again. */
static void *ucp_st_trig_coalesce_dest(ucp_st_op_t *op)
{
    switch ((ucp_st_trig_proto_t)op->trig.plan.proto) {
    case UCP_ST_TRIG_READY:
        return op->freed ? NULL : op->buffer;
    case UCP_ST_TRIG_EAGER:
        return ucp_st_trig_coalesce_dest_eager(op->trig.parts);
    default:
        return NULL;
    }
}

/* The receive that an item is for, and where the data is to go. NULL if there
 * is none like that: it failed, or was freed, and its peer hears of that. */
static ucp_st_trig_part_t *
ucp_st_trig_coalesce_find(ucp_st_worker_h worker,
                          const ucp_st_trig_item_t *item, void **dest_p)
{
    ucp_st_op_t *op = ucp_st_op_get(worker, item->op_id);

    *dest_p = NULL;
    if ((op != NULL) && (op->dir == UCP_ST_DIR_RECV) &&
        (op->trig.num_parts == 1) && !op->trig.halted &&
        (item->length == op->msg_length)) {
        *dest_p = ucp_st_trig_coalesce_dest(op);
    }
    if (*dest_p == NULL) {
        ucs_debug("message of %u bytes for operation 0x%lx, which is not there",
                  item->length, item->op_id);
        return NULL;
    }
    return op->trig.parts;
}

/* Clear-to-sends have come for a send, up to the one with that number. The pad
 * tells of them as where they are put. */
static void ucp_st_trig_coalesce_clear(ucp_st_worker_h worker,
                                       const ucp_st_trig_item_t *item)
{
    ucp_st_op_t *op     = ucp_st_op_get(worker, item->op_id);
    ucs_status_t status = UCS_OK;
    ucp_st_trig_part_t *part;
    uint64_t count;

    if ((op == NULL) || (op->dir != UCP_ST_DIR_SEND) || op->freed ||
        (op->trig.num_parts != 1) || op->trig.halted ||
        !op->trig.plan.is_cts_sent) {
        return; /* it has ended */
    }
    part  = op->trig.parts;
    count = (item->clears - (uint32_t)part->slot->pad) & ~UCP_ST_TRIG_ITEM_CTS;
    __atomic_store_n(&part->slot->pad, part->slot->pad + count,
                     __ATOMIC_RELAXED);
    if (!op->trig.joined) {
        status = uct_trig_cntr_add(part->start, count);
    } else {
        part->room += count * ucp_st_trig_plan_round(&op->trig.plan);
        ucp_st_trig_coalesce_resume(part);
    }
    if (status != UCS_OK) {
        ucp_st_op_fail(op, status);
    }
}

ucp_st_trig_part_t *
ucp_st_trig_coalesce_accept(ucp_st_worker_h worker,
                            const ucp_st_trig_item_t *item, const void *data)
{
    ucp_st_trig_part_t *part;
    void *dest;

    if (item->clears & UCP_ST_TRIG_ITEM_CTS) {
        ucp_st_trig_coalesce_clear(worker, item);
        return NULL;
    }
    part = ucp_st_trig_coalesce_find(worker, item, &dest);
    if (part != NULL) {
        memcpy(dest, data, item->length);
    }
    return part;
}

void ucp_st_trig_coalesce_landed(ucp_st_trig_part_t **parts, unsigned count)
{
    unsigned i;

    ucp_st_trig_coalesce_count(parts, count);
    /* A sender may have said before that it is done with the operation, and no
     * use behind these ever comes */
    for (i = 0; i < count; ++i) {
        if (parts[i]->op->max_uses != UINT64_MAX) {
            ucp_st_trig_catch_up(parts[i]->op);
        }
    }
}

ucs_status_t ucp_st_trig_coalesce_handle(void *arg, void *data, size_t length,
                                         unsigned flags)
{
    ucp_st_worker_h worker           = arg;
    const ucp_st_trig_item_t *item   = data;
    ucp_st_trig_part_t *parts[UCP_ST_TRIG_COALESCE_MAX];
    unsigned count = 0;
    size_t size;

    (void)flags;
    __atomic_store_n(&worker->trig.is_coalescing, 1, __ATOMIC_RELAXED);
    while (length >= sizeof(*item)) {
        if (item->length > (length - sizeof(*item))) {
            break; /* it is cut off */
        }
        parts[count] = ucp_st_trig_coalesce_accept(worker, item, item + 1);
        count       += (parts[count] != NULL);
        if (count == UCP_ST_TRIG_COALESCE_MAX) {
            ucp_st_trig_coalesce_landed(parts, count);
            count = 0;
        }
        size    = ucs_min(length, sizeof(*item) + ucp_st_trig_coalesce_padded(
                                                          item->length));
        length -= size;
        item    = UCS_PTR_BYTE_OFFSET(item, size);
    }
    ucp_st_trig_coalesce_landed(parts, count);
    return UCS_OK;
}
