/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_futex.h - sleeping on a 32-bit word, and time. */
#ifndef GSTREAM_FUTEX_H_
#define GSTREAM_FUTEX_H_

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define GSTREAM_NSEC_PER_SEC 1000000000ull
#define GSTREAM_TIME_FOREVER UINT64_MAX


/* Monotonic time in ns. */
static inline uint64_t gstream_time(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (ts.tv_sec * GSTREAM_NSEC_PER_SEC) + ts.tv_nsec;
}

static inline void
gstream_futex_wait_op(const void *word, int op, uint32_t expected,
                      uint64_t nsec)
{
    struct timespec ts = {
        .tv_sec  = (time_t)(nsec / GSTREAM_NSEC_PER_SEC),
        .tv_nsec = (long)(nsec % GSTREAM_NSEC_PER_SEC)
    };

    syscall(SYS_futex, word, op, expected,
            (nsec == GSTREAM_TIME_FOREVER) ? NULL : &ts, NULL, 0);
}

/* Sleeps while the word is 'expected', for at most 'nsec' from now. Returns for
 * any reason, also for none: the caller looks at its condition again. */
static inline void
gstream_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t nsec)
{
    gstream_futex_wait_op((const void*)word, FUTEX_WAIT_PRIVATE, expected,
                          nsec);
}

/* The same with a word that other processes may have mapped. */
static inline void
gstream_futex_wait_shared(uint32_t *word, uint32_t expected, uint64_t nsec)
{
    gstream_futex_wait_op(word, FUTEX_WAIT, expected, nsec);
}

/* Wakes so many of those who sleep on the word, or all if they are fewer. */
static inline void gstream_futex_wake(_Atomic uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* The same with a word that other processes may have mapped. */
static inline void gstream_futex_wake_shared(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
