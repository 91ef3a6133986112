/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fab_dwq.c - deferred work: when it fires, what it counts. */
#include "fab_work.h"

#include <stdlib.h>
#include <string.h>

#define SLOT 64


/* Counters of a party's deferred work */
typedef struct chain {
    struct fid_cntr *trigger;
    struct fid_cntr *done;
    fab_work_t      *works;
} chain_t;

static void chain_open(fab_side_t *me, chain_t *chain, size_t works)
{
    chain->trigger = fab_cntr(me);
    chain->done    = fab_cntr(me);
    chain->works   = fab_works(me, works);
}

static void chain_close(fab_side_t *me, chain_t *chain)
{
    fab_barrier(me);
    fab_cntr_close(chain->trigger);
    fab_cntr_close(chain->done);
    free(chain->works);
}

/* Hand over the work of a number */
static void chain_queue(fab_side_t *me, chain_t *chain, size_t i,
                        uint64_t threshold)
{
    FAB_EQUAL(fab_queue(me, &chain->works[i],
                        fab_at(chain->trigger, threshold, chain->done)), 0);
}

static void fire(struct fid_cntr *trigger, uint64_t value)
{
    FAB_EQUAL(fi_cntr_add(trigger, value), 0);
}

static uint64_t word_at(const fab_side_t *me, size_t offset)
{
    return fab_load(me->window + offset);
}

FAB_CASE(write_at_threshold)
{
    uint8_t out[SLOT];
    chain_t chain;

    chain_open(me, &chain, 1);
    fab_fill(out, SLOT, fab_tint(me->index, 0));
    fab_work_write(me, chain.works, out, SLOT, fab_there(me, 128));
    chain_queue(me, &chain, 0, 2);
    fire(chain.trigger, 1);
    fab_barrier(me);
    fab_linger(me);
    FAB_EQUAL(word_at(me, 128), 0);
    FAB_EQUAL(fi_cntr_read(chain.done), 0);
    fab_barrier(me);
    fire(chain.trigger, 1);
    fab_count(me, chain.done, 1);
    fab_count(me, me->landed, 1);
    FAB_FILLED(me, me->window + 128, SLOT, 0);
    fab_count(me, chain.trigger, 2);
    FAB_EQUAL(fi_cntr_read(chain.trigger), 2);
    chain_close(me, &chain);
}

static const fab_config_t large = {.window = 2 * FAB_MIB};

/* The source is read when the operation fires, whatever its size */
FAB_CASE(write_sizes, .config = &large)
{
    static const size_t sizes[] = {
        1, 8, 192, 2048, 2049, 32768, 100000, 262144, 262145, FAB_MIB
    };
    uint8_t *out = fab_alloc(FAB_MIB);
    chain_t chain;
    size_t i, size;

    chain_open(me, &chain, ST_CUNIT_COUNT(sizes));
    for (i = 0; i < ST_CUNIT_COUNT(sizes); ++i) {
        size = sizes[i];
        fab_work_write(me, &chain.works[i], out, size, fab_there(me, 8));
        chain_queue(me, &chain, i, i + 1);
        fab_fill(out, size, fab_tint(me->index, i));
        fire(chain.trigger, 1);
        fab_count(me, chain.done, i + 1);
        fab_count(me, me->landed, i + 1);
        FAB_FILLED(me, me->window + 8, size, i);
        fab_barrier(me);
    }
    chain_close(me, &chain);
    free(out);
}

FAB_CASE(reads, .config = &large)
{
    uint8_t *in = fab_alloc(FAB_MIB);
    chain_t chain;

    chain_open(me, &chain, 2);
    fab_fill(me->window, FAB_MIB, fab_tint(me->index, 9));
    fab_barrier(me);
    memset(in, 0, 64);
    fab_work_read(me, &chain.works[0], in, 64, fab_there(me, 0));
    chain_queue(me, &chain, 0, 1);
    fire(chain.trigger, 1);
    fab_count(me, chain.done, 1);
    FAB_FILLED(me, in, 64, 9);
    fab_work_read(me, &chain.works[1], in, FAB_MIB, fab_there(me, 0));
    chain_queue(me, &chain, 1, 2);
    fire(chain.trigger, 1);
    fab_count(me, chain.done, 2);
    FAB_FILLED(me, in, FAB_MIB, 9);
    chain_close(me, &chain);
    free(in);
}

FAB_CASE(atomics)
{
    chain_t chain;

    chain_open(me, &chain, 3);
    fab_work_add(me, &chain.works[0], 100, fab_there(me, 0));
    chain_queue(me, &chain, 0, 1);
    fire(chain.trigger, 1);
    fab_count(me, chain.done, 1);
    fab_word(me, me->window, 100);
    fab_work_fetch_add(me, &chain.works[1], 11, fab_there(me, 0));
    chain_queue(me, &chain, 1, 2);
    fire(chain.trigger, 1);
    fab_count(me, chain.done, 2);
    FAB_EQUAL(chain.works[1].result, 100);
    fab_work_swap(me, &chain.works[2], 111, 7000, fab_there(me, 0));
    chain_queue(me, &chain, 2, 3);
    fire(chain.trigger, 1);
    fab_count(me, chain.done, 3);
    FAB_EQUAL(chain.works[2].result, 111);
    fab_barrier(me);
    FAB_EQUAL(word_at(me, 0), 7000);
    chain_close(me, &chain);
}

/* Deferred sends and receives without a threshold */
FAB_CASE(messages)
{
    uint64_t out[2] = {fab_tint(me->index, 1), fab_tint(me->index, 2)};
    uint64_t in[2]  = {0, 0};
    chain_t chain;
    struct fid_cntr *received;

    chain_open(me, &chain, 4);
    received = fab_cntr(me);
    fab_work_recv(me, &chain.works[0], &in[0], 8);
    FAB_EQUAL(fab_queue(me, &chain.works[0],
                        fab_at(chain.trigger, 0, received)), 0);
    fab_work_trecv(me, &chain.works[1], &in[1], 8, 0x77);
    FAB_EQUAL(fab_queue(me, &chain.works[1],
                        fab_at(chain.trigger, 0, received)), 0);
    fab_barrier(me);
    fab_work_send(me, &chain.works[2], &out[0], 8);
    chain_queue(me, &chain, 2, 1);
    fab_work_tsend(me, &chain.works[3], &out[1], 8, 0x77);
    chain_queue(me, &chain, 3, 2);
    fire(chain.trigger, 2);
    fab_count(me, received, 2);
    fab_count(me, chain.done, 2);
    FAB_EQUAL(in[0], fab_tint(!me->index, 1));
    FAB_EQUAL(in[1], fab_tint(!me->index, 2));
    fab_barrier(me);
    fab_cntr_close(received);
    chain_close(me, &chain);
}

/* A deferred send of any size to a receive that is there or not yet */
FAB_CASE(tagged_sizes)
{
    static const size_t sizes[] = {0, 1, 192, 2049, 20000, 100000, 400000};
    uint8_t *out = fab_alloc(400000), *in = fab_alloc(400000);
    chain_t chain;
    size_t i;

    chain_open(me, &chain, ST_CUNIT_COUNT(sizes));
    for (i = 0; i < ST_CUNIT_COUNT(sizes); ++i) {
        fab_work_tsend(me, &chain.works[i], out, sizes[i], i);
        chain_queue(me, &chain, i, i + 1);
        fab_fill(out, sizes[i], fab_tint(me->index, i));
        fire(chain.trigger, 1);
        FAB_MUST(me, fi_trecv(me->ep, in, 400000, NULL, me->peer, i, 0, NULL));
        FAB_EQUAL(fab_entry(me, &me->rx).len, sizes[i]);
        FAB_FILLED(me, in, sizes[i], i);
        fab_count(me, chain.done, i + 1);
    }
    chain_close(me, &chain);
    free(out);
    free(in);
}

FAB_CASE(out_of_order)
{
    static const uint64_t thresholds[] = {5, 1, 3, 2, 4};
    enum { COUNT = 5 };
    uint64_t values[COUNT];
    chain_t chain;
    unsigned i, k;

    chain_open(me, &chain, COUNT);
    for (i = 0; i < COUNT; ++i) {
        values[i] = 1 + i;
        fab_work_write(me, &chain.works[i], &values[i], 8,
                       fab_there(me, SLOT * i));
        chain_queue(me, &chain, i, thresholds[i]);
    }
    for (k = 1; k <= COUNT; ++k) {
        fire(chain.trigger, 1);
        fab_count(me, chain.done, k);
        fab_count(me, me->landed, k);
        fab_barrier(me);
        for (i = 0; i < COUNT; ++i) {
            FAB_EQUAL(word_at(me, SLOT * i),
                      (thresholds[i] <= k) ? 1 + i : 0);
        }
        FAB_EQUAL(fi_cntr_read(chain.done), k);
        fab_barrier(me);
    }
    chain_close(me, &chain);
}

FAB_CASE(already_met)
{
    uint64_t value = 3;
    chain_t chain;

    chain_open(me, &chain, 3);
    fab_work_write(me, &chain.works[0], &value, 8, fab_there(me, 0));
    chain_queue(me, &chain, 0, 0);
    fab_count(me, chain.done, 1);
    fire(chain.trigger, 5);
    fab_work_write(me, &chain.works[1], &value, 8, fab_there(me, 8));
    chain_queue(me, &chain, 1, 3);
    fab_count(me, chain.done, 2);
    fab_work_write(me, &chain.works[2], &value, 8, fab_there(me, 16));
    chain_queue(me, &chain, 2, 5);
    fab_count(me, chain.done, 3);
    fab_count(me, me->landed, 3);
    chain_close(me, &chain);
}

/* Setting a counter fires, and so does a step that passes the threshold */
FAB_CASE(set_and_overshoot)
{
    enum { COUNT = 100 };
    uint64_t value = 3;
    chain_t chain;
    unsigned i;

    chain_open(me, &chain, COUNT + 1);
    fab_work_write(me, &chain.works[COUNT], &value, 8, fab_there(me, 0));
    chain_queue(me, &chain, COUNT, 4);
    FAB_EQUAL(fi_cntr_set(chain.trigger, 4), 0);
    fab_count(me, chain.done, 1);
    FAB_EQUAL(fi_cntr_set(chain.trigger, 0), 0);
    for (i = 0; i < COUNT; ++i) {
        fab_work_write(me, &chain.works[i], &value, 8, fab_there(me, 0));
        chain_queue(me, &chain, i, i + 1);
    }
    fire(chain.trigger, 100000);
    fab_count(me, chain.done, COUNT + 1);
    fab_count(me, me->landed, COUNT + 1);
    chain_close(me, &chain);
}

FAB_CASE(count_work)
{
    struct fid_cntr *target = fab_cntr(me);
    chain_t chain;

    chain_open(me, &chain, 3);
    fab_work_count(&chain.works[0], FI_OP_CNTR_ADD, target, 5);
    FAB_EQUAL(fab_queue(me, &chain.works[0], fab_at(chain.trigger, 1, NULL)),
              0);
    fab_work_count(&chain.works[1], FI_OP_CNTR_SET, target, 100);
    FAB_EQUAL(fab_queue(me, &chain.works[1], fab_at(chain.trigger, 2, NULL)),
              0);
    fab_work_count(&chain.works[2], FI_OP_CNTR_ADD, target, 3);
    FAB_EQUAL(fab_queue(me, &chain.works[2], fab_at(chain.trigger, 3, NULL)),
              0);
    fire(chain.trigger, 1);
    fab_count(me, target, 5);
    fire(chain.trigger, 1);
    fab_count(me, target, 100);
    fire(chain.trigger, 1);
    fab_reads(me, target, 103);
    fab_cntr_close(target);
    chain_close(me, &chain);
}

/* trigger -> write -> completion -> atomic on one's own word */
FAB_CASE(chain_local)
{
    enum { ROUNDS = 50 };
    uint8_t out[SLOT];
    struct fid_cntr *words;
    chain_t chain;
    uint64_t k;

    chain_open(me, &chain, 2 * ROUNDS);
    words = fab_cntr(me);
    for (k = 1; k <= ROUNDS; ++k) {
        fab_work_write(me, &chain.works[2 * k - 2], out, SLOT,
                       fab_there(me, 1024));
        /* Else the completion says only that the target has got it */
        chain.works[2 * k - 2].op.rma.flags = FI_DELIVERY_COMPLETE;
        chain_queue(me, &chain, 2 * k - 2, k);
        fab_work_add(me, &chain.works[2 * k - 1], 1, fab_here(me, 0));
        FAB_EQUAL(fab_queue(me, &chain.works[2 * k - 1],
                            fab_at(chain.done, k, words)), 0);
    }
    for (k = 1; k <= ROUNDS; ++k) {
        fab_fill(out, SLOT, fab_tint(me->index, k));
        fire(chain.trigger, 1);
        fab_word(me, me->window, k);
        fab_barrier(me);
        FAB_FILLED(me, me->window + 1024, SLOT, k);
        fab_barrier(me);
    }
    fab_count(me, words, ROUNDS);
    fab_barrier(me);
    fab_cntr_close(words);
    chain_close(me, &chain);
}

/* A remote write counts at the region, which triggers the next write back: a
 * chain that goes back and forth with nobody's help after the first step */
FAB_CASE(chain_across)
{
    enum { ROUNDS = 100 };
    uint64_t value = 1;
    chain_t chain;
    uint64_t k;

    chain_open(me, &chain, ROUNDS);
    for (k = 1; k <= ROUNDS; ++k) {
        fab_work_write(me, &chain.works[k - 1], &value, 8,
                       fab_there(me, 8 * k));
        /* Party 0's first write is by its trigger; then each answers */
        FAB_EQUAL(fab_queue(me, &chain.works[k - 1],
                            ((me->index == 0) && (k == 1)) ?
                            fab_at(chain.trigger, 1, chain.done) :
                            fab_at(me->landed, k - (me->index == 0),
                                   chain.done)), 0);
    }
    fab_barrier(me);
    if (me->index == 0) {
        fire(chain.trigger, 1);
    }
    fab_count(me, me->landed, ROUNDS);
    fab_count(me, chain.done, ROUNDS);
    for (k = 1; k <= ROUNDS; ++k) {
        FAB_EQUAL(word_at(me, 8 * k), 1);
    }
    chain_close(me, &chain);
}

/* The same structure again and again, as its work is done */
FAB_CASE(reuse)
{
    enum { ROUNDS = 300 };
    chain_t chain;
    uint64_t k;

    chain_open(me, &chain, 1);
    for (k = 1; k <= ROUNDS; ++k) {
        fab_work_write(me, chain.works, &k, 8, fab_there(me, 0));
        FAB_EQUAL(FAB_POST(me, fab_queue(me, chain.works,
                                         fab_at(chain.trigger, k,
                                                chain.done))), 0);
        fire(chain.trigger, 1);
        fab_count(me, chain.done, k);
    }
    fab_count(me, me->landed, ROUNDS);
    FAB_EQUAL(word_at(me, 0), ROUNDS);
    chain_close(me, &chain);
}

/* Several threads trigger; each operation fires once */
typedef struct firing {
    fab_side_t      *me;
    struct fid_cntr *trigger;
    unsigned        count;
} firing_t;

static void *fire_often(void *arg)
{
    firing_t *firing = arg;
    unsigned i;

    fab_adopt(firing->me);
    for (i = 0; i < firing->count; ++i) {
        fire(firing->trigger, 1);
    }
    return NULL;
}

FAB_CASE(many_firing)
{
    enum { THREADS = 4, COUNT = 50 };
    uint64_t value = 1;
    firing_t firing;
    chain_t chain;
    unsigned i;

    chain_open(me, &chain, THREADS * COUNT);
    for (i = 0; i < THREADS * COUNT; ++i) {
        fab_work_add(me, &chain.works[i], value, fab_there(me, 0));
        chain_queue(me, &chain, i, i + 1);
    }
    firing.me      = me;
    firing.trigger = chain.trigger;
    firing.count   = COUNT;
    fab_threads(THREADS, fire_often, &firing, 0);
    fab_count(me, chain.done, THREADS * COUNT);
    fab_count(me, me->landed, THREADS * COUNT);
    FAB_EQUAL(word_at(me, 0), THREADS * COUNT);
    chain_close(me, &chain);
}

/* What fails counts as a failure, and what hangs on it waits for ever */
FAB_CASE(failure_stalls,
         .sockets = "sockets counts no failure of deferred work, and cannot "
                    "flush it")
{
    uint64_t value = 1;
    fab_place_t bad = fab_there(me, 0);
    struct fid_cntr *words;
    chain_t chain;

    bad.key = 999;
    chain_open(me, &chain, 2);
    words = fab_cntr(me);
    fab_work_write(me, &chain.works[0], &value, 8, bad);
    chain_queue(me, &chain, 0, 1);
    fab_work_add(me, &chain.works[1], 1, fab_here(me, 0));
    FAB_EQUAL(fab_queue(me, &chain.works[1], fab_at(chain.done, 1, words)), 0);
    fire(chain.trigger, 1);
    fab_count_errors(me, chain.done, 1);
    fab_error(me, &me->tx);
    fab_linger(me);
    FAB_EQUAL(fi_cntr_read(chain.done), 0);
    FAB_EQUAL(word_at(me, 0), 0);
    /* Closing the domain takes along what is left */
    FAB_EQUAL(fi_control(&me->domain->fid, FI_FLUSH_WORK, NULL), 0);
    fab_barrier(me);
    fab_cntr_close(words);
    chain_close(me, &chain);
}

/* Without a completion counter: the data is there all the same */
FAB_CASE(no_completion,
         .sockets = "sockets crashes without a completion counter")
{
    uint64_t value = 55;
    chain_t chain;

    chain_open(me, &chain, 1);
    fab_work_write(me, chain.works, &value, 8, fab_there(me, 0));
    FAB_EQUAL(fab_queue(me, chain.works, fab_at(chain.trigger, 1, NULL)), 0);
    fire(chain.trigger, 1);
    fab_count(me, me->landed, 1);
    FAB_EQUAL(word_at(me, 0), 55);
    chain_close(me, &chain);
}

/* A counter that its own trigger adds to */
FAB_CASE(self_trigger,
         .sockets = "sockets deadlocks when a trigger adds to its own counter")
{
    struct fid_cntr *target = fab_cntr(me);
    chain_t chain;

    chain_open(me, &chain, 2);
    fab_work_count(&chain.works[0], FI_OP_CNTR_ADD, chain.trigger, 1);
    FAB_EQUAL(fab_queue(me, &chain.works[0], fab_at(chain.trigger, 1, NULL)),
              0);
    fab_work_count(&chain.works[1], FI_OP_CNTR_ADD, target, 9);
    FAB_EQUAL(fab_queue(me, &chain.works[1], fab_at(chain.trigger, 2, NULL)),
              0);
    fire(chain.trigger, 1);
    fab_count(me, target, 9);
    fab_cntr_close(target);
    chain_close(me, &chain);
}

/* The message is there, and the party has not polled for a while. On CXI the
 * party itself counts what its NIC could not match */
static void receive_asleep(fab_side_t *me, void *in, size_t size)
{
    uint64_t value = 0;

    fab_get_asleep(me, &value, sizeof(value));
    FAB_EQUAL(fi_recv(me->ep, in, size, NULL, me->peer, NULL), 0);
    if (fab_subject() == FAB_CXI) {
        fab_get(me, &value, sizeof(value));
    } else {
        fab_get_asleep(me, &value, sizeof(value));
    }
    FAB_EQUAL(value, size);
}

static void await_asleep(fab_side_t *me, uint64_t landed)
{
    uint64_t value = 0;

    fab_linger(me);
    fab_put(me, &value, sizeof(value));
    fab_count(me, me->landed, landed);
    value = word_at(me, 0);
    fab_put(me, &value, sizeof(value));
}

/* A receive whose message was there before it counts too, and what that
 * triggers needs no thread that polls */
FAB_CASE(late_receive)
{
    uint64_t sizes[] = {8, FAB_MIB}; /* Before libfabric 2 not constant: cxi
                                        maps the source writable */
    uint8_t *out = fab_alloc(FAB_MIB);
    uint8_t *in  = fab_alloc(FAB_MIB);
    chain_t chain;
    uint64_t i;
    int turn;

    chain_open(me, &chain, 1);
    fab_fill(out, FAB_MIB, fab_tint(me->index, 3));
    for (i = 0; i < ST_CUNIT_COUNT(sizes); ++i) {
        FAB_MUST(me, fi_send(me->ep, out, sizes[i], NULL, me->peer, NULL));
        fab_work_write(me, chain.works, &sizes[i], 8, fab_there(me, 0));
        FAB_EQUAL(fab_queue(me, chain.works,
                            fab_at(me->recv, i + 1, chain.done)), 0);
        fab_barrier(me);
        for (turn = 0; turn < 2; ++turn) {
            if (me->index == turn) {
                receive_asleep(me, in, sizes[i]);
            } else {
                await_asleep(me, i + 1);
            }
        }
        fab_count(me, chain.done, i + 1);
        fab_entries(me, &me->rx, 1);
        fab_entries(me, &me->tx, 1);
        FAB_FILLED(me, in, sizes[i], 3);
    }
    chain_close(me, &chain);
    free(in);
    free(out);
}

FAB_SUITE("fab_dwq")
