/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fab_device.c - counters' trigger pages written by a device: by a GPU
 * where there is one, and by the kernel, as its stand-in, through a page that
 * stays pinned.
 */
#include "fab_device.h"
#include "fab_work.h"

#include <stdbool.h> /* fi_cxi_ext.h uses it */
#include <rdma/fi_cxi_ext.h>

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Offsets of the trigger page */
enum {
    CXI_ADD_SUCCESS   = 0,
    CXI_ADD_FAILURE   = 64,
    CXI_RESET_SUCCESS = 128,
    CXI_RESET_FAILURE = 192
};

#define ONLY_CXI "of CXI's interface only"
#define NO_DEVICE \
    "the NIC below cxi is emulated: its pages trap stores of a processor alone"

/** A counter whose trigger page a device has registered. */
typedef struct trigger_page {
    struct fid_cntr        *cntr;
    const fab_device_ops_t *ops;
    fab_device_t           *device;
} trigger_page_t;

static size_t page_length(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void trigger_page_open(fab_side_t *me, const fab_device_ops_t *ops,
                              trigger_page_t *page)
{
    struct fi_cxi_cntr_ops *cntr_ops = NULL;
    void *address                    = NULL;
    size_t length                    = 0;

    page->ops  = ops;
    page->cntr = fab_cntr(me);
    FAB_EQUAL(fi_open_ops(&page->cntr->fid, FI_CXI_COUNTER_OPS, 0,
                          (void**)&cntr_ops, NULL), 0);
    FAB_REQUIRE(cntr_ops != NULL);
    FAB_EQUAL(cntr_ops->get_mmio_addr(&page->cntr->fid, &address, &length), 0);
    /* Whole pages are what a device can register */
    FAB_EQUAL((uintptr_t)address % page_length(), 0);
    page->device = ops->open(address, page_length());
    FAB_REQUIRE(page->device != NULL);
}

static void trigger_page_close(trigger_page_t *page)
{
    page->ops->close(page->device);
    fab_cntr_close(page->cntr);
}

static void store_to(trigger_page_t *page, size_t offset, uint64_t value)
{
    FAB_REQUIRE(page->ops->store(page->device, offset, value));
}

static void reads(fab_side_t *me, trigger_page_t *page, uint64_t value)
{
    uint64_t since = 0;

    while (fi_cntr_read(page->cntr) != value) {
        fab_turn(me, &since);
    }
}

static void reads_error(fab_side_t *me, trigger_page_t *page, uint64_t value)
{
    uint64_t since = 0;

    while (fi_cntr_readerr(page->cntr) != value) {
        fab_turn(me, &since);
    }
}

static void stores_all(fab_side_t *me, const fab_device_ops_t *ops)
{
    trigger_page_t page;

    trigger_page_open(me, ops, &page);
    store_to(&page, CXI_ADD_SUCCESS, 5);
    reads(me, &page, 5);
    store_to(&page, CXI_ADD_SUCCESS, 2);
    reads(me, &page, 7);
    store_to(&page, CXI_ADD_FAILURE, 3);
    reads_error(me, &page, 3);
    store_to(&page, CXI_RESET_FAILURE, 0);
    reads_error(me, &page, 0);
    store_to(&page, CXI_RESET_SUCCESS, 0);
    reads(me, &page, 0);
    trigger_page_close(&page);
}

/* A device's store fires deferred work while its host sleeps in the kernel */
static void store_fires(fab_side_t *me, const fab_device_ops_t *ops)
{
    enum { COUNT = 20 };
    struct fid_cntr *done = fab_cntr(me);
    uint64_t value        = 4;
    fab_work_t *work      = fab_works(me, COUNT);
    char byte             = 'x';
    trigger_page_t page;
    unsigned i;

    trigger_page_open(me, ops, &page);
    for (i = 0; i < COUNT; ++i) {
        fab_work_write(me, &work[i], &value, 8, fab_there(me, 8 * i));
        FAB_EQUAL(fab_queue(me, &work[i], fab_at(page.cntr, i + 1, done)), 0);
        store_to(&page, CXI_ADD_SUCCESS, 1);
        if (me->index == 0) {
            fab_word(me, me->window + (8 * i), 4);
            fab_put(me, &byte, 1);
        } else {
            fab_get_asleep(me, &byte, 1);
        }
        fab_count(me, done, i + 1);
    }
    fab_barrier(me);
    trigger_page_close(&page);
    fab_cntr_close(done);
    free(work);
}

FAB_CASE_CALL(kernel_stores_all, stores_all(me, &fab_device_kernel),
              .sockets = ONLY_CXI, .env = "FAB_HAS_KERNEL",
              .cxi = NO_DEVICE)
FAB_CASE_CALL(kernel_store_fires, store_fires(me, &fab_device_kernel),
              .sockets = ONLY_CXI, .env = "FAB_HAS_KERNEL",
              .cxi = NO_DEVICE)
FAB_CASE_CALL(cuda_stores_all, stores_all(me, &fab_device_cuda),
              .sockets = ONLY_CXI, .env = "FAB_HAS_CUDA",
              .cxi = NO_DEVICE)
FAB_CASE_CALL(cuda_store_fires, store_fires(me, &fab_device_cuda),
              .sockets = ONLY_CXI, .env = "FAB_HAS_CUDA",
              .cxi = NO_DEVICE)

/* In a process of its own, as CUDA does not survive a fork */
static int can_store(const fab_device_ops_t *ops)
{
    void *page = mmap(NULL, page_length(), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fab_device_t *device = ops->open(page, page_length());

    return (page != MAP_FAILED) && (device != NULL) &&
           ops->store(device, CXI_ADD_FAILURE, 7) &&
           (__atomic_load_n((uint64_t*)((char*)page + CXI_ADD_FAILURE),
                            __ATOMIC_ACQUIRE) == 7);
}

static void probe(const fab_device_ops_t *ops, const char *variable)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        _exit(can_store(ops) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    if ((waitpid(child, &status, 0) == child) && (status == 0)) {
        setenv(variable, "1", 1);
    }
}

int main(int argc, char **argv)
{
    probe(&fab_device_kernel, "FAB_HAS_KERNEL");
    probe(&fab_device_cuda, "FAB_HAS_CUDA");
    return fab_main("fab_device", argc, argv);
}
