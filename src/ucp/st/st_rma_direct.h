/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_rma_direct.h - one-sided operations on lane direct: who sleeps until a
 * signal comes, as peers see it.
 *
 * A peer's stream that has carried a signal out rings the bell of the only
 * sleeper, or wakes the service thread, which looks after all of them, where
 * there are more or the sleeper has no bell.
 */
#ifndef UCP_ST_RMA_DIRECT_H_
#define UCP_ST_RMA_DIRECT_H_

#include <ucp_st.h>

/** The stream of a queue with that lane may sleep until a signal comes, which
 *  it looks for once more after this: on the bell of its desk, or where only
 *  the service thread finds it. On the stream; and once until the next one. */
void ucp_st_rma_direct_doze(ucp_st_queue_h queue, int is_on_bell);

/** It does no more. */
void ucp_st_rma_direct_rouse(ucp_st_queue_h queue);

#endif
