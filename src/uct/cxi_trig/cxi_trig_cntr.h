/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_cntr.h - counters of the trigger extension. They come from the
 * memory domain's pool, and go back to it.
 */
#ifndef UCT_CXI_TRIG_CNTR_H_
#define UCT_CXI_TRIG_CNTR_H_

#include "cxi_trig_iface.h"
#include "uct_trig.h"

#include <rdma/fi_domain.h>


/**
 * A counter. Any thread may add to it, which touches only @a cntr, @a added and
 * constant fields; one thread at a time for the rest. The interface is the
 * context of @a cntr.
 */
struct uct_trig_cntr {
    struct fid_cntr *cntr;
    uint64_t        added;   /**< By the host, in all; atomic */
    ucs_list_link_t list;    /**< On the interface's list */
    uint32_t        refs;    /**< Uses by pending operations and regions */
    uint8_t         failed;  /**< An operation that counts here failed; atomic
                                  */
    uint8_t         has_page; /**< Streams of devices reach its trigger page */
};

/* A message takes up to four of them */
_Static_assert(sizeof(struct uct_trig_cntr) <= 40, "memory of a counter");


/** The interface that a counter is of. */
static inline uct_cxi_trig_iface_t *
uct_cxi_trig_cntr_iface(uct_trig_cntr_h cntr)
{
    return cntr->cntr->fid.context;
}


/** Close all counters left when the interface closes, with a warning. */
void uct_cxi_trig_cntr_cleanup(uct_cxi_trig_iface_t *iface);

#endif
