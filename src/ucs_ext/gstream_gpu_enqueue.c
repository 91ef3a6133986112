/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_gpu_enqueue.c - commands of a GPU's stream: they are made into steps,
 * which are calls of the runtime, before the first of these is made.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_gpu_stream.h"
#include "gstream_device.h"
#include "gstream_kernels.h"
#include "gstream_memory.h"

#include <ucs/debug/log_def.h>
#include <ucs/sys/math.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Operations of a batch: cuStreamBatchMemOp() wants less than 256 */
#define GSTREAM_GPU_BATCH_MAX 255


/* A function with its argument, or a copy of its arguments, or a copy between
 * two places of the host's memory. Freed when it has run. */
struct gstream_gpu_func {
    gstream_gpu_stream_t *stream;
    ucs_gstream_func_t   func;    /* NULL: a copy */
    void                 *arg;    /* or where the copy goes */
    const void           *src;
    ucs_gstream_rect_t   rect;    /* one row of a copy that is not of rows */
    char                 args[] UCS_V_ALIGNED(16);
};


void gstream_gpu_run_func(void *arg)
{
    gstream_gpu_func_t *func = arg;

    gstream_gpu_current = func->stream;
    if (func->func != NULL) {
        func->func(func->arg);
    } else {
        gstream_copy_rows(func->arg, func->src, &func->rect);
    }
    gstream_gpu_current = NULL;
    free(func);
}

/* What a host function needs for a command; NULL without memory */
static gstream_gpu_func_t *gstream_gpu_make_func(gstream_gpu_stream_t *stream,
                                                 const ucs_gstream_cmd_t *cmd)
{
    size_t size = (cmd->type == UCS_GSTREAM_CMD_LAUNCH) ? cmd->u.launch.size :
                                                          0;
    gstream_gpu_func_t *func;

    func = calloc(1, sizeof(*func) + size);
    if (func == NULL) {
        return NULL;
    }
    func->stream = stream;
    if (cmd->type == UCS_GSTREAM_CMD_FUNC) {
        func->func = cmd->u.func.func;
        func->arg  = cmd->u.func.arg;
    } else if (cmd->type == UCS_GSTREAM_CMD_LAUNCH) {
        func->func = cmd->u.launch.func;
        if (size > 0) {
            func->arg = memcpy(func->args, cmd->u.launch.args, size);
        }
    } else if (cmd->type == UCS_GSTREAM_CMD_COPY2D) {
        func->arg  = cmd->u.copy2d.dst;
        func->src  = cmd->u.copy2d.src;
        func->rect = *cmd->u.copy2d.rect;
    } else {
        func->arg         = cmd->u.copy.dst;
        func->src         = cmd->u.copy.src;
        func->rect.width  = cmd->u.copy.length;
        func->rect.height = 1;
    }
    return func;
}

/* The device's address of a word: of a range that was added, or of what the
 * runtime knows itself */
static ucs_status_t gstream_gpu_map_word(gstream_gpu_stream_t *stream,
                                         const volatile uint64_t *word,
                                         uint64_t *address_p)
{
    const gstream_gpu_t *gpu = stream->gpu;
    ucs_status_t status      = gstream_memory_map(gpu, word, address_p);

    if (status != UCS_ERR_NO_ELEM) {
        return status;
    }
    *address_p = gstream_gpu_address(gpu, (const void*)word);
    return (*address_p != 0) ? UCS_OK : status;
}

int gstream_gpu_reaches(ucs_gstream_h super, const volatile uint64_t *word)
{
    gstream_gpu_stream_t *stream = gstream_gpu_derived(super);
    gstream_gpu_place_t last;
    uint64_t address;
    int is_reached;

    if (gstream_device_covers(word) ||
        (gstream_gpu_enter(stream, &last) != UCS_OK)) {
        return 0;
    }
    is_reached = (gstream_gpu_map_word(stream, word, &address) == UCS_OK);
    stream->gpu->ops->leave(stream->gpu, &last);
    return is_reached;
}

/* The word of an operation, whose other members are set */
static ucs_status_t gstream_gpu_set_word(gstream_gpu_stream_t *stream,
                                         const volatile uint64_t *word,
                                         gstream_gpu_op_t *op)
{
    if (gstream_gpu_map_word(stream, word, &op->address) != UCS_OK) {
        ucs_error("%s stream %p: the device does not reach word %p: it is "
                  "neither in memory of the runtime nor in a range of "
                  "ucs_gstream_memory_add() that the runtime takes",
                  stream->gpu->name, (void*)stream, (void*)word);
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}

/* A store or a wait, at a place in the stream's scratch memory */
static ucs_status_t gstream_gpu_set_op(gstream_gpu_stream_t *stream,
                                       const volatile uint64_t *word,
                                       uint64_t value, int is_wait,
                                       gstream_gpu_op_t *op)
{
    memset(op, 0, sizeof(*op));
    op->operation = is_wait ? GSTREAM_GPU_OP_WAIT64 : GSTREAM_GPU_OP_WRITE64;
    op->value     = value;
    op->flags     = is_wait ? (GSTREAM_GPU_WAIT_GEQ | stream->wait_flags) : 0;
    if (is_wait && (value > INT64_MAX)) {
        ucs_error("%s stream %p: wait for a value of 2^63 or more: the device "
                  "compares cyclically", stream->gpu->name, (void*)stream);
        return UCS_ERR_INVALID_PARAM;
    }
    return gstream_gpu_set_word(stream, word, op);
}

/* The same of 32 bits */
static ucs_status_t gstream_gpu_set_op32(gstream_gpu_stream_t *stream,
                                         const ucs_gstream_cmd_t *cmd,
                                         gstream_gpu_op_t *op)
{
    int is_wait = (cmd->type == UCS_GSTREAM_CMD_WAIT32);

    memset(op, 0, sizeof(*op));
    op->operation = is_wait ? GSTREAM_GPU_OP_WAIT32 : GSTREAM_GPU_OP_WRITE32;
    op->value     = cmd->u.word32.value;
    op->flags     = is_wait ? (cmd->u.word32.cmp | stream->wait_flags) : 0;
    if (is_wait && (cmd->u.word32.cmp == UCS_GSTREAM_CMP_GE) &&
        (cmd->u.word32.value > INT32_MAX)) {
        ucs_error("%s stream %p: wait for a word of 32 bits to be 2^31 or more:"
                  " the device compares cyclically", stream->gpu->name,
                  (void*)stream);
        return UCS_ERR_INVALID_PARAM;
    }
    return gstream_gpu_set_word(
            stream, (const volatile uint64_t*)cmd->u.word32.address, op);
}

/* Room in the scratch memory for commands */
static ucs_status_t gstream_gpu_prepare(gstream_gpu_stream_t *stream,
                                        const ucs_gstream_cmd_t *cmds,
                                        size_t count)
{
    size_t num_ops = 1; /* A mark, which may be a step, too */
    gstream_gpu_step_t *steps;
    gstream_gpu_op_t *ops;
    size_t i;

    for (i = 0; i < count; ++i) {
        num_ops += (cmds[i].type == UCS_GSTREAM_CMD_WAITALL) ?
                           cmds[i].u.waitall.count :
                           1;
    }
    if (num_ops > stream->max_ops) {
        ops = realloc(stream->ops, 2 * num_ops * sizeof(*ops));
        if (ops == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        stream->ops     = ops;
        stream->max_ops = 2 * num_ops;
    }
    if (count >= stream->max_steps) {
        steps = realloc(stream->steps, 2 * (count + 1) * sizeof(*steps));
        if (steps == NULL) {
            return UCS_ERR_NO_MEMORY;
        }
        stream->steps     = steps;
        stream->max_steps = 2 * (count + 1);
    }
    return UCS_OK;
}

/* The stores and waits of a command; `*num_p` is set to how many, 0 if it is
 * another kind of command */
static ucs_status_t gstream_gpu_make_ops(gstream_gpu_stream_t *stream,
                                         const ucs_gstream_cmd_t *cmd,
                                         gstream_gpu_op_t *ops, size_t *num_p)
{
    ucs_status_t status = UCS_OK;
    const ucs_gstream_word_t *words;
    size_t i;

    *num_p = 0;
    switch (cmd->type) {
    case UCS_GSTREAM_CMD_WRITE64:
    case UCS_GSTREAM_CMD_WAIT64:
    case UCS_GSTREAM_CMD_HELP64:
        *num_p = 1;
        return gstream_gpu_set_op(stream, cmd->u.word.address,
                                  cmd->u.word.value,
                                  cmd->type != UCS_GSTREAM_CMD_WRITE64, ops);
    case UCS_GSTREAM_CMD_WRITE32:
    case UCS_GSTREAM_CMD_WAIT32:
        *num_p = 1;
        return gstream_gpu_set_op32(stream, cmd, ops);
    case UCS_GSTREAM_CMD_WAITALL:
        *num_p = cmd->u.waitall.count;
        words  = cmd->u.waitall.words;
        for (i = 0; (i < *num_p) && (status == UCS_OK); ++i) {
            status = gstream_gpu_set_op(stream, words[i].address,
                                        words[i].value, 1, &ops[i]);
        }
        return status;
    default:
        return UCS_OK;
    }
}

/* How many bytes a copy has, or whether it has any; 1 for other commands */
static size_t gstream_gpu_length(const ucs_gstream_cmd_t *cmd)
{
    if (cmd->type == UCS_GSTREAM_CMD_COPY) {
        return cmd->u.copy.length;
    }
    return (cmd->type != UCS_GSTREAM_CMD_COPY2D) ||
           ((cmd->u.copy2d.rect->width > 0) &&
            (cmd->u.copy2d.rect->height > 0));
}

/* A command that is a kernel of the library */
static int gstream_gpu_is_kernel(const ucs_gstream_cmd_t *cmd)
{
    return (cmd->type == UCS_GSTREAM_CMD_PAIRS) ||
           (cmd->type == UCS_GSTREAM_CMD_MOVE);
}

static ucs_status_t gstream_gpu_check_kernel(const gstream_gpu_stream_t *stream,
                                             const ucs_gstream_cmd_t *cmd)
{
    gstream_kernel_move_t args;

    if (stream->kernels == NULL) {
        ucs_error("%s stream %p: its context has no kernels of the library",
                  stream->gpu->name, (void*)stream);
        return UCS_ERR_UNSUPPORTED;
    }
    if (cmd->type == UCS_GSTREAM_CMD_MOVE) {
        return gstream_move_set(stream->gpu, cmd->u.move, &args);
    }
    return gstream_pairs_check(stream->gpu, cmd->u.pairs.pairs,
                               cmd->u.pairs.count);
}

/* Makes the next step of a command that is no store or wait; none for an empty
 * copy */
static ucs_status_t gstream_gpu_make_step(gstream_gpu_stream_t *stream,
                                          const ucs_gstream_cmd_t *cmd,
                                          size_t *num_steps)
{
    gstream_gpu_step_t *step = &stream->steps[*num_steps];
    int is_host              = 1;
    ucs_status_t status;

    if (gstream_gpu_length(cmd) == 0) {
        return UCS_OK;
    }
    if ((cmd->type == UCS_GSTREAM_CMD_COPY) ||
        (cmd->type == UCS_GSTREAM_CMD_COPY2D)) {
        status = gstream_gpu_check_copy(stream->gpu, cmd, &is_host);
    } else if (gstream_gpu_is_kernel(cmd)) {
        status  = gstream_gpu_check_kernel(stream, cmd);
        is_host = 0;
    } else {
        status = UCS_OK;
    }
    if (status != UCS_OK) {
        return status;
    }
    step->num_ops = 0;
    step->copy    = is_host ? NULL : cmd;
    step->func    = is_host ? gstream_gpu_make_func(stream, cmd) : NULL;
    if (is_host && (step->func == NULL)) {
        return UCS_ERR_NO_MEMORY;
    }
    ++*num_steps;
    return UCS_OK;
}

static int gstream_gpu_is_wait(const ucs_gstream_cmd_t *cmd)
{
    return (cmd->type == UCS_GSTREAM_CMD_WAIT64) ||
           (cmd->type == UCS_GSTREAM_CMD_HELP64) ||
           (cmd->type == UCS_GSTREAM_CMD_WAITALL) ||
           (cmd->type == UCS_GSTREAM_CMD_WAIT32);
}

static unsigned gstream_gpu_no_barrier(const gstream_gpu_stream_t *stream)
{
    return stream->gpu->ops->flag(stream->gpu, GSTREAM_GPU_NO_BARRIER);
}

/* Adds a store behind waits that tells when the stream has passed them, if that
 * is asked for: to a row of operations, or as a step of its own. It says
 * nothing of memory. */
static ucs_status_t gstream_gpu_make_mark(gstream_gpu_stream_t *stream,
                                          gstream_gpu_op_t *op, int is_in_row,
                                          size_t *num_steps)
{
    uint64_t number = gstream_ipc_begin_waits(&stream->share);
    ucs_status_t status;

    stream->has_waits = 1;
    if (number == 0) {
        return UCS_OK;
    }
    status = gstream_gpu_set_op(stream, stream->share.passed, number, 0, op);
    if (status != UCS_OK) {
        return status;
    }
    if (!is_in_row) {
        stream->steps[*num_steps] = (gstream_gpu_step_t){.num_ops = 0};
        ++*num_steps;
    }
    ++stream->steps[*num_steps - 1].num_ops;
    op->flags       = gstream_gpu_no_barrier(stream);
    stream->marking = number;
    stream->mark_op = op;
    return UCS_OK;
}

/* Waits that the stream did not get are no waits. What it got of a call that
 * failed in the midst keeps it from being known as idle. */
static void gstream_gpu_end_waits(gstream_gpu_stream_t *stream,
                                  ucs_status_t status)
{
    if ((status == UCS_OK) && (stream->marking != 0)) {
        stream->mark = stream->marking;
    } else if ((status != UCS_OK) && stream->has_waits && !stream->failed) {
        __atomic_sub_fetch(&stream->share.waits, 1, __ATOMIC_SEQ_CST);
    }
    stream->marking   = 0;
    stream->mark_op   = NULL;
    stream->has_waits = 0;
}

/* Makes all steps, before anything is enqueued */
static ucs_status_t gstream_gpu_make_steps(gstream_gpu_stream_t *stream,
                                           const ucs_gstream_cmd_t *cmds,
                                           size_t count, size_t *num_steps)
{
    size_t num_ops      = 0;
    size_t begun        = 0; /* ops of the steps before */
    int has_wait        = 0;
    ucs_status_t status = UCS_OK;
    size_t num, i;

    for (i = 0; (i < count) && (status == UCS_OK); ++i) {
        status = gstream_gpu_make_ops(stream, &cmds[i], &stream->ops[num_ops],
                                      &num);
        if (status != UCS_OK) {
            break;
        }
        if (num == 0) {
            status = gstream_gpu_make_step(stream, &cmds[i], num_steps);
            begun  = num_ops;
            continue;
        }
        if (num_ops == begun) { /* a row of them begins */
            stream->steps[*num_steps] = (gstream_gpu_step_t){.num_ops = 0};
            ++*num_steps;
        }
        stream->steps[*num_steps - 1].num_ops += num;
        num_ops                               += num;
        has_wait                              |= gstream_gpu_is_wait(&cmds[i]);
    }
    if ((status == UCS_OK) && has_wait) {
        status = gstream_gpu_make_mark(stream, &stream->ops[num_ops],
                                       num_ops > begun, num_steps);
    }
    return status;
}

/* How many operations one kernel does: waits, and stores behind them. The first
 * store of a row is the runtime's, which releases what kernels wrote before;
 * but for the mark, which says nothing of memory. 0 where it would be one call
 * as well. */
static size_t gstream_gpu_count_kernel(const gstream_gpu_stream_t *stream,
                                       const gstream_gpu_op_t *ops,
                                       size_t count, int is_released,
                                       size_t *num_waits_p)
{
    size_t max = ucs_min(count, (size_t)GSTREAM_KERNEL_MANY);
    size_t num = 0;

    if ((stream->kernels == NULL) || !stream->gpu->has_kernels) {
        return 0;
    }
    while ((num < max) && (ops[num].operation == GSTREAM_GPU_OP_WAIT64)) {
        ++num;
    }
    *num_waits_p = num;
    /* The last store has a fence in front: the mark takes it from no other */
    while ((num < max) && (ops[num].operation == GSTREAM_GPU_OP_WRITE64) &&
           ((&ops[num] == stream->mark_op) ? (num < *num_waits_p + 2) :
                                             is_released)) {
        ++num;
    }
    return (num > 1) ? num : 0;
}

/* Counts a launch of a kernel, if it is one */
static int gstream_gpu_count_launch(gstream_gpu_stream_t *stream, int result)
{
    if (result == GSTREAM_GPU_OK) {
        (void)__atomic_fetch_add(&stream->launches, 1, __ATOMIC_RELAXED);
    }
    return result;
}

/* Enqueues a move, or starts of pairs, and counts the calls that were made. A
 * result of the runtime. */
static int gstream_gpu_run_kernel(gstream_gpu_stream_t *stream,
                                 const ucs_gstream_cmd_t *cmd,
                                 size_t *num_calls)
{
    size_t count = (cmd->type == UCS_GSTREAM_CMD_MOVE) ? 0 :
                                                         cmd->u.pairs.count;
    int result   = GSTREAM_GPU_OK;
    size_t num, i;

    if (cmd->type == UCS_GSTREAM_CMD_MOVE) {
        result = gstream_gpu_count_launch(
                stream, gstream_move_launch(stream->kernels, stream->native,
                                            cmd->u.move));
        *num_calls += (result == GSTREAM_GPU_OK);
    }

    for (i = 0; (i < count) && (result == GSTREAM_GPU_OK); i += num) {
        num    = ucs_min(count - i, UCS_GSTREAM_PAIRS_MAX);
        result = gstream_gpu_count_launch(
                stream, gstream_pairs_launch(stream->kernels, stream->native,
                                             &cmd->u.pairs.pairs[i], num));
        *num_calls += (result == GSTREAM_GPU_OK);
    }
    return result;
}

/* Of stores that follow each other the first one comes behind all that the
 * stream did before, and the last one behind them all: those between need no
 * barrier, which takes longer than the store. */
static void gstream_gpu_relax_stores(const gstream_gpu_stream_t *stream,
                                     gstream_gpu_op_t *ops, size_t count)
{
    size_t num = 0; /* stores in a row */
    size_t i;

    for (i = 0; i < count; ++i) {
        num = ((ops[i].operation == GSTREAM_GPU_OP_WRITE64) &&
               (&ops[i] != stream->mark_op)) ? (num + 1) : 0;
        if (num > 2) {
            ops[i - 1].flags = gstream_gpu_no_barrier(stream);
        }
    }
}

/* Enqueues one store or wait. A result of the runtime. */
static int gstream_gpu_run_op(const gstream_gpu_stream_t *stream,
                              const gstream_gpu_op_t *op)
{
    const gstream_gpu_t *gpu = stream->gpu;

    switch (op->operation) {
    case GSTREAM_GPU_OP_WAIT64:
        return gpu->ops->wait64(gpu, stream->native, op->address, op->value,
                                op->flags);
    case GSTREAM_GPU_OP_WAIT32:
        return gpu->ops->wait32(gpu, stream->native, op->address,
                                (uint32_t)op->value, op->flags);
    case GSTREAM_GPU_OP_WRITE32:
        return gpu->calls.write32(stream->native, op->address,
                                  (uint32_t)op->value, op->flags);
    default:
        return gpu->calls.write64(stream->native, op->address, op->value,
                                  op->flags);
    }
}

/* Enqueues stores and waits, and counts the calls that were made. A result of
 * the runtime. */
static int gstream_gpu_run_ops(gstream_gpu_stream_t *stream,
                               gstream_gpu_op_t *ops, size_t count,
                               size_t *num_calls)
{
    const gstream_gpu_t *gpu = stream->gpu;
    int has_batch            = (gpu->calls.batch != NULL) && (count > 1);
    int result               = GSTREAM_GPU_OK;
    int is_released          = 0;
    size_t num_waits, num, i;

    gstream_gpu_relax_stores(stream, ops, count);
    for (i = 0; (i < count) && (result == GSTREAM_GPU_OK); i += num) {
        num = gstream_gpu_count_kernel(stream, &ops[i], count - i, is_released,
                                       &num_waits);
        if (num > 0) {
            result = gstream_gpu_count_launch(
                    stream, gstream_kernels_wait(stream->kernels,
                                                 stream->native, &ops[i],
                                                 num_waits, num - num_waits));
            *num_calls += (result == GSTREAM_GPU_OK);
            continue;
        }
        num = has_batch ? ucs_min(count - i, GSTREAM_GPU_BATCH_MAX) : 1;
        result = has_batch ? gpu->calls.batch(stream->native, num, &ops[i], 0) :
                             gstream_gpu_run_op(stream, &ops[i]);
        is_released |= (ops[i].operation == GSTREAM_GPU_OP_WRITE64);
        *num_calls += (result == GSTREAM_GPU_OK);
    }
    return result;
}

static int gstream_gpu_run_step(gstream_gpu_stream_t *stream,
                                const gstream_gpu_step_t *step,
                                gstream_gpu_op_t *ops, size_t *num_calls)
{
    const gstream_gpu_t *gpu = stream->gpu;
    int result;

    if (step->num_ops > 0) {
        return gstream_gpu_run_ops(stream, ops, step->num_ops, num_calls);
    }
    if ((step->copy != NULL) && gstream_gpu_is_kernel(step->copy)) {
        return gstream_gpu_run_kernel(stream, step->copy, num_calls);
    }
    result      = (step->func != NULL) ?
                          gpu->ops->launch(gpu, stream->native, step->func) :
                          gstream_gpu_copy(gpu, stream->native, step->copy);
    *num_calls += (result == GSTREAM_GPU_OK);
    return result;
}

/* Why the first call of several failed. A stream that can still be asked is not
 * lost: it is the arguments that were refused. */
static ucs_status_t gstream_gpu_refusal(gstream_gpu_stream_t *stream,
                                        ucs_status_t status)
{
    int result;

    if (status != UCS_ERR_IO_ERROR) {
        return status;
    }
    result = stream->gpu->calls.query(stream->native);
    return (gstream_gpu_is_ok(stream->gpu, result) ||
            (result == GSTREAM_GPU_NOT_READY)) ?
                   UCS_ERR_INVALID_PARAM :
                   UCS_ERR_IO_ERROR;
}

/* Says what was not enqueued; as gstream_gpu_status() */
static ucs_status_t gstream_gpu_step_status(const gstream_gpu_stream_t *stream,
                                            const gstream_gpu_step_t *step,
                                            const gstream_gpu_op_t *ops,
                                            int result)
{
    char what[80] = "host function";

    if ((step->copy != NULL) && (step->copy->type == UCS_GSTREAM_CMD_MOVE)) {
        snprintf(what, sizeof(what), "move of %zu bytes",
                 (size_t)step->copy->u.move->length);
    } else if ((step->copy != NULL) && gstream_gpu_is_kernel(step->copy)) {
        snprintf(what, sizeof(what), "starts of %zu pairs of streams",
                 step->copy->u.pairs.count);
    } else if (step->copy != NULL) {
        return gstream_gpu_copy_status(stream->gpu, result, step->copy);
    }
    if (step->num_ops > 0) {
        snprintf(what, sizeof(what), "%zu stores and waits, the first one of "
                 "the device's word 0x%lx", step->num_ops, ops->address);
    }
    return gstream_gpu_status(stream->gpu, result, what);
}

/* Enqueues all steps. If a call of the runtime fails behind others the stream
 * has run, or will run, a part: it takes no more. */
static ucs_status_t gstream_gpu_run_steps(gstream_gpu_stream_t *stream,
                                          size_t num_steps)
{
    gstream_gpu_op_t *ops = stream->ops;
    size_t num_calls      = 0;
    int result            = GSTREAM_GPU_OK;
    ucs_status_t status;
    size_t i;

    for (i = 0; i < num_steps; ++i) {
        result = gstream_gpu_run_step(stream, &stream->steps[i], ops,
                                      &num_calls);
        if (result != GSTREAM_GPU_OK) {
            break;
        }
        ops += stream->steps[i].num_ops;
    }
    if (result == GSTREAM_GPU_OK) {
        return UCS_OK;
    }
    status         = gstream_gpu_step_status(stream, &stream->steps[i], ops,
                                             result);
    stream->failed = (num_calls > 0);
    for (; i < num_steps; ++i) {
        free(stream->steps[i].func);
    }
    return stream->failed ? UCS_ERR_IO_ERROR :
                            gstream_gpu_refusal(stream, status);
}

static ucs_status_t gstream_gpu_enqueue_locked(gstream_gpu_stream_t *stream,
                                               const ucs_gstream_cmd_t *cmds,
                                               size_t count)
{
    size_t num_steps = 0;
    ucs_status_t status;

    if (stream->failed) {
        ucs_error("%s stream %p: a part of an earlier call failed",
                  stream->gpu->name, (void*)stream);
        return UCS_ERR_IO_ERROR;
    }
    status = gstream_gpu_prepare(stream, cmds, count);
    if (status != UCS_OK) {
        return status;
    }
    status = gstream_gpu_make_steps(stream, cmds, count, &num_steps);
    if (status == UCS_OK) {
        status = gstream_gpu_run_steps(stream, num_steps);
    } else {
        while (num_steps > 0) {
            free(stream->steps[--num_steps].func);
        }
    }
    gstream_gpu_end_waits(stream, status);
    return status;
}

ucs_status_t gstream_gpu_enqueue(ucs_gstream_h super,
                                 const ucs_gstream_cmd_t *cmds, size_t count)
{
    gstream_gpu_stream_t *stream = gstream_gpu_derived(super);
    gstream_gpu_place_t last;
    ucs_status_t status;

    if (gstream_gpu_current != NULL) {
        ucs_error("%s stream %p: a host function of a stream cannot enqueue",
                  stream->gpu->name, (void*)stream);
        return UCS_ERR_BUSY;
    }
    status = gstream_gpu_enter_checked(stream, "enqueue", &last);
    if (status == UCS_OK) {
        pthread_mutex_lock(&stream->lock);
        status = gstream_gpu_enqueue_locked(stream, cmds, count);
        pthread_mutex_unlock(&stream->lock);
        stream->gpu->ops->leave(stream->gpu, &last);
    }
    return status;
}
