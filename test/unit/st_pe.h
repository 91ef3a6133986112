/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_pe.h - PEs of a runtime in one process: each has a UCP worker, endpoints
 * to all of them, itself included, and a context of channels.
 */
#ifndef ST_PE_H_
#define ST_PE_H_

#include "st_far.h"
#include "ucp_side.h"

#include <ucp_st_channel.h>

#define ST_PE_MAX 8

/** A message: buffer, length, callback, and its argument. */
#define ST_PE_MSG(...) (&(const ucp_st_channel_msg_t){__VA_ARGS__})

typedef struct st_pe {
    ucp_side_t           side;
    ucp_worker_h         worker; /* Of it */
    ucp_ep_h             eps[ST_PE_MAX];
    ucp_st_channel_ctx_h ctx;
} st_pe_t;

typedef struct st_pes {
    unsigned num;
    st_pe_t  pe[ST_PE_MAX];
} st_pes_t;

/** A worker over UCX_TLS. Asserts. */
void st_pe_open(ucp_side_t *side);

/** An endpoint that fails with its peer. Asserts. */
ucp_ep_h st_pe_connect(ucp_worker_h worker, const void *address);

/** So many PEs with this layout; NULL: the paper's. Asserts. */
void st_pes_init(st_pes_t *pes, unsigned num,
                 const ucp_st_tag_layout_t *layout);

/** A case on "pes", of so many. */
#define PES_CASE(_name, _num) \
    ST_CASE_WITH(_name, st_pes_t, pes, st_pes_init(pes, _num, NULL), \
                 st_pes_cleanup(pes))

/** One PE, and endpoints as if another process of this program, which calls
 *  this as well, were PE 1. Asserts. */
void st_pes_init_far(st_pes_t *pes, const st_far_t *far);
void st_pes_cleanup_far(st_pes_t *pes);

/** All channels are destroyed. Asserts that the contexts that are there can be,
 *  too. */
void st_pes_cleanup(st_pes_t *pes);

/** Progress all once. */
void st_pes_progress(st_pes_t *pes);

/** What a callback has said. */
typedef struct {
    unsigned     calls;
    ucs_status_t status;
    size_t       length;
} said_t;

/** The callback. */
void hear(void *arg, ucs_status_t status, size_t length);

/** Progress until an operation is over, that returned `status`, at once or by
 *  its callback: what became of it. Asserts one call, or none. */
ucs_status_t await(st_pes_t *pes, ucs_status_t status, said_t *said);

/** An end of channel `id` on PE `at`, whose other end is on PE `other`.
 *  Asserts. */
ucp_st_channel_h st_pes_channel(st_pes_t *pes, unsigned at, unsigned other,
                                uint64_t id, unsigned end);

/** Pack an end that is quiet, and destroy it: its bytes, the caller's. Asserts.
 */
void *st_pe_pack(ucp_st_channel_h end, size_t *length_p);

/** Make one of these on PE `at`, whose other end is on PE `other`. Asserts. */
ucp_st_channel_h st_pes_unpack(st_pes_t *pes, unsigned at, unsigned other,
                               const void *bytes, size_t length);

/** Tell an end on PE `at` that its other end is on PE `other` now. Asserts. */
void st_pes_rebind(st_pes_t *pes, ucp_st_channel_h end, unsigned at,
                   unsigned other);

#endif
