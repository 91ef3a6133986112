/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_f08_mpi.c - MPI's own calls from Fortran that libmpix_queue has to see.
 *
 * OpenMPI's Fortran library calls PMPI functions, past those of libmpix_queue.
 * These are the procedures behind the names of its module mpi_f08. They come
 * first where this library is linked before those of MPI. It passes buffers by
 * their addresses; ierror may be NULL.
 */
#include "mpix_f08.h"

extern MPI_Fint mpi_fortran_bottom_ __attribute__((weak));

/* Makers of requests. */
typedef int (*mpix_f08_send_init_t)(const void *buf, int count,
                                    MPI_Datatype datatype, int dest, int tag,
                                    MPI_Comm comm, MPI_Request *request);

/* What one is given. */
typedef struct mpix_f08_init_args {
    void           *buf;
    const MPI_Fint *count;
    const MPI_Fint *datatype;
    const MPI_Fint *peer;
    const MPI_Fint *tag;
    const MPI_Fint *comm;
    MPI_Fint       *request;
    MPI_Fint       *ierror;
} mpix_f08_init_args_t;


static void *mpix_f08_address(void *buf)
{
    return (buf == &mpi_fortran_bottom_) ? MPI_BOTTOM : buf;
}

static void mpix_f08_made(const mpix_f08_init_args_t *args, int rc,
                          MPI_Request request)
{
    if (rc == MPI_SUCCESS) {
        *args->request = PMPI_Request_c2f(request);
    }
    mpix_f08_return(args->ierror, rc);
}

static void mpix_f08_make_send(const mpix_f08_init_args_t *args,
                               mpix_f08_send_init_t send_init)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int rc;

    rc = send_init(mpix_f08_address(args->buf), *args->count,
                   PMPI_Type_f2c(*args->datatype), *args->peer, *args->tag,
                   PMPI_Comm_f2c(*args->comm), &request);
    mpix_f08_made(args, rc, request);
}

void mpi_send_init_f08_(void *buf, const MPI_Fint *count,
                        const MPI_Fint *datatype, const MPI_Fint *dest,
                        const MPI_Fint *tag, const MPI_Fint *comm,
                        MPI_Fint *request, MPI_Fint *ierror)
{
    const mpix_f08_init_args_t args = {buf, count, datatype, dest, tag, comm,
                                       request, ierror};

    mpix_f08_make_send(&args, MPI_Send_init);
}

void mpi_rsend_init_f08_(void *buf, const MPI_Fint *count,
                         const MPI_Fint *datatype, const MPI_Fint *dest,
                         const MPI_Fint *tag, const MPI_Fint *comm,
                         MPI_Fint *request, MPI_Fint *ierror)
{
    const mpix_f08_init_args_t args = {buf, count, datatype, dest, tag, comm,
                                       request, ierror};

    mpix_f08_make_send(&args, MPI_Rsend_init);
}

void mpi_ssend_init_f08_(void *buf, const MPI_Fint *count,
                         const MPI_Fint *datatype, const MPI_Fint *dest,
                         const MPI_Fint *tag, const MPI_Fint *comm,
                         MPI_Fint *request, MPI_Fint *ierror)
{
    const mpix_f08_init_args_t args = {buf, count, datatype, dest, tag, comm,
                                       request, ierror};

    mpix_f08_make_send(&args, MPI_Ssend_init);
}

void mpi_bsend_init_f08_(void *buf, const MPI_Fint *count,
                         const MPI_Fint *datatype, const MPI_Fint *dest,
                         const MPI_Fint *tag, const MPI_Fint *comm,
                         MPI_Fint *request, MPI_Fint *ierror)
{
    const mpix_f08_init_args_t args = {buf, count, datatype, dest, tag, comm,
                                       request, ierror};

    mpix_f08_make_send(&args, MPI_Bsend_init);
}

void mpi_recv_init_f08_(void *buf, const MPI_Fint *count,
                        const MPI_Fint *datatype, const MPI_Fint *source,
                        const MPI_Fint *tag, const MPI_Fint *comm,
                        MPI_Fint *request, MPI_Fint *ierror)
{
    const mpix_f08_init_args_t args = {buf, count, datatype, source, tag, comm,
                                       request, ierror};
    MPI_Request made                = MPI_REQUEST_NULL;
    int rc;

    rc = MPI_Recv_init(mpix_f08_address(buf), *count, PMPI_Type_f2c(*datatype),
                       *source, *tag, PMPI_Comm_f2c(*comm), &made);
    mpix_f08_made(&args, rc, made);
}

void mpi_request_free_f08_(MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request handle = PMPI_Request_f2c(*request);
    int rc             = MPI_Request_free(&handle);

    *request = PMPI_Request_c2f(handle);
    mpix_f08_return(ierror, rc);
}

void mpi_start_f08_(MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request handle = PMPI_Request_f2c(*request);

    mpix_f08_return(ierror, MPI_Start(&handle));
}

void mpi_startall_f08_(const MPI_Fint *count, MPI_Fint *handles,
                       MPI_Fint *ierror)
{
    mpix_f08_requests_t requests;
    int rc;

    rc = mpix_f08_requests_init(&requests, *count, handles);
    if (rc == MPI_SUCCESS) {
        rc = MPI_Startall(*count, requests.array);
        mpix_f08_requests_cleanup(&requests);
    }
    mpix_f08_return(ierror, rc);
}

void mpi_init_f08_(MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPI_Init(NULL, NULL));
}

void mpi_init_thread_f08_(const MPI_Fint *required, MPI_Fint *provided,
                          MPI_Fint *ierror)
{
    int level = 0;
    int rc    = MPI_Init_thread(NULL, NULL, *required, &level);

    *provided = level;
    mpix_f08_return(ierror, rc);
}

void mpi_finalize_f08_(MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPI_Finalize());
}
