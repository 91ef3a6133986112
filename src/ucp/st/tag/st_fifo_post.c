/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_fifo_post.c - messages of FIFOs: the deferred work of the NIC, and what
 * happens when it is over.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "tag/st_fifo_nic.h"
#include "core/st_log.h"
#include "core/st_peer.h"

#include <ucs/sys/math.h>

/* Where clear-to-send goes in a pad */
#define UCP_ST_FIFO_CLEAR_OFFSET sizeof(uint64_t)

_Static_assert(UCP_ST_TRIG_PIECE >= (2 * sizeof(uint64_t)), "both words fit");

/* Deferred work is over. What was cancelled was by this side, at its end. If
 * the peer is lost the message fails with it. */
static void ucp_st_fifo_nic_ended(ucp_st_fifo_msg_t *msg, ucs_status_t status)
{
    if ((status == UCS_OK) || (status == UCS_ERR_CANCELED) || msg->is_ended) {
        return;
    }
    if (!msg->fifo->peer->is_self && ucp_st_trig_is_loss(status)) {
        ucp_st_peer_lost(msg->fifo->peer, status);
    } else {
        ucp_st_fifo_nic_doubt(msg, status);
    }
}

static void ucp_st_fifo_bridge_done(void *arg, ucs_status_t status)
{
    ucp_st_fifo_msg_t *msg = arg;
    ucp_st_fifo_nic_t *nic = msg->nic;

    nic->worker->stats.bridges_fired += (status == UCS_OK);
    ucp_st_fifo_nic_ended(msg, status);
    ucp_st_trig_line_over(&msg->bridge, nic->rail);
    ucp_st_fifo_nic_settle(nic, msg);
}

static void ucp_st_fifo_clear_done(void *arg, ucs_status_t status)
{
    ucp_st_fifo_msg_t *msg = arg;
    ucp_st_fifo_nic_t *nic = msg->nic;

    nic->worker->stats.cts_fired += (status == UCS_OK);
    ucp_st_fifo_nic_ended(msg, status);
    ucp_st_trig_line_over(&msg->puts, nic->rail);
    ucp_st_fifo_nic_settle(nic, msg);
}

static void ucp_st_fifo_put_done(void *arg, ucs_status_t status)
{
    ucp_st_fifo_msg_t *msg = arg;
    ucp_st_fifo_nic_t *nic = msg->nic;

    if (status == UCS_OK) {
        ++nic->worker->stats.writes_fired;
        ++msg->num_done;
    }
    ucp_st_fifo_nic_ended(msg, status);
    ucp_st_trig_line_over(&msg->puts, nic->rail);
    if (msg->puts.pending == 0) {
        nic->reading -= (msg->left == NULL);
        if (msg->num_done == msg->num_puts) {
            if (msg->must_tell) {
                ucp_st_fifo_tell(msg, UCP_ST_FIFO_DONE);
            }
            ucp_st_fifo_complete(msg, UCS_OK);
        } else if (msg->is_ended) {
            ucp_st_fifo_complete(msg, msg->status);
        }
    }
    ucp_st_fifo_nic_settle(nic, msg);
}

/* A receive whose data is here */
static void ucp_st_fifo_landed(ucp_st_fifo_msg_t *msg)
{
    if (!msg->is_ended) {
        ucp_st_fifo_complete(msg, UCS_OK);
    }
}

/* A group is over for the receiver, and those before are */
static void ucp_st_fifo_group_over(ucp_st_fifo_nic_t *nic,
                                   const ucp_st_fifo_group_t *over)
{
    ucp_st_fifo_group_t *group;
    ucp_st_fifo_msg_t *msg;

    ucs_list_for_each(group, &nic->groups, list) {
        ucs_list_for_each(msg, &group->msgs, group_list) {
            if (!ucp_st_fifo_is_send(msg)) {
                ucp_st_fifo_landed(msg);
            }
        }
        if (group == over) {
            break;
        }
    }
}

/* The word was counted up for a group. An addition that was under way may have
 * read the word before the release was stored and written it after: so that is
 * stored again. */
static void ucp_st_fifo_word_done(void *arg, ucs_status_t status)
{
    ucp_st_fifo_group_t *over = arg;
    ucp_st_fifo_nic_t *nic    = over->nic;

    ucp_st_trig_line_over(&nic->words, nic->rail);
    over->is_over = 1;
    if (nic->is_released) {
        __atomic_store_n(nic->word, UCP_ST_RELEASE, __ATOMIC_RELEASE);
    }
    ucs_gstream_wake(nic->word);
    if ((status != UCS_OK) && (nic->queue != NULL)) {
        if (status != UCS_ERR_CANCELED) {
            ucs_error("lane 'trig': the NIC does not reach this process: %s",
                      ucs_status_string(status));
        }
        ucp_st_queue_fail(nic->queue, NULL, status);
    } else if ((status == UCS_OK) && !nic->is_failing && !nic->is_settled) {
        ++nic->worker->stats.atomics_fired;
        ucp_st_fifo_group_over(nic, over);
    }
    ucp_st_fifo_nic_settle(nic, NULL);
}

/* Starts that the stream has come to, as far as is known */
static uint64_t ucp_st_fifo_nic_begun(const ucp_st_fifo_nic_t *nic)
{
    uint64_t value = 0;

    if (nic->is_failing) {
        return 0;
    }
    if (nic->rail == NULL) {
        return __atomic_load_n(&nic->begun, __ATOMIC_ACQUIRE);
    }
    if (nic->start.is_halted ||
        (uct_trig_cntr_read(nic->start.cntr, &value) != UCS_OK) ||
        (value < nic->start.base)) {
        return 0;
    }
    return value - nic->start.base;
}

int ucp_st_fifo_nic_is_begun(const ucp_st_fifo_msg_t *msg)
{
    return ucp_st_fifo_nic_begun(msg->nic) >= msg->start;
}

/* `is_ahead`, here and below: the stream has not come to the message, which so
 * leaves some entries to others, and is not due */
static ucs_status_t ucp_st_fifo_bridge_post(ucp_st_fifo_msg_t *msg,
                                            int is_ahead)
{
    ucp_st_fifo_nic_t *nic  = msg->nic;
    ucp_st_trig_work_t work = {
        .type     = UCP_ST_TRIG_WORK_ADD,
        .ep       = nic->rail->self_ep,
        .add      = {
            .value       = 1,
            .remote_addr = (uintptr_t)msg->slot->pad.address,
            .rkey        = msg->slot->rkey
        },
        .deferred = {
            .trigger   = nic->start.cntr,
            .threshold = nic->start.base + msg->start,
            .done      = ucp_st_fifo_bridge_done,
            .arg       = msg
        }
    };

    return ucp_st_trig_line_post(&msg->bridge, nic->rail, &work, is_ahead);
}

/* The next put of the data. If `is_due` the hosts have seen that both sides
 * have started. */
static ucs_status_t ucp_st_fifo_put_post(ucp_st_fifo_msg_t *msg, int is_due,
                                         int is_ahead)
{
    ucp_st_fifo_nic_t *nic  = msg->nic;
    size_t put_max          = ucp_st_trig_rma_put_max(msg->fifo->peer);
    size_t offset           = msg->puts.posted * put_max;
    ucp_st_trig_work_t work = {
        .type     = UCP_ST_TRIG_WORK_PUT,
        .ep       = ucp_st_trig_rma_ep(msg->fifo->peer, 0),
        .put      = {
            .buffer      = UCS_PTR_BYTE_OFFSET(msg->data, offset),
            .length      = ucs_min(msg->length - offset, put_max),
            .local       = msg->mem,
            .remote_addr = msg->remote.address + offset,
            .rkey        = msg->remote
        },
        .deferred = {
            .trigger    = is_due ? nic->start.cntr : msg->slot->cntr,
            .threshold  = is_due ? (nic->start.base + msg->start) :
                                   (2 * msg->slot->uses),
            .completion = nic->done.cntr,
            .is_due     = is_due,
            .done       = ucp_st_fifo_put_done,
            .arg        = msg
        }
    };
    ucs_status_t status;

    if (msg->length == 0) {
        work.put.buffer = nic->pad.address;
        work.put.length = 1; /* a write of 0 bytes is not counted everywhere */
        work.put.local  = nic->pad.slab->mem;
    }
    status = ucp_st_trig_line_post(&msg->puts, nic->rail, &work, is_ahead);
    if (status == UCS_OK) {
        nic->reading += (msg->puts.pending == 1);
        ++nic->worker->stats.writes_posted;
        nic->worker->stats.proxied += is_due && (msg->puts.posted == 1);
    }
    return status;
}

static ucs_status_t ucp_st_fifo_clear_post(ucp_st_fifo_msg_t *msg, int is_ahead)
{
    ucp_st_fifo_nic_t *nic  = msg->nic;
    ucp_st_trig_work_t work = {
        .type     = UCP_ST_TRIG_WORK_PUT,
        .ep       = ucp_st_trig_rma_ep(msg->fifo->peer, 0),
        .put      = {
            .buffer      = nic->pad.address,
            .length      = sizeof(uint64_t),
            .local       = nic->pad.slab->mem,
            .remote_addr = msg->remote.address + UCP_ST_FIFO_CLEAR_OFFSET,
            .rkey        = msg->remote
        },
        .deferred = {
            .trigger   = nic->start.cntr,
            .threshold = nic->start.base + msg->start,
            .done      = ucp_st_fifo_clear_done,
            .arg       = msg
        }
    };

    return ucp_st_trig_line_post(&msg->puts, nic->rail, &work, is_ahead);
}

static ucs_status_t ucp_st_fifo_msg_post(ucp_st_fifo_msg_t *msg, int is_ahead)
{
    ucs_status_t status = UCS_OK;

    if (!ucp_st_fifo_is_send(msg)) {
        return ucp_st_fifo_clear_post(msg, is_ahead);
    }
    if (msg->bridge.posted == 0) {
        status = ucp_st_fifo_bridge_post(msg, is_ahead);
    }
    while ((status == UCS_OK) && (msg->puts.posted < msg->num_puts)) {
        status = ucp_st_fifo_put_post(msg, 0, is_ahead);
    }
    return status;
}

void ucp_st_fifo_msg_done(ucp_st_fifo_msg_t *msg)
{
    if (msg->is_todo) {
        ucs_list_del(&msg->todo_list);
        msg->is_todo = 0;
    }
}

/* Have the NIC count the word up when all that the group counts is there */
static ucs_status_t ucp_st_fifo_word_post(ucp_st_fifo_nic_t *nic,
                                          ucp_st_fifo_group_t *group)
{
    ucp_st_trig_work_t work;

    ucp_st_trig_tally_fill(&nic->done, nic->rail, 1, &work);
    work.deferred.threshold = nic->counted + group->puts;
    work.deferred.done      = ucp_st_fifo_word_done;
    work.deferred.arg       = group;
    return ucp_st_trig_line_post(&nic->words, nic->rail, &work, 0);
}

/* The same without a NIC: count it up if that is so */
static ucs_status_t ucp_st_fifo_word_add(ucp_st_fifo_nic_t *nic,
                                         ucp_st_fifo_group_t *group)
{
    if (nic->arrived < (nic->counted + group->puts)) {
        return UCS_INPROGRESS;
    }
    group->is_over = 1;
    /* Pairs with the acquire load of the stream's wait: what was received is in
     * memory */
    (void)__atomic_fetch_add(nic->word, 1, __ATOMIC_RELEASE);
    ucs_gstream_wake(nic->word);
    return UCS_OK;
}

/* Post the next word, if all that it counts is known: UCS_OK; UCS_INPROGRESS if
 * there is none to post now */
static ucs_status_t ucp_st_fifo_next_word(ucp_st_fifo_nic_t *nic)
{
    ucp_st_fifo_group_t *group;
    ucs_status_t status;

    ucs_list_for_each(group, &nic->groups, list) {
        if (group->is_posted) {
            continue;
        }
        if (!group->is_closed || (group->unpaired > 0)) {
            break;
        }
        status = (nic->rail != NULL) ? ucp_st_fifo_word_post(nic, group) :
                                       ucp_st_fifo_word_add(nic, group);
        if (status == UCS_OK) {
            group->is_posted = 1;
            nic->counted    += group->puts;
        }
        return status;
    }
    return UCS_INPROGRESS;
}

/* All of them, not only the first, which may wait for what a later one does; up
 * to one that the NIC does not take of the host either. A failure may take
 * others from the list. */
static void ucp_st_fifo_nic_post_msgs(ucp_st_fifo_nic_t *nic)
{
    ucs_list_link_t untried;
    uint64_t begun, refused;
    ucp_st_fifo_msg_t *msg;
    ucs_status_t status;

    if (ucs_list_is_empty(&nic->todo)) {
        return;
    }
    begun   = ucp_st_fifo_nic_begun(nic);
    refused = nic->rail->refused;
    ucs_list_head_init(&untried);
    ucs_list_splice_tail(&untried, &nic->todo);
    ucs_list_head_init(&nic->todo);
    while (!ucs_list_is_empty(&untried) && (nic->rail->refused == refused)) {
        msg = ucs_list_extract_head(&untried, ucp_st_fifo_msg_t, todo_list);
        ucs_list_add_tail(&nic->todo, &msg->todo_list);
        status = ucp_st_fifo_msg_post(msg, msg->start > begun);
        if (status == UCS_ERR_NO_RESOURCE) {
            continue;
        }
        ucp_st_fifo_msg_done(msg);
        if (status != UCS_OK) {
            ucp_st_fifo_fail(msg, status);
        }
    }
    ucs_list_splice_tail(&nic->todo, &untried);
}

void ucp_st_fifo_nic_post(ucp_st_fifo_nic_t *nic)
{
    ucs_status_t status;

    ucp_st_fifo_nic_post_msgs(nic);
    do {
        status = nic->is_failing ? UCS_INPROGRESS : ucp_st_fifo_next_word(nic);
    } while (status == UCS_OK);
    if ((status < UCS_OK) && (status != UCS_ERR_NO_RESOURCE) &&
        (nic->queue != NULL)) {
        ucs_error("lane 'trig': the NIC takes no addition to a word: %s",
                  ucs_status_string(status));
        ucp_st_queue_fail(nic->queue, NULL, status);
    }
    if (nic->rail == NULL) {
        return;
    }
    if (!ucs_list_is_empty(&nic->todo) || (status == UCS_ERR_NO_RESOURCE)) {
        ucp_st_trig_late_add(nic->worker, &nic->late);
        ucp_st_trig_refused(nic->worker); /* the stream may come to it */
    } else {
        ucp_st_trig_late_del(&nic->late);
    }
}

ucs_status_t ucp_st_fifo_nic_put(ucp_st_fifo_msg_t *msg)
{
    ucs_status_t status = UCS_OK;

    while ((status == UCS_OK) && (msg->puts.posted < msg->num_puts)) {
        status = ucp_st_fifo_put_post(msg, 1, 0);
    }
    return status;
}
