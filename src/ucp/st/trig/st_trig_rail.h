/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_trig_rail.h - one NIC of the trig lane: an interface on the transport
 * cxi_trig, opened through UCT's public API, and what its operations share.
 *
 * That includes registered memory in pieces of a cache line. Slabs of these are
 * registered once and kept until the device is closed; to get a piece and to
 * give it back makes no system call while one is free.
 */
#ifndef UCP_ST_TRIG_RAIL_H_
#define UCP_ST_TRIG_RAIL_H_

#include <ucp_st.h>
#include <uct_trig.h>

/** Size of a slab, bytes. It is of ucs_gstream_memory_get(): in pages of the
 *  library's own, as a provider may keep them from forked processes. */
#define UCP_ST_TRIG_PAGE 4096

/** A process that has fewer entries of a device leaves the lane off: pairs
 *  would have one use of each under way, and soon find none. */
#define UCP_ST_TRIG_ENTRIES_MIN 16

/** Bytes of a piece, and its alignment. */
#define UCP_ST_TRIG_PIECE 64

/** A page of pieces. */
typedef struct ucp_st_trig_slab {
    struct ucp_st_trig_slab *next;
    uct_trig_mem_h          mem;
    uct_trig_rkey_t         rkey;   /* of the whole slab; read-only */
    void                    *block;
    int                     is_kept; /* the block stays when the rail goes */
} ucp_st_trig_slab_t;

/** A piece of one. */
typedef struct ucp_st_trig_piece {
    void               *address;
    ucp_st_trig_slab_t *slab;       /* NULL: there is none */
} ucp_st_trig_piece_t;

struct ucp_st_trig_free;

/** Protected by the worker's lock, except where a field says otherwise. */
typedef struct ucp_st_trig_rail {
    uct_md_h              md;
    uct_iface_h           iface;
    uct_iface_attr_t      iface_attr; /* read-only */
    uct_trig_iface_attr_t attr;       /* limits; read-only */
    ucp_st_worker_h       worker;     /* read-only */
    uct_ep_h              self_ep;    /* for the own words */
    unsigned              used;       /* deferred work that is not over */
    uint64_t              refused;    /* work that was due, and that the NIC did
                                         not take of the host either */
    unsigned              max_ahead;  /* of that: see
                                         ucp_st_trig_rail_update() */
    ucp_st_trig_slab_t    *slabs;
    struct ucp_st_trig_free *free;    /* pieces */
    uct_trig_cntr_h       *cancel;    /* counters whose work is to be cancelled;
                                         room for max_cancel, which is kept */
    unsigned              num_cancel;
    unsigned              max_cancel;
} ucp_st_trig_rail_t;

/**
 * Open a device of a memory domain, which is the rail's from then on. UCT's
 * worker has been created; logs why not. No other thread uses the worker.
 */
ucs_status_t ucp_st_trig_rail_open(ucp_st_trig_rail_t *rail,
                                   ucp_st_worker_h worker, uct_md_h md,
                                   const uct_tl_resource_desc_t *tl);

/**
 * Set how many entries may be in use for one of them to be taken ahead, for
 * work that others of the same owner come before: however far the host is ahead
 * of some streams, the next uses of others find entries. The process's share
 * becomes less when others begin to use entries, so that matches call this
 * again. All rails together: the entries may be a process's, not a NIC's. The
 * lock is held, or no other thread uses the worker.
 */
void ucp_st_trig_rail_update(ucp_st_trig_rail_t *rail, unsigned num_rails);

/** Close it, and its memory domain. The NIC holds nothing any more. */
void ucp_st_trig_rail_close(ucp_st_trig_rail_t *rail);

/** Bytes of a rail's address. */
size_t ucp_st_trig_rail_address_length(const ucp_st_trig_rail_t *rail);

/** Write a rail's address. */
ucs_status_t ucp_st_trig_rail_address_pack(const ucp_st_trig_rail_t *rail,
                                           void *buffer);

/**
 * Make an endpoint to what an address_pack() described. UCS_ERR_UNREACHABLE,
 * without a message, where there is no way. The lock is held, or no other
 * thread uses the worker.
 */
ucs_status_t ucp_st_trig_rail_ep_create(const ucp_st_trig_rail_t *rail,
                                        const void *address, uct_ep_h *ep_p);

/** Non-zero while the NIC holds deferred operations. */
int ucp_st_trig_rail_is_busy(const ucp_st_trig_rail_t *rail);

/** Get a piece. What it holds is undefined. */
ucs_status_t ucp_st_trig_piece_get(ucp_st_trig_rail_t *rail,
                                   ucp_st_trig_piece_t *piece);

/** Keep a piece for the life of the process: it is not given back. The NIC does
 *  not reach it any more, but kernels may look at it. */
void ucp_st_trig_piece_keep(ucp_st_trig_piece_t *piece);

/** Give a piece back, if it is one. Nothing reaches it any more. */
void ucp_st_trig_piece_put(ucp_st_trig_rail_t *rail,
                           const ucp_st_trig_piece_t *piece);

#endif
