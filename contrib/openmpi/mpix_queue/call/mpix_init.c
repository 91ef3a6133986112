/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_init.c - how the library begins and ends in a process.
 *
 * The st worker is made at the first use. All ends in steps. An attribute of
 * MPI_COMM_SELF, which MPI_Finalize deletes first, tells that MPI may not be
 * called any more; peers are told that nothing more will be matched. What uses
 * the PML's worker ends when that is destroyed. The st worker does not use the
 * PML and goes after MPI_Finalize, which returns only when all ranks have
 * entered it: until then a peer's last message may need this rank's NIC.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE 1 /* dladdr() */
#endif
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_init.h"
#include "binding/mpix_binding.h"
#include "binding/mpix_comm.h"
#include "binding/mpix_error.h"
#include "binding/mpix_global.h"
#include "binding/mpix_leave.h"
#include "binding/mpix_next.h"
#include "binding/mpix_upcalls.h"
#include "coll/mpix_coll.h"
#include "mpix_host.h"
#include "mpix_level.h"
#include "mpix_match_thread.h"
#include "mpix_queue_free.h"
#include "mpix_request_free.h"
#include "once/mpix_fifo.h"
#include "request/mpix_request.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Held by the thread that makes the st worker, while others wait for it. Not
 * the lock, which calls that need no st worker take, too; and MPI's calls in
 * there may wait for those of other threads. */
static pthread_mutex_t mpix_global_init_lock = PTHREAD_MUTEX_INITIALIZER;

/* MPI_Finalize came through this library, which has the last word. */
static int mpix_global_is_wrapped;

/* MPI_Init or MPIX_Queue_attach came through this library. Protected by the
 * init lock. */
static int mpix_global_is_attached;


void mpix_init_forked(void)
{
    pthread_mutex_init(&mpix_global_init_lock, NULL);
}

/* Attaches to MPI what has to be there whether the library is used or not: its
 * peers may use it. */
static void mpix_global_begin(void)
{
    const char *cause; /* The first use says it */

    mpix_global_bind(1, &cause);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int rc;

    rc = MPIX_NEXT(Init_thread)(argc, argv, mpix_level_required(required),
                                provided);
    if (rc == MPI_SUCCESS) {
        mpix_global.is_serial = (*provided < MPI_THREAD_MULTIPLE);
        mpix_global_begin();
        rc = mpix_only_begin();
    }
    return rc;
}

/* Whether a tool behind this library has MPI_Init. */
static int mpix_global_has_tool(void)
{
    Dl_info next, mpi;

    return dladdr((void*)mpix_next_mpi.Init, &next) &&
           dladdr((void*)mpix_next_pmpi.Init, &mpi) &&
           (next.dli_fbase != mpi.dli_fbase);
}

int MPI_Init(int *argc, char ***argv)
{
    int provided;

    /* It may not have MPI_Init_thread. It calls PMPI_Init, which gets here
     * again. */
    if ((mpix_next_depth == 0) && mpix_global_has_tool()) {
        return MPIX_NEXT(Init)(argc, argv);
    }
    return MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
}

static void mpix_global_learn_rank(void)
{
    int rank;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    __atomic_store_n(&mpix_global.world_rank, rank, __ATOMIC_RELAXED);
}

static int mpix_global_check_mpi(const char *func)
{
    int level;

    if (!mpix_mpi_is_active()) {
        return mpix_fail(func, MPI_ERR_OTHER,
                         "MPI is not initialised, or finalised already");
    }

    mpix_global_learn_rank();
    PMPI_Query_thread(&level);
    if (level < MPI_THREAD_FUNNELED) {
        return mpix_fail(func, MPI_ERR_OTHER,
                         "MPI was initialised without support for threads: "
                         "call MPI_Init or MPI_Init_thread, which ask for it, "
                         "and not PMPI_Init");
    }
    return MPI_SUCCESS;
}

static int mpix_global_init_worker(const char *func,
                                   ucp_st_worker_h *st_worker_p)
{
    char name[32];
    const ucp_st_worker_params_t params = {
        .field_mask = UCP_ST_WORKER_PARAM_FIELD_FLAGS |
                      UCP_ST_WORKER_PARAM_FIELD_NAME,
        .flags      = UCP_ST_WORKER_FLAG_QUIET, /* Errors here name requests */
        .name       = name
    };
    ucp_st_worker_h st_worker;
    ucs_status_t status;

    snprintf(name, sizeof(name), "rank %d", mpix_global_world_rank());
    status = ucp_st_worker_create(&params, &st_worker);
    if (status != UCS_OK) {
        goto err;
    }

    status = ucp_st_worker_get_address(st_worker, &mpix_global.address,
                                       &mpix_global.address_length);
    if (status != UCS_OK) {
        goto err_destroy;
    }
    *st_worker_p = st_worker;
    return MPI_SUCCESS;

err_destroy:
    ucp_st_worker_destroy(st_worker);
err:
    return mpix_fail(func,
                     (status == UCS_ERR_NO_MEMORY) ? MPI_ERR_NO_MEM :
                                                     MPI_ERR_OTHER,
                     "cannot make the worker for stream-triggered messages: "
                     "%s%s", ucs_status_string(status),
                     ((status == UCS_ERR_NO_DEVICE) ||
                      (status == UCS_ERR_UNSUPPORTED)) ?
                     "; UCX_ST_LANES, UCX_TLS and UCX_NET_DEVICES leave no "
                     "lane: a message of UCX says why" :
                     "; a message of UCX says why");
}

/* Waits some seconds for peers: without the lock. */
static void mpix_global_cleanup_worker(ucp_st_worker_h st_worker)
{
    ucp_st_worker_release_address(st_worker, mpix_global.address);
    if (ucp_st_worker_destroy(st_worker) != UCS_OK) {
        mpix_warn("queues or requests are still in use after MPI_Finalize: "
                  "what they hold is not given back");
    }
}

static void mpix_global_cleanup(void)
{
    ucp_st_worker_h st_worker;

    mpix_queues_cleanup();
    mpix_lock();
    mpix_colls_cleanup();
    st_worker = mpix_global.st_worker;
    if (st_worker != NULL) {
        mpix_host_cleanup();
        mpix_request_cleanup();
        mpix_only_cleanup();
        mpix_global.st_worker = NULL; /* For the threads that come now */
    }
    mpix_unlock();

    if (st_worker != NULL) {
        mpix_global_cleanup_worker(st_worker);
    }
}

int MPI_Finalize(void)
{
    const char *cause; /* Nobody can ask where this fails */
    int rc;

    mpix_global_is_wrapped = 1;
    if (mpix_mpi_is_active()) {
        mpix_global_bind(0, &cause);
        mpix_global_begin_finalize();
    }
    rc = MPIX_NEXT(Finalize)();
    mpix_global_cleanup();
    return rc;
}

/* Nothing is probed any more, either. */
static void mpix_global_forget_self(void)
{
    mpix_global.probed = MPI_COMM_NULL;
    PMPI_Comm_free(&mpix_global.self);
}

/* MPI_Finalize has begun. */
static int mpix_global_finalized(MPI_Comm comm, int keyval, void *value,
                                 void *extra)
{
    const mpix_binding_t *binding = mpix_binding();

    mpix_batch_thread_stop();
    mpix_fifo_stop();
    mpix_queues_cancel();

    mpix_lock();
    mpix_leave_begin();
    mpix_unlock();

    mpix_match_thread_stop();
    if ((binding != NULL) && (binding->finalize != NULL)) {
        binding->finalize();
    }
    if (mpix_global.self != MPI_COMM_NULL) {
        mpix_global_forget_self();
    }
    if (!mpix_global_is_wrapped) {
        mpix_global_cleanup();
    }
    return PMPI_Comm_free_keyval(&keyval);
}

const mpix_upcalls_t mpix_upcalls = {
    .comm_freed   = mpix_request_resolve_peers,
    .request_lost = mpix_request_lost,
    .make_worker  = mpix_global_init,
    .finalized    = mpix_global_finalized
};

/* With the init lock. */
static ucs_status_t mpix_global_bind_once(int is_collective,
                                          const char **cause_p)
{
    ucs_status_t status;

    mpix_global_learn_rank();
    PMPI_Comm_dup(MPI_COMM_SELF, &mpix_global.self);
    PMPI_Comm_set_errhandler(mpix_global.self, MPI_ERRORS_RETURN);
    mpix_global.probed = mpix_global.self;

    status = mpix_binding_choose(is_collective, cause_p);
    if (status != UCS_OK) {
        mpix_global_forget_self();
        return status;
    }

    if (!mpix_global_attach_finalize() ||
        (mpix_comm_agree(MPI_COMM_WORLD) != MPI_SUCCESS) ||
        (mpix_comm_agree(MPI_COMM_SELF) != MPI_SUCCESS)) {
        *cause_p = "cannot attach to MPI_COMM_WORLD and MPI_COMM_SELF";
        return UCS_ERR_NO_MEMORY;
    }
    return UCS_OK;
}

ucs_status_t mpix_global_bind(int is_collective, const char **cause_p)
{
    ucs_status_t status = UCS_OK;

    pthread_mutex_lock(&mpix_global_init_lock);
    if (mpix_binding() == NULL) {
        status = mpix_global_bind_once(is_collective, cause_p);
    }
    if ((status == UCS_OK) && is_collective) {
        mpix_global_is_attached = 1;
    }
    pthread_mutex_unlock(&mpix_global_init_lock);
    return status;
}

/* Whether a persistent request that the program makes becomes known here: tries
 * what it would call. A program that attached the library knows. */
static int mpix_global_is_called(void)
{
    __typeof__(&MPI_Recv_init) make = dlsym(RTLD_DEFAULT, "MPI_Recv_init");
    MPI_Request request;
    int is_known;

    if ((make == NULL) || (make(NULL, 0, MPI_BYTE, 0, 0, mpix_global.self,
                                &request) != MPI_SUCCESS)) {
        return 1; /* The program's own ones tell */
    }

    mpix_lock();
    is_known = (mpix_request_find(request) != NULL);
    mpix_unlock();
    MPI_Request_free(&request);
    return is_known;
}

/* With the init lock. */
static int mpix_global_init_once(const char *func)
{
    ucp_st_worker_h st_worker = NULL;
    int rc;

    if (!mpix_global_is_attached && !mpix_global_is_called()) {
        return mpix_fail(func, MPI_ERR_OTHER,
                         "the program calls MPI past libmpix_queue: link "
                         "-lmpix_queue before the MPI library");
    }

    rc = mpix_global_init_worker(func, &st_worker);
    if (rc != MPI_SUCCESS) {
        return rc;
    }

    mpix_lock();
    mpix_global.st_worker = st_worker;
    mpix_global.state     = MPIX_STATE_READY;
    mpix_unlock();
    return MPI_SUCCESS;
}

int mpix_global_init(const char *func)
{
    const char *cause;
    int rc;

    rc = mpix_global_check_mpi(func);
    if ((rc != MPI_SUCCESS) ||
        (mpix_global_get_state() == MPIX_STATE_READY)) {
        return rc;
    }

    if (mpix_global_bind(0, &cause) != UCS_OK) {
        return mpix_fail(func, MPI_ERR_UNSUPPORTED_OPERATION, "%s", cause);
    }

    pthread_mutex_lock(&mpix_global_init_lock);
    switch (mpix_global_get_state()) {
    case MPIX_STATE_NONE:
        rc = mpix_global_init_once(func);
        break;
    case MPIX_STATE_CLOSED:
        rc = mpix_fail(func, MPI_ERR_OTHER, "MPI is being finalised");
        break;
    case MPIX_STATE_READY:
        break;
    }
    pthread_mutex_unlock(&mpix_global_init_lock);
    return rc;
}
