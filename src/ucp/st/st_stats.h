/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_stats.h - what a worker has counted, told when it goes (UCX_ST_STATS).
 */
#ifndef UCP_ST_STATS_H_
#define UCP_ST_STATS_H_

#include <ucp_st.h>

/** A worker is open: number it, and have its counts written should the process
 *  exit before it is destroyed, if UCX_ST_STATS says so. */
void ucp_st_stats_add_worker(ucp_st_worker_h worker);

/** A worker is about to close, its lanes are open yet: write its counts if
 *  UCX_ST_STATS says so. Its lock is not held. */
void ucp_st_stats_remove_worker(ucp_st_worker_h worker);

#endif
