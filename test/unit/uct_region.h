/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uct_region.h - memory that one side of a pair reaches at the other, and
 * completions that are counted, for tests.
 */
#ifndef UCT_REGION_H_
#define UCT_REGION_H_

#include "uct_pair.h"

#include <stdint.h>


/** Memory of B, registered with its memory domain. */
typedef struct {
    uct_pair_t        *pair;
    uct_mem_h         memh;
    uct_rkey_bundle_t rkey;
    uint8_t           *data;   /**< Zeroed, aligned to a page */
    size_t            length;
} uct_region_t;


/** A completion that knows how often it was called. */
typedef struct {
    uct_completion_t comp;
    uint64_t         calls;
    ucs_status_t     status; /**< Of the last call */
} uct_done_t;


/** Make a region; fails the running case if that does not work. */
void uct_region_open(uct_region_t *region, uct_pair_t *pair, size_t length);

/** Deregister the memory, and keep the rest: the key is stale then. */
void uct_region_dereg(uct_region_t *region);

/** Undo it. */
void uct_region_close(uct_region_t *region);

/** The peer's address of a byte of the region. */
static inline uint64_t
uct_region_at(const uct_region_t *region, size_t offset)
{
    return (uintptr_t)region->data + offset;
}

/** Make a pair and a region of it; fails the running case if that does not
 *  work. @a settings: see uct_pair_create(). */
void uct_region_open_pair(uct_region_t *region, uct_pair_t *pair,
                          const char *const *settings, size_t length);

/** Undo both. */
void uct_region_close_pair(uct_region_t *region, uct_pair_t *pair);

/** A case on "pair", with the suite's "region" of so many bytes. */
#define UCT_REGION_CASE(_name, _length) \
    ST_CASE_WITH(_name, uct_pair_t, pair, \
                 uct_region_open_pair(&region, pair, NULL, _length), \
                 uct_region_close_pair(&region, pair))

/** Prepare a completion for @a count operations. */
void uct_done_init(uct_done_t *done, int count);

/** Progress until it was called; returns the status that it was told. */
ucs_status_t uct_done_wait(uct_done_t *done, uct_pair_t *pair);

/** Write bytes that differ by place and @a seed. */
void uct_region_fill(uint8_t *data, size_t length, unsigned seed);

#endif
