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
#include "mpix_match.h"
#include "mpix_peer.h"

#include <time.h>

#define MPIX_LEAVE_DRAIN_TIME  1.0 /* In seconds */
#define MPIX_LEAVE_MAX_ANSWERS 64  /* Of a call */


void mpix_leave_prepare(void)
{
    const char *cause; /* Nobody can ask where this fails */

    if (!mpix_mpi_is_active() ||
        (mpix_global_get_state() != MPIX_STATE_NONE) ||
        (mpix_global_init_pml(&cause) != UCS_OK)) {
        return;
    }
    PMPI_Comm_free(&mpix_global.self);

    mpix_lock();
    mpix_leave_begin();
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
    ucp_st_worker_h st_worker = mpix_global.st_worker;
    const void *address;
    ucp_st_peer_h peer;
    size_t length;

    if (mpix_exchange_in_address(in, &address, &length) != UCS_OK) {
        return; /* Another one that leaves, or no address */
    }

    /* If it has got this process' address before, it waits for the st worker,
     * which tells each peer that is made */
    if (st_worker != NULL) {
        mpix_unlock();
        if (ucp_st_peer_create(st_worker, address, length, &peer) == UCS_OK) {
            ucp_st_peer_destroy(peer);
        }
        mpix_lock();
    }

    if (mpix_exchange_refuse(in) != UCS_OK) {
        mpix_warn("cannot tell a process that waits for this one that it is in "
                  "MPI_Finalize");
    }
}

void mpix_leave_progress(void)
{
    mpix_exchange_in_t *in;
    unsigned i;

    /* A peer that was sent an address gets no other answer */
    mpix_peer_progress();
    for (i = 0; (i < MPIX_LEAVE_MAX_ANSWERS) &&
                ((in = mpix_exchange_take_any()) != NULL); ++i) {
        mpix_leave_answer(in);
        mpix_exchange_in_free(in);
    }
}

static double mpix_leave_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + (now.tv_nsec * 1e-9);
}

/* Gives what was sent some time to get out. */
static void mpix_leave_drain(void)
{
    const double end = mpix_leave_now() + MPIX_LEAVE_DRAIN_TIME;
    unsigned spins   = 0;
    int is_done;

    for (;;) {
        mpix_lock();
        is_done = mpix_exchange_drain();
        mpix_unlock();
        if (is_done || (mpix_leave_now() >= end)) {
            return;
        }
        mpix_match_backoff(&spins);
    }
}

void mpix_leave_end(ucp_worker_h worker)
{
    if (!mpix_global_is_pml_worker(worker)) {
        return; /* Other workers end here too */
    }

    mpix_leave_drain();

    mpix_lock();
    mpix_exchange_cleanup();
    mpix_global_cleanup_pml();
    mpix_unlock();
}
