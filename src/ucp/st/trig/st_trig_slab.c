/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_slab.c - registered memory of one NIC in pieces of a few sizes.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "trig/st_trig_slab.h"

#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>

#define UCP_ST_TRIG_PIECE_MIN 64

/* Bytes of a slab: room for some pieces of its size, but not more than this,
 * unless one piece is longer */
#define UCP_ST_TRIG_SLAB_MIN    4096
#define UCP_ST_TRIG_SLAB_MAX    (64ul << 10)
#define UCP_ST_TRIG_SLAB_PIECES 16

_Static_assert((UCP_ST_TRIG_PIECE_MIN << (UCP_ST_TRIG_PIECE_CLASSES - 1)) ==
               UCP_ST_TRIG_PIECE_MAX, "sizes of pieces");

/** What a free piece holds. */
typedef struct ucp_st_trig_free {
    struct ucp_st_trig_free *next;
    ucp_st_trig_slab_t      *slab;
} ucp_st_trig_free_t;

static unsigned ucp_st_trig_piece_class(size_t length)
{
    unsigned class = 0;

    while (((size_t)UCP_ST_TRIG_PIECE_MIN << class) < length) {
        ++class;
    }
    return class;
}

static ucs_status_t ucp_st_trig_slab_create(uct_iface_h iface, size_t length,
                                            ucp_st_trig_slab_t **slab_p)
{
    uint8_t packed[UCT_TRIG_RKEY_PACKED_LEN];
    ucp_st_trig_slab_t *slab;
    ucs_status_t status;

    slab = calloc(1, sizeof(*slab));
    if (slab == NULL) {
        return UCS_ERR_NO_MEMORY;
    }
    slab->block = aligned_alloc(UCP_ST_TRIG_SLAB_MIN, length);
    if (slab->block == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err_slab;
    }
    memset(slab->block, 0, length);
    status = uct_trig_mem_reg(iface, slab->block, length, NULL, &slab->mem);
    if (status != UCS_OK) {
        goto err_block;
    }
    uct_trig_mem_pack(slab->mem, packed);
    status = uct_trig_rkey_unpack(packed, sizeof(packed), &slab->rkey);
    if (status != UCS_OK) {
        goto err_mem;
    }
    *slab_p = slab;
    return UCS_OK;

err_mem:
    (void)uct_trig_mem_dereg(slab->mem);
err_block:
    free(slab->block);
err_slab:
    free(slab);
    return status;
}

static ucs_status_t ucp_st_trig_pool_grow(ucp_st_trig_pool_t *pool,
                                          uct_iface_h iface, unsigned class)
{
    size_t piece_length      = (size_t)UCP_ST_TRIG_PIECE_MIN << class;
    size_t length            = ucs_min(piece_length * UCP_ST_TRIG_SLAB_PIECES,
                                       UCP_ST_TRIG_SLAB_MAX);
    ucp_st_trig_slab_t *slab = NULL;
    ucp_st_trig_free_t *free_piece;
    ucs_status_t status;
    size_t offset;

    length = ucs_max(ucs_max(length, UCP_ST_TRIG_SLAB_MIN), piece_length);
    status = ucp_st_trig_slab_create(iface, length, &slab);
    if (status != UCS_OK) {
        return status;
    }
    for (offset = 0; offset < length; offset += piece_length) {
        free_piece        = UCS_PTR_BYTE_OFFSET(slab->block, offset);
        free_piece->next  = pool->free[class];
        free_piece->slab  = slab;
        pool->free[class] = free_piece;
    }
    slab->next  = pool->slabs;
    pool->slabs = slab;
    return UCS_OK;
}

ucs_status_t ucp_st_trig_pool_get(ucp_st_trig_pool_t *pool, uct_iface_h iface,
                                  size_t length, ucp_st_trig_piece_t *piece)
{
    unsigned class = ucp_st_trig_piece_class(length);
    ucp_st_trig_free_t *free_piece;
    ucs_status_t status;

    if (pool->free[class] == NULL) {
        status = ucp_st_trig_pool_grow(pool, iface, class);
        if (status != UCS_OK) {
            return status;
        }
    }
    free_piece        = pool->free[class];
    pool->free[class] = free_piece->next;
    piece->address    = free_piece;
    piece->slab       = free_piece->slab;
    return UCS_OK;
}

void ucp_st_trig_pool_put(ucp_st_trig_pool_t *pool,
                          const ucp_st_trig_piece_t *piece, size_t length)
{
    unsigned class                 = ucp_st_trig_piece_class(length);
    ucp_st_trig_free_t *free_piece = piece->address;

    free_piece->next  = pool->free[class];
    free_piece->slab  = piece->slab;
    pool->free[class] = free_piece;
}

void ucp_st_trig_pool_cleanup(ucp_st_trig_pool_t *pool)
{
    ucp_st_trig_slab_t *slab;

    while ((slab = pool->slabs) != NULL) {
        pool->slabs = slab->next;
        (void)uct_trig_mem_dereg(slab->mem);
        free(slab->block);
        free(slab);
    }
    memset(pool, 0, sizeof(*pool));
}
