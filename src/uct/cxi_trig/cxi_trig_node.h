/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_node.h - how many processes of the job the node has.
 */
#ifndef UCT_CXI_TRIG_NODE_H_
#define UCT_CXI_TRIG_NODE_H_

/** As the launcher has put it into the environment; 0 if it has not. */
unsigned uct_cxi_trig_node_processes(void);

#endif
