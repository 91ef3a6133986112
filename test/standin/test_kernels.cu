/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_kernels.cu - kernels that are not the library's: of test_standin_module
 * and st_kernel.h; behind them are those of the examples. Plain C that is C++,
 * too.
 */
#include "test_kernels.h"
#include "../../examples/gpu/st_device_kernels.h"


UCS_GSTREAM_KERNEL test_kernel_add(test_kernel_add_t args)
{
    UCS_GSTREAM_ADD(args.word, args.value);
}

/* What a round's test or wait has come to */
UCS_GSTREAM_FUNC ucp_st_device_status_t
test_kernel_wait(const test_kernel_op_t *args)
{
    ucp_st_device_level_t level   = (ucp_st_device_level_t)args->level;
    ucp_st_device_status_t status = UCP_ST_DEVICE_OK;

    if (args->what & TEST_KERNEL_TEST) {
        while ((status = ucp_st_device_test(args->op, level)) ==
               UCP_ST_DEVICE_INPROGRESS) {
            UCS_GSTREAM_PAUSE();
        }
    }
    if ((args->what & TEST_KERNEL_WAIT) && (status == UCP_ST_DEVICE_OK)) {
        status = ucp_st_device_wait(args->op, level);
    }
    return status;
}

#define TEST_KERNEL_TELL(_args, _result, _field) \
    UCS_GSTREAM_PUT(unsigned long long, \
                    (_args)->result + \
                            __builtin_offsetof(test_kernel_result_t, _field), \
                    (_result)->_field)

UCS_GSTREAM_FUNC void test_kernel_tell(const test_kernel_op_t *args,
                                       const test_kernel_result_t *result)
{
    TEST_KERNEL_TELL(args, result, start);
    TEST_KERNEL_TELL(args, result, wait);
    TEST_KERNEL_TELL(args, result, tell);
    TEST_KERNEL_TELL(args, result, length);
    TEST_KERNEL_TELL(args, result, sum);
    TEST_KERNEL_TELL(args, result, rounds);
}

UCS_GSTREAM_KERNEL test_kernel_op(test_kernel_op_t args)
{
    ucp_st_device_level_t level = (ucp_st_device_level_t)args.level;
    test_kernel_result_t result = {UCP_ST_DEVICE_OK, 0, 0, 0, 0, 0};

    while (result.rounds < args.rounds) {
        if ((args.what & TEST_KERNEL_FILL) && (UCS_GSTREAM_RANK() == 0)) {
            UCS_GSTREAM_PUT(unsigned long long, args.buffer,
                            args.seed + result.rounds);
        }
        if (args.what & TEST_KERNEL_LENGTH) {
            result.start = ucp_st_device_start_length(args.op, args.length,
                                                      level);
        } else if (args.what & TEST_KERNEL_START) {
            result.start = ucp_st_device_start(args.op, level);
        }
        result.wait = test_kernel_wait(&args);
        if ((result.start != UCP_ST_DEVICE_OK) ||
            (result.wait != UCP_ST_DEVICE_OK)) {
            break;
        }
        if (args.what & TEST_KERNEL_SUM) {
            result.sum += UCS_GSTREAM_GET(unsigned long long, args.buffer);
        }
        ++result.rounds;
    }
    result.tell = ucp_st_device_length(args.op, &result.length);
    if (UCS_GSTREAM_RANK() == 0) {
        test_kernel_tell(&args, &result);
    }
}
