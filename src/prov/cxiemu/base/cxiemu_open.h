/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_open.h - counts of what a process has open, for FI_CXIEMU_LEAKS.
 */
#ifndef CXIEMU_OPEN_H_
#define CXIEMU_OPEN_H_


typedef enum {
    CXIEMU_OPEN_FABRIC,
    CXIEMU_OPEN_DOMAIN,
    CXIEMU_OPEN_EP,
    CXIEMU_OPEN_AV,
    CXIEMU_OPEN_CQ,
    CXIEMU_OPEN_CNTR,
    CXIEMU_OPEN_MR,
    CXIEMU_OPEN_EQ,
    CXIEMU_OPEN_LAST
} cxiemu_open_t;


/** An object was opened. Any thread. */
void cxiemu_open_add(cxiemu_open_t kind);

/** An object was closed: fi_close() of it returns 0. Any thread. */
void cxiemu_open_del(cxiemu_open_t kind);

/** In a forked child: nothing is open. */
void cxiemu_open_forked(void);

#endif
