/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_write.c - recorded events as Chrome's trace format: JSON that
 * ui.perfetto.dev and chrome://tracing show. docs/tracing.md describes it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#ifndef _GNU_SOURCE
#  define _GNU_SOURCE /* dladdr() */
#endif

#include "trace_write.h"
#include "trace_ring.h"

#include <ucs/sys/math.h>

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>


/* What is being written. */
typedef struct trace_writer {
    FILE     *file;
    int      pid;
    uint64_t recorded;
    uint64_t dropped;
    int      is_first; /* No event was written yet */
} trace_writer_t;


static void trace_write_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text != '\0'; ++text) {
        if ((*text == '"') || (*text == '\\')) {
            fputc('\\', file);
        }
        fputc(((unsigned char)*text < ' ') ? '?' : *text, file);
    }
    fputc('"', file);
}

/* Nanoseconds as the format's microseconds */
static void trace_write_time(FILE *file, const char *name, uint64_t nsec)
{
    fprintf(file, ",\"%s\":%" PRIu64 ".%03" PRIu64, name, nsec / 1000,
            nsec % 1000);
}

/* A function's name where the dynamic linker knows it, else where its code is
 */
static void trace_write_code(FILE *file, uint64_t address)
{
    const void *code = (const void*)(uintptr_t)address;
    char place[PATH_MAX + 32];
    Dl_info info;

    if (dladdr(code, &info) == 0) {
        snprintf(place, sizeof(place), "0x%" PRIx64, address);
    } else if ((info.dli_sname != NULL) && (info.dli_saddr == code)) {
        snprintf(place, sizeof(place), "%s", info.dli_sname);
    } else {
        snprintf(place, sizeof(place), "%s+0x%" PRIx64,
                 basename(info.dli_fname),
                 address - (uint64_t)(uintptr_t)info.dli_fbase);
    }
    trace_write_text(file, place);
}

static void trace_write_value(FILE *file, ucs_trace_format_t format,
                              uint64_t value)
{
    switch (format) {
    case UCS_TRACE_VALUE_NUMBER:
        fprintf(file, "%" PRIu64, value);
        break;
    case UCS_TRACE_VALUE_HEX:
        /* A string: the format's numbers have 53 bits */
        fprintf(file, "\"0x%" PRIx64 "\"", value);
        break;
    case UCS_TRACE_VALUE_TEXT:
        trace_write_text(file, (const char*)(uintptr_t)value);
        break;
    case UCS_TRACE_VALUE_CODE:
        trace_write_code(file, value);
        break;
    }
}

/* What all entries begin with */
static void trace_write_head(trace_writer_t *writer, const char *phase, int tid)
{
    fprintf(writer->file, "%s\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%d",
            writer->is_first ? "" : ",", phase, writer->pid, tid);
    writer->is_first = 0;
}

static void trace_write_name(FILE *file, const trace_event_t *event)
{
    const ucs_trace_kind_t *kind = event->kind;

    fputs(",\"name\":", file);
    if (kind->name != NULL) {
        trace_write_text(file, kind->name);
    } else {
        trace_write_value(file, kind->values[0].format, event->values[0]);
    }
    fputs(",\"cat\":", file);
    trace_write_text(file, kind->category);
}

static void trace_write_values(FILE *file, const trace_event_t *event)
{
    const ucs_trace_kind_t *kind = event->kind;
    unsigned first               = (kind->name == NULL) ? 1 : 0;
    unsigned i;

    fputs(",\"args\":{", file);
    for (i = first; (i < UCS_TRACE_MAX_VALUES) &&
                    (kind->values[i].name != NULL); ++i) {
        fputs((i == first) ? "" : ",", file);
        trace_write_text(file, kind->values[i].name);
        fputc(':', file);
        trace_write_value(file, kind->values[i].format, event->values[i]);
    }
    fputc('}', file);
}

/* An end of an arrow, at the end of the span that it belongs to */
static void trace_write_flow(trace_writer_t *writer, int tid,
                             const trace_event_t *event)
{
    int is_out = (event->kind->flow == UCS_TRACE_FLOW_OUT);

    if (event->kind->flow == UCS_TRACE_FLOW_NONE) {
        return;
    }
    trace_write_head(writer, is_out ? "s" : "f", tid);
    fprintf(writer->file, ",\"name\":\"message\",\"cat\":\"message\","
            "\"id\":\"0x%016" PRIx64 "\"%s", event->id,
            is_out ? "" : ",\"bp\":\"e\"");
    trace_write_time(writer->file, "ts", event->end - 1);
    fputc('}', writer->file);
}

static void trace_write_span(trace_writer_t *writer, int tid,
                             const trace_event_t *event)
{
    trace_write_head(writer, "X", tid);
    trace_write_name(writer->file, event);
    trace_write_time(writer->file, "ts", event->begin);
    trace_write_time(writer->file, "dur", event->end - event->begin);
    trace_write_values(writer->file, event);
    fputc('}', writer->file);
    trace_write_flow(writer, tid, event);
}

static void trace_write_async_end(trace_writer_t *writer, int tid,
                                  const trace_event_t *event, int is_begin)
{
    trace_write_head(writer, is_begin ? "b" : "e", tid);
    trace_write_name(writer->file, event);
    fprintf(writer->file, ",\"id2\":{\"local\":\"0x%" PRIx64 "\"}", event->id);
    trace_write_time(writer->file, "ts", is_begin ? event->begin : event->end);
    if (is_begin) {
        trace_write_values(writer->file, event);
    }
    fputc('}', writer->file);
}

static void trace_write_instant(trace_writer_t *writer, int tid,
                                const trace_event_t *event)
{
    trace_write_head(writer, "i", tid);
    trace_write_name(writer->file, event);
    fputs(",\"s\":\"t\"", writer->file);
    trace_write_time(writer->file, "ts", event->end);
    trace_write_values(writer->file, event);
    fputc('}', writer->file);
}

static void trace_write_event(trace_writer_t *writer, int tid,
                              const trace_event_t *event)
{
    switch (event->kind->type) {
    case UCS_TRACE_SPAN:
        trace_write_span(writer, tid, event);
        break;
    case UCS_TRACE_ASYNC:
        trace_write_async_end(writer, tid, event, 1);
        trace_write_async_end(writer, tid, event, 0);
        break;
    case UCS_TRACE_INSTANT:
        trace_write_instant(writer, tid, event);
        break;
    }
}

static void trace_write_ring(trace_writer_t *writer, trace_ring_t *ring)
{
    uint64_t count  = atomic_load(&ring->count);
    uint64_t oldest = trace_ring_oldest(ring, count);
    trace_event_t event;
    uint64_t i;

    trace_write_head(writer, "M", ring->tid);
    fputs(",\"name\":\"thread_name\",\"args\":{\"name\":", writer->file);
    trace_write_text(writer->file, ring->name);
    fputs("}}", writer->file);
    writer->recorded += count;
    writer->dropped  += oldest;
    for (i = oldest; i < count; ++i) {
        if (trace_ring_read(ring, i, &event)) {
            trace_write_event(writer, ring->tid, &event);
        } else {
            ++writer->dropped;
        }
    }
}

/* The number of the process in its job, as launchers tell it; NULL if none
 * does */
static const char *trace_write_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK", "SLURM_PROCID"};
    const char *rank                 = NULL;
    unsigned i;

    for (i = 0; (i < ucs_static_array_size(names)) && (rank == NULL); ++i) {
        rank = getenv(names[i]);
    }
    return rank;
}

/* Says whose CLOCK_MONOTONIC the times are of */
static void trace_write_boot_id(FILE *file)
{
    char id[64] = "";
    FILE *source;

    source = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (source != NULL) {
        if (fgets(id, sizeof(id), source) != NULL) {
            id[strcspn(id, "\n")] = '\0';
        }
        fclose(source);
    }
    trace_write_text(file, id);
}

static int64_t trace_write_clock(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (ts.tv_sec * INT64_C(1000000000)) + ts.tv_nsec;
}

static void trace_write_process(trace_writer_t *writer, const char *host)
{
    const char *rank = trace_write_rank();
    char name[HOST_NAME_MAX + 128];

    snprintf(name, sizeof(name), "%s%s%s (%s:%d)",
             (rank == NULL) ? "" : "rank ", (rank == NULL) ? "" : rank,
             (rank == NULL) ? program_invocation_short_name : "", host,
             writer->pid);
    trace_write_head(writer, "M", writer->pid);
    fputs(",\"name\":\"process_name\",\"args\":{\"name\":", writer->file);
    trace_write_text(writer->file, name);
    fputs("}}", writer->file);
}

static void trace_write_other(trace_writer_t *writer, const char *host,
                              uint64_t lost)
{
    const char *rank = trace_write_rank();
    FILE *file       = writer->file;

    fputs("\n],\"displayTimeUnit\":\"ns\",\"otherData\":{"
          "\"format\":\"ucx-st-trace-1\",\"host\":", file);
    trace_write_text(file, host);
    fprintf(file, ",\"pid\":%d,\"program\":", writer->pid);
    trace_write_text(file, program_invocation_short_name);
    fputs(",\"rank\":", file);
    trace_write_text(file, (rank == NULL) ? "" : rank);
    fputs(",\"boot_id\":", file);
    trace_write_boot_id(file);
    fprintf(file, ",\"realtime_offset_ns\":\"%" PRId64 "\"",
            trace_write_clock(CLOCK_REALTIME) -
            trace_write_clock(CLOCK_MONOTONIC));
    fprintf(file, ",\"recorded\":%" PRIu64 ",\"dropped\":%" PRIu64 "}}\n",
            writer->recorded + lost, writer->dropped + lost);
}

void trace_write(FILE *file, uint64_t lost)
{
    char host[HOST_NAME_MAX + 1] = "?";
    trace_writer_t writer = {
        .file     = file,
        .pid      = (int)getpid(),
        .is_first = 1
    };
    trace_ring_t *ring;

    (void)gethostname(host, sizeof(host) - 1);
    fputs("{\"traceEvents\":[", file);
    trace_write_process(&writer, host);
    for (ring = trace_ring_first(); ring != NULL; ring = ring->next) {
        trace_write_ring(&writer, ring);
    }
    trace_write_other(&writer, host, lost);
}
