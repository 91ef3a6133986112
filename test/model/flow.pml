/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flow.pml - which use gets the few deferred-work entries (docs/protocols.md,
 * "Entries and counters").
 *
 * Rank A sends by OPS operations, each on a queue and stream of its own, USES
 * times; rank B receives all of them on one stream, in an order that A does not
 * know. A's host runs ahead as far as it likes, in any order, and so may give
 * the entries to uses whose receives come last, while B waits for the first
 * ones. Every order of the two is a legal program, and none may deadlock.
 *
 * A use takes one of A's entries, from when it is posted until it is done; it
 * goes once it is posted, and both streams have started it. All runs are
 * finite, so that no deadlock means progress.
 *
 *   (nothing)   sound: one entry of each operation is its own from match on,
 *               and AHEAD more are for whoever comes. A host call posts what it
 *               can and never waits; the rest is late: a thread posts it,
 *               looking at all late operations
 *   NO_THREAD   broken: only host calls post, and the host makes no more
 *   FIFO        broken: all entries are common, and uses get them in the order
 *               of the calls
 *   LIST        broken: all entries are common, and late operations wait for
 *               any
 *   HEAD_ONLY   broken: own entries, but of the late uses only the first is
 *               looked at
 *   HOST_WAITS  broken: own entries, but a call waits until its use is posted
 *
 * FIFO and LIST have as many entries as the sound way has in all.
 */
#include "common.pml"

#ifndef OPS
#define OPS 2
#endif

#ifndef USES
#define USES 3
#endif

#ifndef AHEAD
#define AHEAD 1
#endif

#if defined(FIFO) || defined(HEAD_ONLY)
#define IN_ORDER
#endif

/* Entries that are not an operation's own */
#if defined(FIFO) || defined(LIST)
#define COMMON (OPS + AHEAD)
#define OWN_FREE(op) false
#else
#define COMMON AHEAD
#define OWN_FREE(op) (!own_used[op])
#endif

#define CAN_POST(op) (OWN_FREE(op) || common > 0)

byte common = COMMON;            /* those of them that are free */
bool own_used[OPS];
bool is_common[OPS * (USES + 1)]; /* which kind a use has */
#define KIND(op, use) is_common[(op) * (USES + 1) + (use)]

byte called[OPS];                /* uses that A's host has started */
byte posted[OPS];                /* of them, those that have an entry */
byte started[OPS];               /* starts that have run on A's stream */
byte recv_started[OPS];          /* and on B's */
byte landed[OPS], sent[OPS];
chan late = [OPS * USES] of { byte }; /* uses without an entry, in order */

/* A use of an operation has no entry and may get one now */
#ifdef IN_ORDER
#define IS_NEXT(op) (late ? [eval(op)] && CAN_POST(op))
#else
#define IS_NEXT(op) (posted[op] < called[op] && CAN_POST(op))
#endif

inline post(op)
{
    posted[op]++;
    if
    :: OWN_FREE(op) -> own_used[op] = true
    :: else -> common--; KIND(op, posted[op]) = true
    fi
}

inline use_done(op, use)
{
    if
    :: KIND(op, use) -> KIND(op, use) = false; common++
    :: else -> own_used[op] = false
    fi
}

#ifndef NO_THREAD
/* The thread, its look at one operation. What a host call posts could as well
 * have been posted by the thread right after it. */
proctype thread(byte op)
{
end:
    do
    :: atomic {
        IS_NEXT(op) ->
#ifdef IN_ORDER
        late ? _;
#endif
        post(op)
       }
    od
}
#endif

/* One call of A's host */
inline call(op)
{
    called[op]++;
#ifdef FIFO
    late ! op
#elif defined(HEAD_ONLY)
    /* An operation that is not late posts past those that are */
    if
    :: posted[op] + 1 == called[op] && CAN_POST(op) -> post(op)
    :: else -> late ! op
    fi
#elif defined(NO_THREAD)
    for (i : 0 .. OPS - 1) {
        do
        :: IS_NEXT(i) -> post(i)
        :: else -> break
        od
    }
    i = 0
#endif
}

/* Starts the uses of all operations in any order */
active proctype host()
{
    byte left = OPS * USES, op, i;

    do
    :: atomic {
        left > 0 ->
        select(op : 0 .. OPS - 1);
        if
        :: called[op] < USES ->
            left--;
            call(op)
#ifdef HOST_WAITS
            ;
            posted[op] == called[op]
#endif
        :: else
        fi;
        op = 0
       }
    :: left == 0 -> break
    od
}

/* The NICs, for one operation */
proctype transfer(byte op)
{
    byte use = 1;

    do
    :: use <= USES ->
        posted[op] >= use && started[op] >= use && recv_started[op] >= use;
        do
        :: landed[op] < use -> landed[op]++
        :: atomic { sent[op] < use -> use_done(op, use); sent[op]++ }
        :: atomic { landed[op] == use && sent[op] == use -> use++; break }
        od
    :: else -> break
    od
}

proctype stream_of_a(byte op)
{
    do
    :: atomic { started[op] < called[op] -> started[op]++ }
       sent[op] == started[op]
    :: started[op] == USES -> break
    od
}

/* Takes any order: each is some program's */
active proctype stream_of_b()
{
    byte left = OPS * USES, op;

    do
    :: atomic {
        left > 0 ->
        select(op : 0 .. OPS - 1);
        if
        :: recv_started[op] < USES -> recv_started[op]++; left--
        :: else
        fi
       }
       atomic { landed[op] == recv_started[op]; op = 0 }
    :: left == 0 -> break
    od;
    FINISH
}

init {
    byte op;

    atomic {
        for (op : 0 .. OPS - 1) {
            run transfer(op);
            run stream_of_a(op);
#ifndef NO_THREAD
            run thread(op)
#endif
        }
    }
}
