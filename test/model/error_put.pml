/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * error_put.pml - one-sided operations of a queue that fails
 * (docs/protocols.md, "Starts that must have no effect", and
 * src/ucp/st/rma/st_rma_trig_halt.c).
 *
 * A stream starts put 1, waits for a message, starts put 2 with what the message
 * has brought, and a quiet follows; then its buffer is used again. The message's
 * peer may die at any time. Its wait is let pass then, and what the stream puts
 * from there on must not reach the target. A start is a store to the NIC's
 * trigger page, which cannot look whether it is to be done. The puts are posted
 * ahead: their entries are armed when the queue fails.
 *
 * Another queue of the process has put 3, with a trigger counter of its own. The
 * NIC drops all that is armed, or nothing, and waits for what has fired.
 *
 *   (nothing)    sound: thresholds count from a base, and the counter is reset
 *                before the wait is released. Then the NIC drops what is armed;
 *                when what has fired is over, puts that were dropped are counted
 *                by the host if they are of this queue, and else posted again
 *   NO_BASE      broken: thresholds count from 0
 *   RESET_LATE   broken: the reset comes after the release
 *   COUNT_FIRST  broken: the host counts the queue's puts before what has fired
 *                is over: the quiet passes
 *   NO_REPOST    broken: what was dropped of the other queue is not posted again
 *   NO_COUNT     broken: nobody counts what was dropped, and the quiet waits
 *   REPOST_ALL   sound for the target, but broken: nobody counts here, either
 */
#include "common.pml"

#define PUTS 3 /* 1 and 2 are the queue's, 3 is the other one's */

#ifdef NO_BASE
#define BASE 0
#else
#define BASE 2
#endif

mtype = { ARMED, FIRED, DROPPED, DONE };

bool stale, late_read;

byte trigger = BASE, other_trigger;
byte counted, other_counted;       /* completions */
mtype entry[PUTS + 1] = ARMED;
byte fired;                        /* and not over */

bool arrived, dead, released, halted;

/* What has happened, for the properties alone */
bool reused;                       /* the buffer is the user's again */

#define IS_DUE(k) ((k) == 3 -> other_trigger >= 1 : trigger >= BASE + (k))

proctype put(byte k)
{
end_armed:
    do
    :: atomic { entry[k] == ARMED && IS_DUE(k) -> entry[k] = FIRED; fired++ }
       /* reads the buffer */
       atomic { CHECK(late_read, k == 3 || !reused) }
       atomic {
        CHECK(stale, k != 2 || arrived);
        entry[k] = DONE;
        fired--;
        if
        :: k == 3 -> other_counted++
        :: else -> counted++
        fi
       }
       break
    od
}

active proctype peer()
{
    if
    :: atomic { !dead -> arrived = true }
    :: atomic { !arrived -> dead = true }
    fi
}

active proctype stream()
{
    trigger++;
    arrived || released;
    trigger++;
    counted >= 2;
    reused = true;
    FINISH
}

active proctype other_stream()
{
    other_trigger++;
    other_counted >= 1
}

inline reset()
{
    trigger = 0
}

inline count()
{
    atomic {
        for (k : 1 .. 2) {
            if
#ifdef COUNT_FIRST
            :: entry[k] != DONE -> counted++
#else
            :: entry[k] == DROPPED -> counted++
#endif
            :: else
            fi
        }
    }
}

active proctype host()
{
    byte k;

end:
    dead;
#ifdef RESET_LATE
    released = true;
    reset();
#else
    reset();
    released = true;
#endif
#ifdef COUNT_FIRST
    count();
#endif
    /* The NIC drops what is armed, and waits for the rest */
    atomic {
        for (k : 1 .. PUTS) {
            if
            :: entry[k] == ARMED -> entry[k] = DROPPED
            :: else
            fi
        }
    }
    fired == 0;
#if !defined(NO_COUNT) && !defined(REPOST_ALL) && !defined(COUNT_FIRST)
    count();
#endif
#ifdef REPOST_ALL
    atomic {
        for (k : 1 .. 2) {
            if
            :: entry[k] == DROPPED -> entry[k] = ARMED
            :: else
            fi
        }
    }
#endif
#ifndef NO_REPOST
    atomic {
        if
        :: entry[3] == DROPPED -> entry[3] = ARMED
        :: else
        fi
    }
#endif
}

init {
    byte k;

    atomic {
        for (k : 1 .. PUTS) {
            run put(k)
        }
    }
}
