/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_st_flow.c - what a stream does in the st tests.
 *
 * Ping-pong, for i = 0, 1, ... (R start of the receive, S of the send, W wait):
 *
 *     client:                R0(i)  S0(i)  W(S0)  W(R0)
 *     server: R1(0)  step    W(R1)  R1(i+1)  S1(i)  W(S1)
 *
 * Ready sends are legal in it. S0(0): R1(0) had run when the server came to the
 * step that the client has left. S0(i+1) follows W(R0(i)), which needs S1(i),
 * before which R1(i+1) has run. S1(i) follows W(R1(i)), which needs S0(i),
 * before which R0(i) has run. The last iteration starts no R1, so that every
 * start has its message.
 *
 * Window: message i uses slot i modulo the slots. The receiver starts a slot
 * again when its message is there, and acknowledges all messages of a part (the
 * warm-up, the timed iterations): the sender's time ends when everything has
 * arrived. Of ready sends it acknowledges every half of the window: the sender
 * starts a half again when it knows that its receives have been. The
 * acknowledgement's receive is started before the messages that it is for, and
 * may be sent to by a ready send, too.
 */
#include "perftest_st.h"

#include <stdlib.h>


/* The end of this side may have been asked for in place of what comes now */
static void perftest_st_die_at(perftest_st_flow_t *flow,
                               perftest_die_point_t point)
{
    perftest_die_t *die = &flow->channel->run->side->die;

    if (flow->is_running && perftest_die_is_at(die, point)) {
        /* No wait is before this one: the stream gets to what was started */
        (void)ucs_gstream_synchronize(flow->stream->stream);
        perftest_die_now(die->signum);
    }
}

static ucs_status_t perftest_st_start(perftest_st_flow_t *flow,
                                      perftest_st_use_t *use)
{
    ucs_status_t status;

    perftest_st_die_at(flow, PERFTEST_DIE_START);
    status    = ucp_st_enqueue_start(flow->stream->queue, use->op);
    use->busy = (status == UCS_OK);
    return status;
}

/* Has no effect unless it is started */
static ucs_status_t perftest_st_wait(perftest_st_flow_t *flow,
                                     perftest_st_use_t *use)
{
    ucs_status_t status;

    if (!use->busy) {
        return UCS_OK;
    }
    perftest_st_die_at(flow, PERFTEST_DIE_WAIT);
    status    = ucp_st_enqueue_wait(flow->stream->queue, use->op);
    use->busy = (status != UCS_OK);
    return status;
}

static ucs_status_t perftest_st_wait_all(perftest_st_flow_t *flow,
                                         perftest_st_use_t *uses,
                                         unsigned count)
{
    ucs_status_t status = UCS_OK;
    unsigned i;

    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        status = perftest_st_wait(flow, &uses[i]);
    }
    return status;
}

/* Starts it anew, behind the wait for its last use if there is one */
static ucs_status_t perftest_st_restart(perftest_st_flow_t *flow,
                                        perftest_st_use_t *use)
{
    ucs_status_t status = perftest_st_wait(flow, use);

    return (status == UCS_OK) ? perftest_st_start(flow, use) : status;
}

static ucs_status_t perftest_st_ping(perftest_st_flow_t *flow)
{
    ucs_status_t status;

    status = perftest_st_start(flow, flow->recvs);
    if (status == UCS_OK) {
        status = perftest_st_start(flow, flow->sends);
    }
    if (status == UCS_OK) {
        status = perftest_st_wait(flow, flow->sends);
    }
    return (status == UCS_OK) ? perftest_st_wait(flow, flow->recvs) : status;
}

static ucs_status_t perftest_st_pong(perftest_st_flow_t *flow)
{
    perftest_channel_t *channel = flow->channel;
    ucs_status_t status         = perftest_st_wait(flow, flow->recvs);

    if ((status == UCS_OK) && (channel->next + 1 < channel->run->total)) {
        status = perftest_st_start(flow, flow->recvs);
    }
    if (status == UCS_OK) {
        status = perftest_st_start(flow, flow->sends);
    }
    return (status == UCS_OK) ? perftest_st_wait(flow, flow->sends) : status;
}

/* The acknowledgement that the next message is covered by */
static perftest_st_use_t *perftest_st_ack(perftest_st_flow_t *flow)
{
    perftest_channel_t *channel = flow->channel;
    size_t k                    = channel->next - channel->part;

    return &flow->acks[(channel->group == 0) ? 0 :
                       (k / channel->group) % flow->num_acks];
}

/* True for the first message that an acknowledgement covers */
static int perftest_st_is_first(const perftest_channel_t *channel)
{
    size_t k = channel->next - channel->part;

    return (channel->group == 0) ? (k == 0) : (k % channel->group == 0);
}

static int perftest_st_is_part_end(const perftest_channel_t *channel)
{
    return channel->next + 1 == perftest_channel_part_end(channel);
}

/* And for the last */
static int perftest_st_is_last(const perftest_channel_t *channel)
{
    size_t k = channel->next - channel->part;

    return perftest_st_is_part_end(channel) ||
           ((channel->group != 0) && ((k + 1) % channel->group == 0));
}

static ucs_status_t perftest_st_sender(perftest_st_flow_t *flow)
{
    perftest_channel_t *channel = flow->channel;
    unsigned slots              = channel->slots;
    ucs_status_t status         = UCS_OK;

    if (perftest_st_is_first(channel)) {
        status = perftest_st_restart(flow, perftest_st_ack(flow));
    }
    if (status == UCS_OK) {
        status = perftest_st_restart(flow, &flow->sends[channel->next % slots]);
    }
    if ((status != UCS_OK) || !perftest_st_is_part_end(channel)) {
        return status;
    }
    status = perftest_st_wait_all(flow, flow->sends, slots);
    return (status == UCS_OK) ?
           perftest_st_wait_all(flow, flow->acks, flow->num_acks) : status;
}

static ucs_status_t perftest_st_receiver(perftest_st_flow_t *flow)
{
    perftest_channel_t *channel = flow->channel;
    unsigned slots              = channel->slots;
    perftest_st_use_t *recv     = &flow->recvs[channel->next % slots];
    ucs_status_t status         = perftest_st_wait(flow, recv);

    if ((status == UCS_OK) && (channel->next + slots < channel->run->total)) {
        status = perftest_st_start(flow, recv);
    }
    if ((status == UCS_OK) && perftest_st_is_last(channel)) {
        status = perftest_st_restart(flow, perftest_st_ack(flow));
    }
    if ((status == UCS_OK) && perftest_st_is_part_end(channel)) {
        status = perftest_st_wait_all(flow, flow->acks, flow->num_acks);
    }
    return status;
}

/* Run by streams */
static void perftest_st_stamp(void *arg)
{
    *(uint64_t*)arg = perftest_now();
}

/* Run by streams */
static void perftest_st_die(void *arg)
{
    perftest_die_now(((const perftest_die_t*)arg)->signum);
}

static ucs_status_t perftest_st_func(perftest_st_flow_t *flow,
                                     ucs_gstream_func_t func, void *arg)
{
    return ucs_gstream_enqueue_func(flow->stream->stream, func, arg);
}

/* This side reads the clock */
static int perftest_st_is_timed(const perftest_channel_t *channel)
{
    if (channel->run->test->pattern == PERFTEST_PATTERN_ONE) {
        return !channel->run->side->is_server;
    }
    return (channel->role == PERFTEST_ROLE_PING) ||
           (channel->role == PERFTEST_ROLE_SENDER);
}

/* What comes before an iteration: it may be the end of this side, or the begin
 * of the time */
static ucs_status_t perftest_st_begin(perftest_st_flow_t *flow)
{
    perftest_channel_t *channel = flow->channel;
    perftest_die_t *die         = &channel->run->side->die;
    ucs_status_t status         = UCS_OK;

    if ((channel->index == 0) && perftest_die_is_iteration(die)) {
        status = perftest_st_func(flow, perftest_st_die, die);
    }
    if ((channel->next == 0) || (channel->next == channel->run->warmup)) {
        channel->part = channel->next;
    }
    if ((status == UCS_OK) && (channel->next == channel->run->warmup) &&
        perftest_st_is_timed(channel)) {
        status = perftest_st_func(flow, perftest_st_stamp, &channel->stamps[0]);
    }
    return status;
}

static ucs_status_t perftest_st_end(perftest_st_flow_t *flow)
{
    perftest_channel_t *channel = flow->channel;

    if ((++channel->next < channel->run->total) ||
        !perftest_st_is_timed(channel)) {
        return UCS_OK;
    }
    return perftest_st_func(flow, perftest_st_stamp, &channel->stamps[1]);
}

ucs_status_t perftest_st_flow_step(perftest_st_flow_t *flow)
{
    static ucs_status_t (*const steps[])(perftest_st_flow_t *flow) = {
        [PERFTEST_ROLE_PING]     = perftest_st_ping,
        [PERFTEST_ROLE_PONG]     = perftest_st_pong,
        [PERFTEST_ROLE_SENDER]   = perftest_st_sender,
        [PERFTEST_ROLE_RECEIVER] = perftest_st_receiver
    };
    ucs_status_t status;

    flow->is_running = 1;
    status           = perftest_st_begin(flow);
    if (status == UCS_OK) {
        status = (flow->channel->run->test->rma != PERFTEST_RMA_NONE) ?
                 perftest_rma_step(flow) : steps[flow->channel->role](flow);
    }
    return (status == UCS_OK) ? perftest_st_end(flow) : status;
}

ucs_status_t perftest_st_flow_prepare(perftest_st_flow_t *flow)
{
    perftest_channel_t *channel = flow->channel;
    ucs_status_t status         = UCS_OK;
    unsigned i;

    flow->is_running = 0;
    if ((channel->run->test->rma != PERFTEST_RMA_NONE) ||
        ((channel->role != PERFTEST_ROLE_PONG) &&
         (channel->role != PERFTEST_ROLE_RECEIVER))) {
        return UCS_OK;
    }
    for (i = 0; (i < channel->slots) && (i < channel->run->total) &&
                (status == UCS_OK); ++i) {
        status = perftest_st_start(flow, &flow->recvs[i]);
    }
    /* The streams have got there when the other side may send */
    return (status == UCS_OK) ? ucs_gstream_synchronize(flow->stream->stream) :
                                status;
}

/* Wait for what is started of an array that there may be, whatever fails */
static void perftest_st_drain_uses(perftest_st_flow_t *flow,
                                   perftest_st_use_t *uses, unsigned count)
{
    unsigned i;

    for (i = 0; (uses != NULL) && (i < count); ++i) {
        (void)perftest_st_wait(flow, &uses[i]);
    }
}

void perftest_st_flow_drain(perftest_st_flow_t *flow)
{
    unsigned slots = flow->channel->slots;

    flow->is_running = 0;
    perftest_st_drain_uses(flow, flow->sends, slots);
    perftest_st_drain_uses(flow, flow->recvs, slots);
    perftest_st_drain_uses(flow, flow->acks, flow->num_acks);
    (void)ucp_st_queue_wait(flow->stream->queue, NULL);
    (void)ucs_gstream_synchronize(flow->stream->stream);
}
