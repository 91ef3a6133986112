/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_exchange.c - requests that are matched, started and waited for together,
 * by streams and by the host; what they share, and what is refused.
 *
 * Each rank has messages to and from both of its neighbours in a ring.
 */
#include "mpix_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG   31
#define PAIRS 4 /* Sends, and receives */
#define WORDS 100
#define USES  12

/* Requests of an exchange: receives, then sends. */
static mpix_test_msg_t sends[PAIRS], recvs[PAIRS];
static MPI_Request exchange;


/* Makes the requests: the first half of the sends goes to the right. */
static void make_messages(MPI_Request *requests)
{
    int i, is_right;

    for (i = 0; i < PAIRS; ++i) {
        is_right = (i < (PAIRS / 2));
        mpix_test_recv_init(&recvs[i], WORDS,
                            is_right ? mpix_test.left : mpix_test.right,
                            TAG + i, i);
        mpix_test_send_init(&sends[i], WORDS,
                            is_right ? mpix_test.right : mpix_test.left,
                            TAG + i, i);
        requests[i]         = recvs[i].request;
        requests[PAIRS + i] = sends[i].request;
    }
}

static void free_messages(void)
{
    int i;

    for (i = 0; i < PAIRS; ++i) {
        mpix_test_msg_free(&recvs[i]);
        mpix_test_msg_free(&sends[i]);
    }
}

/* Makes and matches the exchange; 'coupled' is the info's value, or NULL. */
static void make_exchange(const char *coupled)
{
    MPI_Request requests[2 * PAIRS];

    make_messages(requests);
    mpix_test_exchange_init(2 * PAIRS, requests, coupled, &exchange);
    MPIX_OK(MPIX_Match(&exchange, MPI_STATUS_IGNORE));
}

static void free_exchange(void)
{
    MPIX_OK(MPI_Request_free(&exchange));
    MPIX_CHECK(exchange == MPI_REQUEST_NULL, "the handle is still there");
    free_messages();
}

static void fill_all(void)
{
    int i;

    for (i = 0; i < PAIRS; ++i) {
        MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_fill,
                                        &sends[i]));
    }
}

static void verify_all(void)
{
    int i;

    for (i = 0; i < PAIRS; ++i) {
        MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_verify,
                                        &recvs[i]));
    }
}

/* So many uses, of which the host sees the last one's end. */
static void use_exchange(int uses)
{
    int i;

    for (i = 0; i < uses; ++i) {
        fill_all();
        MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &exchange));
        MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &exchange));
        verify_all();
    }
    mpix_test_queue_wait();
}

/* A count of the process. */
static unsigned long count_of(const char *name)
{
    char *text          = NULL;
    size_t size         = 0;
    FILE *file          = open_memstream(&text, &size);
    unsigned long value = 0;
    char *line;

    MPIX_OK(MPIX_Queue_print_stats(file));
    (void)fclose(file);
    for (line = text; line != NULL; line = strchr(line, '\n')) {
        line += (*line == '\n');
        if (!strncmp(line, name, strlen(name)) && (line[strlen(name)] == ' ')) {
            value = strtoul(line + strlen(name), NULL, 10);
            break;
        }
    }
    free(text);
    return value;
}

/* What the process has counted. */
typedef struct counts {
    unsigned long starts;
    unsigned long on_card;
    unsigned long cmds;
    unsigned long words;
} counts_t;

static counts_t read_counts(void)
{
    return (counts_t){
        count_of("starts"), count_of("trig_starts"), count_of("start_cmds"),
        count_of("wait_words")
    };
}

/* What USES uses of so many operations have taken of the card, where that did
 * them all: so many stores each, and one word. */
static void check_counts(const counts_t *before, int num_ops,
                         unsigned long stores)
{
    const counts_t now           = read_counts();
    const unsigned long starts   = now.starts - before->starts;
    const unsigned long on_card  = now.on_card - before->on_card;
    const unsigned long cmds     = now.cmds - before->cmds;
    const unsigned long words    = now.words - before->words;

    MPIX_CHECK(starts == (unsigned long)(num_ops * USES), "%lu starts", starts);
    if (on_card == starts) {
        MPIX_CHECK(cmds == (stores * USES), "%lu stores in %d uses", cmds,
                   USES);
        MPIX_CHECK(words == USES, "%lu words in %d uses", words, USES);
    } else if ((getenv("UCX_ST_LANES") != NULL) &&
               !strcmp(getenv("UCX_ST_LANES"), "trig")) {
        MPIX_CHECK(0, "%lu of %lu starts on lane trig", on_card, starts);
    }
}

static void run_counted(const char *coupled, unsigned long stores)
{
    counts_t before;

    make_exchange(coupled);
    before = read_counts();
    use_exchange(USES);
    check_counts(&before, 2 * PAIRS, stores);
    free_exchange();
}

static void run_plain(void)
{
    run_counted(NULL, PAIRS + 1);
    run_counted("false", PAIRS + 1);
}

static void run_coupled(void)
{
    run_counted("true", 2);
}

/* A collective's round with several sends and receives is a coupled
 * exchange. */
static void run_neighbor(void)
{
    const int dims[1] = {mpix_test.size}, periods[1] = {1};
    int out[2] = {0}, in[2], i;
    MPI_Request request;
    counts_t before;
    MPI_Comm comm;

    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm);
    MPIX_OK(MPIX_Neighbor_alltoall_init(out, 1, MPI_INT, in, 1, MPI_INT, comm,
                                        MPI_INFO_NULL, &request));
    MPI_Comm_free(&comm);
    MPIX_OK(MPIX_Match(&request, MPI_STATUS_IGNORE));
    before = read_counts();
    for (i = 0; i < USES; ++i) {
        out[0] = 2 * (mpix_test.rank + i);
        out[1] = out[0] + 1;
        MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &request));
        MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &request));
        mpix_test_queue_wait();
        MPIX_CHECK((in[0] == (2 * (mpix_test.left + i) + 1)) &&
                   (in[1] == (2 * (mpix_test.right + i))), "%d %d", in[0],
                   in[1]);
    }
    check_counts(&before, 4, 2);
    MPIX_OK(MPI_Request_free(&request));
}

/* A sum of a word within a node is one round, in which each rank sends to all
 * others: an exchange, where there are several. */
static void run_sum(void)
{
    const int others = mpix_test.size - 1;
    int part = 0, sum, i;
    MPI_Request request;
    counts_t before;

    if (others < 2) {
        return;
    }

    MPIX_OK(MPIX_Allreduce_init(&part, &sum, 1, MPI_INT, MPI_SUM,
                                MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    MPIX_OK(MPIX_Match(&request, MPI_STATUS_IGNORE));
    before = read_counts();
    for (i = 0; i < USES; ++i) {
        part = mpix_test.rank + i;
        MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &request));
        if (i % 2) {
            MPIX_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &request));
            mpix_test_queue_wait();
        }
        MPIX_CHECK(sum == (mpix_test.size * (others + 2 * i) / 2), "%d", sum);
    }
    check_counts(&before, 2 * others, 2);
    MPIX_OK(MPI_Request_free(&request));
}

/* Every other rank has its requests alone. */
static void run_half(void)
{
    MPI_Request requests[2 * PAIRS];
    int i;

    if (mpix_test.rank % 2) {
        make_exchange(NULL);
        use_exchange(USES);
        free_exchange();
        return;
    }

    make_messages(requests);
    MPIX_OK(MPIX_Matchall(2 * PAIRS, requests, MPI_STATUSES_IGNORE));
    for (i = 0; i < USES; ++i) {
        mpix_test_run(sends, PAIRS, recvs, PAIRS);
    }
    free_messages();
}

/* In arrays with other requests, and another exchange, which is empty. */
static void run_arrays(void)
{
    mpix_test_msg_t send, recv;
    MPI_Request requests[5], empty;
    int i;

    make_exchange("true");
    mpix_test_send_init(&send, WORDS, mpix_test.right, TAG + PAIRS, PAIRS);
    mpix_test_recv_init(&recv, WORDS, mpix_test.left, TAG + PAIRS, PAIRS);
    MPIX_OK(MPIX_Exchange_init(0, NULL, MPI_INFO_NULL, &empty));
    requests[0] = send.request;
    requests[1] = recv.request;
    requests[2] = empty;
    MPIX_OK(MPIX_Matchall(3, requests, MPI_STATUSES_IGNORE));

    requests[0] = recv.request;
    requests[1] = exchange;
    requests[2] = MPI_REQUEST_NULL;
    requests[3] = empty;
    requests[4] = send.request;
    for (i = 0; i < USES; ++i) {
        fill_all();
        MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_fill,
                                        &send));
        MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, 5, requests));
        MPIX_IS(MPI_ERR_REQUEST,
                MPIX_Enqueue_startall(mpix_test.queue, 2, requests));
        MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 5, requests));
        MPIX_IS(MPI_ERR_REQUEST,
                MPIX_Enqueue_waitall(mpix_test.queue, 2, &requests[1]));
        MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_verify,
                                        &recv));
        verify_all();
    }
    mpix_test_queue_wait();
    MPIX_OK(MPI_Request_free(&empty));
    mpix_test_msg_free(&send);
    mpix_test_msg_free(&recv);
    free_exchange();
}

/* The host starts and waits, for all or some of the uses. */
static void run_host(void)
{
    MPI_Status status;
    int i, j, flag, count;

    make_exchange(NULL);
    for (i = 0; i < USES; ++i) {
        for (j = 0; j < PAIRS; ++j) {
            mpix_test_fill(&sends[j]);
        }
        if (i % 2) {
            MPIX_OK(MPI_Start(&exchange));
            MPIX_IS(MPI_ERR_REQUEST, MPI_Start(&exchange));
        } else {
            MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &exchange));
        }
        if (i % 3) {
            MPIX_OK(MPI_Wait(&exchange, &status));
        } else {
            for (flag = 0; !flag;) {
                MPIX_OK(MPI_Test(&exchange, &flag, &status));
            }
        }
        MPI_Get_count(&status, MPI_BYTE, &count);
        MPIX_CHECK((status.MPI_SOURCE == MPI_ANY_SOURCE) && (count == 0),
                   "source %d, count %d", status.MPI_SOURCE, count);
        for (j = 0; j < PAIRS; ++j) {
            mpix_test_verify(&recvs[j]);
        }
        MPIX_OK(MPI_Wait(&exchange, MPI_STATUS_IGNORE)); /* Inactive */
    }
    free_exchange();
}

/* What would use a member alone. */
static void refuse_member(MPI_Request *member)
{
    MPI_Request copy = *member;
    MPI_Request other;
    int flag;

    MPIX_IS(MPI_ERR_REQUEST, MPIX_Match(member, MPI_STATUS_IGNORE));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Imatch(member));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Enqueue_start_req(mpix_test.queue, member));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Enqueue_wait_req(mpix_test.queue, member));
    MPIX_IS(MPI_ERR_REQUEST, MPI_Start(member));
    MPIX_IS(MPI_ERR_REQUEST, MPI_Wait(member, MPI_STATUS_IGNORE));
    MPIX_IS(MPI_ERR_REQUEST, MPI_Test(member, &flag, MPI_STATUS_IGNORE));
    MPIX_IS(MPI_ERR_REQUEST, MPI_Waitall(1, member, MPI_STATUSES_IGNORE));
    MPIX_IS(MPI_ERR_REQUEST, MPI_Cancel(member));
    MPIX_IS(MPI_ERR_REQUEST, MPI_Request_free(member));
    MPIX_IS(MPI_ERR_REQUEST,
            MPIX_Exchange_init(1, member, MPI_INFO_NULL, &other));
    MPIX_CHECK(*member == copy, "the handle has changed");
}

/* Members are refused before the match, after it and under way, and given back
 * at the end: by hand, and by an exchange in another order. */
static void run_members(void)
{
    static int is_released;
    MPI_Request requests[2 * PAIRS];
    MPI_Status status;
    int flag, i, round;

    make_messages(requests);
    for (round = 0; round < 2; ++round) {
        MPIX_OK(MPIX_Exchange_init(2 * PAIRS, requests, MPI_INFO_NULL,
                                   &exchange));
        refuse_member(&requests[0]);
        MPIX_IS(MPI_ERR_REQUEST,
                MPIX_Enqueue_start_req(mpix_test.queue, &exchange));
        MPIX_IS(MPI_ERR_REQUEST, MPI_Start(&exchange));
        MPIX_IS(MPI_ERR_REQUEST, MPI_Cancel(&exchange));
        MPIX_OK(MPIX_Match(&exchange, MPI_STATUS_IGNORE));
        MPIX_IS(MPI_ERR_REQUEST, MPIX_Match(&exchange, MPI_STATUS_IGNORE));
        MPIX_IS(MPI_ERR_REQUEST,
                MPIX_Enqueue_wait_req(mpix_test.queue, &exchange));
        MPIX_OK(MPIX_Is_matched(&requests[0], &flag, &status));
        mpix_test_status(&status, mpix_test.left, TAG, WORDS);

        is_released = 0;
        MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_hold,
                                        &is_released));
        fill_all();
        MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &exchange));
        MPIX_IS(MPI_ERR_REQUEST,
                MPIX_Enqueue_start_req(mpix_test.queue, &exchange));
        refuse_member(&requests[PAIRS]);
        MPIX_OK(MPI_Test(&exchange, &flag, MPI_STATUS_IGNORE));
        MPIX_CHECK(!flag, "the stream has not started");
        MPIX_IS(MPI_ERR_PENDING, MPI_Request_free(&exchange));
        MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &exchange));
        __atomic_store_n(&is_released, 1, __ATOMIC_RELEASE);
        verify_all();
        mpix_test_queue_wait();
        MPIX_OK(MPI_Request_free(&exchange));
    }

    for (i = 0; i < PAIRS; ++i) {
        MPIX_OK(MPIX_Is_matched(&requests[i], &flag, MPI_STATUS_IGNORE));
        MPIX_CHECK(!flag, "receive %d is still matched", i);
    }
    MPIX_OK(MPIX_Matchall(2 * PAIRS, requests, MPI_STATUSES_IGNORE));
    mpix_test_run(sends, PAIRS, recvs, PAIRS);
    free_messages();
}

/* No exchange is made. */
static void run_refused(void)
{
    const MPI_Request unset = MPI_REQUEST_NULL;
    MPI_Request requests[2], request;
    mpix_test_msg_t msg;
    MPI_Info info;
    int word;

    exchange = unset;
    mpix_test_recv_init(&msg, WORDS, mpix_test.rank, TAG, 0);
    requests[0] = msg.request;
    requests[1] = msg.request;
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Exchange_init(2, requests, MPI_INFO_NULL,
                                                &exchange));
    MPIX_IS(MPI_ERR_COUNT, MPIX_Exchange_init(-1, requests, MPI_INFO_NULL,
                                              &exchange));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Exchange_init(1, NULL, MPI_INFO_NULL,
                                                &exchange));
    MPIX_IS(MPI_ERR_ARG, MPIX_Exchange_init(1, requests, MPI_INFO_NULL, NULL));
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_coupled", "maybe");
    MPIX_IS(MPI_ERR_INFO_VALUE, MPIX_Exchange_init(1, requests, info,
                                                   &exchange));
    MPI_Info_free(&info);

    MPI_Ssend_init(&word, 1, MPI_INT, mpix_test.rank, TAG, MPI_COMM_WORLD,
                   &requests[1]);
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Exchange_init(2, requests, MPI_INFO_NULL,
                                                &exchange));
    MPI_Request_free(&requests[1]);
    MPIX_OK(MPIX_Exchange_init(0, NULL, MPI_INFO_NULL, &requests[1]));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Exchange_init(2, requests, MPI_INFO_NULL,
                                                &exchange));
    MPIX_OK(MPI_Request_free(&requests[1]));
    MPIX_CHECK(exchange == unset, "the handle was written");

    /* One half of a message to the own process, and what cannot be matched */
    MPIX_OK(MPIX_Exchange_init(1, requests, MPI_INFO_NULL, &exchange));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Match(&exchange, MPI_STATUS_IGNORE));
    MPIX_OK(MPI_Request_free(&exchange));
    MPI_Recv_init(&word, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD,
                  &request);
    MPIX_OK(MPIX_Exchange_init(1, &request, MPI_INFO_NULL, &exchange));
    MPIX_IS(MPI_ERR_RANK, MPIX_Match(&exchange, MPI_STATUS_IGNORE));
    MPIX_OK(MPI_Request_free(&exchange));
    MPIX_OK(MPI_Request_free(&request));
    mpix_test_msg_free(&msg);
}

/* A send that is larger than its receive, beside one that fits: both fail, and
 * both can be matched with others afterwards. */
static void run_truncated(void)
{
    const int words[2] = {WORDS, WORDS + 1};
    mpix_test_msg_t out[2], in[2];
    MPI_Request requests[4];
    MPI_Status status;
    int i;

    for (i = 0; i < 2; ++i) {
        mpix_test_send_init(&out[i], words[i], mpix_test.right, TAG + i, i);
        mpix_test_recv_init(&in[i], WORDS, mpix_test.left, TAG + i, i);
        requests[i]     = out[i].request;
        requests[2 + i] = in[i].request;
    }
    MPIX_OK(MPIX_Exchange_init(4, requests, MPI_INFO_NULL, &exchange));
    MPIX_IS(MPI_ERR_TRUNCATE, MPIX_Match(&exchange, &status));
    MPIX_IS(MPI_ERR_REQUEST, MPIX_Match(&exchange, &status));
    MPIX_OK(MPI_Request_free(&exchange));
    MPI_Barrier(MPI_COMM_WORLD);

    requests[1] = in[0].request;
    MPIX_OK(MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE));
    mpix_test_run(out, 1, in, 1);
    for (i = 0; i < 2; ++i) {
        mpix_test_msg_free(&out[i]);
        mpix_test_msg_free(&in[i]);
    }
}

/* Rank 0 has an exchange with ranks 1 and 2, of which the latter comes later,
 * and behind it a receive from rank 1 like that of the exchange: the order of
 * the calls is kept, and rank 1 does not wait for rank 2. */
static void run_order(void)
{
    mpix_test_msg_t first, second, other;
    MPI_Request requests[2];
    MPI_Comm comm;
    int flag;

    if (mpix_test.size < 3) {
        return;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &comm); /* Of which nobody knows a peer */
    if (mpix_test.rank == 0) {
        mpix_test_recv_init_comm(&first, WORDS, (int[]){1, 1}, TAG, comm);
        mpix_test_recv_init_comm(&second, WORDS, (int[]){1, 1}, TAG, comm);
        mpix_test_recv_init_comm(&other, WORDS, (int[]){2, 2}, TAG, comm);
        second.channel = TAG + 1;
        requests[0]    = first.request;
        requests[1]    = other.request;
        MPIX_OK(MPIX_Exchange_init(2, requests, MPI_INFO_NULL, &exchange));
        MPIX_OK(MPIX_Imatch(&exchange));
        MPIX_OK(MPIX_Match(&second.request, MPI_STATUS_IGNORE));
        MPI_Recv(&flag, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPIX_OK(MPIX_Is_matched(&exchange, &flag, MPI_STATUS_IGNORE));
        MPIX_CHECK(!flag, "matched without rank 2");
        MPI_Send(&flag, 1, MPI_INT, 2, TAG, MPI_COMM_WORLD);
        for (flag = 0; !flag;) {
            MPIX_OK(MPIX_Is_matched(&exchange, &flag, MPI_STATUS_IGNORE));
        }
        MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &exchange));
        MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &exchange));
        mpix_test_queue_wait();
        mpix_test_verify(&first);
        mpix_test_verify(&other);
        mpix_test_run(NULL, 0, &second, 1);
        MPIX_OK(MPI_Request_free(&exchange));
        mpix_test_msg_free(&first);
        mpix_test_msg_free(&second);
        mpix_test_msg_free(&other);
    } else if (mpix_test.rank == 1) {
        mpix_test_send_init_comm(&first, WORDS, (int[]){0, 0}, TAG, comm);
        mpix_test_send_init_comm(&second, WORDS, (int[]){0, 0}, TAG, comm);
        second.channel = TAG + 1;
        MPIX_OK(MPIX_Match(&first.request, MPI_STATUS_IGNORE));
        MPIX_OK(MPIX_Match(&second.request, MPI_STATUS_IGNORE));
        MPI_Send(&flag, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD);
        mpix_test_run(&first, 1, NULL, 0);
        mpix_test_run(&second, 1, NULL, 0);
        mpix_test_msg_free(&first);
        mpix_test_msg_free(&second);
    } else if (mpix_test.rank == 2) {
        mpix_test_send_init_comm(&other, WORDS, (int[]){0, 0}, TAG, comm);
        MPI_Recv(&flag, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPIX_OK(MPIX_Match(&other.request, MPI_STATUS_IGNORE));
        mpix_test_run(&other, 1, NULL, 0);
        mpix_test_msg_free(&other);
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    static const mpix_test_case_t cases[] = {
        {"order", run_order},
        {"plain", run_plain},
        {"coupled", run_coupled},
        {"neighbor", run_neighbor},
        {"sum", run_sum},
        {"half", run_half},
        {"arrays", run_arrays},
        {"host", run_host},
        {"members", run_members},
        {"refused", run_refused},
        {"truncated", run_truncated},
        {NULL, NULL}
    };

    mpix_test_init(&argc, &argv);
    mpix_test_cases(cases, argc, argv);
    return mpix_test_end("mpix_exchange");
}
