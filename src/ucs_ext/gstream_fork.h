/* SPDX-License-Identifier: BSD-3-Clause */
/* gstream_fork.h - what the library does when the process forks. */
#ifndef GSTREAM_FORK_H_
#define GSTREAM_FORK_H_

#include "api/ucs_gstream.h"


/** Forks that lie between this process and the one that loaded the library:
 *  objects of an ancestor have a smaller number. Constant in a process. */
extern unsigned gstream_forks;

/** Whether children are noticed: 0 if there was no memory for that. */
extern int gstream_fork_is_on;


/** Refuse an object of an ancestor; it is logged. UCS_ERR_UNSUPPORTED. */
ucs_status_t gstream_fork_refuse(const char *kind, const void *object);


/** Before a fork, and behind it in both processes: no other thread changes the
 *  list of streams meanwhile. In the child its streams refuse all. */
void gstream_registry_fork_begin(void);
void gstream_registry_fork_end(int is_child);

/** In a child, where no other thread is: the locks are free, and what was of
 *  the parent's threads, streams and devices is gone. */
void gstream_copy_forked(void);
void gstream_device_forked(void);
void gstream_gpu_forked(void);
void gstream_ipc_forked(void);
void gstream_memory_forked(void);
void gstream_pair_forked(void);
void gstream_poll_forked(void);
void gstream_share_forked(void);
void gstream_sleep_forked(void);
void gstream_thread_forked(void);
void gstream_trace_forked(void);

#endif
