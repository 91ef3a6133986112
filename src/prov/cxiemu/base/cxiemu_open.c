/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_open.c - what a process has open, and what it leaves open.
 *
 * A Cassini NIC keeps what a process leaves open: counters, list entries and
 * armed triggers are its service's until the domain is closed. So tests look
 * for it, in any program that runs on the emulated NIC.
 */
#include "base/cxiemu_open.h"
#include "base/cxiemu_param.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#define CXIEMU_OPEN_EXIT 3


static const char *const cxiemu_open_names[CXIEMU_OPEN_LAST] = {
    [CXIEMU_OPEN_FABRIC] = "fabrics",
    [CXIEMU_OPEN_DOMAIN] = "domains",
    [CXIEMU_OPEN_EP]     = "endpoints",
    [CXIEMU_OPEN_AV]     = "address vectors",
    [CXIEMU_OPEN_CQ]     = "completion queues",
    [CXIEMU_OPEN_CNTR]   = "counters",
    [CXIEMU_OPEN_MR]     = "memory regions",
    [CXIEMU_OPEN_EQ]     = "event queues"
};

/* Atomic */
static unsigned cxiemu_open_counts[CXIEMU_OPEN_LAST];


/* What is open is the parent's */
void cxiemu_open_forked(void)
{
    unsigned i;

    for (i = 0; i < CXIEMU_OPEN_LAST; ++i) {
        __atomic_store_n(&cxiemu_open_counts[i], 0, __ATOMIC_RELAXED);
    }
}

void cxiemu_open_add(cxiemu_open_t kind)
{
    __atomic_fetch_add(&cxiemu_open_counts[kind], 1, __ATOMIC_RELAXED);
}

void cxiemu_open_del(cxiemu_open_t kind)
{
    __atomic_fetch_sub(&cxiemu_open_counts[kind], 1, __ATOMIC_RELAXED);
}

/* When the process ends in order. What libraries that use this one close then
 * is closed: theirs ran before. */
static void __attribute__((destructor)) cxiemu_open_check(void)
{
    unsigned total = 0;
    unsigned i, count;

    if (!cxiemu_param_leaks_now()) {
        return;
    }
    for (i = 0; i < CXIEMU_OPEN_LAST; ++i) {
        count  = __atomic_load_n(&cxiemu_open_counts[i], __ATOMIC_RELAXED);
        total += count;
        if (count > 0) {
            fprintf(stderr, "cxiemu: FI_CXIEMU_LEAKS: %u %s left open\n", count,
                    cxiemu_open_names[i]);
        }
    }
    if (total > 0) {
        (void)fflush(NULL);
        _exit(CXIEMU_OPEN_EXIT);
    }
}
