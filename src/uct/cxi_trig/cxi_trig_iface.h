/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_iface.h - the interface: one libfabric endpoint and its queues.
 *
 * The layers of this folder. A file calls those of lower layers and, in its
 * own, those that stand before it. No call goes upwards: contrib/check-calls.py
 * finds no circle.
 *
 *   layer       files (cxi_trig_*)      what they are
 *   6 whole     guard fork iface ext    constructors, UCT's interface, and what
 *                                       the trigger extension tells of it
 *   5 progress  cq cancel ep progress   operations end; endpoints, from their
 *                                       creation to their failure or end
 *   4 immediate tx pending am amo rma   messages, puts, gets and atomics
 *   4 deferred  cntr mem dwq dwq_cq     the trigger extension's objects, and
 *               dwq_count op            operations that wait for a counter
 *   3 peers     rx addr peer            receives, addresses, peers
 *   2 domain    stats cntr_pool net mr  the memory domain: counters, endpoints,
 *               target cache memh md    registered memory
 *   1 libfabric status cassini emu node provider and device as libfabric, the
 *               events gpu device probe machine and the launcher tell of them;
 *               prov proto track credit what needs no object of ours
 *
 * The two halves of layer 4 do not call each other. The state of a domain, an
 * interface and an endpoint is in md.h, iface.h and ep.h, for all layers. An
 * operation's end is a function that its layer gives it (cxi_trig_req.h), and
 * that cq calls. dwq reaches its two back-ends by a table (cxi_trig_dwq.h).
 */
#ifndef UCT_CXI_TRIG_IFACE_H_
#define UCT_CXI_TRIG_IFACE_H_

#include "compat.h"
#include "cxi_trig_credit.h"
#include "cxi_trig_dwq.h"
#include "cxi_trig_md.h"
#include "cxi_trig_net.h"
#include "cxi_trig_stats.h"
#include "cxi_trig_track.h"

#include <ucs/datastruct/arbiter.h>
#include <ucs/datastruct/list.h>
#include <ucs/datastruct/mpool.h>


/** Pieces of an active message that is copied. */
#define UCT_CXI_TRIG_MAX_IOV 16

/** Pieces of local memory of an operation without a copy, at most. */
#define UCT_CXI_TRIG_TX_MAX_IOV 8


/** Settings of an interface. */
typedef struct uct_cxi_trig_iface_config {
    uct_iface_config_t super;
    size_t             seg_size;
    unsigned           tx_queue_len;
    unsigned           rx_queue_len;
    unsigned           deferred_entries;
    unsigned long      node_processes;
} uct_cxi_trig_iface_config_t;


/** Atomics of one width, bits of UCT_ATOMIC_OP_xx. */
typedef struct uct_cxi_trig_amo_caps {
    uint64_t post;
    uint64_t fetch;
} uct_cxi_trig_amo_caps_t;


/** Interface. One thread at a time, but for uct_trig_cntr_add(). */
typedef struct uct_cxi_trig_iface {
    uct_base_iface_t     super;
    uct_cxi_trig_net_t   net;
    size_t               seg_size; /**< Longest buffered put or get */
    size_t               max_am;   /**< Longest payload of a message */
    ucs_list_link_t      failed;   /**< Endpoints to be reported */
    ucs_list_link_t      late;     /**< Completions that were read already,
                                        uct_cxi_trig_late_t */
    int                  has_told; /**< Of peers of other versions */
    int                  is_broken; /**< Its completion queue fails */
    unsigned             calls;    /**< Of progress since the memory domain's
                                        endpoint had its turn */
    uct_trig_iface_stats_t stats;

    struct {
        uint64_t                   word;      /**< Peers get it to see whether
                                                   the interface is there */
        struct fid_mr              *mr;
    } probe;

    struct {
        size_t                     max_iov;   /**< Without a copy */
        size_t                     max_zcopy; /**< Longest put and get, bytes */
        uct_cxi_trig_amo_caps_t    amo32;
        uct_cxi_trig_amo_caps_t    amo64;
    } caps;                                   /**< What the provider has */

    struct {
        ucs_mpool_t                mp;
        unsigned                   avail;    /**< May still be posted */
        struct uct_cxi_trig_tx_op  *backlog; /**< Provider had no room yet */
        ucs_list_link_t            held;     /**< Behind a fence, in order */
        uct_cxi_trig_track_t       track;
        uint64_t                   fence;    /**< Nothing before it passed */
        ucs_arbiter_t              pending;
    } tx;

    struct {
        ucs_mpool_t                mp;
        ucs_list_link_t            ops;      /**< Posted receives, in order */
        unsigned                   posted;   /**< Of them */
        unsigned                   queue_len; /**< As many as are to be
                                                   posted */
        int                        enabled;
    } rx;

    uct_cxi_trig_dwq_t   dwq;
    ucs_list_link_t      cntrs;
    unsigned             num_cntrs;
    ucs_list_link_t      mems;
} uct_cxi_trig_iface_t;


extern ucs_config_field_t uct_cxi_trig_iface_config_table[];

/** The transport, for its registration. */
extern uct_tl_t UCT_TL_NAME(cxi_trig);
extern uct_iface_internal_ops_t uct_cxi_trig_iface_internal_ops;

UCS_CLASS_DECLARE_NEW_FUNC(uct_cxi_trig_iface_t, uct_iface_t, uct_md_h,
                           uct_worker_h, const uct_iface_params_t*,
                           const uct_iface_config_t*);


/** The interface's memory domain. */
static inline uct_cxi_trig_md_t *
uct_cxi_trig_iface_md(const uct_cxi_trig_iface_t *iface)
{
    return ucs_derived_of(iface->super.md, uct_cxi_trig_md_t);
}

#endif
