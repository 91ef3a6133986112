/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucx_storm_ops.c - what a rank of ucx_storm does with another one.
 */
#include "ucx_storm.h"
#include "st_bytes.h"

#include <stdio.h>
#include <string.h>

/* UCX's protocols since 1.16 have no atomics where the end of a peer is told.
 * They emulate gets there, and abort a process that is to answer one of a dead
 * peer. Seen with 1.18. */
#define HAS_GETS (UCP_API_VERSION < UCP_VERSION(1, 16))

#define NO_USE UINT64_MAX

static const char *const op_names[] = {
    "receive", "send", "active message", "active message's data", "put", "get",
    "add", "flush", "close"
};

static const size_t lengths[] = {8,    500,   3000,
                                 9000, 70000, UCX_STORM_LENGTH};


void ucx_storm_step(storm_rank_t *rank)
{
    if (rank->is_connected) {
        storm_step(rank->board);
    }
}

void ucx_storm_at(storm_rank_t *rank, const char *where)
{
    (void)snprintf(rank->card->where, sizeof(rank->card->where), "%s", where);
    ucx_storm_step(rank);
}

static uint64_t draw(const storm_rank_t *rank, int from, int to,
                     storm_kind_t kind, uint64_t use)
{
    uint64_t who = ((uint64_t)from * STORM_MAX_RANKS) + to;

    return st_bytes_mix(rank->board->seed,
                        (((use * STORM_MAX_RANKS * STORM_MAX_RANKS) + who) *
                         OP_LAST) + kind);
}

/* A rendezvous in the first use has UCX connect both sides */
static size_t draw_length(uint64_t use, uint64_t drawn)
{
    return (use == 0) ? UCX_STORM_LENGTH :
           lengths[drawn % (sizeof(lengths) / sizeof(lengths[0]))];
}

uint64_t ucx_storm_constant(const storm_rank_t *rank, int index)
{
    return draw(rank, index, index, OP_GET, NO_USE);
}

void ucx_storm_fail(storm_link_t *link, ucs_status_t status, const char *what)
{
    storm_rank_t *rank  = link->rank;
    int is_victim = storm_is_killed(rank->board, link->other);

    if (!is_victim || ((status != UCS_ERR_ENDPOINT_TIMEOUT) &&
                       (status != UCS_ERR_CONNECTION_RESET))) {
        storm_complain(rank->card, "%s with rank %d, which is %s: %s", what,
                       link->other, is_victim ? "dead" : "alive",
                       ucs_status_string(status));
    }
    link->is_dead = 1;
}

/* A receive belongs to no endpoint: nobody but the user ends it */
static void end_op(storm_op_t *op, ucs_status_t status)
{
    op->is_active = 0;
    op->is_ok     = (status == UCS_OK);
    if (!op->is_ok && ((op->kind != OP_RECV) || !op->link->is_dead ||
                       (status != UCS_ERR_CANCELED))) {
        ucx_storm_fail(op->link, status, op_names[op->kind]);
    }
    ucx_storm_step(op->link->rank);
}

static void op_done(void *request, ucs_status_t status, void *arg)
{
    end_op(arg, status);
    ucp_request_free(request);
}

static void recv_done(void *request, ucs_status_t status,
                      const ucp_tag_recv_info_t *info, void *arg)
{
    op_done(request, status, arg);
}

static void check_data(const storm_link_t *link, const uint8_t *data,
                       size_t length, uint64_t seed, const char *what)
{
    size_t place = st_bytes_check(data, length, seed);

    if (place != ST_BYTES_NONE) {
        storm_complain(link->rank->card,
                       "%s of %zu bytes from rank %d: byte %zu is wrong", what,
                       length, link->other, place);
    }
}

static uint64_t am_seed(const storm_link_t *link)
{
    return draw(link->rank, link->other, link->rank->index, OP_AM_SEND,
                link->am_arrived);
}

static void am_check(storm_link_t *link, const void *data, size_t length)
{
    uint64_t seed = am_seed(link);

    if (length != draw_length(link->am_arrived, seed)) {
        storm_complain(link->rank->card,
                       "active message of %zu bytes from rank %d is wrong",
                       length, link->other);
    }
    check_data(link, data, length, seed, "active message");
    ++link->am_arrived;
}

static void am_data_done(void *request, ucs_status_t status, size_t length,
                         void *arg)
{
    storm_op_t *op = arg;

    if (status == UCS_OK) {
        am_check(op->link, op->link->am_received, length);
    }
    op_done(request, status, arg);
}

static void begin(storm_link_t *link, storm_kind_t kind)
{
    storm_op_t *op = &link->op[kind];

    op->is_active = 1;
    op->is_ok     = 0;
    op->request   = NULL;
    ucx_storm_step(link->rank);
}

/* What a call of UCP has returned; the callback may have been called already */
static void begun(storm_link_t *link, storm_kind_t kind,
                  ucs_status_ptr_t request)
{
    storm_op_t *op = &link->op[kind];

    if (UCS_PTR_IS_PTR(request)) {
        op->request = request;
    } else {
        end_op(op, UCS_PTR_STATUS(request));
    }
}

static ucp_request_param_t op_param(storm_link_t *link, storm_kind_t kind)
{
    return (ucp_request_param_t){
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                        UCP_OP_ATTR_FIELD_USER_DATA,
        .cb.send      = op_done,
        .user_data    = &link->op[kind]
    };
}

ucs_status_t ucx_storm_am_handler(void *arg, const void *header,
                               size_t header_length, void *data, size_t length,
                               const ucp_am_recv_param_t *info)
{
    storm_rank_t *rank = arg;
    storm_link_t *link;
    ucp_request_param_t param;
    uint64_t from;

    memcpy(&from, header, sizeof(from));
    link = &rank->links[from];
    if (!(info->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        am_check(link, data, length);
        return UCS_OK;
    }

    param               = op_param(link, OP_AM_DATA);
    param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    param.cb.recv_am    = am_data_done;
    begin(link, OP_AM_DATA);
    begun(link, OP_AM_DATA,
          ucp_am_recv_data_nbx(rank->worker, data, link->am_received, length,
                               &param));
    return UCS_INPROGRESS;
}

static ucp_tag_t tag_of(const storm_rank_t *rank, int from)
{
    return (rank->use * STORM_MAX_RANKS) + (unsigned)from;
}

static uint64_t recv_seed(const storm_link_t *link)
{
    return draw(link->rank, link->other, link->rank->index, OP_SEND,
                link->rank->use);
}

static size_t recv_length(const storm_link_t *link)
{
    return draw_length(link->rank->use, recv_seed(link));
}

static void exchange_messages(storm_link_t *link)
{
    storm_rank_t *rank              = link->rank;
    uint64_t out              = draw(rank, rank->index, link->other, OP_SEND,
                                     rank->use);
    size_t length             = draw_length(rank->use, out);
    ucp_request_param_t param = op_param(link, OP_RECV);

    param.cb.recv       = recv_done;
    param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    begin(link, OP_RECV);
    begun(link, OP_RECV,
          ucp_tag_recv_nbx(rank->worker, link->received, recv_length(link),
                           tag_of(rank, link->other), UINT64_MAX, &param));

    st_bytes_fill(link->sent, length, out);
    param = op_param(link, OP_SEND);
    begin(link, OP_SEND);
    begun(link, OP_SEND,
          ucp_tag_send_nbx(link->ep, link->sent, length,
                           tag_of(rank, rank->index), &param));
}

static void send_am(storm_link_t *link)
{
    storm_rank_t *rank              = link->rank;
    uint64_t seed             = draw(rank, rank->index, link->other,
                                     OP_AM_SEND, rank->use);
    size_t length             = draw_length(rank->use, seed);
    uint8_t *data             = link->sent + UCX_STORM_LENGTH;
    ucp_request_param_t param = op_param(link, OP_AM_SEND);

    link->am_header = (uint64_t)rank->index;
    st_bytes_fill(data, length, seed);
    begin(link, OP_AM_SEND);
    begun(link, OP_AM_SEND,
          ucp_am_send_nbx(link->ep, UCX_STORM_AM_ID, &link->am_header,
                          sizeof(link->am_header), data, length, &param));
}

static size_t put_length(const storm_link_t *link, uint64_t *seed_p)
{
    *seed_p = draw(link->rank, link->rank->index, link->other, OP_PUT,
                   link->rank->use);
    return draw_length(link->rank->use, *seed_p);
}

/* Of our piece of the other's memory */
static uint64_t piece_offset(const storm_link_t *link)
{
    return offsetof(storm_memory_t, piece) +
           (link->rank->index * (uint64_t)UCX_STORM_LENGTH);
}

static void put(storm_link_t *link)
{
    uint64_t target           = link->memory + piece_offset(link);
    ucp_request_param_t param = op_param(link, OP_PUT);
    size_t length;
    uint64_t seed;

    length = put_length(link, &seed);
    st_bytes_fill(link->put, length, seed);
    begin(link, OP_PUT);
    begun(link, OP_PUT, ucp_put_nbx(link->ep, link->put, length, target,
                                    link->rkey, &param));
}

static void get(storm_link_t *link, uint64_t offset, size_t length)
{
    ucp_request_param_t param = op_param(link, OP_GET);

    st_bytes_poison(link->got, length);
    begin(link, OP_GET);
    begun(link, OP_GET, ucp_get_nbx(link->ep, link->got, length,
                                    link->memory + offset, link->rkey,
                                    &param));
}

static size_t get_length(const storm_link_t *link)
{
    const storm_rank_t *rank = link->rank;

    return draw_length(rank->use, draw(rank, rank->index, link->other, OP_GET,
                                       rank->use));
}

static void add(storm_link_t *link)
{
    uint64_t target           = link->memory + offsetof(storm_memory_t, count) +
                                (link->rank->index * sizeof(uint64_t));
    ucp_request_param_t param = op_param(link, OP_ADD);

    param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER |
                          UCP_OP_ATTR_FIELD_DATATYPE;
    param.reply_buffer  = &link->old;
    param.datatype      = ucp_dt_make_contig(sizeof(uint64_t));
    link->one           = 1;
    begin(link, OP_ADD);
    begun(link, OP_ADD,
          ucp_atomic_op_nbx(link->ep, UCP_ATOMIC_OP_ADD, &link->one, 1, target,
                            link->rkey, &param));
}

void ucx_storm_flush(storm_link_t *link)
{
    ucp_request_param_t param = op_param(link, OP_FLUSH);

    begin(link, OP_FLUSH);
    begun(link, OP_FLUSH, ucp_ep_flush_nbx(link->ep, &param));
}

/* Non-zero while something is under way; a dead rank will send nothing */
int ucx_storm_is_busy(storm_link_t *link)
{
    int kind;

    if (link->is_dead && link->op[OP_RECV].is_active) {
        ucp_request_cancel(link->rank->worker, link->op[OP_RECV].request);
    }
    for (kind = 0; kind < OP_LAST; ++kind) {
        if (link->op[kind].is_active) {
            return 1;
        }
    }
    return !link->is_dead && (link->ep != NULL) &&
           (link->am_arrived < link->rank->expected);
}

/* Any of the operations may find out that the rank is dead */
void ucx_storm_exchange(storm_link_t *link)
{
    exchange_messages(link);
    if (!link->is_dead) {
        send_am(link);
    }
    if (!link->is_dead) {
        put(link);
    }
    if (!link->is_dead && HAS_GETS) {
        get(link, offsetof(storm_memory_t, constant), get_length(link));
    }
    if (!link->is_dead && HAS_GETS) {
        add(link);
    }
}

void ucx_storm_check_exchange(storm_link_t *link)
{
    storm_rank_t *rank = link->rank;

    if (link->op[OP_RECV].is_ok) {
        check_data(link, link->received, recv_length(link), recv_seed(link),
                   "message");
    }
    if (link->op[OP_GET].is_ok) {
        check_data(link, link->got, get_length(link),
                   ucx_storm_constant(rank, link->other), "get");
    }
    if (link->op[OP_ADD].is_ok && (link->old != link->added++)) {
        storm_complain(rank->card, "addition %lu at rank %d found %lu",
                       link->added, link->other, link->old);
    }
}

void ucx_storm_get_back(storm_link_t *link)
{
    uint64_t seed;

    if (HAS_GETS) {
        get(link, piece_offset(link), put_length(link, &seed));
    }
}

void ucx_storm_check_back(storm_link_t *link)
{
    uint64_t seed;
    size_t length = put_length(link, &seed);

    if (link->op[OP_GET].is_ok) {
        check_data(link, link->got, length, seed, "put");
    }
}

void ucx_storm_close(storm_link_t *link)
{
    ucp_request_param_t param = op_param(link, OP_CLOSE);

    if (link->ep == NULL) {
        return;
    }
    ucp_rkey_destroy(link->rkey);
    if (link->is_dead) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        param.flags         = UCP_EP_CLOSE_FLAG_FORCE;
    }
    begin(link, OP_CLOSE);
    begun(link, OP_CLOSE, ucp_ep_close_nbx(link->ep, &param));
}
