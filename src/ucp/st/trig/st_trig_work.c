/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_work.c - deferred work of one NIC of the trig lane.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig_work.h"
#include "core/st_log.h"
#include "trig/st_trig_dev.h"

#include <ucs/sys/math.h>

#include <stdlib.h>

/* How often work is refused before it goes without an entry */
#define UCP_ST_TRIG_MAX_REFUSALS 2

ucs_status_t ucp_st_trig_trigger_init(ucp_st_trig_trigger_t *trigger,
                                      ucp_st_trig_rail_t *rail)
{
    ucs_status_t status = uct_trig_cntr_create(rail->iface, &trigger->cntr);

    if (status != UCS_OK) {
        return status;
    }
    ucs_list_add_tail(&ucp_st_trig_dev(rail->worker)->triggers, &trigger->list);
    trigger->rail     = rail;
    trigger->weight   = 1;
    trigger->doorbell = uct_trig_cntr_doorbell(trigger->cntr);
    if (trigger->doorbell == NULL) {
        return UCS_OK;
    }
    /* A quarter: after a reset the base again, and all that streams add, fit
     * into the counter */
    trigger->base = rail->attr.max_count / 4;
    return uct_trig_cntr_add(trigger->cntr, trigger->base);
}

void ucp_st_trig_trigger_cleanup(ucp_st_trig_trigger_t *trigger)
{
    if (trigger->cntr != NULL) {
        ucs_list_del(&trigger->list);
        (void)uct_trig_cntr_destroy(trigger->cntr);
    }
}

/* Another thread than a stream's triggers; with the lock held or not */
static void ucp_st_trig_proxied(ucp_st_worker_h worker)
{
    __atomic_fetch_add(&ucp_st_trig_dev(worker)->proxied, 1, __ATOMIC_RELAXED);
}

/* Runs on the stream */
static void ucp_st_trig_add_func(void *arg)
{
    ucp_st_trig_trigger_t *trigger = arg;
    ucp_st_worker_h worker         = trigger->rail->worker;
    ucs_status_t status;

    /* Pairs with the release store in ucp_st_trig_trigger_halt(): a stream that
     * passed a released wait starts nothing any more */
    if (__atomic_load_n(&trigger->is_halted, __ATOMIC_ACQUIRE)) {
        return;
    }
    /* As for a stream's store to a trigger page: the loads of a copy out of an
     * inbox come before the clear-to-send, behind which the peer's next put
     * writes to what they read */
    __sync_synchronize();
    status = uct_trig_cntr_add(trigger->cntr, trigger->weight);
    if (status != UCS_OK) {
        /* What was started will never complete. A stream takes no lock: the
         * service thread fails it. */
        ucs_error("lane 'trig': failed to trigger the NIC: %s",
                  ucs_status_string(status));
        __atomic_fetch_add(&trigger->untriggered, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&ucp_st_trig_dev(worker)->untriggered, 1,
                         __ATOMIC_RELEASE);
        ucp_st_trig_dev_wake(worker);
    }
}

/* The same for a stream of a device that does not reach the trigger page; runs
 * in the service thread, or in the one that calls for the queue */
static void ucp_st_trig_add_call(void *arg)
{
    ucp_st_trig_trigger_t *trigger = arg;

    ucp_st_trig_proxied(trigger->rail->worker);
    ucp_st_trig_add_func(trigger);
}

/* A stream's store to a trigger page comes after all that the stream did
 * before, loads as well */
size_t ucp_st_trig_trigger_cmd(ucp_st_trig_trigger_t *trigger,
                               ucp_st_queue_h queue, ucs_gstream_cmd_t *cmd)
{
    int is_call = ucp_st_queue_is_gpu(queue) &&
                  !ucs_gstream_reaches(queue->stream, trigger->doorbell);

    if (is_call || (trigger->doorbell == NULL)) {
        return ucp_st_queue_add_func(queue, is_call ? ucp_st_trig_add_call :
                                                      ucp_st_trig_add_func,
                                     trigger, 0, cmd);
    }
    cmd->type           = UCS_GSTREAM_CMD_WRITE64;
    cmd->u.word.address = trigger->doorbell;
    cmd->u.word.value   = trigger->weight;
    return 1;
}

/* A stream that calls a function looks at the flag. A stream that stores to a
 * trigger page cannot. Counters of such a NIC begin at a base that is larger
 * than all that streams will ever add, and thresholds count from there: after
 * the reset, what streams add stays below every threshold. A reset is a store
 * to the trigger page, as a start is. The reset comes before the release of the
 * words, and the stream's store behind that. What was fired stays so. */
ucs_status_t ucp_st_trig_trigger_halt(ucp_st_trig_trigger_t *trigger)
{
    ucs_status_t status = UCS_OK;

    if ((trigger->base > 0) && !trigger->is_fired && !trigger->is_halted) {
        status = uct_trig_cntr_reset(trigger->cntr);
    }
    /* Pairs with the acquire load in ucp_st_trig_add_func() */
    __atomic_store_n(&trigger->is_halted, status == UCS_OK, __ATOMIC_RELEASE);
    return status;
}

void ucp_st_trig_trigger_fire(ucp_st_trig_trigger_t *trigger,
                              uint64_t threshold)
{
    trigger->is_fired = 1;
    (void)uct_trig_cntr_add(trigger->cntr, trigger->base + threshold);
}

void ucp_st_trig_fail_untriggered(ucp_st_worker_h worker)
{
    ucp_st_trig_trigger_t *trigger;
    unsigned count;

    ucs_list_for_each(trigger, &ucp_st_trig_dev(worker)->triggers, list) {
        count = __atomic_exchange_n(&trigger->untriggered, 0, __ATOMIC_RELAXED);
        if (count > 0) {
            trigger->fail(trigger, count);
        }
    }
}

ucs_status_t ucp_st_trig_tally_init(ucp_st_trig_tally_t *tally,
                                    ucp_st_trig_rail_t *rail)
{
    ucs_status_t status = ucp_st_trig_piece_get(rail, &tally->piece);

    if (status != UCS_OK) {
        return status;
    }
    tally->word  = tally->piece.address;
    *tally->word = 0;
    return uct_trig_cntr_create(rail->iface, &tally->cntr);
}

void ucp_st_trig_tally_cleanup(ucp_st_trig_tally_t *tally,
                               ucp_st_trig_rail_t *rail)
{
    if (tally->cntr != NULL) {
        (void)uct_trig_cntr_destroy(tally->cntr);
    }
    ucp_st_trig_piece_put(rail, &tally->piece);
}

void ucp_st_trig_tally_fill(const ucp_st_trig_tally_t *tally,
                            const ucp_st_trig_rail_t *rail, uint64_t value,
                            ucp_st_trig_work_t *work)
{
    work->type     = UCP_ST_TRIG_WORK_ADD;
    work->ep       = rail->self_ep;
    work->add      = (uct_trig_atomic_t){
        .value       = value,
        .remote_addr = (uintptr_t)tally->word,
        .rkey        = tally->piece.slab->rkey
    };
    work->deferred = (uct_trig_deferred_t){.trigger = tally->cntr};
}

/* Where no entry is free the host carries out what is due: so no work waits for
 * entries that other work holds */
static int ucp_st_trig_work_is_due(const ucp_st_trig_work_t *work)
{
    uint64_t value;

    /* Also of one where something has failed, which the host counts instead */
    (void)uct_trig_cntr_read(work->deferred.trigger, &value);
    return value >= work->deferred.threshold;
}

static ucs_status_t ucp_st_trig_work_try(const ucp_st_trig_work_t *work)
{
    switch (work->type) {
    case UCP_ST_TRIG_WORK_PUT:
        return uct_trig_ep_put(work->ep, &work->put, &work->deferred);
    case UCP_ST_TRIG_WORK_GET:
        return uct_trig_ep_get(work->ep, &work->get, &work->deferred);
    case UCP_ST_TRIG_WORK_OWN:
        return uct_trig_op_post(work->own.op, work->deferred.threshold,
                                work->own.offset, work->deferred.is_due);
    default:
        return uct_trig_ep_atomic_add64(work->ep, &work->add, &work->deferred);
    }
}

ucs_status_t ucp_st_trig_line_post(ucp_st_trig_line_t *line,
                                   ucp_st_trig_rail_t *rail,
                                   ucp_st_trig_work_t *work, int is_behind)
{
    ucs_status_t status = UCS_ERR_NO_RESOURCE;

    is_behind |= (line->pending > 0);
    if (!is_behind || (rail->used < rail->max_ahead)) {
        status = ucp_st_trig_work_try(work);
    }
    if ((status == UCS_ERR_NO_RESOURCE) && !is_behind) {
        if ((++line->refusals > UCP_ST_TRIG_MAX_REFUSALS) &&
            ucp_st_trig_work_is_due(work)) {
            work->deferred.is_due = 1;
            status                = ucp_st_trig_work_try(work);
            if (status == UCS_OK) {
                ucp_st_trig_proxied(rail->worker);
            }
            rail->refused += (status == UCS_ERR_NO_RESOURCE);
        }
        if (status == UCS_ERR_NO_RESOURCE) {
            ucp_st_trig_refused(rail->worker);
        }
    }
    if (status == UCS_OK) {
        ++line->posted;
        ++line->pending;
        ++rail->used;
        line->refusals = is_behind ? line->refusals : 0;
    }
    return status;
}

void ucp_st_trig_line_over(ucp_st_trig_line_t *line, ucp_st_trig_rail_t *rail)
{
    --line->pending;
    --rail->used;
}

ucs_status_t ucp_st_trig_cancel_add(ucp_st_trig_rail_t *rail,
                                    uct_trig_cntr_h cntr)
{
    unsigned max = ucs_max(2 * rail->max_cancel, 16);
    uct_trig_cntr_h *cntrs;

    if (rail->num_cancel == rail->max_cancel) {
        cntrs = realloc(rail->cancel, max * sizeof(*cntrs));
        if (cntrs == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        rail->cancel     = cntrs;
        rail->max_cancel = max;
    }
    rail->cancel[rail->num_cancel++] = cntr;
    return UCS_OK;
}

ucs_status_t ucp_st_trig_cancel(ucp_st_trig_rail_t *rail)
{
    unsigned count = rail->num_cancel;

    rail->num_cancel = 0;
    return (count == 0) ? UCS_OK :
           uct_trig_iface_cancel(rail->iface, rail->cancel, count);
}

void ucp_st_trig_late_add(ucp_st_worker_h worker, ucp_st_trig_late_t *late)
{
    if (!late->is_late) {
        late->is_late = 1;
        ucs_list_add_tail(&ucp_st_trig_dev(worker)->late, &late->list);
    }
}

void ucp_st_trig_late_del(ucp_st_trig_late_t *late)
{
    if (late->is_late) {
        ucs_list_del(&late->list);
        late->is_late = 0;
    }
}

void ucp_st_trig_post_late(ucp_st_worker_h worker)
{
    ucs_list_link_t *list = &ucp_st_trig_dev(worker)->late;
    ucs_list_link_t untried;
    ucp_st_trig_late_t *late;

    /* All of them, not only the first, which may wait for what a later one
     * does. One that fails may take others from either list. */
    ucs_list_head_init(&untried);
    ucs_list_splice_tail(&untried, list);
    ucs_list_head_init(list);
    while (!ucs_list_is_empty(&untried)) {
        late = ucs_list_extract_head(&untried, ucp_st_trig_late_t, list);
        ucs_list_add_tail(list, &late->list);
        late->post(late);
    }
}
