/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_cm.c - endpoints' names; there are no connections.
 */
#include "fabric/cxiemu_ep.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <string.h>
#include <unistd.h>


static int cxiemu_cm_getname(struct fid *fid, void *addr, size_t *length)
{
    cxiemu_ep_t *ep   = container_of(fid, cxiemu_ep_t, fid.fid);
    cxiemu_nic_t *nic = ep->domain->nic;
    cxiemu_addr_t own = {
        .version = CXIEMU_ADDR_VERSION,
        .ep      = ep->number,
        .host    = cxiemu_addr_host(),
        .pid     = getpid(),
        .fd      = nic->map->fd,
        .nonce   = nic->nonce
    };
    size_t room;

    if ((length == NULL) || ((addr == NULL) && (*length > 0))) {
        return -FI_EINVAL;
    }

    room    = *length;
    *length = sizeof(own);
    if (addr != NULL) {
        memcpy(addr, &own, (room < sizeof(own)) ? room : sizeof(own));
    }
    return (room < sizeof(own)) ? -FI_ETOOSMALL : 0;
}

CXIEMU_NO_CALL(cxiemu_cm_setname, struct fid *fid, void *addr, size_t length)

CXIEMU_NO_CALL(cxiemu_cm_getpeer, struct fid_ep *ep, void *addr, size_t *length)

CXIEMU_NO_CALL(cxiemu_cm_connect, struct fid_ep *ep, const void *addr,
               const void *param, size_t length)

CXIEMU_NO_CALL(cxiemu_cm_listen, struct fid_pep *pep)

CXIEMU_NO_CALL(cxiemu_cm_accept, struct fid_ep *ep, const void *param,
               size_t length)

CXIEMU_NO_CALL(cxiemu_cm_reject, struct fid_pep *pep, struct fid *handle,
               const void *param, size_t length)

CXIEMU_NO_CALL(cxiemu_cm_shutdown, struct fid_ep *ep, uint64_t flags)

CXIEMU_NO_CALL(cxiemu_cm_join, struct fid_ep *ep, const void *addr,
               uint64_t flags, struct fid_mc **mc, void *context)

struct fi_ops_cm cxiemu_cm_ops = {
    .size     = sizeof(struct fi_ops_cm),
    .setname  = cxiemu_cm_setname,
    .getname  = cxiemu_cm_getname,
    .getpeer  = cxiemu_cm_getpeer,
    .connect  = cxiemu_cm_connect,
    .listen   = cxiemu_cm_listen,
    .accept   = cxiemu_cm_accept,
    .reject   = cxiemu_cm_reject,
    .shutdown = cxiemu_cm_shutdown,
    .join     = cxiemu_cm_join
};
