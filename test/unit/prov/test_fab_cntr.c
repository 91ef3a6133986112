/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fab_cntr.c - counters. */
#include "fab.h"

#include <pthread.h>
#include <unistd.h>

#define CNTR_SUCCESS_MAX ((1ull << 48) - 1)
#define CNTR_FAILURE_MAX ((1ull << 7) - 1)


FAB_CASE(add_and_set)
{
    struct fid_cntr *cntr = fab_cntr(me);

    FAB_EQUAL(fi_cntr_read(cntr), 0);
    FAB_EQUAL(fi_cntr_readerr(cntr), 0);
    FAB_EQUAL(fi_cntr_add(cntr, 5), 0);
    fab_reads(me, cntr, 5);
    FAB_EQUAL(fi_cntr_add(cntr, 0), 0);
    FAB_EQUAL(fi_cntr_add(cntr, 37), 0);
    fab_reads(me, cntr, 42);
    FAB_EQUAL(fi_cntr_set(cntr, 7), 0);
    fab_reads(me, cntr, 7);
    FAB_EQUAL(fi_cntr_set(cntr, 0), 0);
    fab_reads(me, cntr, 0);
    FAB_EQUAL(fi_cntr_readerr(cntr), 0);
    fab_cntr_close(cntr);
}

FAB_CASE(failures)
{
    struct fid_cntr *cntr = fab_cntr(me);

    FAB_EQUAL(fi_cntr_adderr(cntr, 3), 0);
    fab_count_errors(me, cntr, 3);
    FAB_EQUAL(fi_cntr_read(cntr), 0);
    FAB_EQUAL(fi_cntr_seterr(cntr, 0), 0);
    FAB_EQUAL(fi_cntr_add(cntr, 1), 0);
    fab_reads(me, cntr, 1);
    FAB_EQUAL(fi_cntr_readerr(cntr), 0);
    fab_cntr_close(cntr);
}

/* 48 and 7 bits */
FAB_CASE(width, .sockets = "sockets counts with 32 bits")
{
    struct fid_cntr *cntr = fab_cntr(me);

    FAB_EQUAL(fi_cntr_set(cntr, CNTR_SUCCESS_MAX), 0);
    fab_reads(me, cntr, CNTR_SUCCESS_MAX);
    FAB_CHECK(fi_cntr_add(cntr, CNTR_SUCCESS_MAX + 1) != 0);
    FAB_CHECK(fi_cntr_set(cntr, CNTR_SUCCESS_MAX + 1) != 0);
    FAB_CHECK(fi_cntr_adderr(cntr, CNTR_FAILURE_MAX + 1) != 0);
    FAB_EQUAL(fi_cntr_adderr(cntr, CNTR_FAILURE_MAX), 0);
    fab_count_errors(me, cntr, CNTR_FAILURE_MAX);
    FAB_EQUAL(fi_cntr_read(cntr), CNTR_SUCCESS_MAX);
    fab_cntr_close(cntr);
}

typedef struct waiter {
    fab_side_t      *me;
    struct fid_cntr *cntr;
    uint64_t        value;
    int             ret;
} waiter_t;

static void *wait_for_it(void *arg)
{
    waiter_t *waiter = arg;

    fab_adopt(waiter->me);
    waiter->ret = fi_cntr_wait(waiter->cntr, waiter->value, -1);
    return NULL;
}

/* A thread sleeps until another one adds */
FAB_CASE(wait_wakes)
{
    waiter_t waiter = {.me = me, .cntr = fab_cntr(me), .value = 10, .ret = 1};
    pthread_t thread;
    unsigned i;

    FAB_REQUIRE(pthread_create(&thread, NULL, wait_for_it, &waiter) == 0);
    for (i = 0; i < 10; ++i) {
        usleep(1000);
        FAB_EQUAL(fi_cntr_add(waiter.cntr, 1), 0);
    }
    pthread_join(thread, NULL);
    FAB_EQUAL(waiter.ret, 0);
    fab_cntr_close(waiter.cntr);
}

/* An error ends the wait of a value that never comes */
FAB_CASE(wait_sees_failure,
         .sockets = "sockets' wait is not ended by a failure")
{
    waiter_t waiter = {.me = me, .cntr = fab_cntr(me), .value = 10, .ret = 1};
    pthread_t thread;

    FAB_REQUIRE(pthread_create(&thread, NULL, wait_for_it, &waiter) == 0);
    usleep(10000);
    FAB_EQUAL(fi_cntr_adderr(waiter.cntr, 1), 0);
    pthread_join(thread, NULL);
    FAB_EQUAL(waiter.ret, -FI_EAVAIL);
    FAB_EQUAL(fi_cntr_readerr(waiter.cntr), 1); /* What was told can be read */
    fab_cntr_close(waiter.cntr);
}

FAB_CASE(wait_times_out,
         .sockets = "sockets returns at once from a wait with a time-out")
{
    struct fid_cntr *cntr = fab_cntr(me);
    uint64_t start        = fab_now();

    FAB_EQUAL(fi_cntr_wait(cntr, 1, 20), -FI_ETIMEDOUT);
    FAB_CHECK(fab_now() - start >= 19000000ull);
    FAB_EQUAL(fi_cntr_add(cntr, 1), 0);
    FAB_EQUAL(fi_cntr_wait(cntr, 1, 20000), 0);
    FAB_EQUAL(fi_cntr_wait(cntr, 0, 0), 0);
    fab_cntr_close(cntr);
}

/* A sleeping wait for what the peer does */
FAB_CASE(wait_remote)
{
    uint64_t word = 1;
    unsigned i;

    for (i = 1; i <= 20; ++i) {
        if ((i % 2) == (unsigned)me->index) {
            FAB_MUST(me, fi_inject_write(me->ep, &word, 8, me->peer,
                                         me->theirs.base, me->theirs.key));
        } else {
            FAB_EQUAL(fi_cntr_wait(me->landed, (i + 1) / 2, -1), 0);
        }
    }
    fab_barrier(me);
}

typedef struct adder {
    fab_side_t      *me;
    struct fid_cntr *cntr;
    unsigned        count;
} adder_t;

static void *add_often(void *arg)
{
    adder_t *adder = arg;
    unsigned i;

    fab_adopt(adder->me);
    for (i = 0; i < adder->count; ++i) {
        FAB_EQUAL(fi_cntr_add(adder->cntr, 1), 0);
    }
    return NULL;
}

FAB_CASE(many_adders)
{
    enum { THREADS = 4, COUNT = 2000 };
    adder_t adder = {.me = me, .cntr = fab_cntr(me), .count = COUNT};
    pthread_t threads[THREADS];
    unsigned i;

    for (i = 0; i < THREADS; ++i) {
        FAB_REQUIRE(pthread_create(&threads[i], NULL, add_often, &adder) == 0);
    }
    FAB_EQUAL(fi_cntr_wait(adder.cntr, THREADS * COUNT, -1), 0);
    for (i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
    }
    fab_reads(me, adder.cntr, THREADS * COUNT);
    fab_cntr_close(adder.cntr);
}

/* Each kind of operation counts at its counter only */
FAB_CASE(endpoint_counters)
{
    uint64_t out = 1, in = 0;

    FAB_MUST(me, fi_recv(me->ep, &in, 8, NULL, FI_ADDR_UNSPEC, NULL));
    fab_barrier(me);
    FAB_MUST(me, fi_send(me->ep, &out, 8, NULL, me->peer, NULL));
    fab_count(me, me->send, 1);
    fab_count(me, me->recv, 1);
    FAB_MUST(me, fi_write(me->ep, &out, 8, NULL, me->peer, me->theirs.base,
                          me->theirs.key, NULL));
    fab_count(me, me->write, 1);
    FAB_MUST(me, fi_read(me->ep, &in, 8, NULL, me->peer, me->theirs.base,
                         me->theirs.key, NULL));
    fab_count(me, me->read, 1);
    FAB_MUST(me, fi_atomic(me->ep, &out, 1, NULL, me->peer, me->theirs.base,
                           me->theirs.key, FI_UINT64, FI_SUM, NULL));
    fab_count(me, me->write, 2);
    FAB_MUST(me, fi_fetch_atomic(me->ep, &out, 1, NULL, &in, NULL, me->peer,
                                 me->theirs.base, me->theirs.key, FI_UINT64,
                                 FI_SUM, NULL));
    fab_count(me, me->read, 2);
    fab_entries(me, &me->tx, 5);
    fab_entries(me, &me->rx, 1);
    fab_linger(me);
    FAB_EQUAL(fi_cntr_read(me->send), 1);
    FAB_EQUAL(fi_cntr_read(me->recv), 1);
    FAB_EQUAL(fi_cntr_read(me->write), 2);
    FAB_EQUAL(fi_cntr_read(me->read), 2);
    fab_barrier(me);
}

/* An endpoint with a counter of remote writes, and a region of its own */
typedef struct counted {
    struct fid_ep   *ep;
    struct fid_cntr *cntr;
    struct fid_mr   *mr;
    uint64_t        word;
    char            name[FAB_NAME_MAX];
} counted_t;

static void counted_open(fab_side_t *me, counted_t *counted)
{
    size_t length = FAB_NAME_MAX;

    counted->cntr = fab_cntr(me);
    counted->word = 0;
    FAB_REQUIRE(fi_endpoint(me->domain, me->info, &counted->ep, NULL) == 0);
    FAB_EQUAL(fi_ep_bind(counted->ep, &me->tx.cq->fid, FI_TRANSMIT), 0);
    FAB_EQUAL(fi_ep_bind(counted->ep, &me->rx.cq->fid, FI_RECV), 0);
    FAB_EQUAL(fi_ep_bind(counted->ep, &me->av->fid, 0), 0);
    FAB_EQUAL(fi_ep_bind(counted->ep, &counted->cntr->fid, FI_REMOTE_WRITE),
              0);
    FAB_EQUAL(fi_enable(counted->ep), 0);
    FAB_EQUAL(fi_getname(&counted->ep->fid, counted->name, &length), 0);
    FAB_EQUAL(fi_mr_reg(me->domain, &counted->word, 8, FI_REMOTE_WRITE, 0, 66,
                        0, &counted->mr, NULL), 0);
    FAB_EQUAL(fi_mr_bind(counted->mr, &counted->ep->fid, 0), 0);
    FAB_EQUAL(fi_mr_enable(counted->mr), 0);
}

/* Counters of remote writes count at regions; at endpoints they never do */
FAB_CASE(endpoint_remote_write,
         .sockets = "sockets counts remote writes at endpoints, CXI does not")
{
    char theirs[FAB_NAME_MAX];
    uint64_t word = 1;
    counted_t counted = {0};
    fi_addr_t to;

    counted_open(me, &counted);
    fab_swap(me, counted.name, theirs, sizeof(theirs));
    FAB_EQUAL(fi_av_insert(me->av, theirs, 1, &to, 0, NULL), 1);
    FAB_MUST(me, fi_write(me->ep, &word, 8, NULL, to, 0, 66, NULL));
    fab_entry(me, &me->tx);
    fab_word(me, &counted.word, 1);
    fab_barrier(me);
    fab_linger(me);
    FAB_EQUAL(fi_cntr_read(counted.cntr), 0);
    FAB_EQUAL(fi_close(&counted.mr->fid), 0);
    FAB_EQUAL(fi_close(&counted.ep->fid), 0);
    fab_cntr_close(counted.cntr);
}

FAB_CASE(busy, .sockets = "sockets lets busy objects be closed")
{
    FAB_EQUAL(fi_close(&me->landed->fid), -FI_EBUSY);
    FAB_EQUAL(fi_close(&me->write->fid), -FI_EBUSY);
    FAB_EQUAL(fi_close(&me->tx.cq->fid), -FI_EBUSY);
    FAB_EQUAL(fi_close(&me->av->fid), -FI_EBUSY);
    FAB_EQUAL(fi_close(&me->domain->fid), -FI_EBUSY);
    FAB_EQUAL(fi_close(&me->ep->fid), -FI_EBUSY); /* it has a region */
}

FAB_CASE(busy_fabric, .sockets = "sockets lets busy objects be closed",
         .cxi = "cxi frees a fabric that has domains")
{
    FAB_EQUAL(fi_close(&me->fabric->fid), -FI_EBUSY);
}

FAB_SUITE("fab_cntr")
