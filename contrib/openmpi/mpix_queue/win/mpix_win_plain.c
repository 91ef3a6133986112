/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_win_plain.c - calls of MPI for windows that are not for epochs of
 * streams: they are MPI's, or refused.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#define MPIX_WIN_MPI_NAMES
#include "mpix_win_object.h"
#include "binding/mpix_error.h"
#include "mpix_win.h"


/* Which epochs of a stream a call is not for. */
enum {
    MPIX_WIN_NO_ACCESS   = 1 << 0,
    MPIX_WIN_NO_EXPOSURE = 1 << 1
};

/* Whether a call may be made; *rc_p is what it returns if not. */
static int mpix_win_is_plain(const char *func, MPI_Win handle, int not_for,
                             mpix_win_t **win_p, int *rc_p)
{
    const char *which = NULL;

    *rc_p = mpix_win_find(handle, win_p);
    if ((*rc_p != MPI_SUCCESS) || (*win_p == NULL)) {
        return *rc_p == MPI_SUCCESS;
    }
    if ((not_for & MPIX_WIN_NO_ACCESS) &&
        ((*win_p)->access == MPIX_WIN_STREAM)) {
        which = "access";
    } else if ((not_for & MPIX_WIN_NO_EXPOSURE) &&
               ((*win_p)->exposure == MPIX_WIN_STREAM)) {
        which = "exposure";
    } else {
        return 1;
    }
    *rc_p = mpix_raise_win(handle,
                           mpix_fail(func, MPI_ERR_RMA_SYNC,
                                     "not in an %s epoch of a stream", which));
    return 0;
}

/* A call of MPI, with what it changes where it succeeds. */
#define MPIX_WIN_CALL(_func, _mpi, _not_for, _params, _args, _then) \
    int _func _params \
    { \
        mpix_win_t *object; \
        int rc; \
        \
        if (!mpix_win_is_plain(#_mpi, win, _not_for, &object, &rc)) { \
            return rc; \
        } \
        rc = _mpi _args; \
        if ((rc == MPI_SUCCESS) && (object != NULL)) { \
            _then; \
        } \
        return rc; \
    }

MPIX_WIN_CALL(MPIX_Win_complete, MPI_Win_complete, MPIX_WIN_NO_ACCESS,
              (MPI_Win win), (win), object->access = MPIX_WIN_NONE)

MPIX_WIN_CALL(MPIX_Win_post, MPI_Win_post, MPIX_WIN_NO_EXPOSURE,
              (MPI_Group group, int mode, MPI_Win win), (group, mode, win),
              object->exposure = MPIX_WIN_PLAIN)

MPIX_WIN_CALL(MPIX_Win_wait, MPI_Win_wait, MPIX_WIN_NO_EXPOSURE,
              (MPI_Win win), (win), object->exposure = MPIX_WIN_NONE)

MPIX_WIN_CALL(MPIX_Win_test, MPI_Win_test, MPIX_WIN_NO_EXPOSURE,
              (MPI_Win win, int *flag), (win, flag),
              object->exposure = *flag ? MPIX_WIN_NONE : object->exposure)

MPIX_WIN_CALL(MPIX_Win_fence, MPI_Win_fence,
              MPIX_WIN_NO_ACCESS | MPIX_WIN_NO_EXPOSURE,
              (int mode, MPI_Win win), (mode, win),
              object->access = (object->access == MPIX_WIN_FENCE) ?
                                       MPIX_WIN_NONE : object->access)

MPIX_WIN_CALL(MPIX_Win_lock, MPI_Win_lock, MPIX_WIN_NO_ACCESS,
              (int type, int rank, int mode, MPI_Win win),
              (type, rank, mode, win), ++object->num_locks)

MPIX_WIN_CALL(MPIX_Win_unlock, MPI_Win_unlock, MPIX_WIN_NO_ACCESS,
              (int rank, MPI_Win win), (rank, win), --object->num_locks)

MPIX_WIN_CALL(MPIX_Win_lock_all, MPI_Win_lock_all, MPIX_WIN_NO_ACCESS,
              (int mode, MPI_Win win), (mode, win), ++object->num_locks)

MPIX_WIN_CALL(MPIX_Win_unlock_all, MPI_Win_unlock_all, MPIX_WIN_NO_ACCESS,
              (MPI_Win win), (win), --object->num_locks)

MPIX_WIN_CALL(MPIX_Win_get_accumulate, MPI_Get_accumulate, MPIX_WIN_NO_ACCESS,
              (const void *buf, int count, MPI_Datatype datatype, void *result,
               int result_count, MPI_Datatype result_datatype, int target,
               MPI_Aint disp, int target_count, MPI_Datatype target_datatype,
               MPI_Op op, MPI_Win win),
              (buf, count, datatype, result, result_count, result_datatype,
               target, disp, target_count, target_datatype, op, win),
              (void)mpix_win_accessed(object, rc))

MPIX_WIN_CALL(MPIX_Win_fetch_and_op, MPI_Fetch_and_op, MPIX_WIN_NO_ACCESS,
              (const void *buf, void *result, MPI_Datatype datatype, int target,
               MPI_Aint disp, MPI_Op op, MPI_Win win),
              (buf, result, datatype, target, disp, op, win),
              (void)mpix_win_accessed(object, rc))

MPIX_WIN_CALL(MPIX_Win_compare_and_swap, MPI_Compare_and_swap,
              MPIX_WIN_NO_ACCESS,
              (const void *buf, const void *compare, void *result,
               MPI_Datatype datatype, int target, MPI_Aint disp, MPI_Win win),
              (buf, compare, result, datatype, target, disp, win),
              (void)mpix_win_accessed(object, rc))

MPIX_WIN_CALL(MPIX_Win_rput, MPI_Rput, MPIX_WIN_NO_ACCESS,
              (const void *buf, int count, MPI_Datatype datatype, int target,
               MPI_Aint disp, int target_count, MPI_Datatype target_datatype,
               MPI_Win win, MPI_Request *request),
              (buf, count, datatype, target, disp, target_count,
               target_datatype, win, request), (void)0)

MPIX_WIN_CALL(MPIX_Win_rget, MPI_Rget, MPIX_WIN_NO_ACCESS,
              (void *buf, int count, MPI_Datatype datatype, int target,
               MPI_Aint disp, int target_count, MPI_Datatype target_datatype,
               MPI_Win win, MPI_Request *request),
              (buf, count, datatype, target, disp, target_count,
               target_datatype, win, request), (void)0)

MPIX_WIN_CALL(MPIX_Win_raccumulate, MPI_Raccumulate, MPIX_WIN_NO_ACCESS,
              (const void *buf, int count, MPI_Datatype datatype, int target,
               MPI_Aint disp, int target_count, MPI_Datatype target_datatype,
               MPI_Op op, MPI_Win win, MPI_Request *request),
              (buf, count, datatype, target, disp, target_count,
               target_datatype, op, win, request), (void)0)

MPIX_WIN_CALL(MPIX_Win_rget_accumulate, MPI_Rget_accumulate,
              MPIX_WIN_NO_ACCESS,
              (const void *buf, int count, MPI_Datatype datatype, void *result,
               int result_count, MPI_Datatype result_datatype, int target,
               MPI_Aint disp, int target_count, MPI_Datatype target_datatype,
               MPI_Op op, MPI_Win win, MPI_Request *request),
              (buf, count, datatype, result, result_count, result_datatype,
               target, disp, target_count, target_datatype, op, win, request),
              (void)0)
