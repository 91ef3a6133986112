/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_mr.h - registration with libfabric, and remote keys.
 */
#ifndef UCT_CXI_TRIG_MR_H_
#define UCT_CXI_TRIG_MR_H_

#include "cxi_trig_md.h"
#include "uct_trig.h"

#include <ucs/config/types.h>
#include <ucs/sys/math.h>
#include <ucs/sys/sys.h>
#include <ucs/type/status.h>

#include <rdma/fi_domain.h>


/** Memory of a GPU by a file descriptor. */
typedef struct uct_cxi_trig_dmabuf {
    int    fd;
    size_t offset; /**< Of the range, in what the descriptor stands for */
} uct_cxi_trig_dmabuf_t;


/** What to register. */
typedef struct uct_cxi_trig_mr_params {
    void            *address;
    size_t          length;
    struct fid_ep   *ep;   /**< Enabled endpoint that peers reach it by; NULL if
                                the provider does not ask for one */
    struct fid_cntr *cntr; /**< Counts remote writes; may be NULL */
    ucs_log_level_t level; /**< Of what is said of a failure */
    char            *reason; /**< UCT_TRIG_REASON_MAX bytes for the same; or
                                  NULL */
    int             is_trial; /**< Of a GPU's memory: it is not taken for the
                                   host's, and no peer is to reach it */
    const uct_cxi_trig_dmabuf_t *dmabuf; /**< NULL: by its address */
} uct_cxi_trig_mr_params_t;


/** Start of the page that an address is in */
static inline uintptr_t uct_cxi_trig_mr_page(const void *address)
{
    return (uintptr_t)address & ~(uintptr_t)(ucs_get_page_size() - 1);
}

/** Whether addresses are those of a range at all: not empty, and not beyond the
 *  last page but one, so that a cache may round them. */
static inline int
uct_cxi_trig_mr_is_range(const void *address, size_t length)
{
    uintptr_t limit = uct_cxi_trig_mr_page((void*)UINTPTR_MAX);

    return (length > 0) && ((uintptr_t)address <= limit) &&
           (length <= limit - (uintptr_t)address);
}

/**
 * Register a range and make it reachable. Failures are logged.
 *
 * @return UCS_OK; UCS_ERR_INVALID_ADDR where there is no memory, or a GPU has
 *         less; UCS_ERR_UNSUPPORTED for memory of a GPU that the provider does
 *         not take; what the provider says.
 */
ucs_status_t uct_cxi_trig_mr_open(uct_cxi_trig_md_t *md,
                                  const uct_cxi_trig_mr_params_t *params,
                                  struct fid_mr **mr_p);

/** Undo uct_cxi_trig_mr_open(); a failure is logged. */
void uct_cxi_trig_mr_close(uct_cxi_trig_md_t *md, struct fid_mr *mr);

/** Whether the provider wants offsets into a region, not addresses. */
static inline int uct_cxi_trig_mr_has_offsets(const uct_cxi_trig_md_t *md)
{
    return !(md->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR);
}

/** Write the remote key of a region, UCT_TRIG_RKEY_PACKED_LEN bytes. */
void uct_cxi_trig_mr_pack(uct_cxi_trig_md_t *md, struct fid_mr *mr,
                          const void *address, size_t length, void *buffer);

#endif
