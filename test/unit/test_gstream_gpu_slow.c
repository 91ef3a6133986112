/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_gpu_slow.c - while the stand-in for HIP's runtime takes long to
 * register memory, only what needs that memory waits.
 */
#include "gstream_util.h"
#include "standin_util.h"
#include "ucs_gstream_memory.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

/** What a case works on. */
typedef struct {
    const rt_t        *rt;
    ucs_gstream_h     stream;
    volatile uint64_t *word;  /* at the begin of a range that is not registered
                                 yet */
    unsigned long     held;   /* calls, before */
} slow_t;

/** A thread that makes a call; it returns what that has returned. */
typedef struct {
    slow_t    *slow;
    pid_t     tid;            /* atomic */
    pthread_t thread;
} caller_t;

static void hold(slow_t *slow, unsigned what)
{
    slow->rt->control.standin_hold(what);
}

static unsigned long num_held(slow_t *slow)
{
    return rt_counts(slow->rt).held - slow->held;
}

static void until_held(slow_t *slow)
{
    while (num_held(slow) == 0) {
        sched_yield();
    }
}

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void slow_init(slow_t *slow)
{
    void *area = mmap(NULL, page_size(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(area, MAP_FAILED);
    slow->word   = area;
    slow->rt     = rt_open(1);
    slow->held   = 0;
    slow->stream = gstream_util_create_gpu(1);
    CU_ASSERT_EQUAL(ucs_gstream_memory_add(area, page_size(),
                                           UCS_GSTREAM_MEMORY_HOST), UCS_OK);
    slow->held = num_held(slow);
    hold(slow, STANDIN_HOLD_REGISTER);
}

static void slow_cleanup(slow_t *slow)
{
    gstream_util_finish(slow->stream);
    munmap((void*)slow->word, page_size());
}

static void caller_start(caller_t *caller, slow_t *slow, void *(*func)(void*))
{
    caller->slow = slow;
    caller->tid  = 0;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&caller->thread, NULL, func, caller),
                          0);
}

/* Returns when it is in its call, which waits */
static void caller_await(caller_t *caller)
{
    pid_t tid;

    while ((tid = __atomic_load_n(&caller->tid, __ATOMIC_ACQUIRE)) == 0) {
        sched_yield();
    }
    gstream_util_until_asleep(tid);
}

static intptr_t caller_join(caller_t *caller)
{
    void *result;

    CU_ASSERT_EQUAL(pthread_join(caller->thread, &result), 0);
    return (intptr_t)result;
}

static void *ask(void *arg)
{
    caller_t *caller = arg;

    __atomic_store_n(&caller->tid, gstream_util_tid(), __ATOMIC_RELEASE);
    return (void*)(intptr_t)ucs_gstream_reaches(caller->slow->stream,
                                                caller->slow->word);
}

static void *remove_range(void *arg)
{
    caller_t *caller = arg;

    __atomic_store_n(&caller->tid, gstream_util_tid(), __ATOMIC_RELEASE);
    return (void*)(intptr_t)ucs_gstream_memory_remove(
            (void*)caller->slow->word);
}

/* Words of other ranges are found, and made, and ranges are added, which moves
 * the one that is being registered */
ST_CASE(others)
{
    volatile uint64_t *word = ucs_gstream_word_get();
    char *area              = mmap(NULL, 3 * page_size(),
                                   PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *ranges[2];
    caller_t caller;
    slow_t slow;
    unsigned i;

    slow_init(&slow);
    hold(&slow, 0);
    CU_ASSERT_TRUE(ucs_gstream_reaches(slow.stream, word));
    hold(&slow, STANDIN_HOLD_REGISTER);
    caller_start(&caller, &slow, ask);
    until_held(&slow);
    CU_ASSERT_TRUE(ucs_gstream_reaches(slow.stream, word));
    for (i = 0; i < 2; ++i) {
        ranges[i] = area + (2 * i * page_size());
        CU_ASSERT_EQUAL(ucs_gstream_memory_add(ranges[i], page_size(),
                                               UCS_GSTREAM_MEMORY_HOST),
                        UCS_OK);
    }
    CU_ASSERT_EQUAL(ucs_gstream_memory_remove(ranges[0]), UCS_OK);
    ucs_gstream_word_put(word);
    hold(&slow, 0);
    CU_ASSERT_TRUE(caller_join(&caller));
    CU_ASSERT_EQUAL(num_held(&slow), 1);
    gstream_util_write(slow.stream, slow.word, 5);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(slow.stream), UCS_OK);
    CU_ASSERT_EQUAL(*slow.word, 5);
    CU_ASSERT_EQUAL(ucs_gstream_memory_remove((void*)slow.word), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_memory_remove(ranges[1]), UCS_OK);
    munmap(area, 3 * page_size());
    slow_cleanup(&slow);
}

/* Two threads that need a range register it once */
ST_CASE(once)
{
    caller_t callers[2];
    slow_t slow;

    slow_init(&slow);
    caller_start(&callers[0], &slow, ask);
    until_held(&slow);
    caller_start(&callers[1], &slow, ask);
    caller_await(&callers[1]);
    hold(&slow, 0);
    CU_ASSERT_TRUE(caller_join(&callers[0]));
    CU_ASSERT_TRUE(caller_join(&callers[1]));
    CU_ASSERT_EQUAL(num_held(&slow), 1);
    CU_ASSERT_EQUAL(ucs_gstream_memory_remove((void*)slow.word), UCS_OK);
    slow_cleanup(&slow);
}

/* What is removed meanwhile is unregistered: the same memory can be added, and
 * registered, once more */
ST_CASE(removed)
{
    caller_t callers[2];
    slow_t slow;

    slow_init(&slow);
    caller_start(&callers[0], &slow, ask);
    until_held(&slow);
    caller_start(&callers[1], &slow, remove_range);
    caller_await(&callers[1]);
    hold(&slow, 0);
    (void)caller_join(&callers[0]); /* the range was there, or not any more */
    CU_ASSERT_EQUAL(caller_join(&callers[1]), UCS_OK);
    CU_ASSERT_FALSE(ucs_gstream_reaches(slow.stream, slow.word));
    CU_ASSERT_EQUAL(ucs_gstream_memory_add((void*)slow.word, page_size(),
                                           UCS_GSTREAM_MEMORY_HOST), UCS_OK);
    CU_ASSERT_TRUE(ucs_gstream_reaches(slow.stream, slow.word));
    CU_ASSERT_EQUAL(ucs_gstream_memory_remove((void*)slow.word), UCS_OK);
    slow_cleanup(&slow);
}

ST_SUITE("gstream_gpu_slow")
