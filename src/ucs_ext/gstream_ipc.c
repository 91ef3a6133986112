/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_ipc.c - memory of devices that processes of one node give to each
 * other.
 *
 * A handle names a whole allocation. It is asked for where that begins, as HIP
 * adds to the address that it opens what lay between. Memory is opened in the
 * primary context of the device that copies: CUDA wants all handles of a
 * device to be opened in one context of a process.
 *
 * What is open is found by its handle and that device. An allocation that is
 * made where a freed one was has another handle ("a unique handle for the new
 * memory", cuIpcGetMemHandle() and hipIpcGetMemHandle()), so what is found is
 * what was asked for.
 *
 * To close memory is to wait for the device's streams, and meanwhile copies of
 * other threads wait (CUDA 13.0, on an H200), which may be what those streams
 * wait for. So memory is closed while no stream of the process waits, as far as
 * this library has enqueued it; waits that come then wait for the end of the
 * call. Behind its waits a stream stores a number, a *mark*, while there is
 * memory of other processes. Either the closer sees that a wait has begun, or
 * its thread sees that memory is being closed (both seq-cst):
 *
 *     thread [gstream_ipc_begin_waits]     closer
 *     add 1 to the stream's waits          set is_closing
 *     wait while is_closing                give up if a stream's last mark is
 *     enqueue the waits and the mark         not the number of its waits
 *                                          close, clear is_closing
 *
 * To open memory takes long, and may be to wait for a call of another thread.
 * So a thread opens that holds nothing, and another one closes, which opens
 * need not wait for. Each ends when it has nothing to do.
 *
 *            asked for             the opener         the last user goes
 *   (none) -----------> to be opened --------> open ---------------------+
 *                            |                                           |
 *                            +--------> failed, without users: freed     |
 *   (none) <------------- taken out, closed by the closer <--------------+
 *
 * Memory without users is found, too, until it is being closed: then it is out
 * of the list, and is opened once more if it is asked for meanwhile, which the
 * runtimes count.
 *
 * Memory of the host that is to be registered is in the same list: that takes
 * as long, and to unregister it is to wait for the streams, too. It is never
 * found there: its one caller holds it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_fork.h"
#include "gstream_gpu.h"
#include "gstream_memory.h"
#include "gstream_thread.h"

#include <ucs/algorithm/crc.h>
#include <ucs/debug/log_def.h>
#include <ucs/sys/math.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long the closer pauses while streams wait, ns: at first, and at most.
 * Streams may wait for minutes, and nothing waits for the closer: it looks less
 * often than ucs_backoff() does */
#define GSTREAM_IPC_PAUSE_MIN 1000000
#define GSTREAM_IPC_PAUSE_MAX 64000000

/* In place of a device: memory of the host */
#define GSTREAM_IPC_HOST (-1)


/* An allocation of another process, or memory of the host. Constant but for
 * what says otherwise. */
struct ucs_gstream_ipc {
    struct ucs_gstream_ipc *next;  /* In the list; under the lock */
    unsigned               users;  /* Under the lock; 0: to be closed */
    ucs_status_t           status; /* Atomic; UCS_INPROGRESS: to be opened */
    ucs_gstream_type_t     type;
    int                    device; /* That copies; or GSTREAM_IPC_HOST */
    gstream_gpu_place_t    place;  /* Where it was opened; written before
                                      `status`, as are the next two */
    uint64_t               address;
    uint64_t               length; /* From there to the allocation's end */
    uint8_t                handle[UCS_GSTREAM_IPC_HANDLE];
    ucs_gstream_ipc_host_t host;   /* GSTREAM_IPC_HOST: what the caller said */
};


/* A runtime's devices. Written once, under their lock, before `is_known`. */
typedef struct gstream_ipc_devices {
    int      is_known; /* Atomic */
    unsigned count;
    uint32_t names[UCS_GSTREAM_IPC_DEVICES];
    uint32_t reach[UCS_GSTREAM_IPC_DEVICES]; /* Bits: others that it reaches */
} gstream_ipc_devices_t;


/* No call of a runtime is made with `lock` */
static struct {
    pthread_mutex_t        lock;
    struct ucs_gstream_ipc *list;
    int                    has_opener; /* A thread opens what is to be */
    int                    has_closer; /* ... closes what has no users */
    int                    has_memory; /* The list is not empty; atomic */
    int                    is_closing; /* Atomic; cleared under the lock */
    pthread_cond_t         closed;
    pthread_mutex_t        device_lock;
    gstream_ipc_devices_t  devices[UCS_GSTREAM_TYPE_LAST];
} gstream_ipc = {
    .lock        = PTHREAD_MUTEX_INITIALIZER,
    .closed      = PTHREAD_COND_INITIALIZER,
    .device_lock = PTHREAD_MUTEX_INITIALIZER
};


void gstream_ipc_forked(void)
{
    pthread_mutex_init(&gstream_ipc.lock, NULL);
    pthread_mutex_init(&gstream_ipc.device_lock, NULL);
    pthread_cond_init(&gstream_ipc.closed, NULL);
    gstream_ipc.list       = NULL;
    gstream_ipc.has_opener = 0;
    gstream_ipc.has_closer = 0;
    __atomic_store_n(&gstream_ipc.has_memory, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&gstream_ipc.is_closing, 0, __ATOMIC_RELAXED);
}

static int gstream_ipc_is_complete(const gstream_gpu_ipc_calls_t *calls)
{
    return (calls->get_pci != NULL) && (calls->can_access != NULL) &&
           (calls->get_allocation != NULL) && (calls->get_handle != NULL) &&
           (calls->open != NULL) && (calls->close != NULL);
}

/* The runtime, if it can be used for this */
static const gstream_gpu_t *gstream_ipc_gpu(unsigned type)
{
    const gstream_gpu_t *gpu;

    if ((type == UCS_GSTREAM_TYPE_HOST) || (type >= UCS_GSTREAM_TYPE_LAST)) {
        return NULL;
    }
    gpu = gstream_gpu_open((ucs_gstream_type_t)type, 1);
    return ((gpu != NULL) && gstream_ipc_is_complete(&gpu->calls.ipc)) ? gpu :
                                                                        NULL;
}

/* Of where a device is and its UUID: parts of a device have one place, and some
 * devices one UUID. 0 if it is not known */
static uint32_t gstream_ipc_name(const gstream_gpu_t *gpu, int device)
{
    char pci[32]     = "";
    uint8_t uuid[16] = {0};
    uint32_t name;

    if (!gstream_gpu_is_ok(gpu, gpu->calls.ipc.get_pci(pci, sizeof(pci),
                                                       device))) {
        return 0;
    }
    name = ucs_crc32(0, pci, strlen(pci));
    if ((gpu->calls.ipc.get_uuid != NULL) &&
        gstream_gpu_is_ok(gpu, gpu->calls.ipc.get_uuid(uuid, device))) {
        name = ucs_crc32(name, uuid, sizeof(uuid));
    }
    return (name != 0) ? name : 1;
}

/* Devices of one name are not known */
static void gstream_ipc_forget_equals(gstream_ipc_devices_t *devices)
{
    uint32_t equals = 0;
    unsigned i, j;

    for (i = 0; i < devices->count; ++i) {
        for (j = 0; j < i; ++j) {
            if (devices->names[i] == devices->names[j]) {
                equals |= UCS_BIT(i) | UCS_BIT(j);
            }
        }
    }
    for (i = 0; i < devices->count; ++i) {
        devices->names[i] = (equals & UCS_BIT(i)) ? 0 : devices->names[i];
    }
}

static int gstream_ipc_can_access(const gstream_gpu_t *gpu, unsigned device,
                                  unsigned peer)
{
    int can = 0;

    return gstream_gpu_is_ok(gpu, gpu->calls.ipc.can_access(&can, (int)device,
                                                            (int)peer)) &&
           can;
}

static void gstream_ipc_ask(const gstream_gpu_t *gpu,
                            gstream_ipc_devices_t *devices)
{
    unsigned count = ucs_min((unsigned)gpu->num_devices,
                             UCS_GSTREAM_IPC_DEVICES);
    unsigned i, j;

    for (i = 0; i < count; ++i) {
        devices->names[i] = gstream_ipc_name(gpu, (int)i);
        devices->reach[i] = UCS_BIT(i);
        for (j = 0; j < count; ++j) {
            if ((i != j) && gstream_ipc_can_access(gpu, i, j)) {
                devices->reach[i] |= UCS_BIT(j);
            }
        }
    }
    devices->count = count;
    gstream_ipc_forget_equals(devices);
}

static const gstream_ipc_devices_t *
gstream_ipc_get_devices(const gstream_gpu_t *gpu)
{
    gstream_ipc_devices_t *devices = &gstream_ipc.devices[gpu->type];

    if (__atomic_load_n(&devices->is_known, __ATOMIC_ACQUIRE)) {
        return devices;
    }
    pthread_mutex_lock(&gstream_ipc.device_lock);
    if (!devices->is_known) {
        gstream_ipc_ask(gpu, devices);
        __atomic_store_n(&devices->is_known, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&gstream_ipc.device_lock);
    return devices;
}

unsigned ucs_gstream_ipc_reach(ucs_gstream_type_t type, int device,
                               uint32_t *devices, unsigned max)
{
    const gstream_gpu_t *gpu = gstream_ipc_gpu(type);
    unsigned count           = 0;
    const gstream_ipc_devices_t *all;
    unsigned i;

    if (gpu == NULL) {
        return 0;
    }
    all = gstream_ipc_get_devices(gpu);
    if (device >= (int)all->count) {
        return 0;
    }
    for (i = 0; (i < all->count) && (count < max); ++i) {
        if ((all->names[i] == 0) ||
            ((device >= 0) && !(all->reach[device] & UCS_BIT(i)))) {
            continue;
        }
        devices[count++] = all->names[i];
    }
    return count;
}

int ucs_gstream_ipc_find(ucs_gstream_type_t type, uint32_t device)
{
    const gstream_gpu_t *gpu = gstream_ipc_gpu(type);
    const gstream_ipc_devices_t *all;
    unsigned i;

    if ((gpu == NULL) || (device == 0)) {
        return -1;
    }
    all = gstream_ipc_get_devices(gpu);
    for (i = 0; i < all->count; ++i) {
        if (all->names[i] == device) {
            return (int)i;
        }
    }
    return -1;
}

/* The handle of an allocation that has all of the memory. A result of the
 * runtime. */
static int gstream_ipc_get_handle(const gstream_gpu_t *gpu, uint64_t address,
                                  size_t length, ucs_gstream_ipc_key_t *key)
{
    uint64_t start                  = 0;
    size_t whole                    = 0;
    gstream_gpu_ipc_handle_t handle = {{0}};
    int result;

    result = gpu->calls.ipc.get_allocation(&start, &whole, address);
    if (result != GSTREAM_GPU_OK) {
        return result;
    }
    if ((address - start > whole) || (length > whole - (address - start))) {
        return GSTREAM_GPU_INVALID;
    }
    result = gpu->calls.ipc.get_handle(&handle, start);
    if (result == GSTREAM_GPU_OK) {
        memcpy(key->handle, handle.bytes, sizeof(key->handle));
        key->offset = address - start;
    }
    return result;
}

void ucs_gstream_ipc_get_key(const void *address, size_t length,
                             const ucs_gstream_memory_attr_t *attr,
                             int is_given, ucs_gstream_ipc_key_t *key)
{
    const gstream_gpu_t *gpu = gstream_ipc_gpu(attr->type);
    int result               = GSTREAM_GPU_NO_DEVICE;
    const gstream_ipc_devices_t *all;
    gstream_copy_stream_t *stream;
    gstream_gpu_place_t last;

    memset(key, 0, sizeof(*key));
    key->type = attr->type;
    if ((gpu == NULL) || attr->is_managed) {
        return;
    }
    all = gstream_ipc_get_devices(gpu);
    if ((attr->device < 0) || (attr->device >= (int)all->count)) {
        return;
    }
    key->device = all->names[attr->device];
    /* The stream is made here if it is not there: its copies need it later */
    if ((key->device == 0) ||
        (gstream_copy_get(gpu, attr->device, &stream) != UCS_OK) ||
        !is_given) {
        return;
    }
    result = gstream_gpu_begin(gpu, &stream->place, &last);
    if (result == GSTREAM_GPU_OK) {
        result = gstream_ipc_get_handle(gpu, (uintptr_t)address, length, key);
        gstream_gpu_end(gpu, &last);
    }
    key->is_given = gstream_gpu_is_ok(gpu, result);
    if (!key->is_given) {
        ucs_debug("%s: memory %p of %zu bytes has no handle for other "
                  "processes: %s", gpu->name, address, length,
                  gpu->ops->result_name(gpu, result));
    }
}

static ucs_status_t gstream_ipc_status(ucs_gstream_ipc_h ipc)
{
    return __atomic_load_n(&ipc->status, __ATOMIC_ACQUIRE);
}

/* What is open, or to be opened, with one more user; NULL if it is not. The
 * lock is held. */
static ucs_gstream_ipc_h gstream_ipc_take(const ucs_gstream_ipc_key_t *key,
                                          int device)
{
    ucs_gstream_ipc_h ipc = gstream_ipc.list;

    while ((ipc != NULL) &&
           ((ipc->type != key->type) || (ipc->device != device) ||
            UCS_STATUS_IS_ERR(gstream_ipc_status(ipc)) ||
            memcmp(ipc->handle, key->handle, sizeof(ipc->handle)))) {
        ipc = ipc->next;
    }
    if (ipc != NULL) {
        ++ipc->users;
    }
    return ipc;
}

/* Lists an allocation that is to be opened. The lock is held. */
static ucs_gstream_ipc_h gstream_ipc_list(const ucs_gstream_ipc_key_t *key,
                                          int device)
{
    ucs_gstream_ipc_h ipc = calloc(1, sizeof(*ipc));

    if (ipc != NULL) {
        memcpy(ipc->handle, key->handle, sizeof(ipc->handle));
        ipc->type        = (ucs_gstream_type_t)key->type;
        ipc->device      = device;
        ipc->status      = UCS_INPROGRESS;
        ipc->users       = 1;
        ipc->next        = gstream_ipc.list;
        gstream_ipc.list = ipc;
        __atomic_store_n(&gstream_ipc.has_memory, 1, __ATOMIC_RELAXED);
    }
    return ipc;
}

/* Where one without users is listed that is not being opened; NULL if there is
 * none. The lock is held. */
static ucs_gstream_ipc_h *gstream_ipc_find_unused(void)
{
    ucs_gstream_ipc_h *ipc_p = &gstream_ipc.list;

    while ((*ipc_p != NULL) &&
           (((*ipc_p)->users > 0) ||
            (gstream_ipc_status(*ipc_p) == UCS_INPROGRESS))) {
        ipc_p = &(*ipc_p)->next;
    }
    return (*ipc_p != NULL) ? ipc_p : NULL;
}

/* Closes one that is out of the list. Where the device is lost the memory is
 * gone with it; a child that was forked has none. */
static void gstream_ipc_end(ucs_gstream_ipc_h ipc)
{
    const gstream_gpu_t *gpu = gstream_gpu_open(ipc->type, 1);
    gstream_gpu_place_t last;

    if (ipc->device == GSTREAM_IPC_HOST) {
        if (ipc->status == UCS_OK) {
            (void)ucs_gstream_memory_remove(ipc->host.start);
        }
        ipc->host.closed(ipc->host.arg);
    } else if ((ipc->status == UCS_OK) && (gpu != NULL) &&
               gstream_gpu_is_ok(gpu, gstream_gpu_begin(gpu, &ipc->place,
                                                        &last))) {
        (void)gstream_gpu_is_ok(gpu, gpu->calls.ipc.close(ipc->address));
        gstream_gpu_end(gpu, &last);
    }
    free(ipc);
}

/* Closes one if no stream waits; whether it did. The lock is held, but not
 * during the runtime's call. */
static int gstream_ipc_try_end(ucs_gstream_ipc_h *ipc_p)
{
    ucs_gstream_ipc_h ipc = *ipc_p;
    int is_quiet;

    __atomic_store_n(&gstream_ipc.is_closing, 1, __ATOMIC_SEQ_CST);
    is_quiet = gstream_share_is_quiet();
    if (is_quiet) {
        *ipc_p = ipc->next;
        __atomic_store_n(&gstream_ipc.has_memory, gstream_ipc.list != NULL,
                         __ATOMIC_RELAXED);
        pthread_mutex_unlock(&gstream_ipc.lock);
        gstream_ipc_end(ipc);
        pthread_mutex_lock(&gstream_ipc.lock);
    }
    __atomic_store_n(&gstream_ipc.is_closing, 0, __ATOMIC_SEQ_CST);
    pthread_cond_broadcast(&gstream_ipc.closed);
    return is_quiet;
}

uint64_t gstream_ipc_begin_waits(gstream_share_t *share)
{
    uint64_t number = __atomic_add_fetch(&share->waits, 1, __ATOMIC_SEQ_CST);

    if (__atomic_load_n(&gstream_ipc.is_closing, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&gstream_ipc.lock);
        while (gstream_ipc.is_closing) {
            pthread_cond_wait(&gstream_ipc.closed, &gstream_ipc.lock);
        }
        pthread_mutex_unlock(&gstream_ipc.lock);
    }
    return __atomic_load_n(&gstream_ipc.has_memory, __ATOMIC_RELAXED) ? number :
                                                                        0;
}

/* Closes all that has no users, once no stream waits */
static void gstream_ipc_closer(void *arg)
{
    struct timespec pause = {.tv_nsec = GSTREAM_IPC_PAUSE_MIN};
    ucs_gstream_ipc_h *ipc_p;

    (void)arg;
    pthread_mutex_lock(&gstream_ipc.lock);
    while ((ipc_p = gstream_ipc_find_unused()) != NULL) {
        if (gstream_ipc_try_end(ipc_p)) {
            pause.tv_nsec = GSTREAM_IPC_PAUSE_MIN;
            continue;
        }
        pthread_mutex_unlock(&gstream_ipc.lock);
        (void)nanosleep(&pause, NULL);
        pause.tv_nsec = ucs_min(2 * pause.tv_nsec, GSTREAM_IPC_PAUSE_MAX);
        pthread_mutex_lock(&gstream_ipc.lock);
    }
    gstream_ipc.has_closer = 0;
    pthread_mutex_unlock(&gstream_ipc.lock);
}

/* Has a thread run, if it does not. The lock is held. */
static ucs_status_t gstream_ipc_run(int *is_there, void (*func)(void *arg))
{
    ucs_status_t status = UCS_OK;

    if (!*is_there) {
        status    = gstream_thread_start_alone("memory of other processes",
                                               func, NULL);
        *is_there = (status == UCS_OK);
    }
    return status;
}

/* How long what was opened is; without a bound if the runtime does not know. It
 * is asked where the memory was opened. */
static uint64_t gstream_ipc_length(const gstream_gpu_t *gpu, uint64_t address)
{
    uint64_t start = 0;
    size_t whole   = 0;
    int result     = gpu->calls.ipc.get_allocation(&start, &whole, address);

    return ((result == GSTREAM_GPU_OK) && (address - start <= whole)) ?
           (whole - (address - start)) : UINT64_MAX;
}

/* Registers memory of the host */
static ucs_status_t gstream_ipc_register(ucs_gstream_ipc_h ipc)
{
    const gstream_gpu_t *gpu = gstream_gpu_open(ipc->type, 1);
    ucs_status_t status;

    status = ucs_gstream_memory_add(ipc->host.start, ipc->host.length,
                                    UCS_GSTREAM_MEMORY_HOST);
    if (status != UCS_OK) {
        return status;
    }
    ipc->length = ipc->host.length;
    status      = gstream_memory_map(gpu, ipc->host.start, &ipc->address);
    if (status != UCS_OK) {
        /* The runtime may know parts of it, which the application registered */
        (void)ucs_gstream_memory_remove(ipc->host.start);
    }
    return status;
}

/* Opens an allocation, without the lock */
static ucs_status_t gstream_ipc_make(ucs_gstream_ipc_h ipc)
{
    const gstream_gpu_t *gpu = gstream_gpu_open(ipc->type, 1);
    gstream_gpu_ipc_handle_t handle;
    gstream_copy_stream_t *stream;
    gstream_gpu_place_t last;
    ucs_status_t status;
    int result;

    status = gstream_copy_get(gpu, ipc->device, &stream);
    if (status != UCS_OK) {
        return status;
    }
    memcpy(handle.bytes, ipc->handle, sizeof(handle.bytes));
    ipc->place = stream->place;
    result     = gstream_gpu_begin(gpu, &ipc->place, &last);
    if (result == GSTREAM_GPU_OK) {
        result = gpu->calls.ipc.open(&ipc->address, handle,
                                     gpu->ops->flag(gpu,
                                                    GSTREAM_GPU_IPC_PEER));
        if (result == GSTREAM_GPU_OK) {
            ipc->length = gstream_ipc_length(gpu, ipc->address);
        }
        gstream_gpu_end(gpu, &last);
    }
    return gstream_gpu_status(gpu, result, "memory of another process cannot "
                              "be opened");
}

/* Opens all that is to be. What is in progress stays in the list. */
static void gstream_ipc_opener(void *arg)
{
    ucs_gstream_ipc_h ipc;
    ucs_status_t status;

    (void)arg;
    pthread_mutex_lock(&gstream_ipc.lock);
    for (;;) {
        ipc = gstream_ipc.list;
        while ((ipc != NULL) && (gstream_ipc_status(ipc) != UCS_INPROGRESS)) {
            ipc = ipc->next;
        }
        if (ipc == NULL) {
            break;
        }
        pthread_mutex_unlock(&gstream_ipc.lock);
        status = (ipc->device == GSTREAM_IPC_HOST) ?
                         gstream_ipc_register(ipc) :
                         gstream_ipc_make(ipc);
        pthread_mutex_lock(&gstream_ipc.lock);
        /* Behind this it may be closed by its users */
        __atomic_store_n(&ipc->status, status, __ATOMIC_RELEASE);
        if (ipc->users == 0) {
            (void)gstream_ipc_run(&gstream_ipc.has_closer, gstream_ipc_closer);
        }
    }
    gstream_ipc.has_opener = 0;
    pthread_mutex_unlock(&gstream_ipc.lock);
}

ucs_status_t ucs_gstream_ipc_open(const ucs_gstream_ipc_key_t *key, int device,
                                  ucs_gstream_ipc_h *ipc_p)
{
    const gstream_gpu_t *gpu = gstream_ipc_gpu(key->type);
    ucs_status_t status      = UCS_OK;
    ucs_gstream_ipc_h ipc;

    if ((gpu == NULL) || !key->is_given) {
        ucs_error("memory of another process's device: %s",
                  (gpu == NULL) ? "its runtime cannot open it here" :
                                  "it has no handle");
        return UCS_ERR_UNSUPPORTED;
    }
    pthread_mutex_lock(&gstream_ipc.lock);
    ipc = gstream_ipc_take(key, device);
    if (ipc == NULL) {
        ipc    = gstream_ipc_list(key, device);
        status = (ipc == NULL) ? UCS_ERR_NO_MEMORY :
                                 gstream_ipc_run(&gstream_ipc.has_opener,
                                                 gstream_ipc_opener);
    }
    if ((status != UCS_OK) && (ipc != NULL)) {
        gstream_ipc.list = ipc->next; /* where it was listed just now */
        free(ipc);
    }
    pthread_mutex_unlock(&gstream_ipc.lock);
    if (status == UCS_OK) {
        *ipc_p = ipc;
    }
    return status;
}

ucs_status_t ucs_gstream_ipc_open_host(const ucs_gstream_ipc_host_t *host,
                                       ucs_gstream_ipc_h *ipc_p)
{
    const ucs_gstream_ipc_key_t key = {.type = host->type};
    ucs_status_t status             = UCS_ERR_NO_MEMORY;
    ucs_gstream_ipc_h ipc;

    if (gstream_gpu_open(host->type, 1) == NULL) {
        return UCS_ERR_UNSUPPORTED;
    }
    pthread_mutex_lock(&gstream_ipc.lock);
    ipc = gstream_ipc_list(&key, GSTREAM_IPC_HOST);
    if (ipc != NULL) {
        ipc->host = *host;
        status    = gstream_ipc_run(&gstream_ipc.has_opener,
                                    gstream_ipc_opener);
        if (status == UCS_OK) {
            *ipc_p = ipc;
        } else {
            gstream_ipc.list = ipc->next;
            free(ipc);
        }
    }
    pthread_mutex_unlock(&gstream_ipc.lock);
    return status;
}

void ucs_gstream_ipc_hold(ucs_gstream_ipc_h ipc)
{
    pthread_mutex_lock(&gstream_ipc.lock);
    ++ipc->users;
    if (UCS_STATUS_IS_ERR(gstream_ipc_status(ipc)) &&
        (gstream_ipc_run(&gstream_ipc.has_opener, gstream_ipc_opener) ==
         UCS_OK)) {
        __atomic_store_n(&ipc->status, UCS_INPROGRESS, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&gstream_ipc.lock);
}

ucs_status_t ucs_gstream_ipc_look(ucs_gstream_ipc_h ipc, void **address_p,
                                  uint64_t *length_p)
{
    ucs_status_t status = gstream_ipc_status(ipc);

    if (status == UCS_OK) {
        *address_p = (void*)(uintptr_t)ipc->address;
        *length_p  = ipc->length;
    }
    return status;
}

void ucs_gstream_ipc_close(ucs_gstream_ipc_h ipc)
{
    if (ipc == NULL) {
        return;
    }
    pthread_mutex_lock(&gstream_ipc.lock);
    --ipc->users;
    /* Without a thread it stays open until the next one is closed. The opener
     * has one that it is at be closed. */
    if ((ipc->users == 0) && (gstream_ipc_status(ipc) != UCS_INPROGRESS)) {
        (void)gstream_ipc_run(&gstream_ipc.has_closer, gstream_ipc_closer);
    }
    pthread_mutex_unlock(&gstream_ipc.lock);
}
