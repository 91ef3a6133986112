/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_threads.c - what is refused when MPI has no threads, or is not there.
 */
#include "mpix_test.h"

#include <stdio.h>


/* A call that needs MPI; its code. */
static int refused(void *stream)
{
    MPIX_Queue queue = MPIX_QUEUE_NULL;
    int code         = MPIX_Queue_init(MPIX_QUEUE_HOST, stream, &queue);

    MPIX_CHECK(queue == MPIX_QUEUE_NULL, "a queue was made");
    return code;
}

int main(int argc, char **argv)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPIX_Queue_stats stats;
    int level, word = 0;
    void *stream;

    MPIX_CHECK(MPIX_Host_stream_create(&stream) == MPI_SUCCESS,
               "streams need no MPI");
    MPIX_CHECK(refused(stream) == MPI_ERR_OTHER, "without MPI");

    /* Past this library, which would ask for more */
    PMPI_Init(&argc, &argv);
    PMPI_Query_thread(&level);
    if (level > MPI_THREAD_SINGLE) {
        printf("skipped: PMPI_Init gives threads here\n");
        MPI_Finalize();
        return 77;
    }

    MPI_Comm_rank(MPI_COMM_WORLD, &mpix_test.rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPIX_IS(MPI_ERR_OTHER, refused(stream));

    MPIX_OK(MPI_Send_init(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request));
    MPIX_IS(MPI_ERR_OTHER, MPIX_Match(&request, MPI_STATUS_IGNORE));
    MPIX_IS(MPI_ERR_OTHER, MPIX_Imatch(&request));
    MPIX_OK(MPI_Request_free(&request));

    MPIX_OK(MPIX_Queue_get_stats(&stats));
    MPIX_CHECK((stats.starts == 0) && (stats.provider[0] == '\0'), "stats");

    MPI_Finalize();
    MPIX_CHECK(refused(stream) == MPI_ERR_OTHER, "without MPI");
    MPIX_CHECK(MPIX_Host_stream_free(&stream) == MPI_SUCCESS, "stream");
    printf("mpix_threads: rank %d, %d checks failed\n", mpix_test.rank,
           mpix_test.failed);
    return (mpix_test.failed == 0) ? 0 : 1;
}
