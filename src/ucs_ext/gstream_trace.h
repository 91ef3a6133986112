/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_trace.h - what streams record of their commands.
 *
 * A function that runs between ucs_trace_push() and ucs_trace_pop(), or calls
 * one of them, belongs to the library that does so; any other is a kernel.
 */
#ifndef GSTREAM_TRACE_H_
#define GSTREAM_TRACE_H_

#include "api/ucs_gstream.h"
#include "api/ucs_trace.h"
#include "trace_ring.h"

#include <ucs/sys/compiler_def.h>


extern const ucs_trace_kind_t gstream_trace_kernel;
extern const ucs_trace_kind_t gstream_trace_wait;
extern const ucs_trace_kind_t gstream_trace_copy;


/** When a function begins; 0 if it is not to be recorded. */
static inline uint64_t gstream_trace_func_begin(void)
{
    return (ucs_trace_is_on() && (ucs_trace_depth() == 0)) ? ucs_trace_time() :
                                                             0;
}

/** It has ended. */
static inline void gstream_trace_func_end(uint64_t begin,
                                          ucs_gstream_func_t func)
{
    uint64_t value = (uintptr_t)func;

    if (ucs_unlikely(begin != 0) && (ucs_trace_depth() == 0)) {
        ucs_trace_record(&gstream_trace_kernel, begin, 0, &value);
    }
}

/** A wait has ended: at once, by polling or by sleeping. 'word' is the last one
 *  that it was for. */
static inline void gstream_trace_wait_end(uint64_t begin, const char *how,
                                          const ucs_gstream_word_t *word)
{
    const uint64_t values[] = {(uintptr_t)how, (uintptr_t)word->address,
                               word->value};

    if (ucs_unlikely(begin != 0)) {
        ucs_trace_record(&gstream_trace_wait, begin, 0, values);
    }
}

/** A stream comes to a thread, or leaves it, with its open spans. */
static inline void gstream_trace_switch(trace_spans_t *spans)
{
    if (ucs_trace_is_on()) {
        trace_spans_swap(spans);
    }
}

/** A copy has ended. */
static inline void gstream_trace_copy_end(uint64_t begin, uint64_t length)
{
    if (ucs_unlikely(begin != 0)) {
        ucs_trace_record(&gstream_trace_copy, begin, 0, &length);
    }
}

#endif
