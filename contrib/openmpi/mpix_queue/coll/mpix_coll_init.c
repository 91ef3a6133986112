/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_coll_init.c - the functions that make persistent collectives.
 *
 * MPI 4 has them as MPI_*_init, OpenMPI 4.1 as MPIX_*_init, other libraries of
 * MPI 3 not at all. What is there makes the request, so that it can be started
 * by the host until it is matched; else it is a receive from nobody.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "mpix_coll.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Tags come again after so many collectives of a communicator: MPI_TAG_UB is at
 * least 32767 */
#define MPIX_COLL_TAG_MASK 0x7fff


/* MPI's functions, NULL where it has none */
#define MPIX_COLL_WEAK(_name, ...) \
    extern int PMPI_##_name(__VA_ARGS__, MPI_Comm, MPI_Info, MPI_Request*) \
            __attribute__((weak)); \
    extern int PMPIX_##_name(__VA_ARGS__, MPI_Comm, MPI_Info, MPI_Request*) \
            __attribute__((weak));

extern int PMPI_Barrier_init(MPI_Comm, MPI_Info, MPI_Request*)
        __attribute__((weak));
extern int PMPIX_Barrier_init(MPI_Comm, MPI_Info, MPI_Request*)
        __attribute__((weak));
MPIX_COLL_WEAK(Bcast_init, void*, int, MPI_Datatype, int)
MPIX_COLL_WEAK(Allreduce_init, const void*, void*, int, MPI_Datatype, MPI_Op)
MPIX_COLL_WEAK(Reduce_init, const void*, void*, int, MPI_Datatype, MPI_Op, int)
MPIX_COLL_WEAK(Allgather_init, const void*, int, MPI_Datatype, void*, int,
               MPI_Datatype)
MPIX_COLL_WEAK(Alltoall_init, const void*, int, MPI_Datatype, void*, int,
               MPI_Datatype)
MPIX_COLL_WEAK(Neighbor_alltoall_init, const void*, int, MPI_Datatype, void*,
               int, MPI_Datatype)
MPIX_COLL_WEAK(Neighbor_alltoallv_init, const void*, const int[], const int[],
               MPI_Datatype, void*, const int[], const int[], MPI_Datatype)

/* Call the one that there is; -1 if there is none. */
#define MPIX_COLL_NATIVE(_name, ...) \
    ((PMPI_##_name != NULL)  ? PMPI_##_name(__VA_ARGS__) : \
     (PMPIX_##_name != NULL) ? PMPIX_##_name(__VA_ARGS__) : \
                               -1)


/* Has MPI make the request; -1 if it has no such function. MPI checks the
 * arguments, and raises its errors. */
static int mpix_coll_native(const mpix_coll_args_t *a, MPI_Request *request)
{
    switch (a->kind) {
    case MPIX_COLL_BARRIER:
        return MPIX_COLL_NATIVE(Barrier_init, a->comm, a->info, request);
    case MPIX_COLL_BCAST:
        return MPIX_COLL_NATIVE(Bcast_init, a->recvbuf, a->recvcount,
                                a->recvtype, a->root, a->comm, a->info,
                                request);
    case MPIX_COLL_ALLREDUCE:
        return MPIX_COLL_NATIVE(Allreduce_init, a->sendbuf, a->recvbuf,
                                a->recvcount, a->recvtype, a->op, a->comm,
                                a->info, request);
    case MPIX_COLL_REDUCE:
        return MPIX_COLL_NATIVE(Reduce_init, a->sendbuf, a->recvbuf,
                                a->recvcount, a->recvtype, a->op, a->root,
                                a->comm, a->info, request);
    case MPIX_COLL_ALLGATHER:
        return MPIX_COLL_NATIVE(Allgather_init, a->sendbuf, a->sendcount,
                                a->sendtype, a->recvbuf, a->recvcount,
                                a->recvtype, a->comm, a->info, request);
    case MPIX_COLL_ALLTOALL:
        return MPIX_COLL_NATIVE(Alltoall_init, a->sendbuf, a->sendcount,
                                a->sendtype, a->recvbuf, a->recvcount,
                                a->recvtype, a->comm, a->info, request);
    case MPIX_COLL_NEIGHBOR_ALLTOALL:
        return MPIX_COLL_NATIVE(Neighbor_alltoall_init, a->sendbuf,
                                a->sendcount, a->sendtype, a->recvbuf,
                                a->recvcount, a->recvtype, a->comm, a->info,
                                request);
    case MPIX_COLL_NEIGHBOR_ALLTOALLV:
        return MPIX_COLL_NATIVE(Neighbor_alltoallv_init, a->sendbuf,
                                a->sendcounts, a->sdispls, a->sendtype,
                                a->recvbuf, a->recvcounts, a->rdispls,
                                a->recvtype, a->comm, a->info, request);
    }
    return -1;
}

/* MPI_IN_PLACE stands for what is sent, and where a reduction has a root only
 * there. */
static int mpix_coll_check_buffers(const mpix_coll_args_t *args)
{
    int rank, is_root;

    PMPI_Comm_rank(args->comm, &rank);
    is_root = (args->kind != MPIX_COLL_REDUCE) || (rank == args->root);
    if ((args->sendbuf == MPI_IN_PLACE) && !is_root) {
        return mpix_fail(args->func, MPI_ERR_BUFFER,
                         "the send buffer is MPI_IN_PLACE, at another rank "
                         "than the root");
    }
    if ((args->recvbuf == MPI_IN_PLACE) && is_root) {
        return mpix_fail(args->func, MPI_ERR_BUFFER,
                         "MPI_IN_PLACE is no buffer to receive into");
    }
    return MPI_SUCCESS;
}

/* What MPI would check. Counts and ranks of neighbours are checked with their
 * messages. Returns an MPI code that is not raised. */
static int mpix_coll_check_args(const mpix_coll_args_t *args)
{
    const int has_sendtype = (args->kind >= MPIX_COLL_ALLGATHER) &&
                             (args->sendbuf != MPI_IN_PLACE);
    int is_inter, size;

    PMPI_Comm_test_inter(args->comm, &is_inter);
    PMPI_Comm_size(args->comm, &size);
    if (is_inter) {
        return mpix_fail(args->func, MPI_ERR_COMM,
                         "the communicator is an intercommunicator");
    } else if ((args->root < 0) || (args->root >= size)) {
        return mpix_fail(args->func, MPI_ERR_ROOT,
                         "root %d is no rank of the communicator", args->root);
    } else if ((args->recvcount < 0) || (args->sendcount < 0)) {
        return mpix_fail(args->func, MPI_ERR_COUNT, "a count is negative");
    } else if (((args->kind != MPIX_COLL_BARRIER) &&
                (args->recvtype == MPI_DATATYPE_NULL)) ||
               (has_sendtype && (args->sendtype == MPI_DATATYPE_NULL))) {
        return mpix_fail(args->func, MPI_ERR_TYPE,
                         "a datatype is MPI_DATATYPE_NULL");
    }
    return mpix_coll_check_buffers(args);
}

/* Whether requests are to be MPI's own collectives where it has them. */
static int mpix_coll_wants_native(void)
{
    const char *value = getenv("MPIX_QUEUE_NATIVE_COLLECTIVES");

    return (value == NULL) || (*value == '\0') ||
           (strchr("nN0", *value) == NULL);
}

/* Whether MPI takes a new request for active. */
static int mpix_coll_seems_active(MPI_Request request)
{
    int is_inactive = 0;

    PMPI_Request_get_status(request, &is_inactive, MPI_STATUS_IGNORE);
    return !is_inactive;
}

/* Whether a count does not fit into the int that those functions take. */
static int mpix_coll_is_large(const mpix_coll_args_t *args)
{
    return (args->sendcount > INT_MAX) || (args->recvcount > INT_MAX);
}

/* Makes the request. Errors are raised. */
static int mpix_coll_make_request(mpix_coll_t *coll,
                                  const mpix_coll_args_t *args,
                                  MPI_Request *request)
{
    int rc = (mpix_coll_wants_native() && !mpix_coll_is_large(args)) ?
                     mpix_coll_native(args, request) :
                     -1;

    coll->is_native = (rc != -1);
    if (coll->is_native) {
        coll->seems_active = (rc == MPI_SUCCESS) &&
                             mpix_coll_seems_active(*request);
        return rc;
    }

    rc = mpix_coll_check_args(args);
    if (rc != MPI_SUCCESS) {
        return mpix_raise(args->comm, rc);
    }

    if ((args->kind == MPIX_COLL_ALLREDUCE) ||
        (args->kind == MPIX_COLL_REDUCE)) {
        rc = PMPI_Reduce_local(NULL, NULL, 0, args->recvtype, args->op);
    }
    return (rc == MPI_SUCCESS) ?
                   PMPI_Recv_init(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0,
                                  args->comm, request) :
                   rc;
}

/* All ranks call in the same order, so that they count alike. */
static int mpix_coll_count(MPI_Comm handle, int *tag_p)
{
    mpix_comm_t *comm;
    int rc;

    rc = mpix_comm_get(handle, &comm);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    mpix_lock();
    *tag_p = comm->colls++ & MPIX_COLL_TAG_MASK;
    mpix_comm_put(comm);
    mpix_unlock();
    return MPI_SUCCESS;
}

/* Makes the request, the steps and the record. */
static int mpix_coll_make(mpix_coll_t *coll, const mpix_coll_args_t *args,
                          MPI_Request *request)
{
    mpix_req_args_t record = {
        .maker    = coll->func,
        .kind     = MPIX_REQ_COLL,
        .datatype = MPI_BYTE,
        .rank     = MPI_PROC_NULL,
        .comm     = args->comm,
        .coll     = coll,
        .req_p    = &coll->req
    };
    MPI_Request made = MPI_REQUEST_NULL;
    int rc;

    rc = mpix_coll_make_request(coll, args, &made);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = mpix_coll_build(coll, args);
    if (rc == MPI_SUCCESS) {
        record.is_stand_in = !coll->is_native;
        rc                 = mpix_raise(args->comm,
                                        mpix_request_record(&record, made));
    }
    if (rc != MPI_SUCCESS) {
        PMPI_Request_free(&made);
        return rc;
    }
    *request = made;
    return MPI_SUCCESS;
}

static int mpix_coll_init(const mpix_coll_args_t *args, MPI_Request *request)
{
    mpix_coll_t *coll;
    int rc, tag;

    rc = mpix_check_comm(args->func, args->comm);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    if (request == NULL) {
        return mpix_raise(args->comm, mpix_fail(args->func, MPI_ERR_ARG,
                                                "the request is NULL"));
    }

    rc   = mpix_coll_count(args->comm, &tag);
    coll = (rc == MPI_SUCCESS) ? mpix_coll_create(args->func) : NULL;
    if (coll == NULL) {
        return mpix_raise(args->comm, mpix_fail(args->func, MPI_ERR_NO_MEM,
                                                "no memory"));
    }

    coll->tag = tag;
    rc        = mpix_coll_make(coll, args, request);
    if (rc != MPI_SUCCESS) {
        mpix_coll_destroy(coll);
    }
    return rc;
}

/* A function of this name. The last arguments are what it is given, as members
 * of mpix_coll_args_t. */
#define MPIX_COLL_MAKER(_func, _kind, _params, ...) \
    int _func _params \
    { \
        const mpix_coll_args_t args = { \
            .func = #_func, .kind = _kind, .comm = comm, .info = info, \
            __VA_ARGS__ \
        }; \
        \
        return mpix_coll_init(&args, request); \
    }

#define MPIX_COLL_BARRIER_MAKER(_func) \
    MPIX_COLL_MAKER(_func, MPIX_COLL_BARRIER, \
                    (MPI_Comm comm, MPI_Info info, MPI_Request *request), \
                    .root = 0)

#define MPIX_COLL_BCAST_MAKER(_func, _count_t) \
    MPIX_COLL_MAKER(_func, MPIX_COLL_BCAST, \
                    (void *buffer, _count_t count, MPI_Datatype datatype, \
                     int root, MPI_Comm comm, MPI_Info info, \
                     MPI_Request *request), \
                    .recvbuf = buffer, .recvcount = count, \
                    .recvtype = datatype, .root = root)

#define MPIX_COLL_ALLREDUCE_MAKER(_func, _count_t) \
    MPIX_COLL_MAKER(_func, MPIX_COLL_ALLREDUCE, \
                    (const void *sendbuf, void *recvbuf, _count_t count, \
                     MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, \
                     MPI_Info info, MPI_Request *request), \
                    .sendbuf = sendbuf, .sendcount = count, \
                    .sendtype = datatype, .recvbuf = recvbuf, \
                    .recvcount = count, .recvtype = datatype, .op = op)

#define MPIX_COLL_REDUCE_MAKER(_func, _count_t) \
    MPIX_COLL_MAKER(_func, MPIX_COLL_REDUCE, \
                    (const void *sendbuf, void *recvbuf, _count_t count, \
                     MPI_Datatype datatype, MPI_Op op, int root, \
                     MPI_Comm comm, MPI_Info info, MPI_Request *request), \
                    .sendbuf = sendbuf, .sendcount = count, \
                    .sendtype = datatype, .recvbuf = recvbuf, \
                    .recvcount = count, .recvtype = datatype, .op = op, \
                    .root = root)

/* Exchanges of blocks of one length. */
#define MPIX_COLL_BLOCKS_MAKER(_func, _count_t, _kind) \
    MPIX_COLL_MAKER(_func, _kind, \
                    (const void *sendbuf, _count_t sendcount, \
                     MPI_Datatype sendtype, void *recvbuf, \
                     _count_t recvcount, MPI_Datatype recvtype, \
                     MPI_Comm comm, MPI_Info info, MPI_Request *request), \
                    .sendbuf = sendbuf, .sendcount = sendcount, \
                    .sendtype = sendtype, .recvbuf = recvbuf, \
                    .recvcount = recvcount, .recvtype = recvtype)

#define MPIX_COLL_ALLTOALLV_MAKER(_func) \
    MPIX_COLL_MAKER(_func, MPIX_COLL_NEIGHBOR_ALLTOALLV, \
                    (const void *sendbuf, const int sendcounts[], \
                     const int sdispls[], MPI_Datatype sendtype, \
                     void *recvbuf, const int recvcounts[], \
                     const int rdispls[], MPI_Datatype recvtype, \
                     MPI_Comm comm, MPI_Info info, MPI_Request *request), \
                    .sendbuf = sendbuf, .sendcounts = sendcounts, \
                    .sdispls = sdispls, .sendtype = sendtype, \
                    .recvbuf = recvbuf, .recvcounts = recvcounts, \
                    .rdispls = rdispls, .recvtype = recvtype)

/* MPI 4's names, those without MPI 4, and those for large counts */
MPIX_COLL_BARRIER_MAKER(MPI_Barrier_init)
MPIX_COLL_BARRIER_MAKER(MPIX_Barrier_init)
MPIX_COLL_BCAST_MAKER(MPI_Bcast_init, int)
MPIX_COLL_BCAST_MAKER(MPIX_Bcast_init, int)
MPIX_COLL_BCAST_MAKER(MPIX_Bcast_init_c, MPI_Count)
MPIX_COLL_ALLREDUCE_MAKER(MPI_Allreduce_init, int)
MPIX_COLL_ALLREDUCE_MAKER(MPIX_Allreduce_init, int)
MPIX_COLL_ALLREDUCE_MAKER(MPIX_Allreduce_init_c, MPI_Count)
MPIX_COLL_REDUCE_MAKER(MPI_Reduce_init, int)
MPIX_COLL_REDUCE_MAKER(MPIX_Reduce_init, int)
MPIX_COLL_REDUCE_MAKER(MPIX_Reduce_init_c, MPI_Count)
MPIX_COLL_BLOCKS_MAKER(MPI_Allgather_init, int, MPIX_COLL_ALLGATHER)
MPIX_COLL_BLOCKS_MAKER(MPIX_Allgather_init, int, MPIX_COLL_ALLGATHER)
MPIX_COLL_BLOCKS_MAKER(MPIX_Allgather_init_c, MPI_Count, MPIX_COLL_ALLGATHER)
MPIX_COLL_BLOCKS_MAKER(MPI_Alltoall_init, int, MPIX_COLL_ALLTOALL)
MPIX_COLL_BLOCKS_MAKER(MPIX_Alltoall_init, int, MPIX_COLL_ALLTOALL)
MPIX_COLL_BLOCKS_MAKER(MPIX_Alltoall_init_c, MPI_Count, MPIX_COLL_ALLTOALL)
MPIX_COLL_BLOCKS_MAKER(MPI_Neighbor_alltoall_init, int,
                       MPIX_COLL_NEIGHBOR_ALLTOALL)
MPIX_COLL_BLOCKS_MAKER(MPIX_Neighbor_alltoall_init, int,
                       MPIX_COLL_NEIGHBOR_ALLTOALL)
MPIX_COLL_ALLTOALLV_MAKER(MPI_Neighbor_alltoallv_init)
MPIX_COLL_ALLTOALLV_MAKER(MPIX_Neighbor_alltoallv_init)
