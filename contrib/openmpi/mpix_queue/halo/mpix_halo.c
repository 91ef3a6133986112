/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_halo.c - the exchange with all neighbours: persistent requests, made one
 * exchange, which is coupled where the neighbours have halos: each rank starts
 * all of it at once.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_queue.h"
#include "binding/mpix_comm.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "binding/mpix_handle.h"
#include "request/mpix_joint.h"
#include "request/mpix_queues.h"
#include "request/mpix_request.h"

#include <stdlib.h>
#include <string.h>

/* Each direction has a tag, of which MPI has 32768 at least */
#define MPIX_HALO_MAX_DIMS 9


/* Behind a handle. Of the thread that calls. */
typedef struct mpix_halo_object {
    MPIX_Queue  queue;
    MPI_Request exchange;   /* Of all requests; MPI_REQUEST_NULL: none yet, or
                               freed */
    int         is_ending;  /* MPIX_Halo_free was called */
    int         count;      /* Of requests */
    MPI_Request requests[]; /* Receives, then sends; MPI_REQUEST_NULL: freed */
} mpix_halo_object_t;

/* Where the messages of a side go. */
typedef struct mpix_halo_link {
    int rank;
    int sendtag;
    int recvtag;
} mpix_halo_link_t;

/* What a call to make a halo is given. */
typedef struct mpix_halo_args {
    const char           *func;
    MPI_Comm             comm;
    int                  count; /* Of sides */
    const MPIX_Halo_side *sides;
    mpix_halo_link_t     *links; /* As many */
    MPIX_Queue           queue;
} mpix_halo_args_t;

/* A cartesian grid, and where this rank is. */
typedef struct mpix_halo_grid {
    int num_dims;
    int size[MPIX_HALO_MAX_DIMS];
    int is_periodic[MPIX_HALO_MAX_DIMS];
    int coord[MPIX_HALO_MAX_DIMS];
} mpix_halo_grid_t;


/* Live halos: handles of objects. */
static UCS_LIST_HEAD(mpix_halos);


static int mpix_halo_check(const mpix_halo_args_t *args, const MPIX_Halo *halo)
{
    if (halo == NULL) {
        return mpix_fail(args->func, MPI_ERR_ARG,
                         "the place for the halo is NULL");
    } else if (!mpix_queue_is_valid(args->queue)) {
        return mpix_fail(args->func, MPI_ERR_ARG, "%p is no live queue",
                         (void*)args->queue);
    } else if (args->count < 0) {
        return mpix_fail(args->func, MPI_ERR_COUNT, "%d sides", args->count);
    } else if ((args->count > 0) && (args->sides == NULL)) {
        return mpix_fail(args->func, MPI_ERR_ARG, "the sides are NULL");
    }
    return MPI_SUCCESS;
}

/* Frees the requests, the exchange first. MPI has raised the error, if there is
 * one. */
static int mpix_halo_free_requests(mpix_halo_object_t *object)
{
    int rc = MPI_SUCCESS;
    int i;

    if (object->exchange != MPI_REQUEST_NULL) {
        rc = MPI_Request_free(&object->exchange);
    }
    for (i = 0; (i < object->count) && (rc == MPI_SUCCESS); ++i) {
        if (object->requests[i] != MPI_REQUEST_NULL) {
            rc = MPI_Request_free(&object->requests[i]);
        }
    }
    return rc;
}

/* What MPI would refuse without naming the side. */
static int mpix_halo_check_side(const mpix_halo_args_t *args, int index)
{
    const MPIX_Halo_side *side   = &args->sides[index];
    const mpix_halo_link_t *link = &args->links[index];
    const int tag_ub             = mpix_comm_tag_ub();
    const int size               = mpix_comm_num_peers(args->comm);

    if ((link->rank < 0) || (link->rank >= size)) {
        return mpix_fail(args->func, MPI_ERR_RANK,
                         "side %d: rank %d, of %d processes", index, link->rank,
                         size);
    } else if ((side->sendcount < 0) || (side->recvcount < 0)) {
        return mpix_fail(args->func, MPI_ERR_COUNT,
                         "side %d: counts %d to send, %d to receive", index,
                         side->sendcount, side->recvcount);
    } else if ((side->sendtype == MPI_DATATYPE_NULL) ||
               (side->recvtype == MPI_DATATYPE_NULL)) {
        return mpix_fail(args->func, MPI_ERR_TYPE,
                         "side %d: a datatype is MPI_DATATYPE_NULL", index);
    } else if ((link->sendtag < 0) || (link->sendtag > tag_ub) ||
               (link->recvtag < 0) || (link->recvtag > tag_ub)) {
        return mpix_fail(args->func, MPI_ERR_TAG,
                         "side %d: tags %d to send, %d to receive", index,
                         link->sendtag, link->recvtag);
    }
    return MPI_SUCCESS;
}

/* Makes the requests of one side. The error, if there is one, has been
 * raised. */
static int mpix_halo_make_requests(const mpix_halo_args_t *args, int index,
                                   MPI_Request *recv, MPI_Request *send)
{
    const MPIX_Halo_side *side   = &args->sides[index];
    const mpix_halo_link_t *link = &args->links[index];
    int rc                       = mpix_halo_check_side(args, index);

    if (rc != MPI_SUCCESS) {
        return mpix_raise(args->comm, rc);
    }

    rc = MPI_Recv_init(side->recvbuf, side->recvcount, side->recvtype,
                       link->rank, link->recvtag, args->comm, recv);
    if (rc == MPI_SUCCESS) {
        rc = MPI_Send_init(side->sendbuf, side->sendcount, side->sendtype,
                           link->rank, link->sendtag, args->comm, send);
    }
    return rc;
}

/* Makes and matches all requests. The error, if there is one, has been
 * raised. */
static int mpix_halo_match(const mpix_halo_args_t *args,
                           mpix_halo_object_t *object)
{
    int num_recvs = object->count / 2;
    int rc        = MPI_SUCCESS;
    int next      = 0;
    int i;

    for (i = 0; (i < args->count) && (rc == MPI_SUCCESS); ++i) {
        if (args->links[i].rank != MPI_PROC_NULL) {
            rc = mpix_halo_make_requests(args, i, &object->requests[next],
                                         &object->requests[num_recvs + next]);
            ++next;
        }
    }
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = mpix_joint_create(args->func, args->comm, object->count,
                           object->requests, 1, &object->exchange);
    return (rc == MPI_SUCCESS) ?
                   MPIX_Match(&object->exchange, MPI_STATUS_IGNORE) :
                   mpix_raise(args->comm, rc);
}

static mpix_halo_object_t *mpix_halo_alloc(const mpix_halo_args_t *args)
{
    mpix_halo_object_t *object;
    int count = 0;
    int i;

    for (i = 0; i < args->count; ++i) {
        count += 2 * (args->links[i].rank != MPI_PROC_NULL);
    }

    object = calloc(1, sizeof(*object) + count * sizeof(*object->requests));
    if (object == NULL) {
        return NULL;
    }

    object->queue    = args->queue;
    object->exchange = MPI_REQUEST_NULL;
    object->count    = count;
    for (i = 0; i < count; ++i) {
        object->requests[i] = MPI_REQUEST_NULL;
    }
    return object;
}

/* Makes a halo of sides with links. The error, if there is one, has been
 * raised. */
static int mpix_halo_create(const mpix_halo_args_t *args, MPIX_Halo *halo_p)
{
    mpix_halo_object_t *object = mpix_halo_alloc(args);
    MPIX_Halo halo             = NULL;
    int rc;

    if (object != NULL) {
        halo = mpix_handle_create(&mpix_halos, object);
    }
    if (halo == NULL) {
        free(object);
        return mpix_raise(args->comm, mpix_fail(args->func, MPI_ERR_NO_MEM,
                                                "no memory for a halo"));
    }

    rc = mpix_halo_match(args, object);
    if (rc != MPI_SUCCESS) {
        mpix_halo_free_requests(object);
        mpix_handle_destroy(halo);
        free(object);
        return rc;
    }

    *halo_p = halo;
    return MPI_SUCCESS;
}

static int mpix_halo_grid_init(const char *func, MPI_Comm comm,
                               mpix_halo_grid_t *grid)
{
    int topology;

    PMPI_Topo_test(comm, &topology);
    if (topology != MPI_CART) {
        return mpix_fail(func, MPI_ERR_TOPOLOGY,
                         "the communicator has no cartesian topology: give a "
                         "list of neighbours to MPIX_Halo_init_list");
    }

    PMPI_Cartdim_get(comm, &grid->num_dims);
    if (grid->num_dims > MPIX_HALO_MAX_DIMS) {
        return mpix_fail(func, MPI_ERR_TOPOLOGY,
                         "%d dimensions, at most %d are supported",
                         grid->num_dims, MPIX_HALO_MAX_DIMS);
    }
    PMPI_Cart_get(comm, grid->num_dims, grid->size, grid->is_periodic,
                  grid->coord);
    return MPI_SUCCESS;
}

/* Number of offsets of -1, 0 and 1 in all dimensions. */
static int mpix_halo_grid_offsets(const mpix_halo_grid_t *grid)
{
    int count = 1;
    int dim;

    for (dim = 0; dim < grid->num_dims; ++dim) {
        count *= 3;
    }
    return count;
}

/* The link in a direction: the place of its offset among all. */
static mpix_halo_link_t mpix_halo_grid_link(const mpix_halo_grid_t *grid,
                                            MPI_Comm comm, int direction)
{
    int tag_ub            = mpix_comm_tag_ub();
    mpix_halo_link_t link = {
        .sendtag = tag_ub - direction,
        .recvtag = tag_ub - (mpix_halo_grid_offsets(grid) - 1 - direction)
    };
    int coord[MPIX_HALO_MAX_DIMS];
    int dim;

    for (dim = grid->num_dims - 1; dim >= 0; --dim) {
        coord[dim] = grid->coord[dim] + (direction % 3) - 1;
        direction /= 3;
        if (!grid->is_periodic[dim] &&
            ((coord[dim] < 0) || (coord[dim] >= grid->size[dim]))) {
            link.rank = MPI_PROC_NULL;
            return link;
        }
    }

    PMPI_Cart_rank(comm, coord, &link.rank);
    return link;
}

/* Fills the links of a grid; the number of sides tells which ones. */
static int mpix_halo_grid_links(const mpix_halo_grid_t *grid,
                                const mpix_halo_args_t *args)
{
    int all    = mpix_halo_grid_offsets(grid);
    int middle = all / 2; /* The offset of 0 in all dimensions */
    int i, step;

    if (args->count == (2 * grid->num_dims)) {
        step = all / 3;
        for (i = 0; i < args->count; i += 2, step /= 3) {
            args->links[i]     = mpix_halo_grid_link(grid, args->comm,
                                                     middle - step);
            args->links[i + 1] = mpix_halo_grid_link(grid, args->comm,
                                                     middle + step);
        }
        return MPI_SUCCESS;
    } else if (args->count == (all - 1)) {
        for (i = 0; i < args->count; ++i) {
            args->links[i] = mpix_halo_grid_link(grid, args->comm,
                                                 i + (i >= middle));
        }
        return MPI_SUCCESS;
    }
    return mpix_fail(args->func, MPI_ERR_COUNT,
                     "%d sides: a grid of %d dimensions has %d, or %d with "
                     "edges and corners", args->count, grid->num_dims,
                     2 * grid->num_dims, all - 1);
}

/* Begins to make a halo: makes room for the links, also of no sides. */
static int mpix_halo_begin(mpix_halo_args_t *args, const MPIX_Halo *halo)
{
    int rc = mpix_halo_check(args, halo);

    if (rc != MPI_SUCCESS) {
        return rc;
    }

    args->links = calloc((size_t)args->count + 1, sizeof(*args->links));
    return (args->links == NULL) ?
                   mpix_fail(args->func, MPI_ERR_NO_MEM, "no memory") :
                   MPI_SUCCESS;
}

/* Ends it. 'rc' is not raised yet. */
static int mpix_halo_end(mpix_halo_args_t *args, int rc, MPIX_Halo *halo)
{
    rc = (rc == MPI_SUCCESS) ? mpix_halo_create(args, halo) :
                               mpix_raise(args->comm, rc);
    free(args->links);
    return rc;
}

int MPIX_Halo_init(MPI_Comm comm, int count, const MPIX_Halo_side sides[],
                   MPIX_Queue queue, MPIX_Halo *halo)
{
    mpix_halo_args_t args = {
        "MPIX_Halo_init", comm, count, sides, NULL, queue
    };
    mpix_halo_grid_t grid;
    int rc;

    rc = mpix_check_comm(args.func, comm);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = mpix_halo_begin(&args, halo);
    if (rc == MPI_SUCCESS) {
        rc = mpix_halo_grid_init(args.func, comm, &grid);
    }
    if (rc == MPI_SUCCESS) {
        rc = mpix_halo_grid_links(&grid, &args);
    }
    return mpix_halo_end(&args, rc, halo);
}

/* Fills the links of listed neighbours. */
static int mpix_halo_list_links(const mpix_halo_args_t *args, const int *ranks,
                                const int *sendtags, const int *recvtags)
{
    int tag_ub = mpix_comm_tag_ub();
    int i;

    if ((args->count > 0) && (ranks == NULL)) {
        return mpix_fail(args->func, MPI_ERR_ARG, "the ranks are NULL");
    }

    for (i = 0; i < args->count; ++i) {
        args->links[i].rank    = ranks[i];
        args->links[i].sendtag = (sendtags == NULL) ? tag_ub : sendtags[i];
        args->links[i].recvtag = (recvtags == NULL) ? tag_ub : recvtags[i];
    }
    return MPI_SUCCESS;
}

int MPIX_Halo_init_list(MPI_Comm comm, int count, const int ranks[],
                        const int sendtags[], const int recvtags[],
                        const MPIX_Halo_side sides[], MPIX_Queue queue,
                        MPIX_Halo *halo)
{
    mpix_halo_args_t args = {
        "MPIX_Halo_init_list", comm, count, sides, NULL, queue
    };
    int rc;

    rc = mpix_check_comm(args.func, comm);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = mpix_halo_begin(&args, halo);
    if (rc == MPI_SUCCESS) {
        rc = mpix_halo_list_links(&args, ranks, sendtags, recvtags);
    }
    return mpix_halo_end(&args, rc, halo);
}

/* The object of a handle; raises that it is none, and returns the code. */
static int mpix_halo_get(const char *func, MPIX_Halo halo,
                         mpix_halo_object_t **object_p)
{
    *object_p = mpix_handle_object(&mpix_halos, halo);
    return (*object_p != NULL) ? MPI_SUCCESS :
                                 mpix_handle_refuse(func, halo,
                                                    "halo of MPIX_Halo_init");
}

static int mpix_halo_enqueue(const char *func, MPIX_Halo halo, int is_wait)
{
    mpix_halo_object_t *object;
    MPI_Comm comm;
    int rc;

    rc = mpix_halo_get(func, halo, &object);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    rc = object->is_ending ?
                 mpix_fail(func, MPI_ERR_ARG,
                           "MPIX_Halo_free was called before") :
                 mpix_enqueue_requests(&(const mpix_enqueue_call_t){
                     func, object->queue, 1, &object->exchange, is_wait
                 });
    if (rc != MPI_SUCCESS) {
        comm = mpix_request_comm(1, &object->exchange);
        mpix_raise(comm, rc);
    }
    return rc;
}

int MPIX_Halo_start(MPIX_Halo halo)
{
    return mpix_halo_enqueue("MPIX_Halo_start", halo, 0);
}

int MPIX_Halo_wait(MPIX_Halo halo)
{
    return mpix_halo_enqueue("MPIX_Halo_wait", halo, 1);
}

int MPIX_Halo_free(MPIX_Halo *halo)
{
    MPIX_Halo handle = (halo == NULL) ? MPIX_HALO_NULL : *halo;
    mpix_halo_object_t *object;
    int rc;

    rc = mpix_halo_get("MPIX_Halo_free", handle, &object);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    object->is_ending = 1;
    rc                = mpix_halo_free_requests(object);
    if (rc == MPI_SUCCESS) {
        mpix_handle_destroy(handle);
        free(object);
        *halo = MPIX_HALO_NULL;
    }
    return rc;
}
