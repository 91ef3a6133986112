/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct_slots.pml - lane direct as src/ucp/st does it: messages that go
 * through slots in pieces, streams that sleep, and how they are woken
 * (st_direct.h).
 *
 * A message has a ring of slots at its receiver. The send's side copies piece
 * after piece to a slot and then stores its number there (`seq`); the receive's
 * takes it out and then stores how many it has taken (`count`). Each side moves
 * with its queue's lock held. Movers of a queue's open uses are
 *   a start, as far as it can go at once;
 *   the stream, in any wait: it *attends*, looks again and again, and once more
 *     when it has let go;
 *   a host that asks;
 *   the service thread of the rank, when it was notified, for queues whose
 *     streams do not attend.
 * A mover that has moved something wakes the other side's stream, which may
 * sleep. A stream that is about to sleep says so, looks once more, and notifies
 * the other rank's thread if that side has begun, has something to do, and does
 * not attend. A sleeper does nothing until it is woken: that the futex sleeps
 * for 50 ms at most is not needed. LOOKS is how many times in a run sleepers
 * may look by themselves, when all stand still: 0.
 *
 * Programs: as in direct.pml, where a host that polls goes on when it finds
 * something, so that all runs are finite; and, with a kernel that ends when the
 * other rank has its message:
 *   IDLE_SEND  A: s(0) kernel w(0)            B: r(0) w(0)
 *   IDLE_RECV  A: s(0) w(0)                   B: r(0) kernel w(0)
 *   LEAVE      A: s(0) r(1) w(1) kernel w(0)  B: r(0) s(1) w(0) w(1)
 *
 * NO_SPIN: streams sleep when they have looked once. A stream looks whenever it
 * likes without it, which makes many more states and no other end.
 *
 * PARKED: streams are of groups. The thread that runs one leaves it while it
 * waits: the stream does not attend then, and its rank's service thread is
 * notified where a stream of its own thread is woken. When that finds nothing
 * to move it notifies the other rank's, as a stream does before it sleeps.
 *
 * MAPPED: instead, messages are copied straight to their place, by either side,
 * once both have begun; ONE_SIDE: by the send's side, as the receive's has not
 * mapped its buffer. A piece's claim and copy are one step here: for claims see
 * direct_mapped.pml.
 *
 * Stores are seen at once; a store that is still in a buffer while its
 * processor looks at something else is one that comes after the look, and
 * BUFFERED has the buffers of what movers store.
 *
 * Sound, too: BUFFERED, with a fence before the look for sleepers;
 * NOTIFY_ALWAYS, though the other stream attends.
 *
 * Broken variants:
 *   SEQ_FIRST     the number is stored before the data
 *   COUNT_FIRST   `count` is stored before the slot was read
 *   NO_LOCK       two movers of one side at once
 *   NO_WAKE        sleepers are not woken
 *   NO_FENCE      BUFFERED: a mover looks for sleepers at once
 *   LOOK_FIRST    a stream that is about to sleep looks, and then says so
 *   ONE_TURN      ... moves some pieces in that look, and sleeps
 *   TRY_LAST      ... does not look if a mover of its side holds the lock
 *   TRY_THREAD    nor does the thread that was notified
 *   NO_NOTIFY     nothing wakes threads
 *   NO_THREAD     nor are there any
 *   QUIET_THREAD  PARKED: the service thread does not notify the other one
 *   NOT_LEAVING   a stream attends for ever, once it has waited
 *   LEAVE_BLIND   a stream that stops attending does not look once more
 *   LOOK_LEAVE    ... looks, and then says that it attends no more
 */
#include "common.pml"

#ifndef USES
#define USES 2
#endif
#ifndef PIECES
#define PIECES 2
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef LOOKS
#define LOOKS 0
#endif

#ifdef NO_FENCE
#define BUFFERED
#endif

/* Sides of messages. Message 0 goes from rank 0 to rank 1, and 1 back. */
#define SEND 0
#define RECV 1
#define AT(side, msg) ((side) * 2 + (msg))
#define MSG(op) ((op) % 2)
#define IS_SEND(op) ((op) < 2)
#define OTHER(op) (((op) + 2) % 4)

/* Queues, of which ranks have two, and the queue of each side of a message */
#define RANK(queue) ((queue) / 2)
#if defined(P1)
#define QUEUE(op) (IS_SEND(op) -> 0 : 2)
#elif defined(P3)
#define QUEUE(op) ((op) == AT(RECV, 1) -> 1 : ((op) == AT(SEND, 0) -> 0 : 2))
#elif defined(P3_POLL)
#define QUEUE(op) \
    ((op) == AT(RECV, 1) -> 1 : \
     ((op) == AT(SEND, 0) -> 0 : ((op) == AT(RECV, 0) -> 2 : 3)))
#else
#define QUEUE(op) ((op) == AT(SEND, 0) || (op) == AT(RECV, 1) -> 0 : 2)
#endif

bool overwrite, wrong_data;

/* Both sides' */
byte seq[2 * SLOTS], slot[2 * SLOTS];
byte count[2], begun[4];
bool attended[4], sleeps[4], woken[4], notified[2];

/* Of one side, protected by its queue's lock */
bool lock[4], is_open[4];
byte pos[4];                   /* pieces moved, of all uses */
byte word[4];                  /* what streams wait for */

byte source[2];                /* payload: the number of the use */
byte looks;

/* What has happened, for the properties alone */
byte was_read[2], consumed[2];

#define NONE 4
#define PLACE(op) (MSG(op) * SLOTS + pos[op] % SLOTS)

#ifdef BUFFERED
byte late_pos[4], late_begun[4];

#define IS_LATE(op) (late_pos[op] > 0 || late_begun[op] > 0)

active proctype store_buffers()
{
    byte op;

end:
    do
    :: atomic {
        if
        :: IS_LATE(0) -> op = 0
        :: IS_LATE(1) -> op = 1
        :: IS_LATE(2) -> op = 2
        :: IS_LATE(3) -> op = 3
        fi;
        if
        :: late_pos[op] > 0 && IS_SEND(op) ->
            seq[MSG(op) * SLOTS + (late_pos[op] - 1) % SLOTS] = late_pos[op];
            late_pos[op] = 0
        :: late_pos[op] > 0 && !IS_SEND(op) ->
            count[MSG(op)] = late_pos[op];
            late_pos[op]   = 0
        :: else -> begun[op] = late_begun[op]; late_begun[op] = 0
        fi;
        op = 0
       }
    od
}

/* A buffer has room for one store of each kind */
#define STORE_POS(op, value) atomic { !late_pos[op] -> late_pos[op] = value }
#define STORE_BEGUN(op, value) \
    atomic { !late_begun[op] -> late_begun[op] = value }
#ifdef NO_FENCE
#define FENCE(op) skip
#else
#define FENCE(op) !IS_LATE(op)
#endif

#else
#define STORE_POS(op, value) \
    atomic { \
        if \
        :: IS_SEND(op) -> \
            seq[MSG(op) * SLOTS + ((value) - 1) % SLOTS] = value \
        :: else -> count[MSG(op)] = value \
        fi \
    }
#define STORE_BEGUN(op, value) begun[op] = value
#define FENCE(op) skip
#endif

#ifdef MAPPED
byte copied[2];                /* pieces of both sides, of all uses */
#ifdef ONE_SIDE
#define CAN_REACH(op) IS_SEND(op)
#else
#define CAN_REACH(op) true
#endif

#define IS_OVER(op) (copied[MSG(op)] >= (word[op] + 1) * PIECES)
#define CAN_COPY(op) \
    (!IS_OVER(op) && begun[OTHER(op)] > word[op] && CAN_REACH(op))
#define CAN_MOVE(op) (is_open[op] && (IS_OVER(op) || CAN_COPY(op)))
#else
#define CAN_MOVE(op) \
    (is_open[op] && \
     (IS_SEND(op) -> pos[op] - count[MSG(op)] < SLOTS : \
                     seq[PLACE(op)] > pos[op]))
#endif
#define IS_NEXT(queue, op) (QUEUE(op) == queue && CAN_MOVE(op))
#define CAN_SERVE(queue) \
    (IS_NEXT(queue, 0) || IS_NEXT(queue, 1) || IS_NEXT(queue, 2) || \
     IS_NEXT(queue, 3))

#ifdef NO_LOCK
#define IS_FREE(queue) true
#else
#define IS_FREE(queue) (!lock[queue])
#endif
#define LOCK(queue) lock[queue] = true
#define UNLOCK(queue) lock[queue] = false

/* Between slot and buffer */
inline copy(op)
{
    if
    :: IS_SEND(op) ->
        CHECK(overwrite, was_read[MSG(op)] + SLOTS > pos[op]);
        slot[PLACE(op)] =
            (source[MSG(op)] == pos[op] / PIECES + 1 -> pos[op] + 1 : 0)
    :: else ->
        CHECK(wrong_data, slot[PLACE(op)] == pos[op] + 1);
        was_read[MSG(op)] = pos[op] + 1
    fi;
    pos[op] = pos[op] + 1
}

#ifdef MAPPED
/* A piece, if one is left */
inline move(op)
{
    atomic {
        if
        :: CAN_COPY(op) ->
            CHECK(overwrite,
                  begun[AT(RECV, MSG(op))] == copied[MSG(op)] / PIECES + 1);
            CHECK(wrong_data,
                  source[MSG(op)] == copied[MSG(op)] / PIECES + 1);
            copied[MSG(op)]   = copied[MSG(op)] + 1;
            was_read[MSG(op)] = copied[MSG(op)]
        :: else
        fi
    }
}
#else
/* The next piece, of which CAN_MOVE() says that it can be moved. Nobody looks
 * at a slot before it is told to, so that copy and store are one step unless
 * they are the wrong way round. */
inline move(op)
{
#ifdef SEQ_FIRST
    if
    :: IS_SEND(op) -> STORE_POS(op, pos[op] + 1); copy(op)
    :: else -> atomic { copy(op); STORE_POS(op, pos[op]) }
    fi
#elif defined(COUNT_FIRST)
    if
    :: !IS_SEND(op) -> STORE_POS(op, pos[op] + 1); atomic { copy(op) }
    :: else -> atomic { copy(op); STORE_POS(op, pos[op]) }
    fi
#else
    atomic { copy(op); STORE_POS(op, pos[op]) }
#endif
}

#endif

#ifdef PARKED
#define WAKE(queue) notified[RANK(queue)] = true
#else
#define WAKE(queue) woken[queue] = true
#endif

/* A mover that has stored something looks for sleepers of the other side */
inline wake_other(op)
{
    FENCE(op);
#ifndef NO_WAKE
    atomic {
        if
        :: sleeps[QUEUE(OTHER(op))] -> WAKE(QUEUE(OTHER(op)))
        :: else
        fi
    }
#endif
}

/* If a use is over its word is stored; its sleeper is woken */
inline complete(op)
{
    if
#ifdef MAPPED
    :: is_open[op] && IS_OVER(op) ->
        is_open[op] = false;
        word[op]    = word[op] + 1;
#else
    :: pos[op] % PIECES == 0 ->
        is_open[op] = false;
        word[op]    = pos[op] / PIECES;
#endif
        if
        :: sleeps[QUEUE(op)] -> woken[QUEUE(op)] = true
        :: else
        fi
    :: else
    fi
}

#ifdef NOTIFY_ALWAYS
#define IS_ATTENDED(queue) false
#else
#define IS_ATTENDED(queue) attended[queue]
#endif

/* The other side has begun so many uses */
#ifdef MAPPED
#define NEEDS_NOTIFY(op, uses) \
    (!IS_ATTENDED(QUEUE(OTHER(op))) && (uses) > word[op])
#else
#define NEEDS_NOTIFY(op, uses) \
    (!IS_ATTENDED(QUEUE(OTHER(op))) && \
     (IS_SEND(op) -> (uses) * PIECES > count[MSG(op)] : \
                     (uses) * PIECES > pos[op] && !CAN_MOVE(op)))
#endif

/* A turn: one piece, of any open use. The lock is held. */
inline serve(queue)
{
    atomic {
        if
        :: IS_NEXT(queue, 0) -> o = 0
        :: IS_NEXT(queue, 1) -> o = 1
        :: IS_NEXT(queue, 2) -> o = 2
        :: IS_NEXT(queue, 3) -> o = 3
        :: else -> o = NONE; moved = false
        fi
    }
    if
    :: o != NONE ->
        move(o);
        wake_other(o);
        atomic { complete(o); o = NONE; moved = true }
    :: else
    fi
}

/* Notify for each open use of a queue. The lock is held. */
inline notify(queue)
{
    o = 0;
    do
    :: atomic { o < 4 && QUEUE(o) == queue && is_open[o] ->
                uses = begun[OTHER(o)] }
       atomic {
        if
        :: NEEDS_NOTIFY(o, uses) -> notified[1 - RANK(queue)] = true
        :: else
        fi;
        uses = 0;
        o++
       }
    :: atomic { o < 4 && !(QUEUE(o) == queue && is_open[o]) -> o++ }
    :: atomic { o == 4 -> o = NONE; break }
    od
}

/* Use k is started */
inline start(op, k)
{
    atomic {
        IS_FREE(QUEUE(op)) -> LOCK(QUEUE(op));
        if
        :: IS_SEND(op) -> source[MSG(op)] = k
        :: else
        fi;
        is_open[op] = true
    }
#ifndef MAPPED
    do
    :: pos[op] < k * PIECES && CAN_MOVE(op) -> move(op)
    :: atomic { pos[op] == k * PIECES || !CAN_MOVE(op) -> break }
    od;
#endif
    STORE_BEGUN(op, k);
    wake_other(op);
    atomic {
#ifndef MAPPED
        if
        :: pos[op] == k * PIECES -> complete(op)
        :: else
        fi;
#endif
        UNLOCK(QUEUE(op))
    }
}

/* Any other look */
inline look(queue)
{
    atomic { IS_FREE(queue) -> LOCK(queue) }
    serve(queue);
    atomic { UNLOCK(queue); moved = false }
}

/* The last look before the stream sleeps */
inline look_last(queue)
{
#ifdef TRY_LAST
    atomic {
        if
        :: IS_FREE(queue) -> LOCK(queue); moved = true
        :: else
        fi
    }
#else
    atomic { IS_FREE(queue) -> LOCK(queue); moved = true }
#endif
    if
    :: moved ->
#ifdef ONE_TURN
        serve(queue);
#else
        do
        :: moved -> serve(queue)
        :: else -> break
        od;
#endif
#ifndef NO_NOTIFY
        if
        :: !moved -> notify(queue)
        :: else
        fi;
#endif
        atomic { UNLOCK(queue); moved = false }
    :: else
    fi
}

/* The wait of use k, and what the stream does with the buffer then */
inline wait(op, k)
{
    if
    :: word[op] >= k
    :: word[op] < k ->
        attended[QUEUE(op)] = true;
        do
        :: word[op] >= k -> break
#ifndef NO_SPIN
        :: word[op] < k && CAN_SERVE(QUEUE(op)) -> look(QUEUE(op))
#endif
        :: word[op] < k ->
#ifdef LOOK_FIRST
            look_last(QUEUE(op));
            word[op] < k;
            atomic { sleeps[QUEUE(op)] = true; woken[QUEUE(op)] = false }
#else
            atomic {
                sleeps[QUEUE(op)] = true;
                woken[QUEUE(op)]   = false;
#ifdef PARKED
                attended[QUEUE(op)] = false
#endif
            }
            look_last(QUEUE(op));
#endif
            if
            :: word[op] >= k
            :: woken[QUEUE(op)]
            :: atomic { timeout && looks < LOOKS -> looks++ }
            fi
        od;
#ifdef LOOK_LEAVE
        look(QUEUE(op));
#endif
        atomic {
            sleeps[QUEUE(op)] = false;
#ifndef NOT_LEAVING
            attended[QUEUE(op)] = false
#endif
        }
#if !defined(LOOK_LEAVE) && !defined(LEAVE_BLIND)
        look(QUEUE(op))
#endif
    fi;
    atomic {
        if
        :: IS_SEND(op) -> source[MSG(op)] = 0
        :: else ->
            CHECK(wrong_data, was_read[MSG(op)] >= k * PIECES);
            consumed[MSG(op)] = k
        fi
    }
}

/* A host that asks again and again. What would have no effect is left out. */
inline poll(op, k)
{
    do
    :: word[op] >= k -> break
    :: word[op] < k && CAN_SERVE(QUEUE(op)) -> look(QUEUE(op))
#ifndef NO_NOTIFY
    :: atomic { word[op] < k && is_open[op] && !notified[1 - RANK(QUEUE(op))] &&
                NEEDS_NOTIFY(op, begun[OTHER(op)]) && IS_FREE(QUEUE(op)) ->
                LOCK(QUEUE(op)) }
        notify(QUEUE(op));
        UNLOCK(QUEUE(op))
#endif
    od
}

#ifndef NO_THREAD
/* For a queue whose stream does not attend */
inline attend_to(queue)
{
    do
    :: attended[queue] -> break
    :: !attended[queue] ->
#ifdef TRY_THREAD
        if
        :: atomic { IS_FREE(queue) -> LOCK(queue) }
        :: !IS_FREE(queue) -> break
        fi;
#else
        atomic { IS_FREE(queue) -> LOCK(queue) }
#endif
        serve(queue);
        atomic {
            UNLOCK(queue);
            if
            :: moved -> moved = false
            :: else -> break
            fi
        }
    od;
#if defined(PARKED) && !defined(QUIET_THREAD)
    if
    :: atomic { sleeps[queue] && !attended[queue] && IS_FREE(queue) ->
                LOCK(queue) }
        notify(queue);
        UNLOCK(queue)
    :: !sleeps[queue] || attended[queue]
    fi
#endif
}

proctype thread(bit rank)
{
    byte uses, o = NONE;
    bool moved;

end:
    do
    :: notified[rank] ->
        notified[rank] = false;
        attend_to(rank * 2);
        attend_to(rank * 2 + 1)
    od
}

init {
    atomic {
        run thread(0);
        run thread(1)
    }
}
#endif

/* Commands of a stream, of the k-th round */
#define S(msg) start(AT(SEND, msg), k)
#define R(msg) start(AT(RECV, msg), k)
#define WS(msg) wait(AT(SEND, msg), k)
#define WR(msg) wait(AT(RECV, msg), k)
#define POLL_S(msg) poll(AT(SEND, msg), k)
#define POLL_R(msg) poll(AT(RECV, msg), k)
#define STREAM(name, commands) \
    active proctype name() \
    { \
        byte k, uses, o = NONE; \
        bool moved; \
        for (k : 1 .. USES) { commands } \
        FINISH \
    }

#if defined(P1)
STREAM(stream_of_a, S(0); WS(0); S(1); WS(1))
STREAM(stream_of_b, R(0); R(1); WR(1); WR(0))
#elif defined(P2)
STREAM(stream_of_a, S(0); R(1); WR(1); WS(0))
STREAM(stream_of_b, R(0); WR(0); S(1); WS(1))
#elif defined(P3)
STREAM(stream_of_a_1, S(0); consumed[1] == k; WS(0))
STREAM(stream_of_a_2, R(1); WR(1))
STREAM(stream_of_b, R(0); WR(0); S(1); WS(1))
#elif defined(P3_POLL)
/* Streams with the host that enqueues once it has seen a message */
STREAM(stream_of_a_1, S(0); consumed[1] == k; WS(0))
STREAM(stream_of_a_2, R(1); WR(1))
STREAM(stream_of_b_1, R(0); POLL_R(0))
STREAM(stream_of_b_2, word[AT(RECV, 0)] >= k; S(1); WS(1))
#elif defined(POLL)
STREAM(stream_of_a, S(0); POLL_S(0))
STREAM(stream_of_b, R(0); POLL_R(0))
#elif defined(IDLE_SEND)
STREAM(stream_of_a, S(0); consumed[0] == k; WS(0))
STREAM(stream_of_b, R(0); WR(0))
#elif defined(IDLE_RECV)
STREAM(stream_of_a, S(0); WS(0))
STREAM(stream_of_b, R(0); word[AT(SEND, 0)] >= k; WR(0))
#elif defined(LEAVE)
STREAM(stream_of_a, S(0); R(1); WR(1); consumed[0] == k; WS(0))
STREAM(stream_of_b, R(0); S(1); WR(0); WS(1))
#elif defined(LOOP)
STREAM(stream_of_a, S(0); WS(0))
STREAM(stream_of_b, R(0); WR(0))
#endif
