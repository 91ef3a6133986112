/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_waits.c - what the library says of what waits for a peer: once by
 * itself (UCX_ST_WARN_TIME), and to whoever asks.
 */
#include "../integration/st_any.h"
#include "st_ask.h"
#include "st_cunit.h"
#include "st_pair.h"
#include "st_pe.h"
#include "st_stream.h"
#include "st_window.h"

#include <ucs/debug/log_def.h>

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LEN 256

/* UCX_ST_WARN_TIME of most cases, seconds */
#define WARN_TIME 0.1

/* The warnings, a line each. The service thread warns, too. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char said[1 << 16];

static ucs_log_func_rc_t on_log(const char *file, unsigned line,
                                const char *function, ucs_log_level_t level,
                                const ucs_log_component_config_t *comp_conf,
                                const char *message, va_list ap)
{
    char text[2048];

    if (level != UCS_LOG_LEVEL_WARN) {
        return UCS_LOG_FUNC_RC_CONTINUE;
    }
    vsnprintf(text, sizeof(text), message, ap);
    pthread_mutex_lock(&lock);
    snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s\n", text);
    pthread_mutex_unlock(&lock);
    return UCS_LOG_FUNC_RC_STOP;
}

/* How many of the lines have both; their ends count */
static unsigned lines(const char *what, const char *more)
{
    unsigned number = 0;
    char line[2048];
    const char *text, *end;

    pthread_mutex_lock(&lock);
    for (text = said; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        snprintf(line, sizeof(line), "%.*s", (int)(end + 1 - text), text);
        number += (strstr(line, what) != NULL) && (strstr(line, more) != NULL);
    }
    pthread_mutex_unlock(&lock);
    return number;
}

static unsigned count(const char *what)
{
    return lines(what, "");
}

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + (ts.tv_nsec * 1e-9);
}

/* Until it was said, by whichever thread; the case hangs if it is not. With a
 * pair its hosts make calls. */
static void until(st_pair_t *pair, const char *what)
{
    while (count(what) == 0) {
        if (pair != NULL) {
            ucp_st_worker_progress(pair->side[ST_A].worker);
            ucp_st_worker_progress(pair->side[ST_B].worker);
        }
        sched_yield();
    }
}

/* The same of one line with both, and no host makes a call */
static void until_both(const char *what, const char *more)
{
    while (lines(what, more) == 0) {
        sched_yield();
    }
}

/* So many lines have both, and no more come */
static void stays(st_pair_t *pair, const char *what, const char *more,
                  unsigned number)
{
    double end = now() + (5 * WARN_TIME);

    while (now() < end) {
        ucp_st_worker_progress(pair->side[ST_A].worker);
        ucp_st_worker_progress(pair->side[ST_B].worker);
        sched_yield();
    }
    CU_ASSERT_EQUAL(lines(what, more), number);
}

/* What this process answers */
static const char *ask(void)
{
    return st_ask(getpid());
}

/* Run a case between two sides, with a time until warnings */
static void run(const char *warn_time, st_pair_body_t body)
{
    char *before = st_env_set("UCX_ST_WARN_TIME", warn_time);

    said[0] = '\0';
    ucs_log_push_handler(on_log);
    st_pair_run(body);
    ucs_log_pop_handler();
    st_env_restore("UCX_ST_WARN_TIME", before);
}

#define WAITS_CASE(_name, _warn_time) \
    static void body_##_name(st_pair_t *pair, st_side_t *a, st_side_t *b); \
    ST_CASE_CALL(_name, run(_warn_time, body_##_name)) \
    static void body_##_name(st_pair_t *pair, st_side_t *a, st_side_t *b)

/* An operation with a name, given to match */
static ucp_st_op_h imatch(st_side_t *side, int is_send, uint64_t tag,
                          const char *name)
{
    static uint8_t buffer[LEN];
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_TAG |
                      UCP_ST_OP_PARAM_FIELD_NAME,
        .buffer     = buffer,
        .length     = LEN,
        .peer       = side->peer,
        .tag        = tag,
        .name       = name
    };
    ucp_st_op_h op            = st_op(side, is_send, &params);

    CU_ASSERT_EQUAL(ucp_st_imatchall(&op, 1), UCS_OK);
    return op;
}

/* All that a side has announced so far is known to the other one: the messages
 * of a match behind it are */
static void announced(st_pair_t *pair)
{
    static uint8_t buffer[2];
    ucp_st_op_h send = st_send(&pair->side[ST_A], &buffer[0], 1, 1000);
    ucp_st_op_h recv = st_recv(&pair->side[ST_B], &buffer[1], 1, 1000);

    st_match_ok(send, recv);
    st_free2(send, recv);
}

/* What is here, and what the other side has announced */
WAITS_CASE(match_tags_recv, "0.1s")
{
    ucp_st_op_h send = imatch(a, 1, 3, NULL);
    ucp_st_op_h recv;

    announced(pair);
    recv = imatch(b, 0, 9, NULL);
    until(pair, ", tag 9; the peer has announced: a send of 256 bytes, tag "
          "3\n");
    CU_ASSERT_EQUAL(lines(": matching has waited for ",
                          " s: receive of 256 bytes from peer 0x"), 1);
    stays(pair, ": receive of 256 bytes from", ", tag 9;", 1);
    st_free2(send, recv);
}

WAITS_CASE(match_tags_send, "0.1s")
{
    ucp_st_op_h recv = imatch(b, 0, 9, NULL);
    ucp_st_op_h send;

    announced(pair);
    send = imatch(a, 1, 3, "send of mine");
    until(pair, ": send of mine; the peer has announced: a receive of 256 "
          "bytes, tag 9\n");
    stays(pair, ": matching has waited for ", ": send of mine; ", 1);
    st_free2(send, recv);
}

WAITS_CASE(match_nothing, "0.1s")
{
    ucp_st_op_h recv = imatch(b, 0, 9, "receive of mine");

    until(pair, ": receive of mine; the peer has announced nothing: it has "
                "not come to this match, or waits in an earlier one\n");
    stays(pair, "has waited", "", 1);
    st_free(recv);
    (void)a;
}

/* Both sides match their sends first */
WAITS_CASE(match_both_send, "0.1s")
{
    ucp_st_op_h send[2];

    send[ST_A] = imatch(a, 1, 5, "A's");
    announced(pair);
    send[ST_B] = imatch(b, 1, 5, "B's");
    until(pair, ": B's; the peer has announced: a send of 256 bytes, tag 5 "
          "(the same direction: ");
    st_free2(send[ST_A], send[ST_B]);
}

/* What a worker prints begins with what waits */
WAITS_CASE(printed, "0")
{
    ucp_st_op_h recv = imatch(b, 0, 9, "receive of mine");
    char *text       = NULL;
    size_t size      = 0;
    FILE *file       = open_memstream(&text, &size);
    int k;

    for (k = 0; k < 2; ++k) {
        rewind(file);
        ucp_st_worker_print_stats((k == 0) ? b->worker : a->worker, file);
        fputc(0, file);
        fflush(file);
        CU_ASSERT_EQUAL(strstr(text, "\nwaits_for worker ") != NULL, k == 0);
        CU_ASSERT_EQUAL(strstr(text, " s: receive of mine; the peer has "
                                     "announced nothing: ") != NULL, k == 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nstarts 0\n"));
    }
    fclose(file);
    free(text);
    st_free(recv);
}

/* Another scope, and more than a line has room for */
WAITS_CASE(match_others, "0.1s")
{
    static uint8_t buffer[LEN];
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_BUFFER |
                      UCP_ST_OP_PARAM_FIELD_LENGTH |
                      UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_TAG |
                      UCP_ST_OP_PARAM_FIELD_SCOPE,
        .buffer     = buffer,
        .length     = LEN,
        .peer       = a->peer,
        .tag        = 1,
        .scope      = 2
    };
    ucp_st_op_h send[6], recv;
    int i;

    for (i = 0; i < 6; ++i) {
        send[i] = st_op(a, 1, &params);
    }
    CU_ASSERT_EQUAL(ucp_st_imatchall(send, 6), UCS_OK);
    announced(pair);
    recv = imatch(b, 0, 1, "receive of mine");
    until(pair, "receive of mine; the peer has announced: a send of 256 bytes, "
          "tag 1 of another communicator, a send of");
    CU_ASSERT_EQUAL(lines("receive of mine", ", and 2 more\n"), 1);
    for (i = 0; i < 6; ++i) {
        st_free(send[i]);
    }
    st_free(recv);
}

/* A warning has ten lines */
WAITS_CASE(match_many, "0.1s")
{
    ucp_st_op_params_t params = {
        .field_mask = UCP_ST_OP_PARAM_FIELD_PEER | UCP_ST_OP_PARAM_FIELD_NAME,
        .peer       = b->peer,
        .name       = "receive of mine"
    };
    ucp_st_op_h recv[15];
    int i;

    for (i = 0; i < 15; ++i) {
        recv[i] = st_op(b, 0, &params);
    }
    CU_ASSERT_EQUAL(ucp_st_imatchall(recv, 15), UCS_OK);
    until(NULL, "5 more wait as long");
    CU_ASSERT_EQUAL(count("receive of mine"), 10);
    stays(pair, "more", "", 1);
    CU_ASSERT_EQUAL(count("receive of mine"), 10);
    for (i = 0; i < 15; ++i) {
        st_free(recv[i]);
    }
    (void)a;
}

/* Never, but asked */
WAITS_CASE(never, "0")
{
    ucp_st_op_h recv = imatch(b, 0, 9, "receive of mine");

    stays(pair, "has waited", "", 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(ask(), ": receive of mine; the peer has "
                                         "announced nothing: "));
    st_free(recv);
    (void)a;
}

/* The two halves of the pair below */
#define SEND ": send of 131072 bytes to peer"
#define RECV ": receive of 131072 bytes from peer"

/* What the starter's lane knows of the other side */
static const char *peers_word(ucp_st_op_h op)
{
    ucp_st_op_attr_t attr;

    CU_ASSERT_EQUAL(ucp_st_op_query(op, &attr), UCS_OK);
    return (attr.lane != UCP_ST_LANE_TRIG) ? "; the peer has not started it\n" :
           "; lane trig does not know whether the peer has started it\n";
}

/* A matched pair of a length that needs both sides */
static void match_long(st_side_t *a, st_side_t *b, ucp_st_op_h op[2])
{
    static uint8_t buffer[2][ST_LONG];

    op[ST_A] = st_send(a, buffer[0], ST_LONG, 1);
    op[ST_B] = st_recv(b, buffer[1], ST_LONG, 1);
    st_match_ok(op[ST_A], op[ST_B]);
}

/* The stream waits, the host makes no call; then again in the next use */
WAITS_CASE(queue_recv, "0.1s")
{
    ucp_st_op_h op[2];
    int k;

    match_long(a, b, op);
    for (k = 1; k <= 2; ++k) {
        st_use(b, op[ST_B]);
        until_both(RECV, (k == 1) ? ", use 1, on lane" : ", use 2, on lane");
        CU_ASSERT_EQUAL(lines(RECV, peers_word(op[ST_B])), (unsigned)k);
        stays(pair, ": a queue has waited for ", RECV, k);
        st_use(a, op[ST_A]);
        st_pair_sync(pair);
    }
    st_free2(op[ST_A], op[ST_B]);
}

/* The send's side knows on each lane whether the receive is started */
WAITS_CASE(queue_send, "0.1s")
{
    ucp_st_op_h op[2];

    match_long(a, b, op);
    st_use(a, op[ST_A]);
    until_both(SEND, ", use 1, on lane");
    CU_ASSERT_EQUAL(lines(SEND, "; the peer has not started it\n"), 1);
    st_use(b, op[ST_B]);
    st_pair_sync(pair);
    st_free2(op[ST_A], op[ST_B]);
}

/* An exchange of two sends, of which the second one's receive is not started:
 * it waits as long, and says for what. On lane trig all of it waits if both
 * sides are coupled; then nothing of it was sent, and of no send it is known
 * which receive is missing. */
static void wait_exchange(st_pair_t *pair, uint64_t flags)
{
    static uint8_t buffer[4][ST_LONG];
    st_side_t *a   = &pair->side[ST_A];
    st_side_t *b   = &pair->side[ST_B];
    int is_trig    = (st_lane() == UCP_ST_LANE_TRIG);
    int is_coupled = is_trig && (flags != 0);
    ucp_st_exchange_h exchange, peer[2];
    ucp_st_op_h send[2], recv[2];
    int i;

    for (i = 0; i < 2; ++i) {
        send[i] = st_send(a, buffer[i], ST_LONG, i);
        recv[i] = st_recv(b, buffer[2 + i], ST_LONG, i);
        st_fill(buffer[i], ST_LONG, i);
        CU_ASSERT_EQUAL(ucp_st_exchange_create(b->worker, &recv[i], 1, flags,
                                               &peer[i]), UCS_OK);
    }
    CU_ASSERT_EQUAL(ucp_st_exchange_create(a->worker, send, 2, flags,
                                           &exchange), UCS_OK);
    for (i = 0; i < 2; ++i) {
        st_match_ok(send[i], recv[i]);
    }
    CU_ASSERT_EQUAL(ucp_st_enqueue_exchange_start(b->queue, peer[0]), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_exchange_start(a->queue, exchange), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_exchange_wait(a->queue, exchange), UCS_OK);
    until_both(SEND, ", tag 1, use 1, on lane");
    CU_ASSERT_EQUAL(lines(", tag 1, use 1, on lane", is_coupled ?
                          "; lane trig does not know whether the peer has "
                          "started it\n" : "; the peer has not started it\n"),
                    1);
    CU_ASSERT_EQUAL(ucp_st_exchange_test(exchange), UCS_INPROGRESS);
    if (!is_coupled) {
        CU_ASSERT_EQUAL(ucp_st_enqueue_exchange_wait(b->queue, peer[0]),
                        UCS_OK);
        st_sync(b);
        CU_ASSERT_TRUE(st_check(buffer[2], ST_LONG, 0));
    }
    CU_ASSERT_EQUAL(ucp_st_enqueue_exchange_start(b->queue, peer[1]), UCS_OK);
    if (is_coupled) {
        CU_ASSERT_EQUAL(ucp_st_enqueue_exchange_wait(b->queue, peer[0]),
                        UCS_OK);
    }
    CU_ASSERT_EQUAL(ucp_st_enqueue_exchange_wait(b->queue, peer[1]), UCS_OK);
    st_pair_sync(pair);
    CU_ASSERT_TRUE(st_check(buffer[2], ST_LONG, 0));
    CU_ASSERT_TRUE(st_check(buffer[3], ST_LONG, 1));
    CU_ASSERT_EQUAL(ucp_st_exchange_free(exchange), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_exchange_free(peer[0]), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_exchange_free(peer[1]), UCS_OK);
}

WAITS_CASE(exchange, "0.1s")
{
    (void)a;
    (void)b;
    wait_exchange(pair, 0);
}

WAITS_CASE(exchange_coupled, "0.1s")
{
    (void)a;
    (void)b;
    wait_exchange(pair, UCP_ST_EXCHANGE_FLAG_COUPLED);
}

/* A stream that has not come to the start or to the wait waits for no peer */
WAITS_CASE(queue_busy, "0.1s")
{
    uint64_t gate = 0;
    ucp_st_op_h op[2];

    match_long(a, b, op);
    st_hold(b, &gate);
    st_use(b, op[ST_B]);
    stays(pair, ": a queue has waited for ", "", 0);
    st_let_go(&gate);
    until(NULL, ": a queue has waited for ");
    st_use(a, op[ST_A]);
    st_pair_sync(pair);
    st_free2(op[ST_A], op[ST_B]);
}

/* The host has enqueued more uses: each in which the peer is missing is told */
WAITS_CASE(queue_ahead, "0.1s")
{
    uint64_t gate = 0;
    ucp_st_op_h op[2];
    char use[32];
    int k;

    match_long(a, b, op);
    st_hold(b, &gate);
    for (k = 0; k < 4; ++k) {
        st_use(b, op[ST_B]);
    }
    stays(pair, ": a queue has waited for ", "", 0);
    st_let_go(&gate);
    for (k = 1; k <= 4; ++k) {
        snprintf(use, sizeof(use), ", use %d, on lane", k);
        until_both(RECV, use);
        CU_ASSERT_EQUAL(lines(RECV, peers_word(op[ST_B])), (unsigned)k);
        st_use(a, op[ST_A]);
    }
    st_pair_sync(pair);
    st_free2(op[ST_A], op[ST_B]);
}

/* The same of a send */
WAITS_CASE(queue_ahead_send, "0.1s")
{
    ucp_st_op_h op[2];

    match_long(a, b, op);
    st_use(a, op[ST_A]);
    st_use(a, op[ST_A]);
    st_use(a, op[ST_A]);
    until_both(SEND, ", use 1, on lane");
    st_use(b, op[ST_B]);
    until_both(SEND, ", use 2, on lane");
    st_use(b, op[ST_B]);
    st_use(b, op[ST_B]);
    st_pair_sync(pair);
    st_free2(op[ST_A], op[ST_B]);
}

/* The host asks for an operation that no stream waits for */
WAITS_CASE(host, "0.1s")
{
    ucp_st_op_h op[2];

    match_long(a, b, op);
    st_start(b, op[ST_B]);
    st_begun(b);
    CU_ASSERT_PTR_NOT_NULL(strstr(ask(), "a start has waited for "));
    stays(pair, RECV, ", use 1", 0);
    CU_ASSERT_EQUAL(ucp_st_op_test(op[ST_B]), UCS_INPROGRESS);
    until(pair, ": the host has waited for ");
    CU_ASSERT_EQUAL(lines(RECV, peers_word(op[ST_B])), 1);
    st_use(a, op[ST_A]);
    st_wait(b, op[ST_B]);
    st_pair_sync(pair);
    st_free2(op[ST_A], op[ST_B]);
}

/* The owner of a window need not know its peer */
ST_CASE(signal)
{
    char *before = st_env_set("UCX_ST_WARN_TIME", "0.1s");
    st_window_t window;
    st_side_t side;

    if ((st_any_type() != UCS_GSTREAM_TYPE_HOST) &&
        (st_lane() != UCP_ST_LANE_TRIG)) {
        st_env_restore("UCX_ST_WARN_TIME", before);
        st_cunit_skip("a store of the program itself ends no wait of a GPU's "
                      "stream on this lane");
        return;
    }
    said[0] = '\0';
    ucs_log_push_handler(on_log);
    st_side_init(&side);
    st_window_init(&side, &window, LEN, 1);
    st_wait_signal(&window, 0, 3);
    until(NULL, ": a queue has waited for ");
    CU_ASSERT_EQUAL(count("a signal that is to be at least 3 and is 0, at "
                          "byte "), 1);
    __atomic_store_n(st_signal(&window, 0), 3, __ATOMIC_RELEASE);
    st_sync(&side);
    CU_ASSERT_PTR_NOT_NULL(strstr(ask(), "nothing waits\n"));
    st_window_cleanup(&window);
    st_side_cleanup(&side);
    ucs_log_pop_handler();
    st_env_restore("UCX_ST_WARN_TIME", before);
}

/* Start a message, and have the stream wait for it */
static void run_message(st_side_t *side, typeof(&ucp_st_enqueue_recv) enqueue,
                        const ucp_st_msg_params_t *params)
{
    ucp_st_req_h req;

    CU_ASSERT_EQUAL_FATAL(enqueue(side->queue, params, &req), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_batch_start(side->queue), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_enqueue_batch_wait(side->queue), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_req_free(req), UCS_OK);
}

/* A message that is used once */
WAITS_CASE(message, "0.1s")
{
    uint64_t value[2]          = {5, 0};
    ucp_st_msg_params_t params = {
        .field_mask = UCP_ST_MSG_PARAM_FIELD_BUFFER |
                      UCP_ST_MSG_PARAM_FIELD_LENGTH |
                      UCP_ST_MSG_PARAM_FIELD_PEER | UCP_ST_MSG_PARAM_FIELD_TAG,
        .buffer     = &value[1],
        .length     = sizeof(value[1]),
        .peer       = UCP_ST_PEER_ANY,
        .tag        = 0x77
    };

    run_message(b, ucp_st_enqueue_recv, &params);
    until(NULL, ": a message has waited for ");
    CU_ASSERT_EQUAL(count("receive of 8 bytes from any peer, tag 0x77\n"), 1);
    params.buffer = &value[0];
    params.peer   = a->peer;
    run_message(a, ucp_st_enqueue_send, &params);
    st_pair_sync(pair);
    CU_ASSERT_EQUAL(value[1], 5);
}

/* One of a FIFO: nobody sends it; then the sender's stream does not come to
 * it */
WAITS_CASE(fifo, "0.1s")
{
    uint64_t value[2]          = {5, 0};
    uint64_t gate              = 0;
    ucp_st_msg_params_t params = {
        .field_mask = UCP_ST_MSG_PARAM_FIELD_BUFFER |
                      UCP_ST_MSG_PARAM_FIELD_LENGTH |
                      UCP_ST_MSG_PARAM_FIELD_PEER |
                      UCP_ST_MSG_PARAM_FIELD_TAG | UCP_ST_MSG_PARAM_FIELD_SCOPE,
        .buffer     = &value[1],
        .length     = sizeof(value[1]),
        .peer       = b->peer,
        .tag        = 0x77,
        .scope      = 0x9
    };

    run_message(b, ucp_st_enqueue_recv, &params);
    until_both("receive 1 of a FIFO, of 8 bytes from peer ",
               "scope 0x9, tag 0x77: the peer has not enqueued its half\n");
    params.buffer = &value[0];
    params.peer   = a->peer;
    st_hold(a, &gate);
    run_message(a, ucp_st_enqueue_send, &params);
    until_both("send 1 of a FIFO, of 8 bytes to peer ",
               ": the stream has not come to it\n");
    CU_ASSERT_EQUAL(count("receive 1 of a FIFO"), 1);
    st_let_go(&gate);
    st_pair_sync(pair);
    CU_ASSERT_EQUAL(value[1], 5);
}

/* A receive of a channel; and an end that is to be moved, whose other end is
 * not there */
static void check_channel(st_pes_t *pes)
{
    ucp_st_channel_h end[2] = {st_pes_channel(pes, 0, 1, 7, 0),
                               st_pes_channel(pes, 1, 0, 7, 1)};
    uint64_t value[2]       = {5, 0};
    said_t heard[2]         = {{0}};
    ucs_status_t status;

    status = ucp_st_channel_recv(end[1], ST_PE_MSG(&value[1], 8, hear,
                                                   &heard[1]), NULL);
    CU_ASSERT_EQUAL(status, UCS_INPROGRESS);
    while (count("channel 7, end 1 has waited for ") == 0) {
        st_pes_progress(pes);
    }
    CU_ASSERT_EQUAL(count("receive number 0 of 8 bytes, and 0 behind it; the "
                          "other end has sent nothing with this number\n"), 1);
    (void)await(pes, ucp_st_channel_send(end[0],
                                         ST_PE_MSG(&value[0], 8, hear,
                                                   &heard[0])), &heard[0]);
    CU_ASSERT_EQUAL(await(pes, status, &heard[1]), UCS_OK);
    CU_ASSERT_EQUAL(value[1], 5);
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(end[0]), UCS_OK);

    /* Nobody takes the stop */
    heard[1] = (said_t){0};
    CU_ASSERT_EQUAL(ucp_st_channel_quiesce(end[1], hear, &heard[1]),
                    UCS_INPROGRESS);
    while (count("it is to become quiet; the other end has not answered") ==
           0) {
        st_pes_progress(pes);
    }
    CU_ASSERT_EQUAL(count("channel 7, end 1 has waited for "), 2);
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(end[1]), UCS_OK);
}

ST_CASE(channel)
{
    char *before = st_env_set("UCX_ST_WARN_TIME", "0.1s");
    st_pes_t pes;

    said[0] = '\0';
    ucs_log_push_handler(on_log);
    st_pes_init(&pes, 2, NULL);
    check_channel(&pes);
    st_pes_cleanup(&pes);
    ucs_log_pop_handler();
    st_env_restore("UCX_ST_WARN_TIME", before);
}

/* The same with an st worker, whose process is asked, too */
static void check_channel_st(st_side_t *side)
{
    ucp_st_channel_ctx_params_t ctx_params = {
        .field_mask = UCP_ST_CHANNEL_CTX_PARAM_FIELD_UCP_WORKER |
                      UCP_ST_CHANNEL_CTX_PARAM_FIELD_ST_WORKER,
        .ucp_worker = side->ucp_worker,
        .st_worker  = side->worker
    };
    ucp_st_channel_params_t params         = {
        .field_mask = UCP_ST_CHANNEL_PARAM_FIELD_ID,
        .id         = 7
    };
    uint64_t value                         = 0;
    said_t heard                           = {0};
    ucp_st_channel_ctx_h ctx;
    ucp_st_channel_h end;

    CU_ASSERT_EQUAL_FATAL(ucp_st_channel_ctx_create(&ctx_params, &ctx), UCS_OK);
    CU_ASSERT_EQUAL_FATAL(ucp_st_channel_create(ctx, &params, &end), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_channel_recv(end, ST_PE_MSG(&value, 8, hear, &heard),
                                        NULL), UCS_INPROGRESS);
    while (count("channel 7, end 0 has waited for ") == 0) {
        ucp_st_channel_progress(ctx);
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(ask(), "\nchannel 7, end 0 has waited for "));
    CU_ASSERT_EQUAL(ucp_st_channel_destroy(end), UCS_OK);
    CU_ASSERT_PTR_NULL(strstr(ask(), "channel 7"));
    while (ucp_st_channel_ctx_destroy(ctx) == UCS_ERR_BUSY) {
        ucp_worker_progress(side->ucp_worker);
        ucp_st_channel_progress(ctx);
    }
    CU_ASSERT_EQUAL(count("channel 7"), 1);
}

ST_CASE(channel_st)
{
    char *before = st_env_set("UCX_ST_WARN_TIME", "0.1s");
    st_side_t side;

    said[0] = '\0';
    ucs_log_push_handler(on_log);
    st_side_init_user(&side, UCP_FEATURE_TAG | UCP_FEATURE_AM,
                      UCS_THREAD_MODE_MULTI);
    check_channel_st(&side);
    st_side_cleanup(&side);
    ucs_log_pop_handler();
    st_env_restore("UCX_ST_WARN_TIME", before);
}

/* What a layer above waits for; also without an st worker */
static void check_note(void)
{
    char *before = st_env_set("UCX_ST_WARN_TIME", "0.1s");
    ucp_st_note_h note, quiet;
    char text[128];

    said[0] = '\0';
    ucs_log_push_handler(on_log);
    CU_ASSERT_EQUAL(ucp_st_note_begin("rank 3: something", "a thing", 0,
                                      &note), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_note_begin("rank 3: something", "in vain", -1e6,
                                      &quiet), UCS_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(ask(), "\nrank 3: something has waited "));
    CU_ASSERT_EQUAL(ucp_st_waits_get(text, sizeof(text)), 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, " s: a thing\nrank 3: something has "));
    CU_ASSERT_EQUAL(ucp_st_waits_get(text, 5), 2);
    CU_ASSERT_STRING_EQUAL(text, "rank");
    CU_ASSERT_EQUAL(ucp_st_waits_get(NULL, 5), 0);
    ucp_st_note_end(quiet);
    until(NULL, " s: a thing\n");
    CU_ASSERT_EQUAL(lines("rank 3: something has waited for ", ""), 1);
    ucp_st_note_end(note);
    ucp_st_note_end(NULL);
    CU_ASSERT_EQUAL(ucp_st_note_begin(NULL, "a thing", 0, &note),
                    UCS_ERR_INVALID_PARAM);
    ucs_log_pop_handler();
    st_env_restore("UCX_ST_WARN_TIME", before);
}

ST_CASE(note)
{
    check_note();
    char text[] = "text";

    CU_ASSERT_STRING_EQUAL(ask(), "");
    CU_ASSERT_EQUAL(ucp_st_waits_get(text, sizeof(text)), 0);
    CU_ASSERT_STRING_EQUAL(text, "");
}

WAITS_CASE(note_with_worker, "0.1s")
{
    check_note();
    CU_ASSERT_PTR_NOT_NULL(strstr(ask(), "nothing waits\n"));
    (void)pair;
    (void)a;
    (void)b;
}

/* As another user: the answer is empty */
static int ask_as_nobody(const void *arg)
{
    (void)arg;
    return (setuid(65534) != 0) ? 2 : (*st_ask(getppid()) != '\0');
}

/* The process, its workers, and those that may ask */
WAITS_CASE(answer, "10s")
{
    const char *text = ask();
    char start[64];

    snprintf(start, sizeof(start), "process %d (", (int)getpid());
    CU_ASSERT_EQUAL(strncmp(text, start, strlen(start)), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, ": lanes "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "; peers 2, operations 0, queues 1\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nnothing waits\n"));
    if (geteuid() == 0) {
        st_cunit_fork(ask_as_nobody, NULL);
    }
    (void)pair;
    (void)a;
    (void)b;
}

ST_SUITE("st_waits")
