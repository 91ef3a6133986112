/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gstream_waitall.c - host streams that wait for several words at once. */
#include "gstream_util.h"
#include "gstream_wrap.h"
#include "st_cunit.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS  UCS_GSTREAM_WORDS_MAX
#define NUM_ROUNDS 200


/* Words that a stream waits for, and what it finds behind the wait. */
typedef struct {
    ucs_gstream_helper_t helper;
    ucs_gstream_notify_t   notify;
    volatile uint64_t    words[MAX_WORDS];
    uint64_t             values[MAX_WORDS]; /* From which on it may pass */
    size_t               count;
    uint64_t             runs;
    uint64_t             errors;
    _Atomic size_t       num_helped; /* Words that the helper has stored */
    _Atomic unsigned     ends;
} scene_t;


/* Stores one word each time that it is called */
static int help(void *arg, ucs_gstream_help_t when)
{
    scene_t *scene = arg;
    size_t next    = atomic_load(&scene->num_helped);

    if (when == UCS_GSTREAM_HELP_END) {
        atomic_fetch_add(&scene->ends, 1);
    } else if (next < scene->count) {
        gstream_util_store(&scene->words[next], scene->values[next]);
        atomic_store(&scene->num_helped, next + 1);
    }
    return 0;
}

/* Runs behind the wait */
static void check(void *arg)
{
    scene_t *scene = arg;
    size_t i;

    for (i = 0; i < scene->count; ++i) {
        scene->errors += (scene->words[i] < scene->values[i]);
    }
    ++scene->runs;
}

/* Values and words are all different, so that none is taken for another */
static void scene_init(scene_t *scene, size_t count)
{
    size_t i;

    memset(scene, 0, sizeof(*scene));
    scene->count       = count;
    scene->helper.func = help;
    scene->helper.arg  = scene;
    scene->helper.notify = &scene->notify;
    for (i = 0; i < count; ++i) {
        scene->values[i] = 1000 + i;
        scene->words[i]  = i % 3;
    }
}

/* The array is the caller's again when the call returns */
static void scene_enqueue(scene_t *scene, ucs_gstream_h stream, int is_helped)
{
    ucs_gstream_word_t words[MAX_WORDS];
    ucs_gstream_cmd_t cmds[] = {
        {.type      = UCS_GSTREAM_CMD_WAITALL,
         .u.waitall = {words, scene->count, is_helped ? &scene->helper : NULL}},
        {.type      = UCS_GSTREAM_CMD_FUNC,
         .u.func    = {check, scene}}
    };
    size_t i;

    for (i = 0; i < scene->count; ++i) {
        words[i].address = &scene->words[i];
        words[i].value   = scene->values[i];
    }
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, cmds, 2), UCS_OK);
    memset(words, 0xff, sizeof(words));
}

static void scene_store(scene_t *scene, size_t i)
{
    gstream_util_let_go(&scene->words[i], scene->values[i] + (i % 2));
}

static void scene_assert(const scene_t *scene, uint64_t runs)
{
    CU_ASSERT_EQUAL(scene->runs, runs);
    CU_ASSERT_EQUAL(scene->errors, 0);
    CU_ASSERT_EQUAL(scene->notify.sleepers, 0);
}

/* A case with streams that have threads of their own, and with a group */
static void on_both(void (*func)(ucs_gstream_group_h group),
                    unsigned num_threads)
{
    ucs_gstream_group_h group = gstream_util_group(num_threads);

    func(NULL);
    func(group);
    gstream_util_group_finish(group);
}

/* The words are stored to in any order while the stream waits: it passes when
 * all are large enough, and not before */
static void store_in_any_order(ucs_gstream_group_h group)
{
    ucs_gstream_h stream = gstream_util_create_on(group, 0);
    unsigned seed        = 1;
    size_t step, first, count, i;
    unsigned round;
    scene_t scene;

    for (round = 0; round < NUM_ROUNDS; ++round) {
        count = 2 + (rand_r(&seed) % ((round % 4) ? 9 : (MAX_WORDS - 1)));
        first = rand_r(&seed) % count;
        step  = (rand_r(&seed) % 2) ? 1 : (count - 1); /* up or down */
        scene_init(&scene, count);
        scene_enqueue(&scene, stream, 0);
        for (i = 0; i < count; ++i) {
            scene_store(&scene, (first + (i * step)) % count);
        }
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
        scene_assert(&scene, 1);
    }
    gstream_util_finish(stream);
}

ST_CASE_CALL(any_order, on_both(store_in_any_order, 2))

/* Each word is stored to when the thread sleeps, which looks again only when it
 * is woken */
static void store_while_asleep(ucs_gstream_group_h group)
{
    gstream_util_t util;
    scene_t scene;
    size_t i;

    gstream_wrap_reset();
    gstream_wrap_set(&gstream_wrap.no_timeouts, 1);
    gstream_util_open_on(&util, group);
    scene_init(&scene, 9);
    scene_enqueue(&scene, util.stream, 0);
    for (i = 0; i < scene.count; ++i) {
        gstream_util_until_asleep(util.tid);
        CU_ASSERT_EQUAL(ucs_gstream_query(util.stream), UCS_INPROGRESS);
        scene_store(&scene, (i * 4) % scene.count);
    }
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(util.stream), UCS_OK);
    scene_assert(&scene, 1);
    gstream_util_finish(util.stream);
    gstream_wrap_reset();
}

ST_CASE_CALL(asleep, on_both(store_while_asleep, 1))

/* What a helper stores ends the wait, of which it is told; once, if the thread
 * does nothing else meanwhile */
static void wait_with_help(ucs_gstream_group_h group)
{
    ucs_gstream_h stream = gstream_util_create_on(group, 0);
    unsigned ends;
    scene_t scene;

    scene_init(&scene, 20);
    scene_enqueue(&scene, stream, 1);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    scene_assert(&scene, 1);
    CU_ASSERT(atomic_load(&scene.num_helped) == scene.count);
    ends = atomic_load(&scene.ends);
    CU_ASSERT((group == NULL) ? (ends == 1) : (ends >= 1));

    /* What is there already needs no help */
    scene_enqueue(&scene, stream, 1);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    scene_assert(&scene, 2);
    CU_ASSERT(atomic_load(&scene.ends) == ends);
    gstream_util_finish(stream);
}

ST_CASE_CALL(helped, on_both(wait_with_help, 1))

/* In a group what one wait has passed does not count for the next one */
ST_CASE(anew_group)
{
    ucs_gstream_group_h group = gstream_util_group(1);
    gstream_util_t util;
    scene_t scenes[2];
    size_t i;

    gstream_util_open_on(&util, group);
    scene_init(&scenes[0], 5);
    scene_init(&scenes[1], 7);
    for (i = 0; i < 4; ++i) {
        scene_store(&scenes[0], i);
    }
    for (i = 4; i < 7; ++i) {
        scene_store(&scenes[1], i);
    }
    scene_enqueue(&scenes[0], util.stream, 0);
    scene_enqueue(&scenes[1], util.stream, 0);
    gstream_util_until_asleep(util.tid);
    scene_store(&scenes[0], 4);
    gstream_util_until_asleep(util.tid);
    for (i = 0; i < 4; ++i) {
        scene_store(&scenes[1], i);
    }
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(util.stream), UCS_OK);
    scene_assert(&scenes[0], 1);
    scene_assert(&scenes[1], 1);
    gstream_util_finish(util.stream);
    gstream_util_group_finish(group);
}

/* Many of all lengths, further ahead than memory that was there at first, with
 * the gaps at the ends of chunks */
GSTREAM_CASE(ahead)
{
    volatile uint64_t go = 0;
    uint64_t runs        = 0;
    scene_t scene;
    size_t count, i;

    scene_init(&scene, MAX_WORDS);
    for (i = 0; i < MAX_WORDS; ++i) {
        scene_store(&scene, i);
    }
    gstream_util_wait(stream, &go, 1);
    for (count = 1; count <= MAX_WORDS; count += 1 + (count / 16)) {
        scene.count = count;
        scene_enqueue(&scene, stream, count % 2);
        ++runs;
    }
    gstream_util_let_go(&go, 1);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    scene_assert(&scene, runs);
}

static void assert_refused(ucs_gstream_h stream,
                           const ucs_gstream_word_t *words, size_t count,
                           const ucs_gstream_helper_t *helper)
{
    ucs_gstream_cmd_t cmd = {
        .type      = UCS_GSTREAM_CMD_WAITALL,
        .u.waitall = {words, count, helper}
    };

    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, &cmd, 1),
                    UCS_ERR_INVALID_PARAM);
}

GSTREAM_CASE(refused)
{
    ucs_gstream_word_t words[MAX_WORDS + 1];
    ucs_gstream_helper_t helper;
    scene_t scene;
    size_t i;

    scene_init(&scene, 1);
    for (i = 0; i <= MAX_WORDS; ++i) {
        words[i].address = &scene.words[0];
        words[i].value   = 0;
    }
    helper = (ucs_gstream_helper_t){.func = help, .arg = &scene};
    gstream_util_quiet(1);
    assert_refused(stream, words, 0, NULL);
    assert_refused(stream, words, MAX_WORDS + 1, NULL);
    assert_refused(stream, NULL, 1, NULL);
    assert_refused(stream, words, 1, &helper);
    words[1].address = NULL;
    assert_refused(stream, words, 2, NULL);
    words[1].address = (volatile uint64_t*)((uintptr_t)&scene.words[0] + 4);
    assert_refused(stream, words, 2, NULL);
    gstream_util_quiet(0);
    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_OK);
}

ST_SUITE("gstream_waitall")
