/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * error_queue.pml - one operation of a queue fails, and what comes behind it in
 * the queue (docs/protocols.md, "Errors": after a release the stream runs on).
 *
 * A rank in the middle gets data from one peer and sends it on to another, on
 * one stream: r(0) w(0) s(1) w(1), USES times. The first peer may die at any
 * time; then nothing lands any more, the receive fails, and its waits are let
 * pass. What the stream sends on then is not what the first peer sent.
 *
 *   (nothing)   sound: starts of all operations of the queue do nothing after
 *               the release; those operations fail as well, their waits pass,
 *               and their peers are told, which fail too
 *   OP_ONLY     broken: only the failed operation's starts do nothing. The last
 *               rank is sent what was never received, and told that all is well
 *   NOT_TOLD    broken: the last rank is not told, and waits for ever
 *   FLAG_LATE   broken: the starts are stopped after the release
 *   DOORBELL    sound: a start is a store to a NIC's trigger page, which cannot
 *               look at a flag, and the NIC sends. Thresholds count from a base
 *               that all starts together do not make up, and the counter is set
 *               back to 0 before the release (src/ucp/st/trig/st_trig.h)
 *   DOORBELL with NO_BASE or FLAG_LATE
 *               broken: thresholds count from 0; the counter is set back after
 *               the release
 *   DOORBELL with POSTED
 *               sound: the reset is a store to the NIC that arrives later than
 *               a store of a GPU, which has another way there. The host reads
 *               the counter, until it is below the base, before the release
 *   DOORBELL with POSTED and NO_READ
 *               broken: it does not
 *
 * Counters and keys are those of error.pml; here a start moves the data.
 */
#include "common.pml"

#ifndef USES
#define USES 2
#endif

bool wrong_data;

byte arrived;              /* uses that the first peer has sent */
byte buffer;               /* of the rank in the middle */
byte sent_on;              /* uses that have come to the last rank */
byte target[USES + 1];     /* and what they were */
bool dead, halted, released, told_last;

#ifdef NO_BASE
#define BASE 0
#else
#define BASE USES
#endif
byte trigger = BASE;

active proctype first_peer()
{
    do
    :: arrived < USES ->
        atomic { buffer == 0 -> buffer = arrived + 1; arrived++ }
    :: arrived == USES -> break
    :: dead = true; break
    od
}

#ifdef DOORBELL
active proctype nic()
{
end:
    do
    :: atomic {
        sent_on < USES && trigger >= BASE + sent_on + 1 ->
        sent_on++;
        target[sent_on] = buffer
       }
    od
}
#endif

active proctype stream()
{
    byte k;

    for (k : 1 .. USES) {
        arrived >= k || released;
#ifdef DOORBELL
        trigger++;
        sent_on >= k || released;
#else
        if
#ifndef OP_ONLY
        :: halted -> skip
#endif
        :: else -> atomic { sent_on++; target[k] = buffer }
        fi;
#endif
        buffer = 0 /* for the next use */
    }
    FINISH
}

#ifdef POSTED
bool posted; /* the reset is on its way */

active proctype way()
{
end:
    posted;
    trigger = 0
}

inline reset()
{
    posted = true;
#ifndef NO_READ
    trigger < BASE
#endif
}
#else
inline reset()
{
    trigger = 0
}
#endif

active proctype host()
{
end:
    dead;
#ifdef FLAG_LATE
    released = true;
    halted = true;
    reset();
#else
    halted = true;
    reset();
    released = true;
#endif
#ifndef NOT_TOLD
    told_last = true
#endif
}

active proctype last_rank()
{
    byte k;

    for (k : 1 .. USES) {
        if
        :: atomic {
            sent_on >= k -> CHECK(wrong_data, target[k] == k)
           }
        :: told_last -> break /* with an error */
        fi
    }
}
