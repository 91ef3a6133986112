/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct.pml - the direct lane: movers of the data of two ranks of one node
 * (docs/protocols.md, "Lane direct").
 *
 * A pair's shared memory holds how many uses its send and its receive have
 * started, `claim` and `done`. A mover that finds that both have started use k
 * claims it by compare-and-swap from k-1 to k, copies, and stores k to `done`
 * with release. Movers are
 *   any wait of a stream, for the started operations of its queue;
 *   a thread of each rank, for all.
 *
 * Programs (P1 to P3 of test/integration/st_progress.h; message 0 is their 1,
 * message 1 their X or Y):
 *   P1      A: s(0) w(0) s(1) w(1)          B: r(0) r(1) w(1) w(0)
 *   P2      A: s(0) r(1) w(1) w(0)          B: r(0) w(0) s(1) w(1)
 *   P3      P2, with s(0) on another queue of A, where its wait is enqueued
 *           once the host has seen w(1) pass
 *   P3_POLL P3, and r(0) on another queue of B, which nobody waits on: B's host
 *           polls message 0, then enqueues s(1) w(1)
 *   POLL    A: s(0)  B: r(0)                and both hosts poll
 *   LOOP    A: s(0) w(0) s(0) w(0) ...      B: r(0) w(0) r(0) w(0) ...
 * A host that polls goes round in circles, so that those programs are checked
 * for cycles without progress, under weak fairness (-DNP); the others are
 * finite.
 *
 * Broken variants:
 *   RECV_OWN      the only mover is a receive's wait, for its own operation
 *   RECV_ONLY     receives' waits, for the receives of their queue
 *   SEND_ONLY     sends' waits, for the sends of their queue
 *   NO_THREAD     all waits, but no thread
 *   CLAIM_BIT     a claim of 0 or 1 that is reset for each use: a mover that
 *                 has been slow copies once more
 *   DONE_FIRST    `done` is stored before the data
 *   BUFFERED      LAST_STARTER, but each side stores its own flag and then
 *                 reads the other's, which may still be in the other's store
 *                 buffer
 * LAST_STARTER is sound: no wait and no thread moves, but the last starter;
 * one word that both modify atomically tells which side that is.
 */
#include "common.pml"

#ifndef USES
#define USES 2
#endif

#ifdef LAST_STARTER
#define NO_WAIT_MOVES
#define NO_THREAD
#endif

#if defined(RECV_OWN) || defined(RECV_ONLY) || defined(SEND_ONLY)
#define NO_THREAD
#endif

#define SEND 0
#define RECV 1
#define AT(side, msg) ((side) * 2 + (msg))

bool overwrite, wrong_data;

byte started[4];               /* uses, of each side of each message */
byte claim[2], done[2];
byte source[2], target[2];     /* payloads: the number of the use */
byte buffered[4];              /* BUFFERED: what `started` will be */

/* What has happened, for the properties alone */
byte recv_begun[2], consumed[2];

#define BOTH_STARTED(msg, use) \
    (started[AT(SEND, msg)] >= (use) && started[AT(RECV, msg)] >= (use))

#ifdef CLAIM_BIT
#define IS_FREE(msg, use) (claim[msg] == 0)
#define TAKE(msg, use) claim[msg] = 1
#else
#define IS_FREE(msg, use) (claim[msg] == (use) - 1)
#define TAKE(msg, use) claim[msg] = use
#endif

#define CAN_MOVE(msg) \
    (BOTH_STARTED(msg, done[msg] + 1) && IS_FREE(msg, done[msg] + 1))

/* Move use `use`, if that is not 0. CAN_MOVE() found it, maybe long before the
 * claim is tried. */
inline move(msg)
{
    atomic {
        if
        :: use > 0 && IS_FREE(msg, use) -> TAKE(msg, use)
        :: else -> use = 0
        fi
    }
    if
    :: use > 0 ->
#ifdef DONE_FIRST
        done[msg] = use;
#endif
        value = source[msg];
        atomic {
            CHECK(overwrite, recv_begun[msg] == use && consumed[msg] < use);
            target[msg] = value
        }
#ifndef DONE_FIRST
        done[msg] = use;
#endif
#ifdef CLAIM_BIT
        claim[msg] = 0;
#endif
        use   = 0;
        value = 0
    :: else
    fi
}

#ifndef NO_THREAD
active [2] proctype thread()
{
    byte use, value;

end:
    do
    :: atomic { CAN_MOVE(0) -> use = done[0] + 1 } move(0)
    :: atomic { CAN_MOVE(1) -> use = done[1] + 1 } move(1)
    od
}
#endif

#ifdef BUFFERED
active proctype store_buffers()
{
end:
    do
    :: atomic { buffered[0] > started[0] -> started[0] = buffered[0] }
    :: atomic { buffered[1] > started[1] -> started[1] = buffered[1] }
    :: atomic { buffered[2] > started[2] -> started[2] = buffered[2] }
    :: atomic { buffered[3] > started[3] -> started[3] = buffered[3] }
    od
}
#endif

/* Use k starts; the last one of a pair moves if LAST_STARTER says so */
inline start(side, msg, k)
{
    atomic {
        if
        :: side == SEND -> source[msg] = k
        :: else -> recv_begun[msg] = k
        fi;
        mine = mine | (1 << AT(side, msg));
#ifdef BUFFERED
        buffered[AT(side, msg)] = k
#else
        started[AT(side, msg)] = k;
#ifdef LAST_STARTER
        use = (BOTH_STARTED(msg, k) -> k : 0)
#endif
#endif
    }
#ifdef BUFFERED
    use = (started[AT(1 - side, msg)] >= k -> k : 0);
#endif
#ifdef LAST_STARTER
    move(msg)
#endif
}

#define IS_MINE(side, msg) ((mine >> AT(side, msg)) & 1)

/* Whether a wait of a send or receive moves this message */
#ifdef NO_WAIT_MOVES
#define MOVES(side, waited, msg) false
#elif defined(RECV_OWN)
#define MOVES(side, waited, msg) (side == RECV && waited == msg)
#elif defined(RECV_ONLY)
#define MOVES(side, waited, msg) (side == RECV && IS_MINE(RECV, msg))
#elif defined(SEND_ONLY)
#define MOVES(side, waited, msg) (side == SEND && IS_MINE(SEND, msg))
#else
#define MOVES(side, waited, msg) (IS_MINE(SEND, msg) || IS_MINE(RECV, msg))
#endif

/* The wait of use k, and what the stream does with the buffer then */
inline wait(side, msg, k)
{
    do
    :: done[msg] >= k -> break
    :: atomic { MOVES(side, msg, 0) && CAN_MOVE(0) -> use = done[0] + 1 }
       move(0)
    :: atomic { MOVES(side, msg, 1) && CAN_MOVE(1) -> use = done[1] + 1 }
       move(1)
    od;
    atomic {
        if
        :: side == SEND -> source[msg] = 0
        :: else ->
            CHECK(wrong_data, target[msg] == k);
            consumed[msg] = k
        fi
    }
}

/* A host that asks again and again */
inline poll(msg, k)
{
    do
    :: done[msg] >= k -> break
    :: else
    od
}

/* Commands of a stream, of the k-th round */
#define S(msg) start(SEND, msg, k)
#define R(msg) start(RECV, msg, k)
#define WS(msg) wait(SEND, msg, k)
#define WR(msg) wait(RECV, msg, k)
#define STREAM(name, commands) \
    active proctype name() \
    { \
        byte use, value, mine, k; \
        for (k : 1 .. USES) { commands } \
        FINISH \
    }

#if defined(P1)
STREAM(stream_of_a, S(0); WS(0); S(1); WS(1))
STREAM(stream_of_b, R(0); R(1); WR(1); WR(0))
#elif defined(P2)
STREAM(stream_of_a, S(0); R(1); WR(1); WS(0))
STREAM(stream_of_b, R(0); WR(0); S(1); WS(1))
#elif defined(P3)
STREAM(stream_of_a_1, S(0); consumed[1] == k; WS(0))
STREAM(stream_of_a_2, R(1); WR(1))
STREAM(stream_of_b, R(0); WR(0); S(1); WS(1))
#elif defined(P3_POLL)
/* Streams with the host that enqueues once it has seen a message */
STREAM(stream_of_a_1, S(0); consumed[1] == k; WS(0))
STREAM(stream_of_a_2, R(1); WR(1))
STREAM(stream_of_b_1, R(0); poll(0, k))
STREAM(stream_of_b_2, poll(0, k); S(1); WS(1))
#elif defined(POLL)
STREAM(stream_of_a, S(0); poll(0, k))
STREAM(stream_of_b, R(0); poll(0, k))
#elif defined(LOOP)
STREAM(stream_of_a, S(0); WS(0))
STREAM(stream_of_b, R(0); WR(0))
#endif
