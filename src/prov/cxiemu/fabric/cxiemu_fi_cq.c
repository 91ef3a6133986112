/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_fi_cq.c - completion queues, as libfabric has them.
 */
#include "fabric/cxiemu_fabric.h"
#include "base/cxiemu_error.h"
#include "obj/cxiemu_cq.h"
#include "obj/cxiemu_event.h"
#include "op/cxiemu_op.h"
#include "run/cxiemu_wait.h"

#include <rdma/fi_errno.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CXIEMU_CQ_DEFAULT 1024

_Static_assert(offsetof(struct fi_cq_err_entry, tag) ==
                       offsetof(struct fi_cq_tagged_entry, tag),
               "formats of entries");

/* Someone waits for a number of entries */
typedef struct cxiemu_cq_wait {
    cxiemu_cq_t *cq;
    size_t      threshold;
} cxiemu_cq_wait_t;


/* Whether there is nothing to read, as far as one knows without the lock: a
 * poller that loses the race with a push finds it the next time; its own
 * progress, which came before, is seen in any case. */
static int cxiemu_cq_is_idle(const cxiemu_cq_t *cq)
{
    return (__atomic_load_n(&cq->tail, __ATOMIC_RELAXED) ==
            __atomic_load_n(&cq->head, __ATOMIC_RELAXED)) &&
           (__atomic_load_n(&cq->domain->tx_done, __ATOMIC_RELAXED) == 0) &&
           !__atomic_load_n(&cq->overrun, __ATOMIC_RELAXED);
}

static void cxiemu_cq_pop(cxiemu_cq_t *cq)
{
    __atomic_store_n(&cq->head, cq->head + 1, __ATOMIC_RELAXED);
}

/* Read what is there; lock held. */
static ssize_t cxiemu_cq_take(cxiemu_cq_t *cq, void *buf, size_t count,
                              fi_addr_t *src_addr)
{
    static const size_t sizes[] = {
        [FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
        [FI_CQ_FORMAT_MSG]     = sizeof(struct fi_cq_msg_entry),
        [FI_CQ_FORMAT_DATA]    = sizeof(struct fi_cq_data_entry),
        [FI_CQ_FORMAT_TAGGED]  = sizeof(struct fi_cq_tagged_entry)
    };
    size_t size = sizes[cq->format];
    uint8_t *to = buf;
    const cxiemu_cq_event_t *event;
    size_t i;

    cxiemu_ep_progressed(cq->domain, cq);
    for (i = 0; (i < count) && (cq->head != cq->tail); ++i) {
        event = cxiemu_cq_at(cq, cq->head);
        if (event->entry.err != 0) {
            return (i > 0) ? (ssize_t)i : -FI_EAVAIL;
        }
        /* Each format is the start of the next larger one, and they all are of
         * the entry for errors */
        memcpy(to + i * size, &event->entry, size);
        if (src_addr != NULL) {
            src_addr[i] = event->src;
        }
        cxiemu_cq_pop(cq);
    }
    if (i > 0) {
        return (ssize_t)i;
    }
    if (cq->overrun) {
        __atomic_store_n(&cq->overrun, 0, __ATOMIC_RELAXED);
        return -FI_EOVERRUN;
    }
    return -FI_EAGAIN;
}

static ssize_t cxiemu_cq_readfrom(struct fid_cq *fid, void *buf, size_t count,
                                  fi_addr_t *src_addr)
{
    cxiemu_cq_t *cq   = container_of(fid, cxiemu_cq_t, fid);
    cxiemu_nic_t *nic = cq->domain->nic;
    ssize_t ret;

    if (!cxiemu_nic_read_begin(nic)) {
        if (cxiemu_cq_is_idle(cq)) {
            return -FI_EAGAIN;
        }
        cxiemu_nic_lock(nic);
    }
    ret = cxiemu_cq_take(cq, buf, count, src_addr);
    cxiemu_nic_unlock(nic);
    return ret;
}

static ssize_t cxiemu_cq_read(struct fid_cq *fid, void *buf, size_t count)
{
    return cxiemu_cq_readfrom(fid, buf, count, NULL);
}

static ssize_t cxiemu_cq_readerr(struct fid_cq *fid,
                                 struct fi_cq_err_entry *buf, uint64_t flags)
{
    cxiemu_cq_t *cq   = container_of(fid, cxiemu_cq_t, fid);
    cxiemu_nic_t *nic = cq->domain->nic;
    ssize_t ret       = -FI_EAGAIN;

    cxiemu_nic_lock(nic);
    if ((cq->head != cq->tail) &&
        (cxiemu_cq_at(cq, cq->head)->entry.err != 0)) {
        /* The caller's buffer for data, of which there is none, stays as it is;
         * what follows it may not be there: the structure has grown */
        memcpy(buf, &cxiemu_cq_at(cq, cq->head)->entry,
               offsetof(struct fi_cq_err_entry, err_data));
        buf->err_data_size = 0;
        cxiemu_cq_pop(cq);
        ret = 1;
    }
    cxiemu_nic_unlock(nic);
    return ret;
}

static int cxiemu_cq_ready(void *arg)
{
    const cxiemu_cq_wait_t *wait = arg;
    cxiemu_cq_t *cq              = wait->cq;
    size_t count                 = cq->tail - cq->head;

    return (count >= wait->threshold) || cq->signaled || cq->overrun ||
           ((count > 0) && (cxiemu_cq_at(cq, cq->head)->entry.err != 0));
}

static ssize_t cxiemu_cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count,
                                   fi_addr_t *src_addr, const void *cond,
                                   int timeout)
{
    cxiemu_cq_t *cq       = container_of(fid, cxiemu_cq_t, fid);
    cxiemu_nic_t *nic     = cq->domain->nic;
    cxiemu_cq_wait_t wait = {.cq = cq, .threshold = 1};
    ssize_t ret;

    if (cq->wait_obj == FI_WAIT_NONE) {
        return -FI_EINVAL;
    }
    if ((cond != NULL) && cq->by_threshold) {
        memcpy(&wait.threshold, cond, sizeof(wait.threshold));
        wait.threshold += (wait.threshold == 0);
    }

    cxiemu_nic_lock(nic);
    cxiemu_nic_wait(nic, cxiemu_cq_ready, &wait, timeout);
    ret = cxiemu_cq_take(cq, buf, count, src_addr);
    if ((ret == -FI_EAGAIN) && (cq->signaled > 0)) {
        --cq->signaled;
        ret = -FI_ECANCELED;
    }
    cxiemu_nic_unlock(nic);
    return ret;
}

static ssize_t cxiemu_cq_sread(struct fid_cq *fid, void *buf, size_t count,
                               const void *cond, int timeout)
{
    return cxiemu_cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cxiemu_cq_signal(struct fid_cq *fid)
{
    cxiemu_cq_t *cq = container_of(fid, cxiemu_cq_t, fid);

    if (cxiemu_param()->strict) {
        return -FI_ENOSYS; /* As CXI */
    }
    if (cq->wait_obj == FI_WAIT_NONE) {
        return -FI_EINVAL;
    }

    cxiemu_nic_lock(cq->domain->nic);
    ++cq->signaled;
    cxiemu_cq_alert(cq);
    cxiemu_nic_unlock(cq->domain->nic);
    return 0;
}

static const char *cxiemu_cq_strerror(struct fid_cq *fid, int prov_errno,
                                      const void *err_data, char *buf,
                                      size_t len)
{
    return cxiemu_error_text(prov_errno, buf, len);
}

int cxiemu_cq_trywait(struct fid *fid)
{
    cxiemu_cq_t *cq   = container_of(fid, cxiemu_cq_t, fid.fid);
    cxiemu_nic_t *nic = cq->domain->nic;
    int ret           = 0;

    if (cq->wait_obj == FI_WAIT_NONE) {
        return -FI_EINVAL;
    }

    cxiemu_nic_lock(nic);
    cxiemu_nic_progress(nic);
    if ((cq->head != cq->tail) || cq->overrun || (cq->signaled > 0)) {
        ret = -FI_EAGAIN;
    } else {
        cxiemu_event_arm(cq->event_fd, &cq->armed);
        cxiemu_nic_arm(nic);
    }
    cxiemu_nic_unlock(nic);
    return ret;
}

static int cxiemu_cq_get_wait(cxiemu_cq_t *cq, void *arg)
{
    struct fi_wait_pollfd *poll_fd = arg;
    cxiemu_nic_t *nic              = cq->domain->nic;
    int fd;

    if (cq->wait_obj == FI_WAIT_NONE) {
        return -FI_ENODATA;
    }

    /* The descriptor is made when it is asked for: it makes entries dearer */
    cxiemu_nic_lock(nic);
    if (cq->event_fd < 0) {
        cq->armed    = (cq->head == cq->tail);
        cq->event_fd = eventfd(!cq->armed, EFD_NONBLOCK | EFD_CLOEXEC);
    }
    fd = (cq->event_fd >= 0) ? cq->event_fd : -errno;
    cxiemu_nic_unlock(nic);
    if (fd < 0) {
        return fd;
    }
    if (cq->wait_obj == FI_WAIT_FD) {
        *(int*)arg = fd;
        return 0;
    }
    if (poll_fd->nfds < 1) {
        poll_fd->nfds = 1;
        return -FI_ETOOSMALL;
    }
    poll_fd->fd[0].fd     = fd;
    poll_fd->fd[0].events = POLLIN;
    poll_fd->nfds         = 1;
    return 0;
}

static int cxiemu_cq_control(struct fid *fid, int command, void *arg)
{
    cxiemu_cq_t *cq = container_of(fid, cxiemu_cq_t, fid.fid);

    if (arg == NULL) {
        return -FI_EINVAL;
    }

    switch (command) {
    case FI_GETWAIT:
        return cxiemu_cq_get_wait(cq, arg);
    case FI_GETWAITOBJ:
        *(enum fi_wait_obj*)arg = cq->wait_obj;
        return 0;
    default:
        return -FI_ENOSYS;
    }
}

static int cxiemu_cq_close(struct fid *fid)
{
    cxiemu_cq_t *cq   = container_of(fid, cxiemu_cq_t, fid.fid);
    cxiemu_nic_t *nic = cq->domain->nic;

    cxiemu_nic_lock(nic);
    if (cq->refs > 0) {
        cxiemu_nic_unlock(nic);
        return -FI_EBUSY;
    }
    if (cq->event_fd >= 0) {
        close(cq->event_fd);
    }
    --cq->domain->refs;
    cxiemu_open_del(CXIEMU_OPEN_CQ);
    cxiemu_nic_unlock(nic);

    free(cq->ring);
    free(cq);
    return 0;
}

static struct fi_ops cxiemu_cq_fid_ops = {
    .size     = sizeof(struct fi_ops),
    .close    = cxiemu_cq_close,
    .bind     = cxiemu_no_bind,
    .control  = cxiemu_cq_control,
    .ops_open = cxiemu_no_ops_open
};

static struct fi_ops_cq cxiemu_cq_ops = {
    .size      = sizeof(struct fi_ops_cq),
    .read      = cxiemu_cq_read,
    .readfrom  = cxiemu_cq_readfrom,
    .readerr   = cxiemu_cq_readerr,
    .sread     = cxiemu_cq_sread,
    .sreadfrom = cxiemu_cq_sreadfrom,
    .signal    = cxiemu_cq_signal,
    .strerror  = cxiemu_cq_strerror
};


int cxiemu_cq_open(struct fid_domain *domain_fid, struct fi_cq_attr *attr,
                   struct fid_cq **cq_p, void *context)
{
    cxiemu_domain_t *domain = container_of(domain_fid, cxiemu_domain_t, fid);
    struct fi_cq_attr plain = {.wait_obj = FI_WAIT_NONE};
    cxiemu_cq_t *cq;

    /* What CXI takes, and how it fills in what is left open */
    attr = (attr != NULL) ? attr : &plain;
    if ((unsigned)attr->format > FI_CQ_FORMAT_TAGGED) {
        return -FI_ENOSYS;
    }
    if ((attr->wait_obj != FI_WAIT_UNSPEC) &&
        (attr->wait_obj != FI_WAIT_NONE) && (attr->wait_obj != FI_WAIT_FD) &&
        (attr->wait_obj != FI_WAIT_POLLFD)) {
        return -FI_ENOSYS;
    }
    if (attr->format == FI_CQ_FORMAT_UNSPEC) {
        attr->format = FI_CQ_FORMAT_CONTEXT;
    }
    if (attr->wait_obj == FI_WAIT_UNSPEC) {
        attr->wait_obj = FI_WAIT_FD;
    }
    if (attr->size == 0) {
        attr->size = CXIEMU_CQ_DEFAULT;
    }

    cq = calloc(1, sizeof(*cq));
    if (cq == NULL) {
        return -FI_ENOMEM;
    }
    /* A power of two that is large enough, within reason: it grows */
    for (cq->size = 64; (cq->size < attr->size) && (cq->size < CXIEMU_CQ_MAX);
         cq->size *= 2) {
    }
    cq->ring = malloc(cq->size * sizeof(*cq->ring));
    if (cq->ring == NULL) {
        free(cq);
        return -FI_ENOMEM;
    }

    cq->format          = attr->format;
    cq->wait_obj        = attr->wait_obj;
    cq->by_threshold    = (attr->wait_cond == FI_CQ_COND_THRESHOLD);
    cq->event_fd        = -1;
    cq->domain          = domain;
    cq->fid.fid.fclass  = FI_CLASS_CQ;
    cq->fid.fid.context = context;
    cq->fid.fid.ops     = &cxiemu_cq_fid_ops;
    cq->fid.ops         = &cxiemu_cq_ops;
    cxiemu_nic_lock(domain->nic);
    ++domain->refs;
    cxiemu_open_add(CXIEMU_OPEN_CQ);
    cxiemu_nic_unlock(domain->nic);
    *cq_p = &cq->fid;
    return 0;
}
