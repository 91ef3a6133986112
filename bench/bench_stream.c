/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_stream.c - the stream of a benchmark, its kernels and its memory. */
#include "bench_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* By default messages of a GPU are in its memory */
static int bench_stream_parse_memory(bench_stream_t *stream)
{
    const int is_gpu = bench_stream_is_gpu(stream);

    if (stream->memory == NULL) {
        stream->memory = is_gpu ? "device" : "malloc";
    }
    if ((strcmp(stream->memory, "malloc") == 0) ||
        (strcmp(stream->memory, "host") == 0)) {
        stream->kind = BENCH_MEMORY_MALLOC;
    } else if (strcmp(stream->memory, "mpi") == 0) {
        stream->kind = BENCH_MEMORY_MPI;
    } else if (strcmp(stream->memory, "device") == 0) {
        stream->kind = BENCH_MEMORY_DEVICE;
    } else {
        bench_error("--memory: '%s' is none of malloc (host), mpi and device\n",
                    stream->memory);
        return -1;
    }
    if ((stream->kind == BENCH_MEMORY_DEVICE) && !is_gpu) {
        bench_error("--memory device needs --stream hip or cuda\n");
        return -1;
    }
    if ((stream->kind == BENCH_MEMORY_MPI) && is_gpu) {
        bench_error("--memory mpi needs --stream host\n");
        return -1;
    }
    return 0;
}

int bench_stream_parse(bench_stream_t *stream, bench_options_t *options)
{
    static const int queues[UCS_GSTREAM_TYPE_LAST] = {
        [UCS_GSTREAM_TYPE_HOST] = MPIX_QUEUE_HOST,
        [UCS_GSTREAM_TYPE_HIP]  = MPIX_QUEUE_HIP,
        [UCS_GSTREAM_TYPE_CUDA] = MPIX_QUEUE_CUDA
    };

    if (st_stream_parse(stream->name, &stream->type) != 0) {
        bench_error("--stream: '%s' is none of host, hip and cuda\n",
                    stream->name);
        return -1;
    }
    stream->queue = queues[stream->type];
    if (bench_stream_parse_memory(stream) != 0) {
        return -1;
    }
    if (stream->kind != BENCH_MEMORY_DEVICE) {
        options->variants &= ~BENCH_VARIANTS_GPU;
    }
    if (options->variants == 0) {
        bench_error("--variants: these need a GPU's stream and memory\n");
        return -1;
    }
    return 0;
}

/* Ends the job. */
static void bench_stream_fail(const bench_stream_t *stream, const char *what)
{
    fprintf(stderr, "rank %d: --stream %s: %s\n", bench_rank(), stream->name,
            what);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

/* Does so unless the status is UCS_OK. */
static void bench_stream_check(const bench_stream_t *stream,
                               ucs_status_t status, const char *what)
{
    char text[UCS_GSTREAM_TEXT_MAX];

    if (status != UCS_OK) {
        snprintf(text, sizeof(text), "%s failed: status %d", what, (int)status);
        bench_stream_fail(stream, text);
    }
}

/* What a reader has to know of the figures; rank 0. */
static void bench_stream_print(const bench_stream_t *stream)
{
    if (!bench_stream_is_gpu(stream) || (bench_rank() != 0)) {
        return;
    }
    printf("%s; messages are in %s\n", stream->text,
           (stream->kind == BENCH_MEMORY_DEVICE) ?
                   "the device, those of mpi go through pinned memory" :
                   "pinned memory of the host");
    fflush(stdout);
}

void bench_stream_create(bench_stream_t *stream, bench_report_t *report)
{
    const ucs_gstream_params_t params = {
        .field_mask = UCS_GSTREAM_PARAM_FIELD_TYPE,
        .type       = stream->type
    };
    char reason[UCS_GSTREAM_TEXT_MAX];
    const char *missing;
    ucs_gstream_h made;

    if (!bench_stream_is_gpu(stream)) {
        bench_check(MPIX_Host_stream_create(&stream->handle),
                    "MPIX_Host_stream_create");
    } else {
        if (st_stream_check(stream->type, reason) != 0) {
            bench_stream_fail(stream, reason);
        }
        bench_stream_check(stream, ucs_gstream_create(&params, &made),
                           "ucs_gstream_create");
        stream->handle = made;
        missing        = bench_kernels_load(&stream->kernels, made);
        if (missing != NULL) {
            bench_stream_fail(stream, missing);
        }
    }
    st_stream_describe(stream->type, stream->text);
    report->stream        = stream->name;
    report->stream_device = stream->text;
    bench_stream_print(stream);
}

MPIX_Stream bench_mpich_stream(const bench_stream_t *stream)
{
    MPIX_Stream result;
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "type",
                 (stream->type == UCS_GSTREAM_TYPE_HIP)  ? "hipStream_t" :
                 (stream->type == UCS_GSTREAM_TYPE_CUDA) ? "cudaStream_t" :
                                                           "MPIX_Host_stream");
    bench_check(MPIX_Info_set_hex(info, "value", &stream->handle,
                                  sizeof(stream->handle)), "MPIX_Info_set_hex");
    bench_check(MPIX_Stream_create(info, &result), "MPIX_Stream_create");
    MPI_Info_free(&info);
    return result;
}

void bench_stream_free(bench_stream_t *stream)
{
    bench_check(MPIX_Host_stream_free(&stream->handle),
                "MPIX_Host_stream_free");
}

static void *bench_area_alloc(const bench_stream_t *stream,
                              st_stream_memory_t kind, size_t size)
{
    void *memory = st_stream_alloc(stream->type, kind, size);

    if (memory == NULL) {
        bench_stream_fail(stream, "the runtime has no memory for messages");
    }
    return memory;
}

void bench_area_init(const bench_stream_t *stream, bench_area_t *area,
                     size_t size, int in_device)
{
    area->size    = size;
    area->host    = bench_area_alloc(stream, ST_STREAM_MEMORY_PINNED, size);
    area->message = in_device ? bench_area_alloc(stream,
                                                 ST_STREAM_MEMORY_DEVICE,
                                                 size) :
                                area->host;
    memset(area->host, 0, size);
}

void bench_area_cleanup(const bench_stream_t *stream, const bench_area_t *area)
{
    if (area->message != area->host) {
        st_stream_free(stream->type, ST_STREAM_MEMORY_DEVICE, area->message);
    }
    st_stream_free(stream->type, ST_STREAM_MEMORY_PINNED, area->host);
}

static void bench_area_copy(const bench_stream_t *stream, void *dst,
                            const void *src, size_t size)
{
    if (dst != src) {
        bench_stream_check(stream, ucs_gstream_enqueue_copy(stream->handle,
                                                            dst, src, size),
                           "ucs_gstream_enqueue_copy");
    }
}

void bench_area_store_part(const bench_stream_t *stream,
                           const bench_area_t *area, size_t size)
{
    bench_area_copy(stream, area->message, area->host, size);
}

void bench_area_fetch_part(const bench_stream_t *stream,
                           const bench_area_t *area, size_t size)
{
    bench_area_copy(stream, area->host, area->message, size);
}

void bench_area_store(const bench_stream_t *stream, const bench_area_t *area)
{
    bench_area_store_part(stream, area, area->size);
}

void bench_area_fetch(const bench_stream_t *stream, const bench_area_t *area)
{
    bench_area_fetch_part(stream, area, area->size);
}

void bench_stream_run(const bench_stream_t *stream, bench_kernel_t kernel,
                      size_t count, void *args, size_t size)
{
    int result = bench_kernels_launch(&stream->kernels, kernel, count, args,
                                      size);

    if (result != 0) {
        bench_stream_fail(stream, "a kernel cannot be launched");
    }
}

void bench_stream_launch(const bench_stream_t *stream, MPIX_Host_func kernel,
                         void *arg)
{
    bench_check(MPIX_Host_stream_launch(stream->handle, kernel, arg),
                "MPIX_Host_stream_launch");
}

/* Of the host: the argument is the time. */
static void bench_kernel_spin(void *arg)
{
    const double end = bench_now_us() + (double)(uintptr_t)arg;

    while (bench_now_us() < end) {
    }
}

void bench_stream_spin(const bench_stream_t *stream, int time_us)
{
    bench_kernel_spin_t args = {
        .cycles = (uint64_t)time_us * stream->kernels.khz / 1000
    };

    if (bench_stream_is_gpu(stream)) {
        bench_stream_run(stream, BENCH_KERNEL_SPIN, 1, &args, sizeof(args));
    } else {
        bench_stream_launch(stream, bench_kernel_spin,
                            (void*)(uintptr_t)time_us);
    }
}

void bench_stream_synchronize(const bench_stream_t *stream)
{
    bench_check(MPIX_Host_stream_synchronize(stream->handle),
                "MPIX_Host_stream_synchronize");
}
