/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fab_many.c - many threads, endpoints and peers at once. */
#include "fab_work.h"

#include <sched.h>
#include <stdlib.h>

#define THREADS 4


typedef struct worker {
    fab_side_t *me;
    unsigned   number;
} worker_t;

/* Threads on one endpoint; each one's words are its own, completions are
 * counted, as any thread may reap another's. */
static void *write_often(void *arg)
{
    enum { COUNT = 300 };
    worker_t *worker = arg;
    fab_side_t *me   = worker->me;
    uint64_t i;
    ssize_t ret;

    fab_adopt(me);
    for (i = 1; i <= COUNT; ++i) {
        do {
            ret = fi_inject_write(me->ep, &i, 8, me->peer,
                                  me->theirs.base + (64 * worker->number),
                                  me->theirs.key);
            if (ret == -FI_EAGAIN) {
                fi_cq_read(me->tx.cq, NULL, 0);
                sched_yield();
            }
        } while (ret == -FI_EAGAIN);
        FAB_EQUAL(ret, 0);
    }
    fab_adopt(NULL);
    return (void*)(uintptr_t)COUNT;
}

static void run_workers(fab_side_t *me, void *(*work)(void *arg))
{
    worker_t workers[THREADS];
    unsigned i;

    for (i = 0; i < THREADS; ++i) {
        workers[i].me     = me;
        workers[i].number = i;
    }
    fab_threads(THREADS, work, workers, sizeof(workers[0]));
}

FAB_CASE(one_endpoint)
{
    run_workers(me, write_often);
    fab_count(me, me->landed, THREADS * 300);
    fab_barrier(me);
}

/* Threads with a queue for all, sending and receiving by turns */
static void *exchange_often(void *arg)
{
    enum { COUNT = 100 };
    worker_t *worker = arg;
    fab_side_t *me   = worker->me;
    uint64_t tag     = worker->number;
    uint64_t out, in[COUNT];
    unsigned i;

    fab_adopt(me);
    for (i = 0; i < COUNT; ++i) {
        in[i] = ~0ull;
        while (fi_trecv(me->ep, &in[i], 8, NULL, me->peer, tag, 0, NULL) ==
               -FI_EAGAIN) {
            sched_yield();
        }
        out = fab_tint(me->index, (tag * COUNT) + i);
        while (fi_tinject(me->ep, &out, 8, me->peer, tag) == -FI_EAGAIN) {
            sched_yield();
        }
    }
    for (i = 0; i < COUNT; ++i) {
        while (__atomic_load_n(&in[i], __ATOMIC_ACQUIRE) == ~0ull) {
            fi_cntr_read(me->recv);
            sched_yield();
        }
        FAB_EQUAL(in[i], fab_tint(!me->index, (tag * COUNT) + i));
    }
    fab_adopt(NULL);
    return NULL;
}

FAB_CASE(tags_of_threads)
{
    run_workers(me, exchange_often);
    fab_count(me, me->recv, THREADS * 100);
    fab_barrier(me);
}

/* Endpoints of one domain have addresses, queues of messages and completions
 * of their own */
FAB_CASE(several_endpoints)
{
    enum { COUNT = 8 };
    char names[COUNT][FAB_NAME_MAX], theirs[COUNT][FAB_NAME_MAX];
    struct fid_ep *eps[COUNT];
    fi_addr_t addrs[COUNT];
    uint64_t out, in[COUNT];
    size_t length;
    unsigned i;

    for (i = 0; i < COUNT; ++i) {
        eps[i] = fab_endpoint(me);
        length = FAB_NAME_MAX;
        FAB_EQUAL(fi_getname(&eps[i]->fid, names[i], &length), 0);
        FAB_MUST(me, fi_recv(eps[i], &in[i], 8, NULL, FI_ADDR_UNSPEC, &in[i]));
    }
    fab_swap(me, names, theirs, sizeof(names));
    for (i = 0; i < COUNT; ++i) {
        FAB_EQUAL(fi_av_insert(me->av, theirs[i], 1, &addrs[i], 0, NULL), 1);
    }
    for (i = 0; i < COUNT; ++i) {
        out = fab_tint(me->index, i);
        FAB_MUST(me, fi_inject(eps[COUNT - 1 - i], &out, 8, addrs[i]));
    }
    fab_entries(me, &me->rx, COUNT);
    for (i = 0; i < COUNT; ++i) {
        FAB_EQUAL(in[i], fab_tint(!me->index, i));
    }
    fab_barrier(me);
    for (i = 0; i < COUNT; ++i) {
        FAB_EQUAL(fi_close(&eps[i]->fid), 0);
    }
}

/* Endpoints come and go while others talk */
FAB_CASE(churn)
{
    uint64_t out, in;
    unsigned i;

    for (i = 0; i < 30; ++i) {
        struct fid_ep *ep = fab_endpoint(me);

        FAB_MUST(me, fi_trecv(me->ep, &in, 8, NULL, me->peer, i, 0, NULL));
        out = fab_tint(me->index, i);
        FAB_MUST(me, fi_tinject(ep, &out, 8, me->self, 1000));
        FAB_MUST(me, fi_tinject(me->ep, &out, 8, me->peer, i));
        fab_entry(me, &me->rx);
        FAB_EQUAL(in, fab_tint(!me->index, i));
        FAB_MUST(me, fi_trecv(me->ep, &in, 8, NULL, FI_ADDR_UNSPEC, 1000, 0,
                              NULL));
        fab_entry(me, &me->rx);
        FAB_EQUAL(fi_close(&ep->fid), 0);
    }
}

/* Both directions, all kinds of operations, threads and triggers at once */
static void *mixed(void *arg)
{
    enum { COUNT = 60 };
    worker_t *worker         = arg;
    fab_side_t *me           = worker->me;
    fab_work_t work;
    struct fid_cntr *trigger = NULL, *done;
    uint64_t state           = fab_seed() + worker->number;
    uint64_t one             = 1;
    size_t length;
    uint8_t *data            = fab_alloc(100000);
    uint64_t i, offset       = 4096 + (worker->number * 100000);

    fab_adopt(me);
    trigger = fab_cntr(me);
    done    = fab_cntr(me);
    for (i = 1; i <= COUNT; ++i) {
        length = 1 + (fab_random(&state) % ((i % 8) ? 2500 : 100000));
        fab_fill(data, length, fab_tint(me->index, i));
        fab_work_write(me, &work, data, length, fab_there(me, offset));
        while (fab_queue(me, &work, fab_at(trigger, i, done)) == -FI_EAGAIN) {
            sched_yield();
        }
        while (fi_inject_atomic(me->ep, &one, 1, me->peer, me->theirs.base,
                                me->theirs.key, FI_UINT64, FI_SUM) ==
               -FI_EAGAIN) {
            sched_yield();
        }
        FAB_EQUAL(fi_cntr_add(trigger, 1), 0);
        while (fi_cntr_read(done) < i) {
            FAB_REQUIRE(fi_cntr_readerr(done) == 0);
            fi_cq_read(me->tx.cq, NULL, 0);
            sched_yield();
        }
    }
    fab_cntr_close(trigger);
    fab_cntr_close(done);
    free(data);
    fab_adopt(NULL);
    return NULL;
}

static const fab_config_t large = {.window = FAB_MIB, .selective = 1};

FAB_CASE(everything, .config = &large)
{
    uint64_t total;

    run_workers(me, mixed);
    fab_count(me, me->landed, THREADS * 60 * 2);
    total = fab_load(me->window);
    FAB_EQUAL(total, THREADS * 60);
    fab_barrier(me);
}

FAB_SUITE("fab_many")
