/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_dev.h - the NIC behind the trig lane: one interface on the transport
 * cxi_trig, opened through UCT's public API.
 */
#ifndef UCP_ST_TRIG_DEV_H_
#define UCP_ST_TRIG_DEV_H_

#include <ucp_st.h>
#include <uct_trig.h>

#include <ucs/async/async_fwd.h>
#include <ucs/datastruct/list.h>

#include "st_service.h"

/**
 * A cache line of registered memory an operation: the word that streams wait
 * on, counted up by the NIC, and a place for a peer to write to.
 */
typedef struct ucp_st_trig_slot {
    volatile uint64_t word;
    uint64_t          pad; /* clear-to-send word, or target of empty sends */
    struct ucp_st_trig_slot *next; /* while free */
    uint64_t          reserved[5];
} ucp_st_trig_slot_t;

/** Slots that were registered together. */
typedef struct ucp_st_trig_slab {
    struct ucp_st_trig_slab *next;
    uct_trig_mem_h          mem;
    uct_trig_rkey_t         rkey;
    ucp_st_trig_slot_t      *slots;
} ucp_st_trig_slab_t;

/** Protected by the worker's lock but for what says otherwise. */
typedef struct ucp_st_trig_dev {
    ucs_async_context_t   *async;
    uct_worker_h          uct_worker;
    uct_md_h              md;
    uct_iface_h           iface;
    uct_iface_attr_t      iface_attr; /* read-only */
    uct_trig_iface_attr_t attr;       /* limits; read-only */
    uct_ep_h              self_ep;    /* for the own words */
    uct_trig_cntr_h       sink;       /* completions that nothing waits for */
    unsigned              ahead;      /* entries in use that nobody reserved */
    unsigned              max_ahead;  /* of them: the rest is for matches */
    int                   helped;     /* streams drive it; owner's */
    ucp_st_trig_slab_t    *slabs;
    ucp_st_trig_slot_t    *free_slots;
    ucs_list_link_t       late;       /* operations with uses to post */

    ucp_st_service_client_t service;  /* its own */
} ucp_st_trig_dev_t;

/**
 * Open the device. Logs why it could not.
 */
ucs_status_t ucp_st_trig_dev_init(ucp_st_worker_h worker);

/**
 * Stop the thread and close the device; if the NIC still holds operations it is
 * left open, with a warning. The lock is not held.
 */
void ucp_st_trig_dev_cleanup(ucp_st_worker_h worker);

/** Have the service thread look at the worker again. With the lock held or
 *  not. */
void ucp_st_trig_dev_wake(ucp_st_worker_h worker);

/** The lane's functions for workers and peers: see st_lane.h. */
size_t ucp_st_trig_dev_address_length(ucp_st_worker_h worker);
ucs_status_t ucp_st_trig_dev_address_pack(ucp_st_worker_h worker, void *buffer);
ucs_status_t ucp_st_trig_dev_query(ucp_st_worker_h worker,
                                   ucp_st_worker_attr_t *attr);
ucs_status_t ucp_st_trig_dev_connect(ucp_st_peer_h peer, const void *address,
                                     size_t length);
void ucp_st_trig_dev_disconnect(ucp_st_peer_h peer);
void ucp_st_trig_dev_check(ucp_st_peer_h peer);

/** Get a slot with its words 0, and the slab it is in. The lock is held. */
ucs_status_t ucp_st_trig_slot_get(ucp_st_worker_h worker,
                                  ucp_st_trig_slot_t **slot_p,
                                  uct_trig_rkey_t *rkey);

/** Return a slot. The lock is held. */
void ucp_st_trig_slot_put(ucp_st_worker_h worker, ucp_st_trig_slot_t *slot);

/** Reap completions and post what is late. The lock is held. */
unsigned ucp_st_trig_dev_progress(ucp_st_worker_h worker);

#endif
