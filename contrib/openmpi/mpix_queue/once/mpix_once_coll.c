/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_once_coll.c - collectives on a stream that are used once: the thread
 * begins them in MPI when the stream gets to their start.
 *
 * What lies in a device is copied to memory of the host, with the gaps of its
 * datatype, and back.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "binding/mpix_error.h"
#include "mpix_batch.h"

#include <ucs_gstream_memory.h>

#include <stdlib.h>


/* A buffer, and the memory that MPI is given in its place. */
typedef struct mpix_once_side {
    void *address; /* The application's, or MPI_IN_PLACE */
    void *place;   /* The first byte of its elements */
    void *stage;   /* Of the host, for these; NULL: it is in no device */
} mpix_once_side_t;

typedef struct mpix_once_coll {
    mpix_once_side_t send;
    mpix_once_side_t recv;
    size_t           span; /* Bytes from the first element's first one to the
                              last one's last */
    int              count;
    MPI_Datatype     type;
    int              is_dup; /* The type is a duplicate */
    MPI_Op           op;
} mpix_once_coll_t;


/* MPI's operations are for its own datatypes, not for duplicates of them, and
 * these need none. */
static int mpix_once_set_type(mpix_once_coll_t *coll, MPI_Datatype type)
{
    int num_ints, num_addrs, num_types, combiner;
    int rc;

    coll->type = type;
    rc         = PMPI_Type_get_envelope(type, &num_ints, &num_addrs, &num_types,
                                        &combiner);
    if ((rc == MPI_SUCCESS) && (combiner != MPI_COMBINER_NAMED)) {
        rc           = PMPI_Type_dup(type, &coll->type);
        coll->is_dup = (rc == MPI_SUCCESS);
    }
    return rc;
}

static int mpix_once_set_side(mpix_once_coll_t *coll, mpix_once_side_t *side,
                              const void *address, MPI_Aint lb)
{
    side->address = (void*)address;
    side->place   = (void*)((uintptr_t)address + lb);
    if ((address == MPI_IN_PLACE) || (coll->span == 0) ||
        !mpix_buffer_is_device(address, coll->type)) {
        return MPI_SUCCESS;
    }

    side->stage = ucs_gstream_memory_get(coll->span);
    return (side->stage != NULL) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

void mpix_once_coll_destroy(mpix_once_coll_t *coll)
{
    if (coll == NULL) {
        return;
    }

    ucs_gstream_memory_put(coll->send.stage, coll->span);
    ucs_gstream_memory_put(coll->recv.stage, coll->span);
    if (coll->is_dup) {
        PMPI_Type_free(&coll->type);
    }
    free(coll);
}

/* Returns an MPI code; MPI has raised its own. */
static int mpix_once_coll_create(const mpix_msg_args_t *args,
                                 const void *sendbuf, MPI_Op op,
                                 mpix_once_coll_t **coll_p)
{
    mpix_once_coll_t *coll = calloc(1, sizeof(*coll));
    MPI_Aint lb, extent, true_lb, true_extent;
    int rc;

    if (coll == NULL) {
        return MPI_ERR_NO_MEM;
    }

    rc = PMPI_Type_get_extent(args->datatype, &lb, &extent);
    if (rc == MPI_SUCCESS) {
        rc = PMPI_Type_get_true_extent(args->datatype, &true_lb, &true_extent);
    }
    rc = (rc == MPI_SUCCESS) ? mpix_once_set_type(coll, args->datatype) : rc;
    if (rc != MPI_SUCCESS) {
        goto err;
    }

    coll->op    = op;
    coll->count = args->count;
    coll->span  = (args->count == 0) ?
                          0 :
                          ((size_t)true_extent +
                           ((size_t)(args->count - 1) * (size_t)extent));
    rc          = mpix_once_set_side(coll, &coll->send, sendbuf, true_lb);
    if (rc == MPI_SUCCESS) {
        rc = mpix_once_set_side(coll, &coll->recv, args->buffer, true_lb);
    }
    if (rc != MPI_SUCCESS) {
        goto err;
    }

    *coll_p = coll;
    return MPI_SUCCESS;

err:
    mpix_once_coll_destroy(coll);
    return rc;
}

int mpix_once_allreduce(mpix_msg_args_t *args, const void *sendbuf, MPI_Op op,
                        struct mpix_queue *queue, MPI_Request *request)
{
    int rc;

    if (args->count < 0) {
        return mpix_raise(args->comm,
                          mpix_fail(args->func, MPI_ERR_COUNT,
                                    "count %d is negative", args->count));
    }
    if ((op == MPI_OP_NULL) || (args->datatype == MPI_DATATYPE_NULL)) {
        return mpix_raise(args->comm,
                          mpix_fail(args->func, (op == MPI_OP_NULL) ?
                                                        MPI_ERR_OP :
                                                        MPI_ERR_TYPE,
                                    "the %s is null", (op == MPI_OP_NULL) ?
                                                              "operation" :
                                                              "datatype"));
    }

    rc = mpix_once_coll_create(args, sendbuf, op, &args->coll);
    if (rc != MPI_SUCCESS) {
        return (rc != MPI_ERR_NO_MEM) ?
                       rc :
                       mpix_raise(args->comm,
                                  mpix_fail(args->func, rc, "no memory"));
    }
    rc = mpix_batch_enqueue(args, queue, request);
    if (rc != MPI_SUCCESS) {
        mpix_once_coll_destroy(args->coll);
    }
    return rc;
}

static int mpix_once_copy(const mpix_msg_t *msg, const mpix_once_side_t *side,
                          int is_back)
{
    ucs_status_t status;

    if (side->stage == NULL) {
        return MPI_SUCCESS;
    }

    status = is_back ? ucs_gstream_memory_copy(side->place, side->stage,
                                               msg->coll->span) :
                       ucs_gstream_memory_copy(side->stage, side->place,
                                               msg->coll->span);
    return (status == UCS_OK) ?
                   MPI_SUCCESS :
                   mpix_fail(msg->func, MPI_ERR_OTHER,
                             "the copy %s memory of a GPU failed: %s",
                             is_back ? "to" : "from",
                             ucs_status_string(status));
}

/* What MPI is given for a buffer. */
static void *mpix_once_buffer(const mpix_once_side_t *side)
{
    return (side->stage == NULL) ?
                   side->address :
                   (void*)((uintptr_t)side->stage + (uintptr_t)side->address -
                           (uintptr_t)side->place);
}

int mpix_once_coll_begin(mpix_msg_t *msg)
{
    const mpix_once_coll_t *coll = msg->coll;
    const MPI_Comm comm          = mpix_comm_handle(msg->comm);
    int rc;

    if (comm == MPI_COMM_NULL) {
        return mpix_fail(msg->func, MPI_ERR_COMM, "the communicator was freed "
                         "before the stream came to this");
    }

    /* Gaps between what is received stay as they are */
    rc = mpix_once_copy(msg, &coll->send, 0);
    rc = (rc == MPI_SUCCESS) ? mpix_once_copy(msg, &coll->recv, 0) : rc;
    return (rc == MPI_SUCCESS) ?
                   PMPI_Iallreduce(mpix_once_buffer(&coll->send),
                                   mpix_once_buffer(&coll->recv), coll->count,
                                   coll->type, coll->op, comm, &msg->inner) :
                   rc;
}

int mpix_once_coll_end(mpix_msg_t *msg)
{
    return mpix_once_copy(msg, &msg->coll->recv, 1);
}
