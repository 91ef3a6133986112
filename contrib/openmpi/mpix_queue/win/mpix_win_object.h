/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_win_object.h - what this library keeps about a window: of MPI's windows
 * that streams can access, and of those that say why not.
 *
 * All processes tell each other their keys when the window is made, so that no
 * later call waits for another process. Each has two words for each rank:
 *
 *   posted[r]     rank r has exposed its window to this process so many times
 *   completed[r]  rank r has completed so many epochs on this one's window
 *
 * Only rank r writes these, each time one more than before, so that they are
 * stored and need no atomic addition.
 */
#ifndef MPIX_WIN_OBJECT_H_
#define MPIX_WIN_OBJECT_H_

#include "call/mpix_stream_queue.h"

#include <mpi.h>
#include <ucp_st.h>

#include <stdint.h>

#define MPIX_WIN_TEXT_MAX 128
#define MPIX_WIN_NAME_MAX 64


/* What a process tells of its part; its keys follow. */
typedef struct mpix_win_part {
    uint64_t size;         /* Of its window, bytes */
    uint64_t disp_unit;
    uint32_t key_length;   /* Of the window's; 0 if that is empty */
    uint32_t words_length; /* Of the words' */
    int32_t  world_rank;   /* -1: the process has failed */
    int32_t  is_device;    /* The memory is not the host's */
    char     text[MPIX_WIN_TEXT_MAX]; /* Why it has failed */
} mpix_win_part_t;

/* A rank of a window. */
typedef struct mpix_win_rank {
    const mpix_win_part_t *part; /* In 'parts' */
    ucp_st_peer_h         peer;  /* NULL: it was not needed yet */
    ucp_st_rkey_h         rkey;  /* NULL without memory */
    ucp_st_rkey_h         words;
    char                  names[2][MPIX_WIN_NAME_MAX]; /* Of its signals:
                                      posted, completed */
    uint64_t              posts;   /* To it, by this process */
    uint64_t              starts;  /* Epochs on its window that this process
                                      has completed */
    int                   is_target; /* In the group of the open access epoch */
    size_t                num_ops; /* In that epoch */
    int                   has_accumulated;
    int                   has_others; /* Enqueued, before the signal */
} mpix_win_rank_t;

/* Bytes that an epoch accesses. */
typedef struct mpix_win_op {
    mpix_win_rank_t     *target;
    enum {
        MPIX_WIN_PUT,
        MPIX_WIN_GET,
        MPIX_WIN_ADD
    } type;
    ucp_st_number_t     number;
    int                 is_strict; /* Behind those before it to the rank */
    ucp_st_rma_params_t params;    /* But for the key */
} mpix_win_op_t;

/* A list that grows. */
typedef struct mpix_win_list {
    void   *items;
    size_t count;
    size_t max;
} mpix_win_list_t;

/* Kinds of an epoch. */
typedef enum {
    MPIX_WIN_NONE,
    MPIX_WIN_PLAIN, /* MPI's own */
    MPIX_WIN_FENCE, /* The same, until the next MPI_Win_fence */
    MPIX_WIN_STREAM
} mpix_win_epoch_t;

/* Of the thread that calls for the window. */
typedef struct mpix_win {
    ucs_list_link_t  list;     /* mpix_wins; protected by the lock */
    MPI_Win          handle;
    int              is_held;  /* MPIX_Win_free destroys it */
    void             *memory;  /* Of MPIX_Win_allocate; or NULL */
    int              rank;
    int              num_ranks;
    char             reason[MPIX_WIN_TEXT_MAX]; /* Why streams cannot access it;
                                                   empty: they can */
    char             *parts;   /* Of all ranks */
    mpix_win_rank_t  *ranks;
    ucp_st_mem_h     memh;     /* NULL without memory */
    uint64_t         *words;   /* posted, then completed, of all ranks */
    ucp_st_mem_h     words_memh;
    mpix_win_epoch_t access;
    unsigned         num_locks;
    mpix_win_epoch_t exposure;
    mpix_win_list_t  targets;  /* Ranks (int) of the access epoch */
    mpix_win_list_t  origins;  /* The same of the exposure epoch */
    mpix_win_list_t  ops;      /* mpix_win_op_t */
    mpix_win_list_t  buffers;  /* ucp_st_mem_h of the origin's buffers, also of
                                  epochs that streams may not have run */
    size_t           num_enqueued; /* Of these: of epochs that streams have */
    mpix_win_list_t  waits;    /* Scratch: ucp_st_wait_signal_params_t, and
                                  where they are, of so many at most */
    mpix_win_list_t  places;
    mpix_win_list_t  queues;   /* mpix_stream_queue_t * that have its epochs */
} mpix_win_t;


/* Make room for so many more items of a size. Returns 0 without memory. */
int mpix_win_list_reserve(mpix_win_list_t *list, size_t more, size_t size);

/* Get the object of a window; NULL if it is MPI's alone. Returns an MPI code,
 * which MPI has raised. */
int mpix_win_find(MPI_Win handle, mpix_win_t **win_p);

/* A call of MPI has accessed a window, NULL if it is MPI's alone, or failed to.
 * Without another epoch it is in one of MPI_Win_fence. Returns the code. */
static inline int mpix_win_accessed(mpix_win_t *win, int rc)
{
    if ((rc == MPI_SUCCESS) && (win != NULL) &&
        (win->access == MPIX_WIN_NONE) && (win->num_locks == 0)) {
        win->access = MPIX_WIN_FENCE;
    }
    return rc;
}

/* Get the st peer and the keys of a rank. Returns an MPI code that is not
 * raised. */
int mpix_win_connect(const char *func, mpix_win_t *win, int rank);

/* Get the queue of a stream, which the window then holds. Returns an MPI code
 * that is not raised. */
int mpix_win_get_queue(const char *func, mpix_win_t *win, void *stream,
                       struct mpix_queue **queue_p);

/* Give back buffers that no stream uses any more, as far as is known soon. */
void mpix_win_put_buffers(mpix_win_t *win);

#endif
