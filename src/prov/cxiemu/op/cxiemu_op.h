/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_op.h - operations as their initiator describes them.
 */
#ifndef CXIEMU_OP_H_
#define CXIEMU_OP_H_

#include "obj/cxiemu_cntr.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_trigger.h>

struct cxiemu_dma;
struct cxiemu_ep;


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

/** Deferred work; see cxiemu_dwq.h. */
typedef struct cxiemu_dwq_entry {
    LIST_ENTRY(cxiemu_dwq_entry) list; /**< In nic->dwq or nic->dwq_free */
    cxiemu_trigger_t   due;
    int                queued;     /**< In the heap */
    uint8_t            held;       /**< In nic->held */
    uint8_t            entries;    /**< Of the service, that it takes */
    uint8_t            slots;      /**< Of the queue of commands */
    TAILQ_ENTRY(cxiemu_dwq_entry) held_list;
    cxiemu_cntr_t      *trigger;   /**< NULL when started */
    cxiemu_cntr_t      *completion; /**< May be NULL */
    enum fi_op_type    type;
    int                write_back; /**< Only a writeback of the trigger counter
                                        (FI_CXI_CNTR_WB) */
    cxiemu_op_t        op;         /**< Operations on endpoints */
    const void         *operand;   /**< Atomics read it when they fire */
    const void         *compare;
    cxiemu_cntr_t      *target;    /**< FI_OP_CNTR_SET and _ADD */
    uint64_t           value;
} cxiemu_dwq_entry_t;

/** Free an entry that is over. Lock held. */
void cxiemu_dwq_forget(cxiemu_nic_t *nic, cxiemu_dwq_entry_t *entry);

/** Deferred work that was started (its operation was given to
 *  cxiemu_txop_start(), with success) is over: count at the completion counter
 *  (a success or a failure, by @a err, FI_E*) and free the entry. Lock held. */
void cxiemu_dwq_done(cxiemu_dwq_entry_t *entry, int err);

/** Where the card has the memory of an operation, which keeps it until
 *  cxiemu_op_unmap(); @a address_p has the program's address. 0, or as
 *  cxiemu_dma_open(). No lock is held. */
int cxiemu_op_map(cxiemu_op_t *op, unsigned place, size_t length,
                  void **address_p);

/** Give back what was mapped; also if that failed. */
void cxiemu_op_unmap(cxiemu_op_t *op);

/** A copy of an operation has references of its own. */
void cxiemu_op_keep(const cxiemu_op_t *op);

/** Take a place of the transmit queue; 0, or -FI_EAGAIN. Lock held. */
int cxiemu_ep_take_tx(struct cxiemu_ep *ep);
void cxiemu_ep_give_tx(struct cxiemu_ep *ep);

/** An operation is over, and its place is given back by the user's next
 *  progress. Lock held. */
void cxiemu_ep_done_tx(struct cxiemu_ep *ep);

/** The user has made progress by a queue or a counter: endpoints that it is
 *  bound to get their places back. Lock held. */
void cxiemu_ep_progressed(cxiemu_domain_t *domain, const void *object);

/** The places of what is over, as the endpoint closes. Lock held. */
void cxiemu_ep_return_tx(struct cxiemu_ep *ep);

#endif
