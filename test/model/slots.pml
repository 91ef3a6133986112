/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slots.pml - eager-ahead with SLOTS slots (docs/protocols.md, "Eager-ahead"):
 * use k lands in slot k mod SLOTS, and the clear-to-send of use k says that use
 * k - SLOTS was copied out. A sender is at most SLOTS uses ahead.
 *
 * Trigger, one of
 *   WEIGHTS       one counter: a start adds SLOTS, a clear-to-send 1, use k
 *                 goes at (SLOTS + 1) * k - SLOTS: the first SLOTS
 *                 clear-to-sends are implicit (EXPLICIT: they are sent at
 *                 match, and use k goes at (SLOTS + 1) * k)
 *   EACH_TRIGGER  a counter for each slot: eager.pml, SLOTS times; the j-th use
 *                 of a slot goes at 2j - 1 (EXPLICIT: 2j)
 *   EQUAL         broken: one counter, to which each adds 1
 * and for the arrivals a counter and a word for each slot, or
 *   ONE_COUNTER   broken: one for all; sound where the send completes only once
 *                 its data was counted (DELIVERY_COMPLETE), so that no two uses
 *                 are on their way at once
 *
 * OTHER_QUEUE: start k+1 is not behind wait k; broken with WEIGHTS, sound with
 * EACH_TRIGGER as long as start k + SLOTS is behind wait k. CTS_EARLY: broken,
 * before the copy. EDGE: see two_count.pml. Copies with their fences are
 * eager.pml's; here a copy is one step.
 */
#include "common.pml"

#ifndef SLOTS
#define SLOTS 2
#endif

#ifndef USES
#define USES 4
#endif

#define SLOT(k) (((k) - 1) % SLOTS)
#define ROUND(k) (((k) - 1) / SLOTS + 1)

#ifdef EACH_TRIGGER
#define TRIGGER(k) trigger[SLOT(k)]
#define WEIGHT 1
#define FULL(k) (2 * ROUND(k))
#define IMPLICIT 1
#elif defined(EQUAL)
#define TRIGGER(k) trigger[0]
#define WEIGHT 1
#define FULL(k) (2 * (k))
#define IMPLICIT SLOTS
#else
#define TRIGGER(k) trigger[0]
#define WEIGHT SLOTS
#define FULL(k) ((SLOTS + 1) * (k))
#define IMPLICIT SLOTS
#endif

#ifdef EXPLICIT
#define THRESHOLD(k) FULL(k)
#else
#define THRESHOLD(k) (FULL(k) - IMPLICIT)
#endif

#ifdef ONE_COUNTER
#define ARRIVAL(k) 0
#define ARRIVED(k) (k)
#else
#define ARRIVAL(k) SLOT(k)
#define ARRIVED(k) ROUND(k)
#endif

#ifdef OTHER_QUEUE
#define SEND_STREAMS SLOTS
#else
#define SEND_STREAMS 1
#endif

bool premature, overwrite, wrong_data;

byte trigger[SLOTS], landed[SLOTS], recv_word[SLOTS];
byte sent, send_word, send_posted, copies;
byte slot[SLOTS];

/* What has happened, for the properties alone */
bool send_begun[USES + 1];
byte copied;

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
        missed[send_posted] = (TRIGGER(send_posted) >= THRESHOLD(send_posted))
#endif
       }
    od
}

active proctype chains()
{
end:
    do
    :: atomic { send_word < sent -> send_word++ }
    :: atomic {
        recv_word[0] < landed[0] -> recv_word[0]++
       }
    :: atomic {
        recv_word[1] < landed[1] -> recv_word[1]++
       }
#if SLOTS > 2
    :: atomic {
        recv_word[2] < landed[2] -> recv_word[2]++
       }
#endif
    od
}

/* That of use k */
proctype clear_to_send(byte k)
{
#ifdef CTS_EARLY
    copies + 1 >= k - SLOTS && recv_word[ARRIVAL(k)] >= ARRIVED(k - SLOTS);
#else
    copies >= k - SLOTS;
#endif
    TRIGGER(k)++
}

/* One value a use: its number */
proctype put(byte k)
{
    bool completed, written, counted;

    atomic {
        send_posted >= k && TRIGGER(k) >= THRESHOLD(k) && !MISSED(k);
        CHECK(premature, send_begun[k])
    }
    do
#ifdef DELIVERY_COMPLETE
    :: atomic { !completed && counted -> sent++; completed = true }
#else
    :: atomic { !completed -> sent++; completed = true }
#endif
    :: atomic {
        !written ->
        CHECK(overwrite, copied + SLOTS >= k);
        slot[SLOT(k)] = k;
        written       = true
       }
    :: atomic { !counted && written -> landed[ARRIVAL(k)]++; counted = true }
    :: completed && counted -> break
    od
}

proctype send_stream(byte k)
{
    do
    :: k <= USES ->
        atomic { send_begun[k] = true; TRIGGER(k) = TRIGGER(k) + WEIGHT }
        send_word >= k;
        k = k + SEND_STREAMS
    :: else -> break
    od
}

proctype recv_stream()
{
    byte k = 1;

    do
    :: k <= USES ->
        recv_word[ARRIVAL(k)] >= ARRIVED(k);
        atomic { CHECK(wrong_data, slot[SLOT(k)] == k); copied = k }
        copies++;
        k++
    :: else -> break
    od;
    FINISH
}

init {
    byte k;

    atomic {
        for (k : 1 .. USES) {
            run put(k)
        }
        for (k : SLOTS + 1 .. USES) {
            run clear_to_send(k)
        }
#ifdef EXPLICIT
        for (k : 1 .. SLOTS) {
            TRIGGER(k)++
        }
#endif
        for (k : 1 .. SEND_STREAMS) {
            run send_stream(k)
        }
        run recv_stream()
    }
}
