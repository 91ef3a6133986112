/* SPDX-License-Identifier: BSD-3-Clause */
/* test_uct_amo.c - atomics of both widths. */
#include "st_cunit.h"
#include "uct_region.h"

#include <ucs/sys/math.h>

#include <string.h>

#define REGION_LENGTH 4096
#define TARGET        64 /* Where in the region they work */
#define START         0xf0f0a5a512345678ull
#define OPERAND       0x0ff0ffff9abcdef1ull

static uct_region_t region;


static uint64_t mask(unsigned width)
{
    return (width == 8) ? UINT64_MAX : UINT32_MAX;
}

static uint64_t read_target(unsigned width)
{
    uint64_t value = 0;

    memcpy(&value, region.data + TARGET, width);
    return value;
}

static void write_target(uint64_t value, unsigned width)
{
    memset(region.data, 0xee, region.length);
    memcpy(region.data + TARGET, &value, width);
}

/* The bytes before and behind the target are as write_target() left them. */
static int is_alone(unsigned width)
{
    const uint8_t *target = region.data + TARGET;

    return (target[-1] == 0xee) && (target[width] == 0xee);
}

static uint64_t expected(unsigned opcode, uint64_t value, uint64_t operand)
{
    switch (opcode) {
    case UCT_ATOMIC_OP_ADD:
        return value + operand;
    case UCT_ATOMIC_OP_AND:
        return value & operand;
    case UCT_ATOMIC_OP_OR:
        return value | operand;
    case UCT_ATOMIC_OP_XOR:
        return value ^ operand;
    default:
        return operand; /* Swap */
    }
}

static ucs_status_t post(uct_ep_h ep, unsigned opcode, unsigned width,
                         uint64_t operand)
{
    uint64_t target = uct_region_at(&region, TARGET);

    return (width == 8) ? uct_ep_atomic64_post(ep, opcode, operand, target,
                                               region.rkey.rkey) :
                          uct_ep_atomic32_post(ep, opcode, operand, target,
                                               region.rkey.rkey);
}

/* What a fetching operation brings; both widths */
typedef struct {
    uct_done_t done;
    uint32_t   result32;
    uint64_t   result64;
} fetch_t;

static ucs_status_t fetch(fetch_t *fetch, uct_ep_h ep, unsigned opcode,
                          unsigned width, uint64_t operand)
{
    uint64_t target = uct_region_at(&region, TARGET);

    fetch->result32 = 0;
    fetch->result64 = 0;
    uct_done_init(&fetch->done, 1);
    return (width == 8) ?
           uct_ep_atomic64_fetch(ep, opcode, operand, &fetch->result64, target,
                                 region.rkey.rkey, &fetch->done.comp) :
           uct_ep_atomic32_fetch(ep, opcode, operand, &fetch->result32, target,
                                 region.rkey.rkey, &fetch->done.comp);
}

static ucs_status_t cswap(fetch_t *fetch, uct_ep_h ep, unsigned width,
                          uint64_t compare, uint64_t swap)
{
    uint64_t target = uct_region_at(&region, TARGET);

    fetch->result32 = 0;
    fetch->result64 = 0;
    uct_done_init(&fetch->done, 1);
    return (width == 8) ?
           uct_ep_atomic_cswap64(ep, compare, swap, target, region.rkey.rkey,
                                 &fetch->result64, &fetch->done.comp) :
           uct_ep_atomic_cswap32(ep, compare, swap, target, region.rkey.rkey,
                                 &fetch->result32, &fetch->done.comp);
}

/* The operation has come through: its result, which is of that width alone */
static uint64_t fetched(fetch_t *fetch, uct_pair_t *pair, unsigned width)
{
    CU_ASSERT(uct_done_wait(&fetch->done, pair) == UCS_OK);
    CU_ASSERT(fetch->done.calls == 1);
    CU_ASSERT((width == 8) ? (fetch->result32 == 0) : (fetch->result64 == 0));
    return (width == 8) ? fetch->result64 : fetch->result32;
}

/* All that UCP asks for, or it would send messages instead */
UCT_REGION_CASE(capabilities, REGION_LENGTH)
{
    uint64_t posts   = UCS_BIT(UCT_ATOMIC_OP_ADD) | UCS_BIT(UCT_ATOMIC_OP_AND) |
                       UCS_BIT(UCT_ATOMIC_OP_OR) | UCS_BIT(UCT_ATOMIC_OP_XOR);
    uint64_t fetches = posts | UCS_BIT(UCT_ATOMIC_OP_SWAP) |
                       UCS_BIT(UCT_ATOMIC_OP_CSWAP);

    CU_ASSERT(pair->a.attr.cap.flags & UCT_IFACE_FLAG_ATOMIC_DEVICE);
    CU_ASSERT(pair->a.attr.cap.atomic32.op_flags == posts);
    CU_ASSERT(pair->a.attr.cap.atomic64.op_flags == posts);
    CU_ASSERT(pair->a.attr.cap.atomic32.fop_flags == fetches);
    CU_ASSERT(pair->a.attr.cap.atomic64.fop_flags == fetches);
}

static void check_posts(uct_pair_t *pair, unsigned width)
{
    unsigned opcode;

    for (opcode = UCT_ATOMIC_OP_ADD; opcode <= UCT_ATOMIC_OP_XOR; ++opcode) {
        write_target(START, width);
        CU_ASSERT(post(pair->a.peer, opcode, width, OPERAND) == UCS_OK);
        CU_ASSERT(uct_pair_flush(pair, pair->a.peer) == UCS_OK);
        CU_ASSERT(read_target(width) ==
                  (expected(opcode, START, OPERAND) & mask(width)));
        CU_ASSERT(is_alone(width));
    }
}

static void check_fetches(uct_pair_t *pair, unsigned width)
{
    unsigned opcode;
    fetch_t old;

    for (opcode = UCT_ATOMIC_OP_ADD; opcode <= UCT_ATOMIC_OP_SWAP; ++opcode) {
        write_target(START, width);
        CU_ASSERT(fetch(&old, pair->a.peer, opcode, width, OPERAND) ==
                  UCS_INPROGRESS);
        CU_ASSERT(fetched(&old, pair, width) == (START & mask(width)));
        CU_ASSERT(read_target(width) ==
                  (expected(opcode, START, OPERAND) & mask(width)));
        CU_ASSERT(is_alone(width));
    }
}

static void check_cswap(uct_pair_t *pair, unsigned width)
{
    fetch_t old;

    write_target(START, width);
    CU_ASSERT(cswap(&old, pair->a.peer, width, START + 1, OPERAND) ==
              UCS_INPROGRESS);
    CU_ASSERT(fetched(&old, pair, width) == (START & mask(width)));
    CU_ASSERT(read_target(width) == (START & mask(width)));

    CU_ASSERT(cswap(&old, pair->a.peer, width, START, OPERAND) ==
              UCS_INPROGRESS);
    CU_ASSERT(fetched(&old, pair, width) == (START & mask(width)));
    CU_ASSERT(read_target(width) == (OPERAND & mask(width)));
    CU_ASSERT(is_alone(width));
}

static void check_width(unsigned width)
{
    uct_pair_t pair;

    uct_region_open_pair(&region, &pair, NULL, REGION_LENGTH);
    check_posts(&pair, width);
    check_fetches(&pair, width);
    check_cswap(&pair, width);
    uct_region_close_pair(&region, &pair);
}

ST_CASE_CALL(32, check_width(4))
ST_CASE_CALL(64, check_width(8))

/* No such operation, in that form: refused, with nothing changed */
UCT_REGION_CASE(refused, REGION_LENGTH)
{
    fetch_t old;

    write_target(START, 8);
    CU_ASSERT(post(pair->a.peer, UCT_ATOMIC_OP_SWAP, 8, OPERAND) ==
              UCS_ERR_UNSUPPORTED);
    CU_ASSERT(post(pair->a.peer, UCT_ATOMIC_OP_LAST, 4, OPERAND) ==
              UCS_ERR_UNSUPPORTED);
    CU_ASSERT(fetch(&old, pair->a.peer, UCT_ATOMIC_OP_CSWAP, 8, OPERAND) ==
              UCS_ERR_UNSUPPORTED);
    CU_ASSERT(fetch(&old, pair->a.peer, UCT_ATOMIC_OP_LAST, 4, OPERAND) ==
              UCS_ERR_UNSUPPORTED);
    CU_ASSERT(uct_pair_flush(pair, pair->a.peer) == UCS_OK);
    CU_ASSERT((read_target(8) == START) && (old.done.calls == 0));
}

/* Both sides add to one word, both ways; every sum is seen once */
UCT_REGION_CASE(many, REGION_LENGTH)
{
    enum {
        COUNT = 500
    };
    static fetch_t sums[2 * COUNT];
    static uint8_t seen[4 * COUNT];
    ucs_status_t status;
    uct_ep_h ep;
    unsigned i;

    write_target(0, 8);
    memset(seen, 0, sizeof(seen));
    for (i = 0; i < 2 * COUNT; ++i) {
        ep = (i % 2) ? pair->a.peer : pair->b.self;
        while ((status = fetch(&sums[i], ep, UCT_ATOMIC_OP_ADD, 8, 1)) ==
               UCS_ERR_NO_RESOURCE) {
            uct_pair_progress(pair);
        }
        CU_ASSERT_FATAL(status == UCS_INPROGRESS);
        while ((status = post(ep, UCT_ATOMIC_OP_ADD, 8, 1)) ==
               UCS_ERR_NO_RESOURCE) {
            uct_pair_progress(pair);
        }
        CU_ASSERT_FATAL(status == UCS_OK);
    }
    CU_ASSERT(uct_pair_flush(pair, pair->a.peer) == UCS_OK);
    CU_ASSERT(uct_pair_flush(pair, pair->b.self) == UCS_OK);
    CU_ASSERT(read_target(8) == 4 * COUNT);
    for (i = 0; i < 2 * COUNT; ++i) {
        CU_ASSERT_FATAL(fetched(&sums[i], pair, 8) < sizeof(seen));
        CU_ASSERT(seen[sums[i].result64]++ == 0);
    }
}

/* Nothing is lost when no descriptor is left */
ST_CASE(exhausted)
{
    static const char *const settings[] = {"TX_QUEUE_LEN", "3", NULL};
    uct_pair_t pair;
    fetch_t old;
    unsigned i;

    uct_region_open_pair(&region, &pair, settings, REGION_LENGTH);
    write_target(0, 4);
    for (i = 0; i < 3; ++i) {
        CU_ASSERT(post(pair.a.peer, UCT_ATOMIC_OP_ADD, 4, 1) == UCS_OK);
    }
    CU_ASSERT(post(pair.a.peer, UCT_ATOMIC_OP_ADD, 4, 1) ==
              UCS_ERR_NO_RESOURCE);
    CU_ASSERT(fetch(&old, pair.a.peer, UCT_ATOMIC_OP_ADD, 4, 1) ==
              UCS_ERR_NO_RESOURCE);
    CU_ASSERT(uct_pair_flush(&pair, pair.a.peer) == UCS_OK);
    CU_ASSERT(old.done.calls == 0);
    CU_ASSERT(read_target(4) == 3);
    uct_region_close_pair(&region, &pair);
}

/* A provider may refuse a target that is not aligned, or serve it well; the
 * bytes around it stay in any case */
UCT_REGION_CASE(unaligned, REGION_LENGTH)
{
    uint64_t value = START, result = 0;
    uct_done_t done;

    memset(region.data, 0xee, region.length);
    memcpy(region.data + 65, &value, sizeof(value));
    uct_done_init(&done, 1);
    CU_ASSERT(uct_ep_atomic64_fetch(pair->a.peer, UCT_ATOMIC_OP_ADD, 1, &result,
                                    uct_region_at(&region, 65),
                                    region.rkey.rkey,
                                    &done.comp) == UCS_INPROGRESS);
    if (uct_done_wait(&done, pair) == UCS_OK) {
        CU_ASSERT(result == START);
        ++value;
    } else {
        CU_ASSERT(result == 0);
    }
    CU_ASSERT(memcmp(region.data + 65, &value, sizeof(value)) == 0);
    CU_ASSERT((region.data[64] == 0xee) && (region.data[73] == 0xee));
}

ST_SUITE("uct_amo")
