/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_nic.c - the emulated NIC: its life, its progress, its bell. */
#include "cxiemu_cntr.h"
#include "cxiemu_dwq.h"
#include "cxiemu_link.h"
#include "cxiemu_log.h"
#include "cxiemu_mr.h"
#include "cxiemu_promise.h"
#include "cxiemu_target.h"
#include "cxiemu_wait.h"
#include "cxiemu_watch.h"

#include <rdma/fi_errno.h>

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

/* Progress is bounded by so many rounds, each of which takes so much from one
 * link. */
#define CXIEMU_ROUNDS 16
#define CXIEMU_SHARE  128

/* Reading the clock costs as much as a poll. Who has something to send, or has
 * received something, does other things between polls, and may need few of
 * them: the next one counts then. */
#define CXIEMU_POLLS_PER_STAMP 16

/* What differs by less will do; well below CXIEMU_SPINS_NS */
#define CXIEMU_STAMP_NS 15000

/* Pauses of the application between polls that may come again; shorter ones are
 * none, and longer ones may be for good */
#define CXIEMU_PAUSE_MIN_NS (CXIEMU_SPINS_NS / 4)
#define CXIEMU_PAUSE_MAX_NS 400000

/* After so many polls, links are watched that brought something since */
#define CXIEMU_POLLS_PER_WATCH 1024

/* Polls in a row before peers are told that they need not wake the thread */
#define CXIEMU_POLLS_TO_WAKE 100

/* Empty polls, some microseconds, until a thread lets others run */
#define CXIEMU_POLLS_PER_YIELD 128


void cxiemu_nic_tell_stored(cxiemu_nic_t *nic)
{
    if (nic->num_stored > 0) {
        nic->on_store(nic->on_store_arg, nic->stored, nic->num_stored);
        nic->num_stored = 0;
    }
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


/* Takes one word of ready bits, but for those that stand. */
static unsigned cxiemu_nic_take_word(cxiemu_nic_t *nic, unsigned word)
{
    uint64_t *ready   = &nic->shm->ready[word];
    uint64_t standing = nic->standing[word];
    unsigned count    = 0;
    uint64_t bits;
    unsigned bit;

    if ((__atomic_load_n(ready, __ATOMIC_RELAXED) & ~standing) == 0) {
        return 0;
    }
    bits = __atomic_fetch_and(ready, standing, __ATOMIC_SEQ_CST) & ~standing;
    while (bits != 0) {
        bit    = (unsigned)__builtin_ctzll(bits);
        bits  &= bits - 1;
        count += cxiemu_link_drain(nic, word * 64 + bit, CXIEMU_SHARE);
    }
    return count;
}

static unsigned cxiemu_nic_take(cxiemu_nic_t *nic)
{
    cxiemu_nic_shm_t *shm = nic->shm;
    unsigned count        = cxiemu_watch_take(nic, CXIEMU_SHARE);
    uint64_t words;

    /* A look first: exchanging would take the cache line from peers that write
     * to it, with each poll. The summary goes before the words, see
     * cxiemu_nic.h; of words with bits that stand it stays. */
    words = __atomic_load_n(&shm->summary, __ATOMIC_RELAXED);
    if (words & ~nic->standing_words) {
        words = __atomic_fetch_and(&shm->summary, nic->standing_words,
                                   __ATOMIC_SEQ_CST);
    }
    while (words != 0) {
        count += cxiemu_nic_take_word(nic, (unsigned)__builtin_ctzll(words));
        words &= words - 1;
    }
    return count;
}

static void cxiemu_nic_flush(cxiemu_nic_t *nic)
{
    while (!TAILQ_EMPTY(&nic->dirty)) {
        cxiemu_link_flush(TAILQ_FIRST(&nic->dirty));
    }
}

static unsigned cxiemu_nic_round(cxiemu_nic_t *nic)
{
    unsigned count = cxiemu_nic_take(nic);

    if (!TAILQ_EMPTY(&nic->stalled)) {
        count += cxiemu_link_retry(nic);
    }
    if (nic->doorbells != NULL) {
        count += cxiemu_cntr_doorbells(nic);
    }
    cxiemu_cntr_writeback(nic);
    if (!STAILQ_EMPTY(&nic->fired)) {
        count += cxiemu_dwq_run(nic);
    }
    if (!TAILQ_EMPTY(&nic->late)) {
        count += cxiemu_target_late(nic);
    }
    cxiemu_nic_flush(nic);
    cxiemu_nic_tell_stored(nic);
    return count;
}

int cxiemu_nic_unfinished(const cxiemu_nic_t *nic)
{
    return !TAILQ_EMPTY(&nic->stalled) || !TAILQ_EMPTY(&nic->late) ||
           !STAILQ_EMPTY(&nic->fired) || cxiemu_watch_has_news(nic);
}

/* Whether a round would find nothing to do. */
static int cxiemu_nic_is_quiet(const cxiemu_nic_t *nic)
{
    return (nic->doorbells == NULL) && (nic->wb_due == NULL) &&
           TAILQ_EMPTY(&nic->dirty) && TAILQ_EMPTY(&nic->graves) &&
           !cxiemu_nic_unfinished(nic);
}

unsigned cxiemu_nic_progress(cxiemu_nic_t *nic)
{
    unsigned rounds = 0, total = 0;
    unsigned count;

    /* What is done here may call for progress; the loop sees to it */
    if (nic->in_progress) {
        return 0;
    }
    nic->in_progress = 1;
    do {
        count  = cxiemu_nic_round(nic);
        total += count;
    } while ((count > 0) && (++rounds < CXIEMU_ROUNDS) &&
             !cxiemu_nic_is_quiet(nic));
    nic->in_progress = 0;
    if (!TAILQ_EMPTY(&nic->graves)) {
        cxiemu_link_reap(nic);
    }

    /* The caller may do something else now, and nobody rings for the rest */
    if ((__atomic_load_n(&nic->shm->thread, __ATOMIC_RELAXED) ==
         CXIEMU_THREAD_ASLEEP) &&
        !nic->nudged && cxiemu_nic_unfinished(nic)) {
        nic->nudged = 1;
        cxiemu_nic_wake_thread(nic);
    }
    return total;
}

void cxiemu_nic_triggered(cxiemu_nic_t *nic)
{
    if (!cxiemu_param()->strict && !nic->in_progress) {
        nic->in_progress = 1;
        (void)cxiemu_dwq_run(nic);
        cxiemu_nic_flush(nic);
        nic->in_progress = 0;
        if (cxiemu_nic_is_quiet(nic)) {
            return;
        }
    }
    cxiemu_nic_progress(nic);
}

/* Between messages a stream runs kernels. Those of one round take about as long
 * as those of the next: a peer that wakes the thread in the midst of one gains
 * nothing, and the stream loses its processor. A longer pause may be the end of
 * polling. */
static void cxiemu_nic_learn_pause(cxiemu_nic_t *nic, uint64_t pause)
{
    if (pause > CXIEMU_PAUSE_MAX_NS) {
        nic->promise_ns = CXIEMU_SPINS_NS;
    } else if (pause >= CXIEMU_PAUSE_MIN_NS) {
        nic->promise_ns -= nic->promise_ns / 8;
        if (nic->promise_ns < 2 * pause) {
            nic->promise_ns = 2 * pause;
        }
        if (nic->promise_ns < CXIEMU_SPINS_NS) {
            nic->promise_ns = CXIEMU_SPINS_NS;
        }
    }
}

/* The application polls: say until when it will do so again. */
static void cxiemu_nic_stamp(cxiemu_nic_t *nic, int yields)
{
    uint64_t now = cxiemu_nic_now();
    uint64_t until;

    if (nic->has_moved && (nic->until != 0) && !yields) {
        cxiemu_nic_learn_pause(nic, now - nic->stamped);
    }
    nic->stamped = now;
    nic->yielded = yields;
    cxiemu_promise_check(nic, now);
    until = now + (yields ? CXIEMU_YIELDS_NS : nic->promise_ns);
    /* Peers read it with each ring: a store takes the line from them */
    if (until >= nic->until + CXIEMU_STAMP_NS) {
        nic->until = until;
        __atomic_store_n(&nic->shm->polls_until, until, __ATOMIC_SEQ_CST);
        /* Pairs with the fence of who rings: who has seen the old promise finds
         * this one only if what he rang for is seen by the poll that follows */
        __sync_synchronize();
    }
}

unsigned cxiemu_nic_rest(cxiemu_nic_t *nic)
{
    unsigned count;

    /* Pairs with cxiemu_nic_ring(): either the peer sees the 0 and wakes the
     * thread, or its bit is seen here */
    nic->until = 0;
    __atomic_store_n(&nic->shm->polls_until, 0, __ATOMIC_SEQ_CST);
    (void)__atomic_load_n(&nic->shm->summary, __ATOMIC_SEQ_CST);
    count = cxiemu_nic_progress(nic);
    if (cxiemu_nic_unfinished(nic) || (nic->watched > 0) ||
        !TAILQ_EMPTY(&nic->promises)) {
        cxiemu_nic_wake_thread(nic); /* Nobody rings for that */
    }
    return count;
}

void cxiemu_nic_polled(cxiemu_nic_t *nic, int yields)
{
    uint64_t polls = nic->polls + 1;

    /* Written with the lock held, read by the thread without */
    __atomic_store_n(&nic->polls, polls, __ATOMIC_RELAXED);
    if (yields || (nic->until == 0) || (nic->has_moved && !nic->yielded) ||
        (polls % CXIEMU_POLLS_PER_STAMP == 0)) {
        cxiemu_nic_stamp(nic, yields);
    }
    nic->has_moved = 0;
    if (__atomic_load_n(&nic->shm->thread, __ATOMIC_RELAXED) ==
        CXIEMU_THREAD_AWAKE) {
        nic->sleepy = 0;
    } else if (++nic->sleepy == CXIEMU_POLLS_TO_WAKE) {
        cxiemu_nic_wake_thread(nic);
    }
}

/* Programs poll without a pause. Where cores are short the peer that is waited
 * for may need this one: without a yield it would come to run when the time
 * slice ends, milliseconds later. */
static void cxiemu_nic_yield(cxiemu_nic_t *nic, unsigned count)
{
    unsigned empty = 0;

    /* No lock, which may be another poller's: a poll that is not counted does
     * no harm */
    if (count == 0) {
        empty = __atomic_load_n(&nic->empty, __ATOMIC_RELAXED) + 1;
    }
    __atomic_store_n(&nic->empty, empty, __ATOMIC_RELAXED);
    if ((empty != 0) && (empty % CXIEMU_POLLS_PER_YIELD == 0)) {
        sched_yield();
    }
}

static int cxiemu_nic_try(cxiemu_nic_t *nic, int yields, unsigned *count_p)
{
    *count_p = 0;
    if (!cxiemu_lock_try(&nic->lock)) {
        return 0;
    }
    cxiemu_nic_polled(nic, yields);
    if (nic->polls % CXIEMU_POLLS_PER_WATCH == 0) {
        cxiemu_watch_end(nic);
    }
    if (cxiemu_nic_is_quiet(nic)) {
        return 1;
    }
    nic->may_watch = 1;
    *count_p       = cxiemu_nic_progress(nic);
    nic->may_watch = 0;
    nic->has_moved |= (*count_p > 0);
    return 1;
}

int cxiemu_nic_poll_begin(cxiemu_nic_t *nic, unsigned *count_p)
{
    if (cxiemu_nic_try(nic, 0, count_p)) {
        return 1;
    }
    cxiemu_nic_yield(nic, 0);
    return 0;
}

void cxiemu_nic_poll_end(cxiemu_nic_t *nic, unsigned count)
{
    cxiemu_nic_unlock(nic);
    cxiemu_nic_yield(nic, count);
}

unsigned cxiemu_nic_poll(cxiemu_nic_t *nic)
{
    unsigned count;

    if (cxiemu_nic_poll_begin(nic, &count)) {
        cxiemu_nic_poll_end(nic, count);
    }
    return count;
}

unsigned cxiemu_nic_poll_shared(cxiemu_nic_t *nic)
{
    unsigned count;

    if (cxiemu_nic_try(nic, 1, &count)) {
        cxiemu_nic_unlock(nic);
    }
    return count;
}

/* Until when somebody at a NIC will look for bits by himself; 0 if not, or not
 * soon enough. */
static uint64_t cxiemu_nic_listens(cxiemu_nic_shm_t *shm, int is_urgent)
{
    uint64_t until;

    if (__atomic_load_n(&shm->thread, __ATOMIC_SEQ_CST) ==
        CXIEMU_THREAD_ASLEEP) {
        return 0;
    }
    until = __atomic_load_n(&shm->polls_until, __ATOMIC_SEQ_CST);
    return ((until != 0) && is_urgent && (cxiemu_nic_now() > until)) ? 0 :
                                                                       until;
}

void cxiemu_nic_mark(cxiemu_nic_shm_t *shm, uint32_t port)
{
    uint64_t *ready = &shm->ready[port / 64];
    uint64_t bit    = 1ull << (port % 64);
    uint64_t word   = 1ull << (port / 64);

    /* What the bit tells of is stored before the bit is looked at: pairs with
     * the owner's taking it, see cxiemu_watch.h */
    __sync_synchronize();
    if (!(__atomic_load_n(ready, __ATOMIC_SEQ_CST) & bit)) {
        __atomic_fetch_or(ready, bit, __ATOMIC_SEQ_CST);
    }
    if (!(__atomic_load_n(&shm->summary, __ATOMIC_SEQ_CST) & word)) {
        __atomic_fetch_or(&shm->summary, word, __ATOMIC_SEQ_CST);
    }
}

uint64_t cxiemu_nic_ring(cxiemu_nic_shm_t *shm, uint32_t port, int is_urgent)
{
    uint64_t until = 0;

    cxiemu_nic_mark(shm, port);
    /* Pairs with cxiemu_nic_sleep() and cxiemu_thread_nap_asleep(), who
     * announce themselves and then look at the summary. One waiter is enough:
     * it makes progress, and wakes the others if there is something for
     * them. */
    if (__atomic_load_n(&shm->waiters, __ATOMIC_SEQ_CST) != 0) {
        cxiemu_kick(shm, CXIEMU_KICK_WAITER, 1);
    } else {
        until = cxiemu_nic_listens(shm, is_urgent);
        if (until == 0) {
            cxiemu_kick(shm, CXIEMU_KICK_THREAD, 1);
        }
    }
    return is_urgent ? until : 0;
}


static void cxiemu_nic_init_lists(cxiemu_nic_t *nic)
{
    TAILQ_INIT(&nic->links);
    TAILQ_INIT(&nic->stalled);
    TAILQ_INIT(&nic->dirty);
    TAILQ_INIT(&nic->graves);
    TAILQ_INIT(&nic->promises);
    nic->promised = CXIEMU_FOREVER;
    TAILQ_INIT(&nic->peers);
    STAILQ_INIT(&nic->fired);
    TAILQ_INIT(&nic->late);
}

/* Lists, random numbers and the descriptor for peers. */
static int cxiemu_nic_init(cxiemu_nic_t *nic)
{
    static uint64_t count;

    cxiemu_nic_init_lists(nic);
    nic->nonce      = cxiemu_nic_nonce();
    nic->checked    = cxiemu_nic_now();
    nic->promise_ns = CXIEMU_SPINS_NS;
    /* Several NICs of a process differ, and do so again in the next run */
    nic->rng   = cxiemu_param()->seed +
                 __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED);
    nic->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (nic->epoll < 0) {
        return -errno;
    }
    return 0;
}

static int cxiemu_nic_make_memory(cxiemu_nic_t *nic)
{
    int ret;

    ret = cxiemu_map_create("nic", sizeof(*nic->shm), &nic->map);
    if (ret != 0) {
        return ret;
    }
    nic->shm          = nic->map->address;
    nic->shm->magic   = CXIEMU_NIC_MAGIC;
    nic->shm->version = CXIEMU_PROTO_VERSION;
    nic->shm->nonce   = nic->nonce;
    nic->shm->pid     = (uint32_t)getpid();
    /* Nobody knows of it before an address is handed out */
    __atomic_store_n(&nic->shm->thread, CXIEMU_THREAD_ASLEEP,
                     __ATOMIC_SEQ_CST);
    return 0;
}

int cxiemu_nic_create(cxiemu_nic_t **nic_p)
{
    cxiemu_nic_t *nic;
    int ret;

    nic = calloc(1, sizeof(*nic));
    if (nic == NULL) {
        return -FI_ENOMEM;
    }
    ret = cxiemu_nic_init(nic);
    if (ret != 0) {
        goto err_free;
    }
    ret = cxiemu_nic_make_memory(nic);
    if (ret != 0) {
        goto err_cleanup;
    }
    nic->may_attach = cxiemu_map_may_attach((uint32_t)getpid());
    if (nic->may_attach) {
        /* Where Yama restricts tracing to children, peers of this user are to
         * be let in; it changes nothing for other users. An error means that
         * there is no Yama. */
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0ul, 0ul, 0ul);
    }
    ret = cxiemu_thread_start(nic);
    if (ret != 0) {
        goto err_memory;
    }
    cxiemu_info(FABRIC, "NIC %016llx: data path %s\n",
                (unsigned long long)nic->nonce,
                nic->may_attach ? "mapped+cma" : "bounce");
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
    cxiemu_mem_cleanup(nic);
    cxiemu_map_put(nic->map);
    close(nic->epoll);
    free(nic);
}
