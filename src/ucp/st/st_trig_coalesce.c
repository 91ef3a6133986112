/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_coalesce.c - the trig lane: small messages that start together go to
 * their peer as one.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_trig_coalesce.h"
#include "st_lane.h"
#include "st_leave.h"
#include "st_log.h"
#include "st_op.h"
#include "st_queue.h"
#include "st_trace.h"
#include "st_trig_use.h"
#include "st_worker.h"

#include <ucs_trace.h>

#include <ucs/sys/math.h>

#include <string.h>

/* Active messages of the lane's own interfaces: any number will do */
#define UCP_ST_TRIG_COALESCE_AM_ID 1

/* Sends that make one message */
typedef struct ucp_st_trig_coalesced {
    unsigned           count;
    size_t             length; /* of the message so far, bytes */
    ucp_st_trig_part_t *parts[UCP_ST_TRIG_COALESCE_MAX];
} ucp_st_trig_coalesced_t;


static int ucp_st_trig_coalesce_is_cts(const ucp_st_trig_part_t *part)
{
    return part->op->dir == UCP_ST_DIR_RECV;
}

static size_t ucp_st_trig_coalesce_size(const ucp_st_trig_part_t *part)
{
    return sizeof(ucp_st_trig_item_t) +
           (ucp_st_trig_coalesce_is_cts(part) ?
            0 : ucp_st_trig_coalesce_padded(part->op->msg_length));
}

/* What comes before the data of a part's use, or all clear-to-sends that are
 * due */
static ucp_st_trig_item_t ucp_st_trig_coalesce_item(ucp_st_trig_part_t *part)
{
    const ucp_st_op_t *op   = part->op;
    ucp_st_trig_item_t item = {.op_id = op->remote_id};

    if (ucp_st_trig_coalesce_is_cts(part)) {
        part->cleared = __atomic_load_n(&part->run, __ATOMIC_RELAXED);
        item.clears   = UCP_ST_TRIG_ITEM_CTS | part->cleared;
    } else {
        item.length = op->msg_length;
    }
    return item;
}

/* uct_pack_callback_t */
static size_t ucp_st_trig_coalesce_pack(void *dest, void *arg)
{
    const ucp_st_trig_coalesced_t *message = arg;
    ucp_st_trig_item_t *item               = dest;
    ucp_st_trig_part_t *part;
    unsigned i;

    for (i = 0; i < message->count; ++i) {
        part  = message->parts[i];
        *item = ucp_st_trig_coalesce_item(part);
        memcpy(item + 1, part->op->buffer, item->length);
        item = UCS_PTR_BYTE_OFFSET(item, ucp_st_trig_coalesce_size(part));
    }
    return message->length;
}

static void ucp_st_trig_coalesce_add(ucp_st_trig_dev_t *dev,
                                     ucp_st_trig_part_t *part)
{
    ucp_st_trig_chain_t *chain = part->chain;

    if (chain->first == NULL) {
        chain->first = part;
    } else {
        chain->last->next = part;
    }
    chain->last = part;
    part->next  = UCP_ST_TRIG_COALESCE_END;
    if (!chain->is_listed) {
        chain->is_listed = 1;
        ucs_list_add_tail(&dev->unsent, &chain->list);
    }
}

/* The inbox has room for the use that was started last. A receive's stream may
 * count on meanwhile. */
static int ucp_st_trig_coalesce_has_room(const ucp_st_trig_part_t *part)
{
    return ucp_st_trig_coalesce_is_cts(part) ||
           (part->op->trig.plan.proto == UCP_ST_TRIG_READY) ||
           (part->run <= part->room);
}

/* What failed meanwhile is not sent any more; it may be gone afterwards */
static void ucp_st_trig_coalesce_drop(ucp_st_trig_part_t *part)
{
    part->next = NULL;
    ucp_st_op_reap(part->op);
}

/* Send it, now or when there is room for it */
static void ucp_st_trig_coalesce_start(ucp_st_trig_dev_t *dev,
                                       ucp_st_trig_part_t *part)
{
    if (part->op->trig.halted) {
        ucp_st_trig_coalesce_drop(part);
    } else if (ucp_st_trig_coalesce_has_room(part)) {
        ucp_st_trig_coalesce_add(dev, part);
    } else {
        part->is_parked = 1;
        part->next      = UCP_ST_TRIG_COALESCE_END;
        __atomic_fetch_add(&dev->cts_waits, 1, __ATOMIC_RELAXED);
    }
}

void ucp_st_trig_coalesce_resume(ucp_st_trig_part_t *part)
{
    if (part->is_parked && ucp_st_trig_coalesce_has_room(part)) {
        part->is_parked = 0;
        ucp_st_trig_coalesce_add(&part->op->worker->trig, part);
    }
}

void ucp_st_trig_coalesce_unpark(ucp_st_op_t *op)
{
    ucp_st_trig_part_t *part = op->trig.parts;

    if ((op->dir == UCP_ST_DIR_SEND) && (op->trig.num_parts > 0) &&
        part->is_parked) {
        part->is_parked = 0;
        part->next      = NULL;
    }
}

static void ucp_st_trig_coalesce_shift(ucp_st_trig_chain_t *chain)
{
    ucp_st_trig_part_t *next = chain->first->next;

    chain->first = (next == UCP_ST_TRIG_COALESCE_END) ? NULL : next;
}

/* Take from a chain's begin as much as a message has room for */
static void ucp_st_trig_coalesce_pick(ucp_st_trig_chain_t *chain,
                                      ucp_st_trig_coalesced_t *message)
{
    ucp_st_trig_part_t *part;
    size_t size;

    message->count  = 0;
    message->length = 0;
    while (((part = chain->first) != NULL) &&
           (message->count < UCP_ST_TRIG_COALESCE_MAX)) {
        if (part->op->trig.halted) {
            ucp_st_trig_coalesce_shift(chain);
            ucp_st_trig_coalesce_drop(part);
            continue;
        }
        size = ucp_st_trig_coalesce_size(part);
        if ((message->length + size) > chain->max_length) {
            break;
        }
        ucp_st_trig_coalesce_shift(chain);
        message->parts[message->count++] = part;
        message->length                 += size;
    }
}

/* There was no room for the message: it is the chain's begin again */
static void ucp_st_trig_coalesce_put_back(ucp_st_trig_chain_t *chain,
                                          ucp_st_trig_coalesced_t *message)
{
    ucp_st_trig_part_t *next = chain->first;
    unsigned i               = message->count;

    if (next == NULL) {
        next        = UCP_ST_TRIG_COALESCE_END;
        chain->last = message->parts[i - 1];
    }
    while (i > 0) {
        message->parts[--i]->next = next;
        next                      = message->parts[i];
    }
    chain->first = next;
}

void ucp_st_trig_coalesce_count(ucp_st_trig_part_t **parts, unsigned count)
{
    const volatile uint64_t *words[UCP_ST_TRIG_COALESCE_MAX];
    unsigned i;

    for (i = 0; i < count; ++i) {
        words[i] = &parts[i]->slot->word;
        __atomic_store_n(&parts[i]->slot->word, 1 +
                         __atomic_load_n(words[i], __ATOMIC_RELAXED),
                         __ATOMIC_RELEASE);
    }
    ucs_gstream_wake_all(words, count);
}

/* The next one may be due before this one was sent, as the sender can be ahead
 * of both: the part is in one list only. Either the stream that counts it finds
 * that it still is, and this looks behind that, or it finds that it is in none
 * (ucp_st_trig_coalesce_begin()). */
static void ucp_st_trig_coalesce_cts_next(ucp_st_trig_part_t *part)
{
    (void)__atomic_exchange_n(&part->is_clearing, 0, __ATOMIC_ACQ_REL);
    if ((__atomic_load_n(&part->run, __ATOMIC_RELAXED) != part->cleared) &&
        !part->op->trig.halted &&
        !__atomic_exchange_n(&part->is_clearing, 1, __ATOMIC_ACQ_REL)) {
        ucp_st_trig_coalesce_add(&part->op->worker->trig, part);
    }
}

static void ucp_st_trig_coalesce_cts_sent(ucp_st_trig_part_t *part)
{
    ++part->op->worker->stats.cts_fired;
    ucp_st_trig_coalesce_cts_next(part);
    ucp_st_trace_nic(part->op, UCP_ST_TRACE_POST, "clear-to-send",
                     part->cleared);
    ucp_st_trace_nic(part->op, UCP_ST_TRACE_REAP, "clear-to-send",
                     part->cleared);
    ucp_st_op_reap(part->op);
}

static void ucp_st_trig_coalesce_sent(ucp_st_trig_coalesced_t *message)
{
    ucp_st_worker_h worker = message->parts[0]->op->worker;
    unsigned num_sends     = 0;
    ucp_st_trig_part_t *part;
    unsigned i;

    for (i = 0; i < message->count; ++i) {
        part       = message->parts[i];
        part->next = NULL;
        if (ucp_st_trig_coalesce_is_cts(part)) {
            ucp_st_trig_coalesce_cts_sent(part);
        } else {
            message->parts[num_sends++] = part;
        }
    }
    worker->stats.coalesced += num_sends;
    ucp_st_trig_coalesce_count(message->parts, num_sends);
}

static void ucp_st_trig_coalesce_failed(ucp_st_trig_coalesced_t *message,
                                        ucs_status_t status)
{
    unsigned i;

    for (i = 0; i < message->count; ++i) {
        message->parts[i]->next = NULL;
    }
    for (i = 0; i < message->count; ++i) {
        if (ucp_st_trig_is_loss(status)) {
            ucp_st_leave_lost(message->parts[i]->op->peer, status);
        } else {
            ucp_st_op_fail(message->parts[i]->op, status);
        }
    }
}

/* A message to the own worker needs no transport */
static void ucp_st_trig_coalesce_copy(ucp_st_trig_coalesced_t *message)
{
    ucp_st_trig_part_t *landed[UCP_ST_TRIG_COALESCE_MAX];
    unsigned count = 0;
    const ucp_st_op_t *op;
    ucp_st_trig_item_t item;
    unsigned i;

    for (i = 0; i < message->count; ++i) {
        op            = message->parts[i]->op;
        item          = ucp_st_trig_coalesce_item(message->parts[i]);
        landed[count] = ucp_st_trig_coalesce_accept(op->worker, &item,
                                                    op->buffer);
        count        += (landed[count] != NULL);
    }
    ucp_st_trig_coalesce_landed(landed, count);
    ucp_st_trig_coalesce_sent(message);
}

/* As much as one message takes; zero if there is no room for it now */
static int ucp_st_trig_coalesce_send_one(ucp_st_trig_chain_t *chain)
{
    ucp_st_trig_coalesced_t message;
    ssize_t length;

    ucp_st_trig_coalesce_pick(chain, &message);
    if (message.count == 0) {
        return 1;
    }
    if (chain->is_self) {
        ucp_st_trig_coalesce_copy(&message);
        return 1;
    }
    length = uct_ep_am_bcopy(chain->ep, UCP_ST_TRIG_COALESCE_AM_ID,
                             ucp_st_trig_coalesce_pack, &message, 0);
    if (length >= 0) {
        ucp_st_trig_coalesce_sent(&message);
    } else if (length == UCS_ERR_NO_RESOURCE) {
        ucp_st_trig_coalesce_put_back(chain, &message);
        return 0;
    } else {
        ucp_st_trig_coalesce_failed(&message, (ucs_status_t)length);
    }
    return 1;
}

/* What streams have pushed, oldest first */
static void ucp_st_trig_coalesce_take(ucp_st_trig_dev_t *dev)
{
    ucp_st_trig_part_t *list = UCP_ST_TRIG_COALESCE_END;
    ucp_st_trig_part_t *part, *next;

    /* Pairs with the push in ucp_st_trig_coalesce_push() */
    part = __atomic_exchange_n(&dev->pushed, NULL, __ATOMIC_ACQUIRE);
    while ((part != NULL) && (part != UCP_ST_TRIG_COALESCE_END)) {
        next       = part->next;
        part->next = list;
        list       = part;
        part       = next;
    }
    for (part = list; part != UCP_ST_TRIG_COALESCE_END; part = next) {
        next = part->next;
        ucp_st_trig_coalesce_start(dev, part);
    }
}

/* What is in chains */
static void ucp_st_trig_coalesce_send_all(ucp_st_worker_h worker)
{
    ucs_list_link_t *unsent = &worker->trig.unsent;
    ucp_st_trig_chain_t *chain;

    while (!ucs_list_is_empty(unsent)) {
        chain = ucs_list_head(unsent, ucp_st_trig_chain_t, list);
        if (!ucp_st_trig_coalesce_send_one(chain)) {
            ucp_st_trig_dev_late(worker);
            return;
        }
        if (chain->first == NULL) {
            chain->is_listed = 0;
            ucs_list_del(&chain->list);
        }
    }
}

void ucp_st_trig_coalesce_send(ucp_st_worker_h worker)
{
    ucp_st_trig_coalesce_take(&worker->trig);
    ucp_st_trig_coalesce_send_all(worker);
}

void ucp_st_trig_coalesce_hand_over(ucp_st_worker_h worker)
{
    do {
        if (!ucp_st_worker_trylock(worker)) {
            return; /* who holds the lock comes here next */
        }
        ucp_st_trig_coalesce_send(worker);
        (void)pthread_mutex_unlock(&worker->lock);
        /* As in ucp_st_worker_unlock() */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    } while (__atomic_load_n(&worker->trig.pushed, __ATOMIC_RELAXED) != NULL);
}

/* A chain of parts, of which `last` is one more */
static void ucp_st_trig_coalesce_push(ucp_st_trig_dev_t *dev,
                                      ucp_st_trig_part_t *first,
                                      ucp_st_trig_part_t *last)
{
    ucp_st_trig_part_t *head = __atomic_load_n(&dev->pushed, __ATOMIC_RELAXED);

    do {
        last->next = (head == NULL) ? UCP_ST_TRIG_COALESCE_END : head;
    } while (!__atomic_compare_exchange_n(&dev->pushed, &head, first, 1,
                                          __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* before the try to lock */
}

/* Non-zero if the use, or clear-to-send, is to be sent and is in no list */
static int ucp_st_trig_coalesce_begin(ucp_st_trig_part_t *part)
{
    /* Pairs with the release store in ucp_st_trig_release_waits() */
    if (__atomic_load_n(&part->op->trig.halted, __ATOMIC_ACQUIRE)) {
        return 0;
    }
    __atomic_store_n(&part->run, part->run + 1, __ATOMIC_RELAXED);
    return !ucp_st_trig_coalesce_is_cts(part) ||
           !__atomic_exchange_n(&part->is_clearing, 1, __ATOMIC_ACQ_REL);
}

/* The lock is held: what streams have pushed before is ahead */
static void ucp_st_trig_coalesce_start_locked(ucp_st_worker_h worker,
                                              ucp_st_trig_part_t **list)
{
    ucp_st_trig_coalesce_take(&worker->trig);
    for (; *list != NULL; ++list) {
        if (ucp_st_trig_coalesce_begin(*list)) {
            ucp_st_trig_coalesce_start(&worker->trig, *list);
        }
    }
    ucp_st_trig_coalesce_send_all(worker);
}

/* It is not: who holds it sends them */
static void ucp_st_trig_coalesce_start_pushed(ucp_st_worker_h worker,
                                              ucp_st_trig_part_t **list)
{
    ucp_st_trig_part_t *first = NULL;
    ucp_st_trig_part_t *last  = NULL;

    for (; *list != NULL; ++list) {
        if (ucp_st_trig_coalesce_begin(*list)) {
            (*list)->next = first;
            first         = *list;
            last          = (last == NULL) ? *list : last;
        }
    }
    if (first != NULL) {
        ucp_st_trig_coalesce_push(&worker->trig, first, last);
        ucp_st_trig_coalesce_hand_over(worker);
    }
}

void ucp_st_trig_coalesce_start_all(ucp_st_trig_part_t **list)
{
    ucp_st_worker_h worker = (*list)->op->worker;

    if (ucp_st_worker_trylock(worker)) {
        ucp_st_trig_coalesce_start_locked(worker, list);
        ucp_st_worker_unlock(worker);
    } else {
        ucp_st_trig_coalesce_start_pushed(worker, list);
    }
}

static void ucp_st_trig_coalesce_start_all_func(void *arg)
{
    ucp_st_trig_coalesce_start_all(arg);
}

static void ucp_st_trig_coalesce_start_func(void *arg)
{
    ucp_st_trig_part_t *list[] = {arg, NULL};

    ucp_st_trig_coalesce_start_all(list);
}

size_t ucp_st_trig_coalesce_start_cmds(ucp_st_queue_h queue, void **parts,
                                       size_t count, ucs_gstream_cmd_t *cmd)
{
    switch (count) {
    case 0:
        return 0;
    case 1:
        return ucp_st_queue_add_start(queue, ucp_st_trig_coalesce_start_func,
                                      ucp_st_trig_coalesce_start_all_func,
                                      parts[0], cmd);
    default:
        return ucp_st_queue_add_call(queue, ucp_st_trig_coalesce_start_all_func,
                                     parts, count, cmd);
    }
}

/* Runs on the stream */
static void ucp_st_trig_coalesce_begin_all_func(void *arg)
{
    ucp_st_trig_part_t **list = arg;

    for (; *list != NULL; ++list) {
        /* Pairs with the load in ucp_st_trig_coalesce_has_begun() */
        __atomic_store_n(&(*list)->begun, (*list)->begun + 1, __ATOMIC_RELEASE);
    }
}

static void ucp_st_trig_coalesce_begin_func(void *arg)
{
    ucp_st_trig_part_t *list[] = {arg, NULL};

    ucp_st_trig_coalesce_begin_all_func(list);
}

size_t ucp_st_trig_coalesce_begin_cmds(ucp_st_queue_h queue, void **parts,
                                       size_t count, ucs_gstream_cmd_t *cmd)
{
    if ((count == 0) ||
        (ucs_gstream_type(queue->stream) != UCS_GSTREAM_TYPE_HOST)) {
        return 0;
    }
    if (count > 1) {
        return ucp_st_queue_add_call(queue, ucp_st_trig_coalesce_begin_all_func,
                                     parts, count, cmd);
    }
    return ucp_st_queue_add_start(queue, ucp_st_trig_coalesce_begin_func,
                                  ucp_st_trig_coalesce_begin_all_func, parts[0],
                                  cmd);
}

/* A ready send's receive has no inbox that the data could go to instead */
static int ucp_st_trig_coalesce_has_kind(const ucp_st_op_t *op,
                                         ucp_st_dir_t dir)
{
    return (op->dir == dir) &&
           ((dir == UCP_ST_DIR_SEND) ?
            (op->trig.plan.proto != UCP_ST_TRIG_STANDARD) :
            (op->trig.plan.proto == UCP_ST_TRIG_EAGER));
}

static int ucp_st_trig_coalesce_may_join(const ucp_st_op_t *op,
                                         ucp_st_dir_t dir)
{
    return (op->lane == &ucp_st_trig_lane_ops) && (op->started == 0) &&
           ucp_st_trig_coalesce_has_kind(op, dir) && (op->msg_length > 0) &&
           (op->msg_length <= op->peer->trig.limits.coalesce_max) &&
           (op->trig.num_parts == 1) && (op->trig.parts[0].num_puts == 1) &&
           op->trig.parts[0].is_mirrored;
}

static void ucp_st_trig_coalesce_join_one(ucp_st_op_t *op)
{
    ucp_st_trig_part_t *part = op->trig.parts;

    op->trig.joined = 1;
    if (op->dir == UCP_ST_DIR_RECV) {
        part->is_told = 1;
        part->round   = ucp_st_trig_plan_round(&op->trig.plan);
        return;
    }
    part->room   = op->trig.plan.depth;
    op->is_exact = 1; /* the word alone counts its uses */
    /* Clear-to-sends will come */
    __atomic_store_n(&op->worker->trig.is_coalescing, 1, __ATOMIC_RELAXED);
}

static void ucp_st_trig_coalesce_join_dir(const ucp_st_op_h *ops, size_t count,
                                          ucp_st_dir_t dir)
{
    size_t num = 0;
    size_t i;

    for (i = 0; i < count; ++i) {
        num += ucp_st_trig_coalesce_may_join(ops[i], dir);
    }
    if (num < ops[0]->worker->config.coalesce_min) {
        return;
    }
    for (i = 0; i < count; ++i) {
        if (ucp_st_trig_coalesce_may_join(ops[i], dir)) {
            ucp_st_trig_coalesce_join_one(ops[i]);
        }
    }
}

void ucp_st_trig_coalesce_join(const ucp_st_op_h *ops, size_t count)
{
    if (ucs_trace_is_on()) {
        return; /* it is to show each message */
    }
    ucp_st_trig_coalesce_join_dir(ops, count, UCP_ST_DIR_SEND);
    ucp_st_trig_coalesce_join_dir(ops, count, UCP_ST_DIR_RECV);
}

/* Longest message that has room in an empty one */
static size_t ucp_st_trig_coalesce_room(const ucp_st_trig_rail_t *rail)
{
    return (rail->iface_attr.cap.am.max_bcopy - sizeof(ucp_st_trig_item_t)) /
           UCP_ST_TRIG_COALESCE_ALIGN * UCP_ST_TRIG_COALESCE_ALIGN;
}

ucs_status_t ucp_st_trig_coalesce_open(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = &worker->trig;
    size_t max             = worker->config.coalesce_max;
    ucs_status_t status    = UCS_OK;
    ucp_st_trig_rail_t *rail;
    unsigned i;

    if (!dev->helped || (max == 0)) {
        return UCS_OK;
    }
    for (i = 0; (i < dev->num_rails) && (status == UCS_OK); ++i) {
        rail   = &dev->rails[i];
        max    = ucs_min(max, ucp_st_trig_coalesce_room(rail));
        status = uct_iface_set_am_handler(rail->iface,
                                          UCP_ST_TRIG_COALESCE_AM_ID,
                                          ucp_st_trig_coalesce_handle, worker,
                                          0);
        uct_iface_progress_enable(rail->iface, UCT_PROGRESS_RECV);
    }
    dev->coalesce_max = (status == UCS_OK) ? max : 0;
    return status;
}

ucs_status_t ucp_st_trig_coalesce_flush(ucp_st_worker_h worker)
{
    ucp_st_trig_dev_t *dev = &worker->trig;
    ucs_status_t result    = UCS_OK;
    ucs_status_t status;
    unsigned i;

    ucp_st_trig_coalesce_send(worker);
    if (!ucs_list_is_empty(&dev->unsent)) {
        return UCS_INPROGRESS;
    }
    if (worker->stats.coalesced == 0) {
        return UCS_OK; /* what else is under way nobody has to wait for */
    }
    for (i = 0; i < dev->num_rails; ++i) {
        status = uct_iface_flush(dev->rails[i].iface, 0, NULL);
        if ((status == UCS_INPROGRESS) || (status == UCS_ERR_NO_RESOURCE)) {
            result = UCS_INPROGRESS;
        }
    }
    return result;
}
