/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_fabric.h - fabrics: the parents of domains and event queues.
 */
#ifndef CXIEMU_FABRIC_H_
#define CXIEMU_FABRIC_H_

#include <rdma/fabric.h>


/** fi_fabric(). */
int cxiemu_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
                       void *context);

#endif
