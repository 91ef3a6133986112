/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trig_ahead.pml - a kernel starts uses on the trig lane while the host ends
 * the operation (docs/protocols.md, "Starts by kernels of the application"):
 * the counter that the trigger page adds to is given to another operation, and
 * no store of the kernel may come after that.
 *
 *   kernel's start k                     host, when the operation ends
 *   store begun = k                      store halted
 *   fence                                fence
 *   load halted: 1: nothing              until ended >= begun: wait
 *   else store to the trigger page       give the counter back
 *   fence
 *   store ended = k
 *
 * A store is carried out at any time between its issue and the next fence of
 * the same side; `issued` and `halt` are what was issued. The host loads the
 * two in either order.
 *
 * Broken variants: NO_FENCE_KERNEL (behind `begun`), NO_FENCE_HOST,
 * NO_FENCE_END (in front of `ended`), NO_WAIT (the counter is given back at
 * once), NO_END (a start that finds `halted` does not store `ended`).
 */
#include "common.pml"

#ifndef USES
#define USES 2
#endif

bool late_store;

byte issued, begun, ended;
bool halt, halted;
bool storing;   /* to the page, issued and not carried out */
bool reused;    /* the counter is another operation's */

/* Stores come to memory when they like */
active proctype memory()
{
end:
    do
    :: atomic { begun != issued -> begun = issued }
    :: atomic { halted != halt -> halted = halt }
    :: atomic {
        storing ->
        CHECK(late_store, !reused);
        storing = false
       }
    od
}

active proctype kernel()
{
    byte k;
    bool stop;

    for (k : 1 .. USES) {
        issued = k;
#ifndef NO_FENCE_KERNEL
        begun == issued;
#endif
        stop = halted;
        if
        :: !stop -> storing = true
        :: else
        fi;
#ifdef NO_END
        if
        :: stop -> break
        :: else
        fi;
#endif
#ifndef NO_FENCE_END
        !storing;
#endif
        ended = k;
        if
        :: stop -> break
        :: else
        fi
    }
}

active proctype host()
{
    byte value;

    halt = true;
#ifndef NO_FENCE_HOST
    halted;
#endif
#ifndef NO_WAIT
    do
    :: value = begun;
       if
       :: ended >= value -> break
       :: else -> ended >= value
       fi
    :: value = ended;
       if
       :: value >= begun -> break
       :: else -> ended > value
       fi
    od;
#endif
    reused = true;
    FINISH
}
