/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_dma.h - memory of GPUs, as the emulated card reaches it.
 *
 * A card reaches it through a dma-buf: the GPU's runtime gives a file
 * descriptor for it. The emulated card does the same, maps the descriptor, and
 * reads and writes through that mapping alone: the address that the program
 * has may be one that no processor can use.
 */
#ifndef CXIEMU_DMA_H_
#define CXIEMU_DMA_H_

#include <rdma/fi_domain.h>

#include <stddef.h>
#include <stdint.h>


/** A range of a GPU's memory, mapped. Constant, but for refs, which the table's
 *  lock protects. */
typedef struct cxiemu_dma {
    struct cxiemu_dma *next;      /**< In the table, if is_listed */
    uintptr_t         start;      /**< The program's address */
    size_t            length;
    uint8_t           *address;   /**< Where the card has it */
    void              *map;       /**< Whole pages */
    size_t            map_length;
    unsigned          refs;
    int               is_listed;  /**< Registered */
} cxiemu_dma_t;


/**
 * Find or map a range if it is a GPU's. What is registered is found again;
 * other memory is mapped for the caller alone, so that memory that was freed
 * and allocated again is never taken for what had its address before.
 * @a registers: enter it in the table.
 * 0 with a reference, or with NULL for the host's memory; -FI_EFAULT for a
 * range that is longer than what was allocated, -FI_EOPNOTSUPP if the runtime
 * gives no descriptor or none that can be mapped (logged), -FI_ENOMEM. Any
 * thread; calls the runtime: no lock is held.
 */
int cxiemu_dma_open(const void *address, size_t length, int registers,
                    cxiemu_dma_t **dma_p);

/** One more reference; NULL is fine. Any thread. */
cxiemu_dma_t *cxiemu_dma_get(cxiemu_dma_t *dma);

/** Give a reference back; unmaps with the last. NULL is fine. Any thread. */
void cxiemu_dma_put(cxiemu_dma_t *dma);

/** A registration is closed: nobody finds it any more. Any thread. */
void cxiemu_dma_unlist(cxiemu_dma_t *dma);

/** Where the card has an address of the range; the same without a range. */
static inline void *cxiemu_dma_at(const cxiemu_dma_t *dma, const void *address)
{
    return (dma == NULL) ? (void*)address :
                           dma->address + ((uintptr_t)address - dma->start);
}

/** The program's address of a place in the mapping. */
static inline void *cxiemu_dma_user(const cxiemu_dma_t *dma,
                                    const uint8_t *place)
{
    return (dma == NULL) ? (void*)place :
                           (void*)(dma->start + (size_t)(place - dma->address));
}

/** Before a fork, and behind it in both processes: no other thread has the lock
 *  meanwhile. What it protects is as it was. */
void cxiemu_dma_fork_begin(void);
void cxiemu_dma_fork_end(int is_child);

#endif
