/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_uct_loss.c - operations that do not come through: each is told once, and
 * none writes the user's memory after that.
 */
#include "fab_intercept.h"
#include "st_cunit.h"
#include "uct_region.h"

#include <uct/api/version.h>
#include <uct/base/uct_iface.h>

#include <rdma/fi_errno.h>

#include <string.h>

#define REGION_LENGTH (1 << 20)
#define PIECE         4096
#define MAX_OPS       96
#define AM_ID         3

/* How an operation is started, in turn */
typedef enum {
    OP_PUT_ZCOPY,
    OP_GET_ZCOPY,
    OP_GET_BCOPY,
    OP_FADD,
    OP_CSWAP,
    OP_LAST
} op_kind_t;

typedef struct {
    uct_done_t done;
    op_kind_t  kind;
    unsigned   unpacked; /* Calls */
    uint64_t   result;
    uint8_t    data[PIECE];
} op_t;

static uct_region_t region;
static op_t ops[MAX_OPS + 1];


static void open_all(uct_pair_t *pair)
{
    CU_ASSERT_FATAL(uct_pair_create(pair, NULL) == 0);
    uct_region_open(&region, pair, REGION_LENGTH);
    memset(region.data, 0x55, region.length);
}

#define PAIR_CASE(_name) \
    ST_CASE_WITH(_name, uct_pair_t, pair, open_all(pair), \
                 uct_pair_destroy(pair))

static void unpack(void *arg, const void *data, size_t length)
{
    op_t *op = arg;

    memcpy(op->data, data, length);
    ++op->unpacked;
}

static ucs_status_t op_start(op_t *op, op_kind_t kind, uct_ep_h ep)
{
    uct_iov_t iov   = {.buffer = op->data, .length = PIECE, .count = 1};
    uint64_t target = uct_region_at(&region, (op - ops) * PIECE);
    uct_rkey_t rkey = region.rkey.rkey;

    memset(op, 0, sizeof(*op));
    op->kind = kind;
    uct_done_init(&op->done, 1);
    switch (kind) {
    case OP_PUT_ZCOPY:
        return uct_ep_put_zcopy(ep, &iov, 1, target, rkey, &op->done.comp);
    case OP_GET_ZCOPY:
        return uct_ep_get_zcopy(ep, &iov, 1, target, rkey, &op->done.comp);
    case OP_GET_BCOPY:
        return uct_ep_get_bcopy(ep, unpack, op, PIECE, target, rkey,
                                &op->done.comp);
    case OP_FADD:
        return uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, &op->result,
                                     target, rkey, &op->done.comp);
    default:
        return uct_ep_atomic_cswap64(ep, 1, 2, target, rkey, &op->result,
                                     &op->done.comp);
    }
}

/* Starts one of each kind, again and again; returns how many. */
static unsigned start_all(uct_ep_h ep)
{
    unsigned count = 0;
    ucs_status_t status;

    do {
        status = op_start(&ops[count], count % OP_LAST, ep);
        count += (status == UCS_INPROGRESS);
    } while ((status == UCS_INPROGRESS) && (count < MAX_OPS));
    CU_ASSERT(status == UCS_INPROGRESS);
    return count;
}

static int is_zcopy(const op_t *op)
{
    return (op->kind == OP_PUT_ZCOPY) || (op->kind == OP_GET_ZCOPY);
}

/* What was brought back was so before its completion, or not at all */
static void check_result(const op_t *op)
{
    int is_ok = (op->done.status == UCS_OK);

    switch (op->kind) {
    case OP_GET_BCOPY:
        CU_ASSERT(op->unpacked == (unsigned)is_ok);
        break;
    case OP_FADD:
    case OP_CSWAP:
        CU_ASSERT((op->result == 0) == !is_ok);
        break;
    case OP_GET_ZCOPY:
        CU_ASSERT(!is_ok || (op->data[PIECE - 1] == 0x55));
        break;
    default:
        break;
    }
}

static void check_all(unsigned count)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        CU_ASSERT(ops[i].done.calls == 1);
        check_result(&ops[i]);
    }
}

/* The peer goes while they are in flight, and while they can be started. */
PAIR_CASE(peer_gone)
{
    unsigned count, i;
    ucs_status_t status;

    CU_ASSERT(op_start(&ops[0], OP_FADD, pair->a.peer) == UCS_INPROGRESS);
    CU_ASSERT(uct_done_wait(&ops[0].done, pair) == UCS_OK);

    count = start_all(pair->a.peer);
    uct_region_dereg(&region);
    uct_pair_close_side(&pair->b);
    while (pair->a.errors == 0) {
        if (count == MAX_OPS) { /* All are told, errors or not */
            for (i = 0; i < count; ++i) {
                (void)uct_done_wait(&ops[i].done, pair);
            }
            check_all(count);
            count = 0;
        }
        status = op_start(&ops[count], count % OP_LAST, pair->a.peer);
        count += (status == UCS_INPROGRESS);
        uct_pair_progress(pair);
    }
    for (i = 0; i < count; ++i) {
        (void)uct_done_wait(&ops[i].done, pair);
    }
    check_all(count);
    CU_ASSERT(pair->a.errors == 1);
    CU_ASSERT((pair->a.error == UCS_ERR_ENDPOINT_TIMEOUT) || /* As UCP says */
              (pair->a.error == UCS_ERR_CONNECTION_RESET)); /* Its key first */
    CU_ASSERT(UCS_STATUS_IS_ERR(op_start(&ops[0], OP_FADD, pair->a.peer)));
    CU_ASSERT(uct_ep_flush(pair->a.peer, UCT_FLUSH_FLAG_CANCEL, NULL) ==
              UCS_OK);

    /* Nothing else is disturbed */
    CU_ASSERT(uct_iface_flush(pair->a.iface, 0, NULL) == UCS_OK);
    CU_ASSERT(uct_ep_am_short(pair->a.self, 0, 0, NULL, 0) == UCS_OK);
    CU_ASSERT(uct_pair_flush(pair, pair->a.self) == UCS_OK);
    uct_region_close(&region);
}

/* A wrong key fails the endpoint: what was started before is told, all of it */
PAIR_CASE(stale_key)
{
    unsigned count, i, failed = 0;

    uct_region_dereg(&region);
    count = start_all(pair->a.peer);
    for (i = 0; i < count; ++i) {
        failed += (uct_done_wait(&ops[i].done, pair) != UCS_OK);
    }
    CU_ASSERT(failed == count);
    check_all(count);
    CU_ASSERT(region.data[0] == 0x55);
    uct_pair_progress(pair);
    CU_ASSERT(pair->a.errors == 1);
    CU_ASSERT(pair->a.error == UCS_ERR_CONNECTION_RESET); /* As UCX wants it */
    CU_ASSERT(UCS_STATUS_IS_ERR(op_start(&ops[0], OP_FADD, pair->a.peer)));
    CU_ASSERT(uct_ep_flush(pair->a.peer, UCT_FLUSH_FLAG_CANCEL, NULL) ==
              UCS_OK);
    uct_region_close(&region);
}

/* What touches nothing of the user's is told at once; the rest, and the flush,
 * when the provider is through with it. */
PAIR_CASE(cancel)
{
    uct_done_t flush, before;
    unsigned count, i;

    count = start_all(pair->a.peer);
    uct_done_init(&before, 1);
    CU_ASSERT(uct_ep_flush(pair->a.peer, 0, &before.comp) == UCS_INPROGRESS);
    uct_done_init(&flush, 1);
    CU_ASSERT(uct_ep_flush(pair->a.peer, UCT_FLUSH_FLAG_CANCEL, &flush.comp) ==
              UCS_INPROGRESS);
    CU_ASSERT((before.calls == 1) && (before.status == UCS_ERR_CANCELED));
    CU_ASSERT(flush.calls == 0);
    for (i = 0; i < count; ++i) {
        CU_ASSERT(ops[i].done.calls == (uint64_t)!is_zcopy(&ops[i]));
        CU_ASSERT(is_zcopy(&ops[i]) ||
                  (ops[i].done.status == UCS_ERR_CANCELED));
    }
    CU_ASSERT(uct_done_wait(&flush, pair) == UCS_OK);
    check_all(count);
    CU_ASSERT((flush.calls == 1) && (before.calls == 1));
    CU_ASSERT(uct_ep_flush(pair->a.peer, UCT_FLUSH_FLAG_CANCEL, NULL) ==
              UCS_OK);
    uct_region_close(&region);
}

/* What a fence still holds was never the provider's: all of it is told at
 * once, and none of it is carried out. */
PAIR_CASE(cancel_held)
{
    unsigned i;

    CU_ASSERT(op_start(&ops[0], OP_FADD, pair->a.peer) == UCS_INPROGRESS);
    CU_ASSERT(uct_ep_fence(pair->a.peer, 0) == UCS_OK);
    for (i = 1; i <= OP_LAST; ++i) {
        CU_ASSERT(op_start(&ops[i], i - 1, pair->a.peer) == UCS_INPROGRESS);
    }
    /* The first one is under way */
    CU_ASSERT(uct_ep_flush(pair->a.peer, UCT_FLUSH_FLAG_CANCEL, NULL) ==
              UCS_INPROGRESS);
    for (i = 0; i <= OP_LAST; ++i) {
        CU_ASSERT((ops[i].done.calls == 1) &&
                  (ops[i].done.status == UCS_ERR_CANCELED));
    }
    CU_ASSERT(uct_pair_flush(pair, pair->a.peer) == UCS_OK);
    check_all(OP_LAST + 1);
    /* The put of zeros, which was held, has not come */
    CU_ASSERT(region.data[PIECE] == 0x55);
    CU_ASSERT(pair->a.errors == 0);
    uct_region_close(&region);
}

/* Without the user's memory in flight all are told at once. The flush waits for
 * those that work on the peer's memory, not for messages. */
PAIR_CASE(cancel_at_once)
{
    uct_done_t flush;
    unsigned i;

    CU_ASSERT(uct_ep_am_short(pair->a.peer, 0, 0, NULL, 0) == UCS_OK);
    CU_ASSERT(uct_ep_flush(pair->a.peer, UCT_FLUSH_FLAG_CANCEL, NULL) ==
              UCS_OK);
    for (i = OP_GET_BCOPY; i < OP_LAST; ++i) {
        CU_ASSERT(op_start(&ops[i - OP_GET_BCOPY], i, pair->a.peer) ==
                  UCS_INPROGRESS);
    }
    uct_done_init(&flush, 1);
    CU_ASSERT(uct_ep_flush(pair->a.peer, UCT_FLUSH_FLAG_CANCEL, &flush.comp) ==
              UCS_INPROGRESS);
    check_all(OP_LAST - OP_GET_BCOPY);
    CU_ASSERT(ops[0].done.status == UCS_ERR_CANCELED);
    CU_ASSERT(uct_done_wait(&flush, pair) == UCS_OK);
    CU_ASSERT(uct_ep_flush(pair->a.peer, UCT_FLUSH_FLAG_CANCEL, NULL) ==
              UCS_OK);
    check_all(OP_LAST - OP_GET_BCOPY);
    uct_region_close(&region);
}

static uct_inbox_t inbox;

/* An endpoint is destroyed with all in flight, which is over then. Nothing else
 * is: not what another one to the same peer has started, and what comes */
static void destroy_with_all(uct_pair_t *pair, uct_ep_h *other_p, op_t *late)
{
    uct_done_t flush;
    unsigned count, i;

    open_all(pair);
    uct_inbox_open(&inbox, pair->a.iface, AM_ID);
    CU_ASSERT(uct_ep_am_short(pair->b.peer, AM_ID, 0, NULL, 0) == UCS_OK);
    CU_ASSERT(uct_pair_connect(pair->a.iface, pair->b.dev_addr,
                               pair->b.iface_addr, other_p) == UCS_OK);
    CU_ASSERT(op_start(late, OP_FADD, *other_p) == UCS_INPROGRESS);
    count = start_all(pair->a.peer);
    uct_done_init(&flush, 1);
    CU_ASSERT(uct_ep_flush(pair->a.peer, 0, &flush.comp) == UCS_INPROGRESS);
    uct_ep_destroy(pair->a.peer);
    pair->a.peer = NULL;
    CU_ASSERT((flush.calls == 1) && (flush.status == UCS_OK));
    for (i = 0; i < count; ++i) {
        CU_ASSERT(ops[i].done.status == UCS_OK);
    }
    check_all(count);
    CU_ASSERT(late->done.calls == 0);
    CU_ASSERT(inbox.count == 0);
}

ST_CASE(ep_destroyed)
{
    op_t *late = &ops[MAX_OPS];
    uct_pair_t pair;
    uct_ep_h other;

    destroy_with_all(&pair, &other, late);
    CU_ASSERT(uct_done_wait(&late->done, &pair) == UCS_OK);
    uct_pair_wait(&pair, &inbox.count, 1);
    uct_ep_destroy(other);
    uct_region_close(&region);
    uct_pair_destroy(&pair);
}

/* The other one follows, without progress in between: the end of its operation
 * may have been seen with the first one's */
ST_CASE(eps_destroyed)
{
    op_t *late = &ops[MAX_OPS];
    uct_pair_t pair;
    uct_ep_h other;

    destroy_with_all(&pair, &other, late);
    uct_ep_destroy(other);
    CU_ASSERT((late->done.calls == 1) && (late->done.status == UCS_OK));
    uct_region_close(&region);
    uct_pair_destroy(&pair);
}

/* The provider does not take an operation, and its endpoint is destroyed. It is
 * told once, before the user frees its memory, and not carried out then. */
PAIR_CASE(ep_destroyed_late)
{
    unsigned i;

    fab_intercept_fail_all(FAB_CALL_WRITE, FI_EAGAIN);
    CU_ASSERT(op_start(&ops[0], OP_PUT_ZCOPY, pair->a.peer) ==
              UCS_INPROGRESS);
    uct_ep_destroy(pair->a.peer);
    pair->a.peer = NULL;
    CU_ASSERT((ops[0].done.calls == 1) &&
              (ops[0].done.status == UCS_ERR_CANCELED));

    fab_intercept_fail_all(FAB_CALL_LAST, 0);
    CU_ASSERT(uct_iface_flush(pair->a.iface, 0, NULL) == UCS_OK);
    for (i = 0; i < 1000; ++i) {
        uct_pair_progress(pair);
    }
    CU_ASSERT((ops[0].done.calls == 1) && (region.data[0] == 0x55));
    uct_region_close(&region);
}

/* An interface is closed with the user's memory in flight: that of an endpoint
 * which is no longer asked what becomes of it */
PAIR_CASE(iface_closed)
{
    unsigned count;

    count = start_all(pair->a.peer);
    CU_ASSERT(uct_pair_invalidate(pair->a.peer) == UCS_OK);
    uct_ep_destroy(pair->a.peer);
    pair->a.peer = NULL;
    CU_ASSERT(ops[0].done.calls == 0);
    uct_pair_close_side(&pair->a);
    check_all(count);
    uct_region_close(&region);
}

static void count_purged(uct_pending_req_t *req, void *arg)
{
    ++*(unsigned*)arg;
}

static ucs_status_t never_run(uct_pending_req_t *req)
{
    CU_FAIL("a pending request of an invalid endpoint was run");
    return UCS_OK;
}

/* Whether an endpoint carries data, and tells so */
static void check_goes_on(uct_pair_t *pair, uct_ep_h ep)
{
    uint64_t before = *(uint64_t*)region.data;
    op_t *op        = &ops[0];

    CU_ASSERT(op_start(op, OP_FADD, ep) == UCS_INPROGRESS);
    CU_ASSERT(uct_done_wait(&op->done, pair) == UCS_OK);
    CU_ASSERT(op->result == before);
    CU_ASSERT(*(uint64_t*)region.data == before + 1);
}

/* Everything in flight ends with an error, once; nothing new begins; other
 * endpoints, to the same peer even, go on. */
PAIR_CASE(invalidate)
{
    uct_done_t flush;
    unsigned count, i;
    uct_ep_h other;

    CU_ASSERT_FATAL(uct_pair_connect(pair->a.iface, pair->b.dev_addr,
                                     pair->b.iface_addr, &other) == UCS_OK);
    count = start_all(pair->a.peer);
    uct_done_init(&flush, 1);
    CU_ASSERT(uct_ep_flush(pair->a.peer, 0, &flush.comp) == UCS_INPROGRESS);
    CU_ASSERT(uct_pair_invalidate(pair->a.peer) == UCS_OK);
    CU_ASSERT(uct_pair_invalidate(pair->a.peer) == UCS_OK);
    CU_ASSERT(pair->a.errors == 0); /* Not before progress */
    CU_ASSERT((flush.calls == 1) && (flush.status == UCS_ERR_CANCELED));
    for (i = 0; i < count; ++i) {
        CU_ASSERT(uct_done_wait(&ops[i].done, pair) == UCS_ERR_CANCELED);
    }
    while (pair->a.errors == 0) {
        uct_pair_progress(pair);
    }
    CU_ASSERT(pair->a.error == UCS_ERR_ENDPOINT_TIMEOUT);
    CU_ASSERT(uct_pair_invalidate(pair->a.peer) == UCS_OK);
    CU_ASSERT(uct_ep_flush(pair->a.peer, UCT_FLUSH_FLAG_CANCEL, NULL) ==
              UCS_OK);
    for (i = 0; i < count; ++i) {
        CU_ASSERT(ops[i].done.calls == 1);
    }
    CU_ASSERT(op_start(&ops[0], OP_FADD, pair->a.peer) == pair->a.error);

    memset(region.data, 0, region.length);
    check_goes_on(pair, other);
    CU_ASSERT(uct_ep_am_short(pair->a.self, 0, 0, NULL, 0) == UCS_OK);
    CU_ASSERT(uct_pair_flush(pair, pair->a.self) == UCS_OK);
    CU_ASSERT(pair->a.errors == 1);
    uct_ep_destroy(other);
    uct_region_close(&region);
}

/* What is started after it, before the error was told, is not carried out */
PAIR_CASE(invalidate_then_start)
{
    unsigned i;

    CU_ASSERT(uct_pair_invalidate(pair->a.peer) == UCS_OK);
    for (i = 0; i < OP_LAST; ++i) {
        CU_ASSERT(op_start(&ops[i], i, pair->a.peer) == UCS_INPROGRESS);
    }
    CU_ASSERT(uct_ep_flush(pair->a.peer, 0, NULL) == UCS_INPROGRESS);
    for (i = 0; i < OP_LAST; ++i) {
        CU_ASSERT(uct_done_wait(&ops[i].done, pair) == UCS_ERR_CANCELED);
        CU_ASSERT(region.data[i * PIECE] == 0x55);
    }
    CU_ASSERT(pair->a.errors == 1);
    CU_ASSERT(uct_iface_flush(pair->a.iface, 0, NULL) == UCS_OK);
    check_all(OP_LAST);

    /* Or its endpoint goes before it is told */
    CU_ASSERT(uct_pair_invalidate(pair->a.self) == UCS_OK);
    CU_ASSERT(uct_ep_am_short(pair->a.self, 0, 0, NULL, 0) == UCS_OK);
    uct_ep_destroy(pair->a.self);
    pair->a.self = NULL;
    CU_ASSERT(uct_iface_flush(pair->a.iface, 0, NULL) == UCS_OK);
    uct_pair_progress(pair);
    CU_ASSERT(pair->a.errors == 1);
    uct_region_close(&region);
}

/* Requests that wait are the user's to purge */
ST_CASE(invalidate_pending)
{
    static const char *const settings[] = {"TX_QUEUE_LEN", "4", NULL};
    unsigned purged                     = 0;
    uct_pending_req_t requests[8];
    uct_pair_t pair;
    unsigned i;

    CU_ASSERT_FATAL(uct_pair_create(&pair, settings) == 0);
    while (uct_ep_am_short(pair.a.peer, 0, 0, NULL, 0) == UCS_OK) {
    }
    CU_ASSERT(uct_pair_invalidate(pair.a.peer) == UCS_OK);
    for (i = 0; i < ST_CUNIT_COUNT(requests); ++i) {
        requests[i].func = never_run;
        CU_ASSERT(uct_ep_pending_add(pair.a.peer, &requests[i], 0) == UCS_OK);
    }
    uct_ep_pending_purge(pair.a.peer, count_purged, &purged);
    CU_ASSERT(purged == ST_CUNIT_COUNT(requests));
    while (pair.a.errors == 0) {
        uct_pair_progress(&pair);
    }
    CU_ASSERT(uct_pair_flush(&pair, pair.a.self) == UCS_OK);
    uct_pair_destroy(&pair);
}

/* A peer that has closed its interface is found to be gone, though its process
 * is not */
PAIR_CASE(check_closed)
{
    CU_ASSERT(uct_ep_check(pair->a.peer, 0, NULL) == UCS_OK);
    CU_ASSERT(uct_pair_flush(pair, pair->a.peer) == UCS_OK);
    CU_ASSERT(pair->a.errors == 0);

    uct_region_dereg(&region);
    uct_pair_close_side(&pair->b);
    while (pair->a.errors == 0) {
        CU_ASSERT(!UCS_STATUS_IS_ERR(uct_ep_check(pair->a.peer, 0, NULL)));
        uct_pair_progress(pair);
    }
    CU_ASSERT(pair->a.error == UCS_ERR_ENDPOINT_TIMEOUT);
    uct_region_close(&region);
}

#if UCT_API >= UCT_VERSION(1, 22)
/* A completion is told of the peer itself, dead or alive, whatever else is
 * under way to it; earlier versions of UCX refuse one. */
PAIR_CASE(check_completion)
{
    uct_done_t done;
    ucs_status_t status;

    CU_ASSERT(op_start(&ops[0], OP_FADD, pair->a.peer) == UCS_INPROGRESS);
    uct_done_init(&done, 1);
    CU_ASSERT(uct_ep_check(pair->a.peer, 0, &done.comp) == UCS_INPROGRESS);
    CU_ASSERT(uct_done_wait(&done, pair) == UCS_OK);
    CU_ASSERT(uct_done_wait(&ops[0].done, pair) == UCS_OK);

    uct_region_dereg(&region);
    uct_pair_close_side(&pair->b);
    do { /* That the peer has gone may be noticed later */
        uct_done_init(&done, 1);
        status = uct_ep_check(pair->a.peer, 0, &done.comp);
        if (status == UCS_INPROGRESS) {
            status = uct_done_wait(&done, pair);
            CU_ASSERT(done.calls == 1);
        }
    } while (status == UCS_OK);
    CU_ASSERT(status == UCS_ERR_ENDPOINT_TIMEOUT);
    while (pair->a.errors == 0) {
        uct_pair_progress(pair);
    }
    uct_done_init(&done, 1);
    CU_ASSERT(uct_ep_check(pair->a.peer, 0, &done.comp) == pair->a.error);
    CU_ASSERT(done.calls == 0);
    uct_region_close(&region);
}
#endif

ST_SUITE("uct_loss")
