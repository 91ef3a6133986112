/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_fill.c - the direct lane: how a send's side stores a piece, to its
 * slot or straight to the receive's buffer.
 *
 * The lines there are in the cache of the other side's processor, which read
 * them last. An ordinary store fetches each line from there, and the other
 * side's load fetches it back: where the processors share no cache that takes
 * several times as long as memory does. Non-temporal stores pass both caches,
 * and the other side loads from memory. Where the processors share a cache that
 * is slower. Which is the case is not to be known beforehand, as threads move
 * and hypervisors do not tell; so the times of both kinds of stores to a peer
 * are taken, and one of them is used but seldom.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_direct.h"
#include "st_op.h"
#include "st_peer.h"
#include "st_worker.h"

#include <ucs/sys/math.h>

#include <string.h>

/* SSE2 is part of x86-64; sanitizers know nothing of what its stores write. */
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define UCP_ST_DIRECT_HAVE_BYPASS 1
#include <emmintrin.h>
#endif

/* So many pieces are stored in turns in both ways before one is chosen */
#define UCP_ST_DIRECT_FILL_LEARN 32

/* After these, of so many pieces one is stored in the other way: ordinary
 * stores may take ten times as long */
#define UCP_ST_DIRECT_FILL_RETRY_ORDINARY 256
#define UCP_ST_DIRECT_FILL_RETRY_BYPASS   64

/* One of so many is timed then: of 8 KiB, to look at the clock takes a tenth.
 * Those that are tried are among them. */
#define UCP_ST_DIRECT_FILL_SAMPLE 8

_Static_assert((UCP_ST_DIRECT_FILL_RETRY_ORDINARY %
                UCP_ST_DIRECT_FILL_SAMPLE == 0) &&
               (UCP_ST_DIRECT_FILL_RETRY_BYPASS %
                UCP_ST_DIRECT_FILL_SAMPLE == 0), "what is tried is timed");

/* What a byte is taken to need at most, ps; nothing overflows */
#define UCP_ST_DIRECT_FILL_TIME_MAX 1e8

/* So many times as long ordinary stores must take for others to be used: of a
 * message of one piece, as the other side's loads come behind the stores, and
 * take longer from memory than from a cache that both share; of several, whose
 * loads go on beside the stores; and of long ones, whose slots leave the other
 * side's own cache before they are stored to again, but not while they come
 * from memory. What is copied straight to its place is in that cache if it is
 * not long. */
static const uint32_t ucp_st_direct_fill_ratio[] = {
    [UCP_ST_DIRECT_FILL_ONE]         = 7,
    [UCP_ST_DIRECT_FILL_SEVERAL]     = 2,
    [UCP_ST_DIRECT_FILL_LONG]        = 5,
    [UCP_ST_DIRECT_FILL_MAPPED]      = 2,
    [UCP_ST_DIRECT_FILL_MAPPED_LONG] = 5
};

/* Mapped messages from here on are long, bytes */
#define UCP_ST_DIRECT_FILL_LONG_MIN (256ul << 10)

#ifdef UCP_ST_DIRECT_HAVE_BYPASS

/* The fence puts the stores before that which tells of the piece, which orders
 * ordinary ones only. */
static void ucp_st_direct_fill_bypass(void *place, const void *data,
                                      size_t length)
{
    size_t head         = -(uintptr_t)place % sizeof(__m128i);
    __m128i *to         = UCS_PTR_BYTE_OFFSET(place, head);
    const __m128i *from = UCS_PTR_BYTE_OFFSET(data, head);
    size_t count        = (length - head) / sizeof(*to);
    size_t i;

    memcpy(place, data, head);

    for (i = 0; i < count; ++i) {
        _mm_stream_si128(&to[i], _mm_loadu_si128(&from[i]));
    }
    memcpy(&to[i], &from[i], (length - head) % sizeof(*to));
    _mm_sfence();
}

#else /* both are the same */

static void ucp_st_direct_fill_bypass(void *place, const void *data,
                                      size_t length)
{
    memcpy(place, data, length);
}

#endif

static uint32_t ucp_st_direct_fill_load(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static ucp_st_direct_fill_kind_t
ucp_st_direct_fill_kind(const ucp_st_direct_op_t *direct)
{
    if (direct->proto == UCP_ST_DIRECT_MAPPED) {
        return (direct->length < UCP_ST_DIRECT_FILL_LONG_MIN) ?
               UCP_ST_DIRECT_FILL_MAPPED : UCP_ST_DIRECT_FILL_MAPPED_LONG;
    }
    return (direct->num_pieces == 1) ? UCP_ST_DIRECT_FILL_ONE :
           ((direct->num_slots <= UCP_ST_DIRECT_PIPE_SLOTS) &&
            (direct->num_pieces <= UCP_ST_DIRECT_MANY_PIECES)) ?
                                       UCP_ST_DIRECT_FILL_SEVERAL :
                                       UCP_ST_DIRECT_FILL_LONG;
}

/* Whether it is faster to store past the caches, as far as is known */
static int ucp_st_direct_fill_is_faster(const ucp_st_direct_fill_t *fill,
                                        ucp_st_direct_fill_kind_t kind)
{
    return ucp_st_direct_fill_load(&fill->time[0]) >
           (ucp_st_direct_fill_ratio[kind] *
            ucp_st_direct_fill_load(&fill->time[1]));
}

/* Whether the next piece is to be stored so */
static int ucp_st_direct_fill_choose(const ucp_st_direct_fill_t *fill,
                                     int is_faster)
{
    uint32_t turn  = ucp_st_direct_fill_load(&fill->turn);
    uint32_t retry = is_faster ? UCP_ST_DIRECT_FILL_RETRY_ORDINARY :
                                 UCP_ST_DIRECT_FILL_RETRY_BYPASS;

    if (turn < UCP_ST_DIRECT_FILL_LEARN) {
        return turn & 1;
    }
    return ((turn % retry) == 0) ? !is_faster : is_faster;
}

static int ucp_st_direct_fill_is_timed(const ucp_st_direct_fill_t *fill)
{
    uint32_t turn = ucp_st_direct_fill_load(&fill->turn);

    return (turn < UCP_ST_DIRECT_FILL_LEARN) ||
           ((turn % UCP_ST_DIRECT_FILL_SAMPLE) == 0);
}

/* Who is preempted meanwhile does not change much */
static void ucp_st_direct_fill_learn(ucp_st_direct_fill_t *fill, int bypass,
                                     double taken)
{
    uint32_t time = ucp_st_direct_fill_load(&fill->time[bypass]);
    uint32_t now  = ucs_min(taken, UCP_ST_DIRECT_FILL_TIME_MAX);

    time = (time == 0) ? now : (((3 * time) + ucs_min(now, 2 * time)) / 4);
    __atomic_store_n(&fill->time[bypass], time, __ATOMIC_RELAXED);
}

static void ucp_st_direct_fill_by(int bypass, void *place, const void *data,
                                  size_t length)
{
    if (bypass) {
        ucp_st_direct_fill_bypass(place, data, length);
    } else {
        memcpy(place, data, length);
    }
}

/* The other side leaves a mapped message to this one, or helps; it may hear of
 * that late */
static void ucp_st_direct_fill_tell(const ucp_st_direct_op_t *direct,
                                    int is_bypass)
{
    if ((direct->proto == UCP_ST_DIRECT_MAPPED) &&
        (direct->mine->pushes != (uint64_t)is_bypass)) {
        __atomic_store_n(&direct->mine->pushes, is_bypass, __ATOMIC_RELAXED);
    }
}

/* What was stored is as it will be later: not for the first time, when the
 * kernel makes memory for it, and no shorter piece at the end */
static int ucp_st_direct_fill_is_usual(const ucp_st_direct_op_t *direct,
                                       size_t length)
{
    return ((direct->proto == UCP_ST_DIRECT_MAPPED) ?
                    (direct->begun > 1) :
                    (direct->pos > direct->num_slots)) &&
           ((length >= direct->piece) || (direct->num_pieces == 1));
}

/* By what is known. Several streams may do so at once: one that is not counted
 * does not matter. */
static void ucp_st_direct_fill_try(const ucp_st_direct_op_t *direct,
                                   void *place, const void *data, size_t length)
{
    ucp_st_direct_fill_kind_t kind = ucp_st_direct_fill_kind(direct);
    ucp_st_direct_fill_t *fill     = &direct->op->peer->direct.fill[kind];
    int is_faster                  = ucp_st_direct_fill_is_faster(fill, kind);
    int bypass                     = ucp_st_direct_fill_choose(fill, is_faster);
    int is_usual                   = ucp_st_direct_fill_is_usual(direct,
                                                                 length);
    int is_timed                   = is_usual &&
                                     ucp_st_direct_fill_is_timed(fill);
    double begin                   = is_timed ? ucp_st_worker_now() : 0;

    ucp_st_direct_fill_by(bypass, place, data, length);
    if (is_timed) {
        ucp_st_direct_fill_learn(fill, bypass,
                                 ((ucp_st_worker_now() - begin) / length) *
                                         1e12);
    }
    if (is_usual) {
        __atomic_store_n(&fill->turn, ucp_st_direct_fill_load(&fill->turn) + 1,
                         __ATOMIC_RELAXED);
    }
    ucp_st_direct_fill_tell(direct, is_faster);
}

void ucp_st_direct_fill(const ucp_st_direct_op_t *direct, void *place,
                        const void *data, size_t length)
{
    ucs_ternary_auto_value_t mode = direct->op->worker->config.direct_bypass;

    if (mode == UCS_TRY) {
        ucp_st_direct_fill_try(direct, place, data, length);
    } else {
        ucp_st_direct_fill_by(mode == UCS_YES, place, data, length);
        ucp_st_direct_fill_tell(direct, mode == UCS_YES);
    }
}
