/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ready.pml - how a peer tells the owner of an emulated NIC that a link has a
 * record (cxiemu_nic.h, cxiemu_watch.h).
 *
 * The peer writes RECORDS records; its stores go through a buffer, which a
 * fence empties. For each it sets the link's ready bit unless that is set, and
 * wakes the owner if that sleeps. The owner polls, up to POLLS times, and then
 * sleeps whenever it finds nothing. While it polls it may begin to watch the
 * link: it looks at the record itself, and lets the bit stand.
 *
 *   (nothing)    sound: whoever is about to sleep looks at the watched link, or
 *                at the bit of one that is not, after it has said so
 *   CEASE        sound: whoever is about to sleep ceases to watch, takes the
 *                bit, says so, and looks at the bit (the NIC's thread)
 *   NO_FENCE     broken: the peer looks at the bit before its record is out
 *   LOOK_FIRST   broken: the owner looks at the record, then clears the bit
 *   BIT_ONLY     broken: who is about to sleep looks at bits that do not stand,
 *                but not at the watched link
 *   NOT_TAKEN    broken: CEASE without a look at the record that the bit tells
 *                of
 *   QUIET        broken: a peer that finds the bit set wakes nobody
 */
#include "common.pml"

#ifndef RECORDS
#define RECORDS 3
#endif

#ifndef POLLS
#define POLLS 3
#endif

#if defined(NOT_TAKEN)
#define CEASE
#endif

byte stored;      /* Records that the peer has stored, in its buffer or not */
byte seq;         /* Those that are out */
bool ready;       /* The link's bit */
bool asleep;      /* The owner has said that it sleeps, or sleeps */
bool kicked;      /* It was woken since it said so */
byte taken;       /* Records that the owner has taken */

/* The buffer empties at any time */
active proctype buffer()
{
end:
    do
    :: seq < stored -> seq++
    od
}

active proctype peer()
{
    byte i;
    bool was_set;

    for (i : 1 .. RECORDS) {
        stored++;
#ifndef NO_FENCE
        seq == stored;
#endif
        was_set = ready;
        if
        :: !was_set -> ready = true
        :: else
        fi;
#ifdef QUIET
        if
        :: was_set -> skip
        :: !was_set && asleep -> kicked = true
        :: else
        fi
#else
        if
        :: asleep -> kicked = true
        :: else
        fi
#endif
    }
}

/* Takes the bit, and then what it tells of */
inline take_bit()
{
#ifdef LOOK_FIRST
    if
    :: ready -> taken = seq; ready = false
    :: else
    fi
#else
    if
    :: ready ->
        ready = false;
#ifdef NOT_TAKEN
        if
        :: !ceased -> taken = seq
        :: else
        fi
#else
        taken = seq
#endif
    :: else
    fi
#endif
}

/* One look */
inline look()
{
    if
    :: watched && seq != taken -> taken = seq
    :: !watched -> take_bit()
    :: else
    fi
}

active proctype owner()
{
    byte polls = POLLS;
    bool watched, ceased;

    do
    :: taken == RECORDS -> break
    :: taken < RECORDS && polls > 0 ->
        polls--;
        look();
        if
        :: watched = true
        :: watched = false
        :: skip
        fi
    :: taken < RECORDS && polls == 0 ->
        /* About to sleep */
#ifdef CEASE
        watched = false;
        ceased  = true;
#endif
        look();
        kicked = false;
        asleep = true;
        if
#ifdef BIT_ONLY
        :: !watched && ready
#else
        :: watched && seq != taken
        :: !watched && ready
#endif
        :: else -> kicked || taken == RECORDS /* asleep, but for the end */
        fi;
        asleep = false
    od;
    FINISH
}
