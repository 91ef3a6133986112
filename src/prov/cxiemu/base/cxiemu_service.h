/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_service.h - what the processes of a service share of the device:
 * entries for deferred work, and counters.
 *
 * As Cassini's driver, it gives the resources of a process that has died back.
 * All calls but open and close may come from any thread.
 */
#ifndef CXIEMU_SERVICE_H_
#define CXIEMU_SERVICE_H_

#include <stddef.h>


/** What there is few of. */
typedef enum {
    CXIEMU_SERVICE_ENTRIES,
    CXIEMU_SERVICE_CNTRS,
    CXIEMU_SERVICE_LAST
} cxiemu_resource_t;


/** A domain is opened: take part in the service. What cannot be shared with
 *  other processes, as there is no room for one more, is this process's own. */
void cxiemu_service_open(void);

/** The domain is closed. */
void cxiemu_service_close(void);

/** Take some, of @a max that all processes may have. 0, or -FI_ENOSPC. */
int cxiemu_service_take(cxiemu_resource_t resource, size_t count, size_t max);

/** Give them back. */
void cxiemu_service_give(cxiemu_resource_t resource, size_t count);

/** What a message says of the process's own part. */
size_t cxiemu_service_own(cxiemu_resource_t resource);

/** Before a fork, and behind it in both processes: no other thread has the lock
 *  meanwhile. In a child the process has no part in the service. */
void cxiemu_service_fork_begin(void);
void cxiemu_service_fork_end(int is_child);

#endif
