/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_worker.c - workers: several threads, one side's operations freed, and
 * what a worker or a queue refuses.
 */
#include "st_cunit.h"
#include "st_flow.h"
#include "st_hook.h"
#include "st_msg.h"
#include "uct_errors.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEN  512
#define LONG ST_LONG
#define MANY 400 /* uses, with the host far ahead of the stream */

/** What one of several host threads works on. */
typedef struct {
    st_side_t   side; /* with a stream and a queue of its own */
    ucp_st_op_h op;
    int         errors;
    pthread_t   thread;
} driver_t;

static void *driver_main(void *arg)
{
    driver_t *driver     = arg;
    ucp_st_queue_h queue = driver->side.queue;
    int k;

    for (k = 0; k < MANY; ++k) {
        driver->errors += ucp_st_enqueue_start(queue, driver->op) != UCS_OK;
        driver->errors += ucp_st_enqueue_wait(queue, driver->op) != UCS_OK;
    }
    driver->errors += ucp_st_queue_wait(queue, NULL) != UCS_OK;
    return NULL;
}

static void driver_start(driver_t *driver, st_side_t *side, ucp_st_op_h op)
{
    driver->op     = op;
    driver->errors = 0;
    st_more_init(&driver->side, side);
    CU_ASSERT_EQUAL(pthread_create(&driver->thread, NULL, driver_main, driver),
                    0);
}

static void driver_end(driver_t *driver)
{
    CU_ASSERT_EQUAL(pthread_join(driver->thread, NULL), 0);
    CU_ASSERT_EQUAL(driver->errors, 0);
    st_free(driver->op);
    st_more_cleanup(&driver->side);
}

/* S11: one thread a queue, all at once: two on A that send, two on B */
ST_PAIR_CASE(threads)
{
    static uint8_t sbuf[2][LEN], rbuf[2][LEN];
    driver_t driver[4];
    ucp_st_op_h op[4];
    int i;

    for (i = 0; i < 2; ++i) {
        st_fill(sbuf[i], LEN, i);
        op[i]     = st_send(a, sbuf[i], LEN, i);
        op[2 + i] = st_recv(b, rbuf[i], LEN, i);
        st_match_ok(op[i], op[2 + i]);
    }
    for (i = 0; i < 4; ++i) {
        driver_start(&driver[i], &pair->side[i / 2], op[i]);
    }
    for (i = 0; i < 4; ++i) {
        driver_end(&driver[i]);
    }
    for (i = 0; i < 2; ++i) {
        CU_ASSERT_TRUE(st_check(rbuf[i], LEN, i));
    }
}

/* S12: the peer's half of a freed operation cannot be started; one under way is
 * released, and the queue tells which it was */
ST_PAIR_CASE(free_matched)
{
    static uint8_t sbuf[2][LONG], rbuf[2][LONG];
    ucp_st_queue_error_t error = {0};
    ucp_st_op_h send[2], recv[2];
    int i;

    for (i = 0; i < 2; ++i) {
        send[i] = st_send(a, sbuf[i], LONG, i);
        recv[i] = st_recv(b, rbuf[i], LONG, i);
        st_match_ok(send[i], recv[i]);
        st_use(a, send[i]);
        st_use(b, recv[i]);
    }
    st_pair_sync(pair);
    st_use(a, send[0]); /* never answered */
    st_free(recv[0]);
    while (ucp_st_queue_query(a->queue, &error) == UCS_INPROGRESS) {
        ucp_st_worker_progress(b->worker);
    }
    CU_ASSERT_EQUAL(error.status, UCS_ERR_CANCELED);
    CU_ASSERT_PTR_EQUAL(error.op, send[0]);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(a->queue, NULL), UCS_ERR_CANCELED);
    /* S9: the queue stays in error, for other operations too */
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(a->queue, send[1]), UCS_ERR_CANCELED);
    st_free2(send[0], send[1]);
    st_free(recv[1]);
    st_drain(pair);
}

/* What a worker needs and does not get is an error, never another way */
ST_CASE(worker_refusals)
{
    ucp_st_worker_params_t params = {.field_mask = 0};
    char *lanes = st_env_set("UCX_ST_LANES", "teleport");
    char *tls   = st_env_set("UCX_TLS", "tcp,self");
    ucp_st_worker_h worker;

    CU_ASSERT_EQUAL(ucp_st_worker_create(&params, &worker),
                    UCS_ERR_INVALID_PARAM);
    setenv("UCX_ST_LANES", "trig", 1);
    CU_ASSERT_EQUAL(ucp_st_worker_create(&params, &worker),
                    UCS_ERR_UNSUPPORTED);
    setenv("UCX_TLS", "^cxi_trig", 1);
    CU_ASSERT_EQUAL(ucp_st_worker_create(&params, &worker),
                    UCS_ERR_UNSUPPORTED);
    st_env_restore("UCX_TLS", tls);
    st_env_restore("UCX_ST_LANES", lanes);
    params.field_mask = UCP_ST_WORKER_PARAM_FIELD_UCP_WORKER;
    params.ucp_worker = NULL;
    CU_ASSERT_EQUAL(ucp_st_worker_create(&params, &worker),
                    UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_worker_create(NULL, &worker), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_worker_destroy(NULL), UCS_ERR_INVALID_PARAM);
}

/* An error, of which one line is logged */
static void address_refused(ucp_st_worker_h worker)
{
    void *address = NULL;
    size_t length = 0;

    uct_errors_begin();
    CU_ASSERT_EQUAL(ucp_st_worker_get_address(worker, &address, &length),
                    UCS_ERR_EXCEEDS_LIMIT);
    CU_ASSERT_PTR_NOT_NULL(strstr(uct_errors_last(), "65536"));
    CU_ASSERT_EQUAL(uct_errors_end(), 1);
    CU_ASSERT_PTR_NULL(address);
    CU_ASSERT_EQUAL(length, 0);
}

/* UCP's own addresses, of the worker and of the service thread's, are of up to
 * 65,535 bytes */
ST_CASE(address_length)
{
    ucp_st_op_h send, recv;
    int from = 5, to = 0;
    st_side_t a, b, c;

    st_hook_address(UINT16_MAX);
    st_side_init(&a);
    st_side_init(&b);
    a.peer = st_side_peer(&a, &b);
    b.peer = st_side_peer(&b, &a);

    st_hook_address(UINT16_MAX + 1);
    address_refused(a.worker);
    st_side_init(&c);
    st_hook_address(0);
    address_refused(c.worker);
    st_side_cleanup(&c);

    send = st_send(&a, &from, sizeof(from), 1);
    recv = st_recv(&b, &to, sizeof(to), 1);
    st_match_ok(send, recv);
    st_start(&a, send);
    st_use(&b, recv);
    st_wait(&a, send);
    st_sync(&a);
    st_sync(&b);
    CU_ASSERT_EQUAL(to, from);
    st_free2(send, recv);
    st_side_leave(&a, &b);
    st_side_cleanup(&b);
}

/* Lanes are told as a worker has them; without a worker each has a reason */
/* Kinds of streams that the user names must be known, and be there */
ST_CASE(stream_types)
{
    static const uint64_t bad[]   = {0, UCS_BIT(UCS_GSTREAM_TYPE_LAST)};
    ucp_st_worker_params_t params = {
        .field_mask   = UCP_ST_WORKER_PARAM_FIELD_STREAM_TYPES,
        .stream_types = UCS_BIT(UCS_GSTREAM_TYPE_HOST)
    };
    ucp_st_worker_h worker;
    ucs_gstream_type_attr_t attr;
    unsigned i;

    CU_ASSERT_EQUAL(ucp_st_worker_create(&params, &worker), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_worker_destroy(worker), UCS_OK);
    for (i = 0; i < 2; ++i) {
        params.stream_types = bad[i];
        CU_ASSERT_EQUAL(ucp_st_worker_create(&params, &worker),
                        UCS_ERR_INVALID_PARAM);
    }
    if (ucs_gstream_query_type(UCS_GSTREAM_TYPE_CUDA, &attr) != UCS_OK) {
        params.stream_types = UCS_BIT(UCS_GSTREAM_TYPE_CUDA);
        CU_ASSERT_EQUAL(ucp_st_worker_create(&params, &worker),
                        UCS_ERR_UNSUPPORTED);
    }
}

ST_CASE(lanes_query)
{
    ucp_st_worker_params_t params = {.field_mask = 0};
    ucp_st_lanes_attr_t attr;
    unsigned open = 0;
    char *lanes;
    unsigned i;

    CU_ASSERT_EQUAL(ucp_st_lanes_query(&params, &attr), UCS_OK);
    CU_ASSERT(attr.count >= 2);
    for (i = 0; i < attr.count; ++i) {
        CU_ASSERT_EQUAL(attr.lanes[i].is_open == 0,
                        attr.lanes[i].reason[0] != '\0');
        CU_ASSERT((attr.lanes[i].lane != st_lane()) || attr.lanes[i].is_open);
        open += (attr.lanes[i].is_open != 0);
    }
    CU_ASSERT(open >= 1);
    lanes = st_env_set("UCX_ST_LANES", "teleport");
    CU_ASSERT_EQUAL(ucp_st_lanes_query(&params, &attr), UCS_ERR_INVALID_PARAM);
    for (i = 0; i < attr.count; ++i) {
        CU_ASSERT(!attr.lanes[i].is_open);
        CU_ASSERT_PTR_NOT_NULL(strstr(attr.lanes[i].reason, "'teleport'"));
    }
    st_env_restore("UCX_ST_LANES", lanes);
    CU_ASSERT_EQUAL(ucp_st_lanes_query(NULL, &attr), UCS_ERR_INVALID_PARAM);
    CU_ASSERT_EQUAL(ucp_st_lanes_query(&params, NULL), UCS_ERR_INVALID_PARAM);
}

ST_CASE(bad_stream)
{
    ucp_st_queue_params_t params = {.field_mask = 0};
    ucp_st_queue_h queue;
    int not_a_stream;
    st_side_t side;

    st_side_init(&side);
    CU_ASSERT_EQUAL(ucp_st_queue_create(side.worker, &params, &queue),
                    UCS_ERR_INVALID_PARAM);
    params.field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM;
    params.stream     = (ucs_gstream_h)&not_a_stream;
    CU_ASSERT_EQUAL(ucp_st_queue_create(side.worker, &params, &queue),
                    UCS_ERR_INVALID_PARAM);
    st_side_cleanup(&side);
}

/* A UCP worker of the user needs no features for matched messages */
ST_CASE(user_worker)
{
    ucp_params_t ucp_params           = {
        .field_mask = UCP_PARAM_FIELD_FEATURES,
        .features   = UCP_FEATURE_RMA
    };
    ucp_worker_params_t worker_params = {.field_mask = 0};
    ucp_st_worker_params_t params     = {
        .field_mask = UCP_ST_WORKER_PARAM_FIELD_UCP_WORKER
    };
    ucp_st_worker_h worker;
    ucp_context_h context;

    CU_ASSERT_EQUAL_FATAL(ucp_init(&ucp_params, NULL, &context), UCS_OK);
    CU_ASSERT_EQUAL_FATAL(ucp_worker_create(context, &worker_params,
                                            &params.ucp_worker), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_worker_create(&params, &worker), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_worker_destroy(worker), UCS_OK);
    ucp_worker_destroy(params.ucp_worker);
    ucp_cleanup(context);
}

/* In a child: calls that would wait for what only the parent has. The number of
 * the first one that was not refused, or 0. */
static int try_all(st_pair_t *pair, ucp_st_op_h op, ucp_st_req_h req)
{
    ucp_st_worker_params_t worker_params = {.field_mask = 0};
    ucp_st_queue_params_t queue_params   = {.field_mask = 0};
    ucp_st_op_params_t op_params         = {.field_mask = 0};
    ucp_st_msg_params_t msg_params       = {.field_mask = 0};
    st_side_t *side                      = &pair->side[ST_A];
    ucp_st_worker_attr_t attr;
    ucp_st_worker_h worker;
    ucp_st_queue_h queue;
    ucp_st_op_attr_t op_attr;
    size_t length;
    void *address;
    unsigned i;
    const ucs_status_t statuses[] = {
        ucp_st_worker_create(&worker_params, &worker),
        ucp_st_worker_get_address(side->worker, &address, &length),
        ucp_st_worker_query(side->worker, &attr),
        ucp_st_queue_create(side->worker, &queue_params, &queue),
        ucp_st_send_init(side->worker, &op_params, &op),
        ucp_st_recv_init(side->worker, &op_params, &op),
        ucp_st_match(op),
        ucp_st_imatchall(&op, 1),
        ucp_st_match_test(op),
        ucp_st_op_query(op, &op_attr),
        ucp_st_enqueue_start(side->queue, op),
        ucp_st_enqueue_wait(side->queue, op),
        ucp_st_enqueue_send(side->queue, &msg_params, NULL),
        ucp_st_enqueue_recv(side->queue, &msg_params, NULL),
        ucp_st_enqueue_batch_start(side->queue),
        ucp_st_enqueue_batch_wait(side->queue),
        ucp_st_req_test(req, NULL),
        ucp_st_req_wait(req, NULL),
        ucp_st_req_cancel(req),
        ucp_st_queue_query(side->queue, NULL),
        ucp_st_queue_wait(side->queue, NULL),
        ucp_st_req_free(req),
        ucp_st_op_free(op),
        ucp_st_queue_destroy(side->queue),
        ucp_st_worker_leave(side->worker),
        ucp_st_worker_destroy(side->worker)
    };

    for (i = 0; i < ST_CUNIT_COUNT(statuses); ++i) {
        if (statuses[i] != UCS_ERR_UNSUPPORTED) {
            return i + 1;
        }
    }
    return (ucp_st_worker_progress(side->worker) == 0) ? 0 : (i + 1);
}

/* Bytes of /dev/shm that UCX has mapped here */
static size_t shm_mapped(void)
{
    FILE *file   = fopen("/proc/self/maps", "r");
    size_t total = 0;
    unsigned long start, end;
    char line[512];

    CU_ASSERT_FATAL(file != NULL);
    while (fgets(line, sizeof(line), file) != NULL) {
        if ((strstr(line, "/dev/shm/ucx") != NULL) &&
            (sscanf(line, "%lx-%lx", &start, &end) == 2)) {
            total += end - start;
        }
    }
    fclose(file);
    return total;
}

/* Containers have 64 MB of it for all ranks, and some 32 */
ST_CASE(little_shm)
{
    ucp_st_worker_params_t params = {.field_mask = 0};
    char *outer                   = st_env_set("UCX_TLS", "posix,self");
    size_t before                 = shm_mapped();
    ucp_st_worker_h worker;

    CU_ASSERT_EQUAL_FATAL(ucp_st_worker_create(&params, &worker), UCS_OK);
    CU_ASSERT(shm_mapped() > before);
    CU_ASSERT((shm_mapped() - before) < (3ul << 20));
    CU_ASSERT_EQUAL(ucp_st_worker_destroy(worker), UCS_OK);
    st_env_restore("UCX_TLS", outer);
}

/* A child of fork() is refused everything, and the parent does not notice */
FLOW_CASE(fork, 64, 0)
{
    ucp_st_req_h req;
    pid_t child;
    int status;

    req   = st_msg_recv(a, NULL, 0, 1);
    child = fork();
    if (child == 0) {
        _exit(try_all(&flow->pair, flow->send, req));
    }
    CU_ASSERT(child > 0);
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);

    flow_use(flow, 7);
    CU_ASSERT_EQUAL(ucp_st_req_free(req), UCS_OK);
}

/* S9: a queue in error is alone in that: another one, of another stream, goes
 * on with the same peer, and the one in error can be destroyed */
ST_PAIR_CASE(error_is_local)
{
    static uint8_t sbuf[2][LONG], rbuf[2][LONG];
    ucp_st_queue_error_t error = {0};
    ucp_st_op_h send[2], recv[2];
    st_side_t other;
    int i;

    for (i = 0; i < 2; ++i) {
        st_fill(sbuf[i], LONG, i);
        send[i] = st_send(a, sbuf[i], LONG, i);
        recv[i] = st_recv(b, rbuf[i], LONG, i);
        st_match_ok(send[i], recv[i]);
    }
    st_more_init(&other, a);
    st_use(&other, send[0]); /* never answered */
    st_free(recv[0]);
    while (ucp_st_queue_query(other.queue, &error) == UCS_INPROGRESS) {
        ucp_st_worker_progress(b->worker);
    }
    CU_ASSERT_EQUAL(error.status, UCS_ERR_CANCELED);
    CU_ASSERT_PTR_EQUAL(error.op, send[0]);

    st_use(a, send[1]);
    st_use(b, recv[1]);
    st_pair_sync(pair);
    CU_ASSERT_TRUE(st_check(rbuf[1], LONG, 1));
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(other.queue, send[1]),
                    UCS_ERR_CANCELED);
    st_free(send[0]);
    st_more_cleanup(&other);
    st_free(send[1]);
    st_free(recv[1]);
    st_drain(pair);
}

/** What a thread that only looks works on. */
typedef struct {
    st_side_t   *side;
    ucp_st_op_h op;
    uint64_t    stop;
    int         errors;
} looker_t;

static void *looker_main(void *arg)
{
    looker_t *looker = arg;
    ucp_st_worker_attr_t attr;
    ucp_st_op_attr_t op_attr;
    uint64_t last = 0;

    while (!__atomic_load_n(&looker->stop, __ATOMIC_ACQUIRE)) {
        looker->errors += ucp_st_worker_query(looker->side->worker, &attr) !=
                          UCS_OK;
        looker->errors += ucp_st_op_query(looker->op, &op_attr) != UCS_OK;
        looker->errors += (op_attr.completed < last) ||
                          (op_attr.completed > op_attr.started);
        last            = op_attr.completed;
    }
    return NULL;
}

/* S11: another thread may ask for counts at any time; they only grow */
FLOW_CASE(looking_on, LEN, 0)
{
    looker_t looker = {.errors = 0};
    pthread_t thread;
    int k;

    looker.side = a;
    looker.op   = flow->send;
    CU_ASSERT_EQUAL(pthread_create(&thread, NULL, looker_main, &looker), 0);
    for (k = 0; k < MANY; ++k) {
        st_use(a, flow->send);
        st_use(b, flow->recv);
    }
    st_pair_sync(&flow->pair);
    __atomic_store_n(&looker.stop, 1, __ATOMIC_RELEASE);
    CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
    CU_ASSERT_EQUAL(looker.errors, 0);
}

/* S12: a side that is through frees its operation before the other side has
 * enqueued its wait, which passes all the same */
ST_PAIR_CASE(free_first)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    ucp_st_op_h send, recv;
    int round;

    for (round = 0; round < 4; ++round) {
        st_fill(sbuf, LEN, round);
        send = st_send(a, sbuf, LEN, 1);
        recv = st_recv(b, rbuf, LEN, 1);
        st_match_ok(send, recv);
        st_start(b, recv);
        st_start(a, send);
        if (round % 2) {
            st_wait(a, send);
            st_sync(a);
            st_free(send);
            ucp_st_worker_progress(b->worker);
            st_wait(b, recv);
            st_sync(b);
            st_free(recv);
        } else {
            st_wait(b, recv);
            st_sync(b);
            st_free(recv);
            ucp_st_worker_progress(a->worker);
            st_wait(a, send);
            st_sync(a);
            st_free(send);
        }
        CU_ASSERT_TRUE(st_check(rbuf, LEN, round));
    }
    st_drain(pair);
}

/* S12: a worker whose operations are there is not destroyed, and works on */
ST_CASE(destroy_refused)
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    ucp_st_op_h ops[2];
    st_side_t side;
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH | UCP_ST_OP_PARAM_FIELD_PEER,
        .length     = LEN
    };
    int i;

    st_side_init(&side);
    side.self   = st_side_peer(&side, &side);
    params.peer = side.self;
    for (i = 0; i < 2; ++i) {
        params.buffer = i ? sbuf : rbuf;
        ops[i]        = st_op(&side, i, &params);
    }
    CU_ASSERT_EQUAL(ucp_st_worker_destroy(side.worker), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_matchall(ops, 2, NULL), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_worker_destroy(side.worker), UCS_ERR_BUSY);
    st_fill(sbuf, LEN, 1);
    CU_ASSERT_EQUAL(ucp_st_enqueue_startall(side.queue, ops, 2), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_op_free(ops[0]), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_op_free(ops[1]), UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_enqueue_waitall(side.queue, ops, 2), UCS_OK);
    st_sync(&side);
    CU_ASSERT_TRUE(st_check(rbuf, LEN, 1));
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(side.queue), UCS_OK);
    side.queue = NULL;
    CU_ASSERT_EQUAL(ucp_st_worker_destroy(side.worker), UCS_ERR_BUSY);
    st_free2(ops[0], ops[1]);
    st_side_cleanup(&side);
}

ST_SUITE("st_worker")
