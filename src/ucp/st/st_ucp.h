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

/** Non-zero if UCX_TLS leaves a transport of shared memory. */
int ucp_st_ucp_has_shm(void);

/** UCP could not do something for want of something here: non-zero; else it is
 *  because of the peer. */
int ucp_st_ucp_is_local(ucs_status_t status);

/** What to say where UCP could not connect: transports fail in many ways to
 *  reach who is not there any more. */
ucs_status_t ucp_st_ucp_connect_status(ucs_status_t status);

#endif
