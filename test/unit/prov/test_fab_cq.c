/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fab_cq.c - completion queues: formats, waits, errors. */
#include "fab.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>


/* A tagged word to the other side and one from there, each with a context */
typedef struct swap {
    uint64_t out;
    uint64_t in;
} swap_t;

static void swap_words(fab_side_t *me, swap_t *swap)
{
    swap->out = fab_tint(me->index, 8);
    swap->in  = 0;
    FAB_MUST(me, fi_trecv(me->ep, &swap->in, 8, NULL, me->peer, 3, 0,
                          &swap->in));
    fab_barrier(me);
    FAB_MUST(me, fi_tsend(me->ep, &swap->out, 8, NULL, me->peer, 3,
                          &swap->out));
}

/* One entry of any format */
static void read_one(fab_side_t *me, fab_cq_t *cq, void *entry)
{
    uint64_t since = 0;
    ssize_t ret;

    while ((ret = fi_cq_read(cq->cq, entry, 1)) == -FI_EAGAIN) {
        fab_turn(me, &since);
    }
    FAB_EQUAL(ret, 1);
}

static const fab_config_t with_context = {.format = FI_CQ_FORMAT_CONTEXT};

FAB_CASE(format_context, .config = &with_context)
{
    struct fi_cq_entry entry[2];
    swap_t swap;

    memset(entry, 0xa5, sizeof(entry));
    swap_words(me, &swap);
    read_one(me, &me->rx, entry);
    FAB_CHECK(entry[0].op_context == &swap.in);
    read_one(me, &me->tx, entry);
    FAB_CHECK(entry[0].op_context == &swap.out);
    FAB_EQUAL((uintptr_t)entry[1].op_context, 0xa5a5a5a5a5a5a5a5ull);
}

static const fab_config_t with_msg = {.format = FI_CQ_FORMAT_MSG};

FAB_CASE(format_msg, .config = &with_msg)
{
    struct fi_cq_msg_entry entry[2];
    swap_t swap;

    memset(entry, 0xa5, sizeof(entry));
    swap_words(me, &swap);
    read_one(me, &me->rx, entry);
    FAB_CHECK(entry[0].op_context == &swap.in);
    FAB_EQUAL(entry[0].len, 8);
    FAB_CHECK(entry[0].flags & FI_RECV);
    FAB_EQUAL((uintptr_t)entry[1].op_context, 0xa5a5a5a5a5a5a5a5ull);
    read_one(me, &me->tx, entry);
    FAB_CHECK(entry[0].flags & FI_SEND);
}

static const fab_config_t with_data = {.format = FI_CQ_FORMAT_DATA};

FAB_CASE(format_data, .config = &with_data)
{
    struct fi_cq_data_entry entry[2];
    swap_t swap = {.out = 5};

    memset(entry, 0xa5, sizeof(entry));
    FAB_MUST(me, fi_trecv(me->ep, &swap.in, 8, NULL, me->peer, 3, 0, NULL));
    fab_barrier(me);
    FAB_MUST(me, fi_tsenddata(me->ep, &swap.out, 8, NULL, 0x55aa, me->peer, 3,
                              NULL));
    read_one(me, &me->rx, entry);
    FAB_EQUAL(entry[0].data, 0x55aa);
    FAB_CHECK(entry[0].flags & FI_REMOTE_CQ_DATA);
    FAB_EQUAL((uintptr_t)entry[1].op_context, 0xa5a5a5a5a5a5a5a5ull);
    read_one(me, &me->tx, entry);
}

static const fab_config_t selective = {.selective = 1};

/* Entries where they are asked for, and for errors always */
FAB_CASE(selective_completion, .config = &selective)
{
    uint64_t word        = 1;
    struct iovec iov     = {.iov_base = &word, .iov_len = 8};
    struct fi_rma_iov to = {
        .addr = me->theirs.base,
        .len  = 8,
        .key  = me->theirs.key
    };
    struct fi_msg_rma msg = {
        .msg_iov       = &iov,
        .iov_count     = 1,
        .addr          = me->peer,
        .rma_iov       = &to,
        .rma_iov_count = 1,
        .context       = &word
    };

    FAB_MUST(me, fi_writemsg(me->ep, &msg, 0));
    fab_count(me, me->write, 1);
    FAB_CHECK(fab_is_empty(me, &me->tx));
    FAB_MUST(me, fi_writemsg(me->ep, &msg, FI_COMPLETION));
    FAB_CHECK(fab_entry(me, &me->tx).op_context == &word);
    to.key = 999;
    FAB_MUST(me, fi_writemsg(me->ep, &msg, 0));
    FAB_CHECK(fab_error(me, &me->tx).op_context == &word);
    fab_barrier(me);
}

static const fab_config_t sleeping = {.wait = FI_WAIT_UNSPEC};

/* Messages that come one by one, each to one that waits for it by `read` */
static void take_turns(fab_side_t *me,
                       ssize_t (*read)(fab_side_t *me,
                                       struct fi_cq_tagged_entry *entry))
{
    struct fi_cq_tagged_entry entry;
    uint64_t out, in;
    unsigned i;

    for (i = 0; i < 40; ++i) {
        if ((i % 2) == (unsigned)me->index) {
            out = i;
            FAB_MUST(me, fi_tinject(me->ep, &out, 8, me->peer, i));
        } else {
            in = ~0ull;
            FAB_MUST(me, fi_trecv(me->ep, &in, 8, NULL, me->peer, i, 0, NULL));
            FAB_EQUAL(read(me, &entry), 1);
            FAB_EQUAL(in, i);
            FAB_EQUAL(entry.tag, i);
        }
    }
}

static ssize_t read_asleep(fab_side_t *me, struct fi_cq_tagged_entry *entry)
{
    return fi_cq_sread(me->rx.cq, entry, 1, NULL, 30000);
}

FAB_CASE_CALL(sread, take_turns(me, read_asleep), .config = &sleeping)

FAB_CASE(sread_times_out, .config = &sleeping)
{
    struct fi_cq_tagged_entry entry;
    uint64_t start = fab_now();

    FAB_EQUAL(fi_cq_sread(me->rx.cq, &entry, 1, NULL, 20), -FI_EAGAIN);
    FAB_CHECK(fab_now() - start >= 19000000ull);
    FAB_EQUAL(fi_cq_sread(me->rx.cq, &entry, 1, NULL, 0), -FI_EAGAIN);
}

static void *signal_it(void *arg)
{
    fab_side_t *me = arg;

    fab_adopt(me);
    usleep(20000);
    FAB_EQUAL(fi_cq_signal(me->rx.cq), 0);
    return NULL;
}

FAB_CASE(signal_ends_sread, .config = &sleeping)
{
    struct fi_cq_tagged_entry entry;
    uint64_t start = fab_now();
    pthread_t thread;

    if (fab_waits_as_cxi()) {
        FAB_EQUAL(fi_cq_signal(me->rx.cq), -FI_ENOSYS);
        return;
    }
    FAB_REQUIRE(pthread_create(&thread, NULL, signal_it, me) == 0);
    FAB_CHECK(fi_cq_sread(me->rx.cq, &entry, 1, NULL, 30000) < 0);
    FAB_CHECK(fab_now() - start < 20000000000ull);
    pthread_join(thread, NULL);
}

static const fab_config_t with_fd = {.wait = FI_WAIT_FD};

/* The descriptor tells of entries, also those of a sleeping target */
static ssize_t read_polled(fab_side_t *me, struct fi_cq_tagged_entry *entry)
{
    struct pollfd pfd  = {.fd = -1, .events = POLLIN};
    struct fid *fids[] = {&me->rx.cq->fid};
    ssize_t ret;

    FAB_EQUAL(fi_control(&me->rx.cq->fid, FI_GETWAIT, &pfd.fd), 0);
    FAB_REQUIRE(pfd.fd >= 0);
    while ((ret = fi_cq_read(me->rx.cq, entry, 1)) == -FI_EAGAIN) {
        if (fi_trywait(me->fabric, fids, 1) == 0) {
            FAB_REQUIRE(poll(&pfd, 1, 30000) == 1);
        }
    }
    return ret;
}

FAB_CASE_CALL(descriptor, take_turns(me, read_polled), .config = &with_fd)

FAB_CASE(errors)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry err = {0};
    struct fi_context context;
    uint64_t in = 0;
    char text[64];

    FAB_MUST(me, fi_trecv(me->ep, &in, 8, NULL, me->peer, 1, 0, &context));
    FAB_EQUAL(fi_cq_readerr(me->rx.cq, &err, 0), -FI_EAGAIN);
    FAB_EQUAL(fi_cancel(&me->ep->fid, &context), 0);
    while (fi_cq_read(me->rx.cq, &entry, 1) == -FI_EAGAIN) {
        fab_progress(me);
    }
    /* It stays until it is taken */
    FAB_EQUAL(fi_cq_read(me->rx.cq, &entry, 1), -FI_EAVAIL);
    FAB_EQUAL(fi_cq_readerr(me->rx.cq, &err, 0), 1);
    FAB_EQUAL(err.err, FI_ECANCELED);
    FAB_CHECK(err.op_context == &context);
    FAB_CHECK(fi_cq_strerror(me->rx.cq, err.prov_errno, err.err_data, text,
                             sizeof(text)) != NULL);
    FAB_EQUAL(fi_cq_read(me->rx.cq, &entry, 1), -FI_EAGAIN);
    FAB_EQUAL(fi_cq_readerr(me->rx.cq, &err, 0), -FI_EAGAIN);
}

/* Entries come in portions of what is asked for */
FAB_CASE(portions)
{
    enum { COUNT = 300 };
    struct fi_cq_tagged_entry entries[64];
    uint64_t in[COUNT], word = 1, since = 0;
    unsigned i, got = 0;
    ssize_t ret;

    for (i = 0; i < COUNT; ++i) {
        FAB_MUST(me, fi_trecv(me->ep, &in[i], 8, NULL, me->peer, i, 0,
                              &in[i]));
    }
    fab_barrier(me);
    for (i = 0; i < COUNT; ++i) {
        FAB_MUST(me, fi_tinject(me->ep, &word, 8, me->peer, i));
    }
    /* What the barrier has read of a peer that had left it earlier */
    for (; me->rx.count > 0; ++got) {
        FAB_EQUAL(fab_entry(me, &me->rx).tag, got);
    }
    while (got < COUNT) {
        ret = fi_cq_read(me->rx.cq, entries, 64);
        FAB_REQUIRE((ret == -FI_EAGAIN) || ((ret > 0) && (ret <= 64)));
        for (i = 0; (ret > 0) && (i < (unsigned)ret); ++i, ++got) {
            FAB_EQUAL(entries[i].tag, got);
            FAB_CHECK(entries[i].op_context == &in[got]);
        }
        FAB_REQUIRE((since == 0) || (fab_now() - since < 60000000000ull));
        since = (since == 0) ? fab_now() : since;
    }
    fab_barrier(me);
}

FAB_SUITE("fab_cq")
