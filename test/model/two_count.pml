/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * two_count.pml - a pair with a two-count trigger: the standard send, and the
 * ready send beside it (docs/protocols.md, "Standard and ready sends").
 *
 *   sender                                     receiver
 *   stream:  start adds 1 to `trigger`         stream:  start adds 1 to
 *                                                       `started`
 *            `trigger` counts that put too <-- NIC:     clear-to-send k fires
 *                                                       at started >= k
 *   NIC:     put k fires at trigger >= 2k ---> `target`, then `landed`
 *            `sent` -> send_word               `landed` -> recv_word
 *   stream:  wait for send_word >= k           stream:  wait for recv_word >= k
 *
 * Every deferred entry is a process, so that entries fire, read, complete, land
 * and are counted in any order that their thresholds allow. Hosts post entries
 * at any time: far ahead of the streams, or long after the start. Every run is
 * finite: one that stops early is a deadlock, and there is no other way not to
 * progress.
 *
 * SEEN: use k+1 starts on another queue, once the host has seen wait k pass.
 * READY: a ready send, whose caller guarantees that the receive has started.
 *
 * Broken variants:
 *   OTHER_QUEUE_SEND, OTHER_QUEUE_RECV
 *                     use k+1 starts on another queue, and nothing orders it
 *                     behind wait k
 *   DUP_CTS, DUP_DATA a clear-to-send or the data is delivered twice
 *   EARLY_COMPLETION  the send completes before its source is read
 *   COUNT_FIRST       data is counted before it is written
 *   NO_RELEASE        a kernel's stores reach the NIC when they like
 *   EDGE              an entry fires when its threshold is passed, not while it
 *                     is: one that is posted later never does
 *   THRESHOLD_LOW, THRESHOLD_HIGH
 *                     2k-1, 2k+1
 *   UNGUARDED         a ready send whose caller does not guarantee anything
 */
#include "common.pml"

#ifndef USES
#define USES 2
#endif

#ifdef READY
#define THRESHOLD(k) (k)
#elif defined(THRESHOLD_LOW)
#define THRESHOLD(k) (2 * (k) - 1)
#elif defined(THRESHOLD_HIGH)
#define THRESHOLD(k) (2 * (k) + 1)
#else
#define THRESHOLD(k) (2 * (k))
#endif

#if defined(OTHER_QUEUE_SEND) || (defined(SEEN) && !defined(OTHER_QUEUE_RECV))
#define SEND_STREAMS 2
#else
#define SEND_STREAMS 1
#endif

#if defined(OTHER_QUEUE_RECV) || (defined(SEEN) && !defined(OTHER_QUEUE_SEND))
#define RECV_STREAMS 2
#else
#define RECV_STREAMS 1
#endif

bool premature, overwrite, wrong_data;

byte trigger, sent, started, landed; /* the NICs' counters */
byte send_word, recv_word;           /* what the streams wait on */
byte send_posted, recv_posted;       /* uses whose entries were posted */
byte cached, source, target;         /* payloads: the number of the use */

/* What has happened, for the properties and for SEEN alone */
byte send_begun, recv_begun, send_passed, consumed;

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

/* The words' entries: k of them may fire once the counter is at k, and each
 * adds 1, so that only their number matters */
active proctype chains()
{
end:
    do
    :: atomic { send_word < sent && send_word < send_posted -> send_word++ }
    :: atomic { recv_word < landed && recv_word < recv_posted -> recv_word++ }
    od
}

#ifdef NO_RELEASE
active proctype cache()
{
end:
    do
    :: atomic { source != cached -> source = cached }
    od
}
#endif

#ifndef READY
proctype clear_to_send(byte k)
{
    recv_posted >= k && started >= k;
    trigger++;
#ifdef DUP_CTS
    trigger++
#endif
}
#endif

proctype put(byte k)
{
    byte value;
    bool read, completed, written, counted;
#ifdef DUP_DATA
    bool again;
#endif

    atomic {
        send_posted >= k && trigger >= THRESHOLD(k) && !MISSED(k);
        CHECK(premature, send_begun >= k && recv_begun >= k)
    }
    do
    :: atomic { !read -> value = source; read = true }
#ifdef EARLY_COMPLETION
    :: atomic { !completed -> sent++; completed = true }
#else
    :: atomic { !completed && read -> sent++; completed = true }
#endif
    :: atomic {
        !written && read ->
        CHECK(overwrite, recv_begun == k && consumed < k);
        target  = value;
        written = true
       }
#ifdef COUNT_FIRST
    :: atomic { !counted -> landed++; counted = true }
#else
    :: atomic { !counted && written -> landed++; counted = true }
#endif
#ifdef DUP_DATA
    :: atomic { counted && !again -> again = true; written = false;
                counted = false }
#endif
    :: completed && written && counted -> break
    od
}

/* Uses first, first + SEND_STREAMS, ... each by one stream */
proctype send_stream(byte k)
{
    do
    :: k <= USES ->
#ifdef SEEN
        send_passed >= k - 1;
#endif
#ifdef NO_RELEASE
        cached = k;
#else
        source = k;
#endif
#if defined(READY) && !defined(UNGUARDED)
        recv_begun >= k; /* how the caller knows is not our business */
#endif
        atomic { send_begun = k; trigger++ }
        send_word >= k;
        cached = 0; /* the buffer is the user's again */
        source = 0;
        atomic { send_passed = k; k = k + SEND_STREAMS }
    :: else -> break
    od
}

proctype recv_stream(byte k)
{
    do
    :: k <= USES ->
#ifdef SEEN
        consumed >= k - 1;
#endif
        atomic { recv_begun = k; started++ }
        recv_word >= k;
        atomic {
            CHECK(wrong_data, target == k);
            consumed = k;
            k        = k + RECV_STREAMS
        }
    :: else -> break
    od;
    FINISH
}

init {
    byte k;

    atomic {
        for (k : 1 .. USES) {
            run put(k);
#ifndef READY
            run clear_to_send(k)
#endif
        }
        for (k : 1 .. SEND_STREAMS) {
            run send_stream(k)
        }
        for (k : 1 .. RECV_STREAMS) {
            run recv_stream(k)
        }
    }
}
