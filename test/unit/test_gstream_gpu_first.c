/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_gpu_first.c - what the first stream of a device of HIP, of the
 * stand-in, tries, and what it pins; and what is told before there is one.
 */
#include "gstream_util.h"
#include "st_cunit.h"
#include "ucs_gstream_memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void *find(const char *name)
{
    void *runtime = dlopen(STANDIN_DIR "/libamdhip64.so", RTLD_NOW);
    void *func;

    CU_ASSERT_PTR_NOT_NULL_FATAL(runtime);
    func = dlsym(runtime, name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(func);
    return func;
}

static ucs_status_t make(ucs_gstream_h *stream)
{
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE,
        .type       = UCS_GSTREAM_TYPE_HIP
    };

    return ucs_gstream_create(&params, stream);
}

/* In a process of its own, as the stand-in's settings are read once: whether
 * the host is said to reach managed memory; -1 if something failed */
static int managed_is_hosts(const char *setting)
{
    int (*get)(void **address, size_t size, unsigned flags);
    ucs_gstream_memory_attr_t attr = {0};
    void *address;

    if (setenv("STANDIN_MANAGED", setting, 1) != 0) {
        return -1;
    }
    *(void**)&get = find("hipMallocManaged");
    if ((get(&address, 256, 1) != 0) ||
        (ucs_gstream_memory_query(address, &attr) != UCS_OK) ||
        (attr.type != UCS_GSTREAM_TYPE_HIP) || !attr.is_managed) {
        return -1;
    }
    return attr.is_hosts;
}

static void check_managed(const char *setting, int is_hosts)
{
    int status  = -1;
    pid_t child = fork();

    if (child == 0) {
        _exit(managed_is_hosts(setting) != is_hosts);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
}

ST_CASE(managed)
{
    check_managed("1", 1);
    check_managed("0", 0);
}

/* A device that waits for signal memory only: a stream is refused, and the next
 * one, when it waits for all, is not */
ST_CASE(signal)
{
    void (*set_signal)(int) = find("standin_set_signal");
    ucs_gstream_h stream;

    set_signal(1);
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(make(&stream), UCS_ERR_UNSUPPORTED);
    gstream_util_quiet(0);
    set_signal(0);
    CU_ASSERT_EQUAL_FATAL(make(&stream), UCS_OK);
    gstream_util_finish(stream);
}

/* A child has none of the words that a device reaches, and gets others */
ST_CASE(child)
{
    volatile uint64_t *word = ucs_gstream_word_get();
    int child_status        = -1;
    volatile uint64_t *other;
    ucs_gstream_h stream;
    uintptr_t page;
    pid_t child;

    CU_ASSERT_PTR_NOT_NULL_FATAL(find("hipInit"));
    CU_ASSERT_EQUAL_FATAL(make(&stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_write64(stream, word, 1), UCS_OK);
    gstream_util_finish(stream);
    page  = (uintptr_t)word & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    child = fork();
    if (child == 0) {
        if ((msync((void*)page, 1, MS_ASYNC) == 0) || (errno != ENOMEM)) {
            _exit(1);
        }
        other = ucs_gstream_word_get();
        if (other == NULL) {
            _exit(2);
        }
        *other = 1;
        _exit(0);
    }
    CU_ASSERT_EQUAL(waitpid(child, &child_status, 0), child);
    CU_ASSERT_EQUAL(child_status, 0);
    CU_ASSERT_EQUAL(*word, 1);
    ucs_gstream_word_put(word);
}

ST_SUITE("gstream_gpu_first")
