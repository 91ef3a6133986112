/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_fifo_random.c - a random program of messages that are used once, on
 * several communicators that are for queues only; where MPI may be called by
 * threads one of them may be none.
 */
#include "mpix_fifo.h"
#include "mpix_test.h"

#include <compat/mpich_stream.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RANDOM_MSGS  300
#define RANDOM_WORDS 3000
#define RANDOM_COMMS 3


/* A message of a random program, which all ranks draw alike. */
typedef struct {
    int         comm;  /* RANDOM_COMMS: a plain one of MPI, on MPI_COMM_WORLD */
    int         rank[2]; /* The sender's and the receiver's there */
    int         tag;
    int         words;
    uint64_t    *buffer[2];
    MPI_Request request[2];
} random_msg_t;

static random_msg_t msgs[RANDOM_MSGS];
static MPI_Comm drawn_comms[RANDOM_COMMS];
static MPIX_Queue drawn_queues[RANDOM_COMMS][2];

static unsigned draw(uint64_t *state, unsigned limit)
{
    *state = (*state * 6364136223846793005u) + 1442695040888963407u;
    return (unsigned)(*state >> 33) % limit;
}

/* Ranks of the last communicator count down */
static int random_rank(int comm)
{
    return (comm == (RANDOM_COMMS - 1)) ? (mpix_test.size - 1 - mpix_test.rank)
                                        : mpix_test.rank;
}

/* Of messages that keep their order, the same at either side */
static unsigned random_group(const random_msg_t *msg)
{
    return (unsigned)((((((msg->comm * mpix_test.size) + msg->rank[0]) *
                         mpix_test.size) + msg->rank[1]) * 3) + msg->tag);
}

static MPIX_Queue random_queue(const random_msg_t *msg, int is_recv)
{
    return drawn_queues[msg->comm][(random_group(msg) + (unsigned)is_recv) % 2];
}

static void random_post(random_msg_t *msg, int is_recv)
{
    int count     = msg->words + (is_recv * (msg->tag + msg->comm));
    uint64_t *buf = msg->buffer[is_recv];
    int peer      = msg->rank[!is_recv];
    MPIX_Queue q;

    if (msg->comm == RANDOM_COMMS) {
        MPIX_OK((is_recv ? MPI_Irecv(buf, count, MPI_UINT64_T, peer, msg->tag,
                                     MPI_COMM_WORLD, &msg->request[1]) :
                           MPI_Isend(buf, count, MPI_UINT64_T, peer, msg->tag,
                                     MPI_COMM_WORLD, &msg->request[0])));
        return;
    }
    q = random_queue(msg, is_recv);
    if (is_recv) {
        MPIX_OK(MPIX_Enqueue_recv(buf, count, MPI_UINT64_T, peer, msg->tag, q,
                                  &msg->request[1]));
    } else {
        MPIX_OK(MPIX_Enqueue_send(buf, count, MPI_UINT64_T, peer, msg->tag, q,
                                  &msg->request[0]));
    }
}

/* The calls are macros */
static int random_start(MPIX_Queue q)
{
    return MPIX_Enqueue_start(q);
}

static int random_wait(MPIX_Queue q)
{
    return MPIX_Enqueue_wait(q);
}

static void random_queues(int (*call)(MPIX_Queue queue))
{
    int i;

    for (i = 0; i < (2 * RANDOM_COMMS); ++i) {
        MPIX_OK(call(drawn_queues[i / 2][i % 2]));
    }
}

/* A queue's stream waits for some of what was started, which the host has not
 * waited for. */
static void random_wait_some(int last, uint64_t *mine)
{
    static MPI_Request requests[2 * RANDOM_MSGS];
    static MPI_Status statuses[2 * RANDOM_MSGS];
    const unsigned q     = draw(mine, 2 * RANDOM_COMMS);
    const int is_ignored = (draw(mine, 2) == 0);
    int count            = 0;
    int k, side;

    for (k = 0; k < last; ++k) {
        for (side = 0; side < 2; ++side) {
            if ((msgs[k].comm < RANDOM_COMMS) &&
                (msgs[k].request[side] != MPI_REQUEST_NULL) &&
                (random_queue(&msgs[k], side) == drawn_queues[q / 2][q % 2]) &&
                (draw(mine, 2) == 0)) {
                requests[count++]     = msgs[k].request[side];
                msgs[k].request[side] = MPI_REQUEST_NULL;
            }
        }
    }
    /* Statuses are stored when the stream passes this: all calls have these */
    MPIX_OK(MPIX_Waitall_enqueue(count, requests, is_ignored ?
                                 MPI_STATUSES_IGNORE : statuses));
}

/* Some messages: each rank enqueues its part in an order of its own, and starts
 * all of it before it waits for any. */
static void random_round(int first, int last, uint64_t *mine)
{
    unsigned turn = draw(mine, 1000);
    unsigned i, q;
    int k, side;

    for (i = 0; i < 7; ++i) {
        for (k = first; k < last; ++k) {
            for (side = 1; side >= 0; --side) {
                if ((msgs[k].rank[side] == random_rank(msgs[k].comm)) &&
                    (((random_group(&msgs[k]) + turn + (unsigned)side) % 7) ==
                     i)) {
                    random_post(&msgs[k], side);
                }
            }
            if (draw(mine, 8) == 0) {
                q = draw(mine, 2 * RANDOM_COMMS);
                MPIX_OK(random_start(drawn_queues[q / 2][q % 2]));
            }
        }
    }
    random_queues(random_start);
    if (draw(mine, 2) == 0) {
        random_wait_some(last, mine);
    }
    if (draw(mine, 3) > 0) {
        random_queues(random_wait);
    }
    if (draw(mine, 4) == 0) {
        k    = first + (int)draw(mine, (unsigned)(last - first));
        side = (int)draw(mine, 2);
        MPIX_OK(MPI_Wait(&msgs[k].request[side], MPI_STATUS_IGNORE));
    }
    if (draw(mine, 5) == 0) {
        random_queues(MPIX_Queue_wait);
    }
}

static void random_draw(random_msg_t *msg, uint64_t *all, int index)
{
    int i;

    msg->comm  = (int)draw(all, RANDOM_COMMS + 1);
    msg->tag   = (int)draw(all, 3);
    msg->words = (int)draw(all, RANDOM_WORDS);
    msg->words = (draw(all, 2) == 0) ? 0 : msg->words;
    for (i = 0; i < 2; ++i) {
        msg->rank[i]    = (int)draw(all, (unsigned)mpix_test.size);
        msg->request[i] = MPI_REQUEST_NULL;
        msg->buffer[i]  = calloc(RANDOM_WORDS + 8, sizeof(uint64_t));
    }
    for (i = 0; i < msg->words; ++i) {
        msg->buffer[0][i] = ((uint64_t)index << 32) | (unsigned)(i + 1);
    }
}

static void random_check(random_msg_t *msg)
{
    int i, is_mine;

    for (i = 0; i < 2; ++i) {
        MPIX_OK(MPI_Wait(&msg->request[i], MPI_STATUS_IGNORE));
    }
    is_mine = (msg->rank[1] == random_rank(msg->comm));
    for (i = 0; i < (RANDOM_WORDS + 8); ++i) {
        if (msg->buffer[1][i] != (is_mine ? msg->buffer[0][i] : 0)) {
            MPIX_CHECK(0, "message %d, word %d", (int)(msg - msgs), i);
            break;
        }
    }
    free(msg->buffer[0]);
    free(msg->buffer[1]);
}

static void random_comms(uint64_t *all)
{
    MPI_Info info;
    int i, level;

    MPI_Query_thread(&level);
    drawn_comms[0] = make_only("true");
    drawn_comms[1] = make_only(((draw(all, 2) == 0) &&
                                (level == MPI_THREAD_MULTIPLE)) ?
                               "false" : "true");
    MPIX_OK(MPI_Comm_split(MPI_COMM_WORLD, 0, mpix_test.size - mpix_test.rank,
                           &drawn_comms[2]));
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpix_queue_only", "true");
    MPIX_OK(MPI_Comm_set_info(drawn_comms[2], info));
    MPI_Info_free(&info);
    for (i = 0; i < (2 * RANDOM_COMMS); ++i) {
        MPIX_OK(MPIX_Create_queue_comm(drawn_comms[i / 2], mpix_test.stream,
                                       &drawn_queues[i / 2][i % 2]));
    }
}

/* A random program, with plain messages of MPI beside it. ST_SEED of the
 * environment replays it. */
void test_random(void)
{
    const char *text = getenv("ST_SEED");
    uint64_t seed    = (text != NULL) ? strtoull(text, NULL, 10) :
                                        (uint64_t)getpid();
    uint64_t mine;
    int first, last, i;

    MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (mpix_test.rank == 0) {
        printf("mpix_fifo.random: ST_SEED=%llu\n", (unsigned long long)seed);
    }
    random_comms(&seed);
    mine = seed + (uint64_t)mpix_test.rank;
    for (i = 0; i < RANDOM_MSGS; ++i) {
        random_draw(&msgs[i], &seed, i);
    }
    for (first = 0; first < RANDOM_MSGS; first = last) {
        last = first + 1 + (int)draw(&seed, 20);
        last = (last > RANDOM_MSGS) ? RANDOM_MSGS : last;
        random_round(first, last, &mine);
    }
    random_queues(random_wait);
    random_queues(MPIX_Queue_wait);
    for (i = 0; i < RANDOM_MSGS; ++i) {
        random_check(&msgs[i]);
    }
    random_queues(MPIX_Free_queue);
    for (i = 0; i < RANDOM_COMMS; ++i) {
        MPI_Comm_free(&drawn_comms[i]);
    }
}
