/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fifo_error.pml - a message of a FIFO (fifo.pml) that fails: a side gives its
 * queue up at any moment, the send is too long, or a process dies
 * (src/ucp/st/tag/st_fifo.h, "Errors").
 *
 * The receiver says RECV once its half is enqueued; the sender matches the two,
 * posts the put and says SEND, for which the receiver posts its clear-to-send.
 * The put fires when both streams have come to the message. What a side hears
 * before its half is enqueued is kept.
 *
 * A side that fails closes its region, has its starts no effect any more, and
 * says CANCEL; the other one fails as well and says CLOSED, as it does if it is
 * through. Behind CLOSED, or once the peer is known to be dead, the sender
 * fires what is armed: that reaches nothing. The user of a receive is told when
 * its region is closed, that of a send when no put is left that may read its
 * buffer.
 *
 * What a region lets in has landed at once here: draining is error.pml's.
 *
 *   GIVER=i        sound: only side i may give up, so that the other one has to
 *                  be told
 *   LONG           sound: the send is longer than the receive, which is known
 *                  before anything is posted; nobody gives up
 *   DEATH=i        sound: side i dies at any moment; nobody gives up
 *
 * Broken variants:
 *   NO_CLOSE       the receive's user is told, and its region stays open
 *   NO_WAIT        the send's user is told while a put is armed
 *   FIRE_EARLY     the put is fired before the receiver has said CLOSED
 *   POST_BLIND     LONG, and the put is posted before the room is known
 *   NOT_TOLD       a side that fails does not say so
 *   NO_ANSWER      CLOSED is not said
 *   NOT_KEPT       CANCEL is lost if it comes before the half is enqueued
 *   UNSEEN         DEATH, which nobody learns of
 */
#include "common.pml"

#define S 0
#define R 1
#define OTHER(me) (1 - (me))

mtype = { RECV, SEND, CANCEL, CLOSED };
chan heard[2] = [6] of { mtype };

bool late_write, late_read, premature, overflow;

bool enqueued[2], started[2], matched[2], ended[2], told[2], dead[2];
bool is_open = true;   /* the receive's region */
bool is_closed[2];     /* the peer has said so, or is dead */
bool armed, clear, put_over, landed, fire;

#ifdef LONG
#define TOO_LONG true
#else
#define TOO_LONG false
#endif

#if defined(LONG) || defined(DEATH)
#define GIVES_UP(me) false
#elif defined(GIVER)
#define GIVES_UP(me) ((me) == GIVER)
#else
#define GIVES_UP(me) true
#endif

inline say(to, word)
{
    if
    :: !dead[to] -> heard[to]!word
    :: else
    fi
}

inline fail(me)
{
    ended[me] = true;
#ifndef NO_CLOSE
    if
    :: me == R -> is_open = false
    :: else
    fi;
#endif
#ifdef FIRE_EARLY
    if
    :: me == S -> fire = true
    :: else
    fi;
#endif
#ifndef NOT_TOLD
    say(OTHER(me), CANCEL)
#endif
}

/* The other half is known */
inline match(me)
{
    matched[me] = true;
    if
    :: me == S && TOO_LONG -> fail(me)
    :: me == S && !TOO_LONG -> armed = true; say(R, SEND)
    :: me == R -> clear = true
    fi
}

/* Nothing of this half can be written any more */
inline answer(me)
{
    if
    :: !ended[me] && !told[me] -> fail(me)
    :: else
    fi;
#ifndef NO_ANSWER
    say(OTHER(me), CLOSED)
#endif
}

proctype host(byte me)
{
end:
    do
    :: atomic {
        !enqueued[me] && !dead[me] ->
        enqueued[me] = true;
        if
        :: me == R -> say(S, RECV)
        :: else
        fi;
#ifdef POST_BLIND
        if
        :: me == S -> armed = true
        :: else
        fi
#endif
       }
    :: atomic {
        enqueued[me] && !started[me] && !ended[me] && !dead[me] ->
        started[me] = true
       }
    :: atomic {
        GIVES_UP(me) && enqueued[me] && !ended[me] && !told[me] -> fail(me)
       }
    :: atomic {
        !dead[me] && enqueued[me] && (heard[me]?[RECV] || heard[me]?[SEND]) ->
        if
        :: heard[me]?RECV
        :: heard[me]?SEND
        fi;
        if
        :: !ended[me] -> match(me)
        :: else
        fi
       }
    :: atomic {
        !dead[me] && enqueued[me] && heard[me]?[CANCEL] ->
        heard[me]?CANCEL;
        answer(me)
       }
#ifdef NOT_KEPT
    :: atomic {
        !dead[me] && !enqueued[me] && heard[me]??[CANCEL] ->
        heard[me]??CANCEL;
        say(OTHER(me), CLOSED)
       }
#endif
    :: atomic {
        !dead[me] && heard[me]?[CLOSED] ->
        heard[me]?CLOSED;
        is_closed[me] = true
       }
#ifndef UNSEEN
    :: atomic {
        dead[OTHER(me)] && !dead[me] && enqueued[me] && !is_closed[me] ->
        is_closed[me] = true;
        if
        :: !ended[me] && !told[me] -> fail(me)
        :: else
        fi
       }
#endif
    :: atomic {
        me == S && ended[S] && is_closed[S] && armed && !fire -> fire = true
       }
    /* The user is told: of success, or of the error */
    :: atomic {
        me == S && !told[S] && !dead[S] &&
#ifdef NO_WAIT
        (put_over || ended[S]) ->
#else
        (put_over || (ended[S] && !armed)) ->
#endif
        told[S] = true
       }
    :: atomic {
        me == R && !told[R] && !dead[R] && (landed || ended[R]) ->
        told[R] = true;
#ifndef NO_CLOSE
        is_open = false
#endif
       }
    od
}

/* The sender's NIC, which goes with its process. Clear-to-send is there when
 * the receiver has posted it, and its stream has come to it. */
proctype put()
{
end:
    atomic {
        armed && !dead[S] &&
        ((started[S] && clear && started[R]) || fire
#ifdef POST_BLIND
         || (started[S] && started[R])
#endif
        );
        CHECK(late_read, !told[S])
    }
    atomic {
        if
        :: is_open && !dead[R] && !dead[S] ->
            CHECK(premature, started[R]);
            CHECK(overflow, !TOO_LONG);
            CHECK(late_write, !told[R]);
            landed = true
        :: else
        fi;
        put_over = true
    }
}

proctype death(byte me)
{
end:
    atomic { !dead[me] -> dead[me] = true; is_open = is_open && (me != R) }
}

/* The user of a side waits for it */
proctype user(byte me)
{
    told[me] || dead[me];
    atomic {
        if
        :: told[OTHER(me)] || dead[OTHER(me)] -> FINISH
        :: else
        fi
    }
}

init {
    atomic {
        run host(S);
        run host(R);
        run put();
#ifdef DEATH
        run death(DEATH);
#endif
        run user(S);
        run user(R)
    }
}
