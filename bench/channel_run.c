/* SPDX-License-Identifier: BSD-3-Clause */
/* channel_run.c - st_channel's workers and endpoints, and the loops that are
 * timed. */
#include "channel_bench.h"

#include <stdlib.h>
#include <string.h>

/* Answers to windows: raw UCP in all ways */
#define RUN_TAG_ANSWER (15ull << 60)

/* What each side leaves in the page for the other one: its address */
typedef struct channel_card {
    size_t  length;
    uint8_t address[];
} channel_card_t;


void channel_must(channel_port_t *port, const char *what, ucs_status_t status)
{
    if (status != UCS_INPROGRESS) {
        trig_need(port->me, what, status);
    }
}

void channel_turn(channel_port_t *port, unsigned *turns)
{
    unsigned count = ucp_worker_progress(port->worker);

    if ((port->stream.worker != NULL) && (port->ctx != NULL)) {
        count += ucp_st_channel_progress(port->ctx);
    }
    if (count == 0) {
        trig_turn(port->me, turns);
    }
}

void channel_meet(channel_port_t *port)
{
    uint32_t step  = trig_arrive(port->me);
    unsigned turns = 0;

    while (!trig_is_met(port->me, step)) {
        channel_turn(port, &turns);
    }
}

static void run_wait(channel_port_t *port, const uint64_t *count,
                     uint64_t value)
{
    unsigned turns = 0;

    while (*count < value) {
        channel_turn(port, &turns);
    }
}

static void run_end(channel_port_t *port, const char *what, void *request)
{
    unsigned turns = 0;

    if (!UCS_PTR_IS_PTR(request)) {
        channel_must(port, what, UCS_PTR_STATUS(request));
        return;
    }
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        channel_turn(port, &turns);
    }
    channel_must(port, what, ucp_request_check_status(request));
    ucp_request_free(request);
}

/* Data depends on its sender and its place in the pool. */
static unsigned run_seed(unsigned index, size_t size, int rank)
{
    return rank + 2 * (index % (CHANNEL_POOL / size));
}

/* Places of a window that are different */
static unsigned run_places(size_t size)
{
    return (CHANNEL_POOL / size < CHANNEL_WINDOW) ?
           (unsigned)(CHANNEL_POOL / size) : CHANNEL_WINDOW;
}

static void run_start(channel_port_t *port, size_t size, unsigned places)
{
    unsigned i;

    for (i = 0; i < places; ++i) {
        trig_fill(port->out + channel_place(i, size), size,
                  run_seed(i, size, port->me->rank));
        memset(port->in + channel_place(i, size), 0xff, size);
    }
    port->sent     = 0;
    port->received = 0;
}

static void run_verify(channel_port_t *port, int is_right)
{
    if (!is_right) {
        port->me->page->verified[port->me->rank] = 0;
    }
}

/* Each message begins with its number, which is looked at while the time runs;
 * all data of the last one are. */
double channel_latency(channel_port_t *port, size_t size, unsigned count)
{
    const channel_way_t *way = port->way;
    int is_first             = (port->me->rank == 0);
    double start;
    uint64_t i;

    if (way->run_latency != NULL) {
        return way->run_latency(port, size, count);
    }
    run_start(port, size, 1);
    channel_meet(port);
    start = trig_now();
    for (i = 1; i <= count; ++i) {
        way->recv(port, 0, size);
        if (!is_first) {
            run_wait(port, &port->received, i);
        }
        memcpy(port->out, &i, sizeof(i));
        way->send(port, 0, size);
        if (is_first) {
            run_wait(port, &port->received, i);
        }
        run_wait(port, &port->sent, i);
        run_verify(port, memcmp(port->in, &i, sizeof(i)) == 0);
    }
    start = trig_now() - start;
    trig_fill(port->in, 8, run_seed(0, size, !port->me->rank));
    run_verify(port, trig_is_filled(port->in, size,
                                    run_seed(0, size, !port->me->rank)));
    channel_meet(port);
    return start / count;
}

static void run_send_windows(channel_port_t *port, size_t size,
                             unsigned windows)
{
    static const ucp_request_param_t param;
    uint64_t answer, i;
    unsigned k;
    void *request;

    for (i = 1; i <= windows; ++i) {
        request = ucp_tag_recv_nbx(port->worker, &answer, sizeof(answer),
                                   RUN_TAG_ANSWER, UINT64_MAX, &param);
        for (k = 0; k < CHANNEL_WINDOW; ++k) {
            port->way->send(port, k, size);
        }
        run_wait(port, &port->sent, i * CHANNEL_WINDOW);
        run_end(port, "an answer", request);
    }
}

static void run_recv_window(channel_port_t *port, size_t size)
{
    unsigned k;

    for (k = 0; k < CHANNEL_WINDOW; ++k) {
        port->way->recv(port, k, size);
    }
}

static void run_recv_windows(channel_port_t *port, size_t size,
                             unsigned windows)
{
    static const ucp_request_param_t param;
    uint64_t i;

    for (i = 1; i <= windows; ++i) {
        run_wait(port, &port->received, i * CHANNEL_WINDOW);
        if (i < windows) {
            run_recv_window(port, size);
        }
        run_end(port, "an answer",
                ucp_tag_send_nbx(port->ep, &i, sizeof(i), RUN_TAG_ANSWER,
                                 &param));
    }
}

double channel_windows(channel_port_t *port, size_t size, unsigned windows)
{
    double start;
    unsigned k;

    if (port->way->run_windows != NULL) {
        return port->way->run_windows(port, size, windows);
    }
    run_start(port, size, run_places(size));
    if (port->me->rank == 1) {
        run_recv_window(port, size);
    }
    channel_meet(port);
    start = trig_now();
    if (port->me->rank == 0) {
        run_send_windows(port, size, windows);
    } else {
        run_recv_windows(port, size, windows);
    }
    start = trig_now() - start;
    for (k = 0; (port->me->rank == 1) && (k < run_places(size)); ++k) {
        run_verify(port, trig_is_filled(port->in + channel_place(k, size), size,
                                        run_seed(k, size, 0)));
    }
    channel_meet(port);
    return start / (windows * (double)CHANNEL_WINDOW);
}

static uint8_t *port_memory(channel_port_t *port)
{
    void *memory = NULL;

    if (posix_memalign(&memory, 4096, CHANNEL_POOL) != 0) {
        trig_give_up(port->me, "posix_memalign", 0);
    }
    return memset(memory, 0, CHANNEL_POOL);
}

static void port_open_worker(channel_port_t *port)
{
    int is_stream                           = (port->way->run_latency != NULL);
    const ucp_params_t params               = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = is_stream ? CHANNEL_STREAM_FEATURES : UCP_FEATURE_TAG
    };
    const ucp_worker_params_t worker_params = {
        .field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
        .thread_mode = is_stream ? UCS_THREAD_MODE_MULTI :
                                   UCS_THREAD_MODE_SINGLE
    };

    channel_must(port, "ucp_init", ucp_init(&params, NULL, &port->context));
    channel_must(port, "ucp_worker_create",
                 ucp_worker_create(port->context, &worker_params,
                                   &port->worker));
}

/* By the page, whose use ends here */
static void port_connect(channel_port_t *port)
{
    trig_page_t *page         = port->me->page;
    channel_card_t *mine      = (channel_card_t*)page->data[port->me->rank];
    channel_card_t *far       = (channel_card_t*)page->data[!port->me->rank];
    ucp_ep_params_t ep_params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .address    = (const ucp_address_t*)far->address
    };
    ucp_address_t *address;

    channel_must(port, "ucp_worker_get_address",
                 ucp_worker_get_address(port->worker, &address, &mine->length));
    memcpy(mine->address, address, mine->length);
    ucp_worker_release_address(port->worker, address);
    channel_meet(port);
    channel_must(port, "ucp_ep_create",
                 ucp_ep_create(port->worker, &ep_params, &port->ep));
    channel_meet(port);
}

static void port_open_channel(channel_port_t *port)
{
    const ucp_st_channel_ctx_params_t ctx_params = {
        .field_mask = UCP_ST_CHANNEL_CTX_PARAM_FIELD_UCP_WORKER |
                      UCP_ST_CHANNEL_CTX_PARAM_FIELD_ST_WORKER,
        .ucp_worker = port->worker,
        .st_worker  = port->stream.worker
    };
    const ucp_st_channel_params_t params         = {
        .field_mask = UCP_ST_CHANNEL_PARAM_FIELD_EP |
                      UCP_ST_CHANNEL_PARAM_FIELD_ID |
                      UCP_ST_CHANNEL_PARAM_FIELD_END |
                      UCP_ST_CHANNEL_PARAM_FIELD_PEER,
        .ep         = port->ep,
        .peer       = port->stream.peer,
        .id         = 1,
        .end        = (unsigned)port->me->rank
    };

    channel_must(port, "ucp_st_channel_ctx_create",
                 ucp_st_channel_ctx_create(&ctx_params, &port->ctx));
    channel_must(port, "ucp_st_channel_create",
                 ucp_st_channel_create(port->ctx, &params, &port->channel));
    if (port->way->post != NULL) {
        channel_must(port, "ucp_st_msg_set_post",
                     ucp_st_msg_set_post(port->ctx, port->way->post, port));
    }
}

channel_port_t *channel_port_open(trig_rank_t *me, const channel_way_t *way)
{
    channel_port_t *port = calloc(1, sizeof(*port));
    unsigned i;

    if (port == NULL) {
        trig_give_up(me, "calloc", 0);
    }
    port->me  = me;
    port->way = way;
    port->in  = port_memory(port);
    port->out = port_memory(port);
    if (way->has_stage) {
        port->stage_in  = port_memory(port);
        port->stage_out = port_memory(port);
    }
    for (i = 0; i < CHANNEL_WINDOW; ++i) {
        port->sends[i] = (channel_op_t){.port = port, .index = i};
        port->recvs[i] = (channel_op_t){.port = port, .index = i};
    }
    port_open_worker(port);
    port_connect(port);
    if (way->run_latency != NULL) {
        channel_stream_open(port);
    }
    if (way->has_channel) {
        port_open_channel(port);
    }
    return port;
}

void channel_port_close(channel_port_t *port)
{
    static const ucp_request_param_t param;

    if (port->way->has_channel) {
        channel_must(port, "ucp_st_channel_destroy",
                     ucp_st_channel_destroy(port->channel));
    }
    if (port->way->run_latency != NULL) {
        channel_stream_close(port);
    } else if (port->way->has_channel) {
        channel_must(port, "ucp_st_channel_ctx_destroy",
                     ucp_st_channel_ctx_destroy(port->ctx));
    }
    run_end(port, "ucp_ep_close_nbx", ucp_ep_close_nbx(port->ep, &param));
    channel_meet(port);
    ucp_worker_destroy(port->worker);
    ucp_cleanup(port->context);
    free(port->stage_out);
    free(port->stage_in);
    free(port->out);
    free(port->in);
    free(port);
}
