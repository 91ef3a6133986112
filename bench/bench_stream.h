/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_stream.h - the stream of a benchmark, of the host or of a GPU, and the
 * memory of its messages.
 */
#ifndef BENCH_STREAM_H_
#define BENCH_STREAM_H_

#include "bench_kernel.h"
#include "bench_util.h"

#include <st_stream.h>

#include <compat/mpich_stream.h>
#include <ucs_gstream.h>


/* Options and stream of a program. Main thread only. */
typedef struct bench_stream {
    const char         *name;     /* Of --stream */
    const char         *memory;   /* Of --memory; NULL at first: by default */
    ucs_gstream_type_t type;
    bench_memory_t     kind;      /* Of messages */
    int                queue;     /* MPIX_QUEUE_* */
    void               *handle;   /* For MPIX_Host_stream_*(), too */
    char               text[ST_STREAM_TEXT_MAX]; /* What runs it */
    bench_kernels_t    kernels;   /* Of a GPU */
} bench_stream_t;


/* Memory of a GPU, and memory of the host, pinned, between which the stream
 * copies; or messages in pinned memory, which are in one place. Main thread
 * only. */
typedef struct bench_area {
    void   *host;
    void   *message;
    size_t size;
} bench_area_t;


/* Help of --stream and --memory. */
#define BENCH_STREAM_HELP \
    "  --stream TYPE    host, hip or cuda (host). The stream of a GPU runs " \
    "kernels in\n                   its device, where the data is; " \
    "variant mpi copies messages\n                   to pinned memory and " \
    "from there\n"
#define BENCH_MEMORY_HELP \
    "  --memory WHOSE   messages' memory: malloc (or host), which is pinned " \
    "with the\n                   stream of a GPU, mpi (MPI_Alloc_mem()), or " \
    "device: the\n                   GPU's (malloc, or with a GPU device)\n"


/* Reads the options, and takes variants out that the stream has not. Returns 0,
 * or -1 after printing what is wrong. */
int bench_stream_parse(bench_stream_t *stream, bench_options_t *options);

/* Whether it is a GPU's. */
static inline int bench_stream_is_gpu(const bench_stream_t *stream)
{
    return stream->type != UCS_GSTREAM_TYPE_HOST;
}

/* Makes the stream, or ends the job with the reason why there is none; has the
 * report name it. */
void bench_stream_create(bench_stream_t *stream, bench_report_t *report);

/* The same stream in MPICH's interface; MPIX_Stream_free() it. */
MPIX_Stream bench_mpich_stream(const bench_stream_t *stream);

/* Frees it. */
void bench_stream_free(bench_stream_t *stream);

/* Makes an area of a GPU, whose host's part is zeroed; ends the job if there is
 * no memory. In pinned memory alone unless 'in_device'. */
void bench_area_init(const bench_stream_t *stream, bench_area_t *area,
                     size_t size, int in_device);
void bench_area_cleanup(const bench_stream_t *stream, const bench_area_t *area);

/* Enqueue a copy from the host's part of an area to the GPU's, and back. */
void bench_area_store(const bench_stream_t *stream, const bench_area_t *area);
void bench_area_fetch(const bench_stream_t *stream, const bench_area_t *area);

/* The same of its first bytes. */
void bench_area_fetch_part(const bench_stream_t *stream,
                           const bench_area_t *area, size_t size);
void bench_area_store_part(const bench_stream_t *stream,
                           const bench_area_t *area, size_t size);

/* An address for a kernel. */
static inline unsigned long long bench_address(const void *memory)
{
    return (unsigned long long)(uintptr_t)memory;
}

/* Enqueues a kernel of a GPU, with a thread for each of 'count' parts of its
 * work at most; sets the head of its arguments. */
void bench_stream_run(const bench_stream_t *stream, bench_kernel_t kernel,
                      size_t count, void *args, size_t size);

/* Enqueues a kernel of a stream of the host. */
void bench_stream_launch(const bench_stream_t *stream, MPIX_Host_func kernel,
                         void *arg);

/* Enqueues a kernel of so many microseconds; more on a GPU whose clock is below
 * its highest. */
void bench_stream_spin(const bench_stream_t *stream, int time_us);

/* Blocks until the stream has run everything. */
void bench_stream_synchronize(const bench_stream_t *stream);

#endif
