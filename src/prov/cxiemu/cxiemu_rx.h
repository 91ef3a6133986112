/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_rx.h - receives, and their matching with messages.
 *
 * Matching is in order: the oldest posted receive that fits takes a message,
 * and a receive takes the oldest unexpected message that fits. Lock held in all
 * functions.
 */
#ifndef CXIEMU_RX_H_
#define CXIEMU_RX_H_

#include "cxiemu_link.h"

#include <rdma/fi_endpoint.h>
#include <sys/queue.h>

struct cxiemu_ep;

TAILQ_HEAD(cxiemu_recv_list, cxiemu_recv);
TAILQ_HEAD(cxiemu_unexp_list, cxiemu_unexp);

/** Receives of one kind (messages, tagged messages) of an endpoint. */
typedef struct cxiemu_rx {
    struct cxiemu_ep         *ep;
    int                      is_tagged;
    struct cxiemu_recv_list  posted;
    struct cxiemu_recv_list  active;     /**< Matched; data under way */
    struct cxiemu_unexp_list unexpected;
} cxiemu_rx_t;

void cxiemu_rx_init(cxiemu_rx_t *rx, struct cxiemu_ep *ep, int is_tagged);

/** Drop everything; no completions. */
void cxiemu_rx_cleanup(cxiemu_rx_t *rx);

/** A SEND, RTS or DATA record has come. Acknowledges it. */
void cxiemu_rx_record(cxiemu_link_t *link, cxiemu_rec_t *rec);

/** A peer is gone: fail receives whose data was under way from it, forget its
 *  unexpected messages that are not complete. */
void cxiemu_rx_lost(cxiemu_nic_t *nic, cxiemu_link_t *link);

#endif
