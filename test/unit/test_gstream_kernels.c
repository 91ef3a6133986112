/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_kernels.c - the library's kernels in a device of a stand-in:
 * from which module they are, that one waits for all words of a call, and what
 * waits where there is none. Each row has a process of its own, as settings are
 * read, and modules loaded, once.
 */
#include "gstream_gpu.h"
#include "gstream_kernels.h"
#include "gstream_util.h"
#include "standin_util.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS     26 /* Neighbours of a halo */
#define MAX_WORDS (GSTREAM_KERNEL_MANY + 1) /* Of a call */

/* A device that no compiler of Debian 12 knows, and a HIP without hipRTC */
#define UNKNOWN "gfx942"
#define HIP_7   "70051831"

/* A wait that is to go on is looked at for so long, s */
#define SHORT 0.1

/* In the process of a row: what follows is not as expected */
#define CHECK(_condition) \
    do { \
        if (!(_condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #_condition); \
            return 1; \
        } \
    } while (0)

/* What is to return 0 with settings: NAME=VALUE, or NULL behind the last */
typedef struct {
    int        is_hip;
    int        (*func)(const rt_t *rt);
    const char *settings[3];
} row_t;

static int run_row(const void *arg)
{
    const row_t *row = arg;
    unsigned i;

    for (i = 0; (i < 3) && (row->settings[i] != NULL); ++i) {
        if (putenv((char*)row->settings[i]) != 0) {
            return 2;
        }
    }
    gstream_cuda.has_kernels = 1; /* So that what it loads is tried, too */
    return row->func(rt_start(row->is_hip));
}

#define KERNELS_CASE(_name, ...) \
    ST_CASE(_name) \
    { \
        static const row_t rows[] = {__VA_ARGS__}; \
        unsigned i; \
        \
        for (i = 0; i < ST_CUNIT_COUNT(rows); ++i) { \
            st_cunit_fork(run_row, &rows[i]); \
        } \
    }


static volatile uint64_t *word[MAX_WORDS];

/* Gets words, which streams know then */
static int get_words(ucs_gstream_h stream, unsigned count)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        word[i] = ucs_gstream_word_get();
        CHECK(word[i] != NULL);
        *word[i] = 0;
        CHECK(ucs_gstream_reaches(stream, word[i]));
    }
    return 0;
}

/* A wait for word i to be i + 1, for all of them */
static ucs_status_t wait_words(ucs_gstream_h stream, unsigned count)
{
    ucs_gstream_word_t words[MAX_WORDS];
    ucs_gstream_cmd_t waitall = {
        .type      = UCS_GSTREAM_CMD_WAITALL,
        .u.waitall = {.words = words, .count = count}
    };
    unsigned i;

    for (i = 0; i < count; ++i) {
        words[i].address = word[i];
        words[i].value   = i + 1;
    }
    return ucs_gstream_enqueue(stream, &waitall, 1);
}

static void set_words(unsigned count)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        gstream_util_store(word[i], i + 1);
    }
}

static int is_waiting(ucs_gstream_h stream)
{
    return ucs_gstream_synchronize_timeout(stream, SHORT) == UCS_INPROGRESS;
}

/* How a wait for several words reads in what ucx_st_info shows */
static int is_told(const rt_t *rt, const char *text)
{
    ucs_gstream_type_attr_t attr;

    return (ucs_gstream_query_type(gstream_util_type(rt->is_hip), &attr) ==
            UCS_OK) && (strstr(attr.waits, text) != NULL);
}

/* A wait for words takes so many kernels and calls of the runtime */
static int takes(const rt_t *rt, ucs_gstream_h stream, unsigned count,
                 unsigned kernels, unsigned waits)
{
    standin_counts_t before, after;
    uint64_t launches = ucs_gstream_launches(stream);

    CHECK(get_words(stream, count) == 0);
    before = rt_counts(rt);
    CHECK(wait_words(stream, count) == UCS_OK);
    after = rt_counts(rt);
    CHECK(after.kernels - before.kernels == kernels);
    CHECK(after.waits - before.waits == waits);
    CHECK(after.modules == before.modules);
    CHECK(ucs_gstream_launches(stream) - launches == kernels);
    CHECK(is_waiting(stream));
    set_words(count);
    CHECK(ucs_gstream_synchronize(stream) == UCS_OK);
    return 0;
}

static int is_one_kernel(const rt_t *rt)
{
    ucs_gstream_h stream = gstream_util_create_gpu(rt->is_hip);

    CHECK(is_told(rt, "one kernel"));
    CHECK(rt_counts(rt).modules == 1);
    CHECK(takes(rt, stream, WORDS, 1, 0) == 0);
    CHECK(takes(rt, stream, 2, 1, 0) == 0);
    CHECK(takes(rt, stream, 1, 0, 1) == 0);
    return 0;
}

/* Not more than fit into its arguments */
static int is_few_kernels(const rt_t *rt)
{
    ucs_gstream_h stream = gstream_util_create_gpu(rt->is_hip);

    CHECK(takes(rt, stream, GSTREAM_KERNEL_FEW, 1, 0) == 0);
    CHECK(takes(rt, stream, GSTREAM_KERNEL_FEW + 1, 1, 0) == 0);
    CHECK(takes(rt, stream, GSTREAM_KERNEL_MANY, 1, 0) == 0);
    CHECK(takes(rt, stream, MAX_WORDS, 1, 1) == 0);
    return 0;
}

/* From the build, or by hipRTC. CUDA's is text in each build. */
KERNELS_CASE(one, {1, is_one_kernel, {NULL}}, {0, is_one_kernel, {NULL}},
             {1, is_one_kernel, {"STANDIN_ARCH=" UNKNOWN}},
             {1, is_one_kernel, {"STANDIN_OFFSET=1"}},
             {0, is_one_kernel, {"STANDIN_OFFSET=1"}},
             {1, is_few_kernels, {NULL}}, {0, is_few_kernels, {NULL}})

/* The next way is the runtime's waits */
static int is_none(const rt_t *rt, const char *why)
{
    ucs_gstream_h stream = gstream_util_create_gpu(rt->is_hip);

    CHECK(is_told(rt, why));
    CHECK(takes(rt, stream, WORDS, 0, WORDS) == 0);
    CHECK(ucs_gstream_destroy(stream) == UCS_OK);
    stream = gstream_util_create_gpu(rt->is_hip); /* It is tried once */
    CHECK(takes(rt, stream, WORDS, 0, WORDS) == 0);
    CHECK(rt_counts(rt).modules == 0);
    return 0;
}

static int is_not_compiled(const rt_t *rt)
{
    return is_none(rt, "hipRTC does not compile");
}

static int has_no_compiler(const rt_t *rt)
{
    if (dlopen("libhiprtc.so", RTLD_LAZY) != NULL) {
        return 0; /* It would be the machine's */
    }
    return is_none(rt, "there is no hipRTC");
}

static int is_refused(const rt_t *rt)
{
    return is_none(rt, rt->is_hip ? "hipErrorOutOfMemory" :
                                    "CUDA_ERROR_OUT_OF_MEMORY");
}

/* The text is for sm_70 and later */
static int is_too_new(const rt_t *rt)
{
    return is_none(rt, "CUDA_ERROR_INVALID_PTX");
}

KERNELS_CASE(none,
             {1, is_not_compiled, {"STANDIN_ARCH=" UNKNOWN, "STANDIN_RTC=0"}},
             {1, has_no_compiler,
              {"STANDIN_ARCH=" UNKNOWN, "STANDIN_VERSION=" HIP_7}},
             {1, is_refused, {"STANDIN_MODULES=0"}},
             {0, is_refused, {"STANDIN_MODULES=0"}},
             {0, is_too_new, {"STANDIN_ARCH=sm_60"}})

/* A wait goes on for each word whose value is too small */
static int waits_for_each(const rt_t *rt)
{
    ucs_gstream_h stream = gstream_util_create_gpu(rt->is_hip);
    unsigned i;

    CHECK(get_words(stream, WORDS) == 0);
    for (i = 0; i < WORDS; i += 5) {
        set_words(WORDS);
        gstream_util_store(word[i], i);
        CHECK(wait_words(stream, WORDS) == UCS_OK);
        CHECK(is_waiting(stream));
        gstream_util_store(word[i], UINT64_MAX >> 1);
        CHECK(ucs_gstream_synchronize(stream) == UCS_OK);
    }
    return 0;
}

KERNELS_CASE(each_word, {1, waits_for_each, {NULL}},
             {0, waits_for_each, {NULL}})

/* A kernel that waits has the only processor: what another stream has begins
 * when it ends, and nothing of the host waits for that. Waits of CUDA's driver
 * hold none. */
static int ends_behind(const rt_t *rt)
{
    ucs_gstream_h first  = gstream_util_create_gpu(rt->is_hip);
    ucs_gstream_h second = gstream_util_create_gpu(rt->is_hip);
    volatile uint64_t *gate[2];

    CHECK(get_words(first, 4) == 0);
    gate[0] = word[0];
    gate[1] = word[1];
    CHECK(wait_words(first, 2) == UCS_OK);
    CHECK(is_waiting(first));
    word[0] = word[2];
    word[1] = word[3];
    set_words(2);
    CHECK(wait_words(second, 2) == UCS_OK);
    CHECK(is_waiting(second));
    CHECK(ucs_gstream_query(first) == UCS_INPROGRESS);
    gstream_util_store(gate[0], 1);
    gstream_util_store(gate[1], 2);
    CHECK(ucs_gstream_synchronize(second) == UCS_OK);
    CHECK(ucs_gstream_synchronize(first) == UCS_OK);
    return 0;
}

static int holds_none(const rt_t *rt)
{
    ucs_gstream_h first  = gstream_util_create_gpu(rt->is_hip);
    ucs_gstream_h second = gstream_util_create_gpu(rt->is_hip);

    CHECK(get_words(first, 3) == 0);
    CHECK(ucs_gstream_enqueue_wait64(first, word[2], 1) == UCS_OK);
    CHECK(is_waiting(first));
    set_words(2);
    CHECK(wait_words(second, 2) == UCS_OK);
    CHECK(ucs_gstream_launches(second) == 1);
    CHECK(ucs_gstream_synchronize(second) == UCS_OK);
    gstream_util_store(word[2], 1);
    CHECK(ucs_gstream_synchronize(first) == UCS_OK);
    return 0;
}

KERNELS_CASE(processors, {1, ends_behind, {"STANDIN_SMS=1"}},
             {0, ends_behind, {"STANDIN_SMS=1"}},
             {0, holds_none, {"STANDIN_SMS=1"}})

/* A kernel that waits ends with its device */
static int is_lost(const rt_t *rt)
{
    ucs_gstream_h stream = gstream_util_create_gpu(rt->is_hip);

    CHECK(get_words(stream, WORDS) == 0);
    CHECK(wait_words(stream, WORDS) == UCS_OK);
    CHECK(is_waiting(stream));
    rt->control.standin_lose_device(0);
    gstream_util_quiet(1);
    CHECK(ucs_gstream_synchronize(stream) == UCS_ERR_IO_ERROR);
    CHECK(wait_words(stream, WORDS) == UCS_ERR_IO_ERROR);
    gstream_util_quiet(0);
    return 0;
}

KERNELS_CASE(lost, {1, is_lost, {NULL}}, {0, is_lost, {NULL}})

/* A device loads its own, as do streams of its primary context alone */
static int loads_each(const rt_t *rt)
{
    ucs_gstream_h stream = gstream_util_create_gpu(rt->is_hip);

    CHECK(rt_set_device(rt, 1) == RT_OK);
    CHECK(takes(rt, stream, WORDS, 1, 0) == 0);
    stream = gstream_util_create_gpu(rt->is_hip);
    CHECK(rt_counts(rt).modules == 2);
    CHECK(takes(rt, stream, WORDS, 1, 0) == 0);
    return 0;
}

static int has_none_of_other(const rt_t *rt)
{
    ucs_gstream_h stream;
    void *context;

    CHECK(rt->cu.cuCtxCreate_v2(&context, 0, 0) == RT_OK);
    stream = gstream_util_create_gpu(rt->is_hip);
    CHECK(takes(rt, stream, WORDS, 0, WORDS) == 0);
    return 0;
}

KERNELS_CASE(places, {1, loads_each, {NULL}}, {0, loads_each, {NULL}},
             {0, has_none_of_other, {NULL}})

/* Modules are loaded though another stream is being captured */
static int spoils_none(const rt_t *rt)
{
    void *native = rt_stream(rt);
    ucs_gstream_h stream;
    size_t nodes;

    CHECK(rt_capture_begin(rt, native, 0) == RT_OK);
    stream = gstream_util_create_gpu(rt->is_hip);
    CHECK(rt_capture_end(rt, native, &nodes) == RT_OK);
    CHECK(takes(rt, stream, WORDS, 1, 0) == 0);
    return 0;
}

KERNELS_CASE(capture, {1, spoils_none, {NULL}}, {0, spoils_none, {NULL}})

ST_SUITE("gstream_kernels")
