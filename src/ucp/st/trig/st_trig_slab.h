/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_slab.h - registered memory of one NIC in pieces of a few sizes.
 *
 * Slabs are registered once and kept until the device is closed; to get a piece
 * and to give it back makes no system call while one of its size is free.
 */
#ifndef UCP_ST_TRIG_SLAB_H_
#define UCP_ST_TRIG_SLAB_H_

#include <uct_trig.h>

/** Longest piece, bytes. */
#define UCP_ST_TRIG_PIECE_MAX (4ul << 20)

/** Sizes of pieces: powers of two from 64 bytes on. */
#define UCP_ST_TRIG_PIECE_CLASSES 17

/** Pieces of one size that were registered together. */
typedef struct ucp_st_trig_slab {
    struct ucp_st_trig_slab *next;
    uct_trig_mem_h          mem;
    uct_trig_rkey_t         rkey;   /* of the whole slab; read-only */
    void                    *block;
} ucp_st_trig_slab_t;

/** A piece; its memory is aligned to 64 bytes. */
typedef struct ucp_st_trig_piece {
    void               *address;
    ucp_st_trig_slab_t *slab;
} ucp_st_trig_piece_t;

struct ucp_st_trig_free;

/** All slabs of a NIC. Zeroed at first. Protected by the worker's lock. */
typedef struct ucp_st_trig_pool {
    ucp_st_trig_slab_t      *slabs;
    struct ucp_st_trig_free *free[UCP_ST_TRIG_PIECE_CLASSES]; /* by size */
} ucp_st_trig_pool_t;

/**
 * Get a piece of at least `length` bytes, at most UCP_ST_TRIG_PIECE_MAX, in
 * memory that is registered on `iface`. What it holds is undefined.
 */
ucs_status_t ucp_st_trig_pool_get(ucp_st_trig_pool_t *pool, uct_iface_h iface,
                                  size_t length, ucp_st_trig_piece_t *piece);

/** Give a piece back that was got with that length. Nobody reaches it. */
void ucp_st_trig_pool_put(ucp_st_trig_pool_t *pool,
                          const ucp_st_trig_piece_t *piece, size_t length);

/** Give all memory back. Nobody has a piece. */
void ucp_st_trig_pool_cleanup(ucp_st_trig_pool_t *pool);

#endif
