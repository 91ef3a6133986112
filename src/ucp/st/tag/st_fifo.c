/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_fifo.c - FIFOs: the numbers of messages, what the two sides say of them,
 * those that hosts move, and their end.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "tag/st_fifo.h"
#include "tag/st_fifo_nic.h"
#include "core/st_log.h"
#include "core/st_peer.h"
#include "core/st_progress.h"
#include "core/st_ucp.h"
#include "core/st_waits.h"
#include "core/st_watch.h"
#include "ctrl/st_ctrl.h"

#include <ucs/sys/math.h>

#include <stdlib.h>

/* How long the end of a worker waits for sends, seconds */
#define UCP_ST_FIFO_LEAVE_TIME 1.0

ucp_st_fifo_t *ucp_st_fifo_known(ucp_st_peer_t *peer, ucp_st_dir_t dir,
                                 ucp_st_key_id_t id)
{
    ucp_st_fifos_t *fifos = ucp_st_fifos(peer->worker);
    ucp_st_fifo_key_t key = {.uuid = peer->uuid, .id = id, .dir = dir};
    khiter_t iter         = kh_get(ucp_st_fifos, &fifos->table, key);

    return (iter == kh_end(&fifos->table)) ? NULL :
                                             kh_value(&fifos->table, iter);
}

ucp_st_fifo_t *ucp_st_fifo_get(ucp_st_peer_t *peer, ucp_st_dir_t dir,
                               ucp_st_key_id_t id)
{
    ucp_st_fifos_t *fifos = ucp_st_fifos(peer->worker);
    ucp_st_fifo_key_t key = {.uuid = peer->uuid, .id = id, .dir = dir};
    ucp_st_fifo_t *fifo   = ucp_st_fifo_known(peer, dir, id);
    khiter_t iter;
    int ret;

    if (fifo != NULL) {
        return fifo;
    }
    fifo = calloc(1, sizeof(*fifo));
    if (fifo == NULL) {
        return NULL;
    }
    iter = kh_put(ucp_st_fifos, &fifos->table, key, &ret);
    if (ret < 0) {
        free(fifo);
        return NULL;
    }
    kh_value(&fifos->table, iter) = fifo;
    fifo->peer                    = peer;
    fifo->id                      = id;
    fifo->dir                     = dir;
    ucs_list_head_init(&fifo->msgs);
    ucs_list_head_init(&fifo->heard);
    ++peer->worker->stats.fifos;
    return fifo;
}

void ucp_st_fifo_add(ucp_st_fifo_msg_t *msg)
{
    ucp_st_fifo_t *fifo = msg->fifo;

    if (ucs_list_is_empty(&fifo->msgs)) {
        ucs_list_add_tail(&ucp_st_fifo_peer(fifo->peer)->list, &fifo->list);
    }
    ucs_list_add_tail(&fifo->msgs, &msg->list);
}

void ucp_st_fifo_del(ucp_st_fifo_msg_t *msg)
{
    ucs_list_del(&msg->list);
    if (ucs_list_is_empty(&msg->fifo->msgs)) {
        ucs_list_del(&msg->fifo->list);
    }
}

/* Room for a message to the peer; NULL: nothing is posted to it any more. It is
 * lost without memory, which it is told later: callers go on with what they
 * hold. */
static ucp_st_ctrl_fifo_t *ucp_st_fifo_ctrl(ucp_st_peer_t *peer)
{
    ucp_st_ctrl_fifo_t *ctrl = NULL;

    if (ucp_st_ctrl_is_open(peer, UCP_ST_CTRL_FIFO)) {
        ctrl = ucp_st_ctrl_reserve(peer, UCP_ST_CTRL_FIFO, sizeof(*ctrl));
        if (ctrl == NULL) {
            ucp_st_peer_lost(peer, UCS_ERR_NO_MEMORY);
        }
    }
    return ctrl;
}

/* Also of one that is gone here, by its number */
static void ucp_st_fifo_post(ucp_st_fifo_t *fifo, uint64_t number,
                             ucp_st_fifo_what_t what, ucs_status_t status)
{
    ucp_st_ctrl_fifo_t *ctrl = ucp_st_fifo_ctrl(fifo->peer);
    ucp_st_ctrl_hdr_t hdr;

    if (ctrl != NULL) {
        hdr   = ctrl->hdr;
        *ctrl = (ucp_st_ctrl_fifo_t){
            .hdr    = hdr,
            .what   = what,
            .dir    = fifo->dir,
            .status = status,
            .tag    = fifo->id.tag,
            .scope  = fifo->id.scope,
            .number = number
        };
    }
}

void ucp_st_fifo_tell(ucp_st_fifo_msg_t *msg, ucp_st_fifo_what_t what)
{
    ucp_st_fifo_post(msg->fifo, msg->number, what, msg->status);
}

void ucp_st_fifo_announce(ucp_st_fifo_msg_t *msg)
{
    ucp_st_fifo_t *fifo      = msg->fifo;
    ucp_st_ctrl_fifo_t *ctrl = ucp_st_fifo_ctrl(fifo->peer);
    ucp_st_ctrl_hdr_t hdr;

    if (ctrl != NULL) {
        hdr   = ctrl->hdr;
        *ctrl = (ucp_st_ctrl_fifo_t){
            .hdr       = hdr,
            .what      = ucp_st_fifo_is_send(msg) ? UCP_ST_FIFO_SEND :
                                                    UCP_ST_FIFO_RECV,
            .dir       = fifo->dir,
            .is_staged = msg->is_staged,
            .way       = msg->way,
            .tag       = fifo->id.tag,
            .scope     = fifo->id.scope,
            .number    = msg->number,
            .length    = msg->length
        };
        ucp_st_fifo_nic_keys(msg, ctrl);
    }
}

void ucp_st_fifo_complete(ucp_st_fifo_msg_t *msg, ucs_status_t status)
{
    ucp_st_req_t *req      = msg->req;
    ucp_st_req_info_t info = {
        .status     = status,
        .length     = (status == UCS_OK) ? msg->length : 0,
        .sender_tag = msg->fifo->id.tag
    };

    if (req == NULL) {
        return;
    }
    if (!ucp_st_fifo_is_send(msg)) {
        ucp_st_fifo_nic_close(msg);
    }
    msg->req = NULL;
    req->msg = NULL;
    ucp_st_req_finish(req, &info);
}

/* The message ends: it goes behind those that are not ended, of which
 * ucp_st_fifo_abort_all() takes the first one */
static void ucp_st_fifo_end(ucp_st_fifo_msg_t *msg, ucs_status_t status)
{
    msg->is_ended = 1;
    msg->status   = status;
    ucs_list_del(&msg->group_list);
    ucs_list_add_tail(&msg->group->msgs, &msg->group_list);
}

/* A message that ends, whose queue has failed or left: nothing of it can be
 * written by its peer any more. It may be gone on return. */
static void ucp_st_fifo_abort(ucp_st_fifo_msg_t *msg)
{
    ucp_st_fifo_nic_t *nic = msg->nic;

    ucp_st_fifo_nic_close(msg);
    if (msg->fifo->peer->status != UCS_OK) {
        msg->is_closed |= !!msg->fifo->peer->closed;
    } else if (!msg->is_closed) {
        ucp_st_fifo_tell(msg, UCP_ST_FIFO_CANCEL);
    }
    ucp_st_fifo_nic_limit(msg);
    if (!msg->is_moving &&
        (!ucp_st_fifo_is_send(msg) || (msg->puts.pending == 0))) {
        ucp_st_fifo_complete(msg, msg->status);
    }
    ucp_st_fifo_nic_settle(nic, msg);
}

void ucp_st_fifo_fail(ucp_st_fifo_msg_t *msg, ucs_status_t status)
{
    ucp_st_fifo_nic_t *nic = msg->nic;
    ucp_st_queue_h queue   = nic->queue;
    ucp_st_req_t *req      = msg->req;

    if (msg->is_ended) {
        return;
    }
    ucp_st_fifo_end(msg, status);
    if ((req != NULL) && (queue != NULL)) {
        ucp_st_req_fail_queue(req, status); /* halts all before one ends */
    }
    ucp_st_fifo_abort(msg);
}

/* End all messages of a queue that has failed, or is about to be forgotten,
 * which may be gone on return */
static void ucp_st_fifo_abort_all(ucp_st_fifo_nic_t *nic)
{
    ucp_st_fifo_group_t *group;
    ucp_st_fifo_msg_t *msg;

    ++nic->holds;
    ucs_list_for_each(group, &nic->groups, list) {
        while (!ucs_list_is_empty(&group->msgs)) {
            msg = ucs_list_head(&group->msgs, ucp_st_fifo_msg_t, group_list);
            if (msg->is_ended) {
                break;
            }
            ucp_st_fifo_end(msg, UCS_ERR_CANCELED);
            ucp_st_fifo_abort(msg);
        }
    }
    --nic->holds;
    ucp_st_fifo_nic_settle(nic, NULL);
}

/* The two halves are known */
static void ucp_st_fifo_pair(ucp_st_fifo_msg_t *msg,
                             const ucp_st_ctrl_fifo_t *other)
{
    int is_send            = ucp_st_fifo_is_send(msg);
    ucp_st_fifo_nic_t *nic = msg->nic;
    ucs_status_t status;

    if (is_send ? (msg->length > other->length) :
                  (msg->length < other->length)) {
        ucs_diag("tag 0x%lx: send of %zu bytes for a receive of %zu",
                 msg->fifo->id.tag, is_send ? msg->length : other->length,
                 is_send ? other->length : msg->length);
        ucp_st_fifo_fail(msg, UCS_ERR_MESSAGE_TRUNCATED);
        return;
    }
    status = ucp_st_fifo_nic_pair(msg, other);
    if (status != UCS_OK) {
        ucp_st_fifo_fail(msg, status);
        return;
    }
    ucp_st_fifo_note(msg, msg->is_staged || other->is_staged);
    if (!is_send) {
        ucp_st_req_set_actual(msg->req, msg->length);
    }
    if (is_send) {
        ucp_st_fifo_announce(msg);
    } else if ((nic->queue == NULL) || msg->is_awaited) {
        ucp_st_fifo_tell(msg, UCP_ST_FIFO_ASK); /* the queue's wait does not
                                                   tell it */
        msg->is_asked = 1;
    }
    if (msg->is_handed) {
        ucp_st_service_wake(&ucp_st_fifos(nic->worker)->service);
    }
    ucp_st_fifo_nic_post(nic);
}

ucp_st_fifo_heard_t *ucp_st_fifo_heard_take(ucp_st_fifo_t *fifo,
                                            uint64_t number)
{
    ucp_st_fifo_heard_t *heard;

    /* Mostly the first one: messages that fail may be told in another order */
    ucs_list_for_each(heard, &fifo->heard, list) {
        if (heard->ctrl.number == number) {
            ucs_list_del(&heard->list);
            return heard;
        }
    }
    return NULL;
}

static void ucp_st_fifo_hear(ucp_st_fifo_t *fifo,
                             const ucp_st_ctrl_fifo_t *ctrl)
{
    ucp_st_fifo_heard_t *heard;

    /* A CANCEL may follow what was said before */
    ucs_list_for_each(heard, &fifo->heard, list) {
        if (heard->ctrl.number == ctrl->number) {
            heard->ctrl = *ctrl;
            return;
        }
    }
    heard = malloc(sizeof(*heard));
    if (heard == NULL) {
        ucp_st_peer_fail(fifo->peer, UCS_ERR_NO_MEMORY);
        return;
    }
    heard->ctrl = *ctrl;
    ucs_list_add_tail(&fifo->heard, &heard->list);
}

/* The first message from a number on, or NULL */
static ucp_st_fifo_msg_t *ucp_st_fifo_next_msg(const ucp_st_fifo_t *fifo,
                                               uint64_t number)
{
    ucp_st_fifo_msg_t *msg;

    ucs_list_for_each(msg, &fifo->msgs, list) {
        if (msg->number >= number) {
            return msg;
        }
    }
    return NULL;
}

ucp_st_fifo_msg_t *ucp_st_fifo_find(const ucp_st_fifo_t *fifo,
                                    uint64_t number)
{
    ucp_st_fifo_msg_t *msg = ucp_st_fifo_next_msg(fifo, number);

    return ((msg != NULL) && (msg->number == number)) ? msg : NULL;
}

/* The other half was cancelled: nothing of it can be written any more. The same
 * holds for this one, on return. */
static void ucp_st_fifo_canceled(ucp_st_fifo_msg_t *msg,
                                 const ucp_st_ctrl_fifo_t *ctrl)
{
    ucp_st_fifo_nic_t *nic = msg->nic;

    msg->is_closed = 1;
    if (msg->is_ended || (msg->req == NULL)) {
        ucp_st_fifo_nic_settle(nic, msg);
    } else {
        ucp_st_fifo_fail(msg, (ctrl->status == UCS_OK) ? UCS_ERR_CANCELED :
                              ucp_st_proto_status(ctrl->status));
    }
}

void ucp_st_fifo_arrived(ucp_st_fifo_msg_t *msg)
{
    ucp_st_fifo_nic_t *nic = msg->nic;

    if (!msg->is_paired || msg->is_ended) {
        return;
    }
    if (msg->is_handed && (msg->is_staged ||
                           (msg->way == UCP_ST_FIFO_BY_UCP))) {
        msg->is_ready = 1;
        ucp_st_service_wake(&ucp_st_fifos(nic->worker)->service);
    } else {
        ucp_st_fifo_complete(msg, UCS_OK);
        ucp_st_fifo_nic_settle(nic, msg);
    }
}

void ucp_st_fifo_receive(ucp_st_fifo_msg_t *msg,
                         const ucp_st_ctrl_fifo_t *ctrl)
{
    int is_send = ucp_st_fifo_is_send(msg);

    switch (ctrl->what) {
    case UCP_ST_FIFO_RECV:
    case UCP_ST_FIFO_SEND:
        if (!msg->is_ended && !msg->is_paired) {
            ucp_st_fifo_pair(msg, ctrl);
        }
        break;
    case UCP_ST_FIFO_READY:
        msg->is_ready |= is_send;
        ucp_st_service_wake(&ucp_st_fifos(msg->nic->worker)->service);
        break;
    case UCP_ST_FIFO_ASK:
        msg->must_tell |= is_send;
        if (is_send && (msg->req == NULL) && !msg->is_ended) {
            ucp_st_fifo_tell(msg, UCP_ST_FIFO_DONE);
        }
        break;
    case UCP_ST_FIFO_DONE:
        if (!is_send) {
            ucp_st_fifo_arrived(msg);
        }
        break;
    case UCP_ST_FIFO_CLOSED:
        msg->is_closed |= msg->is_ended;
        ucp_st_fifo_nic_settle(msg->nic, msg);
        break;
    default:
        ucp_st_fifo_canceled(msg, ctrl);
    }
}

static void ucp_st_fifo_peer_receive(ucp_st_peer_t *peer,
                                     const ucp_st_ctrl_fifo_t *ctrl)
{
    int is_cancel      = (ctrl->what == UCP_ST_FIFO_CANCEL);
    int may_be_first   = is_cancel || (ctrl->what == UCP_ST_FIFO_RECV);
    ucp_st_key_id_t id = {.tag = ctrl->tag, .scope = ctrl->scope};
    ucp_st_fifo_msg_t *msg;
    ucp_st_fifo_t *fifo;
    ucp_st_dir_t dir;

    if ((ctrl->what >= UCP_ST_FIFO_LAST) || (ctrl->number == 0) ||
        (ctrl->dir > UCP_ST_DIR_RECV) ||
        ((ctrl->what == UCP_ST_FIFO_RECV) && (ctrl->dir != UCP_ST_DIR_RECV)) ||
        ((ctrl->what == UCP_ST_FIFO_SEND) && (ctrl->dir != UCP_ST_DIR_SEND))) {
        ucp_st_peer_fail(peer, UCS_ERR_INVALID_PARAM);
        return;
    }
    dir  = (ctrl->dir == UCP_ST_DIR_SEND) ? UCP_ST_DIR_RECV : UCP_ST_DIR_SEND;
    fifo = may_be_first ? ucp_st_fifo_get(peer, dir, id) :
                          ucp_st_fifo_known(peer, dir, id);
    if (fifo == NULL) { /* without memory, if it may be the first one */
        ucp_st_peer_fail(peer, may_be_first ? UCS_ERR_NO_MEMORY :
                                              UCS_ERR_INVALID_PARAM);
        return;
    }
    msg = ucp_st_fifo_find(fifo, ctrl->number);
    if (msg != NULL) {
        ucp_st_fifo_receive(msg, ctrl);
    } else if ((ctrl->number > fifo->count) && may_be_first) {
        ucp_st_fifo_hear(fifo, ctrl);
    } else if (ctrl->what == UCP_ST_FIFO_ASK) { /* it is over */
        ucp_st_fifo_post(fifo, ctrl->number, UCP_ST_FIFO_DONE, UCS_OK);
    }
    if (is_cancel) {
        ucp_st_fifo_post(fifo, ctrl->number, UCP_ST_FIFO_CLOSED, UCS_OK);
    }
}

static void ucp_st_fifo_init(ucp_st_worker_h worker)
{
    ucp_st_fifos_t *fifos = ucp_st_fifos(worker);

    kh_init_inplace(ucp_st_fifos, &fifos->table);
    ucs_list_head_init(&fifos->nics);
    ucs_list_head_init(&fifos->slots);
    ucs_list_head_init(&fifos->handed);
    ucs_list_head_init(&fifos->limited);
}

static int ucp_st_fifo_is_used(ucp_st_worker_h worker)
{
    return 0; /* requests are counted where they are made */
}

/* A send that is paired, and not over */
static int ucp_st_fifo_is_sending(const ucp_st_fifos_t *fifos)
{
    ucp_st_fifo_group_t *group;
    ucp_st_fifo_nic_t *nic;
    ucp_st_fifo_msg_t *msg;

    ucs_list_for_each(nic, &fifos->nics, list) {
        ucs_list_for_each(group, &nic->groups, list) {
            ucs_list_for_each(msg, &group->msgs, group_list) {
                if ((msg->req != NULL) && msg->is_paired &&
                    ucp_st_fifo_is_send(msg) && !msg->is_ended) {
                    return 1;
                }
            }
        }
    }
    return 0;
}

/* All queues are gone. What was enqueued and not waited for may still be on the
 * way; what is not moved by then is cancelled. */
static void ucp_st_fifo_leave(ucp_st_worker_h worker)
{
    ucp_st_fifos_t *fifos = ucp_st_fifos(worker);
    double end            = ucp_st_worker_now() + UCP_ST_FIFO_LEAVE_TIME;
    unsigned idle         = 0;
    ucp_st_fifo_nic_t *nic, *next;
    int is_sending;

    do {
        ucp_st_progress_pause(&idle, ucp_st_progress(worker));
        ucp_st_worker_lock(worker);
        is_sending = ucp_st_fifo_is_sending(fifos);
        ucp_st_worker_unlock(worker);
    } while (is_sending && (ucp_st_worker_now() < end));
    ucp_st_worker_lock(worker);
    ucs_list_for_each_safe(nic, next, &fifos->nics, list) {
        ucp_st_fifo_abort_all(nic);
    }
    ucp_st_worker_unlock(worker);
}

/* Messages that this side has cancelled are answered, unless their peers are
 * gone. What was fired ends, with an error at the latest. */
static ucp_st_drain_t ucp_st_fifo_get_drain(ucp_st_worker_h worker)
{
    ucs_list_link_t *nics = &ucp_st_fifos(worker)->nics;
    ucp_st_fifo_nic_t *nic;

    ucs_list_for_each(nic, nics, list) {
        if (ucp_st_fifo_nic_is_firing(nic)) {
            return UCP_ST_DRAIN_SENDS;
        }
    }
    return ucs_list_is_empty(nics) ? UCP_ST_DRAIN_DONE : UCP_ST_DRAIN_ANSWERS;
}

static int ucp_st_fifo_peer_is_awaited(ucp_st_peer_t *peer)
{
    return !ucs_list_is_empty(&ucp_st_fifo_peer(peer)->list);
}

static void ucp_st_fifo_ask_peers(ucp_st_worker_h worker)
{
    ucp_st_peer_t *peer;

    ucs_list_for_each(peer, &worker->peers, list) {
        if (ucp_st_fifo_peer_is_awaited(peer)) {
            ucp_st_watch_ask_peer(peer);
        }
    }
}

/* Whether a message may be over and nobody wants to know: the NIC tells of a
 * receive's data where somebody waits for it */
static int ucp_st_fifo_is_unasked(const ucp_st_fifo_msg_t *msg)
{
    return msg->is_paired && !msg->is_handed && !msg->is_asked &&
           !ucp_st_fifo_is_send(msg) && (msg->group != NULL) &&
           !msg->group->is_closed;
}

static void ucp_st_fifo_waits_msg(ucp_st_waits_t *waits,
                                  const ucp_st_fifo_msg_t *msg)
{
    const ucp_st_fifo_t *fifo = msg->fifo;
    int is_send               = ucp_st_fifo_is_send(msg);

    if ((msg->req == NULL) || ucp_st_fifo_is_unasked(msg) ||
        !ucp_st_waits_see(waits, &msg->req->look, 0)) {
        return;
    }
    ucp_st_waits_begin_of(waits, msg->nic->worker, "a message",
                          &msg->req->look);
    ucp_st_waits_add(waits, "%s %lu of a FIFO, of %zu bytes %s ",
                     is_send ? "send" : "receive", msg->number, msg->length,
                     is_send ? "to" : "from");
    if (fifo->words != NULL) {
        ucp_st_waits_add(waits, "rank %d, tag %lu, %s", fifo->rank,
                         fifo->id.tag, fifo->words);
    } else {
        ucp_st_waits_add(waits, "peer 0x%lx, scope 0x%lx, tag 0x%lx",
                         fifo->peer->uuid, fifo->id.scope, fifo->id.tag);
    }
    ucp_st_waits_add(waits, ": %s",
                     msg->is_ended ? "it has failed, and the NIC or UCP still "
                     "has its data" :
                     !msg->is_paired ? "the peer has not enqueued its half" :
                     !ucp_st_fifo_nic_is_begun(msg) ?
                     "the stream has not come to it" :
                     "the peer's stream has not come to it");
}

static void ucp_st_fifo_waits(ucp_st_worker_h worker, ucp_st_waits_t *waits)
{
    ucp_st_fifo_msg_t *msg;
    ucp_st_fifo_t *fifo;
    ucp_st_peer_t *peer;

    ucs_list_for_each(peer, &worker->peers, list) {
        ucs_list_for_each(fifo, &ucp_st_fifo_peer(peer)->list, list) {
            ucs_list_for_each(msg, &fifo->msgs, list) {
                ucp_st_fifo_waits_msg(waits, msg);
            }
        }
    }
}

/* Nobody answers any more. What is armed is cancelled next, and not fired: a
 * peer that is there may have its half open. */
static void ucp_st_fifo_stop(ucp_st_worker_h worker)
{
    ucp_st_fifos_t *fifos = ucp_st_fifos(worker);
    ucp_st_fifo_nic_t *nic, *next;
    ucp_st_fifo_group_t *group;
    ucp_st_fifo_msg_t *msg;

    ucp_st_net_stop(worker); /* no thread of UCP's looks at messages then */
    ucp_st_service_remove(&fifos->service);
    ucp_st_fifo_drop_came(worker);
    ucp_st_worker_lock(worker);
    ucs_list_for_each_safe(nic, next, &fifos->nics, list) {
        nic->is_fired = 1;
        ucs_list_for_each(group, &nic->groups, list) {
            ucs_list_for_each(msg, &group->msgs, group_list) {
                msg->is_closed = 1;
                msg->is_fired  = 1;
            }
        }
        ucp_st_fifo_nic_settle(nic, NULL);
    }
    ucp_st_worker_unlock(worker);
}

static void ucp_st_fifo_drop_heard(ucp_st_fifo_t *fifo)
{
    while (!ucs_list_is_empty(&fifo->heard)) {
        free(ucs_list_extract_head(&fifo->heard, ucp_st_fifo_heard_t, list));
    }
}

static void ucp_st_fifo_close(ucp_st_worker_h worker)
{
    ucp_st_fifo_t *fifo;

    kh_foreach_value(&ucp_st_fifos(worker)->table, fifo, {
        ucp_st_fifo_drop_heard(fifo);
        free(fifo);
    });
    kh_clear(ucp_st_fifos, &ucp_st_fifos(worker)->table);
    ucp_st_fifo_nic_cleanup(worker);
}

static void ucp_st_fifo_cleanup(ucp_st_worker_h worker)
{
    kh_destroy_inplace(ucp_st_fifos, &ucp_st_fifos(worker)->table);
}

static void ucp_st_fifo_peer_init(ucp_st_peer_t *peer)
{
    ucs_list_head_init(&ucp_st_fifo_peer(peer)->list);
}

/* A peer that has left in order has sent, or cancelled, what was paired. What
 * has come by UCP goes on, unless UCP fails with the peer. */
static void ucp_st_fifo_peer_end(ucp_st_fifo_msg_t *msg)
{
    ucs_status_t status = msg->fifo->peer->status;
    int is_sent         = (status == UCS_ERR_CANCELED) && msg->is_paired &&
                          !ucp_st_fifo_is_send(msg);

    msg->is_closed |= !!msg->fifo->peer->closed;
    if (msg->is_ended || (msg->req == NULL)) {
        ucp_st_fifo_nic_settle(msg->nic, msg);
    } else if (is_sent && ((msg->came != NULL) || msg->is_moving ||
                           msg->is_ready)) {
        /* The thread has the data */
    } else if (is_sent && ((msg->way == UCP_ST_FIFO_BY_NIC) ||
                           ((msg->way == UCP_ST_FIFO_BY_PUT) &&
                            !msg->is_staged))) {
        ucp_st_fifo_arrived(msg);
    } else {
        ucp_st_fifo_fail(msg, status);
    }
}

static void ucp_st_fifo_peer_gone(ucp_st_peer_t *peer)
{
    ucs_list_link_t *list = &ucp_st_fifo_peer(peer)->list;
    ucs_list_link_t unseen;
    ucp_st_fifo_msg_t *msg;
    ucp_st_fifo_t *fifo;
    uint64_t next;

    /* A failure may take FIFOs from either list, and messages from theirs */
    ucs_list_head_init(&unseen);
    ucs_list_splice_tail(&unseen, list);
    ucs_list_head_init(list);
    while (!ucs_list_is_empty(&unseen)) {
        fifo = ucs_list_extract_head(&unseen, ucp_st_fifo_t, list);
        ucs_list_add_tail(list, &fifo->list);
        next = 0;
        while ((msg = ucp_st_fifo_next_msg(fifo, next)) != NULL) {
            next = msg->number + 1;
            ucp_st_fifo_peer_end(msg);
        }
    }
}

static int ucp_st_fifo_peer_is_used(ucp_st_peer_t *peer)
{
    ucp_st_fifo_msg_t *msg;
    ucp_st_fifo_t *fifo;

    ucs_list_for_each(fifo, &ucp_st_fifo_peer(peer)->list, list) {
        ucs_list_for_each(msg, &fifo->msgs, list) {
            if ((msg->req != NULL) && msg->is_paired) {
                return 1;
            }
        }
    }
    return 0;
}

static void ucp_st_fifo_queue_fail(ucp_st_queue_h queue)
{
    ucp_st_fifo_nic_t *nic = ucp_st_fifo_queue(queue)->nic;

    if (nic != NULL) {
        ucp_st_fifo_nic_halt(nic);
        ucp_st_fifo_abort_all(nic);
    }
}

/* The stream has passed all commands. Messages that are not started are
 * cancelled, the others go on without the queue: receives ask their senders, as
 * no wait may come that tells of them. */
static void ucp_st_fifo_queue_gone(ucp_st_queue_h queue)
{
    ucp_st_fifo_nic_t *nic = ucp_st_fifo_queue(queue)->nic;
    ucp_st_fifo_group_t *group;
    ucp_st_fifo_msg_t *msg;
    ucp_st_req_t *req;

    if (nic == NULL) {
        return;
    }
    while (nic->num_enqueued > 0) {
        req = ucs_list_head(&nic->enqueued, ucp_st_fifo_msg_t, list)->req;
        ucp_st_fifo_withdraw(req);
        ucp_st_req_finish_status(req, UCS_ERR_CANCELED);
    }
    ucs_list_for_each(group, &nic->groups, list) {
        ucs_list_for_each(msg, &group->msgs, group_list) {
            if (msg->req == NULL) {
                continue;
            }
            msg->req->queue = NULL;
            if (msg->is_paired && !ucp_st_fifo_is_send(msg) &&
                !msg->is_asked && !msg->is_ended) {
                msg->is_asked = 1;
                ucp_st_fifo_tell(msg, UCP_ST_FIFO_ASK);
            }
        }
    }
    nic->queue = NULL;
    ucp_st_fifo_nic_settle(nic, NULL);
}

const ucp_st_component_t ucp_st_fifo_component = {
    .priv   = UCP_ST_PRIV_FIFO,
    .sizes  = {
        [UCP_ST_OBJECT_WORKER] = sizeof(ucp_st_fifos_t),
        [UCP_ST_OBJECT_PEER]   = sizeof(ucp_st_fifo_peer_t),
        [UCP_ST_OBJECT_QUEUE]  = sizeof(ucp_st_fifo_queue_t)
    },
    .worker = {
        .init    = ucp_st_fifo_init,
        .open    = ucp_st_fifo_open,
        .is_used = ucp_st_fifo_is_used,
        .leave   = ucp_st_fifo_leave,
        .drain   = ucp_st_fifo_get_drain,
        .ask     = ucp_st_fifo_ask_peers,
        .waits   = ucp_st_fifo_waits,
        .stop    = ucp_st_fifo_stop,
        .close   = ucp_st_fifo_close,
        .cleanup = ucp_st_fifo_cleanup
    },
    .peer   = {
        .init       = ucp_st_fifo_peer_init,
        .gone       = ucp_st_fifo_peer_gone,
        .closed     = ucp_st_fifo_peer_gone,
        .is_used    = ucp_st_fifo_peer_is_used,
        .is_awaited = ucp_st_fifo_peer_is_awaited,
        .fifo       = ucp_st_fifo_peer_receive
    },
    .queue  = {
        .init    = ucp_st_queue_hook_none,
        .is_busy = ucp_st_queue_hook_zero,
        .fail    = ucp_st_fifo_queue_fail,
        .count   = ucp_st_queue_hook_count,
        .cleanup = ucp_st_fifo_queue_gone
    }
};
