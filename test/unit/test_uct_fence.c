/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_uct_fence.c - fences: what is behind one is taken at once, and carried
 * out when those before it are over.
 */
#include "st_cunit.h"
#include "uct_region.h"

#include <string.h>

#define AM_ID         5
#define REGION_LENGTH (3 << 20)

static uint8_t local[REGION_LENGTH];
static uct_region_t region;


typedef ucs_status_t (*rma_func_t)(uct_ep_h ep, const uct_iov_t *iov,
                                   size_t iovcnt, uint64_t remote_addr,
                                   uct_rkey_t rkey, uct_completion_t *comp);

/* Starts an operation on the region's first bytes */
static void start(uct_pair_t *pair, rma_func_t func, void *data, size_t length)
{
    uct_iov_t iov = {.buffer = data, .length = length, .count = 1};

    CU_ASSERT_FATAL(func(pair->a.peer, &iov, 1, uct_region_at(&region, 0),
                         region.rkey.rkey, NULL) == UCS_INPROGRESS);
}

/* A large put, a small one over it and a get: the fences keep them apart, and
 * none is refused because of them */
static void check_fenced(ucs_status_t (*fence)(uct_pair_t *pair))
{
    enum {
        LENGTH = 1 << 20
    };
    uint8_t *second = local + LENGTH;
    uint8_t *third  = local + (2 * LENGTH);
    uct_pair_t pair;
    unsigned i;

    uct_region_open_pair(&region, &pair, NULL, REGION_LENGTH);
    for (i = 1; i <= 20; ++i) {
        memset(local, 2 * i, LENGTH);
        memset(second, (2 * i) + 1, 1000);
        start(&pair, uct_ep_put_zcopy, local, LENGTH);
        CU_ASSERT(fence(&pair) == UCS_OK);
        start(&pair, uct_ep_put_zcopy, second, 1000);
        CU_ASSERT(fence(&pair) == UCS_OK);
        start(&pair, uct_ep_get_zcopy, third, LENGTH);
        CU_ASSERT(uct_pair_flush(&pair, pair.a.peer) == UCS_OK);
        CU_ASSERT(memcmp(third, second, 1000) == 0);
        CU_ASSERT(memcmp(third + 1000, local + 1000, LENGTH - 1000) == 0);
    }
    uct_region_close_pair(&region, &pair);
}

static ucs_status_t fence_ep(uct_pair_t *pair)
{
    return uct_ep_fence(pair->a.peer, 0);
}

static ucs_status_t fence_iface(uct_pair_t *pair)
{
    return uct_iface_fence(pair->a.iface, 0);
}

ST_CASE_CALL(ep, check_fenced(fence_ep))
ST_CASE_CALL(iface, check_fenced(fence_iface))

typedef struct {
    uint64_t count;
    uint64_t disorder; /* Messages that came before their put, or too early */
} fenced_t;

static ucs_status_t receive_fenced(void *arg, void *data, size_t length,
                                   unsigned flags)
{
    fenced_t *fenced = arg;
    uint64_t number;

    memcpy(&number, data, sizeof(number));
    fenced->disorder += (number != fenced->count) ||
                        (region.data[number * 1000] != 0x11);
    ++fenced->count;
    return UCS_OK;
}

/* Messages keep their order though fences hold some of them back */
UCT_REGION_CASE(messages, REGION_LENGTH)
{
    enum {
        COUNT = 200
    };
    uct_iov_t iov   = {.buffer = local, .length = 1000, .count = 1};
    fenced_t fenced = {0, 0};
    uint64_t i;

    memset(local, 0x11, sizeof(local));
    CU_ASSERT_FATAL(uct_iface_set_am_handler(pair->b.iface, AM_ID,
                                             receive_fenced, &fenced,
                                             0) == UCS_OK);
    for (i = 0; i < COUNT; ++i) {
        if (i % 3 == 0) {
            iov.length = 3000; /* That of the next two, too */
            while (uct_ep_put_zcopy(pair->a.peer, &iov, 1,
                                    uct_region_at(&region, i * 1000),
                                    region.rkey.rkey,
                                    NULL) == UCS_ERR_NO_RESOURCE) {
                uct_pair_progress(pair);
            }
            CU_ASSERT(uct_ep_fence(pair->a.peer, 0) == UCS_OK);
        }
        while (uct_ep_am_short(pair->a.peer, AM_ID, i, NULL, 0) ==
               UCS_ERR_NO_RESOURCE) {
            uct_pair_progress(pair);
        }
    }
    uct_pair_wait(pair, &fenced.count, COUNT);
    CU_ASSERT(fenced.disorder == 0);
}

/* A put, an atomic on it and one that fetches */
UCT_REGION_CASE(atomics, REGION_LENGTH)
{
    uint64_t result;
    uct_done_t done;
    uint64_t i;

    for (i = 1; i <= 50; ++i) {
        CU_ASSERT(uct_ep_put_short(pair->a.peer, &i, sizeof(i),
                                   uct_region_at(&region, 0),
                                   region.rkey.rkey) == UCS_OK);
        CU_ASSERT(uct_ep_fence(pair->a.peer, 0) == UCS_OK);
        CU_ASSERT(uct_ep_atomic64_post(pair->a.peer, UCT_ATOMIC_OP_ADD, 1000,
                                       uct_region_at(&region, 0),
                                       region.rkey.rkey) == UCS_OK);
        CU_ASSERT(uct_ep_fence(pair->a.peer, 0) == UCS_OK);
        uct_done_init(&done, 1);
        CU_ASSERT(uct_ep_atomic64_fetch(pair->a.peer, UCT_ATOMIC_OP_SWAP, 0,
                                        &result, uct_region_at(&region, 0),
                                        region.rkey.rkey,
                                        &done.comp) == UCS_INPROGRESS);
        CU_ASSERT(uct_done_wait(&done, pair) == UCS_OK);
        CU_ASSERT(result == 1000 + i);
    }
}

/* What an interface's fence holds goes to whom it may */
typedef struct {
    uint64_t   count;
    unsigned   early; /* Messages that came before the put was over */
    uct_done_t put;
} scope_t;

static ucs_status_t receive_scope(void *arg, void *data, size_t length,
                                  unsigned flags)
{
    scope_t *scope = arg;

    scope->early += (scope->put.calls == 0);
    ++scope->count;
    return UCS_OK;
}

UCT_REGION_CASE(iface_scope, REGION_LENGTH)
{
    uct_iov_t iov = {.buffer = local, .length = REGION_LENGTH, .count = 1};
    scope_t scope = {.count = 0};
    unsigned i;

    CU_ASSERT_FATAL(uct_iface_set_am_handler(pair->a.iface, AM_ID,
                                             receive_scope, &scope,
                                             0) == UCS_OK);
    for (i = 1; i <= 20; ++i) {
        uct_done_init(&scope.put, 1);
        CU_ASSERT(uct_ep_put_zcopy(pair->b.self, &iov, 1,
                                   uct_region_at(&region, 0), region.rkey.rkey,
                                   &scope.put.comp) == UCS_INPROGRESS);
        CU_ASSERT(uct_iface_fence(pair->b.iface, 0) == UCS_OK);
        CU_ASSERT(uct_ep_am_short(pair->b.peer, AM_ID, 0, NULL, 0) == UCS_OK);
        uct_pair_wait(pair, &scope.count, i);
        CU_ASSERT((scope.early == 0) && (scope.put.calls == 1));
    }
}

ST_SUITE("uct_fence")
