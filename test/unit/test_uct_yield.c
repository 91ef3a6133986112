/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_uct_yield.c - the transport's calls, which UCX makes with its worker's
 * lock: none of them gives the processor away, or sleeps, as other threads spin
 * for that lock. The program's own functions stand in front of those that do.
 */
#include "st_cunit.h"
#include "st_real.h"
#include "uct_region.h"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The sanitizers stand in front of these functions themselves */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define YIELD_SANITIZED 1
#else
#define YIELD_SANITIZED 0
#endif

#define AM_ID  5
#define LENGTH 4096
#define ROUNDS 200
#define MANY   5000 /* more messages than there is room for */
#define IDLE   5000 /* calls while nothing is under way */
#define EPS    50

/* Of this thread */
static __thread int      is_inside;   /* a call of the transport */
static __thread unsigned violations;
static __thread const char *violator; /* the first one */

/* Inside the call it must not happen */
#define INSIDE(_call) \
    ({ \
        __typeof__(_call) _result; \
        is_inside = 1; \
        _result   = (_call); \
        is_inside = 0; \
        _result; \
    })

#define INSIDE_VOID(_call) \
    do { \
        is_inside = 1; \
        (_call); \
        is_inside = 0; \
    } while (0)

/* libfabric's sockets provider waits for a connection when it is first used */
static int is_sockets(void)
{
    const char *nic = getenv("ST_NIC");

    return (nic != NULL) && !strcmp(nic, "sockets");
}

#if !YIELD_SANITIZED

static void look(const char *name)
{
    if (is_inside) {
        violator = (violations++ == 0) ? name : violator;
    }
}

int sched_yield(void)
{
    look("sched_yield");
    return ST_REAL(sched_yield)();
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    look("nanosleep");
    return ST_REAL(nanosleep)(time, left);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                    struct timespec *left)
{
    look("clock_nanosleep");
    return ST_REAL(clock_nanosleep)(clock, flags, time, left);
}

int usleep(useconds_t usec)
{
    look("usleep");
    return ST_REAL(usleep)(usec);
}

/* A question that does not wait is none */
int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    if ((timeout != 0) && !is_sockets()) {
        look("poll");
    }
    return ST_REAL(poll)(fds, count, timeout);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
          const sigset_t *mask)
{
    if ((timeout == NULL) || (timeout->tv_sec != 0) ||
        (timeout->tv_nsec != 0)) {
        look("ppoll");
    }
    return ST_REAL(ppoll)(fds, count, timeout, mask);
}

int select(int count, fd_set *in, fd_set *out, fd_set *other,
           struct timeval *timeout)
{
    if ((timeout == NULL) || (timeout->tv_sec != 0) ||
        (timeout->tv_usec != 0)) {
        look("select");
    }
    return ST_REAL(select)(count, in, out, other, timeout);
}

int epoll_wait(int epfd, struct epoll_event *events, int count, int timeout)
{
    if (timeout != 0) {
        look("epoll_wait");
    }
    return ST_REAL(epoll_wait)(epfd, events, count, timeout);
}

/* Of the futex calls, those that wait; of the others' arguments, all that there
 * can be */
long syscall(long number, ...)
{
    long args[6];
    va_list ap;
    int i;

    va_start(ap, number);
    for (i = 0; i < 6; ++i) {
        args[i] = va_arg(ap, long);
    }
    va_end(ap);
    if ((number == SYS_futex) &&
        (((args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT) ||
         ((args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET))) {
        look("futex");
    }
    if (number == SYS_sched_yield) {
        look("syscall(sched_yield)");
    }
    return ST_REAL(syscall)(number, args[0], args[1], args[2], args[3],
                            args[4], args[5]);
}

#endif

static uint64_t num_messages;

static ucs_status_t count_message(void *arg, void *data, size_t length,
                                  unsigned flags)
{
    ++num_messages;
    return UCS_OK;
}

static size_t pack(void *dest, void *arg)
{
    memset(dest, 1, 1000);
    return 1000;
}

static void unpack(void *arg, const void *data, size_t length)
{
}

static ucs_status_t never(uct_pending_req_t *req)
{
    return UCS_ERR_NO_RESOURCE;
}

static void progress(uct_pair_t *pair)
{
    (void)INSIDE(uct_worker_progress(pair->worker));
}

static void check_none(void)
{
    CU_ASSERT(violations == 0);
    if (violations != 0) {
        printf("  %u times, first %s\n", violations, violator);
    }
}

/* Progress until it was called */
static void wait_done(uct_done_t *done, uct_pair_t *pair)
{
    while (done->calls == 0) {
        progress(pair);
    }
    CU_ASSERT(done->status == UCS_OK);
}

static void flush(uct_pair_t *pair, uct_ep_h ep)
{
    ucs_status_t status;

    do {
        status = INSIDE(uct_ep_flush(ep, 0, NULL));
        progress(pair);
    } while ((status == UCS_INPROGRESS) || (status == UCS_ERR_NO_RESOURCE));
    CU_ASSERT(status == UCS_OK);
}

/* One operation of each kind */
static void run_kinds(uct_pair_t *pair, const uct_region_t *region)
{
    static uint8_t buffer[LENGTH];
    uct_iov_t iov   = {.buffer = buffer, .length = LENGTH, .count = 1};
    uct_ep_h ep     = pair->a.peer;
    uint64_t remote = uct_region_at(region, 0);
    uct_rkey_t rkey = region->rkey.rkey;
    uint64_t old;
    uct_done_t done;

    uct_done_init(&done, 4);
    CU_ASSERT(INSIDE(uct_ep_put_zcopy(ep, &iov, 1, remote, rkey, &done.comp)) ==
              UCS_INPROGRESS);
    CU_ASSERT(INSIDE(uct_ep_get_zcopy(ep, &iov, 1, remote, rkey, &done.comp)) ==
              UCS_INPROGRESS);
    CU_ASSERT(INSIDE(uct_ep_get_bcopy(ep, unpack, NULL, 24, remote, rkey,
                                      &done.comp)) == UCS_INPROGRESS);
    CU_ASSERT(INSIDE(uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, &old,
                                           remote, rkey, &done.comp)) ==
              UCS_INPROGRESS);
    CU_ASSERT(INSIDE(uct_ep_put_short(ep, buffer, 8, remote, rkey)) == UCS_OK);
    CU_ASSERT(INSIDE(uct_ep_put_bcopy(ep, pack, NULL, remote, rkey)) == 1000);
    CU_ASSERT(INSIDE(uct_ep_am_short(ep, AM_ID, 1, "abc", 3)) == UCS_OK);
    CU_ASSERT(INSIDE(uct_ep_am_bcopy(ep, AM_ID, pack, NULL, 0)) == 1000);
    CU_ASSERT(INSIDE(uct_ep_fence(ep, 0)) == UCS_OK);
    CU_ASSERT(INSIDE(uct_ep_check(ep, 0, NULL)) == UCS_OK);
    CU_ASSERT(INSIDE(uct_ep_am_short(pair->b.peer, AM_ID, 1, "abc", 3)) ==
              UCS_OK);
    wait_done(&done, pair);
}

/* More than fits, so that calls are refused, and what waits is added */
static void run_flood(uct_pair_t *pair)
{
    uct_pending_req_t req = {.func = never};
    ucs_status_t status   = UCS_OK;
    unsigned i;

    for (i = 0; (i < MANY) && (status == UCS_OK); ++i) {
        status = INSIDE(uct_ep_am_short(pair->a.peer, AM_ID, 1, "abc", 3));
    }
    CU_ASSERT((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE));
    if ((status == UCS_ERR_NO_RESOURCE) &&
        (INSIDE(uct_ep_pending_add(pair->a.peer, &req, 0)) == UCS_OK)) {
        progress(pair);
        INSIDE_VOID(uct_ep_pending_purge(pair->a.peer, NULL, NULL));
    }
    flush(pair, pair->a.peer);
}

static void open_pair(uct_pair_t *pair)
{
    violations = 0;
    violator   = NULL;
    CU_ASSERT_FATAL(uct_pair_create(pair, NULL) == 0);
    CU_ASSERT(uct_iface_set_am_handler(pair->a.iface, AM_ID, count_message,
                                       NULL, 0) == UCS_OK);
    CU_ASSERT(uct_iface_set_am_handler(pair->b.iface, AM_ID, count_message,
                                       NULL, 0) == UCS_OK);
}

#define PAIR_CASE(_name) \
    ST_CASE_WITH(_name, uct_pair_t, pair, open_pair(pair), \
                 uct_pair_destroy(pair))

/* Otherwise no case tells anything */
ST_CASE_IF(looks, !YIELD_SANITIZED, "the sanitizer stands in front of sleeps")
{
    struct timespec time = {0};

    violations = 0;
    (void)sched_yield();
    CU_ASSERT(violations == 0);
    (void)INSIDE(sched_yield());
    (void)INSIDE(nanosleep(&time, NULL));
    (void)INSIDE(poll(NULL, 0, 0));
    (void)INSIDE(poll(NULL, 0, 1));
    CU_ASSERT(violations == (is_sockets() ? 2 : 3));
}

PAIR_CASE(traffic)
{
    uct_region_t region;
    unsigned i;

    uct_region_open(&region, pair, LENGTH);
    for (i = 0; i < ROUNDS; ++i) {
        run_kinds(pair, &region);
    }
    flush(pair, pair->a.peer);
    flush(pair, pair->b.peer);
    for (i = 0; i < 5; ++i) {
        run_flood(pair);
    }
    uct_region_close(&region);
    check_none();
}

/* Calls that find nothing to do, for long */
PAIR_CASE(idle)
{
    unsigned i;

    for (i = 0; i < IDLE; ++i) {
        progress(pair);
    }
    CU_ASSERT(INSIDE(uct_ep_am_short(pair->a.peer, AM_ID, 1, "abc", 3)) ==
              UCS_OK);
    for (i = 0; i < IDLE; ++i) {
        progress(pair);
    }
    check_none();
}

/* The end of an endpoint whose operations are under way */
PAIR_CASE(destroy)
{
    static uint8_t buffer[LENGTH];
    uct_iov_t iov = {.buffer = buffer, .length = LENGTH, .count = 1};
    uct_region_t region;
    uct_done_t done;
    uct_ep_h ep;
    unsigned i;

    uct_region_open(&region, pair, LENGTH);
    for (i = 0; i < EPS; ++i) {
        CU_ASSERT_FATAL(INSIDE(uct_pair_connect(pair->a.iface, pair->b.dev_addr,
                                                pair->b.iface_addr, &ep)) ==
                        UCS_OK);
        uct_done_init(&done, 2);
        CU_ASSERT(INSIDE(uct_ep_put_zcopy(ep, &iov, 1, uct_region_at(&region,
                                                                     0),
                                          region.rkey.rkey, &done.comp)) ==
                  UCS_INPROGRESS);
        CU_ASSERT(INSIDE(uct_ep_get_zcopy(ep, &iov, 1, uct_region_at(&region,
                                                                     0),
                                          region.rkey.rkey, &done.comp)) ==
                  UCS_INPROGRESS);
        CU_ASSERT(INSIDE(uct_ep_am_short(ep, AM_ID, 1, "abc", 3)) == UCS_OK);
        INSIDE_VOID(uct_ep_destroy(ep));
        progress(pair);
    }
    uct_region_close(&region);
    check_none();
}

ST_SUITE("uct_yield")
