/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_ucp.h - UCP contexts of the library's own.
 */
#ifndef UCP_ST_UCP_H_
#define UCP_ST_UCP_H_

#include <ucp_st.h>

/**
 * Make a UCP context with the settings of the environment. What that does not
 * say is set so that UCP tells of dead peers, also of those that shared memory
 * reaches, and does not ask after them. Workers of a sleeper are waited for in
 * poll() alone.
 */
ucs_status_t ucp_st_ucp_context_create(uint64_t features, int is_sleeper,
                                       const char *name,
                                       ucp_context_h *context_p);

/**
 * Close an endpoint, or none if it is NULL, with flags of ucp_ep_close_nbx().
 * What UCP has not closed at `end`, a time of ucp_st_worker_now(), it goes on
 * with in its progress. UCP is called: the worker's lock is not held.
 */
void ucp_st_ucp_ep_close(ucp_worker_h ucp_worker, ucp_ep_h ep, unsigned flags,
                         double end);

/**
 * Have UCP close an endpoint by force, and do not wait for that: `*count` is
 * one more until UCP has done it, in its progress. The worker's lock is not
 * held.
 */
void ucp_st_ucp_ep_close_later(ucp_ep_h ep, unsigned *count);

/** Non-zero if UCX_TLS leaves a transport of shared memory. */
int ucp_st_ucp_has_shm(void);

/** UCP could not do something for want of something here: non-zero; else it is
 *  because of the peer. */
int ucp_st_ucp_is_local(ucs_status_t status);

/** What to say where UCP could not connect: transports fail in many ways to
 *  reach a peer that is not there any more. */
ucs_status_t ucp_st_ucp_connect_status(ucs_status_t status);

#endif
