/* SPDX-License-Identifier: BSD-3-Clause */
/* mpix_fork.h - what the library does in a child that was forked. */
#ifndef MPIX_FORK_H_
#define MPIX_FORK_H_


/* In a child, where no other thread is: the locks are free. */
void mpix_batch_thread_forked(void);
void mpix_comm_forked(void);
void mpix_error_forked(void);
void mpix_global_forked(void);
void mpix_handle_forked(void);
void mpix_host_forked(void);
void mpix_match_thread_forked(void);

#endif
