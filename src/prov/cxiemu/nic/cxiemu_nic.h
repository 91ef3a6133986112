/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_nic.h - the emulated NIC of a domain: its memory, its lock, and what
 * wakes its threads.
 *
 * The folders here are layers. A file calls and includes what is of its own
 * layer or of one below. Within a layer, too, calls go one way.
 *
 *   fabric  libfabric's calls: the provider, its objects, what a program posts
 *   run     the NIC's begin and end (card), its thread and those that
 *           wait (wait), progress, stores of streams (window)
 *   op      operations. At the initiator: dwq, on txop, on emit. At the target:
 *           late, on target, on rx, mr and atomic. What they all hold: op, ep
 *   cxi     trigger pages: doorbell, on trap, on decode
 *   obj     where operations are counted and reported, and addresses: cntr, cq,
 *           av
 *   nic     links between processes: drain, on connect, on link and peer; below
 *           them the NIC's memory and notifications (nic, proto)
 *   base    what a process has once: settings, log, mappings, GPUs' memory, its
 *           part of the service, addresses, texts of errors, counts of leaks
 *
 * A link reports upwards by cxiemu_link_events_t, one table, which
 * cxiemu_card.c sets. Other calls upwards are libfabric's own tables, and
 * functions that a caller passes along to be called back.
 *
 * All work is done by threads of the process that owns the NIC, under one lock:
 * by threads that trigger or wait, inline, and else by a thread of the NIC.
 * Peers only write records into links and say so by a ready bit, hence a
 * peer that is stopped or killed holds nothing that this process needs.
 *
 *   peer                                      owner
 *   ----                                      -----
 *   record: fields, then seq (release)
 *   fence
 *   ready[w] |= bit      (unless set)         summary := 0     (seq_cst)
 *   summary  |= 1 << w   (unless set)         ready[w] := 0    (seq_cst)
 *   wakes the thread, if need be              record: seq (acquire), fields
 *
 * Either the peer's look at ready[w] comes before the owner's exchange, and
 * then the owner sees the record; or it comes after it, and then the peer finds
 * the bits clear and sets them again. cxiemu_wait.h has when the thread has to
 * be woken.
 */
#ifndef CXIEMU_NIC_H_
#define CXIEMU_NIC_H_

#include "cxiemu.h"
#include "base/cxiemu_map.h"
#include "base/cxiemu_param.h"
#include "nic/cxiemu_proto.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

struct cxiemu_ep;
struct cxiemu_link;
struct cxiemu_link_events;
struct cxiemu_peer;
struct cxiemu_cntr;
struct cxiemu_mr;
struct cxiemu_txop;
struct cxiemu_dwq_entry;
struct cxiemu_pending;
struct cxiemu_recv;
struct cxiemu_window;

TAILQ_HEAD(cxiemu_txop_list, cxiemu_txop);
STAILQ_HEAD(cxiemu_cntr_list, cxiemu_cntr);
TAILQ_HEAD(cxiemu_link_list, cxiemu_link);
TAILQ_HEAD(cxiemu_pending_list, cxiemu_pending);
TAILQ_HEAD(cxiemu_recv_list, cxiemu_recv);
TAILQ_HEAD(cxiemu_peer_list, cxiemu_peer);
LIST_HEAD(cxiemu_peer_bucket, cxiemu_peer);
TAILQ_HEAD(cxiemu_held_list, cxiemu_dwq_entry);

#define CXIEMU_MR_BUCKETS   1024
#define CXIEMU_PEER_BUCKETS 1024

/** What is copied at a time, bytes: the lock is held meanwhile. Progress ends
 *  when it has copied so much. */
#define CXIEMU_COPY_SHARE (1024 * 1024)


/**
 * A NIC. The lock protects everything here and in all objects of its domain,
 * but for what the shared memory's own rules cover. It is never held by a
 * thread that sleeps.
 */
typedef struct cxiemu_nic {
    pthread_mutex_t            lock;
    cxiemu_map_t               *map;
    cxiemu_nic_shm_t           *shm;
    uint64_t                   nonce;
    uint64_t                   rng;       /**< State of the random sequence */

    struct cxiemu_link         *ports[CXIEMU_PORTS]; /**< By port; both kinds */
    struct cxiemu_link_list    links;     /**< All, both kinds */
    struct cxiemu_link_list    stalled;   /**< With operations that found no
                                               room */
    struct cxiemu_link_list    dirty;     /**< To be flushed */
    struct cxiemu_link_list    lost;      /**< To be freed */
    const struct cxiemu_link_events *events; /**< What they report to */
    int                        links_seen; /**< There is, or was, a link */
    struct cxiemu_peer_list    peers;
    int                        epoll;     /**< Of the peers' processes */
    struct cxiemu_peer_bucket  peers_by_nonce[CXIEMU_PEER_BUCKETS];
    uint64_t                   checked;   /**< When peers were last looked at */
    struct cxiemu_ep           *eps[CXIEMU_MAX_EPS];
    struct cxiemu_mr           *mrs[CXIEMU_MR_BUCKETS]; /**< By key, chained */

    struct cxiemu_cntr_list    fired;     /**< Changed; triggers to be looked
                                               at */
    SLIST_HEAD(, cxiemu_cntr)  wb_due;    /**< Writebacks asked for */
    LIST_HEAD(, cxiemu_cntr)   doorbells; /**< Those that are watched */
    struct cxiemu_window       *window;   /**< Their pages; NULL until one is
                                               asked for */
    LIST_HEAD(, cxiemu_dwq_entry) dwq;    /**< Deferred work, all */
    LIST_HEAD(, cxiemu_dwq_entry) dwq_free; /**< Entries for reuse */
    int                        is_flushing; /**< No work is started */
    struct cxiemu_held_list    held;      /**< Deferred work that the stalled
                                               trigger queue holds, in order */
    size_t                     held_slots; /**< Slots of the queue it takes */
    struct cxiemu_pending_list late;      /**< Arrived, not yet carried out */
    uint64_t                   late_pass; /**< Passes over them */
    struct cxiemu_recv_list    pulled;    /**< Whose messages are fetched in
                                               shares */
    struct cxiemu_txop_pool    *txops;    /**< Made by the first operation */
    uint64_t                   num_ops;   /**< Started; tells which will fail */
    unsigned                   next_ep;   /**< Where a free number is sought */
    int                        in_progress;
    size_t                     copied;    /**< Since the last progress began,
                                               bytes */
    int                        may_attach; /**< Data path: cross-memory attach
                                                is possible here */

    /* The thread, and waiters; see cxiemu_wait.h */
    pthread_t                  thread;
    int                        thread_up;
    int                        stop;      /**< The thread is to end; atomic */
    int                        in_look;   /**< It makes progress right now */
    int                        is_called; /**< It was called since its last
                                               look; atomic */
    int                        is_read;   /**< A queue or counter was read since
                                               then, or since fi_trywait();
                                               atomic */
    int                        is_unfinished; /**< As cxiemu_nic_unfinished()
                                               was when the last progress
                                               ended; atomic */
    unsigned                   waiters;   /**< Threads that sleep in the NIC */
    uint32_t                   wakes;     /**< Their futex; atomic */
    int                        is_polled; /**< Host streams that wait poll it */
    cxiemu_poller_t            poller;    /**< For them */
    unsigned                   num_plain; /**< Watched pages that are memory,
                                               and of which nobody tells */
} cxiemu_nic_t;


/** Something that local sleepers wait for may have happened: have them look.
 *  Lock held. Cheap when nobody sleeps. */
void cxiemu_nic_wake_waiters(cxiemu_nic_t *nic);

static inline void cxiemu_nic_lock(cxiemu_nic_t *nic)
{
    (void)pthread_mutex_lock(&nic->lock);
}

static inline void cxiemu_nic_unlock(cxiemu_nic_t *nic)
{
    (void)pthread_mutex_unlock(&nic->lock);
}

/** Have the NIC's thread look at once; any thread, no lock needed. */
void cxiemu_nic_wake_thread(cxiemu_nic_t *nic);

/** Notify the NIC of a peer, or one's own, that there is work at @a port, and
 *  wake its thread if need be. */
void cxiemu_nic_notify(cxiemu_nic_shm_t *shm, uint32_t port);

/** The same, but wake no thread: the caller does that. */
void cxiemu_nic_mark(cxiemu_nic_shm_t *shm, uint32_t port);

/** A random number other than 0 that names a NIC or a link. */
uint64_t cxiemu_nic_nonce(void);

/** Next number of the NIC's random sequence (strict mode). Lock held. */
uint64_t cxiemu_nic_random(cxiemu_nic_t *nic);

#define CXIEMU_NSEC_PER_MSEC 1000000ull

/** CLOCK_MONOTONIC in nanoseconds. */
uint64_t cxiemu_nic_now(void);

/** Of cxiemu_set_hooks(), or NULL. */
const cxiemu_hooks_t *cxiemu_hooks(void);

#endif
