/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_gpu_bad.c - streams of GPUs, of the stand-ins for the runtimes,
 * where they cannot be used.
 */
#include "gstream_util.h"
#include "st_cunit.h"
#include "standin_util.h"
#include "ucs_gstream_memory.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a runtime lacks, and what the text says of it */
typedef struct {
    const char         *file; /* of the runtime */
    ucs_gstream_type_t type;
    const char         *name; /* of a setting of the stand-in, and */
    const char         *value;
    const char         *reason;
} lack_t;

/* In a process of its own, as the stand-in's settings are read once. Not 0 if
 * the runtime can be used, or the text is another one. */
static int use_without(const lack_t *lack)
{
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE,
        .type       = lack->type
    };
    ucs_gstream_type_attr_t attr;
    ucs_gstream_h stream;

    if ((setenv(lack->name, lack->value, 1) != 0) ||
        (dlopen(lack->file, RTLD_NOW) == NULL)) {
        return 1;
    }
    if ((ucs_gstream_query_type(lack->type, &attr) != UCS_ERR_UNSUPPORTED) ||
        (ucs_gstream_create(&params, &stream) != UCS_ERR_UNSUPPORTED)) {
        return 2;
    }
    return strstr(attr.reason, lack->reason) == NULL;
}

/* The first case, before a runtime is opened */
ST_CASE(lacks)
{
    static const lack_t lacks[] = {
        {STANDIN_DIR "/libcuda.so.1", UCS_GSTREAM_TYPE_CUDA, "STANDIN_DEVICES",
         "0", "libcuda.so.1 finds no device"},
        {STANDIN_DIR "/libamdhip64.so", UCS_GSTREAM_TYPE_HIP, "STANDIN_DEVICES",
         "0", "libamdhip64.so finds no device"},
        {STANDIN_DIR "/libcuda.so.1", UCS_GSTREAM_TYPE_CUDA, "STANDIN_MEMOPS",
         "0", "no stream memory operations of 64 bits"},
        {STANDIN_DIR "/libamdhip64.so", UCS_GSTREAM_TYPE_HIP, "STANDIN_MEMOPS",
         "0", "hipStreamWaitValue64"},
        {STANDIN_DIR "/libcuda.so.1", UCS_GSTREAM_TYPE_CUDA, "STANDIN_VERSION",
         "11060", "NVreg_EnableStreamMemOPs=1"},
        {GPU_STANDIN_DIR "/gpu_standin_cuda.so", UCS_GSTREAM_TYPE_CUDA,
         "STANDIN_VERSION", "1", "libcuda.so.1 has no cuInit: the version is "
         "too old"}
    };
    unsigned i;
    int status;
    pid_t pid;

    gstream_util_quiet(1);
    for (i = 0; i < ST_CUNIT_COUNT(lacks); ++i) {
        status = -1;
        pid    = fork();
        if (pid == 0) {
            _exit(use_without(&lacks[i]));
        }
        CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
        CU_ASSERT_EQUAL(status, 0);
    }
    gstream_util_quiet(0);
}

static ucs_gstream_params_t params_of(const rt_t *rt, unsigned fields,
                                      void *native)
{
    return (ucs_gstream_params_t){
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE | fields,
        .type       = rt->is_hip ? UCS_GSTREAM_TYPE_HIP : UCS_GSTREAM_TYPE_CUDA,
        .native     = native
    };
}

static ucs_gstream_h make(const rt_t *rt)
{
    ucs_gstream_params_t params = params_of(rt, 0, NULL);
    ucs_gstream_h stream        = NULL;

    CU_ASSERT_EQUAL_FATAL(ucs_gstream_create(&params, &stream), UCS_OK);
    return stream;
}

/* A stream of this library is none of a runtime, which does not get to see it:
 * a driver may look into what it is given */
static void run_handle(const rt_t *rt)
{
    ucs_gstream_h streams[] = {make(rt), gstream_util_create()};
    standin_counts_t before, after;
    ucs_gstream_params_t params;
    unsigned i;

    rt->control.standin_counts(&before);
    gstream_util_quiet(1);
    for (i = 0; i < 2; ++i) {
        params = params_of(rt, UCS_GSTREAM_PARAM_FIELD_NATIVE, streams[i]);
        gstream_util_refused(&params, UCS_ERR_INVALID_PARAM);
    }
    gstream_util_quiet(0);
    rt->control.standin_counts(&after);
    CU_ASSERT_EQUAL(after.calls, before.calls);
    gstream_util_finish(streams[0]);
    gstream_util_finish(streams[1]);
}

ST_CASE_CALL(handle_cuda, run_handle(rt_start(0)))
ST_CASE_CALL(handle_hip, run_handle(rt_start(1)))

/* What a child that was forked may not use. Not 0 if it can. */
static int use_forked(const rt_t *rt, ucs_gstream_h stream, void *device)
{
    ucs_gstream_params_t params = params_of(rt, 0, NULL);
    volatile uint64_t *word     = ucs_gstream_word_get();
    ucs_gstream_type_attr_t attr;
    ucs_gstream_memory_attr_t memory;
    ucs_gstream_h other;

    if ((ucs_gstream_query_type(params.type, &attr) != UCS_ERR_UNSUPPORTED) ||
        (strstr(attr.reason, "forked") == NULL)) {
        return 1;
    }
    if ((ucs_gstream_create(&params, &other) != UCS_ERR_UNSUPPORTED) ||
        (ucs_gstream_enqueue_write64(stream, word, 1) != UCS_ERR_IO_ERROR) ||
        (ucs_gstream_query(stream) != UCS_ERR_IO_ERROR) ||
        (ucs_gstream_synchronize(stream) != UCS_ERR_IO_ERROR)) {
        return 2;
    }
    return (ucs_gstream_memory_query(device, &memory) != UCS_OK) ||
           (memory.type != UCS_GSTREAM_TYPE_HOST) ||
           (ucs_gstream_destroy(stream) != UCS_OK);
}

/* A runtime is not asked in a child, where its locks may be held for ever: that
 * of the stand-in is most of the time, while a stream waits */
static void run_forked(const rt_t *rt)
{
    ucs_gstream_h stream    = make(rt);
    volatile uint64_t *gate = ucs_gstream_word_get();
    void *device            = NULL;
    int status              = -1;
    pid_t child;

    CU_ASSERT_EQUAL_FATAL(rt_alloc(rt, &device, 256), RT_OK);
    gstream_util_wait(stream, gate, 1);
    gstream_util_quiet(1);
    child = fork();
    if (child == 0) {
        _exit(use_forked(rt, stream, device));
    }
    gstream_util_quiet(0);
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    gstream_util_store(gate, 1);
    gstream_util_finish(stream);
    CU_ASSERT_EQUAL(rt_free(rt, device), RT_OK);
    ucs_gstream_word_put(gate);
}

ST_CASE_CALL(forked_cuda, run_forked(rt_start(0)))
ST_CASE_CALL(forked_hip, run_forked(rt_start(1)))

/* While a thread captures a stream of the application, what the library has for
 * itself, and streams that are not captured, go on, and spoil nothing */
static void run_captured(const rt_t *rt)
{
    void *native         = rt_stream(rt);
    ucs_gstream_h stream = make(rt);
    char bytes[64]       = "captured";
    void *device         = NULL;
    size_t nodes         = 0;
    uint64_t *area       = aligned_alloc(4096, 4096);

    CU_ASSERT_EQUAL_FATAL(rt_alloc(rt, &device, sizeof(bytes)), RT_OK);
    CU_ASSERT_EQUAL(ucs_gstream_memory_add(area, 4096,
                                           UCS_GSTREAM_MEMORY_HOST), UCS_OK);
    CU_ASSERT_EQUAL_FATAL(rt_capture_begin(rt, native), RT_OK);
    CU_ASSERT_EQUAL(ucs_gstream_memory_copy(device, bytes, sizeof(bytes)),
                    UCS_OK);
    memset(bytes, 0, sizeof(bytes));
    CU_ASSERT_EQUAL(ucs_gstream_memory_copy(bytes, device, sizeof(bytes)),
                    UCS_OK);
    CU_ASSERT_STRING_EQUAL(bytes, "captured");
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_write64(stream, area, 1), UCS_OK);
    while (ucs_gstream_query(stream) == UCS_INPROGRESS) {
        (void)sched_yield();
    }
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(stream, 1), UCS_OK);
    CU_ASSERT_EQUAL(rt_capture_end(rt, native, &nodes), RT_OK);
    CU_ASSERT_EQUAL(nodes, 0);
    gstream_util_finish(stream);
    CU_ASSERT_EQUAL(ucs_gstream_memory_remove(area), UCS_OK);
    free(area);
    CU_ASSERT_EQUAL(rt_free(rt, device), RT_OK);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, native), RT_OK);
}

ST_CASE_CALL(captured_cuda, run_captured(rt_start(0)))
ST_CASE_CALL(captured_hip, run_captured(rt_start(1)))

ST_SUITE("gstream_gpu_bad")
