/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_fifo_queue.c - messages of FIFOs: the calls that enqueue, start and wait
 * for them.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "tag/st_fifo.h"
#include "tag/st_fifo_nic.h"
#include "core/st_log.h"
#include "core/st_peer.h"
#include "core/st_watch.h"

#include <ucs_trace.h>

#include <stdlib.h>

#define UCP_ST_FIFO_TRACE(_name) \
    {_name, "nic", UCS_TRACE_INSTANT, UCS_TRACE_FLOW_NONE, \
     {{"by", UCS_TRACE_VALUE_TEXT}, {"number", UCS_TRACE_VALUE_NUMBER}, \
      {"peer", UCS_TRACE_VALUE_HEX}, {"scope", UCS_TRACE_VALUE_HEX}, \
      {"tag", UCS_TRACE_VALUE_HEX}, {"bytes", UCS_TRACE_VALUE_NUMBER}}}


/* Counts the way of a message; returns it, and why it is not the NICs' */
static const char *ucp_st_fifo_count_way(const ucp_st_fifo_msg_t *msg,
                                         int is_staged)
{
    ucp_st_stats_t *stats = &msg->fifo->peer->worker->stats;

    if (msg->way == UCP_ST_FIFO_BY_NIC) {
        ++stats->lanes[UCP_ST_LANE_TRIG].msgs;
        ++stats->fifo_nic;
        return "NIC";
    }
    ++stats->lanes[UCP_ST_LANE_HOST].msgs;
    if (msg->way == UCP_ST_FIFO_BY_UCP) {
        ++stats->fifo_ucp;
        return "host, UCP: no lane trig to the peer";
    } else if (is_staged) {
        ++stats->fifo_put_device;
        return "host, put: memory of a device";
    }
    ++stats->fifo_put_cntr;
    return "host, put: no counter";
}

void ucp_st_fifo_note(const ucp_st_fifo_msg_t *msg, int is_staged)
{
    static const ucs_trace_kind_t kinds[] = {
        [UCP_ST_DIR_SEND] = UCP_ST_FIFO_TRACE("match send"),
        [UCP_ST_DIR_RECV] = UCP_ST_FIFO_TRACE("match receive")
    };
    const ucp_st_fifo_t *fifo             = msg->fifo;
    const char *by                        = ucp_st_fifo_count_way(msg,
                                                                  is_staged);
    uint64_t values[UCS_TRACE_MAX_VALUES] = {
        (uintptr_t)by, msg->number, fifo->peer->uuid, fifo->id.scope,
        fifo->id.tag, msg->length
    };

    if (ucs_trace_is_on()) {
        ucs_trace_record(&kinds[fifo->dir], 0, 0, values);
    }
}

ucs_status_t ucp_st_fifo_enqueue(ucp_st_req_t *req, ucp_st_queue_h queue,
                                 const ucp_st_msg_params_t *params)
{
    ucp_st_worker_h worker = queue->worker;
    ucp_st_key_id_t id     = {.tag = req->tag, .scope = params->scope};
    ucp_st_fifo_msg_t *msg;
    ucs_status_t status;

    if (!ucp_st_peer_is_real(req->peer) || (req->tag_mask != UINT64_MAX)) {
        ucs_error("a message of a FIFO needs its peer, and the whole tag");
        return UCS_ERR_INVALID_PARAM;
    }
    status = ucp_st_fifo_nic_prepare(queue);
    if (status != UCS_OK) {
        return status;
    }
    msg = calloc(1, sizeof(*msg));
    if (msg == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    ucp_st_worker_lock(worker);
    msg->fifo = ucp_st_fifo_get(req->peer, req->dir, id);
    if (msg->fifo == NULL) {
        ucp_st_worker_unlock(worker);
        free(msg);
        return UCS_ERR_NO_MEMORY;
    }
    if (params->field_mask & UCP_ST_MSG_PARAM_FIELD_NAME) {
        msg->fifo->rank  = params->rank;
        msg->fifo->words = params->words;
    }
    msg->nic     = ucp_st_fifo_queue(queue)->nic;
    msg->req     = req;
    msg->length  = req->length;
    req->msg     = msg;
    req->is_fifo = 1;
    ucp_st_fifo_nic_init(msg);
    ++msg->nic->num_enqueued;
    ucs_list_add_tail(&msg->nic->enqueued, &msg->list);
    ucp_st_worker_unlock(worker);
    return UCS_OK;
}

void ucp_st_fifo_withdraw(ucp_st_req_t *req)
{
    ucp_st_fifo_msg_t *msg = req->msg;

    --msg->nic->num_enqueued;
    ucs_list_del(&msg->list);
    req->msg = NULL;
    free(msg);
}

ucs_status_t ucp_st_fifo_start(ucp_st_queue_h queue, ucs_gstream_cmd_t *cmd,
                               size_t *count_p)
{
    ucp_st_fifo_nic_t *nic = ucp_st_fifo_queue(queue)->nic;
    ucs_status_t status;

    *count_p = 0;
    if ((nic == NULL) || (nic->num_enqueued == 0)) {
        return UCS_OK;
    }
    ucp_st_worker_lock(queue->worker);
    status = ucp_st_fifo_nic_check(nic);
    ucp_st_worker_unlock(queue->worker);
    if (status == UCS_OK) {
        *count_p = ucp_st_fifo_nic_start_cmd(nic, cmd);
    }
    return status;
}

/* The group of what is started now; NULL without memory */
static ucp_st_fifo_group_t *ucp_st_fifo_group_get(ucp_st_fifo_nic_t *nic)
{
    ucp_st_fifo_group_t *group = ucs_list_is_empty(&nic->groups) ? NULL :
                                 ucs_list_tail(&nic->groups,
                                               ucp_st_fifo_group_t, list);

    if ((group != NULL) && !group->is_closed) {
        return group;
    }
    group = calloc(1, sizeof(*group));
    if (group != NULL) {
        group->nic = nic;
        ucs_list_head_init(&group->msgs);
        ucs_list_add_tail(&nic->groups, &group->list);
    }
    return group;
}

/* The message gets its number. It may be gone on return. */
static void ucp_st_fifo_begin(ucp_st_fifo_msg_t *msg,
                              ucp_st_fifo_group_t *group)
{
    ucp_st_fifo_t *fifo = msg->fifo;
    ucp_st_fifo_heard_t *heard;
    ucs_status_t status;

    msg->number = ++fifo->count;
    msg->start  = msg->nic->starts;
    msg->group  = group;
    ++group->unpaired;
    ucs_list_add_tail(&group->msgs, &msg->group_list);
    ucp_st_fifo_add(msg);
    ucp_st_req_set_state(msg->req, UCP_ST_REQ_STARTED);
    heard  = ucp_st_fifo_heard_take(fifo, msg->number);
    status = ucp_st_req_peer_status(msg->req);
    if (status == UCS_OK) {
        status = fifo->peer->status; /* also if it has left in order */
    }
    if (status == UCS_OK) {
        status = ucp_st_queue_status(msg->nic->queue);
    }
    if (status == UCS_OK) {
        status = ucp_st_fifo_nic_begin(msg);
    }
    if (status != UCS_OK) {
        ucp_st_fifo_fail(msg, status);
    } else {
        if (!ucp_st_fifo_is_send(msg)) {
            ucp_st_fifo_announce(msg);
        }
        if (heard != NULL) {
            ucp_st_fifo_receive(msg, &heard->ctrl);
        }
    }
    free(heard);
}

void ucp_st_fifo_started(ucp_st_queue_h queue)
{
    ucp_st_fifo_nic_t *nic = ucp_st_fifo_queue(queue)->nic;
    ucp_st_fifo_group_t *group;
    ucp_st_fifo_msg_t *msg;

    if ((nic == NULL) || (nic->num_enqueued == 0)) {
        return;
    }
    ucp_st_worker_lock(queue->worker);
    ++nic->starts;
    group = ucp_st_fifo_group_get(nic);
    if (group == NULL) {
        /* The messages stay as they are, never to be started */
        ++queue->worker->stats.errors;
        ucp_st_queue_fail(queue, NULL, UCS_ERR_NO_MEMORY);
    }
    while ((group != NULL) && (nic->num_enqueued > 0)) {
        msg = ucs_list_extract_head(&nic->enqueued, ucp_st_fifo_msg_t, list);
        --nic->num_enqueued;
        ucp_st_fifo_begin(msg, group);
    }
    ucp_st_worker_unlock(queue->worker);
    ucp_st_watch_begin(queue->worker);
}

/* The open group, if something was started since the last wait */
static ucp_st_fifo_group_t *ucp_st_fifo_unwaited(ucp_st_queue_h queue)
{
    ucp_st_fifo_nic_t *nic     = ucp_st_fifo_queue(queue)->nic;
    ucp_st_fifo_group_t *group = ((nic == NULL) ||
                                  ucs_list_is_empty(&nic->groups)) ? NULL :
                                 ucs_list_tail(&nic->groups,
                                               ucp_st_fifo_group_t, list);

    return ((group != NULL) && !group->is_closed) ? group : NULL;
}

size_t ucp_st_fifo_wait(ucp_st_queue_h queue, ucs_gstream_cmd_t *cmd)
{
    ucp_st_fifo_nic_t *nic = ucp_st_fifo_queue(queue)->nic;
    ucp_st_fifo_group_t *group;

    ucp_st_worker_lock(queue->worker);
    group = ucp_st_fifo_unwaited(queue);
    ucp_st_worker_unlock(queue->worker);
    if (group == NULL) {
        return 0;
    }
    cmd->type           = UCS_GSTREAM_CMD_WAIT64;
    cmd->u.word.address = nic->word;
    cmd->u.word.value   = nic->waits + 1;
    return 1;
}

void ucp_st_fifo_waited(ucp_st_queue_h queue)
{
    ucp_st_fifo_nic_t *nic = ucp_st_fifo_queue(queue)->nic;
    ucp_st_fifo_group_t *group;

    ucp_st_worker_lock(queue->worker);
    group = ucp_st_fifo_unwaited(queue);
    if (group != NULL) {
        group->is_closed = 1;
        ++nic->waits;
        ucp_st_fifo_nic_post(nic);
    }
    ucp_st_worker_unlock(queue->worker);
}

/* Ask the sender of a receive once. The lock is held. */
static void ucp_st_fifo_ask_once(ucp_st_req_t *req)
{
    ucp_st_fifo_msg_t *msg = req->msg;

    if ((msg != NULL) && (req->state == UCP_ST_REQ_STARTED) &&
        msg->is_paired && !msg->is_asked && !ucp_st_fifo_is_send(msg)) {
        msg->is_asked = 1;
        ucp_st_fifo_tell(msg, UCP_ST_FIFO_ASK);
    }
}

void ucp_st_fifo_ask(ucp_st_req_t *req)
{
    ucp_st_worker_lock(req->worker);
    ucp_st_fifo_ask_once(req);
    ucp_st_worker_unlock(req->worker);
}

void ucp_st_fifo_await(ucp_st_req_t *req)
{
    if (req->msg != NULL) {
        req->msg->is_awaited = 1;
        ucp_st_fifo_ask_once(req);
    }
}

void ucp_st_fifo_cancel(ucp_st_req_t *req, ucs_status_t status)
{
    if ((req->msg != NULL) && !req->msg->is_paired) {
        ucp_st_fifo_fail(req->msg, status);
    }
}
