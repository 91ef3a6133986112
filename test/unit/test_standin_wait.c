/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_standin_wait.c - calls of the stand-ins that wait: for room in a stream,
 * and for a device that is to be idle. Each case has a process of its own.
 */
#include "standin_util.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEST_BYTES 4096
#define TEST_DEPTH 8
#define TEST_ROOM  "STANDIN_DEPTH=8 STANDIN_QUEUES=8"


/** A call by another thread. */
typedef struct test_call {
    const rt_t *rt;
    int        (*func)(struct test_call *call);
    void       *stream;
    void       *address;
    int        result;
    int        is_over;
    pthread_t  thread;
} test_call_t;

static void *test_call_main(void *arg)
{
    test_call_t *call = arg;

    CU_ASSERT_EQUAL(rt_set_device(call->rt, 0), RT_OK);
    call->result = call->func(call);
    __atomic_store_n(&call->is_over, 1, __ATOMIC_RELEASE);
    return NULL;
}

static int test_is_over(const test_call_t *call)
{
    return __atomic_load_n(&call->is_over, __ATOMIC_ACQUIRE);
}

/* The call has begun, so it waits or is about to end. */
static void test_begin(test_call_t *call)
{
    unsigned long begun = rt_counts(call->rt).calls;

    CU_ASSERT_EQUAL_FATAL(pthread_create(&call->thread, NULL, test_call_main,
                                         call), 0);
    /* To set the device is a call, too */
    while (!test_is_over(call) && (rt_counts(call->rt).calls < begun + 2)) {
        (void)sched_yield();
    }
}

/* The call has begun, and found no room. */
static void test_begin_full(test_call_t *call)
{
    unsigned long full = rt_counts(call->rt).full;

    test_begin(call);
    while (!test_is_over(call) && (rt_counts(call->rt).full == full)) {
        (void)sched_yield();
    }
    CU_ASSERT_FALSE(test_is_over(call));
}

static void test_end(test_call_t *call, int result)
{
    CU_ASSERT_EQUAL(pthread_join(call->thread, NULL), 0);
    CU_ASSERT_EQUAL(call->result, result);
}

static void test_open_gate(uint64_t *gate)
{
    __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
}

static void test_kernel(void *args)
{
    (void)args;
}

static void test_add(void *arg)
{
    __atomic_add_fetch((unsigned*)arg, 1, __ATOMIC_RELEASE);
}

static int call_write(test_call_t *call)
{
    return rt_write(call->rt, call->stream, call->address, 1);
}

static int call_kernel(test_call_t *call)
{
    return rt_kernel(call->rt, call->stream, test_kernel, NULL, 0);
}

static int call_copy(test_call_t *call)
{
    return rt_copy(call->rt, call->stream, call->address,
                   (uint64_t*)call->address + 1, 8);
}

static int call_host(test_call_t *call)
{
    static unsigned count;

    return rt_host(call->rt, call->stream, test_add, &count);
}

static int call_query(test_call_t *call)
{
    int result = rt_query(call->rt, call->stream);

    return (result == RT_NOT_READY) ? RT_OK : result;
}

static int call_sync(test_call_t *call)
{
    return rt_sync(call->rt, call->stream);
}

static int call_register(test_call_t *call)
{
    return rt_register(call->rt, call->address, TEST_BYTES, 0);
}

static int call_unregister(test_call_t *call)
{
    return rt_unregister(call->rt, call->address);
}

static int call_host_free(test_call_t *call)
{
    return rt_host_free(call->rt, call->address);
}

static int call_free(test_call_t *call)
{
    return rt_free(call->rt, call->address);
}

/* A stream that waits for a word and is full. */
static void *test_full(const rt_t *rt, uint64_t *words)
{
    void *stream = rt_stream(rt);
    unsigned i;

    CU_ASSERT_EQUAL(rt_wait(rt, stream, &words[0], 1, RT_GEQ), RT_OK);
    for (i = 1; i < TEST_DEPTH; ++i) {
        CU_ASSERT_EQUAL(rt_write(rt, stream, &words[1], i), RT_OK);
    }
    CU_ASSERT_EQUAL(rt_counts(rt).full, 0);
    return stream;
}

/* Nothing that another stream is asked for waits for the call without room. */
static void test_others_go_on(const rt_t *rt, void *other, uint64_t *words)
{
    CU_ASSERT_EQUAL(rt_write(rt, other, &words[2], 1), RT_OK);
    CU_ASSERT_EQUAL(rt_kernel(rt, other, test_kernel, NULL, 0), RT_OK);
    CU_ASSERT_EQUAL(rt_copy(rt, other, &words[4], &words[2], 8), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, other), RT_OK);
    CU_ASSERT_EQUAL(rt_query(rt, other), RT_OK);
}

/* A call without room waits, and with it what asks about the stream; others do
 * not, and to ask about it is no problem before. */
RT_CASE_SET(room, TEST_ROOM, TEST_ROOM)
{
    uint64_t *words   = rt_host_alloc(rt, TEST_BYTES);
    void *stream      = test_full(rt, words);
    void *other       = rt_stream(rt);
    unsigned hosts    = 0;
    test_call_t write = {
        .rt = rt, .func = call_write, .stream = stream, .address = &words[3]
    };
    test_call_t query = {.rt = rt, .func = call_query, .stream = stream};
    test_call_t sync  = {.rt = rt, .func = call_sync, .stream = stream};

    CU_ASSERT_EQUAL(rt_query(rt, stream), RT_NOT_READY);
    test_begin_full(&write);
    test_begin(&query);
    test_begin(&sync);
    test_others_go_on(rt, other, words);
    CU_ASSERT_EQUAL(rt_host(rt, other, test_add, &hosts), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, other), RT_OK);
    CU_ASSERT_FALSE(test_is_over(&write));
    CU_ASSERT_FALSE(test_is_over(&query));
    CU_ASSERT_FALSE(test_is_over(&sync));
    test_open_gate(&words[0]);
    test_end(&write, RT_OK);
    test_end(&query, RT_OK);
    test_end(&sync, RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
    CU_ASSERT_EQUAL(hosts, 1);
    CU_ASSERT_EQUAL(words[3], 1);
}

static void room_of_launch(const rt_t *rt, int (*func)(test_call_t *call))
{
    uint64_t *words    = rt_host_alloc(rt, TEST_BYTES);
    void *memory       = mmap(NULL, TEST_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *stream       = test_full(rt, words);
    void *other        = rt_stream(rt);
    test_call_t launch = {
        .rt = rt, .func = func, .stream = stream, .address = &words[3]
    };
    test_call_t host   = {.rt = rt, .func = call_host, .stream = other};
    test_call_t add    = {.rt = rt, .func = call_register, .address = memory};

    test_begin_full(&launch);
    test_others_go_on(rt, other, words);
    test_begin(&host);
    test_begin(&add);
    CU_ASSERT_FALSE(test_is_over(&launch));
    CU_ASSERT_FALSE(test_is_over(&host));
    CU_ASSERT_FALSE(test_is_over(&add));
    test_open_gate(&words[0]);
    test_end(&launch, RT_OK);
    test_end(&host, RT_OK);
    test_end(&add, RT_OK);
    CU_ASSERT_EQUAL(rt_sync_all(rt), RT_OK);
}

/* Behind a kernel or a copy without room host functions of other streams and
 * the registration of memory wait, too */
RT_CASE_SET(room_kernel, TEST_ROOM, TEST_ROOM)
{
    room_of_launch(rt, call_kernel);
}

RT_CASE_SET(room_copy, TEST_ROOM, TEST_ROOM)
{
    room_of_launch(rt, call_copy);
}

/* A batch is one call */
RT_CASE_SET(room_batch, TEST_ROOM, TEST_ROOM " STANDIN_VERSION=60400000")
{
    uint64_t *words            = rt_host_alloc(rt, TEST_BYTES);
    void *stream               = rt_stream(rt);
    standin_batch_op_t ops[26] = {{0}};
    unsigned i;

    for (i = 0; i < 26; ++i) {
        ops[i].op      = RT_OP_WRITE64;
        ops[i].address = (uintptr_t)&words[1];
        ops[i].value   = i;
    }
    CU_ASSERT_EQUAL(rt_wait(rt, stream, &words[0], 1, RT_GEQ), RT_OK);
    for (i = 1; i < TEST_DEPTH; ++i) {
        CU_ASSERT_EQUAL(rt_batch(rt, stream, 26, ops), RT_OK);
    }
    CU_ASSERT_EQUAL(rt_counts(rt).full, 0);
    test_open_gate(&words[0]);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
}

/* A device that is lost has room */
RT_CASE_SET(room_lost, TEST_ROOM, TEST_ROOM)
{
    uint64_t *words   = rt_host_alloc(rt, TEST_BYTES);
    test_call_t write = {
        .rt = rt, .func = call_write, .stream = test_full(rt, words),
        .address = &words[3]
    };

    test_begin_full(&write);
    rt->control.standin_lose_device(0);
    CU_ASSERT_EQUAL(pthread_join(write.thread, NULL), 0);
}

/* Without settings there is room for this many calls */
RT_CASE_SET(room_default, "", "")
{
    uint64_t *words   = rt_host_alloc(rt, TEST_BYTES);
    void *stream      = rt_stream(rt);
    test_call_t write = {
        .rt = rt, .func = call_write, .stream = stream, .address = &words[1]
    };
    unsigned i;

    CU_ASSERT_EQUAL(rt_wait(rt, stream, &words[0], 1, RT_GEQ), RT_OK);
    for (i = 1; i < 1020; ++i) {
        CU_ASSERT_EQUAL(rt_write(rt, stream, &words[1], i), RT_OK);
    }
    test_begin_full(&write);
    test_open_gate(&words[0]);
    test_end(&write, RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
}

/* Host functions take no room; so many calls find some behind one */
RT_CASE_SET(room_funcs, "", "")
{
    uint64_t *words   = rt_host_alloc(rt, TEST_BYTES);
    void *stream      = rt_stream(rt);
    unsigned hosts    = 0;
    test_call_t write = {
        .rt = rt, .func = call_write, .stream = stream, .address = &words[1]
    };
    unsigned i;

    CU_ASSERT_EQUAL(rt_wait(rt, stream, &words[0], 1, RT_GEQ), RT_OK);
    for (i = 0; i < 2000; ++i) {
        CU_ASSERT_EQUAL(rt_host(rt, stream, test_add, &hosts), RT_OK);
    }
    for (i = 0; i < 55; ++i) {
        CU_ASSERT_EQUAL(rt_write(rt, stream, &words[1], i), RT_OK);
        CU_ASSERT_EQUAL(rt_host(rt, stream, test_add, &hosts), RT_OK);
    }
    test_begin_full(&write);
    test_open_gate(&words[0]);
    test_end(&write, RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
    CU_ASSERT_EQUAL(hosts, 2055);
}

/* While a stream of the device waits, a call does */
static void waits_for_idle(const rt_t *rt, int (*func)(test_call_t *call),
                           void *address)
{
    uint64_t *words  = rt_host_alloc(rt, TEST_BYTES);
    void *stream     = rt_stream(rt);
    void *other      = rt_stream(rt);
    test_call_t call = {.rt = rt, .func = func, .address = address};

    CU_ASSERT_EQUAL(rt_wait(rt, stream, &words[0], 1, RT_GEQ), RT_OK);
    test_begin(&call);
    test_others_go_on(rt, other, words);
    CU_ASSERT_FALSE(test_is_over(&call));
    test_open_gate(&words[0]);
    test_end(&call, RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
}

RT_CASE_SET(unregister, "STANDIN_QUEUES=8", "STANDIN_QUEUES=8")
{
    void *memory = mmap(NULL, TEST_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CU_ASSERT_EQUAL(rt_register(rt, memory, TEST_BYTES, 0), RT_OK);
    waits_for_idle(rt, call_unregister, memory);
    CU_ASSERT_EQUAL(rt_unregister(rt, memory), RT_NOT_REGISTERED);
}

RT_CASE_SET(free_host, "STANDIN_QUEUES=8", "STANDIN_QUEUES=8")
{
    waits_for_idle(rt, call_host_free, rt_host_alloc(rt, TEST_BYTES));
}

RT_CASE_SET(free_device, "STANDIN_QUEUES=8", "STANDIN_QUEUES=8")
{
    void *address = NULL;

    CU_ASSERT_EQUAL(rt_alloc(rt, &address, TEST_BYTES), RT_OK);
    waits_for_idle(rt, call_free, address);
}

/* Memory is unregistered while a stream names it behind a wait: the call does
 * not wait for what streams were given after it. The device is lost. */
static void test_gone(const rt_t *rt, uint64_t *host, void *stream,
                      int (*enqueue)(test_call_t *call))
{
    uint64_t *words   = rt_host_alloc(rt, TEST_BYTES);
    void *first       = rt_stream(rt);
    test_call_t gone  = {.rt = rt, .func = call_unregister, .address = host};
    test_call_t names = {.rt = rt, .stream = stream, .address = host};

    CU_ASSERT_EQUAL(rt_register(rt, host, TEST_BYTES, 0), RT_OK);
    CU_ASSERT_EQUAL(rt_wait(rt, first, &words[0], 1, RT_GEQ), RT_OK);
    test_begin(&gone);
    CU_ASSERT_EQUAL(rt_wait(rt, stream, &words[1], 1, RT_GEQ), RT_OK);
    CU_ASSERT_EQUAL(enqueue(&names), RT_OK);
    test_open_gate(&words[0]);
    test_end(&gone, RT_OK);
    test_open_gate(&words[1]);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_ADDRESS);
    CU_ASSERT_EQUAL(rt_query(rt, stream), RT_ADDRESS);
    CU_ASSERT_EQUAL(host[0], 0);
    free(host);
}

static int call_wait(test_call_t *call)
{
    return rt_wait(call->rt, call->stream, call->address, 1, RT_GEQ);
}

RT_CASE_SET(memory_gone, "STANDIN_QUEUES=8", "STANDIN_QUEUES=8")
{
    test_gone(rt, calloc(1, TEST_BYTES), rt_stream(rt), call_write);
}

/* The memory is not taken for pageable memory */
RT_CASE_SET(copy_gone, "STANDIN_QUEUES=8", "STANDIN_QUEUES=8")
{
    test_gone(rt, calloc(1, TEST_BYTES), rt_stream(rt), call_copy);
}

/* A word that a stream waits for */
RT_CASE_SET(word_gone, "STANDIN_QUEUES=8", "STANDIN_QUEUES=8")
{
    test_gone(rt, calloc(1, TEST_BYTES), rt_stream(rt), call_wait);
}

/* So many streams, the default one among them, are apart: the next one shares
 * the queue of one of them, which waits */
static void queues_are(const rt_t *rt, unsigned count)
{
    uint64_t *words = rt_host_alloc(rt, TEST_BYTES);
    void *stream    = NULL;
    unsigned i;

    for (i = 1; i <= count; ++i) {
        CU_ASSERT_EQUAL(rt_wait(rt, stream, &words[0], 1, RT_GEQ), RT_OK);
        stream = rt_stream(rt);
        CU_ASSERT_EQUAL(rt_write(rt, stream, &words[1], i), RT_OK);
        if (i < count) {
            CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
        }
    }
    usleep(300); /* Gives a queue of its own the time to run it */
    CU_ASSERT_EQUAL(rt_query(rt, stream), RT_NOT_READY);
    test_open_gate(&words[0]);
    CU_ASSERT_EQUAL(rt_sync_all(rt), RT_OK);
    CU_ASSERT_EQUAL(words[1], count);
}

/* What the runtimes have by themselves */
RT_CASE_SET(queues_default,
            "CUDA_DEVICE_MAX_CONNECTIONS= GPU_MAX_HW_QUEUES=20",
            "CUDA_DEVICE_MAX_CONNECTIONS=20 GPU_MAX_HW_QUEUES=")
{
    queues_are(rt, rt->is_hip ? 4 : 8);
}

RT_CASE_SET(queues_asked,
            "CUDA_DEVICE_MAX_CONNECTIONS=20 GPU_MAX_HW_QUEUES=3",
            "CUDA_DEVICE_MAX_CONNECTIONS=3 GPU_MAX_HW_QUEUES=20")
{
    queues_are(rt, 20);
}

RT_CASE_SET(queues_set, "CUDA_DEVICE_MAX_CONNECTIONS=20 STANDIN_QUEUES=3",
            "GPU_MAX_HW_QUEUES=20 STANDIN_QUEUES=3")
{
    queues_are(rt, 3);
}

ST_SUITE("standin_wait")
