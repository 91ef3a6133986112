/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_txop.h - operations as their initiator has them.
 *
 *   FREE -> (start) -> PENDING -> WAITING -> (complete) -> FREE | HELD
 *
 * PENDING: records are still to be written, the link is full. WAITING: for
 * acknowledgements. HELD: complete, but its place in the endpoint's queue is
 * only given back when its entry is read from the completion queue (strict).
 *
 * All functions are called with the NIC's lock held.
 */
#ifndef CXIEMU_TXOP_H_
#define CXIEMU_TXOP_H_

#include "nic/cxiemu_link.h"
#include "op/cxiemu_op.h"

struct cxiemu_dwq_entry;


/** An operation under way. */
typedef struct cxiemu_txop {
    TAILQ_ENTRY(cxiemu_txop) list;
    cxiemu_op_t             op;
    uint32_t                id;        /**< In records */
    cxiemu_link_t           *link;
    struct cxiemu_txop_list *listed;   /**< The link's list that it is in */
    uint16_t                dst_ep;
    struct cxiemu_dwq_entry *entry;    /**< Deferred work it belongs to */
    uint64_t                rx;        /**< Target's number of the message */
    size_t                  offset;    /**< Bytes that are in records */
    unsigned                unacked;   /**< Acknowledgements to come */
    int                     status;    /**< First error, FI_E* */
    uint8_t                 started;   /**< First record written */
    uint8_t                 go;        /**< RTS: data was asked for */
    uint8_t                 reported;  /**< The user is told, or must not be */
    uint8_t                 fencing;   /**< Counted in link->fencing */
    uint8_t                 path;      /**< How its payload travels */
    uint64_t                not_before; /**< Time when it may start */
    void                    *copy;     /**< Injected data, owned */
} cxiemu_txop_t;


/**
 * Start an operation. What CXI refuses has been refused by the caller. An
 * operation that finds no room waits its turn.
 * @a entry: deferred work it belongs to, or NULL. With it the place in the
 * transmit queue has been taken by the caller, completion is counted at the
 * work's counter instead of the endpoint's (as CXI does), and 0 is returned
 * always: whatever fails, fails as an operation. The entry may be over
 * (cxiemu_dwq_done()) when this returns. Counters may have fired: see to what
 * they trigger.
 * 0 (also if the peer is gone: completes in error, FI_EHOSTUNREACH), -FI_EAGAIN
 * if the endpoint's transmit queue is full, -FI_EINVAL for an unknown address,
 * -FI_ENOMEM, or why there is no link.
 */
int cxiemu_txop_start(const cxiemu_op_t *op, struct cxiemu_dwq_entry *entry);

/** Try the stalled links' pending operations again; how many went on. */
unsigned cxiemu_txop_retry(cxiemu_nic_t *nic);

/** An acknowledgement has come (cxiemu_link_events_t). */
void cxiemu_txop_ack(cxiemu_link_t *link, const cxiemu_ack_t *ack);

/** Fail all operations of a link with @a err (FI_E*). */
void cxiemu_txop_fail_all(cxiemu_link_t *link, int err);

/** An endpoint is closed: its operations end, and are not reported. */
void cxiemu_txop_drop_ep(struct cxiemu_ep *ep);

/** Whether peers may still access memory of an endpoint's operations. */
int cxiemu_txop_exposed(struct cxiemu_ep *ep);

/** Free the operations' memory; for cxiemu_nic_destroy(), after its links. */
void cxiemu_txop_cleanup(cxiemu_nic_t *nic);

#endif
