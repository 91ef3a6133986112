/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fab_long.c - payload that takes many chunks: all of it arrives, once,
 * whatever happens in the midst.
 *
 * Built three times: test_fab_long has the settings' defaults, with which both
 * processes copy writes at a time; in test_fab_once (LONG_ONCE) the target
 * copies alone, from where the payload lies; in test_fab_past (LONG_PAST) all
 * slots are filled past the processor's caches.
 */
#include "fab.h"

#include <cxiemu.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONG_PLACES 8
#define LONG_LENGTH (FAB_LARGEST / 2)
#define LONG_PLACE  (LONG_LENGTH + 4096)
#define LONG_KEY    77u


static const fab_config_t large = {.window = LONG_PLACES * LONG_PLACE};

static struct fi_cxiemu_domain_ops *long_ops(fab_side_t *me)
{
    struct fi_cxiemu_domain_ops *ops = NULL;

    FAB_EQUAL(fi_open_ops(&me->domain->fid, FI_CXIEMU_DOMAIN_OPS, 0,
                          (void**)&ops, NULL), 0);
    FAB_REQUIRE(ops != NULL);
    return ops;
}

/* Memory of this process, or such as its peer maps */
static uint8_t *long_alloc(fab_side_t *me, size_t length, int is_mapped)
{
    void *data = NULL;

    if (is_mapped) {
        FAB_EQUAL(long_ops(me)->mem_alloc(me->domain, length, &data), 0);
    } else {
        data = malloc(length);
    }
    FAB_REQUIRE(data != NULL);
    return data;
}

static void long_free(fab_side_t *me, uint8_t *data, int is_mapped)
{
    if (is_mapped) {
        FAB_EQUAL(long_ops(me)->mem_free(me->domain, data), 0);
    } else {
        free(data);
    }
}

/* To a region of the peer's, at an offset; in memory when it completes */
static void long_write(fab_side_t *me, const void *data, uint64_t key,
                       uint64_t addr)
{
    struct iovec iov       = {
        .iov_base = (void*)data,
        .iov_len  = LONG_LENGTH
    };
    struct fi_rma_iov riov = {.addr = addr, .len = LONG_LENGTH, .key = key};
    struct fi_msg_rma msg  = {
        .msg_iov       = &iov,
        .iov_count     = 1,
        .addr          = me->peer,
        .rma_iov       = &riov,
        .rma_iov_count = 1
    };

    FAB_MUST(me, fi_writemsg(me->ep, &msg,
                             FI_DELIVERY_COMPLETE | FI_COMPLETION));
}

/* In strict mode a read has what was there at the one before */
static uint64_t long_read(fab_side_t *me, struct fid_cntr *cntr)
{
    (void)fi_cntr_read(cntr);
    fab_linger(me);
    return fi_cntr_read(cntr);
}

static uint8_t *long_place(fab_side_t *me, unsigned i)
{
    return me->window + (i * LONG_PLACE);
}

/* Several at a time both ways; none counts twice, and nothing is stored after
 * the count */
static void run_writes(fab_side_t *me, int is_mapped)
{
    uint8_t *out = long_alloc(me, large.window, is_mapped);
    unsigned i;

    for (i = 0; i < LONG_PLACES; ++i) {
        fab_fill(out + (i * LONG_PLACE) + i, LONG_LENGTH,
                 fab_tint(me->index, i));
    }
    memset(me->window, 0xee, large.window);
    fab_barrier(me);
    for (i = 0; i < LONG_PLACES; ++i) {
        long_write(me, out + (i * LONG_PLACE) + i, me->theirs.key,
                   me->theirs.base + (i * LONG_PLACE) + 3);
    }
    fab_count(me, me->landed, LONG_PLACES);
    for (i = 0; i < LONG_PLACES; ++i) {
        FAB_EQUAL(fab_differs(long_place(me, i) + 3, LONG_LENGTH,
                              fab_tint(!me->index, i)), LONG_LENGTH);
        FAB_CHECK((long_place(me, i)[2] == 0xee) &&
                  (long_place(me, i)[LONG_LENGTH + 3] == 0xee));
    }
    fab_fill(me->window, large.window, 9);
    fab_entries(me, &me->tx, LONG_PLACES);
    fab_barrier(me);
    FAB_EQUAL(long_read(me, me->landed), LONG_PLACES);
    FAB_EQUAL(fab_differs(me->window, large.window, 9), large.window);
    long_free(me, out, is_mapped);
}

static void writes(fab_side_t *me)
{
    run_writes(me, 0);
}

static void writes_mapped(fab_side_t *me)
{
    run_writes(me, 1);
}

static void run_reads(fab_side_t *me, int is_mapped)
{
    uint8_t *in = long_alloc(me, large.window, is_mapped);
    unsigned i;

    for (i = 0; i < LONG_PLACES; ++i) {
        fab_fill(long_place(me, i), LONG_LENGTH, fab_tint(me->index, i));
    }
    memset(in, 0xee, large.window);
    fab_barrier(me);
    for (i = 0; i < LONG_PLACES; ++i) {
        FAB_MUST(me, fi_read(me->ep, in + (i * LONG_PLACE) + 5, LONG_LENGTH,
                             NULL, me->peer,
                             me->theirs.base + (i * LONG_PLACE),
                             me->theirs.key, NULL));
    }
    fab_entries(me, &me->tx, LONG_PLACES);
    for (i = 0; i < LONG_PLACES; ++i) {
        FAB_EQUAL(fab_differs(in + (i * LONG_PLACE) + 5, LONG_LENGTH,
                              fab_tint(!me->index, i)), LONG_LENGTH);
    }
    fab_fill(in, large.window, 9);
    fab_barrier(me);
    FAB_EQUAL(long_read(me, me->read), LONG_PLACES);
    FAB_EQUAL(fab_differs(in, large.window, 9), large.window);
    long_free(me, in, is_mapped);
}

static void reads(fab_side_t *me)
{
    run_reads(me, 0);
}

static void reads_mapped(fab_side_t *me)
{
    run_reads(me, 1);
}

/* Long messages, of which the receiver expects every second one */
static void run_messages(fab_side_t *me, int is_mapped)
{
    uint8_t *out = long_alloc(me, large.window, is_mapped);
    uint8_t *in  = me->window;
    unsigned i, k;

    for (k = 0; k < 2; ++k) {
        for (i = k; i < LONG_PLACES; i += 2) {
            FAB_MUST(me, fi_trecv(me->ep, in + (i * LONG_PLACE), LONG_LENGTH,
                                  NULL, me->peer, i, 0, NULL));
        }
        fab_barrier(me);
        for (i = 0; (k == 0) && (i < LONG_PLACES); ++i) {
            fab_fill(out + (i * LONG_PLACE), LONG_LENGTH,
                     fab_tint(me->index, i));
            FAB_MUST(me, fi_tsend(me->ep, out + (i * LONG_PLACE), LONG_LENGTH,
                                  NULL, me->peer, i, NULL));
        }
        fab_entries(me, &me->rx, LONG_PLACES / 2);
    }
    fab_entries(me, &me->tx, LONG_PLACES);
    for (i = 0; i < LONG_PLACES; ++i) {
        FAB_EQUAL(fab_differs(in + (i * LONG_PLACE), LONG_LENGTH,
                              fab_tint(!me->index, i)), LONG_LENGTH);
    }
    fab_barrier(me);
    long_free(me, out, is_mapped);
}

static void messages(fab_side_t *me)
{
    run_messages(me, 0);
}

static void messages_mapped(fab_side_t *me)
{
    run_messages(me, 1);
}


/* Closes a region while writes come; how many had landed. Its memory is its
 * owner's from then on */
static uint64_t close_in_the_midst(fab_side_t *me, uint8_t *memory)
{
    struct fid_cntr *cntr = fab_cntr(me);
    struct fid_mr *mr     = fab_register(me, memory, LONG_LENGTH, LONG_KEY,
                                         cntr);
    uint64_t where[2]     = {fi_mr_key(mr), fab_base(me, memory)};
    uint64_t landed;

    fab_put(me, where, sizeof(where));
    fab_count(me, cntr, 1);
    FAB_EQUAL(fi_close(&mr->fid), 0);
    fab_fill(memory, LONG_LENGTH, 9);
    /* All writes are over when the peer comes here */
    fab_barrier(me);
    FAB_EQUAL(fab_differs(memory, LONG_LENGTH, 9), LONG_LENGTH);
    landed = long_read(me, cntr);
    fab_cntr_close(cntr);
    return landed;
}

/* Every write ends, well or refused; how many ended well */
static uint64_t end_writes(fab_side_t *me, unsigned count)
{
    struct fi_cq_err_entry err = {0};
    uint64_t since             = 0;
    uint64_t well              = 0;

    for (; count > 0; --count) {
        while ((me->tx.count == 0) &&
               (fi_cq_readerr(me->tx.cq, &err, 0) != 1)) {
            fab_turn(me, &since);
        }
        if (me->tx.count > 0) {
            fab_entry(me, &me->tx);
            ++well;
        } else {
            FAB_EQUAL(err.err, FI_EIO);
        }
    }
    return well;
}

static void run_key_closed(fab_side_t *me, int is_mapped)
{
    uint8_t *data = long_alloc(me, LONG_LENGTH, is_mapped);
    uint64_t well, landed, where[2];
    unsigned i;

    if (me->index == 1) {
        landed = close_in_the_midst(me, data);
        fab_get(me, &well, sizeof(well));
        FAB_EQUAL(landed, well);
    } else {
        fab_fill(data, LONG_LENGTH, 1);
        fab_get(me, where, sizeof(where));
        for (i = 0; i < LONG_PLACES; ++i) {
            long_write(me, data, where[0], where[1]);
        }
        well = end_writes(me, LONG_PLACES);
        FAB_CHECK(well >= 1);
        fab_barrier(me);
        fab_put(me, &well, sizeof(well));
    }
    long_free(me, data, is_mapped);
}

static void key_closed(fab_side_t *me)
{
    run_key_closed(me, 0);
}

static void key_closed_mapped(fab_side_t *me)
{
    run_key_closed(me, 1);
}


/* The initiator writes to all places, and is killed when some of that is there:
 * what is counted is whole, and nothing is counted later */
static void run_killed(fab_side_t *me, int is_mapped)
{
    uint64_t state = fab_seed();
    uint64_t landed, whole = 0;
    uint8_t *data;
    unsigned i;

    if (me->index == 1) {
        data = long_alloc(me, LONG_LENGTH, is_mapped);
        fab_fill(data, LONG_LENGTH, 5);
        for (i = 0; i < LONG_PLACES; ++i) {
            long_write(me, data, me->theirs.key,
                       me->theirs.base + (i * LONG_PLACE));
        }
        for (;;) {
            fab_progress(me);
            usleep(200);
        }
    }

    fab_count(me, me->landed, 1 + (fab_random(&state) % (LONG_PLACES - 1)));
    FAB_REQUIRE(kill((pid_t)me->theirs.pid, SIGKILL) == 0);
    /* A message to it tells that the link is lost, and all that is with it */
    if (fi_tsend(me->ep, me->window, LONG_LENGTH, NULL, me->peer, 1, NULL) ==
        0) {
        FAB_EQUAL(fab_error(me, &me->tx).err, FI_EHOSTUNREACH);
    }
    landed = long_read(me, me->landed);
    for (i = 0; i < LONG_PLACES; ++i) {
        whole += fab_differs(long_place(me, i), LONG_LENGTH, 5) == LONG_LENGTH;
    }
    FAB_CHECK(whole >= landed);
    fab_fill(me->window, large.window, 9);
    FAB_EQUAL(long_read(me, me->landed), landed);
    FAB_EQUAL(fab_differs(me->window, large.window, 9), large.window);
}

static void killed(fab_side_t *me)
{
    run_killed(me, 0);
}

static void killed_mapped(fab_side_t *me)
{
    run_killed(me, 1);
}

#ifndef LONG_ONCE
static void count_parts(void *arg, const void *const *addresses, size_t count)
{
    (void)addresses;
    if (count == 0) {
        __atomic_fetch_add((unsigned*)arg, 1, __ATOMIC_RELAXED);
    }
}

/* Whose NIC's thread takes in a message part by part, as it does not poll, is
 * told so */
static void parts(fab_side_t *me)
{
    unsigned told = 0;
    char word     = 'w';

    if (me->index == 0) {
        FAB_EQUAL(long_ops(me)->on_store(me->domain, count_parts, &told), 0);
    }
    fab_barrier(me);
    if (me->index == 1) {
        fab_fill(me->window, LONG_LENGTH, 5);
        long_write(me, me->window, me->theirs.key, me->theirs.base);
        fab_entries(me, &me->tx, 1);
        fab_put(me, &word, sizeof(word));
    } else {
        fab_get_asleep(me, &word, sizeof(word)); /* a barrier polls */
        FAB_EQUAL(long_ops(me)->on_store(me->domain, NULL, NULL), 0);
        FAB_CHECK(told > 0);
        FAB_EQUAL(fab_differs(me->window, LONG_LENGTH, 5), LONG_LENGTH);
    }
    fab_barrier(me);
}
#endif

static const fab_case_t cases[] = {
#ifndef LONG_ONCE
    /* Threads of one process need no parts */
    {"parts", parts, &large, FAB_PROCESSES},
#endif
    {"writes", writes, &large},
    {"writes_mapped", writes_mapped, &large},
    {"reads", reads, &large},
    {"reads_mapped", reads_mapped, &large},
    {"messages", messages, &large},
    {"messages_mapped", messages_mapped, &large},
    {"key_closed", key_closed, &large},
    {"key_closed_mapped", key_closed_mapped, &large},
    {"killed", killed, &large, 0, NULL, 1},
    {"killed_mapped", killed_mapped, &large, 0, NULL, 1}
};

int main(int argc, char **argv)
{
#ifdef LONG_ONCE
    setenv("FI_CXIEMU_BOTH_MIN", "inf", 1);
    return fab_main("fab_once", cases, ST_CUNIT_COUNT(cases), argc, argv);
#elif defined(LONG_PAST)
    setenv("FI_CXIEMU_BYPASS", "yes", 1);
    return fab_main("fab_past", cases, ST_CUNIT_COUNT(cases), argc, argv);
#else
    return fab_main("fab_long", cases, ST_CUNIT_COUNT(cases), argc, argv);
#endif
}
