/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_direct_far.c - the direct lane: long messages in mapped memory go
 * through slots where one side finds the other's processor far.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_cunit.h"
#include "st_near.h"

#include "st_direct.h"
#include "st_peer.h"

#define FAR_MIN (256ul << 10) /* of one side; the other one's is more */
#define FAR     (500u * UCP_ST_DIRECT_FAR_UNIT)
#define USES    20            /* enough that some loads are timed */

/* How long a side takes a load of what the other one has stored to need */
static uint32_t *line_time(near_t *near, int side)
{
    return &near->pair.side[side].peer->direct.line_time;
}

static void run_protocol(near_t *near, size_t length, const char *protocol)
{
    near_match(near, length, 0);
    near_check_protocol(near, protocol);
    near_use(near, length);
    near_unmatch(near);
}

/* Whichever side finds so, and either's setting */
static void test_protocol(void)
{
    const char *const env_a[] = {"UCX_ST_DIRECT_MAP_FAR", "256k", NULL};
    const char *const env_b[] = {"UCX_ST_DIRECT_MAP_FAR", "1m", NULL};
    near_t near;
    int far, i;

    if (!near_pair_init(&near.pair, env_a, env_b)) {
        return;
    }
    for (far = 0; far < 4; ++far) {
        for (i = 0; i < 2; ++i) {
            *line_time(&near, ST_A) = (far & 1) ? FAR : 0;
            *line_time(&near, ST_B) = (far & 2) ? FAR : 0;
            run_protocol(&near, FAR_MIN - 1 + i,
                         (i && far) ? "pipelined" : "mapped");
        }
    }
    st_pair_cleanup(&near.pair);
}

/* However far, where that is not to count, and where messages are so long that
 * the kernel may copy them */
static void test_never(void)
{
    const char *const env[] = {"UCX_ST_DIRECT_MAP_FAR", "inf", NULL};
    const char *const env_long[] = {"UCX_ST_DIRECT_MAP_FAR", "256k",
                                    "UCX_ST_DIRECT_ATTACH_MIN", "256k", NULL};
    const char *const *envs[] = {env, env_long};
    near_t near;
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(envs); ++i) {
        if (!near_pair_init(&near.pair, envs[i], envs[i])) {
            return;
        }
        *line_time(&near, ST_A) = FAR;
        *line_time(&near, ST_B) = FAR;
        run_protocol(&near, 2 * FAR_MIN, "mapped");
        st_pair_cleanup(&near.pair);
    }
}

/* Sends find out, by slots and by claims */
static void test_learned(void)
{
    static const size_t lengths[] = {NEAR_PIECE, NEAR_MAP_MIN};
    near_t near;
    size_t i;
    int k;

    if (!near_pair_init(&near.pair, NULL, NULL)) {
        return;
    }
    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        *line_time(&near, ST_A) = 0;
        near_match(&near, lengths[i], 0);
        for (k = 0; k < USES; ++k) {
            near_use(&near, k);
        }
        near_unmatch(&near);
        CU_ASSERT(*line_time(&near, ST_A) > 0);
        CU_ASSERT(*line_time(&near, ST_A) <= FAR);
    }
    st_pair_cleanup(&near.pair);
}

static const st_cunit_case_t cases[] = {
    {"protocol", test_protocol},
    {"never", test_never},
    {"learned", test_learned}
};

int main(int argc, char **argv)
{
    return st_cunit_main("st_direct_far", cases, ST_CUNIT_COUNT(cases), argc,
                         argv);
}
