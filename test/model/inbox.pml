/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inbox.pml - eager-ahead as libucp_st does it (src/ucp/st/trig/st_trig.h): the
 * receive has an inbox of SLOTS slots, use k lands in slot k mod SLOTS, and one
 * clear-to-send is for ROUND of them, half of all.
 *
 *   sender                                     receiver
 *   stream:  start adds 2 to `trigger`
 *   NIC:     put k fires at trigger >=     ->  slot of use k, then `landed`
 *            2k + NEEDED(k)
 *            `sent` -> send_word               `landed` -> recv_word
 *   stream:  wait for send_word >= k           stream:  wait for
 *                                                       recv_word >= k, copy
 *                                                       the slot out; k =
 *                                                       ROUND * j: fence, add 1
 *                                                       to `copies`
 *            `trigger` counts that put too <-- NIC:     clear-to-send j fires
 *                                                       at copies >= j
 *
 * The first SLOTS uses need no clear-to-send, and where the sender keeps step
 * with the receiver there is one more than what is needed. `landed` is one
 * counter for all slots. A put is complete, and counted by `sent`, once it is
 * visible at the receiver; it is counted there before or after that, so that
 * two uses may be counted in the wrong order.
 *
 * A payload has two cells. A load of a copy is carried out at any time between
 * its issue and the next fence, which only the last copy of a round has.
 *
 * ROUND = SLOTS is sound: one clear-to-send is for all slots. So is START_ONE
 * then: a start adds 1, and use k goes at k + NEEDED(k). With half rounds it is
 * broken: a clear-to-send that is ahead does for a start.
 *
 * Broken variants; NO_FENCE, COUNT_FIRST, EDGE, OTHER_QUEUE_SEND as in
 * eager.pml, EARLY_COMPLETION as in two_count.pml, and
 *   START_LIGHT       a start adds 1, the threshold is as it was
 *   CTS_AT_FIRST      for a round when the first of it was copied out
 *   CTS_BEFORE_LAST   before the last copy
 *   CTS_EACH          one for each copy, and the threshold is as it was
 *   THRESHOLD_LOW, THRESHOLD_HIGH
 *                     1 less, 1 more
 *   FIRST_TWICE       one at match too
 */
#include "common.pml"

#ifndef SLOTS
#define SLOTS 2
#endif

#ifndef USES
#define USES 4
#endif

#ifndef ROUND
#define ROUND (SLOTS / 2)
#endif

#define SLOT(k) (((k) - 1) % SLOTS)

/* Clear-to-sends that use k needs */
#define NEEDED(k) \
    ((k) <= SLOTS -> 0 : ((k) - 1) / ROUND - (SLOTS / ROUND - 1))

#if defined(START_ONE) || defined(START_LIGHT)
#define WEIGHT 1
#else
#define WEIGHT 2
#endif

#ifdef START_ONE
#define STARTS(k) (k)
#else
#define STARTS(k) (2 * (k))
#endif

#ifdef THRESHOLD_LOW
#define SHIFT -1
#elif defined(THRESHOLD_HIGH)
#define SHIFT +1
#else
#define SHIFT
#endif

#define THRESHOLD(k) (STARTS(k) + NEEDED(k) SHIFT)

/* Uses that clear-to-send j follows, and how many there are */
#ifdef CTS_EACH
#define FOLLOWS(j) (j)
#define CLEARS USES
#else
#define FOLLOWS(j) (ROUND * (j))
#define CLEARS (USES / ROUND)
#endif

#ifdef OTHER_QUEUE_SEND
#define SEND_STREAMS 2
#else
#define SEND_STREAMS 1
#endif

bool premature, overwrite, wrong_data;

byte trigger;
byte sent, landed, copies;         /* the NICs' other counters */
byte send_word, recv_word;         /* what the streams wait on */
byte send_posted, recv_posted;     /* uses whose entries were posted */
byte source;

/* Of each cell: what is there, the use whose load was issued last, and the one
 * whose load was carried out last */
#define CELL(k, half) (2 * SLOT(k) + (half))
byte slot[2 * SLOTS], wanted[2 * SLOTS], loaded[2 * SLOTS];

bool send_begun[USES + 1];         /* for the property alone */

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

proctype clear_to_send(byte j)
{
end_armed:
    recv_posted >= FOLLOWS(j) && copies >= j;
    trigger++
}

inline land(half)
{
    atomic {
        CHECK(overwrite, loaded[CELL(k, half)] + SLOTS >= k);
        slot[CELL(k, half)] = value
    }
}

proctype put(byte k)
{
    byte value;
    bool completed, first, second, counted;

    atomic {
        send_posted >= k && trigger >= THRESHOLD(k) && !MISSED(k);
        CHECK(premature, send_begun[k])
    }
    value = source;
    do
#ifdef EARLY_COMPLETION
    :: atomic { !completed -> sent++; completed = true }
#else
    :: atomic { !completed && first && second -> sent++; completed = true }
#endif
    :: !first -> land(0); first = true
    :: !second -> land(1); second = true
#ifdef COUNT_FIRST
    :: atomic { !counted -> landed++; counted = true }
#else
    :: atomic { !counted && first && second -> landed++; counted = true }
#endif
    :: completed && first && second && counted -> break
    od
}


proctype send_stream(byte k)
{
    do
    :: k <= USES ->
        source = k;
        atomic { send_begun[k] = true; trigger = trigger + WEIGHT }
        send_word >= k;
        source = 0; /* the buffer is the user's again */
        k = k + SEND_STREAMS
    :: else -> break
    od
}

inline load(cell)
{
    atomic {
        wanted[cell] != loaded[cell] ->
        CHECK(wrong_data, slot[cell] == wanted[cell]);
        loaded[cell] = wanted[cell]
    }
}

/* The copies' loads, once issued */
active proctype loads()
{
end:
    do
    :: load(0)
    :: load(1)
    :: load(2)
    :: load(3)
#if SLOTS > 2
    :: load(4)
    :: load(5)
#endif
#if SLOTS > 3
    :: load(6)
    :: load(7)
#endif
    od
}

inline copy(k)
{
    atomic { wanted[CELL(k, 0)] = k; wanted[CELL(k, 1)] = k }
}

inline fence()
{
    wanted[0] == loaded[0] && wanted[1] == loaded[1] &&
    wanted[2] == loaded[2] && wanted[3] == loaded[3];
#if SLOTS > 2
    wanted[4] == loaded[4] && wanted[5] == loaded[5];
#endif
#if SLOTS > 3
    wanted[6] == loaded[6] && wanted[7] == loaded[7]
#endif
}

active proctype recv_stream()
{
    byte k = 1;

    do
    :: k <= USES ->
        recv_word >= k;
#ifdef CTS_BEFORE_LAST
        if
        :: k % ROUND == 0 -> fence(); copies++
        :: else
        fi;
#endif
        copy(k);
#ifdef CTS_EACH
        fence();
        copies++;
#elif defined(CTS_AT_FIRST)
        if
        :: k % ROUND == 1 -> fence(); copies++
        :: else
        fi;
#elif defined(NO_FENCE)
        if
        :: k % ROUND == 0 -> copies++
        :: else
        fi;
#elif !defined(CTS_BEFORE_LAST)
        if
        :: k % ROUND == 0 -> fence(); copies++
        :: else
        fi;
#endif
        k++
    :: else -> break
    od;
    fence(); /* the last copies are over */
    FINISH
}

init {
    byte k;

    atomic {
        for (k : 1 .. USES) {
            run put(k)
        }
        for (k : 1 .. CLEARS) {
            run clear_to_send(k)
        }
        for (k : 1 .. SEND_STREAMS) {
            run send_stream(k)
        }
#ifdef FIRST_TWICE
        trigger++
#endif
    }
}
