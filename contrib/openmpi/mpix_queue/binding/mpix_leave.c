/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_leave.c - how a process goes whose peers still wait to match.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_leave.h"
#include "mpix_error.h"
#include "mpix_exchange.h"
#include "mpix_global.h"
#include "mpix_peer.h"

#define MPIX_LEAVE_MAX_ANSWERS 64 /* Of a call */


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

    if (mpix_global.st_worker != NULL) {
        ucp_st_worker_progress(mpix_global.st_worker);
    }

    /* A peer that was sent an address gets no other answer */
    mpix_peer_progress();
    for (i = 0; (i < MPIX_LEAVE_MAX_ANSWERS) &&
                ((in = mpix_exchange_take_any()) != NULL); ++i) {
        mpix_leave_answer(in);
        mpix_exchange_in_free(in);
    }
}
