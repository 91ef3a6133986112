/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_move.c - the direct lane: starts, and who moves the data. The
 * protocols are described in st_direct.h.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_direct.h"
#include "st_direct_dev.h"
#include "st_op.h"
#include "st_worker.h"

#include <ucs/sys/math.h>

#include <string.h>

/* A claim: the use, whether nothing may be claimed any more, and the range of
 * the pieces that are left of the use */
#define UCP_ST_DIRECT_CLAIM_BITS 12
#define UCP_ST_DIRECT_POISON     (1ull << (2 * UCP_ST_DIRECT_CLAIM_BITS))
#define UCP_ST_DIRECT_USE_SHIFT  ((2 * UCP_ST_DIRECT_CLAIM_BITS) + 1)

_Static_assert(UCP_ST_DIRECT_MAX_PIECES < UCS_BIT(UCP_ST_DIRECT_CLAIM_BITS),
               "pieces fit into a claim");

/** What a claim says. */
typedef struct ucp_st_direct_claim {
    uint64_t use;
    uint32_t low;  /* first one left */
    uint32_t high; /* behind the last one left */
} ucp_st_direct_claim_t;

static uint64_t ucp_st_direct_claim_pack(const ucp_st_direct_claim_t *claim)
{
    return (claim->use << UCP_ST_DIRECT_USE_SHIFT) |
           ((uint64_t)claim->low << UCP_ST_DIRECT_CLAIM_BITS) | claim->high;
}

static ucp_st_direct_claim_t ucp_st_direct_claim_unpack(uint64_t word)
{
    return (ucp_st_direct_claim_t) {
        .use  = word >> UCP_ST_DIRECT_USE_SHIFT,
        .low  = (word >> UCP_ST_DIRECT_CLAIM_BITS) &
                UCS_MASK(UCP_ST_DIRECT_CLAIM_BITS),
        .high = word & UCS_MASK(UCP_ST_DIRECT_CLAIM_BITS)
    };
}

static ucp_st_direct_side_t *
ucp_st_direct_mine(const ucp_st_direct_op_t *direct)
{
    return &direct->pair->side[direct->dir];
}

static ucp_st_direct_side_t *
ucp_st_direct_other(const ucp_st_direct_op_t *direct)
{
    return &direct->pair->side[!direct->dir];
}

/* The acquire load pairs with the other side's release store: what it did to
 * its buffer, or to the slots, comes before */
static uint64_t ucp_st_direct_load(const volatile uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void ucp_st_direct_store(volatile uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* Where the other side's stream attends to the pair; NULL before its first
 * start */
static ucp_st_direct_desk_t *
ucp_st_direct_other_desk(const ucp_st_direct_op_t *direct)
{
    uint64_t offset = ucp_st_direct_load(&ucp_st_direct_other(direct)->desk);

    return (offset == 0) ? NULL : UCS_PTR_BYTE_OFFSET(direct->segment, offset);
}

/* Wake the other side's stream if it sleeps. The fence pairs with the counting
 * of who is about to sleep, after which he looks once more: he sees what was
 * stored before, or is seen. The count is looked at first, as it changes
 * seldom. */
static void ucp_st_direct_ring(const ucp_st_direct_op_t *direct)
{
    ucp_st_direct_desk_t *desk;

    __sync_synchronize();
    if (__atomic_load_n(&direct->segment->sleepers, __ATOMIC_RELAXED) == 0) {
        return;
    }
    desk = ucp_st_direct_other_desk(direct);
    if (desk == NULL) {
        return;
    }
    if (__atomic_load_n(&desk->is_parked, __ATOMIC_RELAXED)) {
        ucp_st_direct_dev_kick(direct->op->peer);
    } else {
        ucs_gstream_bell_ring(&desk->bell);
    }
}

static size_t ucp_st_direct_piece_length(const ucp_st_direct_op_t *direct,
                                         uint32_t index)
{
    size_t offset = index * direct->piece;

    return ucs_min(direct->piece, direct->length - offset);
}

static void *ucp_st_direct_slot_data(const ucp_st_direct_op_t *direct,
                                     uint64_t index)
{
    return (direct->data == NULL) ? direct->pair->slots[index].data :
                                    (direct->data + (index * direct->piece));
}

/* Copy the next piece between its slot and the buffer */
static void ucp_st_direct_copy_slot(ucp_st_direct_op_t *direct, uint64_t index)
{
    uint32_t number = direct->num_pieces - direct->left;
    size_t length   = ucp_st_direct_piece_length(direct, number);
    uint8_t *near   = direct->buffer + (number * direct->piece);
    void *slot      = ucp_st_direct_slot_data(direct, index);

    if (direct->dir == UCP_ST_DIR_SEND) {
        memcpy(slot, near, length);
    } else {
        memcpy(near, slot, length);
    }
    --direct->left;
    ++direct->pos;
}

static int ucp_st_direct_push(ucp_st_direct_op_t *direct)
{
    uint64_t index = direct->pos & (direct->num_slots - 1);

    if (direct->pos == direct->limit) {
        /* Acquire: the slots have been read */
        direct->limit = direct->num_slots +
                        ucp_st_direct_load(&ucp_st_direct_other(direct)->count);
        if (direct->pos == direct->limit) {
            return 0;
        }
    }
    ucp_st_direct_copy_slot(direct, index);
    ucp_st_direct_store(&direct->pair->slots[index].seq, direct->pos);
    return 1;
}

/* The next piece is in its slot */
static int ucp_st_direct_is_there(const ucp_st_direct_op_t *direct)
{
    uint64_t index = direct->pos & (direct->num_slots - 1);

    return ucp_st_direct_load(&direct->pair->slots[index].seq) > direct->pos;
}

static int ucp_st_direct_take(ucp_st_direct_op_t *direct)
{
    uint64_t index = direct->pos & (direct->num_slots - 1);

    if (!ucp_st_direct_is_there(direct)) {
        return 0;
    }
    ucp_st_direct_copy_slot(direct, index);
    ucp_st_direct_store(&ucp_st_direct_mine(direct)->count, direct->pos);
    return 1;
}

/* The next use is there to be claimed: all of this one are, and both sides have
 * begun that one */
static int ucp_st_direct_claim_next(const ucp_st_direct_op_t *direct,
                                    ucp_st_direct_claim_t *claim)
{
    ++claim->use;
    claim->low  = 0;
    claim->high = direct->num_pieces;
    return (claim->use <= direct->begun) &&
           (claim->use <=
            ucp_st_direct_load(&ucp_st_direct_other(direct)->begun));
}

/* Claim a piece; non-zero if there was one */
static int ucp_st_direct_claim(ucp_st_direct_op_t *direct, uint32_t *index_p)
{
    uint64_t *word_p = &direct->pair->claim;
    uint64_t word    = __atomic_load_n(word_p, __ATOMIC_ACQUIRE);
    ucp_st_direct_claim_t claim;

    do {
        claim = ucp_st_direct_claim_unpack(word);
        if ((word & UCP_ST_DIRECT_POISON) ||
            ((claim.low == claim.high) &&
             !ucp_st_direct_claim_next(direct, &claim))) {
            return 0;
        }
        *index_p = (direct->dir == UCP_ST_DIR_SEND) ? --claim.high :
                                                      claim.low++;
        /* Release: a slow mover's compare-and-swap reads what this wrote */
    } while (!__atomic_compare_exchange_n(word_p, &word,
                                          ucp_st_direct_claim_pack(&claim), 0,
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return 1;
}

static int ucp_st_direct_copy_mapped(ucp_st_direct_op_t *direct)
{
    ucp_st_direct_side_t *mine = ucp_st_direct_mine(direct);
    int is_send                = (direct->dir == UCP_ST_DIR_SEND);
    size_t offset, length;
    uint32_t index;

    if ((direct->far == NULL) || !ucp_st_direct_claim(direct, &index)) {
        return 0;
    }
    offset = index * direct->piece;
    length = ucp_st_direct_piece_length(direct, index);
    memcpy((is_send ? direct->far : direct->buffer) + offset,
           (is_send ? direct->buffer : direct->far) + offset, length);
    /* Only this side writes it, with the lock held */
    ucp_st_direct_store(&mine->count, mine->count + 1);
    return 1;
}

/* The last use begun is complete */
static int ucp_st_direct_is_complete(const ucp_st_direct_op_t *direct)
{
    const ucp_st_direct_side_t *side = direct->pair->side;

    if (direct->proto == UCP_ST_DIRECT_SLOTS) {
        return direct->left == 0;
    }
    return (ucp_st_direct_load(&side[0].count) +
            ucp_st_direct_load(&side[1].count)) ==
           (direct->begun * direct->num_pieces);
}

static int ucp_st_direct_move_piece(ucp_st_direct_op_t *direct)
{
    if (direct->proto == UCP_ST_DIRECT_MAPPED) {
        return ucp_st_direct_copy_mapped(direct);
    }
    if (direct->left == 0) {
        return 0;
    }
    return (direct->dir == UCP_ST_DIR_SEND) ? ucp_st_direct_push(direct) :
                                              ucp_st_direct_take(direct);
}

/* Move some pieces of an operation; how many. The stream's lock is held. */
static unsigned ucp_st_direct_move(ucp_st_direct_op_t *direct, unsigned max)
{
    unsigned count = 0;

    while ((count < max) && !direct->halted &&
           ucp_st_direct_move_piece(direct)) {
        ++count;
    }
    direct->stream->copies += count;
    return count;
}

static void ucp_st_direct_open(ucp_st_direct_op_t *direct)
{
    ucp_st_direct_stream_t *stream = direct->stream;

    direct->is_open = 1;
    ucs_list_add_tail(&stream->open, &direct->list);
    __atomic_store_n(&stream->num_open, stream->num_open + 1, __ATOMIC_RELAXED);
}

static void ucp_st_direct_shut(ucp_st_direct_op_t *direct)
{
    ucp_st_direct_stream_t *stream = direct->stream;

    if (direct->is_open) {
        direct->is_open = 0;
        ucs_list_del(&direct->list);
        __atomic_store_n(&stream->num_open, stream->num_open - 1,
                         __ATOMIC_RELAXED);
    }
}

/* The last use begun is over: its wait may pass */
static void ucp_st_direct_complete(ucp_st_direct_op_t *direct,
                                   ucp_st_direct_mover_t mover)
{
    ucp_st_direct_shut(direct);
    direct->stream->proxied += (mover == UCP_ST_DIRECT_THREAD);
    ucp_st_direct_store(&direct->word, direct->begun);
    if (mover != UCP_ST_DIRECT_STREAM) {
        ucs_gstream_wake(&direct->word);
    }
    if (direct->is_left) {
        ucp_st_direct_dev_wake(direct->op->worker);
    }
}

/* Tell the other side where the operation's stream is */
static void ucp_st_direct_sit(ucp_st_direct_op_t *direct)
{
    ucp_st_direct_store(&ucp_st_direct_mine(direct)->desk,
                        UCS_PTR_BYTE_DIFF(direct->stream->segment,
                                          direct->stream->desk));
}

void ucp_st_direct_start(void *arg)
{
    ucp_st_direct_op_t *direct   = arg;
    ucp_st_direct_stream_t *stream = direct->stream;
    ucp_st_direct_side_t *mine   = ucp_st_direct_mine(direct);
    unsigned max;

    (void)pthread_mutex_lock(&stream->lock);
    if (!direct->released) {
        __atomic_store_n(&direct->begun, direct->begun + 1, __ATOMIC_RELAXED);
        direct->left = direct->num_pieces;
        ucp_st_direct_sit(direct);
        max = (direct->proto == UCP_ST_DIRECT_SLOTS) ? direct->num_slots : 0;
        (void)ucp_st_direct_move(direct, max);
        /* Behind what was moved: who sees this and not that is to kick */
        ucp_st_direct_store(&mine->begun, direct->begun);
        ucp_st_direct_ring(direct);
        if ((max > 0) && (direct->left == 0)) {
            ucp_st_direct_complete(direct, UCP_ST_DIRECT_STREAM);
        } else {
            ucp_st_direct_open(direct);
        }
    }
    (void)pthread_mutex_unlock(&stream->lock);
}

int ucp_st_direct_stream_serve(ucp_st_direct_stream_t *stream,
                              ucp_st_direct_mover_t mover)
{
    unsigned count = 0;
    ucp_st_direct_op_t *direct, *tmp;
    unsigned moved;

    if ((__atomic_load_n(&stream->num_open, __ATOMIC_RELAXED) == 0) ||
        ((mover == UCP_ST_DIRECT_THREAD) &&
         __atomic_load_n(&stream->desk->is_attended, __ATOMIC_RELAXED)) ||
        (pthread_mutex_trylock(&stream->lock) != 0)) {
        return 0;
    }
    ucs_list_for_each_safe(direct, tmp, &stream->open, list) {
        moved  = ucp_st_direct_move(direct, UCP_ST_DIRECT_TURN);
        count += moved;
        if (moved > 0) {
            ucp_st_direct_ring(direct);
        }
        if (ucp_st_direct_is_complete(direct)) {
            ucp_st_direct_complete(direct, mover);
            ++count;
        }
    }
    (void)pthread_mutex_unlock(&stream->lock);
    return count > 0;
}

/* The peer has begun what this side waits for and can go on with it, but nobody
 * attends to it there */
static int ucp_st_direct_needs_kick(const ucp_st_direct_op_t *direct)
{
    const ucp_st_direct_side_t *other = ucp_st_direct_other(direct);
    ucp_st_direct_desk_t *desk        = ucp_st_direct_other_desk(direct);
    uint64_t begun                    = ucp_st_direct_load(&other->begun);

    if (direct->halted || (desk == NULL) ||
        __atomic_load_n(&desk->is_attended, __ATOMIC_ACQUIRE)) {
        return 0;
    }
    if (direct->proto == UCP_ST_DIRECT_MAPPED) {
        return begun >= direct->begun;
    }
    if (direct->dir == UCP_ST_DIR_SEND) {
        return (begun * direct->num_pieces) > ucp_st_direct_load(&other->count);
    }
    /* What comes with `begun` is there already */
    return (begun >= direct->begun) && !ucp_st_direct_is_there(direct);
}

void ucp_st_direct_stream_kick(ucp_st_direct_stream_t *stream)
{
    ucp_st_direct_op_t *direct;

    if (pthread_mutex_trylock(&stream->lock) != 0) {
        return;
    }
    ucs_list_for_each(direct, &stream->open, list) {
        if (ucp_st_direct_needs_kick(direct)) {
            ucp_st_direct_dev_kick(direct->op->peer);
        }
    }
    (void)pthread_mutex_unlock(&stream->lock);
}

/* What peers are to know of the stream. Its own thread, or one that holds its
 * group's lock. The fence comes before the look that is taken next, which sees
 * what a peer moved before it knew that the stream is parked. */
static void ucp_st_direct_stream_tell(ucp_st_direct_stream_t *stream,
                                      int is_attended, int is_parked)
{
    ucp_st_direct_desk_t *desk = stream->desk;

    if ((desk->is_attended == (uint32_t)is_attended) &&
        (desk->is_parked == (uint32_t)is_parked)) {
        return;
    }
    __atomic_store_n(&desk->is_attended, is_attended, __ATOMIC_RELEASE);
    __atomic_store_n(&desk->is_parked, is_parked, __ATOMIC_RELEASE);
    if (is_parked) {
        __sync_synchronize();
    }
}

/* Who moves something calls the stream from when it may sleep until its wait is
 * over */
static void ucp_st_direct_stream_rest(ucp_st_direct_stream_t *stream,
                                      int is_sleepy)
{
    if (stream->is_sleepy != is_sleepy) {
        stream->is_sleepy = is_sleepy;
        __atomic_fetch_add(&stream->segment->sleepers, is_sleepy ? 1 : -1,
                           __ATOMIC_SEQ_CST);
    }
}

/* The stream waits, for whatever word, and may not look again soon */
static void ucp_st_direct_stream_leave(ucp_st_direct_stream_t *stream,
                                       ucp_st_direct_mover_t mover)
{
    ucp_st_direct_stream_rest(stream, 1);
    if (!ucp_st_direct_stream_serve(stream, mover) &&
        (__atomic_load_n(&stream->num_open, __ATOMIC_RELAXED) > 0)) {
        ucp_st_direct_stream_kick(stream);
    }
}

/* Called for the stream while it waits */
static void ucp_st_direct_stream_help(void *arg, ucs_gstream_help_t when)
{
    ucp_st_direct_stream_t *stream = arg;

    switch (when) {
    case UCS_GSTREAM_HELP_POLL:
        ucp_st_direct_stream_tell(stream, 1, 0);
        (void)ucp_st_direct_stream_serve(stream, UCP_ST_DIRECT_STREAM);
        break;
    case UCS_GSTREAM_HELP_LAST:
        ucp_st_direct_stream_tell(stream, 1, 0);
        ucp_st_direct_stream_leave(stream, UCP_ST_DIRECT_STREAM);
        break;
    case UCS_GSTREAM_HELP_PARK:
        /* A move wakes it, as that of any other thread does */
        ucp_st_direct_stream_tell(stream, 0, 1);
        ucp_st_direct_stream_leave(stream, UCP_ST_DIRECT_HOST);
        break;
    case UCS_GSTREAM_HELP_END:
        ucp_st_direct_stream_tell(stream, 0, 0);
        ucp_st_direct_stream_rest(stream, 0);
        (void)ucp_st_direct_stream_serve(stream, UCP_ST_DIRECT_STREAM);
        break;
    }
}

ucs_status_t ucp_st_direct_stream_init(ucp_st_direct_stream_t *stream,
                                       ucp_st_direct_seg_t *seg,
                                       ucs_gstream_h handle)
{
    stream->desk = ucp_st_direct_seg_get_desk(seg);
    if (stream->desk == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }
    (void)pthread_mutex_init(&stream->lock, NULL);
    ucs_list_head_init(&stream->open);
    stream->handle      = handle;
    stream->refs        = 0;
    stream->segment     = seg->map->address;
    stream->helper.func = ucp_st_direct_stream_help;
    stream->helper.arg  = stream;
    stream->helper.bell = &stream->desk->bell;
    return UCS_OK;
}

void ucp_st_direct_stream_cleanup(ucp_st_direct_stream_t *stream,
                                 ucp_st_direct_seg_t *seg)
{
    (void)pthread_mutex_destroy(&stream->lock);
    ucp_st_direct_seg_put_desk(seg, stream->desk);
}

static void ucp_st_direct_lock_op(ucp_st_direct_op_t *direct)
{
    if (direct->stream != NULL) {
        (void)pthread_mutex_lock(&direct->stream->lock);
    }
}

static void ucp_st_direct_unlock_op(ucp_st_direct_op_t *direct)
{
    if (direct->stream != NULL) {
        (void)pthread_mutex_unlock(&direct->stream->lock);
    }
}

/* The first time, as the peer may use the pair for something else once it was
 * told of the end. A receive's slots are this side's own memory: what the peer
 * left there may be taken after it has gone. */
void ucp_st_direct_halt(ucp_st_direct_op_t *direct)
{
    ucp_st_direct_lock_op(direct);
    if ((direct->proto == UCP_ST_DIRECT_MAPPED) && !direct->halted) {
        (void)__atomic_fetch_or(&direct->pair->claim, UCP_ST_DIRECT_POISON,
                                __ATOMIC_ACQ_REL);
    }
    direct->halted |= (direct->dir == UCP_ST_DIR_SEND) ||
                      (direct->proto == UCP_ST_DIRECT_MAPPED);
    direct->is_left = 1;
    ucp_st_direct_unlock_op(direct);
}

/* What the other side has claimed, before it was poisoned, and not copied.
 * Movers of this side hold the lock, as the caller does. */
static int ucp_st_direct_is_claimed(const ucp_st_direct_op_t *direct)
{
    const ucp_st_direct_side_t *side = direct->pair->side;
    ucp_st_direct_claim_t claim;
    uint64_t claimed;

    claim = ucp_st_direct_claim_unpack(__atomic_load_n(&direct->pair->claim,
                                                       __ATOMIC_ACQUIRE));
    if (claim.use == 0) {
        return 0;
    }
    claimed = (claim.use * direct->num_pieces) - (claim.high - claim.low);
    return (ucp_st_direct_load(&side[0].count) +
            ucp_st_direct_load(&side[1].count)) < claimed;
}

int ucp_st_direct_settle(ucp_st_direct_op_t *direct)
{
    int is_moving;

    if (!direct->release || direct->released) {
        return 0;
    }
    ucp_st_direct_lock_op(direct);
    direct->halted = 1;
    is_moving      = direct->is_bound && !direct->op->peer_closed &&
                     (direct->proto == UCP_ST_DIRECT_MAPPED) &&
                     ucp_st_direct_is_claimed(direct) &&
                     !ucp_st_direct_dev_is_dead(direct->op->peer);
    if (!is_moving) {
        direct->released = 1;
        ucp_st_direct_shut(direct);
        ucp_st_direct_store(&direct->word, UCP_ST_RELEASE);
    }
    ucp_st_direct_unlock_op(direct);
    if (!is_moving) {
        ucs_gstream_wake(&direct->word);
    }
    return is_moving;
}

void ucp_st_direct_move_stream(ucp_st_direct_op_t *direct,
                              ucp_st_direct_stream_t *stream)
{
    ucp_st_direct_stream_t *old = direct->stream;
    int is_open;

    (void)pthread_mutex_lock(&old->lock);
    is_open = direct->is_open;
    ucp_st_direct_shut(direct);
    (void)pthread_mutex_unlock(&old->lock);

    (void)pthread_mutex_lock(&stream->lock);
    direct->stream = stream;
    if (!direct->halted) {
        ucp_st_direct_sit(direct); /* else the pair may be another one's */
    }
    if (is_open) {
        ucp_st_direct_open(direct);
    }
    (void)pthread_mutex_unlock(&stream->lock);
}

void ucp_st_direct_stream_count(ucp_st_direct_stream_t *stream,
                               ucp_st_stats_t *stats)
{
    (void)pthread_mutex_lock(&stream->lock);
    stats->copies  += stream->copies;
    stats->proxied += stream->proxied;
    (void)pthread_mutex_unlock(&stream->lock);
}
