/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leave.pml - control messages between two workers: how they leave each other,
 * and how one learns that it was declared gone (docs/protocols.md, "Control
 * messages", "Leaving").
 *
 * Messages from side to side keep their order; GONE comes over another
 * endpoint, as the first one is closed then. Each side may be about to send
 * something, and to leave, at any time. A leaver has freed all that it had, so
 * it has no open use; the other side's last use with it ends on its own. A side
 * that has left closes its endpoint: a message that meets it there ends the
 * process that sent it, on Cassini.
 *
 *   SLOW      the last use with a leaver takes long: it is answered before
 *   SILENT    no transport tells that the other side has closed
 *   LOSS      a transport tells side 0 that side 1 is lost, which lives, and
 *             nobody leaves. A stream of each side waits for the other one,
 *             until that is declared gone; it asks now and then.
 *   TOLD_LATE with LOSS: the first GONE does not arrive
 *
 * Broken variants: CLOSE_AT_BYE (a leaver does not wait for the answer),
 * CLOSE_AT_ANSWER (where both leave it does not answer the other one first),
 * BEHIND (something is sent behind the answer), DECIDE_AT_ONCE (a loss is
 * decided before what has arrived was read), NOT_TOLD (a peer that is declared
 * gone is not told), NOT_AGAIN (with TOLD_LATE: nor when it asks).
 */
#include "common.pml"

#ifndef TALK
#define TALK 1 /* messages that each side may send */
#endif

#define ASKS 2 /* while the other side has declared this one gone */

mtype = { MESSAGE, BYE, BYE_ACK, PING, GONE }

/* How a side sees the other one */
#define ACTIVE  0
#define LEAVING 1
#define LEFT    2
#define LOST    3
#define DECLARED 4

bool into_closed, reset;

chan order[2] = [5] of { mtype }; /* to a side */
chan other[2] = [2] of { mtype }; /* ... over another endpoint */
byte state[2];
bool leaves[2];
bool said_bye[2];
bool has_left[2]; /* the other one has, as a side knows */
bool shut[2];
bool is_open[2];  /* a use with the other side */
byte talk[2];
byte asks[2];
bool is_dropped;

/* Nothing is sent behind BYE, but the answer, and nothing behind that */
#define MAY_SEND(me) (state[me] <= LEAVING && !said_bye[me])

inline send(me, what)
{
    CHECK(into_closed, !shut[1 - me]);
    order[1 - me]!what
}

inline tell_gone(me)
{
#ifndef NOT_TOLD
#ifdef TOLD_LATE
    if
    :: is_dropped -> other[1 - me]!GONE
    :: else -> is_dropped = true
    fi
#else
    other[1 - me]!GONE
#endif
#else
    skip
#endif
}

inline answer(me)
{
    send(me, BYE_ACK);
    state[me] = LEFT
}

inline receive(me, what)
{
    if
    :: what == BYE && state[me] == ACTIVE -> state[me] = LEAVING
    :: what == BYE && state[me] == LOST -> has_left[me] = true
    :: what == BYE_ACK && state[me] != DECLARED ->
#ifndef CLOSE_AT_ANSWER
        if
        :: state[me] == LEAVING -> answer(me)
        :: else
        fi;
#endif
        has_left[me] = true;
        state[me]    = DECLARED
    :: what == PING && state[me] == DECLARED && !has_left[me] ->
#ifndef NOT_AGAIN
        tell_gone(me)
#else
        skip
#endif
    :: else
    fi
}

/* A transport says that the other side is lost */
inline lose(me)
{
    has_left[me] = (state[me] == LEAVING || state[me] == LEFT);
    state[me]    = LOST
}

proctype side(byte me)
{
    mtype what;

    do
    :: atomic { !shut[me] && len(order[me]) > 0 ->
        order[me]?what;
        receive(me, what) }
    :: atomic { !shut[me] && len(other[me]) > 0 ->
        other[me]?what;
        if
        :: state[me] < LOST -> lose(me)
        :: else
        fi }
    :: atomic { talk[me] > 0 && MAY_SEND(me) -> send(me, MESSAGE); talk[me]-- }
    :: atomic { is_open[me] -> is_open[me] = false }
#ifdef BEHIND
    :: atomic { talk[me] > 0 && state[me] == LEFT ->
                send(me, MESSAGE); talk[me]-- }
#endif

    /* It leaves */
    :: atomic { leaves[me] && !said_bye[me] && !is_open[me] ->
        if
        :: state[me] <= LEAVING -> send(me, BYE)
        :: state[me] == LEFT -> has_left[me] = true; state[me] = DECLARED
        :: else
        fi;
        said_bye[me] = true }

    /* The other one does */
#ifdef SLOW
    :: atomic { state[me] == LEAVING -> answer(me) }
#else
    :: atomic { state[me] == LEAVING && !is_open[me] -> answer(me) }
#endif
    :: atomic { state[me] == LEFT && !said_bye[me] && !is_open[me] ->
        has_left[me] = true; state[me] = DECLARED }

    /* It closes its endpoint: what is under way to it meets that */
#ifdef CLOSE_AT_BYE
    :: atomic { said_bye[me] && !shut[me] ->
#else
    :: atomic { said_bye[me] && state[me] == DECLARED && !shut[me] ->
#endif
        CHECK(into_closed, len(order[me]) == 0);
        shut[me] = true }

    /* The other one's transport sees that */
#ifndef SILENT
    :: atomic { shut[1 - me] && state[me] < LOST && !shut[me] -> lose(me) }
#endif
#ifdef DECIDE_AT_ONCE
    :: atomic { state[me] == LOST ->
#else
    :: atomic { state[me] == LOST && len(order[me]) == 0 ->
#endif
        state[me] = DECLARED;
#ifdef LOSS
        tell_gone(me)
#else
        CHECK(reset, has_left[me])
#endif
        }

#ifdef LOSS
    :: atomic { me == 0 && state[me] == ACTIVE -> lose(me) }
    :: atomic { asks[me] < ASKS && state[me] == ACTIVE &&
                len(order[1 - me]) == 0 ->
        order[1 - me]!PING;
        asks[me] = asks[me] + (state[1 - me] == DECLARED) }
    :: state[me] == DECLARED -> break /* the stream goes on */
#else
    :: !leaves[1 - me] && !leaves[me] -> break
    :: shut[me] || (!leaves[me] && state[me] == DECLARED) -> break
#endif
    od;
#ifdef LOSS
    /* The service thread is still there */
    do
    :: atomic { order[me]?what; receive(me, what) }
    :: other[me]?what
    :: timeout -> break
    od
#endif
    if
    :: me == 0 -> FINISH
    :: else
    fi
}

init {
    byte i;

    atomic {
        for (i : 0 .. 1) {
            talk[i]    = TALK;
#ifndef LOSS
            is_open[i] = true;
            if
            :: leaves[i] = true
            :: leaves[i] = false
            fi
#endif
        }
        run side(0);
        run side(1)
    }
}
