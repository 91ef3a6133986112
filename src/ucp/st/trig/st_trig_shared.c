/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_shared.c - the counters and words of parts, of one operation or of an
 * exchange.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig.h"
#include "core/st_exchange.h"
#include "core/st_worker.h"

#include <ucs_gstream_memory.h>

#include <ucs/sys/math.h>

#include <stdlib.h>

/* What the exchange of a part shares on its NIC; NULL without an exchange, or
 * without memory */
static ucp_st_trig_set_t *ucp_st_trig_set(const ucp_st_trig_part_t *part)
{
    ucp_st_exchange_t *exchange = part->op->exchange;
    ucp_st_trig_dev_t *dev      = ucp_st_trig_dev(part->op->worker);
    ucp_st_trig_set_t *sets;

    if (exchange == NULL) {
        return NULL;
    }
    if (exchange->priv[UCP_ST_LANE_TRIG] == NULL) {
        exchange->priv[UCP_ST_LANE_TRIG] = calloc(UCP_ST_TRIG_MAX_RAILS,
                                                  sizeof(*sets));
    }
    sets = exchange->priv[UCP_ST_LANE_TRIG];
    return (sets == NULL) ? NULL : &sets[part->rail - dev->rails];
}

static void ucp_st_trig_start_destroy(ucp_st_trig_start_t *start)
{
    ucp_st_trig_trigger_cleanup(&start->trigger);
    if (start->home != NULL) {
        *start->home = NULL;
    }
    free(start);
}

/* Operations of an exchange fail together */
static void ucp_st_trig_start_fail(ucp_st_trig_trigger_t *trigger,
                                   unsigned count)
{
    const ucp_st_trig_start_t *start =
            ucs_container_of(trigger, ucp_st_trig_start_t, trigger);

    ucp_st_op_fail(ucs_list_head(&start->parts, ucp_st_trig_part_t,
                                 start_list)->op, UCS_ERR_IO_ERROR);
}

/* Where the exchange has the counter that starts of the part add to; NULL: it
 * has one of its own */
static ucp_st_trig_start_t **
ucp_st_trig_start_home(const ucp_st_trig_part_t *part, ucp_st_trig_set_t *set)
{
    if (set == NULL) {
        return NULL;
    }
    if ((part->op->dir == UCP_ST_DIR_RECV) ||
        (ucp_st_trig_op(part->op)->plan.proto == UCP_ST_TRIG_READY)) {
        return &set->ready;
    }
    return part->op->is_coupled ? &set->sends : NULL;
}

/* What there is on errors is given back by ucp_st_trig_shared_put(), as for
 * ucp_st_trig_done_get() */
static ucs_status_t ucp_st_trig_start_get(ucp_st_trig_part_t *part,
                                          ucp_st_trig_set_t *set)
{
    ucp_st_trig_start_t **home = ucp_st_trig_start_home(part, set);
    ucp_st_trig_start_t *start = (home == NULL) ? NULL : *home;
    ucs_status_t status        = UCS_OK;

    if (start == NULL) {
        start = calloc(1, sizeof(*start));
        if (start == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        ucs_list_head_init(&start->parts);
        start->trigger.fail = ucp_st_trig_start_fail;
        start->home         = home;
        if (home != NULL) {
            *home = start;
        }
        status = ucp_st_trig_trigger_init(&start->trigger, part->rail);
    }
    if ((part->op->dir == UCP_ST_DIR_SEND) &&
        (ucp_st_trig_op(part->op)->plan.proto == UCP_ST_TRIG_EAGER)) {
        start->trigger.weight = 2;
    }
    ucs_list_add_tail(&start->parts, &part->start_list);
    ++start->num_parts;
    part->start = start;
    return status;
}

static void ucp_st_trig_done_destroy(ucp_st_trig_done_t *done)
{
    if (done->word_add != NULL) {
        (void)uct_trig_op_destroy(done->word_add);
    }
    ucp_st_trig_tally_cleanup(&done->tally, done->rail);
    if (done->home != NULL) {
        *done->home = NULL;
    }
    free(done);
}

static ucs_status_t ucp_st_trig_done_get(ucp_st_trig_part_t *part,
                                         ucp_st_trig_set_t *set)
{
    ucp_st_trig_done_t *done = (set == NULL) ? NULL : set->done;
    ucs_status_t status      = UCS_OK;

    if (done == NULL) {
        done = calloc(1, sizeof(*done));
        if (done == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        ucs_list_head_init(&done->parts);
        done->rail = part->rail;
        if (set != NULL) {
            done->home = &set->done;
            set->done  = done;
        }
        status = ucp_st_trig_tally_init(&done->tally, part->rail);
    }
    ucs_list_add_tail(&done->parts, &part->done_list);
    ++done->num_parts;
    part->done = done;
    return status;
}

/* A receive that puts no clear-to-sends starts nothing */
ucs_status_t ucp_st_trig_shared_get(ucp_st_trig_part_t *part)
{
    ucp_st_trig_set_t *set = ucp_st_trig_set(part);
    ucs_status_t status;

    if ((part->op->exchange != NULL) && (set == NULL)) {
        return UCS_ERR_NO_MEMORY;
    }
    status = ucp_st_trig_done_get(part, set);
    return ((status == UCS_OK) && ucp_st_trig_has_put(part->op)) ?
           ucp_st_trig_start_get(part, set) : status;
}

ucs_status_t ucp_st_trig_shared_bind(ucp_st_trig_part_t *part)
{
    ucp_st_trig_done_t *done = part->done;
    ucp_st_trig_work_t work;

    done->num_puts += part->num_puts;
    if ((part->op->dir == UCP_ST_DIR_SEND) &&
        (ucp_st_trig_op(part->op)->plan.proto == UCP_ST_TRIG_STANDARD)) {
        ++part->start->num_clears;
    }
    if (done->word_add != NULL) {
        return UCS_OK;
    }
    ucp_st_trig_done_fill(done, &work);
    return uct_trig_op_create_add64(work.ep, &work.add, &work.deferred,
                                    &done->word_add);
}

/* All that share the counter may be disposed of: entries cannot be cancelled
 * one by one, but the regions that the puts name are closed. They fail and
 * write nothing. The counter may have been reset. */
static void ucp_st_trig_start_check(ucp_st_trig_start_t *start)
{
    uint64_t uses = 0;
    const ucp_st_trig_part_t *part;

    if (start->trigger.is_fired || (start->num_disposed < start->num_parts)) {
        return;
    }
    ucs_list_for_each(part, &start->parts, start_list) {
        /* Uses that were posted ahead and taken back are armed, too */
        uses = ucs_max(uses, ucs_max(part->op->started, part->op->ahead));
    }
    ucp_st_trig_trigger_fire(&start->trigger,
                             ucp_st_trig_start_max(start) * (uses + 1));
}

void ucp_st_trig_done_store(ucp_st_trig_done_t *done)
{
    if (done->num_released == done->num_parts) {
        __atomic_store_n(done->tally.word, UCP_ST_RELEASE, __ATOMIC_RELEASE);
        ucs_gstream_wake(done->tally.word);
    }
}

static void ucp_st_trig_done_check(ucp_st_trig_done_t *done)
{
    if ((done->num_settled == done->num_parts) && (done->line.pending > 0)) {
        (void)uct_trig_cntr_add(done->tally.cntr,
                                done->line.pending * done->num_puts);
    }
}

/* With it may go what the others waited for */
void ucp_st_trig_shared_put(ucp_st_trig_part_t *part)
{
    ucp_st_trig_start_t *start = part->start;
    ucp_st_trig_done_t *done   = part->done;

    if (start != NULL) {
        ucs_list_del(&part->start_list);
        start->num_disposed -= part->is_disposed;
        if (--start->num_parts == 0) {
            ucp_st_trig_start_destroy(start);
        } else {
            ucp_st_trig_start_check(start);
        }
    }
    if (done != NULL) {
        ucs_list_del(&part->done_list);
        done->num_released -= part->is_released;
        done->num_settled  -= part->is_settled;
        if (--done->num_parts == 0) {
            ucp_st_trig_done_destroy(done);
        } else {
            ucp_st_trig_done_store(done);
            ucp_st_trig_done_check(done);
        }
    }
}

void ucp_st_trig_done_fill(ucp_st_trig_done_t *done, ucp_st_trig_work_t *work)
{
    ucp_st_trig_tally_fill(&done->tally, done->rail, 1, work);
    work->deferred.done = ucp_st_trig_word_done;
    work->deferred.arg  = done;
}

/* Of eager-ahead sends thresholds count some clear-to-sends less */
uint64_t ucp_st_trig_start_max(const ucp_st_trig_start_t *start)
{
    return start->trigger.weight + ucs_max(start->num_clears, 1);
}

void ucp_st_trig_shared_dispose(ucp_st_trig_part_t *part)
{
    if ((part->start != NULL) && !part->is_disposed) {
        part->is_disposed = 1;
        ++part->start->num_disposed;
        ucp_st_trig_start_check(part->start);
    }
}

void ucp_st_trig_shared_release(ucp_st_trig_part_t *part)
{
    if (!part->is_released) {
        part->is_released = 1;
        ++part->done->num_released;
        ucp_st_trig_done_store(part->done);
    }
}

void ucp_st_trig_shared_settle(ucp_st_trig_part_t *part)
{
    if (!part->is_settled) {
        part->is_settled = 1;
        ++part->done->num_settled;
        ucp_st_trig_done_check(part->done);
    }
}
