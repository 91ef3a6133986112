/* SPDX-License-Identifier: BSD-3-Clause */
/* test_uct_rma.c - puts and gets, and what is sent without a copy. */
#include "st_cunit.h"
#include "uct_region.h"

#include <ucs/sys/compiler.h>
#include <ucs/sys/math.h>

#include <string.h>

#define AM_ID         5
#define MAX_IOV       16
#define LARGE         (3 * 1024 * 1024 + 5)
#define REGION_LENGTH (LARGE + 64)

static const uint8_t zeros[64];
static uint8_t local[REGION_LENGTH];
static uct_region_t region;


/* Divides the local memory into count pieces, one of them empty. Returns how
 * many bytes there are. */
static size_t divide(uct_iov_t *iov, size_t count, size_t piece)
{
    size_t total = 0, i;

    for (i = 0; i < count; ++i) {
        iov[i] = (uct_iov_t){
            .buffer = local + total + i, /* A gap of a byte */
            .length = ((count > 2) && (i == 1)) ? 0 : piece + i,
            .memh   = UCT_MEM_HANDLE_NULL,
            .count  = 1
        };
        total += iov[i].length;
    }
    return total;
}

/* What the pieces hold, one behind the other */
static void join(const uct_iov_t *iov, size_t count, uint8_t *data)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        memcpy(data, iov[i].buffer, iov[i].length);
        data += iov[i].length;
    }
}

UCT_REGION_CASE(limits, REGION_LENGTH)
{
    uct_iface_attr_t *attr;

    attr = &pair->a.attr;
    CU_ASSERT((attr->cap.put.max_iov >= 1) &&
              (attr->cap.put.max_iov <= MAX_IOV));
    CU_ASSERT(attr->cap.put.min_zcopy == 0);
    CU_ASSERT(attr->cap.put.max_zcopy >= LARGE);
    CU_ASSERT(attr->cap.put.max_zcopy >= attr->cap.put.max_bcopy);
    CU_ASSERT(attr->cap.get.max_iov == attr->cap.put.max_iov);
    CU_ASSERT(attr->cap.get.max_zcopy == attr->cap.put.max_zcopy);
    CU_ASSERT(!(attr->cap.flags & UCT_IFACE_FLAG_GET_SHORT));
    /* A message without a copy takes a piece for its header */
    CU_ASSERT(!(attr->cap.flags & UCT_IFACE_FLAG_AM_ZCOPY) ==
              (attr->cap.put.max_iov == 1));
}

/* Puts or gets lengths that are odd, small, large; the bytes around stay */
static void check_zcopy_lengths(uct_pair_t *pair, int is_get, uct_mem_h memh)
{
    static const size_t lengths[] = {1, 7, 64, 4097, 100000, LARGE};
    uct_iov_t iov                 = {.buffer = local + 3, .count = 1,
                                     .memh = memh};
    uint8_t *source, *target;
    uct_done_t done;
    ucs_status_t status;
    unsigned i;

    source = is_get ? region.data + 13 : local + 3;
    target = is_get ? local + 3 : region.data + 13;
    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        iov.length = lengths[i];
        uct_region_fill(source, lengths[i], i);
        memset(target - 1, 0xee, 1);
        memset(target + lengths[i], 0xee, 1);
        uct_done_init(&done, 1);
        status = (is_get ? uct_ep_get_zcopy : uct_ep_put_zcopy)(
                pair->a.peer, &iov, 1, uct_region_at(&region, 13),
                region.rkey.rkey, &done.comp);
        CU_ASSERT_FATAL(status == UCS_INPROGRESS);
        CU_ASSERT(uct_done_wait(&done, pair) == UCS_OK);
        CU_ASSERT(memcmp(source, target, lengths[i]) == 0);
        CU_ASSERT((target[-1] == 0xee) && (target[lengths[i]] == 0xee));
        CU_ASSERT(uct_pair_flush(pair, pair->a.peer) == UCS_OK);
        CU_ASSERT(done.calls == 1);
    }
}

UCT_REGION_CASE(zcopy_lengths, REGION_LENGTH)
{
    uct_md_attr_t attr;
    uct_mem_h memh;

    /* UCP leaves a handle that is not needed as it happens to be */
    CU_ASSERT(uct_md_query(pair->a.md, &attr) == UCS_OK);
    CU_ASSERT_FATAL(!(attr.cap.flags & UCT_MD_FLAG_NEED_MEMH));
    check_zcopy_lengths(pair, 0, (uct_mem_h)1);
    check_zcopy_lengths(pair, 1, (uct_mem_h)1);
    CU_ASSERT_FATAL(uct_md_mem_reg(pair->a.md, local, sizeof(local),
                                   UCT_MD_MEM_ACCESS_ALL, &memh) == UCS_OK);
    check_zcopy_lengths(pair, 0, memh);
    check_zcopy_lengths(pair, 1, memh);
    CU_ASSERT(uct_md_mem_dereg(pair->a.md, memh) == UCS_OK);
}

/* As many pieces as the interface tells, and each number below */
UCT_REGION_CASE(zcopy_pieces, REGION_LENGTH)
{
    static uint8_t joined[REGION_LENGTH];
    uct_iov_t iov[MAX_IOV];
    uct_done_t done;
    size_t count, length;

    for (count = 1; count <= pair->a.attr.cap.put.max_iov; ++count) {
        length = divide(iov, count, 1000);
        uct_region_fill(local, sizeof(local), count);
        join(iov, count, joined);
        uct_done_init(&done, 2);
        CU_ASSERT(uct_ep_put_zcopy(pair->a.peer, iov, count,
                                   uct_region_at(&region, 5), region.rkey.rkey,
                                   &done.comp) == UCS_INPROGRESS);
        CU_ASSERT(uct_pair_flush(pair, pair->a.peer) == UCS_OK);
        CU_ASSERT(memcmp(region.data + 5, joined, length) == 0);
        CU_ASSERT(done.comp.count == 1);

        memset(local, 0, sizeof(local));
        CU_ASSERT(uct_ep_get_zcopy(pair->a.peer, iov, count,
                                   uct_region_at(&region, 5), region.rkey.rkey,
                                   &done.comp) == UCS_INPROGRESS);
        CU_ASSERT(uct_done_wait(&done, pair) == UCS_OK);
        memset(joined, 0xff, length);
        join(iov, count, joined);
        CU_ASSERT(memcmp(region.data + 5, joined, length) == 0);
        CU_ASSERT(local[iov[0].length] == 0); /* The gap */
    }
}

/* What an unpack callback has got */
typedef struct {
    uct_done_t done;
    unsigned   calls;
    size_t     length;
    uint8_t    data[16384];
} unpacked_t;

static void unpack(void *arg, const void *data, size_t length)
{
    unpacked_t *unpacked = arg;

    ++unpacked->calls;
    unpacked->length = length;
    memcpy(unpacked->data, data, length);
}

UCT_REGION_CASE(get_bcopy, REGION_LENGTH)
{
    size_t lengths[] = {1, 8, 1000, 0};
    static unpacked_t unpacked;
    unsigned i;

    lengths[3] = pair->a.attr.cap.get.max_bcopy;
    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        uct_region_fill(region.data, lengths[i] + 2, i);
        memset(&unpacked, 0, sizeof(unpacked));
        uct_done_init(&unpacked.done, 1);
        CU_ASSERT(uct_ep_get_bcopy(pair->a.peer, unpack, &unpacked, lengths[i],
                                   uct_region_at(&region, 1), region.rkey.rkey,
                                   &unpacked.done.comp) == UCS_INPROGRESS);
        CU_ASSERT(unpacked.calls == 0);
        CU_ASSERT(uct_done_wait(&unpacked.done, pair) == UCS_OK);
        CU_ASSERT((unpacked.calls == 1) && (unpacked.length == lengths[i]));
        CU_ASSERT(memcmp(unpacked.data, region.data + 1, lengths[i]) == 0);
    }
    /* Nobody need be told */
    CU_ASSERT(uct_ep_get_bcopy(pair->a.peer, unpack, &unpacked, 8,
                               uct_region_at(&region, 0), region.rkey.rkey,
                               NULL) == UCS_INPROGRESS);
    CU_ASSERT(uct_pair_flush(pair, pair->a.peer) == UCS_OK);
    CU_ASSERT((unpacked.calls == 2) && (unpacked.length == 8));
}

static size_t pack_nothing(void *dest, void *arg)
{
    (void)dest;
    ++*(int*)arg;
    return 0;
}

/* Done at once: nothing is told later, and no key is needed */
UCT_REGION_CASE(empty, REGION_LENGTH)
{
    uct_iov_t iov = {.buffer = NULL, .length = 0, .count = 1};
    int packed    = 0;
    static unpacked_t unpacked;
    uct_done_t done;

    uct_done_init(&done, 1);
    CU_ASSERT(uct_ep_put_zcopy(pair->a.peer, &iov, 1, uct_region_at(&region, 0),
                               region.rkey.rkey, &done.comp) == UCS_OK);
    CU_ASSERT(uct_ep_put_zcopy(pair->a.peer, &iov, 1, 0, UCT_INVALID_RKEY,
                               &done.comp) == UCS_OK);
    CU_ASSERT(uct_ep_get_zcopy(pair->a.peer, &iov, 1, 0, UCT_INVALID_RKEY,
                               &done.comp) == UCS_OK);
    CU_ASSERT(uct_ep_put_zcopy(pair->a.peer, NULL, 0, 0, UCT_INVALID_RKEY,
                               &done.comp) == UCS_OK);
    CU_ASSERT(uct_ep_get_bcopy(pair->a.peer, unpack, &unpacked, 0, 0,
                               UCT_INVALID_RKEY, &done.comp) == UCS_OK);
    CU_ASSERT((unpacked.calls == 1) && (unpacked.length == 0));
    CU_ASSERT((uct_ep_put_bcopy(pair->a.peer, pack_nothing, &packed, 0,
                                UCT_INVALID_RKEY) == 0) &&
              (packed == 1));
    CU_ASSERT(uct_ep_put_short(pair->a.peer, NULL, 0, 0, UCT_INVALID_RKEY) ==
              UCS_OK);
    CU_ASSERT(uct_pair_flush(pair, pair->a.peer) == UCS_OK);
    CU_ASSERT(done.calls == 0);
}

/* Refused, and nothing is lost by it: all descriptors are there after */
ST_CASE(refused)
{
    static const char *const settings[] = {"TX_QUEUE_LEN", "2", NULL};
    uct_iov_t iov[MAX_IOV + 1];
    uct_iface_attr_t *attr;
    uct_done_t done;
    uct_pair_t pair;
    unsigned i;

    uct_region_open_pair(&region, &pair, settings, REGION_LENGTH);
    attr = &pair.a.attr;
    uct_done_init(&done, 3);
    for (i = 0; i < 4; ++i) {
        divide(iov, attr->cap.put.max_iov + 1, 8);
        CU_ASSERT(uct_ep_put_zcopy(pair.a.peer, iov, attr->cap.put.max_iov + 1,
                                   uct_region_at(&region, 0), region.rkey.rkey,
                                   &done.comp) == UCS_ERR_INVALID_PARAM);
        CU_ASSERT(uct_ep_get_zcopy(pair.a.peer, iov, attr->cap.get.max_iov + 1,
                                   uct_region_at(&region, 0), region.rkey.rkey,
                                   &done.comp) == UCS_ERR_INVALID_PARAM);
        iov[0].length = attr->cap.put.max_zcopy + 1;
        CU_ASSERT(uct_ep_put_zcopy(pair.a.peer, iov, 1,
                                   uct_region_at(&region, 0), region.rkey.rkey,
                                   &done.comp) == UCS_ERR_INVALID_PARAM);
        CU_ASSERT(uct_ep_get_bcopy(pair.a.peer, unpack, NULL,
                                   attr->cap.get.max_bcopy + 1,
                                   uct_region_at(&region, 0), region.rkey.rkey,
                                   &done.comp) == UCS_ERR_INVALID_PARAM);
    }
    CU_ASSERT(done.comp.count == 3);

    divide(iov, 1, 8);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT(uct_ep_put_zcopy(pair.a.peer, iov, 1,
                                   uct_region_at(&region, 0), region.rkey.rkey,
                                   &done.comp) == UCS_INPROGRESS);
    }
    CU_ASSERT(uct_ep_put_zcopy(pair.a.peer, iov, 1, uct_region_at(&region, 0),
                               region.rkey.rkey, &done.comp) ==
              UCS_ERR_NO_RESOURCE);
    CU_ASSERT(uct_pair_flush(&pair, pair.a.peer) == UCS_OK);
    CU_ASSERT(done.comp.count == 1);
    uct_region_close_pair(&region, &pair);
}

/* A get that waits in the queue of what is pending */
typedef struct {
    uct_pending_req_t req;
    uct_pair_t        *pair;
    uct_done_t        done;
    uint64_t          value;
    unsigned          number;
} queued_t;

static ucs_status_t queued_get(uct_pending_req_t *req)
{
    queued_t *queued = ucs_container_of(req, queued_t, req);
    uct_iov_t iov    = {
        .buffer = &queued->value,
        .length = sizeof(queued->value),
        .count  = 1
    };
    ucs_status_t status;

    status = uct_ep_get_zcopy(queued->pair->a.peer, &iov, 1,
                              uct_region_at(&region, queued->number * 8),
                              region.rkey.rkey, &queued->done.comp);
    return (status == UCS_INPROGRESS) ? UCS_OK : status;
}

/* Far more than there are descriptors: each is done, once */
ST_CASE(exhausted)
{
    enum {
        COUNT = 1000
    };
    static const char *const settings[] = {"TX_QUEUE_LEN", "4", NULL};
    static queued_t queued[COUNT];
    unsigned waited = 0;
    ucs_status_t status;
    uct_pair_t pair;
    unsigned i;

    uct_region_open_pair(&region, &pair, settings, REGION_LENGTH);
    uct_region_fill(region.data, COUNT * 8, 99);
    memset(queued, 0, sizeof(queued));
    for (i = 0; i < COUNT; ++i) {
        queued[i].pair     = &pair;
        queued[i].number   = i;
        queued[i].req.func = queued_get;
        uct_done_init(&queued[i].done, 1);
        status = queued_get(&queued[i].req);
        if (status != UCS_OK) {
            CU_ASSERT_FATAL(status == UCS_ERR_NO_RESOURCE);
            CU_ASSERT_FATAL(uct_ep_pending_add(pair.a.peer, &queued[i].req,
                                               0) == UCS_OK);
            ++waited;
        }
    }
    CU_ASSERT(waited == COUNT - 4);
    for (i = 0; i < COUNT; ++i) {
        CU_ASSERT(uct_done_wait(&queued[i].done, &pair) == UCS_OK);
        CU_ASSERT(memcmp(&queued[i].value, region.data + (i * 8), 8) == 0);
    }
    CU_ASSERT(uct_pair_flush(&pair, pair.a.peer) == UCS_OK);
    for (i = 0; i < COUNT; ++i) {
        CU_ASSERT(queued[i].done.calls == 1);
    }
    uct_region_close_pair(&region, &pair);
}

/* One completion for many operations is called when the last one is over */
UCT_REGION_CASE(shared_completion, REGION_LENGTH)
{
    enum {
        COUNT = 30
    };
    uct_iov_t iov = {.buffer = local, .length = 100, .count = 1};
    static unpacked_t unpacked;
    uct_done_t done;
    unsigned i;

    memset(&unpacked, 0, sizeof(unpacked));
    uct_done_init(&done, 3 * COUNT);
    for (i = 0; i < COUNT; ++i) {
        CU_ASSERT(uct_ep_put_zcopy(pair->a.peer, &iov, 1,
                                   uct_region_at(&region, i * 100),
                                   region.rkey.rkey,
                                   &done.comp) == UCS_INPROGRESS);
        CU_ASSERT(uct_ep_get_zcopy(
                          pair->a.peer, &iov, 1, uct_region_at(&region, 100000),
                          region.rkey.rkey, &done.comp) == UCS_INPROGRESS);
        CU_ASSERT(uct_ep_get_bcopy(pair->a.peer, unpack, &unpacked, 100,
                                   uct_region_at(&region, 200000),
                                   region.rkey.rkey,
                                   &done.comp) == UCS_INPROGRESS);
    }
    CU_ASSERT(done.calls == 0);
    CU_ASSERT(uct_done_wait(&done, pair) == UCS_OK);
    CU_ASSERT(done.comp.count == 0);
    CU_ASSERT(unpacked.calls == COUNT);
    CU_ASSERT(uct_iface_flush(pair->a.iface, 0, NULL) == UCS_OK);
}

static uct_inbox_t inbox;

/* Returns non-zero, with all undone, where there are no such messages. */
static int open_messages(uct_pair_t *pair)
{
    uct_region_open_pair(&region, pair, NULL, REGION_LENGTH);
    uct_inbox_open(&inbox, pair->b.iface, AM_ID);
    if (pair->a.attr.cap.flags & UCT_IFACE_FLAG_AM_ZCOPY) {
        return 0;
    }
    st_cunit_skip("the provider takes one piece of memory for a message");
    uct_region_close_pair(&region, pair);
    return 1;
}

ST_CASE(am_zcopy)
{
    static const unsigned headers[] = {0, 1, 32};
    static uint8_t sent[65536];
    uct_iov_t iov[MAX_IOV];
    size_t count, length;
    uct_done_t done;
    uct_pair_t pair;
    unsigned i;

    if (open_messages(&pair)) {
        return;
    }
    for (count = 0; count <= pair.a.attr.cap.am.max_iov; ++count) {
        for (i = 0; i < ST_CUNIT_COUNT(headers); ++i) {
            length = divide(iov, count, 500);
            uct_region_fill(local, sizeof(local), count);
            uct_region_fill(sent, headers[i], 111);
            join(iov, count, sent + headers[i]);
            uct_done_init(&done, 1);
            CU_ASSERT(uct_ep_am_zcopy(pair.a.peer, AM_ID, sent, headers[i], iov,
                                      count, 0, &done.comp) == UCS_INPROGRESS);
            CU_ASSERT(uct_done_wait(&done, &pair) == UCS_OK);
            uct_pair_wait(&pair, &inbox.count, (count * 3) + i + 1);
            CU_ASSERT(inbox.length == headers[i] + length);
            CU_ASSERT(memcmp(inbox.data, sent, inbox.length) == 0);
            CU_ASSERT(done.calls == 1);
        }
    }
    uct_region_close_pair(&region, &pair);
}

ST_CASE(am_zcopy_limits)
{
    uct_iov_t iov[MAX_IOV + 1];
    uct_iface_attr_t *attr;
    uct_done_t done;
    uct_pair_t pair;

    if (open_messages(&pair)) {
        return;
    }
    attr = &pair.a.attr;
    uct_done_init(&done, 1);
    divide(iov, attr->cap.am.max_iov + 1, 8);
    CU_ASSERT(uct_ep_am_zcopy(pair.a.peer, AM_ID, NULL, 0, iov,
                              attr->cap.am.max_iov + 1, 0, &done.comp) ==
              UCS_ERR_INVALID_PARAM);
    iov[0].length = attr->cap.am.max_zcopy - 7;
    CU_ASSERT(uct_ep_am_zcopy(pair.a.peer, AM_ID, local, 8, iov, 1, 0,
                              &done.comp) == UCS_ERR_INVALID_PARAM);
    CU_ASSERT(done.comp.count == 1);

    --iov[0].length;
    uct_region_fill(local, sizeof(local), 17);
    CU_ASSERT(uct_ep_am_zcopy(pair.a.peer, AM_ID, local, 8, iov, 1, 0,
                              &done.comp) == UCS_INPROGRESS);
    uct_pair_wait(&pair, &inbox.count, 1);
    CU_ASSERT(inbox.length == attr->cap.am.max_zcopy);
    CU_ASSERT(memcmp(inbox.data, local, 8) == 0);
    CU_ASSERT(memcmp(inbox.data + 8, iov[0].buffer, iov[0].length) == 0);
    CU_ASSERT(uct_done_wait(&done, &pair) == UCS_OK);
    uct_region_close_pair(&region, &pair);
}

/* What does not lie in the region is neither read nor written */
UCT_REGION_CASE(out_of_range, REGION_LENGTH)
{
    uct_iov_t iov = {.buffer = local, .length = 64, .count = 1};
    uct_done_t done;

    memset(region.data, 0x77, region.length);
    memset(local, 0, sizeof(zeros));
    uct_done_init(&done, 1);
    CU_ASSERT(uct_ep_get_zcopy(pair->a.peer, &iov, 1,
                               uct_region_at(&region, region.length - 63),
                               region.rkey.rkey, &done.comp) == UCS_INPROGRESS);
    CU_ASSERT(uct_done_wait(&done, pair) != UCS_OK);
    CU_ASSERT(memcmp(local, zeros, sizeof(zeros)) == 0);
    uct_pair_progress(pair);
    CU_ASSERT((pair->a.errors == 1) && (done.calls == 1));
}

ST_SUITE("uct_rma")
