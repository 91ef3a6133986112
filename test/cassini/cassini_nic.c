/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_nic.c - the NIC of a process: start, engine, end.
 */
#include "cassini_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CASSINI_IDLE_ROUNDS = 4, /**< Without work, before the engine sleeps */
    CASSINI_NICE        = -15, /**< Hardware does not wait for a processor */
    CASSINI_POLL_NS     = 2000000, /**< Sleep while something is awaited */
    CASSINI_POLL_MORE   = 4, /**< Such sleeps that double it, without work */
    CASSINI_WATCH_NS    = 10000000 /**< Between looks for those that died */
};

cassini_nic_t cassini_nic = {.lock = PTHREAD_MUTEX_INITIALIZER, .epoch = 1};

/* Held while the NIC starts or stops, ahead of its own lock. */
static pthread_mutex_t cassini_nic_life = PTHREAD_MUTEX_INITIALIZER;

static const char *const cassini_open_names[CASSINI_OPEN_LAST] = {
    "devices",       "interfaces", "profiles", "domains",
    "command queues", "event queues", "wait objects", "counters",
    "triggers",      "regions",    "portal entries", "maps of portal entries"
};


void cassini_nic_lock(void)
{
    __atomic_add_fetch(&cassini_nic.waiting, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&cassini_nic.lock);
    __atomic_sub_fetch(&cassini_nic.waiting, 1, __ATOMIC_SEQ_CST);
}

void cassini_nic_unlock(void)
{
    pthread_mutex_unlock(&cassini_nic.lock);
}

static uint32_t *cassini_nic_word(void)
{
    return &cassini_dir->slots[cassini_dir_self].wakes;
}

void cassini_nic_wake(void)
{
    if (cassini_dir != NULL) {
        __atomic_add_fetch(cassini_nic_word(), 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, cassini_nic_word(), FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

unsigned cassini_nic_step(void)
{
    unsigned done = 0;

    /* Write pointers first: what was stored to a counter before the pointer
     * counts before the commands */
    cassini_cq_look();
    done += cassini_ct_take_stores();
    done += cassini_ct_fire();
    done += cassini_cq_progress();
    done += cassini_net_progress();
    done += cassini_ct_fire();
    done += cassini_temper_progress(0);
    return done;
}

/* Whether something is there to do, or will come without a wake. */
static int cassini_nic_has(void)
{
    unsigned i;

    cassini_cq_look();
    if (cassini_cq_has() || cassini_net_has() || cassini_ct_has_ripe()) {
        return 1;
    }
    for (i = 1; i < CASSINI_NUM_CTS; ++i) {
        if ((cassini_nic.cts[i] != NULL) && cassini_trap_has(i)) {
            return 1;
        }
    }
    return 0;
}

/* What is awaited from a process that died: answers, and its triggered
 * operations' entries. */
static void cassini_nic_watch_peers(void)
{
    static struct timespec last;
    struct timespec now;

    if ((cassini_tx_pending() == 0) && !cassini_cq_is_stalled()) {
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((now.tv_sec - last.tv_sec) * 1000000000ll + now.tv_nsec - last.tv_nsec <
        CASSINI_WATCH_NS) {
        return;
    }
    last = now;
    cassini_tx_reap();
    if (cassini_cq_is_stalled()) {
        cassini_dir_sweep();
    }
}

/* Sleep until there is something to do: 0; or a while, which is longer after
 * some sleeps for nothing: non-zero. */
static int cassini_nic_sleep(unsigned slept)
{
    unsigned more         = (slept < CASSINI_POLL_MORE) ? slept :
                                                          CASSINI_POLL_MORE;
    cassini_slot_t *place = &cassini_dir->slots[cassini_dir_self];
    struct timespec limit = {0, 0};
    int passed            = 0;
    uint32_t wakes;
    int awaited, late;

    wakes = __atomic_load_n(&place->wakes, __ATOMIC_SEQ_CST);
    __atomic_store_n(&place->asleep, 1, __ATOMIC_SEQ_CST);
    cassini_nic_lock();
    cassini_trap_watch(1);
    late    = cassini_temper_has();
    awaited = late || (cassini_tx_pending() != 0) || cassini_cq_is_stalled() ||
              cassini_net_is_blocked();
    if (!cassini_nic_has()) {
        cassini_nic_unlock();
        limit.tv_sec  = awaited ? 0 : 1;
        limit.tv_nsec = late    ? CASSINI_LATE_NS :
                        awaited ? (long)CASSINI_POLL_NS << more :
                                  0;
        passed = (syscall(SYS_futex, &place->wakes, FUTEX_WAIT, wakes, &limit,
                          NULL, 0) != 0) && (errno == ETIMEDOUT);
        cassini_nic_lock();
    }
    __atomic_store_n(&place->asleep, 0, __ATOMIC_SEQ_CST);
    cassini_trap_watch(0);
    cassini_nic_unlock();
    return passed;
}

static void *cassini_nic_engine(void *arg)
{
    unsigned idle  = 0;
    unsigned slept = 0;
    unsigned done;

    /* Allowed to root; others do without */
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), CASSINI_NICE);
    while (!__atomic_load_n(&cassini_nic.stop, __ATOMIC_ACQUIRE)) {
        pthread_mutex_lock(&cassini_nic.lock);
        done = cassini_nic_step();
        cassini_nic_watch_peers();
        pthread_mutex_unlock(&cassini_nic.lock);
        idle  = (done != 0) ? 0 : idle + 1;
        slept = (done != 0) ? 0 : slept;
        if (__atomic_load_n(&cassini_nic.waiting, __ATOMIC_RELAXED)) {
            sched_yield();
        } else if (idle > CASSINI_IDLE_ROUNDS) {
            /* A thread that wakes gets a processor sooner than one that
             * yields */
            slept = cassini_nic_sleep(slept) ? slept + 1 : 0;
            idle  = (slept != 0) ? CASSINI_IDLE_ROUNDS : 0;
        }
    }
    return arg;
}

static void cassini_nic_before_fork(void)
{
    pthread_mutex_lock(&cassini_nic_life);
    cassini_nic_lock();
}

static void cassini_nic_parent_after_fork(void)
{
    cassini_nic_unlock();
    pthread_mutex_unlock(&cassini_nic_life);
}

/* The child has a NIC of its own once it wants one, and none of the objects. */
static void cassini_nic_child_after_fork(void)
{
    unsigned epoch = cassini_nic.epoch;

    cassini_trap_forget();
    cassini_dir_forget();
    cassini_net_forget();
    cassini_tx_forget();
    cassini_ct_forget();
    cassini_temper_forget();
    memset(&cassini_nic, 0, sizeof(cassini_nic));
    pthread_mutex_init(&cassini_nic.lock, NULL);
    pthread_mutex_init(&cassini_nic_life, NULL);
    cassini_nic.epoch = epoch + 1;
}

static int cassini_nic_start_engine(void)
{
    sigset_t all, before;
    int ret;

    /* Signals of the program are for its own threads */
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ret = pthread_create(&cassini_nic.engine, NULL, cassini_nic_engine, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -ret;
}

int cassini_nic_start(void)
{
    static int hooked;
    int ret = 0;

    pthread_mutex_lock(&cassini_nic_life);
    cassini_nic_lock();
    if (cassini_nic.attached) {
        goto out;
    }
    cassini_temper_read();
    ret = cassini_trap_start();
    if (ret != 0) {
        goto out;
    }
    ret = cassini_dir_attach();
    if (ret != 0) {
        cassini_say("no directory of the node: %s", strerror(-ret));
        goto out;
    }
    /* The other processes of the node read and write its memory */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    if (!hooked) {
        hooked = 1;
        pthread_atfork(cassini_nic_before_fork, cassini_nic_parent_after_fork,
                       cassini_nic_child_after_fork);
    }
    ret = cassini_nic_start_engine();
    if (ret != 0) {
        cassini_dir_detach();
        goto out;
    }
    cassini_nic.attached = 1;
    if (cassini_settings.verbose) {
        cassini_say("node %s, place %u, seed %llu", cassini_settings.name,
                    cassini_dir_self,
                    (unsigned long long)cassini_settings.seed);
    }
out:
    if (ret == 0) {
        ++cassini_nic.open[CASSINI_OPEN_DEV];
    }
    cassini_nic_unlock();
    pthread_mutex_unlock(&cassini_nic_life);
    return ret;
}

/* With the mutex of starts. */
static void cassini_nic_leave(void)
{
    __atomic_store_n(&cassini_nic.stop, 1, __ATOMIC_RELEASE);
    cassini_nic_wake();
    pthread_join(cassini_nic.engine, NULL);
    cassini_nic_lock();
    cassini_nic_step();
    cassini_temper_progress(1);
    if (cassini_settings.verbose) {
        cassini_say("leaves the node");
    }
    cassini_dir_detach();
    cassini_net_forget();
    cassini_nic.attached = 0;
    cassini_nic.stop     = 0;
    cassini_nic_unlock();
}

static int cassini_nic_is_empty(void)
{
    int i;

    for (i = 0; i < CASSINI_OPEN_LAST; ++i) {
        if (cassini_nic.open[i] != 0) {
            return 0;
        }
    }
    return 1;
}

void cassini_nic_stop(void)
{
    pthread_mutex_lock(&cassini_nic_life);
    if (cassini_nic.attached && cassini_nic_is_empty()) {
        cassini_nic_leave();
    }
    pthread_mutex_unlock(&cassini_nic_life);
}

static void cassini_nic_tell_leaks(void)
{
    char line[128];
    int i, fd, length;

    fd = (cassini_settings.leaks == NULL) ? -1 :
         open(cassini_settings.leaks, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
              0600);
    for (i = 0; i < CASSINI_OPEN_LAST; ++i) {
        if (cassini_nic.open[i] == 0) {
            continue;
        }
        length = snprintf(line, sizeof(line),
                          "cassini: leaked %ld %s (process %d)\n",
                          cassini_nic.open[i], cassini_open_names[i],
                          (int)getpid());
        if ((fd >= 0) ? (write(fd, line, length) < 0) :
            (cassini_settings.verbose && (write(STDERR_FILENO, line, length) <
                                          0))) {
            break;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

static void __attribute__((destructor)) cassini_nic_end(void)
{
    pthread_mutex_lock(&cassini_nic_life);
    if (cassini_nic.attached) {
        cassini_nic_leave();
        cassini_nic_tell_leaks();
        ++cassini_nic.epoch; /* What threads still close is nobody's */
    }
    pthread_mutex_unlock(&cassini_nic_life);
}
