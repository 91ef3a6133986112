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

/* Codes are MPI's classes where MPI is not active. */
static void check_inactive(void *stream)
{
    MPIX_Queue queue = MPIX_QUEUE_NULL;

    MPIX_CHECK(refused(stream) == MPI_ERR_OTHER, "MPIX_Queue_init");
    MPIX_CHECK(MPIX_Create_queue(stream, &queue) == MPI_ERR_OTHER,
               "MPIX_Create_queue");
}

/* The first one that calls MPI for messages of streams needs a thread. */
static void check_batch(void *stream)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPIX_Queue queue;
    int word = 0;

    MPIX_OK(MPIX_Create_queue(stream, &queue));
    MPIX_IS(MPI_ERR_OTHER, MPIX_Enqueue_send(&word, 1, MPI_INT, 0, 0,
                                             MPI_COMM_WORLD, queue, &request));
    MPIX_OK(MPIX_Enqueue_start(queue));
    MPIX_OK(MPIX_Enqueue_wait(queue));
    MPIX_OK(MPIX_Queue_wait(queue));
    MPIX_OK(MPIX_Free_queue(queue));
    MPIX_CHECK(request == MPI_REQUEST_NULL, "a request was made");
}

int main(int argc, char **argv)
{
    MPI_Request request = MPI_REQUEST_NULL;
    __typeof__(&MPI_Init) init;
    MPIX_Queue_stats stats;
    int level, word = 0;
    void *stream;

    MPIX_CHECK(MPIX_Host_stream_create(&stream) == MPI_SUCCESS,
               "streams need no MPI");
    check_inactive(stream);

    /* Past this library, which would ask for more */
    init = (__typeof__(&MPI_Init))mpix_test_past("MPI_Init");
    init(&argc, &argv);
    PMPI_Query_thread(&level);
    if (level > MPI_THREAD_SINGLE) {
        printf("skipped: MPI_Init gives threads here\n");
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
    check_batch(stream);

    MPIX_OK(MPIX_Queue_get_stats(&stats));
    MPIX_CHECK((stats.starts == 0) && (stats.provider[0] == '\0'), "stats");

    MPI_Finalize();
    check_inactive(stream);
    MPIX_CHECK(MPIX_Host_stream_free(&stream) == MPI_SUCCESS, "stream");
    printf("mpix_threads: rank %d, %d checks failed\n", mpix_test.rank,
           mpix_test.failed);
    return (mpix_test.failed == 0) ? 0 : 1;
}
