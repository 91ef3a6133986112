/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_direct_death.c - a process that is killed while it talks to this one
 * on the direct lane: between messages, in the midst of one, and with a piece
 * claimed that is never copied; and before, while UCP is about to connect the
 * two in shared memory. This program is the other process, too.
 */
#include "st_cunit.h"
#include "st_far.h"
#include "st_intercept.h"
#include "st_near.h"
#include "st_stream.h"

#include "direct/st_direct.h"
#include "core/st_lane.h"
#include "core/st_op.h"

#include <ucs/debug/log_def.h>

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define OPS    4 /* enough for UCP to connect before it sends their messages */
#define PIECES 12
#define LEN    (PIECES * NEAR_PIECE_MAPPED)

/* As st_direct_move.c packs a claim: the first of so many pieces of the first
 * use */
#define FIRST_PIECE(_pieces) ((1ull << 25) | (1ull << 12) | (_pieces))

/* Lanes of a process that UCP is to miss */
static const char *const other_env[] = {"UCX_ST_LANES", "host", NULL};

/* So that PIECES do not fit into the slots */
static const char *const small_env[] = {"UCX_ST_DIRECT_PIECE", "4k", NULL};

/** What it does before it is killed. */
typedef enum {
    MODE_THERE,  /* it has told its address */
    MODE_MET,    /* it has connected, and given operations to match */
    MODE_HOST,   /* it has matched, on the host lane */
    MODE_IDLE,   /* it has matched */
    MODE_STARTED,/* it has started its half, and nobody waits there */
    MODE_CLAIMED,/* the same, and it has claimed a piece */
    MODE_TAKEN,  /* it has started its half, and no memory is where its buffer
                    was */
    MODE_COPYING /* the same, and it has claimed a piece */
} death_mode_t;

#if defined(__SANITIZE_ADDRESS__)
const char *__lsan_default_suppressions(void);

/* UCX 1.13 forgets the table of segments of an endpoint of shared memory that
 * finds nobody; nothing of ours is below that library here */
const char *__lsan_default_suppressions(void)
{
    return "leak:libuct.so.0\n";
}
#endif

/* Lines that a user would see; threads of the library add to it */
static _Atomic unsigned num_errors;

/** One of the two processes. */
typedef struct {
    st_side_t   side;
    st_far_t    far; /* the other one */
    uint8_t     *buffer;
    ucp_st_op_h op;
} life_t;

static void life_open(life_t *life, const char *const *env)
{
    near_side_init(&life->side, env);
    CU_ASSERT_EQUAL(st_far_tell(&life->far, life->side.worker), UCS_OK);
}

static void life_connect(life_t *life)
{
    uint8_t address[ST_FAR_ADDRESS];
    size_t length;

    length = st_far_hear(&life->far, address);
    CU_ASSERT_EQUAL_FATAL(ucp_st_peer_create(life->side.worker, address, length,
                                             &life->side.peer), UCS_OK);
}

/* Operations of which the other process knows nothing yet */
static void life_announce(life_t *life, ucp_st_op_h *ops)
{
    int i;

    for (i = 0; i < OPS; ++i) {
        ops[i] = st_send(&life->side, NULL, 0, i);
    }
    CU_ASSERT_EQUAL(ucp_st_imatchall(ops, OPS), UCS_OK);
}

/* In memory that the other process maps if `is_mapped` is set */
static void life_init(life_t *life, death_mode_t mode, int is_send,
                      int is_mapped)
{
    life_open(life, (mode == MODE_HOST) ? other_env : small_env);
    life_connect(life);
    if (is_mapped) {
        CU_ASSERT_EQUAL(ucp_st_mem_alloc(LEN, (void**)&life->buffer), UCS_OK);
    } else {
        life->buffer = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    st_fill(life->buffer, LEN, is_send);
    life->op = (is_send ? st_send : st_recv)(&life->side, life->buffer, LEN, 1);
    CU_ASSERT_EQUAL(ucp_st_match(life->op), UCS_OK);
}

static void life_cleanup(life_t *life, int is_mapped)
{
    st_free(life->op);
    st_side_cleanup(&life->side);
    if (is_mapped) {
        CU_ASSERT_EQUAL(ucp_st_mem_free(life->buffer), UCS_OK);
    } else {
        CU_ASSERT_EQUAL(munmap(life->buffer, LEN), 0);
    }
}

/* The other process. It is killed in the end, and never returns. */
static void run_other(void)
{
    life_t life = {.buffer = NULL};
    int mode    = MODE_IDLE;
    int is_send = 0, is_mapped = 0;
    ucp_st_op_h ops[OPS];

    CU_ASSERT_EQUAL_FATAL(sscanf(st_far_task(&life.far), "%d %d %d", &mode,
                                 &is_send, &is_mapped), 3);
    if (mode <= MODE_MET) {
        life_open(&life, other_env);
    } else {
        life_init(&life, (death_mode_t)mode, is_send, is_mapped);
    }
    if (mode == MODE_MET) {
        life_connect(&life);
        life_announce(&life, ops);
    }
    if ((mode == MODE_CLAIMED) || (mode == MODE_COPYING)) {
        ucp_st_direct_op(life.op)->pair->claim =
                FIRST_PIECE(ucp_st_direct_op(life.op)->num_pieces);
    }
    if (mode >= MODE_TAKEN) {
        CU_ASSERT_EQUAL(munmap(life.buffer, LEN), 0);
    }
    if (mode >= MODE_STARTED) {
        st_start(&life.side, life.op);
        st_begun(&life.side);
    }
    CU_ASSERT_EQUAL(write(life.far.fd, "", 1), 1);
    for (;;) {
        pause();
    }
}

/* Start the other process */
static void other_start(life_t *life, death_mode_t mode, int is_send,
                        int is_mapped)
{
    char task[64];

    snprintf(task, sizeof(task), "%d %d %d", mode, is_send, is_mapped);
    st_far_start(&life->far, task);
}

static ucs_log_func_rc_t count_error(const char *file, unsigned line,
                                     const char *function,
                                     ucs_log_level_t level,
                                     const ucs_log_component_config_t *config,
                                     const char *message, va_list ap)
{
    (void)file;
    (void)line;
    (void)function;
    (void)config;
    (void)message;
    (void)ap;
    num_errors += (level <= UCS_LOG_LEVEL_ERROR);
    return UCS_LOG_FUNC_RC_CONTINUE;
}

/* Until it is found out that the other process is dead; all the time the host
 * asks, which is to have no effect on this process */
static void await_death(life_t *life)
{
    ucp_st_op_attr_t attr;

    do {
        CU_ASSERT_EQUAL(ucp_st_op_query(life->op, &attr), UCS_OK);
        ucp_st_worker_progress(life->side.worker);
    } while (attr.status == UCS_OK);
    CU_ASSERT_TRUE(st_far_is_death(attr.status));
}

/* A use that it takes no part in any more, or not to the end. What is mapped
 * can be copied without it, but for a piece that it has claimed. */
static void run_death(death_mode_t mode, int is_send, int is_mapped,
                      int is_polled)
{
    ucp_st_queue_error_t error = {0};
    ucs_status_t status;
    life_t life;
    char byte;

    other_start(&life, mode, !is_send, is_mapped);
    life_init(&life, mode, is_send, is_mapped);
    CU_ASSERT_EQUAL_FATAL(read(life.far.fd, &byte, 1), 1);
    st_far_stop(&life.far);
    st_start(&life.side, life.op);
    st_begun(&life.side);
    if (is_polled) {
        st_far_kill(&life.far);
        await_death(&life);
        CU_ASSERT_TRUE(st_far_is_death(
                ucp_st_enqueue_wait(life.side.queue, life.op)));
    } else {
        st_wait(&life.side, life.op);
        st_far_kill(&life.far);
    }
    status = ucp_st_queue_wait(life.side.queue, &error);
    if (is_mapped && (mode == MODE_STARTED)) {
        CU_ASSERT_EQUAL(status, UCS_OK);
        CU_ASSERT_TRUE(st_check(life.buffer, LEN, 1));
    } else {
        CU_ASSERT_TRUE(st_far_is_death(status));
        CU_ASSERT_EQUAL(error.status, status);
        CU_ASSERT_PTR_EQUAL(error.op, life.op);
    }
    life_cleanup(&life, is_mapped);
}

/* Whatever was killed, nothing is left of it here, and nobody looks for it */
static void run_all(death_mode_t mode, int is_polled)
{
    int is_send, is_mapped, fds, maps;
    void *block;
    near_t near;

    /* UCX keeps what it opens first, and the library the first block's file */
    CU_ASSERT_EQUAL(ucp_st_mem_alloc(LEN, &block), UCS_OK);
    CU_ASSERT_EQUAL(ucp_st_mem_free(block), UCS_OK);
    near_init(&near, NULL, LEN);
    near_cleanup(&near);
    fds        = near_count_fds();
    maps       = near_count_maps();
    num_errors = 0;
    ucs_log_push_handler(count_error);
    for (is_mapped = (mode == MODE_CLAIMED); is_mapped < 2; ++is_mapped) {
        for (is_send = 0; is_send < 2; ++is_send) {
            run_death(mode, is_send, is_mapped, is_polled);
            CU_ASSERT_EQUAL(near_count_fds(), fds);
            CU_ASSERT_EQUAL(near_count_maps(), maps);
        }
    }
    ucs_log_pop_handler();
    /* On lane host UCP may be about to connect when it is killed */
    CU_ASSERT_TRUE((num_errors == 0) || (mode == MODE_HOST));
}

ST_CASE_CALL(idle, run_all(MODE_IDLE, 0))
ST_CASE_CALL(idle_polled, run_all(MODE_IDLE, 1))

/* It does not answer UCP, which has the message to begin with */
ST_CASE_CALL(host, run_all(MODE_HOST, 0))
ST_CASE_CALL(started, run_all(MODE_STARTED, 0))
ST_CASE_CALL(claimed, run_all(MODE_CLAIMED, 0))
ST_CASE_CALL(claimed_polled, run_all(MODE_CLAIMED, 1))

/* Where the kernel cannot name processes but by their number */
ST_CASE_IF(no_pidfd, st_intercept_is_possible(),
           "a sanitizer stands in front of the kernel")
{
    st_intercept_no_pidfd(1);
    run_all(MODE_CLAIMED, 0);
    st_intercept_no_pidfd(0);
}

/* Whoever is connected with it afterwards is told that it is not there */
ST_CASE(before)
{
    uint8_t address[ST_FAR_ADDRESS];
    ucp_st_peer_h peer;
    size_t length;
    life_t life;

    other_start(&life, MODE_THERE, 0, 0);
    length = st_far_hear(&life.far, address);
    st_far_kill(&life.far);
    near_side_init(&life.side, other_env);
    CU_ASSERT_EQUAL(ucp_st_peer_create(life.side.worker, address, length,
                                       &peer), UCS_ERR_CONNECTION_RESET);
    st_side_cleanup(&life.side);
}

static int is_released(const life_t *life)
{
    ucp_st_direct_op_t *direct = ucp_st_direct_op(life->op);
    int is_released;

    (void)pthread_mutex_lock(&direct->stream->lock);
    is_released = direct->released;
    (void)pthread_mutex_unlock(&direct->stream->lock);
    return is_released;
}

/* The kernel copies between the two processes: whoever finds out that it cannot
 * fails, and tells the other one. While that one copies a piece it may write
 * here, or read. */
static void run_taken(death_mode_t mode, int is_send)
{
    ucp_st_queue_error_t error = {0};
    ucp_st_op_attr_t attr;
    ucs_status_t status;
    life_t life;
    char byte;

    other_start(&life, mode, !is_send, 0);
    life_init(&life, mode, is_send, 0);
    CU_ASSERT_STRING_EQUAL(life.op->lane->op.protocol(life.op), "attached");
    CU_ASSERT_EQUAL_FATAL(read(life.far.fd, &byte, 1), 1);
    if (mode == MODE_COPYING) {
        st_far_stop(&life.far);
    }
    st_start(&life.side, life.op);
    st_wait(&life.side, life.op);
    if (mode == MODE_COPYING) {
        do {
            CU_ASSERT_EQUAL(ucp_st_op_query(life.op, &attr), UCS_OK);
        } while (attr.status == UCS_OK);
        CU_ASSERT_FALSE(is_released(&life));
        st_far_kill(&life.far);
    }
    status = ucp_st_queue_wait(life.side.queue, &error);
    CU_ASSERT_TRUE((status == UCS_ERR_IO_ERROR) ||
                   (status == UCS_ERR_CANCELED));
    CU_ASSERT_EQUAL(error.status, status);
    CU_ASSERT_PTR_EQUAL(error.op, life.op);
    if (mode != MODE_COPYING) {
        st_far_kill(&life.far);
    }
    life_cleanup(&life, 0);
}

ST_CASE(taken)
{
    char *before;

    if (st_needs_host()) {
        return; /* the service thread of another one copies at once */
    }
    before = st_env_set("UCX_ST_DIRECT_ATTACH_MIN", "1");
    run_taken(MODE_TAKEN, 0);
    run_taken(MODE_TAKEN, 1);
    run_taken(MODE_COPYING, 0);
    run_taken(MODE_COPYING, 1);
    st_env_restore("UCX_ST_DIRECT_ATTACH_MIN", before);
}

/* It dies before it has made any call that could answer UCP */
ST_CASE(silent)
{
    ucp_st_op_h ops[OPS];
    life_t life;
    char byte;
    int i;

    other_start(&life, MODE_THERE, 0, 0);
    life_open(&life, other_env);
    life_connect(&life);
    life_announce(&life, ops);
    CU_ASSERT_EQUAL(read(life.far.fd, &byte, 1), 1);
    st_far_kill(&life.far);
    for (i = 0; i < OPS; ++i) {
        CU_ASSERT_TRUE(st_far_is_death(st_match_end(ops[i])));
        st_free(ops[i]);
    }
    st_side_cleanup(&life.side);
}

/* What it has said is read when it is dead, where this side has connected with
 * somebody else before, or since: UCX 1.13 must not look after peers then */
static void run_met(int is_before)
{
    uint8_t address[ST_FAR_ADDRESS];
    st_side_t third;
    life_t life;
    char byte;
    int i;

    if (UCP_API_VERSION >= UCP_VERSION(1, 14)) {
        st_cunit_skip("this UCX aborts where whom it is to answer has ended");
        return;
    }
    near_side_init(&third, other_env);
    other_start(&life, MODE_MET, 0, 0);
    life_open(&life, other_env);
    if (is_before) {
        life.side.peer = st_side_peer(&life.side, &third);
    }
    CU_ASSERT_TRUE(st_far_hear(&life.far, address) > 1);
    CU_ASSERT_EQUAL(read(life.far.fd, &byte, 1), 1);
    st_far_kill(&life.far);
    if (!is_before) {
        life.side.peer = st_side_peer(&life.side, &third);
    }
    for (i = 0; i < 100; ++i) {
        (void)ucp_st_worker_progress(life.side.worker);
    }
    st_side_leave(&life.side, &third);
    st_side_cleanup(&third);
}

ST_CASE_CALL(met, run_met(0))
ST_CASE_CALL(met_later, run_met(1))

ST_FAR_SUITE("st_direct_death", run_other)
