/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_plan.c - the plan that both sides of a pair make of the same facts:
 * what it guarantees for any of them.
 */
#include "st_cunit.h"

#include "trig/st_trig_plan.h"

#include <stdint.h>
#include <string.h>

#define ROUNDS 20000

/* Rounding to cache lines may take so much from a share */
#define SLACK 192

static uint64_t random_next(uint64_t *state)
{
    uint64_t x = (*state += 0x9e3779b97f4a7c15ull);

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* Of all magnitudes up to `bits` bits, often next to a power of two */
static size_t random_size(uint64_t *state, unsigned bits)
{
    uint64_t x   = random_next(state);
    size_t power = 1ul << (x % bits);

    return ((x >> 32) % 2) ? (power + ((x >> 33) % 3) - 1) :
                             (random_next(state) % power);
}

static void random_facts(uint64_t *state, ucp_st_trig_facts_t *facts)
{
    memset(facts, 0, sizeof(*facts));
    facts->mode             = (random_next(state) % 2) ? UCP_ST_MODE_READY :
                                                         UCP_ST_MODE_STANDARD;
    facts->length           = random_size(state, 40);
    facts->id               = random_next(state) % 1000;
    facts->limits.num_rails = 1 + (random_next(state) % 4);
    facts->limits.eager_max = random_size(state, 20);
    facts->limits.share_min = random_size(state, 20);
    facts->limits.put_max   = 1 + random_size(state, 33);
}

/* The shares are the message, each on a rail of its own, in as many writes as
 * it needs */
static int shares_are_right(const ucp_st_trig_facts_t *facts,
                            const ucp_st_trig_plan_t *plan)
{
    size_t put_max = facts->limits.put_max;
    unsigned rails = 0;
    size_t offset  = 0;
    ucp_st_trig_share_t share;
    unsigned i;

    for (i = 0; i < plan->num_shares; ++i) {
        ucp_st_trig_plan_share(plan, i, &share);
        if ((share.offset != offset) ||
            (share.rail >= facts->limits.num_rails) ||
            (rails & (1u << share.rail)) ||
            ((share.length == 0) && (facts->length > 0)) ||
            (share.puts == 0) ||
            ((share.puts - 1) > (share.length / put_max)) ||
            (((share.length + put_max - 1) / put_max) > share.puts) ||
            ((plan->num_shares > 1) &&
             ((share.length + SLACK) < facts->limits.share_min))) {
            return 0;
        }
        rails  |= 1u << share.rail;
        offset += share.length;
    }
    return offset == facts->length;
}

static int proto_is_right(const ucp_st_trig_facts_t *facts,
                          const ucp_st_trig_plan_t *plan)
{
    if (plan->proto != UCP_ST_TRIG_EAGER) {
        return (plan->proto == UCP_ST_TRIG_READY) ==
               (facts->mode == UCP_ST_MODE_READY);
    }
    return (facts->mode == UCP_ST_MODE_STANDARD) && (facts->length > 0) &&
           (facts->length <= facts->limits.eager_max) &&
           (facts->length <= facts->limits.put_max) &&
           (plan->num_shares == 1) && (plan->depth >= 4) &&
           (plan->depth % 2 == 0) &&
           (plan->stride >= facts->length) &&
           ((plan->depth == 4) ||
            (plan->depth * plan->stride <= 4 * facts->limits.eager_max));
}

/* Any facts: also the same ones in other memory make the same plan */
ST_CASE(guarantees)
{
    ucp_st_trig_plan_t plan, again;
    ucp_st_trig_facts_t facts, copy;
    uint64_t state = 1;
    int wrong      = 0;
    int i;

    for (i = 0; i < ROUNDS; ++i) {
        random_facts(&state, &facts);
        copy = facts;
        memset(&plan, 0x11, sizeof(plan));
        memset(&again, 0xee, sizeof(again));
        ucp_st_trig_plan_make(&facts, &plan);
        ucp_st_trig_plan_make(&copy, &again);
        wrong += memcmp(&plan, &again, sizeof(plan)) != 0;
        wrong += !shares_are_right(&facts, &plan);
        wrong += !proto_is_right(&facts, &plan);
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

/* Pairs that differ in nothing but their numbers use all rails alike, also if
 * only every second or fourth number is a send's */
ST_CASE(spread)
{
    ucp_st_trig_facts_t facts = {
        .mode   = UCP_ST_MODE_STANDARD,
        .length = 100,
        .limits = {4, 8192, 65536, 1u << 30}
    };
    unsigned counts[4];
    ucp_st_trig_plan_t plan;
    unsigned step, i;

    for (step = 1; step <= 4; ++step) {
        memset(counts, 0, sizeof(counts));
        for (i = 0; i < 400; ++i) {
            facts.id = i * step;
            ucp_st_trig_plan_make(&facts, &plan);
            ++counts[plan.rail];
        }
        for (i = 0; i < 4; ++i) {
            CU_ASSERT((counts[i] > 60) && (counts[i] < 140));
        }
    }
}

/* The last use that a receiver has cleared, which has copied out so many */
static uint64_t last_cleared(const ucp_st_trig_plan_t *plan, uint64_t copied)
{
    uint64_t clears = copied / ucp_st_trig_plan_round(plan);
    uint64_t use    = copied;

    while (ucp_st_trig_plan_clears(plan, use + 1) <= clears) {
        ++use;
    }
    return use;
}

/* Whatever the receiver has copied out, the sender may go on until the inbox is
 * full, and may be ahead by more than half of it: in step with the receiver it
 * does not wait */
ST_CASE(rounds)
{
    ucp_st_trig_facts_t facts = {
        .mode   = UCP_ST_MODE_STANDARD,
        .limits = {1, 8192, 65536, 1u << 30}
    };
    ucp_st_trig_plan_t plan;
    uint64_t copied, ahead;

    for (facts.length = 1; facts.length <= 8192; facts.length += 500) {
        ucp_st_trig_plan_make(&facts, &plan);
        for (copied = 0; copied < 5ul * plan.depth; ++copied) {
            ahead = last_cleared(&plan, copied) - copied;
            CU_ASSERT(ahead <= plan.depth);
            CU_ASSERT(ahead > (plan.depth / 2));
        }
    }
}

ST_SUITE("st_plan")
