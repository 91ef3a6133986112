/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_ring.c - queue of commands of a host stream. */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_ring.h"
#include "gstream_pace.h"

#include <ucs/sys/math.h>

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Slots of a chunk; 8 KiB. A power of 2. */
#define GSTREAM_CHUNK_SIZE 256

/* How often a producer tries the lock before it yields: the holder may have
 * lost its core. It never sleeps as in ucs_backoff(): the lock is held for some
 * instructions only, and streams wait for what it protects. */
#define GSTREAM_RING_LOCK_TRIES 100


/* Part of the queue. In the chain, next and cmds are written by producers under
 * the lock before the tail that covers them, and read by the consumer after it
 * has read that tail. */
struct gstream_chunk {
    gstream_chunk_t   *next;
    ucs_gstream_cmd_t cmds[GSTREAM_CHUNK_SIZE]
            UCS_V_ALIGNED(_Alignof(max_align_t));
};

_Static_assert((sizeof(ucs_gstream_cmd_t) % _Alignof(max_align_t)) == 0,
               "arguments, which lie in slots, have malloc()'s alignment");
_Static_assert((UCS_GSTREAM_ARGS_MAX % sizeof(ucs_gstream_cmd_t)) == 0 &&
               ((UCS_GSTREAM_ARGS_MAX / sizeof(ucs_gstream_cmd_t)) <
                GSTREAM_CHUNK_SIZE),
               "a kernel with its arguments fits into a chunk");
_Static_assert((UCS_GSTREAM_WORDS_MAX * sizeof(ucs_gstream_word_t)) <=
               UCS_GSTREAM_ARGS_MAX, "so does a wait with its words");


static gstream_chunk_t *gstream_chunk_alloc(void)
{
    gstream_chunk_t *chunk = malloc(sizeof(*chunk));

    if (chunk != NULL) {
        chunk->next = NULL;
    }
    return chunk;
}

static void gstream_chunk_free_chain(gstream_chunk_t *chunk)
{
    gstream_chunk_t *next;

    for (; chunk != NULL; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
}

ucs_status_t gstream_ring_init(gstream_ring_t *ring)
{
    gstream_chunk_t *chunk;

    chunk = gstream_chunk_alloc();
    if (chunk == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    atomic_init(&ring->in.lock, 0);
    ring->in.tail_chunk  = chunk;
    ring->in.last_chunk  = chunk;
    ring->in.spare       = NULL;
    ring->in.limit       = GSTREAM_CHUNK_SIZE;
    ring->out.head_chunk = chunk;
    ring->out.head       = 0;
    ring->out.end        = GSTREAM_CHUNK_SIZE;
    atomic_init(&ring->mid.tail, 0);
    atomic_init(&ring->mid.returned, NULL);
    return UCS_OK;
}

void gstream_ring_cleanup(gstream_ring_t *ring)
{
    gstream_chunk_free_chain(ring->out.head_chunk);
    gstream_chunk_free_chain(ring->in.spare);
    gstream_chunk_free_chain(atomic_load(&ring->mid.returned));
}

static void gstream_ring_lock(gstream_ring_t *ring)
{
    unsigned tries = 0;

    while (atomic_exchange_explicit(&ring->in.lock, 1, memory_order_acquire)) {
        if (++tries < GSTREAM_RING_LOCK_TRIES) {
            gstream_pace_pause();
        } else {
            sched_yield();
        }
    }
}

/* A chunk that was used before, or a new one; NULL if there is no memory. */
static gstream_chunk_t *gstream_ring_get_chunk(gstream_ring_t *ring)
{
    gstream_chunk_t *chunk;

    if (ring->in.spare == NULL) {
        /* Pairs with the release in gstream_ring_return_chunk() */
        ring->in.spare = atomic_exchange_explicit(&ring->mid.returned, NULL,
                                                  memory_order_acquire);
    }

    chunk = ring->in.spare;
    if (chunk == NULL) {
        return gstream_chunk_alloc();
    }

    ring->in.spare = chunk->next;
    chunk->next    = NULL;
    return chunk;
}

/* Makes the chain long enough for 'end'. What was added before memory ran out
 * stays there for later. */
static ucs_status_t gstream_ring_reserve(gstream_ring_t *ring, uint64_t end)
{
    gstream_chunk_t *chunk;

    while (ring->in.limit < end) {
        chunk = gstream_ring_get_chunk(ring);
        if (chunk == NULL) {
            return UCS_ERR_NO_MEMORY;
        }

        ring->in.last_chunk->next = chunk;
        ring->in.last_chunk       = chunk;
        ring->in.limit           += GSTREAM_CHUNK_SIZE;
    }

    return UCS_OK;
}

/* Slots of commands that lie in one chunk. */
static UCS_F_ALWAYS_INLINE size_t
gstream_ring_num_slots(const ucs_gstream_cmd_t *cmds, size_t count)
{
    size_t num_slots = 0;
    size_t i;

    for (i = 0; i < count; ++i) {
        num_slots += gstream_ring_slots(&cmds[i]);
    }
    return num_slots;
}

/* The slot at the tail; goes on to the chunk that it begins. */
static ucs_gstream_cmd_t *gstream_ring_enter(gstream_ring_t *ring,
                                             uint64_t tail)
{
    size_t offset = tail % GSTREAM_CHUNK_SIZE;

    if ((offset == 0) && (tail > 0)) {
        ring->in.tail_chunk = ring->in.tail_chunk->next;
    }
    return &ring->in.tail_chunk->cmds[offset];
}

/* Copies what the command in a slot brings along to the slots behind. */
static void gstream_ring_fill_extra(ucs_gstream_cmd_t *slot)
{
    size_t extra = gstream_ring_extra(slot);

    if (slot->type == UCS_GSTREAM_CMD_WAITALL) {
        slot->u.waitall.words = memcpy(slot + 1, slot->u.waitall.words, extra);
    } else if (slot->type == UCS_GSTREAM_CMD_COPY2D) {
        slot->u.copy2d.rect = memcpy(slot + 1, slot->u.copy2d.rect, extra);
    } else {
        slot->u.launch.args = (extra == 0) ? NULL :
                                             memcpy(slot + 1,
                                                    slot->u.launch.args, extra);
    }
}

/* Fills in commands that lie in one chunk. */
static UCS_F_ALWAYS_INLINE void
gstream_ring_fill(ucs_gstream_cmd_t *slot, const ucs_gstream_cmd_t *cmds,
                  size_t count)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        *slot = cmds[i];
        if (!gstream_ring_is_plain(slot)) {
            gstream_ring_fill_extra(slot);
        }
        slot += gstream_ring_slots(slot);
    }
}

static void gstream_ring_skip(void *args)
{
    (void)args;
}

/* Where a command goes that comes next: its slots are all in one chunk. */
static uint64_t gstream_ring_place(uint64_t tail, const ucs_gstream_cmd_t *cmd)
{
    size_t left = GSTREAM_CHUNK_SIZE - (tail % GSTREAM_CHUNK_SIZE);

    return (gstream_ring_slots(cmd) <= left) ? tail : (tail + left);
}

/* Where the ring ends behind commands that need not lie in one chunk. */
static uint64_t gstream_ring_end(uint64_t tail, const ucs_gstream_cmd_t *cmds,
                                 size_t count)
{
    size_t i;

    for (i = 0; i < count; ++i) {
        tail = gstream_ring_place(tail, &cmds[i]) +
               gstream_ring_slots(&cmds[i]);
    }
    return tail;
}

/* Fills them in. */
static void gstream_ring_fill_chunks(gstream_ring_t *ring, uint64_t tail,
                                     const ucs_gstream_cmd_t *cmds,
                                     size_t count)
{
    ucs_gstream_cmd_t *slot;
    uint64_t place;
    size_t i;

    for (i = 0; i < count; ++i) {
        place = gstream_ring_place(tail, &cmds[i]);
        if (place > tail) {
            slot                = gstream_ring_enter(ring, tail);
            slot->type          = UCS_GSTREAM_CMD_LAUNCH;
            slot->u.launch.func = gstream_ring_skip;
            slot->u.launch.args = NULL;
            slot->u.launch.size = (place - tail - 1) * sizeof(*slot);
        }
        gstream_ring_fill(gstream_ring_enter(ring, place), &cmds[i], 1);
        tail = place + gstream_ring_slots(&cmds[i]);
    }
}

/* The same with room made for them; returns where they end, or the tail if
 * there is no memory. It stays out of gstream_ring_push(), as it is seldom
 * needed. */
static UCS_F_NOINLINE uint64_t
gstream_ring_push_chunks(gstream_ring_t *ring, uint64_t tail,
                         const ucs_gstream_cmd_t *cmds, size_t count)
{
    uint64_t end = gstream_ring_end(tail, cmds, count);

    if (gstream_ring_reserve(ring, end) != UCS_OK) {
        return tail;
    }
    gstream_ring_fill_chunks(ring, tail, cmds, count);
    return end;
}

ucs_status_t gstream_ring_push(gstream_ring_t *ring,
                               const ucs_gstream_cmd_t *cmds, size_t count)
{
    size_t num_slots = gstream_ring_num_slots(cmds, count);
    uint64_t tail, end;
    size_t offset;

    gstream_ring_lock(ring);
    tail   = atomic_load_explicit(&ring->mid.tail, memory_order_relaxed);
    offset = tail % GSTREAM_CHUNK_SIZE;
    if ((offset > 0) && (num_slots <= (GSTREAM_CHUNK_SIZE - offset))) {
        end = tail + num_slots;
        gstream_ring_fill(&ring->in.tail_chunk->cmds[offset], cmds, count);
    } else {
        end = gstream_ring_push_chunks(ring, tail, cmds, count);
    }
    /* The release half publishes the commands to gstream_ring_peek(); the rest
     * is the producer's side of gstream_host_wake() */
    atomic_store(&ring->mid.tail, end);
    atomic_store_explicit(&ring->in.lock, 0, memory_order_release);
    return (end > tail) ? UCS_OK : UCS_ERR_NO_MEMORY;
}

uint64_t gstream_ring_tail(gstream_ring_t *ring)
{
    return atomic_load(&ring->mid.tail);
}

int gstream_ring_is_empty(gstream_ring_t *ring)
{
    return atomic_load(&ring->mid.tail) == ring->out.head;
}

/* Hands a chunk over to the producers. They take all that is there at once, so
 * no chunk is taken and put back between the load and the exchange. */
static void gstream_ring_return_chunk(gstream_ring_t *ring,
                                      gstream_chunk_t *chunk)
{
    chunk->next = atomic_load_explicit(&ring->mid.returned,
                                       memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&ring->mid.returned,
                                                  &chunk->next, chunk,
                                                  memory_order_release,
                                                  memory_order_relaxed)) {
    }
}

size_t gstream_ring_peek(gstream_ring_t *ring, const ucs_gstream_cmd_t **cmds)
{
    gstream_chunk_t *chunk;
    uint64_t count, left;

    /* Pairs with the store in gstream_ring_push() */
    count = atomic_load_explicit(&ring->mid.tail, memory_order_acquire) -
            ring->out.head;
    if (count == 0) {
        return 0;
    }

    if (ring->out.head == ring->out.end) {
        chunk                = ring->out.head_chunk;
        ring->out.head_chunk = chunk->next;
        ring->out.end       += GSTREAM_CHUNK_SIZE;
        gstream_ring_return_chunk(ring, chunk);
    }

    left  = ring->out.end - ring->out.head;
    *cmds = &ring->out.head_chunk->cmds[GSTREAM_CHUNK_SIZE - left];
    return ucs_min(count, left);
}

uint64_t gstream_ring_pop(gstream_ring_t *ring, size_t count)
{
    ring->out.head += count;
    return ring->out.head;
}
