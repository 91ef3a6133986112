/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_atomic.h - which atomics there are, and what they do to memory.
 */
#ifndef CXIEMU_ATOMIC_H_
#define CXIEMU_ATOMIC_H_

#include "op/cxiemu_txop.h"


/** What an atomic does to a word. */
typedef struct cxiemu_atomic {
    enum fi_op       op;
    enum fi_datatype datatype;
    uint64_t         operand;
    uint64_t         compare;
} cxiemu_atomic_t;

/** Bytes of a datatype that atomics know, or 0. */
size_t cxiemu_atomic_size(enum fi_datatype datatype);

/** Whether there is such an atomic of the kind CXIEMU_OP_*ATOMIC; 0,
 *  -FI_EOPNOTSUPP, or -FI_EINVAL for numbers that libfabric has not. */
int cxiemu_atomic_valid(cxiemu_op_kind_t kind, enum fi_datatype datatype,
                        enum fi_op op);

/** Carry out a valid atomic on aligned memory; returns what was there. Atomic
 *  for all threads and processes that map the memory. */
uint64_t cxiemu_atomic_apply(const cxiemu_atomic_t *atomic, void *address);

#endif
