/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fab_limits.c - Cassini's limits: entries, counters, transmit queues. */
#include "fab_work.h"

#include <stdlib.h>

#define ONLY_CXI "sockets has no such limit"

/** Of both parties, which share them. The strict NIC has a few more entries,
 *  for what fires at once. */
#define LIMIT_ENTRIES 504
#define LIMIT_SPARE   8
#define LIMIT_SLOTS   504
#define LIMIT_CNTRS   2047


/* So many entries, then no more; each that fires makes room for one */
FAB_CASE(entries, .sockets = ONLY_CXI)
{
    struct fid_cntr *trigger, *done;
    fab_work_t *works;
    unsigned i;

    if ((me->index == 1) || fab_is_strict()) {
        fab_barrier(me);
        return;
    }

    trigger = fab_cntr(me);
    done    = fab_cntr(me);
    works   = fab_works(me, LIMIT_ENTRIES + 1);
    for (i = 0; i < LIMIT_ENTRIES; ++i) {
        fab_work_add(me, &works[i], 1, fab_there(me, 0));
        FAB_EQUAL(fab_queue(me, &works[i], fab_at(trigger, i + 1, done)), 0);
    }
    fab_work_add(me, &works[i], 1, fab_there(me, 0));
    FAB_CHECK(fab_queue(me, &works[i], fab_at(trigger, i + 1, done)) < 0);
    FAB_EQUAL(fi_cntr_add(trigger, 1), 0);
    fab_count(me, done, 1);
    FAB_UNTIL(me, fab_queue(me, &works[i], fab_at(trigger, i + 1, done)) == 0);
    FAB_EQUAL(fi_cntr_add(trigger, LIMIT_ENTRIES), 0);
    fab_count(me, done, LIMIT_ENTRIES + 1);
    fab_barrier(me);
    fab_cntr_close(trigger);
    fab_cntr_close(done);
    free(works);
}

FAB_CASE(counters, .sockets = ONLY_CXI)
{
    struct fid_cntr *cntrs[LIMIT_CNTRS + 1];
    struct fi_cntr_attr attr = {
        .events   = FI_CNTR_EVENTS_COMP,
        .wait_obj = FI_WAIT_UNSPEC
    };
    unsigned count           = 0;
    int ret;

    if (me->index == 1) {
        return;
    }

    while ((count <= LIMIT_CNTRS) &&
           (fi_cntr_open(me->domain, &attr, &cntrs[count], NULL) == 0)) {
        ++count;
    }
    FAB_CHECK(count <= LIMIT_CNTRS);
    FAB_CHECK(count >= LIMIT_CNTRS - 16);
    ret = fi_cntr_open(me->domain, &attr, &cntrs[count], NULL);
    FAB_EQUAL(ret, -FI_EDOMAIN);
    while (count > 0) {
        fab_cntr_close(cntrs[--count]);
    }
    if (fab_is_strict()) {
        /* They are taken until the domain is closed */
        ret = fi_cntr_open(me->domain, &attr, &cntrs[0], NULL);
        FAB_EQUAL(ret, -FI_EDOMAIN);
    } else {
        cntrs[0] = fab_cntr(me);
        fab_cntr_close(cntrs[0]);
    }
}

/* Works that add 1 to the peer's word; they wait for different values of a
 * counter. Returns how many were taken: those behind are refused for good, not
 * for a moment in which the NIC was slow */
static unsigned queue_adds(fab_side_t *me, fab_work_t *works, unsigned count,
                           struct fid_cntr *trigger, struct fid_cntr *done)
{
    unsigned taken = 0;
    unsigned tries = 0;
    int ret        = 0;

    while ((taken < count) && (tries < 10)) {
        fab_work_add(me, &works[taken], 1, fab_there(me, 0));
        ret = fab_queue(me, &works[taken], fab_at(trigger, taken + 1, done));
        FAB_CHECK((ret == 0) || (ret == -FI_EAGAIN));
        if (ret == 0) {
            ++taken;
            tries = 0;
        } else {
            ++tries;
            fab_linger(me);
        }
    }
    return taken;
}

/* Without entries the queue of commands stalls, and with it all behind it; when
 * it is full, too, work is refused. The parties share the entries. No counter
 * may be read meanwhile: since libfabric 2.3 cxi waits for the answer */
FAB_CASE(stall, .sockets = ONLY_CXI)
{
    struct fid_cntr *trigger = fab_cntr(me);
    struct fid_cntr *met     = fab_cntr(me);
    struct fid_cntr *done    = fab_cntr(me);
    struct fid_cntr *counted = fab_cntr(me);
    unsigned share           = (LIMIT_ENTRIES + LIMIT_SPARE) / 2;
    unsigned taken           = 0;
    fab_work_t *works;

    works = fab_works(me, 2 * LIMIT_ENTRIES);
    if (fab_is_strict()) {
        FAB_EQUAL(queue_adds(me, works, share, trigger, done), share);
        /* A command behind them: the NIC has taken them */
        FAB_EQUAL(fi_cntr_set(met, 5), 0);
        fab_reads(me, met, 5);
        fab_barrier(me);
        /* No entry is left: this is held, though its threshold is met, and the
         * value is set behind it */
        fab_work_add(me, &works[share], 1, fab_there(me, 8));
        FAB_EQUAL(fi_cntr_add(met, 1), 0);
        FAB_MUST(me, fab_queue(me, &works[share], fab_at(met, 6, counted)));
        FAB_EQUAL(fi_cntr_set(met, 7), 0);
        fab_barrier(me);
        fab_linger(me);
        FAB_EQUAL(fab_load(me->window + 8), 0);
        fab_barrier(me);
        if (me->index == 0) {
            /* Two slots each, of which the above has two and one; cxi has
             * one or two more */
            taken = queue_adds(me, &works[share + 1], LIMIT_SLOTS, trigger,
                               done);
            FAB_CHECK(taken >= (LIMIT_SLOTS - 3) / 2);
            FAB_CHECK(taken <= LIMIT_SLOTS / 2);
        }
        fab_barrier(me);
        /* The other party's entries will do, too */
        if (me->index == 1) {
            FAB_EQUAL(fi_cntr_add(trigger, LIMIT_ENTRIES), 0);
            fab_count(me, done, share);
        }
        fab_count(me, counted, 1);
        fab_count(me, met, 7);
        fab_barrier(me);
        FAB_EQUAL(fi_cntr_add(trigger, LIMIT_ENTRIES), 0);
        fab_count(me, done, share + taken);
    }
    fab_barrier(me);
    fab_cntr_close(counted);
    fab_cntr_close(done);
    fab_cntr_close(met);
    fab_cntr_close(trigger);
    free(works);
}

/* A region has one counter, bound before it is enabled; a counter may have
 * several regions, and cannot be closed while it has */
FAB_CASE(one_counter, .sockets = ONLY_CXI)
{
    struct fid_cntr *cntr = fab_cntr(me);
    struct fid_cntr *more = fab_cntr(me);
    uint64_t words[2]     = {0};
    struct fid_mr *first, *second = NULL;

    first = fab_register(me, &words[0], 8, 80, cntr);
    FAB_CHECK(fi_mr_bind(first, &more->fid, FI_REMOTE_WRITE) < 0);
    FAB_EQUAL(fi_mr_reg(me->domain, &words[1], 8, FI_REMOTE_WRITE, 0, 81,
                        FI_RMA_EVENT, &second, NULL), 0);
    FAB_EQUAL(fi_mr_bind(second, &cntr->fid, FI_REMOTE_WRITE), 0);
    FAB_CHECK(fi_mr_bind(second, &more->fid, FI_REMOTE_WRITE) < 0);
    FAB_EQUAL(fi_close(&first->fid), 0);
    FAB_EQUAL(fi_close(&cntr->fid), -FI_EBUSY);
    FAB_EQUAL(fi_close(&second->fid), 0);
    fab_cntr_close(more);
    fab_cntr_close(cntr);
}

static const fab_config_t narrow = {.tx_size = 64};

/* Posts that find room, without any progress of this party */
static size_t write_many(fab_side_t *me, const uint64_t *word, size_t count)
{
    size_t posted = 0;
    ssize_t ret   = 0;

    while ((ret == 0) && (posted < count)) {
        ret = fi_write(me->ep, word, 8, NULL, me->peer, me->theirs.base,
                       me->theirs.key, NULL);
        posted += (ret == 0);
    }
    FAB_CHECK((ret == 0) || (ret == -FI_EAGAIN));
    return posted;
}

/* Places come back by progress alone, which a counter's reads make, too: no
 * entry is read here before all are posted */
FAB_CASE(transmit_size, .config = &narrow, .sockets = ONLY_CXI)
{
    uint64_t word = 1;
    size_t size   = me->info->tx_attr->size;
    size_t posted;

    FAB_CHECK(size >= 64);
    posted = write_many(me, &word, 2 * size);
    if (fab_is_strict()) {
        FAB_EQUAL(posted, size);
    }
    while (posted < 4 * size) {
        fi_cntr_read(me->write);
        posted += write_many(me, &word, (4 * size) - posted);
    }
    fab_entries(me, &me->tx, posted);
    FAB_MUST(me, fi_write(me->ep, &word, 8, NULL, me->peer, me->theirs.base,
                          me->theirs.key, NULL));
    fab_entry(me, &me->tx);
    fab_barrier(me);
}

/* More entries than a queue keeps; libfabric's documents call it an overrun */
#define LIMIT_UNREAD (1u << 18)

FAB_CASE(unread_entries, .parties = FAB_THREADS, .sockets = ONLY_CXI,
         .cxi = "cxi keeps as many as there is memory for")
{
    struct fi_cq_tagged_entry entries[256];
    uint64_t word = 1;
    size_t count  = 0;
    size_t posted = 0;
    ssize_t ret;

    while (posted < LIMIT_UNREAD + 10) {
        posted += write_many(me, &word, LIMIT_UNREAD + 10 - posted);
        fi_cntr_read(me->write);
    }
    while (fi_cntr_read(me->write) < posted) {
    }
    while ((ret = fi_cq_read(me->tx.cq, entries, 256)) > 0) {
        count += (size_t)ret;
    }
    FAB_EQUAL(ret, -FI_EOVERRUN);
    FAB_EQUAL(count, LIMIT_UNREAD);
    FAB_MUST(me, fi_write(me->ep, &word, 8, NULL, me->peer, me->theirs.base,
                          me->theirs.key, NULL));
    fab_entry(me, &me->tx);
    fab_barrier(me);
}

FAB_CASE(sizes, .sockets = ONLY_CXI)
{
    struct fi_info *hints, *info;
    uint8_t byte = 0;

    hints = fab_hints(me->config);
    hints->tx_attr->size = 1u << 20;
    FAB_CHECK(fab_getinfo(hints) == NULL);
    hints->tx_attr->size = 16384;
    info = fab_getinfo(hints);
    FAB_CHECK(info != NULL);
    fi_freeinfo(info);
    hints->tx_attr->inject_size = 193;
    FAB_CHECK(fab_getinfo(hints) == NULL);
    hints->tx_attr->inject_size   = 0;
    hints->ep_attr->max_msg_size  = 1ull << 40;
    FAB_CHECK(fab_getinfo(hints) == NULL);
    fi_freeinfo(hints);
    FAB_CHECK(fi_send(me->ep, &byte, (4ull << 30) + 1, NULL, me->peer, NULL) <
              0);
    FAB_CHECK(fi_tsend(me->ep, &byte, 1, NULL, me->peer, 1ull << 48, NULL) <
              0);
}

FAB_SUITE("fab_limits")
