/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_proto.h - what the direct lane's two sides share: addresses, offers
 * and memory. Both sides run the same version (st_proto.h).
 */
#ifndef UCP_ST_DIRECT_PROTO_H_
#define UCP_ST_DIRECT_PROTO_H_

#include <ucs_gstream.h>
#include <ucs_gstream_ipc.h>
#include <ucs_gstream_pair.h>

#include <ucs/sys/compiler_def.h>

#include <stdint.h>

/** First word of a segment. */
#define UCP_ST_DIRECT_MAGIC 0x3152494454535543ul

/** What lies in a segment is at multiples of this, bytes. */
#define UCP_ST_DIRECT_ALIGN 64

/** Largest UCX_ST_DIRECT_PIECE, bytes. */
#define UCP_ST_DIRECT_PIECE_MAX (1ul << 20)

/** Bytes of data that a slot's head has room for. */
#define UCP_ST_DIRECT_INLINE 56

/** Pieces that a mapped message has at most: what a claim can count. */
#define UCP_ST_DIRECT_MAX_PIECES 4095

/** Mapped: a side's count once it could not copy what it had claimed. No sum
 *  with it is that of all pieces, and each is that of all claimed. */
#define UCP_ST_DIRECT_BROKEN (1ull << 62)

/** A file of memory that belongs to a process: found, and opened, by its
 *  descriptor there. */
typedef struct ucp_st_direct_file {
    uint64_t dev;
    uint64_t ino;
    uint32_t pid;
    uint32_t fd;
} __attribute__((packed)) ucp_st_direct_file_t;

/** A worker's address. */
typedef struct ucp_st_direct_address {
    ucp_st_direct_file_t segment;
    ucp_st_direct_file_t notify; /**< Pipe that wakes its service thread */
    uint64_t             probe;  /**< Where its uuid is, in its process */
} __attribute__((packed)) ucp_st_direct_address_t;

/** Devices that an offer has room for; memory of others is staged. */
#define UCP_ST_DIRECT_MAX_DEVICES 13

/** What one side offers; a @ref ucp_st_direct_gpu_t follows where the process
 *  has a runtime of GPUs. */
typedef struct ucp_st_direct_blob {
    uint64_t             pair;        /**< Receive: where it is, from the
                                           segment's begin */
    uint64_t             piece;       /**< Receive: bytes that a slot takes */
    uint8_t              is_mappable; /**< The buffer lies in `file` */
    uint8_t              can_attach;  /**< It can read and write the other's
                                           memory */
    uint8_t              reserved[6];
    uint64_t             offset;      /**< ... there */
    uint64_t             address;     /**< Of the buffer in its process */
    uint64_t             map_min;     /**< Shortest message that is mapped */
    uint64_t             attach_min;  /**< ... that is attached to */
    ucp_st_direct_file_t file;
} __attribute__((packed)) ucp_st_direct_blob_t;

/** UCX_ST_DIRECT_GPU_TIER. */
typedef enum {
    UCP_ST_DIRECT_TIER_AUTO,
    UCP_ST_DIRECT_TIER_KERNEL,
    UCP_ST_DIRECT_TIER_SERVICE
} ucp_st_direct_tier_t;

/** Where kernels find a buffer. */
typedef enum {
    UCP_ST_DIRECT_PLACE_NONE,   /**< They do not: the pair is not of tier K */
    UCP_ST_DIRECT_PLACE_DEVICE, /**< In a device */
    UCP_ST_DIRECT_PLACE_NEAR,   /**< In this process: what its runtime has, as
                                     memory of the host or managed memory */
    UCP_ST_DIRECT_PLACE_FILE    /**< In a file of the host's memory */
} ucp_st_direct_place_t;

/** What an offer says of devices. */
typedef struct ucp_st_direct_gpu {
    uint64_t              address; /**< Of the user's buffer in its process */
    ucs_gstream_ipc_key_t key;     /**< Of the buffer, if it is in a device; in
                                        a file: `handle` begins with the @ref
                                        ucp_st_direct_file_t */
    uint8_t               num_reached[UCS_GSTREAM_TYPE_LAST]; /**< By type */
    uint8_t               tier;    /**< @ref ucp_st_direct_tier_t */
    uint32_t              reached[UCP_ST_DIRECT_MAX_DEVICES]; /**< Devices whose
                                   memory this side can copy from and to its
                                   buffer: those of HIP, then of CUDA */
    ucp_st_direct_file_t  records; /**< Where its record is, */
    uint64_t              record;  /**< ... from the begin */
    ucs_gstream_rows_t    rows;    /**< Of the buffer */
    uint8_t               place;   /**< @ref ucp_st_direct_place_t */
    uint8_t               starter_type; /**< Tier K: whose kernels start this
                                             side; `reached` is of that device
                                             */
    uint8_t               reserved[6];
} ucp_st_direct_gpu_t;

/** Slots of a pair: uses, or pieces of one, that can be under way. One side
 *  copies in while the other one copies out. A power of 2. */
#define UCP_ST_DIRECT_NUM_SLOTS 4

/** A place for a piece of a message, of up to UCP_ST_DIRECT_INLINE bytes; the
 *  data of longer ones lies behind all the pair's slots. */
typedef struct ucp_st_direct_slot {
    volatile uint64_t seq; /**< Number of the piece that is there, from 1;
                                written by the send's side */
    uint8_t           data[UCP_ST_DIRECT_INLINE];
} UCS_V_ALIGNED(64) ucp_st_direct_slot_t;

/** What one side of a pair writes. */
typedef struct ucp_st_direct_side {
    volatile uint64_t begun; /**< Uses started */
    volatile uint64_t count; /**< Pieces: receive with slots: taken out of
                                  these; mapped: that this side has copied, or
                                  UCP_ST_DIRECT_BROKEN */
    volatile uint64_t record;/**< Where its stream's wait record is, from the
                                  begin of its worker's segment; 0: it has none
                                  yet */
} UCS_V_ALIGNED(64) ucp_st_direct_side_t;

/** A pair, in the segment of the receive's worker; slots follow, then their
 *  data. Indexed by @ref ucp_st_dir_t. */
typedef struct ucp_st_direct_pair {
    ucp_st_direct_side_t side[2];
    uint64_t             claim UCS_V_ALIGNED(64); /**< Mapped: use and
                                                       range that are claimed
                                                       (st_direct_move.c);
                                                       both write it */
    ucp_st_direct_slot_t slots[];
} ucp_st_direct_pair_t;

/** The wait record of a stream: how peers find out whether it moves its open
 *  uses, and wake it. Only its side writes it, but for `notify`. A peer may
 *  look at it, and notify, when the stream is gone: it stays a wait record. */
typedef struct ucp_st_direct_record {
    ucs_gstream_notify_t notify;     /**< What the stream sleeps on */
    volatile uint32_t    is_attended;/**< It waits for something, so that it
                                          goes on with what it has begun */
    volatile uint32_t    is_parked;  /**< It waits, but no thread runs it: wake
                                          the service thread */
    uint64_t             next;       /**< Of those that are free */
} UCS_V_ALIGNED(64) ucp_st_direct_record_t;

/** Head of a segment; pairs and wait records follow. */
typedef struct ucp_st_direct_segment {
    uint64_t          magic;
    uint64_t          uuid;     /**< Of the worker */
    volatile uint64_t sleepers UCS_V_ALIGNED(64); /**< Streams that sleep, or
                                                       are about to */
    uint64_t          signal_record; /**< Of a stream that sleeps until a signal
                                          comes, from the begin; or 0 */
    uint32_t          signal_sleepers; /**< All streams that do */
    uint32_t          is_looking;/**< The service thread will look once more
                                      anyway; written by it alone */
} ucp_st_direct_segment_t;

_Static_assert(sizeof(ucp_st_direct_file_t) == 24, "wire format");
_Static_assert(sizeof(ucp_st_direct_address_t) == 56, "wire format");
_Static_assert(sizeof(ucp_st_direct_blob_t) == 80, "wire format");
_Static_assert(sizeof(ucs_gstream_ipc_key_t) == 80, "wire format");
_Static_assert(sizeof(ucp_st_direct_gpu_t) == 192, "wire format");
_Static_assert(sizeof(ucp_st_direct_slot_t) == 64, "wire format");
_Static_assert(sizeof(ucp_st_direct_side_t) == 64, "wire format");
_Static_assert(sizeof(ucp_st_direct_pair_t) == 192, "wire format");
_Static_assert(sizeof(ucp_st_direct_segment_t) == 128, "wire format");

#endif
