/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gstream_sleep.c - what streams wait for, how they sleep and wake up. */
#include "gstream_util.h"
#include "st_cunit.h"

#include <sched.h>

#define TEST_SLEEPERS      20
#define TEST_SYNCHRONIZERS 6
#define TEST_MESSAGES      3000


static void test_set(void *arg)
{
    __atomic_store_n((int*)arg, 1, __ATOMIC_RELEASE);
}

static int test_is_set(int *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}


/* A wait passes at its value and above, as unsigned numbers */

typedef struct {
    uint64_t value; /* Waited for */
    uint64_t below; /* Does not let it pass */
    uint64_t enough;
} test_value_t;

static void test_wait_value(ucs_gstream_h stream, const test_value_t *value)
{
    volatile uint64_t word = value->below;
    int passed             = 0;

    gstream_util_wait(stream, &word, value->value);
    gstream_util_func(stream, test_set, &passed);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(stream, 0.005),
                    UCS_INPROGRESS);
    CU_ASSERT_FALSE(test_is_set(&passed));

    gstream_util_let_go(&word, value->enough);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT(test_is_set(&passed));
    CU_ASSERT_EQUAL(word, value->enough);
}

GSTREAM_CASE(wait_values)
{
    static const test_value_t values[] = {
        {1, 0, 1},
        {5, 4, 6},
        {1ull << 32, UINT32_MAX, 1ull << 32},
        {1ull << 62, (1ull << 62) - 1, 1ull << 62},
        {(1ull << 62) + 1, 1ull << 62, 1ull << 63},
        {1ull << 63, INT64_MAX, 1ull << 63},
        {7, 6, UINT64_MAX},
        {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX}
    };
    volatile uint64_t word = 1ull << 63;
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(values); ++i) {
        test_wait_value(stream, &values[i]);
    }

    /* True from the start */
    gstream_util_wait(stream, &word, 5);
    gstream_util_wait(stream, &word, 1ull << 63);
    gstream_util_wait(stream, &word, 0);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
}


/* Ways to end a sleeping wait: the host or a stream stores enough, also where
 * no call says so */

static void test_asleep_on(gstream_util_t *util, volatile uint64_t *word,
                           uint64_t value)
{
    gstream_util_wait(util->stream, word, value);
    gstream_util_until_asleep(util->tid);
    CU_ASSERT_EQUAL(ucs_gstream_query(util->stream), UCS_INPROGRESS);
}

ST_CASE(wake)
{
    ucs_gstream_h writer   = gstream_util_create();
    volatile uint64_t word = 0;
    gstream_util_t util;

    gstream_util_open(&util);
    test_asleep_on(&util, &word, 2);
    gstream_util_let_go(&word, 1);
    gstream_util_until_asleep(util.tid);
    CU_ASSERT_EQUAL(ucs_gstream_query(util.stream), UCS_INPROGRESS);
    gstream_util_let_go(&word, 2);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(util.stream), UCS_OK);

    test_asleep_on(&util, &word, 9);
    gstream_util_write(writer, &word, 9);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(util.stream), UCS_OK);

    test_asleep_on(&util, &word, 10);
    gstream_util_store(&word, 10); /* without a call */
    gstream_util_finish(util.stream);
    gstream_util_finish(writer);
}

/* Sleepers on one word and on many others, woken by one batch. */
ST_CASE(wake_many)
{
    volatile uint64_t words[TEST_SLEEPERS] = {0};
    ucs_gstream_cmd_t cmds[TEST_SLEEPERS];
    gstream_util_t sleepers[TEST_SLEEPERS];
    ucs_gstream_h writer = gstream_util_create();
    unsigned i;

    for (i = 0; i < TEST_SLEEPERS; ++i) {
        gstream_util_open(&sleepers[i]);
        test_asleep_on(&sleepers[i], &words[i / 2], 100 + (i / 2));
        cmds[i].type           = UCS_GSTREAM_CMD_WRITE64;
        cmds[i].u.word.address = &words[i];
        cmds[i].u.word.value   = 100 + i;
    }

    CU_ASSERT_EQUAL(ucs_gstream_enqueue(writer, cmds, TEST_SLEEPERS), UCS_OK);
    for (i = 0; i < TEST_SLEEPERS; ++i) {
        gstream_util_finish(sleepers[i].stream);
    }
    gstream_util_finish(writer);
}


/* Sleeping costs next to nothing */

ST_CASE(sleep_cost)
{
    volatile uint64_t word = 0;
    gstream_util_t util;

    gstream_util_open(&util);
    gstream_util_check_sleep(&util, 0);
    gstream_util_wait(util.stream, &word, 1);
    gstream_util_check_sleep(&util, 1);
    CU_ASSERT_EQUAL(ucs_gstream_query(util.stream), UCS_INPROGRESS);
    gstream_util_let_go(&word, 1);
    gstream_util_finish(util.stream);
}


/* Synchronize waits for what was enqueued before it, and no more */

GSTREAM_CASE(sync_prefix)
{
    volatile uint64_t step = 0;
    gstream_util_waiter_t waiters[TEST_SYNCHRONIZERS] = {{0}};
    unsigned i;

    for (i = 0; i < TEST_SYNCHRONIZERS; ++i) {
        gstream_util_wait(stream, &step, i + 1);
        waiters[i].stream = stream;
        gstream_util_waiter_start(&waiters[i]);
    }

    /* Each returns while the stream is blocked by the next command */
    for (i = 0; i < TEST_SYNCHRONIZERS; ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_INPROGRESS);
        gstream_util_let_go(&step, i + 1);
        gstream_util_waiter_join(&waiters[i]);
    }

    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_OK);
}


/* What came before a word's store is seen after the wait, and the other way */

typedef struct {
    volatile uint64_t ready;    /* Stored by the host */
    volatile uint64_t consumed; /* Stored by the stream */
    uint64_t          payload;  /* Plain memory, owned as the words say */
    uint64_t          errors;
    uint64_t          received;
} test_message_t;

static void test_message_receive(void *arg)
{
    test_message_t *message = arg;

    ++message->received;
    if (message->payload != (message->received * 3)) {
        ++message->errors;
    }
    message->payload = 0;
}

static void test_message_enqueue(ucs_gstream_h stream, test_message_t *message,
                                 uint64_t number)
{
    ucs_gstream_cmd_t cmds[3] = {
        {.type   = UCS_GSTREAM_CMD_WAIT64,
         .u.word = {&message->ready, number}},
        {.type   = UCS_GSTREAM_CMD_FUNC,
         .u.func = {test_message_receive, message}},
        {.type   = UCS_GSTREAM_CMD_WRITE64,
         .u.word = {&message->consumed, number}}
    };

    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, cmds, 3), UCS_OK);
}

ST_CASE(messages)
{
    ucs_gstream_h stream   = gstream_util_create();
    test_message_t message = {0};
    uint64_t number;

    for (number = 1; number <= TEST_MESSAGES; ++number) {
        test_message_enqueue(stream, &message, number);
    }

    for (number = 1; number <= TEST_MESSAGES; ++number) {
        CU_ASSERT_EQUAL(message.payload, 0);
        message.payload = number * 3;
        gstream_util_let_go(&message.ready, number);
        while (gstream_util_load(&message.consumed) < number) {
            sched_yield();
        }
    }

    gstream_util_finish(stream);
    CU_ASSERT_EQUAL(message.errors, 0);
    CU_ASSERT_EQUAL(message.received, TEST_MESSAGES);
}

ST_SUITE("gstream_sleep")
