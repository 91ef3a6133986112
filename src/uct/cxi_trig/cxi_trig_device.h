/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_device.h - a device of libfabric's: its place, its speed, a counter
 * of it, and what is said if it does not open.
 */
#ifndef UCT_CXI_TRIG_DEVICE_H_
#define UCT_CXI_TRIG_DEVICE_H_

#include "cxi_trig_prov.h"

#include <ucs/sys/topo/base/topo.h>

#include <rdma/fi_domain.h>


/**
 * UCX's number of the device, by its place on the bus, from which UCX knows how
 * far it is from processors and GPUs; UCS_SYS_DEVICE_ID_UNKNOWN if it is on
 * none or UCX cannot tell.
 */
ucs_sys_device_t uct_cxi_trig_device_sys(const struct fi_info *info);

/** Bytes per second: the link's speed if it is one and known, else what the
 *  table of providers says. */
double uct_cxi_trig_device_bandwidth(const uct_cxi_trig_prov_t *prov,
                                     const struct fi_info *info);

/** Open a counter of the device's domain; the caller closes it by fi_close().
 *  Returns libfabric's code, and logs nothing. */
int uct_cxi_trig_device_open_cntr(struct fid_domain *domain, void *context,
                                  struct fid_cntr **cntr_p);

/** Say that the device's domain, or what is on it, does not open, and what to
 *  do. @a ret is -FI_E; as a status. */
ucs_status_t uct_cxi_trig_device_open_failed(const uct_cxi_trig_prov_t *prov,
                                             const struct fi_info *info,
                                             const char *what, int ret);

#endif
