/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gstream_group.c - groups of threads: creation, places, priorities. */
#include "gstream_util.h"
#include "st_cunit.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST_COMMANDS 50
#define TEST_LOG_MAX  1000
#define TEST_CPUS     64

/* What is refused */

static void test_group_refused(const ucs_gstream_group_params_t *params)
{
    ucs_gstream_group_h group = (ucs_gstream_group_h)&group;

    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_group_create(params, &group),
                    UCS_ERR_INVALID_PARAM);
    gstream_util_quiet(0);
    CU_ASSERT_PTR_EQUAL(group, (ucs_gstream_group_h)&group);
}

ST_CASE(bad_group)
{
    unsigned absent[]                 = {1000000, CPU_SETSIZE - 1};
    ucs_gstream_group_params_t params = {
        .field_mask = UCS_GSTREAM_GROUP_PARAM_FIELD_NUM_THREADS
    };

    test_group_refused(NULL);
    test_group_refused(&params);
    params.num_threads = UCS_GSTREAM_GROUP_MAX_THREADS + 1;
    test_group_refused(&params);
    params.num_threads = 1;
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_group_create(&params, NULL),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_group_destroy(NULL), UCS_ERR_INVALID_PARAM);
    gstream_util_quiet(0);

    params.field_mask |= UCS_GSTREAM_GROUP_PARAM_FIELD_NAME;
    test_group_refused(&params);
    params.field_mask = UCS_GSTREAM_GROUP_PARAM_FIELD_CPUS;
    test_group_refused(&params);
    params.cpus.list = &absent[0];
    test_group_refused(&params);
    params.cpus.count = 1;
    test_group_refused(&params);
    if (sysconf(_SC_NPROCESSORS_CONF) < CPU_SETSIZE) {
        params.cpus.list = &absent[1];
        test_group_refused(&params);
    }
}

ST_CASE(group_settings)
{
    static const char *const bad[][2] = {
        {"UCX_GSTREAM_SPIN", "many"},
        {"UCX_GSTREAM_GROUP_THREADS", "few"},
        {"UCX_GSTREAM_GROUP_THREADS", "0"},
        {"UCX_GSTREAM_GROUP_THREADS", "1025"},
        {"UCX_GSTREAM_TURN_TIME", "long"}
    };
    ucs_gstream_group_params_t params = {0};
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(bad); ++i) {
        setenv(bad[i][0], bad[i][1], 1);
        test_group_refused(&params);
        unsetenv(bad[i][0]);
    }
}

ST_CASE(bad_stream)
{
    static const unsigned cpus[] = {0, 1000000};
    ucs_gstream_group_h group    = gstream_util_group(1);
    ucs_gstream_params_t params  = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_GROUP
    };
    int least, greatest;

    gstream_util_refused(&params, UCS_ERR_INVALID_PARAM);
    params.group      = group;
    params.cpus.list  = cpus;
    params.cpus.count = 1;
    params.field_mask = UCS_GSTREAM_PARAM_FIELD_GROUP |
                        UCS_GSTREAM_PARAM_FIELD_CPUS;
    gstream_util_refused(&params, UCS_ERR_INVALID_PARAM);
    params.field_mask = UCS_GSTREAM_PARAM_FIELD_CPUS;
    params.cpus.count = 0;
    gstream_util_refused(&params, UCS_ERR_INVALID_PARAM);
    params.cpus.count = 2;
    gstream_util_refused(&params, UCS_ERR_INVALID_PARAM);
    params.cpus.list = NULL;
    gstream_util_refused(&params, UCS_ERR_INVALID_PARAM);

    CU_ASSERT_EQUAL(ucs_gstream_priority_range(&least, &greatest), UCS_OK);
    CU_ASSERT(greatest < 0);
    CU_ASSERT(least > 0);
    params.field_mask = UCS_GSTREAM_PARAM_FIELD_PRIORITY;
    params.priority   = least + 1;
    gstream_util_refused(&params, UCS_ERR_INVALID_PARAM);
    params.priority   = greatest - 1;
    params.field_mask = UCS_GSTREAM_PARAM_FIELD_PRIORITY |
                        UCS_GSTREAM_PARAM_FIELD_GROUP;
    gstream_util_refused(&params, UCS_ERR_INVALID_PARAM);
    gstream_util_quiet(1);
    CU_ASSERT_EQUAL(ucs_gstream_priority_range(NULL, &greatest),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_priority_range(&least, NULL),
                    UCS_ERR_INVALID_PARAM);
    gstream_util_quiet(0);

    /* What was refused has left nothing in the group */
    gstream_util_group_finish(group);
}


/* What is in use stays */

typedef struct {
    ucs_gstream_h       own;
    ucs_gstream_h       sibling;
    ucs_gstream_h       idle;    /* Gone after the command */
    ucs_gstream_group_h group;
    ucs_status_t        statuses[6];
} test_busy_t;

static void test_busy_try(void *arg)
{
    test_busy_t *busy = arg;

    busy->statuses[0] = ucs_gstream_synchronize(busy->own);
    busy->statuses[1] = ucs_gstream_synchronize(busy->sibling);
    busy->statuses[2] = ucs_gstream_destroy(busy->own);
    busy->statuses[3] = ucs_gstream_group_destroy(busy->group);
    busy->statuses[4] = ucs_gstream_query(busy->sibling);
    busy->statuses[5] = ucs_gstream_destroy(busy->idle);
}

static void test_busy(unsigned num_threads)
{
    ucs_gstream_group_h group = gstream_util_group(num_threads);
    volatile uint64_t gate    = 0;
    uint64_t runs             = 0;
    test_busy_t busy          = {
        .own     = gstream_util_create_on(group, 0),
        .sibling = gstream_util_create_on(group, 0),
        .idle    = gstream_util_create_on(group, 0),
        .group   = group
    };

    gstream_util_wait(busy.sibling, &gate, 1);
    gstream_util_func(busy.sibling, gstream_util_count, &runs);
    gstream_util_quiet(1);
    gstream_util_func(busy.own, test_busy_try, &busy);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(busy.own), UCS_OK);
    gstream_util_quiet(0);
    CU_ASSERT_EQUAL(busy.statuses[0], UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(busy.statuses[1], UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(busy.statuses[2], UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(busy.statuses[3], UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(busy.statuses[4], UCS_INPROGRESS);
    CU_ASSERT_EQUAL(busy.statuses[5], UCS_OK);

    CU_ASSERT_EQUAL(ucs_gstream_destroy(busy.sibling), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucs_gstream_group_destroy(group), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucs_gstream_destroy(busy.own), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_group_destroy(group), UCS_ERR_BUSY);
    gstream_util_let_go(&gate, 1);
    gstream_util_finish(busy.sibling);
    CU_ASSERT_EQUAL(runs, 1);
    gstream_util_group_finish(group);
}

ST_CASE(in_use)
{
    unsigned i;

    for (i = 1; i <= 3; ++i) {
        test_busy(i);
    }
}

/* A command of a stream may wait for streams of other groups, and for those
 * that have threads of their own. */
static void test_synchronize_other(void *arg)
{
    ucs_gstream_h *others = arg;
    unsigned i;

    for (i = 0; i < 2; ++i) {
        if (ucs_gstream_synchronize(others[i]) == UCS_OK) {
            others[i] = NULL;
        }
    }
}

ST_CASE(across_groups)
{
    ucs_gstream_group_h first  = gstream_util_group(1);
    ucs_gstream_group_h second = gstream_util_group(1);
    ucs_gstream_h stream       = gstream_util_create_on(first, 0);
    ucs_gstream_h others[2]    = {gstream_util_create_on(second, 0),
                                  gstream_util_create()};
    ucs_gstream_h left[2]      = {others[0], others[1]};
    uint64_t runs[2]           = {0};

    gstream_util_func(others[0], gstream_util_count, &runs[0]);
    gstream_util_func(others[1], gstream_util_count, &runs[1]);
    gstream_util_func(stream, test_synchronize_other, left);
    gstream_util_finish(stream);
    CU_ASSERT_PTR_NULL(left[0]);
    CU_ASSERT_PTR_NULL(left[1]);
    CU_ASSERT_EQUAL(runs[0] + runs[1], 2);
    gstream_util_finish(others[0]);
    gstream_util_finish(others[1]);
    gstream_util_group_finish(first);
    gstream_util_group_finish(second);
}


/* Where threads run, what they are called, which signals they take */

typedef struct {
    cpu_set_t         cpus;
    char              name[32];
    unsigned          unblocked;
    unsigned          faults; /* Signals of faults that are not blocked */
    pid_t             tid;
    volatile uint64_t *meeting; /* Counts the threads that are here */
    uint64_t          count;    /* For so many it waits */
} test_place_t;

static void test_place_look(void *arg)
{
    test_place_t *place = arg;
    sigset_t mask;

    sched_getaffinity(0, sizeof(place->cpus), &place->cpus);
    pthread_getname_np(pthread_self(), place->name, sizeof(place->name));
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    place->unblocked = !sigismember(&mask, SIGINT) +
                       !sigismember(&mask, SIGALRM) +
                       !sigismember(&mask, SIGTERM) +
                       !sigismember(&mask, SIGCHLD) +
                       !sigismember(&mask, SIGUSR1);
    place->faults    = !sigismember(&mask, SIGSEGV) +
                       !sigismember(&mask, SIGBUS) +
                       !sigismember(&mask, SIGFPE) +
                       !sigismember(&mask, SIGILL);
    place->tid       = gstream_util_tid();
    __atomic_fetch_add(place->meeting, 1, __ATOMIC_SEQ_CST);
    while (gstream_util_load(place->meeting) < place->count) {
        sched_yield();
    }
}

/* The processors that this process may use; how many. */
static unsigned test_cpus_get(unsigned *cpus)
{
    unsigned count = 0;
    cpu_set_t set;
    unsigned cpu;

    CU_ASSERT_EQUAL(sched_getaffinity(0, sizeof(set), &set), 0);
    for (cpu = 0; (cpu < CPU_SETSIZE) && (count < TEST_CPUS); ++cpu) {
        if (CPU_ISSET(cpu, &set)) {
            cpus[count++] = cpu;
        }
    }
    CU_ASSERT_FATAL(count > 0);
    return count;
}

/* As many streams as threads meet in functions, so each has another one. */
static void test_places_run(const ucs_gstream_group_params_t *params,
                            test_place_t *places, unsigned count)
{
    volatile uint64_t meeting = 0;
    ucs_gstream_h streams[8];
    ucs_gstream_group_h group;
    unsigned i;

    CU_ASSERT_EQUAL_FATAL(ucs_gstream_group_create(params, &group), UCS_OK);
    for (i = 0; i < count; ++i) {
        places[i].meeting = &meeting;
        places[i].count   = count;
        streams[i]        = gstream_util_create_on(group, 0);
        gstream_util_func(streams[i], test_place_look, &places[i]);
    }
    for (i = 0; i < count; ++i) {
        gstream_util_finish(streams[i]);
    }
    gstream_util_group_finish(group);
}

/* Thread i of 5, found by its name, runs on the i-th processor alone. */
ST_CASE(affinity)
{
    static test_place_t places[5];
    unsigned cpus[TEST_CPUS];
    unsigned count = test_cpus_get(cpus);
    ucs_gstream_group_params_t params = {
        .field_mask  = UCS_GSTREAM_GROUP_PARAM_FIELD_NUM_THREADS |
                       UCS_GSTREAM_GROUP_PARAM_FIELD_CPUS |
                       UCS_GSTREAM_GROUP_PARAM_FIELD_NAME,
        .num_threads = ST_CUNIT_COUNT(places),
        .cpus        = {cpus, count},
        .name        = "a-long-name-of-threads"
    };
    unsigned seen = 0;
    unsigned i, index;

    test_places_run(&params, places, ST_CUNIT_COUNT(places));
    for (i = 0; i < ST_CUNIT_COUNT(places); ++i) {
        CU_ASSERT_EQUAL_FATAL(strncmp(places[i].name, "a-long-nam-", 11), 0);
        index = (unsigned)atoi(places[i].name + 11);
        CU_ASSERT_FATAL(index < ST_CUNIT_COUNT(places));
        CU_ASSERT(!(seen & (1u << index)));
        seen |= 1u << index;
        CU_ASSERT_EQUAL(CPU_COUNT(&places[i].cpus), 1);
        CU_ASSERT(CPU_ISSET(cpus[index % count], &places[i].cpus));
        CU_ASSERT_EQUAL(places[i].unblocked, 0);
    }
}

/* The number of threads comes from the setting, and they run where the caller
 * may. */
ST_CASE(defaults)
{
    static test_place_t places[3];
    ucs_gstream_group_params_t params = {0};
    cpu_set_t set;
    unsigned i;

    CU_ASSERT_EQUAL(sched_getaffinity(0, sizeof(set), &set), 0);
    setenv("UCX_GSTREAM_GROUP_THREADS", "3", 1);
    test_places_run(&params, places, ST_CUNIT_COUNT(places));
    unsetenv("UCX_GSTREAM_GROUP_THREADS");
    for (i = 0; i < ST_CUNIT_COUNT(places); ++i) {
        CU_ASSERT_EQUAL(strncmp(places[i].name, "st-exec-", 8), 0);
        CU_ASSERT(CPU_EQUAL(&places[i].cpus, &set));
    }
    test_places_run(&params, places, 1);
}

/* A thread of a stream's own may run on all of its processors, has a name, and
 * leaves signals to others, whose mask is as it was */
ST_CASE(own_thread)
{
    volatile uint64_t meeting = 0;
    test_place_t place        = {
        .meeting = &meeting
    };
    unsigned cpus[TEST_CPUS];
    unsigned count              = test_cpus_get(cpus);
    ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_CPUS,
        .cpus       = {cpus, count}
    };
    ucs_gstream_h stream;
    sigset_t mask;

    for (; params.cpus.count > 0; --params.cpus.count) {
        CU_ASSERT_EQUAL_FATAL(ucs_gstream_create(&params, &stream), UCS_OK);
        gstream_util_func(stream, test_place_look, &place);
        gstream_util_finish(stream);
        CU_ASSERT_EQUAL((size_t)CPU_COUNT(&place.cpus), params.cpus.count);
        CU_ASSERT(CPU_ISSET(cpus[params.cpus.count - 1], &place.cpus));
        CU_ASSERT_EQUAL(strncmp(place.name, "st-host-", 8), 0);
        CU_ASSERT_EQUAL(place.unblocked, 0);
        CU_ASSERT_EQUAL(place.faults, 4);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    CU_ASSERT_FALSE(sigismember(&mask, SIGTERM));
}


/* Which stream goes first. One thread, which a function holds up until all is
 * enqueued; its log names the streams that ran. */

typedef struct {
    volatile uint64_t held; /* 1 while the function runs */
    volatile uint64_t gate; /* 1 ends it */
    unsigned          length;
    int               ids[TEST_LOG_MAX];
} test_log_t;

typedef struct {
    test_log_t *log;
    int        id;
} test_mark_t;

static void test_block(void *arg)
{
    test_log_t *log = arg;

    gstream_util_store(&log->held, 1);
    while (gstream_util_load(&log->gate) == 0) {
        sched_yield();
    }
}

/* Empties the log, and returns once the stream holds its thread up. */
static void test_hold(ucs_gstream_h stream, test_log_t *log)
{
    memset(log, 0, sizeof(*log));
    gstream_util_func(stream, test_block, log);
    while (gstream_util_load(&log->held) == 0) {
        sched_yield();
    }
}

static void test_mark(void *args)
{
    const test_mark_t *mark = args;

    mark->log->ids[mark->log->length++] = mark->id;
}

static void test_mark_enqueue(ucs_gstream_h stream, test_log_t *log, int id)
{
    test_mark_t mark = {log, id};

    gstream_util_launch(stream, test_mark, &mark, sizeof(mark));
}

/* A group of one thread, each turn of which is one command. */
static ucs_gstream_group_h test_strict_group(void)
{
    ucs_gstream_group_h group;

    setenv("UCX_GSTREAM_TURN_TIME", "0", 1);
    group = gstream_util_group(1);
    unsetenv("UCX_GSTREAM_TURN_TIME");
    return group;
}

/* The most urgent one first, and equal ones as they came, whatever the order in
 * which they were created. */
ST_CASE(priorities)
{
    static test_log_t log;
    ucs_gstream_group_h group = gstream_util_group(1);
    ucs_gstream_h blocker     = gstream_util_create_on(group, 0);
    ucs_gstream_h streams[2][32];
    int least, greatest, count, i;

    CU_ASSERT_EQUAL(ucs_gstream_priority_range(&least, &greatest), UCS_OK);
    count = least - greatest + 1;
    CU_ASSERT_FATAL((count > 1) && (count <= 32));
    test_hold(blocker, &log);
    for (i = 0; i < count; ++i) {
        streams[0][i] = gstream_util_create_on(group, least - i);
        streams[1][i] = gstream_util_create_on(group, least - i);
    }
    for (i = 0; i < count; ++i) {
        test_mark_enqueue(streams[1][i], &log, 2 * (count - 1 - i));
        test_mark_enqueue(streams[0][i], &log, (2 * (count - 1 - i)) + 1);
    }
    gstream_util_store(&log.gate, 1);

    gstream_util_finish(blocker);
    for (i = 0; i < count; ++i) {
        gstream_util_finish(streams[0][i]);
        gstream_util_finish(streams[1][i]);
    }
    CU_ASSERT_EQUAL((int)log.length, 2 * count);
    for (i = 0; i < (2 * count); ++i) {
        CU_ASSERT_EQUAL(log.ids[i], i);
    }
    gstream_util_group_finish(group);
}

/* Equal streams take turns. */
ST_CASE(turns)
{
    static test_log_t log;
    ucs_gstream_group_h group = test_strict_group();
    ucs_gstream_h blocker     = gstream_util_create_on(group, 0);
    ucs_gstream_h streams[3];
    unsigned i, k;

    test_hold(blocker, &log);
    for (i = 0; i < 3; ++i) {
        streams[i] = gstream_util_create_on(group, 0);
        for (k = 0; k < TEST_COMMANDS; ++k) {
            test_mark_enqueue(streams[i], &log, (int)i);
        }
    }
    gstream_util_store(&log.gate, 1);
    gstream_util_finish(blocker);
    for (i = 0; i < 3; ++i) {
        gstream_util_finish(streams[i]);
    }
    CU_ASSERT_EQUAL(log.length, 3 * TEST_COMMANDS);
    for (k = 0; k < (3 * TEST_COMMANDS); ++k) {
        CU_ASSERT_EQUAL(log.ids[k], (int)(k % 3));
    }
    gstream_util_group_finish(group);
}

/* An urgent stream whose word a command stores goes before the next command of
 * the other; and one that is less urgent goes last. */
ST_CASE(overtake)
{
    static test_log_t log;
    ucs_gstream_group_h group = test_strict_group();
    ucs_gstream_h urgent      = gstream_util_create_on(group, -1);
    ucs_gstream_h normal      = gstream_util_create_on(group, 0);
    ucs_gstream_h modest      = gstream_util_create_on(group, 1);
    volatile uint64_t word    = 0;
    unsigned i;

    test_hold(urgent, &log);
    for (i = 1; i <= TEST_COMMANDS; ++i) {
        test_mark_enqueue(modest, &log, 2);
        test_mark_enqueue(normal, &log, 0);
        gstream_util_write(normal, &word, i);
        gstream_util_wait(urgent, &word, i);
        test_mark_enqueue(urgent, &log, 1);
    }
    gstream_util_store(&log.gate, 1);
    gstream_util_finish(modest);
    gstream_util_finish(normal);
    gstream_util_finish(urgent);
    CU_ASSERT_EQUAL(log.length, 3 * TEST_COMMANDS);
    for (i = 0; i < (2 * TEST_COMMANDS); ++i) {
        CU_ASSERT_EQUAL(log.ids[i], (int)(i % 2));
    }
    for (; i < (3 * TEST_COMMANDS); ++i) {
        CU_ASSERT_EQUAL(log.ids[i], 2);
    }
    gstream_util_group_finish(group);
}

ST_SUITE("gstream_group")
