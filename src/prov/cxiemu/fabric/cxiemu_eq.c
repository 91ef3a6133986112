/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_eq.c - event queues.
 *
 * Nothing here makes events: what is read is what the application wrote.
 */
#include "fabric/cxiemu_fabric.h"
#include "obj/cxiemu_event.h"

#include <rdma/fi_errno.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#define CXIEMU_EQ_MAX 1024


typedef struct cxiemu_event {
    TAILQ_ENTRY(cxiemu_event) list;
    uint32_t                  event;
    size_t                    length;
    uint8_t                   data[];
} cxiemu_event_t;

/* The lock protects all that follows it. */
typedef struct cxiemu_eq {
    struct fid_eq    fid;
    cxiemu_fabric_t  *fabric;
    enum fi_wait_obj wait_obj;
    int              may_write;
    int              event_fd; /**< Readable while there are events, or -1 */
    pthread_mutex_t  lock;
    TAILQ_HEAD(, cxiemu_event) events;
    size_t           count;
} cxiemu_eq_t;


static void cxiemu_eq_set_fd(cxiemu_eq_t *eq)
{
    const uint64_t one = 1;
    uint64_t count;
    ssize_t ret;

    if (eq->event_fd < 0) {
        return;
    }
    do {
        ret = (eq->count > 0) ? write(eq->event_fd, &one, sizeof(one)) :
                                read(eq->event_fd, &count, sizeof(count));
    } while ((ret < 0) && (errno == EINTR));
}

static void cxiemu_eq_pop(cxiemu_eq_t *eq)
{
    cxiemu_event_t *event = TAILQ_FIRST(&eq->events);

    TAILQ_REMOVE(&eq->events, event, list);
    free(event);
    if (--eq->count == 0) {
        cxiemu_eq_set_fd(eq);
    }
}

static ssize_t cxiemu_eq_read(struct fid_eq *fid, uint32_t *event, void *buf,
                              size_t len, uint64_t flags)
{
    cxiemu_eq_t *eq = container_of(fid, cxiemu_eq_t, fid);
    cxiemu_event_t *first;
    ssize_t ret;

    pthread_mutex_lock(&eq->lock);
    first = TAILQ_FIRST(&eq->events);
    if (first == NULL) {
        ret = -FI_EAGAIN;
    } else if (len < first->length) {
        ret = -FI_ETOOSMALL;
    } else {
        ret    = (ssize_t)first->length;
        *event = first->event;
        memcpy(buf, first->data, first->length);
        if (!(flags & FI_PEEK)) {
            cxiemu_eq_pop(eq);
        }
    }
    pthread_mutex_unlock(&eq->lock);
    return ret;
}

/* There are no errors. */
static ssize_t cxiemu_eq_readerr(struct fid_eq *fid,
                                 struct fi_eq_err_entry *buf, uint64_t flags)
{
    return -FI_EAGAIN;
}

static ssize_t cxiemu_eq_write(struct fid_eq *fid, uint32_t event,
                               const void *buf, size_t len, uint64_t flags)
{
    cxiemu_eq_t *eq = container_of(fid, cxiemu_eq_t, fid);
    cxiemu_event_t *added;
    int full;

    if (!eq->may_write) {
        return -FI_EINVAL;
    }
    added = malloc(sizeof(*added) + len);
    if (added == NULL) {
        return -FI_ENOMEM;
    }

    added->event  = event;
    added->length = len;
    if (len > 0) {
        memcpy(added->data, buf, len);
    }
    pthread_mutex_lock(&eq->lock);
    full = (eq->count == CXIEMU_EQ_MAX);
    if (!full) {
        TAILQ_INSERT_TAIL(&eq->events, added, list);
        if (eq->count++ == 0) {
            cxiemu_eq_set_fd(eq);
        }
    }
    pthread_mutex_unlock(&eq->lock);
    if (full) {
        free(added);
        return -FI_EAGAIN;
    }
    return (ssize_t)len;
}

static ssize_t cxiemu_eq_sread(struct fid_eq *fid, uint32_t *event, void *buf,
                               size_t len, int timeout, uint64_t flags)
{
    cxiemu_eq_t *eq      = container_of(fid, cxiemu_eq_t, fid);
    struct pollfd poller = {.fd = eq->event_fd, .events = POLLIN};
    int wait             = -1;
    uint64_t end, now;
    ssize_t size;

    if (eq->wait_obj == FI_WAIT_NONE) {
        return -FI_ENOSYS;
    }

    now = cxiemu_nic_now();
    end = now + (uint64_t)timeout * CXIEMU_NSEC_PER_MSEC;
    while (((size = cxiemu_eq_read(fid, event, buf, len, flags)) ==
            -FI_EAGAIN) && ((timeout < 0) || (now < end))) {
        /* Another thread may take the event first */
        if (timeout > 0) {
            wait = (int)((end - now) / CXIEMU_NSEC_PER_MSEC) + 1;
        }
        (void)poll(&poller, 1, wait);
        now = cxiemu_nic_now();
    }
    return size;
}

static const char *cxiemu_eq_strerror(struct fid_eq *fid, int prov_errno,
                                      const void *err_data, char *buf,
                                      size_t len)
{
    return cxiemu_event_strerror(prov_errno, buf, len);
}

int cxiemu_eq_trywait(struct fid *fid)
{
    cxiemu_eq_t *eq = container_of(fid, cxiemu_eq_t, fid.fid);
    int ret;

    if (cxiemu_param()->strict) {
        return -FI_ENOSYS; /* As CXI */
    }
    pthread_mutex_lock(&eq->lock);
    ret = (eq->count > 0) ? -FI_EAGAIN : 0;
    pthread_mutex_unlock(&eq->lock);
    return ret;
}

static int cxiemu_eq_control(struct fid *fid, int command, void *arg)
{
    cxiemu_eq_t *eq = container_of(fid, cxiemu_eq_t, fid.fid);

    if (arg == NULL) {
        return -FI_EINVAL;
    }

    switch (command) {
    case FI_GETWAIT:
        if (eq->wait_obj == FI_WAIT_YIELD) {
            return -FI_ENOSYS;
        }
        if (eq->event_fd < 0) {
            return -FI_ENODATA;
        }
        *(int*)arg = eq->event_fd;
        return 0;
    case FI_GETWAITOBJ:
        *(enum fi_wait_obj*)arg = eq->wait_obj;
        return 0;
    default:
        return -FI_ENOSYS;
    }
}

static int cxiemu_eq_close(struct fid *fid)
{
    cxiemu_eq_t *eq = container_of(fid, cxiemu_eq_t, fid.fid);

    while (eq->count > 0) {
        cxiemu_eq_pop(eq);
    }
    if (eq->event_fd >= 0) {
        close(eq->event_fd);
    }
    pthread_mutex_destroy(&eq->lock);
    __atomic_fetch_sub(&eq->fabric->refs, 1, __ATOMIC_ACQ_REL);
    cxiemu_open_del(CXIEMU_OPEN_EQ);
    free(eq);
    return 0;
}

static struct fi_ops cxiemu_eq_fid_ops = {
    .size     = sizeof(struct fi_ops),
    .close    = cxiemu_eq_close,
    .bind     = cxiemu_no_bind,
    .control  = cxiemu_eq_control,
    .ops_open = cxiemu_no_ops_open
};

static struct fi_ops_eq cxiemu_eq_ops = {
    .size     = sizeof(struct fi_ops_eq),
    .read     = cxiemu_eq_read,
    .readerr  = cxiemu_eq_readerr,
    .write    = cxiemu_eq_write,
    .sread    = cxiemu_eq_sread,
    .strerror = cxiemu_eq_strerror
};


int cxiemu_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
                   struct fid_eq **eq_p, void *context)
{
    enum fi_wait_obj wait_obj = (attr != NULL) ? attr->wait_obj : FI_WAIT_NONE;
    enum fi_wait_obj waiting;
    cxiemu_eq_t *eq;
    int err;

    /* CXI polls: there is no file to sleep on */
    waiting = cxiemu_param()->strict ? FI_WAIT_YIELD : FI_WAIT_FD;
    if (wait_obj == FI_WAIT_UNSPEC) {
        wait_obj = waiting;
    }
    if ((wait_obj != FI_WAIT_NONE) && (wait_obj != waiting)) {
        return -FI_ENOSYS;
    }
    if ((attr != NULL) && (attr->flags & ~(FI_WRITE | FI_AFFINITY))) {
        return -FI_EINVAL;
    }
    eq = calloc(1, sizeof(*eq));
    if (eq == NULL) {
        return -FI_ENOMEM;
    }
    eq->event_fd = -1;
    if (wait_obj != FI_WAIT_NONE) {
        eq->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (eq->event_fd < 0) {
            err = -errno;
            free(eq);
            return err;
        }
    }

    pthread_mutex_init(&eq->lock, NULL);
    TAILQ_INIT(&eq->events);
    eq->wait_obj        = wait_obj;
    eq->may_write       = (attr != NULL) && !!(attr->flags & FI_WRITE);
    eq->fabric          = container_of(fabric, cxiemu_fabric_t, fid);
    eq->fid.fid.fclass  = FI_CLASS_EQ;
    eq->fid.fid.context = context;
    eq->fid.fid.ops     = &cxiemu_eq_fid_ops;
    eq->fid.ops         = &cxiemu_eq_ops;
    __atomic_fetch_add(&eq->fabric->refs, 1, __ATOMIC_RELAXED);
    cxiemu_open_add(CXIEMU_OPEN_EQ);
    *eq_p = &eq->fid;
    return 0;
}
