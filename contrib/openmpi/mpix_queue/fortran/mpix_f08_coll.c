/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_f08_coll.c - the module's calls on persistent collectives.
 */
#include "mpix_f08.h"

/* The buffers of a call. Returns as mpix_f08_buffer(). */
static int mpix_f08_buffers(const CFI_cdesc_t *send, const CFI_cdesc_t *recv,
                            void **sendbuf_p, void **recvbuf_p)
{
    int rc = mpix_f08_buffer(send, sendbuf_p);

    return (rc == MPI_SUCCESS) ? mpix_f08_buffer(recv, recvbuf_p) : rc;
}

/* Returns a request, which is there on success only. */
static void mpix_f08_made(MPI_Fint *request, MPI_Request handle,
                          MPI_Fint *ierror, int rc)
{
    if (rc == MPI_SUCCESS) {
        *request = PMPI_Request_c2f(handle);
    }
    mpix_f08_return(ierror, rc);
}

void mpix_f08_barrier_init(const MPI_Fint *comm, const MPI_Fint *info,
                           MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request handle = MPI_REQUEST_NULL;
    int rc;

    rc = MPIX_Barrier_init(PMPI_Comm_f2c(*comm), PMPI_Info_f2c(*info), &handle);
    mpix_f08_made(request, handle, ierror, rc);
}

void mpix_f08_bcast_init(const CFI_cdesc_t *desc, int count,
                         const MPI_Fint *datatype, int root,
                         const MPI_Fint *comm, const MPI_Fint *info,
                         MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request handle = MPI_REQUEST_NULL;
    void *buffer;
    int rc;

    rc = mpix_f08_buffer(desc, &buffer);
    if (rc == MPI_SUCCESS) {
        rc = MPIX_Bcast_init(buffer, count, PMPI_Type_f2c(*datatype), root,
                             PMPI_Comm_f2c(*comm), PMPI_Info_f2c(*info),
                             &handle);
    }
    mpix_f08_made(request, handle, ierror, rc);
}

void mpix_f08_allreduce_init(const CFI_cdesc_t *send, const CFI_cdesc_t *recv,
                             int count, const MPI_Fint *datatype,
                             const MPI_Fint *op, const MPI_Fint *comm,
                             const MPI_Fint *info, MPI_Fint *request,
                             MPI_Fint *ierror)
{
    MPI_Request handle = MPI_REQUEST_NULL;
    void *sendbuf, *recvbuf;
    int rc;

    rc = mpix_f08_buffers(send, recv, &sendbuf, &recvbuf);
    if (rc == MPI_SUCCESS) {
        rc = MPIX_Allreduce_init(sendbuf, recvbuf, count,
                                 PMPI_Type_f2c(*datatype), PMPI_Op_f2c(*op),
                                 PMPI_Comm_f2c(*comm), PMPI_Info_f2c(*info),
                                 &handle);
    }
    mpix_f08_made(request, handle, ierror, rc);
}

void mpix_f08_reduce_init(const CFI_cdesc_t *send, const CFI_cdesc_t *recv,
                          int count, const MPI_Fint *datatype,
                          const MPI_Fint *op, int root, const MPI_Fint *comm,
                          const MPI_Fint *info, MPI_Fint *request,
                          MPI_Fint *ierror)
{
    MPI_Request handle = MPI_REQUEST_NULL;
    void *sendbuf, *recvbuf;
    int rc;

    rc = mpix_f08_buffers(send, recv, &sendbuf, &recvbuf);
    if (rc == MPI_SUCCESS) {
        rc = MPIX_Reduce_init(sendbuf, recvbuf, count, PMPI_Type_f2c(*datatype),
                              PMPI_Op_f2c(*op), root, PMPI_Comm_f2c(*comm),
                              PMPI_Info_f2c(*info), &handle);
    }
    mpix_f08_made(request, handle, ierror, rc);
}

/* Functions with blocks of the same length. */
#define MPIX_F08_BLOCKS(_name, _func) \
    void _name(const CFI_cdesc_t *send, int sendcount, \
               const MPI_Fint *sendtype, const CFI_cdesc_t *recv, \
               int recvcount, const MPI_Fint *recvtype, const MPI_Fint *comm, \
               const MPI_Fint *info, MPI_Fint *request, MPI_Fint *ierror) \
    { \
        MPI_Request handle = MPI_REQUEST_NULL; \
        void *sendbuf, *recvbuf; \
        int rc; \
        \
        rc = mpix_f08_buffers(send, recv, &sendbuf, &recvbuf); \
        if (rc == MPI_SUCCESS) { \
            rc = _func(sendbuf, sendcount, PMPI_Type_f2c(*sendtype), recvbuf, \
                       recvcount, PMPI_Type_f2c(*recvtype), \
                       PMPI_Comm_f2c(*comm), PMPI_Info_f2c(*info), &handle); \
        } \
        mpix_f08_made(request, handle, ierror, rc); \
    }

MPIX_F08_BLOCKS(mpix_f08_allgather_init, MPIX_Allgather_init)
MPIX_F08_BLOCKS(mpix_f08_alltoall_init, MPIX_Alltoall_init)
MPIX_F08_BLOCKS(mpix_f08_neighbor_alltoall_init, MPIX_Neighbor_alltoall_init)

void mpix_f08_neighbor_alltoallv_init(
        const CFI_cdesc_t *send, const MPI_Fint *sendcounts,
        const MPI_Fint *sdispls, const MPI_Fint *sendtype,
        const CFI_cdesc_t *recv, const MPI_Fint *recvcounts,
        const MPI_Fint *rdispls, const MPI_Fint *recvtype, const MPI_Fint *comm,
        const MPI_Fint *info, MPI_Fint *request, MPI_Fint *ierror)
{
    MPI_Request handle = MPI_REQUEST_NULL;
    void *sendbuf, *recvbuf;
    int rc;

    rc = mpix_f08_buffers(send, recv, &sendbuf, &recvbuf);
    if (rc == MPI_SUCCESS) {
        rc = MPIX_Neighbor_alltoallv_init(sendbuf, sendcounts, sdispls,
                                          PMPI_Type_f2c(*sendtype), recvbuf,
                                          recvcounts, rdispls,
                                          PMPI_Type_f2c(*recvtype),
                                          PMPI_Comm_f2c(*comm),
                                          PMPI_Info_f2c(*info), &handle);
    }
    mpix_f08_made(request, handle, ierror, rc);
}
