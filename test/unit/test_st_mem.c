/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_mem.c - memory that other processes can map.
 */
#include "st_cunit.h"

#include <ucp_st.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 3000 /* more than there may be files */

/* Lengths on both sides of where a block gets a file of its own */
static const size_t lengths[] = {
    1, 63, 64, 256, 257, 4096, (1ul << 20) - 1, 1ul << 20, (1ul << 20) + 1,
    5000001
};
#define NUM_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

ST_CASE(blocks)
{
    uint8_t *block[NUM_LENGTHS];
    unsigned round, i;

    for (round = 0; round < 3; ++round) {
        for (i = 0; i < NUM_LENGTHS; ++i) {
            CU_ASSERT_EQUAL_FATAL(ucp_st_mem_alloc(lengths[i],
                                                   (void**)&block[i]), UCS_OK);
            CU_ASSERT_EQUAL((uintptr_t)block[i] % 64, 0);
            memset(block[i], i + 1, lengths[i]);
        }
        for (i = 0; i < NUM_LENGTHS; ++i) {
            CU_ASSERT_EQUAL(block[i][0], i + 1);
            CU_ASSERT_EQUAL(block[i][lengths[i] - 1], i + 1);
            CU_ASSERT_EQUAL(ucp_st_mem_free(block[i]), UCS_OK);
        }
    }
}

/* More than a process may have files open, twice: blocks are used again */
ST_CASE(many)
{
    static void *block[MANY];
    unsigned round, i;

    for (round = 0; round < 2; ++round) {
        for (i = 0; i < MANY; ++i) {
            CU_ASSERT_EQUAL_FATAL(ucp_st_mem_alloc(64ul << 10, &block[i]),
                                  UCS_OK);
            *(uint64_t*)block[i] = i;
        }
        for (i = 0; i < MANY; ++i) {
            CU_ASSERT_EQUAL(*(uint64_t*)block[i], i);
            CU_ASSERT_EQUAL(ucp_st_mem_free(block[i]), UCS_OK);
        }
    }
}

ST_CASE(refused)
{
    void *block = &block;
    void *same  = block;

    CU_ASSERT_EQUAL(ucp_st_mem_alloc(0, &block), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_mem_alloc(64, NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_mem_alloc(SIZE_MAX, &block), UCS_ERR_NO_MEMORY);
    CU_ASSERT_EQUAL(ucp_st_mem_alloc(SIZE_MAX / 4, &block), UCS_ERR_NO_MEMORY);
    CU_ASSERT_PTR_EQUAL(block, same);
    CU_ASSERT_EQUAL(ucp_st_mem_free(NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_mem_free(&block), UCS_ERR_INVALID_PARAM);

    CU_ASSERT_EQUAL_FATAL(ucp_st_mem_alloc(1000, &block), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_mem_free((uint8_t*)block + 64),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_mem_free(block), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_mem_free(block), UCS_ERR_INVALID_PARAM);
}

/* A child that was forked is refused, and its parent goes on */
ST_CASE(fork)
{
    ucp_st_worker_params_t params = {.field_mask = 0};
    ucp_st_worker_h worker;
    int status;
    void *block;
    pid_t child;

    CU_ASSERT_EQUAL_FATAL(ucp_st_worker_create(&params, &worker), UCS_OK);
    CU_ASSERT_EQUAL_FATAL(ucp_st_mem_alloc(1000, &block), UCS_OK);
    child = fork();
    if (child == 0) {
        _exit(((ucp_st_mem_alloc(1000, &block) == UCS_ERR_UNSUPPORTED) &&
               (ucp_st_mem_free(block) == UCS_ERR_UNSUPPORTED)) ? 0 : 1);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_EQUAL(ucp_st_mem_free(block), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_worker_destroy(worker), UCS_OK);
}

ST_SUITE("st_mem")
