/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_trig_doorbell.c - counters that host streams add to by a store to the
 * trigger page.
 */
#include "gstream_util.h"
#include "trig_util.h"

#include <sched.h>

#define STREAMS 4
#define STORES  500


/* 0 if the case is skipped, and nothing is left to destroy */
static int create(trig_t *trig, volatile uint64_t **doorbell_p)
{
    CU_ASSERT_FATAL(trig_create(trig, NULL) == 0);
    *doorbell_p = uct_trig_cntr_doorbell(trig->trigger);
    if (*doorbell_p != NULL) {
        return 1;
    }

    trig_destroy(trig);
    st_cunit_skip("the provider has no trigger page");
    return 0;
}

/* The stream starts one operation */
static void start(ucs_gstream_h stream, volatile uint64_t *doorbell)
{
    CU_ASSERT(ucs_gstream_enqueue_write64(stream, doorbell, 1) == UCS_OK);
}

/* Two stores with nothing in between are two */
ST_CASE(two)
{
    volatile uint64_t *doorbell;
    ucs_gstream_h stream;
    trig_t trig;

    if (!create(&trig, &doorbell)) {
        return;
    }
    stream = gstream_util_create();
    trig_put(&trig, 0, 2, NULL);
    start(stream, doorbell);
    start(stream, doorbell);
    gstream_util_finish(stream);
    uct_pair_wait(&trig.pair, &trig.done, 1);
    CU_ASSERT(trig_arrived(&trig, 0));
    CU_ASSERT(trig_count(&trig, trig.trigger) == 2);
    trig_destroy(&trig);
}

/* Operations that are started one by one, with nothing in between */
ST_CASE(one_by_one)
{
    volatile uint64_t *doorbell;
    ucs_gstream_h stream;
    trig_t trig;
    unsigned i;

    if (!create(&trig, &doorbell)) {
        return;
    }
    stream = gstream_util_create();
    for (i = 0; i < TRIG_SLOTS; ++i) {
        trig_put(&trig, i, 1 + i, NULL);
    }
    for (i = 0; i < TRIG_SLOTS; ++i) {
        start(stream, doorbell);
    }
    gstream_util_finish(stream);
    uct_pair_wait(&trig.pair, &trig.done, TRIG_SLOTS);
    for (i = 0; i < TRIG_SLOTS; ++i) {
        CU_ASSERT(trig_arrived(&trig, i));
    }
    CU_ASSERT(trig_count(&trig, trig.trigger) == TRIG_SLOTS);
    trig_destroy(&trig);
}

ST_CASE(streams)
{
    ucs_gstream_h streams[STREAMS];
    volatile uint64_t *doorbell;
    trig_t trig;
    int i, j;

    if (!create(&trig, &doorbell)) {
        return;
    }
    trig_put(&trig, 0, STREAMS * STORES, NULL);
    for (i = 0; i < STREAMS; ++i) {
        streams[i] = gstream_util_create();
    }
    for (j = 0; j < STORES; ++j) {
        for (i = 0; i < STREAMS; ++i) {
            start(streams[i], doorbell);
        }
    }
    for (i = 0; i < STREAMS; ++i) {
        gstream_util_finish(streams[i]);
    }
    uct_pair_wait(&trig.pair, &trig.done, 1);
    CU_ASSERT(trig_count(&trig, trig.trigger) == STREAMS * STORES);
    trig_destroy(&trig);
}

/* A stream goes on when what it started is complete, with no call of the host
 * in between: a chained atomic writes the word that it waits for */
ST_CASE(chain)
{
    volatile uint64_t *doorbell;
    ucs_gstream_h stream;
    trig_t trig;
    unsigned i;

    if (!create(&trig, &doorbell)) {
        return;
    }
    stream = gstream_util_create();
    for (i = 0; i < TRIG_SLOTS; ++i) {
        trig_put(&trig, i, 1 + i, NULL);
        trig_add_word(&trig, trig.completion, 1 + i, NULL);
    }
    for (i = 0; i < TRIG_SLOTS; ++i) {
        start(stream, doorbell);
        CU_ASSERT(ucs_gstream_enqueue_wait64(stream, &trig.a_word, 1 + i) ==
                  UCS_OK);
    }
    CU_ASSERT(ucs_gstream_synchronize(stream) == UCS_OK);
    CU_ASSERT(trig.a_word == TRIG_SLOTS);
    for (i = 0; i < TRIG_SLOTS; ++i) {
        CU_ASSERT(trig_arrived(&trig, i));
    }
    uct_pair_wait(&trig.pair, &trig.done, 2 * TRIG_SLOTS);
    gstream_util_finish(stream);
    trig_destroy(&trig);
}

static void compute_until(void *arg)
{
    const trig_t *trig = arg;

    while (__atomic_load_n(&trig->a_word, __ATOMIC_ACQUIRE) < 2) {
        sched_yield();
    }
}

/* The cards of both sides go on while the stream computes, which has just
 * waited and so polled for them, and no thread of the host calls anything */
ST_CASE(computes)
{
    volatile uint64_t *doorbell;
    ucs_gstream_h stream;
    trig_t trig;
    unsigned i;

    if (!create(&trig, &doorbell)) {
        return;
    }
    stream = gstream_util_create();
    for (i = 0; i < 2; ++i) {
        trig_put(&trig, i, 1 + i, NULL);
        trig_add_word(&trig, trig.completion, 1 + i, NULL);
    }
    start(stream, doorbell);
    CU_ASSERT(ucs_gstream_enqueue_wait64(stream, &trig.a_word, 1) == UCS_OK);
    start(stream, doorbell);
    CU_ASSERT(ucs_gstream_enqueue_func(stream, compute_until, &trig) == UCS_OK);
    CU_ASSERT(ucs_gstream_synchronize(stream) == UCS_OK);
    CU_ASSERT(trig_arrived(&trig, 1));
    uct_pair_wait(&trig.pair, &trig.done, 4);
    gstream_util_finish(stream);
    trig_destroy(&trig);
}

ST_SUITE("trig_doorbell")
