/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_side.h - endpoints of the emulated NIC from inside, and processes that
 * have one each.
 */
#ifndef CXIEMU_SIDE_H_
#define CXIEMU_SIDE_H_

#include "nic/cxiemu_nic.h"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <stddef.h>
#include <stdint.h>

/** Key of a side's memory. */
#define CXIEMU_SIDE_KEY 5


/** An endpoint with memory that peers may read and write. */
typedef struct cxiemu_side {
    struct fi_info    *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av     *av;
    struct fid_cq     *cq;
    struct fid_ep     *ep;
    struct fid_mr     *mr;
    uint8_t           name[64];
    fi_addr_t         peer;
    cxiemu_nic_t      *nic;
    uint8_t           *memory; /**< Zeroes at first */
    size_t            length;
} cxiemu_side_t;


/** Open one, with so many bytes; it has no peer yet. 0, or -FI_E*: then nothing
 *  is open. */
int cxiemu_side_open(cxiemu_side_t *side, size_t length);

/** Undo it; 0, or the first failure. */
int cxiemu_side_close(cxiemu_side_t *side);

/** Insert the peer with a name. */
int cxiemu_side_set_peer(cxiemu_side_t *side, const void *name);

/** Until an operation completes: 0, or its error, FI_E*. */
int cxiemu_side_wait(cxiemu_side_t *side);


/** Ends the process of a role with a message, unless a condition holds. */
#define CXIEMU_MUST(_condition) \
    do { \
        if (!(_condition)) { \
            cxiemu_role_fail(__FILE__, __LINE__, #_condition); \
        } \
    } while (0)

void cxiemu_role_fail(const char *file, int line, const char *text)
        __attribute__((noreturn));

/** What a process does; `socket` leads to the other one. */
typedef void (*cxiemu_role_t)(int socket, const void *arg);

/** Run two roles in processes of their own; how many of them failed. One that
 *  calls cxiemu_role_skip() makes that -1. */
int cxiemu_role_run(cxiemu_role_t first, cxiemu_role_t second, const void *arg);

/** The system has not got what the role needs. */
void cxiemu_role_skip(void) __attribute__((noreturn));

/** Give the other one bytes, and take as many. */
void cxiemu_role_swap(int socket, const void *out, void *in, size_t length);

/** Open a side and exchange names with that of the other role. */
void cxiemu_role_connect(int socket, cxiemu_side_t *side, size_t length);

#endif
