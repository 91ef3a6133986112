/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gstream_fork.c - what the library does when the process forks.
 *
 * A child has none of its parent's threads, and a copy of all locks, of which
 * any may be held by a thread that the child does not have. What such a lock
 * protects may be half changed. So in the child the locks are made anew, and
 * what they protect is emptied: it is of the parent's threads, streams and
 * devices, none of which the child has. The child may then make its own.
 *
 * The list of streams alone is needed in the child: it has its streams refuse
 * all calls. So its lock is taken for the time of the fork (ucs_fork.h).
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "gstream_fork.h"

#include <ucs/debug/log_def.h>

#include <pthread.h>


unsigned gstream_forks;

int gstream_fork_is_on;


ucs_status_t gstream_fork_refuse(const char *kind, const void *object)
{
    ucs_error("%s %p: it is of the process that this one was forked from: a "
              "child makes its own", kind, object);
    return UCS_ERR_UNSUPPORTED;
}

static void gstream_fork_prepare(void)
{
    gstream_registry_fork_begin();
}

static void gstream_fork_parent(void)
{
    gstream_registry_fork_end(0);
}

static void gstream_fork_child(void)
{
    ++gstream_forks;
    gstream_copy_forked();
    gstream_device_forked();
    gstream_gpu_forked();
    gstream_ipc_forked();
    gstream_memory_forked();
    gstream_pair_forked();
    gstream_poll_forked();
    gstream_share_forked();
    gstream_sleep_forked();
    gstream_thread_forked();
    gstream_trace_forked();
    gstream_registry_fork_end(1);
}

static void __attribute__((constructor)) gstream_fork_install(void)
{
    gstream_fork_is_on = (pthread_atfork(gstream_fork_prepare,
                                         gstream_fork_parent,
                                         gstream_fork_child) == 0);
}
