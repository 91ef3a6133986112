/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_gstream_help.c - waits of host streams with a helper, and notifications
 * by other processes.
 */
#include "gstream_group.h"
#include "gstream_util.h"
#include "gstream_wrap.h"
#include "st_cunit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUM_ROUNDS 100

/* Take much longer than a stream polls in vain */
#define LONG_POLLS 2000


/* What two processes share. */
typedef struct {
    ucs_gstream_notify_t notify;
    volatile uint64_t  there; /* What the helper takes to the word */
    volatile uint64_t  asked; /* How much of it the other process is to store */
} shared_t;

/* A helper that looks at what is shared, and how it was called. */
typedef struct {
    ucs_gstream_helper_t super;
    shared_t             *shared;
    uint64_t             word;
    uint64_t             enough;   /* Stores by itself after so many calls */
    int                  is_moving;/* Until then it says that it moves things */
    int                  moves_late; /* It says that when it is called last,
                                        before the stream sleeps, and not again
                                        until it was called to poll */
    int                  has_moved;  /* It has */
    _Atomic unsigned     polls;
    _Atomic unsigned     lasts;
    _Atomic unsigned     parks;
    _Atomic unsigned     ends;
    _Atomic unsigned     after_end;/* Calls since the last end */
    pthread_mutex_t      *lock;    /* None may be held in a call, or NULL */
    _Atomic unsigned     locked;   /* Calls in which it was */
} scene_t;


static int help(void *arg, ucs_gstream_help_t when)
{
    scene_t *scene = arg;
    uint64_t there = gstream_util_load(&scene->shared->there);

    atomic_fetch_add(&scene->after_end, 1);
    if (scene->lock != NULL) {
        if (pthread_mutex_trylock(scene->lock) == 0) {
            (void)pthread_mutex_unlock(scene->lock);
        } else {
            atomic_fetch_add(&scene->locked, 1);
        }
    }
    switch (when) {
    case UCS_GSTREAM_HELP_POLL:
        atomic_fetch_add(&scene->polls, 1);
        scene->has_moved = 0;
        break;
    case UCS_GSTREAM_HELP_SLEEP:
        atomic_fetch_add(&scene->lasts, 1);
        CU_ASSERT(!scene->has_moved);
        scene->has_moved = scene->moves_late;
        break;
    case UCS_GSTREAM_HELP_PARK:
        atomic_fetch_add(&scene->parks, 1);
        break;
    case UCS_GSTREAM_HELP_END:
        atomic_fetch_add(&scene->ends, 1);
        atomic_store(&scene->after_end, 0);
        return 0;
    }
    if (there > gstream_util_load(&scene->word)) {
        gstream_util_store(&scene->word, there);
    } else if ((scene->enough > 0) &&
               (atomic_load(&scene->polls) >= scene->enough)) {
        gstream_util_store(&scene->word, 1);
    }
    return scene->is_moving || scene->has_moved;
}

static void scene_init(scene_t *scene)
{
    *scene            = (scene_t) {.word = 0};
    scene->shared     = mmap(NULL, sizeof(*scene->shared),
                             PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                             -1, 0);
    CU_ASSERT_FATAL(scene->shared != MAP_FAILED);
    scene->super.func = help;
    scene->super.arg  = scene;
    scene->super.notify = &scene->shared->notify;
}

static void scene_cleanup(scene_t *scene)
{
    CU_ASSERT_EQUAL(scene->shared->notify.sleepers, 0);
    CU_ASSERT_EQUAL(munmap(scene->shared, sizeof(*scene->shared)), 0);
}

#define SCENE_CASE(_name) \
    ST_CASE_WITH(_name, scene_t, scene, scene_init(scene), \
                 scene_cleanup(scene))

static void scene_wait(scene_t *scene, ucs_gstream_h stream, uint64_t value)
{
    ucs_gstream_cmd_t cmd = {
        .type   = UCS_GSTREAM_CMD_HELP64,
        .u.word = {
            .address = &scene->word,
            .value   = value,
            .helper  = &scene->super
        }
    };

    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, &cmd, 1), UCS_OK);
}

/* A wait ends by what its helper does; then the helper is told once */
SCENE_CASE(drives)
{
    ucs_gstream_h stream = gstream_util_create();

    scene->enough = 3;
    scene_wait(scene, stream, 1);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT(atomic_load(&scene->polls) >= 3);
    CU_ASSERT(atomic_load(&scene->ends) == 1);
    CU_ASSERT(atomic_load(&scene->after_end) == 0);

    /* What is there already needs no help */
    scene_wait(scene, stream, 1);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT(atomic_load(&scene->ends) == 1);
    CU_ASSERT(atomic_load(&scene->after_end) == 0);
    gstream_util_finish(stream);
}

/* As long as its helper moves something the stream does not sleep */
SCENE_CASE(moves)
{
    ucs_gstream_h stream = gstream_util_create();

    scene->is_moving = 1;
    scene->enough    = LONG_POLLS;
    scene_wait(scene, stream, 1);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT(atomic_load(&scene->polls) >= LONG_POLLS);
    CU_ASSERT(atomic_load(&scene->lasts) == 0);
    gstream_util_finish(stream);
}

/* What it moves when the stream is about to sleep has it poll again first */
SCENE_CASE(moves_late)
{
    ucs_gstream_h stream = gstream_util_create();

    scene->moves_late = 1;
    scene->enough     = LONG_POLLS;
    scene_wait(scene, stream, 1);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT(atomic_load(&scene->polls) >= LONG_POLLS);
    gstream_util_finish(stream);
}

static int is_asleep(const scene_t *scene)
{
    return __atomic_load_n(&scene->shared->notify.sleepers,
                           __ATOMIC_SEQ_CST) > 0;
}

/* A thread that stores the word and wakes the stream, and knows nothing of
 * notifications, wakes one that sleeps until it is notified, and does not look
 * by itself from time to time */
ST_CASE(wake)
{
    gstream_util_t util;
    scene_t scene;
    unsigned i;

    gstream_wrap_reset();
    gstream_wrap_set(&gstream_wrap.no_timeouts, 1);
    scene_init(&scene);
    gstream_util_open(&util);
    for (i = 1; i <= 10; ++i) {
        scene_wait(&scene, util.stream, i);
        while (!is_asleep(&scene)) {
            /* it is about to sleep */
        }
        gstream_util_until_asleep(util.tid);
        gstream_util_let_go(&scene.word, i);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(util.stream), UCS_OK);
        CU_ASSERT(atomic_load(&scene.ends) == i);
    }
    CU_ASSERT(atomic_load(&scene.lasts) >= 10);
    CU_ASSERT(scene.shared->notify.calls >= 10);
    gstream_util_finish(util.stream);
    gstream_wrap_reset();
    scene_cleanup(&scene);
}

/* The other process: it does what it is asked for, and rings */
static void ring_on_demand(shared_t *shared)
{
    uint64_t done = 0;

    while (done < NUM_ROUNDS) {
        if (gstream_util_load(&shared->asked) > done) {
            gstream_util_store(&shared->there, ++done);
            ucs_gstream_notify(&shared->notify);
        } else {
            (void)usleep(10);
        }
    }
}

/* Another process rings, at any moment of a stream that falls asleep */
SCENE_CASE(ring)
{
    ucs_gstream_h stream = gstream_util_create();
    int status           = -1;
    unsigned i;
    pid_t child;

    child = fork();
    if (child == 0) {
        ring_on_demand(scene->shared);
        _exit(0);
    }
    CU_ASSERT_FATAL(child > 0);
    for (i = 1; i <= NUM_ROUNDS; ++i) {
        scene_wait(scene, stream, i);
        if ((i % 4) != 0) {
            while (!is_asleep(scene)) {
                /* it is about to sleep */
            }
        }
        gstream_util_store(&scene->shared->asked, i);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
        CU_ASSERT_EQUAL(gstream_util_load(&scene->word), i);
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT(atomic_load(&scene->ends) == NUM_ROUNDS);
    CU_ASSERT(scene->shared->notify.calls >= (NUM_ROUNDS / 2));
    gstream_util_finish(stream);
}

static void until_parked(void *arg)
{
    scene_t *scene = arg;

    while (atomic_load(&scene->parks) == 0) {
        /* the thread that took this command has parked the wait */
    }
    gstream_util_store(&scene->shared->there, 1);
}

/* The only thread of a group runs another stream: the wait is parked before
 * that, and helped again afterwards. While the thread sleeps the wait is parked
 * as well, and ends by a wake. */
SCENE_CASE(park)
{
    ucs_gstream_group_h group = gstream_util_group(1);
    ucs_gstream_h stream[2]   = {gstream_util_create_on(group, 0),
                                 gstream_util_create_on(group, 0)};
    unsigned parks;

    scene_wait(scene, stream[0], 1);
    gstream_util_func(stream[1], until_parked, scene);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream[0]), UCS_OK);
    CU_ASSERT(atomic_load(&scene->ends) == 1);

    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream[1]), UCS_OK);
    parks = atomic_load(&scene->parks);
    scene_wait(scene, stream[0], 2);
    while (atomic_load(&scene->parks) == parks) {
        /* the thread is about to sleep */
    }
    CU_ASSERT_EQUAL(scene->shared->notify.sleepers, 0);
    gstream_util_let_go(&scene->word, 2);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream[0]), UCS_OK);
    CU_ASSERT(atomic_load(&scene->ends) == 2);
    CU_ASSERT(atomic_load(&scene->lasts) == 0);

    gstream_util_finish(stream[0]);
    gstream_util_finish(stream[1]);
    gstream_util_group_finish(group);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* The thread of a group holds no lock that its streams, or those of others,
 * need while a helper runs, whatever that is called for: it may copy much, and
 * wait for other threads that do */
SCENE_CASE(unlocked)
{
    ucs_gstream_group_h group = gstream_util_group(1);
    ucs_gstream_h stream      = gstream_util_create_on(group, 0);
    ucs_gstream_h other       = gstream_util_create_on(group, 0);
    unsigned i;

    scene->lock = &gstream_group_sched(group)->lock;
    for (i = 1; i <= 10; ++i) {
        scene_wait(scene, stream, i);
        while (atomic_load(&scene->parks) < i) {
            /* the thread is about to sleep, or to run the other stream */
        }
        gstream_util_func(other, nothing, NULL);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(other), UCS_OK);
        gstream_util_let_go(&scene->word, i);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
        CU_ASSERT(atomic_load(&scene->ends) == i);
    }
    CU_ASSERT(atomic_load(&scene->polls) > 0);
    CU_ASSERT(atomic_load(&scene->locked) == 0);
    gstream_util_finish(stream);
    gstream_util_finish(other);
    gstream_util_group_finish(group);
}

/* Nobody sleeps: nobody is notified */
ST_CASE(silent)
{
    ucs_gstream_notify_t notify = {0};

    ucs_gstream_notify(&notify);
    CU_ASSERT_EQUAL(notify.calls, 0);
}

SCENE_CASE(refused)
{
    ucs_gstream_h stream = gstream_util_create();
    ucs_gstream_helper_t helpers[2];
    ucs_gstream_cmd_t cmd = {.type = UCS_GSTREAM_CMD_HELP64};
    unsigned i;

    helpers[0]         = scene->super;
    helpers[1]         = scene->super;
    helpers[0].func    = NULL;
    helpers[1].notify    = NULL;
    cmd.u.word.address = &scene->word;
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, &cmd, 1),
                    UCS_ERR_INVALID_PARAM);
    for (i = 0; i < 2; ++i) {
        cmd.u.word.helper = &helpers[i];
        CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, &cmd, 1),
                        UCS_ERR_INVALID_PARAM);
    }
    cmd.u.word.helper  = &scene->super;
    cmd.u.word.address = NULL;
    CU_ASSERT_EQUAL(ucs_gstream_enqueue(stream, &cmd, 1),
                    UCS_ERR_INVALID_PARAM);
    gstream_util_quiet(0);
    CU_ASSERT_EQUAL(ucs_gstream_query(stream), UCS_OK);
    gstream_util_finish(stream);
}

ST_SUITE("gstream_help")
