/* SPDX-License-Identifier: BSD-3-Clause */
/* ucp_side.h - workers of UCP over the transport, for tests. */
#ifndef UCP_SIDE_H_
#define UCP_SIDE_H_

#include <ucp/api/ucp.h>


/** A worker in a context of its own. */
typedef struct {
    ucp_context_h     context;
    ucp_worker_h      worker;
    ucp_worker_attr_t attr; /**< With its address */
} ucp_side_t;


/**
 * Make a worker for tagged and active messages, and for @a features beside
 * that, over some transports (UCX_TLS); @a flags are
 * UCP_WORKER_ADDRESS_FLAG_xx. All other settings are those of the environment.
 * Returns what ucp_init() does; anything else that fails ends the case.
 */
ucs_status_t ucp_side_open(ucp_side_t *side, const char *transports,
                           uint64_t features, uint64_t flags);

/** Undo it; endpoints are closed. */
void ucp_side_close(ucp_side_t *side);

/** Make an endpoint to another one, or to itself. */
ucp_ep_h ucp_side_connect(ucp_side_t *side, const ucp_side_t *peer);

/** Close an endpoint, whatever is in flight. */
void ucp_side_close_ep(ucp_side_t *side, ucp_ep_h ep);

/** Progress until a request is over, and free it; @a other (may be NULL) makes
 *  progress, too. */
ucs_status_t ucp_side_wait(ucp_side_t *side, ucp_side_t *other,
                           ucs_status_ptr_t request);

#endif
