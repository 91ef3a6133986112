/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_error.h - MPI error codes, their causes and error handlers.
 */
#ifndef MPIX_ERROR_H_
#define MPIX_ERROR_H_

#include <mpi.h>

#include <ucs/type/status.h>


/* Look what an active MPI has for errors. It is too late for that where MPI
 * calls a function that fails: MPICH 4.0 has locks then. */
void mpix_error_init(void);

/* Make the error code of a failure: one of the class of 'code', an MPI code,
 * whose string says what failed and why. Where MPI has no such codes the text
 * is printed, and the code is the class. 'func' is the function that the
 * application called. The caller returns the code, and has it raised, once. */
int mpix_fail(const char *func, int code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* Print one line about the failure of a function whose codes are not MPI's. */
void mpix_print_error(const char *func, const char *fmt, ...)
        __attribute__((format(printf, 2, 3)));

/* The same of a code of mpix_fail() that is not raised. */
void mpix_print_code(int code);

/* Print one line about something that is no error of the current call. */
void mpix_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Hand a code other than MPI_SUCCESS to the error handler of 'comm', or of
 * MPI_COMM_WORLD if it is MPI_COMM_NULL; returns 'code'. The text is printed
 * first if the job ends by that. Not to be called with
 * the lock held: a handler may call this library again. */
int mpix_raise(MPI_Comm comm, int code);

/* The same with the error handler of a window. */
int mpix_raise_win(MPI_Win win, int code);

/* Refuse a call before MPI_Init, or after MPI_Finalize, or with what is no
 * communicator. Returns an MPI code, which has been raised: MPI raises what it
 * finds. */
int mpix_check_comm(const char *func, MPI_Comm comm);

/* The MPI error class of a failed matching or queue. */
int mpix_status_code(ucs_status_t status);

/* In a child that was forked. */
void mpix_error_forked(void);

#endif
