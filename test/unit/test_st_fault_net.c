/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_fault_net.c - st workers where libfabric refuses: every call that the
 * transport makes on the way from creation to the end fails once, on any
 * provider. Nothing hangs or is left open, data is never wrong, and want of
 * room where something is posted is not an error.
 */
#include "fab_intercept.h"
#include "st_cunit.h"
#include "st_intercept.h"
#include "st_life.h"
#include "st_pair.h"
#include "st_stream.h"
#include "st_window.h"

#include <rdma/fi_errno.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* What a call is refused with, in turn */
static const int codes[] = {FI_EAGAIN, FI_EIO, FI_ENOMEM, FI_ENOSPC};

#define NUM_CODES (sizeof(codes) / sizeof(codes[0]))

#define LEN 1000

/* How long a run may take, about, seconds */
#define RUN_TIME 15

/* So that test/lsan.supp knows what called UCX, which has no frame pointers */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "fast_unwind_on_malloc=0";
}

/** What is there while nothing lives. */
typedef struct rest {
    int64_t allocations;
    int64_t objects;
} rest_t;


static rest_t get_rest(void)
{
    rest_t rest = {st_intercept_outstanding(), fab_intercept_open()};

    return rest;
}

static int get_number(const char *name, int value)
{
    return (getenv(name) == NULL) ? value : atoi(getenv(name));
}

static void say(int number, int code, ucs_status_t status, const char *what)
{
    fab_call_t call = fab_intercept_failed();

    printf("call %d, %s, returns \"%s\"", number, fab_intercept_name(call),
           fi_strerror(code));
    if (call != FAB_CALL_LAST) {
        st_intercept_print(fab_intercept_failed_caller());
    }
    printf(": %s%s\n", ucs_status_string(status), what);
    fflush(stdout);
}

/* The transport tries again, or keeps the work until there is room */
static int is_passing(fab_call_t call, int code)
{
    switch (call) {
    case FAB_CALL_INSERT:
    case FAB_CALL_SEND:
    case FAB_CALL_WRITE:
    case FAB_CALL_READ:
        return 1;
    case FAB_CALL_RECV:
        return code == FI_EAGAIN;
    case FAB_CALL_QUEUE_WORK:
        return (code == FI_EAGAIN) || (code == FI_ENOSPC);
    default:
        return 0;
    }
}

static void check_status(int number, int code, ucs_status_t status)
{
    if (status == UCS_OK) {
        return;
    }
    if (is_passing(fab_intercept_failed(), code)) {
        say(number, code, status, ": want of room is not an error");
        CU_FAIL("an error");
    } else if (!st_life_is_fair(status)) {
        say(number, code, status, ": unexpected");
        CU_FAIL("what is said");
    }
}

static void check_rest(int number, int code, ucs_status_t status,
                       rest_t *before)
{
    rest_t after = get_rest();

    if ((after.allocations != before->allocations) ||
        (after.objects != before->objects)) {
        say(number, code, status, ": something is left over");
        printf("%ld allocations, %ld objects:",
               (long)(after.allocations - before->allocations),
               (long)(after.objects - before->objects));
        st_intercept_print_outstanding();
        printf("\n");
        CU_FAIL("what is left over");
        *before = after;
    }
}

/* Non-zero while there are that many calls */
static int test_call(int number, int code, rest_t *before, unsigned *errors)
{
    ucs_status_t status;

    st_intercept_fail(-1);
    fab_intercept_fail(number, code);
    if (getenv("ST_VERBOSE") != NULL) {
        say(number, code, UCS_OK, ": to be");
    }
    status = st_life();
    if (fab_intercept_failed() == FAB_CALL_LAST) {
        CU_ASSERT_EQUAL(status, UCS_OK);
        return 0;
    }
    if (getenv("ST_VERBOSE") != NULL) {
        say(number, code, status, "");
    }
    *errors += (status != UCS_OK);
    check_status(number, code, status);
    check_rest(number, code, status, before);
    return 1;
}

static double now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + (ts.tv_nsec * 1e-9);
}

static uint64_t count_calls(void)
{
    uint64_t calls = 0;
    unsigned i;

    for (i = 0; i < FAB_CALL_LAST; ++i) {
        calls += fab_intercept_count(i);
    }
    return calls;
}

/* Some calls in a run, others each time: a life is slow. ST_FAULT_STEP=1
 * ST_FAULT_FIRST=0 are all of them, with one code after the other, or with
 * ST_FAULT_CODE. */
ST_CASE(every_call)
{
    unsigned errors = 0;
    unsigned tests  = 0;
    int step, first, number, code, is_used;
    double start;
    rest_t before;

    CU_ASSERT_EQUAL_FATAL(st_life(), UCS_OK);
    before = get_rest();
    start  = now();
    fab_intercept_fail(-1, 0);
    CU_ASSERT_EQUAL_FATAL(st_life(), UCS_OK);
    if (count_calls() == 0) {
        st_cunit_skip("nothing here uses libfabric");
        return;
    }
    CU_ASSERT_EQUAL(fab_intercept_open(), before.objects);
    /* UCP opens domains to ask what they can do, also of what UCX_TLS leaves
     * out, and goes on without those that fail */
    is_used = (fab_intercept_count(FAB_CALL_EP) > 0);
    step  = 1 + (int)(count_calls() * (now() - start) / RUN_TIME);
    step  = get_number("ST_FAULT_STEP", step);
    first = get_number("ST_FAULT_FIRST", (int)(time(NULL) % step));
    code  = get_number("ST_FAULT_CODE", 0);
    printf("ST_FAULT_STEP=%d ST_FAULT_FIRST=%d\n", step, first);
    for (number = first;
         test_call(number, (code != 0) ? code : codes[tests % NUM_CODES],
                   &before, &errors); number += step) {
        ++tests;
    }
    fab_intercept_fail(-1, 0);
    CU_ASSERT(tests > NUM_CODES);
    CU_ASSERT((errors > 0) || !is_used || (tests < (2 * NUM_CODES)));
    printf("%u of %d calls failed, %u lives ended so\n", tests, number, errors);
}

static void test_refused_worker(fab_call_t call, int code, ucs_status_t status)
{
    ucp_st_worker_params_t params = {.field_mask = 0};
    rest_t before                 = get_rest();
    ucp_st_worker_h worker        = NULL;

    fab_intercept_fail_all(call, code);
    CU_ASSERT_EQUAL(ucp_st_worker_create(&params, &worker), status);
    CU_ASSERT_PTR_NULL(worker);
    fab_intercept_fail_all(FAB_CALL_LAST, 0);
    check_rest(-1, code, status, &before);
}

/* What ucp_st.h guarantees where a NIC has nothing left: here of counters, as
 * providers say it */
ST_CASE(worker_create)
{
    char *lanes = st_env_set("UCX_ST_LANES", "trig");
    ucs_status_t status;

    status = st_life();
    if (status == UCS_ERR_UNSUPPORTED) {
        st_env_restore("UCX_ST_LANES", lanes);
        st_cunit_skip("UCX_TLS leaves the transport out");
        return;
    }
    CU_ASSERT_EQUAL(status, UCS_OK);
    test_refused_worker(FAB_CALL_CNTR, FI_EDOMAIN, UCS_ERR_NO_RESOURCE);
    test_refused_worker(FAB_CALL_CNTR, FI_ENOSPC, UCS_ERR_NO_RESOURCE);
    test_refused_worker(FAB_CALL_CNTR, FI_EMFILE, UCS_ERR_NO_RESOURCE);
    test_refused_worker(FAB_CALL_CNTR, FI_ENOMEM, UCS_ERR_NO_MEMORY);
    st_env_restore("UCX_ST_LANES", lanes);
}

/** A pair on lane trig, with a message from A to B, and windows. */
typedef struct {
    st_pair_t   pair;
    st_side_t   *a;
    st_side_t   *b;
    ucp_st_op_h send;
    ucp_st_op_h recv;
    st_window_t windows[2];
    uint8_t     sbuf[LEN];
    uint8_t     rbuf[LEN];
} scene_t;

/* Zero, and nothing made, if this is another lane */
static int scene_init(scene_t *scene)
{
    if (st_lane() != UCP_ST_LANE_TRIG) {
        st_cunit_skip("about lane trig");
        return 0;
    }
    st_pair_init(&scene->pair);
    scene->a    = &scene->pair.side[ST_A];
    scene->b    = &scene->pair.side[ST_B];
    scene->send = st_send(scene->a, scene->sbuf, LEN, 1);
    scene->recv = st_recv(scene->b, scene->rbuf, LEN, 1);
    st_match_ok(scene->send, scene->recv);
    st_windows_init(&scene->pair, scene->windows, LEN, 1);
    return 1;
}

static void scene_cleanup(scene_t *scene)
{
    st_windows_cleanup(scene->windows);
    st_free2(scene->send, scene->recv);
    st_pair_cleanup(&scene->pair);
}

static void scene_use(scene_t *scene)
{
    st_use(scene->a, scene->send);
    st_use(scene->b, scene->recv);
    st_sync(scene->a);
    st_sync(scene->b);
}

/* A's queue is in error, and takes nothing more */
static void scene_check_error(scene_t *scene)
{
    ucp_st_rma_params_t params = st_rma_params(&scene->windows[ST_A], 0, LEN);

    CU_ASSERT_EQUAL(ucp_st_queue_wait(scene->a->queue, NULL), UCS_ERR_IO_ERROR);
    CU_ASSERT_EQUAL(ucp_st_enqueue_put(scene->a->queue, &params),
                    UCS_ERR_IO_ERROR);
}

/* The NIC does not take what tells the stream that all is over: the stream goes
 * on all the same */
ST_CASE(quiet)
{
    scene_t scene;

    if (!scene_init(&scene)) {
        return;
    }
    scene_use(&scene);
    st_put(&scene.windows[ST_A], 0, LEN, 0);
    fab_intercept_fail_all(FAB_CALL_QUEUE_WORK, FI_EINVAL);
    st_quiet(&scene.windows[ST_A]);
    scene_check_error(&scene);
    fab_intercept_fail_all(FAB_CALL_LAST, 0);
    scene_cleanup(&scene);
}

/* The stream cannot trigger the NIC, for a message or for a put: what it has
 * started fails, and it goes on */
static void run_trigger(int is_put)
{
    uint64_t gate = 0;
    scene_t scene;

    if (!scene_init(&scene)) {
        return;
    }
    /* What the first put makes may set a counter, too */
    st_put(&scene.windows[ST_A], 0, LEN, 0);
    st_quiet(&scene.windows[ST_A]);
    st_sync(scene.a);
    fab_intercept_fail(-1, 0);
    scene_use(&scene);
    if (fab_intercept_count(FAB_CALL_CNTR_ADD) == 0) {
        st_cunit_skip("streams trigger this NIC without a call");
        scene_cleanup(&scene);
        return;
    }
    fab_intercept_fail_next(FAB_CALL_CNTR_ADD, 1, FI_EIO);
    /* The wait is there before the start fails, else it is refused */
    st_hold(scene.a, &gate);
    if (is_put) {
        st_put(&scene.windows[ST_A], 0, LEN, 0);
        st_quiet(&scene.windows[ST_A]);
    } else {
        st_use(scene.a, scene.send);
    }
    st_let_go(&gate);
    scene_check_error(&scene);
    if (!is_put) {
        CU_ASSERT_TRUE(st_start_becomes(&scene.pair, scene.b, scene.recv,
                                        UCS_ERR_IO_ERROR));
    }
    scene_cleanup(&scene);
}

ST_CASE_CALL(trigger_send, run_trigger(0))
ST_CASE_CALL(trigger_put, run_trigger(1))

int main(int argc, char **argv)
{
    /* Most calls would post receives */
    setenv("UCX_CXI_TRIG_RX_QUEUE_LEN", "8", 0);
    return st_cunit_main("st_fault_net", argc, argv);
}
