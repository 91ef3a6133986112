/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_progress.c - progress of the emulated NIC: what has come is taken, and
 * what is due is started.
 */
#include "run/cxiemu_progress.h"
#include "cxi/cxiemu_doorbell.h"
#include "nic/cxiemu_link.h"
#include "op/cxiemu_dwq.h"
#include "op/cxiemu_txop.h"

/* Progress is bounded by so many rounds, each of which takes so much from one
 * link. */
#define CXIEMU_ROUNDS 16
#define CXIEMU_SHARE  128

/* Calls that carry out what has come, when an endpoint or a region closes: in
 * strict mode what stays behind a late write takes several. Data of a peer that
 * is stopped does not come. */
#define CXIEMU_DRAIN_CALLS 64


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
        count += cxiemu_txop_retry(nic);
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
        count += cxiemu_late_go_on(nic);
    }
    while (!TAILQ_EMPTY(&nic->dirty)) {
        cxiemu_link_flush(TAILQ_FIRST(&nic->dirty));
    }
    return count;
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

/* An occupied lock is left alone: its holder makes progress. */
int cxiemu_nic_poll(void *arg)
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
