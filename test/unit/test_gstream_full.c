/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_full.c - a call waits for room in a stream of a GPU, of the
 * stand-ins: what does not need that stream goes on.
 */
#include "gstream_util.h"
#include "st_cunit.h"
#include "standin_util.h"
#include "ucs_gstream_memory.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEPTH 4
#define LOOKS 2000


/* A call by a thread of its own */
typedef struct {
    ucs_gstream_h     stream;
    void              *device; /* of a copy; NULL: a store */
    volatile uint64_t *word;
    ucs_status_t      status;
    pthread_t         thread;
} call_t;

static void *call_main(void *arg)
{
    call_t *call = arg;

    call->status = (call->device != NULL) ?
                   ucs_gstream_enqueue_copy(call->stream, call->device,
                                            (void*)call->word, 8) :
                   ucs_gstream_enqueue_write64(call->stream, call->word, 1);
    return NULL;
}

static void call_begin(call_t *call)
{
    CU_ASSERT_EQUAL_FATAL(pthread_create(&call->thread, NULL, call_main, call),
                          0);
}

static void call_end(call_t *call)
{
    CU_ASSERT_EQUAL(pthread_join(call->thread, NULL), 0);
    CU_ASSERT_EQUAL(call->status, UCS_OK);
}

/* Until the runtime has not been called for some time: nothing that is checked
 * depends on it */
static void settle(const rt_t *rt)
{
    unsigned long calls = 0;
    unsigned looks;

    for (looks = 0; looks < LOOKS; ++looks) {
        (void)sched_yield();
        if (rt_counts(rt).calls != calls) {
            calls = rt_counts(rt).calls;
            looks = 0;
        }
    }
}

/* Behind a copy without room the registration of memory waits. A thread that
 * waits for that holds up no other: a store lets the full stream go on. */
static void run(const rt_t *rt)
{
    size_t page = sysconf(_SC_PAGESIZE);
    void *fresh = mmap(NULL, page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile uint64_t *words[3];
    ucs_gstream_h streams[3];
    call_t copy = {.device = NULL}, store = {.device = NULL};
    unsigned long full;
    unsigned i;

    for (i = 0; i < 3; ++i) {
        streams[i] = gstream_util_create_gpu(rt->is_hip);
        words[i]   = ucs_gstream_word_get();
        gstream_util_write(streams[i], words[i], 0); /* registers it */
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(streams[i]), UCS_OK);
    }
    CU_ASSERT_EQUAL_FATAL(rt_alloc(rt, &copy.device, 64), RT_OK);
    CU_ASSERT_EQUAL(ucs_gstream_memory_add(fresh, page,
                                           UCS_GSTREAM_MEMORY_HOST), UCS_OK);
    rt->control.standin_set_depth(DEPTH);
    gstream_util_wait(streams[0], words[0], 1);
    for (i = 1; i < DEPTH; ++i) {
        gstream_util_write(streams[0], words[1], i);
    }
    full        = rt_counts(rt).full;
    copy.stream = streams[0];
    copy.word   = words[2];
    call_begin(&copy);
    while (rt_counts(rt).full == full) {
        (void)sched_yield();
    }
    store.stream = streams[1];
    store.word   = fresh;
    call_begin(&store);
    settle(rt);

    gstream_util_write(streams[2], words[0], 1);
    call_end(&copy);
    call_end(&store);
    rt->control.standin_set_depth(0);
    for (i = 0; i < 3; ++i) {
        gstream_util_finish(streams[i]);
    }
    CU_ASSERT_EQUAL(*(uint64_t*)fresh, 1);
    CU_ASSERT_EQUAL(*words[1], DEPTH - 1);
    CU_ASSERT_EQUAL(ucs_gstream_memory_remove(fresh), UCS_OK);
    munmap(fresh, page);
    for (i = 0; i < 3; ++i) {
        ucs_gstream_word_put(words[i]);
    }
}

ST_CASE_CALL(cuda, run(rt_start(0)))
ST_CASE_CALL(hip, run(rt_start(1)))

ST_SUITE("gstream_full")
