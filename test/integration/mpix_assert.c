/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_assert.c - MPI 4's assertions in the info of communicators, for messages
 * that are used once: wildcards on both ways, and lengths for queues only. For
 * any number of ranks.
 */
#include "mpix_test.h"

#include <string.h>

#define TAG 3


static void set_info(MPI_Comm comm, const char *key, const char *value)
{
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    MPIX_OK(MPI_Comm_set_info(comm, info));
    MPI_Info_free(&info);
}

static MPI_Comm make_comm(const char *is_only, const char *key)
{
    MPI_Comm comm;
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_queue_only", is_only);
    MPI_Info_set(info, "mpi_assert_allow_overtaking", "true");
    MPI_Info_set(info, key, "true");
    MPIX_OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Info_free(&info);
    return comm;
}

/* A receive is refused, for what is named */
static void refuse(MPIX_Queue queue, int source, int tag, int class,
                   const char *key)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Request request = MPI_REQUEST_NULL;
    int word, rc;

    rc = MPIX_Enqueue_recv(&word, 1, MPI_INT, source, tag, queue, &request);
    if (mpix_test_text(rc, class, text)) {
        MPIX_CHECK(strstr(text, key) != NULL, "%s", text);
    }
    MPIX_CHECK(request == MPI_REQUEST_NULL, "a request was made");
}

/* One int around the ring, to a receive with room for so many */
static void pass(MPIX_Queue queue, int room, int source, int tag, int rc[2])
{
    int out = mpix_test.rank, in[2] = {-1, -1}, i;
    MPI_Request requests[2];

    MPIX_OK(MPIX_Enqueue_recv(in, room, MPI_INT, source, tag, queue,
                              &requests[0]));
    MPIX_OK(MPIX_Enqueue_send(&out, 1, MPI_INT, mpix_test.right, TAG, queue,
                              &requests[1]));
    MPIX_OK(MPIX_Enqueue_start(queue));
    MPIX_OK(MPIX_Enqueue_wait(queue));
    for (i = 0; i < 2; ++i) {
        rc[i] = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
    MPIX_CHECK(in[0] == mpix_test.left, "%d", in[0]);
}

static void test_wildcards(const char *is_only)
{
    MPI_Comm comm = make_comm(is_only, "mpi_assert_no_any_source");
    MPIX_Queue queue;
    int rc[2];

    MPIX_OK(MPIX_Create_queue_comm(comm, mpix_test.stream, &queue));
    refuse(queue, MPI_ANY_SOURCE, TAG, MPI_ERR_RANK,
           "mpi_assert_no_any_source");
    set_info(comm, "mpi_assert_no_any_tag", "true");
    refuse(queue, mpix_test.left, MPI_ANY_TAG, MPI_ERR_TAG,
           "mpi_assert_no_any_tag");
    refuse(queue, MPI_ANY_SOURCE, TAG, MPI_ERR_RANK,
           "mpi_assert_no_any_source");
    set_info(comm, "mpi_assert_no_any_tag", "false");
    if (!strcmp(is_only, "true")) {
        refuse(queue, mpix_test.left, MPI_ANY_TAG, MPI_ERR_TAG,
               "mpix_queue_only");
        pass(queue, 2, mpix_test.left, TAG, rc);
    } else {
        pass(queue, 2, mpix_test.left, MPI_ANY_TAG, rc);
    }
    MPIX_OK(rc[0]);
    MPIX_OK(rc[1]);
    MPIX_OK(MPIX_Free_queue(queue));
    MPI_Comm_free(&comm);
}

/* A message that is shorter than its receive is that one's error alone */
static void test_length(void)
{
    MPI_Comm comm = make_comm("true", "mpi_assert_exact_length");
    char text[MPI_MAX_ERROR_STRING] = "";
    MPIX_Queue queue;
    int rc[2];

    MPIX_OK(MPIX_Create_queue_comm(comm, mpix_test.stream, &queue));
    pass(queue, 1, mpix_test.left, TAG, rc);
    MPIX_OK(rc[0]);
    MPIX_OK(rc[1]);
    pass(queue, 2, mpix_test.left, TAG, rc);
    MPIX_OK(rc[1]);
    if (mpix_test_text(rc[0], MPI_ERR_OTHER, text)) {
        MPIX_CHECK(strstr(text, "mpi_assert_exact_length") &&
                   strstr(text, "tag 3") && strstr(text, "4 bytes"), "%s",
                   text);
    }
    MPIX_IS(MPI_ERR_OTHER, MPIX_Queue_wait(queue));
    MPIX_OK(MPIX_Free_queue(queue));
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    mpix_test_init_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    test_wildcards("false");
    test_wildcards("true");
    test_length();
    return mpix_test_end("mpix_assert");
}
