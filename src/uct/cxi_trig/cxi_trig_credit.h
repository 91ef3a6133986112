/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_credit.h - accounting of deferred-work entries.
 *
 * When the NIC runs out of entries its queue of commands stalls, so that every
 * operation takes one of these first. A put, a get or an addition needs one
 * entry of the NIC; cxi would need two for a fetching atomic that is delivered,
 * or for work with a writeback (FI_CXI_CNTR_WB), of which there is none here.
 *
 * What an interface posts comes out of its own allowance and out of the pool
 * that all interfaces of the process share. A pool whose entries
 * are those of several processes has what it got of a ledger of the node:
 *
 *  - Each process may have max / P, where P is the number of the job's
 *    processes on the node as the launcher or UCX_CXI_TRIG_NODE_PROCESSES says.
 *    It takes that at once and keeps it: no process can take from another one's
 *    share.
 *  - If P is not known, it is the number of processes that use entries now. A
 *    process takes entries as it needs them, and returns them: the first one
 *    may have them all, and later its share only.
 *
 * Shares alone would do where P is known, were it not for processes of other
 * jobs, and for launchers that are wrong; the ledger alone would do, too, were
 * it fair. Both together need no agreement between processes, and a wrong P
 * costs speed, not a stall.
 */
#ifndef UCT_CXI_TRIG_CREDIT_H_
#define UCT_CXI_TRIG_CREDIT_H_

#include "uct_trig.h"

#include <ucs_ledger.h>

#include <pthread.h>

/** Longest key of a pool, with the final zero. */
#define UCT_CXI_TRIG_CREDIT_KEY_MAX 192


/** What a pool is. */
typedef struct uct_cxi_trig_credit_params {
    char     key[UCT_CXI_TRIG_CREDIT_KEY_MAX]; /**< Whose entries these are */
    unsigned max;       /**< Of all processes */
    int      is_shared; /**< With other processes of the node */
    unsigned num_procs; /**< P, or 0 if that is not known */
} uct_cxi_trig_credit_params_t;


/** Entries that the process may use. Any thread. */
typedef struct uct_cxi_trig_credit_pool {
    struct uct_cxi_trig_credit_pool *next;  /**< This and refs: see the table */
    unsigned                        refs;
    uct_cxi_trig_credit_params_t    params; /**< Constant */
    uint64_t                        state;  /**< Entries that the process has,
                                                 and in the lower half those in
                                                 use; atomic */
    pthread_mutex_t                 lock;   /**< Protects what follows, and to
                                                 have more or fewer */
    int                             is_open; /**< The ledger is; atomic */
    int                             is_alone; /**< It cannot be; atomic */
    ucs_ledger_t                    ledger;  /**< Its first number */
} uct_cxi_trig_credit_pool_t;


/** Entries of one interface. One thread at a time. */
typedef struct uct_cxi_trig_credit {
    uct_cxi_trig_credit_pool_t *pool;
    unsigned                   total; /**< The interface's allowance */
    unsigned                   free;  /**< Not posted */
} uct_cxi_trig_credit_t;


/** The pool of that key, made by the first call; the parameters of later ones
 *  do not count. UCS_OK, or UCS_ERR_NO_MEMORY. */
ucs_status_t
uct_cxi_trig_credit_pool_get(const uct_cxi_trig_credit_params_t *params,
                             uct_cxi_trig_credit_pool_t **pool_p);

/** Release it; the last call frees it. */
void uct_cxi_trig_credit_pool_put(uct_cxi_trig_credit_pool_t *pool);

/** The processes that share the NIC's entries, as far as is known now. */
unsigned uct_cxi_trig_credit_pool_procs(uct_cxi_trig_credit_pool_t *pool);

/** What the process may have now, of all. */
unsigned uct_cxi_trig_credit_pool_share(uct_cxi_trig_credit_pool_t *pool);

/** Start with an allowance of @a total entries. The pool is released with
 *  uct_cxi_trig_credit_cleanup(). */
void uct_cxi_trig_credit_init(uct_cxi_trig_credit_t *credit,
                              uct_cxi_trig_credit_pool_t *pool,
                              unsigned total);

/** Nothing is posted any more, or ever comes back. */
void uct_cxi_trig_credit_cleanup(uct_cxi_trig_credit_t *credit);

/** The allowance, or the process's share if that is less. */
unsigned uct_cxi_trig_credit_max(const uct_cxi_trig_credit_t *credit);

/** Entries that can be had now. */
unsigned uct_cxi_trig_credit_avail(const uct_cxi_trig_credit_t *credit);

/** Take an entry to post: UCS_OK, or UCS_ERR_NO_RESOURCE with no effect. */
ucs_status_t uct_cxi_trig_credit_take(uct_cxi_trig_credit_t *credit);

/** Give so many back. */
void uct_cxi_trig_credit_give(uct_cxi_trig_credit_t *credit, unsigned count);

/** Before a fork, and behind it in both processes: no other thread changes the
 *  table of pools meanwhile. In the child its pools are nobody else's. */
void uct_cxi_trig_credit_fork_begin(void);
void uct_cxi_trig_credit_fork_end(int is_child);

#endif
