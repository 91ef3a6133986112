/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_life.c - the life of two st workers in one process, whatever happens to
 * them.
 */
#include "st_life.h"
#include "../integration/st_any.h"

#include <CUnit/CUnit.h>

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define NUM_OPS ST_LIFE_OPS
#define LENGTH  20000
#define USES    3

/* Of an exchange: sends, then as many receives */
#define NUM_SENDS  2
#define NUM_JOINED (2 * NUM_SENDS)

/* Of the words that are put and got: source, destination, signal, and what is
 * got */
#define NUM_WORDS 4

/** One of two workers that know each other. */
typedef struct side {
    ucs_gstream_h   stream;
    ucp_st_worker_h worker;
    ucp_st_queue_h  queue;
    ucp_st_peer_h   peer;
    ucp_st_op_h     ops[NUM_OPS];
    ucp_st_mem_h    memh; /* of words */
    ucp_st_rkey_h   rkey; /* of the other side's */
    uint64_t        words[NUM_WORDS];
    ucs_status_t    destroyed;
    int             is_gone;
    uint8_t         data[NUM_OPS][LENGTH];
    ucp_st_op_h     joined[NUM_JOINED];
    ucp_st_exchange_h exchange; /* of them; coupled at one side */
    uint8_t         joined_data[NUM_JOINED][LENGTH];
} side_t;

static side_t sides[2];

static const size_t lengths[NUM_OPS] = {8, 1000, LENGTH, 0};


ucs_status_t st_life_open(ucs_gstream_h *stream_p, ucp_st_worker_h *worker_p,
                          ucp_st_queue_h *queue_p)
{
    ucp_st_worker_params_t params      = {.field_mask = 0};
    ucp_st_queue_params_t queue_params = {
        .field_mask = UCP_ST_QUEUE_PARAM_FIELD_STREAM
    };
    ucs_status_t status;

    status = st_any_stream(stream_p);
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_st_worker_create(&params, worker_p);
    if (status != UCS_OK) {
        return status;
    }
    queue_params.stream = *stream_p;
    return ucp_st_queue_create(*worker_p, &queue_params, queue_p);
}

static ucs_status_t connect_side(side_t *side, side_t *other)
{
    ucs_status_t status;
    void *address;
    size_t length;

    status = ucp_st_worker_get_address(other->worker, &address, &length);
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_st_peer_create(side->worker, address, length, &side->peer);
    ucp_st_worker_release_address(other->worker, address);
    return status;
}

/* Of the lengths, number `tag` % 100 is its */
static ucs_status_t make_op(side_t *side, int is_send, uint64_t tag, void *data,
                            ucp_st_op_h *op_p)
{
    unsigned number           = tag % 100;

    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_TAG |
                      UCP_ST_OP_PARAM_FIELD_MODE,
        .buffer     = data,
        .length     = lengths[number],
        .peer       = side->peer,
        .tag        = tag,
        .mode       = (number == 1) ? UCP_ST_MODE_READY : UCP_ST_MODE_STANDARD
    };

    return (is_send ? ucp_st_send_init : ucp_st_recv_init)(side->worker,
                                                           &params, op_p);
}

/* The first side sends what is alone, and all ready ones */
static ucs_status_t make_ops(side_t *side, int is_first)
{
    ucs_status_t status = UCS_OK;
    unsigned i;

    for (i = 0; (i < NUM_OPS) && (status == UCS_OK); ++i) {
        status = make_op(side, is_first, i, side->data[i], &side->ops[i]);
    }
    for (i = 0; (i < NUM_JOINED) && (status == UCS_OK); ++i) {
        status = make_op(side, i < NUM_SENDS,
                         (2 * (i % NUM_SENDS)) +
                         (((i < NUM_SENDS) == is_first) ? 100 : 200),
                         side->joined_data[i], &side->joined[i]);
    }
    return (status != UCS_OK) ? status :
           ucp_st_exchange_create(side->worker, side->joined, NUM_JOINED,
                                  is_first ? UCP_ST_EXCHANGE_FLAG_COUPLED : 0,
                                  &side->exchange);
}

/* UCS_OK if all of a side are matched, UCS_INPROGRESS, or an error */
static ucs_status_t match_test(side_t *side)
{
    ucs_status_t result = ucp_st_exchange_match_test(side->exchange);
    ucs_status_t status;
    unsigned i;

    for (i = 0; (i < NUM_OPS) && !UCS_STATUS_IS_ERR(result); ++i) {
        status = ucp_st_match_test(side->ops[i]);
        result = (status == UCS_OK) ? result : status;
    }
    return result;
}

/* Progress both sides until all operations are matched, or one is in error */
static ucs_status_t match_all(void)
{
    ucs_status_t status, results[2];
    unsigned i;

    for (i = 0; i < 2; ++i) {
        status = ucp_st_imatchall(sides[i].ops, NUM_OPS);
        if (status == UCS_OK) {
            status = ucp_st_exchange_imatch(sides[i].exchange);
        }
        if (status != UCS_OK) {
            return status;
        }
    }
    do {
        for (i = 0; i < 2; ++i) {
            results[i] = match_test(&sides[i]);
            if (UCS_STATUS_IS_ERR(results[i])) {
                return results[i];
            }
        }
        (void)sched_yield();
    } while ((results[0] != UCS_OK) || (results[1] != UCS_OK));
    return UCS_OK;
}

/* Receives first, for the ready send; each side's waits pass in stream order */
static ucs_status_t use_all(void)
{
    ucs_status_t status;
    int i;

    for (i = 1; i >= 0; --i) {
        status = ucp_st_enqueue_startall(sides[i].queue, sides[i].ops, NUM_OPS);
        if (status == UCS_OK) {
            status = ucp_st_enqueue_exchange_start(sides[i].queue,
                                                   sides[i].exchange);
        }
        if (status != UCS_OK) {
            return status;
        }
        status = ucs_gstream_synchronize(sides[i].stream);
        if (status != UCS_OK) {
            return status;
        }
    }
    for (i = 0; i < 2; ++i) {
        status = ucp_st_enqueue_waitall(sides[i].queue, sides[i].ops, NUM_OPS);
        if (status == UCS_OK) {
            status = ucp_st_enqueue_exchange_wait(sides[i].queue,
                                                  sides[i].exchange);
        }
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_OK;
}

/* Until both are done, or one is in error */
static ucs_status_t wait_both(void)
{
    ucs_status_t status;
    int i, is_done[2];

    do {
        for (i = 0; i < 2; ++i) {
            status     = ucp_st_queue_query(sides[i].queue, NULL);
            is_done[i] = (status == UCS_OK);
            if (!is_done[i] && (status != UCS_INPROGRESS)) {
                return status;
            }
        }
        (void)sched_yield();
    } while (!is_done[0] || !is_done[1]);
    return UCS_OK;
}

static void fill_all(unsigned use)
{
    unsigned i;

    for (i = 0; i < NUM_OPS; ++i) {
        memset(sides[0].data[i], 'a' + use, lengths[i]);
    }
    for (i = 0; i < NUM_SENDS; ++i) {
        memset(sides[0].joined_data[i], 'A' + use, lengths[2 * i]);
        memset(sides[1].joined_data[i], '0' + use, lengths[2 * i]);
    }
}

/* Each side's sends are the other one's receives */
static void check_joined(const side_t *from, const side_t *to)
{
    unsigned i;

    for (i = 0; i < NUM_SENDS; ++i) {
        CU_ASSERT_EQUAL(memcmp(from->joined_data[i],
                               to->joined_data[NUM_SENDS + i],
                               lengths[2 * i]), 0);
    }
}

static ucs_status_t use_often(void)
{
    ucs_status_t status = UCS_OK;
    unsigned i, j;

    for (i = 0; (i < USES) && (status == UCS_OK); ++i) {
        fill_all(i);
        status = use_all();
        if (status == UCS_OK) {
            status = wait_both();
        }
        for (j = 0; (j < NUM_OPS) && (status == UCS_OK); ++j) {
            CU_ASSERT_EQUAL(memcmp(sides[0].data[j], sides[1].data[j],
                                   lengths[j]), 0);
        }
        if (status == UCS_OK) {
            check_joined(&sides[0], &sides[1]);
            check_joined(&sides[1], &sides[0]);
        }
    }
    return status;
}

/* The other side's words can be put to and got from */
static ucs_status_t open_words(side_t *side, side_t *other)
{
    ucs_status_t status;
    void *key;
    size_t length;

    status = ucp_st_mem_reg(other->worker, other->words, sizeof(other->words),
                            &other->memh);
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_st_rkey_pack(other->memh, &key, &length);
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_st_rkey_unpack(side->peer, key, length, &side->rkey);
    ucp_st_rkey_buffer_release(key);
    return status;
}

/* A word with a signal to the other side, another one from there */
static ucs_status_t put_and_get(side_t *side)
{
    ucp_st_rma_params_t params = {
        .field_mask    = UCP_ST_RMA_PARAM_FIELD_MEMH |
                         UCP_ST_RMA_PARAM_FIELD_OFFSET |
                         UCP_ST_RMA_PARAM_FIELD_LENGTH |
                         UCP_ST_RMA_PARAM_FIELD_RKEY |
                         UCP_ST_RMA_PARAM_FIELD_REMOTE_OFFSET,
        .memh          = side->memh,
        .length        = sizeof(uint64_t),
        .rkey          = side->rkey,
        .remote_offset = sizeof(uint64_t)
    };
    ucp_st_signal_params_t signal = {
        .field_mask = UCP_ST_SIGNAL_PARAM_FIELD_RKEY |
                      UCP_ST_SIGNAL_PARAM_FIELD_OFFSET |
                      UCP_ST_SIGNAL_PARAM_FIELD_VALUE,
        .rkey       = side->rkey,
        .offset     = 2 * sizeof(uint64_t),
        .value      = 1
    };
    ucs_status_t status;

    status = ucp_st_enqueue_put_signal(side->queue, &params, &signal);
    if (status != UCS_OK) {
        return status;
    }
    params.offset        = 3 * sizeof(uint64_t);
    params.remote_offset = 0;
    status               = ucp_st_enqueue_get(side->queue, &params);
    return (status == UCS_OK) ? ucp_st_enqueue_quiet(side->queue) : status;
}

static ucs_status_t await_signal(side_t *side)
{
    ucp_st_wait_signal_params_t params = {
        .field_mask = UCP_ST_WAIT_SIGNAL_PARAM_FIELD_MEMH |
                      UCP_ST_WAIT_SIGNAL_PARAM_FIELD_OFFSET |
                      UCP_ST_WAIT_SIGNAL_PARAM_FIELD_VALUE |
                      UCP_ST_WAIT_SIGNAL_PARAM_FIELD_PEER,
        .memh       = side->memh,
        .offset     = 2 * sizeof(uint64_t),
        .value      = 1,
        .peer       = side->peer
    };

    return ucp_st_enqueue_wait_signal(side->queue, &params);
}

static ucs_status_t use_words(void)
{
    ucs_status_t status = UCS_OK;
    int i;

    for (i = 0; (i < 2) && (status == UCS_OK); ++i) {
        sides[i].words[0] = 10 + i;
        status            = open_words(&sides[i], &sides[!i]);
    }
    for (i = 0; (i < 2) && (status == UCS_OK); ++i) {
        status = put_and_get(&sides[i]);
    }
    for (i = 0; (i < 2) && (status == UCS_OK); ++i) {
        status = await_signal(&sides[i]);
    }
    if (status == UCS_OK) {
        status = wait_both();
    }
    for (i = 0; (i < 2) && (status == UCS_OK); ++i) {
        CU_ASSERT_EQUAL(sides[i].words[1], (uint64_t)(11 - i));
        CU_ASSERT_EQUAL(sides[i].words[3], (uint64_t)(11 - i));
    }
    return status;
}

static ucs_status_t run(void)
{
    ucs_status_t status = UCS_OK;
    unsigned i;

    for (i = 0; (i < 2) && (status == UCS_OK); ++i) {
        status = st_life_open(&sides[i].stream, &sides[i].worker,
                              &sides[i].queue);
    }
    for (i = 0; (i < 2) && (status == UCS_OK); ++i) {
        status = connect_side(&sides[i], &sides[!i]);
    }
    for (i = 0; (i < 2) && (status == UCS_OK); ++i) {
        status = make_ops(&sides[i], i == 0);
    }
    if (status == UCS_OK) {
        status = match_all();
    }
    if (status == UCS_OK) {
        status = use_often();
    }
    return (status == UCS_OK) ? use_words() : status;
}

static void progress_both(void)
{
    (void)ucp_st_worker_progress(sides[0].worker);
    (void)ucp_st_worker_progress(sides[1].worker);
    (void)sched_yield();
}

static int was_started(ucp_st_op_h op)
{
    ucp_st_op_attr_t attr;

    CU_ASSERT_EQUAL(ucp_st_op_query(op, &attr), UCS_OK);
    return attr.started > 0;
}

/* An operation of a stream that still waits is busy: the peer's end, which is
 * found out by and by, releases it. Where the wait could not be enqueued, it is
 * now; no other start lacks one. */
static void close_op(side_t *side, ucp_st_op_h op)
{
    ucs_status_t status;

    if (ucp_st_op_free(op) == UCS_OK) {
        return;
    }
    if (was_started(op)) {
        (void)ucp_st_enqueue_wait(side->queue, op);
    }
    do {
        status = ucp_st_op_free(op);
        progress_both();
    } while (status == UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(status, UCS_OK);
}

/* The same; one that could not be made has its operations only */
static void close_exchange(side_t *side)
{
    ucs_status_t status;
    unsigned i;

    for (i = 0; (side->exchange == NULL) && (i < NUM_JOINED); ++i) {
        if (side->joined[i] != NULL) {
            close_op(side, side->joined[i]);
        }
    }
    if ((side->exchange == NULL) ||
        (ucp_st_exchange_free(side->exchange) == UCS_OK)) {
        return;
    }
    if (was_started(side->joined[0])) {
        (void)ucp_st_enqueue_exchange_wait(side->queue, side->exchange);
    }
    do {
        status = ucp_st_exchange_free(side->exchange);
        progress_both();
    } while (status == UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(status, UCS_OK);
}

static void close_ops(side_t *side)
{
    unsigned i;

    for (i = 0; i < NUM_OPS; ++i) {
        if (side->ops[i] != NULL) {
            close_op(side, side->ops[i]);
        }
    }
    close_exchange(side);
}

/* Operations that no quiet was enqueued for may not be over */
static void close_queue(side_t *side)
{
    ucs_status_t status;

    if (side->queue == NULL) {
        return;
    }
    /* The signal, if the other side could not send it: its stream looks */
    __atomic_store_n(&side->words[2], 1, __ATOMIC_RELEASE);
    (void)ucp_st_queue_wait(side->queue, NULL);
    do {
        status = ucp_st_queue_destroy(side->queue);
        progress_both();
    } while (status == UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(status, UCS_OK);
}

/* Which the other side may be writing to */
static void close_words(side_t *side)
{
    ucs_status_t status = UCS_OK;

    if (side->rkey != NULL) {
        CU_ASSERT_EQUAL(ucp_st_rkey_destroy(side->rkey), UCS_OK);
    }
    if (side->memh == NULL) {
        return;
    }
    do {
        status = ucp_st_mem_dereg(side->memh);
        progress_both();
    } while (status == UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(status, UCS_OK);
}

/* In a thread of its own, as each side waits for the other's last word */
static void *destroy_worker(void *arg)
{
    side_t *side = arg;

    side->destroyed = (side->worker == NULL) ?
                      UCS_OK : ucp_st_worker_destroy(side->worker);
    __atomic_store_n(&side->is_gone, 1, __ATOMIC_RELEASE);
    return NULL;
}

static pthread_t destroy_begin(side_t *side)
{
    pthread_t thread;
    int ret = pthread_create(&thread, NULL, destroy_worker, side);

    CU_ASSERT_EQUAL_FATAL(ret, 0);
    return thread;
}

static void destroy_end(side_t *side, pthread_t thread)
{
    (void)pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(side->destroyed, UCS_OK);
    side->worker = NULL;
}

static void close_stream(side_t *side)
{
    if (side->stream != NULL) {
        CU_ASSERT_EQUAL(ucs_gstream_synchronize(side->stream), UCS_OK);
        CU_ASSERT_EQUAL(ucs_gstream_destroy(side->stream), UCS_OK);
    }
}

/* All is well, and both may go at the same time */
static void close_both(void)
{
    pthread_t threads[2];
    int i;

    close_ops(&sides[0]);
    close_ops(&sides[1]);
    close_queue(&sides[0]);
    close_queue(&sides[1]);
    close_words(&sides[0]);
    close_words(&sides[1]);
    for (i = 0; i < 2; ++i) {
        threads[i] = destroy_begin(&sides[i]);
    }
    for (i = 0; i < 2; ++i) {
        destroy_end(&sides[i], threads[i]);
    }
}

/* Something failed, at this side or at the other one, whose streams are
 * released as well; each answers to the other one's end */
static void close_one(side_t *side, side_t *other)
{
    pthread_t thread;

    close_ops(side);
    close_queue(side);
    close_words(side);
    thread = destroy_begin(side);
    while (!__atomic_load_n(&side->is_gone, __ATOMIC_ACQUIRE)) {
        (void)ucp_st_worker_progress(other->worker);
        (void)sched_yield();
    }
    destroy_end(side, thread);
}

ucs_status_t st_life(void)
{
    ucs_status_t status;

    memset(sides, 0, sizeof(sides));
    status = run();
    if (status == UCS_OK) {
        close_both();
    } else {
        close_one(&sides[0], &sides[1]);
        close_one(&sides[1], &sides[0]);
    }
    close_stream(&sides[0]);
    close_stream(&sides[1]);
    return status;
}

/* By this side, by a NIC or a peer that had no room, or by UCP, which goes on
 * without a transport that it could not open */
int st_life_is_fair(ucs_status_t status)
{
    return (status == UCS_ERR_NO_MEMORY) || (status == UCS_ERR_NO_RESOURCE) ||
           (status == UCS_ERR_IO_ERROR) || (status == UCS_ERR_CANCELED) ||
           (status == UCS_ERR_UNREACHABLE) || (status == UCS_ERR_NO_DEVICE) ||
           (status == UCS_ERR_CONNECTION_RESET) ||
           (status == UCS_ERR_ENDPOINT_TIMEOUT) ||
           (status == UCS_ERR_UNSUPPORTED);
}
