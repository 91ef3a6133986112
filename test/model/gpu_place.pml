/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_place.pml - lane direct on streams of GPUs: in which command of a stream
 * the data may be moved, so that legal programs come to their end. Nothing
 * moves data but the commands of the two streams themselves.
 *
 * Two messages, 0 and 1 (the design's A and C), in ways that may differ:
 *   ARRIVE   tier K: the start that comes second copies
 *   INBOX    tier M: the send's start copies to the inbox, place k mod PLACES;
 *            the receive's wait copies out and gives the credit, and the send's
 *            wait k is for the credit of k+1-PLACES
 *   PULL     the receive's wait copies from the send's buffer
 *   PUSH     the send's wait copies to the receive's buffer
 *
 * Programs; in all, a send is complete when its receive has started:
 *   BACK     rank 0: r(0) s(1) w(1) w(0)       rank 1: s(0) w(0) r(1) w(1)
 *            broken with PULL: rank 1 waits for rank 0's last wait
 *   FORTH    rank 0: s(0) r(1) w(1) w(0)       rank 1: r(0) w(0) s(1) w(1)
 *            the mirror image (P2 of st_progress.h); broken with PUSH
 *   P1       rank 0: s(0) w(0) s(1) w(1)       rank 1: r(0) r(1) w(1) w(0)
 *            broken with PULL, and with INBOX and PLACES=1
 *   P3       FORTH, and rank 0's s(0) is on a stream of its own, which waits
 *            when the host has seen message 1
 *   POLL     P3, and rank 1 has no wait for message 0 until the end: its host
 *            asks whether one would pass, and enqueues the rest then
 *   FACES    both: r(i) s(1-i), w(both)
 *   LOOP     rank 0: s(0) w(0)                 rank 1: r(0) w(0)
 *
 * INBOX with PLACES=2 is enough for all: when the receive of k has started, its
 * wait of k-1 has run, and has given the credit that the send's wait of k is
 * for. So each wait passes as soon as it does where a send is complete when its
 * receive has started.
 *
 * Broken variants: NO_CREDIT (the send's wait is for nothing), EARLY (ARRIVE,
 * and the start that comes first says that the use is over).
 */
#include "common.pml"

#ifndef USES
#define USES 3
#endif
#ifndef PLACES
#define PLACES 2
#endif

#define ARRIVE 1
#define INBOX 2
#define PULL 3
#define PUSH 4
#ifndef WAY
#define WAY ARRIVE
#endif
#ifndef WAY_1
#define WAY_1 WAY
#endif
#define WAY_OF(msg) ((msg) == 0 -> WAY : WAY_1)

bool overwrite, wrong_data;

byte sent[2], begun[2];        /* starts */
byte over[2];                  /* uses that are copied to their place */
byte source[2], target[2];     /* payloads: the number of the use */
byte inbox[2 * PLACES];
#define PLACE(msg, k) inbox[(msg) * PLACES + (k) % PLACES]

/* What has happened */
byte seen[2];                  /* waits of receives that have run */

inline move(msg, k)
{
    atomic { target[msg] = source[msg]; over[msg] = k }
}

inline start_send(msg, k)
{
    atomic {
        source[msg] = k;
        if
        :: WAY_OF(msg) == INBOX ->
            CHECK(overwrite, over[msg] + PLACES >= k);
            PLACE(msg, k) = k
        :: else
        fi;
        sent[msg] = k;
        if
        :: WAY_OF(msg) == ARRIVE && begun[msg] >= k -> move(msg, k)
        :: else
        fi
    }
}

inline start_recv(msg, k)
{
    atomic {
        begun[msg] = k;
        if
        :: WAY_OF(msg) == ARRIVE && sent[msg] >= k -> move(msg, k)
#ifdef EARLY
        :: WAY_OF(msg) == ARRIVE && sent[msg] < k -> over[msg] = k
#endif
        :: else
        fi
    }
}

#ifdef NO_CREDIT
#define CREDIT(k) 0
#else
#define CREDIT(k) ((k) + 1 > PLACES -> (k) + 1 - PLACES : 0)
#endif

inline wait_send(msg, k)
{
    atomic {
        if
        :: WAY_OF(msg) == INBOX -> over[msg] >= CREDIT(k)
        :: WAY_OF(msg) == PUSH -> begun[msg] >= k -> move(msg, k)
        :: WAY_OF(msg) == ARRIVE || WAY_OF(msg) == PULL -> over[msg] >= k
        fi;
        source[msg] = 0
    }
}

inline wait_recv(msg, k)
{
    atomic {
        if
        :: WAY_OF(msg) == INBOX ->
            sent[msg] >= k -> target[msg] = PLACE(msg, k); over[msg] = k
        :: WAY_OF(msg) == PULL -> sent[msg] >= k -> move(msg, k)
        :: WAY_OF(msg) == ARRIVE || WAY_OF(msg) == PUSH -> over[msg] >= k
        fi;
        CHECK(wrong_data, target[msg] == k);
        seen[msg] = k
    }
}

/* A wait would pass. Nothing but a wait moves the data of INBOX, PULL, PUSH */
inline query(msg, k)
{
    (WAY_OF(msg) == ARRIVE || WAY_OF(msg) == PUSH -> over[msg] : sent[msg]) >= k
}

/* Commands of a stream, of the k-th round */
#define S(msg) start_send(msg, k)
#define R(msg) start_recv(msg, k)
#define WS(msg) wait_send(msg, k)
#define WR(msg) wait_recv(msg, k)
#define Q(msg) query(msg, k)
#define STREAM(name, commands) \
    active proctype name() \
    { \
        byte k; \
        for (k : 1 .. USES) { commands } \
        FINISH \
    }

#if defined(BACK)
STREAM(stream_0, R(0); S(1); WS(1); WR(0))
STREAM(stream_1, S(0); WS(0); R(1); WR(1))
#elif defined(FORTH)
STREAM(stream_0, S(0); R(1); WR(1); WS(0))
STREAM(stream_1, R(0); WR(0); S(1); WS(1))
#elif defined(P1)
STREAM(stream_0, S(0); WS(0); S(1); WS(1))
STREAM(stream_1, R(0); R(1); WR(1); WR(0))
#elif defined(P3)
STREAM(stream_0, S(0); seen[1] >= k; WS(0))
STREAM(stream_0_2, R(1); WR(1))
STREAM(stream_1, R(0); WR(0); S(1); WS(1))
#elif defined(POLL)
STREAM(stream_0, S(0); seen[1] >= k; WS(0))
STREAM(stream_0_2, R(1); WR(1))
STREAM(stream_1, R(0); Q(0); S(1); WS(1); WR(0))
#elif defined(FACES)
STREAM(stream_0, R(0); S(1); WR(0); WS(1))
STREAM(stream_1, R(1); S(0); WR(1); WS(0))
#else /* LOOP */
STREAM(stream_0, S(0); WS(0))
STREAM(stream_1, R(0); WR(0))
#endif
