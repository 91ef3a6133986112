/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel_stream.c - st_channel's messages on a stream of the host, with
 * buffers that both sides have matched. The host enqueues all messages of a
 * trial, and waits once.
 */
#include "channel_bench.h"

#include <ucp_st.h>

#include <string.h>


/* Addresses go by the page, whose use ends here */
static void stream_connect(channel_port_t *port)
{
    channel_stream_t *stream = &port->stream;
    trig_page_t *page        = port->me->page;
    int rank                 = port->me->rank;
    void *address;
    size_t length;

    channel_must(port, "ucp_st_worker_get_address",
                 ucp_st_worker_get_address(stream->worker, &address, &length));
    memcpy(page->data[rank], &length, sizeof(length));
    memcpy(page->data[rank] + sizeof(length), address, length);
    ucp_st_worker_release_address(stream->worker, address);
    channel_meet(port);
    memcpy(&length, page->data[!rank], sizeof(length));
    channel_must(port, "ucp_st_peer_create",
                 ucp_st_peer_create(stream->worker,
                                    page->data[!rank] + sizeof(length), length,
                                    &stream->peer));
    channel_meet(port);
}

void channel_stream_open(channel_port_t *port)
{
    const ucs_gstream_params_t host            = {.field_mask = 0};
    const ucp_st_worker_params_t worker_params = {
        .field_mask   = UCP_ST_WORKER_PARAM_FIELD_UCP_WORKER |
                        UCP_ST_WORKER_PARAM_FIELD_UCP_FEATURES,
        .ucp_worker   = port->worker,
        .ucp_features = CHANNEL_STREAM_FEATURES
    };
    ucp_st_queue_params_t queue_params         = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM
    };
    channel_stream_t *stream                   = &port->stream;

    channel_must(port, "ucp_st_worker_create",
                 ucp_st_worker_create(&worker_params, &stream->worker));
    channel_must(port, "ucs_gstream_create",
                 ucs_gstream_create(&host, &stream->stream));
    queue_params.stream = stream->stream;
    channel_must(port, "ucp_st_queue_create",
                 ucp_st_queue_create(stream->worker, &queue_params,
                                     &stream->queue));
    stream_connect(port);
}

void channel_stream_close(channel_port_t *port)
{
    channel_stream_t *stream = &port->stream;
    unsigned turns           = 0;

    channel_must(port, "ucp_st_queue_destroy",
                 ucp_st_queue_destroy(stream->queue));
    channel_must(port, "ucs_gstream_destroy",
                 ucs_gstream_destroy(stream->stream));
    while (ucp_st_channel_ctx_destroy(port->ctx) == UCS_ERR_BUSY) {
        channel_turn(port, &turns);
    }
    port->ctx = NULL;
    channel_meet(port);
    channel_must(port, "ucp_st_worker_destroy",
                 ucp_st_worker_destroy(stream->worker));
}

static void stream_said(void *arg, ucs_status_t status, size_t length)
{
    channel_port_t *port = arg;

    (void)length;
    channel_must(port, "a message on a stream", status);
    ++port->sent;
}

static ucp_st_channel_msg_t stream_msg(channel_port_t *port, int is_send,
                                       size_t size)
{
    return (ucp_st_channel_msg_t){
        .buffer = is_send ? port->out : port->in,
        .length = size,
        .cb     = stream_said,
        .arg    = port
    };
}

/* Both directions, once a size. The other side does the same. */
static void stream_match(channel_port_t *port, size_t size)
{
    unsigned turns = 0;
    uint64_t given = 0;
    ucp_st_channel_msg_t msg;
    ucs_status_t status;
    int is_send;

    port->sent = 0;
    for (is_send = 0; is_send < 2; ++is_send) {
        msg    = stream_msg(port, is_send, size);
        status = ucp_st_channel_match(port->channel, is_send, &msg);
        if (status != UCS_ERR_ALREADY_EXISTS) {
            channel_must(port, "ucp_st_channel_match", status);
            ++given;
        }
    }
    while (port->sent < given) {
        channel_turn(port, &turns);
    }
}

static void stream_enqueue(channel_port_t *port, int is_send, size_t size)
{
    const ucp_st_channel_msg_t msg = stream_msg(port, is_send, size);

    channel_must(port, "a message on a stream",
                 (is_send ? ucp_st_channel_send_stream :
                            ucp_st_channel_recv_stream)(port->channel,
                                                        port->stream.queue,
                                                        &msg));
}

/* The stream has passed them all; then they call back */
static void stream_wait(channel_port_t *port, double *elapsed, uint64_t count)
{
    double start   = *elapsed;
    unsigned turns = 0;

    channel_must(port, "ucp_st_queue_wait",
                 ucp_st_queue_wait(port->stream.queue, NULL));
    *elapsed = trig_now() - start;
    while (port->sent < count) {
        channel_turn(port, &turns);
    }
}

static void stream_begin(channel_port_t *port, size_t size)
{
    stream_match(port, size);
    trig_fill(port->out, size, (unsigned)port->me->rank);
    memset(port->in, 0xff, size);
    port->sent = 0;
    channel_meet(port);
}

static void stream_verify(channel_port_t *port, size_t size)
{
    if (!trig_is_filled(port->in, size, (unsigned)!port->me->rank)) {
        port->me->page->verified[port->me->rank] = 0;
    }
    channel_meet(port);
}

double channel_stream_latency(channel_port_t *port, size_t size, unsigned count)
{
    int is_first = (port->me->rank == 0);
    double elapsed;
    unsigned i;

    stream_begin(port, size);
    elapsed = trig_now();
    for (i = 0; i < count; ++i) {
        stream_enqueue(port, is_first, size);
        stream_enqueue(port, !is_first, size);
    }
    stream_wait(port, &elapsed, 2ul * count);
    stream_verify(port, size);
    return elapsed / count;
}

/* Each window is answered by a message of its size */
double channel_stream_windows(channel_port_t *port, size_t size,
                              unsigned windows)
{
    int is_first = (port->me->rank == 0);
    double elapsed;
    unsigned i, k;

    stream_begin(port, size);
    elapsed = trig_now();
    for (i = 0; i < windows; ++i) {
        for (k = 0; k < CHANNEL_WINDOW; ++k) {
            stream_enqueue(port, is_first, size);
        }
        stream_enqueue(port, !is_first, size);
    }
    stream_wait(port, &elapsed, windows * (CHANNEL_WINDOW + 1ul));
    stream_verify(port, size);
    return elapsed / (windows * (double)CHANNEL_WINDOW);
}
