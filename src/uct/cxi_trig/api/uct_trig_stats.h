/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uct_trig_stats.h - what an interface and a memory domain of the cxi_trig
 * transport have counted, whether or not UCX was built with statistics.
 */
#ifndef UCT_TRIG_STATS_H_
#define UCT_TRIG_STATS_H_

#include <uct/api/uct.h>

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Kinds of operations; copied: UCT's short and bcopy. */
typedef enum {
    UCT_TRIG_STATS_AM,        /**< Active messages, copied */
    UCT_TRIG_STATS_AM_ZCOPY,  /**< Active messages */
    UCT_TRIG_STATS_PUT,       /**< Puts, copied */
    UCT_TRIG_STATS_PUT_ZCOPY, /**< Puts */
    UCT_TRIG_STATS_GET,       /**< Gets, copied */
    UCT_TRIG_STATS_GET_ZCOPY, /**< Gets */
    UCT_TRIG_STATS_ATOMIC,    /**< Atomics */
    UCT_TRIG_STATS_PROBE,     /**< Questions whether a peer is alive */
    UCT_TRIG_STATS_LAST
} uct_trig_stats_kind_t;


/** Operations of one kind that were started. */
typedef struct uct_trig_stats_ops {
    uint64_t count; /**< How many */
    uint64_t bytes; /**< Their payload */
} uct_trig_stats_ops_t;


/** Counts of an interface, since it was opened. */
typedef struct uct_trig_iface_stats {
    uct_trig_stats_ops_t ops[UCT_TRIG_STATS_LAST]; /**< Started, by kind */
    uint64_t             completed;     /**< Of these, done */
    uint64_t             failed;        /**< Of these, failed or cancelled */
    uint64_t             no_descriptor; /**< Calls that were refused: too many
                                             operations were in flight */
    uint64_t             no_room;       /**< Times that the provider had none */
    uint64_t             resends;       /**< Times that it was asked again */
    uint64_t             held;          /**< Operations that waited for a
                                             fence */
    uint64_t             pending;       /**< Requests that were queued */
    uct_trig_stats_ops_t received;      /**< Messages for handlers */
    uint64_t             deferred;      /**< Deferred operations posted */
    uint64_t             deferred_done; /**< Of these, done */
    uint64_t             deferred_failed; /**< Of these, failed or lost */
    uint64_t             no_entry;      /**< Calls that were refused for want of
                                             a deferred-work entry */
} uct_trig_iface_stats_t;


/** Counts of a memory domain, since it was opened. */
typedef struct uct_trig_md_stats {
    uct_trig_stats_ops_t registered;   /**< Regions, those of the trigger
                                            extension too */
    uint64_t             deregistered; /**< Of these, closed again */
    uint64_t             refused;      /**< Registrations that failed */
    uint64_t             cache_hits;   /**< Found in the domain's cache */
    uint64_t             cache_misses; /**< Not found there */
} uct_trig_md_stats_t;


/**
 * Read the counts of an interface.
 *
 * @param [in]  iface Any UCT interface.
 * @param [out] stats Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED for one of another transport.
 *
 * Threads: the interface's rule: one thread at a time.
 */
ucs_status_t uct_trig_iface_stats(uct_iface_h iface,
                                  uct_trig_iface_stats_t *stats);


/**
 * Read the counts of a memory domain.
 *
 * @param [in]  md    Any UCT memory domain.
 * @param [out] stats Filled on success only.
 *
 * @return UCS_OK; UCS_ERR_UNSUPPORTED for one of another component.
 *
 * Threads: any; what other threads do meanwhile may be counted in part.
 */
ucs_status_t uct_trig_md_stats(uct_md_h md, uct_trig_md_stats_t *stats);


/**
 * Print counts, a name and a number a line.
 *
 * @param [in] stats  The counts.
 * @param [in] stream Where to.
 *
 * Threads: any.
 */
void uct_trig_iface_stats_print(const uct_trig_iface_stats_t *stats,
                                FILE *stream);


/**
 * Print counts of a memory domain, as @ref uct_trig_iface_stats_print does.
 *
 * @param [in] stats  The counts.
 * @param [in] stream Where to.
 *
 * Threads: any.
 */
void uct_trig_md_stats_print(const uct_trig_md_stats_t *stats, FILE *stream);

#ifdef __cplusplus
}
#endif

#endif
