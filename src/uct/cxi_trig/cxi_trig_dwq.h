/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_dwq.h - deferred work: operations that wait for a counter.
 *
 * How a completion is learnt depends on the provider, see cxi_trig_dwq_cq.c and
 * cxi_trig_dwq_count.c.
 */
#ifndef UCT_CXI_TRIG_DWQ_H_
#define UCT_CXI_TRIG_DWQ_H_

#include "cxi_trig_credit.h"
#include "cxi_trig_req.h"
#include "uct_trig.h"

#include <ucs/datastruct/list.h>
#include <ucs/datastruct/mpool.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

struct uct_cxi_trig_iface;
struct uct_cxi_trig_peer;
struct uct_cxi_trig_dwq_slot;


/**
 * A deferred put, get or atomic; the provider's until it completes. What is the
 * same for all of a kind is last, and written once, when the pool makes it.
 *
 * Posting and completing often happen on different cores: of what the one
 * writes the other one uses but @a is_posted and its neighbours.
 */
typedef struct uct_trig_op {
    uct_cxi_trig_req_t           req;    /* Must be first */
    ucs_list_link_t              all_list;
    struct uct_cxi_trig_peer     *peer;
    uct_trig_mem_h               local;  /**< Of the buffer; may be NULL */
    uint64_t                     offset; /**< If kept: in the address */
    uint64_t                     room;   /**< If kept: the highest one */
    struct uct_cxi_trig_dwq_slot *slot;  /**< Of the counting back-end, ... */
    ucs_list_link_t              list;   /**< ... and those that have one */
    uct_trig_deferred_t          deferred;
    uint8_t                      is_posted;
    uint8_t                      has_entry;    /**< Of the NIC, since then */
    uint8_t                      is_kept;      /**< Its owner posts it again */
    uint8_t                      is_abandoned; /**< But the provider's still */
    uint8_t                      is_dropped;   /**< Was posted when the provider
                                                    dropped what waits */
    union {
        struct { /* Or a get, from target to source */
            struct iovec      source;
            void              *desc;
            struct fi_rma_iov target;
            struct fi_op_rma  op;
        } put;
        struct {
            uint64_t            value;
            struct fi_ioc       source;
            struct fi_rma_ioc   target;
            struct fi_op_atomic op;
        } atomic;
    };
} uct_cxi_trig_dwq_op_t;

/* Six cache lines, with what a pool adds; a message has up to two of them */
_Static_assert(sizeof(uct_cxi_trig_dwq_op_t) <= 376, "memory of an operation");


/** A way to learn of completions. Every slot is filled. */
typedef struct uct_cxi_trig_dwq_ops {
    /** Prepare; UCS_OK, or logged error. */
    ucs_status_t (*init)(struct uct_cxi_trig_iface *iface);

    /** Undo init; the endpoint is closed. */
    void (*cleanup)(struct uct_cxi_trig_iface *iface);

    /** Hand an operation, complete but for its completion counter, to the
     *  provider; returns libfabric's code. */
    int (*post)(struct uct_cxi_trig_iface *iface, uct_cxi_trig_dwq_op_t *op);

    /** Have the provider carry out an operation whose trigger is there, with no
     *  entry of the NIC; returns libfabric's code. */
    int (*run)(struct uct_cxi_trig_iface *iface, uct_cxi_trig_dwq_op_t *op);

    /** An operation is over: release what post took. */
    void (*release)(struct uct_cxi_trig_iface *iface,
                    uct_cxi_trig_dwq_op_t *op, ucs_status_t status);

    /** Complete what is over without an entry in the queue; how many it was. */
    unsigned (*poll)(struct uct_cxi_trig_iface *iface);

    /** Make the next completion wake a sleeper, or UCS_ERR_BUSY if there is one
     *  already. */
    ucs_status_t (*arm)(struct uct_cxi_trig_iface *iface);
} uct_cxi_trig_dwq_ops_t;


/** Deferred work of an interface. One thread at a time. */
typedef struct uct_cxi_trig_dwq {
    const uct_cxi_trig_dwq_ops_t *ops;
    uct_cxi_trig_credit_t        credit;
    ucs_mpool_t                  puts;       /**< Of uct_cxi_trig_dwq_op_t */
    ucs_mpool_t                  gets;       /**< The same */
    ucs_mpool_t                  atomics;    /**< The same */
    ucs_list_link_t              all;        /**< Of all, in use or not */
    unsigned                     lost_peers; /**< Peers that are lost, but have
                                                  references */
    int                          has_wake;   /**< A message of the interface to
                                                  itself is deferred or under
                                                  way */
    void                         *priv;      /**< Of the back-end */
} uct_cxi_trig_dwq_t;


extern const uct_cxi_trig_dwq_ops_t uct_cxi_trig_dwq_cq_ops;
extern const uct_cxi_trig_dwq_ops_t uct_cxi_trig_dwq_count_ops;


/** Prepare deferred work with an allowance of @a entries entries, out of the
 *  pool that @a params names; failures are logged. */
ucs_status_t
uct_cxi_trig_dwq_init(struct uct_cxi_trig_iface *iface,
                      const uct_cxi_trig_credit_params_t *params,
                      unsigned entries);

/** Drop everything; the endpoint is closed, so that nothing fires any more. */
void uct_cxi_trig_dwq_cleanup(struct uct_cxi_trig_iface *iface);

/**
 * Check, and take a descriptor for a put (FI_OP_WRITE), or for a get
 * (FI_OP_READ), which is described in the same way.
 *
 * @return As uct_trig_ep_put().
 */
ucs_status_t uct_cxi_trig_dwq_get_rma(uct_ep_h ep, enum fi_op_type type,
                                      const uct_trig_put_t *put,
                                      const uct_trig_deferred_t *deferred,
                                      uct_cxi_trig_dwq_op_t **op_p);

/** The same for an atomic. */
ucs_status_t uct_cxi_trig_dwq_get_add64(uct_ep_h ep,
                                        const uct_trig_atomic_t *atomic,
                                        const uct_trig_deferred_t *deferred,
                                        uct_cxi_trig_dwq_op_t **op_p);

/** Give it all back, the descriptor when the provider is done with it; it is
 *  not posted. */
void uct_cxi_trig_dwq_free(struct uct_cxi_trig_iface *iface,
                           uct_cxi_trig_dwq_op_t *op);

/** Hand an operation to the provider, with an entry unless its trigger is
 *  there; it stays the caller's if that fails. */
ucs_status_t uct_cxi_trig_dwq_post(struct uct_cxi_trig_iface *iface,
                                   uct_cxi_trig_dwq_op_t *op);

/** An operation is over: frees it, unless it is kept, and calls its done(). */
void uct_cxi_trig_dwq_complete(struct uct_cxi_trig_iface *iface,
                               uct_cxi_trig_req_t *req, size_t length,
                               ucs_status_t status);

/**
 * An operation will never be heard of again, or only as failed: as
 * uct_cxi_trig_dwq_complete(), but its descriptor is kept for the provider.
 */
void uct_cxi_trig_dwq_abandon(struct uct_cxi_trig_iface *iface,
                              uct_cxi_trig_dwq_op_t *op, ucs_status_t status);

/** Abandon all that the provider has. */
void uct_cxi_trig_dwq_fail_all(struct uct_cxi_trig_iface *iface,
                               ucs_status_t status);

#endif
