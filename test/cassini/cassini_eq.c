/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_eq.c - event queues.
 *
 * A ring of slots of 64 bytes; the first holds the status. Each event takes a
 * slot, filled up with empty events. Software acknowledges by a store which
 * slot it reads next. An event without a free slot is lost, as on the
 * hardware; those of messages are not made unless there is room for them.
 */
#include "cassini_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sizes and types of events, byte 14 of each. */
#define CASSINI_EV_HEAD(_size, _type) ((_size) | ((_type) << 2))


static cassini_eq_ack_t cassini_eq_ack_word(const cassini_eq_obj_t *eq)
{
    uint64_t word = __atomic_load_n(&eq->ack, __ATOMIC_ACQUIRE);
    cassini_eq_ack_t ack;

    memcpy(&ack, &word, sizeof(ack));
    return ack;
}

static unsigned cassini_eq_next(const cassini_eq_obj_t *eq, unsigned slot)
{
    return (slot + 1 < eq->slots) ? slot + 1 : 1;
}

/* Slots that can still be written. */
static unsigned cassini_eq_free(const cassini_eq_obj_t *eq)
{
    cassini_eq_ack_t ack = cassini_eq_ack_word(eq);
    unsigned ring        = eq->slots - 1;
    unsigned read        = (ack.read == 0) ? 1 : ack.read;

    return (read + ring - eq->write - 1) % ring;
}

static void cassini_eq_write_status(cassini_eq_obj_t *eq, int dropped)
{
    cassini_eq_status_t *where = (cassini_eq_status_t*)eq->pub.events;
    cassini_eq_status_t status;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    memcpy(&status, where, sizeof(status));
    status.ns       = now.tv_nsec;
    status.sec      = now.tv_sec;
    status.ns_copy  = now.tv_nsec;
    status.sec_copy = now.tv_sec;
    status.free     = cassini_eq_free(eq);
    status.reserved = eq->reserved;
    status.write    = eq->write;
    status.fill     = !dropped;
    if (dropped) {
        status.dropped  = 1;
        status.drop_seq = !status.drop_seq;
    }
    cassini_trap_copy(where, &status, sizeof(status));
}

static void cassini_eq_interrupt(cassini_eq_obj_t *eq)
{
    char byte = 1;

    if ((eq->wait == NULL) || eq->wait->raised ||
        cassini_eq_ack_word(eq).no_interrupt) {
        return;
    }
    /* The user polls for urgent data, as with the library's own descriptor */
    eq->wait->raised = 1;
    if (send(eq->wait->fds[1], &byte, 1, MSG_OOB | MSG_DONTWAIT) < 0) {
        cassini_trace("wait object: %s", strerror(errno));
    }
}

/* The last byte of an event comes last: it says that the event is there. */
static void cassini_eq_write(cassini_eq_obj_t *eq, const void *event,
                             unsigned bytes)
{
    uint8_t *slot = eq->pub.events + eq->write * CASSINI_SLOT;
    uint8_t image[CASSINI_SLOT];
    unsigned offset = bytes;
    unsigned step;

    memset(image, 0, sizeof(image));
    memcpy(image, event, bytes);
    while (offset < CASSINI_SLOT) {
        step = (offset == 16) ? 16 : 32;
        image[offset + 14] = CASSINI_EV_HEAD((step == 16) ? CASSINI_EV_16B :
                                                            CASSINI_EV_32B,
                                             CASSINI_EV_NULL);
        image[offset + step - 1] = CASSINI_RC_OK;
        offset += step;
    }
    if ((cassini_trap_copy(slot + bytes, image + bytes,
                           CASSINI_SLOT - bytes) != 0) ||
        (cassini_trap_copy(slot, image, bytes - 1) != 0)) {
        return;
    }
    __atomic_store_n(&slot[bytes - 1], image[bytes - 1], __ATOMIC_RELEASE);
}

void cassini_eq_post(unsigned eqn, const void *event)
{
    cassini_eq_obj_t *eq = (eqn < CASSINI_NUM_EQS) ? cassini_nic.eqs[eqn] :
                                                     NULL;
    uint8_t head         = ((const uint8_t*)event)[14];
    unsigned free;

    if (eq == NULL) {
        return;
    }
    free = cassini_eq_free(eq);
    if (free == 0) {
        cassini_say("event queue %u is full: an event is lost", eqn);
        cassini_eq_write_status(eq, 1);
        return;
    }
    cassini_eq_write(eq, event, 8u << (head & 3));
    eq->write = cassini_eq_next(eq, eq->write);
    if (eq->fill != 0) {
        if (eq->slots - free < eq->fill) {
            eq->filled = 0;
        } else if (!eq->filled) {
            eq->filled = 1;
            cassini_eq_write_status(eq, 0);
        }
    }
    cassini_eq_interrupt(eq);
}

int cassini_eq_has_room(unsigned eqn, unsigned count)
{
    const cassini_eq_obj_t *eq = (eqn < CASSINI_NUM_EQS) ?
                                 cassini_nic.eqs[eqn] : NULL;
    unsigned free;

    if (eq == NULL) {
        return 1;
    }
    free = cassini_eq_free(eq);
    return (free >= eq->reserved + count) &&
           (eq->slots - 2 - free + count <= eq->room);
}

void cassini_eq_post_init(unsigned eqn, const cassini_ev_init_t *event)
{
    cassini_ev_init_t copy = *event;

    if (eqn != 0) {
        copy.size = CASSINI_EV_16B;
        cassini_eq_post(eqn, &copy);
    }
}

/* Clear slots that are not yet: rings are long, and mostly never used. */
static void cassini_eq_clear(uint8_t *ring, size_t length)
{
    static const uint8_t zeros[4096];
    size_t offset, step;

    for (offset = 0; offset < length; offset += step) {
        step = (length - offset < sizeof(zeros)) ? length - offset :
                                                   sizeof(zeros);
        if (memcmp(ring + offset, zeros, step) != 0) {
            memset(ring + offset, 0, step);
        }
    }
}

int cxil_alloc_evtq(cassini_lni_t *lni, const cassini_md_t *md,
                    const cassini_eq_attr_t *attr, cassini_wait_t *event_wait,
                    cassini_wait_t *status_wait, cassini_eq_t **eq_p)
{
    cassini_lni_obj_t *owner = (cassini_lni_obj_t*)lni;
    cassini_eq_obj_t *eq;
    cassini_eq_ack_t ack;
    int ret;

    (void)md;
    (void)status_wait;
    if ((attr->queue == NULL) || (attr->length < 4 * CASSINI_SLOT)) {
        return -EINVAL;
    }
    eq = calloc(1, sizeof(*eq));
    if (eq == NULL) {
        return -ENOMEM;
    }
    cassini_eq_clear(attr->queue, attr->length);
    memset(&ack, 0, sizeof(ack));
    ack.read  = 1;
    eq->epoch = cassini_nic.epoch;
    eq->lni   = owner;
    eq->slots = (unsigned)(attr->length / CASSINI_SLOT);
    eq->write = 1;
    eq->wait  = event_wait;
    eq->room  = eq->slots - CASSINI_RING_RESERVED;
    if ((cassini_settings.eq_slots != 0) &&
        (cassini_settings.eq_slots < eq->room)) {
        eq->room = cassini_settings.eq_slots;
    }
    eq->reserved = attr->reserved;
    if (attr->fill_count != 0) {
        eq->fill = eq->slots * attr->fill_base / 100;
    }
    memcpy(&eq->ack, &ack, sizeof(ack));
    eq->pub.bytes       = (uint32_t)attr->length;
    eq->pub.ack         = ack;
    eq->pub.ack_p       = &eq->ack;
    eq->pub.read        = CASSINI_SLOT;
    eq->pub.read_before = CASSINI_SLOT;
    eq->pub.events      = attr->queue;

    cassini_nic_lock();
    ret = cassini_dir_take(owner->svc, CASSINI_RSRC_EQ);
    if (ret == 0) {
        do {
            cassini_nic.next_eq = cassini_nic.next_eq % (CASSINI_NUM_EQS - 1) +
                                  1;
        } while (cassini_nic.eqs[cassini_nic.next_eq] != NULL);
        eq->pub.eqn                  = cassini_nic.next_eq;
        cassini_nic.eqs[eq->pub.eqn] = eq;
        ++cassini_nic.open[CASSINI_OPEN_EQ];
    }
    cassini_nic_unlock();
    if (ret != 0) {
        free(eq);
        return ret;
    }
    *eq_p = &eq->pub;
    return 0;
}

int cxil_destroy_evtq(cassini_eq_t *pub)
{
    cassini_eq_obj_t *eq = (cassini_eq_obj_t*)pub;

    if (!cassini_is_mine(eq)) {
        return 0;
    }
    cassini_nic_lock();
    cassini_temper_progress(1);
    cassini_nic.eqs[eq->pub.eqn] = NULL;
    cassini_tx_forget_eq(eq->pub.eqn);
    cassini_dir_give(eq->lni->svc, CASSINI_RSRC_EQ, 1);
    --cassini_nic.open[CASSINI_OPEN_EQ];
    cassini_nic_unlock();
    free(eq);
    return 0;
}

int cxil_evtq_adjust_reserved_fc(cassini_eq_t *pub, int change)
{
    cassini_eq_obj_t *eq = (cassini_eq_obj_t*)pub;
    int reserved;

    if (!cassini_is_mine(eq)) {
        return -EINVAL;
    }
    cassini_nic_lock();
    reserved = (int)eq->reserved + change;
    if (reserved < 0) {
        reserved = -EINVAL;
    } else if (reserved > (int)(eq->slots - CASSINI_RING_RESERVED)) {
        reserved = -ENOSPC;
    } else {
        eq->reserved = (unsigned)reserved;
    }
    cassini_nic_unlock();
    return reserved;
}

int cxil_alloc_wait_obj(cassini_lni_t *lni, cassini_wait_t **wait_p)
{
    cassini_wait_t *wait;

    (void)lni;
    wait = calloc(1, sizeof(*wait));
    if (wait == NULL) {
        return -ENOMEM;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, wait->fds) != 0) {
        free(wait);
        return -errno;
    }
    cassini_nic_lock();
    wait->epoch = cassini_nic.epoch;
    ++cassini_nic.open[CASSINI_OPEN_WAIT];
    cassini_nic_unlock();
    *wait_p = wait;
    return 0;
}

int cxil_destroy_wait_obj(cassini_wait_t *wait)
{
    unsigned i;

    if (!cassini_is_mine(wait)) {
        return 0;
    }
    cassini_nic_lock();
    for (i = 0; i < CASSINI_NUM_EQS; ++i) {
        if ((cassini_nic.eqs[i] != NULL) &&
            (cassini_nic.eqs[i]->wait == wait)) {
            cassini_nic_unlock();
            return -EBUSY;
        }
    }
    --cassini_nic.open[CASSINI_OPEN_WAIT];
    cassini_nic_unlock();
    close(wait->fds[0]);
    close(wait->fds[1]);
    free(wait);
    return 0;
}

int cxil_get_wait_obj_fd(cassini_wait_t *wait)
{
    return wait->fds[0];
}

void cxil_clear_wait_obj(cassini_wait_t *wait)
{
    char bytes[8];

    cassini_nic_lock();
    while (recv(wait->fds[0], bytes, 1, MSG_OOB | MSG_DONTWAIT) > 0) {
    }
    while (recv(wait->fds[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0) {
    }
    wait->raised = 0;
    cassini_nic_unlock();
}
