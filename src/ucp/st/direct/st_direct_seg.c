/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_seg.c - a worker's shared memory, in pieces for pairs.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "direct/st_direct_seg.h"

#include <ucs/sys/compiler_def.h>

#include <string.h>

/** What a free piece holds. Nobody but its owner looks at it then. */
typedef struct ucp_st_direct_free {
    uint64_t next;
} ucp_st_direct_free_t;

ucs_status_t ucp_st_direct_seg_init(ucp_st_direct_seg_t *seg, size_t length,
                                    uint64_t uuid)
{
    ucp_st_direct_segment_t *head;
    ucs_status_t status;

    status = ucp_st_direct_map_create(length, &seg->map);
    if (status != UCS_OK) {
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

    while (((size_t)UCP_ST_DIRECT_PIECE_MIN << class) < length) {
        ++class;
    }
    return class;
}

void *ucp_st_direct_seg_get(ucp_st_direct_seg_t *seg, size_t length)
{
    unsigned class = ucp_st_direct_seg_class(length);
    size_t size    = (size_t)UCP_ST_DIRECT_PIECE_MIN << class;
    ucp_st_direct_free_t *piece;

    if (seg->free[class] != 0) {
        piece            = UCS_PTR_BYTE_OFFSET(seg->map->address,
                                               seg->free[class]);
        seg->free[class] = __atomic_load_n(&piece->next, __ATOMIC_RELAXED);
        return piece;
    }
    if (size > (seg->map->length - seg->used)) {
        return NULL;
    }
    piece      = UCS_PTR_BYTE_OFFSET(seg->map->address, seg->used);
    seg->used += size;
    return piece;
}

void ucp_st_direct_seg_put(ucp_st_direct_seg_t *seg, void *piece, size_t length)
{
    unsigned class             = ucp_st_direct_seg_class(length);
    ucp_st_direct_free_t *free = piece;

    /* A peer wrote there with atomics until it said, in a message, that it does
     * no more. Tools that do not see messages see atomics. */
    __atomic_store_n(&free->next, seg->free[class], __ATOMIC_RELAXED);
    seg->free[class] = UCS_PTR_BYTE_DIFF(seg->map->address, piece);
}

ucp_st_direct_record_t *ucp_st_direct_seg_get_record(ucp_st_direct_seg_t *seg)
{
    ucp_st_direct_record_t *record;

    if (seg->records != 0) {
        record       = UCS_PTR_BYTE_OFFSET(seg->map->address, seg->records);
        seg->records = record->next;
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

int ucp_st_direct_seg_is_valid(const ucp_st_direct_map_t *map, uint64_t uuid)
{
    const ucp_st_direct_segment_t *head = map->address;

    return (map->length >= sizeof(*head)) &&
           (head->magic == UCP_ST_DIRECT_MAGIC) && (head->uuid == uuid);
}
