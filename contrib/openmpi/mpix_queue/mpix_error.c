/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_error.c - MPI error codes, their causes and error handlers.
 *
 * The codes are MPI's own error classes, so that MPI_Error_string knows them.
 * What they cannot say goes to stderr in one line.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_error.h"
#include "mpix_global.h"

#include <stdarg.h>
#include <stdio.h>

#define MPIX_LINE_MAX 512


/* One write per line: lines of several ranks do not mix. */
static void mpix_print(const char *level, const char *func, const char *text)
{
    const int world_rank = mpix_global_world_rank();
    char rank[32]        = "";

    if (world_rank >= 0) {
        snprintf(rank, sizeof(rank), "rank %d: ", world_rank);
    }
    fprintf(stderr, "mpix_queue: %s%s: %s%s%s\n", rank, level, func,
            (*func == '\0') ? "" : ": ", text);
}

int mpix_fail(const char *func, int code, const char *fmt, ...)
{
    char text[MPIX_LINE_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    mpix_print("error", func, text);
    return code;
}

void mpix_warn(const char *fmt, ...)
{
    char text[MPIX_LINE_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    mpix_print("warning", "", text);
}

int mpix_raise(MPI_Comm comm, int code)
{
    if ((code != MPI_SUCCESS) && mpix_mpi_is_active()) {
        PMPI_Comm_call_errhandler(
                (comm == MPI_COMM_NULL) ? MPI_COMM_WORLD : comm, code);
    }
    return code;
}

int mpix_status_code(ucs_status_t status)
{
    switch (status) {
    case UCS_OK:
        return MPI_SUCCESS;
    case UCS_ERR_MESSAGE_TRUNCATED:
        return MPI_ERR_TRUNCATE;
    case UCS_ERR_NO_MEMORY:
    case UCS_ERR_NO_RESOURCE:
        return MPI_ERR_NO_MEM;
    case UCS_ERR_INVALID_PARAM:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_NO_MESSAGE:
    case UCS_ERR_BUSY:
        return MPI_ERR_REQUEST;
    default:
        return MPI_ERR_OTHER;
    }
}
