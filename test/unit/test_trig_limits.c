/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trig_limits.c - credits, refusals, failures, sleeping and threads. */
#include "trig_util.h"
#include "uct_errors.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FEW_ENTRIES 4


static const char *const few_entries[] = {"DEFERRED_ENTRIES", "4", NULL};


TRIG_CASE(query, few_entries)
{
    const char *provider = getenv("UCX_CXI_TRIG_PROVIDER");
    uct_trig_iface_attr_t attr;

    CU_ASSERT(uct_trig_iface_is_supported(trig->pair.a.iface));
    CU_ASSERT_FATAL(uct_trig_iface_query(trig->pair.a.iface, &attr) == UCS_OK);
    CU_ASSERT(attr.max_entries == FEW_ENTRIES);
    CU_ASSERT(attr.free_entries == FEW_ENTRIES);
    CU_ASSERT(attr.num_cntrs == 6);
    CU_ASSERT(attr.max_cntrs >= 2000);
    CU_ASSERT(attr.max_count >= INT32_MAX);
    CU_ASSERT(attr.max_put >= 1 << 20);
    CU_ASSERT(strcmp(attr.device, uct_pair_device()) == 0);
    if (provider != NULL) {
        CU_ASSERT(strcmp(attr.provider, provider) == 0);
    }
    CU_ASSERT(attr.used_entries == 0);
}

TRIG_CASE(exhaustion_recovers, few_entries)
{
    unsigned round, i;

    for (round = 1; round <= 3; ++round) {
        for (i = 0; i < FEW_ENTRIES; ++i) {
            trig_put(trig, i, round);
        }
        CU_ASSERT(trig_free_entries(trig) == 0);
        CU_ASSERT(trig_try_put(trig, 0, round) == UCS_ERR_NO_RESOURCE);
        CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
        uct_pair_wait(&trig->pair, &trig->done, round * FEW_ENTRIES);
        CU_ASSERT(trig_free_entries(trig) == FEW_ENTRIES);
    }
    CU_ASSERT(trig_count(trig, trig->completion) == 3 * FEW_ENTRIES);
}

/* Each kind goes without an entry when it is due, also while all are taken */
TRIG_CASE(due, few_entries)
{
    uct_trig_deferred_t deferred = trig_deferred(trig, trig->trigger, 1);
    uct_trig_put_t put           = trig_describe_put(trig, FEW_ENTRIES);
    uct_trig_atomic_t atomic     = {
        .value       = 5,
        .remote_addr = (uintptr_t)&trig->a_word,
        .rkey        = trig->a_rkey
    };
    unsigned i;

    for (i = 0; i < FEW_ENTRIES; ++i) {
        trig_put(trig, i, 2);
    }
    CU_ASSERT(uct_trig_ep_put(trig->pair.a.peer, &put, &deferred) ==
              UCS_ERR_NO_RESOURCE);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    deferred.is_due = 1;
    CU_ASSERT(TRIG_POST(uct_trig_ep_put(trig->pair.a.peer, &put, &deferred)) ==
              UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(trig_arrived(trig, FEW_ENTRIES));
    CU_ASSERT(TRIG_POST(uct_trig_ep_atomic_add64(trig->pair.a.self, &atomic,
                                                 &deferred)) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 2);
    CU_ASSERT(trig->a_word == 5);
    CU_ASSERT(trig_count(trig, trig->completion) == 2);
    CU_ASSERT(trig_free_entries(trig) == 0);

    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 2 + FEW_ENTRIES);
    CU_ASSERT(trig->status == UCS_OK);
    CU_ASSERT(trig_free_entries(trig) == FEW_ENTRIES);
}

/* The region is gone when the operation fires */
TRIG_CASE(bad_key, few_entries)
{
    uint64_t value;

    trig_put(trig, 0, 1);
    trig_add_word(trig, trig->completion, 1);
    CU_ASSERT(uct_trig_mem_dereg(trig->b_mem) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(trig->status != UCS_OK);
    CU_ASSERT(!trig_arrived(trig, 0));
    CU_ASSERT(uct_trig_cntr_read(trig->completion, &value) == UCS_ERR_IO_ERROR);

    /* Not counted: what waits for it has not fired. The rest goes on */
    trig_barrier(trig);
    CU_ASSERT(trig->a_word == 0);
    CU_ASSERT(trig_free_entries(trig) == FEW_ENTRIES - 1);
    CU_ASSERT(uct_trig_cntr_add(trig->completion, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->a_word, 1);
    uct_pair_wait(&trig->pair, &trig->done, 2);
    CU_ASSERT(trig->status == UCS_OK);

    CU_ASSERT(trig->pair.a.errors == 0); /* A wrong key does not end a peer */
    CU_ASSERT(uct_trig_mem_reg(trig->pair.b.iface, trig->b_buffer,
                               sizeof(trig->b_buffer), NULL,
                               &trig->b_mem) == UCS_OK);
}

TRIG_CASE(refused_puts, NULL)
{
    uct_trig_deferred_t deferred;
    uct_trig_iface_attr_t attr;
    uct_trig_put_t good, put;
    uct_ep_h ep;

    CU_ASSERT_FATAL(uct_trig_iface_query(trig->pair.a.iface, &attr) == UCS_OK);
    ep       = trig->pair.a.peer;
    deferred = trig_deferred(trig, trig->trigger, 1);
    good     = trig_describe_put(trig, 0);

    put         = good;
    put.length  = 0;
    CU_ASSERT(uct_trig_ep_put(ep, &put, &deferred) == UCS_ERR_INVALID_PARAM);
    put         = good;
    put.length  = sizeof(trig->b_buffer) + 1;
    CU_ASSERT(uct_trig_ep_put(ep, &put, &deferred) == UCS_ERR_INVALID_PARAM);
    put             = good;
    put.remote_addr = good.rkey.address - 1;
    CU_ASSERT(uct_trig_ep_put(ep, &put, &deferred) == UCS_ERR_INVALID_PARAM);
    put.remote_addr = UINT64_MAX - 8;
    CU_ASSERT(uct_trig_ep_put(ep, &put, &deferred) == UCS_ERR_INVALID_PARAM);
    put         = good;
    put.length  = attr.max_put + 1;
    CU_ASSERT(uct_trig_ep_put(ep, &put, &deferred) == UCS_ERR_EXCEEDS_LIMIT);

    deferred.threshold = attr.max_count + 1;
    CU_ASSERT(uct_trig_ep_put(ep, &good, &deferred) == UCS_ERR_EXCEEDS_LIMIT);
    deferred            = trig_deferred(trig, trig->trigger, 1);
    deferred.completion = trig->b_writes;
    CU_ASSERT(uct_trig_ep_put(ep, &good, &deferred) == UCS_ERR_INVALID_PARAM);
    deferred            = trig_deferred(trig, trig->b_writes, 1);
    CU_ASSERT(uct_trig_ep_put(ep, &good, &deferred) == UCS_ERR_INVALID_PARAM);
    CU_ASSERT(trig_free_entries(trig) == attr.max_entries);
}

TRIG_CASE(refused_atomics, NULL)
{
    uct_trig_deferred_t deferred;
    uct_trig_atomic_t atomic;
    uct_ep_h ep;

    ep       = trig->pair.a.peer;
    deferred = trig_deferred(trig, trig->trigger, 1);
    atomic   = (uct_trig_atomic_t){
        .value       = 1,
        .remote_addr = (uintptr_t)trig->b_buffer + 4,
        .rkey        = trig->b_rkey
    };
    CU_ASSERT(uct_trig_ep_atomic_add64(ep, &atomic, &deferred) ==
              UCS_ERR_INVALID_PARAM);
    atomic.remote_addr = (uintptr_t)trig->b_buffer + sizeof(trig->b_buffer);
    CU_ASSERT(uct_trig_ep_atomic_add64(ep, &atomic, &deferred) ==
              UCS_ERR_INVALID_PARAM);
}

/* A counter counts what lands in each of its regions */
TRIG_CASE(two_regions, NULL)
{
    static uint8_t more[TRIG_LENGTH];
    uct_trig_deferred_t deferred = trig_deferred(trig, trig->trigger, 1);
    uct_trig_put_t put           = trig_describe_put(trig, 1);
    uct_trig_mem_h mem;

    put.rkey        = trig_reg(trig->pair.b.iface, more, sizeof(more),
                               trig->b_writes, &mem);
    put.remote_addr = (uintptr_t)more;
    trig_put(trig, 0, 1);
    CU_ASSERT(TRIG_POST(uct_trig_ep_put(trig->pair.a.peer, &put, &deferred)) ==
              UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 2);
    CU_ASSERT(trig_arrived(trig, 0));
    CU_ASSERT(memcmp(more, put.buffer, sizeof(more)) == 0);
    trig_barrier(trig);
    CU_ASSERT(trig_count(trig, trig->b_writes) == 2);
    CU_ASSERT(uct_trig_mem_dereg(mem) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_destroy(trig->b_writes) == UCS_ERR_BUSY);
}

TRIG_CASE(refused_regions, NULL)
{
    const struct {
        void   *address;
        size_t length;
    } nowhere[] = {
        {(void*)0x1000, 8},
        {trig->b_buffer, SIZE_MAX},
        {trig->b_buffer, (size_t)1 << 46}
    };
    uct_iface_h iface;
    uct_trig_mem_h mem;
    unsigned i;

    iface = trig->pair.b.iface;
    CU_ASSERT(uct_trig_mem_reg(iface, NULL, 8, NULL, &mem) ==
              UCS_ERR_INVALID_PARAM);
    CU_ASSERT(uct_trig_mem_reg(iface, trig->b_buffer, 0, NULL, &mem) ==
              UCS_ERR_INVALID_PARAM);
    for (i = 0; i < ST_CUNIT_COUNT(nowhere); ++i) {
        uct_errors_begin();
        CU_ASSERT(uct_trig_mem_reg(iface, nowhere[i].address,
                                   nowhere[i].length, NULL, &mem) ==
                  UCS_ERR_INVALID_ADDR);
        CU_ASSERT(uct_errors_end() == 1);
    }
}

TRIG_CASE(refused_keys, NULL)
{
    uint8_t packed[UCT_TRIG_RKEY_PACKED_LEN];
    uct_trig_rkey_t rkey;
    unsigned i;

    uct_trig_mem_pack(trig->b_mem, packed);
    CU_ASSERT(uct_trig_rkey_unpack(packed, sizeof(packed), &rkey) == UCS_OK);
    CU_ASSERT(rkey.address == (uintptr_t)trig->b_buffer);
    CU_ASSERT(rkey.length == sizeof(trig->b_buffer));
    for (i = 0; i < sizeof(packed); ++i) {
        CU_ASSERT(uct_trig_rkey_unpack(packed, i, &rkey) ==
                  UCS_ERR_INVALID_PARAM);
        packed[i] ^= 0x41;
        CU_ASSERT(uct_trig_rkey_unpack(packed, sizeof(packed), &rkey) ==
                  UCS_ERR_INVALID_PARAM);
        packed[i] ^= 0x41;
    }
}

TRIG_CASE(overflow, NULL)
{
    uct_trig_iface_attr_t attr;

    CU_ASSERT_FATAL(uct_trig_iface_query(trig->pair.a.iface, &attr) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, attr.max_count - 1) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 2) == UCS_ERR_EXCEEDS_LIMIT);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, UINT64_MAX) ==
              UCS_ERR_EXCEEDS_LIMIT);
    CU_ASSERT(trig_count(trig, trig->trigger) == attr.max_count - 1);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    trig_put(trig, 0, attr.max_count);
    uct_pair_wait(&trig->pair, &trig->done, 1);
}

/* A counter has a trigger page, and that is all that a stream needs, or has
 * none */
TRIG_CASE(doorbell, NULL)
{
    volatile uint64_t *doorbell;

    trig_put(trig, 0, 2);
    doorbell = uct_trig_cntr_doorbell(trig->trigger);
    if (doorbell != NULL) {
        __atomic_store_n(doorbell, 2, __ATOMIC_RELEASE);
    } else {
        CU_ASSERT(uct_trig_cntr_add(trig->trigger, 2) == UCS_OK);
    }
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(trig_arrived(trig, 0));
    CU_ASSERT(uct_trig_cntr_doorbell(trig->trigger) == doorbell);
}

ST_CASE(other_transport)
{
    uct_iface_t other = {0};
    uct_trig_iface_attr_t attr;
    uct_trig_cntr_h cntr;

    CU_ASSERT(!uct_trig_iface_is_supported(&other));
    CU_ASSERT(uct_trig_iface_query(&other, &attr) == UCS_ERR_UNSUPPORTED);
    CU_ASSERT(uct_trig_cntr_create(&other, &cntr) == UCS_ERR_UNSUPPORTED);
}

/* Whatever an operation to a peer that is gone does, done() is called */
ST_CASE(peer_gone)
{
    trig_t trig;

    CU_ASSERT_FATAL(trig_create(&trig, few_entries) == 0);
    trig_put(&trig, 0, 0); /* Connects */
    uct_pair_wait(&trig.pair, &trig.done, 1);
    trig_put(&trig, 0, 1);
    trig_put(&trig, 1, 2);
    trig_lose_b(&trig);
    uct_pair_wait(&trig.pair, &trig.done, 2);
    CU_ASSERT(trig.status != UCS_OK);
    CU_ASSERT(trig_free_entries(&trig) == FEW_ENTRIES - 1);
    CU_ASSERT(trig_try_put(&trig, 2, 3) == trig.pair.a.error);

    /* The endpoint may go first; the one not yet triggered is disposed of */
    uct_ep_destroy(trig.pair.a.peer);
    trig.pair.a.peer = NULL;
    CU_ASSERT(uct_trig_cntr_add(trig.trigger, 1) == UCS_OK);
    uct_pair_wait(&trig.pair, &trig.done, 3);
    CU_ASSERT(trig_free_entries(&trig) == FEW_ENTRIES);
    trig_destroy_a(&trig);
    uct_pair_destroy(&trig.pair);
}

typedef struct {
    uct_trig_cntr_h cntr;
    unsigned        count;
} adder_t;

static void *adder_run(void *arg)
{
    adder_t *adder = arg;
    unsigned i;

    for (i = 0; i < adder->count; ++i) {
        if (uct_trig_cntr_add(adder->cntr, 1) != UCS_OK) {
            return NULL;
        }
    }
    return arg;
}

/* Stream threads add while the owner posts and progresses */
TRIG_CASE(concurrent_adds, NULL)
{
    enum {
        THREADS = 3,
        ADDS    = 400
    };
    pthread_t threads[THREADS];
    adder_t adder;
    uint64_t posted = 0;
    void *ret;
    int i;

    adder = (adder_t){trig->trigger, ADDS};
    for (i = 0; i < THREADS; ++i) {
        CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, adder_run,
                                       &adder) == 0);
    }
    while (posted < THREADS * ADDS) {
        if (trig_try_put(trig, posted % TRIG_SLOTS, posted + 1) ==
            UCS_OK) {
            ++posted;
        }
        uct_pair_progress(&trig->pair);
    }
    for (i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], &ret);
        CU_ASSERT(ret == &adder);
    }
    uct_pair_wait(&trig->pair, &trig->done, posted);
    CU_ASSERT(trig_count(trig, trig->trigger) == posted);
    CU_ASSERT(trig_count(trig, trig->completion) == posted);
    CU_ASSERT(trig_count(trig, trig->b_writes) == posted);
}

/* All entries on one trigger fire by one add */
TRIG_CASE(all_entries_at_once, NULL)
{
    uct_trig_iface_attr_t attr;
    unsigned i;

    CU_ASSERT_FATAL(uct_trig_iface_query(trig->pair.a.iface, &attr) == UCS_OK);
    for (i = 0; i < attr.max_entries; ++i) {
        trig_put(trig, i % TRIG_SLOTS, 1);
    }
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, attr.max_entries);
    CU_ASSERT(trig_count(trig, trig->completion) == attr.max_entries);
}

/* Sleeping is allowed only when nothing is there; a completion ends it */
static void sleep_until_done(trig_t *trig, uint64_t target)
{
    struct pollfd pollfd = {
        .events = POLLIN
    };
    ucs_status_t status;

    CU_ASSERT_FATAL(uct_iface_event_fd_get(trig->pair.a.iface, &pollfd.fd) ==
                    UCS_OK);
    while (trig->done < target) {
        status = uct_iface_event_arm(trig->pair.a.iface,
                                     UCT_EVENT_SEND_COMP | UCT_EVENT_RECV);
        if (status == UCS_OK) {
            CU_ASSERT(poll(&pollfd, 1, -1) == 1);
        } else {
            CU_ASSERT(status == UCS_ERR_BUSY);
        }
        uct_iface_progress(trig->pair.a.iface);
    }
}

TRIG_CASE(completion_wakes, NULL)
{
    enum {
        ROUNDS = 50
    };
    pthread_t thread;
    adder_t adder;
    unsigned k;

    adder = (adder_t){trig->trigger, 1};
    for (k = 1; k <= ROUNDS; ++k) {
        trig_put(trig, 0, k);
        trig_put(trig, 1, k);
        CU_ASSERT_FATAL(pthread_create(&thread, NULL, adder_run, &adder) == 0);
        sleep_until_done(trig, 2 * k);
        pthread_join(thread, NULL);
    }
    CU_ASSERT(trig_count(trig, trig->completion) == 2 * ROUNDS);
}

ST_SUITE("trig_limits")
