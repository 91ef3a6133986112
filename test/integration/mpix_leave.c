/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_leave.c - a program that frees nothing: MPI_Finalize ends all the same.
 *
 * Matched and used requests are left, one whose match never comes, one with a
 * start that the stream has not reached, a communicator, a queue and its
 * stream. Even ranks go past this library's MPI_Finalize.
 */
#include "mpix_test.h"

#include <stdio.h>
#include <unistd.h>


/* Never returns: the stream stays where it is until the process ends. */
static void stop(void *arg)
{
    for (;;) {
        pause();
    }
}

int main(int argc, char **argv)
{
    int right[2] = {0, 0}, left[2] = {0, 0};
    mpix_test_msg_t send, recv, alone, held;
    MPI_Comm comm;

    mpix_test_init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    right[0] = right[1] = mpix_test.right;
    left[0]  = left[1] = mpix_test.left;

    mpix_test_send_init_comm(&send, 10, right, 1, comm);
    mpix_test_recv_init_comm(&recv, 10, left, 1, comm);
    mpix_test_match(&send, 1, &recv, 1);
    mpix_test_run(&send, 1, &recv, 1);

    mpix_test_send_init(&held, 10, mpix_test.right, 3, 1);
    mpix_test_recv_init(&alone, 10, mpix_test.left, 3, 1);
    mpix_test_match(&held, 1, &alone, 1);
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, stop, NULL));
    MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &held.request));

    mpix_test_recv_init(&alone, 10, mpix_test.left, 2, 1);
    MPIX_OK(MPIX_Imatch(&alone.request));
    MPIX_CHECK(recv.wrong == 0, "%llu wrong words",
               (unsigned long long)recv.wrong);

    /* A finalized rank has freed its half of the messages: no start after */
    MPI_Barrier(MPI_COMM_WORLD);
    if ((mpix_test.rank % 2) == 0) {
        ((__typeof__(&MPI_Finalize))mpix_test_past("MPI_Finalize"))();
    } else {
        MPI_Finalize();
    }
    printf("mpix_leave: rank %d, %d checks failed\n", mpix_test.rank,
           mpix_test.failed);
    return (mpix_test.failed == 0) ? 0 : 1;
}
