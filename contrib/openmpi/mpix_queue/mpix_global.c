/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpix_global.c - what a process has once: the lock and the st worker.
 *
 * Made at the first use. It ends in steps. An attribute of MPI_COMM_SELF, which
 * MPI_Finalize deletes first, tells that MPI may not be called any more; peers
 * are told that nothing more will be matched. What uses the PML's worker ends
 * when that is destroyed. The st worker does not use the PML and goes after
 * MPI_Finalize, which returns only when all ranks have entered it: until then
 * a peer's last message may need this rank's NIC.
 */
#ifndef _GNU_SOURCE
#  define _GNU_SOURCE 1 /* dladdr() */
#endif
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "mpix_global.h"
#include "mpix_batch.h"
#include "mpix_capture.h"
#include "mpix_coll.h"
#include "mpix_error.h"
#include "mpix_leave.h"
#include "mpix_request.h"
#include "mpix_queues.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

mpix_global_t mpix_global = {
    .lock       = PTHREAD_MUTEX_INITIALIZER,
    .state      = MPIX_STATE_NONE,
    .world_rank = -1,
    .self       = MPI_COMM_NULL
};

/* Held by the thread that makes the st worker, while others wait for it. Not
 * the lock, which calls that need no st worker take, too; and MPI's calls in
 * there may wait for those of other threads. */
static pthread_mutex_t mpix_global_init_lock = PTHREAD_MUTEX_INITIALIZER;

/* MPI_Finalize came through this library, which has the last word. */
static int mpix_global_is_wrapped;


/* Whether MPI is to be asked for more than the program asks for. */
static int mpix_global_wants_multiple(void)
{
    const char *value = getenv("MPIX_QUEUE_THREAD_MULTIPLE");

    return (value != NULL) && (strchr("yY1", *value) != NULL) &&
           (*value != '\0');
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int rc;

    if (mpix_global_wants_multiple()) {
        required = MPI_THREAD_MULTIPLE;
    } else if (required < MPI_THREAD_FUNNELED) {
        required = MPI_THREAD_FUNNELED;
    }

    rc = PMPI_Init_thread(argc, argv, required, provided);
    if (rc == MPI_SUCCESS) {
        mpix_global.is_serial = (*provided < MPI_THREAD_MULTIPLE);
    }
    return rc;
}

int MPI_Init(int *argc, char ***argv)
{
    int provided;

    return MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
}

int mpix_mpi_is_active(void)
{
    int initialized, finalized;

    PMPI_Initialized(&initialized);
    PMPI_Finalized(&finalized);
    return initialized && !finalized;
}

/* Whether the application calls this library's MPI_Send_init, and not MPI's. */
static int mpix_global_wraps_mpi(void)
{
    void *called = dlsym(RTLD_DEFAULT, "MPI_Send_init");
    Dl_info own, used;

    return (dladdr(&mpix_global, &own) == 0) ||
           (dladdr(called, &used) == 0) || (own.dli_fbase == used.dli_fbase);
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
    if (!mpix_global_wraps_mpi()) {
        return mpix_fail(func, MPI_ERR_OTHER,
                         "the program calls MPI past libmpix_queue: link "
                         "-lmpix_queue before the MPI library");
    }

    PMPI_Query_thread(&level);
    if (level < MPI_THREAD_FUNNELED) {
        return mpix_fail(func, MPI_ERR_OTHER,
                         "MPI was initialised without support for threads: "
                         "call MPI_Init or MPI_Init_thread, which ask for it, "
                         "and not PMPI_Init");
    }
    return MPI_SUCCESS;
}

mpix_state_t mpix_global_get_state(void)
{
    mpix_state_t state;

    mpix_lock();
    state = mpix_global.state;
    mpix_unlock();
    return state;
}

static void mpix_global_set_pml_worker(ucp_worker_h worker)
{
    __atomic_store_n(&mpix_global.pml_worker, worker, __ATOMIC_RELAXED);
}

ucs_status_t mpix_global_init_pml(const char **cause_p)
{
    ucp_worker_h worker;
    ucs_status_t status;
    MPI_Comm other;

    mpix_global_learn_rank();
    PMPI_Comm_dup(MPI_COMM_SELF, &mpix_global.self);
    PMPI_Comm_dup(MPI_COMM_SELF, &other);
    PMPI_Comm_set_errhandler(mpix_global.self, MPI_ERRORS_RETURN);
    PMPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);

    status = mpix_capture_check(mpix_global.self, other, &worker, cause_p);
    PMPI_Comm_free(&other);
    if (status != UCS_OK) {
        goto err;
    }

    status = ucp_worker_get_address(worker, &mpix_global.pml_address,
                                    &mpix_global.pml_address_length);
    if (status != UCS_OK) {
        *cause_p = "the address of MPI's worker is not known";
        goto err;
    }
    mpix_global_set_pml_worker(worker);
    return UCS_OK;

err:
    PMPI_Comm_free(&mpix_global.self);
    return status;
}

void mpix_global_cleanup_pml(void)
{
    ucp_worker_release_address(mpix_global.pml_worker, mpix_global.pml_address);
    mpix_global_set_pml_worker(NULL);
}

static int mpix_global_init_worker(const char *func,
                                   ucp_st_worker_h *st_worker_p)
{
    const ucp_st_worker_params_t params = {.field_mask = 0};
    ucp_st_worker_h st_worker;
    ucs_status_t status;

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
                     "; UCX_TLS must allow cxi_trig, and UCX_NET_DEVICES one "
                     "of its devices" :
                     "; the message of UCX above says why");
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

    mpix_lock();
    mpix_queues_cleanup();
    mpix_colls_cleanup();
    st_worker = mpix_global.st_worker;
    if (st_worker != NULL) {
        mpix_request_cleanup();
        mpix_global.st_worker = NULL; /* For the threads that come now */
    }
    mpix_unlock();

    if (st_worker != NULL) {
        mpix_global_cleanup_worker(st_worker);
    }
}

int MPI_Finalize(void)
{
    int rc;

    mpix_global_is_wrapped = 1;
    mpix_leave_prepare();
    rc = PMPI_Finalize();
    mpix_global_cleanup();
    return rc;
}

/* MPI_Finalize has begun. */
static int mpix_global_finalized(MPI_Comm comm, int keyval, void *value,
                                 void *extra)
{
    MPI_Comm self;

    mpix_batch_thread_stop();
    mpix_queues_cancel();

    mpix_lock();
    mpix_leave_begin();
    self = mpix_global.self;
    mpix_unlock();

    if (self != MPI_COMM_NULL) {
        PMPI_Comm_free(&self);
    }
    if (!mpix_global_is_wrapped) {
        mpix_global_cleanup();
    }
    return PMPI_Comm_free_keyval(&keyval);
}

static int mpix_global_attach(const char *func)
{
    int keyval;

    if ((PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, mpix_global_finalized,
                                 &keyval, NULL) != MPI_SUCCESS) ||
        (PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL) != MPI_SUCCESS)) {
        return mpix_fail(func, MPI_ERR_OTHER,
                         "cannot attach to MPI_COMM_SELF");
    }
    return MPI_SUCCESS;
}

int mpix_global_init_finalize(const char *func)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int is_attached;
    int rc = MPI_SUCCESS;

    pthread_mutex_lock(&lock);
    if (!is_attached) {
        rc          = mpix_global_attach(func);
        is_attached = (rc == MPI_SUCCESS);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

/* With the init lock. */
static int mpix_global_init_once(const char *func)
{
    ucp_st_worker_h st_worker = NULL;
    const char *cause;
    int rc;

    if (mpix_global_init_pml(&cause) != UCS_OK) {
        return mpix_fail(func, MPI_ERR_UNSUPPORTED_OPERATION, "%s", cause);
    }

    rc = mpix_global_init_worker(func, &st_worker);
    if (rc != MPI_SUCCESS) {
        goto err_free_self;
    }

    rc = mpix_global_init_finalize(func);
    if (rc != MPI_SUCCESS) {
        goto err_cleanup_worker;
    }

    mpix_lock();
    mpix_global.st_worker = st_worker;
    mpix_global.state     = MPIX_STATE_READY;
    mpix_unlock();
    return MPI_SUCCESS;

err_cleanup_worker:
    mpix_global_cleanup_worker(st_worker);
err_free_self:
    mpix_global_cleanup_pml();
    PMPI_Comm_free(&mpix_global.self);
    return rc;
}

int mpix_global_init(const char *func)
{
    int rc;

    rc = mpix_global_check_mpi(func);
    if ((rc != MPI_SUCCESS) ||
        (mpix_global_get_state() == MPIX_STATE_READY)) {
        return rc;
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
