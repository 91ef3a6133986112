/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_standin_module.c - modules of the stand-ins of GPU runtimes, and
 * processes that take turns.
 */
#include "standin_util.h"
#include "test_kernels.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>


/* A module is what its runtime loads, and has the kernels that it names, with
 * arguments of their size */
RT_CASE(modules)
{
    static const char ptx[] =
        "//\n\n.version 6.0\n.target sm_70\n.address_size 64\n\n"
        ".visible .entry ucs_gstream_waits_few(\n"
        "\t.param .align 8 .b8 ucs_gstream_waits_few_param_0[144]\n)\n";
    static const char rtc[]   = "hipRTC of the stand-in\nucs_gstream_waits_few";
    static const char empty[] = "__CLANG_OFFLOAD_BUNDLE__\0\0\0\0\0\0\0";
    void *stream              = rt_stream(rt);
    char args[145]            = {0};
    void *module, *func;
    void (*kernel)(void *args);

    CU_ASSERT_EQUAL(rt_module_load(rt, &module, ".version 6.0\n"),
                    rt->is_hip ? RT_IMAGE : RT_PTX);
    CU_ASSERT_EQUAL(rt_module_load(rt, &module, empty),
                    rt->is_hip ? RT_NO_BINARY : RT_PTX);
    CU_ASSERT_EQUAL(rt_module_function(rt, &func, &stream, "any"), RT_HANDLE);
    CU_ASSERT_EQUAL_FATAL(rt_module_load(rt, &module, rt->is_hip ? rtc : ptx),
                          RT_OK);
    CU_ASSERT_EQUAL(rt_module_function(rt, &func, module, "unknown"),
                    RT_NOT_FOUND);
    CU_ASSERT_EQUAL(rt_module_function(rt, &func, module,
                                       "ucs_gstream_waits_many"), RT_NOT_FOUND);
    CU_ASSERT_EQUAL_FATAL(rt_module_function(rt, &func, module,
                                             "ucs_gstream_waits_few"), RT_OK);
    memcpy(&kernel, &func, sizeof(kernel));
    CU_ASSERT_EQUAL(rt_kernel(rt, stream, kernel, args, 143), RT_INVALID);
    CU_ASSERT_EQUAL(rt_kernel(rt, stream, kernel, args, 145), RT_INVALID);
    CU_ASSERT_EQUAL(rt_kernel(rt, stream, kernel, args, 144), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, stream), RT_OK);
}

/* A kernel of an object that STANDIN_KERNELS names */
static void test_object(const rt_t *rt)
{
    static const char ptx[] =
        ".version 6.0\n.target sm_70\n.address_size 64\n\n"
        ".visible .entry test_kernel_add(\n"
        "\t.param .align 8 .b8 test_kernel_add_param_0[16]\n)\n";
    static const char rtc[] = "hipRTC of the stand-in\ntest_kernel_add";
    test_kernel_add_t args  = {.value = 2};
    void *stream            = rt_stream(rt);
    uint64_t word           = 40;
    void *module, *func, *there;
    void (*kernel)(void *args);

    CU_ASSERT_EQUAL_FATAL(rt_module_load(rt, &module, rt->is_hip ? rtc : ptx),
                          RT_OK);
    CU_ASSERT_EQUAL_FATAL(rt_module_function(rt, &func, module,
                                             "test_kernel_add"), RT_OK);
    CU_ASSERT_EQUAL(rt_module_function(rt, &there, module,
                                       "ucs_gstream_waits_few"),
                    RT_NOT_FOUND);
    memcpy(&kernel, &func, sizeof(kernel));
    CU_ASSERT_EQUAL_FATAL(rt_alloc(rt, &there, sizeof(word)), RT_OK);
    CU_ASSERT_EQUAL(rt_copy_now(rt, there, &word, sizeof(word)), RT_OK);
    args.word = RT_U64(there);
    CU_ASSERT_EQUAL(rt_kernel(rt, stream, kernel, &args, sizeof(args) - 1),
                    RT_INVALID);
    CU_ASSERT_EQUAL(rt_kernel(rt, stream, kernel, &args, sizeof(args)), RT_OK);
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
    CU_ASSERT_EQUAL(rt_copy_now(rt, &word, there, sizeof(word)), RT_OK);
    CU_ASSERT_EQUAL(word, 42);
    CU_ASSERT_EQUAL(rt_free(rt, there), RT_OK);
    CU_ASSERT_EQUAL(rt_stream_destroy(rt, stream), RT_OK);
}

#define OBJECT "STANDIN_KERNELS=:" STANDIN_DIR "/test_kernels.so"

/* ... in a process with both runtimes, whose kernels do not mix */
RT_CASE_SET(object, OBJECT, OBJECT)
{
    test_object(rt);
    test_object(rt_start(!rt->is_hip));
    test_object(rt);
}

/* Processes that take turns: of their kernels, which say that they run, never
 * two run at the same time, and yet both go on that wait for each other */

enum {
    TURN_OWNER, /* The kernel that runs */
    TURN_BAD,
    TURN_WORDS  /* Of the two processes */
};

#define TURNS      50
#define TURN_BYTES 4096

static void turn_store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static void turn_kernel(void *arg)
{
    uint64_t *words = *(uint64_t**)arg;
    unsigned i;

    if (__atomic_exchange_n(&words[TURN_OWNER], 1, __ATOMIC_SEQ_CST) != 0) {
        turn_store(&words[TURN_BAD], 1);
    }
    for (i = 0; i < 20; ++i) {
        sched_yield();
    }
    turn_store(&words[TURN_OWNER], 0);
}

static void turn_run(int is_hip, uint64_t *words, int me)
{
    const rt_t *rt = rt_start(is_hip);
    void *stream   = rt_stream(rt);
    unsigned i;

    CU_ASSERT_EQUAL_FATAL(rt_register(rt, words, TURN_BYTES, 0), RT_OK);
    for (i = 1; i <= TURNS; ++i) {
        CU_ASSERT_EQUAL(rt_kernel(rt, stream, turn_kernel, &words,
                                  sizeof(words)), RT_OK);
        CU_ASSERT_EQUAL(rt_write(rt, stream, &words[TURN_WORDS + me], i),
                        RT_OK);
        CU_ASSERT_EQUAL(rt_wait(rt, stream, &words[TURN_WORDS + !me], i,
                                RT_GEQ), RT_OK);
    }
    CU_ASSERT_EQUAL(rt_sync(rt, stream), RT_OK);
}

static void test_turns(int is_hip)
{
    uint64_t *words = mmap(NULL, TURN_BYTES, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char name[]     = "/tmp/standin_turns_XXXXXX";
    int status      = -1;
    pid_t child;

    CU_ASSERT_FATAL((words != MAP_FAILED) && (mkstemp(name) >= 0) &&
                    (setenv("STANDIN_TURNS", name, 1) == 0));
    child = fork();
    turn_run(is_hip, words, child == 0);
    if (child == 0) {
        _exit(CU_get_number_of_failure_records() != 0);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_EQUAL(words[TURN_BAD], 0);
    (void)unlink(name);
}

ST_CASE(turns_cuda)
{
    if (rt_is_child("turns_cuda", "")) {
        test_turns(0);
    }
}

ST_CASE(turns_hip)
{
    if (rt_is_child("turns_hip", "")) {
        test_turns(1);
    }
}

ST_SUITE("standin_module")
