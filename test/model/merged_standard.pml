/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * merged_standard.pml - standard sends that share a trigger counter, to which
 * both their starts and their receivers' clear-to-sends add. Two operations;
 * every round of the stream starts both, then waits for both.
 *
 *   SINGLE     broken: the i-th start of the stream lets its put go at 2i. Two
 *              starts look like a start and a clear-to-send
 *   ONE_CTS    sound: one command starts both sends, one command of the one
 *              receiver starts both receives and issues one clear-to-send; both
 *              puts of round r go at 2r
 *   TOGETHER   sound as well: both sends start by one command, and the receives
 *              on their own with a clear-to-send each; both puts of round r go
 *              at 4r, since no receive is more than one round ahead of its send
 *   PARTIAL    broken: TOGETHER, but the two starts are commands of their own,
 *              with the wait for the first between them: a wait that does not
 *              pass before the other start has run
 *   NO_WAIT    broken: TOGETHER, but the stream starts a round before the last
 *              round was waited for
 */
#include "common.pml"

#ifndef ROUNDS
#define ROUNDS 2
#endif

#define OPS 2

#ifdef SINGLE
#define THRESHOLD(op, round) (2 * (OPS * ((round) - 1) + (op) + 1))
#elif defined(ONE_CTS)
#define THRESHOLD(op, round) (2 * (round))
#else
#define THRESHOLD(op, round) (2 * OPS * (round))
#endif

#ifdef ONE_CTS
#define STARTS 1 /* that a command for both operations adds */
#define RECEIVERS 1
#else
#define STARTS OPS
#define RECEIVERS OPS
#endif

bool premature, overwrite, wrong_data;

byte trigger, sent[OPS], landed[OPS], started[RECEIVERS];
byte source[OPS], target[OPS];

/* What has happened, for the properties alone */
byte begun[OPS], recv_begun[OPS], consumed[OPS];

proctype put(byte op, round)
{
    byte value;

    atomic {
        trigger >= THRESHOLD(op, round);
        CHECK(premature, begun[op] >= round)
    }
    value = source[op];
    sent[op]++;
    atomic {
        CHECK(overwrite, recv_begun[op] == round && consumed[op] < round);
        target[op] = value
    }
    landed[op]++
}

proctype clear_to_send(byte who, round)
{
    started[who] >= round;
    trigger++
}

inline start(op)
{
    source[op] = round;
    begun[op]  = round
}

inline wait(op)
{
    atomic { sent[op] >= round; source[op] = 0 }
}

active proctype send_stream()
{
    byte round = 1;

    do
    :: round <= ROUNDS ->
#if defined(SINGLE) || defined(PARTIAL)
        atomic { start(0); trigger++ }
#ifdef PARTIAL
        wait(0);
#endif
        atomic { start(1); trigger++ }
#else
        atomic { start(0); start(1); trigger = trigger + STARTS }
#endif
#ifndef NO_WAIT
        wait(0);
        wait(1);
#endif
        round++
    :: else -> break
    od
}

inline recv_wait(op)
{
    atomic {
        landed[op] >= round;
        CHECK(wrong_data, target[op] == round);
        consumed[op] = round
    }
}

proctype recv_stream(byte who)
{
    byte round = 1;

    do
    :: round <= ROUNDS ->
#ifdef ONE_CTS
        atomic { recv_begun[0] = round; recv_begun[1] = round; started[0]++ }
        recv_wait(0);
        recv_wait(1);
#else
        atomic { recv_begun[who] = round; started[who]++ }
        recv_wait(who);
#endif
        round++
    :: else -> break
    od;
    FINISH
}

init {
    byte op, round;

    atomic {
        for (round : 1 .. ROUNDS) {
            for (op : 0 .. OPS - 1) {
                run put(op, round)
            }
            for (op : 0 .. RECEIVERS - 1) {
                run clear_to_send(op, round)
            }
        }
        for (op : 0 .. RECEIVERS - 1) {
            run recv_stream(op)
        }
    }
}
