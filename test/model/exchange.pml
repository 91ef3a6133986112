/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange.pml - operations that are always started and waited for together
 * share counters (docs/protocols.md, "Entries and counters").
 *
 * An exchange of m sends and n receives, use k:
 *
 *   stream:  start: adds 1 to T of each send, and 1 to R
 *   NIC:     R >= k: a clear-to-send to the sender of each receive, whose T
 *            counts it
 *            T >= 2k: the send's put; F counts when it completes, and what
 *            lands for the receives
 *            F >= k (m + n): word += 1
 *   stream:  wait for word >= k: use k is over, as a whole
 *
 * An operation that is in no exchange is one of a single send or receive here.
 * Puts fire, complete and land in any order, as late as they like: that covers
 * entries that are posted late. Everybody runs as far ahead as it can. What the
 * hosts post ahead matters for nothing but entries (flow.pml).
 *
 * The exchanges, and their pairs:
 *   STAR      exchange 0 has M sends and N receives, each with a peer of its
 *             own which has no exchange
 *   UNEQUAL   exchanges 0 and 1 send to each other, and each to rank 2
 *   PAIR      two exchanges that send two messages each way
 *   ALL       three, each of which sends to both others; a ring of both ways
 *   SELF      exchange 0 sends to itself and to 1, which sends to 0
 *   DEPENDS   exchange 0 sends to ranks 1 and 2, and rank 2 starts its receive
 *             after rank 1's is complete
 *
 * READIES=i: the first i pairs have ready sends. Those of an exchange share a
 * T, which one store adds to, and go at T >= k; their callers know that the
 * receives have started.
 *
 * COUPLED: all sends of an exchange share a T, to which a start adds 1; all go
 * at T >= k (1 + m). Each process starts everything at once.
 *   with DEPENDS   broken: rank 2 waits for rank 1's data, which waits for
 *                  rank 2's clear-to-send. It passes uncoupled
 *   with ALONE=p   sound, also with DEPENDS where 2's half is not coupled: the
 *                  send of pair p has a T of its own
 *   with ONE_CTS   sound: the receives that one exchange has from another one
 *                  have one clear-to-send, and all go at T >= k (1 + peers)
 *   with SEND_ALL  sound: a start adds m, all go at T >= k (2m)
 *
 * AHEAD: what exchange 0 of a STAR receives, or the first AHEADS of it, goes to
 * inboxes of PLACES uses, before its start (slots.pml, WEIGHTS), and is counted
 * in D of its place, one of PLACES counters for all such receives: D >= r n, in
 * round r of the place. F counts the others. The stream waits for the word of F
 * and for that of this D.
 *   with ONE_WORD  sound: one word for all D. A put is complete only once it
 *                  is visible
 *   with NO_DELIVERY
 *                  ONE_WORD is broken: it completes before
 *   with COUNT_F   broken: F counts what lands, too
 *   with ONE_D     broken: one D for all places, D >= k n
 *   with SAME_WORD broken: F and D add to one word, of which the stream awaits
 *                  2k
 *
 * Broken variants: SHARE (standard sends that are not coupled share a T: the
 * i-th start lets its put go at 2i), NO_WAIT (exchange 0 starts use k+1 before
 * the wait of use k has run), LOW, HIGH (COUPLED, and 1 less, 1 more).
 */
#include "common.pml"

#ifndef USES
#define USES 2
#endif

#ifndef M
#define M 2
#endif

#ifndef N
#define N 1
#endif

#ifndef READIES
#define READIES 0
#endif

#ifndef AHEADS
#define AHEADS N
#endif

#ifndef PLACES
#define PLACES 2
#endif

/* Pair p is of a send of exchange FROM(p) and a receive of TO(p) */
#ifdef UNEQUAL
#define GROUPS 3
#define PAIRS 4 /* 0>1 0>2 1>0 1>2 */
#define FROM(p) ((p) / 2)
#define TO(p) ((p) % 2 == 1 -> 2 : 1 - (p) / 2)
#define SENDS(g) ((g) == 2 -> 0 : 2)
#define RECVS(g) ((g) == 2 -> 2 : 1)
#elif defined(PAIR)
#define GROUPS 2
#define PAIRS 4 /* 0>1 0>1 1>0 1>0 */
#define FROM(p) ((p) / 2)
#define TO(p) (1 - (p) / 2)
#define SENDS(g) 2
#define RECVS(g) 2
#elif defined(ALL)
#define GROUPS 3
#define PAIRS 6 /* 0>1 0>2 1>2 1>0 2>0 2>1 */
#define FROM(p) ((p) / 2)
#define TO(p) (((p) / 2 + (p) % 2 + 1) % 3)
#define SENDS(g) 2
#define RECVS(g) 2
#elif defined(SELF)
#define GROUPS 2
#define PAIRS 3 /* 0>0 0>1 1>0 */
#define FROM(p) ((p) / 2)
#define TO(p) ((p) % 2)
#define SENDS(g) ((g) == 0 -> 2 : 1)
#define RECVS(g) ((g) == 0 -> 2 : 1)
#elif defined(DEPENDS)
#define GROUPS 3
#define PAIRS 2 /* 0>1 0>2 */
#define FROM(p) 0
#define TO(p) ((p) + 1)
#define SENDS(g) ((g) == 0 -> 2 : 0)
#define RECVS(g) ((g) == 0 -> 0 : 1)
#else /* STAR */
#define GROUPS (M + N + 1)
#define PAIRS (M + N) /* 0>1 ... 0>M, M+1>0 ... M+N>0 */
#define FROM(p) ((p) < M -> 0 : (p) + 1)
#define TO(p) ((p) < M -> (p) + 1 : 0)
#define SENDS(g) ((g) == 0 -> M : ((g) <= M -> 0 : 1))
#define RECVS(g) ((g) == 0 -> N : ((g) <= M -> 1 : 0))
#endif

#define IS_READY(p) ((p) < READIES)

#ifdef ALONE
#define IS_ALONE(p) ((p) == ALONE)
#else
#define IS_ALONE(p) false
#endif

/* Which T: a send's own, or that of its exchange */
#if defined(COUPLED) || defined(SHARE)
#define T(p) (IS_ALONE(p) -> GROUPS : FROM(p))
#define COUNTERS (GROUPS + 1)
#else
#define T(p) (IS_READY(p) -> PAIRS + FROM(p) : (p))
#define COUNTERS (PAIRS + GROUPS)
#endif

#ifdef AHEAD
#define IS_AHEAD(p) (TO(p) == 0 && (p) < M + AHEADS)
#else
#define IS_AHEAD(p) false
#endif

#ifdef ONE_CTS
#define CLEARS(p) ((p) % 2 == 0) /* PAIR */
#define SHARES(g) 1
#else
#define CLEARS(p) (!IS_READY(p))
#ifdef ALONE
#define SHARES(g) (FROM(ALONE) == (g) -> SENDS(g) - 1 : SENDS(g))
#else
#define SHARES(g) SENDS(g)
#endif
#endif

#ifdef SEND_ALL
#define STARTS(g) SENDS(g)
#else
#define STARTS(g) 1
#endif

#ifdef LOW
#define SHIFT -1
#elif defined(HIGH)
#define SHIFT +1
#else
#define SHIFT
#endif

#ifdef COUPLED
#define THRESHOLD(p, k) \
    (IS_ALONE(p) -> 2 * (k) : \
     (k) * (STARTS(FROM(p)) + SHARES(FROM(p))) SHIFT)
#elif defined(SHARE)
#define AMONG(p) (SENDS(FROM(p)) == 2 -> (p) % 2 : 0)
#define THRESHOLD(p, k) \
    (2 * (SENDS(FROM(p)) * ((k) - 1) + AMONG(p) + 1))
#else
#define THRESHOLD(p, k) \
    (IS_READY(p) -> (k) : \
     (IS_AHEAD(p) -> (PLACES + 1) * (k) - PLACES : 2 * (k)))
#endif

/* What F counts up to in one use */
#if defined(AHEAD) && !defined(COUNT_F)
#define COUNTS(g) (SENDS(g) + ((g) == 0 -> RECVS(g) - AHEADS : RECVS(g)))
#else
#define COUNTS(g) (SENDS(g) + RECVS(g))
#endif

#ifdef ONE_D
#define PLACE(k) 0
#define ROUND(k) (k)
#else
#define PLACE(k) (((k) - 1) % PLACES)
#define ROUND(k) (((k) - 1) / PLACES + 1)
#endif

bool premature, overwrite, late_read, wrong_data;

byte trigger[COUNTERS];        /* T */
byte begun[GROUPS];            /* starts: also R, which nobody else adds to */
byte finish[GROUPS];           /* F */
byte passed[GROUPS];           /* waits that have run */
byte target[PAIRS];            /* payloads: the number of the use */
#ifdef AHEAD
byte arrived[PLACES];          /* D */
byte copies;                   /* what was copied out of the inboxes */
byte inbox[PAIRS * PLACES];
#define SLOT(p, k) inbox[(p) * PLACES + ((k) - 1) % PLACES]
#endif

/* Use k of an exchange is complete */
#ifdef AHEAD
#define FINISHED_0(k) (finish[0] >= (k) * COUNTS(0))
#define WORD_D (arrived[0] / AHEADS + arrived[1] / AHEADS)
#ifdef COUNT_F
#define IS_COMPLETE_0(k) FINISHED_0(k)
#elif defined(SAME_WORD)
#define IS_COMPLETE_0(k) (finish[0] / COUNTS(0) + WORD_D >= 2 * (k))
#elif defined(ONE_WORD)
#define IS_COMPLETE_0(k) (FINISHED_0(k) && WORD_D >= (k))
#else
#define IS_COMPLETE_0(k) \
    (FINISHED_0(k) && arrived[PLACE(k)] >= ROUND(k) * AHEADS)
#endif
#define IS_COMPLETE(g, k) \
    ((g) == 0 -> IS_COMPLETE_0(k) : finish[g] >= (k) * COUNTS(g))
#else
#define IS_COMPLETE(g, k) (finish[g] >= (k) * COUNTS(g))
#endif

/* Those of all uses, of which each adds 1: only their number matters */
proctype clear_to_send(byte p, k)
{
    do
    :: k <= USES ->
#ifdef AHEAD
        (IS_AHEAD(p) -> copies + PLACES >= k : begun[TO(p)] >= k);
#else
        begun[TO(p)] >= k;
#endif
        atomic { trigger[T(p)]++; k++ }
    :: else -> break
    od
}

inline land(p, k)
{
#ifdef AHEAD
    if
    :: IS_AHEAD(p) ->
        CHECK(overwrite, passed[TO(p)] + PLACES >= k);
        SLOT(p, k) = k
    :: else ->
#endif
        CHECK(overwrite, begun[TO(p)] >= k && passed[TO(p)] < k);
        target[p] = k
#ifdef AHEAD
    fi
#endif
}

inline count(p, k)
{
#if defined(AHEAD) && !defined(COUNT_F)
    if
    :: IS_AHEAD(p) -> arrived[PLACE(k)]++
    :: else -> finish[TO(p)]++
    fi
#else
    finish[TO(p)]++
#endif
}

proctype put(byte p, k)
{
    bool completed, landed, counted;

    atomic {
        trigger[T(p)] >= THRESHOLD(p, k);
        CHECK(premature, begun[FROM(p)] >= k)
    }
    do
       /* the buffer is read before the put lands, and before it completes */
    :: atomic {
        !landed ->
        CHECK(late_read, completed || passed[FROM(p)] < k);
        land(p, k);
        landed = true
#ifndef AHEAD
        ;
        count(p, k);
        counted = true
#endif
       }
#ifdef AHEAD
    :: atomic { landed && !counted -> count(p, k); counted = true }
#endif
#if defined(AHEAD) && !defined(NO_DELIVERY)
    :: atomic { landed && !completed -> finish[FROM(p)]++; completed = true }
#else
    :: atomic {
        !completed ->
        CHECK(late_read, landed || passed[FROM(p)] < k);
        finish[FROM(p)]++;
        completed = true
       }
#endif
    :: landed && counted && completed -> break
    od
}

/* The callers of ready sends, and of what depends on something else */
#ifdef DEPENDS
#define MAY_START(g, k) ((g) != 2 || passed[1] >= (k))
#elif READIES > 0
#define KNOWS(p, g, k) \
    (!IS_READY(p) || FROM(p) != (g) || begun[TO(p)] >= (k))
#define MAY_START(g, k) \
    (KNOWS(0, g, k) && (READIES < 2 || KNOWS(1, g, k)) && \
     (READIES < 3 || KNOWS(2, g, k)))
#else
#define MAY_START(g, k) true
#endif

/* One batch of stores: one that takes effect later than others is as good as a
 * NIC that reacts to it later */
inline start(g, k)
{
    atomic {
        MAY_START(g, k);
        begun[g] = k;
#ifdef COUPLED
        trigger[g] = trigger[g] + STARTS(g);
#ifdef ALONE
        trigger[GROUPS] = trigger[GROUPS] + (FROM(ALONE) == g -> 1 : 0);
#endif
#else
        ready = false;
        for (p : 0 .. PAIRS - 1) {
            if
            :: FROM(p) != g || (ready && IS_READY(p)) -> skip
            :: else ->
                trigger[T(p)] = trigger[T(p)] + (IS_AHEAD(p) -> PLACES : 1);
                ready = ready || IS_READY(p)
            fi
        }
        ready = false;
        p     = 0
#endif
    }
}

inline wait(g, k)
{
    atomic {
        IS_COMPLETE(g, k);
        for (p : 0 .. PAIRS - 1) {
            if
#ifdef AHEAD
            :: TO(p) == g && IS_AHEAD(p) -> CHECK(wrong_data, SLOT(p, k) == k)
#endif
            :: TO(p) == g && !IS_AHEAD(p) -> CHECK(wrong_data, target[p] == k)
            :: else
            fi
        }
        p         = 0;
        passed[g] = k
    }
#ifdef AHEAD
    if
    :: g == 0 -> copies++
    :: else
    fi
#endif
}

proctype stream(byte g)
{
    byte k = 1, p;
    bool ready;

    do
    :: k <= USES ->
        start(g, k);
#ifdef NO_WAIT
        if
        :: g != 0 -> wait(g, k)
        :: g == 0 && k > 1 -> wait(g, k - 1)
        :: else
        fi;
#else
        wait(g, k);
#endif
        k++
    :: else -> break
    od;
#ifdef NO_WAIT
    if
    :: g == 0 -> wait(g, USES)
    :: else
    fi;
#endif
    FINISH
}

init {
    byte p, k;

    atomic {
        for (p : 0 .. PAIRS - 1) {
            for (k : 1 .. USES) {
                run put(p, k)
            }
            if
            :: CLEARS(p) ->
                run clear_to_send(p, (IS_AHEAD(p) -> PLACES + 1 : 1))
            :: else
            fi
        }
        for (p : 0 .. GROUPS - 1) {
            run stream(p)
        }
    }
}
