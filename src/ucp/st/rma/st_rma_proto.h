/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_proto.h - wire formats of one-sided operations: keys, and active
 * messages between service threads. Little-endian hosts only.
 */
#ifndef UCP_ST_RMA_PROTO_H_
#define UCP_ST_RMA_PROTO_H_

#include <stdint.h>

/** First bytes of a key: "USK" and the version. */
#define UCP_ST_RKEY_MAGIC 0x4b5355u

/** Longest part of a key for one lane, bytes. */
#define UCP_ST_RKEY_MAX_BLOB 256

/** Head of a key; parts for lanes follow, each behind a
 *  @ref ucp_st_address_lane_t. */
typedef struct ucp_st_rkey_hdr {
    uint32_t magic : 24; /**< UCP_ST_RKEY_MAGIC */
    uint32_t version : 8;
    uint8_t  num_lanes;  /**< Parts after it */
    uint8_t  reserved[3];
    uint64_t uuid;       /**< Of the owner */
    uint64_t mem_id;     /**< Unique there */
    uint64_t address;    /**< Of the memory, in its process */
    uint64_t length;     /**< In bytes */
} __attribute__((packed)) ucp_st_rkey_hdr_t;

/** Types of requests to the owner's service thread. */
typedef enum {
    UCP_ST_RMA_PUT, /**< The data that comes with it */
    UCP_ST_RMA_GET, /**< Data that goes back with the reply */
    UCP_ST_RMA_ADD  /**< Numbers that come with it */
} ucp_st_rma_type_t;

/** Head of a request. */
typedef struct ucp_st_rma_request {
    uint8_t  type;          /**< @ref ucp_st_rma_type_t */
    uint8_t  has_signal;
    uint8_t  signal_op;     /**< ucp_st_signal_op_t */
    uint8_t  number;        /**< ucp_st_number_t, of numbers */
    uint8_t  reserved[4];
    uint64_t src;           /**< Uuids */
    uint64_t dst;
    uint64_t id;            /**< Of the operation, unique in `src` */
    uint64_t mem_id;
    uint64_t offset;
    uint64_t length;        /**< 0: `mem_id` is not looked at */
    uint64_t signal_mem_id;
    uint64_t signal_offset;
    uint64_t signal_value;
} __attribute__((packed)) ucp_st_rma_request_t;

/** Head of a reply. */
typedef struct ucp_st_rma_reply {
    uint64_t src;      /**< Uuids */
    uint64_t dst;
    uint64_t id;       /**< As in the request */
    int32_t  status;
    uint32_t reserved;
} __attribute__((packed)) ucp_st_rma_reply_t;

_Static_assert(sizeof(ucp_st_rkey_hdr_t) == 40, "wire format");
_Static_assert(sizeof(ucp_st_rma_request_t) == 80, "wire format");
_Static_assert(sizeof(ucp_st_rma_reply_t) == 32, "wire format");

#endif
