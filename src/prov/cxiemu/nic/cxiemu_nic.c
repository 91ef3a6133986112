/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_nic.c - the emulated NIC: its life, progress and notifications. */
#include "obj/cxiemu_cntr.h"
#include "op/cxiemu_dwq.h"
#include "nic/cxiemu_link.h"
#include "base/cxiemu_log.h"
#include "op/cxiemu_target.h"
#include "run/cxiemu_wait.h"

#include <rdma/fi_errno.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

/* Progress is bounded by so many rounds, each of which takes so much from one
 * link. */
#define CXIEMU_ROUNDS 16

/* Calls that carry out what has come, when an endpoint or a region closes: in
 * strict mode what stays behind a late write takes several. Data of a peer that
 * is stopped does not come. */
#define CXIEMU_DRAIN_CALLS 64
#define CXIEMU_SHARE  128


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


static unsigned cxiemu_nic_take(cxiemu_nic_t *nic)
{
    uint64_t *summary = &nic->shm->summary;
    unsigned count    = 0;
    uint64_t words, bits;
    unsigned word;

    /* A look first: exchanging would take the cache line from peers that write
     * to it, with each poll. The summary goes before the words, see
     * cxiemu_nic.h. */
    if (__atomic_load_n(summary, __ATOMIC_RELAXED) == 0) {
        return 0;
    }
    words = __atomic_exchange_n(summary, 0, __ATOMIC_SEQ_CST);
    for (; words != 0; words &= words - 1) {
        word = (unsigned)__builtin_ctzll(words);
        bits = __atomic_exchange_n(&nic->shm->ready[word], 0, __ATOMIC_SEQ_CST);
        for (; bits != 0; bits &= bits - 1) {
            count += cxiemu_link_drain(
                    nic, word * 64 + (unsigned)__builtin_ctzll(bits),
                    CXIEMU_SHARE);
        }
    }
    return count;
}

/* Whether trigger pages are looked at: by each progress, or by the thread alone
 * where the NIC is given the stores of streams. */
static int cxiemu_nic_scans(const cxiemu_nic_t *nic)
{
    return !LIST_EMPTY(&nic->doorbells) &&
           (nic->in_look || (cxiemu_hooks() == NULL));
}

static unsigned cxiemu_nic_round(cxiemu_nic_t *nic)
{
    unsigned count = cxiemu_nic_take(nic);

    if (!TAILQ_EMPTY(&nic->stalled)) {
        count += cxiemu_link_retry(nic);
    }
    if (cxiemu_nic_scans(nic)) {
        count += cxiemu_doorbell_take_all(nic);
    }
    cxiemu_cntr_writeback(nic);
    if (!STAILQ_EMPTY(&nic->fired)) {
        count += cxiemu_dwq_run(nic);
    }
    if (!TAILQ_EMPTY(&nic->held)) {
        count += cxiemu_dwq_admit(nic);
    }
    if (cxiemu_late_has_more(nic)) {
        count += cxiemu_target_late(nic);
    }
    while (!TAILQ_EMPTY(&nic->dirty)) {
        cxiemu_link_flush(TAILQ_FIRST(&nic->dirty));
    }
    return count;
}

int cxiemu_nic_unfinished(const cxiemu_nic_t *nic)
{
    return !TAILQ_EMPTY(&nic->stalled) || cxiemu_late_has_more(nic) ||
           !STAILQ_EMPTY(&nic->fired) || !TAILQ_EMPTY(&nic->held) ||
           (__atomic_load_n(&nic->shm->summary, __ATOMIC_SEQ_CST) != 0);
}

/* Whether a round would find nothing to do. */
static int cxiemu_nic_is_quiet(const cxiemu_nic_t *nic)
{
    return !cxiemu_nic_scans(nic) && SLIST_EMPTY(&nic->wb_due) &&
           TAILQ_EMPTY(&nic->dirty) && TAILQ_EMPTY(&nic->lost) &&
           !cxiemu_nic_unfinished(nic);
}

unsigned cxiemu_nic_progress(cxiemu_nic_t *nic)
{
    const cxiemu_nic_shm_t *shm = nic->shm;
    unsigned rounds             = 0;
    unsigned total              = 0;
    int is_unfinished;
    unsigned count;

    /* What is done here may ask for progress; the loop below makes it */
    if (nic->in_progress) {
        return 0;
    }
    nic->in_progress = 1;
    nic->copied      = 0;
    do {
        count  = cxiemu_nic_round(nic);
        total += count;
    } while ((count > 0) && (++rounds < CXIEMU_ROUNDS) &&
             (nic->copied < CXIEMU_COPY_SHARE) && !cxiemu_nic_is_quiet(nic));
    nic->in_progress = 0;
    if (!TAILQ_EMPTY(&nic->lost)) {
        cxiemu_link_reap(nic);
    }

    /* The caller may do something else now, and no peer notifies of what is
     * left. A thread that polls looks at that before it ceases to
     * (cxiemu_poll_end()): all of this is seq-cst. */
    is_unfinished = cxiemu_nic_unfinished(nic);
    if (is_unfinished != nic->is_unfinished) {
        __atomic_store_n(&nic->is_unfinished, is_unfinished, __ATOMIC_SEQ_CST);
    }
    if (is_unfinished && !nic->in_look &&
        (__atomic_load_n(&shm->pollers, __ATOMIC_SEQ_CST) == 0) &&
        (__atomic_load_n(&shm->thread, __ATOMIC_SEQ_CST) ==
         CXIEMU_THREAD_ASLEEP)) {
        cxiemu_nic_wake_thread(nic);
    }
    return total;
}

int cxiemu_nic_read_begin(cxiemu_nic_t *nic)
{
    if (!__atomic_load_n(&nic->is_read, __ATOMIC_RELAXED)) {
        __atomic_store_n(&nic->is_read, 1, __ATOMIC_RELAXED);
    }
    if (pthread_mutex_trylock(&nic->lock) != 0) {
        return 0;
    }
    if (!cxiemu_nic_is_quiet(nic)) {
        (void)cxiemu_nic_progress(nic);
    }
    return 1;
}

void cxiemu_nic_arm(cxiemu_nic_t *nic)
{
    __atomic_store_n(&nic->is_read, 0, __ATOMIC_RELAXED);
    /* One whose sleep is timed, or is about to be, is to sleep without a
     * limit: it looks first */
    if (__atomic_load_n(&nic->shm->thread, __ATOMIC_SEQ_CST) !=
        CXIEMU_THREAD_ASLEEP) {
        cxiemu_nic_wake_thread(nic);
    }
    (void)cxiemu_nic_progress(nic);
}

void cxiemu_nic_drain(cxiemu_nic_t *nic)
{
    unsigned i = 0;

    (void)cxiemu_nic_progress(nic);
    while ((cxiemu_late_has_more(nic) || (nic->copied >= CXIEMU_COPY_SHARE)) &&
           (++i < CXIEMU_DRAIN_CALLS)) {
        cxiemu_nic_unlock(nic);
        cxiemu_nic_lock(nic);
        (void)cxiemu_nic_progress(nic);
    }
}

/* What a host stream that waits calls. An occupied lock is left alone: its
 * holder makes progress. */
static int cxiemu_nic_poll(void *arg)
{
    cxiemu_nic_t *nic = arg;
    int count         = 0;

    if (pthread_mutex_trylock(&nic->lock) == 0) {
        if (!cxiemu_nic_is_quiet(nic)) {
            count = (int)cxiemu_nic_progress(nic);
        }
        cxiemu_nic_unlock(nic);
    }
    return count;
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
    nic->shm->pid     = (uint32_t)getpid();
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

void cxiemu_nic_destroy(cxiemu_nic_t *nic)
{
    if (nic->is_polled) {
        cxiemu_hooks()->poller_remove(&nic->poller);
    }
    cxiemu_nic_lock(nic);
    cxiemu_nic_progress(nic);
    cxiemu_link_await_attach(nic);
    cxiemu_nic_unlock(nic);

    cxiemu_thread_stop(nic);

    cxiemu_nic_lock(nic);
    __atomic_store_n(&nic->shm->closed, 1, __ATOMIC_RELEASE);
    cxiemu_link_close_all(nic);
    cxiemu_nic_unlock(nic);

    cxiemu_txop_cleanup(nic);
    cxiemu_dwq_cleanup(nic);
    cxiemu_doorbell_cleanup(nic);
    cxiemu_map_put(nic->map);
    close(nic->epoll);
    pthread_mutex_destroy(&nic->lock);
    free(nic);
}
