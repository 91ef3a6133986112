/* SPDX-License-Identifier: BSD-3-Clause */
/* st_msg.c - one side of a message. */
#include "st_msg.h"
#include "st_bytes.h"

#include <stdlib.h>
#include <string.h>


static ucp_st_op_params_t st_msg_op_params(const st_msg_t *msg,
                                           const st_node_t *node,
                                           const st_msg_params_t *params)
{
    ucp_st_op_params_t op_params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_TAG |
                      UCP_ST_OP_PARAM_FIELD_MODE,
        .buffer     = st_place_buffer(&msg->place),
        .length     = msg->space,
        .peer       = node->peers[params->peer],
        .tag        = params->tag,
        .mode       = params->mode
    };

    return op_params;
}

void st_msg_init(st_rank_t *me, st_msg_t *msg, const st_msg_params_t *params)
{
    st_node_t *node = (params->node != NULL) ? params->node : &me->node;
    int source      = params->is_send ? me->index : params->peer;
    int dest        = params->is_send ? params->peer : me->index;
    ucp_st_op_params_t op_params;

    memset(msg, 0, sizeof(*msg));
    msg->me      = me;
    msg->is_send = params->is_send;
    msg->length  = params->length;
    msg->space   = params->length + (params->is_send ? 0 : params->extra);
    msg->seed    = st_bytes_mix(params->tag, (uint64_t)source * 1000 +
                                (uint64_t)dest);
    ST_OK(me, st_place_get(&msg->place, msg->space + ST_BYTES_GUARD));
    st_bytes_poison(msg->place.host, msg->place.length);
    ST_OK(me, st_place_fill(&msg->place));
    op_params = st_msg_op_params(msg, node, params);
    ST_OK(me, (params->is_send ? ucp_st_send_init : ucp_st_recv_init)(
                      node->worker, &op_params, &msg->op));
}

void st_msg_free(st_msg_t *msg)
{
    ucp_st_op_attr_t attr;

    ST_OK(msg->me, ucp_st_op_query(msg->op, &attr));
    ST_CHECK(msg->me, attr.started == msg->started);
    ST_OK(msg->me, ucp_st_op_free(msg->op));
    st_place_put(&msg->place);
}

size_t st_msg_match_some(st_rank_t *me, st_msg_t *msgs, size_t count)
{
    ucp_st_op_h *ops       = calloc(count + 1, sizeof(*ops));
    ucs_status_t *statuses = calloc(count + 1, sizeof(*statuses));
    size_t matched         = 0;
    size_t i;

    ST_CHECK(me, (ops != NULL) && (statuses != NULL));
    for (i = 0; i < count; ++i) {
        ops[i]      = msgs[i].op;
        statuses[i] = UCS_INPROGRESS;
    }
    (void)ucp_st_matchall(ops, count, statuses);
    for (i = 0; i < count; ++i) {
        if (statuses[i] == UCS_OK) {
            msgs[matched++] = msgs[i];
            continue;
        }
        ST_IS(me, UCS_ERR_NO_RESOURCE, statuses[i]);
        st_msg_free(&msgs[i]);
    }
    free(statuses);
    free(ops);
    return matched;
}

void st_msg_match(st_rank_t *me, st_msg_t *msgs, size_t count)
{
    size_t matched = st_msg_match_some(me, msgs, count);

    if (matched < count) {
        st_rank_fail(me, "%zu of %zu operations found no lane", count - matched,
                     count);
    }
}

static void st_msg_all(st_msg_t *msgs, size_t count, ucp_st_queue_h queue,
                       ucs_status_t (*call)(ucp_st_queue_h, const ucp_st_op_h*,
                                            size_t))
{
    ucp_st_op_h ops[count + 1];
    size_t i;

    for (i = 0; i < count; ++i) {
        ops[i] = msgs[i].op;
    }
    if (count > 0) {
        ST_OK(msgs->me, call(queue, ops, count));
    }
}

void st_msg_startall(st_msg_t *msgs, size_t count, ucp_st_queue_h queue)
{
    size_t i;

    st_msg_all(msgs, count, queue, ucp_st_enqueue_startall);
    for (i = 0; i < count; ++i) {
        ++msgs[i].started;
    }
}

void st_msg_waitall(st_msg_t *msgs, size_t count, ucp_st_queue_h queue)
{
    st_msg_all(msgs, count, queue, ucp_st_enqueue_waitall);
}

void st_msg_start(st_msg_t *msg, ucp_st_queue_h queue)
{
    ST_OK(msg->me, ucp_st_enqueue_start(queue, msg->op));
    ++msg->started;
}

void st_msg_wait(st_msg_t *msg, ucp_st_queue_h queue)
{
    ST_OK(msg->me, ucp_st_enqueue_wait(queue, msg->op));
}

static void st_msg_verify(st_msg_t *msg)
{
    const uint8_t *buffer = msg->place.host;
    size_t at             = st_bytes_check(buffer, msg->length,
                                           msg->seed + msg->use);

    if (at != ST_BYTES_NONE) {
        st_rank_fail(msg->me, "use %lu of a receive of %zu bytes: byte %zu is "
                     "wrong", msg->use, msg->length, at);
    }
    at = st_bytes_check_poison(buffer, msg->length,
                               msg->space + ST_BYTES_GUARD);
    if (at != ST_BYTES_NONE) {
        st_rank_fail(msg->me, "use %lu of a receive of %zu bytes: byte %zu was "
                     "written, which is behind it", msg->use, msg->length, at);
    }
    /* What comes too early next time, or not at all, must not look good */
    st_bytes_poison(msg->place.host, msg->length);
}

static void st_msg_func(void *arg)
{
    st_msg_t *msg = arg;

    if (msg->is_send) {
        st_bytes_fill(msg->place.host, msg->length, msg->seed + msg->use);
    } else {
        st_msg_verify(msg);
    }
    ++msg->use;
}

void st_msg_work(st_msg_t *msg, ucs_gstream_h stream)
{
    if (!msg->is_send) {
        ST_OK(msg->me, st_place_load(&msg->place, stream));
    }
    ST_OK(msg->me, ucs_gstream_enqueue_func(stream, st_msg_func, msg));
    ST_OK(msg->me, st_place_store(&msg->place, stream));
}

void st_msg_begin(st_msg_t *msg, ucp_st_queue_h queue, ucs_gstream_h stream)
{
    if (msg->is_send) {
        st_msg_work(msg, stream);
    }
    st_msg_start(msg, queue);
}

void st_msg_end(st_msg_t *msg, ucp_st_queue_h queue, ucs_gstream_h stream)
{
    st_msg_wait(msg, queue);
    if (!msg->is_send) {
        st_msg_work(msg, stream);
    }
}

void st_msg_use(st_msg_t *msg, ucp_st_queue_h queue, ucs_gstream_h stream)
{
    st_msg_begin(msg, queue, stream);
    st_msg_end(msg, queue, stream);
}

uint64_t st_msg_completed(const st_msg_t *msg)
{
    ucp_st_op_attr_t attr;

    ST_OK(msg->me, ucp_st_op_query(msg->op, &attr));
    ST_OK(msg->me, attr.status);
    return attr.completed;
}

void st_msg_sync(st_rank_t *me, ucp_st_queue_h queue)
{
    ST_OK(me, ucp_st_queue_wait(queue, NULL));
}

void st_msg_sync_stream(st_rank_t *me, ucp_st_queue_h queue,
                        ucs_gstream_h stream)
{
    st_msg_sync(me, queue);
    ST_OK(me, ucs_gstream_synchronize(stream));
}
