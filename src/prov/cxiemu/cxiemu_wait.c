/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_wait.c - threads of the application that wait at a NIC. */
#include "cxiemu_wait.h"
#include "cxiemu_promise.h"
#include "cxiemu_watch.h"

#include <rdma/fi_errno.h>

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CXIEMU_NSEC_PER_SEC 1000000000ull

/* A waiter polls for so long before it sleeps: waking costs more than that, on
 * either side. First with pauses, for a peer on another core; then giving the
 * core away, for one on the same. How long the first lasts depends on what was
 * of use before: where the peer can only run after a yield, pauses are a loss,
 * where it need not, they are the fastest. */
#define CXIEMU_SPIN_MIN_NS 500
#define CXIEMU_SPIN_MAX_NS 16000
#define CXIEMU_YIELD_NS    60000

/* As long as something is left that nobody will ring for */
#define CXIEMU_UNFINISHED_NS 100000


void cxiemu_kick(cxiemu_nic_shm_t *shm, uint32_t who, int count)
{
    __atomic_fetch_add(&shm->kick, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &shm->kick, FUTEX_WAKE_BITSET, count, NULL, NULL, who);
}

void cxiemu_doze(cxiemu_nic_shm_t *shm, uint32_t who, uint32_t seen,
                 uint64_t nsec)
{
    struct timespec ts;
    uint64_t end;

    if (nsec == CXIEMU_FOREVER) {
        syscall(SYS_futex, &shm->kick, FUTEX_WAIT_BITSET, seen, NULL, NULL,
                who);
        return;
    }
    /* With a bit set, the time is a point of CLOCK_MONOTONIC */
    end        = cxiemu_nic_now() + nsec;
    ts.tv_sec  = (time_t)(end / CXIEMU_NSEC_PER_SEC);
    ts.tv_nsec = (long)(end % CXIEMU_NSEC_PER_SEC);
    syscall(SYS_futex, &shm->kick, FUTEX_WAIT_BITSET, seen, &ts, NULL, who);
}

uint64_t cxiemu_nic_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ((uint64_t)ts.tv_sec * CXIEMU_NSEC_PER_SEC) + (uint64_t)ts.tv_nsec;
}

void cxiemu_nic_wake_waiters(cxiemu_nic_t *nic)
{
    /* Waiters count themselves with the lock held, which the caller holds: no
     * fence is needed */
    if (__atomic_load_n(&nic->shm->waiters, __ATOMIC_RELAXED) != 0) {
        cxiemu_kick(nic->shm, CXIEMU_KICK_WAITER, INT_MAX);
    }
}

void cxiemu_nic_wake_thread(cxiemu_nic_t *nic)
{
    cxiemu_kick(nic->shm, CXIEMU_KICK_THREAD, 1);
}

/* Sleeps until a kick. Lock held, not in between. */
static void cxiemu_nic_sleep(cxiemu_nic_t *nic, uint64_t nsec)
{
    cxiemu_nic_shm_t *shm = nic->shm;
    uint32_t seen;

    /* Read before the announcement: a kick that the announcement causes is
     * counted after that. */
    seen = __atomic_load_n(&shm->kick, __ATOMIC_ACQUIRE);
    /* Pairs with cxiemu_nic_ring(): either it sees the waiter, or the waiter
     * sees its bit, or what it has for a link that is watched. */
    __atomic_fetch_add(&shm->waiters, 1, __ATOMIC_SEQ_CST);
    if (!cxiemu_watch_has_news(nic)) {
        cxiemu_nic_unlock(nic);
        cxiemu_doze(shm, CXIEMU_KICK_WAITER, seen, nsec);
        cxiemu_nic_lock(nic);
    }
    /* Who saw the waiter until now set its bit before: the progress that
     * follows finds it. */
    __atomic_fetch_sub(&shm->waiters, 1, __ATOMIC_SEQ_CST);
}

/* One round of polling without sleep. Lock held, not in between. */
static void cxiemu_nic_pause(cxiemu_nic_t *nic, int yields)
{
    int i;

    cxiemu_nic_polled(nic, 0);
    cxiemu_nic_unlock(nic);
    if (yields) {
        sched_yield();
    } else {
        for (i = 0; i < 8; ++i) {
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#else
            __atomic_signal_fence(__ATOMIC_SEQ_CST);
#endif
        }
    }
    cxiemu_nic_lock(nic);
}

/* How long a waiter may sleep, until a point in time. Lock held. */
static uint64_t cxiemu_nic_nap(const cxiemu_nic_t *nic, uint64_t now,
                               uint64_t end)
{
    uint64_t nsec = (end == CXIEMU_FOREVER) ? CXIEMU_FOREVER : (end - now);
    uint64_t left = cxiemu_promise_left(nic, now);

    if (cxiemu_nic_unfinished(nic) && (nsec > CXIEMU_UNFINISHED_NS)) {
        nsec = CXIEMU_UNFINISHED_NS;
    }
    return (left < nsec) ? left : nsec;
}

/* A wait has ended after so much of polling. */
static void cxiemu_nic_learn(cxiemu_nic_t *nic, uint64_t nsec)
{
    if (nsec < nic->spin_ns) {
        nic->spin_ns *= 2;
    } else if (nsec < CXIEMU_YIELD_NS) {
        nic->spin_ns /= 2;
    }
    if (nic->spin_ns > CXIEMU_SPIN_MAX_NS) {
        nic->spin_ns = CXIEMU_SPIN_MAX_NS;
    } else if (nic->spin_ns < CXIEMU_SPIN_MIN_NS) {
        nic->spin_ns = CXIEMU_SPIN_MIN_NS;
    }
}

int cxiemu_nic_wait(cxiemu_nic_t *nic, int (*ready)(void *arg), void *arg,
                    int timeout_ms)
{
    uint64_t start, now, end = CXIEMU_FOREVER;

    cxiemu_nic_progress(nic);
    if (ready(arg)) {
        return 0;
    }
    if (timeout_ms == 0) {
        return -FI_EAGAIN;
    }
    start = cxiemu_nic_now();
    now   = start;
    if (timeout_ms > 0) {
        end = start + ((uint64_t)timeout_ms * CXIEMU_NSEC_PER_MSEC);
    }
    do {
        if (now - start < CXIEMU_YIELD_NS) {
            cxiemu_nic_pause(nic, now - start >= nic->spin_ns);
        } else {
            cxiemu_nic_sleep(nic, cxiemu_nic_nap(nic, now, end));
        }
        cxiemu_nic_progress(nic);
        if (ready(arg)) {
            cxiemu_nic_learn(nic, now - start);
            return 0;
        }
        now = cxiemu_nic_now();
        cxiemu_promise_check(nic, now);
    } while (now < end);
    return -FI_ETIMEDOUT;
}
