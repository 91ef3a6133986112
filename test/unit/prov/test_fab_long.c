/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fab_long.c - payload that takes many chunks: all of it arrives, once,
 * whatever happens in the midst. With FI_CXIEMU_CMA=n it goes through slots
 * between processes, too.
 */
#include "fab.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONG_PLACES 8
#define LONG_LENGTH (FAB_LARGEST / 2)
#define LONG_PLACE  (LONG_LENGTH + 4096)
#define LONG_KEY    77u


static const fab_config_t large = {.window = LONG_PLACES * LONG_PLACE};

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
FAB_CASE(writes, .config = &large)
{
    uint8_t *out = fab_alloc(large.window);
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
        FAB_FILLED(me, long_place(me, i) + 3, LONG_LENGTH, i);
        FAB_CHECK((long_place(me, i)[2] == 0xee) &&
                  (long_place(me, i)[LONG_LENGTH + 3] == 0xee));
    }
    fab_fill(me->window, large.window, 9);
    fab_entries(me, &me->tx, LONG_PLACES);
    fab_barrier(me);
    FAB_EQUAL(long_read(me, me->landed), LONG_PLACES);
    FAB_EQUAL(fab_differs(me->window, large.window, 9), large.window);
    free(out);
}

FAB_CASE(reads, .config = &large)
{
    uint8_t *in = fab_alloc(large.window);
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
        FAB_FILLED(me, in + (i * LONG_PLACE) + 5, LONG_LENGTH, i);
    }
    fab_fill(in, large.window, 9);
    fab_barrier(me);
    FAB_EQUAL(long_read(me, me->read), LONG_PLACES);
    FAB_EQUAL(fab_differs(in, large.window, 9), large.window);
    free(in);
}

/* Long messages, of which the receiver expects every second one */
FAB_CASE(messages, .config = &large)
{
    uint8_t *out = fab_alloc(large.window);
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
        FAB_FILLED(me, in + (i * LONG_PLACE), LONG_LENGTH, i);
    }
    fab_barrier(me);
    free(out);
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

FAB_CASE(key_closed, .config = &large)
{
    uint8_t *data = fab_alloc(LONG_LENGTH);
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
    free(data);
}


/* The initiator writes to all places, and is killed when some of that is there:
 * what is counted is whole, and nothing is counted later */
FAB_CASE(killed, .config = &large, .victim = 1)
{
    uint64_t state = fab_seed();
    uint64_t landed, whole = 0;
    uint8_t *data;
    unsigned i;

    if (me->index == 1) {
        data = fab_alloc(LONG_LENGTH);
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
        FAB_EQUAL(fab_error(me, &me->tx).err, FI_EIO);
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

FAB_SUITE("fab_long")
