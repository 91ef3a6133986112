/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_uct_fault.c - domains, interfaces and endpoints where libfabric refuses,
 * or memory is short: each call that the transport makes from the first one to
 * the last fails once. It is told, or made good; nothing is left open or hangs.
 */
#include "fab_intercept.h"
#include "st_cunit.h"
#include "st_intercept.h"
#include "uct_region.h"
#include "uct_short.h"

#include <rdma/fi_errno.h>

#include <stdio.h>
#include <time.h>

#define LENGTH    8192
#define MAX_CALLS 2000

/* An emulated card takes long to open: some calls only are refused, so that all
 * ends in about so many seconds */
#define RUN_TIME  60.0
#define RUN_LIVES 3000

/* What a call is refused with, in turn */
static const int codes[] = {FI_EIO, FI_ENOMEM, FI_EAGAIN, FI_ENOSPC};

static uint8_t memory[LENGTH] __attribute__((aligned(4096)));

static ucs_status_t wait_done(uct_pair_t *pair, uct_done_t *done,
                              ucs_status_t status)
{
    if (status != UCS_INPROGRESS) {
        return status;
    }
    return uct_done_wait(done, pair);
}

/* One of each kind that is told; returns the first error */
static ucs_status_t use(uct_pair_t *pair, uct_rkey_t rkey)
{
    static uint8_t buffer[LENGTH];
    uct_iov_t iov = {.buffer = buffer, .length = LENGTH / 2, .count = 1};
    uint64_t at   = (uintptr_t)memory;
    uint64_t old  = 0;
    ucs_status_t status;
    uct_done_t done;

    memory[0] = 0x11;
    uct_done_init(&done, 1);
    status = wait_done(pair, &done,
                       uct_ep_get_zcopy(pair->a.peer, &iov, 1, at, rkey,
                                        &done.comp));
    CU_ASSERT((status != UCS_OK) || (buffer[0] == 0x11));
    if (status != UCS_OK) {
        return status;
    }

    buffer[0] = 0x22;
    uct_done_init(&done, 1);
    status = wait_done(pair, &done,
                       uct_ep_put_zcopy(pair->a.peer, &iov, 1, at, rkey,
                                        &done.comp));
    CU_ASSERT((status != UCS_OK) || (memory[0] == 0x22));
    if (status != UCS_OK) {
        return status;
    }

    uct_done_init(&done, 1);
    status = wait_done(pair, &done,
                       uct_ep_atomic64_fetch(pair->a.peer, UCT_ATOMIC_OP_ADD,
                                             1, &old, at, rkey, &done.comp));
    if (status != UCS_OK) {
        return status;
    }
    status = uct_ep_check(pair->a.peer, 0, NULL);
    return (status == UCS_OK) ? uct_pair_flush(pair, pair->a.peer) : status;
}

static ucs_status_t use_key(uct_pair_t *pair, uct_mem_h memh)
{
    uint8_t packed[64];
    uct_rkey_bundle_t rkey;
    ucs_status_t status;

    CU_ASSERT(uct_md_mkey_pack(pair->b.md, memh, packed) == UCS_OK);
    status = uct_rkey_unpack(pair->component, packed, &rkey);
    if (status == UCS_OK) {
        status = use(pair, rkey.rkey);
        CU_ASSERT(uct_rkey_release(pair->component, &rkey) == UCS_OK);
    }
    return status;
}

/* From the opening of domains to their end */
static ucs_status_t live(void)
{
    ucs_status_t status;
    uct_pair_t pair;
    uct_mem_h memh;

    if (uct_pair_create(&pair, NULL) != 0) {
        return UCS_ERR_NO_DEVICE; /* Whatever it was */
    }
    status = uct_md_mem_reg(pair.b.md, memory, LENGTH, UCT_MD_MEM_ACCESS_ALL,
                            &memh);
    if (status == UCS_OK) {
        status = use_key(&pair, memh);
        CU_ASSERT(uct_md_mem_dereg(pair.b.md, memh) == UCS_OK);
    }
    uct_pair_destroy(&pair);
    return status;
}

/* How many calls further the next one is that fails */
static int find_step(void)
{
    struct timespec start, end;

    clock_gettime(CLOCK_MONOTONIC, &start);
    CU_ASSERT_FATAL(live() == UCS_OK);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return 1 + (int)(RUN_LIVES * ((end.tv_sec - start.tv_sec) +
                                  ((end.tv_nsec - start.tv_nsec) / 1e9)) /
                     RUN_TIME);
}

/* The transport tries again, waits until there is room, or does without */
static int is_passing(fab_call_t call)
{
    switch (call) {
    case FAB_CALL_LAST:
    case FAB_CALL_GETWAIT:
    case FAB_CALL_INSERT:
    case FAB_CALL_SEND:
    case FAB_CALL_RECV:
    case FAB_CALL_WRITE:
    case FAB_CALL_READ:
        return 1;
    default:
        return 0;
    }
}

static void check_calls(unsigned first_code, int step)
{
    int64_t objects    = fab_intercept_open();
    int64_t allocation = st_intercept_outstanding();
    ucs_status_t status;
    fab_call_t call;
    int number, code;

    for (number = first_code % step; number < MAX_CALLS; number += step) {
        code = codes[(number / step + first_code) % ST_CUNIT_COUNT(codes)];
        fab_intercept_fail(number, code);
        status = live();
        call   = fab_intercept_failed();
        fab_intercept_fail(-1, 0);
        if (fab_intercept_open() != objects) {
            printf("call %d, %s, returns \"%s\": %d objects are left\n",
                   number, fab_intercept_name(call), fi_strerror(code),
                   (int)(fab_intercept_open() - objects));
            CU_FAIL_FATAL("objects are left open");
        }
        /* Where a queue cannot be slept on, one is opened without that */
        if ((call != FAB_CALL_CQ) &&
            ((status == UCS_OK) != is_passing(call))) {
            printf("call %d, %s, returns \"%s\": %s\n", number,
                   fab_intercept_name(call), fi_strerror(code),
                   ucs_status_string(status));
            CU_FAIL("the wrong status");
        }
        if (call == FAB_CALL_LAST) {
            break;
        }
    }
    CU_ASSERT(number > 20);
    CU_ASSERT(number < MAX_CALLS);
    CU_ASSERT(st_intercept_outstanding() == allocation);
}

ST_CASE(calls)
{
    unsigned i;
    int step;

    /* The first time, UCX keeps things for ever */
    CU_ASSERT_FATAL(live() == UCS_OK);
    step = find_step();
    for (i = 0; i < ST_CUNIT_COUNT(codes); ++i) {
        check_calls(i, step);
    }
}

ST_CASE(memory)
{
    int64_t objects, allocation;
    ucs_status_t status;
    int number, step;

    CU_ASSERT_FATAL(live() == UCS_OK);
    step       = find_step();
    objects    = fab_intercept_open();
    allocation = st_intercept_outstanding();
    for (number = 0; number < MAX_CALLS; number += step) {
        uct_short_left = number;
        status           = live();
        CU_ASSERT(fab_intercept_open() == objects);
        CU_ASSERT((status == UCS_OK) == (uct_short_left >= 0));
        if (uct_short_left >= 0) {
            break;
        }
    }
    uct_short_left = -1;
    CU_ASSERT(number > 5);
    CU_ASSERT(st_intercept_outstanding() == allocation);
}

ST_SUITE("uct_fault")
