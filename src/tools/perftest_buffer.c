/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest_buffer.c - memory of one message, its payload, and the check. */
#include "perftest_buffer.h"
#include "st_stream.h"

#include <ucp_st.h>
#include <ucs_gstream_memory.h>

#include <stdlib.h>
#include <string.h>

#define PERFTEST_BUFFER_ALIGN 4096
#define PERFTEST_BUFFER_GUARD 64
#define PERFTEST_BUFFER_MARK  0xa5


size_t perftest_buffer_memory(size_t size)
{
    size_t length = size + PERFTEST_BUFFER_GUARD + PERFTEST_BUFFER_ALIGN - 1;

    return length - (length % PERFTEST_BUFFER_ALIGN);
}

/* Has a device's memory be as the copy, or the copy as that. */
static void perftest_buffer_push(perftest_buffer_t *buffer)
{
    if (buffer->view != buffer->data) {
        (void)ucs_gstream_memory_copy(buffer->data, buffer->view,
                                      buffer->size + PERFTEST_BUFFER_GUARD);
    }
}

/* A view that could not be read holds no message: the check finds that */
static void perftest_buffer_pull(const perftest_buffer_t *buffer)
{
    size_t length = buffer->size + PERFTEST_BUFFER_GUARD;

    if ((buffer->view != buffer->data) &&
        (ucs_gstream_memory_copy(buffer->view, buffer->data, length) !=
         UCS_OK)) {
        memset(buffer->view, ~PERFTEST_BUFFER_MARK, length);
    }
}

static int perftest_buffer_init(perftest_buffer_t *buffer, size_t size)
{
    size_t length = perftest_buffer_memory(size);
    void *view    = NULL;

    if (buffer->memory == PERFTEST_MEMORY_SHARED) {
        (void)ucp_st_mem_alloc(length, &view);
    } else {
        view = aligned_alloc(PERFTEST_BUFFER_ALIGN, length);
    }
    buffer->size = size;
    buffer->view = view;
    buffer->data = (buffer->memory != PERFTEST_MEMORY_DEVICE) ?
                           view :
                           st_stream_alloc(buffer->type,
                                           ST_STREAM_MEMORY_DEVICE, length);
    if ((buffer->view == NULL) || (buffer->data == NULL)) {
        return -1;
    }
    /* All pages are there before anything is timed */
    memset(buffer->view, PERFTEST_BUFFER_MARK, length);
    perftest_buffer_push(buffer);
    return 0;
}

perftest_buffer_t *perftest_buffers_create(unsigned count, size_t size,
                                           perftest_memory_t memory,
                                           ucs_gstream_type_t type)
{
    perftest_buffer_t *buffers = calloc(count, sizeof(*buffers));
    unsigned i;

    for (i = 0; (buffers != NULL) && (i < count); ++i) {
        buffers[i].memory = memory;
        buffers[i].type   = type;
        if (perftest_buffer_init(&buffers[i], size) != 0) {
            perftest_buffers_destroy(buffers, count);
            return NULL;
        }
    }
    return buffers;
}

void perftest_buffers_destroy(perftest_buffer_t *buffers, unsigned count)
{
    unsigned i;

    for (i = 0; (buffers != NULL) && (i < count); ++i) {
        if (buffers[i].memory == PERFTEST_MEMORY_DEVICE) {
            st_stream_free(buffers[i].type, ST_STREAM_MEMORY_DEVICE,
                           buffers[i].data);
        }
        if (buffers[i].memory != PERFTEST_MEMORY_SHARED) {
            free(buffers[i].view);
        } else if (buffers[i].view != NULL) {
            (void)ucp_st_mem_free(buffers[i].view);
        }
    }
    free(buffers);
}

/* Eight bytes of the payload: the finalizer of the generator splitmix64 */
static uint64_t perftest_buffer_word(uint64_t seed, size_t i)
{
    uint64_t x = seed + ((i + 1) * 0x9e3779b97f4a7c15ull);

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* Bytes of word number 'i' that belong to the payload */
static size_t perftest_buffer_part(const perftest_buffer_t *buffer, size_t i)
{
    size_t left = buffer->size - (i * sizeof(uint64_t));

    return (left < sizeof(uint64_t)) ? left : sizeof(uint64_t);
}

static size_t perftest_buffer_num_words(const perftest_buffer_t *buffer)
{
    return (buffer->size + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}

static void perftest_buffer_write(perftest_buffer_t *buffer, uint64_t seed,
                                  uint64_t mask)
{
    size_t count = perftest_buffer_num_words(buffer);
    uint64_t word;
    size_t i;

    for (i = 0; i < count; ++i) {
        word = perftest_buffer_word(seed, i) ^ mask;
        memcpy(buffer->view + (i * sizeof(word)), &word,
               perftest_buffer_part(buffer, i));
    }
    perftest_buffer_push(buffer);
}

void perftest_buffer_fill(perftest_buffer_t *buffer, uint64_t seed)
{
    perftest_buffer_write(buffer, seed, 0);
}

void perftest_buffer_clear(perftest_buffer_t *buffer, uint64_t seed)
{
    perftest_buffer_write(buffer, seed, UINT64_MAX);
}

void perftest_buffer_spoil(perftest_buffer_t *buffer)
{
    buffer->view[buffer->size / 2] ^= 1;
    perftest_buffer_push(buffer);
}

static int perftest_buffer_find(const perftest_buffer_t *buffer, size_t at,
                                const uint8_t *expected, size_t length,
                                perftest_wrong_t *wrong)
{
    size_t i;

    if (memcmp(buffer->view + at, expected, length) == 0) {
        return 0;
    }
    for (i = 0; i < length; ++i) {
        if (buffer->view[at + i] != expected[i]) {
            wrong->at       = at + i;
            wrong->found    = buffer->view[at + i];
            wrong->expected = expected[i];
            break;
        }
    }
    return -1;
}

int perftest_buffer_check(const perftest_buffer_t *buffer, uint64_t seed,
                          perftest_wrong_t *wrong)
{
    size_t count = perftest_buffer_num_words(buffer);
    uint8_t guard[PERFTEST_BUFFER_GUARD];
    uint64_t word;
    size_t i, at, part;

    perftest_buffer_pull(buffer);
    for (i = 0; i < count; ++i) {
        word = perftest_buffer_word(seed, i);
        at   = i * sizeof(word);
        part = perftest_buffer_part(buffer, i);
        if (perftest_buffer_find(buffer, at, (const uint8_t*)&word, part,
                                 wrong) != 0) {
            return -1;
        }
    }
    memset(guard, PERFTEST_BUFFER_MARK, sizeof(guard));
    return perftest_buffer_find(buffer, buffer->size, guard, sizeof(guard),
                                wrong);
}
