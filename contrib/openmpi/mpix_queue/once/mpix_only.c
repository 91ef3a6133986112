/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_only.c - communicators whose messages are sent and received by queues
 * only: how processes agree on that, and where their peers are.
 *
 * All processes of such a communicator tell each other the addresses of their
 * st workers when they agree. So a call that enqueues a message waits for no
 * other process.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_assert.h"
#include "mpix_fifo.h"
#include "binding/mpix_binding.h"
#include "binding/mpix_capture.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "binding/mpix_next.h"
#include "binding/mpix_peer.h"
#include "binding/mpix_upcalls.h"

#include <ucs_backoff.h>
#include <ucs/sys/math.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MPIX_ONLY_KEY "mpix_queue_only"

/* What the environment is called, and how long the processes of a job wait for
 * those where it does not say so, seconds */
#define MPIX_ONLY_ENV  "MPIX_QUEUE_ONLY"
#define MPIX_ONLY_TIME 60


/* A process of MPI_COMM_WORLD. */
typedef struct mpix_only_process {
    void          *address; /* Of its st worker; NULL: it is not known */
    int           length;
    int           is_connected;
    ucp_st_peer_h peer;
} mpix_only_process_t;


/* Protected by the lock; the array is made once. */
static struct {
    mpix_only_process_t *processes; /* By rank in MPI_COMM_WORLD */
    int                 count;
    int                 is_forced;
    uint64_t            epoch; /* The last one of this process */
} mpix_only;


int mpix_only_is_forced(void)
{
    return mpix_env_is_yes(MPIX_ONLY_ENV);
}

int mpix_only_is(const mpix_comm_t *comm)
{
    return mpix_only.is_forced || comm->is_only;
}

/* Room for all processes. With the lock. */
static int mpix_only_make_room(void)
{
    int size;

    if (mpix_only.processes != NULL) {
        return 1;
    }

    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    mpix_only.processes = calloc(size, sizeof(*mpix_only.processes));
    mpix_only.count     = size;
    return mpix_only.processes != NULL;
}

/* Keeps an address that came from a rank. */
static int mpix_only_keep(int world_rank, const void *address, int length)
{
    mpix_only_process_t *process;
    int rc = MPI_ERR_NO_MEM;

    mpix_lock();
    if (mpix_only_make_room()) {
        process = &mpix_only.processes[world_rank];
        rc      = MPI_SUCCESS;
        if (process->address == NULL) {
            process->address = malloc(length);
            process->length  = length;
            rc = (process->address == NULL) ? MPI_ERR_NO_MEM : MPI_SUCCESS;
        }
        if (process->address != NULL) {
            memcpy(process->address, address, process->length);
        }
    }
    mpix_unlock();
    return rc;
}

/* Keeps the addresses that came from all ranks. */
static int mpix_only_keep_all(MPI_Comm handle, const char *addresses,
                              const int lengths[], const int offsets[])
{
    int rc = MPI_SUCCESS;
    int size, rank, world_rank;

    PMPI_Comm_size(handle, &size);
    for (rank = 0; (rank < size) && (rc == MPI_SUCCESS); ++rank) {
        world_rank = mpix_comm_world_rank(handle, rank);
        rc         = (world_rank < 0) ?
                             MPI_ERR_COMM :
                             mpix_only_keep(world_rank,
                                            addresses + offsets[rank],
                                            lengths[rank]);
    }
    return rc;
}

/* Whether no rank has failed: each enters it with its own code, as one that
 * does not would leave the others in their next collective. MPI raises its own
 * errors. */
static int mpix_only_all(const char *func, MPI_Comm handle, int rc)
{
    int mine = (rc != MPI_SUCCESS);
    int most = 0;
    int code = PMPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, handle);

    if ((rc != MPI_SUCCESS) || (code != MPI_SUCCESS)) {
        return (rc != MPI_SUCCESS) ? rc : code;
    }
    return (most == 0) ? MPI_SUCCESS :
                         mpix_fail(func, MPI_ERR_OTHER,
                                   "another rank has failed");
}

/* All tell all their addresses. MPI raises its own errors. */
static int mpix_only_gather(const char *func, MPI_Comm handle,
                            const int lengths[])
{
    size_t total    = 0;
    char *addresses = NULL;
    int *offsets;
    int rc, size, rank;

    PMPI_Comm_size(handle, &size);
    PMPI_Comm_rank(handle, &rank);
    offsets = malloc(size * sizeof(*offsets));
    for (int i = 0; (offsets != NULL) && (i < size); ++i) {
        offsets[i] = (int)total;
        total     += lengths[i];
    }
    if ((offsets != NULL) && (total <= INT_MAX)) {
        addresses = malloc(total);
    }
    rc = (addresses != NULL) ? MPI_SUCCESS :
                               mpix_fail(func, MPI_ERR_NO_MEM, "no memory");
    rc = mpix_only_all(func, handle, rc);
    if (rc == MPI_SUCCESS) {
        rc = PMPI_Allgatherv(mpix_global.address, lengths[rank], MPI_BYTE,
                             addresses, lengths, offsets, MPI_BYTE, handle);
        rc = (rc == MPI_SUCCESS) ?
                     mpix_only_keep_all(handle, addresses, lengths, offsets) :
                     rc;
        rc = mpix_only_all(func, handle, rc);
    }
    free(addresses);
    free(offsets);
    return rc;
}

/* The length of the own address, or what stands in its place. */
enum {
    MPIX_ONLY_NO      = 0,
    MPIX_ONLY_FAILED  = -1, /* There is none */
    MPIX_ONLY_FOREIGN = -2
};

static int mpix_only_length(const char *func, MPI_Comm handle, int is_only)
{
    char text[MPI_MAX_ERROR_STRING];
    int is_inter = 0;
    int rc, length;

    if (!is_only) {
        return MPIX_ONLY_NO;
    }
    PMPI_Comm_test_inter(handle, &is_inter);
    if (is_inter || mpix_comm_is_foreign(handle)) {
        return MPIX_ONLY_FOREIGN;
    }

    rc = mpix_upcalls.make_worker(func);
    if (rc != MPI_SUCCESS) {
        PMPI_Error_string(rc, text, &length);
        mpix_warn("%s", text);
        return MPIX_ONLY_FAILED;
    }
    return (int)mpix_global.address_length;
}

/* What the ranks have said: MPI_SUCCESS if all say the same. */
static int mpix_only_check(const char *func, const int lengths[], int size)
{
    int rank;

    for (rank = 0; rank < size; ++rank) {
        if (lengths[rank] == MPIX_ONLY_FOREIGN) {
            return mpix_fail(func, MPI_ERR_COMM, "not of an "
                             "intercommunicator, or one with processes of "
                             "another MPI_COMM_WORLD");
        } else if (lengths[rank] == MPIX_ONLY_FAILED) {
            return mpix_fail(func, MPI_ERR_OTHER, "rank %d cannot make its "
                             "worker for stream-triggered messages", rank);
        } else if ((lengths[rank] == MPIX_ONLY_NO) !=
                   (lengths[0] == MPIX_ONLY_NO)) {
            return mpix_fail(func, MPI_ERR_INFO_VALUE,
                             "rank 0 does%s say so, and rank %d does%s",
                             (lengths[0] == MPIX_ONLY_NO) ? " not" : "", rank,
                             (lengths[rank] == MPIX_ONLY_NO) ? " not" : "");
        }
    }
    return MPI_SUCCESS;
}

/* All processes of a communicator say whether they say so, and if they do,
 * where they are. There is room for what all say. Returns an MPI code that is
 * not raised, but by MPI; MPI_SUCCESS at all of them or at none. */
static int mpix_only_exchange(const char *func, MPI_Comm handle, int is_only,
                              int lengths[])
{
    int length = mpix_only_length(func, handle, is_only);
    int rc, size;

    PMPI_Comm_size(handle, &size);
    rc = PMPI_Allgather(&length, 1, MPI_INT, lengths, 1, MPI_INT, handle);
    if (rc == MPI_SUCCESS) {
        rc = mpix_only_check(func, lengths, size);
    }
    if ((rc == MPI_SUCCESS) && is_only) {
        rc = mpix_only_gather(func, handle, lengths);
    }
    return rc;
}

/* What the processes of a communicator begin with: the largest of each holds */
enum {
    MPIX_ONLY_SAYS,   /* Its info names the key */
    MPIX_ONLY_NO_MEM, /* It has no memory */
    MPIX_ONLY_LAST,   /* Its last epoch */
    MPIX_ONLY_EPOCH,  /* The communicator's */
    MPIX_ONLY_NUM
};

/* Agrees on what a communicator says from now on. The first time it gets an
 * epoch, later than all that its processes know. It keeps that: what was sent
 * before another call is received behind it. With MPIX_QUEUE_ONLY=y, where no
 * call is collective over each new communicator, they have none: there a
 * context that is used again still meets the old numbers. A process without
 * memory, for the object or the lengths, comes here all the same. */
static int mpix_only_agree_comm(const char *func, MPI_Comm handle,
                                mpix_comm_t *comm, int lengths[], int value)
{
    uint64_t mine[MPIX_ONLY_NUM] = {0};
    uint64_t most[MPIX_ONLY_NUM];
    int is_only                  = value;
    int rc;

    mpix_lock();
    if ((value < 0) && (comm != NULL)) {
        is_only = comm->is_only;
    }
    mine[MPIX_ONLY_SAYS]   = (value >= 0);
    mine[MPIX_ONLY_NO_MEM] = (comm == NULL) || (lengths == NULL);
    mine[MPIX_ONLY_LAST]   = mpix_only.epoch;
    mine[MPIX_ONLY_EPOCH]  = (comm != NULL) ? comm->epoch : 0;
    mpix_unlock();

    rc = PMPI_Allreduce(mine, most, MPIX_ONLY_NUM, MPI_UINT64_T, MPI_MAX,
                        handle);
    if ((rc != MPI_SUCCESS) || !most[MPIX_ONLY_SAYS]) {
        return rc; /* Nobody says anything */
    }
    if (most[MPIX_ONLY_NO_MEM]) {
        return mpix_fail(func, MPI_ERR_NO_MEM, "a rank has no memory");
    }

    rc = mpix_only_exchange(func, handle, is_only, lengths);
    if (rc == MPI_SUCCESS) {
        mpix_lock();
        comm->is_only = is_only;
        if (is_only && !mpix_only.is_forced) {
            comm->epoch     = (most[MPIX_ONLY_EPOCH] > 0) ?
                                      most[MPIX_ONLY_EPOCH] :
                                      (most[MPIX_ONLY_LAST] + 1);
            mpix_only.epoch = ucs_max(mpix_only.epoch, comm->epoch);
        }
        mpix_unlock();
    }
    return rc;
}

/* The value is that of mpix_only_read(). Returns an MPI code that is not
 * raised, but by MPI. */
static int mpix_only_agree(const char *func, MPI_Comm handle, int value)
{
    mpix_comm_t *comm = NULL;
    int rc, is_inter, length, size;
    int *lengths;

    PMPI_Comm_test_inter(handle, &is_inter);
    if (is_inter) { /* Each side alone; nobody may say so */
        length = mpix_only_length(func, handle, value > 0);
        return mpix_only_check(func, &length, 1);
    }

    PMPI_Comm_size(handle, &size);
    lengths = malloc(size * sizeof(*lengths));
    if (mpix_comm_get(handle, &comm) != MPI_SUCCESS) {
        comm = NULL;
    }
    rc = mpix_only_agree_comm(func, handle, comm, lengths, value);
    if (comm != NULL) {
        mpix_comm_drop(comm);
    }
    free(lengths);
    return rc;
}

int mpix_only_share(const char *func, MPI_Comm handle)
{
    int *lengths;
    int size, rc;

    PMPI_Comm_size(handle, &size);
    lengths = malloc(size * sizeof(*lengths));
    rc      = mpix_only_all(func, handle,
                            (lengths != NULL) ? MPI_SUCCESS :
                                                mpix_fail(func, MPI_ERR_NO_MEM,
                                                          "no memory"));
    rc      = (rc == MPI_SUCCESS) ?
                      mpix_only_exchange(func, handle, 1, lengths) :
                      rc;
    free(lengths);
    return rc;
}

int mpix_only_set(const char *func, MPI_Comm handle)
{
    return mpix_only_agree(func, handle, 1);
}

/* Whether info says so; -1 if it does not name the key: hints stay as they
 * are. */
static int mpix_only_read(MPI_Info info)
{
    char value[8] = "";
    int flag      = 0;

    if (info != MPI_INFO_NULL) {
        PMPI_Info_get(info, MPIX_ONLY_KEY, sizeof(value) - 1, value, &flag);
    }
    return flag ? !strcmp(value, "true") : -1;
}

/* A communicator has got info. Returns an MPI code that is not raised, but by
 * MPI. */
static int mpix_only_take(const char *func, MPI_Comm handle, MPI_Info info)
{
    int rc = mpix_only_agree(func, handle, mpix_only_read(info));

    return (rc == MPI_SUCCESS) ? mpix_assert_keep(func, handle, info) : rc;
}

int MPI_Comm_set_info(MPI_Comm comm, MPI_Info info)
{
    int rc = MPIX_NEXT(Comm_set_info)(comm, info);

    if (rc != MPI_SUCCESS) {
        return rc;
    }
    rc = mpix_only_take("MPI_Comm_set_info: info key " MPIX_ONLY_KEY, comm,
                        info);
    return mpix_raise(comm, rc);
}

int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
    int rc = MPIX_NEXT(Comm_dup_with_info)(comm, info, newcomm);

    if (rc != MPI_SUCCESS) {
        return rc;
    }
    rc = mpix_only_take("MPI_Comm_dup_with_info: info key " MPIX_ONLY_KEY,
                        *newcomm, info);
    return mpix_raise(*newcomm, rc);
}

/* Whether all processes of the job come here in time: one that does not may
 * have another environment. */
static int mpix_only_meet(void)
{
    const double end = mpix_now() + MPIX_ONLY_TIME;
    unsigned spins   = 0;
    MPI_Request request;
    int flag = 0;

    if (PMPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) {
        return 0;
    }
    while ((PMPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS) &&
           !flag && (mpix_now() < end)) {
        ucs_backoff(&spins);
    }
    return flag;
}

int mpix_only_begin(void)
{
    static const char func[] = "MPI_Init";
    int rc;

    if (!mpix_only_is_forced()) {
        return MPI_SUCCESS;
    }

    rc = mpix_only_meet() ?
                 mpix_only_agree(func, MPI_COMM_WORLD, 1) :
                 mpix_fail(func, MPI_ERR_OTHER, MPIX_ONLY_ENV "=y is not set "
                           "for all processes of MPI_COMM_WORLD");
    mpix_only.is_forced = (rc == MPI_SUCCESS);
    return mpix_raise(MPI_COMM_WORLD, rc);
}

/* The scope is what the binding tells communicators apart by. MPI uses contexts
 * again: the epoch above their bits tells a communicator from those before it,
 * whose two sides may have counted differently after an error. Ids of the
 * binding mpi are used once. With the lock. */
static int mpix_only_scope(const char *func, mpix_comm_t *comm, int rank,
                           uint64_t *scope_p)
{
    mpix_peer_t peer = {.comm = comm, .rank = rank};
    mpix_route_t route;
    int rc = mpix_binding()->resolve(func, &peer, &route);

    *scope_p = peer.context;
    if (!mpix_binding_needs_ids()) {
        *scope_p += comm->epoch * MPIX_TAG_CONTEXT_BIT;
    }
    return rc;
}

int mpix_only_connect(const char *func, int world_rank, int rank,
                      ucp_st_peer_h *peer_p)
{
    mpix_only_process_t *process;
    ucs_status_t status;

    if ((world_rank < 0) || (world_rank >= mpix_only.count) ||
        (mpix_only.processes[world_rank].address == NULL)) {
        return mpix_fail(func, MPI_ERR_RANK, "rank %d is of another "
                         "MPI_COMM_WORLD, to which no queue sends", rank);
    }

    /* Two threads may find the same peer: each gets its handle */
    process = &mpix_only.processes[world_rank];
    if (!__atomic_load_n(&process->is_connected, __ATOMIC_ACQUIRE)) {
        status = ucp_st_peer_create(mpix_global.st_worker, process->address,
                                    process->length, &process->peer);
        if (status != UCS_OK) {
            return mpix_fail(func, mpix_status_code(status),
                             "cannot connect to rank %d: %s", rank,
                             ucs_status_string(status));
        }
        __atomic_store_n(&process->is_connected, 1, __ATOMIC_RELEASE);
    }
    *peer_p = process->peer;
    return MPI_SUCCESS;
}

int mpix_only_peer(const char *func, mpix_comm_t *comm, int rank,
                   ucp_st_peer_h *peer_p, uint64_t *scope_p)
{
    int rc, world_rank;

    mpix_lock();
    world_rank = mpix_comm_world_rank(comm->handle, rank);
    rc         = mpix_only_scope(func, comm, rank, scope_p);
    mpix_unlock();
    return (rc == MPI_SUCCESS) ?
                   mpix_only_connect(func, world_rank, rank, peer_p) :
                   rc;
}

void mpix_only_cleanup(void)
{
    int i;

    for (i = 0; i < mpix_only.count; ++i) {
        free(mpix_only.processes[i].address);
    }
    free(mpix_only.processes);
    mpix_only.processes = NULL;
    mpix_only.count     = 0;
    mpix_only.is_forced = 0;
    mpix_only.epoch     = 0;
}
