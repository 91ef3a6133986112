/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_sleep.h - sleeping on a word of memory.
 *
 * The word belongs to the user and may be stored to by a stream, by a thread
 * that then calls ucs_gstream_wake(), or by something that knows nothing of
 * sleepers (a NIC, another process).
 *
 *      sleeper                              waker
 *      publish itself in the table          store to the word
 *      fence [gstream_sleep_until]          fence [gstream_sleep_fence]
 *      look at the word                     look for sleepers in the table
 *
 * Of the two fences one comes first in their total order, so either the
 * sleeper sees the store or the waker sees the sleeper. A store that nobody
 * announces is found by looking again from time to time.
 *
 * A thread with a helper sleeps on what that names, by which other processes
 * may notify it: for them its count of sleepers is what the table is for this
 * process. The helper is called behind the fence, each time before the thread
 * sleeps.
 */
#ifndef GSTREAM_SLEEP_H_
#define GSTREAM_SLEEP_H_

#include "api/ucs_gstream.h"

#include <ucs/datastruct/hlist.h>
#include <ucs/sys/math.h>

#include <stdatomic.h>
#include <stdint.h>

/* How long a sleeper trusts that stores are announced: first, and at most. */
#define GSTREAM_SLEEP_NSEC_MIN 1000000ull
#define GSTREAM_SLEEP_NSEC_MAX 50000000ull


/** A thread that sleeps on a word, while it is in the table. address and what
 *  it sleeps on are constant then; link is protected by the table's lock. */
typedef struct gstream_sleeper {
    const volatile uint64_t *address;
    _Atomic uint32_t        *calls; /**< Counts wake-ups, and is slept on; one
                                         of the threads there is woken */
    ucs_gstream_notify_t *notify;  /**< NULL, or what is slept on instead */
    ucs_hlist_link_t        link;
} gstream_sleeper_t;


/** Publish a sleeper. The caller fences and looks at the word before it sleeps
 *  on *calls, which it has loaded before that look. */
void gstream_sleeper_add(gstream_sleeper_t *sleeper);


/** Undo gstream_sleeper_add(). */
void gstream_sleeper_remove(gstream_sleeper_t *sleeper);


/** How a word is compared with a value: >=, with 64 bits; or with 32, as a
 *  ucs_gstream_cmp_t says, to which the second is added. */
enum {
    GSTREAM_SLEEP_64 = 0,
    GSTREAM_SLEEP_32 = 1
};


/** Whether a word is met, in a load with acquire order. One of 32 bits stands
 *  at the address all the same. */
static inline int gstream_sleep_is_met(const volatile uint64_t *address,
                                       uint64_t value, unsigned how)
{
    return (how == GSTREAM_SLEEP_64) ?
                   (__atomic_load_n(address, __ATOMIC_ACQUIRE) >= value) :
                   ucs_gstream_compare32((const volatile uint32_t*)address,
                                         (uint32_t)value,
                                         (ucs_gstream_cmp_t)
                                                 (how - GSTREAM_SLEEP_32));
}


/** Sleep until the word is met, or @a helper, which may be NULL, has moved
 *  something: what goes on need not be slept for part by part. */
void gstream_sleep_until(const volatile uint64_t *address, uint64_t value,
                         unsigned how, const ucs_gstream_helper_t *helper);


/** Wake those who sleep on the word. The caller has stored to it and then
 *  called gstream_sleep_fence(); one fence serves any number of words. */
void gstream_sleep_wake(const volatile uint64_t *address);


/** The same for several words: quick where nobody sleeps on any word. */
void gstream_sleep_wake_all(const volatile uint64_t *const *addresses,
                            size_t count);


/** Wake what sleeps there; the caller has called gstream_sleep_fence(). */
void gstream_sleep_notify(ucs_gstream_notify_t *notify);


/** How long to trust it after a sleep of 'nsec'. */
static inline uint64_t gstream_sleep_next(uint64_t nsec)
{
    return ucs_min(2 * nsec, GSTREAM_SLEEP_NSEC_MAX);
}


/** Order the caller's stores before its search for sleepers. */
static inline void gstream_sleep_fence(void)
{
#pragma GCC diagnostic push
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
    /* The fence orders the hand-shake only; the data is ordered by the acquire
     * load of the word, which the sanitizer does see */
#pragma GCC diagnostic ignored "-Wtsan"
#endif
    atomic_thread_fence(memory_order_seq_cst);
#pragma GCC diagnostic pop
}

#endif
