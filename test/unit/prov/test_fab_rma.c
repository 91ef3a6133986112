/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fab_rma.c - remote reads and writes, regions and their errors. */
#include "fab.h"

#include <stdlib.h>
#include <string.h>

#define RMA_WINDOW (FAB_LARGEST + (2 * FAB_MIB))


static const size_t rma_sizes[] = {
    1, 7, 8, 9, 24, 25, 64, 192, 2047, 2048, 2049, 4096, 5000, 32767, 32768,
    32769, 100001, 262143, 262144, 262145, 600000, FAB_MIB - 1, FAB_MIB,
    FAB_LARGEST
};

static const fab_config_t large  = {.window = RMA_WINDOW};
static const fab_config_t fenced = {.window = RMA_WINDOW, .caps = FI_FENCE};

/* In order after all before, and in the target's memory when it completes */
static ssize_t rma_write(fab_side_t *me, const void *data, size_t length,
                         uint64_t offset, uint64_t flags)
{
    struct iovec iov        = {.iov_base = (void*)data, .iov_len = length};
    struct fi_rma_iov riov  = {
        .addr = me->theirs.base + offset,
        .len  = length,
        .key  = me->theirs.key
    };
    struct fi_msg_rma msg   = {
        .msg_iov       = &iov,
        .iov_count     = 1,
        .addr          = me->peer,
        .rma_iov       = &riov,
        .rma_iov_count = 1,
        .context       = (void*)data
    };

    return fi_writemsg(me->ep, &msg, flags | FI_COMPLETION);
}

/* Both write into the other's window at the same time */
FAB_CASE(write_sizes, .config = &large)
{
    size_t i, length;
    uint8_t *out = fab_alloc(RMA_WINDOW);

    for (i = 0; i < ST_CUNIT_COUNT(rma_sizes); ++i) {
        length = rma_sizes[i];
        memset(me->window, 0xee, length + 8);
        fab_fill(out, length, fab_tint(me->index, i));
        fab_barrier(me);
        FAB_MUST(me, rma_write(me, out, length, 3, FI_DELIVERY_COMPLETE));
        FAB_CHECK(fab_entry(me, &me->tx).op_context == out);
        fab_barrier(me);
        FAB_FILLED(me, me->window + 3, length, i);
        FAB_CHECK((me->window[2] == 0xee) && (me->window[length + 3] == 0xee));
        fab_barrier(me);
    }
    fab_count(me, me->write, ST_CUNIT_COUNT(rma_sizes));
    fab_count(me, me->landed, ST_CUNIT_COUNT(rma_sizes));
    FAB_EQUAL(fi_cntr_read(me->landed), ST_CUNIT_COUNT(rma_sizes));
    free(out);
}

FAB_CASE(read_sizes, .config = &large)
{
    size_t i, length;
    uint8_t *in = fab_alloc(RMA_WINDOW);

    for (i = 0; i < ST_CUNIT_COUNT(rma_sizes); ++i) {
        length = rma_sizes[i];
        fab_fill(me->window + 5, length, fab_tint(me->index, i));
        memset(in, 0xee, length + 8);
        fab_barrier(me);
        FAB_MUST(me, fi_read(me->ep, in + 1, length, NULL, me->peer,
                             me->theirs.base + 5, me->theirs.key, in));
        FAB_CHECK(fab_entry(me, &me->tx).op_context == in);
        FAB_FILLED(me, in + 1, length, i);
        FAB_CHECK((in[0] == 0xee) && (in[length + 1] == 0xee));
        fab_barrier(me);
    }
    fab_count(me, me->read, ST_CUNIT_COUNT(rma_sizes));
    /* CXI counts what is read of a region, too */
    fab_reads(me, me->landed,
              fab_is_strict() ? ST_CUNIT_COUNT(rma_sizes) : 0);
    free(in);
}

/* No byte goes, and yet it is an operation */
FAB_CASE(empty)
{
    FAB_MUST(me, rma_write(me, me->window, 0, 0, FI_DELIVERY_COMPLETE));
    fab_entry(me, &me->tx);
    FAB_MUST(me, fi_read(me->ep, me->window, 0, NULL, me->peer,
                         me->theirs.base, me->theirs.key, NULL));
    fab_entry(me, &me->tx);
    fab_barrier(me);
}

FAB_CASE(to_self)
{
    uint64_t out = 77, in = 0;

    FAB_MUST(me, fi_write(me->ep, &out, 8, NULL, me->self, me->mine.base + 8,
                          me->mine.key, NULL));
    fab_entry(me, &me->tx);
    fab_count(me, me->landed, 1);
    FAB_MUST(me, fi_read(me->ep, &in, 8, NULL, me->self, me->mine.base + 8,
                         me->mine.key, NULL));
    fab_entry(me, &me->tx);
    FAB_EQUAL(in, 77);
}

/* Many writes to places of their own, in flight together */
FAB_CASE(pipeline, .config = &large)
{
    enum { COUNT = 500, LENGTH = 1000 };
    uint8_t *out = fab_alloc(COUNT * LENGTH);
    unsigned i;

    for (i = 0; i < COUNT; ++i) {
        fab_fill(out + (i * LENGTH), LENGTH, fab_tint(me->index, i));
        FAB_MUST(me, fi_write(me->ep, out + (i * LENGTH), LENGTH, NULL,
                              me->peer, me->theirs.base + (i * LENGTH),
                              me->theirs.key, NULL));
    }
    fab_entries(me, &me->tx, COUNT);
    fab_count(me, me->landed, COUNT);
    for (i = 0; i < COUNT; ++i) {
        FAB_FILLED(me, me->window + (i * LENGTH), LENGTH, i);
    }
    fab_barrier(me);
    free(out);
}

/* A flag behind data is never early: one that is sent when the data's delivery
 * has completed, or behind a fence, with no wait in between */
static void flag_after_data(fab_side_t *me, int is_fenced)
{
    enum { ROUNDS = 100, LENGTH = 40000 };
    uint8_t *out   = fab_alloc(LENGTH);
    uint64_t *flag = (uint64_t*)(me->window + FAB_MIB);
    uint64_t i;

    for (i = 1; i <= ROUNDS; ++i) {
        fab_fill(out, LENGTH, fab_tint(me->index, i));
        FAB_MUST(me, rma_write(me, out, LENGTH, 0, FI_DELIVERY_COMPLETE));
        if (!is_fenced) {
            fab_entry(me, &me->tx);
        }
        FAB_MUST(me, rma_write(me, &i, 8, FAB_MIB, is_fenced ? FI_FENCE : 0));
        fab_word(me, flag, i);
        FAB_FILLED(me, me->window, LENGTH, i);
        fab_entries(me, &me->tx, is_fenced ? 2 : 1);
        fab_barrier(me);
    }
    free(out);
}

FAB_CASE_CALL(flag_after_data, flag_after_data(me, 0), .config = &large)
FAB_CASE_CALL(fence, flag_after_data(me, 1), .config = &fenced,
              .sockets = "sockets: a fence behind a delivery-complete write "
                         "never ends")

FAB_CASE(inject)
{
    enum { COUNT = 200 };
    uint64_t word;
    unsigned i;

    for (i = 0; i < COUNT; ++i) {
        word = fab_tint(me->index, i);
        FAB_MUST(me, fi_inject_write(me->ep, &word, 8, me->peer,
                                     me->theirs.base + (8 * i),
                                     me->theirs.key));
        word = 0;
    }
    fab_count(me, me->landed, COUNT);
    for (i = 0; i < COUNT; ++i) {
        word = fab_load(me->window + (8 * i));
        FAB_EQUAL(word, fab_tint(!me->index, i));
    }
    FAB_CHECK(fab_is_empty(me, &me->tx));
    fab_barrier(me);
}

/* The target sleeps in the kernel: its NIC serves it all the same */
FAB_CASE(target_asleep, .config = &large)
{
    uint8_t *data = fab_alloc(FAB_MIB);
    char byte     = 'x';

    fab_fill(me->window, FAB_MIB, fab_tint(me->index, 1));
    fab_barrier(me);
    if (me->index == 0) {
        FAB_MUST(me, fi_read(me->ep, data, FAB_MIB, NULL, me->peer,
                             me->theirs.base, me->theirs.key, NULL));
        fab_entry(me, &me->tx);
        FAB_EQUAL(fab_differs(data, FAB_MIB, fab_tint(1, 1)), FAB_MIB);
        FAB_MUST(me, rma_write(me, me->window, FAB_MIB, FAB_MIB,
                               FI_DELIVERY_COMPLETE));
        fab_entry(me, &me->tx);
        fab_put(me, &byte, 1);
    } else {
        fab_get_asleep(me, &byte, 1);
        FAB_EQUAL(fab_differs(me->window + FAB_MIB, FAB_MIB, fab_tint(0, 1)),
                  FAB_MIB);
    }
    free(data);
}

/* What comes of an operation that the target refuses: an entry, a count, and
 * no byte moved */
static void rma_refused(fab_side_t *me, uint64_t key, uint64_t addr, int read)
{
    static uint64_t words[2];
    uint64_t *word = &words[me->index];
    uint64_t errors;

    errors = read ? fi_cntr_readerr(me->read) : fi_cntr_readerr(me->write);
    if (read) {
        FAB_MUST(me, fi_read(me->ep, word, 8, NULL, me->peer, addr, key,
                             word));
    } else {
        FAB_MUST(me, fi_write(me->ep, word, 8, NULL, me->peer, addr, key,
                              word));
    }
    FAB_CHECK(fab_error(me, &me->tx).op_context == word);
    fab_count_errors(me, read ? me->read : me->write, errors + 1);
}

FAB_CASE(errors)
{
    uint8_t *fenced = fab_alloc(8192);
    struct fid_mr *write_only, *read_only;
    uint64_t keys[2], theirs[2], base, their_base;

    memset(fenced, 0x5a, 8192);
    write_only = fab_register_access(me, fenced, 4096, 50, FI_REMOTE_WRITE);
    read_only  = fab_register_access(me, fenced, 4096, 51, FI_REMOTE_READ);
    keys[0]    = fi_mr_key(write_only);
    keys[1]    = fi_mr_key(read_only);
    base       = fab_base(me, fenced);
    fab_swap(me, keys, theirs, sizeof(keys));
    fab_swap(me, &base, &their_base, sizeof(base));

    rma_refused(me, 999, me->theirs.base, 0);
    rma_refused(me, 999, me->theirs.base, 1);
    rma_refused(me, theirs[0], their_base + 4096, 0);
    rma_refused(me, theirs[0], their_base + 4089, 0);
    rma_refused(me, theirs[0], their_base, 1);
    rma_refused(me, theirs[1], their_base, 0);
    rma_refused(me, theirs[1], their_base + (1ull << 40), 1);
    fab_barrier(me);
    FAB_CHECK((fenced[0] == 0x5a) && (fenced[4089] == 0x5a) &&
              (fenced[4096] == 0x5a));
    FAB_EQUAL(fi_close(&write_only->fid), 0);
    FAB_EQUAL(fi_close(&read_only->fid), 0);
    fab_barrier(me);
    rma_refused(me, theirs[0], their_base, 0);
    /* The rest of the endpoint is as it was */
    FAB_MUST(me, rma_write(me, &base, 8, 0, FI_DELIVERY_COMPLETE));
    fab_entry(me, &me->tx);
    fab_barrier(me);
    free(fenced);
}

/* Writes count once each, where the region's counter is, whatever their size;
 * a failed one does not */
FAB_CASE(remote_counters)
{
    enum { REGIONS = 8, LENGTH = 4096 };
    struct fid_cntr *cntrs[REGIONS];
    struct fid_mr *mrs[REGIONS];
    uint64_t keys[REGIONS], theirs[REGIONS], base[REGIONS], there[REGIONS];
    uint8_t *memory = fab_alloc(REGIONS * LENGTH);
    unsigned i, k;

    for (i = 0; i < REGIONS; ++i) {
        cntrs[i] = fab_cntr(me);
        mrs[i]   = fab_register(me, memory + (i * LENGTH), LENGTH, 100 + i,
                                cntrs[i]);
        keys[i]  = fi_mr_key(mrs[i]);
        base[i]  = fab_base(me, memory + (i * LENGTH));
    }
    fab_swap(me, keys, theirs, sizeof(keys));
    fab_swap(me, base, there, sizeof(base));
    for (i = 0; i < REGIONS; ++i) {
        for (k = 0; k <= i; ++k) {
            FAB_MUST(me, fi_write(me->ep, &keys, 64, NULL, me->peer,
                                  there[i] + (64 * k), theirs[i], NULL));
        }
    }
    for (i = 0; i < REGIONS; ++i) {
        fab_count(me, cntrs[i], i + 1);
    }
    fab_entries(me, &me->tx, REGIONS * (REGIONS + 1) / 2);
    fab_barrier(me);
    for (i = 0; i < REGIONS; ++i) {
        FAB_EQUAL(fi_cntr_read(cntrs[i]), i + 1);
        FAB_EQUAL(fi_close(&mrs[i]->fid), 0);
        fab_cntr_close(cntrs[i]);
    }
    free(memory);
}

/* A key that is in use is refused; a closed one's is free again */
FAB_CASE(keys)
{
    uint64_t words[8], attr_key;
    struct fid_mr *mr, *other = NULL;
    struct iovec iov          = {.iov_base = words, .iov_len = sizeof(words)};
    struct fi_mr_attr attr    = {
        .mr_iov        = &iov,
        .iov_count     = 1,
        .access        = FI_REMOTE_READ | FI_REMOTE_WRITE,
        .requested_key = 71
    };

    mr = fab_register_access(me, words, sizeof(words), 70, FI_REMOTE_WRITE);
    FAB_EQUAL(fi_mr_key(mr), 70);
    if (fab_is_cassini()) {
        FAB_CHECK((fi_mr_reg(me->domain, words, 8, FI_REMOTE_WRITE, 0, 70, 0,
                             &other, NULL) != 0) ||
                  (fi_mr_bind(other, &me->ep->fid, 0) != 0) ||
                  (fi_mr_enable(other) != 0));
        if (other != NULL) {
            fi_close(&other->fid);
        }
    }
    FAB_EQUAL(fi_close(&mr->fid), 0);
    mr = fab_register_access(me, words, sizeof(words), 70, FI_REMOTE_WRITE);
    FAB_EQUAL(fi_close(&mr->fid), 0);
    FAB_EQUAL(fi_mr_regattr(me->domain, &attr, 0, &mr), 0);
    attr_key = fi_mr_key(mr);
    FAB_EQUAL(attr_key, 71);
    FAB_EQUAL(fi_close(&mr->fid), 0);
}

static const fab_config_t prov_keys = {.mr_mode = FI_MR_PROV_KEY};

/* Keys that the provider chooses differ */
FAB_CASE(provider_keys, .config = &prov_keys)
{
    uint64_t words[8] = {0}, keys[8];
    struct fid_mr *mrs[8];
    unsigned i, k;

    if (!(me->info->domain_attr->mr_mode & FI_MR_PROV_KEY)) {
        return;
    }
    for (i = 0; i < 8; ++i) {
        mrs[i]  = fab_register_access(me, &words[i], 8, 0, FI_REMOTE_WRITE);
        keys[i] = fi_mr_key(mrs[i]);
        for (k = 0; k < i; ++k) {
            FAB_CHECK(keys[k] != keys[i]);
        }
    }
    fab_swap(me, keys, &words, sizeof(keys));
    memcpy(keys, words, sizeof(keys));
    memset(words, 0, sizeof(words));
    fab_barrier(me);
    for (i = 0; i < 8; ++i) {
        FAB_MUST(me, fi_inject_write(me->ep, &keys[i], 8, me->peer, 0,
                                     keys[i]));
        fab_word(me, &words[i], 1);
        FAB_EQUAL(words[i], fi_mr_key(mrs[i]));
    }
    fab_barrier(me);
    for (i = 0; i < 8; ++i) {
        FAB_EQUAL(fi_close(&mrs[i]->fid), 0);
    }
}

/* The endpoint's order is asked for: writes land in their order */
static const fab_config_t ordered = {
    .window    = RMA_WINDOW,
    .msg_order = FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_SAS
};

FAB_CASE(write_after_write, .config = &ordered)
{
    enum { COUNT = 400 };
    uint64_t value;

    for (value = 1; value <= COUNT; ++value) {
        FAB_MUST(me, fi_inject_write(me->ep, &value, 8, me->peer,
                                     me->theirs.base, me->theirs.key));
    }
    fab_count(me, me->landed, COUNT);
    value = fab_load(me->window);
    FAB_EQUAL(value, COUNT);
    fab_barrier(me);
}

/* What the target is told comes beside payload of any length */
FAB_CASE(remote_data)
{
    static const size_t lengths[] = {1, 8, 9, 24, 25, 100};
    struct fi_cq_tagged_entry entry;
    uint8_t out[100];
    uint64_t i;

    if (fab_is_strict()) {
        return; /* CXI has none: see test_fab_cxi */
    }
    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        fab_fill(out, lengths[i], fab_tint(me->index, i));
        FAB_MUST(me, fi_writedata(me->ep, out, lengths[i], NULL, 77 + i,
                                  me->peer, me->theirs.base, me->theirs.key,
                                  NULL));
        entry = fab_entry(me, &me->rx);
        FAB_CHECK(entry.flags & FI_REMOTE_CQ_DATA);
        FAB_EQUAL(entry.data, 77 + i);
        FAB_FILLED(me, me->window, lengths[i], i);
        fab_entry(me, &me->tx);
        fab_barrier(me);
    }
}

FAB_SUITE("fab_rma")
