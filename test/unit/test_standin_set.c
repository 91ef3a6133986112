/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_standin_set.c - the stand-ins of GPU runtimes with settings, with
 * faults, and between processes. Each case has a process of its own.
 */
#include "standin_util.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST_BYTES 8192
#define TEST_WORDS (TEST_BYTES / 8)


static void test_store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static uint64_t test_load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Streams that share a queue run in the order of their calls */
RT_CASE_SET(one_queue, "STANDIN_QUEUES=1", "STANDIN_QUEUES=1")
{
    void *parked    = rt_stream(rt);
    void *other     = rt_stream(rt);
    uint64_t *words = rt_host_alloc(rt, TEST_BYTES);

    CU_ASSERT_EQUAL(rt_wait(rt, parked, &words[0], 1, RT_GEQ), RT_OK);
    CU_ASSERT_EQUAL(rt_write(rt, other, &words[1], 1), RT_OK);
    CU_ASSERT_EQUAL(rt_query(rt, other), RT_NOT_READY);
    test_store(&words[0], 1);
    CU_ASSERT_EQUAL(rt_sync(rt, other), RT_OK);
    CU_ASSERT_EQUAL(rt_query(rt, parked), RT_OK);
}

/* The legacy default stream has a queue of its own as long as there are some;
 * the third stream of these shares one */
RT_CASE_SET(three_queues, "STANDIN_QUEUES=3", "STANDIN_QUEUES=3")
{
    uint64_t *words = rt_host_alloc(rt, TEST_BYTES);
    unsigned held   = 0;
    void *streams[3];
    unsigned i;

    for (i = 0; i < 3; ++i) {
        streams[i] = rt_stream(rt);
    }
    CU_ASSERT_EQUAL(rt_wait(rt, streams[0], &words[0], 1, RT_GEQ), RT_OK);
    CU_ASSERT_EQUAL(rt_write(rt, streams[1], &words[1], 1), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, streams[1]), RT_OK);
    CU_ASSERT_EQUAL(rt_wait(rt, streams[1], &words[2], 1, RT_GEQ), RT_OK);
    CU_ASSERT_EQUAL(rt_write(rt, streams[2], &words[3], 1), RT_OK);
    CU_ASSERT_EQUAL(rt_wait(rt, NULL, &words[4], 1, RT_GEQ), RT_OK);
    for (i = 0; i < 3; ++i) {
        held += (rt_query(rt, streams[i]) == RT_NOT_READY);
    }
    CU_ASSERT(held >= 2);
    test_store(&words[0], 1);
    test_store(&words[2], 1);
    test_store(&words[4], 1);
    CU_ASSERT_EQUAL(rt_sync_all(rt), RT_OK);
    CU_ASSERT_EQUAL(test_load(&words[3]), 1);
}

/* More streams than there are queues, all parked: all go on */
RT_CASE_SET(many_streams, "", "")
{
    uint64_t *words = rt_host_alloc(rt, TEST_BYTES);
    void *streams[40];
    unsigned held = 0;
    unsigned i;

    for (i = 0; i < 40; ++i) {
        streams[i] = rt_stream(rt);
        CU_ASSERT_EQUAL(rt_wait(rt, streams[i], &words[0], 1, RT_GEQ), RT_OK);
    }
    for (i = 0; i < 40; ++i) {
        held += (rt_query(rt, streams[i]) == RT_NOT_READY);
    }
    CU_ASSERT_EQUAL(held, 40);
    test_store(&words[0], 1);
    for (i = 0; i < 40; ++i) {
        CU_ASSERT_EQUAL(rt_sync(rt, streams[i]), RT_OK);
        CU_ASSERT_EQUAL(rt_stream_destroy(rt, streams[i]), RT_OK);
    }
}

RT_CASE_SET(delays, "STANDIN_DELAY_US=300 STANDIN_SEED=7",
            "STANDIN_DELAY_US=300 STANDIN_SEED=7")
{
    uint64_t *words = rt_host_alloc(rt, TEST_BYTES);
    void *one       = rt_stream(rt);
    void *two       = rt_stream(rt);
    unsigned i;

    for (i = 1; i <= 40; ++i) {
        CU_ASSERT_EQUAL(rt_write(rt, one, &words[0], i), RT_OK);
        CU_ASSERT_EQUAL(rt_wait(rt, two, &words[0], i, RT_GEQ), RT_OK);
        CU_ASSERT_EQUAL(rt_copy(rt, two, &words[i], &words[0], 8), RT_OK);
    }
    CU_ASSERT_EQUAL(rt_sync_all(rt), RT_OK);
    for (i = 1; i <= 40; ++i) {
        CU_ASSERT(words[i] >= i);
    }
    CU_ASSERT_EQUAL(words[40], 40);
}

/* Memory of a device: stores are posted, in order, and never read */
static void test_io(const rt_t *rt)
{
    uint64_t *io    = mmap(NULL, TEST_BYTES, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t *words = rt_host_alloc(rt, TEST_BYTES);
    void *stream    = rt_stream(rt);
    void *dev       = NULL;
    uint64_t first, second;
    unsigned i;

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(io, MAP_FAILED);
    CU_ASSERT_EQUAL(rt_register(rt, io, TEST_BYTES, 3 | RT_IO_MEMORY), RT_OK);
    CU_ASSERT_EQUAL(rt_device_pointer(rt, io, &dev), RT_OK);
    CU_ASSERT_EQUAL(rt_wait(rt, stream, dev, 0, RT_GEQ), RT_INVALID);
    CU_ASSERT_EQUAL(rt_copy(rt, stream, words, io, 8), RT_INVALID);
    CU_ASSERT_EQUAL(rt_fill(rt, stream, dev, 0, 8), RT_INVALID);
    for (i = 1; i <= 50; ++i) {
        CU_ASSERT_EQUAL(rt_write(rt, stream, dev, i), RT_OK);
        CU_ASSERT_EQUAL(rt_write(rt, stream, (uint64_t*)dev + 1, i), RT_OK);
        second = test_load(&io[1]);
        first  = test_load(&io[0]);
        CU_ASSERT(first >= second);
    }
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
    /* The stream is through; the last stores may still be on their way */
    while (test_load(&io[1]) < 50) {
        usleep(20);
    }
    CU_ASSERT_EQUAL(test_load(&io[0]), 50);

    /* A wait does not hold back a store of before */
    CU_ASSERT_EQUAL(rt_write(rt, stream, dev, 51), RT_OK);
    CU_ASSERT_EQUAL(rt_wait(rt, stream, &words[0], 1, RT_GEQ), RT_OK);
    while (test_load(&io[0]) < 51) {
        usleep(20);
    }
    CU_ASSERT_EQUAL(rt_query(rt, stream), RT_NOT_READY);
    test_store(&words[0], 1);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
    CU_ASSERT_EQUAL(rt_unregister(rt, io), RT_OK);
}

RT_CASE_SET(io_memory, "", "")
{
    test_io(rt);
}

RT_CASE_SET(io_memory_late, "STANDIN_DELAY_US=100", "STANDIN_DELAY_US=100")
{
    test_io(rt);
}

/* A stream is through before its store is done */
RT_CASE_SET(io_memory_posted, "STANDIN_DELAY_US=2000", "STANDIN_DELAY_US=2000")
{
    uint64_t *io  = mmap(NULL, TEST_BYTES, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *stream  = rt_stream(rt);
    unsigned late = 0;
    unsigned i;

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(io, MAP_FAILED);
    CU_ASSERT_EQUAL(rt_register(rt, io, TEST_BYTES, RT_IO_MEMORY), RT_OK);
    for (i = 1; i <= 40; ++i) {
        CU_ASSERT_EQUAL(rt_write(rt, stream, io, i), RT_OK);
        CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
        late += (test_load(io) != i);
    }
    CU_ASSERT(late > 0);
    CU_ASSERT_EQUAL(rt_unregister(rt, io), RT_OK);
}

RT_CASE_SET(no_io_memory, "STANDIN_IOMEMORY=0", "STANDIN_IOMEMORY=0")
{
    uint64_t *host = calloc(TEST_WORDS, 8);

    CU_ASSERT_EQUAL(rt_register(rt, host, 8, RT_IO_MEMORY),
                    rt->is_hip ? RT_NO_MEMORY : 800);
    CU_ASSERT_EQUAL(rt_register(rt, host, 8, 0), RT_OK);
    CU_ASSERT_EQUAL(rt_unregister(rt, host), RT_OK);
    free(host);
}

/* Registered memory has two addresses: the device knows its own alone */
RT_CASE_SET(offset, "STANDIN_OFFSET=1", "STANDIN_OFFSET=1")
{
    uint64_t *host   = mmap(NULL, TEST_BYTES, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void *stream     = rt_stream(rt);
    void *dev        = NULL;
    uint64_t on_host = 5;
    int same         = -1;
    rt_info_t info;

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(host, MAP_FAILED);
    CU_ASSERT_EQUAL(rt->is_hip ?
                    rt->hip.hipDeviceGetAttribute(&same, 4, 0) :
                    rt->cu.cuDeviceGetAttribute(&same, 91, 0), RT_OK);
    CU_ASSERT_EQUAL(same, 0);
    CU_ASSERT_EQUAL(rt_register(rt, host + 1, 4096, 0), RT_OK);
    CU_ASSERT_EQUAL(rt_device_pointer(rt, host + 2, &dev), RT_OK);
    CU_ASSERT_PTR_NOT_EQUAL(dev, host + 2);
    CU_ASSERT_EQUAL(rt_write(rt, stream, host + 2, 1), RT_INVALID);
    CU_ASSERT_EQUAL(rt_write(rt, stream, dev, 1), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
    CU_ASSERT_EQUAL(host[2], 1);
    CU_ASSERT_EQUAL(rt_info(rt, host + 2, &info), RT_OK);
    CU_ASSERT_PTR_EQUAL(info.dev, dev);

    /* Copies take either */
    CU_ASSERT_EQUAL(rt_copy(rt, stream, host + 3, dev, 8), RT_OK);
    CU_ASSERT_EQUAL(rt_copy(rt, stream, dev, &on_host, 8), RT_OK);
    CU_ASSERT_EQUAL(host[3], 1);
    CU_ASSERT_EQUAL(host[2], 5);
    CU_ASSERT_EQUAL(rt_unregister(rt, host + 1), RT_OK);
    CU_ASSERT_EQUAL(rt_write(rt, stream, dev, 1), RT_INVALID);
}

/* What a device has not */

RT_CASE_SET(three_devices, "STANDIN_DEVICES=3", "STANDIN_DEVICES=3")
{
    int count = 0;

    CU_ASSERT_EQUAL(rt_device_count(rt, &count), RT_OK);
    CU_ASSERT_EQUAL(count, 3);
    CU_ASSERT_EQUAL(rt_set_device(rt, 2), RT_OK);
    CU_ASSERT_EQUAL(rt_set_device(rt, 3), 101);
}

static void test_no_device(const rt_t *rt)
{
    int count = 5;

    CU_ASSERT_EQUAL(rt_init(rt), RT_NO_DEVICE);
    CU_ASSERT_EQUAL(rt_device_count(rt, &count),
                    rt->is_hip ? RT_NO_DEVICE : RT_NOT_INITIALIZED);
    CU_ASSERT(!rt->is_hip || (count == 0));
}

ST_CASE(no_device_cuda)
{
    if (rt_is_child("no_device_cuda", "STANDIN_DEVICES=0")) {
        test_no_device(rt_open(0));
    }
}

ST_CASE(no_device_hip)
{
    if (rt_is_child("no_device_hip", "STANDIN_DEVICES=0")) {
        test_no_device(rt_open(1));
    }
}

ST_CASE(not_initialized_cuda)
{
    const rt_t *rt = rt_open(0);
    void *stream;

    if (rt_is_child("not_initialized_cuda", "")) {
        CU_ASSERT_EQUAL(rt_stream_create(rt, 0, 0, &stream),
                        RT_NOT_INITIALIZED);
        CU_ASSERT_EQUAL(rt_init(rt), RT_OK);
        CU_ASSERT_EQUAL(rt_stream_create(rt, 0, 0, &stream), RT_CONTEXT);
    }
}

RT_CASE_SET(old_version, "STANDIN_VERSION=11040", "STANDIN_VERSION=50220730")
{
    uint64_t *words = rt_host_alloc(rt, TEST_BYTES);
    void *stream    = rt_stream(rt);
    int value       = -1;

    if (rt->is_hip) {
        CU_ASSERT_EQUAL(rt->hip.hipRuntimeGetVersion(&value), RT_OK);
        CU_ASSERT_EQUAL(value, 50220730);
        CU_ASSERT(rt->hip.hipStreamGetDevice == NULL);
        CU_ASSERT(rt->hip.hipStreamBatchMemOp == NULL);
        return;
    }
    CU_ASSERT_EQUAL(rt->cu.cuDriverGetVersion(&value), RT_OK);
    CU_ASSERT_EQUAL(value, 11040);
    CU_ASSERT(rt->cu.cuStreamWriteValue64_v2 == NULL);
    CU_ASSERT(rt->cu.cuStreamBatchMemOp_v2 == NULL);
    CU_ASSERT(rt->cu.cuGetProcAddress_v2 == NULL);
    CU_ASSERT_EQUAL(rt->cu.cuDeviceGetAttribute(&value, 93, 0), RT_OK);
    CU_ASSERT_EQUAL(value, 0);
    CU_ASSERT_EQUAL(rt->cu.cuStreamWriteValue64(stream, (uintptr_t)words, 1,
                                                0), RT_UNSUPPORTED);
}

RT_CASE_SET(old_version_option, "STANDIN_VERSION=11040 STANDIN_MEMOPS=1",
            "STANDIN_VERSION=50600000")
{
    uint64_t *words = rt_host_alloc(rt, TEST_BYTES);
    void *stream    = rt_stream(rt);
    int value       = -1;

    if (rt->is_hip) {
        CU_ASSERT_EQUAL(rt->hip.hipStreamGetDevice(stream, &value), RT_OK);
        CU_ASSERT_EQUAL(value, 0);
        return;
    }
    CU_ASSERT_EQUAL(rt->cu.cuDeviceGetAttribute(&value, 93, 0), RT_OK);
    CU_ASSERT_EQUAL(value, 1);
    CU_ASSERT_EQUAL(rt->cu.cuStreamWriteValue64(stream, (uintptr_t)words, 1,
                                                0), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
    CU_ASSERT_EQUAL(words[0], 1);
}

/* Of HIP: numbers of memory types have changed, rt_info() knows them; the last
 * error stays */
RT_CASE_SET(new_version, "STANDIN_VERSION=13000", "STANDIN_VERSION=70051831")
{
    void *device = NULL;
    void *func   = NULL;
    int status   = -1;
    standin_hip_pointer_t attributes;
    rt_info_t info;

    CU_ASSERT_EQUAL(rt_alloc(rt, &device, 64), RT_OK);
    CU_ASSERT_EQUAL(rt_info(rt, device, &info), RT_OK);
    CU_ASSERT(info.is_device);
    if (rt->is_hip) {
        CU_ASSERT_EQUAL(rt->hip.hipPointerGetAttributes(&attributes, device),
                        RT_OK);
        CU_ASSERT_EQUAL(attributes.type, 2);
        CU_ASSERT(rt->hip.hipStreamBatchMemOp != NULL);
        CU_ASSERT_EQUAL(rt->hip.hipSetDevice(99), 101);
        CU_ASSERT_EQUAL(rt->hip.hipSetDevice(0), RT_OK);
        CU_ASSERT_EQUAL(rt->hip.hipGetLastError(), 101);
        return;
    }
    CU_ASSERT_EQUAL(rt->cu.cuGetProcAddress_v2("cuStreamWriteValue64", &func,
                                               12000, 0, &status), RT_OK);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT(func == (void*)rt->cu.cuStreamWriteValue64_v2);
    CU_ASSERT_EQUAL(rt->cu.cuGetProcAddress_v2("cuStreamWriteValue64", &func,
                                               11000, 0, &status), RT_OK);
    CU_ASSERT(func == (void*)rt->cu.cuStreamWriteValue64);
    CU_ASSERT_EQUAL(rt->cu.cuGetProcAddress_v2("cuMemAlloc", &func, 11000, 0,
                                               &status), RT_OK);
    CU_ASSERT(func == (void*)rt->cu.cuMemAlloc_v2);
    CU_ASSERT_EQUAL(rt->cu.cuGetProcAddress_v2("cuNothing", &func, 11000, 0,
                                               &status), 500);
    CU_ASSERT_EQUAL(status, 1);
}

RT_CASE_SET(no_memory_operations, "STANDIN_MEMOPS=0", "STANDIN_MEMOPS=0")
{
    uint64_t *words = rt_host_alloc(rt, TEST_BYTES);
    void *stream    = rt_stream(rt);
    int value       = -1;

    CU_ASSERT_EQUAL(rt->is_hip ?
                    rt->hip.hipDeviceGetAttribute(&value, 10013, 0) :
                    rt->cu.cuDeviceGetAttribute(&value, 122, 0), RT_OK);
    CU_ASSERT_EQUAL(value, 0);
    CU_ASSERT_EQUAL(rt_write(rt, stream, words, 1), RT_UNSUPPORTED);
    CU_ASSERT_EQUAL(rt_wait(rt, stream, words, 0, RT_GEQ), RT_UNSUPPORTED);
    CU_ASSERT_EQUAL(rt_copy(rt, stream, &words[1], &words[2], 8), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
}

RT_CASE_SET(little_memory, "STANDIN_MEMORY=10000", "STANDIN_MEMORY=10000")
{
    void *one = NULL;
    void *two = NULL;

    CU_ASSERT_EQUAL(rt_alloc(rt, &one, 6000), RT_OK);
    CU_ASSERT_EQUAL(rt_alloc(rt, &two, 6000), RT_NO_MEMORY);
    CU_ASSERT_EQUAL(rt_alloc(rt, &two, 4000), RT_OK);
    CU_ASSERT_EQUAL(rt_free(rt, one), RT_OK);
    CU_ASSERT_EQUAL(rt_alloc(rt, &one, 6000), RT_OK);
    CU_ASSERT_EQUAL(rt_set_device(rt, 1), RT_OK); /* Each has its own */
    CU_ASSERT_EQUAL(rt_alloc(rt, &two, 6000), RT_OK);
}

/* HIP: waits are for memory of hipExtMallocWithFlags() */
RT_CASE_SET(signal_memory, "STANDIN_SIGNAL=0", "STANDIN_SIGNAL=1")
{
    uint64_t *words  = rt_host_alloc(rt, TEST_BYTES);
    void *stream     = rt_stream(rt);
    uint64_t *signal = NULL;

    if (!rt->is_hip) {
        CU_ASSERT_EQUAL(rt_wait(rt, stream, words, 0, RT_GEQ), RT_OK);
        return;
    }
    CU_ASSERT_EQUAL(rt_wait(rt, stream, words, 0, RT_GEQ), RT_INVALID);
    CU_ASSERT_EQUAL(rt->hip.hipExtMallocWithFlags((void**)&signal, 16, 2),
                    RT_INVALID);
    CU_ASSERT_EQUAL(rt->hip.hipExtMallocWithFlags((void**)&signal, 8, 2),
                    RT_OK);
    CU_ASSERT_EQUAL(rt_wait(rt, stream, signal, 3, RT_EQ), RT_OK);
    CU_ASSERT_EQUAL(rt_write(rt, stream, words, 1), RT_OK);
    test_store(signal, 3);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
    CU_ASSERT_EQUAL(rt_free(rt, signal), RT_OK);
}

/* Faults */

static int test_calls;

static void test_count(void *arg)
{
    (void)arg;
    __atomic_fetch_add(&test_calls, 1, __ATOMIC_RELEASE);
}

static void test_callback(void *stream, int status, void *arg)
{
    (void)stream;
    __atomic_store_n((int*)arg, status, __ATOMIC_RELEASE);
}

/* What is parked ends, nothing runs any more; the other device goes on */
RT_CASE_SET(lost_device, "", "")
{
    uint64_t *words = rt_host_alloc(rt, TEST_BYTES);
    void *stream    = rt_stream(rt);
    int status      = -1;
    uint64_t *device_words;
    void *device, *mark, *other;

    CU_ASSERT_EQUAL(rt_event_create(rt, &mark), RT_OK);
    CU_ASSERT_EQUAL(rt_wait(rt, stream, &words[0], 1, RT_GEQ), RT_OK);
    CU_ASSERT_EQUAL(rt_write(rt, stream, &words[1], 1), RT_OK);
    CU_ASSERT_EQUAL(rt_host(rt, stream, test_count, NULL), RT_OK);
    CU_ASSERT_EQUAL(rt_event_record(rt, mark, stream), RT_OK);
    if (rt->is_hip) {
        CU_ASSERT_EQUAL(rt->hip.hipStreamAddCallback(stream, test_callback,
                                                     &status, 0), RT_OK);
    }
    rt->control.standin_lose_device(0);
    CU_ASSERT_EQUAL(rt_query(rt, stream), RT_LOST);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_LOST);
    CU_ASSERT_EQUAL(rt_sync_all(rt), RT_LOST);
    CU_ASSERT_EQUAL(rt_event_query(rt, mark), RT_LOST);
    CU_ASSERT_EQUAL(rt_event_sync(rt, mark), RT_LOST);
    CU_ASSERT_EQUAL(rt_write(rt, stream, &words[1], 1), RT_LOST);
    CU_ASSERT_EQUAL(rt_alloc(rt, &device, 64), RT_LOST);
    CU_ASSERT_EQUAL(rt_event_destroy(rt, mark), RT_LOST);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, stream), RT_LOST);
    while (rt->is_hip && (__atomic_load_n(&status, __ATOMIC_ACQUIRE) == -1)) {
        usleep(20);
    }
    CU_ASSERT(!rt->is_hip || (status == RT_LOST));

    CU_ASSERT_EQUAL(rt_set_device(rt, 1), RT_OK);
    other        = rt_stream(rt);
    device_words = rt_host_alloc(rt, 64);
    CU_ASSERT_EQUAL(rt_write(rt, other, device_words, 1), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, other), RT_OK);
    CU_ASSERT_EQUAL(device_words[0], 1);
    CU_ASSERT_EQUAL(test_load(&words[1]), 0);
    CU_ASSERT_EQUAL(__atomic_load_n(&test_calls, __ATOMIC_ACQUIRE), 0);
}

/* CUDA's contexts */

static void test_contexts(const rt_t *rt)
{
    void *primary   = NULL;
    void *ctx       = NULL;
    void *found     = NULL;
    uint64_t device = 0;
    int number      = -1;
    uint64_t *word;
    void *stream;

    CU_ASSERT_EQUAL(rt->cu.cuCtxGetCurrent(&primary), RT_OK);
    CU_ASSERT_EQUAL(rt->cu.cuCtxCreate_v2(&ctx, 0, 1), RT_OK);
    CU_ASSERT_EQUAL(rt->cu.cuCtxGetCurrent(&found), RT_OK);
    CU_ASSERT_PTR_EQUAL(found, ctx);
    CU_ASSERT_EQUAL(rt->cu.cuCtxGetDevice(&number), RT_OK);
    CU_ASSERT_EQUAL(number, 1);
    stream = rt_stream(rt);
    word   = rt_host_alloc(rt, 8);
    CU_ASSERT_EQUAL(rt->cu.cuMemAlloc_v2(&device, 64), RT_OK);
    CU_ASSERT_EQUAL(rt->cu.cuStreamGetCtx(stream, &found), RT_OK);
    CU_ASSERT_PTR_EQUAL(found, ctx);
    CU_ASSERT_EQUAL(rt->cu.cuCtxPopCurrent_v2(&found), RT_OK);
    CU_ASSERT_PTR_EQUAL(found, ctx);
    CU_ASSERT_EQUAL(rt->cu.cuCtxGetCurrent(&found), RT_OK);
    CU_ASSERT_PTR_EQUAL(found, primary);

    /* A kernel is of the current context, a write of the stream's */
    CU_ASSERT_EQUAL(rt_kernel(rt, stream, test_count, word, 8), RT_HANDLE);
    CU_ASSERT_EQUAL(rt_wait(rt, stream, word, 1, RT_EQ), RT_OK);
    CU_ASSERT_EQUAL(rt_query(rt, stream), RT_NOT_READY);

    /* What the context had goes with it, parked or not */
    CU_ASSERT_EQUAL(rt->cu.cuCtxDestroy_v2(ctx), RT_OK);
    CU_ASSERT_EQUAL(rt_query(rt, stream), RT_HANDLE);
    CU_ASSERT_EQUAL(rt->cu.cuMemFree_v2(device), RT_INVALID);
    CU_ASSERT_EQUAL(rt->cu.cuCtxDestroy_v2(ctx), RT_CONTEXT);
    CU_ASSERT_EQUAL(rt->cu.cuCtxPushCurrent_v2(ctx), RT_CONTEXT);
    CU_ASSERT_EQUAL(rt->cu.cuCtxSetCurrent(NULL), RT_OK);
    CU_ASSERT_EQUAL(rt_query(rt, NULL), RT_CONTEXT);
    CU_ASSERT_EQUAL(rt->cu.cuMemAlloc_v2(&device, 64), RT_CONTEXT);
    CU_ASSERT_EQUAL(rt->cu.cuCtxPushCurrent_v2(primary), RT_OK);
    CU_ASSERT_EQUAL(rt_query(rt, NULL), RT_OK);
}

ST_CASE(contexts_cuda)
{
    if (rt_is_child("contexts_cuda", "")) {
        test_contexts(rt_start(0));
    }
}

/* Two devices */

RT_CASE_SET(peers, "", "")
{
    void *stream = rt_stream(rt);
    void *far    = NULL;
    void *near   = NULL;
    uint64_t seen[2];

    CU_ASSERT_EQUAL(rt_alloc(rt, &near, TEST_BYTES), RT_OK);
    CU_ASSERT_EQUAL(rt_set_device(rt, 1), RT_OK);
    CU_ASSERT_EQUAL(rt_alloc(rt, &far, TEST_BYTES), RT_OK);
    CU_ASSERT_EQUAL(rt_set_device(rt, 0), RT_OK);
    CU_ASSERT_EQUAL(rt_peer_can(rt, 0, 1), 1);
    CU_ASSERT_EQUAL(rt_peer_can(rt, 1, 1), 0);

    /* A copy needs no access, an operation does */
    CU_ASSERT_EQUAL(rt_fill(rt, stream, near, 3, 16), RT_OK);
    CU_ASSERT_EQUAL(rt_copy(rt, stream, far, near, 16), RT_OK);
    CU_ASSERT_EQUAL(rt_write(rt, stream, far, 4), RT_INVALID);
    CU_ASSERT_EQUAL(rt_peer_enable(rt, 1), RT_OK);
    CU_ASSERT_EQUAL(rt_peer_enable(rt, 1), RT_PEER_ENABLED);
    CU_ASSERT_EQUAL(rt_write(rt, stream, far, 4), RT_OK);
    CU_ASSERT_EQUAL(rt_copy(rt, stream, seen, far, 16), RT_OK);
    CU_ASSERT_EQUAL(seen[0], 4);
    CU_ASSERT_EQUAL(seen[1], 0x0303030303030303);
}

RT_CASE_SET(no_peers, "STANDIN_PEER=0", "STANDIN_PEER=0")
{
    CU_ASSERT_EQUAL(rt_peer_can(rt, 0, 1), 0);
    CU_ASSERT_EQUAL(rt_peer_enable(rt, 1), 217);
}

/* Processes */

/* The host's use of a device's address ends the process */
RT_CASE_SET(use_is_death, "", "")
{
    volatile char *device = NULL;
    int status            = 0;
    pid_t child;

    CU_ASSERT_EQUAL(rt_alloc(rt, (void**)(uintptr_t)&device, 64), RT_OK);
    child = fork();
    if (child == 0) {
        close(STDERR_FILENO); /* A sanitizer says much */
        _exit(device[0]);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_NOT_EQUAL(status, 0);
}

RT_CASE_SET(no_protection, "STANDIN_PROTECT=0", "STANDIN_PROTECT=0")
{
    volatile char *device = NULL;

    CU_ASSERT_EQUAL(rt->control.standin_has_protection(),
                    STANDIN_PROTECT_NONE);
    CU_ASSERT_EQUAL(rt_alloc(rt, (void**)(uintptr_t)&device, 64), RT_OK);
    device[0] = 1;
    CU_ASSERT_EQUAL(device[0], 1);
}

RT_CASE_SET(forked, "", "")
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        _exit(rt_query(rt, NULL));
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT(WIFEXITED(status));
    CU_ASSERT_EQUAL(WEXITSTATUS(status), RT_NOT_INITIALIZED);
}

/* The process that has the memory: fills it, and tells when it may go */
static void test_ipc_owner(int is_hip, int end)
{
    const rt_t *rt = rt_start(is_hip);
    void *stream   = rt_stream(rt);
    void *device   = NULL;
    void *opened   = NULL;
    uint64_t seen  = 0;
    standin_handle_t handle;

    CU_ASSERT_EQUAL(rt_alloc(rt, &device, TEST_BYTES), RT_OK);
    CU_ASSERT_EQUAL(rt_fill(rt, stream, device, 9, TEST_BYTES), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
    CU_ASSERT_EQUAL(rt_ipc_get(rt, device, &handle), RT_OK);
    CU_ASSERT_EQUAL(rt_ipc_open(rt, &handle, &opened), RT_CONTEXT);
    CU_ASSERT_EQUAL(write(end, &handle, sizeof(handle)), sizeof(handle));

    /* What the other process writes is seen here */
    CU_ASSERT_EQUAL(rt_wait(rt, stream, device, 77, RT_EQ), RT_OK);
    CU_ASSERT_EQUAL(rt_copy(rt, stream, &seen, device, 8), RT_OK);
    CU_ASSERT_EQUAL(seen, 77);
    CU_ASSERT_EQUAL(rt_free(rt, device), RT_OK);

    /* Other memory has the number of the file now */
    CU_ASSERT_EQUAL(rt_alloc(rt, &device, TEST_BYTES), RT_OK);
    CU_ASSERT_EQUAL(write(end, &handle, 1), 1);
    CU_ASSERT_EQUAL(read(end, &handle, 1), 1);
}

static void test_ipc_user(int is_hip, int end)
{
    const rt_t *rt = rt_start(is_hip);
    void *stream   = rt_stream(rt);
    char *opened   = NULL;
    char *again    = NULL;
    uint64_t seen  = 0;
    rt_info_t info = {0};
    char byte      = 0;
    standin_handle_t handle;

    CU_ASSERT_EQUAL_FATAL(read(end, &handle, sizeof(handle)), sizeof(handle));
    CU_ASSERT_EQUAL_FATAL(rt_ipc_open(rt, &handle, (void**)&opened), RT_OK);
    CU_ASSERT_EQUAL(rt_ipc_open(rt, &handle, (void**)&again), RT_OK);
    CU_ASSERT_PTR_EQUAL(again, opened);
    CU_ASSERT_EQUAL(rt_info(rt, opened + 8, &info), RT_OK);
    CU_ASSERT(info.is_device);
    CU_ASSERT_EQUAL(info.size, TEST_BYTES);
    CU_ASSERT_EQUAL(rt_copy(rt, stream, &seen, opened, 8), RT_OK);
    CU_ASSERT_EQUAL(seen, 0x0909090909090909);
    CU_ASSERT_EQUAL(write(end, opened, 1), -1); /* Refused here, too */
    CU_ASSERT_EQUAL(rt_write(rt, stream, opened, 77), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);

    /* The owner has freed it: here it stays, but cannot be opened anew */
    CU_ASSERT_EQUAL(read(end, &byte, 1), 1);
    CU_ASSERT_EQUAL(rt_copy(rt, stream, &seen, opened, 8), RT_OK);
    CU_ASSERT_EQUAL(seen, 77);
    CU_ASSERT_EQUAL(rt_ipc_close(rt, opened), RT_OK);
    CU_ASSERT_EQUAL(rt_info(rt, opened, &info), RT_OK);
    CU_ASSERT_EQUAL(rt_ipc_close(rt, opened), RT_OK);
    CU_ASSERT_EQUAL(rt_ipc_close(rt, opened), RT_INVALID);
    CU_ASSERT_EQUAL(rt_info(rt, opened, &info), RT_INVALID);
    CU_ASSERT_EQUAL(rt_ipc_open(rt, &handle, (void**)&opened), 205);
    CU_ASSERT_EQUAL(write(end, &byte, 1), 1);
}

/* Both sides start before either has opened a runtime */
static void test_ipc(int is_hip)
{
    int status = -1;
    int ends[2];
    pid_t child;

    CU_ASSERT_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    child = fork();
    if (child == 0) {
        close(ends[1]);
        test_ipc_owner(is_hip, ends[0]);
        _exit(CU_get_number_of_failure_records() != 0);
    }
    close(ends[0]);
    test_ipc_user(is_hip, ends[1]);
    close(ends[1]);
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
}

ST_CASE(ipc_cuda)
{
    if (rt_is_child("ipc_cuda", "")) {
        test_ipc(0);
    }
}

ST_CASE(ipc_hip)
{
    if (rt_is_child("ipc_hip", "")) {
        test_ipc(1);
    }
}

/* As a dmabuf: a file descriptor that can be mapped */
RT_CASE_SET(exported, "", "STANDIN_VERSION=60443484")
{
    void *stream   = rt_stream(rt);
    char *device   = NULL;
    uint64_t *seen;
    int fd         = -1;

    CU_ASSERT_EQUAL(rt_alloc(rt, (void**)&device, TEST_BYTES), RT_OK);
    CU_ASSERT_EQUAL(rt_fill(rt, stream, device, 6, TEST_BYTES), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
    CU_ASSERT_EQUAL(rt_export(rt, device, 100, &fd), RT_INVALID);
    CU_ASSERT_EQUAL_FATAL(rt_export(rt, device, TEST_BYTES, &fd), RT_OK);
    seen = mmap(NULL, TEST_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(seen, MAP_FAILED);
    CU_ASSERT_EQUAL(seen[1], 0x0606060606060606);
    munmap(seen, TEST_BYTES);
    close(fd);
}

RT_CASE_SET(not_exported, "STANDIN_DMABUF=0",
            "STANDIN_DMABUF=0 STANDIN_VERSION=60443484")
{
    void *device = NULL;
    int fd       = -1;

    CU_ASSERT_EQUAL(rt_alloc(rt, &device, TEST_BYTES), RT_OK);
    CU_ASSERT_EQUAL(rt_export(rt, device, TEST_BYTES, &fd), RT_UNSUPPORTED);
}

RT_CASE_SET(exported_only, "STANDIN_DMABUF=2",
            "STANDIN_DMABUF=2 STANDIN_VERSION=60443484")
{
    void *device = NULL;
    int fd       = -1;

    CU_ASSERT_EQUAL(rt_alloc(rt, &device, TEST_BYTES), RT_OK);
    CU_ASSERT_EQUAL_FATAL(rt_export(rt, device, TEST_BYTES, &fd), RT_OK);
    CU_ASSERT_PTR_EQUAL(mmap(NULL, TEST_BYTES, PROT_READ, MAP_SHARED, fd, 0),
                        MAP_FAILED);
    close(fd);
}

ST_SUITE("standin_set")
