/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_claim.h - the direct lane: which side copies which pieces of a
 * mapped message. The lock of the operation's stream is held in all calls.
 */
#ifndef UCP_ST_DIRECT_CLAIM_H_
#define UCP_ST_DIRECT_CLAIM_H_

#include "st_direct.h"

#include <stdint.h>

/** Claim pieces that follow each other, from `index_p` on. How many; zero if
 *  there is none now. */
uint32_t ucp_st_direct_claim(ucp_st_direct_op_t *direct, uint32_t *index_p);

/** Nothing may be claimed any more, by either side. */
void ucp_st_direct_claim_poison(const ucp_st_direct_op_t *direct);

/** How many pieces both sides have claimed, of all uses. */
uint64_t ucp_st_direct_claim_count(const ucp_st_direct_op_t *direct);

#endif
