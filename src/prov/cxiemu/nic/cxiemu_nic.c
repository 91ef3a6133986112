/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_nic.c - the emulated NIC: notifications, and waking threads. */
#include "nic/cxiemu_nic.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CXIEMU_NSEC_PER_SEC 1000000000ull

/* Atomic */
static const cxiemu_hooks_t *cxiemu_nic_hooks;


void cxiemu_set_hooks(const cxiemu_hooks_t *hooks)
{
    __atomic_store_n(&cxiemu_nic_hooks, hooks, __ATOMIC_RELEASE);
}

const cxiemu_hooks_t *cxiemu_hooks(void)
{
    return __atomic_load_n(&cxiemu_nic_hooks, __ATOMIC_ACQUIRE);
}


uint64_t cxiemu_nic_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ((uint64_t)ts.tv_sec * CXIEMU_NSEC_PER_SEC) + (uint64_t)ts.tv_nsec;
}

/* The finalizer of splitmix64: each state gives another number. */
static uint64_t cxiemu_nic_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

uint64_t cxiemu_nic_random(cxiemu_nic_t *nic)
{
    nic->rng += 0x9e3779b97f4a7c15ull;
    return cxiemu_nic_mix(nic->rng);
}

uint64_t cxiemu_nic_nonce(void)
{
    static uint64_t count;
    uint64_t nonce = 0;

    if (getrandom(&nonce, sizeof(nonce), GRND_NONBLOCK) != sizeof(nonce)) {
        nonce = cxiemu_nic_mix(cxiemu_nic_now() ^ ((uint64_t)getpid() << 40) ^
                               __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED));
    }
    return (nonce != 0) ? nonce : 1;
}


static void cxiemu_futex_wake(uint32_t *futex)
{
    syscall(SYS_futex, futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Changes a state of sleep to AWAKE, and wakes the thread if it did. */
static void cxiemu_thread_wake(cxiemu_nic_shm_t *shm, uint32_t state)
{
    if (__atomic_compare_exchange_n(&shm->thread, &state, CXIEMU_THREAD_AWAKE,
                                    0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        cxiemu_futex_wake(&shm->thread);
    }
}

static void cxiemu_thread_notify(cxiemu_nic_shm_t *shm)
{
    if (__atomic_load_n(&shm->thread, __ATOMIC_SEQ_CST) ==
        CXIEMU_THREAD_ASLEEP) {
        cxiemu_thread_wake(shm, CXIEMU_THREAD_ASLEEP);
    }
}

void cxiemu_nic_wake_thread(cxiemu_nic_t *nic)
{
    __atomic_store_n(&nic->is_called, 1, __ATOMIC_SEQ_CST);
    cxiemu_thread_notify(nic->shm);
    cxiemu_thread_wake(nic->shm, CXIEMU_THREAD_TIMED);
}

void cxiemu_nic_wake_waiters(cxiemu_nic_t *nic)
{
    if (nic->waiters > 0) {
        __atomic_fetch_add(&nic->wakes, 1, __ATOMIC_RELAXED);
        cxiemu_futex_wake(&nic->wakes);
    }
}

void cxiemu_nic_mark(cxiemu_nic_shm_t *shm, uint32_t port)
{
    uint64_t *ready = &shm->ready[port / 64];
    uint64_t bit    = 1ull << (port % 64);
    uint64_t word   = 1ull << (port / 64);

    /* What the bit tells of is stored before the bit is looked at: pairs with
     * the owner's exchange */
    __sync_synchronize();
    if (!(__atomic_load_n(ready, __ATOMIC_SEQ_CST) & bit)) {
        __atomic_fetch_or(ready, bit, __ATOMIC_SEQ_CST);
    }
    if (!(__atomic_load_n(&shm->summary, __ATOMIC_SEQ_CST) & word)) {
        __atomic_fetch_or(&shm->summary, word, __ATOMIC_SEQ_CST);
    }
}

void cxiemu_nic_notify(cxiemu_nic_shm_t *shm, uint32_t port)
{
    cxiemu_nic_mark(shm, port);
    /* Pairs with cxiemu_poll_end() and cxiemu_thread_sleep() */
    if (__atomic_load_n(&shm->pollers, __ATOMIC_SEQ_CST) == 0) {
        cxiemu_thread_notify(shm);
    }
}
