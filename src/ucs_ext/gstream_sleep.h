/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_sleep.h - sleeping on a 64-bit word of memory.
 *
 * The word belongs to the user and may be stored to by a stream, by a thread
 * that then calls ucs_gstream_wake(), or by somebody who knows nothing of
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
 */
#ifndef GSTREAM_SLEEP_H_
#define GSTREAM_SLEEP_H_

#include <stdatomic.h>
#include <stdint.h>


/** Sleep until the word is >= value; its last load has acquire order. */
void gstream_sleep_until(const volatile uint64_t *address, uint64_t value);


/** Wake those who sleep on the word. The caller has stored to it and then
 *  called gstream_sleep_fence(); one fence serves any number of words. */
void gstream_sleep_wake(const volatile uint64_t *address);


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
