/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_cntr.h - counters of the trigger extension.
 */
#ifndef UCT_CXI_TRIG_CNTR_H_
#define UCT_CXI_TRIG_CNTR_H_

#include "cxi_trig_iface.h"
#include "uct_trig.h"

#include <rdma/fi_domain.h>


/**
 * A counter. Any thread may add to it, which touches only @a cntr, @a added and
 * constant fields; one thread at a time for the rest.
 */
struct uct_trig_cntr {
    uct_cxi_trig_iface_t *iface;
    struct fid_cntr      *cntr;
    ucs_list_link_t      list;    /**< On the interface's list */
    uint64_t             added;   /**< By the host, in all; atomic */
    unsigned             refs;    /**< Uses by pending operations, the region */
    int                  failed;  /**< An operation that counts here failed */
    uct_trig_mem_h       mem;     /**< Region whose writes it counts, or NULL */
    uct_trig_doorbell_t  doorbell;
};


/** Close all counters left when the interface closes, with a warning. */
void uct_cxi_trig_cntr_cleanup(uct_cxi_trig_iface_t *iface);

#endif
