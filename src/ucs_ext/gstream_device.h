/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_device.h - memory whose stores a function takes, as a device does.
 */
#ifndef GSTREAM_DEVICE_H_
#define GSTREAM_DEVICE_H_

#include "api/ucs_gstream.h"

#include <stdatomic.h>

typedef struct gstream_device gstream_device_t;

/** Slots of ranges; NULL where the program has no emulated device. A stream
 *  stores only to a range that was added before the command was enqueued: the
 *  queue's order makes it visible. */
extern gstream_device_t *_Atomic gstream_devices;

/** Give a store to the function of the range that has the address; 0 if none
 *  has it, and the caller stores. Any thread. */
int gstream_device_give(volatile uint64_t *address, uint64_t value);

/** The same, for streams: one load where there is no range. */
static inline int gstream_device_store(volatile uint64_t *address,
                                       uint64_t value)
{
    return (atomic_load_explicit(&gstream_devices, memory_order_relaxed) !=
            NULL) &&
           gstream_device_give(address, value);
}

/** Whether an address is in a range. Any thread. */
int gstream_device_covers(const volatile uint64_t *address);

#endif
