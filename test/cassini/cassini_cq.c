/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_cq.c - command queues.
 *
 * Slots in plain memory, the status in the first ones. The user writes
 * commands, then stores the next free slot to the write pointer. After a
 * command that is wrong the queue stops and reports it.
 */
#include "cassini_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    CASSINI_CQ_BATCH  = 256, /**< Commands of a queue at a time */
    CASSINI_TXQ_SLOTS = 4096, /**< Of an initiator's queue at least */
    CASSINI_TGQ_SLOTS = 32768 /**< Of a target queue at least */
};

typedef enum cassini_step {
    CASSINI_STEP_DONE,
    CASSINI_STEP_WAIT, /**< The queue waits at this command */
    CASSINI_STEP_FAIL
} cassini_step_t;


static void cassini_cq_write_status(cassini_queue_t *queue, int rc)
{
    cassini_cq_status_t *where = (cassini_cq_status_t*)queue->pub.slots;
    cassini_cq_status_t status;

    memcpy(&status, where, sizeof(status));
    status.read = queue->read32 / 2;
    status.rc   = rc;
    if (rc != CASSINI_RC_OK) {
        status.fail_op = queue->pub.slots[queue->read32 * 32];
        status.fail_32 = queue->read32 & 1;
    }
    cassini_trap_copy(where, &status, sizeof(status));
}

static void cassini_cq_fail(cassini_queue_t *queue, int rc)
{
    const cassini_head_t *head =
            (const cassini_head_t*)(queue->pub.slots + queue->read32 * 32);
    cassini_ev_fail_t event;

    queue->failed = 1;
    cassini_say("queue %u: command %u of type %u is wrong: code %d",
                queue->number, head->op, head->type, rc);
    cassini_cq_write_status(queue, rc);
    if (queue->eqn == 0) {
        return;
    }
    memset(&event, 0, sizeof(event));
    event.cq       = queue->number;
    event.is_tgt   = !(queue->flags & CASSINI_QUEUE_TX);
    event.where    = queue->read32 / 2;
    event.cmd_type = head->type;
    event.cmd_size = head->size;
    event.cmd_op   = head->op;
    event.size     = CASSINI_EV_16B;
    event.type     = CASSINI_EV_COMMAND_FAILURE;
    event.rc       = rc;
    cassini_eq_post(queue->eqn, &event);
}

static cassini_step_t cassini_cq_step(int rc, int *rc_p)
{
    if (rc == CASSINI_RC_OK) {
        return CASSINI_STEP_DONE;
    }
    *rc_p = rc;
    return (rc == CASSINI_RC_NONE) ? CASSINI_STEP_WAIT : CASSINI_STEP_FAIL;
}

/* Command to the queue itself. */
static cassini_step_t cassini_cq_own(cassini_queue_t *queue, const void *raw,
                                     int *rc_p)
{
    const cassini_cq_cmd_t *cmd = raw;

    switch (cmd->op) {
    case CASSINI_CQ_NOOP:
        return CASSINI_STEP_DONE;
    case CASSINI_CQ_FENCE:
        return (queue->pending == 0) ? CASSINI_STEP_DONE : CASSINI_STEP_WAIT;
    case CASSINI_CQ_LCID:
        if (queue->lni->cps[cmd->lcid] == NULL) {
            break;
        }
        queue->lcid = cmd->lcid;
        return CASSINI_STEP_DONE;
    default:
        *rc_p = CASSINI_RC_ILLEGAL_OP;
        return CASSINI_STEP_FAIL;
    }
    *rc_p = CASSINI_RC_CMD_INVALID_ARG;
    return CASSINI_STEP_FAIL;
}

static cassini_step_t cassini_cq_execute(cassini_queue_t *queue,
                                         const void *raw, int *rc_p)
{
    const cassini_head_t *head = raw;
    unsigned vni;

    if (!(queue->flags & CASSINI_QUEUE_TX)) {
        if ((head->op == 0) || (head->type != CASSINI_CQ)) {
            return CASSINI_STEP_DONE;
        }
        return cassini_cq_step(cassini_le_execute(raw), rc_p);
    }
    vni = queue->lni->cps[queue->lcid]->pub.vni;
    switch (head->type) {
    case CASSINI_IDC:
        if (head->op == CASSINI_OP_CSTATE) {
            memcpy(&queue->cstate, raw, sizeof(queue->cstate));
            return CASSINI_STEP_DONE;
        }
        return (head->op == CASSINI_OP_NOOP) ? CASSINI_STEP_DONE :
               cassini_cq_step(cassini_tx_idc(queue, raw, vni), rc_p);
    case CASSINI_DMA:
        return (head->op == CASSINI_OP_NOOP) ? CASSINI_STEP_DONE :
               cassini_cq_step(cassini_tx_dma(queue, raw, vni), rc_p);
    case CASSINI_CT:
        return cassini_cq_step(cassini_ct_execute(queue, raw), rc_p);
    default:
        return cassini_cq_own(queue, raw, rc_p);
    }
}

static unsigned cassini_cq_run(cassini_queue_t *queue)
{
    unsigned done = 0;
    unsigned before;
    const cassini_head_t *head;
    cassini_step_t step;
    int rc = CASSINI_RC_OK;

    queue->stalled = 0;
    queue->blocked = 0;
    while (!queue->failed && (queue->read32 != queue->write * 2) &&
           (done < CASSINI_CQ_BATCH)) {
        head   = (const cassini_head_t*)(queue->pub.slots + queue->read32 * 32);
        before = 1u << head->size;
        if (queue->read32 % before != 0) {
            step = CASSINI_STEP_FAIL;
            rc   = CASSINI_RC_CMD_ALIGN;
        } else {
            step = cassini_cq_execute(queue, head, &rc);
        }
        if (step == CASSINI_STEP_FAIL) {
            cassini_cq_fail(queue, rc);
            break;
        }
        if (step == CASSINI_STEP_WAIT) {
            queue->stalled = (head->type == CASSINI_CT);
            queue->blocked = 1;
            break;
        }
        queue->read32 += before;
        if (queue->read32 >= queue->pub.size32) {
            queue->read32 = CASSINI_FIRST_SLOT * 2;
        }
        cassini_ct_fire();
        ++done;
    }
    if ((done != 0) && !queue->failed) {
        cassini_cq_write_status(queue, CASSINI_RC_OK);
    }
    return done;
}

void cassini_cq_look(void)
{
    cassini_queue_t *queue;
    uint64_t write;
    unsigned i;

    for (i = 0; i < CASSINI_QUEUES; ++i) {
        queue = cassini_nic.queues[i];
        if (queue == NULL) {
            continue;
        }
        write = __atomic_load_n(queue->pub.write, __ATOMIC_ACQUIRE);
        if ((write >= CASSINI_FIRST_SLOT) && (write < queue->pub.size)) {
            queue->write = (unsigned)write;
        }
    }
}

unsigned cassini_cq_progress(void)
{
    unsigned done = 0;
    unsigned i;

    for (i = 0; i < CASSINI_QUEUES; ++i) {
        if (cassini_nic.queues[i] != NULL) {
            done += cassini_cq_run(cassini_nic.queues[i]);
        }
    }
    return done;
}

int cassini_cq_has(void)
{
    const cassini_queue_t *queue;
    unsigned i;

    for (i = 0; i < CASSINI_QUEUES; ++i) {
        queue = cassini_nic.queues[i];
        if ((queue != NULL) && !queue->failed && !queue->blocked &&
            (queue->read32 != queue->write * 2)) {
            return 1;
        }
    }
    return 0;
}

int cassini_cq_is_stalled(void)
{
    unsigned i;

    for (i = 0; i < CASSINI_QUEUES; ++i) {
        if ((cassini_nic.queues[i] != NULL) && cassini_nic.queues[i]->stalled) {
            return 1;
        }
    }
    return 0;
}

static int cassini_cq_resource(const cassini_queue_t *queue)
{
    return (queue->flags & CASSINI_QUEUE_TX) ? CASSINI_RSRC_TXQ :
                                               CASSINI_RSRC_TGQ;
}

static int cassini_cq_insert(cassini_queue_t *queue)
{
    unsigned i;
    int ret;

    if ((queue->flags & CASSINI_QUEUE_TX) &&
        ((queue->lcid >= CASSINI_NUM_LCIDS) ||
         (queue->lni->cps[queue->lcid] == NULL))) {
        return -EINVAL;
    }
    for (i = 0; (i < CASSINI_QUEUES) && (cassini_nic.queues[i] != NULL); ++i) {
    }
    if (i == CASSINI_QUEUES) {
        return -ENOSPC;
    }
    ret = cassini_dir_take(queue->lni->svc, cassini_cq_resource(queue));
    if (ret != 0) {
        return ret;
    }
    queue->page       = (int)i;
    queue->number     = i;
    queue->pub.write  = cassini_trap_queue(queue->page);
    queue->pub.index  = i + ((queue->flags & CASSINI_QUEUE_TX) ?
                             0 : (unsigned)CASSINI_NUM_TXQS);
    cassini_nic.queues[i] = queue;
    ++cassini_nic.open[CASSINI_OPEN_QUEUE];
    return 0;
}

int cxil_alloc_cmdq(cassini_lni_t *lni, cassini_eq_t *eq,
                    const cassini_cq_opts_t *opts, cassini_cq_t **cq_p)
{
    cassini_cq_status_t status = {.read = CASSINI_FIRST_SLOT,
                                  .rc   = CASSINI_RC_OK};
    unsigned count             = 64;
    unsigned least             = (opts->flags & CASSINI_QUEUE_TX) ?
                                 CASSINI_TXQ_SLOTS : CASSINI_TGQ_SLOTS;
    cassini_queue_t *queue;
    int ret;

    if (opts->count > 65536) {
        return -EINVAL;
    }
    if (!cassini_settings.exact) {
        count = least; /* A thread is slower than the hardware */
    }
    while (count < opts->count + CASSINI_FIRST_SLOT) {
        count *= 2;
    }
    queue = calloc(1, sizeof(*queue));
    if (queue == NULL) {
        return -ENOMEM;
    }
    queue->pub.slots = mmap(NULL, (size_t)count * CASSINI_SLOT,
                            PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                            -1, 0);
    if (queue->pub.slots == MAP_FAILED) {
        ret = -ENOMEM;
        goto err_free;
    }
    memcpy(queue->pub.slots, &status, sizeof(status));
    queue->pub.size    = count;
    queue->pub.size32  = 2 * count;
    queue->pub.read32  = 2 * CASSINI_FIRST_SLOT;
    queue->pub.write32 = 2 * CASSINI_FIRST_SLOT;
    queue->pub.told32  = 2 * CASSINI_FIRST_SLOT;
    queue->lni         = (cassini_lni_obj_t*)lni;
    queue->flags       = opts->flags;
    queue->lcid        = opts->lcid;
    queue->eqn         = (eq == NULL) ? 0 : eq->eqn;
    queue->write       = CASSINI_FIRST_SLOT;
    queue->read32      = 2 * CASSINI_FIRST_SLOT;

    cassini_nic_lock();
    queue->epoch = cassini_nic.epoch;
    ret          = cassini_cq_insert(queue);
    cassini_nic_unlock();
    if (ret != 0) {
        goto err_unmap;
    }
    *cq_p = &queue->pub;
    return 0;

err_unmap:
    munmap(queue->pub.slots, (size_t)count * CASSINI_SLOT);
err_free:
    free(queue);
    return ret;
}

int cxil_destroy_cmdq(cassini_cq_t *pub)
{
    cassini_queue_t *queue = (cassini_queue_t*)pub;

    if (!cassini_is_mine(queue)) {
        return 0;
    }
    cassini_nic_lock();
    cassini_nic_step();
    cassini_nic.queues[queue->page] = NULL;
    cassini_tx_forget_queue(queue);
    cassini_ct_forget_queue(queue);
    cassini_dir_give(queue->lni->svc, cassini_cq_resource(queue), 1);
    --cassini_nic.open[CASSINI_OPEN_QUEUE];
    cassini_nic_unlock();
    munmap(queue->pub.slots, (size_t)queue->pub.size * CASSINI_SLOT);
    free(queue);
    return 0;
}

int cxil_cmdq_ack_counter(cassini_cq_t *pub, unsigned *count_p)
{
    cassini_queue_t *queue = (cassini_queue_t*)pub;

    if (!cassini_is_mine(queue)) {
        *count_p = 0;
        return 0;
    }
    cassini_nic_lock();
    cassini_nic_step();
    *count_p = queue->pending + (queue->read32 != queue->write * 2) +
               cassini_ct_has_ripe();
    cassini_nic_unlock();
    return 0;
}
