/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_window.c - the trigger pages of a NIC's counters, and the stores of
 * streams to them.
 */
#include "run/cxiemu_progress.h"
#include "cxi/cxiemu_doorbell.h"
#include "cxi/cxiemu_trap.h"

#include <rdma/fi_errno.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>


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
static void cxiemu_window_store(void *arg, size_t offset, uint64_t value)
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

static int cxiemu_window_open(cxiemu_nic_t *nic)
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
                                cxiemu_window_store, nic);
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

void cxiemu_window_cleanup(cxiemu_nic_t *nic)
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
static int cxiemu_window_map(cxiemu_cntr_t *cntr, void **address)
{
    cxiemu_nic_t *nic = cntr->domain->nic;
    cxiemu_window_t *window;
    uint64_t *words;
    size_t i;
    int ret;

    if (nic->window == NULL) {
        ret = cxiemu_window_open(nic);
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

int cxiemu_window_expose(cxiemu_cntr_t *cntr, void **address)
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
                      cxiemu_window_map(cntr, &page);
        if (ret != 0) {
            return ret;
        }
        more->is_plain = (more->trap < 0) &&
                         !cntr->domain->nic->window->is_given;
        /* Last, as cxiemu_doorbell_has() looks without the lock */
        __atomic_store_n(&more->doorbell, page, __ATOMIC_RELEASE);
        cxiemu_doorbell_update(cntr);
    }

    *address = more->doorbell;
    return 0;
}

void cxiemu_window_remove(cxiemu_cntr_t *cntr)
{
    cxiemu_cntr_more_t *more = cntr->more;
    cxiemu_window_t *window  = cntr->domain->nic->window;

    if ((more == NULL) || (more->doorbell == NULL)) {
        return;
    }

    cxiemu_doorbell_update(cntr); /* Nothing waits for it */
    if (more->trap >= 0) {
        cxiemu_trap_remove(more->trap);
    } else {
        window->cntrs[(more->doorbell - window->base) / window->page] = NULL;
    }
    more->doorbell = NULL;
    more->trap     = -1;
}
