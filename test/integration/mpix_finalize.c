/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_finalize.c - ranks that call MPI_Finalize instead of matching. A rank
 * that waits for them gets an error, and finalizes in turn. One argument:
 *
 *   never    the last rank has not used the library at all
 *   before   it has, but no address was exchanged with it
 *   pmpi     the same, and it goes past this library's MPI_Finalize
 *   comm     addresses were exchanged, on another communicator
 *   after    a pair was matched, and its last use is still open here
 *   pending  it has begun to match another message, and leaves it
 *   chain    each rank waits for the next one, the last one leaves
 *   freed    all ranks have freed a queue and its stream, which are under way
 *
 * All other ranks wait for the last one, but in the last two.
 */
#include "mpix_test.h"

#include <stdio.h>
#include <string.h>

#define TAG_USED   1
#define TAG_ALONE  2
#define TAG_BEGUN  3

/* Received by a stream that was freed; or NULL */
static const mpix_test_msg_t *freed;

/* Matches a send and a receive that the peer will never match, in one call and
 * in two, and frees them. */
static void wait_in_vain(int peer, MPI_Comm comm)
{
    const int ranks[2] = {peer, peer};
    mpix_test_msg_t send, recv, late;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int flag;

    mpix_test_send_init_comm(&send, 10, ranks, TAG_ALONE, comm);
    mpix_test_recv_init_comm(&recv, 10, ranks, TAG_ALONE, comm);
    mpix_test_recv_init_comm(&late, 10, ranks, TAG_ALONE, comm);
    requests[0] = send.request;
    requests[1] = recv.request;
    MPIX_IS(MPI_ERR_OTHER, MPIX_Matchall(2, requests, statuses));
    MPIX_IS(MPI_ERR_OTHER, statuses[0].MPI_ERROR);
    MPIX_IS(MPI_ERR_OTHER, statuses[1].MPI_ERROR);
    MPIX_IS(MPI_ERR_OTHER, MPIX_Match(&late.request, MPI_STATUS_IGNORE));
    MPIX_IS(MPI_ERR_OTHER, MPIX_Is_matched(&late.request, &flag,
                                           MPI_STATUS_IGNORE));
    mpix_test_msg_free(&send);
    mpix_test_msg_free(&recv);
    mpix_test_msg_free(&late);
}

/* The leaver finishes its half of a use, and goes before the other half has
 * been waited for. */
static void use_after(int last)
{
    const int is_last = (mpix_test.rank == last);
    mpix_test_msg_t msg[2];
    MPI_Request requests[2];
    int i;

    if (!is_last && (mpix_test.rank != 0)) {
        wait_in_vain(last, MPI_COMM_WORLD);
        return;
    }
    for (i = 0; i < 2; ++i) {
        if (is_last == i) {
            mpix_test_send_init(&msg[i], 1000, is_last ? 0 : last, TAG_USED, i);
        } else {
            mpix_test_recv_init(&msg[i], 1000, is_last ? 0 : last, TAG_USED, i);
        }
        requests[i] = msg[i].request;
    }
    MPIX_OK(MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_fill,
                                    &msg[is_last]));
    MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, 2, requests));
    MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 2, requests));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_verify,
                                    &msg[!is_last]));
    if (is_last) {
        MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
        return; /* Frees nothing */
    }

    wait_in_vain(last, MPI_COMM_WORLD);
    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    mpix_test_msg_free(&msg[0]);
    mpix_test_msg_free(&msg[1]);
}

static void leave_begun(void)
{
    static mpix_test_msg_t msg;

    mpix_test_recv_init(&msg, 10, 0, TAG_BEGUN, 0);
    MPIX_OK(MPIX_Imatch(&msg.request));
}

/* MPI_Finalize has begun: lets the stream go on. */
static int let_go(MPI_Comm comm, int keyval, void *go, void *extra)
{
    (void)comm;
    (void)keyval;
    (void)extra;
    __atomic_store_n((int*)go, 1, __ATOMIC_RELEASE);
    return MPI_SUCCESS;
}

/* The messages arrive in MPI_Finalize. */
static void free_all(void)
{
    static mpix_test_msg_t msg[2];
    static int go;
    MPI_Request requests[2];
    int keyval;

    mpix_test_send_init(&msg[0], 1000, mpix_test.right, TAG_USED, 0);
    mpix_test_recv_init(&msg[1], 1000, mpix_test.left, TAG_USED, 0);
    mpix_test_match(&msg[0], 1, &msg[1], 1);
    requests[0] = msg[0].request;
    requests[1] = msg[1].request;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, let_go, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &go);

    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold, &go));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_fill, &msg[0]));
    MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, 2, requests));
    MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 2, requests));
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_verify,
                                    &msg[1]));
    freed = &msg[1];
    MPIX_OK(MPIX_Queue_free(&mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_free(&mpix_test.stream));
}

static void run(const char *where, int last)
{
    const int is_last = (mpix_test.rank == last);
    MPI_Comm comm     = MPI_COMM_WORLD;

    if (!strcmp(where, "freed")) {
        free_all();
        return;
    }
    if (!strcmp(where, "comm")) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    }
    if (!strcmp(where, "after") || !strcmp(where, "comm")) {
        use_after(last);
    }
    if (is_last) {
        if (!strcmp(where, "pending")) {
            leave_begun();
        }
        return;
    }
    wait_in_vain(!strcmp(where, "chain") ? mpix_test.right : last, comm);
    MPIX_OK(MPIX_Queue_free(&mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_free(&mpix_test.stream));
}

int main(int argc, char **argv)
{
    const char *where = (argc > 1) ? argv[1] : "";
    int rank, last, level;

    MPI_Init(&argc, &argv);
    MPI_Query_thread(&level);
    MPIX_CHECK(level < MPI_THREAD_MULTIPLE, "nobody has asked for level %d",
               level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &last);
    --last;
    if (strcmp(where, "never") || (rank != last)) {
        mpix_test_start();
        run(where, last);
    }

    if (!strcmp(where, "pmpi") && (rank == last)) {
        ((__typeof__(&MPI_Finalize))mpix_test_past("MPI_Finalize"))();
    } else {
        MPI_Finalize();
    }
    if ((freed != NULL) && ((freed->use != 1) || (freed->wrong != 0))) {
        printf("FAILED rank %d: MPI_Finalize did not wait for the queue: use "
               "%d, %d words wrong\n", rank, (int)freed->use,
               (int)freed->wrong);
        ++mpix_test.failed;
    }
    printf("mpix_finalize: rank %d, %d checks failed\n", rank,
           mpix_test.failed);
    return (mpix_test.failed == 0) ? 0 : 1;
}
