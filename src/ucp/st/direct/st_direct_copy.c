/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_direct_copy.c - the direct lane: how bytes are copied. Between memory that
 * this process has mapped, ordinary stores or, of long messages, non-temporal
 * ones; else by the kernel (cross-memory attach).
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* process_vm_readv() */
#endif

#include "direct/st_direct.h"
#include "core/st_log.h"
#include "core/st_op.h"

#include <ucs/sys/math.h>

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

/* SSE2 is part of x86-64; sanitizers do not know what its stores write. */
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)

#include <emmintrin.h>

/* Past the caches, of which a long message would replace all else. The fence
 * puts these stores before the one that announces the piece, which orders
 * ordinary ones only. */
static void ucp_st_direct_copy_nt(void *dst, const void *src, size_t length)
{
    size_t head = ucs_min(-(uintptr_t)dst % sizeof(__m128i), length);
    __m128i *to;
    const __m128i *from;
    size_t count, i;

    memcpy(dst, src, head);
    to    = UCS_PTR_BYTE_OFFSET(dst, head);
    from  = UCS_PTR_BYTE_OFFSET(src, head);
    count = (length - head) / sizeof(*to);
    for (i = 0; i < count; ++i) {
        _mm_stream_si128(&to[i], _mm_loadu_si128(&from[i]));
    }
    memcpy(&to[i], &from[i], (length - head) % sizeof(*to));
    _mm_sfence();
}

#else

static void ucp_st_direct_copy_nt(void *dst, const void *src, size_t length)
{
    memcpy(dst, src, length);
}

#endif

void ucp_st_direct_copy(const ucp_st_direct_op_t *direct, void *dst,
                        const void *src, size_t length)
{
    if (direct->is_nt) {
        ucp_st_direct_copy_nt(dst, src, length);
    } else {
        memcpy(dst, src, length);
    }
}

int ucp_st_direct_attach_probe(uint32_t pid, uint64_t probe, uint64_t uuid)
{
    uint64_t value           = 0;
    const struct iovec local = {.iov_base = &value, .iov_len = sizeof(value)};
    const struct iovec other = {.iov_base = (void*)(uintptr_t)probe,
                                .iov_len  = sizeof(value)};

    if (process_vm_readv((pid_t)pid, &local, 1, &other, 1, 0) !=
        (ssize_t)sizeof(value)) {
        ucs_debug("lane 'direct': no cross-memory attach to process %u: %m",
                  pid);
        return 0;
    }
    return value == uuid;
}

/* A process that is dead must not be taken for another one that has its number
 * now: as long as the pidfd says that it lives there is no such process */
ucs_status_t ucp_st_direct_attach_copy(const ucp_st_direct_op_t *direct,
                                       size_t offset, size_t length)
{
    const ucp_st_process_t *process = &direct->op->peer->process;
    struct iovec local              = {
        .iov_base = direct->buffer + offset,
        .iov_len  = length
    };
    struct iovec other              = {
        .iov_base = (void*)(uintptr_t)(direct->other_address + offset),
        .iov_len  = length
    };
    ssize_t copied;

    while (local.iov_len > 0) {
        if (ucp_st_process_has_ended(process)) {
            return UCS_ERR_CONNECTION_RESET;
        }
        copied = (direct->dir == UCP_ST_DIR_SEND) ?
                 process_vm_writev((pid_t)process->pid, &local, 1, &other, 1,
                                   0) :
                 process_vm_readv((pid_t)process->pid, &local, 1, &other, 1, 0);
        if (copied <= 0) {
            /* Its memory is gone before the process has ended */
            ucs_diag("operation %p: cross-memory attach to process %u fails "
                     "with %zu bytes left: %s", direct->op, process->pid,
                     local.iov_len, (copied == 0) ? "nothing is copied" :
                                                    strerror(errno));
            return ((copied < 0) && (errno == ESRCH)) ?
                           UCS_ERR_CONNECTION_RESET : UCS_ERR_IO_ERROR;
        }
        local.iov_base  = (uint8_t*)local.iov_base + copied;
        other.iov_base  = (uint8_t*)other.iov_base + copied;
        local.iov_len  -= (size_t)copied;
        other.iov_len   = local.iov_len;
    }
    return UCS_OK;
}
