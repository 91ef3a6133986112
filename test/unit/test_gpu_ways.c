/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gpu_ways.c - ways in which a GPU's stream can store and wait, with what
 * each takes: the questions of the design that a GPU alone can answer. Calls of
 * the runtime, nothing of the library. On a stand-in the calls are checked, and
 * the times mean nothing.
 */
#include "st_cunit.h"
#include "standin_util.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STORES     32
#define LINE       8    /* Words that no two of them share */
#define MAX_ROUNDS 220
#define WARM_UP    20
#define SETTLE_US  100  /* Until a stream is at its wait */
#define NO_BARRIER 1u

#define WORD (sizeof(uint64_t))


/** What all ways work on. */
typedef struct {
    const rt_t *rt;
    void       *stream;
    void       *other;
    uint64_t   *host;    /* STORES words of the host, a line each */
    uint64_t   *address; /* ... as the device has it */
    uint64_t   *near;    /* A word in device 0 */
    uint64_t   *far;     /* ... in another one that it reaches, or there, too */
    uint64_t   *staged;  /* In device 0: 0, 1, 2, ... */
    uint64_t   round;    /* From 1 on */
    double     called;   /* us; when all calls were made */
} ways_t;

/** A way. Returns 0 if it is none of this runtime, version or machine. */
typedef struct {
    const char *name;
    int        (*run)(ways_t *ways, double *start);
    unsigned   words; /* That the host sees in the end */
} way_t;

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (1e6 * (double)time.tv_sec) + (1e-3 * (double)time.tv_nsec);
}

static void tell_host(ways_t *ways)
{
    CU_ASSERT_EQUAL(rt_write(ways->rt, ways->stream, ways->address,
                             ways->round), RT_OK);
}

/* Many stores to words of the host */
static int run_batch(ways_t *ways, unsigned inner_flags)
{
    standin_batch_op_t ops[STORES];
    unsigned i;

    if (ways->rt->is_hip && (ways->rt->hip.hipStreamBatchMemOp == NULL)) {
        return 0;
    }
    memset(ops, 0, sizeof(ops));
    for (i = 0; i < STORES; ++i) {
        ops[i].op      = RT_OP_WRITE64;
        ops[i].address = RT_U64(ways->address + ((size_t)LINE * i));
        ops[i].value   = ways->round;
        ops[i].flags   = (i > 0) ? inner_flags : 0;
    }
    CU_ASSERT_EQUAL(rt_batch(ways->rt, ways->stream, STORES, ops), RT_OK);
    return 1;
}

static int run_barriers(ways_t *ways, double *start)
{
    (void)start;
    return run_batch(ways, 0);
}

static int run_front(ways_t *ways, double *start)
{
    (void)start;
    return !ways->rt->is_hip && run_batch(ways, NO_BARRIER);
}

static int run_calls(ways_t *ways, double *start)
{
    unsigned i;

    (void)start;
    for (i = 0; i < STORES; ++i) {
        CU_ASSERT_EQUAL(rt_write(ways->rt, ways->stream,
                                 ways->address + ((size_t)LINE * i),
                                 ways->round), RT_OK);
    }
    return 1;
}

/* A word for a peer, behind which the host is told */
static int run_store(ways_t *ways, double *start)
{
    (void)start;
    CU_ASSERT_EQUAL(rt_write(ways->rt, ways->stream, ways->far, ways->round),
                    RT_OK);
    tell_host(ways);
    return 1;
}

static int run_copy(ways_t *ways, double *start)
{
    (void)start;
    CU_ASSERT_EQUAL(rt_copy(ways->rt, ways->stream, ways->far,
                            ways->staged + ways->round, WORD), RT_OK);
    tell_host(ways);
    return 1;
}

/* Another stream stores to the word, and the host is told */
static int run_wait(ways_t *ways, double *start, uint64_t *word)
{
    CU_ASSERT_EQUAL(rt_wait(ways->rt, ways->stream, word, ways->round, RT_GEQ),
                    RT_OK);
    tell_host(ways);
    usleep(SETTLE_US);
    *start = now();
    CU_ASSERT_EQUAL(rt_write(ways->rt, ways->other, word, ways->round), RT_OK);
    return 1;
}

static int run_wait_host(ways_t *ways, double *start)
{
    return run_wait(ways, start, ways->address + LINE);
}

static int run_wait_device(ways_t *ways, double *start)
{
    return run_wait(ways, start, ways->near);
}

static const way_t all_ways[] = {
    {"32 stores, one batch, a barrier each", run_barriers, STORES},
    {"32 stores, one batch, a barrier in front", run_front, STORES},
    {"32 stores, a call each", run_calls, STORES},
    {"a word of a peer device: a store", run_store, 1},
    {"a word of a peer device: a copy", run_copy, 1},
    {"a wait for a word of the host", run_wait_host, 1},
    {"a wait for a word of the device", run_wait_device, 1}
};

static void until_seen(const ways_t *ways, unsigned words)
{
    unsigned i;

    for (i = words; i-- > 0;) {
        while (__atomic_load_n(&ways->host[(size_t)LINE * i],
                               __ATOMIC_ACQUIRE) != ways->round) {
            (void)sched_yield();
        }
    }
}

static int compare(const void *one, const void *two)
{
    double difference = *(const double*)one - *(const double*)two;

    return (difference > 0) - (difference < 0);
}

/* Median; sorts them */
static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

/* A line of the table */
static void measure(ways_t *ways, const way_t *way, unsigned warm_up,
                    unsigned rounds)
{
    double called[MAX_ROUNDS], seen[MAX_ROUNDS];
    double start;
    unsigned i;

    memset(ways->host, 0, STORES * LINE * WORD);
    for (i = 0; i < warm_up + rounds; ++i) {
        ways->round = i + 1;
        start       = now();
        if (!way->run(ways, &start)) {
            printf("| %-40s | - | - |\n", way->name);
            return;
        }
        called[i] = now() - start;
        until_seen(ways, way->words);
        seen[i]   = now() - start;
        CU_ASSERT_EQUAL(rt_sync(ways->rt, ways->stream), RT_OK);
        CU_ASSERT_EQUAL(rt_sync(ways->rt, ways->other), RT_OK);
    }
    printf("| %-40s | %.2f | %.2f |\n", way->name,
           median(called + warm_up, rounds), median(seen + warm_up, rounds));
}

/* A word in another device, or else in the own one; whose it is */
static int get_far(ways_t *ways)
{
    int count  = 0;
    int device = 0;
    void *far  = NULL;

    CU_ASSERT_EQUAL(rt_device_count(ways->rt, &count), RT_OK);
    if ((count > 1) && rt_peer_can(ways->rt, 0, 1)) {
        CU_ASSERT_EQUAL(rt_peer_enable(ways->rt, 1), RT_OK);
        device = 1;
    }
    CU_ASSERT_EQUAL(rt_set_device(ways->rt, device), RT_OK);
    CU_ASSERT_EQUAL_FATAL(rt_alloc(ways->rt, &far, WORD), RT_OK);
    CU_ASSERT_EQUAL(rt_set_device(ways->rt, 0), RT_OK);
    ways->far = far;
    return device;
}

static void *get_near(const ways_t *ways, const uint64_t *from, size_t count)
{
    void *memory = NULL;

    CU_ASSERT_EQUAL_FATAL(rt_alloc(ways->rt, &memory, count * WORD), RT_OK);
    CU_ASSERT_EQUAL(rt_copy_now(ways->rt, memory, from, count * WORD), RT_OK);
    return memory;
}

static void ways_init(ways_t *ways, const rt_t *rt)
{
    uint64_t numbers[MAX_ROUNDS + 1];
    uint64_t i;

    for (i = 0; i <= MAX_ROUNDS; ++i) {
        numbers[i] = i;
    }
    ways->rt     = rt;
    ways->stream = rt_stream(rt);
    ways->other  = rt_stream(rt);
    ways->host   = rt_host_alloc(rt, STORES * LINE * WORD);
    CU_ASSERT_EQUAL(rt_device_pointer(rt, ways->host, (void**)&ways->address),
                    RT_OK);
    ways->near   = get_near(ways, numbers, 1);
    ways->staged = get_near(ways, numbers, MAX_ROUNDS + 1);
}

static void ways_cleanup(ways_t *ways)
{
    CU_ASSERT_EQUAL(rt_free(ways->rt, ways->far), RT_OK);
    CU_ASSERT_EQUAL(rt_free(ways->rt, ways->staged), RT_OK);
    CU_ASSERT_EQUAL(rt_free(ways->rt, ways->near), RT_OK);
    CU_ASSERT_EQUAL(rt_host_free(ways->rt, ways->host), RT_OK);
    CU_ASSERT_EQUAL(rt_stream_destroy(ways->rt, ways->other), RT_OK);
    CU_ASSERT_EQUAL(rt_stream_destroy(ways->rt, ways->stream), RT_OK);
}

/* The stream's last word is where it was to go */
static void check_far(const ways_t *ways)
{
    uint64_t word = 0;

    CU_ASSERT_EQUAL(rt_copy_now(ways->rt, &word, ways->far, WORD), RT_OK);
    CU_ASSERT_EQUAL(word, ways->round);
}

/* Which stores have a barrier, on a stand-in */
static void check_barriers(ways_t *ways, int (*run)(ways_t *ways,
                                                    double *start),
                           unsigned barriers)
{
    standin_counts_t before = rt_counts(ways->rt);

    ++ways->round;
    (void)run(ways, NULL);
    CU_ASSERT_EQUAL(rt_sync(ways->rt, ways->stream), RT_OK);
    CU_ASSERT_EQUAL(rt_counts(ways->rt).barriers - before.barriers, barriers);
}

static void run_all(const rt_t *rt)
{
    int is_real = rt_is_real(rt);
    ways_t ways;
    int device;
    size_t i;

    ways_init(&ways, rt);
    device = get_far(&ways);
    printf("%s; the peer's memory is in device %d%s\n\n"
           "| what the stream does; us, medians | to enqueue | until the host "
           "has seen it |\n| --- | ---: | ---: |\n",
           rt->is_hip ? "HIP" : "CUDA", device,
           is_real ? "" : "; on a stand-in, where times mean nothing");
    for (i = 0; i < ST_CUNIT_COUNT(all_ways); ++i) {
        measure(&ways, &all_ways[i], is_real ? WARM_UP : 1,
                is_real ? MAX_ROUNDS - WARM_UP : 4);
        if ((all_ways[i].run == run_store) || (all_ways[i].run == run_copy)) {
            check_far(&ways);
        }
    }
    if (!is_real && !rt->is_hip) {
        check_barriers(&ways, run_barriers, STORES);
        check_barriers(&ways, run_front, 1);
    }
    ways_cleanup(&ways);
}

static void run_case(int is_hip)
{
    const char *only = getenv("ST_TEST_STREAM");

    if ((only != NULL) && strcmp(only, is_hip ? "hip" : "cuda")) {
        st_cunit_skip("ST_TEST_STREAM names the other runtime");
        return;
    }
    run_all(rt_start(is_hip));
}

ST_CASE_CALL(times_hip, run_case(1))
ST_CASE_CALL(times_cuda, run_case(0))

ST_SUITE("gpu_ways")
