/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_channel_stream.c - messages of channels that a stream starts and waits
 * for.
 *
 * Buffers that both ends have matched are persistent operations (a pair): a
 * message is a start and a wait of its operation. Others are messages of a FIFO
 * for each direction, which knows their order. The host finds out that they are
 * over by asking, in ucp_st_channel_progress(): streams do not call it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "channel/st_channel.h"

#include <ucp_st.h>
#include <ucs/type/status.h>

#include <stdlib.h>


/* Scope of the FIFOs: "channel" */
#define ST_CHANNEL_SCOPE 0x6368616e6e656cul

/** A buffer that is matched, or to be. */
typedef struct st_channel_pair {
    ucs_list_link_t      asked;   /* In the context's list while it is being
                                     matched, or freed */
    ucp_st_channel_h     channel; /* NULL: to be freed */
    ucp_st_op_h          op;
    int                  is_send;
    int                  is_matched;
    uint64_t             uses;    /* Started */
    ucp_st_channel_msg_t msg;     /* The callback is that of the match */
} st_channel_pair_t;

/** A message that a stream has. */
typedef struct st_channel_use {
    ucs_list_link_t     link;    /* In the context's list */
    ucp_st_channel_h    channel;
    st_channel_pair_t   *pair;   /* NULL: it is used once */
    uint64_t            count;   /* Of the pair's uses, with this one */
    ucp_st_req_h        request; /* Of one that is used once */
    ucp_st_channel_cb_t cb;
    void                *arg;
} st_channel_use_t;


static st_channel_pair_key_t
st_channel_pair_key(int is_send, const ucp_st_channel_msg_t *msg)
{
    return (st_channel_pair_key_t){
        .buffer = (uintptr_t)msg->buffer, .length = msg->length,
        .is_send = is_send
    };
}

static st_channel_pair_t *st_channel_pair_find(ucp_st_channel_h channel,
                                               int is_send,
                                               const ucp_st_channel_msg_t *msg)
{
    khiter_t iter = kh_get(st_channel_pairs, &channel->pairs,
                           st_channel_pair_key(is_send, msg));

    return (iter == kh_end(&channel->pairs)) ? NULL :
                                               kh_val(&channel->pairs, iter);
}

/* Returns 0 without memory */
static int st_channel_pair_add(st_channel_pair_t *pair)
{
    khash_t(st_channel_pairs) *pairs = &pair->channel->pairs;
    khiter_t iter;
    int ret;

    iter = kh_put(st_channel_pairs, pairs,
                  st_channel_pair_key(pair->is_send, &pair->msg), &ret);
    if (ret >= 0) {
        kh_val(pairs, iter) = pair;
    }
    return ret >= 0;
}

static void st_channel_pair_del(st_channel_pair_t *pair)
{
    khash_t(st_channel_pairs) *pairs = &pair->channel->pairs;

    kh_del(st_channel_pairs, pairs,
           kh_get(st_channel_pairs, pairs,
                  st_channel_pair_key(pair->is_send, &pair->msg)));
}

/* Whether the channel can have operations on streams */
static ucs_status_t st_channel_stream_check(ucp_st_channel_h channel,
                                            const ucp_st_channel_msg_t *msg)
{
    if ((channel == NULL) || (msg == NULL) ||
        ((msg->buffer == NULL) && (msg->length > 0))) {
        return UCS_ERR_INVALID_PARAM;
    }
    if ((channel->ctx->st_worker == NULL) || (channel->peer == NULL)) {
        return UCS_ERR_NOT_CONNECTED;
    }
    return ((channel->state != ST_CHANNEL_OPEN) || channel->is_stopped ||
            channel->is_dead) ?
                   UCS_ERR_BUSY :
                   UCS_OK;
}

/* The end that sends, where this one sends or receives */
static unsigned st_channel_sender(ucp_st_channel_h channel, int is_send)
{
    return is_send ? channel->end : !channel->end;
}

/* Both ends count what they match in a direction */
static ucs_status_t st_channel_pair_make(st_channel_pair_t *pair)
{
    ucp_st_channel_h channel        = pair->channel;
    const unsigned end              = st_channel_sender(channel, pair->is_send);
    const ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER |
                      UCP_ST_OP_PARAM_FIELD_TAG,
        .buffer     = pair->msg.buffer,
        .length     = pair->msg.length,
        .peer       = channel->peer,
        .tag        = st_channel_tag(channel, end,
                                     channel->num_pairs[pair->is_send])
    };
    ucs_status_t status;

    status = (pair->is_send ? ucp_st_send_init : ucp_st_recv_init)(
            channel->ctx->st_worker, &params, &pair->op);
    if (status == UCS_OK) {
        status = ucp_st_imatchall(&pair->op, 1);
        if (status != UCS_OK) {
            (void)ucp_st_op_free(pair->op);
        }
    }
    return status;
}

ucs_status_t ucp_st_channel_match(ucp_st_channel_h channel, int is_send,
                                  const ucp_st_channel_msg_t *msg)
{
    ucs_status_t status = st_channel_stream_check(channel, msg);
    st_channel_pair_t *pair;

    is_send = (is_send != 0);
    if (status != UCS_OK) {
        return status;
    }
    if (st_channel_pair_find(channel, is_send, msg) != NULL) {
        return UCS_ERR_ALREADY_EXISTS;
    }
    pair = malloc(sizeof(*pair));
    if (pair == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    *pair  = (st_channel_pair_t){
        .channel = channel, .is_send = is_send, .msg = *msg
    };
    if (!st_channel_pair_add(pair)) {
        free(pair);
        return UCS_ERR_NO_MEMORY;
    }
    status = st_channel_pair_make(pair);
    if (status != UCS_OK) {
        st_channel_pair_del(pair);
        free(pair);
        return status;
    }
    ++channel->num_pairs[is_send];
    ucs_list_add_tail(&channel->ctx->pairs, &pair->asked);
    return UCS_INPROGRESS;
}

/* Asks for a match, or tries to free; whether something came of it */
static int st_channel_pair_progress(st_channel_pair_t *pair)
{
    const ucp_st_channel_msg_t msg = pair->msg;
    ucs_status_t status;

    if (pair->channel == NULL) {
        if (ucp_st_op_free(pair->op) == UCS_ERR_BUSY) {
            return 0;
        }
        ucs_list_del(&pair->asked);
        free(pair);
        return 1;
    }
    status = ucp_st_match_test(pair->op);
    if (status == UCS_INPROGRESS) {
        return 0;
    }
    if (status == UCS_OK) {
        ucs_list_del(&pair->asked);
        pair->is_matched = 1;
    } else { /* Freed next time */
        st_channel_pair_del(pair);
        pair->channel = NULL;
    }
    if (msg.cb != NULL) {
        msg.cb(msg.arg, status, (status == UCS_OK) ? msg.length : 0);
    }
    return 1;
}

/* The start of a matched message */
static ucs_status_t st_channel_pair_start(st_channel_use_t *use,
                                          ucp_st_queue_h queue)
{
    ucs_status_t status = ucp_st_enqueue_start(queue, use->pair->op);

    if (status == UCS_OK) {
        use->count = ++use->pair->uses;
    }
    return status;
}

/* The start of one that is used once */
static ucs_status_t st_channel_once_start(st_channel_use_t *use, int is_send,
                                          ucp_st_queue_h queue,
                                          const ucp_st_channel_msg_t *msg)
{
    ucp_st_channel_h channel         = use->channel;
    const unsigned end               = st_channel_sender(channel, is_send);
    const ucp_st_msg_params_t params = {
        .field_mask = UCP_ST_MSG_PARAM_FIELD_BUFFER |
                      UCP_ST_MSG_PARAM_FIELD_LENGTH |
                      UCP_ST_MSG_PARAM_FIELD_PEER |
                      UCP_ST_MSG_PARAM_FIELD_TAG |
                      UCP_ST_MSG_PARAM_FIELD_SCOPE,
        .buffer     = msg->buffer,
        .length     = msg->length,
        .peer       = channel->peer,
        .tag        = st_channel_tag(channel, end, 0),
        .scope      = ST_CHANNEL_SCOPE
    };
    ucs_status_t status;

    status = (is_send ? ucp_st_enqueue_send :
                        ucp_st_enqueue_recv)(queue, &params, &use->request);
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_st_enqueue_batch_start(queue);
    if (status != UCS_OK) {
        (void)ucp_st_req_free(use->request);
    }
    return status;
}

static ucs_status_t st_channel_stream_start(ucp_st_channel_h channel,
                                            int is_send, ucp_st_queue_h queue,
                                            const ucp_st_channel_msg_t *msg)
{
    st_channel_pair_t *pair = st_channel_pair_find(channel, is_send, msg);
    st_channel_use_t *use;
    ucs_status_t status;

    use = malloc(sizeof(*use));
    if (use == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    *use   = (st_channel_use_t){
        .channel = channel,
        .pair    = ((pair != NULL) && pair->is_matched) ? pair : NULL,
        .cb      = msg->cb,
        .arg     = msg->arg
    };
    status = (use->pair != NULL) ?
                     st_channel_pair_start(use, queue) :
                     st_channel_once_start(use, is_send, queue, msg);
    if (status != UCS_OK) {
        free(use);
        return status;
    }
    ++channel->num_uses;
    ucs_list_add_tail(&channel->ctx->uses, &use->link);
    /* The message is under way in any case, and is called back */
    status = (use->pair != NULL) ? ucp_st_enqueue_wait(queue, use->pair->op) :
                                   ucp_st_enqueue_batch_wait(queue);
    return (status == UCS_OK) ? UCS_INPROGRESS : status;
}

ucs_status_t ucp_st_channel_send_stream(ucp_st_channel_h channel,
                                        ucp_st_queue_h queue,
                                        const ucp_st_channel_msg_t *msg)
{
    ucs_status_t status = st_channel_stream_check(channel, msg);

    return (status == UCS_OK) ?
                   st_channel_stream_start(channel, 1, queue, msg) :
                   status;
}

ucs_status_t ucp_st_channel_recv_stream(ucp_st_channel_h channel,
                                        ucp_st_queue_h queue,
                                        const ucp_st_channel_msg_t *msg)
{
    ucs_status_t status = st_channel_stream_check(channel, msg);

    return (status == UCS_OK) ?
                   st_channel_stream_start(channel, 0, queue, msg) :
                   status;
}

/* Whether a message is over, and with what */
static int st_channel_use_is_over(st_channel_use_t *use, ucs_status_t *status_p,
                                  size_t *length_p)
{
    ucp_st_op_attr_t attr;
    ucp_st_req_info_t info;

    if (use->pair == NULL) {
        *status_p = ucp_st_req_test(use->request, &info);
        *length_p = info.length;
        return *status_p != UCS_INPROGRESS;
    }
    *status_p = ucp_st_op_query(use->pair->op, &attr);
    if (*status_p == UCS_OK) {
        *status_p = (attr.completed >= use->count) ? UCS_OK : attr.status;
        *length_p = attr.length;
        return (attr.completed >= use->count) || (attr.status != UCS_OK);
    }
    return 1;
}

unsigned st_channel_stream_progress(ucp_st_channel_ctx_h ctx)
{
    unsigned count = 0;
    st_channel_pair_t *pair;
    st_channel_use_t *use;
    ucs_status_t status;
    size_t length = 0;
    size_t num;

    /* Callbacks may add to the lists, and free: each time the first one */
    for (num = ucs_list_length(&ctx->pairs);
         (num > 0) && !ucs_list_is_empty(&ctx->pairs); --num) {
        pair = ucs_list_head(&ctx->pairs, st_channel_pair_t, asked);
        ucs_list_del(&pair->asked);
        ucs_list_add_tail(&ctx->pairs, &pair->asked);
        count += st_channel_pair_progress(pair);
    }
    for (num = ucs_list_length(&ctx->uses);
         (num > 0) && !ucs_list_is_empty(&ctx->uses); --num) {
        use = ucs_list_head(&ctx->uses, st_channel_use_t, link);
        ucs_list_del(&use->link);
        if (!st_channel_use_is_over(use, &status, &length)) {
            ucs_list_add_tail(&ctx->uses, &use->link);
            continue;
        }
        if (use->pair == NULL) {
            (void)ucp_st_req_free(use->request);
        }
        --use->channel->num_uses;
        if (use->cb != NULL) {
            use->cb(use->arg, status, (status == UCS_OK) ? length : 0);
        }
        free(use);
        ++count;
    }
    return count;
}

void st_channel_stream_cleanup(ucp_st_channel_h channel)
{
    st_channel_pair_t *pair;

    kh_foreach_value(&channel->pairs, pair, {
        pair->channel = NULL;
        if (pair->is_matched) {
            ucs_list_add_tail(&channel->ctx->pairs, &pair->asked);
        } else if (pair->msg.cb != NULL) {
            pair->msg.cb(pair->msg.arg, UCS_ERR_CANCELED, 0);
        }
    });
    kh_destroy_inplace(st_channel_pairs, &channel->pairs);
}
