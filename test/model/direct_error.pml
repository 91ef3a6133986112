/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * direct_error.pml - a pair on the direct lane fails (direct.pml for the lane,
 * protocol-rules, "Errors").
 *
 * Either host may fail the pair at any time. It poisons the claim, so that
 * nobody moves this pair's data any more; if a use is claimed, it waits until
 * that is done, or until it is certain that the claimer is dead. Then it lets
 * the waits pass, and when its stream has passed them the user is told and does
 * with his buffer what he likes. The stream's later starts run on: nobody can
 * claim them.
 *
 * Each rank has a mover. The sender's may die at any step, and any may be slow.
 *
 * Broken variants: NO_POISON, TIMEOUT (a claimed use is not waited for for
 * ever), ONLY_DONE (nor is the claimer's death enough), TELL_EARLY (before the
 * stream has passed its waits: a kernel behind them still reads the buffer).
 * FAIL_SEND, FAIL_RECV: only this host does fail by itself.
 */
#include "common.pml"

#ifndef USES
#define USES 2
#endif

#define SEND 0
#define RECV 1
#define POISON 255

#ifdef FAIL_SEND
#define FAILS(side) ((side) == SEND)
#elif defined(FAIL_RECV)
#define FAILS(side) ((side) == RECV)
#else
#define FAILS(side) true
#endif

bool late_write, late_read, wrong_data;

byte started[2], claim, done;
bit claimer;
bool dead;                   /* the sender's mover, and everybody knows */
byte source, target;
bool failing[2], released[2], passed[2], told[2];

inline may_die()
{
    if
    :: rank == SEND -> dead = true; goto gone
    :: true
    fi
}

proctype mover(bit rank)
{
    byte use, value;

end:
    do
    :: atomic {
        started[SEND] > done && started[RECV] > done && claim == done ->
        use = done + 1
       }
       atomic {
        if
        :: claim == use - 1 -> claim = use; claimer = rank
        :: else -> use = 0
        fi
       }
       if
       :: use > 0 ->
           may_die();
           value = source;
           may_die();
           atomic { CHECK(late_write, !told[RECV]); target = value }
           may_die();
           done  = use;
           use   = 0;
           value = 0
       :: else
       fi
    od;
gone:
    skip
}

active proctype send_stream()
{
    byte k;

    for (k : 1 .. USES) {
        source        = k;
        started[SEND] = k;
        done >= k || released[SEND];
        source = 0
    }
    passed[SEND] = true
}

active proctype recv_stream()
{
    byte k;
    bool is_bad;

    for (k : 1 .. USES) {
        started[RECV] = k;
        done >= k || released[RECV];
        atomic {
            CHECK(late_read, !told[RECV]);
            is_bad = is_bad || (target != k)
        }
    }
    atomic {
        /* A user that is told of an error has an undefined buffer */
        CHECK(wrong_data, failing[RECV] || !is_bad);
        passed[RECV] = true
    }
    FINISH
}

proctype host(bit side)
{
end:
    atomic {
        !passed[side] && (FAILS(side) || claim == POISON || released[1 - side]);
        failing[side] = true
    }
#ifndef NO_POISON
    do
    :: atomic { claim == done -> claim = POISON; break }
    :: claim == POISON -> break
#ifndef ONLY_DONE
    :: atomic { claim != done && dead && claimer == SEND -> claim = POISON;
                break }
#endif
#ifdef TIMEOUT
    :: atomic { claim != done -> claim = POISON; break }
#endif
    od;
#endif
    released[side] = true;
#ifndef TELL_EARLY
    passed[side];
#endif
    told[side] = true;
    if
    :: side == SEND -> source = 0
    :: else
    fi
}

init {
    atomic {
        run mover(SEND);
        run mover(RECV);
        run host(SEND);
        run host(RECV)
    }
}
