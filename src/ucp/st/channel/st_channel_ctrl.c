/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_channel_ctrl.c - messages that contexts tell each other: about ends that
 * are moved, and of ucp_st_msg.h.
 *
 * They are tagged messages of a type of their own. A few receives of any of
 * them are always posted; what comes meanwhile waits in the UCP worker.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "channel/st_channel.h"
#include "core/st_log.h"

#include <ucs/type/status.h>

#include <stdlib.h>
#include <string.h>

#define ST_CHANNEL_CONTROL_ROOM \
    (sizeof(st_channel_control_t) + ST_CHANNEL_CONTROL_MAX)


static uint64_t st_channel_ctrl_tag(ucp_st_channel_ctx_h ctx)
{
    return st_channel_put(&ctx->layout.type, ctx->layout.control_type);
}

/* About an end whose other end is here, or will be */
static void st_channel_ctrl_move(ucp_st_channel_ctx_h ctx,
                                 const st_channel_control_t *control)
{
    ucp_st_channel_h channel = st_channel_find(ctx, control->id, !control->end);
    st_channel_early_t *early;

    if (channel != NULL) {
        st_channel_move_told(channel, control);
        return;
    }
    early = malloc(sizeof(*early));
    if (early == NULL) {
        ucs_error("channel %lu: no memory for what its end %u tells",
                  (unsigned long)control->id, control->end);
        return;
    }
    early->control = *control;
    ucs_list_add_tail(&ctx->early, &early->link);
}

static void st_channel_ctrl_take(ucp_st_channel_ctx_h ctx, const void *data,
                                 size_t length)
{
    st_channel_control_t control;

    if (length < sizeof(control)) {
        ucs_error("channels: a control message of %zu bytes", length);
        return;
    }
    memcpy(&control, data, sizeof(control));
    switch (control.kind) {
    case ST_CHANNEL_STOP:
    case ST_CHANNEL_STOPPED:
        if (control.end <= 1) {
            st_channel_ctrl_move(ctx, &control);
            return;
        }
        break;
    case ST_CHANNEL_META:
        st_msg_take(ctx, &control, (const uint8_t*)data + sizeof(control),
                    length - sizeof(control));
        return;
    default:
        break;
    }
    ucs_error("channels: a control message of kind %u that is not known",
              control.kind);
}

static void st_channel_ctrl_done(st_channel_op_t *op);

/* Posts a receive again and again, until it is not at once complete */
static ucs_status_t st_channel_ctrl_post(st_channel_op_t *op)
{
    ucp_st_channel_ctx_h ctx = op->ctx;
    uint64_t mask            = st_channel_put(&ctx->layout.type,
                                              st_channel_mask(
                                                      &ctx->layout.type));
    ucs_status_t status;

    do {
        op->msg.length = ST_CHANNEL_CONTROL_ROOM;
        status         = st_channel_op_recv(op, &ctx->orphans, mask);
        if (status == UCS_OK) {
            st_channel_ctrl_take(ctx, op->msg.buffer, op->msg.length);
        }
    } while ((status == UCS_OK) || (status == UCS_ERR_MESSAGE_TRUNCATED));
    return status;
}

static void st_channel_ctrl_drop(st_channel_op_t *op)
{
    unsigned i;

    for (i = 0; i < ST_CHANNEL_CONTROLS; ++i) {
        if (op->ctx->controls[i] == op) {
            op->ctx->controls[i] = NULL;
        }
    }
    --op->ctx->num_controls;
    free(op->msg.buffer);
    st_channel_op_put(op);
}

static void st_channel_ctrl_done(st_channel_op_t *op)
{
    ucs_status_t status = op->status;

    if (status == UCS_OK) {
        st_channel_ctrl_take(op->ctx, op->msg.buffer, op->msg.length);
    }
    if (!op->ctx->is_closing) {
        status = st_channel_ctrl_post(op);
        if (status == UCS_INPROGRESS) {
            return;
        }
        ucs_error("channels: control messages cannot be received any more: %s",
                  ucs_status_string(status));
    }
    st_channel_ctrl_drop(op);
}

ucs_status_t st_channel_ctrl_init(ucp_st_channel_ctx_h ctx)
{
    const ucp_st_channel_msg_t none = {.buffer = NULL};
    ucs_status_t status             = UCS_INPROGRESS;
    st_channel_op_t *op;
    unsigned i;

    for (i = 0; (i < ST_CHANNEL_CONTROLS) && (status == UCS_INPROGRESS); ++i) {
        op = st_channel_op_get(ctx, NULL, &none);
        if (op == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        ctx->controls[i] = op;
        ++ctx->num_controls;
        op->done       = st_channel_ctrl_done;
        op->tag        = st_channel_ctrl_tag(ctx);
        op->msg.buffer = malloc(ST_CHANNEL_CONTROL_ROOM);
        status         = (op->msg.buffer == NULL) ? UCS_ERR_NO_MEMORY :
                                                    st_channel_ctrl_post(op);
        if (status != UCS_INPROGRESS) {
            st_channel_ctrl_drop(op);
        }
    }
    return (status == UCS_INPROGRESS) ? UCS_OK : status;
}

void st_channel_ctrl_cleanup(ucp_st_channel_ctx_h ctx)
{
    unsigned i;

    ctx->is_closing = 1;
    for (i = 0; i < ST_CHANNEL_CONTROLS; ++i) {
        if (ctx->controls[i] != NULL) {
            ucp_request_cancel(ctx->worker, ctx->controls[i]->request);
        }
    }
    (void)ucp_st_channel_progress(ctx); /* With an st worker they end here */
}

/* A control message was sent */
static void st_channel_ctrl_sent(st_channel_op_t *op)
{
    free(op->msg.buffer);
    st_channel_op_tell(op, op->status);
}

ucs_status_t st_channel_ctrl_send(ucp_st_channel_ctx_h ctx, ucp_ep_h ep,
                                  const st_channel_control_t *control,
                                  const ucp_st_channel_msg_t *more)
{
    st_channel_op_t *op = st_channel_op_get(ctx, NULL, more);
    ucs_status_t status;
    uint8_t *bytes;

    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    bytes = malloc(sizeof(*control) + more->length);
    if (bytes == NULL) {
        st_channel_op_put(op);
        return UCS_ERR_NO_MEMORY;
    }
    memcpy(bytes, control, sizeof(*control));
    if (more->length > 0) {
        memcpy(bytes + sizeof(*control), more->buffer, more->length);
    }
    op->msg.buffer  = bytes;
    op->msg.length += sizeof(*control);
    op->tag         = st_channel_ctrl_tag(ctx);
    op->done        = st_channel_ctrl_sent;
    status          = st_channel_op_send(op, &ctx->orphans, ep);
    if (status == UCS_INPROGRESS) {
        return UCS_OK;
    }
    op->msg.cb = UCS_STATUS_IS_ERR(status) ? NULL : op->msg.cb;
    op->status = status;
    st_channel_ctrl_sent(op);
    return status;
}
