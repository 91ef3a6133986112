/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * error.pml - a pair with a two-count trigger fails (two_count.pml for the
 * protocol, docs/protocols.md, "Errors", for the order).
 *
 * Either side may fail at any time, and the other fails when it hears of it.
 * Each side has a region that its peer writes: the sender's is for
 * clear-to-sends, the receiver's is the buffer. A put or clear-to-send that
 * finds the region closed fails and is counted nowhere; one that was let in
 * before is drained by waiting for it. A closed region is told to the peer.
 *
 *   receiver: close the region, drain it, tell the peer; let the waits pass;
 *             when the stream has passed them, the user is told
 *   sender:   close the region, drain it, tell the peer; wait until the peer
 *             has closed its own; fire the entries that are still armed, which
 *             fail; when all are over, let the waits pass; when the stream has
 *             passed them, the user is told
 *
 * The stream runs on after a release: kernels write the buffer, starts do
 * nothing. A user that was told of an error has an undefined buffer, one that
 * was not has the right data.
 *
 *   QUIET      sound: the sender does not wait for its peer. With the region
 *              closed, and starts halted, no entry can fire any more but those
 *              whose threshold is met, and these are waited for; the others
 *              stay armed, with all they need, until the peer has closed its
 *              region
 *   SEND_RUNS_ON, RECV_RUNS_ON
 *              starts after a release do add. Sound where the peer's region is
 *              closed before the release; so SEND_RUNS_ON is broken with QUIET,
 *              and RECV_RUNS_ON is harmless
 *   SILENT     no message arrives, though the peer is alive: the sender's way
 *              is broken (it waits for ever), QUIET is sound, and so is taking
 *              the domain as the error's scope (DOMAIN: what is armed is
 *              dropped)
 *   EAGER      eager.pml's protocol, `target` being the slot
 *   FAIL_SEND, FAIL_RECV
 *              only this side fails by itself
 *
 * Broken variants:
 *   REPORT_FIRST  the receiver's user is told before the region is closed
 *   NO_DRAIN      the receiver's region is closed and not drained
 *   FIRE_OPEN     armed entries are fired though the peer's region is open
 * and of QUIET:
 *   NO_WAIT       nobody waits for the entries whose threshold is met
 *   TORN_START    a start looks whether it is halted, and adds later
 *   FREE_EARLY    the trigger counter serves another operation while entries
 *                 are armed
 */
#include "common.pml"

#ifndef USES
#define USES 2
#endif

#define SEND 0
#define RECV 1

#ifdef FAIL_SEND
#define FAILS(side) ((side) == SEND)
#elif defined(FAIL_RECV)
#define FAILS(side) ((side) == RECV)
#else
#define FAILS(side) true
#endif

#ifdef SILENT
#define HEARS(side) false
#else
#define HEARS(side) told_closed[side]
#endif

#ifdef EAGER
#define THRESHOLD(k) (2 * (k) - 1)
#define RECV_BEGUN(k) true
#else
#define THRESHOLD(k) (2 * (k))
#define RECV_BEGUN(k) (recv_begun >= (k))
#endif

bool premature, late_write, wrong_data;

byte trigger, started, sent, landed; /* the NICs' counters; EAGER: `started`
                                        counts slots that were copied out */
byte send_word, recv_word;
byte send_posted, recv_posted;
byte source, target;

bool open[2] = true;         /* the regions */
byte inside[2];              /* let in, and not yet counted */
byte puts_fired;             /* of interest with DOMAIN alone */
byte puts_over;              /* completed or failed */
bool dropped;                /* DOMAIN: nothing fires any more */

bool failing[2], halted[2], told_closed[2], released[2], passed[2], told[2];

/* What has happened, for the properties alone */
byte send_begun, recv_begun;

active proctype posts()
{
end:
    do
    :: atomic { !failing[SEND] && send_posted < USES -> send_posted++ }
    :: atomic { !failing[RECV] && recv_posted < USES -> recv_posted++ }
    od
}

active proctype chains()
{
end:
    do
    :: atomic { send_word < sent && send_word < send_posted -> send_word++ }
    :: atomic { recv_word < landed && recv_word < recv_posted -> recv_word++ }
    od
}

proctype clear_to_send(byte k)
{
end_armed:
    recv_posted >= k && started >= k;
    atomic {
        if
        :: open[SEND] -> inside[SEND]++
        :: else -> goto failed
        fi
    }
    atomic { trigger++; inside[SEND]-- }
failed:
    skip
}

proctype put(byte k)
{
    byte value;
    bool completed, written, counted;

end_armed:
    atomic {
        send_posted >= k && trigger >= THRESHOLD(k) && !dropped;
#ifdef DOMAIN
        puts_fired++
#endif
    }
    value = source;
    atomic {
        if
        :: open[RECV] ->
            CHECK(premature, send_begun >= k && RECV_BEGUN(k));
            inside[RECV]++
        :: else -> puts_over++; goto failed
        fi
    }
    do
    :: atomic { !completed -> sent++; puts_over++; completed = true }
    :: atomic {
        !written ->
        CHECK(late_write, !told[RECV]);
        target  = value;
        written = true
       }
    :: atomic {
        !counted && written -> landed++; inside[RECV]--; counted = true
       }
    :: completed && counted -> break
    od;
failed:
    skip
}

/* A start; `adds` tells whether it has an effect after a release */
inline start(side, begun, counter, adds)
{
    atomic {
        if
        :: halted[side] && !adds -> skip
        :: else -> begun = (released[side] -> begun : k); counter++
        fi
    }
}

#ifdef SEND_RUNS_ON
#define SEND_ADDS true
#else
#define SEND_ADDS false
#endif

#ifdef RECV_RUNS_ON
#define RECV_ADDS true
#else
#define RECV_ADDS false
#endif

active proctype send_stream()
{
    byte k;

    for (k : 1 .. USES) {
        source = k;
#ifdef TORN_START
        if
        :: halted[SEND] -> skip
        :: else -> send_begun = k; trigger++
        fi;
#else
        start(SEND, send_begun, trigger, SEND_ADDS);
#endif
        send_word >= k || released[SEND];
        source = 0 /* the buffer is the user's again */
    }
    passed[SEND] = true
}

active proctype recv_stream()
{
    byte k;
    bool is_bad;

    for (k : 1 .. USES) {
#ifndef EAGER
        start(RECV, recv_begun, started, RECV_ADDS);
#endif
#ifdef SILENT
end_deaf:
#endif
        recv_word >= k || released[RECV];
        is_bad = is_bad || (target != k);
#ifdef EAGER
        start(RECV, recv_begun, started, RECV_ADDS) /* the slot is free again */
#endif
    }
    atomic {
        CHECK(wrong_data, failing[RECV] || !is_bad);
        told[RECV]   = !failing[RECV];
        passed[RECV] = true
    }
    FINISH
}

/* Something failed here, or the peer has closed its region; a side that is
 * through closes its own for the peer's sake */
inline notice(side)
{
    atomic {
        (!passed[side] && FAILS(side)) || HEARS(1 - side);
        failing[side] = !passed[side]
    }
}

inline close(side)
{
    open[side] = false;
#ifdef NO_DRAIN
    inside[side] == 0 || side == RECV;
#else
    inside[side] == 0;
#endif
    told_closed[side] = true
}

inline release(side)
{
    atomic { halted[side] = true; released[side] = true }
    passed[side];
    told[side] = true
}

/* Get rid of what is still armed, with no effect if the peer has closed */
inline fire()
{
    trigger = trigger + 2 * USES;
    puts_over == send_posted
}

/* Entries whose threshold is met: the host reads the counter */
#define IS_DUE(k) (send_posted >= (k) && trigger >= THRESHOLD(k))
#define PUTS_DUE (IS_DUE(1) + IS_DUE(2) + IS_DUE(3))

active proctype send_host()
{
end:
    notice(SEND);
#ifdef QUIET
    halted[SEND] = true;
    close(SEND);
    if
    :: failing[SEND] ->
#ifndef NO_WAIT
        puts_over >= PUTS_DUE;
#endif
        release(SEND);
#ifdef FREE_EARLY
        trigger = trigger + USES;
#endif
end_peer:
        HEARS(RECV);
        fire()
    :: else
    fi
#else
    close(SEND);
    if
    :: failing[SEND] ->
#ifdef DOMAIN
        dropped = true;
        puts_over == puts_fired;
#else
#ifndef FIRE_OPEN
        HEARS(RECV);
#endif
        fire();
#endif
        release(SEND)
    :: else
    fi
#endif
}

active proctype recv_host()
{
end:
    notice(RECV);
#ifdef REPORT_FIRST
    if
    :: failing[RECV] -> release(RECV)
    :: else
    fi;
    close(RECV)
#else
    close(RECV);
    if
    :: failing[RECV] -> release(RECV)
    :: else
    fi
#endif
}

init {
    byte k;

    atomic {
        for (k : 1 .. USES) {
            run put(k);
            run clear_to_send(k)
        }
    }
}
