/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange_error.pml - an exchange (exchange.pml) of which one operation fails
 * (docs/protocols.md, "Errors", and error.pml for one pair).
 *
 * Rank 0 has a coupled exchange: it sends to ranks 1 and 2 and receives from
 * rank 1, which has an exchange as well. Any of them may fail at any time. All
 * operations of an exchange fail then, in this order:
 *
 *   - all its regions are closed; its T and R, which count from a
 *     base, are reset, so that starts have no effect any more; its peers are
 *     told, and fail in turn
 *   - when the peers of all its sends have closed their regions: the host adds
 *     more than the base to T, which fires what is armed; that fails
 *   - when all puts are over: the waits are let pass. When the stream has
 *     passed them, the user is told
 *   - when the peers of all its receives have closed theirs: the host fires the
 *     clear-to-sends that are armed, by R
 *
 * The stream runs on after a release. What a region lets in has landed at once
 * here: draining is error.pml's.
 *
 *   FAIL=i         only rank i fails by itself
 *   RECV_ONLY      sound: rank 1 sends nothing, so that it waits for nobody
 *   EACH           sound: a T for each send, which is fired when its own peer
 *                  has closed its region; the release is one for all
 *   QUIET          sound: the waits are let pass before the peers have closed,
 *                  once no put is under way. What is armed is fired later
 *   CARRY          sound: no put has an entry; a thread carries those out that
 *                  are due (flow.pml), unless the exchange is failing: a lock
 *                  lets one of the two be first
 *
 * Broken variants:
 *   DISPOSE_ONE    T is fired when the peer that failed has closed its region
 *   CLOSE_LATE     own regions are closed after the sends were disposed of:
 *                  each of two exchanges waits for the other one
 *   CLOSE_ONE      only the regions of the pair that failed are closed
 *   ONE_FAILS      only the operation fails, and the exchange goes on: its
 *                  clear-to-sends and data are missing in all thresholds
 *   RELEASE_ONE    EACH, and the waits are let pass when the puts to one closed
 *                  region are over
 *   CTS_OPEN       the clear-to-sends are fired before the peers have closed:
 *                  another one's T takes them for the starts of others
 *   NO_BASE_T, NO_BASE_R
 *                  that counter has no base: starts after a release count.
 *                  NO_BASE_T is broken with QUIET, NO_BASE_R with RECV_ONLY,
 *                  whose release does not wait for a peer; where it does, all
 *                  peers have closed their regions by then
 *   NO_WAIT        QUIET, and nobody waits for what is under way
 *   TORN           CARRY without a lock: the thread has looked, then the
 *                  exchange fails, then the thread writes
 */
#include "common.pml"

#ifndef USES
#define USES 2
#endif

#define GROUPS 3
#ifdef RECV_ONLY
#define PAIRS 2
#else
#define PAIRS 3
#endif

/* 0>1 0>2 1>0 */
#define FROM(p) ((p) / 2)
#define TO(p) ((p) == 2 -> 0 : (p) + 1)
#define SENDS(g) ((g) == 0 -> 2 : ((g) == 1 -> PAIRS - 2 : 0))
#define RECVS(g) ((g) == 0 -> PAIRS - 2 : 1)

#ifdef EACH
#define T(p) trigger[p]
#define COUNT(p) 2
#else
#define T(p) trigger[FROM(p)]
#define COUNT(p) (1 + SENDS(FROM(p)))
#endif

/* More than what streams and peers add, and more than that */
#define MUCH (4 * USES)
#define FIRE (3 * MUCH)

#ifdef NO_BASE_T
#define T_BASE 0
#else
#define T_BASE MUCH
#endif

#ifdef NO_BASE_R
#define R_BASE 0
#else
#define R_BASE MUCH
#endif

#define THRESHOLD(p, k) (T_BASE + (k) * COUNT(p))

/* For all pairs */
#if PAIRS == 3
#define ALL(condition) (condition(0) && condition(1) && condition(2))
#else
#define ALL(condition) (condition(0) && condition(1))
#endif

bool premature, late_read, late_write, wrong_data;

byte trigger[3] = T_BASE;    /* T, of exchanges, or EACH: of pairs */
byte started[GROUPS] = R_BASE; /* R */
byte finish[GROUPS];         /* F */
byte target[PAIRS];          /* payloads: the number of the use */

bool cts_open[PAIRS] = true; /* the regions of senders and receivers */
bool data_open[PAIRS] = true;
byte under_way[GROUPS];      /* puts that have fired and are not over */
byte remaining[PAIRS] = USES; /* puts that are not over */

bool failing[GROUPS], says_failed[GROUPS], says_closed[GROUPS];
bool released[GROUPS], passed[GROUPS], told[GROUPS];

/* What has happened, for the properties alone */
byte begun[GROUPS], waited[GROUPS];

#ifdef ONE_FAILS
#define FAILS(g) ((g) == 2)
#elif defined(FAIL)
#define FAILS(g) ((g) == FAIL)
#else
#define FAILS(g) true
#endif

#define HEARS(g) \
    ((g) == 0 -> says_failed[1] || says_failed[2] : says_failed[0])
#define SEND_CLOSED(p) (FROM(p) != g || says_closed[TO(p)])
#define RECV_CLOSED(p) (TO(p) != g || says_closed[FROM(p)])
#define SEND_OVER(p) (FROM(p) != g || remaining[p] == 0)

/* One that is on its way is as good as one that fires later */
proctype clear_to_send(byte p)
{
    byte k = 1;

    do
    :: k <= USES ->
end_armed:
        atomic {
            started[TO(p)] >= R_BASE + k ->
            if
            :: cts_open[p] -> T(p)++
            :: else
            fi;
            k++
        }
    :: else -> break
    od
}

proctype put(byte p, k)
{
end_armed:
#ifdef CARRY
    if
#ifdef TORN
    :: T(p) >= THRESHOLD(p, k); under_way[FROM(p)]++
#else
    :: atomic {
        T(p) >= THRESHOLD(p, k) && !failing[FROM(p)] -> under_way[FROM(p)]++
       }
#endif
    :: atomic { failing[FROM(p)] -> remaining[p]--; goto over }
    fi;
#else
    atomic { T(p) >= THRESHOLD(p, k) -> under_way[FROM(p)]++ }
#endif
    /* Reads the buffer; the peer lets it in, or not */
    atomic {
#ifndef QUIET
        CHECK(late_read, !told[FROM(p)]);
#endif
        if
        :: data_open[p] ->
            CHECK(premature, begun[FROM(p)] >= k && begun[TO(p)] >= k);
            CHECK(late_write, !told[TO(p)]);
            /* nothing, if it is used again */
            target[p] = (waited[FROM(p)] < k -> k : 0);
            finish[TO(p)]++;
            finish[FROM(p)]++
        :: else
        fi;
        under_way[FROM(p)]--;
        remaining[p]--
    }
over:
    skip
}

proctype stream(byte g)
{
    byte k = 1, p;
    bool is_bad;

    do
    :: atomic {
        k <= USES ->
        begun[g] = (released[g] -> begun[g] : k);
        started[g]++;
#ifdef EACH
        for (p : 0 .. PAIRS - 1) {
            if
            :: FROM(p) == g -> T(p)++
            :: else
            fi
        }
        p = 0
#else
        trigger[g]++
#endif
       }
       atomic {
        finish[g] >= k * (SENDS(g) + RECVS(g)) || released[g];
        for (p : 0 .. PAIRS - 1) {
            is_bad = is_bad || (TO(p) == g && target[p] != k)
        }
        p         = 0;
        waited[g] = k;
        k++;
        if
        :: k > USES ->
            CHECK(wrong_data, failing[g] || !is_bad);
            is_bad    = false;
            told[g]   = !failing[g];
            passed[g] = true;
            break
        :: else
        fi
       }
    od;
    FINISH
}

#ifdef CLOSE_ONE
#define CLOSES(g, peer) ((g) != 0 || !HEARS(g) || says_failed[peer])
#else
#define CLOSES(g, peer) true
#endif

/* One step: nothing is under way in a region here (error.pml has that) */
inline close(g)
{
    atomic {
        for (p : 0 .. PAIRS - 1) {
            if
            :: FROM(p) == g -> cts_open[p] = !CLOSES(g, TO(p))
            :: TO(p) == g -> data_open[p] = !CLOSES(g, FROM(p))
            :: else
            fi
        }
        p              = 0;
        says_closed[g] = true
    }
}

/* Starts have no effect from here on */
inline halt(g)
{
    atomic {
        for (p : 0 .. PAIRS - 1) {
            if
            :: FROM(p) == g && T_BASE > 0 -> T(p) = 0
            :: else
            fi
        }
        p          = 0;
        started[g] = (R_BASE > 0 -> 0 : started[g])
    }
}

inline fire(g)
{
#ifdef EACH
    for (p : 0 .. PAIRS - 1) {
        if
        :: FROM(p) == g -> atomic { says_closed[TO(p)]; T(p) = T(p) + FIRE }
        :: else
        fi
    }
    p = 0
#else
    atomic {
#ifdef DISPOSE_ONE
        (g == 0 -> says_closed[1] || says_closed[2] : ALL(SEND_CLOSED));
#else
        ALL(SEND_CLOSED);
#endif
        trigger[g] = trigger[g] + FIRE
    }
#endif
}

inline release(g)
{
    released[g] = true;
    atomic { passed[g]; told[g] = true }
}

proctype host(byte g)
{
    byte p;

end:
    atomic {
        (FAILS(g) && !passed[g]) || HEARS(g);
#ifdef ONE_FAILS
        if
        :: g == 0 -> cts_open[1] = false; goto over
        :: else
        fi;
#endif
        failing[g] = !passed[g];
        if
        :: failing[g] -> halt(g)
        :: else
        fi;
#ifdef CLOSE_LATE
        if
        :: !failing[g] -> close(g)
        :: else
        fi;
#else
        close(g);
#endif
        says_failed[g] = true
    }
    if
    :: failing[g] ->
#ifdef QUIET
#ifndef NO_WAIT
        under_way[g] == 0;
#endif
        release(g);
        fire(g);
#else
        fire(g);
        atomic {
#ifdef RELEASE_ONE
            (g == 0 -> remaining[0] == 0 || remaining[1] == 0 : ALL(SEND_OVER));
#elif defined(CARRY)
            under_way[g] == 0;
#else
            ALL(SEND_OVER);
#endif
#ifdef CLOSE_LATE
            close(g)
#else
            skip
#endif
        }
        release(g);
#endif
        atomic {
#ifndef CTS_OPEN
            ALL(RECV_CLOSED);
#endif
            started[g] = started[g] + FIRE
        }
    :: else
    fi;
over:
    skip
}

init {
    byte p, k;

    atomic {
        for (p : 0 .. PAIRS - 1) {
            for (k : 1 .. USES) {
                run put(p, k)
            }
            run clear_to_send(p)
        }
        for (p : 0 .. GROUPS - 1) {
            run stream(p);
            run host(p)
        }
    }
}
