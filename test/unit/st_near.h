/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_near.h - two st workers of one process on the direct lane, and a message
 * between them, whatever the lanes of the environment are.
 */
#ifndef ST_NEAR_H_
#define ST_NEAR_H_

#include "st_pair.h"

/** Settings of the direct lane, where a case says nothing else. */
#define NEAR_INLINE  56ul
#define NEAR_PIECE   (16ul << 10)
#define NEAR_MAP_MIN (64ul << 10)
#define NEAR_NT_MIN (4ul << 20)

/* So many pieces and more are so many times longer */
#define NEAR_MANY_PIECES 16
#define NEAR_LONG_PIECE  4

/** Least piece of a message that is not copied through slots. */
#define NEAR_PIECE_MAPPED (32ul << 10)

/** Bytes of a receive's buffer behind the message. */
#define NEAR_GUARD 64

/** What keeps messages of all lengths in slots. */
#define NEAR_SLOTS {"UCX_ST_DIRECT_MAP_MIN", "inf", NULL}

/** ... and long ones in slots that have room for 64k. */
#define NEAR_SMALL_PIECE (4ul << 10)
#define NEAR_SMALL_SLOTS {"UCX_ST_DIRECT_MAP_MIN", "inf", \
                          "UCX_ST_DIRECT_PIECE", "4k", NULL}

/** A pair, with a matched send on A and receive on B. */
typedef struct {
    st_pair_t   pair;
    size_t      length;
    uint8_t     *sbuf;
    uint8_t     *rbuf; /* NEAR_GUARD bytes more */
    ucp_st_op_h op[2];
} near_t;

/** Set variables of the environment: NAME, VALUE, ..., NULL. What they were
 *  goes to `before`, of NEAR_MAX_ENV entries. */
#define NEAR_MAX_ENV 8
void near_env_set(const char *const *env, char **before);
void near_env_restore(const char *const *env, char **before);

/** Make a side with some settings: NAME, VALUE, ..., NULL; or NULL. Asserts; a
 *  failure ends the case. */
void near_side_init(st_side_t *side, const char *const *env);

/** Make both sides, which know each other; the same. */
void near_pair_init(st_pair_t *pair, const char *const *env_a,
                    const char *const *env_b);

/** Make both sides with the same settings, and match a message; the same. */
void near_init(near_t *near, const char *const *env, size_t length);

/** Match a message of two sides that are there. */
void near_match(near_t *near, size_t length, int is_ready);

/** Free both operations. */
void near_unmatch(near_t *near);

/** The same, and the sides. */
void near_cleanup(near_t *near);

/** New contents to send, and a buffer that they are not in. */
void near_fill(near_t *near, uint64_t seed);

/** Assert that they have come, and nothing else. */
void near_check(const near_t *near, uint64_t seed);

/** Assert that nothing has come. */
void near_check_nothing(const near_t *near);

/** One use, with all checks. */
void near_use(near_t *near, uint64_t seed);

/** Assert the protocol of both sides. */
void near_check_protocol(const near_t *near, const char *name);

/** Open descriptors of this process. */
int near_count_fds(void);

/** Mappings of shared memory of this library in this process. */
int near_count_maps(void);

#endif
