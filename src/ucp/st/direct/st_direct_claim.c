/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_claim.c - the direct lane: which side copies which pieces of a
 * mapped message. The protocol is described in st_direct.h.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "direct/st_direct.h"
#include "core/st_op.h"

#include <ucs/sys/math.h>

/* A claim: the use, whether nothing may be claimed any more, and the range of
 * the pieces that are left of the use */
#define UCP_ST_DIRECT_CLAIM_BITS 12
#define UCP_ST_DIRECT_POISON     (1ull << (2 * UCP_ST_DIRECT_CLAIM_BITS))
#define UCP_ST_DIRECT_USE_SHIFT  ((2 * UCP_ST_DIRECT_CLAIM_BITS) + 1)

/* What is claimed at once, bytes, if it is several pieces: the lock is held
 * meanwhile */
#define UCP_ST_DIRECT_CLAIM_MAX (512ul << 10)

_Static_assert(UCP_ST_DIRECT_MAX_PIECES < UCS_BIT(UCP_ST_DIRECT_CLAIM_BITS),
               "pieces fit into a claim");

/** What a claim says. */
typedef struct ucp_st_direct_claim {
    uint64_t use;
    uint32_t low;  /* first one left */
    uint32_t high; /* behind the last one left */
} ucp_st_direct_claim_t;

static ucp_st_direct_claim_t ucp_st_direct_claim_unpack(uint64_t word)
{
    return (ucp_st_direct_claim_t) {
        .use  = word >> UCP_ST_DIRECT_USE_SHIFT,
        .low  = (word >> UCP_ST_DIRECT_CLAIM_BITS) &
                UCS_MASK(UCP_ST_DIRECT_CLAIM_BITS),
        .high = word & UCS_MASK(UCP_ST_DIRECT_CLAIM_BITS)
    };
}

/* The next use is there to be claimed: all of this one are, and both sides have
 * begun that one */
static int ucp_st_direct_claim_next(ucp_st_direct_op_t *direct,
                                    ucp_st_direct_claim_t *claim)
{
    ++claim->use;
    claim->low  = 0;
    claim->high = direct->num_pieces;
    if (claim->use > direct->begun) {
        return 0;
    }
    direct->seen = __atomic_load_n(&direct->other->begun, __ATOMIC_ACQUIRE);
    return claim->use <= direct->seen;
}

uint32_t ucp_st_direct_claim(ucp_st_direct_op_t *direct, uint32_t *index_p)
{
    uint64_t *word_p = &direct->pair->claim;
    uint64_t word    = __atomic_load_n(word_p, __ATOMIC_ACQUIRE);
    uint32_t most    = UCP_ST_DIRECT_CLAIM_MAX / direct->piece;
    ucp_st_direct_claim_t claim;
    uint64_t next;
    uint32_t half, count;

    do {
        claim = ucp_st_direct_claim_unpack(word);
        if ((word & UCP_ST_DIRECT_POISON) ||
            ((claim.low == claim.high) &&
             !ucp_st_direct_claim_next(direct, &claim))) {
            return 0;
        }
        /* Half of what is left, so that both sides end at about the same time,
         * and each has the same part of the buffers as for the last use, whose
         * lines are in its cache. What the kernel copies may fail: one. */
        half  = (claim.high - claim.low) / 2;
        count = (direct->other_buffer == NULL) ?
                1 : ucs_max(1, ucs_min(half, most));
        if (direct->dir == UCP_ST_DIR_SEND) {
            claim.high -= count;
            *index_p    = claim.high;
        } else {
            *index_p    = claim.low;
            claim.low  += count;
        }
        next = (claim.use << UCP_ST_DIRECT_USE_SHIFT) |
               ((uint64_t)claim.low << UCP_ST_DIRECT_CLAIM_BITS) | claim.high;
        /* Release: a slow mover's compare-and-swap reads what this wrote */
    } while (!__atomic_compare_exchange_n(word_p, &word, next, 0,
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return count;
}

void ucp_st_direct_claim_poison(const ucp_st_direct_op_t *direct)
{
    (void)__atomic_fetch_or(&direct->pair->claim, UCP_ST_DIRECT_POISON,
                            __ATOMIC_ACQ_REL);
}

uint64_t ucp_st_direct_claim_count(const ucp_st_direct_op_t *direct)
{
    ucp_st_direct_claim_t claim;

    claim = ucp_st_direct_claim_unpack(__atomic_load_n(&direct->pair->claim,
                                                       __ATOMIC_ACQUIRE));
    return (claim.use == 0) ? 0 :
           (claim.use * direct->num_pieces) - (claim.high - claim.low);
}
