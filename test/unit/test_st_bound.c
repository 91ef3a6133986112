/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_bound.c - nothing is done without bound, and nobody yields or sleeps,
 * while the worker's lock is held or in the service thread; and two threads
 * that make calls at once do not do one thing twice.
 */
#include "st_cunit.h"
#include "st_hook.h"
#include "st_window.h"

#include "core/st_lane.h"
#include "core/st_peer.h"
#include "core/st_worker.h"
#include "ctrl/st_ctrl.h"
#include "ctrl/st_service.h"
#include "trig/st_trig_dev.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LEN   512
#define NEVER 1000000u /* in place of for ever, so that a case ends */

/* Non-zero if a thread of this process sleeps */
static int is_asleep(pid_t tid)
{
    char name[64], line[256] = "";
    const char *p;
    int fd;

    snprintf(name, sizeof(name), "/proc/self/task/%d/stat", (int)tid);
    fd = open(name, O_RDONLY);
    if (fd < 0) {
        return 1; /* it has ended */
    }
    (void)!read(fd, line, sizeof(line) - 1);
    close(fd);
    p = strrchr(line, ')');
    return (p != NULL) && (p[2] == 'S');
}

static unsigned num_progress;

static unsigned busy_progress(ucp_st_worker_h worker)
{
    (void)worker;
    return ++num_progress < NEVER;
}

/* A peer that sends all the time does not keep the lock taken */
ST_CASE(progress)
{
    const ucp_st_lane_ops_t *before;
    ucp_st_lane_ops_t ops;
    st_side_t side;

    st_side_init(&side);
    num_progress           = 0;
    before                 = side.worker->lanes[0];
    ops                    = *before;
    ops.worker.progress    = busy_progress;
    side.worker->lanes[0] = &ops;
    ucp_st_worker_lock(side.worker);
    ucp_st_lanes_progress_all(side.worker);
    ucp_st_worker_unlock(side.worker);
    side.worker->lanes[0] = before;
    CU_ASSERT(num_progress > 0);
    CU_ASSERT(num_progress < NEVER);
    st_side_cleanup(&side);
}

static int is_busy;

static unsigned busy_callback(void *arg)
{
    (void)arg;
    return __atomic_load_n(&is_busy, __ATOMIC_RELAXED) &&
           (++num_progress < NEVER);
}

/* ... nor does the service thread where a NIC has something all the time */
ST_CASE_IF(serve, st_lane() == UCP_ST_LANE_TRIG, "about lane trig")
{
    uct_worker_cb_id_t id = UCS_CALLBACKQ_ID_NULL;
    uct_worker_h uct_worker;
    st_side_t side;
    unsigned count;

    st_side_init(&side);
    num_progress = 0;
    is_busy      = 1;
    uct_worker   = ucp_st_trig_dev(side.worker)->uct_worker;
    ucp_st_worker_lock(side.worker);
    uct_worker_progress_register_safe(uct_worker, busy_callback, NULL, 0, &id);
    ucp_st_worker_unlock(side.worker);
    ucp_st_trig_dev_wake(side.worker);
    do { /* until the thread has been there */
        ucp_st_worker_lock(side.worker);
        count = num_progress;
        ucp_st_worker_unlock(side.worker);
    } while (count == 0);
    CU_ASSERT(count < NEVER);
    __atomic_store_n(&is_busy, 0, __ATOMIC_RELAXED);
    ucp_st_worker_lock(side.worker);
    uct_worker_progress_unregister_safe(uct_worker, &id);
    ucp_st_worker_unlock(side.worker);
    st_side_cleanup(&side);
}

/* All of it is atomic */
static pid_t    adder;      /* 0: nothing is counted */
static int      is_added;   /* the adder waits no more */
static unsigned num_rounds;

/* Behind a round in which the adder has come to sleep, count the rounds */
static int busy_serve(void *arg)
{
    pid_t tid = __atomic_load_n(&adder, __ATOMIC_ACQUIRE);

    if (tid == 0) {
        return 0;
    }
    if (*(pid_t*)arg == tid) {
        __atomic_add_fetch(&num_rounds, 1, __ATOMIC_RELAXED);
        return 0;
    }
    while (!is_asleep(tid) && !__atomic_load_n(&is_added, __ATOMIC_RELAXED)) {
        /* it is about to wait for this thread */
    }
    *(pid_t*)arg = tid;
    return 0;
}

static int added_serve(void *arg)
{
    *(pid_t*)arg = 0;
    __atomic_store_n(&adder, 0, __ATOMIC_RELEASE);
    return -1;
}

/* ... nor from other workers: one that is added is served after one more round
 * of those that are busy */
ST_CASE(service)
{
    static pid_t seen; /* the service thread's */
    ucp_st_service_client_t busy  = {.serve = busy_serve, .arg = &seen};
    ucp_st_service_client_t added = {.serve = added_serve, .arg = &seen};
    int i;

    CU_ASSERT_EQUAL_FATAL(ucp_st_service_add(&busy), UCS_OK);
    for (i = 0; i < 100; ++i) {
        __atomic_store_n(&num_rounds, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&is_added, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&adder, gettid(), __ATOMIC_RELEASE);
        CU_ASSERT_EQUAL(ucp_st_service_add(&added), UCS_OK);
        __atomic_store_n(&is_added, 1, __ATOMIC_RELAXED);
        while (__atomic_load_n(&adder, __ATOMIC_ACQUIRE) != 0) {
            /* until it was served */
        }
        CU_ASSERT(__atomic_load_n(&num_rounds, __ATOMIC_RELAXED) <= 1);
        ucp_st_service_remove(&added);
    }
    ucp_st_service_remove(&busy);
}

/* All that is done with operations and one-sided ones, with the queue destroyed
 * as soon as its stream has passed: nobody yields or sleeps with the lock */
ST_CASE_IF(yield, st_hook_has_clock(), "a sanitizer stands in the way")
{
    static uint8_t sbuf[LEN], rbuf[LEN];
    st_window_t windows[2];
    ucp_st_op_h send, recv;
    st_side_t more;
    st_pair_t pair;
    int i;

    if (st_env_has_provider("cxi")) {
        st_cunit_skip("the emulated Cassini yields in the caller's thread");
        return;
    }
    st_pair_init(&pair);
    st_hook_watch(&pair.side[ST_A].worker->lock);
    send = st_send(&pair.side[ST_A], sbuf, LEN, 1);
    recv = st_recv(&pair.side[ST_B], rbuf, LEN, 1);
    st_match_ok(send, recv);
    for (i = 0; i < 20; ++i) {
        st_use(&pair.side[ST_A], send);
        st_use(&pair.side[ST_B], recv);
        st_pair_sync(&pair);
    }
    st_windows_init(&pair, windows, LEN, 1);
    st_more_init(&more, &pair.side[ST_A]);
    windows[ST_A].side = &more;
    st_put(&windows[ST_A], 0, LEN, 0);
    st_quiet(&windows[ST_A]);
    CU_ASSERT_EQUAL(ucp_st_queue_wait(more.queue, NULL), UCS_OK);
    st_more_cleanup(&more);
    windows[ST_A].side = &pair.side[ST_A];
    st_windows_cleanup(windows);
    st_free2(send, recv);
    st_drain(&pair);
    CU_ASSERT_EQUAL(st_hook_violations(), 0);
    st_hook_watch(NULL);
    st_pair_cleanup(&pair);
}

/* A pair with a send and a receive that were used once; 0 if there is none */
static void used_pair_init(st_pair_t *pair, ucp_st_op_h *send,
                           ucp_st_op_h *recv)
{
    static uint8_t sbuf[LEN], rbuf[LEN];

    st_pair_init(pair);
    *send = st_send(&pair->side[ST_A], sbuf, LEN, 1);
    *recv = st_recv(&pair->side[ST_B], rbuf, LEN, 1);
    st_match_ok(*send, *recv);
    st_use(&pair->side[ST_A], *send);
    st_use(&pair->side[ST_B], *recv);
    st_pair_sync(pair);
}

/* UCP does not end the close of an endpoint: the service thread goes on, and
 * the worker's end waits only for so long */
ST_CASE_IF(close, st_hook_has_clock(), "a sanitizer stands in the way")
{
    ucp_st_op_h send, recv;
    st_side_t *a, *b;
    st_pair_t pair;

    used_pair_init(&pair, &send, &recv);
    a = &pair.side[ST_A];
    b = &pair.side[ST_B];
    st_free(recv);
    st_hook_slow_close(1, NEVER);
    st_side_leave(b, a);
    CU_ASSERT(st_hook_num_closes() > 0);
    CU_ASSERT(st_hook_num_questions() < NEVER);
    st_free(send);
    st_side_cleanup(a);
    CU_ASSERT(st_hook_num_questions() < NEVER);
    st_hook_slow_close(0, 0);
}

/* UCP does not end the close of a lost peer's endpoint at once: the service
 * thread looks for its end, and then for no other */
ST_CASE_IF(close_late, st_lane() == UCP_ST_LANE_HOST,
           "other lanes have no such endpoint")
{
    ucp_st_op_h send, recv;
    st_side_t *a;
    st_pair_t pair;

    used_pair_init(&pair, &send, &recv);
    a = &pair.side[ST_A];
    st_hook_late_close(&ucp_st_net(a->worker)->num_closes);
    ucp_st_worker_lock(a->worker);
    ucp_st_peer_lost(a->peer, UCS_ERR_CONNECTION_RESET);
    ucp_st_worker_unlock(a->worker);
    while (!st_hook_is_late_close_over()) {
        ucp_st_worker_progress(a->worker);
    }
    CU_ASSERT_EQUAL(ucp_st_net(a->worker)->num_closes, 0);
    st_hook_late_close(NULL);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(a->queue, send),
                    UCS_ERR_CONNECTION_RESET);
    st_free2(send, recv);
    st_pair_cleanup(&pair);
}

/** Two threads that make one peer. */
typedef struct {
    st_side_t     *side;
    void          *address;
    size_t        length;
    ucp_st_peer_h peer;
    ucs_status_t  status;
    pid_t         tid;  /* atomic; 0 until the thread is about to call */
    pthread_t     thread;
} maker_t;

static maker_t maker;

static void *maker_main(void *arg)
{
    (void)arg;
    __atomic_store_n(&maker.tid, gettid(), __ATOMIC_RELAXED);
    maker.status = ucp_st_peer_create(maker.side->worker, maker.address,
                                      maker.length, &maker.peer);
    __atomic_store_n(&maker.tid, -1, __ATOMIC_RELAXED);
    return NULL;
}

/* The first thread is where it makes an endpoint: the second one comes there,
 * too, or waits for the first one */
static ucs_status_t maker_meet(void)
{
    static int is_second;
    pid_t tid;

    if (__atomic_exchange_n(&is_second, 1, __ATOMIC_RELAXED)) {
        return UCS_OK;
    }
    (void)pthread_create(&maker.thread, NULL, maker_main, NULL);
    do {
        tid = __atomic_load_n(&maker.tid, __ATOMIC_RELAXED);
    } while ((tid == 0) ||
             ((tid > 0) && (st_hook_num_eps() < 2) && !is_asleep(tid)));
    return UCS_OK;
}

/* Two threads make a peer of one address: they get one, which is connected
 * once */
ST_CASE(peer)
{
    st_side_t side[2];
    ucp_st_peer_h peer = NULL;
    int i;

    for (i = 0; i < 2; ++i) {
        st_side_init(&side[i]);
    }
    memset(&maker, 0, sizeof(maker));
    maker.side = &side[0];
    CU_ASSERT_EQUAL(ucp_st_worker_get_address(side[1].worker, &maker.address,
                                              &maker.length), UCS_OK);
    st_hook_ep_create(maker_meet);
    CU_ASSERT_EQUAL(ucp_st_peer_create(side[0].worker, maker.address,
                                       maker.length, &peer), UCS_OK);
    CU_ASSERT_EQUAL(pthread_join(maker.thread, NULL), 0);
    CU_ASSERT_EQUAL(maker.status, UCS_OK);
    CU_ASSERT_PTR_EQUAL(maker.peer, peer);
    CU_ASSERT_EQUAL(st_hook_num_eps(), 1);
    st_hook_ep_create(NULL);
    ucp_st_worker_release_address(side[1].worker, maker.address);
    st_side_leave(&side[0], &side[1]);
    st_side_cleanup(&side[1]);
}

/** A thread that looks after a peer. */
typedef struct {
    ucp_st_worker_h worker;
    uint64_t        uuid;
    pid_t           tid;     /* atomic; 0 until the thread has begun */
    int             is_over; /* atomic */
} watcher_t;

static watcher_t watcher;

static void *watcher_main(void *arg)
{
    (void)arg;
    __atomic_store_n(&watcher.tid, gettid(), __ATOMIC_RELAXED);
    while (!__atomic_load_n(&watcher.is_over, __ATOMIC_RELAXED)) {
        ucp_st_worker_lock(watcher.worker);
        ucp_st_peer_check(ucp_st_peer_find(watcher.worker, watcher.uuid));
        ucp_st_worker_unlock(watcher.worker);
    }
    return NULL;
}

/* The thread waits for the lock, and looks after the peer as soon as it has
 * it */
static ucs_status_t fail_meet(void)
{
    pid_t tid;

    ucp_st_worker_lock(watcher.worker);
    do {
        tid = __atomic_load_n(&watcher.tid, __ATOMIC_RELAXED);
    } while ((tid == 0) || !is_asleep(tid));
    ucp_st_worker_unlock(watcher.worker);
    return UCS_ERR_NO_MEMORY;
}

/* A peer is known by its message, and its endpoint cannot be made at first:
 * another thread looks after the peer meanwhile. TSan tells. */
ST_CASE(connect)
{
    ucp_st_peer_h peer = NULL;
    st_side_t side[2];
    pthread_t thread;
    void *address;
    size_t length;
    int i;

    for (i = 0; i < 2; ++i) {
        st_side_init(&side[i]);
    }
    CU_ASSERT_EQUAL(ucp_st_worker_get_address(side[1].worker, &address,
                                              &length), UCS_OK);
    watcher = (watcher_t){
        .worker = side[0].worker,
        .uuid   = side[1].worker->uuid
    };
    ucp_st_worker_lock(watcher.worker);
    CU_ASSERT_PTR_NOT_NULL_FATAL(ucp_st_peer_get(watcher.worker, watcher.uuid));
    ucp_st_worker_unlock(watcher.worker);
    CU_ASSERT_EQUAL(pthread_create(&thread, NULL, watcher_main, NULL), 0);
    st_hook_ep_create(fail_meet);
    for (i = 0; i < 20; ++i) {
        CU_ASSERT_EQUAL(ucp_st_peer_create(side[0].worker, address, length,
                                           &peer), UCS_ERR_NO_MEMORY);
    }
    st_hook_ep_create(NULL);
    __atomic_store_n(&watcher.is_over, 1, __ATOMIC_RELAXED);
    CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
    CU_ASSERT_EQUAL(ucp_st_peer_create(side[0].worker, address, length, &peer),
                    UCS_OK);
    ucp_st_worker_release_address(side[1].worker, address);
    st_side_leave(&side[0], &side[1]);
    st_side_cleanup(&side[1]);
}

static ucp_st_worker_h leaver;
static int             is_flushing; /* relaxed: it orders nothing */
static int             is_joined;   /* likewise */

/* A worker that nobody knew has sent its first message */
static void *adder_main(void *arg)
{
    (void)arg;
    while (!__atomic_load_n(&is_flushing, __ATOMIC_RELAXED)) {
        /* until the leaver walks over its peers */
    }
    ucp_st_worker_lock(leaver);
    CU_ASSERT_PTR_NOT_NULL(ucp_st_peer_get(leaver, 0x1234));
    ucp_st_worker_unlock(leaver);
    __atomic_store_n(&is_joined, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void adder_meet(void)
{
    __atomic_store_n(&is_flushing, 1, __ATOMIC_RELAXED);
    while (!__atomic_load_n(&is_joined, __ATOMIC_RELAXED)) {
        /* the other thread can take the lock */
    }
}

/* A worker says goodbye to its peers, of which the last one is looked at, while
 * there is another one: the list is read with the lock. TSan tells. */
ST_CASE(bye)
{
    st_side_t side[2];
    pthread_t thread;
    int i;

    for (i = 0; i < 2; ++i) {
        st_side_init(&side[i]);
    }
    (void)st_side_peer(&side[0], &side[1]);
    leaver = side[0].worker;
    CU_ASSERT_EQUAL(pthread_create(&thread, NULL, adder_main, NULL), 0);
    st_hook_ep_flush(adder_meet);
    st_side_leave(&side[0], &side[1]);
    st_hook_ep_flush(NULL);
    CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
    st_side_cleanup(&side[1]);
}

ST_SUITE("st_bound")
