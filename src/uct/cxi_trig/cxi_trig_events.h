/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_events.h - whether UCX notices that memory is unmapped.
 *
 * UCX and libfabric keep registrations of memory, and both have to know when it
 * is unmapped. libfabric's "memhooks" changes the code of the same functions as
 * UCX does, and UCX then finds that its own changes have no effect.
 */
#ifndef UCT_CXI_TRIG_EVENTS_H_
#define UCT_CXI_TRIG_EVENTS_H_

/** Ask UCX as its caches do. libfabric begins with the first domain. */
int uct_cxi_trig_events_work(void);

#endif
