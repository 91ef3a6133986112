/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_no.c - calls that objects do not have: no slot of a table is empty. */
#include "cxiemu_domain.h"

#include <rdma/fi_errno.h>


int cxiemu_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
    (void)fid;
    (void)bfid;
    (void)flags;
    return -FI_ENOSYS;
}

int cxiemu_no_control(struct fid *fid, int command, void *arg)
{
    (void)fid;
    (void)command;
    (void)arg;
    return -FI_ENOSYS;
}

int cxiemu_no_ops_open(struct fid *fid, const char *name, uint64_t flags,
                       void **ops, void *context)
{
    (void)fid;
    (void)name;
    (void)flags;
    (void)ops;
    (void)context;
    return -FI_EINVAL;
}
