/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_p.c - programs that must not deadlock.
 *
 *     mpix_p [PROGRAM,... [ITERATIONS [WORDS]]]
 *
 * The host enqueues all iterations and then waits once; functions on the stream
 * fill and check the data of each. P1, P2 and P7 run on pairs of ranks, A and
 * B: s and r start a send or a receive of message 0 or 1, w waits for it.
 */
#include "mpix_test.h"

#include <stdlib.h>
#include <string.h>

#define NEIGHBORS 27 /* With the rank itself in the middle, which is left out */

static int iterations;
static size_t words;


static void start(mpix_test_msg_t *msg)
{
    MPIX_OK(MPIX_Enqueue_start_req(mpix_test.queue, &msg->request));
}

static void wait(mpix_test_msg_t *msg)
{
    MPIX_OK(MPIX_Enqueue_wait_req(mpix_test.queue, &msg->request));
}

static void fill(mpix_test_msg_t *msg)
{
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_fill, msg));
}

static void verify(mpix_test_msg_t *msg)
{
    MPIX_OK(MPIX_Host_stream_launch(mpix_test.stream, mpix_test_verify, msg));
}

/* The other one of a pair; -1 for the last one of an odd number. */
static int partner(void)
{
    int peer = mpix_test.rank ^ 1;

    return (peer < mpix_test.size) ? peer : -1;
}

static int is_first(void)
{
    return (mpix_test.rank % 2) == 0;
}

/* Every use that the host enqueued has run. */
static void finish(mpix_test_msg_t *msgs, int count)
{
    int i;

    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
    for (i = 0; i < count; ++i) {
        MPIX_CHECK(msgs[i].use == (uint64_t)iterations, "%llu uses of %d",
                   (unsigned long long)msgs[i].use, iterations);
        mpix_test_msg_free(&msgs[i]);
    }
}

/** What each rank of a pair does in an iteration. */
typedef struct pair_program {
    const char *name;
    const char *text[2];  /* A's and B's */
    int        is_ready;  /* Message 0; its receive is started on time */
} pair_program_t;

static const pair_program_t pair_programs[] = {
    /* B waits for 1 before it waits for 0 */
    {"p1", {"s0 w0 s1 w1", "r0 r1 w1 w0"}, 0},
    /* A waits for 0 only after it has received 1 */
    {"p2", {"s0 r1 w1 w0", "r0 w0 s1 w1"}, 0},
    /* B starts its receive and then tells A, which sends */
    {"p7", {"r1 w1 s0 w0", "r0 s1 w0 w1"}, 1},
    {"p7", {"r1 w1 s0 w0", "r0 s1 w0 w1"}, 0}
};

/* The message of a number, which is sent if the program says so */
static int init_msg(mpix_test_msg_t *msg, const pair_program_t *program, int i)
{
    const char start[] = {'s', (char)('0' + i), '\0'};
    int is_send        = strstr(program->text[!is_first()], start) != NULL;
    int is_ready       = program->is_ready && (i == 0);
    int channel        = (2 * i) + program->is_ready;

    if (!is_send) {
        mpix_test_recv_init(msg, words, partner(), i, channel);
        return 0;
    }
    mpix_test_send_init(msg, words, partner(), i, channel);
    if (is_ready) {
        MPIX_OK(MPI_Request_free(&msg->request));
        MPIX_OK(MPI_Rsend_init(msg->words, words, MPI_UINT64_T, partner(), i,
                               MPI_COMM_WORLD, &msg->request));
    }
    return 1;
}

static void run_pair(const pair_program_t *program)
{
    MPI_Request requests[2];
    mpix_test_msg_t msgs[2];
    const char *at;
    int is_send[2];
    int i, k;

    if (partner() < 0) {
        return;
    }
    for (i = 0; i < 2; ++i) {
        is_send[i]  = init_msg(&msgs[i], program, i);
        requests[i] = msgs[i].request;
    }
    MPIX_OK(MPIX_Matchall(2, requests, MPI_STATUSES_IGNORE));
    for (k = 0; k < iterations; ++k) {
        for (at = program->text[!is_first()]; at[0] != '\0';
             at += 2 + (at[2] == ' ')) {
            i = at[1] - '0';
            if (at[0] == 'w') {
                wait(&msgs[i]);
                if (!is_send[i]) {
                    verify(&msgs[i]);
                }
            } else {
                if (is_send[i]) {
                    fill(&msgs[i]);
                }
                start(&msgs[i]);
            }
        }
    }
    finish(msgs, 2);
}

/* The rank at an offset of -1, 0, 1 in each dimension of a periodic grid. */
static int neighbor_rank(const int dims[3], int direction)
{
    int offset[3] = {
        direction / 9 - 1, (direction / 3) % 3 - 1, direction % 3 - 1
    };
    int place[3];
    int i;

    place[0] = mpix_test.rank / (dims[1] * dims[2]);
    place[1] = (mpix_test.rank / dims[2]) % dims[1];
    place[2] = mpix_test.rank % dims[2];
    for (i = 0; i < 3; ++i) {
        place[i] = (place[i] + offset[i] + dims[i]) % dims[i];
    }
    return (place[0] * dims[1] + place[1]) * dims[2] + place[2];
}

/* All ranks: receive from and send to 26 neighbours at once. In a small grid
 * one rank is several neighbours, and the rank itself is, too. */
static void run_p5(void)
{
    mpix_test_msg_t sends[NEIGHBORS], recvs[NEIGHBORS], msgs[2 * NEIGHBORS];
    MPI_Request requests[2 * NEIGHBORS];
    int dims[3]   = {0, 0, 0};
    int count     = 0;
    int direction, i, k;

    MPI_Dims_create(mpix_test.size, 3, dims);
    for (direction = 0; direction < NEIGHBORS; ++direction) {
        if (direction == (NEIGHBORS / 2)) {
            continue;
        }
        /* What goes in a direction comes from the opposite one */
        mpix_test_send_init(&sends[count], words + direction,
                            neighbor_rank(dims, direction), direction,
                            direction);
        mpix_test_recv_init(&recvs[count], words + direction,
                            neighbor_rank(dims, NEIGHBORS - 1 - direction),
                            direction, direction);
        ++count;
    }
    mpix_test_match(sends, count, recvs, count);

    for (i = 0; i < count; ++i) {
        requests[i]         = recvs[i].request;
        requests[count + i] = sends[i].request;
    }
    for (k = 0; k < iterations; ++k) {
        MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, count, requests));
        for (i = 0; i < count; ++i) {
            fill(&sends[i]);
        }
        MPIX_OK(MPIX_Enqueue_startall(mpix_test.queue, count,
                                      requests + count));
        MPIX_OK(MPIX_Enqueue_waitall(mpix_test.queue, 2 * count, requests));
        for (i = 0; i < count; ++i) {
            verify(&recvs[i]);
        }
    }

    MPIX_OK(MPIX_Queue_wait(mpix_test.queue));
    MPIX_OK(MPIX_Host_stream_synchronize(mpix_test.stream));
    memcpy(msgs, sends, count * sizeof(*msgs));
    memcpy(msgs + count, recvs, count * sizeof(*msgs));
    finish(msgs, 2 * count);
}

/* All was done by triggered operations, or by streams, or by the host lane if
 * there is no other. */
static void check_stats(void)
{
    const char *lanes = getenv("UCX_ST_LANES");
    MPIX_Queue_stats stats;

    MPIX_OK(MPIX_Queue_get_stats(&stats));
    MPIX_CHECK(stats.starts == stats.waits, "%llu starts, %llu waits",
               (unsigned long long)stats.starts,
               (unsigned long long)stats.waits);
    if ((lanes != NULL) && !strcmp(lanes, "host")) {
        MPIX_CHECK(stats.proxied == stats.starts,
                   "%llu messages of %llu moved by a host thread",
                   (unsigned long long)stats.proxied,
                   (unsigned long long)stats.starts);
        MPIX_CHECK(stats.writes_fired == 0, "deferred writes carried out");
        return;
    }
    if ((lanes != NULL) && !strcmp(lanes, "direct")) {
        /* A host that waits moves for a stream that is not at its wait yet */
        MPIX_CHECK((stats.starts == 0) || (stats.copies > 0),
                   "nothing was copied by a stream");
        return;
    }
    if (getenv("UCX_CXI_TRIG_DEFERRED_ENTRIES") != NULL) {
        printf("rank %d: %llu starts, %llu writes carried out for want of "
               "entries\n", mpix_test.rank, (unsigned long long)stats.starts,
               (unsigned long long)stats.proxied);
    }
    /* A stream of a GPU does not reach the emulated card's trigger pages */
    MPIX_CHECK((stats.proxied == 0) ||
               (getenv("UCX_CXI_TRIG_DEFERRED_ENTRIES") != NULL) ||
               (mpix_test.queue_type != MPIX_QUEUE_HOST),
               "%llu messages moved by a host thread",
               (unsigned long long)stats.proxied);
    MPIX_CHECK((stats.starts == 0) || (stats.writes_fired > 0) ||
               !is_first(), "no deferred write was carried out");
}

static int is_wanted(int argc, char **argv, const char *name)
{
    return (argc < 2) || (strstr(argv[1], name) != NULL);
}

int main(int argc, char **argv)
{
    size_t i;

    mpix_test_init(&argc, &argv);
    iterations = (argc > 2) ? atoi(argv[2]) : 1000;
    words      = (argc > 3) ? (size_t)atol(argv[3]) : 100;
    for (i = 0; i < (sizeof(pair_programs) / sizeof(pair_programs[0])); ++i) {
        if (is_wanted(argc, argv, pair_programs[i].name)) {
            run_pair(&pair_programs[i]);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    if (is_wanted(argc, argv, "p5")) {
        run_p5();
    }
    check_stats();
    return mpix_test_end("mpix_p");
}
