/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_dwq.c - deferred work: the queues at the counters, and what runs it.
 *
 * Each counter has a binary heap of what waits for it, so that to find what is
 * due costs the same however much else waits.
 */
#include "op/cxiemu_dwq.h"
#include "base/cxiemu_log.h"
#include "base/cxiemu_service.h"
#include "cxi/cxiemu_doorbell.h"
#include "op/cxiemu_ep.h"
#include "op/cxiemu_txop.h"

#include <rdma/fi_errno.h>

#include <stdlib.h>
#include <string.h>

/* A counter's first heap has room for 2 to the power of this entries */
#define CXIEMU_DWQ_HEAP_ORDER 1

/* What a service has, beyond what it is said to have, as Cassini's provider
 * leaves some for operations that fire at once */
#define CXIEMU_DWQ_SPARE 8

/* The least slots of a queue of commands */
#define CXIEMU_DWQ_SLOTS_MIN 64

/* Of entries: first in, first out, also of several domains; atomic */
static uint64_t cxiemu_dwq_age;


int cxiemu_dwq_reserve(size_t count)
{
    size_t max = cxiemu_param()->max_entries;

    if (cxiemu_service_take(CXIEMU_SERVICE_ENTRIES, count, max) != 0) {
        cxiemu_info(DOMAIN, "all %zu entries for deferred work are in use\n",
                    max);
        return -FI_ENOSPC;
    }
    return 0;
}

void cxiemu_dwq_release(size_t count)
{
    cxiemu_service_give(CXIEMU_SERVICE_ENTRIES, count);
}


static int cxiemu_dwq_before(const cxiemu_trigger_t *a,
                             const cxiemu_trigger_t *b)
{
    return (a->threshold != b->threshold) ? (a->threshold < b->threshold) :
                                            (a->age < b->age);
}

static void cxiemu_dwq_place(cxiemu_cntr_t *cntr, size_t index,
                             cxiemu_trigger_t *entry)
{
    cntr->heap[index] = entry;
    entry->index      = index;
}

static void cxiemu_dwq_sift_up(cxiemu_cntr_t *cntr, size_t index,
                               cxiemu_trigger_t *entry)
{
    size_t parent;

    while (index > 0) {
        parent = (index - 1) / 2;
        if (!cxiemu_dwq_before(entry, cntr->heap[parent])) {
            break;
        }
        cxiemu_dwq_place(cntr, index, cntr->heap[parent]);
        index = parent;
    }
    cxiemu_dwq_place(cntr, index, entry);
}

static void cxiemu_dwq_heap_remove(cxiemu_cntr_t *cntr, size_t index)
{
    cxiemu_trigger_t *last = cntr->heap[--cntr->heap_count];
    size_t child;

    if (index == cntr->heap_count) {
        return;
    }
    if ((index > 0) && cxiemu_dwq_before(last, cntr->heap[(index - 1) / 2])) {
        cxiemu_dwq_sift_up(cntr, index, last);
        return;
    }
    while ((child = 2 * index + 1) < cntr->heap_count) {
        if ((child + 1 < cntr->heap_count) &&
            cxiemu_dwq_before(cntr->heap[child + 1], cntr->heap[child])) {
            ++child;
        }
        if (!cxiemu_dwq_before(cntr->heap[child], last)) {
            break;
        }
        cxiemu_dwq_place(cntr, index, cntr->heap[child]);
        index = child;
    }
    cxiemu_dwq_place(cntr, index, last);
}


static cxiemu_dwq_entry_t *cxiemu_dwq_first(const cxiemu_cntr_t *cntr)
{
    return container_of(cntr->heap[0], cxiemu_dwq_entry_t, due);
}

void cxiemu_dwq_cleanup(cxiemu_nic_t *nic)
{
    cxiemu_dwq_entry_t *entry;

    while ((entry = LIST_FIRST(&nic->dwq_free)) != NULL) {
        LIST_REMOVE(entry, list);
        free(entry);
    }
}

int cxiemu_dwq_prepare(cxiemu_nic_t *nic, cxiemu_cntr_t *cntr, size_t count)
{
    uint8_t order = (cntr->heap == NULL) ? CXIEMU_DWQ_HEAP_ORDER :
                                           cntr->heap_order;
    size_t have   = 0;
    cxiemu_dwq_entry_t *entry;
    cxiemu_trigger_t **heap;

    while (((size_t)1 << order) < cntr->heap_count + count) {
        ++order;
    }
    if ((cntr->heap == NULL) || (order != cntr->heap_order)) {
        heap = realloc(cntr->heap, ((size_t)1 << order) * sizeof(*heap));
        if (heap == NULL) {
            return -FI_ENOMEM;
        }
        cntr->heap       = heap;
        cntr->heap_order = order;
    }

    LIST_FOREACH(entry, &nic->dwq_free, list) {
        if (++have == count) {
            return 0;
        }
    }
    for (; have < count; ++have) {
        entry = malloc(sizeof(*entry));
        if (entry == NULL) {
            return -FI_ENOMEM;
        }
        LIST_INSERT_HEAD(&nic->dwq_free, entry, list);
    }
    return 0;
}

/* A copy of the work, in the list of all */
static cxiemu_dwq_entry_t *cxiemu_dwq_copy(cxiemu_nic_t *nic,
                                           const cxiemu_dwq_entry_t *work)
{
    cxiemu_dwq_entry_t *entry = LIST_FIRST(&nic->dwq_free); /* prepared */

    LIST_REMOVE(entry, list);
    *entry = *work;
    LIST_INSERT_HEAD(&nic->dwq, entry, list);
    return entry;
}

static void cxiemu_dwq_enqueue(cxiemu_dwq_entry_t *entry)
{
    cxiemu_cntr_t *cntr = entry->trigger;

    entry->due.age = __atomic_fetch_add(&cxiemu_dwq_age, 1, __ATOMIC_RELAXED);
    entry->queued  = 1;
    cxiemu_dwq_sift_up(cntr, cntr->heap_count++, &entry->due);

    /* What was stored to the doorbell while nothing waited counts */
    cxiemu_doorbell_take(cntr);
    cxiemu_doorbell_update(cntr);
    cxiemu_cntr_fire(cntr);
}

void cxiemu_dwq_insert(cxiemu_nic_t *nic, const cxiemu_dwq_entry_t *work)
{
    cxiemu_dwq_enqueue(cxiemu_dwq_copy(nic, work));
}


static int cxiemu_dwq_take(const cxiemu_dwq_entry_t *entry)
{
    return cxiemu_service_take(CXIEMU_SERVICE_ENTRIES, entry->entries,
                               cxiemu_param()->max_entries + CXIEMU_DWQ_SPARE);
}

int cxiemu_dwq_room(cxiemu_nic_t *nic, size_t slots)
{
    const cxiemu_param_t *param = cxiemu_param();
    size_t max                  = (param->max_entries > CXIEMU_DWQ_SLOTS_MIN) ?
                                          param->max_entries :
                                          CXIEMU_DWQ_SLOTS_MIN;

    if (nic->held_slots + slots > max) {
        cxiemu_info(DOMAIN, "the queue of commands is full\n");
        return -FI_EAGAIN;
    }
    return ((param->again_every != 0) &&
            (cxiemu_nic_random(nic) % param->again_every == 0)) ?
                   -FI_EAGAIN : 0;
}

static void cxiemu_dwq_hold(cxiemu_nic_t *nic, const cxiemu_dwq_entry_t *work)
{
    cxiemu_dwq_entry_t *entry = cxiemu_dwq_copy(nic, work);

    if (TAILQ_EMPTY(&nic->held)) {
        cxiemu_warn(DOMAIN, "the queue of commands stalls: all %zu entries of "
                    "the service are in use, %zu by this process\n",
                    cxiemu_param()->max_entries,
                    cxiemu_service_own(CXIEMU_SERVICE_ENTRIES));
    }
    entry->held      = 1;
    nic->held_slots += entry->slots;
    TAILQ_INSERT_TAIL(&nic->held, entry, held_list);
}

static void cxiemu_dwq_unhold(cxiemu_nic_t *nic, cxiemu_dwq_entry_t *entry)
{
    entry->held      = 0;
    nic->held_slots -= entry->slots;
    TAILQ_REMOVE(&nic->held, entry, held_list);
}

void cxiemu_dwq_submit(cxiemu_nic_t *nic, const cxiemu_dwq_entry_t *work)
{
    if (TAILQ_EMPTY(&nic->held) && (cxiemu_dwq_take(work) == 0)) {
        cxiemu_dwq_insert(nic, work);
    } else {
        cxiemu_dwq_hold(nic, work);
    }
}

int cxiemu_dwq_hold_set(cxiemu_nic_t *nic, cxiemu_cntr_t *cntr, uint64_t value)
{
    cxiemu_dwq_entry_t work = {.type    = FI_OP_CNTR_SET,
                               .trigger = cntr,
                               .target  = cntr,
                               .value   = value,
                               .slots   = 1};
    int ret                 = cxiemu_dwq_prepare(nic, cntr, 1);

    if (ret == 0) {
        cxiemu_dwq_hold(nic, &work);
    }
    return ret;
}

unsigned cxiemu_dwq_admit(cxiemu_nic_t *nic)
{
    unsigned count = 0;
    cxiemu_dwq_entry_t *entry;

    while (((entry = TAILQ_FIRST(&nic->held)) != NULL) &&
           (cxiemu_dwq_prepare(nic, entry->trigger, 1) == 0) &&
           (cxiemu_dwq_take(entry) == 0)) {
        cxiemu_dwq_unhold(nic, entry);
        cxiemu_dwq_enqueue(entry);
        ++count;
    }
    return count;
}


/* It ends: whatever is started was queued, and nothing queues here. */
unsigned cxiemu_dwq_run(cxiemu_nic_t *nic)
{
    unsigned count = 0;
    cxiemu_dwq_entry_t *entry;
    cxiemu_cntr_t *cntr;
    size_t entries;

    if (nic->is_flushing) {
        return 0;
    }
    while ((cntr = STAILQ_FIRST(&nic->fired)) != NULL) {
        STAILQ_REMOVE_HEAD(&nic->fired, fired);
        cntr->is_fired = 0;
        while ((cntr->heap_count > 0) &&
               (cntr->heap[0]->threshold <= cntr->success)) {
            entry          = cxiemu_dwq_first(cntr);
            entries        = entry->entries;
            entry->queued  = 0;
            entry->trigger = NULL;
            if (entry->write_back) {
                cxiemu_cntr_write_back_now(cntr);
                cxiemu_dwq_forget(nic, entry);
            } else if (entry->target != NULL) {
                if (entry->type == FI_OP_CNTR_ADD) {
                    cxiemu_cntr_count(entry->target, entry->value, 0);
                } else {
                    cxiemu_cntr_assign(entry->target, entry->value);
                }
                cxiemu_dwq_forget(nic, entry);
            } else {
                /* A NIC fetches an atomic's operands when it carries it out */
                if (entry->operand != NULL) {
                    memcpy(&entry->op.operand, entry->operand,
                           entry->op.length);
                }
                if (entry->compare != NULL) {
                    memcpy(&entry->op.compare, entry->compare,
                           entry->op.length);
                }
                cxiemu_txop_start(&entry->op, entry);
            }
            /* The peer waits for that, and nobody for this. The entry may be
             * over, but is not in use again. */
            cxiemu_dwq_heap_remove(cntr, 0);
            cxiemu_dwq_release(entries);
            ++count;
        }
        cxiemu_doorbell_update(cntr);
    }
    return count;
}

/* Out of its queue, without an error entry, as CXI cancels. */
static void cxiemu_dwq_cancel(cxiemu_nic_t *nic, cxiemu_dwq_entry_t *entry)
{
    cxiemu_cntr_t *trigger = entry->trigger;

    if (entry->held) {
        cxiemu_dwq_unhold(nic, entry);
    } else {
        cxiemu_dwq_heap_remove(trigger, entry->due.index);
        entry->queued = 0;
        cxiemu_doorbell_update(trigger);
        cxiemu_dwq_release(entry->entries);
    }
    if (entry->op.ep != NULL) {
        cxiemu_ep_give_tx(entry->op.ep);
    }
    cxiemu_dwq_forget(nic, entry);
}

int cxiemu_dwq_is_settled(void *arg)
{
    const cxiemu_nic_t *nic = arg;
    const cxiemu_dwq_entry_t *entry;

    LIST_FOREACH(entry, &nic->dwq, list) {
        if (!entry->queued && !entry->held) {
            return 0;
        }
    }
    return 1;
}

void cxiemu_dwq_drop_all(cxiemu_nic_t *nic)
{
    cxiemu_dwq_entry_t *entry, *next;

    for (entry = LIST_FIRST(&nic->dwq); entry != NULL; entry = next) {
        next = LIST_NEXT(entry, list);
        if (entry->queued || entry->held) {
            cxiemu_dwq_cancel(nic, entry);
        }
    }
}

void cxiemu_dwq_drop_cntr(cxiemu_cntr_t *cntr)
{
    cxiemu_nic_t *nic = cntr->domain->nic;
    cxiemu_dwq_entry_t *entry, *next;

    while (cntr->heap_count > 0) {
        cxiemu_dwq_cancel(nic, cxiemu_dwq_first(cntr));
    }
    for (entry = LIST_FIRST(&nic->dwq); entry != NULL; entry = next) {
        next = LIST_NEXT(entry, list);
        if (entry->completion == cntr) {
            entry->completion = NULL;
        }
        if ((entry->target == cntr) ||
            (entry->held && (entry->trigger == cntr))) {
            cxiemu_dwq_cancel(nic, entry); /* Never waits once it has started */
        }
    }
}

void cxiemu_dwq_drop_ep(struct cxiemu_ep *ep)
{
    cxiemu_nic_t *nic = ep->domain->nic;
    cxiemu_dwq_entry_t *entry, *next;

    for (entry = LIST_FIRST(&nic->dwq); entry != NULL; entry = next) {
        next = LIST_NEXT(entry, list);
        if (entry->op.ep != ep) {
            continue;
        }
        if (entry->queued || entry->held) {
            cxiemu_dwq_cancel(nic, entry);
        } else {
            entry->completion = NULL;
        }
    }
}
