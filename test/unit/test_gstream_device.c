/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gstream_device.c - stores of host streams that a function takes. */
#include "gstream_util.h"
#include "st_cunit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define DEVICES 40

#define STREAMS 4
#define STORES  2000


/* A device with two registers that add up what is stored to them */
typedef struct {
    uint64_t         words[2]; /* Its range */
    _Atomic uint64_t sums[2];
    _Atomic unsigned calls;
} device_t;

static void device_store(void *arg, size_t offset, uint64_t value)
{
    device_t *device = arg;

    atomic_fetch_add(&device->sums[offset / sizeof(uint64_t)], value);
    atomic_fetch_add(&device->calls, 1);
}

static void device_add(device_t *device)
{
    CU_ASSERT_EQUAL(ucs_gstream_device_add(device->words, sizeof(device->words),
                                           device_store, device),
                    UCS_OK);
}

/* Each store is an event, and memory stays as it was; beside the range it is
 * memory that is stored to */
ST_CASE(each)
{
    ucs_gstream_h stream = gstream_util_create();
    device_t device      = {{0}};
    uint64_t other       = 0;

    device_add(&device);
    gstream_util_write(stream, &device.words[0], 1);
    gstream_util_write(stream, &device.words[0], 1);
    gstream_util_write(stream, &device.words[1], 5);
    gstream_util_write(stream, &other, 7);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT(atomic_load(&device.calls) == 3);
    CU_ASSERT(atomic_load(&device.sums[0]) == 2);
    CU_ASSERT(atomic_load(&device.sums[1]) == 5);
    CU_ASSERT((device.words[0] == 0) && (device.words[1] == 0));
    CU_ASSERT(other == 7);
    CU_ASSERT_EQUAL(ucs_gstream_device_remove(device.words), UCS_OK);
    gstream_util_finish(stream);
}

/* Memory again once the range is gone */
ST_CASE(removed)
{
    ucs_gstream_h stream = gstream_util_create();
    device_t device      = {{0}};

    device_add(&device);
    CU_ASSERT_EQUAL(ucs_gstream_device_remove(device.words), UCS_OK);
    CU_ASSERT_EQUAL(ucs_gstream_device_remove(device.words), UCS_ERR_NO_ELEM);
    gstream_util_write(stream, &device.words[0], 3);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    CU_ASSERT(device.words[0] == 3);
    CU_ASSERT(atomic_load(&device.calls) == 0);
    gstream_util_finish(stream);
}

ST_CASE(streams)
{
    ucs_gstream_h streams[STREAMS];
    device_t device = {{0}};
    int i, j;

    device_add(&device);
    for (i = 0; i < STREAMS; ++i) {
        streams[i] = gstream_util_create();
    }
    for (j = 0; j < STORES; ++j) {
        for (i = 0; i < STREAMS; ++i) {
            gstream_util_write(streams[i], &device.words[j % 2], 1);
        }
    }
    for (i = 0; i < STREAMS; ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(streams[i]), UCS_OK);
    }
    CU_ASSERT(atomic_load(&device.sums[0]) == STREAMS * STORES / 2);
    CU_ASSERT(atomic_load(&device.sums[1]) == STREAMS * STORES / 2);
    CU_ASSERT_EQUAL(ucs_gstream_device_remove(device.words), UCS_OK);
    for (i = 0; i < STREAMS; ++i) {
        gstream_util_finish(streams[i]);
    }
}

/* As many as there are; what cannot be is refused */
ST_CASE(many)
{
    ucs_gstream_h stream      = gstream_util_create();
    device_t devices[DEVICES] = {{{0}}};
    int i;

    CU_ASSERT_EQUAL(ucs_gstream_device_add(NULL, 8, device_store, NULL),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_device_add(devices, 0, device_store, NULL),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_device_add(devices, 8, NULL, NULL),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_device_remove(NULL), UCS_ERR_INVALID_PARAM);
    for (i = 0; i < DEVICES; ++i) {
        device_add(&devices[i]);
    }
    for (i = 0; i < DEVICES; ++i) {
        gstream_util_write(stream, &devices[i].words[0], 1 + i);
    }
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(stream), UCS_OK);
    for (i = 0; i < DEVICES; ++i) {
        CU_ASSERT(atomic_load(&devices[i].sums[0]) == 1 + (uint64_t)i);
        CU_ASSERT_EQUAL(ucs_gstream_device_remove(devices[i].words), UCS_OK);
    }
    gstream_util_finish(stream);
}

/* A device whose function takes its time */
typedef struct {
    uint64_t    words[2];
    _Atomic int is_in;
    _Atomic int is_late; /* It was let go by time alone */
    _Atomic int go;
} slow_t;

static void slow_store(void *arg, size_t offset, uint64_t value)
{
    uint64_t end = gstream_util_clock(CLOCK_MONOTONIC) + 60000000000ull;
    slow_t *slow = arg;

    atomic_store(&slow->is_in, 1);
    while (!atomic_load(&slow->go) && !atomic_load(&slow->is_late)) {
        sched_yield();
        atomic_store(&slow->is_late,
                     gstream_util_clock(CLOCK_MONOTONIC) > end);
    }
}

static void *slow_remove(void *arg)
{
    slow_t *slow = arg;

    CU_ASSERT_EQUAL(ucs_gstream_device_remove(slow->words), UCS_OK);
    CU_ASSERT(atomic_load(&slow->go));
    return NULL;
}

/* Whoever waits for the end of a store keeps nobody from adding and removing */
ST_CASE(remove_waits)
{
    ucs_gstream_h stream = gstream_util_create();
    slow_t slow          = {{0}};
    device_t device      = {{0}};
    pthread_t thread;

    CU_ASSERT_EQUAL(ucs_gstream_device_add(slow.words, 8, slow_store, &slow),
                    UCS_OK);
    gstream_util_write(stream, &slow.words[0], 1);
    while (!atomic_load(&slow.is_in)) {
        sched_yield();
    }
    CU_ASSERT_FATAL(pthread_create(&thread, NULL, slow_remove, &slow) == 0);
    gstream_util_pass_time(50); /* for the remover to begin to wait */
    device_add(&device);
    CU_ASSERT_EQUAL(ucs_gstream_device_remove(device.words), UCS_OK);
    CU_ASSERT(!atomic_load(&slow.is_late));
    atomic_store(&slow.go, 1);
    pthread_join(thread, NULL);
    gstream_util_finish(stream);
}

ST_SUITE("gstream_device")
