/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * merged_error.pml - what becomes of a trigger counter that ready sends share
 * (merged_ready.pml) when one of them fails.
 *
 * One stream carries two queues with one operation each, to different peers.
 * The one with number 0 may fail at any time: its host lets its waits pass and
 * the stream runs on; the other goes on undisturbed. The starts share the
 * trigger counter, with cumulative thresholds.
 *
 *   (nothing)      sound: peer 0 closes its region and says so, and only then
 *                  are the waits let pass. The failed operation's later starts
 *                  go on adding, because others' thresholds count them; what
 *                  they fire finds a closed region
 *   SUPPRESS       broken: those starts add nothing, and no threshold after
 *                  them is ever reached
 *   RELEASE_FIRST  broken: the waits are let pass before the region is closed
 *   DISPOSE        broken: the host adds what the failed operation's entries
 *                  still need, as a counter of its own would allow: others fire
 *                  early
 *   OWN_COUNTER    sound: a counter for each queue, with SUPPRESS,
 *                  RELEASE_FIRST, and DISPOSE after the region is closed
 */
#include "common.pml"

#ifndef ROUNDS
#define ROUNDS 2
#endif

#ifdef OWN_COUNTER
#define SUPPRESS
#define RELEASE_FIRST
#define DISPOSE
#define TRIGGER(op) trigger[op]
#else
#define TRIGGER(op) trigger[0]
#endif

bool premature, late_start;

mtype = { START, WAIT };
chan commands = [4 * ROUNDS] of { mtype, bit, byte };

byte trigger[2], sent[2];
byte threshold[2 * ROUNDS]; /* of a posted entry; 0: not posted */
byte sequence[2];

bool failing, closed, released;

/* What has happened, for the properties alone */
byte begun[2];
bool ran_on[ROUNDS + 1]; /* this use of operation 0 started after a release */

proctype put(bit op; byte round, i)
{
end_armed:
    atomic {
        threshold[i] != 0 && TRIGGER(op) >= threshold[i];
        CHECK(premature, begun[op] >= round || (op == 0 && closed))
    }
    atomic {
        if
        :: op == 0 && closed -> skip /* refused; not counted */
        :: else ->
            CHECK(late_start, op != 0 || !ran_on[round]);
            sent[op]++
        fi
    }
}

active proctype stream()
{
    bit op;
    byte round;

end:
    do
    :: atomic {
        commands ? START, op, round ->
        begun[op] = round;
        if
        :: op == 0 && released -> ran_on[round] = true
        :: else
        fi;
        if
#ifdef SUPPRESS
        :: op == 0 && released -> skip
#endif
        :: else -> TRIGGER(op)++
        fi
       }
    :: commands ? WAIT, op, round;
       sent[op] >= round || (op == 0 && released)
    od
}

inline enqueue(op, round)
{
    atomic {
#ifdef OWN_COUNTER
        sequence[op]++;
        threshold[op * ROUNDS + round - 1] = sequence[op];
#else
        sequence[0]++;
        threshold[op * ROUNDS + round - 1] = sequence[0];
#endif
        commands ! START, op, round
    }
    commands ! WAIT, op, round
}

/* The two queues' hosts */
proctype host(bit op)
{
    byte round = 1;

    do
    :: round <= ROUNDS ->
        if
        :: op == 0 && failing -> break /* refused with the error */
        :: enqueue(op, round)
        fi;
        round++
    :: else -> break
    od
}

proctype error()
{
end: /* it need not fail */
    sent[0] < ROUNDS;
    failing = true;
#ifdef RELEASE_FIRST
    released = true;
    closed   = true; /* the peer's, whenever it hears of it */
#else
    closed   = true;
    released = true;
#endif
#ifdef DISPOSE
    TRIGGER(0) = TRIGGER(0) + ROUNDS
#endif
}

active proctype judge()
{
    sent[1] == ROUNDS;
    FINISH
}

init {
    byte op, round;

    atomic {
        for (op : 0 .. 1) {
            for (round : 1 .. ROUNDS) {
                run put(op, round, op * ROUNDS + round - 1)
            }
            run host(op)
        }
        run error()
    }
}
