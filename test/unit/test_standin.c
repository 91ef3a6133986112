/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_standin.c - the stand-ins of GPU runtimes: what they do, and what they
 * refuse. Settings, faults and processes are in test_standin_set.c.
 */
#include "standin_util.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST_BYTES 4096
#define TEST_WORDS (TEST_BYTES / 8)


typedef struct {
    const rt_t        *rt;
    void              *stream;
    volatile uint64_t *words; /* The first one is the gate */
} test_t;

static test_t test_open(const rt_t *rt)
{
    return (test_t){
        .rt     = rt,
        .stream = rt_stream(rt),
        .words  = rt_host_alloc(rt, TEST_BYTES)
    };
}

static uint64_t test_load(const test_t *test, unsigned i)
{
    return __atomic_load_n(&test->words[i], __ATOMIC_ACQUIRE);
}

static void test_store(const test_t *test, unsigned i, uint64_t value)
{
    __atomic_store_n(&test->words[i], value, __ATOMIC_RELEASE);
}

static void *test_word(const test_t *test, unsigned i)
{
    return (void*)(uintptr_t)&test->words[i];
}

/* The stream stops there until test_go() */
static void test_gate(const test_t *test, void *stream)
{
    CU_ASSERT_EQUAL(rt_wait(test->rt, stream, test_word(test, 0), 1, RT_GEQ),
                    RT_OK);
}

static void test_go(const test_t *test)
{
    test_store(test, 0, 1);
}

static void test_close(const test_t *test)
{
    CU_ASSERT_EQUAL(rt_sync(test->rt, test->stream), RT_OK);
    CU_ASSERT_EQUAL(rt_stream_destroy(test->rt, test->stream), RT_OK);
    CU_ASSERT_EQUAL(rt_host_free(test->rt, test_word(test, 0)), RT_OK);
}

/* Streams and memory operations */

RT_CASE(order)
{
    test_t test             = test_open(rt);
    standin_counts_t before = rt_counts(rt);
    standin_counts_t after;
    unsigned i;

    test_gate(&test, test.stream);
    for (i = 1; i <= 100; ++i) {
        CU_ASSERT_EQUAL(rt_write(rt, test.stream, test_word(&test, 1), i),
                        RT_OK);
    }
    CU_ASSERT_EQUAL(rt_query(rt, test.stream), RT_NOT_READY);
    CU_ASSERT_EQUAL(test_load(&test, 1), 0);
    test_go(&test);
    CU_ASSERT_EQUAL(rt_sync(rt, test.stream), RT_OK);
    CU_ASSERT_EQUAL(test_load(&test, 1), 100);
    CU_ASSERT_EQUAL(rt_query(rt, test.stream), RT_OK);
    after = rt_counts(rt);
    CU_ASSERT_EQUAL(after.writes - before.writes, 100);
    CU_ASSERT_EQUAL(after.waits - before.waits, 1);
    CU_ASSERT_EQUAL(after.batches, before.batches);
    CU_ASSERT_EQUAL(after.calls - before.calls, 104);
    test_close(&test);
}

/* A wait that is not over, until the word has a value */
static void test_wait_for(const test_t *test, uint64_t from, uint64_t value,
                          unsigned flags, uint64_t to)
{
    test_store(test, 1, from);
    CU_ASSERT_EQUAL(rt_wait(test->rt, test->stream, test_word(test, 1), value,
                            flags), RT_OK);
    CU_ASSERT_EQUAL(rt_query(test->rt, test->stream), RT_NOT_READY);
    usleep(300); /* Gives a wrong wait the time to end */
    CU_ASSERT_EQUAL(rt_query(test->rt, test->stream), RT_NOT_READY);
    test_store(test, 1, to);
    CU_ASSERT_EQUAL(rt_sync(test->rt, test->stream), RT_OK);
}

/* One that is over at once */
static void test_wait_none(const test_t *test, uint64_t word, uint64_t value,
                           unsigned flags)
{
    test_store(test, 1, word);
    CU_ASSERT_EQUAL(rt_wait(test->rt, test->stream, test_word(test, 1), value,
                            flags), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(test->rt, test->stream), RT_OK);
}

RT_CASE(conditions)
{
    test_t test = test_open(rt);

    test_wait_for(&test, 4, 5, RT_GEQ, 5);
    test_wait_none(&test, 6, 5, RT_GEQ);
    test_wait_for(&test, 6, 5, RT_EQ, 5);
    test_wait_for(&test, 8, 5, RT_AND, 12);
    test_wait_for(&test, UINT64_MAX - 4, 4, RT_NOR, 8);
    if (rt->is_hip) {
        test_wait_for(&test, 1, UINT64_MAX, RT_GEQ, UINT64_MAX);
        test_store(&test, 1, 0x15);
        CU_ASSERT_EQUAL(rt->hip.hipStreamWaitValue64(
                            test.stream, test_word(&test, 1), 5, RT_EQ, 0xf),
                        RT_OK);
        CU_ASSERT_EQUAL(rt_sync(rt, test.stream), RT_OK);
    } else { /* In a circle */
        test_wait_none(&test, 1, UINT64_MAX, RT_GEQ);
        test_wait_for(&test, UINT64_MAX, 1, RT_GEQ, 2);
        test_wait_none(&test, 5, 5, RT_GEQ | 1u << 30); /* FLUSH */
    }
    test_close(&test);
}

RT_CASE(words_of_4_bytes)
{
    test_t test    = test_open(rt);
    uint32_t *half = (uint32_t*)test_word(&test, 2) + 1;

    CU_ASSERT_EQUAL(rt_wait32(rt, test.stream, half, 7, RT_GEQ), RT_OK);
    CU_ASSERT_EQUAL(rt_write32(rt, test.stream, half - 1, 3), RT_OK);
    __atomic_store_n(half, 7, __ATOMIC_RELEASE);
    CU_ASSERT_EQUAL(rt_sync(rt, test.stream), RT_OK);
    CU_ASSERT_EQUAL(test_load(&test, 2), 7ull << 32 | 3);
    test_close(&test);
}

RT_CASE(operations_are_checked)
{
    test_t test        = test_open(rt);
    char *word         = test_word(&test, 1);
    uint64_t on_stack  = 0;
    char *end          = (char*)test_word(&test, TEST_WORDS - 1) + 8;

    CU_ASSERT_EQUAL(rt_write(rt, test.stream, word + 4, 1), RT_INVALID);
    CU_ASSERT_EQUAL(rt_wait(rt, test.stream, word + 1, 1, RT_GEQ), RT_INVALID);
    CU_ASSERT_EQUAL(rt_write32(rt, test.stream, word + 2, 1), RT_INVALID);
    CU_ASSERT_EQUAL(rt_write(rt, test.stream, &on_stack, 1), RT_INVALID);
    CU_ASSERT_EQUAL(rt_wait(rt, test.stream, &on_stack, 0, RT_GEQ),
                    RT_INVALID);
    CU_ASSERT_EQUAL(rt_write(rt, test.stream, end, 1), RT_INVALID);
    CU_ASSERT_EQUAL(rt_write(rt, test.stream, NULL, 1), RT_INVALID);
    CU_ASSERT_EQUAL(rt_wait(rt, test.stream, word, 0, 4), RT_INVALID);
    CU_ASSERT_EQUAL(rt_write(rt, &on_stack, word, 1), RT_HANDLE);
    CU_ASSERT_EQUAL(rt_query(rt, test.stream), RT_OK);
    CU_ASSERT_EQUAL(on_stack, 0);
    test_close(&test);
}

RT_CASE_SET(batch, "", "STANDIN_VERSION=60443484")
{
    test_t test             = test_open(rt);
    standin_counts_t before = rt_counts(rt);
    standin_counts_t after;
    uint64_t word           = (uintptr_t)test_word(&test, 1);
    standin_batch_op_t ops[] = {
        {.op = RT_OP_WRITE64, .address = word, .value = 1},
        {.op = RT_OP_BARRIER},
        {.op = RT_OP_WAIT64, .address = word + 8, .value = 2, .flags = RT_EQ},
        {.op = RT_OP_FLUSH},
        {.op = RT_OP_WRITE32, .address = word, .value = 3},
        {.op = RT_OP_WAIT32, .address = word, .value = 3}
    };

    CU_ASSERT_EQUAL(rt_batch(rt, test.stream, 6, ops), RT_OK);
    CU_ASSERT_EQUAL(rt_wait(rt, test.stream, test_word(&test, 1), 3, RT_GEQ),
                    RT_OK);
    CU_ASSERT_EQUAL(rt_query(rt, test.stream), RT_NOT_READY);
    test_store(&test, 2, 2);
    CU_ASSERT_EQUAL(rt_sync(rt, test.stream), RT_OK);
    CU_ASSERT_EQUAL(test_load(&test, 1), 3);
    after = rt_counts(rt);
    CU_ASSERT_EQUAL(after.batches - before.batches, 1);
    CU_ASSERT_EQUAL(after.writes - before.writes, 2);
    CU_ASSERT_EQUAL(after.waits - before.waits, 3);

    /* All or nothing */
    ops[5].op = 9;
    CU_ASSERT_EQUAL(rt_batch(rt, test.stream, 6, ops), RT_INVALID);
    ops[5].op      = RT_OP_WAIT32;
    ops[5].address = word + 2;
    ops[0].value   = 77;
    CU_ASSERT_EQUAL(rt_batch(rt, test.stream, 6, ops), RT_INVALID);
    CU_ASSERT_EQUAL(rt_query(rt, test.stream), RT_OK);
    CU_ASSERT_EQUAL(test_load(&test, 1), 3);
    test_close(&test);
}

RT_CASE(priorities)
{
    void *stream = NULL;
    int least, greatest, priority;

    CU_ASSERT_EQUAL(rt->is_hip ?
                    rt->hip.hipDeviceGetStreamPriorityRange(&least,
                                                            &greatest) :
                    rt->cu.cuCtxGetStreamPriorityRange(&least, &greatest),
                    RT_OK);
    CU_ASSERT(greatest < least);
    CU_ASSERT_EQUAL(rt_stream_create(rt, 0, greatest, &stream), RT_OK);
    CU_ASSERT_EQUAL(rt_stream_priority(rt, stream, &priority), RT_OK);
    CU_ASSERT_EQUAL(priority, greatest);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, stream), RT_OK);
    CU_ASSERT_EQUAL(rt_stream_create(rt, 0, greatest - 1, &stream), RT_OK);
    CU_ASSERT_EQUAL(rt_stream_priority(rt, stream, &priority), RT_OK);
    CU_ASSERT_EQUAL(priority, greatest);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, stream), RT_OK);
    CU_ASSERT_EQUAL(rt_stream_create(rt, 2, 0, &stream), RT_INVALID);
}

/* A stream may go before its work is done; its handle is none any more */
RT_CASE(destroyed_early)
{
    test_t test  = test_open(rt);
    void *stream = rt_stream(rt);

    test_gate(&test, stream);
    CU_ASSERT_EQUAL(rt_write(rt, stream, test_word(&test, 1), 9), RT_OK);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, stream), RT_OK);
    CU_ASSERT_EQUAL(rt_query(rt, stream), RT_HANDLE);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, stream), RT_HANDLE);
    CU_ASSERT_EQUAL(rt_wait(rt, test.stream, test_word(&test, 1), 9, RT_EQ),
                    RT_OK);
    CU_ASSERT_EQUAL(rt_query(rt, test.stream), RT_NOT_READY);
    test_go(&test);
    CU_ASSERT_EQUAL(rt_sync(rt, test.stream), RT_OK);
    test_close(&test);
}

/* Default streams: the legacy one and the blocking ones wait for each other */
RT_CASE(legacy_stream)
{
    test_t test    = test_open(rt); /* Its stream does not block */
    void *blocking = NULL;

    CU_ASSERT_EQUAL(rt_stream_create(rt, 0, 0, &blocking), RT_OK);
    test_gate(&test, blocking);
    CU_ASSERT_EQUAL(rt_write(rt, blocking, test_word(&test, 1), 1), RT_OK);
    CU_ASSERT_EQUAL(rt_write(rt, NULL, test_word(&test, 1), 2), RT_OK);
    CU_ASSERT_EQUAL(rt_write(rt, blocking, test_word(&test, 1), 3), RT_OK);
    CU_ASSERT_EQUAL(rt_write(rt, (void*)1, test_word(&test, 2), 4), RT_OK);
    CU_ASSERT_EQUAL(rt_write(rt, (void*)2, test_word(&test, 3), 5), RT_OK);
    CU_ASSERT_EQUAL(rt_write(rt, test.stream, test_word(&test, 4), 6), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, test.stream), RT_OK);
    CU_ASSERT_EQUAL(test_load(&test, 4), 6);
    CU_ASSERT_EQUAL(rt_query(rt, NULL), RT_NOT_READY);
    CU_ASSERT_EQUAL(rt_query(rt, (void*)2), RT_NOT_READY);
    test_go(&test);
    CU_ASSERT_EQUAL(rt_sync_all(rt), RT_OK);
    CU_ASSERT_EQUAL(test_load(&test, 1), 3);
    CU_ASSERT_EQUAL(test_load(&test, 2), 4);
    CU_ASSERT_EQUAL(test_load(&test, 3), 5);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, blocking), RT_OK);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, NULL), RT_HANDLE);
    test_close(&test);
}

/* Each thread has a default stream of its own */
static void *test_thread_stream(void *arg)
{
    const test_t *test = arg;

    if ((rt_set_device(test->rt, 0) != RT_OK) ||
        (rt_write(test->rt, (void*)2, test_word(test, 1), 1) != RT_OK) ||
        (rt_sync(test->rt, (void*)2) != RT_OK)) {
        return NULL;
    }
    return arg;
}

RT_CASE(stream_of_a_thread)
{
    test_t test  = test_open(rt);
    void *result = NULL;
    pthread_t thread;

    test_gate(&test, (void*)2);
    CU_ASSERT_EQUAL(pthread_create(&thread, NULL, test_thread_stream, &test),
                    0);
    CU_ASSERT_EQUAL(pthread_join(thread, &result), 0);
    CU_ASSERT_PTR_EQUAL(result, &test);
    CU_ASSERT_EQUAL(test_load(&test, 1), 1);
    CU_ASSERT_EQUAL(rt_query(rt, (void*)2), RT_NOT_READY);
    test_go(&test);
    CU_ASSERT_EQUAL(rt_sync(rt, (void*)2), RT_OK);
    test_close(&test);
}

/* Kernels, host functions, copies */

typedef struct {
    uint64_t *words;
    uint64_t  value;
} test_args_t;

static void test_kernel_fill(void *arg)
{
    const test_args_t *args = arg;
    unsigned i;

    for (i = 0; i < TEST_WORDS; ++i) {
        args->words[i] += args->value + i;
    }
}

/* A kernel runs in its place, on device memory, with the arguments of its
 * launch */
RT_CASE(kernels)
{
    test_t test      = test_open(rt);
    test_args_t args = {.value = 5};
    void *device     = NULL;
    void *params[1]  = {&args};

    CU_ASSERT_EQUAL(rt_alloc(rt, &device, TEST_BYTES), RT_OK);
    args.words = device;
    CU_ASSERT_EQUAL(rt_fill(rt, test.stream, device, 0, TEST_BYTES), RT_OK);
    test_gate(&test, test.stream);
    CU_ASSERT_EQUAL(rt_kernel(rt, test.stream, test_kernel_fill, &args,
                              sizeof(args)), RT_OK);
    memset(&args, 0, sizeof(args));
    CU_ASSERT_EQUAL(rt_copy(rt, test.stream, test_word(&test, 1), device,
                            TEST_BYTES - 8), RT_OK);
    CU_ASSERT_EQUAL(rt_query(rt, test.stream), RT_NOT_READY);
    test_go(&test);
    CU_ASSERT_EQUAL(rt_sync(rt, test.stream), RT_OK);
    CU_ASSERT_EQUAL(test.words[1], 5);
    CU_ASSERT_EQUAL(test.words[TEST_WORDS - 1], 5 + TEST_WORDS - 2);
    CU_ASSERT_EQUAL(rt->is_hip ?
                    rt->hip.hipModuleLaunchKernel(test_kernel_fill, 1, 1, 1, 1,
                                                  1, 1, 0, test.stream, params,
                                                  NULL) :
                    rt->cu.cuLaunchKernel(test_kernel_fill, 1, 1, 1, 1, 1, 1,
                                          0, test.stream, params, NULL),
                    RT_INVALID);
    CU_ASSERT_EQUAL(rt_kernel(rt, test.stream, NULL, &args, sizeof(args)),
                    RT_HANDLE);
    CU_ASSERT_EQUAL(rt_free(rt, device), RT_OK);
    test_close(&test);
}

typedef struct {
    const test_t *test;
    pthread_t    thread;
    uint64_t     seen;
    int          call;
} test_host_t;

static void test_on_host(void *arg)
{
    test_host_t *host = arg;

    host->thread = pthread_self();
    host->seen   = test_load(host->test, 1);
    host->call   = rt_query(host->test->rt, host->test->stream);
    test_store(host->test, 2, 1);
}

RT_CASE(host_functions)
{
    test_t test             = test_open(rt);
    standin_counts_t before = rt_counts(rt);
    test_host_t host        = {.test = &test};

    test_gate(&test, test.stream);
    CU_ASSERT_EQUAL(rt_write(rt, test.stream, test_word(&test, 1), 3), RT_OK);
    CU_ASSERT_EQUAL(rt_host(rt, test.stream, test_on_host, &host), RT_OK);
    CU_ASSERT_EQUAL(rt_wait(rt, test.stream, test_word(&test, 2), 1, RT_EQ),
                    RT_OK);
    test_go(&test);
    CU_ASSERT_EQUAL(rt_sync(rt, test.stream), RT_OK);
    CU_ASSERT_EQUAL(host.seen, 3);
    CU_ASSERT(!pthread_equal(host.thread, pthread_self()));
    CU_ASSERT_EQUAL(host.call, rt->is_hip ? 401 : 800);
    CU_ASSERT_EQUAL(rt_counts(rt).host_funcs - before.host_funcs, 1);
    CU_ASSERT_EQUAL(rt_host(rt, test.stream, NULL, NULL), RT_INVALID);
    test_close(&test);
}

/* Pinned memory and a device's: the caller goes on at once */
RT_CASE(copies)
{
    test_t test             = test_open(rt);
    standin_counts_t before = rt_counts(rt);
    rt_rows_t rows          = {
        .dpitch = 16,
        .spitch = 32,
        .width  = 8,
        .height = 4
    };
    void *one = NULL;
    void *two = NULL;
    unsigned i;

    CU_ASSERT_EQUAL(rt_alloc(rt, &one, TEST_BYTES), RT_OK);
    CU_ASSERT_EQUAL(rt_alloc(rt, &two, TEST_BYTES), RT_OK);
    for (i = 16; i < 32; ++i) {
        test.words[i] = i;
    }
    test_gate(&test, test.stream);
    CU_ASSERT_EQUAL(rt_copy(rt, test.stream, one, test_word(&test, 16), 128),
                    RT_OK);
    CU_ASSERT_EQUAL(rt_copy(rt, test.stream, two, one, 128), RT_OK);
    CU_ASSERT_EQUAL(rt_copy_rows(rt, test.stream, test_word(&test, 32), two,
                                 &rows), RT_OK);
    CU_ASSERT_EQUAL(rt_query(rt, test.stream), RT_NOT_READY);
    test_go(&test);
    CU_ASSERT_EQUAL(rt_sync(rt, test.stream), RT_OK);
    for (i = 0; i < 8; ++i) {
        CU_ASSERT_EQUAL(test.words[32 + i], (i % 2) ? 0 : 16 + 2 * i);
    }
    CU_ASSERT_EQUAL(rt_counts(rt).copies - before.copies, 3);
    CU_ASSERT_EQUAL(rt_counts(rt).pageable, before.pageable);

    /* Too long for the memory that it is in; too long for a row */
    CU_ASSERT_EQUAL(rt_copy(rt, test.stream, two, one, TEST_BYTES + 1),
                    RT_INVALID);
    rows.dpitch = 4;
    CU_ASSERT_EQUAL(rt_copy_rows(rt, test.stream, one, two, &rows),
                    RT_INVALID);
    CU_ASSERT_EQUAL(rt_copy_now(rt, test_word(&test, 1), one, 8), RT_OK);
    CU_ASSERT_EQUAL(test.words[1], 16);
    CU_ASSERT_EQUAL(rt_free(rt, one), RT_OK);
    CU_ASSERT_EQUAL(rt_free(rt, two), RT_OK);
    CU_ASSERT_EQUAL(rt_free(rt, two), RT_INVALID);
    test_close(&test);
}

static void *test_open_gate(void *arg)
{
    test_t *test = arg;

    if (rt_set_device(test->rt, 0) == RT_OK) {
        while (rt_query(test->rt, test->stream) == RT_OK) {
            usleep(100);
        }
        usleep(1000); /* Gives a caller that does not wait the time to go on */
    }
    test_go(test);
    return NULL;
}

/* Memory that no runtime knows: the caller waits for the stream */
RT_CASE(pageable_copies)
{
    test_t test             = test_open(rt);
    standin_counts_t before = rt_counts(rt);
    uint64_t on_stack[4]    = {0};
    void *device            = NULL;
    pthread_t thread;

    CU_ASSERT_EQUAL(rt_alloc(rt, &device, TEST_BYTES), RT_OK);
    CU_ASSERT_EQUAL(rt_fill(rt, test.stream, device, 1, TEST_BYTES), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, test.stream), RT_OK);
    CU_ASSERT_EQUAL(pthread_create(&thread, NULL, test_open_gate, &test), 0);
    test_gate(&test, test.stream);
    CU_ASSERT_EQUAL(rt_copy(rt, test.stream, on_stack, device, 32), RT_OK);
    CU_ASSERT_EQUAL(on_stack[3], 0x0101010101010101);
    CU_ASSERT_EQUAL(test_load(&test, 0), 1);
    CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
    CU_ASSERT_EQUAL(rt_counts(rt).pageable - before.pageable, 1);
    if (!rt->is_hip) {
        CU_ASSERT_EQUAL(rt->cu.cuMemcpyDtoDAsync_v2(
                            (uintptr_t)device, (uintptr_t)on_stack, 8,
                            test.stream), RT_INVALID);
    }
    CU_ASSERT_EQUAL(rt_free(rt, device), RT_OK);
    test_close(&test);
}

/* Memory */

/* A device is through with its memory when that is freed */
RT_CASE(free_waits)
{
    test_t test  = test_open(rt);
    void *device = NULL;
    pthread_t thread;

    CU_ASSERT_EQUAL(rt_alloc(rt, &device, TEST_BYTES), RT_OK);
    test_gate(&test, test.stream);
    CU_ASSERT_EQUAL(rt_write(rt, test.stream, device, 1), RT_OK);
    CU_ASSERT_EQUAL(pthread_create(&thread, NULL, test_open_gate, &test), 0);
    CU_ASSERT_EQUAL(rt_free(rt, device), RT_OK);
    CU_ASSERT_EQUAL(rt_query(rt, test.stream), RT_OK);
    CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
    test_close(&test);
}

RT_CASE(registration)
{
    test_t test    = test_open(rt);
    uint64_t *host = calloc(2 * TEST_WORDS, 8);
    void *dev      = NULL;
    rt_info_t info;

    CU_ASSERT_EQUAL(rt_device_pointer(rt, host, &dev), RT_INVALID);
    CU_ASSERT_EQUAL(rt_info(rt, host, &info), RT_INVALID);
    CU_ASSERT_EQUAL(rt_register(rt, host, TEST_BYTES, 1), RT_OK);
    CU_ASSERT_EQUAL(rt_register(rt, host + 1, 8, 1), RT_REGISTERED);
    CU_ASSERT_EQUAL(rt_device_pointer(rt, host + 1, &dev), RT_OK);
    CU_ASSERT_EQUAL(rt_write(rt, test.stream, dev, 11), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, test.stream), RT_OK);
    CU_ASSERT_EQUAL(host[1], 11);
    CU_ASSERT_EQUAL(rt_info(rt, host + 1, &info), RT_OK);
    CU_ASSERT(!info.is_device);
    CU_ASSERT_PTR_EQUAL(info.dev, dev);
    CU_ASSERT_EQUAL(info.size, TEST_BYTES);

    /* Copies do not cross the end of what is registered */
    CU_ASSERT_EQUAL(rt_copy(rt, test.stream, test_word(&test, 1),
                            host + TEST_WORDS - 1, 16), RT_INVALID);
    CU_ASSERT_EQUAL(rt_unregister(rt, host + 1), RT_NOT_REGISTERED);
    CU_ASSERT_EQUAL(rt_unregister(rt, host), RT_OK);
    CU_ASSERT_EQUAL(rt_unregister(rt, host), RT_NOT_REGISTERED);
    CU_ASSERT_EQUAL(rt_write(rt, test.stream, host, 12), RT_INVALID);
    CU_ASSERT_EQUAL(rt_register(rt, NULL, 8, 0), RT_INVALID);
    CU_ASSERT_EQUAL(rt_register(rt, host, 0, 0), RT_INVALID);
    CU_ASSERT_EQUAL(rt_register(rt, (void*)4096, 8, 0), RT_INVALID);
    free(host);
    test_close(&test);
}

RT_CASE(pointers)
{
    test_t test  = test_open(rt);
    char *device = NULL;
    rt_info_t info;

    CU_ASSERT_EQUAL(rt_alloc(rt, (void**)&device, 100), RT_OK);
    CU_ASSERT_EQUAL(rt_info(rt, device + 99, &info), RT_OK);
    CU_ASSERT(info.is_device);
    CU_ASSERT_EQUAL(info.device, 0);
    CU_ASSERT_PTR_EQUAL(info.dev, device + 99);
    CU_ASSERT_PTR_EQUAL(info.start, device);
    CU_ASSERT_EQUAL(info.size, 100);
    CU_ASSERT_EQUAL(rt_info(rt, device + 100, &info), RT_INVALID);
    CU_ASSERT_EQUAL(rt_free(rt, device + 8), RT_INVALID);
    CU_ASSERT_EQUAL(rt_free(rt, device), RT_OK);
    CU_ASSERT_EQUAL(rt_info(rt, device, &info), RT_INVALID);
    CU_ASSERT_EQUAL(rt_info(rt, test_word(&test, 3), &info), RT_OK);
    CU_ASSERT(!info.is_device);
    CU_ASSERT_EQUAL(rt_set_device(rt, 1), RT_OK);
    CU_ASSERT_EQUAL(rt_alloc(rt, (void**)&device, 100), RT_OK);
    CU_ASSERT_EQUAL(rt_set_device(rt, 0), RT_OK);
    CU_ASSERT_EQUAL(rt_info(rt, device, &info), RT_OK);
    CU_ASSERT_EQUAL(info.device, 1);
    CU_ASSERT_EQUAL(rt_free(rt, device), RT_OK);
    test_close(&test);
}

/* The address of device memory is of no use to the host, but to kernels */
RT_CASE(device_memory_is_refused)
{
    test_t test      = test_open(rt);
    test_args_t args = {.value = 1};
    void *device     = NULL;
    uint64_t *inner;
    int ends[2];

    if (rt->control.standin_has_protection() == STANDIN_PROTECT_NONE) {
        st_cunit_skip("STANDIN_PROTECT=0");
        return;
    }
    CU_ASSERT_EQUAL(rt_alloc(rt, &device, TEST_BYTES), RT_OK);
    CU_ASSERT_EQUAL(pipe(ends), 0);
    CU_ASSERT_EQUAL(write(ends[1], device, 8), -1);
    args.words = device;
    CU_ASSERT_EQUAL(rt_fill(rt, test.stream, device, 0, TEST_BYTES), RT_OK);
    CU_ASSERT_EQUAL(rt_kernel(rt, test.stream, test_kernel_fill, &args,
                              sizeof(args)), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, test.stream), RT_OK);
    CU_ASSERT_EQUAL(write(ends[1], device, 8), -1);
    CU_ASSERT_EQUAL(read(ends[0], device, 0), 0);

    /* An emulated NIC has it elsewhere */
    inner = rt->control.standin_dma((char*)device + 8, TEST_BYTES - 8);
    CU_ASSERT_PTR_NOT_NULL_FATAL(inner);
    CU_ASSERT_EQUAL(inner[0], 2);
    CU_ASSERT_PTR_NULL(rt->control.standin_dma(device, TEST_BYTES + 1));
    CU_ASSERT_PTR_NULL(rt->control.standin_dma(test_word(&test, 0), 8));
    close(ends[0]);
    close(ends[1]);
    CU_ASSERT_EQUAL(rt_free(rt, device), RT_OK);
    test_close(&test);
}

/* Events */

RT_CASE(events)
{
    test_t test  = test_open(rt);
    void *other  = rt_stream(rt);
    void *mark   = NULL;
    void *start  = NULL;
    float ms     = -1;

    CU_ASSERT_EQUAL(rt_event_create(rt, &mark), RT_OK);
    CU_ASSERT_EQUAL(rt_event_create(rt, &start), RT_OK);
    CU_ASSERT_EQUAL(rt_event_query(rt, mark), RT_OK);
    CU_ASSERT_EQUAL(rt_event_time(rt, start, mark, &ms), RT_HANDLE);
    CU_ASSERT_EQUAL(rt_event_record(rt, start, test.stream), RT_OK);
    test_gate(&test, test.stream);
    CU_ASSERT_EQUAL(rt_write(rt, test.stream, test_word(&test, 1), 1), RT_OK);
    CU_ASSERT_EQUAL(rt_event_record(rt, mark, test.stream), RT_OK);
    CU_ASSERT_EQUAL(rt_event_query(rt, mark), RT_NOT_READY);
    CU_ASSERT_EQUAL(rt_event_time(rt, start, mark, &ms), RT_NOT_READY);
    CU_ASSERT_EQUAL(rt_wait_event(rt, other, mark), RT_OK);
    CU_ASSERT_EQUAL(rt_copy(rt, other, test_word(&test, 2),
                            test_word(&test, 1), 8), RT_OK);
    CU_ASSERT_EQUAL(rt_query(rt, other), RT_NOT_READY);
    test_go(&test);
    CU_ASSERT_EQUAL(rt_sync(rt, other), RT_OK);
    CU_ASSERT_EQUAL(test_load(&test, 2), 1);
    CU_ASSERT_EQUAL(rt_event_sync(rt, mark), RT_OK);
    CU_ASSERT_EQUAL(rt_event_query(rt, mark), RT_OK);
    CU_ASSERT_EQUAL(rt_event_time(rt, start, mark, &ms), RT_OK);
    CU_ASSERT(ms >= 0);

    /* One that is in use may go, too */
    test_store(&test, 0, 0);
    test_gate(&test, test.stream);
    CU_ASSERT_EQUAL(rt_event_record(rt, mark, test.stream), RT_OK);
    CU_ASSERT_EQUAL(rt_wait_event(rt, other, mark), RT_OK);
    CU_ASSERT_EQUAL(rt_event_destroy(rt, mark), RT_OK);
    CU_ASSERT_EQUAL(rt_event_query(rt, mark), RT_HANDLE);
    CU_ASSERT_EQUAL(rt_query(rt, other), RT_NOT_READY);
    test_go(&test);
    CU_ASSERT_EQUAL(rt_sync(rt, other), RT_OK);
    CU_ASSERT_EQUAL(rt_event_destroy(rt, start), RT_OK);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, other), RT_OK);
    test_close(&test);
}

/* Capture: nothing runs, what cannot be recorded ends it */
RT_CASE(capture)
{
    test_t test    = test_open(rt);
    void *blocking = NULL;
    void *mark     = NULL;
    size_t nodes   = 0;

    CU_ASSERT_EQUAL(rt_event_create(rt, &mark), RT_OK);
    CU_ASSERT_EQUAL(rt_is_capturing(rt, test.stream), 0);
    CU_ASSERT_EQUAL(rt_capture_begin(rt, test.stream, 0), RT_OK);
    CU_ASSERT_EQUAL(rt_is_capturing(rt, test.stream), 1);
    CU_ASSERT_EQUAL(rt_write(rt, test.stream, test_word(&test, 1), 1), RT_OK);
    CU_ASSERT_EQUAL(rt_host(rt, test.stream, test_on_host, NULL), RT_OK);
    CU_ASSERT_EQUAL(rt_event_record(rt, mark, test.stream), RT_OK);
    CU_ASSERT_EQUAL(rt_event_query(rt, mark), RT_CAPTURED);
    CU_ASSERT_EQUAL(rt_capture_end(rt, test.stream, &nodes), RT_OK);
    CU_ASSERT_EQUAL(nodes, 3);
    CU_ASSERT_EQUAL(rt_sync(rt, test.stream), RT_OK);
    CU_ASSERT_EQUAL(test_load(&test, 1), 0);

    CU_ASSERT_EQUAL(rt_capture_begin(rt, test.stream, 0), RT_OK);
    CU_ASSERT_EQUAL(rt_query(rt, test.stream), RT_CAPTURE);
    CU_ASSERT_EQUAL(rt_is_capturing(rt, test.stream), 2);
    CU_ASSERT_EQUAL(rt_write(rt, test.stream, test_word(&test, 1), 1),
                    RT_INVALIDATED);
    CU_ASSERT_EQUAL(rt_capture_end(rt, test.stream, &nodes), RT_INVALIDATED);
    CU_ASSERT_EQUAL(rt_query(rt, test.stream), RT_OK);

    CU_ASSERT_EQUAL(rt_stream_create(rt, 0, 0, &blocking), RT_OK);
    CU_ASSERT_EQUAL(rt_capture_begin(rt, blocking, 0), RT_OK);
    CU_ASSERT_EQUAL(rt_write(rt, NULL, test_word(&test, 1), 1), RT_IMPLICIT);
    CU_ASSERT_EQUAL(rt_capture_end(rt, blocking, &nodes), RT_INVALIDATED);
    CU_ASSERT_EQUAL(rt_capture_begin(rt, NULL, 0), RT_CAPTURE);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, blocking), RT_OK);
    CU_ASSERT_EQUAL(rt_event_destroy(rt, mark), RT_OK);
    test_close(&test);
}

/* Before HIP 7 the last one is each call's result */
ST_CASE(last_error_hip)
{
    const rt_t *rt = rt_start(1);

    CU_ASSERT_EQUAL(rt->hip.hipSetDevice(99), 101);
    CU_ASSERT_EQUAL(rt->hip.hipPeekAtLastError(), 101);
    CU_ASSERT_EQUAL(rt->hip.hipGetLastError(), 101);
    CU_ASSERT_EQUAL(rt->hip.hipGetLastError(), RT_OK);
    CU_ASSERT_EQUAL(rt->hip.hipSetDevice(99), 101);
    CU_ASSERT_EQUAL(rt->hip.hipSetDevice(0), RT_OK);
    CU_ASSERT_EQUAL(rt->hip.hipGetLastError(), RT_OK);
    CU_ASSERT_STRING_EQUAL(rt->hip.hipGetErrorName(600), "hipErrorNotReady");
}

/* Many streams that wait for each other, from several threads */

#define TEST_RING   6
#define TEST_ROUNDS 50

typedef struct {
    test_t    *test;
    unsigned  place;
    pthread_t thread;
    void      *stream;
} test_ring_t;

static void *test_ring_main(void *arg)
{
    test_ring_t *ring = arg;
    test_t *test      = ring->test;
    unsigned next     = 1 + (ring->place + 1) % TEST_RING;
    unsigned i;
    int err           = rt_set_device(test->rt, 0);

    for (i = 1; (i <= TEST_ROUNDS) && (err == RT_OK); ++i) {
        err = rt_wait(test->rt, ring->stream, test_word(test, 1 + ring->place),
                      i, RT_GEQ);
        if (err == RT_OK) {
            err = rt_write(test->rt, ring->stream, test_word(test, next),
                           i + (ring->place == TEST_RING - 1));
        }
    }
    return (err == RT_OK) ? arg : NULL;
}

RT_CASE(ring_of_streams)
{
    test_t test = test_open(rt);
    test_ring_t rings[TEST_RING];
    void *result;
    unsigned i;

    for (i = 0; i < TEST_RING; ++i) {
        rings[i] = (test_ring_t){
            .test   = &test,
            .place  = i,
            .stream = rt_stream(rt)
        };
    }
    for (i = 0; i < TEST_RING; ++i) {
        CU_ASSERT_EQUAL(pthread_create(&rings[i].thread, NULL, test_ring_main,
                                       &rings[i]), 0);
    }
    test_store(&test, 1, 1);
    for (i = 0; i < TEST_RING; ++i) {
        CU_ASSERT_EQUAL(pthread_join(rings[i].thread, &result), 0);
        CU_ASSERT_PTR_EQUAL(result, &rings[i]);
        CU_ASSERT_EQUAL(rt_sync(rt, rings[i].stream), RT_OK);
        CU_ASSERT_EQUAL(rt_stream_destroy(rt, rings[i].stream), RT_OK);
    }
    CU_ASSERT_EQUAL(test_load(&test, 1), TEST_ROUNDS + 1);
    test_close(&test);
}

ST_SUITE("standin")
