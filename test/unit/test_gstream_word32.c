/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_word32.c - stores and waits for words of 32 bits: of streams of
 * the host, with threads of their own and in a group, and of CUDA and HIP over
 * the stand-ins for their runtimes.
 */
#include "gstream_util.h"
#include "standin_util.h"
#include "st_cunit.h"
#include "ucs_gstream_memory.h"

#include <sched.h>

/* What a wait does not pass, and does. */
typedef struct {
    ucs_gstream_cmp_t cmp;
    uint32_t          value;
    uint32_t          before;
    uint32_t          after;
} wait_t;

static const wait_t waits[] = {
    {UCS_GSTREAM_CMP_GE, 5, 4, 5},
    {UCS_GSTREAM_CMP_GE, 5, 0, 6},
    {UCS_GSTREAM_CMP_EQ, 5, 6, 5},
    {UCS_GSTREAM_CMP_EQ, 5, 4, 5},
    {UCS_GSTREAM_CMP_EQ, UINT32_MAX, 0, UINT32_MAX},
    {UCS_GSTREAM_CMP_AND, 6, 9, 2},
    {UCS_GSTREAM_CMP_AND, 1u << 31, 1, 1u << 31}
};

/* Words of a case, in memory that all streams reach. */
typedef struct {
    volatile uint64_t *word;  /* Two of 32 bits */
    volatile uint64_t *begun; /* The stream is at its wait */
    volatile uint64_t *out;   /* What it stores behind it, to both halves */
    volatile uint32_t *waited;
    uint32_t          seen;   /* What the word was then */
} scene_t;

static void scene_init(scene_t *scene)
{
    scene->word  = ucs_gstream_word_get();
    scene->begun = ucs_gstream_word_get();
    scene->out   = ucs_gstream_word_get();
    CU_ASSERT_FATAL((scene->word != NULL) && (scene->begun != NULL) &&
                    (scene->out != NULL));
}

static void scene_cleanup(scene_t *scene)
{
    ucs_gstream_word_put(scene->word);
    ucs_gstream_word_put(scene->begun);
    ucs_gstream_word_put(scene->out);
}

static void look(void *arg)
{
    scene_t *scene = arg;

    scene->seen = __atomic_load_n(scene->waited, __ATOMIC_ACQUIRE);
}

/* The stream comes to the wait while it is not to pass it. The other half of
 * the word would let it pass. */
static void run(scene_t *scene, ucs_gstream_h stream, const wait_t *wait,
                int half)
{
    volatile uint32_t *halves = (volatile uint32_t*)scene->word;
    volatile uint32_t *out    = (volatile uint32_t*)scene->out;
    ucs_gstream_cmd_t cmds[]  = {
        {UCS_GSTREAM_CMD_WRITE64, .u.word = {scene->begun, 1}},
        {UCS_GSTREAM_CMD_WAIT32,
         .u.word32 = {&halves[half], wait->value, wait->cmp}},
        {UCS_GSTREAM_CMD_FUNC, .u.func = {look, scene}},
        {UCS_GSTREAM_CMD_WRITE32, .u.word32 = {&out[half], 7}},
        {UCS_GSTREAM_CMD_WRITE32, .u.word32 = {&out[1 - half], 8}}
    };

    scene->waited    = &halves[half];
    halves[half]     = wait->before;
    halves[1 - half] = wait->after;
    *scene->begun    = 0;
    *scene->out      = 0;
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, cmds, 5), UCS_OK);
    while (gstream_util_load(scene->begun) == 0) {
        (void)sched_yield();
    }
    CU_ASSERT_EQUAL(out[half], 0);
    __atomic_store_n(&halves[half], wait->after, __ATOMIC_RELEASE);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT_EQUAL(scene->seen, wait->after);
    CU_ASSERT_EQUAL(out[half], 7);
    CU_ASSERT_EQUAL(out[1 - half], 8);
}

/* Then it is destroyed */
static void all(ucs_gstream_h stream)
{
    scene_t scene;
    size_t i;

    scene_init(&scene);
    for (i = 0; i < (2 * ST_CUNIT_COUNT(waits)); ++i) {
        run(&scene, stream, &waits[i / 2], i % 2);
    }
    CU_ASSERT_EQUAL(ucs_gstream_destroy(stream), UCS_OK);
    scene_cleanup(&scene);
}

static void refused(ucs_gstream_h stream, ucs_gstream_cmd_t cmd)
{
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, &cmd, 1),
                    UCS_ERR_INVALID_PARAM);
}

static void misuse(ucs_gstream_h stream)
{
    static volatile uint32_t words[2];
    volatile uint32_t *odd = (volatile uint32_t*)((uintptr_t)words + 2);
    ucs_gstream_cmd_t cmd  = {.type = UCS_GSTREAM_CMD_WAIT32};

    refused(stream, cmd);
    cmd.u.word32.address = odd;
    refused(stream, cmd);
    cmd.type = UCS_GSTREAM_CMD_WRITE32;
    refused(stream, cmd);
    cmd.type             = UCS_GSTREAM_CMD_WAIT32;
    cmd.u.word32.address = words;
    cmd.u.word32.cmp     = (ucs_gstream_cmp_t)3;
    refused(stream, cmd);
    if (ucs_gstream_type(stream) != UCS_GSTREAM_TYPE_HOST) {
        cmd.u.word32.cmp = UCS_GSTREAM_CMP_GE;
        refused(stream, cmd); /* the device does not reach it */
        cmd.u.word32.address = (volatile uint32_t*)ucs_gstream_word_get();
        cmd.u.word32.value   = 1u << 31;
        refused(stream, cmd);
        ucs_gstream_word_put((volatile uint64_t*)cmd.u.word32.address);
    }
    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(stream), UCS_OK);
}

ST_CASE(host)
{
    all(gstream_util_create());
    misuse(gstream_util_create());
}

ST_CASE(group)
{
    ucs_gstream_group_h group = gstream_util_group(1);

    all(gstream_util_create_on(group, 0));
    gstream_util_group_finish(group);
}

/* A stream's store wakes one that sleeps on the word */
ST_CASE(two)
{
    static volatile uint32_t words[2];
    ucs_gstream_h streams[2] = {gstream_util_create(), gstream_util_create()};
    ucs_gstream_cmd_t cmds[2] = {{.type = UCS_GSTREAM_CMD_WAIT32},
                                 {.type = UCS_GSTREAM_CMD_WRITE32}};
    uint32_t k;
    int i;

    for (k = 1; k <= 500; ++k) {
        for (i = 0; i < 2; ++i) {
            cmds[0].u.word32.address = &words[i];
            cmds[0].u.word32.value   = k - (i == 0);
            cmds[1].u.word32.address = &words[1 - i];
            cmds[1].u.word32.value   = k;
            CU_ASSERT_EQUAL(ucs_gstream_enqueue(streams[i], cmds, 2), UCS_OK);
        }
    }
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(streams[i]), UCS_OK);
        CU_ASSERT_EQUAL(ucs_gstream_destroy(streams[i]), UCS_OK);
    }
    CU_ASSERT_EQUAL(words[0], 500);
    CU_ASSERT_EQUAL(words[1], 500);
}

ST_CASE(cuda)
{
    (void)rt_start(0);
    all(gstream_util_create_gpu(0));
    misuse(gstream_util_create_gpu(0));
}

ST_CASE(hip)
{
    (void)rt_open(1);
    all(gstream_util_create_gpu(1));
    misuse(gstream_util_create_gpu(1));
}

ST_SUITE("gstream_word32")
