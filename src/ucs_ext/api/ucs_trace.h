/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucs_trace.h - what the threads of a process do, recorded for a file that
 * shows it over time (UCX_ST_TRACE, docs/tracing.md).
 *
 * Each thread records into memory of its own: no lock, no system call and no
 * allocation but for its first event. The oldest events make room for new ones,
 * and are counted. Where nothing is recorded an event is one branch.
 *
 *     uint64_t begin = ucs_trace_begin();
 *     compute();
 *     ucs_trace_end("compute", begin);
 */
#ifndef UCS_TRACE_H_
#define UCS_TRACE_H_

#include <ucs/type/status.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Most values of an event. */
#define UCS_TRACE_MAX_VALUES 7


/** What an event is. */
typedef enum {
    UCS_TRACE_SPAN,   /**< Of the recording thread, within its other spans */
    UCS_TRACE_ASYNC,  /**< Of the process, at any time */
    UCS_TRACE_INSTANT /**< A moment of the recording thread */
} ucs_trace_type_t;


/** The end of an arrow that a span is. Both ends have the same id, which no
 *  other pair of spans has in any process. */
typedef enum {
    UCS_TRACE_FLOW_NONE, /**< None */
    UCS_TRACE_FLOW_OUT,  /**< The arrow begins here */
    UCS_TRACE_FLOW_IN    /**< It ends here */
} ucs_trace_flow_t;


/** How a value is shown. */
typedef enum {
    UCS_TRACE_VALUE_NUMBER, /**< Decimal */
    UCS_TRACE_VALUE_HEX,    /**< Hexadecimal */
    UCS_TRACE_VALUE_TEXT,   /**< A constant string, by its address */
    UCS_TRACE_VALUE_CODE    /**< A function, by its address */
} ucs_trace_format_t;


/** What events of one kind have in common. Must live for ever, as must the
 *  texts that it names. */
typedef struct ucs_trace_kind {
    const char       *name;     /**< NULL: the first value is the name */
    const char       *category; /**< For colours and filters */
    ucs_trace_type_t type;      /**< What they are */
    ucs_trace_flow_t flow;      /**< For spans */
    struct {
        const char         *name;  /**< NULL behind the last one */
        ucs_trace_format_t format; /**< How it is shown */
    } values[UCS_TRACE_MAX_VALUES]; /**< Of each event */
} ucs_trace_kind_t;


/** Non-zero while events are recorded; see ucs_trace_is_on(). */
extern int ucs_trace_switch;


/**
 * Tell whether events are recorded. It does not change once the first stream or
 * worker of the process was made.
 *
 * @return Non-zero if so.
 *
 * Threads: any.
 */
static inline int ucs_trace_is_on(void)
{
    return __builtin_expect(__atomic_load_n(&ucs_trace_switch,
                                            __ATOMIC_RELAXED), 0);
}


/**
 * Begin to record if UCX_ST_TRACE says so. Done by the functions that make
 * streams and workers; the first call counts.
 *
 * @return UCS_OK, also where nothing is to be recorded; UCS_ERR_INVALID_PARAM
 *         for a size that cannot be; UCS_ERR_IO_ERROR if the file cannot be
 *         written, or another process writes it; UCS_ERR_NO_RESOURCE if it
 *         could not be written at exit. The reason is logged.
 *
 * Threads: any.
 */
ucs_status_t ucs_trace_open(void);


/**
 * Write the file with what was recorded so far. The exit of the process does so
 * again.
 *
 * @return UCS_OK, also where nothing is recorded; UCS_ERR_IO_ERROR, logged.
 *
 * Threads: any.
 */
ucs_status_t ucs_trace_flush(void);


/**
 * Time of the trace.
 *
 * @return Nanoseconds of CLOCK_MONOTONIC.
 *
 * Threads: any.
 */
uint64_t ucs_trace_time(void);


/**
 * Record an event that ends now.
 *
 * @param [in] kind   Its kind.
 * @param [in] begin  When it began, of @ref ucs_trace_time; not used for an
 *                    instant.
 * @param [in] id     Of the arrow, or of the asynchronous span in the process.
 * @param [in] values As many as the kind has; may be NULL if it has none.
 *
 * Threads: any. To be called only while ucs_trace_is_on().
 */
void ucs_trace_record(const ucs_trace_kind_t *kind, uint64_t begin, uint64_t id,
                      const uint64_t *values);


/**
 * Begin a span that another function of the same thread ends, such as a later
 * command of a stream. What the stream runs in between is no kernel.
 *
 * Threads: any. To be called only while ucs_trace_is_on().
 */
void ucs_trace_push(void);


/**
 * End the span that the last @ref ucs_trace_push began.
 *
 * @param [in] kind   As of @ref ucs_trace_record.
 * @param [in] id     As of @ref ucs_trace_record.
 * @param [in] values As of @ref ucs_trace_record.
 *
 * Threads: the one that began it.
 */
void ucs_trace_pop(const ucs_trace_kind_t *kind, uint64_t id,
                   const uint64_t *values);


/**
 * How many spans @ref ucs_trace_push has begun that are not ended.
 *
 * @return The number, of the calling thread.
 *
 * Threads: any.
 */
unsigned ucs_trace_depth(void);


/**
 * Record a span of the calling thread that has a name alone.
 *
 * @param [in] name  Must live for ever: a constant.
 * @param [in] begin When it began.
 *
 * Threads: any. To be called only while ucs_trace_is_on().
 */
void ucs_trace_record_name(const char *name, uint64_t begin);


/**
 * The beginning of a span, for @ref ucs_trace_end.
 *
 * @return Time; 0 where nothing is recorded.
 *
 * Threads: any.
 */
static inline uint64_t ucs_trace_begin(void)
{
    return ucs_trace_is_on() ? ucs_trace_time() : 0;
}


/**
 * End a span of the calling thread, within those that it has begun and not
 * ended: a call of a library, a phase of a program.
 *
 * @param [in] name  As of @ref ucs_trace_record_name.
 * @param [in] begin What @ref ucs_trace_begin returned.
 *
 * Threads: the one that began it.
 */
static inline void ucs_trace_end(const char *name, uint64_t begin)
{
    if (__builtin_expect(begin != 0, 0)) {
        ucs_trace_record_name(name, begin);
    }
}

#ifdef __cplusplus
}
#endif

#endif
