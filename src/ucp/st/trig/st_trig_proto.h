/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_proto.h - wire format of the trig lane; its version is that of
 * st_proto.h.
 */
#ifndef UCP_ST_TRIG_PROTO_H_
#define UCP_ST_TRIG_PROTO_H_

#include <uct_trig.h>

#include <stdint.h>

/** The lane's address; that of each rail follows: the NIC's device and
 *  interface address. */
typedef struct ucp_st_trig_address {
    uint8_t  num_rails;
    uint8_t  reserved;
    uint16_t rail_length; /**< Bytes of the address of one */
    uint32_t reserved2;
    uint64_t eager_max;   /**< UCX_ST_EAGER_MAX */
    uint64_t share_min;   /**< UCX_ST_CHUNK_MIN */
    uint64_t put_max;     /**< What all its NICs can write at once, at most
                               UCX_ST_CHUNK_MAX */
} __attribute__((packed)) ucp_st_trig_address_t;

/** The region that the peer writes to: of a send the clear-to-send word, of a
 *  receive the data. Zero if it writes to none. */
typedef struct ucp_st_trig_region {
    uint8_t rkey[UCT_TRIG_RKEY_PACKED_LEN]; /**< Of exactly that */
} __attribute__((packed)) ucp_st_trig_region_t;

_Static_assert(sizeof(ucp_st_trig_address_t) == 32, "wire format");
_Static_assert(sizeof(ucp_st_trig_region_t) == 32, "wire format");

#endif
