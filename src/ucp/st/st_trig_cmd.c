/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_cmd.c - the trig lane: what the stream does for one operation.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_trig_coalesce.h"
#include "st_trig_use.h"
#include "st_lane.h"
#include "st_log.h"
#include "st_op.h"
#include "st_queue.h"
#include "st_worker.h"

#include <ucs_trace.h>

#include <ucs/sys/math.h>

#include <string.h>

_Static_assert((UCP_ST_TRIG_MAX_RAILS <= UCP_ST_LANE_MAX_CMDS) &&
               (3 <= UCP_ST_LANE_MAX_CMDS), "commands of all rails");

/* What NICs are triggered for together */
#define UCP_ST_TRIG_MAX_ADDS 32

/* Items of the longest list of copies, two for each */
#define UCP_ST_TRIG_MAX_TAKES (UCP_ST_QUEUE_MAX_ITEMS & ~1ul)

typedef struct ucp_st_trig_adds {
    unsigned        count;
    ucp_st_op_t     *ops[UCP_ST_TRIG_MAX_ADDS];
    uct_trig_cntr_h cntrs[UCP_ST_TRIG_MAX_ADDS];
    uint64_t        values[UCP_ST_TRIG_MAX_ADDS];
} ucp_st_trig_adds_t;

/* Of a send's first part: see whether the clear-to-send is there already. The
 * NIC has stored its number to the pad; only a statistic hangs on that. */
static void ucp_st_trig_look(ucp_st_trig_part_t *part)
{
    const ucp_st_op_t *op = part->op;
    uint64_t seen         = __atomic_load_n(&part->slot->pad, __ATOMIC_RELAXED);

    if ((part == op->trig.parts) &&
        (seen < ucp_st_trig_cts_needed(op, part->run))) {
        __atomic_fetch_add(&op->worker->trig.cts_waits, 1, __ATOMIC_RELAXED);
    }
}

/* Count what is triggered now */
static void ucp_st_trig_count_run(ucp_st_trig_part_t *part)
{
    __atomic_store_n(&part->run, part->run + 1, __ATOMIC_RELAXED);
    if (part->op->dir == UCP_ST_DIR_SEND) {
        ucp_st_trig_look(part);
    } else {
        /* The clear-to-send reads it. One that is before it may be under way
         * still, and tell of this one, which is no harm. */
        __atomic_store_n(&part->slot->pad, part->run, __ATOMIC_RELAXED);
    }
}

/* The use will never complete. A stream takes no lock: the service thread fails
 * the operation. */
static void ucp_st_trig_start_failed(ucp_st_op_t *op, ucs_status_t status)
{
    ucs_error("operation %p: failed to trigger the NIC: %s", op,
              ucs_status_string(status));
    __atomic_store_n(&op->trig.untriggered, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&op->worker->trig.untriggered, 1, __ATOMIC_RELEASE);
    ucp_st_trig_dev_wake(op->worker);
}

static void ucp_st_trig_add(const ucp_st_trig_adds_t *adds)
{
    unsigned done = 0;
    ucs_status_t status;

    while (done < adds->count) {
        done += uct_trig_cntr_add_all(&adds->cntrs[done], &adds->values[done],
                                      adds->count - done, &status);
        if (status != UCS_OK) {
            ucp_st_trig_start_failed(adds->ops[done++], status);
        }
    }
}

static void ucp_st_trig_add_part(ucp_st_trig_adds_t *adds,
                                 ucp_st_trig_part_t *part)
{
    /* Pairs with the release store in ucp_st_trig_release_waits(): a stream
     * that passed a released wait starts nothing any more */
    if (__atomic_load_n(&part->op->trig.halted, __ATOMIC_ACQUIRE)) {
        return;
    }
    ucp_st_trig_count_run(part);
    adds->ops[adds->count]    = part->op;
    adds->cntrs[adds->count]  = part->start;
    adds->values[adds->count] = ucp_st_trig_weight(part->op);
    if (++adds->count == UCP_ST_TRIG_MAX_ADDS) {
        ucp_st_trig_add(adds);
        adds->count = 0;
    }
}

/* Runs on the stream, where the NIC has no trigger address */
static void ucp_st_trig_start_all_func(void *arg)
{
    ucp_st_trig_part_t **list = arg;
    ucp_st_trig_adds_t adds;

    adds.count = 0; /* to clear the rest, of which little is used, takes time */
    for (; *list != NULL; ++list) {
        ucp_st_trig_add_part(&adds, *list);
    }
    ucp_st_trig_add(&adds);
}

static void ucp_st_trig_start_func(void *arg)
{
    ucp_st_trig_part_t *list[] = {arg, NULL};

    ucp_st_trig_start_all_func(list);
}

/* The same behind copies out of inboxes. Their loads come before all that the
 * NIC does from here on; the peer's next put, or message, writes what they
 * read. */
static void ucp_st_trig_cts_func(void *arg)
{
    ucp_st_trig_part_t *list[] = {arg, NULL};

    __sync_synchronize();
    if (list[0]->op->trig.plan.is_cts_sent) {
        ucp_st_trig_coalesce_start_all(list);
    } else {
        ucp_st_trig_start_all_func(list);
    }
}

/* Whether a use of an inbox is the last one of its round: `run` rounds have
 * been cleared. To divide would be a good part of what the stream does for it,
 * as would be to look at the operation for a small message. */
static int ucp_st_trig_ends_round(const ucp_st_trig_part_t *part, uint64_t use)
{
    uint64_t round = part->is_told ?
                     part->round : ucp_st_trig_plan_round(&part->op->trig.plan);

    return use == ((part->run + 1) * round);
}

/* Of such a list those that a clear-to-send is due for */
static void ucp_st_trig_clear_all(void **item)
{
    ucp_st_trig_part_t *list[UCP_ST_TRIG_MAX_ADDS + 1];
    unsigned count = 0;
    ucp_st_trig_adds_t adds;
    ucp_st_trig_part_t *part;

    adds.count = 0;
    for (; *item != NULL; item += 2) {
        part = item[0];
        if (!ucp_st_trig_ends_round(part, (uintptr_t)item[1])) {
            continue;
        }
        if (!part->op->trig.plan.is_cts_sent) {
            ucp_st_trig_add_part(&adds, part);
            continue;
        }
        if (count == UCP_ST_TRIG_MAX_ADDS) {
            list[count] = NULL;
            ucp_st_trig_coalesce_start_all(list);
            count = 0;
        }
        list[count++] = part;
    }
    ucp_st_trig_add(&adds);
    if (count > 0) {
        list[count] = NULL;
        ucp_st_trig_coalesce_start_all(list);
    }
}

/* Copies and clear-to-sends of uses that are waited for together: a list of
 * parts, each with the number of its use behind it */
static void ucp_st_trig_take_all_func(void *arg)
{
    int has_cts = 0;
    ucp_st_trig_part_t *part;
    uint64_t use;
    void **item;

    for (item = arg; *item != NULL; item += 2) {
        part     = item[0];
        use      = (uintptr_t)item[1];
        has_cts |= ucp_st_trig_ends_round(part, use);
        if (!ucp_st_trig_coalesce_is_direct(part, use)) {
            memcpy(part->op->buffer, ucp_st_trig_inbox_place(part, use),
                   part->op->msg_length);
        }
    }
    if (has_cts) {
        __sync_synchronize(); /* as in ucp_st_trig_cts_func() */
        ucp_st_trig_clear_all(arg);
    }
}

static int ucp_st_trig_is_called(const ucp_st_trig_part_t *part)
{
    return part->doorbell_mode == UCT_TRIG_DOORBELL_CALL;
}

/* Add to T or R for the `count`-th time, where the NIC has a trigger address. A
 * stream's store to a doorbell comes after all that the stream did before,
 * loads as well. */
static void ucp_st_trig_store_cmd(const ucp_st_trig_part_t *part,
                                  uint64_t count, ucs_gstream_cmd_t *cmd)
{
    uint64_t weight = ucp_st_trig_weight(part->op);

    cmd->type           = UCS_GSTREAM_CMD_WRITE64;
    cmd->u.word.address = part->doorbell;
    cmd->u.word.value   = (part->doorbell_mode == UCT_TRIG_DOORBELL_ADD) ?
                          weight : (count * weight);
}

size_t ucp_st_trig_start_cmds(ucp_st_op_t *op, ucp_st_queue_h queue,
                              uint64_t use, ucs_gstream_cmd_t *cmds)
{
    void *item      = &op->trig.parts[0];
    size_t num_cmds = 0;
    ucp_st_trig_part_t *part;
    unsigned i;

    if (!ucp_st_trig_has_put(op) || ucp_st_trig_has_inbox(op)) {
        /* The peer waits for nothing that is done here */
        return ucp_st_trig_coalesce_begin_cmds(queue, &item, op->trig.joined,
                                               cmds);
    }
    if (op->trig.joined) {
        return ucp_st_trig_coalesce_start_cmds(queue, &item, 1, cmds);
    }
    for (i = 0; i < op->trig.num_parts; ++i) {
        part = &op->trig.parts[i];
        if (ucp_st_trig_is_called(part)) {
            num_cmds += ucp_st_queue_add_start(queue, ucp_st_trig_start_func,
                                               ucp_st_trig_start_all_func, part,
                                               &cmds[num_cmds]);
        } else {
            ucp_st_trig_store_cmd(part, use, &cmds[num_cmds++]);
        }
    }
    return num_cmds;
}

/* Of those, the start of what is joined is an item of a list, one of sends and
 * one of receives, and that of any other operation is nothing */
size_t ucp_st_trig_start_run(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                             size_t count, size_t *num_cmds)
{
    size_t max       = ucs_min(count, UCP_ST_QUEUE_MAX_ITEMS);
    void **sends     = ucp_st_queue_items(queue);
    void **recvs     = &sends[max + 1]; /* behind all that sends may take */
    size_t num_sends = 0;
    size_t num_recvs = 0;
    const ucp_st_op_t *op;
    size_t i;

    for (i = 0; i < max; ++i) {
        op = ops[i];
        if ((op->lane != &ucp_st_trig_lane_ops) ||
            ((op->started + 1) >= op->trig.plain_end)) {
            break;
        }
        if (op->dir == UCP_ST_DIR_SEND) {
            sends[num_sends++] = op->trig.parts;
        } else if (op->trig.joined) {
            recvs[num_recvs++] = op->trig.parts;
        }
    }
    *num_cmds += ucp_st_trig_coalesce_start_cmds(queue, sends, num_sends,
                                                 &queue->cmds[*num_cmds]);
    *num_cmds += ucp_st_trig_coalesce_begin_cmds(queue, recvs, num_recvs,
                                                 &queue->cmds[*num_cmds]);
    return i;
}

static size_t ucp_st_trig_add_words(const ucp_st_op_t *op,
                                    ucs_gstream_word_t *words)
{
    const ucp_st_trig_part_t *part;
    unsigned i;

    for (i = 0; i < op->trig.num_parts; ++i) {
        part             = &op->trig.parts[i];
        words[i].address = &part->slot->word;
        words[i].value   = op->started * ucp_st_trig_unit(part);
    }
    return op->trig.num_parts;
}

size_t ucp_st_trig_wait_words(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                              size_t count, size_t *num_words)
{
    ucs_gstream_word_t *words = ucp_st_queue_words(queue) + *num_words;
    size_t num                = 0;
    size_t i;

    for (i = 0; (i < count) && (ops[i]->lane == &ucp_st_trig_lane_ops); ++i) {
        if (ucs_likely(ops[i]->trig.word != NULL)) {
            words[num].address = ops[i]->trig.word;
            words[num].value   = ops[i]->started;
            ++num;
        } else {
            num += ucp_st_trig_add_words(ops[i], &words[num]);
        }
    }
    *num_words += num;
    return i;
}

/* The same in commands that any stream has, each with its place in a trace */
static size_t ucp_st_trig_take_cmds(ucp_st_trig_part_t *part, uint64_t use,
                                    ucs_gstream_cmd_t *cmds)
{
    cmds[0].type          = UCS_GSTREAM_CMD_COPY;
    cmds[0].u.copy.dst    = part->op->buffer;
    cmds[0].u.copy.src    = ucp_st_trig_inbox_place(part, use);
    cmds[0].u.copy.length = part->op->msg_length;
    if (!ucp_st_trig_is_last_of_round(part->op, use)) {
        return 1;
    }
    if (part->op->trig.is_called) {
        cmds[1].type        = UCS_GSTREAM_CMD_FUNC;
        cmds[1].u.func.func = ucp_st_trig_cts_func;
        cmds[1].u.func.arg  = part;
    } else {
        ucp_st_trig_store_cmd(
                part, use / ucp_st_trig_plan_round(&part->op->trig.plan),
                &cmds[1]);
    }
    return 2;
}

/* One call for what several uses need, as far as that will do; of how many */
static size_t ucp_st_trig_take_call(ucp_st_queue_h queue,
                                    const ucp_st_op_h *ops, size_t count,
                                    size_t *num_cmds)
{
    void **items = ucp_st_queue_items(queue);
    size_t num   = 0;
    const ucp_st_op_t *op;
    size_t i;

    for (i = 0; (i < count) && (num < UCP_ST_TRIG_MAX_TAKES); ++i) {
        op = ops[i];
        if ((op->lane != &ucp_st_trig_lane_ops) ||
            (op->early && !op->trig.is_called)) {
            break;
        }
        if (op->early) {
            items[num]     = op->trig.parts;
            items[num + 1] = (void*)(uintptr_t)op->started;
            num           += 2;
        }
    }
    if (num > 0) {
        *num_cmds += ucp_st_queue_add_call(queue, ucp_st_trig_take_all_func,
                                           items, num,
                                           &queue->cmds[*num_cmds]);
    }
    return i;
}

size_t ucp_st_trig_land_run(ucp_st_queue_h queue, const ucp_st_op_h *ops,
                            size_t count, size_t *num_cmds)
{
    size_t num = 0;

    if (!ucs_trace_is_on() &&
        (ucs_gstream_type(queue->stream) == UCS_GSTREAM_TYPE_HOST)) {
        num = ucp_st_trig_take_call(queue, ops, count, num_cmds);
    }
    if (num > 0) {
        return num;
    }
    if (ops[0]->early) {
        *num_cmds += ucp_st_trig_take_cmds(ops[0]->trig.parts, ops[0]->started,
                                           &queue->cmds[*num_cmds]);
    }
    return 1;
}
