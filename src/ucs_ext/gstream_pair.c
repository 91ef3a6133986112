/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_pair.c - two streams of devices of which the second one to start
 * copies: cells, and the kernels' arguments.
 *
 * Cells are cut from areas of a device's memory, which stay for the life of the
 * process: to free memory is to wait for the device. A cell that is given back
 * is cleared by the stream for copies, and free when that is done.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_device.h"
#include "gstream_fork.h"
#include "gstream_gpu_stream.h"
#include "gstream_kernels.h"
#include "gstream_memory.h"
#include "api/ucs_gstream_copy.h"
#include "api/ucs_gstream_pair.h"

#include <ucs/debug/assert.h>
#include <ucs/debug/log_def.h>
#include <ucs/sys/math.h>

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Cells of an area */
#define GSTREAM_AREA_CELLS 1024

#define GSTREAM_CELL_SIZE sizeof(ucs_gstream_device_cell_t)
#define GSTREAM_AREA_SIZE (GSTREAM_AREA_CELLS * GSTREAM_CELL_SIZE)

/* So many are free when ucs_gstream_pair_prepare() returns */
#define GSTREAM_AREA_SPARE 64

/* Cells of an area that are being cleared at a time: nobody looks for their end
 * before the next one is given back or needed, and a device's stream has few
 * copies under way */
#define GSTREAM_AREA_CLEARING 8

/* Threads of a kernel that copies: bytes that one copies at a time, how often
 * it does before another block helps, and blocks of which a processor is to
 * have one at most. Fewer leave processors to the application. */
#define GSTREAM_PAIR_THREADS_MIN 32u
#define GSTREAM_PAIR_THREADS_MAX 256u
#define GSTREAM_PAIR_BYTES       64u
#define GSTREAM_PAIR_ROUNDS      4u
#define GSTREAM_PAIR_BLOCKS_MAX  32u

_Static_assert(sizeof(ucs_gstream_pair_record_t) ==
               sizeof(ucs_gstream_device_record_t), "one layout");
_Static_assert(offsetof(ucs_gstream_pair_record_t, halted) ==
               offsetof(ucs_gstream_device_record_t, halted), "one layout");
_Static_assert(offsetof(ucs_gstream_pair_record_t, decided) ==
               offsetof(ucs_gstream_device_record_t, decided), "one layout");
_Static_assert(offsetof(ucs_gstream_pair_record_t, length) ==
               offsetof(ucs_gstream_device_record_t, length), "one layout");
_Static_assert(offsetof(ucs_gstream_pair_record_t, waited) ==
               offsetof(ucs_gstream_device_record_t, waited), "one layout");
_Static_assert(offsetof(ucs_gstream_device_record_t, word) == 0,
               "a record's address is its word's");
_Static_assert(UCS_GSTREAM_PAIRS_MAX == GSTREAM_KERNEL_PAIRS_MANY,
               "a command is a kernel");

typedef struct gstream_area gstream_area_t;

/* Constant but for `next` and `copy`; the lock */
struct ucs_gstream_cell {
    gstream_area_t          *area;
    uint64_t                address;
    struct ucs_gstream_cell *next;  /* in one of the area's lists */
    ucs_gstream_copy_t      copy;   /* that clears it */
};

/* Constant once it is listed, but for what is under the lock */
struct gstream_area {
    gstream_area_t          *next;
    ucs_gstream_type_t      type;
    int                     device;
    unsigned                num_free;  /* the lock, as the next ones */
    unsigned                num_begun; /* of `clearing`, whose copies have */
    ucs_gstream_cell_h      free;
    ucs_gstream_cell_h      clearing;
    struct ucs_gstream_cell cells[GSTREAM_AREA_CELLS];
};

/* What takes long is done without the lock: its holders wait for no stream */
static struct {
    pthread_mutex_t lock;
    gstream_area_t  *areas;
    void            *zeros; /* GSTREAM_AREA_SIZE of them, which copies reach */
    uint64_t        num_keys; /* given to cells so far; atomic */
} gstream_pair = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};


void gstream_pair_forked(void)
{
    pthread_mutex_init(&gstream_pair.lock, NULL);
    gstream_pair.areas = NULL;
    gstream_pair.zeros = NULL;
}

static void gstream_cell_free(ucs_gstream_cell_h cell)
{
    gstream_area_t *area = cell->area;

    cell->next = area->free;
    area->free = cell;
    ++area->num_free;
}

/* Look whether a cell is cleared, or have it be */
static ucs_status_t gstream_cell_clear(ucs_gstream_cell_h cell)
{
    gstream_area_t *area = cell->area;
    ucs_status_t status;

    if ((cell->copy.number == 0) &&
        (area->num_begun == GSTREAM_AREA_CLEARING)) {
        return UCS_INPROGRESS;
    }
    area->num_begun -= (cell->copy.number != 0);
    status           = ucs_gstream_copy_look(&cell->copy);
    area->num_begun += (status == UCS_INPROGRESS) && (cell->copy.number != 0);
    return status;
}

/* Frees cells that have been cleared. One whose copy has failed is lost. The
 * lock is held. */
static void gstream_area_look(gstream_area_t *area)
{
    ucs_gstream_cell_h *next = &area->clearing;
    ucs_gstream_cell_h cell;
    ucs_status_t status;

    while ((cell = *next) != NULL) {
        status = gstream_cell_clear(cell);
        if (status == UCS_INPROGRESS) {
            next = &cell->next;
            continue;
        }
        *next = cell->next;
        if (status == UCS_OK) {
            gstream_cell_free(cell);
        }
    }
}

/* An area of a device with so many free cells; NULL if there is none. The lock
 * is held. */
static gstream_area_t *gstream_area_find(ucs_gstream_type_t type, int device,
                                         unsigned least)
{
    gstream_area_t *area;

    for (area = gstream_pair.areas; area != NULL; area = area->next) {
        if ((area->type == type) && (area->device == device)) {
            if (area->num_free < least) {
                gstream_area_look(area);
            }
            if (area->num_free >= least) {
                return area;
            }
        }
    }
    return NULL;
}

/* What cells are cleared with; NULL without memory */
static const void *gstream_area_zeros(void)
{
    void *zeros;

    pthread_mutex_lock(&gstream_pair.lock);
    if (gstream_pair.zeros == NULL) {
        gstream_pair.zeros = ucs_gstream_memory_get(GSTREAM_AREA_SIZE);
        if (gstream_pair.zeros != NULL) {
            memset(gstream_pair.zeros, 0, GSTREAM_AREA_SIZE);
        }
    }
    zeros = gstream_pair.zeros;
    pthread_mutex_unlock(&gstream_pair.lock);
    return zeros;
}

/* Allocates an area's memory, which is all 0 */
static ucs_status_t gstream_area_allocate(const gstream_gpu_t *gpu, int device,
                                          uint64_t *address_p)
{
    const ucs_gstream_memory_attr_t attr = {
        .type   = gpu->type,
        .device = device
    };
    const void *zeros                    = gstream_area_zeros();
    gstream_copy_stream_t *stream;
    gstream_gpu_place_t last;
    ucs_status_t status;
    int result;

    status = (zeros == NULL) ? UCS_ERR_NO_MEMORY :
                               gstream_copy_get(gpu, device, &stream);
    if (status != UCS_OK) {
        return status;
    }
    /* Registers it: else a cell could not be cleared without waiting */
    if (ucs_gstream_copy_is_pageable(gpu->type, zeros)) {
        return UCS_ERR_UNSUPPORTED;
    }
    result = gstream_gpu_begin(gpu, &stream->place, &last);
    if (result == GSTREAM_GPU_OK) {
        result = gpu->calls.allocate(address_p, GSTREAM_AREA_SIZE);
        gstream_gpu_end(gpu, &last);
    }
    if (!gstream_gpu_is_ok(gpu, result)) {
        ucs_diag("%s: device %d has no memory for pairs of streams: %s",
                 gpu->name, device, gpu->ops->result_name(gpu, result));
        return UCS_ERR_NO_MEMORY;
    }
    return ucs_gstream_memory_copy_by(&attr, (void*)(uintptr_t)*address_p,
                                      zeros, GSTREAM_AREA_SIZE);
}

static ucs_status_t gstream_area_add(const gstream_gpu_t *gpu, int device)
{
    gstream_area_t *area = calloc(1, sizeof(*area));
    uint64_t address     = 0;
    ucs_status_t status;
    unsigned i;

    status = (area == NULL) ? UCS_ERR_NO_MEMORY :
                              gstream_area_allocate(gpu, device, &address);
    if (status != UCS_OK) {
        free(area);
        return status;
    }
    area->type   = gpu->type;
    area->device = device;
    for (i = 0; i < GSTREAM_AREA_CELLS; ++i) {
        area->cells[i].area    = area;
        area->cells[i].address = address + i * GSTREAM_CELL_SIZE;
        gstream_cell_free(&area->cells[i]);
    }
    pthread_mutex_lock(&gstream_pair.lock);
    area->next         = gstream_pair.areas;
    gstream_pair.areas = area;
    pthread_mutex_unlock(&gstream_pair.lock);
    return UCS_OK;
}

ucs_status_t ucs_gstream_pair_prepare(ucs_gstream_type_t type, int device)
{
    const gstream_gpu_t *gpu = gstream_gpu_open(type, 1);
    gstream_copy_stream_t *stream;
    int has_cells;

    if ((gpu == NULL) ||
        (gstream_copy_get(gpu, device, &stream) != UCS_OK) ||
        (gstream_gpu_set_home(type, &stream->place) != UCS_OK) ||
        (gstream_kernels_get(gpu, &stream->place) == NULL)) {
        return UCS_ERR_UNSUPPORTED;
    }
    pthread_mutex_lock(&gstream_pair.lock);
    has_cells = (gstream_area_find(type, device, GSTREAM_AREA_SPARE) != NULL);
    pthread_mutex_unlock(&gstream_pair.lock);
    return has_cells ? UCS_OK : gstream_area_add(gpu, device);
}

ucs_status_t ucs_gstream_pair_reach(ucs_gstream_type_t type, int device,
                                    int other)
{
    const gstream_gpu_t *gpu = gstream_gpu_open(type, 1);
    gstream_copy_stream_t *stream, *peer;
    gstream_gpu_place_t last;
    int result;

    if ((gpu == NULL) || (gstream_copy_get(gpu, device, &stream) != UCS_OK) ||
        (gstream_copy_get(gpu, other, &peer) != UCS_OK)) {
        return UCS_ERR_UNREACHABLE;
    }
    result = gstream_gpu_begin(gpu, &stream->place, &last);
    if (result == GSTREAM_GPU_OK) {
        result = gpu->ops->enable_peer(gpu, &peer->place);
        gstream_gpu_end(gpu, &last);
    }
    if (gstream_gpu_is_ok(gpu, result) ||
        (result == GSTREAM_GPU_PEER_ENABLED)) {
        return UCS_OK;
    }
    ucs_error("%s: kernels of device %d do not reach device %d: %s", gpu->name,
              device, other, gpu->ops->result_name(gpu, result));
    return UCS_ERR_UNREACHABLE;
}

ucs_gstream_cell_h ucs_gstream_cell_get(ucs_gstream_type_t type, int device)
{
    ucs_gstream_cell_h cell = NULL;
    gstream_area_t *area;

    pthread_mutex_lock(&gstream_pair.lock);
    area = gstream_area_find(type, device, 1);
    if (area != NULL) {
        cell       = area->free;
        area->free = cell->next;
        --area->num_free;
    }
    pthread_mutex_unlock(&gstream_pair.lock);
    return cell;
}

void ucs_gstream_cell_put(ucs_gstream_cell_h cell)
{
    gstream_area_t *area;

    if (cell == NULL) {
        return;
    }
    area       = cell->area;
    cell->copy = (ucs_gstream_copy_t){
        .params = {
            .type   = area->type,
            .device = area->device,
            .dst    = (void*)(uintptr_t)cell->address,
            .src    = gstream_pair.zeros,
            .length = GSTREAM_CELL_SIZE
        }
    };
    pthread_mutex_lock(&gstream_pair.lock);
    cell->next     = area->clearing;
    area->clearing = cell;
    gstream_area_look(area);
    pthread_mutex_unlock(&gstream_pair.lock);
}

uint64_t ucs_gstream_cell_address(ucs_gstream_cell_h cell)
{
    return cell->address;
}

int ucs_gstream_pair_device(ucs_gstream_h stream)
{
    const gstream_gpu_stream_t *gpu;

    if (stream->type == UCS_GSTREAM_TYPE_HOST) {
        return -1;
    }
    gpu = gstream_gpu_derived(stream);
    return (gpu->kernels != NULL) ? gpu->place.device : -1;
}

int ucs_gstream_pair_serves(ucs_gstream_h stream, ucs_gstream_type_t type,
                            int device)
{
    return (stream != NULL) && (stream->type == type) &&
           (ucs_gstream_pair_device(stream) == device);
}

/* Managed memory, if each device may have it while the host does */
static int gstream_pair_is_hosts(const gstream_gpu_t *gpu, const void *memory)
{
    int type, is_managed, device;

    if (!gstream_gpu_knows(gpu, memory, &type, &is_managed)) {
        return 0;
    }
    for (device = 0; (is_managed & 0xff) && (device < gpu->num_devices);
         ++device) {
        if (!gstream_gpu_is_hosts(gpu, device)) {
            return 0;
        }
    }
    return 1;
}

ucs_status_t ucs_gstream_pair_address(ucs_gstream_type_t type, int device,
                                      const void *memory, size_t length,
                                      void **address_p)
{
    const gstream_gpu_t *gpu = gstream_gpu_open(type, 1);
    uint64_t first           = 0;
    uint64_t last            = 0;
    gstream_copy_stream_t *stream;
    gstream_gpu_place_t before;

    if ((gpu == NULL) || (gstream_copy_get(gpu, device, &stream) != UCS_OK) ||
        !gstream_pair_is_hosts(gpu, memory) ||
        !gstream_gpu_is_ok(gpu, gstream_gpu_begin(gpu, &stream->place,
                                                  &before))) {
        return UCS_ERR_UNREACHABLE;
    }
    first = gstream_gpu_address(gpu, memory);
    if (first != 0) {
        last = gstream_gpu_address(gpu, UCS_PTR_BYTE_OFFSET(memory,
                                                            length - 1));
    }
    gstream_gpu_end(gpu, &before);
    if ((first == 0) || (last != (first + length - 1))) {
        return UCS_ERR_UNREACHABLE;
    }
    *address_p = (void*)(uintptr_t)first;
    return UCS_OK;
}

/* Sets a kernel's arguments of one start. Registers the records' memory. */
static ucs_status_t gstream_pair_set(const gstream_gpu_t *gpu,
                                     const ucs_gstream_pair_t *pair,
                                     ucs_gstream_device_pair_t *args)
{
    ucs_status_t status;
    uint64_t record;
    uint64_t other;

    status = gstream_memory_map(gpu, &pair->record->word, &record);
    if (status == UCS_OK) {
        status = gstream_memory_map(gpu, &pair->other->word, &other);
    }
    if (status != UCS_OK) {
        ucs_error("%s: the device does not reach the records %p and %p of a "
                  "pair", gpu->name, pair->record, pair->other);
        return UCS_ERR_INVALID_PARAM;
    }
    *args = (ucs_gstream_device_pair_t){
        .is_send   = !!pair->is_send,
        .cell      = pair->cell,
        .record    = record,
        .other     = other,
        .dst       = (uintptr_t)pair->dst,
        .src       = (uintptr_t)pair->src,
        .length    = pair->length,
        .use       = pair->use,
        .dst_width = pair->dst_rows.width,
        .dst_pitch = pair->dst_rows.pitch,
        .src_width = pair->src_rows.width,
        .src_pitch = pair->src_rows.pitch
    };
    return UCS_OK;
}

ucs_status_t gstream_pairs_check(const gstream_gpu_t *gpu,
                                 const ucs_gstream_pair_t *pairs, size_t count)
{
    ucs_status_t status = UCS_OK;
    ucs_gstream_device_pair_t args;
    size_t i;

    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        status = gstream_pair_set(gpu, &pairs[i], &args);
    }
    return status;
}

static uint64_t gstream_pair_rows(const ucs_gstream_rows_t *rows)
{
    return rows->width | ((uint64_t)rows->pitch << 32);
}

/* Gives a cell what kernels of the application need, with a key of its own,
 * which the record gets, too */
static ucs_status_t gstream_cell_write(const ucs_gstream_memory_attr_t *attr,
                                       uint64_t address,
                                       const ucs_gstream_device_cell_t *from,
                                       ucs_gstream_pair_record_t *record,
                                       uint64_t *key_p)
{
    const size_t skip = offsetof(ucs_gstream_device_cell_t, key);
    ucs_gstream_device_cell_t *cell;
    ucs_status_t status;

    cell = ucs_gstream_memory_get(sizeof(*cell));
    if (cell == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    *key_p    = __atomic_add_fetch(&gstream_pair.num_keys, 1, __ATOMIC_RELAXED);
    *cell     = *from;
    cell->key = *key_p;
    /* Kernels may be at work in the cell's other part */
    status = ucs_gstream_memory_copy_by(attr,
                                        (void*)(uintptr_t)(address + skip),
                                        &cell->key, sizeof(*cell) - skip);
    ucs_gstream_memory_put(cell, sizeof(*cell));
    __atomic_store_n(&record->key, *key_p, __ATOMIC_RELEASE);
    return status;
}

ucs_status_t ucs_gstream_pair_describe(ucs_gstream_type_t type, int device,
                                       const ucs_gstream_pair_t *pair,
                                       uint64_t *key_p)
{
    const ucs_gstream_memory_attr_t attr = {
        .type   = type,
        .device = device
    };
    const gstream_gpu_t *gpu             = gstream_gpu_open(type, 1);
    ucs_gstream_device_cell_t cell;
    ucs_gstream_device_pair_t args;
    ucs_status_t status;

    if (gpu == NULL) {
        return UCS_ERR_NO_DEVICE;
    }
    status = gstream_pair_set(gpu, pair, &args);
    if (status != UCS_OK) {
        return status;
    }
    cell = (ucs_gstream_device_cell_t){
        .is_send    = args.is_send,
        .record     = args.record,
        .other      = args.other,
        .dst        = args.dst,
        .src        = args.src,
        .max_length = args.length,
        .dst_rows   = gstream_pair_rows(&pair->dst_rows),
        .src_rows   = gstream_pair_rows(&pair->src_rows),
        .num_words  = 1,
        .words      = {args.record}
    };
    return gstream_cell_write(&attr, pair->cell, &cell, pair->record, key_p);
}

/* The device's address of a word or a trigger page; registers it. An emulated
 * card takes stores of the host alone. */
static ucs_status_t gstream_nics_map(const gstream_gpu_t *gpu,
                                     const volatile uint64_t *word,
                                     unsigned long long *address_p)
{
    uint64_t address;

    if (gstream_device_covers(word) ||
        (gstream_memory_map(gpu, word, &address) != UCS_OK)) {
        return UCS_ERR_UNREACHABLE;
    }
    *address_p = address;
    return UCS_OK;
}

ucs_status_t ucs_gstream_nics_describe(ucs_gstream_type_t type, int device,
                                       const ucs_gstream_nics_t *nics,
                                       uint64_t *key_p)
{
    const ucs_gstream_memory_attr_t attr = {
        .type   = type,
        .device = device
    };
    const gstream_gpu_t *gpu             = gstream_gpu_open(type, 1);
    ucs_gstream_device_cell_t cell       = {
        .is_send    = !!nics->is_send,
        .max_length = nics->length,
        .num_words  = nics->num_parts,
        .weight     = nics->weight
    };
    ucs_status_t status;
    unsigned i;

    if (gpu == NULL) {
        return UCS_ERR_NO_DEVICE;
    }
    status = gstream_nics_map(gpu, &nics->record->word, &cell.record);
    for (i = 0; (i < nics->num_parts) && (status == UCS_OK); ++i) {
        status = gstream_nics_map(gpu, nics->words[i], &cell.words[i]);
        if ((status == UCS_OK) && (nics->pages[i] != NULL)) {
            status = gstream_nics_map(gpu, nics->pages[i], &cell.pages[i]);
        }
    }
    if (status != UCS_OK) {
        return status;
    }
    nics->record->length = nics->length;
    return gstream_cell_write(&attr, nics->cell, &cell, nics->record, key_p);
}

void gstream_pair_size(const gstream_kernels_t *kernels, uint64_t length,
                       gstream_kernel_pair_head_t *head)
{
    uint64_t threads = ucs_div_round_up(length, GSTREAM_PAIR_BYTES *
                                                GSTREAM_PAIR_THREADS_MIN) *
                       GSTREAM_PAIR_THREADS_MIN;
    uint64_t blocks;

    threads = ucs_max(threads, GSTREAM_PAIR_THREADS_MIN);
    threads = ucs_min(threads, ucs_min(kernels->max_threads,
                                       GSTREAM_PAIR_THREADS_MAX));
    blocks  = length / (threads * GSTREAM_PAIR_BYTES * GSTREAM_PAIR_ROUNDS);
    blocks  = ucs_min(blocks, ucs_min(kernels->num_processors,
                                      GSTREAM_PAIR_BLOCKS_MAX));
    head->num_threads = (unsigned)threads;
    head->num_blocks  = (unsigned)ucs_max(blocks, 1);
}

int gstream_pairs_launch(const gstream_kernels_t *kernels, void *native,
                         const ucs_gstream_pair_t *pairs, size_t count)
{
    const gstream_gpu_t *gpu = kernels->gpu;
    int is_few               = (count <= GSTREAM_KERNEL_PAIRS_FEW);
    uint64_t length          = 0;
    gstream_kernel_pairs_many_t args;
    gstream_launch_t launch;
    size_t i;

    ucs_assert(count <= GSTREAM_KERNEL_PAIRS_MANY);
    for (i = 0; i < count; ++i) {
        length = ucs_max(length, pairs[i].length);
        if (gstream_pair_set(gpu, &pairs[i], &args.pairs[i]) != UCS_OK) {
            return GSTREAM_GPU_INVALID;
        }
    }
    gstream_pair_size(kernels, length, &args.head);
    launch = (gstream_launch_t){
        .function = is_few ? kernels->pairs_few : kernels->pairs_many,
        .blocks   = (unsigned)count * args.head.num_blocks,
        .threads  = args.head.num_threads,
        .args     = &args,
        .size     = is_few ? sizeof(gstream_kernel_pairs_few_t) :
                             sizeof(gstream_kernel_pairs_many_t)
    };
    return gstream_kernels_launch(gpu, native, &launch);
}

ucs_status_t ucs_gstream_pair_start(ucs_gstream_type_t type, int device,
                                    const ucs_gstream_pair_t *pair)
{
    const gstream_gpu_t *gpu = gstream_gpu_open(type, 1);
    const gstream_kernels_t *kernels;
    gstream_copy_stream_t *stream;
    gstream_gpu_place_t last;
    ucs_status_t status;
    int result;

    if (gpu == NULL) {
        return UCS_ERR_NO_DEVICE;
    }
    status = gstream_copy_get(gpu, device, &stream);
    if (status != UCS_OK) {
        return status;
    }
    kernels = gstream_kernels_get(gpu, &stream->place);
    if (kernels == NULL) {
        return UCS_ERR_UNSUPPORTED;
    }
    status = gstream_pairs_check(gpu, pair, 1);
    if (status != UCS_OK) {
        return status;
    }
    result = gstream_gpu_begin(gpu, &stream->place, &last);
    if (result == GSTREAM_GPU_OK) {
        result = gstream_pairs_launch(kernels, stream->native, pair, 1);
        gstream_gpu_end(gpu, &last);
    }
    return gstream_gpu_status(gpu, result, "start of a pair of streams");
}

ucs_status_t ucs_gstream_pair_look(ucs_gstream_type_t type, int device)
{
    const gstream_gpu_t *gpu = gstream_gpu_open(type, 1);
    gstream_copy_stream_t *stream;
    ucs_status_t status;

    if ((gpu == NULL) || (gstream_copy_get(gpu, device, &stream) != UCS_OK)) {
        return UCS_ERR_IO_ERROR;
    }
    status = gstream_copy_query(gpu, stream);
    return UCS_STATUS_IS_ERR(status) ? UCS_ERR_IO_ERROR : status;
}
