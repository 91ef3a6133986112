/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucs_gstream_word.h - how words of 32 bits are compared: a part of
 * ucs_gstream.h, which includes it.
 */
#ifndef UCS_GSTREAM_WORD_H_
#define UCS_GSTREAM_WORD_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** When a wait for a 32-bit word passes. */
typedef enum {
    UCS_GSTREAM_CMP_GE, /**< The word is >= the value, unsigned. Devices compare
                             cyclically: the two are less than 2^31 apart there,
                             and the value is below 2^31. */
    UCS_GSTREAM_CMP_EQ, /**< The word is the value. A stream that sleeps may
                             miss one that does not stay. */
    UCS_GSTREAM_CMP_AND /**< The word has a bit of the value, also for a short
                             time only, as above */
} ucs_gstream_cmp_t;


/**
 * Tell whether a word passes a wait: with what was stored before it then.
 *
 * @param [in] address Naturally aligned word.
 * @param [in] value   To compare with.
 * @param [in] cmp     How.
 *
 * @return Non-zero if it does.
 *
 * Threads: may be called from any thread.
 */
static inline int ucs_gstream_compare32(const volatile uint32_t *address,
                                        uint32_t value, ucs_gstream_cmp_t cmp)
{
    uint32_t word = __atomic_load_n(address, __ATOMIC_ACQUIRE);

    return (cmp == UCS_GSTREAM_CMP_GE) ? (word >= value) :
           (cmp == UCS_GSTREAM_CMP_EQ) ? (word == value) :
                                         ((word & value) != 0);
}

#ifdef __cplusplus
}
#endif

#endif
