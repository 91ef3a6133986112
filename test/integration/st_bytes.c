/* SPDX-License-Identifier: BSD-3-Clause */
/* st_bytes.c - payloads. */
#include "st_bytes.h"

#include <stdlib.h>
#include <string.h>

#define ST_BYTES_POISON 0xcc


/* splitmix64 */
uint64_t st_bytes_random(uint64_t *state)
{
    uint64_t x;

    x = (*state += 0x9e3779b97f4a7c15ull);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

uint64_t st_bytes_mix(uint64_t a, uint64_t b)
{
    uint64_t state = (a * 0xff51afd7ed558ccdull) + b;

    return st_bytes_random(&state);
}

/* The word at a place */
static uint64_t st_bytes_word(uint64_t seed, size_t index)
{
    uint64_t x = (seed + index + 1) * 0x9e3779b97f4a7c15ull;

    return x ^ (x >> 29) ^ (seed << 7);
}

uint8_t *st_bytes_alloc(size_t length)
{
    uint8_t *buffer = malloc(length + ST_BYTES_GUARD);

    if (buffer != NULL) {
        st_bytes_poison(buffer, length + ST_BYTES_GUARD);
    }
    return buffer;
}

void st_bytes_fill(uint8_t *buffer, size_t length, uint64_t seed)
{
    size_t i, part;
    uint64_t word;

    for (i = 0; i < length; i += part) {
        word = st_bytes_word(seed, i);
        part = (length - i < sizeof(word)) ? (length - i) : sizeof(word);
        memcpy(buffer + i, &word, part);
    }
}

size_t st_bytes_check(const uint8_t *buffer, size_t length, uint64_t seed)
{
    size_t i, j, part;
    uint64_t word;

    for (i = 0; i < length; i += part) {
        word = st_bytes_word(seed, i);
        part = (length - i < sizeof(word)) ? (length - i) : sizeof(word);
        if (memcmp(buffer + i, &word, part)) {
            for (j = 0; buffer[i + j] == ((const uint8_t*)&word)[j]; ++j) {
                /* the byte is in this word */
            }
            return i + j;
        }
    }
    return ST_BYTES_NONE;
}

void st_bytes_poison(uint8_t *buffer, size_t length)
{
    memset(buffer, ST_BYTES_POISON, length);
}

size_t st_bytes_check_poison(const uint8_t *buffer, size_t from, size_t to)
{
    size_t i;

    for (i = from; i < to; ++i) {
        if (buffer[i] != ST_BYTES_POISON) {
            return i;
        }
    }
    return ST_BYTES_NONE;
}
