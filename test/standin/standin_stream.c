/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_stream.c - streams, their queues, and capture.
 *
 * A device has a few queues with a thread each; a stream is bound to one when
 * it is made: to the one with the fewest streams. Commands of one queue run in
 * the order in which they were put there, whatever their stream, so one that
 * waits holds up all streams of its queue. Priorities change nothing.
 *
 * A queue has room for so many calls (STANDIN_DEPTH), and for so many that come
 * behind a host function; host functions take none. One that finds none waits
 * until a command is done. Meanwhile all calls with its stream wait, also to
 * ask about it; behind a kernel or a copy host functions of all streams of the
 * device and the registration of memory wait, too. So it was seen on a GPU.
 *
 * The legacy default stream of a context and its blocking streams wait for each
 * other: whatever is put into one is put behind a command that waits for what
 * the other has by then.
 */
#include "standin.h"

#include <signal.h>
#include <stdlib.h>

/* Handles that name a default stream of the current context */
#define STANDIN_HANDLE_NULL   ((void*)0)
#define STANDIN_HANDLE_LEGACY ((void*)1)
#define STANDIN_HANDLE_THREAD ((void*)2)

/* Modes of captures and of threads: what is forbidden meanwhile to all threads,
 * to the one that captures, to none; and by which captures */
enum {
    STANDIN_MODE_GLOBAL,
    STANDIN_MODE_THREAD,
    STANDIN_MODE_RELAXED
};

/* Calls behind a host function that a queue has room for; seen with CUDA 13.0
 * on an H200 */
#define STANDIN_CHANGES 55


static standin_stream_t *standin_streams;
static uint64_t standin_threads;
static __thread uint64_t standin_thread;
static __thread int standin_mode; /* For captures */


void standin_stream_put(standin_stream_t *stream)
{
    if (--stream->refs == 0) {
        free(stream);
    }
}

void standin_stream_wake(void)
{
    int device, i;
    standin_queue_t *queue;

    pthread_cond_broadcast(&standin_done);
    for (device = 0; device < standin_set.devices; ++device) {
        for (i = 0; i < standin_set.queues; ++i) {
            queue = standin_devices[device].queues[i];
            if (queue != NULL) {
                pthread_cond_broadcast(&queue->cond);
            }
        }
    }
}

/* Queues */

static standin_queue_t *standin_queue_new(int device, int i)
{
    standin_queue_t *queue = calloc(1, sizeof(*queue));

    if (queue != NULL) {
        queue->device = device;
        queue->rng    = standin_set.seed * 7919 + (unsigned)(device * 64 + i);
        pthread_cond_init(&queue->cond, NULL);
        standin_devices[device].queues[i] = queue;
    }
    return queue;
}

/* The queue with the fewest streams, an unused one first */
static standin_queue_t *standin_queue_choose(int device)
{
    standin_queue_t *best = NULL;
    standin_queue_t *queue;
    int i;

    for (i = 0; i < standin_set.queues; ++i) {
        queue = standin_devices[device].queues[i];
        if (queue == NULL) {
            return ((best != NULL) && (best->streams == 0)) ?
                   best : standin_queue_new(device, i);
        }
        if ((best == NULL) || (queue->streams < best->streams)) {
            best = queue;
        }
    }
    return best;
}

/* Faults of its own are all that a thread of ours is to see of signals */
static int standin_queue_start(standin_queue_t *queue)
{
    pthread_attr_t attr;
    sigset_t all, old;
    pthread_t thread;
    int ret;

    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    ret = pthread_create(&thread, &attr, standin_queue_main, queue);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    queue->has_thread = (ret == 0);
    return (ret == 0) ? STANDIN_OK : STANDIN_ERR_NO_MEMORY;
}

/* Streams */

static int standin_stream_new(standin_ctx_t *ctx, int kind, int priority,
                              standin_stream_t **stream_p)
{
    standin_stream_t *stream = calloc(1, sizeof(*stream));
    standin_queue_t *queue   = standin_queue_choose(ctx->device);

    if ((stream == NULL) || (queue == NULL)) {
        free(stream);
        return STANDIN_ERR_NO_MEMORY;
    }
    stream->ctx      = ctx;
    stream->queue    = queue;
    stream->device   = ctx->device;
    stream->refs     = 1;
    stream->kind     = kind;
    stream->priority = priority;
    stream->owner    = standin_thread;
    stream->next     = standin_streams;
    standin_streams  = stream;
    ++queue->streams;
    *stream_p = stream;
    return STANDIN_OK;
}

static void standin_stream_remove(standin_stream_t *stream)
{
    standin_stream_t **stream_p = &standin_streams;

    while (*stream_p != stream) {
        stream_p = &(*stream_p)->next;
    }
    *stream_p = stream->next;
    --stream->queue->streams;
    standin_stream_put(stream);
}

int standin_stream_legacy(standin_ctx_t *ctx)
{
    return standin_stream_new(ctx, STANDIN_STREAM_LEGACY, 0, &ctx->legacy);
}

static uint64_t standin_thread_number(void)
{
    if (standin_thread == 0) {
        standin_thread = ++standin_threads;
    }
    return standin_thread;
}

static int standin_stream_of_thread(standin_ctx_t *ctx,
                                    standin_stream_t **stream_p)
{
    uint64_t owner = standin_thread_number();
    standin_stream_t *stream;

    for (stream = standin_streams; stream != NULL; stream = stream->next) {
        if ((stream->ctx == ctx) && (stream->kind == STANDIN_STREAM_THREAD) &&
            (stream->owner == owner)) {
            *stream_p = stream;
            return STANDIN_OK;
        }
    }
    return standin_stream_new(ctx, STANDIN_STREAM_THREAD, 0, stream_p);
}

int standin_stream_find(void *handle, standin_ctx_t *ctx,
                        standin_stream_t **stream_p)
{
    standin_stream_t *stream = standin_streams;

    if ((handle == STANDIN_HANDLE_NULL) || (handle == STANDIN_HANDLE_LEGACY)) {
        *stream_p = ctx->legacy;
        return STANDIN_OK;
    }
    if (handle == STANDIN_HANDLE_THREAD) {
        return standin_stream_of_thread(ctx, stream_p);
    }
    while ((stream != NULL) && (stream != handle)) {
        stream = stream->next;
    }
    *stream_p = stream;
    return (stream == NULL) ? STANDIN_ERR_HANDLE : STANDIN_OK;
}

/* The stream may go while it is waited for */
int standin_stream_get(void *handle, standin_ctx_t *ctx,
                       standin_stream_t **stream_p)
{
    int err = standin_stream_find(handle, ctx, stream_p);

    while ((err == STANDIN_OK) && ((*stream_p)->blocked > 0)) {
        pthread_cond_wait(&standin_done, &standin_lock);
        err = standin_stream_find(handle, ctx, stream_p);
    }
    return err;
}

int standin_stream_fails(const standin_stream_t *stream)
{
    int err = standin_devices[stream->device].error;

    if (err != STANDIN_OK) {
        return err;
    }
    if (standin_fail.skip > 0) {
        --standin_fail.skip;
        return STANDIN_OK;
    }
    if (standin_fail.count > 0) {
        --standin_fail.count;
        return standin_fail.error;
    }
    return STANDIN_OK;
}

/* A call with a stream; takes the lock if it returns STANDIN_OK */
int standin_enter_stream(void *handle, standin_stream_t **stream_p)
{
    standin_ctx_t *ctx;
    int err;

    STANDIN_TRY(standin_enter_any(&ctx));
    err = standin_stream_get(handle, ctx, stream_p);
    if (err == STANDIN_OK) {
        err = standin_stream_fails(*stream_p);
    }
    return (err == STANDIN_OK) ? STANDIN_OK : standin_leave(err);
}

int standin_stream_create(int is_blocking, int priority, void **handle)
{
    standin_ctx_t *ctx;
    standin_stream_t *stream;
    int err;

    STANDIN_TRY(standin_enter_ctx(&ctx));
    err = standin_stream_new(ctx,
                             is_blocking ? STANDIN_STREAM_BLOCKING :
                                           STANDIN_STREAM_NON_BLOCKING,
                             priority, &stream);
    if (err == STANDIN_OK) {
        *handle = stream;
    }
    return standin_leave(err);
}

/* What it has still to do is done */
int standin_stream_destroy(void *handle)
{
    standin_ctx_t *ctx;
    standin_stream_t *stream;
    int err;

    STANDIN_TRY(standin_enter_any(&ctx));
    err = standin_stream_find(handle, ctx, &stream);
    if ((err == STANDIN_OK) && (handle <= STANDIN_HANDLE_THREAD)) {
        err = STANDIN_ERR_HANDLE;
    }
    if (err == STANDIN_OK) {
        err = standin_devices[stream->device].error;
        standin_stream_remove(stream);
    }
    return standin_leave(err);
}

/* A command that holds its stream */
standin_cmd_t *standin_cmd_new(standin_stream_t *stream, int type,
                                      size_t size)
{
    standin_cmd_t *cmd = calloc(1, sizeof(*cmd) + size);

    if (cmd != NULL) {
        cmd->stream = stream;
        cmd->type   = type;
        ++stream->refs;
    }
    return cmd;
}

static int standin_is_host(const standin_cmd_t *cmd)
{
    return (cmd->type == STANDIN_CMD_HOST) ||
           (cmd->type == STANDIN_CMD_CALLBACK);
}

/* What a command is to take */
static int standin_room(const standin_queue_t *queue, const standin_cmd_t *cmd)
{
    return standin_is_host(cmd) ? STANDIN_ROOM_NONE :
           (queue->tail != NULL) && standin_is_host(queue->tail) ?
                                  STANDIN_ROOM_CHANGE :
                                  STANDIN_ROOM_CALL;
}

static int standin_has_room(const standin_queue_t *queue,
                            const standin_cmd_t *cmd)
{
    int room = standin_room(queue, cmd);

    return (standin_set.depth == 0) || (room == STANDIN_ROOM_NONE) ||
           ((queue->length < standin_set.depth) &&
            ((room == STANDIN_ROOM_CALL) ||
             (queue->changes < STANDIN_CHANGES))) ||
           standin_devices[queue->device].error;
}

void standin_wait_launches(int device)
{
    while (standin_devices[device].blocked > 0) {
        pthread_cond_wait(&standin_done, &standin_lock);
    }
}

void standin_wait_closing(int device)
{
    while (standin_devices[device].closing > 0) {
        pthread_cond_wait(&standin_done, &standin_lock);
    }
}

/* As a ring of a device has it: a call waits for room. A device that is lost
 * has room. */
static void standin_wait_room(const standin_cmd_t *cmd)
{
    standin_stream_t *stream = cmd->stream;
    unsigned is_launch       = (cmd->type == STANDIN_CMD_KERNEL) ||
                               (cmd->type == STANDIN_CMD_COPY);

    if (standin_has_room(stream->queue, cmd)) {
        return;
    }
    ++standin_count.full;
    ++stream->blocked;
    standin_devices[stream->device].blocked += is_launch;
    do {
        pthread_cond_wait(&standin_done, &standin_lock);
    } while (!standin_has_room(stream->queue, cmd));
    --stream->blocked;
    standin_devices[stream->device].blocked -= is_launch;
    pthread_cond_broadcast(&standin_done);
}

static int standin_push(standin_cmd_t *cmd)
{
    standin_queue_t *queue = cmd->stream->queue;

    if (!queue->has_thread && (standin_queue_start(queue) != STANDIN_OK)) {
        standin_cmd_free(cmd);
        return STANDIN_ERR_NO_MEMORY;
    }
    standin_wait_room(cmd);
    cmd->room       = standin_room(queue, cmd);
    queue->length  += (cmd->room != STANDIN_ROOM_NONE);
    queue->changes += (cmd->room == STANDIN_ROOM_CHANGE);
    cmd->seq = ++cmd->stream->enqueued;
    if (queue->tail == NULL) {
        queue->head = cmd;
    } else {
        queue->tail->next = cmd;
    }
    queue->tail = cmd;
    pthread_cond_signal(&queue->cond);
    return STANDIN_OK;
}

/* Put a wait for all that another stream has by now */
int standin_push_after(standin_stream_t *stream,
                              standin_stream_t *other, uint64_t seq)
{
    standin_cmd_t *cmd;

    if ((stream == other) || (other->done >= seq)) {
        return STANDIN_OK;
    }
    cmd = standin_cmd_new(stream, STANDIN_CMD_AFTER, 0);
    if (cmd == NULL) {
        return STANDIN_ERR_NO_MEMORY;
    }
    cmd->after.stream = other;
    cmd->after.seq    = seq;
    ++other->refs;
    return standin_push(cmd);
}

static int standin_is_blocking(const standin_stream_t *stream)
{
    return (stream->kind == STANDIN_STREAM_BLOCKING) ||
           (stream->kind == STANDIN_STREAM_THREAD);
}

/* The order of the legacy stream and the blocking ones */
int standin_push_order(standin_stream_t *stream)
{
    standin_stream_t *legacy = stream->ctx->legacy;
    standin_stream_t *other;
    int err = STANDIN_OK;

    if (standin_is_blocking(stream)) {
        return standin_push_after(stream, legacy, legacy->enqueued);
    }
    for (other = standin_streams; (stream == legacy) && (other != NULL) &&
         (err == STANDIN_OK); other = other->next) {
        if ((other->ctx == stream->ctx) && standin_is_blocking(other)) {
            err = standin_push_after(stream, other, other->enqueued);
        }
    }
    return err;
}

/* The legacy stream would wait for streams that are being captured */
static int standin_is_implicit(const standin_stream_t *stream)
{
    standin_stream_t *other;
    int found = 0;

    if (stream != stream->ctx->legacy) {
        return 0;
    }
    for (other = standin_streams; other != NULL; other = other->next) {
        if ((other->ctx == stream->ctx) && standin_is_blocking(other) &&
            (other->capture != STANDIN_CAPTURE_NONE)) {
            other->capture = STANDIN_CAPTURE_INVALIDATED;
            found          = 1;
        }
    }
    return found;
}

/* Put a command into its stream, or free it */
int standin_enqueue(standin_cmd_t *cmd)
{
    standin_stream_t *stream = cmd->stream;
    int err                  = STANDIN_OK;

    if (stream->capture == STANDIN_CAPTURE_ACTIVE) {
        ++stream->nodes;
        standin_cmd_free(cmd);
        return STANDIN_OK;
    }
    if (stream->capture == STANDIN_CAPTURE_INVALIDATED) {
        err = STANDIN_ERR_INVALIDATED;
    } else if (standin_is_implicit(stream)) {
        err = STANDIN_ERR_IMPLICIT;
    } else {
        err = standin_push_order(stream);
    }
    if (err != STANDIN_OK) {
        standin_cmd_free(cmd);
        return err;
    }
    return standin_push(cmd);
}

/* Wait until a stream has done a command; the device's error, if any */
int standin_wait(standin_stream_t *stream, uint64_t seq)
{
    int device = stream->device;

    ++stream->refs;
    while ((stream->done < seq) && !standin_devices[device].error) {
        pthread_cond_wait(&standin_done, &standin_lock);
    }
    standin_stream_put(stream);
    return standin_devices[device].error;
}

/* A thread's mode is what it lets captures forbid. A call that is forbidden
 * invalidates the capture. */
static int standin_capture_forbids(int thread_mode)
{
    int is_end = !standin_kind.is_hip ||
                 (standin_set.version >= STANDIN_HIP_6_2);
    int err    = STANDIN_OK;
    standin_stream_t *stream;
    int mode;

    for (stream = standin_streams; stream != NULL; stream = stream->next) {
        mode = (stream->capture_owner == standin_thread_number()) ?
               STANDIN_MODE_THREAD : STANDIN_MODE_GLOBAL;
        if ((stream->capture == STANDIN_CAPTURE_ACTIVE) &&
            (stream->capture_mode <= mode) && (thread_mode <= mode)) {
            stream->capture = is_end ? STANDIN_CAPTURE_INVALIDATED :
                                       STANDIN_CAPTURE_ACTIVE;
            err             = STANDIN_ERR_CAPTURE;
        }
    }
    return err;
}

int standin_capture_check(void)
{
    return standin_capture_forbids(standin_mode);
}

/* The same for a call with a stream. HIP knows such calls from 5.6 on, and the
 * thread's mode from 6.1 on; of a default stream they are none. */
static int standin_capture_check_stream(const standin_stream_t *stream)
{
    int version = standin_set.version;

    if (standin_kind.is_hip && ((version < STANDIN_HIP_5_6) ||
                                (stream->kind == STANDIN_STREAM_LEGACY))) {
        return STANDIN_OK;
    }
    return (standin_kind.is_hip && (version < STANDIN_HIP_6_1)) ?
           standin_capture_forbids(STANDIN_MODE_GLOBAL) :
           standin_capture_check();
}

/* A call that a stream under capture does not take, nor another one's */
static int standin_uncaptured(standin_stream_t *stream)
{
    if (stream->capture == STANDIN_CAPTURE_NONE) {
        return standin_capture_check_stream(stream);
    }
    stream->capture = STANDIN_CAPTURE_INVALIDATED;
    return STANDIN_ERR_CAPTURE;
}

int standin_stream_query(void *handle)
{
    standin_stream_t *stream;
    int err;

    STANDIN_TRY(standin_enter_stream(handle, &stream));
    err = standin_uncaptured(stream);
    if ((err == STANDIN_OK) && (stream->done < stream->enqueued)) {
        err = STANDIN_ERR_NOT_READY;
    }
    return standin_leave(err);
}

int standin_stream_sync(void *handle)
{
    standin_stream_t *stream;
    int err;

    STANDIN_TRY(standin_enter_stream(handle, &stream));
    err = standin_uncaptured(stream);
    if (err == STANDIN_OK) {
        err = standin_wait(stream, stream->enqueued);
    }
    return standin_leave(err);
}

#define STANDIN_STREAM_TELL(_field, _type) \
    int standin_stream_##_field(void *handle, _type *value_p) \
    { \
        standin_stream_t *stream; \
        int err = standin_enter_stream(handle, &stream); \
        \
        if (err == STANDIN_OK) { \
            *value_p = stream->_field; \
            err      = standin_leave(STANDIN_OK); \
        } \
        return err; \
    }

STANDIN_STREAM_TELL(ctx, void*)
STANDIN_STREAM_TELL(device, int)
STANDIN_STREAM_TELL(priority, int)
STANDIN_STREAM_TELL(capture, int)

int standin_stream_idle(int device, const standin_ctx_t *ctx)
{
    standin_stream_t *stream;
    struct {
        standin_stream_t *stream;
        uint64_t         seq;
    } *marks;
    size_t count = 0;
    size_t i;

    for (stream = standin_streams; stream != NULL; stream = stream->next) {
        ++count;
    }
    marks = calloc(count + 1, sizeof(*marks));
    if (marks == NULL) {
        return STANDIN_ERR_NO_MEMORY;
    }
    count = 0;
    for (stream = standin_streams; stream != NULL; stream = stream->next) {
        if ((stream->device == device) &&
            ((ctx == NULL) || (stream->ctx == ctx))) {
            ++stream->refs;
            marks[count].stream = stream;
            marks[count].seq    = stream->enqueued;
            ++count;
        }
    }
    for (i = 0; i < count; ++i) {
        (void)standin_wait(marks[i].stream, marks[i].seq);
        standin_stream_put(marks[i].stream);
    }
    free(marks);
    return standin_devices[device].error;
}

int standin_ctx_sync(void)
{
    standin_stream_t *stream;
    standin_ctx_t *ctx;

    STANDIN_TRY(standin_enter_ctx(&ctx));
    for (stream = standin_streams; stream != NULL; stream = stream->next) {
        if ((stream->ctx == ctx) &&
            (standin_uncaptured(stream) != STANDIN_OK)) {
            return standin_leave(STANDIN_ERR_CAPTURE);
        }
    }
    return standin_leave(standin_stream_idle(ctx->device, ctx));
}

void standin_stream_end_ctx(standin_ctx_t *ctx)
{
    standin_stream_t *stream, *next_stream;

    for (stream = standin_streams; stream != NULL; stream = next_stream) {
        next_stream = stream->next;
        if (stream->ctx == ctx) {
            stream->is_dead = 1;
            standin_stream_remove(stream);
        }
    }
    standin_event_end_ctx(ctx);
    standin_stream_wake();
}

/* Capture */

int standin_capture_exchange(int *mode)
{
    int last = standin_mode;

    if ((*mode < STANDIN_MODE_GLOBAL) || (*mode > STANDIN_MODE_RELAXED)) {
        return STANDIN_ERR_INVALID;
    }
    standin_mode = *mode;
    *mode        = last;
    return STANDIN_OK;
}

int standin_capture_begin(void *handle, int mode)
{
    standin_stream_t *stream;
    int err = STANDIN_OK;

    STANDIN_TRY(standin_enter_stream(handle, &stream));
    if (stream->kind == STANDIN_STREAM_LEGACY) {
        err = STANDIN_ERR_CAPTURE;
    } else if (stream->capture != STANDIN_CAPTURE_NONE) {
        err = STANDIN_ERR_STATE;
    } else {
        stream->capture       = STANDIN_CAPTURE_ACTIVE;
        stream->capture_mode  = mode;
        stream->capture_owner = standin_thread_number();
        stream->nodes         = 0;
    }
    return standin_leave(err);
}

int standin_capture_end(void *handle, void **graph)
{
    standin_graph_t *made = NULL;
    standin_stream_t *stream;
    int err;

    STANDIN_TRY(standin_enter_stream(handle, &stream));
    if (stream->capture == STANDIN_CAPTURE_NONE) {
        return standin_leave(STANDIN_ERR_UNMATCHED);
    }
    if (stream->capture == STANDIN_CAPTURE_INVALIDATED) {
        err = STANDIN_ERR_INVALIDATED;
    } else {
        made = calloc(1, sizeof(*made));
        err  = (made != NULL) ? STANDIN_OK : STANDIN_ERR_NO_MEMORY;
    }
    if (made != NULL) {
        made->nodes = stream->nodes;
    }
    stream->capture = STANDIN_CAPTURE_NONE;
    *graph          = made;
    return standin_leave(err);
}
