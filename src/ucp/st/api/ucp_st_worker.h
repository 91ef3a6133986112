/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucp_st_worker.h - workers and peers of ucp_st.h, which includes it and says
 * what holds for all calls.
 */
#ifndef UCP_ST_WORKER_H_
#define UCP_ST_WORKER_H_

#include <ucp_st_def.h>
#include <ucp/api/ucp.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Fields of @ref ucp_st_worker_params_t that are set. */
enum ucp_st_worker_params_field {
    UCP_ST_WORKER_PARAM_FIELD_UCP_WORKER   = 1u << 0,
    UCP_ST_WORKER_PARAM_FIELD_AM_ID        = 1u << 1,
    UCP_ST_WORKER_PARAM_FIELD_UCP_FEATURES = 1u << 2,
    UCP_ST_WORKER_PARAM_FIELD_STREAM_TYPES = 1u << 3,
    UCP_ST_WORKER_PARAM_FIELD_FLAGS        = 1u << 4,
    UCP_ST_WORKER_PARAM_FIELD_NAME         = 1u << 5
};

/** Flags of @ref ucp_st_worker_params_t. */
enum ucp_st_worker_flags {
    /** The caller tells why a start or a wait is refused, as an interface does
     *  that has words of its own: the library says it at log level debug. */
    UCP_ST_WORKER_FLAG_QUIET = 1u << 0
};


/** Parameters of @ref ucp_st_worker_create. */
typedef struct ucp_st_worker_params {
    /** Mask of @ref ucp_st_worker_params_field. */
    uint64_t     field_mask;
    /** Carries the messages of ucp_st_batch.h, which need UCP_FEATURE_TAG in
     *  its context, and no others. Must outlive the st worker. If not set, a
     *  context and a worker are made. */
    ucp_worker_h ucp_worker;
    /** Of no effect: control messages no longer go over @a ucp_worker. */
    unsigned     am_id;
    /** Features of the context of @a ucp_worker: UCP does not tell them. With
     *  UCP_FEATURE_WAKEUP in them the library's thread sleeps while messages of
     *  ucp_st_batch.h are under way, and else looks every millisecond. */
    uint64_t     ucp_features;
    /** Kinds of streams that operations will be started on, by which a match
     *  chooses its lane: mask of 1 << @ref ucs_gstream_type_t, not 0. If not
     *  set: those of the worker's queues at the time of the match, or streams
     *  of the host while it has none. A start on a stream of another kind works
     *  as well, but a thread of the host may move its data. */
    uint64_t     stream_types;
    /** Mask of @ref ucp_st_worker_flags; none if not set. */
    uint64_t     flags;
    /** What warnings call the worker, as "rank 3"; copied, and cut behind
     *  UCP_ST_NAME_MAX. "worker 0", by its number, if not set. */
    const char   *name;
} ucp_st_worker_params_t;

/** Of no effect, as @ref ucp_st_worker_params_t.am_id. */
#define UCP_ST_AM_ID_DEFAULT 23


/** What @ref ucp_st_worker_query tells. Names are empty without the lane
 *  trig. */
typedef struct ucp_st_worker_attr {
    ucp_st_stats_t stats;                     /**< Counts since the creation */
    unsigned       num_lanes;                 /**< Lanes that are open */
    ucp_st_lane_t  lanes[UCP_ST_LANE_LAST];   /**< In order of preference */
    char           provider[UCP_ST_NAME_MAX]; /**< libfabric provider of trig */
    char           device[UCP_ST_NAME_MAX];   /**< Device of the trig lane, or
                                                   several: "a,b" */
    const char     *tier_reason;              /**< Of the last one that
                                                   stats.tier_service counts: as
                                                   ucp_st_op_attr_t says it */
} ucp_st_worker_attr_t;


/** One lane in @ref ucp_st_lanes_attr_t. */
typedef struct ucp_st_lane_attr {
    ucp_st_lane_t lane;                      /**< Which one */
    char          name[UCP_ST_NAME_MAX];     /**< As in UCX_ST_LANES */
    int           is_open;                   /**< Non-zero: it can be used */
    char          reason[UCP_ST_REASON_MAX]; /**< Why not, as it is logged; or
                                                  empty */
} ucp_st_lane_attr_t;


/** What @ref ucp_st_lanes_query tells. */
typedef struct ucp_st_lanes_attr {
    unsigned           count;                   /**< Lanes of the library */
    ucp_st_lane_attr_t lanes[UCP_ST_LANE_LAST]; /**< All of them */
} ucp_st_lanes_attr_t;


/**
 * Create an st worker, with the lanes that UCX_ST_LANES names and that can be
 * opened here. A pair takes the first one that can serve it on both sides;
 * unless UCX_ST_LANES is set, those come first that streams of the given kinds
 * use without a thread of the host.
 *
 * - direct: memory that it shares with processes of the same node, if UCX_TLS
 *   leaves a transport of shared memory.
 * - trig: its own interface on the transport cxi_trig, on the first device that
 *   UCX_NET_DEVICES allows (a loop-back device only if named or if there is no
 *   other), or on the first few (UCX_ST_TRIG_DEVICES).
 * - host: a UCP context and worker of the library's own, with UCX's settings
 *   of the environment. Its transports may differ from those of @a ucp_worker,
 *   as the settings of that context are not known here. It exists without this
 *   lane, too: peers tell each other of failures over it.
 *
 * The first worker of a process starts one thread, which sleeps unless a lane
 * has work for it.
 *
 * @code
 * static ucs_status_t make_worker(ucp_worker_h ucp_worker,
 *                                 ucp_st_worker_h *worker_p)
 * {
 *     ucp_st_worker_params_t params = {.field_mask = 0};
 *
 *     if (ucp_worker != NULL) {
 *         params.field_mask |= UCP_ST_WORKER_PARAM_FIELD_UCP_WORKER;
 *         params.ucp_worker  = ucp_worker;
 *     }
 *     return ucp_st_worker_create(&params, worker_p);
 * }
 * @endcode
 *
 * @param [in]  params   Parameters; copied.
 * @param [out] worker_p Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED if UCX_TLS or UCX_ST_LANES leave no lane,
 *         UCP's active messages are too short for control messages, or the
 *         runtime of a kind of streams is not there; UCS_ERR_INVALID_PARAM if a
 *         kind is unknown or none is named, or a setting of UCX_ST_* has a
 *         value that it cannot have (an unknown lane); UCS_ERR_NO_DEVICE if no
 *         device can serve the lanes that are asked for; UCS_ERR_NO_RESOURCE if
 *         no thread can be started;
 *         UCS_ERR_IO_ERROR; an error of ucp_init(), of ucp_worker_create(), of
 *         ucs_trace_open() or of the transport that could not open its device.
 *         The reason is logged.
 *
 * Ownership: the caller's until @ref ucp_st_worker_destroy.
 * Threads: may be called from any thread that may use the UCP worker.
 */
ucs_status_t ucp_st_worker_create(const ucp_st_worker_params_t *params,
                                  ucp_st_worker_h *worker_p);


/**
 * Tell which lanes an st worker would have that is created now, and why not the
 * others. Creates one and destroys it again.
 *
 * @code
 * static void print_lanes(void)
 * {
 *     ucp_st_worker_params_t params = {.field_mask = 0};
 *     ucp_st_lanes_attr_t attr;
 *     unsigned i;
 *
 *     (void)ucp_st_lanes_query(&params, &attr);
 *     for (i = 0; i < attr.count; ++i) {
 *         printf("lane %s: %s\n", attr.lanes[i].name,
 *                attr.lanes[i].is_open ? "on" : attr.lanes[i].reason);
 *     }
 * }
 * @endcode
 *
 * @param [in]  params As of @ref ucp_st_worker_create.
 * @param [out] attr   Filled, also where no worker can be created, which is
 *                     then the reason of all lanes that have no other.
 *
 * @return What @ref ucp_st_worker_create returns: UCS_OK if there is a lane.
 *         For NULL and in a forked process nothing is filled.
 *
 * Threads: as @ref ucp_st_worker_create.
 */
ucs_status_t ucp_st_lanes_query(const ucp_st_worker_params_t *params,
                                ucp_st_lanes_attr_t *attr);


/**
 * Match nothing more, and tell the peers: operations that they give to match
 * with this worker fail there with UCS_ERR_CANCELED. Matched operations, and
 * those given to match here before, go on. For a process that waits for others
 * before it may destroy the worker. A second call has no effect.
 *
 * @param [in] worker The worker.
 *
 * @return UCS_OK.
 *
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_worker_leave(ucp_st_worker_h worker);


/**
 * Destroy an st worker. Tells its peers that it leaves. Their operations with
 * it that remain fail with UCS_ERR_CANCELED once the uses that this side has
 * completed are complete there. Waits for their answers, for UCX_ST_ERR_TIMEOUT
 * at most: these need no call of theirs, and come within 0.2 seconds unless
 * their process is stopped. Waits for UCP to send what it has, for 5 seconds at
 * most. All operations must have been freed, but the peers need not know of
 * that yet.
 *
 * With UCX_ST_STATS=y it then writes the worker's counts to the standard error
 * output, as @ref ucp_st_worker_print_stats, in one piece and after a line that
 * names host, process and worker. The exit of a process does so for open
 * workers, and tells what waits there. With UCX_ST_TRACE it writes the trace of
 * the process.
 *
 * @param [in] worker The worker.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, while a queue exists, an
 *         operation or a request of a message that was not freed, registered
 *         memory, or an unpacked key.
 *
 * Ownership: on UCS_OK the handle and all peers made on it are gone.
 * Threads: no other call on this worker may run at the same time.
 */
ucs_status_t ucp_st_worker_destroy(ucp_st_worker_h worker);


/**
 * Get the address of a worker, to be carried to the peers.
 *
 * @param [in]  worker    The worker.
 * @param [out] address_p Filled with the address.
 * @param [out] length_p  Filled with its length, bytes.
 *
 * @return UCS_OK; an error of ucp_worker_get_address() or of a lane's
 *         transport; UCS_ERR_EXCEEDS_LIMIT if an address of UCP's has more than
 *         65,535 bytes.
 *
 * Ownership: release with @ref ucp_st_worker_release_address.
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_worker_get_address(ucp_st_worker_h worker,
                                       void **address_p, size_t *length_p);


/**
 * Release an address.
 *
 * @param [in] worker  The worker it came from.
 * @param [in] address The address; NULL is legal.
 *
 * Threads: may be called from any thread.
 */
void ucp_st_worker_release_address(ucp_st_worker_h worker, void *address);


/**
 * Progress the UCP worker. Matching, starts, waits and the detection of failed
 * peers progress without it; what was freed is released sooner with it.
 *
 * @param [in] worker The worker.
 *
 * @return Non-zero if something was done.
 *
 * Threads: as the UCP worker.
 */
unsigned ucp_st_worker_progress(ucp_st_worker_h worker);


/**
 * Query counts and names. See also ucp_st_worker_print_stats().
 *
 * @code
 * static ucs_status_t print_fallbacks(ucp_st_worker_h worker)
 * {
 *     ucp_st_worker_attr_t attr;
 *     ucs_status_t status;
 *
 *     status = ucp_st_worker_query(worker, &attr);
 *     if (status == UCS_OK) {
 *         printf("%lu operations matched, %lu not on the first lane\n",
 *                (unsigned long)attr.stats.matches,
 *                (unsigned long)attr.stats.fallbacks);
 *     }
 *     return status;
 * }
 * @endcode
 *
 * @param [in]  worker The worker.
 * @param [out] attr   Filled on success only.
 *
 * @return UCS_OK; an error of a lane's transport.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucp_st_worker_query(ucp_st_worker_h worker,
                                 ucp_st_worker_attr_t *attr);


/** Name of the socket, of the type SOCK_STREAM and in the abstract namespace,
 *  that a process with an st worker or a note listens on; made with its PID. To
 *  a process of the same user, or of root, that connects it writes what waits
 *  in it and for how long, as text, and closes: "ucx_st_info -p PID". */
#define UCP_ST_SOCKET_NAME "ucx_st.%d"


/**
 * Note that a layer above the library waits for a peer, in a way that the
 * library cannot know of. UCX_ST_WARN_TIME after that began a warning says it,
 * once: who, "has waited for 10 s: ", and the text. A process that asks this
 * one is told the same at any time. The first note of a process without an st
 * worker starts the library's thread: make one of what has waited for a moment.
 *
 * @param [in]  who    As "rank 3: matching"; copied.
 * @param [in]  text   What it waits for, and what the peer has done; copied.
 * @param [in]  waited For how long it has waited already, seconds.
 * @param [out] note_p Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_NO_RESOURCE if no thread can be started;
 *         UCS_ERR_INVALID_PARAM also for a setting of UCX_ST_* that has no
 *         value.
 *
 * Ownership: the caller's until @ref ucp_st_note_end.
 * Threads: may be called from any thread.
 */
ucs_status_t ucp_st_note_begin(const char *who, const char *text, double waited,
                               ucp_st_note_h *note_p);


/**
 * The wait is over.
 *
 * @param [in] note The note, which is gone; NULL is legal.
 *
 * Threads: may be called from any thread.
 */
void ucp_st_note_end(ucp_st_note_h note);


/**
 * Tell what waits in the process, in words: the lines that "ucx_st_info -p"
 * prints of it, as "rank 0: a queue has waited for 2.5 s: ...". In a child that
 * was forked this writes and returns nothing.
 *
 * @param [out] text Lines, with a newline between two; "" if nothing waits. Cut
 *                   to the size.
 * @param [in]  size Of the text, bytes; at least 1.
 *
 * @return How many things wait.
 *
 * Threads: may be called from any thread, but not in a function that the
 *          library's thread runs (@ref ucp_st_op_params_t.func).
 */
unsigned ucp_st_waits_get(char *text, size_t size);


/**
 * Make a peer from its worker's address. The address of the own worker makes a
 * peer for messages to oneself. A second peer of one address is the same peer.
 * Waits until the library's thread has connected, for UCX_ST_ERR_TIMEOUT at
 * most; not in a function that this thread runs (@ref ucp_st_op_params_t.func).
 *
 * In this example swap_addresses() is a function of the application. It sends
 * bytes to a process and returns that one's, in memory of malloc().
 *
 * @code
 * static ucs_status_t make_peer(ucp_st_worker_h worker,
 *                               ucp_st_peer_h *peer_p)
 * {
 *     void *mine, *theirs;
 *     size_t length, their_length;
 *     ucs_status_t status;
 *
 *     status = ucp_st_worker_get_address(worker, &mine, &length);
 *     if (status != UCS_OK) {
 *         return status;
 *     }
 *     status = swap_addresses(mine, length, &theirs, &their_length);
 *     if (status == UCS_OK) {
 *         status = ucp_st_peer_create(worker, theirs, their_length, peer_p);
 *         free(theirs);
 *     }
 *     ucp_st_worker_release_address(worker, mine);
 *     return status;
 * }
 * @endcode
 *
 * @param [in]  worker  The worker.
 * @param [in]  address What the peer's @ref ucp_st_worker_get_address gave.
 * @param [in]  length  Its length, bytes.
 * @param [out] peer_p  Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_ADDR if the bytes are no address;
 *         UCS_ERR_UNSUPPORTED if it is of another version (both are logged);
 *         UCS_ERR_UNREACHABLE if no lane reaches it (logged with the lanes);
 *         UCS_ERR_CONNECTION_RESET if UCP finds that it is gone (logged with
 *         UCP's error); UCS_ERR_TIMED_OUT; or an error of ucp_ep_create() that
 *         has its cause here.
 *         UCS_OK also for a peer that is known to be gone, and where UCP
 *         connects later: operations that are matched with it fail.
 *
 * Ownership: the worker's; returned by @ref ucp_st_peer_destroy.
 * Threads: as the UCP worker, but not from a callback of UCP's: one thread at
 *          a time connects.
 */
ucs_status_t ucp_st_peer_create(ucp_st_worker_h worker, const void *address,
                                size_t length, ucp_st_peer_h *peer_p);


/**
 * Return a peer that @ref ucp_st_peer_create made. Operations made with it go
 * on, and what was set up to reach it stays until the worker goes.
 *
 * @param [in] peer The peer; UCP_ST_PEER_NULL and UCP_ST_PEER_ANY do nothing.
 *
 * Ownership: the handle must not be used once it was returned as often as it
 *            was made.
 * Threads: as the UCP worker.
 */
void ucp_st_peer_destroy(ucp_st_peer_h peer);

#ifdef __cplusplus
}
#endif

#endif
