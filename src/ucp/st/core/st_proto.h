/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_proto.h - what ucp_st workers send each other: addresses and control
 * messages. Little-endian hosts only, as UCX's own wire formats.
 *
 * An active message is a frame: a head, then messages one after the other, each
 * with its own head. Every field may be unaligned.
 */
#ifndef UCP_ST_PROTO_H_
#define UCP_ST_PROTO_H_

#include <ucs/type/status.h>

#include <stdint.h>

/** Changes with any change of the formats below. */
#define UCP_ST_PROTO_VERSION 29

/** First bytes of an address: "UST" and the version. */
#define UCP_ST_ADDRESS_MAGIC 0x545355u

/** Lanes that a message can name; 0 ends a shorter list. */
#define UCP_ST_PROTO_MAX_LANES 4

/** In place of a lane's number: the address of the UCP worker that the service
 *  thread drives. It is the first part of a worker's address. */
#define UCP_ST_PROTO_SERVICE 255

/** Longest description of an operation's half by one lane, bytes; by lane
 *  direct. */
#define UCP_ST_PROTO_MAX_BLOB   224
#define UCP_ST_PROTO_MAX_DIRECT 272

/** Where a process is. */
typedef struct ucp_st_place {
    uint64_t system;   /**< Tells nodes apart */
    uint32_t pid_ns;   /**< ... and what `pid` means; 0: it is not known */
    uint32_t user_ns;  /**< Whose processes may open its files */
    uint32_t pid;
    uint32_t start;    /**< When it was started, clock ticks: tells processes
                            apart that have one pid after the other; 0: it is
                            not known */
} __attribute__((packed)) ucp_st_place_t;

/** Head of a worker address; the UCP address and the lanes' follow. */
typedef struct ucp_st_address_hdr {
    uint32_t       magic : 24; /**< UCP_ST_ADDRESS_MAGIC */
    uint32_t       version : 8;
    uint16_t       ucp_length; /**< Bytes of the UCP worker address */
    uint8_t        num_lanes;  /**< Lane addresses after it */
    uint8_t        reserved;
    uint64_t       uuid;       /**< Of the worker, unique */
    ucp_st_place_t place;      /**< Of its process */
} __attribute__((packed)) ucp_st_address_hdr_t;

/** Head of one lane's address; its bytes follow. */
typedef struct ucp_st_address_lane {
    uint8_t  lane;   /**< @ref ucp_st_lane_t, or UCP_ST_PROTO_SERVICE */
    uint8_t  reserved;
    uint16_t length; /**< Bytes that follow */
} __attribute__((packed)) ucp_st_address_lane_t;

/** Head of every active message. */
typedef struct ucp_st_frame {
    uint8_t  version;  /**< UCP_ST_PROTO_VERSION */
    uint8_t  is_alone; /**< It has come over another endpoint than those
                            before: `seq` says nothing */
    uint16_t length;   /**< Of the whole frame, bytes */
    uint32_t seq;      /**< Of the frames to this peer, from 0 */
    uint64_t src;      /**< Sender's uuid */
    uint64_t dst;      /**< Receiver's uuid: another worker may have its address
                            by now */
} __attribute__((packed)) ucp_st_frame_t;

/** Control messages. */
typedef enum {
    UCP_ST_CTRL_MATCH,      /**< An operation was given to match */
    UCP_ST_CTRL_BIND,       /**< A paired operation: what its lanes offer */
    UCP_ST_CTRL_CANCEL,     /**< An operation being matched was freed */
    UCP_ST_CTRL_CANCEL_ACK, /**< ... and its match message is forgotten */
    UCP_ST_CTRL_UNMATCH,    /**< A matched operation was freed, or failed */
    UCP_ST_CTRL_UNMATCH_ACK,/**< ... and its peer's region is closed */
    UCP_ST_CTRL_PING,       /**< A stream waits for the receiver; fails where
                                that is gone */
    UCP_ST_CTRL_GONE,       /**< The receiver was declared gone, and no region
                                is open to it any more */
    UCP_ST_CTRL_LEAVE,      /**< The worker matches nothing more */
    UCP_ST_CTRL_BYE,        /**< The worker is being destroyed */
    UCP_ST_CTRL_BYE_ACK,    /**< ... and is not needed any more */
    UCP_ST_CTRL_FIFO,       /**< Of a message of a FIFO */
    UCP_ST_CTRL_LAST
} ucp_st_ctrl_type_t;

/** Head of every control message. */
typedef struct ucp_st_ctrl_hdr {
    uint8_t  type;     /**< @ref ucp_st_ctrl_type_t */
    uint8_t  reserved;
    uint16_t length;   /**< Of the whole message, bytes */
} __attribute__((packed)) ucp_st_ctrl_hdr_t;

/** Whether an operation is of an exchange. */
typedef enum {
    UCP_ST_SHARES_NONE,
    UCP_ST_SHARES_EXCHANGE,
    UCP_ST_SHARES_COUPLED  /**< Of a coupled one */
} ucp_st_shares_t;

/** UCP_ST_CTRL_MATCH */
typedef struct ucp_st_ctrl_match {
    ucp_st_ctrl_hdr_t hdr;
    uint64_t          op_id;  /**< Sender's operation */
    uint64_t          tag;
    uint64_t          scope;
    uint64_t          length; /**< Of its buffer, bytes */
    uint8_t           dir;    /**< @ref ucp_st_dir_t */
    uint8_t           mode;   /**< @ref ucp_st_mode_t */
    uint8_t           lanes[UCP_ST_PROTO_MAX_LANES]; /**< That it may use, in
                                  order of preference */
    uint8_t           shares; /**< @ref ucp_st_shares_t */
    uint8_t           reserved;
} __attribute__((packed)) ucp_st_ctrl_match_t;

/** Head of what one lane offers, in a BIND message; its bytes follow. */
typedef struct ucp_st_ctrl_offer {
    uint8_t  lane;   /**< @ref ucp_st_lane_t */
    uint8_t  reserved;
    uint16_t length; /**< Bytes that follow */
} __attribute__((packed)) ucp_st_ctrl_offer_t;

/** All others; what a type does not need is 0. BIND: offers follow. */
typedef struct ucp_st_ctrl_op {
    ucp_st_ctrl_hdr_t hdr;
    uint64_t          op_id;     /**< Receiver's operation */
    uint64_t          src_op_id; /**< Sender's operation */
    uint64_t          uses;      /**< UNMATCH: uses that will still complete */
    int32_t           status;    /**< UNMATCH: why, for the receiver */
} __attribute__((packed)) ucp_st_ctrl_op_t;

/** What is said of a message of a FIFO. */
typedef enum {
    UCP_ST_FIFO_RECV,   /**< A receive was started: its room, and keys */
    UCP_ST_FIFO_SEND,   /**< Its send was, too: its length, and a key */
    UCP_ST_FIFO_READY,  /**< Hosts move it: the receive's stream is there */
    UCP_ST_FIFO_ASK,    /**< The receive's host wants to know whether ... */
    UCP_ST_FIFO_DONE,   /**< ... the data is there, which it is now */
    UCP_ST_FIFO_CANCEL, /**< This half has ended, `status` says why, and nothing
                             of it can be written any more */
    UCP_ST_FIFO_CLOSED, /**< ... nor of the other one */
    UCP_ST_FIFO_LAST
} ucp_st_fifo_what_t;

/** Bytes of a remote key of lane trig. */
#define UCP_ST_PROTO_KEY 32

/** Of a RECV: where the data goes, and where an empty message writes a byte; of
 *  a SEND: where clear-to-send goes. */
enum {
    UCP_ST_FIFO_KEY_DATA,
    UCP_ST_FIFO_KEY_EMPTY,
    UCP_ST_FIFO_KEY_CLEAR = UCP_ST_FIFO_KEY_DATA,
    UCP_ST_FIFO_NUM_KEYS  = 2
};

/** How a message of a FIFO is moved. */
typedef enum {
    UCP_ST_FIFO_BY_NIC, /**< By deferred work of the NICs alone */
    UCP_ST_FIFO_BY_PUT, /**< By a put that the sender's host has its NIC do */
    UCP_ST_FIFO_BY_UCP  /**< By UCP, for the hosts */
} ucp_st_fifo_way_t;

/** Header of a message of a FIFO that UCP moves. */
typedef struct ucp_st_fifo_hdr {
    uint64_t src;    /**< Sender's uuid */
    uint64_t tag;
    uint64_t scope;
    uint64_t number; /**< In its FIFO */
} __attribute__((packed)) ucp_st_fifo_hdr_t;

/** UCP_ST_CTRL_FIFO */
typedef struct ucp_st_ctrl_fifo {
    ucp_st_ctrl_hdr_t hdr;
    uint8_t           what;      /**< @ref ucp_st_fifo_what_t */
    uint8_t           dir;       /**< @ref ucp_st_dir_t of the half of the
                                      worker that sends this */
    uint8_t           is_staged; /**< RECV: the host copies what comes */
    uint8_t           way;       /**< SEND: @ref ucp_st_fifo_way_t */
    int32_t           status;
    uint64_t          tag;
    uint64_t          scope;
    uint64_t          number;    /**< Of the message in its FIFO, from 1 */
    uint64_t          length;    /**< In bytes */
    uint8_t           keys[UCP_ST_FIFO_NUM_KEYS][UCP_ST_PROTO_KEY];
} __attribute__((packed)) ucp_st_ctrl_fifo_t;

/** Longest message. */
#define UCP_ST_CTRL_MAX \
    (sizeof(ucp_st_ctrl_op_t) + (UCP_ST_LANE_LAST - 1) * \
     (sizeof(ucp_st_ctrl_offer_t) + UCP_ST_PROTO_MAX_BLOB) + \
     (UCP_ST_PROTO_MAX_DIRECT - UCP_ST_PROTO_MAX_BLOB))

/** A status that a peer has sent: UCS_OK or an error, whatever it is. */
static inline ucs_status_t ucp_st_proto_status(int32_t status)
{
    return ((status <= UCS_OK) && (status > UCS_ERR_LAST)) ?
           (ucs_status_t)status : UCS_ERR_IO_ERROR;
}

_Static_assert(sizeof(ucp_st_place_t) == 24, "wire format");
_Static_assert(sizeof(ucp_st_address_hdr_t) == 40, "wire format");
_Static_assert(sizeof(ucp_st_address_lane_t) == 4, "wire format");
_Static_assert(sizeof(ucp_st_frame_t) == 24, "wire format");
_Static_assert(sizeof(ucp_st_ctrl_hdr_t) == 4, "wire format");
_Static_assert(sizeof(ucp_st_ctrl_match_t) == 44, "wire format");
_Static_assert(sizeof(ucp_st_ctrl_offer_t) == 4, "wire format");
_Static_assert(sizeof(ucp_st_ctrl_op_t) == 32, "wire format");
_Static_assert(sizeof(ucp_st_ctrl_fifo_t) == 108, "wire format");

#endif
