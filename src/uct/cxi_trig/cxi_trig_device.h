/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_device.h - what libfabric tells of a device beyond its provider.
 */
#ifndef UCT_CXI_TRIG_DEVICE_H_
#define UCT_CXI_TRIG_DEVICE_H_

#include "cxi_trig_prov.h"

#include <ucs/sys/topo/base/topo.h>


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

#endif
