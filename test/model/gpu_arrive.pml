/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_arrive.pml - lane direct on streams of GPUs, tier K: the side that starts
 * second copies, in its start kernel.
 *
 *   start k, either side:  old = fetch_add(arrive, 1)
 *                          old <  2k-1: first, and does nothing
 *                          old >= 2k-1: second: copies, fences, stores k to the
 *                          words of both sides
 *   wait k:                own word >= k
 *
 * Neither side arrives for k+1 before its own wait of k has run.
 *
 * A payload has two cells. A store of a copy takes effect at any time before
 * the next fence. Kernels have BLOCKS blocks, each with a cell of its own if
 * there are two; the device runs RESIDENT of them at a time, in any order,
 * each to its end. Threads of a block that are not held together by a
 * barrier are like blocks here. (With ERROR a copy is a load and a store.)
 * Blocks take tickets. Ticket 0 arrives and publishes whether this side is
 * second; the others wait for that. A block fences, and counts itself out;
 * the last one out stores to the words.
 *
 *   EQUAL          is sound: second is old == 2k-1. PARITY is sound: old is odd
 *   READY          ready sends: the caller knows that the receive has started,
 *                  whose start is no command; the send copies at once
 *
 * SHORT: the send puts its data into the inbox, place k mod PLACES, before it
 * arrives. If it is first it is done with its buffer; the receive, which is
 * second, takes the data from the inbox. The send's wait k is for its word to
 * be k+1-PLACES: so it may be ahead of the receive by a use, and
 *   EQUAL          is broken: the receive of k finds 2k, and does nothing
 *   PARITY         is broken: the send of k finds 2k-3
 *   INBOX_LATE     broken: arrives first, then writes to the inbox
 *   NO_CREDIT      broken: the send's wait is for nothing ("complete at once")
 *
 * Broken variants:
 *   EARLY_STORE    the words are stored before the copy
 *   NO_FENCE       ... while the copy's stores are outstanding
 *   NO_RELEASE     the arrival does not release: the data is still in a cache
 *   NO_ACQUIRE     ... acquire: the copy's loads run before it
 *   NO_WAIT        the receive starts twice, and waits twice then
 *   UNGUARDED      READY, and the caller knows nothing
 *   EVERY          each block arrives
 *   BLOCK_0        block 0 arrives, whichever ticket it would have had
 *   STALE          what is published does not say for which use
 *   LAST_IN        the block with the last ticket stores to the words
 *   LAST_FENCE     only the last block out fences, which does not make the
 *                  other blocks' stores visible
 *
 * ERROR: either host may fail the operation at any time, and with DIES the
 * sender's process may die at any time. A host sets a bit of `arrive`, which
 * makes all arrivals after it do nothing, though they count. Whichever host
 * is first stores how many uses both sides had arrived for, in the same
 * compare-and-swap. If the own word is less, a copy is under way, by either
 * side: the host waits for the word, or the death of the peer. It lets the
 * waits pass by a store of BIG to the word, again and again until its stream
 * has passed, and tells the user.
 *   NO_BIT         broken: nothing stops the peer
 *   NO_DRAIN       broken: does not wait for the copy
 *   LATE_COUNT     broken: each host takes the count that it finds, with starts
 *                  that did nothing
 *   SUM            with SHORT broken: `arrive` has the sum of both sides'
 *                  starts, not each: 3 + 1 may be 2 + 2
 *   ONLY_WORD      broken: waits for the word of a dead peer
 *   RELEASE_ONCE   broken: the word of a copy under way takes the place of BIG
 *   NO_LOOK        with READY broken: the send does not arrive, nor looks
 *
 * BEHIND: the command that sets the bit gets its turn only when the stream is
 * at its end, because both share a queue of the hardware: broken.
 *   with RELEASE_FIRST  sound: the host waits until the peer's takes nothing
 *                  for good any more, as a copy under way will read what the
 *                  stream does then; lets the waits pass; sets the bit when the
 *                  stream has passed; waits for the copy, and tells the user.
 *                  It exchanges the word for BIG: what was there says which
 *                  copies are over
 *   ... NO_NOTICE  broken: the peer takes what it copies for good
 *   ... NO_SWAP    broken: BIG hides that a copy is not over
 */
#include "common.pml"

#ifndef USES
#define USES 2
#endif
#ifndef BLOCKS
#define BLOCKS 1
#endif
#ifndef BLOCKS_RECV
#define BLOCKS_RECV BLOCKS
#endif
#ifndef RESIDENT
#define RESIDENT BLOCKS
#endif
#ifndef PLACES
#define PLACES 2
#endif

#define SEND 0
#define RECV 1
#define BIG 100
#define BLOCKS_OF(side) (side == SEND -> BLOCKS : BLOCKS_RECV)

/* What a start kernel is to do */
#define NOTHING 0
#define FIRST 1
#define SECOND 2

bool premature, overwrite, wrong_data, late_read, late_write;

byte sends, recvs;              /* the starts of each side in `arrive` */
bool halt;                      /* its bit */
byte both;                      /* ... and for which both had arrived then */
byte word[2];
byte source, visible;           /* the latter is what other devices see of it */
byte target[2];
#ifdef SHORT
byte inbox[PLACES];
#endif

/* Stores of copies that have not taken effect, by cell */
bool pending[2];
byte pending_value[2], pending_use[2];

/* Start kernels, by side */
byte launched[2];               /* the use */
byte ended[2], running[2];      /* blocks */
byte ticket[2], out[2];
byte published[2];              /* the use, and what is to be done */
byte verdict[2];

bool flag[2], released[2], told[2], over[2];
byte noted[2];                  /* RELEASE_FIRST: the word without BIG */
bool dead, dies;

/* What has happened, for the properties alone */
byte begun[2], passed[2];
byte taken;                     /* uses whose data is in no inbox any more */

#ifdef PARITY
#define IS_SECOND(old, k) ((old) % 2 == 1)
#elif defined(EQUAL)
#define IS_SECOND(old, k) ((old) == 2 * (k) - 1)
#else
#define IS_SECOND(old, k) ((old) >= 2 * (k) - 1)
#endif

#ifndef ERROR
inline flush()
{
    CHECK(overwrite, passed[RECV] < pending_use[i]);
    target[i]        = pending_value[i];
    pending[i]       = false;
    pending_value[i] = 0;
    pending_use[i]   = 0;
    i                = 0
}

active proctype memory()
{
    byte i;

end:
    do
    :: atomic { pending[0] -> i = 0; flush() }
    :: atomic { pending[1] -> i = 1; flush() }
#ifdef NO_RELEASE
    :: atomic { visible != source -> visible = source }
#endif
    od
}

#endif

#ifdef SHORT
inline put_inbox()
{
    atomic {
        /* a use that nobody will take any more may be written over */
        CHECK(overwrite, released[SEND] || released[RECV] || \
                         taken + PLACES >= k);
        inbox[k % PLACES] = source
    }
}
#endif

inline arrive(side)
{
#ifdef NO_ACQUIRE
    early = visible;
#endif
    atomic {
#ifndef NO_RELEASE
        visible = (side == SEND -> source : visible);
#endif
        old = sends + recvs;
        if
#ifdef NO_LOOK
        :: side == SEND
#endif
        :: else ->
            if
            :: side == SEND -> sends++
            :: else -> recvs++
            fi
        fi;
        if
#ifdef NO_LOOK
        :: true -> what = SECOND
#elif defined(READY)
        :: !halt -> what = SECOND
#else
        :: !halt && IS_SECOND(old, k) -> what = SECOND
        :: !halt && !IS_SECOND(old, k) -> what = FIRST
#endif
        :: else -> what = NOTHING
        fi;
        old = 0
    }
}

/* Copies a cell */
inline copy(side, cell)
{
    atomic {
        CHECK(premature, begun[SEND] >= k && begun[RECV] >= k);
#ifdef SHORT
        if
        :: side == RECV -> value = inbox[k % PLACES]
        :: else -> value = source
        fi;
#else
#ifdef RELEASE_FIRST
        CHECK(late_read, !told[SEND]);
#else
        CHECK(late_read, passed[SEND] < k);
#endif
        value = (side == SEND -> source : visible);
#endif
#ifdef NO_ACQUIRE
        value = (side == SEND -> source : early);
#endif
        taken = (cell == 1 -> k : taken)
    }
    atomic {
#ifdef ERROR
        CHECK(overwrite, released[RECV] || passed[RECV] < k);
        CHECK(late_write, !told[RECV]);
        target[0] = value;
        target[1] = value;
#else
        pending[cell]       = true;
        pending_value[cell] = value;
        pending_use[cell]   = k;
#endif
        value = 0
    }
}

inline store_words()
{
    word[SEND] = k;
    word[RECV] = k
}

/* A block gets its place on the device, and its ticket */
inline enter(side, b)
{
    atomic {
        launched[side] >= k && running[side] < RESIDENT ->
        running[side]++;
#ifdef BLOCK_0
        mine = b
#else
        mine = ticket[side];
        ticket[side]++
#endif
    }
}

inline decide(side, b)
{
    if
#ifdef EVERY
    :: true ->
#else
    :: mine == 0 ->
#endif
#if defined(SHORT) && !defined(INBOX_LATE)
        if
        :: side == SEND -> put_inbox()
        :: else
        fi;
#endif
        arrive(side);
#ifdef INBOX_LATE
        if
        :: side == SEND && what == FIRST -> put_inbox()
        :: else
        fi;
#endif
        atomic { published[side] = k; verdict[side] = what }
#ifndef EVERY
    :: else ->
        atomic {
#ifdef STALE
            published[side] > 0 ->
#else
            published[side] == k ->
#endif
            what = verdict[side]
        }
#endif
    fi
}

inline count_out(side)
{
    atomic {
        out[side]++;
        last = (out[side] == BLOCKS_OF(side));
        if
        :: last -> out[side] = 0; ticket[side] = 0
        :: else
        fi
#ifdef LAST_IN
        ;
        last = (mine == BLOCKS_OF(side) - 1)
#endif
    }
}

inline leave(side)
{
    atomic {
#ifdef ERROR
        ticket[side] = 0;
#endif
        running[side]--;
        ended[side]++;
        last = false;
        what = NOTHING;
        mine = 0;
        k++
    }
}

proctype block(bit side; byte b)
{
    byte k = 1, what, value, old, mine;
    bool last;
#ifdef NO_ACQUIRE
    byte early;
#endif

    {
    do
    :: k <= USES ->
#ifdef ERROR
        atomic { enter(side, b); decide(side, b) }
        if
        :: what == SECOND -> copy(side, 1); word[SEND] = k;
           atomic { word[RECV] = k; leave(side) }
        :: else -> leave(side)
        fi
#else
        enter(side, b);
        decide(side, b);
#ifdef EARLY_STORE
        if
        :: what == SECOND && mine == 0 -> store_words()
        :: else
        fi;
#endif
        if
        :: what == SECOND && BLOCKS_OF(side) == 1 ->
            copy(side, 0);
            copy(side, 1)
        :: what == SECOND && BLOCKS_OF(side) == 2 -> copy(side, b)
        :: else
        fi;
#if !defined(NO_FENCE) && !defined(LAST_FENCE)
        if
        :: BLOCKS_OF(side) == 1 -> !pending[0] && !pending[1]
        :: else -> !pending[b]
        fi;
#endif
        count_out(side);
        if
#ifndef EARLY_STORE
        :: last && what == SECOND ->
#ifdef LAST_FENCE
            !pending[b];
#endif
            store_words()
#endif
        :: else
        fi;
        leave(side)
#endif
    :: else -> break
    od
    } unless { side == SEND && dead }
}

/* The callers of ready sends */
#if defined(READY) && !defined(UNGUARDED)
#define MAY_START(side) (side == RECV || begun[RECV] >= k)
#else
#define MAY_START(side) true
#endif

inline start(side)
{
    atomic {
        MAY_START(side) ->
        if
        :: side == SEND -> source = k
        :: else
        fi;
        begun[side] = k;
#ifdef READY
        launched[side] = (side == SEND -> k : 0)
#else
        launched[side] = k
#endif
    }
}

#ifdef NO_CREDIT
#define ENOUGH(side, k) (side == RECV -> k : 0)
#elif defined(SHORT)
#define ENOUGH(side, k) \
    (side == RECV -> k : (k + 1 > PLACES -> k + 1 - PLACES : 0))
#else
#define ENOUGH(side, k) k
#endif

/* What its host does not take for good */
#if defined(RELEASE_FIRST)
#define IS_FAILED flag[RECV]
#else
#define IS_FAILED released[RECV]
#endif

inline wait(side, k)
{
    atomic {
        ended[side] == launched[side] * BLOCKS_OF(side) &&
        word[side] >= ENOUGH(side, k) ->
        passed[side] = k;
        if
        :: side == SEND -> source = 0
        :: else ->
            CHECK(wrong_data, \
                  IS_FAILED || (target[0] == k && target[1] == k))
        fi
    }
}

proctype stream(bit side)
{
    byte k = 1;

    {
    do
    :: k <= USES ->
        start(side);
#ifdef NO_WAIT
        if
        :: side == SEND -> wait(side, k)
        :: side == RECV && k % 2 == 0 -> wait(side, k - 1); wait(side, k)
        :: else
        fi;
#else
        wait(side, k);
#endif
        k++
    :: else -> break
    od;
    over[side] = true
    } unless { side == SEND && dead }
    FINISH
}

#ifdef ERROR
#ifdef READY
#define BOTH sends /* the receive does not arrive */
#elif defined(SUM)
#define BOTH ((sends + recvs) / 2)
#else
#define BOTH (sends < recvs -> sends : recvs)
#endif

inline set_bit(side)
{
#ifndef NO_BIT
    atomic {
#ifdef BEHIND
        over[side] ->
#endif
        if
        :: !halt -> halt = true; both = BOTH
        :: else
        fi;
#ifdef LATE_COUNT
        number = BOTH
#else
        number = both
#endif
    }
#else
    number = BOTH
#endif
}

#ifdef ONLY_WORD
#define IS_DEAD(side) false
#else
#define IS_DEAD(side) (side == RECV && dead)
#endif

#define IS_OVER(side) \
    (word[side] < BIG && word[side] >= number || noted[side] >= number)

inline drain(side)
{
#ifndef NO_DRAIN
    if
#ifdef NO_SWAP
    :: word[side] >= number
#else
    :: IS_OVER(side)
#endif
    :: IS_DEAD(side)
    fi
#else
    skip
#endif
}

inline release(side)
{
    do
    :: over[side] -> break
    :: atomic {
        !over[side] && word[side] < BIG ->
        noted[side]    = word[side];
        word[side]     = BIG;
        released[side] = true
#ifdef RELEASE_ONCE
        ;
        break
#endif
       }
    od
}

proctype host(bit side)
{
    byte number;

end:
    {
    atomic { !over[side] -> flag[side] = true }
#ifdef RELEASE_FIRST
#ifndef NO_NOTICE
    flag[1 - side] || over[1 - side] || dead;
#endif
    release(side);
    set_bit(side);
    drain(side);
#else
    set_bit(side);
    drain(side);
    release(side);
#endif
    over[side];
    told[side] = true
    } unless { side == SEND && dead }
}

active proctype death()
{
end:
    atomic { dies && !over[SEND] -> dead = true }
}
#endif

init {
    byte b;

    atomic {
#ifdef ERROR
#ifdef DIES
        dies = true;
#endif
        run host(SEND);
        run host(RECV);
#endif
        for (b : 0 .. BLOCKS - 1) {
            run block(SEND, b)
        }
#ifndef READY
        for (b : 0 .. BLOCKS_RECV - 1) {
            run block(RECV, b)
        }
#endif
        run stream(SEND);
        run stream(RECV);
        b = 0
    }
}
