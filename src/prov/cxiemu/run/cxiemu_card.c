/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_card.c - the emulated NIC of a domain: its life, and what it does with
 * what its links report.
 */
#include "run/cxiemu_progress.h"
#include "base/cxiemu_log.h"
#include "base/cxiemu_process.h"
#include "op/cxiemu_dwq.h"
#include "op/cxiemu_rx.h"
#include "op/cxiemu_txop.h"
#include "run/cxiemu_wait.h"

#include <ucs_backoff.h>

#include <rdma/fi_errno.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

/* How long a NIC that closes waits for its peers to map what it sent */
#define CXIEMU_ATTACH_NS (1000 * CXIEMU_NSEC_PER_MSEC)

/* Writes that were put off have so many chances when their link ends */
#define CXIEMU_LATE_ROUNDS 4096


/* What came from the peer before it went is carried out */
static void cxiemu_nic_link_ending(cxiemu_link_t *link)
{
    int i;

    for (i = 0; !link->is_tx && cxiemu_late_has_more(link->nic) &&
                (i < CXIEMU_LATE_ROUNDS); ++i) {
        cxiemu_late_go_on(link->nic);
    }
}

static void cxiemu_nic_link_lost(cxiemu_link_t *link)
{
    if (link->is_tx) {
        cxiemu_txop_fail_all(link, cxiemu_link_error(link));
    } else {
        cxiemu_late_lost(link);
        cxiemu_rx_lost(link);
    }
}

static const cxiemu_link_events_t cxiemu_nic_link_events = {
    .record = cxiemu_late_record,
    .ack    = cxiemu_txop_ack,
    .ending = cxiemu_nic_link_ending,
    .lost   = cxiemu_nic_link_lost
};


/* The lock, lists, random numbers and the descriptor for peers. */
static int cxiemu_nic_init(cxiemu_nic_t *nic)
{
    static uint64_t count;
    pthread_mutexattr_t attr;

    /* The lock is held shortly: a thread that comes meanwhile spins first, if
     * it can */
    pthread_mutexattr_init(&attr);
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
    pthread_mutex_init(&nic->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    TAILQ_INIT(&nic->links);
    TAILQ_INIT(&nic->stalled);
    TAILQ_INIT(&nic->dirty);
    TAILQ_INIT(&nic->lost);
    TAILQ_INIT(&nic->peers);
    STAILQ_INIT(&nic->fired);
    TAILQ_INIT(&nic->held);
    TAILQ_INIT(&nic->late);
    TAILQ_INIT(&nic->pulled);
    nic->events  = &cxiemu_nic_link_events;
    nic->nonce   = cxiemu_nic_nonce();
    nic->checked = cxiemu_nic_now();
    /* Several NICs of a process differ, and do so again in the next run */
    nic->rng   = cxiemu_param()->seed +
                 __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    nic->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (nic->epoll < 0) {
        return -errno;
    }
    return 0;
}

int cxiemu_nic_create(cxiemu_nic_t **nic_p)
{
    const cxiemu_hooks_t *hooks;
    cxiemu_nic_t *nic;
    int ret;

    nic = calloc(1, sizeof(*nic));
    if (nic == NULL) {
        return -FI_ENOMEM;
    }
    /* Its own memory is shorter than a link's, which it will need */
    ret = cxiemu_map_check_limit(sizeof(cxiemu_link_shm_t));
    ret = (ret != 0) ? ret : cxiemu_nic_init(nic);
    if (ret != 0) {
        goto err_free;
    }
    ret = cxiemu_map_create("nic", sizeof(*nic->shm), &nic->map);
    if (ret != 0) {
        goto err_cleanup;
    }
    nic->shm          = nic->map->address;
    nic->shm->magic   = CXIEMU_NIC_MAGIC;
    nic->shm->version = CXIEMU_PROTO_VERSION;
    nic->shm->nonce   = nic->nonce;
    nic->shm->pid     = cxiemu_process_self();
    nic->shm->vni     = cxiemu_param()->vni;
    /* Nobody knows of it before an address is handed out */
    __atomic_store_n(&nic->shm->thread, CXIEMU_THREAD_ASLEEP,
                     __ATOMIC_SEQ_CST);
    nic->may_attach = cxiemu_map_may_attach((uint32_t)getpid());
    if (nic->may_attach && cxiemu_param()->ptracer) {
        /* Where Yama restricts tracing to children, processes of this user are
         * let in, debuggers, too. It stays so, in place of what the program may
         * have set: only where it is asked for. An error means that there is
         * no Yama. */
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0ul, 0ul, 0ul);
    }
    ret = cxiemu_thread_start(nic);
    if (ret != 0) {
        goto err_memory;
    }
    nic->poller = (cxiemu_poller_t){.poll  = cxiemu_nic_poll,
                                    .begin = cxiemu_poll_begin,
                                    .end   = cxiemu_poll_end,
                                    .arg   = nic};
    hooks       = cxiemu_hooks();
    if (hooks != NULL) {
        /* Without it, its thread does what streams would */
        nic->is_polled = (hooks->poller_add(&nic->poller) == 0);
    }
    cxiemu_info(FABRIC, "NIC %016llx: data path %s\n",
                (unsigned long long)nic->nonce,
                nic->may_attach ? "slots and attached copies" : "slots");
    *nic_p = nic;
    return 0;

err_memory:
    cxiemu_map_put(nic->map);
err_cleanup:
    close(nic->epoll);
err_free:
    free(nic);
    return ret;
}

static void cxiemu_nic_await_attach(cxiemu_nic_t *nic)
{
    uint64_t end    = cxiemu_nic_now() + CXIEMU_ATTACH_NS;
    unsigned rounds = 0;

    while (cxiemu_link_any_unattached(nic) && (cxiemu_nic_now() < end)) {
        cxiemu_nic_unlock(nic);
        ucs_backoff(&rounds);
        cxiemu_nic_lock(nic);
        cxiemu_nic_progress(nic);
    }
}

void cxiemu_nic_destroy(cxiemu_nic_t *nic)
{
    if (nic->is_polled) {
        cxiemu_hooks()->poller_remove(&nic->poller);
    }
    cxiemu_nic_lock(nic);
    cxiemu_nic_progress(nic);
    cxiemu_nic_await_attach(nic);
    cxiemu_nic_unlock(nic);

    cxiemu_thread_stop(nic);

    cxiemu_nic_lock(nic);
    __atomic_store_n(&nic->shm->closed, 1, __ATOMIC_RELEASE);
    cxiemu_link_close_all(nic);
    cxiemu_nic_unlock(nic);

    cxiemu_txop_cleanup(nic);
    cxiemu_dwq_cleanup(nic);
    cxiemu_window_cleanup(nic);
    cxiemu_map_put(nic->map);
    close(nic->epoll);
    pthread_mutex_destroy(&nic->lock);
    free(nic);
}
