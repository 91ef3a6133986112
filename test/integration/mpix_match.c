/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_match.c - which send meets which receive.
 *
 * Each rank sends to the next one and receives from the one before.
 */
#include "mpix_test.h"

#include <string.h>

#define TAG 7
#define MAX 4


/* The n-th match of a send meets the n-th match of a receive, whatever the
 * order in which the requests were made. */
static void test_equal_tags(void)
{
    static const int order[] = {2, 0, 1};
    mpix_test_msg_t sends[3], recvs[3];
    MPI_Request requests[6];
    int i;

    for (i = 0; i < 3; ++i) {
        mpix_test_send_init(&sends[i], 10, mpix_test.right, TAG, i);
        mpix_test_recv_init(&recvs[i], 10, mpix_test.left, TAG, 0);
    }
    for (i = 0; i < 3; ++i) {
        recvs[order[i]].channel = i;
        requests[i]             = sends[i].request;
        requests[3 + i]         = recvs[order[i]].request;
    }

    MPIX_OK(MPIX_Matchall(6, requests, MPI_STATUSES_IGNORE));
    mpix_test_use_up(sends, recvs, 3, 2);
}

/* Tags are told apart whatever the order of the matches. */
static void test_tags(void)
{
    mpix_test_msg_t sends[3], recvs[3];
    MPI_Status statuses[6];
    MPI_Request requests[6];
    int i, count;

    for (i = 0; i < 3; ++i) {
        mpix_test_send_init(&sends[i], 20 + i, mpix_test.right, 100 + i, i);
        mpix_test_recv_init(&recvs[i], 20 + i, mpix_test.left, 100 + i, i);
        requests[i]     = sends[i].request;
        requests[5 - i] = recvs[i].request;
    }

    MPIX_OK(MPIX_Matchall(6, requests, statuses));
    for (i = 0; i < 3; ++i) {
        MPI_Get_count(&statuses[5 - i], MPI_UINT64_T, &count);
        MPIX_CHECK((statuses[5 - i].MPI_SOURCE == mpix_test.left) &&
                   (statuses[5 - i].MPI_TAG == (100 + i)) &&
                   (count == (20 + i)), "source %d tag %d count %d",
                   statuses[5 - i].MPI_SOURCE, statuses[5 - i].MPI_TAG, count);
    }

    mpix_test_use_up(sends, recvs, 3, 1);
}

/* Rank in 'comm' of a rank of MPI_COMM_WORLD, and both. */
static void peer_in_comm(MPI_Comm comm, int world_rank, int peer[2])
{
    MPI_Group group, world;

    MPI_Comm_group(comm, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(world, 1, &world_rank, group, &peer[0]);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
    peer[1] = world_rank;
}

/* One tag on four communicators, matched in different orders on both sides; one
 * of them has its ranks reversed. */
static void test_communicators(void)
{
    MPI_Comm comms[MAX] = {MPI_COMM_WORLD};
    mpix_test_msg_t sends[MAX], recvs[MAX];
    MPI_Request requests[2 * MAX];
    int i, peer[2];

    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_dup(comms[1], &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -mpix_test.rank, &comms[3]);

    for (i = 0; i < MAX; ++i) {
        peer_in_comm(comms[i], mpix_test.right, peer);
        mpix_test_send_init_comm(&sends[i], 30, peer, TAG, comms[i]);
        peer_in_comm(comms[i], mpix_test.left, peer);
        mpix_test_recv_init_comm(&recvs[i], 30, peer, TAG, comms[i]);
        sends[i].channel          = i;
        recvs[i].channel          = i;
        requests[i]               = sends[i].request;
        requests[2 * MAX - 1 - i] = recvs[i].request;
    }

    MPIX_OK(MPIX_Matchall(2 * MAX, requests, MPI_STATUSES_IGNORE));
    mpix_test_run(sends, MAX, recvs, MAX);
    mpix_test_run(sends, MAX, recvs, MAX);
    for (i = 0; i < MAX; ++i) {
        mpix_test_msg_free(&sends[i]);
        mpix_test_msg_free(&recvs[i]);
        if (i > 0) {
            MPI_Comm_free(&comms[i]);
        }
    }
}

/* Between the even and the odd ranks, whose ranks are those of the other group;
 * the last of an odd number of ranks has no peer. */
static void test_intercommunicator(void)
{
    const int half    = mpix_test.rank / 2;
    const int is_odd  = mpix_test.rank % 2;
    const int peer[2] = {half, 2 * half + 1 - is_odd};
    mpix_test_msg_t send, recv;
    MPI_Comm local, inter;

    MPI_Comm_split(MPI_COMM_WORLD, is_odd, 0, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - is_odd, 0, &inter);
    if (peer[1] < mpix_test.size) {
        mpix_test_send_init_comm(&send, 12, peer, TAG, inter);
        mpix_test_recv_init_comm(&recv, 12, peer, TAG, inter);
        mpix_test_match(&send, 1, &recv, 1);
        mpix_test_use_up(&send, &recv, 1, 1);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
}

/* The requests of a communicator that was freed can still be matched. */
static void test_freed_communicator(void)
{
    int right[2] = {mpix_test.right, mpix_test.right};
    int left[2]  = {mpix_test.left, mpix_test.left};
    mpix_test_msg_t send, recv;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    mpix_test_send_init_comm(&send, 5, right, TAG, comm);
    mpix_test_recv_init_comm(&recv, 5, left, TAG, comm);
    MPI_Comm_free(&comm);

    mpix_test_match(&send, 1, &recv, 1);
    mpix_test_use_up(&send, &recv, 1, 1);
}

/* Communicators that come and go reuse their context ids, with other ranks. */
static void test_reused_contexts(void)
{
    mpix_test_msg_t send, recv;
    int round, peer[2];
    MPI_Comm comm;

    for (round = 0; round < 6; ++round) {
        MPI_Comm_split(MPI_COMM_WORLD, 0,
                       (round % 2) ? -mpix_test.rank : mpix_test.rank, &comm);
        peer_in_comm(comm, mpix_test.right, peer);
        mpix_test_send_init_comm(&send, 6, peer, TAG, comm);
        peer_in_comm(comm, mpix_test.left, peer);
        mpix_test_recv_init_comm(&recv, 6, peer, TAG, comm);
        send.use = round;
        recv.use = round;

        mpix_test_match(&send, 1, &recv, 1);
        mpix_test_use_up(&send, &recv, 1, 1);
        MPI_Comm_free(&comm);
    }
}

static void wait_matched(MPI_Request *request, MPI_Status *status)
{
    int flag = 0;

    while (!flag) {
        if (MPIX_Is_matched(request, &flag, status) != MPI_SUCCESS) {
            MPIX_CHECK(0, "matching failed");
            return;
        }
    }
}

/* The non-blocking calls, and their order with equal tags. */
static void test_imatch(void)
{
    mpix_test_msg_t sends[3], recvs[3];
    MPI_Request requests[2];
    int i, flag = 1;
    MPI_Status status;

    for (i = 0; i < 3; ++i) {
        mpix_test_send_init(&sends[i], 8, mpix_test.right, TAG, i);
        mpix_test_recv_init(&recvs[i], 8, mpix_test.left, TAG, i);
    }

    MPIX_OK(MPIX_Is_matched(&sends[0].request, &flag, MPI_STATUS_IGNORE));
    MPIX_CHECK(!flag, "not given to match");

    MPIX_OK(MPIX_Imatch(&sends[0].request));
    requests[0] = sends[1].request;
    requests[1] = sends[2].request;
    MPIX_OK(MPIX_Imatchall(2, requests));
    for (i = 0; i < 3; ++i) {
        MPIX_OK(MPIX_Imatch(&recvs[i].request));
    }

    for (i = 2; i >= 0; --i) {
        wait_matched(&sends[i].request, MPI_STATUS_IGNORE);
        wait_matched(&recvs[i].request, &status);
        MPIX_CHECK(status.MPI_SOURCE == mpix_test.left, "source %d",
                   status.MPI_SOURCE);
    }

    mpix_test_use_up(sends, recvs, 3, 1);
}

/* What was begun goes on while the rank is in MPI: the even ranks wait in a
 * barrier for the odd ones, whose blocking match needs them. */
static void test_progress_in_mpi(void)
{
    mpix_test_msg_t send, recv;
    MPI_Request requests[2];
    MPIX_Queue_info info;

    MPIX_OK(MPIX_Queue_get_info(&info));
    if (!strcmp(info.binding, "mpi") &&
        (info.thread_level < MPI_THREAD_MULTIPLE)) {
        return; /* No thread of the library may do it */
    }

    mpix_test_send_init(&send, 3, mpix_test.right, TAG, 1);
    mpix_test_recv_init(&recv, 3, mpix_test.left, TAG, 1);
    requests[0] = send.request;
    requests[1] = recv.request;

    if ((mpix_test.rank % 2) == 0) {
        MPIX_OK(MPIX_Imatchall(2, requests));
    } else {
        MPIX_OK(MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE));
    }
    MPI_Barrier(MPI_COMM_WORLD);

    wait_matched(&requests[0], MPI_STATUS_IGNORE);
    wait_matched(&requests[1], MPI_STATUS_IGNORE);
    mpix_test_use_up(&send, &recv, 1, 1);
}

/* A receive may be larger than its send. */
static void test_lengths(void)
{
    static const size_t lengths[] = {1, 100, 5000, 0};
    mpix_test_msg_t send, recv;
    MPI_Status status;
    int i, count;

    for (i = 0; i < 4; ++i) {
        mpix_test_send_init(&send, lengths[i], mpix_test.right, TAG, i);
        mpix_test_recv_init(&recv, lengths[i] + 50, mpix_test.left, TAG, i);
        recv.actual = lengths[i];

        MPIX_OK(MPIX_Imatch(&send.request));
        MPIX_OK(MPIX_Match(&recv.request, &status));
        wait_matched(&send.request, MPI_STATUS_IGNORE);
        MPI_Get_count(&status, MPI_UINT64_T, &count);
        MPIX_CHECK((size_t)count == lengths[i], "%d of %zu", count, lengths[i]);

        mpix_test_use_up(&send, &recv, 1, 2);
    }
}

/* Zero bytes in both. */
static void test_empty(void)
{
    mpix_test_msg_t send, recv;

    mpix_test_send_init(&send, 0, mpix_test.right, TAG, 0);
    mpix_test_recv_init(&recv, 0, mpix_test.left, TAG, 0);
    mpix_test_match(&send, 1, &recv, 1);
    mpix_test_use_up(&send, &recv, 1, 2);
}

static void test_proc_null(void)
{
    mpix_test_msg_t send, recv;
    MPI_Status status;
    int count;

    mpix_test_send_init(&send, 9, MPI_PROC_NULL, TAG, 0);
    mpix_test_recv_init(&recv, 9, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    recv.actual = 0;

    MPIX_OK(MPIX_Match(&send.request, MPI_STATUS_IGNORE));
    MPIX_OK(MPIX_Match(&recv.request, &status));
    MPI_Get_count(&status, MPI_UINT64_T, &count);
    MPIX_CHECK((status.MPI_SOURCE == MPI_PROC_NULL) &&
               (status.MPI_TAG == MPI_ANY_TAG) && (count == 0),
               "source %d tag %d count %d", status.MPI_SOURCE, status.MPI_TAG,
               count);

    mpix_test_use_up(&send, &recv, 1, 2);
}

/* A chain of ranks, whose ends have MPI_PROC_NULL as neighbours, in one array
 * with a message to oneself, one of no bytes and one with the largest tag. */
static void test_chain(void)
{
    const int is_first = (mpix_test.rank == 0);
    const int is_last  = (mpix_test.rank == (mpix_test.size - 1));
    const int left     = is_first ? MPI_PROC_NULL : mpix_test.left;
    const int right    = is_last ? MPI_PROC_NULL : mpix_test.right;
    mpix_test_msg_t sends[5], recvs[5];
    MPI_Request requests[10];
    MPI_Status statuses[10];
    int *tag_ub, found, i, count;

    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_ub, &found);
    MPIX_CHECK(found, "MPI_TAG_UB");
    mpix_test_send_init(&sends[0], 40, right, TAG, 0);
    mpix_test_recv_init(&recvs[0], 40, left, TAG, 0);
    mpix_test_send_init(&sends[1], 41, left, TAG, 1);
    mpix_test_recv_init(&recvs[1], 41, right, TAG, 1);
    mpix_test_send_init(&sends[2], 42, mpix_test.rank, TAG, 2);
    mpix_test_recv_init(&recvs[2], 42, mpix_test.rank, TAG, 2);
    mpix_test_send_init(&sends[3], 0, right, TAG + 1, 3);
    mpix_test_recv_init(&recvs[3], 5, left, TAG + 1, 3);
    mpix_test_send_init(&sends[4], 43, mpix_test.right, *tag_ub, 4);
    mpix_test_recv_init(&recvs[4], 43, mpix_test.left, *tag_ub, 4);
    recvs[0].actual = is_first ? 0 : 40;
    recvs[1].actual = is_last ? 0 : 41;
    recvs[3].actual = 0;
    for (i = 0; i < 5; ++i) {
        requests[i]     = sends[i].request;
        requests[9 - i] = recvs[i].request;
    }

    MPIX_OK(MPIX_Matchall(10, requests, statuses));
    for (i = 0; i < 5; ++i) {
        MPI_Get_count(&statuses[9 - i], MPI_UINT64_T, &count);
        MPIX_CHECK((size_t)count == recvs[i].actual, "%d of %zu", count,
                   recvs[i].actual);
    }
    MPIX_CHECK((statuses[9].MPI_SOURCE == left) &&
               (statuses[9].MPI_TAG == (is_first ? MPI_ANY_TAG : TAG)),
               "source %d tag %d", statuses[9].MPI_SOURCE, statuses[9].MPI_TAG);
    MPIX_CHECK((statuses[5].MPI_SOURCE == mpix_test.left) &&
               (statuses[5].MPI_TAG == *tag_ub), "source %d tag %d",
               statuses[5].MPI_SOURCE, statuses[5].MPI_TAG);
    mpix_test_run(sends, 5, recvs, 5);

    /* The same, started by the host */
    for (i = 0; i < 5; ++i) {
        mpix_test_fill(&sends[i]);
    }
    MPIX_OK(MPI_Startall(10, requests));
    MPIX_OK(MPI_Waitall(10, requests, statuses));
    MPIX_CHECK(statuses[9].MPI_SOURCE == left, "source %d",
               statuses[9].MPI_SOURCE);
    for (i = 0; i < 5; ++i) {
        mpix_test_verify(&recvs[i]);
    }
    mpix_test_use_up(sends, recvs, 5, 2);
}

/* MPI_REQUEST_NULL among the requests, as at the end of a chain of ranks: it is
 * passed over, and an array may have nothing else. */
static void test_request_null(void)
{
    MPI_Request requests[5], nulls[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    mpix_test_msg_t send, recv;
    MPI_Status statuses[5];
    int i, use, flag = 0, count = -1;

    mpix_test_send_init(&send, 7, mpix_test.right, TAG, 1);
    mpix_test_recv_init(&recv, 7, mpix_test.left, TAG, 1);
    for (i = 0; i < 5; ++i) {
        requests[i] = MPI_REQUEST_NULL;
    }
    requests[1] = recv.request;
    requests[3] = send.request;

    MPIX_OK(MPIX_Matchall(5, requests, statuses));
    MPI_Get_count(&statuses[1], MPI_UINT64_T, &count);
    MPIX_CHECK((statuses[1].MPI_SOURCE == mpix_test.left) && (count == 7),
               "source %d, count %d", statuses[1].MPI_SOURCE, count);
    MPI_Get_count(&statuses[4], MPI_UINT64_T, &count);
    MPIX_CHECK((statuses[4].MPI_SOURCE == MPI_ANY_SOURCE) &&
               (statuses[4].MPI_TAG == MPI_ANY_TAG) && (count == 0) &&
               (statuses[4].MPI_ERROR == MPI_SUCCESS),
               "source %d tag %d count %d", statuses[4].MPI_SOURCE,
               statuses[4].MPI_TAG, count);

    for (use = 0; use < 3; ++use) {
        MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_fill,
                                        &send));
        MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, 5, requests));
        MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 5, requests));
        MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_verify,
                                        &recv));
    }
    MPIX_OK(MPIX_Matchall(2, nulls, MPI_STATUSES_IGNORE));
    MPIX_OK(MPIX_Imatchall(2, nulls));
    MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, 2, nulls));
    MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 2, nulls));
    MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, nulls));
    MPIX_OK(MPIX_Is_matched(nulls, &flag, MPI_STATUS_IGNORE));
    MPIX_CHECK(flag, "%d", flag);
    mpix_test_use_up(&send, &recv, 1, 1);
}

/* Messages to the own process, matched in each way. */
static void test_self(void)
{
    mpix_test_msg_t send, recv;
    int way;

    for (way = 0; way < 3; ++way) {
        mpix_test_send_init(&send, 11, mpix_test.rank, TAG, way);
        mpix_test_recv_init(&recv, 11, mpix_test.rank, TAG, way);
        if (way == 0) {
            mpix_test_match(&send, 1, &recv, 1);
        } else if (way == 1) {
            MPIX_OK(MPIX_Imatch(&recv.request));
            MPIX_OK(MPIX_Imatch(&send.request));
            wait_matched(&recv.request, MPI_STATUS_IGNORE);
            wait_matched(&send.request, MPI_STATUS_IGNORE);
        } else {
            /* One half alone would never return */
            MPIX_IS(MPI_ERR_REQUEST,
                    MPIX_Match(&send.request, MPI_STATUS_IGNORE));
            MPIX_OK(MPIX_Imatch(&recv.request));
            MPIX_OK(MPIX_Match(&send.request, MPI_STATUS_IGNORE));
            wait_matched(&recv.request, MPI_STATUS_IGNORE);
        }

        mpix_test_use_up(&send, &recv, 1, 2);
    }
}

/* A datatype of the application, without holes; the buffer starts before the
 * data. */
static void test_datatype(void)
{
    MPI_Datatype block, shifted;
    mpix_test_msg_t send, recv;
    int length = 6, place = 2;

    MPI_Type_contiguous(3, MPI_UINT64_T, &block);
    MPI_Type_indexed(1, &length, &place, MPI_UINT64_T, &shifted);
    MPI_Type_commit(&block);
    MPI_Type_commit(&shifted);

    mpix_test_msg_init(&send, 6, mpix_test.rank, mpix_test.right, 1);
    mpix_test_msg_init(&recv, 6, mpix_test.left, mpix_test.rank, 1);
    MPIX_OK(MPI_Send_init(send.words, 2, block, mpix_test.right, TAG,
                          MPI_COMM_WORLD, &send.request));
    MPIX_OK(MPI_Recv_init(recv.words - 2, 1, shifted, mpix_test.left, TAG,
                          MPI_COMM_WORLD, &recv.request));
    MPI_Type_free(&block);
    MPI_Type_free(&shifted);

    mpix_test_match(&send, 1, &recv, 1);
    mpix_test_use_up(&send, &recv, 1, 1);
}

/* Requests are matched, used and freed again and again: nothing of an earlier
 * one is found under a handle that MPI gives again. */
static void test_reused_handles(void)
{
    mpix_test_msg_t send, recv;
    int i;

    for (i = 0; i < 20; ++i) {
        mpix_test_send_init(&send, 4, mpix_test.right, TAG, i);
        mpix_test_recv_init(&recv, 4, mpix_test.left, TAG, i);
        MPIX_IS(MPI_ERR_REQUEST,
                MPIX_Enqueue_start_req(mpix_test.queue, &send.request));
        mpix_test_match(&send, 1, &recv, 1);
        mpix_test_use_up(&send, &recv, 1, 1);
    }
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"equal_tags", test_equal_tags},
        {"tags", test_tags},
        {"communicators", test_communicators},
        {"intercommunicator", test_intercommunicator},
        {"freed_communicator", test_freed_communicator},
        {"reused_contexts", test_reused_contexts},
        {"imatch", test_imatch},
        {"progress_in_mpi", test_progress_in_mpi},
        {"lengths", test_lengths},
        {"empty", test_empty},
        {"proc_null", test_proc_null},
        {"chain", test_chain},
        {"request_null", test_request_null},
        {"self", test_self},
        {"datatype", test_datatype},
        {"reused_handles", test_reused_handles},
        {NULL}
    };

    /* With an argument, in threads' presence */
    if (argc > 1) {
        mpix_test_init_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    } else {
        mpix_test_init(&argc, &argv);
    }
    mpix_test_cases(cases, argc, argv);
    return mpix_test_end("mpix_match");
}
