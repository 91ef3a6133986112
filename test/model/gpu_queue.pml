/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_queue.pml - lane direct on streams of GPUs, tier M: an operation of a
 * queue fails, and the stream runs on (error_queue.pml has the other lanes).
 *
 * Rank 0 sends to rank 1, which sends on what it got to rank 2, and that to
 * rank 3: r(in) w(in) s(out) w(out), USES times, on one stream each. Rank 0
 * may die. Then rank 1's host lets the waits of its queue pass. Copies and
 * stores that are in a stream cannot look at a flag: what rank 1 sends then
 * is not what rank 0 sent, and goes from stream to stream without any host.
 *
 *   (nothing)   sound: before a host lets waits pass, it tells the ranks that
 *               its queue sends to; those fail their operations, so that nobody
 *               takes them for good, tell the ranks that they send to, and
 *               answer when these have answered
 *   RING        the same, and rank 3 sends to rank 1, for its next use. A rank
 *               that has been told of this failure already answers at once
 *   LOOK        sound: tier K. The starts look at a flag of their queue, which
 *               is set before the waits pass, and nobody waits for an answer
 *   NO_ANSWER   broken: does not wait for an answer
 *   NEXT_ONLY   broken: answers without having told the next one
 *   RING_WAITS  broken: a rank that has been told already waits as well
 *   TWO         rank 2 may fail by itself, too: sound, as each failure has
 *               marks of its own
 *   ONE_MARK    broken: a rank answers at once when it has been told of any
 *               failure, though those behind it may not know
 */
#include "common.pml"

#ifndef USES
#define USES 2
#endif

#define LAST 3
#define AT(rank, use) data[(rank) * (USES + 1) + (use)]

bool wrong_data;

byte data[(LAST + 1) * (USES + 1)]; /* what a rank has sent, by use */
byte word[LAST + 1];                /* and how often */
bool dead, failed[LAST + 2], released[LAST + 2];

/* By failure: of rank 0, and with TWO of rank 2 */
#define FAILURES 2
#define MARK(failure, rank) ((failure) * (LAST + 2) + (rank))
bool told[FAILURES * (LAST + 2)], answered[FAILURES * (LAST + 2)];

#ifdef RING
#define NEXT(rank) ((rank) == LAST -> 1 : (rank) + 1)
#define IS_LAST(rank) false
#define HAS_RETURNED(k) (word[LAST] >= (k) - 1)
#else
#define NEXT(rank) ((rank) + 1)
#define IS_LAST(rank) ((rank) == LAST)
#define HAS_RETURNED(k) true
#endif

active proctype rank_0()
{
    byte k = 1;

    do
    :: k <= USES -> atomic { AT(0, k) = k; word[0] = k; k++ }
    :: k > USES -> break
    :: dead = true; break
    od
}

proctype stream(byte rank)
{
    byte k, buffer;

    for (k : 1 .. USES) {
        atomic {
            word[rank - 1] >= k && (rank != 1 || HAS_RETURNED(k)) ||
            released[rank] ->
            buffer = AT(rank - 1, k);
            CHECK(wrong_data, failed[rank] || buffer == k)
        }
        if
#ifdef LOOK
        :: failed[rank]
#endif
        :: else -> atomic { AT(rank, k) = buffer; word[rank] = k; buffer = 0 }
        fi
    }
    if
    :: rank == LAST -> FINISH
    :: else
    fi
}

/* A rank knows of a failure: of what it receives, or by the rank before */
proctype host(byte rank, failure)
{
end:
    if
    :: atomic { failure == 0 && rank == 1 && dead -> told[MARK(0, 1)] = true }
#ifdef TWO
    :: atomic { failure == 1 && rank == 2 -> told[MARK(1, 2)] = true }
#endif
    :: told[MARK(failure, rank)]
    fi;
#ifdef ONE_MARK
    if
    :: atomic {
        failed[rank] ->
        answered[MARK(failure, rank)] = true;
        goto done
       }
    :: atomic { !failed[rank] -> failed[rank] = true }
    fi;
#else
    failed[rank] = true;
#endif
#ifdef NEXT_ONLY
    answered[MARK(failure, rank)] = true;
#endif
    if
    :: IS_LAST(rank)
    :: !IS_LAST(rank) && told[MARK(failure, NEXT(rank))]
#ifdef RING_WAITS
        -> answered[MARK(failure, NEXT(rank))]
#endif
    :: !IS_LAST(rank) && !told[MARK(failure, NEXT(rank))] ->
        told[MARK(failure, NEXT(rank))] = true;
#if !defined(LOOK) && !defined(NO_ANSWER)
        answered[MARK(failure, NEXT(rank))]
#endif
    fi;
    answered[MARK(failure, rank)] = true;
    released[rank] = true;
done:
    skip
}

init {
    byte i;

    atomic {
        for (i : 1 .. LAST) {
            run stream(i);
            run host(i, 0);
#ifdef TWO
            run host(i, 1)
#endif
        }
    }
}
