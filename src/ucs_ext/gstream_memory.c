/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_memory.c - ranges of memory that devices reach, and blocks of such.
 *
 * A range is registered with a runtime when a command first names it, and stays
 * so until it is removed. The ranges are few: words and other small blocks come
 * out of large areas. These stay for the life of the process, as to unregister
 * memory waits for all of a device's streams.
 *
 * To register memory may wait, too: on an H200 while a copy or a kernel finds
 * no room in a stream. So the lock is not held then. The range is marked, and
 * only what names the same range waits.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_fork.h"
#include "gstream_memory.h"

#include <ucs/debug/log_def.h>
#include <ucs/arch/bitops.h>
#include <ucs/arch/cpu.h>
#include <ucs/sys/math.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The least size of an area that blocks are cut from, in bytes */
#define GSTREAM_MEMORY_AREA_SIZE 65536

/* Pieces have the size of a cache line times a power of 2, up to 2^47 bytes */
#define GSTREAM_MEMORY_NUM_SIZES 42


/* In place of a device's address */
#define GSTREAM_MEMORY_UNKNOWN 0          /* Not registered yet */
#define GSTREAM_MEMORY_REFUSED UINT64_MAX /* The runtime does not take it */
#define GSTREAM_MEMORY_BUSY    (UINT64_MAX - 1) /* A thread registers it */


/* A range. All but `mapped` is constant. */
typedef struct gstream_range {
    uintptr_t                 start;
    size_t                    length;
    ucs_gstream_memory_kind_t kind;
    uint64_t                  mapped[UCS_GSTREAM_TYPE_LAST]; /* The device's
                                       address of it; or one of these */
} gstream_range_t;


/* A free block: its first bytes name the next one. */
typedef struct gstream_block {
    struct gstream_block *next;
} gstream_block_t;


/* The ranges in ascending order, and the free blocks by their size; all under
 * the lock. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t  cond;    /* A range is not marked as busy any more */
    gstream_range_t *ranges;
    size_t          count;
    size_t          max;
    gstream_block_t *free[GSTREAM_MEMORY_NUM_SIZES];
} gstream_memory = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .cond = PTHREAD_COND_INITIALIZER
};


/* The number of ranges that start at or below an address: the last of them is
 * the only one that may have it. */
static size_t gstream_memory_upper(uintptr_t address)
{
    size_t low  = 0;
    size_t high = gstream_memory.count;
    size_t middle;

    while (low < high) {
        middle = low + (high - low) / 2;
        if (gstream_memory.ranges[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The range that an address is in; NULL if there is none */
static gstream_range_t *gstream_memory_find(uintptr_t address)
{
    size_t count           = gstream_memory_upper(address);
    gstream_range_t *range = (count > 0) ? &gstream_memory.ranges[count - 1] :
                                           NULL;

    return ((range != NULL) && ((address - range->start) < range->length)) ?
                   range :
                   NULL;
}

/* Whether a thread registers a range with a runtime. The lock is held. */
static int gstream_memory_is_busy(const gstream_range_t *range)
{
    unsigned type;

    for (type = 0; type < UCS_GSTREAM_TYPE_LAST; ++type) {
        if (range->mapped[type] == GSTREAM_MEMORY_BUSY) {
            return 1;
        }
    }
    return 0;
}

/* The range that an address is in, once no thread registers it; NULL if there
 * is none. The lock is held, but not while this waits, so that others may move
 * the ranges. */
static gstream_range_t *gstream_memory_find_idle(uintptr_t address)
{
    gstream_range_t *range;

    while (((range = gstream_memory_find(address)) != NULL) &&
           gstream_memory_is_busy(range)) {
        pthread_cond_wait(&gstream_memory.cond, &gstream_memory.lock);
    }
    return range;
}

static ucs_status_t gstream_memory_insert(const gstream_range_t *range)
{
    uintptr_t page        = sysconf(_SC_PAGESIZE);
    size_t place          = gstream_memory_upper(range->start);
    size_t max            = gstream_memory.max + 16;
    gstream_range_t *last = gstream_memory_find(range->start);
    gstream_range_t *ranges;

    if ((last != NULL) && (last->start == range->start) &&
        (last->length == range->length) && (last->kind == range->kind)) {
        return UCS_OK; /* It is there */
    }

    /* Neighbours may not share its first or last page */
    ranges = gstream_memory.ranges;
    if (((place > 0) &&
         (((ranges[place - 1].start + ranges[place - 1].length - 1) / page) >=
          (range->start / page))) ||
        ((place < gstream_memory.count) &&
         ((ranges[place].start / page) <=
          ((range->start + range->length - 1) / page)))) {
        ucs_error("memory %p: a page of it is in another range",
                  (void*)range->start);
        return UCS_ERR_ALREADY_EXISTS;
    }

    if (gstream_memory.count == gstream_memory.max) {
        ranges = realloc(ranges, max * sizeof(*ranges));
        if (ranges == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        gstream_memory.ranges = ranges;
        gstream_memory.max    = max;
    }
    memmove(&ranges[place + 1], &ranges[place],
            (gstream_memory.count - place) * sizeof(*ranges));
    ranges[place] = *range;
    ++gstream_memory.count;
    return UCS_OK;
}

ucs_status_t ucs_gstream_memory_add(void *start, size_t length,
                                    ucs_gstream_memory_kind_t kind)
{
    gstream_range_t range = {
        .start  = (uintptr_t)start,
        .length = length,
        .kind   = kind
    };
    ucs_status_t status;

    if ((start == NULL) || (length == 0) ||
        ((kind != UCS_GSTREAM_MEMORY_HOST) &&
         (kind != UCS_GSTREAM_MEMORY_IO))) {
        ucs_error("cannot add memory %p of %zu bytes, kind %d", start, length,
                  (int)kind);
        return UCS_ERR_INVALID_PARAM;
    }

    pthread_mutex_lock(&gstream_memory.lock);
    status = gstream_memory_insert(&range);
    pthread_mutex_unlock(&gstream_memory.lock);
    return status;
}

ucs_status_t ucs_gstream_memory_remove(void *start)
{
    ucs_status_t status  = UCS_ERR_NO_ELEM;
    gstream_range_t gone = {.length = 0};
    gstream_range_t *range;
    unsigned type;
    size_t place;

    pthread_mutex_lock(&gstream_memory.lock);
    range = gstream_memory_find_idle((uintptr_t)start);
    if ((range != NULL) && (range->start == (uintptr_t)start)) {
        gone  = *range;
        place = range - gstream_memory.ranges;
        --gstream_memory.count;
        memmove(range, range + 1,
                (gstream_memory.count - place) * sizeof(*range));
        status = UCS_OK;
    }
    pthread_mutex_unlock(&gstream_memory.lock);

    /* Without the lock, as a runtime may wait for its streams here */
    for (type = 0; type < UCS_GSTREAM_TYPE_LAST; ++type) {
        if ((gone.mapped[type] != GSTREAM_MEMORY_UNKNOWN) &&
            (gone.mapped[type] != GSTREAM_MEMORY_REFUSED)) {
            gstream_gpu_unregister((ucs_gstream_type_t)type, start);
        }
    }
    return status;
}

/* Registers a range. The lock is held, but not during the runtime's call: the
 * range stays meanwhile, as it is busy, but not in its place. */
static gstream_range_t *gstream_memory_register(const gstream_gpu_t *gpu,
                                                gstream_range_t *range)
{
    uintptr_t start = range->start;
    size_t length   = range->length;
    int is_io       = (range->kind == UCS_GSTREAM_MEMORY_IO);
    uint64_t mapped = GSTREAM_MEMORY_UNKNOWN;
    int result;

    range->mapped[gpu->type] = GSTREAM_MEMORY_BUSY;
    pthread_mutex_unlock(&gstream_memory.lock);
    result = gstream_gpu_register(gpu, (void*)start, length, is_io, &mapped);
    pthread_mutex_lock(&gstream_memory.lock);
    if ((result == GSTREAM_GPU_INVALID) ||
        (result == GSTREAM_GPU_NOT_SUPPORTED) ||
        (is_io && (result == GSTREAM_GPU_NO_MEMORY))) { /* HIP before 5.6 */
        mapped = GSTREAM_MEMORY_REFUSED;
    } else if (result != GSTREAM_GPU_OK) {
        /* Another reason, such as a capture or lack of memory, may pass */
        mapped = GSTREAM_MEMORY_UNKNOWN;
    }
    range                    = gstream_memory_find(start);
    range->mapped[gpu->type] = mapped;
    pthread_cond_broadcast(&gstream_memory.cond);
    return range;
}

ucs_status_t gstream_memory_map(const gstream_gpu_t *gpu,
                                const volatile uint64_t *word,
                                uint64_t *address_p)
{
    ucs_status_t status = UCS_ERR_NO_ELEM;
    gstream_range_t *range;
    uint64_t mapped;

    pthread_mutex_lock(&gstream_memory.lock);
    range = gstream_memory_find_idle((uintptr_t)word);
    if ((range != NULL) &&
        (range->mapped[gpu->type] == GSTREAM_MEMORY_UNKNOWN)) {
        range = gstream_memory_register(gpu, range);
    }
    if (range != NULL) {
        mapped     = range->mapped[gpu->type];
        status     = ((mapped != GSTREAM_MEMORY_UNKNOWN) &&
                      (mapped != GSTREAM_MEMORY_REFUSED)) ?
                             UCS_OK :
                             UCS_ERR_UNSUPPORTED;
        *address_p = mapped + ((uintptr_t)word - range->start);
    }
    pthread_mutex_unlock(&gstream_memory.lock);
    return status;
}

/* The number of the least size that a length fits in */
static unsigned gstream_memory_size_index(size_t length)
{
    size_t lines = ucs_div_round_up(ucs_max(length, 1),
                                    UCS_ARCH_CACHE_LINE_SIZE);

    return (lines == 1) ? 0 : (ucs_ilog2(lines - 1) + 1);
}

/* In a child that was forked, which has none of the blocks, nor anything that
 * was registered. Nobody else is there. */
void gstream_memory_forked(void)
{
    pthread_mutex_init(&gstream_memory.lock, NULL);
    pthread_cond_init(&gstream_memory.cond, NULL);
    memset(gstream_memory.free, 0, sizeof(gstream_memory.free));
    gstream_memory.count = 0;
}

/* Another area of free blocks. The lock is held. */
static void gstream_memory_grow(unsigned index)
{
    size_t size           = (size_t)UCS_ARCH_CACHE_LINE_SIZE << index;
    gstream_range_t range = {.length = ucs_max(size, GSTREAM_MEMORY_AREA_SIZE)};
    size_t count          = range.length / size;
    gstream_block_t *block;
    void *area;

    area = mmap(NULL, range.length, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) {
        return;
    }
    /* A child process must not get a copy of what devices write to in its
     * parent's place */
    if (gstream_fork_is_on) {
        (void)madvise(area, range.length, MADV_DONTFORK);
    }
    range.start = (uintptr_t)area;
    if (gstream_memory_insert(&range) != UCS_OK) {
        munmap(area, range.length);
        return;
    }
    while (count-- > 0) {
        block                      = UCS_PTR_BYTE_OFFSET(area, count * size);
        block->next                = gstream_memory.free[index];
        gstream_memory.free[index] = block;
    }
}

void *ucs_gstream_memory_get(size_t length)
{
    unsigned index = gstream_memory_size_index(length);
    gstream_block_t *block;

    if (index >= GSTREAM_MEMORY_NUM_SIZES) {
        return NULL;
    }
    pthread_mutex_lock(&gstream_memory.lock);
    if (gstream_memory.free[index] == NULL) {
        gstream_memory_grow(index);
    }
    block = gstream_memory.free[index];
    if (block != NULL) {
        gstream_memory.free[index] = block->next;
    }
    pthread_mutex_unlock(&gstream_memory.lock);
    return block;
}

void ucs_gstream_memory_put(void *start, size_t length)
{
    gstream_block_t *block = start;
    unsigned index         = gstream_memory_size_index(length);

    if (block == NULL) {
        return;
    }
    pthread_mutex_lock(&gstream_memory.lock);
    if (gstream_memory_find((uintptr_t)block) != NULL) { /* not a parent's */
        block->next                = gstream_memory.free[index];
        gstream_memory.free[index] = block;
    }
    pthread_mutex_unlock(&gstream_memory.lock);
}

volatile uint64_t *ucs_gstream_word_get(void)
{
    volatile uint64_t *word = ucs_gstream_memory_get(sizeof(*word));

    if (word != NULL) {
        *word = 0;
    }
    return word;
}

void ucs_gstream_word_put(volatile uint64_t *word)
{
    ucs_gstream_memory_put((void*)word, sizeof(*word));
}
