/* SPDX-License-Identifier: BSD-3-Clause */
/* trig_util.c - a pair with counters and regions. */
#include "trig_util.h"

#include <string.h>

/* Rounds of a barrier: the provider serves its connections in turn */
#define TRIG_BARRIER_ROUNDS 3

/* Until the NIC has written a counter back */
#define TRIG_MAX_READS 1000000


static void trig_on_done(void *arg, ucs_status_t status)
{
    trig_t *trig = arg;

    ++trig->done;
    trig->status = status;
}

static void trig_on_barrier(void *arg, ucs_status_t status)
{
    trig_t *trig = arg;

    CU_ASSERT(status == UCS_OK);
    ++trig->barriers;
}

static ucs_status_t trig_create_cntrs(trig_t *trig)
{
    uct_iface_h a = trig->pair.a.iface;
    uct_iface_h b = trig->pair.b.iface;
    struct {
        uct_iface_h     iface;
        uct_trig_cntr_h *cntr;
    } cntrs[] = {
        {a, &trig->trigger},
        {a, &trig->completion},
        {a, &trig->words},
        {a, &trig->barrier[0]},
        {a, &trig->barrier[1]},
        {a, &trig->probe[0]},
        {b, &trig->probe[1]},
        {b, &trig->b_writes},
        {b, &trig->b_words}
    };
    ucs_status_t status = UCS_OK;
    unsigned i;

    for (i = 0; (i < ST_CUNIT_COUNT(cntrs)) && (status == UCS_OK); ++i) {
        status = uct_trig_cntr_create(cntrs[i].iface, cntrs[i].cntr);
    }
    return status;
}

uct_trig_rkey_t trig_reg(uct_iface_h iface, volatile void *address,
                         size_t length, uct_trig_cntr_h cntr,
                         uct_trig_mem_h *mem_p)
{
    uint8_t packed[UCT_TRIG_RKEY_PACKED_LEN];
    uct_trig_rkey_t rkey;

    CU_ASSERT_FATAL(uct_trig_mem_reg(iface, (void*)address, length, cntr,
                                     mem_p) == UCS_OK);
    uct_trig_mem_pack(*mem_p, packed);
    CU_ASSERT_FATAL(uct_trig_rkey_unpack(packed, sizeof(packed), &rkey) ==
                    UCS_OK);
    return rkey;
}

int trig_create(trig_t *trig, const char *const *settings)
{
    unsigned i;

    memset(trig, 0, sizeof(*trig));
    for (i = 0; i < sizeof(trig->a_buffer); ++i) {
        trig->a_buffer[i] = (uint8_t)(1 + (i / TRIG_LENGTH) + (i * 7));
    }
    if ((uct_pair_create(&trig->pair, settings) != 0) ||
        (trig_create_cntrs(trig) != UCS_OK)) {
        return -1;
    }
    trig->a_rkey      = trig_reg(trig->pair.a.iface, &trig->a_word,
                                 sizeof(trig->a_word), NULL, &trig->a_mem);
    trig->b_rkey      = trig_reg(trig->pair.b.iface, trig->b_buffer,
                                 sizeof(trig->b_buffer), trig->b_writes,
                                 &trig->b_mem);
    trig->b_word_rkey = trig_reg(trig->pair.b.iface, &trig->b_word,
                                 sizeof(trig->b_word), NULL,
                                 &trig->b_word_mem);
    return 0;
}

void trig_destroy_a(trig_t *trig)
{
    CU_ASSERT(uct_trig_mem_dereg(trig->a_mem) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_destroy(trig->trigger) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_destroy(trig->completion) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_destroy(trig->words) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_destroy(trig->barrier[0]) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_destroy(trig->barrier[1]) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_destroy(trig->probe[0]) == UCS_OK);
}

void trig_destroy_b(trig_t *trig)
{
    CU_ASSERT(uct_trig_mem_dereg(trig->b_mem) == UCS_OK);
    CU_ASSERT(uct_trig_mem_dereg(trig->b_word_mem) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_destroy(trig->b_writes) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_destroy(trig->b_words) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_destroy(trig->probe[1]) == UCS_OK);
}

void trig_destroy(trig_t *trig)
{
    trig_destroy_a(trig);
    trig_destroy_b(trig);
    uct_pair_destroy(&trig->pair);
}

void trig_lose_b(trig_t *trig)
{
    trig_destroy_b(trig);
    uct_pair_close_side(&trig->pair.b);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    while (trig->pair.a.errors == 0) {
        (void)uct_ep_check(trig->pair.a.peer, 0, NULL);
        uct_pair_progress(&trig->pair);
    }
}

unsigned trig_free_entries(const trig_t *trig)
{
    uct_trig_iface_attr_t attr;

    return (uct_trig_iface_query(trig->pair.a.iface, &attr) == UCS_OK) ?
           attr.free_entries : ~0u;
}

uct_trig_deferred_t trig_deferred(trig_t *trig, uct_trig_cntr_h trigger,
                                  uint64_t threshold)
{
    uct_trig_deferred_t deferred = {
        .trigger    = trigger,
        .threshold  = threshold,
        .completion = trig->completion,
        .done       = trig_on_done,
        .arg        = trig
    };

    return deferred;
}

uct_trig_put_t trig_describe_put(trig_t *trig, unsigned slot)
{
    uct_trig_put_t put = {
        .buffer      = trig->a_buffer + (slot * TRIG_LENGTH),
        .length      = TRIG_LENGTH,
        .remote_addr = (uintptr_t)trig->b_buffer + (slot * TRIG_LENGTH),
        .rkey        = trig->b_rkey
    };

    return put;
}

ucs_status_t trig_try_put(trig_t *trig, unsigned slot, uint64_t threshold)
{
    uct_trig_deferred_t deferred = trig_deferred(trig, trig->trigger,
                                                 threshold);
    uct_trig_put_t put           = trig_describe_put(trig, slot);

    return uct_trig_ep_put(trig->pair.a.peer, &put, &deferred);
}

void trig_put(trig_t *trig, unsigned slot, uint64_t threshold)
{
    CU_ASSERT_FATAL(TRIG_POST(trig_try_put(trig, slot, threshold)) == UCS_OK);
}

void trig_add_word(trig_t *trig, uct_trig_cntr_h trigger, uint64_t threshold)
{
    uct_trig_deferred_t deferred = trig_deferred(trig, trigger, threshold);
    uct_trig_atomic_t atomic     = {
        .value       = 1,
        .remote_addr = (uintptr_t)&trig->a_word,
        .rkey        = trig->a_rkey
    };

    deferred.completion = trig->words;
    CU_ASSERT_FATAL(TRIG_POST(
            uct_trig_ep_atomic_add64(trig->pair.a.self, &atomic,
                                     &deferred)) == UCS_OK);
}

void trig_b_add_word(trig_t *trig, uct_trig_cntr_h trigger, uint64_t threshold)
{
    uct_trig_deferred_t deferred = trig_deferred(trig, trigger, threshold);
    uct_trig_atomic_t atomic     = {
        .value       = 1,
        .remote_addr = (uintptr_t)&trig->b_word,
        .rkey        = trig->b_word_rkey
    };

    deferred.completion = trig->b_words;
    CU_ASSERT_FATAL(TRIG_POST(
            uct_trig_ep_atomic_add64(trig->pair.b.self, &atomic,
                                     &deferred)) == UCS_OK);
}

int trig_arrived(const trig_t *trig, unsigned slot)
{
    return !memcmp(trig->a_buffer + (slot * TRIG_LENGTH),
                   trig->b_buffer + (slot * TRIG_LENGTH), TRIG_LENGTH);
}

/* A side's NIC has written back all counters for which it was asked before: it
 * does so in turn, and it was asked for the second of these additions since. */
static void trig_probe(trig_t *trig, unsigned side)
{
    unsigned reads = 0;
    unsigned i;
    uint64_t value;

    for (i = 0; i < 2; ++i) {
        ++trig->probes[side];
        CU_ASSERT(uct_trig_cntr_add(trig->probe[side], 1) == UCS_OK);
        while ((uct_trig_cntr_read(trig->probe[side], &value) == UCS_OK) &&
               (value < trig->probes[side]) && (++reads < TRIG_MAX_READS)) {
            uct_pair_progress(&trig->pair);
            usleep(0);
        }
        CU_ASSERT(reads < TRIG_MAX_READS);
    }
}

uint64_t trig_count(trig_t *trig, uct_trig_cntr_h cntr)
{
    unsigned side  = (cntr == trig->b_writes) || (cntr == trig->b_words);
    uint64_t value = 0;
    ucs_status_t status;
    unsigned i;

    /* Some NICs write a counter back only when they are asked, later: the first
     * time it may be for what was asked before, the second time the provider
     * asks, the third time it is read */
    for (i = 0; i < 2; ++i) {
        (void)uct_trig_cntr_read(cntr, &value);
        trig_probe(trig, side);
    }
    status = uct_trig_cntr_read(cntr, &value);
    return (status == UCS_OK) ? value : UINT64_MAX;
}

/* An atomic that adds nothing, to each side's word; b_buffer's counter stays */
static void trig_barrier_round(trig_t *trig)
{
    uct_trig_deferred_t deferred = {
        .trigger    = trig->barrier[0],
        .threshold  = ++trig->barrier_count,
        .completion = trig->barrier[1],
        .done       = trig_on_barrier,
        .arg        = trig
    };
    uct_trig_atomic_t atomic     = {
        .value       = 0,
        .remote_addr = (uintptr_t)&trig->a_word,
        .rkey        = trig->a_rkey
    };
    uint64_t target              = trig->barriers + 2;

    CU_ASSERT_FATAL(TRIG_POST(
            uct_trig_ep_atomic_add64(trig->pair.a.self, &atomic,
                                     &deferred)) == UCS_OK);
    atomic.remote_addr = (uintptr_t)&trig->b_word;
    atomic.rkey        = trig->b_word_rkey;
    CU_ASSERT_FATAL(TRIG_POST(
            uct_trig_ep_atomic_add64(trig->pair.a.peer, &atomic,
                                     &deferred)) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->barrier[0], 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->barriers, target);
}

void trig_barrier(trig_t *trig)
{
    unsigned i;

    for (i = 0; i < TRIG_BARRIER_ROUNDS; ++i) {
        trig_barrier_round(trig);
    }
}
