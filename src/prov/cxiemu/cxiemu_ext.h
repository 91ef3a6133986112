/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_ext.h - operations beyond libfabric's interface.
 */
#ifndef CXIEMU_EXT_H_
#define CXIEMU_EXT_H_

#include "cxiemu_domain.h"

/** fi_open_ops() of a domain: FI_CXIEMU_DOMAIN_OPS of cxiemu.h, and those of
 *  CXI's own that make sense here. */
int cxiemu_ext_open(struct fid *fid, const char *name, uint64_t flags,
                    void **ops, void *context);

/** fi_trywait() for an event queue. */
int cxiemu_eq_trywait(struct fid *fid);

#endif
