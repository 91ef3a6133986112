/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_full.c - a call waits for room in a stream of a GPU, of the
 * stand-ins: what does not need that stream goes on.
 */
#include "gstream_util.h"
#include "st_cunit.h"
#include "ucs_gstream_memory.h"

#include "standin_control.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEPTH 4
#define LOOKS 2000


/* A runtime, as an application has loaded it */
typedef struct {
    ucs_gstream_type_t type;
    int                (*alloc)(void **address, size_t size);
    void               (*set_depth)(unsigned depth);
    void               (*counts)(standin_counts_t *counts);
} runtime_t;

/* A call by a thread of its own */
typedef struct {
    ucs_gstream_h     stream;
    void              *device; /* of a copy; NULL: a store */
    volatile uint64_t *word;
    ucs_status_t      status;
    pthread_t         thread;
} call_t;

static void *find(void *library, const char *name)
{
    void *func = dlsym(library, name);

    CU_ASSERT_PTR_NOT_NULL_FATAL(func);
    return func;
}

/* CUDA's driver needs a context */
static void load(runtime_t *runtime, int is_hip)
{
    char path[512];
    void *library;
    void *context;
    int (*init)(unsigned);
    int (*retain)(void**, int);
    int (*set_current)(void*);

    snprintf(path, sizeof(path), "%s/%s", STANDIN_DIR,
             is_hip ? "libamdhip64.so" : "libcuda.so.1");
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(library);
    runtime->type = is_hip ? UCS_GSTREAM_TYPE_HIP : UCS_GSTREAM_TYPE_CUDA;
    *(void**)&runtime->alloc     = find(library, is_hip ? "hipMalloc" :
                                                          "cuMemAlloc_v2");
    *(void**)&runtime->set_depth = find(library, "standin_set_depth");
    *(void**)&runtime->counts    = find(library, "standin_counts");
    if (!is_hip) {
        *(void**)&init        = find(library, "cuInit");
        *(void**)&retain      = find(library, "cuDevicePrimaryCtxRetain");
        *(void**)&set_current = find(library, "cuCtxSetCurrent");
        CU_ASSERT_EQUAL_FATAL(init(0), 0);
        CU_ASSERT_EQUAL_FATAL(retain(&context, 0), 0);
        CU_ASSERT_EQUAL_FATAL(set_current(context), 0);
    }
}

static standin_counts_t count(const runtime_t *runtime)
{
    standin_counts_t counts;

    runtime->counts(&counts);
    return counts;
}

static ucs_gstream_h make(const runtime_t *runtime)
{
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE,
        .type       = runtime->type
    };
    ucs_gstream_h stream        = NULL;

    CU_ASSERT_EQUAL_FATAL(ucs_gstream_create(&params, &stream), UCS_OK);
    return stream;
}

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
static void settle(const runtime_t *runtime)
{
    unsigned long calls = 0;
    unsigned looks;

    for (looks = 0; looks < LOOKS; ++looks) {
        (void)sched_yield();
        if (count(runtime).calls != calls) {
            calls = count(runtime).calls;
            looks = 0;
        }
    }
}

/* Behind a copy without room the registration of memory waits. A thread that
 * waits for that holds up no other: a store lets the full stream go on. */
static void run(int is_hip)
{
    size_t page = sysconf(_SC_PAGESIZE);
    void *fresh = mmap(NULL, page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile uint64_t *words[3];
    ucs_gstream_h streams[3];
    call_t copy = {.device = NULL}, store = {.device = NULL};
    unsigned long full;
    runtime_t runtime;
    unsigned i;

    load(&runtime, is_hip);
    for (i = 0; i < 3; ++i) {
        streams[i] = make(&runtime);
        words[i]   = ucs_gstream_word_get();
        gstream_util_write(streams[i], words[i], 0); /* registers it */
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(streams[i]), UCS_OK);
    }
    CU_ASSERT_EQUAL_FATAL(runtime.alloc(&copy.device, 64), 0);
    CU_ASSERT_EQUAL(ucs_gstream_memory_add(fresh, page,
                                           UCS_GSTREAM_MEMORY_HOST), UCS_OK);
    runtime.set_depth(DEPTH);
    gstream_util_wait(streams[0], words[0], 1);
    for (i = 1; i < DEPTH; ++i) {
        gstream_util_write(streams[0], words[1], i);
    }
    full        = count(&runtime).full;
    copy.stream = streams[0];
    copy.word   = words[2];
    call_begin(&copy);
    while (count(&runtime).full == full) {
        (void)sched_yield();
    }
    store.stream = streams[1];
    store.word   = fresh;
    call_begin(&store);
    settle(&runtime);

    gstream_util_write(streams[2], words[0], 1);
    call_end(&copy);
    call_end(&store);
    runtime.set_depth(0);
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

ST_CASE_CALL(cuda, run(0))
ST_CASE_CALL(hip, run(1))

ST_SUITE("gstream_full")
