/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_thread.c - a NIC's thread, which makes progress while nobody else
 * does.
 *
 *            the application polls
 *   ASLEEP ------------------------> AWAKE      sleeps 1 ms, then 2, 4, 8
 *          <------------------------
 *            it did not for a while
 *
 * AWAKE only says that peers need not wake the thread as long as the
 * application polls. ASLEEP, it is woken for each thing that comes, and for
 * nothing else, but for trigger pages that a device may write, for what nobody
 * will ring for, and twice a second for the peers' processes.
 */
#include "cxiemu_link.h"
#include "cxiemu_promise.h"
#include "cxiemu_wait.h"
#include "cxiemu_watch.h"

#include <signal.h>
#include <sys/prctl.h>

#define CXIEMU_AWAKE_MIN_NS (1 * CXIEMU_NSEC_PER_MSEC)
#define CXIEMU_AWAKE_MAX_NS (8 * CXIEMU_NSEC_PER_MSEC)

/* Doorbells are looked at the less often the longer nothing happened: what is
 * waited for is then late by an eighth of that time at most. */
#define CXIEMU_DOORBELL_SHARE  8
#define CXIEMU_DOORBELL_MAX_NS (16 * CXIEMU_NSEC_PER_MSEC)


/** What the thread remembers from look to look. */
typedef struct cxiemu_thread {
    cxiemu_nic_t *nic;
    uint64_t     polls;   /**< nic->polls at the last look */
    uint64_t     polled;  /**< When that was last seen to have changed */
    uint64_t     awake;   /**< Time-out while the application polls */
    uint64_t     active;  /**< When something last happened */
    uint32_t     seen;    /**< Kicks before the last look */
    int          polling; /**< The application polls */
} cxiemu_thread_t;


/* How long to leave doorbells alone. */
static uint64_t cxiemu_thread_interval(const cxiemu_thread_t *thread,
                                       uint64_t now)
{
    uint64_t min  = (uint64_t)cxiemu_param()->poll_us * 1000;
    uint64_t idle = (now > thread->active) ? (now - thread->active) : 0;
    uint64_t nsec = idle / CXIEMU_DOORBELL_SHARE;

    if (nsec > CXIEMU_DOORBELL_MAX_NS) {
        nsec = CXIEMU_DOORBELL_MAX_NS;
    }
    return (nsec < min) ? min : nsec;
}

/* Doorbells are watched, or were until a moment ago and may be so again without
 * a kick. Lock held. */
static int cxiemu_thread_is_watching(cxiemu_thread_t *thread, uint64_t now)
{
    const cxiemu_nic_t *nic = thread->nic;

    if (nic->watch_time > thread->active) {
        thread->active = nic->watch_time;
    }
    return (nic->watched > 0) ||
           (now < nic->watch_time + (2 * CXIEMU_WATCH_KICK_NS));
}

/* Makes progress if the application does not; how long to sleep then. */
static uint64_t cxiemu_thread_look(cxiemu_thread_t *thread)
{
    cxiemu_nic_t *nic = thread->nic;
    uint64_t polls    = __atomic_load_n(&nic->polls, __ATOMIC_RELAXED);
    uint64_t now      = cxiemu_nic_now();
    uint64_t nsec     = CXIEMU_FOREVER;
    uint64_t left;
    uint32_t kick;
    int is_kicked;

    /* Before the look: a kick that comes from now on is for the next one */
    kick = __atomic_load_n(&nic->shm->kick, __ATOMIC_ACQUIRE);
    if (polls != thread->polls) {
        thread->polls  = polls;
        thread->polled = now;
    }
    is_kicked    = (kick != thread->seen);
    thread->seen = kick;
    /* A kick may come between two polls. Who rests has polled, but will not. */
    thread->polling = (now - thread->polled < CXIEMU_AWAKE_MIN_NS) &&
                      (__atomic_load_n(&nic->shm->polls_until,
                                       __ATOMIC_RELAXED) != 0);

    cxiemu_nic_lock(nic);
    if (now - nic->checked >= CXIEMU_CHECK_NS) {
        nic->checked = now;
        cxiemu_link_check(nic);
    }
    if (!thread->polling) {
        cxiemu_watch_end(nic); /* It sleeps where no bit is set */
        nic->sleepy = 0;       /* Who polls again wakes it again */
    }
    nic->nudged    = 1; /* It need not kick itself */
    nic->has_parts = 0;
    if ((is_kicked || !thread->polling) && (cxiemu_nic_progress(nic) > 0)) {
        thread->active = now;
    }
    nic->nudged = 0;
    if (nic->has_parts && (nic->on_store != NULL)) {
        nic->on_store(nic->on_store_arg, NULL, 0);
    }
    if (!TAILQ_EMPTY(&nic->links)) {
        nsec = CXIEMU_CHECK_NS;
    }
    if (cxiemu_thread_is_watching(thread, now)) {
        nsec = cxiemu_thread_interval(thread, now);
    }
    if (cxiemu_nic_unfinished(nic) && (nsec > CXIEMU_AWAKE_MIN_NS)) {
        nsec = CXIEMU_AWAKE_MIN_NS;
    }
    cxiemu_promise_check(nic, now);
    left = cxiemu_promise_left(nic, now);
    nsec = (left < nsec) ? left : nsec;
    cxiemu_nic_unlock(nic);
    return nsec;
}

/* The application polls, and might cease to. */
static void cxiemu_thread_nap_awake(cxiemu_thread_t *thread)
{
    cxiemu_nic_shm_t *shm = thread->nic->shm;

    thread->active = cxiemu_nic_now();
    __atomic_store_n(&shm->thread, CXIEMU_THREAD_AWAKE, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&thread->nic->stop, __ATOMIC_ACQUIRE)) {
        cxiemu_doze(shm, CXIEMU_KICK_THREAD, thread->seen, thread->awake);
    }
    /* Nobody rings for a doorbell */
    if ((thread->awake < CXIEMU_AWAKE_MAX_NS) &&
        (__atomic_load_n(&thread->nic->watched, __ATOMIC_RELAXED) == 0)) {
        thread->awake *= 2;
    }
}

static void cxiemu_thread_nap_asleep(cxiemu_thread_t *thread, uint64_t nsec)
{
    cxiemu_nic_t *nic     = thread->nic;
    cxiemu_nic_shm_t *shm = nic->shm;

    thread->awake = CXIEMU_AWAKE_MIN_NS;
    /* Pairs with cxiemu_nic_ring(): either it sees that the thread is asleep,
     * or the thread sees its bit. stop is set before a kick. */
    __atomic_store_n(&shm->thread, CXIEMU_THREAD_ASLEEP, __ATOMIC_SEQ_CST);
    if ((__atomic_load_n(&shm->summary, __ATOMIC_SEQ_CST) == 0) &&
        !__atomic_load_n(&nic->stop, __ATOMIC_ACQUIRE)) {
        cxiemu_doze(shm, CXIEMU_KICK_THREAD, thread->seen, nsec);
    }
}

static void *cxiemu_thread_main(void *arg)
{
    cxiemu_nic_t *nic      = arg;
    cxiemu_thread_t thread = {.nic    = nic,
                              .awake  = CXIEMU_AWAKE_MIN_NS,
                              .active = cxiemu_nic_now()};
    uint64_t nsec;

    pthread_setname_np(pthread_self(), "cxiemu");
    /* Doorbells are polled more often than the kernel's slack of 50 us */
    prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
    while (!__atomic_load_n(&nic->stop, __ATOMIC_ACQUIRE)) {
        nsec = cxiemu_thread_look(&thread);
        if (thread.polling) {
            cxiemu_thread_nap_awake(&thread);
        } else {
            cxiemu_thread_nap_asleep(&thread, nsec);
        }
    }
    return NULL;
}

int cxiemu_thread_start(cxiemu_nic_t *nic)
{
    sigset_t all, old;
    int ret;

    /* Signals are for the application's threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    ret = pthread_create(&nic->thread, NULL, cxiemu_thread_main, nic);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    nic->thread_up = (ret == 0);
    return -ret;
}

void cxiemu_thread_stop(cxiemu_nic_t *nic)
{
    if (nic->thread_up) {
        __atomic_store_n(&nic->stop, 1, __ATOMIC_RELEASE);
        cxiemu_nic_wake_thread(nic);
        pthread_join(nic->thread, NULL);
        nic->thread_up = 0;
    }
}
