/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_kernel.h - a kernel of the application that starts and waits for messages
 * (test_kernel_op() of ../standin/test_kernels.cu), on a stream
 * that it shares with a queue.
 */
#ifndef ST_KERNEL_H_
#define ST_KERNEL_H_

#include "st_pair.h"
#include "standin_util.h"
#include "test_kernels.h"

/** Have stand-ins find such kernels; before one is loaded. */
void st_kernel_prepare(void);

/** Whether a GPU, or a stand-in, has code to run them: of GPUs those of CUDA,
 *  if clang was there when the tests were built. */
int st_kernel_can_run(const rt_t *rt);

/** A function of the kernels there, with arguments of so many bytes; asserts.
 */
typedef void (*st_kernel_func_t)(void *args);
st_kernel_func_t st_kernel_func(const rt_t *rt, const char *name, size_t size);

typedef struct st_kernel {
    const rt_t       *rt;
    st_side_t        *side;
    st_kernel_func_t func;
    void             *native;
    ucs_gstream_h    stream;
    ucp_st_queue_h   queue; /* on it */
    void             *result;
} st_kernel_t;

/** Make a stream of the current device, and a queue of a side on it; asserts.
 *  And undo that, when all has run. */
void st_kernel_init(st_kernel_t *kernel, const rt_t *rt, st_side_t *side);
void st_kernel_cleanup(st_kernel_t *kernel);

/** Launch it with a block of so many threads, and what a call of each is at the
 *  level of; asserts. */
void st_kernel_launch(st_kernel_t *kernel, test_kernel_op_t args,
                      unsigned threads);

/** Wait for the stream; what the kernel has come to. */
test_kernel_result_t st_kernel_end(st_kernel_t *kernel);

/** Both, on one thread. */
test_kernel_result_t st_kernel_run(st_kernel_t *kernel, test_kernel_op_t args);

/** An operation's handle; asserts. */
ucp_st_device_op_t st_kernel_handle(ucp_st_op_h op);

#endif
