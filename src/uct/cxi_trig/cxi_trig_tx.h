/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_tx.h - immediate operations: what messages, puts, gets and atomics
 * have in common.
 *
 * An operation's descriptor belongs to the provider until completion, and so
 * does the memory it names: the payload at the descriptor's end or, for those
 * without a copy, the user's. A user's completion is called, or made known by
 * the returned status, exactly once; for the user's memory never before the
 * provider has reported the operation or its endpoint is closed. What ends an
 * operation earlier (a cancelling flush) is only for those which touch nothing
 * but their descriptors; or their endpoint is destroyed, and they do not end.
 */
#ifndef UCT_CXI_TRIG_TX_H_
#define UCT_CXI_TRIG_TX_H_

#include "cxi_trig_ep.h"
#include "cxi_trig_proto.h"
#include "cxi_trig_req.h"
#include "uct_trig.h"

#include <rdma/fi_atomic.h>

#include <sys/types.h>
#include <sys/uio.h>


struct uct_cxi_trig_tx_op;


/** What an operation does. Constant. */
typedef struct uct_cxi_trig_tx_kind {
    /** Hand it to the provider; returns what libfabric does. */
    ssize_t (*post)(struct uct_cxi_trig_tx_op *op);
    /** Give the user what it has brought; called on success only. */
    void (*finish)(struct uct_cxi_trig_tx_op *op);
    /** The provider reads or writes the user's memory. */
    int is_zcopy;
    /** ... or the peer's. */
    int is_rma;
    /** It gets the peer's probe word. */
    int is_probe;
    /** Where it is counted. */
    uct_trig_stats_kind_t stat;
} uct_cxi_trig_tx_kind_t;


/** What an atomic works on. */
typedef union uct_cxi_trig_word {
    uint32_t u32;
    uint64_t u64;
} uct_cxi_trig_word_t;


/** Pieces of local memory. */
typedef struct uct_cxi_trig_tx_iov {
    size_t       count;
    struct iovec iov[UCT_CXI_TRIG_TX_MAX_IOV];
    void         *desc[UCT_CXI_TRIG_TX_MAX_IOV]; /**< Of libfabric */
} uct_cxi_trig_tx_iov_t;


/** Descriptor of an operation; payload of seg_size bytes at the end. */
typedef struct uct_cxi_trig_tx_op {
    uct_cxi_trig_req_t           req;      /* Must be first */
    uct_cxi_trig_track_op_t      by_iface;
    uct_cxi_trig_track_op_t      by_peer;
    uct_cxi_trig_peer_t          *peer;
    const uct_cxi_trig_tx_kind_t *kind;
    uct_completion_t             *comp;    /**< The user's, or NULL */
    int                          canceled; /**< The user was told already */
    struct {
        ucs_list_link_t          list;     /**< On the interface's */
        uint64_t                 by_iface; /**< All below are to be over */
        uint64_t                 by_peer;
        int                      is_held;  /**< They are not yet */
    } fence;
    size_t                       length;   /**< Of the payload */
    struct {
        uint64_t                 addr;     /**< As the provider wants it */
        uint64_t                 key;
    } remote;                              /**< Of all but messages */
    union {
        struct {
            uct_cxi_trig_tx_iov_t iov;
            uct_unpack_callback_t unpack; /**< Of a buffered get */
            void                  *arg;
        } rma;
        struct {
            enum fi_datatype      type;
            enum fi_op            op;
            uct_cxi_trig_word_t   operand;
            uct_cxi_trig_word_t   compare;
            uct_cxi_trig_word_t   old;     /**< What was there */
            void                  *result; /**< The user's */
        } amo;
        uct_cxi_trig_tx_iov_t     am; /**< Of a message without a copy */
    };
    uct_cxi_trig_msg_t            msg; /**< Of a message */
    uint8_t                       payload[];
} uct_cxi_trig_tx_op_t;


/** Prepare the sending half of an interface; failures are logged. */
ucs_status_t uct_cxi_trig_tx_init(uct_cxi_trig_iface_t *iface,
                                  unsigned queue_len);

/** Undo it; the endpoint is closed. */
void uct_cxi_trig_tx_cleanup(uct_cxi_trig_iface_t *iface);

/** Whether no endpoint of the interface can send now. */
static inline int
uct_cxi_trig_tx_is_exhausted(const uct_cxi_trig_iface_t *iface)
{
    return (iface->tx.avail == 0) || (iface->tx.backlog != NULL);
}

/**
 * Whether an operation may start: UCS_OK, UCS_ERR_NO_RESOURCE, or why the
 * endpoint has failed.
 */
ucs_status_t uct_cxi_trig_tx_check(uct_cxi_trig_ep_t *ep);

/**
 * Take a descriptor. It must be given to uct_cxi_trig_tx_send(),
 * uct_cxi_trig_tx_start() or uct_cxi_trig_tx_drop().
 */
ucs_status_t uct_cxi_trig_tx_get(uct_cxi_trig_ep_t *ep,
                                 const uct_cxi_trig_tx_kind_t *kind,
                                 uct_cxi_trig_tx_op_t **op_p);

/**
 * Name the remote memory of an operation; an empty one has none. The provider
 * checks key and range; wrong ones fail the endpoint.
 */
static inline void uct_cxi_trig_tx_set_remote(uct_cxi_trig_tx_op_t *op,
                                              uint64_t remote_addr,
                                              uct_rkey_t rkey)
{
    const uct_trig_rkey_t *region = (const void*)(uintptr_t)rkey;

    op->remote.addr = remote_addr - region->base;
    op->remote.key  = region->key;
}

/**
 * Name the user's memory in @a dest, behind what it has; empty pieces are left
 * out. Handles are only looked at where the provider wants descriptors of
 * memory of GPUs. For the host's, libfabric is not asked for FI_MR_LOCAL, so
 * that else the domain has no UCT_MD_FLAG_NEED_MEMH, and UCP then gives any.
 */
void uct_cxi_trig_tx_add_iov(const uct_cxi_trig_iface_t *iface,
                             uct_cxi_trig_tx_iov_t *dest, const uct_iov_t *iov,
                             size_t iovcnt);

/** For operations that bring nothing back. */
void uct_cxi_trig_tx_finish_none(uct_cxi_trig_tx_op_t *op);

/** Give an unused descriptor back. */
void uct_cxi_trig_tx_drop(uct_cxi_trig_tx_op_t *op);

/** Start an operation with @a length bytes of payload; owns it then. */
ucs_status_t uct_cxi_trig_tx_send(uct_cxi_trig_tx_op_t *op, size_t length);

/**
 * Start an operation whose end is told: UCS_INPROGRESS, and @a comp (may be
 * NULL) is completed later; or why it has failed.
 */
ucs_status_t uct_cxi_trig_tx_start(uct_cxi_trig_tx_op_t *op, size_t length,
                                   uct_completion_t *comp);

/**
 * Complete all operations to a peer that touch nothing of the user's, and all
 * flushes: with UCS_ERR_CANCELED, or why the peer has failed. Returns whether
 * any are still in flight that touch the user's memory, or the peer's, which
 * may free it once it knows that they are cancelled.
 */
int uct_cxi_trig_tx_cancel(uct_cxi_trig_peer_t *peer);

/**
 * The endpoint of a peer ends, and its user does not wait any longer: complete
 * all operations with UCS_ERR_CANCELED, those too that touch the user's memory.
 * What is not the provider's yet is not carried out.
 */
void uct_cxi_trig_tx_abandon(uct_cxi_trig_peer_t *peer);

/** Whether a completed request is an operation of this kind, to @a peer. */
int uct_cxi_trig_tx_goes_to(const uct_cxi_trig_req_t *req,
                            const uct_cxi_trig_peer_t *peer);

/** Whether an operation to a peer is in flight that touches the user's memory,
 *  or whose end is to be told. */
int uct_cxi_trig_tx_is_awaited(const uct_cxi_trig_peer_t *peer);

/** Whether uct_cxi_trig_tx_retry() has something to try. */
int uct_cxi_trig_tx_has_work(uct_cxi_trig_iface_t *iface);

/** Post what the provider had no room for, or a fence has held, if that can be
 *  done now; returns how many operations. */
unsigned uct_cxi_trig_tx_retry(uct_cxi_trig_iface_t *iface);

/** UCT's flush of an interface. */
ucs_status_t uct_cxi_trig_tx_iface_flush(uct_iface_h iface, unsigned flags,
                                         uct_completion_t *comp);

/**
 * UCT's fence of an interface: later operations wait for earlier ones. They are
 * taken all the same, and held until those are over.
 */
ucs_status_t uct_cxi_trig_tx_iface_fence(uct_iface_h iface, unsigned flags);

/** Fail the endpoints that have operations in flight. The operations stay so:
 *  the provider has not said that it leaves their memory alone. */
void uct_cxi_trig_tx_fail_all(uct_cxi_trig_iface_t *iface, ucs_status_t status);

#endif
