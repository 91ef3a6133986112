/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_event.h - descriptors that tell sleepers of a counter or a queue.
 */
#ifndef CXIEMU_EVENT_H_
#define CXIEMU_EVENT_H_

#include <rdma/fi_errno.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/** Make a descriptor readable, if there is one (-1: none) and it is armed. Lock
 *  held. */
static inline void cxiemu_event_tell(int fd, int *armed)
{
    const uint64_t one = 1;

    if ((fd < 0) || !*armed) {
        return;
    }

    /* A full counter is readable, too: what the call says is of no interest */
    *armed = 0;
    while ((write(fd, &one, sizeof(one)) < 0) && (errno == EINTR)) {
    }
}

/** The caller is about to sleep where the NIC does not see it: what comes from
 *  now on makes the descriptor readable. Then call cxiemu_nic_arm(). Lock
 *  held. */
static inline void cxiemu_event_arm(int fd, int *armed)
{
    uint64_t count;

    if ((fd >= 0) && (read(fd, &count, sizeof(count)) < 0)) {
        /* It was not readable: as it should be */
    }
    *armed = 1;
}

/** The text of an error, copied to a buffer if there is one. */
static inline const char *cxiemu_event_strerror(int err, char *buf, size_t len)
{
    const char *text = fi_strerror(err);

    if ((buf != NULL) && (len > 0)) {
        snprintf(buf, len, "%s", text);
    }
    return text;
}

#endif
