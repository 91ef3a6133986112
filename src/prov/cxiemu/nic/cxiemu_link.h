/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_link.h - one direction between two NICs.
 *
 *   initiator: (get) -> UP -> LOST      target: (accept) -> UP -> LOST
 *
 * The initiator makes the link's memory and announces it in a port of the
 * target's NIC; it need not wait for the target, which maps the memory when it
 * is told of the port. A target that cannot take the link says so in the port.
 * A link ends as LOST: because the process of the other side is gone, or its
 * NIC closed, or it broke the protocol.
 *
 * All functions are called with the NIC's lock held.
 */
#ifndef CXIEMU_LINK_H_
#define CXIEMU_LINK_H_

#include "base/cxiemu_addr.h"
#include "nic/cxiemu_nic.h"


typedef enum {
    CXIEMU_LINK_UP,
    CXIEMU_LINK_LOST /**< The peer is gone; whatever was under way has failed */
} cxiemu_link_state_t;

/** A link, as the initiator or as the target has it. */
typedef struct cxiemu_link {
    TAILQ_ENTRY(cxiemu_link) list;    /**< nic->links */
    TAILQ_ENTRY(cxiemu_link) stalled; /**< nic->stalled, if is_stalled */
    TAILQ_ENTRY(cxiemu_link) unflushed; /**< nic->dirty, if dirty */
    cxiemu_nic_t            *nic;
    cxiemu_link_state_t     state;
    int                     is_tx;      /**< This NIC is the initiator */
    int                     is_stalled;
    int                     dirty;      /**< Committed or acknowledged since the
                                             peer was last notified */
    uint64_t                peer;       /**< Nonce of the other NIC */
    uint32_t                pid;        /**< Of the other process */
    int                     same_process;
    int                     may_attach; /**< This process may copy from and to
                                             memory of the other one, by
                                             cross-memory attach */
    cxiemu_map_t            *map;
    cxiemu_link_shm_t       *shm;
    struct cxiemu_peer      *other;     /**< The other NIC, referenced */
    cxiemu_nic_shm_t        *nic_shm;   /**< Its memory */
    uint32_t                port;       /**< Here */
    uint32_t                peer_port;  /**< There */
    /* As the initiator */
    uint32_t                tail;       /**< Next cell */
    uint32_t                tail_limit; /**< First cell that may be in use */
    uint32_t                ack_next;   /**< Next acknowledgement */
    uint32_t                unacked;    /**< Records whose ack is to come */
    uint32_t                free_slots; /**< Bit mask */
    struct cxiemu_txop_list pending;    /**< Operations, oldest first: those
                                             not fully in the ring */
    struct cxiemu_txop_list waiting;    /**< In the ring, not acknowledged */
    unsigned                refs;       /**< Addresses that lead here */
    uint32_t                attached;   /**< CXIEMU_ATTACHED_*, as last seen */
    uint64_t                sent;       /**< Operations, for the fault knobs */
    unsigned                fencing;    /**< Operations a fence waits for */
    uint64_t                slot_offset[CXIEMU_SLOTS]; /**< Reads: where in the
                                             operation a slot's content goes */
    /* As the target */
    uint32_t                head;       /**< Next cell */
    uint32_t                published;  /**< Head that the initiator knows */
    uint32_t                ack_tail;   /**< Next acknowledgement */
    uint32_t                ack_limit;  /**< First that may be in use */
    unsigned                late;       /**< Of its records in nic->late */
    unsigned                late_other; /**< Those that are no writes */
    uint64_t                late_pass;  /**< Last pass that met one of them */
} cxiemu_link_t;

/** A record that has come: a copy, which the peer cannot change any more. */
typedef struct cxiemu_arrival {
    cxiemu_rec_t  rec;
    cxiemu_link_t *link;    /**< NULL: lost since */
    uint64_t      peer;     /**< Nonce of the initiator's NIC */
    const uint8_t *payload; /**< What came with it, else NULL: to be fetched */
} cxiemu_arrival_t;

#define CXIEMU_CELL_MASK (CXIEMU_CELLS - 1)
#define CXIEMU_ACK_MASK  (CXIEMU_ACKS - 1)

static inline cxiemu_rec_t *cxiemu_link_cell(const cxiemu_link_t *link,
                                             uint32_t position)
{
    return (cxiemu_rec_t*)&link->shm->cells[(position & CXIEMU_CELL_MASK) *
                                            CXIEMU_CELL_SIZE];
}

/** Something was written for the peer: cxiemu_link_flush() notifies it. Lock
 *  held. */
static inline void cxiemu_link_set_dirty(cxiemu_link_t *link)
{
    if (!link->dirty) {
        link->dirty = 1;
        TAILQ_INSERT_TAIL(&link->nic->dirty, link, unflushed);
    }
}

/** What is done with what links report, the same for all of a NIC: the calls
 *  from here to the layers above. Set when the NIC is made. */
typedef struct cxiemu_link_events {
    /** As the target: a record has come, and is sound; its cells behind the
     *  first one are the ring's until this returns. */
    void (*record)(cxiemu_arrival_t *arrival, const void *behind);

    /** As the initiator: an acknowledgement has come. */
    void (*ack)(cxiemu_link_t *link, const cxiemu_ack_t *ack);

    /** The peer is gone, or the NIC closes; what came can still be answered. */
    void (*ending)(cxiemu_link_t *link);

    /** The link is lost: end all that has to do with it. */
    void (*lost)(cxiemu_link_t *link);
} cxiemu_link_events_t;


/**
 * The link towards an address, made if there is none; its process is connected
 * to by the first call. 0, -FI_EHOSTUNREACH if there is no such NIC (any more),
 * -CXIEMU_ERROR_WAY if it is another machine's, -FI_EACCES, -FI_ENOMEM,
 * -FI_ENOSPC if a NIC's ports are used up.
 * Ownership: a reference, given back by cxiemu_link_put().
 */
int cxiemu_link_get(cxiemu_nic_t *nic, const cxiemu_addr_t *addr,
                    cxiemu_link_t **link_p);
void cxiemu_link_put(cxiemu_link_t *link);

/** A record with room for so many bytes of payload behind its first cell, or
 *  NULL if the ring is full, or too many records are not acknowledged. The link
 *  writes its cells and seq, the caller the rest. */
cxiemu_rec_t *cxiemu_link_reserve(cxiemu_link_t *link, size_t behind);

/** Publish the reserved record; cxiemu_link_flush() notifies the peer. */
void cxiemu_link_commit(cxiemu_link_t *link, cxiemu_rec_t *rec);

/** Notify the peer of what was committed or acknowledged since the last
 *  flush. */
void cxiemu_link_flush(cxiemu_link_t *link);

/** Copy @a length bytes of what a record brings or names, from @a offset on; 0,
 *  or FI_E*. Lock held. */
int cxiemu_link_fetch(const cxiemu_arrival_t *arrival, uint64_t offset,
                      void *to, size_t length);

/** Acknowledge, if that is wanted; @a status: FI_E*. Lock held. */
void cxiemu_link_answer(const cxiemu_arrival_t *arrival, cxiemu_ack_type_t type,
                        int status, uint64_t value);

/** A ready bit was set for this port: take what came, up to a share of
 *  @a budget; how many things it was. A port that is not known is a new
 *  peer's. */
unsigned cxiemu_link_drain(cxiemu_nic_t *nic, uint32_t port, unsigned budget);

/** An operation found no room, and is pending: have it tried again. */
void cxiemu_link_stall(cxiemu_link_t *link);

/** Look which peers are gone; fails what is under way with them. */
void cxiemu_link_check(cxiemu_nic_t *nic);

/** The peer is gone: fail everything that has to do with it, with
 *  FI_EHOSTUNREACH. The structure stays until cxiemu_link_reap(), or the last
 *  cxiemu_link_put(); nobody else may remember it. */
void cxiemu_link_lose(cxiemu_link_t *link);

/** Free the links that were lost; nobody looks at one now. */
void cxiemu_link_reap(cxiemu_nic_t *nic);

/** As the initiator: whether the target has mapped the link's memory. It then
 *  takes what is in there, even if this NIC is closed before. */
int cxiemu_link_is_attached(cxiemu_link_t *link);

/** As the initiator: whether the target may copy from and to this process's
 *  memory by itself; as long as it is not known: no. */
int cxiemu_link_target_copies(cxiemu_link_t *link);

/** Whether a peer has yet to map memory in which there is something for it. */
int cxiemu_link_any_unattached(cxiemu_nic_t *nic);

/** Close all links of a NIC in good order; peers learn of it. */
void cxiemu_link_close_all(cxiemu_nic_t *nic);

/** Why operations on a link that is not up fail; see cxiemu_error.h. */
int cxiemu_link_error(const cxiemu_link_t *link);

#endif
