/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_f08.c - the module's calls on queues, requests, exchanges and halos.
 */
#include "mpix_f08.h"

#include <stdlib.h>


/* A neighbour of a halo, as the module has it. */
typedef struct mpix_f08_side {
    void     *sendbuf;
    MPI_Fint sendcount;
    MPI_Fint sendtype;
    void     *recvbuf;
    MPI_Fint recvcount;
    MPI_Fint recvtype;
} mpix_f08_side_t;

/* What Fortran gives for MPI_BOTTOM, MPI_IN_PLACE and ignored statuses. */
#ifdef MPICH_VERSION
#  define MPIX_F08_BOTTOM          (&MPIR_F08_MPI_BOTTOM)
#  define MPIX_F08_IN_PLACE        (&MPIR_F08_MPI_IN_PLACE)
#  define MPIX_F08_STATUS_IGNORE   ((MPI_Fint*)MPI_F08_STATUS_IGNORE)
#  define MPIX_F08_STATUSES_IGNORE ((MPI_Fint*)MPI_F08_STATUSES_IGNORE)
#else
extern MPI_Fint mpi_fortran_bottom_ __attribute__((weak));
extern MPI_Fint mpi_fortran_in_place_ __attribute__((weak));
#  define MPIX_F08_BOTTOM          (&mpi_fortran_bottom_)
#  define MPIX_F08_IN_PLACE        (&mpi_fortran_in_place_)
#  define MPIX_F08_STATUS_IGNORE   MPI_F_STATUS_IGNORE
#  define MPIX_F08_STATUSES_IGNORE MPI_F_STATUSES_IGNORE
#endif


static int mpix_f08_raise(int code)
{
    PMPI_Comm_call_errhandler(MPI_COMM_WORLD, code);
    return code;
}

int mpix_f08_requests_init(mpix_f08_requests_t *requests, int count,
                           const MPI_Fint *handles)
{
    int i;

    requests->array = (count <= MPIX_F08_SHORT) ?
                              requests->few :
                              malloc(count * sizeof(*requests->array));
    if (requests->array == NULL) {
        return mpix_f08_raise(MPI_ERR_NO_MEM);
    }

    for (i = 0; i < count; ++i) {
        requests->array[i] = PMPI_Request_f2c(handles[i]);
    }
    return MPI_SUCCESS;
}

void mpix_f08_requests_cleanup(mpix_f08_requests_t *requests)
{
    if (requests->array != requests->few) {
        free(requests->array);
    }
}

int mpix_f08_buffer(const CFI_cdesc_t *desc, void **buffer_p)
{
    CFI_index_t distance = (CFI_index_t)desc->elem_len;
    int dim;

    if (desc->base_addr == MPIX_F08_BOTTOM) {
        *buffer_p = MPI_BOTTOM;
        return MPI_SUCCESS;
    } else if (desc->base_addr == MPIX_F08_IN_PLACE) {
        *buffer_p = MPI_IN_PLACE;
        return MPI_SUCCESS;
    }

    for (dim = 0; dim < desc->rank; ++dim) {
        if ((desc->dim[dim].sm != distance) && (desc->dim[dim].extent > 1)) {
            fprintf(stderr, "mpix_queue: error: the buffer is an array that is "
                            "not contiguous: describe it by a datatype\n");
            return mpix_f08_raise(MPI_ERR_BUFFER);
        }
        distance *= desc->dim[dim].extent;
    }

    *buffer_p = desc->base_addr;
    return MPI_SUCCESS;
}

/* Queues */

void mpix_f08_queue_init(int type, void *stream, MPIX_Queue *queue,
                         MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Queue_init(type, stream, queue));
}

void mpix_f08_queue_free(MPIX_Queue *queue, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Queue_free(queue));
}

void mpix_f08_queue_wait(const MPIX_Queue *queue, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Queue_wait(*queue));
}

void mpix_f08_queue_get_stats(MPIX_Queue_stats *stats, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Queue_get_stats(stats));
}

void mpix_f08_queue_print_stats(MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Queue_print_stats(stdout));
    fflush(stdout);
}

void mpix_f08_queue_get_info(MPIX_Queue_info *info, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Queue_get_info(info));
}

void mpix_f08_queue_attach(const MPI_Fint *comm, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Queue_attach(PMPI_Comm_f2c(*comm)));
}

/* Matching */

void mpix_f08_match(const MPI_Fint *request, MPI_Fint *status,
                    MPI_Fint *ierror)
{
    MPI_Request handle = PMPI_Request_f2c(*request);
    MPI_Status result;
    int rc;

    if (status == MPIX_F08_STATUS_IGNORE) {
        rc = MPIX_Match(&handle, MPI_STATUS_IGNORE);
    } else {
        PMPI_Status_f2c(status, &result);
        rc = MPIX_Match(&handle, &result);
        PMPI_Status_c2f(&result, status);
    }
    mpix_f08_return(ierror, rc);
}

/* Matches requests that are converted. */
static int mpix_f08_matchall_statuses(int count, MPI_Request *requests,
                                      MPI_Fint *statuses)
{
    const size_t size = sizeof(MPI_Status) / sizeof(MPI_Fint);
    MPI_Status *results;
    int i, rc;

    if ((statuses == MPIX_F08_STATUSES_IGNORE) || (count <= 0)) {
        return MPIX_Matchall(count, requests, MPI_STATUSES_IGNORE);
    }

    results = malloc(count * sizeof(*results));
    if (results == NULL) {
        return mpix_f08_raise(MPI_ERR_NO_MEM);
    }

    for (i = 0; i < count; ++i) {
        PMPI_Status_f2c(&statuses[i * size], &results[i]);
    }
    rc = MPIX_Matchall(count, requests, results);
    for (i = 0; i < count; ++i) {
        PMPI_Status_c2f(&results[i], &statuses[i * size]);
    }
    free(results);
    return rc;
}

void mpix_f08_matchall(int count, const MPI_Fint *handles, MPI_Fint *statuses,
                       MPI_Fint *ierror)
{
    mpix_f08_requests_t requests;
    int rc;

    rc = mpix_f08_requests_init(&requests, count, handles);
    if (rc == MPI_SUCCESS) {
        rc = mpix_f08_matchall_statuses(count, requests.array, statuses);
        mpix_f08_requests_cleanup(&requests);
    }
    mpix_f08_return(ierror, rc);
}

void mpix_f08_imatch(const MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request handle = PMPI_Request_f2c(*request);

    mpix_f08_return(ierror, MPIX_Imatch(&handle));
}

void mpix_f08_imatchall(int count, const MPI_Fint *handles, MPI_Fint *ierror)
{
    mpix_f08_requests_t requests;
    int rc;

    rc = mpix_f08_requests_init(&requests, count, handles);
    if (rc == MPI_SUCCESS) {
        rc = MPIX_Imatchall(count, requests.array);
        mpix_f08_requests_cleanup(&requests);
    }
    mpix_f08_return(ierror, rc);
}

void mpix_f08_is_matched(const MPI_Fint *request, int *flag, MPI_Fint *status,
                         MPI_Fint *ierror)
{
    MPI_Request handle = PMPI_Request_f2c(*request);
    MPI_Status result;
    int rc;

    if (status == MPIX_F08_STATUS_IGNORE) {
        rc = MPIX_Is_matched(&handle, flag, MPI_STATUS_IGNORE);
    } else {
        PMPI_Status_f2c(status, &result);
        rc = MPIX_Is_matched(&handle, flag, &result);
        PMPI_Status_c2f(&result, status);
    }
    mpix_f08_return(ierror, rc);
}

/* Starts and waits of matched requests */

void mpix_f08_enqueue_start_req(const MPIX_Queue *queue,
                                const MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request handle = PMPI_Request_f2c(*request);

    mpix_f08_return(ierror, MPIX_Enqueue_start_req(*queue, &handle));
}

void mpix_f08_enqueue_wait_req(const MPIX_Queue *queue, const MPI_Fint *request,
                               MPI_Fint *ierror)
{
    MPI_Request handle = PMPI_Request_f2c(*request);

    mpix_f08_return(ierror, MPIX_Enqueue_wait_req(*queue, &handle));
}

void mpix_f08_enqueue_startall(const MPIX_Queue *queue, int count,
                               const MPI_Fint *handles, MPI_Fint *ierror)
{
    mpix_f08_requests_t requests;
    int rc;

    rc = mpix_f08_requests_init(&requests, count, handles);
    if (rc == MPI_SUCCESS) {
        rc = MPIX_Enqueue_startall(*queue, count, requests.array);
        mpix_f08_requests_cleanup(&requests);
    }
    mpix_f08_return(ierror, rc);
}

void mpix_f08_enqueue_waitall(const MPIX_Queue *queue, int count,
                              const MPI_Fint *handles, MPI_Fint *ierror)
{
    mpix_f08_requests_t requests;
    int rc;

    rc = mpix_f08_requests_init(&requests, count, handles);
    if (rc == MPI_SUCCESS) {
        rc = MPIX_Enqueue_waitall(*queue, count, requests.array);
        mpix_f08_requests_cleanup(&requests);
    }
    mpix_f08_return(ierror, rc);
}

/* Messages that are used once */

void mpix_f08_create_queue_stream(void *stream, MPIX_Queue *queue,
                                  MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Create_queue_stream(stream, queue));
}

void mpix_f08_create_queue_comm(const MPI_Fint *comm, void *stream,
                                MPIX_Queue *queue, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Create_queue_comm(PMPI_Comm_f2c(*comm), stream,
                                                   queue));
}

void mpix_f08_free_queue(const MPIX_Queue *queue, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Free_queue(*queue));
}

void mpix_f08_enqueue_send_comm(const CFI_cdesc_t *desc, int count,
                                const MPI_Fint *datatype, int dest, int tag,
                                const MPI_Fint *comm, const MPIX_Queue *queue,
                                MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request handle;
    void *buffer;
    int rc;

    rc = mpix_f08_buffer(desc, &buffer);
    if (rc == MPI_SUCCESS) {
        rc = MPIX_Enqueue_send_comm(buffer, count, PMPI_Type_f2c(*datatype),
                                    dest, tag, PMPI_Comm_f2c(*comm), *queue,
                                    &handle);
    }
    if (rc == MPI_SUCCESS) {
        *request = PMPI_Request_c2f(handle);
    }
    mpix_f08_return(ierror, rc);
}

void mpix_f08_enqueue_send_queue(const CFI_cdesc_t *desc, int count,
                                 const MPI_Fint *datatype, int dest, int tag,
                                 const MPIX_Queue *queue, MPI_Fint *request,
                                 MPI_Fint *ierror)
{
    MPI_Request handle;
    void *buffer;
    int rc;

    rc = mpix_f08_buffer(desc, &buffer);
    if (rc == MPI_SUCCESS) {
        rc = MPIX_Enqueue_send_queue(buffer, count, PMPI_Type_f2c(*datatype),
                                     dest, tag, *queue, &handle);
    }
    if (rc == MPI_SUCCESS) {
        *request = PMPI_Request_c2f(handle);
    }
    mpix_f08_return(ierror, rc);
}

void mpix_f08_enqueue_recv_comm(const CFI_cdesc_t *desc, int count,
                                const MPI_Fint *datatype, int source, int tag,
                                const MPI_Fint *comm, const MPIX_Queue *queue,
                                MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request handle;
    void *buffer;
    int rc;

    rc = mpix_f08_buffer(desc, &buffer);
    if (rc == MPI_SUCCESS) {
        rc = MPIX_Enqueue_recv_comm(buffer, count, PMPI_Type_f2c(*datatype),
                                    source, tag, PMPI_Comm_f2c(*comm), *queue,
                                    &handle);
    }
    if (rc == MPI_SUCCESS) {
        *request = PMPI_Request_c2f(handle);
    }
    mpix_f08_return(ierror, rc);
}

void mpix_f08_enqueue_recv_queue(const CFI_cdesc_t *desc, int count,
                                 const MPI_Fint *datatype, int source, int tag,
                                 const MPIX_Queue *queue, MPI_Fint *request,
                                 MPI_Fint *ierror)
{
    MPI_Request handle;
    void *buffer;
    int rc;

    rc = mpix_f08_buffer(desc, &buffer);
    if (rc == MPI_SUCCESS) {
        rc = MPIX_Enqueue_recv_queue(buffer, count, PMPI_Type_f2c(*datatype),
                                     source, tag, *queue, &handle);
    }
    if (rc == MPI_SUCCESS) {
        *request = PMPI_Request_c2f(handle);
    }
    mpix_f08_return(ierror, rc);
}

void mpix_f08_enqueue_start_batch(const MPIX_Queue *queue, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Enqueue_start_batch(*queue));
}

void mpix_f08_enqueue_wait_batch(const MPIX_Queue *queue, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Enqueue_wait_batch(*queue));
}

/* Exchanges */

void mpix_f08_exchange_init(int count, const MPI_Fint *handles,
                            const MPI_Fint *info, MPI_Fint *exchange,
                            MPI_Fint *ierror)
{
    MPI_Request handle = MPI_REQUEST_NULL;
    mpix_f08_requests_t requests;
    int rc;

    rc = mpix_f08_requests_init(&requests, count, handles);
    if (rc == MPI_SUCCESS) {
        rc = MPIX_Exchange_init(count, requests.array, PMPI_Info_f2c(*info),
                                &handle);
        mpix_f08_requests_cleanup(&requests);
    }
    if (rc == MPI_SUCCESS) {
        *exchange = PMPI_Request_c2f(handle);
    }
    mpix_f08_return(ierror, rc);
}

/* Halos */

/* The sides as C has them; the array is the caller's. Returns an MPI code, and
 * has raised an error. */
static int mpix_f08_sides(int count, const mpix_f08_side_t *sides,
                          MPIX_Halo_side **result_p)
{
    MPIX_Halo_side *result;
    int i;

    result = calloc((count > 0) ? count : 1, sizeof(*result));
    if (result == NULL) {
        return mpix_f08_raise(MPI_ERR_NO_MEM);
    }

    for (i = 0; i < count; ++i) {
        result[i].sendbuf   = sides[i].sendbuf;
        result[i].sendcount = sides[i].sendcount;
        result[i].sendtype  = PMPI_Type_f2c(sides[i].sendtype);
        result[i].recvbuf   = sides[i].recvbuf;
        result[i].recvcount = sides[i].recvcount;
        result[i].recvtype  = PMPI_Type_f2c(sides[i].recvtype);
    }
    *result_p = result;
    return MPI_SUCCESS;
}

void mpix_f08_halo_init(const MPI_Fint *comm, int count,
                        const mpix_f08_side_t *sides, const MPIX_Queue *queue,
                        MPIX_Halo *halo, MPI_Fint *ierror)
{
    MPIX_Halo_side *c_sides;
    int rc;

    rc = mpix_f08_sides(count, sides, &c_sides);
    if (rc == MPI_SUCCESS) {
        rc = MPIX_Halo_init(PMPI_Comm_f2c(*comm), count, c_sides, *queue, halo);
        free(c_sides);
    }
    mpix_f08_return(ierror, rc);
}

void mpix_f08_halo_init_list(const MPI_Fint *comm, int count,
                             const MPI_Fint *ranks, const MPI_Fint *sendtags,
                             const MPI_Fint *recvtags,
                             const mpix_f08_side_t *sides,
                             const MPIX_Queue *queue, MPIX_Halo *halo,
                             MPI_Fint *ierror)
{
    MPIX_Halo_side *c_sides;
    int rc;

    rc = mpix_f08_sides(count, sides, &c_sides);
    if (rc == MPI_SUCCESS) {
        rc = MPIX_Halo_init_list(PMPI_Comm_f2c(*comm), count, ranks, sendtags,
                                 recvtags, c_sides, *queue, halo);
        free(c_sides);
    }
    mpix_f08_return(ierror, rc);
}

void mpix_f08_halo_start(const MPIX_Halo *halo, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Halo_start(*halo));
}

void mpix_f08_halo_wait(const MPIX_Halo *halo, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Halo_wait(*halo));
}

void mpix_f08_halo_free(MPIX_Halo *halo, MPI_Fint *ierror)
{
    mpix_f08_return(ierror, MPIX_Halo_free(halo));
}
