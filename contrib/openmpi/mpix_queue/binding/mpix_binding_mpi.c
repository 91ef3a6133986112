/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_binding_mpi.c - st addresses go by MPI's own messages, on a duplicate of
 * MPI_COMM_WORLD that nobody else has.
 *
 * MPI is called without the lock: it may have one of its own, and take ours in
 * a callback. One thread at a time is at it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_binding.h"
#include "mpix_comm.h"
#include "mpix_error.h"
#include "mpix_global.h"
#include "mpix_leave.h"
#include "mpix_peer.h"

#include <ucs_backoff.h>

#include <stdio.h>

/* Messages that a call takes out: they may come faster than that */
#define MPIX_MPI_MAX_PROBES 64
#define MPIX_MPI_TAG        0

/* A process that waits for all others says so after this time, in seconds */
#define MPIX_MPI_WARN_TIME  10.0


static struct {
    MPI_Comm        comm;      /* Constant while the binding is in use */
    int             is_busy;   /* A thread is in MPI. Protected by the lock */
    ucs_list_link_t queued;    /* To be sent. Protected by the lock */
    ucs_list_link_t sending;   /* Of the thread that is busy */
    ucs_list_link_t receiving; /* Of the thread that is busy */
} mpix_mpi = {
    .comm      = MPI_COMM_NULL,
    .queued    = UCS_LIST_INITIALIZER(&mpix_mpi.queued, &mpix_mpi.queued),
    .sending   = UCS_LIST_INITIALIZER(&mpix_mpi.sending, &mpix_mpi.sending),
    .receiving = UCS_LIST_INITIALIZER(&mpix_mpi.receiving,
                                      &mpix_mpi.receiving)
};


static const char mpix_mpi_need[] =
        "the binding mpi needs all processes of MPI_COMM_WORLD: each must come "
        "through this library's MPI_Init or MPIX_Queue_attach, with the same "
        "MPIX_QUEUE_BINDING and the same PML";


/* Waits for all processes, which may never come: those without this library, or
 * with another setting. */
static int mpix_mpi_open_wait(void)
{
    const double end = mpix_now() + MPIX_MPI_WARN_TIME;
    unsigned spins   = 0;
    int has_warned   = 0;
    int is_done      = 0;
    MPI_Request request;
    int rc;

    rc = PMPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (rc == MPI_SUCCESS) {
        rc = PMPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
        if (is_done) {
            break;
        }
        if (!has_warned && (mpix_now() > end)) {
            mpix_warn("waits for other processes: %s", mpix_mpi_need);
            has_warned = 1;
        }
        ucs_backoff(&spins);
    }
    return rc;
}

static ucs_status_t mpix_mpi_open(const char **cause_p)
{
    MPI_Errhandler errhandler;
    int rc;

    /* What others do instead may meet this */
    PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &errhandler);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    rc = mpix_mpi_open_wait();
    if (rc == MPI_SUCCESS) {
        rc = PMPI_Comm_dup(MPI_COMM_WORLD, &mpix_mpi.comm);
    }
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, errhandler);
    PMPI_Errhandler_free(&errhandler);
    if (rc != MPI_SUCCESS) {
        *cause_p = mpix_mpi_need;
        return UCS_ERR_IO_ERROR;
    }

    mpix_global.probed = mpix_mpi.comm;
    return UCS_OK;
}

static int mpix_mpi_resolve(const char *func, mpix_peer_t *peer,
                            mpix_route_t *route)
{
    if ((peer->world_rank < 0) || (peer->comm->id == MPIX_COMM_ID_FOREIGN)) {
        return mpix_comm_foreign_error(func);
    }

    if (peer->comm->id == MPIX_COMM_ID_NONE) {
        return mpix_fail(func, MPI_ERR_COMM,
                         "the communicator was made past libmpix_queue: all "
                         "its processes must call MPIX_Queue_attach on it "
                         "first");
    }

    peer->context     = peer->comm->id;
    route->world_rank = peer->world_rank;
    return MPI_SUCCESS;
}

static ucs_status_t mpix_mpi_resolve_reply(const mpix_exchange_in_t *in,
                                           mpix_route_t *route)
{
    route->world_rank = in->world_rank;
    return UCS_OK;
}

static ucs_status_t mpix_mpi_send(mpix_exchange_out_t *out)
{
    ucs_list_add_tail(&mpix_mpi.queued, &out->msg.list);
    return UCS_OK;
}

static ucs_status_t mpix_mpi_status(int rc)
{
    return (rc == MPI_SUCCESS) ? UCS_OK : UCS_ERR_IO_ERROR;
}

/* Looks at a message's request, and sets 'done'. */
static int mpix_mpi_test(mpix_exchange_msg_t *msg)
{
    int is_done = 0;
    int rc;

    rc = PMPI_Test(&msg->mpi_request, &is_done, MPI_STATUS_IGNORE);
    if (is_done || (rc != MPI_SUCCESS)) {
        mpix_exchange_done(msg, mpix_mpi_status(rc));
        return 1;
    }
    return 0;
}

static void mpix_mpi_isend(ucs_list_link_t *outs)
{
    mpix_exchange_out_t *out;
    int rc;

    while (!ucs_list_is_empty(outs)) {
        out = ucs_list_extract_head(outs, mpix_exchange_out_t, msg.list);
        rc  = PMPI_Isend(&out->header, mpix_exchange_out_length(out), MPI_BYTE,
                         out->route.world_rank, MPIX_MPI_TAG, mpix_mpi.comm,
                         &out->msg.mpi_request);
        if (rc != MPI_SUCCESS) {
            out->msg.status = UCS_ERR_IO_ERROR;
            mpix_exchange_out_free(out);
        } else {
            ucs_list_add_tail(&mpix_mpi.sending, &out->msg.list);
        }
    }
}

/* Receives a message that is there, unless it is too long, as MPI_UNDEFINED is,
 * which is below 0: its request stays null, and its bytes 0. With less room it
 * would fail, of which OpenMPI 4.1 dies: pml/ucx's request of a message that
 * was probed has no communicator. */
static void mpix_mpi_imrecv(MPI_Message *message, const MPI_Status *status)
{
    mpix_exchange_in_t *in;
    int length, rc = MPI_SUCCESS;

    PMPI_Get_count(status, MPI_BYTE, &length);
    in = mpix_exchange_in_create(length);
    if (in == NULL) {
        return;
    }

    in->world_rank = status->MPI_SOURCE;
    if (in->length == (size_t)length) {
        rc = PMPI_Imrecv(&in->header, length, MPI_BYTE, message,
                         &in->msg.mpi_request);
    }
    if (rc != MPI_SUCCESS) {
        mpix_warn("a message of rank %d in MPI_COMM_WORLD is lost: its "
                  "requests will not be matched", in->world_rank);
        mpix_exchange_in_free(in);
        return;
    }
    ucs_list_add_tail(&mpix_mpi.receiving, &in->msg.list);
}

static unsigned mpix_mpi_probe(void)
{
    unsigned count = 0;
    MPI_Message message;
    MPI_Status status;
    int is_there;

    for (; count < MPIX_MPI_MAX_PROBES; ++count) {
        if ((PMPI_Improbe(MPI_ANY_SOURCE, MPIX_MPI_TAG, mpix_mpi.comm,
                          &is_there, &message, &status) != MPI_SUCCESS) ||
            !is_there) {
            break;
        }
        mpix_mpi_imrecv(&message, &status);
    }
    return count;
}

/* Moves what has been received, in order. */
static unsigned mpix_mpi_collect_ins(ucs_list_link_t *ins)
{
    unsigned count = 0;
    mpix_exchange_in_t *in, *tmp;

    ucs_list_for_each_safe(in, tmp, &mpix_mpi.receiving, msg.list) {
        if (!mpix_mpi_test(&in->msg)) {
            continue;
        }
        if (mpix_exchange_check(in) == UCS_OK) {
            in->rank    = in->header.source_rank;
            in->context = in->header.context;
        }
        ucs_list_del(&in->msg.list);
        ucs_list_add_tail(ins, &in->msg.list);
        ++count;
    }
    return count;
}

static unsigned mpix_mpi_collect_outs(void)
{
    unsigned count = 0;
    mpix_exchange_out_t *out, *tmp;

    ucs_list_for_each_safe(out, tmp, &mpix_mpi.sending, msg.list) {
        if (mpix_mpi_test(&out->msg)) {
            ucs_list_del(&out->msg.list);
            mpix_exchange_out_free(out);
            ++count;
        }
    }
    return count;
}

static unsigned mpix_mpi_progress(void)
{
    unsigned count = 0;
    UCS_LIST_HEAD(outs);
    UCS_LIST_HEAD(ins);

    if (mpix_mpi.is_busy) {
        return 0;
    }

    mpix_mpi.is_busy = 1;
    ucs_list_splice_tail(&outs, &mpix_mpi.queued);
    ucs_list_head_init(&mpix_mpi.queued);
    mpix_unlock();

    mpix_mpi_isend(&outs);
    count += mpix_mpi_probe();
    count += mpix_mpi_collect_ins(&ins);
    count += mpix_mpi_collect_outs();

    mpix_lock();
    while (!ucs_list_is_empty(&ins)) {
        mpix_exchange_arrived(ucs_list_extract_head(&ins, mpix_exchange_in_t,
                                                    msg.list));
    }
    mpix_mpi.is_busy = 0;
    return count;
}

/* Nothing that was sent is still on its way. */
static int mpix_mpi_is_drained(void)
{
    return !mpix_mpi.is_busy && ucs_list_is_empty(&mpix_mpi.queued) &&
           ucs_list_is_empty(&mpix_mpi.sending) &&
           ucs_list_is_empty(&mpix_mpi.receiving);
}

/* Answers peers until all processes have come here, with all that they have
 * sent. */
static void mpix_mpi_meet(void)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int is_here         = 0;
    unsigned spins      = 0;
    int is_drained, rc;

    rc = PMPI_Ibarrier(mpix_mpi.comm, &request);
    while (rc == MPI_SUCCESS) {
        mpix_lock();
        mpix_leave_progress();
        is_drained = mpix_mpi_is_drained();
        mpix_unlock();
        if (!is_here) {
            rc = PMPI_Test(&request, &is_here, MPI_STATUS_IGNORE);
        } else if (is_drained) {
            break;
        }
        ucs_backoff(&spins);
    }
}

/* The first time ends when nobody asks any more, the second one when all have
 * their answers. */
static void mpix_mpi_finalize(void)
{
    mpix_mpi_meet();
    mpix_mpi_meet();

    mpix_lock();
    mpix_exchange_cleanup();
    mpix_unlock();
    PMPI_Comm_free(&mpix_mpi.comm);
}

const mpix_binding_t mpix_binding_mpi = {
    .name          = "mpi",
    .open          = mpix_mpi_open,
    .is_collective = 1,
    .resolve       = mpix_mpi_resolve,
    .resolve_reply = mpix_mpi_resolve_reply,
    .send          = mpix_mpi_send,
    .progress      = mpix_mpi_progress,
    .needs_thread  = 1,
    .finalize      = mpix_mpi_finalize
};
