/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_ring.h - the events of one thread.
 *
 * One writer, its thread; any readers, at any time, without a lock. An event
 * takes the place of the oldest one. A reader that was overtaken by the writer
 * finds out:
 *
 *     writer                              reader
 *     begun = n + 1                       load the words (acquire)
 *     store the words (release)           load begun: events that are a whole
 *     count = n + 1 (release)             ring behind it were overwritten
 */
#ifndef TRACE_RING_H_
#define TRACE_RING_H_

#include "api/ucs_trace.h"

#include <stdatomic.h>
#include <stddef.h>

/** Longest name of a thread, with the final zero; the kernel's limit. */
#define TRACE_RING_NAME_MAX 16

/** Most spans that are begun by ucs_trace_push() and not ended. */
#define TRACE_RING_MAX_DEPTH 8


/** An event. */
typedef struct trace_event {
    const ucs_trace_kind_t *kind;
    uint64_t               begin; /**< ns */
    uint64_t               end;   /**< ns */
    uint64_t               id;
    uint64_t               values[UCS_TRACE_MAX_VALUES];
} trace_event_t;


/** 8-byte words of an event. */
#define TRACE_RING_WORDS (sizeof(trace_event_t) / sizeof(uint64_t))


/** Spans that are begun and not ended. */
typedef struct trace_spans {
    unsigned depth;
    uint64_t begins[TRACE_RING_MAX_DEPTH];
} trace_spans_t;


/** A thread's events. Constant once it is in the list, but for `open`, which is
 *  the thread's, and what is atomic. */
typedef struct trace_ring {
    struct trace_ring *next;
    uint64_t          size; /**< Events */
    int               tid;
    char              name[TRACE_RING_NAME_MAX];
    trace_spans_t     open;
    _Atomic uint64_t  begun; /**< Events written, or being written */
    _Atomic uint64_t  count; /**< Events written */
    _Atomic uint64_t  words[];
} trace_ring_t;


/** Make a ring of so many bytes for the calling thread, and put it into the
 *  list; NULL without memory. */
trace_ring_t *trace_ring_create(size_t bytes);


/** Exchange the calling thread's open spans for others: a stream's that goes
 *  from thread to thread. */
void trace_spans_swap(trace_spans_t *spans);


/** The last ring that was put into the list, from which `next` leads to all the
 *  others. */
trace_ring_t *trace_ring_first(void);


/** Add an event; the ring's thread only. */
void trace_ring_add(trace_ring_t *ring, const trace_event_t *event);


/** Read event number `index`, from 0, of those that were ever added; 0 if it is
 *  not there any more. Any thread. */
int trace_ring_read(trace_ring_t *ring, uint64_t index, trace_event_t *event);


/** Number of the oldest event that may be there, of `count`. */
uint64_t trace_ring_oldest(const trace_ring_t *ring, uint64_t count);

#endif
