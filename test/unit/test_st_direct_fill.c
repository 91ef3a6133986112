/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_direct_fill.c - the direct lane's ways to store to slots: ordinary
 * stores, and those past the processor's caches. Who takes a message out cannot
 * tell which it was.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_cunit.h"
#include "st_near.h"

#include "st_direct.h"
#include "st_peer.h"

#include <string.h>

/* Of each kind, as long as it takes until both ways were timed often */
#define USES 100

/** A message of each kind: one piece, several, and long ones; short and long
 *  ones without slots. */
static const struct {
    size_t     length;
    const char *map_min;
} kinds[] = {
    {8ul << 10, "inf"}, {100ul << 10, "inf"}, {600ul << 10, "inf"},
    {64ul << 10, "64k"}, {256ul << 10, "64k"}
};

/* Around the shortest piece that is stored in another way, and lengths, so also
 * ends of the last piece, that are multiples of nothing */
static const size_t lengths[] = {
    UCP_ST_DIRECT_FILL_MIN - 1, UCP_ST_DIRECT_FILL_MIN,
    UCP_ST_DIRECT_FILL_MIN + 1, 5000, NEAR_PIECE - 1, NEAR_PIECE,
    NEAR_PIECE + 4096 + 15, (5 * NEAR_PIECE) - 17, 100ul << 10, 256ul << 10,
    (256ul << 10) + 1, (512ul << 10) + 1, (1ul << 20) + 4099, 3ul << 20
};

static int pair_init(near_t *near, const char *mode, const char *piece,
                     const char *map_min)
{
    const char *const env[] = {"UCX_ST_DIRECT_BYPASS", mode,
                               "UCX_ST_DIRECT_PIECE", piece,
                               "UCX_ST_DIRECT_MAP_MIN", map_min,
                               "UCX_ST_DIRECT_ATTACH_MIN", "inf", NULL};

    return near_pair_init(&near->pair, env, env);
}

static void run_lengths(const char *mode, const char *piece,
                        const char *map_min)
{
    near_t near;
    size_t i;
    int k;

    if (!pair_init(&near, mode, piece, map_min)) {
        return;
    }
    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        near_match(&near, lengths[i], 0);
        for (k = 0; k < 20; ++k) {
            near_use(&near, lengths[i] + k);
        }
        near_unmatch(&near);
    }
    st_pair_cleanup(&near.pair);
}

static void test_lengths(void)
{
    run_lengths("y", "16k", "inf");
    run_lengths("n", "16k", "inf");
    run_lengths("try", "16k", "inf");
}

/* Straight to their place, by the send's side alone if it says so */
static void test_mapped(void)
{
    run_lengths("y", "16k", "0");
    run_lengths("n", "16k", "0");
    run_lengths("try", "16k", "0");
}

/* A piece that is a multiple of nothing, so that slots would not be aligned if
 * they followed each other without a gap */
static void test_odd_piece(void)
{
    run_lengths("y", "5003", "inf");
    run_lengths("try", "5003", "inf");
}

/* A side that is to find out has timed both ways, for each kind of message by
 * itself; a side that was told has not */
static void run_timed(const char *mode, int is_timed)
{
    const ucp_st_direct_fill_t *fill;
    near_t near;
    int i, k, is_used;

    CU_ASSERT_EQUAL(ST_CUNIT_COUNT(kinds), UCP_ST_DIRECT_FILL_KINDS);
    for (i = 0; i < UCP_ST_DIRECT_FILL_KINDS; ++i) {
        if (!pair_init(&near, mode, "16k", kinds[i].map_min)) {
            return;
        }
        fill = near.pair.side[ST_A].peer->direct.fill;
        near_match(&near, kinds[i].length, 0);
        for (k = 0; k < USES; ++k) {
            near_use(&near, k);
        }
        near_unmatch(&near);
        for (k = 0; k < UCP_ST_DIRECT_FILL_KINDS; ++k) {
            is_used = is_timed && (k == i);
            CU_ASSERT_EQUAL(fill[k].turn > 0, is_used);
            CU_ASSERT_EQUAL(fill[k].time[0] > 0, is_used);
            CU_ASSERT_EQUAL(fill[k].time[1] > 0, is_used);
        }
        st_pair_cleanup(&near.pair);
    }
}

static void test_timed(void)
{
    run_timed("try", 1);
    run_timed("y", 0);
    run_timed("n", 0);
}

/* What is known says how the next pieces are stored */
static void test_choice(void)
{
    ucp_st_direct_fill_t *fill;
    near_t near;
    uint32_t time[2];
    int i, k;

    if (!pair_init(&near, "try", "16k", "inf")) {
        return;
    }
    fill = &near.pair.side[ST_A].peer->direct.fill[UCP_ST_DIRECT_FILL_ONE];
    near_match(&near, kinds[UCP_ST_DIRECT_FILL_ONE].length, 0);
    for (i = 0; i < 2; ++i) {
        for (k = 0; k < USES; ++k) {
            near_use(&near, k); /* the slots are no longer new */
        }
        /* The way that took long is not tried until it is its turn */
        fill->turn     = 1025;
        fill->time[i]  = 90000000;
        fill->time[!i] = 100000; /* far too long as well */
        memcpy(time, fill->time, sizeof(time));
        for (k = 0; k < 8; ++k) {
            near_use(&near, k);
        }
        CU_ASSERT_EQUAL(fill->turn, 1025 + 8);
        CU_ASSERT_EQUAL(fill->time[i], time[i]);
        CU_ASSERT(fill->time[!i] < time[!i]);
    }
    near_unmatch(&near);
    st_pair_cleanup(&near.pair);
}

static const st_cunit_case_t cases[] = {
    {"lengths", test_lengths},
    {"mapped", test_mapped},
    {"odd_piece", test_odd_piece},
    {"timed", test_timed},
    {"choice", test_choice}
};

int main(int argc, char **argv)
{
    return st_cunit_main("st_direct_fill", cases, ST_CUNIT_COUNT(cases), argc,
                         argv);
}
