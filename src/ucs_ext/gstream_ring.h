/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_ring.h - queue of commands of a host stream.
 *
 * Many producers, one consumer, no limit. Commands lie in a chain of chunks; a
 * chunk that the consumer has left goes back to the producers, so memory is
 * allocated only when the queue is longer than it ever was.
 *
 *     head_chunk            tail_chunk          last_chunk
 *     [ done | to run ] --> [ to run | free ] --> [ reserved ]
 *              ^ head                  ^ tail                 ^ limit
 *
 * A command takes a slot of a chunk. The copy of what it brings along, a
 * kernel's arguments or an array of words, takes the slots behind its own, in
 * the same chunk; where there is no room for both, the rest of the chunk holds
 * a kernel that does nothing.
 */
#ifndef GSTREAM_RING_H_
#define GSTREAM_RING_H_

#include "api/ucs_gstream.h"

#include <ucs/arch/cpu.h>
#include <ucs/sys/math.h>

#include <stdatomic.h>


typedef struct gstream_chunk gstream_chunk_t;


/** The queue. Positions count slots since the start. */
typedef struct gstream_ring {
    /** Producers' side, protected by lock. */
    struct {
        _Atomic int     lock;        /**< 1 while somebody has it */
        gstream_chunk_t *tail_chunk; /**< Holds the last command */
        gstream_chunk_t *last_chunk; /**< End of the chain */
        gstream_chunk_t *spare;      /**< Chunks to be used again */
        uint64_t        limit;       /**< End of what the chain can hold */
    } in;

    /** Shared. */
    struct {
        _Atomic uint64_t           tail;     /**< Written under in.lock */
        _Atomic(gstream_chunk_t *) returned; /**< Chunks the consumer left */
    } mid UCS_V_ALIGNED(UCS_ARCH_CACHE_LINE_SIZE);

    /** Consumer's side: that thread only. */
    struct {
        gstream_chunk_t *head_chunk; /**< Holds the command before head, or
                                          what was peeked at */
        uint64_t        head;
        uint64_t        end;         /**< Of head_chunk */
    } out UCS_V_ALIGNED(UCS_ARCH_CACHE_LINE_SIZE);
} gstream_ring_t;


/** Make an empty ring. UCS_OK or UCS_ERR_NO_MEMORY. */
ucs_status_t gstream_ring_init(gstream_ring_t *ring);


/** Release a ring that nobody uses any more. */
void gstream_ring_cleanup(gstream_ring_t *ring);


/** Append all commands, together, or none (UCS_ERR_NO_MEMORY). The new tail is
 *  stored with seq-cst order; any thread. */
ucs_status_t gstream_ring_push(gstream_ring_t *ring,
                               const ucs_gstream_cmd_t *cmds, size_t count);


/** Position behind the last command; seq-cst load; any thread. */
uint64_t gstream_ring_tail(gstream_ring_t *ring);


/** Whether nothing can be run; seq-cst load of the tail; consumer only. */
int gstream_ring_is_empty(gstream_ring_t *ring);


/** Whether a command brings nothing along that is copied with it. */
static inline int gstream_ring_is_plain(const ucs_gstream_cmd_t *cmd)
{
    return cmd->type < UCS_GSTREAM_CMD_LAUNCH;
}


/** Bytes that the command brings along. */
static inline size_t gstream_ring_extra(const ucs_gstream_cmd_t *cmd)
{
    if (gstream_ring_is_plain(cmd)) {
        return 0;
    }
    if (cmd->type == UCS_GSTREAM_CMD_COPY2D) {
        return sizeof(*cmd->u.copy2d.rect);
    }
    return (cmd->type == UCS_GSTREAM_CMD_LAUNCH) ?
                   cmd->u.launch.size :
                   (cmd->u.waitall.count * sizeof(*cmd->u.waitall.words));
}


_Static_assert(UCS_GSTREAM_CMD_COPY2D == (UCS_GSTREAM_CMD_LAUNCH + 2),
               "the last three bring something along");


/** Slots of the command in the ring. */
static inline size_t gstream_ring_slots(const ucs_gstream_cmd_t *cmd)
{
    return 1 + ucs_div_round_up(gstream_ring_extra(cmd), sizeof(*cmd));
}


/** Commands that can be run: returns their slots and points to the first; 0 if
 *  there is none; the same ones until gstream_ring_pop(). What they bring along
 *  is the ring's copy. They stay in place until the next peek after that;
 *  consumer only. */
size_t gstream_ring_peek(gstream_ring_t *ring, const ucs_gstream_cmd_t **cmds);


/** Leave 'count' slots, of whole commands, that were peeked at behind. Returns
 *  the new head; consumer only. */
uint64_t gstream_ring_pop(gstream_ring_t *ring, size_t count);

#endif
