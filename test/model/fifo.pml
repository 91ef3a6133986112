/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fifo.pml - messages that are used once, moved by the NICs: message i of a
 * (peer, tag) meets receive i, and several are under way at once.
 *
 *   sender                                     receiver
 *   host:    announces (i, length, trigger) -> host: posts clear-to-send i
 *   host:    posts bridge i and put i <------- announces (i, room, buffer)
 *   stream:  a start adds 1 to `starts`        stream: a start adds 1 to
 *                                                      `recv_starts`
 *   NIC:     bridge i fires at starts >= its   NIC:    clear-to-send i fires at
 *            start: trigger[i] += 1                    recv_starts >= its start
 *            trigger[i] counts that too   <--
 *            put i fires at trigger[i] >= 2 -> `target`, then `landed`
 *   stream:  wait: sent >= all started so far  stream: wait: landed >= the same
 *
 * A start is one store for all messages since the last one. A stream may start
 * STARTS times before it waits, which two_count.pml's sum is unsound for: start
 * i+1 would count for clear-to-send i. So each message has a trigger of its own
 * while it is under way, one of RING: the sender announces a message once its
 * trigger is free. Hosts announce and post at any time, ahead of the streams or
 * long after them.
 *
 * A start of the sender has SEND_BATCH messages, one of the receiver has
 * RECV_BATCH.
 *
 * REUSE_AT_FIRE: the trigger is free when its put fires, not only when that is
 * counted; sound. So is SUM, with STARTS=1.
 *
 * Broken variants:
 *   SUM            no bridges: one trigger, to which starts add themselves; put
 *                  i fires at 2i
 *   ANNOUNCE_EARLY the trigger may be another message's still
 *   EARLY_COMPLETION  the send completes before its source is read
 *   WAIT_FIRST     a wait is for the first start alone, by the count of all
 *   POST_BLIND     put i is posted to the buffer of receive i-1, as the
 *                  announcement of i is not there
 *   EDGE           an entry fires when its threshold is passed: see
 *                  two_count.pml
 */
#include "common.pml"

#ifndef USES
#define USES 3
#endif
#ifndef RING
#define RING 2
#endif
#ifndef STARTS
#define STARTS 2
#endif
#ifndef SEND_BATCH
#define SEND_BATCH 1
#endif
#ifndef RECV_BATCH
#define RECV_BATCH 1
#endif

#ifdef SUM
#define SLOT(i) 0
#define THRESHOLD(i) (2 * (i))
#else
#define SLOT(i) (((i) - 1) % RING)
#define THRESHOLD(i) (2 * (((i) - 1) / RING + 1))
#endif

/* The start that a message is of */
#define SEND_START(i) (((i) - 1) / SEND_BATCH + 1)
#define RECV_START(i) (((i) - 1) / RECV_BATCH + 1)

bool premature, overwrite, wrong_data, early;

byte starts, recv_starts, sent, landed; /* the NICs' counters */
byte trigger[RING];
byte send_enqueued, recv_enqueued;      /* by the programs, on the hosts */
byte send_heard, recv_heard;            /* announcements that have come */
byte send_posted, recv_posted;          /* messages whose entries were posted */
byte source[USES + 1], target[USES + 1];
bool is_over[USES + 1];                 /* its put is counted by the sender */

/* What has happened, for the properties alone */
byte send_begun, recv_begun, consumed;
bool has_landed[USES + 1];

#ifdef EDGE
bool missed[USES + 1];
#define MISSED(i) missed[i]
#else
#define MISSED(i) false
#endif

#if defined(ANNOUNCE_EARLY) || defined(SUM)
#define TRIGGER_FREE(i) true
#else
#define TRIGGER_FREE(i) ((i) <= RING || is_over[(i) - RING])
#endif

#ifdef POST_BLIND
#define HEARD(i) true
#else
#define HEARD(i) (send_heard >= (i))
#endif

active proctype send_host()
{
end:
    do
    :: atomic { send_enqueued < USES -> send_enqueued++ }
    :: atomic { send_heard < recv_enqueued -> send_heard++ }
    :: atomic {
        send_posted < send_enqueued && HEARD(send_posted + 1) &&
        TRIGGER_FREE(send_posted + 1) ->
        send_posted++;
#ifdef EDGE
        missed[send_posted] = (starts >= SEND_START(send_posted))
#endif
       }
    od
}

active proctype recv_host()
{
end:
    do
    :: atomic { recv_enqueued < USES -> recv_enqueued++ }
    :: atomic {
        recv_heard < send_enqueued && TRIGGER_FREE(recv_heard + 1) ->
        recv_heard++
       }
    :: atomic {
        recv_posted < recv_enqueued && recv_posted < recv_heard -> recv_posted++
       }
    od
}

#ifndef SUM
proctype bridge(byte i)
{
    atomic {
        send_posted >= i && starts >= SEND_START(i) && !MISSED(i);
        trigger[SLOT(i)]++
    }
}
#endif

proctype clear_to_send(byte i)
{
    atomic {
        recv_posted >= i && recv_starts >= RECV_START(i);
        trigger[SLOT(i)]++
    }
}

proctype put(byte i)
{
    byte value, to = i;
    bool completed, written;

    atomic {
        send_posted >= i && trigger[SLOT(i)] >= THRESHOLD(i);
        CHECK(premature, send_begun >= i && recv_begun >= i);
#ifdef POST_BLIND
        if
        :: send_heard < i && i > 1 -> to = i - 1
        :: else
        fi;
#endif
#ifdef REUSE_AT_FIRE
        is_over[i] = true
#endif
    }
#ifdef EARLY_COMPLETION
    atomic { sent++; completed = true };
#endif
    value = source[i];
    do
    :: atomic { !completed -> sent++; completed = true; is_over[i] = true }
    :: atomic {
        !written ->
        CHECK(overwrite, recv_begun >= to && consumed < to && target[to] == 0);
        target[to] = value;
        written    = true
       }
    :: completed && written -> break
    od;
    atomic { landed++; has_landed[i] = true }
}

proctype send_stream()
{
    byte done, i, calls;

    do
    :: send_begun < USES ->
        atomic {
            for (i : send_begun + 1 .. send_begun + SEND_BATCH) {
                if
                :: i <= USES -> source[i] = i
                :: else
                fi
            }
        }
        /* Commands are enqueued when the messages are */
        send_enqueued >= USES || send_enqueued >= send_begun + SEND_BATCH;
        atomic {
            send_begun = (send_begun + SEND_BATCH > USES -> USES :
                          send_begun + SEND_BATCH);
            starts++;
#ifdef SUM
            trigger[0] = trigger[0] + SEND_BATCH;
#endif
            calls++
        }
        if
        :: calls == STARTS || send_begun == USES ->
            sent >= send_begun;
            atomic {
                calls = 0;
                for (i : done + 1 .. send_begun) {
                    source[i] = 0 /* the user's again */
                }
                done = send_begun
            }
        :: else
        fi
    :: else -> break
    od
}

proctype recv_stream()
{
    byte i, calls, first;

    do
    :: recv_begun < USES ->
        recv_enqueued >= USES || recv_enqueued >= recv_begun + RECV_BATCH;
        atomic {
            recv_begun = (recv_begun + RECV_BATCH > USES -> USES :
                          recv_begun + RECV_BATCH);
            recv_starts++;
            calls++;
            first = (calls == 1 -> recv_begun : first)
        }
        if
        :: calls == STARTS || recv_begun == USES ->
#ifdef WAIT_FIRST
            landed >= first;
            atomic {
                for (i : consumed + 1 .. first) {
                    CHECK(early, has_landed[i])
                }
            }
#endif
            landed >= recv_begun;
            atomic {
                calls = 0;
                for (i : consumed + 1 .. recv_begun) {
                    CHECK(early, has_landed[i]);
                    CHECK(wrong_data, target[i] == i)
                }
                consumed = recv_begun
            }
        :: else
        fi
    :: else -> break
    od;
    FINISH
}

init {
    byte i;

    atomic {
        for (i : 1 .. USES) {
            run put(i);
#ifndef SUM
            run bridge(i);
#endif
            run clear_to_send(i)
        }
        run send_stream();
        run recv_stream()
    }
}
