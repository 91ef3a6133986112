/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_component.h - what core calls outside of core.
 *
 * A component has tables of functions here, and private data in each object
 * that is listed below. A lane has the same (st_lane.h). st_components.c lists
 * them all. They include core; core includes none of them but ctrl, which is
 * below it.
 */
#ifndef UCP_ST_COMPONENT_H_
#define UCP_ST_COMPONENT_H_

#include <ucp_st.h>

struct ucp_st_waits;
struct ucp_st_ctrl_fifo;

/** Objects that have private data of components and lanes. */
typedef enum {
    UCP_ST_OBJECT_WORKER,
    UCP_ST_OBJECT_PEER,
    UCP_ST_OBJECT_QUEUE,
    UCP_ST_OBJECT_MEM,  /**< Registered memory, */
    UCP_ST_OBJECT_RKEY, /**< and that of a peer */
    UCP_ST_OBJECT_LAST
} ucp_st_object_t;

/** Whose private data; a lane has the number UCP_ST_PRIV_LANES + its id. */
typedef enum {
    UCP_ST_PRIV_CTRL,
    UCP_ST_PRIV_WATCH,
    UCP_ST_PRIV_RMA,
    UCP_ST_PRIV_TAG,
    UCP_ST_PRIV_FIFO,
    UCP_ST_PRIV_LANES,
    UCP_ST_PRIV_LAST = UCP_ST_PRIV_LANES + UCP_ST_LANE_LAST
} ucp_st_priv_t;

/** Sizes of one component's or lane's private data, by object, bytes. */
typedef size_t ucp_st_priv_sizes_t[UCP_ST_OBJECT_LAST];

/** How long the end of a worker goes on because of a component. */
typedef enum {
    UCP_ST_DRAIN_DONE,    /**< There is nothing to wait for */
    UCP_ST_DRAIN_ANSWERS, /**< Peers have not answered, and may be gone */
    UCP_ST_DRAIN_SENDS    /**< UCP has something to deliver, or the NIC is about
                               to end something */
} ucp_st_drain_t;

/** The lock is not held and no other thread uses the worker, unless a function
 *  says otherwise. */
typedef struct ucp_st_worker_hooks {
    /** Set the private data up, which is all zero. */
    void (*init)(ucp_st_worker_h worker);

    /** The UCP worker is there and the lanes are open: allocate the rest. The
     *  service thread may serve the component from now on. */
    ucs_status_t (*open)(ucp_st_worker_h worker);

    /** Non-zero while the user has handles of it. The lock is held. */
    int (*is_used)(ucp_st_worker_h worker);

    /** The worker is about to tell its peers that it leaves: deliver, in a
     *  bounded time, what they are to have before. */
    void (*leave)(ucp_st_worker_h worker);

    /** Tell what is under way at the end of the worker. The lock is held. */
    ucp_st_drain_t (*drain)(ucp_st_worker_h worker);

    /** Ask about the peers that something here waits for
     *  (ucp_st_watch_ask_peer()). The lock is held, other threads use the
     *  worker. */
    void (*ask)(ucp_st_worker_h worker);

    /** Write what waits for a peer, as st_waits.h says. The lock is held, other
     *  threads use the worker. */
    void (*waits)(ucp_st_worker_h worker, struct ucp_st_waits *waits);

    /** The peers are about to go: end what is under way. */
    void (*stop)(ucp_st_worker_h worker);

    /** The peers are gone, and stop() was called: undo open(). The lanes are
     *  open. */
    void (*close)(ucp_st_worker_h worker);

    /** Undo init(). The lanes are closed. */
    void (*cleanup)(ucp_st_worker_h worker);
} ucp_st_worker_hooks_t;

/** The worker's lock is held. */
typedef struct ucp_st_peer_hooks {
    /** Set the private data up, which is all zero. */
    void (*init)(ucp_st_peer_h peer);

    /** The peer is gone (its `status`): end what needs it. */
    void (*gone)(ucp_st_peer_h peer);

    /** Nothing reaches the memory of the peer, which is gone, any more
     *  (`closed`). Follows gone() if it was not so then. */
    void (*closed)(ucp_st_peer_h peer);

    /** Non-zero while something is under way that the peer takes part in. */
    int (*is_used)(ucp_st_peer_h peer);

    /** Non-zero while is_used() is, or while a stream waits for the peer. */
    int (*is_awaited)(ucp_st_peer_h peer);

    /** The peer, which is not gone, has sent this of a message of a FIFO. */
    void (*fifo)(ucp_st_peer_h peer, const struct ucp_st_ctrl_fifo *msg);
} ucp_st_peer_hooks_t;

/** The worker's lock is held, unless a function says otherwise. */
typedef struct ucp_st_queue_hooks {
    /** Set the private data up, which is all zero. The lock is not held. */
    void (*init)(ucp_st_queue_h queue);

    /** Non-zero while the queue cannot be destroyed although its stream has
     *  passed all its commands. May wait a bounded time until completions are
     *  reaped. The lock is not held. */
    int (*is_busy)(ucp_st_queue_h queue);

    /** The queue is in error from now on: what its stream starts later must
     *  have no effect. Nothing has been released yet. */
    void (*fail)(ucp_st_queue_h queue);

    /** Add what the queue has counted. */
    void (*count)(ucp_st_queue_h queue, ucp_st_stats_t *stats);

    /** The queue is being destroyed. */
    void (*cleanup)(ucp_st_queue_h queue);
} ucp_st_queue_hooks_t;

/** A component: no entry is empty. */
typedef struct ucp_st_component {
    ucp_st_priv_t         priv;
    ucp_st_priv_sizes_t   sizes;
    ucp_st_worker_hooks_t worker;
    ucp_st_peer_hooks_t   peer;
    ucp_st_queue_hooks_t  queue;
} ucp_st_component_t;

#define UCP_ST_NUM_COMPONENTS 5

/** All of them, in the order in which they are opened. */
extern const ucp_st_component_t *const
        ucp_st_components[UCP_ST_NUM_COMPONENTS];

/** For each of them; `_component` is a pointer. */
#define ucp_st_for_each_component(_component) \
    for (const ucp_st_component_t *const *_it = ucp_st_components; \
         (_it < &ucp_st_components[UCP_ST_NUM_COMPONENTS]) && \
         (((_component) = *_it) != NULL); ++_it)

/** Allocate an object of `size` bytes with the private data of each component
 *  and lane, all zero. The object has, at `priv_offset`, an array of
 *  UCP_ST_PRIV_LAST pointers to that data, which is set. NULL without memory;
 *  release with free(). */
void *ucp_st_object_alloc(ucp_st_object_t object, size_t size,
                          size_t priv_offset);

/** Functions that do nothing, for entries of tables, also of lanes. */
void ucp_st_worker_hook_none(ucp_st_worker_h worker);
ucs_status_t ucp_st_worker_hook_ok(ucp_st_worker_h worker);
void ucp_st_worker_hook_waits(ucp_st_worker_h worker,
                              struct ucp_st_waits *waits);
void ucp_st_peer_hook_none(ucp_st_peer_h peer);
int ucp_st_peer_hook_zero(ucp_st_peer_h peer);
void ucp_st_peer_hook_fifo(ucp_st_peer_h peer,
                           const struct ucp_st_ctrl_fifo *msg);
void ucp_st_queue_hook_none(ucp_st_queue_h queue);
int ucp_st_queue_hook_zero(ucp_st_queue_h queue);
void ucp_st_queue_hook_count(ucp_st_queue_h queue, ucp_st_stats_t *stats);

#endif
