/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_fi_cntr.c - counters, as libfabric has them.
 */
#include "fabric/cxiemu_fabric.h"
#include "base/cxiemu_log.h"
#include "base/cxiemu_service.h"
#include "cxi/cxiemu_doorbell.h"
#include "obj/cxiemu_event.h"
#include "op/cxiemu_dwq.h"
#include "run/cxiemu_wait.h"

#include <stdbool.h> /* fi_cxi_ext.h uses it */
#include <rdma/fi_cxi_ext.h>
#include <rdma/fi_errno.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>


cxiemu_cntr_t *cxiemu_cntr_from(cxiemu_domain_t *domain, struct fid_cntr *fid)
{
    cxiemu_cntr_t *cntr;

    if ((fid == NULL) || (fid->fid.fclass != FI_CLASS_CNTR)) {
        return NULL;
    }

    cntr = container_of(fid, cxiemu_cntr_t, fid);
    return (cntr->domain == domain) ? cntr : NULL;
}

static uint64_t cxiemu_cntr_fetch(struct fid_cntr *fid)
{
    cxiemu_cntr_t *cntr = container_of(fid, cxiemu_cntr_t, fid);
    cxiemu_nic_t *nic   = cntr->domain->nic;
    cxiemu_cntr_more_t *more;
    uint64_t word;

    if (cxiemu_nic_read_begin(nic)) {
        cxiemu_nic_unlock(nic);
    }
    if (cxiemu_param()->strict) {
        /* The value of the writeback before; this read asks for the next, as
         * long as none is due: Cassini's way, whose bit 63 says that it is
         * done */
        cxiemu_nic_lock(nic);
        if (cxiemu_doorbell_take(cntr)) {
            cxiemu_nic_progress(nic);
        }
        cxiemu_ep_progressed(cntr->domain, cntr);
        word = cntr->written;
        if (!cntr->wb_wanted) {
            if ((cntr->more != NULL) && (cntr->more->wb != NULL)) {
                __atomic_fetch_and(cntr->more->wb, ~CXIEMU_WB_VALID,
                                   __ATOMIC_RELAXED);
            }
            cxiemu_cntr_want_writeback(cntr);
        }
        cxiemu_nic_unlock(nic);
    } else {
        if (cxiemu_doorbell_has(cntr)) {
            cxiemu_nic_lock(nic);
            cxiemu_doorbell_take(cntr);
            cxiemu_nic_progress(nic);
            cxiemu_nic_unlock(nic);
        }
        /* Pairs with the release of the writeback: with the count the data
         * is seen */
        word = __atomic_load_n(&cntr->written, __ATOMIC_ACQUIRE);
    }
    more = cxiemu_cntr_more(cntr);
    if (more != NULL) {
        __atomic_store_n(&more->last_read, word, __ATOMIC_RELAXED);
    }
    cxiemu_cntr_know(cntr, (word >> CXIEMU_WB_FAILURE_SHIFT) &
                                   CXIEMU_CNTR_FAILURE_MAX);
    return word;
}

static uint64_t cxiemu_cntr_read(struct fid_cntr *fid)
{
    return cxiemu_cntr_fetch(fid) & CXIEMU_CNTR_SUCCESS_MAX;
}

static uint64_t cxiemu_cntr_readerr(struct fid_cntr *fid)
{
    return (cxiemu_cntr_fetch(fid) >> CXIEMU_WB_FAILURE_SHIFT) &
           CXIEMU_CNTR_FAILURE_MAX;
}

/* The thread that triggers carries the deferred work out. */
static int cxiemu_cntr_increase(struct fid_cntr *fid, uint64_t success,
                                uint64_t failure)
{
    cxiemu_cntr_t *cntr = container_of(fid, cxiemu_cntr_t, fid);
    cxiemu_nic_t *nic   = cntr->domain->nic;

    if ((success > CXIEMU_CNTR_SUCCESS_MAX) ||
        (failure > CXIEMU_CNTR_FAILURE_MAX)) {
        return -FI_EINVAL;
    }

    cxiemu_nic_lock(nic);
    cxiemu_cntr_count(cntr, success, failure);
    cxiemu_nic_progress(nic);
    cxiemu_nic_unlock(nic);
    return 0;
}

static int cxiemu_cntr_add(struct fid_cntr *fid, uint64_t value)
{
    return cxiemu_cntr_increase(fid, value, 0);
}

static int cxiemu_cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
    return cxiemu_cntr_increase(fid, 0, value);
}

static int cxiemu_cntr_set(struct fid_cntr *fid, uint64_t value)
{
    cxiemu_cntr_t *cntr = container_of(fid, cxiemu_cntr_t, fid);
    cxiemu_nic_t *nic   = cntr->domain->nic;
    int ret;

    if (value > CXIEMU_CNTR_SUCCESS_MAX) {
        return -FI_EINVAL;
    }

    cxiemu_nic_lock(nic);
    cxiemu_doorbell_take(cntr); /* What was added before is overwritten */
    if ((value != 0) && !TAILQ_EMPTY(&nic->held)) {
        /* A command of the trigger queue; 0 is a store to the counter's page */
        ret = cxiemu_dwq_hold_set(nic, cntr, value);
        cxiemu_nic_unlock(nic);
        return ret;
    }
    cxiemu_cntr_assign(cntr, value);
    cxiemu_cntr_know(cntr, cntr->failure);
    cxiemu_nic_progress(nic);
    cxiemu_nic_unlock(nic);
    return 0;
}

static int cxiemu_cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
    cxiemu_cntr_t *cntr = container_of(fid, cxiemu_cntr_t, fid);

    if (value > CXIEMU_CNTR_FAILURE_MAX) {
        return -FI_EINVAL;
    }

    cxiemu_nic_lock(cntr->domain->nic);
    cntr->failure = (uint8_t)value;
    cxiemu_cntr_know(cntr, cntr->failure);
    cxiemu_cntr_want_writeback(cntr);
    cxiemu_cntr_alert(cntr);
    cxiemu_nic_unlock(cntr->domain->nic);
    return 0;
}

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

static int cxiemu_cntr_wait(struct fid_cntr *fid, uint64_t threshold,
                            int timeout)
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

    if (cntr->success < threshold) {
        ret = (cntr->failure != wait.failure) ? -FI_EAVAIL : -FI_ETIMEDOUT;
    }
    if (ret != -FI_ETIMEDOUT) {
        /* CXI waits by an event that has the counter written back: what ended
         * the wait can be read */
        cxiemu_cntr_write_back_now(cntr);
    }
    cxiemu_cntr_know(cntr, cntr->failure);
    cxiemu_ep_progressed(cntr->domain, cntr);
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
        cxiemu_event_arm(more->event_fd, &more->armed);
        cxiemu_nic_arm(nic);
    }
    cxiemu_nic_unlock(nic);
    return ret;
}

static int cxiemu_cntr_control(struct fid *fid, int command, void *arg)
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
        cxiemu_nic_lock(cntr->domain->nic);
        more = cxiemu_cntr_need_more(cntr);
        if (more != NULL) {
            more->flags = *(const uint64_t*)arg;
        }
        cxiemu_nic_unlock(cntr->domain->nic);
        return (more == NULL) ? -FI_ENOMEM : 0;
    default:
        return -FI_EINVAL;
    }
}

static int cxiemu_cntr_set_wb_buffer(struct fid *fid, void *buf, size_t len)
{
    cxiemu_cntr_t *cntr = container_of(fid, cxiemu_cntr_t, fid.fid);
    cxiemu_cntr_more_t *more;

    if ((buf == NULL) || (len < sizeof(*more->wb)) ||
        (((uintptr_t)buf % sizeof(*more->wb)) != 0)) {
        return -FI_EINVAL;
    }

    cxiemu_nic_lock(cntr->domain->nic);
    more = cxiemu_cntr_need_more(cntr);
    if (more != NULL) {
        more->wb = buf;
        cxiemu_cntr_write_back_now(cntr);
    }
    cxiemu_nic_unlock(cntr->domain->nic);
    return (more == NULL) ? -FI_ENOMEM : 0;
}

static int cxiemu_cntr_get_mmio_addr(struct fid *fid, void **addr, size_t *len)
{
    cxiemu_cntr_t *cntr = container_of(fid, cxiemu_cntr_t, fid.fid);
    int ret;

    cxiemu_nic_lock(cntr->domain->nic);
    ret = cxiemu_window_expose(cntr, addr);
    cxiemu_nic_unlock(cntr->domain->nic);
    if (ret == 0) {
        *len = sizeof(void*); /* That is what CXI says of its 256 bytes */
    }
    return ret;
}

static struct fi_cxi_cntr_ops cxiemu_cntr_ext_ops = {
    .set_wb_buffer = cxiemu_cntr_set_wb_buffer,
    .get_mmio_addr = cxiemu_cntr_get_mmio_addr
};

static int cxiemu_cntr_ops_open(struct fid *fid, const char *name,
                                uint64_t flags, void **ops, void *context)
{
    if ((name == NULL) || strcmp(name, FI_CXI_COUNTER_OPS)) {
        return -FI_EINVAL;
    }

    *ops = &cxiemu_cntr_ext_ops;
    return 0;
}

static void cxiemu_cntr_free(cxiemu_cntr_t *cntr)
{
    if ((cntr->more != NULL) && (cntr->more->event_fd >= 0)) {
        close(cntr->more->event_fd);
    }
    free(cntr->more);
    free(cntr->heap);
    free(cntr);
}

static int cxiemu_cntr_close(struct fid *fid)
{
    cxiemu_cntr_t *cntr = container_of(fid, cxiemu_cntr_t, fid.fid);
    cxiemu_nic_t *nic   = cntr->domain->nic;

    cxiemu_nic_lock(nic);
    if ((cntr->refs > 0) || (cntr->waiters > 0)) {
        cxiemu_nic_unlock(nic);
        return -FI_EBUSY;
    }
    cxiemu_dwq_drop_cntr(cntr);
    cxiemu_window_remove(cntr);
    if (cntr->is_fired) {
        STAILQ_REMOVE(&nic->fired, cntr, cxiemu_cntr, fired);
    }
    if (cntr->wb_wanted) {
        SLIST_REMOVE(&nic->wb_due, cntr, cxiemu_cntr, more->wb_due);
    }
    --cntr->domain->refs;
    cxiemu_open_del(CXIEMU_OPEN_CNTR);
    if (cxiemu_param()->strict) {
        /* Its number is free again when the domain is closed, not before */
        ++cntr->domain->kept_cntrs;
    } else {
        cxiemu_service_give(CXIEMU_SERVICE_CNTRS, 1);
    }
    cxiemu_nic_unlock(nic);

    cxiemu_cntr_free(cntr);
    return 0;
}

static struct fi_ops cxiemu_cntr_fid_ops = {
    .size     = sizeof(struct fi_ops),
    .close    = cxiemu_cntr_close,
    .bind     = cxiemu_no_bind,
    .control  = cxiemu_cntr_control,
    .ops_open = cxiemu_cntr_ops_open
};

static struct fi_ops_cntr cxiemu_cntr_ops = {
    .size    = sizeof(struct fi_ops_cntr),
    .read    = cxiemu_cntr_read,
    .readerr = cxiemu_cntr_readerr,
    .add     = cxiemu_cntr_add,
    .set     = cxiemu_cntr_set,
    .wait    = cxiemu_cntr_wait,
    .adderr  = cxiemu_cntr_adderr,
    .seterr  = cxiemu_cntr_seterr
};


static int cxiemu_cntr_make(enum fi_wait_obj wait_obj, cxiemu_cntr_t **cntr_p)
{
    int ret = -FI_ENOMEM;
    cxiemu_cntr_t *cntr;

    /* The device's counters are used up: CXI's word for it is FI_EDOMAIN */
    if (cxiemu_service_take(CXIEMU_SERVICE_CNTRS, 1,
                            cxiemu_param()->max_cntrs) != 0) {
        cxiemu_warn(CNTR, "all %zu counters of the device are in use\n",
                    cxiemu_param()->max_cntrs);
        return -FI_EDOMAIN;
    }
    cntr = calloc(1, sizeof(*cntr));
    if (cntr == NULL) {
        goto err_give;
    }
    cntr->wait_obj = (uint8_t)wait_obj;
    cntr->written  = CXIEMU_WB_VALID;
    if (wait_obj == FI_WAIT_FD) {
        if (cxiemu_cntr_need_more(cntr) == NULL) {
            goto err_free;
        }
        cntr->more->armed    = 1;
        cntr->more->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (cntr->more->event_fd < 0) {
            ret = -errno;
            goto err_free;
        }
    }
    *cntr_p = cntr;
    return 0;

err_free:
    cxiemu_cntr_free(cntr);
err_give:
    cxiemu_service_give(CXIEMU_SERVICE_CNTRS, 1);
    return ret;
}

int cxiemu_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr,
                     struct fid_cntr **cntr_p, void *context)
{
    cxiemu_domain_t *domain   = container_of(domain_fid, cxiemu_domain_t, fid);
    enum fi_wait_obj wait_obj = (attr != NULL) ? attr->wait_obj : FI_WAIT_YIELD;
    cxiemu_cntr_t *cntr       = NULL;
    int ret;

    if ((attr != NULL) &&
        ((attr->events != FI_CNTR_EVENTS_COMP) || (attr->flags != 0))) {
        return -FI_ENOSYS;
    }
    /* CXI has no descriptors for counters: they are there in fast mode only */
    if ((wait_obj != FI_WAIT_NONE) && (wait_obj != FI_WAIT_UNSPEC) &&
        (wait_obj != FI_WAIT_YIELD) &&
        ((wait_obj != FI_WAIT_FD) || cxiemu_param()->strict)) {
        return -FI_ENOSYS;
    }
    ret = cxiemu_cntr_make(wait_obj, &cntr);
    if (ret != 0) {
        return ret;
    }

    cntr->domain          = domain;
    cntr->fid.fid.fclass  = FI_CLASS_CNTR;
    cntr->fid.fid.context = context;
    cntr->fid.fid.ops     = &cxiemu_cntr_fid_ops;
    cntr->fid.ops         = &cxiemu_cntr_ops;
    cxiemu_nic_lock(domain->nic);
    ++domain->refs;
    cxiemu_open_add(CXIEMU_OPEN_CNTR);
    cxiemu_nic_unlock(domain->nic);
    *cntr_p = &cntr->fid;
    return 0;
}
