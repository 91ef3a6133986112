/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_enqueue.c - checks of what is put into streams: memory operations,
 * copies, kernels, host functions. What a real runtime checks when the call is
 * made is checked here; what a device finds when it gets there, in
 * standin_cmd.c.
 */
#include "standin.h"

#include <stdlib.h>
#include <string.h>

#define STANDIN_MAX_BATCH   256


/* Memory operations */

static int standin_is_wait(const standin_op_t *op)
{
    return (op->op == STANDIN_OP_WAIT32) || (op->op == STANDIN_OP_WAIT64);
}

static int standin_is_write(const standin_op_t *op)
{
    return (op->op == STANDIN_OP_WRITE32) || (op->op == STANDIN_OP_WRITE64);
}

static int standin_op_check(const standin_op_t *op, int device)
{
    size_t size = (op->op >= STANDIN_OP_WAIT64) ? 8 : 4;
    standin_range_t *range;

    if ((op->op == STANDIN_OP_FLUSH) || (op->op == STANDIN_OP_BARRIER)) {
        return STANDIN_OK;
    }
    if (!standin_is_wait(op) && !standin_is_write(op)) {
        return STANDIN_ERR_INVALID;
    }
    if ((op->flags & ~(standin_kind.is_hip ? 3u : 3u | STANDIN_WAIT_FLUSH)) ||
        (standin_is_write(op) && (op->flags > !standin_kind.is_hip))) {
        return STANDIN_ERR_INVALID;
    }
    range = standin_mem_find(op->address, 1);
    if ((op->address % size) || (range == NULL) ||
        !standin_mem_holds(range, op->address, size)) {
        return STANDIN_ERR_INVALID;
    }
    if (standin_is_wait(op) &&
        (range->is_io ||
         (standin_set.signal && (range->kind != STANDIN_SIGNAL)))) {
        return STANDIN_ERR_INVALID;
    }
    /* Memory of another device */
    if (((range->kind == STANDIN_DEVICE) || (range->kind == STANDIN_IPC)) &&
        (range->device != device) &&
        !(standin_devices[device].peers & (1u << range->device))) {
        return STANDIN_ERR_INVALID;
    }
    return STANDIN_OK;
}

static void standin_ops_count(const standin_op_t *ops, size_t count,
                              int is_batch)
{
    size_t i;

    standin_count.batches += (unsigned)is_batch;
    for (i = 0; i < count; ++i) {
        standin_count.waits    += (unsigned)standin_is_wait(&ops[i]);
        standin_count.writes   += (unsigned)standin_is_write(&ops[i]);
        standin_count.barriers += standin_is_write(&ops[i]) &&
                                  (ops[i].flags == 0);
    }
}

int standin_enqueue_ops(void *handle, const standin_op_t *ops, size_t count,
                        int is_batch)
{
    standin_stream_t *stream;
    standin_cmd_t *cmd;
    size_t i;
    int err;

    STANDIN_TRY(standin_enter_stream(handle, &stream));
    if (standin_set.memops == 0) {
        return standin_leave(STANDIN_ERR_UNSUPPORTED);
    }
    err = (count <= STANDIN_MAX_BATCH) ? STANDIN_OK : STANDIN_ERR_INVALID;
    for (i = 0; (i < count) && (err == STANDIN_OK); ++i) {
        err = standin_op_check(&ops[i], stream->device);
    }
    if ((err != STANDIN_OK) || (count == 0)) {
        return standin_leave(err);
    }
    cmd = standin_cmd_new(stream, STANDIN_CMD_OPS, count * sizeof(*ops));
    if (cmd == NULL) {
        return standin_leave(STANDIN_ERR_NO_MEMORY);
    }
    cmd->op_count = count;
    memcpy(cmd->data, ops, count * sizeof(*ops));
    standin_ops_count(ops, count, is_batch);
    return standin_leave(standin_enqueue(cmd));
}

int standin_enqueue_batch(void *handle, unsigned count,
                          standin_batch_op_t *ops, unsigned flags)
{
    standin_op_t *all = calloc(count + 1, sizeof(*all));
    unsigned i;
    int err;

    _Static_assert(sizeof(*ops) == 48, "size of an operation");
    if ((flags != 0) || (all == NULL)) {
        free(all);
        return (flags != 0) ? STANDIN_ERR_INVALID : STANDIN_ERR_NO_MEMORY;
    }
    for (i = 0; i < count; ++i) {
        all[i] = (standin_op_t){
            .op      = (int)ops[i].op,
            .flags   = ops[i].flags,
            .address = ops[i].address,
            .value   = ops[i].value,
            .mask    = UINT64_MAX
        };
    }
    err = standin_enqueue_ops(handle, all, count, 1);
    free(all);
    return err;
}

/* Copies, kernels, host functions */

/* One side of a copy: whether it is memory that the runtime knows */
static int standin_side_check(uint64_t address, size_t span, int *is_known)
{
    standin_range_t *range = standin_mem_find(address, 0);

    if (range == NULL) {
        return *is_known ? STANDIN_ERR_INVALID : STANDIN_OK;
    }
    *is_known = 1;
    return (standin_mem_holds(range, address, span) && !range->is_io) ?
           STANDIN_OK : STANDIN_ERR_INVALID;
}

static int standin_copy_check(standin_copy_t *copy)
{
    size_t rows = copy->height - 1;
    int is_2d   = (copy->dpitch > 0) || (copy->spitch > 0) || (rows > 0);
    int err;

    /* Copies of rows have pitches, also one of one row */
    if (is_2d && ((copy->dpitch < copy->width) ||
                  (copy->spitch < copy->width) ||
                  (copy->dpitch > STANDIN_MAX_PITCH) ||
                  (copy->spitch > STANDIN_MAX_PITCH))) {
        return STANDIN_ERR_INVALID;
    }
    err = standin_side_check(copy->dst, rows * copy->dpitch + copy->width,
                             &copy->is_dst_known);
    return (err != STANDIN_OK) ? err :
           standin_side_check(copy->src, rows * copy->spitch + copy->width,
                              &copy->is_src_known);
}

int standin_enqueue_copy(void *handle, standin_copy_t *copy,
                         int is_synchronous)
{
    standin_stream_t *stream;
    standin_cmd_t *cmd;
    int is_pageable;
    int err;

    STANDIN_TRY(standin_enter_stream(handle, &stream));
    if ((copy->width == 0) || (copy->height == 0)) {
        return standin_leave(STANDIN_OK);
    }
    err         = standin_copy_check(copy);
    is_pageable = !copy->is_dst_known || !copy->is_src_known;
    if (err != STANDIN_OK) {
        return standin_leave(err);
    }
    cmd = standin_cmd_new(stream, STANDIN_CMD_COPY, 0);
    if (cmd == NULL) {
        return standin_leave(STANDIN_ERR_NO_MEMORY);
    }
    cmd->copy = *copy;
    standin_wait_closing(stream->device);
    ++standin_count.copies;
    standin_count.pageable += (unsigned)is_pageable;
    err = standin_enqueue(cmd);
    if ((err == STANDIN_OK) && (is_pageable || is_synchronous)) {
        err = standin_wait(stream, stream->enqueued);
    }
    return standin_leave(err);
}

int standin_enqueue_fill(void *handle, const standin_fill_t *fill)
{
    standin_stream_t *stream;
    standin_range_t *range;
    standin_cmd_t *cmd;

    STANDIN_TRY(standin_enter_stream(handle, &stream));
    if (fill->size == 0) {
        return standin_leave(STANDIN_OK);
    }
    range = standin_mem_find(fill->dst, 1);
    if ((range == NULL) || range->is_io ||
        !standin_mem_holds(range, fill->dst, fill->size)) {
        return standin_leave(STANDIN_ERR_INVALID);
    }
    cmd = standin_cmd_new(stream, STANDIN_CMD_FILL, 0);
    if (cmd == NULL) {
        return standin_leave(STANDIN_ERR_NO_MEMORY);
    }
    cmd->fill = *fill;
    return standin_leave(standin_enqueue(cmd));
}

int standin_launch_args(void **extra, uintptr_t end, standin_launch_t *launch)
{
    for (; (extra != NULL) && ((uintptr_t)extra[0] != end); extra += 2) {
        switch ((uintptr_t)extra[0]) {
        case 1:
            launch->args = extra[1];
            break;
        case 2:
            launch->size = *(const size_t*)extra[1];
            break;
        default:
            return STANDIN_ERR_INVALID;
        }
    }
    return ((launch->args == NULL) == (launch->size == 0)) ?
           STANDIN_OK : STANDIN_ERR_INVALID;
}

/* A kernel is of the current context; one of a module has its arguments' size
 */
static int standin_kernel_check(const standin_launch_t *launch,
                                const standin_ctx_t *ctx,
                                const standin_func_t **device)
{
    const void *handle;

    memcpy(&handle, &launch->func, sizeof(handle));
    *device = standin_module_find(handle);
    if ((handle == NULL) || ((*device != NULL) && ((*device)->ctx != ctx))) {
        return STANDIN_ERR_HANDLE;
    }
    return ((*device != NULL) && (((*device)->size != launch->size) ||
                                  (launch->threads > STANDIN_MAX_THREADS))) ?
           STANDIN_ERR_INVALID : STANDIN_OK;
}

int standin_enqueue_kernel(void *handle, const standin_launch_t *launch)
{
    const standin_func_t *device = NULL;
    standin_ctx_t *ctx;
    standin_stream_t *stream;
    standin_cmd_t *cmd;
    int err;

    STANDIN_TRY(standin_enter_ctx(&ctx));
    err = standin_stream_get(handle, ctx, &stream);
    if ((err == STANDIN_OK) && (stream->ctx != ctx)) {
        err = STANDIN_ERR_HANDLE;
    }
    if (err == STANDIN_OK) {
        err = standin_stream_fails(stream);
    }
    if (err == STANDIN_OK) {
        err = standin_kernel_check(launch, ctx, &device);
    }
    cmd = (err != STANDIN_OK) ? NULL :
          standin_cmd_new(stream, STANDIN_CMD_KERNEL, launch->size);
    if (cmd == NULL) {
        return standin_leave((err != STANDIN_OK) ? err :
                             STANDIN_ERR_NO_MEMORY);
    }
    cmd->kernel.func    = launch->func;
    cmd->kernel.device  = device;
    cmd->kernel.blocks  = launch->blocks;
    cmd->kernel.threads = launch->threads;
    if (launch->size > 0) {
        memcpy(cmd->data, launch->args, launch->size);
    }
    ++standin_count.kernels;
    return standin_leave(standin_enqueue(cmd));
}

int standin_enqueue_host(void *handle, standin_host_func_t func,
                         standin_callback_t callback, void *arg)
{
    standin_stream_t *stream;
    standin_cmd_t *cmd;

    STANDIN_TRY(standin_enter_stream(handle, &stream));
    if ((func == NULL) && (callback == NULL)) {
        return standin_leave(STANDIN_ERR_INVALID);
    }
    cmd = standin_cmd_new(stream,
                          (func != NULL) ? STANDIN_CMD_HOST :
                                           STANDIN_CMD_CALLBACK, 0);
    if (cmd == NULL) {
        return standin_leave(STANDIN_ERR_NO_MEMORY);
    }
    cmd->host.func     = func;
    cmd->host.callback = callback;
    cmd->host.handle   = handle;
    cmd->host.arg      = arg;
    ++standin_count.host_funcs;
    standin_wait_launches(stream->device);
    return standin_leave(standin_enqueue(cmd));
}
