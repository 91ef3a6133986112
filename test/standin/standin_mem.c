/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_mem.c - the memory that streams may use.
 *
 * Device memory is a file without a name that is mapped twice: the application
 * has the address of a mapping that refuses it, the runtime's threads use the
 * other one. Kernels have the application's addresses, so the first mapping
 * must serve them: with protection keys of the processor it is open for the
 * queues' threads alone; without, for all while a kernel runs.
 *
 * The file is also what an IPC handle names: /proc/PID/fd/FD.
 */
#include "standin.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STANDIN_IPC_MAGIC 0x5354414e44494e31ull


static standin_range_t *standin_ranges;
static uint64_t standin_ids;
static unsigned standin_kernels; /* That run now */
static int standin_key = -1;


static uint64_t standin_page(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Protection */

static int standin_protect_mode(void)
{
    static int is_asked;

    if (!is_asked && standin_set.protect) {
        is_asked    = 1;
        standin_key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    }
    if (!standin_set.protect) {
        return STANDIN_PROTECT_NONE;
    }
    return (standin_key >= 0) ? STANDIN_PROTECT_KEYS : STANDIN_PROTECT_WINDOW;
}

int standin_has_protection(void)
{
    int mode;

    standin_settings();
    pthread_mutex_lock(&standin_lock);
    mode = standin_protect_mode();
    pthread_mutex_unlock(&standin_lock);
    return mode;
}

static int standin_is_device(const standin_range_t *range)
{
    return (range->kind == STANDIN_DEVICE) || (range->kind == STANDIN_IPC);
}

/* The application's mapping of a device's memory, as it is to be now */
static int standin_protect(const standin_range_t *range)
{
    void *address = (void*)(uintptr_t)range->dev;
    int open      = PROT_READ | PROT_WRITE;

    switch (standin_protect_mode()) {
    case STANDIN_PROTECT_KEYS:
        return pkey_mprotect(address, range->mapped, open, standin_key);
    case STANDIN_PROTECT_WINDOW:
        return mprotect(address, range->mapped,
                        (standin_kernels > 0) ? open : PROT_NONE);
    default:
        return 0;
    }
}

static void standin_protect_all(void)
{
    const standin_range_t *range;

    if (standin_protect_mode() != STANDIN_PROTECT_WINDOW) {
        return;
    }
    for (range = standin_ranges; range != NULL; range = range->next) {
        if (standin_is_device(range)) {
            (void)standin_protect(range);
        }
    }
}

void standin_mem_kernel_begin(void)
{
    if (standin_kernels++ == 0) {
        standin_protect_all();
    }
}

void standin_mem_kernel_end(void)
{
    if (--standin_kernels == 0) {
        standin_protect_all();
    }
}

void standin_mem_thread_begin(void)
{
    pthread_mutex_lock(&standin_lock);
    if (standin_protect_mode() == STANDIN_PROTECT_KEYS) {
        (void)pkey_set(standin_key, 0);
    }
    pthread_mutex_unlock(&standin_lock);
}

/* Ranges */

static int standin_is_within(uint64_t start, size_t size, uint64_t address)
{
    return (start != 0) && (address >= start) && (address - start < size);
}

standin_range_t *standin_mem_find(uint64_t address, int is_dev)
{
    standin_range_t *range = standin_ranges;

    while ((range != NULL) &&
           !standin_is_within(range->dev, range->size, address) &&
           (is_dev || !standin_is_within(range->host, range->size, address))) {
        range = range->next;
    }
    return range;
}

static uint64_t standin_offset(const standin_range_t *range, uint64_t address)
{
    return standin_is_within(range->dev, range->size, address) ?
           address - range->dev : address - range->host;
}

int standin_mem_holds(const standin_range_t *range, uint64_t address,
                      size_t size)
{
    return size <= range->size - standin_offset(range, address);
}

char *standin_mem_inner(const standin_range_t *range, uint64_t address)
{
    return range->inner + standin_offset(range, address);
}

static standin_range_t *standin_range_new(standin_ctx_t *ctx, int kind,
                                          size_t size)
{
    size_t page            = standin_page();
    standin_range_t *range = calloc(1, sizeof(*range));

    if (range != NULL) {
        range->kind   = kind;
        range->size   = size;
        range->mapped = (size + page - 1) / page * page;
        range->device = ctx->device;
        range->ctx    = ctx;
        range->fd     = -1;
        range->id     = ++standin_ids;
    }
    return range;
}

static void standin_range_add(standin_range_t *range)
{
    range->next    = standin_ranges;
    standin_ranges = range;
}

/* Wait until no command uses it, and give back all that it has */
static void standin_range_remove(standin_range_t *range)
{
    standin_range_t **range_p = &standin_ranges;

    while (*range_p != range) {
        range_p = &(*range_p)->next;
    }
    *range_p = range->next;
    while (range->users > 0) {
        pthread_cond_wait(&standin_done, &standin_lock);
    }
    if (range->kind == STANDIN_DEVICE) {
        standin_devices[range->device].used -= range->size;
    }
    if (range->kind != STANDIN_REGISTERED) {
        munmap(range->inner, range->mapped);
    }
    if (range->dev != (uintptr_t)range->inner) {
        munmap((void*)(uintptr_t)(range->dev & ~(standin_page() - 1)),
               range->mapped);
    }
    if (range->fd >= 0) {
        close(range->fd);
    }
    free(range);
}

void standin_mem_end_ctx(standin_ctx_t *ctx)
{
    standin_range_t *range = standin_ranges;

    while (range != NULL) {
        if (range->ctx == ctx) {
            standin_range_remove(range);
            range = standin_ranges;
        } else {
            range = range->next;
        }
    }
}

/* Both mappings of a device's memory */
static int standin_map(standin_range_t *range)
{
    int rw = PROT_READ | PROT_WRITE;
    struct stat info;
    void *outer;

    if ((range->fd < 0) || (fstat(range->fd, &info) != 0)) {
        return STANDIN_ERR_MAP;
    }
    range->inode = info.st_ino;
    range->inner = mmap(NULL, range->mapped, rw, MAP_SHARED, range->fd, 0);
    if (range->inner == MAP_FAILED) {
        return STANDIN_ERR_NO_MEMORY;
    }
    outer = mmap(NULL, range->mapped, rw, MAP_SHARED, range->fd, 0);
    if (outer == MAP_FAILED) {
        munmap(range->inner, range->mapped);
        return STANDIN_ERR_NO_MEMORY;
    }
    range->dev = (uintptr_t)outer;
    if (standin_protect(range) != 0) {
        munmap(outer, range->mapped);
        munmap(range->inner, range->mapped);
        return STANDIN_ERR_NO_MEMORY;
    }
    return STANDIN_OK;
}

static int standin_map_device(standin_range_t *range)
{
    standin_device_t *dev = &standin_devices[range->device];

    if ((standin_set.memory > 0) &&
        ((range->size > standin_set.memory) ||
         (dev->used > standin_set.memory - range->size))) {
        return STANDIN_ERR_NO_MEMORY;
    }
    range->fd = memfd_create("standin", MFD_CLOEXEC);
    if ((range->fd < 0) || (ftruncate(range->fd, (off_t)range->mapped) != 0) ||
        (standin_map(range) != STANDIN_OK)) {
        return STANDIN_ERR_NO_MEMORY;
    }
    dev->used += range->size;
    return STANDIN_OK;
}

static int standin_map_host(standin_range_t *range)
{
    void *address = mmap(NULL, range->mapped, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (address == MAP_FAILED) {
        return STANDIN_ERR_NO_MEMORY;
    }
    range->inner = address;
    range->dev   = (uintptr_t)address;
    range->host  = range->dev;
    return STANDIN_OK;
}

int standin_mem_alloc(size_t size, int kind, unsigned flags, uint64_t *dev)
{
    standin_range_t *range;
    standin_ctx_t *ctx;
    int err;

    STANDIN_TRY(standin_enter_ctx(&ctx));
    err = standin_capture_check();
    if (err != STANDIN_OK) {
        return standin_leave(err);
    }
    if ((size == 0) || (size > SIZE_MAX / 4)) {
        return standin_leave((size == 0) ? STANDIN_ERR_INVALID :
                             STANDIN_ERR_NO_MEMORY);
    }
    range = standin_range_new(ctx, kind, size);
    if (range == NULL) {
        return standin_leave(STANDIN_ERR_NO_MEMORY);
    }
    range->flags = flags;
    err          = (kind == STANDIN_DEVICE) ? standin_map_device(range) :
                   standin_map_host(range);
    if (err != STANDIN_OK) {
        if (range->fd >= 0) {
            close(range->fd);
        }
        free(range);
        return standin_leave(err);
    }
    standin_range_add(range);
    *dev = range->dev;
    return standin_leave(STANDIN_OK);
}

/* As the runtimes do it: waits for all that the device has to do by then */
int standin_mem_free(uint64_t address, int is_host)
{
    standin_range_t *range;
    standin_ctx_t *ctx;
    int err;

    STANDIN_TRY(standin_enter_any(&ctx));
    range = standin_mem_find(address, 1);
    if ((range == NULL) || (range->dev != address) ||
        (is_host ? range->kind != STANDIN_PINNED :
                   ((range->kind != STANDIN_DEVICE) &&
                    (range->kind != STANDIN_SIGNAL) &&
                    (range->kind != STANDIN_MANAGED)))) {
        return standin_leave(STANDIN_ERR_INVALID);
    }
    err   = standin_stream_idle(range->device, NULL);
    range = standin_mem_find(address, 1);
    if (range != NULL) {
        standin_range_remove(range);
    }
    return standin_leave(err);
}

/* Registered memory */

static int standin_overlaps(uint64_t start, size_t size)
{
    const standin_range_t *range;

    for (range = standin_ranges; range != NULL; range = range->next) {
        if ((range->host != 0) && (start < range->host + range->size) &&
            (range->host < start + size)) {
            return 1;
        }
    }
    return 0;
}

/* All pages are there; whether they may be read is not asked */
static int standin_is_mapped(uint64_t start, size_t size)
{
    uint64_t page = standin_page();
    unsigned char in_core;

    for (start -= start % page; size > 0;) {
        if (mincore((void*)(uintptr_t)start, page, &in_core) != 0) {
            return 0;
        }
        start += page;
        size  -= (size < page) ? size : page;
    }
    return 1;
}

/* A second mapping, where the memory is one that can be shared */
static void standin_map_offset(standin_range_t *range)
{
    uint64_t page = standin_page();
    uint64_t skip = range->host % page;
    size_t mapped = (range->size + skip + page - 1) / page * page;
    void *address = mremap((void*)(uintptr_t)(range->host - skip), 0, mapped,
                           MREMAP_MAYMOVE);

    if (address != MAP_FAILED) {
        range->dev    = (uintptr_t)address + skip;
        range->mapped = mapped;
    }
}

int standin_mem_register(void *host, size_t size, int is_io, unsigned flags)
{
    standin_range_t *range;
    standin_ctx_t *ctx;
    int err;

    STANDIN_TRY(standin_enter_ctx(&ctx));
    err = standin_capture_check();
    if (err != STANDIN_OK) {
        return standin_leave(err);
    }
    ++standin_count.registers;
    standin_wait_held(STANDIN_HOLD_REGISTER);
    if ((host == NULL) || (size == 0) ||
        !standin_is_mapped((uintptr_t)host, size)) {
        return standin_leave(STANDIN_ERR_INVALID);
    }
    if (standin_overlaps((uintptr_t)host, size)) {
        return standin_leave(STANDIN_ERR_REGISTERED);
    }
    standin_wait_launches(ctx->device);
    if (is_io && !standin_set.iomemory) {
        return standin_leave(standin_kind.is_hip ? STANDIN_ERR_INVALID :
                             STANDIN_ERR_NOT_PERMITTED);
    }
    range = standin_range_new(ctx, STANDIN_REGISTERED, size);
    if (range == NULL) {
        return standin_leave(STANDIN_ERR_NO_MEMORY);
    }
    range->is_io = is_io;
    range->flags = flags;
    range->host  = (uintptr_t)host;
    range->dev   = range->host;
    range->inner = host;
    if (standin_set.offset) {
        standin_map_offset(range);
    }
    standin_range_add(range);
    return standin_leave(STANDIN_OK);
}

/* Waits as a free does */
int standin_mem_unregister(void *host)
{
    standin_range_t *range;
    standin_ctx_t *ctx;
    int err;

    STANDIN_TRY(standin_enter_any(&ctx));
    err = standin_capture_check();
    if (err != STANDIN_OK) {
        return standin_leave(err);
    }
    range = standin_mem_find((uintptr_t)host, 0);
    if ((range == NULL) || (range->kind != STANDIN_REGISTERED) ||
        (range->host != (uintptr_t)host)) {
        return standin_leave(STANDIN_ERR_NOT_REGISTERED);
    }
    err   = standin_stream_idle(range->device, NULL);
    range = standin_mem_find((uintptr_t)host, 0);
    if (range != NULL) {
        standin_range_remove(range);
    }
    return standin_leave(err);
}

int standin_mem_device_pointer(void *host, uint64_t *dev)
{
    const standin_range_t *range;
    standin_ctx_t *ctx;

    STANDIN_TRY(standin_enter_ctx(&ctx));
    range = standin_mem_find((uintptr_t)host, 0);
    if ((range == NULL) ||
        !standin_is_within(range->host, range->size, (uintptr_t)host)) {
        return standin_leave(STANDIN_ERR_INVALID);
    }
    *dev = range->dev + ((uintptr_t)host - range->host);
    return standin_leave(STANDIN_OK);
}

int standin_mem_info(uint64_t address, standin_info_t *info)
{
    const standin_range_t *range;
    uint64_t offset;

    STANDIN_TRY(standin_enter());
    range = standin_mem_find(address, 0);
    if (range == NULL) {
        return standin_leave(STANDIN_ERR_INVALID);
    }
    offset       = standin_offset(range, address);
    info->kind   = range->kind;
    info->device = range->device;
    info->flags  = range->flags;
    info->ctx    = range->ctx;
    info->dev    = range->dev + offset;
    info->host   = (range->host == 0) ? 0 : range->host + offset;
    info->start  = range->dev;
    info->size   = range->size;
    info->id     = range->id;
    return standin_leave(STANDIN_OK);
}

/* Memory for NICs: by its address or as a file descriptor, which stands for the
 * one of a dmabuf and can be mapped, too */

void *standin_dma(const void *address, size_t size)
{
    uint64_t start = (uintptr_t)address;
    standin_range_t *range;
    void *inner = NULL;

    pthread_mutex_lock(&standin_lock);
    range = standin_mem_find(start, 1);
    if ((range != NULL) && standin_is_device(range) &&
        standin_mem_holds(range, start, size)) {
        inner = standin_mem_inner(range, start);
    }
    pthread_mutex_unlock(&standin_lock);
    return inner;
}

/* One that cannot be mapped is any file that has no memory */
static int standin_export(const standin_range_t *range, int *fd)
{
    *fd = (standin_set.dmabuf == 2) ? eventfd(0, EFD_CLOEXEC) :
                                      fcntl(range->fd, F_DUPFD_CLOEXEC, 0);
    return (*fd < 0) ? STANDIN_ERR_NO_MEMORY : STANDIN_OK;
}

int standin_mem_export(uint64_t address, size_t size, int *fd)
{
    uint64_t page = standin_page();
    const standin_range_t *range;
    standin_ctx_t *ctx;
    int err;

    STANDIN_TRY(standin_enter_ctx(&ctx));
    range = standin_mem_find(address, 1);
    if (!standin_set.dmabuf) {
        err = STANDIN_ERR_UNSUPPORTED;
    } else if ((range == NULL) || (range->kind != STANDIN_DEVICE) ||
               (address != range->dev) || (size % page) ||
               (size > range->mapped)) {
        err = STANDIN_ERR_INVALID;
    } else {
        err = standin_export(range, fd);
    }
    return standin_leave(err);
}

/* As ROCr has it: of the whole allocation, and any part of it */
int standin_mem_share(uint64_t address, size_t size, int *fd, uint64_t *offset)
{
    const standin_range_t *range;
    int err;

    STANDIN_TRY(standin_enter());
    range = standin_mem_find(address, 1);
    if (!standin_set.dmabuf) {
        err = STANDIN_ERR_UNSUPPORTED;
    } else if ((range == NULL) || (range->kind != STANDIN_DEVICE) ||
               (size > range->mapped) ||
               (address - range->dev > range->mapped - size)) {
        err = STANDIN_ERR_INVALID;
    } else {
        *offset = address - range->dev;
        err     = standin_export(range, fd);
    }
    return standin_leave(err);
}

/* IPC handles */

int standin_mem_ipc_get(uint64_t address, standin_ipc_t *handle)
{
    const standin_range_t *range;
    standin_ctx_t *ctx;

    STANDIN_TRY(standin_enter_ctx(&ctx));
    range = standin_mem_find(address, 1);
    if ((range == NULL) || (range->kind != STANDIN_DEVICE) ||
        !standin_set.ipc) {
        return standin_leave(STANDIN_ERR_INVALID);
    }
    *handle = (standin_ipc_t){
        .magic  = STANDIN_IPC_MAGIC,
        .inode  = range->inode,
        .size   = range->size,
        .offset = address - range->dev,
        .pid    = getpid(),
        .fd     = range->fd,
        .device = range->device
    };
    return standin_leave(STANDIN_OK);
}

static int standin_ipc_map(standin_ctx_t *ctx, const standin_ipc_t *handle,
                           standin_range_t **range_p)
{
    standin_range_t *range = standin_range_new(ctx, STANDIN_IPC, handle->size);
    char path[64];
    int err;

    if (range == NULL) {
        return STANDIN_ERR_NO_MEMORY;
    }
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle->pid, handle->fd);
    range->device = handle->device;
    range->fd     = open(path, O_RDWR | O_CLOEXEC);
    err           = standin_map(range);
    if ((err == STANDIN_OK) && (range->inode != handle->inode)) {
        munmap(range->inner, range->mapped);
        munmap((void*)(uintptr_t)range->dev, range->mapped);
        err = STANDIN_ERR_MAP; /* Another file has that number now */
    }
    if (err != STANDIN_OK) {
        if (range->fd >= 0) {
            close(range->fd);
        }
        free(range);
        return err;
    }
    standin_range_add(range);
    *range_p = range;
    return STANDIN_OK;
}

/* As the runtimes do it: once a process; not in the one that exported it */
int standin_mem_ipc_open(const standin_ipc_t *handle, uint64_t *dev)
{
    standin_range_t *range;
    standin_ctx_t *ctx;
    int err;

    STANDIN_TRY(standin_enter_ctx(&ctx));
    err = standin_kind.is_hip ? STANDIN_OK : standin_capture_check();
    if (err != STANDIN_OK) {
        return standin_leave(err);
    }
    standin_wait_held(STANDIN_HOLD_OPEN);
    if ((handle->magic != STANDIN_IPC_MAGIC) ||
        (standin_device_check(handle->device) != STANDIN_OK)) {
        return standin_leave(STANDIN_ERR_INVALID);
    }
    if (handle->pid == getpid()) {
        return standin_leave(STANDIN_ERR_CONTEXT);
    }
    if ((handle->device != ctx->device) && !standin_set.peer) {
        return standin_leave(STANDIN_ERR_NO_PEER);
    }
    for (range = standin_ranges; range != NULL; range = range->next) {
        if ((range->kind == STANDIN_IPC) && (range->ctx == ctx) &&
            (range->inode == handle->inode)) {
            break;
        }
    }
    if (range == NULL) {
        err = standin_ipc_map(ctx, handle, &range);
    }
    if (err == STANDIN_OK) {
        ++range->opens;
        ++standin_count.opens;
        *dev = range->dev + (standin_kind.is_hip ? handle->offset : 0);
    }
    return standin_leave(err);
}

/* Waits as a free does: the runtimes leave open whether they do */
int standin_mem_ipc_close(uint64_t address)
{
    standin_range_t *range;
    standin_ctx_t *ctx;
    int err;

    STANDIN_TRY(standin_enter_any(&ctx));
    range = standin_mem_find(address, 1);
    if ((range == NULL) || (range->kind != STANDIN_IPC)) {
        return standin_leave(STANDIN_ERR_INVALID);
    }
    ++standin_devices[ctx->device].closing;
    err = standin_stream_idle(ctx->device, NULL);
    --standin_devices[ctx->device].closing;
    pthread_cond_broadcast(&standin_done);
    range = standin_mem_find(address, 1);
    ++standin_count.closes;
    if ((range != NULL) && (--range->opens == 0)) {
        standin_range_remove(range);
    }
    return standin_leave(err);
}
