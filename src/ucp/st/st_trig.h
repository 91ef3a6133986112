/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig.h - the trig lane of one operation.
 *
 * A use k of a pair, two-count standard send (protocol-rules, rule 1):
 *
 *   sender                                      receiver
 *   stream:  start adds 1 to T                  stream:  start adds 1 to R
 *                                               NIC:     R >= k: put to the
 *            T counts that put too  <---------           sender's pad
 *   NIC:     T >= 2k: put the data  --------->  buffer;  D counts it
 *            C >= k: word += 1                  NIC:     D >= k: word += 1
 *   stream:  wait for word >= k                 stream:  wait for word >= k
 *
 * Neither side counts for use k+1 before its own wait of use k has run (a start
 * goes on the same queue, or after the host has seen that wait pass), so that
 * only the k-th start and the k-th clear-to-send together make T >= 2k. A ready
 * send has no clear-to-send: T >= k.
 */
#ifndef UCP_ST_TRIG_H_
#define UCP_ST_TRIG_H_

#include <ucp_st.h>

#include "st_trig_dev.h"

#include <ucs/datastruct/list.h>

/** Added to a word to let its waits pass: above any count of uses, and below
 *  2^63, for a NIC's further additions and for CUDA's cyclic comparison. */
#define UCP_ST_TRIG_RELEASE (1ull << 62)

/** Where the peer writes: a send's clear-to-send word, a receive's data. */
typedef struct ucp_st_trig_region {
    uint64_t address;
    uint8_t  rkey[UCT_TRIG_RKEY_PACKED_LEN];
} __attribute__((packed)) ucp_st_trig_region_t;

_Static_assert(sizeof(ucp_st_trig_region_t) == 40, "wire format");

/** The two kinds of entries of a use. */
typedef enum {
    UCP_ST_TRIG_ENTRY_PUT,  /**< Send: the data; receive: the clear-to-send */
    UCP_ST_TRIG_ENTRY_WORD, /**< The word that the stream waits on */
    UCP_ST_TRIG_ENTRY_LAST
} ucp_st_trig_entry_t;

/**
 * Protected by the worker's lock; `released` is also read by the stream.
 */
typedef struct ucp_st_trig_op {
    ucs_list_link_t     late_list; /* in the device's late */
    int                 is_late;
    int                 active;    /* offered: what follows exists */
    int                 released;  /* starts must have no effect any more */
    ucp_st_trig_slot_t  *slot;
    uct_trig_rkey_t     slot_rkey;
    uct_trig_cntr_h     start;     /* T or R: streams add to it */
    uct_trig_cntr_h     data;      /* C or D: counts the data */
    uct_trig_doorbell_t doorbell;  /* of `start` */
    uct_trig_mem_h      mem;       /* what the peer writes; NULL once revoked */
    uct_trig_mem_h      local;     /* source of puts, where it must be given */
    uint64_t            remote_address; /* where to put */
    uct_trig_rkey_t     remote_rkey;
    uct_trig_resv_t     resv[UCP_ST_TRIG_ENTRY_LAST];
    uint64_t            posted[UCP_ST_TRIG_ENTRY_LAST]; /* uses */
    uint64_t            done[UCP_ST_TRIG_ENTRY_LAST];   /* uses, or failed */
} ucp_st_trig_op_t;

/** Post the uses of late operations as entries allow. The lock is held. */
void ucp_st_trig_post_late(ucp_st_worker_h worker);

#endif
