/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fab_device.h - something other than this process's threads that stores to its
 * memory, through pages that it keeps pinned as a device's driver does.
 */
#ifndef FAB_DEVICE_H_
#define FAB_DEVICE_H_

#include <stddef.h>
#include <stdint.h>

/** A device with one registered page. */
typedef struct fab_device fab_device_t;

/** What can store. */
typedef struct fab_device_ops {
    const char   *name;
    /** Register a page of host memory; NULL if that is not to be had here. */
    fab_device_t *(*open)(void *page, size_t length);
    /** Store 8 bytes at an offset of the page, and wait until it has done so;
     *  non-zero on success. The caller does not store. */
    int          (*store)(fab_device_t *device, size_t offset, uint64_t value);
    void         (*close)(fab_device_t *device);
} fab_device_ops_t;

/** A GPU, through CUDA's driver; opened when it is needed. */
extern const fab_device_ops_t fab_device_cuda;

/** The kernel, which reads a file into the page as a disk's driver would, from
 *  a thread of its own: a stand-in where there is no GPU. */
extern const fab_device_ops_t fab_device_kernel;

#endif
