/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * merged_ready.pml - the ready sends of one stream share a trigger counter, and
 * what is waited for together shares a completion counter (docs/protocols.md,
 * "Entries and counters").
 *
 *   host:    a batch starts some operations: each gets an entry, which may fail
 *            for one of them and with it for the batch; then each gets the next
 *            sequence number of the stream as its threshold
 *   stream:  the batch's start adds the number of its operations, at once
 *   NIC:     a put fires at trigger >= its sequence number; then sent += 1
 *   stream:  waitall passes at sent >= all that were started so far
 *
 * The host makes up batches as it likes: every round starts every operation
 * once, in any order and grouping, and then waits for all. It runs ahead of the
 * stream by as many commands as there are.
 *
 * Broken variants: NUMBER_FIRST (sequence numbers are given out while entries
 * are still being reserved: those of a refused batch are never reached),
 * TWO_STREAMS (the last operation is started by another stream, which adds to
 * the same counter), SWAPPED (the batch starts its operations one by one,
 * against the order of their numbers; ONE_ADD_EACH in their order is sound),
 * WAIT_ONE (operations are waited for one by one, with the shared completion
 * counter; OWN_COMPLETION, one counter each, is sound), EDGE (see
 * two_count.pml).
 */
#include "common.pml"

#ifndef OPS
#define OPS 2
#endif

#ifndef ROUNDS
#define ROUNDS 2
#endif

#define ALL ((1 << OPS) - 1)
#define HAS(mask, op) (((mask) >> (op)) & 1)

/* At most so many batches are refused for want of entries */
#ifndef REFUSALS
#define REFUSALS 1
#endif

#if defined(TWO_STREAMS) || defined(SWAPPED)
#define ONE_ADD_EACH
#endif

#ifdef SWAPPED
#define ORDER(i) (OPS - 1 - (i))
#else
#define ORDER(i) (i)
#endif

#ifdef TWO_STREAMS
#define STREAMS 2
#define STREAM_OF(op) ((op) == OPS - 1)
#else
#define STREAMS 1
#define STREAM_OF(op) 0
#endif

#ifdef OWN_COMPLETION
#define COUNTER(op) op
#else
#define COUNTER(op) 0
#endif

bool premature, wrong_data;

mtype = { START, WAIT_ALL, WAIT };
/* Command, the operations' mask or the operation, value to add or wait for */
chan commands[STREAMS] = [ROUNDS * (2 * OPS + 1)] of { mtype, byte, byte };

byte trigger, sent[OPS];
byte threshold[OPS * ROUNDS];   /* of a posted entry; 0: not posted */
byte source[OPS];
byte sequence;                  /* the host's */

/* What has happened, for the property alone */
byte begun[OPS];

#ifdef EDGE
bool missed[OPS * ROUNDS];
#define MISSED(i) missed[i]
#else
#define MISSED(i) false
#endif

/* The entry of use `round` of an operation */
proctype put(byte op, round, i)
{
    threshold[i] != 0; /* then it is posted whenever the host gets to it */
#ifdef EDGE
    missed[i] = (trigger >= threshold[i]);
#endif
    atomic {
        trigger >= threshold[i] && !MISSED(i);
        CHECK(premature, begun[op] >= round)
    }
    CHECK(wrong_data, source[op] == round);
    sent[COUNTER(op)]++
}

proctype stream(byte s)
{
    byte which, value, op;

end:
    do
    :: atomic {
        commands[s] ? START, which, value ->
        for (op : 0 .. OPS - 1) {
            if
            :: HAS(which, op) -> begun[op]++; source[op] = begun[op]
            :: else
            fi
        }
        trigger = trigger + value;
        op      = 0;
        which   = 0;
        value   = 0
       }
    :: commands[s] ? WAIT_ALL, _, value;
       atomic {
        sent[0] >= value;
        for (op : 0 .. OPS - 1) {
            source[op] = 0 /* the buffer is the user's again */
        }
        op    = 0;
        value = 0
       }
    :: commands[s] ? WAIT, which, value;
       atomic {
        sent[COUNTER(which)] >= value;
        source[which] = 0;
        which         = 0;
        value         = 0
       }
    od
}

/* Start the operations of `mask`: all get their entries, or none. The masks are
 * gone through from the first operation to the last. */
inline start_batch()
{
    number = sequence;
    refuse = false;
    if
    :: refusals < REFUSALS -> refuse = true; refusals++
    :: true
    fi;
    for (op : 0 .. OPS - 1) {
        if
        :: HAS(mask, op) ->
            number++;
            if
            :: !refuse ->
                threshold[op * ROUNDS + round - 1] = number
            :: else
            fi
        :: else
        fi
    }
    if
    :: refuse ->
#ifdef NUMBER_FIRST
        sequence = number - 1; /* the last one was refused */
#else
        skip
#endif
    :: else ->
        left = left & (ALL ^ mask);
#ifdef ONE_ADD_EACH
        for (op : 0 .. OPS - 1) {
            if
            :: HAS(mask, ORDER(op)) ->
                commands[STREAM_OF(ORDER(op))] ! START, 1 << ORDER(op), 1
            :: else
            fi
        }
#else
        commands[0] ! START, mask, number - sequence;
#endif
        sequence = number
    fi
}

active proctype host()
{
    byte round = 1, left, mask, number, refusals, op;
    bool refuse;

    do
    :: round <= ROUNDS ->
        left = ALL;
        do
        :: atomic {
            left != 0 ->
            select(mask : 1 .. ALL);
            if
            :: (mask & left) == mask -> start_batch()
            :: else
            fi;
            mask = 0;
            op   = 0
           }
        :: left == 0 -> break
        od;
#ifdef WAIT_ONE
        left = ALL;
        do
        :: atomic {
            left != 0 ->
            select(op : 0 .. OPS - 1);
            if
            :: HAS(left, op) ->
                left = left & (ALL ^ (1 << op));
                mask++;
#ifdef OWN_COMPLETION
                commands[STREAM_OF(op)] ! WAIT, op, round
#else
                commands[STREAM_OF(op)] ! WAIT, op,
                                          OPS * (round - 1) + mask
#endif
            :: else
            fi;
            op = 0
           }
        :: left == 0 -> break
        od;
        mask = 0;
#else
        for (op : 0 .. STREAMS - 1) {
            commands[op] ! WAIT_ALL, 0, OPS * round
        }
        op = 0;
#endif
        round++
    :: else -> break
    od
}

/* The end: every use was started, sent and waited for */
active proctype judge()
{
    byte op;

    sequence >= OPS * ROUNDS;
    for (op : 0 .. OPS - 1) {
        begun[op] == ROUNDS && source[op] == 0
    }
    FINISH
}

init {
    byte op, round;

    atomic {
        for (op : 0 .. OPS - 1) {
            for (round : 1 .. ROUNDS) {
                run put(op, round, op * ROUNDS + round - 1)
            }
        }
        for (op : 0 .. STREAMS - 1) {
            run stream(op)
        }
    }
}
