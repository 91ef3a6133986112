/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_proto.h - everything that goes over the wire or into an address.
 *
 * All formats are packed, in the byte order of the machine, and start with
 * their version and length, so that what another version wrote is refused.
 */
#ifndef UCT_CXI_TRIG_PROTO_H_
#define UCT_CXI_TRIG_PROTO_H_

#include "uct_trig.h"

#include <ucs/sys/compiler_def.h>

/** Version of all formats; changes with any of them. */
#define UCT_CXI_TRIG_PROTO_VERSION 6

/** Longest libfabric endpoint names that fit an address, together. */
#define UCT_CXI_TRIG_NAME_BLOB_MAX 48


/** What every format but the message header starts with. */
typedef struct uct_cxi_trig_proto_head {
    uint8_t  version; /**< UCT_CXI_TRIG_PROTO_VERSION */
    uint8_t  length;  /**< Of the whole format, bytes */
    uint16_t crc;     /**< Of the whole format, this field being 0 */
} UCS_S_PACKED uct_cxi_trig_proto_head_t;


/** Flags of a device address. */
enum {
    /** A loop-back device: reached from the same machine only. */
    UCT_CXI_TRIG_DEV_ADDR_LOOPBACK = 1u << 0
};


/** Device address: which network a device is on. UCX takes no more than 31
 *  bytes. */
typedef struct uct_cxi_trig_dev_addr {
    uct_cxi_trig_proto_head_t head;
    uint8_t                   provider; /**< Provider's number */
    uint8_t                   flags;    /**< UCT_CXI_TRIG_DEV_ADDR_xx */
    uint8_t                   ucx_major; /**< Version of UCX */
    uint8_t                   ucx_minor;
    uint32_t                  fabric;   /**< CRC of the fabric's name */
    uint64_t                  machine;  /**< ucs_get_system_id() */
    uint16_t                  vni;      /**< Cassini's number of the job's
                                             network; 0: none */
    uint32_t                  space;    /**< Namespace that both processes must
                                             be in: the provider's for a card
                                             that is local, of networks for a
                                             loop-back device; 0: any */
    uint32_t                  user_space; /**< The same of users, for a card
                                               that is local */
} UCS_S_PACKED uct_cxi_trig_dev_addr_t;


/**
 * Interface address. `names` has libfabric's name of the endpoint that takes
 * messages, then that of the memory domain's endpoint where memory has one,
 * then the address of the probe word, 8 bytes, where the provider does not take
 * offsets. UCX takes no more than 63 bytes.
 */
typedef struct uct_cxi_trig_iface_addr {
    uct_cxi_trig_proto_head_t head;
    uint8_t                   provider; /**< Provider's number */
    uint8_t                   name_length;
    uint8_t                   target_length; /**< 0: the same endpoint */
    uint32_t                  seg_size;  /**< Longest message it receives */
    uint32_t                  probe_key; /**< Key of the probe word */
    uint8_t                   names[UCT_CXI_TRIG_NAME_BLOB_MAX];
} UCS_S_PACKED uct_cxi_trig_iface_addr_t;


/** Flags of a remote key. */
enum {
    /** The provider wants offsets into the region, not addresses. */
    UCT_CXI_TRIG_RKEY_OFFSET = 1u << 0
};


/** Remote key. */
typedef struct uct_cxi_trig_rkey {
    uct_cxi_trig_proto_head_t head;
    uint32_t                  flags;   /**< UCT_CXI_TRIG_RKEY_xx */
    uint64_t                  key;     /**< Provider's key */
    uint64_t                  address; /**< First byte of the region */
    uint64_t                  length;  /**< Of the region, bytes */
} UCS_S_PACKED uct_cxi_trig_rkey_t;


/** What a message is for. */
typedef enum {
    UCT_CXI_TRIG_MSG_AM,  /**< Active message */
    UCT_CXI_TRIG_MSG_WAKE /**< From this interface to itself */
} uct_cxi_trig_msg_type_t;


/** Message header; 8 bytes, so that the payload stays aligned. */
typedef struct uct_cxi_trig_msg {
    uint8_t type;  /**< @ref uct_cxi_trig_msg_type_t */
    uint8_t am_id; /**< Of an active message */
    uint8_t reserved[6];
} UCS_S_PACKED uct_cxi_trig_msg_t;


_Static_assert(sizeof(uct_cxi_trig_proto_head_t) == 4, "format has changed");
_Static_assert(sizeof(uct_cxi_trig_dev_addr_t) == 30, "format has changed");
_Static_assert(sizeof(uct_cxi_trig_iface_addr_t) == 63, "format has changed");
_Static_assert(sizeof(uct_cxi_trig_rkey_t) == UCT_TRIG_RKEY_PACKED_LEN,
               "format has changed");
_Static_assert(sizeof(uct_cxi_trig_msg_t) == 8, "format has changed");


/**
 * Fill in the head of a format whose other fields are complete; @a length is
 * that of the whole format.
 */
void uct_cxi_trig_proto_seal(uct_cxi_trig_proto_head_t *head, size_t length);


/**
 * Check what a peer has sent. @a length is that of the whole format, @a avail
 * what there is at @a head. Returns NULL if it is good, or what is wrong: as
 * uct_cxi_trig_proto_text() does.
 */
const char *uct_cxi_trig_proto_check(const void *head, size_t length,
                                     size_t avail);

/** Format a short text, which is valid until the thread's next one. */
const char *uct_cxi_trig_proto_text(const char *format, ...) UCS_F_PRINTF(1, 2);

#endif
