/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_doorbell.c - what is stored to trigger pages of counters.
 *
 * A store to one of Cassini's registers is an event; a store to memory is
 * state. A store of a stream of the program that embeds the provider is given
 * to the NIC (cxiemu_window.c), and is an event; and so is a store of the host
 * in trap mode (cxiemu_trap.c).
 *
 * Other stores, of a device or another thread, are found in the page, which is
 * memory. What is found in a word is taken by an exchange, so that stores which
 * come one by one are all counted, but of two that come between two looks the
 * later one alone is. An atomic addition to the word is exact.
 *
 * A page is watched as long as a store could set something off: deferred work
 * or a thread waits for the counter. The NIC's thread then looks at it every
 * FI_CXIEMU_DOORBELL_POLL. Where the NIC is given the stores of streams, the
 * thread looks every CXIEMU_CHECK_NS. A page that is not watched is read when
 * the counter is.
 */
#include "cxi/cxiemu_doorbell.h"
#include "cxi/cxiemu_trap.h"


int cxiemu_doorbell_has(const cxiemu_cntr_t *cntr)
{
    const cxiemu_cntr_more_t *more = cxiemu_cntr_more(cntr);
    const uint64_t *words          = NULL;

    if (more != NULL) {
        words = (const uint64_t*)__atomic_load_n(&more->doorbell,
                                                 __ATOMIC_ACQUIRE);
    }
    if (words == NULL) {
        return 0;
    }
    if (more->trap >= 0) {
        return cxiemu_trap_has(more->trap);
    }
    return (__atomic_load_n(&words[CXIEMU_DOORBELL_ADD], __ATOMIC_RELAXED) |
            __atomic_load_n(&words[CXIEMU_DOORBELL_ADD_FAILURE],
                            __ATOMIC_RELAXED) |
            ~__atomic_load_n(&words[CXIEMU_DOORBELL_RESET], __ATOMIC_RELAXED) |
            ~__atomic_load_n(&words[CXIEMU_DOORBELL_RESET_FAILURE],
                             __ATOMIC_RELAXED)) != 0;
}

/* Acquire: pairs with whatever fence the device puts before its store, so that
 * the data that the deferred work moves is what was written before. */
static void cxiemu_doorbell_read(cxiemu_cntr_t *cntr,
                                 cxiemu_trap_taken_t *taken)
{
    static const uint64_t nothing = CXIEMU_DOORBELL_NO_RESET;
    uint64_t *words               = (uint64_t*)cntr->more->doorbell;

    taken->reset = __atomic_exchange_n(&words[CXIEMU_DOORBELL_RESET], nothing,
                                       __ATOMIC_ACQ_REL) != nothing;
    taken->reset_failure =
            __atomic_exchange_n(&words[CXIEMU_DOORBELL_RESET_FAILURE], nothing,
                                __ATOMIC_ACQ_REL) != nothing;
    taken->success = __atomic_exchange_n(&words[CXIEMU_DOORBELL_ADD], 0,
                                         __ATOMIC_ACQ_REL);
    taken->failure = __atomic_exchange_n(&words[CXIEMU_DOORBELL_ADD_FAILURE], 0,
                                         __ATOMIC_ACQ_REL);
}

int cxiemu_doorbell_take(cxiemu_cntr_t *cntr)
{
    cxiemu_trap_taken_t taken;

    if (!cxiemu_doorbell_has(cntr)) {
        return 0;
    }

    if (cntr->more->trap >= 0) {
        cxiemu_trap_take(cntr->more->trap, &taken);
    } else {
        cxiemu_doorbell_read(cntr, &taken);
    }
    if (taken.reset_failure) {
        cntr->failure = 0;
    }
    if (taken.reset || taken.reset_failure) {
        cxiemu_cntr_assign(cntr, taken.reset ? 0 : cntr->success);
    }
    if ((taken.success != 0) || (taken.failure != 0)) {
        cxiemu_cntr_count(cntr, taken.success & CXIEMU_CNTR_SUCCESS_MAX,
                          taken.failure & CXIEMU_CNTR_FAILURE_MAX);
    }
    return 1;
}

unsigned cxiemu_doorbell_take_all(cxiemu_nic_t *nic)
{
    unsigned count = 0;
    cxiemu_cntr_t *cntr;

    LIST_FOREACH(cntr, &nic->doorbells, more->watch) {
        count += cxiemu_doorbell_take(cntr);
    }
    return count;
}

static void cxiemu_doorbell_watch(cxiemu_cntr_t *cntr)
{
    cxiemu_cntr_more_t *more = cntr->more;
    cxiemu_nic_t *nic        = cntr->domain->nic;

    more->is_watched = 1;
    LIST_INSERT_HEAD(&nic->doorbells, cntr, more->watch);
    if (more->is_plain && (nic->num_plain++ == 0)) {
        cxiemu_nic_wake_thread(nic);
    }
}

static void cxiemu_doorbell_unwatch(cxiemu_cntr_t *cntr)
{
    cxiemu_cntr_more_t *more = cntr->more;

    more->is_watched = 0;
    LIST_REMOVE(cntr, more->watch);
    cntr->domain->nic->num_plain -= more->is_plain;
}

void cxiemu_doorbell_update(cxiemu_cntr_t *cntr)
{
    const cxiemu_cntr_more_t *more = cntr->more;
    int wanted;

    if ((more == NULL) || (more->doorbell == NULL)) {
        return;
    }
    wanted = (cntr->heap_count > 0) || (cntr->waiters > 0);
    if (wanted && !more->is_watched) {
        cxiemu_doorbell_watch(cntr);
    } else if (!wanted && more->is_watched) {
        cxiemu_doorbell_unwatch(cntr);
    }
}
