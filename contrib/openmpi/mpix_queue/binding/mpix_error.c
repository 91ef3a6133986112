/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_error.c - MPI error codes, their causes and error handlers.
 *
 * An error has a code of its own, of one of MPI's classes, whose string says
 * what failed and why: MPI_Error_string gives it to the application, and MPI
 * prints it before it aborts. MPI cannot free codes, so that each class has a
 * few, which are used again in turn. Where MPI has no such codes (before
 * MPI_Init, and MPICH, which has its own strings for them) the class is the
 * code, and the text goes to stderr. It does so, too, before an error ends the
 * job: OpenMPI 4.1 loses its own text now and then.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_error.h"
#include "mpix_global.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MPIX_LINE_MAX 512

/* Classes that errors here have, and codes of each. A text stays until so many
 * more errors of its class. */
#define MPIX_ERROR_MAX_CLASSES 16
#define MPIX_ERROR_MAX_CODES   16

typedef struct mpix_error_class {
    int      class;                       /* 0: free */
    int      codes[MPIX_ERROR_MAX_CODES]; /* 0: not made yet */
    unsigned next;
} mpix_error_class_t;

/* Protected by its lock, with which no other one is taken. */
static struct {
    pthread_mutex_t    lock;
    int                is_checked; /* Whether MPI has what is needed */
    int                is_usable;
    mpix_error_class_t classes[MPIX_ERROR_MAX_CLASSES];
} mpix_error = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};


void mpix_error_forked(void)
{
    pthread_mutex_init(&mpix_error.lock, NULL);
}

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

/* Makes a code of one of MPI's classes; 0 if MPI does not take it. */
static int mpix_error_add_code(int class)
{
    int code;

    return (PMPI_Add_error_code(class, &code) == MPI_SUCCESS) ? code : 0;
}

/* Whether a code of one of MPI's classes keeps its class, and has the strings
 * that it is given. */
static int mpix_error_check(void)
{
    static const char *const texts[] = {"first", "second"};
    const int code = mpix_error_add_code(MPI_ERR_OTHER);
    char text[MPI_MAX_ERROR_STRING];
    int i, class, length;

    for (i = 0; i < 2; ++i) {
        if ((code == 0) ||
            (PMPI_Add_error_string(code, texts[i]) != MPI_SUCCESS) ||
            (PMPI_Error_class(code, &class) != MPI_SUCCESS) ||
            (PMPI_Error_string(code, text, &length) != MPI_SUCCESS) ||
            (class != MPI_ERR_OTHER) || strcmp(text, texts[i])) {
            return 0;
        }
    }
    return 1;
}

/* The next code of a class, that has not been used for longest; 0 if there is
 * none. */
static int mpix_error_next_code(int class)
{
    mpix_error_class_t *entry = mpix_error.classes;
    int *code;

    while ((entry->class != class) && (entry->class != 0)) {
        if (++entry == (mpix_error.classes + MPIX_ERROR_MAX_CLASSES)) {
            return 0;
        }
    }

    entry->class = class;
    code         = &entry->codes[entry->next];
    entry->next  = (entry->next + 1) % MPIX_ERROR_MAX_CODES;
    if (*code == 0) {
        *code = mpix_error_add_code(class);
    }
    return *code;
}

/* Looks, once, whether MPI has such codes. The lock is held. */
static int mpix_error_is_usable(void)
{
    if (!mpix_error.is_checked) {
        mpix_error.is_usable  = mpix_error_check();
        mpix_error.is_checked = 1;
    }
    return mpix_error.is_usable;
}

void mpix_error_init(void)
{
    pthread_mutex_lock(&mpix_error.lock);
    (void)mpix_error_is_usable();
    pthread_mutex_unlock(&mpix_error.lock);
}

/* A code of a class with a text; 0 if MPI has no such codes. */
static int mpix_error_code(int class, const char *text)
{
    int code = 0;

    if (!mpix_mpi_is_active()) {
        return 0;
    }

    pthread_mutex_lock(&mpix_error.lock);
    if (mpix_error_is_usable()) {
        code = mpix_error_next_code(class);
    }
    if ((code != 0) && (PMPI_Add_error_string(code, text) != MPI_SUCCESS)) {
        code = 0;
    }
    pthread_mutex_unlock(&mpix_error.lock);
    return code;
}

int mpix_fail(const char *func, int code, const char *fmt, ...)
{
    char text[MPIX_LINE_MAX], line[MPI_MAX_ERROR_STRING];
    int class = code;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    /* What is too long loses its end */
    if (snprintf(line, sizeof(line), "%s: %s", func, text) < 0) {
        line[0] = '\0';
    }
    if (mpix_mpi_is_active()) {
        PMPI_Error_class(code, &class);
    }
    code = mpix_error_code(class, line);
    if (code == 0) {
        mpix_print("error", func, text);
        code = class;
    }
    return code;
}

void mpix_print_error(const char *func, const char *fmt, ...)
{
    char text[MPIX_LINE_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    mpix_print("error", func, text);
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

static int mpix_error_is_fatal(MPI_Comm comm)
{
    MPI_Errhandler errhandler;
    int is_fatal;

    if (PMPI_Comm_get_errhandler(comm, &errhandler) != MPI_SUCCESS) {
        return 0;
    }

    is_fatal = (errhandler == MPI_ERRORS_ARE_FATAL);
    PMPI_Errhandler_free(&errhandler);
    return is_fatal;
}

/* Whether codes have texts, which were not printed when they were made. */
static int mpix_error_has_texts(void)
{
    int ret;

    pthread_mutex_lock(&mpix_error.lock);
    ret = mpix_error.is_checked && mpix_error.is_usable;
    pthread_mutex_unlock(&mpix_error.lock);
    return ret;
}

void mpix_print_code(int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    if (mpix_mpi_is_active() && mpix_error_has_texts() &&
        (PMPI_Error_string(code, text, &length) == MPI_SUCCESS)) {
        mpix_print("error", "", text);
    }
}

int mpix_raise(MPI_Comm comm, int code)
{
    if ((code == MPI_SUCCESS) || !mpix_mpi_is_active()) {
        return code;
    }

    comm = (comm == MPI_COMM_NULL) ? MPI_COMM_WORLD : comm;
    if (mpix_error_is_fatal(comm)) {
        mpix_print_code(code);
    }
    PMPI_Comm_call_errhandler(comm, code);
    return code;
}

int mpix_raise_win(MPI_Win win, int code)
{
    MPI_Errhandler errhandler;
    int is_fatal;

    if ((code == MPI_SUCCESS) ||
        (PMPI_Win_get_errhandler(win, &errhandler) != MPI_SUCCESS)) {
        return code;
    }

    is_fatal = (errhandler == MPI_ERRORS_ARE_FATAL);
    PMPI_Errhandler_free(&errhandler);
    if (is_fatal) {
        mpix_print_code(code);
    }
    PMPI_Win_call_errhandler(win, code);
    return code;
}

int mpix_check_comm(const char *func, MPI_Comm comm)
{
    int rc, size;

    if (!mpix_mpi_is_active()) {
        return mpix_fail(func, MPI_ERR_OTHER,
                         "MPI is not initialised, or finalised already");
    }

    if (comm == MPI_COMM_NULL) {
        rc = mpix_fail(func, MPI_ERR_COMM, "the communicator is MPI_COMM_NULL");
        return mpix_raise(comm, rc);
    }
    return PMPI_Comm_size(comm, &size);
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
