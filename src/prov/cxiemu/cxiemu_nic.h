/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_nic.h - the emulated NIC of a domain: its memory, its lock, its
 * progress and its sleepers.
 *
 * All work is done by threads of the process that owns the NIC, under one lock:
 * by whoever triggers or waits, inline, and by a thread of the NIC when nobody
 * does. Peers only write records into links and say so by a ready bit, hence a
 * peer that is stopped or killed holds nothing that this process needs.
 *
 *   peer                                      owner
 *   ----                                      -----
 *   record: fields, then seq (release)
 *   fence
 *   ready[w] |= bit      (unless set)         summary := 0     (seq_cst)
 *   summary  |= 1 << w   (unless set)         ready[w] := 0    (seq_cst)
 *   sleeper? kick                             record: seq (acquire), fields
 *
 * Either the peer's read-modify-write of ready[w] comes before the owner's, who
 * then sees the record, or after it, and then the peer finds the summary bit
 * clear and sets it again.
 *
 * Who has to be woken is decided by the peer, after its bits (seq_cst):
 *   - waiters, if any sleep;
 *   - else the thread, if it is asleep, or if the application has said that it
 *     rests (polls_until is 0);
 *   - else the thread, if it is urgent and polls_until is over: the application
 *     may have ceased to poll. Waking costs the peer 10 us where cores are
 *     idle, and a thread that is not asleep looks by itself within
 *     milliseconds. An application that shares its processor with others is
 *     trusted for longer: the thread would only compete with it. When it has
 *     not polled by then, see cxiemu_promise.h.
 * A sleeper announces itself (seq_cst) before it looks at the summary for the
 * last time: one of the two sees the other.
 */
#ifndef CXIEMU_NIC_H_
#define CXIEMU_NIC_H_

#include "cxiemu.h"
#include "cxiemu_lock.h"
#include "cxiemu_map.h"
#include "cxiemu_param.h"
#include "cxiemu_proto.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

/** For how long a poll promises another one: of a thread that spins, at least
 *  (or twice its pauses between messages, where these are longer), and of one
 *  that lets others run in between. */
#define CXIEMU_SPINS_NS  50000
#define CXIEMU_YIELDS_NS 2000000

/** The thread is told of doorbells to watch at most that often: where the host
 *  triggers, they come and go with each operation. It watches for twice that
 *  long, so that nobody is missed. */
#define CXIEMU_WATCH_KICK_NS 8000000

struct cxiemu_ep;
struct cxiemu_link;
struct cxiemu_peer;
struct cxiemu_cntr;
struct cxiemu_mr;
struct cxiemu_txop;
struct cxiemu_dwq_entry;
struct cxiemu_pending;
struct cxiemu_mem;

TAILQ_HEAD(cxiemu_txop_list, cxiemu_txop);
STAILQ_HEAD(cxiemu_cntr_list, cxiemu_cntr);
TAILQ_HEAD(cxiemu_link_list, cxiemu_link);
TAILQ_HEAD(cxiemu_pending_list, cxiemu_pending);
TAILQ_HEAD(cxiemu_peer_list, cxiemu_peer);

#define CXIEMU_MR_BUCKETS 1024

/** Stores that are told of together, at most. */
#define CXIEMU_STORED_MAX 64

/** Links that are watched, at most: each costs every look a little. */
#define CXIEMU_WATCHED_MAX 8


/** A link that is looked at without being told. */
typedef struct cxiemu_watch {
    const uint32_t     *seq; /**< Of its next record or acknowledgement */
    uint32_t           next; /**< What that will be */
    struct cxiemu_link *link;
} cxiemu_watch_t;


/**
 * A NIC. The lock protects everything here and in all objects of its domain,
 * but for what the shared memory's own rules cover. It is never held by a
 * thread that sleeps.
 */
typedef struct cxiemu_nic {
    cxiemu_lock_t              lock;
    cxiemu_map_t               *map;
    cxiemu_nic_shm_t           *shm;
    uint64_t                   nonce;
    uint64_t                   rng;       /**< State of the random sequence */

    struct cxiemu_link         *ports[CXIEMU_PORTS]; /**< By port; both kinds */
    struct cxiemu_link_list    links;     /**< All, both kinds */
    struct cxiemu_link_list    stalled;   /**< With operations that found no
                                               room */
    struct cxiemu_link_list    dirty;     /**< To be flushed */
    struct cxiemu_link_list    graves;    /**< Lost, to be freed */
    struct cxiemu_link_list    promises;  /**< Whose peer is to poll
                                               (cxiemu_promise.h) */
    uint64_t                   promised;  /**< Not after the first of them ends;
                                               CXIEMU_FOREVER if there are
                                               none */
    int                        links_seen; /**< There is, or was, a link */
    struct cxiemu_peer_list    peers;
    int                        epoll;     /**< Of the peers' processes */
    uint64_t                   checked;   /**< When peers were last looked at */
    struct cxiemu_ep           *eps[CXIEMU_MAX_EPS];
    struct cxiemu_mr           *mrs[CXIEMU_MR_BUCKETS]; /**< By key, chained */

    struct cxiemu_cntr_list    fired;     /**< Changed; triggers to be looked
                                               at */
    struct cxiemu_cntr         *wb_due;   /**< Writebacks asked for */
    struct cxiemu_cntr         *doorbells; /**< Those that are watched */
    struct cxiemu_dwq_entry    *dwq;      /**< Deferred work, all */
    struct cxiemu_dwq_entry    *dwq_free; /**< Entries for reuse */
    struct cxiemu_mem          *mems;     /**< mem_alloc(), by address */
    size_t                     num_mems;
    size_t                     max_mems;
    struct cxiemu_pending_list late;      /**< Arrived, not yet carried out */
    uint64_t                   late_pass; /**< Passes over them */
    struct cxiemu_txop_pool    *txops;    /**< Made by the first operation */
    uint64_t                   num_ops;   /**< Started; tells which will fail */
    unsigned                   next_ep;   /**< Where a free number is sought */
    uint32_t                   mem_epoch; /**< Changes with each mem_free(), so
                                               that peers map anew */

    /* Links that are looked at without being told (cxiemu_watch.h) */
    int                        may_watch; /**< The application polls now */
    unsigned                   num_watches;
    cxiemu_watch_t             watches[CXIEMU_WATCHED_MAX];
    uint64_t                   standing[CXIEMU_READY_WORDS]; /**< Their bits */
    uint64_t                   standing_words; /**< Those that are not 0 */
    uint32_t                   ended;     /**< shm->ended when the bits of links
                                               that peers ended were taken */

    /* Told of stores of 8 bytes or fewer; may be NULL */
    cxiemu_store_func_t        on_store;
    void                       *on_store_arg;
    unsigned                   num_stored; /**< It is still to be told of; none
                                                when the lock is given back */
    const void                 *stored[CXIEMU_STORED_MAX];
    int                        has_parts; /**< Parts of a message have come that
                                               is not all there */

    int                        in_progress;
    int                        nudged;    /**< The thread was woken for what is
                                               unfinished */
    int                        may_attach; /**< Data path: cross-memory attach
                                                is possible here */

    /* The thread, and local sleepers */
    pthread_t                  thread;
    int                        thread_up;
    int                        stop;       /**< The thread is to end; atomic */
    uint64_t                   watch_time; /**< When the thread was last kicked
                                                to watch a doorbell */
    unsigned                   watched;    /**< Counters with a doorbell that a
                                                device may write; atomic */
    uint64_t                   until;      /**< shm->polls_until */
    uint64_t                   stamped;    /**< When that was last looked at */
    int                        yielded;    /**< By a poll that yields */
    uint64_t                   promise_ns; /**< What a spinning poll promises */
    uint64_t                   polls;      /**< Of the application; atomic */
    int                        has_moved;  /**< Something was sent, or a poll
                                                has taken something, since the
                                                last poll */
    uint64_t                   spin_ns;    /**< How long waiters pause before
                                                they yield */
    unsigned                   sleepy;     /**< Polls that found the thread
                                                asleep, in a row */
    unsigned                   empty;      /**< Polls in a row that found
                                                nothing; atomic */
} cxiemu_nic_t;


/** Make the NIC of a domain, with its thread. 0, or -FI_E*. No lock. */
int cxiemu_nic_create(cxiemu_nic_t **nic_p);

/** End the thread, tell the peers, close the links, free. No endpoint, counter
 *  or region is left. No lock. */
void cxiemu_nic_destroy(cxiemu_nic_t *nic);


/**
 * Do all that can be done now: records and acknowledgements that came,
 * operations that found no room, doorbells, counters that fired. Lock held.
 * Bounded: a peer that sends without end is left after a share.
 * Returns how many things were done.
 */
unsigned cxiemu_nic_progress(cxiemu_nic_t *nic);

/** As cxiemu_nic_progress(), where the host has counted: what that triggers
 *  goes first, and the rest only if there is any. Lock held. */
void cxiemu_nic_triggered(cxiemu_nic_t *nic);

/** As cxiemu_nic_progress(), by an application's poll: takes and gives the lock
 *  itself (an occupied lock is left alone: its holder makes progress), and
 *  tells peers that there is a poller. */
unsigned cxiemu_nic_poll(cxiemu_nic_t *nic);

/** As cxiemu_nic_poll(), but the lock stays taken where that returns non-zero:
 *  cxiemu_nic_poll_end() then, with what was done. */
int cxiemu_nic_poll_begin(cxiemu_nic_t *nic, unsigned *count_p);
void cxiemu_nic_poll_end(cxiemu_nic_t *nic, unsigned count);

/** As cxiemu_nic_poll(), by a thread that lets others run between its polls,
 *  because they need its processor. */
unsigned cxiemu_nic_poll_shared(cxiemu_nic_t *nic);

/**
 * The application ceases to poll, for now: from here on peers wake the thread
 * for what they ring for. Makes progress a last time; what it returns is how
 * many things were done. Lock held.
 */
unsigned cxiemu_nic_rest(cxiemu_nic_t *nic);

/**
 * Sleep until @a ready(arg) says so; it is called with the lock held after
 * progress. The lock is held on entry and on return, not in between. Polls
 * shortly, then sleeps. @a timeout_ms < 0: for ever; 0: one look.
 * Returns 0, or -FI_ETIMEDOUT (-FI_EAGAIN for a time-out of 0).
 */
int cxiemu_nic_wait(cxiemu_nic_t *nic, int (*ready)(void *arg), void *arg,
                    int timeout_ms);

/** Something that local sleepers wait for may have happened: have them look.
 *  Lock held. Cheap when nobody sleeps. */
void cxiemu_nic_wake_waiters(cxiemu_nic_t *nic);

/** Tell of the stores that nobody was told of. Lock held. */
void cxiemu_nic_tell_stored(cxiemu_nic_t *nic);

static inline void cxiemu_nic_lock(cxiemu_nic_t *nic)
{
    cxiemu_lock_take(&nic->lock);
}

static inline void cxiemu_nic_unlock(cxiemu_nic_t *nic)
{
    if (nic->num_stored > 0) {
        cxiemu_nic_tell_stored(nic);
    }
    cxiemu_lock_give(&nic->lock);
}

/** The NIC has stored to memory of this process: a thread may sleep on a word
 *  of it, other than the one that made this progress. Lock held. Who is to be
 *  told needs a fence behind the store, one for many. */
static inline void cxiemu_nic_stored(cxiemu_nic_t *nic, const void *address,
                                     size_t length)
{
    cxiemu_nic_wake_waiters(nic);
    if ((nic->on_store != NULL) && (length <= sizeof(uint64_t))) {
        nic->stored[nic->num_stored] = address;
        if (++nic->num_stored == CXIEMU_STORED_MAX) {
            cxiemu_nic_tell_stored(nic);
        }
    }
}

/** Have the NIC's thread look at once; any thread, no lock needed. */
void cxiemu_nic_wake_thread(cxiemu_nic_t *nic);

/** Tell the NIC of a peer that bit @a port has work, and wake who has to be.
 *  For a peer's memory, or one's own. 0; or, if that is urgent, until when the
 *  peer is trusted to look by itself. */
uint64_t cxiemu_nic_ring(cxiemu_nic_shm_t *shm, uint32_t port, int is_urgent);

/** As cxiemu_nic_ring(), but wake nobody: the caller sees to it. */
void cxiemu_nic_mark(cxiemu_nic_shm_t *shm, uint32_t port);

/** Whether something is left that nobody will ring for: room that a peer has to
 *  make, writes that were put off, bits that progress left. Lock held. */
int cxiemu_nic_unfinished(const cxiemu_nic_t *nic);

/** A random number other than 0 that names a NIC or a link. */
uint64_t cxiemu_nic_nonce(void);

/** Next number of the NIC's random sequence (strict mode). Lock held. */
uint64_t cxiemu_nic_random(cxiemu_nic_t *nic);

/** CLOCK_MONOTONIC in nanoseconds. */
uint64_t cxiemu_nic_now(void);

#endif
