/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_bypass.c - see cxiemu_bypass.h. */
#include "cxiemu_bypass.h"
#include "cxiemu_link.h"
#include "cxiemu_param.h"

#include <string.h>
#include <time.h>

/* SSE2 is part of x86-64; sanitizers know nothing of what its stores write. */
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define CXIEMU_BYPASS_IS_THERE 1
#include <emmintrin.h>
#endif

/* Shorter copies are ordinary ones, bytes */
#define CXIEMU_BYPASS_MIN 4096

/* An operation is long from here on, bytes */
#define CXIEMU_BYPASS_LONG_MIN (256u * 1024)

/* So many copies are made in turns in both ways before one is chosen, of which
 * one in so many is made in the other way then: ordinary stores may take ten
 * times as long */
#define CXIEMU_BYPASS_LEARN          32
#define CXIEMU_BYPASS_RETRY_ORDINARY 256
#define CXIEMU_BYPASS_RETRY_OTHER    64

/* One of so many is timed then, those that are tried among them */
#define CXIEMU_BYPASS_SAMPLE 8

_Static_assert((CXIEMU_BYPASS_RETRY_ORDINARY % CXIEMU_BYPASS_SAMPLE == 0) &&
               (CXIEMU_BYPASS_RETRY_OTHER % CXIEMU_BYPASS_SAMPLE == 0),
               "what is tried is timed");

/* What a byte is taken to need at most, ps: nothing overflows */
#define CXIEMU_BYPASS_TIME_MAX 100000000u

/* So many times as long ordinary stores must take for others to be used */
static const uint64_t cxiemu_bypass_ratio[] = {
    [CXIEMU_BYPASS_ONE]     = 7,
    [CXIEMU_BYPASS_SEVERAL] = 2,
    [CXIEMU_BYPASS_LONG]    = 5
};


static cxiemu_bypass_kind_t cxiemu_bypass_kind(size_t whole)
{
    return (whole <= CXIEMU_SHORT_SLOT_SIZE) ? CXIEMU_BYPASS_ONE :
           (whole < CXIEMU_BYPASS_LONG_MIN) ? CXIEMU_BYPASS_SEVERAL :
                                              CXIEMU_BYPASS_LONG;
}

/* The fence puts the stores before that which tells of the slot, which orders
 * ordinary ones only. A slot is aligned. */
static void cxiemu_bypass_store(void *slot, const void *from, size_t length)
{
#ifdef CXIEMU_BYPASS_IS_THERE
    __m128i *to         = slot;
    const __m128i *data = from;
    size_t count        = length / sizeof(*to);
    size_t i;

    for (i = 0; i < count; ++i) {
        _mm_stream_si128(&to[i], _mm_loadu_si128(&data[i]));
    }
    memcpy(&to[i], &data[i], length % sizeof(*to));
    _mm_sfence();
#else
    memcpy(slot, from, length);
#endif
}

static void cxiemu_bypass_copy(int is_past, void *slot, const void *from,
                               size_t length)
{
    if (is_past) {
        cxiemu_bypass_store(slot, from, length);
    } else {
        memcpy(slot, from, length);
    }
}

static int cxiemu_bypass_choose(const cxiemu_bypass_t *bypass,
                                cxiemu_bypass_kind_t kind)
{
    const uint32_t *time = bypass->kinds[kind].time;
    uint32_t turn        = bypass->kinds[kind].turn;
    int is_faster        = time[0] > (cxiemu_bypass_ratio[kind] * time[1]);
    uint32_t retry       = is_faster ? CXIEMU_BYPASS_RETRY_ORDINARY :
                                       CXIEMU_BYPASS_RETRY_OTHER;

    if (turn < CXIEMU_BYPASS_LEARN) {
        return turn & 1;
    }
    return ((turn % retry) == 0) ? !is_faster : is_faster;
}

static double cxiemu_bypass_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (ts.tv_sec * 1e12) + (ts.tv_nsec * 1e3);
}

/* Who is preempted meanwhile does not change much */
static void cxiemu_bypass_learn(cxiemu_bypass_t *bypass,
                                cxiemu_bypass_kind_t kind, int is_past,
                                double taken)
{
    uint32_t *time_p = &bypass->kinds[kind].time[is_past];
    uint32_t time    = (taken < CXIEMU_BYPASS_TIME_MAX) ?
                       (uint32_t)taken : CXIEMU_BYPASS_TIME_MAX;

    if (*time_p == 0) {
        *time_p = time;
    } else {
        time    = (time < 2 * *time_p) ? time : 2 * *time_p;
        *time_p = ((3 * *time_p) + time) / 4;
    }
}

static int cxiemu_bypass_is_timed(const cxiemu_bypass_t *bypass,
                                  cxiemu_bypass_kind_t kind)
{
    uint32_t turn = bypass->kinds[kind].turn;

    return (turn < CXIEMU_BYPASS_LEARN) || ((turn % CXIEMU_BYPASS_SAMPLE) == 0);
}

/* Copy by what is known, and see how long it takes */
static void cxiemu_bypass_try(cxiemu_bypass_t *bypass,
                              cxiemu_bypass_kind_t kind, void *to,
                              const void *from, size_t length)
{
    int is_past  = cxiemu_bypass_choose(bypass, kind);
    int is_timed = cxiemu_bypass_is_timed(bypass, kind);
    double begin = is_timed ? cxiemu_bypass_now() : 0;

    cxiemu_bypass_copy(is_past, to, from, length);
    if (is_timed) {
        cxiemu_bypass_learn(bypass, kind, is_past,
                            (cxiemu_bypass_now() - begin) / length);
    }
    ++bypass->kinds[kind].turn;
}

void cxiemu_bypass_fill(cxiemu_link_t *link, uint32_t slot, const void *from,
                        size_t length, size_t whole)
{
    cxiemu_bypass_mode_t mode = cxiemu_param()->bypass;
    cxiemu_bypass_t *bypass   = &link->bypass;
    uint32_t mask             = 1u << slot;
    void *to                  = cxiemu_link_slot(link, slot);

    if ((mode == CXIEMU_BYPASS_TRY) && (length >= CXIEMU_BYPASS_MIN) &&
        (bypass->used & mask)) {
        cxiemu_bypass_try(bypass, cxiemu_bypass_kind(whole), to, from, length);
    } else {
        /* The first time, when the kernel makes memory for the slot, shows
         * nothing */
        cxiemu_bypass_copy((mode == CXIEMU_BYPASS_YES) &&
                           (length >= CXIEMU_BYPASS_MIN), to, from, length);
    }
    bypass->used |= mask;
}
