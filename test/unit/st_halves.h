/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_halves.h - the operations of two sides that send to each other, in
 * exchanges or not. What fails is asserted.
 */
#ifndef ST_HALVES_H_
#define ST_HALVES_H_

#include "st_pair.h"

#define HALF_LEN 1000 /* bytes of each message */

/** How many of each, of which mode; and of the exchange. */
typedef struct {
    int      sends;
    int      recvs;
    int      is_ready;
    uint64_t flags;
} shape_t;

/** One side's operations, and buffers. */
typedef struct {
    st_side_t         *side;
    int               sends;
    int               recvs;
    uint8_t           (*sbuf)[HALF_LEN];
    uint8_t           (*rbuf)[HALF_LEN];
    ucp_st_op_h       *ops; /* sends, then receives */
    ucp_st_exchange_h exchange; /* NULL: the operations are used alone */
} half_t;

/** How many operations it has. */
size_t half_count(const half_t *half);

/** Make those of side `index`. `shape` is that of A, whose sends B receives. */
void half_init(half_t *half, st_side_t *side, int index, const shape_t *shape);

/** Make an exchange of them. */
void half_join(half_t *half, uint64_t flags);

/** Start all of a side, or enqueue the wait. */
void half_start(half_t *half);
void half_wait(half_t *half);

/** Free all. */
void half_cleanup(half_t *half);

/** Write what use number `use` sends; check what it has received. */
void half_fill(half_t *half, uint64_t use);
void half_check(const half_t *half, uint64_t use);

/** Match both sides. */
void halves_match(half_t halves[2]);

/** A use, with its data. Receives are started before the sends are, as ready
 *  ones need. */
void halves_use(half_t halves[2], st_pair_t *pair, uint64_t use);

#endif
