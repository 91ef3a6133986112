/* SPDX-License-Identifier: BSD-3-Clause */
/* test_gstream_device.c - stores of host streams that a function takes. */
#include "gstream_util.h"
#include "st_cunit.h"

#include <stdatomic.h>

#define MAX_DEVICES 16

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

/* What cannot be is refused */
ST_CASE(limits)
{
    device_t devices[MAX_DEVICES + 1] = {{{0}}};
    int i;

    CU_ASSERT_EQUAL(ucs_gstream_device_add(NULL, 8, device_store, NULL),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_device_add(devices, 0, device_store, NULL),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_device_add(devices, 8, NULL, NULL),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucs_gstream_device_remove(NULL), UCS_ERR_INVALID_PARAM);
    for (i = 0; i < MAX_DEVICES; ++i) {
        device_add(&devices[i]);
    }
    CU_ASSERT_EQUAL(ucs_gstream_device_add(devices[i].words, 8, device_store,
                                           &devices[i]),
                    UCS_ERR_NO_RESOURCE);
    for (i = 0; i < MAX_DEVICES; ++i) {
        CU_ASSERT_EQUAL(ucs_gstream_device_remove(devices[i].words), UCS_OK);
    }
}

ST_SUITE("gstream_device")
