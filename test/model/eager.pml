/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eager.pml - eager-ahead: data lands in a slot of the receive, and the
 * receive's wait copies it to the buffer (docs/protocols.md, "Eager-ahead").
 *
 *   sender                                     receiver
 *   stream:  start adds 1 to `trigger`
 *   NIC:     put k fires at trigger >= 2k-1 -> `slot`, then `landed`
 *            `sent` -> send_word               `landed` -> recv_word
 *   stream:  wait for send_word >= k           stream:  wait for
 *                                                       recv_word >= k,
 *                                                       acquire, copy the slot
 *                                                       out, fence, add 1 to
 *                                                       `copies`
 *            `trigger` counts that put too <-- NIC:     clear-to-send k+1 fires
 *                                                       at copies >= k
 *
 * The first clear-to-send is implicit: k starts and k-1 clear-to-sends let use
 * k go. EXPLICIT: it is sent at match time, and the threshold is 2k.
 *
 * A payload has two cells, which are written and read in any order. A load of
 * the copy is carried out at any time between its issue and the next fence.
 *
 * SEEN is sound, as in two_count.pml. So is OTHER_QUEUE_RECV here: wait k+1
 * cannot pass before the copy of use k has let use k+1 go.
 *
 * Broken variants; COUNT_FIRST, DUP_CTS, EDGE, OTHER_QUEUE_SEND as in
 * two_count.pml, and
 *   CTS_AT_START      with the receive's start instead of its wait
 *   CTS_BEFORE_COPY, CTS_HALF_COPY
 *   NO_FENCE          the copy's loads are outstanding at the clear-to-send
 *   NO_ACQUIRE        the copy's loads run before the wait has passed
 *   FIRST_TWICE       2k-1, and one at match too
 *   FIRST_NEVER       2k, and none at match
 *
 * RELEASE: the receiver's host may fail the operation at any time: it closes
 * the slot's region, drains it, lets the waits pass and, once its stream has
 * passed them, tells the user. That may then use the buffer and the slot for
 * anything. Broken: TELL_EARLY (when the waits are let pass: the copy is
 * still going to run), SLOT_OPEN (the slot's region is not closed, because it
 * is not the operation's alone). CTS_RUNS_ON is sound: after a release the
 * stream goes on adding to `copies`; nothing comes of it, for the region is
 * closed.
 */
#include "common.pml"

#ifndef USES
#define USES 3
#endif

#if defined(EXPLICIT) || defined(FIRST_NEVER)
#define THRESHOLD(k) (2 * (k))
#else
#define THRESHOLD(k) (2 * (k) - 1)
#endif

#if defined(EXPLICIT) || defined(FIRST_TWICE)
#define AT_MATCH 1
#else
#define AT_MATCH 0
#endif

#if defined(OTHER_QUEUE_SEND) || defined(SEEN)
#define SEND_STREAMS 2
#else
#define SEND_STREAMS 1
#endif

#if defined(OTHER_QUEUE_RECV) || defined(SEEN)
#define RECV_STREAMS 2
#else
#define RECV_STREAMS 1
#endif

bool premature, overwrite, wrong_data, late_write;

byte trigger = AT_MATCH;
byte sent, landed, copies;           /* the NICs' other counters */
byte send_word, recv_word;           /* what the streams wait on */
byte send_posted, recv_posted;       /* uses whose entries were posted */
byte source;
byte slot[2], target[2];
bool loading[2];                     /* loads issued and not carried out */

/* What has happened, for the properties and SEEN alone */
byte send_begun, send_passed, copied;

/* RELEASE */
bool closed, released, passed, told;
byte accepted;                       /* puts that the open region let in */

#ifdef EDGE
bool missed[USES + 1];
#define MISSED(k) missed[k]
#else
#define MISSED(k) false
#endif

active proctype send_host()
{
end:
    do
    :: atomic {
        send_posted < USES ->
        send_posted++;
#ifdef EDGE
        missed[send_posted] = (trigger >= THRESHOLD(send_posted))
#endif
       }
    od
}

active proctype recv_host()
{
end:
    do
    :: atomic { recv_posted < USES -> recv_posted++ }
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

/* That of use k + 1 */
proctype clear_to_send(byte k)
{
end_armed:
    recv_posted >= k && copies >= k;
    trigger++;
#ifdef DUP_CTS
    trigger++
#endif
}

inline land(cell)
{
    atomic {
        CHECK(overwrite, copied == k - 1 || released);
        CHECK(late_write, !told);
        slot[cell] = value
    }
}

proctype put(byte k)
{
    byte value;
    bool completed, first, second, counted;

end_armed:
    atomic {
        send_posted >= k && trigger >= THRESHOLD(k) && !MISSED(k);
#ifdef RELEASE
        CHECK(premature, send_begun >= k || closed)
#else
        CHECK(premature, send_begun >= k)
#endif
    }
    value = source;
#ifdef RELEASE
    atomic {
        if
        :: !closed -> accepted++
        :: else -> goto failed
        fi
    }
#endif
    do
    :: atomic { !completed -> sent++; completed = true }
    :: !first -> land(0); first = true
    :: !second -> land(1); second = true
#ifdef COUNT_FIRST
    :: atomic { !counted -> landed++; counted = true }
#else
    :: atomic { !counted && first && second -> landed++; counted = true }
#endif
    :: completed && first && second && counted -> break
    od;
#ifdef RELEASE
    accepted--;
failed:
#endif
    skip
}

proctype send_stream(byte k)
{
    do
    :: k <= USES ->
#ifdef SEEN
        send_passed >= k - 1;
#endif
        source = k;
        atomic { send_begun = k; trigger++ }
#ifdef RELEASE
end_wait: /* it is told of the peer's failure: another model's matter */
#endif
        send_word >= k;
        source = 0; /* the buffer is the user's again */
        atomic { send_passed = k; k = k + SEND_STREAMS }
    :: else -> break
    od
}

/* The copy's loads, once issued */
active proctype loads()
{
end:
    do
    :: atomic { loading[0] -> CHECK(late_write, !told); target[0] = slot[0];
                loading[0] = false }
    :: atomic { loading[1] -> CHECK(late_write, !told); target[1] = slot[1];
                loading[1] = false }
    od
}

inline issue()
{
    atomic { loading[0] = true; loading[1] = true }
}

inline fence()
{
    !loading[0] && !loading[1]
}

#if defined(RELEASE) && !defined(CTS_RUNS_ON)
#define ADD_COPY if :: !released -> copies++ :: else fi
#else
#define ADD_COPY copies++
#endif

proctype recv_stream(byte k)
{
    do
    :: k <= USES ->
#ifdef SEEN
        copied >= k - 1;
#endif
#ifdef CTS_AT_START
        copies++;
#endif
#ifdef NO_ACQUIRE
        issue();
#endif
        recv_word >= k || released;
#ifdef CTS_BEFORE_COPY
        copies++;
#endif
#ifndef NO_ACQUIRE
        issue();
#endif
#ifdef CTS_HALF_COPY
        !loading[0];
        copies++;
#endif
#ifdef NO_FENCE
        copies++;
#endif
        fence();
        atomic {
            copied = k;
            if
            :: released -> skip /* then the buffer is undefined */
            :: else -> CHECK(wrong_data, target[0] == k && target[1] == k)
            fi
        }
#if !defined(CTS_AT_START) && !defined(CTS_BEFORE_COPY) && \
    !defined(CTS_HALF_COPY) && !defined(NO_FENCE)
        ADD_COPY;
#endif
        k = k + RECV_STREAMS
    :: else -> break
    od;
    passed = true;
    FINISH
}

#ifdef RELEASE
proctype recv_fails()
{
end_well:
    !passed;
#ifndef SLOT_OPEN
    closed = true;
    accepted == 0;
#endif
    released = true;
#ifndef TELL_EARLY
    passed;
#endif
    told = true
}
#endif

init {
    byte k;

    atomic {
        for (k : 1 .. USES) {
            run put(k);
            run clear_to_send(k)
        }
        for (k : 1 .. SEND_STREAMS) {
            run send_stream(k)
        }
        for (k : 1 .. RECV_STREAMS) {
            run recv_stream(k)
        }
#ifdef RELEASE
        run recv_fails()
#endif
    }
}
