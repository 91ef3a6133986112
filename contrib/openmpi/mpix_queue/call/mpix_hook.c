/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_hook.c - UCP's functions through which MPI lets this library go on.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "binding/mpix_binding.h"
#include "binding/mpix_capture.h"
#include "binding/mpix_global.h"
#include "binding/mpix_leave.h"
#include "coll/mpix_coll.h"
#include "request/mpix_match.h"

/* The st worker is progressed at every so many calls on the PML's worker. */
#define MPIX_HOOK_POLLS 64


/* Calls of ucp_worker_progress() by this thread. */
static __thread unsigned mpix_hook_polls
        __attribute__((tls_model("initial-exec")));


/* Progresses matching, or the st worker alone if nothing is being matched, from
 * within a progress call on 'worker'. Does nothing unless that is pml/ucx's, or
 * if a thread is at it already. */
static void mpix_hook_progress(ucp_worker_h worker)
{
    if (!mpix_global_is_pml_worker(worker) || !mpix_trylock()) {
        return;
    }

    if (mpix_global.state == MPIX_STATE_CLOSED) {
        mpix_leave_progress();
    } else if (mpix_match_is_active()) {
        mpix_coll_progress();
    } else if (mpix_global.st_worker != NULL) {
        ucp_st_worker_progress(mpix_global.st_worker);
    }
    mpix_unlock();
}

/* Every blocking call of MPI comes through here: matching that was begun goes
 * on while the application is in MPI, and so does, less often, what the st
 * worker still has to tell a peer. */
unsigned ucp_worker_progress(ucp_worker_h worker)
{
    unsigned count = mpix_real.worker_progress(worker);

    if (ucs_unlikely(mpix_match_is_active() ||
                     (++mpix_hook_polls % MPIX_HOOK_POLLS == 0))) {
        mpix_hook_progress(worker);
    }
    return count;
}

/* MPI_Finalize comes through here, when all processes have entered it. */
void ucp_worker_destroy(ucp_worker_h worker)
{
    mpix_binding_ucx_end(worker);
    mpix_real.worker_destroy(worker);
}
