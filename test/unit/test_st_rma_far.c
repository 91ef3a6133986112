/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_rma_far.c - one-sided operations with another process: data and
 * signals there and back, also to a sleeper, and what becomes of them when
 * that process is killed. This program is the other process, too.
 */
#include "st_ask.h"
#include "st_cunit.h"
#include "st_far.h"
#include "st_stream.h"
#include "st_window.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LEN    100000 /* more than UCP sends at once */
#define ROUNDS 100

/** What it does. */
typedef enum {
    MODE_ECHO, /* answers each signal with one */
    MODE_MIXED,/* checks what comes with each signal */
    MODE_IDLE  /* nothing, until it is killed */
} far_mode_t;

#if defined(__SANITIZE_ADDRESS__)
const char *__lsan_default_suppressions(void);

/* UCX 1.13 forgets the table of segments of an endpoint of shared memory whose
 * peer is dead; nothing of ours is below that library here */
const char *__lsan_default_suppressions(void)
{
    return "leak:libuct.so.0\n";
}
#endif

/** One of the two processes. */
typedef struct {
    st_side_t   side;
    st_window_t window;
    st_window_t plain; /* with MODE_MIXED: in memory of malloc() */
    st_far_t    other;
} far_t;

static void far_tell(far_t *far)
{
    CU_ASSERT_EQUAL(write(far->other.fd, "", 1), 1);
}

static void far_hear(far_t *far)
{
    char byte;

    CU_ASSERT_EQUAL_FATAL(read(far->other.fd, &byte, 1), 1);
}

static void far_init_window(far_t *far, st_window_t *window, int is_library)
{
    uint8_t theirs[ST_FAR_ADDRESS];
    size_t length;
    void *mine;

    st_window_init(&far->side, window, LEN, is_library);
    CU_ASSERT_EQUAL(ucp_st_rkey_pack(window->memh, &mine, &length), UCS_OK);
    CU_ASSERT_EQUAL(write(far->other.fd, mine, length), (ssize_t)length);
    length = st_far_hear(&far->other, theirs);
    CU_ASSERT_EQUAL_FATAL(ucp_st_rkey_unpack(far->side.peer, theirs, length,
                                             &window->rkey), UCS_OK);
    ucp_st_rkey_buffer_release(mine);
}

static void far_init(far_t *far)
{
    st_side_init(&far->side);
    CU_ASSERT_EQUAL_FATAL(st_far_connect(&far->other, far->side.worker,
                                         &far->side.peer), UCS_OK);
    far_init_window(far, &far->window, 1);
}

static void far_cleanup(far_t *far)
{
    st_window_cleanup(&far->window);
    st_side_cleanup(&far->side);
    if (far->other.fd >= 0) {
        close(far->other.fd);
    }
}

/* One side's part of a round: it waits for the signal and has the data, then
 * puts other data; the first one begins */
static void far_round(far_t *far, int is_first, uint64_t k, st_work_t work[2])
{
    if (!is_first) {
        st_wait_signal(&far->window, 0, k);
        st_launch(&far->side, st_check_func, &work[0]);
    }
    st_launch(&far->side, st_fill_func, &work[1]);
    st_put_signal(&far->window, LEN, 0, k);
    if (is_first) {
        st_wait_signal(&far->window, 0, k);
        st_launch(&far->side, st_check_func, &work[0]);
    }
}

static void far_rounds(far_t *far, int is_first)
{
    static st_work_t work[ROUNDS][2];
    int errors = 0;
    uint64_t k;

    for (k = 1; k <= ROUNDS; ++k) {
        work[k - 1][0] = (st_work_t){far->window.memory, LEN,
                                     (2 * k) + !is_first, &errors};
        work[k - 1][1] = (st_work_t){far->window.memory, LEN,
                                     (2 * k) + is_first, NULL};
        far_round(far, is_first, k, work[k - 1]);
    }
    st_quiet(&far->window);
    st_sync(&far->side);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(far->side.stream), UCS_OK);
    CU_ASSERT_EQUAL(errors, 0);
}

/* One side puts data to memory of malloc(), and signals in memory of the
 * library: each signal comes behind its data, whatever the lanes are */
static void far_mixed(far_t *far, int is_first)
{
    static st_work_t work[ROUNDS];
    int errors = 0;
    ucp_st_signal_params_t signal;
    ucp_st_rma_params_t params;
    uint64_t k;

    for (k = 1; k <= ROUNDS; ++k) {
        work[k - 1] = (st_work_t){far->plain.memory, LEN, k, &errors};
        if (is_first) {
            params = st_rma_params(&far->plain, 0, LEN);
            signal = st_signal_params(&far->window, 0, k);
            st_launch(&far->side, st_fill_func, &work[k - 1]);
            CU_ASSERT_EQUAL(ucp_st_enqueue_put_signal(far->side.queue, &params,
                                                      &signal), UCS_OK);
            st_wait_signal(&far->window, 0, k);
        } else {
            st_wait_signal(&far->window, 0, k);
            st_launch(&far->side, st_check_func, &work[k - 1]);
            st_put_signal(&far->window, 0, 0, k);
        }
    }
    st_quiet(&far->window);
    st_sync(&far->side);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(far->side.stream), UCS_OK);
    CU_ASSERT_EQUAL(errors, 0);
}

/* The other process */
static void run_other(void)
{
    far_t far;
    int mode;

    CU_ASSERT_EQUAL_FATAL(sscanf(st_far_task(&far.other), "%d", &mode), 1);
    far_init(&far);
    far_tell(&far);
    if (mode == MODE_IDLE) {
        for (;;) {
            pause();
        }
    }
    if (mode == MODE_MIXED) {
        far_init_window(&far, &far.plain, 0);
        far_mixed(&far, 0);
    } else {
        far_rounds(&far, 0);
    }
    far_tell(&far);
    far_hear(&far);
    if (mode == MODE_MIXED) {
        st_window_cleanup(&far.plain);
    }
    far_cleanup(&far);
}

/* Start the other process, and know it */
static void other_start(far_t *far, far_mode_t mode)
{
    char task[16];

    snprintf(task, sizeof(task), "%d", mode);
    st_far_start(&far->other, task);
    far_init(far);
    far_hear(far);
}

/* Data and signals there and back, as the streams go */
ST_CASE(echo)
{
    ucp_st_rkey_attr_t attr;
    far_t far;

    other_start(&far, MODE_ECHO);
    CU_ASSERT_EQUAL(ucp_st_rkey_query(far.window.rkey, &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.lane, st_lane());
    /* The other stream has slept for long when the first signal comes */
    CU_ASSERT_EQUAL(poll(NULL, 0, 60), 0);
    far_rounds(&far, 1);
    far_hear(&far);
    far_tell(&far);
    st_far_end(&far.other);
    far_cleanup(&far);
}

/* The lanes that a pair of processes of a node has at once */
ST_CASE(mixed)
{
    char *lanes = st_env_set("UCX_ST_LANES", "direct,host");
    char *tls   = st_env_set("UCX_TLS", "posix,tcp,self");
    ucp_st_rkey_attr_t attr;
    far_t far;

    other_start(&far, MODE_MIXED);
    far_init_window(&far, &far.plain, 0);
    CU_ASSERT_EQUAL(ucp_st_rkey_query(far.window.rkey, &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.lane, UCP_ST_LANE_DIRECT);
    CU_ASSERT_EQUAL(ucp_st_rkey_query(far.plain.rkey, &attr), UCS_OK);
    CU_ASSERT_EQUAL(attr.lane, UCP_ST_LANE_HOST);
    far_mixed(&far, 1);
    far_hear(&far);
    far_tell(&far);
    st_far_end(&far.other);
    st_window_cleanup(&far.plain);
    far_cleanup(&far);
    st_env_restore("UCX_TLS", tls);
    st_env_restore("UCX_ST_LANES", lanes);
}

/* After the death the queue is in error, and takes nothing more */
static void far_check_dead(far_t *far)
{
    ucp_st_rma_params_t params = st_rma_params(&far->window, 0, LEN);
    ucp_st_queue_error_t error = {.status = UCS_OK};
    ucs_status_t status        = ucp_st_queue_wait(far->side.queue, &error);

    CU_ASSERT_TRUE(st_far_is_death(status));
    CU_ASSERT_EQUAL(error.status, status);
    CU_ASSERT_PTR_NULL(error.op);
    CU_ASSERT_PTR_NULL(error.req);
    CU_ASSERT_EQUAL(ucp_st_enqueue_put(far->side.queue, &params), status);
    CU_ASSERT_EQUAL(ucp_st_enqueue_get(far->side.queue, &params), status);
    CU_ASSERT_EQUAL(ucp_st_enqueue_quiet(far->side.queue), status);
}

/* A stream waits for a signal of a process that is killed; the host computes */
static void run_wait_death(uint64_t flags)
{
    ucp_st_wait_signal_params_t wait;
    far_t far;

    other_start(&far, MODE_IDLE);
    wait             = st_wait_params(&far.window, 0, 1);
    wait.field_mask |= UCP_ST_WAIT_SIGNAL_PARAM_FIELD_PEER |
                       UCP_ST_WAIT_SIGNAL_PARAM_FIELD_FLAGS;
    wait.peer        = far.side.peer;
    wait.flags       = flags;
    CU_ASSERT_EQUAL(ucp_st_enqueue_wait_signal(far.side.queue, &wait), UCS_OK);
    while (strstr(st_ask(getpid()), ": a queue has waited for ") == NULL) {
        sched_yield();
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(st_ask(getpid()), " s: a signal that is to "
                                  "be at least 1 and is 0, at byte "));
    st_far_kill(&far.other);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(far.side.stream), UCS_OK);
    far_check_dead(&far);
    CU_ASSERT_TRUE(st_far_is_death(
            ucp_st_enqueue_wait_signal(far.side.queue, &wait)));
    far_cleanup(&far);
}

ST_CASE(wait_death)
{
    run_wait_death(0);
    run_wait_death(UCP_ST_WAIT_SIGNAL_FLAG_OVERWRITE);
}

/* A stream is at a quiet for a process that does not answer */
ST_CASE_IF(quiet_waits, st_lane() != UCP_ST_LANE_DIRECT,
           "lane direct needs no answer")
{
    far_t far;

    other_start(&far, MODE_IDLE);
    st_far_stop(&far.other);
    st_put(&far.window, 0, LEN, 0);
    st_quiet(&far.window);
    while (strstr(st_ask(getpid()), ": a quiet has waited for ") == NULL) {
        sched_yield();
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(st_ask(getpid()), " s: one-sided operations "
                                  "that have not ended: 1 on lane "));
    st_far_kill(&far.other);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(far.side.stream), UCS_OK);
    far_check_dead(&far);
    far_cleanup(&far);
}

/* Operations with a process that does not answer, and is then killed; those of
 * lane direct need no answer. A strict one waits for the others. */
ST_CASE(death)
{
    far_t far;
    int i;

    other_start(&far, MODE_IDLE);
    st_far_stop(&far.other);
    for (i = 0; i < 10; ++i) {
        st_put(&far.window, 0, LEN, 0);
        st_put(&far.window, 0, 100, 1);
        st_get(&far.window, 0, LEN, 0);
        st_put_signal(&far.window, 100, 0, 1);
    }
    st_quiet(&far.window);
    st_far_kill(&far.other);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(far.side.stream), UCS_OK);
    if (st_lane() == UCP_ST_LANE_DIRECT) {
        st_sync(&far.side);
    } else {
        far_check_dead(&far);
    }
    far_cleanup(&far);
}

ST_FAR_SUITE("st_rma_far", run_other)
