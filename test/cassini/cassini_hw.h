/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_hw.h - commands, events and status words of a Cassini NIC.
 *
 * All of them are little-endian words of 64 bits, and are declared so here:
 * bits of one word in one line of fields, lowest first. Nothing but this
 * header is needed to talk to the NIC. Sources: the interface of HPE's NIC as
 * published with its driver; names, grouping and comments are this project's.
 */
#ifndef CASSINI_HW_H_
#define CASSINI_HW_H_

#include <stddef.h>
#include <stdint.h>

enum {
    CASSINI_PID_BITS      = 9,    /**< Of a process's number on a NIC */
    CASSINI_PID_ANY       = 511,
    CASSINI_INDEX_BITS    = 5,    /**< Of a portal index's low part */
    CASSINI_NUM_CTS       = 2048, /**< Counter 0 is none */
    CASSINI_NUM_EQS       = 2048, /**< Event queue 0 is none */
    CASSINI_NUM_PTES      = 2048,
    CASSINI_NUM_TXQS      = 1024,
    CASSINI_NUM_TGQS      = 512,
    CASSINI_NUM_TLES      = 2048, /**< Triggered operations */
    CASSINI_NUM_LCIDS     = 16,   /**< Communication profiles a process */
    CASSINI_SLOT          = 64,   /**< Bytes of a slot of a queue or ring */
    CASSINI_FIRST_SLOT    = 4,    /**< Of a command queue; after the status */
    CASSINI_RING_RESERVED = 2,    /**< Slots of a ring without events */
    CASSINI_FAILURE_MAX   = 127   /**< Failure counts stay there */
};

/** Initiator of an entry: all. */
#define CASSINI_MATCH_ANY UINT32_MAX

/** In front of what the request list takes: the headers of the packet, of which
 *  software reads these. Big endian. */
enum {
    CASSINI_WIRE_BYTES  = 63,
    CASSINI_WIRE_VER    = 0,  /**< 4 in the upper half of the byte */
    CASSINI_WIRE_VNI    = 4,  /**< 2 bytes */
    CASSINI_WIRE_TYPE   = 20, /**< Bits 4 to 6; 0: with the fields below */
    CASSINI_WIRE_OFFSET = 22  /**< Initiator's offset, 7 bytes */
};

/** Successes of a counter: 48 bits that wrap. */
#define CASSINI_SUCCESS_MASK ((1ull << 48) - 1)

/** Words of a counter's page, bytes from its start. */
enum {
    CASSINI_CT_ADD           = 0,
    CASSINI_CT_ADD_FAILURE   = 64,
    CASSINI_CT_RESET         = 128,
    CASSINI_CT_RESET_FAILURE = 192
};

/** Type of a command. */
enum {
    CASSINI_IDC = 0, /**< Data within the command */
    CASSINI_DMA = 1,
    CASSINI_CT  = 2,
    CASSINI_CQ  = 3  /**< To the queue itself, or to the target side */
};

/** Size of a command: 32 << size bytes. */
enum {
    CASSINI_32B  = 0,
    CASSINI_64B  = 1,
    CASSINI_128B = 2,
    CASSINI_256B = 3
};

/** Operations of IDC and DMA commands. */
enum {
    CASSINI_OP_NOOP         = 0,
    CASSINI_OP_PUT          = 1,
    CASSINI_OP_GET          = 2,
    CASSINI_OP_RDZV_PUT     = 3,
    CASSINI_OP_ATOMIC       = 4,
    CASSINI_OP_FETCH_ATOMIC = 5,
    CASSINI_OP_ETHERNET     = 6,
    CASSINI_OP_SMALL_MSG    = 7,
    CASSINI_OP_NOMATCH_PUT  = 8,
    CASSINI_OP_NOMATCH_GET  = 9,
    CASSINI_OP_CSTATE       = 10,
    CASSINI_OP_CLOSE        = 11,
    CASSINI_OP_CLEAR        = 12,
    CASSINI_OP_REDUCTION    = 13
};

/** Operations of counter commands. */
enum {
    CASSINI_CT_NOOP       = 0,
    CASSINI_CT_SET        = 1,
    CASSINI_CT_GET        = 2,
    CASSINI_CT_INC        = 3,
    CASSINI_CT_CANCEL     = 4,
    CASSINI_CT_TRIG_DMA   = 5,
    CASSINI_CT_TRIG_SET   = 6,
    CASSINI_CT_TRIG_INC   = 7,
    CASSINI_CT_TRIG_EVENT = 8
};

/** Operations of queue commands; from APPEND on, of target queues. */
enum {
    CASSINI_CQ_NOOP           = 0,
    CASSINI_CQ_FENCE          = 1,
    CASSINI_CQ_LCID           = 2,
    CASSINI_TGT_APPEND        = 8,
    CASSINI_TGT_SEARCH        = 9,
    CASSINI_TGT_SEARCH_DELETE = 10,
    CASSINI_TGT_UNLINK        = 11,
    CASSINI_TGT_SETSTATE      = 12
};

/** Lists of a portal entry. */
enum {
    CASSINI_PRIORITY   = 0,
    CASSINI_OVERFLOW   = 1,
    CASSINI_REQUEST    = 2,
    CASSINI_UNEXPECTED = 3
};

/** States of a portal entry. */
enum {
    CASSINI_PTE_RESET    = 0,
    CASSINI_PTE_DISABLED = 1,
    CASSINI_PTE_ENABLED  = 2,
    CASSINI_PTE_SOFTWARE = 3, /**< Software matches */
    CASSINI_PTE_ETHERNET = 4
};

/** Why the NIC changed the state of a portal entry. */
enum {
    CASSINI_WHY_EQ_FULL            = 0,
    CASSINI_WHY_NO_MATCH           = 1,
    CASSINI_WHY_UNEXPECTED_FAIL    = 2,
    CASSINI_WHY_REQUEST_FULL       = 3,
    CASSINI_WHY_SW_UNEXPECTED_FAIL = 4,
    CASSINI_WHY_SW_APPEND_FAIL     = 5,
    CASSINI_WHY_UNCORRECTABLE      = 6
};

/** Operations of atomics. */
enum {
    CASSINI_AMO_MIN   = 0,
    CASSINI_AMO_MAX   = 1,
    CASSINI_AMO_SUM   = 2,
    CASSINI_AMO_LOR   = 4,
    CASSINI_AMO_LAND  = 5,
    CASSINI_AMO_BOR   = 6,
    CASSINI_AMO_BAND  = 7,
    CASSINI_AMO_LXOR  = 8,
    CASSINI_AMO_BXOR  = 9,
    CASSINI_AMO_SWAP  = 10,
    CASSINI_AMO_CSWAP = 11,
    CASSINI_AMO_AXOR  = 12 /**< The bits of a mask are replaced */
};

/** Comparison of CASSINI_AMO_CSWAP: the operand with what is there. */
enum {
    CASSINI_CSWAP_EQ = 0,
    CASSINI_CSWAP_NE = 1,
    CASSINI_CSWAP_LE = 2,
    CASSINI_CSWAP_LT = 3,
    CASSINI_CSWAP_GE = 4,
    CASSINI_CSWAP_GT = 5
};

/** Types of atomics. */
enum {
    CASSINI_INT8           = 0,
    CASSINI_UINT8          = 1,
    CASSINI_INT16          = 2,
    CASSINI_UINT16         = 3,
    CASSINI_INT32          = 4,
    CASSINI_UINT32         = 5,
    CASSINI_INT64          = 6,
    CASSINI_UINT64         = 7,
    CASSINI_FLOAT          = 8,
    CASSINI_FLOAT_COMPLEX  = 9,
    CASSINI_DOUBLE         = 10,
    CASSINI_DOUBLE_COMPLEX = 11,
    CASSINI_UINT128        = 12
};

/** Size of an event: 8 << size bytes; 0: there is none. */
enum {
    CASSINI_EV_16B = 1,
    CASSINI_EV_32B = 2,
    CASSINI_EV_64B = 3
};

enum {
    CASSINI_EV_PUT                   = 0,
    CASSINI_EV_GET                   = 1,
    CASSINI_EV_ATOMIC                = 2,
    CASSINI_EV_FETCH_ATOMIC          = 3,
    CASSINI_EV_PUT_OVERFLOW          = 4,
    CASSINI_EV_GET_OVERFLOW          = 5,
    CASSINI_EV_ATOMIC_OVERFLOW       = 6,
    CASSINI_EV_FETCH_ATOMIC_OVERFLOW = 7,
    CASSINI_EV_SEND                  = 8,
    CASSINI_EV_ACK                   = 9,
    CASSINI_EV_REPLY                 = 10,
    CASSINI_EV_LINK                  = 11,
    CASSINI_EV_SEARCH                = 12,
    CASSINI_EV_STATE_CHANGE          = 13,
    CASSINI_EV_UNLINK                = 14,
    CASSINI_EV_RENDEZVOUS            = 15,
    CASSINI_EV_COMMAND_FAILURE       = 17,
    CASSINI_EV_TRIGGERED_OP          = 18,
    CASSINI_EV_MATCH                 = 21,
    CASSINI_EV_EQ_SWITCH             = 30,
    CASSINI_EV_NULL                  = 31
};

/** Return codes. */
enum {
    CASSINI_RC_NONE             = 0,
    CASSINI_RC_OK               = 1,
    CASSINI_RC_UNDELIVERABLE    = 2,
    CASSINI_RC_PT_DISABLED      = 3,
    CASSINI_RC_DROPPED          = 4,
    CASSINI_RC_PERM_VIOLATION   = 5,
    CASSINI_RC_OP_VIOLATION     = 6,
    CASSINI_RC_NO_MATCH         = 8,
    CASSINI_RC_UNCORRECTABLE    = 9,
    CASSINI_RC_NO_SPACE         = 16,
    CASSINI_RC_ENTRY_NOT_FOUND  = 18,
    CASSINI_RC_NO_TARGET_CONN   = 19,
    CASSINI_RC_NO_TARGET_MST    = 20,
    CASSINI_RC_NO_TARGET_TRS    = 21,
    CASSINI_RC_SEQUENCE_ERROR   = 22,
    CASSINI_RC_INVALID_ADDRESS  = 24,
    CASSINI_RC_VNI_NOT_FOUND    = 25,
    CASSINI_RC_PTE_NOT_FOUND    = 26,
    CASSINI_RC_PTE_SOFTWARE     = 27,
    CASSINI_RC_MST_CANCELLED    = 29,
    CASSINI_RC_INVALID_AC       = 33,
    CASSINI_RC_PAGE_PERM        = 34,
    CASSINI_RC_NO_TRANSLATION   = 36,
    CASSINI_RC_AMO_INVALID_OP   = 40,
    CASSINI_RC_AMO_ALIGN        = 41,
    CASSINI_RC_AMO_FP_INVALID   = 42,
    CASSINI_RC_AMO_FP_UNDERFLOW = 43,
    CASSINI_RC_AMO_FP_OVERFLOW  = 44,
    CASSINI_RC_AMO_FP_INEXACT   = 45,
    CASSINI_RC_ILLEGAL_OP       = 46,
    CASSINI_RC_INVALID_ENDPOINT = 47,
    CASSINI_RC_RESTRICTED       = 48,
    CASSINI_RC_CMD_ALIGN        = 49,
    CASSINI_RC_CMD_INVALID_ARG  = 50,
    CASSINI_RC_INVALID_EVENT    = 51,
    CASSINI_RC_ADDR_RANGE       = 52,
    CASSINI_RC_CONN_CLOSED      = 53,
    CASSINI_RC_CANCELED         = 54,
    CASSINI_RC_AMO_LENGTH       = 58,
    CASSINI_RC_LAST             = 62
};

/** First byte of each command. */
#define CASSINI_HEAD_FIELDS uint64_t type : 2, size : 2, op : 4

/** 14 bits that say what an operation reports, and to what. */
#define CASSINI_REPORT_FIELDS \
    no_send : 1, no_success : 1, ct_send : 1, ct_reply : 1, ct_ack : 1, \
        ct_bytes : 1, local_flag : 1, restricted : 1, reduction : 1, \
        flush : 1, offset_for_get : 1, : 2

typedef struct cassini_head {
    CASSINI_HEAD_FIELDS, : 56;
} cassini_head_t;

/** IDC put; up to 224 bytes of data follow. */
typedef struct cassini_idc {
    CASSINI_HEAD_FIELDS, length : 8, : 16, ep : 12, nid : 20;
    uint64_t offset : 56, : 8;
} cassini_idc_t;

/** IDC atomic of 64 bytes. */
typedef struct cassini_idc_amo {
    CASSINI_HEAD_FIELDS, length : 8, : 16, ep : 12, nid : 20;
    uint64_t offset : 56, : 8;
    uint64_t local : 57, : 7; /**< Where what is fetched goes */
    uint64_t amo_op : 4, : 4, amo_type : 4, : 4, cswap : 3, : 45;
    uint64_t operand[2];
    uint64_t compare[2];
} cassini_idc_amo_t;

/** IDC atomic of 32 bytes: one operand, nothing fetched. */
typedef struct cassini_idc_small_amo {
    CASSINI_HEAD_FIELDS, length : 8, : 16, ep : 12, nid : 20;
    uint64_t offset : 56, : 8;
    uint64_t amo_op : 4, : 4, amo_type : 4, : 52;
    uint64_t operand;
} cassini_idc_small_amo_t;

/** IDC small message; up to 192 bytes of data follow. */
typedef struct cassini_idc_msg {
    CASSINI_HEAD_FIELDS, length : 8, : 16, ep : 12, nid : 20;
    uint64_t match_bits;
    uint64_t header_data;
    uint64_t user;
} cassini_idc_msg_t;

/** State of a queue for the IDC commands that follow. */
typedef struct cassini_cstate {
    CASSINI_HEAD_FIELDS, length : 8, write_lac : 3, CASSINI_REPORT_FIELDS,
        initiator : 32;
    uint64_t index : 5, : 59;
    uint64_t user;
    uint64_t : 32, ct : 11, : 5, eq : 11, : 5;
} cassini_cstate_t;

/** DMA command; one of 32 bytes (no match) ends behind its fourth word. An
 *  atomic is longer: cassini_dma_amo_t. */
typedef struct cassini_dma {
    CASSINI_HEAD_FIELDS, index : 5, : 3, lac : 3, CASSINI_REPORT_FIELDS,
        ep : 12, nid : 20;
    uint64_t offset : 56, : 8;
    uint64_t local : 57, : 7;
    uint64_t length : 32, ct : 11, : 5, eq : 11, : 5;
    uint64_t eager : 20, : 4, rdzv_id : 8, initiator : 32;
    uint64_t match_bits;
    uint64_t header_data;
    uint64_t user;
} cassini_dma_t;

typedef struct cassini_dma_amo {
    cassini_dma_t dma; /**< local: operand */
    uint64_t fetch : 57, : 7; /**< Where what is fetched goes */
    uint64_t amo_op : 4, : 4, amo_type : 4, : 4, cswap : 3, : 13,
        write_lac : 3, : 29;
    uint64_t compare[2];
} cassini_dma_amo_t;

/** Counter command; a DMA command is embedded behind its third word. */
typedef struct cassini_ct_cmd {
    CASSINI_HEAD_FIELDS, : 8, ct : 11, : 5, trig_ct : 11, : 5, eq : 11, : 5;
    uint64_t success : 48, failure : 7, : 7, set_success : 1, set_failure : 1;
    uint64_t threshold : 48, : 16;
} cassini_ct_cmd_t;

typedef struct cassini_cq_cmd {
    CASSINI_HEAD_FIELDS, : 24, lcid : 4, : 28;
} cassini_cq_cmd_t;

/** Append an entry to a list, search, unlink. */
typedef struct cassini_tgt_cmd {
    CASSINI_HEAD_FIELDS, list : 2, : 6, pte : 11, : 5, ct_bytes : 1,
        ct_overflow : 1, ct_comm : 1, no_unlink : 1, no_success : 1,
        no_comm : 1, no_link : 1, end_relaxed : 1, body_relaxed : 1,
        no_header : 1, use_once : 1, no_truncate : 1, manage_local : 1,
        op_get : 1, op_put : 1, : 1, ct : 11, : 5;
    uint64_t buffer_id : 16, lac : 3, : 5, restart_seq : 1, : 39;
    uint64_t start : 57, : 7;
    uint64_t length : 56, : 8;
    uint64_t min_free : 24, : 8, match_id : 32;
    uint64_t match_bits;
    uint64_t ignore_bits;
    uint64_t : 64;
} cassini_tgt_cmd_t;

typedef struct cassini_setstate {
    CASSINI_HEAD_FIELDS, state : 3, : 5, pte : 11, : 37;
    uint64_t address : 57, : 7;
    uint64_t drops : 24, : 40;
} cassini_setstate_t;

/** Status of a command queue, in its first slots. */
typedef struct cassini_cq_status {
    uint64_t read : 16, rejected : 16, fail_op : 8, : 8, rc : 6, : 7,
        fail_32 : 1, fail_ll : 1, ll_off : 1;
} cassini_cq_status_t;

/** Status of an event queue, in the first slot of its ring. Software sees it
 *  whole if both times agree. */
typedef struct cassini_eq_status {
    uint64_t ns_copy : 30, : 34;
    uint64_t sec_copy : 48, fill : 1, : 3, fill_id : 2, : 2, dropped : 1, : 3,
        drop_seq : 1, : 3;
    uint64_t free : 26, : 6, reserved : 26, : 6;
    uint64_t write : 26, : 6, second : 1, : 31;
    uint64_t unused[2];
    uint64_t : 32, ns : 30, : 2;
    uint64_t sec : 48, : 16;
} cassini_eq_status_t;

/** What software tells an event queue: one store. */
typedef struct cassini_eq_ack {
    uint64_t read : 26, : 5, second : 1, no_interrupt : 1, no_status_int : 1,
        : 6, drop_seq : 1, : 23;
} cassini_eq_ack_t;

/** A counter as the NIC writes it back. */
typedef struct cassini_ct_back {
    uint64_t success : 48, failure : 7, : 8, valid : 1;
} cassini_ct_back_t;

/* Events. Size and type lie in byte 14 of each, the code in its last byte. */

/** SEND, ACK, REPLY. */
typedef struct cassini_ev_init {
    uint64_t user;
    uint64_t length : 32, list : 2, : 2, rdzv : 1, retry : 1, tgt_error : 1,
        : 9, size : 2, type : 5, : 1, rc : 6, : 2;
} cassini_ev_init_t;

/** TRIGGERED_OP. */
typedef struct cassini_ev_trig {
    uint64_t threshold : 48, : 16;
    uint64_t ct : 11, : 37, size : 2, type : 5, : 1, rc : 6, : 2;
} cassini_ev_trig_t;

/** COMMAND_FAILURE. */
typedef struct cassini_ev_fail {
    uint64_t cq : 10, is_tgt : 1, : 5, where : 16, cmd_type : 2, cmd_size : 2,
        cmd_op : 4, : 24;
    uint64_t : 48, size : 2, type : 5, : 1, rc : 6, : 2;
} cassini_ev_fail_t;

/** Events of the target side. */
typedef struct cassini_ev_tgt {
    uint64_t header_data;
    uint64_t initiator : 32, pte : 11, : 5, size : 2, type : 5, : 1, list : 2,
        rdzv : 1, get_issued : 1, unlinked : 1, : 3;
    uint64_t match_bits;
    uint64_t buffer_id : 16, vni : 16, ns : 30, sec_low : 2;
    uint64_t length : 32, rlength : 32;
    uint64_t offset : 56, : 8;
    uint64_t start : 57, : 7;
    uint64_t : 32, amo_type : 4, amo_op : 4, cswap : 3, : 5, rdzv_id : 8,
        rc : 6, : 2;
} cassini_ev_tgt_t;

/** STATE_CHANGE: what the initiator's bits of a cassini_ev_tgt_t say. */
typedef union cassini_state_bits {
    uint32_t bits;
    struct {
        uint32_t state : 3, : 5, why : 4, : 4, by_nic : 1, : 15;
    } f;
} cassini_state_bits_t;

/** Match bits of the NIC's own gets of a rendezvous. */
typedef union cassini_rdzv_bits {
    uint64_t bits;
    struct {
        uint64_t rdzv_id : 8, kind : 4, : 36, user_bits : 16;
    } f;
} cassini_rdzv_bits_t;

/** User word of the events that such gets make at the target. */
typedef union cassini_rdzv_user {
    uint64_t bits;
    struct {
        uint64_t nid : 20, pid : 9, pte : 11, rdzv_id : 8, buffer_id : 16;
    } f;
} cassini_rdzv_user_t;

#define CASSINI_SIZE(_type, _size) \
    _Static_assert(sizeof(_type) == (_size), #_type)

CASSINI_SIZE(cassini_head_t, 8);
CASSINI_SIZE(cassini_idc_t, 16);
CASSINI_SIZE(cassini_idc_amo_t, 64);
CASSINI_SIZE(cassini_idc_small_amo_t, 32);
CASSINI_SIZE(cassini_idc_msg_t, 32);
CASSINI_SIZE(cassini_cstate_t, 32);
CASSINI_SIZE(cassini_dma_t, 64);
CASSINI_SIZE(cassini_dma_amo_t, 96);
CASSINI_SIZE(cassini_ct_cmd_t, 24);
CASSINI_SIZE(cassini_cq_cmd_t, 8);
CASSINI_SIZE(cassini_tgt_cmd_t, 64);
CASSINI_SIZE(cassini_setstate_t, 24);
CASSINI_SIZE(cassini_cq_status_t, 8);
CASSINI_SIZE(cassini_eq_status_t, 64);
CASSINI_SIZE(cassini_eq_ack_t, 8);
CASSINI_SIZE(cassini_ct_back_t, 8);
CASSINI_SIZE(cassini_ev_init_t, 16);
CASSINI_SIZE(cassini_ev_trig_t, 16);
CASSINI_SIZE(cassini_ev_fail_t, 16);
CASSINI_SIZE(cassini_ev_tgt_t, 64);
CASSINI_SIZE(cassini_state_bits_t, 4);
CASSINI_SIZE(cassini_rdzv_bits_t, 8);
CASSINI_SIZE(cassini_rdzv_user_t, 8);

#endif
