/* SPDX-License-Identifier: BSD-3-Clause */
/* test_fab_msg.c - messages and tagged messages. */
#include "fab.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define MSG_GUARD 64
#define MSG_CANARY 0xa5

/* Tags have 48 bits; CXI refuses others in masks, too */
#define MSG_ANY_TAG ((1ull << 48) - 1)


static const size_t msg_sizes[] = {
    0, 1, 7, 8, 9, 24, 25, 63, 64, 191, 192, 193, 2047, 2048, 2049, 4096,
    16384, 16385, 32767, 32768, 32769, 100000, 262143, 262144, 262145, 600000,
    FAB_LARGEST
};

/* Both kinds of messages, by one call each */
typedef struct msg_way {
    int      tagged;
    uint64_t tag;
} msg_way_t;

static ssize_t msg_send(fab_side_t *me, const msg_way_t *way, const void *data,
                        size_t length)
{
    return way->tagged ? fi_tsend(me->ep, data, length, NULL, me->peer,
                                  way->tag, NULL) :
                         fi_send(me->ep, data, length, NULL, me->peer, NULL);
}

static ssize_t msg_recv(fab_side_t *me, const msg_way_t *way, void *data,
                        size_t length)
{
    return way->tagged ? fi_trecv(me->ep, data, length, NULL, FI_ADDR_UNSPEC,
                                  way->tag, 0, NULL) :
                         fi_recv(me->ep, data, length, NULL, FI_ADDR_UNSPEC,
                                 NULL);
}

static uint8_t *msg_alloc(size_t length)
{
    uint8_t *data = fab_alloc(length + MSG_GUARD);

    memset(data, MSG_CANARY, length + MSG_GUARD);
    return data;
}

static int msg_guard_is_whole(const uint8_t *end)
{
    unsigned i;

    for (i = 0; (i < MSG_GUARD) && (end[i] == MSG_CANARY); ++i);
    return i == MSG_GUARD;
}

static void msg_check(const fab_side_t *me, const uint8_t *data, size_t length,
                      const struct fi_cq_tagged_entry *entry, uint64_t number)
{
    FAB_FILLED(me, data, length, number);
    FAB_CHECK(msg_guard_is_whole(data + length));
    FAB_EQUAL(entry->len, length);
    FAB_CHECK(entry->flags & FI_RECV);
}

/* Each sends to the other at the same time */
static void msg_exchange(fab_side_t *me, const msg_way_t *way, size_t length,
                         int unexpected)
{
    uint8_t *out = msg_alloc(length), *in = msg_alloc(length);
    struct fi_cq_tagged_entry entry;

    fab_fill(out, length, fab_tint(me->index, length));
    if (!unexpected) {
        FAB_MUST(me, msg_recv(me, way, in, length));
    }
    fab_barrier(me);
    FAB_MUST(me, msg_send(me, way, out, length));
    if (unexpected) {
        fab_barrier(me);
        FAB_MUST(me, msg_recv(me, way, in, length));
    }
    entry = fab_entry(me, &me->rx);
    msg_check(me, in, length, &entry, length);
    FAB_CHECK(!way->tagged || (entry.tag == way->tag));
    FAB_CHECK(entry.flags & (way->tagged ? FI_TAGGED : FI_MSG));
    entry = fab_entry(me, &me->tx);
    FAB_CHECK(entry.flags & FI_SEND);
    free(out);
    free(in);
}

static void msg_all_sizes(fab_side_t *me, int tagged, int unexpected)
{
    msg_way_t way = {.tagged = tagged};
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(msg_sizes); ++i) {
        way.tag = 0x800000000000ull + i;
        msg_exchange(me, &way, msg_sizes[i], unexpected);
    }
    fab_count(me, me->send, ST_CUNIT_COUNT(msg_sizes));
    fab_count(me, me->recv, ST_CUNIT_COUNT(msg_sizes));
}

FAB_CASE_CALL(sizes_expected, msg_all_sizes(me, 0, 0))
FAB_CASE_CALL(sizes_unexpected, msg_all_sizes(me, 0, 1))
FAB_CASE_CALL(tagged_expected, msg_all_sizes(me, 1, 0))
FAB_CASE_CALL(tagged_unexpected, msg_all_sizes(me, 1, 1))

#define MIX_WINDOW 8
#define MIX_ROOM   100000

/* Buffers of random_mix(); small messages may be complete before large ones
 * that were sent earlier. */
typedef struct mix {
    uint8_t  *out[MIX_WINDOW];
    uint8_t  *in;
    int      busy[MIX_WINDOW];
    uint64_t state;  /* Of this party's sizes */
    uint64_t other;  /* Of the other one's */
} mix_t;

static size_t mix_length(uint64_t *state, unsigned number)
{
    return fab_random(state) % ((number % 10) ? 3000 : MIX_ROOM);
}

static void mix_send(fab_side_t *me, mix_t *mix, unsigned number)
{
    unsigned slot = number % MIX_WINDOW;
    size_t length = mix_length(&mix->state, number);

    while (mix->busy[slot]) {
        *(int*)fab_entry(me, &me->tx).op_context = 0;
    }
    mix->busy[slot] = 1;
    fab_fill(mix->out[slot], length, fab_tint(me->index, number));
    FAB_MUST(me, fi_tsend(me->ep, mix->out[slot], length, NULL, me->peer, 7,
                          &mix->busy[slot]));
}

static void mix_recv(fab_side_t *me, mix_t *mix, unsigned number)
{
    size_t length = mix_length(&mix->other, number);

    FAB_MUST(me, fi_trecv(me->ep, mix->in, MIX_ROOM, NULL, me->peer, 7, 0,
                          NULL));
    FAB_EQUAL(fab_entry(me, &me->rx).len, length);
    FAB_FILLED(me, mix->in, length, number);
}

/* Random sizes and moments: nothing is lost, doubled or overtaken */
FAB_CASE(random_mix)
{
    enum { COUNT = 200 };
    mix_t mix = {
        .state = fab_seed() + (uint64_t)me->index,
        .other = fab_seed() + (uint64_t)!me->index,
        .in    = msg_alloc(MIX_ROOM)
    };
    unsigned i, taken = 0;

    for (i = 0; i < MIX_WINDOW; ++i) {
        mix.out[i] = msg_alloc(MIX_ROOM);
    }
    for (i = 0; i < COUNT; ++i) {
        mix_send(me, &mix, i);
        /* Take as many as have been sent: neither side runs ahead */
        while ((i % MIX_WINDOW == MIX_WINDOW - 1) && (taken <= i)) {
            mix_recv(me, &mix, taken++);
        }
    }
    for (i = 0; i < MIX_WINDOW; ++i) {
        while (mix.busy[i]) {
            *(int*)fab_entry(me, &me->tx).op_context = 0;
        }
        free(mix.out[i]);
    }
    free(mix.in);
}

/* Messages of one tag stay in order though their sizes take different ways */
FAB_CASE(order)
{
    static const size_t lengths[] = {8, 100000, 0, 3000, 300000, 192, 40000};
    enum { COUNT = 7, ROUNDS = 5 };
    uint8_t *out[COUNT], *in[COUNT];
    unsigned i, round;

    for (i = 0; i < COUNT; ++i) {
        out[i] = msg_alloc(lengths[i]);
        in[i]  = msg_alloc(300000);
    }
    for (round = 0; round < ROUNDS; ++round) {
        for (i = 0; i < COUNT; ++i) {
            fab_fill(out[i], lengths[i], fab_tint(me->index, round * 10 + i));
            FAB_MUST(me, fi_tsend(me->ep, out[i], lengths[i], NULL, me->peer,
                                  1, out[i]));
        }
        for (i = 0; i < COUNT; ++i) {
            FAB_MUST(me, fi_trecv(me->ep, in[i], 300000, NULL, FI_ADDR_UNSPEC,
                                  0, MSG_ANY_TAG, in[i]));
        }
        fab_entries(me, &me->rx, COUNT);
        fab_entries(me, &me->tx, COUNT);
        for (i = 0; i < COUNT; ++i) {
            FAB_FILLED(me, in[i], lengths[i], round * 10 + i);
        }
        fab_barrier(me);
    }
    for (i = 0; i < COUNT; ++i) {
        free(out[i]);
        free(in[i]);
    }
}

/* Receives in another order than the sends, by tag and by mask */
FAB_CASE(tags)
{
    enum { COUNT = 16 };
    uint64_t out[COUNT], in[COUNT];
    unsigned i, k;

    for (i = 0; i < COUNT; ++i) {
        out[i] = fab_tint(me->index, i);
        FAB_MUST(me, fi_tsend(me->ep, &out[i], 8, NULL, me->peer, 0x100 + i,
                              NULL));
    }
    for (i = 0; i < COUNT; i += 2) {
        k     = COUNT - 2 - i;
        in[k] = 0;
        FAB_MUST(me, fi_trecv(me->ep, &in[k], 8, NULL, me->peer, 0x100 + k, 0,
                              NULL));
        FAB_EQUAL(fab_entry(me, &me->rx).tag, 0x100 + k);
        FAB_EQUAL(in[k], fab_tint(!me->index, k));
    }
    /* What is left has odd tags: any of them, the oldest first */
    for (i = 1; i < COUNT; i += 2) {
        FAB_MUST(me, fi_trecv(me->ep, &in[i], 8, NULL, FI_ADDR_UNSPEC, 0x101,
                              0xfe, NULL));
        FAB_EQUAL(fab_entry(me, &me->rx).tag, 0x100 + i);
        FAB_EQUAL(in[i], fab_tint(!me->index, i));
    }
    fab_entries(me, &me->tx, COUNT);
    if (fab_is_cassini()) {
        FAB_EQUAL(fi_trecv(me->ep, &in[0], 8, NULL, me->peer, 0,
                           MSG_ANY_TAG + 1, NULL), -FI_EINVAL);
    }
}

/* The two kinds do not match each other */
FAB_CASE(kinds)
{
    uint64_t out[2] = {fab_tint(me->index, 1), fab_tint(me->index, 2)};
    uint64_t in[2]  = {0, 0};

    FAB_MUST(me, fi_trecv(me->ep, &in[0], 8, NULL, FI_ADDR_UNSPEC, 0,
                          MSG_ANY_TAG, &in[0]));
    FAB_MUST(me, fi_recv(me->ep, &in[1], 8, NULL, FI_ADDR_UNSPEC, &in[1]));
    fab_barrier(me);
    FAB_MUST(me, fi_send(me->ep, &out[1], 8, NULL, me->peer, NULL));
    FAB_CHECK(fab_entry(me, &me->rx).op_context == &in[1]);
    FAB_MUST(me, fi_tsend(me->ep, &out[0], 8, NULL, me->peer, 3, NULL));
    FAB_CHECK(fab_entry(me, &me->rx).op_context == &in[0]);
    FAB_EQUAL(in[0], fab_tint(!me->index, 1));
    FAB_EQUAL(in[1], fab_tint(!me->index, 2));
    fab_entries(me, &me->tx, 2);
}

FAB_CASE(to_self)
{
    size_t i, length;
    uint8_t *out, *in;

    for (i = 0; i < ST_CUNIT_COUNT(msg_sizes); ++i) {
        length = msg_sizes[i];
        out    = msg_alloc(length);
        in     = msg_alloc(length);
        fab_fill(out, length, length);
        FAB_MUST(me, fi_tsend(me->ep, out, length, NULL, me->self, 5, NULL));
        FAB_MUST(me, fi_trecv(me->ep, in, length, NULL, me->self, 5, 0, NULL));
        FAB_EQUAL(fab_entry(me, &me->rx).len, length);
        fab_entry(me, &me->tx);
        FAB_EQUAL(fab_differs(in, length, length), length);
        free(out);
        free(in);
    }
}

/* A receive that names its source takes nothing of another */
FAB_CASE(directed)
{
    uint64_t out[2] = {fab_tint(me->index, 1), fab_tint(me->index, 2)};
    uint64_t in[2]  = {0, 0};
    fi_addr_t source = FI_ADDR_UNSPEC;
    struct fi_cq_tagged_entry entry;
    uint64_t since = 0;

    FAB_MUST(me, fi_trecv(me->ep, &in[0], 8, NULL, me->peer, 9, 0, NULL));
    FAB_MUST(me, fi_trecv(me->ep, &in[1], 8, NULL, me->self, 9, 0, NULL));
    fab_barrier(me);
    FAB_MUST(me, fi_tsend(me->ep, &out[1], 8, NULL, me->self, 9, NULL));
    while (fi_cq_readfrom(me->rx.cq, &entry, 1, &source) == -FI_EAGAIN) {
        fi_cq_read(me->tx.cq, NULL, 0);
        FAB_REQUIRE((since == 0) || (fab_now() - since < 60000000000ull));
        since = (since == 0) ? fab_now() : since;
    }
    FAB_EQUAL(in[1], out[1]);
    /* The message of the peer comes after the barrier; TSan does not see that
     * order where the peer is another process */
    FAB_EQUAL(__atomic_load_n(&in[0], __ATOMIC_RELAXED), 0);
    FAB_EQUAL(source, me->self);
    fab_barrier(me);
    FAB_MUST(me, fi_tsend(me->ep, &out[0], 8, NULL, me->peer, 9, NULL));
    fab_entry(me, &me->rx);
    FAB_EQUAL(in[0], fab_tint(!me->index, 1));
    fab_entries(me, &me->tx, 2);
}

FAB_CASE(cancel)
{
    uint64_t in[2] = {0, 0}, out = fab_tint(me->index, 4);
    struct fi_context context[2];
    struct fi_cq_err_entry err;

    FAB_MUST(me, fi_trecv(me->ep, &in[0], 8, NULL, me->peer, 1, 0,
                          &context[0]));
    FAB_MUST(me, fi_trecv(me->ep, &in[1], 8, NULL, me->peer, 1, 0,
                          &context[1]));
    FAB_EQUAL(fi_cancel(&me->ep->fid, &context[0]), 0);
    err = fab_error(me, &me->rx);
    FAB_EQUAL(err.err, FI_ECANCELED);
    FAB_CHECK(err.op_context == &context[0]);
    /* The message goes to the one that is left */
    fab_barrier(me);
    FAB_MUST(me, fi_tsend(me->ep, &out, 8, NULL, me->peer, 1, NULL));
    FAB_CHECK(fab_entry(me, &me->rx).op_context == &context[1]);
    FAB_EQUAL(in[1], fab_tint(!me->index, 4));
    FAB_EQUAL(in[0], 0);
    fab_entry(me, &me->tx);
    fi_cancel(&me->ep->fid, &context[1]);
    FAB_CHECK(fab_is_empty(me, &me->rx));
}

static void msg_truncated(fab_side_t *me, size_t length, size_t room)
{
    uint8_t *out = msg_alloc(length), *in = msg_alloc(room);
    struct fi_cq_err_entry err;

    fab_fill(out, length, fab_tint(me->index, length));
    FAB_MUST(me, fi_trecv(me->ep, in, room, NULL, me->peer, 2, 0, in));
    fab_barrier(me);
    FAB_MUST(me, fi_tsend(me->ep, out, length, NULL, me->peer, 2, NULL));
    err = fab_error(me, &me->rx);
    FAB_EQUAL(err.err, FI_ETRUNC);
    FAB_CHECK(err.op_context == in);
    FAB_EQUAL(err.olen, length - room);
    FAB_CHECK(!fab_is_cassini() || (err.len == room));
    FAB_CHECK(msg_guard_is_whole(in + room));
    fab_entry(me, &me->tx);
    fab_barrier(me);
    free(out);
    free(in);
}

FAB_CASE(truncation)
{
    msg_truncated(me, 64, 10);
    msg_truncated(me, 3000, 2999);
    msg_truncated(me, 100000, 5);
    msg_truncated(me, 300000, 70000);
}

FAB_CASE_CALL(truncation_to_nothing, msg_truncated(me, 8, 0),
              .cxi = "cxi crashes: it looks for the buffer's memory")

/* A search for a message of the peer: its entry; err is 0 if one is there */
static struct fi_cq_err_entry msg_search(fab_side_t *me, uint64_t flags,
                                         uint64_t tag,
                                         struct fi_context *context)
{
    struct fi_msg_tagged msg    = {
        .addr = me->peer, .tag = tag, .context = context
    };
    struct fi_cq_err_entry seen = {0};
    struct fi_cq_tagged_entry entry;

    FAB_MUST(me, fi_trecvmsg(me->ep, &msg, flags | FI_COMPLETION));
    FAB_UNTIL(me, (me->rx.count > 0) ||
                  (fi_cq_readerr(me->rx.cq, &seen, 0) == 1));
    if (me->rx.count > 0) {
        entry = fab_entry(me, &me->rx);
        seen  = (struct fi_cq_err_entry){
            .op_context = entry.op_context, .flags = entry.flags,
            .len = entry.len, .buf = entry.buf, .tag = entry.tag
        };
    }
    FAB_CHECK(seen.op_context == context);
    FAB_EQUAL(seen.flags & (FI_RECV | FI_TAGGED), FI_RECV | FI_TAGGED);
    FAB_CHECK((seen.err == 0) || (seen.err == FI_ENOMSG));
    return seen;
}

/* The same, until there is one */
static void msg_found(fab_side_t *me, uint64_t flags, uint64_t tag,
                      struct fi_context *context, size_t length)
{
    struct fi_cq_err_entry seen;

    FAB_UNTIL(me, (seen = msg_search(me, flags, tag, context)).err == 0);
    FAB_EQUAL(seen.len, length);
    FAB_EQUAL(seen.tag, tag);
    FAB_CHECK(seen.buf == NULL);
}

static void msg_missed(fab_side_t *me, uint64_t flags, uint64_t tag,
                       struct fi_context *context)
{
    struct fi_cq_err_entry seen = msg_search(me, flags, tag, context);

    FAB_EQUAL(seen.err, FI_ENOMSG);
    FAB_EQUAL(seen.len, 0);
    FAB_EQUAL(seen.olen, 0);
    if (fab_is_cassini()) {
        FAB_EQUAL(seen.tag, tag);
        FAB_EQUAL(seen.prov_errno, 0); /* As no message has one */
    }
}

static ssize_t msg_claim(fab_side_t *me, uint64_t tag, void *data,
                         size_t length, struct fi_context *context)
{
    struct iovec iov         = {.iov_base = data, .iov_len = length};
    struct fi_msg_tagged msg = {
        .msg_iov   = &iov,
        .iov_count = 1,
        .addr      = me->peer,
        .tag       = tag,
        .context   = context
    };

    return FAB_POST(me, fi_trecvmsg(me->ep, &msg, FI_CLAIM | FI_COMPLETION));
}

/* A message that is seen stays: seen again, and received */
FAB_CASE(peek)
{
    static const size_t lengths[] = {0, 8, 3000, 100000, 300000};
    uint8_t *out = msg_alloc(300000), *in = msg_alloc(300000);
    struct fi_context context;
    size_t i;

    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        fab_fill(out, lengths[i], fab_tint(me->index, i));
        FAB_MUST(me, fi_tsend(me->ep, out, lengths[i], NULL, me->peer, i,
                              NULL));
        msg_found(me, FI_PEEK, i, &context, lengths[i]);
        msg_found(me, FI_PEEK, i, &context, lengths[i]);
        msg_missed(me, FI_PEEK, i + 1000, &context);
        FAB_MUST(me, fi_trecv(me->ep, in, 300000, NULL, me->peer, i, 0, in));
        FAB_EQUAL(fab_entry(me, &me->rx).len, lengths[i]);
        FAB_FILLED(me, in, lengths[i], i);
        msg_missed(me, FI_PEEK, i, &context);
        fab_entry(me, &me->tx);
        fab_barrier(me);
    }
    if (fab_is_cassini()) { /* Two searches and a receive each */
        fab_reads(me, me->recv, 3 * i);
    }
    free(out);
    free(in);
}

/* A claimed message is nobody else's, and comes when it is asked for */
FAB_CASE(claim)
{
    static const size_t lengths[] = {100000, 8, 3000, 300000};
    enum { COUNT = 4, ROOM = 300000 };
    struct fi_context context[COUNT];
    uint8_t *out[COUNT], *in = msg_alloc(ROOM);
    unsigned i;

    for (i = 0; i < COUNT; ++i) {
        out[i] = msg_alloc(lengths[i]);
        fab_fill(out[i], lengths[i], fab_tint(me->index, i));
        FAB_MUST(me, fi_tsend(me->ep, out[i], lengths[i], NULL, me->peer, 7,
                              NULL));
    }
    for (i = 0; i < COUNT - 1; ++i) {
        msg_found(me, FI_PEEK | FI_CLAIM, 7, &context[i], lengths[i]);
    }
    FAB_MUST(me, fi_trecv(me->ep, in, ROOM, NULL, me->peer, 7, 0, in));
    FAB_EQUAL(fab_entry(me, &me->rx).len, lengths[i]);
    FAB_FILLED(me, in, lengths[i], i);
    msg_missed(me, FI_PEEK, 7, &context[i]);
    msg_missed(me, FI_PEEK | FI_CLAIM, 7, &context[i]);
    while (i-- > 0) {
        FAB_EQUAL(msg_claim(me, 7, in, ROOM, &context[i]), 0);
        FAB_CHECK(fab_entry(me, &me->rx).op_context == &context[i]);
        FAB_FILLED(me, in, lengths[i], i);
    }
    fab_entries(me, &me->tx, COUNT);
    fab_barrier(me);
    for (i = 0; i < COUNT; ++i) {
        free(out[i]);
    }
    free(in);
}

/* The sender is gone: the receive of a claimed message fails, and what nobody
 * asks for goes with the endpoint */
FAB_CASE(claim_lost, .victim = 1,
         .sockets = "sockets does not tell of a peer that is gone",
         .cxi = "cxi waits for a fetch that never comes")
{
    enum { LENGTH = 100000 };
    struct fi_context context[2];
    uint8_t *data = msg_alloc(LENGTH);
    uint64_t i;

    for (i = 0; (i < 2) && (me->index == 1); ++i) {
        FAB_MUST(me, fi_tsend(me->ep, data, LENGTH, NULL, me->peer, i, NULL));
    }
    FAB_UNTIL(me, me->index == 0); /* It is killed there */
    for (i = 0; i < 2; ++i) {
        msg_found(me, FI_PEEK | FI_CLAIM, i, &context[i], LENGTH);
    }
    FAB_REQUIRE(kill((pid_t)me->theirs.pid, SIGKILL) == 0);
    FAB_MUST(me, fi_tsend(me->ep, data, 8, NULL, me->peer, 2, NULL));
    FAB_EQUAL(fab_error(me, &me->tx).err, FI_EIO);
    FAB_EQUAL(msg_claim(me, 0, data, LENGTH, &context[0]), 0);
    FAB_EQUAL(fab_error(me, &me->rx).err, FI_EIO);
    free(data);
}

/* A claim that does not fit is refused and leaves the message claimed; a
 * message is claimed by one context, once. cxi has no FI_DISCARD */
FAB_CASE(claim_refused, .sockets = "sockets has its own rules",
         .cxi = "cxi uses the message of any context, even a freed one")
{
    static const uint64_t discards[] = {
        FI_DISCARD, FI_PEEK | FI_DISCARD, FI_CLAIM | FI_DISCARD
    };
    uint64_t out              = fab_tint(me->index, 1), in = 0;
    struct fi_context context = {0}, unknown;
    struct fi_msg_tagged msg  = {.addr = me->peer, .tag = 7};
    struct fi_msg plain       = {.addr = me->peer};
    unsigned i;

    memset(&unknown, 0x5a, sizeof(unknown));
    FAB_MUST(me, fi_tsend(me->ep, &out, 8, NULL, me->peer, 7, NULL));
    msg_found(me, FI_PEEK | FI_CLAIM, 7, &context, 8);
    FAB_EQUAL(msg_claim(me, 7, &in, 8, NULL), -FI_EINVAL);
    FAB_EQUAL(msg_claim(me, 7, &in, 8, &unknown), -FI_EINVAL);
    FAB_EQUAL(msg_claim(me, 6, &in, 8, &context), -FI_ENOMSG);
    FAB_EQUAL(fi_trecvmsg(me->ep, &msg, FI_PEEK | FI_CLAIM), -FI_EINVAL);
    FAB_EQUAL(fi_trecvmsg(me->ep, NULL, FI_PEEK), -FI_EINVAL);
    FAB_EQUAL(fi_recvmsg(me->ep, &plain, FI_PEEK), -FI_EBADFLAGS);
    msg.context = &context;
    for (i = 0; i < ST_CUNIT_COUNT(discards); ++i) {
        FAB_EQUAL(fi_trecvmsg(me->ep, &msg, discards[i]), -FI_EBADFLAGS);
    }
    FAB_EQUAL(fi_cancel(&me->ep->fid, &context), -FI_ENOENT);
    FAB_EQUAL(msg_claim(me, 7, &in, 8, &context), 0);
    FAB_EQUAL(fab_entry(me, &me->rx).len, 8);
    FAB_EQUAL(in, fab_tint(!me->index, 1));
    FAB_EQUAL(msg_claim(me, 7, &in, 8, &context), -FI_EINVAL);
    fab_entry(me, &me->tx);
}

/* One buffer for many; the last one says that the buffer is used up */
FAB_CASE(multi_recv)
{
    enum { LENGTH = 100, ROOM = 1000, MIN = 150, FIT = 9 };
    uint8_t buffer[ROOM], out[LENGTH];
    struct iovec iov     = {.iov_base = buffer, .iov_len = sizeof(buffer)};
    struct fi_msg msg    = {
        .msg_iov   = &iov,
        .iov_count = 1,
        .addr      = FI_ADDR_UNSPEC,
        .context   = buffer
    };
    size_t min           = MIN;
    struct fi_cq_tagged_entry entry;
    unsigned i;

    FAB_EQUAL(fi_setopt(&me->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
                        &min, sizeof(min)), 0);
    FAB_MUST(me, fi_recvmsg(me->ep, &msg, FI_MULTI_RECV));
    fab_barrier(me);
    for (i = 0; i < FIT; ++i) {
        fab_fill(out, LENGTH, fab_tint(me->index, i));
        FAB_MUST(me, fi_send(me->ep, out, LENGTH, NULL, me->peer, NULL));
        fab_entry(me, &me->tx);
    }
    for (i = 0; i < FIT; ++i) {
        entry = fab_entry(me, &me->rx);
        FAB_CHECK(entry.op_context == buffer);
        FAB_EQUAL(entry.len, LENGTH);
        FAB_CHECK(entry.buf == buffer + (i * LENGTH));
        FAB_FILLED(me, entry.buf, LENGTH, i);
        FAB_EQUAL(!!(entry.flags & FI_MULTI_RECV), i == FIT - 1);
    }
}

FAB_CASE(inject)
{
    enum { COUNT = 100 };
    size_t limit = me->info->tx_attr->inject_size;
    uint8_t out[256], in[256];
    unsigned i;

    limit = (limit < 192) ? limit : 192;
    for (i = 0; i < COUNT; ++i) {
        fab_fill(out, limit, fab_tint(me->index, i));
        FAB_MUST(me, fi_tinject(me->ep, out, limit, me->peer, i));
        memset(out, 0, sizeof(out));
    }
    for (i = 0; i < COUNT; ++i) {
        FAB_MUST(me, fi_trecv(me->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC,
                              COUNT - 1 - i, 0, NULL));
        FAB_EQUAL(fab_entry(me, &me->rx).len, limit);
        FAB_FILLED(me, in, limit, COUNT - 1 - i);
    }
    FAB_CHECK(fab_is_empty(me, &me->tx));
    fab_count(me, me->send, COUNT);
    if (fab_is_cassini()) {
        FAB_EQUAL(fi_inject(me->ep, out, limit + 1, me->peer), -FI_EMSGSIZE);
    }
}

static void msg_flags(fab_side_t *me, uint64_t flags)
{
    uint64_t out         = fab_tint(me->index, flags), in = 0;
    struct iovec iov     = {.iov_base = &out, .iov_len = sizeof(out)};
    struct fi_msg msg    = {
        .msg_iov   = &iov,
        .iov_count = 1,
        .addr      = me->peer,
        .context   = &out
    };
    struct fi_cq_tagged_entry entry;

    FAB_MUST(me, fi_recv(me->ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
    fab_barrier(me);
    FAB_MUST(me, fi_sendmsg(me->ep, &msg, flags | FI_COMPLETION));
    entry = fab_entry(me, &me->tx);
    FAB_CHECK(entry.op_context == &out);
    fab_entry(me, &me->rx);
    FAB_EQUAL(in, fab_tint(!me->index, flags));
}

static const fab_config_t with_fence = {.caps = FI_FENCE};

FAB_CASE(flags, .config = &with_fence)
{
    msg_flags(me, 0);
    msg_flags(me, FI_INJECT);
    msg_flags(me, FI_TRANSMIT_COMPLETE);
    msg_flags(me, FI_DELIVERY_COMPLETE);
    msg_flags(me, FI_FENCE | FI_TRANSMIT_COMPLETE);
}

/* It comes beside payload of any length */
FAB_CASE(remote_data)
{
    static const size_t lengths[] = {1, 8, 9, 24, 25, 100};
    struct fi_cq_tagged_entry entry;
    uint8_t out[100], in[100];
    uint64_t i, data;

    for (i = 0; i < ST_CUNIT_COUNT(lengths); ++i) {
        data = 0x1234567890 + i;
        fab_fill(out, lengths[i], fab_tint(me->index, i));
        FAB_MUST(me, fi_recv(me->ep, in, 100, NULL, FI_ADDR_UNSPEC, NULL));
        fab_barrier(me);
        FAB_MUST(me, fi_senddata(me->ep, out, lengths[i], NULL,
                                 data + me->index, me->peer, NULL));
        entry = fab_entry(me, &me->rx);
        FAB_CHECK(entry.flags & FI_REMOTE_CQ_DATA);
        FAB_EQUAL(entry.data, data + !me->index);
        FAB_FILLED(me, in, lengths[i], i);
        FAB_MUST(me, fi_trecv(me->ep, in, 100, NULL, FI_ADDR_UNSPEC, 3, 0,
                              NULL));
        fab_barrier(me);
        FAB_MUST(me, fi_tsenddata(me->ep, out, lengths[i], NULL, 77, me->peer,
                                  3, NULL));
        entry = fab_entry(me, &me->rx);
        FAB_CHECK(entry.flags & FI_REMOTE_CQ_DATA);
        FAB_EQUAL(entry.data, 77);
        fab_entries(me, &me->tx, 2);
    }
}

FAB_CASE(remote_data_unexpected,
         .sockets = "sockets forgets that an unexpected message has data")
{
    uint64_t out = fab_tint(me->index, 1), in = 0;
    struct fi_cq_tagged_entry entry;

    FAB_MUST(me, fi_tsenddata(me->ep, &out, 8, NULL, 77, me->peer, 3, NULL));
    fab_barrier(me);
    FAB_MUST(me, fi_trecv(me->ep, &in, 8, NULL, FI_ADDR_UNSPEC, 3, 0, NULL));
    entry = fab_entry(me, &me->rx);
    FAB_CHECK(entry.flags & FI_REMOTE_CQ_DATA);
    FAB_EQUAL(entry.data, 77);
    FAB_EQUAL(in, fab_tint(!me->index, 1));
    fab_entry(me, &me->tx);
}

/* A message that asks for a completion of some kind, which comes before there
 * is a receive, or does not come as long as there is none */
static void complete(fab_side_t *me, uint64_t flags, int is_early)
{
    uint64_t word            = 5;
    struct iovec iov         = {.iov_base = &word, .iov_len = sizeof(word)};
    struct fi_msg_tagged msg = {
        .msg_iov   = &iov,
        .iov_count = 1,
        .addr      = me->peer,
        .tag       = 4
    };

    if (me->index == 0) {
        FAB_MUST(me, fi_tsendmsg(me->ep, &msg, flags | FI_COMPLETION));
        if (is_early) {
            fab_entry(me, &me->tx);
        } else {
            FAB_CHECK(fab_is_empty(me, &me->tx));
        }
        fab_barrier(me);
        if (!is_early) {
            fab_entry(me, &me->tx);
        }
    } else {
        fab_linger(me);
        fab_barrier(me);
        FAB_MUST(me, fi_trecv(me->ep, &word, 8, NULL, me->peer, 4, 0, NULL));
        fab_entry(me, &me->rx);
    }
    fab_barrier(me);
}

/* Not before a receive has it. On CXI delivery-complete is of memory alone */
FAB_CASE(delivery_complete,
         .sockets = "sockets completes a message that no receive has taken")
{
    complete(me, FI_DELIVERY_COMPLETE, fab_is_strict());
    complete(me, FI_MATCH_COMPLETE, 0);
}

/* A thousand that nobody has asked for yet */
FAB_CASE(flood)
{
    enum { COUNT = 1000 };
    uint64_t out, in;
    unsigned i;

    for (i = 0; i < COUNT; ++i) {
        out = fab_tint(me->index, i);
        FAB_MUST(me, fi_inject(me->ep, &out, sizeof(out), me->peer));
    }
    fab_barrier(me);
    for (i = 0; i < COUNT; ++i) {
        in = 0;
        FAB_MUST(me, fi_recv(me->ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC,
                             NULL));
        fab_entry(me, &me->rx);
        FAB_EQUAL(in, fab_tint(!me->index, i));
    }
}

FAB_SUITE("fab_msg")
