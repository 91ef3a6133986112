/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_move.c - the direct lane: starts, and who moves the data. The
 * protocols are described in st_direct.h.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "st_direct.h"
#include "st_direct_claim.h"
#include "st_direct_dev.h"
#include "st_op.h"
#include "st_peer.h"
#include "st_worker.h"

#include <ucs/sys/math.h>

#include <string.h>

/* Of looks for room in slots one in so many is timed: a message takes one look
 * or less */
#define UCP_ST_DIRECT_FAR_SHARE 4

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
    uint64_t offset = ucp_st_direct_load(&direct->other->desk);

    return (offset == 0) ? NULL : UCS_PTR_BYTE_OFFSET(direct->segment, offset);
}

/* One of the other side's streams sleeps: if it is this one's, wake it */
static UCS_F_NOINLINE void
ucp_st_direct_wake_other(const ucp_st_direct_op_t *direct)
{
    ucp_st_direct_desk_t *desk = ucp_st_direct_other_desk(direct);

    if (desk == NULL) {
        return;
    }
    if (__atomic_load_n(&desk->is_parked, __ATOMIC_RELAXED)) {
        ucp_st_direct_dev_kick(direct->op->peer);
    } else {
        ucs_gstream_bell_ring(&desk->bell);
    }
}

/* Something was moved or begun: wake the other side's stream if it sleeps. The
 * caller's fence in between pairs with the counting of who is about to sleep,
 * after which he looks once more: he sees what was stored before, or is seen.
 * The count is looked at first, as it changes seldom. */
static void ucp_st_direct_ring(const ucp_st_direct_op_t *direct)
{
    if (__atomic_load_n(&direct->segment->sleepers, __ATOMIC_RELAXED) > 0) {
        ucp_st_direct_wake_other(direct);
    }
}

static size_t ucp_st_direct_piece_length(const ucp_st_direct_op_t *direct,
                                         uint32_t index)
{
    size_t offset = index * direct->piece;

    return ucs_min(direct->piece, direct->length - offset);
}

/* Copy the next piece between its slot and the buffer */
static UCS_F_ALWAYS_INLINE void
ucp_st_direct_copy_slot(ucp_st_direct_op_t *direct, uint64_t index, int is_send)
{
    uint32_t number = direct->num_pieces - direct->left;
    size_t length   = ucp_st_direct_piece_length(direct, number);
    uint8_t *near   = direct->buffer + (number * direct->piece);
    void *slot      = direct->places + (index * direct->stride);

    if (is_send && (length >= UCP_ST_DIRECT_FILL_MIN)) {
        ucp_st_direct_fill(direct, slot, near, length);
    } else if (is_send) {
        memcpy(slot, near, length);
    } else {
        memcpy(near, slot, length);
    }
    --direct->left;
    ++direct->pos;
}

/* Pieces that the receive's slots have room for, from the first one on.
 * Acquire: those have been read. */
static uint64_t ucp_st_direct_room(ucp_st_direct_op_t *direct)
{
    const volatile uint64_t *count = &direct->other->count;
    uint64_t old                   = direct->limit - direct->num_slots;

    return direct->num_slots +
           ((++direct->looks % UCP_ST_DIRECT_FAR_SHARE == 0) ?
                    ucp_st_direct_far_load(direct, count, old) :
                    ucp_st_direct_load(count));
}

static UCS_F_ALWAYS_INLINE int ucp_st_direct_push(ucp_st_direct_op_t *direct)
{
    uint64_t index = direct->pos & (direct->num_slots - 1);

    if (direct->pos == direct->limit) {
        direct->limit = ucp_st_direct_room(direct);
        if (direct->pos == direct->limit) {
            return 0;
        }
    }
    ucp_st_direct_copy_slot(direct, index, 1);
    ucp_st_direct_store(&direct->pair->slots[index].seq, direct->pos);
    return 1;
}

/* The next piece is in its slot */
static int ucp_st_direct_is_there(const ucp_st_direct_op_t *direct)
{
    uint64_t index = direct->pos & (direct->num_slots - 1);

    return ucp_st_direct_load(&direct->pair->slots[index].seq) > direct->pos;
}

static UCS_F_ALWAYS_INLINE int ucp_st_direct_take(ucp_st_direct_op_t *direct)
{
    uint64_t index = direct->pos & (direct->num_slots - 1);

    if (!ucp_st_direct_is_there(direct)) {
        return 0;
    }
    ucp_st_direct_copy_slot(direct, index, 0);
    ucp_st_direct_store(&direct->mine->count, direct->pos);
    return 1;
}

/* A piece that was claimed cannot be copied */
static void ucp_st_direct_break(ucp_st_direct_op_t *direct,
                                ucs_status_t status)
{
    ucp_st_direct_side_t *mine = direct->mine;

    ucp_st_direct_claim_poison(direct);
    direct->done_count = mine->count + 1; /* nor is this one copied any more */
    ucp_st_direct_store(&mine->count, UCP_ST_DIRECT_BROKEN);
    direct->halted = 1;
    direct->broken = status;
    ucp_st_direct_dev_break(direct->op->worker);
}

static ucs_status_t ucp_st_direct_copy_far(const ucp_st_direct_op_t *direct,
                                           size_t offset, size_t length)
{
    int is_send = (direct->dir == UCP_ST_DIR_SEND);

    if (direct->far == NULL) {
        return ucp_st_direct_attach_copy(direct, offset, length);
    }
    if (is_send && (length >= UCP_ST_DIRECT_FILL_MIN)) {
        ucp_st_direct_fill(direct, direct->far + offset,
                           direct->buffer + offset, length);
    } else {
        memcpy((is_send ? direct->far : direct->buffer) + offset,
               (is_send ? direct->buffer : direct->far) + offset, length);
    }
    return UCS_OK;
}

/* What is claimed here would have to come from the sender's cache, and its
 * lines to go back there for the next use. The sender's stream, which is awake,
 * claims it, or does when it ceases to attend: what this side began before it
 * looked is seen by the look that comes then. */
static int ucp_st_direct_is_pushed(const ucp_st_direct_op_t *direct)
{
    ucp_st_direct_desk_t *desk;

    if ((direct->dir == UCP_ST_DIR_SEND) ||
        !__atomic_load_n(&direct->other->pushes, __ATOMIC_RELAXED) ||
        (__atomic_load_n(&direct->segment->sleepers, __ATOMIC_RELAXED) > 0)) {
        return 0;
    }
    desk = ucp_st_direct_other_desk(direct);
    return (desk != NULL) &&
           __atomic_load_n(&desk->is_attended, __ATOMIC_ACQUIRE);
}

/* How many pieces it was */
static uint32_t ucp_st_direct_copy_mapped(ucp_st_direct_op_t *direct)
{
    ucp_st_direct_side_t *mine = direct->mine;
    ucs_status_t status;
    uint32_t index, count;
    size_t offset;

    if (((direct->far == NULL) && (direct->far_address == 0)) ||
        ucp_st_direct_is_pushed(direct)) {
        return 0;
    }
    count = ucp_st_direct_claim(direct, &index);
    if (count == 0) {
        return 0;
    }
    offset = index * direct->piece;
    status = ucp_st_direct_copy_far(direct, offset,
                                    ucs_min(count * direct->piece,
                                            direct->length - offset));
    if (status != UCS_OK) {
        ucp_st_direct_break(direct, status);
        return 0;
    }
    /* Only this side writes it, with the lock held */
    ucp_st_direct_store(&mine->count, mine->count + count);
    return count;
}

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

static unsigned ucp_st_direct_move_mapped(ucp_st_direct_op_t *direct)
{
    unsigned count = 0;
    uint32_t moved;

    do {
        moved  = ucp_st_direct_copy_mapped(direct);
        count += moved;
    } while ((moved > 0) && (count < UCP_ST_DIRECT_TURN) && !direct->halted);
    return count;
}

/* Part of both loops over operations: most have one piece, for which a call
 * would be a fifth */
static UCS_F_ALWAYS_INLINE unsigned
ucp_st_direct_move_slots(ucp_st_direct_op_t *direct, unsigned max)
{
    unsigned num   = ucs_min(max, direct->left);
    unsigned count = 0;

    if (direct->dir == UCP_ST_DIR_SEND) {
        while ((count < num) && ucp_st_direct_push(direct)) {
            ++count;
        }
    } else {
        while ((count < num) && ucp_st_direct_take(direct)) {
            ++count;
        }
    }
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

/* The last use begun is complete: its wait may pass */
static UCS_F_ALWAYS_INLINE void
ucp_st_direct_complete(ucp_st_direct_op_t *direct, ucp_st_direct_mover_t mover)
{
    ucp_st_direct_shut(direct);
    ucp_st_direct_store(&direct->word, direct->begun);
    if (mover != UCP_ST_DIRECT_STREAM) {
        direct->stream->proxied += (mover == UCP_ST_DIRECT_THREAD);
        ucs_gstream_wake(&direct->word);
    }
    if (direct->is_left) {
        ucp_st_direct_dev_wake(direct->op->worker);
    }
}

/* Some pieces of each; sets `has_mapped_p` if one may be complete because of
 * what the other side has moved */
static unsigned ucp_st_direct_move_open(ucp_st_direct_stream_t *stream,
                                        int *has_mapped_p)
{
    unsigned count = 0;
    ucp_st_direct_op_t *direct;
    unsigned moved;

    *has_mapped_p = 0;
    ucs_list_for_each(direct, &stream->open, list) {
        if (direct->halted) {
            continue; /* the pair may be another one's */
        }
        if (direct->proto == UCP_ST_DIRECT_SLOTS) {
            moved = ucp_st_direct_move_slots(direct, UCP_ST_DIRECT_TURN);
        } else {
            moved         = ucp_st_direct_move_mapped(direct);
            *has_mapped_p = 1;
        }
        direct->has_news = (moved > 0);
        count           += moved;
    }
    stream->copies += count;
    return count;
}

unsigned ucp_st_direct_moveall(ucp_st_direct_stream_t *stream,
                               ucp_st_direct_mover_t mover)
{
    ucp_st_direct_op_t *direct, *tmp;
    int has_mapped;
    unsigned count;

    count = ucp_st_direct_move_open(stream, &has_mapped);
    if (count > 0) {
        __sync_synchronize(); /* see ucp_st_direct_ring() */
    } else if (!has_mapped) {
        return 0;
    }
    ucs_list_for_each_safe(direct, tmp, &stream->open, list) {
        if (direct->halted) {
            continue;
        }
        if (direct->has_news) {
            ucp_st_direct_ring(direct);
        }
        if (ucp_st_direct_is_complete(direct)) {
            ucp_st_direct_complete(direct, mover);
            ++count;
        }
    }
    return count;
}

/* Tell the other side where the operation's stream is */
static void ucp_st_direct_sit(ucp_st_direct_op_t *direct)
{
    ucp_st_direct_store(&direct->mine->desk,
                        direct->stream->desk_offset);
}

/* The use is open before `begun` is told, so that a thread that a peer wakes
 * because of that finds it. What is moved comes before: who sees `begun` and
 * not that has a reason to wake it. */
static void ucp_st_direct_begin(ucp_st_direct_op_t *direct)
{
    int is_done = 0;

    ucp_st_direct_sit(direct);
    if (direct->proto == UCP_ST_DIRECT_SLOTS) {
        direct->stream->copies += ucp_st_direct_move_slots(direct,
                                                           direct->num_slots);
        is_done                 = (direct->left == 0);
    }
    if (!is_done) {
        ucp_st_direct_open(direct);
    }
    ucp_st_direct_store(&direct->mine->begun, direct->begun);
    if (is_done) {
        ucp_st_direct_complete(direct, UCP_ST_DIRECT_STREAM);
    }
}

/* Where nothing is moved any more, the pair may be another one's; non-zero if
 * this one is begun */
static int ucp_st_direct_start_locked(ucp_st_direct_op_t *direct)
{
    if (direct->released) {
        return 0;
    }
    __atomic_store_n(&direct->begun, direct->begun + 1, __ATOMIC_RELAXED);
    direct->left = direct->num_pieces;
    if (direct->halted) {
        return 0;
    }
    ucp_st_direct_begin(direct);
    return 1;
}

void ucp_st_direct_startall(void *arg)
{
    ucp_st_direct_op_t **list      = arg;
    ucp_st_direct_stream_t *stream = list[0]->stream;
    size_t i;

    (void)pthread_mutex_lock(&stream->lock);
    for (i = 0; list[i] != NULL; ++i) {
        list[i]->has_news = ucp_st_direct_start_locked(list[i]);
    }
    __sync_synchronize(); /* see ucp_st_direct_ring() */
    for (i = 0; list[i] != NULL; ++i) {
        if (list[i]->has_news) {
            ucp_st_direct_ring(list[i]);
        }
    }
    (void)pthread_mutex_unlock(&stream->lock);
}

void ucp_st_direct_start(void *arg)
{
    ucp_st_direct_op_t *list[] = {arg, NULL};

    ucp_st_direct_startall(list);
}

int ucp_st_direct_needs_kick(const ucp_st_direct_op_t *direct)
{
    const ucp_st_direct_side_t *other = direct->other;
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
        ucp_st_direct_claim_poison(direct);
    }
    /* The last use that the peer took part in may be complete without this
     * side's having looked */
    if (direct->is_open && ucp_st_direct_is_complete(direct)) {
        ucp_st_direct_complete(direct, UCP_ST_DIRECT_HOST);
    }
    direct->halted |= (direct->dir == UCP_ST_DIR_SEND) ||
                      (direct->proto == UCP_ST_DIRECT_MAPPED);
    direct->is_left = 1;
    ucp_st_direct_unlock_op(direct);
}

/* What the other side has claimed, before it was poisoned, and not copied; a
 * side that is broken copies nothing. Movers of this side hold the lock, as the
 * caller does. */
static int ucp_st_direct_is_claimed(const ucp_st_direct_op_t *direct)
{
    uint64_t other = ucp_st_direct_load(&direct->other->count);
    uint64_t own   = ucp_st_direct_load(&direct->mine->count);

    if (own == UCP_ST_DIRECT_BROKEN) {
        own = direct->done_count;
    }
    return (own + other) < ucp_st_direct_claim_count(direct);
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
                     !ucp_st_process_is_dead(&direct->op->peer->process);
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
