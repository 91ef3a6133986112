/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_fork.c - what the library does in a child that was forked.
 *
 * A child may not call MPI, and its calls of ucp_st are refused. But it is to
 * learn that, and not to hang in front of it: locks that threads of the parent
 * may have had are made anew. What they protect is looked at, and not changed.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "binding/mpix_comm.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "binding/mpix_handle.h"
#include "mpix_host.h"
#include "mpix_init.h"
#include "mpix_match_thread.h"
#include "mpix_matchall.h"
#include "once/mpix_fifo.h"

#include <pthread.h>


static void mpix_fork_child(void)
{
    mpix_batch_thread_forked();
    mpix_fifo_forked();
    mpix_comm_forked();
    mpix_error_forked();
    mpix_global_forked();
    mpix_handle_forked();
    mpix_host_forked();
    mpix_init_forked();
    mpix_match_request_forked();
    mpix_match_thread_forked();
}

static void __attribute__((constructor)) mpix_fork_load(void)
{
    if (pthread_atfork(NULL, NULL, mpix_fork_child) != 0) {
        mpix_warn("pthread_atfork() failed: children of this process may hang "
                  "in calls of this library");
    }
}
