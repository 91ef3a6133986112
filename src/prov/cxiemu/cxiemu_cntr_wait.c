/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_cntr_wait.c - counters: those who wait for one, and how they are told.
 */
#include "cxiemu_cntr.h"
#include "cxiemu_event.h"

#include <rdma/fi_errno.h>


typedef struct cxiemu_cntr_wait {
    cxiemu_cntr_t *cntr;
    uint64_t      threshold;
    uint64_t      failure; /**< What was known when the wait began */
} cxiemu_cntr_wait_t;


static int cxiemu_cntr_ready(void *arg)
{
    const cxiemu_cntr_wait_t *wait = arg;

    return (wait->cntr->success >= wait->threshold) ||
           (wait->cntr->failure != wait->failure);
}

int cxiemu_cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
    cxiemu_cntr_t *cntr     = container_of(fid, cxiemu_cntr_t, fid);
    cxiemu_nic_t *nic       = cntr->domain->nic;
    cxiemu_cntr_wait_t wait = {.cntr = cntr, .threshold = threshold};
    int ret                 = 0;

    if ((cntr->wait_obj == FI_WAIT_NONE) ||
        (threshold > CXIEMU_CNTR_SUCCESS_MAX)) {
        return -FI_EINVAL;
    }

    cxiemu_nic_lock(nic);
    /* Not the count of now: a failure may be quicker than the waiter */
    wait.failure = __atomic_load_n(&cntr->known_failure, __ATOMIC_RELAXED);
    ++cntr->waiters;
    cxiemu_doorbell_update(cntr);
    cxiemu_nic_wait(nic, cxiemu_cntr_ready, &wait, timeout);
    --cntr->waiters;
    cxiemu_doorbell_update(cntr);

    if (cntr->success >= threshold) {
        /* CXI waits by an event that has the counter written back */
        cxiemu_cntr_write_back_now(cntr);
    } else {
        ret = (cntr->failure != wait.failure) ? -FI_EAVAIL : -FI_ETIMEDOUT;
    }
    cxiemu_cntr_know(cntr, cntr->failure);
    cxiemu_nic_unlock(nic);
    return ret;
}

int cxiemu_cntr_trywait(struct fid *fid)
{
    cxiemu_cntr_t *cntr = container_of(fid, cxiemu_cntr_t, fid.fid);
    cxiemu_nic_t *nic   = cntr->domain->nic;
    cxiemu_cntr_more_t *more;
    int ret             = 0;

    if (cntr->wait_obj == FI_WAIT_NONE) {
        return -FI_EINVAL;
    }

    cxiemu_nic_lock(nic);
    cxiemu_nic_progress(nic);
    more = cxiemu_cntr_need_more(cntr);
    if (more == NULL) {
        ret = -FI_ENOMEM;
    } else if (cxiemu_cntr_word(cntr) !=
               __atomic_load_n(&more->last_read, __ATOMIC_RELAXED)) {
        /* Also if nobody noted the last read: the next one is */
        ret = -FI_EAGAIN;
    } else {
        cxiemu_event_arm(nic, more->event_fd, &more->armed);
    }
    cxiemu_nic_unlock(nic);
    return ret;
}

static int cxiemu_cntr_set_flags(cxiemu_cntr_t *cntr, uint64_t flags)
{
    cxiemu_cntr_more_t *more;

    cxiemu_nic_lock(cntr->domain->nic);
    more = cxiemu_cntr_need_more(cntr);
    if (more != NULL) {
        more->flags = flags;
    }
    cxiemu_nic_unlock(cntr->domain->nic);
    return (more == NULL) ? -FI_ENOMEM : 0;
}

int cxiemu_cntr_control(struct fid *fid, int command, void *arg)
{
    cxiemu_cntr_t *cntr      = container_of(fid, cxiemu_cntr_t, fid.fid);
    cxiemu_cntr_more_t *more = cxiemu_cntr_more(cntr);

    if (arg == NULL) {
        return -FI_EINVAL;
    }

    switch (command) {
    case FI_GETWAIT:
        if ((more == NULL) || (more->event_fd < 0)) {
            return -FI_EINVAL;
        }
        *(int*)arg = more->event_fd;
        return 0;
    case FI_GETWAITOBJ:
        *(enum fi_wait_obj*)arg = cntr->wait_obj;
        return 0;
    case FI_GETOPSFLAG:
        *(uint64_t*)arg = (more == NULL) ? 0 : more->flags;
        return 0;
    case FI_SETOPSFLAG:
        return cxiemu_cntr_set_flags(cntr, *(const uint64_t*)arg);
    default:
        return -FI_EINVAL;
    }
}
