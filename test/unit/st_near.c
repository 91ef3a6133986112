/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_near.c - two st workers of one process on the direct lane.
 */
#include "st_near.h"
#include "st_cunit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* UCX has no NIC here: the direct lane needs none */
static const char *const near_env[] = {"UCX_TLS", "posix,self",
                                       "UCX_ST_LANES", "direct", NULL};

void near_env_set(const char *const *env, char **before)
{
    for (; (env != NULL) && (*env != NULL); env += 2) {
        *before++ = st_env_set(env[0], env[1]);
    }
}

void near_env_restore(const char *const *env, char **before)
{
    for (; (env != NULL) && (*env != NULL); env += 2) {
        st_env_restore(env[0], *before++);
    }
}

void near_side_init(st_side_t *side, const char *const *env)
{
    char *before[2][NEAR_MAX_ENV];

    near_env_set(near_env, before[0]);
    near_env_set(env, before[1]);
    st_side_init(side);
    near_env_restore(env, before[1]);
    near_env_restore(near_env, before[0]);
}

void near_pair_init(st_pair_t *pair, const char *const *env_a,
                    const char *const *env_b)
{
    st_side_t *side = pair->side;

    near_side_init(&side[ST_A], env_a);
    near_side_init(&side[ST_B], env_b);
    side[ST_A].peer = st_side_peer(&side[ST_A], &side[ST_B]);
    side[ST_B].peer = st_side_peer(&side[ST_B], &side[ST_A]);
}

void near_match(near_t *near, size_t length, int is_ready)
{
    st_side_t *side = near->pair.side;

    near->length   = length;
    near->sbuf     = malloc(length + 1);
    near->rbuf     = malloc(length + NEAR_GUARD);
    near->op[ST_A] = (is_ready ? st_rsend : st_send)(&side[ST_A], near->sbuf,
                                                     length, 1);
    near->op[ST_B] = st_recv(&side[ST_B], near->rbuf, length + NEAR_GUARD, 1);
    st_match_ok(near->op[ST_A], near->op[ST_B]);
}

void near_init(near_t *near, const char *const *env, size_t length)
{
    near_pair_init(&near->pair, env, env);
    near_match(near, length, 0);
}

void near_unmatch(near_t *near)
{
    st_free2(near->op[ST_A], near->op[ST_B]);
    free(near->sbuf);
    free(near->rbuf);
}

void near_cleanup(near_t *near)
{
    near_unmatch(near);
    st_pair_cleanup(&near->pair);
}

void near_fill(near_t *near, uint64_t seed)
{
    st_fill(near->sbuf, near->length, seed);
    memset(near->rbuf, ST_SPOILED, near->length + NEAR_GUARD);
}

void near_check(const near_t *near, uint64_t seed)
{
    CU_ASSERT_TRUE(st_check(near->rbuf, near->length, seed));
    CU_ASSERT_TRUE(st_is_spoiled(near->rbuf + near->length, NEAR_GUARD));
}

void near_check_nothing(const near_t *near)
{
    CU_ASSERT_TRUE(st_is_spoiled(near->rbuf, near->length + NEAR_GUARD));
}

void near_use(near_t *near, uint64_t seed)
{
    st_side_t *side = near->pair.side;

    near_fill(near, seed);
    st_start(&side[ST_B], near->op[ST_B]);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(side[ST_B].stream), UCS_OK);
    st_use(&side[ST_A], near->op[ST_A]);
    st_wait(&side[ST_B], near->op[ST_B]);
    st_sync(&side[ST_A]);
    st_sync(&side[ST_B]);
    near_check(near, seed);
}

void near_check_protocol(const near_t *near, const char *name)
{
    ucp_st_op_attr_t attr;
    int i;

    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucp_st_op_query(near->op[i], &attr), UCS_OK);
        CU_ASSERT_EQUAL(attr.lane, UCP_ST_LANE_DIRECT);
        CU_ASSERT_STRING_EQUAL(attr.protocol, name);
        CU_ASSERT_EQUAL(attr.length, near->length);
    }
}

int near_count_fds(void)
{
    DIR *dir  = opendir("/proc/self/fd");
    int count = 0;

    if (dir != NULL) {
        while (readdir(dir) != NULL) {
            ++count;
        }
        (void)closedir(dir);
    }
    return count;
}

int near_count_maps(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    int count  = 0;
    char line[512];

    while ((file != NULL) && (fgets(line, sizeof(line), file) != NULL)) {
        count += (strstr(line, "memfd:ucp-st") != NULL);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return count;
}
