/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_tag.c - engine of the tag tests, the baseline: a host that sends and
 * receives tagged messages of UCP over the worker that ucp_st uses, too.
 */
#include "perftest_side.h"

#include <stdlib.h>
#include <string.h>


/* A channel of this engine */
typedef struct perftest_tag_flow {
    perftest_channel_t *channel;
    void               **sends;   /* Requests of each slot; NULL: none under way
                                     */
    void               **recvs;
    void               *ack;
    uint64_t           word;      /* Payload of the acknowledgement */
    int                is_active; /* A ping is under way, or an acknowledgement
                                     is */
    size_t             part_end;  /* Iteration that the acknowledgement is
                                     behind */
    ucs_status_t       status;
} perftest_tag_flow_t;

/* Message of a channel: 'is_ack' and direction make the tag */
typedef struct perftest_tag_msg {
    void   **request;
    void   *data;
    size_t length;
    int    is_ack;
} perftest_tag_msg_t;


/* Does something if it can; returns non-zero if it did */
typedef int (*perftest_tag_step_t)(perftest_tag_flow_t *flow);


static ucp_tag_t perftest_tag_tag(const perftest_tag_flow_t *flow, int is_ack,
                                  int from_server)
{
    return ((ucp_tag_t)flow->channel->index << 8) |
           ((ucp_tag_t)is_ack << 1) | (ucp_tag_t)from_server;
}

static void perftest_tag_posted(perftest_tag_flow_t *flow, void **request,
                                ucs_status_ptr_t ptr)
{
    *request = NULL;
    if (UCS_PTR_IS_ERR(ptr)) {
        flow->status = UCS_PTR_STATUS(ptr);
    } else if (UCS_PTR_IS_PTR(ptr)) {
        *request = ptr;
    }
}

static void perftest_tag_send(perftest_tag_flow_t *flow,
                              const perftest_tag_msg_t *msg)
{
    const ucp_request_param_t param = {.op_attr_mask = 0};
    perftest_side_t *side           = flow->channel->run->side;

    perftest_tag_posted(flow, msg->request,
                        ucp_tag_send_nbx(side->ep, msg->data, msg->length,
                                         perftest_tag_tag(flow, msg->is_ack,
                                                          side->is_server),
                                         &param));
}

static void perftest_tag_recv(perftest_tag_flow_t *flow,
                              const perftest_tag_msg_t *msg)
{
    const ucp_request_param_t param = {.op_attr_mask = 0};
    perftest_side_t *side           = flow->channel->run->side;

    perftest_tag_posted(flow, msg->request,
                        ucp_tag_recv_nbx(side->worker, msg->data, msg->length,
                                         perftest_tag_tag(flow, msg->is_ack,
                                                          !side->is_server),
                                         UINT64_MAX, &param));
}

static void perftest_tag_send_slot(perftest_tag_flow_t *flow, unsigned slot)
{
    const perftest_tag_msg_t msg = {
        .request = &flow->sends[slot],
        .data    = flow->channel->send[slot].data,
        .length  = flow->channel->run->size
    };

    perftest_tag_send(flow, &msg);
}

static void perftest_tag_recv_slot(perftest_tag_flow_t *flow, unsigned slot)
{
    const perftest_tag_msg_t msg = {
        .request = &flow->recvs[slot],
        .data    = flow->channel->recv[slot].data,
        .length  = flow->channel->run->size
    };

    perftest_tag_recv(flow, &msg);
}

static perftest_tag_msg_t perftest_tag_ack(perftest_tag_flow_t *flow)
{
    perftest_tag_msg_t msg = {
        .request = &flow->ack,
        .data    = &flow->word,
        .length  = sizeof(flow->word),
        .is_ack  = 1
    };

    return msg;
}

static int perftest_tag_is_done(perftest_tag_flow_t *flow, void **request)
{
    ucs_status_t status;

    if (*request == NULL) {
        return 1;
    }
    status = ucp_request_check_status(*request);
    if (status == UCS_INPROGRESS) {
        return 0;
    }
    if (status != UCS_OK) {
        flow->status = status;
    }
    ucp_request_free(*request);
    *request = NULL;
    return 1;
}

static int perftest_tag_all_done(perftest_tag_flow_t *flow, void **requests)
{
    unsigned i;

    for (i = 0; i < flow->channel->slots; ++i) {
        if (!perftest_tag_is_done(flow, &requests[i])) {
            return 0;
        }
    }
    return 1;
}

/* What comes before an iteration */
static void perftest_tag_begin(perftest_tag_flow_t *flow)
{
    perftest_channel_t *channel = flow->channel;
    perftest_die_t *die         = &channel->run->side->die;

    if ((channel->index == 0) && perftest_die_is_iteration(die)) {
        perftest_die_now(die->signum);
    }
    if (channel->next == channel->run->warmup) {
        channel->stamps[0] = perftest_now();
    }
}

static void perftest_tag_end(perftest_tag_flow_t *flow)
{
    perftest_channel_t *channel = flow->channel;

    if (channel->next == channel->run->total) {
        channel->stamps[1] = perftest_now();
    }
}

static int perftest_tag_ping(perftest_tag_flow_t *flow)
{
    perftest_channel_t *channel = flow->channel;

    if (!flow->is_active) {
        if (channel->next == channel->run->total) {
            return 0;
        }
        perftest_tag_begin(flow);
        perftest_tag_recv_slot(flow, 0);
        perftest_tag_send_slot(flow, 0);
        flow->is_active = 1;
        return 1;
    }
    if (!perftest_tag_is_done(flow, flow->recvs) ||
        !perftest_tag_is_done(flow, flow->sends)) {
        return 0;
    }
    flow->is_active = 0;
    ++channel->next;
    perftest_tag_end(flow);
    return 1;
}

static int perftest_tag_pong(perftest_tag_flow_t *flow)
{
    perftest_channel_t *channel = flow->channel;

    if (!perftest_tag_is_done(flow, flow->sends)) {
        return 0;
    }
    if (channel->next == channel->run->total) {
        flow->is_active = 0;
        return 0;
    }
    if (!perftest_tag_is_done(flow, flow->recvs)) {
        return 0;
    }
    perftest_tag_begin(flow);
    if (channel->next + 1 < channel->run->total) {
        perftest_tag_recv_slot(flow, 0);
    }
    perftest_tag_send_slot(flow, 0);
    ++channel->next;
    return 1;
}

/* At the end of a part: is everything there, and acknowledged? */
static int perftest_tag_drain(perftest_tag_flow_t *flow)
{
    if (!perftest_tag_all_done(flow, flow->sends) ||
        !perftest_tag_is_done(flow, &flow->ack)) {
        return 0;
    }
    flow->is_active = 0;
    perftest_tag_end(flow);
    return 1;
}

static int perftest_tag_sender(perftest_tag_flow_t *flow)
{
    perftest_channel_t *channel  = flow->channel;
    const perftest_tag_msg_t ack = perftest_tag_ack(flow);
    unsigned count;

    if (!flow->is_active) {
        if (channel->next == channel->run->total) {
            return 0;
        }
        flow->part_end = perftest_channel_part_end(channel);
        perftest_tag_recv(flow, &ack);
        flow->is_active = 1;
    }
    for (count = 0; (count < channel->slots) &&
                    (channel->next < flow->part_end); ++count) {
        if (!perftest_tag_is_done(flow,
                                  &flow->sends[channel->next %
                                               channel->slots])) {
            return count;
        }
        perftest_tag_begin(flow);
        perftest_tag_send_slot(flow, channel->next % channel->slots);
        ++channel->next;
    }
    return (channel->next < flow->part_end) ? 1 : perftest_tag_drain(flow);
}

static int perftest_tag_receiver(perftest_tag_flow_t *flow)
{
    perftest_channel_t *channel  = flow->channel;
    const perftest_tag_msg_t ack = perftest_tag_ack(flow);
    unsigned slot                = channel->next % channel->slots;

    if (flow->is_active) {
        /* An acknowledgement is under way */
        flow->is_active = !perftest_tag_is_done(flow, &flow->ack);
        return !flow->is_active;
    }
    if ((channel->next == channel->run->total) ||
        !perftest_tag_is_done(flow, &flow->recvs[slot])) {
        return 0;
    }
    if ((channel->index == 0) &&
        perftest_die_is_iteration(&channel->run->side->die)) {
        perftest_die_now(channel->run->side->die.signum);
    }
    flow->part_end = perftest_channel_part_end(channel);
    if (channel->next + channel->slots < channel->run->total) {
        perftest_tag_recv_slot(flow, slot);
    }
    if (++channel->next == flow->part_end) {
        perftest_tag_send(flow, &ack);
        flow->is_active = 1;
    }
    return 1;
}

static perftest_ret_t perftest_tag_create(perftest_run_t *run)
{
    perftest_channel_t *channel;
    perftest_tag_flow_t *flow;
    unsigned i;

    for (i = 0; i < run->num_channels; ++i) {
        channel         = &run->channels[i];
        flow            = calloc(1, sizeof(*flow));
        channel->engine = flow;
        if (flow == NULL) {
            return perftest_fail(PERFTEST_REFUSED, "no memory for requests");
        }
        flow->channel = channel;
        flow->sends   = calloc(channel->slots, sizeof(*flow->sends));
        flow->recvs   = calloc(channel->slots, sizeof(*flow->recvs));
        if ((flow->sends == NULL) || (flow->recvs == NULL)) {
            return perftest_fail(PERFTEST_REFUSED, "no memory for requests");
        }
    }
    return PERFTEST_OK;
}

static perftest_ret_t perftest_tag_destroy(perftest_run_t *run)
{
    perftest_tag_flow_t *flow;
    unsigned i;

    for (i = 0; i < run->num_channels; ++i) {
        flow = run->channels[i].engine;
        if (flow != NULL) {
            free(flow->sends);
            free(flow->recvs);
            free(flow);
        }
    }
    return PERFTEST_OK;
}

static perftest_ret_t perftest_tag_fail(perftest_run_t *run,
                                        const perftest_tag_flow_t *flow,
                                        ucs_status_t status)
{
    /* The buffers of requests under way are freed, and these never looked at */
    run->side->is_broken = 1;
    return perftest_side_fail(run->side, status, PERFTEST_BROKEN,
                              "%s, %zu bytes, stream %u, iteration %zu",
                              run->test->name, run->size, flow->channel->index,
                              flow->channel->next);
}

static perftest_ret_t perftest_tag_prepare(perftest_run_t *run)
{
    perftest_channel_t *channel;
    perftest_tag_flow_t *flow;
    unsigned i, slot;

    for (i = 0; i < run->num_channels; ++i) {
        channel      = &run->channels[i];
        flow         = channel->engine;
        flow->status = UCS_OK;
        if ((channel->role != PERFTEST_ROLE_PONG) &&
            (channel->role != PERFTEST_ROLE_RECEIVER)) {
            continue;
        }
        flow->is_active = (channel->role == PERFTEST_ROLE_PONG);
        for (slot = 0; (slot < channel->slots) && (slot < run->total); ++slot) {
            perftest_tag_recv_slot(flow, slot);
        }
        if (flow->status != UCS_OK) {
            return perftest_tag_fail(run, flow, flow->status);
        }
    }
    return PERFTEST_OK;
}

/* Lets each channel do something. Returns non-zero if one did; '*more' is set
 * if one has something left to do. */
static int perftest_tag_step(perftest_run_t *run, int *more)
{
    static const perftest_tag_step_t steps[] = {
        [PERFTEST_ROLE_PING]     = perftest_tag_ping,
        [PERFTEST_ROLE_PONG]     = perftest_tag_pong,
        [PERFTEST_ROLE_SENDER]   = perftest_tag_sender,
        [PERFTEST_ROLE_RECEIVER] = perftest_tag_receiver
    };
    int did = 0;
    perftest_channel_t *channel;
    perftest_tag_flow_t *flow;
    unsigned i;

    *more = 0;
    for (i = 0; i < run->num_channels; ++i) {
        channel = &run->channels[i];
        flow    = channel->engine;
        did    |= steps[channel->role](flow);
        *more  |= flow->is_active || (channel->next < run->total);
    }
    return did;
}

static const perftest_tag_flow_t *perftest_tag_find_failed(perftest_run_t *run)
{
    const perftest_tag_flow_t *flow;
    unsigned i;

    for (i = 0; i < run->num_channels; ++i) {
        flow = run->channels[i].engine;
        if (flow->status != UCS_OK) {
            return flow;
        }
    }
    return NULL;
}

/* Endpoints without error handling, the fastest, tell nothing of a peer that is
 * gone: the connection does */
static perftest_ret_t perftest_tag_check(perftest_run_t *run)
{
    const perftest_tag_flow_t *flow = perftest_tag_find_failed(run);

    if (flow != NULL) {
        return perftest_tag_fail(run, flow, flow->status);
    }
    if (perftest_watch_gone(&run->side->watch) >= 0) {
        return perftest_tag_fail(run, run->channels[0].engine,
                                 UCS_ERR_CONNECTION_RESET);
    }
    return PERFTEST_OK;
}

static perftest_ret_t perftest_tag_run(perftest_run_t *run)
{
    perftest_ret_t ret = PERFTEST_OK;
    unsigned idle      = 0;
    int more;

    do {
        if (perftest_tag_step(run, &more) != 0) {
            idle = 0;
        }
        if (ucp_worker_progress(run->side->worker) != 0) {
            idle = 0;
        } else if (more) {
            perftest_idle(++idle);
            if (idle % 1024 == 0) {
                ret = perftest_tag_check(run);
            }
        }
    } while (more && (ret == PERFTEST_OK));
    return (ret == PERFTEST_OK) ? perftest_tag_check(run) : ret;
}

static const char *perftest_tag_lane(const perftest_run_t *run)
{
    (void)run;
    return "ucp";
}

const perftest_engine_t perftest_tag_engine = {
    .create  = perftest_tag_create,
    .prepare = perftest_tag_prepare,
    .run     = perftest_tag_run,
    .destroy = perftest_tag_destroy,
    .lane    = perftest_tag_lane
};
