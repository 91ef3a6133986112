/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_gpu.h - what a GPU's runtime says of memory.
 */
#ifndef UCT_CXI_TRIG_GPU_H_
#define UCT_CXI_TRIG_GPU_H_

#include <ucs/memory/memory_type.h>

#include <rdma/fi_domain.h>

#include <stddef.h>
#include <stdint.h>


/** A GPU's allocation. */
typedef struct uct_cxi_trig_gpu_mem {
    ucs_memory_type_t  type;
    enum fi_hmem_iface iface;    /**< libfabric's word for it */
    int                device;   /**< Number of the GPU, where it has one */
    uintptr_t          start;    /**< Of the whole allocation */
    size_t             length;
} uct_cxi_trig_gpu_mem_t;


/**
 * Memory types, as bits, whose runtime the program has loaded by now. Nothing
 * is loaded by asking. Any thread.
 */
uint64_t uct_cxi_trig_gpu_loaded(void);

/** Whether an address is in a GPU's memory, and in which. Any thread. */
int uct_cxi_trig_gpu_find(const void *address, uct_cxi_trig_gpu_mem_t *mem);

#endif
