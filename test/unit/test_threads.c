/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_threads.c - calls of streams and of triggered operations that several
 * threads may make at once, made by two, on objects of their own and on shared
 * ones. For the thread sanitizer; without it this tells what is lost. Those of
 * ucp_st are in test_st_threads.c.
 *
 * Streams: query_type, create, destroy, is_valid, type, enqueue_write64,
 * synchronize, query, group_create, group_destroy, priority_range, poller_add,
 * poller_remove, device_add, device_remove.
 * Triggered operations: iface_is_supported, off_reason, cntr_doorbell,
 * cntr_add, cntr_reset, cntr_read, mem_pack, rkey_unpack, md_stats.
 */
#include "gstream_util.h"
#include "st_caller.h"
#include "trig_util.h"
#include "uct_trig_stats.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define THREADS 2
#define ROUNDS  300

/** A thread. */
typedef struct {
    unsigned            index;
    unsigned            line;    /* of the first that failed, or 0 */
    unsigned            *ended;  /* threads that have; atomic */
    void                (*round)(void *caller, unsigned number);
    pthread_t           thread;
    /* Streams */
    ucs_gstream_group_h group;   /* shared */
    ucs_gstream_h       waiting; /* shared; waits all the time, and polls */
    uint64_t            words[2]; /* a device */
    _Atomic uint64_t    sum;     /* of what was stored there */
    _Atomic unsigned    polls;
    /* Triggered operations */
    trig_t              *trig;   /* shared */
    uct_trig_cntr_h     cntr;
} caller_t;

static void *caller_main(void *arg)
{
    caller_t *caller = arg;
    unsigned i;

    for (i = 0; (i < ROUNDS) && (caller->line == 0); ++i) {
        caller->round(caller, i);
    }
    (void)__atomic_add_fetch(caller->ended, 1, __ATOMIC_ACQ_REL);
    return NULL;
}

/* The main thread does something else until they end */
static void run_threads(caller_t *callers, void (*round)(void*, unsigned),
                        void (*other)(caller_t *caller))
{
    unsigned ended = 0;
    unsigned i;

    for (i = 0; i < THREADS; ++i) {
        callers[i].index = i;
        callers[i].round = round;
        callers[i].ended = &ended;
        CU_ASSERT_FATAL(pthread_create(&callers[i].thread, NULL, caller_main,
                                       &callers[i]) == 0);
    }
    while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) < THREADS) {
        other(&callers[0]);
    }
    for (i = 0; i < THREADS; ++i) {
        CU_ASSERT(pthread_join(callers[i].thread, NULL) == 0);
        CU_ASSERT(callers[i].line == 0);
        if (callers[i].line != 0) {
            printf("  thread %u: line %u\n", i, callers[i].line);
        }
    }
}

static int poll_count(void *arg)
{
    caller_t *caller = arg;

    atomic_fetch_add(&caller->polls, 1);
    return 1; /* the stream does not sleep */
}

static void device_store(void *arg, size_t offset, uint64_t value)
{
    caller_t *caller = arg;

    atomic_fetch_add(&caller->sum, value + offset);
}

static void run_device(caller_t *caller, ucs_gstream_h stream)
{
    uint64_t before = atomic_load(&caller->sum);

    CHECK_OK(caller, ucs_gstream_device_add(caller->words,
                                            sizeof(caller->words), device_store,
                                            caller));
    CHECK_OK(caller, ucs_gstream_enqueue_write64(stream, &caller->words[1], 5));
    CHECK_OK(caller, ucs_gstream_synchronize(stream));
    CHECK_OK(caller, ucs_gstream_device_remove(caller->words));
    CHECK(caller, atomic_load(&caller->sum) == before + 5 + sizeof(uint64_t));
    CHECK(caller, caller->words[1] == 0);
}

/* A stream of the shared group, and one of a group of the thread's own */
static void run_stream(caller_t *caller, unsigned number)
{
    ucs_gstream_group_params_t group_params = {.field_mask = 0};
    ucs_gstream_params_t params             = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_GROUP |
                      UCS_GSTREAM_PARAM_FIELD_PRIORITY,
        .group      = caller->group
    };
    int least, greatest;
    ucs_gstream_h stream;

    CHECK_OK(caller, ucs_gstream_priority_range(&least, &greatest));
    params.priority = (number % 2) ? least : greatest;
    if (number % 2) {
        CHECK_OK(caller, ucs_gstream_group_create(&group_params,
                                                  &params.group));
    }
    CHECK_OK(caller, ucs_gstream_create(&params, &stream));
    if (caller->line != 0) {
        return;
    }
    CHECK(caller, ucs_gstream_is_valid(stream));
    run_device(caller, stream);
    CHECK_OK(caller, ucs_gstream_destroy(stream));
    if (number % 2) {
        CHECK_OK(caller, ucs_gstream_group_destroy(params.group));
    }
}

static void stream_round(void *arg, unsigned number)
{
    caller_t *caller            = arg;
    ucs_gstream_poller_t poller = {.poll = poll_count, .arg = caller};
    ucs_gstream_type_attr_t attr;
    unsigned polls;

    CHECK_OK(caller, ucs_gstream_query_type(UCS_GSTREAM_TYPE_HOST, &attr));
    CHECK(caller, attr.name[0] != '\0');
    CHECK(caller, ucs_gstream_is_valid(caller->waiting));
    CHECK(caller, ucs_gstream_type(caller->waiting) == UCS_GSTREAM_TYPE_HOST);
    CHECK(caller, ucs_gstream_query(caller->waiting) == UCS_INPROGRESS);
    CHECK_OK(caller, ucs_gstream_poller_add(&poller));
    run_stream(caller, number);
    CHECK_OK(caller, ucs_gstream_poller_remove(&poller));
    polls = atomic_load(&caller->polls);
    CHECK(caller, atomic_load(&caller->polls) == polls);
}

static void stream_other(caller_t *caller)
{
    CU_ASSERT(ucs_gstream_type(caller->waiting) == UCS_GSTREAM_TYPE_HOST);
}

ST_CASE(streams)
{
    caller_t callers[THREADS] = {{.index = 0}};
    ucs_gstream_group_h group = gstream_util_group(1);
    ucs_gstream_h waiting     = gstream_util_create();
    uint64_t gate             = 0;
    unsigned i;

    gstream_util_wait(waiting, &gate, 1);
    for (i = 0; i < THREADS; ++i) {
        callers[i].group   = group;
        callers[i].waiting = waiting;
    }
    run_threads(callers, stream_round, stream_other);
    gstream_util_let_go(&gate, 1);
    gstream_util_finish(waiting);
    gstream_util_group_finish(group);
}

/* The counter of the thread's own: nothing is lost beside the other's. What is
 * read is as fresh as the last progress, which is the main thread's. */
static void run_cntr(caller_t *caller, unsigned number)
{
    uint64_t value;

    CHECK_OK(caller, uct_trig_cntr_reset(caller->cntr));
    CHECK_OK(caller, uct_trig_cntr_add(caller->cntr, 3));
    CHECK_OK(caller, uct_trig_cntr_add(caller->cntr, number + 1));
    do {
        value = number + 4;
        CHECK_OK(caller, uct_trig_cntr_read(caller->cntr, &value));
    } while (value != number + 4);
    (void)uct_trig_cntr_doorbell(caller->cntr);
}

static void trig_round(void *arg, unsigned number)
{
    caller_t *caller = arg;
    trig_t *trig     = caller->trig;
    uint8_t key[UCT_TRIG_RKEY_PACKED_LEN];
    char reason[UCT_TRIG_REASON_MAX];
    uct_trig_md_stats_t stats;
    uct_trig_rkey_t rkey;
    ucs_status_t status;
    uint64_t value;

    CHECK(caller, uct_trig_iface_is_supported(trig->pair.a.iface));
    uct_trig_off_reason(reason, sizeof(reason));
    CHECK(caller, reason[0] == '\0');
    CHECK_OK(caller, uct_trig_md_stats(trig->pair.a.md, &stats));
    CHECK(caller, stats.registered.count > 0);
    uct_trig_mem_pack(trig->b_mem, key);
    CHECK_OK(caller, uct_trig_rkey_unpack(key, sizeof(key), &rkey));
    CHECK(caller, rkey.address == (uintptr_t)trig->b_buffer);
    run_cntr(caller, number);
    /* Shared */
    CHECK_OK(caller, uct_trig_cntr_add(trig->trigger, 1));
    CHECK_OK(caller, uct_trig_cntr_read(trig->trigger, &value));
    (void)uct_trig_cntr_doorbell(trig->trigger);
    if ((number % 8) == 0) {
        status = uct_trig_cntr_reset(trig->trigger);
        /* The other one may have added as much again before it is read */
        CHECK(caller, (status == UCS_OK) || (status == UCS_ERR_IO_ERROR));
    }
}

/* Operations of the same interfaces are posted, fire and complete meanwhile */
static void trig_other(caller_t *caller)
{
    trig_barrier(caller->trig);
}

TRIG_CASE(trig, NULL)
{
    caller_t callers[THREADS] = {{.index = 0}};
    unsigned i;

    for (i = 0; i < THREADS; ++i) {
        callers[i].trig = trig;
        CU_ASSERT_FATAL(uct_trig_cntr_create(trig->pair.a.iface,
                                             &callers[i].cntr) == UCS_OK);
    }
    run_threads(callers, trig_round, trig_other);
    CU_ASSERT(uct_trig_cntr_reset(trig->trigger) == UCS_OK);
    CU_ASSERT(uct_trig_cntr_add(trig->trigger, 2) == UCS_OK);
    CU_ASSERT(trig_count(trig, trig->trigger) == 2);
    for (i = 0; i < THREADS; ++i) {
        CU_ASSERT(uct_trig_cntr_destroy(callers[i].cntr) == UCS_OK);
    }
}

ST_SUITE("threads")
