/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_memh.h - memory that is registered with a memory domain.
 */
#ifndef UCT_CXI_TRIG_MEMH_H_
#define UCT_CXI_TRIG_MEMH_H_

#include "cxi_trig_md.h"

#include <rdma/fi_domain.h>


/** What a UCT memory handle points to. Constant while it is registered. */
typedef struct uct_cxi_trig_memh {
    struct fid_mr *mr;
    void          *address;
    size_t        length;
    int           is_cached; /**< It is a region of the cache */
} uct_cxi_trig_memh_t;


/* Operations of the memory domain */
ucs_status_t uct_cxi_trig_memh_reg(uct_md_h md, void *address, size_t length,
                                   uct_cxi_trig_reg_params_t params,
                                   uct_mem_h *memh_p);

ucs_status_t uct_cxi_trig_memh_dereg(uct_md_h md,
                                     const uct_md_mem_dereg_params_t *params);

ucs_status_t uct_cxi_trig_memh_advise(uct_md_h md, uct_mem_h memh,
                                      void *address, size_t length,
                                      unsigned advice);

ucs_status_t uct_cxi_trig_memh_pack(UCT_CXI_TRIG_MKEY_PACK_ARGS);

#endif
