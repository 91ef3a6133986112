/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_target.c - carrying out what peers ask for.
 *
 * The fields of a record are copied before they are checked. Payload may change
 * until it is copied; that harms only the peer's own data.
 */
#include "cxiemu_target.h"
#include "cxiemu_atomic.h"
#include "cxiemu_bypass.h"
#include "cxiemu_ep.h"
#include "cxiemu_log.h"
#include "cxiemu_mr.h"
#include "cxiemu_rx.h"

#include <rdma/fi_errno.h>

#include <string.h>


void cxiemu_target_ack(const cxiemu_arrival_t *arrival, cxiemu_ack_type_t type,
                       int status, uint64_t value)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    cxiemu_link_t *link     = arrival->link;
    cxiemu_ack_t *ack;

    if (!(rec->flags & CXIEMU_REC_ACK) || (link == NULL) ||
        (link->state != CXIEMU_LINK_UP)) {
        return;
    }

    ack = cxiemu_link_next_ack(link);
    if (ack == NULL) {
        return;
    }
    ack->type   = type;
    ack->status = status;
    ack->op     = rec->op;
    ack->slot   = (rec->flags & CXIEMU_REC_SLOT) ? rec->source : UINT32_MAX;
    ack->value  = value;
    /* What only says that an operation is over can wait for the next look; what
     * the initiator has to go on with, or may wait for, cannot */
    if ((type != CXIEMU_ACK_DONE) || (status != 0) || (value != 0) ||
        (rec->flags & CXIEMU_REC_SLOT) || (rec->type == CXIEMU_REC_READ) ||
        (rec->type == CXIEMU_REC_PUSH) || (rec->type == CXIEMU_REC_ATOMIC)) {
        link->urgent = 1;
    }
    cxiemu_link_ack(link, ack);
}


static void cxiemu_target_forget_mems(cxiemu_link_t *link)
{
    unsigned i;

    for (i = 0; i < CXIEMU_LINK_MEMS; ++i) {
        cxiemu_map_put(link->mems[i].map);
        link->mems[i].map = NULL;
    }
}

/* The mapping of shared memory that a record names, kept for the next one. */
static int cxiemu_target_map(cxiemu_link_t *link, const cxiemu_rec_t *rec,
                             cxiemu_map_t **map_p)
{
    uint32_t epoch = CXIEMU_MEM_EPOCH(rec->source);
    unsigned i;
    int ret;

    if (link->mem_epoch != epoch) {
        cxiemu_target_forget_mems(link);
        link->mem_epoch = epoch;
    }
    for (i = 0; i < CXIEMU_LINK_MEMS; ++i) {
        if ((link->mems[i].map != NULL) && (link->mems[i].fd == rec->mem)) {
            *map_p = link->mems[i].map;
            return 0;
        }
    }

    ret = cxiemu_map_open(link->pid, rec->mem, 0, map_p);
    if (ret != 0) {
        return -ret;
    }
    i = link->mem_next++ % CXIEMU_LINK_MEMS;
    cxiemu_map_put(link->mems[i].map);
    link->mems[i].fd  = rec->mem;
    link->mems[i].map = *map_p;
    return 0;
}

/* Where memory that a record names is mapped here; 0, or FI_E*. */
static int cxiemu_target_mapped(const cxiemu_arrival_t *arrival,
                                uint64_t offset, size_t length,
                                uint8_t **address_p)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    uint64_t start          = CXIEMU_MEM_OFFSET(rec->source) + offset;
    cxiemu_map_t *map       = NULL;
    int err;

    err = cxiemu_target_map(arrival->link, rec, &map);
    if (err != 0) {
        return err;
    }
    if ((start < offset) || (start > map->length) ||
        (length > map->length - start)) {
        return FI_EFAULT;
    }

    *address_p = (uint8_t*)map->address + start;
    return 0;
}

/* Words are stored as a whole, and after everything before: somebody may poll
 * them. */
static void cxiemu_target_put(void *to, const void *from, size_t length)
{
    uint64_t word;
    uint32_t half;

    if ((length == sizeof(word)) && ((uintptr_t)to % sizeof(word) == 0)) {
        memcpy(&word, from, sizeof(word));
        __atomic_store_n((uint64_t*)to, word, __ATOMIC_RELEASE);
    } else if ((length == sizeof(half)) &&
               ((uintptr_t)to % sizeof(half) == 0)) {
        memcpy(&half, from, sizeof(half));
        __atomic_store_n((uint32_t*)to, half, __ATOMIC_RELEASE);
    } else {
        memcpy(to, from, length);
    }
}

int cxiemu_target_fetch(const cxiemu_arrival_t *arrival, uint64_t offset,
                        void *to, size_t length)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    cxiemu_link_t *link     = arrival->link;
    uint8_t *from;
    int err;

    if (length == 0) {
        return 0;
    }
    if (arrival->payload != NULL) {
        cxiemu_target_put(to, arrival->payload + offset, length);
        return 0;
    }
    if ((link == NULL) || (link->state != CXIEMU_LINK_UP)) {
        return FI_EHOSTUNREACH;
    }
    if (rec->flags & CXIEMU_REC_MEM) {
        err = cxiemu_target_mapped(arrival, offset, length, &from);
        if (err == 0) {
            memcpy(to, from, length);
        }
        return err;
    }
    if (link->same_process) {
        memcpy(to, (void*)(uintptr_t)(rec->source + offset), length);
        return 0;
    }
    return -cxiemu_map_fetch(link->pid, to, rec->source + offset, length);
}

/* The way back: into memory of the initiator. */
static int cxiemu_target_store(const cxiemu_arrival_t *arrival,
                               const void *from, size_t length)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    cxiemu_link_t *link     = arrival->link;
    uint8_t *to;
    int err;

    if (rec->flags & CXIEMU_REC_MEM) {
        err = cxiemu_target_mapped(arrival, 0, length, &to);
        if (err == 0) {
            memcpy(to, from, length);
        }
        return err;
    }
    if (link->same_process) {
        memcpy((void*)(uintptr_t)rec->source, from, length);
        return 0;
    }
    return -cxiemu_map_store(link->pid, rec->source, from, length);
}


static int cxiemu_target_find(const cxiemu_arrival_t *arrival, uint64_t access,
                              cxiemu_mr_t **mr_p, void **address_p)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    cxiemu_mr_want_t want   = {
        .key    = rec->tag,
        .addr   = rec->addr,
        .length = rec->length,
        .access = access,
        .ep     = rec->dst_ep
    };

    return cxiemu_mr_find(arrival->link->nic, &want, mr_p, address_p);
}

int cxiemu_target_land(const cxiemu_arrival_t *arrival, uint64_t offset,
                       size_t length, cxiemu_mr_t **mr_p)
{
    uint8_t *to = NULL;
    void *address;
    int err;

    err = cxiemu_target_find(arrival, FI_REMOTE_WRITE, mr_p, &address);
    if (err != 0) {
        return err;
    }
    if (length == 0) {
        return 0;
    }

    to  = (uint8_t*)address + offset;
    err = cxiemu_target_fetch(arrival, offset, to, length);
    if (err == 0) {
        cxiemu_nic_stored(arrival->link->nic, to, length);
    }
    return err;
}

/* Remote completion data of a write. */
static void cxiemu_target_tell_data(const cxiemu_arrival_t *arrival)
{
    cxiemu_nic_t *nic = arrival->link->nic;
    cxiemu_ep_t *ep   = (arrival->rec.dst_ep < CXIEMU_MAX_EPS) ?
                                nic->eps[arrival->rec.dst_ep] :
                                NULL;
    cxiemu_cq_event_t *event;

    if ((ep == NULL) || (ep->rx_cq == NULL)) {
        return;
    }

    event              = cxiemu_cq_next(ep->rx_cq);
    event->entry.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
    event->entry.data  = arrival->rec.data;
    if (ep->caps & FI_SOURCE) {
        event->src = cxiemu_av_find(ep->av, arrival->peer,
                                    arrival->rec.src_ep);
    }
    cxiemu_cq_push(ep->rx_cq, event);
}

void cxiemu_target_landed(const cxiemu_arrival_t *arrival, cxiemu_mr_t *mr,
                          int err)
{
    if ((err == 0) && (arrival->rec.flags & CXIEMU_REC_LAST)) {
        cxiemu_mr_written(mr);
        if (arrival->rec.flags & CXIEMU_REC_CQ_DATA) {
            cxiemu_target_tell_data(arrival);
        }
        cxiemu_nic_wake_waiters(arrival->link->nic);
    }
    cxiemu_target_ack(arrival, CXIEMU_ACK_DONE, err, 0);
}

static void cxiemu_target_write(const cxiemu_arrival_t *arrival)
{
    cxiemu_mr_t *mr = NULL;
    int err         = cxiemu_target_land(arrival, 0, arrival->rec.length, &mr);

    cxiemu_target_landed(arrival, mr, err);
}

static void cxiemu_target_read(const cxiemu_arrival_t *arrival)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    uint64_t value          = 0;
    void *address           = NULL;
    cxiemu_mr_t *mr;
    int err;

    err = cxiemu_target_find(arrival, FI_REMOTE_READ, &mr, &address);
    if ((err == 0) && (rec->length > 0)) {
        if (rec->type == CXIEMU_REC_PUSH) {
            err = cxiemu_target_store(arrival, address, rec->length);
        } else if (rec->flags & CXIEMU_REC_SLOT) {
            cxiemu_bypass_fill(arrival->link, rec->source, address,
                               rec->length, rec->length);
        } else if (rec->length > sizeof(value)) {
            err = FI_EINVAL;
        } else if ((rec->length == sizeof(value)) &&
                   ((uintptr_t)address % sizeof(value) == 0)) {
            value = __atomic_load_n((uint64_t*)address, __ATOMIC_ACQUIRE);
        } else {
            memcpy(&value, address, rec->length);
        }
    }
    cxiemu_target_ack(arrival, CXIEMU_ACK_DONE, err, value);
}

/* Carry an atomic out; 0 and the value before it, or FI_E*. */
static int cxiemu_target_apply(const cxiemu_arrival_t *arrival,
                               uint64_t *value_p)
{
    const cxiemu_rec_t *rec = &arrival->rec;
    uint32_t kind           = CXIEMU_ATOMIC_KIND(rec->mem);
    cxiemu_atomic_t atomic  = {
        .op       = CXIEMU_ATOMIC_OP(rec->mem),
        .datatype = CXIEMU_ATOMIC_DATATYPE(rec->mem),
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
        return FI_EIO; /* As Cassini answers what it cannot carry out */
    }
    *value_p = cxiemu_atomic_apply(&atomic, address);
    if (atomic.op != FI_ATOMIC_READ) {
        cxiemu_nic_stored(arrival->link->nic, address, rec->length);
        cxiemu_mr_written(mr);
        cxiemu_nic_wake_waiters(arrival->link->nic);
    }
    return 0;
}

static void cxiemu_target_atomic(const cxiemu_arrival_t *arrival)
{
    uint64_t value = 0;
    int err        = cxiemu_target_apply(arrival, &value);

    cxiemu_target_ack(arrival, CXIEMU_ACK_DONE, err, value);
}

int cxiemu_target_local(const cxiemu_arrival_t *arrival, uint64_t *value_p)
{
    cxiemu_mr_t *mr = NULL;
    int err;

    if (arrival->rec.type == CXIEMU_REC_ATOMIC) {
        return cxiemu_target_apply(arrival, value_p);
    }
    err = cxiemu_target_land(arrival, 0, arrival->rec.length, &mr);
    cxiemu_target_landed(arrival, mr, err);
    return err;
}

void cxiemu_target_execute(const cxiemu_arrival_t *arrival)
{
    switch (arrival->rec.type) {
    case CXIEMU_REC_WRITE:
    case CXIEMU_REC_PULL:
        cxiemu_target_write(arrival);
        break;
    case CXIEMU_REC_READ:
    case CXIEMU_REC_PUSH:
        cxiemu_target_read(arrival);
        break;
    case CXIEMU_REC_ATOMIC:
        cxiemu_target_atomic(arrival);
        break;
    case CXIEMU_REC_SEND:
    case CXIEMU_REC_RTS:
    case CXIEMU_REC_DATA:
        cxiemu_rx_arrived(arrival);
        break;
    default:
        cxiemu_target_ack(arrival, CXIEMU_ACK_DONE, FI_EINVAL, 0);
        break;
    }
}


/* Whether a kind of records brings its payload with it. */
static int cxiemu_target_brings(const cxiemu_rec_t *rec)
{
    return !(rec->flags & CXIEMU_REC_MEM) &&
           ((rec->type == CXIEMU_REC_SEND) || (rec->type == CXIEMU_REC_DATA) ||
            (rec->type == CXIEMU_REC_WRITE));
}

/* Find the payload; whether the record is sound. */
static int cxiemu_target_check(cxiemu_arrival_t *arrival,
                               cxiemu_rec_t *shared)
{
    cxiemu_rec_t *rec = &arrival->rec;

    arrival->payload = NULL;
    if (rec->flags & CXIEMU_REC_SLOT) {
        if ((rec->source >= CXIEMU_SLOTS) ||
            (rec->length > cxiemu_link_slot_size(rec->source)) ||
            (rec->flags & CXIEMU_REC_MEM)) {
            return 0;
        }
        if (cxiemu_target_brings(rec)) {
            arrival->payload = cxiemu_link_slot(arrival->link, rec->source);
            arrival->link->nic->has_parts |= !(rec->flags & CXIEMU_REC_LAST);
        }
        return (arrival->payload != NULL) || (rec->type == CXIEMU_REC_READ);
    }
    if (!cxiemu_target_brings(rec)) {
        return 1;
    }

    arrival->payload = (rec->cells == 1) ? cxiemu_rec_small(rec) :
                                           (void*)(shared + 1);
    return rec->length <= cxiemu_rec_room(rec);
}

void cxiemu_target_record(cxiemu_link_t *link, cxiemu_rec_t *rec)
{
    cxiemu_arrival_t arrival = {.link = link, .peer = link->peer};

    arrival.rec = *rec;
    if (!cxiemu_target_check(&arrival, rec)) {
        cxiemu_info(EP_DATA, "process %u sent a record that makes no sense\n",
                    link->pid);
        cxiemu_target_ack(&arrival, CXIEMU_ACK_DONE, FI_EINVAL, 0);
        return;
    }
    if (!cxiemu_param()->strict || !cxiemu_late_takes(&arrival)) {
        cxiemu_target_execute(&arrival);
    }
}
