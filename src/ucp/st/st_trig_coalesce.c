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
#include "st_trig_use.h"
#include "st_worker.h"

#include <ucs_trace.h>

#include <ucs/sys/math.h>

#include <string.h>

/* Active messages of the lane's own interfaces: any number will do */
#define UCP_ST_TRIG_COALESCE_AM_ID 1

/* More sends go into several messages */
#define UCP_ST_TRIG_COALESCE_MAX 64

/* Data begins where any type may */
#define UCP_ST_TRIG_COALESCE_ALIGN sizeof(uint64_t)

/* Sends that make one message */
typedef struct ucp_st_trig_coalesced {
    unsigned           count;
    size_t             length; /* of the message so far, bytes */
    ucp_st_trig_part_t *parts[UCP_ST_TRIG_COALESCE_MAX];
} ucp_st_trig_coalesced_t;


static size_t ucp_st_trig_coalesce_padded(size_t length)
{
    return ucs_div_round_up(length, UCP_ST_TRIG_COALESCE_ALIGN) *
           UCP_ST_TRIG_COALESCE_ALIGN;
}

static size_t ucp_st_trig_coalesce_size(const ucp_st_trig_part_t *part)
{
    return sizeof(ucp_st_trig_item_t) +
           ucp_st_trig_coalesce_padded(part->op->msg_length);
}

/* In the inbox; a ready send knows none, and its receive has been started */
static unsigned ucp_st_trig_coalesce_place(const ucp_st_op_t *op, uint64_t use)
{
    return (op->trig.plan.proto == UCP_ST_TRIG_READY) ?
           0 : ucp_st_trig_inbox_index(op, use);
}

/* The last of a round, behind which a put may count */
static int ucp_st_trig_coalesce_is_last(const ucp_st_op_t *op, uint64_t use)
{
    return (op->trig.plan.proto != UCP_ST_TRIG_READY) &&
           ucp_st_trig_is_last_of_inbox(op, use);
}

/* What comes before the data of a part's use */
static ucp_st_trig_item_t
ucp_st_trig_coalesce_item(const ucp_st_trig_part_t *part)
{
    const ucp_st_op_t *op = part->op;

    return (ucp_st_trig_item_t){
        .op_id  = op->remote_id,
        .length = op->msg_length,
        .place  = ucp_st_trig_coalesce_place(op, part->run)
    };
}

/* uct_pack_callback_t */
static size_t ucp_st_trig_coalesce_pack(void *dest, void *arg)
{
    const ucp_st_trig_coalesced_t *message = arg;
    ucp_st_trig_item_t *item               = dest;
    const ucp_st_trig_part_t *part;
    unsigned i;

    for (i = 0; i < message->count; ++i) {
        part  = message->parts[i];
        *item = ucp_st_trig_coalesce_item(part);
        memcpy(item + 1, part->op->buffer, part->op->msg_length);
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
        ucs_list_add_tail(&dev->unsent, &chain->list);
    } else {
        chain->last->next = part;
    }
    chain->last = part;
    part->next  = UCP_ST_TRIG_COALESCE_END;
}

static void ucp_st_trig_coalesce_shift(ucp_st_trig_chain_t *chain)
{
    ucp_st_trig_part_t *next = chain->first->next;

    chain->first = (next == UCP_ST_TRIG_COALESCE_END) ? NULL : next;
}

/* Take from a chain's begin as much as a message has room for. What failed
 * meanwhile is not sent any more; it may be gone afterwards. */
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
            part->next = NULL;
            ucp_st_op_reap(part->op);
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

/* Words follow these */
static void ucp_st_trig_coalesce_add_all(ucp_st_trig_part_t **parts,
                                         const uct_trig_cntr_h *cntrs,
                                         const uint64_t *values,
                                         unsigned count)
{
    unsigned done = 0;
    ucs_status_t status;

    while (done < count) {
        done += uct_trig_cntr_add_all(&cntrs[done], &values[done], count - done,
                                      &status);
        if (status != UCS_OK) {
            ucp_st_op_fail(parts[done++]->op, status);
        }
    }
}

/* A use of each is complete: count its word up, or for the last one of a round
 * the counter that the word follows, by all of the round that messages carried.
 * So they are the same again before a put can count. */
static void ucp_st_trig_coalesce_count(ucp_st_trig_part_t **parts,
                                       unsigned count)
{
    const volatile uint64_t *words[UCP_ST_TRIG_COALESCE_MAX];
    ucp_st_trig_part_t *last[UCP_ST_TRIG_COALESCE_MAX];
    uct_trig_cntr_h cntrs[UCP_ST_TRIG_COALESCE_MAX];
    uint64_t values[UCP_ST_TRIG_COALESCE_MAX];
    unsigned num_words = 0;
    unsigned num_last  = 0;
    uint64_t depth, use;
    unsigned i;

    for (i = 0; i < count; ++i) {
        use = 1 + __atomic_load_n(&parts[i]->slot->word, __ATOMIC_RELAXED);
        if (ucp_st_trig_coalesce_is_last(parts[i]->op, use)) {
            depth              = parts[i]->op->trig.plan.depth;
            last[num_last]     = parts[i];
            cntrs[num_last]    = parts[i]->data;
            values[num_last++] = (use == depth) ? depth : (depth - 1);
        } else {
            __atomic_store_n(&parts[i]->slot->word, use, __ATOMIC_RELEASE);
            words[num_words++] = &parts[i]->slot->word;
        }
    }
    ucs_gstream_wake_all(words, num_words);
    ucp_st_trig_coalesce_add_all(last, cntrs, values, num_last);
}

static void ucp_st_trig_coalesce_sent(ucp_st_trig_coalesced_t *message)
{
    unsigned i;

    message->parts[0]->op->worker->stats.coalesced += message->count;
    for (i = 0; i < message->count; ++i) {
        message->parts[i]->next = NULL;
    }
    ucp_st_trig_coalesce_count(message->parts, message->count);
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

/* Where the data of an item is to go. A freed receive's buffer is the user's
 * again. */
static void *ucp_st_trig_coalesce_dest(const ucp_st_op_t *op, unsigned place)
{
    const ucp_st_trig_plan_t *plan = &op->trig.plan;

    switch (plan->proto) {
    case UCP_ST_TRIG_READY:
        return op->freed ? NULL : op->buffer;
    case UCP_ST_TRIG_EAGER:
        return (place >= plan->depth) ? NULL :
               UCS_PTR_BYTE_OFFSET(op->trig.parts[0].inbox,
                                   place * plan->stride);
    default:
        return NULL;
    }
}

/* The receive that an item is for, and where the data is to go. NULL if there
 * is none like that: it failed, or was freed, and its peer hears of that. */
static ucp_st_trig_part_t *
ucp_st_trig_coalesce_find(ucp_st_worker_h worker,
                          const ucp_st_trig_item_t *item, void **dest_p)
{
    ucp_st_op_t *op = ucp_st_op_get(worker, item->op_id);

    *dest_p = NULL;
    if ((op != NULL) && (op->dir == UCP_ST_DIR_RECV) &&
        (op->trig.num_parts == 1) && !op->trig.halted &&
        (item->length == op->msg_length)) {
        *dest_p = ucp_st_trig_coalesce_dest(op, item->place);
    }
    if (*dest_p == NULL) {
        ucs_debug("message of %u bytes for operation 0x%lx, which is not there",
                  item->length, item->op_id);
        return NULL;
    }
    return op->trig.parts;
}

/* What has come is counted. A sender may have said before that it is done with
 * the operation, and no use behind these ever comes. */
static void ucp_st_trig_coalesce_landed(ucp_st_trig_part_t **parts,
                                        unsigned count)
{
    unsigned i;

    ucp_st_trig_coalesce_count(parts, count);
    for (i = 0; i < count; ++i) {
        if (parts[i]->op->max_uses != UINT64_MAX) {
            ucp_st_trig_catch_up(parts[i]->op);
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
    void *dest;

    for (i = 0; i < message->count; ++i) {
        op            = message->parts[i]->op;
        item          = ucp_st_trig_coalesce_item(message->parts[i]);
        landed[count] = ucp_st_trig_coalesce_find(op->worker, &item, &dest);
        if (landed[count] != NULL) {
            memcpy(dest, op->buffer, op->msg_length);
            ++count;
        }
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
        ucp_st_trig_coalesce_add(dev, part);
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

/* Non-zero if the use is to be sent */
static int ucp_st_trig_coalesce_begin(ucp_st_trig_part_t *part)
{
    /* Pairs with the release store in ucp_st_trig_release_waits() */
    if (__atomic_load_n(&part->op->trig.halted, __ATOMIC_ACQUIRE)) {
        return 0;
    }
    __atomic_store_n(&part->run, part->run + 1, __ATOMIC_RELAXED);
    return 1;
}

/* The lock is held: what streams have pushed before is ahead */
static void ucp_st_trig_coalesce_start_locked(ucp_st_worker_h worker,
                                              ucp_st_trig_part_t **list)
{
    ucp_st_trig_coalesce_take(&worker->trig);
    for (; *list != NULL; ++list) {
        if (ucp_st_trig_coalesce_begin(*list)) {
            ucp_st_trig_coalesce_add(&worker->trig, *list);
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

/* Runs on the stream */
static void ucp_st_trig_coalesce_start_all_func(void *arg)
{
    ucp_st_trig_part_t **list = arg;
    ucp_st_worker_h worker    = (*list)->op->worker;

    if (ucp_st_worker_trylock(worker)) {
        ucp_st_trig_coalesce_start_locked(worker, list);
        ucp_st_worker_unlock(worker);
    } else {
        ucp_st_trig_coalesce_start_pushed(worker, list);
    }
}

static void ucp_st_trig_coalesce_start_func(void *arg)
{
    ucp_st_trig_part_t *list[] = {arg, NULL};

    ucp_st_trig_coalesce_start_all_func(list);
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

static int ucp_st_trig_coalesce_may_join(const ucp_st_op_t *op)
{
    return (op->lane == &ucp_st_trig_lane_ops) && (op->started == 0) &&
           (op->dir == UCP_ST_DIR_SEND) &&
           (op->trig.plan.proto != UCP_ST_TRIG_STANDARD) &&
           (op->msg_length > 0) &&
           (op->msg_length <= op->peer->trig.limits.coalesce_max) &&
           (op->trig.num_parts == 1) && (op->trig.parts[0].num_puts == 1) &&
           op->trig.parts[0].is_mirrored;
}

void ucp_st_trig_coalesce_join(const ucp_st_op_h *ops, size_t count)
{
    size_t num_sends = 0;
    size_t i;

    if (ucs_trace_is_on()) {
        return; /* it is to show each message */
    }
    for (i = 0; i < count; ++i) {
        num_sends += ucp_st_trig_coalesce_may_join(ops[i]);
    }
    if (num_sends < ops[0]->worker->config.coalesce_min) {
        return;
    }
    for (i = 0; i < count; ++i) {
        if (ucp_st_trig_coalesce_may_join(ops[i])) {
            ops[i]->trig.joined = 1;
            ops[i]->is_exact    = 1; /* the word alone counts its uses */
        }
    }
}

/* uct_am_callback_t; called from progress, with the lock held */
static ucs_status_t ucp_st_trig_coalesce_handle(void *arg, void *data,
                                                size_t length, unsigned flags)
{
    ucp_st_worker_h worker           = arg;
    const ucp_st_trig_item_t *item   = data;
    ucp_st_trig_part_t *parts[UCP_ST_TRIG_COALESCE_MAX];
    ucp_st_trig_part_t *part;
    unsigned count = 0;
    void *dest;
    size_t size;

    (void)flags;
    __atomic_store_n(&worker->trig.is_coalescing, 1, __ATOMIC_RELAXED);
    while (length >= sizeof(*item)) {
        if (item->length > (length - sizeof(*item))) {
            break; /* it is cut off */
        }
        part = ucp_st_trig_coalesce_find(worker, item, &dest);
        if (part != NULL) {
            memcpy(dest, item + 1, item->length);
            parts[count++] = part;
        }
        if (count == UCP_ST_TRIG_COALESCE_MAX) {
            ucp_st_trig_coalesce_landed(parts, count);
            count = 0;
        }
        size    = ucs_min(length, sizeof(*item) + ucp_st_trig_coalesce_padded(
                                                          item->length));
        length -= size;
        item    = UCS_PTR_BYTE_OFFSET(item, size);
    }
    ucp_st_trig_coalesce_landed(parts, count);
    return UCS_OK;
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
