/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cassini_atomic.c - the emulated Cassini: atomics of all operations and
 * types, in the three forms of their command, with and without a result. */
#include "cassini_user.h"

#include <complex.h>
#include <stdio.h>
#include <string.h>

#define BITS 0x77


/** How the command comes. */
typedef enum {
    FORM_SMALL, /* IDC, 32 bytes */
    FORM_IDC,   /* IDC, 64 bytes */
    FORM_DMA,   /* Operand in memory */
    FORM_LAST
} form_t;

/** What is done, and to what. */
typedef struct atomic {
    form_t   form;
    unsigned op;
    unsigned type;
    unsigned cswap;
    int      fetches;
    uint8_t  operand[16];
    uint8_t  compare[16];
    uint8_t  before[16];
    uint8_t  after[16];
} atomic_t;

static const unsigned sizes[] = {
    1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 16
};

static uint8_t *word(const cassini_user_t *user)
{
    return user->memory;
}

static uint8_t *fetched(const cassini_user_t *user)
{
    return user->memory + 64;
}

static uint8_t *operand(const cassini_user_t *user)
{
    return user->memory + 128;
}

static uint64_t iova(const cassini_user_t *user, const void *address)
{
    return (uintptr_t)address - user->md->va + user->md->iova;
}

static void open_word(cassini_user_t *user)
{
    cassini_command_t entry;

    cassini_user_open(user, CASSINI_PID_ANY);
    entry                = cassini_entry(user, CASSINI_PRIORITY, word(user),
                                         64, BITS);
    entry.tgt.ignore_bits = UINT64_MAX; /* IDC commands have none */
    cassini_append(user, &entry);
}

static void close_word(cassini_user_t *user)
{
    cassini_unlink(user, CASSINI_PRIORITY, 77);
    cassini_user_close(user);
}

static void emit_state(cassini_user_t *user)
{
    cassini_command_t state = cassini_cstate(user, 5);

    state.cstate.no_send = 1;
    cassini_emit(user->tx, &state, sizeof(state.cstate));
}

static void emit_small(cassini_user_t *user, const atomic_t *atomic)
{
    cassini_command_t cmd = cassini_command(CASSINI_IDC, CASSINI_OP_ATOMIC);

    cmd.small_amo.length   = sizeof(cmd.small_amo);
    cmd.small_amo.ep       = cassini_ep(user->domain->pid, CASSINI_USER_INDEX);
    cmd.small_amo.nid      = user->dev->info.nid;
    cmd.small_amo.amo_op   = atomic->op;
    cmd.small_amo.amo_type = atomic->type;
    memcpy(&cmd.small_amo.operand, atomic->operand, 8);
    emit_state(user);
    cassini_emit(user->tx, &cmd, sizeof(cmd.small_amo));
}

static void emit_idc(cassini_user_t *user, const atomic_t *atomic)
{
    cassini_command_t cmd = cassini_command(CASSINI_IDC, atomic->fetches ?
                                            CASSINI_OP_FETCH_ATOMIC :
                                            CASSINI_OP_ATOMIC);

    cmd.amo.length   = sizeof(cmd.amo);
    cmd.amo.ep       = cassini_ep(user->domain->pid, CASSINI_USER_INDEX);
    cmd.amo.nid      = user->dev->info.nid;
    cmd.amo.local    = iova(user, fetched(user));
    cmd.amo.amo_op   = atomic->op;
    cmd.amo.amo_type = atomic->type;
    cmd.amo.cswap    = atomic->cswap;
    memcpy(cmd.amo.operand, atomic->operand, 16);
    memcpy(cmd.amo.compare, atomic->compare, 16);
    emit_state(user);
    cassini_emit(user->tx, &cmd, sizeof(cmd.amo));
}

static void emit_dma(cassini_user_t *user, const atomic_t *atomic)
{
    cassini_command_t cmd = cassini_dma(user, atomic->fetches ?
                                        CASSINI_OP_FETCH_ATOMIC :
                                        CASSINI_OP_ATOMIC, user->domain->pid,
                                        operand(user), sizes[atomic->type]);

    cmd.dma.no_send       = 1;
    cmd.dma.match_bits    = BITS;
    cmd.dma.user          = 5;
    cmd.dma_amo.fetch     = iova(user, fetched(user));
    cmd.dma_amo.amo_op    = atomic->op;
    cmd.dma_amo.amo_type  = atomic->type;
    cmd.dma_amo.cswap     = atomic->cswap;
    cmd.dma_amo.write_lac = user->md->lac;
    memcpy(operand(user), atomic->operand, 16);
    memcpy(cmd.dma_amo.compare, atomic->compare, 16);
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma_amo));
}

static int is_same(const void *a, const void *b, unsigned length,
                   const atomic_t *atomic, const char *what)
{
    if (memcmp(a, b, length) == 0) {
        return 1;
    }
    printf("form %d, operation %u, type %u, comparison %u: another %s\n",
           (int)atomic->form, atomic->op, atomic->type, atomic->cswap, what);
    return 0;
}

static void run(cassini_user_t *user, const atomic_t *atomic)
{
    unsigned size = sizes[atomic->type];
    uint8_t guard[48];

    memset(word(user), 0xee, 64);
    memset(fetched(user), 0xee, 64);
    memset(guard, 0xee, sizeof(guard));
    memcpy(word(user), atomic->before, size);
    switch (atomic->form) {
    case FORM_SMALL:
        emit_small(user, atomic);
        break;
    case FORM_IDC:
        emit_idc(user, atomic);
        break;
    default:
        emit_dma(user, atomic);
    }
    cassini_event_rc(user, atomic->fetches ? CASSINI_EV_FETCH_ATOMIC :
                     CASSINI_EV_ATOMIC, CASSINI_RC_OK);
    CU_ASSERT(user->event.tgt.length == size);
    CU_ASSERT(user->event.tgt.amo_op == atomic->op);
    CU_ASSERT(user->event.tgt.amo_type == atomic->type);
    cassini_event_rc(user, atomic->fetches ? CASSINI_EV_REPLY : CASSINI_EV_ACK,
                     CASSINI_RC_OK);
    CU_ASSERT(user->event.init.user == 5);
    CU_ASSERT(is_same(word(user), atomic->after, size, atomic, "result"));
    CU_ASSERT(is_same(word(user) + size, guard, 32, atomic, "neighbour"));
    if (atomic->fetches) {
        CU_ASSERT(is_same(fetched(user), atomic->before, size, atomic,
                          "value fetched"));
        CU_ASSERT(is_same(fetched(user) + size, guard, 32, atomic,
                          "neighbour of the value"));
    }
}

/* In all forms that the operation may have: the small one has one operand of 8
 * bytes and no result */
static void run_forms(cassini_user_t *user, atomic_t *atomic)
{
    for (atomic->form = FORM_SMALL; atomic->form < FORM_LAST; ++atomic->form) {
        for (atomic->fetches = 0; atomic->fetches < 2; ++atomic->fetches) {
            if ((atomic->form == FORM_SMALL) &&
                (atomic->fetches || (atomic->op >= CASSINI_AMO_CSWAP) ||
                 (sizes[atomic->type] > 8))) {
                continue;
            }
            run(user, atomic);
        }
    }
}

/* What each operation makes of a and b. Numbers */
#define ATOMIC_NUMBERS(_op, _a, _b) \
    ((_op) == CASSINI_AMO_MIN ? ((_a) < (_b) ? (_a) : (_b)) : \
     (_op) == CASSINI_AMO_MAX ? ((_a) > (_b) ? (_a) : (_b)) : \
     (_op) == CASSINI_AMO_SUM ? ((_a) + (_b)) : \
     (_op) == CASSINI_AMO_LOR ? ((_a) || (_b)) : \
     (_op) == CASSINI_AMO_LAND ? ((_a) && (_b)) : \
     (_op) == CASSINI_AMO_LXOR ? (!(_a) != !(_b)) : (_b))

/* Integers, too */
#define ATOMIC_BITS(_op, _a, _b) \
    ((_op) == CASSINI_AMO_BOR ? ((_a) | (_b)) : \
     (_op) == CASSINI_AMO_BAND ? ((_a) & (_b)) : ((_a) ^ (_b)))

static int is_bits(unsigned op)
{
    return (op == CASSINI_AMO_BOR) || (op == CASSINI_AMO_BAND) ||
           (op == CASSINI_AMO_BXOR);
}

#define ATOMIC_SET(_field, _type, _value) \
    ({ \
        _type _v = (_type)(_value); \
        memcpy(_field, &_v, sizeof(_v)); \
    })

/* All operations but comparisons on pairs of values of a type */
#define ATOMIC_PAIRS(_name, _type, _code, _bits, ...) \
    static void pairs_##_name(cassini_user_t *user) \
    { \
        static const _type values[] = {__VA_ARGS__}; \
        atomic_t atomic             = {.type = (_code)}; \
        unsigned op, i; \
        _type a, b; \
        for (op = CASSINI_AMO_MIN; op <= CASSINI_AMO_SWAP; ++op) { \
            if ((op == 3) || (is_bits(op) && !(_bits))) { \
                continue; \
            } \
            for (i = 0; i + 1 < ST_CUNIT_COUNT(values); ++i) { \
                a         = values[i]; \
                b         = values[i + 1]; \
                atomic.op = op; \
                ATOMIC_SET(atomic.before, _type, a); \
                ATOMIC_SET(atomic.operand, _type, b); \
                ATOMIC_RESULT_##_bits(_type) \
                run_forms(user, &atomic); \
            } \
        } \
    } \
    ST_CASE_WITH(_name, cassini_user_t, user, open_word(user), \
                 close_word(user)) \
    { \
        pairs_##_name(user); \
    }

#define ATOMIC_RESULT_0(_type) \
    ATOMIC_SET(atomic.after, _type, ATOMIC_NUMBERS(op, a, b));
#define ATOMIC_RESULT_1(_type) \
    ATOMIC_SET(atomic.after, _type, is_bits(op) ? \
               ATOMIC_BITS(op, a, b) : ATOMIC_NUMBERS(op, a, b));

ATOMIC_PAIRS(int8, int8_t, CASSINI_INT8, 1, 5, -7, 0, 127, 1, -128, -128)
ATOMIC_PAIRS(uint8, uint8_t, CASSINI_UINT8, 1, 5, 249, 0, 255, 1, 128, 128)
ATOMIC_PAIRS(int16, int16_t, CASSINI_INT16, 1, 5, -7, 0, 32767, 1, -32768, 3)
ATOMIC_PAIRS(uint16, uint16_t, CASSINI_UINT16, 1, 5, 65000, 0, 65535, 1, 3)
ATOMIC_PAIRS(int32, int32_t, CASSINI_INT32, 1, 5, -7, 0, INT32_MAX - 5, -1, 5)
ATOMIC_PAIRS(uint32, uint32_t, CASSINI_UINT32, 1, 5, 0xf0f0f0f0u, 0,
             UINT32_MAX, 1)
ATOMIC_PAIRS(int64, int64_t, CASSINI_INT64, 1, 5, -7, 0, INT64_MAX - 5, -1, 5)
ATOMIC_PAIRS(uint64, uint64_t, CASSINI_UINT64, 1, 5, 0xf0f0f0f0f0f0f0f0ull, 0,
             UINT64_MAX, 1)
ATOMIC_PAIRS(float32, float, CASSINI_FLOAT, 0, 1.5f, -2.25f, 0, 1e10f, 3)
ATOMIC_PAIRS(float64, double, CASSINI_DOUBLE, 0, 1.5, -2.25, 0, 1e200, 3)

/* Complex numbers have a sum and a swap */
#define ATOMIC_COMPLEX(_name, _type, _code) \
    ST_CASE_WITH(_name, cassini_user_t, user, open_word(user), \
                 close_word(user)) \
    { \
        atomic_t atomic = {.type = (_code), .op = CASSINI_AMO_SUM}; \
        _type a         = 1.5f + 2 * I; \
        _type b         = -0.5f + 4 * I; \
        ATOMIC_SET(atomic.before, _type, a); \
        ATOMIC_SET(atomic.operand, _type, b); \
        ATOMIC_SET(atomic.after, _type, a + b); \
        run_forms(user, &atomic); \
        atomic.op = CASSINI_AMO_SWAP; \
        ATOMIC_SET(atomic.after, _type, b); \
        run_forms(user, &atomic); \
    }

ATOMIC_COMPLEX(complex64, float complex, CASSINI_FLOAT_COMPLEX)
ATOMIC_COMPLEX(complex128, double complex, CASSINI_DOUBLE_COMPLEX)

static int holds(unsigned cswap, uint64_t compare, uint64_t value)
{
    switch (cswap) {
    case CASSINI_CSWAP_EQ:
        return compare == value;
    case CASSINI_CSWAP_NE:
        return compare != value;
    case CASSINI_CSWAP_LE:
        return compare <= value;
    case CASSINI_CSWAP_LT:
        return compare < value;
    case CASSINI_CSWAP_GE:
        return compare >= value;
    default:
        return compare > value;
    }
}

/* The value is swapped if the comparison of the operand with it holds */
ST_CASE_WITH(compare_swap, cassini_user_t, user, open_word(user),
             close_word(user))
{
    static const unsigned types[]   = {CASSINI_UINT8, CASSINI_UINT16,
                                       CASSINI_UINT32, CASSINI_UINT64};
    static const uint64_t compare[] = {9, 10, 11};
    atomic_t atomic                 = {.op = CASSINI_AMO_CSWAP};
    unsigned i, k;

    ATOMIC_SET(atomic.before, uint64_t, 10);
    ATOMIC_SET(atomic.operand, uint64_t, 77);
    for (i = 0; i < ST_CUNIT_COUNT(types); ++i) {
        atomic.type = types[i];
        for (k = 0; k < ST_CUNIT_COUNT(compare); ++k) {
            ATOMIC_SET(atomic.compare, uint64_t, compare[k]);
            for (atomic.cswap = 0; atomic.cswap <= CASSINI_CSWAP_GT;
                 ++atomic.cswap) {
                ATOMIC_SET(atomic.after, uint64_t,
                           holds(atomic.cswap, compare[k], 10) ? 77 : 10);
                run_forms(user, &atomic);
            }
        }
    }
}

/* 16 bytes as one */
ST_CASE_WITH(compare_swap_128, cassini_user_t, user, open_word(user),
             close_word(user))
{
    atomic_t atomic = {.op = CASSINI_AMO_CSWAP, .type = CASSINI_UINT128};

    memset(atomic.before, 1, 16);
    memset(atomic.operand, 2, 16);
    memset(atomic.compare, 1, 16);
    memset(atomic.after, 2, 16);
    run_forms(user, &atomic);
    atomic.compare[15] = 9;
    memset(atomic.after, 1, 16);
    run_forms(user, &atomic);
}

/* The bits of the mask are replaced by the operand's */
ST_CASE_WITH(masked_swap, cassini_user_t, user, open_word(user),
             close_word(user))
{
    atomic_t atomic = {.op = CASSINI_AMO_AXOR, .type = CASSINI_UINT32};

    ATOMIC_SET(atomic.before, uint32_t, 0x12345678);
    ATOMIC_SET(atomic.operand, uint32_t, 0x00cc0000);
    ATOMIC_SET(atomic.compare, uint32_t, 0x00ff0000);
    ATOMIC_SET(atomic.after, uint32_t, 0x12cc5678);
    run_forms(user, &atomic);
}

static void run_refused(cassini_user_t *user, const atomic_t *atomic,
                        uint64_t offset, unsigned rc)
{
    cassini_command_t cmd = cassini_dma(user, CASSINI_OP_ATOMIC,
                                        user->domain->pid, operand(user),
                                        sizes[atomic->type]);

    cmd.dma.no_send       = 1;
    cmd.dma.match_bits    = BITS;
    cmd.dma.offset        = offset;
    cmd.dma_amo.amo_op    = atomic->op;
    cmd.dma_amo.amo_type  = atomic->type;
    cassini_emit(user->tx, &cmd, sizeof(cmd.dma_amo));
    cassini_refused(user, CASSINI_EV_ATOMIC, CASSINI_EV_ACK, rc);
    CU_ASSERT(word(user)[0] == 0);
}

ST_CASE_WITH(misaligned, cassini_user_t, user, open_word(user),
             close_word(user))
{
    atomic_t atomic = {.op = CASSINI_AMO_SUM, .type = CASSINI_UINT32};

    run_refused(user, &atomic, 2, CASSINI_RC_AMO_ALIGN);
    atomic.type = CASSINI_UINT64;
    run_refused(user, &atomic, 4, CASSINI_RC_AMO_ALIGN);
}

/* No bits of numbers with a point */
ST_CASE_WITH(no_such_operation, cassini_user_t, user, open_word(user),
             close_word(user))
{
    atomic_t atomic = {.op = CASSINI_AMO_BAND, .type = CASSINI_FLOAT};

    run_refused(user, &atomic, 0, CASSINI_RC_AMO_INVALID_OP);
    atomic.type = CASSINI_DOUBLE;
    atomic.op   = CASSINI_AMO_BXOR;
    run_refused(user, &atomic, 0, CASSINI_RC_AMO_INVALID_OP);
}

static const cassini_part_t parts[] = {{NULL, NULL}};

CASSINI_SUITE("cassini_atomic", parts)
