/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_amo.c - atomics: all operations on all types.
 *
 * Up to 8 bytes are exchanged by compare-and-swap, so that the host's own
 * atomics and those of other processes on the same memory are safe.
 */
#include "cassini_parts.h"

#include <string.h>

const uint8_t cassini_amo_size[16] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 16};

/** A value of any type. */
typedef union cassini_value {
    int8_t   i8;
    uint8_t  u8;
    int16_t  i16;
    uint16_t u16;
    int32_t  i32;
    uint32_t u32;
    int64_t  i64;
    uint64_t u64;
    float    f;
    float    fc[2];
    double   d;
    double   dc[2];
    uint64_t words[2];
} cassini_value_t;

/** Old value, operand, what is compared (or the mask); the result. */
typedef struct cassini_amo {
    int             op;
    int             cswap;
    cassini_value_t old;
    cassini_value_t operand;
    cassini_value_t compare;
    cassini_value_t result;
} cassini_amo_t;

/* The comparison of a conditional swap: "a relation b". */
#define CASSINI_AMO_COMPARE(_cswap, _a, _b) \
    (((_cswap) == CASSINI_CSWAP_EQ) ? ((_a) == (_b)) : \
     ((_cswap) == CASSINI_CSWAP_NE) ? ((_a) != (_b)) : \
     ((_cswap) == CASSINI_CSWAP_LE) ? ((_a) <= (_b)) : \
     ((_cswap) == CASSINI_CSWAP_LT) ? ((_a) < (_b)) : \
     ((_cswap) == CASSINI_CSWAP_GE) ? ((_a) >= (_b)) : ((_a) > (_b)))

/* Operations that numbers of all kinds have. 0: not this one. */
#define CASSINI_AMO_NUMBER(_name, _type, _field) \
    static int cassini_amo_##_name(cassini_amo_t *amo) \
    { \
        _type old = amo->old._field, operand = amo->operand._field; \
        _type result = old; \
        \
        switch (amo->op) { \
        case CASSINI_AMO_MIN: \
            result = (operand < old) ? operand : old; \
            break; \
        case CASSINI_AMO_MAX: \
            result = (operand > old) ? operand : old; \
            break; \
        case CASSINI_AMO_SUM: \
            result = (_type)(old + operand); \
            break; \
        case CASSINI_AMO_LOR: \
            result = (old != 0) || (operand != 0); \
            break; \
        case CASSINI_AMO_LAND: \
            result = (old != 0) && (operand != 0); \
            break; \
        case CASSINI_AMO_LXOR: \
            result = (old != 0) != (operand != 0); \
            break; \
        case CASSINI_AMO_SWAP: \
            result = operand; \
            break; \
        case CASSINI_AMO_CSWAP: \
            result = CASSINI_AMO_COMPARE(amo->cswap, amo->compare._field, \
                                         old) ? operand : old; \
            break; \
        default: \
            return 0; \
        } \
        amo->result._field = result; \
        return 1; \
    }

CASSINI_AMO_NUMBER(int8, int8_t, i8)
CASSINI_AMO_NUMBER(uint8, uint8_t, u8)
CASSINI_AMO_NUMBER(int16, int16_t, i16)
CASSINI_AMO_NUMBER(uint16, uint16_t, u16)
CASSINI_AMO_NUMBER(int32, int32_t, i32)
CASSINI_AMO_NUMBER(uint32, uint32_t, u32)
CASSINI_AMO_NUMBER(int64, int64_t, i64)
CASSINI_AMO_NUMBER(uint64, uint64_t, u64)
CASSINI_AMO_NUMBER(float, float, f)
CASSINI_AMO_NUMBER(double, double, d)


/* Operations on bits, for integers. */
static int cassini_amo_bits(cassini_amo_t *amo)
{
    uint64_t old     = amo->old.u64;
    uint64_t operand = amo->operand.u64;

    switch (amo->op) {
    case CASSINI_AMO_BOR:
        amo->result.u64 = old | operand;
        return 1;
    case CASSINI_AMO_BAND:
        amo->result.u64 = old & operand;
        return 1;
    case CASSINI_AMO_BXOR:
        amo->result.u64 = old ^ operand;
        return 1;
    case CASSINI_AMO_AXOR:
        amo->result.u64 = (old & ~amo->compare.u64) ^ operand;
        return 1;
    default:
        return 0;
    }
}

/* Operations on values that are only equal or not. */
static int cassini_amo_plain(cassini_amo_t *amo, int equal)
{
    switch (amo->op) {
    case CASSINI_AMO_SWAP:
        amo->result = amo->operand;
        return 1;
    case CASSINI_AMO_CSWAP:
        if (amo->cswap > CASSINI_CSWAP_NE) {
            return 0;
        }
        amo->result = (equal == (amo->cswap == CASSINI_CSWAP_EQ)) ?
                      amo->operand : amo->old;
        return 1;
    default:
        return 0;
    }
}

static int cassini_amo_complex(cassini_amo_t *amo, int is_double)
{
    const cassini_value_t *old = &amo->old, *operand = &amo->operand;
    const cassini_value_t *compare = &amo->compare;

    if (amo->op == CASSINI_AMO_SUM) {
        if (is_double) {
            amo->result.dc[0] = old->dc[0] + operand->dc[0];
            amo->result.dc[1] = old->dc[1] + operand->dc[1];
        } else {
            amo->result.fc[0] = old->fc[0] + operand->fc[0];
            amo->result.fc[1] = old->fc[1] + operand->fc[1];
        }
        return 1;
    }
    return cassini_amo_plain(amo, is_double ?
                             ((old->dc[0] == compare->dc[0]) &&
                              (old->dc[1] == compare->dc[1])) :
                             ((old->fc[0] == compare->fc[0]) &&
                              (old->fc[1] == compare->fc[1])));
}

/* Whether the type has the operation; computes the result. */
static int cassini_amo_compute(cassini_amo_t *amo, int type)
{
    static int (*const numbers[])(cassini_amo_t*) = {
        [CASSINI_INT8]   = cassini_amo_int8,
        [CASSINI_UINT8]  = cassini_amo_uint8,
        [CASSINI_INT16]  = cassini_amo_int16,
        [CASSINI_UINT16] = cassini_amo_uint16,
        [CASSINI_INT32]  = cassini_amo_int32,
        [CASSINI_UINT32] = cassini_amo_uint32,
        [CASSINI_INT64]  = cassini_amo_int64,
        [CASSINI_UINT64] = cassini_amo_uint64,
        [CASSINI_FLOAT]  = cassini_amo_float,
        [CASSINI_DOUBLE] = cassini_amo_double
    };

    switch (type) {
    case CASSINI_FLOAT_COMPLEX:
    case CASSINI_DOUBLE_COMPLEX:
        return cassini_amo_complex(amo, type == CASSINI_DOUBLE_COMPLEX);
    case CASSINI_UINT128:
        return cassini_amo_plain(amo, memcmp(amo->old.words, amo->compare.words,
                                             16) == 0);
    case CASSINI_FLOAT:
    case CASSINI_DOUBLE:
        return numbers[type](amo);
    default:
        return numbers[type](amo) || cassini_amo_bits(amo);
    }
}

/* Store the result if the memory still holds the old value. */
static int cassini_amo_exchange(void *memory, cassini_amo_t *amo, int size)
{
    switch (size) {
    case 1:
        return __atomic_compare_exchange_n((uint8_t*)memory, &amo->old.u8,
                                           amo->result.u8, 0, __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST);
    case 2:
        return __atomic_compare_exchange_n((uint16_t*)memory, &amo->old.u16,
                                           amo->result.u16, 0, __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST);
    case 4:
        return __atomic_compare_exchange_n((uint32_t*)memory, &amo->old.u32,
                                           amo->result.u32, 0, __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST);
    case 8:
        return __atomic_compare_exchange_n((uint64_t*)memory, &amo->old.u64,
                                           amo->result.u64, 0, __ATOMIC_SEQ_CST,
                                           __ATOMIC_SEQ_CST);
    default:
        memcpy(memory, &amo->result, size);
        return 1;
    }
}

int cassini_amo_execute(const cassini_request_t *request, void *memory,
                        uint64_t fetched[2])
{
    int size = cassini_amo_size[request->amo_type & 15];
    cassini_amo_t amo;

    if ((size == 0) || (request->cswap > CASSINI_CSWAP_GT)) {
        return CASSINI_RC_AMO_INVALID_OP;
    }
    if ((uintptr_t)memory % size != 0) {
        return CASSINI_RC_AMO_ALIGN;
    }
    memset(&amo, 0, sizeof(amo));
    amo.op    = (request->amo_op + 1 == cassini_nic.pcie_fadd) ?
                CASSINI_AMO_SUM : request->amo_op;
    amo.cswap = request->cswap;
    memcpy(&amo.operand, request->operand, sizeof(amo.operand));
    memcpy(&amo.compare, request->compare, sizeof(amo.compare));
    if (cassini_trap_copy(&amo.old, memory, size) != 0) {
        return CASSINI_RC_NO_TRANSLATION;
    }
    do {
        amo.result = amo.old;
        if (!cassini_amo_compute(&amo, request->amo_type)) {
            return CASSINI_RC_AMO_INVALID_OP;
        }
    } while (!cassini_amo_exchange(memory, &amo, size));
    memcpy(fetched, &amo.old, sizeof(amo.old));
    return CASSINI_RC_OK;
}
