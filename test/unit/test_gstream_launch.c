/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gstream_launch.c - kernels, whose arguments are copied in. */
#include "gstream_util.h"
#include "st_cunit.h"

#include <stdlib.h>
#include <string.h>

#define TEST_ROUNDS    2000
#define TEST_BATCH     20
#define TEST_SEEDS     50
#define TEST_RUN_AHEAD 3000


/* What kernels of any size look at; the stream's thread only. */
typedef struct {
    uint64_t runs;
    uint64_t errors;
} test_log_t;

/* Arguments of any size begin with this where there is room for it. */
typedef struct {
    test_log_t *log;
    uint64_t   number; /* Kernels that have run before this one */
    size_t     size;   /* Of all arguments */
} test_head_t;


static unsigned char test_byte(uint64_t number, size_t i)
{
    return (unsigned char)((number * 31) + (i * 7) + (i >> 8));
}

static void test_fill(void *args, test_log_t *log, uint64_t number, size_t size)
{
    test_head_t head     = {log, number, size};
    unsigned char *bytes = args;
    size_t i;

    memcpy(args, &head, sizeof(head));
    for (i = sizeof(head); i < size; ++i) {
        bytes[i] = test_byte(number, i);
    }
}

/* Checks order, alignment and every byte, and spoils its copy. */
static void test_kernel(void *args)
{
    const unsigned char *bytes = args;
    test_head_t head           = *(test_head_t*)args;
    size_t i;

    head.log->errors += (((uintptr_t)args % _Alignof(max_align_t)) != 0) ||
                        (head.number != head.log->runs);
    for (i = sizeof(head); i < head.size; ++i) {
        head.log->errors += (bytes[i] != test_byte(head.number, i));
    }
    ++head.log->runs;
    memset(args, 0xff, head.size);
}


/* Each size that there can be; what the caller does with its own memory after
 * the call does not matter */

ST_CASE(sizes)
{
    ucs_gstream_h stream = gstream_util_create();
    test_log_t log       = {0};
    uint64_t count       = 0;
    void *args           = malloc(UCS_GSTREAM_ARGS_MAX);
    size_t size;

    CU_ASSERT_PTR_NOT_NULL_FATAL(args);
    for (size = sizeof(test_head_t); size <= UCS_GSTREAM_ARGS_MAX;
         size += 1 + (size / 50)) {
        test_fill(args, &log, count++, size);
        gstream_util_launch(stream, test_kernel, args, size);
        memset(args, 0xee, size);
    }
    test_fill(args, &log, count++, UCS_GSTREAM_ARGS_MAX);
    gstream_util_launch(stream, test_kernel, args, UCS_GSTREAM_ARGS_MAX);
    free(args);
    gstream_util_finish(stream);
    CU_ASSERT_EQUAL(log.runs, count);
    CU_ASSERT_EQUAL(log.errors, 0);
}


/* Small arguments, and none */

typedef struct {
    uint64_t runs;
    uint64_t nulls;
    uint64_t sum;
} test_small_t;

static test_small_t test_small;

static void test_small_kernel(void *args)
{
    ++test_small.runs;
    if (args == NULL) {
        ++test_small.nulls;
    } else {
        test_small.sum += *(unsigned char*)args;
    }
}

ST_CASE(small_sizes)
{
    ucs_gstream_h stream = gstream_util_create();
    unsigned char byte   = 1;
    uint64_t sum         = 0;
    unsigned i;

    memset(&test_small, 0, sizeof(test_small));
    for (i = 0; i < TEST_ROUNDS; ++i) {
        byte = (unsigned char)i;
        sum += byte;
        gstream_util_launch(stream, test_small_kernel, &byte, 1);
        gstream_util_launch(stream, test_small_kernel, (i % 2) ? &byte : NULL,
                            0);
    }
    gstream_util_finish(stream);
    CU_ASSERT_EQUAL(test_small.runs, 2 * TEST_ROUNDS);
    CU_ASSERT_EQUAL(test_small.nulls, TEST_ROUNDS);
    CU_ASSERT_EQUAL(test_small.sum, sum);
}


/* Random batches of kernels of all sizes between other commands, with the host
 * ahead of the stream by many chunks or by none */

typedef struct {
    uint64_t          count; /* Kernels that were enqueued */
    uint64_t          stores;
    test_log_t        log;
    volatile uint64_t word;
} test_mix_t;

/* A command of the batch; args is memory for its arguments. */
static void test_mix_draw(test_mix_t *mix, ucs_gstream_cmd_t *cmd, void *args,
                          unsigned *seed)
{
    size_t max = (rand_r(seed) % 4) ? 200 : UCS_GSTREAM_ARGS_MAX;

    if ((rand_r(seed) % 3) == 0) {
        cmd->type           = (rand_r(seed) % 2) ? UCS_GSTREAM_CMD_WAIT64 :
                                                   UCS_GSTREAM_CMD_WRITE64;
        cmd->u.word.address = &mix->word;
        mix->stores        += (cmd->type == UCS_GSTREAM_CMD_WRITE64);
        cmd->u.word.value   = mix->stores;
        return;
    }

    cmd->type          = UCS_GSTREAM_CMD_LAUNCH;
    cmd->u.launch.func = test_kernel;
    cmd->u.launch.args = args;
    cmd->u.launch.size = sizeof(test_head_t) +
                         (rand_r(seed) % (max - sizeof(test_head_t) + 1));
    test_fill(args, &mix->log, mix->count++, cmd->u.launch.size);
}

static void test_mix_batch(ucs_gstream_h stream, test_mix_t *mix,
                           unsigned *seed)
{
    static unsigned char args[TEST_BATCH][UCS_GSTREAM_ARGS_MAX];
    ucs_gstream_cmd_t cmds[TEST_BATCH];
    unsigned count = 1 + (rand_r(seed) % TEST_BATCH);
    unsigned i;

    for (i = 0; i < count; ++i) {
        test_mix_draw(mix, &cmds[i], args[i], seed);
    }
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, cmds, count), UCS_OK);
    memset(args, 0xee, sizeof(args));
    memset(cmds, 0xee, sizeof(cmds));
}

static void test_mix_run(unsigned seed)
{
    ucs_gstream_h stream   = gstream_util_create();
    volatile uint64_t gate = 0;
    test_mix_t mix         = {0};
    unsigned i;

    if (seed % 2) {
        gstream_util_wait(stream, &gate, 1);
    }
    for (i = 0; i < TEST_BATCH; ++i) {
        test_mix_batch(stream, &mix, &seed);
    }
    gstream_util_let_go(&gate, 1);
    gstream_util_finish(stream);
    CU_ASSERT_EQUAL(mix.log.runs, mix.count);
    CU_ASSERT_EQUAL(mix.log.errors, 0);
    CU_ASSERT_EQUAL(mix.word, mix.stores);
}

ST_CASE(mixed)
{
    unsigned seed;

    for (seed = 0; seed < TEST_SEEDS; ++seed) {
        test_mix_run(seed);
    }
}


/* A kernel that launches the next one: its arguments are in place until it has
 * returned, whatever comes into the queue behind it */

typedef struct {
    ucs_gstream_h stream;
    uint64_t      left;
    test_log_t    *log;
    unsigned char bytes[400];
} test_chain_t;

static void test_chain_next(void *args)
{
    test_chain_t *chain = args;
    test_chain_t next   = *chain;

    ++chain->log->runs;
    --next.left;
    memset(next.bytes, (unsigned char)next.left, sizeof(next.bytes));
    if ((chain->left > 0) &&
        (ucs_gstream_enqueue_launch(chain->stream, test_chain_next, &next,
                                    sizeof(next)) != UCS_OK)) {
        ++chain->log->errors;
    }
    chain->log->errors += (chain->bytes[0] != (unsigned char)chain->left) ||
                          (memcmp(chain->bytes, chain->bytes + 1,
                                  sizeof(chain->bytes) - 1) != 0);
}

ST_CASE(launch_from_kernel)
{
    test_log_t log     = {0};
    test_chain_t chain = {
        .stream = gstream_util_create(),
        .left   = TEST_RUN_AHEAD,
        .log    = &log
    };

    memset(chain.bytes, (unsigned char)chain.left, sizeof(chain.bytes));
    gstream_util_launch(chain.stream, test_chain_next, &chain, sizeof(chain));
    while (ucs_gstream_query(chain.stream) == UCS_INPROGRESS) {
        gstream_util_pass_time(1);
    }
    gstream_util_finish(chain.stream);
    CU_ASSERT_EQUAL(log.runs, TEST_RUN_AHEAD + 1);
    CU_ASSERT_EQUAL(log.errors, 0);
}


/* What is refused, with nothing enqueued */

ST_CASE(refused)
{
    ucs_gstream_h stream = gstream_util_create();
    static unsigned char args[UCS_GSTREAM_ARGS_MAX + 1];

    memset(&test_small, 0, sizeof(test_small));
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_launch(NULL, test_small_kernel, args,
                                               1),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_launch(stream, NULL, args, 1),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_launch(stream, test_small_kernel, NULL,
                                               1),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_launch(stream, test_small_kernel, args,
                                               sizeof(args)),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue_launch(stream, test_small_kernel, args,
                                               SIZE_MAX),
                    UCS_ERR_INVALID_PARAM);
    gstream_util_quiet(0);
    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_OK);
    gstream_util_finish(stream);
    CU_ASSERT_EQUAL(test_small.runs, 0);
}

ST_SUITE("gstream_launch")
