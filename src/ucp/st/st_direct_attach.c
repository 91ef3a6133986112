/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_attach.c - the direct lane: copies that the kernel makes between
 * two processes (cross-memory attach).
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* process_vm_readv() */
#endif

#include "st_direct.h"
#include "st_direct_dev.h"
#include "st_log.h"
#include "st_op.h"
#include "st_peer.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

int ucp_st_direct_attach_probe(uint32_t pid, uint64_t probe, uint64_t uuid)
{
    uint64_t value           = 0;
    const struct iovec near  = {.iov_base = &value, .iov_len = sizeof(value)};
    const struct iovec far   = {.iov_base = (void*)(uintptr_t)probe,
                                .iov_len  = sizeof(value)};

    if (process_vm_readv((pid_t)pid, &near, 1, &far, 1, 0) !=
        (ssize_t)sizeof(value)) {
        ucs_debug("lane 'direct': no cross-memory attach to process %u: %m",
                  pid);
        return 0;
    }
    return value == uuid;
}

/* Who is dead must not be taken for the one that has its number now: as long as
 * the pidfd says nothing there is no such process */
ucs_status_t ucp_st_direct_attach_copy(const ucp_st_direct_op_t *direct,
                                       size_t offset, size_t length)
{
    const ucp_st_process_t *process = &direct->op->peer->process;
    struct iovec near               = {
        .iov_base = direct->buffer + offset,
        .iov_len  = length
    };
    struct iovec far                = {
        .iov_base = (void*)(uintptr_t)(direct->far_address + offset),
        .iov_len  = length
    };
    ssize_t copied;

    while (near.iov_len > 0) {
        if (ucp_st_process_has_ended(process)) {
            return UCS_ERR_CONNECTION_RESET;
        }
        copied = (direct->dir == UCP_ST_DIR_SEND) ?
                 process_vm_writev((pid_t)process->pid, &near, 1, &far, 1, 0) :
                 process_vm_readv((pid_t)process->pid, &near, 1, &far, 1, 0);
        if (copied <= 0) {
            /* Its memory is gone before the process has ended */
            ucs_diag("operation %p: cross-memory attach to process %u fails "
                     "with %zu bytes left: %s", direct->op, process->pid,
                     near.iov_len, (copied == 0) ? "nothing is copied" :
                                                   strerror(errno));
            return ((copied < 0) && (errno == ESRCH)) ?
                           UCS_ERR_CONNECTION_RESET : UCS_ERR_IO_ERROR;
        }
        near.iov_base  = (uint8_t*)near.iov_base + copied;
        far.iov_base   = (uint8_t*)far.iov_base + copied;
        near.iov_len  -= (size_t)copied;
        far.iov_len    = near.iov_len;
    }
    return UCS_OK;
}
