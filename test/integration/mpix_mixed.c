/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_mixed.c - ordinary messages and those of streams, on one communicator
 * with the same tags: neither takes the other's, and each kind stays in order.
 */
#include "mpix_test.h"

#define TAG    5
#define ROUNDS 30
#define BURST  4
#define LARGE  20000 /* Words: beyond MPI's eager limit */


/* What the n-th ordinary message of a rank carries. */
static int ordinary_value(int rank, int round, int i)
{
    return (rank * 1000 + round) * 10 + i;
}

static void post_ordinary(int round, int *values, MPI_Request *requests)
{
    int i;

    for (i = 0; i < BURST; ++i) {
        values[i] = ordinary_value(mpix_test.rank, round, i);
        MPIX_OK(MPI_Isend(&values[i], 1, MPI_INT, mpix_test.right, TAG,
                          MPI_COMM_WORLD, &requests[i]));
    }
}

/* The receives are open to any source and tag. */
static void take_ordinary(int round)
{
    MPI_Status status;
    int i, value;

    for (i = 0; i < BURST; ++i) {
        value = -1;
        MPIX_OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
                         MPI_COMM_WORLD, &status));
        MPIX_CHECK((status.MPI_SOURCE == mpix_test.left) &&
                   (status.MPI_TAG == TAG) &&
                   (value == ordinary_value(mpix_test.left, round, i)),
                   "round %d: source %d tag %d value %d", round,
                   status.MPI_SOURCE, status.MPI_TAG, value);
    }
}

/* Each round makes, matches and uses a new pair, while ordinary messages are on
 * their way and open receives wait. */
static void test_rounds(void)
{
    MPI_Request sends[BURST];
    mpix_test_msg_t send, recv;
    int round, values[BURST];

    for (round = 0; round < ROUNDS; ++round) {
        mpix_test_send_init(&send, 10 + round, mpix_test.right, TAG, round);
        mpix_test_recv_init(&recv, 10 + round, mpix_test.left, TAG, round);

        post_ordinary(round, values, sends);
        mpix_test_match(&send, 1, &recv, 1);
        mpix_test_run(&send, 1, &recv, 1);
        take_ordinary(round);
        MPIX_OK(MPI_Waitall(BURST, sends, MPI_STATUSES_IGNORE));

        mpix_test_use_up(&send, &recv, 1, 1);
    }
}

/* Receives of any source and tag are posted before the first match between two
 * ranks, whose addresses must pass them by. */
static void test_open_receive(void)
{
    MPI_Request open, barrier;
    mpix_test_msg_t send, recv;
    int value = -1, mine = mpix_test.rank;
    MPI_Status status;
    MPI_Comm comm;
    int right[2] = {mpix_test.right, mpix_test.right};
    int left[2]  = {mpix_test.left, mpix_test.left};

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPIX_OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
                      &open));
    MPIX_OK(MPI_Ibarrier(MPI_COMM_WORLD, &barrier));
    mpix_test_send_init_comm(&send, 10, right, TAG, comm);
    mpix_test_recv_init_comm(&recv, 10, left, TAG, comm);
    mpix_test_match(&send, 1, &recv, 1);
    mpix_test_run(&send, 1, &recv, 1);

    MPIX_OK(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
    MPIX_OK(MPI_Send(&mine, 1, MPI_INT, mpix_test.right, TAG, comm));
    MPIX_OK(MPI_Wait(&open, &status));
    MPIX_CHECK((value == mpix_test.left) &&
               (status.MPI_SOURCE == mpix_test.left), "value %d source %d",
               value, status.MPI_SOURCE);

    mpix_test_msg_free(&send);
    mpix_test_msg_free(&recv);
    MPI_Comm_free(&comm);
}

/* A host that waits for its queue lets MPI go on: the peer starts its side only
 * after it has received a large ordinary message. */
static void test_wait_progresses_mpi(void)
{
    MPI_Request requests[2];
    mpix_test_msg_t send, recv, out, in;

    mpix_test_send_init(&send, 10, mpix_test.right, TAG, 1);
    mpix_test_recv_init(&recv, 10, mpix_test.left, TAG, 1);
    mpix_test_msg_init(&out, LARGE, mpix_test.rank, mpix_test.right, 2);
    mpix_test_msg_init(&in, LARGE, mpix_test.left, mpix_test.rank, 2);
    mpix_test_match(&send, 1, &recv, 1);
    mpix_test_fill(&out);

    MPIX_OK(MPI_Irecv(in.words, LARGE, MPI_UINT64_T, mpix_test.left, TAG,
                      MPI_COMM_WORLD, &requests[0]));
    MPIX_OK(MPI_Isend(out.words, LARGE, MPI_UINT64_T, mpix_test.right, TAG,
                      MPI_COMM_WORLD, &requests[1]));
    if ((mpix_test.rank % 2) == 1) {
        MPIX_OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    }
    mpix_test_run(&send, 1, &recv, 1);

    MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    mpix_test_verify(&in);
    mpix_test_msg_free(&send);
    mpix_test_msg_free(&recv);
    mpix_test_msg_free(&out);
    mpix_test_msg_free(&in);
}

/* Persistent requests that are not matched are MPI's, beside matched ones of
 * the same tag. */
static void test_plain_persistent(void)
{
    mpix_test_msg_t send, recv, plain_send, plain_recv;
    MPI_Request requests[2];
    int round;

    mpix_test_send_init(&plain_send, 10, mpix_test.right, TAG, 3);
    mpix_test_send_init(&send, 10, mpix_test.right, TAG, 4);
    mpix_test_recv_init(&plain_recv, 10, mpix_test.left, TAG, 3);
    mpix_test_recv_init(&recv, 10, mpix_test.left, TAG, 4);
    mpix_test_match(&send, 1, &recv, 1);

    for (round = 0; round < ROUNDS; ++round) {
        mpix_test_fill(&plain_send);
        requests[0] = plain_recv.request;
        requests[1] = plain_send.request;
        MPIX_OK(MPI_Startall(2, requests));
        mpix_test_run(&send, 1, &recv, 1);
        MPIX_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        mpix_test_verify(&plain_recv);
    }

    mpix_test_msg_free(&send);
    mpix_test_msg_free(&recv);
    mpix_test_msg_free(&plain_send);
    mpix_test_msg_free(&plain_recv);
}

int main(int argc, char **argv)
{
    mpix_test_init(&argc, &argv);
    test_open_receive();
    test_rounds();
    test_wait_progresses_mpi();
    test_plain_persistent();
    return mpix_test_end("mpix_mixed");
}
