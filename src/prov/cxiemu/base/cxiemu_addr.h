/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_addr.h - addresses of endpoints, as they go from process to process.
 */
#ifndef CXIEMU_ADDR_H_
#define CXIEMU_ADDR_H_

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define CXIEMU_ADDR_VERSION 1


/**
 * An endpoint's address: how its NIC's shared memory is found, and the
 * endpoint's number there.
 *
 * The memory has no name: it is opened through the descriptor of the process
 * that made it. The nonce tells a process from a later one of the same number.
 */
typedef struct cxiemu_addr {
    uint8_t  version;
    uint8_t  reserved;
    uint16_t ep;    /**< Number of the endpoint at its NIC */
    uint32_t host;  /**< Digest of the machine's boot and of namespaces */
    uint32_t pid;
    uint32_t fd;    /**< Of the NIC's memory, in that process */
    uint64_t nonce; /**< Of the NIC; random */
} cxiemu_addr_t;

static_assert(sizeof(cxiemu_addr_t) == 24, "format of addresses");


/** Digest of this machine's boot and of this process's namespaces. */
uint32_t cxiemu_addr_host(void);

/** Write an address as text, at most @a size bytes with the final zero; returns
 *  the length of the whole text as snprintf() does. */
int cxiemu_addr_print(const cxiemu_addr_t *addr, char *buffer, size_t size);

/** Read what cxiemu_addr_print() wrote; 0, or -FI_EINVAL. */
int cxiemu_addr_parse(const char *text, cxiemu_addr_t *addr);

#endif
