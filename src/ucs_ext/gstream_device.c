/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_device.c - memory whose stores a function takes, as a device does.
 *
 * Slots are listed once and for ever, and used again for other ranges. A slot's
 * users are counted by the callers, without a lock:
 *
 *     caller [gstream_device_give]         remover
 *     add 1 to users                       clear start
 *     load start                           wait until users is 0
 *     call func, subtract 1 from users
 *
 * All are seq-cst: either the caller finds start cleared, or the remover finds
 * the caller among the users. The other fields are written before start
 * (seq-cst), and again only after users was 0 with start cleared. The remover
 * waits without the lock. That ends: a cleared slot gets no users that call
 * func, and those that it has leave when func returns.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_device.h"
#include "gstream_fork.h"
#include "api/ucs_backoff.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>


/* A slot: stores are taken while start is not 0. */
struct gstream_device {
    gstream_device_t          *next;    /* Constant */
    int                       is_taken; /* Under the lock */
    _Atomic uintptr_t         start;
    _Atomic size_t            length;
    ucs_gstream_device_func_t func;
    void                      *arg;
    _Atomic unsigned          users;
};


gstream_device_t *_Atomic gstream_devices;

/* Of adding and removing */
static pthread_mutex_t gstream_device_lock = PTHREAD_MUTEX_INITIALIZER;


static int gstream_device_has(const gstream_device_t *device, uintptr_t start,
                              uintptr_t address)
{
    return (start != 0) && (address >= start) &&
           ((address - start) < atomic_load(&device->length));
}

int gstream_device_give(volatile uint64_t *address, uint64_t value)
{
    uintptr_t place          = (uintptr_t)address;
    gstream_device_t *device = atomic_load(&gstream_devices);
    int taken                = 0;
    uintptr_t start;

    for (; (device != NULL) && !taken; device = device->next) {
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

int gstream_device_covers(const volatile uint64_t *address)
{
    gstream_device_t *device = atomic_load(&gstream_devices);

    while ((device != NULL) &&
           !gstream_device_has(device, atomic_load(&device->start),
                               (uintptr_t)address)) {
        device = device->next;
    }
    return device != NULL;
}

void gstream_device_forked(void)
{
    pthread_mutex_init(&gstream_device_lock, NULL);
    atomic_store(&gstream_devices, NULL);
}

/* A slot that nobody has, which is then taken. Lock held. */
static gstream_device_t *gstream_device_get(void)
{
    gstream_device_t *device = atomic_load(&gstream_devices);

    while ((device != NULL) && device->is_taken) {
        device = device->next;
    }
    if (device == NULL) {
        device = calloc(1, sizeof(*device));
        if (device == NULL) {
            return NULL;
        }
        device->next = atomic_load(&gstream_devices);
        atomic_store(&gstream_devices, device);
    }
    device->is_taken = 1;
    return device;
}

ucs_status_t ucs_gstream_device_add(void *start, size_t length,
                                    ucs_gstream_device_func_t func, void *arg)
{
    gstream_device_t *device;

    if ((start == NULL) || (length == 0) || (func == NULL)) {
        return UCS_ERR_INVALID_PARAM;
    }

    pthread_mutex_lock(&gstream_device_lock);
    device = gstream_device_get();
    pthread_mutex_unlock(&gstream_device_lock);
    if (device == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    device->func = func;
    device->arg  = arg;
    atomic_store(&device->length, length);
    atomic_store(&device->start, (uintptr_t)start);
    return UCS_OK;
}

ucs_status_t ucs_gstream_device_remove(void *start)
{
    gstream_device_t *device = atomic_load(&gstream_devices);
    uintptr_t found          = (uintptr_t)start;
    unsigned rounds          = 0;

    if (start == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }

    /* One caller alone clears it */
    while ((device != NULL) &&
           !atomic_compare_exchange_strong(&device->start, &found, 0)) {
        device = device->next;
        found  = (uintptr_t)start;
    }
    if (device == NULL) {
        return UCS_ERR_NO_ELEM;
    }

    while (atomic_load(&device->users) > 0) {
        ucs_backoff(&rounds);
    }
    pthread_mutex_lock(&gstream_device_lock);
    device->is_taken = 0;
    pthread_mutex_unlock(&gstream_device_lock);
    return UCS_OK;
}
