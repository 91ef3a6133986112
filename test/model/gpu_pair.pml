/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_pair.pml - lane direct on streams of GPUs, tier K: the side that starts
 * second copies, in its start kernel. Flags in the hosts' memory stop it.
 *
 * Each side has a record {word, begun, ended, halted} in host memory, which
 * hosts and devices read and write, without atomics; the send's has `decided`.
 *
 *   start k:  fence; begun = k; fence; loads the own `halted` and the other
 *             side's `begun`. Is it halted, or has the other side not begun k:
 *             does not copy, but the send stores decided = 2k. Else both have
 *             begun. The send stores decided = 2k+1 and copies; the receive
 *             waits until decided >= 2k, or it is halted, and copies if
 *             decided = 2k. Behind the copy: fence; k to the words of both
 *             sides. Fence; ended = k
 *   wait k:   own word >= k. Neither side starts k+1 before its wait k
 *   halt:     a host sets `halted` in both records and fences. Of each record
 *             it loads `begun`, and waits until `ended` is not less, or the
 *             process there is known to be dead. The pair is quiet: it stores
 *             BIG to its own word, and tells its user
 *
 * Either host halts at any time, or never; and when it finds its own record
 * halted, or the peer dead. A host may be told of a death when all stores of
 * the dead process have taken effect, or never will. A process that loses its
 * device lives on: its host halts, does not wait for its own kernel, and stores
 * BIG to the own `ended` when that kernel stores nothing any more. Which uses
 * are over both sides agree on, unless one is dead or has lost its device
 * between the stores to the two words.
 *
 * Stores to host memory and those of copies take effect in any order, at any
 * time before the next fence; a kernel's last one at any time. A payload has
 * BLOCKS cells. Kernels have BLOCKS blocks, each with a cell of its own, or one
 * block that copies both; the device runs RESIDENT of them at a time, in any
 * order, each to its end. Threads of a block that are not held together by a
 * barrier are like blocks here. Blocks take tickets. Ticket 0 arrives and
 * publishes what is to be done in use k; the others wait for that. A block
 * fences, and counts itself out; the last one out stores.
 *
 *   LENGTH         each use has a length, here its number. The send stores it
 *                  to its record in front of the first fence. The receive loads
 *                  it when it has seen that the send has begun. The side that
 *                  copies stores it to both records, and fences, before the
 *                  words
 *   READY          ready sends: the caller knows that the receive has started,
 *                  whose start is no command; the send copies unless halted
 *   NO_HALT        nobody halts
 *   HALTS=mask     which hosts halt at any time
 *   DIES=side      its process may die at any time
 *   LOSES=side     ... lose its device
 *   SAME           sound: loads `begun` and `ended` until they are the same
 *   SAME_BACK      sound: the same, with `ended` loaded first
 *
 * Broken variants:
 *   LENGTH_LATE    the send stores the length with `decided`
 *   LENGTH_WITH    the side that copies stores it with the words
 *   EARLY_STORE    the words are stored before the copy
 *   NO_FENCE       ... while the copy's stores are outstanding
 *   NO_RELEASE     no fence before `begun`: the stream's stores are in a cache
 *   NO_ACQUIRE     none behind it: the copy's loads run before
 *   NO_DECISION    a side that sees that the other one has begun copies
 *   OLD_DECISION   what the send has decided later is taken for this use
 *   NO_HALT_SEEN   the receive waits for a decision and does not look whether
 *                  it is halted
 *   NO_WAIT        the receive starts twice, and waits twice then
 *   UNGUARDED      READY, and the caller knows nothing
 *   EVERY          each block arrives
 *   BLOCK_0        block 0 arrives, whichever ticket it would have had
 *   STALE          what is published does not say for which use
 *   LAST_IN        the block with the last ticket stores to the words
 *   LAST_FENCE     only the last block out fences, which does not make the
 *                  other blocks' stores visible
 *   NO_LOOK_FENCE  the kernel looks while its `begun` is outstanding
 *   LOOK_FIRST     ... looks, and stores `begun` then
 *   NO_LOOK        with READY: does not look
 *   ENDED_FIRST    `ended` is stored before the words
 *   ENDED_WITH     ... with them, without a fence between
 *   NO_HOST_FENCE  the host looks while its flags are outstanding
 *   BEGUN_FIRST    the host loads `begun`, and sets the flags then
 *   ONLY_OWN       sets the flag of its own record only
 *   NO_PEER        does not wait for the peer's kernel
 *   NO_OWN         ... for its own
 *   BIG_FIRST      stores BIG, and waits then
 *   DEAD_WAITED    waits for a dead peer
 *   DEAD_EARLY     ... is told of a death before the last store
 *   LOST_QUIET     has lost its device, and does not store to `ended`
 *   DEAF           does not halt when it finds its own record halted
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

#define SEND 0
#define RECV 1
#define BIG 100
#define CELLS BLOCKS
#define BLOCKS_OF(side) (side == SEND -> BLOCKS : BLOCKS_RECV)

bool premature, wrong_data, wrong_length, late_read, late_write, disagree;

/* The records */
byte word[2], begun[2], ended[2];
bool halted[2];

byte decided;                   /* by the send: twice the use; 1 more: it
                                   copies */
byte source, visible;           /* the latter is what other devices see of it */
byte target[2];
bool spoiled[2];                /* cells: by the receive's stream, which has
                                   not taken effect */

/* Stores that have not taken effect, by the side whose they are; 0: none */
byte begun_next[2], ended_next[2], decided_next;
#define AT(side, i) ((side) * 2 + (i))
byte word_next[4];              /* ... and whose word */
bool halt_next[4];              /* ... and whose record */
byte cell_use[4], cell_value[4]; /* ... and cell */
#ifdef LENGTH
byte length[2], length_next[4];
byte given[2];                  /* to the blocks of the side that copies */
#define HAS_LENGTHS(side) \
    (length_next[AT(side, 0)] > 0 || length_next[AT(side, 1)] > 0)
#else
#define HAS_LENGTHS(side) false
#endif

/* Start kernels, by side */
byte launched[2];               /* the use */
byte left[2], running[2];       /* blocks */
byte ticket[2], out[2];
byte published[2];              /* the use, and whether to copy */
bool verdict[2];

bool dead[2], lost[2];          /* a process, and what it has on a device */
#define IS_GONE(side) (dead[side] || lost[side])
bool may_halt[2];

/* What has happened, for the properties alone */
byte started[2], passed[2];
byte seen[2];                   /* waits that passed without BIG */
bool told[2];
byte counted[2];                /* uses, by the host when it was quiet */

#define HAS_CELLS(side) (cell_use[AT(side, 0)] > 0 || cell_use[AT(side, 1)] > 0)
#define HAS_WORDS(side) \
    (word_next[AT(side, 0)] > 0 || word_next[AT(side, 1)] > 0)
#define HAS_STORES(side) \
    (begun_next[side] > 0 || ended_next[side] > 0 || HAS_WORDS(side) || \
     HAS_CELLS(side) || (side == SEND && decided_next > 0) || \
     HAS_LENGTHS(side) || \
     (side == RECV && IS_SPOILED))
#define IS_SPOILED (spoiled[0] || spoiled[1])
#define HAS_FLAGS(side) (halt_next[AT(side, 0)] || halt_next[AT(side, 1)])

inline flush(next, now)
{
    now  = next;
    next = 0
}

inline flush_spoiled(i)
{
    target[i]  = 0;
    spoiled[i] = false
}

inline flush_cell(i)
{
    CHECK(late_write, passed[RECV] < cell_use[AT(side, i)] && !told[RECV]);
    target[i]               = cell_value[AT(side, i)];
    cell_use[AT(side, i)]   = 0;
    cell_value[AT(side, i)] = 0
}

/* The last stores before the end may be lost */
inline drop()
{
    begun_next[side]        = 0;
    ended_next[side]        = 0;
    decided_next            = (side == SEND -> 0 : decided_next);
    spoiled[0]              = spoiled[0] && side == SEND;
    spoiled[1]              = spoiled[1] && side == SEND;
    word_next[AT(side, 0)]  = 0;
    word_next[AT(side, 1)]  = 0;
#ifdef LENGTH
    length_next[AT(side, 0)] = 0;
    length_next[AT(side, 1)] = 0;
#endif
    halt_next[AT(side, 0)]  = halt_next[AT(side, 0)] && !dead[side];
    halt_next[AT(side, 1)]  = halt_next[AT(side, 1)] && !dead[side];
    cell_use[AT(side, 0)]   = 0;
    cell_use[AT(side, 1)]   = 0;
    cell_value[AT(side, 0)] = 0;
    cell_value[AT(side, 1)] = 0
}

proctype memory(bit side)
{
end:
    do
    :: atomic { begun_next[side] > 0 -> flush(begun_next[side], begun[side]) }
    :: atomic { ended_next[side] > 0 -> flush(ended_next[side], ended[side]) }
    :: atomic {
        side == SEND && decided_next > 0 -> flush(decided_next, decided)
       }
    :: atomic { side == RECV && spoiled[0] -> flush_spoiled(0) }
    :: atomic { side == RECV && spoiled[1] -> flush_spoiled(1) }
    :: atomic {
        word_next[AT(side, 0)] > 0 -> flush(word_next[AT(side, 0)], word[0])
       }
    :: atomic {
        word_next[AT(side, 1)] > 0 -> flush(word_next[AT(side, 1)], word[1])
       }
    :: atomic {
        halt_next[AT(side, 0)] -> flush(halt_next[AT(side, 0)], halted[0])
       }
    :: atomic {
        halt_next[AT(side, 1)] -> flush(halt_next[AT(side, 1)], halted[1])
       }
#ifdef LENGTH
    :: atomic {
        length_next[AT(side, 0)] > 0 ->
        flush(length_next[AT(side, 0)], length[0])
       }
    :: atomic {
        length_next[AT(side, 1)] > 0 ->
        flush(length_next[AT(side, 1)], length[1])
       }
#endif
    :: atomic { cell_use[AT(side, 0)] > 0 -> flush_cell(0) }
    :: atomic { cell_use[AT(side, 1)] > 0 -> flush_cell(1) }
    :: atomic {
        IS_GONE(side) && HAS_STORES(side) || dead[side] && HAS_FLAGS(side) ->
        drop()
       }
#ifdef NO_RELEASE
    :: atomic { side == SEND && visible != source -> visible = source }
#endif
    od
}

#ifdef EVERY
#define LEADS true
#else
#define LEADS (mine == 0)
#endif

/* A block gets its place on the device, and its ticket */
inline enter(side, b)
{
    atomic {
        launched[side] >= k && running[side] < RESIDENT ->
        running[side]++;
#ifdef BLOCK_0
        mine = b;
#else
        mine = ticket[side];
        ticket[side]++;
#endif
    }
    if
    :: LEADS ->
        atomic {
#ifndef NO_RELEASE
            !(side == RECV && IS_SPOILED);
            visible = (side == SEND -> source : visible);
#endif
#ifdef LOOK_FIRST
            halt = halted[side];
#endif
#if defined(LENGTH) && !defined(LENGTH_LATE)
            length[SEND] = (side == SEND -> k : length[SEND]);
#endif
            begun_next[side] = k
        }
    :: else
    fi
}

#define COMES_SECOND(side) (begun[1 - side] >= k)

#ifdef NO_HALT_SEEN
#define GIVES_UP(side) false
#else
#define GIVES_UP(side) halted[side]
#endif

/* The two loads may be done in any order */
inline look(side)
{
#ifdef LOOK_FIRST
    atomic { !HAS_STORES(side); what = COMES_SECOND(side) && !halt }
#else
#ifndef NO_LOOK_FENCE
    !HAS_STORES(side);
#endif
    if
#ifdef NO_LOOK
    :: what = COMES_SECOND(side)
#else
    :: halt = halted[side]; what = COMES_SECOND(side) && !halt
    :: what = COMES_SECOND(side); halt = halted[side]; what = what && !halt
#endif
    fi
#endif
}

inline arrive(side)
{
#ifdef NO_ACQUIRE
    early = visible;
#endif
    look(side);
#ifdef LENGTH
    given[side] = (side == SEND -> k : length[SEND]);
#endif
#ifdef READY
    what = !halt;
#else
#ifndef NO_DECISION
    if
    :: side == SEND ->
#ifdef LENGTH_LATE
        length_next[AT(SEND, SEND)] = k;
#endif
        decided_next = 2 * k + (what -> 1 : 0)
    :: side == RECV && what ->
        atomic {
            if
#ifdef OLD_DECISION
            :: decided >= 2 * k -> what = (decided % 2 == 0)
#else
            :: decided >= 2 * k -> what = (decided == 2 * k)
#endif
            :: GIVES_UP(side) -> what = false
            fi
        }
    :: else
    fi;
#endif
#endif
    atomic {
        halt            = false;
        visible         = (side == SEND -> source : visible);
        published[side] = k;
        verdict[side]   = what
    }
}

inline decide(side)
{
    if
    :: LEADS -> arrive(side)
    :: else ->
        atomic {
#ifdef STALE
            published[side] > 0 ->
#else
            published[side] == k ->
#endif
            what = verdict[side]
        }
    fi
}

/* Copies a cell */
inline copy(side, cell)
{
    atomic {
        CHECK(premature, started[SEND] >= k && started[RECV] >= k);
        CHECK(late_read, passed[SEND] < k && !told[SEND]);
#ifdef LENGTH
        CHECK(wrong_length, given[side] == k);
#endif
#ifdef NO_ACQUIRE
        cell_value[AT(side, cell)] = (side == SEND -> source : early);
#else
        cell_value[AT(side, cell)] = (side == SEND -> source : visible);
#endif
        cell_use[AT(side, cell)] = k
    }
}

inline store_words(side)
{
    word_next[AT(side, SEND)] = k;
    word_next[AT(side, RECV)] = k
}

/* A block fences, and counts itself out; the last one out stores */
inline leave(side, b)
{
    atomic {
#if !defined(NO_FENCE) && !defined(LAST_FENCE)
        if
        :: BLOCKS_OF(side) == CELLS -> cell_use[AT(side, b)] == 0
        :: else -> !HAS_CELLS(side)
        fi;
#endif
        out[side]++;
#ifdef LAST_IN
        last = (mine == BLOCKS_OF(side) - 1);
#else
        last = (out[side] == BLOCKS_OF(side));
#endif
        if
        :: out[side] == BLOCKS_OF(side) ->
#ifndef STALE
            verdict[side] = false;
#endif
            out[side]    = 0;
            ticket[side] = 0
        :: else
        fi;
        if
        :: last ->
#ifdef LAST_FENCE
            cell_use[AT(side, b)] == 0;
#endif
#ifdef ENDED_FIRST
            ended_next[side] = k;
            ended_next[side] == 0;
#endif
#ifdef LENGTH
            if
            :: what ->
                length_next[AT(side, SEND)] = given[side];
                length_next[AT(side, RECV)] = given[side]
            :: else
            fi;
#ifndef LENGTH_WITH
            !HAS_LENGTHS(side);
#endif
            given[side] = 0;
#endif
            if
#ifndef EARLY_STORE
            :: what -> store_words(side)
#endif
            :: else
            fi;
#ifndef ENDED_WITH
            !HAS_WORDS(side);
#endif
#ifndef ENDED_FIRST
            ended_next[side] = k
#endif
        :: else
        fi;
        running[side]--;
        left[side]++;
        last = false;
        what = false;
        mine = 0;
        k++
    }
}

proctype block(bit side; byte b)
{
    byte k = 1, mine;
    bool halt, what, last;
#ifdef NO_ACQUIRE
    byte early;
#endif

    {
    do
    :: k <= USES ->
        enter(side, b);
        decide(side);
#ifdef EARLY_STORE
        if
        :: what && mine == 0 -> store_words(side)
        :: else
        fi;
#endif
        if
        :: what && BLOCKS_OF(side) == CELLS -> copy(side, b)
        :: what && BLOCKS_OF(side) < CELLS -> copy(side, 0); copy(side, 1)
        :: else
        fi;
        leave(side, b)
    :: else -> break
    od
    } unless { IS_GONE(side) }
}

/* The callers of ready sends */
#if defined(READY) && !defined(UNGUARDED)
#define MAY_START(side) (side == RECV || started[RECV] >= k)
#else
#define MAY_START(side) true
#endif

inline start(side)
{
    atomic {
        MAY_START(side) ->
        if
        :: side == SEND -> source = k
#ifdef READY
        :: else
#else
        :: else -> spoiled[0] = true; spoiled[CELLS - 1] = true
#endif
        fi;
        started[side] = k;
#ifdef READY
        launched[side] = (side == SEND -> k : 0)
#else
        launched[side] = k
#endif
    }
}

inline wait(side, use)
{
    atomic {
        left[side] == launched[side] * BLOCKS_OF(side) && word[side] >= use ->
        passed[side] = use;
        if
        :: word[side] < BIG ->
            seen[side] = use;
            CHECK(disagree, !told[1 - side] || IS_GONE(1 - side) || \
                            counted[1 - side] >= use)
        :: else
        fi;
        if
        :: side == SEND -> source = 0
        :: side == RECV && (seen[RECV] >= use || counted[RECV] >= use) ->
            CHECK(wrong_data, target[0] == use && target[CELLS - 1] == use);
#ifdef LENGTH
            CHECK(wrong_length, length[RECV] == use)
#endif
        :: else
        fi
    }
}

proctype stream(bit side)
{
    byte k = 1;

    {
    atomic {
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
    od
    }
    } unless { IS_GONE(side) }
    FINISH
}

#ifndef NO_HALT
#ifdef DEAD_EARLY
#define IS_DEAD(other) dead[other]
#else
#define IS_DEAD(other) (dead[other] && !HAS_STORES(other) && !HAS_FLAGS(other))
#endif
#define IS_LOST(side) (lost[side] && !HAS_STORES(side))

#ifdef DEAD_WAITED
#define IS_OVER(rec) false
#else
#define IS_OVER(rec) \
    (rec == side && IS_LOST(side) || rec != side && IS_DEAD(rec))
#endif

/* Waits until the kernels of a side copy nothing any more. The loop looks again
 * only when there is something new, so that one without end is a deadlock. */
#if defined(SAME) || defined(SAME_BACK)
inline wait_quiet(rec)
{
    do
    :: true ->
#ifdef SAME
        first[rec] = begun[rec];
        last      = ended[rec];
#else
        last      = ended[rec];
        first[rec] = begun[rec];
#endif
        if
        :: first[rec] == last -> break
        :: else
        fi;
        if
        :: IS_OVER(rec) -> break
        :: begun[rec] != first[rec] || ended[rec] != last
        fi
    od
}
#else
inline wait_quiet(rec)
{
    atomic {
#ifndef BEGUN_FIRST
        first[rec] = begun[rec];
#endif
        if
        :: ended[rec] >= first[rec]
        :: IS_OVER(rec)
        fi;
        first[rec] = 0
    }
}
#endif

#ifdef HALTS
#define MAY_HALT(side) ((HALTS) >> (side) & 1)
#define MAY_NOT_HALT(side) !MAY_HALT(side)
#else
#define MAY_HALT(side) true
#define MAY_NOT_HALT(side) true
#endif

proctype host(bit side)
{
    byte first[2], last;

end:
    {
    atomic {
        if
        :: may_halt[side]
        :: IS_DEAD(1 - side)
        :: lost[side]
#ifndef DEAF
        :: halted[side]
#endif
        fi;
#ifdef BEGUN_FIRST
        first[0] = begun[0];
        first[1] = begun[1];
#endif
#ifndef ONLY_OWN
        halt_next[AT(side, 1 - side)] = true;
#endif
        halt_next[AT(side, side)] = true
#ifndef NO_HOST_FENCE
        ;
        !HAS_FLAGS(side)
#endif
    }
#ifdef BIG_FIRST
    atomic { counted[side] = word[side]; word[side] = BIG }
#endif
#ifndef NO_OWN
    wait_quiet(side);
#endif
#ifndef NO_PEER
    wait_quiet(1 - side);
#endif
    atomic {
#ifndef BIG_FIRST
        counted[side] = word[side];
        word[side]    = BIG;
#endif
        told[side] = true;
        CHECK(disagree, IS_GONE(0) || IS_GONE(1) || \
                        seen[1 - side] <= counted[side] && \
                        (!told[1 - side] || counted[0] == counted[1]));
#if defined(SAME) || defined(SAME_BACK)
        first[0] = 0;
        first[1] = 0;
        last     = 0
#endif
    }
#ifndef LOST_QUIET
end_told:
    atomic { IS_LOST(side) -> ended[side] = BIG }
#endif
    } unless { dead[side] }
}

#ifdef DIES
active proctype death()
{
end:
    dead[DIES] = true
}
#endif

#ifdef LOSES
active proctype loss()
{
end:
    lost[LOSES] = true
}
#endif
#endif

init {
    byte b;

    atomic {
#ifndef NO_HALT
        for (b : SEND .. RECV) {
            if
            :: MAY_HALT(b) -> may_halt[b] = true
            :: MAY_NOT_HALT(b)
            fi
        }
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
        run memory(SEND);
        run memory(RECV);
        run stream(SEND);
        run stream(RECV);
        b = 0
    }
}
