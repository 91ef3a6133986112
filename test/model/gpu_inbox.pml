/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_inbox.pml - lane direct on streams of GPUs, tier M: copies and stores of
 * the streams themselves. None of them can look at anything.
 *
 *   start k of the send:    copies to the inbox, place k mod PLACES, in the
 *                           receiver's device; stores k to the receiver's word
 *   wait k of the receive:  its word >= k, copies out, stores k to the sender's
 *                           word (the credit)
 *   wait k of the send:     its word >= k+1-PLACES
 *
 * The start of the receive is no command. A payload has two cells. Copies of a
 * stream take effect in any order before the next store with a barrier.
 *
 *   READY           ready sends: start k of the send copies to the buffer of
 *                   the receive, which the caller knows to have started, and
 *                   stores k to the receiver's word; there is no credit
 *
 * Broken variants:
 *   UNGUARDED       READY, and the caller knows nothing
 *   NO_BARRIER      the start's store is one without a barrier
 *   CREDIT_NO_BARRIER  ... that of the receive's wait
 *   CREDIT_FIRST    the receive's wait stores the credit before it copies
 *   CREDIT_LOW      the send's wait is for k-PLACES
 *
 * ERROR: either host may fail the operation at any time; with DIES the sender's
 * process may die at any time. A stream runs on to its end, and so do its
 * copies and stores. A host lets the waits of its stream pass by a store of BIG
 * to its word, again and again until the stream is at its end, as the peer's
 * stores take the place of BIG. Then it acknowledges. What the peer's stream
 * writes to (the inbox, the word, and with READY the buffer) is kept until the
 * peer has acknowledged, or is dead; without READY the user is told when the
 * own stream is at its end.
 *   FREED           broken: the inbox is used again when the user is told
 *   WORD_FREED      broken: the word is
 *   ACK_EARLY       broken: acknowledges when the waits are let pass
 *   GONE            broken: a peer that was declared gone, and lives
 *   ONLY_ACK        broken: waits for a dead peer
 *   RELEASE_ONCE    broken: BIG is stored once
 *   TELL_EARLY      broken: the user is told when the waits are let pass
 *   with READY, TELL_EARLY  broken: ... when the own stream is at its end
 *   UNKNOWN         broken: the waits are let pass before the peer's host knows
 *                   that the operation has failed: what the stream sends then
 *                   is taken for good
 */
#include "common.pml"

#ifndef USES
#define USES 2
#endif
#ifndef PLACES
#define PLACES 2
#endif

#define SEND 0
#define RECV 1
#define BIG 100

bool premature, overwrite, wrong_data, late_write;

byte word[2];
byte source[2], target[2];
byte inbox[PLACES * 2];
#define CELL(use, cell) inbox[((use) % PLACES) * 2 + (cell)]

bool failed[2], released[2], over[2], told[2], acknowledged[2];
bool inbox_freed, word_freed[2];
bool dead;

/* What has happened, for the properties alone */
byte begun, passed, taken;

/* A stream's copies that have not taken effect: one per cell */
byte copying[2], copying_out[2]; /* the use */

inline land(cell)
{
    atomic {
        copying[cell] > 0 ->
#ifdef READY
        CHECK(premature, begun >= copying[cell]);
        CHECK(overwrite, passed < copying[cell] || released[RECV]);
        CHECK(late_write, !told[RECV]);
        target[cell] = source[cell];
#else
        CHECK(overwrite, taken + PLACES >= copying[cell] || released[SEND] || \
                         failed[RECV]);
        CHECK(late_write, !inbox_freed);
        CELL(copying[cell], cell) = source[cell];
#endif
        copying[cell] = 0
    }
}

inline take_out(cell)
{
    atomic {
        copying_out[cell] > 0 ->
        CHECK(late_write, !told[RECV]);
        target[cell] = CELL(copying_out[cell], cell);
        taken = (copying_out[1 - cell] == 0 -> copying_out[cell] : taken);
        copying_out[cell] = 0
    }
}

active proctype copies_in()
{
end:
    do
    :: land(0)
    :: land(1)
    od unless { dead }
}

#ifndef READY
active proctype copies_out()
{
end:
    do
    :: take_out(0)
    :: take_out(1)
    od
}
#endif

inline store(side, k)
{
    atomic {
        CHECK(late_write, !word_freed[side]);
        word[side] = k
    }
}

#ifdef CREDIT_LOW
#define CREDIT(k) ((k) > PLACES -> (k) - PLACES : 0)
#else
#define CREDIT(k) ((k) + 1 > PLACES -> (k) + 1 - PLACES : 0)
#endif

#if defined(READY) && !defined(UNGUARDED)
#define MAY_START(k) (begun >= (k) || over[RECV])
#else
#define MAY_START(k) true
#endif

active proctype send_stream()
{
    byte k = 1;

    {
    do
    :: k <= USES ->
        atomic {
            MAY_START(k);
            source[0]  = k;
            source[1]  = k;
            copying[0] = k;
            copying[1] = k
        }
#ifdef NO_BARRIER
        store(RECV, k);
        copying[0] == 0 && copying[1] == 0;
#else
        atomic {
            copying[0] == 0 && copying[1] == 0 ->
            store(RECV, k)
        }
#endif
        atomic {
#ifdef READY
            true ->
#else
            word[SEND] >= CREDIT(k) ->
#endif
            source[0] = 0;
            source[1] = 0;
            k++
        }
    :: else -> break
    od;
    over[SEND] = true
    } unless { dead }
}

active proctype recv_stream()
{
    byte k = 1;

    do
    :: k <= USES ->
        begun = k;
        word[RECV] >= k;
#ifndef READY
#ifdef CREDIT_FIRST
        store(SEND, k);
#endif
        atomic { copying_out[0] = k; copying_out[1] = k }
#ifdef CREDIT_NO_BARRIER
        store(SEND, k);
#endif
        copying_out[0] == 0 && copying_out[1] == 0;
#if !defined(CREDIT_FIRST) && !defined(CREDIT_NO_BARRIER)
        store(SEND, k);
#endif
#endif
        atomic {
            CHECK(wrong_data, \
                  failed[RECV] || (target[0] == k && target[1] == k));
            passed = k;
            k++
        }
    :: else -> break
    od;
    over[RECV] = true;
    FINISH
}

#ifdef ERROR
#if defined(GONE)
#define IS_SILENT(side) (acknowledged[1 - (side)] || failed[side])
#elif defined(ONLY_ACK)
#define IS_SILENT(side) acknowledged[1 - (side)]
#else
#define IS_SILENT(side) (acknowledged[1 - (side)] || side == RECV && dead)
#endif

/* An operation may be freed without an error as well, when it is over: what its
 * peer's stream writes to is kept as long */
proctype host(bit side)
{
end:
    {
    if
    :: over[side]
    :: atomic { !over[side] -> failed[side] = true }
#ifndef UNKNOWN
       failed[1 - side] || over[1 - side] || dead;
#endif
#ifdef ACK_EARLY
       acknowledged[side] = true;
#endif
#if defined(TELL_EARLY) && !defined(READY)
       released[side] = true;
       told[side]     = true;
#endif
       do
       :: over[side] -> break
       :: atomic {
           !over[side] && word[side] < BIG ->
           word[side]     = BIG;
           released[side] = true
#ifdef RELEASE_ONCE
           ;
           break
#endif
          }
       od;
       over[side]
    fi;
    acknowledged[side] = true;
#if !defined(READY) || defined(TELL_EARLY)
    told[side] = true;
#endif
#ifdef FREED
    inbox_freed = inbox_freed || side == RECV;
#endif
#ifdef WORD_FREED
    word_freed[side] = true;
#endif
    IS_SILENT(side);
    atomic {
        told[side]       = true;
        word_freed[side] = true;
        inbox_freed      = inbox_freed || side == RECV
    }
    } unless { side == SEND && dead }
}

#ifdef DIES
active proctype death()
{
end:
    atomic { !over[SEND] -> dead = true }
}
#endif

init {
    atomic {
        run host(SEND);
        run host(RECV)
    }
}
#endif
