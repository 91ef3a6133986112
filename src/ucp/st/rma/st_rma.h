/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma.h - one-sided operations.
 *
 * A key has one lane, whose functions (ucp_st_rma_lane_ops_t) make the stream
 * commands of operations with it. On lane trig it is for one NIC of its owner,
 * so that all processes come to the memory by that one. Lane and NIC are the
 * *way* of an operation: a lane's id, or a number behind those.
 *
 * Every operation that was enqueued ends once, with or without success, even if
 * its queue or peer fails. Then it is counted in its queue's word of that way.
 * A quiet waits until the words have reached
 * the numbers of operations that were enqueued before it. Those may end in any
 * order: no later one begins before the stream has passed the quiet.
 *
 * An error puts the queue in error (ucp_st_queue_fail()). Operations that the
 * stream comes to later end at once, without effect.
 */
#ifndef UCP_ST_RMA_INTERNAL_H_
#define UCP_ST_RMA_INTERNAL_H_

#include <ucp_st.h>

#include "core/st_peer.h"
#include "core/st_queue.h"
#include "core/st_stack.h"
#include "core/st_waits.h"
#include "core/st_worker.h"
#include "ctrl/st_service.h"
#include "direct/st_direct_rma.h"
#include "rma/st_rma_proto.h"
#include "trig/st_trig_rma.h"

#include <ucs_gstream_pair.h>

#include <ucs/datastruct/khash.h>
#include <ucs/datastruct/list.h>

#include <pthread.h>

/** Ways of operations: kernels of GPUs' streams are one more, which nothing
 *  waits for. */
#define UCP_ST_RMA_WAY_KERNEL UCP_ST_QUEUE_MAX_WAYS
#define UCP_ST_RMA_NUM_WAYS   (UCP_ST_QUEUE_MAX_WAYS + 1)

/** In place of an address: streams of devices do not reach the memory. */
#define UCP_ST_RMA_PLACE_NONE ((void*)UINTPTR_MAX)

/** Memory that streams of devices may reach. Read-only except `starts`, which
 *  are atomic. */
typedef struct ucp_st_rma_place {
    ucp_st_direct_map_t *map;     /* that it lies in, or NULL; held */
    const void          *address; /* here */
    size_t              length;
    void                *starts[UCS_GSTREAM_TYPE_LAST]; /* where those of a
                                     runtime have it; NULL: it was not asked */
} ucp_st_rma_place_t;

/**
 * Registered memory. Read-only except `refs`, `status` and `reach`, which are
 * atomic. `refs` counts operations and waits of own queues, and accesses that
 * this process makes for peers.
 */
typedef struct ucp_st_memh {
    ucp_st_worker_h worker;
    uint8_t         *address;
    size_t          length;
    uint64_t        id;    /* unique in the worker */
    unsigned        lanes; /* bit mask of those that serve it */
    ucs_gstream_memory_attr_t memory; /* that it is */
    unsigned        refs;
    ucs_status_t    status; /* an error: signals there mean nothing, as the
                               library may have stored to their words. Set under
                               `wait_lock` */
    uint8_t         reach[UCS_GSTREAM_TYPE_LAST]; /* whether streams of devices
                               wait for words there: ucp_st_rma_reach_t */
    ucp_st_rma_place_t place;
    void            *priv[UCP_ST_PRIV_LAST];
} ucp_st_memh_t;

/** Whether streams of a type can wait for all words of registered memory. */
typedef enum {
    UCP_ST_RMA_REACH_UNKNOWN,
    UCP_ST_RMA_REACH_YES,
    UCP_ST_RMA_REACH_NO
} ucp_st_rma_reach_t;

KHASH_MAP_INIT_INT64(ucp_st_mems, ucp_st_memh_t*)

/** Registered memory of a peer. Read-only except `refs`, which is atomic. */
typedef struct ucp_st_rkey {
    ucp_st_peer_h                      peer;
    const struct ucp_st_rma_lane_ops   *lane;
    unsigned                           way;
    uint64_t                           mem_id;
    uint64_t                           remote; /* address there */
    size_t                             length;
    unsigned                           refs;
    int                                is_looked; /* its owner finds signals
                                                     without notification */
    ucp_st_rma_place_t                 place;     /* lane direct: as it is
                                                     mapped here */
    void                               *priv[UCP_ST_PRIV_LAST];
} ucp_st_rkey_t;

/** An operation that was found good. */
typedef struct ucp_st_rma {
    ucp_st_queue_h     queue;
    ucp_st_rma_type_t  type;
    ucp_st_number_t    number;   /* of an addition */
    ucp_st_peer_h      peer;
    unsigned           way;
    int                is_strict;
    ucp_st_memh_t      *mem;     /* NULL if length is 0 */
    uint8_t            *buffer;  /* there */
    size_t             length;
    ucp_st_rkey_t      *rkey;    /* NULL if length is 0 */
    uint64_t           offset;   /* there */
    ucp_st_rkey_t      *signal;  /* NULL: none; of the same way */
    uint64_t           signal_offset;
    uint64_t           signal_value;
    ucp_st_signal_op_t signal_op;
    unsigned           kernels;  /* mask of ucp_st_rma_kernel_part */
} ucp_st_rma_t;

/** Parts of an operation that a kernel of its queue's stream can carry out. */
enum ucp_st_rma_kernel_part {
    UCP_ST_RMA_KERNEL_DATA   = 1u << 0,
    UCP_ST_RMA_KERNEL_SIGNAL = 1u << 1
};

/** Operations of one queue with one peer. Protected by the worker's lock. Lives
 *  as long as the queue. */
typedef struct ucp_st_rma_flow {
    ucs_list_link_t list;                   /* in the queue's */
    ucp_st_peer_h   peer;
    uint64_t        last[UCP_ST_RMA_NUM_WAYS]; /* number of the last one, among
                                               those of the queue */
    ucs_list_link_t ops;                    /* of lane host that have not ended,
                                               as they were enqueued */
} ucp_st_rma_flow_t;

/** A queue's private data. Used by the thread that calls for the queue; the
 *  worker's lock protects `flows` and `trig`. */
typedef struct ucp_st_queue_rma {
    uint64_t          issued[UCP_ST_RMA_NUM_WAYS]; /* enqueued; see
                                                   ucp_st_queue_count() */
    uint64_t          waited[UCP_ST_RMA_NUM_WAYS]; /* of these, those that the
                                                   stream waits for */
    uint64_t          puts;                     /* enqueued; likewise */
    uint64_t          gets;
    uint64_t          signals;
    uint64_t          signal_waits;
    uint64_t          quiets;
    uint64_t          quiet_seq;                /* batch of the last one; read
                                                   by others, atomic */
    ucp_st_look_t     look;                     /* while the stream is there;
                                                   worker's lock */
    ucs_list_link_t   flows;                    /* ucp_st_rma_flow_t */
    struct ucp_st_rma_trig *trigs[UCP_ST_TRIG_MAX_RAILS]; /* lane trig: or
                                                   NULL */
    ucs_list_link_t   kernels;                  /* operations that kernels carry
                                                   out; worker's lock */
    ucs_gstream_cell_h cell;                    /* of these; NULL: there are
                                                   none */
    int               has_asked;                /* for it */
} ucp_st_queue_rma_t;

/** What may write signals without waking this process. */
enum ucp_st_rma_untold {
    UCP_ST_RMA_UNTOLD_NIC    = 1u << 0,
    UCP_ST_RMA_UNTOLD_KERNEL = 1u << 1 /**< Of a peer's stream */
};

/** A worker's private data. Protected by its lock unless a field says
 *  otherwise. */
typedef struct ucp_st_rma_dev {
    khash_t(ucp_st_mems)      mems;      /* by id */
    uint64_t                  next_id;   /* of memory, and of operations */
    unsigned                  num_rkeys;
    ucp_st_stack_t            begun;     /* ucp_st_rma_host_op_t that streams
                                            have come to; atomic */
    ucs_list_link_t           ready;     /* ucp_st_rma_host_op_t whose turn it
                                            is */
    ucs_list_link_t           free_ops;  /* the same, unused */
    ucs_list_link_t           free_trig_ops; /* ucp_st_rma_trig_op_t, unused */
    ucs_list_link_t           free_kernel_ops; /* ucp_st_rma_kernel_op_t, unused
                                            */
    ucs_list_link_t           trigs;     /* ucp_st_rma_trig_t */
    pthread_mutex_t           wait_lock; /* protects the next two; no other lock
                                            is taken while it is held */
    ucs_list_link_t           waits;     /* ucp_st_rma_wait_t that streams are
                                            at, and those that streams do
                                            themselves, once enqueued */
    ucs_list_link_t           free_waits;/* unused ones */
    uint32_t                  sleepers;  /* streams that may sleep until a
                                            signal comes; atomic */
    unsigned                  untold;    /* mask of ucp_st_rma_untold; atomic,
                                            only grows */
    double                    sleep_time;/* when the last of these began,
                                            seconds; wait_lock */
    ucp_st_service_client_t   service;   /* its own */
} ucp_st_rma_dev_t;

/** A peer's private data. Protected by the worker's lock unless a field says
 *  otherwise. */
typedef struct ucp_st_rma_peer {
    ucs_list_link_t ops;       /* of lane host: ucp_st_rma_host_op_t */
    unsigned        num_trig;  /* operations of lane trig */
    unsigned        num_waits; /* for signals of this peer; atomic */
} ucp_st_rma_peer_t;

extern const ucp_st_component_t ucp_st_rma_component;

static inline ucp_st_rma_dev_t *ucp_st_rma_dev(ucp_st_worker_h worker)
{
    return worker->priv[UCP_ST_PRIV_RMA];
}

static inline ucp_st_rma_peer_t *ucp_st_rma_peer(ucp_st_peer_h peer)
{
    return peer->priv[UCP_ST_PRIV_RMA];
}

static inline ucp_st_queue_rma_t *ucp_st_queue_rma(ucp_st_queue_h queue)
{
    return queue->priv[UCP_ST_PRIV_RMA];
}

/** The queue's word of a way: counts operations that have ended. Streams wait
 *  on it; atomic. */
static inline volatile uint64_t *ucp_st_rma_word(ucp_st_queue_h queue,
                                                 unsigned way)
{
    return queue->marks[UCP_ST_QUEUE_WORD_RMA + way];
}

/** The lane of a way. */
static inline ucp_st_lane_t ucp_st_rma_way_lane(unsigned way)
{
    return (way == UCP_ST_RMA_WAY_KERNEL) ? UCP_ST_LANE_DIRECT :
           (way < UCP_ST_LANE_LAST) ? (ucp_st_lane_t)way : UCP_ST_LANE_TRIG;
}

/** The NIC of a way of lane trig, and back. */
static inline unsigned ucp_st_rma_way_nic(unsigned way)
{
    return (way < UCP_ST_LANE_LAST) ? 0 : (way - UCP_ST_LANE_LAST + 1);
}

static inline unsigned ucp_st_rma_way_of_nic(unsigned nic)
{
    return (nic == 0) ? UCP_ST_LANE_TRIG : (UCP_ST_LANE_LAST + nic - 1);
}

/** A lane's functions for keys and operations. The worker's lock is held unless
 *  a function says otherwise. */
typedef struct ucp_st_rma_lane_ops {
    ucp_st_lane_t id;

    /** Strict operations take their turn among others of the lane; else the
     *  stream has to wait for those. */
    int           is_orderly;

    /** Memory may be a device's; else it is not asked to register such. */
    int           reaches_devices;

    /** Register the memory with this lane, for access by peers and by own
     *  operations. An error means that the lane does not serve it. */
    ucs_status_t (*reg)(ucp_st_memh_t *mem);

    /** Give that back. */
    void (*dereg)(ucp_st_memh_t *mem);

    /** Write the lane's part of the key to `blob`, of UCP_ST_RKEY_MAX_BLOB
     *  bytes; how many it takes. */
    size_t (*pack)(const ucp_st_memh_t *mem, void *blob);

    /** Make the key usable with what the owner's pack() wrote; may change its
     *  way. An error means that the lane cannot do it. */
    ucs_status_t (*unpack)(ucp_st_rkey_t *rkey, const void *blob,
                           size_t length);

    /** Undo that. */
    void (*release)(ucp_st_rkey_t *rkey);

    /** An operation of the queue will be made: get ready what all of them need,
     *  and ask the stream's runtime for it, which may take long. The lock is
     *  not held. */
    ucs_status_t (*prepare)(ucp_st_queue_h queue, unsigned way);

    /** Make the stream command of an operation, which holds its memory and keys
     *  (ucp_st_rma_drop()) and comes behind all that its flow has. Nothing is
     *  left on error. */
    ucs_status_t (*start)(const ucp_st_rma_t *rma, ucp_st_rma_flow_t *flow,
                          ucs_gstream_cmd_t *cmd);

    /** The command that start() made last for the flow was not enqueued. */
    void (*undo)(const ucp_st_rma_t *rma, ucp_st_rma_flow_t *flow);

    /** Make the stream command that waits for all operations of the queue on
     *  this way, of which there are some. */
    ucs_status_t (*wait)(ucp_st_queue_h queue, unsigned way,
                         ucs_gstream_cmd_t *cmd);
} ucp_st_rma_lane_ops_t;

extern const ucp_st_rma_lane_ops_t ucp_st_rma_direct_ops;
extern const ucp_st_rma_lane_ops_t ucp_st_rma_host_ops;
extern const ucp_st_rma_lane_ops_t ucp_st_rma_kernel_ops;
extern const ucp_st_rma_lane_ops_t ucp_st_rma_trig_ops;

/** Bytes of a number. */
size_t ucp_st_rma_number_size(ucp_st_number_t number);

/** Add numbers. Neither place need be aligned. */
void ucp_st_rma_add(ucp_st_number_t number, void *sums, const void *numbers,
                    size_t length);

/** Make the command that ends the span of an operation's start, if events are
 *  recorded; how many commands. `cmd` is in the scratch of the operation's
 *  queue. */
size_t ucp_st_rma_trace_cmd(const ucp_st_rma_t *rma, ucp_st_lane_t lane,
                            ucs_gstream_cmd_t *cmd);

/** A lane's functions, and those of a way's. */
const ucp_st_rma_lane_ops_t *ucp_st_rma_lane(ucp_st_lane_t id);

static inline const ucp_st_rma_lane_ops_t *ucp_st_rma_way_ops(unsigned way)
{
    return (way == UCP_ST_RMA_WAY_KERNEL) ?
           &ucp_st_rma_kernel_ops : ucp_st_rma_lane(ucp_st_rma_way_lane(way));
}

/** Where streams of devices have some memory; NULL if they do not reach it, or
 *  not yet. Finds that out once, which may take a second. The lock is not
 *  held. */
void *ucp_st_rma_place_find(ucp_st_rma_place_t *place, ucs_gstream_h stream);

/** The parts of an operation that a kernel can carry out; as
 *  ucp_st_rma_place_find(). */
unsigned ucp_st_rma_kernel_parts(const ucp_st_rma_t *rma);

/** Give back what a queue's operations hold that kernels have carried out. The
 *  lock is held, here and below. */
void ucp_st_rma_kernel_reap(ucp_st_queue_h queue);

/** Non-zero if kernels are to carry out operations with the peer. */
int ucp_st_rma_kernel_is_behind(ucp_st_queue_h queue, ucp_st_peer_h peer);

/** The service thread looks after streams that wait for signals. */
int ucp_st_rma_serve(void *worker);

/** Fail queues whose streams wait for a signal that does not come: of a peer
 *  that is gone, or in memory where signals mean nothing. The lock is held. */
void ucp_st_rma_wait_end_dead(ucp_st_worker_h worker);

/** A queue fails: its waits pass once all that it has is stopped. The lock is
 *  held. */
void ucp_st_rma_wait_queue_fail(ucp_st_queue_h queue);

/** Give back waits that streams did themselves, and have passed. */
void ucp_st_rma_wait_reap(ucp_st_worker_h worker);

/** An object, all zero, of a kind that begins with its list link: an unused or
 *  a new one. NULL without memory. Enqueueing allocates nothing once there are
 *  enough. */
void *ucp_st_rma_obj_get(ucs_list_link_t *unused, size_t size);

/** Free them, at the worker's end. */
void ucp_st_rma_objs_free(ucs_list_link_t *unused);

/** Free the waits for signals, at the worker's end. */
void ucp_st_rma_waits_free(ucp_st_rma_dev_t *dev);

/** Log why a call is refused. Returns UCS_ERR_INVALID_PARAM. */
ucs_status_t ucp_st_rma_refuse(ucp_st_queue_h queue, const char *what);

/** UCS_OK if a signal is an aligned word in memory of `size` bytes. */
ucs_status_t ucp_st_rma_check_word(ucp_st_queue_h queue, uint64_t address,
                                   uint64_t offset, uint64_t size);

/**
 * Wait, not without bound, until the NIC has reported all operations whose
 * quiets streams have passed; and give back what only this process holds. The
 * lock is not held, so that others go on meanwhile.
 */
void ucp_st_rma_reap(ucp_st_worker_h worker);

/** Memory by its id, if one of some lanes serves it and all of a range lies
 *  there, with a reference; else NULL. The lock is held. */
ucp_st_memh_t *ucp_st_rma_mem_get(ucp_st_worker_h worker, unsigned lanes,
                                  uint64_t id, uint64_t offset,
                                  uint64_t length);

/** Non-zero if all of a range lies in memory of `size` bytes. */
static inline int ucp_st_rma_is_inside(uint64_t offset, uint64_t length,
                                       uint64_t size)
{
    return (offset <= size) && (length <= (size - offset));
}

/** Take a reference, or give one back. The release pairs with the acquire load
 *  in ucp_st_rma_is_held(): a thread that finds no reference sees all that was
 *  done with one. */
static inline void ucp_st_rma_hold(unsigned *refs)
{
    (void)__atomic_fetch_add(refs, 1, __ATOMIC_RELAXED);
}

static inline void ucp_st_rma_release(unsigned *refs)
{
    (void)__atomic_fetch_sub(refs, 1, __ATOMIC_RELEASE);
}

static inline int ucp_st_rma_is_held(const unsigned *refs)
{
    return __atomic_load_n(refs, __ATOMIC_ACQUIRE) > 0;
}

/** Give back the memory and the keys that an operation holds. */
void ucp_st_rma_drop(const ucp_st_rma_t *rma);

/** wait() of lanes whose quiets wait for the queue's word. */
ucs_status_t ucp_st_rma_wait_word(ucp_st_queue_h queue, unsigned way,
                                  ucs_gstream_cmd_t *cmd);

/** release() of lanes whose part of a key holds nothing. */
void ucp_st_rma_release_none(ucp_st_rkey_t *rkey);

/** prepare() of a lane that needs nothing. */
ucs_status_t ucp_st_rma_prepare_none(ucp_st_queue_h queue, unsigned way);

/** An operation has ended: let quiets pass. In any thread; the queue may be
 *  gone afterwards. */
void ucp_st_rma_ended(ucp_st_queue_h queue, unsigned way);

/** Carry out a signal in memory of this process. All that was done before is
 *  visible to a thread that sees it. */
void ucp_st_rma_signal(uint64_t *word, ucp_st_signal_op_t op, uint64_t value);

/** Look for signals of peers' kernels from now on, if there may be such. Before
 *  a key is made that says so. The lock is not held. */
void ucp_st_rma_look_for_kernels(ucp_st_worker_h worker);

/** Signals may have come: wake streams that sleep. In any thread. */
void ucp_st_rma_signaled(ucp_st_worker_h worker);

/** Wake streams whose waits for signals may pass, also because their queues are
 *  stopped. In any thread. */
void ucp_st_rma_look(ucp_st_worker_h worker);

/** The worker's hook of this name. */
void ucp_st_rma_waits(ucp_st_worker_h worker, ucp_st_waits_t *waits);

/** Lane host: take part in the work of the service thread's UCP worker, if
 *  there is one. It is not driven yet. */
ucs_status_t ucp_st_rma_host_open(ucp_st_worker_h worker);

/** The peer is gone: end operations that wait for its answer. The lock is
 *  held. */
void ucp_st_rma_host_peer_gone(ucp_st_peer_h peer);

/** Lane trig: a queue fails, so that what its stream starts from now on has no
 *  effect. The lock is held, as it is for the rest. */
void ucp_st_rma_trig_halt(struct ucp_st_rma_trig *trig);

/** Non-zero while operations have not ended here although their queue's stream
 *  has passed a quiet of them. */
int ucp_st_rma_trig_is_behind(ucp_st_worker_h worker);

/** Call a function with each part of a queue's. */
void ucp_st_rma_trig_each(ucp_st_queue_h queue,
                          void (*func)(struct ucp_st_rma_trig *trig));

/** The commands of start() and wait() were enqueued: post their operations. */
void ucp_st_rma_trig_commit(struct ucp_st_rma_trig *trig);

/** The queue goes: its part is given back when the NIC has finished with it. */
void ucp_st_rma_trig_leave(struct ucp_st_rma_trig *trig);

/** The peer is gone: end the operations with it. */
void ucp_st_rma_trig_peer_gone(ucp_st_peer_h peer);

#endif
