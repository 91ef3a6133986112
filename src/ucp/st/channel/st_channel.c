/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_channel.c - contexts, channels, and their messages.
 *
 * The idea of two ends that count is the Channel API's of Choi et al., "GPU-
 * aware Communication with UCX in Parallel Programming Models" (docs/channel.md
 * says what differs).
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "channel/st_channel.h"
#include "core/st_log.h"

#include <ucs/type/status.h>

#include <stdlib.h>
#include <string.h>


const ucp_st_tag_layout_t ucp_st_tag_layout_paper = {
    .type         = {.first = 60, .width = 4},
    .id           = {.first = 32, .width = 28},
    .counter      = {.first = 0, .width = 32},
    .pe           = {.first = 28, .width = 32},
    .msg_counter  = {.first = 0, .width = 28},
    .channel_type = 8,
    .msg_type     = 4,
    .control_type = 12
};

const ucp_st_tag_layout_t ucp_st_tag_layout_charm = {
    .type         = {.first = 0, .width = 4},
    .id           = {.first = 4, .width = 28},
    .counter      = {.first = 32, .width = 32},
    .pe           = {.first = 4, .width = 32},
    .msg_counter  = {.first = 36, .width = 28},
    .channel_type = 8,
    .msg_type     = 4,
    .control_type = 12
};


/* --- Ends of operations */

/* Calls back for a message of a channel. That of a destroyed one was cancelled,
 * whatever became of it. */
static void st_channel_op_done(st_channel_op_t *op)
{
    st_channel_op_tell(op, (op->channel == NULL) ? UCS_ERR_CANCELED :
                                                   op->status);
}

/* The number of a receive that is cancelled when its end is to be moved is free
 * again */
static void st_channel_recv_done(st_channel_op_t *op)
{
    ucp_st_channel_h channel = op->channel;

    if ((channel != NULL) && (channel->note != NULL)) {
        st_channel_waits_end(channel);
    }
    if ((channel != NULL) && (channel->state == ST_CHANNEL_MOVING) &&
        (op->status == UCS_ERR_CANCELED)) {
        st_channel_move_again(channel, op->number);
    }
    st_channel_op_done(op);
}


/* --- Contexts */

/* A mask of a field's bits; 0 if they are not in a tag */
static uint64_t st_channel_bits(const ucp_st_tag_field_t *field, unsigned min,
                                unsigned max)
{
    return ((field->width < min) || (field->width > max) ||
            (field->first > 63) || (field->width > 64 - field->first)) ?
                   0 :
                   st_channel_put(field, st_channel_mask(field));
}

/* What is wrong with a layout; NULL if nothing */
static const char *st_channel_check_layout(const ucp_st_tag_layout_t *layout)
{
    const uint64_t type    = st_channel_bits(&layout->type, 1, 16);
    const uint64_t id      = st_channel_bits(&layout->id, 2, 55);
    const uint64_t counter = st_channel_bits(&layout->counter, 8, 61);
    const uint64_t pe      = st_channel_bits(&layout->pe, 1, 55);
    const uint64_t message = st_channel_bits(&layout->msg_counter, 8, 62);
    const uint64_t types   = type >> (layout->type.first & 63);

    if (!type || !id || !counter || !pe || !message) {
        return "a field is too short or too long, or does not fit";
    }
    if ((type & (id | counter | pe | message)) || (id & counter) ||
        (pe & message)) {
        return "fields overlap";
    }
    if ((layout->channel_type > types) || (layout->msg_type > types) ||
        (layout->control_type > types)) {
        return "a type does not fit into its field";
    }
    if ((layout->channel_type == layout->msg_type) ||
        (layout->channel_type == layout->control_type) ||
        (layout->msg_type == layout->control_type)) {
        return "types are equal";
    }
    return NULL;
}

ucs_status_t
ucp_st_channel_ctx_create(const ucp_st_channel_ctx_params_t *params,
                          ucp_st_channel_ctx_h *ctx_p)
{
    const ucp_st_tag_layout_t *layout = &ucp_st_tag_layout_paper;
    ucp_st_channel_ctx_h ctx;
    ucs_status_t status;
    const char *defect;
    unsigned i;

    if ((params == NULL) || (ctx_p == NULL) ||
        !(params->field_mask & UCP_ST_CHANNEL_CTX_PARAM_FIELD_UCP_WORKER) ||
        (params->ucp_worker == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (params->field_mask & UCP_ST_CHANNEL_CTX_PARAM_FIELD_LAYOUT) {
        layout = &params->layout;
    }
    defect = st_channel_check_layout(layout);
    if (defect != NULL) {
        ucs_error("layout of tags of channels: %s", defect);
        return UCS_ERR_INVALID_PARAM;
    }
    ctx = calloc(1, sizeof(*ctx));
    if (ctx == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    ctx->worker = params->ucp_worker;
    ctx->layout = *layout;
    if (params->field_mask & UCP_ST_CHANNEL_CTX_PARAM_FIELD_ST_WORKER) {
        ctx->st_worker = params->st_worker;
    }
    for (i = 0; i < ST_CHANNEL_BUCKETS; ++i) {
        ucs_list_head_init(&ctx->channels[i]);
    }
    ucs_list_head_init(&ctx->orphans);
    ucs_list_head_init(&ctx->moving);
    ucs_list_head_init(&ctx->early);
    ucs_list_head_init(&ctx->drops);
    ucs_list_head_init(&ctx->told);
    ucs_list_head_init(&ctx->uses);
    ucs_list_head_init(&ctx->pairs);
    status = st_channel_ctrl_init(ctx);
    if (status != UCS_OK) {
        (void)ucp_st_channel_ctx_destroy(ctx);
        return status;
    }
    *ctx_p = ctx;
    return UCS_OK;
}

ucs_status_t ucp_st_channel_ctx_destroy(ucp_st_channel_ctx_h ctx)
{
    st_channel_early_t *early, *next;
    ucp_st_stack_item_t *item;

    if (ctx == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    if ((ctx->num_channels > 0) || !ucs_list_is_empty(&ctx->pairs) ||
        (ctx->num_ops > ctx->num_controls + ucs_list_length(&ctx->drops))) {
        return UCS_ERR_BUSY;
    }
    st_msg_give_up(ctx);
    if (ctx->num_ops > ctx->num_controls) {
        return UCS_ERR_BUSY; /* They have matched, or are to be progressed */
    }
    st_channel_ctrl_cleanup(ctx);
    if (ctx->num_controls > 0) {
        return UCS_ERR_BUSY; /* Something is just arriving */
    }
    st_msg_cleanup(ctx);
    ucs_list_for_each_safe(early, next, &ctx->early, link) {
        free(early);
    }
    while ((item = ctx->unused) != NULL) {
        ctx->unused = item->next;
        free(ucs_container_of(item, st_channel_op_t, item));
    }
    free(ctx);
    return UCS_OK;
}

unsigned ucp_st_channel_progress(ucp_st_channel_ctx_h ctx)
{
    ucp_st_stack_item_t *item = ucp_st_stack_take(&ctx->completed);
    unsigned count            = 0;
    ucp_st_stack_item_t *next;
    ucp_st_channel_h channel;
    size_t num;

    for (; item != NULL; item = next) {
        next = item->next;
        st_channel_op_end(ucs_container_of(item, st_channel_op_t, item));
        ++count;
    }
    /* Callbacks may end what is in the list: each time the first one */
    for (num = ucs_list_length(&ctx->moving);
         (num > 0) && !ucs_list_is_empty(&ctx->moving); --num) {
        channel = ucs_list_head(&ctx->moving, struct ucp_st_channel, moving);
        ucs_list_del(&channel->moving);
        ucs_list_add_tail(&ctx->moving, &channel->moving);
        st_channel_hold(channel);
        count += st_channel_move_progress(channel);
        st_channel_release(channel);
    }
    if (ctx->st_worker != NULL) {
        count += st_channel_stream_progress(ctx);
    }
    if (count == 0) {
        st_channel_waits_progress(ctx);
    }
    return count;
}


/* --- Channels */

static ucs_list_link_t *st_channel_bucket(ucp_st_channel_ctx_h ctx, uint64_t id)
{
    return &ctx->channels[((id * 0x9e3779b97f4a7c15ull) >> 32) %
                          ST_CHANNEL_BUCKETS];
}

ucp_st_channel_h st_channel_find(ucp_st_channel_ctx_h ctx, uint64_t id,
                                 unsigned end)
{
    ucp_st_channel_h channel;

    ucs_list_for_each(channel, st_channel_bucket(ctx, id), link) {
        if ((channel->id == id) && (channel->end == end)) {
            return channel;
        }
    }
    return NULL;
}

/* Tags of what the two ends send: the highest bit of the id says which one */
static void st_channel_set_tags(ucp_st_channel_h channel)
{
    const ucp_st_tag_layout_t *layout = &channel->ctx->layout;
    uint64_t tag = st_channel_put(&layout->type, layout->channel_type) |
                   st_channel_put(&layout->id, channel->id);

    channel->tags[0] = tag;
    channel->tags[1] = tag | (1ull << (layout->id.first + layout->id.width -
                                       1));
}

/* What a stop said that came before its channel */
void st_channel_take_early(ucp_st_channel_h channel)
{
    st_channel_early_t *early, *next;

    ucs_list_for_each_safe(early, next, &channel->ctx->early, link) {
        if ((early->control.id == channel->id) &&
            (early->control.end != channel->end)) {
            ucs_list_del(&early->link);
            st_channel_move_told(channel, &early->control);
            free(early);
        }
    }
}

ucs_status_t st_channel_make(ucp_st_channel_ctx_h ctx,
                             const ucp_st_channel_params_t *params,
                             ucp_st_channel_h *channel_p)
{
    ucp_st_channel_h channel;
    uint64_t mask, id;
    unsigned end;

    if ((ctx == NULL) || (params == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    mask = params->field_mask;
    id   = (mask & UCP_ST_CHANNEL_PARAM_FIELD_ID) ? params->id : 0;
    end  = (mask & UCP_ST_CHANNEL_PARAM_FIELD_END) ? params->end : 0;
    if (end > 1) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (id > st_channel_mask(&ctx->layout.id) / 2) {
        return UCS_ERR_OUT_OF_RANGE;
    }
    if (st_channel_find(ctx, id, end) != NULL) {
        return UCS_ERR_ALREADY_EXISTS;
    }
    channel = calloc(1, sizeof(*channel));
    if (channel == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    channel->ctx  = ctx;
    channel->id   = id;
    channel->end  = end;
    channel->ep   = (mask & UCP_ST_CHANNEL_PARAM_FIELD_EP) ? params->ep : NULL;
    channel->peer = (mask & UCP_ST_CHANNEL_PARAM_FIELD_PEER) ? params->peer :
                                                               NULL;
    st_channel_set_tags(channel);
    ucs_list_head_init(&channel->sends);
    ucs_list_head_init(&channel->recvs);
    ucs_list_head_init(&channel->put_off);
    ucs_list_head_init(&channel->kept);
    kh_init_inplace(st_channel_pairs, &channel->pairs);
    ucs_list_add_tail(st_channel_bucket(ctx, id), &channel->link);
    ++ctx->num_channels;
    *channel_p = channel;
    return UCS_OK;
}

ucs_status_t ucp_st_channel_create(ucp_st_channel_ctx_h ctx,
                                   const ucp_st_channel_params_t *params,
                                   ucp_st_channel_h *channel_p)
{
    ucs_status_t status;

    status = (channel_p == NULL) ? UCS_ERR_INVALID_PARAM :
                                   st_channel_make(ctx, params, channel_p);
    if (status == UCS_OK) {
        st_channel_take_early(*channel_p);
    }
    return status;
}

void st_channel_hold(ucp_st_channel_h channel)
{
    ++channel->holds;
}

/* Operations outlive their channel */
static void st_channel_orphan(ucp_st_channel_h channel, ucs_list_link_t *ops)
{
    st_channel_op_t *op, *next;

    ucs_list_for_each_safe(op, next, ops, link) {
        op->channel = NULL;
        ucs_list_del(&op->link);
        ucs_list_add_tail(&channel->ctx->orphans, &op->link);
    }
}

void st_channel_release(ucp_st_channel_h channel)
{
    if ((--channel->holds > 0) || !channel->is_dead) {
        return;
    }
    /* What a call began that was destroyed by a callback in it */
    st_channel_orphan(channel, &channel->sends);
    st_channel_orphan(channel, &channel->recvs);
    --channel->ctx->num_channels;
    free(channel);
}

void st_channel_cancel(ucp_st_channel_h channel)
{
    ucs_list_link_t recvs;
    st_channel_op_t *op;

    ucs_list_head_init(&recvs);
    ucs_list_splice_tail(&recvs, &channel->recvs);
    ucs_list_head_init(&channel->recvs);
    while (!ucs_list_is_empty(&recvs)) {
        op = ucs_list_head(&recvs, st_channel_op_t, link);
        ucs_list_del(&op->link);
        ucs_list_add_tail(&channel->recvs, &op->link);
        ucp_request_cancel(channel->ctx->worker, op->request);
    }
    if (!ucs_list_is_empty(&channel->put_off) && !channel->is_explicit) {
        /* The last ones: their numbers are free again */
        channel->sent = ucs_list_head(&channel->put_off, st_channel_op_t,
                                      link)->number;
    }
    while (!ucs_list_is_empty(&channel->put_off)) {
        op = ucs_list_head(&channel->put_off, st_channel_op_t, link);
        ucs_list_del(&op->link);
        op->status = UCS_ERR_CANCELED;
        st_channel_op_done(op);
    }
}

ucs_status_t ucp_st_channel_destroy(ucp_st_channel_h channel)
{
    int is_moving;

    if (channel == NULL) {
        return UCS_OK;
    }
    if (channel->num_uses > 0) {
        return UCS_ERR_BUSY;
    }
    ucs_list_del(&channel->link);
    st_channel_waits_end(channel);
    channel->is_dead = 1;
    st_channel_hold(channel);
    is_moving = (channel->state == ST_CHANNEL_MOVING);
    if (is_moving) {
        ucs_list_del(&channel->moving);
        channel->state = ST_CHANNEL_QUIET;
    }
    st_channel_cancel(channel);
    st_channel_orphan(channel, &channel->sends);
    st_channel_orphan(channel, &channel->recvs);
    st_channel_move_cleanup(channel);
    st_channel_stream_cleanup(channel);
    if (is_moving && (channel->quiet_cb != NULL)) {
        channel->quiet_cb(channel->quiet_arg, UCS_ERR_CANCELED, 0);
    }
    st_channel_release(channel);
    return UCS_OK;
}


/* --- Messages */

uint64_t st_channel_tag(ucp_st_channel_h channel, unsigned end, uint64_t number)
{
    const ucp_st_tag_field_t *counter = &channel->ctx->layout.counter;

    return channel->tags[end] |
           st_channel_put(counter, number & st_channel_mask(counter));
}

void st_channel_send_put_off(ucp_st_channel_h channel)
{
    st_channel_op_t *op;
    ucs_status_t status;

    while (!ucs_list_is_empty(&channel->put_off) && !channel->is_dead &&
           !channel->is_stopped) {
        op = ucs_list_head(&channel->put_off, st_channel_op_t, link);
        ucs_list_del(&op->link);
        status = st_channel_op_send(op, &channel->sends, channel->ep);
        if (status != UCS_INPROGRESS) {
            op->status = status;
            st_channel_op_done(op);
        }
    }
}

static int st_channel_is_put_off(ucp_st_channel_h channel)
{
    return channel->is_stopped || (channel->ep == NULL) ||
           !ucs_list_is_empty(&channel->put_off);
}

/* An operation for a message of a number, if the channel can have one */
static ucs_status_t st_channel_op_make(ucp_st_channel_h channel,
                                       const ucp_st_channel_msg_t *msg,
                                       unsigned end, uint64_t number,
                                       st_channel_op_t **op_p)
{
    st_channel_op_t *op;

    if ((msg->buffer == NULL) && (msg->length > 0)) {
        return UCS_ERR_INVALID_PARAM;
    }
    if ((channel->state != ST_CHANNEL_OPEN) || channel->is_dead) {
        return UCS_ERR_BUSY;
    }
    op = st_channel_op_get(channel->ctx, channel, msg);
    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    op->number = number;
    op->tag    = st_channel_tag(channel, end, number);
    *op_p      = op;
    return UCS_OK;
}

/* The channel is held: callbacks in there may destroy it */
static ucs_status_t st_channel_send_number(ucp_st_channel_h channel,
                                           uint64_t number,
                                           const ucp_st_channel_msg_t *msg)
{
    st_channel_op_t *op;
    ucs_status_t status;

    status = st_channel_op_make(channel, msg, channel->end, number, &op);
    if (status != UCS_OK) {
        return status;
    }
    op->done = st_channel_op_done;
    if (st_channel_is_put_off(channel)) {
        ucs_list_add_tail(&channel->put_off, &op->link);
        return UCS_INPROGRESS;
    }
    status = st_channel_op_send(op, &channel->sends, channel->ep);
    if (status != UCS_INPROGRESS) {
        st_channel_op_put(op);
    }
    return status;
}

ucs_status_t ucp_st_channel_send(ucp_st_channel_h channel,
                                 const ucp_st_channel_msg_t *msg)
{
    ucs_status_t status;
    uint64_t number;

    if ((channel == NULL) || (msg == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    /* Taken first: callbacks of other operations in there may send, too */
    number        = channel->sent;
    channel->sent = number + 1;
    st_channel_hold(channel);
    status = st_channel_send_number(channel, number, msg);
    if (UCS_STATUS_IS_ERR(status)) {
        channel->sent = number;
    }
    st_channel_release(channel);
    return status;
}

/* The same */
static ucs_status_t st_channel_recv_number(ucp_st_channel_h channel,
                                           uint64_t number,
                                           const ucp_st_channel_msg_t *msg,
                                           size_t *length_p)
{
    st_channel_op_t *op;
    ucs_status_t status;

    status = st_channel_op_make(channel, msg, !channel->end, number, &op);
    if (status != UCS_OK) {
        return status;
    }
    op->done = st_channel_recv_done;
    status   = st_channel_op_recv(op, &channel->recvs, UINT64_MAX);
    if (status != UCS_INPROGRESS) {
        if ((status == UCS_OK) && (length_p != NULL)) {
            *length_p = op->msg.length;
        }
        st_channel_op_put(op);
    }
    return status;
}

/* A message that came while the end was moved */
static ucs_status_t st_channel_recv_kept(ucp_st_channel_h channel,
                                         const ucp_st_channel_msg_t *msg,
                                         size_t *length_p)
{
    st_channel_kept_t *kept = ucs_list_head(&channel->kept, st_channel_kept_t,
                                            link);
    ucs_status_t status     = UCS_OK;

    if ((msg->buffer == NULL) && (msg->length > 0)) {
        return UCS_ERR_INVALID_PARAM;
    }
    if ((channel->state != ST_CHANNEL_OPEN) || !kept->is_here) {
        return UCS_ERR_BUSY;
    }
    if (kept->length > msg->length) {
        status = UCS_ERR_MESSAGE_TRUNCATED;
    } else if (kept->length > 0) {
        memcpy(msg->buffer, kept->data, kept->length);
    }
    if ((status == UCS_OK) && (length_p != NULL)) {
        *length_p = kept->length;
    }
    ucs_list_del(&kept->link);
    --channel->num_kept;
    free(kept);
    return status;
}

/* The number of the next receive: of those that were cancelled by a move that
 * failed, or the one behind all others */
static uint64_t st_channel_next_recv(ucp_st_channel_h channel)
{
    return (channel->num_again > 0) ? channel->again[0] : channel->received;
}

ucs_status_t ucp_st_channel_recv(ucp_st_channel_h channel,
                                 const ucp_st_channel_msg_t *msg,
                                 size_t *length_p)
{
    int is_again;
    ucs_status_t status;
    uint64_t number;

    if ((channel == NULL) || (msg == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (channel->num_kept > 0) {
        return st_channel_recv_kept(channel, msg, length_p);
    }
    number   = st_channel_next_recv(channel);
    is_again = (channel->num_again > 0);
    if (is_again) {
        st_channel_move_took(channel);
    } else {
        channel->received = number + 1;
    }
    st_channel_hold(channel);
    status = st_channel_recv_number(channel, number, msg, length_p);
    /* A message that was too long is gone */
    if (UCS_STATUS_IS_ERR(status) && (status != UCS_ERR_MESSAGE_TRUNCATED)) {
        if (is_again) {
            (void)st_channel_move_again(channel, number);
        } else {
            channel->received = number;
        }
    }
    st_channel_release(channel);
    return status;
}

/* Whether a number of the caller's is one */
static ucs_status_t st_channel_check_number(ucp_st_channel_h channel,
                                            uint64_t number,
                                            const ucp_st_channel_msg_t *msg)
{
    if ((channel == NULL) || (msg == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (number > st_channel_mask(&channel->ctx->layout.counter)) {
        return UCS_ERR_OUT_OF_RANGE;
    }
    channel->is_explicit = 1;
    return UCS_OK;
}

ucs_status_t ucp_st_channel_send_at(ucp_st_channel_h channel, uint64_t number,
                                    const ucp_st_channel_msg_t *msg)
{
    ucs_status_t status = st_channel_check_number(channel, number, msg);

    if (status == UCS_OK) {
        st_channel_hold(channel);
        status = st_channel_send_number(channel, number, msg);
        st_channel_release(channel);
    }
    return status;
}

ucs_status_t ucp_st_channel_recv_at(ucp_st_channel_h channel, uint64_t number,
                                    const ucp_st_channel_msg_t *msg,
                                    size_t *length_p)
{
    ucs_status_t status = st_channel_check_number(channel, number, msg);

    if (status == UCS_OK) {
        st_channel_hold(channel);
        status = st_channel_recv_number(channel, number, msg, length_p);
        st_channel_release(channel);
    }
    return status;
}

ucs_status_t ucp_st_channel_query(ucp_st_channel_h channel,
                                  ucp_st_channel_attr_t *attr)
{
    uint64_t mask, received;

    if ((channel == NULL) || (attr == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }
    mask     = st_channel_mask(&channel->ctx->layout.counter);
    received = (channel->num_kept > 0) ?
                       ucs_list_head(&channel->kept, st_channel_kept_t,
                                     link)->number :
                       st_channel_next_recv(channel);
    *attr = (ucp_st_channel_attr_t){
        .id         = channel->id,
        .end        = channel->end,
        .sent       = channel->sent & mask,
        .received   = received & mask,
        .num_sends  = ucs_list_length(&channel->sends) +
                      ucs_list_length(&channel->put_off),
        .num_recvs  = ucs_list_length(&channel->recvs),
        .num_kept   = channel->num_kept,
        .is_quiet   = (channel->state == ST_CHANNEL_QUIET),
        .is_put_off = channel->is_stopped || (channel->ep == NULL)
    };
    return UCS_OK;
}
