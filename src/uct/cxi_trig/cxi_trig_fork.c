/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cxi_trig_fork.c - what the transport does when the process forks.
 *
 * A child has a copy of all locks, and none of the threads that may hold them.
 * It may not use the parent's contexts, but make its own; for that the locks of
 * what all contexts share are to be free. That of the table of pools is taken
 * for the time of the fork (ucs_fork.h). Those that are held during calls of
 * the provider, which has locks of its own, are made anew.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "cxi_trig_credit.h"
#include "cxi_trig_prov.h"
#include "cxi_trig_target.h"

#include <ucs_gpu.h>

#include <ucs/debug/log.h>
#include <ucs/sys/compiler_def.h>

#include <pthread.h>


static void uct_cxi_trig_fork_parent(void)
{
    uct_cxi_trig_credit_fork_end(0);
}

static void uct_cxi_trig_fork_child(void)
{
    uct_cxi_trig_prov_forked();
    uct_cxi_trig_target_forked();
    ucs_gpu_forked();
    uct_cxi_trig_credit_fork_end(1);
}

static void UCS_F_CTOR uct_cxi_trig_fork_install(void)
{
    if (pthread_atfork(uct_cxi_trig_credit_fork_begin, uct_cxi_trig_fork_parent,
                       uct_cxi_trig_fork_child) != 0) {
        ucs_warn("pthread_atfork() failed: children of this process may hang "
                 "in transport cxi_trig");
    }
}
