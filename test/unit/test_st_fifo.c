/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_fifo.c - messages of FIFOs: order, starts before waits, hosts that
 * are ahead or behind, lengths, many tags, requests that the host waits for,
 * several threads, random programs. test_st_fifo_end.c has what fails.
 */
#include "st_cunit.h"
#include "st_msg.h"
#include "st_stream.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEN     512
#define BIG_LEN ((1u << 20) + 3)
#define ROUNDS  60
#define TAGS    1500

#define RANDOM_MSGS 200
#define RANDOM_LEN  5000

/* The NICs move them; else the hosts do */
static int is_nic(void)
{
    return st_lane() == UCP_ST_LANE_TRIG;
}

/* In the order of the starts, several of which may come before a wait; the
 * stream's starts and waits are one store and one word each */
ST_PAIR_CASE(order)
{
    static uint8_t sbuf[ROUNDS][2][8], rbuf[ROUNDS][2][8];
    static st_work_t fill[ROUNDS][2], check[ROUNDS][2];
    static ucp_st_req_h reqs[ROUNDS][4];
    int errors = 0;
    ucp_st_stats_t stats;
    int k, i;

    for (k = 0; k < ROUNDS; ++k) {
        for (i = 0; i < 2; ++i) {
            fill[k][i] = (st_work_t){.buffer = sbuf[k][i],
                                     .length = 8,
                                     .seed   = (2 * k) + i};
            st_launch(a, st_fill_func, &fill[k][i]);
            reqs[k][i]     = st_fifo_req(a, 1, sbuf[k][i], 8, 1);
            reqs[k][2 + i] = st_fifo_req(b, 0, rbuf[k][i], 8, 1);
        }
        st_batch_start(a);
        st_batch_start(b);
        if ((k % 3) == 2) {
            st_batch_wait(a);
            st_batch_wait(b);
        }
    }
    st_batch_wait(b); /* nothing is left to wait for */
    for (k = 0; k < ROUNDS; ++k) {
        for (i = 0; i < 2; ++i) {
            check[k][i] = (st_work_t){rbuf[k][i], 8, (2 * k) + i, &errors};
            st_launch(b, st_check_func, &check[k][i]);
        }
    }
    st_pair_sync(pair);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(b->stream), UCS_OK);
    CU_ASSERT_EQUAL(errors, 0);
    for (k = 0; k < ROUNDS; ++k) {
        for (i = 0; i < 4; ++i) {
            CU_ASSERT_EQUAL(st_msg_end(reqs[k][i], UCS_OK), 8);
        }
    }
    for (i = 0; i < 2; ++i) {
        stats = st_stats(&pair->side[i]);
        CU_ASSERT_EQUAL(stats.start_cmds, ROUNDS);
        CU_ASSERT_EQUAL(stats.wait_words, ROUNDS / 3);
        CU_ASSERT_EQUAL(stats.lanes[is_nic() ? UCP_ST_LANE_TRIG :
                                               UCP_ST_LANE_HOST].msgs,
                        2 * ROUNDS);
    }
}

/* Both are matched before their streams come to them: no thread is on the way,
 * and each message is one write and one clear-to-send */
ST_PAIR_CASE(ahead)
{
    static uint8_t sbuf[2][LEN], rbuf[2][LEN];
    uint64_t gates[2] = {0, 0};
    ucp_st_req_h reqs[2][2];
    int i;

    for (i = 0; i < 2; ++i) {
        st_hold(&pair->side[i], &gates[i]);
        st_fill(sbuf[i], LEN, i);
        reqs[i][0] = st_fifo_req(&pair->side[i], 0, rbuf[i], LEN, 1);
        reqs[i][1] = st_fifo_req(&pair->side[i], 1, sbuf[i], LEN, 1);
        st_batch_run(&pair->side[i]);
    }
    /* Each side has posted its write, and its clear-to-send */
    while (is_nic() && ((st_stats(a).writes_posted < 1) ||
                        (st_stats(b).writes_posted < 1))) {
        ucp_st_worker_progress(a->worker);
        ucp_st_worker_progress(b->worker);
    }
    st_let_go(&gates[0]);
    st_let_go(&gates[1]);
    st_pair_sync(pair);
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_TRUE(st_check(rbuf[1 - i], LEN, i));
        (void)st_msg_end(reqs[i][0], UCS_OK);
        (void)st_msg_end(reqs[i][1], UCS_OK);
    }
    while (is_nic() && (st_stats(a).cts_fired < 1)) {
        ucp_st_worker_progress(a->worker);
    }
    if (is_nic()) {
        CU_ASSERT_EQUAL(st_stats(a).writes_fired, 1);
        CU_ASSERT_EQUAL(st_stats(a).cts_fired, 1);
    }
    /* A stream of a device may not reach the trigger pages */
    if (is_nic() && (ucs_gstream_type(a->stream) == UCS_GSTREAM_TYPE_HOST)) {
        CU_ASSERT_EQUAL(st_stats(a).proxied, 0);
        CU_ASSERT_EQUAL(st_stats(b).proxied, 0);
    }
}

/* A host that enqueues when the other side's stream waits already */
ST_PAIR_CASE(behind)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    st_side_t *first, *second;
    ucp_st_req_h req;
    int i;

    for (i = 0; i < 4; ++i) {
        st_fill(sbuf, LEN, i);
        memset(rbuf, 0, LEN);
        first  = &pair->side[i % 2];
        second = &pair->side[1 - (i % 2)];
        req    = st_fifo_req(first, first == a, (first == a) ? sbuf : rbuf, LEN,
                             1);
        st_batch_start(first);
        st_begun(first);
        st_batch_wait(first);
        st_fifo_run(second, second == a, (second == a) ? sbuf : rbuf, LEN, 1);
        st_pair_sync(pair);
        CU_ASSERT_TRUE(st_check(rbuf, LEN, i));
        CU_ASSERT_EQUAL(st_msg_end(req, UCS_OK), LEN);
    }
}

static void copy_actual_func(void *arg)
{
    *(uint64_t*)arg = __atomic_load_n(&st_fifo_actual, __ATOMIC_ACQUIRE);
}

/* From nothing to several writes, in a receive of just that length or a longer
 * one, of which the rest stays as it is */
ST_CASE(sizes)
{
    static const size_t lengths[] = {0, 1, 1000, 65536, BIG_LEN};
    char *chunk                   = st_env_set("UCX_ST_CHUNK_MAX", "100000");
    uint8_t *sbuf                 = malloc(BIG_LEN);
    uint8_t *rbuf                 = malloc(BIG_LEN + 1);
    uint64_t seen                 = 0;
    ucp_st_req_h send, recv;
    st_pair_t pair;
    size_t i, k;

    st_pair_init(&pair);
    st_env_restore("UCX_ST_CHUNK_MAX", chunk);
    for (i = 0; i < (2 * ST_CUNIT_COUNT(lengths)); ++i) {
        k = i / 2;
        st_fill(sbuf, lengths[k], i);
        memset(rbuf, ST_SPOILED, BIG_LEN + 1);
        send = st_fifo_req(&pair.side[ST_A], 1, sbuf, lengths[k], i);
        recv = st_fifo_req(&pair.side[ST_B], 0, rbuf, lengths[k] + (i % 2), i);
        st_batch_run(&pair.side[ST_A]);
        st_batch_run(&pair.side[ST_B]);
        st_launch(&pair.side[ST_B], copy_actual_func, &seen);
        st_pair_sync(&pair);
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(pair.side[ST_B].stream),
                        UCS_OK);
        CU_ASSERT_EQUAL(seen, lengths[k]);
        CU_ASSERT_TRUE(st_check(rbuf, lengths[k], i));
        CU_ASSERT_EQUAL(rbuf[lengths[k]], ST_SPOILED);
        CU_ASSERT_EQUAL(st_msg_end(send, UCS_OK), lengths[k]);
        CU_ASSERT_EQUAL(st_msg_end(recv, UCS_OK), lengths[k]);
    }
    free(sbuf);
    free(rbuf);
    st_pair_cleanup(&pair);
}

/* To oneself */
ST_PAIR_CASE(self)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    ucp_st_peer_h peer = a->peer;
    ucp_st_req_h send, recv;

    st_fill(sbuf, LEN, 3);
    a->peer = a->self;
    send    = st_fifo_req(a, 1, sbuf, LEN, 1);
    recv    = st_fifo_req(a, 0, rbuf, LEN, 1);
    st_batch_run(a);
    st_sync(a);
    CU_ASSERT_TRUE(st_check(rbuf, LEN, 3));
    CU_ASSERT_EQUAL(st_msg_end(send, UCS_OK), LEN);
    CU_ASSERT_EQUAL(st_msg_end(recv, UCS_OK), LEN);
    a->peer = peer;
}

/* Many tags in one start, both ways, which the two sides enqueue in opposite
 * orders. What finds no entry is tried again with each that does. The provider
 * cxi leaks a mapping at each try that it refuses: so there are fewer on it. */
ST_PAIR_CASE(tags)
{
    static uint8_t sbuf[2][TAGS][16], rbuf[2][TAGS][16];
    static ucp_st_req_h reqs[2][TAGS][2];
    int num_tags = st_env_has_provider("cxi") ? 400 : TAGS;
    st_side_t *side;
    int i, k, tag;

    for (i = 0; i < 2; ++i) {
        side = &pair->side[i];
        for (k = 0; k < num_tags; ++k) {
            tag = (i == 0) ? k : (num_tags - 1 - k);
            st_fill(sbuf[i][tag], 16, (num_tags * i) + tag);
            reqs[i][k][0] = st_fifo_req(side, 1, sbuf[i][tag], 16, tag);
            reqs[i][k][1] = st_fifo_req(side, 0, rbuf[i][tag], 16, tag);
        }
        st_batch_run(side);
    }
    st_pair_sync(pair);
    for (i = 0; i < 2; ++i) {
        for (k = 0; k < num_tags; ++k) {
            CU_ASSERT_TRUE(st_check(rbuf[1 - i][k], 16, (num_tags * i) + k));
            CU_ASSERT_EQUAL(st_msg_end(reqs[i][k][0], UCS_OK), 16);
            CU_ASSERT_EQUAL(st_msg_end(reqs[i][k][1], UCS_OK), 16);
        }
    }
}

/* Scopes and tags keep messages apart, and so do plain messages */
ST_PAIR_CASE(scopes)
{
    static uint8_t sbuf[3][LEN], rbuf[3][LEN];
    ucp_st_msg_params_t params;
    int i;

    for (i = 2; i >= 0; --i) {
        st_fill(sbuf[i], LEN, i);
        params             = st_msg_params(b->peer, rbuf[i], LEN, 1);
        params.field_mask |= (i < 2) ? UCP_ST_MSG_PARAM_FIELD_SCOPE : 0;
        params.scope       = i;
        CU_ASSERT_EQUAL(ucp_st_enqueue_recv(b->queue, &params, NULL), UCS_OK);
    }
    st_batch_run(b);
    for (i = 0; i < 3; ++i) {
        params             = st_msg_params(a->peer, sbuf[i], LEN, 1);
        params.field_mask |= (i < 2) ? UCP_ST_MSG_PARAM_FIELD_SCOPE : 0;
        params.scope       = i;
        CU_ASSERT_EQUAL(ucp_st_enqueue_send(a->queue, &params, NULL), UCS_OK);
    }
    st_batch_run(a);
    st_pair_sync(pair);
    for (i = 0; i < 3; ++i) {
        CU_ASSERT_TRUE(st_check(rbuf[i], LEN, i));
    }
}

/* The host learns that one message is over, while another one of the same start
 * is not, and no wait is enqueued */
ST_PAIR_CASE(asked)
{
    static uint8_t sbuf[2][LEN], rbuf[2][LEN];
    ucp_st_req_h send[2], recv[2];

    recv[0] = st_fifo_req(b, 0, rbuf[0], LEN, 1);
    recv[1] = st_fifo_req(b, 0, rbuf[1], LEN, 2);
    st_batch_start(b);
    st_fill(sbuf[1], LEN, 1);
    send[1] = st_fifo_req(a, 1, sbuf[1], LEN, 2);
    st_batch_start(a);
    CU_ASSERT_EQUAL(st_msg_end(recv[1], UCS_OK), LEN);
    CU_ASSERT_TRUE(st_check(rbuf[1], LEN, 1));
    CU_ASSERT_EQUAL(st_msg_end(send[1], UCS_OK), LEN);
    CU_ASSERT_EQUAL(ucp_st_req_test(recv[0], NULL), UCS_INPROGRESS);

    st_batch_wait(b);
    st_fill(sbuf[0], LEN, 0);
    send[0] = st_fifo_req(a, 1, sbuf[0], LEN, 1);
    st_batch_run(a);
    st_pair_sync(pair);
    CU_ASSERT_TRUE(st_check(rbuf[0], LEN, 0));
    CU_ASSERT_EQUAL(st_msg_end(recv[0], UCS_OK), LEN);
    CU_ASSERT_EQUAL(st_msg_end(send[0], UCS_OK), LEN);
}

/* A random program of two sides, each with two queues: messages of some tags,
 * with lengths from nothing to several writes, in starts of some, with waits
 * here and there, always in an order in which it ends; host and streams run
 * ahead of each other as they like. ST_SEED of the environment replays it. */
static void run_random(unsigned seed)
{
    static uint8_t sbuf[RANDOM_MSGS][RANDOM_LEN], rbuf[RANDOM_MSGS][RANDOM_LEN];
    static size_t lengths[RANDOM_MSGS];
    static ucp_st_req_h reqs[RANDOM_MSGS][2];
    char *chunk = st_env_set("UCX_ST_CHUNK_MAX", "1000");
    st_side_t more[2];
    st_side_t *sides[2][2];
    st_pair_t pair;
    int first, last, i, k, from, q;
    ucp_tag_t tag;

    st_pair_init(&pair);
    st_env_restore("UCX_ST_CHUNK_MAX", chunk);
    for (i = 0; i < 2; ++i) {
        st_more_init(&more[i], &pair.side[i]);
        sides[i][0] = &pair.side[i];
        sides[i][1] = &more[i];
    }
    memset(rbuf, ST_SPOILED, sizeof(rbuf));
    for (first = 0; first < RANDOM_MSGS; first = last) {
        last = first + 1 + (rand_r(&seed) % 8);
        last = (last > RANDOM_MSGS) ? RANDOM_MSGS : last;
        for (i = 0; i < 2; ++i) {
            for (k = first; k < last; ++k) {
                /* A tag is of one queue at each side: its order is known */
                tag        = (k * 7) % 5;
                from       = (k / 3) % 2;
                q          = (tag + i) % 2;
                lengths[k] = ((k * 2654435761u) >> 8) % RANDOM_LEN;
                lengths[k] = ((k % 9) == 0) ? 0 : lengths[k];
                if (i == from) {
                    st_fill(sbuf[k], lengths[k], k);
                }
                reqs[k][i] = st_fifo_req(sides[i][q], i == from,
                                         (i == from) ? sbuf[k] : rbuf[k],
                                         (i == from) ? lengths[k] : RANDOM_LEN,
                                         tag);
                if ((rand_r(&seed) % 4) == 0) {
                    st_batch_start(sides[i][q]);
                }
            }
            /* All of these are started before one is waited for */
            st_batch_start(sides[i][0]);
            st_batch_start(sides[i][1]);
        }
        for (i = 0; i < 2; ++i) {
            for (q = 0; q < 2; ++q) {
                if ((rand_r(&seed) % 3) > 0) {
                    st_batch_wait(sides[i][q]);
                }
            }
        }
        if ((rand_r(&seed) % 4) == 0) {
            k = first + (rand_r(&seed) % (last - first));
            CU_ASSERT_EQUAL(ucp_st_req_wait(reqs[k][rand_r(&seed) % 2], NULL),
                            UCS_OK);
        }
    }
    for (i = 0; i < 2; ++i) {
        st_batch_wait(sides[i][0]);
        st_batch_wait(sides[i][1]);
    }
    for (i = 0; i < 2; ++i) {
        st_sync(sides[i][0]);
        st_sync(sides[i][1]);
    }
    for (k = 0; k < RANDOM_MSGS; ++k) {
        CU_ASSERT_TRUE(st_check(rbuf[k], lengths[k], k));
        CU_ASSERT_TRUE(st_is_spoiled(rbuf[k] + lengths[k],
                                     RANDOM_LEN - lengths[k]));
        for (i = 0; i < 2; ++i) {
            CU_ASSERT_EQUAL(st_msg_end(reqs[k][i], UCS_OK), lengths[k]);
        }
    }
    st_more_cleanup(&more[0]);
    st_more_cleanup(&more[1]);
    st_pair_cleanup(&pair);
}

ST_CASE(random)
{
    const char *value = getenv("ST_SEED");
    unsigned seed     = (value != NULL) ? (unsigned)strtoul(value, NULL, 10) :
                                          (unsigned)getpid();
    unsigned i;

    printf("st_fifo.random: ST_SEED=%u\n", seed);
    for (i = 0; i < 5; ++i) {
        run_random(seed + i);
    }
}

/* What one of some threads sends, on a queue of its own */
typedef struct {
    pthread_t thread;
    st_side_t side;
    uint64_t  values[ROUNDS];
} sender_t;

static void *sender_main(void *arg)
{
    sender_t *sender = arg;
    int k;

    for (k = 0; k < ROUNDS; ++k) {
        st_fifo_run(&sender->side, 1, &sender->values[k], 8, 1);
    }
    return NULL;
}

/* Queues of several threads send with one tag: in which order is theirs to
 * decide, but each thread's messages come in its own, and none is lost */
ST_PAIR_CASE(threads)
{
    static uint64_t got[2 * ROUNDS];
    static ucp_st_req_h reqs[2 * ROUNDS];
    uint64_t next[2] = {0, 0};
    sender_t senders[2];
    int i, k;

    for (k = 0; k < (2 * ROUNDS); ++k) {
        reqs[k] = st_fifo_req(b, 0, &got[k], 8, 1);
    }
    st_batch_run(b);
    for (i = 0; i < 2; ++i) {
        st_more_init(&senders[i].side, a);
        for (k = 0; k < ROUNDS; ++k) {
            senders[i].values[k] = ((uint64_t)i << 32) | k;
        }
    }
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL_FATAL(pthread_create(&senders[i].thread, NULL,
                                             sender_main, &senders[i]), 0);
    }
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(pthread_join(senders[i].thread, NULL), 0);
    }
    st_sync(b);
    for (k = 0; k < (2 * ROUNDS); ++k) {
        i = (int)(got[k] >> 32);
        CU_ASSERT_FATAL((i == 0) || (i == 1));
        CU_ASSERT_EQUAL(got[k] & UINT32_MAX, next[i]++);
        CU_ASSERT_EQUAL(st_msg_end(reqs[k], UCS_OK), 8);
    }
    for (i = 0; i < 2; ++i) {
        st_sync(&senders[i].side);
        st_more_cleanup(&senders[i].side);
    }
    st_pair_sync(pair);
}

/* A wait for some messages waits for no others, and those for all go on behind
 * it */
ST_PAIR_CASE(some)
{
    uint64_t sent = 5, got = 0;

    st_some_run(pair, st_fifo_req);
    st_some_run(pair, st_fifo_req);
    st_fifo_run(b, 0, &got, 8, 1);
    st_fifo_run(a, 1, &sent, 8, 1);
    st_pair_sync(pair);
    CU_ASSERT_EQUAL(got, sent);
}

/* A queue waits for messages that another one of the worker has started, and
 * has the data behind the wait */
ST_PAIR_CASE(other_queue)
{
    static uint8_t sbuf[2][LEN], rbuf[2][LEN];
    int errors = 0;
    st_work_t check[2];
    ucp_st_req_h recvs[2], sends[2];
    st_side_t more;
    int i;

    st_more_init(&more, b);
    for (i = 0; i < 2; ++i) {
        st_fill(sbuf[i], LEN, i);
        recvs[i] = st_fifo_req(b, 0, rbuf[i], LEN, i);
        sends[i] = st_fifo_req(a, 1, sbuf[i], LEN, i);
    }
    st_batch_start(b);
    st_some_wait(&more, recvs, 2);
    for (i = 0; i < 2; ++i) {
        check[i] = (st_work_t){rbuf[i], LEN, i, &errors};
        st_launch(&more, st_check_func, &check[i]);
    }
    st_batch_run(a);
    st_sync(&more);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(more.stream), UCS_OK);
    CU_ASSERT_EQUAL(errors, 0);
    st_some_wait(&more, recvs, 2); /* they are complete */
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_EQUAL(st_msg_end(recvs[i], UCS_OK), LEN);
        CU_ASSERT_EQUAL(st_msg_end(sends[i], UCS_OK), LEN);
    }
    st_sync(&more);
    st_more_cleanup(&more);
    st_batch_wait(b);
    st_pair_sync(pair);
}

/* One queue waits for a message at a time; the wait of another one passes when
 * the message is cancelled, and leaves that queue as it is */
ST_PAIR_CASE(other_queue_misuse)
{
    static uint8_t rbuf[LEN];
    ucp_st_req_h recv;
    st_side_t more;

    st_more_init(&more, b);
    recv = st_fifo_req(b, 0, rbuf, LEN, 1);
    CU_ASSERT_EQUAL(ucp_st_enqueue_req_waitall(more.queue, &recv, 1),
                    UCS_ERR_NO_MESSAGE);
    st_batch_start(b);
    CU_ASSERT_EQUAL(ucp_st_enqueue_req_waitall(a->queue, &recv, 1),
                    UCS_ERR_INVALID_PARAM);
    st_some_wait(&more, &recv, 1);
    CU_ASSERT_EQUAL(ucp_st_enqueue_req_waitall(b->queue, &recv, 1),
                    UCS_ERR_BUSY);
    st_some_wait(&more, &recv, 1);
    CU_ASSERT_EQUAL(ucp_st_req_cancel(recv), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(more.queue, NULL), UCS_OK);
    CU_ASSERT_EQUAL(st_msg_end(recv, UCS_ERR_CANCELED), 0);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(b->queue, NULL), UCS_ERR_CANCELED);
    st_more_cleanup(&more);
}

ST_PAIR_CASE(misuse)
{
    ucp_st_msg_params_t params = st_msg_params(UCP_ST_PEER_ANY, NULL, 0, 0);
    ucp_st_req_h req;

    params.field_mask |= UCP_ST_MSG_PARAM_FIELD_SCOPE;
    CU_ASSERT_EQUAL(ucp_st_enqueue_recv(a->queue, &params, &req),
                    UCS_ERR_INVALID_PARAM);
    params.peer = UCP_ST_PEER_NULL;
    CU_ASSERT_EQUAL(ucp_st_enqueue_send(a->queue, &params, &req),
                    UCS_ERR_INVALID_PARAM);
    params.peer        = a->peer;
    params.field_mask |= UCP_ST_MSG_PARAM_FIELD_TAG_MASK;
    params.tag_mask    = 1;
    CU_ASSERT_EQUAL(ucp_st_enqueue_recv(a->queue, &params, &req),
                    UCS_ERR_INVALID_PARAM);
    st_batch_run(a); /* of nothing */
    CU_ASSERT_EQUAL(ucp_st_queue_query(a->queue, NULL), UCS_OK);
}

ST_SUITE("st_fifo")
