/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_fill.c - the direct lane: how a piece is stored to its slot.
 *
 * The slot's lines are in the cache of the processor that took the last piece
 * out. An ordinary store fetches each line from there, and the other side's
 * load fetches it back: where the processors share no cache that takes several
 * times as long as memory does. Non-temporal stores pass both caches, and the
 * other side loads from memory. Where the processors share a cache that is
 * slower. Which is the case is not to be known beforehand, as threads move and
 * hypervisors do not tell; so each side of a pair times its stores of both
 * kinds, one of them seldom.
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

/* What a byte is taken to need at most, ps; nothing overflows */
#define UCP_ST_DIRECT_FILL_TIME_MAX 100000000

/* So many times as long ordinary stores must take for others to be used: of a
 * message of one piece, as the other side's loads come behind the stores, and
 * take longer from memory than from a cache that both share; of several, whose
 * loads go on beside the stores; and of long ones, whose slots leave the other
 * side's own cache before they are stored to again, but not while they come
 * from memory. */
static const uint32_t ucp_st_direct_fill_ratio[] = {
    [UCP_ST_DIRECT_FILL_ONE]     = 7,
    [UCP_ST_DIRECT_FILL_SEVERAL] = 2,
    [UCP_ST_DIRECT_FILL_LONG]    = 5
};

#ifdef UCP_ST_DIRECT_HAVE_BYPASS

/* Slots are aligned. The fence puts the stores before that of the piece's
 * number, which orders ordinary ones only. */
static void ucp_st_direct_fill_bypass(void *slot, const void *data,
                                      size_t length)
{
    __m128i *to         = slot;
    const __m128i *from = data;
    size_t count        = length / sizeof(*to);
    size_t i;

    for (i = 0; i < count; ++i) {
        _mm_stream_si128(&to[i], _mm_loadu_si128(&from[i]));
    }
    memcpy(&to[i], &from[i], length % sizeof(*to));
    _mm_sfence();
}

#else /* both are the same */

static void ucp_st_direct_fill_bypass(void *slot, const void *data,
                                      size_t length)
{
    memcpy(slot, data, length);
}

#endif

static uint32_t ucp_st_direct_fill_load(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static ucp_st_direct_fill_kind_t
ucp_st_direct_fill_kind(const ucp_st_direct_op_t *direct)
{
    return (direct->num_pieces == 1) ? UCP_ST_DIRECT_FILL_ONE :
           (direct->num_slots <= UCP_ST_DIRECT_PIPE_SLOTS) ?
                                       UCP_ST_DIRECT_FILL_SEVERAL :
                                       UCP_ST_DIRECT_FILL_LONG;
}

/* Whether the next piece is to be stored past the caches */
static int ucp_st_direct_fill_choose(ucp_st_direct_fill_t *fill,
                                     ucp_st_direct_fill_kind_t kind)
{
    uint32_t turn = ucp_st_direct_fill_load(&fill->turn);
    int bypass;

    if (turn < UCP_ST_DIRECT_FILL_LEARN) {
        return turn & 1;
    }
    bypass = ucp_st_direct_fill_load(&fill->time[0]) >
             (ucp_st_direct_fill_ratio[kind] *
              ucp_st_direct_fill_load(&fill->time[1]));
    return bypass ^ ((turn % (bypass ? UCP_ST_DIRECT_FILL_RETRY_ORDINARY :
                                       UCP_ST_DIRECT_FILL_RETRY_BYPASS)) == 0);
}

/* Several streams may do so at once: one that is not counted does not matter.
 * Nor does much who is preempted meanwhile. */
static void ucp_st_direct_fill_learn(ucp_st_direct_fill_t *fill, int bypass,
                                     uint32_t taken)
{
    uint32_t time = ucp_st_direct_fill_load(&fill->time[bypass]);

    time = (time == 0) ? taken : (((3 * time) + ucs_min(taken, 2 * time)) / 4);
    __atomic_store_n(&fill->time[bypass], time, __ATOMIC_RELAXED);
    __atomic_store_n(&fill->turn, ucp_st_direct_fill_load(&fill->turn) + 1,
                     __ATOMIC_RELAXED);
}

static void ucp_st_direct_fill_by(int bypass, void *slot, const void *data,
                                  size_t length)
{
    if (bypass) {
        ucp_st_direct_fill_bypass(slot, data, length);
    } else {
        memcpy(slot, data, length);
    }
}

void ucp_st_direct_fill(ucp_st_direct_op_t *direct, void *slot,
                        const void *data, size_t length)
{
    ucs_ternary_auto_value_t mode  = direct->op->worker->config.direct_bypass;
    ucp_st_direct_fill_kind_t kind = ucp_st_direct_fill_kind(direct);
    ucp_st_direct_fill_t *fill     = &direct->op->peer->direct.fill[kind];
    double begin, taken;
    int bypass;

    if (mode != UCS_TRY) {
        ucp_st_direct_fill_by(mode == UCS_YES, slot, data, length);
        return;
    }
    bypass = ucp_st_direct_fill_choose(fill, kind);
    begin  = ucp_st_worker_now();
    ucp_st_direct_fill_by(bypass, slot, data, length);
    /* Not of slots that were never stored to, as the kernel makes memory for
     * them, nor of a shorter piece at the end */
    if ((direct->pos > direct->num_slots) &&
        ((length == direct->piece) || (direct->num_pieces == 1))) {
        taken = (ucp_st_worker_now() - begin) / length;
        ucp_st_direct_fill_learn(fill, bypass,
                                 ucs_min(taken * 1e12,
                                         UCP_ST_DIRECT_FILL_TIME_MAX));
    }
}
