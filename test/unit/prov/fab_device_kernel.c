/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fab_device_kernel.c - stores by the kernel to registered memory, by io_uring:
 * the page is pinned for as long as it is registered, as by a device's driver,
 * and a thread of the kernel's copies a file's bytes into it.
 */
#include "fab_device.h"

#include <linux/io_uring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct fab_device {
    int                  ring;
    int                  file;
    uint8_t              *page;
    uint8_t              *rings;   /* both, one mapping */
    size_t               rings_length;
    struct io_uring_sqe  *sqe;     /* the only entry */
    uint32_t             *sq_tail;
    uint32_t             *sq_array;
    uint32_t             *cq_head;
    uint32_t             *cq_tail;
    struct io_uring_cqe  *cqes;
    uint32_t             cq_mask;
};

static size_t larger(size_t a, size_t b)
{
    return (a > b) ? a : b;
}

static int kernel_map(fab_device_t *device,
                      const struct io_uring_params *params)
{
    int prot = PROT_READ | PROT_WRITE;
    void *sqes;

    if (!(params->features & IORING_FEAT_SINGLE_MMAP)) {
        return 0;
    }
    device->rings_length =
            larger(params->sq_off.array + (params->sq_entries * 4),
                   params->cq_off.cqes + (params->cq_entries *
                                          sizeof(struct io_uring_cqe)));
    device->rings = mmap(NULL, device->rings_length, prot,
                         MAP_SHARED | MAP_POPULATE, device->ring,
                         IORING_OFF_SQ_RING);
    sqes          = mmap(NULL, params->sq_entries * sizeof(*device->sqe), prot,
                         MAP_SHARED | MAP_POPULATE, device->ring,
                         IORING_OFF_SQES);
    if ((device->rings == MAP_FAILED) || (sqes == MAP_FAILED)) {
        return 0;
    }
    device->sqe      = sqes;
    device->sq_tail  = (uint32_t*)(device->rings + params->sq_off.tail);
    device->sq_array = (uint32_t*)(device->rings + params->sq_off.array);
    device->cq_head  = (uint32_t*)(device->rings + params->cq_off.head);
    device->cq_tail  = (uint32_t*)(device->rings + params->cq_off.tail);
    device->cqes     = (struct io_uring_cqe*)(device->rings +
                                              params->cq_off.cqes);
    device->cq_mask  = params->cq_entries - 1;
    return 1;
}

static int kernel_register(fab_device_t *device, size_t length)
{
    struct iovec iov = {.iov_base = device->page, .iov_len = length};

    return syscall(__NR_io_uring_register, device->ring,
                   IORING_REGISTER_BUFFERS, &iov, 1) == 0;
}

static void kernel_close(fab_device_t *device)
{
    close(device->ring);
    close(device->file);
    free(device);
}

static fab_device_t *kernel_open(void *page, size_t length)
{
    struct io_uring_params params;
    fab_device_t *device = calloc(1, sizeof(*device));

    if (device == NULL) {
        return NULL;
    }
    memset(&params, 0, sizeof(params));
    device->page = page;
    device->ring = (int)syscall(__NR_io_uring_setup, 1, &params);
    device->file = memfd_create("fab_device", MFD_CLOEXEC);
    if ((device->ring < 0) || (device->file < 0) ||
        !kernel_map(device, &params) || !kernel_register(device, length)) {
        kernel_close(device);
        return NULL;
    }
    return device;
}

/* One request at a time: nobody else moves the rings */
static int kernel_store(fab_device_t *device, size_t offset, uint64_t value)
{
    uint32_t tail = *device->sq_tail;
    uint32_t head = *device->cq_head;
    int result;

    if (pwrite(device->file, &value, sizeof(value), 0) != sizeof(value)) {
        return 0;
    }
    memset(device->sqe, 0, sizeof(*device->sqe));
    device->sqe->opcode = IORING_OP_READ_FIXED;
    device->sqe->flags  = IOSQE_ASYNC; /* not in the caller's thread */
    device->sqe->fd     = device->file;
    device->sqe->addr   = (uintptr_t)device->page + offset;
    device->sqe->len    = sizeof(value);
    device->sq_array[0] = 0;
    __atomic_store_n(device->sq_tail, tail + 1, __ATOMIC_RELEASE);
    if (syscall(__NR_io_uring_enter, device->ring, 1, 1,
                IORING_ENTER_GETEVENTS, NULL, 0) != 1) {
        return 0;
    }
    if (__atomic_load_n(device->cq_tail, __ATOMIC_ACQUIRE) == head) {
        return 0;
    }
    result = device->cqes[head & device->cq_mask].res;
    __atomic_store_n(device->cq_head, head + 1, __ATOMIC_RELEASE);
    return result == sizeof(value);
}

const fab_device_ops_t fab_device_kernel = {
    .name  = "kernel",
    .open  = kernel_open,
    .store = kernel_store,
    .close = kernel_close
};
