/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_node.h - the processes of the job that the node has.
 */
#ifndef UCT_CXI_TRIG_NODE_H_
#define UCT_CXI_TRIG_NODE_H_

/** How many, as the launcher has put it into the environment; 0: it has not. */
unsigned uct_cxi_trig_node_processes(void);

/** Whether this is the first one of them, or the launcher does not say. */
int uct_cxi_trig_node_is_first(void);

#endif
