/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_st_make.c - operations of the st tests. */
#include "perftest_st.h"

#include <stdlib.h>

/* How long an operation is tried to be freed: more than the library lets a
 * card's access last, and than it takes to declare a peer dead */
#define PERFTEST_ST_FREE_NS 30000000000ull

/* Kinds of messages, for their tags */
typedef enum {
    PERFTEST_ST_DATA,
    PERFTEST_ST_ACK
} perftest_st_kind_t;


/* What an operation is made of, and where it goes */
typedef struct perftest_st_new {
    perftest_st_use_t  *use;
    perftest_st_kind_t kind;
    unsigned           slot;
    int                is_send;
    void               *data;
    size_t             size;
} perftest_st_new_t;


/* Different for each pair of a run; runs of different tests are told apart by
 * the scope */
static uint64_t perftest_st_tag(const perftest_channel_t *channel,
                                const perftest_st_new_t *new)
{
    int from_server = (channel->run->side->is_server == new->is_send);

    return ((uint64_t)channel->index << 32) | ((uint64_t)new->kind << 24) |
           ((uint64_t)from_server << 16) | new->slot;
}

static const char *perftest_st_what(const perftest_st_new_t *new)
{
    if (new->kind == PERFTEST_ST_ACK) {
        return new->is_send ? "send of an acknowledgement" :
                              "receive of an acknowledgement";
    }
    return new->is_send ? "send" : "receive";
}

static ucs_status_t perftest_st_op_init(perftest_channel_t *channel,
                                        const perftest_st_new_t *new)
{
    perftest_run_t *run       = channel->run;
    perftest_side_t *side     = run->side;
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER |
                      UCP_ST_OP_PARAM_FIELD_TAG |
                      UCP_ST_OP_PARAM_FIELD_SCOPE |
                      UCP_ST_OP_PARAM_FIELD_MODE,
        .buffer     = new->data,
        .length     = new->size,
        .peer       = side->peer,
        .tag        = perftest_st_tag(channel, new),
        .scope      = (uint64_t)(run->test - perftest_tests),
        .mode       = run->test->mode
    };

    new->use->what = perftest_st_what(new);
    return (new->is_send ? ucp_st_send_init :
                           ucp_st_recv_init)(side->st, &params, &new->use->op);
}

/* An operation for each of the channel's buffers of one direction */
static ucs_status_t perftest_st_make_slots(perftest_channel_t *channel,
                                           perftest_st_use_t *uses, int is_send)
{
    perftest_buffer_t *buffers = is_send ? channel->send : channel->recv;
    ucs_status_t status        = (uses == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
    perftest_st_new_t new      = {.kind = PERFTEST_ST_DATA, .is_send = is_send};

    for (; (new.slot < channel->slots) && (status == UCS_OK); ++new.slot) {
        new.use  = &uses[new.slot];
        new.data = buffers[new.slot].data;
        new.size = channel->run->size;
        status   = perftest_st_op_init(channel, &new);
    }
    return status;
}

static ucs_status_t perftest_st_make_acks(perftest_st_flow_t *flow)
{
    perftest_channel_t *channel = flow->channel;
    ucs_status_t status         = UCS_OK;
    perftest_st_new_t new       = {
        .kind    = PERFTEST_ST_ACK,
        .is_send = (channel->role == PERFTEST_ROLE_RECEIVER),
        .size    = sizeof(flow->words[0])
    };

    flow->num_acks = (channel->group == 0) ? 1 :
                     channel->slots / channel->group;
    for (; (new.slot < flow->num_acks) && (status == UCS_OK); ++new.slot) {
        new.use  = &flow->acks[new.slot];
        new.data = &flow->words[new.slot];
        status   = perftest_st_op_init(channel, &new);
    }
    return status;
}

static ucs_status_t perftest_st_make_uses(perftest_st_flow_t *flow)
{
    perftest_channel_t *channel = flow->channel;
    ucs_status_t status         = UCS_OK;

    if (channel->send != NULL) {
        flow->sends = calloc(channel->slots, sizeof(*flow->sends));
        status      = perftest_st_make_slots(channel, flow->sends, 1);
    }
    if ((status == UCS_OK) && (channel->recv != NULL)) {
        flow->recvs = calloc(channel->slots, sizeof(*flow->recvs));
        status      = perftest_st_make_slots(channel, flow->recvs, 0);
    }
    if ((status == UCS_OK) &&
        ((channel->send == NULL) || (channel->recv == NULL))) {
        status = perftest_st_make_acks(flow);
    }
    return status;
}

static void perftest_st_collect(const perftest_st_use_t *uses, unsigned count,
                                ucp_st_op_h *ops, size_t *ops_count)
{
    unsigned i;

    for (i = 0; (uses != NULL) && (i < count); ++i) {
        ops[(*ops_count)++] = uses[i].op;
    }
}

ucs_status_t perftest_st_flow_create(perftest_channel_t *channel,
                                     ucp_st_op_h *ops, size_t *count)
{
    perftest_st_flow_t *flow = calloc(1, sizeof(*flow));
    ucs_status_t status;

    if (flow == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    flow->channel   = channel;
    flow->stream    = &channel->run->side->streams[channel->index];
    channel->engine = flow;
    if (channel->run->test->rma != PERFTEST_RMA_NONE) {
        return perftest_rma_create(flow);
    }
    status = perftest_st_make_uses(flow);
    if (status == UCS_OK) {
        perftest_st_collect(flow->sends, channel->slots, ops, count);
        perftest_st_collect(flow->recvs, channel->slots, ops, count);
        perftest_st_collect(flow->acks, flow->num_acks, ops, count);
    }
    return status;
}

/* An operation that failed is busy while its buffer is read or written */
static ucs_status_t perftest_st_free(perftest_side_t *side, ucp_st_op_h op)
{
    uint64_t start = perftest_now();
    unsigned idle  = 0;
    ucs_status_t status;

    while (((status = ucp_st_op_free(op)) == UCS_ERR_BUSY) &&
           ((perftest_now() - start) < PERFTEST_ST_FREE_NS)) {
        perftest_side_progress(side);
        perftest_idle(idle++);
    }
    return status;
}

static ucs_status_t perftest_st_free_uses(perftest_side_t *side,
                                          perftest_st_use_t *uses,
                                          unsigned count)
{
    ucs_status_t result = UCS_OK;
    ucs_status_t status;
    unsigned i;

    for (i = 0; (uses != NULL) && (i < count); ++i) {
        if (uses[i].op != NULL) {
            status = perftest_st_free(side, uses[i].op);
            result = (status == UCS_OK) ? result : status;
        }
    }
    return result;
}

ucs_status_t perftest_st_flow_destroy(perftest_st_flow_t *flow)
{
    ucs_status_t status = UCS_OK;
    perftest_side_t *side;
    ucs_status_t next;

    if (flow == NULL) {
        return UCS_OK;
    }
    side   = flow->channel->run->side;
    status = perftest_st_free_uses(side, flow->sends, flow->channel->slots);
    next   = perftest_st_free_uses(side, flow->recvs, flow->channel->slots);
    status = (status == UCS_OK) ? next : status;
    next   = perftest_st_free_uses(side, flow->acks, flow->num_acks);
    status = (status == UCS_OK) ? next : status;
    next   = perftest_rma_destroy(flow);
    status = (status == UCS_OK) ? next : status;
    if (status != UCS_OK) {
        /* The library may still write there */
        return status;
    }
    free(flow->sends);
    free(flow->recvs);
    flow->channel->engine = NULL;
    free(flow);
    return UCS_OK;
}

static const perftest_st_use_t *perftest_st_find(const perftest_st_use_t *uses,
                                                 unsigned count, ucp_st_op_h op)
{
    unsigned i;

    for (i = 0; (uses != NULL) && (i < count); ++i) {
        if (uses[i].op == op) {
            return &uses[i];
        }
    }
    return NULL;
}

const perftest_st_use_t *perftest_st_flow_find(const perftest_st_flow_t *flow,
                                               ucp_st_op_h op)
{
    unsigned slots = flow->channel->slots;
    const perftest_st_use_t *use;

    use = perftest_st_find(flow->sends, slots, op);
    if (use == NULL) {
        use = perftest_st_find(flow->recvs, slots, op);
    }
    return (use != NULL) ? use :
           perftest_st_find(flow->acks, flow->num_acks, op);
}
