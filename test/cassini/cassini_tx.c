/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cassini_tx.c - the initiator: commands become requests, answers completions.
 */
#include "cassini_parts.h"

#include <stdlib.h>
#include <string.h>

enum {
    CASSINI_OPS_STEP = 256
};

/** What a command wants reported. */
typedef struct cassini_report {
    uint16_t eq;
    uint16_t ct;
    uint64_t user;
    uint8_t  no_send, no_success, ct_send, ct_reply, ct_ack, ct_bytes;
} cassini_report_t;

/** A command, decoded. */
typedef struct cassini_tx_cmd {
    cassini_request_t request;
    cassini_report_t  report;
    unsigned          nid; /**< Of the target */
    unsigned          lac;
    unsigned          write_lac;
    const void        *data; /**< Within the command, or NULL */
    uint64_t          fetch; /**< Where what is fetched goes, or 0 */
    cassini_queue_t   *queue;
} cassini_tx_cmd_t;

/** An operation that waits for its answer. */
typedef struct cassini_op {
    int              used;
    int              next_free;
    uint32_t         seq;
    unsigned         slot;
    uint32_t         gen;
    int              kind;
    int              rdzv; /**< Rendezvous: put, or the NIC's get */
    uint64_t         local; /**< Where what a get brings goes */
    uint32_t         length;
    uint64_t         fetch;
    uint32_t         fetch_length;
    cassini_report_t report;
    cassini_queue_t  *queue;
} cassini_op_t;

static struct {
    cassini_op_t *ops;
    int          count;
    int          free; /**< -1: none */
    unsigned     pending;
} cassini_tx = {.free = -1};


static int cassini_tx_grow(void)
{
    int count = cassini_tx.count + CASSINI_OPS_STEP;
    cassini_op_t *ops;
    int i;

    ops = realloc(cassini_tx.ops, count * sizeof(*ops));
    if (ops == NULL) {
        cassini_say("no memory for operations");
        return -1;
    }
    for (i = cassini_tx.count; i < count; ++i) {
        memset(&ops[i], 0, sizeof(ops[i]));
        ops[i].next_free = cassini_tx.free;
        cassini_tx.free  = i;
    }
    cassini_tx.ops   = ops;
    cassini_tx.count = count;
    return 0;
}

static void cassini_tx_report(const cassini_report_t *report, int kind,
                              const cassini_response_t *response, int rdzv)
{
    int is_reply = (kind == CASSINI_EV_GET) ||
                   (kind == CASSINI_EV_FETCH_ATOMIC);
    int ok       = response->rc == CASSINI_RC_OK;
    uint64_t add = report->ct_bytes ? response->length : 1;
    cassini_ev_init_t event;

    memset(&event, 0, sizeof(event));
    event.user   = report->user;
    event.length = response->length;
    event.list   = response->list;
    event.rdzv   = rdzv;
    if (!report->no_send) {
        event.type = CASSINI_EV_SEND;
        event.rc   = CASSINI_RC_OK;
        cassini_eq_post_init(report->eq, &event);
    }
    if (!ok || !report->no_success) {
        event.type      = is_reply ? CASSINI_EV_REPLY : CASSINI_EV_ACK;
        event.rc        = response->rc;
        event.tgt_error = !ok;
        cassini_eq_post_init(report->eq, &event);
    }
    if (report->ct_send) {
        cassini_ct_add(report->ct, ok ? add : 0, !ok);
    }
    if (is_reply ? report->ct_reply : report->ct_ack) {
        cassini_ct_add(report->ct, ok ? add : 0, !ok);
    }
}

static void cassini_tx_complete(int index, const cassini_response_t *response)
{
    cassini_op_t *op = &cassini_tx.ops[index];

    cassini_trace("operation of kind %d completes: code %u, %u bytes, list %u",
                  op->kind, response->rc, response->length, response->list);
    op->used        = 0;
    op->next_free   = cassini_tx.free;
    cassini_tx.free = index;
    --cassini_tx.pending;
    if (op->queue != NULL) {
        --op->queue->pending;
    }
    cassini_tx_report(&op->report, op->kind, response, op->rdzv);
}

/* End a command that gets no answer. */
static int cassini_tx_end(const cassini_tx_cmd_t *cmd, int rc)
{
    cassini_response_t response = {.rc = (uint8_t)rc};

    cassini_trace("operation of kind %u to %u:%u ends: code %d",
                  cmd->request.kind, cmd->request.pid, cmd->request.index, rc);
    cassini_tx_report(&cmd->report, cmd->request.kind, &response,
                      cmd->request.rdzv);
    return CASSINI_RC_OK;
}

/* The packet of a put takes little data along. */
static cassini_packet_t *cassini_tx_packet(const cassini_tx_cmd_t *cmd,
                                           int *rc_p)
{
    const cassini_request_t *request = &cmd->request;
    uint32_t length = request->rdzv ? request->eager : request->length;
    cassini_packet_t *packet;

    if ((request->kind != CASSINI_EV_PUT) ||
        ((cmd->data == NULL) && (length > CASSINI_INLINE))) {
        length = 0;
    }
    packet = cassini_net_new(CASSINI_REQUEST_, length);
    if (packet == NULL) {
        *rc_p = CASSINI_RC_UNCORRECTABLE;
        return NULL;
    }
    packet->request = *request;
    if (cmd->data != NULL) {
        memcpy(cassini_packet_data(packet), cmd->data, length);
    } else if (cassini_net_read(cassini_dir_self, cassini_packet_data(packet),
                                request->address, length) != 0) {
        cassini_net_free(packet);
        *rc_p = CASSINI_RC_NO_TRANSLATION;
        return NULL;
    }
    return packet;
}

/* The memory of the initiator that an operation uses. */
static int cassini_tx_check(const cassini_tx_cmd_t *cmd)
{
    const cassini_request_t *request = &cmd->request;
    int size = cassini_amo_size[request->amo_type & 15];

    if ((cmd->data == NULL) && (request->kind <= CASSINI_EV_GET) &&
        !cassini_md_covers(request->address, request->length, cmd->lac,
                           (request->kind == CASSINI_EV_GET) ?
                           CASSINI_MAP_WRITE : CASSINI_MAP_READ)) {
        return CASSINI_RC_NO_TRANSLATION;
    }
    if ((cmd->fetch != 0) &&
        !cassini_md_covers(cmd->fetch, size, cmd->write_lac,
                           CASSINI_MAP_WRITE)) {
        return CASSINI_RC_NO_TRANSLATION;
    }
    return CASSINI_RC_OK;
}

static int cassini_tx_issue(const cassini_tx_cmd_t *cmd)
{
    const cassini_request_t *request = &cmd->request;
    cassini_packet_t *packet;
    cassini_op_t *op;
    uint32_t gen = 0;
    unsigned slot;
    int rc, index;

    rc = cassini_temper_next_op();
    if (rc == CASSINI_RC_OK) {
        rc = cassini_tx_check(cmd);
    }
    if (rc == CASSINI_RC_OK) {
        rc = (cmd->nid == CASSINI_NID) ?
             cassini_dir_find(request->vni, request->pid, &slot, &gen) :
             CASSINI_RC_UNDELIVERABLE;
    }
    if ((rc == CASSINI_RC_OK) && (cassini_tx.free < 0) &&
        (cassini_tx_grow() != 0)) {
        rc = CASSINI_RC_UNCORRECTABLE;
    }
    if (rc != CASSINI_RC_OK) {
        return cassini_tx_end(cmd, rc);
    }
    packet = cassini_tx_packet(cmd, &rc);
    if (packet == NULL) {
        return cassini_tx_end(cmd, rc);
    }

    index            = cassini_tx.free;
    op               = &cassini_tx.ops[index];
    cassini_tx.free  = op->next_free;
    op->used         = 1;
    op->slot         = slot;
    op->gen          = gen;
    op->kind         = request->kind;
    op->rdzv         = request->rdzv;
    op->local        = request->address;
    op->length       = request->length;
    op->fetch        = cmd->fetch;
    op->fetch_length = cassini_amo_size[request->amo_type & 15];
    op->report       = cmd->report;
    op->queue        = cmd->queue;
    ++op->seq;
    ++cassini_tx.pending;
    if (op->queue != NULL) {
        ++op->queue->pending;
    }
    packet->to     = (uint8_t)slot;
    packet->to_gen = gen;
    packet->op     = (uint32_t)index;
    packet->op_seq = op->seq;
    cassini_net_send(packet);
    return CASSINI_RC_OK;
}

#define CASSINI_REPORT(_cmd, _user) \
    (cassini_report_t) \
    { \
        .eq = (_cmd)->eq, .ct = (_cmd)->ct, .user = (_user), \
        .no_send = (_cmd)->no_send, .no_success = (_cmd)->no_success, \
        .ct_send = (_cmd)->ct_send, .ct_reply = (_cmd)->ct_reply, \
        .ct_ack = (_cmd)->ct_ack, .ct_bytes = (_cmd)->ct_bytes \
    }

/* The target: number of the process, portal index. */
static void cassini_tx_address(cassini_tx_cmd_t *cmd, unsigned nid, unsigned ep,
                               unsigned index)
{
    cmd->nid           = nid;
    cmd->request.nid   = CASSINI_NID;
    cmd->request.pid   = ep & ((1u << CASSINI_PID_BITS) - 1);
    cmd->request.index = ((ep >> CASSINI_PID_BITS) << CASSINI_INDEX_BITS) |
                         index;
}

/* An atomic of a DMA command: the operand lies in memory. */
static int cassini_tx_dma_amo(cassini_tx_cmd_t *cmd,
                              const cassini_dma_amo_t *amo)
{
    cassini_request_t *request = &cmd->request;
    uint32_t size              = cassini_amo_size[amo->amo_type];

    request->amo_op     = amo->amo_op;
    request->amo_type   = amo->amo_type;
    request->cswap      = amo->cswap;
    request->compare[0] = amo->compare[0];
    request->compare[1] = amo->compare[1];
    request->length     = size;
    cmd->write_lac      = amo->write_lac;
    cmd->fetch = (amo->dma.op == CASSINI_OP_FETCH_ATOMIC) ? amo->fetch : 0;
    if (!cassini_md_covers(amo->dma.local, size, amo->dma.lac,
                           CASSINI_MAP_READ) ||
        (cassini_net_read(cassini_dir_self, request->operand, amo->dma.local,
                          size) != 0)) {
        return cassini_tx_end(cmd, CASSINI_RC_NO_TRANSLATION);
    }
    return cassini_tx_issue(cmd);
}

int cassini_tx_dma(cassini_queue_t *queue, const void *raw, unsigned vni)
{
    const cassini_dma_t *dma = raw;
    int full                 = dma->size != CASSINI_32B;
    cassini_tx_cmd_t cmd;

    memset(&cmd, 0, sizeof(cmd));
    cmd.queue  = queue;
    cmd.lac    = dma->lac;
    cmd.report = CASSINI_REPORT(dma, full ? dma->user : 0);
    cassini_tx_address(&cmd, dma->nid, dma->ep, dma->index);
    cmd.request.vni        = (uint16_t)vni;
    cmd.request.offset     = dma->offset;
    cmd.request.length     = dma->length;
    cmd.request.address    = dma->local;
    cmd.request.restricted = dma->restricted;
    cmd.request.flush      = dma->flush;
    if (full) {
        cmd.request.initiator   = dma->initiator;
        cmd.request.match_bits  = dma->match_bits;
        cmd.request.header_data = dma->header_data;
    }
    switch (dma->op) {
    case CASSINI_OP_RDZV_PUT:
        if (!full) {
            return CASSINI_RC_CMD_INVALID_ARG;
        }
        cmd.request.rdzv    = 1;
        cmd.request.rdzv_id = dma->rdzv_id;
        cmd.request.eager   = (dma->eager < dma->length) ? dma->eager :
                                                           dma->length;
        /* fall through */
    case CASSINI_OP_PUT:
    case CASSINI_OP_NOMATCH_PUT:
        cmd.request.kind = CASSINI_EV_PUT;
        break;
    case CASSINI_OP_GET:
    case CASSINI_OP_NOMATCH_GET:
        cmd.request.kind = CASSINI_EV_GET;
        break;
    case CASSINI_OP_ATOMIC:
    case CASSINI_OP_FETCH_ATOMIC:
        cmd.request.kind = (dma->op == CASSINI_OP_ATOMIC) ?
                           CASSINI_EV_ATOMIC : CASSINI_EV_FETCH_ATOMIC;
        return cassini_tx_dma_amo(&cmd, raw);
    default:
        return CASSINI_RC_ILLEGAL_OP;
    }
    return cassini_tx_issue(&cmd);
}

static int cassini_tx_idc_amo(cassini_tx_cmd_t *cmd, const void *raw)
{
    const cassini_idc_amo_t *large       = raw;
    const cassini_idc_small_amo_t *small = raw;
    cassini_request_t *request           = &cmd->request;

    request->amo_op   = small->amo_op;
    request->amo_type = small->amo_type;
    if (small->size == CASSINI_32B) {
        request->operand[0] = small->operand;
    } else {
        request->amo_op     = large->amo_op;
        request->amo_type   = large->amo_type;
        request->cswap      = large->cswap;
        request->operand[0] = large->operand[0];
        request->operand[1] = large->operand[1];
        request->compare[0] = large->compare[0];
        request->compare[1] = large->compare[1];
    }
    request->kind   = CASSINI_EV_ATOMIC;
    request->length = cassini_amo_size[request->amo_type];
    if (large->op == CASSINI_OP_FETCH_ATOMIC) {
        if (large->size == CASSINI_32B) {
            return CASSINI_RC_CMD_INVALID_ARG;
        }
        request->kind = CASSINI_EV_FETCH_ATOMIC;
        cmd->fetch    = large->local;
    }
    return cassini_tx_issue(cmd);
}

int cassini_tx_idc(cassini_queue_t *queue, const void *raw, unsigned vni)
{
    const cassini_idc_t *idc     = raw;
    const cassini_idc_msg_t *msg = raw;
    const cassini_cstate_t *state = &queue->cstate;
    cassini_tx_cmd_t cmd;
    unsigned head;

    memset(&cmd, 0, sizeof(cmd));
    cmd.queue     = queue;
    cmd.write_lac = state->write_lac;
    cmd.report    = CASSINI_REPORT(state, state->user);
    cassini_tx_address(&cmd, idc->nid, idc->ep, state->index);
    cmd.request.vni        = (uint16_t)vni;
    cmd.request.initiator  = state->initiator;
    cmd.request.restricted = state->restricted;
    cmd.request.flush      = state->flush;
    cmd.request.kind       = CASSINI_EV_PUT;
    switch (idc->op) {
    case CASSINI_OP_PUT:
        head               = sizeof(*idc);
        cmd.request.offset = idc->offset;
        break;
    case CASSINI_OP_SMALL_MSG:
        head                    = sizeof(*msg);
        cmd.request.match_bits  = msg->match_bits;
        cmd.request.header_data = msg->header_data;
        cmd.report.user         = msg->user;
        break;
    case CASSINI_OP_ATOMIC:
    case CASSINI_OP_FETCH_ATOMIC:
        cmd.request.offset = idc->offset;
        return cassini_tx_idc_amo(&cmd, raw);
    default:
        return CASSINI_RC_ILLEGAL_OP;
    }
    if ((idc->length < head) || (idc->length > (32u << idc->size))) {
        return CASSINI_RC_CMD_INVALID_ARG;
    }
    cmd.request.length = idc->length - head;
    cmd.data           = (const uint8_t*)raw + head;
    return cassini_tx_issue(&cmd);
}

void cassini_tx_rdzv_get(const cassini_rdzv_get_t *get)
{
    cassini_tx_cmd_t cmd;

    memset(&cmd, 0, sizeof(cmd));
    cmd.nid                = get->nid;
    cmd.lac                = get->lac;
    cmd.report.eq          = (uint16_t)get->eqn;
    cmd.report.user        = get->user;
    cmd.report.no_send     = 1;
    cmd.request.kind       = CASSINI_EV_GET;
    cmd.request.rdzv       = 1;
    cmd.request.vni        = (uint16_t)get->vni;
    cmd.request.nid        = CASSINI_NID;
    cmd.request.pid        = (uint16_t)get->pid;
    cmd.request.index      = CASSINI_RDZV_INDEX;
    cmd.request.match_bits = get->bits;
    cmd.request.offset     = get->offset;
    cmd.request.address    = get->local;
    cmd.request.length     = get->length;
    cassini_tx_issue(&cmd);
}

void cassini_tx_response(const cassini_packet_t *packet)
{
    cassini_response_t response = packet->response;
    cassini_op_t *op;

    if ((packet->op >= (uint32_t)cassini_tx.count) ||
        !cassini_tx.ops[packet->op].used ||
        (cassini_tx.ops[packet->op].seq != packet->op_seq)) {
        return;
    }
    op = &cassini_tx.ops[packet->op];
    if ((response.rc == CASSINI_RC_OK) && (packet->data != 0) &&
        (cassini_trap_copy((void*)(uintptr_t)op->local,
                           cassini_packet_data(packet), packet->data) != 0)) {
        response.rc = CASSINI_RC_NO_TRANSLATION;
    }
    if ((response.rc == CASSINI_RC_OK) && (op->fetch != 0) &&
        (cassini_trap_copy((void*)(uintptr_t)op->fetch, response.fetched,
                           op->fetch_length) != 0)) {
        response.rc = CASSINI_RC_NO_TRANSLATION;
    }
    cassini_tx_complete((int)packet->op, &response);
}

unsigned cassini_tx_reap(void)
{
    cassini_response_t response = {.rc = (uint8_t)cassini_settings.gone_rc};
    unsigned done               = 0;
    int checked[CASSINI_SLOTS]; /* 1: lives, -1: died */
    uint32_t gens[CASSINI_SLOTS];
    cassini_op_t *op;
    int i;

    memset(checked, 0, sizeof(checked));
    for (i = 0; i < cassini_tx.count; ++i) {
        op = &cassini_tx.ops[i];
        if (!op->used || (op->slot == cassini_dir_self)) {
            continue;
        }
        if ((checked[op->slot] == 0) || (gens[op->slot] != op->gen)) {
            gens[op->slot]    = op->gen;
            checked[op->slot] = cassini_dir_alive(op->slot, op->gen) ? 1 : -1;
            if (checked[op->slot] < 0) {
                /* What it has answered before its death counts. That may issue
                 * operations, which may move them all. */
                cassini_net_drain(op->slot);
                op = &cassini_tx.ops[i];
            }
        }
        if (op->used && (checked[op->slot] < 0)) {
            cassini_tx_complete(i, &response);
            ++done;
        }
    }
    return done;
}

unsigned cassini_tx_pending(void)
{
    return cassini_tx.pending;
}

void cassini_tx_forget_eq(unsigned eqn)
{
    int i;

    for (i = 0; i < cassini_tx.count; ++i) {
        if (cassini_tx.ops[i].report.eq == eqn) {
            cassini_tx.ops[i].report.eq = 0;
        }
    }
}

void cassini_tx_forget_ct(unsigned ctn)
{
    int i;

    for (i = 0; i < cassini_tx.count; ++i) {
        if (cassini_tx.ops[i].report.ct == ctn) {
            cassini_tx.ops[i].report.ct = 0;
        }
    }
}

void cassini_tx_forget_queue(const cassini_queue_t *queue)
{
    int i;

    for (i = 0; i < cassini_tx.count; ++i) {
        if (cassini_tx.ops[i].queue == queue) {
            cassini_tx.ops[i].queue = NULL;
        }
    }
}

void cassini_tx_forget(void)
{
    free(cassini_tx.ops);
    memset(&cassini_tx, 0, sizeof(cassini_tx));
    cassini_tx.free = -1;
}
