/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxiemu_fork.c - what the provider does when the process forks.
 *
 * A child has a copy of all locks, and none of the threads that may hold them.
 * It may not use what its parent has open, but open its own. So what all
 * domains share has to be in order, and its locks free: they are taken for the
 * time of the fork (ucs_fork.h).
 */
#include "fabric/cxiemu_fabric.h"
#include "base/cxiemu_dma.h"
#include "base/cxiemu_log.h"
#include "base/cxiemu_map.h"
#include "base/cxiemu_open.h"
#include "base/cxiemu_param.h"
#include "base/cxiemu_process.h"
#include "base/cxiemu_service.h"
#include "cxi/cxiemu_trap.h"

#include <ucs_gpu.h>

#include <pthread.h>


static void cxiemu_fork_begin(void)
{
    cxiemu_service_fork_begin();
    cxiemu_trap_fork_begin();
    cxiemu_dma_fork_begin();
    cxiemu_map_fork_begin();
    cxiemu_process_fork_begin();
}

static void cxiemu_fork_end(int is_child)
{
    cxiemu_process_fork_end(is_child);
    cxiemu_map_fork_end(is_child);
    cxiemu_dma_fork_end(is_child);
    cxiemu_trap_fork_end(is_child);
    cxiemu_service_fork_end(is_child);
}

static void cxiemu_fork_parent(void)
{
    cxiemu_fork_end(0);
}

static void cxiemu_fork_child(void)
{
    ucs_gpu_forked();
    cxiemu_open_forked();
    cxiemu_fork_end(1);
}

static void cxiemu_fork_install(void)
{
    if (pthread_atfork(cxiemu_fork_begin, cxiemu_fork_parent,
                       cxiemu_fork_child) != 0) {
        cxiemu_warn(CORE, "pthread_atfork() failed: children of this process "
                    "may hang\n");
    }
}

int cxiemu_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, cxiemu_fork_install);
    return cxiemu_param_init();
}
