/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_lock.c - the lock of a NIC: what is done where it is not free. */
#include "cxiemu_lock.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Some microseconds: longer than most hold it, shorter than a sleep */
#define CXIEMU_LOCK_PAUSES 100


void cxiemu_lock_wait(cxiemu_lock_t *lock)
{
    int i;

    for (i = 0; i < CXIEMU_LOCK_PAUSES; ++i) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#else
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
#endif
        if (cxiemu_lock_try(lock)) {
            return;
        }
    }
    while (__atomic_exchange_n(&lock->state, CXIEMU_LOCK_AWAITED,
                               __ATOMIC_ACQUIRE) != CXIEMU_LOCK_FREE) {
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE,
                CXIEMU_LOCK_AWAITED, NULL, NULL, 0);
    }
}

void cxiemu_lock_wake(cxiemu_lock_t *lock)
{
    syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
