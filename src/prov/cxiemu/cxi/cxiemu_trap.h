/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_trap.h - doorbells whose stores are events, as a NIC's are.
 *
 * The page may not be written to. The fault of each store of the host is
 * decoded, its value counted, and the store skipped. For x86-64; elsewhere
 * there is no trap mode.
 */
#ifndef CXIEMU_TRAP_H_
#define CXIEMU_TRAP_H_

#include "nic/cxiemu_nic.h"

/** Words of a trigger page, 8 bytes each. */
enum {
    CXIEMU_DOORBELL_ADD           = 0,
    CXIEMU_DOORBELL_ADD_FAILURE   = 64 / 8,
    CXIEMU_DOORBELL_RESET         = 128 / 8,
    CXIEMU_DOORBELL_RESET_FAILURE = 192 / 8
};

/** What was stored since it was taken last: the resets, then the sums of what
 *  was added after them. */
typedef struct cxiemu_trap_taken {
    int      reset;
    int      reset_failure;
    uint64_t success;
    uint64_t failure;
} cxiemu_trap_taken_t;

/** A trapped page for a counter; installs the handler. 0 with its slot and
 *  address; -FI_ENOSYS where there is no trap mode, -FI_ENOSPC, -FI_ENOMEM.
 *  The NIC's thread is woken by a store. */
int cxiemu_trap_add(cxiemu_nic_t *nic, int *slot_p, void **address_p);

/** Nobody stores to the page any more. */
void cxiemu_trap_remove(int slot);

/** Whether there is something to take. */
int cxiemu_trap_has(int slot);

void cxiemu_trap_take(int slot, cxiemu_trap_taken_t *taken);

/** Before a fork, and behind it in both processes: no other thread has the lock
 *  meanwhile. What it protects is as it was. */
void cxiemu_trap_fork_begin(void);
void cxiemu_trap_fork_end(int is_child);

#endif
