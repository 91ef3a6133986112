/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucp_st_rma.h - one-sided operations on a stream: a part of ucp_st.h, which
 * includes it.
 *
 * A process registers memory and gives its key to others. Commands of their
 * streams then write to and read from that memory. No call and no stream of the
 * owner takes part; a stream of the owner can wait for a signal that follows
 * the data.
 *
 *     origin                                  target
 *                                             ucp_st_mem_reg(...)
 *     ucp_st_rkey_unpack(...)  <---- bytes    ucp_st_rkey_pack(...)
 *     loop:                                   loop:
 *       kernel fills the source
 *       ucp_st_enqueue_put_signal(...)          ucp_st_enqueue_wait_signal(...)
 *                                               kernel reads what was put
 *     ucp_st_enqueue_quiet(queue)
 *     ucp_st_queue_wait(queue, NULL)          ucp_st_queue_wait(queue, NULL)
 *
 * An operation takes effect at some time after the stream has reached it; the
 * stream does not wait. Until the stream has passed a quiet the source of a put
 * must not change, and the destination of a get is undefined. A put's source
 * may change earlier if the peer has answered its signal.
 *
 * Order. Operations are relaxed: they take effect in any order. One with
 * UCP_ST_RMA_FLAG_STRICT takes effect after all that were enqueued before it on
 * that queue to the same peer, strict or not. A signal takes effect after the
 * data of its own put in either case. If those before go over another lane, the
 * stream waits for them.
 *
 * Lanes. Each key has a lane, chosen when it is unpacked.
 *
 * - trig: a NIC writes and reads, triggered by the stream. Pieces of registered
 *   memory are spread over the NICs. Needs counters of each NIC that a queue
 *   uses.
 * - direct: the stream copies, to and from memory of ucp_st_mem_alloc(), or any
 *   memory of the own process. A GPU's stream does so by a kernel if its device
 *   reaches the memory of both sides: here that, or what its runtime has
 *   allocated or registered as memory of the host. Else, and if a signal adds,
 *   the service thread copies for it.
 * - host: messages of UCP, which the library's threads of both sides handle.
 *
 * Errors. When an operation fails, or its peer is declared gone, its queue is
 * in error (see @ref ucp_st_queue_wait). Quiets pass when the operations before
 * them are over, and waits for signals pass at once. Operations that the stream
 * reaches later have no effect, except that a network card may still carry out
 * those that it has been given.
 */
#ifndef UCP_ST_RMA_H_
#define UCP_ST_RMA_H_

#include <ucp_st_def.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Register memory, for all lanes of the worker that can serve it. Peers that
 * have its key may access it, and operations of the own queues may name it.
 *
 * @param [in]  worker  The worker.
 * @param [in]  address First byte.
 * @param [in]  length  Bytes, not 0.
 * @param [out] memh_p  Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM also for length 0, or an address range
 *         that wraps around; UCS_ERR_UNSUPPORTED, logged, for memory of a
 *         device that neither the host reaches while the device works, nor
 *         lane trig; UCS_ERR_NO_RESOURCE or an error of the transport if no
 *         lane can serve the memory (logged).
 *
 * Ownership: the handle is the caller's until @ref ucp_st_mem_dereg; the memory
 *            stays the caller's and must live as long.
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_mem_reg(ucp_st_worker_h worker, void *address,
                            size_t length, ucp_st_mem_h *memh_p);


/**
 * Deregister memory. No operation of a peer may be under way; one that arrives
 * later fails at the peer.
 *
 * @param [in] memh The handle.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, while an operation or a wait
 *         of the own queues that names it is enqueued or under way, or while a
 *         peer is writing or reading, on lane host also for a moment after the
 *         peer has read: try again.
 *
 * Ownership: on UCS_OK the handle is gone.
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_mem_dereg(ucp_st_mem_h memh);


/**
 * Get the key of registered memory, to be carried to peers.
 *
 * @param [in]  memh     The memory.
 * @param [out] buffer_p Filled with the key's bytes.
 * @param [out] length_p Filled with their number.
 *
 * @return UCS_OK.
 *
 * Ownership: release with @ref ucp_st_rkey_buffer_release.
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_rkey_pack(ucp_st_mem_h memh, void **buffer_p,
                              size_t *length_p);


/**
 * Release the bytes of a key.
 *
 * @param [in] buffer The bytes; NULL is legal.
 *
 * Threads: may be called from any thread.
 */
void ucp_st_rkey_buffer_release(void *buffer);


/**
 * Unpack a peer's key. Its lane is the first one, in the order of UCX_ST_LANES,
 * that serves the memory on both sides.
 *
 * In this example swap_addresses() is a function of the application. It sends
 * bytes to a process and returns that one's, in memory of malloc().
 *
 * @code
 * static ucs_status_t swap_keys(ucp_st_peer_h peer, ucp_st_mem_h memh,
 *                               ucp_st_rkey_h *rkey_p)
 * {
 *     size_t length, their_length;
 *     void *mine, *theirs;
 *     ucs_status_t status;
 *
 *     status = ucp_st_rkey_pack(memh, &mine, &length);
 *     if (status != UCS_OK) {
 *         return status;
 *     }
 *     status = swap_addresses(mine, length, &theirs, &their_length);
 *     if (status == UCS_OK) {
 *         status = ucp_st_rkey_unpack(peer, theirs, their_length, rkey_p);
 *         free(theirs);
 *     }
 *     ucp_st_rkey_buffer_release(mine);
 *     return status;
 * }
 * @endcode
 *
 * @param [in]  peer   The peer that packed it; may be the own worker.
 * @param [in]  buffer What its @ref ucp_st_rkey_pack gave.
 * @param [in]  length Bytes of that.
 * @param [out] rkey_p Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_ADDR if the bytes are no key, or one of
 *         another worker than the peer; UCS_ERR_UNSUPPORTED if it is of another
 *         version; UCS_ERR_UNREACHABLE if no lane serves it (all are logged;
 *         why a lane does not is logged as a diagnostic); the cause if the peer
 *         is gone; UCS_ERR_INVALID_PARAM also for UCP_ST_PEER_ANY.
 *
 * Ownership: the key is the caller's until @ref ucp_st_rkey_destroy.
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_rkey_unpack(ucp_st_peer_h peer, const void *buffer,
                                size_t length, ucp_st_rkey_h *rkey_p);


/**
 * Destroy an unpacked key.
 *
 * @param [in] rkey The key.
 *
 * @return UCS_OK; UCS_ERR_BUSY, with no effect, while an operation that names
 *         it is enqueued or under way.
 *
 * Ownership: on UCS_OK the handle is gone.
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_rkey_destroy(ucp_st_rkey_h rkey);


/** What @ref ucp_st_rkey_query tells. */
typedef struct ucp_st_rkey_attr {
    ucp_st_lane_t lane;   /**< Lane of its operations */
    size_t        length; /**< Of the memory, bytes */
} ucp_st_rkey_attr_t;


/**
 * Query an unpacked key.
 *
 * @param [in]  rkey The key.
 * @param [out] attr Filled on success only.
 *
 * @return UCS_OK.
 *
 * Threads: may be called from any thread.
 */
ucs_status_t ucp_st_rkey_query(ucp_st_rkey_h rkey, ucp_st_rkey_attr_t *attr);


/** Fields of @ref ucp_st_rma_params_t that are set. */
enum ucp_st_rma_params_field {
    UCP_ST_RMA_PARAM_FIELD_MEMH          = 1u << 0,
    UCP_ST_RMA_PARAM_FIELD_OFFSET        = 1u << 1,
    UCP_ST_RMA_PARAM_FIELD_LENGTH        = 1u << 2,
    UCP_ST_RMA_PARAM_FIELD_RKEY          = 1u << 3,
    UCP_ST_RMA_PARAM_FIELD_REMOTE_OFFSET = 1u << 4,
    UCP_ST_RMA_PARAM_FIELD_FLAGS         = 1u << 5
};


/** Flags of a one-sided operation. */
enum ucp_st_rma_flags {
    /** Takes effect after all operations of the queue to the same peer that
     *  were enqueued before. */
    UCP_ST_RMA_FLAG_STRICT = 1u << 0
};


/** What is put or got. Fields that are not set are 0. */
typedef struct ucp_st_rma_params {
    uint64_t      field_mask;    /**< Mask of @ref ucp_st_rma_params_field */
    ucp_st_mem_h  memh;          /**< Memory here; may be NULL only if @a length
                                      is 0 */
    size_t        offset;        /**< From its begin, bytes */
    size_t        length;        /**< In bytes; 0 is legal */
    ucp_st_rkey_h rkey;          /**< Memory at the peer; may be NULL only in a
                                      put with signal whose @a length is 0 */
    size_t        remote_offset; /**< From its begin, bytes */
    uint64_t      flags;         /**< Mask of @ref ucp_st_rma_flags */
} ucp_st_rma_params_t;


/**
 * Enqueue a put: bytes are written to the peer's memory when the stream reaches
 * it.
 *
 * @param [in] queue  The queue.
 * @param [in] params What to put; copied.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM also for bytes outside the memory here
 *         or at the peer, an unknown flag, or a handle of another worker than
 *         the queue's (logged); UCS_ERR_NO_RESOURCE if the lane has no room for
 *         it now; UCS_ERR_UNSUPPORTED while the stream is being captured into
 *         a graph, or if the memory here is a device's and the lane of the
 *         peer's does not reach it (logged); the cause if the queue is in
 *         error, or the peer is gone. Nothing is enqueued on error.
 *
 * Ownership: the source must not be changed until a quiet that is enqueued
 *            later has passed.
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_enqueue_put(ucp_st_queue_h queue,
                                const ucp_st_rma_params_t *params);


/**
 * Enqueue a get: bytes are read from the peer's memory when the stream reaches
 * it.
 *
 * @param [in] queue  The queue.
 * @param [in] params What to get; copied.
 *
 * @return As @ref ucp_st_enqueue_put.
 *
 * Ownership: the destination belongs to the operation until a quiet that is
 *            enqueued later has passed.
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_enqueue_get(ucp_st_queue_h queue,
                                const ucp_st_rma_params_t *params);


/** Kinds of numbers. Integers may be signed or not: they wrap around. */
typedef enum {
    UCP_ST_NUMBER_INT8,
    UCP_ST_NUMBER_INT16,
    UCP_ST_NUMBER_INT32,
    UCP_ST_NUMBER_INT64,
    UCP_ST_NUMBER_FLOAT,
    UCP_ST_NUMBER_DOUBLE
} ucp_st_number_t;


/**
 * Enqueue an addition: numbers are added to those in the peer's memory when the
 * stream reaches it. Each addition of this call to a process's memory is atomic
 * to all others of it, from whatever process, and to nothing else.
 *
 * The library's threads of both sides carry it out, as on lane host, whatever
 * the lane of the peer's key is: no card adds numbers of all kinds, nor many of
 * them at once.
 *
 * @param [in] queue  The queue.
 * @param [in] params The numbers here, and where those are that they are added
 *                    to; copied.
 * @param [in] number Kind of the numbers.
 *
 * @return As @ref ucp_st_enqueue_put; UCS_ERR_INVALID_PARAM also for an unknown
 *         kind of number, or a length that is no multiple of one's (logged). If
 *         the memory of the peer is a device's the queue fails with
 *         UCS_ERR_UNSUPPORTED.
 *
 * Ownership: as @ref ucp_st_enqueue_put.
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_enqueue_add(ucp_st_queue_h queue,
                                const ucp_st_rma_params_t *params,
                                ucp_st_number_t number);


/** What a signal does to its word. */
typedef enum {
    UCP_ST_SIGNAL_SET, /**< Stores the value */
    UCP_ST_SIGNAL_ADD  /**< Adds it. Atomic to other signals that come over the
                            same lane, on lane trig from processes that use as
                            many NICs; and to the processors on lanes direct and
                            host */
} ucp_st_signal_op_t;


/** Fields of @ref ucp_st_signal_params_t that are set. */
enum ucp_st_signal_params_field {
    UCP_ST_SIGNAL_PARAM_FIELD_RKEY   = 1u << 0,
    UCP_ST_SIGNAL_PARAM_FIELD_OFFSET = 1u << 1,
    UCP_ST_SIGNAL_PARAM_FIELD_VALUE  = 1u << 2,
    UCP_ST_SIGNAL_PARAM_FIELD_OP     = 1u << 3
};


/** A signal. Fields that are not set are 0. */
typedef struct ucp_st_signal_params {
    uint64_t           field_mask; /**< Mask of
                                        @ref ucp_st_signal_params_field */
    ucp_st_rkey_h      rkey;       /**< Memory that holds the word, at the peer
                                        that the data goes to; must be set */
    size_t             offset;     /**< Of the word, 64 bits, naturally
                                        aligned */
    uint64_t           value;      /**< Stored or added */
    ucp_st_signal_op_t op;         /**< Set if not set */
} ucp_st_signal_params_t;


/**
 * Enqueue a put and a signal: a word of the peer's memory that changes once the
 * data is there. With a length of 0 it is a signal alone. A stream of the peer
 * that waits for the word is woken (@ref ucp_st_enqueue_wait_signal).
 *
 * This example puts a number to a peer, and waits for the one that the peer
 * puts here. The memory of both sides holds the number to send, two places for
 * those that come, and the signal, which counts. It may be called in a loop,
 * with kernels before it that write the number, and behind it that read the one
 * in place 1 + count % 2. One place would be too few: the peer may put its next
 * number as soon as it has seen this side's signal, and that left before this
 * side's kernel has read. With two, the number behind the next one goes to the
 * place: the peer puts it once it has seen this side's next signal, which comes
 * after that kernel. So what is put again and again needs either two places, or
 * a signal back from the reader.
 *
 * @code
 * static ucs_status_t put_once(ucp_st_queue_h queue, ucp_st_mem_h memh,
 *                              ucp_st_rkey_h rkey, uint64_t count)
 * {
 *     ucp_st_rma_params_t params = {
 *         .field_mask    = UCP_ST_RMA_PARAM_FIELD_MEMH |
 *                          UCP_ST_RMA_PARAM_FIELD_LENGTH |
 *                          UCP_ST_RMA_PARAM_FIELD_RKEY |
 *                          UCP_ST_RMA_PARAM_FIELD_REMOTE_OFFSET,
 *         .memh          = memh,
 *         .length        = sizeof(uint64_t),
 *         .rkey          = rkey,
 *         .remote_offset = (1 + (count % 2)) * sizeof(uint64_t)
 *     };
 *     ucp_st_signal_params_t signal = {
 *         .field_mask = UCP_ST_SIGNAL_PARAM_FIELD_RKEY |
 *                       UCP_ST_SIGNAL_PARAM_FIELD_OFFSET |
 *                       UCP_ST_SIGNAL_PARAM_FIELD_VALUE,
 *         .rkey       = rkey,
 *         .offset     = 3 * sizeof(uint64_t),
 *         .value      = count
 *     };
 *     ucp_st_wait_signal_params_t wait = {
 *         .field_mask = UCP_ST_WAIT_SIGNAL_PARAM_FIELD_MEMH |
 *                       UCP_ST_WAIT_SIGNAL_PARAM_FIELD_OFFSET |
 *                       UCP_ST_WAIT_SIGNAL_PARAM_FIELD_VALUE,
 *         .memh       = memh,
 *         .offset     = 3 * sizeof(uint64_t),
 *         .value      = count
 *     };
 *     ucs_status_t status;
 *
 *     status = ucp_st_enqueue_put_signal(queue, &params, &signal);
 *     if (status == UCS_OK) {
 *         status = ucp_st_enqueue_wait_signal(queue, &wait);
 *     }
 *     return (status == UCS_OK) ? ucp_st_enqueue_quiet(queue) : status;
 * }
 * @endcode
 *
 * @param [in] queue  The queue.
 * @param [in] params The data; copied.
 * @param [in] signal The signal; copied.
 *
 * @return As @ref ucp_st_enqueue_put; UCS_ERR_INVALID_PARAM also for a signal
 *         without key, to another peer than the data's, of an unknown kind, or
 *         whose word is misaligned or outside the memory.
 *
 * Ownership: as @ref ucp_st_enqueue_put.
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_enqueue_put_signal(ucp_st_queue_h queue,
                                       const ucp_st_rma_params_t *params,
                                       const ucp_st_signal_params_t *signal);


/** When a wait for a signal passes. */
typedef enum {
    UCP_ST_SIGNAL_GE, /**< The word is >= the value (unsigned) */
    UCP_ST_SIGNAL_EQ  /**< The word is the value. A stream that sleeps may miss
                           a value that does not stay. */
} ucp_st_signal_cmp_t;


/** Fields of @ref ucp_st_wait_signal_params_t that are set. */
enum ucp_st_wait_signal_params_field {
    UCP_ST_WAIT_SIGNAL_PARAM_FIELD_MEMH   = 1u << 0,
    UCP_ST_WAIT_SIGNAL_PARAM_FIELD_OFFSET = 1u << 1,
    UCP_ST_WAIT_SIGNAL_PARAM_FIELD_CMP    = 1u << 2,
    UCP_ST_WAIT_SIGNAL_PARAM_FIELD_VALUE  = 1u << 3,
    UCP_ST_WAIT_SIGNAL_PARAM_FIELD_PEER   = 1u << 4,
    UCP_ST_WAIT_SIGNAL_PARAM_FIELD_NAME   = 1u << 5,
    UCP_ST_WAIT_SIGNAL_PARAM_FIELD_FLAGS  = 1u << 6
};


/** Flags of a wait for a signal. */
enum ucp_st_wait_signal_flags {
    /** The word only grows, and stays below 2^62; and the library may store
     *  2^62 to it once the queue has failed before the stream has passed the
     *  wait. Then a GPU's stream waits for the word itself, and no thread of
     *  the host looks at it, if all signals of the wait have the flag, compare
     *  by UCP_ST_SIGNAL_GE, and are in memory that the stream reaches: of
     *  @ref ucp_st_mem_alloc, or of the runtime, not managed.
     *
     *  Once a stream that waits for a signal in some registered memory with
     *  this flag has failed, signals there mean nothing: other queues that wait
     *  for one there fail as well, and later waits are refused with the same
     *  error, until the memory is registered anew. */
    UCP_ST_WAIT_SIGNAL_FLAG_OVERWRITE = 1u << 0
};


/** What to wait for. Fields that are not set are 0. */
typedef struct ucp_st_wait_signal_params {
    uint64_t            field_mask; /**< Mask of
                                         @ref ucp_st_wait_signal_params_field */
    ucp_st_mem_h        memh;   /**< Memory that holds the word; must be set */
    size_t              offset; /**< Of the word, 64 bits, naturally aligned */
    ucp_st_signal_cmp_t cmp;    /**< Greater or equal if not set */
    uint64_t            value;  /**< To compare with */
    ucp_st_peer_h       peer;   /**< The wait ends if this peer is gone; NULL,
                                     or not set: no peer */
    const char          *name;  /**< What warnings call the signal; must live
                                     until the stream has passed the wait, with
                                     UCP_ST_WAIT_SIGNAL_FLAG_OVERWRITE until the
                                     memory is deregistered. NULL, or not set:
                                     the word's place */
    uint64_t            flags;  /**< Mask of @ref ucp_st_wait_signal_flags */
} ucp_st_wait_signal_params_t;


/**
 * Enqueue a wait for a signal: the stream waits until a word of the own memory
 * has a value. What was put before the signal is visible after it.
 *
 * Signals of peers wake a stream that sleeps. Where a network card or a peer's
 * kernel cannot do so, the service thread looks for them every millisecond or
 * so. A GPU's stream waits for a word that the service thread stores to, unless
 * it may wait for the signal's own (@ref UCP_ST_WAIT_SIGNAL_FLAG_OVERWRITE).
 *
 * If a peer is named, and is declared gone before the wait has passed, the
 * queue is in error and the stream goes on. Else it waits for the signal as
 * long as the queue is not in error.
 *
 * @param [in] queue  The queue.
 * @param [in] params What to wait for; copied.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM also for memory that is not set, a word
 *         that is misaligned or outside of it, an unknown comparison or flag,
 *         or a handle of another worker than the queue's (logged);
 *         UCS_ERR_UNSUPPORTED while the stream is being captured into a graph,
 *         or for a word in memory of a device (logged); the cause if the queue
 *         is in error, or the peer is gone. Nothing is enqueued on error.
 *
 * Threads: the queue's rule.
 */
ucs_status_t
ucp_st_enqueue_wait_signal(ucp_st_queue_h queue,
                           const ucp_st_wait_signal_params_t *params);


/**
 * Enqueue a wait for several signals: the stream waits, once, until all words
 * have their values at the same time. It ends, with an error, if a peer that is
 * named is declared gone before its signal has come.
 *
 * @param [in] queue  The queue.
 * @param [in] params What to wait for, each by its place; copied.
 * @param [in] count  How many; 0 is legal, and waits for nothing.
 *
 * @return As @ref ucp_st_enqueue_wait_signal.
 *
 * Threads: the queue's rule.
 */
ucs_status_t
ucp_st_enqueue_wait_signals(ucp_st_queue_h queue,
                            const ucp_st_wait_signal_params_t *const params[],
                            size_t count);


/**
 * Enqueue the wait for all one-sided operations that were enqueued on the queue
 * before: the stream waits until puts and signals are complete at their
 * targets, and the data of gets is here.
 *
 * @param [in] queue The queue.
 *
 * @return UCS_OK, also if there are none; UCS_ERR_NO_RESOURCE if a lane has no
 *         room for it now; UCS_ERR_UNSUPPORTED while the stream is being
 *         captured into a graph; the cause if the queue is in error. Nothing is
 *         enqueued on error.
 *
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_enqueue_quiet(ucp_st_queue_h queue);

#ifdef __cplusplus
}
#endif

#endif
