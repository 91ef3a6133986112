/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_peer.c - the process behind a rank of a communicator.
 *
 * The state of a peer:
 *
 *   UCS_INPROGRESS --- its address is there, and it is connected ---> UCS_OK
 *         |
 *         +----------- it is of no use, or cannot be -------> the error
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_peer.h"
#include "mpix_binding.h"
#include "mpix_error.h"
#include "mpix_exchange.h"
#include "mpix_global.h"

#include <stdlib.h>

/* Peers that a call connects: each does so by itself, and others may come */
#define MPIX_PEER_MAX_CONNECTS 64

/* Peers whose address is not there yet. Protected by the lock. */
static UCS_LIST_HEAD(mpix_peers_waiting);

/* Peers that are to be connected. Protected by the lock. */
static UCS_LIST_HEAD(mpix_peers_known);


/* Sends the own address to another process and waits for its. */
static int mpix_peer_exchange(const char *func, mpix_peer_t *peer,
                              const mpix_route_t *route)
{
    ucs_status_t status = mpix_exchange_send(peer, route);

    if (status != UCS_OK) {
        return mpix_fail(func, mpix_status_code(status),
                         "cannot send the own address to rank %d: %s",
                         peer->rank, ucs_status_string(status));
    }

    peer->status = UCS_INPROGRESS;
    ucs_list_add_tail(&mpix_peers_waiting, &peer->waiting);
    return MPI_SUCCESS;
}

static int mpix_peer_create(const char *func, mpix_comm_t *comm, int rank,
                            mpix_peer_t **peer_p)
{
    mpix_peer_t *peer;
    mpix_route_t route;
    int rc;

    peer = calloc(1, sizeof(*peer));
    if (peer == NULL) {
        return mpix_fail(func, MPI_ERR_NO_MEM, "no memory for a peer");
    }

    peer->comm       = comm;
    peer->rank       = rank;
    peer->st_peer    = UCP_ST_PEER_NULL;
    peer->world_rank = mpix_comm_world_rank(comm->handle, rank);
    peer->is_self    = (peer->world_rank == mpix_global_world_rank());

    rc = mpix_binding()->resolve(func, peer, &route);
    if (rc != MPI_SUCCESS) {
        goto err;
    }

    if (peer->is_self) {
        peer->status = UCS_INPROGRESS;
        ucs_list_add_tail(&mpix_peers_known, &peer->waiting);
    } else {
        rc = mpix_peer_exchange(func, peer, &route);
        if (rc != MPI_SUCCESS) {
            goto err;
        }
    }

    ucs_list_add_tail(&comm->peers, &peer->list);
    *peer_p = peer;
    return MPI_SUCCESS;

err:
    free(peer);
    return rc;
}

int mpix_peer_get(const char *func, mpix_comm_t *comm, int rank,
                  mpix_peer_t **peer_p)
{
    mpix_peer_t *peer;

    ucs_list_for_each(peer, &comm->peers, list) {
        if (peer->rank == rank) {
            *peer_p = peer;
            return MPI_SUCCESS;
        }
    }
    return mpix_peer_create(func, comm, rank, peer_p);
}

void mpix_peer_destroy(mpix_peer_t *peer)
{
    if (peer->status == UCS_INPROGRESS) {
        ucs_list_del(&peer->waiting);
        if (peer->in != NULL) {
            mpix_exchange_in_free(peer->in);
        }
    }
    ucs_list_del(&peer->list);
    if (mpix_global.st_worker != NULL) {
        ucp_st_peer_destroy(peer->st_peer); /* Else gone with the worker */
    }
    free(peer);
}

/* Finds the peers whose address has arrived. */
static void mpix_peers_take(void)
{
    mpix_peer_t *peer, *tmp;

    ucs_list_for_each_safe(peer, tmp, &mpix_peers_waiting, waiting) {
        peer->in = mpix_exchange_take(peer->rank, peer->context,
                                      peer->world_rank);
        if (peer->in != NULL) {
            ucs_list_del(&peer->waiting);
            ucs_list_add_tail(&mpix_peers_known, &peer->waiting);
        }
    }
}

/* Connects to an address, with the lock given up. */
static ucs_status_t mpix_peer_connect(const void *address, size_t length,
                                      ucp_st_peer_h *st_peer_p)
{
    ucp_st_worker_h st_worker = mpix_global.st_worker;
    ucs_status_t status;

    mpix_unlock();
    status = ucp_st_peer_create(st_worker, address, length, st_peer_p);
    mpix_lock();
    return status;
}

/* Connects a peer that is in no list any more. Its communicator is held, so
 * that it stays. */
static void mpix_peer_connect_known(mpix_peer_t *peer)
{
    mpix_exchange_in_t *in = peer->in;
    mpix_comm_t *comm      = peer->comm;
    const void *address    = mpix_global.address;
    size_t length          = mpix_global.address_length;
    ucs_status_t status    = UCS_OK;
    ucp_st_peer_h st_peer;

    peer->in = NULL;
    ++comm->refs;
    if (in != NULL) {
        status = mpix_exchange_in_address(in, &address, &length);
    }
    if (status == UCS_OK) {
        status = mpix_peer_connect(address, length, &st_peer);
        if (status == UCS_OK) {
            peer->st_peer = st_peer;
        }
    } else if (status == UCS_ERR_UNSUPPORTED) {
        mpix_warn("rank %d (%d in MPI_COMM_WORLD) runs another version of "
                  "libmpix_queue", peer->rank, peer->world_rank);
    }
    peer->status = status;
    if (in != NULL) {
        mpix_exchange_in_free(in);
    }
    mpix_comm_put(comm);
}

unsigned mpix_peer_progress(void)
{
    unsigned count = mpix_binding()->progress();
    mpix_peer_t *peer;
    unsigned i;

    mpix_peers_take();
    for (i = 0; (i < MPIX_PEER_MAX_CONNECTS) &&
                !ucs_list_is_empty(&mpix_peers_known); ++i) {
        peer = ucs_list_extract_head(&mpix_peers_known, mpix_peer_t, waiting);
        ucs_list_head_init(&peer->waiting);
        mpix_peer_connect_known(peer);
    }
    return count + i;
}
