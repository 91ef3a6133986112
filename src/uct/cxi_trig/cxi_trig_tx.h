/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_tx.h - immediate operations: messages and puts.
 *
 * The payload is copied into the operation's descriptor, which belongs to the
 * provider until completion.
 */
#ifndef UCT_CXI_TRIG_TX_H_
#define UCT_CXI_TRIG_TX_H_

#include "cxi_trig_ep.h"
#include "cxi_trig_pending.h"
#include "cxi_trig_proto.h"
#include "cxi_trig_req.h"


/** Descriptor of a message or a put; payload of seg_size bytes at the end. */
typedef struct uct_cxi_trig_tx_op {
    uct_cxi_trig_req_t      req;       /* Must be first */
    uct_cxi_trig_track_op_t by_iface;
    uct_cxi_trig_track_op_t by_peer;
    uct_cxi_trig_peer_t     *peer;
    size_t                  length;    /**< Of the payload */
    int                     is_put;
    uint64_t                target;    /**< Of a put, as the provider wants */
    uint64_t                key;       /**< Of a put */
    uct_cxi_trig_msg_t      msg;       /**< Of a message */
    uint8_t                 payload[];
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
 * Take a descriptor for a message (which the caller may turn into a put). It
 * must be given to uct_cxi_trig_tx_send() or uct_cxi_trig_tx_drop().
 */
ucs_status_t uct_cxi_trig_tx_get(uct_cxi_trig_ep_t *ep,
                                 uct_cxi_trig_tx_op_t **op_p);

/** Give an unused descriptor back. */
void uct_cxi_trig_tx_drop(uct_cxi_trig_tx_op_t *op);

/** Start an operation with @a length bytes of payload; owns it then. */
ucs_status_t uct_cxi_trig_tx_send(uct_cxi_trig_tx_op_t *op, size_t length);

/** Try again what the provider had no room for; returns 1 if it has now. */
unsigned uct_cxi_trig_tx_retry(uct_cxi_trig_iface_t *iface);

/** UCT's flush of an interface. */
ucs_status_t uct_cxi_trig_tx_iface_flush(uct_iface_h iface, unsigned flags,
                                         uct_completion_t *comp);

/** UCT's fence of an interface: later operations wait for earlier ones. */
ucs_status_t uct_cxi_trig_tx_iface_fence(uct_iface_h iface, unsigned flags);

#endif
