/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_fork.h - what the provider does when the process forks. */
#ifndef CXIEMU_FORK_H_
#define CXIEMU_FORK_H_


/** Have what follows called from now on; once. */
void cxiemu_fork_install(void);


/** Before a fork, and behind it in both processes: no other thread has the lock
 *  meanwhile. What it protects is as it was. */
void cxiemu_dma_fork_begin(void);
void cxiemu_dma_fork_end(int is_child);
void cxiemu_map_fork_begin(void);
void cxiemu_map_fork_end(int is_child);
void cxiemu_trap_fork_begin(void);
void cxiemu_trap_fork_end(int is_child);

/** The same; in a child the process has no part in the service. */
void cxiemu_service_fork_begin(void);
void cxiemu_service_fork_end(int is_child);

/** In a child: nothing is open. */
void cxiemu_open_forked(void);

#endif
