/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_trig.c - one-sided operations on lane trig: deferred work of the NIC.
 * The worker's lock is held except where a function runs on the stream.
 *
 * Memory is registered with all NICs. All processes access it by one of them,
 * which follows from the memory's number, so that additions to a signal there
 * are atomic; a process with fewer NICs may use the first one. Each queue has,
 * on each NIC that it needs, a counter T, to which its stream adds 1 for every
 * operation, a counter C and a word:
 *
 *   put, get:         T >= n: the data        C counts it
 *   put with signal:  T >= n: the data        S counts it
 *                     S >= m: the signal      C counts it
 *   signal alone:     T >= n: the signal      C counts it
 *   quiet:            C >= all that operations before it count:
 *                                             word = their number
 *
 * The n-th operation of the queue has threshold n. S is a counter for data with
 * a signal, which the queue lends to them while both are under way; m is its
 * earlier count and the writes of this data. Before a strict operation the
 * stream waits as for a quiet, if there are others with the peer.
 *
 * Operations that find no free entry wait here, in order. They are posted when
 * one before them is complete: a threshold that is reached already fires at
 * once. What is due by then needs no entry (ucp_st_trig_line_post()). So no
 * queue waits for entries that another one holds.
 *
 * If an operation fails its queue fails, and the host counts it in the NIC's
 * place: quiets pass. st_rma_trig_halt.c has what becomes of those behind it.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "rma/st_rma_trig.h"
#include "core/st_log.h"
#include "core/st_peer.h"
#include "core/st_stage.h"

#include <ucs_gstream_memory.h>

#include <ucs/sys/math.h>

#include <stdlib.h>

_Static_assert((UCP_ST_TRIG_MAX_RAILS * UCT_TRIG_RKEY_PACKED_LEN) <=
               UCP_ST_RKEY_MAX_BLOB, "keys");
_Static_assert((UCP_ST_TRIG_MAX_RAILS - 1) <=
               (UCP_ST_QUEUE_MAX_WAYS - UCP_ST_LANE_LAST), "ways");

/* How much an operation adds to C */
static uint64_t ucp_st_rma_trig_counts(const ucp_st_rma_trig_op_t *op)
{
    return (op->rma.signal != NULL) ? 1 : op->writes;
}

static size_t ucp_st_rma_trig_parts(const ucp_st_rma_trig_op_t *op)
{
    return op->writes + ((op->rma.signal != NULL) || op->is_quiet);
}

static ucp_st_trig_rma_mem_t *ucp_st_rma_trig_mem(const ucp_st_memh_t *mem)
{
    return mem->priv[UCP_ST_PRIV_LANES + UCP_ST_LANE_TRIG];
}

static uct_trig_rkey_t *ucp_st_rma_trig_rkey(const ucp_st_rkey_t *rkey)
{
    return rkey->priv[UCP_ST_PRIV_LANES + UCP_ST_LANE_TRIG];
}

static void ucp_st_rma_trig_dereg(ucp_st_memh_t *mem)
{
    ucp_st_trig_rma_mem_t *trig = ucp_st_rma_trig_mem(mem);

    while (trig->num_nics > 0) {
        if (uct_trig_mem_dereg(trig->mems[--trig->num_nics]) != UCS_OK) {
            ucs_warn("lane 'trig': memory at %p stays registered: the NIC "
                     "holds operations of a failed peer", mem->address);
        }
    }
}

static ucs_status_t ucp_st_rma_trig_reg(ucp_st_memh_t *mem)
{
    ucp_st_trig_rma_mem_t *trig = ucp_st_rma_trig_mem(mem);
    ucs_status_t status;
    unsigned i;

    if (ucp_st_stage_is_device(&mem->memory) &&
        !ucp_st_trig_takes(mem->worker, mem->address, mem->length,
                           &mem->memory, 1)) {
        return UCS_ERR_UNSUPPORTED;
    }
    for (i = 0; i < ucp_st_trig_rma_num_rails(mem->worker); ++i) {
        status = uct_trig_mem_reg(ucp_st_trig_rma_rail(mem->worker, i)->iface,
                                  mem->address, mem->length, NULL,
                                  &trig->mems[i]);
        if (status != UCS_OK) {
            ucp_st_rma_trig_dereg(mem);
            return status;
        }
        ++trig->num_nics;
    }
    return UCS_OK;
}

/* Keys of all NICs */
static size_t ucp_st_rma_trig_pack(const ucp_st_memh_t *mem, void *blob)
{
    ucp_st_trig_rma_mem_t *trig = ucp_st_rma_trig_mem(mem);
    unsigned i;

    for (i = 0; i < trig->num_nics; ++i) {
        uct_trig_mem_pack(trig->mems[i], blob);
        blob = UCS_PTR_BYTE_OFFSET(blob, UCT_TRIG_RKEY_PACKED_LEN);
    }
    return trig->num_nics * UCT_TRIG_RKEY_PACKED_LEN;
}

static ucs_status_t ucp_st_rma_trig_unpack(ucp_st_rkey_t *rkey,
                                           const void *blob, size_t length)
{
    uct_trig_rkey_t *key = ucp_st_rma_trig_rkey(rkey);
    const size_t size    = UCT_TRIG_RKEY_PACKED_LEN;
    ucs_status_t status;
    unsigned nic;

    if ((length < size) || (length > (UCP_ST_TRIG_MAX_RAILS * size))) {
        return UCS_ERR_INVALID_ADDR;
    }
    nic = rkey->mem_id % (length / size);
    if (ucp_st_trig_rma_ep(rkey->peer, nic) == NULL) {
        nic = 0; /* this side has fewer */
    }
    status = uct_trig_rkey_unpack(UCS_PTR_BYTE_OFFSET(blob, nic * size),
                                  ucs_min(size, length - (nic * size)), key);
    if (status != UCS_OK) {
        return status;
    }
    rkey->way = ucp_st_rma_way_of_nic(nic);
    return ((key->address == rkey->remote) && (key->length == rkey->length)) ?
           UCS_OK : UCS_ERR_INVALID_ADDR;
}

/* The NIC holds nothing; or not all of that could be made */
static void ucp_st_rma_trig_free(ucp_st_rma_trig_t *trig)
{
    unsigned i;

    for (i = 0; i < UCP_ST_RMA_TRIG_SLOTS; ++i) {
        ucp_st_trig_tally_cleanup(&trig->slots[i].tally, trig->rail);
    }
    ucp_st_trig_tally_cleanup(&trig->done, trig->rail);
    ucp_st_trig_trigger_cleanup(&trig->start);
    free(trig);
}

/* If the queue has left, and the NIC has finished */
static void ucp_st_rma_trig_reap(ucp_st_rma_trig_t *trig)
{
    if ((trig->queue == NULL) && ucs_list_is_empty(&trig->posted) &&
        ucs_list_is_empty(&trig->over)) {
        ucs_list_del(&trig->list);
        ucp_st_rma_trig_free(trig);
    }
}

/* Operations end without effect. Their parts on the NIC fire, which frees their
 * entries. */
static void ucp_st_rma_trig_untriggered(ucp_st_trig_trigger_t *trigger,
                                        unsigned count)
{
    ucp_st_rma_trig_t *trig = ucs_container_of(trigger, ucp_st_rma_trig_t,
                                               start);

    if (trig->queue != NULL) {
        ucp_st_queue_fail(trig->queue, NULL, UCS_ERR_IO_ERROR);
        ucp_st_rma_trig_abort_all(trig, 1);
        ucp_st_rma_trig_count(trigger->cntr, count);
    }
}

static ucs_status_t ucp_st_rma_trig_create(ucp_st_queue_h queue, unsigned nic)
{
    ucp_st_rma_trig_t *trig = calloc(1, sizeof(*trig));
    ucs_status_t status     = UCS_ERR_NO_MEMORY;

    if (trig == NULL) {
        goto err;
    }
    trig->worker     = queue->worker;
    trig->queue      = queue;
    trig->nic        = nic;
    trig->rail       = ucp_st_trig_rma_rail(queue->worker, nic);
    trig->start.fail = ucp_st_rma_trig_untriggered;
    trig->late.post  = ucp_st_rma_trig_post_late;
    ucs_list_head_init(&trig->waiting);
    ucs_list_head_init(&trig->posted);
    ucs_list_head_init(&trig->over);
    status = ucp_st_trig_trigger_init(&trig->start, trig->rail);
    if (status == UCS_OK) {
        status = ucp_st_trig_tally_init(&trig->done, trig->rail);
    }
    if (status == UCS_OK) {
        status = ucp_st_trig_tally_init(&trig->slots[0].tally, trig->rail);
    }
    if (status != UCS_OK) {
        goto err_free;
    }
    ucp_st_trig_rma_open(queue->worker, ucp_st_rma_trig_settle);
    ucs_list_add_tail(&ucp_st_rma_dev(queue->worker)->trigs, &trig->list);
    ucp_st_queue_rma(queue)->trigs[nic] = trig;
    return UCS_OK;

err_free:
    ucp_st_rma_trig_free(trig);
err:
    ucs_diag("queue %p: no counters for one-sided operations: %s",
             queue, ucs_status_string(status));
    return status;
}

static ucp_st_rma_trig_op_t *ucp_st_rma_trig_new(ucp_st_rma_trig_t *trig)
{
    ucp_st_rma_trig_op_t *op;

    op = ucp_st_rma_obj_get(&ucp_st_rma_dev(trig->worker)->free_trig_ops,
                            sizeof(*op));
    if (op != NULL) {
        op->trig = trig;
        ucs_list_add_tail(&trig->waiting, &op->list);
        ucp_st_trig_late_add(trig->worker, &trig->late);
    }
    return op;
}

static void ucp_st_rma_trig_put(ucp_st_rma_trig_op_t *op)
{
    ucs_list_del(&op->list);
    ucs_list_add_head(&ucp_st_rma_dev(op->trig->worker)->free_trig_ops,
                      &op->list);
}

/* An operation ends for its queue, with or without success */
static void ucp_st_rma_trig_end(ucp_st_rma_trig_op_t *op)
{
    if (op->is_quiet || op->is_ended) {
        return;
    }
    op->is_ended = 1;
    --ucp_st_rma_peer(op->rma.peer)->num_trig;
    ucp_st_rma_drop(&op->rma);
    ucp_st_rma_ended(op->rma.queue, op->rma.way);
}

/* The NIC has no part of an operation, and gets none any more */
static void ucp_st_rma_trig_destroy(ucp_st_rma_trig_op_t *op)
{
    ucp_st_rma_trig_end(op);
    if (op->slot != NULL) {
        op->slot->is_used = 0;
    }
    ucp_st_rma_trig_put(op);
}

/* This fails only at the limit of a counter, and
 * operations are refused before that. */
void ucp_st_rma_trig_count(uct_trig_cntr_h cntr, uint64_t value)
{
    if ((value > 0) && (uct_trig_cntr_add(cntr, value) != UCS_OK)) {
        ucs_error("lane 'trig': failed to add to a counter");
    }
}

/* End an operation whose queue is in error. If it was halted that is done when
 * nothing fires any more (st_rma_trig_halt.c): else a signal without its data
 * would reach a peer that was only declared gone, and quiets would pass. If it
 * was not, parts that the NIC still has fire, and their completions are
 * ignored. One that is being enqueued ends when that is over. */
static void ucp_st_rma_trig_abort(ucp_st_rma_trig_op_t *op)
{
    ucp_st_rma_trig_t *trig = op->trig;

    if (trig->is_unsettled || (op == trig->enqueued)) {
        return;
    }
    ucp_st_rma_trig_count(trig->done.cntr, ucp_st_rma_trig_counts(op));
    ucs_list_del(&op->list);
    ucs_list_add_tail(&trig->over, &op->list);
    ucp_st_rma_trig_end(op);
    if ((op->line.posted > op->writes) && (op->slot != NULL)) {
        ucp_st_rma_trig_count(op->slot->tally.cntr, op->writes);
    }
    if (op->line.pending == 0) {
        ucp_st_rma_trig_destroy(op);
    }
}

/* The NIC has refused or failed a part of an operation */
static void ucp_st_rma_trig_fail(ucp_st_rma_trig_op_t *op, ucs_status_t status)
{
    ucp_st_peer_t *peer = op->rma.peer;
    int is_lost         = !peer->is_self && ucp_st_trig_is_loss(status);

    if (!is_lost) {
        ++op->trig->worker->stats.errors;
        ucp_st_queue_fail(op->rma.queue, NULL, status);
        /* A signal behind failed data must not reach a live peer. Where it is
         * not cancelled the NIC sends it when the host counts the data: so the
         * peer is declared gone first. */
        is_lost = !peer->is_self && (op->line.posted > op->writes) &&
                  (op->writes > 0) && !op->trig->is_unsettled;
    }
    if (is_lost) {
        ucp_st_peer_lost(peer, status); /* it ends with the peer */
    } else {
        ucp_st_rma_trig_abort(op);
    }
}

/* A quiet is over. If the NIC does not reach the own word all waits for it are
 * released. */
static void ucp_st_rma_trig_quiet_end(ucp_st_rma_trig_op_t *op,
                                      ucs_status_t status)
{
    ucp_st_rma_trig_t *trig = op->trig;

    if (status != UCS_OK) {
        ucs_error("lane 'trig': the NIC does not reach this process: %s",
                  ucs_status_string(status));
        if (trig->queue != NULL) {
            ucp_st_queue_fail(trig->queue, NULL, status);
        }
        __atomic_store_n(trig->done.word, UCP_ST_RELEASE,
                         __ATOMIC_RELEASE);
    }
    ucs_gstream_wake(trig->done.word);
    ucp_st_rma_trig_destroy(op);
}

/* Called for each part of an operation */
static void ucp_st_rma_trig_done(void *arg, ucs_status_t status)
{
    ucp_st_rma_trig_op_t *op = arg;
    ucp_st_rma_trig_t *trig  = op->trig;

    if ((status != UCS_OK) && (status != UCS_ERR_CANCELED) && !op->is_quiet &&
        !op->is_failed && !op->is_ended) {
        op->is_failed = 1;
        ucs_diag("queue %p: a one-sided operation of %zu bytes to peer 0x%lx "
                 "failed: %s", op->rma.queue, op->rma.length,
                 op->rma.peer->uuid, ucs_status_string(status));
        ucp_st_rma_trig_fail(op, status);
    }
    op->is_failed |= (status != UCS_OK);
    /* `op` is kept until here */
    ucp_st_trig_line_over(&op->line, trig->rail);
    if (op->is_quiet) {
        ucp_st_rma_trig_quiet_end(op, status);
    } else if ((op->line.pending == 0) &&
               (op->is_ended ||
                ((op->line.posted == ucp_st_rma_trig_parts(op)) &&
                 !op->is_failed))) {
        ucp_st_rma_trig_destroy(op);
    }
    ucp_st_rma_trig_reap(trig);
}

/* Take a slot that is not in use */
static ucs_status_t ucp_st_rma_trig_get_slot(ucp_st_rma_trig_op_t *op)
{
    ucp_st_rma_trig_slot_t *slot = op->trig->slots;
    ucp_st_rma_trig_slot_t *end  = slot + UCP_ST_RMA_TRIG_SLOTS;

    while ((slot < end) && slot->is_used) {
        ++slot;
    }
    if ((slot == end) ||
        ((slot->tally.cntr == NULL) &&
         (ucp_st_trig_tally_init(&slot->tally, op->trig->rail) != UCS_OK))) {
        return UCS_ERR_NO_RESOURCE; /* slot 0 always exists: retry later */
    }
    slot->is_used  = 1;
    slot->counted += op->writes;
    op->slot       = slot;
    return UCS_OK;
}

/* The next part of the data */
static void ucp_st_rma_trig_fill_data(ucp_st_rma_trig_op_t *op,
                                      ucp_st_trig_work_t *work)
{
    const ucp_st_rma_t *rma = &op->rma;
    size_t put_max          = ucp_st_trig_rma_put_max(rma->peer);
    size_t offset           = op->line.posted * put_max;
    uct_trig_put_t put      = {
        .buffer      = rma->buffer + offset,
        .length      = ucs_min(rma->length - offset, put_max),
        .local       = ucp_st_rma_trig_mem(rma->mem)->mems[op->trig->nic],
        .remote_addr = rma->rkey->remote + rma->offset + offset,
        .rkey        = *ucp_st_rma_trig_rkey(rma->rkey)
    };

    work->ep       = ucp_st_trig_rma_ep(rma->peer, op->trig->nic);
    work->deferred = (uct_trig_deferred_t){
        .trigger    = op->trig->start.cntr,
        .threshold  = op->trig->start.base + op->threshold,
        .completion = (op->slot != NULL) ? op->slot->tally.cntr :
                                           op->trig->done.cntr
    };
    if (rma->type == UCP_ST_RMA_PUT) {
        work->type = UCP_ST_TRIG_WORK_PUT;
        work->put  = put;
        return;
    }
    work->type = UCP_ST_TRIG_WORK_GET;
    work->get  = (uct_trig_get_t){
        .buffer      = rma->buffer + offset,
        .length      = put.length,
        .local       = put.local,
        .remote_addr = put.remote_addr,
        .rkey        = put.rkey
    };
}

static void ucp_st_rma_trig_fill_signal(ucp_st_rma_trig_op_t *op,
                                        ucp_st_trig_work_t *work)
{
    const ucp_st_rma_t *rma      = &op->rma;
    ucp_st_rma_trig_slot_t *slot = op->slot;
    uint64_t address             = rma->signal->remote + rma->signal_offset;
    int has_data                 = (op->writes > 0);

    work->ep       = ucp_st_trig_rma_ep(rma->peer, op->trig->nic);
    work->deferred = (uct_trig_deferred_t){
        .trigger    = has_data ? slot->tally.cntr : op->trig->start.cntr,
        .threshold  = has_data ? slot->counted :
                                 (op->trig->start.base + op->threshold),
        .completion = op->trig->done.cntr
    };
    if (rma->signal_op == UCP_ST_SIGNAL_ADD) {
        work->type = UCP_ST_TRIG_WORK_ADD;
        work->add  = (uct_trig_atomic_t){
            .value       = rma->signal_value,
            .remote_addr = address,
            .rkey        = *ucp_st_rma_trig_rkey(rma->signal)
        };
        return;
    }
    *slot->tally.word = rma->signal_value;
    work->type = UCP_ST_TRIG_WORK_PUT;
    work->put  = (uct_trig_put_t){
        .buffer      = slot->tally.piece.address,
        .length      = sizeof(uint64_t),
        .local       = slot->tally.piece.slab->mem,
        .remote_addr = address,
        .rkey        = *ucp_st_rma_trig_rkey(rma->signal)
    };
}

/* Post the next part of an operation */
static ucs_status_t ucp_st_rma_trig_post_part(ucp_st_rma_trig_op_t *op)
{
    ucp_st_rma_trig_t *trig = op->trig;
    ucp_st_trig_work_t work;

    if (op->is_quiet) {
        ucp_st_trig_tally_fill(&trig->done, trig->rail, op->value, &work);
        work.deferred.threshold = op->threshold;
    } else if (op->line.posted < op->writes) {
        ucp_st_rma_trig_fill_data(op, &work);
    } else {
        ucp_st_rma_trig_fill_signal(op, &work);
    }
    work.deferred.done = ucp_st_rma_trig_done;
    work.deferred.arg  = op;
    return ucp_st_trig_line_post(&op->line, trig->rail, &work,
                                 !ucs_list_is_empty(&trig->posted));
}

/* Post all parts of an operation: UCS_ERR_NO_RESOURCE if there is no room for
 * one now */
static ucs_status_t ucp_st_rma_trig_post(ucp_st_rma_trig_op_t *op)
{
    ucs_status_t status = UCS_OK;

    if ((op->rma.signal != NULL) && (op->slot == NULL)) {
        status = ucp_st_rma_trig_get_slot(op);
    }
    while ((status == UCS_OK) &&
           (op->line.posted < ucp_st_rma_trig_parts(op))) {
        status = ucp_st_rma_trig_post_part(op);
    }
    return status;
}

/* Post operations that wait, in order, as far as there are entries */
static void ucp_st_rma_trig_post_waiting(ucp_st_rma_trig_t *trig)
{
    ucp_st_rma_trig_op_t *op;
    ucs_status_t status;

    if (trig->is_unsettled) {
        return; /* nothing more is to be counted before all ends */
    }
    while (!ucs_list_is_empty(&trig->waiting)) {
        op = ucs_list_head(&trig->waiting, ucp_st_rma_trig_op_t, list);
        if (op == trig->enqueued) {
            return; /* it may be undone */
        }
        if (!op->is_quiet && (op->line.pending == 0) &&
            (ucp_st_queue_status(op->rma.queue) != UCS_OK)) {
            ucp_st_rma_trig_abort(op);
            continue;
        }
        status = ucp_st_rma_trig_post(op);
        if (status == UCS_OK) {
            ucs_list_del(&op->list);
            ucs_list_add_tail(&trig->posted, &op->list);
            continue;
        }
        if (status != UCS_ERR_NO_RESOURCE) {
            if (op->is_quiet) {
                ucp_st_rma_trig_quiet_end(op, status);
            } else {
                ucp_st_rma_trig_fail(op, status);
            }
        }
        return;
    }
}

void ucp_st_rma_trig_post_late(ucp_st_trig_late_t *late)
{
    ucp_st_rma_trig_t *trig = ucs_container_of(late, ucp_st_rma_trig_t, late);

    ucp_st_rma_trig_post_waiting(trig);
    if (ucs_list_is_empty(&trig->waiting)) {
        ucp_st_trig_late_del(late);
    }
}

/* All, or those that the NIC does not end */
static void ucp_st_rma_trig_abort_list(ucs_list_link_t *ops, int is_all)
{
    ucp_st_rma_trig_op_t *op, *tmp;
    ucp_st_peer_t *peer;

    ucs_list_for_each_safe(op, tmp, ops, list) {
        peer = op->rma.peer;
        if (op->is_quiet ||
            (!is_all && (peer->status == UCS_OK) &&
             (!op->is_failed || (peer->state == UCP_ST_PEER_LOST)))) {
            continue;
        }
        if (peer->status != UCS_OK) {
            ucp_st_queue_fail(op->rma.queue, NULL, peer->status);
        }
        ucp_st_rma_trig_abort(op);
    }
}

void ucp_st_rma_trig_abort_all(ucp_st_rma_trig_t *trig, int is_all)
{
    ucp_st_rma_trig_abort_list(&trig->posted, is_all);
    ucp_st_rma_trig_abort_list(&trig->waiting, is_all);
}

int ucp_st_rma_trig_is_behind(ucp_st_worker_h worker)
{
    ucp_st_rma_trig_t *trig;
    ucp_st_rma_trig_op_t *op;
    uint64_t word;

    ucs_list_for_each(trig, &ucp_st_rma_dev(worker)->trigs, list) {
        word = __atomic_load_n(trig->done.word, __ATOMIC_ACQUIRE);
        ucs_list_for_each(op, &trig->posted, list) {
            if (!op->is_quiet && (op->threshold <= word)) {
                return 1;
            }
        }
        if (!ucs_list_is_empty(&trig->over)) {
            return 1;
        }
    }
    return 0;
}

void ucp_st_rma_trig_leave(ucp_st_rma_trig_t *trig)
{
    ucp_st_rma_trig_op_t *op, *tmp;

    trig->queue = NULL;
    ucs_list_for_each_safe(op, tmp, &trig->waiting, list) {
        ucp_st_rma_trig_destroy(op); /* a quiet: nobody waits for it */
    }
    ucp_st_trig_late_del(&trig->late);
    ucp_st_rma_trig_reap(trig);
}

void ucp_st_rma_trig_peer_gone(ucp_st_peer_t *peer)
{
    ucp_st_rma_trig_t *trig;

    ucs_list_for_each(trig, &ucp_st_rma_dev(peer->worker)->trigs, list) {
        ucp_st_rma_trig_abort_all(trig, 0);
    }
    ucp_st_trig_dev_wake(peer->worker);
}

void ucp_st_rma_trig_each(ucp_st_queue_h queue,
                          void (*func)(ucp_st_rma_trig_t *trig))
{
    unsigned i;

    for (i = 0; i < UCP_ST_TRIG_MAX_RAILS; ++i) {
        if (ucp_st_queue_rma(queue)->trigs[i] != NULL) {
            func(ucp_st_queue_rma(queue)->trigs[i]);
        }
    }
}

/* The part of a queue's for a way */
static ucp_st_rma_trig_t *ucp_st_rma_trig_get(ucp_st_queue_h queue,
                                              unsigned way)
{
    return ucp_st_queue_rma(queue)->trigs[ucp_st_rma_way_nic(way)];
}

/* The queue's caller alone sets `trigs` */
static ucs_status_t ucp_st_rma_trig_prepare(ucp_st_queue_h queue, unsigned way)
{
    ucs_status_t status;

    if (ucp_st_rma_trig_get(queue, way) != NULL) {
        return UCS_OK;
    }
    ucp_st_worker_lock(queue->worker);
    status = ucp_st_rma_trig_create(queue, ucp_st_rma_way_nic(way));
    ucp_st_worker_unlock(queue->worker);
    if ((status == UCS_OK) && ucp_st_queue_is_gpu(queue)) {
        (void)ucs_gstream_reaches(
                queue->stream, ucp_st_rma_trig_get(queue, way)->start.doorbell);
    }
    return status;
}

static ucs_status_t ucp_st_rma_trig_start(const ucp_st_rma_t *rma,
                                          ucp_st_rma_flow_t *flow,
                                          ucs_gstream_cmd_t *cmd)
{
    const uint64_t number    =
            ucp_st_queue_rma(rma->queue)->issued[rma->way] + 1;
    size_t put_max           = ucp_st_trig_rma_put_max(rma->peer);
    size_t writes            = (rma->length / put_max) +
                               ((rma->length % put_max) != 0);
    ucp_st_rma_trig_t *trig  = ucp_st_rma_trig_get(rma->queue, rma->way);
    ucp_st_rma_trig_op_t *op;

    if (((trig->counted + writes + 1) >= trig->rail->attr.max_count) ||
        ((trig->start.base > 0) && (number >= trig->start.base))) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }
    op = ucp_st_rma_trig_new(trig);
    if (op == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    op->rma        = *rma;
    op->writes     = writes;
    op->threshold  = number;
    trig->enqueued = op;
    trig->counted += ucp_st_rma_trig_counts(op);
    ++ucp_st_rma_peer(rma->peer)->num_trig;
    (void)ucp_st_trig_trigger_cmd(&trig->start, rma->queue, cmd);
    return UCS_OK;
}

/* No part of the operation was posted yet */
static void ucp_st_rma_trig_undo(const ucp_st_rma_t *rma,
                                 ucp_st_rma_flow_t *flow)
{
    ucp_st_rma_trig_t *trig  = ucp_st_rma_trig_get(rma->queue, rma->way);
    ucp_st_rma_trig_op_t *op = trig->enqueued;

    trig->enqueued = NULL;
    --ucp_st_rma_peer(flow->peer)->num_trig;
    trig->counted -= ucp_st_rma_trig_counts(op);
    ucp_st_rma_trig_put(op);
}

void ucp_st_rma_trig_commit(ucp_st_rma_trig_t *trig)
{
    trig->enqueued = NULL;
    ucp_st_rma_trig_post_late(&trig->late);
    if (trig->late.is_late) {
        ucp_st_trig_dev_wake(trig->worker);
    }
}

static ucs_status_t ucp_st_rma_trig_wait(ucp_st_queue_h queue, unsigned way,
                                         ucs_gstream_cmd_t *cmd)
{
    ucp_st_rma_trig_t *trig = ucp_st_rma_trig_get(queue, way);
    uint64_t issued         = ucp_st_queue_rma(queue)->issued[way];
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
    cmd->u.word.address = trig->done.word;
    cmd->u.word.value   = issued;
    return UCS_OK;
}

const ucp_st_rma_lane_ops_t ucp_st_rma_trig_ops = {
    .id              = UCP_ST_LANE_TRIG,
    .is_orderly      = 0,
    .reaches_devices = 1,
    .reg             = ucp_st_rma_trig_reg,
    .dereg           = ucp_st_rma_trig_dereg,
    .pack            = ucp_st_rma_trig_pack,
    .unpack          = ucp_st_rma_trig_unpack,
    .release         = ucp_st_rma_release_none,
    .prepare         = ucp_st_rma_trig_prepare,
    .start           = ucp_st_rma_trig_start,
    .undo            = ucp_st_rma_trig_undo,
    .wait            = ucp_st_rma_trig_wait
};
