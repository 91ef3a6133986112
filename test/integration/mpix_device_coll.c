/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_device_coll.c - collectives from and to the memory of a device.
 *
 * What a stream makes is compared to what MPI makes of the same in memory of
 * the host.
 */
#include "mpix_gpu.h"

#include <stdlib.h>
#include <string.h>

#define BYTES     65536
#define NUM_INTS  1000
#define MANY_INTS 40000 /* A reduction that goes around in a ring */

#define ARRAY_SIZE(_array) (sizeof(_array) / sizeof((_array)[0]))


/* Collectives of ints. One makes the request, and the other one does the same
 * at once; both get MPI_IN_PLACE as what is sent. */
typedef struct coll {
    const char *name;
    int        has_in_place;
    int        (*init)(const void *send, void *recv, int count, MPI_Comm comm,
                       MPI_Request *request);
    int        (*run)(const void *send, void *recv, int count, MPI_Comm comm);
} coll_t;

static int bcast_init(const void *send, void *recv, int count, MPI_Comm comm,
                      MPI_Request *request)
{
    return MPIX_Bcast_init(recv, count, MPI_INT, mpix_test.size - 1, comm,
                           MPI_INFO_NULL, request);
}

static int bcast_run(const void *send, void *recv, int count, MPI_Comm comm)
{
    return MPI_Bcast(recv, count, MPI_INT, mpix_test.size - 1, comm);
}

static int allreduce_init(const void *send, void *recv, int count,
                          MPI_Comm comm, MPI_Request *request)
{
    return MPIX_Allreduce_init(send, recv, count, MPI_INT, MPI_SUM, comm,
                               MPI_INFO_NULL, request);
}

static int allreduce_run(const void *send, void *recv, int count, MPI_Comm comm)
{
    return MPI_Allreduce(send, recv, count, MPI_INT, MPI_SUM, comm);
}

/* In place is for the root alone */
static const void *reduce_send(const void *send, void *recv)
{
    return ((send == MPI_IN_PLACE) && (mpix_test.rank != 0)) ? recv : send;
}

static int reduce_init(const void *send, void *recv, int count, MPI_Comm comm,
                       MPI_Request *request)
{
    return MPIX_Reduce_init(reduce_send(send, recv), recv, count, MPI_INT,
                            MPI_MAX, 0, comm, MPI_INFO_NULL, request);
}

static int reduce_run(const void *send, void *recv, int count, MPI_Comm comm)
{
    /* OpenMPI's result elsewhere is undefined: as if it had not been called */
    char *copy = malloc(count * sizeof(int));
    int rc;

    memcpy(copy, recv, count * sizeof(int));
    rc = MPI_Reduce(reduce_send(send, recv), recv, count, MPI_INT, MPI_MAX, 0,
                    comm);
    if (mpix_test.rank != 0) {
        memcpy(recv, copy, count * sizeof(int));
    }
    free(copy);
    return rc;
}

static int allgather_init(const void *send, void *recv, int count,
                          MPI_Comm comm, MPI_Request *request)
{
    count /= mpix_test.size;
    return MPIX_Allgather_init(send, count, MPI_INT, recv, count, MPI_INT, comm,
                               MPI_INFO_NULL, request);
}

static int allgather_run(const void *send, void *recv, int count, MPI_Comm comm)
{
    count /= mpix_test.size;
    return MPI_Allgather(send, count, MPI_INT, recv, count, MPI_INT, comm);
}

static int alltoall_init(const void *send, void *recv, int count, MPI_Comm comm,
                         MPI_Request *request)
{
    count /= mpix_test.size;
    return MPIX_Alltoall_init(send, count, MPI_INT, recv, count, MPI_INT, comm,
                              MPI_INFO_NULL, request);
}

static int alltoall_run(const void *send, void *recv, int count, MPI_Comm comm)
{
    count /= mpix_test.size;
    return MPI_Alltoall(send, count, MPI_INT, recv, count, MPI_INT, comm);
}

static int neighbor_init(const void *send, void *recv, int count, MPI_Comm comm,
                         MPI_Request *request)
{
    return MPIX_Neighbor_alltoall_init(send, count / 2, MPI_INT, recv,
                                       count / 2, MPI_INT, comm, MPI_INFO_NULL,
                                       request);
}

static int neighbor_run(const void *send, void *recv, int count, MPI_Comm comm)
{
    return MPI_Neighbor_alltoall(send, count / 2, MPI_INT, recv, count / 2,
                                 MPI_INT, comm);
}

static const coll_t colls[] = {
    {"Bcast", 0, bcast_init, bcast_run},
    {"Allreduce", 1, allreduce_init, allreduce_run},
    {"Reduce", 1, reduce_init, reduce_run},
    {"Allgather", 1, allgather_init, allgather_run},
    {"Alltoall", 1, alltoall_init, alltoall_run},
    {"Neighbor_alltoall", 0, neighbor_init, neighbor_run}
};

/* One use, on the queue */
static void run_request(MPI_Request *request)
{
    MPIX_OK(MPIX_Match(request, MPI_STATUS_IGNORE));
    MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, request));
    MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, request));
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPI_Request_free(request));
}

/* Places: bits of what is sent and what comes in the device; 4: in place. */
static void run_coll(const coll_t *coll, int count, MPI_Comm comm, int places)
{
    const size_t size = count * sizeof(int);
    int *images       = malloc(2 * size);
    char *send        = mpix_place_get(places & 1, size);
    char *recv        = mpix_place_get(places & 2, size);
    MPI_Request request;
    int i;

    for (i = 0; i < count; ++i) {
        images[i]         = i * 13 + mpix_test.rank;
        images[count + i] = i * 3 - mpix_test.rank;
    }
    mpix_gpu_copy(&mpix_gpu, send, images, size);
    mpix_gpu_copy(&mpix_gpu, recv, images + count, size);
    MPIX_OK(coll->run((places & 4) ? MPI_IN_PLACE : images, images + count,
                      count, comm));
    MPIX_OK(coll->init((places & 4) ? MPI_IN_PLACE : send, recv, count, comm,
                       &request));
    run_request(&request);
    mpix_gpu_copy(&mpix_gpu, images, recv, size);
    MPIX_CHECK(!memcmp(images, images + count, size), "%s of %d, places %d",
               coll->name, count, places);
    mpix_place_put(places & 1, send);
    mpix_place_put(places & 2, recv);
    free(images);
}

static void test_colls(void)
{
    int is_periodic = 1;
    int size        = mpix_test.size;
    MPI_Comm comm;
    unsigned i;
    int places;

    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &is_periodic, 0, &comm);
    for (i = 0; i < ARRAY_SIZE(colls); ++i) {
        for (places = 1; places < 4; ++places) {
            run_coll(&colls[i], NUM_INTS * size, comm, places);
        }
        run_coll(&colls[i], MANY_INTS, comm, 3);
        if (colls[i].has_in_place) {
            run_coll(&colls[i], NUM_INTS * size, comm, 2 | 4);
            run_coll(&colls[i], MANY_INTS, comm, 2 | 4);
        }
    }
    MPI_Comm_free(&comm);
}

/* Elements with gaps, if these are equal */
static void test_maxloc(void)
{
    struct {
        double value;
        int    rank;
        int    gap;
    } pairs[2][50];
    const size_t size = sizeof(pairs[0]);
    char *device      = mpix_gpu_alloc(&mpix_gpu, 2 * size);
    MPI_Request request;
    int i;

    for (i = 0; i < 50; ++i) {
        pairs[0][i].value = (i * 7 + mpix_test.rank * 3) % 11;
        pairs[0][i].rank  = mpix_test.rank;
        pairs[0][i].gap   = -1;
        pairs[1][i]       = pairs[0][i];
        pairs[1][i].gap   = i;
    }
    mpix_gpu_copy(&mpix_gpu, device, pairs, 2 * size);
    MPI_Allreduce(pairs[0], pairs[1], 50, MPI_DOUBLE_INT, MPI_MAXLOC,
                  MPI_COMM_WORLD);
    MPIX_OK(MPIX_Allreduce_init(device, device + size, 50, MPI_DOUBLE_INT,
                                MPI_MAXLOC, MPI_COMM_WORLD, MPI_INFO_NULL,
                                &request));
    run_request(&request);
    mpix_gpu_copy(&mpix_gpu, pairs[0], device + size, size);
    for (i = 0; i < 50; ++i) {
        MPIX_CHECK((pairs[0][i].value == pairs[1][i].value) &&
                   (pairs[0][i].rank == pairs[1][i].rank) &&
                   (pairs[0][i].gap == i),
                   "%d: %g of %d, %d", i, pairs[0][i].value, pairs[0][i].rank,
                   pairs[0][i].gap);
    }
    mpix_gpu_free(&mpix_gpu, device);
}

/* Blocks with gaps that differ are neither moved nor reduced */
static void test_colls_refused(void)
{
    const int lengths[] = {2, 1, 3}, places[] = {7, 1, 20};
    char *device        = mpix_gpu_alloc(&mpix_gpu, BYTES);
    MPI_Request request;
    MPI_Datatype type;

    MPIX_OK(MPIX_Allreduce_init(device, device + 1000, 10, MPI_SHORT_INT,
                                MPI_MAXLOC, MPI_COMM_WORLD, MPI_INFO_NULL,
                                &request));
    mpix_check_refused(MPIX_Match(&request, MPI_STATUS_IGNORE), MPI_ERR_TYPE,
                       "have a kernel pack it");
    MPIX_OK(MPI_Request_free(&request));

    MPI_Type_indexed(3, lengths, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    if (mpix_test.size > 1) {
        MPIX_OK(MPIX_Bcast_init(device, 1, type, 0, MPI_COMM_WORLD,
                                MPI_INFO_NULL, &request));
        mpix_check_refused(MPIX_Match(&request, MPI_STATUS_IGNORE),
                           MPI_ERR_TYPE, "have a kernel pack it");
        MPIX_OK(MPI_Request_free(&request));
    }
    MPI_Type_free(&type);
    mpix_gpu_free(&mpix_gpu, device);
}

static const mpix_test_case_t cases[] = {
    {"all", test_colls},
    {"maxloc", test_maxloc},
    {"refused", test_colls_refused},
    {NULL, NULL}
};

int main(int argc, char **argv)
{
    return mpix_gpu_main(cases, "mpix_device_coll", argc, argv);
}
