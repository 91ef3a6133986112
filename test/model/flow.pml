/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flow.pml - which use gets the few deferred-work entries, and what becomes of
 * one that finds none (docs/protocols.md, "Entries and counters").
 *
 * Rank A sends by OPS operations, each on a queue and stream of its own, USES
 * times; rank B receives all of them on one stream, in an order that A does not
 * know. A's host runs ahead as far as it likes, in any order, and so may give
 * the entries to uses whose receives come last, while B waits for the first
 * ones. Every order of the two is a legal program, and none may deadlock.
 *
 * A use of a send has two entries: its put, which goes at T >= 2k, that is once
 * both streams have started it, and the addition to the word that the stream
 * waits on, at C >= k. Each takes one of ENTRIES from when it is posted until
 * it is done. BOTH: those of B, for its clear-to-sends and words, are few as
 * well, and its host runs ahead, too.
 *
 * All runs are finite, so that no deadlock means progress.
 *
 *   (nothing)   sound, and what libucp_st is to do: entries are taken at the
 *               start, by the host's call, and an idle operation has none. What
 *               finds none is late, the put and the word each by itself.
 *               Whoever frees an entry posts what is late. What is late and due
 *               (its counter is at its threshold) a thread carries out itself,
 *               as a plain write or atomic of the same NIC. A lock lets one of
 *               the two do it
 *   FIFO        sound: late entries are posted in the order of the calls
 *   NO_POST     sound: what is late is never posted, only carried out
 *   RESERVED    sound, for comparison (with NO_CARRY, what libucp_st did
 *               before): each operation has a put and a word of its own from
 *               match on, and ENTRIES more are for whoever comes
 *   NO_CARRY    broken: what is late waits for an entry
 *   NO_THREAD   broken: only the host's calls post and carry out, and it makes
 *               no more
 *   HEAD_ONLY   broken: FIFO, and the thread looks at the first late one alone
 *   LOOK_ONCE   broken: the thread looks once at whether a late one is due
 *   PUT_ONLY, WORD_ONLY
 *               broken: the thread carries out nothing else
 *   HOST_WAITS  broken: a call waits until its use is posted
 *   NO_LOOK     broken: the thread carries out what A alone has started
 *   TWO_PUT, TWO_WORD
 *               broken: no lock: the thread sees that a put, or a word, is late
 *               and due; it is posted; then the thread carries it out as well
 */
#include "common.pml"

#ifndef OPS
#define OPS 2
#endif

#ifndef USES
#define USES 2
#endif

#ifndef ENTRIES
#define ENTRIES 2
#endif

#ifdef HEAD_ONLY
#define FIFO
#endif

#ifdef BOTH
#define SIDES 2
#else
#define SIDES 1
#endif

/* Entries x: A's puts and words, then B's clear-to-sends and words */
#define KINDS (2 * OPS * SIDES)
#define IS_WORD(x) ((x) % 2 == 1)
#define OP(x) (((x) / 2) % OPS)
#define SIDE(x) ((x) / (2 * OPS))
#define HALF(x) ((x) / 2)

/* What use k of x has on the card */
#define PLACE(x, k) on_card[(x) * USES + (k) - 1]
#define NO 0
#define COMMON 1
#define OWN 2

bool premature, twice, early;

byte unused[2] = ENTRIES;        /* entries of the two sides */
byte on_card[KINDS * USES];
byte called[OPS * SIDES];        /* uses that the hosts have started */
byte taken[KINDS];               /* of them, those posted or carried out */
bool no_more;                    /* A's host has made all its calls */

byte started[OPS];               /* starts that have run on A's stream */
byte recv_started[OPS];          /* and on B's */
byte cleared[OPS];               /* clear-to-sends that T has counted */
byte moved[OPS];                 /* C and D */
byte word[OPS], recv_word[OPS];

#ifdef BOTH
#define CLEARED(op) cleared[op]
#define RECV_WORD(op) recv_word[op]
#else
#define CLEARED(op) recv_started[op]
#define RECV_WORD(op) moved[op]
#endif

/* The counter of x is at the threshold of use k */
#define IS_DUE(x, k) \
    (IS_WORD(x) -> moved[OP(x)] >= (k) : \
     (SIDE(x) == 1 -> recv_started[OP(x)] >= (k) : \
      started[OP(x)] + CLEARED(OP(x)) >= 2 * (k)))

#define NEXT(x) (taken[x] + 1)
#define IS_LATE(x) (taken[x] < called[HALF(x)])

#ifdef FIFO
chan late = [KINDS * USES] of { byte }; /* in the order of the calls */
#define IS_HEAD(x) (late ? [eval(x)])
#else
#define IS_HEAD(x) true
#endif

#ifdef RESERVED
bool own_used[KINDS];
#define OWN_FREE(x) (!own_used[x])
#else
#define OWN_FREE(x) false
#endif

#define CAN_POST(x) (IS_HEAD(x) && (OWN_FREE(x) || unused[SIDE(x)] > 0))

#ifdef NO_THREAD
#define ALLOWED !no_more
#else
#define ALLOWED true
#endif

/* What a look of the thread has to find */
#ifdef NO_LOOK
#define MAY_CARRY(x) \
    (IS_WORD(x) -> IS_DUE(x, NEXT(x)) : started[OP(x)] >= NEXT(x))
#elif defined(HEAD_ONLY)
#define MAY_CARRY(x) (IS_HEAD(x) && IS_DUE(x, NEXT(x)))
#elif defined(PUT_ONLY)
#define MAY_CARRY(x) (!IS_WORD(x) && IS_DUE(x, NEXT(x)))
#elif defined(WORD_ONLY)
#define MAY_CARRY(x) (IS_WORD(x) && IS_DUE(x, NEXT(x)))
#else
#define MAY_CARRY(x) IS_DUE(x, NEXT(x))
#endif

#ifdef TWO_PUT
#define IS_TORN(x) (!IS_WORD(x))
#elif defined(TWO_WORD)
#define IS_TORN(x) IS_WORD(x)
#else
#define IS_TORN(x) false
#endif

/* What use k of x does, on the card or carried out */
inline act(x, k)
{
    if
    :: SIDE(x) == 0 && !IS_WORD(x) ->
        CHECK(premature, started[OP(x)] >= k && recv_started[OP(x)] >= k);
        CHECK(twice, moved[OP(x)] < k);
        moved[OP(x)]++
    :: SIDE(x) == 0 && IS_WORD(x) -> word[OP(x)]++
#ifdef BOTH
    :: SIDE(x) == 1 && !IS_WORD(x) -> cleared[OP(x)]++
    :: SIDE(x) == 1 && IS_WORD(x) -> recv_word[OP(x)]++
#endif
    fi
}

/* A host's call that takes an entry at its start could as well have left that
 * to whatever frees one next */
#ifndef NO_POST
proctype poster(byte x)
{
end:
    do
    :: atomic {
        ALLOWED && IS_LATE(x) && CAN_POST(x) ->
#ifdef FIFO
        late ? _;
#endif
        taken[x]++;
        if
#ifdef RESERVED
        :: OWN_FREE(x) -> own_used[x] = true; PLACE(x, taken[x]) = OWN
#endif
        :: else -> unused[SIDE(x)]--; PLACE(x, taken[x]) = COMMON
        fi
       }
    od
}
#endif

#ifndef NO_CARRY
/* The thread, its look at one kind of entry. What it does later it could as
 * well have looked at later */
proctype thread(byte x)
{
    byte k;

end:
    do
#ifdef LOOK_ONCE
    :: atomic {
        IS_LATE(x) && k <= taken[x] ->
        k = NEXT(x);
        if
        :: IS_DUE(x, k) -> taken[x] = k; act(x, k)
        :: else
        fi
       }
#else
    :: atomic {
        ALLOWED && IS_LATE(x) && MAY_CARRY(x) && !IS_TORN(x) ->
#ifdef FIFO
        late ?? eval(x);
#endif
        taken[x]++;
        act(x, taken[x])
       }
    :: atomic { IS_LATE(x) && MAY_CARRY(x) && IS_TORN(x) -> k = NEXT(x) }
       atomic {
        taken[x] = (taken[x] < k -> k : taken[x]);
        act(x, k);
        k = 0
       }
#endif
    od
}
#endif

#define FIRES(k) \
    ((k) <= USES && PLACE(x, ((k) <= USES -> (k) : 1)) != NO && IS_DUE(x, k))

/* The card, for what was posted of x */
proctype card(byte x)
{
    byte k;

end:
    do
    :: atomic {
        FIRES(1) || FIRES(2) || FIRES(3) ->
        k = (FIRES(1) -> 1 : (FIRES(2) -> 2 : 3));
        act(x, k);
        if
#ifdef RESERVED
        :: PLACE(x, k) == OWN -> own_used[x] = false
#endif
        :: else -> unused[SIDE(x)]++
        fi;
        PLACE(x, k) = NO;
        k           = 0
       }
    od
}

/* Starts the uses of all operations of one side in any order */
proctype host(byte side)
{
    byte left = OPS * USES, op;

    do
    :: atomic {
        left > 0 ->
        select(op : side * OPS .. side * OPS + OPS - 1);
        if
        :: called[op] < USES ->
            left--;
            called[op]++
#ifdef FIFO
            ;
            late ! 2 * op;
            late ! 2 * op + 1
#endif
#ifdef HOST_WAITS
            ;
            taken[2 * op] == called[op] && taken[2 * op + 1] == called[op]
#endif
        :: else
        fi;
        op = 0
       }
    :: left == 0 -> break
    od;
    no_more = true
}

proctype stream_of_a(byte op)
{
    do
    :: atomic { started[op] < called[op] -> started[op]++ }
       atomic {
        word[op] >= started[op];
        CHECK(early, moved[op] >= started[op])
       }
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
        :: recv_started[op] < USES ->
#ifdef BOTH
            /* the order of its calls may differ from that of its starts: more
             * than what programs can do */
            recv_started[op] < called[OPS + op];
#endif
            recv_started[op]++;
            left--
        :: else -> op = 0
        fi
       }
       atomic { RECV_WORD(op) >= recv_started[op]; op = 0 }
    :: left == 0 -> break
    od;
    FINISH
}

init {
    byte i;

    atomic {
        for (i : 0 .. KINDS - 1) {
            run card(i);
#ifndef NO_POST
            run poster(i);
#endif
#ifndef NO_CARRY
            run thread(i)
#endif
        }
        for (i : 0 .. SIDES - 1) {
            run host(i)
        }
        for (i : 0 .. OPS - 1) {
            run stream_of_a(i)
        }
    }
}
