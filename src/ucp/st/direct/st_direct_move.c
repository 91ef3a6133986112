/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_move.c - the direct lane: starts, moves, and ends of uses; which
 * side copies which pieces of a mapped message.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "direct/st_direct.h"
#include "core/st_log.h"
#include "core/st_op.h"
#include "core/st_worker.h"

#include <ucs/sys/math.h>

#include <string.h>

/* Pieces of a use that are copied before the mover goes on to the next one; a
 * device copies one at a time */
#define UCP_ST_DIRECT_MOVE_MAX 4

/* A claim: the use, whether nothing may be claimed any more, and the range of
 * the pieces that are left of the use */
#define UCP_ST_DIRECT_CLAIM_BITS 12
#define UCP_ST_DIRECT_POISON     (1ull << (2 * UCP_ST_DIRECT_CLAIM_BITS))
#define UCP_ST_DIRECT_USE_SHIFT  ((2 * UCP_ST_DIRECT_CLAIM_BITS) + 1)
#define UCP_ST_DIRECT_USE_MASK   UCS_MASK(64 - UCP_ST_DIRECT_USE_SHIFT)

/* How long waits that are to pass stay for an own copy, seconds, at most */
#define UCP_ST_DIRECT_COPY_TIME 2.0

/* What is claimed at once, bytes, if it is several pieces: the lock is held
 * meanwhile */
#define UCP_ST_DIRECT_CLAIM_MAX (512ul << 10)

_Static_assert(UCP_ST_DIRECT_MAX_PIECES < UCS_BIT(UCP_ST_DIRECT_CLAIM_BITS),
               "pieces fit into a claim");

/** What a claim says. */
typedef struct ucp_st_direct_claim {
    uint64_t use;
    uint32_t low;  /* first one left */
    uint32_t high; /* behind the last one left */
} ucp_st_direct_claim_t;

/* Zero if no claim is like that. The use is `base` or the one behind it, of
 * which the word has the low bits: uses are begun one after the other. */
static int ucp_st_direct_claim_unpack(const ucp_st_direct_op_t *direct,
                                      uint64_t word, uint64_t base,
                                      ucp_st_direct_claim_t *claim)
{
    uint64_t ahead = ((word >> UCP_ST_DIRECT_USE_SHIFT) - base) &
                     UCP_ST_DIRECT_USE_MASK;

    claim->use  = base + ahead;
    claim->low  = (word >> UCP_ST_DIRECT_CLAIM_BITS) &
                  UCS_MASK(UCP_ST_DIRECT_CLAIM_BITS);
    claim->high = word & UCS_MASK(UCP_ST_DIRECT_CLAIM_BITS);
    return (ahead <= 1) && (claim->low <= claim->high) &&
           (claim->high <= direct->num_pieces);
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

/* The wait record of the other side's stream; NULL before its first start */
static ucp_st_direct_record_t *
ucp_st_direct_other_record(const ucp_st_direct_op_t *direct)
{
    return ucp_st_direct_find_record(direct->segment, direct->records,
                                     ucp_st_direct_load(
                                             &direct->other->record));
}

/* Something was moved or begun: wake the other side's stream if it sleeps. The
 * caller's fence in between pairs with that of a stream which counts itself
 * before it sleeps and looks once more: it sees what was stored before, or its
 * count is seen. The count is looked at first, as it changes seldom. */
static void ucp_st_direct_wake_other(const ucp_st_direct_op_t *direct)
{
    ucp_st_direct_record_t *record;

    if (__atomic_load_n(&direct->segment->sleepers, __ATOMIC_RELAXED) == 0) {
        return;
    }
    record = ucp_st_direct_other_record(direct);
    if (record == NULL) {
        return;
    }
    if (__atomic_load_n(&record->is_parked, __ATOMIC_RELAXED)) {
        ucp_st_direct_notify(direct);
    } else {
        ucs_gstream_notify(&record->notify);
    }
}

/* There is room for the next piece */
static int ucp_st_direct_has_room(ucp_st_direct_op_t *direct)
{
    if (direct->pos == direct->limit) {
        /* Acquire: those that were counted have been read */
        direct->limit = UCP_ST_DIRECT_NUM_SLOTS +
                        ucp_st_direct_load(&direct->other->count);
    }
    return direct->pos != direct->limit;
}

/* The next piece is in its slot */
static int ucp_st_direct_is_there(const ucp_st_direct_op_t *direct)
{
    uint64_t index = direct->pos & (UCP_ST_DIRECT_NUM_SLOTS - 1);

    return ucp_st_direct_load(&direct->pair->slots[index].seq) > direct->pos;
}

/* Copy the next piece between its slot and the buffer, if it can be */
static int ucp_st_direct_move_slot(ucp_st_direct_op_t *direct)
{
    size_t offset   = (direct->num_pieces - direct->left) * direct->piece;
    size_t length   = ucs_min(direct->piece, direct->length - offset);
    uint64_t index  = direct->pos & (UCP_ST_DIRECT_NUM_SLOTS - 1);
    uint8_t *buffer = direct->buffer + offset;
    void *place     = direct->places + (index * direct->stride);

    if (direct->dir == UCP_ST_DIR_SEND) {
        if (!ucp_st_direct_has_room(direct)) {
            return 0;
        }
        memcpy(place, buffer, length); /* it is read at once */
        ucp_st_direct_store(&direct->pair->slots[index].seq, direct->pos + 1);
    } else {
        if (!ucp_st_direct_is_there(direct)) {
            return 0;
        }
        ucp_st_direct_copy(direct, buffer, place, length);
        ucp_st_direct_store(&direct->mine->count, direct->pos + 1);
    }
    --direct->left;
    ++direct->pos;
    return 1;
}

static unsigned ucp_st_direct_move_slots(ucp_st_direct_op_t *direct,
                                         unsigned max)
{
    unsigned num   = ucs_min(max, direct->left);
    unsigned count = 0;

    while ((count < num) && ucp_st_direct_move_slot(direct)) {
        ++count;
    }
    return count;
}

/* Nothing may be claimed any more, by either side */
static void ucp_st_direct_claim_poison(const ucp_st_direct_op_t *direct)
{
    (void)__atomic_fetch_or(&direct->pair->claim, UCP_ST_DIRECT_POISON,
                            __ATOMIC_ACQ_REL);
}

/* What was claimed last cannot be copied: the service thread fails the
 * operation */
static void ucp_st_direct_break(ucp_st_direct_op_t *direct, ucs_status_t status)
{
    ucp_st_direct_side_t *mine = direct->mine;

    if (direct->proto == UCP_ST_DIRECT_PAIRED) {
        ucp_st_direct_pair_halt(direct);
    } else {
        ucp_st_direct_claim_poison(direct);
        direct->done_count = mine->count + 1; /* nor is this one copied */
        ucp_st_direct_store(&mine->count, UCP_ST_DIRECT_BROKEN);
    }
    direct->halted = 1;
    direct->broken = status;
    __atomic_store_n(&ucp_st_direct_dev(direct->op->worker)->has_broken, 1,
                     __ATOMIC_RELEASE);
    ucp_st_direct_dev_wake(direct->op->worker);
}

/* The next use can be claimed: all pieces of this one are, and both sides have
 * begun the next one */
static int ucp_st_direct_claim_next(const ucp_st_direct_op_t *direct,
                                    ucp_st_direct_claim_t *claim)
{
    ++claim->use;
    claim->low  = 0;
    claim->high = direct->num_pieces;
    if (claim->use > direct->begun) {
        return 0;
    }
    return claim->use <= ucp_st_direct_load(&direct->other->begun);
}

/* Claim pieces that follow each other, from `index_p` on. How many; zero if
 * there is none now. */
static uint32_t ucp_st_direct_claim(ucp_st_direct_op_t *direct,
                                    uint32_t *index_p)
{
    uint64_t *word_p = &direct->pair->claim;
    uint64_t word    = __atomic_load_n(word_p, __ATOMIC_ACQUIRE);
    uint32_t most    = UCP_ST_DIRECT_CLAIM_MAX / direct->piece;
    ucp_st_direct_claim_t claim;
    uint64_t next;
    uint32_t half, count;

    do {
        if (word & UCP_ST_DIRECT_POISON) {
            return 0;
        }
        if (!ucp_st_direct_claim_unpack(direct, word, direct->begun - 1,
                                        &claim)) {
            ucs_error("operation %p: peer 0x%lx claims pieces by 0x%lx in use "
                      "%lu", direct->op, direct->op->peer->uuid, word,
                      direct->begun);
            ucp_st_direct_break(direct, UCS_ERR_IO_ERROR);
            return 0;
        }
        if ((claim.low == claim.high) &&
            !ucp_st_direct_claim_next(direct, &claim)) {
            return 0;
        }
        /* Half of what is left, so that both sides end at about the same time,
         * and each has the same part of the buffers as for the last use, whose
         * lines are in its cache. What the kernel or a device copies may fail:
         * one. */
        half  = (claim.high - claim.low) / 2;
        count = ((direct->other_buffer == NULL) || direct->is_device) ?
                1 : ucs_max(1, ucs_min(half, most));
        if (direct->dir == UCP_ST_DIR_SEND) {
            claim.high -= count;
            *index_p    = claim.high;
        } else {
            *index_p    = claim.low;
            claim.low  += count;
        }
        next = (claim.use << UCP_ST_DIRECT_USE_SHIFT) |
               ((uint64_t)claim.low << UCP_ST_DIRECT_CLAIM_BITS) | claim.high;
        /* Release: a slow mover's compare-and-swap reads what this wrote */
    } while (!__atomic_compare_exchange_n(word_p, &word, next, 0,
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return count;
}

/* Pieces were copied. Only this side writes its count, with the lock held. */
static void ucp_st_direct_count(ucp_st_direct_op_t *direct, uint32_t count)
{
    ucp_st_direct_side_t *mine = direct->mine;

    ucp_st_direct_store(&mine->count, mine->count + count);
}

/* Claim pieces, from the byte `*offset_p` on; how many, and bytes */
static uint32_t ucp_st_direct_claim_bytes(ucp_st_direct_op_t *direct,
                                          size_t *offset_p, size_t *length_p)
{
    uint32_t index, count;

    if ((direct->other_buffer == NULL) && (direct->other_address == 0)) {
        return 0; /* the other side copies all */
    }
    count = ucp_st_direct_claim(direct, &index);
    if (count > 0) {
        *offset_p = index * direct->piece;
        *length_p = ucs_min(count * direct->piece, direct->length - *offset_p);
    }
    return count;
}

/* Claim pieces and copy them to their place; how many */
static uint32_t ucp_st_direct_copy_mapped(ucp_st_direct_op_t *direct)
{
    ucs_status_t status = UCS_OK;
    size_t offset, length;
    uint32_t count;

    count = ucp_st_direct_claim_bytes(direct, &offset, &length);
    if (count == 0) {
        return 0;
    }
    if (direct->other_buffer == NULL) {
        status = ucp_st_direct_attach_copy(direct, offset, length);
    } else if (direct->dir == UCP_ST_DIR_SEND) {
        ucp_st_direct_copy(direct, direct->other_buffer + offset,
                           direct->buffer + offset, length);
    } else {
        ucp_st_direct_copy(direct, direct->buffer + offset,
                           direct->other_buffer + offset, length);
    }
    if (status != UCS_OK) {
        ucp_st_direct_break(direct, status);
        return 0;
    }
    ucp_st_direct_count(direct, count);
    return count;
}

/* What a device's copy has come to; non-zero if its piece was counted */
static int ucp_st_direct_copy_set(ucp_st_direct_op_t *direct,
                                  ucs_status_t status)
{
    direct->is_copying = (status == UCS_INPROGRESS);
    if (status == UCS_OK) {
        ucp_st_direct_count(direct, 1);
    } else if (status != UCS_INPROGRESS) {
        ucp_st_direct_break(direct, status);
    }
    return status == UCS_OK;
}

/* Look for the end of a device's copy, if one is under way */
static int ucp_st_direct_copy_look(ucp_st_direct_op_t *direct)
{
    return direct->is_copying &&
           ucp_st_direct_copy_set(direct, ucs_gstream_copy_look(&direct->copy));
}

/* Claim a piece and have a device copy it; non-zero if it begins */
static int ucp_st_direct_copy_begin(ucp_st_direct_op_t *direct)
{
    size_t offset, length;

    if (direct->is_copying || direct->halted ||
        (ucp_st_direct_claim_bytes(direct, &offset, &length) == 0)) {
        return 0;
    }
    (void)ucp_st_direct_copy_set(direct,
                                 ucp_st_direct_gpu_begin(direct, offset,
                                                         length));
    return direct->is_copying;
}

static int ucp_st_direct_is_complete(const ucp_st_direct_op_t *direct)
{
    const ucp_st_direct_side_t *side = direct->pair->side;

    if (direct->proto == UCP_ST_DIRECT_SLOTS) {
        return direct->left == 0;
    }
    if (direct->proto == UCP_ST_DIRECT_PAIRED) {
        return ucp_st_direct_load(direct->word) >= direct->begun;
    }
    return (ucp_st_direct_load(&side[0].count) +
            ucp_st_direct_load(&side[1].count)) ==
           (direct->begun * direct->num_pieces);
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
static void ucp_st_direct_complete(ucp_st_direct_op_t *direct,
                                   ucp_st_direct_mover_t mover)
{
    ucp_st_direct_shut(direct);
    if (direct->proto != UCP_ST_DIRECT_PAIRED) { /* else a kernel did */
        ucp_st_direct_store(direct->word, direct->begun);
    }
    if (mover != UCP_ST_DIRECT_STREAM) {
        ucs_gstream_wake(direct->word);
    }
    direct->stream->proxied += direct->is_proxied;
    direct->is_proxied       = 0;
    if (direct->is_left) {
        ucp_st_direct_dev_wake(direct->op->worker);
    }
}

/** What a look at a stream's open uses has come to. */
typedef struct ucp_st_direct_moved {
    unsigned pieces;
    unsigned begun;      /* copies by devices */
    int      has_mapped; /* a use may be complete because of what the other side
                            has moved */
} ucp_st_direct_moved_t;

/* Move some pieces of a use; how many */
static unsigned ucp_st_direct_move_use(ucp_st_direct_op_t *direct,
                                       ucp_st_direct_moved_t *all)
{
    unsigned moved = 0;
    ucs_status_t status;
    unsigned copied;

    if (direct->proto == UCP_ST_DIRECT_SLOTS) {
        return ucp_st_direct_move_slots(direct, UCP_ST_DIRECT_MOVE_MAX);
    }
    all->has_mapped = 1;
    if (direct->proto == UCP_ST_DIRECT_PAIRED) {
        status = ucp_st_direct_pair_look(direct);
        if (status != UCS_OK) {
            ucp_st_direct_break(direct, status);
        }
        return 0;
    }
    if (direct->is_device) {
        moved       = ucp_st_direct_copy_look(direct);
        all->begun += ucp_st_direct_copy_begin(direct);
        return moved;
    }
    do {
        copied = ucp_st_direct_copy_mapped(direct);
        moved += copied;
    } while ((copied > 0) && (moved < UCP_ST_DIRECT_MOVE_MAX));
    return moved;
}

static ucp_st_direct_moved_t
ucp_st_direct_move_open(ucp_st_direct_stream_t *stream,
                        ucp_st_direct_mover_t mover)
{
    ucp_st_direct_moved_t all = {.pieces = 0};
    int is_copying            = 0;
    ucp_st_direct_op_t *direct;
    unsigned moved;

    ucs_list_for_each(direct, &stream->open, list) {
        if (direct->halted) {
            continue; /* the pair may be another one's */
        }
        moved               = ucp_st_direct_move_use(direct, &all);
        direct->has_news    = (moved > 0);
        direct->is_proxied |= (mover == UCP_ST_DIRECT_PROXY) && (moved > 0);
        is_copying         |= direct->is_copying ||
                              (direct->proto == UCP_ST_DIRECT_PAIRED);
        all.pieces         += moved;
    }
    __atomic_store_n(&stream->is_copying, is_copying, __ATOMIC_RELAXED);
    stream->copies += all.pieces;
    return all;
}

unsigned ucp_st_direct_moveall(ucp_st_direct_stream_t *stream,
                               ucp_st_direct_mover_t mover)
{
    ucp_st_direct_moved_t all = ucp_st_direct_move_open(stream, mover);
    unsigned count            = all.pieces + all.begun;
    ucp_st_direct_op_t *direct, *tmp;

    if (all.pieces > 0) {
        __sync_synchronize(); /* see ucp_st_direct_wake_other() */
    } else if (!all.has_mapped) {
        return 0;
    }
    ucs_list_for_each_safe(direct, tmp, &stream->open, list) {
        if (direct->halted) {
            continue;
        }
        if (direct->has_news) {
            ucp_st_direct_wake_other(direct);
        }
        if (ucp_st_direct_is_complete(direct)) {
            ucp_st_direct_complete(direct, mover);
            ++count;
        }
    }
    return count;
}

/* A kernel starts the use. Threads look for its end, which may not have seen
 * that of the last one, whose wait has passed without them. */
static void ucp_st_direct_begin_pair(ucp_st_direct_op_t *direct)
{
    ucp_st_direct_stream_t *stream = direct->stream;
    ucs_status_t status;

    /* The stream's kernels may have begun uses; all are over */
    __atomic_store_n(&direct->begun, ucp_st_direct_pair_begun(direct, 0) + 1,
                     __ATOMIC_RELAXED);
    ucp_st_direct_shut(direct);
    ucp_st_direct_open(direct);
    ++stream->proxied;
    __atomic_store_n(&stream->is_copying, 1, __ATOMIC_RELAXED);
    status = ucp_st_direct_pair_start(direct);
    if (status != UCS_OK) {
        ucp_st_direct_break(direct, status);
    }
    ucp_st_direct_stream_wake(stream);
}

/* The use is open before `begun` is stored, so that a thread which the peer
 * wakes because of that finds it. The move comes before, too: a peer that sees
 * `begun`, and nothing moved, has a reason to wake this side. */
static void ucp_st_direct_begin(ucp_st_direct_op_t *direct)
{
    ucp_st_direct_stream_t *stream = direct->stream;
    int is_done                    = 0;

    direct->is_proxied = stream->is_served;
    ucp_st_direct_store(&direct->mine->record, direct->stream->record_offset);
    if (direct->proto == UCP_ST_DIRECT_SLOTS) {
        stream->copies +=
                ucp_st_direct_move_slots(direct, UCP_ST_DIRECT_NUM_SLOTS);
        is_done         = (direct->left == 0);
    }
    if (!is_done) {
        ucp_st_direct_open(direct);
    }
    ucp_st_direct_store(&direct->mine->begun, direct->begun);
    if (is_done) {
        ucp_st_direct_complete(direct, stream->is_served ?
                                               UCP_ST_DIRECT_PROXY :
                                               UCP_ST_DIRECT_STREAM);
    }
}

void ucp_st_direct_startall(void *arg)
{
    ucp_st_direct_op_t **list      = arg;
    ucp_st_direct_stream_t *stream = list[0]->stream;
    ucp_st_direct_op_t *direct;
    size_t i;

    (void)pthread_mutex_lock(&stream->lock);
    for (i = 0; list[i] != NULL; ++i) {
        direct           = list[i];
        direct->has_news = 0;
        if (direct->released) {
            continue;
        }
        __atomic_store_n(&direct->begun, direct->begun + 1, __ATOMIC_RELAXED);
        direct->left = direct->num_pieces;
        if (direct->halted) {
            continue; /* the pair may be another one's */
        }
        if (direct->proto == UCP_ST_DIRECT_PAIRED) {
            ucp_st_direct_begin_pair(direct);
        } else {
            ucp_st_direct_begin(direct);
            direct->has_news = 1;
        }
    }
    __sync_synchronize(); /* see ucp_st_direct_wake_other() */
    for (i = 0; list[i] != NULL; ++i) {
        if (list[i]->has_news) {
            ucp_st_direct_wake_other(list[i]);
        }
    }
    (void)pthread_mutex_unlock(&stream->lock);
    if (stream->is_served) { /* it wakes peers that have to go on */
        ucp_st_direct_stream_wake(stream);
    }
}

int ucp_st_direct_needs_notify(const ucp_st_direct_op_t *direct)
{
    const ucp_st_direct_side_t *other = direct->other;
    ucp_st_direct_record_t *record    = ucp_st_direct_other_record(direct);
    uint64_t begun                    = ucp_st_direct_load(&other->begun);

    if (direct->halted || (direct->proto == UCP_ST_DIRECT_PAIRED) ||
        (record == NULL) ||
        __atomic_load_n(&record->is_attended, __ATOMIC_ACQUIRE)) {
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

/* Poisons the first time only: once the peer was told of the end it may use the
 * pair for something else. A receive's slots are this side's own memory: what
 * the peer left there may be taken after it has gone. */
void ucp_st_direct_halt(ucp_st_direct_op_t *direct)
{
    (void)pthread_mutex_lock(&direct->stream->lock);
    if ((direct->proto == UCP_ST_DIRECT_MAPPED) && !direct->halted) {
        ucp_st_direct_claim_poison(direct);
    } else if ((direct->proto == UCP_ST_DIRECT_PAIRED) && !direct->halted) {
        ucp_st_direct_pair_halt(direct);
        direct->op->is_opening = 0; /* there is nothing to open it for */
    }
    /* The last use that the peer took part in may be complete without this
     * side's having looked */
    if (direct->is_open && ucp_st_direct_is_complete(direct)) {
        ucp_st_direct_complete(direct, UCP_ST_DIRECT_PROXY);
    }
    direct->halted |= (direct->dir == UCP_ST_DIR_SEND) ||
                      (direct->proto != UCP_ST_DIRECT_SLOTS);
    direct->is_left = 1;
    (void)pthread_mutex_unlock(&direct->stream->lock);
}

/* The other side has claimed pieces, before the word was poisoned, and not
 * copied all of them; a side that is broken copies nothing. Movers of this side
 * hold the lock, as the caller does, but for a device's copy. Uses before the
 * last one claimed are complete, and counted. */
static int ucp_st_direct_is_claimed(const ucp_st_direct_op_t *direct)
{
    uint64_t other = ucp_st_direct_load(&direct->other->count);
    uint64_t own   = ucp_st_direct_load(&direct->mine->count);
    uint64_t word  = __atomic_load_n(&direct->pair->claim, __ATOMIC_ACQUIRE);
    ucp_st_direct_claim_t claim;

    if (own == UCP_ST_DIRECT_BROKEN) {
        own = direct->done_count;
    }
    own += direct->is_copying;
    if (!ucp_st_direct_claim_unpack(direct, word,
                                    (own + other) / direct->num_pieces,
                                    &claim)) {
        return 0; /* the word was overwritten: it tells nothing */
    }
    /* All pieces of the uses so far, but those that are left of the last one */
    return (claim.use > 0) &&
           ((own + other) < ((claim.use * direct->num_pieces) -
                             (claim.high - claim.low)));
}

/* Movers leave out what is halted: the end of its copy is looked for here. An
 * own copy may lie behind the wait that is to pass, in a hardware queue that
 * two streams share. So its end is awaited for a time only. Then the wait
 * passes, and the buffer is the operation's until the copy is over. */
static int ucp_st_direct_is_moving(ucp_st_direct_op_t *direct)
{
    const ucp_st_op_t *op = direct->op;
    double limit          = ucs_min(UCP_ST_DIRECT_COPY_TIME,
                                    op->worker->config.err_timeout / 4);

    if (ucp_st_direct_is_copying(direct) &&
        ((ucp_st_worker_now() - direct->release_time) < limit)) {
        return 1;
    }
    return direct->is_bound && !op->peer_closed &&
           ((direct->proto == UCP_ST_DIRECT_PAIRED) ?
            ucp_st_direct_pair_is_moving(direct, 1) :
            ((direct->proto == UCP_ST_DIRECT_MAPPED) &&
             ucp_st_direct_is_claimed(direct))) &&
           !ucp_st_process_is_dead(&op->peer->process);
}

int ucp_st_direct_is_copying(const ucp_st_direct_op_t *direct)
{
    return direct->is_copying || ((direct->proto == UCP_ST_DIRECT_PAIRED) &&
                                  ucp_st_direct_pair_is_moving(direct, 0));
}

/* A kernel that ended later than was waited for has stored to the word */
static void ucp_st_direct_release_again(ucp_st_direct_op_t *direct)
{
    if (direct->released && (ucp_st_direct_load(direct->word) <
                             UCP_ST_RELEASE)) {
        ucp_st_direct_store(direct->word, UCP_ST_RELEASE);
    }
}

int ucp_st_direct_settle(ucp_st_direct_op_t *direct)
{
    int is_released = 0;
    int is_moving   = 0;

    (void)pthread_mutex_lock(&direct->stream->lock);
    if (direct->halted && (direct->proto == UCP_ST_DIRECT_PAIRED)) {
        ucp_st_direct_pair_check_lost(direct);
    }
    if (direct->release && !direct->released) {
        direct->halted = 1;
        (void)ucp_st_direct_copy_look(direct);
        is_moving   = ucp_st_direct_is_moving(direct);
        is_released = !is_moving;
        if (is_released) {
            direct->released = 1;
            ucp_st_direct_shut(direct);
            ucp_st_direct_store(direct->word, UCP_ST_RELEASE);
        }
    } else if (direct->halted) {
        (void)ucp_st_direct_copy_look(direct);
        ucp_st_direct_release_again(direct);
    }
    is_moving |= direct->halted && ucp_st_direct_is_copying(direct);
    (void)pthread_mutex_unlock(&direct->stream->lock);
    if (is_released) {
        ucs_gstream_wake(direct->word);
    }
    return is_moving;
}

void ucp_st_direct_end_use(ucp_st_direct_op_t *direct)
{
    (void)pthread_mutex_lock(&direct->stream->lock);
    ucp_st_direct_shut(direct);
    (void)pthread_mutex_unlock(&direct->stream->lock);
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
    if (direct->is_copying ||
        (is_open && (direct->proto == UCP_ST_DIRECT_PAIRED))) {
        __atomic_store_n(&stream->is_copying, 1, __ATOMIC_RELAXED);
        ucp_st_direct_dev_wake(stream->worker);
    }
    if (!direct->halted) { /* else the pair may be another one's */
        ucp_st_direct_store(&direct->mine->record, stream->record_offset);
    }
    if (is_open) {
        ucp_st_direct_open(direct);
    }
    (void)pthread_mutex_unlock(&stream->lock);
}
