/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_device.c - memory whose stores a function takes, as a device does.
 *
 * A slot's users are counted by the callers, without a lock:
 *
 *     caller [gstream_device_give]         remover
 *     add 1 to users                       clear start
 *     load start                           wait until users is 0
 *     call func, subtract 1 from users
 *
 * All are seq-cst: either the caller finds start cleared, or the remover finds
 * the caller among the users. The other fields are written before start
 * (seq-cst), and again only after users was 0 with start cleared.
 *
 * A stream stores only to a range that was added before the command was
 * enqueued: the queue's order makes gstream_device_count visible to it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_device.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>

#define GSTREAM_DEVICE_MAX 16


/* A range; the slot is free while start is 0. */
typedef struct gstream_device {
    _Atomic uintptr_t         start;
    _Atomic size_t            length;
    ucs_gstream_device_func_t func;
    void                      *arg;
    _Atomic unsigned          users;
} gstream_device_t;


_Atomic unsigned gstream_device_count;

static struct {
    pthread_mutex_t  lock; /* Of adding and removing */
    gstream_device_t slots[GSTREAM_DEVICE_MAX];
} gstream_devices = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};


static int gstream_device_has(const gstream_device_t *device, uintptr_t start,
                              uintptr_t address)
{
    return (start != 0) && (address >= start) &&
           ((address - start) < atomic_load(&device->length));
}

int gstream_device_give(volatile uint64_t *address, uint64_t value)
{
    uintptr_t place = (uintptr_t)address;
    unsigned count  = atomic_load(&gstream_device_count);
    int taken       = 0;
    gstream_device_t *device;
    uintptr_t start;
    unsigned i;

    for (i = 0; (i < count) && !taken; ++i) {
        device = &gstream_devices.slots[i];
        if (!gstream_device_has(device, atomic_load(&device->start), place)) {
            continue;
        }

        atomic_fetch_add(&device->users, 1);
        /* Again, and once: a remover waits for its users from here on */
        start = atomic_load(&device->start);
        if (gstream_device_has(device, start, place)) {
            device->func(device->arg, place - start, value);
            taken = 1;
        }
        atomic_fetch_sub(&device->users, 1);
    }
    return taken;
}

/* The slot of a range, or a free one for 0; NULL if there is none. */
static gstream_device_t *gstream_device_find(uintptr_t start)
{
    unsigned i;

    for (i = 0; i < GSTREAM_DEVICE_MAX; ++i) {
        if (atomic_load(&gstream_devices.slots[i].start) == start) {
            return &gstream_devices.slots[i];
        }
    }
    return NULL;
}

ucs_status_t ucs_gstream_device_add(void *start, size_t length,
                                    ucs_gstream_device_func_t func, void *arg)
{
    ucs_status_t status = UCS_ERR_NO_RESOURCE;
    gstream_device_t *device;
    unsigned count;

    if ((start == NULL) || (length == 0) || (func == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }

    pthread_mutex_lock(&gstream_devices.lock);
    device = gstream_device_find(0);
    if (device != NULL) {
        device->func = func;
        device->arg  = arg;
        atomic_store(&device->length, length);
        atomic_store(&device->start, (uintptr_t)start);
        count = (unsigned)(device - gstream_devices.slots) + 1;
        if (count > atomic_load(&gstream_device_count)) {
            atomic_store(&gstream_device_count, count);
        }
        status = UCS_OK;
    }
    pthread_mutex_unlock(&gstream_devices.lock);
    return status;
}

ucs_status_t ucs_gstream_device_remove(void *start)
{
    ucs_status_t status = UCS_ERR_NO_ELEM;
    gstream_device_t *device;

    if (start == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }

    pthread_mutex_lock(&gstream_devices.lock);
    device = gstream_device_find((uintptr_t)start);
    if (device != NULL) {
        atomic_store(&device->start, (uintptr_t)0);
        while (atomic_load(&device->users) > 0) {
            sched_yield(); /* their functions return soon */
        }
        status = UCS_OK;
    }
    pthread_mutex_unlock(&gstream_devices.lock);
    return status;
}
