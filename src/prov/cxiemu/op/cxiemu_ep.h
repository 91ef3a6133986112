/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_ep.h - endpoints, as operations have them.
 */
#ifndef CXIEMU_EP_H_
#define CXIEMU_EP_H_

#include "obj/cxiemu_av.h"
#include "obj/cxiemu_cntr.h"
#include "obj/cxiemu_cq.h"
#include "op/cxiemu_rx.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>


/** What a program has of an endpoint: its own handle, or an alias. */
typedef struct cxiemu_handle {
    struct fid_ep    fid;
    struct cxiemu_ep *ep;
    uint64_t         tx_flags; /**< Default op_flags */
    uint64_t         rx_flags;
} cxiemu_handle_t;

typedef struct cxiemu_ep {
    cxiemu_handle_t own;
    cxiemu_domain_t *domain;
    cxiemu_av_t     *av;
    uint16_t        number;
    int             enabled;
    uint64_t        caps;
    uint64_t        tx_order;  /**< msg_order */
    uint32_t        tclass;    /**< Traffic class */
    size_t          tx_size;
    size_t          tx_used;   /**< Operations under way or in tx_done */
    size_t          tx_done;   /**< Over; the user's progress, as CXI's, gives
                                    their places back (strict mode) */
    size_t          min_multi_recv;
    cxiemu_cq_t     *tx_cq;
    cxiemu_cq_t     *rx_cq;
    int             tx_selective; /**< Completions only where FI_COMPLETION */
    int             rx_selective;
    cxiemu_cntr_t   *tx_cntr;    /**< FI_SEND */
    cxiemu_cntr_t   *rx_cntr;    /**< FI_RECV */
    cxiemu_cntr_t   *write_cntr; /**< FI_WRITE */
    cxiemu_cntr_t   *read_cntr;  /**< FI_READ */
    cxiemu_cntr_t   *rem_write_cntr; /**< Accepted; never counts */
    cxiemu_cntr_t   *rem_read_cntr;
    cxiemu_rx_t     msg;
    cxiemu_rx_t     tagged;
    struct cxiemu_mr *cached;  /**< Stands for all memory that cached keys
                                    reach; NULL: none has been given out */
    unsigned        refs;      /**< Regions bound to it, deferred work,
                                    aliases */
} cxiemu_ep_t;

#endif
