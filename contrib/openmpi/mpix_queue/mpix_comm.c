/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_comm.c - what this library keeps about a communicator.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_comm.h"
#include "mpix_global.h"
#include "mpix_peer.h"
#include "mpix_request.h"

#include <stdlib.h>

/* Written once, under the lock. */
static int mpix_comm_keyval = MPI_KEYVAL_INVALID;


/* The application frees the communicator, which still works at this moment. */
static int mpix_comm_deleted(MPI_Comm handle, int keyval, void *value,
                             void *extra)
{
    mpix_comm_t *comm = value;

    mpix_lock();
    mpix_request_resolve_peers(comm);
    comm->handle = MPI_COMM_NULL;
    mpix_comm_put(comm);
    mpix_unlock();
    return MPI_SUCCESS;
}

static int mpix_comm_keyval_init(void)
{
    int rc = MPI_SUCCESS;

    mpix_lock();
    if (mpix_comm_keyval == MPI_KEYVAL_INVALID) {
        rc = PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, mpix_comm_deleted,
                                     &mpix_comm_keyval, NULL);
    }
    mpix_unlock();
    return rc;
}

static mpix_comm_t *mpix_comm_create(MPI_Comm handle)
{
    mpix_comm_t *comm = malloc(sizeof(*comm));

    if (comm == NULL) {
        return NULL;
    }

    comm->handle = handle;
    comm->refs   = 1;
    comm->colls  = 0;
    ucs_list_head_init(&comm->peers);
    PMPI_Comm_rank(handle, &comm->rank);
    return comm;
}

int mpix_comm_get(MPI_Comm handle, mpix_comm_t **comm_p)
{
    mpix_comm_t *comm;
    int rc, found;

    rc = mpix_comm_keyval_init();
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = PMPI_Comm_get_attr(handle, mpix_comm_keyval, &comm, &found);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    if (!found) {
        comm = mpix_comm_create(handle);
        if (comm == NULL) {
            return MPI_ERR_NO_MEM;
        }

        rc = PMPI_Comm_set_attr(handle, mpix_comm_keyval, comm);
        if (rc != MPI_SUCCESS) {
            free(comm);
            return rc;
        }
    }

    mpix_lock();
    ++comm->refs;
    mpix_unlock();

    *comm_p = comm;
    return MPI_SUCCESS;
}

void mpix_comm_put(mpix_comm_t *comm)
{
    mpix_peer_t *peer, *tmp;

    if (--comm->refs > 0) {
        return;
    }

    ucs_list_for_each_safe(peer, tmp, &comm->peers, list) {
        mpix_peer_destroy(peer);
    }
    free(comm);
}

int mpix_comm_world_rank(MPI_Comm comm, int rank)
{
    int world_rank = MPI_UNDEFINED;
    MPI_Group group, world;
    int is_inter;

    PMPI_Comm_test_inter(comm, &is_inter);
    if (is_inter) {
        PMPI_Comm_remote_group(comm, &group);
    } else {
        PMPI_Comm_group(comm, &group);
    }
    PMPI_Comm_group(MPI_COMM_WORLD, &world);

    PMPI_Group_translate_ranks(group, 1, &rank, world, &world_rank);

    PMPI_Group_free(&world);
    PMPI_Group_free(&group);
    return (world_rank == MPI_UNDEFINED) ? -1 : world_rank;
}
