/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx-gtest.h - which transports UCX's own tests run on: this file is read
 * before each of them, and takes the place of the lists that UCX has.
 *
 * Tests that UCX writes for one transport are left as they are. tcp and posix
 * are there to compare with.
 */
#ifndef UCX_GTEST_H_
#define UCX_GTEST_H_

#include <ucp/ucp_test.h>
#include <uct/uct_test.h>

/* UCX 1.23 leaves out the tests of tagged messages, for a fault of some card of
 * InfiniBand */
namespace ucs {
static inline bool ucx_gtest_skip_none()
{
    return false;
}
}
#define skip_hw_tm_offload ucx_gtest_skip_none

#undef UCT_TEST_TLS
#undef UCT_TEST_NO_SELF_TLS
#undef UCT_TEST_NO_GPU_MEM_TYPE_TLS
#define UCT_TEST_TLS                 cxi_trig, tcp, posix
#define UCT_TEST_NO_SELF_TLS         UCT_TEST_TLS
#define UCT_TEST_NO_GPU_MEM_TYPE_TLS UCT_TEST_TLS

#undef UCP_INSTANTIATE_TEST_CASE
#undef UCP_INSTANTIATE_TEST_CASE_GPU_AWARE
#define UCP_INSTANTIATE_TEST_CASE(_test_case) \
    UCP_INSTANTIATE_TEST_CASE_TLS(_test_case, cxi_trig, "cxi_trig") \
    UCP_INSTANTIATE_TEST_CASE_TLS(_test_case, tcp, "tcp") \
    UCP_INSTANTIATE_TEST_CASE_TLS(_test_case, posix, "posix")
#define UCP_INSTANTIATE_TEST_CASE_GPU_AWARE(_test_case) \
    UCP_INSTANTIATE_TEST_CASE(_test_case)

#endif
