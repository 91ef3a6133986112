/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_threads.c - every call that several threads may make at once, made by
 * two threads of each of two workers, each with a queue, and by two more that
 * make workers. Shared are the workers and the peers; and, of two threads that
 * talk to each other, what they may ask about: each one's operation, message
 * and key. For the thread sanitizer; without it this tells lost messages and
 * deadlocks.
 *
 * Any thread: worker_create, worker_destroy, lanes_query; get_address,
 * release_address, worker_progress, worker_query, worker_print_stats,
 * worker_leave; peer_create, peer_destroy; send_init, recv_init, match,
 * matchall, imatchall, match_test, op_query, op_free; queue_create; req_test,
 * req_wait, req_cancel, req_free; mem_alloc, mem_free, mem_reg, mem_dereg,
 * rkey_pack, rkey_buffer_release, rkey_unpack, rkey_query, rkey_destroy.
 * One thread a queue: all others.
 */
#include "st_caller.h"
#include "../integration/st_any.h"
#include "st_cunit.h"
#include "st_msg.h"

#include <pthread.h>
#include <string.h>

#define THREADS 2   /* of each side */
#define MAKERS  2   /* of workers */
#define ROUNDS  5
#define USES    4
#define LEN     512
#define SIZE    (LEN + sizeof(uint64_t)) /* of a window: data, and a signal */

/** What the two threads of a pair, one of each side, tell each other. */
typedef struct {
    void          *key[2];
    size_t        key_length[2];
    ucp_st_op_h   op[2];
    ucp_st_req_h  req[2];
    ucp_st_rkey_h rkey[2];
    unsigned      arrived; /* atomic: at the points where they meet */
} meeting_t;

/** A thread. */
typedef struct {
    ucp_st_worker_h worker;
    void            *address; /* the other worker's */
    size_t          length;
    int             side;
    unsigned        index;    /* among those of the side */
    meeting_t       *meeting;
    unsigned        met;      /* times that it has met the other one */
    unsigned        *finished;/* threads that are done; atomic */
    ucp_st_peer_h   peer;
    ucs_gstream_h   stream;
    ucp_st_queue_h  queue;
    unsigned        line;     /* of the first that failed, or 0 */
    pthread_t       thread;
} caller_t;

/* Both threads of the pair get here before one goes on */
static void meet(caller_t *caller)
{
    unsigned *arrived = &caller->meeting->arrived;

    (void)__atomic_add_fetch(arrived, 1, __ATOMIC_ACQ_REL);
    ++caller->met;
    while (__atomic_load_n(arrived, __ATOMIC_ACQUIRE) < (2 * caller->met)) {
        (void)ucp_st_worker_progress(caller->worker);
    }
}

static void run_peer(caller_t *caller)
{
    void *address = NULL;
    size_t length;

    CHECK_OK(caller, ucp_st_worker_get_address(caller->worker, &address,
                                               &length));
    ucp_st_worker_release_address(caller->worker, address);
    CHECK_OK(caller, ucp_st_peer_create(caller->worker, caller->address,
                                        caller->length, &caller->peer));
    ucp_st_peer_destroy(caller->peer);
}

static void run_queries(caller_t *caller)
{
    ucp_st_worker_attr_t attr;
    ucp_st_queue_error_t error;
    FILE *null = fopen("/dev/null", "w");

    CHECK_OK(caller, ucp_st_worker_query(caller->worker, &attr));
    CHECK_OK(caller, ucp_st_queue_query(caller->queue, &error));
    if (null != NULL) {
        ucp_st_worker_print_stats(caller->worker, null);
        fclose(null);
    }
    (void)ucp_st_worker_progress(caller->worker);
}

/* While its own thread uses it */
static void ask_op(caller_t *caller, ucp_st_op_h op)
{
    ucp_st_op_attr_t attr;

    CHECK_OK(caller, ucp_st_op_query(op, &attr));
    CHECK(caller, attr.length == LEN);
    CHECK_OK(caller, ucp_st_match_test(op));
}

/* Two operations of a thread: one is matched by a call that blocks, one is
 * asked for */
static void run_ops(caller_t *caller)
{
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_TAG,
        .length     = LEN,
        .peer       = caller->peer
    };
    uint8_t buffer[2][LEN];
    meeting_t *meeting = caller->meeting;
    ucs_status_t status;
    ucp_st_op_h op[2];
    int i;

    for (i = 0; i < 2; ++i) {
        params.buffer = buffer[i];
        params.tag    = (2 * caller->index) + i;
        st_fill(buffer[i], LEN, (caller->side == 0) ? params.tag : 99);
        CHECK_OK(caller, ((caller->side == 0) ? ucp_st_send_init :
                                                ucp_st_recv_init)(
                                 caller->worker, &params, &op[i]));
    }
    CHECK_OK(caller, ucp_st_imatchall(&op[0], 1));
    CHECK_OK(caller, ucp_st_match(op[1]));
    do {
        status = ucp_st_match_test(op[0]);
    } while (status == UCS_INPROGRESS);
    CHECK_OK(caller, status);
    meeting->op[caller->side] = op[0];
    /* What the two halves told each other went through UCP, of which the thread
     * sanitizer sees nothing: this orders it */
    meet(caller);
    for (i = 0; i < USES; ++i) {
        CHECK_OK(caller, ucp_st_enqueue_startall(caller->queue, op, 2));
        CHECK_OK(caller, ucp_st_enqueue_waitall(caller->queue, op, 2));
        ask_op(caller, op[0]);
        ask_op(caller, meeting->op[!caller->side]);
    }
    CHECK_OK(caller, ucp_st_queue_wait(caller->queue, NULL));
    meet(caller);
    for (i = 0; i < 2; ++i) {
        CHECK(caller, st_check(buffer[i], LEN, (2 * caller->index) + i));
        CHECK_OK(caller, ucp_st_op_free(op[i]));
    }
}

/* At the same time as the other thread of the pair */
static void wait_req(caller_t *caller, ucp_st_req_h req)
{
    ucp_st_req_info_t info;
    ucs_status_t status;

    status = ucp_st_req_test(req, &info);
    CHECK(caller, (status == UCS_OK) || (status == UCS_INPROGRESS));
    CHECK_OK(caller, ucp_st_req_wait(req, &info));
    CHECK_OK(caller, ucp_st_req_test(req, &info));
}

/* A message, and one that nobody sends */
static void run_messages(caller_t *caller)
{
    meeting_t *meeting = caller->meeting;
    ucp_tag_t tag      = 100 + caller->index;
    uint8_t buffer[2][LEN];
    ucp_st_msg_params_t params;
    ucp_st_req_h req = NULL, other = NULL;

    st_fill(buffer[0], LEN, (caller->side == 0) ? tag : 99);
    if (caller->side == 0) {
        params = st_msg_params(caller->peer, buffer[0], LEN, tag);
        CHECK_OK(caller, ucp_st_enqueue_send(caller->queue, &params, &req));
    } else {
        params = st_msg_params(UCP_ST_PEER_ANY, buffer[0], LEN, tag);
        CHECK_OK(caller, ucp_st_enqueue_recv(caller->queue, &params, &req));
    }
    params = st_msg_params(UCP_ST_PEER_ANY, buffer[1], LEN, 1000);
    CHECK_OK(caller, ucp_st_enqueue_recv(caller->queue, &params, &other));
    CHECK_OK(caller, ucp_st_req_cancel(other));
    CHECK(caller, ucp_st_req_test(other, NULL) == UCS_ERR_CANCELED);
    CHECK_OK(caller, ucp_st_req_free(other));
    CHECK_OK(caller, ucp_st_enqueue_batch_start(caller->queue));
    CHECK_OK(caller, ucp_st_enqueue_batch_wait(caller->queue));
    meeting->req[caller->side] = req;
    meet(caller);
    wait_req(caller, meeting->req[!caller->side]);
    wait_req(caller, req);
    CHECK_OK(caller, ucp_st_queue_wait(caller->queue, NULL));
    meet(caller);
    CHECK_OK(caller, ucp_st_req_free(req));
    CHECK(caller, st_check(buffer[0], LEN, tag));
}

static void run_rma_ops(caller_t *caller, ucp_st_mem_h memh, ucp_st_rkey_h rkey)
{
    ucp_st_rma_params_t params         = {
        .field_mask = UCP_ST_RMA_PARAM_FIELD_MEMH |
                      UCP_ST_RMA_PARAM_FIELD_LENGTH |
                      UCP_ST_RMA_PARAM_FIELD_RKEY,
        .memh       = memh,
        .length     = LEN / 2,
        .rkey       = rkey
    };
    ucp_st_signal_params_t signal      = {
        .field_mask = UCP_ST_SIGNAL_PARAM_FIELD_RKEY |
                      UCP_ST_SIGNAL_PARAM_FIELD_OFFSET |
                      UCP_ST_SIGNAL_PARAM_FIELD_VALUE,
        .rkey       = rkey,
        .offset     = LEN,
        .value      = 1
    };
    ucp_st_wait_signal_params_t wait   = {
        .field_mask = UCP_ST_WAIT_SIGNAL_PARAM_FIELD_MEMH |
                      UCP_ST_WAIT_SIGNAL_PARAM_FIELD_OFFSET |
                      UCP_ST_WAIT_SIGNAL_PARAM_FIELD_VALUE,
        .memh       = memh,
        .offset     = LEN,
        .value      = 1
    };

    if (caller->side == 0) {
        CHECK_OK(caller, ucp_st_enqueue_put(caller->queue, &params));
        CHECK_OK(caller, ucp_st_enqueue_quiet(caller->queue));
        CHECK_OK(caller, ucp_st_enqueue_get(caller->queue, &params));
        CHECK_OK(caller, ucp_st_enqueue_quiet(caller->queue));
        CHECK_OK(caller, ucp_st_enqueue_put_signal(caller->queue, &params,
                                                   &signal));
        CHECK_OK(caller, ucp_st_enqueue_quiet(caller->queue));
    } else {
        CHECK_OK(caller, ucp_st_enqueue_wait_signal(caller->queue, &wait));
    }
    CHECK_OK(caller, ucp_st_queue_wait(caller->queue, NULL));
}

static void run_rma(caller_t *caller)
{
    meeting_t *meeting = caller->meeting;
    void *memory       = NULL;
    ucp_st_rkey_attr_t attr;
    ucp_st_rkey_h rkey;
    ucs_status_t status;
    ucp_st_mem_h memh;

    CHECK_OK(caller, ucp_st_mem_alloc(SIZE, &memory));
    memset(memory, 0, SIZE);
    st_fill(memory, LEN / 2, (caller->side == 0) ? caller->index : 99);
    CHECK_OK(caller, ucp_st_mem_reg(caller->worker, memory, SIZE, &memh));
    CHECK_OK(caller, ucp_st_rkey_pack(memh, &meeting->key[caller->side],
                                      &meeting->key_length[caller->side]));
    meet(caller);
    CHECK_OK(caller, ucp_st_rkey_unpack(caller->peer,
                                        meeting->key[!caller->side],
                                        meeting->key_length[!caller->side],
                                        &rkey));
    meeting->rkey[caller->side] = rkey;
    meet(caller);
    CHECK_OK(caller, ucp_st_rkey_query(rkey, &attr));
    CHECK_OK(caller, ucp_st_rkey_query(meeting->rkey[!caller->side], &attr));
    run_rma_ops(caller, memh, rkey);
    CHECK(caller, st_check(memory, LEN / 2, caller->index));
    meet(caller);
    CHECK_OK(caller, ucp_st_rkey_destroy(rkey));
    ucp_st_rkey_buffer_release(meeting->key[caller->side]);
    while ((status = ucp_st_mem_dereg(memh)) == UCS_ERR_BUSY) {
        (void)ucp_st_worker_progress(caller->worker);
    }
    CHECK_OK(caller, status);
    CHECK_OK(caller, ucp_st_mem_free(memory));
    meet(caller);
}

static void run_queue(caller_t *caller)
{
    ucp_st_queue_params_t params       = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM
    };

    CHECK_OK(caller, st_any_stream(&caller->stream));
    params.stream = caller->stream;
    CHECK_OK(caller, ucp_st_queue_create(caller->worker, &params,
                                         &caller->queue));
    run_ops(caller);
    run_messages(caller);
    run_rma(caller);
    run_queries(caller);
    CHECK_OK(caller, ucp_st_queue_destroy(caller->queue));
    CHECK_OK(caller, ucs_gstream_synchronize(caller->stream));
    CHECK_OK(caller, ucs_gstream_destroy(caller->stream));
}

static void *caller_main(void *arg)
{
    caller_t *caller = arg;
    int i;

    for (i = 0; (i < ROUNDS) && (caller->line == 0); ++i) {
        run_peer(caller);
        run_queue(caller);
    }
    /* Nobody matches any more when the first one leaves */
    (void)__atomic_add_fetch(caller->finished, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(caller->finished, __ATOMIC_ACQUIRE) <
           (2 * THREADS)) {
        (void)ucp_st_worker_progress(caller->worker);
    }
    CHECK_OK(caller, ucp_st_worker_leave(caller->worker));
    return NULL;
}

/* Workers are made and destroyed while others are in use, and made */
static void *maker_main(void *arg)
{
    ucp_st_worker_params_t params = {.field_mask = 0};
    int *failures                 = arg;
    ucp_st_lanes_attr_t attr;
    ucp_st_worker_h worker;
    int i;

    for (i = 0; i < 2; ++i) {
        if ((ucp_st_worker_create(&params, &worker) != UCS_OK) ||
            (ucp_st_lanes_query(&params, &attr) != UCS_OK) ||
            (ucp_st_worker_destroy(worker) != UCS_OK)) {
            ++*failures;
        }
    }
    return NULL;
}

ST_CASE(calls)
{
    meeting_t meeting[THREADS]   = {{.arrived = 0}};
    caller_t caller[2][THREADS];
    unsigned finished            = 0;
    int failures[MAKERS]         = {0};
    void *address[2];
    size_t length[2];
    pthread_t makers[MAKERS];
    st_side_t side[2];
    int i, j;

    for (i = 0; i < 2; ++i) {
        st_side_init(&side[i]);
        CU_ASSERT_EQUAL(ucp_st_worker_get_address(side[i].worker, &address[i],
                                                  &length[i]), UCS_OK);
    }
    for (i = 0; i < 2; ++i) {
        for (j = 0; j < THREADS; ++j) {
            caller[i][j] = (caller_t){
                .worker   = side[i].worker,
                .address  = address[!i],
                .length   = length[!i],
                .side     = i,
                .index    = j,
                .meeting  = &meeting[j],
                .finished = &finished
            };
        }
    }
    for (i = 0; i < MAKERS; ++i) {
        CU_ASSERT_EQUAL(pthread_create(&makers[i], NULL, maker_main,
                                       &failures[i]), 0);
    }
    for (i = 0; i < 2; ++i) {
        for (j = 0; j < THREADS; ++j) {
            CU_ASSERT_EQUAL(pthread_create(&caller[i][j].thread, NULL,
                                           caller_main, &caller[i][j]), 0);
        }
    }
    for (i = 0; i < 2; ++i) {
        for (j = 0; j < THREADS; ++j) {
            CU_ASSERT_EQUAL(pthread_join(caller[i][j].thread, NULL), 0);
            CU_ASSERT_EQUAL(caller[i][j].line, 0);
            if (caller[i][j].line != 0) {
                printf("  side %d, thread %d: line %u\n", i, j,
                       caller[i][j].line);
            }
        }
    }
    for (i = 0; i < MAKERS; ++i) {
        CU_ASSERT_EQUAL(pthread_join(makers[i], NULL), 0);
        CU_ASSERT_EQUAL(failures[i], 0);
    }
    for (i = 0; i < 2; ++i) {
        ucp_st_worker_release_address(side[i].worker, address[i]);
    }
    st_side_leave(&side[0], &side[1]);
    st_side_cleanup(&side[1]);
}

ST_SUITE("st_threads")
