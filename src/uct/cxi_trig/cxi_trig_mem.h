/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_mem.h - memory regions of the trigger extension.
 */
#ifndef UCT_CXI_TRIG_MEM_H_
#define UCT_CXI_TRIG_MEM_H_

#include "uct_trig.h"

#include <ucs/datastruct/list.h>

#include <rdma/fi_domain.h>

struct uct_cxi_trig_iface;


/** A region of the trigger extension. One thread at a time. */
struct uct_trig_mem {
    struct uct_cxi_trig_iface *iface;
    struct fid_mr             *mr;
    ucs_list_link_t           list;     /**< On the interface's list */
    void                      *address;
    uct_trig_cntr_h           cntr;     /**< May be NULL */
    uint64_t                  length : 48;
    uint64_t                  refs : 16; /**< Operations that read it: no more
                                              than the NIC has entries */
};

/* A message takes up to two of them */
_Static_assert(sizeof(struct uct_trig_mem) <= 56, "memory of a region");


/** Deregister all regions left when the interface closes, with a warning. */
void uct_cxi_trig_mem_close_all(struct uct_cxi_trig_iface *iface);

/** Free them; nothing uses them any more. */
void uct_cxi_trig_mem_cleanup(struct uct_cxi_trig_iface *iface);

#endif
