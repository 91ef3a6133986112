/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_direct.c - the direct lane: sizes and protocols, settings, a segment
 * that is full; memory that other processes can map.
 */
#include "st_cunit.h"
#include "st_near.h"
#include "st_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define USES       3
#define MANY       (10ul << 20) /* bytes: one use takes long enough */
#define PAIRS      40
#define ROUNDS     1000
#define SHORT      1000
#define TINY       8
#define TINY_PAIRS 300
#define BATCH      1200 /* more than two commands of the stream hold */
#define BLOCKS     3000 /* more than there may be files */
#define LONG_BLOCK (2ul << 20)  /* in a file of its own */
#define MAX_CORE   (2ul << 20)
#define FILE_MAX   (64ul << 20) /* less than a segment */

/** What the case expects of a message. */
typedef struct {
    const char *protocol;
    uint64_t   copies; /* of a use, by both sides */
} plan_t;

static uint64_t div_up(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static plan_t plan_of(size_t length, size_t piece, size_t map_min)
{
    size_t mapped;

    if ((length > 0) && (length >= map_min)) {
        mapped = (div_up(length, 4095) + 63) & ~63ul;
        mapped = (mapped > NEAR_PIECE_MAPPED) ? mapped : NEAR_PIECE_MAPPED;
        return (plan_t){"mapped", div_up(length, mapped)};
    }
    if (length <= NEAR_INLINE) {
        return (plan_t){"inline", 2};
    }
    if (length <= piece) {
        return (plan_t){"slot", 2};
    }
    if (length / piece >= NEAR_MANY_PIECES) {
        piece *= NEAR_LONG_PIECE;
    }
    return (plan_t){"pipelined", 2 * div_up(length, piece)};
}

static uint64_t count_copies(const near_t *near)
{
    return st_stats(&near->pair.side[ST_A]).copies +
           st_stats(&near->pair.side[ST_B]).copies;
}

/* Some uses of a message, whose protocol and pieces are as planned */
static void run_message(near_t *near, size_t length, int is_ready,
                        const plan_t *plan)
{
    uint64_t before = count_copies(near);
    int uses        = (length > MANY) ? 1 : USES;
    int k;

    near_match(near, length, is_ready);
    near_check_protocol(near, plan->protocol);
    for (k = 0; k < uses; ++k) {
        near_use(near, length + k);
    }
    CU_ASSERT_EQUAL(count_copies(near) - before, uses * plan->copies);
    near_unmatch(near);
}

static const size_t lengths[] = {
    0, 1, 8, 55, NEAR_INLINE, NEAR_INLINE + 1, 64, 1000, 4097, NEAR_PIECE - 1,
    NEAR_PIECE, NEAR_PIECE + 1, (2 * NEAR_PIECE) - 3, 2 * NEAR_PIECE,
    NEAR_MAP_MIN - 1, NEAR_MAP_MIN, NEAR_MAP_MIN + 1,
    (8 * NEAR_PIECE) + 12345, (NEAR_MANY_PIECES * NEAR_PIECE) - 1,
    NEAR_MANY_PIECES * NEAR_PIECE,
    NEAR_NT_MIN - 1, NEAR_NT_MIN, NEAR_NT_MIN + 5, (5ul << 20) - 77,
    (16ul << 20) + 1
};

static void run_sizes(const char *const *env, size_t piece, size_t map_min)
{
    near_t near;
    plan_t plan;
    size_t i;

    near_pair_init(&near.pair, env, env);
    for (i = 0; i < 2 * ST_CUNIT_COUNT(lengths); ++i) {
        plan = plan_of(lengths[i / 2], piece, map_min);
        run_message(&near, lengths[i / 2], i & 1, &plan);
    }
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(st_stats(&near.pair.side[i]).errors, 0);
        CU_ASSERT_EQUAL(st_stats(&near.pair.side[i]).fallbacks, 0);
    }
    st_pair_cleanup(&near.pair);
}

ST_CASE_CALL(sizes, run_sizes(NULL, NEAR_PIECE, NEAR_MAP_MIN))
ST_CASE_CALL(sizes_slots,
             run_sizes((const char*[])NEAR_SLOTS, NEAR_PIECE, SIZE_MAX))

/* The ends of the ranges of settings, and a piece that is no multiple of
 * anything; all lengths with non-temporal stores */
ST_CASE(sizes_settings)
{
    run_sizes((const char*[]){"UCX_ST_DIRECT_PIECE", "1k",
                              "UCX_ST_DIRECT_NT_MIN", "inf",
                              "UCX_ST_DIRECT_MAP_MIN", "0", NULL}, 1024, 0);
    run_sizes((const char*[]){"UCX_ST_DIRECT_PIECE", "3001",
                              "UCX_ST_DIRECT_NT_MIN", "0",
                              "UCX_ST_DIRECT_MAP_MIN", "inf", NULL}, 3001,
              SIZE_MAX);
    run_sizes((const char*[]){"UCX_ST_DIRECT_NT_MIN", "0",
                              "UCX_ST_DIRECT_MAP_MIN", "0", NULL}, NEAR_PIECE,
              0);
    run_sizes((const char*[]){"UCX_ST_DIRECT_PIECE", "1m",
                              "UCX_ST_DIRECT_MAP_MIN", "inf", NULL}, 1ul << 20,
              SIZE_MAX);
}

/* More pieces than a claim can count become longer ones */
ST_CASE(many_pieces)
{
    const size_t length = (4096ul * NEAR_PIECE_MAPPED) + 1;
    plan_t plan         = plan_of(length, NEAR_PIECE, NEAR_MAP_MIN);
    near_t near;

    CU_ASSERT(plan.copies <= 4095);
    near_pair_init(&near.pair, NULL, NULL);
    run_message(&near, length, 0, &plan);
    st_pair_cleanup(&near.pair);
}

/* The receive's side says how long pieces are; the side that maps less says
 * from which length on that is done */
ST_CASE(settings_differ)
{
    const char *const env_a[] = {"UCX_ST_DIRECT_PIECE", "1k",
                                 "UCX_ST_DIRECT_MAP_MIN", "16k", NULL};
    const char *const env_b[] = {"UCX_ST_DIRECT_PIECE", "64k",
                                 "UCX_ST_DIRECT_MAP_MIN", "100k",
                                 "UCX_ST_DIRECT_ATTACH_MIN", "0", NULL};
    st_side_t swap;
    near_t near;
    plan_t plan;
    size_t i;
    int dir;

    near_pair_init(&near.pair, env_a, env_b);
    for (dir = 0; dir < 2; ++dir) {
        for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
            plan = plan_of(lengths[i], (dir == 0) ? 64ul << 10 : 1ul << 10,
                           100ul << 10);
            run_message(&near, lengths[i], 0, &plan);
        }
        swap                 = near.pair.side[ST_A];
        near.pair.side[ST_A] = near.pair.side[ST_B];
        near.pair.side[ST_B] = swap;
    }
    st_pair_cleanup(&near.pair);
}

/* No worker with a setting that is out of its range, whatever other lanes are
 * there, and nothing left of it */
ST_CASE(bad_settings)
{
    static const char *const bad[][2] = {
        {"UCX_ST_DIRECT_PIECE", "0"}, {"UCX_ST_DIRECT_PIECE", "1023"},
        {"UCX_ST_DIRECT_PIECE", "1025k"}, {"UCX_ST_DIRECT_PIECE", "inf"},
        {"UCX_ST_DIRECT_SIZE", "0"}, {"UCX_ST_DIRECT_SIZE", "1000"},
        {"UCX_ST_DIRECT_SIZE", "65535"}, {"UCX_ST_DIRECT_SIZE", "1025g"},
        {"UCX_ST_DIRECT_SIZE", "inf"}, {"UCX_ST_DIRECT_PIECE", "many"},
        {"UCX_ST_DIRECT_MAP_MIN", "many"}, {"UCX_ST_DIRECT_NT_MIN", "many"}
    };
    ucp_st_worker_params_t params = {.field_mask = 0};
    int fds                       = near_count_fds();
    const char *env[]             = {"UCX_TLS", "posix,self", "UCX_ST_LANES",
                                     "direct,host", NULL, NULL, NULL};
    char *before[NEAR_MAX_ENV];
    ucp_st_worker_h worker;
    ucs_status_t status;
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(bad); ++i) {
        env[4] = bad[i][0];
        env[5] = bad[i][1];
        near_env_set(env, before);
        status = ucp_st_worker_create(&params, &worker);
        near_env_restore(env, before);
        CU_ASSERT_EQUAL(status, UCS_ERR_INVALID_PARAM);
        if (status == UCS_OK) {
            (void)ucp_st_worker_destroy(worker);
        }
    }
    CU_ASSERT_EQUAL(near_count_fds(), fds);
    CU_ASSERT_EQUAL(near_count_maps(), 0);
}

/** Pairs of short messages, of which a small segment has room for some. */
typedef struct {
    st_pair_t   pair;
    uint8_t     sbuf[PAIRS][SHORT];
    uint8_t     rbuf[PAIRS][SHORT];
    ucp_st_op_h op[PAIRS][2];
} crowd_t;

static void crowd_make(crowd_t *crowd, int i)
{
    st_side_t *side = crowd->pair.side;

    crowd->op[i][ST_A] = st_send(&side[ST_A], crowd->sbuf[i], SHORT, i);
    crowd->op[i][ST_B] = st_recv(&side[ST_B], crowd->rbuf[i], SHORT, i);
}

static void crowd_free(crowd_t *crowd, int i)
{
    st_free2(crowd->op[i][ST_A], crowd->op[i][ST_B]);
}

/* One use of each of the first pairs, all of them under way at a time */
static void crowd_use(crowd_t *crowd, int count)
{
    st_side_t *side = crowd->pair.side;
    int i;

    for (i = 0; i < count; ++i) {
        st_fill(crowd->sbuf[i], SHORT, i);
        st_start(&side[ST_A], crowd->op[i][ST_A]);
        st_start(&side[ST_B], crowd->op[i][ST_B]);
    }
    for (i = 0; i < count; ++i) {
        st_wait(&side[ST_A], crowd->op[i][ST_A]);
        st_wait(&side[ST_B], crowd->op[i][ST_B]);
    }
    st_sync(&side[ST_A]);
    st_sync(&side[ST_B]);
    for (i = 0; i < count; ++i) {
        CU_ASSERT_TRUE(st_check(crowd->rbuf[i], SHORT, i));
    }
}

/* S10: a pair for which the segment has no room is refused on both sides, as
 * long as nothing is freed */
ST_CASE(full)
{
    static crowd_t crowd;
    const char *const env[] = {"UCX_ST_DIRECT_SIZE", "64k", NULL};
    ucs_status_t status[2]  = {UCS_OK, UCS_OK};
    int count               = -1;

    near_pair_init(&crowd.pair, env, env);
    while ((status[ST_A] == UCS_OK) && (count < PAIRS - 1)) {
        crowd_make(&crowd, ++count);
        st_match2(crowd.op[count][ST_A], crowd.op[count][ST_B], &status[ST_A],
                  &status[ST_B]);
    }
    CU_ASSERT(count > 1);
    CU_ASSERT_EQUAL(status[ST_A], UCS_ERR_NO_RESOURCE);
    CU_ASSERT_EQUAL(status[ST_B], UCS_ERR_NO_RESOURCE);
    crowd_use(&crowd, count);
    crowd_free(&crowd, 0);
    st_drain(&crowd.pair);
    st_match_ok(crowd.op[count][ST_A], crowd.op[count][ST_B]);
    crowd_make(&crowd, 0);
    st_match2(crowd.op[0][ST_A], crowd.op[0][ST_B], &status[ST_A],
              &status[ST_B]);
    CU_ASSERT_EQUAL(status[ST_A], UCS_ERR_NO_RESOURCE);
    CU_ASSERT_EQUAL(status[ST_B], UCS_ERR_NO_RESOURCE);
    crowd_free(&crowd, 1);
    st_drain(&crowd.pair);
    st_match_ok(crowd.op[0][ST_A], crowd.op[0][ST_B]);
    crowd_make(&crowd, 1);
    for (; count >= 0; --count) {
        crowd_free(&crowd, count);
    }
    st_pair_cleanup(&crowd.pair);
}

/* A stream for which the segment has no room left waits all the same: peers
 * wake the service thread for it. Of two streams one has no room for sure. */
ST_CASE(no_record)
{
    static uint8_t buffer[2][TINY];
    static ucp_st_op_h op[TINY_PAIRS][2];
    const char *const env[] = {"UCX_ST_DIRECT_SIZE", "64k", NULL};
    ucs_status_t status[2]  = {UCS_OK, UCS_OK};
    unsigned count          = 0;
    st_side_t more[2];
    st_pair_t pair;
    unsigned i;

    near_pair_init(&pair, env, env);
    while ((status[ST_B] == UCS_OK) && (count < TINY_PAIRS)) {
        op[count][ST_A] = st_send(&pair.side[ST_A], buffer[ST_A], TINY, count);
        op[count][ST_B] = st_recv(&pair.side[ST_B], buffer[ST_B], TINY, count);
        st_match2(op[count][ST_A], op[count][ST_B], &status[ST_A],
                  &status[ST_B]);
        ++count;
    }
    CU_ASSERT_EQUAL(status[ST_B], UCS_ERR_NO_RESOURCE);
    for (i = 0; i < 2; ++i) {
        st_more_init(&more[i], &pair.side[ST_B]);
        st_fill(buffer[ST_A], TINY, i);
        st_start(&more[i], op[0][ST_B]);
        st_begun(&more[i]);
        st_use(&pair.side[ST_A], op[0][ST_A]);
        st_wait(&more[i], op[0][ST_B]);
        /* Without a call of the library */
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(more[i].stream), UCS_OK);
        st_sync(&more[i]);
        st_sync(&pair.side[ST_A]);
        CU_ASSERT_TRUE(st_check(buffer[ST_B], TINY, i));
    }
    CU_ASSERT(st_stats(&pair.side[ST_B]).proxied > 0);
    for (i = 0; i < 2; ++i) {
        st_more_cleanup(&more[i]);
    }
    for (i = 0; i < count; ++i) {
        st_free2(op[i][ST_A], op[i][ST_B]);
    }
    st_pair_cleanup(&pair);
}

/* What a side counts of its pairs */
static void check_fallbacks(const st_side_t *side, unsigned on_host)
{
    ucp_st_stats_t stats = st_stats(side);

    CU_ASSERT_EQUAL(stats.fallbacks, on_host);
    CU_ASSERT_EQUAL(stats.lanes[UCP_ST_LANE_HOST].matches, on_host);
    CU_ASSERT_EQUAL(stats.lanes[UCP_ST_LANE_DIRECT].matches, PAIRS - on_host);
}

/* The same where there is a second lane: what finds no room takes that */
ST_CASE(fallback)
{
    static crowd_t crowd;
    const char *const env[] = {"UCX_ST_DIRECT_SIZE", "64k", "UCX_ST_LANES",
                               "direct,host", NULL};
    unsigned on_host        = 0;
    ucp_st_op_attr_t attr[2];
    int i;

    near_pair_init(&crowd.pair, env, env);
    for (i = 0; i < PAIRS; ++i) {
        crowd_make(&crowd, i);
        st_match_ok(crowd.op[i][ST_A], crowd.op[i][ST_B]);
        CU_ASSERT_EQUAL(ucp_st_op_query(crowd.op[i][ST_A], &attr[ST_A]),
                        UCS_OK);
        CU_ASSERT_EQUAL(ucp_st_op_query(crowd.op[i][ST_B], &attr[ST_B]),
                        UCS_OK);
        CU_ASSERT_EQUAL(attr[ST_A].lane, attr[ST_B].lane);
        on_host += (attr[ST_A].lane == UCP_ST_LANE_HOST);
    }
    CU_ASSERT((on_host > 0) && (on_host < PAIRS));
    check_fallbacks(&crowd.pair.side[ST_A], on_host);
    check_fallbacks(&crowd.pair.side[ST_B], on_host);
    crowd_use(&crowd, PAIRS);
    for (i = 0; i < PAIRS; ++i) {
        crowd_free(&crowd, i);
    }
    st_pair_cleanup(&crowd.pair);
}

/* A small segment serves any number of pairs of all sizes that it has room for,
 * one after the other, and of queues */
ST_CASE(reuse)
{
    static const size_t sizes[] = {8, 500, 8000, 1500, 40, 0, 4000};
    const char *const env[]     = {"UCX_ST_DIRECT_SIZE", "64k", NULL};
    ucp_st_queue_h queue;
    near_t near;
    int i;

    near_pair_init(&near.pair, env, env);
    for (i = 0; i < ROUNDS; ++i) {
        near_match(&near, sizes[i % ST_CUNIT_COUNT(sizes)], i & 1);
        if (i % 100 == 0) {
            near_use(&near, i);
        }
        near_unmatch(&near);
        st_drain(&near.pair);
        queue = st_queue(&near.pair.side[ST_B], near.pair.side[ST_B].stream);
        CU_ASSERT_EQUAL(ucp_st_queue_destroy(queue), UCS_OK);
    }
    CU_ASSERT_EQUAL(st_stats(&near.pair.side[ST_A]).lanes[
                            UCP_ST_LANE_DIRECT].matches, ROUNDS);
    st_pair_cleanup(&near.pair);
}

/* Half of a batch each way, in one call; each has its own number */
static void batch_init(near_t *near, uint64_t *numbers,
                       ucp_st_op_h ops[][BATCH])
{
    st_side_t *side = near->pair.side;
    int i, from;

    for (i = 0; i < BATCH; ++i) {
        from          = i % 2;
        ops[from][i]  = st_send(&side[from], &numbers[i], TINY, (uint64_t)i);
        ops[!from][i] = st_recv(&side[!from], &numbers[BATCH + i], TINY,
                                (uint64_t)i);
        st_match_ok(ops[ST_A][i], ops[ST_B][i]);
    }
}

/* More starts than one command holds, with one call */
ST_CASE(startall)
{
    static uint64_t numbers[2 * BATCH];
    static ucp_st_op_h ops[2][BATCH];
    st_side_t *side;
    near_t near;
    int use, i;

    near_pair_init(&near.pair, NULL, NULL);
    side = near.pair.side;
    batch_init(&near, numbers, ops);
    for (use = 0; use < USES; ++use) {
        for (i = 0; i < BATCH; ++i) {
            numbers[i]         = (uint64_t)((use * BATCH) + i + 1);
            numbers[BATCH + i] = 0;
        }
        for (i = 0; i < 2; ++i) {
            CU_ASSERT_EQUAL(ucp_st_enqueue_startall(side[i].queue, ops[i],
                                                    BATCH), UCS_OK);
            CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(side[i].queue, ops[i],
                                                   BATCH), UCS_OK);
        }
        st_sync(&side[ST_A]);
        st_sync(&side[ST_B]);
        CU_ASSERT_EQUAL(memcmp(numbers, &numbers[BATCH],
                               BATCH * sizeof(*numbers)), 0);
    }
    for (i = 0; i < BATCH; ++i) {
        st_free2(ops[ST_A][i], ops[ST_B][i]);
    }
    st_pair_cleanup(&near.pair);
}

/* Lengths on both sides of where a block gets a file of its own */
static const size_t block_lengths[] = {
    1, 63, 64, 256, 257, 4096, (1ul << 20) - 1, 1ul << 20, (1ul << 20) + 1,
    5000001
};

ST_CASE(mem_blocks)
{
    uint8_t *block[ST_CUNIT_COUNT(block_lengths)];
    unsigned round, i;

    for (round = 0; round < 3; ++round) {
        for (i = 0; i < ST_CUNIT_COUNT(block_lengths); ++i) {
            CU_ASSERT_EQUAL_FATAL(ucp_st_mem_alloc(block_lengths[i],
                                                   (void**)&block[i]), UCS_OK);
            CU_ASSERT_EQUAL((uintptr_t)block[i] % 64, 0);
            memset(block[i], i + 1, block_lengths[i]);
        }
        for (i = 0; i < ST_CUNIT_COUNT(block_lengths); ++i) {
            CU_ASSERT_EQUAL(block[i][0], i + 1);
            CU_ASSERT_EQUAL(block[i][block_lengths[i] - 1], i + 1);
            CU_ASSERT_EQUAL(ucp_st_mem_free(block[i]), UCS_OK);
        }
    }
}

/* Bytes of this library's shared memory that a core file has */
static size_t count_core(void)
{
    FILE *file      = fopen("/proc/self/smaps", "r");
    size_t all      = 0;
    unsigned long k = 0;
    int is_ours     = 0;
    char line[512];

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "Size: %lu", &k) == 1) {
            continue;
        }
        if (!strncmp(line, "VmFlags:", 8)) {
            all    += (is_ours && (strstr(line, " dd") == NULL)) ? k : 0;
            is_ours = 0;
        } else if (strstr(line, "memfd:ucp-st") != NULL) {
            is_ours = 1;
        }
    }
    (void)fclose(file);
    return all << 10;
}

/* What the kernel writes to a core file of shared memory is all that is mapped,
 * holes too. Of a long block that is as much as the user asked for, of short
 * ones about that. */
ST_CASE(core_size)
{
    near_t near;
    void *block[2];

    CU_ASSERT_EQUAL_FATAL(ucp_st_mem_alloc(SHORT, &block[0]), UCS_OK);
    CU_ASSERT_EQUAL_FATAL(ucp_st_mem_alloc(LONG_BLOCK, &block[1]), UCS_OK);
    memset(block[0], 1, SHORT);
    memset(block[1], 1, LONG_BLOCK);
    near_init(&near, NULL, SHORT);
    near_use(&near, 1);
    printf("%zu bytes of shared memory in a core file\n", count_core());
    CU_ASSERT(count_core() >= (SHORT + LONG_BLOCK));
    CU_ASSERT(count_core() <= (LONG_BLOCK + MAX_CORE));
    near_cleanup(&near);
    CU_ASSERT_EQUAL(ucp_st_mem_free(block[0]), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_mem_free(block[1]), UCS_OK);
}

/* More than a process may have files open, twice: blocks are used again */
ST_CASE(mem_many)
{
    static void *block[BLOCKS];
    unsigned round, i;

    for (round = 0; round < 2; ++round) {
        for (i = 0; i < BLOCKS; ++i) {
            CU_ASSERT_EQUAL_FATAL(ucp_st_mem_alloc(64ul << 10, &block[i]),
                                  UCS_OK);
            *(uint64_t*)block[i] = i;
        }
        for (i = 0; i < BLOCKS; ++i) {
            CU_ASSERT_EQUAL(*(uint64_t*)block[i], i);
            CU_ASSERT_EQUAL(ucp_st_mem_free(block[i]), UCS_OK);
        }
    }
}

ST_CASE(mem_refused)
{
    void *block = &block;
    void *same  = block;

    CU_ASSERT_EQUAL(ucp_st_mem_alloc(0, &block), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_mem_alloc(64, NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_mem_alloc(SIZE_MAX, &block), UCS_ERR_NO_MEMORY);
    CU_ASSERT_EQUAL(ucp_st_mem_alloc(SIZE_MAX / 4, &block), UCS_ERR_NO_MEMORY);
    CU_ASSERT_PTR_EQUAL(block, same);
    CU_ASSERT_EQUAL(ucp_st_mem_free(NULL), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_mem_free(&block), UCS_ERR_INVALID_PARAM);

    CU_ASSERT_EQUAL_FATAL(ucp_st_mem_alloc(1000, &block), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_mem_free((uint8_t*)block + 64),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_mem_free(block), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_mem_free(block), UCS_ERR_INVALID_PARAM);
}

/* A child that was forked is refused, and its parent goes on */
ST_CASE(mem_fork)
{
    ucp_st_worker_params_t params = {.field_mask = 0};
    ucp_st_worker_h worker;
    int status;
    void *block;
    pid_t child;

    CU_ASSERT_EQUAL_FATAL(ucp_st_worker_create(&params, &worker), UCS_OK);
    CU_ASSERT_EQUAL_FATAL(ucp_st_mem_alloc(1000, &block), UCS_OK);
    child = fork();
    if (child == 0) {
        _exit(((ucp_st_mem_alloc(1000, &block) == UCS_ERR_UNSUPPORTED) &&
               (ucp_st_mem_free(block) == UCS_ERR_UNSUPPORTED)) ? 0 : 1);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_EQUAL(ucp_st_mem_free(block), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_worker_destroy(worker), UCS_OK);
}

/* Set a soft limit; what it was */
static struct rlimit set_limit(__rlimit_resource_t resource, rlim_t value)
{
    struct rlimit before, limit;

    CU_ASSERT_EQUAL_FATAL(getrlimit(resource, &before), 0);
    limit          = before;
    limit.rlim_cur = value;
    CU_ASSERT_EQUAL_FATAL(setrlimit(resource, &limit), 0);
    return before;
}

/* Non-zero with a reason if the card that UCX asks for makes longer files */
static int has_long_files(void)
{
    if (!st_env_has_provider("cxi")) {
        return 0;
    }
    st_cunit_skip("the emulated Cassini makes longer files");
    return 1;
}

/* Files may be shorter than a segment: it is as long as they may be */
ST_CASE(file_limit)
{
    void *block = NULL;
    struct rlimit before;
    near_t near;

    if (has_long_files()) {
        return;
    }
    before = set_limit(RLIMIT_FSIZE, FILE_MAX);
    near_init(&near, NULL, MANY);
    near_use(&near, 1);
    near_cleanup(&near);
    CU_ASSERT_EQUAL(ucp_st_mem_alloc(FILE_MAX + 1, &block), UCS_ERR_NO_MEMORY);
    CU_ASSERT_EQUAL(ucp_st_mem_alloc(FILE_MAX, &block), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_mem_free(block), UCS_OK);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &before), 0);
}

/* They may be too short for one: there is no lane, and it is said why */
ST_CASE(file_limit_short)
{
    /* UCX, and a card that is emulated, would make longer files */
    const char *const env[]       = {"UCX_TLS", "sysv,self", "UCX_ST_LANES",
                                     "direct,host", "UCX_CXI_TRIG_PROVIDER",
                                     "cxi", NULL};
    ucp_st_worker_params_t params = {.field_mask = 0};
    void *block                   = NULL;
    char *values[NEAR_MAX_ENV];
    ucp_st_lanes_attr_t attr;
    struct rlimit before;
    unsigned i;

    if (has_long_files()) {
        return;
    }
    before = set_limit(RLIMIT_FSIZE, 32ul << 10);
    near_env_set(env, values);
    CU_ASSERT_EQUAL(ucp_st_lanes_query(&params, &attr), UCS_OK);
    near_env_restore(env, values);
    CU_ASSERT_EQUAL(ucp_st_mem_alloc(LONG_BLOCK, &block), UCS_ERR_NO_MEMORY);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &before), 0);
    for (i = 0; i < attr.count; ++i) {
        if (attr.lanes[i].lane == UCP_ST_LANE_DIRECT) {
            CU_ASSERT_FALSE(attr.lanes[i].is_open);
            CU_ASSERT_PTR_NOT_NULL(strstr(attr.lanes[i].reason, "ulimit -f"));
        }
    }
}

/* Long blocks leave the program most of the descriptors that it may have */
ST_CASE(mem_files)
{
    struct rlimit before = set_limit(RLIMIT_NOFILE, 200);
    ucs_status_t status  = UCS_OK;
    unsigned count       = 0;
    static void *block[BLOCKS];
    int fd;

    while ((count < 200) && (status == UCS_OK)) {
        status = ucp_st_mem_alloc(LONG_BLOCK, &block[count]);
        count += (status == UCS_OK);
    }
    fd = dup(0);
    printf("%u long blocks with 200 descriptors\n", count);
    CU_ASSERT_EQUAL(status, UCS_ERR_NO_RESOURCE);
    CU_ASSERT((count > 20) && (count <= 50));
    CU_ASSERT((fd >= 0) && (fd < 100));
    (void)close(fd);
    while (count > 0) {
        CU_ASSERT_EQUAL(ucp_st_mem_free(block[--count]), UCS_OK);
    }
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &before), 0);
}

ST_SUITE("st_direct")
