/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_cq.c - completion queues.
 */
#include "cxiemu_cq.h"
#include "cxiemu_ep.h"
#include "cxiemu_event.h"
#include "cxiemu_log.h"

#include <rdma/fi_errno.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CXIEMU_CQ_DEFAULT 1024
#define CXIEMU_CQ_MAX     (1u << 20)


/* Someone waits for a number of entries */
typedef struct cxiemu_cq_wait {
    cxiemu_cq_t *cq;
    size_t      threshold;
} cxiemu_cq_wait_t;


static cxiemu_cq_event_t *cxiemu_cq_at(cxiemu_cq_t *cq, size_t position)
{
    return &cq->ring[position & (cq->size - 1)];
}

static int cxiemu_cq_grow(cxiemu_cq_t *cq)
{
    size_t size = cq->size * 2;
    cxiemu_cq_event_t *ring;
    size_t i;

    ring = malloc(size * sizeof(*ring));
    if (ring == NULL) {
        return -FI_ENOMEM;
    }

    for (i = cq->head; i != cq->tail; ++i) {
        ring[i & (size - 1)] = *cxiemu_cq_at(cq, i);
    }
    free(cq->ring);
    cq->ring = ring;
    cq->size = size;
    return 0;
}

/* The lock is held by whoever writes; see cxiemu_cq_has_recv(). */
static void cxiemu_cq_put(size_t *word, size_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static void cxiemu_cq_alert(cxiemu_cq_t *cq)
{
    cxiemu_nic_wake_waiters(cq->domain->nic);
    cxiemu_event_tell(cq->event_fd, &cq->armed);
}

cxiemu_cq_event_t *cxiemu_cq_next(cxiemu_cq_t *cq)
{
    cxiemu_cq_event_t *event;

    event  = ((cq->tail - cq->head == cq->size) && (cxiemu_cq_grow(cq) != 0)) ?
                     &cq->lost :
                     cxiemu_cq_at(cq, cq->tail);
    *event = (cxiemu_cq_event_t){.src = FI_ADDR_NOTAVAIL};
    return event;
}

void cxiemu_cq_push(cxiemu_cq_t *cq, const cxiemu_cq_event_t *event)
{
    if (event == &cq->lost) {
        cxiemu_warn(CQ, "out of memory: an entry of queue %p is lost\n",
                    (void*)cq);
        if (event->tx != NULL) {
            cxiemu_ep_give_tx(event->tx);
        }
        __atomic_store_n(&cq->overrun, 1, __ATOMIC_RELAXED);
    } else {
        cxiemu_cq_put(&cq->tail, cq->tail + 1);
        if (event->entry.flags & FI_RECV) {
            cxiemu_cq_put(&cq->num_recvs, cq->num_recvs + 1);
        }
    }
    cxiemu_cq_alert(cq);
}

void cxiemu_cq_hold(cxiemu_cq_t *cq, struct cxiemu_ep *ep)
{
    size_t size = (cq->max_held == 0) ? CXIEMU_CQ_DEFAULT : cq->max_held * 2;
    struct cxiemu_ep **held;

    if (cq->num_held == cq->max_held) {
        held = realloc(cq->held, size * sizeof(*held));
        if (held == NULL) {
            cxiemu_ep_give_tx(ep);
            return;
        }
        cq->held     = held;
        cq->max_held = size;
    }

    cq->held[cq->num_held] = ep;
    cxiemu_cq_put(&cq->num_held, cq->num_held + 1);
}

static void cxiemu_cq_release(cxiemu_cq_t *cq)
{
    size_t i;

    for (i = 0; i < cq->num_held; ++i) {
        cxiemu_ep_give_tx(cq->held[i]);
    }
    cxiemu_cq_put(&cq->num_held, 0);
}

void cxiemu_cq_drop_ep(cxiemu_cq_t *cq, struct cxiemu_ep *ep)
{
    size_t kept = 0;
    size_t i;

    for (i = cq->head; i != cq->tail; ++i) {
        if (cxiemu_cq_at(cq, i)->tx == ep) {
            cxiemu_cq_at(cq, i)->tx = NULL;
        }
    }
    for (i = 0; i < cq->num_held; ++i) {
        if (cq->held[i] != ep) {
            cq->held[kept++] = cq->held[i];
        }
    }
    cxiemu_cq_put(&cq->num_held, kept);
}

int cxiemu_cq_has_recv(const cxiemu_cq_t *cq)
{
    return __atomic_load_n(&cq->num_recvs, __ATOMIC_RELAXED) > 0;
}

/* The same for whatever can be read */
static int cxiemu_cq_is_idle(const cxiemu_cq_t *cq)
{
    return (__atomic_load_n(&cq->tail, __ATOMIC_RELAXED) ==
            __atomic_load_n(&cq->head, __ATOMIC_RELAXED)) &&
           (__atomic_load_n(&cq->num_held, __ATOMIC_RELAXED) == 0) &&
           !__atomic_load_n(&cq->overrun, __ATOMIC_RELAXED);
}

static size_t cxiemu_cq_entry_size(const cxiemu_cq_t *cq)
{
    switch (cq->format) {
    case FI_CQ_FORMAT_MSG:
        return sizeof(struct fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
        return sizeof(struct fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED:
        return sizeof(struct fi_cq_tagged_entry);
    default:
        return sizeof(struct fi_cq_entry);
    }
}

/* Each format is the start of the next larger one. */
static void cxiemu_cq_format(const cxiemu_cq_event_t *event, void *to,
                             size_t size)
{
    struct fi_cq_tagged_entry entry = {
        .op_context = event->entry.op_context,
        .flags      = event->entry.flags,
        .len        = event->entry.len,
        .buf        = event->entry.buf,
        .data       = event->entry.data,
        .tag        = event->entry.tag
    };

    memcpy(to, &entry, size);
}

static void cxiemu_cq_pop(cxiemu_cq_t *cq)
{
    cxiemu_cq_event_t *event = cxiemu_cq_at(cq, cq->head);

    if (event->tx != NULL) {
        cxiemu_ep_give_tx(event->tx);
    }
    if (event->entry.flags & FI_RECV) {
        cxiemu_cq_put(&cq->num_recvs, cq->num_recvs - 1);
    }
    cxiemu_cq_put(&cq->head, cq->head + 1);
}

/* Read what is there; lock held. */
static ssize_t cxiemu_cq_take(cxiemu_cq_t *cq, void *buf, size_t count,
                              fi_addr_t *src_addr)
{
    size_t size = cxiemu_cq_entry_size(cq);
    uint8_t *to = buf;
    size_t i;

    cxiemu_cq_release(cq);
    for (i = 0; (i < count) && (cq->head != cq->tail); ++i) {
        if (cxiemu_cq_at(cq, cq->head)->entry.err != 0) {
            return (i > 0) ? (ssize_t)i : -FI_EAVAIL;
        }
        cxiemu_cq_format(cxiemu_cq_at(cq, cq->head), to + i * size, size);
        if (src_addr != NULL) {
            src_addr[i] = cxiemu_cq_at(cq, cq->head)->src;
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
    unsigned done;
    ssize_t ret;

    /* What there is already is not kept waiting for what may come, but a queue
     * that is never empty must not keep the NIC from progress */
    if (!cxiemu_nic_poll_begin(nic, &done)) {
        if (cxiemu_cq_is_idle(cq)) {
            return -FI_EAGAIN;
        }
        cxiemu_nic_lock(nic);
        ret = cxiemu_cq_take(cq, buf, count, src_addr);
        cxiemu_nic_unlock(nic);
        return ret;
    }
    ret = cxiemu_cq_is_idle(cq) ? -FI_EAGAIN :
                                  cxiemu_cq_take(cq, buf, count, src_addr);
    cxiemu_nic_poll_end(nic, done);
    return ret;
}

static ssize_t cxiemu_cq_read(struct fid_cq *fid, void *buf, size_t count)
{
    return cxiemu_cq_readfrom(fid, buf, count, NULL);
}

/* Field by field: the caller's structure may be of an older, shorter kind. */
static void cxiemu_cq_copy_err(struct fi_cq_err_entry *to,
                               const struct fi_cq_err_entry *from)
{
    to->op_context = from->op_context;
    to->flags      = from->flags;
    to->len        = from->len;
    to->buf        = from->buf;
    to->data       = from->data;
    to->tag        = from->tag;
    to->olen       = from->olen;
    to->err        = from->err;
    to->prov_errno = from->prov_errno;
    /* There is none, and the caller's buffer stays as it is */
    to->err_data_size = 0;
}

static ssize_t cxiemu_cq_readerr(struct fid_cq *fid,
                                 struct fi_cq_err_entry *buf, uint64_t flags)
{
    cxiemu_cq_t *cq   = container_of(fid, cxiemu_cq_t, fid);
    cxiemu_nic_t *nic = cq->domain->nic;
    ssize_t ret       = -FI_EAGAIN;

    (void)flags;
    cxiemu_nic_lock(nic);
    if ((cq->head != cq->tail) &&
        (cxiemu_cq_at(cq, cq->head)->entry.err != 0)) {
        cxiemu_cq_copy_err(buf, &cxiemu_cq_at(cq, cq->head)->entry);
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
    const char *text = fi_strerror(prov_errno);

    (void)fid;
    (void)err_data;
    if ((buf != NULL) && (len > 0)) {
        snprintf(buf, len, "%s", text);
    }
    return text;
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
        cxiemu_event_arm(nic, cq->event_fd, &cq->armed);
    }
    cxiemu_nic_unlock(nic);
    return ret;
}

/* The descriptor is made for those who ask for it: it makes entries dearer. */
static int cxiemu_cq_get_fd(cxiemu_cq_t *cq)
{
    cxiemu_nic_t *nic = cq->domain->nic;
    int fd;

    cxiemu_nic_lock(nic);
    if (cq->event_fd < 0) {
        cq->event_fd = eventfd(cq->head != cq->tail,
                               EFD_NONBLOCK | EFD_CLOEXEC);
        if (cq->event_fd >= 0) {
            cq->armed = (cq->head == cq->tail);
        }
    }
    fd = (cq->event_fd >= 0) ? cq->event_fd : -errno;
    cxiemu_nic_unlock(nic);
    return fd;
}

static int cxiemu_cq_get_wait(cxiemu_cq_t *cq, void *arg)
{
    struct fi_wait_pollfd *poll_fd = arg;
    int fd;

    if (cq->wait_obj == FI_WAIT_NONE) {
        return -FI_ENODATA;
    }

    fd = cxiemu_cq_get_fd(cq);
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
    cxiemu_nic_unlock(nic);

    free(cq->held);
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


/* What CXI takes, and how it fills in what is left open. */
static int cxiemu_cq_check(struct fi_cq_attr *attr)
{
    switch (attr->format) {
    case FI_CQ_FORMAT_UNSPEC:
        attr->format = FI_CQ_FORMAT_CONTEXT;
        break;
    case FI_CQ_FORMAT_CONTEXT:
    case FI_CQ_FORMAT_MSG:
    case FI_CQ_FORMAT_DATA:
    case FI_CQ_FORMAT_TAGGED:
        break;
    default:
        return -FI_ENOSYS;
    }

    switch (attr->wait_obj) {
    case FI_WAIT_UNSPEC:
        attr->wait_obj = FI_WAIT_FD;
        break;
    case FI_WAIT_NONE:
    case FI_WAIT_FD:
    case FI_WAIT_POLLFD:
        break;
    default:
        return -FI_ENOSYS;
    }

    if (attr->size == 0) {
        attr->size = CXIEMU_CQ_DEFAULT;
    }
    return 0;
}

static int cxiemu_cq_make(const struct fi_cq_attr *attr, cxiemu_cq_t **cq_p)
{
    cxiemu_cq_t *cq = calloc(1, sizeof(*cq));

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

    cq->format       = attr->format;
    cq->wait_obj     = attr->wait_obj;
    cq->by_threshold = (attr->wait_cond == FI_CQ_COND_THRESHOLD);
    cq->event_fd     = -1;
    *cq_p            = cq;
    return 0;
}

int cxiemu_cq_open(struct fid_domain *domain_fid, struct fi_cq_attr *attr,
                   struct fid_cq **cq_p, void *context)
{
    cxiemu_domain_t *domain     = container_of(domain_fid, cxiemu_domain_t,
                                               fid);
    struct fi_cq_attr plain     = {.wait_obj = FI_WAIT_NONE};
    struct fi_cq_attr *settings = (attr != NULL) ? attr : &plain;
    cxiemu_cq_t *cq;
    int ret;

    ret = cxiemu_cq_check(settings);
    if (ret != 0) {
        return ret;
    }
    ret = cxiemu_cq_make(settings, &cq);
    if (ret != 0) {
        return ret;
    }

    cq->domain          = domain;
    cq->fid.fid.fclass  = FI_CLASS_CQ;
    cq->fid.fid.context = context;
    cq->fid.fid.ops     = &cxiemu_cq_fid_ops;
    cq->fid.ops         = &cxiemu_cq_ops;
    cxiemu_nic_lock(domain->nic);
    ++domain->refs;
    cxiemu_nic_unlock(domain->nic);
    *cq_p = &cq->fid;
    return 0;
}
