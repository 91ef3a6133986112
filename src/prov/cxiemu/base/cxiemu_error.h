/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_error.h - why an operation fails, and what the user is told of it.
 *
 * CXI has one code of libfabric for nearly all causes. What has happened is in
 * prov_errno: the return code of the NIC.
 */
#ifndef CXIEMU_ERROR_H_
#define CXIEMU_ERROR_H_

#include <rdma/fi_eq.h>

#include <stddef.h>

/** Causes inside the provider, and in acknowledgements, beside codes of
 *  libfabric: FI_EHOSTUNREACH is a process or an endpoint that is gone, FI_EIO
 *  an access to what is no region, or not for it. */
enum {
    CXIEMU_ERROR_FIRST = 1000,
    CXIEMU_ERROR_WAY   = CXIEMU_ERROR_FIRST, /**< No way to the machine */
    CXIEMU_ERROR_ALIGN, /**< An atomic's address is not aligned */
    CXIEMU_ERROR_FAULT  /**< FI_CXIEMU_FAIL */
};


/** Set err and prov_errno of an entry, as CXI does. */
void cxiemu_error_set(struct fi_cq_err_entry *entry, int cause);

/** The text of a prov_errno, copied to a buffer if there is one. */
const char *cxiemu_error_text(int prov_errno, char *buf, size_t len);

#endif
