/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_buffer.h - memory of one message, its payload, and the check of it.
 * Behind the payload lie guard bytes that nobody may write.
 */
#ifndef PERFTEST_BUFFER_H_
#define PERFTEST_BUFFER_H_

#include <stddef.h>
#include <stdint.h>

typedef struct perftest_buffer {
    uint8_t *data;
    size_t  size;
    int     is_shared; /* It is memory of ucp_st_mem_alloc() */
} perftest_buffer_t;


/* What is wrong with a payload. */
typedef struct perftest_wrong {
    size_t  at;       /* At or above the size: behind the payload */
    uint8_t found;
    uint8_t expected;
} perftest_wrong_t;


/* Bytes that a buffer takes. */
size_t perftest_buffer_memory(size_t size);

/* Allocates 'count' buffers, which other processes can map if 'is_shared' is
 * set. Returns NULL if there is no memory. */
perftest_buffer_t *perftest_buffers_create(unsigned count, size_t size,
                                           int is_shared);

/* Frees them; NULL is legal. */
void perftest_buffers_destroy(perftest_buffer_t *buffers, unsigned count);

/* Writes the payload of a seed. */
void perftest_buffer_fill(perftest_buffer_t *buffer, uint64_t seed);

/* Writes what is right at no place for 'seed'. */
void perftest_buffer_clear(perftest_buffer_t *buffer, uint64_t seed);

/* Compares with the payload of a seed. Returns 0 if it is that; else fills
 * 'wrong' with the first place that differs. */
int perftest_buffer_check(const perftest_buffer_t *buffer, uint64_t seed,
                          perftest_wrong_t *wrong);

#endif
