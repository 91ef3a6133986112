/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_proto.h - format of the memory that processes share.
 *
 * Each domain has one NIC memory, which peers map to announce themselves and to
 * say that there is work. Each direction of each pair has one link memory, made
 * by the initiator: a ring of records towards the target, a ring of
 * acknowledgements back, and slots for payload. Every word is written by one
 * side only, but for the ready bits, the ports and some counts, which are
 * changed by atomic operations; so a process that is stopped or killed at any
 * instruction holds nothing that others need.
 */
#ifndef CXIEMU_PROTO_H_
#define CXIEMU_PROTO_H_

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CXIEMU_PROTO_VERSION   8
#define CXIEMU_NIC_MAGIC       0x4e584343u
#define CXIEMU_LINK_MAGIC      0x4c584343u
#define CXIEMU_CACHE_LINE      64

/** Ports of a NIC: one for each link that starts or ends there. */
#define CXIEMU_PORTS           4096
#define CXIEMU_READY_WORDS     (CXIEMU_PORTS / 64)

/** Endpoints of a NIC, numbered from 0. */
#define CXIEMU_MAX_EPS         256

/** Cells of a link's ring, and the largest payload that travels in it. */
#define CXIEMU_CELLS           1024u
#define CXIEMU_CELL_SIZE       64
#define CXIEMU_INLINE_MAX      2048

/** Acknowledgements: as many as there may be records on their way. */
#define CXIEMU_ACKS            1024u

/** Slots for payload of a link. */
#define CXIEMU_SLOTS           16u
#define CXIEMU_SLOT_SIZE       (32u * 1024)


/** What a NIC's thread does; see cxiemu_wait.h. */
enum {
    CXIEMU_THREAD_AWAKE, /**< It looks, and then once more before it sleeps */
    CXIEMU_THREAD_TIMED, /**< It looks by itself within a millisecond */
    CXIEMU_THREAD_ASLEEP /**< It must be woken */
};

/** What the target of a link says once it has mapped the link's memory: whether
 *  it may copy from and to the initiator's memory, by the kernel. */
enum {
    CXIEMU_ATTACHED_NOT,
    CXIEMU_ATTACHED_MAPS,
    CXIEMU_ATTACHED_COPIES
};

/** A port's owner word is 0 while it is free; taken by compare-and-swap, given
 *  back by the NIC whose port it is. */
typedef struct cxiemu_port {
    uint64_t owner;   /**< cxiemu_port_owner() of the NIC that took it */
    uint64_t link;    /**< Link's nonce; written before the first ready bit */
    uint32_t fd;      /**< Of the link's memory, in the owner's process */
    uint32_t reserved;
    uint64_t refused; /**< Nonce of a link that the target could not take */
} cxiemu_port_t;

static_assert(sizeof(cxiemu_port_t) == 32, "format of ports");

/** The owner word for the NIC of a process. It tells the process at once: one
 *  that is killed before it says more leaves no port behind. */
static inline uint64_t cxiemu_port_owner(uint64_t nonce, uint32_t pid)
{
    return (nonce << 32) | pid;
}

static inline uint32_t cxiemu_port_pid(uint64_t owner)
{
    return (uint32_t)owner;
}

/** A NIC's memory. */
typedef struct cxiemu_nic_shm {
    uint32_t magic;
    uint32_t version;
    uint64_t nonce;
    uint32_t pid;
    uint32_t closed;    /**< The owner has closed the NIC in good order */
    uint32_t vni;       /**< Of the owner's network; peers have the same */
    /* Futex, CXIEMU_THREAD_*; peers change ASLEEP to AWAKE, and wake */
    _Alignas(CXIEMU_CACHE_LINE) uint32_t thread;
    uint32_t pollers;   /**< Threads of the owner that poll; the owner's */
    /* Bit i of the summary: word i of ready is not 0. The first words, which
     * most processes need no more than, share its cache line: ringing and
     * looking move one line, not two */
    _Alignas(CXIEMU_CACHE_LINE) uint64_t summary;
    uint64_t ready[CXIEMU_READY_WORDS];
    cxiemu_port_t ports[CXIEMU_PORTS];
} cxiemu_nic_shm_t;


/** Records from initiator to target. */
typedef enum {
    CXIEMU_REC_PAD,      /**< Nothing, to the ring's end */
    CXIEMU_REC_SEND,     /**< Message: whole payload with it, in the record or
                              in slots */
    CXIEMU_REC_RTS,      /**< Message: payload to be pulled from the initiator's
                              memory, or asked for */
    CXIEMU_REC_DATA,     /**< Chunk of a message that was asked for */
    CXIEMU_REC_WRITE,    /**< Payload in the record or in slots */
    CXIEMU_REC_PULL,     /**< Write whose payload the target fetches */
    CXIEMU_REC_READ,     /**< Into slots of the link */
    CXIEMU_REC_PUSH,     /**< Read that the target stores in the initiator's
                              memory */
    CXIEMU_REC_ATOMIC    /**< All atomics; a result travels back in the ack */
} cxiemu_rec_type_t;

/** Flags of records. */
enum {
    CXIEMU_REC_TAGGED    = 1u << 0,
    CXIEMU_REC_CQ_DATA   = 1u << 1,  /**< data is remote CQ data */
    CXIEMU_REC_FENCE     = 1u << 2,  /**< After all that came before */
    CXIEMU_REC_ACK       = 1u << 3,  /**< An acknowledgement is wanted */
    CXIEMU_REC_SLOT      = 1u << 4,  /**< source is a slot's number */
    CXIEMU_REC_LAST      = 1u << 6,  /**< Last chunk of its operation */
    CXIEMU_REC_DELIVERY  = 1u << 7,  /**< Acknowledge when it is in memory */
    CXIEMU_REC_ORDERED   = 1u << 8   /**< Not before earlier ones of its kind */
};

/** What an ATOMIC does: kind (0 plain, 1 fetching, 2 comparing), enum fi_op and
 *  enum fi_datatype. */
#define CXIEMU_ATOMIC_CODE(_kind, _op, _datatype) \
    ((uint32_t)(_kind) | ((uint32_t)(_op) << 8) | ((uint32_t)(_datatype) << 16))
#define CXIEMU_ATOMIC_KIND(_code)     ((_code) & 0xff)
#define CXIEMU_ATOMIC_OP(_code)       (((_code) >> 8) & 0xff)
#define CXIEMU_ATOMIC_DATATYPE(_code) (((_code) >> 16) & 0xff)

/** A record's first cell; payload that has no room here is in those behind
 *  it. */
typedef struct cxiemu_rec {
    uint32_t seq;      /**< Position + 1 in the ring, stored last (release) */
    uint8_t  type;     /**< cxiemu_rec_type_t */
    uint8_t  cells;    /**< Of the whole record */
    uint16_t flags;    /**< CXIEMU_REC_* */
    uint32_t op;       /**< Initiator's number, for the acknowledgement */
    uint16_t src_ep;
    uint16_t dst_ep;
    uint64_t tag;      /**< Tag or remote key; DATA: target's number */
    uint32_t length;   /**< Bytes with this record, or to be fetched */
    uint32_t code;     /**< ATOMIC: operation and datatype */
    uint64_t addr;     /**< Target's address or offset; messages: bytes of the
                            whole message */
    union {
        struct {
            uint64_t source;     /**< Slot, or initiator's address; ATOMIC:
                                      operand to compare with */
            union {
                uint64_t data;   /**< Remote CQ data */
                uint64_t offset; /**< Of a chunk in its operation */
            };
            uint64_t payload;    /**< If it is of 8 bytes or fewer */
        };
        uint8_t small[24];       /**< Payload of a SEND or WRITE with neither
                                      source nor data */
    };
} cxiemu_rec_t;

static_assert(sizeof(cxiemu_rec_t) == CXIEMU_CELL_SIZE, "format of records");

/** Copy what a peer may change at any time: it is read once, and what is
 *  checked is what is used. */
static inline void cxiemu_copy_out(void *to, const void *from, size_t length)
{
    memcpy(to, from, length);
    /* For the compiler, which may read anew what it thinks is constant */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/** Whether a kind of records brings its payload with it. */
static inline int cxiemu_rec_brings(unsigned type)
{
    return (type == CXIEMU_REC_SEND) || (type == CXIEMU_REC_DATA) ||
           (type == CXIEMU_REC_WRITE);
}

/** Whether a record that brings its payload has `small` for it, or `payload`
 *  alone. */
static inline int cxiemu_rec_has_small(unsigned type, unsigned flags)
{
    return ((type == CXIEMU_REC_SEND) || (type == CXIEMU_REC_WRITE)) &&
           !(flags & CXIEMU_REC_CQ_DATA);
}

/** Room for payload in its first cell. */
static inline size_t cxiemu_rec_small_room(unsigned type, unsigned flags)
{
    return cxiemu_rec_has_small(type, flags) ?
                   sizeof(((cxiemu_rec_t*)NULL)->small) :
                   sizeof(((cxiemu_rec_t*)NULL)->payload);
}

/** The same in its first cell or, if it has more, in those behind it. */
static inline size_t cxiemu_rec_room(const cxiemu_rec_t *rec)
{
    return (rec->cells == 1) ? cxiemu_rec_small_room(rec->type, rec->flags) :
                               (rec->cells - 1u) * CXIEMU_CELL_SIZE;
}

/** Where payload in the first cell begins. */
static inline void *cxiemu_rec_small(cxiemu_rec_t *rec)
{
    return cxiemu_rec_has_small(rec->type, rec->flags) ? (void*)rec->small :
                                                         (void*)&rec->payload;
}

/** What an acknowledgement says. */
typedef enum {
    CXIEMU_ACK_DONE, /**< The record has been carried out, or has failed */
    CXIEMU_ACK_GO    /**< Send the data of an RTS: value is the number for it */
} cxiemu_ack_type_t;

typedef struct cxiemu_ack {
    uint32_t seq;    /**< Position + 1, stored last (release) */
    uint16_t type;   /**< cxiemu_ack_type_t */
    uint16_t status; /**< FI_E* code, 0 for success */
    uint32_t op;     /**< The record's */
    uint32_t slot;   /**< The record's slot that is free again, or UINT32_MAX */
    uint64_t value;  /**< Result of a fetching atomic; bytes taken of a
                          message */
    uint64_t reserved;
} cxiemu_ack_t;

static_assert(sizeof(cxiemu_ack_t) == 32, "format of acknowledgements");

/** What the initiator says of a link, before it announces it. */
typedef struct cxiemu_link_id {
    uint32_t magic;
    uint32_t version;
    uint64_t nonce;     /**< Of the link */
    uint64_t initiator; /**< Nonce of the initiator's NIC */
    uint64_t target;    /**< Nonce of the target's NIC */
    uint32_t pid;       /**< Of the initiator */
    uint32_t nic_fd;    /**< Of the initiator's NIC memory, there */
    uint32_t port;      /**< The link's port at the initiator, for acks */
    uint32_t reserved;
} cxiemu_link_id_t;

/** A link's memory. */
typedef struct cxiemu_link_shm {
    cxiemu_link_id_t id;
    uint32_t closed;    /**< The initiator has closed it in good order */
    uint32_t stalled;   /**< The initiator found no room: notify it of some */
    /* Written by the target */
    _Alignas(CXIEMU_CACHE_LINE) uint32_t head; /**< Cells it is through with */
    uint32_t attached;  /**< CXIEMU_ATTACHED_* */
    /* Written by the initiator */
    _Alignas(CXIEMU_CACHE_LINE) uint32_t ack_head; /**< Acks it has taken */
    _Alignas(CXIEMU_CACHE_LINE) cxiemu_ack_t acks[CXIEMU_ACKS];
    _Alignas(CXIEMU_CACHE_LINE) uint8_t cells[CXIEMU_CELLS * CXIEMU_CELL_SIZE];
    _Alignas(4096) uint8_t slots[CXIEMU_SLOTS][CXIEMU_SLOT_SIZE];
} cxiemu_link_shm_t;

#endif
