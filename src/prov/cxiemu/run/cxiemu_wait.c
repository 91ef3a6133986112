/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_wait.c - threads that poll a NIC, and that sleep in it; and the NIC's
 * own one, which makes progress while nobody else does.
 *
 *               a peer, or a call                        time is over
 *      ASLEEP ---------------------------> AWAKE <-------------------- TIMED
 *         ^                                | |                           ^
 *         +--------------------------------+ +---------------------------+
 *            nothing was read since the last     something was, and no
 *            look                                fi_trywait() came behind
 *
 * It also looks by itself: at trigger pages that a device may write, for what
 * is not finished, and twice a second for the peers' processes.
 */
#include "run/cxiemu_wait.h"
#include "nic/cxiemu_link.h"

#include <ucs_thread.h>

#include <rdma/fi_errno.h>

#include <linux/futex.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CXIEMU_NSEC_PER_SEC 1000000000ull

/* A waiter polls for so long before it sleeps: about what waking it costs */
#define CXIEMU_POLL_NS 50000

#define CXIEMU_TIMED_NS (1 * CXIEMU_NSEC_PER_MSEC)

/* As long as something is left that no peer will notify of */
#define CXIEMU_UNFINISHED_NS 100000


/* Sleeps while the futex is @a value, at most @a nsec (CXIEMU_FOREVER: no
 * limit). Returns for no reason, too. */
static void cxiemu_futex_wait(uint32_t *futex, uint32_t value, uint64_t nsec)
{
    struct timespec ts = {
        .tv_sec  = (time_t)(nsec / CXIEMU_NSEC_PER_SEC),
        .tv_nsec = (long)(nsec % CXIEMU_NSEC_PER_SEC)
    };

    syscall(SYS_futex, futex, FUTEX_WAIT, value,
            (nsec == CXIEMU_FOREVER) ? NULL : &ts, NULL, 0);
}

/* Makes progress; how long to sleep then. */
static uint64_t cxiemu_thread_look(cxiemu_nic_t *nic)
{
    uint64_t nsec = CXIEMU_FOREVER;
    uint64_t now  = cxiemu_nic_now();
    uint64_t poll = (uint64_t)cxiemu_param()->poll_us * 1000;

    /* Before the look: a call that comes from now on is for the next one */
    (void)__atomic_exchange_n(&nic->is_called, 0, __ATOMIC_SEQ_CST);
    cxiemu_nic_lock(nic);
    if (now - nic->checked >= CXIEMU_CHECK_NS) {
        nic->checked = now;
        cxiemu_link_check(nic);
    }
    nic->in_look = 1;
    (void)cxiemu_nic_progress(nic);
    nic->in_look = 0;
    if (nic->copied >= CXIEMU_COPY_SHARE) {
        nsec = 0; /* There is more */
    }
    if ((!TAILQ_EMPTY(&nic->links) || (nic->window != NULL)) &&
        (nsec > CXIEMU_CHECK_NS)) {
        nsec = CXIEMU_CHECK_NS;
    }
    if ((nic->num_plain > 0) && (nsec > poll)) {
        nsec = poll;
    }
    if (nic->is_unfinished && (nsec > CXIEMU_UNFINISHED_NS)) {
        nsec = CXIEMU_UNFINISHED_NS;
    }
    cxiemu_nic_unlock(nic);
    return nsec;
}

/* See cxiemu_wait.h. A thread that calls this one sets is_called, or stop,
 * before it looks at shm->thread: either it sees that this one sleeps, or this
 * one sees the call. */
static void cxiemu_thread_sleep(cxiemu_nic_t *nic, uint64_t nsec)
{
    cxiemu_nic_shm_t *shm = nic->shm;
    uint32_t state        = CXIEMU_THREAD_ASLEEP;

    if (__atomic_exchange_n(&nic->is_read, 0, __ATOMIC_RELAXED)) {
        state = CXIEMU_THREAD_TIMED;
        nsec  = (nsec < CXIEMU_TIMED_NS) ? nsec : CXIEMU_TIMED_NS;
    }
    __atomic_store_n(&shm->thread, state, __ATOMIC_SEQ_CST);
    /* Another thread's progress that left something since the look found this
     * one awake */
    if (__atomic_load_n(&nic->is_unfinished, __ATOMIC_SEQ_CST) &&
        (nsec > CXIEMU_UNFINISHED_NS)) {
        nsec = CXIEMU_UNFINISHED_NS;
    }
    if (!__atomic_load_n(&nic->is_called, __ATOMIC_SEQ_CST) &&
        !__atomic_load_n(&nic->stop, __ATOMIC_SEQ_CST) &&
        ((state == CXIEMU_THREAD_TIMED) ||
         (__atomic_load_n(&shm->summary, __ATOMIC_SEQ_CST) == 0))) {
        cxiemu_futex_wait(&shm->thread, state, nsec);
    }
    __atomic_store_n(&shm->thread, CXIEMU_THREAD_AWAKE, __ATOMIC_SEQ_CST);
}

static void *cxiemu_thread_main(void *arg)
{
    cxiemu_nic_t *nic = arg;

    pthread_setname_np(pthread_self(), "cxiemu");
    /* Trigger pages are polled more often than the kernel's slack of 50 us */
    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
    while (!__atomic_load_n(&nic->stop, __ATOMIC_ACQUIRE)) {
        cxiemu_thread_sleep(nic, cxiemu_thread_look(nic));
    }
    return NULL;
}

int cxiemu_thread_start(cxiemu_nic_t *nic)
{
    int ret;

    ret = ucs_thread_create(&nic->thread, NULL, cxiemu_thread_main, nic);
    nic->thread_up = (ret == 0);
    return -ret;
}

void cxiemu_thread_stop(cxiemu_nic_t *nic)
{
    if (nic->thread_up) {
        __atomic_store_n(&nic->stop, 1, __ATOMIC_SEQ_CST);
        cxiemu_nic_wake_thread(nic);
        pthread_join(nic->thread, NULL);
        nic->thread_up = 0;
    }
}


void cxiemu_poll_begin(void *arg)
{
    cxiemu_nic_t *nic = arg;

    __atomic_fetch_add(&nic->shm->pollers, 1, __ATOMIC_SEQ_CST);
}

/* Not with a try of the lock: its holder may have looked before the peer set
 * its bits. The lock is held shortly. */
void cxiemu_poll_end(void *arg)
{
    cxiemu_nic_t *nic     = arg;
    cxiemu_nic_shm_t *shm = nic->shm;

    __atomic_fetch_sub(&shm->pollers, 1, __ATOMIC_SEQ_CST);
    if ((__atomic_load_n(&shm->summary, __ATOMIC_SEQ_CST) != 0) ||
        __atomic_load_n(&nic->is_unfinished, __ATOMIC_SEQ_CST)) {
        cxiemu_nic_lock(nic);
        cxiemu_nic_progress(nic);
        cxiemu_nic_unlock(nic);
    }
}

/* Polls for a short time, or until a point in time. It yields all along, unlike
 * ucs_backoff(): whoever calls this sleeps behind it, and is woken. Lock held,
 * not in between. */
static void cxiemu_nic_spin(cxiemu_nic_t *nic, int (*ready)(void *arg),
                            void *arg, uint64_t end)
{
    uint64_t now  = cxiemu_nic_now();
    uint64_t last = now + CXIEMU_POLL_NS;

    last = (end < last) ? end : last;
    cxiemu_nic_unlock(nic);
    cxiemu_poll_begin(nic);
    cxiemu_nic_lock(nic);
    while (!ready(arg) && (cxiemu_nic_now() < last)) {
        cxiemu_nic_unlock(nic);
        sched_yield();
        cxiemu_nic_lock(nic);
        cxiemu_nic_progress(nic);
    }
    cxiemu_nic_unlock(nic);
    cxiemu_poll_end(nic);
    cxiemu_nic_lock(nic);
}

int cxiemu_nic_wait(cxiemu_nic_t *nic, int (*ready)(void *arg), void *arg,
                    int timeout_ms)
{
    uint64_t end = CXIEMU_FOREVER;
    uint32_t wakes;
    uint64_t now;

    cxiemu_nic_progress(nic);
    if (ready(arg)) {
        return 0;
    }
    if (timeout_ms == 0) {
        return -FI_EAGAIN;
    }
    if (timeout_ms > 0) {
        end = cxiemu_nic_now() + ((uint64_t)timeout_ms * CXIEMU_NSEC_PER_MSEC);
    }
    cxiemu_nic_spin(nic, ready, arg, end);
    while (!ready(arg)) {
        now = cxiemu_nic_now();
        if (now >= end) {
            return -FI_ETIMEDOUT;
        }
        /* A thread that wakes holds the lock, which is not held in between */
        wakes = nic->wakes;
        ++nic->waiters;
        cxiemu_nic_unlock(nic);
        cxiemu_futex_wait(&nic->wakes, wakes,
                          (end == CXIEMU_FOREVER) ? end : (end - now));
        cxiemu_nic_lock(nic);
        --nic->waiters;
        cxiemu_nic_progress(nic);
    }
    return 0;
}
