/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_coll_neighbor.c - collectives among the neighbours of a topology: one
 * round of direct messages.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_coll.h"

#include <stdlib.h>

/* Ranks, in the order of the blocks of the buffers. */
typedef struct mpix_neighbors {
    int *sources;
    int *dests;
    int num_sources;
    int num_dests;
    int is_cart;
} mpix_neighbors_t;


static int mpix_neighbors_alloc(mpix_neighbors_t *set, int num_sources,
                                int num_dests)
{
    set->num_sources = num_sources;
    set->num_dests   = num_dests;
    set->sources     = malloc((num_sources + 1) * sizeof(*set->sources));
    set->dests       = malloc((num_dests + 1) * sizeof(*set->dests));
    return (set->sources != NULL) && (set->dests != NULL);
}

/* In each dimension the neighbour below, then the one above. */
static int mpix_neighbors_cart(mpix_neighbors_t *set, MPI_Comm comm)
{
    int i, num_dims;

    PMPI_Cartdim_get(comm, &num_dims);
    set->is_cart = 1;
    if (!mpix_neighbors_alloc(set, 2 * num_dims, 2 * num_dims)) {
        return 0;
    }

    for (i = 0; i < num_dims; ++i) {
        PMPI_Cart_shift(comm, i, 1, &set->sources[2 * i],
                        &set->sources[2 * i + 1]);
        set->dests[2 * i]     = set->sources[2 * i];
        set->dests[2 * i + 1] = set->sources[2 * i + 1];
    }
    return 1;
}

static int mpix_neighbors_graph(mpix_neighbors_t *set, MPI_Comm comm)
{
    int i, rank, count;

    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &count);
    if (!mpix_neighbors_alloc(set, count, count)) {
        return 0;
    }

    PMPI_Graph_neighbors(comm, rank, count, set->sources);
    for (i = 0; i < count; ++i) {
        set->dests[i] = set->sources[i];
    }
    return 1;
}

static int mpix_neighbors_dist_graph(mpix_neighbors_t *set, MPI_Comm comm)
{
    int num_sources, num_dests, is_weighted;
    int *weights;

    PMPI_Dist_graph_neighbors_count(comm, &num_sources, &num_dests,
                                    &is_weighted);
    weights = malloc((num_sources + num_dests + 1) * sizeof(*weights));
    if (!mpix_neighbors_alloc(set, num_sources, num_dests) ||
        (weights == NULL)) {
        free(weights);
        return 0;
    }

    PMPI_Dist_graph_neighbors(comm, num_sources, set->sources, weights,
                              num_dests, set->dests, weights + num_sources);
    free(weights);
    return 1;
}

/* Finds the neighbours; fails the construction where there are none to find. */
static void mpix_neighbors_init(mpix_neighbors_t *set, mpix_coll_t *coll)
{
    int kind, is_ok;

    *set = (mpix_neighbors_t){.sources = NULL};
    PMPI_Topo_test(coll->comm, &kind);
    switch (kind) {
    case MPI_CART:
        is_ok = mpix_neighbors_cart(set, coll->comm);
        break;
    case MPI_GRAPH:
        is_ok = mpix_neighbors_graph(set, coll->comm);
        break;
    case MPI_DIST_GRAPH:
        is_ok = mpix_neighbors_dist_graph(set, coll->comm);
        break;
    default:
        mpix_coll_fail(coll, MPI_ERR_TOPOLOGY,
                       "the communicator has no topology");
        return;
    }
    if (!is_ok) {
        mpix_coll_fail(coll, MPI_ERR_NO_MEM, "no memory");
    }
}

static void mpix_neighbors_cleanup(mpix_neighbors_t *set)
{
    free(set->sources);
    free(set->dests);
}

static void mpix_coll_neighbor_send(mpix_coll_t *coll,
                                    const mpix_coll_args_t *args, int rank,
                                    int index)
{
    MPI_Count count = (args->sendcounts == NULL) ? args->sendcount :
                                                   args->sendcounts[index];
    MPI_Aint place  = (args->sdispls == NULL) ?
                              (MPI_Aint)index * args->sendcount :
                              args->sdispls[index];
    MPI_Aint lb, extent;

    if (rank != MPI_PROC_NULL) {
        PMPI_Type_get_extent(args->sendtype, &lb, &extent);
        mpix_coll_send(coll, (const char*)args->sendbuf + place * extent, count,
                       args->sendtype, rank);
    }
}

static void mpix_coll_neighbor_recv(mpix_coll_t *coll,
                                    const mpix_coll_args_t *args, int rank,
                                    int index)
{
    MPI_Count count = (args->recvcounts == NULL) ? args->recvcount :
                                                   args->recvcounts[index];
    MPI_Aint place  = (args->rdispls == NULL) ?
                              (MPI_Aint)index * args->recvcount :
                              args->rdispls[index];
    MPI_Aint lb, extent;

    if (rank != MPI_PROC_NULL) {
        PMPI_Type_get_extent(args->recvtype, &lb, &extent);
        mpix_coll_recv(coll, (char*)args->recvbuf + place * extent, count,
                       args->recvtype, rank);
    }
}

/* Messages between two ranks are paired in their order. In a Cartesian
 * dimension of one or two processes both neighbours are one: what it sends down
 * comes from above, so that receives are in the other order within a dimension.
 * Of multiple edges of a graph the n-th out is the n-th in. */
void mpix_coll_build_neighbor(mpix_coll_t *coll, const mpix_coll_args_t *args)
{
    mpix_neighbors_t set;
    int i, index;

    if ((args->sendbuf == MPI_IN_PLACE) || (args->recvbuf == MPI_IN_PLACE)) {
        mpix_coll_fail(coll, MPI_ERR_BUFFER,
                       "MPI_IN_PLACE is no buffer of a collective among "
                       "neighbours");
        return;
    }

    mpix_neighbors_init(&set, coll);
    if (coll->code == MPI_SUCCESS) {
        for (i = 0; i < set.num_sources; ++i) {
            index = set.is_cart ? (i ^ 1) : i;
            mpix_coll_neighbor_recv(coll, args, set.sources[index], index);
        }
        for (i = 0; i < set.num_dests; ++i) {
            mpix_coll_neighbor_send(coll, args, set.dests[i], i);
        }
        mpix_coll_end_round(coll);
    }
    mpix_neighbors_cleanup(&set);
}
