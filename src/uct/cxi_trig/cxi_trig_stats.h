/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_stats.h - our own counts: told at the end, and in UCX's tree of
 * objects.
 *
 * Those of an interface are plain words that its one thread increments; those
 * of a memory domain are atomic, as any thread may register memory.
 */
#ifndef UCT_CXI_TRIG_STATS_H_
#define UCT_CXI_TRIG_STATS_H_

#include "uct_trig_stats.h"

#include <stddef.h>

struct uct_cxi_trig_md;


/** Count something of an interface. */
static inline void uct_cxi_trig_stats_add(uct_trig_stats_ops_t *ops,
                                          size_t length)
{
    ++ops->count;
    ops->bytes += length;
}

/** Count something of a memory domain. */
static inline void uct_cxi_trig_stats_atomic(uint64_t *counter, uint64_t value)
{
    (void)__atomic_fetch_add(counter, value, __ATOMIC_RELAXED);
}

/** Write the counts to the standard error output, if UCX_CXI_TRIG_STATS says
 *  so. The interface, or the domain, is about to be closed. */
void uct_cxi_trig_stats_tell_iface(const struct uct_cxi_trig_md *md,
                                   const void *iface,
                                   const uct_trig_iface_stats_t *stats);
void uct_cxi_trig_stats_tell_md(const struct uct_cxi_trig_md *md);

/** Show the counts, a file each, in UCX's tree of objects. */
void uct_cxi_trig_stats_vfs_iface(void *iface, uct_trig_iface_stats_t *stats);
void uct_cxi_trig_stats_vfs_md(struct uct_cxi_trig_md *md);

#endif
