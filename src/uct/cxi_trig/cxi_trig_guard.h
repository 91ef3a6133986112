/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_guard.h - refusal to run in a UCX that the transport was not built
 * for: all UCX versions have one library name, and different structures.
 */
#ifndef UCT_CXI_TRIG_GUARD_H_
#define UCT_CXI_TRIG_GUARD_H_

#include <stddef.h>


/**
 * Whether a transport built for UCX built_major.built_minor fits the running
 * version; warns if not.
 */
int uct_cxi_trig_guard_accepts(unsigned built_major, unsigned built_minor,
                               unsigned major, unsigned minor);

/**
 * Whether the library's constructor has made the transport known to UCX. What
 * calls this has the constructor in a program that is linked statically.
 */
int uct_cxi_trig_guard_is_registered(void);

/**
 * Let what a table of operations does not name return UCS_ERR_UNSUPPORTED:
 * later versions of UCX have operations that earlier ones do not, and call them
 * without looking. @a size in bytes; the table consists of functions alone.
 */
void uct_cxi_trig_guard_fill(void *ops, size_t size);

#endif
