/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_fifo_far.c - messages of FIFOs with another process: there and back,
 * and what becomes of them when that process is killed, at each step of a
 * message. This program is the other process, too.
 */
#include "core/st_peer.h"
#include "core/st_waits.h"
#include "core/st_worker.h"
#include "st_cunit.h"
#include "st_far.h"
#include "st_msg.h"
#include "st_stream.h"
#include "tag/st_fifo.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LEN    100000 /* more than UCP sends at once */
#define ROUNDS 50

/** What the other process does before it is idle. */
typedef enum {
    MODE_ECHO,     /* its part of all rounds; then it leaves */
    MODE_NOTHING,
    MODE_ENQUEUED, /* a message each way, which its stream does not come to */
    MODE_STARTED,  /* the same, but that it does */
    MODE_LAST
} far_mode_t;

static uint8_t sbuf[LEN], rbuf[LEN];

#if defined(__SANITIZE_ADDRESS__)
const char *__lsan_default_suppressions(void);

/* As in test_st_rma_far.c */
const char *__lsan_default_suppressions(void)
{
    return "leak:libuct.so.0\n";
}
#endif

static void far_tell(const st_far_t *far)
{
    CU_ASSERT_EQUAL(write(far->fd, "", 1), 1);
}

static void far_hear(const st_far_t *far)
{
    char byte;

    CU_ASSERT_EQUAL_FATAL(read(far->fd, &byte, 1), 1);
}

static void far_init(const st_far_t *far, st_side_t *side)
{
    st_side_init(side);
    CU_ASSERT_EQUAL_FATAL(st_far_connect(far, side->worker, &side->peer),
                          UCS_OK);
}

/* One process sends first and checks what comes back, the other answers with
 * the same data and another seed. All rounds are enqueued at once. */
static void far_rounds(st_side_t *side, int is_first)
{
    static ucp_st_req_h reqs[ROUNDS][2];
    static st_work_t work[ROUNDS][2];
    int errors = 0;
    int is_send, i, k;

    for (k = 0; k < ROUNDS; ++k) {
        for (i = 0; i < 2; ++i) {
            is_send    = (i != is_first);
            work[k][i] = (st_work_t){is_send ? sbuf : rbuf, LEN,
                                     (2 * k) + (is_send != is_first), &errors};
            if (is_send) {
                st_launch(side, st_fill_func, &work[k][i]);
            }
            reqs[k][i] = st_fifo_req(side, is_send, is_send ? sbuf : rbuf, LEN,
                                     1);
            st_batch_run(side);
            if (!is_send) {
                st_launch(side, st_check_func, &work[k][i]);
            }
        }
    }
    st_sync(side);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(side->stream), UCS_OK);
    CU_ASSERT_EQUAL(errors, 0);
    for (k = 0; k < ROUNDS; ++k) {
        CU_ASSERT_EQUAL(st_msg_end(reqs[k][0], UCS_OK), LEN);
        CU_ASSERT_EQUAL(st_msg_end(reqs[k][1], UCS_OK), LEN);
    }
}

static void run_other(void)
{
    uint64_t gate = 0;
    st_side_t side;
    st_far_t far;
    int mode;

    CU_ASSERT_EQUAL_FATAL(sscanf(st_far_task(&far), "%d", &mode), 1);
    far_init(&far, &side);
    if (mode == MODE_ECHO) {
        far_rounds(&side, 0);
    } else if (mode != MODE_NOTHING) {
        if (mode == MODE_ENQUEUED) {
            st_hold(&side, &gate);
        }
        (void)st_fifo_req(&side, 1, sbuf, LEN, 1);
        (void)st_fifo_req(&side, 0, rbuf, LEN, 1);
        st_batch_start(&side);
        if (mode == MODE_STARTED) {
            st_begun(&side);
        }
    }
    far_tell(&far);
    far_hear(&far); /* or it is killed */
    st_side_cleanup(&side);
}

static void other_start(st_far_t *far, st_side_t *side, far_mode_t mode)
{
    char task[16];

    snprintf(task, sizeof(task), "%d", mode);
    st_far_start(far, task);
    far_init(far, side);
}

ST_CASE(echo)
{
    st_side_t side;
    st_far_t far;

    other_start(&far, &side, MODE_ECHO);
    far_rounds(&side, 1);
    far_hear(&far);
    far_tell(&far);
    st_far_end(&far);
    st_side_cleanup(&side);
    close(far.fd);
}

/* The other process is killed: nothing is known of it; messages are matched,
 * and only this stream, or only that one, or none has come to them. Streams
 * pass, requests end, and all is freed. */
static void run_death(far_mode_t mode, int is_held)
{
    uint64_t gate = 0;
    ucp_st_req_h reqs[2];
    ucs_status_t status;
    st_side_t side;
    st_far_t far;
    int i;

    other_start(&far, &side, mode);
    far_hear(&far);
    if (is_held) {
        st_hold(&side, &gate);
    }
    for (i = 0; i < 2; ++i) {
        reqs[i] = st_fifo_req(&side, i, i ? sbuf : rbuf, LEN, 1);
    }
    st_batch_start(&side);
    if (!is_held) {
        st_begun(&side);
    }
    st_far_kill(&far);
    (void)ucp_st_enqueue_batch_wait(side.queue);
    while (ucp_st_req_test(reqs[0], NULL) == UCS_INPROGRESS) {
        ucp_st_worker_progress(side.worker);
    }
    if (is_held) {
        st_let_go(&gate);
    }
    /* With both streams there one message or both may be over */
    status = ucp_st_queue_wait(side.queue, NULL);
    CU_ASSERT((status == UCS_OK) || st_far_is_death(status));
    CU_ASSERT((status != UCS_OK) || ((mode == MODE_STARTED) && !is_held));
    for (i = 0; i < 2; ++i) {
        status = ucp_st_req_wait(reqs[i], NULL);
        CU_ASSERT((status == UCS_OK) || st_far_is_death(status) ||
                  (status == UCS_ERR_CANCELED));
        CU_ASSERT_EQUAL(ucp_st_req_free(reqs[i]), UCS_OK);
    }
    CU_ASSERT_EQUAL(ucp_st_queue_destroy(side.queue), UCS_OK);
    side.queue = NULL;
    st_side_cleanup(&side);
}

ST_CASE(death)
{
    int mode;

    for (mode = MODE_NOTHING; mode < MODE_LAST; ++mode) {
        run_death(mode, 0);
        run_death(mode, 1);
    }
}

/* A receive, a send and a receive of another tag behind a stream that is held
 * up */
static void start_held(st_far_t *far, st_side_t *side, uint64_t *gate,
                       ucp_st_req_h reqs[3])
{
    int i;

    other_start(far, side, MODE_STARTED);
    far_hear(far);
    st_hold(side, gate);
    for (i = 0; i < 3; ++i) {
        reqs[i] = st_fifo_req(side, i == 1, (i == 1) ? sbuf : rbuf, LEN,
                              1 + (i == 2));
    }
    st_batch_run(side);
}

/* A send is armed, and its queue fails, or its peer is declared gone: that peer
 * does not say that its half is closed, and does not hold up this stream. */
static void run_silent(int is_gone)
{
    uint64_t gate = 0;
    ucp_st_req_h reqs[3];
    ucs_status_t status;
    st_side_t side;
    st_far_t far;
    int i;

    start_held(&far, &side, &gate, reqs);
    while (st_stats(&side).writes_posted < 1) {
        ucp_st_worker_progress(side.worker);
    }
    st_far_stop(&far);
    if (is_gone) {
        ucp_st_worker_lock(side.worker);
        ucp_st_peer_fail(side.peer, UCS_ERR_CONNECTION_RESET);
        ucp_st_worker_unlock(side.worker);
    } else {
        CU_ASSERT_EQUAL(ucp_st_req_cancel(reqs[2]), UCS_OK);
    }
    st_let_go(&gate);
    status = is_gone ? UCS_ERR_CONNECTION_RESET : UCS_ERR_CANCELED;
    CU_ASSERT_EQUAL(ucp_st_queue_wait(side.queue, NULL), status);
    for (i = 0; i < 3; ++i) {
        status = ucp_st_req_wait(reqs[i], NULL);
        CU_ASSERT((status == UCS_ERR_CANCELED) || st_far_is_death(status));
        CU_ASSERT_EQUAL(ucp_st_req_free(reqs[i]), UCS_OK);
    }
    /* No put, clear-to-send, bridge, nor addition to a word, if the provider
     * cancels */
    CU_ASSERT(st_env_has_provider("sockets") ||
              (st_stats(&side).entries == 0));
    st_far_kill(&far);
    st_side_cleanup(&side);
}

ST_CASE_IF(silent, st_lane() == UCP_ST_LANE_TRIG, "nothing is armed")
{
    run_silent(0);
    run_silent(1);
}

/* How far a send is: nothing; its peer's stream has come to it; its data is on
 * the way */
static int far_step(const st_side_t *side, ucp_st_req_h req)
{
    int step       = 0;
    uint64_t count = 0;
    const ucp_st_fifo_msg_t *msg;

    ucp_st_worker_progress(side->worker);
    ucp_st_worker_lock(side->worker);
    msg = req->msg;
    if (msg->is_paired && (msg->way == UCP_ST_FIFO_BY_NIC)) {
        (void)uct_trig_cntr_read(msg->slot->cntr, &count);
        step = (msg->puts.posted < msg->num_puts) ? 0 :
               2 - (int)((2 * msg->slot->uses) - count);
    } else if (msg->is_paired) {
        step = msg->is_ready + (msg->is_moving || (msg->puts.pending > 0));
    }
    ucp_st_worker_unlock(side->worker);
    return step;
}

/* What waits, in words */
static const char *far_waits(const st_side_t *side)
{
    static char text[UCP_ST_WAITS_WARN_SIZE];
    ucp_st_waits_t waits;

    ucp_st_waits_init(&waits, text, sizeof(text), 0);
    ucp_st_worker_lock(side->worker);
    ucp_st_fifo_component.worker.waits(side->worker, &waits);
    ucp_st_worker_unlock(side->worker);
    return text;
}

/* The data of a send is on the way to a peer that does not take it, and the
 * queue fails for another reason: that passes. What is on the way ends with the
 * peer, or goes on with it. */
static void run_stuck(int sig)
{
    uint64_t gate = 0;
    ucp_st_req_h reqs[3];
    st_side_t side;
    st_far_t far;
    int i;

    start_held(&far, &side, &gate, reqs);
    while (far_step(&side, reqs[1]) < 1) {
        /* the other side is on its way */
    }
    st_far_stop(&far);
    st_let_go(&gate);
    while (far_step(&side, reqs[1]) < 2) {
        /* this one is */
    }
    CU_ASSERT_EQUAL(ucp_st_req_cancel(reqs[2]), UCS_OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(far_waits(&side), ": it has failed, and"));
    CU_ASSERT_EQUAL(ucp_st_queue_wait(side.queue, NULL), UCS_ERR_CANCELED);
    for (i = 0; i < 3; ++i) {
        CU_ASSERT_EQUAL(ucp_st_req_wait(reqs[i], NULL), UCS_ERR_CANCELED);
        CU_ASSERT_EQUAL(ucp_st_req_free(reqs[i]), UCS_OK);
    }
    CU_ASSERT_EQUAL(kill(far.pid, sig), 0);
    st_side_cleanup(&side);
    st_far_kill(&far);
}

/* HPE's provider waits, to cancel, until the card has taken the command. A card
 * does so whatever a peer does; the emulated Cassini of a process stops with
 * that, and holds up the others. */
ST_CASE_IF(stuck, !st_env_has_provider("cxi"),
           "the emulated Cassini of a stopped process holds up others")
{
    run_stuck(SIGKILL);
    run_stuck(SIGCONT);
}

ST_FAR_SUITE("st_fifo_far", run_other)
