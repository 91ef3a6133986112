/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct_mapped.pml - messages of lane direct that both sides copy to their
 * place (st_direct.h, "Mapped"): claims, errors, and when the memory that the
 * two share may be used again.
 *
 * One word holds a use, the range of its pieces that are left, and the poison.
 * The receive's side claims from the low end and the send's from the high end,
 * by compare-and-swap of the whole word, one piece or, if its copies cannot
 * fail, half of what is left. When no piece is left the next claim opens the
 * next use, if both sides have begun it. Each side counts what it has copied,
 * and a use is complete when the sum says so. A side has one mover at a time
 * (see direct_slots.pml), which the lock of its queue sees to.
 *
 * ERROR: either host may fail the pair at any time. It halts its own mover, by
 * the lock; poisons the word; waits until what the other side has claimed is
 * copied, or that process is dead; releases its stream, and tells the user. The
 * sender's process may die at any step of its mover. The stream's later starts
 * run on.
 *
 * BREAK: a copy of either side may fail ("Attached"). A side that cannot carry
 * out its claim poisons the word, makes its count BROKEN, and moves no more;
 * both hosts fail the pair then. A side that is broken does not wait for its
 * own claims, but for those of the other side, which it tells by what its count
 * was before; nobody waits for a side that is broken.
 *
 * FREE: the receiver has seen its last use pass, and frees its operation, whose
 * side has the memory. It says so, and uses the memory for another pair when
 * the sender, which has halted and looked whether its last use is complete, has
 * confirmed, or is dead. The sender's stream is late, and has one start more.
 *
 * Broken variants:
 *   NO_USE          the number of the use is not compared: a slow claim copies
 *                   again
 *   OPEN_EARLY      a use is opened without a look at what the other has begun
 *   COUNT_FIRST     a piece is counted before it is copied
 *   OWN_COUNT       a use is complete when the own pieces are copied and none
 *                   is left
 *   NO_POISON, NO_WAIT, TIMEOUT, ONLY_COUNT  errors without the poison, without
 *                   the wait, with a limit to it, without the look for death
 *   TELL_EARLY      ... the user is told before the stream has passed
 *   BREAK_QUIET     BREAK: the count is left as it is
 *   BREAK_COUNTED   ... the piece is counted as if it were copied
 *   BREAK_ALL       ... a side that is broken waits for nobody
 *   GONE            FREE: the memory is used again when the sender was declared
 *                   gone, but lives
 *   CONFIRM_FIRST   ... the sender confirms, and looks for its last use later
 *   START_ON        ... its later start tells the pair what it has begun
 */
#include "common.pml"

#ifndef USES
#define USES 2
#endif
#ifndef PIECES
#define PIECES 2
#endif

#define SEND 0
#define RECV 1
#define NONE 255

#ifdef BREAK
#define FAILS
#define BROKEN 100
#endif
#ifdef ERROR
#define FAILS
#endif

bool overwrite, wrong_data, late_write, late_read, stray_write;

/* What both sides share */
byte begun[2], count[2];
byte use;
byte low, high;
bool poison;

byte own[2];                    /* BREAK: what a broken side is done with */
bool lock[2], halted[2], released[2], told[2], passed[2];
byte word[2];
byte source, target[PIECES];
bool dead;                      /* the sender's process, and everybody knows */
bool asked, confirmed, reused;  /* FREE */

/* What has happened, for the properties alone */
byte consumed, recv_begun;

#define SUM (count[SEND] + count[RECV])

/* As a side's host sees it, which does not wait for what is its own */
#ifdef BREAK
#define IS_BROKEN(side) (count[side] == BROKEN)
#ifdef BREAK_ALL
#define SUM_OF(side) SUM
#else
#define SUM_OF(side) \
    ((IS_BROKEN(side) -> own[side] : count[side]) + count[1 - (side)])
#endif
#ifdef BREAK_QUIET
#define MAY_FAIL poison
#else
#define MAY_FAIL (IS_BROKEN(SEND) || IS_BROKEN(RECV) || poison)
#endif
#else
#define SUM_OF(side) SUM
#define MAY_FAIL true
#endif

#ifdef OPEN_EARLY
#define IS_OPEN(side) (begun[side] > use)
#else
#define IS_OPEN(side) (begun[SEND] > use && begun[RECV] > use)
#endif
#define CAN_CLAIM(side) \
    (!halted[side] && !poison && !reused && (low < high || IS_OPEN(side)))

#ifdef NO_USE
#define IS_SAME (low == old_low && high == old_high)
#else
#define IS_SAME (use == old_use && low == old_low && high == old_high)
#endif

/* The claim that was found takes effect if the word is still the same */
inline swap(side)
{
    if
    :: IS_SAME && !poison ->
        if
        :: low == high -> use = old_use + 1; low = 0; high = PIECES
        :: else -> use = old_use
        fi;
        if
        :: size = 1
        :: high - low >= 4 -> size = (high - low) / 2
        fi;
        if
        :: side == SEND -> high = high - size; index = high
        :: else -> index = low; low = low + size
        fi
    :: else
    fi;
    old_use  = 0;
    old_low  = 0;
    old_high = 0
}

inline may_die(side)
{
#ifdef ERROR
    if
    :: side == SEND -> dead = true; goto gone
    :: true
    fi
#else
    skip
#endif
}

inline copy(side)
{
    do
    :: copied < size ->
        value = source;
        may_die(side);
        atomic {
            CHECK(overwrite, released[RECV] || consumed < recv_begun);
            CHECK(late_write, !told[RECV]);
            target[index + copied] = value;
            value                  = 0;
            copied++
        }
    :: else -> copied = 0; break
    od
}

proctype mover(bit side)
{
    byte old_use, old_low, old_high, value, size, copied, index = NONE;

end:
    do
    :: atomic {
        CAN_CLAIM(side) && !lock[side] ->
        lock[side] = true;
        old_use    = use;
        old_low    = low;
        old_high   = high
       }
       atomic { swap(side) }
       if
       :: index != NONE ->
           may_die(side);
#ifdef COUNT_FIRST
           count[side] = count[side] + size;
           copy(side);
#else
           if
           :: copy(side); count[side] = count[side] + size
#ifdef BREAK
           :: size == 1 ->
              poison = true;
              atomic {
                  own[side] = count[side] + 1;
#ifdef BREAK_COUNTED
                  count[side] = count[side] + 1;
#elif !defined(BREAK_QUIET)
                  count[side] = BROKEN;
#endif
                  halted[side] = true
              }
#endif
           fi;
#endif
           size  = 0;
           index = NONE
       :: else
       fi;
       lock[side] = false
       /* What is complete lets the wait pass */
    :: atomic {
        !lock[side] && !released[side] && !reused && word[side] < begun[side] &&
#ifdef OWN_COUNT
        use == begun[side] && low == high ->
#else
        SUM == begun[side] * PIECES ->
#endif
        word[side] = begun[side]
       }
    od;
gone:
    skip
}

#ifdef START_ON
#define IS_SILENT(side) released[side]
#else
#define IS_SILENT(side) halted[side]
#endif

/* Start a use. A side that was halted says nothing. */
inline start(side, k)
{
    atomic {
        !lock[side] ->
        if
        :: IS_SILENT(side)
        :: else -> CHECK(stray_write, !reused); begun[side] = k
        fi
    }
}

active proctype send_stream()
{
    byte k;

    {
    for (k : 1 .. USES) {
        source = k;
        start(SEND, k);
        word[SEND] >= k || released[SEND];
        source = 0
    }
#ifdef FREE
    start(SEND, USES + 1);
#endif
    passed[SEND] = true
    } unless { dead }
}

active proctype recv_stream()
{
    byte k, i;
    bool is_bad;

    for (k : 1 .. USES) {
        recv_begun = k;
        start(RECV, k);
        word[RECV] >= k || released[RECV];
        atomic {
            for (i : 0 .. PIECES - 1) {
                is_bad = is_bad || target[i] != k
            }
            i = 0;
            CHECK(late_read, !told[RECV]);
            /* A released side has an undefined buffer */
            CHECK(wrong_data, released[RECV] || !is_bad);
            consumed = k
        }
    }
    passed[RECV] = true;
    FINISH
}

#ifdef FAILS
proctype host(bit side)
{
end:
    {
    atomic {
        MAY_FAIL && !passed[side] && !lock[side] ->
        halted[side] = true;
#ifndef NO_POISON
        poison = true
#endif
    }
    /* The own mover holds no claim: the rest is the other side's */
#ifndef NO_WAIT
    if
    :: use == 0
    :: use > 0 && SUM_OF(side) >= use * PIECES - (high - low)
#ifndef ONLY_COUNT
    :: side == RECV && dead
#endif
#ifdef TIMEOUT
    :: true
#endif
    fi;
#endif
    released[side] = true;
#ifndef TELL_EARLY
    passed[side];
#endif
    told[side] = true;
    if
    :: side == SEND -> source = NONE
    :: else
    fi
    } unless { side == SEND && dead }
}
#endif

#ifdef FREE
/* The sender's, and then the receiver's, host */
active proctype sender_host()
{
end:
    asked;
#ifdef CONFIRM_FIRST
    atomic { !lock[SEND] -> halted[SEND] = true }
#else
    atomic {
        !lock[SEND] ->
        halted[SEND] = true;
        if
        :: word[SEND] < begun[SEND] && SUM == begun[SEND] * PIECES ->
            word[SEND] = begun[SEND]
        :: else
        fi
    }
#endif
    confirmed = true
}

active proctype receiver_host()
{
    atomic { passed[RECV] && !lock[RECV] -> halted[RECV] = true }
    asked = true;
#ifdef GONE
    true;
#else
    confirmed;
#endif
    atomic { reused = true; begun[SEND] = 0; begun[RECV] = 0 }
}
#endif

init {
    atomic {
        run mover(SEND);
        run mover(RECV);
#ifdef FAILS
        run host(SEND);
        run host(RECV)
#endif
    }
}
