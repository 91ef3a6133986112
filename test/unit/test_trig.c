/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trig.c - triggered operations: when they fire, what they count. */
#include "trig_util.h"

#include <string.h>


TRIG_CASE(fires_at_threshold, NULL)
{
    trig_put(trig, 0, 2, NULL);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    trig_barrier(trig);
    CU_ASSERT(trig->done == 0);
    CU_ASSERT(!trig_arrived(trig, 0));
    CU_ASSERT(trig_count(trig, trig->completion) == 0);

    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(trig_arrived(trig, 0));
    CU_ASSERT(trig_count(trig, trig->completion) == 1);
    CU_ASSERT(trig->status == UCS_OK);
}

/* What nobody counts is done all the same, or failed */
TRIG_CASE(no_completion, NULL)
{
    uct_trig_deferred_t deferred;
    uct_trig_put_t put;

    deferred            = trig_deferred(trig, trig->trigger, 1);
    deferred.completion = NULL;
    put                 = trig_describe_put(trig, 0);
    CU_ASSERT(uct_trig_ep_put(trig->pair.a.peer, &put, &deferred) == UCS_OK);
    deferred.threshold = 2;
    put                = trig_describe_put(trig, 1);
    ++put.rkey.key; /* There is no such key */
    CU_ASSERT(uct_trig_ep_put(trig->pair.a.peer, &put, &deferred) == UCS_OK);

    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(trig_arrived(trig, 0));
    CU_ASSERT(trig->status == UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 2);
    CU_ASSERT(!trig_arrived(trig, 1));
    CU_ASSERT(trig->status != UCS_OK);
    CU_ASSERT(trig_count(trig, trig->completion) == 0);
}

TRIG_CASE(zero_add, NULL)
{
    trig_put(trig, 0, 1, NULL);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 0) == UCS_OK);
    trig_barrier(trig);
    CU_ASSERT(trig->done == 0);
    CU_ASSERT(trig_count(trig, trig->trigger) == 0);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 1);
}

/* put -> completion counter -> atomic on a local word */
TRIG_CASE(chain, NULL)
{
    unsigned k;

    for (k = 1; k <= 20; ++k) {
        memset(trig->b_buffer, 0, sizeof(trig->b_buffer));
        trig_put(trig, k % TRIG_SLOTS, k, NULL);
        trig_add_word(trig, trig->completion, k, NULL);
        CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
        uct_pair_wait(&trig->pair, &trig->a_word, k);
        CU_ASSERT(trig_arrived(trig, k % TRIG_SLOTS));
        CU_ASSERT(trig->a_word == k);
        uct_pair_wait(&trig->pair, &trig->done, 2 * k);
    }
}

/* The region's counter at B counts A's puts, and triggers B's own atomic */
TRIG_CASE(remote_write_triggers, NULL)
{
    unsigned k;

    for (k = 1; k <= 20; ++k) {
        memset(trig->b_buffer, 0, sizeof(trig->b_buffer));
        trig_b_add_word(trig, trig->b_writes, k);
        trig_put(trig, k % TRIG_SLOTS, k, NULL);
        CU_ASSERT(trig->b_word == k - 1);
        CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
        uct_pair_wait(&trig->pair, &trig->b_word, k);
        CU_ASSERT(trig_arrived(trig, k % TRIG_SLOTS));
        uct_pair_wait(&trig->pair, &trig->done, 2 * k);
        CU_ASSERT(trig_count(trig, trig->b_writes) == k);
    }
}

/* The standard send: host's add and peer's write make two; one is not enough */
TRIG_CASE(two_counts_add_first, NULL)
{
    unsigned k;

    for (k = 1; k <= 10; ++k) {
        trig_b_add_word(trig, trig->b_writes, 2 * k);
        CU_ASSERT(uct_trig_cntr_add(trig->b_writes, 1) == UCS_OK);
        trig_barrier(trig);
        CU_ASSERT(trig->b_word == k - 1);

        trig_put(trig, 0, k, NULL);
        CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
        uct_pair_wait(&trig->pair, &trig->b_word, k);
        uct_pair_wait(&trig->pair, &trig->done, 2 * k);
    }
}

TRIG_CASE(two_counts_write_first, NULL)
{
    unsigned k;

    for (k = 1; k <= 10; ++k) {
        trig_b_add_word(trig, trig->b_writes, 2 * k);
        trig_put(trig, 0, k, NULL);
        CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
        uct_pair_wait(&trig->pair, &trig->done, (2 * k) - 1);
        trig_barrier(trig);
        CU_ASSERT(trig_count(trig, trig->b_writes) == (2 * k) - 1);
        CU_ASSERT(trig->b_word == k - 1);

        CU_ASSERT(uct_trig_cntr_add(trig->b_writes, 1) == UCS_OK);
        uct_pair_wait(&trig->pair, &trig->b_word, k);
        uct_pair_wait(&trig->pair, &trig->done, 2 * k);
    }
}

/* An atomic from the peer counts like a put */
TRIG_CASE(atomic_counts_at_region, NULL)
{
    trig_add_remote(trig, 0, 7);
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(trig_count(trig, trig->b_writes) == 1);
    CU_ASSERT(*(uint64_t*)trig->b_buffer == 7);
}

TRIG_CASE(large_put, NULL)
{
    enum {
        LENGTH = 3000000
    };
    static uint8_t source[LENGTH], target[LENGTH];
    unsigned i;

    memset(target, 0, sizeof(target));
    for (i = 0; i < LENGTH; ++i) {
        source[i] = (uint8_t)(i * 31 + i / 255 + 1);
    }
    trig_put_large(trig, source, target, LENGTH);
    CU_ASSERT(memcmp(source, target, LENGTH) == 0);
}

TRIG_CASE(get, NULL)
{
    uct_trig_deferred_t deferred;
    uct_trig_get_t get;
    int i;

    memset(trig->b_buffer, 0x11, sizeof(trig->b_buffer));
    get = (uct_trig_get_t){
        .buffer      = trig->a_buffer,
        .length      = TRIG_LENGTH,
        .remote_addr = (uintptr_t)trig->b_buffer + TRIG_LENGTH,
        .rkey        = trig->b_rkey
    };
    for (i = 1; i <= 3; ++i) {
        deferred = trig_deferred(trig, trig->trigger, i);
        CU_ASSERT(uct_trig_ep_get(trig->pair.a.peer, &get, &deferred) ==
                  UCS_OK);
        trig_barrier(trig);
        CU_ASSERT(trig->done == (uint64_t)(i - 1));
        memset(trig->b_buffer + TRIG_LENGTH, 0x20 + i, TRIG_LENGTH);
        CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
        uct_pair_wait(&trig->pair, &trig->done, i);
        CU_ASSERT(trig->status == UCS_OK);
        CU_ASSERT(trig_count(trig, trig->completion) == (uint64_t)i);
        CU_ASSERT(memcmp(trig->a_buffer, trig->b_buffer + TRIG_LENGTH,
                         TRIG_LENGTH) == 0);
    }
    get.remote_addr += sizeof(trig->b_buffer);
    CU_ASSERT(uct_trig_ep_get(trig->pair.a.peer, &get, &deferred) ==
              UCS_ERR_INVALID_PARAM);
}

ST_SUITE("trig")
