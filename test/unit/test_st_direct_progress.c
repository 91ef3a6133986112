/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_st_direct_progress.c - the direct lane's progress: what moves data when
 * a stream runs something else, when no stream waits, and when a queue is gone.
 */
#include "st_cunit.h"
#include "st_near.h"
#include "st_stream.h"

#include "direct/st_direct.h"
#include "core/st_queue.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LARGE  ((1ul << 20) - 61) /* does not fit into its slots */
#define SHORT  100
#define PIECE  (NEAR_LONG_PIECE * NEAR_SMALL_PIECE)
#define PIECES ((LARGE + PIECE - 1) / PIECE)
#define SLOTS  4
#define SLEEPS 20

/* Sleeps of the service thread that are none of its poll(); atomic */
static unsigned num_sleeps;

/* The library's call comes here. All clients of the service thread wait while
 * one of them sleeps. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
    char name[16] = "";

    (void)pthread_getname_np(pthread_self(), name, sizeof(name));
    if (!strcmp(name, "ucp-st")) {
        (void)__atomic_fetch_add(&num_sleeps, 1, __ATOMIC_RELAXED);
    }
    return clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);
}

/** A kernel that runs as long as the case wants: not a wait of the stream, so
 *  that nothing else is done meanwhile. */
typedef struct {
    sem_t runs;
    sem_t may_end;
} kernel_t;

static void kernel_func(void *arg)
{
    kernel_t *kernel = arg;

    (void)sem_post(&kernel->runs);
    while (sem_wait(&kernel->may_end) != 0) {
        /* a signal */
    }
}

/* It runs when this returns */
static void kernel_launch(kernel_t *kernel, st_side_t *side)
{
    CU_ASSERT_EQUAL(sem_init(&kernel->runs, 0, 0), 0);
    CU_ASSERT_EQUAL(sem_init(&kernel->may_end, 0, 0), 0);
    st_launch(side, kernel_func, kernel);
    while (sem_wait(&kernel->runs) != 0) {
        /* a signal */
    }
}

static void kernel_end(kernel_t *kernel, st_side_t *side)
{
    (void)sem_post(&kernel->may_end);
    CU_ASSERT_EQUAL(ucs_gstream_synchronize(side->stream), UCS_OK);
    CU_ASSERT_EQUAL(sem_destroy(&kernel->runs), 0);
    CU_ASSERT_EQUAL(sem_destroy(&kernel->may_end), 0);
}

/* One side's stream runs a kernel behind its start: the other side's wait
 * passes, as the service thread moves what the first one's stream does not. The
 * last pieces may be in their slots then, of a short message all of it. */
static void run_busy(const char *const *env, size_t length, int busy)
{
    uint64_t pieces = (length > SHORT) ? PIECES - SLOTS : 0;
    ucp_st_stats_t before, after;
    st_side_t *side;
    kernel_t kernel;
    near_t near;

    near_init(&near, env, length);
    side = near.pair.side;
    near_use(&near, 1);
    near_fill(&near, 2);
    st_start(&side[busy], near.op[busy]);
    kernel_launch(&kernel, &side[busy]);
    before = st_stats(&side[busy]);
    st_use(&side[!busy], near.op[!busy]);
    st_sync(&side[!busy]);
    after = st_stats(&side[busy]);
    CU_ASSERT(after.copies - before.copies >= pieces);
    if (busy == ST_A) {
        near_check(&near, 2);
        CU_ASSERT_EQUAL(after.proxied - before.proxied, length > SHORT);
    }
    kernel_end(&kernel, &side[busy]);
    st_wait(&side[busy], near.op[busy]);
    st_sync(&side[busy]);
    near_check(&near, 2);
    near_cleanup(&near);
}

ST_CASE(busy)
{
    const char *const slots[] = NEAR_SMALL_SLOTS;

    __atomic_store_n(&num_sleeps, 0, __ATOMIC_RELAXED);

    run_busy(slots, LARGE, ST_A);
    run_busy(slots, LARGE, ST_B);
    run_busy(slots, SHORT, ST_A);
    run_busy(slots, SHORT, ST_B);
    CU_ASSERT_EQUAL(__atomic_load_n(&num_sleeps, __ATOMIC_RELAXED), 0);
}

/* The same where the side that waits can move all of it. The service thread may
 * have moved all before, on a machine with load: then again. */
static void run_busy_mapped(int busy)
{
    unsigned use = 1;
    ucp_st_stats_t before;
    st_side_t *side;
    kernel_t kernel;
    near_t near;

    near_init(&near, NULL, LARGE);
    side = near.pair.side;
    near_check_protocol(&near, "mapped");
    do {
        near_fill(&near, ++use);
        st_start(&side[busy], near.op[busy]);
        kernel_launch(&kernel, &side[busy]);
        before = st_stats(&side[!busy]);
        st_use(&side[!busy], near.op[!busy]);
        st_sync(&side[!busy]);
        near_check(&near, use);
        kernel_end(&kernel, &side[busy]);
        st_wait(&side[busy], near.op[busy]);
        st_sync(&side[busy]);
    } while (st_stats(&side[!busy]).copies == before.copies);
    near_cleanup(&near);
}

ST_CASE(busy_mapped)
{
    run_busy_mapped(ST_A);
    run_busy_mapped(ST_B);
}

static uint64_t completed(ucp_st_op_h op)
{
    ucp_st_op_attr_t attr;

    CU_ASSERT_EQUAL(ucp_st_op_query(op, &attr), UCS_OK);
    return attr.completed;
}

/* No stream waits, both run kernels, and one host asks again and again */
static void run_polled(const char *const *env, int poller)
{
    uint64_t before[2], proxied[2];
    kernel_t kernel[2];
    st_side_t *side;
    near_t near;
    int i;

    near_init(&near, env, LARGE);
    side = near.pair.side;
    near_fill(&near, 2);
    for (i = 0; i < 2; ++i) {
        before[i] = st_stats(&side[i]).proxied;
        st_start(&side[i], near.op[i]);
        kernel_launch(&kernel[i], &side[i]);
    }
    while (completed(near.op[poller]) == 0) {
        /* the call does what this side can */
    }
    while (completed(near.op[!poller]) == 0) {
        /* its last pieces may be there untaken */
    }
    near_check(&near, 2);
    /* Streams have filled or emptied slots at most */
    for (i = 0; i < 2; ++i) {
        proxied[i] = st_stats(&side[i]).proxied - before[i];
        CU_ASSERT(proxied[i] <= 1);
        CU_ASSERT((env == NULL) || (proxied[i] == 1));
    }
    CU_ASSERT(proxied[0] + proxied[1] >= 1);
    for (i = 0; i < 2; ++i) {
        kernel_end(&kernel[i], &side[i]);
        st_wait(&side[i], near.op[i]);
        st_sync(&side[i]);
    }
    near_cleanup(&near);
}

ST_CASE(polled)
{
    const char *const slots[] = NEAR_SMALL_SLOTS;

    run_polled(slots, ST_A);
    run_polled(slots, ST_B);
    run_polled(NULL, ST_A);
    run_polled(NULL, ST_B);
}

/* The queue of a use that nobody waits for goes: the message is moved all the
 * same, whole, and counted */
static void run_queue_gone(const char *const *env, int gone)
{
    st_side_t *side, more;
    near_t near;
    int i;

    near_init(&near, env, LARGE);
    side = near.pair.side;
    near_fill(&near, 7);
    st_more_init(&more, &side[gone]);
    st_start(&more, near.op[gone]);
    st_sync(&more);
    st_more_cleanup(&more);
    CU_ASSERT_EQUAL(completed(near.op[gone]), 0);
    CU_ASSERT_EQUAL(ucp_st_enqueue_start(side[gone].queue, near.op[gone]),
                    UCS_ERR_BUSY);
    CU_ASSERT_EQUAL(ucp_st_op_free(near.op[gone]), UCS_ERR_BUSY);
    st_use(&side[!gone], near.op[!gone]);
    st_sync(&side[!gone]);
    while (completed(near.op[gone]) == 0) {
        /* its last pieces may be there untaken */
    }
    near_check(&near, 7);
    /* Nobody can wait for it any more: it is used again, and freed */
    near_fill(&near, 8);
    for (i = 0; i < 2; ++i) {
        st_start(&side[i], near.op[i]);
    }
    for (i = 0; i < 2; ++i) {
        st_wait(&side[i], near.op[i]);
        st_sync(&side[i]);
    }
    near_check(&near, 8);
    near_cleanup(&near);
}

ST_CASE(queue_gone)
{
    const char *const slots[] = NEAR_SMALL_SLOTS;

    run_queue_gone(slots, ST_A);
    run_queue_gone(slots, ST_B);
}

/** Two messages of the same two sides. */
typedef struct {
    near_t first;
    near_t second; /* has the same pair */
} two_t;

static void two_init(two_t *two, const char *const *env, size_t length)
{
    near_init(&two->first, env, length);
    two->second = two->first;
    near_match(&two->second, length, 0);
}

static void two_cleanup(two_t *two)
{
    near_unmatch(&two->second);
    near_cleanup(&two->first);
}

/* P1: A waits for its first send, B for its second receive: the first one is
 * moved by streams that wait for something else */
static void run_serves_others(const char *const *env)
{
    st_side_t *side;
    two_t two;
    int k;

    two_init(&two, env, LARGE);
    side = two.first.pair.side;
    for (k = 0; k < 10; ++k) {
        near_fill(&two.first, k);
        near_fill(&two.second, 100 + k);
        st_use(&side[ST_A], two.first.op[ST_A]);
        st_use(&side[ST_A], two.second.op[ST_A]);
        st_start(&side[ST_B], two.first.op[ST_B]);
        st_use(&side[ST_B], two.second.op[ST_B]);
        st_wait(&side[ST_B], two.first.op[ST_B]);
        st_sync(&side[ST_A]);
        st_sync(&side[ST_B]);
        near_check(&two.first, k);
        near_check(&two.second, 100 + k);
    }
    two_cleanup(&two);
}

ST_CASE(serves_others)
{
    run_serves_others((const char*[])NEAR_SMALL_SLOTS);
    run_serves_others(NULL);
}

/* One side's stream sleeps now, and has said so to whoever moves something */
static ucs_gstream_notify_t *await_sleep(const st_side_t *side)
{
    const ucp_st_direct_stream_t *direct = ucp_st_direct_queue(side->queue);
    ucs_gstream_notify_t *notify             = &direct->record->notify;

    while ((__atomic_load_n(&notify->sleepers, __ATOMIC_ACQUIRE) == 0) ||
           (__atomic_load_n(&direct->segment->sleepers, __ATOMIC_ACQUIRE) ==
            0)) {
        (void)sched_yield();
    }
    return notify;
}

/* A stream that sleeps when the other side begins the use is called. One whose
 * sleep of a millisecond ends of itself just then has the use before the other
 * side looks for it, and is not called: as many uses more. */
static void run_sleeper(const char *const *env, size_t length, int sleeper)
{
    unsigned num_called = 0;
    ucs_gstream_notify_t *notify;
    st_side_t *side;
    uint32_t calls;
    near_t near;
    int k;

    near_init(&near, env, length);
    side = near.pair.side;
    for (k = 0; (num_called < SLEEPS) && (k < 10 * SLEEPS); ++k) {
        near_fill(&near, k);
        st_use(&side[sleeper], near.op[sleeper]);
        notify  = await_sleep(&side[sleeper]);
        calls = __atomic_load_n(&notify->calls, __ATOMIC_ACQUIRE);
        st_use(&side[!sleeper], near.op[!sleeper]);
        st_sync(&side[sleeper]);
        st_sync(&side[!sleeper]);
        num_called += __atomic_load_n(&notify->calls, __ATOMIC_ACQUIRE) > calls;
        near_check(&near, k);
    }
    CU_ASSERT_EQUAL(num_called, SLEEPS);
    near_cleanup(&near);
}

ST_CASE(sleeper)
{
    const char *const slots[] = NEAR_SMALL_SLOTS;

    if (st_needs_host()) {
        return; /* others sleep on nothing */
    }
    run_sleeper(slots, SHORT, ST_B);
    run_sleeper(slots, LARGE, ST_A);
    run_sleeper(slots, LARGE, ST_B);
    run_sleeper(NULL, LARGE, ST_A);
    run_sleeper(NULL, LARGE, ST_B);
}

/* Bytes that a peer's thread is woken by come here for once */
static int notify_bytes(ucp_st_direct_peer_t *peer, ucp_st_peer_h handle)
{
    int own = peer->notify_fd;
    int fds[2];
    char buffer[8];
    ssize_t length;

    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_NONBLOCK), 0);
    peer->notify_fd = fds[1];
    ucp_st_direct_dev_notify(handle);
    peer->notify_fd = own;
    length          = read(fds[0], buffer, sizeof(buffer));
    close(fds[0]);
    close(fds[1]);
    return (length < 0) ? 0 : (int)length;
}

/* A thread that looks again anyway is not woken. It says so until its last look
 * before it sleeps. */
ST_CASE(looking)
{
    ucp_st_direct_segment_t *segment;
    ucp_st_direct_peer_t *peer;
    near_t near;

    near_init(&near, NULL, SHORT);
    near_fill(&near, 1);
    st_use(&near.pair.side[ST_A], near.op[ST_A]);
    st_use(&near.pair.side[ST_B], near.op[ST_B]);
    st_sync(&near.pair.side[ST_B]);
    st_sync(&near.pair.side[ST_A]);
    near_check(&near, 1);

    peer    = ucp_st_direct_peer(near.op[ST_A]->peer);
    segment = peer->map->address;
    while (__atomic_load_n(&segment->is_looking, __ATOMIC_ACQUIRE)) {
        (void)sched_yield();
    }
    CU_ASSERT_EQUAL(notify_bytes(peer, near.op[ST_A]->peer), 1);
    __atomic_store_n(&segment->is_looking, 1, __ATOMIC_RELEASE);
    CU_ASSERT_EQUAL(notify_bytes(peer, near.op[ST_A]->peer), 0);
    /* Woken otherwise it looks, and then sleeps */
    ucp_st_direct_dev_wake(near.pair.side[ST_B].worker);
    while (__atomic_load_n(&segment->is_looking, __ATOMIC_ACQUIRE)) {
        (void)sched_yield();
    }
    near_cleanup(&near);
}

ST_SUITE("st_direct_progress")
