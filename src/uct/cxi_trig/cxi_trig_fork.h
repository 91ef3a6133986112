/* SPDX-License-Identifier: BSD-3-Clause */
/* cxi_trig_fork.h - what the transport does when the process forks. */
#ifndef UCT_CXI_TRIG_FORK_H_
#define UCT_CXI_TRIG_FORK_H_


/** Before a fork, and behind it in both processes: no other thread changes the
 *  table of pools meanwhile. In the child its pools are nobody else's. */
void uct_cxi_trig_credit_fork_begin(void);
void uct_cxi_trig_credit_fork_end(int is_child);

/** In a child, where no other thread is: the lock is free. */
void uct_cxi_trig_prov_forked(void);
void uct_cxi_trig_target_forked(void);

#endif
