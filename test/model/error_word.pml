/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * error_word.pml - the word that a stream waits on: counted up by the NIC, and
 * made to let all waits pass by the host (docs/protocols.md, "Errors").
 *
 * The word has 8 bits here for its 64: RELEASE is 2^6 for 2^62. The stream
 * waits for 1, 2, ... USES. The NIC's k-th addition fires when k uses have
 * landed, and happens as late as it likes. The host stores RELEASE once, at any
 * time, and all waits must pass from then on, whatever additions follow.
 *
 *   COMPARE_CYCLIC  the wait compares as CUDA's: signed (word - k) >= 0
 *   TORN            the NIC reads the word, and later writes it back with 1
 *                   more: what the CPU stores between is lost
 *   AGAIN           the host stores RELEASE again whenever an addition has
 *                   completed that it had not reaped before: sound with TORN
 *   BY_NIC          the NIC adds RELEASE, like everything else: sound with TORN
 *   NO_FAILURE      nothing fails, nothing is released, all additions come
 *   NICS=2          additions by two NICs in turn; sound with a word each
 *                   (WORD_EACH) of which the stream awaits both
 *
 * Broken variants: WRITE (the NIC writes k instead of adding 1), RELEASE=255
 * (the largest value: it wraps), RELEASE=128 with COMPARE_CYCLIC, TORN alone,
 * NICS=2 with TORN in one word, TWICE (an addition is carried out twice).
 */
#include "common.pml"

#ifndef USES
#define USES 3
#endif

#ifndef RELEASE
#define RELEASE 64
#endif

#ifndef NICS
#define NICS 1
#endif

#ifdef WORD_EACH
#define WORDS NICS
#else
#define WORDS 1
#endif

/* Which NIC adds the k-th time, and to which word */
#define NIC(k) (((k) - 1) % NICS)
#define WORD(k) word[((k) - 1) % WORDS]

/* How far the i-th word has to be for use k */
#define SHARE(k, i) (((k) + WORDS - 1 - (i)) / WORDS)

#ifdef COMPARE_CYCLIC
#define REACHED(value, wanted) ((((value) - (wanted)) & 255) < 128)
#else
#define REACHED(value, wanted) ((value) >= (wanted))
#endif

#if WORDS > 1
#define PASSES(k) \
    (REACHED(word[0], SHARE(k, 0)) && REACHED(word[1], SHARE(k, 1)))
#else
#define PASSES(k) REACHED(word[0], k)
#endif

bool premature;

byte word[WORDS];
bool busy[NICS];        /* a NIC does one thing after the other */
bool released;

byte landed;            /* uses whose data is there */

active proctype data()
{
    do
    :: landed < USES -> landed++
#ifdef NO_FAILURE
    :: landed == USES -> break
#else
    :: break /* no more comes, or it is refused */
#endif
    od
}

proctype addition(byte k)
{
    byte value;

end:
    atomic { landed >= k && !busy[NIC(k)] -> busy[NIC(k)] = true }
#if defined(WRITE)
    WORD(k) = k;
#elif defined(TORN)
    value = WORD(k);
    WORD(k) = value + 1;
#else
    WORD(k)++;
#endif
#ifdef TWICE
    WORD(k)++;
#endif
    busy[NIC(k)] = false;
#ifdef AGAIN
    /* Reaped. Before the release was stored there is nothing to do. */
    if
    :: released -> word[0] = RELEASE
    :: else
    fi
#endif
}

#ifndef NO_FAILURE
active proctype host()
{
    byte value;

    released = true;
#ifdef BY_NIC
    atomic { !busy[0] -> busy[0] = true }
    value   = word[0];
    word[0] = value + RELEASE;
    busy[0] = false
#else
    word[0] = RELEASE
#endif
}
#endif

active proctype stream()
{
    byte k;

    for (k : 1 .. USES) {
        atomic { PASSES(k) -> CHECK(premature, landed >= k || released) }
    }
    FINISH
}

init {
    byte k;

    atomic {
        for (k : 1 .. USES) {
            run addition(k)
        }
    }
}
