/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ucp_st_exchange.h - operations that are always started together and waited
 * for together. Part of <ucp_st.h>, which says what holds for all calls.
 *
 * A halo exchange with n neighbours is n sends and n receives, of which each
 * needs a store of the stream to start it, a word that the stream waits on, and
 * counters of the network card. In an exchange they share these on lane trig:
 *
 *   per use, m sends, n receives   alone     exchange            coupled
 *   stores to start                m + n     m + 1 (ready: 1)    2 (ready: 1)
 *   words to wait for              m + n     1                   1
 *   counters held                  2m + 2n   m + 2 (ready: 2)    3 (ready: 2)
 *
 * The counterparts of an exchange's operations need not be of one, nor of one
 * that is equal. No message of an exchange is sent ahead of its receive's
 * start (UCX_ST_EAGER_MAX).
 *
 * Coupled: of the sends whose counterparts are of coupled exchanges, too, none
 * goes before all these counterparts have been started. That is right where
 * each process starts everything at once, as in a halo exchange. It is wrong
 * where the start of a receive depends on another send of the same exchange:
 * with three processes and coupled exchanges, of which A sends to B and C, and
 * C starts its receive when a message of B has come, which B sends once it has
 * A's, nobody goes on. A send whose counterpart is not of a coupled exchange
 * goes by itself, and needs a store and a counter of its own.
 *
 * Errors: the exchange is the unit. An error of one operation fails all.
 */
#ifndef UCP_ST_EXCHANGE_API_H_
#define UCP_ST_EXCHANGE_API_H_

#include <ucp_st_def.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Flags of @ref ucp_st_exchange_create. */
enum ucp_st_exchange_flags {
    /** Its sends, and those of its counterparts that are coupled, too, go once
     *  all are started; see above. */
    UCP_ST_EXCHANGE_FLAG_COUPLED = 1u << 0
};


/**
 * Make an exchange of operations. Local.
 *
 * @param [in]  worker     The worker.
 * @param [in]  ops        Its operations, not matched yet, each once.
 * @param [in]  count      How many; 0 is legal.
 * @param [in]  flags      Mask of @ref ucp_st_exchange_flags.
 * @param [out] exchange_p Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_INVALID_PARAM for an unknown flag, or an operation
 *         that is there twice or is another worker's; UCS_ERR_BUSY if one was
 *         given to match, or is of an exchange already.
 *
 * Ownership: the exchange is the caller's until @ref ucp_st_exchange_free,
 *            which frees the operations as well: until then they may be queried
 *            and matched, but neither be started, waited for nor freed one by
 *            one.
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_exchange_create(ucp_st_worker_h worker,
                                    const ucp_st_op_h *ops, size_t count,
                                    uint64_t flags,
                                    ucp_st_exchange_h *exchange_p);


/**
 * Add operations to an exchange, of which others may be matched already. Local.
 *
 * @param [in] exchange The exchange; never started.
 * @param [in] ops      As @ref ucp_st_exchange_create.
 * @param [in] count    How many; 0 is legal.
 *
 * @return As @ref ucp_st_exchange_create, and nothing is added on error;
 *         UCS_ERR_BUSY also if the exchange was started; UCS_ERR_CANCELED if it
 *         has failed.
 *
 * Ownership: as @ref ucp_st_exchange_create.
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_exchange_add(ucp_st_exchange_h exchange,
                                 const ucp_st_op_h *ops, size_t count);


/**
 * Match all operations that are not matched yet, and block until that is done:
 * @ref ucp_st_matchall.
 *
 * @param [in] exchange The exchange.
 *
 * @return As @ref ucp_st_matchall. After UCS_ERR_NO_RESOURCE the exchange may
 *         be given to match again; after any other error of an operation it can
 *         only be freed, though others may be matched.
 *
 * Threads: as the UCP worker; progresses it.
 */
ucs_status_t ucp_st_exchange_match(ucp_st_exchange_h exchange);


/**
 * Give them to match and return at once: @ref ucp_st_imatchall.
 *
 * @param [in] exchange The exchange.
 *
 * @return As @ref ucp_st_imatchall.
 *
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_exchange_imatch(ucp_st_exchange_h exchange);


/**
 * Progress the UCP worker and tell whether all are matched.
 *
 * @param [in] exchange The exchange.
 *
 * @return UCS_OK if they are; UCS_INPROGRESS if some are not yet; else an
 *         error, as @ref ucp_st_match_test.
 *
 * Threads: as the UCP worker.
 */
ucs_status_t ucp_st_exchange_match_test(ucp_st_exchange_h exchange);


/**
 * Enqueue the start of all operations: @ref ucp_st_enqueue_startall.
 *
 * @param [in] queue    The queue.
 * @param [in] exchange All matched.
 *
 * @return As @ref ucp_st_enqueue_startall. Nothing is enqueued on error.
 *
 * Ownership: of the buffers, as there.
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_enqueue_exchange_start(ucp_st_queue_h queue,
                                           ucp_st_exchange_h exchange);


/**
 * Enqueue the wait for all operations: @ref ucp_st_enqueue_waitall.
 *
 * @param [in] queue    The queue that the exchange was started on.
 * @param [in] exchange Started.
 *
 * @return As @ref ucp_st_enqueue_waitall. Nothing is enqueued on error.
 *
 * Threads: the queue's rule.
 */
ucs_status_t ucp_st_enqueue_exchange_wait(ucp_st_queue_h queue,
                                          ucp_st_exchange_h exchange);


/**
 * Tell whether the last use is over for the host, without waiting.
 *
 * @param [in] exchange The exchange.
 *
 * @return As @ref ucp_st_op_test, for all operations: the first error, else
 *         UCS_INPROGRESS while one is under way, else UCS_ERR_NO_MESSAGE if the
 *         use is complete and was not waited for, else UCS_OK.
 *
 * Threads: the rule of the queue of its last start.
 */
ucs_status_t ucp_st_exchange_test(ucp_st_exchange_h exchange);


/**
 * Free an exchange and its operations: @ref ucp_st_op_free for each.
 *
 * @param [in] exchange The exchange; matched or not.
 *
 * @return UCS_OK; UCS_ERR_BUSY, and nothing is freed, as @ref ucp_st_op_free.
 *
 * Ownership: on UCS_OK the handles of the exchange and its operations are gone.
 * Threads: as @ref ucp_st_op_free.
 */
ucs_status_t ucp_st_exchange_free(ucp_st_exchange_h exchange);

#ifdef __cplusplus
}
#endif

#endif
