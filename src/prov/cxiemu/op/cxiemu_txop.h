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

#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>

struct cxiemu_dma;
struct cxiemu_ep;
struct cxiemu_dwq_entry;


typedef enum {
    CXIEMU_OP_SEND,
    CXIEMU_OP_TSEND,
    CXIEMU_OP_READ,
    CXIEMU_OP_WRITE,
    CXIEMU_OP_ATOMIC,
    CXIEMU_OP_FETCH_ATOMIC,
    CXIEMU_OP_COMPARE_ATOMIC
} cxiemu_op_kind_t;

/** Memory of a program that an operation may name. */
enum {
    CXIEMU_OP_BUFFER, /**< Of an atomic: its operand */
    CXIEMU_OP_RESULT,
    CXIEMU_OP_OTHER,  /**< What a compare-atomic compares with */
    CXIEMU_OP_PLACES
};

/** What an operation is; checked by the caller. An entry in the completion
 *  queue is written if flags has FI_COMPLETION, or for an error. */
typedef struct cxiemu_op {
    cxiemu_op_kind_t  kind;
    struct cxiemu_ep  *ep;
    uint64_t          flags;     /**< FI_*, the endpoint's defaults included */
    void              *context;
    fi_addr_t         dest;
    const void        *buffer;   /**< Source, or where the operand is;
                                      destination of a read */
    size_t            length;    /**< Bytes */
    uint64_t          tag;
    uint64_t          data;      /**< Remote CQ data */
    uint64_t          addr;      /**< Remote address or offset */
    uint64_t          key;
    enum fi_op        op;        /**< Atomics: one element each */
    enum fi_datatype  datatype;
    uint64_t          operand;   /**< Atomics; copied at posting */
    uint64_t          compare;
    const void        *other;    /**< Where that is */
    void              *result;   /**< Fetching atomics */
    struct cxiemu_dma *dmas[CXIEMU_OP_PLACES]; /**< Mappings of GPUs' memory
                                      that the addresses are in, referenced;
                                      NULL for the host's */
} cxiemu_op_t;

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


/** Where the card has the memory of an operation, which keeps it until
 *  cxiemu_op_unmap(); @a address_p has the program's address. 0, or as
 *  cxiemu_dma_open(). No lock is held. */
int cxiemu_op_map(cxiemu_op_t *op, unsigned place, size_t length,
                  void **address_p);

/** Give back what was mapped; also if that failed. */
void cxiemu_op_unmap(cxiemu_op_t *op);

/**
 * Start an operation. What CXI refuses has been refused by the caller. An
 * operation that finds no room waits its turn.
 * @a entry: deferred work it belongs to, or NULL. With it the place in the
 * transmit queue has been taken by the caller, completion is counted at the
 * work's counter instead of the endpoint's (as CXI does), and 0 is returned
 * always: whatever fails, fails as an operation. The entry may be over
 * (cxiemu_dwq_done()) when this returns.
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
