/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gstream.c - what streams run, and in which order. */
#include "gstream_util.h"
#include "st_cunit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define TEST_MIXED_ROUNDS   25000
#define TEST_PRODUCERS      4
#define TEST_BATCHES        2000
#define TEST_BATCH_MAX      7
#define TEST_RUN_AHEAD      1000000
#define TEST_RUN_AHEAD_STEP 1000

/* Commands of all kinds run in the order in which they were enqueued */

typedef struct {
    volatile uint64_t word;   /* Written by the stream, then copied */
    uint64_t          copied;
    uint64_t          rounds; /* That the checking function has seen */
    uint64_t          errors;
} test_mixed_t;

/* Runs last in a round: the round's store and copy, and no later ones, have
 * run. */
static void test_mixed_check(void *arg)
{
    test_mixed_t *mixed = arg;

    ++mixed->rounds;
    if ((mixed->word != mixed->rounds) || (mixed->copied != mixed->rounds)) {
        ++mixed->errors;
    }
}

static void test_mixed_enqueue(ucs_gstream_h stream, test_mixed_t *mixed,
                               uint64_t round)
{
    gstream_util_write(stream, &mixed->word, round);
    gstream_util_wait(stream, &mixed->word, round);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_copy(stream, &mixed->copied,
                                             (const void*)&mixed->word,
                                             sizeof(mixed->copied)),
                    UCS_OK);
    gstream_util_func(stream, test_mixed_check, mixed);
}

ST_CASE(fifo_mixed)
{
    ucs_gstream_h stream = gstream_util_create();
    test_mixed_t mixed   = {0};
    uint64_t round;

    for (round = 1; round <= TEST_MIXED_ROUNDS; ++round) {
        test_mixed_enqueue(stream, &mixed, round);
    }

    gstream_util_finish(stream);
    CU_ASSERT_EQUAL(mixed.rounds, TEST_MIXED_ROUNDS);
    CU_ASSERT_EQUAL(mixed.errors, 0);
}


/* Batches of several producers are complete, in order, and not interleaved */

typedef struct {
    unsigned producer;
    unsigned batch;
    unsigned index;
    unsigned count;
    void     *log;
} test_mark_t;

/* What the stream has seen; its thread only. */
typedef struct {
    unsigned next_batch[TEST_PRODUCERS];
    unsigned open_producer; /* Of the batch that is not over; or none */
    unsigned next_index;
    uint64_t errors;
} test_log_t;

typedef struct {
    pthread_t     thread;
    ucs_gstream_h stream;
    unsigned      id;
    test_log_t    *log;
    test_mark_t   marks[TEST_BATCHES][TEST_BATCH_MAX];
    unsigned      failures;
} test_producer_t;

static void test_mark_run(void *arg)
{
    test_mark_t *mark = arg;
    test_log_t *log   = mark->log;

    if ((mark->index != log->next_index) ||
        (mark->batch != log->next_batch[mark->producer]) ||
        ((mark->index > 0) && (mark->producer != log->open_producer))) {
        ++log->errors;
    }

    log->open_producer = mark->producer;
    log->next_index    = mark->index + 1;
    if (log->next_index == mark->count) {
        log->next_index = 0;
        ++log->next_batch[mark->producer];
    }
}

static void test_producer_batch(test_producer_t *producer, unsigned batch,
                                unsigned count)
{
    ucs_gstream_cmd_t cmds[TEST_BATCH_MAX];
    unsigned i;

    for (i = 0; i < count; ++i) {
        producer->marks[batch][i] = (test_mark_t){
            .producer = producer->id,
            .batch    = batch,
            .index    = i,
            .count    = count,
            .log      = producer->log
        };
        cmds[i] = gstream_util_cmd_func(test_mark_run,
                                        &producer->marks[batch][i]);
    }

    if (ucs_gstream_enqueue(producer->stream, cmds, count) != UCS_OK) {
        ++producer->failures;
    }
}

static void *test_producer_main(void *arg)
{
    test_producer_t *producer = arg;
    unsigned batch;

    for (batch = 0; batch < TEST_BATCHES; ++batch) {
        test_producer_batch(producer, batch,
                            1 + ((batch + producer->id) % TEST_BATCH_MAX));
    }

    return NULL;
}

ST_CASE(producers)
{
    test_producer_t *producers = calloc(TEST_PRODUCERS, sizeof(*producers));
    ucs_gstream_h stream       = gstream_util_create();
    test_log_t log             = {
        .open_producer = TEST_PRODUCERS
    };
    unsigned i;

    CU_ASSERT_PTR_NOT_NULL_FATAL(producers);
    for (i = 0; i < TEST_PRODUCERS; ++i) {
        producers[i].stream = stream;
        producers[i].id     = i;
        producers[i].log    = &log;
        CU_ASSERT_EQUAL_FATAL(pthread_create(&producers[i].thread, NULL,
                                             test_producer_main, &producers[i]),
                              0);
    }

    for (i = 0; i < TEST_PRODUCERS; ++i) {
        pthread_join(producers[i].thread, NULL);
        CU_ASSERT_EQUAL(producers[i].failures, 0);
    }

    gstream_util_finish(stream);
    CU_ASSERT_EQUAL(log.errors, 0);
    for (i = 0; i < TEST_PRODUCERS; ++i) {
        CU_ASSERT_EQUAL(log.next_batch[i], TEST_BATCHES);
    }
    free(producers);
}


/* Copies */

static void test_copy_length(ucs_gstream_h stream, size_t length)
{
    unsigned char *src = malloc(length + 1);
    unsigned char *dst = malloc(length + 1);
    size_t i;

    CU_ASSERT_FATAL((src != NULL) && (dst != NULL));
    for (i = 0; i <= length; ++i) {
        src[i] = (unsigned char)((i * 7) + (i >> 8));
        dst[i] = (unsigned char)~src[i];
    }

    CU_ASSERT_EQUAL(ucs_gstream_enqueue_copy(stream, dst, src, length), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT_EQUAL(memcmp(dst, src, length), 0);
    CU_ASSERT_NOT_EQUAL(dst[length], src[length]);
    free(src);
    free(dst);
}

GSTREAM_CASE(copy)
{
    test_copy_length(stream, 0);
    test_copy_length(stream, 1);
    test_copy_length(stream, 4099);
    test_copy_length(stream, (1 << 20) + 3);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_copy(stream, NULL, NULL, 0), UCS_OK);
}


/* The host may run ahead of a blocked stream as far as it likes */

ST_CASE(run_ahead)
{
    ucs_gstream_h stream   = gstream_util_create();
    volatile uint64_t gate = 0;
    uint64_t runs          = 0;
    ucs_gstream_cmd_t cmds[TEST_RUN_AHEAD_STEP];
    unsigned i;

    for (i = 0; i < TEST_RUN_AHEAD_STEP; ++i) {
        cmds[i] = gstream_util_cmd_func(gstream_util_count, &runs);
    }

    gstream_util_wait(stream, &gate, 1);
    for (i = 0; i < (TEST_RUN_AHEAD / TEST_RUN_AHEAD_STEP); ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, cmds, TEST_RUN_AHEAD_STEP),
                        UCS_OK);
    }

    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(stream, 0), UCS_INPROGRESS);
    gstream_util_let_go(&gate, 1);
    gstream_util_finish(stream);
    CU_ASSERT_EQUAL(runs, TEST_RUN_AHEAD);
}

ST_SUITE("gstream")
