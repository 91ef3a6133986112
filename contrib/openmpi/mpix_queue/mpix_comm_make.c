/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_comm_make.c - MPI's functions that make communicators.
 *
 * Those that duplicate are not among them: the copy has its id from the
 * attribute of the original.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_comm.h"
#include "mpix_error.h"


/* The common end of all of these: 'rc' is what MPI said, 'comm' the one whose
 * error handler is for it. */
static int mpix_comm_made(MPI_Comm comm, int rc, const MPI_Comm *newcomm)
{
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    return mpix_raise(comm, mpix_comm_agree(*newcomm));
}

int MPI_Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm)
{
    int rc = PMPI_Comm_create(comm, group, newcomm);

    return mpix_comm_made(comm, rc, newcomm);
}

int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag,
                          MPI_Comm *newcomm)
{
    int rc = PMPI_Comm_create_group(comm, group, tag, newcomm);

    return mpix_comm_made(comm, rc, newcomm);
}

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm)
{
    int rc = PMPI_Comm_split(comm, color, key, newcomm);

    return mpix_comm_made(comm, rc, newcomm);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info,
                        MPI_Comm *newcomm)
{
    int rc = PMPI_Comm_split_type(comm, type, key, info, newcomm);

    return mpix_comm_made(comm, rc, newcomm);
}

int MPI_Cart_create(MPI_Comm comm, int ndims, const int dims[],
                    const int periods[], int reorder, MPI_Comm *newcomm)
{
    int rc = PMPI_Cart_create(comm, ndims, dims, periods, reorder, newcomm);

    return mpix_comm_made(comm, rc, newcomm);
}

int MPI_Cart_sub(MPI_Comm comm, const int remain[], MPI_Comm *newcomm)
{
    int rc = PMPI_Cart_sub(comm, remain, newcomm);

    return mpix_comm_made(comm, rc, newcomm);
}

int MPI_Graph_create(MPI_Comm comm, int nnodes, const int index[],
                     const int edges[], int reorder, MPI_Comm *newcomm)
{
    int rc = PMPI_Graph_create(comm, nnodes, index, edges, reorder, newcomm);

    return mpix_comm_made(comm, rc, newcomm);
}

int MPI_Dist_graph_create(MPI_Comm comm, int n, const int nodes[],
                          const int degrees[], const int targets[],
                          const int weights[], MPI_Info info, int reorder,
                          MPI_Comm *newcomm)
{
    int rc = PMPI_Dist_graph_create(comm, n, nodes, degrees, targets, weights,
                                    info, reorder, newcomm);

    return mpix_comm_made(comm, rc, newcomm);
}

int MPI_Dist_graph_create_adjacent(MPI_Comm comm, int indegree,
                                   const int sources[],
                                   const int sourceweights[], int outdegree,
                                   const int destinations[],
                                   const int destweights[], MPI_Info info,
                                   int reorder, MPI_Comm *newcomm)
{
    int rc = PMPI_Dist_graph_create_adjacent(comm, indegree, sources,
                                             sourceweights, outdegree,
                                             destinations, destweights, info,
                                             reorder, newcomm);

    return mpix_comm_made(comm, rc, newcomm);
}

int MPI_Intercomm_create(MPI_Comm comm, int leader, MPI_Comm peer_comm,
                         int remote_leader, int tag, MPI_Comm *newcomm)
{
    int rc = PMPI_Intercomm_create(comm, leader, peer_comm, remote_leader, tag,
                                   newcomm);

    return mpix_comm_made(comm, rc, newcomm);
}

int MPI_Intercomm_merge(MPI_Comm comm, int high, MPI_Comm *newcomm)
{
    int rc = PMPI_Intercomm_merge(comm, high, newcomm);

    return mpix_comm_made(comm, rc, newcomm);
}

#if MPI_VERSION >= 4

int MPI_Comm_create_from_group(MPI_Group group, const char *stringtag,
                               MPI_Info info, MPI_Errhandler errhandler,
                               MPI_Comm *newcomm)
{
    int rc = PMPI_Comm_create_from_group(group, stringtag, info, errhandler,
                                         newcomm);

    return mpix_comm_made(MPI_COMM_NULL, rc, newcomm);
}

int MPI_Intercomm_create_from_groups(MPI_Group group, int leader,
                                     MPI_Group remote_group, int remote_leader,
                                     const char *stringtag, MPI_Info info,
                                     MPI_Errhandler errhandler,
                                     MPI_Comm *newcomm)
{
    int rc = PMPI_Intercomm_create_from_groups(group, leader, remote_group,
                                               remote_leader, stringtag, info,
                                               errhandler, newcomm);

    return mpix_comm_made(MPI_COMM_NULL, rc, newcomm);
}

#endif
