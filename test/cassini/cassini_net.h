/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_net.h - packets between the NICs of a node.
 *
 * A request is answered by one response. Little data travels in the packet;
 * the target reads or writes the initiator's memory otherwise.
 */
#ifndef CASSINI_NET_H_
#define CASSINI_NET_H_

#include "cassini_nic.h"

enum {
    CASSINI_INLINE   = 2048, /**< Bytes of data in a packet */
    CASSINI_REQUEST_ = 1,    /**< Types of packets */
    CASSINI_RESPONSE = 2
};

typedef struct cassini_request {
    uint8_t  kind; /**< Event at the target: CASSINI_EV_PUT to _FETCH_ATOMIC */
    uint8_t  restricted;
    uint8_t  rdzv; /**< Rendezvous put: the first eager bytes come with it */
    uint8_t  rdzv_id;
    uint8_t  amo_op;
    uint8_t  amo_type;
    uint8_t  cswap;
    uint8_t  flush;
    uint16_t vni;
    uint16_t pid;
    uint16_t index;
    uint16_t from_pid; /**< Of the initiator, for the get of a rendezvous */
    uint32_t initiator;
    uint32_t nid; /**< Of the initiator */
    uint32_t length;
    uint32_t eager;
    uint64_t match_bits;
    uint64_t header_data;
    uint64_t offset;
    uint64_t address; /**< Of the data, in the initiator's memory */
    uint64_t operand[2];
    uint64_t compare[2];
} cassini_request_t;

typedef struct cassini_response {
    uint8_t  rc;
    uint8_t  list;
    uint8_t  unused[2];
    uint32_t length;
    uint64_t fetched[2];
} cassini_response_t;

/** What lies in a ring. */
typedef struct cassini_packet {
    uint32_t bytes; /**< Of the packet with its data, a multiple of 64; type 0:
                         to the end of the ring */
    uint8_t  type;
    uint8_t  from;
    uint8_t  to;
    uint8_t  unused;
    uint32_t from_gen;
    uint32_t to_gen;
    uint32_t op; /**< The initiator's operation */
    uint32_t op_seq;
    uint32_t data; /**< Bytes of data that follow */
    uint32_t unused2;
    union {
        cassini_request_t  request;
        cassini_response_t response;
    };
} cassini_packet_t;

/** Data of a packet. */
static inline void *cassini_packet_data(const cassini_packet_t *packet)
{
    return (void*)(packet + 1);
}

/** A packet with room for data; NULL if there is no memory. Its sender's fields
 *  are set. */
cassini_packet_t *cassini_net_new(int type, size_t data);
void cassini_net_free(cassini_packet_t *packet);

/** Send a packet, and free it. The order to one destination is kept. */
void cassini_net_send(cassini_packet_t *packet);

/** Handle what arrived, and send what waited. How many packets. */
unsigned cassini_net_progress(void);

/** Handle all that arrived from a process that died. */
void cassini_net_drain(unsigned from);

/** Whether cassini_net_progress() would do something; whether packets wait for
 *  room in another process's ring. */
int cassini_net_has(void);
int cassini_net_is_blocked(void);

/** Copy between this process and the one with this place: 0, or -1 if a part of
 *  either memory is not there. */
int cassini_net_read(unsigned slot, void *local, uint64_t remote,
                     size_t length);
int cassini_net_write(unsigned slot, const void *local, uint64_t remote,
                      size_t length);

/** Drop all packets that wait: after a fork, and at the end. */
void cassini_net_forget(void);

#endif
