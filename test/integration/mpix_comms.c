/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_comms.c - messages on communicators of every make. An argument names the
 * binding that has to be in use.
 */
#include "mpix_test.h"

#include <stdio.h>
#include <string.h>

#define TAG 7


/* A rank's one in MPI_COMM_WORLD */
static int world_rank(MPI_Comm comm, int is_inter, int rank)
{
    MPI_Group group, world;
    int result;

    if (is_inter) {
        MPI_Comm_remote_group(comm, &group);
    } else {
        MPI_Comm_group(comm, &group);
    }
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(group, 1, &rank, world, &result);
    MPI_Group_free(&world);
    MPI_Group_free(&group);
    return result;
}

/* A message to one rank and one from another, and the same on MPI_COMM_WORLD at
 * the same time, with the same tag. */
static void use_ranks(MPI_Comm comm, int is_inter, int dest, int source)
{
    const int to[2]   = {dest, world_rank(comm, is_inter, dest)};
    const int from[2] = {source, world_rank(comm, is_inter, source)};
    mpix_test_msg_t sends[2], recvs[2];

    mpix_test_send_init_comm(&sends[0], 10, to, TAG, comm);
    mpix_test_recv_init_comm(&recvs[0], 10, from, TAG, comm);
    mpix_test_send_init(&sends[1], 20, to[1], TAG, 1);
    mpix_test_recv_init(&recvs[1], 20, from[1], TAG, 1);
    mpix_test_match(sends, 2, recvs, 2);
    mpix_test_use_up(sends, recvs, 2, 2);
}

/* In a ring, and then it goes. */
static void use(MPI_Comm *comm)
{
    int rank, size;

    if (*comm == MPI_COMM_NULL) {
        return;
    }
    MPI_Comm_rank(*comm, &rank);
    MPI_Comm_size(*comm, &size);
    use_ranks(*comm, 0, (rank + 1) % size, (rank + size - 1) % size);
    MPI_Comm_free(comm);
}

/* Duplicates of one, some of them at the same time, and of a duplicate */
static void test_dup(void)
{
    MPI_Request requests[2];
    MPI_Comm comms[5];
    int i;

    MPIX_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]));
    MPIX_OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &comms[1]));
    MPIX_OK(MPI_Comm_idup(MPI_COMM_WORLD, &comms[2], &requests[0]));
    MPIX_OK(MPI_Comm_idup(MPI_COMM_WORLD, &comms[3], &requests[1]));
    MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    MPIX_OK(MPI_Comm_dup(comms[3], &comms[4]));
    for (i = 0; i < 5; ++i) {
        use(&comms[i]);
    }
    MPIX_OK(MPI_Comm_dup(MPI_COMM_SELF, &comms[0]));
    use(&comms[0]);
}

/* All in the other order, and those of even rank alone */
static void test_split(void)
{
    MPI_Comm comm;

    MPIX_OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -mpix_test.rank, &comm));
    use(&comm);
    MPIX_OK(MPI_Comm_split(MPI_COMM_WORLD, mpix_test.rank % 2, 0, &comm));
    use(&comm);
    MPIX_OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0,
                                MPI_INFO_NULL, &comm));
    use(&comm);
}

static void test_create(void)
{
    const int is_even = (mpix_test.rank % 2) == 0;
    int range[3]      = {0, mpix_test.size - 1, 2};
    MPI_Group world, even;
    MPI_Comm comm;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, &range, &even);
    MPIX_OK(MPI_Comm_create(MPI_COMM_WORLD, even, &comm));
    MPIX_CHECK((comm != MPI_COMM_NULL) == is_even, "rank %d", mpix_test.rank);
    use(&comm);
    if (is_even) {
        MPIX_OK(MPI_Comm_create_group(MPI_COMM_WORLD, even, 0, &comm));
        use(&comm);
    }
    MPI_Group_free(&even);
    MPI_Group_free(&world);
}

static void test_topologies(void)
{
    const int dims[1] = {mpix_test.size}, periods[1] = {1}, remain[1] = {1};
    const int one     = 1;
    MPI_Comm comm, sub;

    MPIX_OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm));
    MPIX_OK(MPI_Cart_sub(comm, remain, &sub));
    use(&comm);
    use(&sub);
    MPIX_OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &mpix_test.rank, &one,
                                  &mpix_test.right, &one,
                                  MPI_INFO_NULL, 0, &comm));
    use(&comm);
    MPIX_OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &mpix_test.left,
                                           &one, 1, &mpix_test.right,
                                           &one, MPI_INFO_NULL, 0,
                                           &comm));
    use(&comm);
}

/* A graph of two ranks, each the other's neighbour */
static void test_graph(void)
{
    const int index[2] = {1, 2}, edges[2] = {1, 0};
    MPI_Comm comm;

    MPIX_OK(MPI_Graph_create(MPI_COMM_WORLD, 2, index, edges, 0, &comm));
    use(&comm);
}

/* Even and odd ranks: each has one of the other group */
static void test_inter(void)
{
    const int is_odd = mpix_test.rank % 2;
    int remote, own;
    MPI_Comm half, inter, merged;

    MPI_Comm_split(MPI_COMM_WORLD, is_odd, 0, &half);
    MPIX_OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - is_odd, 1,
                                 &inter));
    MPI_Comm_remote_size(inter, &remote);
    MPI_Comm_rank(inter, &own);
    if ((mpix_test.size % 2) == 0) {
        use_ranks(inter, 1, own, own);
    }
    MPIX_OK(MPI_Intercomm_merge(inter, is_odd, &merged));
    use(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* A message with the tag of a collective's messages, on a duplicate that has an
 * id of its own kind: each rank matches both in another order. */
static void test_coll(void)
{
    const int is_odd     = mpix_test.rank % 2;
    int values[2]        = {-1, -1};
    MPI_Request coll     = MPI_REQUEST_NULL;
    MPI_Request message  = MPI_REQUEST_NULL;
    MPI_Request requests[2];
    MPI_Comm comm;

    MPIX_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    if (mpix_test.rank == 0) {
        values[0] = 10;
        values[1] = 20;
    }
    MPIX_OK(MPIX_Bcast_init(&values[0], 1, MPI_INT, 0, comm, MPI_INFO_NULL,
                            &coll));
    if (mpix_test.rank == 0) {
        MPIX_OK(MPI_Send_init(&values[1], 1, MPI_INT, 1, 0, comm, &message));
    } else if (mpix_test.rank == 1) {
        MPIX_OK(MPI_Recv_init(&values[1], 1, MPI_INT, 0, 0, comm, &message));
    }
    requests[is_odd]     = coll;
    requests[1 - is_odd] = message;
    MPIX_OK(MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE));
    MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, 2, requests));
    MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 2, requests));
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_CHECK(values[0] == 10, "the collective has brought %d", values[0]);
    MPIX_CHECK((values[1] == 20) || (mpix_test.rank > 1),
               "the message has brought %d", values[1]);
    MPIX_OK(MPI_Request_free(&coll));
    if (message != MPI_REQUEST_NULL) {
        MPIX_OK(MPI_Request_free(&message));
    }
    MPI_Comm_free(&comm);
}

static void check_binding(const char *name)
{
    MPIX_Queue_info info;

    MPIX_OK(MPIX_Queue_get_info(&info));
    MPIX_CHECK(!strcmp(info.binding, name), "it is %s", info.binding);
    MPIX_CHECK(info.reason[0] != '\0', "no reason");
    MPIX_CHECK(info.mpi_library[0] != '\0', "no name of MPI");
    MPIX_CHECK((info.num_lanes > 0) && (info.lanes[0][0] != '\0'), "%d lanes",
               info.num_lanes);
    MPIX_CHECK(info.thread_level >= MPI_THREAD_FUNNELED, "level %d",
               info.thread_level);
    MPIX_IS(MPI_ERR_ARG, MPIX_Queue_get_info(NULL));
    MPIX_OK(MPIX_Queue_attach(MPI_COMM_WORLD)); /* Nothing is to be done */
    MPIX_IS(MPI_ERR_COMM, MPIX_Queue_attach(MPI_COMM_NULL));
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"dup", test_dup},
        {"split", test_split},
        {"create", test_create},
        {"topologies", test_topologies},
        {"graph", test_graph},
        {"inter", test_inter},
        {"coll", test_coll},
        {NULL}
    };

    mpix_test_init(&argc, &argv);
#ifdef MPICH_VERSION
    if ((argc > 1) && !strcmp(argv[1], "ucx")) {
        (void)mpix_test_end("mpix_comms");
        printf("skipped: the binding ucx is for OpenMPI\n");
        return 77;
    }
#endif
    if (argc > 1) {
        check_binding(argv[1]);
    }
    mpix_test_cases(cases, 1, argv);
    return mpix_test_end("mpix_comms");
}
