/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ready.pml - how a peer tells the owner of an emulated NIC that a link has a
 * record (cxiemu_nic.h), and when it wakes the NIC's thread (cxiemu_wait.h).
 *
 * The peer writes RECORDS records; its stores go through a buffer, which a
 * fence empties. For each it sets the link's ready bit unless that is set, and
 * wakes the thread if that sleeps and nobody polls. A host stream polls WAITS
 * times, and a thread of the program reads a queue READS times. A taker of
 * records has the lock; a poll or a read alone leaves an occupied one alone.
 *
 *   (nothing)    sound
 *   NO_FENCE     broken: the peer looks at the bit before its record is out
 *   LOOK_FIRST   broken: the owner looks at the record, then clears the bit
 *   END_FIRST    broken: a stream that ceases to poll looks a last time and
 *                then says so
 *   END_TRY      broken: its last look leaves an occupied lock alone, too
 *   SLEEP_FIRST  broken: the thread looks at the bit, and then says that it
 *                sleeps
 */
#include "common.pml"

#ifndef RECORDS
#define RECORDS 2
#endif

#ifndef WAITS
#define WAITS 1
#endif

#ifndef READS
#define READS 1
#endif

mtype = {awake, timed, asleep};

byte stored;      /* Records that the peer has stored, in its buffer or not */
byte seq;         /* Those that are out */
bool ready;       /* The link's bit */
byte taken;       /* Records that the owner has taken */
bool locked;
byte pollers;     /* Streams that poll */
mtype state = awake; /* Of the thread */

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

    for (i : 1 .. RECORDS) {
        stored++;
#ifndef NO_FENCE
        seq == stored;
#endif
        if
        :: !ready -> ready = true
        :: else
        fi;
        if
        :: pollers == 0 ->
            atomic {
                if
                :: state == asleep -> state = awake
                :: else
                fi
            }
        :: else
        fi
    }
}

/* The lock is held */
inline take()
{
#ifdef LOOK_FIRST
    if
    :: ready -> taken = seq; ready = false
    :: else
    fi;
#else
    if
    :: ready -> ready = false; taken = seq
    :: else
    fi;
#endif
    locked = false
}

inline try_take()
{
    if
    :: atomic { !locked -> locked = true }; take()
    :: locked
    fi
}

inline must_take()
{
    atomic { !locked -> locked = true };
    take()
}

/* A stream that waits, and ceases to */
active proctype stream()
{
    byte i;

    for (i : 1 .. WAITS) {
        pollers++;
        try_take();
#ifdef END_FIRST
        if
        :: ready -> must_take()
        :: else
        fi;
        pollers--
#else
        pollers--;
        if
#ifdef END_TRY
        :: ready -> try_take()
#else
        :: ready -> must_take()
#endif
        :: else
        fi
#endif
    }
}

/* A thread of the program that reads a queue now and then */
active proctype reader()
{
    byte i;

    for (i : 1 .. READS) {
        try_take()
    }
}

active proctype thread()
{
    byte num_timed = READS;
    bool sleeps;

    do
    :: taken == RECORDS -> break
    :: taken < RECORDS ->
        must_take();
        if
        :: num_timed > 0 ->
            /* Something was read: nobody has to wake it */
            num_timed--;
            state = timed
        :: true ->
#ifdef SLEEP_FIRST
            sleeps = !ready;
            state  = asleep;
#else
            state  = asleep;
            sleeps = !ready;
#endif
            if
            :: sleeps -> state != asleep || taken == RECORDS
            :: else
            fi
        fi;
        state = awake
    od;
    FINISH
}
