/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz_util.c - inputs that are drawn at random.
 */
#include "fuzz_util.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FUZZ_DEFAULT_SEED 20240229

/* Changes of one input, at most */
#define FUZZ_MAX_CHANGES 4

/* The sanitizers' runtimes end a program without a signal */
extern void __sanitizer_set_death_callback(void (*callback)(void))
        __attribute__((weak));

static const int fuzz_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

#define FUZZ_NUM_SIGNALS (sizeof(fuzz_signals) / sizeof(fuzz_signals[0]))

/* The loop that runs */
static fuzz_t *fuzz_current;
static struct sigaction fuzz_old_actions[FUZZ_NUM_SIGNALS];


static size_t fuzz_min(size_t a, size_t b)
{
    return (a < b) ? a : b;
}

static double fuzz_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (1e-9 * (double)ts.tv_nsec);
}

static uint64_t fuzz_getenv(const char *name, uint64_t value)
{
    const char *text = getenv(name);

    return (text == NULL) ? value : strtoull(text, NULL, 0);
}

/* The program dies. Most state is lost with it, so that the rounds before this
 * one may matter, too. */
static void fuzz_say_round(void)
{
    const fuzz_t *fuzz = fuzz_current;
    char text[160];
    int length;

    if (fuzz == NULL) {
        return;
    }
    length = snprintf(text, sizeof(text),
                      "died in this round: ST_FUZZ_SEED=%" PRIu64
                      " ST_FUZZ_FIRST=%" PRIu64 " ST_FUZZ_ROUNDS=1\n",
                      fuzz->seed, fuzz->round - 1);
    (void)!write(STDOUT_FILENO, text, (size_t)length);
}

/* The fault comes again when this returns, and is handled as it was before */
static void fuzz_on_signal(int signum)
{
    size_t i;

    fuzz_say_round();
    for (i = 0; i < FUZZ_NUM_SIGNALS; ++i) {
        if (fuzz_signals[i] == signum) {
            (void)sigaction(signum, &fuzz_old_actions[i], NULL);
        }
    }
}

static void fuzz_watch(fuzz_t *fuzz)
{
    static int is_watched   = 0;
    struct sigaction action = {.sa_handler = fuzz_on_signal,
                               .sa_flags   = SA_ONSTACK};
    size_t i;

    fuzz_current = fuzz;
    if (is_watched) {
        return;
    }
    is_watched = 1;
    for (i = 0; i < FUZZ_NUM_SIGNALS; ++i) {
        (void)sigaction(fuzz_signals[i], &action, &fuzz_old_actions[i]);
    }
    if (__sanitizer_set_death_callback != NULL) {
        __sanitizer_set_death_callback(fuzz_say_round);
    }
}

void fuzz_begin(fuzz_t *fuzz, uint64_t rounds)
{
    uint64_t seconds = fuzz_getenv("ST_FUZZ_SECONDS", 0);

    fuzz->seed  = fuzz_getenv("ST_FUZZ_SEED", FUZZ_DEFAULT_SEED);
    fuzz->round = fuzz_getenv("ST_FUZZ_FIRST", 0);
    fuzz->last  = fuzz->round + fuzz_getenv("ST_FUZZ_ROUNDS", rounds);
    fuzz->end   = (seconds == 0) ? 0 : (fuzz_now() + (double)seconds);
    fuzz->state = 0;
    fuzz_watch(fuzz);
    printf("ST_FUZZ_SEED=%" PRIu64 "\n", fuzz->seed);
    fflush(stdout);
}

int fuzz_next(fuzz_t *fuzz)
{
    if ((fuzz->end > 0) ? (fuzz_now() >= fuzz->end) :
                          (fuzz->round >= fuzz->last)) {
        fuzz_current = NULL;
        return 0;
    }
    ++fuzz->round;
    fuzz->state = fuzz->seed + (fuzz->round * 0xd1342543de82ef95ull);
    return 1;
}

/* splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
 * Generators, OOPSLA 2014) */
uint64_t fuzz_random(fuzz_t *fuzz, uint64_t bound)
{
    uint64_t value;

    fuzz->state += 0x9e3779b97f4a7c15ull;
    value        = fuzz->state;
    value        = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
    value        = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
    value       ^= value >> 31;
    return (bound == 0) ? value : (value % bound);
}

uint64_t fuzz_number(fuzz_t *fuzz)
{
    uint64_t small = fuzz_random(fuzz, 5) - 2;

    switch (fuzz_random(fuzz, 4)) {
    case 0:
        return small;
    case 1:
        return (1ull << fuzz_random(fuzz, 64)) + small;
    case 2:
        return (UINT64_MAX >> fuzz_random(fuzz, 64)) + small;
    default:
        return fuzz_random(fuzz, 0);
    }
}

/* A number, little-endian, more often than not where a compiler would put it */
static void fuzz_store(fuzz_t *fuzz, uint8_t *data, size_t length)
{
    size_t size    = (size_t)1 << fuzz_random(fuzz, 4);
    size_t offset  = fuzz_random(fuzz, length);
    uint64_t value = fuzz_number(fuzz);

    if (fuzz_random(fuzz, 4) > 0) {
        offset -= offset % size;
    }
    memcpy(&data[offset], &value, fuzz_min(size, length - offset));
}

static void fuzz_copy(fuzz_t *fuzz, uint8_t *data, size_t length)
{
    size_t from = fuzz_random(fuzz, length);
    size_t to   = fuzz_random(fuzz, length);
    size_t size = 1 + fuzz_random(fuzz, 16);

    memmove(&data[to], &data[from],
            fuzz_min(size, fuzz_min(length - from, length - to)));
}

static void fuzz_change(fuzz_t *fuzz, uint8_t *data, size_t length)
{
    switch (fuzz_random(fuzz, 4)) {
    case 0:
        data[fuzz_random(fuzz, length)] ^= (uint8_t)(1u <<
                                                     fuzz_random(fuzz, 8));
        break;
    case 1:
        fuzz_copy(fuzz, data, length);
        break;
    default:
        fuzz_store(fuzz, data, length);
        break;
    }
}

void fuzz_scribble(fuzz_t *fuzz, void *data, size_t length)
{
    uint64_t count = 1 + fuzz_random(fuzz, FUZZ_MAX_CHANGES);

    for (; (count > 0) && (length > 0); --count) {
        fuzz_change(fuzz, data, length);
    }
}

void fuzz_set(fuzz_input_t *input, const void *valid, size_t length)
{
    memcpy(input->data, valid, length);
    input->length = length;
}

/* Cut an input off, or add bytes */
static void fuzz_resize(fuzz_t *fuzz, fuzz_input_t *input)
{
    size_t length = input->length;

    if ((length > 0) && (fuzz_random(fuzz, 2) == 0)) {
        input->length = fuzz_random(fuzz, length);
        return;
    }
    input->length = fuzz_min(input->room, length + 1 + fuzz_random(fuzz, 64));
    for (; length < input->length; ++length) {
        input->data[length] = (uint8_t)fuzz_random(fuzz, 256);
    }
}

void fuzz_mutate(fuzz_t *fuzz, fuzz_input_t *input)
{
    if (fuzz_random(fuzz, 4) == 0) {
        fuzz_resize(fuzz, input);
    }
    fuzz_scribble(fuzz, input->data, input->length);
}

void fuzz_splice(fuzz_t *fuzz, fuzz_input_t *input, const void *other,
                 size_t length)
{
    size_t at   = fuzz_random(fuzz, input->length + 1);
    size_t from = fuzz_random(fuzz, length + 1);
    size_t size = fuzz_random(fuzz, length - from + 1);

    if (fuzz_random(fuzz, 2) == 0) { /* in between */
        size = fuzz_min(size, input->room - input->length);
        memmove(&input->data[at + size], &input->data[at], input->length - at);
        input->length += size;
    } else {
        size = fuzz_min(size, input->room - at);
        if ((at + size) > input->length) {
            input->length = at + size;
        }
    }
    memcpy(&input->data[at], (const uint8_t*)other + from, size);
}
