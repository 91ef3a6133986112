/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_gpu.c - streams of CUDA and HIP, over stand-ins for their
 * runtimes (test/standin): the calls, their order and their errors, not how a
 * GPU works. The cases run on CUDA, then on HIP; the first ones before any
 * runtime is loaded.
 */
#include "gstream_util.h"
#include "standin_util.h"
#include "ucs_gstream_ipc.h"
#include "ucs_gstream_memory.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORDS 26 /* Neighbours of a halo */

static const char *const names[] = {"CUDA", "HIP"};
static const char *const files[] = {"libcuda.so.1", "libamdhip64.so"};

static int is_loaded[2];
static const rt_t *rt; /* Of the case that runs */

/* Loads a runtime as a program does that uses the GPU: CUDA's driver needs the
 * context that cuda*() functions use */
static void load(int is_hip)
{
    rt                = is_hip ? rt_open(1) : rt_start(0);
    is_loaded[is_hip] = 1;
}

/* With ST_TEST_STREAM in the environment only that runtime's cases run: two
 * over the same driver are too many for a process */
static int is_wanted(int is_hip)
{
    const char *name = getenv("ST_TEST_STREAM");

    if ((name == NULL) || (strcasecmp(name, names[is_hip]) == 0)) {
        return 1;
    }
    st_cunit_skip("ST_TEST_STREAM names the other runtime");
    return 0;
}

/* A case of each runtime: those of HIP come after all of CUDA */
#define GPU_CASE_ADD(_name, _place, _order) \
    static void gpu_run_##_place##_name(void) \
    { \
        if (is_wanted(_place)) { \
            load(_place); \
            gpu_case_##_name(); \
        } \
    } \
    __attribute__((constructor)) static void gpu_add_##_place##_name(void) \
    { \
        static st_cunit_case_t tcase = {#_name "." #_place, \
                                        gpu_run_##_place##_name, _order, \
                                        NULL}; \
        st_cunit_add(&tcase); \
    }

#define GPU_CASE(_name) \
    static void gpu_case_##_name(void); \
    GPU_CASE_ADD(_name, 0, __LINE__) \
    GPU_CASE_ADD(_name, 1, 10000 + __LINE__) \
    static void gpu_case_##_name(void)


/* Of a device that has neither an order of remote writes nor a flush of them:
 * a process of its own, as settings are read once */
static int has_order(const void *arg)
{
    ucs_gstream_memory_attr_t attr = {0};
    void *address;

    (void)arg;
    if (setenv("STANDIN_VERSION", "11060", 1) ||
        setenv("STANDIN_MEMOPS", "1", 1) || setenv("STANDIN_ORDERED", "0", 1)) {
        return 1;
    }
    load(0);
    return (rt_alloc(rt, &address, 256) != RT_OK) ||
           (ucs_gstream_memory_query(address, &attr) != UCS_OK) ||
           (attr.type != UCS_GSTREAM_TYPE_CUDA) ||
           (ucs_gstream_memory_remote_fault(&attr, 1) == NULL) ||
           (ucs_gstream_memory_kernel_fault(&attr) == NULL);
}

ST_CASE_IF(remote_writes, !is_loaded[0],
           "an earlier case has loaded the runtime")
{
    st_cunit_fork(has_order, NULL);
}

/* A stream that the library makes in the runtime */
static ucs_gstream_h make(void)
{
    ucs_gstream_h stream = gstream_util_create_gpu(rt->is_hip);

    CU_ASSERT_EQUAL(ucs_gstream_type(stream), gstream_util_type(rt->is_hip));
    return stream;
}

/* One on a stream of the application's */
static ucs_gstream_h make_on(void *native)
{
    ucs_gstream_h stream = gstream_util_create_native(rt->is_hip, native);

    CU_ASSERT_PTR_EQUAL(ucs_gstream_native(stream), native);
    return stream;
}

static void finish(ucs_gstream_h stream)
{
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(stream), UCS_OK);
}

static void *device_alloc(size_t length)
{
    void *memory = NULL;

    CU_ASSERT_EQUAL_FATAL(rt_alloc(rt, &memory, length), RT_OK);
    return memory;
}

static volatile uint64_t *get_word(void)
{
    volatile uint64_t *word = ucs_gstream_word_get();

    CU_ASSERT_PTR_NOT_NULL_FATAL(word);
    CU_ASSERT_EQUAL(*word, 0);
    return word;
}

/* In a process of its own, as it opens what the machine has: a real runtime
 * without a device may be there. Not 0 if something was found. */
static int find_no_device(const void *arg)
{
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE
    };
    ucs_gstream_type_attr_t attr;
    ucs_gstream_h stream;
    unsigned i;

    (void)arg;
    for (i = 0; i < 2; ++i) {
        params.type = gstream_util_type(i == 1);
        if ((ucs_gstream_query_type(params.type, &attr) !=
             UCS_ERR_UNSUPPORTED) ||
            strcmp(attr.name, names[i]) ||
            (strstr(attr.reason, files[i]) == NULL) ||
            (attr.num_devices != 0)) {
            return 1;
        }
        if (ucs_gstream_create(&params, &stream) != UCS_ERR_UNSUPPORTED) {
            return 1;
        }
    }
    return 0;
}

/* Without a runtime there is none, and none is loaded to ask */
ST_CASE_IF(none, getenv("ST_TEST_STREAM") == NULL,
           "ST_TEST_STREAM says that there is a runtime")
{
    ucs_gstream_memory_attr_t memory;
    ucs_gstream_type_t type;
    int status;

    CU_ASSERT_EQUAL(ucs_gstream_memory_query(&status, &memory), UCS_OK);
    CU_ASSERT_EQUAL(memory.type, UCS_GSTREAM_TYPE_HOST);
    CU_ASSERT_EQUAL(memory.is_pinned, 0);
    CU_ASSERT_EQUAL(ucs_gstream_memory_query(&status, NULL),
                    UCS_ERR_INVALID_PARAM);
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_detect(NULL, &type), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_detect(&status, &type), UCS_ERR_INVALID_PARAM);
    st_cunit_fork(find_no_device, NULL);
    gstream_util_quiet(0);
}

ST_CASE(ranges)
{
    size_t page = sysconf(_SC_PAGESIZE);
    char *area  = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(area, MAP_FAILED);
    CU_ASSERT_EQUAL(ucs_gstream_memory_add(area + page, page,
                                           UCS_GSTREAM_MEMORY_HOST), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_memory_add(area + page, page,
                                           UCS_GSTREAM_MEMORY_HOST), UCS_OK);
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_memory_add(area + page, page,
                                           UCS_GSTREAM_MEMORY_IO),
                    UCS_ERR_ALREADY_EXISTS);
    CU_ASSERT_EQUAL(ucs_gstream_memory_add(area, page + 1,
                                           UCS_GSTREAM_MEMORY_HOST),
                    UCS_ERR_ALREADY_EXISTS);
    CU_ASSERT_EQUAL(ucs_gstream_memory_add(area + 2 * page - 1, page,
                                           UCS_GSTREAM_MEMORY_HOST),
                    UCS_ERR_ALREADY_EXISTS);
    CU_ASSERT_EQUAL(ucs_gstream_memory_add(NULL, page, UCS_GSTREAM_MEMORY_HOST),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_memory_add(area, 0, UCS_GSTREAM_MEMORY_HOST),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_memory_add(area, page,
                                           (ucs_gstream_memory_kind_t)7),
                    UCS_ERR_INVALID_PARAM);
    gstream_util_quiet(0);
    CU_ASSERT_EQUAL(ucs_gstream_memory_add(area + 2 * page, page,
                                           UCS_GSTREAM_MEMORY_IO), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_memory_add(area, page,
                                           UCS_GSTREAM_MEMORY_HOST), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_memory_remove(area + 3 * page),
                    UCS_ERR_NO_ELEM);
    CU_ASSERT_EQUAL(ucs_gstream_memory_remove(area + page + 8),
                    UCS_ERR_NO_ELEM);
    CU_ASSERT_EQUAL(ucs_gstream_memory_remove(area + page), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_memory_remove(area + page), UCS_ERR_NO_ELEM);
    CU_ASSERT_EQUAL(ucs_gstream_memory_remove(area), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_memory_remove(area + 2 * page), UCS_OK);
    munmap(area, 4 * page);
}

/* More words than one area has are all apart, and are given out again */
ST_CASE(words)
{
    static volatile uint64_t *list[3000];
    unsigned i, j;

    for (j = 0; j < 2; ++j) {
        for (i = 0; i < 3000; ++i) {
            list[i]  = get_word();
            *list[i] = i + 1;
        }
        for (i = 0; i < 3000; ++i) {
            CU_ASSERT_EQUAL(*list[i], i + 1);
            ucs_gstream_word_put(list[i]);
        }
    }
    ucs_gstream_word_put(NULL);
}

/* What a runtime says of itself, once the program has loaded it */
GPU_CASE(attributes)
{
    ucs_gstream_type_attr_t attr;
    ucs_gstream_type_t type;
    ucs_gstream_h stream;
    void *native;

    CU_ASSERT_EQUAL(ucs_gstream_query_type(gstream_util_type(rt->is_hip),
                                           &attr), UCS_OK);
    CU_ASSERT_STRING_EQUAL(attr.name, names[rt->is_hip]);
    CU_ASSERT_STRING_EQUAL(attr.reason, "");
    CU_ASSERT_PTR_NOT_NULL(strstr(attr.library, "standin"));
    CU_ASSERT(attr.version > 0);
    CU_ASSERT_EQUAL(attr.num_devices, 2);
    CU_ASSERT_EQUAL(attr.has_batches, !rt->is_hip); /* HIP's have no order */
    native = rt_stream(rt);
    CU_ASSERT_EQUAL(ucs_gstream_detect(native, &type), UCS_OK);
    CU_ASSERT_EQUAL(type, gstream_util_type(rt->is_hip));
    stream = make();
    CU_ASSERT_EQUAL(ucs_gstream_detect(stream, &type), UCS_OK);
    CU_ASSERT_EQUAL(type, gstream_util_type(rt->is_hip));
    CU_ASSERT_EQUAL(ucs_gstream_caps(stream),
                    UCS_GSTREAM_CAP_WRITE | UCS_GSTREAM_CAP_WAIT |
                    UCS_GSTREAM_CAP_COPY | UCS_GSTREAM_CAP_FUNC);
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_detect((void*)4096, &type),
                    UCS_ERR_INVALID_PARAM);
    gstream_util_quiet(0);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, native), RT_OK);
    finish(stream);
}

/* A default stream is either runtime's, where both are loaded */
GPU_CASE(detect_default)
{
    ucs_gstream_type_t type = UCS_GSTREAM_TYPE_HOST;

    /* One of HIP over CUDA loads that */
    if (!is_loaded[!rt->is_hip] && (getenv("ST_HIP_DIR") == NULL)) {
        CU_ASSERT_EQUAL(ucs_gstream_detect(NULL, &type), UCS_OK);
        CU_ASSERT_EQUAL(type, gstream_util_type(rt->is_hip));
        return;
    }
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_detect(NULL, &type), UCS_ERR_INVALID_PARAM);
    gstream_util_quiet(0);
}

GPU_CASE(stores_and_waits)
{
    ucs_gstream_h stream    = make();
    volatile uint64_t *gate = get_word();
    volatile uint64_t *seen = get_word();

    gstream_util_write(stream, seen, 1);
    gstream_util_wait(stream, gate, 5);
    gstream_util_write(stream, seen, 2);
    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(stream, 0),
                    UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(stream, 1e-3),
                    UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(stream), UCS_ERR_BUSY);
    while (gstream_util_load(seen) != 1) {
        sched_yield();
    }
    gstream_util_store(gate, 4);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(stream, 1e-3),
                    UCS_INPROGRESS);
    CU_ASSERT_EQUAL(gstream_util_load(seen), 1);
    gstream_util_store(gate, UINT64_C(1) << 62); /* A release of all waits */
    CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(stream, 60), UCS_OK);
    CU_ASSERT_EQUAL(gstream_util_load(seen), 2);
    finish(stream);
    ucs_gstream_word_put(gate);
    ucs_gstream_word_put(seen);
}

/* Two streams, one of them the host's, in turns */
GPU_CASE(turns)
{
    ucs_gstream_h streams[]   = {make(), gstream_util_create()};
    volatile uint64_t *word[] = {get_word(), get_word()};
    unsigned use;

    for (use = 1; use <= 50; ++use) {
        gstream_util_write(streams[0], word[0], use);
        gstream_util_wait(streams[0], word[1], use);
        gstream_util_wait(streams[1], word[0], use);
        gstream_util_write(streams[1], word[1], use);
    }
    finish(streams[0]);
    gstream_util_finish(streams[1]);
    CU_ASSERT_EQUAL(*word[1], 50);
    ucs_gstream_word_put(word[0]);
    ucs_gstream_word_put(word[1]);
}

/* Stores of all starts of a call, and waits for all its words, are one call of
 * the runtime each, besides the question whether the stream is captured. With
 * HIP they are a kernel each, and the first store is a call of its own. */
GPU_CASE(batches)
{
    ucs_gstream_h stream = make();
    ucs_gstream_cmd_t cmds[WORDS];
    ucs_gstream_word_t words[WORDS];
    ucs_gstream_cmd_t waitall = {
        .type      = UCS_GSTREAM_CMD_WAITALL,
        .u.waitall = {.words = words, .count = WORDS}
    };
    standin_counts_t before, after;
    unsigned i;

    for (i = 0; i < WORDS; ++i) {
        words[i].address = get_word();
        words[i].value   = i + 1;
        cmds[i]          = gstream_util_cmd_word(UCS_GSTREAM_CMD_WRITE64,
                                                 words[i].address, i + 1);
    }
    gstream_util_write(stream, words[0].address, 0); /* Registers them */
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);

    before = rt_counts(rt);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, cmds, WORDS), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, &waitall, 1), UCS_OK);
    after = rt_counts(rt);
    CU_ASSERT_EQUAL(after.batches - before.batches,
                    rt->is_hip ? 0 : 2);
    CU_ASSERT_EQUAL(after.writes - before.writes, rt->is_hip ? 1 : WORDS);
    CU_ASSERT_EQUAL(after.barriers - before.barriers, rt->is_hip ? 1 : 2);
    CU_ASSERT_EQUAL(after.waits - before.waits, rt->is_hip ? 0 : WORDS);
    CU_ASSERT_EQUAL(after.kernels - before.kernels, rt->is_hip ? 2 : 0);
    CU_ASSERT_EQUAL(after.host_funcs, before.host_funcs);
    finish(stream);
    for (i = 0; i < WORDS; ++i) {
        CU_ASSERT_EQUAL(*words[i].address, i + 1);
        ucs_gstream_word_put(words[i].address);
    }
}

/* A function of a stream may not use it */
static void test_inside(void *arg)
{
    ucs_gstream_h stream = arg;
    uint64_t never       = 0;

    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_ERR_BUSY);
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_func(stream, gstream_util_count,
                                             &never), UCS_ERR_BUSY);
    gstream_util_quiet(0);
}

static void test_add(void *arg)
{
    uint64_t **args = arg;

    **args = 10 * **args + *(args[1]);
}

GPU_CASE(functions)
{
    ucs_gstream_h stream = make();
    uint64_t sum         = 0;
    uint64_t digits[]    = {1, 2, 3};
    uint64_t *args[2];
    unsigned i;

    for (i = 0; i < 3; ++i) {
        args[0] = &sum;
        args[1] = &digits[i];
        gstream_util_launch(stream, test_add, args, sizeof(args));
        memset(args, 0, sizeof(args));
    }
    gstream_util_func(stream, test_inside, stream);
    gstream_util_func(stream, gstream_util_count, &sum);
    finish(stream);
    CU_ASSERT_EQUAL(sum, 124);
}

/* From the host to the device, on it, and back, in the stream's order */
GPU_CASE(copies)
{
    static char pageable[64];
    ucs_gstream_h stream = make();
    size_t page          = sysconf(_SC_PAGESIZE);
    char *host           = mmap(NULL, page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *device         = device_alloc(256);
    standin_counts_t before;
    unsigned i;

    CU_ASSERT_EQUAL(ucs_gstream_memory_add(host, page, UCS_GSTREAM_MEMORY_HOST),
                    UCS_OK);
    for (i = 0; i < 64; ++i) {
        host[i] = (char)i;
    }
    before = rt_counts(rt);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_copy(stream, device, host, 64), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_copy(stream, device + 128, device, 64),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_copy(stream, host + 64, device + 128,
                                             64), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_copy(stream, pageable, host + 64, 64),
                    UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_copy(stream, pageable, device, 0),
                    UCS_OK);
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_copy(stream, pageable, device, 64),
                    UCS_ERR_UNSUPPORTED);
    gstream_util_quiet(0);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT_EQUAL(memcmp(pageable, host, 64), 0);
    CU_ASSERT_EQUAL(rt_counts(rt).copies - before.copies, 3);
    CU_ASSERT_EQUAL(rt_counts(rt).pageable, before.pageable);
    finish(stream);
    CU_ASSERT_EQUAL(ucs_gstream_memory_remove(host), UCS_OK);
    CU_ASSERT_EQUAL(rt_free(rt, device), RT_OK);
    munmap(host, page);
}

GPU_CASE(memory)
{
    char *device = device_alloc(256);
    ucs_gstream_memory_attr_t attr;

    CU_ASSERT_EQUAL(ucs_gstream_memory_query(device + 100, &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.type, gstream_util_type(rt->is_hip));
    CU_ASSERT_EQUAL(attr.device, 0);
    CU_ASSERT_EQUAL(attr.is_managed, 0);
    CU_ASSERT_EQUAL(attr.is_pinned, 1);
    CU_ASSERT_PTR_NULL(ucs_gstream_memory_remote_fault(&attr, 1));
    CU_ASSERT_PTR_NULL(ucs_gstream_memory_kernel_fault(&attr));
    CU_ASSERT_EQUAL(ucs_gstream_memory_query(&attr, &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.type, UCS_GSTREAM_TYPE_HOST);
    CU_ASSERT_EQUAL(attr.is_pinned, 0);
    CU_ASSERT_EQUAL(rt_free(rt, device), RT_OK);
    CU_ASSERT_EQUAL(ucs_gstream_memory_query(device, &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.type, UCS_GSTREAM_TYPE_HOST);
}

/* The application's stream outlives ours, which may go at any time */
GPU_CASE(native)
{
    void *native            = rt_stream(rt);
    ucs_gstream_h first     = make_on(native);
    ucs_gstream_h second    = make_on(native);
    volatile uint64_t *gate = get_word();
    volatile uint64_t *seen = get_word();

    gstream_util_wait(first, gate, 1);
    gstream_util_write(second, seen, 1);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(first), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_query(second), UCS_INPROGRESS);
    CU_ASSERT_EQUAL(gstream_util_load(seen), 0);
    gstream_util_store(gate, 1);
    finish(second);
    CU_ASSERT_EQUAL(*seen, 1);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, native), RT_OK);
    ucs_gstream_word_put(gate);
    ucs_gstream_word_put(seen);
}

GPU_CASE(refused)
{
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE |
                      UCS_GSTREAM_PARAM_FIELD_NATIVE,
        .type       = gstream_util_type(rt->is_hip),
        .native     = (void*)4096 /* Not even memory */
    };
    uint64_t word        = 0;
    ucs_gstream_h stream = make();
    volatile uint64_t *known = get_word();
    ucs_gstream_cmd_t cmds[2];

    /* What it was tried with is over */
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    gstream_util_quiet(1);
    gstream_util_refused(&params, UCS_ERR_INVALID_PARAM);
    params.native     = NULL;
    params.field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE |
                        UCS_GSTREAM_PARAM_FIELD_CPUS;
    gstream_util_refused(&params, UCS_ERR_INVALID_PARAM);

    /* All or nothing */
    cmds[0] = gstream_util_cmd_word(UCS_GSTREAM_CMD_WRITE64, known, 1);
    cmds[1] = gstream_util_cmd_word(UCS_GSTREAM_CMD_WRITE64, &word, 1);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, cmds, 2),
                    UCS_ERR_INVALID_PARAM);
    cmds[1] = gstream_util_cmd_word(UCS_GSTREAM_CMD_WAIT64, known,
                                    UINT64_C(1) << 63);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, cmds, 2),
                    UCS_ERR_INVALID_PARAM);
    gstream_util_quiet(0);
    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_OK);
    CU_ASSERT_EQUAL(*known, 0);
    finish(stream);
    ucs_gstream_word_put(known);
}

static void take_store(void *arg, size_t offset, uint64_t value)
{
    (void)arg;
    (void)offset;
    (void)value;
}

/* Registers of an emulated device are not reached, unlike a stream's words */
GPU_CASE(reaches)
{
    static volatile uint64_t registers[8];
    ucs_gstream_h stream    = make();
    ucs_gstream_h host      = gstream_util_create();
    volatile uint64_t *word = get_word();
    uint64_t plain          = 0;

    CU_ASSERT_EQUAL(ucs_gstream_device_add((void*)registers, sizeof(registers),
                                           take_store, NULL), UCS_OK);
    CU_ASSERT(ucs_gstream_reaches(stream, word));
    CU_ASSERT(!ucs_gstream_reaches(stream, &plain));
    CU_ASSERT(!ucs_gstream_reaches(stream, &registers[1]));
    CU_ASSERT(!ucs_gstream_reaches(stream, NULL));
    CU_ASSERT(!ucs_gstream_reaches(NULL, word));
    CU_ASSERT(ucs_gstream_reaches(host, &plain));
    CU_ASSERT(ucs_gstream_reaches(host, &registers[1]));
    CU_ASSERT_EQUAL(ucs_gstream_device_remove((void*)registers), UCS_OK);
    finish(stream);
    gstream_util_finish(host);
    ucs_gstream_word_put(word);
}

static void test_closed(void *arg)
{
    __atomic_store_n((int*)arg, 1, __ATOMIC_RELEASE);
}

/* What became of memory that a thread registers */
static ucs_status_t test_look(ucs_gstream_ipc_h ipc)
{
    ucs_status_t status;
    uint64_t length;
    void *address;

    do {
        (void)sched_yield();
        status = ucs_gstream_ipc_look(ipc, &address, &length);
    } while (status == UCS_INPROGRESS);
    return status;
}

/* A runtime refuses to register memory of which the application has registered
 * a part: that is reached as before. It is tried again for the next user. */
GPU_CASE(registered_part)
{
    size_t page       = (size_t)sysconf(_SC_PAGESIZE);
    ucs_gstream_h own = make();
    int is_closed     = 0;
    uint8_t *memory   = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ucs_gstream_ipc_host_t host = {
        .type   = ucs_gstream_type(own),
        .start  = memory,
        .length = 2 * page,
        .closed = test_closed,
        .arg    = &is_closed
    };
    volatile uint64_t *word     = (uint64_t*)(memory + page);
    ucs_gstream_ipc_h ipc;

    CU_ASSERT_EQUAL(rt_register(rt, memory + page, page, 0), 0);
    CU_ASSERT(ucs_gstream_reaches(own, word));
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL_FATAL(ucs_gstream_ipc_open_host(&host, &ipc), UCS_OK);
    CU_ASSERT(UCS_STATUS_IS_ERR(test_look(ipc)));
    gstream_util_quiet(0);
    CU_ASSERT(ucs_gstream_reaches(own, word));
    CU_ASSERT_EQUAL(rt_unregister(rt, memory + page), 0);
    CU_ASSERT(!ucs_gstream_reaches(own, word));

    ucs_gstream_ipc_hold(ipc);
    CU_ASSERT_EQUAL(test_look(ipc), UCS_OK);
    CU_ASSERT(ucs_gstream_reaches(own, word));
    ucs_gstream_ipc_close(ipc);
    ucs_gstream_ipc_close(ipc);
    while (!__atomic_load_n(&is_closed, __ATOMIC_ACQUIRE)) {
        (void)sched_yield();
    }
    CU_ASSERT(!ucs_gstream_reaches(own, word));
    finish(own);
    (void)munmap(memory, 2 * page);
}

/* S13: while a stream is captured nothing is enqueued, asked or waited for */
GPU_CASE(capture)
{
    void *native            = rt_stream(rt);
    ucs_gstream_h stream    = make_on(native);
    volatile uint64_t *word = get_word();
    size_t nodes            = 0;

    CU_ASSERT_EQUAL(rt_capture_begin(rt, native, 2), RT_OK);
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_write64(stream, word, 1),
                    UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_ERR_UNSUPPORTED);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_ERR_UNSUPPORTED);
    gstream_util_quiet(0);
    CU_ASSERT_EQUAL(rt_capture_end(rt, native, &nodes), RT_OK);
    CU_ASSERT_EQUAL(nodes, 0);
    CU_ASSERT_EQUAL(*word, 0);
    gstream_util_write(stream, word, 1);
    finish(stream);
    CU_ASSERT_EQUAL(*word, 1);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, native), RT_OK);
    ucs_gstream_word_put(word);
}

/* Events between a device's stream, a host's and the host */
GPU_CASE(events)
{
    ucs_gstream_h device      = make();
    ucs_gstream_h host        = gstream_util_create();
    volatile uint64_t *gate   = get_word();
    uint64_t count            = 0;
    ucs_gstream_event_h event = NULL;
    double seconds;

    CU_ASSERT_EQUAL_FATAL(ucs_gstream_event_create(&event), UCS_OK);
    gstream_util_wait(device, gate, 1);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_record(device, event), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait_event(host, event), UCS_OK);
    gstream_util_func(host, gstream_util_count, &count);
    CU_ASSERT_EQUAL(ucs_gstream_event_query(event), UCS_INPROGRESS);
    gstream_util_store(gate, 1);
    CU_ASSERT_EQUAL(ucs_gstream_event_synchronize(event), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(host), UCS_OK);
    CU_ASSERT_EQUAL(count, 1);

    CU_ASSERT_EQUAL(ucs_gstream_enqueue_record(host, event), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_wait_event(device, event), UCS_OK);
    gstream_util_func(device, gstream_util_count, &count);
    finish(device);
    gstream_util_finish(host);
    CU_ASSERT_EQUAL(count, 2);
    CU_ASSERT_EQUAL(ucs_gstream_event_elapsed(event, event, &seconds), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(event), UCS_OK);
    ucs_gstream_word_put(gate);
}

#if defined(__SANITIZE_ADDRESS__)
const char *__lsan_default_suppressions(void);

/* What a device that is lost was to run, and the event of that, stay */
const char *__lsan_default_suppressions(void)
{
    return "leak:gpu_case_lost\n";
}
#endif

/* The last: a device that is lost releases nobody by itself, and all calls say
 * so */
GPU_CASE(lost)
{
    ucs_gstream_h stream      = make();
    volatile uint64_t *gate   = get_word();
    ucs_gstream_event_h event = NULL;

    CU_ASSERT_EQUAL_FATAL(ucs_gstream_event_create(&event), UCS_OK);
    gstream_util_wait(stream, gate, 1);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_record(stream, event), UCS_OK);
    rt->control.standin_lose_device(0);
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize_timeout(stream, 1),
                    UCS_ERR_IO_ERROR);
    CU_ASSERT_NOT_EQUAL(ucs_gstream_enqueue_write64(stream, gate, 1), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_event_synchronize(event), UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(stream), UCS_OK);

    /* The recording never passes; its stream is not there to be asked */
    CU_ASSERT_EQUAL(ucs_gstream_event_synchronize(event), UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(ucs_gstream_event_destroy(event), UCS_ERR_BUSY);
    gstream_util_quiet(0);
}

ST_SUITE("gstream_gpu")
