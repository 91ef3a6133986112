/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_service.c - the process's service thread.
 *
 * The thread sleeps in ppoll() on all clients' descriptors and its own. Before
 * it sleeps it sets `asleep` and looks at every client's `woken` once more; a
 * wake-up sets `woken` and then looks at `asleep`. Both pairs of accesses are
 * sequentially consistent, so at least one side sees the other: a wake-up is
 * never lost, and costs a system call only if the thread sleeps or is about to.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* pthread_setname_np(), ppoll() */
#endif

#include "ctrl/st_service.h"
#include "core/st_log.h"
#include "core/st_worker.h"

#include <ucs_thread.h>

#include <ucs/sys/math.h>

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* When the thread looks again if it had no memory for all descriptors, seconds
 */
#define UCP_ST_SERVICE_RETRY 10e-3

/**
 * `lock` serialises adding and removing, and protects the thread's existence.
 * `serving` protects the list of clients. The thread releases `serving` only
 * while it sleeps: for another holder no client is being called. Before it
 * takes `serving` again it lets a thread that waits have it. So that thread
 * waits for two rounds of all clients at most.
 */
static struct {
    pthread_mutex_t lock;
    pthread_mutex_t serving;
    pthread_cond_t  handed;  /* `wanted` is 0 */
    int             wanted;  /* atomic: a holder of `lock` wants `serving`; set
                                to 0 with `serving` held */
    ucs_list_link_t clients;
    int             changed; /* the list, since the thread went to sleep */
    int             stop;    /* atomic */
    int             asleep;  /* atomic: ppoll() may block */
    int             wake_fd; /* while there is a thread */
    pthread_t       thread;
} ucp_st_service = {
    .lock    = PTHREAD_MUTEX_INITIALIZER,
    .serving = PTHREAD_MUTEX_INITIALIZER,
    .handed  = PTHREAD_COND_INITIALIZER,
    .clients = UCS_LIST_INITIALIZER(&ucp_st_service.clients,
                                    &ucp_st_service.clients)
};

static __thread int ucp_st_service_is_thread;

int ucp_st_service_is_self(void)
{
    return ucp_st_service_is_thread;
}

/* UCP_ST_SERVICE_SOON, seconds */
#define UCP_ST_SERVICE_PAUSE 10e-6

/** The descriptors that the thread polls. */
typedef struct ucp_st_service_fds {
    struct pollfd *fds;
    unsigned      count;
    unsigned      max;
    int           is_short; /* some are missing: there was no memory */
} ucp_st_service_fds_t;

static void ucp_st_service_signal(void)
{
    uint64_t one = 1;

    if ((write(ucp_st_service.wake_fd, &one, sizeof(one)) < 0) &&
        (errno != EAGAIN)) {
        ucs_error("write() to the service thread failed: %m");
    }
}

void ucp_st_service_wake(ucp_st_service_client_t *client)
{
    __atomic_store_n(&client->woken, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&ucp_st_service.asleep, __ATOMIC_SEQ_CST)) {
        ucp_st_service_signal();
    }
}

static void ucp_st_service_set_due(ucp_st_service_client_t *client, int msec)
{
    double left = (msec == UCP_ST_SERVICE_SOON) ? UCP_ST_SERVICE_PAUSE :
                                                  (msec * 1e-3);

    client->due = (msec == -1) ? INFINITY : (ucp_st_worker_now() + left);
}

/* Add a descriptor; without memory it is looked at later */
static void ucp_st_service_fd_add(ucp_st_service_fds_t *set, int fd)
{
    unsigned max = set->max + 64;
    struct pollfd *fds;

    if (set->count == set->max) {
        fds = realloc(set->fds, max * sizeof(*fds));
        if (fds == NULL) {
            set->is_short = 1;
            return;
        }
        set->fds = fds;
        set->max = max;
    }
    set->fds[set->count].fd      = fd;
    set->fds[set->count].events  = POLLIN;
    set->fds[set->count].revents = 0;
    ++set->count;
}

/* The descriptors to look at, and for how long, seconds */
static double ucp_st_service_prepare(ucp_st_service_fds_t *set)
{
    double next = INFINITY;
    ucp_st_service_client_t *client;
    unsigned i;

    set->count    = 0;
    set->is_short = 0;
    ucp_st_service_fd_add(set, ucp_st_service.wake_fd);
    ucs_list_for_each(client, &ucp_st_service.clients, list) {
        for (i = 0; i < client->num_fds; ++i) {
            ucp_st_service_fd_add(set, client->fds[i]);
        }
        next = ucs_min(next, client->due);
        if (__atomic_load_n(&client->woken, __ATOMIC_SEQ_CST)) {
            next = 0;
        }
    }
    if (__atomic_load_n(&ucp_st_service.stop, __ATOMIC_SEQ_CST)) {
        next = 0;
    }
    if (set->is_short) {
        next = ucs_min(next, ucp_st_worker_now() + UCP_ST_SERVICE_RETRY);
    }
    return ucs_max(next - ucp_st_worker_now(), 0);
}

/* Clients with readable descriptors are due now */
static void ucp_st_service_collect(const ucp_st_service_fds_t *set)
{
    unsigned index = 1;
    ucp_st_service_client_t *client;
    int is_ready;
    unsigned i;

    ucs_list_for_each(client, &ucp_st_service.clients, list) {
        is_ready = 0;
        for (i = 0; (i < client->num_fds) && (index < set->count); ++i) {
            is_ready |= (set->fds[index++].revents != 0);
        }
        if (is_ready) {
            ucp_st_service_set_due(client, 0);
        }
    }
}

/* Sleep until there is something to do. `serving` is held, and released
 * meanwhile. */
static void ucp_st_service_sleep(ucp_st_service_fds_t *set)
{
    struct timespec timeout = {.tv_sec = 0};
    uint64_t wakes;
    double left;

    __atomic_store_n(&ucp_st_service.asleep, 1, __ATOMIC_SEQ_CST);
    left                   = ucp_st_service_prepare(set);
    ucp_st_service.changed = 0;
    (void)pthread_mutex_unlock(&ucp_st_service.serving);
    if (left < INFINITY) {
        timeout.tv_sec  = (time_t)left;
        timeout.tv_nsec = (long)((left - timeout.tv_sec) * 1e9);
    }
    (void)ppoll(set->fds, set->count, (left < INFINITY) ? &timeout : NULL,
                NULL);
    (void)pthread_mutex_lock(&ucp_st_service.serving);
    while (__atomic_load_n(&ucp_st_service.wanted, __ATOMIC_RELAXED)) {
        (void)pthread_cond_wait(&ucp_st_service.handed,
                                &ucp_st_service.serving);
    }
    __atomic_store_n(&ucp_st_service.asleep, 0, __ATOMIC_SEQ_CST);

    (void)!read(ucp_st_service.wake_fd, &wakes, sizeof(wakes));
    /* The set tells the client of a descriptor only while the list is the same.
     * A descriptor that is still readable is found the next time. */
    if (!ucp_st_service.changed && !set->is_short) {
        ucp_st_service_collect(set);
    }
}

static void *ucp_st_service_thread(void *arg)
{
    ucp_st_service_fds_t set = {.fds = NULL};
    ucp_st_service_client_t *client;
    double now;

    ucp_st_service_is_thread = 1;
    /* UCP_ST_SERVICE_PAUSE is shorter than the kernel's slack of 50 us */
    (void)prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
    (void)pthread_mutex_lock(&ucp_st_service.serving);
    while (!__atomic_load_n(&ucp_st_service.stop, __ATOMIC_SEQ_CST)) {
        now = ucp_st_worker_now();
        ucs_list_for_each(client, &ucp_st_service.clients, list) {
            if (__atomic_exchange_n(&client->woken, 0, __ATOMIC_SEQ_CST) ||
                (client->due <= now)) {
                ucp_st_service_set_due(client, client->serve(client->arg));
            }
        }
        ucp_st_service_sleep(&set);
    }
    (void)pthread_mutex_unlock(&ucp_st_service.serving);
    free(set.fds);
    return NULL;
}

static ucs_status_t ucp_st_service_start(void)
{
    int ret;

    ucp_st_service.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ucp_st_service.wake_fd < 0) {
        ucs_error("eventfd() failed: %m");
        return UCS_ERR_NO_RESOURCE;
    }
    ucp_st_service.stop = 0;
    ret = ucs_thread_create(&ucp_st_service.thread, NULL,
                            ucp_st_service_thread, NULL);
    if (ret != 0) {
        ucs_error("failed to start the service thread: %s", strerror(ret));
        close(ucp_st_service.wake_fd);
        return UCS_ERR_NO_RESOURCE;
    }
    (void)pthread_setname_np(ucp_st_service.thread, "ucp-st");
    return UCS_OK;
}

/* Take `serving` from the thread. `lock` is held. */
static void ucp_st_service_interrupt(void)
{
    /* Relaxed: the thread may miss it once, and finds it after the next round
     * of its clients */
    __atomic_store_n(&ucp_st_service.wanted, 1, __ATOMIC_RELAXED);
    (void)pthread_mutex_lock(&ucp_st_service.serving);
}

/* Give it back: the list has changed, and the thread must not go on polling
 * descriptors that are closed now */
static void ucp_st_service_resume(void)
{
    ucp_st_service.changed = 1;
    __atomic_store_n(&ucp_st_service.wanted, 0, __ATOMIC_RELAXED);
    (void)pthread_cond_signal(&ucp_st_service.handed);
    (void)pthread_mutex_unlock(&ucp_st_service.serving);
    ucp_st_service_signal();
}

ucs_status_t ucp_st_service_add(ucp_st_service_client_t *client)
{
    ucs_status_t status = UCS_OK;

    client->woken = 1;
    client->due   = INFINITY;
    (void)pthread_mutex_lock(&ucp_st_service.lock);
    if (ucs_list_is_empty(&ucp_st_service.clients)) {
        status = ucp_st_service_start();
    }
    if (status == UCS_OK) {
        ucp_st_service_interrupt();
        ucs_list_add_tail(&ucp_st_service.clients, &client->list);
        ucp_st_service_resume();
    }
    (void)pthread_mutex_unlock(&ucp_st_service.lock);
    return status;
}

void ucp_st_service_remove(ucp_st_service_client_t *client)
{
    int is_last;

    (void)pthread_mutex_lock(&ucp_st_service.lock);
    ucp_st_service_interrupt();
    ucs_list_del(&client->list);
    is_last = ucs_list_is_empty(&ucp_st_service.clients);
    if (is_last) {
        __atomic_store_n(&ucp_st_service.stop, 1, __ATOMIC_SEQ_CST);
    }
    ucp_st_service_resume();
    if (is_last) {
        (void)pthread_join(ucp_st_service.thread, NULL);
        close(ucp_st_service.wake_fd);
    }
    (void)pthread_mutex_unlock(&ucp_st_service.lock);
}
