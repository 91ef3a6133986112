/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_hip.c - what versions of HIP differ in, and what its calls leave
 * behind, on the stand-in. Each version has a process of its own, as the
 * stand-in's settings are read once.
 */
#include "gstream_util.h"
#include "st_cunit.h"
#include "ucs_gstream_copy.h"
#include "ucs_gstream_memory.h"

#include "standin_control.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #_condition); \
            return 1; \
        } \
    } while (0)

static void *runtime;

static void *find(const char *name)
{
    void *func = dlsym(runtime, name);

    if (func == NULL) {
        fprintf(stderr, "no %s\n", name);
        abort();
    }
    return func;
}

/* Runs a function with a version, and asserts that it returns 0 */
static void run_version(const char *version, int (*func)(void))
{
    int status  = -1;
    pid_t child = fork();

    if (child == 0) {
        if (setenv("STANDIN_VERSION", version, 1) != 0) {
            _exit(2);
        }
        runtime = dlopen(STANDIN_DIR "/libamdhip64.so", RTLD_NOW);
        _exit((runtime == NULL) ? 2 : func());
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
}

static int last_error(void)
{
    int (*peek)(void);

    *(void**)&peek = find("hipPeekAtLastError");
    return peek();
}

static int set_device(int device)
{
    int (*func)(int device);

    *(void**)&func = find("hipSetDevice");
    return func(device);
}

static char *device_alloc(void)
{
    int (*func)(void **address, size_t size);
    void *memory = NULL;

    *(void**)&func = find("hipMalloc");
    return (func(&memory, LENGTH) == 0) ? memory : NULL;
}

static void *make_native(void)
{
    int (*func)(void **stream, unsigned flags);
    void *native = NULL;

    *(void**)&func = find("hipStreamCreateWithFlags");
    return (func(&native, 1) == 0) ? native : NULL;
}

static ucs_gstream_h make_on(void *native)
{
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE |
                      UCS_GSTREAM_PARAM_FIELD_NATIVE,
        .type       = UCS_GSTREAM_TYPE_HIP,
        .native     = native
    };
    ucs_gstream_h stream = NULL;

    return (ucs_gstream_create(&params, &stream) == UCS_OK) ? stream : NULL;
}

/* Stores and waits of 5.1 go to the begin of the allocation that a word is in
 */
static int is_refused(void)
{
    ucs_gstream_type_attr_t attr;

    CHECK(ucs_gstream_query_type(UCS_GSTREAM_TYPE_HIP, &attr) ==
          UCS_ERR_UNSUPPORTED);
    CHECK(strstr(attr.reason, "too old") != NULL);
    return 0;
}

ST_CASE(old)
{
    run_version(HIP_5_1, is_refused);
}

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
static int is_start_refused(void)
{
    const char *fault = remote_fault();

    CHECK(fault != NULL);
    CHECK(strstr(fault, "AMD_OPT_FLUSH=0") != NULL);
    return 0;
}

static int is_start_taken(void)
{
    CHECK(remote_fault() == NULL);
    return 0;
}

static int is_start_taken_flush(void)
{
    return (setenv("AMD_OPT_FLUSH", "0", 1) == 0) ? is_start_taken() : 2;
}

ST_CASE(starts)
{
    run_version(HIP_6_2, is_start_taken);
    run_version(HIP_7, is_start_refused);
    run_version(HIP_7, is_start_taken_flush);
}

/* Before 6.2 HIP takes memory that it does not know for an array when it is
 * asked for its type */
static int is_known(void)
{
    static char plain[LENGTH];
    char *memory = device_alloc();
    ucs_gstream_memory_attr_t attr;

    CHECK(ucs_gstream_memory_query(plain, &attr) == UCS_OK);
    CHECK((attr.type == UCS_GSTREAM_TYPE_HOST) && !attr.is_pinned);
    CHECK(ucs_gstream_memory_query(memory + 100, &attr) == UCS_OK);
    CHECK((attr.type == UCS_GSTREAM_TYPE_HIP) && attr.is_pinned &&
          !attr.is_managed);
    return 0;
}

ST_CASE(memory)
{
    run_version(HIP_5_2, is_known);
    run_version(HIP_6_1, is_known);
    run_version(HIP_6_2, is_known);
}

/* What fails, or is not ready, as it may is not the application's last error */
static int leaves_none(void)
{
    ucs_gstream_params_t wrong = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE |
                      UCS_GSTREAM_PARAM_FIELD_NATIVE,
        .type       = UCS_GSTREAM_TYPE_HIP,
        .native     = (void*)4096
    };
    ucs_gstream_h stream    = make_on(make_native());
    volatile uint64_t *gate = ucs_gstream_word_get();
    uint64_t plain          = 0;
    ucs_gstream_memory_attr_t attr;
    ucs_gstream_type_t type;
    ucs_gstream_h other;

    CHECK((stream != NULL) && (gate != NULL));
    gstream_util_quiet(1);
    CHECK(ucs_gstream_memory_query(&plain, &attr) == UCS_OK);
    CHECK(last_error() == 0);
    CHECK(!ucs_gstream_reaches(stream, &plain));
    CHECK(last_error() == 0);
    CHECK(ucs_gstream_create(&wrong, &other) == UCS_ERR_INVALID_PARAM);
    CHECK(last_error() == 0);
    CHECK(ucs_gstream_detect(wrong.native, &type) == UCS_ERR_INVALID_PARAM);
    CHECK(last_error() == 0);
    CHECK(ucs_gstream_enqueue_write64(stream, &plain, 1) ==
          UCS_ERR_INVALID_PARAM);
    CHECK(last_error() == 0);
    CHECK(ucs_gstream_enqueue_wait64(stream, gate, 1) == UCS_OK);
    CHECK(ucs_gstream_query(stream) == UCS_INPROGRESS);
    CHECK(last_error() == 0);
    CHECK(ucs_gstream_synchronize_timeout(stream, 0) == UCS_INPROGRESS);
    CHECK(last_error() == 0);
    gstream_util_quiet(0);
    gstream_util_store(gate, 1);
    CHECK(ucs_gstream_synchronize(stream) == UCS_OK);
    CHECK(last_error() == 0);
    return 0;
}

/* ... and what does not fail leaves that */
static int leaves_others(void)
{
    ucs_gstream_h stream    = make_on(make_native());
    volatile uint64_t *gate = ucs_gstream_word_get();

    CHECK((stream != NULL) && (gate != NULL));
    CHECK(set_device(99) == 101);
    CHECK(ucs_gstream_enqueue_wait64(stream, gate, 1) == UCS_OK);
    CHECK(ucs_gstream_query(stream) == UCS_INPROGRESS);
    CHECK(last_error() == 101);
    gstream_util_store(gate, 1);
    CHECK(ucs_gstream_synchronize(stream) == UCS_OK);
    CHECK(last_error() == 101);
    return 0;
}

ST_CASE(last_error)
{
    run_version(HIP_5_2, leaves_none);
    run_version(HIP_6_2, leaves_none);
    run_version(HIP_7, leaves_none);
    run_version(HIP_7, leaves_others);
}

/* While the application captures another stream, in a mode that forbids calls
 * to all threads: copies, queries and registrations do not end that */
static int goes_on(int is_asked)
{
    static char plain[LENGTH];
    int (*begin)(void *stream, int mode);
    int (*end)(void *stream, void **graph);
    void *captured          = make_native();
    ucs_gstream_h stream    = make_on(make_native());
    volatile uint64_t *word = ucs_gstream_word_get();
    void *graph             = NULL;
    ucs_gstream_copy_t copy;
    ucs_gstream_copy_params_t params = {
        .type   = UCS_GSTREAM_TYPE_HIP,
        .dst    = device_alloc(),
        .src    = device_alloc(),
        .length = LENGTH
    };
    ucs_status_t status;

    *(void**)&begin = find("hipStreamBeginCapture");
    *(void**)&end   = find("hipStreamEndCapture");
    CHECK((captured != NULL) && (stream != NULL) && (word != NULL));
    CHECK(ucs_gstream_memory_add(plain, LENGTH, UCS_GSTREAM_MEMORY_HOST) ==
          UCS_OK);
    CHECK(ucs_gstream_copy_begin(&params, &copy) == UCS_INPROGRESS);
    CHECK(begin(captured, 0) == 0);
    CHECK(ucs_gstream_reaches(stream, (uint64_t*)plain));
    status = ucs_gstream_copy_look(&copy);
    CHECK((status == UCS_OK) || (status == UCS_INPROGRESS));
    CHECK(ucs_gstream_enqueue_write64(stream, word, 1) == UCS_OK);
    if (is_asked) {
        CHECK(ucs_gstream_synchronize(stream) == UCS_OK);
        CHECK(ucs_gstream_query(stream) == UCS_OK);
    }
    CHECK(end(captured, &graph) == 0);
    while ((status = ucs_gstream_copy_look(&copy)) == UCS_INPROGRESS) {
        sched_yield();
    }
    CHECK(status == UCS_OK);
    CHECK(ucs_gstream_synchronize(stream) == UCS_OK);
    CHECK(*word == 1);
    return 0;
}

static int goes_on_asked(void)
{
    return goes_on(1);
}

static int goes_on_unasked(void)
{
    return goes_on(0);
}

ST_CASE(captures)
{
    run_version(HIP_5_2, goes_on_asked);
    run_version(HIP_5_6, goes_on_unasked);
    run_version(HIP_6_1, goes_on_asked);
    run_version(HIP_6_2, goes_on_asked);
    run_version(HIP_7, goes_on_asked);
}

/* Registers are taken, if at all, when they are first named, and are not tried
 * again */
static int check_registers(int are_taken)
{
    void (*get_counts)(standin_counts_t *counts);
    uint64_t *registers;
    ucs_gstream_h stream;
    standin_counts_t before, after;

    CHECK(setenv("STANDIN_IOMEMORY", are_taken ? "1" : "0", 1) == 0);
    *(void**)&get_counts = find("standin_counts");
    stream               = make_on(make_native());
    registers            = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK((stream != NULL) && (registers != MAP_FAILED));
    CHECK(ucs_gstream_memory_add(registers, LENGTH, UCS_GSTREAM_MEMORY_IO) ==
          UCS_OK);
    get_counts(&before);
    CHECK(ucs_gstream_reaches(stream, registers) == are_taken);
    CHECK(ucs_gstream_reaches(stream, registers) == are_taken);
    get_counts(&after);
    CHECK(after.registers == before.registers + 1);
    return 0;
}

static int takes_registers(void)
{
    return check_registers(1);
}

static int refuses_registers(void)
{
    return check_registers(0);
}

ST_CASE(registers)
{
    run_version(HIP_5_2, takes_registers);
    run_version(HIP_7, takes_registers);
    run_version(HIP_7_2, takes_registers);
    run_version(HIP_5_2, refuses_registers);
    run_version(HIP_6_2, refuses_registers);
    run_version(HIP_7_2, refuses_registers);
}

ST_SUITE("gstream_hip")
