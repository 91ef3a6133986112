/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_msg.c - messages whose metadata comes first.
 *
 * The data are a tagged message of a tag that nothing else has at that time.
 * The metadata are the tag and the length; the runtime carries them, or a
 * control message does, that has them in its first bytes and the runtime's
 * header behind them. Metadata that have arrived are handed over from one list
 * by one loop, so that their order is kept and the runtime's function is not
 * called in itself, whatever it calls.
 *
 * The idea is that of GPU messaging with a post entry method in Choi et al.,
 * "GPU-aware Communication with UCX in Parallel Programming Models".
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "channel/st_channel.h"
#include "core/st_log.h"

#include <ucp_st_msg.h>

#include <stdlib.h>
#include <string.h>


_Static_assert(UCP_ST_MSG_HEADER_MAX <= ST_CHANNEL_CONTROL_MAX,
               "a header fits into a control message");

/** Metadata that have come. */
typedef struct st_msg_told {
    ucs_list_link_t     link;
    ucp_st_msg_meta_t   meta;
    size_t              length; /* Of the header */
    _Alignas(16) uint8_t header[];
} st_msg_told_t;


/* --- Tags */

static uint64_t st_msg_next_tag(ucp_st_channel_ctx_h ctx, uint64_t pe)
{
    const ucp_st_tag_layout_t *layout = &ctx->layout;
    uint64_t number = ctx->num_msgs++ & st_channel_mask(&layout->msg_counter);

    return st_channel_put(&layout->type, layout->msg_type) |
           st_channel_put(&layout->pe, pe) |
           st_channel_put(&layout->msg_counter, number);
}

/* Whether a tag can be that of a message, and so of no channel */
static int st_msg_is_tag(ucp_st_channel_ctx_h ctx, uint64_t tag)
{
    const ucp_st_tag_layout_t *layout = &ctx->layout;
    const uint64_t others =
            st_channel_put(&layout->pe, st_channel_mask(&layout->pe)) |
            st_channel_put(&layout->msg_counter,
                           st_channel_mask(&layout->msg_counter));

    return (tag & ~others) == st_channel_put(&layout->type, layout->msg_type);
}


/* --- Data */

static void st_msg_done(st_channel_op_t *op)
{
    st_channel_op_tell(op, op->status);
}

/* UCP has an operation, or is done with it */
static ucs_status_t st_msg_posted(st_channel_op_t *op, ucs_status_t status)
{
    if (status != UCS_INPROGRESS) {
        st_channel_op_put(op);
    }
    return status;
}

/* An operation that sends the data with the next tag */
static ucs_status_t st_msg_op_make(ucp_st_channel_ctx_h ctx, ucp_ep_h ep,
                                   uint64_t pe, const ucp_st_channel_msg_t *msg,
                                   st_channel_op_t **op_p)
{
    st_channel_op_t *op;

    if ((ctx == NULL) || (ep == NULL) || (msg == NULL) ||
        ((msg->buffer == NULL) && (msg->length > 0))) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (pe > st_channel_mask(&ctx->layout.pe)) {
        return UCS_ERR_OUT_OF_RANGE;
    }
    op = st_channel_op_get(ctx, NULL, msg);
    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    op->done = st_msg_done;
    op->tag  = st_msg_next_tag(ctx, pe);
    *op_p    = op;
    return UCS_OK;
}

ucs_status_t ucp_st_msg_send(ucp_st_channel_ctx_h ctx, ucp_ep_h ep, uint64_t pe,
                             const ucp_st_channel_msg_t *msg,
                             ucp_st_msg_meta_t *meta)
{
    ucp_st_msg_meta_t made;
    st_channel_op_t *op;
    ucs_status_t status;

    if (meta == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    status = st_msg_op_make(ctx, ep, pe, msg, &op);
    if (status != UCS_OK) {
        return status;
    }
    made   = (ucp_st_msg_meta_t){.tag = op->tag, .length = msg->length};
    status = st_msg_posted(op, st_channel_op_send(op, &ctx->orphans, ep));
    if (!UCS_STATUS_IS_ERR(status)) {
        *meta = made;
    }
    return status;
}

ucs_status_t ucp_st_msg_recv(ucp_st_channel_ctx_h ctx,
                             const ucp_st_msg_meta_t *meta,
                             const ucp_st_channel_msg_t *msg, size_t *length_p,
                             ucp_st_msg_h *req_p)
{
    st_channel_op_t *op;
    ucs_status_t status;

    if ((ctx == NULL) || (meta == NULL) || (msg == NULL) ||
        ((msg->buffer == NULL) && (msg->length > 0)) ||
        !st_msg_is_tag(ctx, meta->tag)) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (meta->length > msg->length) {
        return UCS_ERR_MESSAGE_TRUNCATED;
    }
    op = st_channel_op_get(ctx, NULL, msg);
    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    op->done       = st_msg_done;
    op->tag        = meta->tag;
    op->msg.length = meta->length;
    status         = st_channel_op_recv(op, &ctx->orphans, UINT64_MAX);
    if ((status == UCS_OK) && (length_p != NULL)) {
        *length_p = op->msg.length;
    }
    if ((status == UCS_INPROGRESS) && (req_p != NULL)) {
        *req_p = (ucp_st_msg_h)op;
    }
    return st_msg_posted(op, status);
}

ucs_status_t ucp_st_msg_cancel(ucp_st_msg_h req)
{
    st_channel_op_t *op = (st_channel_op_t*)req;

    if (op == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    ucp_request_cancel(op->ctx->worker, op->request);
    return UCS_OK;
}

/* UCP ends a receive without room for what came, after it has told the sender:
 * that takes no memory, however long the data are */
ucs_status_t ucp_st_msg_drop(ucp_st_channel_ctx_h ctx,
                             const ucp_st_msg_meta_t *meta)
{
    const ucp_st_channel_msg_t none = {.length = 0};
    st_channel_op_t *op;
    ucs_status_t status;

    if ((ctx == NULL) || (meta == NULL) || !st_msg_is_tag(ctx, meta->tag)) {
        return UCS_ERR_INVALID_PARAM;
    }
    op = st_channel_op_get(ctx, NULL, &none);
    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    op->done = st_channel_op_put;
    op->tag  = meta->tag;
    status   = st_msg_posted(op, st_channel_op_recv(op, &ctx->drops,
                                                    UINT64_MAX));
    return ((status == UCS_INPROGRESS) ||
            (status == UCS_ERR_MESSAGE_TRUNCATED)) ? UCS_OK : status;
}


/* --- Metadata that the library carries */

static void st_msg_hand_over(ucp_st_channel_ctx_h ctx)
{
    st_msg_told_t *told;

    if (ctx->is_posting) {
        return; /* The loop of a call below goes on with it */
    }
    ctx->is_posting = 1;
    while (!ucs_list_is_empty(&ctx->told) && (ctx->post != NULL) &&
           !ctx->is_closing) {
        told = ucs_list_head(&ctx->told, st_msg_told_t, link);
        ucs_list_del(&told->link);
        ctx->post(ctx->post_arg, &told->meta, told->header, told->length);
        free(told);
    }
    ctx->is_posting = 0;
}

void st_msg_take(ucp_st_channel_ctx_h ctx, const st_channel_control_t *control,
                 const void *header, size_t length)
{
    st_msg_told_t *told;

    if (!st_msg_is_tag(ctx, control->id)) {
        ucs_error("messages: metadata with tag 0x%lx, which is none of a "
                  "message", (unsigned long)control->id);
        return;
    }
    told = malloc(sizeof(*told) + length);
    if (told == NULL) {
        ucs_error("messages: no memory for the metadata of one with tag 0x%lx",
                  (unsigned long)control->id);
        return;
    }
    told->meta   = (ucp_st_msg_meta_t){
        .tag    = control->id,
        .length = control->count
    };
    told->length = length;
    memcpy(told->header, header, length);
    ucs_list_add_tail(&ctx->told, &told->link);
    st_msg_hand_over(ctx);
}

ucs_status_t ucp_st_msg_set_post(ucp_st_channel_ctx_h ctx,
                                 ucp_st_msg_post_t post, void *arg)
{
    if (ctx == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }
    ctx->post     = post;
    ctx->post_arg = arg;
    st_msg_hand_over(ctx);
    return UCS_OK;
}

ucs_status_t ucp_st_msg_send_post(ucp_st_channel_ctx_h ctx, ucp_ep_h ep,
                                  uint64_t pe,
                                  const ucp_st_msg_header_t *header,
                                  const ucp_st_channel_msg_t *msg)
{
    st_channel_control_t control = {.kind = ST_CHANNEL_META};
    ucp_st_channel_msg_t more    = {.length = 0};
    st_channel_op_t *op;
    ucs_status_t status;

    if ((header == NULL) || ((header->data == NULL) && (header->length > 0))) {
        return UCS_ERR_INVALID_PARAM;
    }
    if (header->length > UCP_ST_MSG_HEADER_MAX) {
        return UCS_ERR_OUT_OF_RANGE;
    }
    status = st_msg_op_make(ctx, ep, pe, msg, &op);
    if (status != UCS_OK) {
        return status;
    }
    control.id    = op->tag;
    control.count = msg->length;
    more.buffer   = (void*)header->data; /* It is copied */
    more.length   = header->length;
    /* First, so that the receiver may have a buffer ready for the data */
    status = st_channel_ctrl_send(ctx, ep, &control, &more);
    if (status == UCS_OK) {
        status = st_channel_op_send(op, &ctx->orphans, ep);
    }
    return st_msg_posted(op, status);
}


/* --- The end of a context */

void st_msg_give_up(ucp_st_channel_ctx_h ctx)
{
    st_channel_op_t *op, *next;

    ucs_list_for_each_safe(op, next, &ctx->drops, link) {
        ucp_request_cancel(ctx->worker, op->request);
    }
}

void st_msg_cleanup(ucp_st_channel_ctx_h ctx)
{
    st_msg_told_t *told;

    while (!ucs_list_is_empty(&ctx->told)) {
        told = ucs_list_head(&ctx->told, st_msg_told_t, link);
        ucs_list_del(&told->link);
        free(told);
    }
}
