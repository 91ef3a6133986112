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


/* Run the body of a case, where counters have trigger pages */
static void doorbell_run(void (*body)(trig_t *trig,
                                      volatile uint64_t *doorbell))
{
    volatile uint64_t *doorbell;
    trig_t trig;

    CU_ASSERT_FATAL(trig_create(&trig, NULL) == 0);
    doorbell = uct_trig_cntr_doorbell(trig.trigger);
    if (doorbell != NULL) {
        body(&trig, doorbell);
    } else {
        st_cunit_skip("the provider has no trigger page");
    }
    trig_destroy(&trig);
}

#define DOORBELL_CASE(_name) \
    static void st_body_##_name(trig_t *trig, volatile uint64_t *doorbell); \
    ST_CASE_CALL(_name, doorbell_run(st_body_##_name)) \
    static void st_body_##_name(trig_t *trig, volatile uint64_t *doorbell)

/* The stream starts one operation */
static void start(ucs_gstream_h stream, volatile uint64_t *doorbell)
{
    CU_ASSERT(ucs_gstream_enqueue_write64(stream, doorbell, 1) == UCS_OK);
}

/* Two stores with nothing in between are two */
DOORBELL_CASE(two)
{
    ucs_gstream_h stream = gstream_util_create();

    trig_put(trig, 0, 2, NULL);
    start(stream, doorbell);
    start(stream, doorbell);
    gstream_util_finish(stream);
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(trig_arrived(trig, 0));
    CU_ASSERT(trig_count(trig, trig->trigger) == 2);
}

/* Operations that are started one by one, with nothing in between */
DOORBELL_CASE(one_by_one)
{
    ucs_gstream_h stream;
    unsigned i;

    stream = gstream_util_create();
    for (i = 0; i < TRIG_SLOTS; ++i) {
        trig_put(trig, i, 1 + i, NULL);
    }
    for (i = 0; i < TRIG_SLOTS; ++i) {
        start(stream, doorbell);
    }
    gstream_util_finish(stream);
    uct_pair_wait(&trig->pair, &trig->done, TRIG_SLOTS);
    for (i = 0; i < TRIG_SLOTS; ++i) {
        CU_ASSERT(trig_arrived(trig, i));
    }
    CU_ASSERT(trig_count(trig, trig->trigger) == TRIG_SLOTS);
}

DOORBELL_CASE(streams)
{
    ucs_gstream_h streams[STREAMS];
    int i, j;

    trig_put(trig, 0, STREAMS * STORES, NULL);
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
    uct_pair_wait(&trig->pair, &trig->done, 1);
    CU_ASSERT(trig_count(trig, trig->trigger) == STREAMS * STORES);
}

/* A stream goes on when what it started is complete, with no call of the host
 * in between: a chained atomic writes the word that it waits for */
DOORBELL_CASE(chain)
{
    ucs_gstream_h stream;
    unsigned i;

    stream = gstream_util_create();
    for (i = 0; i < TRIG_SLOTS; ++i) {
        trig_put(trig, i, 1 + i, NULL);
        trig_add_word(trig, trig->completion, 1 + i, NULL);
    }
    for (i = 0; i < TRIG_SLOTS; ++i) {
        start(stream, doorbell);
        CU_ASSERT(ucs_gstream_enqueue_wait64(stream, &trig->a_word, 1 + i) ==
                  UCS_OK);
    }
    CU_ASSERT(ucs_gstream_synchronize(stream) == UCS_OK);
    CU_ASSERT(trig->a_word == TRIG_SLOTS);
    for (i = 0; i < TRIG_SLOTS; ++i) {
        CU_ASSERT(trig_arrived(trig, i));
    }
    uct_pair_wait(&trig->pair, &trig->done, 2 * TRIG_SLOTS);
    gstream_util_finish(stream);
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
DOORBELL_CASE(computes)
{
    ucs_gstream_h stream;
    unsigned i;

    stream = gstream_util_create();
    for (i = 0; i < 2; ++i) {
        trig_put(trig, i, 1 + i, NULL);
        trig_add_word(trig, trig->completion, 1 + i, NULL);
    }
    start(stream, doorbell);
    CU_ASSERT(ucs_gstream_enqueue_wait64(stream, &trig->a_word, 1) == UCS_OK);
    start(stream, doorbell);
    CU_ASSERT(ucs_gstream_enqueue_func(stream, compute_until, trig) == UCS_OK);
    CU_ASSERT(ucs_gstream_synchronize(stream) == UCS_OK);
    CU_ASSERT(trig_arrived(trig, 1));
    uct_pair_wait(&trig->pair, &trig->done, 4);
    gstream_util_finish(stream);
}

/* Work waits for a store that does not come: stores of streams are told of, and
 * nobody looks for them meanwhile */
DOORBELL_CASE(idle)
{
    unsigned long sleeps;

    trig_put(trig, 0, 1, NULL);
    gstream_util_pass_time(100);
    sleeps = st_cunit_sleeps("cxiemu");
    gstream_util_pass_time(1000);
    CU_ASSERT(st_cunit_sleeps("cxiemu") - sleeps <= 30);
    uct_trig_cntr_add(trig->trigger, 1);
    uct_pair_wait(&trig->pair, &trig->done, 1);
}

ST_SUITE("trig_doorbell")
