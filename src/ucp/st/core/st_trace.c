/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trace.c - what is recorded of operations (UCX_ST_TRACE).
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_trace.h"
#include "core/st_lane.h"
#include "core/st_log.h"
#include "core/st_worker.h"

#include <stdlib.h>

/* The values of an operation's events, in this order */
#define UCP_ST_TRACE_OP(_name, _category, _type, _flow) \
    {_name, _category, _type, _flow, \
     {{"dir", UCS_TRACE_VALUE_TEXT}, {"op", UCS_TRACE_VALUE_NUMBER}, \
      {"use", UCS_TRACE_VALUE_NUMBER}, {"peer", UCS_TRACE_VALUE_HEX}, \
      {"tag", UCS_TRACE_VALUE_HEX}, {"bytes", UCS_TRACE_VALUE_NUMBER}, \
      {"lane", UCS_TRACE_VALUE_TEXT}}}

#define UCP_ST_TRACE_NIC(_name) \
    {_name, "nic", UCS_TRACE_INSTANT, UCS_TRACE_FLOW_NONE, \
     {{"entry", UCS_TRACE_VALUE_TEXT}, {"op", UCS_TRACE_VALUE_NUMBER}, \
      {"number", UCS_TRACE_VALUE_NUMBER}}}

/* Of commands that belong to no operation */
#define UCP_ST_TRACE_CMD(_name, _category) \
    {.name = _name, .category = _category, .type = UCS_TRACE_SPAN}

/* By the direction of the operation */
static const ucs_trace_kind_t ucp_st_trace_starts[] = {
    UCP_ST_TRACE_OP("start send", "start", UCS_TRACE_SPAN, UCS_TRACE_FLOW_OUT),
    UCP_ST_TRACE_OP("start receive", "start", UCS_TRACE_SPAN,
                    UCS_TRACE_FLOW_NONE)
};

static const ucs_trace_kind_t ucp_st_trace_waits[] = {
    UCP_ST_TRACE_OP("wait send", "wait", UCS_TRACE_SPAN, UCS_TRACE_FLOW_NONE),
    UCP_ST_TRACE_OP("wait receive", "wait", UCS_TRACE_SPAN, UCS_TRACE_FLOW_IN)
};

static const ucs_trace_kind_t ucp_st_trace_moves[] = {
    UCP_ST_TRACE_OP("move send", "data", UCS_TRACE_ASYNC, UCS_TRACE_FLOW_NONE),
    UCP_ST_TRACE_OP("move receive", "data", UCS_TRACE_ASYNC,
                    UCS_TRACE_FLOW_NONE)
};

static const ucs_trace_kind_t ucp_st_trace_nics[] = {
    [UCP_ST_TRACE_POST] = UCP_ST_TRACE_NIC("post"),
    [UCP_ST_TRACE_REAP] = UCP_ST_TRACE_NIC("done")
};

static const ucs_trace_kind_t ucp_st_trace_cmds[] = {
    [UCP_ST_TRACE_BATCH_START] = UCP_ST_TRACE_CMD("start messages", "start"),
    [UCP_ST_TRACE_BATCH_WAIT]  = UCP_ST_TRACE_CMD("wait messages", "wait"),
    [UCP_ST_TRACE_SIGNAL_WAIT] = UCP_ST_TRACE_CMD("wait signal", "wait"),
    [UCP_ST_TRACE_QUIET]       = UCP_ST_TRACE_CMD("quiet", "wait")
};

/* All bits of the result depend on all of both values (the last steps are those
 * of splitmix64, by S. Vigna) */
static uint64_t ucp_st_trace_mix(uint64_t a, uint64_t b)
{
    uint64_t x = a + (b * UINT64_C(0x9e3779b97f4a7c15)) + 1;

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

void ucp_st_trace_match(ucp_st_op_t *op)
{
    uint64_t own, peer;

    if (!ucs_trace_is_on()) {
        return;
    }
    op->trace = calloc(1, sizeof(*op->trace));
    if (op->trace == NULL) {
        ucs_warn("operation %p: no memory for its part of UCX_ST_TRACE", op);
        return;
    }
    op->trace->op   = op;
    /* The same on both sides */
    own             = ucp_st_trace_mix(op->worker->uuid, op->id);
    peer            = ucp_st_trace_mix(op->peer->uuid, op->remote_id);
    op->trace->pair = (op->dir == UCP_ST_DIR_SEND) ?
                      ucp_st_trace_mix(own, peer) : ucp_st_trace_mix(peer, own);
}

/* Set the values of UCP_ST_TRACE_OP(); returns the id of the use, which is the
 * same on both sides */
static uint64_t ucp_st_trace_use(const ucp_st_op_t *op, uint64_t use,
                                 uint64_t *values)
{
    static const char *const dirs[] = {"send", "receive"};

    values[0] = (uintptr_t)dirs[op->dir];
    values[1] = op->id;
    values[2] = use;
    values[3] = op->peer->uuid;
    values[4] = op->tag;
    values[5] = op->msg_length;
    values[6] = (uintptr_t)op->lane->name;
    return ucp_st_trace_mix(op->trace->pair, use);
}

static void ucp_st_trace_push_func(void *arg)
{
    ucs_trace_push();
}

static void ucp_st_trace_start_func(void *arg)
{
    ucp_st_trace_op_t *trace = arg;
    uint64_t values[UCS_TRACE_MAX_VALUES];
    uint64_t id = ucp_st_trace_use(trace->op, ++trace->started, values);

    ucs_trace_pop(&ucp_st_trace_starts[trace->op->dir], id, values);
}

static void ucp_st_trace_wait_func(void *arg)
{
    ucp_st_trace_op_t *trace = arg;
    uint64_t values[UCS_TRACE_MAX_VALUES];
    uint64_t id = ucp_st_trace_use(trace->op, ++trace->waited, values);

    ucs_trace_pop(&ucp_st_trace_waits[trace->op->dir], id, values);
}

static void ucp_st_trace_span_func(void *arg)
{
    ucs_trace_pop(arg, 0, NULL);
}

size_t ucp_st_trace_make_cmd(ucp_st_trace_cmd_t which, const ucp_st_op_t *op,
                             ucs_gstream_cmd_t *cmd)
{
    static const ucs_gstream_func_t funcs[] = {
        [UCP_ST_TRACE_PUSH]  = ucp_st_trace_push_func,
        [UCP_ST_TRACE_START] = ucp_st_trace_start_func,
        [UCP_ST_TRACE_WAIT]  = ucp_st_trace_wait_func
    };

    if ((op != NULL) && (op->trace == NULL)) {
        return 0; /* there was no memory for it */
    }
    cmd->type = UCS_GSTREAM_CMD_FUNC;
    if (which < ucs_static_array_size(funcs)) {
        cmd->u.func.func = funcs[which];
        cmd->u.func.arg  = (op == NULL) ? NULL : op->trace;
    } else {
        cmd->u.func.func = ucp_st_trace_span_func;
        cmd->u.func.arg  = (void*)&ucp_st_trace_cmds[which];
    }
    return 1;
}

void ucp_st_trace_nic(const ucp_st_op_t *op, ucp_st_trace_nic_t what,
                      const char *entry, uint64_t number)
{
    uint64_t values[UCS_TRACE_MAX_VALUES];

    if (!ucs_trace_is_on()) {
        return;
    }
    values[0] = (uintptr_t)entry;
    values[1] = op->id;
    values[2] = number;
    ucs_trace_record(&ucp_st_trace_nics[what], 0, 0, values);
}

void ucp_st_trace_moved(const ucp_st_op_t *op, uint64_t use)
{
    uint64_t values[UCS_TRACE_MAX_VALUES];
    uint64_t id;

    if (ucs_trace_is_on() && (op->trace != NULL)) {
        id = ucp_st_trace_use(op, use, values);
        /* A message to oneself has both sides in one process */
        ucs_trace_record(&ucp_st_trace_moves[op->dir], op->trace->move_begin,
                         ucp_st_trace_mix(id, op->dir), values);
    }
}
