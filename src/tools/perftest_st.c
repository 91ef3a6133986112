/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_st.c - engine of the st tests: the host enqueues everything ahead of
 * the streams, but never more than two batches, and then waits. Far ahead, uses
 * outnumber the entries of the card, and the library has to post them late.
 */
#include "perftest_st.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* How often the host makes progress while it waits for a batch */
#define PERFTEST_ST_SLICE_NS 1000000


/* Says which operation failed */
static perftest_ret_t perftest_st_fail_op(const perftest_run_t *run,
                                          const perftest_st_flow_t *flow,
                                          ucp_st_op_h op, ucs_status_t status)
{
    const perftest_st_use_t *use = perftest_st_flow_find(flow, op);
    ucp_st_op_attr_t attr        = {.completed = 0};

    if (use == NULL) {
        return perftest_side_fail(run->side, status, PERFTEST_BROKEN,
                                  "%s, %zu bytes, stream %u", run->test->name,
                                  run->size, flow->channel->index);
    }
    (void)ucp_st_op_query(op, &attr);
    return perftest_side_fail(run->side, status, PERFTEST_BROKEN,
                              "%s of %s, %zu bytes, stream %u, use %lu",
                              use->what, run->test->name, run->size,
                              flow->channel->index, attr.completed);
}

/* A call on the flow's queue has failed: which operation is it that did? */
static perftest_ret_t perftest_st_fail_flow(const perftest_run_t *run,
                                            const perftest_st_flow_t *flow,
                                            ucs_status_t status)
{
    ucp_st_queue_error_t error = {.status = UCS_OK, .op = NULL};

    /* It may be waiting for other operations still; this wait, unlike one for
     * the stream, makes the progress that finds out that they fail, too */
    (void)ucp_st_queue_wait(flow->stream->queue, &error);
    return perftest_st_fail_op(run, flow, error.op,
                               (error.status != UCS_OK) ? error.status :
                                                          status);
}

/* Operations of a run at this side: two of each slot, or one and acks */
static size_t perftest_st_max_ops(const perftest_run_t *run)
{
    size_t slots = run->channels[0].slots;

    return run->num_channels * ((2 * slots) + PERFTEST_ST_ACKS);
}

static perftest_ret_t perftest_st_fail_match(const perftest_run_t *run,
                                             const ucp_st_op_h *ops,
                                             const ucs_status_t *statuses,
                                             size_t count)
{
    const perftest_st_use_t *use = NULL;
    size_t i                     = 0;
    unsigned c;

    while ((i + 1 < count) && (statuses[i] == UCS_OK)) {
        ++i;
    }
    for (c = 0; (c < run->num_channels) && (use == NULL); ++c) {
        use = perftest_st_flow_find(run->channels[c].engine, ops[i]);
    }
    return perftest_side_fail(run->side, statuses[i], PERFTEST_REFUSED,
                              "match of a %s of %s, %zu bytes, number %zu of "
                              "%zu%s", (use == NULL) ? "?" : use->what,
                              run->test->name, run->size, i + 1, count,
                              (statuses[i] == UCS_ERR_NO_RESOURCE) ?
                              ": take a smaller -O or -T, or fewer tests" : "");
}

static perftest_ret_t perftest_st_match(perftest_run_t *run,
                                        const ucp_st_op_h *ops, size_t count)
{
    perftest_die_t *die    = &run->side->die;
    ucs_status_t *statuses = malloc(count * sizeof(*statuses));
    perftest_ret_t ret     = PERFTEST_OK;
    ucs_status_t status;
    size_t i;

    if (statuses == NULL) {
        return perftest_fail(PERFTEST_REFUSED, "no memory for %s",
                             run->test->name);
    }
    if (perftest_die_is_at(die, PERFTEST_DIE_MATCH)) {
        perftest_die_now(die->signum);
    }
    for (i = 0; i < count; ++i) {
        statuses[i] = UCS_OK;
    }
    perftest_watch_set(&run->side->watch, "matching");
    status = ucp_st_matchall(ops, count, statuses);
    if (status != UCS_OK) {
        /* Statuses are not written if the check of all failed */
        statuses[count - 1] = (statuses[count - 1] == UCS_OK) ? status :
                              statuses[count - 1];
        ret = perftest_st_fail_match(run, ops, statuses, count);
    }
    free(statuses);
    return ret;
}

static perftest_ret_t perftest_st_create(perftest_run_t *run)
{
    ucp_st_op_h *ops    = calloc(perftest_st_max_ops(run), sizeof(*ops));
    ucs_status_t status = (ops == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
    size_t count        = 0;
    perftest_ret_t ret;
    unsigned i;

    for (i = 0; (i < run->num_channels) && (status == UCS_OK); ++i) {
        status = perftest_st_flow_create(&run->channels[i], ops, &count);
    }
    if (status != UCS_OK) {
        ret = perftest_side_fail(run->side, status, PERFTEST_REFUSED,
                                 "making the operations of %s",
                                 run->test->name);
    } else if (run->test->rma != PERFTEST_RMA_NONE) {
        ret = perftest_rma_connect(run);
    } else {
        ret = perftest_st_match(run, ops, count);
    }
    free(ops);
    return ret;
}

static perftest_ret_t perftest_st_destroy(perftest_run_t *run)
{
    perftest_ret_t ret = PERFTEST_OK;
    ucs_status_t status;
    unsigned i;

    perftest_watch_set(&run->side->watch, "freeing operations");
    for (i = 0; i < run->num_channels; ++i) {
        if (run->channels[i].engine == NULL) {
            continue;
        }
        perftest_st_flow_drain(run->channels[i].engine);
        status = perftest_st_flow_destroy(run->channels[i].engine);
        if (status != UCS_OK) {
            ret = perftest_fail(PERFTEST_BROKEN, "an operation of %s cannot be "
                                "freed: %s", run->test->name,
                                ucs_status_string(status));
        }
    }
    return ret;
}

static perftest_ret_t perftest_st_prepare(perftest_run_t *run)
{
    perftest_st_flow_t *flow;
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < run->num_channels; ++i) {
        flow   = perftest_st_flow(&run->channels[i]);
        status = perftest_st_flow_prepare(flow);
        if (status != UCS_OK) {
            return perftest_st_fail_flow(run, flow, status);
        }
    }
    return PERFTEST_OK;
}

/* Run by streams */
static void perftest_st_post(void *arg)
{
    (void)sem_post(arg);
}

/* Enqueues a batch; '*more' is set if another one is to come */
static perftest_ret_t perftest_st_enqueue(perftest_run_t *run, int *more)
{
    size_t batch = run->side->options->ahead / 2;
    perftest_st_flow_t *flow;
    ucs_status_t status;
    size_t count;
    unsigned i;

    *more = 0;
    for (i = 0; i < run->num_channels; ++i) {
        flow   = perftest_st_flow(&run->channels[i]);
        status = UCS_OK;
        for (count = 0; (count < batch) && (status == UCS_OK) &&
                        (flow->channel->next < run->total); ++count) {
            status = perftest_st_flow_step(flow);
        }
        if (status == UCS_OK) {
            status = ucs_gstream_enqueue_func(flow->stream->stream,
                                              perftest_st_post,
                                              &flow->stream->pace);
        }
        if (status != UCS_OK) {
            return perftest_st_fail_flow(run, flow, status);
        }
        *more |= (flow->channel->next < run->total);
    }
    return PERFTEST_OK;
}

/* Waits until each stream has run one batch more */
static void perftest_st_pace(perftest_run_t *run)
{
    struct timespec time;
    unsigned i;
    int ret;

    for (i = 0; i < run->num_channels; ++i) {
        do {
            perftest_side_progress(run->side);
            (void)clock_gettime(CLOCK_REALTIME, &time);
            time.tv_nsec += PERFTEST_ST_SLICE_NS;
            time.tv_sec  += time.tv_nsec / 1000000000;
            time.tv_nsec %= 1000000000;
            ret           = sem_timedwait(&run->side->streams[i].pace, &time);
        } while (ret != 0);
    }
}

/* Waits for the queues, and for the stamps behind what they hold */
static perftest_ret_t perftest_st_finish(perftest_run_t *run)
{
    perftest_st_flow_t *flow;
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < run->num_channels; ++i) {
        flow   = perftest_st_flow(&run->channels[i]);
        status = ucp_st_queue_wait(flow->stream->queue, NULL);
        if (status == UCS_OK) {
            status = ucs_gstream_synchronize(flow->stream->stream);
        }
        if (status != UCS_OK) {
            return perftest_st_fail_flow(run, flow, status);
        }
    }
    return PERFTEST_OK;
}

static perftest_ret_t perftest_st_run(perftest_run_t *run)
{
    unsigned ahead = 0;
    perftest_ret_t ret;
    int more;

    do {
        ret = perftest_st_enqueue(run, &more);
        if (ret != PERFTEST_OK) {
            return ret;
        }
        if (++ahead == 2) {
            perftest_st_pace(run);
            --ahead;
        }
    } while (more);
    for (; ahead > 0; --ahead) {
        perftest_st_pace(run);
    }
    return perftest_st_finish(run);
}

const char *perftest_st_lane_name(ucp_st_lane_t lane)
{
    static const char *const names[UCP_ST_LANE_LAST] = {
        [UCP_ST_LANE_NONE]   = "none",
        [UCP_ST_LANE_DIRECT] = "direct",
        [UCP_ST_LANE_TRIG]   = "trig",
        [UCP_ST_LANE_HOST]   = "host"
    };

    return ((unsigned)lane < UCP_ST_LANE_LAST) ? names[lane] : "unknown";
}

static const char *perftest_st_lane(const perftest_run_t *run)
{
    const perftest_st_flow_t *flow = run->channels[0].engine;
    const perftest_st_use_t *use   = (flow->sends != NULL) ? flow->sends :
                                                             flow->recvs;
    ucp_st_op_attr_t attr;

    if (run->test->rma != PERFTEST_RMA_NONE) {
        return perftest_rma_lane(flow);
    }
    return (ucp_st_op_query(use->op, &attr) == UCS_OK) ?
           perftest_st_lane_name(attr.lane) : "unknown";
}

const perftest_engine_t perftest_st_engine = {
    .create  = perftest_st_create,
    .prepare = perftest_st_prepare,
    .run     = perftest_st_run,
    .destroy = perftest_st_destroy,
    .lane    = perftest_st_lane
};
