/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_host_proto.h - what the two sides of lane host send each other.
 */
#ifndef UCP_ST_HOST_PROTO_H_
#define UCP_ST_HOST_PROTO_H_

#include <stdint.h>

/** Head of every active message of the lane. */
typedef struct ucp_st_host_hdr {
    uint64_t op_id; /**< Receiver's operation */
    uint64_t use;   /**< Of it, from 1 */
    uint64_t src;   /**< Sender's uuid */
} __attribute__((packed)) ucp_st_host_hdr_t;

_Static_assert(sizeof(ucp_st_host_hdr_t) == 24, "wire format");

#endif
