/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fi_cxi_ext.h - the interface of libfabric's cxi provider for counters, in our
 * own words, for systems whose libfabric has no such header.
 *
 * It is installed as ucx-st/rdma/fi_cxi_ext.h and meant for the end of the
 * search path (-idirafter PREFIX/include/ucx-st, which "pkg-config
 * --variable=cxi_ext_cflags ucx-st" prints): a system's own header is found
 * first then. Names and layouts are those of the provider; of the rest of its
 * header there is nothing here.
 */
#ifndef _FI_CXI_EXT_H_
#define _FI_CXI_EXT_H_

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <stddef.h>
#include <stdint.h>

/** Name for fi_open_ops() of a counter. */
#define FI_CXI_COUNTER_OPS "cxi_counter_ops"

/** Flag of deferred work: the counter that triggers it is written back when its
 *  threshold has been passed by one. */
#define FI_CXI_CNTR_WB (1ULL << 62)

/** A counter has 48 bits for successes and 7 for failures. */
#define FI_CXI_CNTR_SUCCESS_MAX ((1ULL << 48) - 1)
#define FI_CXI_CNTR_FAILURE_MAX ((1ULL << 7) - 1)

/** What FI_CXI_COUNTER_OPS names. */
struct fi_cxi_cntr_ops {
    /** Have the counter written back to @a buf, of at least 8 bytes, aligned;
     *  bit 63 is set then, and failures are above the successes. */
    int (*set_wb_buffer)(struct fid *fid, void *buf, size_t len);

    /** The counter's trigger page: registers that a processor or a GPU stores
     *  to, 8 bytes at a time. */
    int (*get_mmio_addr)(struct fid *fid, void **addr, size_t *len);
};


/* Registers of the trigger page: each store is one command */

/** Adds what is stored to the successes. */
static inline void *fi_cxi_get_cntr_add_addr(void *cntr_mmio)
{
    return cntr_mmio;
}

/** Adds what is stored to the failures. */
static inline void *fi_cxi_get_cntr_adderr_addr(void *cntr_mmio)
{
    return (char*)cntr_mmio + 64;
}

/** Sets the successes to 0, whatever is stored. */
static inline void *fi_cxi_get_cntr_reset_addr(void *cntr_mmio)
{
    return (char*)cntr_mmio + 128;
}

/** Sets the failures to 0, whatever is stored. */
static inline void *fi_cxi_get_cntr_reseterr_addr(void *cntr_mmio)
{
    return (char*)cntr_mmio + 192;
}

/** fi_cntr_add() by a store; 0, or -FI_EINVAL. */
static inline int fi_cxi_cntr_add(void *cntr_mmio, uint64_t value)
{
    if (value > FI_CXI_CNTR_SUCCESS_MAX) {
        return -FI_EINVAL;
    }
    *(volatile uint64_t*)fi_cxi_get_cntr_add_addr(cntr_mmio) = value;
    return FI_SUCCESS;
}

/** fi_cntr_adderr() by a store; 0, or -FI_EINVAL. */
static inline int fi_cxi_cntr_adderr(void *cntr_mmio, uint64_t value)
{
    if (value > FI_CXI_CNTR_FAILURE_MAX) {
        return -FI_EINVAL;
    }
    *(volatile uint64_t*)fi_cxi_get_cntr_adderr_addr(cntr_mmio) = value;
    return FI_SUCCESS;
}

/** fi_cntr_set() to 0 by a store; -FI_EINVAL for another value. */
static inline int fi_cxi_cntr_set(void *cntr_mmio, uint64_t value)
{
    if (value != 0) {
        return -FI_EINVAL;
    }
    *(volatile uint64_t*)fi_cxi_get_cntr_reset_addr(cntr_mmio) = 0;
    return FI_SUCCESS;
}

/** fi_cntr_seterr() to 0 by a store; -FI_EINVAL for another value. */
static inline int fi_cxi_cntr_seterr(void *cntr_mmio, uint64_t value)
{
    if (value != 0) {
        return -FI_EINVAL;
    }
    *(volatile uint64_t*)fi_cxi_get_cntr_reseterr_addr(cntr_mmio) = 0;
    return FI_SUCCESS;
}


/* What is written back */

/** The successes, as fi_cntr_read() returns them. */
static inline uint64_t fi_cxi_cntr_wb_read(const void *wb_buf)
{
    return *(const volatile uint64_t*)wb_buf & FI_CXI_CNTR_SUCCESS_MAX;
}

/** The failures, as fi_cntr_readerr() returns them. */
static inline uint64_t fi_cxi_cntr_wb_readerr(const void *wb_buf)
{
    return (*(const volatile uint64_t*)wb_buf >> 48) & FI_CXI_CNTR_FAILURE_MAX;
}

/** The word that is written back for so many successes and no failure, for
 *  programs that poll for it; 0, or -FI_EINVAL. */
static inline int fi_cxi_gen_cntr_success(uint64_t value, uint64_t *cxi_value)
{
    if (value > FI_CXI_CNTR_SUCCESS_MAX) {
        return -FI_EINVAL;
    }
    *cxi_value = (1ULL << 63) | value;
    return FI_SUCCESS;
}

#endif
