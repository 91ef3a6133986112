/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_seg.h - a worker's shared memory, in pieces for pairs.
 */
#ifndef UCP_ST_DIRECT_SEG_H_
#define UCP_ST_DIRECT_SEG_H_

#include "direct/st_direct_map.h"

/** Sizes of pieces: powers of 2 from this one on. */
#define UCP_ST_DIRECT_PIECE_MIN     256
#define UCP_ST_DIRECT_PIECE_CLASSES 32

/** The allocator of a segment. Protected by the worker's lock. */
typedef struct ucp_st_direct_seg {
    ucp_st_direct_map_t *map;
    size_t              used; /* bytes handed out at least once */
    uint64_t            free[UCP_ST_DIRECT_PIECE_CLASSES]; /* offsets of the
                                 first ones; 0: none */
    uint64_t            records;/* the same of free records */
} ucp_st_direct_seg_t;

/** Make the segment of a worker. UCS_ERR_NO_MEMORY, UCS_ERR_IO_ERROR. */
ucs_status_t ucp_st_direct_seg_init(ucp_st_direct_seg_t *seg, size_t length,
                                    uint64_t uuid);

/** Give it back. Peers may still have it mapped. */
void ucp_st_direct_seg_cleanup(ucp_st_direct_seg_t *seg);

/** Get a piece; NULL if there is no room. Its bytes are what they were. */
void *ucp_st_direct_seg_get(ucp_st_direct_seg_t *seg, size_t length);

/** Give a piece back, with the length that it was got with. */
void ucp_st_direct_seg_put(ucp_st_direct_seg_t *seg, void *piece,
                           size_t length);

/** Get a record; NULL if there is no room. */
ucp_st_direct_record_t *ucp_st_direct_seg_get_record(ucp_st_direct_seg_t *seg);

/** Give a record back. */
void ucp_st_direct_seg_put_record(ucp_st_direct_seg_t *seg,
                                  ucp_st_direct_record_t *record);

/** Check another worker's segment that was mapped: non-zero if it is one. */
int ucp_st_direct_seg_is_valid(const ucp_st_direct_map_t *map, uint64_t uuid);

#endif
