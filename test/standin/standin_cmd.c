/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_cmd.c - a queue's thread: takes its commands one after the other.
 *
 * What a command uses is looked up when the command runs. Memory that is not
 * there any more is a fault of the device: it is lost then.
 *
 * A store to memory of a device (IO memory) is posted: its command is over
 * before the store is done. Stores of one queue stay in order. They are on
 * their way until the thread has nothing to do, has to wait, or has
 * STANDIN_MAX_POSTS of them; without STANDIN_DELAY_US, until just after the
 * command's end.
 */
#include "standin.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

/* A thread that waits for a word: rounds that only yield, then sleeps that
 * grow, in two steps */
#define STANDIN_YIELDS    50
#define STANDIN_SLEEP_MIN 20
#define STANDIN_SLEEP_MAX 100
#define STANDIN_LONG      2000 /* Rounds of a wait that takes long */
#define STANDIN_SLEEP     500
#define STANDIN_SLICE     2000000 /* ns */


void standin_cmd_free(standin_cmd_t *cmd)
{
    if (cmd->type == STANDIN_CMD_RECORD) {
        standin_event_put(cmd->event);
    } else if (cmd->type == STANDIN_CMD_AFTER) {
        standin_stream_put(cmd->after.stream);
    }
    standin_stream_put(cmd->stream);
    free(cmd);
}

static void standin_sleep_us(unsigned us)
{
    struct timespec time = {
        .tv_sec  = us / 1000000,
        .tv_nsec = (long)(us % 1000000) * 1000
    };

    nanosleep(&time, NULL);
}

/* Uses of a range while the lock is not held */

standin_range_t *standin_use(uint64_t address, size_t size, int is_dev)
{
    standin_range_t *range = standin_mem_find(address, is_dev);

    if ((range == NULL) || !standin_mem_holds(range, address, size)) {
        return NULL;
    }
    ++range->users;
    return range;
}

void standin_unuse(standin_range_t *range)
{
    if (range != NULL) {
        --range->users;
        pthread_cond_broadcast(&standin_done);
    }
}

void standin_store(char *address, uint64_t value, size_t size)
{
    if (size == 8) {
        __atomic_store_n((uint64_t*)(void*)address, value, __ATOMIC_RELEASE);
    } else {
        __atomic_store_n((uint32_t*)(void*)address, (uint32_t)value,
                         __ATOMIC_RELEASE);
    }
}

uint64_t standin_load(const char *address, size_t size)
{
    return (size == 8) ?
           __atomic_load_n((const uint64_t*)(const void*)address,
                           __ATOMIC_ACQUIRE) :
           __atomic_load_n((const uint32_t*)(const void*)address,
                           __ATOMIC_ACQUIRE);
}

/* The memory may be one whose faults are handled, so the lock is not held */
void standin_queue_post(standin_queue_t *queue)
{
    standin_range_t *range;
    standin_post_t *post;
    char *inner;
    unsigned i;

    for (i = 0; i < queue->post_count; ++i) {
        post  = &queue->posts[i];
        range = standin_use(post->address, post->size, 1);
        if (range == NULL) {
            continue; /* Nobody answers there: a store is lost */
        }
        inner = standin_mem_inner(range, post->address);
        pthread_mutex_unlock(&standin_lock);
        standin_store(inner, post->value, post->size);
        pthread_mutex_lock(&standin_lock);
        standin_unuse(range);
    }
    queue->post_count = 0;
}

static unsigned standin_random(standin_queue_t *queue, unsigned limit)
{
    queue->rng = queue->rng * 1664525u + 1013904223u;
    return (queue->rng >> 8) % limit;
}

static void standin_delay(standin_queue_t *queue)
{
    unsigned us;

    if (standin_set.delay_us > 0) {
        us = standin_random(queue, standin_set.delay_us + 1);
        pthread_mutex_unlock(&standin_lock);
        standin_sleep_us(us);
        pthread_mutex_lock(&standin_lock);
    }
}

/* The process whose turn it is holds the lock of a file. It is over when none
 * of its commands runs; after a slice of time no other one begins before. */

static unsigned standin_turn_users;
static int standin_turn_busy; /* A thread gets the lock of the file */
static struct timespec standin_turn_begin;

static int standin_turn_is_over(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec != standin_turn_begin.tv_sec) ||
           (now.tv_nsec - standin_turn_begin.tv_nsec > STANDIN_SLICE);
}

void standin_turn_get(void)
{
    if (standin_set.turns < 0) {
        return;
    }
    while (standin_turn_busy ||
           ((standin_turn_users > 0) && standin_turn_is_over())) {
        pthread_cond_wait(&standin_done, &standin_lock);
    }
    if (standin_turn_users == 0) {
        standin_turn_busy = 1;
        pthread_mutex_unlock(&standin_lock);
        while (flock(standin_set.turns, LOCK_EX) != 0) {
        }
        pthread_mutex_lock(&standin_lock);
        clock_gettime(CLOCK_MONOTONIC, &standin_turn_begin);
        standin_turn_busy = 0;
        pthread_cond_broadcast(&standin_done);
    }
    ++standin_turn_users;
}

void standin_turn_put(void)
{
    if ((standin_set.turns >= 0) && (--standin_turn_users == 0)) {
        (void)flock(standin_set.turns, LOCK_UN);
        pthread_cond_broadcast(&standin_done);
    }
}

/* Whether nothing of a stream is to run any more */
int standin_is_over(const standin_stream_t *stream)
{
    return stream->is_dead || standin_devices[stream->device].error;
}

static int standin_run_write(standin_queue_t *queue, const standin_op_t *op)
{
    size_t size            = (op->op == STANDIN_OP_WRITE64) ? 8 : 4;
    standin_range_t *range = standin_mem_find(op->address, 1);

    if ((range == NULL) || !standin_mem_holds(range, op->address, size)) {
        return STANDIN_ERR_ADDRESS;
    }
    if (range->is_io) {
        if (queue->post_count == STANDIN_MAX_POSTS) {
            standin_queue_post(queue);
        }
        queue->posts[queue->post_count++] = (standin_post_t){
            .address = op->address,
            .value   = op->value,
            .size    = size
        };
        return STANDIN_OK;
    }
    standin_store(standin_mem_inner(range, op->address), op->value, size);
    return STANDIN_OK;
}

static int standin_is_reached(const standin_op_t *op, uint64_t value,
                              size_t size)
{
    uint64_t all = (size == 8) ? UINT64_MAX : UINT32_MAX;

    value &= op->mask & all;
    switch (op->flags & ~STANDIN_WAIT_FLUSH) {
    case STANDIN_WAIT_GEQ:
        if (standin_kind.is_hip) {
            return value >= (op->value & all);
        }
        return (size == 8) ? (int64_t)(value - op->value) >= 0 :
               (int32_t)(uint32_t)(value - op->value) >= 0;
    case STANDIN_WAIT_EQ:
        return value == (op->value & all);
    case STANDIN_WAIT_AND:
        return (value & op->value) != 0;
    default:
        return (~(value | (op->value & op->mask)) & all) != 0;
    }
}

void standin_pause(unsigned round)
{
    unsigned us = STANDIN_SLEEP_MIN + (round - STANDIN_YIELDS);

    standin_turn_put();
    pthread_mutex_unlock(&standin_lock);
    if (round < STANDIN_YIELDS) {
        sched_yield();
    } else if (round > STANDIN_LONG) {
        standin_sleep_us(STANDIN_SLEEP);
    } else {
        standin_sleep_us((us < STANDIN_SLEEP_MAX) ? us : STANDIN_SLEEP_MAX);
    }
    pthread_mutex_lock(&standin_lock);
    standin_turn_get();
}

/* The range is looked up for each look at the word: it may go meanwhile */
static int standin_run_wait(standin_queue_t *queue, const standin_cmd_t *cmd,
                            const standin_op_t *op)
{
    size_t size    = (op->op == STANDIN_OP_WAIT64) ? 8 : 4;
    unsigned round = 0;
    standin_range_t *range;

    while (!standin_is_over(cmd->stream)) {
        range = standin_mem_find(op->address, 1);
        if ((range == NULL) || !standin_mem_holds(range, op->address, size)) {
            return STANDIN_ERR_ADDRESS;
        }
        if (standin_is_reached(op, standin_load(
                standin_mem_inner(range, op->address), size), size)) {
            break;
        }
        standin_queue_post(queue);
        standin_pause(round++);
    }
    return STANDIN_OK;
}

static int standin_run_ops(standin_queue_t *queue, const standin_cmd_t *cmd)
{
    const standin_op_t *ops = (const standin_op_t*)(const void*)cmd->data;
    int err                 = STANDIN_OK;
    size_t i;

    for (i = 0; (i < cmd->op_count) && (err == STANDIN_OK) &&
         !standin_is_over(cmd->stream); ++i) {
        switch (ops[i].op) {
        case STANDIN_OP_WRITE32:
        case STANDIN_OP_WRITE64:
            err = standin_run_write(queue, &ops[i]);
            break;
        case STANDIN_OP_WAIT32:
        case STANDIN_OP_WAIT64:
            err = standin_run_wait(queue, cmd, &ops[i]);
            break;
        default:
            break; /* All is in order already */
        }
    }
    return err;
}

/* An address that no range had is the host's, and the caller waits */
static void *standin_side(uint64_t address, size_t span, int is_known,
                          standin_range_t **range_p)
{
    *range_p = standin_use(address, span, 0);
    if (*range_p != NULL) {
        return standin_mem_inner(*range_p, address);
    }
    return is_known ? NULL : (void*)(uintptr_t)address;
}

static int standin_run_copy(const standin_copy_t *copy)
{
    size_t rows = copy->height - 1;
    standin_range_t *dst_range, *src_range;
    char *dst, *src;
    size_t row;

    standin_wait_held(STANDIN_HOLD_COPY);
    dst = standin_side(copy->dst, rows * copy->dpitch + copy->width,
                       copy->is_dst_known, &dst_range);
    src = standin_side(copy->src, rows * copy->spitch + copy->width,
                       copy->is_src_known, &src_range);
    if ((dst != NULL) && (src != NULL)) {
        pthread_mutex_unlock(&standin_lock);
        for (row = 0; row < copy->height; ++row) {
            memmove(dst + row * copy->dpitch, src + row * copy->spitch,
                    copy->width);
        }
        pthread_mutex_lock(&standin_lock);
    }
    standin_unuse(dst_range);
    standin_unuse(src_range);
    return ((dst != NULL) && (src != NULL)) ? STANDIN_OK :
                                              STANDIN_ERR_ADDRESS;
}

static int standin_run_fill(const standin_fill_t *fill)
{
    standin_range_t *range = standin_use(fill->dst, fill->size, 1);
    char *inner;

    if (range == NULL) {
        return STANDIN_ERR_ADDRESS;
    }
    inner = standin_mem_inner(range, fill->dst);
    pthread_mutex_unlock(&standin_lock);
    memset(inner, fill->value, fill->size);
    pthread_mutex_lock(&standin_lock);
    standin_unuse(range);
    return STANDIN_OK;
}

void standin_sm_get(const standin_stream_t *stream)
{
    standin_device_t *device = &standin_devices[stream->device];

    while ((standin_set.sms > 0) && (device->resident >= standin_set.sms) &&
           !standin_is_over(stream)) {
        pthread_cond_wait(&standin_done, &standin_lock);
    }
    ++device->resident;
}

void standin_sm_put(const standin_stream_t *stream)
{
    --standin_devices[stream->device].resident;
    pthread_cond_broadcast(&standin_done);
}

/* A kernel may not call the runtime, either */
static void standin_run_kernel(standin_cmd_t *cmd)
{
    standin_mem_kernel_begin();
    standin_in_callback = 1;
    pthread_mutex_unlock(&standin_lock);
    cmd->kernel.func(cmd->data);
    pthread_mutex_lock(&standin_lock);
    standin_in_callback = 0;
    standin_mem_kernel_end();
}

/* One after the other in a process, as CUDA's driver may run them */
static void standin_run_host(standin_cmd_t *cmd)
{
    static int is_busy;
    int err;

    while (is_busy) {
        pthread_cond_wait(&standin_done, &standin_lock);
    }
    is_busy             = 1;
    err                 = standin_devices[cmd->stream->device].error;
    standin_in_callback = 1;
    pthread_mutex_unlock(&standin_lock);
    if (cmd->type == STANDIN_CMD_HOST) {
        cmd->host.func(cmd->host.arg);
    } else {
        cmd->host.callback(cmd->host.handle, err, cmd->host.arg);
    }
    pthread_mutex_lock(&standin_lock);
    standin_in_callback = 0;
    is_busy             = 0;
    pthread_cond_broadcast(&standin_done);
}

static void standin_run_record(const standin_cmd_t *cmd)
{
    standin_event_t *event = cmd->event;
    struct timespec now;

    if ((event->stream == cmd->stream) && (event->seq == cmd->seq)) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        event->time_ns = (uint64_t)now.tv_sec * 1000000000 +
                         (uint64_t)now.tv_nsec;
    }
}

static void standin_run_after(standin_queue_t *queue, const standin_cmd_t *cmd)
{
    standin_queue_post(queue);
    while ((cmd->after.stream->done < cmd->after.seq) &&
           !standin_is_over(cmd->stream)) {
        pthread_cond_wait(&standin_done, &standin_lock);
    }
}

static int standin_run_turn(standin_queue_t *queue, standin_cmd_t *cmd)
{
    int err;

    standin_turn_get();
    switch (cmd->type) {
    case STANDIN_CMD_OPS:
        err = standin_run_ops(queue, cmd);
        break;
    case STANDIN_CMD_COPY:
        err = standin_run_copy(&cmd->copy);
        break;
    case STANDIN_CMD_FILL:
        err = standin_run_fill(&cmd->fill);
        break;
    default:
        standin_run_kernel(cmd);
        err = STANDIN_OK;
        break;
    }
    standin_turn_put();
    return err;
}

static int standin_run(standin_queue_t *queue, standin_cmd_t *cmd)
{
    /* HIP's memory operations are kernels, too */
    int is_kernel = (cmd->type == STANDIN_CMD_KERNEL) ||
                    ((cmd->type == STANDIN_CMD_OPS) && standin_kind.is_hip);
    int err;

    if (cmd->type == STANDIN_CMD_CALLBACK) {
        standin_run_host(cmd);
        return STANDIN_OK;
    }
    if (standin_is_over(cmd->stream)) {
        return STANDIN_OK;
    }
    switch (cmd->type) {
    case STANDIN_CMD_HOST:
        standin_run_host(cmd);
        return STANDIN_OK;
    case STANDIN_CMD_RECORD:
        standin_run_record(cmd);
        return STANDIN_OK;
    case STANDIN_CMD_AFTER:
        standin_run_after(queue, cmd);
        return STANDIN_OK;
    default:
        break;
    }
    if ((cmd->type == STANDIN_CMD_KERNEL) && (cmd->kernel.device != NULL)) {
        standin_queue_post(queue);
        standin_kernel_run(cmd);
        return STANDIN_OK;
    }
    if (is_kernel) {
        standin_sm_get(cmd->stream);
    }
    err = standin_run_turn(queue, cmd);
    if (is_kernel) {
        standin_sm_put(cmd->stream);
    }
    return err;
}

static standin_cmd_t *standin_next(standin_queue_t *queue)
{
    standin_cmd_t *cmd;

    while (queue->head == NULL) {
        if (queue->post_count > 0) {
            standin_delay(queue);
            standin_queue_post(queue);
        } else {
            pthread_cond_wait(&queue->cond, &standin_lock);
        }
    }
    cmd         = queue->head;
    queue->head = cmd->next;
    if (queue->head == NULL) {
        queue->tail = NULL;
    }
    return cmd;
}

void *standin_queue_main(void *arg)
{
    standin_queue_t *queue = arg;
    standin_cmd_t *cmd;
    int err;

    standin_mem_thread_begin();
    pthread_mutex_lock(&standin_lock);
    for (;;) {
        cmd = standin_next(queue);
        standin_delay(queue);
        err = standin_run(queue, cmd);
        if ((err != STANDIN_OK) && !standin_devices[queue->device].error) {
            standin_devices[queue->device].error = err;
            standin_stream_wake();
        }
        cmd->stream->done = cmd->seq;
        queue->length  -= (cmd->room != STANDIN_ROOM_NONE);
        queue->changes -= (cmd->room == STANDIN_ROOM_CHANGE);
        pthread_cond_broadcast(&standin_done);
        if ((standin_set.delay_us == 0) || (standin_random(queue, 2) == 0)) {
            standin_queue_post(queue);
        }
        standin_cmd_free(cmd);
    }
    return NULL;
}
