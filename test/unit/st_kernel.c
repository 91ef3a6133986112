/* SPDX-License-Identifier: BSD-3-Clause */
/* st_kernel.c - a kernel of the application that starts messages. */
#include "st_kernel.h"
#include "gstream_util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXTS 64
#define MAX_PTX   (1 << 20)


/* A file of the build folder, or of the pack that this runs from */
static const char *st_kernel_path(const char *name, char path[512])
{
    const char *dir = getenv("ST_BUILDDIR");

    snprintf(path, 512, "%s%s/%s", (dir != NULL) ? dir : STANDIN_DIR,
             (dir != NULL) ? "/test/standin" : "", name);
    return path;
}

void st_kernel_prepare(void)
{
    char path[512];

    setenv("STANDIN_KERNELS", st_kernel_path("test_kernels.so", path), 1);
}

/* The text of all kernels for a GPU of CUDA's; empty if clang was not there */
static const char *st_kernel_ptx(void)
{
    static char text[MAX_PTX];
    char path[512];
    FILE *file;

    if (text[0] == '\0') {
        file = fopen(st_kernel_path("test_kernels.ptx", path), "r");
        if (file != NULL) {
            text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
            fclose(file);
        }
    }
    return text;
}

/* HIP over CUDA's driver takes what that takes */
static int st_kernel_is_ptx(const rt_t *rt)
{
    return !rt->is_hip || (rt->control.standin_is_real != NULL);
}

int st_kernel_can_run(const rt_t *rt)
{
    return !rt_is_real(rt) ||
           (st_kernel_is_ptx(rt) && (*st_kernel_ptx() != '\0'));
}

/* A module for stand-ins, which names the kernel. HIP does not copy what it is
 * given: what was given before names another one, perhaps, when nobody looks.
 */
static const char *st_kernel_named(const rt_t *rt, const char *name,
                                   size_t size)
{
    static char texts[MAX_TEXTS][256];
    static unsigned count;
    char *text = texts[count++ % MAX_TEXTS];

    if (!st_kernel_is_ptx(rt)) {
        snprintf(text, sizeof(texts[0]), "hipRTC of the stand-in\n%s", name);
    } else {
        snprintf(text, sizeof(texts[0]),
                 ".version 6.0\n.target sm_70\n.address_size 64\n\n"
                 ".visible .entry %s(\n\t.param .align 8 .b8 %s_param_0[%zu]\n"
                 ")\n", name, name, size);
    }
    return text;
}

st_kernel_func_t st_kernel_func(const rt_t *rt, const char *name, size_t size)
{
    const char *text = rt_is_real(rt) ? st_kernel_ptx() :
                                        st_kernel_named(rt, name, size);
    void *module     = NULL;
    void *func       = NULL;
    st_kernel_func_t result;

    CU_ASSERT_EQUAL_FATAL(rt_module_load(rt, &module, text), RT_OK);
    CU_ASSERT_EQUAL_FATAL(rt_module_function(rt, &func, module, name), RT_OK);
    memcpy(&result, &func, sizeof(result));
    return result;
}

void st_kernel_init(st_kernel_t *kernel, const rt_t *rt, st_side_t *side)
{
    memset(kernel, 0, sizeof(*kernel));
    kernel->func   = st_kernel_func(rt, "test_kernel_op",
                                    sizeof(test_kernel_op_t));
    kernel->rt     = rt;
    kernel->side   = side;
    kernel->native = rt_stream(rt);
    kernel->stream = gstream_util_create_native(rt->is_hip, kernel->native);
    kernel->queue  = st_queue(side, kernel->stream);
    CU_ASSERT_EQUAL_FATAL(rt_alloc(rt, &kernel->result,
                                   sizeof(test_kernel_result_t)), RT_OK);
}

void st_kernel_cleanup(st_kernel_t *kernel)
{
    CU_ASSERT_EQUAL(rt_sync(kernel->rt, kernel->native), RT_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(kernel->queue), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(kernel->stream), UCS_OK);
    CU_ASSERT_EQUAL(rt_stream_destroy(kernel->rt, kernel->native), RT_OK);
    CU_ASSERT_EQUAL(rt_free(kernel->rt, kernel->result), RT_OK);
}

void st_kernel_launch(st_kernel_t *kernel, test_kernel_op_t args,
                      unsigned threads)
{
    const rt_launch_t launch = {kernel->func, threads, &args, sizeof(args)};

    args.level  = (threads > 1) ? UCP_ST_DEVICE_BLOCK : UCP_ST_DEVICE_THREAD;
    args.rounds = (args.rounds > 0) ? args.rounds : 1;
    args.result = RT_U64(kernel->result);
    CU_ASSERT_EQUAL(rt_kernel_block(kernel->rt, kernel->native, &launch),
                    RT_OK);
}

test_kernel_result_t st_kernel_end(st_kernel_t *kernel)
{
    test_kernel_result_t result = {.start = ~0ull};

    CU_ASSERT_EQUAL(rt_sync(kernel->rt, kernel->native), RT_OK);
    CU_ASSERT_EQUAL(rt_copy_now(kernel->rt, &result, kernel->result,
                                sizeof(result)), RT_OK);
    return result;
}

test_kernel_result_t st_kernel_run(st_kernel_t *kernel, test_kernel_op_t args)
{
    st_kernel_launch(kernel, args, 1);
    return st_kernel_end(kernel);
}

ucp_st_device_op_t st_kernel_handle(ucp_st_op_h op)
{
    ucp_st_device_op_t device = {.place = 0};

    CU_ASSERT_EQUAL(ucp_st_op_device(op, &device), UCS_OK);
    return device;
}
