/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fab_limits.c - Cassini's limits: entries, counters, transmit queues. */
#include "fab_work.h"

#include <stdlib.h>

#define ONLY_CXI "sockets has no such limit"

/** Of the process: both parties' if they are threads. */
#define LIMIT_ENTRIES 504
#define LIMIT_CNTRS   2048


/* So many entries, then no more; each that fires makes room for one */
FAB_CASE(entries, .sockets = ONLY_CXI)
{
    struct fid_cntr *trigger, *done;
    fab_work_t *works;
    unsigned i;

    if (me->index == 1) {
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

    if (me->threads && (me->index == 1)) {
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
    cntrs[0] = fab_cntr(me);
    fab_cntr_close(cntrs[0]);
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
