/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signal_word.pml - a peer's signals in a word of the user's memory that two
 * streams of a GPU wait for themselves, each of its own queue, and how a host
 * ends that (src/ucp/st/rma/st_rma_wait.c).
 *
 * The peer stores 1, then 2, or dies before. Stream 0 waits for 1, stream 1 for
 * 2; the wait of stream 1 is enqueued at any time. Each queue fails, at any
 * time. A queue that fails with a wait whose signal has not come marks the
 * memory, and has the other queue fail if that waits there, too: a wait is
 * refused from then on. Then the service thread stores BIG, again and again
 * until the streams of failed queues have passed their waits.
 *
 * A stream may pass a wait if the signal has come, or its queue has failed: so
 * that what it starts behind has no effect.
 *
 * Broken variants:
 *   STORE_ONCE    BIG is stored once
 *   STORE_FIRST   ... before the other queue has failed
 *   ONE_FAILS     the other queue does not fail
 *   NO_MARK       a wait is not refused
 */
#include "common.pml"

#define BIG 100
#define WANTED(queue) ((queue) + 1)

bool premature;

byte word;
byte sent;              /* the last signal of the peer */
bool failed[2], passed[2], refused;
bool listed;            /* the wait of stream 1 is enqueued */
bool marked;

#define IS_LISTED(queue) ((queue) == 0 || listed)
#define FAILS_LATE(queue) \
    (failed[queue] && IS_LISTED(queue) && !passed[queue])

active proctype peer()
{
    byte k;

    for (k : 1 .. 2) {
        if
        :: atomic { sent = k; word = k }
        :: goto dead
        fi
    }
dead:
    skip
}

inline store(queue)
{
    if
    :: FAILS_LATE(queue) && (word < WANTED(queue)) -> word = BIG
    :: else
    fi
}

/* Under the lock: a wait is enqueued before or behind it */
inline fail(queue)
{
#ifdef STORE_FIRST
    failed[queue] = true;
    store(queue);
#endif
    atomic {
        failed[queue] = true;
        if
        :: FAILS_LATE(queue) && (word < WANTED(queue) || word == BIG) ->
            marked = true
        :: else
        fi;
#ifndef ONE_FAILS
        if
        :: marked && IS_LISTED(1 - queue) && !passed[1 - queue] ->
            failed[1 - queue] = true
        :: else
        fi
#endif
    }
}

active proctype host()
{
    fail(0);
    fail(1)
}

/* The service thread */
active proctype service()
{
#ifdef STORE_ONCE
#define MAY_STORE(queue) (!stored[queue])
#else
#define MAY_STORE(queue) true
#endif
    bool stored[2];

end:
    do
    :: FAILS_LATE(0) && (word < WANTED(0)) && MAY_STORE(0) ->
        store(0);
        stored[0] = true
    :: FAILS_LATE(1) && (word < WANTED(1)) && MAY_STORE(1) ->
        store(1);
        stored[1] = true
    od
}

active proctype user()
{
    atomic {
        if
#ifndef NO_MARK
        :: marked || failed[1] -> refused = true
#else
        :: failed[1] -> refused = true
#endif
        :: else -> listed = true
        fi
    }
}

init {
    run stream(0);
    run stream(1)
}

proctype stream(byte queue)
{
    if
    :: atomic {
        IS_LISTED(queue) && (word >= WANTED(queue)) ->
        CHECK(premature, sent >= WANTED(queue) || failed[queue]);
        passed[queue] = true
       }
    :: (queue == 1) && refused
    fi;
    FINISH
}
