/* SPDX-License-Identifier: BSD-3-Clause */
/* test_trig_op.c - deferred operations that are posted again and again. */
#include "fab_intercept.h"
#include "trig_util.h"
#include "uct_errors.h"

#include <rdma/fi_errno.h>

#include <string.h>

enum {
    ENTRIES = 4
};

static const char *const few_entries[] = {"DEFERRED_ENTRIES", "4", NULL};


static uct_trig_op_h create(trig_t *trig, const uct_trig_put_t *put,
                            const uct_trig_deferred_t *deferred)
{
    uct_trig_op_h op = NULL;

    CU_ASSERT_FATAL(uct_trig_op_create_put(trig->pair.a.peer, put, deferred,
                                           &op) == UCS_OK);
    return op;
}

/* A put of A's piece 0 to B's, with offset 0 */
static uct_trig_op_h create_put(trig_t *trig)
{
    uct_trig_deferred_t deferred = trig_deferred(trig, trig->trigger, 0);
    uct_trig_put_t put           = trig_describe_put(trig, 0);

    return create(trig, &put, &deferred);
}

/* One that adds 3 to a_word for each such put */
static uct_trig_op_h create_add(trig_t *trig)
{
    uct_trig_deferred_t deferred = trig_deferred(trig, trig->completion, 0);
    uct_trig_atomic_t atomic     = {
        .value       = 3,
        .remote_addr = (uintptr_t)&trig->a_word,
        .rkey        = trig->a_rkey
    };
    uct_trig_op_h op;

    deferred.completion = trig->words;
    CU_ASSERT_FATAL(uct_trig_op_create_add64(trig->pair.a.self, &atomic,
                                             &deferred, &op) == UCS_OK);
    return op;
}

/* Every use has its own data and destination */
TRIG_CASE(again, few_entries)
{
    uct_trig_op_h put, add;
    size_t offset;
    unsigned use;

    put = create_put(trig);
    add = create_add(trig);
    for (use = 1; use <= 3 * TRIG_SLOTS; ++use) {
        offset = (use % TRIG_SLOTS) * TRIG_LENGTH;
        memset(trig->a_buffer, (int)use, TRIG_LENGTH);
        CU_ASSERT(TRIG_POST(uct_trig_op_post(put, use, offset, 0)) == UCS_OK);
        CU_ASSERT(TRIG_POST(uct_trig_op_post(add, use, 0, 0)) == UCS_OK);
        CU_ASSERT(trig_free_entries(trig) == ENTRIES - 2);
        CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
        uct_pair_wait(&trig->pair, &trig->done, 2 * use);
        CU_ASSERT(trig->status == UCS_OK);
        CU_ASSERT(memcmp(trig->b_buffer + offset, trig->a_buffer,
                         TRIG_LENGTH) == 0);
        CU_ASSERT(trig->a_word == 3 * use);
    }
    CU_ASSERT(trig_count(trig, trig->completion) == 3 * TRIG_SLOTS);
    CU_ASSERT(trig_count(trig, trig->words) == 3 * TRIG_SLOTS);
    CU_ASSERT(trig_free_entries(trig) == ENTRIES);
    CU_ASSERT(uct_trig_op_destroy(put) == UCS_OK);
    CU_ASSERT(uct_trig_op_destroy(add) == UCS_OK);
    CU_ASSERT(trig_free_entries(trig) == ENTRIES);
}

/* Nothing fires before its threshold, and an operation is posted once at a
 * time */
TRIG_CASE(busy, NULL)
{
    uct_trig_deferred_t deferred = trig_deferred(trig, trig->trigger, 0);
    uct_trig_put_t put           = trig_describe_put(trig, 0);
    uct_trig_mem_h local;
    uct_trig_op_h op;

    (void)trig_reg(trig->pair.a.iface, trig->a_buffer, sizeof(trig->a_buffer),
                   NULL, &local);
    put.local = local;
    op        = create(trig, &put, &deferred);
    CU_ASSERT(TRIG_POST(uct_trig_op_post(op, 2, 0, 0)) == UCS_OK);
    CU_ASSERT(uct_trig_op_post(op, 1, 0, 0) == UCS_ERR_BUSY);
    CU_ASSERT(uct_trig_op_destroy(op) == UCS_ERR_BUSY);
    CU_ASSERT(uct_trig_cntr_destroy(trig->b_writes) == UCS_ERR_BUSY);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    trig_barrier(trig);
    CU_ASSERT(trig->done == 0);
    CU_ASSERT(!trig_arrived(trig, 0));
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(trig_arrived(trig, 0));

    /* What it names is in use although it is not posted */
    CU_ASSERT(uct_trig_cntr_destroy(trig->trigger) == UCS_ERR_BUSY);
    CU_ASSERT(uct_trig_cntr_destroy(trig->completion) == UCS_ERR_BUSY);
    CU_ASSERT(uct_trig_mem_dereg(local) == UCS_ERR_BUSY);
    CU_ASSERT(uct_trig_op_destroy(op) == UCS_OK);
    CU_ASSERT(uct_trig_mem_dereg(local) == UCS_OK);
}

/* An entry is one's from the post to the end. What finds none goes without one
 * when it is due, and is counted as any other */
TRIG_CASE(entries, few_entries)
{
    uct_trig_op_h ops[ENTRIES + 1];
    unsigned i;

    for (i = 0; i <= ENTRIES; ++i) {
        ops[i] = create_put(trig);
    }
    CU_ASSERT(trig_free_entries(trig) == ENTRIES);
    for (i = 0; i < ENTRIES; ++i) {
        CU_ASSERT(TRIG_POST(uct_trig_op_post(ops[i], 2, i * TRIG_LENGTH, 0)) ==
                  UCS_OK);
    }
    CU_ASSERT(trig_free_entries(trig) == 0);
    CU_ASSERT(uct_trig_op_post(ops[ENTRIES], 1, ENTRIES * TRIG_LENGTH, 0) ==
              UCS_ERR_NO_RESOURCE);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    CU_ASSERT(TRIG_POST(uct_trig_op_post(ops[ENTRIES], 1,
                                         ENTRIES * TRIG_LENGTH, 1)) == UCS_OK);
    CU_ASSERT(uct_trig_op_post(ops[ENTRIES], 1, 0, 1) == UCS_ERR_BUSY);
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(memcmp(trig->b_buffer + (ENTRIES * TRIG_LENGTH), trig->a_buffer,
                     TRIG_LENGTH) == 0);
    CU_ASSERT(trig_free_entries(trig) == 0);
    CU_ASSERT(trig_count(trig, trig->completion) == 1);
    CU_ASSERT(trig_count(trig, trig->b_writes) == 1);
    CU_ASSERT(trig->done == 1); /* The others wait on */

    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, ENTRIES + 1);
    CU_ASSERT(trig_count(trig, trig->completion) == ENTRIES + 1);
    CU_ASSERT(trig_free_entries(trig) == ENTRIES);
    for (i = 0; i <= ENTRIES; ++i) {
        CU_ASSERT(uct_trig_op_destroy(ops[i]) == UCS_OK);
    }
}

TRIG_CASE(refused, few_entries)
{
    uct_trig_deferred_t deferred;
    uct_trig_iface_attr_t attr;
    uct_trig_atomic_t atomic;
    uct_trig_op_h put, add;
    uct_trig_put_t bad;
    uct_iface_h iface;

    iface = trig->pair.a.iface;
    CU_ASSERT_FATAL(uct_trig_iface_query(iface, &attr) == UCS_OK);
    put = create_put(trig);
    add = create_add(trig);
    CU_ASSERT(uct_trig_op_post(put, 1,
                               sizeof(trig->b_buffer) - TRIG_LENGTH + 1, 0) ==
              UCS_ERR_INVALID_PARAM);
    CU_ASSERT(uct_trig_op_post(put, 1, SIZE_MAX, 0) == UCS_ERR_INVALID_PARAM);
    CU_ASSERT(uct_trig_op_post(add, 1, 8, 0) == UCS_ERR_INVALID_PARAM);
    CU_ASSERT(uct_trig_op_post(put, attr.max_count + 1, 0, 0) ==
              UCS_ERR_EXCEEDS_LIMIT);

    deferred   = trig_deferred(trig, trig->trigger, 0);
    bad        = trig_describe_put(trig, 0);
    bad.length = 0;
    CU_ASSERT(uct_trig_op_create_put(trig->pair.a.peer, &bad, &deferred,
                                     &put) == UCS_ERR_INVALID_PARAM);
    atomic = (uct_trig_atomic_t){
        .remote_addr = (uintptr_t)&trig->a_word + 1,
        .rkey        = trig->a_rkey
    };
    CU_ASSERT(uct_trig_op_create_add64(trig->pair.a.self, &atomic, &deferred,
                                       &add) == UCS_ERR_INVALID_PARAM);

    /* None of that has posted or lost anything */
    CU_ASSERT(trig_free_entries(trig) == ENTRIES);
    CU_ASSERT(uct_trig_op_destroy(put) == UCS_OK);
    CU_ASSERT(uct_trig_op_destroy(add) == UCS_OK);
    CU_ASSERT(trig_free_entries(trig) == ENTRIES);
}

/* One that failed may be posted again */
TRIG_CASE(bad_key, NULL)
{
    uct_trig_deferred_t deferred = trig_deferred(trig, trig->trigger, 0);
    uct_trig_put_t put           = trig_describe_put(trig, 0);
    uct_trig_op_h op;
    unsigned i;

    ++put.rkey.key;
    op = create(trig, &put, &deferred);
    for (i = 1; i <= 3; ++i) {
        trig->status = UCS_OK;
        CU_ASSERT(TRIG_POST(uct_trig_op_post(op, i, 0, 0)) == UCS_OK);
        CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
        uct_pair_wait(&trig->pair, &trig->done, i);
        CU_ASSERT(trig->status != UCS_OK);
    }
    CU_ASSERT(!trig_arrived(trig, 0));
    CU_ASSERT(trig->pair.a.errors == 0);
    CU_ASSERT(uct_trig_op_destroy(op) == UCS_OK);
}

TRIG_CASE(endpoint_goes_first, NULL)
{
    uct_trig_op_h op;

    op = create_put(trig);
    uct_ep_destroy(trig->pair.a.peer);
    trig->pair.a.peer = NULL;
    CU_ASSERT(TRIG_POST(uct_trig_op_post(op, 1, 0, 0)) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(trig->status == UCS_OK);
    CU_ASSERT(trig_arrived(trig, 0));
    CU_ASSERT(uct_trig_op_destroy(op) == UCS_OK);
}

/* Those that the loss meets armed are over, and none can be posted any more */
ST_CASE(peer_gone)
{
    uct_trig_op_h fired, armed, idle;
    trig_t trig;

    CU_ASSERT_FATAL(trig_create(&trig, few_entries) == 0);
    fired = create_put(&trig);
    armed = create_put(&trig);
    idle  = create_put(&trig);
    /* Connects */
    CU_ASSERT(TRIG_POST(uct_trig_op_post(fired, 0, 0, 0)) == UCS_OK);
    uct_pair_wait(&trig.pair, &trig.done, 1);
    CU_ASSERT(TRIG_POST(uct_trig_op_post(fired, 1, 0, 0)) == UCS_OK);
    CU_ASSERT(TRIG_POST(uct_trig_op_post(armed, 2, 0, 0)) == UCS_OK);
    trig_lose_b(&trig);
    uct_pair_wait(&trig.pair, &trig.done, 2);
    CU_ASSERT(trig.status != UCS_OK);
    CU_ASSERT(uct_trig_op_post(idle, 3, 0, 0) == trig.pair.a.error);
    CU_ASSERT(uct_trig_op_post(fired, 3, 0, 0) == trig.pair.a.error);
    CU_ASSERT(uct_trig_op_destroy(armed) == UCS_ERR_BUSY);
    CU_ASSERT(uct_trig_op_destroy(fired) == UCS_OK);

    CU_ASSERT(uct_trig_cntr_add(trig.trigger, 1) == UCS_OK);
    uct_pair_wait(&trig.pair, &trig.done, 3);
    CU_ASSERT(uct_trig_op_destroy(armed) == UCS_OK);
    CU_ASSERT(uct_trig_op_destroy(idle) == UCS_OK);
    CU_ASSERT(trig_free_entries(&trig) == ENTRIES);
    trig_destroy_a(&trig);
    uct_pair_destroy(&trig.pair);
}

/* The device is gone: what waits for its trigger ends, too, and is not heard of
 * again if the device is there after all */
TRIG_CASE(device_gone, NULL)
{
    unsigned i;

    trig_put(trig, 0, 1);
    trig_put(trig, 1, 2);
    fab_intercept_break(FI_EIO);
    uct_errors_begin_text(UCS_LOG_LEVEL_ERROR, "cannot be used any more");
    for (i = 0; i < 100; ++i) {
        uct_pair_progress(&trig->pair);
    }
    CU_ASSERT(uct_errors_end() == 2); /* Each interface */
    CU_ASSERT(trig->done == 2);
    CU_ASSERT(trig->status == UCS_ERR_ENDPOINT_TIMEOUT);
    CU_ASSERT(trig->pair.a.error == UCS_ERR_ENDPOINT_TIMEOUT);
    fab_intercept_break(0);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 2) == UCS_OK);
    trig_add_word(trig, trig->trigger, 2);
    uct_pair_wait(&trig->pair, &trig->done, 3);
    CU_ASSERT((trig->done == 3) && (trig->a_word == 1));
}

/* The provider says after all that it has failed: nobody hears of it again */
static void report(trig_t *trig, void *context)
{
    uint64_t calls = trig->done;

    fab_intercept_report(context, FI_EIO);
    uct_pair_progress(&trig->pair);
    CU_ASSERT(trig->done == calls);
}

/* Where only failures are reported, an operation is given up that fires when
 * its peer is gone. Its memory is kept for the provider, which may report its
 * failure later, before its owner destroys it or after that. */
ST_CASE(reported_late)
{
    uct_trig_op_h early, late, again[2];
    uct_trig_iface_attr_t attr;
    uct_trig_deferred_t deferred;
    uct_trig_put_t put;
    void *contexts[2];
    trig_t trig;
    int i;

    CU_ASSERT_FATAL(trig_create(&trig, few_entries) == 0);
    CU_ASSERT(uct_trig_iface_query(trig.pair.a.iface, &attr) == UCS_OK);
    if (strcmp(attr.provider, "sockets") != 0) {
        st_cunit_skip("the provider reports all operations");
        trig_destroy(&trig);
        return;
    }
    put      = trig_describe_put(&trig, 0);
    deferred = trig_deferred(&trig, trig.trigger, 0);
    early    = create_put(&trig);
    late     = create_put(&trig);
    /* Connects */
    CU_ASSERT(TRIG_POST(uct_trig_op_post(early, 0, 0, 0)) == UCS_OK);
    uct_pair_wait(&trig.pair, &trig.done, 1);
    CU_ASSERT(TRIG_POST(uct_trig_op_post(early, 2, 0, 0)) == UCS_OK);
    contexts[0] = fab_intercept_deferred_write();
    CU_ASSERT(TRIG_POST(uct_trig_op_post(late, 3, 0, 0)) == UCS_OK);
    contexts[1] = fab_intercept_deferred_write();
    trig_lose_b(&trig); /* Adds 1 */

    CU_ASSERT(uct_trig_cntr_add(trig.trigger, 1) == UCS_OK);
    uct_pair_wait(&trig.pair, &trig.done, 2);
    CU_ASSERT(trig.status != UCS_OK);
    report(&trig, contexts[0]);
    CU_ASSERT(uct_trig_op_destroy(early) == UCS_OK);

    CU_ASSERT(uct_trig_cntr_add(trig.trigger, 1) == UCS_OK);
    uct_pair_wait(&trig.pair, &trig.done, 3);
    CU_ASSERT(uct_trig_op_destroy(late) == UCS_OK);
    CU_ASSERT(trig_free_entries(&trig) == ENTRIES);
    report(&trig, contexts[1]);
    CU_ASSERT(trig_free_entries(&trig) == ENTRIES);

    /* The memory of both is used again */
    for (i = 0; i < 2; ++i) {
        CU_ASSERT(uct_trig_op_create_put(trig.pair.a.self, &put, &deferred,
                                         &again[i]) == UCS_OK);
        CU_ASSERT((again[i] == early) || (again[i] == late));
    }
    for (i = 0; i < 2; ++i) {
        CU_ASSERT(uct_trig_op_destroy(again[i]) == UCS_OK);
    }
    trig_destroy_a(&trig);
    uct_pair_destroy(&trig.pair);
}

/* The interface takes along what was not destroyed, armed or not */
ST_CASE(close)
{
    uct_trig_op_h op;
    trig_t trig;

    CU_ASSERT_FATAL(trig_create(&trig, NULL) == 0);
    op = create_put(&trig);
    (void)create_put(&trig);
    (void)create_add(&trig);
    CU_ASSERT(TRIG_POST(uct_trig_op_post(op, 1, 0, 0)) == UCS_OK);
    trig_put(&trig, 1, 1);
    trig_add_word(&trig, trig.completion, 1);
    uct_pair_close_side(&trig.pair.a);
    uct_pair_progress(&trig.pair);
    CU_ASSERT(trig.done == 0);
    CU_ASSERT(!trig_arrived(&trig, 0) && !trig_arrived(&trig, 1));
    trig_destroy_b(&trig);
    uct_pair_destroy(&trig.pair);
}

typedef struct {
    uct_trig_op_h     op;
    volatile uint64_t left; /* Uses, but the first */
    volatile uint64_t is_destroyed;
} chain_t;

static void chain_on_done(void *arg, ucs_status_t status)
{
    chain_t *chain = arg;

    CU_ASSERT(status == UCS_OK);
    if (chain->left > 0) {
        --chain->left;
        CU_ASSERT(TRIG_POST(uct_trig_op_post(chain->op, 1, 0, 0)) == UCS_OK);
    } else {
        CU_ASSERT(uct_trig_op_destroy(chain->op) == UCS_OK);
        chain->is_destroyed = 1;
    }
}

/* done() may post it again, or destroy it */
TRIG_CASE(from_done, NULL)
{
    chain_t chain                = {.left = 5};
    uct_trig_deferred_t deferred = trig_deferred(trig, trig->trigger, 0);
    uct_trig_put_t put           = trig_describe_put(trig, 0);

    deferred.done = chain_on_done;
    deferred.arg  = &chain;
    chain.op      = create(trig, &put, &deferred);
    CU_ASSERT(TRIG_POST(uct_trig_op_post(chain.op, 1, 0, 0)) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 1) == UCS_OK);
    uct_pair_wait(&trig->pair, &chain.is_destroyed, 1);
    CU_ASSERT(trig_count(trig, trig->completion) == 6);
}

ST_SUITE("trig_op")
