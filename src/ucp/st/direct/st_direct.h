/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct.h - the direct lane: the streams of two processes of one node move
 * the data themselves, through memory that both have mapped.
 *
 * docs/protocols.md, "Lane direct", describes the protocols and argues that
 * they are sound. In short:
 *
 * Slots. Messages that are not copied as below go through a ring of slots in
 * the segment of the receive's worker, in pieces that are numbered from 1 over
 * all uses. The sender copies a piece to its slot and stores its number to
 * `seq`; the receiver copies it to the buffer and stores that to `count`. Each
 * process touches its own buffer only, with the stream's lock held: a piece is
 * moved once, and not after an error was reported.
 *
 * Mapped. From UCX_ST_DIRECT_MAP_MIN bytes on messages are copied once, where
 * one side has the other's buffer mapped. Once both sides have begun a use they
 * claim its pieces, by compare-and-swap of `claim`: the receiver from the low
 * end, the sender from the high end. The use is complete when the counts of
 * both sides say so.
 *
 * Attached. The same from UCX_ST_DIRECT_ATTACH_MIN on, where the kernel copies
 * between the two processes. Such a copy can fail.
 *
 * Device. The same where a buffer is in memory of a device that one side
 * reaches; a stream of that side's runtime copies (st_direct_gpu.c). Pieces are
 * claimed and counted by threads of the host, which begin a copy and look for
 * its end later: none of them waits for it.
 *
 * Paired. Where each side has a device that kernels of the library run on, and
 * that reaches both buffers: a start is a kernel, and the one that starts a use
 * second copies (ucs_gstream_pair.h, st_direct_pair.c).
 * No thread has a part in it, but where a stream that starts the use runs no
 * such kernels.
 *
 * Uses are moved by the start, where they go through slots and as far as it can
 * go at once; by any wait of the same stream; by a host call that asks; and by
 * the service thread, which a peer notifies before it sleeps, if this side has
 * begun and its stream does not attend to it. A stream that attends and sleeps
 * is notified by its wait record.
 */
#ifndef UCP_ST_DIRECT_H_
#define UCP_ST_DIRECT_H_

#include <ucp_st.h>

#include "core/st_lane.h"
#include "core/st_peer.h"
#include "core/st_queue.h"
#include "core/st_worker.h"
#include "ctrl/st_service.h"
#include "direct/st_direct_shm.h"

#include <ucs_gstream_copy.h>
#include <ucs_gstream_pair.h>
#include <ucs/datastruct/list.h>

#include <pthread.h>

/** The thread that moves pieces. */
typedef enum {
    UCP_ST_DIRECT_STREAM, /* the one that began the uses */
    UCP_ST_DIRECT_PARKED, /* one of a group, for a stream that it leaves */
    UCP_ST_DIRECT_PROXY   /* a call of the user's, or the service thread */
} ucp_st_direct_mover_t;

/**
 * The open uses of a stream, whatever queues of the worker they went through.
 * The lock protects these, and what the operations say that were last started
 * on the stream: streams, the service thread and host calls hold it while they
 * copy some pieces, or half a mebibyte, of each open use, and take no other
 * lock meanwhile than those of a device's runtime, in calls that do not wait.
 */
typedef struct ucp_st_direct_stream {
    ucp_st_worker_h      worker;   /* read-only */
    ucs_gstream_h        handle;   /* NULL: of operations without a stream,
                                      before a start and behind a queue;
                                      read-only */
    unsigned             refs;     /* queues; worker's lock */
    int                  is_served;/* by the service thread alone: it calls no
                                      helper; read-only */
    ucs_list_link_t      list;     /* in the device's; worker's lock */
    pthread_mutex_t      lock;
    uint32_t             num_open; /* in the list; read without the lock */
    uint8_t              is_counted;/* among the segment's sleepers; the
                                      stream's own */
    uint8_t              is_copying;/* a device copies for an open use; read
                                      without the lock */
    ucs_list_link_t      open;     /* ucp_st_direct_op_t */
    uint64_t             copies;   /* pieces moved */
    uint64_t             proxied;  /* uses that host calls or the service thread
                                      have moved pieces of */
    uint64_t             wakeups;  /* of service threads, here and at peers;
                                      atomic */
    ucp_st_direct_segment_t *segment; /* the worker's; read-only */
    ucp_st_direct_record_t *record;/* in the segment; read-only */
    uint64_t             record_offset; /* ... there; read-only */
    ucs_gstream_helper_t helper;   /* read-only */
} ucp_st_direct_stream_t;

/** How a pair's data gets over. */
typedef enum {
    UCP_ST_DIRECT_SLOTS,
    UCP_ST_DIRECT_MAPPED,
    UCP_ST_DIRECT_PAIRED
} ucp_st_direct_proto_t;

/**
 * The lane's data of an operation; there while the lane holds something for it.
 * Protected by the lock of the stream on which it was started last, but for
 * what says otherwise; read-only means from bind() on.
 */
typedef struct ucp_st_direct_op {
    volatile uint64_t     *word;     /* uses; streams wait on it */
    uint64_t              begun;     /* uses that the stream has started */
    uint64_t              pos;       /* slots: pieces moved */
    uint32_t              left;      /* slots: pieces of the last use begun that
                                        are not */
    uint64_t              limit;     /* slots, send: pieces there is room for */
    ucp_st_direct_stream_t *stream;  /* of the last start, or the lane's
                                        `parked`; worker's lock */
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
    uint64_t              records;   /* ... the last place of a wait record;
                                        read-only */
    uint8_t               *other_buffer; /* the other side's, or NULL: not
                                        mapped here, or not yet (is_opening);
                                        read-only then */
    uint64_t              other_address; /* ... in its process, if it is
                                        attached to; else 0; read-only */
    ucp_st_direct_gpu_t   *gpu_offer;/* what was offered, or NULL; worker's
                                        lock */
    ucs_gstream_memory_attr_t copier; /* device: its stream copies; read-only */
    ucs_gstream_copy_t    copy;      /* ... the piece that was claimed last */
    uint8_t               is_copying;/* ... and is not counted */
    uint8_t               is_pageable; /* ... a buffer is in memory that its
                                        runtime does not know; read-only */
    double                release_time; /* when the release was asked for;
                                        worker's lock */
    ucs_gstream_ipc_h     other_ipc; /* of `other_buffer`, or NULL; worker's
                                        lock, as the next three */
    uint64_t              other_offset; /* ... there, bytes */
    uint8_t               is_opening;/* ... it is being opened: in the device's
                                        list */
    ucs_list_link_t       opening;   /* ... there */
    uint8_t               is_device; /* a buffer is in a device; read-only */
    uint8_t               is_attached;/* no buffer is mapped; read-only */
    ucs_gstream_pair_t    pairing;   /* paired: what a start does; read-only
                                        from when all is open, but for `use`,
                                        which is that of the last stream's start
                                        */
    uint8_t               is_threaded;/* threads start its uses; worker's lock,
                                        as the next one */
    uint8_t               is_lost;   /* the device of its stream is */
    uint64_t              launched;  /* uses that threads have had started */
    uint64_t              device_key;/* of the handle for kernels of the
                                        application, or 0; worker's lock */
    uint64_t              done_count;/* own pieces, once UCP_ST_DIRECT_BROKEN is
                                        their count */
    ucs_status_t          broken;    /* why a piece could not be copied, until
                                        it was reported; or UCS_OK */
    struct ucp_st_op      *op;       /* read-only */
    ucp_st_direct_map_t   *map;      /* of the own buffer, or NULL; worker's */
    ucp_st_direct_map_t   *other_map; /* of `other_buffer`, or NULL; worker's
                                        lock */
    ucp_st_direct_map_t   *pair_map; /* of the own buffer that kernels use, or
                                        NULL; worker's lock */
    size_t                pair_size; /* receive: of `pair`, bytes; worker's */
    ucs_list_link_t       ending;    /* in the device's list; worker's lock */
    uint8_t               is_listed; /* ... it is there; worker's lock */
    uint8_t               is_left;   /* by the peer, or by the user: the
                                        service thread looks at its last uses
                                        */
} ucp_st_direct_op_t;

/** The lane's data of an operation; NULL if it holds nothing for it. */
static inline ucp_st_direct_op_t *ucp_st_direct_op(const ucp_st_op_t *op)
{
    return op->priv[UCP_ST_LANE_DIRECT];
}

/** A queue's stream; NULL where the lane is not open. */
static inline ucp_st_direct_stream_t *ucp_st_direct_queue(ucp_st_queue_h queue)
{
    return *(ucp_st_direct_stream_t**)
            queue->priv[UCP_ST_PRIV_LANES + UCP_ST_LANE_DIRECT];
}

/** What the lane has once for a worker. Protected by the worker's lock but for
 *  what says otherwise. */
typedef struct ucp_st_direct_dev {
    ucp_st_direct_seg_t     seg;
    int                     pipe[2];   /* peers wake the service thread by it */
    ucp_st_direct_address_t address;   /* read-only */
    ucs_list_link_t         ending;    /* ucp_st_direct_op_t that peers have
                                          left, or that failed */
    ucs_list_link_t         opening;   /* ... whose peers' buffers a runtime
                                          opens */
    ucs_list_link_t         streams;   /* ucp_st_direct_stream_t */
    ucp_st_direct_stream_t  parked;    /* of operations that have no other; the
                                          first one there */
    unsigned                rounds;    /* until it sleeps; the thread's */
    uint32_t                has_broken;/* an operation is to fail; atomic */
    int                     is_apart;  /* a peer's namespace was warned of */
    void (*look_rma)(ucp_st_worker_h worker); /* see st_direct_rma.h */
    ucp_st_service_client_t service;   /* its own */
} ucp_st_direct_dev_t;

static inline ucp_st_direct_dev_t *ucp_st_direct_dev(ucp_st_worker_h worker)
{
    return worker->priv[UCP_ST_PRIV_LANES + UCP_ST_LANE_DIRECT];
}

/** What reaches a peer; read-only once it is connected. */
typedef struct ucp_st_direct_peer {
    ucp_st_direct_map_t *map;       /* its segment */
    int                 notify_fd;  /* wakes its service thread */
    int                 can_attach; /* its memory can be read and written */
} ucp_st_direct_peer_t;

static inline ucp_st_direct_peer_t *
ucp_st_direct_peer(const ucp_st_peer_t *peer)
{
    return peer->priv[UCP_ST_PRIV_LANES + UCP_ST_LANE_DIRECT];
}

/** A wait record in a peer's segment, of which `last` is the last place for
 *  one; NULL for 0, or if the peer names no such place. */
static inline ucp_st_direct_record_t *
ucp_st_direct_find_record(ucp_st_direct_segment_t *segment, uint64_t last,
                          uint64_t offset)
{
    return ((offset == 0) || (offset > last) ||
            ((offset % UCP_ST_DIRECT_ALIGN) != 0)) ?
           NULL : UCS_PTR_BYTE_OFFSET(segment, offset);
}

extern const ucp_st_lane_ops_t ucp_st_direct_lane;

/** The lane's functions of these names: see st_lane.h. */
ucs_status_t ucp_st_direct_dev_open(ucp_st_worker_h worker);
void ucp_st_direct_dev_close(ucp_st_worker_h worker);
size_t ucp_st_direct_dev_address_length(ucp_st_worker_h worker);
ucs_status_t ucp_st_direct_dev_address_pack(ucp_st_worker_h worker,
                                            void *buffer);
unsigned ucp_st_direct_dev_progress(ucp_st_worker_h worker);
void ucp_st_direct_dev_poll(ucp_st_worker_h worker);
int ucp_st_direct_dev_serves(ucp_st_worker_h worker, ucs_gstream_type_t type);
ucs_status_t ucp_st_direct_dev_query(ucp_st_worker_h worker,
                                     ucp_st_worker_attr_t *attr);
ucs_status_t ucp_st_direct_dev_connect(ucp_st_peer_h peer, const void *address,
                                       size_t length);
void ucp_st_direct_dev_disconnect(ucp_st_peer_h peer);
void ucp_st_direct_queue_init(ucp_st_queue_h queue);
void ucp_st_direct_queue_cleanup(ucp_st_queue_h queue);
uint64_t ucp_st_direct_uses_done(const struct ucp_st_op *op);

/** Have the service thread look. Needs no lock. */
void ucp_st_direct_dev_wake(ucp_st_worker_h worker);

/** Have a peer's service thread look, behind what was stored before: by a byte
 *  in its pipe, if it does not look anyway. Needs no lock. */
void ucp_st_direct_dev_notify(ucp_st_peer_h peer);

/** The same for a stream, or for the stream of an operation, which count it. */
void ucp_st_direct_stream_wake(ucp_st_direct_stream_t *stream);
void ucp_st_direct_notify(const ucp_st_direct_op_t *direct);

/** Make a stream's data ready, or that of operations that have no other stream
 *  (NULL). UCS_ERR_NO_RESOURCE if the segment is full. The worker's lock is
 *  held, or no other thread uses the worker. */
ucs_status_t ucp_st_direct_stream_init(ucp_st_direct_stream_t *stream,
                                       ucp_st_worker_h worker,
                                       ucs_gstream_h handle);

/** Undo ucp_st_direct_stream_init(), with the same lock; nothing is open. */
void ucp_st_direct_stream_cleanup(ucp_st_direct_stream_t *stream);

/** For a host call or the service thread: move what can be moved now of a
 *  stream's open uses, some pieces of each, unless the stream attends to them
 *  itself. How many moves; -1 if another thread moves just now: as that one may
 *  have looked already, it is to be tried again. */
int ucp_st_direct_stream_relieve(ucp_st_direct_stream_t *stream);

/** Non-zero if a device copies for an open use: a thread has to look for the
 *  end. Needs no lock. */
static inline int
ucp_st_direct_stream_is_copying(const ucp_st_direct_stream_t *stream)
{
    return __atomic_load_n(&stream->is_copying, __ATOMIC_RELAXED);
}

/** Notify the service threads of peers that have begun what this stream's open
 *  uses need, and whose streams do not attend to it. */
void ucp_st_direct_stream_notify(ucp_st_direct_stream_t *stream);

/** One of the stream's operations whose copy has failed, once, and why; NULL if
 *  there is none. The worker's lock is held. */
struct ucp_st_op *ucp_st_direct_stream_broken(ucp_st_direct_stream_t *stream,
                                              ucs_status_t *status_p);

/** Add what a stream has counted. The worker's lock is held. */
void ucp_st_direct_stream_count(ucp_st_direct_stream_t *stream,
                                ucp_st_stats_t *stats);

/** Runs on the stream: begin a use of each operation of an array, of one queue.
 *  `arg` is an array of pointers to ucp_st_direct_op_t that ends with NULL. */
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

/** Let waits pass if `release` is set and nothing is copied any more; non-zero
 *  if a copy is under way. The worker's lock is held. */
int ucp_st_direct_settle(ucp_st_direct_op_t *direct);

/** Non-zero, of an operation that is halted, while a device copies for this
 *  side or is about to. */
int ucp_st_direct_is_copying(const ucp_st_direct_op_t *direct);

/** The last use is over: it is not among its stream's open ones any more, if no
 *  look has seen its end, as a kernel has stored the word. The worker's lock is
 *  held. */
void ucp_st_direct_end_use(ucp_st_direct_op_t *direct);

/** The stream of an operation's last start goes: another one takes care of it.
 *  The worker's lock is held. */
void ucp_st_direct_move_stream(ucp_st_direct_op_t *direct,
                               ucp_st_direct_stream_t *stream);

/** Copy what an operation moves: all of it is stored before what the caller
 *  stores next with release. */
void ucp_st_direct_copy(const ucp_st_direct_op_t *direct, void *dst,
                        const void *src, size_t length);

/** Non-zero if the memory of a process can be read and written: `probe` is
 *  where it has this number. */
int ucp_st_direct_attach_probe(uint32_t pid, uint64_t probe, uint64_t uuid);

/** Map the other side's buffer, which lies in a file, and set `other_buffer`.
 *  UCS_ERR_UNREACHABLE, UCS_ERR_INVALID_PARAM. */
ucs_status_t ucp_st_direct_open_other(ucp_st_direct_op_t *direct,
                                      const ucp_st_direct_blob_t *blob);

/** Ask the runtimes what an offer will say, and what copies will need: that
 *  takes long. Without the worker's lock. */
void ucp_st_direct_gpu_ask(ucp_st_op_t *op);

/** Non-zero if an operation says something of devices; `length` is its own, or
 *  the message's. */
int ucp_st_direct_gpu_is_asked(const ucp_st_op_t *op, size_t length);

/** Non-zero if a device is among those that a side reaches. */
int ucp_st_direct_gpu_reaches_device(const ucp_st_direct_gpu_t *own,
                                     unsigned type, uint32_t device);

/** How an operation's buffer lies; its width is 0 without blocks. */
ucs_gstream_rows_t ucp_st_direct_gpu_rows(const ucp_st_op_t *op);

/** Bytes from the begin of a buffer to the end of a message in it; the largest
 *  number if no memory has so many. */
size_t ucp_st_direct_gpu_span(ucs_gstream_rows_t rows, size_t length);

/** What an operation has said; of the host if that is nothing. */
const ucp_st_direct_gpu_t *
ucp_st_direct_gpu_offered(const ucp_st_direct_op_t *direct);

/** Have a peer's buffer be opened: the operation is in the device's list until
 *  it is. */
ucs_status_t ucp_st_direct_gpu_open_ipc(ucp_st_direct_op_t *direct,
                                        const ucs_gstream_ipc_key_t *key,
                                        int device);

/** The rest of that: `other_ipc` is being opened, or is NULL, and the other
 *  side alone opens something. */
void ucp_st_direct_gpu_await(ucp_st_direct_op_t *direct, uint64_t offset);

/** Fill in what an offer says of devices; 0 if that is nothing. This and the
 *  next two are called with the worker's lock. */
int ucp_st_direct_gpu_offer(const ucp_st_op_t *op, ucp_st_direct_gpu_t *gpu);

/** Non-zero if a buffer is in a device, and a side reaches both. Both sides
 *  come to the same answer. */
int ucp_st_direct_gpu_is_used(const ucp_st_op_t *op,
                              const ucp_st_direct_blob_t *blob,
                              const ucp_st_direct_gpu_t *other);

/** Move a pair without staging: learn what the peer's offer says of the
 *  buffers. Why the peer's cannot be opened is logged. */
ucs_status_t ucp_st_direct_gpu_bind(ucp_st_op_t *op,
                                    const ucp_st_direct_blob_t *blob,
                                    const ucp_st_direct_gpu_t *other);

/** Look whether the peers' buffers that are being opened are, and fail
 *  operations whose ones cannot be; non-zero if there are such. Sets
 *  `is_open_p` if one is open. The worker's lock is held. */
int ucp_st_direct_gpu_look(ucp_st_worker_h worker, int *is_open_p);

/** Find out whether there is a device that can have pairs of streams with an
 *  operation's buffer: takes long. Without the worker's lock. */
void ucp_st_direct_pair_ask(ucp_st_op_t *op);

/** Get what tier K needs and say it in an offer, if it can be had. This and
 *  what follows is called with the worker's lock. */
void ucp_st_direct_pair_offer(const ucp_st_op_t *op, ucp_st_direct_gpu_t *gpu);

/** Why a pair cannot be of tier K; NULL if it can. Both sides come to the same
 *  answer. */
const char *ucp_st_direct_pair_why_not(const ucp_st_op_t *op,
                                       const ucp_st_direct_gpu_t *own,
                                       const ucp_st_direct_gpu_t *other);

/** Move a pair on tier K. */
ucs_status_t ucp_st_direct_pair_bind(ucp_st_op_t *op,
                                     const ucp_st_direct_gpu_t *other);

/** The peer's buffer is open: UCS_OK if all is, on both sides; UCS_INPROGRESS;
 *  why it cannot be. May be called again. */
ucs_status_t ucp_st_direct_pair_opened(ucp_st_direct_op_t *direct,
                                       void *buffer);

/** Undo ucp_st_direct_pair_offer(), and _bind(): what a live peer may still use
 *  stays. */
void ucp_st_direct_pair_release(ucp_st_direct_op_t *direct, int is_alone);

/** Write to `cmd` the start of a use, if the stream of the queue can; how many
 *  commands, or -1. */
int ucp_st_direct_pair_start_cmds(ucp_st_direct_op_t *direct,
                                  ucp_st_queue_h queue, uint64_t use,
                                  ucs_gstream_cmd_t *cmd);

/** A thread starts a use of one that is_threaded. The stream's lock is held. */
ucs_status_t ucp_st_direct_pair_start(ucp_st_direct_op_t *direct);

/** Of a halted pair: if the device is lost, what it has begun never ends. */
void ucp_st_direct_pair_check_lost(ucp_st_direct_op_t *direct);

/** Look after the stream that starts uses for threads: UCS_OK, or why it does
 *  not go on. */
ucs_status_t ucp_st_direct_pair_look(ucp_st_direct_op_t *direct);

/** Starts of both sides have no effect any more. */
void ucp_st_direct_pair_halt(ucp_st_direct_op_t *direct);

/** Non-zero, of a halted pair, while a start of this side, or of the other one,
 *  may still have an effect. */
int ucp_st_direct_pair_is_moving(const ucp_st_direct_op_t *direct,
                                 int is_other);

/** Uses that a side has started. */
uint64_t ucp_st_direct_pair_begun(const ucp_st_direct_op_t *direct,
                                  int is_other);

/** What kernels of the application start of the lane's pairs: st_lane.h. */
extern const ucp_st_lane_ahead_ops_t ucp_st_direct_ahead;

/** Uses are started on the stream of a queue from now on. */
void ucp_st_direct_use_stream(ucp_st_direct_op_t *direct, ucp_st_queue_h queue);

/** Begin a copy between its buffers, its `copy`. UCS_INPROGRESS;
 *  UCS_ERR_CONNECTION_RESET if the peer's process has ended; what
 *  ucs_gstream_copy_begin() returns. */
ucs_status_t ucp_st_direct_gpu_begin(ucp_st_direct_op_t *direct, size_t offset,
                                     size_t length);

/** Copy between the buffer and the attached one. UCS_OK;
 *  UCS_ERR_CONNECTION_RESET if that process has ended; UCS_ERR_IO_ERROR. */
ucs_status_t ucp_st_direct_attach_copy(const ucp_st_direct_op_t *direct,
                                       size_t offset, size_t length);

#endif
