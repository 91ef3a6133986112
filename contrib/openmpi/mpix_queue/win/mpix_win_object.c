/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_win_object.c - how windows with a part for streams are made and freed.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#define MPIX_WIN_MPI_NAMES
#include "mpix_win_object.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "mpix_win.h"
#include "once/mpix_fifo.h"
#include "request/mpix_match.h"

#include <ucs_backoff.h>
#include <ucs_gstream_memory.h>

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* How long MPI_Win_free waits for a stream whose queue has failed, seconds */
#define MPIX_WIN_FAILED_TIME 5


/* All windows. Protected by the lock. */
static UCS_LIST_HEAD(mpix_wins);

/* Written by the first call that makes a window. */
static int mpix_win_keyval = MPI_KEYVAL_INVALID;


int mpix_win_list_reserve(mpix_win_list_t *list, size_t more, size_t size)
{
    size_t max = list->count + more;
    void *items;

    if (max <= list->max) {
        return 1;
    }
    max   = 2 * max;
    items = realloc(list->items, max * size);
    if (items == NULL) {
        return 0;
    }
    list->items = items;
    list->max   = max;
    return 1;
}

int mpix_win_get_queue(const char *func, mpix_win_t *win, void *stream,
                       struct mpix_queue **queue_p)
{
    mpix_stream_queue_t **entries = win->queues.items;
    mpix_stream_queue_t *entry;
    size_t i;
    int rc;

    for (i = 0; i < win->queues.count; ++i) {
        entry = entries[i];
        if (mpix_stream_queue_is(entry, stream)) {
            *queue_p = entry->queue;
            return MPI_SUCCESS;
        }
    }

    if (!mpix_win_list_reserve(&win->queues, 1, sizeof(entry))) {
        return mpix_fail(func, MPI_ERR_NO_MEM, "no memory");
    }
    rc = mpix_stream_queue_get(func, stream, &entry);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    ((mpix_stream_queue_t**)win->queues.items)[win->queues.count++] = entry;
    *queue_p = entry->queue;
    return MPI_SUCCESS;
}

/* Windows */

/* They are in the order in which streams have come to them, or nearly so: one
 * that is in use is the last to be looked at. */
void mpix_win_put_buffers(mpix_win_t *win)
{
    ucp_st_mem_h *memhs = win->buffers.items;
    size_t i            = 0;

    while ((i < win->num_enqueued) &&
           (ucp_st_mem_dereg(memhs[i]) != UCS_ERR_BUSY)) {
        ++i;
    }
    if (i > 0) {
        win->num_enqueued  -= i;
        win->buffers.count -= i;
        memmove(memhs, memhs + i, win->buffers.count * sizeof(*memhs));
    }
}

/* Gives a key back; 0 if it is in use. */
static int mpix_win_put_key(ucp_st_rkey_h *rkey)
{
    if ((*rkey != NULL) && (ucp_st_rkey_destroy(*rkey) == UCS_ERR_BUSY)) {
        return 0;
    }
    *rkey = NULL;
    return 1;
}

/* The same of own memory. */
static int mpix_win_put_memory(ucp_st_mem_h *memh)
{
    if ((*memh != NULL) && (ucp_st_mem_dereg(*memh) == UCS_ERR_BUSY)) {
        return 0;
    }
    *memh = NULL;
    return 1;
}

/* Gives back what a window has of the st worker. Returns 0 while streams have
 * epochs to run: what these name is in use. Once no stream waits for a word all
 * other processes have completed their epochs here, so that the memory may go
 * after that. */
static int mpix_win_close(mpix_win_t *win)
{
    int r;

    win->num_enqueued = win->buffers.count;
    mpix_win_put_buffers(win);
    if ((win->buffers.count > 0) || !mpix_win_put_memory(&win->words_memh)) {
        return 0;
    }
    for (r = 0; (win->ranks != NULL) && (r < win->num_ranks); ++r) {
        if (!mpix_win_put_key(&win->ranks[r].rkey) ||
            !mpix_win_put_key(&win->ranks[r].words)) {
            return 0;
        }
    }
    return mpix_win_put_memory(&win->memh);
}

/* Whether the queue of one of the window's streams has failed. */
static int mpix_win_has_failed(mpix_win_t *win)
{
    mpix_stream_queue_t **entries = win->queues.items;
    ucs_status_t status        = UCS_OK;
    size_t i;

    for (i = 0; (i < win->queues.count) && !UCS_STATUS_IS_ERR(status); ++i) {
        if (mpix_queue_is_serial(entries[i]->queue, entries[i]->serial)) {
            status = ucp_st_queue_query(entries[i]->queue->st_queue, NULL);
        }
    }
    return UCS_STATUS_IS_ERR(status);
}

/* Waits until the streams have run the window's epochs; of a queue that has
 * failed some seconds at most, as its stream may be lost. Returns 0 if they
 * have not. MPI goes on meanwhile. */
static int mpix_win_wait_closed(mpix_win_t *win)
{
    unsigned spins = 0;
    double since   = 0;

    while (!mpix_win_close(win)) {
        if (mpix_win_has_failed(win)) {
            since = (since == 0) ? mpix_now() : since;
            if ((mpix_now() - since) > MPIX_WIN_FAILED_TIME) {
                mpix_warn("a window whose stream has failed is not given back");
                return 0;
            }
        }
        mpix_match_progress_mpi();
        ucs_backoff(&spins);
    }
    return 1;
}

/* The object of a window that streams do not use any more. */
static void mpix_win_free(mpix_win_t *win)
{
    size_t i;

    mpix_lock();
    ucs_list_del(&win->list);
    mpix_unlock();
    for (i = 0; i < win->queues.count; ++i) {
        mpix_stream_queue_put(((mpix_stream_queue_t**)win->queues.items)[i]);
    }
    if (win->words != NULL) {
        ucp_st_mem_free(win->words);
    }
    free(win->parts);
    free(win->ranks);
    free(win->targets.items);
    free(win->origins.items);
    free(win->ops.items);
    free(win->buffers.items);
    free(win->waits.items);
    free(win->places.items);
    free(win->queues.items);
    free(win);
}

/* The application frees the window past this library. MPI is not done with
 * memory of MPIX_Win_allocate yet, which stays. */
static int mpix_win_deleted(MPI_Win handle, int keyval, void *value,
                            void *extra)
{
    mpix_win_t *win = value;

    if (!win->is_held &&
        (mpix_global_get_state() == MPIX_STATE_READY) &&
        mpix_win_wait_closed(win)) {
        mpix_win_free(win);
    }
    return MPI_SUCCESS;
}

int mpix_win_find(MPI_Win handle, mpix_win_t **win_p)
{
    int found = 0;
    int rc    = MPI_SUCCESS;

    *win_p = NULL;
    if (mpix_win_keyval != MPI_KEYVAL_INVALID) {
        rc = PMPI_Win_get_attr(handle, mpix_win_keyval, win_p, &found);
    }
    if (!found) {
        *win_p = NULL;
    }
    return rc;
}

/* Registers the own memory, and makes words. Fills in the part, behind which
 * the keys are in *keys_p, to be freed, of *length_p bytes; NULL, and the part
 * alone, on a failure. */
static void mpix_win_register(mpix_win_t *win, void *base,
                              mpix_win_part_t *part, char **keys_p,
                              int *length_p)
{
    size_t length = 2 * (size_t)win->num_ranks * sizeof(*win->words);
    void *key     = NULL;
    void *words   = NULL;
    size_t key_length   = 0;
    size_t words_length = 0;
    ucs_status_t status = UCS_OK;
    ucs_gstream_memory_attr_t memory;

    if (part->size > 0) {
        status = ucp_st_mem_reg(mpix_global.st_worker, base, part->size,
                                &win->memh);
        if (status == UCS_OK) {
            status = ucp_st_rkey_pack(win->memh, &key, &key_length);
        }
        (void)ucs_gstream_memory_query(base, &memory);
        part->is_device = !memory.is_hosts;
    }
    if (status == UCS_OK) {
        status = ucp_st_mem_alloc(length, (void**)&win->words);
    }
    if (status == UCS_OK) {
        memset(win->words, 0, length);
        status = ucp_st_mem_reg(mpix_global.st_worker, win->words, length,
                                &win->words_memh);
    }
    if (status == UCS_OK) {
        status = ucp_st_rkey_pack(win->words_memh, &words, &words_length);
    }
    if (status == UCS_OK) {
        *length_p += (int)(key_length + words_length);
        *length_p  = (*length_p + 7) & ~7; /* The next part is aligned */
        *keys_p    = calloc(1, *length_p);
        status     = (*keys_p == NULL) ? UCS_ERR_NO_MEMORY : UCS_OK;
    }
    if (status == UCS_OK) {
        part->key_length   = (uint32_t)key_length;
        part->words_length = (uint32_t)words_length;
        memcpy(*keys_p, part, sizeof(*part));
        if (key_length > 0) {
            memcpy(*keys_p + sizeof(*part), key, key_length);
        }
        memcpy(*keys_p + sizeof(*part) + key_length, words, words_length);
    } else {
        snprintf(part->text, sizeof(part->text),
                 "rank %d cannot register its memory for streams: %s",
                 win->rank, ucs_status_string(status));
        part->world_rank = -1;
        *length_p        = sizeof(*part);
    }
    ucp_st_rkey_buffer_release(key);
    ucp_st_rkey_buffer_release(words);
}

/* All processes tell their parts. MPI raises its own errors. */
static int mpix_win_gather(mpix_win_t *win, MPI_Comm comm, const char *mine,
                           int length)
{
    const size_t count = (size_t)win->num_ranks;
    int *lengths       = malloc(count * sizeof(*lengths));
    int *offsets       = malloc(count * sizeof(*offsets));
    int is_good        = (lengths != NULL) && (offsets != NULL);
    size_t total       = 0;
    int rc, r, is_all;

    /* One that has no memory must not leave the others in a collective */
    rc = PMPI_Allreduce(&is_good, &is_all, 1, MPI_INT, MPI_MIN, comm);
    if ((rc != MPI_SUCCESS) || !is_all) {
        snprintf(win->reason, sizeof(win->reason), "a rank has no memory");
        goto out;
    }

    rc = PMPI_Allgather(&length, 1, MPI_INT, lengths, 1, MPI_INT, comm);
    for (r = 0; (rc == MPI_SUCCESS) && (r < win->num_ranks); ++r) {
        offsets[r] = (int)total;
        total     += lengths[r];
    }
    win->ranks = calloc(count, sizeof(*win->ranks));
    win->parts = (total <= INT_MAX) ? malloc(total) : NULL;
    is_good    = (win->ranks != NULL) && (win->parts != NULL);
    if (rc == MPI_SUCCESS) {
        rc = PMPI_Allreduce(&is_good, &is_all, 1, MPI_INT, MPI_MIN, comm);
    }
    if ((rc == MPI_SUCCESS) && !is_all) {
        snprintf(win->reason, sizeof(win->reason), "a rank has no memory");
    } else if (rc == MPI_SUCCESS) {
        rc = PMPI_Allgatherv(mine, length, MPI_BYTE, win->parts, lengths,
                             offsets, MPI_BYTE, comm);
    }
    for (r = 0; (rc == MPI_SUCCESS) && is_all && (r < win->num_ranks); ++r) {
        win->ranks[r].part = (const mpix_win_part_t*)(win->parts + offsets[r]);
        if ((win->ranks[r].part->world_rank < 0) && (win->reason[0] == '\0')) {
            snprintf(win->reason, sizeof(win->reason), "%s",
                     win->ranks[r].part->text);
        }
    }

out:
    free(lengths);
    free(offsets);
    return rc;
}

/* Makes the window's part for streams, or finds out why there is none.
 * Collective. Returns an MPI code that is not raised, but by MPI. */
static int mpix_win_open(const char *func, mpix_win_t *win, void *base,
                         MPI_Aint size, int disp_unit, MPI_Comm comm)
{
    mpix_win_part_t part = {
        .size = (uint64_t)size, .disp_unit = (uint64_t)disp_unit
    };
    char *keys = NULL;
    int length = sizeof(part);
    char text[MPI_MAX_ERROR_STRING];
    int rc;

    rc = mpix_only_share(func, comm);
    if (rc != MPI_SUCCESS) { /* Of all ranks */
        PMPI_Error_string(rc, text, &length);
        snprintf(win->reason, sizeof(win->reason), "%.*s",
                 (int)sizeof(win->reason) - 1, text);
        return MPI_SUCCESS;
    }

    part.world_rank = mpix_global_world_rank();
    mpix_win_register(win, base, &part, &keys, &length);
    rc = mpix_win_gather(win, comm, (keys != NULL) ? keys : (char*)&part,
                         length);
    free(keys);
    return rc;
}

/* Names the ranks that streams of a window wait for. */
static void mpix_win_warn(mpix_win_t *win)
{
    const mpix_win_rank_t *rank;
    const uint64_t *posted, *completed;
    int r;

    if (win->reason[0] != '\0') {
        return; /* No stream came here */
    }
    for (r = 0; r < win->num_ranks; ++r) {
        rank      = &win->ranks[r];
        posted    = &win->words[r];
        completed = &win->words[win->num_ranks + r];
        if (__atomic_load_n(posted, __ATOMIC_RELAXED) < rank->starts) {
            mpix_warn("a stream waits for MPIX_Win_post_stream of rank %d of a "
                      "window at MPI_Finalize", r);
        }
        if (__atomic_load_n(completed, __ATOMIC_RELAXED) < rank->posts) {
            mpix_warn("%s MPIX_Win_complete_stream of rank %d of a window at "
                      "MPI_Finalize",
                      (win->exposure == MPIX_WIN_STREAM) ?
                              "an epoch is open, and was to end with" :
                              "a stream waits for", r);
        }
    }
    if (win->access == MPIX_WIN_STREAM) {
        mpix_warn("an access epoch of a stream is open at MPI_Finalize: "
                  "MPIX_Win_complete_stream was not called");
    }
}

/* MPI_Finalize has begun: windows that were not freed, and epochs that are open
 * or wait, stay so. Those that streams have done with are closed. */
static int mpix_wins_finalized(MPI_Comm comm, int keyval, void *value,
                               void *extra)
{
    unsigned count = 0;
    mpix_win_t *win;

    /* No other thread makes or frees a window now */
    ucs_list_for_each(win, &mpix_wins, list) {
        mpix_win_warn(win);
        count += !win->is_held;
        (void)mpix_win_close(win);
    }
    if (count > 0) {
        mpix_warn("%u %s not freed before MPI_Finalize", count,
                  (count == 1) ? "window was" : "windows were");
    }
    return PMPI_Comm_free_keyval(&keyval);
}

/* What the first window needs. With the lock for that. */
static int mpix_wins_init_once(void)
{
    int win_keyval, keyval;
    int rc;

    rc = PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, mpix_win_deleted,
                                &win_keyval, NULL);
    if (rc == MPI_SUCCESS) {
        rc = PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, mpix_wins_finalized,
                                     &keyval, NULL);
    }
    if (rc == MPI_SUCCESS) {
        rc = PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
    }
    if (rc == MPI_SUCCESS) {
        mpix_win_keyval = win_keyval;
    }
    return rc;
}

static int mpix_wins_init(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int rc                      = MPI_SUCCESS;

    pthread_mutex_lock(&lock);
    if (mpix_win_keyval == MPI_KEYVAL_INVALID) {
        rc = mpix_wins_init_once();
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

/* Whether all processes of a communicator are good. Returns an MPI code, which
 * was raised. */
static int mpix_win_agree(const char *func, MPI_Comm comm, int is_good)
{
    int is_all = 0;
    int rc     = PMPI_Allreduce(&is_good, &is_all, 1, MPI_INT, MPI_MIN, comm);

    return ((rc != MPI_SUCCESS) || is_all) ?
                   rc :
                   mpix_raise(comm, mpix_fail(func, MPI_ERR_NO_MEM,
                                              "a rank has no memory"));
}

/* Gives a window its object. Returns an MPI code, which was raised. */
static int mpix_win_attach(const char *func, void *base, MPI_Aint size,
                           int disp_unit, MPI_Comm comm, MPI_Win handle)
{
    mpix_win_t *win = calloc(1, sizeof(*win));
    int rc;

    rc = mpix_win_agree(func, comm, (win != NULL) &&
                                    (mpix_wins_init() == MPI_SUCCESS));
    if (rc != MPI_SUCCESS) {
        free(win);
        return rc;
    }

    win->handle = handle;
    PMPI_Comm_rank(comm, &win->rank);
    PMPI_Comm_size(comm, &win->num_ranks);
    mpix_lock();
    ucs_list_add_tail(&mpix_wins, &win->list);
    mpix_unlock();
    rc = mpix_win_open(func, win, base, size, disp_unit, comm);
    if (rc == MPI_SUCCESS) {
        rc = PMPI_Win_set_attr(handle, mpix_win_keyval, win);
    }
    if ((rc != MPI_SUCCESS) && mpix_win_wait_closed(win)) {
        mpix_win_free(win);
    }
    return rc;
}

int MPIX_Win_create(void *base, MPI_Aint size, int disp_unit, MPI_Info info,
                    MPI_Comm comm, MPI_Win *win)
{
    int rc = MPI_Win_create(base, size, disp_unit, info, comm, win);

    if (rc != MPI_SUCCESS) {
        return rc;
    }
    rc = mpix_win_attach("MPI_Win_create", base, size, disp_unit, comm, *win);
    if (rc != MPI_SUCCESS) {
        (void)MPI_Win_free(win);
    }
    return rc;
}

int MPIX_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info,
                      MPI_Comm comm, void *baseptr, MPI_Win *handle)
{
    static const char func[] = "MPI_Win_allocate";
    mpix_win_t *win          = NULL;
    void *base               = NULL;
    int rc;

    rc = mpix_check_comm(func, comm);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    /* Of this library, where there is memory: else all are told here */
    rc = mpix_win_agree(func, comm,
                        (size <= 0) ||
                        (ucp_st_mem_alloc((size_t)size, &base) == UCS_OK));
    if (rc == MPI_SUCCESS) {
        rc = MPIX_Win_create(base, size, disp_unit, info, comm, handle);
    }
    if (rc == MPI_SUCCESS) {
        rc = mpix_win_find(*handle, &win);
    }
    if (rc != MPI_SUCCESS) {
        if (base != NULL) {
            ucp_st_mem_free(base);
        }
        return rc;
    }
    if (win != NULL) {
        win->memory = base;
    }
    *(void**)baseptr = base;
    return MPI_SUCCESS;
}

int MPIX_Win_free(MPI_Win *handle)
{
    mpix_win_t *win = NULL;
    int rc, is_closed;
    void *memory;

    if (handle != NULL) {
        rc = mpix_win_find(*handle, &win);
        if (rc != MPI_SUCCESS) {
            return rc;
        }
    }
    if (win == NULL) {
        return MPI_Win_free(handle);
    }
    /* Epochs of MPI_Win_fence are MPI's to check: it may have been closed by
     * source without the header */
    if (((win->access != MPIX_WIN_NONE) && (win->access != MPIX_WIN_FENCE)) ||
        (win->exposure != MPIX_WIN_NONE)) {
        return mpix_raise_win(*handle,
                              mpix_fail("MPI_Win_free", MPI_ERR_RMA_SYNC,
                                        "an epoch is open"));
    }

    is_closed    = mpix_win_wait_closed(win);
    win->is_held = 1;
    rc           = MPI_Win_free(handle);
    win->is_held = (rc == MPI_SUCCESS);
    if ((rc == MPI_SUCCESS) && is_closed) {
        memory = win->memory;
        mpix_win_free(win);
        if (memory != NULL) {
            (void)MPI_Free_mem(memory);
        }
    }
    return rc;
}

int mpix_win_connect(const char *func, mpix_win_t *win, int rank)
{
    mpix_win_rank_t *target     = &win->ranks[rank];
    const mpix_win_part_t *part = target->part;
    const char *key             = (const char*)(part + 1);
    ucs_status_t status         = UCS_OK;
    ucp_st_peer_h peer;
    int rc;

    if (target->peer != NULL) {
        return MPI_SUCCESS;
    }
    rc = mpix_only_connect(func, part->world_rank, rank, &peer);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    if ((part->key_length > 0) && (target->rkey == NULL)) {
        status = ucp_st_rkey_unpack(peer, key, part->key_length,
                                    &target->rkey);
    }
    if (status == UCS_OK) {
        status = ucp_st_rkey_unpack(peer, key + part->key_length,
                                    part->words_length, &target->words);
    }
    if (status != UCS_OK) {
        return mpix_fail(func, mpix_status_code(status),
                         "no way to the window of rank %d: %s", rank,
                         ucs_status_string(status));
    }
    snprintf(target->names[0], MPIX_WIN_NAME_MAX,
             "MPIX_Win_post_stream of rank %d of a window", rank);
    snprintf(target->names[1], MPIX_WIN_NAME_MAX,
             "MPIX_Win_complete_stream of rank %d of a window", rank);
    target->peer = peer;
    return MPI_SUCCESS;
}
