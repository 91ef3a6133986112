/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_doorbell.c - trigger pages of counters.
 *
 * A store to one of Cassini's registers is an event; a store to memory is
 * state. Here the page is memory that a device can write to: what is found in a
 * word is taken by an exchange, so that stores which come one by one are all
 * counted, but of two that come between two looks the later one alone is: at
 * most one may be outstanding at a counter. An atomic addition to the word, by
 * any thread or device, is exact. The trap mode (cxiemu_trap.c) makes plain
 * stores of the host exact.
 *
 * The page is looked at by whoever makes progress, as long as a store could set
 * something off: deferred work or a thread waits for the counter. Else it is
 * read when the counter is.
 */
#include "cxiemu_dwq.h"
#include "cxiemu_log.h"
#include "cxiemu_trap.h"

#include <rdma/fi_errno.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Words of the page, 8 bytes each */
enum {
    CXIEMU_DOORBELL_ADD           = 0,
    CXIEMU_DOORBELL_ADD_FAILURE   = 64 / 8,
    CXIEMU_DOORBELL_RESET         = 128 / 8,
    CXIEMU_DOORBELL_RESET_FAILURE = 192 / 8
};

/* Programs reset by storing 0: the word has to tell 0 from nothing. */
#define CXIEMU_DOORBELL_NO_RESET UINT64_MAX


static size_t cxiemu_doorbell_length(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* A page of its own for each counter: devices register whole pages, and many
 * refuse to register one twice. */
static int cxiemu_doorbell_map(void **address)
{
    uint64_t *words;

    words = mmap(NULL, cxiemu_doorbell_length(), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED) {
        return -errno;
    }

    words[CXIEMU_DOORBELL_RESET]         = CXIEMU_DOORBELL_NO_RESET;
    words[CXIEMU_DOORBELL_RESET_FAILURE] = CXIEMU_DOORBELL_NO_RESET;
    *address                             = words;
    return 0;
}

int cxiemu_doorbell_expose(cxiemu_cntr_t *cntr, void **address)
{
    cxiemu_cntr_more_t *more = cxiemu_cntr_need_more(cntr);
    void *page;
    int ret;

    if (more == NULL) {
        return -FI_ENOMEM;
    }
    if (more->doorbell == NULL) {
        if (cxiemu_param()->trap) {
            ret = cxiemu_trap_add(cntr->domain->nic, &more->trap, &page);
        } else {
            ret = cxiemu_doorbell_map(&page);
        }
        if (ret != 0) {
            return ret;
        }
        /* Last, as cxiemu_doorbell_has() looks without the lock */
        __atomic_store_n(&more->doorbell, page, __ATOMIC_RELEASE);
        cxiemu_doorbell_update(cntr);
    }

    *address = more->doorbell;
    return 0;
}

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
static uint64_t cxiemu_doorbell_exchange(cxiemu_cntr_t *cntr, size_t word,
                                         uint64_t nothing)
{
    uint64_t *words = (uint64_t*)cntr->more->doorbell;

    return __atomic_exchange_n(&words[word], nothing, __ATOMIC_ACQ_REL);
}

static void cxiemu_doorbell_read(cxiemu_cntr_t *cntr,
                                 cxiemu_trap_taken_t *taken)
{
    taken->reset         = cxiemu_doorbell_exchange(cntr, CXIEMU_DOORBELL_RESET,
                                                    CXIEMU_DOORBELL_NO_RESET) !=
                           CXIEMU_DOORBELL_NO_RESET;
    taken->reset_failure = cxiemu_doorbell_exchange(
                                   cntr, CXIEMU_DOORBELL_RESET_FAILURE,
                                   CXIEMU_DOORBELL_NO_RESET) !=
                           CXIEMU_DOORBELL_NO_RESET;
    taken->success = cxiemu_doorbell_exchange(cntr, CXIEMU_DOORBELL_ADD, 0);
    taken->failure = cxiemu_doorbell_exchange(cntr,
                                              CXIEMU_DOORBELL_ADD_FAILURE, 0);
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

/* The thread decides how long to sleep with the lock held: what it finds there
 * is what was left here. */
static void cxiemu_doorbell_kick(cxiemu_nic_t *nic)
{
    uint64_t now = cxiemu_nic_now();

    if (now >= nic->watch_time + CXIEMU_WATCH_KICK_NS) {
        nic->watch_time = now;
        cxiemu_nic_wake_thread(nic);
    }
}

static void cxiemu_doorbell_watch(cxiemu_cntr_t *cntr)
{
    cxiemu_cntr_more_t *more = cntr->more;
    cxiemu_nic_t *nic        = cntr->domain->nic;

    more->is_watched = 1;
    more->watch_next = nic->doorbells;
    more->watch_prev = &nic->doorbells;
    if (nic->doorbells != NULL) {
        nic->doorbells->more->watch_prev = &more->watch_next;
    }
    nic->doorbells = cntr;

    /* The trap tells of a store: the thread need not poll for one */
    if (more->trap < 0) {
        __atomic_store_n(&nic->watched, nic->watched + 1, __ATOMIC_RELAXED);
        if (nic->watched == 1) {
            cxiemu_doorbell_kick(nic);
        }
    }
}

static void cxiemu_doorbell_unwatch(cxiemu_cntr_t *cntr)
{
    cxiemu_cntr_more_t *more = cntr->more;
    cxiemu_nic_t *nic        = cntr->domain->nic;

    more->is_watched  = 0;
    *more->watch_prev = more->watch_next;
    if (more->watch_next != NULL) {
        more->watch_next->more->watch_prev = more->watch_prev;
    }
    if (more->trap < 0) {
        __atomic_store_n(&nic->watched, nic->watched - 1, __ATOMIC_RELAXED);
    }
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

void cxiemu_doorbell_remove(cxiemu_cntr_t *cntr)
{
    cxiemu_cntr_more_t *more = cntr->more;

    if ((more == NULL) || (more->doorbell == NULL)) {
        return;
    }

    if (more->is_watched) {
        cxiemu_doorbell_unwatch(cntr);
    }
    if (more->trap >= 0) {
        cxiemu_trap_remove(more->trap);
    } else {
        munmap(more->doorbell, cxiemu_doorbell_length());
    }
    more->doorbell = NULL;
    more->trap     = -1;
}
