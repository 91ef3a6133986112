/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_hip.c - what versions of HIP differ in, and what its calls leave
 * behind, on the stand-in. Each version has a process of its own, as the
 * stand-in's settings are read once.
 */
#include "gstream_util.h"
#include "standin_util.h"
#include "ucs_gstream_copy.h"
#include "ucs_gstream_memory.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Versions, as hipRuntimeGetVersion() tells them */
#define HIP_5_1 "50120531"
#define HIP_5_2 "50220730"
#define HIP_5_6 "50631061"
#define HIP_6_1 "60140091"
#define HIP_6_2 "60241133"
#define HIP_7   "70051831"
#define HIP_7_2 "70226015"

#define LENGTH 4096

/* In the process of a version: what follows is not as expected */
#define CHECK(_condition) \
    do { \
        if (!(_condition)) { \
            fprintf(stderr, "%s:%d: HIP %s: %s\n", __FILE__, __LINE__, \
                    getenv("STANDIN_VERSION"), #_condition); \
            return 1; \
        } \
    } while (0)

/* The same, and the application's last error is that */
#define CHECK_LAST(_err, _condition) \
    do { \
        CHECK(_condition); \
        CHECK(rt_open(1)->hip.hipPeekAtLastError() == (_err)); \
    } while (0)

/* What is to return 0 with a version */
typedef struct {
    const char *version;
    int        (*func)(int arg);
    int        arg;
} row_t;

/* Settings are read when something is looked for in the library */
static int run_row(const void *arg)
{
    const row_t *row = arg;

    if ((setenv("STANDIN_VERSION", row->version, 1) != 0) ||
        (dlopen(STANDIN_DIR "/libamdhip64.so", RTLD_NOW) == NULL)) {
        return 2;
    }
    return row->func(row->arg);
}

#define HIP_CASE(_name, ...) \
    ST_CASE(_name) \
    { \
        static const row_t rows[] = {__VA_ARGS__}; \
        unsigned i; \
        \
        for (i = 0; i < ST_CUNIT_COUNT(rows); ++i) { \
            st_cunit_fork(run_row, &rows[i]); \
        } \
    }

static char *device_alloc(void)
{
    void *memory = NULL;

    return (rt_alloc(rt_open(1), &memory, LENGTH) == RT_OK) ? memory : NULL;
}

static ucs_gstream_h make(void)
{
    return gstream_util_create_native(1, rt_stream(rt_open(1)));
}

/* Stores and waits of 5.1 go to the begin of the allocation that a word is in
 */
static int is_refused(int arg)
{
    ucs_gstream_type_attr_t attr;

    (void)arg;
    CHECK(ucs_gstream_query_type(UCS_GSTREAM_TYPE_HIP, &attr) ==
          UCS_ERR_UNSUPPORTED);
    CHECK(strstr(attr.reason, "too old") != NULL);
    return 0;
}

HIP_CASE(old, {HIP_5_1, is_refused, 0})

/* Why a card is not to read and write in a device: NULL, or one text */
static const char *remote_fault(void)
{
    ucs_gstream_memory_attr_t attr;
    const char *fault;

    if ((ucs_gstream_memory_query(device_alloc(), &attr) != UCS_OK) ||
        (attr.type != UCS_GSTREAM_TYPE_HIP)) {
        return "no memory in a device";
    }
    fault = ucs_gstream_memory_remote_fault(&attr, 0);
    return (ucs_gstream_memory_remote_fault(&attr, 1) == fault) ? fault :
                                                                  "others";
}

/* With ROCm 7 a card is not to read what kernels wrote, unless these release it
 */
static int is_start_refused(int arg)
{
    const char *fault = remote_fault();

    (void)arg;
    CHECK(fault != NULL);
    CHECK(strstr(fault, "AMD_OPT_FLUSH=0") != NULL);
    return 0;
}

static int is_start_taken(int is_set)
{
    CHECK(!is_set || (setenv("AMD_OPT_FLUSH", "0", 1) == 0));
    CHECK(remote_fault() == NULL);
    return 0;
}

HIP_CASE(starts, {HIP_6_2, is_start_taken, 0}, {HIP_7, is_start_refused, 0},
         {HIP_7, is_start_taken, 1})

/* Before 6.2 HIP takes memory that it does not know for an array when it is
 * asked for its type */
static int is_known(int arg)
{
    static char plain[LENGTH];
    char *memory = device_alloc();
    ucs_gstream_memory_attr_t attr;

    (void)arg;
    CHECK(ucs_gstream_memory_query(plain, &attr) == UCS_OK);
    CHECK((attr.type == UCS_GSTREAM_TYPE_HOST) && !attr.is_pinned);
    CHECK(ucs_gstream_memory_query(memory + 100, &attr) == UCS_OK);
    CHECK((attr.type == UCS_GSTREAM_TYPE_HIP) && attr.is_pinned &&
          !attr.is_managed);
    return 0;
}

HIP_CASE(memory, {HIP_5_2, is_known, 0}, {HIP_6_1, is_known, 0},
         {HIP_6_2, is_known, 0})

/* What fails, or is not ready, as it may is not the application's last error */
static int leaves_none(int arg)
{
    ucs_gstream_params_t wrong = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE |
                      UCS_GSTREAM_PARAM_FIELD_NATIVE,
        .type       = UCS_GSTREAM_TYPE_HIP,
        .native     = (void*)4096
    };
    ucs_gstream_h stream    = make();
    volatile uint64_t *gate = ucs_gstream_word_get();
    uint64_t plain          = 0;
    ucs_gstream_memory_attr_t attr;
    ucs_gstream_type_t type;
    ucs_gstream_h other;

    (void)arg;
    CHECK((stream != NULL) && (gate != NULL));
    gstream_util_quiet(1);
    CHECK_LAST(0, ucs_gstream_memory_query(&plain, &attr) == UCS_OK);
    CHECK_LAST(0, !ucs_gstream_reaches(stream, &plain));
    CHECK_LAST(0, ucs_gstream_create(&wrong, &other) == UCS_ERR_INVALID_PARAM);
    CHECK_LAST(0, ucs_gstream_detect(wrong.native, &type) ==
                  UCS_ERR_INVALID_PARAM);
    CHECK_LAST(0, ucs_gstream_enqueue_write64(stream, &plain, 1) ==
                  UCS_ERR_INVALID_PARAM);
    CHECK(ucs_gstream_enqueue_wait64(stream, gate, 1) == UCS_OK);
    CHECK_LAST(0, ucs_gstream_query(stream) == UCS_INPROGRESS);
    CHECK_LAST(0, ucs_gstream_synchronize_timeout(stream, 0) == UCS_INPROGRESS);
    gstream_util_quiet(0);
    gstream_util_store(gate, 1);
    CHECK_LAST(0, ucs_gstream_synchronize(stream) == UCS_OK);
    return 0;
}

/* ... and what does not fail leaves that */
static int leaves_others(int arg)
{
    ucs_gstream_h stream    = make();
    volatile uint64_t *gate = ucs_gstream_word_get();

    (void)arg;
    CHECK((stream != NULL) && (gate != NULL));
    CHECK(rt_set_device(rt_open(1), 99) == 101);
    CHECK(ucs_gstream_enqueue_wait64(stream, gate, 1) == UCS_OK);
    CHECK_LAST(101, ucs_gstream_query(stream) == UCS_INPROGRESS);
    gstream_util_store(gate, 1);
    CHECK_LAST(101, ucs_gstream_synchronize(stream) == UCS_OK);
    return 0;
}

HIP_CASE(last_error, {HIP_5_2, leaves_none, 0}, {HIP_6_2, leaves_none, 0},
         {HIP_7, leaves_none, 0}, {HIP_7, leaves_others, 0})

/* While the application captures another stream, in a mode that forbids calls
 * to all threads: copies, queries and registrations do not end that */
static int goes_on(int is_asked)
{
    static char plain[LENGTH];
    const rt_t *rt          = rt_open(1);
    void *captured          = rt_stream(rt);
    ucs_gstream_h stream    = make();
    volatile uint64_t *word = ucs_gstream_word_get();
    size_t nodes            = 0;
    ucs_gstream_copy_t copy;
    ucs_gstream_copy_params_t params = {
        .type   = UCS_GSTREAM_TYPE_HIP,
        .dst    = device_alloc(),
        .src    = device_alloc(),
        .length = LENGTH
    };
    ucs_status_t status;

    CHECK((captured != NULL) && (stream != NULL) && (word != NULL));
    CHECK(ucs_gstream_memory_add(plain, LENGTH, UCS_GSTREAM_MEMORY_HOST) ==
          UCS_OK);
    CHECK(ucs_gstream_copy_begin(&params, &copy) == UCS_INPROGRESS);
    CHECK(rt_capture_begin(rt, captured, 0) == RT_OK);
    CHECK(ucs_gstream_reaches(stream, (uint64_t*)plain));
    status = ucs_gstream_copy_look(&copy);
    CHECK((status == UCS_OK) || (status == UCS_INPROGRESS));
    CHECK(ucs_gstream_enqueue_write64(stream, word, 1) == UCS_OK);
    if (is_asked) {
        CHECK(ucs_gstream_synchronize(stream) == UCS_OK);
        CHECK(ucs_gstream_query(stream) == UCS_OK);
    }
    CHECK(rt_capture_end(rt, captured, &nodes) == RT_OK);
    while ((status = ucs_gstream_copy_look(&copy)) == UCS_INPROGRESS) {
        sched_yield();
    }
    CHECK(status == UCS_OK);
    CHECK(ucs_gstream_synchronize(stream) == UCS_OK);
    CHECK(*word == 1);
    return 0;
}

HIP_CASE(captures, {HIP_5_2, goes_on, 1}, {HIP_5_6, goes_on, 0},
         {HIP_6_1, goes_on, 1}, {HIP_6_2, goes_on, 1}, {HIP_7, goes_on, 1})

/* Registers are taken, if at all, when they are first named, and are not tried
 * again */
static int check_registers(int are_taken)
{
    uint64_t *registers;
    ucs_gstream_h stream;
    unsigned long before;

    CHECK(setenv("STANDIN_IOMEMORY", are_taken ? "1" : "0", 1) == 0);
    stream    = make();
    registers = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK((stream != NULL) && (registers != MAP_FAILED));
    CHECK(ucs_gstream_memory_add(registers, LENGTH, UCS_GSTREAM_MEMORY_IO) ==
          UCS_OK);
    before = rt_counts(rt_open(1)).registers;
    CHECK(ucs_gstream_reaches(stream, registers) == are_taken);
    CHECK(ucs_gstream_reaches(stream, registers) == are_taken);
    CHECK(rt_counts(rt_open(1)).registers == before + 1);
    return 0;
}

HIP_CASE(registers, {HIP_5_2, check_registers, 1}, {HIP_7, check_registers, 1},
         {HIP_7_2, check_registers, 1}, {HIP_5_2, check_registers, 0},
         {HIP_6_2, check_registers, 0}, {HIP_7_2, check_registers, 0})

ST_SUITE("gstream_hip")
