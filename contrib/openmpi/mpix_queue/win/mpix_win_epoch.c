/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_win_epoch.c - epochs of streams.
 *
 *   origin                                     target
 *   start: remembers the group                 post_stream: signal n to the
 *   put, get ...: remembered                                posted words of
 *                                                           its origins
 *   complete_stream:
 *     one wait for the signals of all targets
 *     puts, gets; the last one to a target
 *       with signal m to its completed word    wait_stream: one wait for those
 *     quiet                                                 of all origins
 *
 * An access of several runs of bytes is several operations; the signal is then
 * strict, as are accumulations behind others to the target, which MPI orders.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#define MPIX_WIN_MPI_NAMES
#include "mpix_win_object.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "coll/mpix_coll_op.h"
#include "mpix_win.h"
#include "request/mpix_typemap.h"

#include <ucs_gstream_memory.h>
#include <ucs/sys/math.h>

#include <stdlib.h>
#include <string.h>


/* An access as MPI has it. */
typedef struct mpix_win_access {
    const char   *func;
    mpix_win_t   *win;
    int          type;  /* Of mpix_win_op_t */
    MPI_Op       op;    /* Of an accumulation; else MPI_OP_NULL */
    void         *buf;
    int          count;
    MPI_Datatype datatype;
    int          rank;
    MPI_Aint     disp;
    int          target_count;
    MPI_Datatype target_datatype;
} mpix_win_access_t;

/* The bytes of both sides while the one side's are gone through. */
typedef struct mpix_win_runs {
    const mpix_win_access_t *access;
    mpix_win_op_t           op;      /* What the next one is made of */
    mpix_win_list_t         runs;    /* Of the target: mpix_win_run_t */
    size_t                  next;    /* Of these */
    size_t                  offset;  /* In that */
    int64_t                 base;    /* Of the access in the target's window */
    ptrdiff_t               first;   /* Of the bytes here */
    ptrdiff_t               last;    /* Behind them */
    int                     is_apart; /* Each run here is registered alone */
    int                     rc;
} mpix_win_runs_t;

typedef struct mpix_win_run {
    uint64_t offset; /* In the window */
    size_t   length;
} mpix_win_run_t;


/* Gets a window that has a part for streams. Returns an MPI code, which was
 * raised. */
static int mpix_win_get(const char *func, MPI_Win handle, mpix_win_t **win_p)
{
    int rc = mpix_win_find(handle, win_p);

    if (rc != MPI_SUCCESS) {
        return rc;
    }
    if (*win_p == NULL) {
        rc = mpix_fail(func, MPI_ERR_UNSUPPORTED_OPERATION,
                       "the window was not made by MPI_Win_create or "
                       "MPI_Win_allocate of source that includes mpix_win.h, "
                       "as ucx-st-mpicc --api hpe does");
    } else if ((*win_p)->reason[0] != '\0') {
        rc = mpix_fail(func, MPI_ERR_UNSUPPORTED_OPERATION,
                       "streams cannot access the window: %s",
                       (*win_p)->reason);
    }
    return mpix_raise_win(handle, rc);
}

/* The ranks of a group in a window, with their keys. Returns an MPI code that
 * is not raised. */
static int mpix_win_get_ranks(const char *func, mpix_win_t *win,
                              MPI_Group group, mpix_win_list_t *list)
{
    int *from = NULL;
    MPI_Group all;
    int *ranks;
    int i, count, rc;

    list->count = 0;
    if (group == MPI_GROUP_NULL) {
        return mpix_fail(func, MPI_ERR_GROUP, "the group is MPI_GROUP_NULL");
    }
    rc = PMPI_Group_size(group, &count);
    if (rc != MPI_SUCCESS) {
        return rc; /* Raised on MPI_COMM_WORLD, too */
    }
    from = malloc((count + 1) * sizeof(*from));
    if ((from == NULL) || !mpix_win_list_reserve(list, count, sizeof(*from))) {
        free(from);
        return mpix_fail(func, MPI_ERR_NO_MEM, "no memory for a group");
    }

    for (i = 0; i < count; ++i) {
        from[i] = i;
    }
    ranks = list->items;
    PMPI_Win_get_group(win->handle, &all);
    rc = PMPI_Group_translate_ranks(group, count, from, all, ranks);
    PMPI_Group_free(&all);
    free(from);
    for (i = 0; (i < count) && (rc == MPI_SUCCESS); ++i) {
        rc = (ranks[i] == MPI_UNDEFINED) ?
                     mpix_fail(func, MPI_ERR_GROUP, "rank %d of the group is "
                               "not in the window's", i) :
                     mpix_win_connect(func, win, ranks[i]);
    }
    list->count = (rc == MPI_SUCCESS) ? count : 0;
    return rc;
}

/* What a call returns whose commands ended with this status. After a failure a
 * process of the list that is gone is named: its keys cannot be unpacked any
 * more. */
static int mpix_win_enqueued(const char *func, mpix_win_t *win,
                             const mpix_win_list_t *list, ucs_status_t status)
{
    const int *ranks = list->items;
    const mpix_win_part_t *part;
    ucs_status_t gone = UCS_OK;
    ucp_st_rkey_h key;
    size_t i;

    if (status == UCS_OK) {
        return MPI_SUCCESS;
    }
    for (i = 0; i < list->count; ++i) {
        part = win->ranks[ranks[i]].part;
        gone = ucp_st_rkey_unpack(win->ranks[ranks[i]].peer,
                                  (const char*)(part + 1) + part->key_length,
                                  part->words_length, &key);
        if (gone != UCS_OK) {
            return mpix_raise_win(win->handle,
                                  mpix_fail(func, MPI_ERR_OTHER,
                                            "rank %d of the window is gone: "
                                            "%s", ranks[i],
                                            ucs_status_string(gone)));
        }
        (void)ucp_st_rkey_destroy(key);
    }
    return mpix_raise_win(win->handle,
                          mpix_fail(func, MPI_ERR_OTHER, "the stream, or an "
                                    "operation on it, has failed: %s",
                                    ucs_status_string(status)));
}

/* Enqueues an operation with a signal to a word of its rank. */
static ucs_status_t mpix_win_signal(struct mpix_queue *queue,
                                    const mpix_win_rank_t *target,
                                    const ucp_st_rma_params_t *params,
                                    size_t word, uint64_t value)
{
    const ucp_st_signal_params_t signal = {
        .field_mask = UCP_ST_SIGNAL_PARAM_FIELD_RKEY |
                      UCP_ST_SIGNAL_PARAM_FIELD_OFFSET |
                      UCP_ST_SIGNAL_PARAM_FIELD_VALUE,
        .rkey       = target->words,
        .offset     = word * sizeof(uint64_t),
        .value      = value
    };

    return ucp_st_enqueue_put_signal(queue->st_queue, params, &signal);
}

/* Enqueues the wait for words that ranks write, from 'first' on. */
static ucs_status_t mpix_win_wait(mpix_win_t *win, struct mpix_queue *queue,
                                  const mpix_win_list_t *list, size_t first)
{
    ucp_st_wait_signal_params_t *waits         = win->waits.items;
    const ucp_st_wait_signal_params_t **places = win->places.items;
    const int *ranks                           = list->items;
    const mpix_win_rank_t *rank;
    size_t i;

    for (i = 0; i < list->count; ++i) {
        rank     = &win->ranks[ranks[i]];
        waits[i] = (ucp_st_wait_signal_params_t){
            .field_mask = UCP_ST_WAIT_SIGNAL_PARAM_FIELD_MEMH |
                          UCP_ST_WAIT_SIGNAL_PARAM_FIELD_OFFSET |
                          UCP_ST_WAIT_SIGNAL_PARAM_FIELD_VALUE |
                          UCP_ST_WAIT_SIGNAL_PARAM_FIELD_PEER |
                          UCP_ST_WAIT_SIGNAL_PARAM_FIELD_NAME |
                          UCP_ST_WAIT_SIGNAL_PARAM_FIELD_FLAGS,
            .memh       = win->words_memh,
            .offset     = (first + ranks[i]) * sizeof(uint64_t),
            .value      = (first == 0) ? rank->starts : rank->posts,
            .peer       = rank->peer,
            .name       = rank->names[first > 0],
            .flags      = UCP_ST_WAIT_SIGNAL_FLAG_OVERWRITE
        };
        places[i] = &waits[i];
    }
    return ucp_st_enqueue_wait_signals(queue->st_queue, places, list->count);
}

/* What the calls for a stream begin with: the queue, and room for waits.
 * Returns an MPI code, which was raised. */
static int mpix_win_get_stream(const char *func, mpix_win_t *win, void *stream,
                               size_t count, struct mpix_queue **queue_p)
{
    if (!mpix_win_list_reserve(&win->waits, count,
                               sizeof(ucp_st_wait_signal_params_t)) ||
        !mpix_win_list_reserve(&win->places, count, sizeof(void*))) {
        return mpix_raise_win(win->handle, mpix_fail(func, MPI_ERR_NO_MEM,
                                                     "no memory"));
    }
    mpix_win_put_buffers(win);
    return mpix_raise_win(win->handle, mpix_win_get_queue(func, win, stream,
                                                          queue_p));
}

int MPIX_Win_post_stream(MPI_Group group, MPI_Win handle, void *stream)
{
    static const char func[]         = "MPIX_Win_post_stream";
    const ucp_st_rma_params_t params = {.field_mask = 0};
    ucs_status_t status              = UCS_OK;
    struct mpix_queue *queue;
    mpix_win_rank_t *rank;
    mpix_win_t *win;
    size_t i;
    int rc;

    rc = mpix_win_get(func, handle, &win);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    rc = ((win->exposure != MPIX_WIN_NONE) ||
          (win->access == MPIX_WIN_FENCE)) ?
                 mpix_fail(func, MPI_ERR_RMA_SYNC, "the window is exposed "
                           "already") :
                 mpix_win_get_ranks(func, win, group, &win->origins);
    if (rc != MPI_SUCCESS) {
        return mpix_raise_win(handle, rc);
    }
    rc = mpix_win_get_stream(func, win, stream, win->origins.count, &queue);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    for (i = 0; (i < win->origins.count) && (status == UCS_OK); ++i) {
        rank   = &win->ranks[((int*)win->origins.items)[i]];
        status = mpix_win_signal(queue, rank, &params, win->rank,
                                 ++rank->posts);
    }
    if (status == UCS_OK) {
        win->exposure = MPIX_WIN_STREAM;
    }
    return mpix_win_enqueued(func, win, &win->origins, status);
}

int MPIX_Win_wait_stream(MPI_Win handle, void *stream)
{
    static const char func[] = "MPIX_Win_wait_stream";
    struct mpix_queue *queue;
    ucs_status_t status;
    mpix_win_t *win;
    int rc;

    rc = mpix_win_get(func, handle, &win);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    if (win->exposure != MPIX_WIN_STREAM) {
        return mpix_raise_win(handle,
                              mpix_fail(func, MPI_ERR_RMA_SYNC, "the window is "
                                        "not exposed by a stream"));
    }
    rc = mpix_win_get_stream(func, win, stream, win->origins.count, &queue);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    win->exposure = MPIX_WIN_NONE;
    status        = mpix_win_wait(win, queue, &win->origins, win->num_ranks);
    return mpix_win_enqueued(func, win, &win->origins, status);
}

static int mpix_win_start(const char *func, mpix_win_t *win, MPI_Group group,
                          int mode)
{
    const int *ranks;
    size_t i;
    int rc;

    if ((win->access != MPIX_WIN_NONE) || (win->num_locks > 0)) {
        return mpix_fail(func, MPI_ERR_RMA_SYNC,
                         "an access epoch is open already");
    }
    if (mode & ~(MPIX_MODE_STREAM | MPI_MODE_NOCHECK)) {
        return mpix_fail(func, MPI_ERR_ASSERT, "unknown bits in %d", mode);
    }
    rc = mpix_win_get_ranks(func, win, group, &win->targets);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    ranks = win->targets.items;
    for (i = 0; i < win->targets.count; ++i) {
        win->ranks[ranks[i]].is_target       = 1;
        win->ranks[ranks[i]].num_ops         = 0;
        win->ranks[ranks[i]].has_accumulated = 0;
    }
    win->ops.count = 0;
    win->access    = MPIX_WIN_STREAM;
    return MPI_SUCCESS;
}

int MPIX_Win_start(MPI_Group group, int mode, MPI_Win handle)
{
    static const char func[] = "MPI_Win_start";
    mpix_win_t *win;
    int rc;

    if (mode & MPIX_MODE_STREAM) {
        rc = mpix_win_get(func, handle, &win);
        return (rc == MPI_SUCCESS) ?
                       mpix_raise_win(handle, mpix_win_start(func, win, group,
                                                             mode)) :
                       rc;
    }

    rc = mpix_win_find(handle, &win);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    if ((win != NULL) && (win->access == MPIX_WIN_STREAM)) {
        return mpix_raise_win(handle,
                              mpix_fail(func, MPI_ERR_RMA_SYNC,
                                        "an access epoch of a stream is open"));
    }
    rc = MPI_Win_start(group, mode, handle);
    if ((rc == MPI_SUCCESS) && (win != NULL)) {
        win->access = MPIX_WIN_PLAIN;
    }
    return rc;
}

/* Enqueues one operation; the last one to a target brings the signal, or it
 * comes behind that. */
static ucs_status_t mpix_win_run_op(mpix_win_t *win, struct mpix_queue *queue,
                                    mpix_win_op_t *op)
{
    const ucp_st_rma_params_t signal = {
        .field_mask = UCP_ST_RMA_PARAM_FIELD_FLAGS,
        .flags      = UCP_ST_RMA_FLAG_STRICT
    };
    mpix_win_rank_t *target          = op->target;
    const size_t word                = (size_t)win->num_ranks + win->rank;
    const int is_last                = (--target->num_ops == 0);
    ucs_status_t status;

    op->params.field_mask |= UCP_ST_RMA_PARAM_FIELD_RKEY;
    op->params.rkey        = target->rkey;
    op->params.flags       = op->is_strict ? UCP_ST_RMA_FLAG_STRICT : 0;
    switch (op->type) {
    case MPIX_WIN_PUT:
        if (is_last) {
            /* The signal comes behind its own put, and with it behind others */
            op->params.flags |= target->has_others ? UCP_ST_RMA_FLAG_STRICT : 0;
            return mpix_win_signal(queue, target, &op->params, word,
                                   target->starts);
        }
        status = ucp_st_enqueue_put(queue->st_queue, &op->params);
        break;
    case MPIX_WIN_GET:
        status = ucp_st_enqueue_get(queue->st_queue, &op->params);
        break;
    default:
        status = ucp_st_enqueue_add(queue->st_queue, &op->params, op->number);
        break;
    }
    target->has_others = 1;
    return ((status == UCS_OK) && is_last) ?
                   mpix_win_signal(queue, target, &signal, word,
                                   target->starts) :
                   status;
}

/* Enqueues an epoch. */
static ucs_status_t mpix_win_complete(mpix_win_t *win, struct mpix_queue *queue)
{
    const ucp_st_rma_params_t none = {.field_mask = 0};
    const size_t word              = (size_t)win->num_ranks + win->rank;
    mpix_win_op_t *ops             = win->ops.items;
    const int *ranks               = win->targets.items;
    mpix_win_rank_t *target;
    ucs_status_t status;
    size_t i;

    for (i = 0; i < win->targets.count; ++i) {
        target             = &win->ranks[ranks[i]];
        target->is_target  = 0;
        target->has_others = 0;
        ++target->starts;
    }
    status = mpix_win_wait(win, queue, &win->targets, 0);
    for (i = 0; (i < win->targets.count) && (status == UCS_OK); ++i) {
        target = &win->ranks[ranks[i]];
        if (target->num_ops == 0) {
            status = mpix_win_signal(queue, target, &none, word,
                                     target->starts);
        }
    }
    for (i = 0; (i < win->ops.count) && (status == UCS_OK); ++i) {
        status = mpix_win_run_op(win, queue, &ops[i]);
    }
    return (status == UCS_OK) ? ucp_st_enqueue_quiet(queue->st_queue) : status;
}

int MPIX_Win_complete_stream(MPI_Win handle, void *stream)
{
    static const char func[] = "MPIX_Win_complete_stream";
    struct mpix_queue *queue;
    ucs_status_t status;
    mpix_win_t *win;
    int rc;

    rc = mpix_win_get(func, handle, &win);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    if (win->access != MPIX_WIN_STREAM) {
        return mpix_raise_win(handle,
                              mpix_fail(func, MPI_ERR_RMA_SYNC, "no access "
                                        "epoch of MPIX_MODE_STREAM is open"));
    }
    rc = mpix_win_get_stream(func, win, stream, win->targets.count, &queue);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    win->access       = MPIX_WIN_NONE;
    status            = mpix_win_complete(win, queue);
    win->ops.count    = 0;
    win->num_enqueued = win->buffers.count;
    return mpix_win_enqueued(func, win, &win->targets, status);
}

/* Accesses */

/* Remembers a run of bytes of the target, if it is in the window. */
static int mpix_win_add_target_run(void *arg, ptrdiff_t disp, size_t length)
{
    mpix_win_runs_t *runs           = arg;
    const mpix_win_access_t *access = runs->access;
    const uint64_t size             = runs->op.target->part->size;
    mpix_win_run_t *items;
    int64_t offset;

    if (__builtin_add_overflow(runs->base, (int64_t)disp, &offset) ||
        (offset < 0) || ((uint64_t)offset > size) ||
        (length > (size - (uint64_t)offset))) {
        runs->rc = mpix_fail(access->func, MPI_ERR_RMA_RANGE,
                             "%zu bytes at displacement %ld are not inside the "
                             "window of rank %d, of %lu bytes", length,
                             (long)access->disp, access->rank, size);
        return 1;
    }
    if (!mpix_win_list_reserve(&runs->runs, 1, sizeof(*items))) {
        runs->rc = mpix_fail(access->func, MPI_ERR_NO_MEM, "no memory");
        return 1;
    }
    items                     = runs->runs.items;
    items[runs->runs.count++] = (mpix_win_run_t){(uint64_t)offset, length};
    return 0;
}

/* Finds out from where to where the bytes here lie. */
static int mpix_win_find_span(void *arg, ptrdiff_t disp, size_t length)
{
    mpix_win_runs_t *runs = arg;

    runs->first = ucs_min(runs->first, disp);
    runs->last  = ucs_max(runs->last, disp + (ptrdiff_t)length);
    return 0;
}

/* Registers bytes here for the next operations. Returns an MPI code that is not
 * raised. */
static int mpix_win_register(mpix_win_runs_t *runs, ptrdiff_t disp,
                             size_t length)
{
    const mpix_win_access_t *access = runs->access;
    mpix_win_t *win                 = access->win;
    void *address                   = (char*)access->buf + disp;
    ucs_status_t status;
    ucp_st_mem_h memh;

    if (!mpix_win_list_reserve(&win->buffers, 1, sizeof(memh))) {
        return mpix_fail(access->func, MPI_ERR_NO_MEM, "no memory");
    }
    status = ucp_st_mem_reg(mpix_global.st_worker, address, length, &memh);
    if (status != UCS_OK) {
        return mpix_fail(access->func, MPI_ERR_BUFFER,
                         "memory at %p cannot be registered: %s", address,
                         ucs_status_string(status));
    }
    ((ucp_st_mem_h*)win->buffers.items)[win->buffers.count++] = memh;
    runs->op.params.memh                                      = memh;
    return MPI_SUCCESS;
}

/* Makes operations of a run of bytes here: the target's next ones are as long
 * as all of these. */
static int mpix_win_add_ops(void *arg, ptrdiff_t disp, size_t length)
{
    mpix_win_runs_t *runs = arg;
    mpix_win_t *win       = runs->access->win;
    size_t offset         = runs->is_apart ? 0 : (size_t)(disp - runs->first);
    const mpix_win_run_t *run;
    mpix_win_op_t *op;
    size_t part;

    if (runs->is_apart) {
        runs->rc = mpix_win_register(runs, disp, length);
        if (runs->rc != MPI_SUCCESS) {
            return 1;
        }
    }
    while (length > 0) {
        if (!mpix_win_list_reserve(&win->ops, 1, sizeof(*op))) {
            runs->rc = mpix_fail(runs->access->func, MPI_ERR_NO_MEM,
                                 "no memory for an access");
            return 1;
        }
        run  = (const mpix_win_run_t*)runs->runs.items + runs->next;
        part = ucs_min(length, run->length - runs->offset);
        op   = (mpix_win_op_t*)win->ops.items + win->ops.count++;
        *op  = runs->op;
        op->params.offset        = offset;
        op->params.length        = part;
        op->params.remote_offset = run->offset + runs->offset;
        ++op->target->num_ops;

        offset       += part;
        length       -= part;
        runs->offset += part;
        if (runs->offset == run->length) {
            runs->offset = 0;
            ++runs->next;
        }
    }
    return 0;
}

/* Memory of a device needs the card: what complete_stream would be refused is
 * refused here. */
static int mpix_win_check_memory(const mpix_win_runs_t *runs)
{
    const mpix_win_access_t *access = runs->access;
    void *address                   = (char*)access->buf + runs->first;
    ucp_st_rkey_attr_t attr         = {.lane = UCP_ST_LANE_HOST};
    ucs_gstream_memory_attr_t memory;

    (void)ucs_gstream_memory_query(address, &memory);
    if (memory.is_hosts) {
        return MPI_SUCCESS;
    }
    if (runs->op.type != MPIX_WIN_ADD) {
        (void)ucp_st_rkey_query(runs->op.target->rkey, &attr);
    }
    return (attr.lane == UCP_ST_LANE_TRIG) ?
                   MPI_SUCCESS :
                   mpix_fail(access->func, MPI_ERR_BUFFER,
                             "memory at %p is a device's, and the card does "
                             "not reach the window of rank %d", address,
                             access->rank);
}

/* Makes the operations of an access. Returns an MPI code that is not raised. */
static int mpix_win_add_access(mpix_win_runs_t *runs,
                               const mpix_typemap_t *local,
                               const mpix_typemap_t *remote)
{
    const mpix_win_access_t *access = runs->access;
    mpix_win_t *win                 = access->win;
    mpix_win_rank_t *target         = runs->op.target;
    const size_t num_ops            = win->ops.count;
    const size_t num_target_ops     = target->num_ops;
    const size_t size               = mpix_typemap_size(local);

    (void)mpix_typemap_walk(remote, mpix_win_add_target_run, runs);
    if ((runs->rc != MPI_SUCCESS) || (runs->runs.count == 0)) {
        return runs->rc;
    }
    runs->first = PTRDIFF_MAX;
    runs->last  = PTRDIFF_MIN;
    (void)mpix_typemap_walk(local, mpix_win_find_span, runs);
    /* What lies between bytes may be no memory */
    runs->is_apart = ((size_t)(runs->last - runs->first) > (2 * size));
    runs->rc       = mpix_win_check_memory(runs);
    if ((runs->rc == MPI_SUCCESS) && !runs->is_apart) {
        runs->rc = mpix_win_register(runs, runs->first,
                                     (size_t)(runs->last - runs->first));
    }
    if (runs->rc != MPI_SUCCESS) {
        return runs->rc;
    }

    runs->op.params.field_mask = UCP_ST_RMA_PARAM_FIELD_MEMH |
                                 UCP_ST_RMA_PARAM_FIELD_OFFSET |
                                 UCP_ST_RMA_PARAM_FIELD_LENGTH |
                                 UCP_ST_RMA_PARAM_FIELD_REMOTE_OFFSET |
                                 UCP_ST_RMA_PARAM_FIELD_FLAGS;
    (void)mpix_typemap_walk(local, mpix_win_add_ops, runs);
    if (runs->rc != MPI_SUCCESS) {
        win->ops.count  = num_ops;
        target->num_ops = num_target_ops;
    }
    return runs->rc;
}

/* What an accumulation adds or stores. */
static int mpix_win_check_numbers(const mpix_win_access_t *access,
                                  mpix_win_op_t *op)
{
    ucp_st_number_t theirs;

    if ((access->op != MPI_SUM) && (access->op != MPI_REPLACE)) {
        return mpix_fail(access->func, MPI_ERR_OP, "streams accumulate by "
                         "MPI_SUM and MPI_REPLACE alone");
    }
    if (!mpix_coll_op_number(access->datatype, &op->number) ||
        !mpix_coll_op_number(access->target_datatype, &theirs) ||
        (op->number != theirs)) {
        return mpix_fail(access->func, MPI_ERR_TYPE, "streams accumulate "
                         "integers, float or double, of one type on both "
                         "sides");
    }
    if (access->op == MPI_REPLACE) {
        op->type = MPIX_WIN_PUT;
    } else if (op->target->part->is_device) {
        return mpix_fail(access->func, MPI_ERR_UNSUPPORTED_OPERATION,
                         "MPI_SUM on the memory of rank %d, which is a "
                         "device's", access->rank);
    }
    op->is_strict               = op->target->has_accumulated;
    op->target->has_accumulated = 1;
    return MPI_SUCCESS;
}

/* Remembers an access. Returns an MPI code that is not raised. */
static int mpix_win_remember(const mpix_win_access_t *access)
{
    mpix_win_t *win        = access->win;
    mpix_typemap_t *local  = NULL;
    mpix_typemap_t *remote = NULL;
    mpix_win_runs_t runs   = {
        .access = access, .op = {.type = access->type}
    };
    int rc;

    if ((access->rank < 0) || (access->rank >= win->num_ranks) ||
        !win->ranks[access->rank].is_target) {
        return mpix_fail(access->func, MPI_ERR_RANK, "rank %d is not in the "
                         "group of the epoch", access->rank);
    }
    if ((access->count < 0) || (access->target_count < 0)) {
        return mpix_fail(access->func, MPI_ERR_COUNT, "%d and %d elements",
                         access->count, access->target_count);
    }
    if ((access->datatype == MPI_DATATYPE_NULL) ||
        (access->target_datatype == MPI_DATATYPE_NULL)) {
        return mpix_fail(access->func, MPI_ERR_TYPE, "MPI_DATATYPE_NULL");
    }

    runs.op.target = &win->ranks[access->rank];
    if (__builtin_mul_overflow((int64_t)access->disp,
                               (int64_t)runs.op.target->part->disp_unit,
                               &runs.base)) {
        return mpix_fail(access->func, MPI_ERR_DISP, "displacement %ld",
                         (long)access->disp);
    }
    if (access->type == MPIX_WIN_ADD) {
        rc = mpix_win_check_numbers(access, &runs.op);
        if (rc != MPI_SUCCESS) {
            return rc;
        }
    }

    rc = mpix_typemap_create(access->count, access->datatype, &local);
    if (rc == MPI_SUCCESS) {
        rc = mpix_typemap_create(access->target_count, access->target_datatype,
                                 &remote);
    }
    if (rc != MPI_SUCCESS) {
        rc = mpix_fail(access->func, rc, "a datatype that MPI tells nothing "
                       "about, or no memory");
    } else if (mpix_typemap_size(local) != mpix_typemap_size(remote)) {
        rc = mpix_fail(access->func, MPI_ERR_TYPE, "%zu bytes here, and %zu at "
                       "rank %d", mpix_typemap_size(local),
                       mpix_typemap_size(remote), access->rank);
    } else {
        rc = mpix_win_add_access(&runs, local, remote);
    }
    free(runs.runs.items);
    if (local != NULL) {
        mpix_typemap_destroy(local);
    }
    if (remote != NULL) {
        mpix_typemap_destroy(remote);
    }
    return rc;
}

/* Whether an access is a stream's: then it is remembered, and *rc_p is what the
 * call returns. Else it is MPI's. */
static int mpix_win_is_streams(mpix_win_access_t *access, MPI_Win handle,
                               int *rc_p)
{
    *rc_p = mpix_win_find(handle, &access->win);
    if (*rc_p != MPI_SUCCESS) {
        return 1;
    }
    if ((access->win == NULL) || (access->win->access != MPIX_WIN_STREAM)) {
        return 0;
    }
    *rc_p = (access->rank == MPI_PROC_NULL) ?
                    MPI_SUCCESS :
                    mpix_raise_win(handle, mpix_win_remember(access));
    return 1;
}

int MPIX_Win_put(const void *buf, int count, MPI_Datatype datatype, int target,
                 MPI_Aint disp, int target_count, MPI_Datatype target_datatype,
                 MPI_Win win)
{
    mpix_win_access_t access = {
        "MPI_Put", NULL, MPIX_WIN_PUT, MPI_OP_NULL, (void*)buf, count,
        datatype, target, disp, target_count, target_datatype
    };
    int rc;

    return mpix_win_is_streams(&access, win, &rc) ?
                   rc :
                   mpix_win_accessed(access.win,
                                     MPI_Put(buf, count, datatype, target,
                                             disp, target_count,
                                             target_datatype, win));
}

int MPIX_Win_get(void *buf, int count, MPI_Datatype datatype, int target,
                 MPI_Aint disp, int target_count, MPI_Datatype target_datatype,
                 MPI_Win win)
{
    mpix_win_access_t access = {
        "MPI_Get", NULL, MPIX_WIN_GET, MPI_OP_NULL, buf, count, datatype,
        target, disp, target_count, target_datatype
    };
    int rc;

    return mpix_win_is_streams(&access, win, &rc) ?
                   rc :
                   mpix_win_accessed(access.win,
                                     MPI_Get(buf, count, datatype, target,
                                             disp, target_count,
                                             target_datatype, win));
}

int MPIX_Win_accumulate(const void *buf, int count, MPI_Datatype datatype,
                        int target, MPI_Aint disp, int target_count,
                        MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
    mpix_win_access_t access = {
        "MPI_Accumulate", NULL, MPIX_WIN_ADD, op, (void*)buf, count, datatype,
        target, disp, target_count, target_datatype
    };
    int rc;

    return mpix_win_is_streams(&access, win, &rc) ?
                   rc :
                   mpix_win_accessed(access.win,
                                     MPI_Accumulate(buf, count, datatype,
                                                    target, disp, target_count,
                                                    target_datatype, op, win));
}
