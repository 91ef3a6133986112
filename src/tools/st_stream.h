/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_stream.h - streams of programs: of the host or of a GPU's runtime, and
 * memory of that runtime.
 */
#ifndef ST_STREAM_H_
#define ST_STREAM_H_

#include <ucs_gstream.h>

#include <stddef.h>

/* Longest text of st_stream_describe(), with the final zero */
#define ST_STREAM_TEXT_MAX 384


/* Kinds of memory that a runtime allocates. */
typedef enum {
    ST_STREAM_MEMORY_PINNED, /* Of the host, known to the runtime */
    ST_STREAM_MEMORY_DEVICE  /* Of the runtime's current device */
} st_stream_memory_t;


/* Name of a type, as st_stream_parse() takes it. */
const char *st_stream_name(ucs_gstream_type_t type);

/* Reads "host", "hip" or "cuda". Returns 0, or -1 with '*type_p' as it was. */
int st_stream_parse(const char *text, ucs_gstream_type_t *type_p);

/* Why there are no streams of a type: the text of ucs_gstream_query_type(), in
 * 'reason' of UCS_GSTREAM_TEXT_MAX bytes. Returns 0 if there are, else -1. */
int st_stream_check(ucs_gstream_type_t type, char *reason);

/* Name of a runtime's first device; "an unknown device" if it has none. */
void st_stream_device(ucs_gstream_type_t type, char *name, size_t size);

/* What runs streams of a type, in 'text' of ST_STREAM_TEXT_MAX bytes: "host
 * stream", or "hip stream (HIP 60342134 on NAME)", where a stand-in for the
 * runtime says that in NAME. */
void st_stream_describe(ucs_gstream_type_t type, char *text);

/* A function of a runtime; NULL if it, or the runtime, is not there. */
void *st_stream_find(ucs_gstream_type_t type, const char *name);

/* Gives the calling thread the first device's primary context of CUDA if it has
 * no context, as cuda*() functions do. */
void st_stream_enter(ucs_gstream_type_t type);

/* Allocates memory by the runtime of a type, which is not the host; the calling
 * thread enters it. Returns NULL if the runtime has none; free by
 * st_stream_free(). */
void *st_stream_alloc(ucs_gstream_type_t type, st_stream_memory_t kind,
                      size_t size);

/* Frees it, or NULL, with the type and kind that it was allocated with. */
void st_stream_free(ucs_gstream_type_t type, st_stream_memory_t kind,
                    void *memory);

#endif
