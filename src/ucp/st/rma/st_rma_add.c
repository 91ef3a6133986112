/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_add.c - what other processes' numbers and signals do to memory here.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "rma/st_rma.h"

#include <string.h>

size_t ucp_st_rma_number_size(ucp_st_number_t number)
{
    static const uint8_t sizes[] = {
        [UCP_ST_NUMBER_INT8]   = sizeof(uint8_t),
        [UCP_ST_NUMBER_INT16]  = sizeof(uint16_t),
        [UCP_ST_NUMBER_INT32]  = sizeof(uint32_t),
        [UCP_ST_NUMBER_INT64]  = sizeof(uint64_t),
        [UCP_ST_NUMBER_FLOAT]  = sizeof(float),
        [UCP_ST_NUMBER_DOUBLE] = sizeof(double)
    };

    return sizes[number];
}

/* Integers wrap around */
#define UCP_ST_RMA_ADD_ALL(_type) \
    for (i = 0; i < length; i += sizeof(_type)) { \
        _type sum, value; \
        \
        memcpy(&sum, UCS_PTR_BYTE_OFFSET(sums, i), sizeof(sum)); \
        memcpy(&value, UCS_PTR_BYTE_OFFSET(numbers, i), sizeof(value)); \
        sum += value; \
        memcpy(UCS_PTR_BYTE_OFFSET(sums, i), &sum, sizeof(sum)); \
    }

void ucp_st_rma_add(ucp_st_number_t number, void *sums, const void *numbers,
                    size_t length)
{
    size_t i;

    switch (number) {
    case UCP_ST_NUMBER_INT8:
        UCP_ST_RMA_ADD_ALL(uint8_t);
        break;
    case UCP_ST_NUMBER_INT16:
        UCP_ST_RMA_ADD_ALL(uint16_t);
        break;
    case UCP_ST_NUMBER_INT32:
        UCP_ST_RMA_ADD_ALL(uint32_t);
        break;
    case UCP_ST_NUMBER_INT64:
        UCP_ST_RMA_ADD_ALL(uint64_t);
        break;
    case UCP_ST_NUMBER_FLOAT:
        UCP_ST_RMA_ADD_ALL(float);
        break;
    case UCP_ST_NUMBER_DOUBLE:
        UCP_ST_RMA_ADD_ALL(double);
        break;
    }
}

void ucp_st_rma_signal(uint64_t *word, ucp_st_signal_op_t op, uint64_t value)
{
    if (op == UCP_ST_SIGNAL_ADD) {
        (void)__atomic_fetch_add(word, value, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n(word, value, __ATOMIC_RELEASE);
    }
}
