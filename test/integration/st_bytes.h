/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_bytes.h - payloads that differ in their seed and in every place, buffers
 * with guard bytes behind them.
 */
#ifndef ST_BYTES_H_
#define ST_BYTES_H_

#include <stddef.h>
#include <stdint.h>

#define ST_BYTES_GUARD 64 /* behind a buffer; no message may touch them */
#define ST_BYTES_NONE  SIZE_MAX


/** Mix two numbers to one that looks random. */
uint64_t st_bytes_mix(uint64_t a, uint64_t b);

/** The next number of a sequence. */
uint64_t st_bytes_random(uint64_t *state);

/** A buffer with its guard, all of it guard bytes; NULL if there is no memory.
 *  To be released with free(). */
uint8_t *st_bytes_alloc(size_t length);

/** Write the payload of a seed. */
void st_bytes_fill(uint8_t *buffer, size_t length, uint64_t seed);

/** Where the buffer differs from it first; ST_BYTES_NONE if nowhere. */
size_t st_bytes_check(const uint8_t *buffer, size_t length, uint64_t seed);

/** Write guard bytes, which are no payload. */
void st_bytes_poison(uint8_t *buffer, size_t length);

/** Where the first byte is that is no guard byte, from one offset to another;
 *  ST_BYTES_NONE if nowhere. */
size_t st_bytes_check_poison(const uint8_t *buffer, size_t from, size_t to);

#endif
