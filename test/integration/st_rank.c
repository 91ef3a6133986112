/* SPDX-License-Identifier: BSD-3-Clause */
/* st_rank.c - one rank of a group. */
#include "st_rank.h"
#include "st_any.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A rank that waits without a library call looks up this often, ms */
#define ST_RANK_IDLE_SLICE 1000


/* The first to end the group says why */
static void st_rank_end(st_rank_t *me, st_world_end_t end, const char *format,
                        va_list ap)
{
    st_world_t *world = me->world;
    uint32_t goes_on  = ST_WORLD_GOES_ON;
    char text[ST_WORLD_TEXT];

    vsnprintf(text, sizeof(text), format, ap);
    if (__atomic_compare_exchange_n(&world->end, &goes_on, ST_WORLD_CLAIMED, 0,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        snprintf(world->reason, ST_WORLD_REASON, "rank %d of %d (%s), at %s: "
                 "%s", me->index, me->count,
                 me->params->as_threads ? "thread" : "process",
                 world->rank[me->index].where, text);
        __atomic_store_n(&world->end, end, __ATOMIC_RELEASE);
        if (me->params->end != NULL) {
            me->params->end(me);
        }
    }
    (void)fflush(NULL);
    _exit(EXIT_FAILURE);
}

void st_rank_fail(st_rank_t *me, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    st_rank_end(me, ST_WORLD_FAILED, format, ap);
    va_end(ap);
    _exit(EXIT_FAILURE);
}

void st_rank_skip(st_rank_t *me, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    st_rank_end(me, ST_WORLD_SKIPPED, format, ap);
    va_end(ap);
    _exit(EXIT_FAILURE);
}

void st_rank_status(st_rank_t *me, ucs_status_t status, ucs_status_t expected,
                    const char *what)
{
    if (status != expected) {
        st_rank_fail(me, "%s: \"%s\", expected \"%s\"", what,
                     ucs_status_string(status), ucs_status_string(expected));
    }
}

void st_rank_at(st_rank_t *me, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(me->world->rank[me->index].where, ST_WORLD_TEXT, format, ap);
    va_end(ap);
}

void st_rank_alive(st_rank_t *me)
{
    __atomic_add_fetch(&me->world->epoch, 1, __ATOMIC_ACQ_REL);
}

void st_rank_pause(st_rank_t *me)
{
    static const uint32_t never;

    if ((me->node.worker != NULL) &&
        (ucp_st_worker_progress(me->node.worker) > 0)) {
        return;
    }
    st_world_sleep(&never, 0, 1);
}

/* By something else than memory that all see */
static void st_rank_meet_far(st_rank_t *me, int is_idle)
{
    static const uint32_t never;

    while (!me->params->meet(me)) {
        if (is_idle || (me->node.worker == NULL) ||
            (ucp_st_worker_progress(me->node.worker) == 0)) {
            st_world_sleep(&never, 0, 1);
        }
    }
}

static void st_rank_meet(st_rank_t *me, int is_idle)
{
    st_world_t *world   = me->world;
    uint32_t generation = __atomic_load_n(&world->generation,
                                          __ATOMIC_ACQUIRE);

    if (me->params->meet != NULL) {
        st_rank_meet_far(me, is_idle);
        return;
    }
    if (__atomic_add_fetch(&world->arrived, 1, __ATOMIC_ACQ_REL) ==
        (uint32_t)me->count) {
        __atomic_store_n(&world->arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&world->generation, generation + 1, __ATOMIC_RELEASE);
        st_rank_alive(me);
        st_world_wake(&world->generation);
        return;
    }
    while (__atomic_load_n(&world->generation, __ATOMIC_ACQUIRE) ==
           generation) {
        if (is_idle || (me->node.worker == NULL)) {
            st_world_sleep(&world->generation, generation, ST_RANK_IDLE_SLICE);
        } else if (ucp_st_worker_progress(me->node.worker) == 0) {
            st_world_sleep(&world->generation, generation, 1);
        }
    }
}

void st_rank_barrier(st_rank_t *me)
{
    st_rank_meet(me, 0);
}

void st_rank_barrier_idle(st_rank_t *me)
{
    st_rank_meet(me, 1);
}

ucs_gstream_h st_rank_stream(st_rank_t *me, int number)
{
    ST_CHECK(me, (number >= 0) && (number < ST_RANK_MAX_STREAMS));
    if (me->streams[number] == NULL) {
        ST_OK(me, st_any_stream(&me->streams[number]));
    }
    return me->streams[number];
}

ucp_st_queue_h st_rank_queue(st_rank_t *me, st_node_t *node, int number)
{
    ucp_st_queue_params_t params = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM,
        .stream     = st_rank_stream(me, number)
    };
    ucp_st_queue_h queue         = NULL;

    ST_OK(me, ucp_st_queue_create(node->worker, &params, &queue));
    return queue;
}

/* With the lanes as they should be; no other thread reads the environment */
static ucs_status_t st_rank_worker_create(st_node_t *node, const char *lanes)
{
    ucp_st_worker_params_t params = {.field_mask = 0};
    const char *value             = getenv("UCX_ST_LANES");
    char *old                     = (value == NULL) ? NULL : strdup(value);
    ucs_status_t status;

    if (lanes == NULL) {
        free(old);
        return ucp_st_worker_create(&params, &node->worker);
    }
    setenv("UCX_ST_LANES", lanes, 1);
    status = ucp_st_worker_create(&params, &node->worker);
    if (old != NULL) {
        setenv("UCX_ST_LANES", old, 1);
    } else {
        unsetenv("UCX_ST_LANES");
    }
    free(old);
    return status;
}

static void st_rank_publish(st_rank_t *me, st_node_t *node)
{
    void *address = NULL;
    size_t length = 0;

    ST_OK(me, ucp_st_worker_get_address(node->worker, &address, &length));
    ST_CHECK(me, length <= ST_WORLD_ADDRESS);
    memcpy(me->world->rank[me->index].address, address, length);
    me->world->rank[me->index].length = length;
    ucp_st_worker_release_address(node->worker, address);
}

static void st_rank_connect(st_rank_t *me, st_node_t *node)
{
    const st_world_t *world = me->world;
    ucp_st_worker_attr_t attr;
    int i;

    for (i = 0; i < me->count; ++i) {
        ST_OK(me, ucp_st_peer_create(node->worker, world->rank[i].address,
                                     world->rank[i].length, &node->peers[i]));
    }
    ST_OK(me, ucp_st_worker_query(node->worker, &attr));
    node->base = attr.stats;
}

ucs_status_t st_rank_open(st_rank_t *me, st_node_t *node, const char *lanes)
{
    ucs_status_t status = UCS_OK;
    int i;

    /* Threads take turns: they share the environment, which another one may
     * still read for what it does before it comes here */
    st_rank_at(me, "opening a worker (lanes: %s)",
               (lanes == NULL) ? "as set" : lanes);
    memset(node, 0, sizeof(*node));
    if (me->params->as_threads) {
        st_rank_barrier(me);
    }
    for (i = 0; i < me->count; ++i) {
        if (i == me->index) {
            status = st_rank_worker_create(node, lanes);
        }
        if (me->params->as_threads) {
            st_rank_barrier(me);
        }
    }
    if (status != UCS_OK) {
        node->worker = NULL;
        return status;
    }
    st_rank_publish(me, node);
    st_rank_barrier(me);
    st_rank_connect(me, node);
    st_rank_barrier(me);
    return UCS_OK;
}

void st_rank_close(st_rank_t *me, st_node_t *node)
{
    int i;

    st_rank_at(me, "closing a worker");
    for (i = 0; i < me->count; ++i) {
        ucp_st_peer_destroy(node->peers[i]);
    }
    ST_OK(me, ucp_st_worker_destroy(node->worker));
    node->worker = NULL;
    st_rank_barrier_idle(me);
}

void st_rank_settle(st_rank_t *me, st_node_t *node)
{
    const ucp_st_stats_t *base = &node->base;
    ucp_st_worker_attr_t attr;

    for (;;) {
        ST_OK(me, ucp_st_worker_query(node->worker, &attr));
        if ((attr.stats.ops == base->ops) &&
            (attr.stats.entries == base->entries) &&
            ((attr.stats.cntrs == base->cntrs) || node->has_fifos)) {
            break;
        }
        st_rank_at(me, "waiting for what is left: %lu operations, %lu entries, "
                   "%lu counters; at first %lu, %lu, %lu", attr.stats.ops,
                   attr.stats.entries, attr.stats.cntrs, base->ops,
                   base->entries, base->cntrs);
        (void)ucp_st_worker_progress(node->worker);
        st_rank_pause(me);
    }
    st_rank_at(me, "the barrier after its end");
    st_rank_barrier(me);
}

static void st_rank_streams_destroy(st_rank_t *me)
{
    int i;

    st_rank_at(me, "destroying streams");
    for (i = 0; i < ST_RANK_MAX_STREAMS; ++i) {
        if (me->streams[i] != NULL) {
            ST_OK(me, ucs_gstream_synchronize(me->streams[i]));
            ST_OK(me, ucs_gstream_destroy(me->streams[i]));
        }
    }
}

void st_rank_run(st_rank_t *me)
{
    me->world->rank[me->index].pid = getpid();
    ST_OK(me, st_rank_open(me, &me->node, NULL));
    me->params->main(me);
    st_rank_at(me, "the barrier at the end");
    st_rank_barrier(me);
    st_rank_close(me, &me->node);
    st_rank_streams_destroy(me);
}
