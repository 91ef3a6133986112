/* SPDX-License-Identifier: BSD-3-Clause */
/* cxiemu_error.c - causes of failures, and Cassini's return codes. */
#include "base/cxiemu_error.h"

#include <rdma/fi_errno.h>

#include <stdio.h>

/* Cassini's, all below 64; libfabric's codes with these numbers are not used in
 * their place, but for what has no row here */
typedef struct cxiemu_error_row {
    int        cause;
    int        err;
    int        code;
    const char *name;
} cxiemu_error_row_t;

static const cxiemu_error_row_t cxiemu_error_rows[] = {
    {CXIEMU_ERROR_WAY, FI_EHOSTUNREACH, 2, "UNDELIVERABLE"},
    {FI_ENOMSG, FI_ENOMSG, 0, "NO_EVENT"}, /* CXI takes it of a message */
    {CXIEMU_ERROR_FAULT, FI_EIO, 9, "UNCOR"},
    {FI_EIO, FI_EIO, 18, "ENTRY_NOT_FOUND"},
    {FI_EHOSTUNREACH, FI_EIO, 26, "PTLTE_NOT_FOUND"},
    {CXIEMU_ERROR_ALIGN, FI_EIO, 41, "AMO_ALIGN_ERROR"}
};

#define CXIEMU_ERROR_ROWS \
    (sizeof(cxiemu_error_rows) / sizeof(cxiemu_error_rows[0]))


void cxiemu_error_set(struct fi_cq_err_entry *entry, int cause)
{
    size_t i;

    entry->err        = cause;
    entry->prov_errno = cause;
    for (i = 0; i < CXIEMU_ERROR_ROWS; ++i) {
        if (cxiemu_error_rows[i].cause == cause) {
            entry->err        = cxiemu_error_rows[i].err;
            entry->prov_errno = cxiemu_error_rows[i].code;
        }
    }
}

const char *cxiemu_error_text(int prov_errno, char *buf, size_t len)
{
    const char *text = fi_strerror(prov_errno);
    size_t i;

    for (i = 0; i < CXIEMU_ERROR_ROWS; ++i) {
        if (cxiemu_error_rows[i].code == prov_errno) {
            text = cxiemu_error_rows[i].name;
        }
    }
    if ((buf != NULL) && (len > 0)) {
        snprintf(buf, len, "%s", text);
    }
    return text;
}
