/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_fifo_nic.c - messages of FIFOs: on lane trig, and what stands in its
 * place.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "tag/st_fifo_nic.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_stage.h"

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

/* How long a silent peer holds up a stream, seconds; at most a quarter of
 * UCX_ST_ERR_TIMEOUT */
#define UCP_ST_FIFO_DRAIN_TIME 2.0

/* How long the peer's word about a failed put may take, seconds */
#define UCP_ST_FIFO_DOUBT_TIME 1.0

/* Messages whose time is over so soon are looked at together, as a NIC takes as
 * long to cancel one as many; seconds */
#define UCP_ST_FIFO_SLACK_TIME 0.01

/* Counters that are kept for sends to come: other queues, and operations, find
 * what is more than that */
#define UCP_ST_FIFO_MAX_FREE 256

_Static_assert(UCP_ST_PROTO_KEY == UCT_TRIG_RKEY_PACKED_LEN, "wire format");

int ucp_st_fifo_nic_reaches(ucp_st_peer_t *peer)
{
    return (peer->lanes & UCS_BIT(UCP_ST_LANE_TRIG)) &&
           (ucp_st_trig_rma_ep(peer, 0) != NULL);
}

static void ucp_st_fifo_mem_dereg(uct_trig_mem_h *mem_p)
{
    if ((*mem_p != NULL) && (uct_trig_mem_dereg(*mem_p) != UCS_OK)) {
        ucs_warn("lane 'trig': memory stays registered: the NIC holds "
                 "operations of a failed peer");
    }
    *mem_p = NULL;
}

/* The NIC holds nothing; or not all of it could be made */
static void ucp_st_fifo_slot_destroy(ucp_st_fifo_slot_t *slot,
                                     ucp_st_trig_rail_t *rail)
{
    ucp_st_fifo_mem_dereg(&slot->mem);
    if (slot->cntr != NULL) {
        (void)uct_trig_cntr_destroy(slot->cntr);
    }
    ucp_st_trig_piece_put(rail, &slot->pad);
    free(slot);
}

static ucp_st_fifo_slot_t *ucp_st_fifo_slot_create(ucp_st_trig_rail_t *rail)
{
    ucp_st_fifo_slot_t *slot = calloc(1, sizeof(*slot));
    uint8_t packed[UCT_TRIG_RKEY_PACKED_LEN];
    ucs_status_t status;

    if (slot == NULL) {
        return NULL;
    }
    status = uct_trig_cntr_create(rail->iface, &slot->cntr);
    if (status == UCS_OK) {
        status = ucp_st_trig_piece_get(rail, &slot->pad);
    }
    if (status == UCS_OK) {
        status = uct_trig_mem_reg(rail->iface, slot->pad.address,
                                  UCP_ST_TRIG_PIECE, slot->cntr, &slot->mem);
    }
    if (status == UCS_OK) {
        uct_trig_mem_pack(slot->mem, packed);
        status = uct_trig_rkey_unpack(packed, sizeof(packed), &slot->rkey);
    }
    if (status != UCS_OK) {
        ucs_diag("lane 'trig': no counter for a message: %s",
                 ucs_status_string(status));
        ucp_st_fifo_slot_destroy(slot, rail);
        return NULL;
    }
    return slot;
}

/* NULL: there is no counter */
static ucp_st_fifo_slot_t *ucp_st_fifo_slot_get(ucp_st_fifo_nic_t *nic)
{
    ucp_st_fifos_t *fifos = ucp_st_fifos(nic->worker);
    ucp_st_fifo_slot_t *slot;

    if (fifos->num_slots == 0) {
        slot = ucp_st_fifo_slot_create(nic->rail);
    } else {
        --fifos->num_slots;
        slot = ucs_list_extract_head(&fifos->slots, ucp_st_fifo_slot_t, list);
    }
    if (slot != NULL) {
        ++slot->uses;
    }
    return slot;
}

/* Nothing is armed. One that was closed may have been fired: it is not lent
 * again, nor one whose counter would come to its end. */
static void ucp_st_fifo_slot_put(ucp_st_fifo_nic_t *nic,
                                 ucp_st_fifo_slot_t *slot)
{
    ucp_st_fifos_t *fifos = ucp_st_fifos(nic->worker);

    if ((slot->mem == NULL) || (fifos->num_slots >= UCP_ST_FIFO_MAX_FREE) ||
        ((2 * (slot->uses + 1)) > (nic->rail->attr.max_count / 2))) {
        ucp_st_fifo_slot_destroy(slot, nic->rail);
    } else {
        ucs_list_add_head(&fifos->slots, &slot->list);
        ++fifos->num_slots;
    }
}

/* The NIC holds nothing; or not all of it could be made */
static void ucp_st_fifo_nic_free(ucp_st_fifo_nic_t *nic)
{
    ucp_st_fifo_group_t *group, *tmp;

    ucs_list_for_each_safe(group, tmp, &nic->groups, list) {
        free(group);
    }
    if (nic->rail == NULL) {
        ucs_gstream_word_put(nic->word);
    } else {
        ucp_st_fifo_mem_dereg(&nic->pad_mem);
        ucp_st_trig_piece_put(nic->rail, &nic->pad);
        ucp_st_trig_tally_cleanup(&nic->done, nic->rail);
        ucp_st_trig_trigger_cleanup(&nic->start);
    }
    free(nic);
}

/* The stream could not add: what it has started is never carried out */
static void ucp_st_fifo_untriggered(ucp_st_trig_trigger_t *trigger,
                                    unsigned count)
{
    ucp_st_fifo_nic_t *nic = ucs_container_of(trigger, ucp_st_fifo_nic_t,
                                              start);

    if (nic->queue != NULL) {
        ++nic->worker->stats.errors;
        ucp_st_queue_fail(nic->queue, NULL, UCS_ERR_IO_ERROR);
    }
}

static void ucp_st_fifo_nic_late(ucp_st_trig_late_t *late)
{
    ucp_st_fifo_nic_post(ucs_container_of(late, ucp_st_fifo_nic_t, late));
}

/* Without effect on one that has no deadline */
static void ucp_st_fifo_unlimit(ucp_st_fifo_msg_t *msg)
{
    if (msg->is_limited) {
        ucs_list_del(&msg->limit_list);
        msg->is_limited = 0;
    }
}

static void ucp_st_fifo_set_deadline(ucp_st_fifo_msg_t *msg, double time)
{
    ucp_st_fifos_t *fifos = ucp_st_fifos(msg->nic->worker);

    ucp_st_fifo_unlimit(msg);
    ucs_list_add_tail(&fifos->limited, &msg->limit_list);
    msg->is_limited = 1;
    msg->deadline   = ucp_st_worker_now() + time;
    ucp_st_service_wake(&fifos->service);
}

/* The NIC has work of it */
static int ucp_st_fifo_is_posted(const ucp_st_fifo_msg_t *msg)
{
    return (msg->puts.pending > 0) || (msg->bridge.pending > 0);
}

static void ucp_st_fifo_limit_drain(ucp_st_fifo_msg_t *msg)
{
    ucp_st_fifo_set_deadline(
            msg, ucs_min(UCP_ST_FIFO_DRAIN_TIME,
                         msg->nic->worker->config.err_timeout / 4));
}

void ucp_st_fifo_nic_limit(ucp_st_fifo_msg_t *msg)
{
    if (msg->is_moving || ucp_st_fifo_is_posted(msg)) {
        ucp_st_fifo_limit_drain(msg);
    }
}

void ucp_st_fifo_nic_doubt(ucp_st_fifo_msg_t *msg, ucs_status_t status)
{
    if (msg->doubt == UCS_OK) {
        msg->doubt = status;
        ucp_st_fifo_set_deadline(msg, UCP_ST_FIFO_DOUBT_TIME);
    }
}

/* Cancel what waits for the counters of messages that are overdue; and for
 * those of failed queues, which nothing adds to any more. Without memory it
 * stays armed. */
static ucs_status_t ucp_st_fifo_cancel_overdue(ucp_st_worker_h worker,
                                               double end)
{
    ucp_st_fifos_t *fifos    = ucp_st_fifos(worker);
    ucp_st_trig_rail_t *rail = NULL;
    ucp_st_fifo_nic_t *nic;
    ucp_st_fifo_msg_t *msg;

    ucs_list_for_each(msg, &fifos->limited, limit_list) {
        if (msg->is_ended && (msg->deadline <= end) &&
            ucp_st_fifo_is_posted(msg)) {
            rail = msg->nic->rail;
            if (msg->slot != NULL) {
                (void)ucp_st_trig_cancel_add(rail, msg->slot->cntr);
            }
        }
    }
    if (rail == NULL) {
        return UCS_ERR_UNSUPPORTED;
    }
    ucs_list_for_each(nic, &fifos->nics, list) {
        if (nic->is_failing) {
            (void)ucp_st_trig_cancel_add(rail, nic->start.cntr);
            (void)ucp_st_trig_cancel_add(rail, nic->done.cntr);
        }
    }
    ucp_st_trig_dev_wake(worker); /* entries are free */
    return ucp_st_trig_cancel(rail);
}

/* The NIC or UCP reads what the message sends, or UCP writes to memory that is
 * in the buffer's place */
static int ucp_st_fifo_is_read(const ucp_st_fifo_msg_t *msg)
{
    return (msg->is_moving && (ucp_st_fifo_is_send(msg) || msg->is_staged)) ||
           (ucp_st_fifo_is_send(msg) && (msg->puts.pending > 0));
}

/* The request is over, but stays with the memory that is in its buffer's
 * place. The message may be gone on return. */
static void ucp_st_fifo_leave_read(ucp_st_fifo_msg_t *msg)
{
    ucp_st_fifo_nic_t *nic = msg->nic;

    ucs_diag("send or receive %lu of a FIFO, tag 0x%lx: the peer has not "
             "closed its half in time, and its data stays on the way",
             msg->number, msg->fifo->id.tag);
    --nic->reading;
    msg->left             = msg->req;
    msg->left->is_calling = 1;
    ucp_st_fifo_complete(msg, msg->status);
    ucp_st_fifo_nic_settle(nic, msg);
}

/* A message whose time is over, with the result of the attempt to cancel what
 * it has on the NIC. It may be gone on return. */
static void ucp_st_fifo_overdue(ucp_st_fifo_msg_t *msg, ucs_status_t status)
{
    ucp_st_fifo_unlimit(msg);
    if (!msg->is_ended) {
        ucp_st_fifo_fail(msg, msg->doubt);
    } else if ((status == UCS_ERR_BUSY) && !msg->is_retried) {
        msg->is_retried = 1; /* what has fired may be over by then */
        ucp_st_fifo_limit_drain(msg);
    } else if (ucp_st_fifo_is_read(msg)) {
        ucp_st_fifo_leave_read(msg);
    }
}

int ucp_st_fifo_nic_look(ucp_st_worker_h worker)
{
    ucs_list_link_t *limited = &ucp_st_fifos(worker)->limited;
    double end               = ucp_st_worker_now() + UCP_ST_FIFO_SLACK_TIME;
    int timeout              = -1;
    ucs_list_link_t unseen;
    ucp_st_fifo_msg_t *msg;
    ucs_status_t status;

    if (ucs_list_is_empty(limited)) {
        return -1;
    }
    status = ucp_st_fifo_cancel_overdue(worker, end);
    /* A failure may take others from either list; what it adds wakes the
     * thread */
    ucs_list_head_init(&unseen);
    ucs_list_splice_tail(&unseen, limited);
    ucs_list_head_init(limited);
    while (!ucs_list_is_empty(&unseen)) {
        msg = ucs_list_extract_head(&unseen, ucp_st_fifo_msg_t, limit_list);
        ucs_list_add_tail(limited, &msg->limit_list);
        if (msg->deadline <= end) {
            ucp_st_fifo_overdue(msg, status);
        } else {
            timeout = ucp_st_trig_sooner(
                    timeout, 1 + (int)((msg->deadline - end) * 1e3));
        }
    }
    return timeout;
}

static int ucp_st_fifo_has_nic(ucp_st_worker_h worker)
{
    unsigned i;

    for (i = 0; i < worker->num_lanes; ++i) {
        if (worker->lanes[i]->id == UCP_ST_LANE_TRIG) {
            return 1;
        }
    }
    return 0;
}

/* The counters of a queue on the NIC */
static ucs_status_t ucp_st_fifo_nic_open(ucp_st_fifo_nic_t *nic)
{
    ucs_status_t status;

    nic->rail       = ucp_st_trig_rma_rail(nic->worker, 0);
    nic->start.fail = ucp_st_fifo_untriggered;
    nic->late.post  = ucp_st_fifo_nic_late;
    status = ucp_st_trig_trigger_init(&nic->start, nic->rail);
    if (status == UCS_OK) {
        status = ucp_st_trig_tally_init(&nic->done, nic->rail);
    }
    if (status == UCS_OK) {
        nic->word = nic->done.word;
        status    = ucp_st_trig_piece_get(nic->rail, &nic->pad);
    }
    if (status != UCS_OK) {
        return status;
    }
    memset(nic->pad.address, 0, UCP_ST_TRIG_PIECE);
    return uct_trig_mem_reg(nic->rail->iface, nic->pad.address,
                            sizeof(uint64_t), nic->done.cntr, &nic->pad_mem);
}

static ucs_status_t ucp_st_fifo_nic_create(ucp_st_queue_h queue)
{
    ucp_st_fifo_nic_t *nic = calloc(1, sizeof(*nic));
    ucs_status_t status;

    if (nic == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    nic->worker = queue->worker;
    nic->queue  = queue;
    ucs_list_head_init(&nic->enqueued);
    ucs_list_head_init(&nic->groups);
    ucs_list_head_init(&nic->todo);
    if (ucp_st_fifo_has_nic(nic->worker)) {
        status    = ucp_st_fifo_nic_open(nic);
    } else {
        nic->word = ucs_gstream_word_get();
        status    = (nic->word == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
    }
    if (status != UCS_OK) {
        ucs_error("queue %p: no counters for messages of a FIFO: %s", queue,
                  ucs_status_string(status));
        ucp_st_fifo_nic_free(nic);
        return status;
    }
    ucs_list_add_tail(&ucp_st_fifos(queue->worker)->nics, &nic->list);
    ucp_st_fifo_queue(queue)->nic = nic;
    return UCS_OK;
}

ucs_status_t ucp_st_fifo_nic_prepare(ucp_st_queue_h queue)
{
    ucp_st_fifo_queue_t *self = ucp_st_fifo_queue(queue);
    ucs_status_t status       = UCS_OK;

    if (self->nic != NULL) {
        return UCS_OK;
    }
    ucp_st_worker_lock(queue->worker);
    status = ucp_st_fifo_nic_create(queue);
    ucp_st_worker_unlock(queue->worker);
    if ((status == UCS_OK) && (self->nic->rail != NULL) &&
        ucp_st_queue_is_gpu(queue)) {
        (void)ucs_gstream_reaches(queue->stream, self->nic->start.doorbell);
    }
    return status;
}

void ucp_st_fifo_nic_init(ucp_st_fifo_msg_t *msg)
{
    ucp_st_req_t *req = msg->req;

    msg->is_staged = (req->stage != NULL) &&
                     (!ucp_st_fifo_nic_reaches(req->peer) ||
                      !ucp_st_trig_takes(req->worker, req->buffer, req->length,
                                         &req->memory,
                                         !ucp_st_fifo_is_send(msg)));
    msg->data      = msg->is_staged ? req->stage : req->buffer;
}

ucs_status_t ucp_st_fifo_nic_check(const ucp_st_fifo_nic_t *nic)
{
    uint64_t max = (nic->rail == NULL) ? UINT64_MAX :
                                         nic->rail->attr.max_count;

    return (((nic->start.base > 0) &&
             ((nic->starts + 1) >= nic->start.base)) ||
            ((nic->expected + nic->num_enqueued + nic->starts) >= (max / 2))) ?
           UCS_ERR_EXCEEDS_LIMIT : UCS_OK;
}

/* Runs on the stream, or soon after it */
static void ucp_st_fifo_begun_func(void *arg)
{
    ucp_st_fifo_nic_t *nic = arg;

    /* Pairs with the acquire load in ucp_st_fifo_nic_is_begun(): what the
     * stream did before is done */
    (void)__atomic_fetch_add(&nic->begun, 1, __ATOMIC_RELEASE);
    ucp_st_service_wake(&ucp_st_fifos(nic->worker)->service);
}

size_t ucp_st_fifo_nic_start_cmd(ucp_st_fifo_nic_t *nic, ucs_gstream_cmd_t *cmd)
{
    return (nic->rail != NULL) ?
           ucp_st_trig_trigger_cmd(&nic->start, nic->queue, cmd) :
           ucp_st_queue_add_func(nic->queue, ucp_st_fifo_begun_func, nic, 0,
                                 cmd);
}

/* A source is given to a NIC that asks for it, if it is a device's */
ucs_status_t ucp_st_fifo_nic_begin(ucp_st_fifo_msg_t *msg)
{
    ucp_st_fifo_nic_t *nic = msg->nic;
    int is_send            = ucp_st_fifo_is_send(msg);

    if ((msg->length == 0) || !ucp_st_fifo_nic_reaches(msg->fifo->peer) ||
        (is_send && (msg->is_staged ||
                     !ucp_st_stage_is_device(&msg->req->memory)))) {
        return UCS_OK;
    }
    return uct_trig_mem_reg(nic->rail->iface, msg->data, msg->length,
                            (is_send || msg->is_staged) ? NULL :
                            nic->done.cntr, &msg->mem);
}

void ucp_st_fifo_nic_keys(const ucp_st_fifo_msg_t *msg,
                          ucp_st_ctrl_fifo_t *ctrl)
{
    if (ucp_st_fifo_is_send(msg)) {
        if (msg->slot != NULL) {
            uct_trig_mem_pack(msg->slot->mem,
                              ctrl->keys[UCP_ST_FIFO_KEY_CLEAR]);
        }
        return;
    }
    if (ucp_st_fifo_nic_reaches(msg->fifo->peer)) {
        uct_trig_mem_pack(msg->nic->pad_mem,
                          ctrl->keys[UCP_ST_FIFO_KEY_EMPTY]);
    }
    if (msg->mem != NULL) {
        uct_trig_mem_pack(msg->mem, ctrl->keys[UCP_ST_FIFO_KEY_DATA]);
    }
}

static uint64_t ucp_st_fifo_num_puts(const ucp_st_fifo_msg_t *msg)
{
    size_t put_max;

    if ((msg->way == UCP_ST_FIFO_BY_UCP) || (msg->length == 0)) {
        return 1;
    }
    put_max = ucp_st_trig_rma_put_max(msg->fifo->peer);
    return (msg->length / put_max) + ((msg->length % put_max) != 0);
}

/* The host counts what comes by UCP, and what it has copied. An empty message
 * is put to the pad, which the NIC counts. */
static int ucp_st_fifo_is_counted_here(const ucp_st_fifo_msg_t *msg)
{
    return (msg->way == UCP_ST_FIFO_BY_UCP) ||
           (!ucp_st_fifo_is_send(msg) && msg->is_staged && (msg->length > 0));
}

/* What the sender knows, which chooses */
static void ucp_st_fifo_choose_way(ucp_st_fifo_msg_t *msg, int is_staged)
{
    if (!ucp_st_fifo_nic_reaches(msg->fifo->peer)) {
        msg->way = UCP_ST_FIFO_BY_UCP;
        return;
    }
    if (!is_staged && !msg->is_staged) {
        msg->slot = ucp_st_fifo_slot_get(msg->nic);
    }
    msg->way = (msg->slot == NULL) ? UCP_ST_FIFO_BY_PUT : UCP_ST_FIFO_BY_NIC;
}

ucs_status_t ucp_st_fifo_nic_pair(ucp_st_fifo_msg_t *msg,
                                  const ucp_st_ctrl_fifo_t *other)
{
    ucp_st_fifo_nic_t *nic = msg->nic;
    int is_send            = ucp_st_fifo_is_send(msg);
    unsigned key           = UCP_ST_FIFO_KEY_CLEAR;
    uint64_t count;
    ucs_status_t status;

    if (is_send) {
        ucp_st_fifo_choose_way(msg, other->is_staged);
        key            = (msg->length == 0) ? UCP_ST_FIFO_KEY_EMPTY :
                                              UCP_ST_FIFO_KEY_DATA;
        msg->must_tell = other->is_staged && (msg->way == UCP_ST_FIFO_BY_PUT);
    } else {
        if ((other->way > UCP_ST_FIFO_BY_UCP) ||
            ((other->way != UCP_ST_FIFO_BY_UCP) &&
             !ucp_st_fifo_nic_reaches(msg->fifo->peer))) {
            return UCS_ERR_UNREACHABLE; /* the sides differ in their lanes */
        }
        msg->length = other->length;
        msg->way    = other->way;
    }
    if ((msg->way != UCP_ST_FIFO_BY_UCP) &&
        (is_send || (msg->way == UCP_ST_FIFO_BY_NIC))) {
        status = uct_trig_rkey_unpack(other->keys[key], UCP_ST_PROTO_KEY,
                                      &msg->remote);
        if (status != UCS_OK) {
            return status;
        }
    }
    msg->num_puts = ucp_st_fifo_num_puts(msg);
    count         = ucp_st_fifo_is_counted_here(msg) ? 1 : msg->num_puts;
    if ((nic->rail != NULL) &&
        ((nic->expected + count) >= (nic->rail->attr.max_count / 2))) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }
    nic->expected    += count;
    msg->group->puts += count;
    --msg->group->unpaired;
    msg->is_paired = 1;
    msg->is_handed = (msg->way != UCP_ST_FIFO_BY_NIC);
    if (msg->is_handed) {
        ucs_list_add_tail(&ucp_st_fifos(nic->worker)->handed,
                          &msg->handed_list);
    } else {
        msg->is_todo = 1;
        ucs_list_add_tail(&nic->todo, &msg->todo_list);
    }
    return UCS_OK;
}

void ucp_st_fifo_nic_close(ucp_st_fifo_msg_t *msg)
{
    ucp_st_fifo_msg_done(msg);
    if (!ucp_st_fifo_is_send(msg)) {
        ucp_st_fifo_mem_dereg(&msg->mem);
    } else if (msg->slot != NULL) {
        ucp_st_fifo_mem_dereg(&msg->slot->mem);
    }
}

void ucp_st_fifo_nic_halt(ucp_st_fifo_nic_t *nic)
{
    nic->is_failing = 1;
    if (nic->rail != NULL) {
        (void)ucp_st_trig_trigger_halt(&nic->start);
    }
}

void ucp_st_fifo_nic_count(ucp_st_fifo_msg_t *msg)
{
    ucp_st_fifo_nic_t *nic = msg->nic;

    if (!ucp_st_fifo_is_counted_here(msg)) {
        return;
    }
    ++nic->worker->stats.proxied;
    if (nic->rail != NULL) {
        (void)uct_trig_cntr_add(nic->done.cntr, 1);
    } else {
        ++nic->arrived;
    }
}

static void ucp_st_fifo_msg_destroy(ucp_st_fifo_msg_t *msg)
{
    ucp_st_fifo_msg_done(msg);
    ucp_st_fifo_unlimit(msg);
    if (msg->is_paired && msg->is_handed) {
        ucs_list_del(&msg->handed_list);
    }
    ucs_list_del(&msg->group_list);
    ucp_st_fifo_del(msg);
    ucp_st_fifo_mem_dereg(&msg->mem);
    if (msg->slot != NULL) {
        ucp_st_fifo_slot_put(msg->nic, msg->slot);
    }
    if (msg->left != NULL) {
        ucp_st_req_called(msg->left);
    }
    free(msg);
}

/* Nothing of the other half can be written any more: fire what is armed, which
 * frees its entry */
static void ucp_st_fifo_msg_settle(ucp_st_fifo_msg_t *msg)
{
    if (msg->is_ended && msg->is_closed && !msg->is_fired &&
        (msg->slot != NULL)) {
        msg->is_fired = 1;
        (void)uct_trig_cntr_add(msg->slot->cntr, 2);
    }
    if ((msg->req == NULL) && (msg->bridge.pending == 0) &&
        (msg->puts.pending == 0) && !msg->is_moving && (msg->came == NULL) &&
        (!msg->is_ended || msg->is_closed)) {
        ucp_st_fifo_msg_destroy(msg);
    }
}

/* Of a failed queue: once no message can be reached any more, what waits for
 * the stream's starts is fired */
static void ucp_st_fifo_nic_fire(ucp_st_fifo_nic_t *nic)
{
    ucp_st_fifo_group_t *group;
    ucp_st_fifo_msg_t *msg;

    ucs_list_for_each(group, &nic->groups, list) {
        ucs_list_for_each(msg, &group->msgs, group_list) {
            if (!msg->is_ended || !msg->is_closed) {
                return;
            }
        }
    }
    nic->is_fired = 1;
    if (nic->rail != NULL) {
        ucp_st_trig_trigger_fire(&nic->start, nic->starts + 1);
    }
}

int ucp_st_fifo_nic_is_firing(const ucp_st_fifo_nic_t *nic)
{
    const ucp_st_fifo_group_t *group;
    const ucp_st_fifo_msg_t *msg;

    ucs_list_for_each(group, &nic->groups, list) {
        ucs_list_for_each(msg, &group->msgs, group_list) {
            if ((msg->puts.pending > 0) &&
                (ucp_st_fifo_is_send(msg) ? msg->is_fired : nic->is_fired)) {
                return 1;
            }
        }
    }
    return 0;
}

static void ucp_st_fifo_nic_free_groups(ucp_st_fifo_nic_t *nic)
{
    ucp_st_fifo_group_t *group, *tmp;

    if (nic->holds > 0) {
        return;
    }
    ucs_list_for_each_safe(group, tmp, &nic->groups, list) {
        if (ucs_list_is_empty(&group->msgs) &&
            (group->is_over || ((nic->queue == NULL) && !group->is_posted))) {
            ucs_list_del(&group->list);
            free(group);
        }
    }
}

/* The queue has left, and so has its last message. Additions to the word that
 * nobody waits for are fired. */
static void ucp_st_fifo_nic_reap(ucp_st_fifo_nic_t *nic)
{
    ucp_st_fifo_group_t *group;

    ucs_list_for_each(group, &nic->groups, list) {
        if (!ucs_list_is_empty(&group->msgs)) {
            return;
        }
    }
    if (nic->rail != NULL) {
        ucp_st_trig_late_del(&nic->late);
    }
    if (nic->words.pending == 0) {
        ucs_list_del(&nic->list);
        ucp_st_fifo_nic_free(nic);
    } else if (!nic->is_settled) {
        nic->is_settled = 1;
        (void)uct_trig_cntr_add(nic->done.cntr, nic->counted);
    }
}

void ucp_st_fifo_nic_settle(ucp_st_fifo_nic_t *nic, ucp_st_fifo_msg_t *only)
{
    ucp_st_fifo_group_t *group;
    ucp_st_fifo_msg_t *msg, *tmp;

    if (only != NULL) {
        ucp_st_fifo_msg_settle(only);
    } else {
        ucs_list_for_each(group, &nic->groups, list) {
            ucs_list_for_each_safe(msg, tmp, &group->msgs, group_list) {
                ucp_st_fifo_msg_settle(msg);
            }
        }
    }
    if (nic->is_failing && !nic->is_released && (nic->reading == 0)) {
        nic->is_released = 1;
        __atomic_store_n(nic->word, UCP_ST_RELEASE, __ATOMIC_RELEASE);
        ucs_gstream_wake(nic->word);
    }
    if (nic->is_failing && !nic->is_fired) {
        ucp_st_fifo_nic_fire(nic);
    }
    ucp_st_fifo_nic_free_groups(nic);
    if ((nic->queue == NULL) && (nic->holds == 0)) {
        ucp_st_fifo_nic_reap(nic);
    }
}

void ucp_st_fifo_nic_cleanup(ucp_st_worker_h worker)
{
    ucs_list_link_t *slots = &ucp_st_fifos(worker)->slots;

    while (!ucs_list_is_empty(slots)) {
        ucp_st_fifo_slot_destroy(ucs_list_extract_head(slots,
                                                       ucp_st_fifo_slot_t,
                                                       list),
                                 ucp_st_trig_rma_rail(worker, 0));
    }
}
