/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_shm.c - memory that processes of one node share.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* F_GET_SEALS */
#endif

#include "direct/st_direct_shm.h"
#include "core/st_log.h"
#include "core/st_worker.h"

#include <ucs_backoff.h>
#include <ucs_fork.h>
#include <ucs_memfd.h>

#include <ucs/sys/math.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define UCP_ST_DIRECT_LABEL "ucp-st"

static pthread_mutex_t ucp_st_direct_map_lock = PTHREAD_MUTEX_INITIALIZER;
static UCS_LIST_HEAD(ucp_st_direct_maps); /* ucp_st_direct_map_t */

void ucp_st_direct_maps_fork_begin(void)
{
    ucs_fork_lock(&ucp_st_direct_map_lock);
}

int ucp_st_direct_maps_fork_end(int is_child)
{
    int is_whole = ucs_fork_has(&ucp_st_direct_map_lock);

    ucs_fork_unlock(&ucp_st_direct_map_lock, is_child);
    return is_whole;
}

ucs_status_t ucp_st_direct_file_get(int fd, ucp_st_direct_file_t *file)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return UCS_ERR_IO_ERROR;
    }
    file->dev = st.st_dev;
    file->ino = st.st_ino;
    file->pid = getpid();
    file->fd  = fd;
    return UCS_OK;
}

/* The link's text is looked at first: to open a file of another kind may have
 * effects */
int ucp_st_direct_file_open(const ucp_st_direct_file_t *file,
                            const char *prefix, int flags)
{
    char path[64], text[64];
    struct stat st;
    ssize_t length;
    int fd;

    snprintf(path, sizeof(path), "/proc/%u/fd/%u", file->pid, file->fd);
    length = readlink(path, text, sizeof(text));
    if ((length < (ssize_t)strlen(prefix)) ||
        memcmp(text, prefix, strlen(prefix))) {
        return -1;
    }
    fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return -1;
    }
    if ((fstat(fd, &st) != 0) || (st.st_dev != file->dev) ||
        (st.st_ino != file->ino) || (st.st_uid != geteuid())) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The kernel writes all of a shared mapping to a core file, also pages that
 * nobody has written to, for which it takes memory meanwhile. So nothing of it
 * goes there unless it is asked for; a peer's files are in the peer's. */
static ucs_status_t
ucp_st_direct_map_add(int fd, size_t length, const ucp_st_direct_file_t *file,
                      ucp_st_direct_map_t **map_p)
{
    ucp_st_direct_map_t *map = calloc(1, sizeof(*map));

    if (map == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    map->address = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                        0);
    if (map->address == MAP_FAILED) {
        free(map);
        return UCS_ERR_NO_MEMORY;
    }
    (void)madvise(map->address, length, MADV_DONTDUMP);
    map->length = length;
    map->file   = *file;
    map->refs   = 1;
    map->fd     = -1;
    ucs_list_add_head(&ucp_st_direct_maps, &map->list);
    *map_p = map;
    return UCS_OK;
}

ucs_status_t ucp_st_direct_map_create(size_t length,
                                      ucp_st_direct_map_t **map_p)
{
    ucp_st_direct_file_t file;
    ucs_status_t status;
    int fd;

    fd = ucs_memfd_create(UCP_ST_DIRECT_LABEL, length);
    if (fd < 0) {
        return (fd == -EFBIG) ? UCS_ERR_NO_MEMORY : UCS_ERR_IO_ERROR;
    }
    status = ucp_st_direct_file_get(fd, &file);
    if (status == UCS_OK) {
        (void)pthread_mutex_lock(&ucp_st_direct_map_lock);
        status = ucp_st_direct_map_add(fd, length, &file, map_p);
        if (status == UCS_OK) {
            (*map_p)->fd        = fd;
            (*map_p)->is_strict = ucs_memfd_is_strict();
        }
        (void)pthread_mutex_unlock(&ucp_st_direct_map_lock);
    }
    if (status != UCS_OK) {
        close(fd);
    }
    return status;
}

ucs_status_t ucp_st_direct_map_commit(const ucp_st_direct_map_t *map,
                                      size_t offset, size_t length)
{
    return (!map->is_strict ||
            (ucs_memfd_take(map->fd, offset, length) == 0)) ?
           UCS_OK : UCS_ERR_NO_MEMORY;
}

void ucp_st_direct_map_dump(const ucp_st_direct_map_t *map, size_t offset,
                            size_t length)
{
    (void)madvise(UCS_PTR_BYTE_OFFSET(map->address, offset), length,
                  MADV_DODUMP);
}

ucs_status_t ucp_st_direct_map_open(const ucp_st_direct_file_t *file,
                                    ucp_st_direct_map_t **map_p)
{
    ucs_status_t status = UCS_ERR_UNREACHABLE;
    ucp_st_direct_map_t *map;
    struct stat st;
    int fd, seals;

    fd = ucp_st_direct_file_open(file, "/memfd:" UCP_ST_DIRECT_LABEL, O_RDWR);
    if (fd < 0) {
        return UCS_ERR_UNREACHABLE;
    }
    seals = fcntl(fd, F_GET_SEALS);
    (void)pthread_mutex_lock(&ucp_st_direct_map_lock);
    ucs_list_for_each(map, &ucp_st_direct_maps, list) {
        if ((map->file.dev == file->dev) && (map->file.ino == file->ino)) {
            ++map->refs;
            *map_p = map;
            status = UCS_OK;
            break;
        }
    }
    /* A file that could shrink would make its mappings fault */
    if ((status != UCS_OK) && (seals >= 0) && (seals & F_SEAL_SHRINK) &&
        (fstat(fd, &st) == 0) && (st.st_size > 0)) {
        status = ucp_st_direct_map_add(fd, (size_t)st.st_size, file, map_p);
    }
    (void)pthread_mutex_unlock(&ucp_st_direct_map_lock);
    close(fd);
    return status;
}

/* Files of this process without users that are not closed yet; atomic */
static unsigned ucp_st_direct_num_ending;

unsigned ucp_st_direct_maps_ending(void)
{
    return __atomic_load_n(&ucp_st_direct_num_ending, __ATOMIC_RELAXED);
}

/* It is in no list any more */
static void ucp_st_direct_map_end(ucp_st_direct_map_t *map)
{
    (void)munmap(map->address, map->length);
    if (map->fd >= 0) {
        close(map->fd);
    }
    free(map);
}

/* One thread closes all */
static void ucp_st_direct_map_closed(void *arg)
{
    ucp_st_direct_map_t *map = arg;

    if (--map->num_registered == 0) {
        (void)__atomic_fetch_sub(&ucp_st_direct_num_ending, map->fd >= 0,
                                 __ATOMIC_RELAXED);
        ucp_st_direct_map_end(map);
    }
}

ucs_status_t ucp_st_direct_map_register(ucp_st_direct_map_t *map,
                                        ucs_gstream_type_t type,
                                        ucs_gstream_ipc_h *ipc_p)
{
    const ucs_gstream_ipc_host_t host = {
        .type   = type,
        .start  = map->address,
        .length = map->length,
        .closed = ucp_st_direct_map_closed,
        .arg    = map
    };
    ucs_status_t status               = UCS_OK;

    (void)pthread_mutex_lock(&ucp_st_direct_map_lock);
    if (map->registered[type] == NULL) {
        status = ucs_gstream_ipc_open_host(&host, &map->registered[type]);
        map->num_registered += (status == UCS_OK);
    }
    if (status == UCS_OK) {
        ucs_gstream_ipc_hold(map->registered[type]);
        *ipc_p = map->registered[type];
    }
    (void)pthread_mutex_unlock(&ucp_st_direct_map_lock);
    return status;
}

ucs_status_t ucp_st_direct_map_reach(ucp_st_direct_map_t *map,
                                     ucs_gstream_type_t type,
                                     const void *address, double limit,
                                     void **start_p)
{
    double begin    = ucp_st_worker_now();
    unsigned rounds = 0;
    ucs_gstream_ipc_h ipc;
    ucs_status_t status;
    uint64_t length;
    void *start;

    status = ucp_st_direct_map_register(map, type, &ipc);
    if (status != UCS_OK) {
        return status;
    }
    while (((status = ucs_gstream_ipc_look(ipc, &start, &length)) ==
            UCS_INPROGRESS) && ((ucp_st_worker_now() - begin) < limit)) {
        ucs_backoff(&rounds);
    }
    ucs_gstream_ipc_close(ipc); /* it stays so as long as it is mapped */
    if (status == UCS_OK) {
        *start_p = UCS_PTR_BYTE_OFFSET(
                start, UCS_PTR_BYTE_DIFF(map->address, address));
    }
    return status;
}

void ucp_st_direct_map_put(ucp_st_direct_map_t *map)
{
    ucs_gstream_ipc_h registered[UCS_GSTREAM_TYPE_LAST];
    int is_last;
    unsigned i;

    if (map == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&ucp_st_direct_map_lock);
    is_last = (--map->refs == 0);
    if (is_last) {
        ucs_list_del(&map->list);
    }
    (void)pthread_mutex_unlock(&ucp_st_direct_map_lock);
    if (!is_last) {
        return;
    }
    if (map->num_registered == 0) {
        ucp_st_direct_map_end(map);
        return;
    }
    /* With the last one it ends */
    (void)__atomic_fetch_add(&ucp_st_direct_num_ending, map->fd >= 0,
                             __ATOMIC_RELAXED);
    memcpy(registered, map->registered, sizeof(registered));
    for (i = 0; i < UCS_GSTREAM_TYPE_LAST; ++i) {
        ucs_gstream_ipc_close(registered[i]);
    }
}

ucp_st_direct_map_t *ucp_st_direct_map_find(const void *buffer, size_t length)
{
    ucp_st_direct_map_t *result = NULL;
    ucp_st_direct_map_t *map;
    uintptr_t offset;

    (void)pthread_mutex_lock(&ucp_st_direct_map_lock);
    ucs_list_for_each(map, &ucp_st_direct_maps, list) {
        offset = (uintptr_t)buffer - (uintptr_t)map->address;
        if ((map->fd >= 0) && (offset < map->length) &&
            (length <= (map->length - offset))) {
            ++map->refs;
            result = map;
            break;
        }
    }
    (void)pthread_mutex_unlock(&ucp_st_direct_map_lock);
    return result;
}

ucs_status_t ucp_st_direct_seg_init(ucp_st_direct_seg_t *seg, size_t length,
                                    uint64_t uuid)
{
    ucp_st_direct_segment_t *head;
    ucs_status_t status;

    status = ucp_st_direct_map_create(length, &seg->map);
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_st_direct_map_commit(seg->map, 0, sizeof(*head));
    if (status != UCS_OK) {
        ucp_st_direct_seg_cleanup(seg);
        return status;
    }
    head        = seg->map->address;
    head->magic = UCP_ST_DIRECT_MAGIC;
    head->uuid  = uuid;
    seg->used   = sizeof(*head);
    return UCS_OK;
}

void ucp_st_direct_seg_cleanup(ucp_st_direct_seg_t *seg)
{
    ucp_st_direct_map_put(seg->map);
    seg->map = NULL;
}

static unsigned ucp_st_direct_seg_class(size_t length)
{
    unsigned class = 0;

    while (((size_t)UCP_ST_DIRECT_BLOCK_MIN << class) < length) {
        ++class;
    }
    return class;
}

/* The block behind a free one, as the segment says, which peers can write to; 0
 * if there is none, or no block of this size can be there */
static uint64_t ucp_st_direct_seg_next(const ucp_st_direct_seg_t *seg,
                                       const uint64_t *next_p, size_t size)
{
    uint64_t next = __atomic_load_n(next_p, __ATOMIC_RELAXED);

    if ((next < sizeof(ucp_st_direct_segment_t)) ||
        ((next % UCP_ST_DIRECT_ALIGN) != 0) || (next > seg->used) ||
        (size > (seg->used - next))) {
        return 0;
    }
    return next;
}

void *ucp_st_direct_seg_get(ucp_st_direct_seg_t *seg, size_t length)
{
    unsigned class = ucp_st_direct_seg_class(length);
    size_t size    = (size_t)UCP_ST_DIRECT_BLOCK_MIN << class;
    uint64_t *block;

    if (seg->free[class] != 0) {
        block            = UCS_PTR_BYTE_OFFSET(seg->map->address,
                                               seg->free[class]);
        seg->free[class] = ucp_st_direct_seg_next(seg, block, size);
        return block;
    }
    if ((size > (seg->map->length - seg->used)) ||
        (ucp_st_direct_map_commit(seg->map, seg->used, size) != UCS_OK)) {
        return NULL;
    }
    block      = UCS_PTR_BYTE_OFFSET(seg->map->address, seg->used);
    seg->used += size;
    return block;
}

void ucp_st_direct_seg_put(ucp_st_direct_seg_t *seg, void *block, size_t length)
{
    unsigned class = ucp_st_direct_seg_class(length);

    /* A free block begins with the offset of the next one. Only its owner looks
     * at it. A peer wrote there with atomics until it said, in a message, that
     * it does no more; tools that do not see messages see atomics. */
    __atomic_store_n((uint64_t*)block, seg->free[class], __ATOMIC_RELAXED);
    seg->free[class] = UCS_PTR_BYTE_DIFF(seg->map->address, block);
}

ucp_st_direct_record_t *ucp_st_direct_seg_get_record(ucp_st_direct_seg_t *seg)
{
    ucp_st_direct_record_t *record;

    if (seg->records != 0) {
        record       = UCS_PTR_BYTE_OFFSET(seg->map->address, seg->records);
        seg->records = ucp_st_direct_seg_next(seg, &record->next,
                                              sizeof(*record));
        return record;
    }
    record = ucp_st_direct_seg_get(seg, sizeof(*record));
    if (record != NULL) {
        memset(record, 0, sizeof(*record));
    }
    return record;
}

void ucp_st_direct_seg_put_record(ucp_st_direct_seg_t *seg,
                                  ucp_st_direct_record_t *record)
{
    record->next = seg->records;
    seg->records = UCS_PTR_BYTE_DIFF(seg->map->address, record);
}
