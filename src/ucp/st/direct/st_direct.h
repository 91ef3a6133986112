/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct.h - the direct lane of one operation: the streams of two processes
 * of one node move the data themselves, through memory that both have mapped.
 *
 * The rule: messages of up to UCX_ST_DIRECT_MAP_MIN go through slots. Longer
 * ones are copied once, where one side has the other's buffer mapped or, from
 * UCX_ST_DIRECT_ATTACH_MIN on, can attach to the other process; else they go
 * through slots, too.
 *
 * Slots. The receive's worker has a ring of slots in its segment. A message is
 * one piece, or several; they are numbered from 1 over all uses:
 *
 *   sender                                    receiver
 *   start, any wait later, or the service     start, any wait later, or the
 *   thread:                                   service thread:
 *     while fewer than `num_slots` are          while seq of the next piece's
 *     in use: copy the next piece to a slot,    slot is its number: copy it to
 *     seq = its number  --------------------->  the buffer,
 *     (all of use k: word = k)  <-------------  count = pieces taken
 *                                               (all of use k: word = k)
 *   wait for word >= k                        wait for word >= k
 *
 * Only the sender's process reads the send's buffer and only the receiver's
 * writes the receive's, each with the stream's lock held: that a piece is
 * moved once, and not after an error was told, needs nothing of the other side.
 * A message that fits into the slots is on its way when its start has run,
 * whether or not its receive is started, and outlives the sender.
 *
 * Mapped. Where a process has the other side's buffer mapped, because it was
 * allocated by ucp_st_mem_alloc() or belongs to the same process, the message
 * is copied to its place at once, in pieces that both sides claim, half of what
 * is left at a time, once both have begun. `claim` is one word (use, poison,
 * pieces left at the low end and at the high end): the receiver takes pieces
 * from its low end and the sender from its high end, by compare-and-swap; a
 * use's pieces are there to be claimed when all of the last use are claimed and
 * both sides have begun the use, which they do only when the last one is
 * complete. It is complete when both sides' counts of pieces copied say so. The
 * number of the use in the word makes a claim that has been slow fail.
 *
 * Attached. The same where the kernel copies between the two processes. A copy
 * can fail here. The side that cannot carry out its claim poisons the pair's
 * word, says so in its count, which the other side takes for the end of the
 * claim and never for a complete use, and has its service thread fail the
 * operation.
 *
 * Errors: the pair's word is poisoned, so that nothing is claimed any more; the
 * waits are released when what the other side had claimed is copied or its
 * process is dead.
 *
 * Movers (semantics, P1 to P3): the start, as far as it can go at once; any
 * wait of the same stream; a host call that asks; and the service thread, which
 * a peer notifies before it sleeps, if this side has begun and its stream does
 * not attend to it, as it runs a kernel, or nothing. A stream that attends and
 * sleeps is notified, by its wait record, when the other side has moved
 * something.
 */
#ifndef UCP_ST_DIRECT_H_
#define UCP_ST_DIRECT_H_

#include <ucp_st.h>

#include "core/st_lane.h"
#include "core/st_queue.h"
#include "direct/st_direct_seg.h"

#include <ucs/datastruct/list.h>

#include <pthread.h>

/** Pieces of a use that a mover copies before it goes on to the next one. */
#define UCP_ST_DIRECT_MOVE_MAX 4

/** What moves. */
typedef enum {
    UCP_ST_DIRECT_STREAM, /* the one that began the uses */
    UCP_ST_DIRECT_PARKED, /* a thread that runs streams, for one that it leaves
                             */
    UCP_ST_DIRECT_HOST,   /* a call of the user's */
    UCP_ST_DIRECT_THREAD  /* the service thread */
} ucp_st_direct_mover_t;

/**
 * The open uses of a stream, whatever queues of the worker they went through.
 * The lock protects these, and what the operations say that were last started
 * on the stream: streams, the service thread and host calls hold it while they
 * copy UCP_ST_DIRECT_MOVE_MAX pieces, or half a mebibyte, of each open use, and
 * take no other lock meanwhile.
 */
typedef struct ucp_st_direct_stream {
    ucp_st_worker_h      worker;   /* read-only */
    ucs_gstream_h        handle;   /* NULL: of operations that have lost their
                                      stream; read-only */
    unsigned             refs;     /* queues; worker's lock */
    ucs_list_link_t      list;     /* in the device's; worker's lock */
    pthread_mutex_t      lock;
    uint32_t             num_open; /* in the list; read without the lock */
    uint8_t              is_counted;/* among the segment's sleepers; the
                                      stream's own */
    ucs_list_link_t      open;     /* ucp_st_direct_op_t */
    uint64_t             copies;   /* pieces moved */
    uint64_t             proxied;  /* uses that host calls or the service thread
                                      have moved pieces of */
    ucp_st_direct_segment_t *segment; /* the worker's; read-only */
    ucp_st_direct_record_t *record;/* in the segment; read-only */
    uint64_t             record_offset; /* ... there; read-only */
    ucs_gstream_helper_t helper;   /* read-only */
} ucp_st_direct_stream_t;

/** How a pair's data gets over. */
typedef enum {
    UCP_ST_DIRECT_SLOTS,
    UCP_ST_DIRECT_MAPPED
} ucp_st_direct_proto_t;

/**
 * The lane's part of an operation; there while the lane holds something for it.
 * Protected by the lock of the stream on which it was started last, but for
 * what says otherwise; read-only means from bind() on.
 */
typedef struct ucp_st_direct_op {
    volatile uint64_t     word;      /* uses; streams wait on it */
    uint64_t              begun;     /* uses that the stream has started */
    uint64_t              pos;       /* slots: pieces moved */
    uint32_t              left;      /* slots: pieces of the last use begun that
                                        are not */
    uint64_t              limit;     /* slots, send: pieces there is room for */
    uint64_t              seen;      /* mapped: uses the other side has begun */
    ucp_st_direct_stream_t *stream;  /* of the last start; worker's lock */
    ucs_list_link_t       list;      /* in the stream's open uses */
    uint8_t               is_open;   /* ... it is there */
    uint8_t               is_proxied;/* pieces of the last use begun were moved
                                        by a host call or the service thread */
    uint8_t               has_news;  /* for the other side's stream */
    uint8_t               halted;    /* nothing is moved any more */
    uint8_t               released;  /* starts have no effect any more */
    uint8_t               release;   /* asked for; worker's lock */
    uint8_t               is_bound;  /* read-only */
    uint8_t               proto;     /* read-only */
    uint8_t               dir;       /* read-only */
    uint8_t               is_nt;     /* stores of copies are non-temporal;
                                        read-only */
    uint32_t              num_pieces;/* of a use; read-only */
    uint32_t              num_slots; /* a power of 2; read-only */
    size_t                piece;     /* bytes, but of the last one; read-only */
    size_t                length;    /* of a use; read-only */
    uint8_t               *buffer;   /* the user's; read-only */
    ucp_st_direct_pair_t  *pair;     /* read-only */
    ucp_st_direct_side_t  *mine;     /* there; read-only */
    ucp_st_direct_side_t  *other;    /* there, the peer's; read-only */
    uint8_t               *places;   /* of the slots' data, the first one;
                                        read-only */
    size_t                stride;    /* from one to the next; read-only */
    ucp_st_direct_segment_t *segment;/* the peer's; read-only */
    uint8_t               *other_buffer; /* the other side's, or NULL: not
                                        mapped here; read-only */
    uint64_t              other_address; /* ... in its process, if it is
                                        attached to; else 0; read-only */
    uint8_t               is_attached;/* no buffer is mapped; read-only */
    uint64_t              done_count;/* own pieces, once UCP_ST_DIRECT_BROKEN is
                                        their count */
    ucs_status_t          broken;    /* why a piece could not be copied, until
                                        that is told; UCS_OK */
    struct ucp_st_op      *op;       /* read-only */
    ucp_st_direct_map_t   *map;      /* of the own buffer, or NULL; worker's */
    ucp_st_direct_map_t   *other_map; /* of `other_buffer`, or NULL; worker's
                                        lock */
    size_t                pair_size; /* receive: of `pair`, bytes; worker's */
    ucs_list_link_t       ending;    /* in the device's list; worker's lock */
    uint8_t               is_listed; /* ... it is there; worker's lock */
    uint8_t               is_left;   /* by the peer, or by the user: its last
                                        uses are to be told the service thread
                                        */
} ucp_st_direct_op_t;

/** The lane's part of an operation; NULL if it holds nothing for it. */
static inline ucp_st_direct_op_t *ucp_st_direct_op(const ucp_st_op_t *op)
{
    return op->parts[UCP_ST_LANE_DIRECT];
}

/** A queue's stream; NULL where the lane is not open. */
static inline ucp_st_direct_stream_t *ucp_st_direct_queue(ucp_st_queue_h queue)
{
    return *(ucp_st_direct_stream_t**)
            queue->parts[UCP_ST_PART_LANES + UCP_ST_LANE_DIRECT];
}

/** Make one ready: of a stream, or of operations that have lost theirs (NULL).
 *  UCS_ERR_NO_RESOURCE if the segment is full. The worker's lock is held. */
ucs_status_t ucp_st_direct_stream_init(ucp_st_direct_stream_t *stream,
                                       ucp_st_worker_h worker,
                                       ucs_gstream_h handle);

/** Undo that; nothing is open. The worker's lock is held. */
void ucp_st_direct_stream_cleanup(ucp_st_direct_stream_t *stream);

/** Leave all its uses to the service thread, which peers notify whenever they
 *  have moved something. The worker's lock is held. */
void ucp_st_direct_stream_park(ucp_st_direct_stream_t *stream);

/** Mapped: claim pieces that follow each other, from `index_p` on. How many;
 *  zero if there is none now. The stream's lock is held, as it is for the next
 *  two. */
uint32_t ucp_st_direct_claim(ucp_st_direct_op_t *direct, uint32_t *index_p);

/** Nothing may be claimed any more, by either side. */
void ucp_st_direct_claim_poison(const ucp_st_direct_op_t *direct);

/** How many pieces both sides have claimed, of all uses. */
uint64_t ucp_st_direct_claim_count(const ucp_st_direct_op_t *direct);

/** Copy what an operation moves: all of it is stored before what the caller
 *  stores next with release. */
void ucp_st_direct_copy(const ucp_st_direct_op_t *direct, void *dst,
                        const void *src, size_t length);

/** Move what can be moved now of a stream's open uses, some pieces of each, if
 *  no other thread does, nor the stream itself for a host call; non-zero if
 *  that was something. */
int ucp_st_direct_stream_poll(ucp_st_direct_stream_t *stream,
                              ucp_st_direct_mover_t mover);

/** The same by the service thread, unless the stream attends to its uses. If
 *  another thread moves just now `is_busy_p` is set: it is to be tried again,
 *  as that one may have looked already. If there is nothing to move and the
 *  thread is about to sleep, it does for a parked stream what others do
 *  themselves before they sleep: ucp_st_direct_stream_notify(). */
unsigned ucp_st_direct_stream_relieve(ucp_st_direct_stream_t *stream,
                                      int is_last, int *is_busy_p);

/** Notify the service threads of peers that have begun what this stream's open
 *  uses need, and whose streams do not attend to it. */
void ucp_st_direct_stream_notify(ucp_st_direct_stream_t *stream);

/** Runs on the stream: begin a use. `arg` is a ucp_st_direct_op_t. */
void ucp_st_direct_start(void *arg);

/** The same for several, of one queue. `arg` is an array of pointers that ends
 *  with NULL. */
void ucp_st_direct_startall(void *arg);

/** Move some pieces of each open use of a stream, and let the waits of those
 *  pass that are complete; zero if there was nothing to do. The stream's lock
 *  is held, as it is for the next one. */
unsigned ucp_st_direct_moveall(ucp_st_direct_stream_t *stream,
                               ucp_st_direct_mover_t mover);

/** Non-zero if the peer has begun what this side waits for and can go on with
 *  it, but its stream does not attend to it. */
int ucp_st_direct_needs_notify(const ucp_st_direct_op_t *direct);

/** Take no further part in moving: after this nothing of the peer's is touched
 *  but what was claimed before. The worker's lock is held. */
void ucp_st_direct_halt(ucp_st_direct_op_t *direct);

/** Let waits pass if `release` is set and the peer copies nothing; non-zero if
 *  it is set and the peer does. The worker's lock is held. */
int ucp_st_direct_settle(ucp_st_direct_op_t *direct);

/** The stream of an operation's last start goes: another one takes care of it.
 *  The worker's lock is held. */
void ucp_st_direct_move_stream(ucp_st_direct_op_t *direct,
                               ucp_st_direct_stream_t *stream);

/** One of the stream's operations whose copy has failed, once, and why; NULL if
 *  there is none. The worker's lock is held. */
struct ucp_st_op *ucp_st_direct_stream_broken(ucp_st_direct_stream_t *stream,
                                              ucs_status_t *status_p);

/** Add what a stream has counted. The worker's lock is held. */
void ucp_st_direct_stream_count(ucp_st_direct_stream_t *stream,
                                ucp_st_stats_t *stats);

/** Non-zero if the memory of a process can be read and written: `probe` is
 *  where it has this number. */
int ucp_st_direct_attach_probe(uint32_t pid, uint64_t probe, uint64_t uuid);

/** Copy between the buffer and the attached one. UCS_OK;
 *  UCS_ERR_CONNECTION_RESET if that process has ended; UCS_ERR_IO_ERROR. */
ucs_status_t ucp_st_direct_attach_copy(const ucp_st_direct_op_t *direct,
                                       size_t offset, size_t length);

/** Uses whose waits pass; 0 once they were released. */
uint64_t ucp_st_direct_uses_done(const struct ucp_st_op *op);

#endif
