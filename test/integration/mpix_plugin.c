/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_plugin.c - MPI and this library in a shared object, which a program that
 * knows nothing of MPI loads: mpix_load.c, or python3.
 */
#include "mpix_test.h"

#include <stdio.h>

#define TAG 7

int plugin_main(void);


/* A message to each neighbour in a ring, three times. */
static void use(MPI_Comm comm)
{
    const int right[2] = {mpix_test.right, mpix_test.right};
    const int left[2]  = {mpix_test.left, mpix_test.left};
    mpix_test_msg_t send, recv;

    mpix_test_send_init_comm(&send, 1000, right, TAG, comm);
    mpix_test_recv_init_comm(&recv, 1000, left, TAG, comm);
    mpix_test_match(&send, 1, &recv, 1);
    mpix_test_use_up(&send, &recv, 1, 3);
}

int plugin_main(void)
{
    MPIX_Queue_info info;
    MPI_Comm comm;

    mpix_test_init(NULL, NULL);
    MPIX_OK(MPIX_Queue_get_info(&info));
    printf("mpix_plugin: binding %s: %s\n", info.binding, info.reason);
    use(MPI_COMM_WORLD);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    use(comm);
    MPI_Comm_free(&comm);
    return mpix_test_end("mpix_plugin");
}
