/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_atomic.c - atomics: which there are, and what they do to memory.
 *
 * One element each, as Cassini has them.
 */
#include "op/cxiemu_atomic.h"

#include <rdma/fi_errno.h>

#define CXIEMU_BIT(_n) (1u << (_n))

#define CXIEMU_PLAIN_OPS \
    (CXIEMU_BIT(FI_MIN) | CXIEMU_BIT(FI_MAX) | CXIEMU_BIT(FI_SUM) | \
     CXIEMU_BIT(FI_LOR) | CXIEMU_BIT(FI_LAND) | CXIEMU_BIT(FI_BOR) | \
     CXIEMU_BIT(FI_BAND) | CXIEMU_BIT(FI_LXOR) | CXIEMU_BIT(FI_BXOR) | \
     CXIEMU_BIT(FI_ATOMIC_WRITE))
#define CXIEMU_FETCH_OPS (CXIEMU_PLAIN_OPS | CXIEMU_BIT(FI_ATOMIC_READ))
#define CXIEMU_COMPARE_OPS \
    (CXIEMU_BIT(FI_CSWAP) | CXIEMU_BIT(FI_CSWAP_NE) | \
     CXIEMU_BIT(FI_CSWAP_LE) | CXIEMU_BIT(FI_CSWAP_LT) | \
     CXIEMU_BIT(FI_CSWAP_GE) | CXIEMU_BIT(FI_CSWAP_GT) | \
     CXIEMU_BIT(FI_MSWAP))


size_t cxiemu_atomic_size(enum fi_datatype datatype)
{
    switch (datatype) {
    case FI_INT32:
    case FI_UINT32:
        return sizeof(uint32_t);
    case FI_INT64:
    case FI_UINT64:
        return sizeof(uint64_t);
    default:
        return 0;
    }
}

int cxiemu_atomic_valid(cxiemu_op_kind_t kind, enum fi_datatype datatype,
                        enum fi_op op)
{
    unsigned ops;

    /* Types of 128 bits come behind FI_DATATYPE_LAST: no type is invalid */
    if ((unsigned)op >= FI_ATOMIC_OP_LAST) {
        return -FI_EINVAL;
    }

    ops = (kind == CXIEMU_OP_ATOMIC)       ? CXIEMU_PLAIN_OPS :
          (kind == CXIEMU_OP_FETCH_ATOMIC) ? CXIEMU_FETCH_OPS :
                                             CXIEMU_COMPARE_OPS;
    if (!(ops & CXIEMU_BIT(op)) || (cxiemu_atomic_size(datatype) == 0)) {
        return -FI_EOPNOTSUPP;
    }
    return 0;
}


/* Compares words as numbers of their datatype: less than 0, 0, or more. */
static int cxiemu_atomic_order(enum fi_datatype datatype, uint64_t a,
                               uint64_t b)
{
    switch (datatype) {
    case FI_INT32:
        return ((int32_t)a > (int32_t)b) - ((int32_t)a < (int32_t)b);
    case FI_INT64:
        return ((int64_t)a > (int64_t)b) - ((int64_t)a < (int64_t)b);
    default: /* Those of 32 bits have no others */
        return (a > b) - (a < b);
    }
}

static uint64_t cxiemu_atomic_result(const cxiemu_atomic_t *atomic,
                                     uint64_t old)
{
    uint64_t operand = atomic->operand;
    uint64_t compare = atomic->compare;
    int by_operand   = cxiemu_atomic_order(atomic->datatype, operand, old);
    /* The given value is compared with the target's */
    int order        = cxiemu_atomic_order(atomic->datatype, compare, old);

    switch (atomic->op) {
    case FI_MIN:
        return (by_operand < 0) ? operand : old;
    case FI_MAX:
        return (by_operand > 0) ? operand : old;
    case FI_SUM:
        return old + operand;
    case FI_LOR:
        return old || operand;
    case FI_LAND:
        return old && operand;
    case FI_LXOR:
        return !old != !operand;
    case FI_BOR:
        return old | operand;
    case FI_BAND:
        return old & operand;
    case FI_BXOR:
        return old ^ operand;
    case FI_ATOMIC_READ:
        return old;
    case FI_ATOMIC_WRITE:
        return operand;
    case FI_CSWAP:
        return (order == 0) ? operand : old;
    case FI_CSWAP_NE:
        return (order != 0) ? operand : old;
    case FI_CSWAP_LE:
        return (order <= 0) ? operand : old;
    case FI_CSWAP_LT:
        return (order < 0) ? operand : old;
    case FI_CSWAP_GE:
        return (order >= 0) ? operand : old;
    case FI_CSWAP_GT:
        return (order > 0) ? operand : old;
    default: /* FI_MSWAP */
        return (operand & compare) | (old & ~compare);
    }
}

uint64_t cxiemu_atomic_apply(const cxiemu_atomic_t *atomic, void *address)
{
    cxiemu_atomic_t narrow = *atomic;
    int reads              = (atomic->op == FI_ATOMIC_READ);
    uint32_t *half         = address;
    uint64_t *word         = address;
    uint64_t old, next;
    uint32_t old_half;

    if (cxiemu_atomic_size(atomic->datatype) == sizeof(*half)) {
        narrow.operand = (uint32_t)narrow.operand;
        narrow.compare = (uint32_t)narrow.compare;
        old_half       = __atomic_load_n(half, __ATOMIC_ACQUIRE);
        do {
            next = cxiemu_atomic_result(&narrow, old_half);
        } while (!reads && !__atomic_compare_exchange_n(
                                   half, &old_half, (uint32_t)next, 0,
                                   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
        return old_half;
    }
    if (atomic->op == FI_SUM) {
        return __atomic_fetch_add(word, atomic->operand, __ATOMIC_ACQ_REL);
    }
    old = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    do {
        next = cxiemu_atomic_result(atomic, old);
    } while (!reads &&
             !__atomic_compare_exchange_n(word, &old, next, 0, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return old;
}
