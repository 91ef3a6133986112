/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fab_atomic.c - atomics, against a model in this file. */
#include "fab.h"

#include <string.h>

static const enum fi_datatype types[] = {
    FI_INT32, FI_UINT32, FI_INT64, FI_UINT64
};
static const enum fi_op base_ops[] = {
    FI_SUM, FI_BOR, FI_BAND, FI_BXOR, FI_MIN, FI_MAX, FI_LOR, FI_LAND, FI_LXOR
};
static const enum fi_op fetch_ops[] = {
    FI_SUM, FI_BOR, FI_BAND, FI_BXOR, FI_ATOMIC_WRITE, FI_ATOMIC_READ,
    FI_MIN, FI_MAX, FI_LOR, FI_LAND, FI_LXOR
};
static const enum fi_op compare_ops[] = {
    FI_CSWAP, FI_CSWAP_NE, FI_CSWAP_LE, FI_CSWAP_LT, FI_CSWAP_GE, FI_CSWAP_GT,
    FI_MSWAP
};


static size_t type_size(enum fi_datatype type)
{
    return ((type == FI_INT32) || (type == FI_UINT32)) ? 4 : 8;
}

static uint64_t type_mask(enum fi_datatype type)
{
    return (type_size(type) == 4) ? 0xffffffffull : ~0ull;
}

/* < 0, 0 or > 0, as numbers of the type */
static int type_cmp(enum fi_datatype type, uint64_t a, uint64_t b)
{
    switch (type) {
    case FI_INT32:
        return ((int32_t)a > (int32_t)b) - ((int32_t)a < (int32_t)b);
    case FI_UINT32:
        return ((uint32_t)a > (uint32_t)b) - ((uint32_t)a < (uint32_t)b);
    case FI_INT64:
        return ((int64_t)a > (int64_t)b) - ((int64_t)a < (int64_t)b);
    default:
        return (a > b) - (a < b);
    }
}

/* What is in memory afterwards; the first 32 bits alone for the small types */
static uint64_t model(enum fi_op op, enum fi_datatype type, uint64_t old,
                      uint64_t operand)
{
    uint64_t mask = type_mask(type);
    int a         = (old & mask) != 0;
    int b         = (operand & mask) != 0;
    uint64_t value;

    switch (op) {
    case FI_MIN:
        value = (type_cmp(type, operand, old) < 0) ? operand : old;
        break;
    case FI_MAX:
        value = (type_cmp(type, operand, old) > 0) ? operand : old;
        break;
    case FI_LOR:
        value = a || b;
        break;
    case FI_LAND:
        value = a && b;
        break;
    case FI_LXOR:
        value = a != b;
        break;
    case FI_SUM:
        value = old + operand;
        break;
    case FI_BOR:
        value = old | operand;
        break;
    case FI_BAND:
        value = old & operand;
        break;
    case FI_BXOR:
        value = old ^ operand;
        break;
    case FI_ATOMIC_WRITE:
        value = operand;
        break;
    default:
        value = old;
        break;
    }
    return (old & ~mask) | (value & mask);
}

/* The word of the peer's window that this party changes */
static uint64_t there(const fab_side_t *me)
{
    return me->theirs.base + 64;
}

static void read_word(fab_side_t *me, uint64_t *value)
{
    FAB_MUST(me, fi_read(me->ep, value, 8, NULL, me->peer, there(me),
                         me->theirs.key, NULL));
    fab_entry(me, &me->tx);
}

/* One operation of each kind and type */
static void each(fab_side_t *me, const enum fi_op *ops, size_t count,
                 void (*one)(fab_side_t *me, enum fi_op op,
                             enum fi_datatype type, uint64_t *state))
{
    uint64_t state = fab_seed() + me->index;
    size_t i, k;

    for (i = 0; i < count; ++i) {
        for (k = 0; k < ST_CUNIT_COUNT(types); ++k) {
            one(me, ops[i], types[k], &state);
        }
    }
    fab_barrier(me);
}

static void one_base(fab_side_t *me, enum fi_op op, enum fi_datatype type,
                     uint64_t *state)
{
    uint64_t old, value, operand = fab_random(state);
    size_t count;

    if (fi_atomicvalid(me->ep, type, op, &count) != 0) {
        FAB_CHECK(!fab_is_cassini());
        return;
    }

    read_word(me, &old);
    FAB_MUST(me, fi_atomic(me->ep, &operand, 1, NULL, me->peer, there(me),
                           me->theirs.key, type, op, &operand));
    FAB_CHECK(fab_entry(me, &me->tx).op_context == &operand);
    read_word(me, &value);
    FAB_EQUAL(value, model(op, type, old, operand));
}

FAB_CASE(base)
{
    each(me, base_ops, ST_CUNIT_COUNT(base_ops), one_base);
    fab_count(me, me->write, ST_CUNIT_COUNT(base_ops) * ST_CUNIT_COUNT(types));
}

static void one_fetch(fab_side_t *me, enum fi_op op, enum fi_datatype type,
                      uint64_t *state)
{
    uint64_t old, value, operand = fab_random(state);
    uint64_t result = 0;
    size_t count;

    if (fi_fetch_atomicvalid(me->ep, type, op, &count) != 0) {
        FAB_CHECK(!fab_is_cassini());
        return;
    }

    read_word(me, &old);
    FAB_MUST(me, fi_fetch_atomic(me->ep, &operand, 1, NULL, &result, NULL,
                                 me->peer, there(me), me->theirs.key, type, op,
                                 &result));
    FAB_CHECK(fab_entry(me, &me->tx).op_context == &result);
    read_word(me, &value);
    FAB_EQUAL(value, model(op, type, old, operand));
    FAB_CHECK(!memcmp(&result, &old, type_size(type)));
}

FAB_CASE_CALL(fetch, each(me, fetch_ops, ST_CUNIT_COUNT(fetch_ops), one_fetch))

/* The same for swaps: the comparison is that of fi_atomic(3), compare value on
 * the left */
static uint64_t model_swap(enum fi_op op, enum fi_datatype type, uint64_t old,
                           const uint64_t values[2])
{
    uint64_t operand = values[0], compare = values[1];
    int order        = type_cmp(type, compare, old);
    int swaps        = ((op == FI_CSWAP) && (order == 0)) ||
                       ((op == FI_CSWAP_NE) && (order != 0)) ||
                       ((op == FI_CSWAP_LE) && (order <= 0)) ||
                       ((op == FI_CSWAP_LT) && (order < 0)) ||
                       ((op == FI_CSWAP_GE) && (order >= 0)) ||
                       ((op == FI_CSWAP_GT) && (order > 0));

    if (op == FI_MSWAP) {
        operand = (operand & compare) | (old & ~compare);
        swaps   = 1;
    }
    return model(swaps ? FI_ATOMIC_WRITE : FI_ATOMIC_READ, type, old, operand);
}

static void compare_once(fab_side_t *me, enum fi_op op, enum fi_datatype type,
                         int equal, uint64_t *state)
{
    uint64_t old, value, operand = fab_random(state);
    uint64_t compare = fab_random(state);
    uint64_t result  = 0;
    size_t count;

    if (fi_compare_atomicvalid(me->ep, type, op, &count) != 0) {
        FAB_CHECK(!fab_is_cassini());
        return;
    }

    read_word(me, &old);
    compare = equal ? old : compare;
    FAB_MUST(me, fi_compare_atomic(me->ep, &operand, 1, NULL, &compare, NULL,
                                   &result, NULL, me->peer, there(me),
                                   me->theirs.key, type, op, NULL));
    fab_entry(me, &me->tx);
    read_word(me, &value);
    FAB_EQUAL(value, model_swap(op, type, old,
                                (const uint64_t[]){operand, compare}));
    FAB_CHECK(!memcmp(&result, &old, type_size(type)));
}

static void one_compare(fab_side_t *me, enum fi_op op, enum fi_datatype type,
                        uint64_t *state)
{
    compare_once(me, op, type, 0, state);
    compare_once(me, op, type, 1, state);
}

FAB_CASE_CALL(compare, each(me, compare_ops, ST_CUNIT_COUNT(compare_ops),
                            one_compare))

/* Both parties add to one word of party 0: none is lost */
FAB_CASE(contended)
{
    enum { COUNT = 500 };
    fi_addr_t where = (me->index == 0) ? me->self : me->peer;
    uint64_t addr   = (me->index == 0) ? me->mine.base : me->theirs.base;
    uint64_t key    = (me->index == 0) ? me->mine.key : me->theirs.key;
    uint64_t one    = 1, total;
    unsigned i;

    for (i = 0; i < COUNT; ++i) {
        FAB_MUST(me, fi_atomic(me->ep, &one, 1, NULL, where, addr, key,
                               FI_UINT64, FI_SUM, NULL));
    }
    fab_entries(me, &me->tx, COUNT);
    fab_barrier(me);
    if (me->index == 0) {
        fab_count(me, me->landed, 2 * COUNT);
        total = fab_load(me->window);
        FAB_EQUAL(total, 2 * COUNT);
    }
    fab_barrier(me);
}

/* Fetched values of a counter in memory are all different */
FAB_CASE(tickets)
{
    enum { COUNT = 200 };
    uint64_t one = 1, mine[COUNT], theirs[COUNT];
    fi_addr_t where = (me->index == 0) ? me->self : me->peer;
    uint64_t addr   = (me->index == 0) ? me->mine.base : me->theirs.base;
    uint64_t key    = (me->index == 0) ? me->mine.key : me->theirs.key;
    char seen[2 * COUNT] = {0};
    unsigned i;

    for (i = 0; i < COUNT; ++i) {
        FAB_MUST(me, fi_fetch_atomic(me->ep, &one, 1, NULL, &mine[i], NULL,
                                     where, addr, key, FI_UINT64, FI_SUM,
                                     NULL));
    }
    fab_entries(me, &me->tx, COUNT);
    fab_swap(me, mine, theirs, sizeof(mine));
    for (i = 0; i < COUNT; ++i) {
        FAB_REQUIRE((mine[i] < 2 * COUNT) && (theirs[i] < 2 * COUNT));
        ++seen[mine[i]];
        ++seen[theirs[i]];
    }
    for (i = 0; i < 2 * COUNT; ++i) {
        FAB_EQUAL(seen[i], 1);
    }
}

FAB_CASE(inject)
{
    enum { COUNT = 100 };
    uint64_t value, sum = 0;
    unsigned i;

    for (i = 0; i < COUNT; ++i) {
        value = i * 3;
        sum  += value;
        FAB_MUST(me, fi_inject_atomic(me->ep, &value, 1, me->peer,
                                      me->theirs.base, me->theirs.key,
                                      FI_UINT64, FI_SUM));
    }
    fab_count(me, me->landed, COUNT);
    value = fab_load(me->window);
    FAB_EQUAL(value, sum);
    FAB_CHECK(fab_is_empty(me, &me->tx));
    fab_barrier(me);
}

FAB_CASE(msg_calls)
{
    uint64_t operand = 9, compare = 9, result = 1;
    struct fi_ioc ioc        = {.addr = &operand, .count = 1};
    struct fi_ioc cioc       = {.addr = &compare, .count = 1};
    struct fi_ioc rioc       = {.addr = &result, .count = 1};
    struct fi_rma_ioc rma    = {
        .addr  = there(me),
        .count = 1,
        .key   = me->theirs.key
    };
    struct fi_msg_atomic msg = {
        .msg_iov       = &ioc,
        .iov_count     = 1,
        .addr          = me->peer,
        .rma_iov       = &rma,
        .rma_iov_count = 1,
        .datatype      = FI_UINT64,
        .op            = FI_SUM
    };

    FAB_MUST(me, fi_atomicmsg(me->ep, &msg,
                              FI_COMPLETION | FI_DELIVERY_COMPLETE));
    fab_entry(me, &me->tx);
    FAB_MUST(me, fi_fetch_atomicmsg(me->ep, &msg, &rioc, NULL, 1,
                                    FI_COMPLETION));
    fab_entry(me, &me->tx);
    FAB_EQUAL(result, 9);
    msg.op  = FI_CSWAP;
    operand = 1000;
    compare = 18;
    FAB_MUST(me, fi_compare_atomicmsg(me->ep, &msg, &cioc, NULL, 1, &rioc,
                                      NULL, 1, FI_COMPLETION));
    fab_entry(me, &me->tx);
    FAB_EQUAL(result, 18);
    fab_barrier(me);
    result = fab_load(me->window + 64);
    FAB_EQUAL(result, 1000);
    fab_barrier(me);
}

FAB_CASE(errors)
{
    uint64_t operand = 1, result = 5;

    FAB_MUST(me, fi_atomic(me->ep, &operand, 1, NULL, me->peer,
                           me->theirs.base, 999, FI_UINT64, FI_SUM, NULL));
    fab_error(me, &me->tx);
    fab_count_errors(me, me->write, 1);
    FAB_MUST(me, fi_fetch_atomic(me->ep, &operand, 1, NULL, &result, NULL,
                                 me->peer, me->theirs.base + me->length - 4,
                                 me->theirs.key, FI_UINT64, FI_SUM, NULL));
    fab_error(me, &me->tx);
    FAB_EQUAL(result, 5);
    fab_barrier(me);
}

/* What is left out says so at once */
FAB_CASE(refused)
{
    uint64_t operand = 1;
    size_t count;

    if (!fab_is_cassini()) {
        return;
    }
    FAB_CHECK(fi_atomic(me->ep, &operand, 1, NULL, me->peer, me->theirs.base,
                        me->theirs.key, FI_LONG_DOUBLE, FI_SUM, NULL) < 0);
    FAB_CHECK(fi_atomicvalid(me->ep, FI_LONG_DOUBLE, FI_SUM, &count) != 0);
    FAB_CHECK(fi_atomic(me->ep, &operand, 1, NULL, me->peer, me->theirs.base,
                        me->theirs.key, FI_UINT64, FI_PROD, NULL) < 0);
    FAB_CHECK(fi_atomic(me->ep, &operand, 1, NULL, me->peer, me->theirs.base,
                        me->theirs.key, FI_UINT64, FI_CSWAP, NULL) < 0);
    FAB_CHECK(fi_atomic(me->ep, &operand, 2, NULL, me->peer, me->theirs.base,
                        me->theirs.key, FI_UINT64, FI_SUM, NULL) < 0);
    FAB_CHECK(fab_is_empty(me, &me->tx));
}

FAB_SUITE("fab_atomic")
