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

#include "nic/cxiemu_link.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>
#include <sys/queue.h>

struct cxiemu_cntr;
struct cxiemu_ep;

TAILQ_HEAD(cxiemu_unexp_list, cxiemu_unexp);

/** Receives of one kind (messages, tagged messages) of an endpoint. */
typedef struct cxiemu_rx {
    struct cxiemu_ep         *ep;
    int                      is_tagged;
    struct cxiemu_recv_list  posted;
    struct cxiemu_recv_list  active;     /**< Matched; data under way */
    struct cxiemu_unexp_list unexpected;
    struct cxiemu_unexp_list claimed;    /**< Unexpected before; only the
                                              receive with its context takes
                                              one */
    struct cxiemu_recv       *spare;     /**< Free receives */
    uint32_t                 next_id;    /**< Of receives whose data is asked
                                              for */
} cxiemu_rx_t;

/** A receive to be posted; checked by the caller. */
typedef struct cxiemu_recv_req {
    void               *buffer;
    size_t             length;
    fi_addr_t          src;         /**< FI_ADDR_UNSPEC: any */
    uint64_t           tag;
    uint64_t           ignore;
    uint64_t           flags;       /**< FI_COMPLETION: write an entry;
                                         FI_MULTI_RECV; FI_PEEK, FI_CLAIM:
                                         context is a struct fi_context */
    void               *context;
    struct cxiemu_cntr *completion; /**< Deferred work's counter, counted
                                         instead of the endpoint's; or NULL. It
                                         keeps a reference while posted */
    struct cxiemu_dma  *dma;        /**< That the buffer is in, referenced;
                                         NULL: it is the host's */
} cxiemu_recv_req_t;

void cxiemu_rx_init(cxiemu_rx_t *rx, struct cxiemu_ep *ep, int is_tagged);

/** Post a receive, or carry out a peek or the receive of a claimed message; 0,
 *  -FI_ENOMEM, -FI_EINVAL for an unknown source or context, or -FI_ENOMSG for a
 *  claimed message that does not fit. */
int cxiemu_rx_post(cxiemu_rx_t *rx, const cxiemu_recv_req_t *req);

/** Cancel the oldest receive with this context; whether there was one. */
int cxiemu_rx_cancel(cxiemu_rx_t *rx, void *context);

/** Fetch more of the messages that are pulled in shares: one share, and others
 *  as long as not too much was copied; how many. */
unsigned cxiemu_rx_pull(cxiemu_nic_t *nic);

/** Drop everything; no completions. */
void cxiemu_rx_cleanup(cxiemu_rx_t *rx);

/** A SEND, RTS or DATA record has come. Acknowledges it. */
void cxiemu_rx_arrived(const cxiemu_arrival_t *arrival);

/** A peer is gone: fail receives whose data was under way from it, forget its
 *  unexpected messages that are not complete; receives of such ones that are
 *  claimed will fail. */
void cxiemu_rx_lost(cxiemu_link_t *link);

#endif
