/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cxiemu_watch.c - links that a NIC looks at without being told.
 *
 * The peers are NICs of this process. Their records are writes to a key that
 * nobody has: they are taken, and that is all.
 */
#include "cxiemu_promise.h"
#include "cxiemu_util.h"
#include "cxiemu_wait.h"
#include "cxiemu_watch.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

/* More than are watched */
#define PEERS (CXIEMU_WATCHED_MAX + 3)

typedef struct peer {
    cxiemu_nic_t  *nic;
    cxiemu_link_t *link; /* To the owner */
} peer_t;


static void peer_create(peer_t *peer, const cxiemu_nic_t *owner)
{
    cxiemu_addr_t addr = {
        .version = CXIEMU_ADDR_VERSION,
        .host    = cxiemu_addr_host(),
        .nonce   = owner->nonce,
        .pid     = (uint32_t)getpid(),
        .fd      = (uint32_t)owner->map->fd
    };

    peer->nic = nic_create();
    cxiemu_nic_lock(peer->nic);
    CU_ASSERT_FATAL(cxiemu_link_get(peer->nic, &addr, &peer->link) == 0);
    cxiemu_nic_unlock(peer->nic);
}

static void peer_destroy(peer_t *peer)
{
    cxiemu_nic_destroy(peer->nic);
}

static void peer_send(const peer_t *peer)
{
    cxiemu_rec_t *rec;

    cxiemu_nic_lock(peer->nic);
    rec = cxiemu_link_reserve(peer->link, 0);
    CU_ASSERT_FATAL(rec != NULL);
    rec->type   = CXIEMU_REC_WRITE;
    rec->flags  = CXIEMU_REC_LAST;
    rec->length = 0;
    rec->tag    = ~0ull;
    cxiemu_link_commit(peer->link, rec);
    cxiemu_link_flush(peer->link);
    cxiemu_nic_unlock(peer->nic);
}

/* As a poll of the application; with the lock, as the NIC's thread ends watches
 * where nobody polls. */
static unsigned poll_locked(cxiemu_nic_t *nic)
{
    unsigned count;

    nic->may_watch = 1;
    count          = cxiemu_nic_progress(nic);
    nic->may_watch = 0;
    return count;
}

static int bit_stands(const cxiemu_nic_t *nic, const peer_t *peer)
{
    uint32_t port = peer->link->peer_port;

    return !!(__atomic_load_n(&nic->shm->ready[port / 64], __ATOMIC_RELAXED) &
              (1ull << (port % 64)));
}

/* The bit of a watched link is left alone, by either side, until the watch
 * ends; nothing is lost by that. */
static void test_stands(void)
{
    cxiemu_nic_t *nic = nic_create();
    peer_t peer;

    peer_create(&peer, nic);
    cxiemu_nic_lock(nic);
    peer_send(&peer);
    CU_ASSERT(bit_stands(nic, &peer));
    CU_ASSERT(poll_locked(nic) == 1);
    CU_ASSERT(nic->num_watches == 1);
    CU_ASSERT(!bit_stands(nic, &peer));

    peer_send(&peer);
    CU_ASSERT(bit_stands(nic, &peer));
    CU_ASSERT(cxiemu_watch_has_news(nic));
    CU_ASSERT(poll_locked(nic) == 1);
    CU_ASSERT(bit_stands(nic, &peer));
    CU_ASSERT(!cxiemu_watch_has_news(nic));
    CU_ASSERT(poll_locked(nic) == 0);

    peer_send(&peer);
    CU_ASSERT(poll_locked(nic) == 1);
    cxiemu_watch_end(nic);
    CU_ASSERT(cxiemu_watch_has_news(nic)); /* the bit, which is taken now */
    CU_ASSERT(cxiemu_nic_progress(nic) == 0);
    CU_ASSERT(!bit_stands(nic, &peer));
    CU_ASSERT(nic->num_watches == 0);

    peer_send(&peer);
    CU_ASSERT(cxiemu_nic_progress(nic) == 1);
    CU_ASSERT(nic->num_watches == 0); /* it was no poll */
    cxiemu_nic_unlock(nic);

    peer_destroy(&peer);
    cxiemu_nic_destroy(nic);
}

static unsigned poll_one(cxiemu_nic_t *nic)
{
    unsigned count;

    while (!cxiemu_nic_poll_begin(nic, &count)) {
        /* its thread has the lock */
    }
    cxiemu_nic_poll_end(nic, count);
    return count;
}

/* Longer than a poll says that there will be another one */
static void pass_time(void)
{
    uint64_t end = cxiemu_nic_now() + (2 * CXIEMU_SPINS_NS);

    while (cxiemu_nic_now() < end) {
    }
}

/* One poll, and whether it has said that there will be another one */
static int poll_promises(cxiemu_nic_t *nic)
{
    uint64_t begin = cxiemu_nic_now();

    (void)poll_one(nic);
    return nic_until(nic) >= begin + (CXIEMU_SPINS_NS / 2);
}

/* Who works between messages polls seldom: peers are not to take that for the
 * end of polling, and wake the thread for each message */
static void test_seldom(void)
{
    cxiemu_nic_t *nic = nic_create();
    peer_t peer;
    int i;

    peer_create(&peer, nic);
    for (i = 0; i < 64; ++i) {
        peer_send(&peer);
        pass_time();
        CU_ASSERT(poll_promises(peer.nic));
        if (poll_one(nic) > 0) { /* if not, the thread was faster */
            pass_time();
            CU_ASSERT(poll_promises(nic));
        }
    }
    peer_destroy(&peer);
    cxiemu_nic_destroy(nic);
}

static uint64_t peer_promised(const peer_t *peer)
{
    uint64_t until;

    cxiemu_nic_lock(peer->nic);
    until = peer->link->promised;
    cxiemu_nic_unlock(peer->nic);
    return until;
}

/* A peer's record that an owner has not taken who has just polled, and whose
 * thread sleeps for a moment only: nobody is woken. */
static void send_trusting(const peer_t *peer, cxiemu_nic_t *nic)
{
    uint32_t kicks;

    do {
        while (nic_thread(nic) != CXIEMU_THREAD_AWAKE) {
            (void)cxiemu_nic_poll_shared(nic);
            sched_yield();
        }
        cxiemu_nic_lock(peer->nic);
        cxiemu_promise_forget(peer->link);
        cxiemu_nic_unlock(peer->nic);
        (void)poll_one(nic);
        kicks = nic_kicks(nic);
        peer_send(peer);
        /* Once more if the promise was over before that, or the thread slept */
    } while ((nic_kicks(nic) != kicks) || (peer_promised(peer) == 0));
}

/* Let the promise's time pass, if the peer's thread has not ended it */
static void pass_promise(const peer_t *peer)
{
    while (cxiemu_nic_now() <= peer_promised(peer)) {
        sched_yield();
    }
}

/* How often the owner's thread is woken when the peer polls behind the promise,
 * for so long that it reads the clock */
static uint32_t kicks_behind(const peer_t *peer, const cxiemu_nic_t *nic)
{
    uint32_t kicks = nic_kicks(nic);
    int i;

    pass_promise(peer);
    for (i = 0; i < 64; ++i) {
        (void)poll_one(peer->nic);
    }
    CU_ASSERT(peer_promised(peer) == 0);
    return nic_kicks(nic) - kicks;
}

/* An application that has promised to poll, and does something longer: who
 * waits for it has its thread woken, once */
static void test_broken(void)
{
    cxiemu_nic_t *nic = nic_create();
    peer_t peer;
    int i;

    peer_create(&peer, nic);
    for (i = 0; i < 20; ++i) {
        send_trusting(&peer, nic);
        CU_ASSERT(kicks_behind(&peer, nic) == 1);
        CU_ASSERT(kicks_behind(&peer, nic) == 0);
    }
    peer_destroy(&peer);
    cxiemu_nic_destroy(nic);
}

/* One that has polled since is left alone */
static void test_kept(void)
{
    cxiemu_nic_t *nic = nic_create();
    peer_t peer;
    uint64_t until;

    peer_create(&peer, nic);
    send_trusting(&peer, nic);
    until = nic_until(nic);
    while (nic_until(nic) == until) {
        (void)poll_one(nic); /* little more is not said each time */
    }
    CU_ASSERT(kicks_behind(&peer, nic) == 0);
    peer_destroy(&peer);
    cxiemu_nic_destroy(nic);
}

/* Sleepers learn for how long there is nothing to look for */
static void test_left(void)
{
    cxiemu_nic_t *nic = nic_create();
    uint64_t now      = cxiemu_nic_now() + CXIEMU_NSEC_PER_MSEC;
    peer_t peer;

    peer_create(&peer, nic);
    cxiemu_nic_lock(peer.nic);
    CU_ASSERT(cxiemu_promise_left(peer.nic, now) == CXIEMU_FOREVER);
    cxiemu_promise_note(peer.link, now + 10);
    CU_ASSERT(cxiemu_promise_left(peer.nic, now) == 11);
    cxiemu_promise_note(peer.link, now + 20); /* it was rung again */
    cxiemu_promise_check(peer.nic, now + 15);
    CU_ASSERT(cxiemu_promise_left(peer.nic, now + 15) == 6);
    CU_ASSERT(cxiemu_promise_left(peer.nic, now + 21) == 0);
    cxiemu_promise_check(peer.nic, now + 21);
    CU_ASSERT(cxiemu_promise_left(peer.nic, now) == CXIEMU_FOREVER);
    cxiemu_promise_note(peer.link, now + 30);
    cxiemu_promise_forget(peer.link);
    CU_ASSERT(cxiemu_promise_left(peer.nic, now) == CXIEMU_FOREVER);
    cxiemu_nic_unlock(peer.nic);
    peer_destroy(&peer);
    cxiemu_nic_destroy(nic);
}

/* Those that are too many are told of as ever */
static void test_many(void)
{
    cxiemu_nic_t *nic = nic_create();
    peer_t peers[PEERS];
    unsigned round, i;

    for (i = 0; i < PEERS; ++i) {
        peer_create(&peers[i], nic);
    }
    cxiemu_nic_lock(nic);
    for (round = 0; round < 3; ++round) {
        for (i = 0; i < PEERS; ++i) {
            peer_send(&peers[i]);
        }
        CU_ASSERT(poll_locked(nic) == PEERS);
        CU_ASSERT(nic->num_watches == CXIEMU_WATCHED_MAX);
    }
    cxiemu_nic_unlock(nic);
    for (i = 0; i < PEERS; ++i) {
        peer_destroy(&peers[i]);
    }
    cxiemu_nic_destroy(nic);
}

/* A peer that ends is noticed by the next poll, with what it sent before */
static void test_ended(void)
{
    cxiemu_nic_t *nic = nic_create();
    peer_t peers[2];
    cxiemu_link_t *link;
    uint32_t ports[2];
    int i;

    for (i = 0; i < 2; ++i) {
        peer_create(&peers[i], nic);
        ports[i] = peers[i].link->peer_port;
    }
    cxiemu_nic_lock(nic);
    for (i = 0; i < 4; ++i) {
        peer_send(&peers[i % 2]);
        CU_ASSERT(poll_locked(nic) == 1);
    }
    CU_ASSERT(nic->num_watches == 2);
    peer_send(&peers[0]);
    peer_destroy(&peers[0]);
    CU_ASSERT(cxiemu_watch_has_news(nic));
    CU_ASSERT(poll_locked(nic) == 1);
    CU_ASSERT(nic->ports[ports[0]] == NULL);

    /* The other is watched again with what comes next */
    link = nic->ports[ports[1]];
    CU_ASSERT_FATAL(link != NULL);
    peer_send(&peers[1]);
    CU_ASSERT(poll_locked(nic) == 1);
    CU_ASSERT((nic->num_watches == 1) && (nic->watches[0].link == link));
    cxiemu_nic_unlock(nic);

    peer_destroy(&peers[1]);
    cxiemu_nic_destroy(nic);
}

/* The initiator learns of room though not each record's end is published */
static void test_laps(void)
{
    enum { COUNT = 5 * CXIEMU_CELLS };
    cxiemu_nic_t *nic = nic_create();
    unsigned taken    = 0;
    peer_t peer;
    int i;

    peer_create(&peer, nic);
    cxiemu_nic_lock(nic);
    for (i = 0; i < COUNT; ++i) {
        if ((i % (CXIEMU_CELLS - (CXIEMU_CELLS / 4))) == 0) {
            taken += poll_locked(nic);
        }
        peer_send(&peer);
    }
    taken += poll_locked(nic);
    CU_ASSERT(taken == COUNT);
    cxiemu_nic_unlock(nic);
    peer_destroy(&peer);
    cxiemu_nic_destroy(nic);
}

static const st_cunit_case_t cases[] = {
    {"stands", test_stands},
    {"seldom", test_seldom},
    {"broken", test_broken},
    {"kept", test_kept},
    {"left", test_left},
    {"many", test_many},
    {"ended", test_ended},
    {"laps", test_laps}
};

int main(int argc, char **argv)
{
    return st_cunit_main("cxiemu_watch", cases, ST_CUNIT_COUNT(cases), argc,
                         argv);
}
