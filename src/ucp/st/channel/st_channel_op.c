/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_channel_op.c - operations that UCP has.
 *
 * UCP calls back for an operation in ucp_worker_progress(), in the call that
 * cancels it, in the one that gives it to UCP, or in that for another one: on
 * UCX's transport to the own worker a message arrives in the call that sends
 * it. Its request is UCP's until then, and is freed behind that by the
 * runtime's thread: no other one may free what that one may cancel.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "channel/st_channel.h"

#include <stdlib.h>


/* The length of a message that is there at once: an older UCP tells it to the
 * callback alone */
#if UCP_API_VERSION >= UCP_VERSION(1, 16)
#  define ST_CHANNEL_RECV_FLAGS UCP_OP_ATTR_FIELD_RECV_INFO
#else
#  define ST_CHANNEL_RECV_FLAGS UCP_OP_ATTR_FLAG_NO_IMM_CMPL
#endif


st_channel_op_t *st_channel_op_get(ucp_st_channel_ctx_h ctx,
                                   ucp_st_channel_h channel,
                                   const ucp_st_channel_msg_t *msg)
{
    ucp_st_stack_item_t *item = ctx->unused;
    st_channel_op_t *op;

    if (item != NULL) {
        ctx->unused = item->next;
        op          = ucs_container_of(item, st_channel_op_t, item);
    } else {
        op = malloc(sizeof(*op));
        if (op == NULL) {
            return NULL;
        }
    }
    *op = (st_channel_op_t){.ctx = ctx, .channel = channel, .msg = *msg};
    ++ctx->num_ops;
    return op;
}

void st_channel_op_put(st_channel_op_t *op)
{
    ucp_st_channel_ctx_h ctx = op->ctx;

    --ctx->num_ops;
    op->item.next = ctx->unused;
    ctx->unused   = &op->item;
}

void st_channel_op_tell(st_channel_op_t *op, ucs_status_t status)
{
    const ucp_st_channel_msg_t msg = op->msg;

    st_channel_op_put(op);
    if (msg.cb != NULL) {
        msg.cb(msg.arg, status, (status == UCS_OK) ? msg.length : 0);
    }
}

void st_channel_op_end(st_channel_op_t *op)
{
    ucs_list_del(&op->link);
    ucp_request_free(op->request);
    op->request = NULL;
    op->done(op);
}

/* UCP may complete an operation in the call that gives it to UCP, and another
 * thread while that call returns: whichever of the two comes second knows of
 * the first one. Acquire and release: the status and length go along. */
static void st_channel_op_completed(st_channel_op_t *op, ucs_status_t status)
{
    op->status = status;
    if (__atomic_exchange_n(&op->stage, ST_CHANNEL_OP_COMPLETED,
                            __ATOMIC_ACQ_REL) == ST_CHANNEL_OP_GIVEN) {
        return; /* The call goes on with it */
    }
    if (op->ctx->st_worker != NULL) {
        ucp_st_stack_push(&op->ctx->completed, &op->item);
    } else {
        st_channel_op_end(op);
    }
}

static void st_channel_on_send(void *request, ucs_status_t status, void *arg)
{
    (void)request; /* That of the operation */
    st_channel_op_completed(arg, status);
}

static void st_channel_on_recv(void *request, ucs_status_t status,
                               const ucp_tag_recv_info_t *info, void *arg)
{
    st_channel_op_t *op = arg;

    (void)request;
    op->msg.length = (status == UCS_OK) ? info->length : 0;
    st_channel_op_completed(op, status);
}

/* What UCP returned. The operation is in a list before others may end it. */
static ucs_status_t st_channel_op_posted(st_channel_op_t *op,
                                         ucs_list_link_t *list,
                                         ucs_status_ptr_t request)
{
    if (request == NULL) {
        return UCS_OK;
    }
    if (UCS_PTR_IS_ERR(request)) {
        return UCS_PTR_STATUS(request);
    }
    op->request = request;
    ucs_list_add_tail(list, &op->link);
    if (__atomic_exchange_n(&op->stage, ST_CHANNEL_OP_POSTED,
                            __ATOMIC_ACQ_REL) == ST_CHANNEL_OP_GIVEN) {
        return UCS_INPROGRESS;
    }
    ucs_list_del(&op->link);
    ucp_request_free(op->request);
    op->request = NULL;
    return op->status;
}

ucs_status_t st_channel_op_send(st_channel_op_t *op, ucs_list_link_t *list,
                                ucp_ep_h ep)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = st_channel_on_send,
        .user_data    = op
    };

    op->stage = ST_CHANNEL_OP_GIVEN;
    return st_channel_op_posted(op, list, ucp_tag_send_nbx(ep, op->msg.buffer,
                                                           op->msg.length,
                                                           op->tag, &param));
}

ucs_status_t st_channel_op_recv(st_channel_op_t *op, ucs_list_link_t *list,
                                uint64_t mask)
{
    ucp_tag_recv_info_t info        = {.length = 0};
    const ucp_request_param_t param = {
        .op_attr_mask       = UCP_OP_ATTR_FIELD_CALLBACK |
                              UCP_OP_ATTR_FIELD_USER_DATA |
                              ST_CHANNEL_RECV_FLAGS,
        .cb.recv            = st_channel_on_recv,
        .user_data          = op,
        .recv_info.tag_info = &info
    };
    ucs_status_ptr_t request;

    op->stage = ST_CHANNEL_OP_GIVEN;
    request   = ucp_tag_recv_nbx(op->ctx->worker, op->msg.buffer,
                                 op->msg.length, op->tag, mask, &param);
    if (request == NULL) {
        op->msg.length = info.length;
    }
    return st_channel_op_posted(op, list, request);
}

ucs_status_t st_channel_op_recv_message(st_channel_op_t *op,
                                        ucs_list_link_t *list,
                                        ucp_tag_message_h message)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv      = st_channel_on_recv,
        .user_data    = op
    };

    op->stage = ST_CHANNEL_OP_GIVEN;
    return st_channel_op_posted(op, list,
                                ucp_tag_msg_recv_nbx(op->ctx->worker,
                                                     op->msg.buffer,
                                                     op->msg.length, message,
                                                     &param));
}
