/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_doorbell.c - trigger pages of counters.
 *
 * A store to one of Cassini's registers is an event; a store to memory is
 * state. A store of a stream of the program that embeds the provider is given
 * to cxiemu_doorbell_store(), and is an event (cxiemu_hooks_t); and so is a
 * store of the host in trap mode (cxiemu_trap.c).
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
#include "cxi/cxiemu_trap.h"
#include "obj/cxiemu_cntr.h"
#include "run/cxiemu_wait.h"

#include <rdma/fi_errno.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Programs reset by storing 0: the word has to tell 0 from nothing. */
#define CXIEMU_DOORBELL_NO_RESET UINT64_MAX


/** The pages of a NIC's counters. Each has a whole one, as devices register
 *  whole pages, and many refuse to register one twice. */
typedef struct cxiemu_window {
    uint8_t       *base;
    size_t        page;     /**< Bytes */
    size_t        count;    /**< Pages */
    int           is_given; /**< The NIC is given the stores of streams */
    cxiemu_cntr_t *cntrs[]; /**< Whose page it is, or NULL */
} cxiemu_window_t;


/* Carries out a store as the NIC does: the counter, then what that triggers.
 * Words that are no registers take nothing. */
static void cxiemu_doorbell_store(void *arg, size_t offset, uint64_t value)
{
    cxiemu_nic_t *nic             = arg;
    const cxiemu_window_t *window = nic->window;
    cxiemu_cntr_t *cntr;

    cxiemu_nic_lock(nic);
    cntr = window->cntrs[offset / window->page];
    if (cntr != NULL) {
        (void)cxiemu_doorbell_take(cntr); /* What came before */
        switch ((offset % window->page) / sizeof(uint64_t)) {
        case CXIEMU_DOORBELL_ADD:
            cxiemu_cntr_count(cntr, value & CXIEMU_CNTR_SUCCESS_MAX, 0);
            break;
        case CXIEMU_DOORBELL_ADD_FAILURE:
            cxiemu_cntr_count(cntr, 0, value & CXIEMU_CNTR_FAILURE_MAX);
            break;
        case CXIEMU_DOORBELL_RESET:
            cxiemu_cntr_assign(cntr, 0);
            break;
        case CXIEMU_DOORBELL_RESET_FAILURE:
            cntr->failure = 0;
            cxiemu_cntr_assign(cntr, cntr->success);
            break;
        default:
            break;
        }
        cxiemu_nic_progress(nic);
    }
    cxiemu_nic_unlock(nic);
}

static int cxiemu_doorbell_open(cxiemu_nic_t *nic)
{
    const cxiemu_hooks_t *hooks = cxiemu_hooks();
    size_t count                = cxiemu_param()->max_cntrs;
    cxiemu_window_t *window;
    int ret = 0;

    window = calloc(1, sizeof(*window) + (count * sizeof(*window->cntrs)));
    if (window == NULL) {
        return -FI_ENOMEM;
    }
    window->page  = (size_t)sysconf(_SC_PAGESIZE);
    window->count = count;
    window->base  = mmap(NULL, count * window->page, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (window->base == MAP_FAILED) {
        ret = -errno;
        goto err_free;
    }
    nic->window = window;
    if (hooks != NULL) {
        ret = hooks->window_add(window->base, count * window->page,
                                cxiemu_doorbell_store, nic);
        if (ret != 0) {
            goto err_unmap;
        }
        window->is_given = 1;
    }
    cxiemu_nic_wake_thread(nic); /* It sleeps no longer than CHECK_NS now */
    return 0;

err_unmap:
    nic->window = NULL;
    munmap(window->base, count * window->page);
err_free:
    free(window);
    return ret;
}

void cxiemu_doorbell_cleanup(cxiemu_nic_t *nic)
{
    cxiemu_window_t *window = nic->window;

    if (window == NULL) {
        return;
    }
    if (window->is_given) {
        cxiemu_hooks()->window_remove(window->base);
    }
    munmap(window->base, window->count * window->page);
    free(window);
    nic->window = NULL;
}

/* A page of the window */
static int cxiemu_doorbell_map(cxiemu_cntr_t *cntr, void **address)
{
    cxiemu_nic_t *nic = cntr->domain->nic;
    cxiemu_window_t *window;
    uint64_t *words;
    size_t i;
    int ret;

    if (nic->window == NULL) {
        ret = cxiemu_doorbell_open(nic);
        if (ret != 0) {
            return ret;
        }
    }
    window = nic->window;
    for (i = 0; (i < window->count) && (window->cntrs[i] != NULL); ++i) {
    }
    if (i == window->count) {
        return -FI_ENOSPC;
    }

    words = (uint64_t*)(window->base + (i * window->page));
    words[CXIEMU_DOORBELL_ADD]           = 0;
    words[CXIEMU_DOORBELL_ADD_FAILURE]   = 0;
    words[CXIEMU_DOORBELL_RESET]         = CXIEMU_DOORBELL_NO_RESET;
    words[CXIEMU_DOORBELL_RESET_FAILURE] = CXIEMU_DOORBELL_NO_RESET;
    window->cntrs[i]                     = cntr;
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
        ret = cxiemu_param()->trap ?
                      cxiemu_trap_add(cntr->domain->nic, &more->trap, &page) :
                      cxiemu_doorbell_map(cntr, &page);
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

static int cxiemu_doorbell_is_plain(const cxiemu_cntr_t *cntr)
{
    return (cntr->more->trap < 0) && !cntr->domain->nic->window->is_given;
}

static void cxiemu_doorbell_watch(cxiemu_cntr_t *cntr)
{
    cxiemu_cntr_more_t *more = cntr->more;
    cxiemu_nic_t *nic        = cntr->domain->nic;

    more->is_watched = 1;
    LIST_INSERT_HEAD(&nic->doorbells, cntr, more->watch);
    if (cxiemu_doorbell_is_plain(cntr) && (nic->num_plain++ == 0)) {
        cxiemu_nic_wake_thread(nic);
    }
}

static void cxiemu_doorbell_unwatch(cxiemu_cntr_t *cntr)
{
    cxiemu_cntr_more_t *more = cntr->more;

    more->is_watched = 0;
    LIST_REMOVE(cntr, more->watch);
    cntr->domain->nic->num_plain -= cxiemu_doorbell_is_plain(cntr);
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
    cxiemu_window_t *window  = cntr->domain->nic->window;

    if ((more == NULL) || (more->doorbell == NULL)) {
        return;
    }

    if (more->is_watched) {
        cxiemu_doorbell_unwatch(cntr);
    }
    if (more->trap >= 0) {
        cxiemu_trap_remove(more->trap);
    } else {
        window->cntrs[(more->doorbell - window->base) / window->page] = NULL;
    }
    more->doorbell = NULL;
    more->trap     = -1;
}
