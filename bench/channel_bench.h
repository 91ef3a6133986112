/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel_bench.h - the ways by which st_channel sends messages between two
 * processes, each with a UCP worker of its own and an endpoint.
 *
 * A way begins sends and receives, and counts those that are over; all of them
 * have the same loops around them (channel_run.c). Main thread only.
 */
#ifndef CHANNEL_BENCH_H_
#define CHANNEL_BENCH_H_

#include "trig_bench.h"

#include <ucp_st_msg.h>
#include <ucs_gstream.h>

#define CHANNEL_WINDOW   64u          /* Messages that are sent before an
                                         answer */
#define CHANNEL_MAX_SIZE (4ul << 20)
#define CHANNEL_POOL     (16ul << 20) /* Of messages of a window; longer windows
                                         use places again */

#define CHANNEL_STREAM_FEATURES \
    (UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP)

typedef struct channel_port channel_port_t;


/** A way. A message has an index in the window, below CHANNEL_WINDOW. */
typedef struct channel_way {
    const char *latency;    /**< Names of rows */
    const char *window;
    int        has_channel; /**< What the port needs beside UCP */
    int        has_stage;
    ucp_st_msg_post_t post; /**< NULL: none */
    /** Begin; `sent` and `received` of the port grow when that is over. */
    void       (*send)(channel_port_t *port, unsigned index, size_t size);
    void       (*recv)(channel_port_t *port, unsigned index, size_t size);
    /** On a stream: loops of its own in the place of these. */
    double     (*run_latency)(channel_port_t *port, size_t size,
                              unsigned count);
    double     (*run_windows)(channel_port_t *port, size_t size,
                              unsigned windows);
} channel_way_t;

/** What a way on a stream needs. */
typedef struct channel_stream {
    ucp_st_worker_h worker;
    ucp_st_peer_h   peer;
    ucs_gstream_h   stream;
    ucp_st_queue_h  queue;
} channel_stream_t;

/** One message under way. */
typedef struct channel_op {
    channel_port_t *port;
    unsigned       index;
    size_t         size;
} channel_op_t;

/** What a process has of one way. */
struct channel_port {
    const channel_way_t  *way;
    trig_rank_t          *me;
    ucp_context_h        context;
    ucp_worker_h         worker;
    ucp_ep_h             ep;
    ucp_st_channel_ctx_h ctx;       /* With a channel */
    ucp_st_channel_h     channel;
    channel_stream_t     stream;
    uint8_t              *in;       /* CHANNEL_POOL each */
    uint8_t              *out;
    uint8_t              *stage_in; /* Or NULL */
    uint8_t              *stage_out;
    uint64_t             sent;
    uint64_t             received;
    channel_op_t         sends[CHANNEL_WINDOW];
    channel_op_t         recvs[CHANNEL_WINDOW];
};

#define CHANNEL_NUM_WAYS 5

/** Raw UCP first: the baseline. */
extern const channel_way_t channel_ways[CHANNEL_NUM_WAYS];


/** Where a message of a window is in a pool. */
static inline size_t channel_place(unsigned index, size_t size)
{
    return (index % (CHANNEL_POOL / size)) * size;
}

/** Ends both processes unless the status is UCS_OK or UCS_INPROGRESS. */
void channel_must(channel_port_t *port, const char *what, ucs_status_t status);

/** Makes the port of a way. Both processes. */
channel_port_t *channel_port_open(trig_rank_t *me, const channel_way_t *way);
void channel_port_close(channel_port_t *port);

/** One turn of a loop that waits for UCP. */
void channel_turn(channel_port_t *port, unsigned *turns);

/** Both have come here; UCP goes on meanwhile. */
void channel_meet(channel_port_t *port);

/** Of a way on a stream, with the port. */
void channel_stream_open(channel_port_t *port);
void channel_stream_close(channel_port_t *port);
double channel_stream_latency(channel_port_t *port, size_t size,
                              unsigned count);
double channel_stream_windows(channel_port_t *port, size_t size,
                              unsigned windows);

/** Messages back and forth; microseconds of a round trip. */
double channel_latency(channel_port_t *port, size_t size, unsigned count);

/** Windows of messages to rank 1; microseconds of one message. */
double channel_windows(channel_port_t *port, size_t size, unsigned windows);

#endif
