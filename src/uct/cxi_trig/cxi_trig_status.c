/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_status.c - the one place where libfabric's codes become UCX's.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_status.h"

#include <rdma/fi_errno.h>

#include <stdlib.h>


ucs_status_t uct_cxi_trig_status(long fi_code)
{
    switch (labs(fi_code)) {
    case 0:
        return UCS_OK;
    case FI_ENOMEM:
        return UCS_ERR_NO_MEMORY;
    case FI_EAGAIN:
    case FI_ENOSPC:
    case FI_EDOMAIN: /* The word of cxi and cxiemu for "no counter is left" */
    case FI_EMFILE:
        return UCS_ERR_NO_RESOURCE;
    case FI_ENODATA:
    case FI_ENODEV:
        return UCS_ERR_NO_DEVICE;
    case FI_ENOSYS:
    case FI_EOPNOTSUPP:
        return UCS_ERR_UNSUPPORTED;
    case FI_ECANCELED:
        return UCS_ERR_CANCELED;
    case FI_EACCES:
    case FI_EFAULT:
    case FI_ENOKEY:
    case FI_EKEYREJECTED:
        return UCS_ERR_INVALID_ADDR;
    case FI_ECONNREFUSED:
    case FI_EHOSTUNREACH:
    case FI_ENETUNREACH:
        return UCS_ERR_UNREACHABLE;
    case FI_ECONNRESET:
    case FI_ECONNABORTED:
    case FI_ENOTCONN:
    case FI_ESHUTDOWN:
        return UCS_ERR_CONNECTION_RESET;
    case FI_ETIMEDOUT:
    case FI_EHOSTDOWN:
        return UCS_ERR_ENDPOINT_TIMEOUT;
    default:
        return UCS_ERR_IO_ERROR;
    }
}

int uct_cxi_trig_status_is_peer(ucs_status_t status)
{
    return (status == UCS_ERR_UNREACHABLE) ||
           (status == UCS_ERR_CONNECTION_RESET) ||
           (status == UCS_ERR_ENDPOINT_TIMEOUT);
}
