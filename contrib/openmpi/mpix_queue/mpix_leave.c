/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_leave.c - how a process goes whose peers still wait to match.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_leave.h"
#include "mpix_capture.h"
#include "mpix_error.h"
#include "mpix_exchange.h"
#include "mpix_global.h"
#include "mpix_peer.h"


static void mpix_leave_prepare_locked(void)
{
    const char *cause; /* Nobody can ask where this fails */

    if ((mpix_global.state != MPIX_STATE_NONE) ||
        (mpix_global_init_pml(&cause) != UCS_OK)) {
        return;
    }
    PMPI_Comm_rank(MPI_COMM_WORLD, &mpix_global.world_rank);
    PMPI_Comm_free(&mpix_global.self);
    mpix_leave_begin();
}

void mpix_leave_prepare(void)
{
    if (!mpix_mpi_is_active()) {
        return;
    }

    mpix_lock();
    mpix_leave_prepare_locked();
    mpix_unlock();
}

void mpix_leave_begin(void)
{
    mpix_global.state = MPIX_STATE_CLOSED;
    if (mpix_global.st_worker != NULL) {
        ucp_st_worker_leave(mpix_global.st_worker);
    }
}

/* Tells the sender of an address that it waits in vain. */
static void mpix_leave_answer(const mpix_exchange_in_t *in)
{
    const void *address;
    ucp_st_peer_h peer;
    size_t length;

    if (mpix_exchange_in_address(in, &address, &length) != UCS_OK) {
        return; /* Another one that leaves, or no address */
    }

    /* If it has got this process' address before, it waits for the st worker,
     * which tells each peer that is made */
    if ((mpix_global.st_worker != NULL) &&
        (ucp_st_peer_create(mpix_global.st_worker, address, length, &peer) ==
         UCS_OK)) {
        ucp_st_peer_destroy(peer);
    }

    if (mpix_exchange_refuse(in) != UCS_OK) {
        mpix_warn("cannot tell a process that waits for this one that it is in "
                  "MPI_Finalize");
    }
}

void mpix_leave_progress(void)
{
    mpix_exchange_in_t *in;

    /* A peer that was sent an address gets no other answer */
    mpix_peer_progress();
    while ((in = mpix_exchange_take_any()) != NULL) {
        mpix_leave_answer(in);
        mpix_exchange_in_free(in);
    }
}

void mpix_leave_end(ucp_worker_h worker)
{
    /* Other workers end here too, the st worker's with the lock held. No thread
     * uses MPI any more when the PML's worker goes, so nobody changes this. */
    if (worker != mpix_global.pml_worker) {
        return;
    }

    mpix_lock();
    mpix_exchange_cleanup();
    mpix_global_cleanup_pml();
    mpix_unlock();
}
