/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ucp.h - contexts, endpoints and handlers of UCP.
 */
#ifndef UCP_ST_UCP_H_
#define UCP_ST_UCP_H_

#include <ucp_st.h>

/**
 * Make a UCP context with the settings of the environment. Others are set so
 * that UCP reports dead peers, also those that shared memory reaches, and sends
 * no keepalive messages. Threads sleep in poll() for workers of a sleeper.
 */
ucs_status_t ucp_st_ucp_context_create(uint64_t features, int is_sleeper,
                                       const char *name,
                                       ucp_context_h *context_p);

/** Have `cb` take active messages of a kind, with `arg`; NULL: drop them.
 *  `flags` are UCP's. */
ucs_status_t ucp_st_ucp_set_handler(ucp_worker_h ucp_worker, unsigned id,
                                    unsigned flags, ucp_am_recv_callback_t cb,
                                    void *arg);

/** Drop active messages of all kinds, of which the first `count` ones may get a
 *  handler later: a peer may send what nothing here takes. */
ucs_status_t ucp_st_ucp_drop_all(ucp_worker_h ucp_worker, unsigned count);

/**
 * Make an endpoint to a UCP worker of the peer. Should it fail UCP calls `cb`
 * with the peer. Also returns UCS_ERR_CONNECTION_RESET if the peer's process
 * has ended. The worker's lock is not held.
 */
ucs_status_t ucp_st_ucp_ep_create(ucp_worker_h ucp_worker, const void *address,
                                  ucp_err_handler_cb_t cb, ucp_st_peer_h peer,
                                  ucp_ep_h *ep_p);

/**
 * Wait until all that was sent has left this process, until `end`, a time of
 * ucp_st_worker_now(), at most. The worker's lock is not held.
 */
void ucp_st_ucp_ep_flush(ucp_worker_h ucp_worker, ucp_ep_h ep, double end);

/**
 * Close an endpoint, or none if it is NULL, with flags of ucp_ep_close_nbx().
 * Waits until `end`, a time of ucp_st_worker_now(); after that UCP goes on in
 * its progress. The worker's lock is not held.
 */
void ucp_st_ucp_ep_close(ucp_worker_h ucp_worker, ucp_ep_h ep, unsigned flags,
                         double end);

/**
 * Begin to close an endpoint by force: `*count` is one more until UCP has done
 * it, in its progress. The worker's lock is not held.
 */
void ucp_st_ucp_ep_close_later(ucp_ep_h ep, unsigned *count);

/** Non-zero if UCX_TLS leaves a transport of shared memory. */
int ucp_st_ucp_has_shm(void);

/** Non-zero if UCX has a transport that copies memory of GPUs to and from the
 *  host's, finds such a GPU, and UCX_TLS leaves it. A UCP context was made. */
int ucp_st_ucp_copies(ucs_gstream_type_t type);

/** Non-zero if an error of UCP has its cause in this process, zero if in the
 *  peer. */
int ucp_st_ucp_is_local(ucs_status_t status);

/** Non-zero if an error of UCP is want of memory here, which may end. */
static inline int ucp_st_ucp_is_full(ucs_status_t status)
{
    return (status == UCS_ERR_NO_MEMORY) || (status == UCS_ERR_NO_RESOURCE);
}

/** What to return if UCP could not connect: transports fail in many ways to
 *  reach a peer that has gone. */
ucs_status_t ucp_st_ucp_connect_status(ucs_status_t status);

#endif
