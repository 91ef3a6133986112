/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perftest_buffer.h - memory of one message, its payload, and the check of it.
 * Behind the payload lie guard bytes that nobody may write. A buffer in a
 * device has a copy in the host's memory, which is filled and checked.
 */
#ifndef PERFTEST_BUFFER_H_
#define PERFTEST_BUFFER_H_

#include <ucs_gstream.h>

#include <stddef.h>
#include <stdint.h>

/* Whose memory buffers are. */
typedef enum {
    PERFTEST_MEMORY_HOST,
    PERFTEST_MEMORY_SHARED, /* Of ucp_st_mem_alloc() */
    PERFTEST_MEMORY_DEVICE  /* Of the streams' GPU */
} perftest_memory_t;


typedef struct perftest_buffer {
    uint8_t            *data;
    uint8_t            *view;  /* What the host fills and checks: 'data', or a
                                  copy of it */
    size_t             size;
    perftest_memory_t  memory;
    ucs_gstream_type_t type;   /* Of the streams; used with a device's memory */
} perftest_buffer_t;


/* What is wrong with a payload. */
typedef struct perftest_wrong {
    size_t  at;       /* At or above the size: behind the payload */
    uint8_t found;
    uint8_t expected;
} perftest_wrong_t;


/* Bytes that a buffer takes. */
size_t perftest_buffer_memory(size_t size);

/* Allocates 'count' buffers in memory of the host, or of the device of streams
 * of a type. Returns NULL if there is no memory. */
perftest_buffer_t *perftest_buffers_create(unsigned count, size_t size,
                                           perftest_memory_t memory,
                                           ucs_gstream_type_t type);

/* Frees them; NULL is legal. */
void perftest_buffers_destroy(perftest_buffer_t *buffers, unsigned count);

/* Writes the payload of a seed. */
void perftest_buffer_fill(perftest_buffer_t *buffer, uint64_t seed);

/* Writes what is right at no place for 'seed'. */
void perftest_buffer_clear(perftest_buffer_t *buffer, uint64_t seed);

/* Makes one byte of the payload, which is not empty, a wrong one. */
void perftest_buffer_spoil(perftest_buffer_t *buffer);

/* Compares with the payload of a seed. Returns 0 if it is that; else fills
 * 'wrong' with the first place that differs. */
int perftest_buffer_check(const perftest_buffer_t *buffer, uint64_t seed,
                          perftest_wrong_t *wrong);

#endif
