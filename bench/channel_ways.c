/* SPDX-License-Identifier: BSD-3-Clause */
/* channel_ways.c - st_channel's messages, by each way. */
#include "channel_bench.h"

#include <string.h>

/* A type of tags, in the highest 4 bits, that channels do not use */
#define WAY_TAG_RAW (1ull << 60)


/* As runtimes do: a callback, and a descriptor of their own */
static void way_sent(void *request, ucs_status_t status, void *user_data)
{
    channel_op_t *op = user_data;

    channel_must(op->port, "a send", status);
    ++op->port->sent;
    if (request != NULL) {
        ucp_request_free(request);
    }
}

static void way_received(void *request, ucs_status_t status,
                         const ucp_tag_recv_info_t *info, void *user_data)
{
    channel_op_t *op = user_data;

    (void)info;
    channel_must(op->port, "a receive", status);
    ++op->port->received;
    if (request != NULL) {
        ucp_request_free(request);
    }
}

static void way_tag_send(channel_op_t *op, const void *buffer, size_t length,
                         uint64_t tag, ucp_send_nbx_callback_t cb)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = cb,
        .user_data    = op
    };
    void *request = ucp_tag_send_nbx(op->port->ep, buffer, length, tag, &param);

    if (!UCS_PTR_IS_PTR(request)) {
        cb(NULL, UCS_PTR_STATUS(request), op);
    }
}

static void way_tag_recv(channel_op_t *op, void *buffer, size_t length,
                         uint64_t tag, ucp_tag_recv_nbx_callback_t cb)
{
    const ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.recv      = cb,
        .user_data    = op
    };
    void *request = ucp_tag_recv_nbx(op->port->worker, buffer, length, tag,
                                     UINT64_MAX, &param);

    if (!UCS_PTR_IS_PTR(request)) {
        cb(NULL, UCS_PTR_STATUS(request), NULL, op);
    }
}

static void way_raw_send(channel_port_t *port, unsigned index, size_t size)
{
    way_tag_send(&port->sends[index], port->out + channel_place(index, size),
                 size, WAY_TAG_RAW, way_sent);
}

static void way_raw_recv(channel_port_t *port, unsigned index, size_t size)
{
    way_tag_recv(&port->recvs[index], port->in + channel_place(index, size),
                 size, WAY_TAG_RAW, way_received);
}

static void way_channel_sent(void *arg, ucs_status_t status, size_t length)
{
    channel_port_t *port = arg;

    (void)length;
    channel_must(port, "ucp_st_channel_send", status);
    ++port->sent;
}

static void way_channel_received(void *arg, ucs_status_t status, size_t length)
{
    channel_port_t *port = arg;

    (void)length;
    channel_must(port, "ucp_st_channel_recv", status);
    ++port->received;
}

static void way_channel_send(channel_port_t *port, unsigned index, size_t size)
{
    const ucp_st_channel_msg_t msg = {
        .buffer = port->out + channel_place(index, size),
        .length = size,
        .cb     = way_channel_sent,
        .arg    = port
    };
    ucs_status_t status            = ucp_st_channel_send(port->channel, &msg);

    if (status != UCS_INPROGRESS) {
        way_channel_sent(port, status, size);
    }
}

static void way_channel_recv(channel_port_t *port, unsigned index, size_t size)
{
    const ucp_st_channel_msg_t msg = {
        .buffer = port->in + channel_place(index, size),
        .length = size,
        .cb     = way_channel_received,
        .arg    = port
    };
    ucs_status_t status            = ucp_st_channel_recv(port->channel, &msg,
                                                         NULL);

    if (status != UCS_INPROGRESS) {
        way_channel_received(port, status, size);
    }
}

/* The header tells where in the window the message is to go */
static void way_post_send(channel_port_t *port, unsigned index, size_t size)
{
    const ucp_st_msg_header_t header = {
        .data   = &index,
        .length = sizeof(index)
    };
    const ucp_st_channel_msg_t msg   = {
        .buffer = port->out + channel_place(index, size),
        .length = size,
        .cb     = way_channel_sent,
        .arg    = port
    };
    ucs_status_t status;

    status = ucp_st_msg_send_post(port->ctx, port->ep,
                                  (uint64_t)port->me->rank, &header, &msg);
    if (status != UCS_INPROGRESS) {
        way_channel_sent(port, status, size);
    }
}

static void way_post(void *arg, const ucp_st_msg_meta_t *meta,
                     const void *header, size_t header_length)
{
    channel_port_t *port     = arg;
    ucp_st_channel_msg_t msg = {
        .length = meta->length,
        .cb     = way_channel_received,
        .arg    = port
    };
    unsigned index           = 0;
    ucs_status_t status;

    memcpy(&index, header, header_length);
    msg.buffer = port->in + channel_place(index, meta->length);
    status     = ucp_st_msg_recv(port->ctx, meta, &msg, NULL, NULL);
    if (status != UCS_INPROGRESS) {
        way_channel_received(port, status, meta->length);
    }
}

/* The metadata say it */
static void way_post_recv(channel_port_t *port, unsigned index, size_t size)
{
    (void)port;
    (void)index;
    (void)size;
}

static void way_stage_send(channel_port_t *port, unsigned index, size_t size)
{
    size_t place = channel_place(index, size);

    memcpy(port->stage_out + place, port->out + place, size);
    way_tag_send(&port->sends[index], port->stage_out + place, size,
                 WAY_TAG_RAW, way_sent);
}

static void way_stage_received(void *request, ucs_status_t status,
                               const ucp_tag_recv_info_t *info, void *user_data)
{
    channel_op_t *op = user_data;
    size_t place     = channel_place(op->index, op->size);

    channel_must(op->port, "a receive", status);
    memcpy(op->port->in + place, op->port->stage_in + place, op->size);
    way_received(request, status, info, op);
}

static void way_stage_recv(channel_port_t *port, unsigned index, size_t size)
{
    channel_op_t *op = &port->recvs[index];

    op->size = size;
    way_tag_recv(op, port->stage_in + channel_place(index, size), size,
                 WAY_TAG_RAW, way_stage_received);
}

const channel_way_t channel_ways[CHANNEL_NUM_WAYS] = {
    {.latency = "latency raw",
     .window  = "window raw",
     .send    = way_raw_send,
     .recv    = way_raw_recv},
    {.latency     = "latency channel",
     .window      = "window channel",
     .has_channel = 1,
     .send        = way_channel_send,
     .recv        = way_channel_recv},
    {.latency     = "latency metadata",
     .window      = "window metadata",
     .has_channel = 1,
     .post        = way_post,
     .send        = way_post_send,
     .recv        = way_post_recv},
    {.latency   = "latency staging",
     .window    = "window staging",
     .has_stage = 1,
     .send      = way_stage_send,
     .recv      = way_stage_recv},
    {.latency     = "latency stream",
     .window      = "window stream",
     .has_channel = 1,
     .run_latency = channel_stream_latency,
     .run_windows = channel_stream_windows}
};
