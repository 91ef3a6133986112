/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fab_keys.c - what keys that the provider chooses protect from, as on
 * cxi: less than one thinks, unless the domain is told so. And what a region's
 * counter counts.
 */
#include "fab.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ONLY_CXI "sockets has none of this"

#define LENGTH 4096

/* Commands of cxi for fi_control() of a domain */
#define SET_OPTIMIZED_MRS (-(0xccc << 16) + 5)
#define SET_KEY_CACHE     (-(0xccc << 16) + 7)

static const fab_config_t prov_keys = {.mr_mode = FI_MR_PROV_KEY};

/** Memory that party 1 writes to, by a key of party 0's. */
typedef struct {
    uint8_t       *memory;
    struct fid_mr *mr;
    uint64_t      key;
} keys_t;

static void keys_set(fab_side_t *me, int command, bool value)
{
    FAB_EQUAL(fi_control(&me->domain->fid, command, &value), 0);
}

static uint64_t keys_register(fab_side_t *me, keys_t *keys, size_t offset)
{
    keys->mr = fab_register_access(me, keys->memory + offset, LENGTH, 0,
                                   FI_REMOTE_READ | FI_REMOTE_WRITE);
    return fi_mr_key(keys->mr);
}

/* The other party learns this one's key */
static void keys_tell(fab_side_t *me, keys_t *keys)
{
    if (me->index == 0) {
        fab_put(me, &keys->key, sizeof(keys->key));
    } else {
        fab_get(me, &keys->key, sizeof(keys->key));
    }
}

/* Party 1 writes to an offset; whether that is to succeed. Both are here. */
static void keys_write(fab_side_t *me, const keys_t *keys, uint64_t offset,
                       int is_good)
{
    static uint64_t value     = UINT64_MAX;
    struct iovec iov          = {.iov_base = &value, .iov_len = sizeof(value)};
    struct fi_rma_iov rma_iov = {
        .addr = offset, .len = sizeof(value), .key = keys->key
    };
    struct fi_msg_rma msg     = {
        .msg_iov = &iov, .iov_count = 1, .addr = me->peer,
        .rma_iov = &rma_iov, .rma_iov_count = 1
    };

    fab_barrier(me);
    if (me->index == 1) {
        FAB_MUST(me, fi_writemsg(me->ep, &msg,
                                 FI_DELIVERY_COMPLETE | FI_COMPLETION));
        if (is_good) {
            fab_entries(me, &me->tx, 1);
        } else {
            FAB_EQUAL(fab_error(me, &me->tx).err, FI_EIO);
        }
    }
    fab_barrier(me);
}

static void keys_init(fab_side_t *me, keys_t *keys)
{
    keys->memory = fab_alloc(2 * LENGTH);
    memset(keys->memory, 0, 2 * LENGTH);
    if (me->index == 0) {
        keys->key = keys_register(me, keys, 0);
    }
    keys_tell(me, keys);
}

static void keys_close(fab_side_t *me, keys_t *keys)
{
    if (me->index == 0) {
        FAB_EQUAL(fi_close(&keys->mr->fid), 0);
    }
}

/* A region that counts nothing has a key of the cache: its bounds are not
 * looked at, its closing revokes nothing, and it comes again. All the memory
 * stays registered by another region: else a NIC that maps its pages anew each
 * time would find nothing behind the key */
FAB_CASE(cached, .config = &prov_keys, .sockets = ONLY_CXI)
{
    int is_cached        = fab_is_strict();
    struct fid_mr *whole = NULL;
    keys_t keys;

    keys_init(me, &keys);
    if (me->index == 0) {
        whole = fab_register_access(me, keys.memory, 2 * LENGTH, 0,
                                    FI_REMOTE_READ | FI_REMOTE_WRITE);
    }
    keys_write(me, &keys, 0, 1);
    keys_write(me, &keys, LENGTH, is_cached);
    keys_close(me, &keys);
    keys_write(me, &keys, 8, is_cached);
    if (me->index == 0) {
        FAB_EQUAL(fab_load(&keys.memory[0]), UINT64_MAX);
        FAB_EQUAL(fab_load(&keys.memory[8]), is_cached ? UINT64_MAX : 0);
        FAB_EQUAL(fab_load(&keys.memory[LENGTH]), is_cached ? UINT64_MAX : 0);
        FAB_EQUAL(keys_register(me, &keys, 0) == keys.key, is_cached);
        FAB_EQUAL(fi_close(&whole->fid), 0);
    }
    keys_close(me, &keys);
    free(keys.memory);
}

/* Not so where the domain was told. What is left is the number of a key, which
 * is used again: the first few do not tell of whom. Before libfabric 2 cxi does
 * so whatever it was told; only FI_CXI_OPTIMIZED_MRS counts. */
static void run_uncached(fab_side_t *me, int is_optimized)
{
    int is_reached = (is_optimized && fab_is_strict()) || fab_is_old_cxi();
    keys_t keys;

    keys_set(me, SET_KEY_CACHE, false);
    keys_set(me, SET_OPTIMIZED_MRS, is_optimized);
    keys_init(me, &keys);
    keys_write(me, &keys, 0, 1);
    keys_write(me, &keys, LENGTH, 0);
    keys_close(me, &keys);
    keys_write(me, &keys, 0, 0);
    if (me->index == 0) {
        FAB_CHECK(keys_register(me, &keys, LENGTH) != keys.key);
    }
    keys_write(me, &keys, 0, is_reached);
    if (me->index == 0) {
        FAB_EQUAL(fab_load(&keys.memory[LENGTH]), is_reached ? UINT64_MAX : 0);
    }
    keys_close(me, &keys);
    free(keys.memory);
}

FAB_CASE_CALL(optimized, run_uncached(me, 1), .config = &prov_keys,
              .sockets = ONLY_CXI)
FAB_CASE_CALL(standard, run_uncached(me, 0), .config = &prov_keys,
              .sockets = ONLY_CXI)

/* Options of keys that the provider chooses are refused for others */
FAB_CASE(options, .sockets = ONLY_CXI)
{
    bool value = false;

    FAB_EQUAL(fi_control(&me->domain->fid, SET_KEY_CACHE, &value), -FI_EINVAL);
    FAB_EQUAL(fi_control(&me->domain->fid, SET_OPTIMIZED_MRS, &value),
              -FI_EINVAL);
    FAB_EQUAL(fi_control(&me->domain->fid, SET_KEY_CACHE + 100, &value),
              -FI_EINVAL);
    FAB_EQUAL(me->info->domain_attr->mr_key_size, 4);
}

/* A counter of writes counts what is read, too */
FAB_CASE(counted_reads, .sockets = ONLY_CXI)
{
    int is_counted        = fab_is_strict();
    struct fid_cntr *cntr = fab_cntr(me);
    uint8_t *memory       = fab_alloc(LENGTH);
    uint8_t *copy         = fab_alloc(LENGTH);
    struct fid_mr *mr     = fab_register(me, memory, LENGTH, 77, cntr);
    uint64_t base         = fab_base(me, memory);
    uint64_t there;

    fab_swap(me, &base, &there, sizeof(base));
    FAB_MUST(me, fi_read(me->ep, copy, LENGTH, NULL, me->peer, there, 77,
                         NULL));
    fab_entries(me, &me->tx, 1);
    FAB_MUST(me, fi_read(me->ep, copy, 8, NULL, me->peer, there, 77, NULL));
    fab_entries(me, &me->tx, 1);
    fab_barrier(me);
    fab_reads(me, cntr, is_counted ? 2 : 0);
    fab_barrier(me);
    FAB_EQUAL(fi_close(&mr->fid), 0);
    fab_cntr_close(cntr);
    free(copy);
    free(memory);
}

FAB_SUITE("fab_keys")
