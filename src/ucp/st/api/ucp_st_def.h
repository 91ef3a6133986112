/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucp_st_def.h - handles, constants and counts of ucp_st.h, which includes it.
 */
#ifndef UCP_ST_DEF_H_
#define UCP_ST_DEF_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Everything that belongs to one UCP worker. */
typedef struct ucp_st_worker *ucp_st_worker_h;

/** A remote worker (or the own one). */
typedef struct ucp_st_peer *ucp_st_peer_h;

/** Communication commands in the order of one stream. */
typedef struct ucp_st_queue *ucp_st_queue_h;

/** A persistent send or receive. */
typedef struct ucp_st_op *ucp_st_op_h;

/** A set of them; see ucp_st_exchange.h. */
typedef struct ucp_st_exchange *ucp_st_exchange_h;

/** A message that is used once. */
typedef struct ucp_st_req *ucp_st_req_h;

/** Registered memory of this process, for one-sided operations. */
typedef struct ucp_st_memh *ucp_st_mem_h;

/** Registered memory of a peer. */
typedef struct ucp_st_rkey *ucp_st_rkey_h;

/** Something that a layer above the library waits for. */
typedef struct ucp_st_note *ucp_st_note_h;

/** Peer of an operation that moves nothing and completes at once. */
#define UCP_ST_PEER_NULL ((ucp_st_peer_h)0)

/** "Any source": refused by match. */
#define UCP_ST_PEER_ANY ((ucp_st_peer_h)-1)

/** Longest name of a lane, provider or device, with the final zero. */
#define UCP_ST_NAME_MAX 64

/** Longest reason for the absence of a lane, with the final zero. */
#define UCP_ST_REASON_MAX 384


/** How a pair moves its data. */
typedef enum {
    UCP_ST_LANE_NONE, /**< Not matched, or nothing to move (null peer) */
    UCP_ST_LANE_TRIG, /**< Triggered operations of the NIC */
    UCP_ST_LANE_HOST, /**< Messages of UCP, sent by a thread of the library */
    UCP_ST_LANE_DIRECT, /**< Copies by the streams of one node */
    UCP_ST_LANE_LAST
} ucp_st_lane_t;


/** What the operations of one lane have done. */
typedef struct ucp_st_lane_stats {
    uint64_t matches;        /**< Operations matched */
    uint64_t starts;         /**< Starts enqueued */
    uint64_t waits;          /**< Waits enqueued */
    uint64_t rmas;           /**< One-sided operations enqueued; a signal counts
                                  if it is alone, or goes over another lane
                                  than its put */
    uint64_t msgs;           /**< Messages that are used once (ucp_st_batch.h):
                                  under "trig" those that the NICs move alone,
                                  under "host" those that hosts move; of FIFOs
                                  counted once they are matched */
} ucp_st_lane_stats_t;


/** What a worker has done so far, and what it holds now. */
typedef struct ucp_st_stats {
    uint64_t starts;         /**< Starts enqueued */
    uint64_t waits;          /**< Waits enqueued */
    uint64_t matches;        /**< Operations matched */
    uint64_t fallbacks;      /**< Of those, not on the lane of first choice */
    uint64_t writes_posted;  /**< Deferred writes of payload posted */
    uint64_t writes_fired;   /**< Of those, carried out by the NIC */
    uint64_t chunks;         /**< Of those, all but one of each use that was
                                  split: writes_fired - chunks uses are sent */
    uint64_t eager;          /**< Uses complete, of sends and receives, that
                                  went ahead of the receive's start */
    uint64_t cts_fired;      /**< Clear-to-send writes carried out */
    uint64_t atomics_fired;  /**< Completion-word updates carried out */
    uint64_t bridges_fired;  /**< Additions carried out that tell a message of a
                                  FIFO that its stream has come to it */
    uint64_t fifo_nic;       /**< Messages of FIFOs, sent and received, that are
                                  matched and that the NICs move alone */
    uint64_t fifo_put_device; /**< That the sender's host has its NIC put, as a
                                  buffer is in a device that a NIC does not
                                  reach */
    uint64_t fifo_put_cntr;  /**< The same, as the sender found no counter */
    uint64_t fifo_ucp;       /**< That hosts move by UCP, as lane trig does not
                                  reach the peer */
    uint64_t copies;         /**< Pieces of messages copied by this side on the
                                  direct lane */
    uint64_t late_posts;     /**< Uses posted after the start call returned,
                                  because no entry was free */
    uint64_t proxied;        /**< Uses, one-sided operations and tagged messages
                                  for which a host thread, the library's or one
                                  that makes a call, moved data or issued a
                                  control message after the trigger */
    uint64_t staged;         /**< Operations matched whose buffer lies in a
                                  device, or in blocks, and is copied by way of
                                  other memory of the host */
    uint64_t puts;           /**< Puts enqueued, with signals or without */
    uint64_t gets;           /**< Gets enqueued */
    uint64_t signals;        /**< Signals enqueued, with puts or alone */
    uint64_t signal_waits;   /**< Waits for signals enqueued */
    uint64_t quiets;         /**< Quiets enqueued */
    uint64_t errors;         /**< Operations failed */
    uint64_t ops;            /**< Operations that exist now */
    uint64_t freed;          /**< Freed ones that a stream, a lane or the peer
                                  still holds now */
    uint64_t entries;        /**< Deferred-work entries in use now */
    uint64_t start_cmds;     /**< Commands of streams that starts were, such as
                                  stores to trigger pages */
    uint64_t wait_words;     /**< Words that waits were enqueued for */
    uint64_t launches;       /**< Kernels that streams of GPUs were given, such
                                  as one that waits for several of them */
    uint64_t cntrs;          /**< NIC counters in use now */
    uint64_t fifos;          /**< FIFOs that exist now */
    ucp_st_lane_stats_t lanes[UCP_ST_LANE_LAST]; /**< By lane; what has nothing
                                                      to move under "none" */
    uint64_t tier_kernel;    /**< Operations matched on lane direct that kernels
                                  of streams move */
    uint64_t tier_service;   /**< The same with a buffer that a device reaches,
                                  which threads move */
    uint64_t wakeups;        /**< Times that a thread of the library, of this
                                  process or a peer, was to look because a
                                  stream has started or moved something, or
                                  waits: on lane direct, and on streams of GPUs
                                  for each lane */
} ucp_st_stats_t;

#ifdef __cplusplus
}
#endif

#endif
