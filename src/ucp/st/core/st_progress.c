/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * st_progress.c - what a host that makes calls does for a worker.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "core/st_progress.h"
#include "core/st_lane.h"
#include "core/st_leave.h"
#include "core/st_op.h"
#include "core/st_watch.h"

#include <ucs_backoff.h>

unsigned ucp_st_progress(ucp_st_worker_h worker)
{
    ucp_st_watch_t *watch = ucp_st_watch(worker);
    const ucp_st_component_t *component;
    unsigned count;
    int is_time;
    double now;

    count = ucp_worker_progress(worker->ucp_worker);
    ucp_st_worker_lock(worker);
    (void)ucp_st_leave_look(worker);
    /* Ask about the peers that something here waits for, if it is time */
    now     = ucp_st_worker_now();
    is_time = (now - watch->last_time) > watch->interval;
    if (is_time) {
        watch->last_time  = now;
        watch->last_asked = NULL;
        ucp_st_for_each_component(component) {
            component->worker.ask(worker);
        }
    }
    ucp_st_lanes_poll(worker);
    ucp_st_op_reap_freed(worker);
    ucp_st_worker_unlock(worker);
    if (is_time) {
        (void)ucp_st_watch_look(worker, 0);
    }
    return count;
}

void ucp_st_progress_pause(unsigned *idle_rounds, unsigned progressed)
{
    if (progressed > 0) {
        *idle_rounds = 0;
    }
    ucs_backoff(idle_rounds);
}

unsigned ucp_st_worker_progress(ucp_st_worker_h worker)
{
    return ((worker == NULL) || ucp_st_fork_is_child) ?
           0 : ucp_st_progress(worker);
}
