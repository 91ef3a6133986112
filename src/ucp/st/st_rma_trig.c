/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_trig.c - one-sided operations on lane trig: keys, what a queue has,
 * and what its stream does.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_rma_trig.h"
#include "st_log.h"
#include "st_peer.h"
#include "st_queue.h"
#include "st_worker.h"

#include <stdlib.h>
#include <string.h>

/* Entries that a queue sets aside, and how few will do */
#define UCP_ST_RMA_TRIG_ENTRIES     16
#define UCP_ST_RMA_TRIG_ENTRIES_MIN 4

static ucs_status_t ucp_st_rma_trig_reg(ucp_st_memh_t *mem)
{
    return uct_trig_mem_reg(mem->worker->trig.rails[0].iface, mem->address,
                            mem->length, NULL, &mem->trig);
}

static void ucp_st_rma_trig_dereg(ucp_st_memh_t *mem)
{
    if (uct_trig_mem_dereg(mem->trig) != UCS_OK) {
        ucs_warn("lane 'trig': memory at %p stays registered: the NIC holds "
                 "operations of a failed peer", mem->address);
    }
}

static size_t ucp_st_rma_trig_pack(const ucp_st_memh_t *mem, void *blob)
{
    uct_trig_mem_pack(mem->trig, blob);
    return UCT_TRIG_RKEY_PACKED_LEN;
}

static ucs_status_t ucp_st_rma_trig_unpack(ucp_st_rkey_t *rkey,
                                           const void *blob, size_t length)
{
    ucs_status_t status = uct_trig_rkey_unpack(blob, length, &rkey->trig);

    if (status != UCS_OK) {
        return status;
    }
    return ((rkey->trig.address == rkey->remote) &&
            (rkey->trig.length == rkey->length)) ? UCS_OK :
                                                   UCS_ERR_INVALID_ADDR;
}

static void ucp_st_rma_trig_release(ucp_st_rkey_t *rkey)
{
    (void)rkey;
}

ucs_status_t ucp_st_rma_trig_slot_init(ucp_st_rma_trig_t *trig,
                                       ucp_st_rma_trig_slot_t *slot)
{
    ucp_st_trig_rail_t *rail = trig->rail;
    uct_trig_cntr_h data;
    ucs_status_t status;

    status = ucp_st_trig_pool_get(&rail->pool, rail->iface, sizeof(uint64_t),
                                  &slot->piece);
    if (status != UCS_OK) {
        return status;
    }
    status = uct_trig_cntr_create(rail->iface, &data);
    if (status != UCS_OK) {
        ucp_st_trig_pool_put(&rail->pool, &slot->piece, sizeof(uint64_t));
        return status;
    }
    slot->data = data;
    return UCS_OK;
}

static ucs_status_t ucp_st_rma_trig_reserve(ucp_st_rma_trig_t *trig)
{
    unsigned count = UCP_ST_RMA_TRIG_ENTRIES;
    ucs_status_t status;

    do {
        status = uct_trig_iface_reserve(trig->rail->iface, count, &trig->resv);
        count /= 2;
    } while ((status == UCS_ERR_NO_RESOURCE) &&
             (count >= UCP_ST_RMA_TRIG_ENTRIES_MIN));
    return status;
}

static ucs_status_t ucp_st_rma_trig_setup(ucp_st_rma_trig_t *trig)
{
    ucp_st_trig_rail_t *rail = trig->rail;
    ucs_status_t status;

    status = uct_trig_cntr_create(rail->iface, &trig->start);
    if (status != UCS_OK) {
        goto err;
    }
    status = uct_trig_cntr_create(rail->iface, &trig->done);
    if (status != UCS_OK) {
        goto err_start;
    }
    status = ucp_st_rma_trig_reserve(trig);
    if (status != UCS_OK) {
        goto err_done;
    }
    status = ucp_st_trig_pool_get(&rail->pool, rail->iface, sizeof(uint64_t),
                                  &trig->piece);
    if (status != UCS_OK) {
        goto err_resv;
    }
    status = ucp_st_rma_trig_slot_init(trig, &trig->slots[0]);
    if (status != UCS_OK) {
        goto err_piece;
    }
    *ucp_st_rma_trig_word(trig) = 0;
    uct_trig_cntr_doorbell(trig->start, &trig->doorbell);
    return UCS_OK;

err_piece:
    ucp_st_trig_pool_put(&rail->pool, &trig->piece, sizeof(uint64_t));
err_resv:
    (void)uct_trig_iface_unreserve(rail->iface, &trig->resv);
err_done:
    (void)uct_trig_cntr_destroy(trig->done);
err_start:
    (void)uct_trig_cntr_destroy(trig->start);
err:
    return status;
}

/* The queue's part, made for its first operation */
static ucs_status_t ucp_st_rma_trig_get(ucp_st_queue_h queue,
                                        ucp_st_rma_trig_t **trig_p)
{
    ucp_st_worker_h worker = queue->worker;
    ucp_st_rma_trig_t *trig;
    ucs_status_t status;

    if (queue->rma.trig != NULL) {
        *trig_p = queue->rma.trig;
        return UCS_OK;
    }
    trig = calloc(1, sizeof(*trig));
    if (trig == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    trig->worker = worker;
    trig->queue  = queue;
    trig->rail   = &worker->trig.rails[0];
    ucs_list_head_init(&trig->late);
    ucs_list_head_init(&trig->posted);
    ucs_list_head_init(&trig->over);
    status = ucp_st_rma_trig_setup(trig);
    if (status != UCS_OK) {
        ucs_diag("queue %p: no counters or entries for one-sided operations: "
                 "%s", queue, ucs_status_string(status));
        free(trig);
        return status;
    }
    ucs_list_add_tail(&worker->rma.trigs, &trig->list);
    queue->rma.trig = trig;
    *trig_p         = trig;
    return UCS_OK;
}

/* Nothing of it is the NIC's any more */
static void ucp_st_rma_trig_free(ucp_st_rma_trig_t *trig)
{
    ucp_st_trig_rail_t *rail = trig->rail;
    unsigned i;

    for (i = 0; (i < UCP_ST_RMA_TRIG_SLOTS) && (trig->slots[i].data != NULL);
         ++i) {
        (void)uct_trig_cntr_destroy(trig->slots[i].data);
        ucp_st_trig_pool_put(&rail->pool, &trig->slots[i].piece,
                             sizeof(uint64_t));
    }
    ucp_st_trig_pool_put(&rail->pool, &trig->piece, sizeof(uint64_t));
    (void)uct_trig_iface_unreserve(rail->iface, &trig->resv);
    (void)uct_trig_cntr_destroy(trig->done);
    (void)uct_trig_cntr_destroy(trig->start);
    ucs_list_del(&trig->list);
    free(trig);
}

int ucp_st_rma_trig_is_behind(const ucp_st_rma_trig_t *trig)
{
    uint64_t word = __atomic_load_n(ucp_st_rma_trig_word(trig),
                                    __ATOMIC_ACQUIRE);
    ucp_st_rma_trig_op_t *op;

    ucs_list_for_each(op, &trig->posted, list) {
        if (!op->is_quiet && (op->threshold <= word)) {
            return 1;
        }
    }
    return !ucs_list_is_empty((ucs_list_link_t*)&trig->over);
}

int ucp_st_rma_trig_is_late(ucp_st_worker_h worker)
{
    ucp_st_rma_trig_t *trig;

    ucs_list_for_each(trig, &worker->rma.trigs, list) {
        if (!ucs_list_is_empty(&trig->late) || (trig->queue == NULL)) {
            return 1;
        }
    }
    return 0;
}

static void ucp_st_rma_trig_abort_all(ucs_list_link_t *ops)
{
    ucp_st_rma_trig_op_t *op, *tmp;

    ucs_list_for_each_safe(op, tmp, ops, list) {
        if (!op->is_quiet) {
            ucp_st_rma_trig_abort(op);
        }
    }
}

/* Operations that have no effect here end, and what the NIC has of them is got
 * rid of: it fires */
static void ucp_st_rma_trig_end_untriggered(ucp_st_rma_trig_t *trig)
{
    unsigned count = __atomic_exchange_n(&trig->untriggered, 0,
                                         __ATOMIC_ACQUIRE);

    if (count > 0) {
        ucp_st_queue_fail(trig->queue, NULL, UCS_ERR_IO_ERROR);
        ucp_st_rma_trig_abort_all(&trig->posted);
        ucp_st_rma_trig_count(trig->start, count);
    }
}

void ucp_st_rma_trig_progress(ucp_st_worker_h worker)
{
    ucp_st_rma_trig_t *trig, *tmp;

    ucs_list_for_each_safe(trig, tmp, &worker->rma.trigs, list) {
        if (trig->queue == NULL) {
            if (ucs_list_is_empty(&trig->posted) &&
                ucs_list_is_empty(&trig->over)) {
                ucp_st_rma_trig_free(trig);
            }
            continue;
        }
        ucp_st_rma_trig_end_untriggered(trig);
        ucp_st_rma_trig_post_late(trig);
    }
}

void ucp_st_rma_trig_leave(ucp_st_rma_trig_t *trig)
{
    ucp_st_rma_trig_op_t *op, *tmp;

    trig->queue = NULL;
    ucs_list_for_each_safe(op, tmp, &trig->late, list) {
        ucp_st_rma_trig_destroy(op); /* a quiet that nobody waits for */
    }
    ucp_st_trig_dev_wake(trig->worker);
}

/* Those of a list that are with a peer that is gone */
static void ucp_st_rma_trig_end_dead(ucp_st_peer_t *peer, ucs_list_link_t *ops)
{
    ucp_st_rma_trig_op_t *op, *tmp;

    ucs_list_for_each_safe(op, tmp, ops, list) {
        if (!op->is_quiet && (op->rma.peer == peer)) {
            ucp_st_queue_fail(op->rma.queue, NULL, peer->status);
            ucp_st_rma_trig_abort(op);
        }
    }
}

void ucp_st_rma_trig_peer_gone(ucp_st_peer_t *peer)
{
    ucp_st_rma_trig_t *trig;

    ucs_list_for_each(trig, &peer->worker->rma.trigs, list) {
        ucp_st_rma_trig_end_dead(peer, &trig->posted);
        ucp_st_rma_trig_end_dead(peer, &trig->late);
    }
    ucp_st_trig_dev_wake(peer->worker);
}

/* Runs on the stream, where the NIC has no trigger address */
static void ucp_st_rma_trig_start_func(void *arg)
{
    ucp_st_rma_trig_t *trig = arg;
    ucs_status_t status     = uct_trig_cntr_add(trig->start, 1);

    if (status != UCS_OK) {
        ucs_error("queue %p: failed to trigger the NIC: %s", trig->queue,
                  ucs_status_string(status));
        (void)__atomic_fetch_add(&trig->untriggered, 1, __ATOMIC_RELEASE);
        ucp_st_trig_dev_wake(trig->worker);
    }
}

static void ucp_st_rma_trig_start_cmd(ucp_st_rma_trig_t *trig,
                                      ucs_gstream_cmd_t *cmd)
{
    if (trig->doorbell.mode == UCT_TRIG_DOORBELL_CALL) {
        cmd->type        = UCS_GSTREAM_CMD_FUNC;
        cmd->u.func.func = ucp_st_rma_trig_start_func;
        cmd->u.func.arg  = trig;
        return;
    }
    cmd->type           = UCS_GSTREAM_CMD_WRITE64;
    cmd->u.word.address = trig->doorbell.address;
    cmd->u.word.value   = (trig->doorbell.mode == UCT_TRIG_DOORBELL_ADD) ?
                          1 : trig->started;
}

static ucp_st_rma_trig_op_t *ucp_st_rma_trig_new(ucp_st_rma_trig_t *trig)
{
    ucs_list_link_t *unused = &trig->worker->rma.free_trig_ops;
    ucp_st_rma_trig_op_t *op;

    if (ucs_list_is_empty(unused)) {
        op = malloc(sizeof(*op));
    } else {
        op = ucs_list_extract_head(unused, ucp_st_rma_trig_op_t, list);
    }
    if (op != NULL) {
        memset(op, 0, sizeof(*op));
        op->trig = trig;
        ucs_list_add_tail(&trig->late, &op->list);
    }
    return op;
}

void ucp_st_rma_trig_put(ucp_st_rma_trig_op_t *op)
{
    ucs_list_del(&op->list);
    ucs_list_add_head(&op->trig->worker->rma.free_trig_ops, &op->list);
}

void ucp_st_rma_trig_cleanup(ucp_st_worker_h worker)
{
    ucs_list_link_t *ops = &worker->rma.free_trig_ops;

    while (!ucs_list_is_empty(ops)) {
        free(ucs_list_extract_head(ops, ucp_st_rma_trig_op_t, list));
    }
}

static ucs_status_t ucp_st_rma_trig_start(const ucp_st_rma_t *rma,
                                          ucp_st_rma_flow_t *flow,
                                          ucs_gstream_cmd_t *cmds,
                                          size_t *num_cmds_p)
{
    size_t put_max = rma->peer->trig.limits.put_max;
    ucp_st_rma_trig_t *trig;
    ucp_st_rma_trig_op_t *op;
    ucs_status_t status;
    size_t writes;

    (void)flow;
    status = ucp_st_rma_trig_get(rma->queue, &trig);
    if (status != UCS_OK) {
        return status;
    }
    writes = (rma->length / put_max) + ((rma->length % put_max) != 0);
    if ((trig->counted + writes + 1) >= trig->rail->attr.max_count) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }
    op = ucp_st_rma_trig_new(trig);
    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    op->rma        = *rma;
    op->writes     = writes;
    op->threshold  = ++trig->started;
    trig->counted += ucp_st_rma_trig_counts(op);
    ++rma->peer->rma_open;
    ucp_st_rma_trig_start_cmd(trig, cmds);
    *num_cmds_p = 1;
    return UCS_OK;
}

/* Nothing of it was posted yet */
static void ucp_st_rma_trig_undo(ucp_st_queue_h queue, ucp_st_rma_flow_t *flow)
{
    ucp_st_rma_trig_t *trig  = queue->rma.trig;
    ucp_st_rma_trig_op_t *op = ucs_list_tail(&trig->late, ucp_st_rma_trig_op_t,
                                             list);

    --flow->peer->rma_open;
    --trig->started;
    trig->counted -= ucp_st_rma_trig_counts(op);
    ucp_st_rma_trig_put(op);
}

static void ucp_st_rma_trig_commit(ucp_st_queue_h queue)
{
    ucp_st_rma_trig_t *trig = queue->rma.trig;

    ucp_st_rma_trig_post_late(trig);
    if (!ucs_list_is_empty(&trig->late)) {
        ucp_st_trig_dev_late(trig->worker);
    }
}

static ucs_status_t ucp_st_rma_trig_wait(ucp_st_queue_h queue,
                                         ucs_gstream_cmd_t *cmd)
{
    ucp_st_rma_trig_t *trig = queue->rma.trig;
    uint64_t issued         = queue->rma.issued[UCP_ST_LANE_TRIG];
    ucp_st_rma_trig_op_t *op;

    if (trig->asked < issued) {
        op = ucp_st_rma_trig_new(trig);
        if (op == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        op->is_quiet  = 1;
        op->threshold = trig->counted;
        op->value     = issued - trig->asked;
        trig->asked   = issued;
    }
    cmd->type           = UCS_GSTREAM_CMD_WAIT64;
    cmd->u.word.address = ucp_st_rma_trig_word(trig);
    cmd->u.word.value   = issued;
    return UCS_OK;
}


const ucp_st_rma_lane_ops_t ucp_st_rma_trig_ops = {
    .id         = UCP_ST_LANE_TRIG,
    .is_orderly = 0,
    .reg        = ucp_st_rma_trig_reg,
    .dereg      = ucp_st_rma_trig_dereg,
    .pack       = ucp_st_rma_trig_pack,
    .unpack     = ucp_st_rma_trig_unpack,
    .release    = ucp_st_rma_trig_release,
    .start      = ucp_st_rma_trig_start,
    .undo       = ucp_st_rma_trig_undo,
    .commit     = ucp_st_rma_trig_commit,
    .wait       = ucp_st_rma_trig_wait
};
