/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_target.c - carrying out what peers ask for.
 *
 * The fields of a record are copied before they are checked.
 */
#include "op/cxiemu_target.h"
#include "op/cxiemu_atomic.h"
#include "op/cxiemu_ep.h"
#include "op/cxiemu_mr.h"
#include "op/cxiemu_rx.h"
#include "base/cxiemu_error.h"

#include <rdma/fi_errno.h>

#include <string.h>


/* As cxiemu_mr_find(), where the endpoint still is: CXI tells one from the
 * other. */
static int cxiemu_target_find(const cxiemu_arrival_t *arrival, uint64_t access,
                              cxiemu_mr_t **mr_p, void **address_p)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    cxiemu_nic_t *nic       = arrival->link->nic;

    if ((rec->dst_ep >= CXIEMU_MAX_EPS) || (nic->eps[rec->dst_ep] == NULL)) {
        return FI_EHOSTUNREACH;
    }
    return cxiemu_mr_find(nic, rec, access, mr_p, address_p);
}

int cxiemu_target_land(const cxiemu_arrival_t *arrival, uint64_t offset,
                       size_t length, cxiemu_mr_t **mr_p)
{
    void *address;
    int err;

    err = cxiemu_target_find(arrival, FI_REMOTE_WRITE, mr_p, &address);
    if (err != 0) {
        return err;
    }
    return cxiemu_link_fetch(arrival, offset, (uint8_t*)address + offset,
                             length);
}

void cxiemu_target_landed(const cxiemu_arrival_t *arrival, cxiemu_mr_t *mr,
                          int err)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    cxiemu_cq_event_t *event;
    cxiemu_ep_t *ep;

    if ((err == 0) && (rec->flags & CXIEMU_REC_LAST)) {
        cxiemu_mr_accessed(mr);
        ep = mr->ep; /* As it was sent to: a region is one endpoint's */
        if ((rec->flags & CXIEMU_REC_CQ_DATA) && (ep->rx_cq != NULL)) {
            event              = cxiemu_cq_next(ep->rx_cq);
            event->entry.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
            event->entry.data  = rec->data;
            if (ep->caps & FI_SOURCE) {
                event->src = cxiemu_av_find(ep->av, arrival->peer, rec->src_ep);
            }
            cxiemu_cq_push(ep->rx_cq, event);
        }
    }
    cxiemu_link_answer(arrival, CXIEMU_ACK_DONE, err, 0);
}

static void cxiemu_target_read(const cxiemu_arrival_t *arrival)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    cxiemu_link_t *link     = arrival->link;
    uint64_t value          = 0;
    void *address           = NULL;
    cxiemu_mr_t *mr;
    int err;

    err = cxiemu_target_find(arrival, FI_REMOTE_READ, &mr, &address);
    if ((err == 0) && (rec->length > 0)) {
        link->nic->copied += rec->length;
        if ((rec->type == CXIEMU_REC_PUSH) && link->same_process) {
            memcpy((void*)(uintptr_t)rec->source, address, rec->length);
        } else if (rec->type == CXIEMU_REC_PUSH) {
            err = -cxiemu_map_copy(link->pid, address, rec->source, rec->length,
                                   1);
        } else if (rec->flags & CXIEMU_REC_SLOT) {
            memcpy(link->shm->slots[rec->source], address, rec->length);
        } else if (rec->length > sizeof(value)) {
            err = FI_EINVAL;
        } else if ((rec->length == sizeof(value)) &&
                   ((uintptr_t)address % sizeof(value) == 0)) {
            value = __atomic_load_n((uint64_t*)address, __ATOMIC_ACQUIRE);
        } else {
            memcpy(&value, address, rec->length);
        }
    }
    if ((err == 0) && (rec->flags & CXIEMU_REC_LAST) &&
        cxiemu_param()->strict) {
        cxiemu_mr_accessed(mr);
    }
    cxiemu_link_answer(arrival, CXIEMU_ACK_DONE, err, value);
}

/* Carry an atomic out; 0 and the value before it, or FI_E*. */
static int cxiemu_target_apply(const cxiemu_arrival_t *arrival,
                               uint64_t *value_p)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    uint32_t kind           = CXIEMU_ATOMIC_KIND(rec->code);
    cxiemu_atomic_t atomic  = {
        .op       = CXIEMU_ATOMIC_OP(rec->code),
        .datatype = CXIEMU_ATOMIC_DATATYPE(rec->code),
        .operand  = rec->payload,
        .compare  = rec->source
    };
    uint64_t access = (atomic.op == FI_ATOMIC_READ) ? FI_REMOTE_READ :
                      (kind == 0)                   ? FI_REMOTE_WRITE :
                                        FI_REMOTE_READ | FI_REMOTE_WRITE;
    void *address   = NULL;
    cxiemu_mr_t *mr = NULL;
    int err;

    if ((kind > 2) ||
        (cxiemu_atomic_valid((cxiemu_op_kind_t)(CXIEMU_OP_ATOMIC + kind),
                             atomic.datatype, atomic.op) != 0) ||
        (rec->length != cxiemu_atomic_size(atomic.datatype))) {
        return FI_EINVAL;
    }

    err = cxiemu_target_find(arrival, access, &mr, &address);
    if (err != 0) {
        return err;
    }
    if ((uintptr_t)address % rec->length != 0) {
        return CXIEMU_ERROR_ALIGN;
    }
    *value_p = cxiemu_atomic_apply(&atomic, address);
    if ((atomic.op != FI_ATOMIC_READ) || cxiemu_param()->strict) {
        cxiemu_mr_accessed(mr);
    }
    return 0;
}

/* A whole write. */
static int cxiemu_target_write(const cxiemu_arrival_t *arrival)
{
    cxiemu_mr_t *mr = NULL;
    int err         = cxiemu_target_land(arrival, 0, arrival->rec.length, &mr);

    cxiemu_target_landed(arrival, mr, err);
    return err;
}

int cxiemu_target_local(const cxiemu_arrival_t *arrival, uint64_t *value_p)
{
    return (arrival->rec.type == CXIEMU_REC_ATOMIC) ?
                   cxiemu_target_apply(arrival, value_p) :
                   cxiemu_target_write(arrival);
}

void cxiemu_target_execute(const cxiemu_arrival_t *arrival)
{
    uint64_t value = 0;
    int err;

    switch (arrival->rec.type) {
    case CXIEMU_REC_WRITE:
    case CXIEMU_REC_PULL:
        (void)cxiemu_target_write(arrival);
        break;
    case CXIEMU_REC_READ:
    case CXIEMU_REC_PUSH:
        cxiemu_target_read(arrival);
        break;
    case CXIEMU_REC_ATOMIC:
        err = cxiemu_target_apply(arrival, &value);
        cxiemu_link_answer(arrival, CXIEMU_ACK_DONE, err, value);
        break;
    case CXIEMU_REC_SEND:
    case CXIEMU_REC_RTS:
    case CXIEMU_REC_DATA:
        cxiemu_rx_arrived(arrival);
        break;
    default:
        cxiemu_link_answer(arrival, CXIEMU_ACK_DONE, FI_EINVAL, 0);
        break;
    }
}
