/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_stream.h - the stream of a benchmark, of the host or of a GPU, and the
 * memory of its messages.
 */
#ifndef BENCH_STREAM_H_
#define BENCH_STREAM_H_

#include "bench_util.h"

#include <st_stream.h>

#include <ucs_gstream.h>


/* Options and stream of a program. Main thread only. */
typedef struct bench_stream {
    const char         *name;     /* Of --stream */
    const char         *memory;   /* Of --memory */
    ucs_gstream_type_t type;
    bench_memory_t     kind;      /* Of messages */
    int                queue;     /* MPIX_QUEUE_* */
    void               *handle;   /* For MPIX_Host_stream_*(), too */
    char               text[ST_STREAM_TEXT_MAX]; /* What runs it */
} bench_stream_t;


/* Help of --stream. */
#define BENCH_STREAM_HELP \
    "  --stream TYPE    host, hip or cuda (host); kernels are functions of " \
    "the\n                   host on all of them\n"


/* Reads the options. Returns 0, or -1 after printing what is wrong. */
int bench_stream_parse(bench_stream_t *stream);

/* Makes the stream, or ends the job with the reason why there is none; has the
 * report name it. */
void bench_stream_create(bench_stream_t *stream, bench_report_t *report);

/* Frees it. */
void bench_stream_free(bench_stream_t *stream);

/* Allocates zeroed memory of the host, which the stream's copies reach; ends
 * the job if there is none. */
void *bench_stream_pinned_alloc(const bench_stream_t *stream, size_t size);
void bench_stream_pinned_free(const bench_stream_t *stream, void *memory);

/* Allocates memory of the stream's device; ends the job if there is none. */
void *bench_stream_device_alloc(const bench_stream_t *stream, size_t size);
void bench_stream_device_free(const bench_stream_t *stream, void *memory);

/* Enqueues a kernel: a function of the host. */
void bench_stream_launch(const bench_stream_t *stream, MPIX_Host_func kernel,
                         void *arg);

/* Enqueues a copy. */
void bench_stream_copy(const bench_stream_t *stream, void *dst, const void *src,
                       size_t size);

/* Blocks until the stream has run everything. */
void bench_stream_synchronize(const bench_stream_t *stream);

#endif
