/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_proto.h - what ucp_st workers send each other: addresses and control
 * messages. Little-endian hosts only, as UCX's own wire formats.
 */
#ifndef UCP_ST_PROTO_H_
#define UCP_ST_PROTO_H_

#include <uct_trig.h>

#include <stdint.h>

/** Changes with any change of the formats below. */
#define UCP_ST_PROTO_VERSION 2

/** First bytes of an address: "UST" and the version. */
#define UCP_ST_ADDRESS_MAGIC 0x545355u

/** Head of a worker address; UCP, device and interface address follow. */
typedef struct ucp_st_address_hdr {
    uint32_t magic : 24; /**< UCP_ST_ADDRESS_MAGIC */
    uint32_t version : 8;
    uint16_t ucp_length;   /**< Bytes of the UCP worker address */
    uint8_t  dev_length;   /**< Bytes of the trig lane's device address */
    uint8_t  iface_length; /**< Bytes of the trig lane's interface address */
    uint64_t uuid;         /**< Of the worker, unique */
} __attribute__((packed)) ucp_st_address_hdr_t;

/** Control messages. */
typedef enum {
    UCP_ST_MSG_MATCH,      /**< An operation was given to match */
    UCP_ST_MSG_REKEY,      /**< Another region for a send of 0 bytes */
    UCP_ST_MSG_CANCEL,     /**< An operation being matched was freed */
    UCP_ST_MSG_CANCEL_ACK, /**< ... and its match message is forgotten */
    UCP_ST_MSG_UNMATCH,    /**< A matched operation was freed, or failed */
    UCP_ST_MSG_UNMATCH_ACK,/**< ... and its peer's region is closed */
    UCP_ST_MSG_PING,       /**< Nothing; fails where the peer is gone */
    UCP_ST_MSG_LEAVE,      /**< The worker matches nothing more */
    UCP_ST_MSG_BYE,        /**< The worker is being destroyed */
    UCP_ST_MSG_BYE_ACK,    /**< ... and is not needed any more */
    UCP_ST_MSG_LAST
} ucp_st_msg_type_t;

/** Head of every control message. */
typedef struct ucp_st_msg_hdr {
    uint8_t  version; /**< UCP_ST_PROTO_VERSION */
    uint8_t  type;    /**< @ref ucp_st_msg_type_t */
    uint16_t length;  /**< Of the whole message, bytes */
    uint32_t seq;     /**< Of the messages to this peer, from 0 */
    uint64_t src;     /**< Sender's uuid */
} __attribute__((packed)) ucp_st_msg_hdr_t;

/** Where the peer writes: a send's clear-to-send word, a receive's data. */
typedef struct ucp_st_trig_region {
    uint64_t address;
    uint8_t  rkey[UCT_TRIG_RKEY_PACKED_LEN];
} __attribute__((packed)) ucp_st_trig_region_t;

/** UCP_ST_MSG_MATCH */
typedef struct ucp_st_msg_match {
    ucp_st_msg_hdr_t     hdr;
    uint64_t             op_id;  /**< Sender's operation */
    uint64_t             tag;
    uint64_t             scope;
    uint64_t             length; /**< Of its buffer, bytes */
    uint8_t              dir;    /**< @ref ucp_st_dir_t */
    uint8_t              mode;   /**< @ref ucp_st_mode_t */
    uint8_t              lanes;  /**< Bit mask of lanes that it could get */
    uint8_t              reserved;
    ucp_st_trig_region_t region; /**< If the trig lane is among them */
} __attribute__((packed)) ucp_st_msg_match_t;

/** All others; what a type does not need is 0. */
typedef struct ucp_st_msg_op {
    ucp_st_msg_hdr_t     hdr;
    uint64_t             op_id;  /**< Receiver's operation */
    uint64_t             src_op_id; /**< Sender's operation */
    uint64_t             uses;   /**< UNMATCH: uses that will still complete */
    int32_t              status; /**< UNMATCH: why, for the receiver */
    ucp_st_trig_region_t region; /**< REKEY */
} __attribute__((packed)) ucp_st_msg_op_t;

_Static_assert(sizeof(ucp_st_address_hdr_t) == 16, "wire format");
_Static_assert(sizeof(ucp_st_msg_hdr_t) == 16, "wire format");
_Static_assert(sizeof(ucp_st_trig_region_t) == 40, "wire format");
_Static_assert(sizeof(ucp_st_msg_match_t) == 92, "wire format");
_Static_assert(sizeof(ucp_st_msg_op_t) == 84, "wire format");

#endif
