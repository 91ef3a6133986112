/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_net.c - packets between the NICs of a node.
 *
 * To another process through a ring in shared memory: one producer, one
 * consumer, a packet lies in it in one piece. The producer moves the tail
 * last, so that one that is killed leaves nothing half done. To itself through
 * a list.
 */
#include "cassini_parts.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    CASSINI_NET_BATCH = 64 /**< Packets at a time */
};

/* In front of a packet in memory. */
typedef struct cassini_node {
    struct cassini_node *next;
    uint64_t            pad;
} cassini_node_t;

typedef struct cassini_fifo {
    cassini_node_t *head;
    cassini_node_t *tail;
} cassini_fifo_t;

/* Packets for each process that wait: for room, or, to itself, for a turn. */
static cassini_fifo_t cassini_net_fifos[CASSINI_SLOTS];
static uint64_t cassini_net_waiting; /* Bit of each that has some */


static cassini_packet_t *cassini_node_packet(cassini_node_t *node)
{
    return (cassini_packet_t*)(node + 1);
}

cassini_packet_t *cassini_net_new(int type, size_t data)
{
    size_t bytes = (sizeof(cassini_packet_t) + data + 63) & ~(size_t)63;
    cassini_node_t *node;
    cassini_packet_t *packet;

    node = malloc(sizeof(*node) + bytes);
    if (node == NULL) {
        cassini_say("no memory for a packet");
        return NULL;
    }
    packet = cassini_node_packet(node);
    memset(packet, 0, sizeof(*packet));
    packet->bytes    = (uint32_t)bytes;
    packet->type     = (uint8_t)type;
    packet->from     = (uint8_t)cassini_dir_self;
    packet->from_gen = cassini_dir_gen;
    packet->data     = (uint32_t)data;
    return packet;
}

void cassini_net_free(cassini_packet_t *packet)
{
    free((cassini_node_t*)packet - 1);
}

static void cassini_net_wake(unsigned slot)
{
    cassini_slot_t *place = &cassini_dir->slots[slot];

    __atomic_add_fetch(&place->wakes, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&place->asleep, __ATOMIC_SEQ_CST)) {
        syscall(SYS_futex, &place->wakes, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

/* Put a packet into a ring: whether there was room. */
static int cassini_net_push(const cassini_packet_t *packet)
{
    cassini_ring_t *ring = &cassini_dir->rings[cassini_dir_self][packet->to];
    uint64_t head        = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
    uint64_t tail        = ring->tail;
    uint64_t place       = tail % CASSINI_RING_BYTES;
    uint64_t rest        = CASSINI_RING_BYTES - place;
    uint64_t need        = packet->bytes;
    cassini_packet_t *skip;

    if (rest < packet->bytes) {
        need += rest;
    }
    if (tail + need - head > CASSINI_RING_BYTES) {
        return 0;
    }
    if (rest < packet->bytes) {
        skip        = (cassini_packet_t*)(ring->data + place);
        skip->bytes = (uint32_t)rest;
        skip->type  = 0;
        place       = 0;
    }
    memcpy(ring->data + place, packet, sizeof(*packet) + packet->data);
    __atomic_store_n(&ring->tail, tail + need, __ATOMIC_RELEASE);
    __atomic_or_fetch(&cassini_dir->slots[packet->to].inbox,
                      1ull << cassini_dir_self, __ATOMIC_SEQ_CST);
    cassini_net_wake(packet->to);
    return 1;
}

static cassini_packet_t *cassini_fifo_pop(unsigned slot)
{
    cassini_fifo_t *fifo = &cassini_net_fifos[slot];
    cassini_node_t *node = fifo->head;

    fifo->head = node->next;
    if (fifo->head == NULL) {
        fifo->tail           = NULL;
        cassini_net_waiting &= ~(1ull << slot);
    }
    return cassini_node_packet(node);
}

static void cassini_fifo_push(cassini_packet_t *packet)
{
    cassini_fifo_t *fifo = &cassini_net_fifos[packet->to];
    cassini_node_t *node = (cassini_node_t*)packet - 1;

    node->next = NULL;
    if (fifo->tail == NULL) {
        fifo->head = node;
    } else {
        fifo->tail->next = node;
    }
    fifo->tail           = node;
    cassini_net_waiting |= 1ull << packet->to;
}

void cassini_net_send(cassini_packet_t *packet)
{
    if ((packet->to != cassini_dir_self) &&
        !(cassini_net_waiting & (1ull << packet->to)) &&
        cassini_net_push(packet)) {
        cassini_net_free(packet);
        return;
    }
    cassini_fifo_push(packet);
}

static void cassini_net_handle(const cassini_packet_t *packet)
{
    if (packet->to_gen != cassini_dir_gen) {
        return; /* To the one that had this slot before */
    }
    if (packet->type == CASSINI_REQUEST_) {
        cassini_tgt_request(packet);
    } else {
        cassini_tx_response(packet);
    }
}

static unsigned cassini_net_receive(unsigned from)
{
    cassini_ring_t *ring = &cassini_dir->rings[from][cassini_dir_self];
    uint64_t head        = ring->head;
    unsigned done        = 0;
    const cassini_packet_t *packet;

    while ((head != __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE)) &&
           (done < CASSINI_NET_BATCH)) {
        packet = (cassini_packet_t*)(ring->data + head % CASSINI_RING_BYTES);
        if (packet->type != 0) {
            cassini_net_handle(packet);
            ++done;
        }
        head += packet->bytes;
        __atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
    }
    if (done == CASSINI_NET_BATCH) {
        __atomic_or_fetch(&cassini_dir->slots[cassini_dir_self].inbox,
                          1ull << from, __ATOMIC_SEQ_CST);
    }
    return done;
}

void cassini_net_drain(unsigned from)
{
    while (cassini_net_receive(from) != 0) {
    }
}

/* Handle packets to itself: those that are there now. */
static unsigned cassini_net_loop_back(void)
{
    cassini_fifo_t *fifo = &cassini_net_fifos[cassini_dir_self];
    unsigned done        = 0;
    cassini_packet_t *packet;

    while ((fifo->head != NULL) && (done < CASSINI_NET_BATCH)) {
        packet = cassini_fifo_pop(cassini_dir_self);
        cassini_net_handle(packet);
        cassini_net_free(packet);
        ++done;
    }
    return done;
}

static unsigned cassini_net_flush(unsigned slot)
{
    cassini_fifo_t *fifo = &cassini_net_fifos[slot];
    unsigned done        = 0;
    cassini_packet_t *packet;

    while (fifo->head != NULL) {
        packet = cassini_node_packet(fifo->head);
        if (packet->to_gen != __atomic_load_n(&cassini_dir->slots[slot].gen,
                                              __ATOMIC_ACQUIRE)) {
            cassini_net_free(cassini_fifo_pop(slot));
            continue;
        }
        if (!cassini_net_push(packet)) {
            break;
        }
        cassini_net_free(cassini_fifo_pop(slot));
        ++done;
    }
    return done;
}

unsigned cassini_net_progress(void)
{
    unsigned done  = cassini_net_loop_back();
    uint64_t inbox = __atomic_exchange_n(
            &cassini_dir->slots[cassini_dir_self].inbox, 0, __ATOMIC_SEQ_CST);
    uint64_t waiting;
    unsigned from;

    while (inbox != 0) {
        from   = (unsigned)__builtin_ctzll(inbox);
        inbox &= inbox - 1;
        done  += cassini_net_receive(from);
    }
    waiting = cassini_net_waiting & ~(1ull << cassini_dir_self);
    while (waiting != 0) {
        from     = (unsigned)__builtin_ctzll(waiting);
        waiting &= waiting - 1;
        done    += cassini_net_flush(from);
    }
    return done;
}

int cassini_net_has(void)
{
    return (cassini_net_fifos[cassini_dir_self].head != NULL) ||
           (__atomic_load_n(&cassini_dir->slots[cassini_dir_self].inbox,
                            __ATOMIC_SEQ_CST) != 0);
}

int cassini_net_is_blocked(void)
{
    return (cassini_net_waiting & ~(1ull << cassini_dir_self)) != 0;
}

static int cassini_net_copy(unsigned slot, void *local, uint64_t remote,
                            size_t length, int write)
{
    struct iovec here  = {.iov_base = local, .iov_len = length};
    struct iovec there = {.iov_base = (void*)(uintptr_t)remote,
                          .iov_len  = length};
    pid_t pid          = (pid_t)cassini_dir->slots[slot].pid;
    ssize_t ret;

    if (length == 0) {
        return 0;
    }
    if (slot == cassini_dir_self) {
        return write ? cassini_trap_copy(there.iov_base, local, length) :
                       cassini_trap_copy(local, there.iov_base, length);
    }
    ret = write ? process_vm_writev(pid, &here, 1, &there, 1, 0) :
                  process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (ret == (ssize_t)length) {
        return 0;
    }
    if ((ret < 0) && (errno != EFAULT) && (errno != ESRCH)) {
        cassini_say("memory of process %d cannot be reached: %s", (int)pid,
                    strerror(errno));
    }
    return -1;
}

int cassini_net_read(unsigned slot, void *local, uint64_t remote, size_t length)
{
    return cassini_net_copy(slot, local, remote, length, 0);
}

int cassini_net_write(unsigned slot, const void *local, uint64_t remote,
                      size_t length)
{
    return cassini_net_copy(slot, (void*)local, remote, length, 1);
}

void cassini_net_forget(void)
{
    unsigned i;

    for (i = 0; i < CASSINI_SLOTS; ++i) {
        while (cassini_net_fifos[i].head != NULL) {
            cassini_net_free(cassini_fifo_pop(i));
        }
    }
}
