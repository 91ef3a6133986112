/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_hook.c - a runtime of GPUs that the program has loaded is found
 * where dlopen() is not the C library's. UCX replaces it once it has a module
 * for ROCm: a name stands for the first file of that name in a folder where
 * libraries are, though another one is loaded.
 */
#include "gstream_util.h"
#include "st_cunit.h"
#include "standin_util.h"
#include "ucs_gpu.h"
#include "ucs_gstream_memory.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>


/* Every name is in such a folder, and nothing was loaded from there */
void *dlopen(const char *file, int mode)
{
    void *(*next)(const char *file, int mode);
    char path[256];

    *(void**)&next = dlsym(RTLD_NEXT, "dlopen");
    if ((file != NULL) && (strchr(file, '/') == NULL)) {
        snprintf(path, sizeof(path), "/nowhere/%s", file);
        file = path;
    }
    return next(file, mode);
}

static void run(const rt_t *rt)
{
    ucs_gstream_memory_attr_t attr = {.is_hosts = 1};
    ucs_gpu_memory_t found         = {.length = 0};
    void *memory                   = NULL;

    CU_ASSERT_EQUAL_FATAL(rt_alloc(rt, &memory, 4096), RT_OK);
    (void)ucs_gpu_loaded();
    CU_ASSERT_TRUE(ucs_gpu_find(memory, &found));
    CU_ASSERT_EQUAL(found.runtime, rt->is_hip ? UCS_GPU_ROCM : UCS_GPU_CUDA);
    CU_ASSERT_EQUAL(ucs_gstream_memory_query(memory, &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.type, gstream_util_type(rt->is_hip));
    CU_ASSERT_FALSE(attr.is_hosts);
    gstream_util_finish(gstream_util_create_gpu(rt->is_hip));
    CU_ASSERT_EQUAL(rt_free(rt, memory), RT_OK);
}

ST_CASE_CALL(cuda, run(rt_start(0)))
ST_CASE_CALL(hip, run(rt_start(1)))

ST_SUITE("gstream_hook")
