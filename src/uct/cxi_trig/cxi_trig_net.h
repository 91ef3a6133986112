/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_net.h - the libfabric objects of an interface.
 */
#ifndef UCT_CXI_TRIG_NET_H_
#define UCT_CXI_TRIG_NET_H_

#include "cxi_trig_md.h"
#include "cxi_trig_proto.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>


/** How much each queue must hold. */
typedef struct uct_cxi_trig_net_params {
    size_t tx_ops;  /**< Immediate and deferred operations at once */
    size_t rx_ops;  /**< Receives at once */
    int    passive; /**< Nothing is posted to it: it only lends its address to
                         memory, and takes no messages */
} uct_cxi_trig_net_params_t;


/** An enabled endpoint with all that belongs to it. Constant after opening. */
typedef struct uct_cxi_trig_net {
    uct_cxi_trig_md_t *md;
    struct fid_ep   *ep;     /**< NULL once it is closed */
    struct fid_cq   *cq;
    struct fid_av   *av;
    struct fid_cntr *cntr;   /**< Of all that needs one which nobody reads;
                                  NULL: passive */
    uint8_t         name[UCT_CXI_TRIG_NAME_BLOB_MAX]; /**< Of the endpoint */
    size_t          name_length;
    size_t          cq_size;
    int             wait_fd; /**< Readable when cq has entries; -1: none */
} uct_cxi_trig_net_t;


/** How many operations a queue has room for that the provider lets be of
 *  @a max entries (0: of any number). */
size_t uct_cxi_trig_net_max_ops(unsigned max);

/** Open everything on the MD's domain; failures are logged. */
ucs_status_t uct_cxi_trig_net_open(uct_cxi_trig_net_t *net,
                                   uct_cxi_trig_md_t *md,
                                   const uct_cxi_trig_net_params_t *params);

/** Close the endpoint: nothing is posted or completed by it any more. */
void uct_cxi_trig_net_close_ep(uct_cxi_trig_net_t *net);

/** Close the rest, after the endpoint. */
void uct_cxi_trig_net_close(uct_cxi_trig_net_t *net);

#endif
